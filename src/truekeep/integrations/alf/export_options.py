"""Archives made from a workspace that holds still: all of it, or what changed since an earlier one.

Files that are there for credentials stay behind, and so do artifacts that hold one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core import file_io
from truekeep.core.errors import BadInput, EditedSince
from truekeep.core.file_io import ChangedSince
from truekeep.core.state_dir import STATE
from truekeep.integrations.alf.archive_file import ExportOptions, ExportReport, opened, spooled, stay_sealed, written
from truekeep.integrations.alf.card_records import last_check_of
from truekeep.integrations.alf.credentials import credentials_of
from truekeep.integrations.alf.delta import DeltaContents, write_delta
from truekeep.integrations.alf.embeddings import Vectors
from truekeep.integrations.alf.export import Agent, Manner, edition_of
from truekeep.integrations.alf.files import ARCHIVES, INCLUDED, Item, OmittedFile, WorkspaceTree, sane_time
from truekeep.integrations.alf.id_carryover import by_scope
from truekeep.integrations.alf.own_archives import note_exported
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.record_ids import AGENT_FILE, agent_id_for, parse_agent_id
from truekeep.integrations.alf.record_times import shown_moment
from truekeep.integrations.alf.session_records import session_records
from truekeep.integrations.alf.writer import FileEntry, Tell, WrittenArchive, write_edition
from truekeep.integrations.alf.zip_container import Writer
from truekeep.search.embedders.openclaw_cache import find_databases
from truekeep.text.encoding import decode_text
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.integrations.alf.card_records import LastCheck
    from truekeep.integrations.alf.records import Record

_RETRIES = 3
_SECRET_NAMES = (".env", ".pem", ".key", ".p12", ".pfx", ".keystore", "id_rsa", "id_ed25519", "auth-profiles.json")


def export_archive(
    workspace: Workspace, target: Path, asked: ExportOptions, tell: Tell = lambda *_: None
) -> ExportReport:
    """The workspace as one archive."""

    def make(
        tree: WorkspaceTree, items: list[Item], agent: Agent, manner: Manner, writer: Writer
    ) -> tuple[WrittenArchive, list[str]]:
        base = None
        if asked.base is not None:
            with opened(asked.base, identities=asked.identities, large=True) as reader:
                earlier = Snapshot(reader)
                earlier.require_full()
                base = by_scope(record for record, _ in earlier.records())
        with spooled(target, asked.recipients) as spool:
            edition, notes = edition_of(tree, items, agent, manner, spool=spool, base=base, tell=tell)
            return write_edition(writer, edition, tell), notes

    return _from_workspace(workspace, target, asked, make)


def delta_archive(
    workspace: Workspace, target: Path, since: Path, asked: ExportOptions, tell: Tell = lambda *_: None
) -> ExportReport:
    """What changed in the workspace since an archive was made of it."""

    def make(
        tree: WorkspaceTree, items: list[Item], agent: Agent, manner: Manner, writer: Writer
    ) -> tuple[DeltaContents, list[str]]:
        return write_delta(writer, old, tree, items, agent, manner, tell)

    stay_sealed([since], asked.recipients)
    with opened(since, identities=asked.identities, large=True) as reader:
        old = Snapshot(reader)
        old.require_full()
        return _from_workspace(workspace, target, asked, make, old.files())


_Make = Callable[
    [WorkspaceTree, "list[Item]", Agent, Manner, Writer], "tuple[WrittenArchive | DeltaContents, list[str]]"
]


def _from_workspace(
    workspace: Workspace, target: Path, asked: ExportOptions, make: _Make, before: Mapping[str, FileEntry] | None = None
) -> ExportReport:
    """Make an archive of a workspace that holds still; begin again when it did not. `before`: of an earlier one."""
    root = str(workspace.path)
    _check_target(root, target)
    for attempt in range(_RETRIES):
        try:
            with (
                workspace.locked(),
                WorkspaceTree(root, plain=asked.plain) as tree,
                _manner(workspace, asked) as (manner, notes),
                written(target, recipients=asked.recipients, replace=asked.replace) as writer,
            ):
                agent = agent_of(workspace, is_plain=asked.plain)
                items = _without_secrets(tree, tree.scan(), before or {})
                done, more = make(tree, items, agent, manner, writer)
                notes += more
                omitted = tuple(tree.omitted)
        except ChangedSince as error:
            if attempt == _RETRIES - 1:
                raise EditedSince(
                    f"{error} is being written to", hint="run it again when it is quiet; nothing was written"
                ) from error
        else:
            note_exported(target)
            return ExportReport(target, target.stat().st_size, done, tuple(dict.fromkeys(notes)), omitted)
    raise AssertionError("unreachable")


def _check_target(root: str, target: Path) -> None:
    """Refuse a place where the archive would be part of the next one."""
    inside = os.path.realpath(target.absolute().parent) + os.sep
    if inside.startswith(os.path.realpath(root) + os.sep) and not target.name.endswith(ARCHIVES):
        raise BadInput(
            f"{target} would be a file of the workspace, and part of the next archive",
            hint=f"name a file elsewhere, or one that ends in {ARCHIVES[0]}",
        )


def agent_of(workspace: Workspace, *, is_plain: bool = False) -> Agent:
    """Whose memory this is: by the workspace's own file, which is begun where it is missing."""
    path = workspace.path / AGENT_FILE
    try:
        found = parse_agent_id(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = agent_id_for(os.path.realpath(workspace.path))
        if workspace.is_canonical and not is_plain:
            with suppress(OSError, ChangedSince):  # made of the path: it is the same one the next time
                _write_agent_id(workspace.path, found)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="put the agent's id there, or remove it") from error
    return Agent(found, workspace.path.name, _runtime_version(workspace.path))


def _write_agent_id(root: Path, agent: str) -> None:
    folder = file_io.open_root(str(root))
    try:
        file_io.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
        file_io.put_new(folder, AGENT_FILE)
        os.fsync(folder)
    finally:
        os.close(folder)


def _openclaw_state(root: Path) -> Path | None:
    """OpenClaw's own folder, if this workspace lies in it: then what is said there is about this agent."""
    state = Path(os.environ.get("OPENCLAW_STATE_DIR") or Path.home() / ".openclaw").expanduser()
    inside = os.path.realpath(root).startswith(os.path.realpath(state) + os.sep)
    return state if inside else None


def _runtime_version(root: Path) -> str:
    state = _openclaw_state(root)
    if state is None:
        return ""
    try:
        with open(state / "openclaw.json", "rb") as file:
            given = json.loads(file.read(4 << 20))
        version = given["meta"]["lastTouchedVersion"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and len(version) < 64 else ""


@contextmanager
def _manner(workspace: Workspace, asked: ExportOptions) -> Iterator[tuple[Manner, list[str]]]:
    """What an archive is told from, beside the files."""
    notes: list[str] = []
    if asked.plain:
        yield Manner(asked.scheme, plain=True), notes
        return
    state = _openclaw_state(workspace.path)
    databases = find_databases(state) if state is not None else []
    vectors = Vectors(str(workspace.path / STATE / "index.sqlite"), databases) if asked.embeddings else None
    archive = workspace.sessions.transcripts() if asked.transcripts else None

    def sessions(agent: str) -> Iterable[Record]:
        assert archive is not None
        return session_records(archive, agent=agent, tell=notes.append)

    agent = agent_of(workspace).id
    try:
        yield (
            Manner(
                asked.scheme,
                credentials=tuple(_credentials(state, agent)),
                vectors=vectors,
                seen=_seen(workspace),
                sessions=partial(sessions, agent) if archive is not None else None,
            ),
            notes,
        )
    finally:
        if vectors is not None:
            notes += vectors.problems
            vectors.close()
        if archive is not None:
            archive.close()


def _credentials(state: Path | None, agent: str) -> Iterator[dict[str, object]]:
    """What the agent logs in to, never with what."""
    for path in sorted((state / "agents").glob("*/agent/auth-profiles.json")) if state is not None else ():
        with suppress(OSError, UnicodeDecodeError):
            at = shown_moment(sane_time(path.stat().st_mtime_ns))
            yield from credentials_of(path.read_text(encoding="utf-8"), agent=agent, at=at)


def _seen(workspace: Workspace) -> Callable[[str], LastCheck | None]:
    """What the last check said to a card, as far as that still stands."""

    def seen(path: str) -> LastCheck | None:
        checked = workspace.verification.last_checked(path)
        return last_check_of(checked) if checked is not None and checked.verdicts else None

    return seen


def _without_secrets(tree: WorkspaceTree, items: list[Item], before: Mapping[str, FileEntry]) -> list[Item]:
    """The files, but for those that are there for credentials, and artifacts that hold one.

    What memory says is taken as it is: it must come back so. What an earlier archive has is known to hold none.
    """
    kept = []
    for item in items:
        name = item.path.rpartition("/")[2].lower()
        if name.endswith(_SECRET_NAMES) or (name.startswith(".env") and not name.endswith(".md")):
            tree.omitted.append(OmittedFile(item.path, "a file for credentials"))
            continue
        if item.tier == INCLUDED and not _is_known(item, before.get(item.path)) and _holds_secret(tree, item):
            tree.omitted.append(OmittedFile(item.path, "holds what looks like a credential"))
            continue
        kept.append(item)
    tree.omitted.sort()
    return kept


def _is_known(item: Item, line: FileEntry | None) -> bool:
    now = (item.entry, item.size, sane_time(item.mtime_ns))
    return line is not None and (line.entry, line.size, line.mtime_ns) == now


def _holds_secret(tree: WorkspaceTree, item: Item) -> bool:
    from truekeep.text.secrets.scanner import find_secrets

    text = decode_text(tree.read(item))
    return text is not None and bool(find_secrets(text))
