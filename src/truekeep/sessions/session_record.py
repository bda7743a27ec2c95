"""Records of sessions, one small file each: whether it did real work, and whether it left a handoff or checkpoint.

Hooks write them in the user's state folder, because most machines have no workspace. An unreadable record is recreated;
it is never memory. A checkpoint records here which session made it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from truekeep.core.file_io import make_private, open_regular, read_head
from truekeep.core.machine import own_state

KEPT_DAYS = 120
ENOUGH = 3  # edits that count as real work; a single commit or handoff does, too
_DATED = r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]-"
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
# Evidence in handoffs of `truekeep adopt`, which are not a session's work, and of `truekeep checkpoint`, which may be a
# person's or another machine's: a trace file beside the records names the session.
_NOT_A_SESSIONS = (
    rb"(?m)^- (?:(?:claude|codex) memory .+, written \d{4}-\d\d-\d\d"
    rb"|truekeep checkpoint,.* \d{4}-\d\d-\d\dT.*)\r?$"
)
# Set by harnesses for the commands of their agents, as of Claude Code 2.1.325 and Codex 0.166.
_SESSION_IDS = {"CLAUDE_CODE_SESSION_ID": "claude", "CODEX_SESSION_ID": "codex"}
_HARNESSES = ("claude", "codex", "openclaw")


class SessionRecord(NamedTuple):
    """The record of one session."""

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
    aside: int = 0  # edits of its sub-agents, counted up to ENOUGH
    offset: int = 0  # up to which the transcript was read
    reflog: int = 0  # offset up to which git's reflog was read
    handoffs: int = 0
    has_checkpoint: bool = False
    is_reminded: bool = False
    is_flushed: bool = False  # it was reminded to save before this compaction
    brief: str = ""  # digest of its brief
    told: tuple[str, ...] = ()  # cards shown to it

    @property
    def has_work(self) -> bool:
        """True after three edits, a commit, or a handoff."""
        return self.edits + self.aside >= ENOUGH or self.commits > 0 or self.is_closed

    @property
    def is_closed(self) -> bool:
        return self.handoffs > 0 or self.has_checkpoint

    @property
    def work(self) -> str:
        """A short description of its work."""
        said = [f"{self.edits + self.aside} edits"] if self.edits + self.aside else []
        said += [f"{self.commits} commit{'s' if self.commits > 1 else ''}"] if self.commits else []
        return " and ".join(said) or "nothing noticed"


def folder() -> str:
    return os.path.join(own_state(), "sessions")


def _path(harness: str, session_id: str) -> str:
    name = _SAFE.sub("_", f"{harness}-{session_id}")[:120]
    return os.path.join(folder(), f"{name}.json")


def read_record(harness: str, session_id: str) -> SessionRecord | None:
    return _read(_path(harness, session_id))


def _read(path: str) -> SessionRecord | None:
    try:
        with open(path, "rb") as file:
            values: dict[str, Any] = json.loads(file.read(1_000_000))
        known = {name: value for name, value in values.items() if name in SessionRecord._fields}
        known["told"] = tuple(str(item) for item in known.get("told", ()))
        record = SessionRecord(**known)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    is_sound = all(_is_like(getattr(record, name), default) for name, default in SessionRecord._field_defaults.items())
    return record if is_sound and isinstance(record.id, str) and isinstance(record.harness, str) else None


def _is_like(value: object, default: object) -> bool:
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))


def write_record(record: SessionRecord) -> None:
    """Write a record atomically. A disk error only loses the record."""
    with suppress(OSError):
        make_private(folder())
        path = _path(record.harness, record.id)
        beside = f"{path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(record._asdict(), file)
        os.replace(beside, path)


def iter_records() -> Iterator[SessionRecord]:
    """Every readable record, in no order."""
    with suppress(OSError):
        for name in sorted(os.listdir(folder())):
            if name.endswith(".json") and (record := _read(os.path.join(folder(), name))) is not None:
                yield record


def last_activity() -> float:
    """When a session on this machine last began, paused or ended; 0 if none did."""
    latest = 0.0
    with suppress(OSError), os.scandir(folder()) as entries:
        for entry in entries:
            with suppress(OSError):
                latest = max(latest, entry.stat(follow_symlinks=False).st_mtime)
    return latest


def prune_records(now: float) -> None:
    for place in (folder(), _traces()):
        with suppress(OSError):
            for entry in os.scandir(place):
                with suppress(OSError):
                    if now - entry.stat(follow_symlinks=False).st_mtime > KEPT_DAYS * 86_400:
                        os.unlink(entry.path)


# --- Activity --------------------------------------------------------------------------------------------------------


def look_again(record: SessionRecord, inboxes: Iterable[str]) -> SessionRecord:
    """The record updated with new edits, commits and handoffs. Reads only what was added."""
    from truekeep.sessions import session_activity as work

    steps, offset, is_read = work.work_since(record.transcript, record.offset, record.id)
    commits, reflog = work.commits_since(_reflog(record.root), record.reflog)
    if commits is None:
        commits = steps.commits
    elif is_read and not steps.able:
        commits = 0  # the reflog belongs to the checkout: someone else committed
    record = record._replace(
        edits=record.edits + steps.edits,
        commits=record.commits + commits,
        offset=offset,
        reflog=reflog,
        handoffs=count_handoffs(inboxes, record.started_at),
        has_checkpoint=_has_trace(record),
    )
    return record if record.has_work else record._replace(aside=work.work_aside(record.transcript, enough=ENOUGH))


def from_here(record: SessionRecord) -> SessionRecord:
    """The record of a session that continues another, without that one's work."""
    return record._replace(offset=record.offset or _size(record.transcript))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _reflog(root: str) -> str:
    """The path of git's reflog; "" outside a repository."""
    if not root:
        return ""
    git = os.path.join(root, ".git")
    if pointer := read_head(git, 4096, follow=True):  # a worktree or a submodule
        git = os.path.join(root, os.fsdecode(pointer.removeprefix(b"gitdir:").strip()))
    return os.path.join(git, "logs", "HEAD")


def count_handoffs(inboxes: Iterable[str], since: float) -> int:
    """Handoffs written by sessions into these folders since a time, ingested or not."""
    count = 0
    before = time.strftime(
        "%Y-%m-%d", time.gmtime(since - 86_400)
    )  # earlier dates in names are too old in any time zone
    for inbox in inboxes:
        for place in (inbox, os.path.join(inbox, "processed")):
            with suppress(OSError):
                if os.stat(place).st_mtime < since:
                    continue  # unchanged since; there may be years of handoffs
                with os.scandir(place) as entries:
                    count += sum(_is_left_since(entry, since, before) for entry in entries)
    return count


def _is_left_since(entry: os.DirEntry[str], since: float, before: str) -> bool:
    name = entry.name
    if not name.lower().endswith((".md", ".markdown")) or (re.match(_DATED, name) and name[:10] < before):
        return False
    try:
        if entry.stat(follow_symlinks=False).st_mtime < since or not entry.is_file(follow_symlinks=False):
            return False
        with open(open_regular(entry.path, follow=False), "rb") as file:  # only recent ones: few
            return re.search(_NOT_A_SESSIONS, file.read(64_000)) is None
    except OSError:
        return False


# --- Checkpoints -----------------------------------------------------------------------------------------------------


def note_checkpoint(root: str, writer: str) -> None:
    """Record that the running session made a checkpoint, which an inbox does not show.

    The session is identified by variables of its harness; else by the writer and the repository. A checkpoint that a
    person makes belongs to no session.
    """
    named = [(harness, os.environ[key]) for key, harness in _SESSION_IDS.items() if os.environ.get(key)]
    names = [_trace(harness, session_id) for harness, session_id in named]
    if not names:
        writer = "openclaw" if "OPENCLAW_SHELL" in os.environ else writer
        names = [_trace_in(writer, root)] if writer in _HARNESSES else []
    for name in names:
        with suppress(OSError):
            make_private(_traces())
            with open(name, "w", encoding="utf-8"):
                pass  # only its time counts


def _has_trace(record: SessionRecord) -> bool:
    for path in (_trace(record.harness, record.id), _trace_in(record.harness, record.root)):
        with suppress(OSError):
            if os.stat(path).st_mtime >= record.started_at:
                return True
    return False


def _traces() -> str:
    return os.path.join(own_state(), "checkpoints")


def _trace(harness: str, session_id: str) -> str:
    return os.path.join(_traces(), _SAFE.sub("_", f"{harness}-{session_id}")[:120])


def _trace_in(harness: str, root: str) -> str:
    place = _SAFE.sub("_", os.path.realpath(root) if root else "")
    return os.path.join(_traces(), f"{harness}-in-{place[-120:]}")


# --- Closeout --------------------------------------------------------------------------------------------------------


class Closeout(NamedTuple):
    """How many sessions with real work left a handoff or a checkpoint."""

    machine: str
    harness: str
    repository: str
    sessions: int
    worked: int
    closed: int
    missed: tuple[SessionRecord, ...]  # sessions that left nothing, latest first

    @property
    def rate(self) -> float | None:
        return self.closed / self.worked if self.worked else None


def closeouts(records: Iterable[SessionRecord], *, since: float = 0.0) -> list[Closeout]:
    """Closeouts by machine, harness and repository."""
    grouped: dict[tuple[str, str, str], list[SessionRecord]] = {}
    for record in records:
        if record.started_at >= since:
            grouped.setdefault((record.machine, record.harness, record.repository), []).append(record)
    found = []
    for key, members in sorted(grouped.items()):
        worked = [record for record in members if record.has_work]
        missed = sorted((record for record in worked if not record.is_closed), key=lambda record: -record.started_at)
        found.append(Closeout(*key, len(members), len(worked), len(worked) - len(missed), tuple(missed)))
    return found


def begin(
    harness: str,
    session_id: str,
    *,
    root: str,
    repository: str,
    transcript: str,
    machine: str,
    is_underway: bool = False,
) -> SessionRecord:
    """The record of a session that starts now, or started when its transcript did."""
    return SessionRecord(
        id=session_id,
        harness=harness,
        machine=machine,
        repository=repository,
        root=root,
        transcript=transcript,
        started_at=_begun_at(transcript, session_id, time.time()) if is_underway else time.time(),
        reflog=_size(_reflog(root)),
    )


def _begun_at(transcript: str, session_id: str, now: float) -> float:
    from truekeep.sessions import session_activity as work

    begun = work.begun_at(transcript, session_id)
    return begun if now - KEPT_DAYS * 86_400 < begun < now else now  # clocks may be wrong
