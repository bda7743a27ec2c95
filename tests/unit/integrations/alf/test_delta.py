"""Deltas: applied to the old archive, one gives the very archive that an export with the old one as its base gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.alf_builder import AGENT as BUILT
from tests.support.alf_builder import Archive, Delta, a_file_row, a_record, an_id, file_lines
from tests.support.alf_places import (
    AGENT,
    SAMPLE,
    a_workspace,
    assert_sound,
    entries_of,
    export,
    import_,
    left_over,
    look,
    make_delta,
    manifest_of,
    records_in,
    verdict_of,
    workspaces,
)
from tests.support.helpers import Place
from tests.support.sessions import LONG, dialogue, grow, place_of, sync, write_session
from truekeep.core.errors import BadInput
from truekeep.integrations.alf.apply_delta import apply_deltas
from truekeep.integrations.alf.documents import dump_line
from truekeep.integrations.alf.export import ExportOptions, ExportReport
from truekeep.integrations.alf.files import (
    UNKNOWN_TIME,
    ListedFile,
    clamp_time,
    portable_mode,
    refusal_reason,
    workspace_path,
)
from truekeep.integrations.alf.reader import _parse_listed_file
from truekeep.integrations.alf.writer import ArchiveSummary, DeltaSummary
from truekeep.integrations.alf.zip_container import BadArchive, is_ordinary, unsafe_name

LATER_NS = 1_771_500_000 * 10**9


def edit(root: Path, changes: dict[str, bytes | None], *, at_ns: int = LATER_NS) -> None:
    """Write or remove files, later than everything before."""
    for number, (path, data) in enumerate(sorted(changes.items())):
        target = root / path
        if data is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o644)
        os.utime(target, ns=(at_ns + number, at_ns + number))


def apply(old: Path, *deltas: Path, target: Path) -> ExportReport[ArchiveSummary]:
    return apply_deltas(old, deltas, target, ExportOptions())


def changed_in(made: ExportReport[DeltaSummary]) -> DeltaSummary:
    return made.written


def assert_same(one: Path, other: Path) -> None:
    """Entry by entry; the manifests may differ in the number of the sync."""
    left, right = entries_of(one), entries_of(other)
    assert list(left) == list(right)
    for name in left:
        if name != "manifest.json":
            assert left[name] == right[name], name
    manifests = [json.loads(found["manifest.json"]) for found in (left, right)]
    for manifest in manifests:
        manifest.pop("sync", None)
    assert manifests[0] == manifests[1]


def assert_delta_is_the_difference(base: Path, root: Path) -> ExportReport[DeltaSummary]:
    """base/old.alf and the workspace: the delta between them, applied, is the new export."""
    made = make_delta(root, base / "d.alf-delta", base / "old.alf")
    export(root, base / "new.alf", base=base / "old.alf")
    apply(base / "old.alf", base / "d.alf-delta", target=base / "applied.alf")
    assert verdict_of(base / "d.alf-delta") in ("ok", "warning")
    assert_sound(base / "applied.alf")
    assert_same(base / "applied.alf", base / "new.alf")
    return made


# --- The law --------------------------------------------------------------------------------------------------------

EDITS: dict[str, dict[str, bytes | None]] = {
    "nothing": {},
    "one section": {"MEMORY.md": SAMPLE["MEMORY.md"].replace(b"Vim is", b"Emacs is")},
    "a new file": {"memory/new.md": b"## New\nA text.\n", "notes/new.txt": b"x\n"},
    "a file less": {"memory/project-gate.md": None, "notes/todo.txt": None},
    "another day": {"memory/2025-11-02.md": None, "memory/2026-04-01.md": b"## Spring\nAnother quarter.\n"},
    "a card": {"memory/cards/proxy.md": b"---\ntopic: Proxy\ncreated: 2025-01-01\n---\nMoved to another quarter.\n"},
    "people": {"SOUL.md": b"# Bea\n", "USER.md": None, "IDENTITY.md": b"Name: Bea\n"},
    "everyone": {"SOUL.md": None, "IDENTITY.md": None, "AGENTS.md": None, "USER.md": None},
    "an artifact grows": {"notes/todo.txt": b"y" * 200_000, "big.bin": b"small now"},
    "a large one goes": {"big.bin": None},
    "no text any more": {"MEMORY.md": b"\xff\xfe\x00", "memory/latin.md": b"text now\n"},
    "rules": {"memory/gating-policies.md": SAMPLE["memory/gating-policies.md"] + b"| 3 | a crash | log it |\n"},
    "all of it": dict.fromkeys(SAMPLE),
    "a folder for a file": {"memory/empty.md": None, "memory/empty.md/x.md": b"## X\ny\n"},
}


@pytest.mark.parametrize("name", EDITS)
def test_delta_is_the_difference(tmp_path: Path, name: str) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    edit(root, EDITS[name])
    made = assert_delta_is_the_difference(tmp_path, root)
    assert changed_in(made).is_empty == (name == "nothing")


PATHS = st.sampled_from(
    ("MEMORY.md", "memory/2026-01-15.md", "memory/cards/b.md", "memory/notes.md", "USER.md", "x.bin")
)
CHANGES = st.fixed_dictionaries(
    {
        "files": workspaces(most=4),
        "gone": st.sets(st.integers(0, 9), max_size=3),
        "touched": st.sets(st.integers(0, 9), max_size=3),
    }
)


@pytest.mark.slow
@given(files=workspaces(), first=CHANGES, second=CHANGES)
@example(
    files={"MEMORY.md": b"## A\none\n\n## A\none\n"},
    first={"files": {"MEMORY.md": b"## A\none\n\n## A\ntwo\n\n## A\none\n"}, "gone": set(), "touched": set()},
    second={"files": {"MEMORY.md": b"## A\ntwo\n"}, "gone": set(), "touched": {0}},
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_delta_is_the_difference(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], first: dict[str, Any], second: dict[str, Any]
) -> None:
    base = tmp_path_factory.mktemp("delta")
    root = a_workspace(base / "ws", files)
    export(root, base / "old.alf")
    for number, changes in enumerate((first, second)):
        alter(root, changes, at_ns=LATER_NS + number * 10**12)
        assert_delta_is_the_difference(base, root)
        (base / "applied.alf").replace(base / "old.alf")
        for name in ("d.alf-delta", "new.alf"):
            (base / name).unlink()
    import_(base / "old.alf", base / "back")
    assert look(base / "back") == {path: file for path, file in look(root).items() if path in look(base / "back")}
    assert set(look(base / "back")) == set(look(root)) - {item.path for item in omitted(root, base)}


def omitted(root: Path, base: Path) -> tuple[Any, ...]:
    return export(root, base / "last.alf").omitted


def alter(root: Path, changes: dict[str, Any], *, at_ns: int) -> None:
    paths = sorted(look(root))
    for number in changes["gone"]:
        if number < len(paths):
            (root / paths[number]).unlink()
    for number in changes["touched"]:
        if number < len(paths) and paths[number] in look(root):
            os.utime(root / paths[number], ns=(at_ns - number, at_ns - number))
    now = look(root)
    folders = {path[:at] for path in now for at, char in enumerate(path) if char == "/"}
    fits = {
        path: data
        for path, data in changes["files"].items()
        if path not in folders and not any(path.startswith(f"{other}/") for other in now)
    }
    edit(root, dict(fits), at_ns=at_ns)


def test_deltas_in_a_row(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    last = tmp_path / "old.alf"
    deltas = []
    for number, name in enumerate(("one section", "a new file", "people", "rules")):
        edit(root, EDITS[name], at_ns=LATER_NS + number * 10**12)
        deltas.append(tmp_path / f"{number}.alf-delta")
        make_delta(root, deltas[-1], last)
        apply(last, deltas[-1], target=tmp_path / f"{number}.alf")
        last = tmp_path / f"{number}.alf"
    apply(tmp_path / "old.alf", *deltas, target=tmp_path / "all.alf")
    assert (tmp_path / "all.alf").read_bytes() == last.read_bytes()
    assert manifest_of(last)["sync"] == {"last_sequence": 4}
    import_(last, tmp_path / "back")
    assert {**look(root), "big.bin": None} == {**look(tmp_path / "back"), "big.bin": None}
    assert left_over(tmp_path) == []


# --- What is in one -------------------------------------------------------------------------------------------------


def test_only_what_changed(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    edit(root, EDITS["one section"])
    made = changed_in(make_delta(root, tmp_path / "d", tmp_path / "old.alf"))
    assert made == DeltaSummary(created=0, updated=1, deleted=0, files=1, removed=0, documents=())
    found = entries_of(tmp_path / "d")
    assert set(found) == {
        *("memory/delta.jsonl", "raw/openclaw/MEMORY.md", "truekeep/files.jsonl", "delta-manifest.json"),
    }
    changes = json.loads(found["delta-manifest.json"])["changes"]
    assert changes["raw"] == {"changed": ["raw/openclaw/MEMORY.md"], "deleted": []}
    assert changes["memory"]["record_count"] == 1


def test_deletions_carry_the_whole_record(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    edit(root, {"memory/project-gate.md": None})
    make_delta(root, tmp_path / "d", tmp_path / "old.alf")
    [gone] = records_in(tmp_path / "d")
    assert gone.pop("operation") == "delete"
    assert gone in records_in(tmp_path / "old.alf")
    changes = json.loads(entries_of(tmp_path / "d")["delta-manifest.json"])["changes"]
    assert changes["raw"]["deleted"] == ["raw/openclaw/memory/project-gate.md"]


def test_a_new_time_alone(tmp_path: Path) -> None:
    """What a file says did not change, so no record of the format's own does; its time is carried."""
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    os.utime(root / "MEMORY.md", ns=(LATER_NS, LATER_NS))
    made = assert_delta_is_the_difference(tmp_path, root)
    assert changed_in(made) == DeltaSummary(created=0, updated=0, deleted=0, files=1, removed=0, documents=())
    import_(tmp_path / "applied.alf", tmp_path / "back")
    assert (tmp_path / "back" / "MEMORY.md").stat().st_mtime_ns == LATER_NS


def test_new_permissions_alone(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf")
    (root / "MEMORY.md").chmod(0o600)
    made = assert_delta_is_the_difference(tmp_path, root)
    assert changed_in(made).files == 1


def test_only_the_files_that_changed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delta costs what a scan costs."""
    from truekeep.integrations.alf.files import WorkspaceTree

    root = a_workspace(tmp_path / "ws", {f"memory/n{n}.md": b"## A\nb\n" for n in range(50)})
    export(root, tmp_path / "old.alf")
    edit(root, {"memory/n7.md": b"## A\nc\n"})
    read: list[str] = []
    real = WorkspaceTree.read

    def noted(tree: WorkspaceTree, item: ListedFile) -> bytes:
        read.append(item.path)
        return real(tree, item)

    monkeypatch.setattr(WorkspaceTree, "read", noted)
    make_delta(root, tmp_path / "d", tmp_path / "old.alf")
    assert set(read) == {"memory/n7.md"}


def test_of_another_agent(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    other = a_workspace(tmp_path / "other", agent="11111111-2222-4333-8444-555555555555")
    export(other, tmp_path / "old.alf")
    with pytest.raises(BadArchive, match="this archive belongs to agent"):
        make_delta(root, tmp_path / "d", tmp_path / "old.alf")
    assert not (tmp_path / "d").exists()
    export(root, tmp_path / "mine.alf")
    make_delta(root, tmp_path / "d", tmp_path / "mine.alf")
    with pytest.raises(BadArchive, match="another agent"):
        apply(tmp_path / "old.alf", tmp_path / "d", target=tmp_path / "x.alf")
    assert not (tmp_path / "x.alf").exists()
    assert left_over(tmp_path) == []


def test_since_something_that_is_no_archive(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="not a readable ZIP"):
        make_delta(root, tmp_path / "d", tmp_path / "x")
    export(root, tmp_path / "a.alf")
    make_delta(root, tmp_path / "d", tmp_path / "a.alf")
    with pytest.raises(BadArchive, match="a delta is applied to a full archive"):
        apply(tmp_path / "d", tmp_path / "d", target=tmp_path / "y")
    with pytest.raises(BadArchive, match="a delta is applied to a full archive"):
        apply(tmp_path / "a.alf", tmp_path / "a.alf", target=tmp_path / "y")


def test_facts_that_are_in_no_file(tmp_path: Path) -> None:
    """Sessions stay as they are when nobody asks for them."""
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n"})
    export(root, tmp_path / "first.alf")
    archive = Delta()
    session = a_record(7, namespace="session", agent_id=AGENT, operation="create")
    archive.records = [session]
    manifest = archive.documents["delta-manifest.json"]
    manifest["agent"]["id"] = AGENT
    manifest["changes"] = {"memory": {"file": "memory/delta.jsonl", "record_count": 1}}
    del archive.entries["raw/openclaw/MEMORY.md"]
    (tmp_path / "s").write_bytes(archive.packed())
    apply(tmp_path / "first.alf", tmp_path / "s", target=tmp_path / "old.alf")
    edit(root, {"MEMORY.md": b"## A\nc\n"})
    make_delta(root, tmp_path / "d", tmp_path / "old.alf")
    apply(tmp_path / "old.alf", tmp_path / "d", target=tmp_path / "new.alf")
    assert {record["namespace"] for record in records_in(tmp_path / "new.alf")} == {"session", "curated"}
    assert_sound(tmp_path / "new.alf")


# --- Of other tools -------------------------------------------------------------------------------------------------


def built(folder: Path, name: str, archive: Archive) -> Path:
    (folder / name).write_bytes(archive.packed())
    return folder / name


def a_foreign_archive() -> Archive:
    """An archive of another tool: another layout, another runtime's files, layers and fields that nobody knows."""
    archive = Archive(a_record(1, extra={"kept": [1, 2]}), a_record(2, status="odd"), a_record(3))
    archive.entries |= {
        "raw/hermes/state.db": b"\x00theirs",
        "raw/openclaw/MEMORY.md": b"# M\n",
        "artifacts/0001": b"art",
    }
    archive.entries |= {"strange/thing.json": b"{}", "memory/partitions/2025.jsonl": b""}
    manifest = archive.documents["manifest.json"]
    manifest |= {"raw_sources": ["hermes", "openclaw"], "x_unknown": {"a": 1}, "checksum": "sha256:00"}
    manifest["layers"]["strange"] = {"file": "strange/thing.json", "more": True}
    manifest["layers"]["attachments"] = {"count": 2, "file": "attachments.json", "odd": 1}
    item = {"id": an_id(50), "filename": "a", "media_type": "x/y", "size_bytes": 3, "remote_ref": "s3://x", "mine": 1}
    item |= {
        "hash": {"algorithm": "sha256", "value": "00"},
        "source_path": "skills/a.md",
        "archive_path": "artifacts/0001",
    }
    large = {**item, "id": an_id(51), "source_path": "film.mp4", "archive_path": None, "size_bytes": 10**9}
    archive.documents["attachments.json"] = {"artifact_size_threshold": 5, "attachments": [item, large]}
    return archive


def test_what_nobody_knows_survives(tmp_path: Path) -> None:
    old = built(tmp_path, "old.alf", a_foreign_archive())
    delta = built(tmp_path, "d", a_delta(a_record(4, operation="create"), a_record(3, operation="delete")))
    apply(old, delta, target=tmp_path / "new.alf")
    before, after = entries_of(old), entries_of(tmp_path / "new.alf")
    for name in ("raw/hermes/state.db", "strange/thing.json", "artifacts/0001", "raw/openclaw/MEMORY.md"):
        assert after[name] == before[name]
    assert after["attachments.json"] == before["attachments.json"]
    manifest = manifest_of(tmp_path / "new.alf")
    assert manifest["x_unknown"] == {"a": 1}
    assert "checksum" not in manifest
    assert manifest["layers"]["strange"] == {"file": "strange/thing.json", "more": True}
    assert manifest["layers"]["attachments"] == {"count": 2, "file": "attachments.json", "odd": 1}
    found = {record["id"]: record for record in records_in(tmp_path / "new.alf")}
    assert set(found) == {an_id(1), an_id(2), an_id(4)}
    assert found[an_id(1)]["extra"] == {"kept": [1, 2]}
    assert found[an_id(2)]["status"] == "odd"
    assert "truekeep/files.jsonl" not in after
    assert_sound(tmp_path / "new.alf")


def a_delta(*changes: dict[str, Any], **more: Any) -> Delta:
    """A delta as another tool writes it, with these changes of records."""
    delta = Delta()
    delta.records = list(changes)
    delta.entries.clear()
    delta.documents = {"delta-manifest.json": delta.documents["delta-manifest.json"]}
    told = {"memory": {"file": "memory/delta.jsonl", "record_count": len(changes)}} if changes else {}
    delta.documents["delta-manifest.json"]["changes"] = {**told, **more}
    return delta


def test_the_rules_of_application(tmp_path: Path) -> None:
    """As the format's own code has them: what does not fit is passed over, and told."""
    old = built(tmp_path, "old.alf", Archive(a_record(1), a_record(2)))
    changes = [
        a_record(1, operation="create", content="there already"),
        a_record(3, operation="update", content="not there"),
        a_record(4, operation="delete"),
        a_record(5, operation="create", content="new"),
        a_record(5, operation="update", content="made in the same delta"),
        a_record(2, operation="update", content="changed"),
        a_record(6, operation="odd"),
    ]
    made = apply(old, built(tmp_path, "d", a_delta(*changes)), target=tmp_path / "new.alf")
    found = {record["id"]: record["content"] for record in records_in(tmp_path / "new.alf")}
    assert found == {an_id(1): "note 1", an_id(2): "changed", an_id(5): "new"}
    assert len(made.notes) == 5
    assert not any("operation" in record for record in records_in(tmp_path / "new.alf"))


def test_files_of_a_delta_of_another_tool(tmp_path: Path) -> None:
    archive = Archive(a_record(1, source={"runtime": "openclaw", "origin_file": "MEMORY.md"}))
    archive.entries |= {
        "raw/openclaw/MEMORY.md": b"old",
        "raw/openclaw/memory/old.md": b"x",
        "raw/openclaw/keep.md": b"k",
    }
    old = built(tmp_path, "old.alf", archive)
    raw = {"changed": ["raw/openclaw/MEMORY.md"], "deleted": ["raw/openclaw/memory/old.md", 5, "raw/openclaw/none.md"]}
    delta = a_delta(a_record(1, operation="update", content="new", source=archive.records[0]["source"]), raw=raw)
    delta.entries["raw/openclaw/MEMORY.md"] = b"new"
    made = apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert made.notes == ()
    import_(tmp_path / "new.alf", tmp_path / "back")
    assert {path: (tmp_path / "back" / path).read_bytes() for path in look(tmp_path / "back")} == {
        "MEMORY.md": b"new",
        "keep.md": b"k",
    }


def test_records_without_their_file_are_told(tmp_path: Path) -> None:
    """The first generation's deltas carry no files: an import would bring the old ones back, so it is said."""
    archive = Archive(a_record(1, source={"runtime": "openclaw", "origin_file": "MEMORY.md"}))
    archive.entries["raw/openclaw/MEMORY.md"] = b"old"
    old = built(tmp_path, "old.alf", archive)
    delta = a_delta(a_record(1, operation="update", content="new", source=archive.records[0]["source"]))
    made = apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert made.notes == ("MEMORY.md is outdated: the delta contains its records but not the file",)


def test_their_delta_on_our_archive(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n"}, agent=BUILT)
    export(root, tmp_path / "old.alf")
    delta = a_delta(raw={"changed": ["raw/openclaw/memory/n.md"], "deleted": []})
    delta.entries["raw/openclaw/memory/n.md"] = b"## N\nnew\n"
    apply(tmp_path / "old.alf", built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert_sound(tmp_path / "new.alf")
    import_(tmp_path / "new.alf", tmp_path / "back")
    stat = (tmp_path / "back" / "memory" / "n.md").stat()
    assert stat.st_mtime_ns == 1_768_473_000 * 10**9  # when the delta was made


def test_our_delta_on_their_archive(tmp_path: Path) -> None:
    """What the format's own tool exported is a base like any other; afterwards the archive is ours."""
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "old.alf", plain=True)
    edit(root, EDITS["one section"])
    assert_delta_is_the_difference(tmp_path, root)


@pytest.mark.parametrize(
    "ours",
    [
        5,
        {"deleted": 5, "documents_removed": 5, "head": 5},
        {"deleted": [5, "MEMORY.md"], "documents_removed": [{}, "identity"]},
        {"head": {"agent": 5, "created_at": None, "raw_sources": {}}},
        {"head": {"agent": {"id": "somebody else"}, "alf_version": 5, "raw_sources": [5]}},
    ],
)
def test_what_is_said_under_our_name_may_be_anything(tmp_path: Path, ours: object) -> None:
    old = built(tmp_path, "old.alf", Archive(a_record(1)))
    delta = a_delta(a_record(2, operation="create"), truekeep=ours)
    apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert_sound(tmp_path / "new.alf")
    assert {record["id"] for record in records_in(tmp_path / "new.alf")} == {an_id(1), an_id(2)}


@pytest.mark.parametrize("line", [b"not JSON\n", b'{"operation": "delete", "id": "x"}\n'])
def test_a_damaged_delta_makes_nothing(tmp_path: Path, line: bytes) -> None:
    old = built(tmp_path, "old.alf", Archive(a_record(1)))
    delta = a_delta(a_record(2, operation="create"))
    delta.entries["memory/delta.jsonl"] = line
    with pytest.raises(BadArchive, match=r"memory/delta\.jsonl:1"):
        apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert not (tmp_path / "new.alf").exists()
    assert left_over(tmp_path) == []


def test_unsafe_names_in_a_delta(tmp_path: Path) -> None:
    old = built(tmp_path, "old.alf", Archive(a_record(1)))
    delta = a_delta(a_record(2, operation="create"))
    delta.entries["raw/openclaw/../../evil.md"] = b"x"
    with pytest.raises(BadArchive, match="leads out of the folder"):
        apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    delta = a_delta(a_record(2, operation="create"))
    rows = file_lines(a_file_row("../evil.md", "raw/openclaw/ok.md", b"x"))
    delta.entries |= {"raw/openclaw/ok.md": b"x", "truekeep/files.jsonl": rows}
    with pytest.raises(BadArchive, match=r"files\.jsonl:1 lists a file whose name leads out of the folder"):
        apply(old, built(tmp_path, "d", delta), target=tmp_path / "new.alf")
    assert not (tmp_path / "new.alf").exists()


# --- Order ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """a.alf, then d1 and d2, each made since a full export of the state before; b.alf and c.alf are those."""
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    for number, (before, after) in enumerate((("a", "b"), ("b", "c")), start=1):
        edit(root, {f"memory/new{number}.md": b"## New\nText.\n"}, at_ns=LATER_NS + number * 10**9)
        make_delta(root, tmp_path / f"d{number}", tmp_path / f"{before}.alf")
        export(root, tmp_path / f"{after}.alf", base=tmp_path / f"{before}.alf")
    return tmp_path


def test_deltas_in_their_order(chain: Path) -> None:
    apply(chain / "a.alf", chain / "d1", chain / "d2", target=chain / "all.alf")
    assert_same(chain / "all.alf", chain / "c.alf")
    apply(chain / "a.alf", chain / "d1", target=chain / "one.alf")
    apply(chain / "one.alf", chain / "d2", target=chain / "two.alf")
    assert_same(chain / "two.alf", chain / "c.alf")


@pytest.mark.parametrize("names", [("a.alf", "d2"), ("a.alf", "d2", "d1"), ("c.alf", "d1")])
def test_a_delta_is_missing_or_out_of_order(chain: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(BadArchive, match=f"{names[1]} was made for another state: a delta is missing or out of order"):
        apply(*(chain / name for name in names), target=chain / "new.alf")
    assert not (chain / "new.alf").exists()


@pytest.mark.parametrize("names", [("b.alf", "d1"), ("a.alf", "d1", "d1"), ("a.alf", "d1", "d2", "d2")])
def test_a_delta_is_applied_already(chain: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(BadArchive, match=f"{names[-1]} is already applied"):
        apply(*(chain / name for name in names), target=chain / "new.alf")
    assert not (chain / "new.alf").exists()


def test_an_empty_delta_can_be_applied_again(chain: Path) -> None:
    make_delta(chain / "ws", chain / "d3", chain / "c.alf")
    apply(chain / "c.alf", chain / "d3", chain / "d3", target=chain / "new.alf")
    assert_same(chain / "new.alf", chain / "c.alf")


@pytest.mark.parametrize(
    ("at", "base", "new", "why"),
    [(4, 4, 5, ""), (0, 4, 5, ""), (4, 0, 1, ""), (4, 5, 6, "another state"), (5, 4, 5, "already applied")],
)
def test_numbers_of_another_tool(tmp_path: Path, at: int, base: int, new: int, why: str) -> None:
    archive = Archive(a_record(1))
    archive.documents["manifest.json"]["sync"] = {"last_sequence": at}
    delta = a_delta(a_record(2, operation="create"))
    delta.documents["delta-manifest.json"]["sync"] = {"base_sequence": base, "new_sequence": new}
    paths = built(tmp_path, "old.alf", archive), built(tmp_path, "d", delta)
    if not why:
        apply(*paths, target=tmp_path / "new.alf")
        return
    with pytest.raises(BadArchive, match=why):
        apply(*paths, target=tmp_path / "new.alf")


def test_a_delta_is_no_base(chain: Path) -> None:
    with pytest.raises(BadArchive, match="d1: this is a delta"):
        make_delta(chain / "ws", chain / "d3", chain / "d1")
    with pytest.raises(BadArchive, match="d1: this is a delta"):
        export(chain / "ws", chain / "new.alf", base=chain / "d1")
    assert not (chain / "d3").exists()
    assert not (chain / "new.alf").exists()


# --- Sessions -------------------------------------------------------------------------------------------------------


def test_sessions_come_along_when_asked_for(tmp_path: Path, own_home: Path) -> None:
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n"})
    place = Place(tmp_path, root, tmp_path)
    said = write_session(place_of(own_home, "claude"), dialogue("claude", "Why is it red?", LONG))
    sync(place)
    export(root, tmp_path / "without.alf")
    assert {record["namespace"] for record in records_in(tmp_path / "without.alf")} == {"curated"}
    export(root, tmp_path / "old.alf", transcripts=True)
    assert_sound(tmp_path / "old.alf")
    [session] = [record for record in records_in(tmp_path / "old.alf") if record["namespace"] == "session"]
    assert "Why is it red?" in session["content"]
    grow(said, *dialogue("claude", "And now?", "Green."))
    write_session(place_of(own_home, "codex"), dialogue("codex", "Another one?", LONG))
    sync(place)
    edit(root, {"MEMORY.md": b"## A\nc\n"})
    made = make_delta(root, tmp_path / "d", tmp_path / "old.alf", transcripts=True)
    assert (changed_in(made).created, changed_in(made).updated) == (1, 2)
    export(root, tmp_path / "new.alf", base=tmp_path / "old.alf", transcripts=True)
    apply(tmp_path / "old.alf", tmp_path / "d", target=tmp_path / "applied.alf")
    assert_same(tmp_path / "applied.alf", tmp_path / "new.alf")
    done = import_(tmp_path / "new.alf", tmp_path / "back")
    assert not done.plan.is_rebuilt
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}


PATHS = st.text(alphabet='aB9._-/ é\\"\n:', min_size=1, max_size=12) | st.sampled_from(
    ["memory/cards/a.md", "MEMORY.md", ".learnings/ERRORS.md", "a/../b", "C:x", ".git/config", "a//b", "/a", ".", ".."]
)
NUMBERS = st.integers(0, 2**63) | st.sampled_from([0, UNKNOWN_TIME, UNKNOWN_TIME - 1, -1, 10**19, 10**25])
LINES = st.builds(
    ListedFile,
    path=PATHS,
    entry=st.none() | PATHS | PATHS.map("raw/openclaw/".__add__) | PATHS.map("artifacts/".__add__),
    size=NUMBERS,
    mtime_ns=NUMBERS,
    mode=st.integers(0, 0o7777),
    sha256=st.sampled_from(["", "0" * 64, "ab" * 32, "x\u00e9"]),
    partitions=st.lists(PATHS, max_size=3).map(tuple),
)


@pytest.mark.slow
@given(LINES)
@example(ListedFile("memory/a.md", "raw/openclaw/memory/a.md", 3, 1_700_000_000 * 10**9, 0o644, "ab", ("p",)))
@example(ListedFile("a.bin", None, 3, 5, 0o644, "ab", ("p", "q")))
@settings(max_examples=300, deadline=None)
def test_a_line_of_the_file_list(file: ListedFile) -> None:
    """It comes back as it was written, or is refused because of its name."""
    line = dump_line(file.as_line())
    if unsafe_name(file.path) or (file.entry is not None and workspace_path(file.entry) != file.path):
        with pytest.raises(ValueError, match=r"^lists "):
            _parse_listed_file(line)
    else:
        expected = file._replace(mtime_ns=clamp_time(file.mtime_ns), mode=portable_mode(file.mode))
        assert _parse_listed_file(line) == expected


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b"null", b'"x"', b'{"path": "\\ud800", "entry": null}', b"[" * 5000]
)
def test_a_line_that_is_none(line: bytes) -> None:
    with pytest.raises(ValueError, match="is not a valid line"):
        _parse_listed_file(line)


@pytest.mark.slow
@given(st.from_regex(r"(?:[\w.-]{1,120}/){0,9}[\w.-]{1,120}", fullmatch=True) | PATHS)
@settings(max_examples=400, deadline=None)
def test_nothing_is_wrong_with_a_usual_name(path: str) -> None:
    if is_ordinary(path):
        assert not refusal_reason(path).startswith("the name")
