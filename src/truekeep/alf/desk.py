"""The desk: archives made from a workspace, and put into one. Files on disk come and go whole, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, cast

from truekeep import disk
from truekeep.alf import seal
from truekeep.alf.carry import by_scope
from truekeep.alf.container import BadArchive, Problem, Reader, Writer
from truekeep.alf.delta import Changed, applied, write_delta
from truekeep.alf.edition import Spool, Tell, Written, write_edition
from truekeep.alf.export import Agent, Manner, edition_of
from truekeep.alf.files import INCLUDED, Item, Omitted, Tree
from truekeep.alf.ids import AGENT_FILE, agent_id_for, parse_agent_id
from truekeep.alf.purge import Purged, purged
from truekeep.alf.restore import BLOCKED, DIFFERENT, NEW, Plan, Planned, plan_import
from truekeep.alf.snapshot import Snapshot
from truekeep.disk import ChangedSince
from truekeep.errors import BadInput, EditedSince, StorageFailed
from truekeep.ledger import Entry
from truekeep.state import STATE
from truekeep.vault import Incoming, Staging, WriteFailed
from truekeep.workspace import Workspace, person

if TYPE_CHECKING:
    from truekeep.alf.finer import CardFacts
    from truekeep.alf.records import Record
    from truekeep.books import Books

_RETRIES = 3
_BATCH = 64  # files that are replaced together
_SECRET_NAMES = (".env", ".pem", ".key", ".p12", ".pfx", ".keystore", "id_rsa", "id_ed25519", "auth-profiles.json")


class Asked(NamedTuple):
    """How an archive is to be made."""

    scheme: str = "content"
    plain: bool = False
    transcripts: bool = False
    embeddings: bool = True
    base: Path | None = None
    recipients: tuple[str, ...] = ()
    replace: bool = False
    identities: tuple[str, ...] = ()


class Made(NamedTuple):
    """An archive that was made."""

    path: Path
    size: int
    written: Written | Changed
    notes: tuple[str, ...]
    omitted: tuple[Omitted, ...]


# --- Archives on disk -----------------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path, *, identities: Sequence[str] = (), large: bool = False) -> Iterator[Reader]:
    """An archive, decrypted in memory if it is encrypted."""
    try:
        file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="name an .alf file") from error
    try:
        head = file.read(64)
        file.seek(0)
        if seal.is_sealed(head):
            if not identities:
                raise BadInput(f"{path} is encrypted", hint="name the private key with --identity FILE")
            file = seal.unsealed(file, seal.parse_identities(identities))
        with Reader(file, large=large) as reader:
            yield reader
    finally:
        file.close()


@contextmanager
def written(path: Path, *, recipients: Sequence[str] = (), replace: bool = False) -> Iterator[Writer]:
    """An archive in the making: it gets its name when it is whole."""
    keys = seal.parse_recipients(recipients) if recipients else []
    if not replace and os.path.lexists(path):
        raise BadInput(f"{path} is there already", hint="name another file with -o, or say --replace")
    beside = path.with_name(f".{path.name}.{os.getpid()}{disk.TEMPORARY}")
    try:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}", hint="name a file in a folder that can be written") from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if keys:
                with seal.sealing(file, keys) as stream:
                    yield from _writing(stream)
            else:
                yield from _writing(file)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(beside, path)
        else:
            _put_new(beside, path)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror or error}", hint="nothing was written") from error
    finally:
        with suppress(OSError):
            os.unlink(beside)


def _writing(file: IO[bytes]) -> Iterator[Writer]:
    writer = Writer(cast(BinaryIO, file))
    yield writer
    writer.close()


def _put_new(beside: Path, path: Path) -> None:
    try:
        os.link(beside, path)
    except FileExistsError as error:
        raise BadInput(f"{path} came to be meanwhile", hint="name another file with -o") from error
    except OSError:
        os.replace(beside, path)  # a file system without links


# --- Out ------------------------------------------------------------------------------------------------------------


def export_archive(workspace: Workspace, target: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """The workspace as one archive."""

    def make(tree: Tree, items: list[Item], agent: Agent, manner: Manner, writer: Writer) -> tuple[Written, list[str]]:
        base = None
        if asked.base is not None:
            with opened(asked.base, identities=asked.identities, large=True) as reader:
                base = by_scope(record for record, _ in Snapshot(reader).records())
        with _spool(target, asked.recipients) as spool:
            edition, notes = edition_of(tree, items, agent, manner, spool=spool, base=base, tell=tell)
            return write_edition(writer, edition, tell), notes

    return _from_workspace(workspace, target, asked, make)


def delta_archive(workspace: Workspace, target: Path, since: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """What changed in the workspace since an archive was made of it."""

    def make(tree: Tree, items: list[Item], agent: Agent, manner: Manner, writer: Writer) -> tuple[Changed, list[str]]:
        with opened(since, identities=asked.identities, large=True) as reader:
            return write_delta(writer, Snapshot(reader), tree, items, agent, manner, tell)

    return _from_workspace(workspace, target, asked, make)


@contextmanager
def _spool(target: Path, recipients: Sequence[str]) -> Iterator[Spool]:
    spool = Spool(folder=None if recipients else str(target.absolute().parent))
    try:
        yield spool
    finally:
        spool.close()


_Make = Callable[[Tree, "list[Item]", Agent, Manner, Writer], "tuple[Written | Changed, list[str]]"]


def _from_workspace(workspace: Workspace, target: Path, asked: Asked, make: _Make) -> Made:
    """Make an archive of a workspace that holds still; begin again when it did not."""
    root = str(workspace.path)
    for attempt in range(_RETRIES):
        try:
            with (
                workspace.still(),
                Tree(root, plain=asked.plain) as tree,
                _manner(workspace, asked) as (manner, notes),
                written(target, recipients=asked.recipients, replace=asked.replace) as writer,
            ):
                agent = agent_of(workspace, is_plain=asked.plain)
                items = _without_secrets(tree, tree.scan())
                done, more = make(tree, items, agent, manner, writer)
                notes += more
                omitted = tuple(tree.omitted)
        except ChangedSince as error:
            if attempt == _RETRIES - 1:
                raise EditedSince(
                    f"{error} is being written to", hint="run it again when it is quiet; nothing was written"
                ) from error
        else:
            return Made(target, target.stat().st_size, done, tuple(dict.fromkeys(notes)), omitted)
    raise AssertionError("unreachable")


def agent_of(workspace: Workspace, *, is_plain: bool = False) -> Agent:
    """Whose memory this is: by the workspace's own file, which is begun where it is missing."""
    path = workspace.path / AGENT_FILE
    try:
        found = parse_agent_id(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = agent_id_for(os.path.realpath(workspace.path))
        if workspace.is_canonical and not is_plain:
            _write_agent_id(workspace.path, found)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="put the agent's id there, or remove it") from error
    return Agent(found, workspace.path.name, _runtime_version(workspace.path))


def _write_agent_id(root: Path, agent: str) -> None:
    folder = disk.open_root(str(root))
    try:
        with suppress(OSError, ChangedSince):
            disk.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
            disk.put_new(folder, AGENT_FILE)
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
def _manner(workspace: Workspace, asked: Asked) -> Iterator[tuple[Manner, list[str]]]:
    """What an archive is told from, beside the files."""
    notes: list[str] = []
    if asked.plain:
        yield Manner(asked.scheme, plain=True), notes
        return
    from truekeep.alf.vectors import Vectors
    from truekeep.embed.openclaw import find_databases

    state = _openclaw_state(workspace.path)
    databases = find_databases(state) if state is not None else []
    vectors = Vectors(str(workspace.path / STATE / "index.sqlite"), databases) if asked.embeddings else None
    archive = workspace.archive() if asked.transcripts else None

    def sessions(agent: str) -> Iterable[Record]:
        from truekeep.alf.talk import session_records

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
    from truekeep.alf.credentials import credentials_of
    from truekeep.alf.moment import shown_moment

    for path in sorted((state / "agents").glob("*/agent/auth-profiles.json")) if state is not None else ():
        with suppress(OSError, UnicodeDecodeError):
            at = shown_moment(path.stat().st_mtime_ns)
            yield from credentials_of(path.read_text(encoding="utf-8"), agent=agent, at=at)


def _seen(workspace: Workspace) -> Callable[[str], CardFacts | None]:
    """What the last check said to a card, as far as that still stands."""
    from truekeep.alf.finer import card_facts

    def seen(path: str) -> CardFacts | None:
        checked = workspace.last_checked(path)
        return card_facts(checked) if checked is not None and checked.verdicts else None

    return seen


def _without_secrets(tree: Tree, items: list[Item]) -> list[Item]:
    """The files, but for artifacts that are, or hold, credentials. Memory is taken as it is: it must come back so."""
    from truekeep.disk import decode_text
    from truekeep.secrets import find_secrets

    kept = []
    for item in items:
        if item.tier == INCLUDED:
            name = item.path.rpartition("/")[2].lower()
            if any(name == mark or name.endswith(mark) or name.startswith(".env") for mark in _SECRET_NAMES):
                tree.omitted.append(Omitted(item.path, "a file for credentials"))
                continue
            text = decode_text(tree.read(item))
            if text is not None and find_secrets(text):
                tree.omitted.append(Omitted(item.path, "holds what looks like a credential"))
                continue
        kept.append(item)
    return kept


# --- From archives --------------------------------------------------------------------------------------------------


def apply_archive(base: Path, deltas: Sequence[Path], target: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """An archive and its deltas, in their order, as one archive."""
    import io
    import tempfile

    notes: list[str] = []
    with ExitStack() as stack:
        reader = stack.enter_context(opened(base, identities=asked.identities, large=True))
        for number, path in enumerate(deltas):
            raise_problems(reader)
            changes = stack.enter_context(opened(path, identities=asked.identities, large=True))
            raise_problems(changes)
            spool = stack.enter_context(_spool(target, asked.recipients))
            edition, more = applied(Snapshot(reader), Snapshot(changes), spool=spool)
            notes += more
            if number == len(deltas) - 1:
                writer = stack.enter_context(written(target, recipients=asked.recipients, replace=asked.replace))
                done = write_edition(writer, edition, tell)
                break
            folder = str(target.absolute().parent)
            between: IO[bytes] = io.BytesIO() if asked.recipients else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            stack.callback(between.close)
            step = Writer(cast(BinaryIO, between))
            write_edition(step, edition)
            step.close()
            reader = stack.enter_context(Reader(cast(BinaryIO, between), large=True))
    return Made(target, target.stat().st_size, done, tuple(notes), ())


def purge_archive(
    source: Path, target: Path, records: Sequence[str], reason: str, asked: Asked, tell: Tell = lambda *_: None
) -> tuple[Made, Purged]:
    """An archive without some records, and without what they said."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with (
        opened(source, identities=asked.identities, large=True) as reader,
        _spool(target, asked.recipients) as spool,
        written(target, recipients=asked.recipients, replace=asked.replace) as writer,
    ):
        raise_problems(reader)
        edition, gone = purged(Snapshot(reader), records, spool=spool, reason=reason, at=at)
        done = write_edition(writer, edition, tell)
    return Made(target, target.stat().st_size, done, (), ()), gone


def raise_problems(reader: Reader) -> None:
    """Refuse an archive with entries that cannot be used."""
    if reader.problems:
        first = reader.problems[0]
        more = f", and {len(reader.problems) - 1} more entries" if len(reader.problems) > 1 else ""
        raise BadArchive(f"{first.entry} {first.message}{more}", entry=first.entry)


# --- In -------------------------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    """What an import did, or would do."""

    root: Path
    agent: str
    plan: Plan
    problems: tuple[Problem, ...]  # of lines and entries that were left behind
    replaced: int
    written: int


def import_archive(
    source: Path,
    root: Path,
    *,
    replace: bool = False,
    keep: bool = False,
    dry_run: bool = False,
    salvage: bool = False,
    large: bool = False,
    identities: Sequence[str] = (),
    now: Callable[[], datetime] | None = None,
    tell: Tell = lambda *_: None,
) -> Imported:
    """Put an archive into a workspace. Nothing that differs is overwritten unless that is asked for."""
    problems: list[Problem] = []
    with opened(source, identities=identities, large=large) as reader:
        if salvage:
            problems += reader.problems
        else:
            raise_problems(reader)
        snapshot = Snapshot(reader, salvage=(lambda error: problems.append(error.problem)) if salvage else None)
        plan = plan_import(snapshot, str(root))
        _check_agent(root, snapshot.agent_id, replace=replace)
        different = plan.of(DIFFERENT)
        blocked = plan.of(BLOCKED)
        done = Imported(root, snapshot.agent_id, plan, tuple(problems), 0, 0)
        if dry_run:
            return done
        if blocked and not salvage:
            first = blocked[0]
            raise BadInput(
                f"{_files(blocked)} in the way, such as {first.line.path}: {first.why}; nothing was written",
                hint="`--dry-run` lists them; `--salvage` leaves them out",
            )
        if different and not (replace or keep):
            raise BadInput(
                f"{_files(different)} there and different, such as {different[0].line.path}; nothing was written",
                hint="`--dry-run` lists them; --replace takes the archive's, --keep leaves yours",
            )
        Workspace.init(root, is_bare=True, now=now)
        with Workspace.open(root, now=now) as workspace, workspace.writing("import") as books:
            if replace:
                _replace(books, different, source.name, workspace.stamp(), tell)
            count = _take_in(books, plan.of(NEW), tell)
            _put_agent_id(workspace.path, snapshot.agent_id)
    return done._replace(replaced=len(different) if replace else 0, written=count, problems=tuple(problems))


def _files(found: Sequence[Planned]) -> str:
    return "1 file is" if len(found) == 1 else f"{len(found)} files are"


def _check_agent(root: Path, agent: str, *, replace: bool) -> None:
    with suppress(OSError, UnicodeDecodeError):
        here = (root / AGENT_FILE).read_text(encoding="utf-8").strip()
        if here and here.lower() != agent.lower() and not replace:
            raise BadInput(
                f"{root} is of agent {here}, the archive of {agent}",
                hint="import it into a folder of its own, or say --replace",
            )


def _take_in(books: Books, files: Sequence[Planned], tell: Tell) -> int:
    def incoming() -> Iterator[Incoming]:
        fresh = int(datetime.now(UTC).timestamp() * 1e9)
        for file in files:
            mode = (file.line.mode & 0o755) | 0o600
            yield Incoming(file.line.path, file.pieces(), mode, file.line.mtime_ns or fresh)

    try:
        count = books.vault.take_in(incoming(), lambda number: tell("files", number, len(files)))
    except WriteFailed as failure:
        why = failure.error.strerror or str(failure.error)
        raise StorageFailed(f"{failure.path} cannot be written: {why}", hint="nothing new was written") from failure
    except ChangedSince as error:
        raise EditedSince(f"{error} came to be meanwhile", hint="look at it and run it again") from error
    tell("files", len(files), len(files))
    return count


def _replace(books: Books, files: Sequence[Planned], name: str, at: str, tell: Tell) -> None:
    """Files that differ, through the books, so that the old bytes can be had again."""
    from truekeep.hidden import printable

    for first in range(0, len(files), _BATCH):
        tell("replacing", first, len(files))
        batch = files[first : first + _BATCH]
        staging = Staging(books.vault)
        for file in batch:
            staging.put(file.line.path, b"".join(file.pieces()), 0)
        books.act(staging, Entry(at=at, verb="imported", actor=person(), note=printable(name)[:200]))
        for file in batch:
            if file.line.mtime_ns:
                books.vault.set_time(file.line.path, file.line.mtime_ns)


def _put_agent_id(root: Path, agent: str) -> None:
    with suppress(FileNotFoundError):
        if (root / AGENT_FILE).read_text(encoding="utf-8", errors="replace").strip().lower() == agent.lower():
            return
        os.unlink(root / AGENT_FILE)
    _write_agent_id(root, agent)
