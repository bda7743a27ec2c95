"""Work: the edits and commits of a session, from what its transcript gained and from git's own log. Pure reading.

Harnesses write far more into a transcript than what the agent did: the prompt with its tools and its rules, and the
requests to the model, whole. So a line counts only as a step of the agent: a tool that Claude Code's model called, a
change or a command that Codex carried out. Shapes of other versions count for nothing, rather than for too much.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

_EDITS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))
# A line that may be a step of the agent. The rest of a transcript quotes tools and instructions, `git commit` and all.
_STEP = re.compile(rb'"(?:tool_use|FileChange|CommandExecution|patch_apply_end|exec_command_end)"')
_COMMIT = re.compile(r"(?:^|[;&|(\n])[ \t]*(?:\w+=\S*[ \t]+)*git\b[^|;&\n]*\scommit(?![\w-])")
_LOGGED = re.compile(rb"^[^\t\n]*\t(?:commit|cherry-pick|revert)\b", re.MULTILINE)
_BLOCK = 1 << 20
_MOST = 32 << 20  # bytes of a transcript that one look reads
_MOST_ASIDE = 8 << 20  # of its sub-agents'


def work_since(path: str, offset: int, most: int = _MOST) -> tuple[int, int, int]:
    """Edits and commits in what a transcript gained, and how far it was read: to the end of its last whole line."""
    edits = commits = 0
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < offset:
                offset = 0  # another file by the same name
            file.seek(max(offset, size - most))
            offset = file.tell()
            left = b""
            while block := file.read(_BLOCK):
                whole, _, left = (left + block).rpartition(b"\n")
                for line in whole.split(b"\n") if _STEP.search(whole) else ():
                    if _STEP.search(line):
                        more, committed = _work_in(line)
                        edits += more
                        commits += committed
                if len(left) > 8 * _BLOCK:
                    left = b""  # no line of work is so long
                offset = file.tell() - len(left)
    except OSError:
        pass
    return edits, commits, offset


def _work_in(line: bytes) -> tuple[int, int]:
    """Edits and commits in one row of a transcript: of Claude Code, or of Codex, today's and earlier."""
    try:
        row = json.loads(line)
        if row["type"] == "assistant":
            calls = [call for call in row["message"]["content"] if call["type"] == "tool_use"]
            commands = [call["input"].get("command", "") for call in calls if call["name"] == "Bash"]
            return sum(call["name"] in _EDITS for call in calls), sum(map(_is_commit, commands))
        if row["type"] != "event_msg":
            return 0, 0
        step = row["payload"].get("item") or row["payload"]
        if step["type"] in ("FileChange", "patch_apply_end"):
            return len(step["changes"]) * (step.get("success") is True or step.get("status") == "completed"), 0
        if step["type"] in ("CommandExecution", "exec_command_end"):
            return 0, int(step.get("exit_code") == 0 and _is_commit(step["command"][-1]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass  # a shape of another version
    return 0, 0


def _is_commit(command: object) -> bool:
    return isinstance(command, str) and _COMMIT.search(command) is not None


def work_aside(transcript: str, *, enough: int) -> int:
    """Edits of a session's sub-agents, which Claude Code keeps beside its transcript; counted until they are enough."""
    edits, room = 0, _MOST_ASIDE
    with suppress(OSError), os.scandir(os.path.join(os.path.splitext(transcript)[0], "subagents")) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and edits < enough and room > 0:
                more, _, read = work_since(entry.path, 0, room)
                edits, room = edits + more, room - read
    return edits


def commits_since(log: str, offset: int) -> tuple[int | None, int]:
    """Commits in what git's log of a checkout gained, and its size now; None where git keeps none."""
    try:
        with open(log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset if offset <= size else size)  # git drops what is old
            return len(_LOGGED.findall(file.read(_BLOCK))), size
    except OSError:
        return None, 0
