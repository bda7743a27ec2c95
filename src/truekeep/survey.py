"""The survey: what upkeep knows of every memory file, so that a night in which nothing changed costs one look.

Derived from the files and safe to delete. A refresh compares the sweep with what was noted and reads what changed: of
a card its topic, days and words, of a log its tagged entries, of every file the values that it gives to things, and
what is wrong with its frontmatter. Questions across files (who has the same topic, who gives the same thing another
value) are then asked of tables, never of all files.

    files      one row a file, with the stat that lets an unchanged one be skipped
    cards      topic, days, repository; the words of a card, sorted
    words      which cards have a word; rare ones tell which cards may say the same
    counts     how many cards have a word
    fresh      cards that were not compared with the others yet
    pairs      two cards that say the same, and how much
    vals       what a file says the value of a thing is
    links      which memory file points at which
    verdicts   how many claims of a file the last check found to be what
    entries    tagged entries of daily logs
    lines      what daily logs say, by what a line shares with ones like it
    heard      how far each session was listened to
    talk       what was said in sessions that the value of a thing is
    problems   what is wrong with a file, and where
"""

from __future__ import annotations

import os
import re
import time
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any, NamedTuple

import apsw

from truekeep.card import Card, parse_card, parse_day, words_of
from truekeep.catalog import topic_key
from truekeep.disk import decode_text
from truekeep.formats import SURVEY, read_format
from truekeep.importance import parse_entries
from truekeep.index.refresh import read_source
from truekeep.index.sources import Changes, Source, compare, day_in, look
from truekeep.links import find_links
from truekeep.model import CARDS, INDEX
from truekeep.tables import iter_prose
from truekeep.values import Value, find_values

NAME = "survey.sqlite"
VERSION = SURVEY.number
_FEWEST, _ENOUGH = 5, 3_000  # words by which the cards are found that may hold a statement; rows that are looked at
_BATCH = 400
_LARGE = 256 * 1024  # bytes of a file for which nobody waits; 50,000 lines of a log take seconds
_SETTLED_NS = 2_000_000_000  # as in index.refresh: a file may change again without its times moving
_CARDS = f"{CARDS}/"

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, store TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, is_settled INTEGER NOT NULL,
  day TEXT NOT NULL, repository TEXT NOT NULL
);
CREATE TABLE cards (
  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL,
  confirmed TEXT NOT NULL, words BLOB NOT NULL, category TEXT NOT NULL,
  tags TEXT NOT NULL                -- each on a line of its own, in lower case
);
CREATE INDEX cards_key ON cards(key);
CREATE TABLE words (word INTEGER NOT NULL, card INTEGER NOT NULL, PRIMARY KEY (word, card)) WITHOUT ROWID;
CREATE TABLE counts (word INTEGER PRIMARY KEY, cards INTEGER NOT NULL);
CREATE TABLE fresh (card INTEGER PRIMARY KEY);
CREATE TABLE pairs (
  one INTEGER NOT NULL, other INTEGER NOT NULL, likeness REAL NOT NULL, PRIMARY KEY (one, other)
) WITHOUT ROWID;
CREATE INDEX pairs_other ON pairs(other);
CREATE TABLE vals (
  file INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, value TEXT NOT NULL, line INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL
);
CREATE INDEX vals_file ON vals(file);
CREATE INDEX vals_subject ON vals(kind, subject, value);
CREATE TABLE links (file INTEGER NOT NULL, target TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX links_file ON links(file);
CREATE INDEX links_target ON links(target);
CREATE TABLE verdicts (             -- by the last check, which may be older than the file
  path TEXT PRIMARY KEY, seal BLOB NOT NULL, at REAL NOT NULL, confirmed INTEGER NOT NULL, moved INTEGER NOT NULL,
  changed INTEGER NOT NULL, gone INTEGER NOT NULL, unverifiable INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE entries (
  file INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, kind TEXT NOT NULL, importance REAL NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX entries_file ON entries(file);
CREATE TABLE lines (                -- statements of logs, by what similar ones share
  key INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, file, line)
) WITHOUT ROWID;
CREATE INDEX lines_file ON lines(file);
CREATE TABLE heard (session TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE talk (                 -- values that were named in sessions
  session TEXT NOT NULL, day TEXT NOT NULL, repository TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
  value TEXT NOT NULL, line INTEGER NOT NULL
);
CREATE INDEX talk_session ON talk(session);
CREATE TABLE problems (file INTEGER NOT NULL, line INTEGER NOT NULL, code TEXT NOT NULL, what TEXT NOT NULL);
CREATE INDEX problems_file ON problems(file);
"""
_OF_A_FILE = ("vals", "links", "entries", "lines", "problems")


class Surveyed(NamedTuple):
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


class Browse(NamedTuple):
    """Which memory files are asked for, and in which order."""

    store: str = ""  # empty: all of them
    text: str = ""  # words that a path or a topic has
    repository: str | None = None  # empty: those that name none
    since: str = ""  # a day, and no older
    before: str = ""  # older than a day
    verdict: str = ""  # of VERDICT_FILTERS
    category: str = ""
    tag: str = ""
    order: str = "name"  # of ORDERS


class Listed(NamedTuple):
    """A memory file as a list shows it. Of the last check: when it was, and what it found."""

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

    @property
    def refuted(self) -> int:
        return self.moved + self.gone


class Neighbours(NamedTuple):
    """The memory files around one: paths, each with a topic, or with how alike it is."""

    links_to: tuple[tuple[str, str, bool], ...]  # and whether it is there
    linked_from: tuple[tuple[str, str], ...]
    same_topic: tuple[tuple[str, str], ...]
    same_repository: tuple[tuple[str, str], ...]
    alike: tuple[tuple[str, str, float], ...]


class Problem(NamedTuple):
    """What is wrong with a memory file, and where."""

    path: str
    line: int
    code: str
    what: str


class Said(NamedTuple):
    """A value, and the file that says it."""

    path: str
    store: str
    day: str
    repository: str
    value: Value


class Spoken(NamedTuple):
    """What was said in a session."""

    text: str
    line: int
    day: str


class LogEntry(NamedTuple):
    """A tagged entry of a day's log."""

    path: str
    day: str
    first: int
    last: int
    kind: str
    importance: float
    text: str


class Survey:
    """The survey of one workspace, opened on first use. A file that is damaged or foreign is made again."""

    def __init__(self, state: str, root: str) -> None:
        self.path = os.path.join(state, NAME)
        self.root = root
        self._kept: apsw.Connection | None = None
        self._looked: tuple[float, str] = (0.0, "")  # when the files were looked at, and what told of changes then
        self._choices: tuple[object, dict[str, list[str]]] = (None, {})  # and the state that they are of

    def close(self) -> None:
        if self._kept is not None:
            with suppress(apsw.Error):
                self._kept.close()
            self._kept = None
            self._choices = (None, {})

    @property
    def db(self) -> apsw.Connection:
        if self._kept is None:
            self._kept = self._open()
        return self._kept

    def _open(self) -> apsw.Connection:
        for path in (self.path, self.path, ":memory:"):  # once more without the file, then without a disk
            try:
                return _connect(path)
            except (apsw.NotADBError, apsw.CorruptError, _Foreign):
                discard(self.path)
            except apsw.Error:
                continue
        raise AssertionError("a database in memory can always be opened")

    def is_fresh(self, within: float) -> bool:
        """Whether files were looked at so many seconds ago or later, and none came, went or was replaced since.

        A file that was written in its place is not noticed by this.
        """
        at, mark = self._looked
        return self._kept is not None and time.monotonic() - at < within and mark == self._folders()

    def _folders(self) -> str:
        """What changes with every file that comes, goes or is replaced in the folders that hold most of them."""
        return " ".join(_stamp(os.path.join(self.root, folder)) for folder in ("", "memory", CARDS, "memory/daily"))

    def refresh(self, tell: Callable[[int, int], None] = lambda *_: None, *, most: int | None = None) -> Surveyed:
        """Look at every file, read those that changed, note what they say.

        `most`: who cannot wait for more than so many to be read is told so instead (TooMuch), and large files that are
        known stay as they were.
        """
        self._looked = (time.monotonic(), self._folders())
        looked = look(self.root)
        mark, problems = looked.mark, looked.problems
        with suppress(apsw.Error):
            if mark and self._meta("mark") == mark:
                return Surveyed(0, 0, int(self._meta("total")), ())
        seen = list(looked.sources())
        try:
            return self._refresh(seen, problems, mark, tell, most)
        except (apsw.NotADBError, apsw.CorruptError):
            self.close()
            discard(self.path)
            return self._refresh(seen, problems, mark, tell, most)
        except (apsw.ReadOnlyError, apsw.BusyError, apsw.FullError, apsw.IOError, apsw.CantOpenError):
            self.close()
            self._kept = _connect(":memory:")  # a disk that cannot be written: for this run only
            return self._refresh(seen, problems, mark, tell, most)

    def _refresh(
        self,
        seen: list[Source],
        problems: list[str],
        mark: str,
        tell: Callable[[int, int], None],
        most: int | None = None,
    ) -> Surveyed:
        changes = compare(self.db, seen, unseen=problems)
        if most is not None and len(changes.changed) > most:
            self.close()  # it may be a stand-in in memory
            raise TooMuch(len(changes.changed))
        changed, unread = changes.changed, list(problems)
        if most is not None:
            changed = [source for source in changed if source.size <= _LARGE or source.path not in changes.known]
        later = len(changes.changed) - len(changed)
        is_settled = not later
        with self.writing():
            for file in changes.gone:
                self._forget(file)
            for start in range(0, len(changed), _BATCH):
                batch = changed[start : start + _BATCH]
                is_settled &= self._take(batch, changes, unread)
                tell(start + len(batch), len(changed))
            self._set_meta("mark", mark if is_settled and not unread else "")
            self._set_meta("total", str(len(seen)))
        return Surveyed(len(changed), len(changes.gone), len(seen), tuple(unread), later)

    def _take(self, batch: Sequence[Source], changes: Changes, unread: list[str]) -> bool:
        """Read some files. Whether none of them may change again without its times moving."""
        counts: Counter[int] = Counter()
        is_settled = True
        for source in batch:
            file = changes.known.get(source.path)
            if file is not None:
                self._forget(file, counts)
            try:
                data, info = read_source(source.location)
            except FileNotFoundError:
                continue  # the next look notices
            except OSError as error:
                unread.append(f"{source.path}: {error.strerror or error}")
                continue
            settled = time.time_ns() - max(info.st_mtime_ns, info.st_ctime_ns) > _SETTLED_NS
            is_settled &= settled
            stat = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, settled)
            self._note(source, stat, data, counts)
        self._count(counts)
        return is_settled

    def _note(self, source: Source, stat: tuple[int, int, int, int, bool], data: bytes, counts: Counter[int]) -> None:
        db = self.db
        text = decode_text(data)
        is_card = source.path.startswith(_CARDS) and "/" not in source.path[len(_CARDS) :]
        card = parse_card(source.path.rpartition("/")[2], text) if is_card and text is not None else None
        day = day_in(source.path) if source.store == "logs" else _last_day(card)
        repository = card.repository if card is not None else ""
        db.execute(
            "INSERT INTO files (path, store, size, mtime_ns, ctime_ns, inode, is_settled, day, repository)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (source.path, source.store, *stat, day, repository),
        )
        file = db.last_insert_rowid()
        if text is None:
            self._problem(file, 1, "not-text", "it is not UTF-8 text")
            return
        if card is not None:
            self._note_card(file, card, counts)
        if source.store == "logs":
            entries, bad = parse_entries(text)
            db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", ((file, *entry) for entry in entries))
            for tag in bad:
                self._problem(file, tag.line, "bad-tag", tag.what)
            said = ((key, file, line, text) for line, text in log_statements(text) for key in line_keys(text))
            db.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?, ?)", said)
        links = find_links(text, source.path)
        db.executemany("INSERT INTO links VALUES (?, ?, ?)", ((file, *link) for link in links))
        if source.path != INDEX and source.store != "archive":  # what was put away says nothing about now
            shift = text.count("\n", 0, len(text) - len(card.body)) if card is not None else 0
            body, topic = (card.body, card.topic) if card is not None else (text, "")
            offset = len(text) - len(body)
            values = find_values(body, topic=topic, repository=repository)
            db.executemany(
                "INSERT INTO vals VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        file,
                        item.kind,
                        item.subject,
                        item.value,
                        item.line + shift,
                        item.start + offset,
                        item.end + offset,
                    )
                    for item in values
                ),
            )

    def _note_card(self, file: int, card: Card, counts: Counter[int]) -> None:
        words = array("I", sorted({hash_word(word) for word in telling_words(card)}))
        days = (_iso(card.front.text(key)) for key in _DAYS)
        tags = "".join(f"\n{tag.casefold()}" for tag in card.tags) + "\n"
        row = (file, card.topic, topic_key(card.topic), *days, words.tobytes(), card.category, tags)
        self.db.execute("INSERT INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.db.executemany("INSERT INTO words VALUES (?, ?)", ((word, file) for word in words))
        self.db.execute("INSERT INTO fresh VALUES (?)", (file,))
        counts.update(words)
        for line, code, what in card_problems(card):
            self._problem(file, line, code, what)

    def _problem(self, file: int, line: int, code: str, what: str) -> None:
        self.db.execute("INSERT INTO problems VALUES (?, ?, ?, ?)", (file, line, code, what))

    def _forget(self, file: int, counts: Counter[int] | None = None) -> None:
        """Take out all that was noted of a file."""
        db = self.db
        row = db.execute("SELECT words FROM cards WHERE id = ?", (file,)).fetchone()
        if row is not None:
            words = array("I", row[0])
            db.executemany("DELETE FROM words WHERE word = ? AND card = ?", ((word, file) for word in words))
            if counts is None:
                self._count(Counter(dict.fromkeys(words, -1)))
            else:
                counts.subtract(words)
            db.execute("DELETE FROM cards WHERE id = ?", (file,))
            db.execute("DELETE FROM fresh WHERE card = ?", (file,))
            db.execute("DELETE FROM pairs WHERE one = ?1 OR other = ?1", (file,))
        for table in _OF_A_FILE:
            db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608
        db.execute("DELETE FROM files WHERE id = ?", (file,))

    def _count(self, counts: Counter[int]) -> None:
        self.db.executemany(
            "INSERT INTO counts VALUES (?1, ?2) ON CONFLICT DO UPDATE SET cards = cards + ?2",
            ((word, count) for word, count in counts.items() if count),
        )

    # Questions.

    def cards(self) -> Iterator[CardFacts]:
        """Every card, by name."""
        query = (
            "SELECT path, topic, key, created, updated, confirmed, repository, size FROM cards JOIN files USING (id)"
            " ORDER BY path"
        )
        for row in self.db.execute(query):
            yield CardFacts(*row)

    def find_card(self, path: str) -> CardFacts | None:
        query = (
            "SELECT path, topic, key, created, updated, confirmed, repository, size FROM files JOIN cards USING (id)"
            " WHERE path = ?"
        )
        row = self.db.execute(query, (path,)).fetchone()
        return CardFacts(*row) if row is not None else None

    def browse(self, wanted: Browse, *, first: int = 0, most: int = 50) -> tuple[list[Listed], int]:
        """Some of the memory files that are asked for, and how many there are."""
        where, values = _conditions(wanted)
        tables = "FROM files LEFT JOIN cards USING (id) LEFT JOIN verdicts USING (path)"
        total: Any = self.db.execute(f"SELECT count(*) {tables} WHERE {where}", values).get
        rows: list[Any] = self.db.execute(
            f"SELECT {_LISTED} {tables} WHERE {where} ORDER BY {ORDERS[wanted.order]} LIMIT ? OFFSET ?",
            (*values, most, first),
        ).fetchall()
        return [_listed(row) for row in rows], int(total)

    def find_file(self, path: str) -> Listed | None:
        """A memory file by its path."""
        tables = "FROM files LEFT JOIN cards USING (id) LEFT JOIN verdicts USING (path)"
        row: Any = self.db.execute(f"SELECT {_LISTED} {tables} WHERE path = ?", (path,)).fetchone()
        return _listed(row) if row is not None else None

    def topics(self, paths: Sequence[str]) -> dict[str, str]:
        """The topics of those files that are cards."""
        query = "SELECT topic FROM files JOIN cards USING (id) WHERE path = ?"
        try:
            found = [(path, self.db.execute(query, (path,)).get) for path in paths]
        except apsw.Error:  # somebody writes it, or it is damaged: whoever surveys next mends it
            return {}
        return {path: str(topic) for path, topic in found if topic}

    def choices(self, most: int = 200) -> dict[str, list[str]]:
        """What files can be filtered by: the repositories and categories that they name, the usual ones first."""
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
        """The files that one points at and is pointed at by, and cards of its topic, its repository, its words."""
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
                "SELECT path, topic, likeness FROM pairs JOIN cards ON cards.id = iif(one = ?1, other, one)"
                " JOIN files USING (id) WHERE one = ?1 OR other = ?1 ORDER BY likeness DESC LIMIT ?2",
                file,
                most,
            ),
        )

    def hear_verdicts(self, facts: str) -> None:
        """Take over what the last checks found, from their file; only what is new there is read."""
        from truekeep.verify.kept import count_kept, read_seals

        stamp = " ".join(_stamp(facts + tail) for tail in ("", "-wal"))
        if self._meta("facts") == stamp:
            return
        with suppress(apsw.Error):  # a file that cannot be read says nothing new
            seals = {path: (seal, at) for path, seal, at in read_seals(facts)}
            known = {path: (seal, at) for path, seal, at in self.db.execute("SELECT path, seal, at FROM verdicts")}
            new = [path for path, noted in seals.items() if known.get(path) != noted]
            counts = count_kept(facts, new) if new else {}
            with self.writing():
                gone = ((path,) for path in (*(known.keys() - seals.keys()), *new))
                self.db.executemany("DELETE FROM verdicts WHERE path = ?", gone)
                rows = ((path, *seals[path], *found) for path, found in counts.items())
                self.db.executemany("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                self._set_meta("facts", stamp)

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

    def problems(self, today: date) -> Iterator[Problem]:
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
            yield Problem(*row)

    def entries(self) -> Iterator[LogEntry]:
        """The tagged entries of all logs whose names give a day, oldest first."""
        query = (
            "SELECT path, day, first, last, kind, importance, text FROM entries JOIN files ON files.id = file"
            " WHERE day != '' ORDER BY day, path, first"
        )
        for row in self.db.execute(query):
            yield LogEntry(*row)

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

    def holders(self, words: set[int], most: int = 12) -> list[str]:
        """The cards that have the most of these words, the common ones left out."""
        shared: Counter[int] = Counter()
        looked = 0
        for number, (count, word) in enumerate(sorted((count, word) for word, count in self.counted(words) if count)):
            looked += count
            if looked > _ENOUGH and number >= _FEWEST:
                break
            rows: list[Any] = self.db.execute("SELECT card FROM words WHERE word = ?", (word,)).fetchall()
            shared.update(row[0] for row in rows)
        found = [
            self.db.execute("SELECT path FROM files WHERE id = ?", (card,)).get for card, _ in shared.most_common(most)
        ]
        return [str(path) for path in found]

    def counted(self, words: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Words, and how many cards have each."""
        for word in words:
            yield word, int(str(self.db.execute("SELECT cards FROM counts WHERE word = ?", (word,)).get or 0))

    def clashes(self) -> Iterator[tuple[str, str, list[Said]]]:
        """Things that files give several values to: kind, subject, and who says what."""
        query = "SELECT kind, subject FROM vals GROUP BY kind, subject HAVING count(DISTINCT value) > 1"
        for kind, subject in self.db.execute(query).fetchall():
            yield str(kind), str(subject), self.said(str(kind), str(subject))

    def said(self, kind: str, subject: str) -> list[Said]:
        """Every file that gives a value to this thing."""
        query = (
            "SELECT path, store, day, repository, kind, subject, value, line, start, end FROM vals"
            " JOIN files ON files.id = file WHERE kind = ? AND subject = ? ORDER BY path, start"
        )
        rows: list[Any] = self.db.execute(query, (kind, subject)).fetchall()
        return [Said(path, store, day, repository, Value(*value)) for path, store, day, repository, *value in rows]

    def count(self, table: str) -> int:
        assert table in ("cards", "files", "fresh", "pairs", "vals", "entries", "problems")
        return int(self.db.execute(f"SELECT count(*) FROM {table}").get)  # noqa: S608

    # Sessions.

    def listen(self, sessions: Iterable[tuple[str, str, str, str]], turns: Callable[[str], Iterable[Spoken]]) -> int:
        """Take in what sessions say the values of things are: name, state, day and repository of each.

        Those that are not among them any more are forgotten. Gives how many were listened to.
        """
        noted: dict[str, str] = {str(name): str(state) for name, state in self.db.execute("SELECT * FROM heard")}
        changed = []
        for name, state, day, repository in sessions:
            if noted.pop(name, None) != state:
                changed.append((name, state, day, repository))
        if not changed and not noted:
            return 0
        with self.writing():
            for name in (*noted, *(item[0] for item in changed)):
                self.db.execute("DELETE FROM heard WHERE session = ?", (name,))
                self.db.execute("DELETE FROM talk WHERE session = ?", (name,))
            for name, state, day, repository in changed:
                self.db.execute("INSERT INTO heard VALUES (?, ?)", (name, state))
                rows = (
                    (name, spoken.day or day, repository, item.kind, item.subject, item.value, spoken.line)
                    for spoken in turns(name)
                    for item in find_values(spoken.text, repository=repository)
                )
                self.db.executemany("INSERT INTO talk VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return len(changed)

    def contradicted(self) -> Iterator[Said]:
        """What sessions say of things that some card gives another value to."""
        query = (
            "SELECT session, day, repository, kind, subject, value, line FROM talk WHERE EXISTS"
            " (SELECT 1 FROM vals WHERE vals.kind = talk.kind AND vals.subject = talk.subject"
            " AND vals.value != talk.value)"
            " ORDER BY session, line"
        )
        rows: list[Any] = self.db.execute(query).fetchall()
        for session, day, repository, kind, subject, value, line in rows:
            yield Said(session, "transcripts", day, repository, Value(kind, subject, value, line, 0, 0))

    # What upkeep found out, kept until something changes.

    def answer(self, name: str, key: str) -> str | None:
        """What was found the last time, if it was asked the same."""
        return self._meta(f"answer {name}") if self._meta(f"key {name}") == key else None

    def remember(self, name: str, key: str, found: str) -> None:
        with suppress(apsw.Error), self.writing():
            self._set_meta(f"answer {name}", found)
            self._set_meta(f"key {name}", key)

    @property
    def mark(self) -> str:
        """The state of all files; empty while one of them is too young to be sure."""
        return str(self._meta("mark") or "")

    def _meta(self, key: str) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row is not None else None

    def _set_meta(self, key: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One change of the survey: all of it or nothing."""
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(apsw.Error):
                db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")


_DAYS = ("created", "updated", "confirmed")
_DAY = "iif(day != '', day, date(mtime_ns / 1000000000, 'unixepoch', 'localtime'))"
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
_MOST_WORDS = 8  # of a text that files are filtered by


def _conditions(wanted: Browse) -> tuple[str, list[object]]:
    """What a list of files is asked for by."""
    found: list[tuple[str, list[object]]] = []
    if wanted.store:
        found.append(("store = ?", [wanted.store]))
    words = wanted.text.lower().split()[:_MOST_WORDS]
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


def _listed(row: Any) -> Listed:
    path, store, day, repository, size, topic, category, tags, confirmed_on, at, is_edited, *counts = row
    split = tuple(tag for tag in str(tags).split("\n") if tag)
    return Listed(
        path, store, day, repository, size, topic, category, split, confirmed_on, at, bool(is_edited), *counts
    )


def _stamp(path: str) -> str:
    try:
        info = os.stat(path)
    except OSError:
        return "-"
    return f"{info.st_mtime_ns}.{info.st_size}.{info.st_ino}"


class TooMuch(Exception):
    """More files changed than somebody who waits can wait for."""


class _Foreign(Exception):
    """Another version's survey, or some other database."""


def _connect(path: str) -> apsw.Connection:
    if read_format(path) > VERSION:
        path = ":memory:"  # a newer truekeep's is left alone
    if path != ":memory:":
        with suppress(OSError):  # before SQLite makes it with everybody's permissions
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(5000)
        db.execute("PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768")  # derived
        version = db.execute("PRAGMA user_version").get
        if version != VERSION:
            if version != 0 or db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise _Foreign
            with db:
                db.execute(_SCHEMA)
                db.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def discard(path: str) -> None:
    """Remove a survey and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            os.unlink(path + suffix)


_STATEMENT = re.compile(
    r"[ \t]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(?:\[[ xX]\][ \t]+)?(?:\[[^\]|]{0,80}\|i=[^\]]{0,20}\][ \t]*)?"
)
LEAST_WORDS = 4  # of a statement that can be recognised
_LONGEST = 600


def log_statements(text: str) -> Iterator[tuple[int, str]]:
    """What a log says, line by line, without its headings, marks and tags."""
    for number, line in iter_prose(text):
        if line.startswith(("#", "|", ">")) or not line.strip():
            continue
        lead = _STATEMENT.match(line)
        bare = line[lead.end() if lead else 0 :].strip()[:_LONGEST]
        if len(statement_words(bare)) >= LEAST_WORDS:
            yield number, bare


def statement_words(text: str) -> set[int]:
    """The words by which a statement is known again: no numbers, and nothing short."""
    return {hash_word(word) for word in words_of(text) if len(word) > 2 and not word[0].isdigit()}


def line_keys(text: str) -> set[int]:
    """What statements of mostly the same words share: their least words, by several ways of counting."""
    words = statement_words(text)
    keys = set()
    for number, factor in enumerate((0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)):
        least = sorted((word * factor) & 0xFFFF_FFFF for word in words)[:2]
        keys.add(number << 60 | least[0] << 28 ^ least[1])
    return keys


def hash_word(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


def telling_words(card: Card) -> set[str]:
    """The words of a card that say what it is about."""
    return {word for word in (*words_of(card.topic), *words_of(card.body)) if len(word) > 2 or word.isdigit()}


def _last_day(card: Card | None) -> str:
    if card is None:
        return ""
    return max(_iso(card.front.text(key)) for key in _DAYS)


def _iso(text: str) -> str:
    day = parse_day(text)
    return day.isoformat() if day is not None else ""


def card_problems(card: Card) -> Iterable[tuple[int, str, str]]:
    """What is wrong with a card's frontmatter: the line, a code, and the reason."""
    front = card.front
    if card.problem:
        where, _, what = card.problem.removeprefix("line ").partition(": ")
        yield (int(where) if where.isdigit() else 1), "broken-frontmatter", what or card.problem
        return
    if not front.fields:
        yield 1, "no-frontmatter", "it has no frontmatter: nobody can tell its topic or its age"
        return
    if not front.text("topic"):
        yield 1, "no-topic", "it has no topic"
    found: dict[str, date] = {}
    for line, field in _numbered(front.fields):
        if field.key not in _DAYS:
            continue
        day = parse_day(front.text(field.key))
        if day is None:
            yield line, "bad-date", f"{field.key} is no day of the calendar; write YYYY-MM-DD"
        else:
            found[field.key] = day
    if not found:
        if not any(front.text(key) for key in _DAYS):
            yield 1, "no-date", "it has no date: nobody can tell its age"
    elif "created" in found and "updated" in found and found["updated"] < found["created"]:
        yield 1, "dates-lie", f"it was updated on {found['updated']}, before it was created on {found['created']}"


def _numbered(fields: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    line = 2
    for field in fields:
        yield line, field
        line += field.raw.count("\n")
