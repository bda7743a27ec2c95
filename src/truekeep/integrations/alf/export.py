"""Export a workspace to an archive.

Every Markdown memory gives the records that upstream's adapter would make, and truekeep's additional ones; facts and
sessions (on request) give theirs. Files that are not text are included without records. Files for credentials, and
artifacts that contain one, are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from truekeep.core import file_io
from truekeep.core.errors import BadInput, EditedSince
from truekeep.core.file_io import ChangedSince
from truekeep.integrations.alf.archive_file import (
    create_archive,
    open_archive,
    open_spool,
    remember_own_archive,
)
from truekeep.integrations.alf.card_records import with_truekeep_records
from truekeep.integrations.alf.credentials import list_credentials
from truekeep.integrations.alf.documents import (
    ALF_VERSION,
    AgentMetadata,
    CredentialRecord,
    Document,
    JsonObject,
    MemoryRecord,
)
from truekeep.integrations.alf.embeddings import EmbeddingSources
from truekeep.integrations.alf.fact_records import iter_fact_records
from truekeep.integrations.alf.files import (
    ARCHIVE_SUFFIXES,
    INCLUDED,
    MAX_TEXT_BYTES,
    ListedFile,
    OmittedFile,
    WorkspaceTree,
    is_same_file,
)
from truekeep.integrations.alf.id_carryover import EarlierRecord, carry_ids, earlier_by_scope
from truekeep.integrations.alf.identity import agent_name, identity_of, principals_of
from truekeep.integrations.alf.openclaw_state import find_state
from truekeep.integrations.alf.openclaw_vectors import find_databases
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.record_ids import AGENT_ID_FILE, agent_id_for, parse_agent_id
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME, upstream_records
from truekeep.integrations.alf.session_records import session_records
from truekeep.integrations.alf.timestamps import format_timestamp
from truekeep.integrations.alf.writer import (
    ArchiveContents,
    ArchiveSummary,
    DeltaSummary,
    Progress,
    RecordSpool,
    order_in_file,
    write_archive,
)
from truekeep.integrations.alf.zip_container import ZipWriter
from truekeep.memory.facts_db import FACTS_DB_PATH, UnreadableFacts
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import find_secrets
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.verify.results import CheckedMemory

IDENTITY_FILES = ("SOUL.md", "IDENTITY.md", "AGENTS.md")
PRINCIPAL_FILES = ("USER.md",)
_MAX_ATTEMPTS = 3  # if files change during the export
_CREDENTIAL_SUFFIXES = (
    *(".env", ".pem", ".key", ".p12", ".pfx", ".keystore", "id_rsa", "id_ed25519", "auth-profiles.json"),
)

Summary = TypeVar("Summary", ArchiveSummary, DeltaSummary)


class ExportOptions(NamedTuple):
    """How an archive is made."""

    scheme: str = "content"  # of the record ids
    plain: bool = False  # write only what upstream's tool would write
    transcripts: bool = False
    embeddings: bool = True
    base: Path | None = None  # an earlier archive whose record ids are kept
    recipients: tuple[str, ...] = ()  # public keys to encrypt to
    replace: bool = False
    identities: tuple[str, ...] = ()  # private keys, for an encrypted base


class ExportReport(NamedTuple, Generic[Summary]):
    """A new archive or delta."""

    path: Path
    size: int
    written: Summary
    notes: tuple[str, ...]
    omitted: tuple[OmittedFile, ...]


class Agent(NamedTuple):
    """The agent of a workspace."""

    id: str
    folder: str  # the name of the workspace's folder
    runtime_version: str = ""


class RecordSources(NamedTuple):
    """Where the records of an archive come from, besides the files."""

    scheme: str = "content"
    plain: bool = False
    credentials: Sequence[CredentialRecord] = ()
    embeddings: EmbeddingSources | None = None
    find_last_check: Callable[[str], CheckedMemory | None] = lambda _: None
    sessions: Callable[[], Iterable[MemoryRecord]] | None = None


class ExportSource(NamedTuple):
    """A workspace during an export: its files do not change."""

    tree: WorkspaceTree
    files: Sequence[ListedFile]
    agent: Agent
    records: RecordSources
    notes: list[str]  # what could not be exported, for the report

    def read_text(self, path: str) -> str | None:
        """A root file as text; None if it is missing, too large or not UTF-8."""
        file = next((file for file in self.files if file.path == path), None)
        return _decode(self.tree.read(file)) if file is not None and file.size <= MAX_TEXT_BYTES else None


def export_archive(
    workspace: Workspace, target: Path, options: ExportOptions, progress: Progress = lambda *_: None
) -> ExportReport[ArchiveSummary]:
    """Export a workspace to one archive."""

    def write(source: ExportSource, writer: ZipWriter) -> ArchiveSummary:
        earlier = None
        if options.base is not None:
            with open_archive(options.base, identities=options.identities, large=True) as reader:
                base = ArchiveReader(reader)
                base.require_full()
                earlier = earlier_by_scope(record for record, _ in base.records())
        with open_spool(target, options.recipients) as spool:
            return write_archive(
                writer, export_contents(source, spool=spool, earlier=earlier, progress=progress), progress
            )

    return export_from_workspace(workspace, target, options, write)


def export_from_workspace(
    workspace: Workspace,
    target: Path,
    options: ExportOptions,
    write: Callable[[ExportSource, ZipWriter], Summary],
    earlier_files: Mapping[str, ListedFile] | None = None,
) -> ExportReport[Summary]:
    """Write an archive of a locked workspace; start again if a file changes meanwhile.

    `earlier_files`: those of an earlier archive, which need not be scanned for credentials again.
    """
    root = str(workspace.path)
    _refuse_target_in_workspace(root, target)
    for attempt in range(_MAX_ATTEMPTS):
        try:
            with (
                workspace.locked(),
                WorkspaceTree(root, plain=options.plain) as tree,
                _open_sources(workspace, options) as (agent, records, notes),
                create_archive(target, recipients=options.recipients, replace=options.replace) as writer,
            ):
                files = _without_credentials(tree, tree.scan(), earlier_files or {})
                summary = write(ExportSource(tree, files, agent, records, notes), writer)
                omitted = tuple(tree.omitted)
        except ChangedSince as error:
            if attempt == _MAX_ATTEMPTS - 1:
                raise EditedSince(
                    f"{error} is being written to", hint="run it again when it no longer changes; nothing was written"
                ) from error
        else:
            remember_own_archive(target)
            return ExportReport(target, target.stat().st_size, summary, tuple(dict.fromkeys(notes)), omitted)
    raise AssertionError("unreachable")


def _refuse_target_in_workspace(root: str, target: Path) -> None:
    """Refuse a target that would be part of the next archive."""
    inside = os.path.realpath(target.absolute().parent) + os.sep
    if inside.startswith(os.path.realpath(root) + os.sep) and not target.name.endswith(ARCHIVE_SUFFIXES):
        raise BadInput(
            f"{target} is in the workspace and would be part of the next archive",
            hint=f"name a file elsewhere, or one that ends in {ARCHIVE_SUFFIXES[0]}",
        )


# --- Contents -------------------------------------------------------------------------------------------------------


def export_contents(
    source: ExportSource,
    *,
    spool: RecordSpool,
    earlier: Mapping[str, Sequence[EarlierRecord]] | None = None,
    progress: Progress = lambda *_: None,
) -> ArchiveContents:
    """The contents of an archive of the workspace. `earlier`: records whose ids are carried over."""
    files = sorted(filter(has_records, source.files), key=lambda file: (file.timestamp, file.path))
    for number, file in enumerate(files):
        if number % 50 == 0:
            progress("memories", number, len(files))
        for record in records_of(source, file, earlier):
            spool.add(record, path=file.path)
    progress("memories", len(files), len(files))
    for record in source.records.sessions() if source.records.sessions is not None else ():
        spool.add(record)
    return ArchiveContents(
        head=manifest_head(source),
        documents=layer_documents(source),
        spool=spool,
        files=source.files,
        pieces=source.tree.pieces,
        layers={},
        plain=source.records.plain,
    )


def manifest_head(source: ExportSource) -> JsonObject:
    """The manifest without its layers. It is dated by the newest file, so that equal workspaces give equal bytes."""
    agent: AgentMetadata = {
        "id": source.agent.id,
        "name": agent_name(source.read_text, source.agent.folder, source.records.scheme),
        "source_runtime": OPENCLAW_RUNTIME,
    }
    if source.agent.runtime_version:
        agent["source_runtime_version"] = source.agent.runtime_version
    return {
        "alf_version": ALF_VERSION,
        "created_at": format_timestamp(max((file.mtime_ns for file in source.files), default=0)),
        "agent": agent,
        "raw_sources": [OPENCLAW_RUNTIME],
    }


def layer_documents(source: ExportSource) -> dict[str, Document]:
    """The identity, principals and credentials documents."""

    def newest(paths: Sequence[str]) -> str:
        times = (file.mtime_ns for file in source.files if file.path in paths)
        return format_timestamp(max(times, default=0))

    agent, scheme, plain = source.agent, source.records.scheme, source.records.plain
    identity = identity_of(
        source.read_text, agent.folder, agent=agent.id, scheme=scheme, updated_at=newest(IDENTITY_FILES), plain=plain
    )
    principals = principals_of(
        source.read_text, agent=agent.id, scheme=scheme, updated_at=newest(PRINCIPAL_FILES), plain=plain
    )
    documents: dict[str, Document] = {}
    if identity is not None:
        documents["identity"] = identity
    if principals is not None:
        documents["principals"] = principals
    if source.records.credentials:
        documents["credentials"] = {"credentials": list(source.records.credentials)}
    return documents


def has_records(file: ListedFile) -> bool:
    path = file.path
    return path in ("MEMORY.md", FACTS_DB_PATH) or (path.startswith("memory/") and path.endswith(".md"))


def records_of(
    source: ExportSource, file: ListedFile, earlier: Mapping[str, Sequence[EarlierRecord]] | None
) -> list[MemoryRecord]:
    """The records of one file, in their order."""
    sources, agent = source.records, source.agent
    if file.path == FACTS_DB_PATH:
        records = [] if sources.plain else _fact_records(source, file)
    elif (text := _memory_text(source, file)) is None:
        return []
    else:
        records = upstream_records(
            file.path,
            text,
            mtime_ns=file.mtime_ns,
            agent=agent.id,
            scheme=sources.scheme,
            plain=sources.plain,
            runtime_version=agent.runtime_version,
        )
        if earlier is not None and sources.scheme == "content":
            carry_ids(records, earlier.get(file.path, ()), agent=agent.id, scope=file.path)
        if not sources.plain:
            records = with_truekeep_records(
                file.path, text, records, file.mtime_ns, agent=agent.id, find_last_check=sources.find_last_check
            )
        if sources.embeddings is not None:
            _add_embeddings(records, sources.embeddings, file.path, text)
    return sorted(records, key=order_in_file)


def _memory_text(source: ExportSource, file: ListedFile) -> str | None:
    """The text of a memory; None, with a note, if it has no records."""
    if file.size > MAX_TEXT_BYTES:
        source.notes.append(f"{file.path} has {file.size:,} bytes: it is included without records")
        return None
    text = _decode(source.tree.read(file))
    if text is None:
        source.notes.append(f"{file.path} is not UTF-8 text: it is included without records")
    return text


def _fact_records(source: ExportSource, file: ListedFile) -> list[MemoryRecord]:
    path = os.path.join(source.tree.root, file.path)
    try:
        return list(iter_fact_records(path, agent=source.agent.id, mtime_ns=file.mtime_ns))
    except UnreadableFacts as error:
        source.notes.append(f"{file.path}: {error.what}")
        return []


def _add_embeddings(records: list[MemoryRecord], sources: EmbeddingSources, path: str, text: str) -> None:
    """Add embeddings to upstream's records; to truekeep's only if there are no others."""
    has_upstream = any(record["source"]["runtime"] == OPENCLAW_RUNTIME for record in records)
    for number, record in enumerate(records):
        place = record.get("raw_source_format")
        is_skipped = has_upstream and record["source"]["runtime"] != OPENCLAW_RUNTIME
        if is_skipped or not isinstance(place, dict) or "line_start" not in place:
            continue
        embeddings = sources.find(path, text, place["line_start"], place["line_end"])
        if embeddings:
            later = {name: record[name] for name in ("related_records", "raw_source_format") if name in record}
            earlier = {name: value for name, value in record.items() if name not in later}
            records[number] = cast(MemoryRecord, {**earlier, "embeddings": embeddings, **later})


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


# --- The agent, and sources besides the files -----------------------------------------------------------------------


def find_agent(workspace: Workspace, notes: list[str], *, is_plain: bool = False, runtime_version: str = "") -> Agent:
    """The agent by the workspace's .alf-agent-id, which is created if it is missing."""
    path = workspace.path / AGENT_ID_FILE
    try:
        agent_id = parse_agent_id(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        agent_id = agent_id_for(os.path.realpath(workspace.path))
        if workspace.is_canonical and not is_plain:
            with suppress(OSError, ChangedSince):  # not needed: it is derived from the path
                write_agent_id(workspace.path, agent_id)
                notes.append(f"wrote {AGENT_ID_FILE}, by which later archives are known to be of the same agent")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {error}", hint="write the agent's id into it, or delete it") from error
    return Agent(agent_id, workspace.path.name, runtime_version)


def write_agent_id(root: Path, agent: str) -> None:
    """Write the agent's id to its workspace, which is locked."""
    folder = file_io.open_root(str(root))
    try:
        file_io.write_beside(folder, AGENT_ID_FILE, f"{agent}\n".encode())
        os.replace(file_io.temporary_name(AGENT_ID_FILE), AGENT_ID_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        file_io.discard(folder, AGENT_ID_FILE)
        os.close(folder)


@contextmanager
def _open_sources(workspace: Workspace, options: ExportOptions) -> Iterator[tuple[Agent, RecordSources, list[str]]]:
    """The agent and the sources that the options ask for; the list gets notes on what could not be read."""
    state, note = find_state(workspace.path)
    notes = [note] if note and not options.plain else []
    version = state.runtime_version if state is not None else ""
    agent = find_agent(workspace, notes, is_plain=options.plain, runtime_version=version)
    if options.plain:
        yield agent, RecordSources(options.scheme, plain=True), notes
        return
    with ExitStack() as stack:
        embeddings = sessions = None
        if options.embeddings and state is not None:
            embeddings = stack.enter_context(EmbeddingSources(find_databases(state.folder), notes))
        if options.transcripts:
            transcripts = stack.enter_context(closing(workspace.sessions.transcripts()))
            sessions = partial(session_records, transcripts, agent=agent.id, warn=notes.append)
        last_checked = workspace.verification.last_checked
        credentials = list_credentials(state.credential_files(), agent.id) if state is not None else []
        yield agent, RecordSources(options.scheme, False, credentials, embeddings, last_checked, sessions), notes


# --- Credentials in files -------------------------------------------------------------------------------------------


def _without_credentials(
    tree: WorkspaceTree, files: list[ListedFile], earlier: Mapping[str, ListedFile]
) -> list[ListedFile]:
    """Leave out files for credentials, and artifacts that contain one.

    Memory is exported unchanged, so that it can be restored. Unchanged files of an earlier archive were scanned then.
    """
    exported = []
    for file in files:
        name = file.path.rpartition("/")[2].lower()
        if name.endswith(_CREDENTIAL_SUFFIXES) or (name.startswith(".env") and not name.endswith(".md")):
            tree.omitted.append(OmittedFile(file.path, "a file for credentials"))
        elif file.tier == INCLUDED and not is_same_file(earlier.get(file.path), file) and _contains_secret(tree, file):
            tree.omitted.append(OmittedFile(file.path, "contains what looks like a credential"))
        else:
            exported.append(file)
    tree.omitted.sort()
    return exported


def _contains_secret(tree: WorkspaceTree, file: ListedFile) -> bool:
    text = decode_text(tree.read(file))
    return text is not None and bool(find_secrets(text))
