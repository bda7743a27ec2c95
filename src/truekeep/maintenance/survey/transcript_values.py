"""What was said in sessions that the value of a thing is: to be held against cards, never believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.service import StatedValue
from truekeep.memory.values import Value, find_values

if TYPE_CHECKING:
    import apsw


class SpokenText(NamedTuple):
    """What was said in a session."""

    text: str
    line: int
    day: str


def listen(
    db: apsw.Connection, sessions: Iterable[tuple[str, str, str, str]], turns: Callable[[str], Iterable[SpokenText]]
) -> int:
    """Take in what sessions say the values of things are: name, state, day and repository of each.

    Those that are not among them any more are forgotten. Gives how many were listened to.
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
    """What sessions say of things that some card gives another value to."""
    query = (
        "SELECT session, day, repository, kind, subject, value, line FROM session_values AS named WHERE EXISTS"
        " (SELECT 1 FROM stated_values AS stated WHERE stated.kind = named.kind AND stated.subject = named.subject"
        " AND stated.value != named.value)"
        " ORDER BY session, line"
    )
    rows: list[Any] = db.execute(query).fetchall()
    for session, day, repository, kind, subject, value, line in rows:
        yield StatedValue(session, "transcripts", day, repository, Value(kind, subject, value, line, 0, 0))
