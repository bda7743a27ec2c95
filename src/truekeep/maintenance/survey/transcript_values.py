"""The values that sessions give to things: compared with cards, never taken as fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.service import StatedValue
from truekeep.memory.values import Value, find_values

if TYPE_CHECKING:
    import apsw


class SessionText(NamedTuple):
    """A turn of a session."""

    text: str
    line: int
    day: str


def read_sessions(
    db: apsw.Connection, sessions: Iterable[tuple[str, str, str, str]], turns: Callable[[str], Iterable[SessionText]]
) -> int:
    """Store the values that sessions give to things. `sessions`: name, state, day and repository of each.

    Sessions that are no longer among them are removed. Gives the number of sessions that were read.
    """
    noted: dict[str, str] = {str(name): str(state) for name, state in db.execute("SELECT * FROM read_sessions")}
    changed = []
    for name, state, day, repository in sessions:
        if noted.pop(name, None) != state:
            changed.append((name, state, day, repository))
    if not changed and not noted:
        return 0
    with transaction(db):
        for name in (*noted, *(item[0] for item in changed)):
            db.execute("DELETE FROM read_sessions WHERE session = ?", (name,))
            db.execute("DELETE FROM session_values WHERE session = ?", (name,))
        for name, state, day, repository in changed:
            db.execute("INSERT INTO read_sessions VALUES (?, ?)", (name, state))
            rows = (
                (name, spoken.day or day, repository, item.kind, item.subject, item.value, spoken.line)
                for spoken in turns(name)
                for item in find_values(spoken.text, repository=repository)
            )
            db.executemany("INSERT INTO session_values VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return len(changed)


def iter_contradicted(db: apsw.Connection) -> Iterator[StatedValue]:
    """The values in sessions that differ from those of a card."""
    query = (
        "SELECT session, day, repository, kind, subject, value, line FROM session_values AS named WHERE EXISTS"
        " (SELECT 1 FROM stated_values AS stated WHERE stated.kind = named.kind AND stated.subject = named.subject"
        " AND stated.value != named.value)"
        " ORDER BY session, line"
    )
    rows: list[Any] = db.execute(query).fetchall()
    for session, day, repository, kind, subject, value, line in rows:
        yield StatedValue(session, "transcripts", day, repository, Value(kind, subject, value, line, 0, 0))
