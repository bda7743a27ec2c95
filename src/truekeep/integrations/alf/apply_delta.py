"""Apply deltas to an archive: the result is a full archive of the newer state."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
from truekeep.integrations.alf.delta import TRUEKEEP_CHANGES, state_digest
from truekeep.integrations.alf.documents import PURGES, JsonObject, MemoryRecord, object_or_empty, strings_in
from truekeep.integrations.alf.export import ExportOptions, ExportReport
from truekeep.integrations.alf.files import UNKNOWN_TIME, ListedFile
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.timestamps import Quarter, nanoseconds, parse_timestamp, quarter_of
from truekeep.integrations.alf.writer import (
    ArchiveContents,
    ArchiveSummary,
    Progress,
    RecordOrder,
    RecordSpool,
    record_order,
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
        for number, path in enumerate(deltas, start=1):
            require_undamaged(reader)
            delta = stack.enter_context(open_archive(path, identities=options.identities, large=True))
            require_undamaged(delta)
            spool = stack.enter_context(open_spool(target, options.recipients))
            contents = apply_delta(ArchiveReader(reader), ArchiveReader(delta), spool=spool, notes=notes)
            if number < len(deltas):  # the next delta applies to this state
                step = stack.enter_context(_temporary_file(target, options))
                with ZipWriter(step) as step_writer:
                    write_archive(step_writer, contents)
                reader = stack.enter_context(ZipReader(step, large=True, name=f"{base} with {path}"))
        writer = stack.enter_context(create_archive(target, recipients=options.recipients, replace=options.replace))
        summary = write_archive(writer, contents, progress)
    if is_own:
        remember_own_archive(target)
    return ExportReport(target, target.stat().st_size, summary, tuple(notes), ())


def _temporary_file(target: Path, options: ExportOptions) -> BinaryIO:
    """A file beside the target; in memory if the archive is encrypted."""
    file: IO[bytes] = io.BytesIO() if options.recipients else tempfile.TemporaryFile(dir=target.absolute().parent)  # noqa: SIM115
    return cast(BinaryIO, file)


def apply_delta(old: ArchiveReader, delta: ArchiveReader, *, spool: RecordSpool, notes: list[str]) -> ArchiveContents:
    """The contents of the old archive with the changes of a delta. `notes` gets changes that could not be applied."""
    _require_archive_and_delta(old, delta)
    truekeep_changes = object_or_empty(delta.layers.get(TRUEKEEP_CHANGES))
    _require_order(old, delta, truekeep_changes, notes)
    changed = _dated_files(delta)
    removed = {*strings_in(truekeep_changes.get("deleted")), *_removed_raw_files(delta)}
    files = {**{path: file for path, file in old.files().items() if path not in removed}, **changed}
    _apply_records(old, delta, files, {*changed, *removed}, spool, notes)
    documents = {**old.documents(), **delta.documents()}
    for layer in strings_in(truekeep_changes.get("documents_removed")):
        documents.pop(layer, None)

    def pieces(file: ListedFile) -> Iterable[bytes]:
        return (delta if file.path in changed else old).pieces(file)

    is_by_truekeep = old.is_by_truekeep or delta.is_by_truekeep
    return ArchiveContents(
        head=_manifest_head(old, delta, truekeep_changes),
        documents=documents,
        spool=spool,
        files=[files[path] for path in sorted(files)],
        pieces=pieces,
        layers=old.foreign_layers(is_by_truekeep=is_by_truekeep),
        foreign_entries=list(map(old.foreign_entry, old.foreign_entries(is_by_truekeep=is_by_truekeep))),
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
        is_next = first <= 0 or old.last_sequence <= 0 or first == old.last_sequence
        is_applied = first < last <= old.last_sequence
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


# --- Files and the manifest -----------------------------------------------------------------------------------------


def _dated_files(delta: ArchiveReader) -> Mapping[str, ListedFile]:
    """The files of a delta; those of unknown time get the time of the delta."""
    at = parse_timestamp(delta.manifest.get("created_at"))
    if at is None:
        return delta.files()
    return {
        path: file._replace(mtime_ns=nanoseconds(at)) if file.mtime_ns == UNKNOWN_TIME else file
        for path, file in delta.files().items()
    }


def _removed_raw_files(delta: ArchiveReader) -> Iterator[str]:
    prefix = f"raw/{OPENCLAW_RUNTIME}/"
    for entry in strings_in(object_or_empty(delta.layers.get("raw")).get("deleted")):
        if entry.startswith(prefix):
            yield entry.removeprefix(prefix)


def _manifest_head(old: ArchiveReader, delta: ArchiveReader, truekeep_changes: JsonObject) -> JsonObject:
    head = old.head()
    new_head = object_or_empty(truekeep_changes.get("head"))
    if object_or_empty(new_head.get("agent")).get("id") == old.agent_id:
        head["agent"] = new_head["agent"]
    sources = (*strings_in(head.get("raw_sources")), *strings_in(new_head.get("raw_sources")))
    if new_head and sources:
        head["raw_sources"] = list(dict.fromkeys(sources))
    if parse_timestamp(delta.manifest.get("created_at")) is not None:
        head["created_at"] = delta.manifest["created_at"]
    base, new = _sequence_numbers(delta)
    sync = {key: value for key, value in object_or_empty(head.get("sync")).items() if key != "last_sync_at"}
    head["sync"] = {**sync, "last_sequence": max(old.last_sequence, new, base + 1)}
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
    is_by_truekeep = old.is_by_truekeep or delta.is_by_truekeep
    records = _sorted_records if is_by_truekeep else _records_in_old_order
    for record, line in records(old, affected, old_ids, files):
        path = scope_of(record)
        spool.add(record, path=path if path in files else "", line=line + b"\n" if line else None)


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


EncodedRecord = tuple[MemoryRecord, bytes]
"""A record and its line; empty for a new one."""


def _sorted_records(
    old: ArchiveReader, affected: Mapping[str, MemoryRecord], old_ids: set[str], files: Mapping[str, ListedFile]
) -> Iterator[EncodedRecord]:
    """The records in the order of an export."""

    def order(item: EncodedRecord) -> RecordOrder:
        return record_order(item[0], files)

    by_partition: dict[str, list[EncodedRecord]] = {}
    for record in affected.values():
        partition = (quarter_of(record) or Quarter(1970, 1)).file
        by_partition.setdefault(partition, []).append((record, b""))
    for name in old.partitions():
        unchanged = (item for item in old.records([name]) if item[0]["id"] not in old_ids)
        yield from merge(unchanged, sorted(by_partition.pop(name, ()), key=order), key=order)
    for items in by_partition.values():
        yield from sorted(items, key=order)


def _records_in_old_order(
    old: ArchiveReader, affected: Mapping[str, MemoryRecord], old_ids: set[str], _: Mapping[str, ListedFile]
) -> Iterator[EncodedRecord]:
    """The records as upstream's tool writes them: old ones stay in their places, new ones come last."""
    for record, line in old.records():
        if record["id"] not in old_ids:
            yield record, line
        elif record["id"] in affected:
            yield affected[record["id"]], b""
    yield from ((record, b"") for key, record in affected.items() if key not in old_ids)
