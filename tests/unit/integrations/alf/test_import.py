"""Importing: the same bytes and times come back, nothing goes where it should not, a failure leaves no half file."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.alf_builder import AGENT as BUILT
from tests.support.alf_builder import Archive, a_file_row, a_record, file_lines, pack
from tests.support.alf_places import (
    AGENT,
    SAMPLE,
    a_workspace,
    carried,
    entries_of,
    export,
    import_,
    left_over,
    look,
    verdict_of,
    workspaces,
    write_tree,
)
from tests.unit.integrations.alf.test_export import files_of_at_most
from truekeep.core.errors import BadInput, BadSetup, EditedSince, NotCanonical, StorageFailed, TruekeepError
from truekeep.integrations.alf import import_ as import_module
from truekeep.integrations.alf.archive_file import open_archive
from truekeep.integrations.alf.validate import check_archive
from truekeep.integrations.alf.zip_container import BadArchive
from truekeep.memory.staging import MemoryFiles
from truekeep.workspace.workspace import Workspace

ROOT = Path(__file__).parents[4]


def an_archive(folder: Path, raw: dict[str, bytes], *, listed: bool = True, rows: bytes | None = None) -> Path:
    """An archive with these raw files, as truekeep would have made it, or as another tool would."""
    archive = Archive(a_record(1))
    archive.entries |= {f"raw/openclaw/{path}": data for path, data in raw.items()}
    if listed:
        made = [a_file_row(path, f"raw/openclaw/{path}", data) for path, data in raw.items()]
        archive.entries["truekeep/files.jsonl"] = file_lines(*made)
    if rows is not None:
        archive.entries["truekeep/files.jsonl"] = rows
    path = folder / "made.alf"
    path.write_bytes(archive.packed())
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Everything beside the workspace: it must be untouched at the end."""
    folder = tmp_path / "outside"
    write_tree(folder, {"private.md": b"not for anybody\n", "sub/deep.md": b"nor this\n"}, agent=None)
    before = look(folder, skip=())
    yield folder
    assert look(folder, skip=()) == before


# --- The way back ---------------------------------------------------------------------------------------------------


def test_everything_comes_back(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    (root / "memory" / "bytes.bin").chmod(0o755)
    (root / "USER.md").chmod(0o600)
    (root / "SOUL.md").chmod(0o664)
    export(root, tmp_path / "a.alf")
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    before, after = look(root), look(tmp_path / "back")
    assert before.pop("big.bin")
    assert before.pop("SOUL.md")._replace(mode=0o644) == after.pop("SOUL.md")
    assert after == before
    assert [line.path for line in done.plan.referenced] == ["big.bin"]
    assert (tmp_path / "back" / ".alf-agent-id").read_text() == f"{AGENT}\n"
    with Workspace.open(tmp_path / "back") as workspace:
        assert workspace.is_canonical


@pytest.mark.slow
@given(files=workspaces())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_export_then_import_is_the_identity(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    base = tmp_path_factory.mktemp("identity")
    root = a_workspace(base / "ws", files)
    made = export(root, base / "a.alf")
    omitted = {item.path for item in made.omitted}
    import_(base / "a.alf", base / "back" / "ws")
    wanted = {path: file for path, file in look(root).items() if path in carried(files) and path not in omitted}
    assert look(base / "back" / "ws") == wanted
    if not omitted:
        export(base / "back" / "ws", base / "b.alf")
        assert (base / "b.alf").read_bytes() == (base / "a.alf").read_bytes()
    assert left_over(base) == []


def test_again_and_again(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {path: data for path, data in SAMPLE.items() if path != "big.bin"})
    export(root, tmp_path / "a.alf")
    import_(tmp_path / "a.alf", tmp_path / "back")
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert (done.written, done.replaced) == (0, 0)
    export(tmp_path / "back", tmp_path / "b.alf")
    names = (entries_of(tmp_path / "a.alf"), entries_of(tmp_path / "b.alf"))
    assert {name for name in names[0] if names[0][name] != names[1].get(name)} <= {"manifest.json", "identity.json"}


def test_into_the_workspace_it_came_from(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    before = look(root, skip=())
    done = import_(tmp_path / "a.alf", root, replace=True)
    assert (done.written, done.replaced) == (0, 0)
    shutil.rmtree(root / "memory")
    done = import_(tmp_path / "a.alf", root)
    assert done.written == sum(path.startswith("memory/") for path in SAMPLE)
    after = look(root)
    assert {path: file for path, file in before.items() if path in after} == after


def test_long_names_come_back(tmp_path: Path) -> None:
    names = {f"memory/{'n' * 252}.md"[:258]: b"x", f"memory/{'日' * 83}.md": b"y", f"memory/{'日' * 84}md": b"z"}
    root = a_workspace(tmp_path / "ws", names)
    export(root, tmp_path / "a.alf")
    import_(tmp_path / "a.alf", tmp_path / "back")
    assert look(tmp_path / "back") == look(root)
    (root / f"memory/{'日' * 83}.md").write_bytes(b"changed")
    import_(tmp_path / "a.alf", root, replace=True)
    assert (root / f"memory/{'日' * 83}.md").read_bytes() == b"y"
    assert left_over(tmp_path) == []


# --- What is there already ------------------------------------------------------------------------------------------


def test_nothing_that_differs_is_overwritten(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    (root / "MEMORY.md").write_bytes(b"mine\n")
    (root / "SOUL.md").unlink()
    before = look(root, skip=())
    with pytest.raises(
        BadInput, match=r"1 file is different in the workspace, such as MEMORY\.md; nothing was written"
    ):
        import_(tmp_path / "a.alf", root)
    assert look(root, skip=()) == before
    done = import_(tmp_path / "a.alf", root, dry_run=True)
    assert {file.listed.path: file.state for file in done.plan.files if file.state != "same"} == {
        "MEMORY.md": "different",
        "SOUL.md": "new",
    }
    assert look(root, skip=()) == before


def test_keep_leaves_mine(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    (root / "MEMORY.md").write_bytes(b"mine\n")
    (root / "SOUL.md").unlink()
    done = import_(tmp_path / "a.alf", root, keep=True)
    assert (done.written, done.replaced) == (1, 0)
    assert (root / "MEMORY.md").read_bytes() == b"mine\n"
    assert (root / "SOUL.md").read_bytes() == SAMPLE["SOUL.md"]


def test_replace_keeps_the_old_bytes_in_the_ledger(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    before = look(root)
    export(root, tmp_path / "a.alf")
    mine = {"MEMORY.md": b"## Mine\nwritten since\n", "memory/bytes.bin": b"\x00\xff mine", "memory/empty.md": b"no\n"}
    for path, data in mine.items():
        (root / path).write_bytes(data)
    done = import_(tmp_path / "a.alf", root, replace=True)
    assert done.replaced == 3
    assert look(root) == before
    with Workspace.open(root) as workspace:
        [entry] = [entry for entry, _ in workspace.history.entries() if entry.verb == "imported"]
        assert entry.note == "a.alf"
        workspace.history.undo(entry.id)
    for path, data in mine.items():
        assert (root / path).read_bytes() == data


def test_what_is_the_same_gets_its_time_back_with_replace(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    before = look(root)
    export(root, tmp_path / "a.alf")
    os.utime(root / "MEMORY.md", ns=(1, 1))
    import_(tmp_path / "a.alf", root)
    assert (root / "MEMORY.md").stat().st_mtime_ns == 1
    import_(tmp_path / "a.alf", root, replace=True)
    assert look(root) == before


def test_replacing_more_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module, "_MAX_BATCH_FILES", 3)
    monkeypatch.setattr(import_module, "_MAX_BATCH_BYTES", 4_000)
    files = {f"memory/n{n}.md": f"## {n}\n".encode() + b"x" * (900 * n) for n in range(11)}
    root = a_workspace(tmp_path / "ws", files)
    before = look(root)
    export(root, tmp_path / "a.alf")
    for path in files:
        (root / path).write_bytes(b"other")
    assert import_(tmp_path / "a.alf", root, replace=True).replaced == 11
    assert look(root) == before


def test_what_the_ledger_cannot_keep_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module, "FILE_LIMIT", 1_000)
    root = a_workspace(tmp_path / "ws", {"memory/a.md": b"a", "memory/b.bin": b"b" * 1_500})
    export(root, tmp_path / "a.alf")
    (root / "memory" / "a.md").write_bytes(b"mine")
    (root / "memory" / "b.bin").write_bytes(b"mine")
    before = look(root, skip=())
    with pytest.raises(BadInput, match=r"memory/b\.bin is too large"):
        import_(tmp_path / "a.alf", root, replace=True)
    assert look(root, skip=()) == before


def test_an_archive_of_another_agent(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    other = a_workspace(tmp_path / "other", {"MEMORY.md": b"theirs\n"}, agent="11111111-2222-4333-8444-555555555555")
    export(other, tmp_path / "a.alf")
    before = look(root, skip=())
    with pytest.raises(BadInput, match="belongs to agent"):
        import_(tmp_path / "a.alf", root)
    assert look(root, skip=()) == before
    import_(tmp_path / "a.alf", root, replace=True)
    assert (root / ".alf-agent-id").read_text() == "11111111-2222-4333-8444-555555555555\n"


@pytest.mark.parametrize("given_", ["11111111111141118111111111111111", BUILT.upper(), f"urn:uuid:{BUILT}"])
def test_an_id_is_the_same_in_every_spelling(tmp_path: Path, given_: str) -> None:
    archive = Archive().put("manifest.json:agent.id", given_)
    archive.entries["raw/openclaw/MEMORY.md"] = b"m"
    (tmp_path / "a.alf").write_bytes(archive.packed())
    import_(tmp_path / "a.alf", tmp_path / "back")
    assert (tmp_path / "back" / ".alf-agent-id").read_text() == f"{BUILT}\n"
    import_(tmp_path / "a.alf", tmp_path / "back")


@pytest.mark.parametrize("given_", [None, 5, "", "nobody\n../x"])
def test_an_archive_of_nobody(tmp_path: Path, given_: object) -> None:
    archive = Archive().put("manifest.json:agent.id", given_)
    archive.entries["raw/openclaw/MEMORY.md"] = b"m"
    (tmp_path / "a.alf").write_bytes(archive.packed())
    with pytest.raises(BadArchive, match="no valid agent id"):
        import_(tmp_path / "a.alf", tmp_path / "back")
    assert not (tmp_path / "back").exists()
    import_(tmp_path / "a.alf", tmp_path / "back", salvage=True)
    assert (tmp_path / "back" / "MEMORY.md").read_bytes() == b"m"
    assert not (tmp_path / "back" / ".alf-agent-id").exists()


# --- Whose workspace it is ------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_workspace_becomes_one(tmp_path: Path) -> None:
    export(a_workspace(tmp_path / "ws"), tmp_path / "a.alf")
    mine = tmp_path / "mine"
    write_tree(mine, {"letters/one.md": b"mine"}, agent=None)
    import_(tmp_path / "a.alf", mine)
    assert (mine / "letters" / "one.md").read_bytes() == b"mine"
    assert (mine / "MEMORY.md").read_bytes() == SAMPLE["MEMORY.md"]
    assert not (mine / "memory" / "handoff-inbox").exists()


def test_a_workspace_of_another_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(a_workspace(tmp_path / "ws"), tmp_path / "a.alf")
    other = a_workspace(tmp_path / "other", {"memory/x.md": b"x"})
    before = look(other, skip=())
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    for asked in ({}, {"replace": True}, {"keep": True}, {"salvage": True}):
        with pytest.raises(NotCanonical):
            import_(tmp_path / "a.alf", other, **asked)
    assert look(other, skip=()) == before


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    export(a_workspace(tmp_path / "ws"), tmp_path / "a.alf")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(BadSetup, match="is not a folder"):
        import_(tmp_path / "a.alf", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_bare_workspace_has_nothing_of_its_own(tmp_path: Path) -> None:
    made = Workspace.init(tmp_path / "ws", is_bare=True)
    assert {path.name for path in (tmp_path / "ws").iterdir()} == {".truekeep"}
    assert not made.is_adopted
    again = Workspace.init(tmp_path / "ws", is_bare=True)
    assert again.is_repeated
    Workspace.init(tmp_path / "ws")
    assert {path.name for path in (tmp_path / "ws").iterdir()} == {".truekeep"}


# --- Names that lead elsewhere --------------------------------------------------------------------------------------

ESCAPES = (
    "../outside/private.md",
    "memory/../../outside/private.md",
    "/etc/passwd",
    "//etc/passwd",
    "C:/Windows/x.md",
    "c:x.md",
    "memory\\..\\..\\outside\\private.md",
    "..\\outside\\private.md",
    "memory//x.md",
    "./x.md",
    "memory/./x.md",
    "memory/..",
    "..",
)
BELONGINGS = (
    ".truekeep/host",
    ".truekeep/config.toml",
    ".TrueKeep/host",
    "memory/.truekeep/x.md",
    ".git/hooks/post-checkout",
    ".GIT/config",
    "memory/.Git/hooks/x",
    ".openclaw/openclaw.json",
    "node_modules/x/index.js",
    ".MEMORY.md.truekeep-tmp",
)


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("is_listed", [True, False])
def test_an_entry_cannot_lead_out(tmp_path: Path, outside: Path, name: str, is_listed: bool) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", name: b"bad\n"}, listed=is_listed)
    with pytest.raises(TruekeepError):
        import_(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    done = import_(path, tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}
    assert any("the name" in problem.message for problem in done.problems) or done.plan.of("blocked")


@pytest.mark.parametrize("name", BELONGINGS)
def test_what_belongs_to_other_programs_is_not_written(tmp_path: Path, name: str) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", name: b"bad\n"})
    root = a_workspace(tmp_path / "back", {}, agent=None)
    before = look(root, skip=())
    with pytest.raises(BadInput, match="belongs to another program; nothing was written"):
        import_(path, root)
    assert look(root, skip=()) == before
    import_(path, root, salvage=True)
    found = look(root, skip=())
    history = {name for name in found if "ledger" in name or name == ".truekeep/imported.jsonl"}
    assert set(found) - set(before) - history == {"MEMORY.md", ".alf-agent-id"}
    assert b"bad" not in (root / ".truekeep" / "host").read_bytes()
    assert b"bad" not in (root / ".alf-agent-id").read_bytes()


def test_files_of_the_formats_own_tool_are_passed_over(tmp_path: Path) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", ".alf-agent-id": b"bad\n", ".alf-sync-log.md": b"log\n"})
    import_(path, tmp_path / "back")
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}
    assert (tmp_path / "back" / ".alf-agent-id").read_text() == f"{BUILT}\n"


@pytest.mark.parametrize("name", [*ESCAPES, *BELONGINGS])
def test_the_list_of_files_is_not_believed(tmp_path: Path, outside: Path, name: str) -> None:
    rows = file_lines(a_file_row(name, "raw/openclaw/MEMORY.md", b"good\n"), a_file_row(name, name, b"good\n"))
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"}, listed=False, rows=rows)
    with pytest.raises(BadArchive, match=r"truekeep/files\.jsonl:1 "):
        import_(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    done = import_(path, tmp_path / "back", salvage=True)
    assert [problem.place for problem in done.problems] == ["truekeep/files.jsonl:1", "truekeep/files.jsonl:2"]
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}


def test_a_file_that_is_listed_and_not_there(tmp_path: Path) -> None:
    rows = file_lines(*(a_file_row(name, f"raw/openclaw/{name}", b"good\n") for name in ("MEMORY.md", "memory/x.md")))
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"}, rows=rows)
    with pytest.raises(BadArchive, match=r"lists raw/openclaw/memory/x\.md, which is not in the archive"):
        import_(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    done = import_(path, tmp_path / "back", salvage=True)
    assert [problem.place for problem in done.problems] == ["truekeep/files.jsonl:2"]
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}


def test_a_damaged_file_is_found_before_anything_is_written(tmp_path: Path) -> None:
    rows = file_lines(a_file_row("memory/x.md", "raw/openclaw/memory/x.md", b"other\n"))
    path = an_archive(tmp_path, {"memory/x.md": b"good\n"}, rows=rows)
    for asked in ({}, {"dry_run": True}):
        with pytest.raises(BadArchive, match="does not have the digest that the archive lists") as caught:
            import_(path, tmp_path / "back", **asked)
        assert "--salvage" in caught.value.hint
        assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("name", [*ESCAPES, *BELONGINGS])
def test_a_record_cannot_name_its_file(tmp_path: Path, outside: Path, name: str) -> None:
    origin = name if name.endswith(".md") else f"{name}.md"
    record = a_record(1, source={"runtime": "other", "origin_file": origin}, namespace="../../x")
    (tmp_path / "a.alf").write_bytes(Archive(record).packed())
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert done.plan.is_rebuilt
    odd = {"...md", "memory/...md", ".MEMORY.md.truekeep-tmp.md"}  # strange, and nobody else's
    assert set(look(tmp_path / "back")) <= {"memory/x.md", *odd}


@pytest.mark.parametrize("name", [*ESCAPES, *BELONGINGS])
def test_an_artifact_cannot_name_its_place(tmp_path: Path, outside: Path, name: str) -> None:
    archive = Archive(a_record(1))
    item = {"id": BUILT, "filename": "x", "media_type": "text/plain", "size_bytes": 1, "archive_path": "artifacts/x"}
    item |= {"hash": {"algorithm": "sha256", "value": ""}, "source_path": name, "remote_ref": None}
    archive.documents["attachments.json"] = {"attachments": [item]}
    archive.documents["manifest.json"]["layers"]["attachments"] = {"count": 1, "file": "attachments.json"}
    archive.entries["artifacts/x"] = b"x"
    (tmp_path / "a.alf").write_bytes(archive.packed())
    import_(tmp_path / "a.alf", tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) <= {"x", "memory/default.md"}


def test_a_link_in_the_archive(tmp_path: Path, outside: Path) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"})
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("raw/openclaw/memory/link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, str(outside))
        archive.writestr("raw/openclaw/memory/link/private.md", b"bad")
    with pytest.raises(BadArchive, match="is a symbolic link"):
        import_(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    import_(path, tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) == {"MEMORY.md", "memory/link/private.md"}


def test_links_in_the_workspace_are_not_written_through(tmp_path: Path, outside: Path) -> None:
    files = {"MEMORY.md": b"good\n", "private.md": b"bad\n", "memory/deep.md": b"bad\n", "memory/sub/x.md": b"bad\n"}
    path = an_archive(tmp_path, files)
    root = a_workspace(tmp_path / "back", {}, agent=None)
    (root / "memory").symlink_to(outside / "sub")
    (root / "private.md").symlink_to(outside / "private.md")
    before = look(root, skip=())
    for asked in ({}, {"replace": True}, {"keep": True}):
        with pytest.raises(BadInput, match="3 files are blocked"):
            import_(path, root, **asked)
        assert look(root, skip=()) == before
    done = import_(path, root, salvage=True, replace=True)
    assert {file.listed.path: file.why for file in done.plan.of("blocked")} == {
        "memory/deep.md": "a symbolic link is in its path",
        "memory/sub/x.md": "a symbolic link is in its path",
        "private.md": "a symbolic link is in its place",
    }
    assert (root / "MEMORY.md").read_bytes() == b"good\n"


def test_a_link_that_appears_after_the_plan(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", "memory/new.md": b"bad\n"})
    root = a_workspace(tmp_path / "back", {"keep.md": b"x"}, agent=None)
    real = MemoryFiles.take_in

    def take_in(vault: MemoryFiles, *arguments: Any) -> int:
        (root / "memory").symlink_to(outside)
        return real(vault, *arguments)

    monkeypatch.setattr(MemoryFiles, "take_in", take_in)
    with pytest.raises(BadSetup, match="is a symlink"):
        import_(path, root)
    assert not (root / "MEMORY.md").exists()
    assert left_over(tmp_path) == []


def test_a_file_that_appears_after_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = an_archive(tmp_path, {"a.md": b"good\n", "b.md": b"good\n", "c.md": b"good\n"})
    root = a_workspace(tmp_path / "back", {}, agent=None)
    real = MemoryFiles._write_incoming

    def write(vault: MemoryFiles, file: Any, *, sync: bool) -> None:
        real(vault, file, sync=sync)
        (root / "b.md").write_bytes(b"mine\n")

    monkeypatch.setattr(MemoryFiles, "_write_incoming", write)
    with pytest.raises(EditedSince, match=r"b\.md was created"):
        import_(path, root)
    assert (root / "b.md").read_bytes() == b"mine\n"
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "folder", "fifo"])
def test_what_stands_in_the_way(tmp_path: Path, kind: str) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", "memory/x.md": b"x\n"})
    root = a_workspace(tmp_path / "back", {}, agent=None)
    if kind == "file":
        (root / "memory").write_bytes(b"mine")
    elif kind == "folder":
        (root / "memory" / "x.md").mkdir(parents=True)
    else:
        (root / "memory").mkdir()
        os.mkfifo(root / "memory" / "x.md")
    with pytest.raises(BadInput, match="1 file is blocked"):
        import_(path, root, replace=True)
    assert not (root / "MEMORY.md").exists()
    import_(path, root, salvage=True)
    assert (root / "MEMORY.md").exists()


def test_a_file_and_a_folder_at_once(tmp_path: Path) -> None:
    path = an_archive(tmp_path, {"memory/a": b"x", "memory/a/b.md": b"y", "MEMORY.md": b"good\n"})
    with pytest.raises(BadInput, match="both a file and a folder"):
        import_(path, tmp_path / "back")
    import_(path, tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) == {"MEMORY.md", "memory/a/b.md"}


# --- Damage ---------------------------------------------------------------------------------------------------------


def broken(path: Path, name: str) -> None:
    """Change a byte in the packed data of an entry."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    at = info.header_offset + 30 + len(name.encode()) + info.compress_size // 2
    data[at] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["raw/openclaw/MEMORY.md", "raw/openclaw/memory/x.md", "artifacts/a.txt"])
def test_a_damaged_file(tmp_path: Path, name: str) -> None:
    text = b"some text that is long enough to be packed and then to be broken\n" * 20
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": text, "memory/x.md": text + b"x", "a.txt": text + b"a"})
    export(root, tmp_path / "a.alf")
    broken(tmp_path / "a.alf", name)
    with pytest.raises(BadArchive) as error:
        import_(tmp_path / "a.alf", tmp_path / "back")
    assert error.value.problem.entry == name
    assert look(tmp_path / "back") == {}
    done = import_(tmp_path / "a.alf", tmp_path / "back", salvage=True)
    assert {problem.entry for problem in done.problems} == {name}
    assert done.written == 2
    wanted = {path: file for path, file in look(root).items() if not name.endswith(path)}
    assert look(tmp_path / "back") == wanted


def test_damage_is_found_before_anything_is_replaced(tmp_path: Path) -> None:
    text = b"some text that is long enough to be packed and then to be broken\n" * 20
    root = a_workspace(tmp_path / "ws", {f"memory/{n}.md": text + b"%d" % n for n in range(5)})
    export(root, tmp_path / "a.alf")
    broken(tmp_path / "a.alf", "raw/openclaw/memory/4.md")
    for n in range(5):
        (root / f"memory/{n}.md").write_bytes(b"mine")
    before = look(root, skip=())
    with pytest.raises(BadArchive):
        import_(tmp_path / "a.alf", root, replace=True)
    assert look(root, skip=()) == before
    done = import_(tmp_path / "a.alf", root, replace=True, salvage=True)
    assert done.replaced == 4
    assert (root / "memory/4.md").read_bytes() == b"mine"


def test_other_bytes_than_the_list_says(tmp_path: Path) -> None:
    rows = file_lines(
        a_file_row("MEMORY.md", "raw/openclaw/MEMORY.md", b"good\n"),
        a_file_row("memory/x.md", "raw/openclaw/memory/x.md", b"as it was"),
    )
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", "memory/x.md": b"tampered!"}, rows=rows)
    assert verdict_of(path) == "invalid"
    with pytest.raises(BadArchive, match="does not have the digest that the archive lists"):
        import_(path, tmp_path / "back")
    assert look(tmp_path / "back") == {}
    assert left_over(tmp_path) == []
    import_(path, tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}


SAID = b'"path": "MEMORY.md", "entry": "raw/openclaw/MEMORY.md", "sha256": ""'


@pytest.mark.parametrize(
    "rows",
    [
        b'{%s, "size": -1, "mtime_ns": 1e99}\n' % SAID,
        b'{%s, "size": 5, "mtime_ns": %d}\n' % (SAID, 10**60),
        b'{%s, "size": 5, "mtime_ns": -%d}\n' % (SAID, 10**60),
        b'{%s, "size": 5, "mtime_ns": 5, "mode": -1, "partitions": [[]]}\n' % SAID,
    ],
)
def test_a_list_of_files_that_exaggerates(tmp_path: Path, rows: bytes) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"}, rows=rows)
    import_(path, tmp_path / "back")
    target = tmp_path / "back" / "MEMORY.md"
    assert target.read_bytes() == b"good\n"
    assert stat.S_IMODE(target.stat().st_mode) & 0o022 == 0


@pytest.mark.parametrize(
    "rows",
    [
        b"not JSON\n",
        b'{"path": 5, "entry": null, "size": 1, "mtime_ns": 1, "sha256": ""}\n',
        b'{%s, "size": 5, "mtime_ns": 5, "mode": 65535, "partitions": null}\n' % SAID,
        b"\xff\xfe\n",
        b"[]\n",
    ],
)
def test_a_list_of_files_that_makes_no_sense(tmp_path: Path, rows: bytes) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"}, rows=rows)
    with pytest.raises(BadArchive, match=r"truekeep/files\.jsonl:1 "):
        import_(path, tmp_path / "back")
    done = import_(path, tmp_path / "back", salvage=True)
    assert [problem.place for problem in done.problems] == ["truekeep/files.jsonl:1"]
    target = tmp_path / "back" / "MEMORY.md"
    assert target.read_bytes() == b"good\n"
    assert stat.S_IMODE(target.stat().st_mode) & 0o022 == 0


@pytest.mark.parametrize("name", ["manifest.json", "truekeep/files.jsonl", "attachments.json"])
def test_a_damaged_document(tmp_path: Path, name: str) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    broken(tmp_path / "a.alf", name)
    if name != "attachments.json":  # of our own archives it is not needed
        with pytest.raises(BadArchive):
            import_(tmp_path / "a.alf", tmp_path / "back")
        assert not (tmp_path / "back").exists()
    done = import_(tmp_path / "a.alf", tmp_path / "back", salvage=True)
    assert done.written == len(SAMPLE) - 1
    assert (tmp_path / "back" / "MEMORY.md").read_bytes() == SAMPLE["MEMORY.md"]


BAD_LINES = (b"not JSON\n", b'{"id": "x"}\n', b"\xff\xfe\n", b'{"content": NaN}\n', b'{"id":1,"id":2}\n', b"[1]\n")


@pytest.mark.parametrize("bad", BAD_LINES)
def test_bad_lines_among_good_ones(tmp_path: Path, bad: bytes) -> None:
    """An archive of another runtime is rebuilt from its records: one that is none must be said."""
    archive = Archive(a_record(1, content="the first"), a_record(2, content="the second"))
    lines = archive.parts()["memory/2026-Q1.jsonl"].splitlines(keepends=True)
    archive.entries["memory/2026-Q1.jsonl"] = lines[0] + bad + lines[1]
    (tmp_path / "a.alf").write_bytes(archive.packed())
    with pytest.raises(BadArchive) as error:
        import_(tmp_path / "a.alf", tmp_path / "back")
    assert error.value.problem.place == "memory/2026-Q1.jsonl:2"
    assert not (tmp_path / "back").exists()
    done = import_(tmp_path / "a.alf", tmp_path / "back", salvage=True)
    assert [problem.place for problem in done.problems] == ["memory/2026-Q1.jsonl:2"]
    assert (tmp_path / "back" / "memory" / "default.md").read_text() == "the first\n\nthe second\n"


def test_salvage_keeps_the_records_that_validate_lets_pass(tmp_path: Path) -> None:
    lines = [json.dumps(a_record(1, content="kept")), json.dumps(a_record(2, content="bad", temporal={}))]
    archive = Archive(a_record(1), a_record(2))
    name = next(name for name in archive.parts() if name.startswith("memory/") and name.endswith(".jsonl"))
    path = tmp_path / "a.alf"
    path.write_bytes(pack({**archive.parts(), name: "\n".join(lines).encode()}))
    with open_archive(path) as reader:
        wrong = {problem.place for problem in check_archive(reader) if problem.level == "unreadable"}
    done = import_(path, tmp_path / "back", salvage=True)
    assert {problem.place for problem in done.problems} == wrong == {f"{name}:2"}
    assert "bad" not in "".join(file.read_text() for file in (tmp_path / "back").rglob("*.md"))


def test_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    export(a_workspace(tmp_path / "ws"), tmp_path / "a.alf")
    data = (tmp_path / "a.alf").read_bytes()
    for size in (0, 1, 50, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.alf").write_bytes(data[:size])
        for asked in ({}, {"salvage": True}):
            why = {0: "it is empty", 1: "not a readable ZIP archive"}.get(
                size, "its end is missing: the copy was cut short"
            )
            with pytest.raises(BadArchive, match=why):
                import_(tmp_path / "cut.alf", tmp_path / "back", **asked)
    assert not (tmp_path / "back").exists()


@pytest.mark.slow
def test_a_bomb(tmp_path: Path) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n", "memory/bomb": bytes(400 << 20)}, listed=False)
    assert path.stat().st_size < 1 << 20
    for asked in ({}, {"salvage": True}, {"dry_run": True}):
        with pytest.raises(BadArchive, match="times its size") as error:
            import_(path, tmp_path / "back", **asked)
    assert "--large" in error.value.hint
    assert not (tmp_path / "back").exists()


def test_entries_twice(tmp_path: Path) -> None:
    path = an_archive(tmp_path, {"MEMORY.md": b"good\n"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("raw/openclaw/SOUL.md", b"one")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("raw/openclaw/SOUL.md", b"two")
    with pytest.raises(BadArchive, match="twice"):
        import_(path, tmp_path / "back")
    import_(path, tmp_path / "back", salvage=True)
    assert set(look(tmp_path / "back")) == {"MEMORY.md"}


def test_a_delta_is_no_archive(tmp_path: Path) -> None:
    from tests.support.alf_builder import Delta

    (tmp_path / "d").write_bytes(Delta().packed())
    with pytest.raises(BadArchive, match="this is a delta"):
        import_(tmp_path / "d", tmp_path / "back")
    both = Delta()
    both.entries["manifest.json"] = both.parts()["delta-manifest.json"]
    (tmp_path / "d").write_bytes(both.packed())
    with pytest.raises(BadArchive, match="this is a delta"):
        import_(tmp_path / "d", tmp_path / "back")


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    (tmp_path / "z").write_bytes(pack({"hello.txt": b"x"}))
    for name, what in (
        ("x", "not a readable ZIP"),
        ("z", r"no manifest\.json"),
        ("missing", "No such"),
        ("", "directory"),
    ):
        with pytest.raises(BadInput, match=what):
            import_(tmp_path / name, tmp_path / "back")
    assert not (tmp_path / "back").exists()


# --- Other runtimes -------------------------------------------------------------------------------------------------


def test_an_archive_of_another_runtime_is_rebuilt(tmp_path: Path) -> None:
    def record(number: int, content: str, namespace: str, **more: Any) -> dict[str, Any]:
        source = {"runtime": "zeroclaw", **({"origin_file": more.pop("file")} if "file" in more else {})}
        return a_record(number, content=content, namespace=namespace, source=source, **more)

    archive = Archive(
        record(1, "## Curated\none", "curated", file="core.md"),
        record(2, "a day", "daily", temporal={"created_at": "2026-01-15T23:30:00-05:00"}),
        record(3, "of its file", "other", file="memory/named.md"),
        record(4, "by its namespace", "Custom: Läbel"),
        record(5, "gone", "other", status="deleted"),
        record(6, "over", "other", status="superseded"),
        record(7, "kept", "other", status="archived"),
    )
    archive.documents["identity.json"] = {"prose": {"soul": "# Zed\n", "identity_profile": "   "}}
    archive.documents["principals.json"] = {"principals": [{"profile": {"prose": {"user_profile": "# Dana\n"}}}]}
    layers = archive.documents["manifest.json"]["layers"]
    layers |= {
        "identity": {"version": 1, "file": "identity.json"},
        "principals": {"count": 1, "file": "principals.json"},
    }
    archive.entries["raw/zeroclaw/brain.db"] = b"theirs"
    (tmp_path / "a.alf").write_bytes(archive.packed())
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert done.plan.is_rebuilt
    assert done.plan.notes == ("2 deleted or superseded records were not restored",)
    back = tmp_path / "back"
    assert {path: (back / path).read_text() for path in look(back)} == {
        "MEMORY.md": "## Curated\none\n",
        "SOUL.md": "# Zed\n",
        "USER.md": "# Dana\n",
        "memory/2026-01-16.md": "a day\n",
        "memory/named.md": "of its file\n",
        "memory/custom-l-bel.md": "by its namespace\n",
        "memory/other.md": "kept\n",
    }
    again = import_(tmp_path / "a.alf", back)
    assert again.written == 0


def test_artifacts_of_another_tool_come_back_where_they_were(tmp_path: Path) -> None:
    archive = Archive(a_record(1))
    common = {"media_type": "text/plain", "hash": {"algorithm": "sha256", "value": ""}, "remote_ref": None}
    archive.documents["attachments.json"] = {
        "attachments": [
            {"id": BUILT, "filename": "SKILL.md", "source_path": "skills/x/SKILL.md", "archive_path": "artifacts/0001"}
            | {"size_bytes": 5, **common},
            {"id": BUILT, "filename": "film.mp4", "source_path": "film.mp4", "archive_path": None}
            | {"size_bytes": 10**9, **common},
        ]
    }
    archive.documents["manifest.json"]["layers"]["attachments"] = {"count": 2, "file": "attachments.json"}
    archive.entries["artifacts/0001"] = b"skill"
    (tmp_path / "a.alf").write_bytes(archive.packed())
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert (tmp_path / "back" / "skills" / "x" / "SKILL.md").read_bytes() == b"skill"
    assert [line.path for line in done.plan.referenced] == ["film.mp4"]


def test_our_archives_are_never_rebuilt(tmp_path: Path) -> None:
    export(a_workspace(tmp_path / "ws", {"a.txt": b"x"}), tmp_path / "a.alf")
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert not done.plan.is_rebuilt
    assert set(look(tmp_path / "back")) == {"a.txt"}


# --- A disk that says no --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 10, 100, 1_000])
def test_no_room(tmp_path: Path, size: int) -> None:
    """Every file that would be larger is refused by the kernel itself."""
    files = {"MEMORY.md": b"m" * 5, "memory/a.md": b"a" * 50, "memory/b.md": b"b" * 500, "memory/c.md": b"c" * 5_000}
    export(a_workspace(tmp_path / "ws", files), tmp_path / "a.alf")
    root = a_workspace(tmp_path / "back", {"mine.md": b"mine"}, agent=None)
    before = look(root, skip=())
    with files_of_at_most(size), pytest.raises(StorageFailed):
        import_(tmp_path / "a.alf", root)
    after = look(root)
    assert {path: file for path, file in after.items() if path in before} == {"mine.md": before["mine.md"]}
    assert set(after) == {"mine.md"}
    assert left_over(tmp_path) == []
    import_(tmp_path / "a.alf", root)
    assert set(look(root)) == {"mine.md", *files}


def run_crash(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tests.support.crash_alf", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["before", "after", "once-ENOSPC", "once-EIO", "stay-ENOSPC", "stay-EIO"])
@pytest.mark.parametrize("scenario", ["export", "import", "replace"])
def test_stopped_at_every_call(tmp_path: Path, scenario: str, mode: str) -> None:
    """Killed or refused at any call that changes the disk: files are as before or as after; the next run ends it."""
    memory = Path("/dev/shm")  # a kill loses nothing that was written, so a disk would add only time
    base = Path(tempfile.mkdtemp(prefix="truekeep-alf-", dir=memory if os.access(memory, os.W_OK) else tmp_path))
    try:
        found = run_crash(str(base / "crash"), scenario, mode)
    finally:
        shutil.rmtree(base)
    assert found["problems"] == []
    assert found["points"] >= 20
