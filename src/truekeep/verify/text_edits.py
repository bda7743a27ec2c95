"""Computes the edits to a memory's text that follow from verdicts. Pure functions without I/O.

An edit replaces only the text of the claim, and only if the new place is certain: a renamed file, a new line number. If
all symbols that a sentence places in a file moved to the same new file, the file name in that sentence is replaced as
well. Text about things that are gone is proposed for removal in a draft. No "formerly at" notes are added.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truekeep.text.markdown_lines import FenceReader
from truekeep.text.unicode import strip_hidden
from truekeep.verify.verdict import GONE, MOVED, Verdict

_MAX_EDITS_SHOWN, _MAX_SHOWN_CHARACTERS = 4, 200


class TextEdit(NamedTuple):
    """A span of a text and its replacement."""

    start: int
    end: int
    new: str
    verdict: Verdict
    old: str

    @property
    def shown(self) -> str:
        """The edit as shown to the user: a bare line number gets its file."""
        claim = self.verdict.claim
        return f"{claim.shown if claim.text == self.old else self.old} → {self.new}"


def shown_edits(edits: Sequence[TextEdit]) -> str:
    """Describe the first edits of a list, and how many more there are."""
    shown = list(dict.fromkeys(edit.shown for edit in edits))
    text = ""
    for count in range(min(_MAX_EDITS_SHOWN, len(shown)), 0, -1):
        more = f"; … and {len(shown) - count} more" if count < len(shown) else ""
        text = "; ".join(shown[:count]) + more
        if len(text) <= _MAX_SHOWN_CHARACTERS:
            break
    return text


def plan_repairs(text: str, verdicts: Sequence[Verdict]) -> list[TextEdit]:
    """Return the edits for the moved claims of a text, in order and without overlaps."""
    edits: dict[tuple[int, int], TextEdit] = {}
    mentioned = {is_gone: set[tuple[int, str]]() for is_gone in (True, False)}
    for item in verdicts:
        mentioned[item.verdict == GONE].add((item.claim.line, item.claim.place))
    lost = mentioned[True] - mentioned[False]
    for verdict in verdicts:
        claim = verdict.claim
        if verdict.verdict != MOVED or not verdict.place or text[claim.start : claim.end] != claim.text:
            continue
        if verdict.is_dirty or (claim.line, claim.name) in lost:
            continue  # not committed, or everything that the sentence says about the file is gone
        if claim.kind in ("path", "directory", "bundle"):
            new = respelled(claim.text, claim.name, verdict.place)
        elif claim.kind == "line":
            new = _with_new_lines(claim.text, verdict)
        elif claim.kind == "port" and verdict.place.isdigit():
            new = verdict.place
        else:
            continue
        edit = TextEdit(claim.start, claim.end, new, verdict, claim.text)
        if edit.new != claim.text and _is_plain(edit.new, claim.text):
            edits[edit.start, edit.end] = edit
    for edit in _paths_of_moved_symbols(text, verdicts):
        if _is_plain(edit.new, text[edit.start : edit.end]):
            edits.setdefault((edit.start, edit.end), edit)
    chosen: list[TextEdit] = []
    for edit in sorted(edits.values()):
        if not chosen or edit.start >= chosen[-1].end:
            chosen.append(edit)
    return chosen


_PLAIN = re.compile(r"[\w.–/@+,=~()\[\]:#\\-]{1,300}\Z")


def _is_plain(new: str, old: str) -> bool:
    """Whether a name from a repository is safe to write into memory, since anyone can choose a file name."""
    if not _PLAIN.match(new.replace(" ", "_") if " " in old else new) or strip_hidden(new) != new:
        return False
    return new.isascii() or not old.isascii() or new.isprintable()


def apply_repairs(text: str, edits: Sequence[TextEdit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def respelled(old: str, name: str, place: str) -> str:
    """Write a new path in the style of the old one: leading ./, trailing slash, backslashes."""
    new = place
    if "/" not in name and "/" in place and not old.startswith((".", "/")):
        new = place.rpartition("/")[2]  # keep a bare name bare
    if old.startswith("./"):
        new = "./" + new
    elif old.startswith("/") and not new.startswith("/"):
        new = "/" + new
    if old.endswith("/") and not new.endswith("/"):
        new += "/"
    if "\\" in old and "/" not in old:
        new = new.replace("/", "\\")
    return new


def _with_new_lines(old: str, verdict: Verdict) -> str:
    path, _, numbers = verdict.place.rpartition(":")
    first, _, last = numbers.partition("-")
    claim = verdict.claim
    had_range = claim.last > claim.first
    match = re.match(r"(.*?)(:|#L)(\d+)(?:([-–]|-L|\.\.)(\d+))?((?::\d+)?)\Z", old)
    if match is None:  # only the numbers: "120", "3 to 9"
        parts = re.match(r"(\d+)(\D+)?(\d+)?\Z", old)
        if parts is None:
            return old
        return first + (f"{parts[2]}{last or first}" if parts[2] and parts[3] and had_range else "")
    head = respelled(match[1], claim.name, path) if path != claim.name else match[1]
    if had_range and match[4]:
        return f"{head}{match[2]}{first}{match[4]}{last or first}"
    return f"{head}{match[2]}{first}{match[6]}"


def _paths_of_moved_symbols(text: str, verdicts: Sequence[Verdict]) -> list[TextEdit]:
    """Return edits for paths whose symbols all moved to the same new file."""
    edits = []
    for holder in verdicts:
        place = holder.claim
        if place.kind != "path" or holder.verdict == MOVED or text[place.start : place.end] != place.text:
            continue
        mentioned = [
            item
            for item in verdicts
            if item.claim.kind in ("symbol", "method")
            and (item.claim.line, item.claim.place) == (place.line, place.name)
        ]
        left = [item for item in mentioned if item.verdict == MOVED and item.reason == "defined-elsewhere"]
        new_files = {item.place.partition(":")[0] for item in left}
        if mentioned and len(new_files) == 1 and all(item.verdict == MOVED for item in mentioned):
            new = respelled(place.text, place.name, new_files.pop())
            edits.append(TextEdit(place.start, place.end, new, mentioned[0], place.text))
    return edits


def without_gone(text: str, verdicts: Sequence[Verdict]) -> str:
    """Remove the list items, rows and sentences that name things that are gone, and fences left empty."""
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    gone_spans = [(item.claim.start, item.claim.end) for item in verdicts if item.verdict == GONE]
    left: dict[int, str | None] = {}  # the new text of changed lines; None: the line is removed
    for first, last, is_whole in _blocks(lines):
        inside = [(start, end) for start, end in gone_spans if offsets[first] <= start < offsets[last]]
        if inside and is_whole:
            left[first] = None
        elif inside:
            spans = [(start - offsets[first], end - offsets[first]) for start, end in inside]
            left |= {first + at: line for at, line in _without_sentences(lines[first:last], spans).items()}
    for first, last in _fences(lines):
        within = range(first + 1, last)
        if any(at in left for at in within) and not any((left.get(at, lines[at]) or "").strip() for at in within):
            left |= dict.fromkeys(range(first, last + 1))
    remaining: list[str] = []
    has_gap = False
    for at, line in enumerate(lines):
        rest = left.get(at, line)
        if rest is None or (has_gap and not rest.strip() and remaining and not remaining[-1].strip()):
            has_gap = True  # keep the blank lines on one side of the removed text only
            continue
        remaining.append(rest)
        has_gap = False
    return "\n".join(remaining)


def beside_edits(text: str, verdicts: Sequence[Verdict], edits: Sequence[tuple[int, int]]) -> list[Verdict]:
    """Return the verdicts on claims in the same sentence, row or code line as one of these spans."""
    lines = text.split("\n")
    ends: list[int] = []
    offset = 0
    for first, last, is_whole in _blocks(lines):
        block = "\n".join(lines[first:last])
        ends += [] if is_whole else [offset + match.end() for match in _END.finditer(block)]
        offset += len(block) + 1
        ends += [offset] if is_whole else []

    def sentences(start: int, end: int) -> range:
        return range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1)

    touched = {number for start, end in edits for number in sentences(start, end)}
    return [item for item in verdicts if not touched.isdisjoint(sentences(item.claim.start, item.claim.end))]


def edited_spans(edits: Sequence[TextEdit]) -> list[tuple[int, int]]:
    """Return the spans of the replacements in the edited text."""
    spans, shift = [], 0
    for edit in sorted(edits):
        spans.append((edit.start + shift, edit.start + shift + len(edit.new)))
        shift += len(edit.new) - (edit.end - edit.start)
    return spans


def changed_words(old: str, new: str) -> list[tuple[int, int]]:
    """Return the spans of the words in a line that differ from its earlier version."""
    before, words = re.findall(r"\S+", old), list(re.finditer(r"\S+", new))
    if len(before) != len(words):
        return [(0, len(new))]
    return [word.span() for then, word in zip(before, words, strict=True) if then != word[0]]


def shift_spans(spans: Sequence[tuple[int, int]], edits: Sequence[TextEdit]) -> list[tuple[int, int]]:
    """Return the positions of these spans after the edits."""
    return [
        (start + shift, end + shift)
        for start, end in spans
        for shift in [sum(len(edit.new) - (edit.end - edit.start) for edit in edits if edit.end <= start)]
    ]


def says_nothing(body: str) -> bool:
    """Whether a card has no content left except headings, list marks and table heads."""
    lines = body.split("\n")
    return all(
        not line.strip(" \t>|:*+-#") or line.lstrip(" \t>").startswith("#") or _is_table_head(lines, at)
        for at, line in enumerate(lines)
    )


def _is_table_head(lines: Sequence[str], at: int) -> bool:
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return lines[at].lstrip().startswith("|") and below.startswith("|") and not below.strip("|:- \t")


_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])\s+")
_FENCE_PREFIX = re.compile(r"\A[ \t>]*(?:(?:[-*+]|\d+[.)])\s+)?")
_PREFIX = re.compile(r"[ \t>]*")
_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)[.!?](?=\s+\S)|\Z")
_OPEN_END = re.compile(r"(?:,|\b(?:a|an|and|are|at|by|for|from|in|is|of|on|or|see|that|the|to|uses|via|with))\s*\Z")
_MIN_WRAPPED_LINE = 60  # characters; a longer line that ends in mid-sentence continues on the next one


def _fences(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each closed fence."""
    opened, fences = 0, FenceReader()
    for at, line in enumerate(lines):
        if fences.marks:
            fences.see(line.strip(" \t>"))
            if not fences.marks:
                yield opened, at
        elif fences.see(_FENCE_PREFIX.sub("", line)):
            opened = at


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Split lines into blocks: (first, end, whether it is one line that is kept or removed as a whole)."""
    code = {at for first, last in _fences(lines) for at in range(first, last + 1)}
    at = 0
    while at < len(lines):
        first, at = at, at + 1
        if first in code or lines[first].lstrip(" \t>").startswith(("|", "#")):
            yield first, at, True
            continue
        while at < len(lines) and at not in code and _runs_on(lines[at - 1], lines[at]):
            at += 1
        yield first, at, False


def _runs_on(line: str, following: str) -> bool:
    """Whether a sentence continues on the next line, rather than each line being a statement of its own."""
    start = following.lstrip(" \t>")
    if not line.strip() or not start or start.startswith(("|", "#")) or _ITEM.match(following):
        return False
    if line.endswith(("  ", "\\")) or line.rstrip().endswith((".", "!", "?", ":", ";")):
        return False
    return start[0].islower() or len(line) >= _MIN_WRAPPED_LINE or _OPEN_END.search(line) is not None


def _without_sentences(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> dict[int, str | None]:
    """Return the new text of each line that changes when the sentences with these spans are removed; None: removed."""
    text = "\n".join(lines)
    item = _ITEM.match(lines[0])
    heads = [_PREFIX.match(line)[0] for line in lines]  # type: ignore[index]  # it matches anything
    heads[0] = item[0] if item else heads[0]
    stay: list[tuple[int, int]] = []
    lost: list[tuple[int, int]] = []
    at = len(heads[0])
    for match in _END.finditer(text, at):
        is_lost = any(start < match.end() and at < end for start, end in spans)
        (lost if is_lost else stay).append((at, match.end()))
        at = match.end()
    left: dict[int, str | None] = {}
    offset = 0
    for number, line in enumerate(lines):
        first, last = offset + len(heads[number]), offset + len(line)
        offset = last + 1
        if any(text[max(first, start) : min(last, end)].strip() for start, end in lost):
            rest = " ".join(part for start, end in stay if (part := text[max(first, start) : min(last, end)].strip()))
            left[number] = heads[number] + rest if rest else None
    if item and left.get(0, "") is None:  # move the list mark to the first line that is left
        first_left = next((number for number in range(1, len(lines)) if left.get(number, lines[number]) is not None), 0)
        if first_left:
            left[first_left] = item[0] + (left.get(first_left) or lines[first_left])[len(heads[first_left]) :]
    return left
