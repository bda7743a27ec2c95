"""Which lines stayed: what is said to be the same is the same, in order, and one edit at each end keeps all between."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import Place, a_handoff
from truekeep import lines as module
from truekeep.blame import BY_HAND, line_owners
from truekeep.lines import kept_lines
from truekeep.vault import _splices
from truekeep.workspace import Workspace

TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n", *(b"%d\n" % number for number in range(12))]))


@given(TEXTS, TEXTS, st.sampled_from([0, 20, 10**6]))
def test_what_stayed_is_the_same_and_in_order(old: list[bytes], new: list[bytes], most: int) -> None:
    with patch.object(module, "MOST_COMPARED", most):
        runs = list(kept_lines(old, new))
        splices = _splices("x.md", b"".join(old), b"".join(new))
    at = there = 0
    for start, other, length in runs:
        assert length > 0
        assert start >= at
        assert other >= there
        assert old[start : start + length] == new[other : other + length]
        at, there = start + length, other + length
    text = b"".join(old)
    for splice in splices:
        assert text[splice.offset : splice.offset + len(splice.removed)] == splice.removed
        text = text[: splice.offset] + splice.inserted + text[splice.offset + len(splice.removed) :]
    assert text == b"".join(new)


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_large_text_with_two_changed_lines_keeps_all_others(one: int, other: int) -> None:
    old = [b"line %d\n" % number for number in range(61)]
    new = list(old)
    new[one], new[other] = b"here\n", b"there\n"
    with patch.object(module, "MOST_COMPARED", 0):
        kept = {at for _, start, length in kept_lines(old, new) for at in range(start, start + length)}
    assert kept == set(range(61)) - {one, other}


def test_edits_at_both_ends_of_a_long_index_leave_the_lines_between_to_their_writers(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.ingest()
    index = place.workspace / "MEMORY.md"
    ours = "- [Proxy in front of staging](memory/cards/staging-proxy.md)\n"
    assert ours in index.read_text()
    index.write_text(index.read_text() + "".join(f"- note {number}\n" for number in range(1_500)))
    with place.open() as workspace:
        assert owner_of(workspace, ours) > 0
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(["Mine.\n", *lines, "Mine, too.\n"]))
    with place.open() as workspace:
        assert owner_of(workspace, "Mine.\n") == owner_of(workspace, "Mine, too.\n") == BY_HAND
        assert owner_of(workspace, ours) > 0


def owner_of(workspace: Workspace, line: str) -> int:
    data = (workspace.path / "MEMORY.md").read_bytes()
    at = data.decode().splitlines(keepends=True).index(line)
    return line_owners(workspace.books().ledger, "MEMORY.md", data)[at]
