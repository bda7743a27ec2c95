"""Finds the lines of a memory file that a program wrote: nobody decided, learned or remembers what they say.

Harnesses put headers, prompts and metadata into the logs of sessions, and a log of a session is a transcript. Mailings
end in a footer, reports of scripts name their script, and lists that scripts make repeat one line with other numbers.
All of this is known by its structure; a sentence that only mentions it is kept. The words of people's languages are in
`phrases/program_text.*.toml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cache

from truekeep.text.phrases import load_phrases

OPENCLAW_INBOUND = ("(untrusted metadata):", "(untrusted, for context):", "⟦openclaw:ctx⟧")
"""How a line ends below which OpenClaw puts what it knows about a message."""

OPENCLAW_PROMPTS = (
    "[cron:",
    "[Inter-session message]",
    "Read HEARTBEAT.md",
    "A scheduled reminder has been triggered.",
    "A scheduled cron event was triggered",
    "An async command you ran earlier has completed.",
    "An async command completion event was triggered",
    "A new session was started via",
    "Pre-compaction memory flush",
    "OpenClaw runtime context",
    "OpenClaw runtime event.",
)
"""How the messages begin that OpenClaw sends in the place of its user."""

_MIN_ALIKE = 3  # lines of one shape that make a listing
_MIN_TURNS = 2  # of each side that make a dialogue
_EDGE_LINES = 4  # at either end of a text, where a report names its program
_FOOTER_LINES = 12  # of a mailing, above and below the line that names the way out
_MIN_LABELS = 2  # numbers with a name in one line of a listing
_MIN_ENDING = 3  # words that the lines of a listing end with
_MAX_LINE_CHARS = 2_000

_HEADER = re.compile(r"[-*+ \t]*[*_]{0,2}session[ _](?:key|id)[*_]{0,2}:?[*_]{0,2}\s*:?\s*\S", re.IGNORECASE)
_SOURCE = re.compile(r"[-*+ \t]*[*_]{0,2}source[*_]{0,2}:?[*_]{0,2}\s*:?\s*\S+\s*\Z", re.IGNORECASE)
_SESSION_TITLE = re.compile(r"#{1,3} Session: \d{4}-\d\d-\d\d")
_TURN = re.compile(r"[*_]{0,2}(?P<who>user|assistant|human|system)[*_]{0,2}:(?:[*_]{0,2}\s|\s*\Z)", re.IGNORECASE)
_MAIL_HEADER = re.compile(r"[-*> \t]*[*_]{0,2}(?:from|subject|to|reply-to)[*_]{0,2}:[*_]{0,2}\s+\S", re.IGNORECASE)
_DREAMING = re.compile(r"<!--\s*openclaw:dreaming:[\w:-]+\s*-->")
_DREAMING_HEADING = re.compile(r"#{1,4}\s+(?:Light Sleep|REM Sleep|Deep Sleep)\s*\Z")
_CANDIDATE = re.compile(r"[-*]\s+Candidate:\s|\s+-\s+(?:confidence|evidence|recalls|status):\s")
_HEADING = re.compile(r"(#{1,6})\s")
_LABELLED_NUMBER = re.compile(r"([^\W\d_]{2,20})[*_`:=#()\s]{0,4}[-+~$€£¥]?\d[\d.,]*")
_NUMBER = re.compile(r"\d[\d.,:]*")
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"[-*+ \t>]*(?:\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?")


def find_program_lines(text: str) -> dict[int, str]:
    """The lines that a program wrote, by number: "session", "prompt", "dreaming", "mail", "generated" or "listing"."""
    lines = text.split("\n")
    if _is_generated(lines):
        return dict.fromkeys(range(1, len(lines) + 1), "generated")
    found: dict[int, str] = {}
    for kind, numbers in (
        ("listing", _listing_lines(lines)),
        ("mail", _mail_lines(lines)),
        ("dreaming", _dreaming_lines(lines)),
        ("prompt", _prompt_lines(lines)),
        ("session", _session_lines(lines)),
    ):
        found.update(dict.fromkeys(numbers, kind))
    return found


def cover_lines(text: str, numbers: Container[int]) -> str:
    """The text with blanks in place of these lines."""
    if not numbers:
        return text
    lines = text.split("\n")
    return "\n".join(" " * len(line) if number in numbers else line for number, line in enumerate(lines, 1))


# --- Sessions -------------------------------------------------------------------------------------------------------


def _session_lines(lines: Sequence[str]) -> Iterator[int]:
    """The header of a session, and the dialogue to the end of the file."""
    has_header = False
    for number, line in enumerate(lines, 1):
        is_header = _HEADER.match(line[:_MAX_LINE_CHARS]) is not None
        if is_header or _SESSION_TITLE.match(line) or (has_header and _SOURCE.match(line[:_MAX_LINE_CHARS])):
            yield number
        has_header = is_header or (has_header and not line.startswith("#"))
    first = _first_turn(lines)
    if first is not None:
        yield from range(first, len(lines) + 1)


def _first_turn(lines: Sequence[str]) -> int | None:
    """The line on which a dialogue begins. Without a header, it takes some turns of both sides."""
    turns = [(number, match["who"].lower()) for number, line in enumerate(lines, 1) if (match := _TURN.match(line))]
    if not turns:
        return None
    has_header = any(_HEADER.match(line[:_MAX_LINE_CHARS]) for line in lines[:20])
    counted = Counter("agent" if who == "assistant" else "user" for _, who in turns)
    if has_header or min(counted["agent"], counted["user"]) >= _MIN_TURNS:
        return turns[0][0]
    return None


def _prompt_lines(lines: Sequence[str]) -> Iterator[int]:
    """What a harness puts into a session: prompts, notices, and metadata with the JSON below it."""
    notices = _compiled("notices")
    is_json = False
    after_metadata = False
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if is_json:
            is_json = not bare.startswith("```")
            yield number
            continue
        if after_metadata and bare.startswith("```json"):
            is_json = True
            yield number
            continue
        turn = _TURN.match(bare)
        said = bare[turn.end() if turn else 0 :][:_MAX_LINE_CHARS].lstrip()
        after_metadata = bare.endswith(OPENCLAW_INBOUND) or (after_metadata and not bare)
        if (
            bare.endswith(OPENCLAW_INBOUND)
            or said.startswith(OPENCLAW_PROMPTS)
            or notices.match(said)
            or notices.match(bare[:_MAX_LINE_CHARS])
        ):
            yield number


def _dreaming_lines(lines: Sequence[str]) -> Iterator[int]:
    """Sections that OpenClaw's dreaming writes: between its marks, below its headings, and its candidates."""
    is_marked = False
    level = 0
    for number, line in enumerate(lines, 1):
        mark = _DREAMING.match(line.strip()) if "openclaw:dreaming" in line else None
        if mark is not None:
            is_marked = "end" not in mark[0]
            yield number
            continue
        heading = _HEADING.match(line)
        if _DREAMING_HEADING.match(line.rstrip()):
            level = len(heading[1]) if heading else 0
        elif heading and level and len(heading[1]) <= level:
            level = 0
        if is_marked or level or _CANDIDATE.match(line):
            yield number


# --- Mail and reports -----------------------------------------------------------------------------------------------


def _mail_lines(lines: Sequence[str]) -> Iterator[int]:
    """A mailing as a whole if it has mail headers, else its footer."""
    ways_out = [number for number, line in enumerate(lines, 1) if _compiled("unsubscribe").search(line[:500])]
    if not ways_out:
        return
    if sum(_MAIL_HEADER.match(line[:200]) is not None for line in lines) >= 2:
        yield from range(1, len(lines) + 1)
        return
    for number in ways_out:
        if not _is_short(lines[number - 1]):
            continue  # a sentence about it
        first = max([at for at in range(1, number) if lines[at - 1].startswith("#")], default=0)
        last = min(
            [at for at in range(number, len(lines) + 1) if lines[at - 1].startswith("#")], default=len(lines) + 1
        )
        yield from range(max(first + 1, number - _FOOTER_LINES), min(last, number + _FOOTER_LINES + 1))


def _is_short(line: str) -> bool:
    return len(_WORD.findall(line)) <= 14


def _is_generated(lines: Sequence[str]) -> bool:
    said = [line.strip(" \t#>*_-|`<!()[]⚙️🤖") for line in lines if line.strip()]
    return any(_compiled("generated").match(line) for line in (*said[:_EDGE_LINES], *said[-_EDGE_LINES:]))


# --- Listings -------------------------------------------------------------------------------------------------------


def _listing_lines(lines: Sequence[str]) -> Iterator[int]:
    """Lines that repeat one shape in a block: the same labels with other numbers, or the same words at the end."""
    for block in _blocks(lines):
        if len(block) < _MIN_ALIKE:
            continue
        shapes: dict[str, dict[str, list[int]]] = {}
        for number, line in block:
            for shape in _shapes(line):
                shapes.setdefault(shape, {}).setdefault(line.strip(), []).append(number)
        for alike in shapes.values():
            if len(alike) >= _MIN_ALIKE:  # different lines: one that is only repeated is no list
                for numbers in alike.values():
                    yield from numbers


def _shapes(line: str) -> Iterator[str]:
    """What the lines of a listing share: all but the numbers, the labels of several numbers, or the last words."""
    if _NUMBER.search(line):
        yield "text " + _NUMBER.sub("0", line.strip())
    labels = [match[1].lower() for match in _LABELLED_NUMBER.finditer(line[:300])]
    if len(labels) >= _MIN_LABELS:
        yield "labels " + " ".join(labels)
    if ending := _ending(line):
        yield "ending " + ending


def _blocks(lines: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """The lines between headings, without blank ones."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            yield block
            block = []
        elif line.strip():
            block.append((number, line[:_MAX_LINE_CHARS]))
    yield block


def _ending(line: str) -> str:
    """The last words of a list item behind a colon, a dash or an arrow; empty if it has none."""
    mark = _MARK.match(line)
    bare = line[mark.end() if mark else 0 :]
    if bare == line.lstrip() and not line.startswith(("-", "*", "+")):
        return ""  # no list item
    _, sign, tail = re.sub(r"\s[—–-]+\s|→|:\s", "\0", bare).rpartition("\0")
    words = [word.lower() for word in _WORD.findall(tail)]
    return " ".join(words) if sign and len(words) >= _MIN_ENDING else ""


@cache
def _compiled(entry: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{load_phrases('program_text').any_of(entry)})", re.IGNORECASE)
