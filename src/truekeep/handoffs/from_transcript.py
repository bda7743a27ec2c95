"""Drafts a handoff from turns of a session, for a person to edit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truekeep.handoffs.format import topic_slug
from truekeep.text.markdown_lines import FenceReader
from truekeep.transcripts.parser import Turn

MAX_FACTS = 12
_MIN_FACT_LENGTH, _MAX_FACT_LENGTH = 15, 300
_MAX_TITLE_LENGTH, _MAX_SUMMARY_LENGTH = 80, 400
_LEAD = re.compile(r"[ \t]{0,20}(?:[-*+>]{1,6}|\d{1,3}[.)])[ \t]+")
_END = re.compile(r"[.!?](?=\s|\Z)")


class Gist(NamedTuple):
    """A suggested title, summary, facts and card name."""

    title: str
    summary: str
    facts: tuple[str, ...]
    card: str


def find_gist(turns: Iterable[Turn], title: str = "") -> Gist:
    """Title from the first question, facts from the answers. `title` is used if there is no question."""
    chosen = list(turns)
    asked = next((line for turn in chosen if turn.role == "user" for line in _statements(turn.text)), "")
    answered = [line for turn in chosen if turn.role == "assistant" for line in _statements(turn.text)]
    said = answered or [line for turn in chosen for line in _statements(turn.text)]
    name = _clipped(_sentence(asked) or title or (said[0] if said else ""), _MAX_TITLE_LENGTH)
    lines = [line for line in said if len(line) >= _MIN_FACT_LENGTH] or said
    summary = _clipped(lines[0], _MAX_SUMMARY_LENGTH) if len(lines) > 1 else ""  # a single line is the fact
    facts = dict.fromkeys(_clipped(line, _MAX_FACT_LENGTH) for line in lines[1:] or lines)
    return Gist(name, summary, tuple(facts)[:MAX_FACTS], f"{topic_slug(name, limit=48)}.md")


def _statements(text: str) -> Iterator[str]:
    """Lines of prose and lists, without list marks; no headings, code or tables."""
    fences = FenceReader()
    for line in text.split("\n"):
        if fences.see(line.lstrip()):
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
