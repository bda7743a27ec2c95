"""What one file says, written into the survey's tables and taken out of them again."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from truekeep.maintenance.survey.reader import DAYS, Facts, card_words, iso_day, line_keys
from truekeep.memory.similarity import topic_key

if TYPE_CHECKING:
    import apsw

    from truekeep.memory.card import Card

_OF_A_FILE = ("vals", "links", "entries", "lines", "problems")


class Stat(NamedTuple):
    """A file as it was when it was read."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    is_settled: bool


def write_facts(db: apsw.Connection, path: str, store: str, stat: Stat, facts: Facts, counts: Counter[int]) -> None:
    """Note what a file says. `counts` gains the words of a card; add_counts writes them down."""
    db.execute(
        "INSERT INTO files (path, store, size, mtime_ns, ctime_ns, inode, is_settled, day, repository)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (path, store, *stat, facts.day, facts.repository),
    )
    file = db.last_insert_rowid()
    if facts.card is not None:
        _write_card(db, file, facts.card, counts)
    db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?)", ((file, *problem) for problem in facts.problems))
    db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", ((file, *entry) for entry in facts.entries))
    said = ((key, file, line, text) for line, text in facts.statements for key in line_keys(text))
    db.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?, ?)", said)
    db.executemany("INSERT INTO links VALUES (?, ?, ?)", ((file, *link) for link in facts.links))
    db.executemany("INSERT INTO vals VALUES (?, ?, ?, ?, ?, ?, ?)", ((file, *value) for value in facts.values))


def _write_card(db: apsw.Connection, file: int, card: Card, counts: Counter[int]) -> None:
    words = array("I", sorted(card_words(card)))
    days = (iso_day(card.front.text(key)) for key in DAYS)
    tags = "".join(f"\n{tag.casefold()}" for tag in card.tags) + "\n"
    row = (file, card.topic, topic_key(card.topic), *days, words.tobytes(), card.category, card.description, tags)
    db.execute("INSERT INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.executemany("INSERT INTO words VALUES (?, ?)", ((word, file) for word in words))
    db.execute("INSERT INTO fresh VALUES (?)", (file,))
    counts.update(words)


def forget_file(db: apsw.Connection, file: int, counts: Counter[int]) -> None:
    """Take out all that was noted of a file. `counts` loses the words of a card; add_counts writes them down."""
    row = db.execute("SELECT words FROM cards WHERE id = ?", (file,)).fetchone()
    if row is not None:
        words = array("I", row[0])
        db.executemany("DELETE FROM words WHERE word = ? AND card = ?", ((word, file) for word in words))
        counts.subtract(words)
        db.execute("DELETE FROM cards WHERE id = ?", (file,))
        db.execute("DELETE FROM fresh WHERE card = ?", (file,))
        db.execute("DELETE FROM pairs WHERE one = ?1 OR other = ?1", (file,))
    for table in _OF_A_FILE:
        db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608
    db.execute("DELETE FROM files WHERE id = ?", (file,))


def add_counts(db: apsw.Connection, counts: Counter[int]) -> None:
    """So many cards more, or fewer, have each word."""
    db.executemany(
        "INSERT INTO counts VALUES (?1, ?2) ON CONFLICT DO UPDATE SET cards = cards + ?2",
        ((word, count) for word, count in counts.items() if count),
    )
