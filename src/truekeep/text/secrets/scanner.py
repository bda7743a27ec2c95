"""Finds credentials in text, so that none is ever stored, indexed, served or logged.

One table (`rules`) names the published token formats of vendors, the usual containers and the ways people write a
password down. Two large expressions, the gates, read every text once; only when one of them stops are single rules
compiled and tried, and then on three `readings` of the text: as given, without hidden characters, and with long runs
joined across a line break. What a rule has matched is told from its `lookalikes`.

Nothing here reads files, asks a vendor whether a key is live, or holds a found value longer than it takes to judge it:
a `Secret` is a name and two offsets.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from truekeep.text.secrets.false_positives import has, is_name, is_random
from truekeep.text.secrets.normalise import SqueezedText, fold, iter_veils, join, squeeze
from truekeep.text.secrets.regex import compile_bytes, compiled
from truekeep.text.secrets.rules import RULES

Span = tuple[int, int, int]
"""Start, end, and the place of the rule in the table."""


class Secret(NamedTuple):
    """Where a credential was found. Never holds the value."""

    rule: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every credential in the text, in order, none overlapping another."""
    data, faithful = _encode(text)
    if faithful and _gate().search(data) is None and _talk_gate().search(data) is None:
        return ()
    spans = list(_iter_spans(text))
    shown = fold(text) if not faithful or _veil_gate().search(data) is not None else squeeze(text, ())
    if shown.text != text:
        spans += (
            (shown.origin(start), shown.origin(end - 1) + 1, order) for start, end, order in _iter_spans(shown.text)
        )
    joined = join(shown.text)
    if joined.gaps:
        for start, end, order in _iter_joined_spans(joined):
            first, last = joined.origin(start), joined.origin(end - 1)
            spans.append((shown.origin(first), shown.origin(last) + 1, order))
    merged = _merge(spans)
    if others := list(_iter_other_halves(text, merged)):
        merged = _merge(merged + others)
    if repeats := list(_iter_repeats(text, shown, merged)):
        merged = _merge(merged + repeats)
    return tuple(Secret(rule=RULES[order].name, start=start, end=end) for start, end, order in merged)


def mask_secrets(text: str) -> str | None:
    """The text with every credential replaced by its rule's name, or None when it must be withheld.

    The masked text is searched again: what is left around a mask may itself be, or join up to, a credential that we
    cannot place, and then no part of the text is safe to show.
    """
    secrets = find_secrets(text)
    if not secrets:
        return text
    pieces: list[str] = []
    end = 0
    for secret in secrets:
        pieces += (text[end : secret.start], f"[secret: {secret.rule}]")
        end = secret.end
    masked = "".join(pieces) + text[end:]
    return None if find_secrets(masked) else masked


def mask_lines(text: str) -> str:
    """The text of a file as it may be shown or indexed: credentials masked, every line at its place."""
    pieces: list[str] = []
    end = 0
    for secret in find_secrets(text):
        mark = f"[secret: {secret.rule}]"
        pieces += (text[end : secret.start], mark, f"\n{mark}" * text.count("\n", secret.start, secret.end))
        end = secret.end
    if not pieces:
        return text
    masked = "".join(pieces) + text[end:]
    if not find_secrets(masked):
        return masked
    return "\n".join("[withheld]" if line.strip() else line for line in text.split("\n"))


def cover_secrets(text: str, mark: str = " ") -> str:
    """The text with a mark for each character of a credential, so that every other one keeps its place."""
    pieces: list[str] = []
    end = 0
    for secret in find_secrets(text):
        pieces += (text[end : secret.start], _WITHIN_LINE.sub(mark, text[secret.start : secret.end]))
        end = secret.end
    if not pieces:
        return text
    covered = "".join(pieces) + text[end:]
    return covered if not find_secrets(covered) else _WITHIN_LINE.sub(mark, text)


_WITHIN_LINE = re.compile(r"[^\n]")


def holds_secret(text: str) -> bool:
    """Whether a text has a credential, or the mask of one."""
    return _MASK.search(text) is not None or bool(find_secrets(text))


_MASK = re.compile(r"\[(?:secret: [a-z0-9-]+|withheld)\]")


def withhold(text: str) -> str:
    """A short text as it may be written down or shown: credentials masked, or nothing of it."""
    masked = mask_secrets(text)
    return masked if masked is not None else "[withheld]"


# --- Matching -------------------------------------------------------------------------------------------------------


def _encode(text: str) -> tuple[bytes, bool]:
    """UTF-8, because RE2 matches bytes and encoding once is far cheaper than letting every search do it.

    Lone surrogates have no UTF-8; each becomes one byte, which keeps offsets countable, and the flag says so.
    """
    try:
        return text.encode(), True
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace"), False


def _iter_spans(text: str, *, joined: bool = False) -> Iterator[Span]:
    data, _ = _encode(text)
    spans = sorted(_iter_byte_spans(data, joined=joined))
    if len(data) == len(text):
        yield from spans
        return
    starts = _char_offsets(data, (start for start, _, _ in spans))
    ends = _char_offsets(data, sorted(end for _, end, _ in spans))
    for start, end, order in spans:
        yield starts[start], ends[end], order


def _iter_byte_spans(data: bytes, *, joined: bool) -> Iterator[Span]:
    for order in _find_live(data, joined=joined):
        rule = RULES[order]
        pattern = compiled(rule.pattern)
        search, judge, group = pattern.search, rule.judge, pattern.groups
        at = refused = 0
        while (match := search(data, at)) is not None:
            start, end = match.span(group)
            if rule.talk:
                end = _find_quote(data, start, end)
            if end - start > _JUDGED or judge(data[start:end], data[end : end + 8]):
                yield start, end, order
                at = end
            elif start < refused:
                at = end
            else:
                # A refused value may hold a real one, as in `secret: https://host/?token=…`. Going back over the same
                # place only once keeps `token=token=token=…` linear.
                at, refused = max(start, match.start() + 1), end


def _find_live(data: bytes, *, joined: bool) -> list[int]:
    """The rules that are worth trying, by their places in the table."""
    live = _find_live_formats(data)
    if joined:
        return sorted(order for order in live if RULES[order].joins)
    if _talk_gate().search(data) is not None:
        live |= _find_keywords(data.lower(), talk=True)
    return sorted(live)


def _find_live_formats(data: bytes) -> set[int]:
    search, starts = _gate().search, _keywords_by_first_byte()
    live: set[int] = set()
    at = 0
    for _ in range(32):
        stop = search(data, at)
        if stop is None:
            return live
        at = stop.start()
        live.update(order for keyword, order in starts.get(data[at], ()) if data.startswith(keyword, at))
        at += 1
    # So many stops are no longer cheaper than asking for every keyword once.
    return _find_keywords(data, talk=False)


def _find_keywords(data: bytes, *, talk: bool) -> set[int]:
    return {
        order
        for order, rule in enumerate(RULES)
        if rule.talk == talk and any(keyword in data for keyword in rule.keywords)
    }


@functools.cache
def _keywords_by_first_byte() -> dict[int, list[tuple[bytes, int]]]:
    found: dict[int, list[tuple[bytes, int]]] = {}
    for order, rule in enumerate(RULES):
        for keyword in () if rule.talk else rule.keywords:
            found.setdefault(keyword[0], []).append((keyword, order))
    return found


def _find_quote(data: bytes, start: int, end: int) -> int:
    """Where a value ends: at the closing quote if it stands in quotes, whatever signs come before that."""
    quote = data[start - 1 : start]
    close = data.find(quote, end, end + 256) if quote in _QUOTES else -1
    if close < 0 or has(data[end:close], b" \t\r\n"):
        return end
    return close - data[end:close].endswith(b"\\")


_QUOTES = frozenset((b'"', b"'", b"`"))

_JUDGED = 512
"""The longest value that is judged, in bytes. Look-alikes are shorter; anything longer is taken."""


def _char_offsets(data: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """Character offsets of ascending byte offsets, counting every byte that is not a continuation byte."""
    found: dict[int, int] = {}
    at = count = 0
    for offset in offsets:
        count += len(data[at:offset].translate(None, _CONTINUATION))
        at = offset
        found[offset] = count
    return found


_CONTINUATION = bytes(range(0x80, 0xC0))


def _iter_joined_spans(joined: SqueezedText) -> Iterator[Span]:
    """Tokens that only exist once a line break is taken out."""
    for start, end, order in _iter_spans(joined.text, joined=True):
        pattern = compiled(RULES[order].pattern)
        # An open-ended pattern also swallows the first word of the next line. Give words back while the rest still is
        # a token by itself; the bound keeps a hostile text linear, and past it everything is taken.
        for _ in range(64):
            last = bisect_left(joined.gaps, end) - 1
            if last < 0 or (seam := joined.gaps[last]) <= start:
                break  # nothing joined is left: the token was found as it stands
            tail = joined.text[seam:end]
            if not is_name(tail.encode()) or pattern.fullmatch(joined.text[start:seam].encode()) is None:
                yield start, end, order
                break
            end = seam
        else:
            yield start, end, order


def _merge(spans: list[Span]) -> list[Span]:
    """Overlapping spans become one, named by the rule that stands first in the table."""
    merged: list[Span] = []
    for start, end, order in sorted(spans):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(first[1], end), min(first[2], order))
        else:
            merged.append((start, end, order))
    return merged


_HALVES = frozenset(("aws-access-key-id", "alibaba-access-key-id", "tencent-secret-id", "twilio-key"))
"""The rules that find the name of a key pair. Its other half has no form of its own, and stands nearby."""
_NEARBY = 300
_LONGEST_RUN = 200
_LONG_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{20,{_LONGEST_RUN}}}")


def _iter_other_halves(text: str, spans: list[Span]) -> Iterator[Span]:
    """Whatever looks random and is near the name of a key pair, be it in part."""
    done = 0
    for start, end, order in spans:
        if RULES[order].name in _HALVES:
            first, last = start - _NEARBY, end + _NEARBY
            for match in _LONG_RUN.finditer(text, max(done, first - _LONGEST_RUN), last + _LONGEST_RUN):
                if match.end() > first and match.start() < last and is_random(match[0].encode()):
                    yield match.start(), match.end(), order
            done = max(done, last)


_LONGEST_REPEAT = 200  # characters; longer ones are formats of their own, found wherever they stand
_SHORT = 8  # characters below which a value is not looked for inside of words
_HEAD = 6  # characters by which repeats are looked up, and the fewest that a value has


def _iter_repeats(text: str, shown: SqueezedText, spans: list[Span]) -> Iterator[Span]:
    """Where a value that was found once stands again, with no word beside it that says what it is."""
    orders: dict[str, int] = {}
    lengths: dict[str, set[int]] = {}
    for start, end, order in spans:
        value = fold(text[start:end]).text if end - start <= _LONGEST_REPEAT else ""
        if len(value) >= _HEAD and not is_name(value.encode()):
            orders.setdefault(value, order)
            lengths.setdefault(value[:_HEAD], set()).add(len(value))
    longest_first = {head: sorted(found, reverse=True) for head, found in lengths.items()}
    read, done = shown.text, 0
    for start in range(len(read) - _HEAD + 1) if orders else ():
        if start < done or (sizes := longest_first.get(read[start : start + _HEAD])) is None:
            continue
        for size in sizes:
            done = start + size
            order = orders.get(read[start:done], -1)
            if order >= 0 and _stands_alone(read, start, done):
                yield shown.origin(start), shown.origin(done - 1) + 1, order
                break
        else:
            done = start


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether what stands here is not part of a word or number, in case it is short enough to be so by chance."""
    if end - start >= _SHORT and not text[start:end].isdigit():
        return True
    before, after = text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1]
    return not any(len(edge) == 2 and edge.isalnum() for edge in (before, after))


# --- The gates ------------------------------------------------------------------------------------------------------


@functools.cache
def _gate() -> Any:
    """Finds where a format could begin, or a character that hides something."""
    formats = [rule for rule in RULES if not rule.talk]
    marks = [(keyword.decode(), rule) for rule in formats for keyword in rule.keywords]
    free = _render_tree((mark, rule.hook) for mark, rule in marks if not rule.word)
    bound = _render_tree((mark, rule.hook) for mark, rule in marks if rule.word)
    return compile_bytes((free, rf"\b{bound}", *iter_veils()))


@functools.cache
def _veil_gate() -> Any:
    """Finds only what hides something."""
    return compile_bytes(iter_veils())


@functools.cache
def _talk_gate() -> Any:
    """Finds where people may have written a value down.

    Apart from the other gate, because these expressions stay alive for half a sentence: together, RE2 would need a
    state for every pair of places and spend its time building them.
    """
    return compile_bytes(dict.fromkeys(rule.hook for rule in RULES if rule.talk))


def _render_tree(endings: Iterable[tuple[str, str]]) -> str:
    """One expression for many keywords, sharing their beginnings, and each allowed to be broken by a line break."""
    branches: dict[str, list[tuple[str, str]]] = {}
    hooks: list[str] = []
    for keyword, hook in endings:
        if keyword:
            branches.setdefault(keyword[0], []).append((keyword[1:], hook))
        else:
            hooks.append(hook)
    hooks += (re.escape(first) + _SEAM + _render_tree(rest) for first, rest in sorted(branches.items()))
    return f"(?:{'|'.join(dict.fromkeys(hooks))})"


_SEAM = r"[\s>\\]*"
