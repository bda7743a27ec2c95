"""Two texts as one: everything of the old one, everything of the new one, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from truekeep.memory.merge import Node, lists_of, merge_texts, parts_of
from truekeep.text.markdown import outline


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("A fact.", "Another.", "A fact.\n\nAnother."),
        ("A fact.", "A fact.", "A fact."),
        ("A fact.\nAnother one.", "Another one.\nA third.", "A fact.\nAnother one.\n\nA third."),
        ("- one\n- two", "* two\n- three", "- one\n- two\n- three"),
        ("- one\n- two", "one\n", "- one\n- two"),
        ("It is said\nover two lines.", "It is said over two lines.", "It is said\nover two lines."),
        ("Lead.\n\n## A\n\n- one\n\n## B\nx.", "## a\n- two", "Lead.\n\n## A\n\n- one\n- two\n\n## B\nx."),
        ("Lead.\n\n## A\none.", "More.", "Lead.\n\nMore.\n\n## A\none."),
        ("# Title\n\nLead.\n\n## A\none.", "More.", "# Title\n\nLead.\n\nMore.\n\n## A\none."),
        ("## A\none.", "More.", "More.\n\n## A\none."),
        ("## A\none.\n\n## B\ntwo.", "## A\n### C\nthree.", "## A\none.\n\n### C\n\nthree.\n\n## B\ntwo."),
        ("one.", "## A\n## B\ntwo.", "one.\n\n## B\n\ntwo."),
        ("one.", "## A\n### B\ntwo.\n### C\n\n", "one.\n\n## A\n\n### B\n\ntwo."),
        ("- a\n  - b\n- c", "- a\n  - d", "- a\n  - b\n  - d\n- c"),
        ("- a: it is.\n  So far.", "- a: it is.\n  So far.\n- n", "- a: it is.\n  So far.\n- n"),
        ("```\n## A\nx\n```", "## A\nx", "```\n## A\nx\n```\n\n## A\n\nx"),
        ("```\nx\n```", "```\nx\n```\n\n```\ny\n```", "```\nx\n```\n\n```\ny\n```"),
        ("", "A fact.", "A fact."),
        ("A fact.", "", "A fact."),
        ("```\nnever closed", "A fact.", "```\nnever closed\n\nA fact."),
        ("- a\n- b", "- c\n- a\n  - d", "- a\n  - d\n- b\n- c"),
        ("- a\n  - b\n- c", "- a\n- c\n  - b", "- a\n  - b\n- c\n  - b"),
        ("- a\n  - off", "- off", "- a\n  - off\n- off"),
        ("- a\n  goes on", "- a\n  - b", "- a\n  goes on\n  - b"),
        ("1. a\n2. b", "1. a\n2. b\n3. c", "1. a\n2. b\n3. c"),
        ("1. a\n2. b\n3. c", "1. a\n2. c", "1. a\n2. b\n3. c"),
        ("1. a\n2. b", "1. a\n2. x\n3. b", "1. a\n2. b\n\n## Steps (updated)\n\n1. a\n2. x\n3. b"),
        ("## R\n1. a\n2. b\n### T\nx.", "## R\n1. b\n2. a",
         "## R\n1. a\n2. b\n### T\nx.\n\n## R (updated)\n\n1. b\n2. a"),
        ("1. a\n2. b", "1. x\n2. y", "1. a\n2. b\n\n## Steps (updated)\n\n1. x\n2. y"),
        ("A fact.", "1. x\n2. y", "A fact.\n\n1. x\n2. y"),
    ],
)  # fmt: skip
def test_what_is_new_goes_where_it_belongs(old: str, new: str, wanted: str) -> None:
    assert merge_texts(old, new) == wanted
    assert merge_texts(wanted, new) == wanted


_LINES = (
    "A fact.|another fact|- an item|- other item|  - below|    - deeper|  goes on|## A|## B|### C|```|~~~|1. first"
    "|2. second|3. third|   - in it|> said|# T"
)
_LINE = st.sampled_from(["", "", "<!-- x -->", *_LINES.split("|")])
_TEXT = st.lists(_LINE, max_size=14).map("\n".join)


@pytest.mark.slow
@given(_TEXT, _TEXT)
@settings(max_examples=500, deadline=None)
def test_nothing_is_lost_and_a_second_time_changes_nothing(old: str, new: str) -> None:
    assume(outline(old).open_at is None and outline(new).open_at is None)  # the judge lets no such card in
    made = merge_texts(old, new)
    rest = iter(made.split("\n"))
    if old.strip():
        assert all(line in rest for line in old.split("\n"))  # in its order
    for part in parts_of(new):
        for statement in part.statements:
            for line in statement.lines:
                assert line.strip() == "" or line.strip(" -*+>1.") in made
    assert merge_texts(made, new) == made


_ITEMS = (
    "- an item|- other item|  - below|    - deeper|  - more|A fact.|## A|## B|1. first|2. second|3. third|   - in it"
)
_LIST = st.lists(st.sampled_from(["", *_ITEMS.split("|")]), max_size=12).map("\n".join)


@pytest.mark.slow
@given(_LIST, _LIST)
@settings(max_examples=500, deadline=None)
def test_items_stay_below_their_parents_and_steps_in_their_order(old: str, new: str) -> None:
    made = parts_of(merge_texts(old, new))
    there = {key for part in made for key in chains(part.nodes())}
    lists = [[node.statement.head for node in run] for part in made for run in lists_of(part.nodes())]
    for part in (*parts_of(old), *parts_of(new)):
        assert set(chains(part.nodes())) <= there
        for run in lists_of(part.nodes()):
            steps = [node.statement.head for node in run]
            assert any(all(key in rest for key in steps) for rest in map(iter, lists))


def chains(nodes: list[Node], above: str = "") -> Iterator[str]:
    """Every line of an item with those that it stands below."""
    for node in nodes:
        yield from (f"{above}{key}" for key in node.statement.keys)
        yield from chains(node.below, f"{above}{node.statement.head} > ")
