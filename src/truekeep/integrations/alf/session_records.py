"""Sessions of the transcript archive as records: what was said, as Markdown, one record for each session.

The archive holds dialogue only, masked before it came in. A fork is told by its own turns; what it shares with the
session that it came from is told there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from truekeep.integrations.alf.own_records import own_record, tags_of
from truekeep.integrations.alf.record_ids import own_id
from truekeep.integrations.alf.record_times import parse_moment
from truekeep.integrations.alf.records import Record
from truekeep.transcripts.store import TranscriptStoreDamaged

if TYPE_CHECKING:
    from truekeep.transcripts.parser import Turn
    from truekeep.transcripts.service import Archive
    from truekeep.transcripts.store import StoredSession

_SPEAKERS = {"user": "User", "assistant": "Assistant"}
_EARLIEST = datetime(2015, 1, 1, tzinfo=UTC)  # no harness is older: its clock was wrong


def session_records(archive: Archive, *, agent: str, tell: Callable[[str], None] = lambda _: None) -> Iterator[Record]:
    """A record for each session, the earliest first. One that cannot be read is told about, and the others go on."""
    sessions = archive.sessions()
    names = {kept.id: kept.name for kept in sessions}
    for kept in reversed(sessions):
        try:
            turns = list(archive.own_turns(kept))
        except (OSError, TranscriptStoreDamaged) as error:
            tell(f"{kept.shown}: {error}")
            continue
        if turns:
            parent = names.get(kept.parent, "") if kept.parent is not None else ""
            yield _session_record(kept, turns, agent, parent)


def _session_record(kept: StoredSession, turns: list[Turn], agent: str, parent: str) -> Record:
    started = _started_at(kept, turns)
    told: dict[str, Any] = {"harness": kept.harness, "name": kept.name, "title": kept.title, "branch": kept.branch}
    if kept.parent is not None:
        told |= {"forked_from": parent, "shared_turns": kept.shared}
    return own_record(
        id=own_id(agent, "session", kept.name),
        agent=agent,
        content="\n\n".join(map(_said, turns)),
        memory_type="episodic",
        namespace="session",
        source={"origin": "transcripts", "session_id": kept.native or kept.name},
        temporal={"created_at": started, "updated_at": kept.last_at, "observed_at": started},
        entities=[{"name": kept.repository, "type": "project"}] if kept.repository else None,
        tags=tags_of("session", kept.harness),
        raw_source_format={"truekeep": {key: value for key, value in told.items() if value}},
    )


def _said(turn: Turn) -> str:
    at = parse_moment(turn.at)
    when = f" · {_shown(at)}" if at is not None else ""
    return f"**{_SPEAKERS.get(turn.role, turn.role)}**{when}\n\n{turn.text}"


def _started_at(kept: StoredSession, turns: list[Turn]) -> str:
    """When it began, by the first clock that can be believed: it is not after the last word."""
    for said in (kept.started_at, turns[0].at):
        at = parse_moment(said)
        if at is not None and _EARLIEST <= at <= kept.moment:
            return _shown(at)
    return kept.last_at


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
