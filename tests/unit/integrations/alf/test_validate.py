"""Everything that is wrong with an archive is told, with its place; nothing that is in one is believed before."""

from __future__ import annotations

import copy
import io
import os
import stat
import struct
import tempfile
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.alf_builder import (
    AGENT,
    GONE,
    PARTITION,
    Archive,
    Delta,
    a_file_row,
    a_full_archive,
    a_full_record,
    a_record,
    an_id,
    file_lines,
    pack,
    problems_of,
)
from truekeep.integrations.alf import zip_container
from truekeep.integrations.alf.documents import dump_line
from truekeep.integrations.alf.schema_validation import LEVELS, MAX_PROBLEMS_PER_LEVEL, check_document
from truekeep.integrations.alf.validate import check_archive, parse_valid_record, verdict
from truekeep.integrations.alf.zip_container import ArchiveProblem, BadArchive, ZipReader, ZipWriter, unsafe_name

VERDICTS = {"unreadable": "unreadable", "error": "invalid", "warning": "warning"}
FILES = "truekeep/files.jsonl"
X = "raw/openclaw/memory/x.md"


def told(problems: list[ArchiveProblem]) -> list[str]:
    return [f"{problem.level} {problem.place}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("archive", [Archive(), a_full_archive(), Delta()], ids=["least", "full", "delta"])
def test_nothing_is_wrong(archive: Archive) -> None:
    assert told(archive.problems()) == []
    assert verdict(archive.problems()) == "ok"


# --- one member at a time

MEMBERS: list[tuple[str, Any, str, str]] = [
    # what reading needs
    ("manifest.json:alf_version", GONE, "unreadable", "alf_version is missing"),
    ("manifest.json:created_at", "yesterday", "unreadable", "created_at is 'yesterday', not a timestamp"),
    ("manifest.json:agent", [], "unreadable", "agent is a list, not an object"),
    ("manifest.json:agent.id", "x", "unreadable", "agent.id is 'x', not a UUID"),
    ("manifest.json:layers", GONE, "unreadable", "layers is missing"),
    ("manifest.json:layers.memory.index_file", GONE, "unreadable", "layers.memory.index_file is missing"),
    ("manifest.json:layers.memory.partitions", None, "unreadable", "partitions is null, not a list"),
    ("manifest.json:layers.memory.partitions.0.from", "2026-02-30", "unreadable", "'2026-02-30', not a date"),
    ("manifest.json:layers.memory.partitions.0.to", "2026-3-1", "unreadable", "'2026-3-1', not a date"),
    ("manifest.json:layers.memory.partitions.0.sealed", 0, "unreadable", "is a number, not true or false"),
    ("manifest.json:layers.identity.version", 1 << 32, "unreadable", "is a number that is too large"),
    ("manifest.json:layers.attachments.included_count", "1", "unreadable", "is text, not a whole number"),
    ("manifest.json:runtime_hints.primary_model", GONE, "unreadable", "runtime_hints.primary_model is missing"),
    ("manifest.json:sync.last_sequence", -1, "unreadable", "sync.last_sequence is negative"),
    ("manifest.json:raw_sources", None, "unreadable", "raw_sources is null, not a list"),
    ("record:id", "mem-1", "unreadable", "id is 'mem-1', not a UUID"),
    ("record:id", None, "unreadable", "id is null, not text"),
    ("record:content", GONE, "unreadable", "content is missing"),
    ("record:content", 7, "unreadable", "content is a number, not text"),
    ("record:source", None, "unreadable", "source is null, not an object"),
    ("record:source.identity_version", 1.0, "unreadable", "is 1.0, not a whole number"),
    ("record:source.identity_version", True, "unreadable", "is a boolean, not a whole number"),
    ("record:temporal.created_at", "2026-01-15T10:30:00", "unreadable", "not a timestamp with its offset"),
    ("record:temporal.created_at", "2026-01-15", "unreadable", "not a timestamp with its offset"),
    ("record:temporal.created_at", 1768000000, "unreadable", "is a number, not text"),
    ("record:temporal.access_count", 1 << 64, "unreadable", "is a number that is too large"),
    ("record:supersedes", "{" + an_id(1), "unreadable", "not a UUID"),
    ("record:confidence", "0.5", "unreadable", "confidence is text, not a number"),
    ("record:confidence", True, "unreadable", "is a boolean, not a number"),
    ("record:confidence", 10**400, "unreadable", "is a number that is too large"),
    ("record:tags", None, "unreadable", "tags is null, not a list"),
    ("record:tags.1", None, "unreadable", "tags[1] is null, not text"),
    ("record:entities.0.type", GONE, "unreadable", "entities[0].type is missing"),
    ("record:embeddings.0.dimensions", 3.0, "unreadable", "embeddings[0].dimensions is 3.0"),
    ("record:embeddings.0.vector.1", "1", "unreadable", "embeddings[0].vector[1] is text, not a number"),
    ("record:related_records.0.id", GONE, "unreadable", "related_records[0].id is missing"),
    ("identity.json:structured.psychology.neural_matrix", None, "unreadable", "is null, not an object"),
    ("identity.json:structured.psychology.neural_matrix.calm", "x", "unreadable", "neural_matrix.calm is text"),
    ("identity.json:structured.sub_agents.0.status", GONE, "unreadable", "sub_agents[0].status is missing"),
    ("identity.json:prose.custom_blocks.boot_checklist", 1, "unreadable", "is a number, not text"),
    ("principals.json:principals", GONE, "unreadable", "principals is missing"),
    ("principals.json:principals.0.profile", GONE, "unreadable", "principals[0].profile is missing"),
    ("credentials.json:credentials.0.encryption.nonce", GONE, "unreadable", "encryption.nonce is missing"),
    ("attachments.json:attachments.0.size_bytes", -4, "unreadable", "size_bytes is negative"),
    # what upstream's validator says
    ("manifest.json:alf_version", "1.0.0-rc.1", "error", "'1.0.0-rc.1', not of the form 1.0.0"),
    ("manifest.json:alf_version", "1.0.٣", "error", "not of the form 1.0.0"),
    ("manifest.json:agent.name", "", "error", "agent.name is empty"),
    ("manifest.json:agent.source_runtime", "", "error", "agent.source_runtime is empty"),
    ("manifest.json:checksum", "nope", "error", "checksum is 'nope'"),
    ("manifest.json:checksum", "sha256:xyz", "error", "checksum is 'sha256:xyz'"),
    ("manifest.json:layers.memory.record_count", 5, "error", "is 5, but its partitions say 2"),
    ("manifest.json:layers.memory.record_count", 5, "error", "is 5, but the archive has 2 records"),
    ("manifest.json:layers.memory.partitions.0.to", "2025-12-31", "error", "ends (2025-12-31) before it begins"),
    ("record:content", "", "error", "content is empty"),
    ("record:namespace", "", "error", "namespace is empty"),
    ("record:source.runtime", "", "error", "source.runtime is empty"),
    ("record:confidence", 1.5, "error", "confidence is 1.5; it must be between 0 and 1"),
    ("record:confidence", -1, "error", "confidence is -1"),
    ("record:embeddings.0.dimensions", 4, "error", "says 4 dimensions, but its vector has 3"),
    ("identity.json:agent_id", an_id(7), "error", "agent_id is not the id of the manifest's agent"),
    ("identity.json:version", 0, "error", "version is 0; it must be at least 1"),
    ("identity.json:structured.names.primary", "", "error", "structured.names.primary is empty"),
    ("identity.json:structured.capabilities.0.name", "", "error", "capabilities[0].name is empty"),
    ("identity.json:structured.sub_agents.0.name", "", "error", "sub_agents[0].name is empty"),
    ("principals.json:principals.0.profile.principal_id", an_id(7), "error", "is not the id of its principal"),
    ("principals.json:principals.0.profile.version", 0, "error", "version is 0"),
    ("credentials.json:credentials.0.service", "", "error", "service is empty"),
    ("credentials.json:credentials.0.encrypted_payload", "", "error", "encrypted_payload is empty"),
    ("credentials.json:credentials.0.encrypted_payload", "é", "error", "encrypted_payload is not base64"),
    ("credentials.json:credentials.0.encryption.algorithm", "", "error", "encryption.algorithm is empty"),
    ("credentials.json:credentials.0.encryption.nonce", "", "error", "encryption.nonce is empty"),
    ("credentials.json:credentials.0.encryption.nonce", "!", "error", "encryption.nonce is not base64"),
    ("credentials.json:credentials.0.encryption.nonce", "MTI=", "error", "has 2 bytes; this algorithm needs 12"),
    ("credentials.json:credentials.0.encryption.kdf_params.memory_cost", 1024, "error", "needs at least 19456"),
    ("credentials.json:credentials.0.encryption.kdf_params.time_cost", 1, "error", "needs at least 2"),
    ("credentials.json:credentials.0.encryption.kdf_params.parallelism", 0, "error", "needs at least 1"),
    # what both let pass
    ("manifest.json:foo", 1, "warning", "foo is not in the format"),
    ("manifest.json:a b\x1b", 1, "warning", r"'a b\x1b' is not in the format"),
    ("manifest.json:layers.principals.count", 3, "warning", "has 1 principals; the manifest says 3"),
    ("manifest.json:layers.memory.partitions.0.record_count", 5, "warning", "has 2 records; the manifest says 5"),
    ("record:foo", 1, "warning", "foo is not in the format"),
    ("record:operation", "create", "warning", "operation is not in the format"),
    ("record:memory_type", "Semantic", "warning", "'Semantic', an unknown value; it is treated as semantic"),
    ("record:status", "pinned", "warning", "'pinned', an unknown value; it is treated as active"),
    ("record:source.extraction_method", "guessed", "warning", "an unknown value; it is kept as it is"),
    ("record:entities.0.type", "ship", "warning", "treated as other"),
    ("record:embeddings.0.source", "x", "warning", "treated as runtime"),
    ("record:temporal.created_at", "2026-01-15T10:30:00z", "warning", "lower case"),
    ("record:temporal.created_at", "2026-01-15t10:30:00Z", "warning", "lower case"),
    ("record:id", an_id(2), "warning", "id is the same as that of an earlier record"),
    ("identity.json:foo", 1, "warning", "foo is not in the format"),
    ("identity.json:structured.capabilities.0.portability", "x", "warning", "kept as it is"),
    ("principals.json:principals.0.principal_type", "cat", "warning", "treated as human"),
    ("credentials.json:credentials.0.credential_type", "x", "warning", "treated as custom"),
    ("credentials.json:credentials.0.encryption.algorithm", "rot13", "warning", "is 'rot13', which is unknown"),
    ("credentials.json:credentials.0.encryption.algorithm", "none", "warning", "itself is not in the archive"),
    (
        "attachments.json:attachments.0.archive_path",
        "artifacts/b",
        "warning",
        "'artifacts/b', which is not in the archive",
    ),
    ("attachments.json:attachments.0.size_bytes", 5, "warning", "is not the size of 'artifacts/a.png'"),
    ("attachments.json:attachments.0.hash.value", "00", "warning", "hash is not that of 'artifacts/a.png'"),
]


@pytest.mark.parametrize(("place", "value", "level", "message"), MEMBERS, ids=[f"{m[0]}={m[1]!r:.20}" for m in MEMBERS])
def test_a_wrong_member_is_told_with_its_place(place: str, value: object, level: str, message: str) -> None:
    problems = a_full_archive().put(place, value).problems()
    (found,) = [problem for problem in problems if message in problem.message] or told(problems)
    assert isinstance(found, ArchiveProblem)
    assert found.level == level
    if "the manifest says" not in message:
        assert found.entry == (PARTITION if place.startswith("record:") else place.split(":")[0])
        assert (found.line > 0) == place.startswith("record:")
    if level != "warning":
        assert verdict(problems) == VERDICTS[level]


FINE: list[tuple[str, Any]] = [
    ("record:id", an_id(1).upper()),
    ("record:id", an_id(1).replace("-", "")),
    ("record:id", f"urn:uuid:{an_id(1)}"),
    ("record:id", f"{{{an_id(1)}}}"),
    ("record:supersedes", "00000000-0000-0000-0000-000000000000"),
    ("record:category", None),
    ("record:raw_source_format", "x"),
    ("record:confidence", 1),
    ("record:source.foo", {"deep": [1]}),
    ("record:content", "\0 and \u2028"),
    ("record:agent_id", an_id(5)),
    ("record:tags", []),
    ("manifest.json:alf_version", "99.1.2"),
    ("manifest.json:layers.memory.partitions.0.to", None),
    ("manifest.json:runtime_hints", None),
    ("identity.json:structured.names", None),
]


@pytest.mark.parametrize(("place", "value"), FINE)
def test_what_the_format_takes_is_fine(place: str, value: object) -> None:
    assert told(a_full_archive().put(place, value).problems()) == []


def test_a_row_about_a_credential_needs_no_nonce() -> None:
    archive = a_full_archive().put("credentials.json:credentials.0.encryption", {"algorithm": "none", "nonce": ""})
    assert verdict(archive.problems()) == "warning"


def test_sealed_partitions_have_a_last_day_and_all_stand_in_order() -> None:
    archive = Archive().put("manifest.json:layers.memory.partitions.0.to", GONE)
    archive.put("manifest.json:layers.memory.partitions.0.sealed", True)
    memory = archive.documents["manifest.json"]["layers"]["memory"]
    memory["partitions"].append(memory["partitions"][0] | {"from": "2025-10-01", "to": "2025-12-31"})
    memory["record_count"] = 2
    assert [line.replace("2026-01-01", "…") for line in told(archive.problems())] == [
        "error manifest.json: layers.memory.partitions[0] is sealed, but has no last day (to)",
        "error manifest.json: layers.memory.partitions[1] begins on 2025-10-01, before its predecessor (…)",
        f"warning manifest.json: names '{PARTITION}' for two partitions",
    ]


def test_all_problems_of_all_lines_come_at_once() -> None:
    archive = a_full_archive(a_record(1, tags=None, confidence=2), a_record(2), a_record(3, namespace=""))
    archive.put("manifest.json:agent.name", "")
    assert told(archive.problems()) == [
        "error manifest.json: agent.name is empty",
        f"unreadable {PARTITION}:1: tags is null, not a list",
        f"error {PARTITION}:1: confidence is 2; it must be between 0 and 1",
        f"error {PARTITION}:3: namespace is empty",
    ]


def test_of_each_level_so_many_are_told_and_the_verdict_is_still_right() -> None:
    records = [a_record(n, status="new") for n in range(30)] + [a_record(99, tags=None)]
    problems = problems_of(Archive(*records).packed(), most=10)
    assert len(problems) == 12
    assert problems[-1] == ArchiveProblem("warning", "", 0, "and 20 more of this level")
    assert verdict(problems) == "unreadable"


def test_a_record_with_a_million_faults_is_told_by_some_of_them() -> None:
    problems = check_document("memory-record", a_record(tags=[1] * 100_000, foo=1, confidence=2))
    assert [problem.level for problem in problems].count("unreadable") == MAX_PROBLEMS_PER_LEVEL
    assert {problem.level for problem in problems} == set(LEVELS)


# --- JSON as upstream reads it

LINES: list[tuple[bytes, str]] = [
    (b"\xef\xbb\xbf" + dump_line(a_record()), "begins with a byte order mark"),
    (dump_line(a_record())[:-9] + b"\n", "is not JSON"),
    (dump_line(a_record()).replace(b'"id"', b'"id":"x","id"', 1), "two members named 'id'"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":{"x":0,"x":1}'), "two members named 'x'"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":NaN'), "NaN"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":-Infinity'), "Infinity"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":1e999'), "too large"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":"\\ud800"'), "surrogate"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":"\xff"'), "UTF-8"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":' + b"[" * 5000 + b"]" * 5000), "too deep"),
    (dump_line(a_record(foo=0)).replace(b'"foo":0', b'"foo":' + b"9" * 5000), "digits"),
    (b"[]\n", "not a JSON object"),
    (b"{}{}\n", "is not JSON"),
]


@pytest.mark.parametrize(("line", "message"), LINES, ids=[message for _, message in LINES])
def test_a_line_that_is_no_json_is_unreadable_and_the_others_are_still_read(line: bytes, message: str) -> None:
    archive = Archive(a_record(1), a_record(2), a_record(3, namespace=""))
    archive.entries[PARTITION] = dump_line(a_record(7)) + line + dump_line(a_record(8, namespace=""))
    unreadable, error = archive.problems()
    assert (unreadable.level, unreadable.place) == ("unreadable", f"{PARTITION}:2")
    assert message in unreadable.message
    assert told([error]) == [f"error {PARTITION}:3: namespace is empty"]
    with pytest.raises(ValueError, match=message):
        parse_valid_record(line)


def test_a_name_of_any_length_makes_no_message_of_any_length() -> None:
    archive = Archive()
    archive.entries[PARTITION] = b'{"%s":1,"%s":1}' % (b"x" * 100_000, b"x" * 100_000)
    archive.documents["manifest.json"]["y" * 100_000] = 1
    assert all(len(problem.message) < 400 for problem in archive.problems())


def test_blank_lines_and_line_ends_of_any_kind_are_fine() -> None:
    archive = Archive(a_record(1), a_record(2))
    one, two = (dump_line(a_record(n)).rstrip() for n in (1, 2))
    archive.entries[PARTITION] = b"\r\n\n" + one + b"\r\n  \n" + two
    assert archive.problems() == []


@pytest.mark.parametrize("name", ["manifest.json", "identity.json"])
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf{}", b"[]", b"{", b"\xff"])
def test_a_document_that_is_no_json_is_unreadable(name: str, data: bytes) -> None:
    archive = a_full_archive()
    archive.entries[name] = data
    problems = archive.problems()
    assert [problem.entry for problem in problems if problem.level == "unreadable"] == [name]


def test_without_a_manifest_the_rest_is_looked_at_by_its_usual_names() -> None:
    archive = a_full_archive(a_record(1, namespace="")).put("identity.json:version", 0)
    archive.entries["manifest.json"] = b"{}"
    problems = told(archive.problems())
    assert "unreadable manifest.json: layers is missing" in problems
    assert f"error {PARTITION}:1: namespace is empty" in problems
    assert "error identity.json: version is 0; it must be at least 1" in problems
    parts = archive.parts()
    del parts["manifest.json"]
    assert told(problems_of(pack(parts)))[0] == "unreadable manifest.json: is missing from the archive"


def test_a_sound_record_is_one_that_can_be_used_whatever_the_validator_says() -> None:
    record = a_full_record() | {"namespace": "", "status": "new", "more": 1}
    assert parse_valid_record(dump_line(record)) == record
    with pytest.raises(ValueError, match="tags is null"):
        parse_valid_record(dump_line(record | {"tags": None}))


# --- entries


@pytest.mark.parametrize("name", [PARTITION, "identity.json", "principals.json", "credentials.json"])
def test_a_file_that_the_manifest_names_must_be_there(name: str) -> None:
    parts = a_full_archive().parts()
    del parts[name]
    assert told(problems_of(pack(parts))) == [f"unreadable {name}: is missing from the archive"]


def test_an_entry_that_nothing_names_is_told() -> None:
    archive = Archive()
    archive.entries |= {"notes.txt": b"", "artifacts/x": b"", "raw/openclaw/x": b"", "truekeep/later.json": b""}
    assert told(archive.problems()) == [
        "warning notes.txt: is not named anywhere in the archive",
        "warning artifacts/x: is not named anywhere in the archive",
    ]


OWN_FILES: list[tuple[Any, list[str]]] = [
    (a_file_row("memory/x.md", X, b"# X\n", size=5), [f"error {X}: has 4 bytes; {FILES} says 5"]),
    (a_file_row("memory/x.md", X, b"# Y\n"), [f"error {X}: does not have the digest that {FILES} says"]),
    (a_file_row("memory/x.md", X, b"# X\n", sha256="0"), [f"error {FILES}:1: sha256 is '0', not of the form 64"]),
    (a_file_row("memory/x.md", X, b"# X\n", mtime_ns=1.5), [f"error {FILES}:1: mtime_ns is 1.5, not a whole number"]),
    (a_file_row("../x.md", X, b"# X\n"), [f"error {FILES}:1: path leads out of the folder"]),
    (a_file_row("/x.md", X, b"# X\n"), [f"error {FILES}:1: path leads out of the folder"]),
    (a_file_row("a: b.md", X, b"# X\n"), []),
    (a_file_row("memory/x.md", None, b"# X\n"), [f"warning {X}: {FILES} does not list it"]),
    (
        a_file_row("memory/x.md", "raw/no", b""),
        [f"error {FILES}:1: 'raw/no' is not in the archive", f"warning {X}: {FILES} does not list it"],
    ),
    ([], [f"error {FILES}:1: is not a JSON object", f"warning {X}: {FILES} does not list it"]),
]


@pytest.mark.parametrize(("row", "expected"), OWN_FILES)
def test_files_are_those_that_truekeep_wrote_down(row: object, expected: list[str]) -> None:
    archive = Archive()
    archive.entries |= {X: b"# X\n", FILES: file_lines(row)}
    problems = told(archive.problems())
    assert len(problems) == len(expected)
    assert all(have.startswith(want) for have, want in zip(problems, expected, strict=True)), problems


def test_a_path_stands_in_the_list_once_and_two_paths_may_share_an_entry() -> None:
    archive = Archive()
    row = a_file_row("memory/x.md", X, b"# X\n")
    archive.entries |= {X: b"# X\n", FILES: file_lines(row, row, row | {"path": "memory/y.md"})}
    assert told(archive.problems()) == [f"error {FILES}:2: 'memory/x.md' is listed twice"]


# --- deltas

DELTA: list[tuple[str, Any, str]] = [
    ("delta-manifest.json:sync", GONE, "unreadable delta-manifest.json: sync is missing"),
    ("delta-manifest.json:changes", GONE, "unreadable delta-manifest.json: changes is missing"),
    ("delta-manifest.json:agent.id", "x", "unreadable delta-manifest.json: agent.id is 'x', not a UUID"),
    ("delta-manifest.json:alf_version", "1", "error delta-manifest.json: alf_version is '1', not of the form 1.0.0"),
    ("delta-manifest.json:foo", 1, "warning delta-manifest.json: foo is not in the format"),
    ("delta-manifest.json:changes.identity.file", "i", "unreadable i: is missing from the archive"),
    ("delta-manifest.json:changes.memory.file", "m", "unreadable m: is missing from the archive"),
    ("delta-manifest.json:changes.memory.record_count", 9, "warning memory/delta.jsonl: has 3 records; the manifest"),
    ("delta-manifest.json:changes.raw.changed", ["raw/x"], "unreadable raw/x: is missing from the archive"),
    (
        "delta-manifest.json:changes.raw.changed",
        [],
        "warning raw/openclaw/MEMORY.md: is not in the manifest's list of changed files",
    ),
    ("delta-manifest.json:changes.raw.changed", ["identity.json"], "error delta-manifest.json: changes.raw.changed"),
    ("delta-manifest.json:changes.raw.deleted", ["raw/../x"], "unreadable delta-manifest.json: changes.raw.deleted"),
    ("delta-manifest.json:changes.raw.deleted", ["x"], "error delta-manifest.json: changes.raw.deleted has 'x'"),
    ("identity.json:agent_id", an_id(7), "error identity.json: agent_id is not the id of the manifest's agent"),
    ("record:operation", GONE, "unreadable memory/delta.jsonl:1: operation is missing"),
    (
        "record:operation",
        "merge",
        "warning memory/delta.jsonl:1: operation is 'merge', an unknown value; the line is skip",
    ),
    ("record:content", GONE, "unreadable memory/delta.jsonl:1: content is missing"),
    ("record:id", an_id(1), "warning memory/delta.jsonl:2: id is the same as that of an earlier record"),
]


@pytest.mark.parametrize(("place", "value", "expected"), DELTA, ids=[f"{d[0]}={d[1]!r:.20}" for d in DELTA])
def test_what_is_wrong_with_a_delta(place: str, value: object, expected: str) -> None:
    assert any(line.startswith(expected) for line in told(Delta().put(place, value).problems()))


def test_a_delta_may_have_a_copy_of_its_manifest_under_the_other_name() -> None:
    delta = Delta()
    delta.documents["manifest.json"] = delta.documents["delta-manifest.json"]
    assert delta.problems() == []


def test_a_manifest_that_is_none() -> None:
    assert ("unreadable", "layers", "is missing") in check_document("manifest", {})
    assert check_document("manifest", None) == [("unreadable", "", "is null, not an object")]


# --- anything at all

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(AGENT) | st.just("none"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.just("file"), inner, max_size=4)
    ),
    max_leaves=8,
)


def places(document: Any, above: str = "") -> Iterator[str]:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in items:
        yield f"{above}{name}"
        if isinstance(value, (dict, list)):
            yield from places(value, f"{above}{name}.")


FULL, DELTA_PARTS = a_full_archive(), Delta()
PLACES = [f"{name}:{place}" for name, document in FULL.documents.items() for place in places(document)]
PLACES += [f"record:{place}" for place in places(FULL.records[0])]
DELTA_PLACES = [f"{name}:{place}" for name, document in DELTA_PARTS.documents.items() for place in places(document)]
DELTA_PLACES += [f"record:{place}" for place in places(DELTA_PARTS.records[0])]


def _is_writable(value: Any) -> bool:
    try:
        dump_line({"x": value})
    except ValueError:
        return False
    return True


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data(), JSON.filter(_is_writable), st.booleans())
def test_any_value_anywhere_is_told_and_never_raised(data: st.DataObject, value: Any, is_delta: bool) -> None:
    archive = copy.deepcopy(DELTA_PARTS if is_delta else FULL)
    archive.put(data.draw(st.sampled_from(DELTA_PLACES if is_delta else PLACES)), value)
    problems = archive.problems()
    assert all(problem.level in LEVELS and problem.message for problem in problems)
    told(problems)


KINDS = ("memory-record", "delta-record", "manifest", "delta-manifest", "credentials", "truekeep-file")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data(), JSON)
def test_any_object_may_be_asked_about(data: st.DataObject, value: Any) -> None:
    archive = copy.deepcopy(FULL)
    archive.put(data.draw(st.sampled_from([place for place in PLACES if place.startswith("record:")])), value)
    for kind in KINDS:
        problems = check_document(kind, archive.records[0]) + check_document(kind, value)
        assert all(problem.level in LEVELS for problem in problems)


PACKED = FULL.packed()


def look_at_all(data: bytes) -> None:
    """Whatever is in the bytes, the only failure is BadArchive."""
    with suppress(BadArchive), ZipReader(io.BytesIO(data)) as reader:
        told(list(check_archive(reader)))
        for name in reader.entries:
            with suppress(BadArchive):
                reader.read(name)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, len(PACKED) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, len(PACKED)) | st.just(len(PACKED)),
)
def test_damaged_bytes_are_told_and_never_raised(damage: list[tuple[int, int]], length: int) -> None:
    data = bytearray(PACKED)
    for place, value in damage:
        data[place] = value
    look_at_all(bytes(data[:length]))


TAIL = PACKED.index(b"PK\x01\x02")


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.integers(TAIL, len(PACKED) - 1), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), st.integers(1, 8))
def test_damaged_lists_of_entries_are_told_and_never_raised(place: int, value: int, length: int) -> None:
    data = bytearray(PACKED)
    data[place : place + length] = bytes([value]) * len(data[place : place + length])
    look_at_all(bytes(data))


# --- the container


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


def notes_of(data: bytes) -> list[str]:
    with ZipReader(io.BytesIO(data)) as reader:
        return told(reader.problems)


def directory(data: bytes, number: int) -> int:
    """Where the list of entries has the one with this number."""
    place = -1
    for _ in range(number + 1):
        place = data.index(b"PK\x01\x02", place + 1)
    return place


def patched(data: bytes, place: int, form: str, value: int) -> bytes:
    return data[:place] + struct.pack(form, value) + data[place + struct.calcsize(form) :]


NAMES: list[tuple[str, str]] = [
    ("/etc/passwd", "is absolute"),
    ("../x", "leads out of the folder"),
    ("raw/../../x", "leads out of the folder"),
    ("raw//x", "leads out of the folder"),
    ("./x", "leads out of the folder"),
    ("C:/x", "names a drive"),
    ("c:x", "names a drive"),
    ("raw/a\nb", "contains a control character"),
    ("raw/\x1b[2J", "contains a control character"),
    ("raw/\x7f", "contains a control character"),
    ("raw/" + "x" * 300, "is too long"),
    ("x/" * 600 + "x", "is too long"),
]


@pytest.mark.parametrize(("name", "why"), NAMES, ids=[repr(name[:20]) for name, _ in NAMES])
def test_names_that_lead_out_are_noted_and_their_entries_unusable(name: str, why: str) -> None:
    data = zipped(("raw/good", b"1"), (name, b"2"))
    with ZipReader(io.BytesIO(data)) as reader:
        assert list(reader.entries) == ["raw/good"]
        (problem,) = reader.problems
        assert (problem.level, problem.entry, problem.message) == ("unreadable", name, f"the name {why}")
        assert problem.place.isprintable()


def test_names_with_a_backslash_or_nul_are_noted() -> None:
    names = {b"raw/a1b": b"raw\\a\\b", b"raw/c2d": b"raw/c\0d", b"raw/3ef": b"raw/\0ef", b"4etc/gh": b"\0etc/gh"}
    data = zipped(*((name.decode(), b"") for name in names))
    for name, worse in names.items():
        data = data.replace(name, worse)
    assert notes_of(data) == [
        "unreadable raw\\a\\b: the name contains a backslash",
        "unreadable raw/c: the name contains a NUL byte",
        "unreadable raw/: the name contains a NUL byte",
        "unreadable : the name is empty",
    ]


@pytest.mark.parametrize("name", ["", "\ud800", "a" * 300])
def test_any_text_may_be_asked_about_as_a_name(name: str) -> None:
    assert unsafe_name(name) in ("is empty", "", "is too long")


def test_names_of_folders_are_looked_at_too() -> None:
    assert notes_of(zipped(("raw/", b""), ("../up/", b""))) == ["unreadable ../up/: the name leads out of the folder"]


@pytest.mark.parametrize(
    ("mode", "why"), [(stat.S_IFLNK, "is a symbolic link"), (stat.S_IFIFO, "is not a regular file")]
)
def test_links_and_the_like_are_noted(mode: int, why: str) -> None:
    info = zipfile.ZipInfo("raw/x")
    info.external_attr = (mode | 0o777) << 16
    assert notes_of(zipped((info, b"/etc/passwd"))) == [f"unreadable raw/x: {why}"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_entries_with_one_name_neither_is_used() -> None:
    data = zipped(("raw/x", b"1"), ("raw/y", b"2"), ("raw/x", b"3"))
    with ZipReader(io.BytesIO(data)) as reader:
        assert list(reader.entries) == ["raw/y"]
        assert told(reader.problems) == ["unreadable raw/x: is in the archive twice"]


@pytest.mark.parametrize(("method", "number"), [(zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)])
def test_other_packing_methods_are_noted(method: int, number: int) -> None:
    data = zipped(("raw/x", b"1" * 100), method=method)
    assert notes_of(data) == [f"unreadable raw/x: is compressed with method {number}, which the format does not allow"]


def test_encrypted_entries_are_noted() -> None:
    data = zipped(("raw/x", b"1"))
    assert notes_of(patched(data, directory(data, 0) + 8, "<H", 1)) == ["unreadable raw/x: is encrypted"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("size", [0, 1, 99, 101, 5_000])
def test_an_entry_that_lies_about_its_size_is_damaged(method: int, size: int) -> None:
    data = zipped(("raw/x", bytes(100)), method=method)
    data = patched(data, directory(data, 0) + 24, "<L", size)
    with ZipReader(io.BytesIO(data)) as reader, pytest.raises(BadArchive) as caught:
        reader.read("raw/x")
    assert caught.value.problem.entry == "raw/x"


@pytest.mark.slow
def test_a_small_entry_that_is_said_to_be_small_is_never_unpacked_beyond_that() -> None:
    data = zipped(("raw/x", bytes(50 << 20)), method=zipfile.ZIP_DEFLATED)
    data = patched(data, directory(data, 0) + 24, "<L", 10)
    with ZipReader(io.BytesIO(data)) as reader:
        tracemalloc.start()
        with pytest.raises(BadArchive):
            reader.read("raw/x")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 20


def test_an_archive_that_swells_too_much_is_not_opened_but_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_container, "COMPRESSION_ALLOWANCE", 1 << 20)
    data = zipped(("raw/x", bytes(10 << 20)), method=zipfile.ZIP_DEFLATED)
    with pytest.raises(BadArchive, match="times its size") as caught:
        ZipReader(io.BytesIO(data))
    assert "--large" in caught.value.hint
    with ZipReader(io.BytesIO(data), large=True) as reader:
        assert len(reader.read("raw/x")) == 10 << 20


def test_entries_that_share_their_bytes_are_noted() -> None:
    data = zipped(("raw/x", bytes(1000)), ("raw/y", b"2"))
    second = directory(data, 1)
    assert notes_of(patched(data, second + 42, "<L", 0)) == ["unreadable raw/y: overlaps another entry"]
    assert notes_of(patched(data, second + 42, "<L", 500)) == ["unreadable raw/y: overlaps another entry"]


def test_other_bytes_than_were_packed_are_told() -> None:
    archive = a_full_archive()
    data = zipped(*archive.parts().items()).replace(b"# X\n", b"# Y\n").replace(b"\x89PNG", b"\x89PNX")
    assert [problem for problem in told(problems_of(data)) if "CRC" in problem] == [
        "unreadable artifacts/a.png: is damaged: Bad CRC-32 for file 'artifacts/a.png'",
        f"unreadable {X}: is damaged: Bad CRC-32 for file '{X}'",
    ]
    damaged_lines = zipped(*Archive().parts().items()).replace(b"note 1", b"nota 1")
    assert told(problems_of(damaged_lines))[0].startswith(f"unreadable {PARTITION}: is damaged")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".git/config", "belongs to another program"),
        (".truekeep/host", "belongs to another program"),
        ("C:/x.md", "the name names a drive"),
        ("memory", "it is both a file and a folder"),
    ],
)
def test_what_import_would_refuse_is_told(path: str, why: str) -> None:
    archive = Archive()
    archive.entries |= {"raw/openclaw/memory/x.md": b"x", f"raw/openclaw/{path}": b"y"}
    found = told(problems_of(archive.packed()))
    assert f"warning raw/openclaw/{path}: would not be imported: {why}" in found
    assert not any("memory/x.md: would" in line for line in found)


@pytest.mark.parametrize("data", [b"", b"PK", b"%PDF-1.7", PACKED[:-1], PACKED[:-30], PACKED[: len(PACKED) // 2]])
def test_what_is_no_zip_or_only_half_of_one_is_refused(data: bytes) -> None:
    why = "its end is missing" if len(data) > 10 else "not a readable ZIP archive" if data else "it is empty"
    with pytest.raises(BadArchive, match=why):
        ZipReader(io.BytesIO(data))


def test_junk_before_the_first_entry_is_fine() -> None:
    assert problems_of(b"#!/bin/sh\nexit\n" + PACKED) == []


def test_a_line_of_any_length_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_container, "MAX_LINE_BYTES", 200_000)
    archive = Archive(a_record(1), a_record(2, content="x" * 300_000))
    assert told(archive.problems())[0] == f"unreadable {PARTITION}:2: has a line 2 of more than 200,000 bytes"


def test_a_document_of_any_length_is_not_read() -> None:
    data = zipped(("manifest.json", b"{}"))
    with ZipReader(io.BytesIO(data)) as reader, pytest.raises(BadArchive, match="the maximum is 1"):
        reader.read("manifest.json", limit=1)


@pytest.mark.slow
def test_a_hundred_thousand_entries_take_a_moment() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(100_000):
            archive.writestr(zipfile.ZipInfo(f"raw/openclaw/memory/{number}.md"), b"")
        archive.writestr("manifest.json", Archive().parts()["manifest.json"])
        archive.writestr(PARTITION, Archive().parts()[PARTITION])
    assert problems_of(file.getvalue()) == []


@pytest.mark.slow
def test_a_large_partition_is_not_kept_in_memory() -> None:
    records = (dump_line(a_record(n, content=f"{n} " * 2000)) for n in range(3000))
    file = io.BytesIO()
    writer = ZipWriter(file)
    writer.add_pieces(PARTITION, records)
    archive = Archive(*[{}] * 3000)  # for its counts
    writer.add("manifest.json", archive.parts()["manifest.json"])
    writer.close()
    size = zipfile.ZipFile(file).getinfo(PARTITION).file_size
    assert size > 20 << 20
    tracemalloc.start()
    assert problems_of(file.getvalue()) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


# --- writing


def written(file: BinaryIO, parts: dict[str, bytes]) -> None:
    writer = ZipWriter(file)
    for name, data in parts.items():
        writer.add_pieces(name, iter((data[:3], data[3:])), size=len(data))
    writer.close()


def test_equal_contents_are_equal_bytes_in_memory_in_a_file_and_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = a_full_archive().parts() | {"raw/openclaw/zeros": bytes(300_000), "raw/openclaw/empty": b""}
    first = io.BytesIO()
    written(first, parts)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    with tempfile.TemporaryFile() as file:
        written(file, parts)
        file.seek(0)
        assert file.read() == first.getvalue()
    ends = os.pipe()
    got: list[bytes] = []
    with open(ends[0], "rb") as reading, open(ends[1], "wb") as writing:
        thread = threading.Thread(target=lambda: got.append(reading.read()))
        thread.start()
        written(writing, parts)
        writing.close()
        thread.join()
    assert got == [first.getvalue()]
    with ZipReader(io.BytesIO(first.getvalue())) as reader:
        assert {name: reader.read(name) for name in reader.entries} == parts
    with zipfile.ZipFile(first) as plain:
        assert plain.testzip() is None
        assert {info.date_time for info in plain.infolist()} == {(1980, 1, 1, 0, 0, 0)}
