"""Which lines stayed: what is said to be the same is the same, in order, and one edit at each end keeps all between."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import Place, a_handoff
from truekeep.memory.blame import BY_HAND, line_owners
from truekeep.memory.staging import _splices
from truekeep.text import line_diff as module
from truekeep.text.line_diff import kept_lines
from truekeep.text.unified_diff import difference
from truekeep.workspace.workspace import Workspace

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be
TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n", *(b"%d\n" % number for number in range(12))]))


@BUSY
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


@BUSY
@given(st.integers(0, 60), st.integers(0, 60))
def test_a_large_text_with_two_changed_lines_keeps_all_others(one: int, other: int) -> None:
    old = [b"line %d\n" % number for number in range(61)]
    new = list(old)
    new[one], new[other] = b"here\n", b"there\n"
    with patch.object(module, "MOST_COMPARED", 0):
        kept = {at for _, start, length in kept_lines(old, new) for at in range(start, start + length)}
    assert kept == set(range(61)) - {one, other}


def test_one_line_over_and_over_is_not_weighed_against_every_other() -> None:
    """Which took ten seconds for a thousand lines, in any handoff."""

    class Line(str):
        looked_up = 0

        def __hash__(self) -> int:
            Line.looked_up += 1
            return super().__hash__()

    old, new = ([Line("y" if number % 2 < odd else "x") for number in range(900)] for odd in (0, 1))
    list(kept_lines(old, new))
    assert Line.looked_up < 20 * len(old)


@BUSY
@given(TEXTS, TEXTS)
def test_a_difference_leads_from_one_text_to_the_other(old: list[bytes], new: list[bytes]) -> None:
    before, after = b"".join(old), b"".join(new)
    told = difference(before, after, "x.md")
    left, right = (text.decode().removesuffix("\n").split("\n") for text in (before, after))
    assert told[:2] == (() if left == right else ("--- x.md", "+++ x.md"))
    at = 0
    made: list[str] = []
    hunks = [number for number, line in enumerate(told) if line.startswith("@@")]
    for start, end in zip(hunks, [*hunks[1:], len(told)], strict=False):
        first, count, other, other_count = map(int, _ranges(told[start]))
        lines = told[start + 1 : end]
        made += left[at : first - bool(count)]
        assert len(made) == other - bool(other_count)
        assert [line[1:] for line in lines if line[0] != "+"] == left[first - bool(count) :][:count]
        made += [line[1:] for line in lines if line[0] != "-"]
        assert len(made) == other - bool(other_count) + other_count
        at = first - bool(count) + count
    assert [*made, *left[at:]] == right


def _ranges(head: str) -> list[str]:
    return [part for side in head[3:-3].split() for part in (*side[1:].split(","), "1")[:2]]


def test_a_difference_of_large_texts_shows_what_changed_and_nothing_else() -> None:
    lines = [f"line {number}" for number in range(3_000)]
    changed = ["first", *lines]
    changed[2_000] = "another"
    told = difference("\n".join(lines).encode(), "\n".join(changed).encode(), "x.md")
    assert [line for line in told[2:] if line[0] in "+-"] == ["+first", "-line 1999", "+another"]
    assert told[2] == "@@ -1,3 +1,4 @@"
    assert len(told) == 2 + 1 + 4 + 1 + 8


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
    return line_owners(workspace.context.transaction.ledger, "MEMORY.md", data)[at]
