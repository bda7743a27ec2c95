"""Repairs: only the span changes, and only where the new place is sure; what `verify --fix` writes, undo takes back."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, a_card, a_document_handoff, run_cli, tree
from tests.support.histories import NAME, History, git
from tests.support.memories import remember
from truekeep.core import file_io
from truekeep.core.errors import EditedSince, TruekeepError
from truekeep.maintenance.repair import Repair
from truekeep.memory.staging import Staging
from truekeep.memory.transaction import MemoryTransaction
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.question import Question
from truekeep.verify.results import CheckedMemory
from truekeep.verify.text_edits import apply_repairs, plan_repairs, respelled, without_gone
from truekeep.verify.verdict import Verdict, confirmed, gone, moved
from truekeep.workspace.workspace import Workspace

# --- Pure -------------------------------------------------------------------------------------------------------------


def verdicts(text: str, places: Mapping[str, str], *, lost: tuple[str, ...] = ()) -> list[Verdict]:
    """A verdict for each claim of a text: moved to its new place, gone, or confirmed."""
    found = []
    for claim in extract_claims(text).claims:
        question = Question(claim, "memory/cards/a.md", None)
        if claim.text in lost:
            found.append(gone(question, "removed", "not there"))
        elif claim.text in places:
            is_symbol = claim.kind in ("symbol", "method")
            found.append(moved(question, "defined-elsewhere" if is_symbol else "renamed", "", places[claim.text]))
        else:
            found.append(confirmed(question, "exists", "there"))
    return found


def repaired(text: str, places: Mapping[str, str]) -> str:
    return apply_repairs(text, plan_repairs(text, verdicts(text, places)))


@pytest.mark.parametrize(
    ("text", "places", "wanted"),
    [
        ("See `src/a.py`.", {"src/a.py": "lib/b.py"}, "See `lib/b.py`."),
        ("See src/a.py, now.", {"src/a.py": "lib/b.py"}, "See lib/b.py, now."),
        ("[it](src/a.py#top)", {"src/a.py": "lib/b.py"}, "[it](lib/b.py#top)"),
        ("| `src/a.py` | x |", {"src/a.py": "lib/b.py"}, "| `lib/b.py` | x |"),
        ("`src/a.py` and `src/a.py`", {"src/a.py": "lib/b.py"}, "`lib/b.py` and `lib/b.py`"),
        ("`src/a.py` `src/aa.py`", {"src/a.py": "lib/long/b.py"}, "`lib/long/b.py` `src/aa.py`"),
        # the way it was written
        ("`./src/a.py`", {"./src/a.py": "lib/b.py"}, "`./lib/b.py`"),
        ("`/src/a.py`", {"/src/a.py": "lib/b.py"}, "`/lib/b.py`"),
        ("`src/app/` is it", {"src/app/": "lib/core"}, "`lib/core/` is it"),
        ("`./src/app/` is it", {"./src/app/": "lib/core"}, "`./lib/core/` is it"),
        ("`src\\app\\a.py`", {"src\\app\\a.py": "lib/core/b.py"}, "`lib\\core\\b.py`"),
        ("`util.py` helps", {"util.py": "src/core/tools.py"}, "`tools.py` helps"),
        # lines
        ("`src/a.py:12`", {"src/a.py:12": "src/a.py:15"}, "`src/a.py:15`"),
        ("`./src/a.py:12`", {"./src/a.py:12": "src/a.py:15"}, "`./src/a.py:15`"),
        ("`src/a.py:12`", {"src/a.py:12": "lib/b.py:3"}, "`lib/b.py:3`"),
        ("`./src/a.py:12`", {"./src/a.py:12": "lib/b.py:3"}, "`./lib/b.py:3`"),
        ("`src/a.py:12-20`", {"src/a.py:12-20": "src/a.py:15-23"}, "`src/a.py:15-23`"),
        ("`src/a.py:12–20`", {"src/a.py:12–20": "src/a.py:15-23"}, "`src/a.py:15–23`"),
        ("`src/a.py:12..20`", {"src/a.py:12..20": "src/a.py:15-23"}, "`src/a.py:15..23`"),
        ("`src/a.py#L12`", {"src/a.py#L12": "src/a.py:15"}, "`src/a.py#L15`"),
        ("`src/a.py#L12-L20`", {"src/a.py#L12-L20": "src/a.py:15-23"}, "`src/a.py#L15-L23`"),
        ("[it](src/a.py#L12-L20)", {"src/a.py#L12-L20": "lib/b.py:1-9"}, "[it](lib/b.py#L1-L9)"),
        ("line 120 of `src/a.py`", {"120": "src/a.py:99"}, "line 99 of `src/a.py`"),
        ("`src/a.py`, lines 3 to 9", {"3 to 9": "src/a.py:13-19"}, "`src/a.py`, lines 13 to 19"),
        (
            "`src/a.py`, line 3",
            {"src/a.py": "lib/b.py", "3": "lib/b.py:13"},
            "`lib/b.py`, line 13",
        ),
        # others
        ("`dist/app-CQnl8oWA.js`", {"dist/app-CQnl8oWA.js": "dist/app-XyZ12abQ.js"}, "`dist/app-XyZ12abQ.js`"),
        ("on port 5204 here", {"5204": "5300"}, "on port 5300 here"),
        ("`localhost:5204`", {"5204": "5300"}, "`localhost:5300`"),
        # a symbol's new place is not its name
        ("`load_all()` loads", {"load_all": "lib/b.py:3"}, "`load_all()` loads"),
    ],
)
def test_only_the_span_changes(text: str, places: dict[str, str], wanted: str) -> None:
    assert repaired(text, places) == wanted


def test_a_column_goes_with_its_line() -> None:
    assert repaired("`src/a.py:12:7`", {"src/a.py:12:7": "src/a.py:15"}) in ("`src/a.py:15`", "`src/a.py:15:7`")


class TestSymbolsTakeTheirPathAlong:
    def test_when_everything_said_of_it_went(self) -> None:
        text = "`load_all` is defined in `src/a.py`."
        assert repaired(text, {"load_all": "lib/b.py:3"}) == "`load_all` is defined in `lib/b.py`."

    def test_a_node_id(self) -> None:
        assert repaired("`src/a.py::load_all`", {"load_all": "lib/b.py:3"}) == "`lib/b.py::load_all`"

    def test_not_when_another_stayed(self) -> None:
        text = "`src/a.py` defines `load_all` (and `src/a.py` defines `save_all`)."
        assert repaired(text, {"load_all": "lib/b.py:3"}) == text

    def test_not_to_two_places(self) -> None:
        text = "`src/a.py` has `load_all` and `src/a.py` has `save_all`"
        assert repaired(text, {"load_all": "lib/b.py:3", "save_all": "lib/c.py:3"}) == text

    def test_not_for_another_line_of_the_memory(self) -> None:
        text = "`load_all` is in `src/a.py`.\n\n`src/a.py` is large.\n"
        assert repaired(text, {"load_all": "lib/b.py:3"}) == "`load_all` is in `lib/b.py`.\n\n`src/a.py` is large.\n"


def test_a_text_that_changed_meanwhile_is_left_alone() -> None:
    text = "See `src/a.py`."
    found = verdicts(text, {"src/a.py": "lib/b.py"})
    assert plan_repairs("Look: `src/a.py`.", found) == []


def test_nothing_but_moved_is_repaired() -> None:
    text = "See `src/a.py` and `src/b.py`."
    assert plan_repairs(text, verdicts(text, {}, lost=("src/a.py",))) == []


def test_a_move_to_where_it_is_makes_no_edit() -> None:
    assert plan_repairs("`src/a.py:12`", verdicts("`src/a.py:12`", {"src/a.py:12": "src/a.py:12"})) == []


@pytest.mark.parametrize(
    ("old", "name", "place", "wanted"),
    [
        ("a.py", "a.py", "b.py", "b.py"),
        ("src/a.py", "src/a.py", "b.py", "b.py"),
        ("./a.py", "a.py", "src/b.py", "./src/b.py"),
        pytest.param("a/", "a", "b/c", "c/"),
    ],
)
def test_respelled(old: str, name: str, place: str, wanted: str) -> None:
    assert respelled(old, name, place) == wanted


PIECES = st.sampled_from(
    [
        *("`src/a.py`", "`src/a.py:3-9`", "src/b/c.ts", "`load_all()`", " in ", "`Foo.bar`", "\n", "- ", "é🙂 ", "| "),
        *(
            "port 5204 ",
            "[x](docs/a.md)",
            "`./x/`",
            "line 12 of `src/a.py`",
            " was removed",
            "`",
            "\r\n",
            "We chose it. ",
        ),
    ]
)
PLACES = st.sampled_from(["z", "lib/b.py", "lib/b.py:44", "lib/b.py:44-50", "8080", "a b/c", "ü/🙂.py:1"])


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.lists(PIECES, max_size=15).map("".join), st.lists(PLACES, min_size=1, max_size=5))
def test_what_is_outside_the_spans_stays_as_it_is(text: str, places: list[str]) -> None:
    found = []
    for number, claim in enumerate(extract_claims(text).claims):
        question = Question(claim, "a.md", None)
        found.append(moved(question, "defined-elsewhere", "", places[number % len(places)]))
    edits = plan_repairs(text, found)
    spans = [(edit.start, edit.end) for edit in edits]
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    pattern, at = "", 0
    for edit in edits:
        assert edit.new != text[edit.start : edit.end]
        pattern += re.escape(text[at : edit.start]) + re.escape(edit.new)
        at = edit.end
    assert re.fullmatch(pattern + re.escape(text[at:]), apply_repairs(text, edits)) is not None


class TestWithoutGone:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("It is good. See `src/x.py` for it. It is well.\n", "It is good. It is well.\n"),
            ("- `src/x.py` does it\n- `src/a.py` stays\n", "- `src/a.py` stays\n"),
            ("- One. See `src/x.py`. Two.\n", "- One. Two.\n"),
            (
                "| a | b |\n|---|---|\n| `src/x.py` | 1 |\n| `src/a.py` | 2 |\n",
                "| a | b |\n|---|---|\n| `src/a.py` | 2 |\n",
            ),
            ("First.\n\n`src/x.py` only.\n\nLast.\n", "First.\n\nLast.\n"),
            ("1. Do `src/x.py`! Then rest.\n", "1. Then rest.\n"),
            ("All is well in `src/a.py`.\n", "All is well in `src/a.py`.\n"),
        ],
    )
    def test_sentences_items_and_rows_go(self, text: str, wanted: str) -> None:
        assert without_gone(text, verdicts(text, {}, lost=("src/x.py",))) == wanted

    def test_a_sentence_that_began_on_the_line_above_goes_whole(self) -> None:
        text = "It is good. The thing that does it all\nis `src/x.py` and nothing else. It is well.\n"
        assert without_gone(text, verdicts(text, {}, lost=("src/x.py",))) == "It is good.\nIt is well.\n"

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            pytest.param(
                "- First.\n- The thing that does it all\n  is `src/x.py` alone. It is\n  well.\n- Last.\n",
                "- First.\n- It is\n  well.\n- Last.\n",
                id="the mark of an item stays with what is left of it",
            ),
            pytest.param("Back: `src/x.py`\nFront: `src/a.py`\n", "Front: `src/a.py`\n", id="one thing on each line"),
            pytest.param(
                "> It is good. All of it is done by\n> `src/x.py`, which is fine and long enough to be wrapped, and\n"
                "> Postgres. It is well.\n",
                "> It is good.\n> It is well.\n",
                id="wrapped before a capital",
            ),
            pytest.param("It has tools, e.g. `src/x.py`. Good.\n", "Good.\n", id="no end of a sentence"),
            pytest.param("Run:\n\n```sh\npython src/x.py\n```\n\nDone.\n", "Run:\n\nDone.\n", id="an emptied fence"),
            pytest.param(
                "```sh\npython src/x.py\npython src/a.py\n```\n", "```sh\npython src/a.py\n```\n", id="half a fence"
            ),
            pytest.param(
                "```\n```\n\n\n\n`src/x.py` is it.\n\nEnd.\n\n\n", "```\n```\n\n\n\nEnd.\n\n\n", id="other blanks stay"
            ),
        ],
    )
    def test_what_is_around_it_stays_in_shape(self, text: str, wanted: str) -> None:
        assert without_gone(text, verdicts(text, {}, lost=("src/x.py",))) == wanted


# --- In a workspace ---------------------------------------------------------------------------------------------------

TOOLS = "def slug(text):\n    return text.lower()\n\n\ndef words(text):\n    return text.split()\n"
TODAY = NOW.date().isoformat()


@pytest.fixture
def app(place: Place) -> Place:
    build(place)
    return place


def build(place: Place) -> None:
    """A repository in which files and symbols moved, and some are gone."""
    history = History()
    history.commit(
        "2026-01-05",
        {
            "src/old.py": TOOLS,
            "src/dead.py": "DEAD = 'nobody misses it'\n",
            "src/part.py": "def leaves():\n    return 1\n",
        },
    )
    history.commit("2026-03-05", {"src/dead.py": None}, renames={"src/old.py": "lib/new.py"})
    history.commit(
        "2026-05-05",
        {
            "lib/new.py": "import re\n\n\n" + TOOLS,
            "src/part.py": "X = 1\n",
            "src/rest.py": "def leaves():\n    return 1\n",
        },
    )
    history.write(place.repo)


def build_carts(place: Place) -> None:
    """A repository in which a file was renamed and then lost one of its two functions."""
    history = History()
    carts = "def load_cart():\n    return 1\n\n\ndef merge_carts():\n    return 2\n"
    history.commit("2026-01-05", {"app/carts.py": carts})
    history.commit("2026-03-05", {}, renames={"app/carts.py": "app/baskets.py"})
    history.commit("2026-03-06", {"app/baskets.py": carts.partition("\n\n\n")[0] + "\n"})
    history.write(place.repo)


def note(place: Place, body: str, name: str = "note.md", **keys: str) -> Path:
    keys = {"repository": NAME, "updated": "2026-02-01", **keys}
    return remember(place, f"memory/cards/{name}", a_card(name.removesuffix(".md"), body, **keys))


def fix(place: Place, *files: str, dry_run: bool = False) -> tuple[list[Repair], list[str]]:
    with place.open() as workspace:
        checked = workspace.verification.verify(files, system=False)
        return workspace.verification.repair(checked, dry_run=dry_run)


class TestFix:
    def test_only_the_span_and_the_day_change(self, app: Place) -> None:
        path = note(
            app, "See `src/old.py` \t and `./src/old.py:5`,  ~odd~ spacing kept.  \n\n\n* x\n", created="2026-01-31"
        )
        before = path.read_text()
        fix(app)
        wanted = before.replace("`src/old.py`", "`lib/new.py`").replace("./src/old.py:5", "./lib/new.py:8")
        assert path.read_text() == wanted.replace("updated: 2026-02-01", f"updated: {TODAY}")

    def test_in_fences_tables_links_and_lists(self, app: Place) -> None:
        body = "```sh\npython src/old.py\n```\n\n| `src/old.py` | x |\n\n- [old](src/old.py)\n1. src/old.py\n"
        path = note(app, body)
        fix(app)
        assert body.replace("src/old.py", "lib/new.py") in path.read_text()

    def test_a_symbol_takes_its_path_along(self, app: Place) -> None:
        path = note(app, "`leaves()` is defined in `src/part.py`.")
        fix(app)
        assert "`leaves()` is defined in `src/rest.py`." in path.read_text()

    def test_one_entry_for_each_file_that_history_shows_and_undo_takes_back(self, app: Place) -> None:
        first = note(app, "See `src/old.py` and again `src/old.py`.", "a.md")
        second = note(app, "See `src/old.py`.", "b.md")
        before = first.read_bytes(), second.read_bytes()
        fix(app)
        after = first.read_bytes(), second.read_bytes()
        with app.open() as workspace:
            entries = [entry for entry, _ in workspace.history.entries() if entry.verb == "repaired"]
            assert sorted(entry.paths for entry in entries) == [("memory/cards/a.md",), ("memory/cards/b.md",)]
            assert all("src/old.py → lib/new.py" in entry.note for entry in entries)
            for entry in entries:
                workspace.history.undo(entry.id)
        assert (first.read_bytes(), second.read_bytes()) == before
        with app.open() as workspace:
            for entry in [entry for entry, _ in workspace.history.entries() if entry.verb == "undone"]:
                workspace.history.undo(entry.id)
        assert (first.read_bytes(), second.read_bytes()) == after

    def test_an_edit_in_the_very_moment_stays_and_the_others_are_repaired(
        self, app: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = note(app, "See `src/old.py`.", "a.md"), note(app, "See `src/old.py`.", "b.md")
        commit = MemoryTransaction.commit

        def faster(books: MemoryTransaction, staging: Staging, *given: Any, **more: Any) -> Any:
            if "memory/cards/a.md" in staging.paths():
                first.write_text(first.read_text() + "\nA person was faster.\n")
            return commit(books, staging, *given, **more)

        monkeypatch.setattr(MemoryTransaction, "commit", faster)
        _, done = fix(app)
        assert "A person was faster." in first.read_text()
        assert "`src/old.py`" in first.read_text()
        assert any("edited meanwhile" in line for line in done)
        assert "`lib/new.py`" in second.read_text()

    def test_run_twice_is_once(self, app: Place) -> None:
        note(app, "See `src/old.py`, `src/old.py:5` and `src/dead.py`.")
        fix(app)
        once = tree(app.workspace)
        with app.open() as workspace:
            entries = len(list(workspace.history.entries()))
        _, done = fix(app)
        assert done == []
        assert tree(app.workspace) == once
        with app.open() as workspace:
            assert len(list(workspace.history.entries())) == entries

    def test_dry_run_writes_nothing(self, app: Place) -> None:
        note(app, "See `src/old.py`. See `src/dead.py`.")
        before = tree(app.workspace)
        repairs, done = fix(app, dry_run=True)
        assert [edit.new for repair in repairs for edit in repair.edits] == ["lib/new.py"]
        assert repairs[0].draft is not None
        assert done == []
        assert tree(app.workspace) == before

    @pytest.mark.parametrize(
        ("before", "after"),
        [(b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"\xef\xbb\xbf", b"\r\n")],
        ids=["CRLF", "BOM", "both"],
    )
    def test_newlines_and_a_mark_stay_as_they_are(self, app: Place, before: bytes, after: bytes) -> None:
        path = note(app, "Long ago.\n\nSee `src/old.py`.\n")
        path.write_bytes(before + path.read_bytes().replace(b"\n", after))
        wanted = path.read_bytes().replace(b"src/old.py", b"lib/new.py").replace(b"2026-02-01", TODAY.encode())
        fix(app)
        assert path.read_bytes() == wanted

    def test_a_card_without_a_day_gets_one(self, app: Place) -> None:
        path = note(app, "See `src/old.py`.", updated="")
        path.write_text(path.read_text().replace("updated: \n", ""))
        fix(app)
        assert "lib/new.py" in path.read_text()
        assert f"updated: {TODAY}\n" in path.read_text()

    def test_a_card_without_frontmatter(self, app: Place) -> None:
        path = remember(app, "memory/cards/bare.md", "See `src/old.py`.\n")
        with app.open() as workspace:
            workspace.verification.repair(workspace.verification.verify(["bare.md"], repository=app.repo, system=False))
        assert path.read_text() == "See `lib/new.py`.\n"

    def test_an_edit_meanwhile_is_kept(self, app: Place) -> None:
        path = note(app, "See `src/old.py`.")
        with app.open() as workspace:
            checked = workspace.verification.verify(system=False)
            path.write_text(path.read_text().replace("See", "Look at"))
            workspace.verification.repair(checked)
        assert "Look at `src/old.py`." in path.read_text()

    def test_an_edit_meanwhile_is_told(self, app: Place) -> None:
        path = note(app, "See `src/old.py`.")
        with app.open() as workspace:
            checked = workspace.verification.verify(system=False)
            path.write_text(path.read_text().replace("See", "Look at"))
            repairs, done = workspace.verification.repair(checked)
        assert "memory/cards/note.md" in " ".join((*done, *(line for repair in repairs for line in repair.left)))

    def test_confirmed_changed_and_unverifiable_are_left_alone(self, app: Place) -> None:
        path = note(
            app, "`words()` in `lib/new.py`, `other_words()`, https://example.com and commit 0123456789.", updated=TODAY
        )
        before = path.read_bytes()
        assert fix(app) == ([], [])
        assert path.read_bytes() == before

    def test_no_notes_about_the_past(self, app: Place) -> None:
        path = note(app, "See `src/old.py`.")
        fix(app)
        assert not re.search(r"formerly|previously|src/old", path.read_text())

    def test_documents_are_repaired_too(self, app: Place) -> None:
        app.leave(
            a_document_handoff("### Names\nSlugs are made in `lib/new.py`.\nAll is well."), "2026-11-10-0900-a.md"
        )
        app.ingest()
        git(app.repo, "mv", "lib/new.py", "lib/newer.py")
        git(app.repo, "commit", "-q", "-m", "again", day="2026-11-14")
        fix(app)
        text = (app.workspace / "TOOLS.md").read_text()
        assert "`lib/newer.py`" in text
        assert "updated" not in text

    def test_a_repaired_line_of_a_document_keeps_its_repository(self, app: Place) -> None:
        app.leave(
            a_document_handoff("### Names\nSlugs are made in `lib/new.py`.\nAll is well."), "2026-11-10-0900-a.md"
        )
        app.ingest()
        git(app.repo, "mv", "lib/new.py", "lib/newer.py")
        git(app.repo, "commit", "-q", "-m", "again", day="2026-11-14")
        fix(app)
        with app.open() as workspace:
            (checked,) = workspace.verification.verify(system=False)
            lines = workspace.history.blame("TOOLS.md")
        assert {item.claim.text: item.verdict for item in checked.verdicts} == {"lib/newer.py": "confirmed"}
        assert [line.entry.verb for line in lines if line.entry] == ["routed", "repaired", "routed"]
        assert [line.source.origin.repository for line in lines if line.source] == [NAME] * 3

    def test_what_is_gone_from_a_document_is_left_to_a_person(self, app: Place) -> None:
        app.leave(
            a_document_handoff("### Names\nSlugs are made in `lib/new.py`.\nAll is well."), "2026-11-10-0900-a.md"
        )
        app.ingest()
        before = (app.workspace / "TOOLS.md").read_bytes()
        git(app.repo, "rm", "-q", "lib/new.py")
        git(app.repo, "commit", "-q", "-m", "away", day="2026-11-14")
        repairs, done = fix(app)
        assert done == []
        assert "TOOLS.md" in repairs[0].left[0]
        assert "lib/new.py" in repairs[0].left[0]
        assert app.drafts() == []
        assert (app.workspace / "TOOLS.md").read_bytes() == before

    def test_files_outside_the_workspace_are_never_written(self, app: Place, tmp_path: Path) -> None:
        file = tmp_path / "AGENTS.md"
        file.write_text("See `src/old.py`.\n")
        with app.open() as workspace:
            checked = workspace.verification.verify([str(file)], repository=app.repo, system=False)
            assert checked[0].count("moved") == 1
            assert workspace.verification.repair(checked)[1] == []
        assert file.read_text() == "See `src/old.py`.\n"

    def test_a_card_behind_a_symlink_is_not_written_through(self, app: Place, tmp_path: Path) -> None:
        path = note(app, "See `src/old.py`.")
        target = tmp_path / "elsewhere.md"
        os.replace(path, target)
        path.symlink_to(target)
        before = target.read_bytes()
        with app.open() as workspace, suppress(TruekeepError):
            workspace.verification.repair(workspace.verification.verify(["note.md"], system=False))
        assert target.read_bytes() == before

    def test_a_repair_does_not_hide_that_something_else_changed(self, app: Place) -> None:
        (app.repo / "lib" / "new.py").write_text(
            "import re\n\n\n" + TOOLS.replace("text.split()", "re.split(' ', text)")
        )
        git(app.repo, "commit", "-q", "-a", "-m", "another way", day="2026-06-01")
        note(app, "`words()` splits; `leaves()` is defined in `src/part.py`.", updated="2026-04-01")
        told = []
        for _ in range(2):
            with app.open() as workspace:
                (checked,) = workspace.verification.verify(system=False)
                workspace.verification.repair([checked])
            told.append({verdict.claim.text: verdict.verdict for verdict in checked.verdicts})
        assert told == [
            {"words": "changed", "leaves": "moved", "src/part.py": "confirmed"},
            {"words": "changed", "leaves": "confirmed", "src/rest.py": "confirmed"},
        ]

    def test_verified_again_it_is_confirmed(self, app: Place) -> None:
        note(app, "`words()` is in `src/old.py`, at `src/old.py:5`.")
        fix(app)
        with app.open() as workspace:
            (checked,) = workspace.verification.verify(system=False)
        assert {verdict.claim.text: verdict.verdict for verdict in checked.verdicts} == {
            "words": "confirmed",
            "lib/new.py": "confirmed",
            "lib/new.py:8": "confirmed",
        }


class TestDrafts:
    def test_gone_becomes_a_draft_that_can_be_approved(self, app: Place) -> None:
        path = note(app, "Words are split.\n\n- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        _, done = fix(app)
        (draft,) = app.drafts()
        assert draft.stem in done[0]
        assert "src/dead.py" in path.read_text()  # nothing is removed without a person
        with app.open() as workspace:
            (waiting,) = workspace.review.drafts()
            assert [code for code, _ in waiting.reasons] == ["refuted"]
            filing = workspace.review.approve(waiting.id)
            assert filing.outcome == "promoted"
        text = path.read_text()
        assert "src/dead.py" not in text
        assert "- `lib/new.py` lives" in text
        assert "repository: github.com/me/app" in text
        assert app.drafts() == []

    def test_approved_it_keeps_what_the_card_says_of_itself(self, app: Place) -> None:
        path = note(
            app,
            "- `src/dead.py` counts them\n- `lib/new.py` lives\n",
            created="2026-01-31",
            writer="codex",
            colour="red",
        )
        fix(app)
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
        text = path.read_text()
        assert "created: 2026-01-31" in text
        assert "colour: red" in text
        assert "tags: [proxy, staging]" in text
        assert "topic: note" in text

    def test_a_card_without_a_topic_does_not_get_the_question_for_one(self, app: Place) -> None:
        path = note(app, "# Splitting words\n\n- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        path.write_text(path.read_text().replace("topic: note\n", ""))
        fix(app)
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
        assert "topic: Splitting words\n" in path.read_text()

    def test_the_draft_names_what_is_gone_with_its_commit(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.")
        fix(app)
        text = app.drafts()[0].read_text()
        assert "src/dead.py" in text
        assert "on 2026-03-05" in text

    def test_rejected_it_leaves_the_card(self, app: Place) -> None:
        path = note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.")
        before = path.read_bytes()
        fix(app)
        with app.open() as workspace:
            workspace.review.reject(next(iter(workspace.review.drafts())).id, reason="it will be back")
        assert path.read_bytes() == before
        assert app.drafts() == []

    def test_edited_it_says_what_holds_instead(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        fix(app)
        (draft,) = app.drafts()
        draft.write_text(
            draft.read_text().replace("- `lib/new.py` lives", "- `lib/new.py` lives, and nothing else does")
        )
        with app.open() as workspace:
            workspace.review.approve(draft.stem)
        assert "lives, and nothing else does" in path.read_text()

    def test_moves_are_written_at_once_and_the_rest_is_proposed(self, app: Place) -> None:
        path = note(app, "- `src/old.py` moved on\n- `src/dead.py` counts them\n- Words are split.\n")
        fix(app)
        assert "- `lib/new.py` moved on\n- `src/dead.py` counts them" in path.read_text()
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
        assert "- `lib/new.py` moved on\n- Words are split.\n" in path.read_text()

    def test_the_right_line_goes_when_the_day_was_new(self, app: Place) -> None:
        """A card without `updated` becomes a line longer by its repair."""
        path = note(app, "- `src/old.py` moved on\n- `src/dead.py` counts them\n- Words are split.\n")
        path.write_text(path.read_text().replace("updated: 2026-02-01\n", ""))
        fix(app)
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
        assert "- `lib/new.py` moved on\n- Words are split.\n" in path.read_text()

    @pytest.mark.parametrize(
        "body",
        [
            "`src/dead.py` counts them.",
            "# Counting\n\n- `src/dead.py` counts them\n",
            "| file | what |\n| --- | --- |\n| `src/dead.py` | counts |\n",
        ],
    )
    def test_a_card_of_which_nothing_is_left_is_proposed_for_removal_with_its_index_line(
        self, app: Place, body: str
    ) -> None:
        path = note(app, body)
        before = path.read_bytes()
        remember(app, "MEMORY.md", "# Memory\n\n- [Other](memory/cards/other.md)\n- [note](memory/cards/note.md)\n")
        _, done = fix(app)
        assert "to remove the card" in done[0]
        assert path.read_bytes() == before
        with app.open() as workspace:
            (draft,) = workspace.review.drafts()
            assert (draft.target, draft.dropped, draft.card) == ("", ("memory/cards/note.md",), "memory/cards/note.md")
            assert "src/dead.py" in dict(draft.reasons)["refuted"]
            workspace.review.approve(draft.id)
        assert not path.exists()
        assert (app.workspace / "MEMORY.md").read_text() == "# Memory\n\n- [Other](memory/cards/other.md)\n"
        assert app.drafts() == []
        with app.open() as workspace:
            entry = next(entry for entry, _ in workspace.history.entries() if entry.verb == "approved")
            workspace.history.undo(entry.id)
        assert path.read_bytes() == before
        assert "(memory/cards/note.md)" in (app.workspace / "MEMORY.md").read_text()
        assert len(app.drafts()) == 1

    @pytest.mark.slow
    def test_approving_a_removal_says_that_the_card_was_removed(self, app: Place) -> None:
        path = note(app, "`src/dead.py` counts them.\n")
        fix(app)
        (draft,) = app.drafts()
        done = run_cli("review", "approve", draft.stem, "--workspace", str(app.workspace))
        assert not path.exists()
        assert done.stdout.startswith(f"removed   {draft.stem} took away memory/cards/note.md\n")

    def test_a_removal_is_only_for_a_person_and_loses_no_edit(self, app: Place) -> None:
        path = note(app, "`src/dead.py` counts them.")
        fix(app)
        (draft,) = app.drafts()
        with app.open() as workspace:
            assert [filing.outcome for _, filing in workspace.review.retry(draft.stem)] == ["review"]
            with pytest.raises(TruekeepError, match="only removes"):
                workspace.review.edit(draft.stem, lambda _: b"Words are counted elsewhere.")
        draft.write_text(draft.read_text() + "Words are counted elsewhere.\n")
        with app.open() as workspace, pytest.raises(TruekeepError, match="only removes"):
            workspace.review.approve(draft.stem)
        assert path.exists()

    def test_a_removal_of_a_card_that_changed_meanwhile_is_not_approved(self, app: Place) -> None:
        path = note(app, "`src/dead.py` counts them.")
        fix(app)
        path.write_text(path.read_text() + "\nA person added this line.\n")
        with app.open() as workspace, pytest.raises(EditedSince):
            workspace.review.approve(app.drafts()[0].stem)
        fix(app)
        (draft,) = app.drafts()
        assert "A person added this line." in draft.read_text()

    def test_a_draft_of_the_earlier_form_can_be_approved_and_is_replaced(self, app: Place) -> None:
        """Before 2026-11-17, a card of which nothing was left was to become one sentence that says so."""
        path = note(app, "`src/dead.py` counts them.\n\nWords are split.")
        fix(app)
        (draft,) = app.drafts()
        old = draft.read_text().replace("Words are split.", "Nothing that this card said holds any more.")
        path.write_text(path.read_text().replace("\n\nWords are split.", ""))
        sha = hashlib.sha256(path.read_bytes()).hexdigest()
        old = re.sub(r"card sha256 [0-9a-f]+", f"card sha256 {sha}", old)
        head, mark, handoff = old.partition("\n---\n")
        own = hashlib.sha256(handoff.encode()).hexdigest()
        draft.write_text(re.sub(r"(?m)^sha256: \w+$", f"sha256: {own}", head) + mark + handoff)
        kept = draft.read_text()
        _, done = fix(app)
        assert f"in place of {draft.stem}" in done[0]
        (removal,) = app.drafts()
        removal.unlink()
        draft.write_text(kept)
        with app.open() as workspace:
            workspace.review.approve(draft.stem)
        assert "Nothing that this card said holds any more." in path.read_text()

    def test_a_sentence_that_was_repaired_is_not_dropped(self, place: Place) -> None:
        """A symbol takes the path of its deleted file along: then the sentence is true."""
        run_job = "export function runJob(job) {\n  return job.run();\n}\n"
        history = History()
        history.commit("2026-01-05", {"src/runner.js": run_job, "lib/queue.js": "export const size = 3;\n"})
        whole = "export const size = 3;\nexport function drain() {\n  return size;\n}\n" + run_job
        history.commit("2026-03-05", {"src/runner.js": None, "lib/queue.js": whole})
        history.write(place.repo)
        path = note(place, "`runJob()` is defined in `src/runner.js`. Words are split.")
        with place.open() as workspace:
            checked = workspace.verification.verify(system=False)
            assert [item.verdict for item in checked[0].verdicts] == ["moved", "gone"]
            (repair,), done = workspace.verification.repair(checked)
        assert "`runJob()` is defined in `lib/queue.js`." in path.read_text()
        assert (place.drafts(), repair.left, len(done)) == ([], (), 1)

    def test_a_handoff_that_is_repaired_on_its_way_in_is_not_refuted(self, place: Place) -> None:
        history = History()
        history.commit("2026-01-05", {"src/part.py": "def leaves():\n    return 1\n", "src/rest.py": "X = 1\n"})
        history.commit("2026-03-05", {"src/part.py": None, "src/rest.py": "X = 1\n\n\ndef leaves():\n    return 1\n"})
        history.write(place.repo)
        with place.open() as workspace:
            content = "`leaves()` is defined in `src/part.py`.\n"
            verifier = workspace.verification.content_verifier
            assert verifier is not None
            written, found = verifier.check(content, date(2026, 2, 1), place.repo, NAME)
        assert written == "`leaves()` is defined in `src/rest.py`.\n"
        assert [code for code, _ in found] == ["moved-since"]

    def test_what_is_gone_beside_a_repair_is_left_to_a_person(self, app: Place) -> None:
        path = note(app, "See `src/old.py` and `src/dead.py`. Words are split.\n\n- `src/dead.py` counts\n")
        (repair,), _ = fix(app)
        assert "See `lib/new.py` and `src/dead.py`." in path.read_text()
        assert [line.partition(":")[0] for line in repair.left] == ["memory/cards/note.md"]
        assert "src/dead.py" in repair.left[0]
        text = app.drafts()[0].read_text()
        assert "See `lib/new.py` and `src/dead.py`. Words are split." in text
        assert "- `src/dead.py` counts" not in text
        (again,), done = fix(app)
        assert (again.waiting and again.waiting.id, again.left, done) == (app.drafts()[0].stem, repair.left, [])

    def test_a_second_run_proposes_it_once(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.")
        fix(app)
        fix(app)
        assert len(app.drafts()) == 1

    def test_a_newer_proposal_takes_the_place_of_an_older_one(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        fix(app)
        path.write_text(path.read_text() + "- A person added this line.\n")
        fix(app)
        (draft,) = app.drafts()
        assert "A person added this line." in draft.read_text()

    def test_a_second_run_says_that_it_waits(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.")
        fix(app)
        (draft,) = app.drafts()
        for dry_run in (False, True):
            (repair,), done = fix(app, dry_run=dry_run)
            assert (repair.draft, done) == (None, [])
            assert repair.waiting is not None
            assert repair.waiting.id == draft.stem

    @pytest.mark.slow
    @pytest.mark.parametrize("forget", [False, True])
    def test_a_repair_moves_no_other_claim_s_day(self, app: Place, forget: bool) -> None:
        """What was gone, changed or at its line before stays so; and a second repair finds nothing more to write."""
        text = "- See `src/old.py`\n- `src/dead.py` counts\n- `lib/new.py` has `fetch`\n"
        path = note(app, text, created="2026-01-31")
        with app.open() as workspace:
            (before,) = workspace.verification.verify(system=False)
            workspace.verification.repair([before])
        if forget:
            for file in (app.workspace / ".truekeep").glob("facts.sqlite*"):
                file.unlink()
        written = path.read_text()
        with app.open(now=NOW + timedelta(days=2)) as workspace:
            (after,) = workspace.verification.verify(system=False)
            repairs, _ = workspace.verification.repair([after])
        rot = {item.claim.text: (item.verdict, item.reason) for item in before.verdicts if item.verdict != "moved"}
        assert {
            item.claim.text: (item.verdict, item.reason) for item in after.verdicts if item.claim.text in rot
        } == rot
        assert path.read_text() == written
        assert all(not repair.edits for repair in repairs)

    @pytest.mark.slow
    def test_what_a_person_turned_down_is_not_proposed_again(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        fix(app)
        with app.open() as workspace:
            workspace.review.reject(next(iter(workspace.review.drafts())).id)
        for later in (NOW, NOW + timedelta(days=3)):
            with app.open(now=later) as workspace:
                (repair,), done = workspace.verification.repair(workspace.verification.verify())
            assert app.drafts() == []
            assert (done, repair.draft) == ([], None)  # nothing was done, and nothing waits
            assert "turned down" in repair.kept
        path.write_text(path.read_text().replace("lives", "lives on"))  # another card by now: a proposal of its own
        fix(app)
        assert len(app.drafts()) == 1

    def test_what_moved_is_written_beside_what_is_gone_from_the_same_file(self, place: Place) -> None:
        build_carts(place)
        said = "The cart is read by `load_cart()` in `app/carts.py`, and joined by `merge_carts()` there.\n"
        path = note(place, said)
        for _ in range(2):
            (repair,), _ = fix(place)
            assert said.replace("carts.py", "baskets.py") in path.read_text()
            assert (repair.draft, place.drafts()) == (None, [])
            assert [" names merge_carts: " in line for line in repair.left] == [True]

    @pytest.mark.slow
    def test_after_a_rejection_what_moved_is_written_and_nothing_is_proposed(self, place: Place) -> None:
        build_carts(place)
        path = note(place, "- `merge_carts()` is in `app/carts.py`\n- Carts are kept for a week\n")
        fix(place)
        with place.open() as workspace:
            workspace.review.reject(next(iter(workspace.review.drafts())).id)
        for _ in range(2):
            said = run_cli("verify", "--fix", "--workspace", str(place.workspace), cwd=place.repo).stdout
            assert "- `merge_carts()` is in `app/baskets.py`\n" in path.read_text()
            assert place.drafts() == []
            assert "review walk" not in said

    def test_a_draft_that_a_person_edited_is_not_replaced(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        fix(app)
        (draft,) = app.drafts()
        draft.write_text(draft.read_text().replace("- `lib/new.py` lives", "- `lib/new.py` counts them"))
        path.write_text(path.read_text() + "- A person added this line.\n")
        (repair,), _ = fix(app)
        assert (repair.draft, app.drafts()) == (None, [draft])
        assert repair.waiting is not None
        assert "- `lib/new.py` counts them" in draft.read_text()

    def test_a_proposal_for_another_card_of_a_long_name_stays(self, app: Place) -> None:
        for last in "ab":
            note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.", f"{'long-' * 12}{last}.md")
            fix(app)
        assert len(app.drafts()) == 2

    def test_approving_can_be_undone(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        before = path.read_bytes()
        fix(app)
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
            entry = next(entry for entry, _ in workspace.history.entries() if entry.verb == "approved")
            workspace.history.undo(entry.id)
        assert path.read_bytes() == before
        assert len(app.drafts()) == 1

    def test_with_crlf(self, app: Place) -> None:
        path = note(app, "- `src/dead.py` counts them\n- `lib/new.py` lives\n")
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        fix(app)
        with app.open() as workspace:
            workspace.review.approve(next(iter(workspace.review.drafts())).id)
        assert b"src/dead.py" not in path.read_bytes()
        assert b"- `lib/new.py` lives\r\n" in path.read_bytes()

    def test_undone_and_expired_like_any_draft(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them.\n\n`lib/new.py` lives.")
        fix(app)
        with app.open() as workspace:
            entry = next(entry for entry, _ in workspace.history.entries() if entry.verb == "proposed")
            workspace.history.undo(entry.id)
        assert app.drafts() == []


@pytest.mark.slow
def test_in_a_repository_without_a_commit_nothing_could_be_checked(place: Place) -> None:
    git(place.repo, "init", "-q")
    (place.base / "notes.md").write_text("See `src/a.py` and `src/b.py`.\n")
    done = run_cli("verify", "--exit-code", "--repo", str(place.repo), str(place.base / "notes.md"), cwd=place.base)
    assert done.returncode == 13
    assert "nothing could be checked" in done.stdout


class TestCommand:
    @pytest.mark.slow
    def test_fix_says_what_it_did(self, app: Place) -> None:
        note(app, "See `src/old.py`. See `src/dead.py`. Words are split.")
        done = run_cli("verify", "--fix", "-w", str(app.workspace))
        assert done.returncode == 0, done.stderr
        assert "memory/cards/note.md: src/old.py → lib/new.py" in done.stdout
        assert f"draft {app.drafts()[0].stem}" in done.stdout
        assert "`lib/new.py`" in app.card("note.md")

    @pytest.mark.slow
    def test_a_second_fix_says_that_a_draft_waits(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them. Words are split.")
        run_cli("verify", "--fix", "-w", str(app.workspace))
        (draft,) = app.drafts()
        for arguments in (("--fix",), ("--fix", "--dry-run")):
            said = run_cli("verify", *arguments, "-w", str(app.workspace)).stdout
            assert f"proposed already; truekeep review show {draft.stem}" in said
            assert "would propose" not in said
            assert "done" not in said
        data = json.loads(run_cli("verify", "--fix", "--json", "-w", str(app.workspace)).stdout)
        assert [(item["draft"], item["waiting"]) for item in data["repairs"]] == [("", draft.stem)]

    @pytest.mark.slow
    def test_a_draft_says_that_verify_made_it(self, app: Place) -> None:
        note(app, "`src/dead.py` counts them. Words are split.", writer="codex")
        fix(app)
        said = run_cli("review", "show", app.drafts()[0].stem, "-w", str(app.workspace)).stdout
        assert f"from truekeep verify, which checked memory/cards/note.md against {NAME}, proposed {TODAY}" in said
        assert "?" not in said.splitlines()[1]
        assert "card sha256" not in said

    @pytest.mark.slow
    def test_a_line_is_named_with_its_file(self, app: Place) -> None:
        note(app, "Words are split at line 5 of `src/old.py`.")
        said = run_cli("verify", "--fix", "--dry-run", "-w", str(app.workspace)).stdout
        assert "moved        src/old.py:5" in said
        assert "src/old.py:5 → 8" in said
        data = json.loads(run_cli("verify", "--json", "-w", str(app.workspace)).stdout)
        assert ("5", "src/old.py:5") in [(item["text"], item["shown"]) for item in data["files"][0]["claims"]]

    @pytest.mark.slow
    def test_a_path_that_follows_its_symbol_is_named_by_itself(self, app: Place) -> None:
        note(app, "`leaves()` is defined in `src/part.py`.")
        data = json.loads(run_cli("verify", "--fix", "--json", "-w", str(app.workspace)).stdout)
        assert [(edit["old"], edit["new"]) for edit in data["repairs"][0]["edits"]] == [("src/part.py", "src/rest.py")]

    @pytest.mark.slow
    def test_a_long_list_of_edits_says_how_many_more(self, app: Place) -> None:
        names = ("src/old.py", "./src/old.py", "src/old.py:1", "src/old.py:2", "src/old.py:5", "src/old.py:6", "old.py")
        note(app, "".join(f"- `{name}` is one.\n" for name in names))
        said = run_cli("verify", "--fix", "-w", str(app.workspace)).stdout
        (line,) = [line for line in said.splitlines() if line.startswith("done")]
        assert line.count("→") == 4
        assert line.endswith("; … and 3 more")
        assert "; … and 3 more" in run_cli("history", "note.md", "-w", str(app.workspace)).stdout

    @pytest.mark.slow
    def test_dry_run_says_what_it_would_do(self, app: Place) -> None:
        note(app, "See `src/old.py`. See `src/dead.py`. Words are split.")
        before = tree(app.workspace)
        done = run_cli("verify", "--fix", "--dry-run", "-w", str(app.workspace))
        assert "would write memory/cards/note.md:" in done.stdout
        assert "src/old.py → lib/new.py" in done.stdout
        assert "would propose to drop from memory/cards/note.md" in done.stdout
        assert tree(app.workspace) == before

    @pytest.mark.slow
    def test_json(self, app: Place) -> None:
        note(app, "See `src/old.py`.")
        data = json.loads(run_cli("verify", "--fix", "--json", "-w", str(app.workspace)).stdout)
        (repair,) = data["repairs"]
        assert repair == repair | {"path": "memory/cards/note.md", "draft": "", "left": []}
        assert [(edit["old"], edit["new"]) for edit in repair["edits"]] == [("src/old.py", "lib/new.py")]
        assert len(data["done"]) == 1

    @pytest.mark.slow
    def test_files_that_are_not_written_are_named(self, app: Place, tmp_path: Path) -> None:
        (tmp_path / "AGENTS.md").write_text("See `src/old.py`.\n")
        done = run_cli("verify", "AGENTS.md", "--repo", str(app.repo), "--fix", "-w", str(app.workspace), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "AGENTS.md" in (done.stdout + done.stderr).rpartition("1 moved")[2]

    @pytest.mark.slow
    def test_history_and_undo_by_command(self, app: Place) -> None:
        path = note(app, "See `src/old.py`.")
        before = path.read_bytes()
        run_cli("verify", "--fix", "-w", str(app.workspace))
        shown = json.loads(run_cli("history", "note.md", "--json", "-w", str(app.workspace)).stdout)
        entry = next(item for item in shown["entries"] if item["verb"] == "repaired")
        done = run_cli("undo", str(entry["entry"]), "-w", str(app.workspace))
        assert done.returncode == 0, done.stderr
        assert path.read_bytes() == before


# --- Crashes ----------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[3]


def crash_loop(base: str, mode: str) -> None:
    """Kill one repair at every call that changes the disk. In a process of its own, because it forks."""
    from tests.support import crash

    checked: list[CheckedMemory] = []

    def prepare(place: Place) -> None:
        build(place)
        place.leave(a_document_handoff(), "2026-11-10-0900-lint.md")
        place.ingest()
        note(place, "- `src/old.py:5` moved on\n- `src/dead.py` counts them\n- Words are split.\n")
        with place.open() as workspace:
            checked[:] = workspace.verification.verify(["note.md"], system=False)

    def act(workspace: Workspace) -> object:
        """What was checked before is repaired; what a killed run has changed meanwhile is checked anew."""
        repairs, done = workspace.verification.repair(checked)
        if len(repairs) < len(checked):
            done += workspace.verification.repair(workspace.verification.verify(system=False))[1]
        return done

    crash.SCENARIOS["repair"] = crash.Scenario(prepare, act, is_repeatable=True, is_atomic=False)
    print(json.dumps(crash.Loop(Path(base), "repair", mode).run()))


@pytest.fixture
def fast_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: a kill loses nothing that was written, so the disk adds only time."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="truekeep-repair-", dir=memory if os.access(memory, os.W_OK) else tmp_path))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["power", "once-ENOSPC"])
def test_killed_or_refused_at_every_call_the_next_run_ends_where_one_run_would(fast_disk: Path, mode: str) -> None:
    """power: killed after the n-th call, with everything lost that was not synced by then."""
    program = "import sys; from tests.unit.verify.test_repair import crash_loop; crash_loop(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(fast_disk / "crash"), mode],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == [], found["kinds"]
    assert found["points"] >= 12, found


def test_left_over_temporary_files_are_none(app: Place) -> None:
    note(app, "See `src/old.py` and `src/dead.py`. Words are split.")
    fix(app)
    assert [name for name in tree(app.workspace) if file_io.TEMPORARY in name] == []
