"""Lists of memory files for a person: by store, words, repository, age, verdict and tag; and the neighbours of one.

Verdicts are counts of the last checks, copied from the verify cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import apsw

from truekeep.core.derived_db import read_meta, write_meta
from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.survey_schema import stat_text
from truekeep.verify.results import count_stored_verdicts, read_seals

# A card that says no day is of an unknown age, whatever a copy did to its file: as status and decay have it.
_DAY = "iif(day != '' OR cards.id IS NOT NULL, day, date(mtime_ns / 1000000000, 'unixepoch', 'localtime'))"
_EDITED = "coalesce(at * 1e9 < mtime_ns, 0)"
_CHECKED = f"at IS NOT NULL AND NOT {_EDITED}"
_LISTED = (
    f"path, store, {_DAY}, repository, size, coalesce(topic, ''), coalesce(category, ''), coalesce(tags, ''),"
    f" coalesce(cards.confirmed, ''), coalesce(at, 0), {_EDITED}, coalesce(verdicts.confirmed, 0), coalesce(moved, 0),"
    " coalesce(changed, 0), coalesce(gone, 0), coalesce(unverifiable, 0)"
)
ORDERS = {
    "name": "path",
    "topic": "coalesce(topic, path) COLLATE NOCASE, path",
    "newest": f"{_DAY} DESC, path",
    "oldest": f"{_DAY}, path",
    "refuted": f"iif({_CHECKED}, gone * 2 + moved, 0) DESC, coalesce(changed, 0) DESC, path",
}
VERDICT_FILTERS = {
    "refuted": f"{_CHECKED} AND moved + gone > 0",
    "changed": f"{_CHECKED} AND changed > 0",
    "holds": f"{_CHECKED} AND verdicts.confirmed > 0 AND moved + changed + gone = 0",
    "unchecked": f"NOT ({_CHECKED})",
}
_MAX_FILTER_WORDS = 8
_TABLES = "FROM files LEFT JOIN cards USING (id) LEFT JOIN verdicts USING (path)"


class Browse(NamedTuple):
    """A filter and an order for a list of memory files."""

    store: str = ""  # empty: all of them
    text: str = ""  # words that a path or a topic has
    repository: str | None = None  # empty: those that name none
    since: str = ""  # a day, and no older
    before: str = ""  # older than a day
    verdict: str = ""  # of VERDICT_FILTERS
    category: str = ""
    tag: str = ""
    order: str = "name"  # of ORDERS


class MemoryFileSummary(NamedTuple):
    """A memory file in a list, with the time and the counts of its last check."""

    path: str
    store: str
    day: str
    repository: str
    size: int
    topic: str
    category: str
    tags: tuple[str, ...]
    confirmed_on: str  # by a person
    checked_at: float  # 0: never
    is_edited: bool  # since it was checked
    confirmed: int
    moved: int
    changed: int
    gone: int
    unverifiable: int

    @property
    def claims(self) -> int:
        return self.confirmed + self.moved + self.changed + self.gone + self.unverifiable


class Neighbours(NamedTuple):
    """The memory files around one: paths, each with a topic, or with how alike it is."""

    links_to: tuple[tuple[str, str, bool], ...]  # and whether it is there
    linked_from: tuple[tuple[str, str], ...]
    same_topic: tuple[tuple[str, str], ...]
    same_repository: tuple[tuple[str, str], ...]
    alike: tuple[tuple[str, str, float], ...]


class Browsing:
    """Lists of the files in one survey."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self._choices: tuple[object, dict[str, list[str]]] = (None, {})  # and the state that they are of

    def browse(self, wanted: Browse, *, first: int = 0, most: int = 50) -> tuple[list[MemoryFileSummary], int]:
        """One page of the matching files, and the number of all of them."""
        where, values = _conditions(wanted)
        total: Any = self.db.execute(f"SELECT count(*) {_TABLES} WHERE {where}", values).get
        rows: list[Any] = self.db.execute(
            f"SELECT {_LISTED} {_TABLES} WHERE {where} ORDER BY {ORDERS[wanted.order]} LIMIT ? OFFSET ?",
            (*values, most, first),
        ).fetchall()
        return [_listed(row) for row in rows], int(total)

    def count_cards(self, wanted: Browse) -> int:
        """The number of cards among the matching files, as status counts them."""
        where, values = _conditions(wanted)
        total: Any = self.db.execute(f"SELECT count(cards.id) {_TABLES} WHERE {where}", values).get
        return int(total)

    def find_file(self, path: str) -> MemoryFileSummary | None:
        """A memory file by its path."""
        row: Any = self.db.execute(f"SELECT {_LISTED} {_TABLES} WHERE path = ?", (path,)).fetchone()
        return _listed(row) if row is not None else None

    def find_topics(self, paths: Sequence[str]) -> dict[str, str]:
        """The topics of those files that are cards."""
        query = "SELECT topic FROM files JOIN cards USING (id) WHERE path = ?"
        try:
            found = [(path, self.db.execute(query, (path,)).get) for path in paths]
        except apsw.Error:  # it is being written, or damaged: the next refresh rebuilds it
            return {}
        return {path: str(topic) for path, topic in found if topic}

    def choices(self, most: int = 200) -> dict[str, list[str]]:
        """The repositories and categories to filter by, the most frequent first."""
        state = (self.db.execute("PRAGMA data_version").get, self.db.total_changes(), most)  # of others, of our own
        if self._choices[0] == state:
            return self._choices[1]
        asked = {
            "repository": "SELECT repository FROM files WHERE repository != ''",
            "category": "SELECT category FROM cards WHERE category != ''",
        }
        found = {
            name: [
                str(row[0]) for row in self.db.execute(f"{query} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT ?", (most,))
            ]
            for name, query in asked.items()
        }
        self._choices = (state, found)
        return found

    def neighbours(self, path: str, most: int = 12) -> Neighbours:
        """The files that a file links to and from, and cards with its topic, its repository or its words."""
        here: Any = self.db.execute(
            "SELECT id, repository, key FROM files LEFT JOIN cards USING (id) WHERE path = ?", (path,)
        ).fetchone()
        if here is None:
            return Neighbours((), (), (), (), ())
        file, repository, key = here

        def ask(query: str, *values: object) -> tuple[Any, ...]:
            return tuple(self.db.execute(query, values).fetchall())

        topic = "coalesce(topic, '')"
        return Neighbours(
            links_to=tuple(
                (target, said, bool(there))
                for target, said, there in ask(
                    f"SELECT target, {topic}, files.id IS NOT NULL FROM links LEFT JOIN files ON files.path = target"  # noqa: S608
                    " LEFT JOIN cards ON cards.id = files.id WHERE links.file = ? GROUP BY 1"
                    " ORDER BY min(line) LIMIT ?",
                    file,
                    most,
                )
            ),
            linked_from=ask(
                f"SELECT path, {topic} FROM links JOIN files ON files.id = links.file LEFT JOIN cards USING (id)"  # noqa: S608
                " WHERE target = ? GROUP BY 1 ORDER BY 1 LIMIT ?",
                path,
                most,
            ),
            same_topic=ask(
                "SELECT path, topic FROM cards JOIN files USING (id) WHERE key = ? AND key != '' AND id != ?"
                " ORDER BY 1 LIMIT ?",
                key or "",
                file,
                most,
            ),
            same_repository=ask(
                "SELECT path, topic FROM files JOIN cards USING (id) WHERE repository = ? AND repository != ''"
                " AND id != ? ORDER BY day DESC, path LIMIT ?",
                repository,
                file,
                most,
            ),
            alike=ask(
                "SELECT path, topic, likeness FROM similar_cards JOIN cards ON cards.id = iif(one = ?1, other, one)"
                " JOIN files USING (id) WHERE one = ?1 OR other = ?1 ORDER BY likeness DESC LIMIT ?2",
                file,
                most,
            ),
        )

    def copy_verdicts(self, facts: str) -> None:
        """Copy the counts of the last checks from the verify cache, as far as they are new."""
        stamp = " ".join(stat_text(facts + tail) for tail in ("", "-wal"))
        if read_meta(self.db, "facts") == stamp:
            return
        with suppress(apsw.Error):  # a file that cannot be read has nothing new
            seals = {path: (seal, at) for path, seal, at in read_seals(facts)}
            known = {path: (seal, at) for path, seal, at in self.db.execute("SELECT path, seal, at FROM verdicts")}
            new = [path for path, noted in seals.items() if known.get(path) != noted]
            counts = count_stored_verdicts(facts, new) if new else {}
            with transaction(self.db):
                gone = ((path,) for path in (*(known.keys() - seals.keys()), *new))
                self.db.executemany("DELETE FROM verdicts WHERE path = ?", gone)
                rows = ((path, *seals[path], *found) for path, found in counts.items())
                self.db.executemany("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                write_meta(self.db, "facts", stamp)


def _conditions(wanted: Browse) -> tuple[str, list[object]]:
    """The SQL conditions of a list, and their values."""
    found: list[tuple[str, list[object]]] = []
    if wanted.store:
        found.append(("store = ?", [wanted.store]))
    words = wanted.text.lower().split()[:_MAX_FILTER_WORDS]
    found += [("instr(lower(path || ' ' || coalesce(topic, '')), ?) > 0", [word]) for word in words]
    if wanted.repository is not None:
        found.append(("repository = ?", [wanted.repository]))
    if wanted.since:
        found.append((f"{_DAY} >= ?", [wanted.since]))
    if wanted.before:
        found.append((f"{_DAY} < ?", [wanted.before]))
    if wanted.verdict:
        found.append((f"({VERDICT_FILTERS[wanted.verdict]})", []))
    if wanted.category:
        found.append(("category = ?", [wanted.category]))
    if wanted.tag:
        found.append(("instr(tags, ?) > 0", [f"\n{wanted.tag.casefold()}\n"]))
    return " AND ".join(condition for condition, _ in found) or "1", [value for _, each in found for value in each]


def _listed(row: Any) -> MemoryFileSummary:
    path, store, day, repository, size, topic, category, tags, confirmed_on, at, is_edited, *counts = row
    split = tuple(tag for tag in str(tags).split("\n") if tag)
    return MemoryFileSummary(
        path, store, day, repository, size, topic, category, split, confirmed_on, at, bool(is_edited), *counts
    )
