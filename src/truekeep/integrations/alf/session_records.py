"""Archived sessions as records: one record for each session, its dialogue as Markdown.

The transcript store contains dialogue only, with secrets masked. The record of a forked session contains its own turns;
the turns that it shares are in the record of the session that it was forked from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from truekeep.integrations.alf.documents import MemoryRecord
from truekeep.integrations.alf.record_ids import truekeep_id
from truekeep.integrations.alf.records import truekeep_record, unique_tags
from truekeep.integrations.alf.timestamps import parse_timestamp
from truekeep.transcripts.store import TranscriptStoreDamaged

if TYPE_CHECKING:
    from truekeep.transcripts.parser import Turn
    from truekeep.transcripts.service import Archive
    from truekeep.transcripts.store import StoredSession

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_FIRST_PLAUSIBLE_TIME = datetime(2015, 1, 1, tzinfo=UTC)  # no harness is older


def session_records(
    archive: Archive, *, agent: str, warn: Callable[[str], None] = lambda _: None
) -> Iterator[MemoryRecord]:
    """A record for each session, in the order of an archive: by the time of the last turn.

    `warn` gets a message for a session that cannot be read.
    """
    sessions = archive.sessions()
    names = {session.id: session.name for session in sessions}
    for session in sorted(sessions, key=lambda item: (item.last_at, truekeep_id(agent, "session", item.name))):
        try:
            turns = list(archive.own_turns(session))
        except (OSError, TranscriptStoreDamaged) as error:
            warn(f"{session.shown}: {error}")
            continue
        if turns:
            parent = names.get(session.parent, "") if session.parent is not None else ""
            yield _session_record(session, turns, agent, parent)


def _session_record(session: StoredSession, turns: list[Turn], agent: str, parent: str) -> MemoryRecord:
    started = _started_at(session, turns)
    details: dict[str, Any] = {
        "harness": session.harness,
        "name": session.name,
        "title": session.title,
        "branch": session.branch,
    }
    if session.parent is not None:
        details |= {"forked_from": parent, "shared_turns": session.shared}
    return truekeep_record(
        id=truekeep_id(agent, "session", session.name),
        agent=agent,
        content="\n\n".join(map(_as_markdown, turns)),
        memory_type="episodic",
        namespace="session",
        source={"origin": "transcripts", "session_id": session.native or session.name},
        temporal={"created_at": started, "updated_at": session.last_at, "observed_at": started},
        entities=[{"name": session.repository, "type": "project"}] if session.repository else None,
        tags=unique_tags("session", session.harness),
        raw_source_format={"truekeep": {key: value for key, value in details.items() if value}},
    )


def _as_markdown(turn: Turn) -> str:
    at = parse_timestamp(turn.at)
    time = f" · {_format_seconds(at)}" if at is not None else ""
    return f"**{_SPEAKERS.get(turn.role, turn.role)}**{time}\n\n{turn.text}"


def _started_at(session: StoredSession, turns: list[Turn]) -> str:
    """The first plausible start time: not before 2015, and not after the last turn."""
    for stated in (session.started_at, turns[0].at):
        at = parse_timestamp(stated)
        if at is not None and _FIRST_PLAUSIBLE_TIME <= at <= session.moment:
            return _format_seconds(at)
    return session.last_at


def _format_seconds(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
