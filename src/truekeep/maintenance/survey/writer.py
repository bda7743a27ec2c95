"""Write the facts of one file into the survey's tables, and remove them again."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

from truekeep.maintenance.survey.reader import DAYS, Facts, card_words, iso_day, line_keys
from truekeep.memory.similarity import topic_key

if TYPE_CHECKING:
    import apsw

    from truekeep.memory.card import Card

_TABLES_BY_FILE = ("stated_values", "links", "entries", "log_statements", "problems")


FileRow = tuple[str, str, int, int, int, int, bool]  # path, store, size, mtime_ns, ctime_ns, inode, is_settled


def write_facts(db: apsw.Connection, row: FileRow, facts: Facts, counts: Counter[int]) -> None:
    """Store what a file says. Adds the words of a card to `counts`, for add_counts."""
    db.execute(
        "INSERT INTO files (path, store, size, mtime_ns, ctime_ns, inode, is_settled, day, repository)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, facts.day, facts.repository),
    )
    file = db.last_insert_rowid()
    if facts.card is not None:
        _write_card(db, file, facts.card, counts)
    db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?)", ((file, *problem) for problem in facts.problems))
    db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", ((file, *entry) for entry in facts.entries))
    said = ((key, file, line, text) for line, text in facts.statements for key in line_keys(text))
    db.executemany("INSERT OR IGNORE INTO log_statements VALUES (?, ?, ?, ?)", said)
    db.executemany("INSERT INTO links VALUES (?, ?, ?)", ((file, *link) for link in facts.links))
    db.executemany("INSERT INTO stated_values VALUES (?, ?, ?, ?, ?, ?, ?)", ((file, *value) for value in facts.values))


def _write_card(db: apsw.Connection, file: int, card: Card, counts: Counter[int]) -> None:
    words = array("I", sorted(card_words(card)))
    days = (iso_day(card.front.text(key)) for key in DAYS)
    tags = "".join(f"\n{tag.casefold()}" for tag in card.tags) + "\n"
    row = (file, card.topic, topic_key(card.topic), *days, words.tobytes(), card.category, card.description, tags)
    db.execute("INSERT INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.executemany("INSERT INTO card_words VALUES (?, ?)", ((word, file) for word in words))
    db.execute("INSERT INTO uncompared_cards VALUES (?)", (file,))
    counts.update(words)


def forget_file(db: apsw.Connection, file: int, counts: Counter[int]) -> None:
    """Remove a file and its facts. Subtracts the words of a card from `counts`, for add_counts."""
    row = db.execute("SELECT words FROM cards WHERE id = ?", (file,)).fetchone()
    if row is not None:
        words = array("I", row[0])
        db.executemany("DELETE FROM card_words WHERE word = ? AND card = ?", ((word, file) for word in words))
        counts.subtract(words)
        db.execute("DELETE FROM cards WHERE id = ?", (file,))
        db.execute("DELETE FROM uncompared_cards WHERE card = ?", (file,))
        db.execute("DELETE FROM similar_cards WHERE one = ?1 OR other = ?1", (file,))
    for table in _TABLES_BY_FILE:
        db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608
    db.execute("DELETE FROM files WHERE id = ?", (file,))


def add_counts(db: apsw.Connection, counts: Counter[int]) -> None:
    """Add to the number of cards that have each word; the counts may be negative."""
    db.executemany(
        "INSERT INTO word_counts VALUES (?1, ?2) ON CONFLICT DO UPDATE SET cards = cards + ?2",
        ((word, count) for word, count in counts.items() if count),
    )
