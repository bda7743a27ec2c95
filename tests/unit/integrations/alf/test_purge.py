"""Purging: nothing of what the records said is left, in no entry and in no spelling, and the rest is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.alf_builder import Archive, a_record, an_id
from tests.support.alf_places import (
    AGENT,
    SAMPLE,
    Files,
    a_workspace,
    assert_sound,
    entries_of,
    export,
    import_,
    left_over,
    look,
    make_delta,
    records_in,
    stored_forms,
    workspaces,
)
from tests.unit.integrations.alf.test_delta import a_foreign_archive, built
from truekeep.core.errors import BadInput, NotFound
from truekeep.integrations.alf.describe import record_title
from truekeep.integrations.alf.export import ExportOptions
from truekeep.integrations.alf.purge import PurgedLines, PurgeReport, identifying_lines, purge_archive
from truekeep.integrations.alf.zip_container import BadArchive

TEXT = "The code of the old safe is 48-15-16."


def purge(source: Path, target: Path, *records: str, **asked: Any) -> PurgeReport:
    return purge_archive(source, target, records, "user_request", ExportOptions(**asked))[1]


def exported(folder: Path, files: Files, **asked: Any) -> Path:
    root = a_workspace(folder / "ws", files)
    export(root, folder / "a.alf", **asked)
    return folder / "a.alf"


def find_record(archive: Path, text: str, *, runtime: str = "openclaw") -> dict[str, Any]:
    [found] = [r for r in records_in(archive) if text in r["content"] and r["source"]["runtime"] == runtime]
    return found


def assert_gone(archive: Path, text: str) -> None:
    for name, data in entries_of(archive).items():
        for form in stored_forms(text.strip()):
            assert form not in data, f"{form!r} is in {name}"


def assert_purged(archive: Path, folder: Path, text: str) -> None:
    assert_sound(archive)
    assert_gone(archive, text)
    import_(archive, folder / "back")


# --- Where it stood -------------------------------------------------------------------------------------------------


def test_a_section_goes_and_the_rest_stays(tmp_path: Path) -> None:
    memory = f"# Memory\n\n## Before\nstays\n\n## Safe\n{TEXT}\n\n## After\nstays as well\n".encode()
    archive = exported(tmp_path, {"MEMORY.md": memory, "SOUL.md": b"# Ada\n", "memory/bytes.bin": b"\x00\xff"})
    done = purge(archive, tmp_path / "b.alf", find_record(archive, TEXT)["id"])
    assert_purged(tmp_path / "b.alf", tmp_path, TEXT)
    assert entries_of(tmp_path / "b.alf")["raw/openclaw/MEMORY.md"] == (
        b"# Memory\n\n## Before\nstays\n\n## After\nstays as well\n"
    )
    assert (done.records, done.files, done.dropped) == (1, ("MEMORY.md",), ())
    before, after = find_record(archive, "## After"), find_record(tmp_path / "b.alf", "## After")
    assert before["id"] == after["id"]
    assert (before["raw_source_format"]["line_start"], after["raw_source_format"]["line_start"]) == (9, 6)
    assert entries_of(tmp_path / "b.alf")["raw/openclaw/memory/bytes.bin"] == b"\x00\xff"


def test_the_audit_record(tmp_path: Path) -> None:
    archive = exported(tmp_path, {"MEMORY.md": f"## A\n{TEXT}\n\n## B\nanother text here\n".encode()})
    first, second = find_record(archive, TEXT)["id"], find_record(archive, "another")["id"]
    purge(archive, tmp_path / "b.alf", first.upper())
    purge(tmp_path / "b.alf", tmp_path / "b.alf", second, replace=True)
    lines = entries_of(tmp_path / "b.alf")["truekeep/purges.jsonl"].splitlines()
    audits = [json.loads(line) for line in lines]
    assert [audit["record_ids"] for audit in audits] == [[first], [second]]
    for audit in audits:
        assert audit["agent_id"] == AGENT
        assert audit["reason"] == "user_request"
        assert audit["partitions_affected"] == ["memory/2026-Q1.jsonl"]
        assert audit["completed_at"] >= audit["requested_at"]
    assert_purged(tmp_path / "b.alf", tmp_path, TEXT)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n", "   \n\n"])
@pytest.mark.parametrize("path", ["MEMORY.md", "memory/active-context.md", "memory/2026-01-15.md", "memory/cards/c.md"])
def test_however_lines_end(tmp_path: Path, path: str, ends: str, tail: str) -> None:
    text = ends.join(("## Safe", "It opens so:", "", f"  {TEXT}", "and so on", "")) + tail
    other = f"Quoted:{ends}  > ## Safe\n" + "\r\n".join(("## Safe", "It opens so:", "", f"  {TEXT}", "and so on"))
    archive = exported(tmp_path, {path: text.encode(), "notes/quote.txt": other.encode(), "SOUL.md": other.encode()})
    runtime = "truekeep" if "cards" in path else "openclaw"
    record = find_record(archive, TEXT, runtime=runtime)
    done = purge(archive, tmp_path / "b.alf", record["id"])
    assert_purged(tmp_path / "b.alf", tmp_path, record["content"].replace("\r\n", "\n"))
    assert path in (*done.files, *done.dropped)


@pytest.mark.parametrize("text", ["a", "ok", "## a\nb", "---", "PIN 4821", "|a|b|", "x\n\n\ny"])
def test_short_texts_go_from_their_place(tmp_path: Path, text: str) -> None:
    """What is short could stand anywhere: it goes where the record came from, and other places keep theirs."""
    card = b"---\ntopic: A\n---\na ok b\n"
    archive = exported(
        tmp_path, {"memory/notes.md": f"  {text}  \n".encode(), "memory/cards/x.md": card, "USER.md": card}
    )
    done = purge(archive, tmp_path / "b.alf", find_record(archive, text.strip().split("\n")[0])["id"])
    assert done.dropped == ("memory/notes.md",)
    found = entries_of(tmp_path / "b.alf")
    assert "raw/openclaw/memory/notes.md" not in found
    assert found["raw/openclaw/memory/cards/x.md"] == card
    assert not [record for record in records_in(tmp_path / "b.alf") if record["content"].strip() == text]
    assert_sound(tmp_path / "b.alf")
    import_(tmp_path / "b.alf", tmp_path / "back")


def test_a_short_section(tmp_path: Path) -> None:
    archive = exported(
        tmp_path, {"MEMORY.md": b"## A\nx\n\n## B\ny\n\n## A\nx y\n", "memory/2026-01-01.md": b"## B\ny\n"}
    )
    [record] = [r for r in records_in(archive) if r["content"].strip() == "## B\ny" and r["namespace"] == "curated"]
    purge(archive, tmp_path / "b.alf", record["id"])
    assert entries_of(tmp_path / "b.alf")["raw/openclaw/MEMORY.md"] == b"## A\nx\n\n## A\nx y\n"
    assert entries_of(tmp_path / "b.alf")["raw/openclaw/memory/2026-01-01.md"] == b"## B\ny\n"
    assert_sound(tmp_path / "b.alf")


# --- Everywhere else ------------------------------------------------------------------------------------------------


def test_everywhere_it_is_quoted(tmp_path: Path) -> None:
    files = {
        "memory/notes.md": f"{TEXT}\n".encode(),
        "MEMORY.md": f"## Quote\nShe said: {TEXT} And left.\n\n## Alone\n- a\n{TEXT}\n- b\n".encode(),
        "SOUL.md": f"# Ada\nKnows that {TEXT}\n".encode(),
        "USER.md": f"# Dana\n\n## Work\n- {TEXT}\n".encode(),
        "AGENTS.md": f"## Sub-agents\n- Safe: {TEXT}\n".encode(),
        "memory/cards/c.md": f"---\ntopic: C\n---\nSee: {TEXT}\n".encode(),
        "memory/log.jsonl": (json.dumps({"text": f"é {TEXT}"}) + "\n").encode(),
        "notes/list.txt": f"1. {TEXT}\r\n2. else\r\n".encode(),
        "memory/blob.bin": b"\xff\x00" + TEXT.encode() + b"\x00",
        "memory/clean.bin": b"\xff\x00nothing",
    }
    archive = exported(tmp_path, files)
    [record] = [r for r in records_in(archive) if r["source"]["origin_file"] == "memory/notes.md"]
    done = purge(archive, tmp_path / "b.alf", record["id"])
    assert_purged(tmp_path / "b.alf", tmp_path, TEXT)
    found = entries_of(tmp_path / "b.alf")
    assert found["raw/openclaw/MEMORY.md"] == b"## Quote\n\n## Alone\n- a\n- b\n"
    assert found["artifacts/notes/list.txt"] == b"2. else\r\n"
    assert set(done.dropped) == {"memory/notes.md", "memory/blob.bin", "memory/log.jsonl"}
    assert "raw/openclaw/memory/clean.bin" in found
    assert not [record for record in records_in(tmp_path / "b.alf") if "Quote" in record["content"]]


@pytest.mark.parametrize("escape", [True, False])
def test_text_that_json_escapes(tmp_path: Path, escape: bool) -> None:
    text = 'Ünïcode "quoted" \\ back\nand a tab\there'
    quoted = json.dumps({"a": [text, {text: 1}]}, ensure_ascii=escape).encode()
    archive = exported(tmp_path, {"memory/notes.md": text.encode(), "memory/x.json": quoted, "y.json": quoted})
    purge(archive, tmp_path / "b.alf", find_record(archive, "quoted")["id"])
    assert_purged(tmp_path / "b.alf", tmp_path, text)
    assert "artifacts/y.json" not in entries_of(tmp_path / "b.alf")  # it is one line


def test_a_record_that_is_contained_in_another(tmp_path: Path) -> None:
    """The inner one is removed from the outer; with the outer go its lines, and so the inner."""
    files = {"memory/inner.md": TEXT.encode(), "memory/outer.md": f"Before.\n{TEXT}\nAfter, and more.\n".encode()}
    archive = exported(tmp_path, files)
    inner, outer = (
        next(r for r in records_in(archive) if name in r["source"]["origin_file"]) for name in ("inner", "outer")
    )
    purge(archive, tmp_path / "b.alf", inner["id"])
    assert_gone(tmp_path / "b.alf", TEXT)
    assert entries_of(tmp_path / "b.alf")["raw/openclaw/memory/outer.md"] == b"Before.\nAfter, and more.\n"
    done = purge(archive, tmp_path / "c.alf", outer["id"])
    assert_gone(tmp_path / "c.alf", f"Before.\n{TEXT}\nAfter, and more.")
    assert_gone(tmp_path / "c.alf", TEXT)
    assert done.audit["record_ids"] == sorted((inner["id"], outer["id"]))


def test_what_the_format_needs_is_not_cut(tmp_path: Path) -> None:
    """A memory may say the very moment or the very id that the archive has in its fields."""
    moment = "2026-02-10T09:30:00Z"
    archive = exported(tmp_path, {"memory/a.md": moment.encode(), "memory/b.md": AGENT.encode(), "SOUL.md": b"# Ada\n"})
    purge(archive, tmp_path / "b.alf", *(record["id"] for record in records_in(archive)))
    assert_sound(tmp_path / "b.alf")
    import_(tmp_path / "b.alf", tmp_path / "back")


# --- Records of our own ---------------------------------------------------------------------------------------------


def test_a_rule_goes_with_its_row(tmp_path: Path) -> None:
    archive = exported(tmp_path, SAMPLE)
    rule = find_record(archive, "ask Dana before", runtime="truekeep")
    done = purge(archive, tmp_path / "b.alf", rule["id"])
    found = entries_of(tmp_path / "b.alf")
    row = b"| 2 | a release | ask Dana before |\n"
    assert found["raw/openclaw/memory/gating-policies.md"] == SAMPLE["memory/gating-policies.md"].replace(row, b"")
    assert find_record(tmp_path / "b.alf", "Trigger: a push", runtime="truekeep")
    assert done.records == 1
    assert_purged(tmp_path / "b.alf", tmp_path, "| 2 | a release | ask Dana before |")


def test_a_section_of_a_plain_archive_loses_a_row(tmp_path: Path) -> None:
    """Where a section and its rows are records, as in archives of earlier versions, both lose what is purged."""
    archive = exported(tmp_path, SAMPLE, plain=True)
    section = find_record(archive, "Trigger | Action")
    done = purge(archive, tmp_path / "b.alf", section["id"])
    assert done.records == 1
    assert done.dropped == ("memory/gating-policies.md",)
    assert not any(b"ask Dana" in data for data in entries_of(tmp_path / "b.alf").values())
    assert_sound(tmp_path / "b.alf")


@pytest.mark.parametrize("scheme", ["content", "positional"])
def test_a_card_goes_with_its_file(tmp_path: Path, scheme: str) -> None:
    archive = exported(tmp_path, SAMPLE, scheme=scheme)
    card = find_record(archive, "Staging is behind a proxy", runtime="truekeep")
    done = purge(archive, tmp_path / "b.alf", card["id"])
    assert done.dropped == ("memory/cards/proxy.md",)
    found = entries_of(tmp_path / "b.alf")
    assert not any(b"Staging is behind" in data for data in found.values())
    assert not any(card["id"] in json.dumps(record) for record in records_in(tmp_path / "b.alf"))
    assert_purged(tmp_path / "b.alf", tmp_path, card["content"])


def with_facts(
    folder: Path, *facts: tuple[str, str, str], files: Files | None = None, more: str = "", mode: str = ""
) -> Path:
    root = a_workspace(folder / "ws", files or {"memory/notes.md": b"unrelated\n"})
    database = apsw.Connection(str(root / "memory" / "facts.db"))
    database.execute(mode).fetchall()
    database.execute(f"CREATE TABLE facts (entity TEXT, key TEXT, value TEXT); {more}").fetchall()
    database.executemany("INSERT INTO facts VALUES (?, ?, ?)", facts)
    database.close()
    return root


def facts_in(archive: Path, folder: Path) -> list[tuple[Any, ...]]:
    import_(archive, folder)
    database = apsw.Connection(str(folder / "memory" / "facts.db"))
    try:
        assert database.execute("PRAGMA integrity_check").get == "ok"
        return sorted(database.execute("SELECT entity, key, value FROM facts"))
    finally:
        database.close()


@pytest.mark.parametrize("mode", ["", "PRAGMA journal_mode = WAL", "PRAGMA encoding = 'UTF-16le'"])
def test_a_fact_goes_from_its_database(tmp_path: Path, mode: str) -> None:
    files = {"memory/notes.md": b"x: 48-15-16-23-42-108\nand more\n", "SOUL.md": b"# Ada\n"}
    facts = ("safe", "code", "48-15-16-23-42-108"), ("tea", "sort", "green")
    root = with_facts(tmp_path, *facts, files=files, mode=mode)
    (root / "memory" / "facts.db-journal").touch()
    export(root, tmp_path / "a.alf")
    record = find_record(tmp_path / "a.alf", "safe · code", runtime="truekeep")
    done = purge(tmp_path / "a.alf", tmp_path / "b.alf", record["id"])
    assert done.dropped == ("memory/facts.db-journal",)
    assert done.files == ("memory/facts.db", "memory/notes.md")
    assert record["id"] in done.audit["record_ids"]
    for form in ("48-15-16-23-42-108".encode(codec) for codec in ("utf-8", "utf-16-le")):
        assert not any(form in data for data in entries_of(tmp_path / "b.alf").values())
    assert find_record(tmp_path / "b.alf", "tea · sort", runtime="truekeep")
    assert facts_in(tmp_path / "b.alf", tmp_path / "back") == [("tea", "sort", "green")]
    assert_sound(tmp_path / "b.alf")


@pytest.mark.parametrize("more", ["CREATE VIRTUAL TABLE found USING fts5(value)", "CREATE TABLE log AS SELECT '{}' x"])
def test_a_database_that_cannot_be_cut_goes_along(tmp_path: Path, more: str) -> None:
    root = with_facts(tmp_path, ("safe", "code", TEXT), ("tea", "sort", "green"), more=more.format(TEXT))
    export(root, tmp_path / "a.alf")
    known = {record["id"] for record in records_in(tmp_path / "a.alf") if record["namespace"] == "facts"}
    record = find_record(tmp_path / "a.alf", TEXT, runtime="truekeep")
    done = purge(tmp_path / "a.alf", tmp_path / "b.alf", record["id"])
    assert done.dropped == ("memory/facts.db",)
    assert done.audit["record_ids"] == sorted(known)
    assert any("with its other facts" in note for note in done.notes)
    assert_purged(tmp_path / "b.alf", tmp_path, TEXT)


def test_the_audit_record_has_every_id_that_went(tmp_path: Path) -> None:
    """A card of the first generation is a record of its own and the sections that upstream makes of it."""
    text = b"---\ntopic: A\n---\n\nThe first of several lines.\n\n## B\nThe second one of them.\n"
    archive = exported(tmp_path, {"memory/cards/a.md": text, "MEMORY.md": b"## X\ny\n"}, scheme="positional")
    card = find_record(archive, "first of several", runtime="truekeep")
    done = purge(archive, tmp_path / "b.alf", card["id"])
    gone = {r["id"] for r in records_in(archive)} - {r["id"] for r in records_in(tmp_path / "b.alf")}
    assert len(gone) == 3
    assert done.audit["record_ids"] == sorted(gone)


def test_records_that_say_it_too_go(tmp_path: Path) -> None:
    others = a_record(2, content=f"She\nsays {TEXT}"), a_record(3, content="another thing", entities=[])
    archive = built(tmp_path, "a.alf", Archive(a_record(1, content=TEXT), *others))
    done = purge(archive, tmp_path / "b.alf", an_id(1))
    assert done.audit["record_ids"] == [an_id(1), an_id(2)]
    assert [record["id"] for record in records_in(tmp_path / "b.alf")] == [an_id(3)]
    assert_gone(tmp_path / "b.alf", TEXT)


# --- Of other tools -------------------------------------------------------------------------------------------------


def test_an_archive_of_another_tool(tmp_path: Path) -> None:
    archive = a_foreign_archive()
    archive.records[0]["content"] = TEXT
    archive.entries |= {
        "raw/hermes/notes.json": json.dumps({"said": TEXT}).encode(),
        "raw/hermes/state.db": b"\x00\xff" + TEXT.encode(),
        "strange/thing.json": json.dumps({"a": TEXT}).encode(),
        "artifacts/0001": f"skill: {TEXT}".encode(),
        "raw/openclaw/MEMORY.md": f"# M\n{TEXT}\n".encode(),
    }
    archive.documents["manifest.json"] |= {"notes": f"about {TEXT}", "x": {TEXT: [TEXT]}}
    source = built(tmp_path, "a.alf", archive)
    purge(source, tmp_path / "b.alf", an_id(1))
    assert_gone(tmp_path / "b.alf", TEXT)
    assert_sound(tmp_path / "b.alf")
    found = entries_of(tmp_path / "b.alf")
    assert found["raw/hermes/state.db"] == b""
    assert "artifacts/0001" not in found
    assert json.loads(found["raw/hermes/notes.json"]) == {"said": "[purged]"}
    [_, large] = json.loads(found["attachments.json"])["attachments"]
    assert large["source_path"] == "film.mp4"
    assert json.loads(found["manifest.json"])["layers"]["strange"] == {"file": "strange/thing.json", "more": True}


# --- Line by line ----------------------------------------------------------------------------------

SECRET = "password of the box is hunter2-very-secret-phrase"
CAFE = 'Zoë keeps the "spare key" at 3/4 Café Road, 日本'


def test_lines_go_wherever_they_are_said(tmp_path: Path) -> None:
    files = {
        "memory/cards/box.md": f"---\ntopic: The box in the cellar\ncreated: 2026-01-05\n---\n\n{SECRET}\n".encode(),
        "memory/2026-01-15.md": f"## Day\n- {SECRET}\n- tea\n".encode(),
        "memory/2026-01-16.md": f"## Day\n- {SECRET}\n- more tea\n".encode(),
        "memory/cards/tea.md": b"---\ntopic: Tea\ncreated: 2026-01-05\n---\n\nGreen.\n",
        "MEMORY.md": b"## Cards\n- [The box in the cellar](memory/cards/box.md)\n- [Tea](memory/cards/tea.md)\n",
    }
    root = with_facts(tmp_path, ("box", "note", SECRET), ("tea", "sort", "green"), files=files)
    export(root, tmp_path / "a.alf")
    [card] = [r for r in records_in(tmp_path / "a.alf") if SECRET in r["content"] and r["namespace"] == "cards"]
    done = purge(tmp_path / "a.alf", tmp_path / "b.alf", card["id"])
    assert_purged(tmp_path / "b.alf", tmp_path, SECRET)
    assert_gone(tmp_path / "b.alf", "The box in the cellar")
    found = entries_of(tmp_path / "b.alf")
    assert found["raw/openclaw/memory/2026-01-15.md"] == b"## Day\n- tea\n"
    assert found["raw/openclaw/MEMORY.md"] == b"## Cards\n- [Tea](memory/cards/tea.md)\n"
    assert found["raw/openclaw/memory/cards/tea.md"] == files["memory/cards/tea.md"]
    assert done.files == ("MEMORY.md", "memory/2026-01-15.md", "memory/2026-01-16.md", "memory/facts.db")
    days = {r["id"] for r in records_in(tmp_path / "a.alf") if "2026-01-1" in r["source"]["origin_file"]}
    assert days <= set(done.audit["record_ids"])
    assert facts_in(tmp_path / "b.alf", tmp_path / "facts") == [("tea", "sort", "green")]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("---\ntopic: A topic of some length\ntags: [one, two, three]\nrepository: github.com/acme/shop\n---\nx", 1),
        ("---\ncreated: 2026-01-05T10:00:00Z\nwriter: somebody-with-a-name\n---\n2026-01-05T10:00:00Z", 0),
        ("| Trigger | Action |\n|---------|--------|\n| a push here | lint first |", 1),
        ("```python with a long info\n--------------------\n====================", 0),
        (AGENT, 0),
        ("4815-1623-4215-1623-4215", 1),
        ("  > - [x] ## sixteen letters it is", 1),
    ],
)
def test_what_a_text_is_known_by(text: str, lines: int) -> None:
    assert len(identifying_lines(text)) == lines


def test_lines_that_contain_it_go() -> None:
    purged = PurgedLines([f'{SECRET}\nKept "so" there, Zoë.'])
    for copy in (SECRET, f"> {SECRET}", f"1. **{SECRET}**!", f"x{SECRET}", json.dumps('Kept "so" there, Zoë.')):
        assert purged.remove(f"one\n{copy}\r\ntwo") == ("one\ntwo", [2])
    assert purged.remove("one\ntwo\nthree", [2]) == ("one\nthree", [2])
    assert purged.is_in_bytes([SECRET[:9].encode(), SECRET[9:].encode()])
    assert not PurgedLines(["short"]).is_in("short")


def test_names_of_the_format_stay(tmp_path: Path) -> None:
    names = "- raw_source_format\n- memory/2026-01-15.md\n- application/octet-stream\n- artifact_size_threshold\n"
    files = {"memory/notes.md": names.encode(), "memory/2026-01-15.md": b"## Day\nQuiet.\n", "x": b"\x01"}
    archive = exported(tmp_path, files)
    purge(archive, tmp_path / "b.alf", find_record(archive, "raw_source_format")["id"])
    assert find_record(tmp_path / "b.alf", "Quiet.") == find_record(archive, "Quiet.")
    assert_sound(tmp_path / "b.alf")


def title(content: str) -> str:
    record: Any = a_record(1, content=content)
    return record_title(record)


def test_a_card_is_known_by_its_topic() -> None:
    said = "---\ncategory: setup\ntopic: 'The proxy: where'\n---\n\nBody.\n"
    assert title(said) == "The proxy: where"
    assert title("---\ncategory: x\n---\n\nBody.\n") == "Body."
    assert title("\n---\n") == "---"


# --- What cannot be done --------------------------------------------------------------------------------------------


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    archive = exported(tmp_path, SAMPLE)
    for given_ in ("nonsense", an_id(5)):
        with pytest.raises(NotFound, match="the archive has no record") as error:
            purge(archive, tmp_path / "b.alf", records_in(archive)[0]["id"], given_)
        assert "--records" in error.value.hint
    assert not (tmp_path / "b.alf").exists()
    assert left_over(tmp_path) == []


def test_a_delta_is_not_purged(tmp_path: Path) -> None:
    archive = exported(tmp_path, SAMPLE)
    (tmp_path / "ws" / "MEMORY.md").write_bytes(b"## New\ntext\n")
    make_delta(tmp_path / "ws", tmp_path / "d", archive)
    with pytest.raises(BadArchive, match="this is a delta"):
        purge(tmp_path / "d", tmp_path / "b.alf", records_in(tmp_path / "d")[0]["id"])


def test_in_place(tmp_path: Path) -> None:
    archive = exported(tmp_path, SAMPLE)
    record = find_record(archive, "Vim is the editor")
    with pytest.raises(BadInput, match="already exists"):
        purge(archive, archive, record["id"])
    purge(archive, archive, record["id"], replace=True)
    assert_purged(archive, tmp_path, record["content"])
    assert left_over(tmp_path) == []


def test_a_delta_after_a_purge(tmp_path: Path) -> None:
    """The workspace still has it, so the next delta brings it back: that is said, and it works."""
    archive = exported(tmp_path, SAMPLE)
    record = find_record(archive, "Vim is the editor")
    purge(archive, tmp_path / "b.alf", record["id"])
    make_delta(tmp_path / "ws", tmp_path / "d", tmp_path / "b.alf")
    assert [json.loads(line)["path"] for line in entries_of(tmp_path / "d")["truekeep/files.jsonl"].splitlines()] == [
        "MEMORY.md"
    ]
    assert find_record(tmp_path / "d", "Vim is the editor")["operation"] == "create"


def test_large_files_that_are_no_text_pass_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.integrations.alf import purge as room

    monkeypatch.setattr(room, "MAX_TEXT_BYTES", 1_000)
    padding = b"x" * 300_000
    files = {"memory/notes.md": TEXT.encode(), "memory/large.txt": padding[:262_130] + TEXT.encode() + padding}
    archive = exported(tmp_path, {**files, "memory/other.txt": padding})
    done = purge(archive, tmp_path / "b.alf", find_record(archive, TEXT)["id"])
    assert done.dropped == ("memory/large.txt", "memory/notes.md")
    assert_purged(tmp_path / "b.alf", tmp_path, TEXT)


# --- Any of it ------------------------------------------------------------------------------------------------------


def plain_lines(text: str) -> set[str]:
    """Lines that anybody would call the text's own: long enough, and neither of a table nor of frontmatter."""
    bare = (line.strip().lstrip("#- ") for line in text.split("\n"))
    return {line for line in bare if len(line) >= 16 and "|" not in line and ": " not in line}


@pytest.mark.slow
@given(files=workspaces(), chosen=st.data(), scheme=st.sampled_from(("content", "positional")))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_purge_leaves_no_trace(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], chosen: st.DataObject, scheme: str
) -> None:
    base = tmp_path_factory.mktemp("purge")
    archive = exported(base, files, scheme=scheme)
    known = records_in(archive)
    if not known:
        return
    picked = chosen.draw(st.lists(st.sampled_from(range(len(known))), min_size=1, max_size=3, unique=True))
    done = purge(archive, base / "b.alf", *(known[at]["id"] for at in picked))
    assert_sound(base / "b.alf")
    left = records_in(base / "b.alf")
    ids = {record["id"] for record in left}
    for at in picked:
        assert known[at]["id"] not in ids
        content = known[at]["content"]
        if identifying_lines(content):
            assert_gone(base / "b.alf", content)
        for line in identifying_lines(content) | plain_lines(content):
            assert_gone(base / "b.alf", line)
    assert len(done.audit["record_ids"]) == done.records
    assert len(left) == len(known) - done.records
    import_(base / "b.alf", base / "back")
    untouched = {path: file for path, file in look(base / "ws").items() if path not in (*done.files, *done.dropped)}
    now = look(base / "back")
    assert {path: now.get(path) for path in untouched if path in now} == {
        p: f for p, f in untouched.items() if p in now
    }
    assert left_over(base) == []
