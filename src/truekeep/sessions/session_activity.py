"""Work: the edits and commits of a session, from what its transcript gained and from git's own log. Pure reading.

Harnesses write far more into a transcript than what the agent did: the prompt with its tools and its rules, and the
requests to the model, whole. So a line counts only as a step of the agent: a tool that the model of Claude Code or
OpenClaw called, a change or a command that Codex carried out. Shapes of other versions count for nothing, rather than
for too much.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from truekeep.core.file_io import open_regular

_EDITS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit", "edit", "write", "apply_patch"))
_SHELLS = frozenset(("Bash", "PowerShell", "exec", "bash"))
_AGENTS = frozenset(("Task", "Agent"))  # what they do is in transcripts of their own
# A line that may be a step of the agent. The rest of a transcript quotes tools and instructions, `git commit` and all.
_STEP = re.compile(rb'"(?:tool_use|toolCall|FileChange|CommandExecution|patch_apply_end|exec_command_end)"')
_COMMIT = re.compile(r"(?:^|[;&|(\n])[ \t]*(?:\w+=\S*[ \t]+)*git\b[^|;&\n]*\scommit(?![\w-])")
_LOGGED = re.compile(rb"^[^\t\n]*\t(?:commit|cherry-pick|revert)\b", re.MULTILINE)
_MOMENT = re.compile(rb'"timestamp": ?"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)[.\d]*Z"')
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_BLOCK = 1 << 20
_HEAD = 64 << 10
_MOST = 32 << 20  # bytes of a transcript that one look reads
_MOST_ASIDE = 8 << 20  # of its sub-agents'
_DATABASE = ".sqlite"


class Steps(NamedTuple):
    """What an agent did."""

    edits: int = 0
    commits: int = 0
    able: int = 0  # steps that could have made a commit: commands, edits, other agents, tools of others

    def plus(self, more: Steps) -> Steps:
        return Steps(self.edits + more.edits, self.commits + more.commits, self.able + more.able)


class TranscriptProgress(NamedTuple):
    """What a transcript gained since the last look, and how far it was read."""

    steps: Steps
    offset: int
    is_read: bool = True


def work_since(path: str, offset: int, session_id: str = "") -> TranscriptProgress:
    """The steps in what a transcript gained. The session's name is for OpenClaw's database, which holds them all."""
    if path.endswith(_DATABASE):
        return _work_in_database(path, session_id, offset)
    return _work_in_file(path, offset, _MOST)


def _work_in_file(path: str, offset: int, most: int) -> TranscriptProgress:
    """Reads to the end of the last whole line."""
    steps = Steps()
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < offset:
                offset = 0  # another file by the same name
            file.seek(max(offset, size - most))
            offset = file.tell()
            left = b""
            while block := file.read(_BLOCK):
                whole, _, left = (left + block).rpartition(b"\n")
                if _STEP.search(whole):
                    steps = steps.plus(_steps_in(whole.split(b"\n")))
                if len(left) > 8 * _BLOCK:
                    left = b""  # no line of work is so long
                offset = file.tell() - len(left)
    except OSError:
        return TranscriptProgress(steps, offset, is_read=False)
    return TranscriptProgress(steps, offset)


def _work_in_database(path: str, session_id: str, offset: int) -> TranscriptProgress:
    """The same for OpenClaw's database; there the offset is the number of the next event."""
    from truekeep.transcripts.openclaw_db import Database, UnknownDatabase

    steps = Steps()
    try:
        database = Database(path)
        try:
            for number, line in database.lines(session_id, after=offset - 1):
                steps, offset = steps.plus(_steps_in((line,))), number + 1
        finally:
            database.close()
    except (OSError, UnknownDatabase):
        return TranscriptProgress(steps, offset, is_read=False)
    return TranscriptProgress(steps, offset)


def _steps_in(lines: Iterable[bytes]) -> Steps:
    steps = Steps()
    for line in lines:
        if _STEP.search(line):
            try:
                for step in _iter_steps(json.loads(line)):
                    steps = steps.plus(step)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                pass  # a shape of another version
    return steps


def _iter_steps(row: Any) -> Iterator[Steps]:
    """The steps in one row of a transcript: of Claude Code, of OpenClaw, or of Codex, today's and earlier."""
    kind = row["type"]
    if kind in ("assistant", "message") and row["message"].get("role", "assistant") == "assistant":
        for call in [call for call in row["message"]["content"] if call["type"] in ("tool_use", "toolCall")]:
            yield _call(call["name"], call.get("input") or call.get("arguments") or {})
    if kind != "event_msg":
        return
    step = row["payload"].get("item") or row["payload"]
    if step["type"] in ("FileChange", "patch_apply_end"):
        is_done = step.get("success") is True or step.get("status") == "completed"
        yield Steps(edits=len(step["changes"]) * is_done, able=1)
    elif step["type"] in ("CommandExecution", "exec_command_end"):
        yield Steps(commits=int(step.get("exit_code") == 0 and _is_commit(step["command"][-1])), able=1)


def _call(name: str, given: dict[str, Any]) -> Steps:
    if name in _EDITS:
        return Steps(edits=1, able=1)
    if name in _SHELLS:
        return Steps(commits=int(_is_commit(given.get("command"))), able=1)
    return Steps(able=int(name in _AGENTS or name.startswith("mcp__")))


def _is_commit(command: object) -> bool:
    return isinstance(command, str) and _COMMIT.search(command) is not None


def work_aside(transcript: str, *, enough: int) -> int:
    """Edits of a session's sub-agents, which Claude Code keeps beside its transcript; counted until they are enough."""
    edits, room = 0, _MOST_ASIDE
    with suppress(OSError), os.scandir(os.path.join(os.path.splitext(transcript)[0], "subagents")) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and edits < enough and room > 0:
                found = _work_in_file(entry.path, 0, room)
                edits, room = edits + found.steps.edits, room - found.offset
    return edits


def commits_since(log: str, offset: int) -> tuple[int | None, int]:
    """Commits in what git's log of a checkout gained, and its size now; None where git keeps none."""
    try:
        with open(open_regular(log), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset if offset <= size else size)  # git drops what is old
            return len(_LOGGED.findall(file.read(_BLOCK))), size
    except OSError:
        return None, 0


# --- What else a transcript tells ------------------------------------------------------------------------------------


def begun_at(path: str, session_id: str = "") -> float:
    """When a session began, by the first moment in its transcript; 0 when it does not say."""
    found = _MOMENT.search(_head(path, session_id))
    if found is None:
        return 0.0
    year, month, day, hour, minute, second = map(int, found.groups())
    # Days since 1970, with the year beginning in March: what could parse a date would cost a hook ten times more.
    year, month = (year - 1, month + 12) if month < 3 else (year, month)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719_469
    return float(((days * 24 + hour) * 60 + minute) * 60 + second)


def _head(path: str, session_id: str) -> bytes:
    try:
        if not path.endswith(_DATABASE):
            with open(open_regular(path), "rb") as file:
                return file.read(_HEAD)
        from truekeep.transcripts.openclaw_db import Database, UnknownDatabase

        try:
            database = Database(path)
        except UnknownDatabase:
            return b""
        try:
            return database.head(session_id)
        finally:
            database.close()
    except OSError:
        return b""


def tokens_of(path: str) -> tuple[int, int]:
    """How many tokens a Codex session holds by its last count, and how many fit; zeros when it does not say."""
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _BLOCK))
            lines = file.read(_BLOCK).split(b"\n")
    except OSError:
        return 0, 0
    for line in reversed(lines):
        if b'"token_count"' not in line and b'"compacted"' not in line:
            continue
        try:
            row = json.loads(line)
            if row["type"] == "compacted":
                return 0, 0  # what was counted before is gone
            if row["type"] == "event_msg" and row["payload"]["type"] == "token_count":
                info = row["payload"]["info"]
                return int(info["last_token_usage"]["total_tokens"]), int(info["model_context_window"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return 0, 0


def find_openclaw(session_id: str, session_key: str) -> str:
    """The transcript of an OpenClaw session: a file of its own, or its agent's database; empty when there is none."""
    from truekeep.core.harness_paths import find_homes

    parts = session_key.split(":")
    agent = parts[1] if parts[0] == "agent" and len(parts) > 1 else "main"
    if not _NAME.fullmatch(session_id) or not _NAME.fullmatch(agent):
        return ""
    folder = os.path.join(find_homes().openclaw, "agents", agent)
    places = (f"sessions/{session_id}.jsonl", "agent/openclaw-agent.sqlite")
    paths = [os.path.join(folder, place) for place in places]
    return next((path for path in paths if os.path.isfile(path)), "")
