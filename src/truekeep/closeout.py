"""Sessions as the hooks saw them, one small file each on this machine: did it do real work, did it leave a handoff?

Kept beside no workspace, because most machines have none. A record that cannot be read is begun anew: it is a note,
never memory.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

KEPT_DAYS = 120
MANY_EDITS = 3  # from here on a session did real work, as it did with a single commit
_EDITS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))
# A line that may be a step of the agent. The rest of a transcript quotes tools and instructions, `git commit` and all.
_STEP = re.compile(rb'"(?:tool_use|FileChange|CommandExecution|patch_apply_end|exec_command_end)"')
_COMMIT = re.compile(r"(?:^|[;&|(\n])\s*(?:\w+=\S*\s+)*git\b[^|;&\n]*\scommit(?![\w-])")
_LOGGED = re.compile(rb"^[^\t\n]*\t(?:commit|cherry-pick|revert)\b", re.MULTILINE)
_BLOCK = 1 << 20
_MOST = 32 << 20  # bytes of a transcript that one look reads
_MOST_ASIDE = 8 << 20  # of its sub-agents'
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Record(NamedTuple):
    """What is known of one session."""

    id: str
    harness: str
    machine: str = ""
    repository: str = ""
    root: str = ""
    transcript: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    edits: int = 0
    commits: int = 0
    aside: int = 0  # edits of its sub-agents, counted until they are enough
    offset: int = 0  # of the transcript, as far as it was read
    reflog: int = 0  # of git's own log of what was checked out
    handoffs: int = 0
    is_reminded: bool = False
    is_flushed: bool = False  # it was asked to save before this compaction
    brief: str = ""  # the digest of the brief that it was given
    told: tuple[str, ...] = ()  # cards that it was given

    @property
    def has_work(self) -> bool:
        return self.edits + self.aside >= MANY_EDITS or self.commits > 0

    @property
    def work(self) -> str:
        """What was done, in words."""
        said = [f"{self.edits + self.aside} edits"] if self.edits + self.aside else []
        said += [f"{self.commits} commit{'s' if self.commits > 1 else ''}"] if self.commits else []
        return " and ".join(said) or "nothing that was noticed"


def folder() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "truekeep", "sessions")


def _path(harness: str, session_id: str) -> str:
    name = _SAFE.sub("_", f"{harness}-{session_id}")[:120]
    return os.path.join(folder(), f"{name}.json")


def read_record(harness: str, session_id: str) -> Record | None:
    return _read(_path(harness, session_id))


def _read(path: str) -> Record | None:
    try:
        with open(path, "rb") as file:
            values: dict[str, Any] = json.loads(file.read(1_000_000))
        known = {name: value for name, value in values.items() if name in Record._fields}
        known["told"] = tuple(str(item) for item in known.get("told", ()))
        record = Record(**known)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    is_sound = all(_is_like(getattr(record, name), default) for name, default in Record._field_defaults.items())
    return record if is_sound and isinstance(record.id, str) and isinstance(record.harness, str) else None


def _is_like(value: object, default: object) -> bool:
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))


def write_record(record: Record) -> None:
    """Keep a record, written whole. A disk that says no costs the note only."""
    with suppress(OSError):
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        path = _path(record.harness, record.id)
        beside = f"{path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(record._asdict(), file)
        os.replace(beside, path)


def iter_records() -> Iterator[Record]:
    """Every record, in no order. Leftovers and strangers are passed over."""
    with suppress(OSError):
        for name in sorted(os.listdir(folder())):
            if name.endswith(".json") and (record := _read(os.path.join(folder(), name))) is not None:
                yield record


def prune_records(now: float) -> None:
    with suppress(OSError):
        for entry in os.scandir(folder()):
            with suppress(OSError):
                if now - entry.stat(follow_symlinks=False).st_mtime > KEPT_DAYS * 86_400:
                    os.unlink(entry.path)


# --- What a session did ----------------------------------------------------------------------------------------------


def look_again(record: Record, inboxes: Iterable[str]) -> Record:
    """The record with what happened since the last look: edits, commits, handoffs. Reads only what was added."""
    edits, committed, offset = _work_since(record.transcript, record.offset)
    commits, reflog = _commits_since(record.root, record.reflog)
    record = record._replace(
        edits=record.edits + edits,
        commits=record.commits + (committed if commits is None else commits),
        offset=offset,
        reflog=reflog,
        handoffs=count_handoffs(inboxes, record.started_at),
    )
    return record if record.has_work else record._replace(aside=_work_aside(record.transcript))


def from_here(record: Record) -> Record:
    """The record of a session that goes on from another, whose work was not its own."""
    try:
        return record._replace(offset=record.offset or os.stat(record.transcript).st_size)
    except OSError:
        return record


def _work_since(path: str, offset: int, most: int = _MOST) -> tuple[int, int, int]:
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


def _work_aside(transcript: str) -> int:
    """Edits of a session's sub-agents, which Claude Code keeps beside its transcript."""
    edits, room = 0, _MOST_ASIDE
    with suppress(OSError), os.scandir(os.path.join(os.path.splitext(transcript)[0], "subagents")) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and edits < MANY_EDITS and room > 0:
                more, _, read = _work_since(entry.path, 0, room)
                edits, room = edits + more, room - read
    return edits


def _commits_since(root: str, offset: int) -> tuple[int | None, int]:
    """Commits in what git's log of this checkout gained, and its size now; None where git keeps none."""
    if not root:
        return None, 0
    try:
        with open(_reflog(root), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset if offset <= size else size)  # git drops what is old
            return len(_LOGGED.findall(file.read(_BLOCK))), size
    except OSError:
        return None, 0


def _reflog(root: str) -> str:
    git = os.path.join(root, ".git")
    with suppress(OSError, UnicodeDecodeError), open(git, encoding="utf-8") as file:  # a worktree or a submodule
        git = os.path.join(root, file.read(4096).removeprefix("gitdir:").strip())
    return os.path.join(git, "logs", "HEAD")


def count_handoffs(inboxes: Iterable[str], since: float) -> int:
    """Handoffs that were left in these folders since a time, taken in already or not."""
    count = 0
    for inbox in inboxes:
        for place in (inbox, os.path.join(inbox, "processed")):
            with suppress(OSError), os.scandir(place) as entries:
                for entry in entries:
                    with suppress(OSError):
                        is_new = entry.name.endswith(".md") and entry.stat(follow_symlinks=False).st_mtime >= since
                        count += is_new and entry.is_file(follow_symlinks=False)
    return count


# --- Closeout --------------------------------------------------------------------------------------------------------


class Closeout(NamedTuple):
    """How often sessions with real work left a handoff."""

    machine: str
    harness: str
    repository: str
    sessions: int
    worked: int
    closed: int
    missed: tuple[Record, ...]  # those that left nothing, the latest first

    @property
    def rate(self) -> float | None:
        return self.closed / self.worked if self.worked else None


def closeouts(records: Iterable[Record], *, since: float = 0.0) -> list[Closeout]:
    """By machine, harness and repository, in that order."""
    grouped: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.started_at >= since:
            grouped.setdefault((record.machine, record.harness, record.repository), []).append(record)
    found = []
    for key, members in sorted(grouped.items()):
        worked = [record for record in members if record.has_work]
        missed = sorted((record for record in worked if not record.handoffs), key=lambda record: -record.started_at)
        found.append(Closeout(*key, len(members), len(worked), len(worked) - len(missed), tuple(missed)))
    return found


def begin(harness: str, session_id: str, *, root: str, repository: str, transcript: str, machine: str) -> Record:
    return Record(
        id=session_id,
        harness=harness,
        machine=machine,
        repository=repository,
        root=root,
        transcript=transcript,
        started_at=time.time(),
        reflog=_commits_since(root, 0)[1],
    )
