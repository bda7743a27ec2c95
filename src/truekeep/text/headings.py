"""What the heading of a section says about it: an essential of memory, or a kind of knowledge. Pure text.

The phrases are in `phrases/headings.*.toml`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from truekeep.text.phrases import load_phrases

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKS = re.compile(r"\*\*|__|`|~~")
_EDGE = re.compile(r"\A[^\w([\"'«„“【「『《〈（［]+|[\s:：—–-]+\Z")
_BOLD = re.compile(r"(?:\*\*|__)(.+?)(?:\*\*|__)")
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*\Z")


def plain_heading(title: str) -> str:
    """A heading without Markdown, and without the emoji or mark in front of it."""
    plain = _MARKS.sub("", _LINK.sub(r"\1", title))
    return " ".join((_EDGE.sub("", plain).strip() or plain.strip()).split())


def _comparable(title: str) -> str:
    """A heading as phrases are looked up in it: in small letters, without a bracket in front."""
    return plain_heading(title).lstrip("【「『《〈（［").casefold()


def essential_kind(title: str) -> Literal["people", "rules", ""]:
    """Whether a heading is about the user or the agent, or about standing rules and preferences."""
    plain = _comparable(title)
    words = _ASIDE.sub("", plain)
    if _pattern("rules").search(words):
        return "rules"
    return "people" if _pattern("people").search(words) or _pattern("people").search(plain) else ""


def states_status(title: str) -> bool:
    """Whether a heading is about how work stands, such as "Current status" or "Blockers"."""
    return _pattern("status").search(_comparable(title)) is not None


def states_delegation(text: str) -> bool:
    """Whether a heading or a sentence is about giving work to other agents."""
    return _pattern("delegation").search(text.casefold()) is not None


def states_rule(line: str) -> bool:
    """Whether a line states a standing rule: a word such as "never" in bold or in capitals."""
    bold = " ".join(_BOLD.findall(line)).casefold()
    if bold and _pattern("forbids").search(bold):
        return True
    return any(match[0].isupper() and len(match[0]) > 3 for match in _forbids_anywhere().finditer(line))


def knowledge_category(*titles: str) -> str:
    """The category of a card with these headings, the most telling one first; "project-context" if they do not say."""
    for title in titles:
        words = _comparable(title)
        found = next((name for name, pattern in _categories() if pattern.search(words)), "")
        if found:
            return found
    return "project-context"


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(load_phrases("headings").any_of(name))


@cache
def _forbids_anywhere() -> re.Pattern[str]:
    return re.compile(load_phrases("headings").any_of("forbids"), re.IGNORECASE)


@cache
def _categories() -> tuple[tuple[str, re.Pattern[str]], ...]:
    table = load_phrases("headings").table("category")
    return tuple((name, re.compile(text)) for name, text in table.items())
