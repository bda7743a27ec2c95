"""Which sessions are the same conversation: copies, moved files, resumed and forked ones. Each turn is kept once.

A harness resumes or forks a session by copying its beginning into a new file, moves files when it archives them, and
writes them anew when it migrates. So a session is compared, turn by turn, with those that begin the same or have the
same id. What it shares with another at its beginning it takes from there; if it is all of another of the same id, it
takes that one's place, and if it is no more than such a one, it is only another original of it.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from truekeep.transcripts.store import FOLLOWING, SETTLED, StoredSession, TranscriptStore, as_kept

_AT_ONCE = 200  # sessions that are compared in one transaction
_HEAD = 2  # turns by which a beginning is known
_WEIGHT = 200  # characters from which two equal beginnings are no coincidence
_MOST = 50  # sessions that one is compared with


class Common(NamedTuple):
    """What two sessions have in common at their beginning."""

    turns: int
    is_telling: bool  # not only what many sessions begin with
    is_contrary: bool  # the same words, but at another time


def settle_all(store: TranscriptStore, present: Collection[bytes]) -> None:
    """Compare every session that waits for it. `present` are the originals that are still there."""
    statement = "SELECT id FROM session WHERE state = 0 ORDER BY id LIMIT ?"
    while waiting := store.db.execute(statement, (_AT_ONCE,)).fetchall():
        with store.transaction():
            for (session,) in waiting:
                settle(store, int(session), present)  # type: ignore[arg-type]


def settle(store: TranscriptStore, session: int, present: Collection[bytes]) -> None:
    """Find out whether a session is, or begins as, another one, and keep what they share once."""
    kept = store.find_session(session)
    if kept is None:
        return  # another one of this round took its place
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
            break  # a fork keeps all times or none: after equal ones, the same words at another time were said anew
        is_timed = is_timed or bool(mine.at and mine.at == theirs.at)
        is_contrary = is_contrary or is_elsewhen
        is_answered = is_answered or mine.role == "assistant"
        turns += 1
        weight += len(mine.text)
    return Common(turns, is_timed or (is_answered and weight >= _WEIGHT), is_contrary)


def _candidates(store: TranscriptStore, kept: StoredSession) -> list[StoredSession]:
    rows = store.db.execute(
        "SELECT * FROM session WHERE id != ?1 AND (native = ?2 OR head = (SELECT head FROM session WHERE id = ?1))"
        " ORDER BY native = ?2 DESC, id DESC LIMIT ?3",
        (kept.id, kept.native, _MOST),
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
    first = list(islice(store.turns(session), _HEAD))
    if len(first) < _HEAD:
        return None
    digest = blake2b(digest_size=16)
    for turn in first:
        digest.update(f"{turn.role}\0{turn.text}\0".encode("utf-8", "replace"))
    return digest.digest()


def _is_present(store: TranscriptStore, kept: StoredSession, present: Collection[bytes]) -> bool:
    """Whether the original that a session is read from is still there."""
    rows: Any = store.db.execute("SELECT key FROM source WHERE session = ? AND NOT is_copy", (kept.id,))
    return any(row[0] in present for row in rows)


def _take_over(store: TranscriptStore, session: int, other: StoredSession) -> None:
    """All that another session says is in this one: it goes, and its name, its forks and its originals come here."""
    kept = store.get_session(session)
    if kept.parent is not None:  # so that no turn that is about to go is needed
        store.divide(session, parent=None, shared=0)
    store.db.execute("UPDATE session SET parent = ? WHERE parent = ?", (session, other.id))
    store.db.execute("UPDATE source SET session = ?, is_copy = 1 WHERE session = ?", (session, other.id))
    store.remove(other.id)
    base = min(kept.name, other.name, key=len)
    store.change(session, name=base, kept_at=min(kept.kept_at, other.kept_at), last_at=max(kept.last_at, other.last_at))


def _give_up(store: TranscriptStore, kept: StoredSession, other: StoredSession) -> None:
    """All that this session says is in another one: its original becomes another one of that."""
    store.db.execute("UPDATE session SET parent = ? WHERE parent = ?", (other.id, kept.id))
    store.db.execute("UPDATE source SET session = ?, is_copy = 1 WHERE session = ?", (other.id, kept.id))
    store.remove(kept.id)
    store.db.execute("UPDATE session SET last_at = max(last_at, ?) WHERE id = ?", (kept.last_at, other.id))
    if other.shown == f"{kept.shown}~{other.id}":  # it had made room for what turned out to be less than itself
        store.change(other.id, shown=kept.shown)


def _share(store: TranscriptStore, session: int) -> None:
    """Take the longest beginning that another session has from there."""
    kept = store.get_session(session)
    compared = [(compare(store, kept, other), other) for other in _candidates(store, kept)]
    telling = [(common.turns, other) for common, other in compared if common.is_telling and common.turns]
    may_follow = any(common.turns >= kept.settled_turns for common, _ in compared)
    state = SETTLED if kept.settled_turns > _HEAD and not may_follow else FOLLOWING
    if telling:
        turns, parent = max(telling, key=lambda item: (item[0], -item[1].id))
        while turns <= parent.shared and parent.parent is not None:  # what it shares is itself shared
            parent = store.get_session(parent.parent)
        if turns > kept.shared:
            store.divide(session, parent=parent.id, shared=turns)
    store.db.execute("UPDATE session SET state = ? WHERE id = ?", (state, session))
