"""Lines: what stood there when the memory was written, and where that is now.

A number alone says nothing: the line's text at the commit of the memory is found again in today's file, first as the
same definition, then as the same line among its neighbours. Without a date, the symbol that the memory names beside
the number decides; without either, nothing can be said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher

from truekeep.verify.paths import find_place
from truekeep.verify.tree import Outline, outline_of
from truekeep.verify.verdict import Question, Verdict, changed, confirmed, gone, moved, unverifiable
from truekeep.verify.world import World

_LONGEST = 20_000  # lines of a file that are aligned


def check_line(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    place = find_place(world, claim.place, question)
    if place is None:
        return (
            None if claim.is_weak else unverifiable(question, "never-seen", f"nothing here has the path {claim.place}")
        )
    if not place.path:
        if place.trail is None:
            return unverifiable(question, "never-seen", f"nothing here has the path {claim.place}")
        commit = place.trail.commit
        return gone(
            question,
            "deleted",
            f"{claim.place} was deleted in {commit.id[:10]} on {commit.day}",
            commit=commit.id,
            day=commit.day,
        )
    data = world.now.text(place.path)
    if data is None:
        return unverifiable(question, "unreadable", f"{place.path} cannot be read as text")
    now = _lines(data)
    then = _text_then(world, question, place.path)
    outline = world.outline(place.path)
    dirty = world.now.is_dirty(place.path) if world.now.has(place.path) else False
    at = 0
    seen = ""
    if then is not None and claim.first <= len(then):
        at, seen = _find_again(world, question, place.path, then, now, outline)
        if at and at != claim.first and _same_range(then, now, claim.first, claim.last):
            at = claim.first
    elif claim.near:
        at = _near_line(claim.near, outline, claim.first)
    elif claim.first > len(now):
        why = f"{place.path} has {len(now)} lines"
        return gone(question, "beyond-the-end", why, place=place.path, rank=1)
    else:
        why = "the line is there, but nothing says what it held when this was written"
        return unverifiable(question, "no-date", why, place=f"{place.path}:{claim.first}")
    cite = cited(place.path, at, at + claim.last - claim.first) if at else ""
    if not at:
        if then is not None and claim.near and (found := _near_line(claim.near, outline, claim.first)):
            cite = cited(place.path, found, found + claim.last - claim.first)
            return moved(question, "line-moved", f"{claim.near} is now at line {found}", cite, dirty=dirty)
        around = _around(world, question, place.path, outline)
        if then is None and claim.near:
            return gone(question, "not-there", f"{place.path} does not define {claim.near}", place=place.path, rank=1)
        where = f"{place.path}:{around}" if around else place.path
        return changed(question, "line-changed", "what stood there is not in the file any more", where, dirty=dirty)
    text = now[at - 1].strip()[:200]
    if at == claim.first and not place.is_moved:
        return confirmed(question, "same-line", f"the line still says: {text}", cite, seen=seen or text, dirty=dirty)
    what = f"now at line {at}" if not place.is_moved else f"now in {cite}"
    commit_id, day = (place.trail.commit.id, place.trail.commit.day) if place.is_moved and place.trail else ("", "")
    return moved(question, "line-moved", what, cite, commit=commit_id, day=day, seen=seen or text, dirty=dirty)


def cited(path: str, first: int, last: int) -> str:
    return f"{path}:{first}" if last <= first else f"{path}:{first}-{last}"


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")


def _text_then(world: World, question: Question, path: str) -> list[str] | None:
    """The file at the commit that the memory was written at; None when that is not known."""
    if question.written_at is None:
        return None
    commit = world.past.commit_at(question.written_at)
    if commit is None:
        return None
    if commit.id == world.now.state.head and not question.claim.near:
        # Written at or after today's commit: the line is what it is.
        data = world.now.text(path)
        return _lines(data) if data is not None else None
    if commit.id == world.now.state.head:
        return None
    names = [
        f"{commit.id}:{question.claim.place}",
        f"{commit.id}:{world.past.name_then(path, commit.at)}",
        f"{commit.id}:{path}",
    ]
    for _, data in world.git.blobs(list(dict.fromkeys(names)), limit=1_000_000):
        if data is not None:
            return _lines(data)
    return None


def _find_again(
    world: World, question: Question, path: str, then: Sequence[str], now: Sequence[str], outline: Sequence[Outline]
) -> tuple[int, str]:
    """The number that a line has today; 0 when it is not there."""
    claim = question.claim
    old = outline_of("\n".join(then).encode(), path)
    defined = [item for item in old if item.line == claim.first]
    for item in sorted(defined, key=lambda item: -(item.end - item.line)):
        if item.kind in ("variable", "key", "field") and item.end == item.line:
            continue
        same = [other for other in outline if (other.name, other.scope) == (item.name, item.scope)]
        if len(same) > 1:
            # Overloads and getters share a name: the same one among them, counted from the top.
            index = [other for other in old if (other.name, other.scope) == (item.name, item.scope)].index(item)
            same = same[index : index + 1] or same[-1:]
        if same:
            return same[0].line, same[0].digest
    at = _aligned(then, now, claim.first)
    return at, ""


def _aligned(then: Sequence[str], now: Sequence[str], line: int) -> int:
    """Where a line of the old text is in the new one, by the lines around it."""
    text = then[line - 1]
    if len(then) > _LONGEST or len(now) > _LONGEST:
        matches = [at for at, other in enumerate(now, 1) if other == text]
        return matches[0] if len(matches) == 1 and text.strip() else 0
    if list(then) == list(now):
        return line
    old_start, old_end, new_start, new_end = _trimmed(then, now)
    if line <= old_start:
        return line
    if line > len(then) - old_end:
        return line + len(now) - len(then)
    matcher = SequenceMatcher(
        None, then[old_start : len(then) - old_end], now[new_start : len(now) - new_end], autojunk=False
    )
    at = line - 1 - old_start
    for start, other, size in matcher.get_matching_blocks():
        if start <= at < start + size:
            return new_start + other + (at - start) + 1
    stripped = text.strip()
    if len(stripped) > 8:
        matches = [number for number, other in enumerate(now, 1) if other.strip() == stripped]
        if len(matches) == 1:
            return matches[0]
    return 0


def _trimmed(then: Sequence[str], now: Sequence[str]) -> tuple[int, int, int, int]:
    """How many lines the two share at either end."""
    most = min(len(then), len(now))
    head = 0
    while head < most and then[head] == now[head]:
        head += 1
    tail = 0
    while tail < most - head and then[-1 - tail] == now[-1 - tail]:
        tail += 1
    return head, tail, head, tail


def _same_range(then: Sequence[str], now: Sequence[str], first: int, last: int) -> bool:
    return bool(
        list(then[first - 1 : last]) == list(now[first - 1 : last])
        and then[first - 1].strip()
        and _is_unique(now, first)
    )


def _is_unique(now: Sequence[str], line: int) -> bool:
    return sum(other == now[line - 1] for other in now) == 1


def _near_line(symbol: str, outline: Sequence[Outline], line: int) -> int:
    """Where the symbol is that the memory names beside the number; the number itself when it lies in its body."""
    owner, _, name = symbol.rpartition(".")
    found = [
        item
        for item in outline
        if item.name == name and (not owner or owner.rpartition(".")[2] in item.scope.split("."))
    ]
    for item in found:
        if item.line <= line <= item.end:
            return line
    return found[0].line if len(found) == 1 else 0


def _around(world: World, question: Question, path: str, outline: Sequence[Outline]) -> int:
    """The line of the definition that the old line stood in, if that is still there."""
    starts = sorted(item.line for item in outline)
    at = bisect_right(starts, question.claim.first)
    return starts[at - 1] if at and world.now.has(path) else 0
