"""Finds copies, resumed and forked sessions of one conversation, so that each turn is stored once.

A harness resumes or forks a session by copying its beginning into a new file, moves files when it archives them, and
rewrites them when it migrates. So a session is compared, turn by turn, with those that have the same beginning or id. A
shared beginning is stored once. A session that contains all of another with the same id replaces it; one that is fully
contained in such a session becomes another source of it.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from truekeep.transcripts.store import FOLLOWING, SETTLED, StoredSession, TranscriptStore, as_kept

_SESSIONS_PER_TRANSACTION = 200
_HEAD_TURNS = 2  # hashed to find sessions with the same beginning
_MIN_SHARED_CHARACTERS = 200  # fewer equal characters may be a coincidence
_MAX_COMPARED = 50  # sessions


class Common(NamedTuple):
    """The common beginning of two sessions."""

    turns: int
    is_telling: bool  # more than what many sessions begin with
    is_contrary: bool  # equal text, but at another time


def settle_all(store: TranscriptStore, present: Collection[bytes]) -> None:
    """Compare every new session with others. `present` are the sources that still exist."""
    statement = "SELECT id FROM session WHERE state = 0 ORDER BY id LIMIT ?"
    while waiting := store.db.execute(statement, (_SESSIONS_PER_TRANSACTION,)).fetchall():
        with store.transaction():
            for (session,) in waiting:
                settle(store, int(session), present)  # type: ignore[arg-type]


def settle(store: TranscriptStore, session: int, present: Collection[bytes]) -> None:
    """Find out whether a session equals or continues another, and store the shared part once."""
    kept = store.find_session(session)
    if kept is None:
        return  # replaced by another session in this run
    store.db.execute("UPDATE session SET head = ? WHERE id = ?", (_digest(store, session), session))
    others = [(other, compare(store, kept, other)) for other in _candidates(store, kept)]
    for other, common in others:
        if (other.harness, other.native) != (kept.harness, kept.native) or common.is_contrary:
            continue
        is_within = common.turns >= kept.settled_turns
        holds_other = common.turns >= other.settled_turns
        if holds_other and (not is_within or not _is_present(store, other, present)):
            _take_over(store, kept.id, other)
        elif is_within and not _descends(store, store.get_session(other.id), kept.id):
            _give_up(store, kept, other)
            return
    _share(store, kept.id)


def compare(store: TranscriptStore, one: StoredSession, other: StoredSession) -> Common:
    turns = weight = 0
    is_timed = is_answered = is_contrary = False
    limit = min(one.settled_turns, other.settled_turns)
    for mine, theirs in islice(zip(store.turns(one.id), store.turns(other.id), strict=False), limit):
        is_elsewhen = bool(mine.at and theirs.at and mine.at != theirs.at)
        if (mine.role, mine.text) != (theirs.role, theirs.text) or (is_timed and is_elsewhen):
            break  # a fork keeps all times or none: after equal times, equal text at another time is new
        is_timed = is_timed or bool(mine.at and mine.at == theirs.at)
        is_contrary = is_contrary or is_elsewhen
        is_answered = is_answered or mine.role == "assistant"
        turns += 1
        weight += len(mine.text)
    return Common(turns, is_timed or (is_answered and weight >= _MIN_SHARED_CHARACTERS), is_contrary)


def _candidates(store: TranscriptStore, kept: StoredSession) -> list[StoredSession]:
    rows = store.db.execute(
        "SELECT * FROM session WHERE id != ?1 AND (native = ?2 OR head = (SELECT head FROM session WHERE id = ?1))"
        " ORDER BY native = ?2 DESC, id DESC LIMIT ?3",
        (kept.id, kept.native, _MAX_COMPARED),
    ).fetchall()
    return [other for other in map(as_kept, rows) if not _descends(store, other, kept.id)]


def _descends(store: TranscriptStore, kept: StoredSession, ancestor: int) -> bool:
    at: StoredSession | None = kept
    while at is not None and at.parent is not None:
        if at.parent == ancestor:
            return True
        at = store.find_session(at.parent)
    return False


def _digest(store: TranscriptStore, session: int) -> bytes | None:
    first = list(islice(store.turns(session), _HEAD_TURNS))
    if len(first) < _HEAD_TURNS:
        return None
    digest = blake2b(digest_size=16)
    for turn in first:
        digest.update(f"{turn.role}\0{turn.text}\0".encode("utf-8", "replace"))
    return digest.digest()


def _is_present(store: TranscriptStore, kept: StoredSession, present: Collection[bytes]) -> bool:
    """True if the source of a session still exists."""
    rows: Any = store.db.execute("SELECT key FROM source WHERE session = ? AND NOT is_copy", (kept.id,))
    return any(row[0] in present for row in rows)


def _take_over(store: TranscriptStore, session: int, other: StoredSession) -> None:
    """Replace another session that this one contains; take over its name, forks and sources."""
    kept = store.get_session(session)
    if kept.parent is not None:  # so that no removed turn is referenced
        store.divide(session, parent=None, shared=0)
    store.db.execute("UPDATE session SET parent = ? WHERE parent = ?", (session, other.id))
    store.db.execute("UPDATE source SET session = ?, is_copy = 1 WHERE session = ?", (session, other.id))
    store.remove(other.id)
    base = min(kept.name, other.name, key=len)
    store.change(session, name=base, kept_at=min(kept.kept_at, other.kept_at), last_at=max(kept.last_at, other.last_at))


def _give_up(store: TranscriptStore, kept: StoredSession, other: StoredSession) -> None:
    """Merge this session into another that contains it; its source becomes a source of that one."""
    store.db.execute("UPDATE session SET parent = ? WHERE parent = ?", (other.id, kept.id))
    store.db.execute("UPDATE source SET session = ?, is_copy = 1 WHERE session = ?", (other.id, kept.id))
    store.remove(kept.id)
    store.db.execute("UPDATE session SET last_at = max(last_at, ?) WHERE id = ?", (kept.last_at, other.id))
    if other.shown == f"{kept.shown}~{other.id}":  # undo the renaming: the new session was only a part of it
        store.change(other.id, shown=kept.shown)


def _share(store: TranscriptStore, session: int) -> None:
    """Share the longest common beginning with another session."""
    kept = store.get_session(session)
    compared = [(compare(store, kept, other), other) for other in _candidates(store, kept)]
    telling = [(common.turns, other) for common, other in compared if common.is_telling and common.turns]
    may_follow = any(common.turns >= kept.settled_turns for common, _ in compared)
    state = SETTLED if kept.settled_turns > _HEAD_TURNS and not may_follow else FOLLOWING
    if telling:
        turns, parent = max(telling, key=lambda item: (item[0], -item[1].id))
        while turns <= parent.shared and parent.parent is not None:  # the shared part belongs to the parent's parent
            parent = store.get_session(parent.parent)
        if turns > kept.shared:
            store.divide(session, parent=parent.id, shared=turns)
    store.db.execute("UPDATE session SET state = ? WHERE id = ?", (state, session))
