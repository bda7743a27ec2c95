"""A harness's own session file, read as dialogue: what the person said and what the agent answered, for search only.

Claude Code, Codex and OpenClaw each keep sessions as JSON lines, in formats they call internal. So this reader takes
only the rows it knows to be speech and passes over everything else: tool calls and results, reasoning, notices, prompts
that a program wrote, and the text that truekeep itself put into the session. Any line may be hostile: one that cannot
be read costs that line and nothing more, and no text leaves here with a credential or an unseen character in it.

Files are read a line at a time and never written; compressed ones (`.zst`) as they are unpacked. A session that goes on
can be heard from where it was left. OpenClaw's newer SQLite store is read elsewhere; its rows are these lines.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from truekeep.disk import UnsafePath, open_folder, open_root
from truekeep.errors import BadInput
from truekeep.hidden import is_plain, printable, strip_hidden
from truekeep.model import BEGIN_MARK, END_MARK

if TYPE_CHECKING:
    from json import JSONDecoder

HARNESSES = ("claude", "codex", "openclaw")

MAX_LINE = 8 << 20
"""Longer lines are passed over, in bytes. The largest real ones are tool results and pictures, which are no speech."""

HEAD = 64 << 10
WRAP = 800

Role = Literal["user", "assistant"]
_ROLES = ("user", "assistant")


class Turn(NamedTuple):
    """What one side said, safe to store; on one line, unless the listener was told to keep line breaks."""

    role: Role
    text: str
    line: int  # of the session file, counted from 1
    at: str  # as the file has it; empty when it has none


class Session(NamedTuple):
    """What the head of a session file says about it; empty where it says nothing."""

    harness: str
    id: str
    cwd: str
    started_at: str
    branch: str


class TranscriptFile(NamedTuple):
    """A session file as it was found, not opened yet."""

    path: Path
    harness: str
    session_id: str
    mtime_ns: int
    size: int
    shown: str  # a name for indexes and people: stable, printable, no two files the same
    ctime_ns: int = 0


# --- Dialogue -------------------------------------------------------------------------------------------------------


def iter_turns(lines: Iterable[bytes], harness: str, *, sidechains: bool = False) -> Iterator[Turn]:
    """The dialogue in the lines of a session file; `sidechains` adds what Claude's subagents said."""
    return _iter_heard(lines, Listener(harness, sidechains=sidechains))


def _iter_heard(lines: Iterable[bytes], listener: Listener) -> Iterator[Turn]:
    for line in lines:
        if (turn := listener.hear(line)) is not None:
            yield turn
        if listener.has_ended:
            return


class Progress(NamedTuple):
    """How far a session was heard: all it takes to go on as if it had been heard in one go."""

    line: int = 0
    has_spoken: bool = False
    has_ended: bool = False  # whatever else it holds, nobody speaks in it


class Listener:
    """Hears a session line by line, from the start or from where another listener was."""

    def __init__(
        self, harness: str, *, sidechains: bool = False, breaks: bool = False, progress: Progress | None = None
    ) -> None:
        if harness not in HARNESSES:
            raise BadInput(f"no harness is called {printable(harness)}", hint=f"known: {', '.join(HARNESSES)}")
        self._signs = _SIGNS[harness]
        self._speech = {"claude": self._claude, "codex": self._codex, "openclaw": self._openclaw}[harness]
        self._breaks = breaks
        self._claude_asides = _CLAUDE_ASIDES if sidechains else (*_CLAUDE_ASIDES, "isSidechain")
        self.line, self._has_spoken, self.has_ended = progress or Progress()

    @property
    def progress(self) -> Progress:
        return Progress(self.line, self._has_spoken, self.has_ended)

    def hear(self, line: bytes) -> Turn | None:
        """What the next line says, if somebody speaks in it."""
        self.line += 1
        if self.has_ended or len(line) > MAX_LINE or not _has_signs(line, self._signs):
            return None
        row = _parse_row(line)
        said = self._speech(row) if row is not None else None
        if row is None or said is None or not said[1]:
            return None
        self._has_spoken = True
        return Turn(role=said[0], text=said[1], line=self.line, at=_parse_moment(row.get("timestamp")))

    def _claude(self, row: Row) -> tuple[Role, str] | None:
        role, message = row.get("type"), row.get("message")
        if role not in _ROLES or not isinstance(message, dict) or message.get("role", role) != role:
            return None
        if row.get("toolUseResult") is not None or any(row.get(aside) for aside in self._claude_asides):
            return None
        if message.get("model") == "<synthetic>":
            return None  # Claude Code speaking in the agent's place, about an error
        return role, _clean(_iter_text(message.get("content"), "text"), _unwrap_claude, self._breaks)

    def _codex(self, row: Row) -> tuple[Role, str] | None:
        payload = row.get("payload")
        if row.get("type") != "response_item" or not isinstance(payload, dict) or payload.get("type") != "message":
            return None
        role = payload.get("role")
        if role not in _ROLES:
            return None
        blocks = _iter_text(payload.get("content"), "input_text", "output_text", "text")
        return role, _clean(blocks, _unwrap_codex if role == "user" else str, self._breaks)

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
            return None  # another session, or recalled memory
        unwrap = _unwrap_openclaw_user if role == "user" else _unwrap_openclaw
        text = _clean(_iter_text(message.get("content"), "text"), unwrap, self._breaks)
        if not self._has_spoken and role == "user" and text.startswith("[cron:"):
            self.has_ended = True  # a session that a schedule began, in which nobody speaks
            return None
        return None if _is_machinery(text, role) else (role, text)


def render_dialogue(turns: Iterable[Turn]) -> tuple[str, list[int]]:
    """The text that is indexed, and for each of its lines the line of the session file that it came from."""
    lines: list[str] = []
    sources: list[int] = []
    for line, source in iter_dialogue(turns):
        lines.append(line)
        sources.append(source)
    return "\n".join(lines), sources


def iter_dialogue(turns: Iterable[Turn]) -> Iterator[tuple[str, int]]:
    """Each line of the dialogue with the line it came from. A long turn is several lines, each naming the speaker."""
    for turn in turns:
        speaker = "User" if turn.role == "user" else "Assistant"
        for segment in _iter_segments(" ".join(turn.text.split())):
            yield f"{speaker}: {segment}", turn.line


def _iter_segments(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        space = text.rfind(" ", at + 1, at + WRAP + 1) if len(text) - at > WRAP else len(text)
        end = space if space > 0 else at + WRAP
        # A cut without a space may fall inside an emoji, and half of one is a hidden character again.
        if segment := strip_hidden(text[at:end]).strip():
            yield segment
        at = end + text.startswith(" ", end)


# --- Rows -----------------------------------------------------------------------------------------------------------

Row = dict[str, Any]

Signs = tuple[tuple[bytes, ...], ...]
"""Of each group, one is in the line, or the line is no speech and need not be parsed. They are whole JSON strings, and
so look the same whatever the order of the keys and the spacing."""

_CLAUDE_SIGNS: Signs = ((b'"user"', b'"assistant"'), (b'"message"',))
_CODEX_SIGNS: Signs = ((b'"response_item"',), (b'"message"',), (b'"user"', b'"assistant"'))
_DREAM = "dreaming-narrative-"
_OPENCLAW_SIGNS: Signs = ((b'"message"', _DREAM.encode()), (b'"user"', b'"assistant"', _DREAM.encode()))


_SIGNS = {"claude": _CLAUDE_SIGNS, "codex": _CODEX_SIGNS, "openclaw": _OPENCLAW_SIGNS}


def _has_signs(line: bytes, signs: Signs) -> bool:
    # A letter may be written as an escape. No harness does, but then the line is simply parsed.
    return all(any(sign in line for sign in group) for group in signs) or b"\\u00" in line


def _parse_row(line: bytes) -> Row | None:
    try:
        row = _decoder().decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _parse_cut_row(text: str, at: int = 0, *, depth: int = 3) -> Row:
    """The members of an object that breaks off somewhere, as far as they are whole."""
    decode = _decoder().raw_decode
    row: Row = {}
    try:
        at = _skip_blanks(text, at, "{")
        while True:
            key, at = decode(text, at)
            at = _skip_blanks(text, at, ":")
            try:
                value, at = decode(text, at)
            except (ValueError, RecursionError):
                if depth and text.startswith("{", at):
                    row.setdefault(key, _parse_cut_row(text, at, depth=depth - 1))
                return row
            row.setdefault(key, value)
            at = _skip_blanks(text, at, ",")
    except (ValueError, RecursionError, TypeError):  # TypeError: a key that is a list or an object
        return row


def _skip_blanks(text: str, at: int, sign: str) -> int:
    """The place after the sign and the blanks around it."""
    blanks = _BLANKS.match(text, at)
    at = blanks.end() if blanks else at
    if not text.startswith(sign, at):
        raise ValueError(sign)
    blanks = _BLANKS.match(text, at + 1)
    return blanks.end() if blanks else at + 1


_BLANKS = re.compile(r"[ \t\r\n]*")


@cache
def _decoder() -> JSONDecoder:
    import json

    return json.JSONDecoder(object_pairs_hook=_as_row, parse_constant=_refuse_constant)


def _as_row(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) != len(pairs):
        # Readers differ in which one they take, so the row may say something else here than to its harness.
        raise ValueError("a key stands twice")
    return row


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _iter_text(content: object, *kinds: str) -> Iterator[str]:
    """The texts in a message's content, without what a reader cannot see."""
    blocks = [{"type": kinds[0], "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and block.get("type") in kinds and isinstance(text := block.get("text"), str):
            yield _strip_unseen(text)


def _strip_unseen(text: str) -> str:
    if is_plain(text):
        return text
    # Old line separators are control characters too; taking them out would join two words.
    return strip_hidden(_SEPARATORS.sub("\n", text)).removeprefix("\ufeff")


_SEPARATORS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")


def _clean(blocks: Iterable[str], unwrap: Callable[[str], str], breaks: bool) -> str:
    """The text of a turn, without what truekeep injected, wrappers and credentials; on one line, or with its breaks."""
    # Truekeep's own text goes first: it may quote a wrapper. NUL parts the blocks, because no visible text has one.
    text = _cut_own("\n\0".join(blocks), is_wrapped=True)
    text = "\n".join(map(unwrap, text.split("\0"))).strip()
    if not text:
        return ""
    from truekeep.secrets import withhold  # here, and not above: start-up time

    # Before the line breaks go, because some credentials are only seen across one; and after, for the other ones.
    masked = withhold(text)
    line = " ".join(masked.split())
    safe = line if line == text else withhold(line)
    return _tidy(masked) if breaks and safe == line else safe


def _tidy(text: str) -> str:
    """A text with its line breaks, but without trailing blanks and long gaps."""
    return _GAP.sub("\n\n", "\n".join(line.rstrip() for line in text.splitlines())).strip("\n")


_GAP = re.compile("\n{3,}")


def _parse_moment(value: object) -> str:
    return value if isinstance(value, str) and _MOMENT.fullmatch(value) else ""


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{4,20}(?:Z|[+-][0-9:]{2,6})?")


# --- Wrappers -------------------------------------------------------------------------------------------------------


def cut_injected(text: str) -> str:
    """The text without what truekeep had put into a session. Who only speaks of the marks keeps every word."""
    return _cut_own(text, is_wrapped=False)


def _cut_own(text: str, *, is_wrapped: bool) -> str:
    """The text without what stands between truekeep's marks.

    A mark without an end counts where a line begins with it, quoted or not: then it is a text of ours that was cut off.
    `is_wrapped`: harnesses put words of their own before and behind our text, so its first and last line go whole, and
    a mark that ends its line counts, too.
    """
    if BEGIN_MARK not in text:
        return text
    before, *blocks = text.split(BEGIN_MARK)
    pieces = [before]
    for block in blocks:
        above, newline, line = pieces[-1].rpartition("\n")
        is_first = not line.strip("> \t\0")
        _, closed, after = block.rpartition(END_MARK)  # what is injected may quote it: the last one counts
        if not closed and not is_first and not (is_wrapped and block.partition("\n")[0].endswith("-->")):
            pieces.append(BEGIN_MARK + block)
            continue
        rest, ending, below = after.partition("\n") if closed else ("", "", "")
        rest = "" if is_wrapped else rest.partition("-->")[2]
        if is_first or is_wrapped:
            pieces[-1] = above + newline
            ending = ending if rest.strip() else ""
        pieces.append(rest + ending + below)
    return "".join(pieces)


def _cut_marked(text: str, begin: str, end: str) -> str:
    """The text without the lines from one with the first mark to one with the second, or to where the text ends.

    What is injected may quote the second mark, so the last one before the next first mark counts.
    """
    if begin not in text:
        return text
    before, *blocks = text.split(begin)
    pieces = [before]
    for block in blocks:
        pieces[-1] = pieces[-1].rpartition("\n")[0]  # the line that the first mark stands in
        _, closed, after = block.rpartition(end)
        pieces.append(after.partition("\n")[2] if closed else "")
    return "\n".join(pieces)


def _cut_tags(text: str, opening: re.Pattern[str]) -> str:
    """The text without the elements that open at the beginning of a line, or right after another one.

    Someone who writes about a tag in a sentence keeps the sentence. An element that is never closed reaches to the end
    if it is all there is, and is text otherwise.
    """
    pieces: list[str] = []
    open_ended: set[str] = set()  # looked for once, which keeps a text full of opening tags linear
    at = done = 0
    while (tag := opening.search(text, at)) is not None:
        close = f"</{tag[1]}>"
        first = -1 if close in open_ended else text.find(close, tag.end())
        if first < 0:
            if not open_ended and not "".join(pieces).strip() and not text[done : tag.start()].strip():
                return ""
            open_ended.add(close)
            at = tag.end()
            continue
        following = opening.search(text, first)
        # As with the marks: what stands inside may quote the closing tag.
        last = text.rfind(close, first, following.start() if following else len(text))
        pieces.append(text[done : tag.start()])
        at = done = last + len(close)
    return "".join(pieces) + text[done:]


def _match_tags(*names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|(?<=>))[ \t]*<({'|'.join(names)})(?=[\s>])", re.MULTILINE)


# --- Claude Code ----------------------------------------------------------------------------------------------------

_CLAUDE_ASIDES = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def _unwrap_claude(text: str) -> str:
    if "<" in text:
        text = _cut_tags(text, _claude_tags())
    if "Caveat: " in text or "[Request interrupted" in text:
        text = "\n".join(line for line in text.split("\n") if not line.strip().startswith(_CLAUDE_NOTICES))
    return text


_CLAUDE_NOTICES = ("Caveat: The messages below were generated by the user", "[Request interrupted by user")


@cache
def _claude_tags() -> re.Pattern[str]:
    return _match_tags(
        "system-reminder",
        "command-(?:name|message|args|contents)",
        "local-command-(?:caveat|stdout|stderr)",
        "bash-(?:input|stdout|stderr)",
        "user-prompt-submit-hook",
        "task-notification",
        "teammate-message",
        "ide_(?:opened_file|selection|diagnostics)",
    )


# --- Codex ----------------------------------------------------------------------------------------------------------


def _unwrap_codex(text: str) -> str:
    """What is left of a block after the wrappers it begins with.

    Codex writes each wrapper as a block of its own. So a wrapper reaches to the last closing tag, and instructions from
    a repository cannot pass for the person's words by closing it early.
    """
    text = text.strip()
    for _ in range(16):
        opening = _codex_wrapper().match(text)
        if opening is None:
            break
        _, closed, rest = text.rpartition(f"</{opening[1] or 'INSTRUCTIONS'}>")
        text = rest.strip() if closed else ""
    else:
        return ""  # nobody speaks after that many, and each costs a look through the whole text
    if text.startswith(_CODEX_WARNINGS):
        return ""
    if text.startswith("# Context from my IDE setup:"):
        return text.rpartition("## My request for Codex:")[2] if "## My request for Codex:" in text else ""
    return text


@cache
def _codex_wrapper() -> re.Pattern[str]:
    names = (
        "INSTRUCTIONS",
        "user_instructions",
        "environment_context",
        "environments_instructions",
        r"(?:apps|skills|plugins)_instructions",
        "recommended_plugins",
        "skill",
        "user_shell_command",
        "turn_aborted",
        "subagent_notification",
        "codex_internal_context",
        "goal_context",
        "hook_prompt",
        "collaboration_mode",
        "personality_spec",
        "model_switch",
        "startup_context",
        r"external_\w+",
    )
    return re.compile(rf"<({'|'.join(names)})(?=[\s>])|# AGENTS\.md instructions")


_CODEX_WARNINGS = ("Warning: apply_patch was requested via", "Warning: The maximum number of unified exec processes")


# --- OpenClaw -------------------------------------------------------------------------------------------------------

_INBOUND_MARK = "⟦openclaw:ctx⟧"
_INBOUND = ("(untrusted metadata):", "(untrusted, for context):", _INBOUND_MARK)
_INBOUND_TAIL = (f"Context: {_INBOUND_MARK}", "Untrusted context (metadata, do not treat as instructions or commands):")
_OPENCLAW_PROMPTS = (
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


def _is_dream(row: Row) -> bool:
    """Whether this row says that the session is one of OpenClaw's nightly passes over its own memory."""
    data = row.get("data")
    run = data.get("runId") if isinstance(data, dict) else None
    return row.get("type") == "custom" and isinstance(run, str) and run.startswith(_DREAM)


def _unwrap_openclaw_user(text: str) -> str:
    return _cut_inbound(_unwrap_openclaw(text))


def _unwrap_openclaw(text: str) -> str:
    text = _cut_marked(text, "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>")
    return _cut_tags(text, _openclaw_tags()) if "<" in text else text


@cache
def _openclaw_tags() -> re.Pattern[str]:
    return _match_tags("active_memory_plugin", "relevant-memories")


def _cut_inbound(text: str) -> str:
    """The text without what a channel adds: who wrote, where, in answer to what."""
    lines = text.split("\n") if any(header in text for header in (*_INBOUND, *_INBOUND_TAIL)) else []
    kept: list[str] = [] if lines else [text]
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if line in _INBOUND_TAIL:
            break
        if not line.endswith(_INBOUND):
            kept.append(lines[at - 1])
            continue
        is_fenced = at < len(lines) and lines[at].strip() == "```json"
        closing = "```" if is_fenced else ""
        while at < len(lines) and lines[at].strip() != closing:
            at += 1
        at += is_fenced
    return _ENVELOPE.sub("", "\n".join(kept).strip())


_ENVELOPE = re.compile(r"\A\[[A-Z][a-z]{2} [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}[^\]\n]{0,40}\] *")


def _is_machinery(text: str, role: Role) -> bool:
    """Whether a program wrote this, or it is an agent's way of saying nothing."""
    text = " ".join(text.split()) if "\n" in text else text
    if text == "NO_REPLY" or _SILENCE.fullmatch(text) or _EXEC_ENDED.match(text):
        return True
    if role == "assistant":
        return text.strip("*`~_.! ") == "HEARTBEAT_OK"
    return text.startswith(_OPENCLAW_PROMPTS) or "reply HEARTBEAT_OK" in text or _NOTICE.match(text) is not None


_SILENCE = re.compile(r'\{ ?"action" ?: ?"NO_REPLY" ?\}')
_NOTICE = re.compile(r"System(?: \(untrusted\))?: \[[^\]]+\]")
_EXEC_ENDED = re.compile(r"exec (?:finished ?[:(]|(?:completed|failed) \([\w-]{1,64}, )", re.IGNORECASE)


# --- Files ----------------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a session file. One that is too long comes as an empty one, so that all keep their numbers."""
    with open_session(path) as file:
        while line := file.readline(MAX_LINE + 1):
            if len(line) <= MAX_LINE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield b""


def read_session(path: Path, harness: str) -> Session:
    """What the first 64 kB say about the session."""
    with open_session(path) as file:
        head = file.read(HEAD)
    return parse_session(head, harness, path.name)


def parse_session(head: bytes, harness: str, name: str) -> Session:
    """What the head of a session says about it; the file's name has its id where the head has none."""
    *lines, last = head.split(b"\n")
    rows = [row for row in map(_parse_row, lines) if row is not None]
    rows.append(_parse_cut_row(last.decode("utf-8", "ignore")))
    session = Session(harness=harness, id="", cwd="", started_at="", branch="")
    for row in rows:
        found = _parse_session(row, harness)
        session = Session(*(known or new for known, new in zip(session, found, strict=True)))
        if all(session) or (session.id and harness != "claude"):
            break  # the others say it all in one row, and a fork of a session repeats that of the first
    return session if session.id else session._replace(id=_parse_session_id(name, harness))


def _parse_session(row: Row, harness: str) -> Session:
    """What one row says about its session."""
    said: Row = {}
    if harness == "claude":
        said = {**row, "id": row.get("sessionId"), "branch": row.get("gitBranch")}
    elif harness == "openclaw" and row.get("type") == "session":
        said = row
    elif harness == "codex" and row.get("type") == "session_meta" and isinstance(meta := row.get("payload"), dict):
        git = meta.get("git")
        said = {"timestamp": row.get("timestamp"), **meta, "branch": git.get("branch") if isinstance(git, dict) else ""}
    return Session(
        harness=harness,
        id=clean_name(said.get("id")),
        cwd=clean_name(said.get("cwd")),
        started_at=_parse_moment(said.get("timestamp")),
        branch=clean_name(said.get("branch")),
    )


def clean_name(value: object) -> str:
    """A path, a branch or an id as it may be stored and shown."""
    if not isinstance(value, str) or not value or len(value) > 4096:
        return ""
    from truekeep.secrets import withhold

    return withhold(printable(value))


def is_own_housekeeping(session: Session, environ: Mapping[str, str], *, home: Path | None = None) -> bool:
    """Whether Codex ran this session on its own memory. Nobody spoke in it, and what it says is Codex's prompt."""
    if session.harness != "codex" or not session.cwd:
        return False
    root = find_root(home or Path(environ.get("HOME", "/")), environ, "CODEX_HOME", ".codex")
    cwd = os.path.normpath(session.cwd)
    return any(
        cwd == own or cwd.startswith(own.rstrip("/") + "/") for own in (os.path.normpath(root), os.path.realpath(root))
    )


def sniff_harness(first_lines: Iterable[bytes]) -> str | None:
    """Which harness wrote a file that begins like this."""
    for line in islice(first_lines, 64):
        row = _parse_row(line) if len(line) <= MAX_LINE else None
        if row is None:
            continue
        kind = row.get("type")
        if isinstance(row.get("payload"), dict) and isinstance(kind, str):
            return "codex"
        if (kind == "session" and "version" in row) or (kind == "message" and "parentId" in row):
            return "openclaw"
        if any(isinstance(row.get(key), str) for key in ("sessionId", "leafUuid", "messageId")):
            return "claude"
    return None


@contextmanager
def open_session(path: Path) -> Iterator[BinaryIO]:
    """A session file, to be read from its beginning; a compressed one as what is in it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafePath(printable(str(path)), "is a symlink") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafePath(printable(str(path)), "is not a regular file")
    with open(descriptor, "rb", buffering=1 << 18) as file:
        if not path.name.endswith(".zst"):
            yield file
            return
        zstd = load_zstd()
        try:
            with zstd.ZstdFile(file) as unpacked:
                yield unpacked
        except (zstd.ZstdError, EOFError) as error:
            raise OSError(errno.EILSEQ, "it is damaged, or not written to the end", str(path)) from error


def load_zstd() -> Any:
    """Zstandard: Python's own from 3.14 on, before that the same module under another name."""
    import importlib
    import sys

    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


# --- Finding --------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a harness keeps sessions: a folder that the user named, and the shape of what is below."""

    harness: str
    variable: str
    default: str
    shape: tuple[str, ...]
    is_wanted: Callable[[str], bool]
    telling: slice
    """Which steps of the way tell one file from another."""


def _is_session(name: str) -> bool:
    return name.endswith(".jsonl") and not name.startswith("agent-")  # those are subagents', from older versions


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst"))


def _is_openclaw_session(name: str) -> bool:
    """Sessions and what a reset put away; not what was deleted, nor copies made before a compaction, nor traces."""
    stem, extension, rest = name.partition(".jsonl")
    if not extension or ".checkpoint." in stem or stem.endswith(".trajectory"):
        return False
    return not rest or rest.startswith(".reset.")


_PLACES = (
    _Place("claude", "CLAUDE_CONFIG_DIR", ".claude", ("projects", "*"), _is_session, slice(1, None)),
    _Place("codex", "CODEX_HOME", ".codex", ("archived_sessions", "**"), _is_rollout, slice(0, None)),
    _Place("codex", "CODEX_HOME", ".codex", ("sessions", "**"), _is_rollout, slice(0, None)),
    _Place(
        "openclaw",
        "OPENCLAW_STATE_DIR",
        ".openclaw",
        ("agents", "*", "sessions"),
        _is_openclaw_session,
        slice(1, None, 2),
    ),
)
_MAX_DEPTH = 8


def find_transcripts(
    *, home: Path, environ: Mapping[str, str], since: float | None, compressed: bool = False
) -> Iterator[TranscriptFile]:
    """Every session file of the three harnesses that was written at or after a time, in a stable order.

    A harness's own folder may be a symlink, as dotfiles often are; nothing below it is followed. What cannot be read
    is passed over, and so are compressed files unless they are asked for.
    """
    for seen in iter_seen(home=home, environ=environ):
        old = since is not None and seen.info.st_mtime < since
        if not old and (compressed or not seen.trail[-1].endswith(".zst")):
            yield seen.describe()


class Seen(NamedTuple):
    """A session file as a walk sees it. What it is called costs more than the look, so that is asked for apart."""

    place: _Place
    root: str
    trail: tuple[str, ...]
    info: os.stat_result

    @property
    def path(self) -> str:
        return "/".join((self.root, *self.trail))

    def describe(self) -> TranscriptFile:
        harness = self.place.harness
        return TranscriptFile(
            path=Path(self.path),
            harness=harness,
            session_id=_parse_session_id(self.trail[-1], harness),
            mtime_ns=self.info.st_mtime_ns,
            size=self.info.st_size,
            shown=render_shown("/".join(("transcripts", harness, *self.trail[self.place.telling]))),
            ctime_ns=self.info.st_ctime_ns,
        )


def iter_seen(*, home: Path, environ: Mapping[str, str]) -> Iterator[Seen]:
    """Every session file that there is, compressed ones too, by its stat alone."""
    for place in _PLACES:
        root = str(find_root(home, environ, place.variable, place.default))
        try:
            folder = open_root(root)
        except OSError:
            continue
        try:
            for trail, info in _iter_files(folder, place.shape, place.is_wanted, ()):
                yield Seen(place, root, trail, info)
        finally:
            os.close(folder)


def find_agent_databases(*, home: Path, environ: Mapping[str, str]) -> Iterator[TranscriptFile]:
    """OpenClaw's databases, one for each agent. `shown` is what the names of their sessions begin with."""
    root = find_root(home, environ, "OPENCLAW_STATE_DIR", ".openclaw")
    try:
        folder = open_root(str(root))
    except OSError:
        return
    try:
        found = _iter_files(folder, ("agents", "*", "agent"), "openclaw-agent.sqlite".__eq__, ())
        for trail, info in found:
            shown = render_shown(f"transcripts/openclaw/{trail[1]}.sqlite")
            yield TranscriptFile(
                root.joinpath(*trail), "openclaw", trail[1], info.st_mtime_ns, info.st_size, shown, info.st_ctime_ns
            )
    finally:
        os.close(folder)


def _iter_files(
    folder: int, shape: tuple[str, ...], is_wanted: Callable[[str], bool], trail: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """The files below a folder. A shape names the folders on the way to them; any one is `*`, any number are `**`."""
    step = shape[0] if shape else ""
    files, folders = _list_folder(folder) if step in ("", "*", "**") else ([], [step])
    for entry in files if step in ("", "**") else ():
        if not is_wanted(entry.name):
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # gone since
        yield (*trail, entry.name), info
    for name in folders if step and len(trail) < _MAX_DEPTH else ():
        try:
            inner = open_folder(folder, name)
        except (OSError, UnsafePath):
            continue
        try:
            yield from _iter_files(inner, shape if step == "**" else shape[1:], is_wanted, (*trail, name))
        finally:
            os.close(inner)


def _list_folder(folder: int) -> tuple[list[os.DirEntry[str]], list[str]]:
    """The plain files and the folders in it, by name. Symlinks are neither."""
    files: list[os.DirEntry[str]] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_file(follow_symlinks=False):
                files.append(entry)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return files, folders


def find_root(home: Path, environ: Mapping[str, str], variable: str, default: str) -> Path:
    value = environ.get(variable) or default
    return home / (value[2:] if value.startswith("~/") else value)


def _parse_session_id(name: str, harness: str) -> str:
    stem = name.partition(".jsonl")[0]
    if harness == "codex" and (rollout := _ROLLOUT.fullmatch(stem)):
        stem = rollout[1]
    return clean_name(stem)


_ROLLOUT = re.compile(r"rollout-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-([^_]+)(?:_.*)?")


def render_shown(path: str) -> str:
    """The path itself if it is made of ordinary characters, and else one that can be shown and is no other file's."""
    shown = clean_name(path)
    if shown == path and _ORDINARY.fullmatch(path):
        return path
    from hashlib import blake2b

    # The sign is not an ordinary character, so that no plain name can be made to look like this one.
    return f"{shown}~{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"


_ORDINARY = re.compile(r"[A-Za-z0-9._/@+=, -]*")
