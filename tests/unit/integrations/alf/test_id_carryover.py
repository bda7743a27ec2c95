"""Ids across edits: what was edited keeps its id, what was not keeps everything, and no id belongs to two."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.alf_places import AGENT, a_workspace, export, markdown, records_in
from truekeep.integrations.alf.id_carryover import _earlier_record, carry_ids, earlier_by_scope, scope_of
from truekeep.integrations.alf.records import upstream_records

PATH = "MEMORY.md"
DAY = 86_400 * 10**9
OLD, NEW = 20_000 * DAY, 20_500 * DAY


def records(text: str, *, mtime_ns: int = OLD, path: str = PATH) -> list[Any]:
    return upstream_records(path, text, mtime_ns=mtime_ns, agent=AGENT, scheme="content")


def carried(old: Sequence[Any], text: str, *, path: str = PATH) -> list[Any]:
    fresh = records(text, mtime_ns=NEW, path=path)
    carry_ids(fresh, earlier_by_scope(old).get(path, ()), agent=AGENT, scope=path)
    return fresh


def ids(found: Sequence[Any]) -> list[str]:
    return [record["id"] for record in found]


def a_text(*sections: tuple[str, str]) -> str:
    return "".join(f"## {heading}\n{body}\n\n" for heading, body in sections)


BASE = (("A", "one"), ("B", "two"), ("C", "three"))


def test_what_did_not_change_is_no_change() -> None:
    old = records(a_text(*BASE))
    new = carried(old, a_text(*BASE))
    assert new == old


def test_an_edit_keeps_the_id_by_its_heading() -> None:
    old = records(a_text(*BASE))
    new = carried(old, a_text(("A", "one"), ("B", "two, and more"), ("C", "three")))
    assert ids(new) == ids(old)
    assert new[1]["temporal"]["created_at"] == old[1]["temporal"]["created_at"]
    assert new[1]["temporal"]["updated_at"] != old[1]["temporal"]["updated_at"]
    assert new[0]["temporal"] == old[0]["temporal"]


def test_another_order_keeps_the_ids() -> None:
    old = records(a_text(*BASE))
    for order in itertools.permutations(range(3)):
        new = carried(old, a_text(*(BASE[at] for at in order)))
        assert ids(new) == [old[at]["id"] for at in order]


def test_another_heading_keeps_the_id_by_what_it_says_only_if_that_is_all_the_same() -> None:
    old = records(a_text(*BASE))
    new = carried(old, a_text(("A", "one"), ("Z", "two"), ("C", "three")))
    assert new[1]["id"] not in ids(old)
    assert (new[0]["id"], new[2]["id"]) == (old[0]["id"], old[2]["id"])


def test_what_is_put_in_between_moves_nothing() -> None:
    old = records(a_text(*BASE))
    new = carried(old, a_text(("New", "first"), *BASE[:2], ("More", "between"), BASE[2]))
    assert [new[at]["id"] for at in (1, 2, 4)] == ids(old)
    assert len(set(ids(new))) == 5


def test_twins_stay_apart() -> None:
    twins = a_text(("A", "same"), ("A", "same"), ("A", "same"))
    old = records(twins)
    assert len(set(ids(old))) == 3
    assert carried(old, twins) == old
    fewer = carried(old, a_text(("A", "same"), ("A", "same")))
    assert ids(fewer) == ids(old)[:2]
    edited = carried(old, a_text(("A", "same"), ("A", "changed"), ("A", "same")))
    assert len(set(ids(edited))) == 3
    assert set(ids(edited)) == set(ids(old))


def test_an_id_that_was_carried_away_is_nobody_elses() -> None:
    """The edited section keeps its id; a new one that says what the old one said gets another."""
    old = records(a_text(("A", "text")))
    changed = carried(old, a_text(("A", "another text")))
    assert ids(changed) == ids(old)
    both = carried(changed, a_text(("A", "another text"), ("B", "x"), ("A", "text")))
    assert both[0]["id"] == old[0]["id"]
    assert both[2]["id"] != old[0]["id"]
    assert len(set(ids(both))) == 3
    assert ids(carried(both, a_text(("A", "another text"), ("B", "x"), ("A", "text")))) == ids(both)


def test_an_id_that_is_deleted_is_nobodys() -> None:
    changed = carried(records(a_text(("A", "text"))), a_text(("A", "another text")))
    moved = carried(changed, a_text(("B", "text")))
    assert ids(moved) != ids(changed)


def test_whole_files_keep_their_id_by_the_place() -> None:
    path = "memory/notes.md"
    old = records("# Notes\nfirst\n", path=path)
    new = carried(old, "# Notes\nsecond\n", path=path)
    assert ids(new) == ids(old)  # by the first line, which is a heading
    path = "memory/active-context.md"
    old = records("working on a\n", path=path)
    new = carried(old, "working on b\n", path=path)
    assert ids(new) != ids(old)  # nothing tells that it is the same


def test_nothing_to_carry_from() -> None:
    fresh = records(a_text(*BASE))
    again = [dict(record) for record in fresh]
    carry_ids(fresh, (), agent=AGENT, scope=PATH)
    assert fresh == again


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "x", "content": "c", "source": {"runtime": "openclaw"}, "temporal": {}},
        {"id": "x", "content": "c", "source": {"runtime": "openclaw", "origin_file": 5}, "temporal": {"created_at": 5}},
        {"id": "x", "content": "c", "source": {"runtime": "openclaw", "origin_file": PATH}, "temporal": {}}
        | {"raw_source_format": {"heading": 5}},
        {"id": "x", "content": "## A\none", "source": {"runtime": "openclaw", "origin_file": PATH}, "temporal": {}}
        | {"raw_source_format": "text"},
    ],
)
def test_earlier_records_may_be_anything(odd: Any) -> None:
    _earlier_record(odd)
    assert scope_of(odd)
    new = carried([odd], a_text(*BASE))
    assert len(set(ids(new))) == 3


SECTIONS = st.lists(
    st.tuples(
        st.sampled_from("ABC"), st.sampled_from(("one", "two", "three", "", "one  ", "## not", "```\n## x\n```"))
    ),
    max_size=6,
)


@pytest.mark.slow
@given(before=SECTIONS, between=SECTIONS, after=SECTIONS)
@settings(max_examples=300, deadline=None)
def test_no_two_records_have_one_id(before: Any, between: Any, after: Any) -> None:
    old = carried(records(a_text(*before)), a_text(*between))
    new = carried(old, a_text(*after))
    assert len(set(ids(new))) == len(new)
    assert carried(new, a_text(*after)) == new
    contents = {record["id"]: record["content"].rstrip() for record in old}
    kept = [record for record in new if record["id"] in contents]
    said = {record["content"].rstrip() for record in old}
    for record in new:  # what was there is never made anew
        if record["content"].rstrip() in said and record not in kept:
            twins = [other for other in kept if other["content"].rstrip() == record["content"].rstrip()]
            assert len(twins) >= sum(text == record["content"].rstrip() for text in contents.values())


@pytest.mark.slow
@given(
    sections=st.lists(st.text("abcdef ", min_size=3, max_size=12), min_size=2, max_size=6, unique=True),
    at=st.integers(0, 5),
    edit=st.text("ghi\n#`| ", min_size=1, max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_editing_one_section_changes_no_other(sections: list[str], at: int, edit: str) -> None:
    assume(at < len(sections))
    assume(all(text.strip() for text in sections))
    named = [(f"Heading {number}", text) for number, text in enumerate(sections)]
    old = records(a_text(*named))
    assume(len(old) == len(named))
    edited = [(name, text + edit if number == at else text) for number, (name, text) in enumerate(named)]
    new = {record["raw_source_format"]["heading"]: record for record in carried(old, a_text(*edited))}
    for record in old:
        heading = record["raw_source_format"]["heading"]
        if heading in new and "```" not in edit:
            assert new[heading]["id"] == record["id"]
            if heading != f"Heading {at}" and new[heading]["content"] == record["content"]:
                assert new[heading]["temporal"] == record["temporal"]


def test_through_archives(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {PATH: a_text(*BASE).encode(), "memory/2026-01-15.md": b"## X\ny\n"})
    export(root, tmp_path / "a.alf")
    (root / PATH).write_text(a_text(("New", "zero"), ("A", "one"), ("B", "changed"), ("C", "three")))
    export(root, tmp_path / "b.alf", base=tmp_path / "a.alf")
    export(root, tmp_path / "c.alf")
    before = {record["content"].split("\n")[0]: record for record in records_in(tmp_path / "a.alf")}
    after = {record["content"].split("\n")[0]: record for record in records_in(tmp_path / "b.alf")}
    without = {record["content"].split("\n")[0]: record for record in records_in(tmp_path / "c.alf")}
    for heading in ("## A", "## B", "## C", "## X"):
        assert after[heading]["id"] == before[heading]["id"]
    assert without["## B"]["id"] != before["## B"]["id"]
    assert after["## A"]["temporal"] == before["## A"]["temporal"]
    assert after["## A"]["raw_source_format"]["line_start"] == 4


def test_touching_a_file_is_no_change(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {PATH: a_text(*BASE).encode()})
    export(root, tmp_path / "a.alf")
    os.utime(root / PATH, ns=(NEW, NEW))
    export(root, tmp_path / "b.alf", base=tmp_path / "a.alf")
    assert records_in(tmp_path / "b.alf") == records_in(tmp_path / "a.alf")


@pytest.mark.slow
@given(first=markdown(), second=markdown())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_edit_gives_ids_of_their_own(tmp_path_factory: pytest.TempPathFactory, first: bytes, second: bytes) -> None:
    base = tmp_path_factory.mktemp("edit")
    root = a_workspace(base / "ws", {PATH: first, "memory/2026-01-15.md": first, "memory/cards/b.md": first})
    export(root, base / "a.alf")
    for path in (PATH, "memory/2026-01-15.md", "memory/cards/b.md"):
        (root / path).write_bytes(second)
    export(root, base / "b.alf", base=base / "a.alf")
    found = ids(records_in(base / "b.alf"))
    assert len(set(found)) == len(found)
