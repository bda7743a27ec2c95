"""Finds credentials in text, so that none is ever stored, indexed, served or logged.

`rules` has the published token formats of vendors, the usual containers and the ways people write a password down. Two
large expressions, the gates, read every text once. Only if one of them matches are single rules compiled and tried, on
three forms of the text (`normalise`): as given, without hidden characters, and with long runs joined across a line
break. `false_positives` decides whether a match is a credential.

Nothing here reads files or asks a vendor whether a key is live. A `Secret` is a name and two offsets; the value itself
is not kept.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from truekeep.text.encodings import iter_decoded, may_be_encoded
from truekeep.text.secrets import nearby
from truekeep.text.secrets.false_positives import has, is_name, is_random
from truekeep.text.secrets.normalise import SqueezedText, fold, iter_veils, join, squeeze
from truekeep.text.secrets.regex import compile_bytes, compiled
from truekeep.text.secrets.rules import load_rules

Span = tuple[int, int, int]
"""Start, end, and the number of the rule in the list."""


class Secret(NamedTuple):
    """Where a credential is. Does not contain its value."""

    rule: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every credential in the text, in order, none overlapping another."""
    data, faithful = _encode(text)
    if faithful and not _may_hold(data):
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
    return tuple(Secret(rule=_rule_name(order), start=start, end=end) for start, end, order in merged)


def _may_hold(data: bytes) -> bool:
    """Whether anything is worth trying. Most texts hold nothing."""
    gates = (_gate(), _prose_gate())
    return any(gate.search(data) is not None for gate in gates) or nearby.may_hold(data) or may_be_encoded(data)


def _rule_name(order: int) -> str:
    """Values that only a word nearby gives away are numbered behind the rules, so that a format's name goes first."""
    rules = load_rules()
    return rules[order].name if order < len(rules) else nearby.NAMES[order - len(rules)]


def mask_secrets(text: str) -> str | None:
    """The text with every credential replaced by its rule's name, or None if it must be withheld.

    The masked text is searched again: the text around a mask may be a credential, or form one. Then no part of it is
    safe to show.
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
    """The text of a file with credentials masked, to be shown or indexed. Line numbers stay the same."""
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
    """The text with each character of a credential replaced by a mark, so that all offsets stay the same."""
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
    """Whether a text contains a credential or the mask of one."""
    return _MASK.search(text) is not None or bool(find_secrets(text))


_MASK = re.compile(r"\[(?:secret: [a-z0-9-]+|withheld)\]")


def withhold(text: str) -> str:
    """A short text with credentials masked, or "[withheld]" if that is not enough."""
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
    if not joined:
        found = ((item.start, item.end, len(load_rules()) + item.name) for item in nearby.iter_nearby(data))
        spans = sorted((*spans, *found, *_iter_encoded_spans(data)))
    if len(data) == len(text):
        yield from spans
        return
    starts = _char_offsets(data, (start for start, _, _ in spans))
    ends = _char_offsets(data, sorted(end for _, end, _ in spans))
    for start, end, order in spans:
        yield starts[start], ends[end], order


def _iter_encoded_spans(data: bytes) -> Iterator[Span]:
    """Runs that hold a credential when they are decoded."""
    for run in iter_decoded(data):
        order = next((order for _, _, order in _iter_byte_spans(run.text, joined=False)), None)
        if order is not None:
            yield run.start, run.end, order


def _iter_byte_spans(data: bytes, *, joined: bool) -> Iterator[Span]:
    rules = load_rules()
    for order in _find_live(data, joined=joined):
        rule = rules[order]
        pattern = compiled(rule.pattern)
        search, judge, group = pattern.search, rule.judge, pattern.groups
        at = refused = 0
        while (match := search(data, at)) is not None:
            start, end = match.span(group)
            if rule.in_prose:
                end = _find_quote(data, start, end)
            if end - start > _MAX_JUDGED_BYTES or judge(
                data[start:end], data[max(0, start - _CONTEXT_BYTES) : start], data[end : end + _CONTEXT_BYTES]
            ):
                yield start, end, order
                at = end
            elif start < refused:
                at = end
            else:
                # A refused value may contain a real one, as in `secret: https://host/?token=…`. Going back over the
                # same place only once keeps `token=token=token=…` linear.
                at, refused = max(start, match.start() + 1), end


def _find_live(data: bytes, *, joined: bool) -> list[int]:
    """The rules that are worth trying, by their numbers in the list."""
    live = _find_live_formats(data)
    if joined:
        return sorted(order for order in live if load_rules()[order].joins)
    if _prose_gate().search(data) is not None:
        live |= _find_keywords(data.lower(), in_prose=True)
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
    return _find_keywords(data, in_prose=False)


def _find_keywords(data: bytes, *, in_prose: bool) -> set[int]:
    return {
        order
        for order, rule in enumerate(load_rules())
        if rule.in_prose == in_prose and any(keyword in data for keyword in rule.keywords)
    }


@functools.cache
def _keywords_by_first_byte() -> dict[int, list[tuple[bytes, int]]]:
    found: dict[int, list[tuple[bytes, int]]] = {}
    for order, rule in enumerate(load_rules()):
        for keyword in () if rule.in_prose else rule.keywords:
            found.setdefault(keyword[0], []).append((keyword, order))
    return found


def _find_quote(data: bytes, start: int, end: int) -> int:
    """Where a value ends: at the closing quote if it is in quotes, whatever characters come before that."""
    quote = data[start - 1 : start]
    close = data.find(quote, end, end + 256) if quote in _QUOTES else -1
    if close < 0 or has(data[end:close], b" \t\r\n"):
        return end
    return close - data[end:close].endswith(b"\\")


_QUOTES = frozenset((b'"', b"'", b"`"))

_CONTEXT_BYTES = 160  # on either side
_MAX_JUDGED_BYTES = 512
"""Longer values are credentials without being judged: false positives are shorter."""


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
    """Tokens that exist only after a line break is removed."""
    for start, end, order in _iter_spans(joined.text, joined=True):
        pattern = compiled(load_rules()[order].pattern)
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
    """Overlapping spans become one, named by the rule that is first in the list."""
    merged: list[Span] = []
    for start, end, order in sorted(spans):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(first[1], end), min(first[2], order))
        else:
            merged.append((start, end, order))
    return merged


_KEY_PAIR_RULES = frozenset(("aws-access-key-id", "alibaba-access-key-id", "tencent-secret-id", "twilio-key"))
"""The rules that find the public half of a key pair. The secret half has no format of its own, but is nearby."""
_KEY_PAIR_WINDOW = 300  # characters
_LONGEST_RUN = 200
_LONG_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{20,{_LONGEST_RUN}}}")


def _iter_other_halves(text: str, spans: list[Span]) -> Iterator[Span]:
    """Random-looking text near the public half of a key pair."""
    done = 0
    for start, end, order in spans:
        if _rule_name(order) in _KEY_PAIR_RULES:
            first, last = start - _KEY_PAIR_WINDOW, end + _KEY_PAIR_WINDOW
            for match in _LONG_RUN.finditer(text, max(done, first - _LONGEST_RUN), last + _LONGEST_RUN):
                if match.end() > first and match.start() < last and is_random(match[0].encode()):
                    yield match.start(), match.end(), _order_at(spans, match.start(), match.end(), order)
            done = max(done, last)


def _order_at(spans: list[Span], start: int, end: int, default: int) -> int:
    """The rule that found what is there already, so that another vendor's token keeps its own name."""
    at = bisect_right(spans, (start, end, 0))
    near = spans[max(0, at - 1) : at + 2]
    return next((order for first, last, order in near if first < end and start < last), default)


_MAX_REPEAT_CHARS = 200  # longer credentials are found by their format
_MIN_CHARS_INSIDE_WORDS = 8  # shorter values are not looked for inside of words
_REPEAT_KEY_CHARS = 6  # repeats are looked up by these; no value is shorter


def _iter_repeats(text: str, shown: SqueezedText, spans: list[Span]) -> Iterator[Span]:
    """Further places of a value that was found once, where no word beside it says what it is."""
    orders: dict[str, int] = {}
    lengths: dict[str, set[int]] = {}
    for start, end, order in spans:
        value = fold(text[start:end]).text if end - start <= _MAX_REPEAT_CHARS else ""
        if len(value) >= _REPEAT_KEY_CHARS and not is_name(value.encode()):
            orders.setdefault(value, order)
            lengths.setdefault(value[:_REPEAT_KEY_CHARS], set()).add(len(value))
    longest_first = {head: sorted(found, reverse=True) for head, found in lengths.items()}
    read, done = shown.text, 0
    for start in range(len(read) - _REPEAT_KEY_CHARS + 1) if orders else ():
        if start < done or (sizes := longest_first.get(read[start : start + _REPEAT_KEY_CHARS])) is None:
            continue
        for size in sizes:
            done = start + size
            order = orders.get(read[start:done], -1)
            if order >= 0 and _is_separate(read, start, done):
                yield shown.origin(start), shown.origin(done - 1) + 1, order
                break
        else:
            done = start


def _is_separate(text: str, start: int, end: int) -> bool:
    """Whether a short value is not a part of a word or number, which could be by chance."""
    if end - start >= _MIN_CHARS_INSIDE_WORDS and not text[start:end].isdigit():
        return True
    before, after = text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1]
    return not any(len(edge) == 2 and edge.isalnum() for edge in (before, after))


# --- The gates ------------------------------------------------------------------------------------------------------


@functools.cache
def _gate() -> Any:
    """Matches where a format could begin, or a character that hides something."""
    formats = [rule for rule in load_rules() if not rule.in_prose]
    marks = [(keyword.decode(), rule) for rule in formats for keyword in rule.keywords]
    free = _render_tree((mark, rule.hook) for mark, rule in marks if not rule.is_word)
    bound = _render_tree((mark, rule.hook) for mark, rule in marks if rule.is_word)
    return compile_bytes((free, rf"\b{bound}", *iter_veils()))


@functools.cache
def _veil_gate() -> Any:
    """Matches characters that hide something."""
    return compile_bytes(iter_veils())


@functools.cache
def _prose_gate() -> Any:
    """Matches where people may have written a value down.

    Separate from the other gate, because these expressions can go on for half a sentence: in one expression, RE2 would
    need a state for every pair of positions and spend its time building them.
    """
    return compile_bytes(dict.fromkeys(rule.hook for rule in load_rules() if rule.in_prose))


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
