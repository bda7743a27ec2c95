"""Deltas: the changes of a workspace since an archive was made.

Only changed files are read again, and of the old archive only the partitions with records of those files. Applying the
delta (apply_delta.py) gives the same archive as an export of the new state with the old archive as its base, except for
new verdicts and vectors of unchanged files, which wait for the next export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path

from truekeep.integrations.alf.archive_file import open_archive, require_same_encryption
from truekeep.integrations.alf.documents import (
    Document,
    JsonObject,
    MemoryRecord,
    dump_document,
    dump_line,
    object_or_empty,
)
from truekeep.integrations.alf.export import (
    ExportOptions,
    ExportReport,
    ExportSource,
    export_from_workspace,
    has_records,
    layer_documents,
    manifest_head,
    records_of,
)
from truekeep.integrations.alf.id_carryover import earlier_by_scope, scope_of
from truekeep.integrations.alf.reader import DELTA_MANIFEST, DELTA_RECORDS, ArchiveReader
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.writer import (
    ALF_VERSION,
    DOCUMENTS,
    FILES,
    DeltaSummary,
    ListedFile,
    Progress,
    write_file,
)
from truekeep.integrations.alf.zip_container import BadArchive, ZipWriter
from truekeep.workspace.workspace import Workspace

TRUEKEEP_CHANGES = "truekeep"  # the member of `changes` with what only truekeep needs
_MAX_FILES_SEARCHED_BY_NAME = 16  # for so few files, lines without their names are skipped unparsed


def export_delta(
    workspace: Workspace, target: Path, since: Path, options: ExportOptions, progress: Progress = lambda *_: None
) -> ExportReport[DeltaSummary]:
    """Write the changes of a workspace since an archive of it."""
    require_same_encryption([since], options.recipients)
    with open_archive(since, identities=options.identities, large=True) as reader:
        old = ArchiveReader(reader)
        old.require_full()

        def write(source: ExportSource, writer: ZipWriter) -> DeltaSummary:
            return _write_delta(writer, old, source, progress)

        return export_from_workspace(workspace, target, options, write, old.files())


def _write_delta(writer: ZipWriter, old: ArchiveReader, source: ExportSource, progress: Progress) -> DeltaSummary:
    if old.agent_id != source.agent.id:
        raise BadArchive(
            f"this archive belongs to agent {old.agent_id}, not to {source.agent.id}",
            hint="give an earlier archive of this workspace",
            of=old.reader.name,
        )
    old_files = old.files()
    new_files = {file.path: file for file in source.listed_files()}
    changed = [file for path, file in new_files.items() if not _is_same(old_files.get(path), file)]
    removed = sorted(path for path in old_files if path not in new_files)
    created, updated, deleted = _write_records(writer, old, source, changed, removed, progress)
    old_documents, documents = old.documents(), layer_documents(source)
    new_documents = {layer: document for layer, document in documents.items() if document != old_documents.get(layer)}
    for layer, document in new_documents.items():
        writer.add(DOCUMENTS[layer], dump_document(document))
    by_path = {file.path: file for file in source.files}
    written = [
        file._replace(sha256=write_file(writer, file, source.tree.pieces(by_path[file.path]))) for file in changed
    ]
    head = manifest_head(source, new_files.values())
    old_state = _state_lines(old_files.values())
    new_state = {path: old_state[path] for path in new_files if path in old_state} | _state_lines(written)
    truekeep_changes = {
        "base": _digest_of(old_state, old_documents, record_count(old)),
        "state": _digest_of(new_state, documents, record_count(old) + created - deleted),
        "files": FILES,
        "deleted": removed,
        "documents_removed": [layer for layer in old_documents if layer not in documents],
        "head": head,
    }
    writer.add_pieces(FILES, (dump_line(file.as_line()) for file in written))
    changes: JsonObject = {
        **_document_changes(new_documents),
        **_record_changes(created + updated + deleted),
        **_raw_changes(changed, [old_files[path] for path in removed]),
        TRUEKEEP_CHANGES: truekeep_changes,
    }
    sequence = last_sequence(old)
    manifest = {
        "alf_version": ALF_VERSION,
        "created_at": head["created_at"],
        "agent": {"id": source.agent.id, "source_runtime": OPENCLAW_RUNTIME},
        "sync": {"base_sequence": sequence, "new_sequence": sequence + 1},
        "changes": changes,
    }
    writer.add(DELTA_MANIFEST, dump_document(manifest))
    return DeltaSummary(created, updated, deleted, len(changed), len(removed), tuple(new_documents))


def _is_same(one: ListedFile | None, other: ListedFile) -> bool:
    """Compares everything but the digest and the partitions."""
    return one is not None and one[:5] == other[:5]


# --- Records --------------------------------------------------------------------------------------------------------


def _write_records(
    writer: ZipWriter,
    old: ArchiveReader,
    source: ExportSource,
    changed: Sequence[ListedFile],
    removed: Sequence[str],
    progress: Progress,
) -> tuple[int, int, int]:
    """Write the changed records; returns how many were created, updated and deleted."""
    has_sessions = source.records.sessions is not None
    paths = {*(file.path for file in changed), *removed}
    before = _old_records(old, paths, with_sessions=has_sessions)
    earlier = earlier_by_scope(before.values())
    by_path = {file.path: file for file in source.files}
    after: dict[str, MemoryRecord] = {}
    for number, file in enumerate(changed):
        progress("memories", number, len(changed))
        if has_records(file.path):
            after.update((record["id"], record) for record in records_of(source, by_path[file.path], earlier))
    if source.records.sessions is not None:
        after.update((record["id"], record) for record in source.records.sessions())
    operations = {
        "create": [record for key, record in after.items() if key not in before],
        "update": [record for key, record in after.items() if key in before and record != before[key]],
        "delete": [record for key, record in before.items() if key not in after],
    }
    if any(operations.values()):
        with writer.entry(DELTA_RECORDS) as stream:
            for operation, records in operations.items():
                for record in records:
                    stream.write(dump_line({"operation": operation, **record}))
    return len(operations["create"]), len(operations["update"]), len(operations["delete"])


def _old_records(old: ArchiveReader, paths: set[str], *, with_sessions: bool) -> dict[str, MemoryRecord]:
    """The records of these files in the old archive, by id, and those that belong to no file."""
    files = old.files()
    can_look_up = old.is_by_truekeep and not with_sessions  # truekeep lists the partitions of each file
    wanted = {partition for path in paths if path in files for partition in files[path].partitions}
    partitions = [name for name in old.partitions() if not can_look_up or name in wanted]
    likely_from = paths if can_look_up and len(paths) <= _MAX_FILES_SEARCHED_BY_NAME else ()
    found: dict[str, MemoryRecord] = {}
    for record, _ in old.records(partitions, likely_from=likely_from):
        scope = scope_of(record)
        is_from_files = scope in paths or (not can_look_up and scope not in files)
        if with_sessions if _is_session(record) else is_from_files:
            found[record["id"]] = record
    return found


def _is_session(record: MemoryRecord) -> bool:
    return record.get("namespace") == "session"


# --- The manifest ---------------------------------------------------------------------------------------------------


def _document_changes(documents: Mapping[str, Document]) -> JsonObject:
    changes: JsonObject = {}
    for layer, document in documents.items():
        changes[layer] = {"file": DOCUMENTS[layer]}
        if layer == "identity":
            changes[layer]["new_version"] = document.get("version", 1)
        elif layer == "principals":
            changes[layer]["changed_ids"] = [principal["id"] for principal in document["principals"]]
    return changes


def _record_changes(count: int) -> JsonObject:
    return {"memory": {"file": DELTA_RECORDS, "record_count": count}} if count else {}


def _raw_changes(changed: Iterable[ListedFile], removed: Iterable[ListedFile]) -> JsonObject:
    changed_entries, deleted_entries = _raw_entries(changed), _raw_entries(removed)
    if not changed_entries and not deleted_entries:
        return {}
    return {"raw": {"changed": changed_entries, "deleted": deleted_entries}}


def _raw_entries(files: Iterable[ListedFile]) -> list[str]:
    prefix = f"raw/{OPENCLAW_RUNTIME}/"
    return [file.entry for file in files if file.entry is not None and file.entry.startswith(prefix)]


def last_sequence(archive: ArchiveReader) -> int:
    """The sequence number of an archive; 0 if it has none."""
    number = object_or_empty(archive.manifest.get("sync")).get("last_sequence")
    return number if isinstance(number, int) and number >= 0 else 0


def record_count(archive: ArchiveReader) -> int:
    """The number of records according to the manifest."""
    count = object_or_empty(archive.layers.get("memory")).get("record_count")
    return count if isinstance(count, int) else 0


# --- State digests --------------------------------------------------------------------------------------------------


def state_digest(archive: ArchiveReader) -> str:
    """A digest of the state of a full archive: the same for an export and for an applied delta.

    It covers the files, the documents and the number of records. The records' content is left out: a new verdict or
    vector does not make a new state.
    """
    return _digest_of(_state_lines(archive.files().values()), archive.documents(), record_count(archive))


def _digest_of(files: Mapping[str, bytes], documents: Mapping[str, Document], records: int) -> str:
    digest = hashlib.sha256(b"truekeep state 1\n")
    digest.update(b"".join([files[path] for path in sorted(files)]))
    digest.update(json.dumps([documents, records], sort_keys=True).encode())
    return digest.hexdigest()


def _state_lines(files: Iterable[ListedFile]) -> dict[str, bytes]:
    return {file.path: _state_line(file) for file in files}


def _state_line(file: ListedFile) -> bytes:
    """A file in a state: a JSON list, formatted by hand for speed."""
    path, _, size, mtime_ns, mode, sha256, _ = file
    if not type(size) is type(mtime_ns) is type(mode) is int:  # a bool is an int in Python, but not in JSON
        return json.dumps([path, size, mtime_ns, mode, sha256]).encode() + b"\n"
    return f"[{_quoted(path)}, {size}, {mtime_ns}, {mode}, {_quoted(sha256)}]\n".encode()
