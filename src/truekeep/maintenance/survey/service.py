"""The survey: what upkeep knows of every memory file, so that a night in which nothing changed costs one look.

Derived from the files and safe to delete. A refresh compares the sweep with what was noted and reads what changed.
Questions across files (who has the same topic, who gives the same thing another value) are then asked of tables, never
of all files.

    schema.py     the tables
    reading.py    what one file says
    noting.py     what it says, into the tables and out of them
    talk.py       what was said in sessions, likewise
    browsing.py   files as a person looks through them
"""

from __future__ import annotations

import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date
from typing import Any, NamedTuple

import apsw

from truekeep.core.file_io import NOT_REGULAR, UnsafePath
from truekeep.core.model import CARDS
from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.queries import Browsing
from truekeep.maintenance.survey.reader import hash_word, read_facts
from truekeep.maintenance.survey.survey_schema import NAME, Foreign, discard, open_survey, stamp_of
from truekeep.maintenance.survey.writer import Stat, add_counts, forget_file, write_facts
from truekeep.memory.card import card_label, words_of
from truekeep.memory.values import Value
from truekeep.search.file_scan import Changes, FileScan, MemoryFile, compare, look
from truekeep.search.index_schema import read_meta, write_meta
from truekeep.search.refresh import is_settled, read_source
from truekeep.text.unicode import printable

_FEWEST, _ENOUGH = 5, 3_000  # words by which the cards are found that may hold a statement; rows that are looked at
_MOST_HOLDERS = 12
_BATCH = 400
_LARGE = 256 * 1024  # bytes of a file for which nobody waits; 50,000 lines of a log take seconds


class TooMuch(Exception):
    """More files changed than somebody who waits can wait for."""


class SurveyRefresh(NamedTuple):
    """What a refresh found."""

    changed: int
    removed: int
    total: int
    unread: tuple[str, ...]  # folders and files that could not be looked at, with the reason
    later: int = 0  # large files that changed, for which nobody should have to wait


class CardFacts(NamedTuple):
    """A card, as questions across cards need it. Days are ISO texts, empty where they are not known."""

    path: str
    topic: str
    key: str
    created: str
    updated: str
    confirmed: str
    repository: str
    size: int
    description: str = ""

    @property
    def label(self) -> str:
        """What the index calls the card."""
        return card_label(self.topic, self.description)


class FileProblem(NamedTuple):
    """What is wrong with a memory file, and where."""

    path: str
    line: int
    code: str
    what: str


class StatedValue(NamedTuple):
    """A value, and the file that says it."""

    path: str
    store: str
    day: str
    repository: str
    value: Value


class TaggedLogEntry(NamedTuple):
    """A tagged entry of a day's log."""

    path: str
    day: str
    first: int
    last: int
    kind: str
    importance: float
    text: str


def _not_regular(looked: FileScan) -> tuple[str, ...]:
    """What to say of FIFOs and the like that stand where memory files belong."""
    errors = (UnsafePath(printable(path), NOT_REGULAR) for path in sorted(looked.odd))
    return tuple(f"{error.message} ({error.hint})" for error in errors)


class Survey:
    """The survey of one workspace, opened on first use. A file that is damaged or foreign is made again."""

    def __init__(self, state: str, root: str) -> None:
        self.path = os.path.join(state, NAME)
        self.root = root
        self._kept: apsw.Connection | None = None
        self._browsing: Browsing | None = None
        self._looked: tuple[float, str] = (0.0, "")  # when the files were looked at, and what told of changes then

    def close(self) -> None:
        if self._kept is not None:
            with suppress(apsw.Error):
                self._kept.close()
        self._kept = self._browsing = None

    @property
    def db(self) -> apsw.Connection:
        if self._kept is None:
            self._kept = self._open()
        return self._kept

    @property
    def browsing(self) -> Browsing:
        """The files in it, to be looked through."""
        if self._browsing is None or self._browsing.db is not self.db:
            self._browsing = Browsing(self.db)
        return self._browsing

    def _open(self) -> apsw.Connection:
        for path in (self.path, self.path, ":memory:"):  # once more without the file, then without a disk
            try:
                return open_survey(path)
            except (apsw.NotADBError, apsw.CorruptError, Foreign):
                discard(self.path)
            except apsw.Error:
                continue
        raise AssertionError("a database in memory can always be opened")

    # Keeping it up to date.

    def is_fresh(self, within: float) -> bool:
        """Whether files were looked at so many seconds ago or later, and none came, went or was replaced since.

        A file that was written in its place is not noticed by this.
        """
        at, mark = self._looked
        return self._kept is not None and time.monotonic() - at < within and mark == self._folders()

    def _folders(self) -> str:
        """What changes with every file that comes, goes or is replaced in the folders that hold most of them."""
        return " ".join(stamp_of(os.path.join(self.root, folder)) for folder in ("", "memory", CARDS, "memory/daily"))

    def refresh(self, tell: Callable[[int, int], None] = lambda *_: None, *, most: int | None = None) -> SurveyRefresh:
        """Look at every file, read those that changed, note what they say.

        `most`: who cannot wait for more than so many to be read is told so instead (TooMuch), and large files that are
        known stay as they were.
        """
        self._looked = (time.monotonic(), self._folders())
        looked = look(self.root)
        with suppress(apsw.Error):
            if looked.mark and self._meta("mark") == looked.mark:
                return SurveyRefresh(0, 0, int(self._meta("total")), _not_regular(looked))
        try:
            return self._refresh(looked, tell, most)
        except (apsw.NotADBError, apsw.CorruptError):
            self.close()
            discard(self.path)
            return self._refresh(looked, tell, most)
        except (apsw.ReadOnlyError, apsw.BusyError, apsw.FullError, apsw.IOError, apsw.CantOpenError):
            self.close()
            self._kept = open_survey(":memory:")  # a disk that cannot be written: for this run only
            return self._refresh(looked, tell, most)

    def _refresh(self, looked: FileScan, tell: Callable[[int, int], None], most: int | None) -> SurveyRefresh:
        changes = compare(self.db, looked.sources(), unseen=looked.problems)
        if most is not None and len(changes.changed) > most:
            self.close()  # it may be a stand-in in memory
            raise TooMuch(len(changes.changed))
        changed, unread = changes.changed, list(looked.problems)
        if most is not None:
            changed = [source for source in changed if source.size <= _LARGE or source.path not in changes.known]
        later = len(changes.changed) - len(changed)
        is_certain = not later
        with self.writing():
            counts: Counter[int] = Counter()
            for file in changes.gone:
                forget_file(self.db, file, counts)
            add_counts(self.db, counts)
            for start in range(0, len(changed), _BATCH):
                batch = changed[start : start + _BATCH]
                is_certain &= self._take(batch, changes, unread)
                tell(start + len(batch), len(changed))
            write_meta(self.db, "mark", looked.mark if is_certain and not unread else "")
            write_meta(self.db, "total", str(changes.total))
        return SurveyRefresh(len(changed), len(changes.gone), changes.total, (*unread, *_not_regular(looked)), later)

    def _take(self, batch: Sequence[MemoryFile], changes: Changes, unread: list[str]) -> bool:
        """Read some files. Whether none of them may change again without its times moving."""
        counts: Counter[int] = Counter()
        is_certain = True
        for source in batch:
            file = changes.known.get(source.path)
            if file is not None:
                forget_file(self.db, file, counts)
            try:
                data, info = read_source(source.location)
            except FileNotFoundError:
                continue  # the next look notices
            except OSError as error:
                unread.append(f"{source.path}: {error.strerror or error}")
                continue
            stat = Stat(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, is_settled(info))
            is_certain &= stat.is_settled
            facts = read_facts(source.path, source.store, data)
            write_facts(self.db, source.path, source.store, stat, facts, counts)
        add_counts(self.db, counts)
        return is_certain

    def writing(self) -> AbstractContextManager[None]:
        """One change of the survey: all of it or nothing."""
        return transaction(self.db)

    def _meta(self, key: str) -> Any:
        return read_meta(self.db, key)

    # Questions.

    def cards(self) -> Iterator[CardFacts]:
        """Every card, by name."""
        query = (
            "SELECT path, topic, key, created, updated, confirmed, repository, size, description"
            " FROM cards JOIN files USING (id) ORDER BY path"
        )
        for row in self.db.execute(query):
            yield CardFacts(*row)

    def find_card(self, path: str) -> CardFacts | None:
        query = (
            "SELECT path, topic, key, created, updated, confirmed, repository, size, description"
            " FROM files JOIN cards USING (id) WHERE path = ?"
        )
        row = self.db.execute(query, (path,)).fetchone()
        return CardFacts(*row) if row is not None else None

    def repositories(self) -> list[str]:
        """The repositories that memory files name."""
        rows = self.db.execute("SELECT DISTINCT repository FROM files WHERE repository != '' ORDER BY repository")
        return [str(row[0]) for row in rows]

    def cards_within(self, repository: str, words: set[int]) -> list[str]:
        """The cards of a repository whose bodies may hold no other words than these; their topics may."""
        query = "SELECT path, topic, words FROM cards JOIN files USING (id) WHERE repository = ? ORDER BY path"
        rows: list[Any] = self.db.execute(query, (repository,)).fetchall()
        return [
            path
            for path, topic, packed in rows
            if set(array("I", packed)) - words <= {hash_word(word) for word in words_of(topic)}
        ]

    def same_topics(self) -> list[tuple[str, list[str]]]:
        """Topics that several cards have, and the cards."""
        found: dict[str, list[str]] = {}
        query = (
            "SELECT key, path FROM cards JOIN files USING (id) WHERE key != '' AND key IN"
            " (SELECT key FROM cards WHERE key != '' GROUP BY key HAVING count(*) > 1) ORDER BY key, path"
        )
        for key, path in self.db.execute(query):
            found.setdefault(key, []).append(path)
        return list(found.items())

    def problems(self, today: date) -> Iterator[FileProblem]:
        """What is wrong with memory files, by their paths."""
        query = """
            SELECT path, line, code, what FROM problems JOIN files ON files.id = file
            UNION ALL
            SELECT path, 1, 'future-date', 'its last update is ' || updated || ', which is yet to come'
              FROM cards JOIN files USING (id) WHERE updated > ?1
            UNION ALL
            SELECT path, 1, 'future-date', 'it was created on ' || created || ', which is yet to come'
              FROM cards JOIN files USING (id) WHERE created > ?1 AND updated <= ?1
            ORDER BY 1, 2
        """
        for row in self.db.execute(query, (today.isoformat(),)):
            yield FileProblem(*row)

    def entries(self) -> Iterator[TaggedLogEntry]:
        """The tagged entries of all logs whose names give a day, oldest first."""
        query = (
            "SELECT path, day, first, last, kind, importance, text FROM entries JOIN files ON files.id = file"
            " WHERE day != '' ORDER BY day, path, first"
        )
        for row in self.db.execute(query):
            yield TaggedLogEntry(*row)

    def repeated(self, days: int) -> Iterator[list[tuple[str, str, int, str]]]:
        """What logs of so many days say alike: groups of day, path, line and text."""
        query = (
            "SELECT key FROM lines JOIN files ON files.id = file WHERE day != ''"
            " GROUP BY key HAVING count(DISTINCT day) >= ?"
        )
        said = (
            "SELECT day, path, line, text FROM lines JOIN files ON files.id = file WHERE key = ? AND day != ''"
            " ORDER BY day, path, line LIMIT 400"
        )
        for (key,) in self.db.execute(query, (days,)).fetchall():
            rows: list[Any] = self.db.execute(said, (key,)).fetchall()
            yield [(day, path, line, text) for day, path, line, text in rows]

    def holders(self, words: set[int]) -> list[str]:
        """The cards that have the most of these words, the common ones left out."""
        shared: Counter[int] = Counter()
        looked = 0
        for number, (count, word) in enumerate(sorted((count, word) for word, count in self.counted(words) if count)):
            looked += count
            if looked > _ENOUGH and number >= _FEWEST:
                break
            rows: list[Any] = self.db.execute("SELECT card FROM words WHERE word = ?", (word,)).fetchall()
            shared.update(row[0] for row in rows)
        path_of = "SELECT path FROM files WHERE id = ?"
        return [str(self.db.execute(path_of, (card,)).get) for card, _ in shared.most_common(_MOST_HOLDERS)]

    def counted(self, words: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Words, and how many cards have each."""
        for word in words:
            yield word, int(str(self.db.execute("SELECT cards FROM counts WHERE word = ?", (word,)).get or 0))

    def clashes(self) -> Iterator[tuple[str, str, list[StatedValue]]]:
        """Things that files give several values to: kind, subject, and who says what."""
        query = "SELECT kind, subject FROM vals GROUP BY kind, subject HAVING count(DISTINCT value) > 1"
        for kind, subject in self.db.execute(query).fetchall():
            yield str(kind), str(subject), self.said(str(kind), str(subject))

    def said(self, kind: str, subject: str) -> list[StatedValue]:
        """Every file that gives a value to this thing."""
        query = (
            "SELECT path, store, day, repository, kind, subject, value, line, start, end FROM vals"
            " JOIN files ON files.id = file WHERE kind = ? AND subject = ? ORDER BY path, start"
        )
        rows: list[Any] = self.db.execute(query, (kind, subject)).fetchall()
        return [
            StatedValue(path, store, day, repository, Value(*value)) for path, store, day, repository, *value in rows
        ]

    def count(self, table: str) -> int:
        assert table in ("cards", "files", "fresh", "pairs", "vals", "entries", "problems")
        return int(self.db.execute(f"SELECT count(*) FROM {table}").get)  # noqa: S608

    # What upkeep found out, kept until something changes.

    def answer(self, name: str, key: str) -> str | None:
        """What was found the last time, if it was asked the same."""
        return self._meta(f"answer {name}") if self._meta(f"key {name}") == key else None

    def remember(self, name: str, key: str, found: str) -> None:
        with suppress(apsw.Error), self.writing():
            write_meta(self.db, f"answer {name}", found)
            write_meta(self.db, f"key {name}", key)

    @property
    def mark(self) -> str:
        """The state of all files; empty while one of them is too young to be sure."""
        return str(self._meta("mark") or "")
