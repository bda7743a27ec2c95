"""Counts the edits and commits of a session, from its transcript and from git's reflog.

Transcripts contain far more than the agent's actions: prompts, tool lists, model requests. So a line counts only if it
is a tool call of Claude Code or OpenClaw, or a change or command that Codex carried out. Unknown formats of other
versions are not counted.
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
_AGENTS = frozenset(("Task", "Agent"))  # their actions are in transcripts of their own
# A line that may be an action of the agent. Other lines quote tools and instructions, including `git commit`.
_STEP = re.compile(rb'"(?:tool_use|toolCall|FileChange|CommandExecution|patch_apply_end|exec_command_end)"')
_COMMIT = re.compile(r"(?:^|[;&|(\n])[ \t]*(?:\w+=\S*[ \t]+)*git\b[^|;&\n]*\scommit(?![\w-])")
_LOGGED = re.compile(rb"^[^\t\n]*\t(?:commit|cherry-pick|revert)\b", re.MULTILINE)
_MOMENT = re.compile(rb'"timestamp": ?"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)[.\d]*Z"')
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_BLOCK = 1 << 20
_HEAD = 64 << 10
_MAX_BYTES_PER_READ = 32 << 20
_MAX_SUBAGENT_BYTES = 8 << 20
_DATABASE = ".sqlite"


class Steps(NamedTuple):
    """Counts of an agent's actions."""

    edits: int = 0
    commits: int = 0
    able: int = 0  # actions that may have made a commit: commands, edits, other agents, other tools

    def plus(self, more: Steps) -> Steps:
        return Steps(self.edits + more.edits, self.commits + more.commits, self.able + more.able)


class TranscriptProgress(NamedTuple):
    """The new actions in a transcript, and how far it was read."""

    steps: Steps
    offset: int
    is_read: bool = True


def work_since(path: str, offset: int, session_id: str = "") -> TranscriptProgress:
    """The actions added to a transcript since an offset. `session_id` selects a session in OpenClaw's database."""
    if path.endswith(_DATABASE):
        return _work_in_database(path, session_id, offset)
    return _work_in_file(path, offset, _MAX_BYTES_PER_READ)


def _work_in_file(path: str, offset: int, most: int) -> TranscriptProgress:
    """Count actions in a file up to its last complete line."""
    steps = Steps()
    try:
        with open(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < offset:
                offset = 0  # the file was replaced
            file.seek(max(offset, size - most))
            offset = file.tell()
            left = b""
            while block := file.read(_BLOCK):
                whole, _, left = (left + block).rpartition(b"\n")
                if _STEP.search(whole):
                    steps = steps.plus(_steps_in(whole.split(b"\n")))
                if len(left) > 8 * _BLOCK:
                    left = b""  # too long for an action
                offset = file.tell() - len(left)
    except OSError:
        return TranscriptProgress(steps, offset, is_read=False)
    return TranscriptProgress(steps, offset)


def _work_in_database(path: str, session_id: str, offset: int) -> TranscriptProgress:
    """Count actions in OpenClaw's database; the offset is the number of the next event."""
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
                pass  # unknown format
    return steps


def _iter_steps(row: Any) -> Iterator[Steps]:
    """The actions in one transcript row of Claude Code, OpenClaw, or current or older Codex."""
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
    """Edits by sub-agents, which Claude Code stores beside the session's transcript; counted up to `enough`."""
    edits, room = 0, _MAX_SUBAGENT_BYTES
    with suppress(OSError), os.scandir(os.path.join(os.path.splitext(transcript)[0], "subagents")) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and edits < enough and room > 0:
                found = _work_in_file(entry.path, 0, room)
                edits, room = edits + found.steps.edits, room - found.offset
    return edits


def commits_since(log: str, offset: int) -> tuple[int | None, int]:
    """Commits added to a checkout's reflog since an offset, and its size; None if there is no reflog."""
    try:
        with open(open_regular(log), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset if offset <= size else size)  # git expires old entries
            return len(_LOGGED.findall(file.read(_BLOCK))), size
    except OSError:
        return None, 0


# --- Times and tokens ------------------------------------------------------------------------------------------------


def begun_at(path: str, session_id: str = "") -> float:
    """The first time stamp in a transcript; 0 if there is none."""
    found = _MOMENT.search(_head(path, session_id))
    if found is None:
        return 0.0
    year, month, day, hour, minute, second = map(int, found.groups())
    # Days since 1970, with the year starting in March: a date parser would take a hook ten times longer.
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
    """The last token count of a Codex session and its limit; zeros if unknown."""
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
                return 0, 0  # the earlier count is no longer valid
            if row["type"] == "event_msg" and row["payload"]["type"] == "token_count":
                info = row["payload"]["info"]
                return int(info["last_token_usage"]["total_tokens"]), int(info["model_context_window"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return 0, 0


def find_openclaw(session_id: str, session_key: str) -> str:
    """The transcript of an OpenClaw session: a file or its agent's database; "" if there is none."""
    from truekeep.core.harness_paths import find_homes

    parts = session_key.split(":")
    agent = parts[1] if parts[0] == "agent" and len(parts) > 1 else "main"
    if not _NAME.fullmatch(session_id) or not _NAME.fullmatch(agent):
        return ""
    folder = os.path.join(find_homes().openclaw, "agents", agent)
    places = (f"sessions/{session_id}.jsonl", "agent/openclaw-agent.sqlite")
    paths = [os.path.join(folder, place) for place in places]
    return next((path for path in paths if os.path.isfile(path)), "")
