"""The catalogue of cards: which names and topics are taken, and which cards say nearly the same.

Derived from the cards and safe to delete. When it is first asked in a run it is compared with the folder, by size and
time, and only what changed is read. Near-duplicates are found through banded min-hashes of the words: looking one card
up never means looking at all of them.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import apsw

from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath
from truekeep.core.formats import CATALOG, read_format
from truekeep.core.model import CARDS
from truekeep.core.sqlite import remove_database
from truekeep.memory.card import Card, parse_card, short_name, words_of
from truekeep.memory.staging import MemoryFiles
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold

VERSION = CATALOG.number
NEAR = 0.75  # shared word pairs from which two cards say nearly the same
_BINS = 24  # taken two by two
_AT_ONCE = 512  # cards whose bands are noted together
_PLAIN_WORD = rb"\w+"
_MIX = 0x9E37_79B9_7F4A_7C15  # spreads bits; any large odd number does
_MIX_LOW = _MIX & 0xFFFF_FFFF  # all of it that matters where 32 bits are kept

_SCHEMA = """
CREATE TABLE card (
  name TEXT PRIMARY KEY, folded TEXT NOT NULL, topic TEXT NOT NULL, repository TEXT NOT NULL,
  mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
  bands BLOB NOT NULL               -- its rows in band, so that they can be removed
) WITHOUT ROWID;
CREATE INDEX card_folded ON card(folded);
CREATE INDEX card_topic ON card(topic);
CREATE TABLE band (key INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Sketch:
    """What a card says, small enough to look up: its word pairs, the numbers in it, and the bands of their hashes."""

    topic: str
    repository: str  # within which the topic is unique
    pairs: frozenset[int]
    bands: tuple[int, ...]


def sketch(card: Card) -> Sketch:
    """A card's sketch. Cards that name different numbers are never near-duplicates: they are a family."""
    words, numbers = _words(card.body)
    pairs = frozenset([(a * _MIX_LOW + b) & 0xFFFF_FFFF for a, b in pairwise(map(zlib.crc32, words))])
    family = zlib.crc32(b" ".join(numbers))
    bands = _bands(pairs, family) if len(pairs) >= 8 else ()
    return Sketch(topic_key(withhold(card.topic)), card.repository, pairs, bands)


def _words(text: str) -> tuple[list[bytes], list[bytes]]:
    """The words of a text in UTF-8, and in order those of them that are more than letters."""
    if text.isascii():  # bytes from the start: the same words, at half the cost
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
    """How much of what two cards say is the same, from 0 to 1."""
    if not one.pairs or not other.pairs:
        return 0.0
    return len(one.pairs & other.pairs) / len(one.pairs | other.pairs)


def is_text(name: str) -> bool:
    """Whether a file's name can be written down at all; one that is not UTF-8 cannot clash with a card's."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def topic_key(topic: str) -> str:
    return " ".join(words_of(topic))


class Catalog:
    """The catalogue of one workspace, opened on first use."""

    def __init__(self, path: str, vault: MemoryFiles) -> None:
        self._path = path
        self._vault = vault
        self._db: apsw.Connection | None = None
        self._is_looking = False
        self._staged: dict[str, tuple[str, Sketch]] = {}
        self._staged_folded: dict[str, str] = {}
        self._staged_topics: dict[str, dict[str, str]] = {}  # by topic and repository
        self._staged_bands: dict[int, str] = {}

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def find_clash(self, name: str) -> str | None:
        """Another card whose name differs only in letter case."""
        folded = name.casefold()
        staged = self._staged_folded.get(folded)
        if staged is not None and staged != name:
            return staged
        query = "SELECT name FROM card WHERE folded = ? AND name != ?"
        return next((str(other) for (other,) in self._ask(query, (folded, name))), None)

    def find_same_topic(self, topic: str, repository: str, name: str) -> str | None:
        """Another card of the same repository with the same topic; those of none are together."""
        staged = self._staged_topics.get(topic, {}).get(repository)
        if staged is not None and staged != name:
            return staged
        query = "SELECT name FROM card WHERE topic = ? AND repository = ? AND name != ? LIMIT 1"
        return next((str(other) for (other,) in self._ask(query, (topic, repository, name))), None)

    def find_namesakes(self, topic: str, repository: str, name: str, *, most: int = 2) -> list[str]:
        """Cards with this topic of other repositories; a few, first those whose repository has the same short name."""
        staged = self._staged_topics.get(topic, {})
        found = [(other, scope) for scope, other in staged.items() if scope != repository and other != name]
        short = short_name(repository)
        query = (
            "SELECT name, repository FROM card WHERE topic = ? AND topic != '' AND repository != ? AND name != ?"
            " ORDER BY substr('/' || repository, -length(?4)) = ?4 DESC LIMIT ?"
        )
        found += [
            (str(other), str(scope)) for other, scope in self._ask(query, (topic, repository, name, f"/{short}", most))
        ]
        found.sort(key=lambda item: short_name(item[1]) != short)
        return list(dict.fromkeys(other for other, _ in found))[:most]

    def find_near(self, candidate: Sketch, name: str) -> str | None:
        """Another card that says nearly the same."""
        if not candidate.bands:
            return None
        for key in candidate.bands:
            staged = self._staged_bands.get(key)
            if staged is not None and staged != name and likeness(candidate, self._staged[staged][1]) >= NEAR:
                return staged
        marks = ",".join("?" * len(candidate.bands))
        query = f"SELECT DISTINCT name FROM band WHERE key IN ({marks}) AND name != ? LIMIT 20"  # noqa: S608
        for (other,) in self._ask(query, (*candidate.bands, name)):
            found = self._read(str(other))
            if found is not None and likeness(candidate, found) >= NEAR:
                return str(other)
        return None

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Answer many questions from one state: what each alone would spend on locks is spent once.

        Whoever wants to write the catalogue meanwhile waits, so nobody looks for longer than a batch takes.
        """
        self._is_looking = True
        try:
            yield
        finally:
            self._is_looking = False
            if self._db is not None and self._db.in_transaction:
                self._db.execute("COMMIT")

    def _ask(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """The rows of a query. A file whose damage shows only now is made again, as at opening."""
        try:
            return self._opened().execute(query, values).fetchall()
        except (apsw.NotADBError, apsw.CorruptError):
            self._discard()
            return self._opened().execute(query, values).fetchall()

    def _opened(self) -> apsw.Connection:
        db = self._open()
        if self._is_looking and not db.in_transaction:
            db.execute("BEGIN")
        return db

    def _discard(self) -> None:
        """Derived: a damaged or foreign file is simply made again."""
        self.close()
        with suppress(OSError):
            remove_database(self._path)

    def stage(self, name: str, card_sketch: Sketch) -> None:
        """Note a card that is about to be written, so that the next handoff of the same batch sees it."""
        self._staged[name] = (name, card_sketch)
        self._staged_folded[name.casefold()] = name
        self._staged_topics.setdefault(card_sketch.topic, {})[card_sketch.repository] = name
        for key in card_sketch.bands:
            self._staged_bands[key] = name

    def unstage(self) -> None:
        """Forget what was staged: the batch did not come about."""
        self._staged.clear()
        self._staged_folded.clear()
        self._staged_topics.clear()
        self._staged_bands.clear()

    def forget(self) -> None:
        """Forget what was staged and look at the folder anew: some of it may have been written."""
        self.unstage()
        self.close()

    def commit(self, stamps: dict[str, FileStamp]) -> None:
        """Take over what was staged, now that it is written."""
        if not self._staged:
            return
        db = self._open()
        rows = [
            (name, card_sketch, stamp)
            for name, card_sketch in self._staged.values()
            if (stamp := stamps.get(f"{CARDS}/{name}")) is not None
        ]
        try:
            with db:
                self._store((name, card_sketch, stamp.mtime_ns, stamp.size) for name, card_sketch, stamp in rows)
        except apsw.Error:
            self.close()  # derived: the next look compares it with the folder
        self.unstage()

    def _store(self, rows: Iterable[tuple[str, Sketch, int, int]]) -> None:
        """Note cards, each of which comes once."""
        assert self._db is not None
        db = self._db
        waiting = iter(rows)
        while some := list(islice(waiting, _AT_ONCE)):
            keys: list[tuple[int, str]] = []
            for name, card_sketch, mtime_ns, size in some:
                self._drop(name)
                bands = array("q", card_sketch.bands)
                db.execute(
                    "INSERT INTO card VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (name, name.casefold(), card_sketch.topic, card_sketch.repository, mtime_ns, size, bands.tobytes()),
                )
                keys += [(key, name) for key in bands]
            # In their order each page of a large catalogue is touched once, and not once for each key.
            db.executemany("INSERT OR IGNORE INTO band VALUES (?, ?)", sorted(keys))

    def _drop(self, name: str) -> None:
        assert self._db is not None
        db = self._db
        rows: list[Any] = db.execute("SELECT bands FROM card WHERE name = ?", (name,)).fetchall()
        for (packed,) in rows:
            bands = array("q", packed)
            db.executemany("DELETE FROM band WHERE key = ? AND name = ?", [(key, name) for key in bands])
            db.execute("DELETE FROM card WHERE name = ?", (name,))

    def _read(self, name: str) -> Sketch | None:
        staged = self._staged.get(name)
        if staged is not None:
            return staged[1]
        try:
            stored = self._vault.read(f"{CARDS}/{name}")
        except (UnsafePath, ChangedSince, OSError):
            return None
        text = decode_text(stored.data) if stored else None
        return sketch(parse_card(name, text)) if text is not None else None

    def _open(self) -> apsw.Connection:
        if self._db is not None:
            return self._db
        try:
            self._db = self._connect(self._path)
            self._refresh()
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, apsw.SchemaChangeError):
            self._discard()
            self._db = self._rebuilt()
        except apsw.Error:
            self.close()
            self._db = self._rebuilt()
        return self._db

    def _rebuilt(self) -> apsw.Connection:
        """A new catalogue: in its file, or, on a disk that cannot be written, in memory for this run."""
        for path in (self._path, ":memory:"):
            try:
                self._db = self._connect(path)
                self._refresh()
            except apsw.Error:
                self.close()
                if path == ":memory:":
                    raise
            else:
                break
        assert self._db is not None
        return self._db

    def _connect(self, path: str) -> apsw.Connection:
        db = apsw.Connection(path if read_format(path) <= VERSION else ":memory:")  # a newer truekeep's is left alone
        db.set_busy_timeout(5000)
        db.execute("PRAGMA synchronous = OFF")  # derived: after a power loss it is compared with the folder anyway
        version = db.execute("PRAGMA user_version").get
        if version != VERSION:
            if version != 0:
                db.close()
                raise apsw.SQLError("another version's catalogue")
            with db:
                db.execute(_SCHEMA)
                db.execute(f"PRAGMA user_version = {VERSION}")
        return db

    def _refresh(self) -> None:
        """Compare the folder with what was noted, and read what changed."""
        assert self._db is not None
        db = self._db
        noted = {name: (mtime_ns, size) for name, mtime_ns, size in db.execute("SELECT name, mtime_ns, size FROM card")}
        changed: list[tuple[str, int, int]] = []
        try:
            for entry in self._vault.names(CARDS):
                if entry.name.endswith(".md") and not entry.name.startswith(".") and is_text(entry.name):
                    info = entry.stat(follow_symlinks=False)
                    if noted.pop(entry.name, None) != (info.st_mtime_ns, info.st_size):
                        changed.append((entry.name, info.st_mtime_ns, info.st_size))
        except UnsafePath:
            return  # no card can be read or written there, and each handoff will say so
        if not noted and not changed:
            return
        with db:
            for name in noted:
                self._drop(name)
            empty = Sketch("", "", frozenset(), ())
            self._store((name, self._read(name) or empty, mtime_ns, size) for name, mtime_ns, size in changed)
