"""Repairs: what a verdict lets us write into a memory without asking. Pure: text and verdicts in, edits out.

Only the span of the claim changes, and only where the new place is known for sure: a renamed file, a line's new number.
A symbol that left its file takes the file's name in the same sentence with it, if everything said of that file went
along. What is gone is proposed for removal, as a draft for a person. No "formerly at" notes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from truekeep.hidden import strip_hidden
from truekeep.verify.verdict import GONE, MOVED, Verdict


class Edit(NamedTuple):
    """One span of a text and what it becomes."""

    start: int
    end: int
    new: str
    verdict: Verdict


def plan_repairs(text: str, verdicts: Sequence[Verdict]) -> list[Edit]:
    """The edits that the moved claims of a text lead to, in their order; they do not overlap."""
    edits: dict[tuple[int, int], Edit] = {}
    for verdict in verdicts:
        claim = verdict.claim
        if verdict.verdict != MOVED or not verdict.place or text[claim.start : claim.end] != claim.text:
            continue
        if claim.kind in ("path", "directory", "bundle"):
            edit = Edit(claim.start, claim.end, respelled(claim.text, claim.name, verdict.place), verdict)
        elif claim.kind == "line":
            edit = Edit(claim.start, claim.end, _relined(claim.text, verdict), verdict)
        elif claim.kind == "port" and verdict.place.isdigit():
            edit = Edit(claim.start, claim.end, verdict.place, verdict)
        else:
            continue
        if edit.new != claim.text and _is_plain(edit.new, claim.text):
            edits[edit.start, edit.end] = edit
    for edit in _following(text, verdicts):
        if _is_plain(edit.new, text[edit.start : edit.end]):
            edits.setdefault((edit.start, edit.end), edit)
    kept: list[Edit] = []
    for edit in sorted(edits.values()):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


_PLAIN = re.compile(r"[\w.–/@+,=~()\[\]:#\\-]{1,300}\Z")


def _is_plain(new: str, old: str) -> bool:
    """Whether a name from a repository may be written into memory: a file's name is anybody's to choose."""
    if not _PLAIN.match(new.replace(" ", "_") if " " in old else new) or strip_hidden(new) != new:
        return False
    return new.isascii() or not old.isascii() or new.isprintable()


def apply_repairs(text: str, edits: Sequence[Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def respelled(old: str, name: str, place: str) -> str:
    """A new path in the way the old one was written: its ./ in front, its slash at the end, its slashes."""
    new = place
    if "/" not in name and "/" in place and not old.startswith((".", "/")):
        new = place.rpartition("/")[2]  # a bare name stays one
    if old.startswith("./"):
        new = "./" + new
    elif old.startswith("/") and not new.startswith("/"):
        new = "/" + new
    if old.endswith("/") and not new.endswith("/"):
        new += "/"
    if "\\" in old and "/" not in old:
        new = new.replace("/", "\\")
    return new


def _relined(old: str, verdict: Verdict) -> str:
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


def _following(text: str, verdicts: Sequence[Verdict]) -> list[Edit]:
    """Paths that follow the symbols which were said to be in them."""
    edits = []
    for holder in verdicts:
        place = holder.claim
        if place.kind != "path" or holder.verdict == MOVED or text[place.start : place.end] != place.text:
            continue
        said = [
            item
            for item in verdicts
            if item.claim.kind in ("symbol", "method")
            and (item.claim.line, item.claim.place) == (place.line, place.name)
        ]
        left = [item for item in said if item.verdict == MOVED and item.reason == "defined-elsewhere"]
        heirs = {item.place.partition(":")[0] for item in left}
        if said and len(heirs) == 1 and all(item.verdict == MOVED for item in said):
            edits.append(Edit(place.start, place.end, respelled(place.text, place.name, heirs.pop()), said[0]))
    return edits


def without_gone(text: str, verdicts: Sequence[Verdict]) -> str:
    """The text without the list items and sentences that name what is gone."""
    lines = text.split("\n")
    doomed: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.verdict == GONE:
            doomed.setdefault(verdict.claim.line, []).append(verdict)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    kept = []
    for number, line in enumerate(lines, start=1):
        if number not in doomed:
            kept.append(line)
            continue
        begin = offsets[number - 1]
        spans = [(item.claim.start - begin, item.claim.end - begin) for item in doomed[number]]
        rest = _without_sentences(line, spans)
        if rest:
            kept.append(rest)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def _without_sentences(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """A line without the sentences that hold these spans; nothing when it is a table row, a heading or one sentence."""
    if line.lstrip().startswith(("|", "#")):
        return ""
    item = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", line)
    head = item[0] if item else ""
    at = len(head)
    kept = []
    for match in re.finditer(r"[.!?](?=\s+\S)|\Z", line[at:]):
        end = len(head) + match.end()
        if end > at:
            if not any(start < end and at < stop for start, stop in spans):
                kept.append(line[at:end].strip())
            at = end
    rest = " ".join(part for part in kept if part)
    return head + rest if rest else ""
