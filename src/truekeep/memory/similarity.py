"""The catalogue of cards, .truekeep/catalog.sqlite: which names and topics are taken, and which cards are alike.

Derived from the cards and safe to delete. The first question of a run compares it with the folder of cards and reads
only what changed. Near-duplicates are found by banded min-hashes of the words, cards on the same topic by the rarest
words that they share, so looking up one card never means looking at all of them.
"""

from __future__ import annotations

import os
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import apsw

from truekeep.core.derived_db import DerivedDatabase, Schema
from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath, stamp_of
from truekeep.core.formats import CATALOG
from truekeep.core.model import CARDS
from truekeep.core.sqlite import DAMAGE, transaction
from truekeep.memory.card import Card, parse_card, short_name, words_of
from truekeep.memory.covering import MIN_SHARED_WORDS, NO_WORDS, TopicWords, weight_of
from truekeep.memory.file_scan import (
    FILE_COLUMNS,
    MemoryFile,
    ScannedFolder,
    find_changes,
    is_settled,
    is_utf8,
    stat_of,
)
from truekeep.memory.staging import MemoryFiles
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.words import STOP, stem_key

NEAR_DUPLICATE = 0.75  # the share of common word pairs from which two cards say nearly the same
_BINS = 24  # taken two by two
_CARDS_PER_INSERT = 512
_MAX_TOPIC_WORDS = 120  # of one card
_MAX_COUNTED = 256  # cards that have a word; more tell nothing
_WORDS_LOOKED_UP = 24  # of a text, the rarest ones
_CANDIDATES = 8
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*_\w|[a-z]+\d|[a-z]+[A-Z]\w")  # the beginning of a word that is a name in code
_PLAIN_WORD = rb"\w+"
_MIX = 0x9E37_79B9_7F4A_7C15  # spreads bits; any large odd number does
_MIX_LOW = _MIX & 0xFFFF_FFFF  # all of it that matters where 32 bits are kept

SCHEMA = Schema(
    CATALOG,
    f"""
CREATE TABLE files ({FILE_COLUMNS});
CREATE TABLE card (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL, topic TEXT NOT NULL, repository TEXT NOT NULL,
  bands BLOB NOT NULL,              -- its rows in band, so that they can be removed
  words BLOB NOT NULL               -- its rows in word
);
CREATE INDEX card_folded ON card(folded);
CREATE INDEX card_topic ON card(topic);
CREATE TABLE band (key INTEGER NOT NULL, card INTEGER NOT NULL, PRIMARY KEY (key, card)) WITHOUT ROWID;
CREATE TABLE word (key INTEGER NOT NULL, card INTEGER NOT NULL, PRIMARY KEY (key, card)) WITHOUT ROWID;
""",
    required=("files", "card", "band", "word"),
)


@dataclass(frozen=True, slots=True)
class Sketch:
    """A card reduced to what a comparison needs: its word pairs, and the bands of their hashes."""

    topic: str
    repository: str  # within which the topic is unique
    pairs: frozenset[int]
    bands: tuple[int, ...]
    words: TopicWords = NO_WORDS


def sketch(card: Card) -> Sketch:
    """The sketch of a card. Cards that name different numbers are a family, never near-duplicates."""
    words, numbers = _words(card.body)
    pairs = frozenset([(a * _MIX_LOW + b) & 0xFFFF_FFFF for a, b in pairwise(map(zlib.crc32, words))])
    family = zlib.crc32(b" ".join(numbers))
    bands = _bands(pairs, family) if len(pairs) >= 8 else ()
    topic = withhold(card.topic)
    return Sketch(topic_key(topic), card.repository, pairs, bands, topic_words(topic, card.body))


def topic_words(topic: str, body: str) -> TopicWords:
    """The words by which texts on one topic are found."""
    own = _hashes(words_of(topic))
    every = dict.fromkeys((*own, *_hashes(words_of(body))))
    words = _WORD.findall(f"{topic}\n{body}")  # first the words: a search for names inside of a long one is quadratic
    names = _hashes(word.lower() for word in words if _IDENTIFIER.match(word))
    kept = frozenset(islice(every, _MAX_TOPIC_WORDS))
    return TopicWords(frozenset(own), kept, frozenset(names) & kept)


def hash_words(text: str) -> list[int]:
    """The words of a text as a catalogue knows them."""
    return _hashes(words_of(text))


def _hashes(words: Iterable[str]) -> list[int]:
    return [zlib.crc32(stem_key(word).encode()) for word in words if len(word) > 1 and word not in STOP]


def _words(text: str) -> tuple[list[bytes], list[bytes]]:
    """The words of a text in UTF-8, and sorted those with more than letters in them."""
    if text.isascii():  # the same words at half the cost
        plain = re.findall(_PLAIN_WORD, text.lower().encode())
        return plain, sorted({word for word in plain if not word.isalpha()})
    words = words_of(text)
    return [word.encode() for word in words], [
        word.encode() for word in sorted({word for word in words if not word.isalpha()})
    ]


def _bands(pairs: frozenset[int], family: int) -> tuple[int, ...]:
    """One-permutation min-hash: the least hash in each bin, in groups, so that similar sets share some group."""
    bins: list[int | None] = [None] * _BINS
    for value in sorted(pairs, reverse=True):
        bins[value % _BINS] = value
    filled = [value for value in bins if value is not None]
    last: int = filled[-1]
    dense: list[int] = []
    for least in bins:
        if least is not None:
            last = least
        dense.append(last)
    return tuple(
        {
            ((dense[start] << 32 | dense[start + 1]) * _MIX + family * (start + 1)) & 0x7FFF_FFFF_FFFF_FFFF
            for start in range(0, _BINS, 2)
        }
    )


def likeness(one: Sketch, other: Sketch) -> float:
    """The share of word pairs that two cards have in common, from 0 to 1."""
    if not one.pairs or not other.pairs:
        return 0.0
    return len(one.pairs & other.pairs) / len(one.pairs | other.pairs)


def topic_key(topic: str) -> str:
    return " ".join(words_of(topic))


class Catalog:
    """The catalogue of one workspace, opened on first use."""

    def __init__(self, path: str, vault: MemoryFiles) -> None:
        self._database = DerivedDatabase(path, SCHEMA)
        self._vault = vault
        self._refreshed: apsw.Connection | None = None  # the connection that was compared with the folder
        self._in_snapshot = False
        self._staged: dict[str, Sketch] = {}
        self._staged_folded: dict[str, str] = {}
        self._staged_topics: dict[str, dict[str, str]] = {}  # by topic and repository
        self._staged_bands: dict[int, str] = {}
        self._staged_words: dict[int, set[str]] = {}
        self._counts: dict[int, int] = {}
        self._total = -1

    def close(self) -> None:
        self._database.close()
        self._refreshed = None
        self._forget_counts()

    # Questions.

    def find_clash(self, name: str) -> str | None:
        """Another card whose name differs only in letter case."""
        folded = name.casefold()
        staged = self._staged_folded.get(folded)
        if staged is not None and staged != name:
            return staged
        query = "SELECT name FROM card WHERE folded = ? AND name != ?"
        return next((str(other) for (other,) in self._query(query, (folded, name))), None)

    def find_same_topic(self, topic: str, repository: str, name: str) -> str | None:
        """Another card with this topic in the same repository. Cards without a repository count as one."""
        staged = self._staged_topics.get(topic, {}).get(repository)
        if staged is not None and staged != name:
            return staged
        query = "SELECT name FROM card WHERE topic = ? AND repository = ? AND name != ? ORDER BY name LIMIT 1"
        return next((str(other) for (other,) in self._query(query, (topic, repository, name))), None)

    def find_namesakes(self, topic: str, repository: str, name: str, *, limit: int = 2) -> list[str]:
        """Cards with this topic in other repositories, first those whose repository has the same short name."""
        staged = self._staged_topics.get(topic, {})
        found = [(other, scope) for scope, other in staged.items() if scope != repository and other != name]
        short = short_name(repository)
        query = (
            "SELECT name, repository FROM card WHERE topic = ? AND topic != '' AND repository != ? AND name != ?"
            " ORDER BY substr('/' || repository, -length(?4)) = ?4 DESC, name LIMIT ?"
        )
        rows = self._query(query, (topic, repository, name, f"/{short}", limit))
        found += [(str(other), str(scope)) for other, scope in rows]
        found.sort(key=lambda item: short_name(item[1]) != short)
        return list(dict.fromkeys(other for other, _ in found))[:limit]

    def find_near(self, candidate: Sketch, name: str) -> str | None:
        """Another card that says nearly the same."""
        if not candidate.bands:
            return None
        for key in candidate.bands:
            staged = self._staged_bands.get(key)
            if staged is not None and staged != name and likeness(candidate, self._staged[staged]) >= NEAR_DUPLICATE:
                return staged
        marks = ",".join("?" * len(candidate.bands))
        query = (
            f"SELECT name FROM card WHERE id IN (SELECT card FROM band WHERE key IN ({marks}))"  # noqa: S608
            " AND name != ? ORDER BY name LIMIT 20"
        )
        for (other,) in self._query(query, (*candidate.bands, name)):
            found = self._read_sketch(str(other))
            if found is not None and likeness(candidate, found) >= NEAR_DUPLICATE:
                return str(other)
        return None

    def find_on_topic(self, words: TopicWords, name: str) -> list[str]:
        """Other cards that share the most of a text's rarest words, the best first."""
        rarest = [word for word in sorted(words.every, key=self.count) if self.count(word) < _MAX_COUNTED]
        chosen = rarest[:_WORDS_LOOKED_UP]
        found: Counter[str] = Counter()
        score: dict[str, float] = {}
        weights = {word: weight_of(self.count(word), self.total) for word in chosen}
        for word, other in self._with_words(chosen):
            found[other] += 1
            score[other] = score.get(other, 0.0) + weights[word]
        likely = (other for other, count in found.items() if count >= MIN_SHARED_WORDS and other != name)
        return sorted(likely, key=lambda other: (-score[other], other))[:_CANDIDATES]

    def find_with_words(self, words: Collection[int], name: str) -> list[str]:
        """Other cards that have all of these words; none if even the rarest is in very many."""
        chosen = set(words)
        if not chosen or min(map(self.count, chosen)) >= _MAX_COUNTED:
            return []
        rarest = min(chosen, key=self.count)
        found: Counter[str] = Counter(other for _, other in self._with_words([rarest]))
        for word in chosen - {rarest}:
            found.update(other for other in found if self._has_word(other, word))
        return sorted(other for other, count in found.items() if count == len(chosen) and other != name)

    def count(self, word: int) -> int:
        """How many cards have a word, counted up to a limit."""
        known = self._counts.get(word)
        if known is None:
            query = "SELECT count(*) FROM (SELECT 1 FROM word WHERE key = ? LIMIT ?)"
            known = self._counts[word] = int(self._query(query, (word, _MAX_COUNTED))[0][0])
        return known + len(self._staged_words.get(word, ()))

    @property
    def total(self) -> int:
        if self._total < 0:
            self._total = int(self._query("SELECT count(*) FROM card", ())[0][0])
        return self._total + len(self._staged)

    def _with_words(self, words: Collection[int]) -> Iterator[tuple[int, str]]:
        """The cards of each word, staged ones included."""
        marks = ",".join("?" * len(words))
        query = f"SELECT key, name FROM word JOIN card ON card.id = word.card WHERE key IN ({marks})"  # noqa: S608
        for word, name in self._query(query, tuple(words)) if words else ():
            if name not in self._staged:
                yield int(word), str(name)
        for word in words:
            yield from ((word, name) for name in self._staged_words.get(word, ()))

    def _has_word(self, name: str, word: int) -> bool:
        if name in self._staged:
            return word in self._staged[name].words.every
        query = "SELECT 1 FROM card JOIN word ON word.card = card.id WHERE folded = ? AND name = ? AND key = ?"
        return bool(self._query(query, (name.casefold(), name, word)))

    def _forget_counts(self) -> None:
        self._counts.clear()
        self._total = -1

    def read_sketch(self, name: str) -> Sketch | None:
        """The sketch of a card, staged or on disk; None if there is none."""
        return self._read_sketch(name)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Answer many questions in one read transaction, which saves a lock for each.

        Other processes cannot write the catalogue meanwhile, so this is for one batch at most.
        """
        self._in_snapshot = True
        try:
            yield
        finally:
            self._in_snapshot = False
            if self._database.is_open and self._database.db.in_transaction:
                self._database.db.execute("COMMIT")

    def _query(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        return self._database.attempt(lambda: self._up_to_date().execute(query, values).fetchall())

    def _up_to_date(self) -> apsw.Connection:
        """The database, compared with the folder when it was opened."""
        db = self._database.db
        if self._refreshed is not db:
            self._refresh(db)
            self._refreshed = db
        if self._in_snapshot and not db.in_transaction:
            db.execute("BEGIN")
        return db

    def _read_sketch(self, name: str) -> Sketch | None:
        if name in self._staged:
            return self._staged[name]
        try:
            stored = self._vault.read(f"{CARDS}/{name}")
        except (UnsafePath, ChangedSince, OSError):
            return None
        text = decode_text(stored.data) if stored else None
        return sketch(parse_card(name, text)) if text is not None else None

    # Cards of a batch that is not written yet.

    def stage(self, name: str, card_sketch: Sketch) -> None:
        """Note a card that is about to be written, so that the next handoff of the same batch sees it."""
        self._staged[name] = card_sketch
        self._staged_folded[name.casefold()] = name
        self._staged_topics.setdefault(card_sketch.topic, {})[card_sketch.repository] = name
        for key in card_sketch.bands:
            self._staged_bands[key] = name
        for word in card_sketch.words.every:
            self._staged_words.setdefault(word, set()).add(name)

    def unstage(self) -> None:
        """Forget the staged cards: the batch was not written."""
        self._staged.clear()
        self._staged_folded.clear()
        self._staged_topics.clear()
        self._staged_bands.clear()
        self._staged_words.clear()

    def forget(self) -> None:
        """Forget the staged cards and compare with the folder again: some of them may have been written."""
        self.unstage()
        self.close()

    def commit(self, stamps: dict[str, FileStamp]) -> None:
        """Store the staged cards, which are written now. `stamps`: of the written files, by path.

        Their stats count as settled: a second edit in the same tick of the clock, of the same size, is not expected.
        """
        if not self._staged:
            return
        rows = [
            (written, card_sketch, True)
            for name, card_sketch in self._staged.items()
            if (stamp := stamps.get(f"{CARDS}/{name}")) is not None
            if (written := self._find_written(name, stamp)) is not None
        ]
        try:
            with transaction(self._up_to_date()):
                self._store(self._database.db, rows)
        except (apsw.Error, *DAMAGE):
            self.close()  # the next question compares with the folder
        self.unstage()
        self._forget_counts()

    def _find_written(self, name: str, stamp: FileStamp) -> MemoryFile | None:
        """A card as it was just written; None if it is another file by now, which the next comparison reads."""
        with suppress(OSError):
            info = os.lstat(f"{self._vault.root}/{CARDS}/{name}")
            if stamp_of(info) == stamp:
                return MemoryFile(f"{CARDS}/{name}", "cards", *stat_of(info), name)
        return None

    # Keeping it up to date.

    def _refresh(self, db: apsw.Connection) -> None:
        """Compare the folder with the table of files, and read what changed."""
        try:
            changes = find_changes(db, self._list_cards().files())
        except UnsafePath:
            return  # no card can be read or written there, and each handoff says so
        if not changes.changed and not changes.gone:
            return
        empty = Sketch("", "", frozenset(), ())
        with transaction(db):
            for card in changes.gone:
                _drop(db, card)
            self._store(
                db,
                (
                    (file, self._read_sketch(_name_of(file)) or empty, is_settled(file.mtime_ns, file.ctime_ns))
                    for file in changes.changed
                ),
            )

    def _list_cards(self) -> ScannedFolder:
        """Every name in the folder of cards; a symlink or a folder takes a name, too."""
        names = (
            entry
            for entry in self._vault.names(CARDS)
            if entry.name.endswith(".md") and not entry.name.startswith(".") and is_utf8(entry.name)
        )
        return ScannedFolder(
            CARDS, CARDS, [(entry.name, stat_of(entry.stat(follow_symlinks=False))) for entry in names]
        )

    def _store(self, db: apsw.Connection, cards: Iterable[tuple[MemoryFile, Sketch, bool]]) -> None:
        """Write cards, each with its sketch and whether its stat is settled."""
        waiting = iter(cards)
        while batch := list(islice(waiting, _CARDS_PER_INSERT)):
            keys: list[tuple[int, int]] = []
            words: list[tuple[int, int]] = []
            for file, card_sketch, is_certain in batch:
                known: Any = db.execute("SELECT id FROM files WHERE path = ?", (file.path,)).get
                if known is not None:
                    _drop(db, known)
                card = _insert(db, file, card_sketch, is_certain)
                keys += [(key, card) for key in card_sketch.bands]
                words += [(word, card) for word in card_sketch.words.every]
            # Sorted, each page of a large catalogue is touched once, and not once for each key.
            db.executemany("INSERT OR IGNORE INTO band VALUES (?, ?)", sorted(keys))
            db.executemany("INSERT OR IGNORE INTO word VALUES (?, ?)", sorted(words))


def _name_of(file: MemoryFile) -> str:
    return file.path.rpartition("/")[2]


def _insert(db: apsw.Connection, file: MemoryFile, card_sketch: Sketch, is_certain: bool) -> int:
    """Write one card without its bands. Gives its id."""
    db.execute(
        "INSERT INTO files (path, store, size, mtime_ns, ctime_ns, inode, is_settled) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (file.path, file.store, *file.stat, is_certain),
    )
    card = db.last_insert_rowid()
    name = _name_of(file)
    bands = array("q", card_sketch.bands).tobytes()
    words = array("I", card_sketch.words.every).tobytes()
    row = (card, name, name.casefold(), card_sketch.topic, card_sketch.repository, bands, words)
    db.execute("INSERT INTO card VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return card


def _drop(db: apsw.Connection, card: int) -> None:
    rows: list[Any] = db.execute("SELECT bands, words FROM card WHERE id = ?", (card,)).fetchall()
    for bands, words in rows:
        db.executemany("DELETE FROM band WHERE key = ? AND card = ?", [(key, card) for key in array("q", bands)])
        db.executemany("DELETE FROM word WHERE key = ? AND card = ?", [(key, card) for key in array("I", words)])
    db.execute("DELETE FROM card WHERE id = ?", (card,))
    db.execute("DELETE FROM files WHERE id = ?", (card,))
