"""Apply deltas to an archive: the result is a full archive of the newer state."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from heapq import merge
from pathlib import Path
from typing import IO, BinaryIO, cast

from truekeep.integrations.alf.archive_file import (
    create_archive,
    is_own_archive,
    open_archive,
    open_spool,
    remember_own_archive,
    require_same_encryption,
    require_undamaged,
)
from truekeep.integrations.alf.delta import TRUEKEEP_CHANGES, last_sequence, state_digest
from truekeep.integrations.alf.documents import JsonObject, MemoryRecord, object_or_empty, strings_in
from truekeep.integrations.alf.export import ExportOptions, ExportReport
from truekeep.integrations.alf.files import UNKNOWN_TIME
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.timestamps import Quarter, nanoseconds, parse_timestamp, quarter_of
from truekeep.integrations.alf.writer import (
    DOCUMENTS,
    PURGES,
    ArchiveContents,
    ArchiveSummary,
    ForeignEntry,
    ListedFile,
    Progress,
    RecordSpool,
    order_in_file,
    write_archive,
)
from truekeep.integrations.alf.zip_container import BadArchive, ZipReader, ZipWriter


def apply_deltas(
    base: Path, deltas: Sequence[Path], target: Path, options: ExportOptions, progress: Progress = lambda *_: None
) -> ExportReport[ArchiveSummary]:
    """Combine an archive and its deltas, in their order, into one archive."""
    require_same_encryption([base, *deltas], options.recipients)
    is_own = all(is_own_archive(path) for path in (base, *deltas))
    notes: list[str] = []
    with ExitStack() as stack:
        reader = stack.enter_context(open_archive(base, identities=options.identities, large=True))
        for number, path in enumerate(deltas):
            require_undamaged(reader)
            delta = stack.enter_context(open_archive(path, identities=options.identities, large=True))
            require_undamaged(delta)
            spool = stack.enter_context(open_spool(target, options.recipients))
            contents = apply_delta(ArchiveReader(reader), ArchiveReader(delta), spool=spool, notes=notes)
            if number == len(deltas) - 1:
                writer = stack.enter_context(
                    create_archive(target, recipients=options.recipients, replace=options.replace)
                )
                summary = write_archive(writer, contents, progress)
                break
            folder = str(target.absolute().parent)
            file: IO[bytes] = io.BytesIO() if options.recipients else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            stack.callback(file.close)
            with ZipWriter(cast(BinaryIO, file)) as step:
                write_archive(step, contents)
            reader = stack.enter_context(ZipReader(cast(BinaryIO, file), large=True, name=f"{base} with {path}"))
    if is_own:
        remember_own_archive(target)
    return ExportReport(target, target.stat().st_size, summary, tuple(notes), ())


def apply_delta(old: ArchiveReader, delta: ArchiveReader, *, spool: RecordSpool, notes: list[str]) -> ArchiveContents:
    """The contents of the old archive with the changes of a delta. `notes` gets changes that could not be applied."""
    _require_archive_and_delta(old, delta)
    truekeep_changes = object_or_empty(delta.changes.get(TRUEKEEP_CHANGES))
    _require_order(old, delta, truekeep_changes, notes)
    changed = _dated_files(delta)
    removed = {*strings_in(truekeep_changes.get("deleted")), *_removed_raw_files(delta)}
    files = {**{path: file for path, file in old.files().items() if path not in removed}, **changed}
    _apply_records(old, delta, files, {*changed, *removed}, spool, notes)
    documents = {**old.documents(), **delta.documents()}
    for layer in strings_in(truekeep_changes.get("documents_removed")):
        documents.pop(layer, None)

    def pieces(file: ListedFile) -> Iterable[bytes]:
        if file.entry is None:
            return ()
        return (delta if file.path in changed else old).reader.pieces(file.entry)

    is_by_truekeep = old.is_by_truekeep or delta.is_by_truekeep
    layers = foreign_layers(old, is_by_truekeep=is_by_truekeep)
    foreign = [
        ForeignEntry(name, old.reader.entries[name].file_size, partial(old.reader.pieces, name))
        for name in foreign_entry_names(old, layers)
    ]
    return ArchiveContents(
        head=_manifest_head(old, delta, truekeep_changes),
        documents=documents,
        spool=spool,
        files=[files[path] for path in sorted(files)],
        pieces=pieces,
        layers=layers,
        foreign_entries=foreign,
        plain=not is_by_truekeep,
    )


# --- Checks ---------------------------------------------------------------------------------------------------------


def _require_archive_and_delta(old: ArchiveReader, delta: ArchiveReader) -> None:
    if not delta.is_delta or old.is_delta:
        wrong, what = (old, "is a delta") if old.is_delta else (delta, "is not a delta")
        name = wrong.reader.name or "this"
        raise BadArchive(
            f"{name} {what}; a delta is applied to a full archive", hint="give the archive first, then the deltas"
        )
    if delta.find_agent_id() not in (None, old.agent_id):
        raise BadArchive(
            "the delta belongs to another agent than the archive",
            hint="`truekeep alf show` shows the agent of each",
            of=delta.reader.name,
        )


def _require_order(old: ArchiveReader, delta: ArchiveReader, truekeep_changes: JsonObject, notes: list[str]) -> None:
    """Refuse a delta that was made for another state. Deltas of other tools have at most a sequence number."""
    base, state = truekeep_changes.get("base"), truekeep_changes.get("state")
    if isinstance(base, str):
        current = state_digest(old)
        is_next, is_applied = base == current, state == current
    else:
        first, last = _sequence_numbers(delta)
        current_number = last_sequence(old)
        is_next = first <= 0 or current_number <= 0 or first == current_number
        is_applied = first < last <= current_number
    if is_next:
        return
    name = delta.reader.name or "this delta"
    if is_applied:
        raise BadArchive(f"{name} is already applied", hint="leave it out")
    if PURGES in old.reader.entries:  # a purge changes the state, so that older deltas no longer match
        notes.append(f"records were purged: it is not certain that {name} is the next delta")
        return
    raise BadArchive(
        f"{name} was made for another state: a delta is missing or out of order",
        hint="give every delta since the archive, in the order in which they were made",
    )


def _sequence_numbers(delta: ArchiveReader) -> tuple[int, int]:
    sync = object_or_empty(delta.manifest.get("sync"))
    first, last = sync.get("base_sequence"), sync.get("new_sequence")
    return first if isinstance(first, int) else 0, last if isinstance(last, int) else 0


# --- Files, layers and the manifest ---------------------------------------------------------------------------------


def _dated_files(delta: ArchiveReader) -> Mapping[str, ListedFile]:
    """The files of a delta; those of unknown time get the time of the delta."""
    at = parse_timestamp(delta.manifest.get("created_at"))
    if at is None:
        return delta.files()
    at_ns = nanoseconds(at)
    return {
        path: file._replace(mtime_ns=at_ns) if file.mtime_ns == UNKNOWN_TIME else file
        for path, file in delta.files().items()
    }


def _removed_raw_files(delta: ArchiveReader) -> Iterator[str]:
    prefix = f"raw/{OPENCLAW_RUNTIME}/"
    for entry in strings_in(object_or_empty(delta.changes.get("raw")).get("deleted")):
        if entry.startswith(prefix):
            yield entry.removeprefix(prefix)


def foreign_layers(old: ArchiveReader, *, is_by_truekeep: bool) -> JsonObject:
    """The layers that a new archive copies. Another tool's index of attachments is one of them."""
    known = {*DOCUMENTS, "memory", *(("attachments",) if is_by_truekeep else ())}
    return {name: layer for name, layer in old.layers.items() if name not in known}


def foreign_entry_names(old: ArchiveReader, layers: JsonObject) -> list[str]:
    """The entries that a new archive copies: those of other tools, and of foreign layers."""
    files = [object_or_empty(layer).get("file") for layer in layers.values()]
    existing = [name for name in files if isinstance(name, str) and name in old.reader.entries]
    return list(dict.fromkeys((*old.foreign_entries(), *existing)))


def _manifest_head(old: ArchiveReader, delta: ArchiveReader, truekeep_changes: JsonObject) -> JsonObject:
    head = {key: value for key, value in old.manifest.items() if key not in ("layers", "checksum")}
    new_head = truekeep_changes.get("head")
    if isinstance(new_head, dict):
        agent = new_head.get("agent")
        if isinstance(agent, dict) and agent.get("id") == old.agent_id:
            head["agent"] = agent
        sources = (*strings_in(head.get("raw_sources")), *strings_in(new_head.get("raw_sources")))
        head |= {"raw_sources": list(dict.fromkeys(sources))} if sources else {}
    if parse_timestamp(delta.manifest.get("created_at")) is not None:
        head["created_at"] = delta.manifest["created_at"]
    base, new = _sequence_numbers(delta)
    sync = {key: value for key, value in object_or_empty(head.get("sync")).items() if key != "last_sync_at"}
    head["sync"] = {**sync, "last_sequence": max(last_sequence(old), new, base + 1)}
    return head


# --- Records --------------------------------------------------------------------------------------------------------


def _apply_records(
    old: ArchiveReader,
    delta: ArchiveReader,
    files: Mapping[str, ListedFile],
    paths: set[str],
    spool: RecordSpool,
    notes: list[str],
) -> None:
    """Write the records of the new state to the spool. `paths`: the files that the delta changes or removes."""
    changes = [record for record, _ in delta.records()]
    outdated = {path for path in map(scope_of, changes) if path in files and path not in paths}
    notes += [f"{path} is outdated: the delta contains its records but not the file" for path in sorted(outdated)]
    ids = {record["id"] for record in changes}
    affected = {record["id"]: record for record, _ in old.records() if record["id"] in ids or scope_of(record) in paths}
    old_ids = set(affected)
    for change in changes:
        _apply_change(change, affected, old_ids, notes)
    if old.is_by_truekeep or delta.is_by_truekeep:
        _spool_sorted(old, affected, old_ids, files, spool)
    else:
        _spool_in_old_order(old, affected, old_ids, spool)


def _apply_change(change: MemoryRecord, affected: dict[str, MemoryRecord], old_ids: set[str], notes: list[str]) -> None:
    operation: object = change.get("operation")
    record_id = change["id"]
    record = cast(MemoryRecord, {key: value for key, value in change.items() if key != "operation"})
    if operation == ("update" if record_id in old_ids else "create"):
        affected[record_id] = record
    elif operation == "delete" and record_id in old_ids:
        affected.pop(record_id, None)
    else:
        existing = "it" if record_id in old_ids else "no such record"
        notes.append(f"{operation} of {record_id} was skipped: the archive has {existing}")


def _spool_sorted(
    old: ArchiveReader,
    affected: Mapping[str, MemoryRecord],
    old_ids: set[str],
    files: Mapping[str, ListedFile],
    spool: RecordSpool,
) -> None:
    """Spool the records in the order of an export: by the time of their file, its path and their place in it."""

    def sort_key(record: MemoryRecord) -> tuple[str, str, tuple[int, str, str]]:
        path = scope_of(record)
        return files[path].timestamp if path in files else "~", path, order_in_file(record)

    def add(record: MemoryRecord, line: bytes) -> None:
        path = scope_of(record)
        spool.add(record, path=path if path in files else "", line=line + b"\n" if line else None)

    by_partition: dict[str, list[tuple[tuple[str, str, tuple[int, str, str]], MemoryRecord, bytes]]] = {}
    for quarter, record in sorted(
        ((quarter_of(record) or Quarter(1970, 1), record) for record in affected.values()), key=lambda item: item[0]
    ):
        by_partition.setdefault(quarter.file, []).append((sort_key(record), record, b""))
    for name in old.partitions():
        unchanged = (
            (sort_key(record), record, line) for record, line in old.records([name]) if record["id"] not in old_ids
        )
        changed = sorted(by_partition.pop(name, ()), key=lambda item: item[0])
        for _, record, line in merge(unchanged, changed, key=lambda item: item[0]):
            add(record, line)
    for items in by_partition.values():
        for _, record, line in sorted(items, key=lambda item: item[0]):
            add(record, line)


def _spool_in_old_order(
    old: ArchiveReader, affected: dict[str, MemoryRecord], old_ids: set[str], spool: RecordSpool
) -> None:
    """Spool the records as upstream's tool does: old records stay in their places, new ones come last."""
    for record, line in old.records():
        new = affected.pop(record["id"], None) if record["id"] in old_ids else record
        if new is not None:
            spool.add(new, path=scope_of(new), line=line + b"\n" if new == record else None)
    for record in affected.values():
        spool.add(record, path=scope_of(record))
