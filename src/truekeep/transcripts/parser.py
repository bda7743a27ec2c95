"""Reads a harness's session file as dialogue: what the user said and what the agent answered, for search only.

Claude Code, Codex and OpenClaw each store sessions as JSON lines, in internal formats. So this parser takes only rows
that it knows to be dialogue and skips everything else: tool calls and results, reasoning, notices, prompts written by
programs, and text that truekeep injected. Any line may be hostile: an unreadable line is skipped, and credentials and
invisible characters are removed from all text.

A session that grows can be read from where the last run stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from truekeep.core.errors import BadInput
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import is_plain, printable, strip_hidden
from truekeep.transcripts.injected_text import (
    cut_own,
    is_machinery,
    unwrap_claude,
    unwrap_codex,
    unwrap_openclaw,
    unwrap_openclaw_user,
)
from truekeep.transcripts.session_file import HARNESSES, MAX_LINE, Row, parse_moment, parse_row

WRAP = 800

Role = Literal["user", "assistant"]
_ROLES = ("user", "assistant")


class Turn(NamedTuple):
    """What one side said, safe to store; on one line, unless the listener keeps line breaks."""

    role: Role
    text: str
    line: int  # of the session file, from 1
    at: str  # as in the file; "" if it has none


def iter_turns(lines: Iterable[bytes], harness: str) -> Iterator[Turn]:
    """The dialogue in the lines of a session file, without Claude's subagents."""
    return _iter_heard(lines, Listener(harness))


def _iter_heard(lines: Iterable[bytes], listener: Listener) -> Iterator[Turn]:
    for line in lines:
        if (turn := listener.hear(line)) is not None:
            yield turn
        if listener.has_ended:
            return


class Progress(NamedTuple):
    """How far a session was read; enough to continue as if it had been read in one go."""

    line: int = 0
    has_spoken: bool = False
    has_ended: bool = False  # the rest contains no dialogue


class Listener:
    """Reads a session line by line, from the start or from an earlier listener's progress."""

    def __init__(self, harness: str, *, breaks: bool = False, progress: Progress | None = None) -> None:
        if harness not in HARNESSES:
            raise BadInput(f"unknown harness {printable(harness)}", hint=f"known: {', '.join(HARNESSES)}")
        self._signs = _SIGNS[harness]
        self._speech = {"claude": self._claude, "codex": self._codex, "openclaw": self._openclaw}[harness]
        self._breaks = breaks
        self.line, self._has_spoken, self.has_ended = progress or Progress()

    @property
    def progress(self) -> Progress:
        return Progress(self.line, self._has_spoken, self.has_ended)

    def hear(self, line: bytes) -> Turn | None:
        """The turn in the next line; None if it is not dialogue."""
        self.line += 1
        if self.has_ended or len(line) > MAX_LINE or not _has_signs(line, self._signs):
            return None
        row = parse_row(line)
        said = self._speech(row) if row is not None else None
        if row is None or said is None or not said[1]:
            return None
        self._has_spoken = True
        return Turn(role=said[0], text=said[1], line=self.line, at=parse_moment(row.get("timestamp")))

    def _claude(self, row: Row) -> tuple[Role, str] | None:
        role, message = row.get("type"), row.get("message")
        if role not in _ROLES or not isinstance(message, dict) or message.get("role", role) != role:
            return None
        if row.get("toolUseResult") is not None or any(row.get(aside) for aside in _CLAUDE_ASIDES):
            return None
        if message.get("model") == "<synthetic>":
            return None  # an error message from Claude Code in the agent's place
        return role, _clean(_iter_text(message.get("content"), "text"), unwrap_claude, self._breaks)

    def _codex(self, row: Row) -> tuple[Role, str] | None:
        payload = row.get("payload")
        if row.get("type") != "response_item" or not isinstance(payload, dict) or payload.get("type") != "message":
            return None
        role = payload.get("role")
        if role not in _ROLES:
            return None
        blocks = _iter_text(payload.get("content"), "input_text", "output_text", "text")
        return role, _clean(blocks, unwrap_codex if role == "user" else str, self._breaks)

    def _openclaw(self, row: Row) -> tuple[Role, str] | None:
        if _is_dream(row):
            self.has_ended = True
            return None
        message = row.get("message")
        if row.get("type") != "message" or not isinstance(message, dict):
            return None
        role, provenance = message.get("role"), message.get("provenance")
        if role not in _ROLES:
            return None
        if isinstance(provenance, dict) and provenance.get("kind") in ("inter_session", "internal_system"):
            return None  # from another session, or recalled memory
        unwrap = unwrap_openclaw_user if role == "user" else unwrap_openclaw
        text = _clean(_iter_text(message.get("content"), "text"), unwrap, self._breaks)
        if not self._has_spoken and role == "user" and text.startswith("[cron:"):
            self.has_ended = True  # a session started by a schedule, without dialogue
            return None
        return None if is_machinery(text, role) else (role, text)


def iter_dialogue(turns: Iterable[Turn]) -> Iterator[tuple[str, int]]:
    """Dialogue lines with their source line. A long turn becomes several lines, each with the speaker."""
    for turn in turns:
        speaker = "User" if turn.role == "user" else "Assistant"
        for segment in _iter_segments(" ".join(turn.text.split())):
            yield f"{speaker}: {segment}", turn.line


def _iter_segments(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        space = text.rfind(" ", at + 1, at + WRAP + 1) if len(text) - at > WRAP else len(text)
        end = space if space > 0 else at + WRAP
        # A cut without a space may split an emoji, and half of one is a hidden character.
        if segment := strip_hidden(text[at:end]).strip():
            yield segment
        at = end + text.startswith(" ", end)


# --- Rows -----------------------------------------------------------------------------------------------------------

Signs = tuple[tuple[bytes, ...], ...]
"""A line that lacks every string of a group is not dialogue and is not parsed. They are whole JSON strings, so they do
not depend on key order and spacing."""

_CLAUDE_SIGNS: Signs = ((b'"user"', b'"assistant"'), (b'"message"',))
_CODEX_SIGNS: Signs = ((b'"response_item"',), (b'"message"',), (b'"user"', b'"assistant"'))
_DREAM = "dreaming-narrative-"
_OPENCLAW_SIGNS: Signs = ((b'"message"', _DREAM.encode()), (b'"user"', b'"assistant"', _DREAM.encode()))


_SIGNS = {"claude": _CLAUDE_SIGNS, "codex": _CODEX_SIGNS, "openclaw": _OPENCLAW_SIGNS}


def _has_signs(line: bytes, signs: Signs) -> bool:
    # Characters may be escaped. No harness does that, but then the line is simply parsed.
    return all(any(sign in line for sign in group) for group in signs) or b"\\u00" in line


_CLAUDE_ASIDES = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "isSidechain")


def _is_dream(row: Row) -> bool:
    """True if this row marks one of OpenClaw's nightly runs over its own memory."""
    data = row.get("data")
    run = data.get("runId") if isinstance(data, dict) else None
    return row.get("type") == "custom" and isinstance(run, str) and run.startswith(_DREAM)


def _iter_text(content: object, *kinds: str) -> Iterator[str]:
    """The texts in a message's content, without invisible characters."""
    blocks = [{"type": kinds[0], "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") in kinds and isinstance(text := block.get("text"), str):
            yield _strip_unseen(text)


def _strip_unseen(text: str) -> str:
    if is_plain(text):
        return text
    # Old line separators are control characters too; removing them would join two words.
    return strip_hidden(_SEPARATORS.sub("\n", text)).removeprefix("\ufeff")


_SEPARATORS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")


def _clean(blocks: Iterable[str], unwrap: Callable[[str], str], breaks: bool) -> str:
    """The text of a turn without injected text, wrappers and credentials; on one line, or with its line breaks."""
    # Truekeep's own text is removed first: it may quote a wrapper. NUL separates blocks: visible text never has one.
    text = cut_own("\n\0".join(blocks), is_wrapped=True)
    text = "\n".join(map(unwrap, text.split("\0"))).strip()
    if not text:
        return ""
    # Before line breaks are removed, because some credentials span lines; and after, for the others.
    masked = withhold(text)
    line = " ".join(masked.split())
    safe = line if line == text else withhold(line)
    return _tidy(masked) if breaks and safe == line else safe


def _tidy(text: str) -> str:
    """The text with line breaks, without trailing spaces and long gaps."""
    return _GAP.sub("\n\n", "\n".join(line.rstrip() for line in text.splitlines())).strip("\n")


_GAP = re.compile("\n{3,}")
