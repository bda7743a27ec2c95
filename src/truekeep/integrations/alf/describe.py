"""Describe an archive without unpacking it: its agent, layers, files and numbers of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from truekeep.integrations.alf.archive_file import open_archive
from truekeep.integrations.alf.documents import JsonObject, MemoryRecord
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.import_plan import iter_credential_services
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.text.unicode import clip


def describe_archive(
    path: Path, *, with_records: bool = False, identities: Sequence[str] = (), large: bool = False
) -> JsonObject:
    """A description of an archive, as `truekeep alf show --json` prints it. `with_records`: list every record."""
    with open_archive(path, identities=identities, large=large) as reader:
        return _describe(ArchiveReader(reader), with_records=with_records)


def _describe(archive: ArchiveReader, *, with_records: bool) -> JsonObject:
    counts: Counter[tuple[str, str]] = Counter()
    listed = []
    for record, _ in archive.records():
        counts[str(record.get("namespace")), str(record.get("memory_type"))] += 1
        if with_records:
            listed.append(_describe_record(record))
    files = archive.files().values()
    description: JsonObject = {
        "kind": "delta" if archive.is_delta else "archive",
        "agent": archive.agent,
        "created_at": archive.manifest.get("created_at"),
        "size": archive.reader.size,
        "layers": sorted(archive.layers),
        "partitions": archive.partitions(),
        "records": [
            {"namespace": namespace, "memory_type": memory_type, "count": count}
            for (namespace, memory_type), count in sorted(counts.items())
        ],
        "files": {
            "count": len(files),
            "bytes": sum(file.size for file in files if file.entry is not None),
            "tiers": dict(sorted(Counter(file.tier for file in files).items())),
        },
        "credentials": list(iter_credential_services(archive)),
        "problems": [problem._asdict() for problem in archive.reader.problems],
    }
    return {**description, "listed": listed} if with_records else description


def _describe_record(record: MemoryRecord) -> JsonObject:
    operation: object = record.get("operation")
    return {
        "id": record["id"],
        "namespace": record.get("namespace"),
        "file": scope_of(record),
        "operation": operation,
        "text": clip(record_title(record), 80),
    }


def record_title(record: MemoryRecord) -> str:
    """The topic or title in a record's frontmatter, else its first line."""
    lines = [line.strip() for line in record["content"].lstrip("\ufeff").split("\n")]
    filled = [line for line in lines if line]
    if filled[:1] == ["---"] and "---" in filled[1:]:
        end = filled.index("---", 1)
        front = dict(line.partition(":")[::2] for line in filled[1:end])
        topic = next((front[key].strip(" \"'") for key in ("topic", "title", "name") if key in front), "")
        filled = [*filter(None, (topic,)), *filled[end + 1 :], *filled[1:end]]
    return filled[0][:120] if filled else ""
