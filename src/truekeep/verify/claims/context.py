"""The sentence around a claim: which file it names for a symbol, which symbol for a line, which unit for a port.

The phrases are in `phrases/claims.*.toml`; `tense` tells whether the sentence is about the past or a plan.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import load_phrases
from truekeep.verify.claim import Claim
from truekeep.verify.claims.inline_code import SEARCHED
from truekeep.verify.claims.patterns import RawClaim, code_spans, is_file
from truekeep.verify.claims.tense import (
    expects_no_hits,
    is_imagined,
    is_instruction,
    is_past,
    is_planned,
    is_replaced,
    may_mention_loss,
    sentence_around,
    without_other_things,
)

MAX_NEIGHBOURS = 12  # claims on either side that are compared with one; all of a long line would take too long
MAX_GAP_TO_FILE = 70  # characters between a symbol and its file
MAX_GAP_TO_ONLY_FILE = 90  # the same for the only file of the sentence
MAX_GAP_TO_SYMBOL = 60  # characters between a line number and its symbol
MAX_GAP_TO_SERVICE = 90  # characters in front of a port in which its service is named
MAX_GAP_TO_QUOTE = 30  # characters between a line number and code quoted beside it
_RUN_IN_CODE = ("script", "env")  # what a line of a code block runs or sets, whatever its words are
_SENTENCE_STOP = re.compile(r"[.!?;]\s")
_CELL_STOP = re.compile(r"[.!?;|]\s|\s\|")


class _PlacePatterns(NamedTuple):
    """Patterns for the text between a symbol and a file, made of the phrases of all languages."""

    symbol_to_file: re.Pattern[str]
    file_to_symbol: re.Pattern[str]
    defined_in: re.Pattern[str]
    defines: re.Pattern[str]
    relates: re.Pattern[str]
    service_of_port: re.Pattern[str]


@cache
def _patterns() -> _PlacePatterns:
    place = load_phrases("claims").table("place")
    marks = r"[\s`*_\"'(\[|,:;—–-]*"
    return _PlacePatterns(
        symbol_to_file=re.compile(
            rf"{marks}(?:(?:(?:{place['joins']}) )*(?:{place['in']}|->|→|=>)?(?: (?:{place['file']}))*)?{marks}\Z",
            re.IGNORECASE,
        ),
        file_to_symbol=re.compile(
            rf"{marks}(?:(?:(?:{place['file_before']}) )*(?:{place['has']})?(?: (?:{place['definition']}))*"
            rf"(?: (?:{place['lives']}))?)?[\s`*_\"'(\[|,:;—–>→#-]*\Z",
            re.IGNORECASE,
        ),
        defined_in=re.compile(place["defined_in"]),
        defines=re.compile(place["defines"]),
        relates=re.compile(rf"\b(?:{place['relates']})\b", re.IGNORECASE),
        service_of_port=re.compile(
            rf"(?<![\w.-])[`*_\"']*(?P<name>[A-Za-z][\w-]{{1,40}})[`*_\"']* (?:{place['service']})"
            rf" (?:{place['serves']}) [`*_:]*\Z",
            re.IGNORECASE,
        ),
    )


def complete_claims(
    raws: list[RawClaim], line: str, number: int, offset: int, *, past: bool, is_code: bool = False
) -> Iterator[Claim]:
    """The claims of a line, each with what its sentence says about it.

    `past`: the whole line is about the past. `is_code`: it is of a code block, where `--delete-old` tells nothing.
    """
    spans = list(code_spans(line)) if "`" in line and any(raw.kind == "line" for raw in raws) else []
    starts = [start for start, _ in spans]
    line_mentions_loss = bool(raws) and may_mention_loss(line)
    for at, raw in enumerate(raws):
        is_told = not (is_code and raw.kind in _RUN_IN_CODE)
        place, near, quote, definite = raw.place, "", "", False
        neighbours = raws[max(0, at - MAX_NEIGHBOURS) : at + MAX_NEIGHBOURS + 1]
        if raw.kind in ("symbol", "method", "env", "flag") and not place and not (raw.kind == "flag" and raw.owner):
            place, definite = _named_place(raw, [other for other in neighbours if _is_place(other)], line)
        if raw.kind == "bundle" and raw.first:
            near = _symbol_of_line(raw, neighbours, line)
        elif raw.kind == "line":
            near = _symbol_of_line(raw, neighbours, line)
            first = bisect_left(starts, raw.start)
            quote = _quoted_beside(raw, neighbours, line, spans[max(0, first - 3) : first + 3])
        elif raw.kind == "port":
            near = _unit_of_port(raw, neighbours, line)
        yield Claim(
            kind=raw.kind,
            text=line[raw.start : raw.end],
            start=offset + raw.start,
            end=offset + raw.end,
            line=number,
            column=raw.start + 1,
            name=raw.name,
            place=place,
            owner=raw.owner,
            first=raw.first,
            last=raw.last,
            near=near,
            quote=quote,
            is_weak=raw.is_weak or (is_told and is_planned(raw, line)),
            is_past=raw.kind not in ("decision", "url")
            and (past or (is_told and (is_past(raw, line) or is_replaced(raw, neighbours, line)))),
            may_be_past=is_told
            and (
                is_imagined(raw, line)
                or (line_mentions_loss and _sentence_mentions_loss(raw, line))
                or (raw.why == SEARCHED and expects_no_hits(line))
            ),
            is_definite=definite,
            why=raw.why,
        )


def _sentence_mentions_loss(raw: RawClaim, line: str) -> bool:
    sentence = sentence_around(raw, line)
    return may_mention_loss(without_other_things(sentence) if is_instruction(raw, line) else sentence)


def _is_place(raw: RawClaim) -> bool:
    return raw.kind == "line" or (raw.kind == "path" and is_file(raw.name.rsplit("/", 1)[-1]))


def _overlap(one: RawClaim, other: RawClaim) -> bool:
    return one.start < other.end and other.start < one.end


def _named_place(raw: RawClaim, files: list[RawClaim], line: str) -> tuple[str, bool]:
    """The file that the same sentence names for a symbol, and whether it says that the symbol is defined there."""
    patterns = _patterns()
    found: list[tuple[int, int, str, bool]] = []
    for other in files:
        is_ahead = raw.end <= other.start
        gap = (line[raw.end : other.start] if is_ahead else line[other.end : raw.start]).removeprefix("()")
        if len(gap) > MAX_GAP_TO_FILE or _overlap(raw, other) or _SENTENCE_STOP.search(gap):
            continue
        if not (patterns.symbol_to_file if is_ahead else patterns.file_to_symbol).match(gap):
            continue
        # "`a` in `x.py`, `b` in `y.py`": words join more than a comma does, and what follows more than what precedes.
        rank = (0 if is_ahead else 1) if any(character.isalpha() for character in gap) else (2 if is_ahead else 3)
        definite = (patterns.defined_in if is_ahead else patterns.defines).search(gap)
        found.append((rank, len(gap), other.place or other.name, definite is not None))
    if found:
        return min(found)[2:]
    return (_only_place(raw, files, line) if raw.kind in ("symbol", "method") else ""), False


def _only_place(raw: RawClaim, files: list[RawClaim], line: str) -> str:
    """The only file that the sentence names, unless it says that the two only have to do with each other."""
    found = []
    for other in files:
        gap = line[raw.end : other.start] if raw.end <= other.start else line[other.end : raw.start]
        if len(gap) <= MAX_GAP_TO_ONLY_FILE and not _CELL_STOP.search(gap) and not _overlap(raw, other):
            found.append((other, gap))
    if len({other.place or other.name for other, _ in found}) != 1 or _patterns().relates.search(found[0][1]):
        return ""
    return found[0][0].place or found[0][0].name


def _symbol_of_line(raw: RawClaim, raws: list[RawClaim], line: str) -> str:
    """The symbol that a sentence puts on a line: the one before it, else the one after."""
    found: list[tuple[int, int, str]] = []
    for other in raws:
        if other.kind not in ("symbol", "method", "env"):
            continue
        is_before = other.end <= raw.start
        first, last = (other.end, raw.start) if is_before else (raw.end, other.start)
        gap = line[first:last].removeprefix("()")
        between = [item for item in raws if item.kind in ("path", "line") and first <= item.start < last]
        size = len(gap) - sum(item.end - item.start for item in between if item.name == raw.name)
        if any(item.name != raw.name for item in between) or _SENTENCE_STOP.search(gap) or size > MAX_GAP_TO_SYMBOL:
            continue
        # "`a` in `f:1`, `b` in `f:9`": what follows after a comma belongs to the next place.
        rank = 0 if is_before and _patterns().symbol_to_file.match(gap) else 2 if is_before else 3 if "," in gap else 1
        found.append((rank, size, f"{other.owner}.{other.name}" if other.owner else other.name))
    return min(found)[2] if found else ""


def _unit_of_port(raw: RawClaim, raws: list[RawClaim], line: str) -> str:
    """The unit that a sentence gives a port to: a unit has the next port behind it, else the last one before.

    Without a unit, "the shop service runs on port 5204" is about `shop.service`.
    """

    def is_beside(one: RawClaim, other: RawClaim) -> bool:
        first, second = sorted((one, other))
        return not _CELL_STOP.search(line[first.end : second.start])

    for unit in raws:
        if unit.kind != "unit" or not is_beside(unit, raw):
            continue
        ports = [other for other in raws if other.kind == "port" and is_beside(unit, other)]
        behind = [other for other in ports if other.start > unit.start]
        if (behind[0] if behind else ports[-1]) == raw:
            return unit.name
    match = _patterns().service_of_port.search(line, max(0, raw.start - MAX_GAP_TO_SERVICE), raw.start)
    return f"{match['name'].lower()}.service" if match is not None else ""


def _quoted_beside(raw: RawClaim, raws: list[RawClaim], line: str, spans: list[tuple[int, int]]) -> str:
    """The code that is quoted right beside a line number; empty without one."""
    for start, end in spans:
        if start <= raw.start < end or end - start < 4:
            continue
        inside = [other for other in raws if start <= other.start < end]
        if any(
            other.kind in ("path", "line", "directory") or end - start - (other.end - other.start) <= 4
            for other in inside
        ):
            continue
        gap = line[end + 1 : raw.start] if end <= raw.start else line[raw.end : start - 1]
        if len(gap) <= MAX_GAP_TO_QUOTE and not re.search(r"[.!?;]\s|\d", gap):
            return line[start:end].strip()
    return ""
