"""What a handoff from some turns of a session begins with: words that a person then edits. Pure text, no judgement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truekeep.handoffs.format import topic_slug
from truekeep.text.markdown_lines import closes_fence, opening_fence
from truekeep.transcripts.parser import Turn

MOST_FACTS = 12
_LEAST, _LONGEST = 15, 300  # characters of a fact
_TITLE, _SUMMARY = 80, 400
_LEAD = re.compile(r"[ \t]{0,20}(?:[-*+>]{1,6}|\d{1,3}[.)])[ \t]+")
_END = re.compile(r"[.!?](?=\s|\Z)")


class Gist(NamedTuple):
    """A title, a summary and facts, as they might be."""

    title: str
    summary: str
    facts: tuple[str, ...]
    card: str


def find_gist(turns: Iterable[Turn], title: str = "") -> Gist:
    """The first words of what was asked, and what was answered, line by line. `title`: where nobody asked."""
    chosen = list(turns)
    asked = next((line for turn in chosen if turn.role == "user" for line in _statements(turn.text)), "")
    answered = [line for turn in chosen if turn.role == "assistant" for line in _statements(turn.text)]
    said = answered or [line for turn in chosen for line in _statements(turn.text)]
    name = _clipped(_sentence(asked) or title or (said[0] if said else ""), _TITLE)
    telling = [line for line in said if len(line) >= _LEAST] or said
    summary = _clipped(telling[0], _SUMMARY) if len(telling) > 1 else ""  # a card says nothing twice
    facts = dict.fromkeys(_clipped(line, _LONGEST) for line in telling[1:] or telling)
    return Gist(name, summary, tuple(facts)[:MOST_FACTS], f"{topic_slug(name, limit=48)}.md")


def _statements(text: str) -> Iterator[str]:
    """Lines that say something, without the marks of lists; no headings, no code, no tables."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if closes_fence(line.strip(), fence) else fence
            continue
        if fence := opening_fence(line.lstrip()):
            continue
        lead = _LEAD.match(line)
        bare = " ".join(line[lead.end() if lead else 0 :].split())
        if bare and not line.lstrip().startswith(("#", "|")):
            yield bare


def _sentence(text: str) -> str:
    end = _END.search(text)
    return text[: end.start()] if end else text


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
