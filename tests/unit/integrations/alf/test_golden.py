"""What upstream's own code wrote for the sample workspaces is what we write for them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from truekeep.integrations.alf import record_ids
from truekeep.integrations.alf.credentials import credentials_of
from truekeep.integrations.alf.documents import JsonObject, dump_document, dump_line, parse_object
from truekeep.integrations.alf.identity import agent_name, identity_of, principals_of
from truekeep.integrations.alf.records import upstream_records
from truekeep.integrations.alf.timestamps import quarter_of

SHARED = Path(__file__).resolve().parents[5] / "shared" / "alf"
WORKSPACES = ("minimal", "empty", "standard", "community-patterns", "edge", "edge-edited")

pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the conformance data (shared/alf) is not beside this checkout"
)


def agent_of(name: str) -> str:
    return record_ids.parse_agent_id((SHARED / "workspaces" / name / record_ids.AGENT_ID_FILE).read_text())


def mtime_ns(name: str, path: str) -> int:
    """As the data's README sets them: version control does not keep modification times."""
    day = 11 if (name, path) == ("edge-edited", "MEMORY.md") else 10
    return int(datetime(2026, 2, day, 9, 30, tzinfo=UTC).timestamp()) * 1_000_000_000


def records_of(name: str, scheme: str) -> list[Any]:
    root = SHARED / "workspaces" / name
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return [
        record
        for path in paths
        if path == "MEMORY.md" or (path.startswith("memory/") and path.endswith(".md"))
        for record in upstream_records(
            path,
            (root / path).read_bytes().decode(),
            mtime_ns=mtime_ns(name, path),
            agent=agent_of(name),
            scheme=scheme,
        )
    ]


def reader_of(name: str) -> Callable[[str], str | None]:
    def read(file: str) -> str | None:
        path = SHARED / "workspaces" / name / file
        return path.read_bytes().decode() if path.is_file() else None

    return read


def flat(record: JsonObject) -> dict[str, Any]:
    """A record as the golden files have it."""
    quarter = quarter_of(record)
    assert quarter is not None
    return {
        "origin_file": record["source"]["origin_file"],
        "id": record["id"],
        "memory_type": record["memory_type"],
        "namespace": record["namespace"],
        "extraction_method": record["source"]["extraction_method"],
        "content": record["content"],
        "content_sha256": hashlib.sha256(record["content"].encode()).hexdigest(),
        "line_start": record["raw_source_format"]["line_start"],
        "line_end": record["raw_source_format"]["line_end"],
        "heading": record["raw_source_format"]["heading"],
        "tags": record["tags"],
        "category": record.get("category"),
        "confidence": record.get("confidence"),
        "created_at": record["temporal"]["created_at"],
        "observed_at": record["temporal"].get("observed_at"),
        "partition": quarter.file,
    }


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["origin_file"], row["line_start"]))


def iter_entries(name: str, prefix: str) -> Iterator[bytes]:
    with zipfile.ZipFile(SHARED / "archives" / f"{name}.v0.1.alf") as archive:
        for entry in archive.namelist():
            if entry.startswith(prefix):
                yield archive.read(entry)


@pytest.mark.parametrize("name", WORKSPACES)
def test_positional_records(name: str) -> None:
    golden = json.loads((SHARED / "golden-v0.1" / f"{name}.json").read_bytes())
    assert in_order([flat(record) for record in records_of(name, "positional")]) == in_order(golden)


@pytest.mark.parametrize("name", WORKSPACES)
def test_content_records(name: str) -> None:
    [path] = (SHARED / "golden-v1.1").glob(f"{name}.*json")
    golden = json.loads(path.read_bytes())
    for row in golden:
        row["observed_at"] = row["observed_at"] and row["observed_at"].replace("+00:00", "Z")
    keys = golden[0].keys() if golden else ()
    rows = [{key: row[key] for key in keys} for row in map(flat, records_of(name, "content"))]
    assert (in_order(rows) if golden else rows) == in_order(golden)


@pytest.mark.parametrize("name", WORKSPACES)
def test_the_lines_of_a_partition_are_the_same_bytes(name: str) -> None:
    golden = [line + b"\n" for partition in iter_entries(name, "memory/") for line in partition.splitlines()]
    assert sorted(map(dump_line, records_of(name, "positional"))) == sorted(golden)


@pytest.mark.parametrize("name", [*WORKSPACES, "edge-rebuilt"])
def test_reading_and_writing_a_record_changes_no_byte(name: str) -> None:
    for partition in iter_entries(name, "memory/"):
        for line in partition.split(b"\n")[:-1]:
            assert dump_line(parse_object(line)) == line + b"\n"


@pytest.mark.parametrize("name", WORKSPACES)
def test_identity(name: str) -> None:
    found = identity_of(
        reader_of(name), name, agent=agent_of(name), scheme="positional", updated_at="2026-02-10T09:30:00Z", plain=True
    )
    golden = [json.loads(entry) for entry in iter_entries(name, "identity.json")]
    assert [json.dumps(masked(document)) for document in golden] == (
        [json.dumps(masked(found))] if found is not None else []
    )


@pytest.mark.parametrize("name", WORKSPACES)
def test_principals(name: str) -> None:
    found = principals_of(
        reader_of(name), agent=agent_of(name), scheme="positional", updated_at="2026-02-10T09:30:00Z", plain=True
    )
    golden = [json.loads(entry) for entry in iter_entries(name, "principals.json")]
    assert [json.dumps(masked(document)) for document in golden] == (
        [json.dumps(masked(found))] if found is not None else []
    )


def masked(document: Any) -> Any:
    """Without what the first adapters took from a clock or at random."""
    if isinstance(document, list):
        return [masked(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: "…" if key in ("id", "principal_id", "updated_at") else masked(value) for key, value in document.items()
    }


@pytest.mark.parametrize("name", WORKSPACES)
def test_the_agents_name(name: str) -> None:
    [manifest] = map(json.loads, iter_entries(name, "manifest.json"))
    assert agent_name(reader_of(name), name, "positional") == manifest["agent"]["name"]


@pytest.mark.parametrize("name", WORKSPACES)
def test_documents_are_laid_out_as_upstream_does(name: str) -> None:
    for entry in (*iter_entries(name, "identity.json"), *iter_entries(name, "manifest.json")):
        assert dump_document(json.loads(entry)) == entry


def test_what_only_we_tell_is_within_the_schemas() -> None:
    agent = agent_of("standard")
    files = {
        "AGENTS.md": "## Sub-agents\n- Reviewer: reads\n## SubAgent: Tester\nModel: small\nTools: sh\nUse when: asked",
        "USER.md": "# Dana\nTimezone: UTC\n## Preferences\ntone: dry\n- No emoji\n## Work\nRole: cook\nProjects: a, b",
    }
    profiles = {"a:b": {"provider": "a", "type": "oauth", "access": "x" * 20, "expires": 1, "scopes": "read write"}}
    documents: dict[str, Any] = {
        "identity": identity_of(files.get, "den", agent=agent, scheme="content", updated_at="2026-02-10T09:30:00Z"),
        "principals": principals_of(files.get, agent=agent, scheme="content", updated_at="2026-02-10T09:30:00Z"),
        "credentials": {
            "credentials": credentials_of(json.dumps({"profiles": profiles}), agent=agent, at="2026-02-10T09:30:00Z")
        },
    }
    assert len(documents["identity"]["structured"]["sub_agents"]) == 2
    for name, document in documents.items():
        schema = json.loads((SHARED / "schemas" / f"{name}.schema.json").read_bytes())
        validator = Draft202012Validator(schema, format_checker=FormatChecker())
        assert [error.message for error in validator.iter_errors(document)] == []


def test_ids_and_partitions() -> None:
    vectors = json.loads((SHARED / "id-and-partition-vectors.json").read_bytes())
    names = vectors["namespaces"]
    assert [str(record_ids._RECORD_NAMESPACE), str(record_ids._AGENT_NAMESPACE), str(record_ids._OTHER_NAMESPACE)] == [
        names["openclaw_records"],
        names["openclaw_agent_id"],
        names["alf_identity_and_principals"],
    ]
    for vector in vectors["v0_1_record_ids"]:
        path, _, number = vector["name"].rpartition(":")
        assert record_ids.positional_id(path, int(number)) == vector["id"]
    for vector in vectors["v1_1_record_ids"]:
        given = (vector["agent_id"], vector["origin_file"], vector["content"], vector["occurrence"])
        assert record_ids.content_id(*given) == vector["id"]
        assert record_ids.content_digest(vector["content"]) == vector["sha256_trimmed"]
    documents = vectors["v1_1_document_ids"]
    principal = record_ids.principal_id(documents["agent_id"])
    assert record_ids.identity_id(documents["agent_id"]) == documents["identity"]
    assert principal == documents["principal_human"]
    assert record_ids.profile_id(principal) == documents["profile_of_principal_human"]
    for vector in vectors["agent_id_from_workspace_path"]:
        assert record_ids.agent_id_for(vector["path"]) == vector["id"]
    for vector in vectors["partition"]:
        quarter = quarter_of({"temporal": {key: vector[key] for key in ("observed_at", "created_at")}})
        assert quarter is not None
        assert quarter.file == vector["file"]
