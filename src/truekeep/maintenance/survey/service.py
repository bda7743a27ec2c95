"""The survey: what maintenance knows about every memory file, so that a night without changes costs one scan.

Derived from the files and safe to delete. A refresh compares a scan with the table of files and reads what changed.
Questions across files (which cards have the same topic, which files give a thing different values) are then SQL.

    survey_schema.py       the tables
    reader.py              what one file says
    writer.py              its facts into the tables and out of them
    other_documents.py     what is wrong in documents outside of the memory files
    transcript_values.py   what sessions say, likewise
    queries.py             lists of files for a person to browse
"""

from __future__ import annotations

import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

import apsw

from truekeep.core.derived_db import DerivedDatabase, read_meta, write_meta
from truekeep.core.file_io import NOT_REGULAR, UnsafePath
from truekeep.core.formats import SURVEY
from truekeep.core.model import CARDS, INDEX
from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.other_documents import refresh_documents
from truekeep.maintenance.survey.queries import Browsing
from truekeep.maintenance.survey.reader import hash_word, read_facts
from truekeep.maintenance.survey.survey_schema import SCHEMA, stat_text
from truekeep.maintenance.survey.writer import add_counts, forget_file, write_facts
from truekeep.memory.card import card_label, words_of
from truekeep.memory.file_scan import (
    Changes,
    FileScan,
    MemoryFile,
    find_changes,
    is_settled,
    read_memory_file,
    scan_files,
    stat_of,
)
from truekeep.memory.values import Value
from truekeep.text.unicode import printable

_MIN_SEARCHED_WORDS, _MAX_SEARCHED_ROWS = 5, 3_000  # where the search for the cards with a statement's words stops
_MAX_CARDS_WITH_WORDS = 12
_FILES_PER_BATCH = 400
_SLOW_FILE_BYTES = 256 * 1024  # 50,000 lines of a log take seconds


class TooManyChanges(Exception):
    """More files changed than the caller wants to wait for."""


class SurveyRefresh(NamedTuple):
    """The result of a refresh."""

    changed: int
    removed: int
    total: int
    unread: tuple[str, ...]  # folders and files that could not be read, with the reason
    later: int = 0  # large changed files that were left for a run that nobody waits for


class CardFacts(NamedTuple):
    """A card, as questions across cards need it. Days are ISO texts, empty if unknown."""

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
        """The card's label in MEMORY.md."""
        return card_label(self.topic, self.description)


class StoreFacts(NamedTuple):
    """The files of one store, such as documents or logs."""

    files: int
    size: int  # in bytes
    first_day: str  # empty: none of them says a day
    last_day: str


class FileProblem(NamedTuple):
    """A problem in a memory file."""

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
    """A tagged entry of a daily log."""

    path: str
    day: str
    first: int
    last: int
    kind: str
    importance: float
    text: str


class LogStatement(NamedTuple):
    """One line of a daily log."""

    day: str
    path: str
    line: int
    text: str


class Survey:
    """The survey of one workspace, opened on first use."""

    def __init__(self, state: str, root: str) -> None:
        self.root = root
        self._database = DerivedDatabase(os.path.join(state, SURVEY.file), SCHEMA)
        self._browsing: Browsing | None = None
        self._scanned_at = 0.0
        self._scanned_folders = ""  # their stats at that time

    def close(self) -> None:
        self._database.close()
        self._browsing = None

    @property
    def db(self) -> apsw.Connection:
        return self._database.db

    @property
    def browsing(self) -> Browsing:
        """Lists of the files in it."""
        if self._browsing is None or self._browsing.db is not self.db:
            self._browsing = Browsing(self.db)
        return self._browsing

    # Keeping it up to date.

    def is_fresh(self, within: float) -> bool:
        """Whether the files were scanned in the last `within` seconds, and none was added, removed or replaced since.

        A file that was written in place goes unnoticed.
        """
        is_recent = time.monotonic() - self._scanned_at < within
        return self._database.is_open and is_recent and self._scanned_folders == self._folder_stats()

    def _folder_stats(self) -> str:
        """A text that changes when a file is added, removed or replaced in the folders with most of the files."""
        return " ".join(stat_text(os.path.join(self.root, folder)) for folder in ("", "memory", CARDS, "memory/daily"))

    def refresh(
        self, progress: Callable[[int, int], None] = lambda *_: None, *, max_files: int | None = None
    ) -> SurveyRefresh:
        """Scan the files, read those that changed, and store what they say.

        `max_files`: raise TooManyChanges if more files changed, and leave large files that are known as they were.
        """
        self._scanned_at, self._scanned_folders = time.monotonic(), self._folder_stats()
        scan = scan_files(self.root)
        with suppress(apsw.Error):
            if scan.fingerprint and self._meta("mark") == scan.fingerprint:
                return SurveyRefresh(0, 0, int(self._meta("total")), _special_file_messages(scan))
        return self._database.attempt(lambda: self._refresh(scan, progress, max_files))

    def _refresh(self, scan: FileScan, progress: Callable[[int, int], None], max_files: int | None) -> SurveyRefresh:
        changes = find_changes(self.db, scan.files(), unlisted=scan.unlisted_folders)
        changed, unread = changes.changed, list(scan.unlisted_folders)
        if max_files is not None:
            if len(changed) > max_files:
                self.close()  # it may be a copy in memory
                raise TooManyChanges(len(changed))
            changed = [file for file in changed if file.size <= _SLOW_FILE_BYTES or file.path not in changes.known]
        later = len(changes.changed) - len(changed)
        is_certain = not later
        with transaction(self.db):
            counts: Counter[int] = Counter()
            for file_id in changes.gone:
                forget_file(self.db, file_id, counts)
            add_counts(self.db, counts)
            for start in range(0, len(changed), _FILES_PER_BATCH):
                batch = changed[start : start + _FILES_PER_BATCH]
                is_certain &= self._read_files(batch, changes, unread)
                progress(start + len(batch), len(changed))
            write_meta(self.db, "mark", scan.fingerprint if is_certain and not unread else "")
            write_meta(self.db, "total", str(changes.total))
        messages = (*unread, *_special_file_messages(scan))
        return SurveyRefresh(len(changed), len(changes.gone), changes.total, messages, later)

    def _read_files(self, batch: Sequence[MemoryFile], changes: Changes, unread: list[str]) -> bool:
        """Read some files and store their facts. Gives whether the stats of all of them are settled."""
        counts: Counter[int] = Counter()
        is_certain = True
        for file in batch:
            known = changes.known.get(file.path)
            if known is not None:
                forget_file(self.db, known, counts)
            try:
                data, info = read_memory_file(file.location)
            except FileNotFoundError:
                continue  # the next scan notices
            except OSError as error:
                unread.append(f"{file.path}: {error.strerror or error}")
                continue
            settled = is_settled(info.st_mtime_ns, info.st_ctime_ns)
            is_certain &= settled
            facts = read_facts(file.path, file.store, data)
            write_facts(self.db, (file.path, file.store, *stat_of(info), settled), facts, counts)
        add_counts(self.db, counts)
        return is_certain

    def refresh_documents(
        self, extra: Sequence[str] = (), progress: Callable[[int, int], None] = lambda *_: None
    ) -> tuple[str, ...]:
        """Look through the documents outside of the memory files that changed. Gives those that could not be read."""
        return self._database.attempt(lambda: refresh_documents(self.db, self.root, extra, progress))

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
        """The cards of a repository whose bodies have no words but these, as far as word hashes can tell."""
        query = "SELECT path, topic, words FROM cards JOIN files USING (id) WHERE repository = ? ORDER BY path"
        rows: list[Any] = self.db.execute(query, (repository,)).fetchall()
        return [
            path
            for path, topic, packed in rows
            if set(array("I", packed)) - words <= {hash_word(word) for word in words_of(topic)}
        ]

    def same_topics(self) -> list[tuple[str, list[str]]]:
        """Topics that several cards share, with the paths of the cards."""
        found: dict[str, list[str]] = {}
        query = (
            "SELECT key, path FROM cards JOIN files USING (id) WHERE key != '' AND key IN"
            " (SELECT key FROM cards WHERE key != '' GROUP BY key HAVING count(*) > 1) ORDER BY key, path"
        )
        for key, path in self.db.execute(query):
            found.setdefault(key, []).append(path)
        return list(found.items())

    def problems(self, today: date) -> Iterator[FileProblem]:
        """The problems of all memory files, by path."""
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

    def all_problems(self, today: date) -> list[FileProblem]:
        """The problems of all memory files and of the other documents, by path."""
        query = "SELECT path, line, code, what FROM other_problems JOIN other_documents ON other_documents.id = file"
        return sorted((*self.problems(today), *(FileProblem(*row) for row in self.db.execute(query))))

    def entries(self) -> Iterator[TaggedLogEntry]:
        """The tagged entries of all logs with a day in their names, oldest first."""
        query = (
            "SELECT path, day, first, last, kind, importance, text FROM entries JOIN files ON files.id = file"
            " WHERE day != '' ORDER BY day, path, first"
        )
        for row in self.db.execute(query):
            yield TaggedLogEntry(*row)

    def repeated_statements(self, min_days: int) -> Iterator[list[LogStatement]]:
        """Groups of similar log lines that occur on at least so many days."""
        keys = (
            "SELECT key FROM log_statements JOIN files ON files.id = file WHERE day != ''"
            " GROUP BY key HAVING count(DISTINCT day) >= ?"
        )
        statements = (
            "SELECT day, path, line, text FROM log_statements JOIN files ON files.id = file"
            " WHERE key = ? AND day != '' ORDER BY day, path, line LIMIT 400"
        )
        for (key,) in self.db.execute(keys, (min_days,)).fetchall():
            rows: list[Any] = self.db.execute(statements, (key,)).fetchall()
            yield [LogStatement(*row) for row in rows]

    def paths_in(self, *stores: str) -> list[str]:
        """The files of these stores."""
        query = f"SELECT path FROM files WHERE store IN ({','.join('?' * len(stores))}) ORDER BY path"  # noqa: S608
        return [str(row[0]) for row in self.db.execute(query, stores)]

    def is_linked(self, path: str) -> bool:
        """Whether another memory file points at this one."""
        query = "SELECT 1 FROM links JOIN files ON files.id = file WHERE target = ?1 AND path != ?1 LIMIT 1"
        return self.db.execute(query, (path,)).get is not None

    def statements_of(self, path: str) -> set[str]:
        """The different statements of one log."""
        query = "SELECT DISTINCT text FROM log_statements JOIN files ON files.id = file WHERE path = ?"
        return {str(row[0]) for row in self.db.execute(query, (path,))}

    def find_cards_with(self, words: set[int]) -> list[str]:
        """The cards that have most of these words, by the rarest of them."""
        shared: Counter[int] = Counter()
        searched = 0
        rarest_first = sorted((count, word) for word, count in self.count_cards_with(words) if count)
        for number, (count, word) in enumerate(rarest_first):
            searched += count
            if searched > _MAX_SEARCHED_ROWS and number >= _MIN_SEARCHED_WORDS:
                break
            rows: list[Any] = self.db.execute("SELECT card FROM card_words WHERE word = ?", (word,)).fetchall()
            shared.update(row[0] for row in rows)
        path_of = "SELECT path FROM files WHERE id = ?"
        return [str(self.db.execute(path_of, (card,)).get) for card, _ in shared.most_common(_MAX_CARDS_WITH_WORDS)]

    def count_cards_with(self, words: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Each word with the number of cards that have it."""
        for word in words:
            yield word, int(str(self.db.execute("SELECT cards FROM word_counts WHERE word = ?", (word,)).get or 0))

    def conflicting_values(self) -> Iterator[tuple[str, str, list[StatedValue]]]:
        """Things that files give several values to: kind, subject, and every stated value."""
        query = "SELECT kind, subject FROM stated_values GROUP BY kind, subject HAVING count(DISTINCT value) > 1"
        for kind, subject in self.db.execute(query).fetchall():
            yield str(kind), str(subject), self.values_of(str(kind), str(subject))

    def logs_since(self, day: str) -> list[tuple[str, str, str]]:
        """The path, day and repository of each daily log since a day."""
        rows: list[Any] = self.db.execute(
            "SELECT path, day, repository FROM files WHERE store = 'logs' AND day >= ? ORDER BY path", (day,)
        ).fetchall()
        return [(path, own_day, repository) for path, own_day, repository in rows]

    def values_of(self, kind: str, subject: str) -> list[StatedValue]:
        """Every value that a file gives to this thing."""
        query = (
            "SELECT path, store, day, repository, kind, subject, value, line, start, end FROM stated_values"
            " JOIN files ON files.id = file WHERE kind = ? AND subject = ? ORDER BY path, start"
        )
        rows: list[Any] = self.db.execute(query, (kind, subject)).fetchall()
        return [
            StatedValue(path, store, day, repository, Value(*value)) for path, store, day, repository, *value in rows
        ]

    def stores(self) -> dict[str, StoreFacts]:
        """What each store that has files holds."""
        rows: Any = self.db.execute(
            "SELECT store, count(*), sum(size), coalesce(min(nullif(day, '')), ''), max(day) FROM files"
            " WHERE path != ? GROUP BY store",
            (INDEX,),
        ).fetchall()
        return {store: StoreFacts(*facts) for store, *facts in rows}

    def documents(self, most: int) -> list[str]:
        """The paths of the first documents."""
        rows = self.db.execute("SELECT path FROM files WHERE store = 'documents' ORDER BY path LIMIT ?", (most,))
        return [str(path) for (path,) in rows]

    def count(self, table: str) -> int:
        assert table in ("cards", "files", "uncompared_cards", "similar_cards", "stated_values", "entries", "problems")
        return int(self.db.execute(f"SELECT count(*) FROM {table}").get)  # noqa: S608

    # Results of maintenance, kept until something changes.

    def find_result(self, name: str, key: str) -> str | None:
        """The stored result of a command, if it was stored under the same key."""
        return self._meta(f"answer {name}") if self._meta(f"key {name}") == key else None

    def store_result(self, name: str, key: str, result: str) -> None:
        with suppress(apsw.Error), transaction(self.db):
            write_meta(self.db, f"answer {name}", result)
            write_meta(self.db, f"key {name}", key)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all files when they were last read; empty while one of them is not settled."""
        return str(self._meta("mark") or "")


def _special_file_messages(scan: FileScan) -> tuple[str, ...]:
    """A message for each FIFO, device or socket in the place of a memory file."""
    errors = (UnsafePath(printable(path), NOT_REGULAR) for path in sorted(scan.special_files))
    return tuple(f"{error.message} ({error.hint})" for error in errors)
