"""Deltas: the changes of a workspace since an archive was made.

Only changed files are read again, and of the old archive only the partitions with records of those files. Applying the
delta (apply_delta.py) gives the same archive as an export of the new state with the old archive as its base, except for
new verdicts and vectors of unchanged files, which wait for the next export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from truekeep.integrations.alf.archive_file import open_archive, require_same_encryption
from truekeep.integrations.alf.documents import (
    ALF_VERSION,
    DELTA_MANIFEST,
    DELTA_RECORDS,
    DOCUMENTS,
    FILES,
    Document,
    JsonObject,
    MemoryRecord,
    dump_document,
    dump_line,
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
from truekeep.integrations.alf.files import ListedFile, is_same_file
from truekeep.integrations.alf.id_carryover import earlier_by_scope, scope_of
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.writer import DeltaSummary, Progress, write_file
from truekeep.integrations.alf.zip_container import BadArchive, ZipWriter
from truekeep.workspace.workspace import Workspace

TRUEKEEP_CHANGES = "truekeep"  # the member of `changes` with what only truekeep needs


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
    new_files = {file.path: file for file in source.files}
    changed = [file for path, file in new_files.items() if not is_same_file(old_files.get(path), file)]
    removed = sorted(path for path in old_files if path not in new_files)
    created, updated, deleted = _write_records(writer, old, source, changed, removed, progress)
    old_documents, documents = old.documents(), layer_documents(source)
    new_documents = {layer: document for layer, document in documents.items() if document != old_documents.get(layer)}
    for layer, document in new_documents.items():
        writer.add(DOCUMENTS[layer], dump_document(document))
    written = [file._replace(sha256=write_file(writer, file, source.tree.pieces(file))) for file in changed]
    writer.add_pieces(FILES, (dump_line(file.as_line()) for file in written))
    head = manifest_head(source)
    kept = {path: old_files.get(path, file) for path, file in new_files.items()}
    new_state = kept | {file.path: file for file in written}
    changes: JsonObject = {
        **_document_changes(new_documents),
        **_record_changes(created + updated + deleted),
        **_raw_changes(changed, [old_files[path] for path in removed]),
        TRUEKEEP_CHANGES: {
            "base": _digest_of(old_files, old_documents, old.record_count),
            "state": _digest_of(new_state, documents, old.record_count + created - deleted),
            "files": FILES,
            "deleted": removed,
            "documents_removed": [layer for layer in old_documents if layer not in documents],
            "head": head,
        },
    }
    sequence = old.last_sequence
    manifest = {
        "alf_version": ALF_VERSION,
        "created_at": head["created_at"],
        "agent": {"id": source.agent.id, "source_runtime": OPENCLAW_RUNTIME},
        "sync": {"base_sequence": sequence, "new_sequence": sequence + 1},
        "changes": changes,
    }
    writer.add(DELTA_MANIFEST, dump_document(manifest))
    return DeltaSummary(created, updated, deleted, len(changed), len(removed), tuple(new_documents))


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
    sessions = source.records.sessions
    before = _old_records(old, {*(file.path for file in changed), *removed}, with_sessions=sessions is not None)
    earlier = earlier_by_scope(before.values())
    after: dict[str, MemoryRecord] = {}
    for number, file in enumerate(changed):
        progress("memories", number, len(changed))
        if has_records(file):
            after.update((record["id"], record) for record in records_of(source, file, earlier))
    if sessions is not None:
        after.update((record["id"], record) for record in sessions())
    operations = {
        "create": [record for key, record in after.items() if key not in before],
        "update": [record for key, record in after.items() if key in before and record != before[key]],
        "delete": [record for key, record in before.items() if key not in after],
    }
    if any(operations.values()):
        lines = (
            dump_line({"operation": operation, **record})
            for operation, records in operations.items()
            for record in records
        )
        writer.add_pieces(DELTA_RECORDS, lines)
    return len(operations["create"]), len(operations["update"]), len(operations["delete"])


def _old_records(old: ArchiveReader, paths: set[str], *, with_sessions: bool) -> dict[str, MemoryRecord]:
    """The records of these files in the old archive, by id, and those that belong to no file."""
    files = old.files()
    wanted = {partition for path in paths if path in files for partition in files[path].partitions}
    can_look_up = old.is_by_truekeep and not with_sessions  # truekeep lists the partitions of each file
    found: dict[str, MemoryRecord] = {}
    for record, _ in old.records([name for name in old.partitions() if not can_look_up or name in wanted]):
        scope = scope_of(record)
        is_session = record.get("namespace") == "session"
        if with_sessions if is_session else scope in paths or scope not in files:
            found[record["id"]] = record
    return found


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


# --- State digests --------------------------------------------------------------------------------------------------


def state_digest(archive: ArchiveReader) -> str:
    """A digest of the state of a full archive: the same for an export and for an applied delta.

    It covers the files, the documents and the number of records. The records' content is left out: a new verdict or
    vector does not make a new state.
    """
    return _digest_of(archive.files(), archive.documents(), archive.record_count)


def _digest_of(files: Mapping[str, ListedFile], documents: Mapping[str, Document], records: int) -> str:
    digest = hashlib.sha256(b"truekeep state 1\n")
    for path in sorted(files):
        file = files[path]
        digest.update(_encode([path, file.size, file.mtime_ns, file.mode, file.sha256]).encode() + b"\n")
    digest.update(json.dumps([documents, records], sort_keys=True).encode())
    return digest.hexdigest()


_encode = json.JSONEncoder().encode
