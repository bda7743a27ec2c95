"""Hints that a piece of knowledge will not stand alone or will not last.

A card is read months later by someone who has neither the conversation nor the working tree it came from. These checks
point at words that will mean nothing by then, and at facts which the code, git or a task list has in a better form.
They are hints for the writer and the reviewer, so a doubtful line gets none: a reason, a condition or a named subject
in it is enough. The phrases are in `phrases/durability.*.toml`; the caller passes the lines that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from truekeep.text.linear_regex import compile_linear
from truekeep.text.phrases import expand_names, load_phrases
from truekeep.text.unicode import clip

NOT_DURABLE = (
    *("task-state", "code-layout", "git-history", "fix-recipe", "config-preference", "about-memory"),
    "already-instructed",  # found by the policy
)
"""Codes of lines that are kept better elsewhere."""

MAX_HINTS = 20
MAX_EXCERPT = 120

WHY = {
    "relative-time": "Give the date, or leave the time out.",
    "dangling-reference": "Name what is meant; the reader will not have it in view.",
    "task-state": "Move it to the task list and keep only what was learned.",
    "code-layout": "Drop it or say what is surprising; a search finds where code lives.",
    "git-history": "Drop it or say why it matters; git log keeps who changed what.",
    "fix-recipe": "Say what caused it and how to notice; the fix itself is in the code.",
    "about-memory": "Say what is true instead, and correct the card itself.",
    "config-preference": "Leave it to the settings file that holds it, or write down why it differs.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DurabilityHint:
    """One line that may not last, and what to do about it."""

    code: str
    line: int
    excerpt: str
    why: str


class _Rule(NamedTuple):
    code: str
    phrases: str  # the table of `phrases/durability.*.toml`
    only_opening: bool = False  # applies only where a bullet or a paragraph begins
    reads_quotations: bool = False  # elsewhere, quoted words are not the writer's own


_RULES = (
    _Rule("relative-time", "relative-time"),
    _Rule("dangling-reference", "dangling-opening", only_opening=True),
    _Rule("dangling-reference", "dangling-reference"),
    _Rule("task-state", "task-item"),
    _Rule("task-state", "task-state"),
    _Rule("task-state", "task-done", reads_quotations=True),
    _Rule("task-state", "task-progress"),
    _Rule("code-layout", "code-layout", reads_quotations=True),
    _Rule("code-layout", "code-place", reads_quotations=True),
    _Rule("git-history", "git-history", reads_quotations=True),
    _Rule("fix-recipe", "fix-recipe", reads_quotations=True),
    _Rule("config-preference", "config-preference"),
    _Rule("about-memory", "about-memory", reads_quotations=True),
)
_CODE_ENDING = r"(?:py|tsx?|jsx?|mjs|go|rs|java|kt|rb|php|[ch]|cc|cpp|cs|swift|sql|sh|css|html|vue|svelte)"
_NAMES = {
    "OPEN": r"^[\t\x20>]*(?:[-*+]\s+|\d+[.)]\s+)?(?:\[[\x20x]\]\s+)?(?:[\x{2600}-\x{27bf}]\x{fe0f}?\s+)?[*_]*",
    "CODE_END": _CODE_ENDING,
    "W": r"(?:^|[\s(\[*_:;,\"'\x{ff08}/>\x{2013}\x{2014}-])",  # \b of RE2 knows ASCII letters only
    "E2": r"(?:$|[.,;:(]| (?:com|con|em|en|para|no|na|a|al|el|o)\x20)",
    "E": r"(?:$|[\s)\]*_:;,.!?\"'\x{ff09}\x{2013}\x{2014}-])",
    "CODE_FILE": rf"`?(?:[~\w.@-]*/)*[\w.@-]+\.{_CODE_ENDING}`?",
    "PATH": rf"`?/?(?:(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.{_CODE_ENDING}|/[\w.@-]+)`?",
}

_EXCUSE_WINDOW = 200  # bytes on either side of a match
_MAX_EXCUSED = 50  # matches of a rule on one line; a later one is reported without asking for excuses
_REGEX_MEMORY = 64 << 20


def find_hints(lines: Iterable[tuple[int, str]]) -> tuple[DurabilityHint, ...]:
    """Hints for numbered lines: at most one of a code for a line, and `MAX_HINTS` in all."""
    numbered = list(lines)
    if _any_phrase().search(_lower("\n".join([text for _, text in numbered]))) is None:
        return ()
    hints: list[DurabilityHint] = []
    for code, line, excerpt in _iter_finds(numbered):
        hints.append(DurabilityHint(code=code, line=line, excerpt=excerpt, why=WHY[code]))
        if len(hints) == MAX_HINTS:
            break
    return tuple(hints)


def is_rule(text: str) -> bool:
    """Whether a sentence says how work is to be done."""
    return _compile(load_phrases("durability").table("rule-of-work")["finds"]).search(_lower(text)) is not None


def is_preference(text: str) -> bool:
    """Whether a text says what a person wants."""
    return _compile(load_phrases("durability").table("preference-of-user")["finds"]).search(_lower(text)) is not None


def _iter_finds(numbered: list[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    before: tuple[int, str] | None = None
    for number, text in numbered:
        shown = text.replace("\x00", " ")
        raw = _lower(shown)
        if _any_phrase().search(raw) is not None:
            opens = before is None or before[0] != number - 1 or not before[1].strip() or _is_item(text)
            seen: set[str] = set()
            for rule in _RULES:
                if rule.code in seen or (rule.only_opening and not opens):
                    continue
                if _applies(rule, raw if rule.reads_quotations else _unquoted(raw)):
                    seen.add(rule.code)
                    yield rule.code, number, clip(shown, MAX_EXCERPT)
        before = (number, text)


def _applies(rule: _Rule, line: bytes) -> bool:
    finds, excuses = _compiled(rule)
    for count, match in enumerate(finds.finditer(line)):
        start, end = match.span()
        around = b"\x00".join(
            (line[max(0, start - _EXCUSE_WINDOW) : start], line[start:end], line[end : end + _EXCUSE_WINDOW])
        )
        if excuses is None or count >= _MAX_EXCUSED or excuses.search(around) is None:
            return True
    return False


def _lower(text: str) -> bytes:
    return text.lower().replace("\u2019", "'").encode("utf-8", "replace")


def _is_item(text: str) -> bool:
    start = text.lstrip()
    return start.startswith(("-", "*", "+", ">")) or start[:1].isdigit()


def _unquoted(line: bytes) -> bytes:
    """The line with the text of code spans and double quotes blanked; the marks stay."""
    for mark in (b"`", b'"'):
        pieces = line.split(mark)
        pieces[1:-1:2] = [b"x"] * len(pieces[1:-1:2])
        line = mark.join(pieces)
    return line


@cache
def _any_phrase() -> Any:
    """One pattern for the phrases of all rules: most texts do not match it."""
    return _compile("|".join(load_phrases("durability").table(rule.phrases)["finds"] for rule in _RULES))


@cache
def _compiled(rule: _Rule) -> tuple[Any, Any]:
    phrases = load_phrases("durability").table(rule.phrases)
    return _compile(phrases["finds"]), _compile(phrases["excuses"]) if "excuses" in phrases else None


def _compile(pattern: str) -> Any:
    names = load_phrases("durability").table("names") | _NAMES
    return compile_linear("(?m)" + expand_names(pattern, names), captures=False, memory=_REGEX_MEMORY)
