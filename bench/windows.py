"""A search in a page of code, to compare with: windows of 400 characters, ranks by words and by static vectors fused,
and each window that is returned grown to 600. It knows nothing of headings, entries, days or names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from bench.score import Hit
from truekeep.search.embedders import load_numpy
from truekeep.search.embedders.static import Static

SIZE = 400
GROWN = 600
SCHEMA = """
CREATE TABLE windows (id INTEGER PRIMARY KEY, path TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL);
CREATE TABLE vectors (id INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize="porter unicode61 remove_diacritics 2");
"""


class Window(NamedTuple):
    """A part of a text, by its first character and the one after its last."""

    start: int
    end: int


def iter_windows(text: str) -> Iterator[Window]:
    """Whole lines as long as they fit into 400 characters; a longer line is cut between words."""
    start = at = 0
    for line in text.splitlines(keepends=True):
        if at > start and at + len(line) - start > SIZE:
            yield Window(start, at)
            start = at
        at += len(line)
        while at - start > SIZE:
            space = text.rfind(" ", start + 1, start + SIZE)
            end = space if space > 0 else start + SIZE
            yield Window(start, end)
            start = end
    if start < at:
        yield Window(start, at)


def grow(text: str, window: Window) -> Window:
    """As much on either side as makes 600 characters, cut between words."""
    more = max(0, GROWN - (window.end - window.start)) // 2
    start = max(0, window.start - more)
    end = min(len(text), window.end + more)
    if start:
        start = next((at + 1 for at in range(start, window.start) if text[at].isspace()), window.start)
    if end < len(text):
        end = next((at for at in range(end, window.end, -1) if text[at].isspace()), window.end)
    return Window(start, end)


def build(path: Path, files: Mapping[str, str], embedder: Static) -> None:
    db = apsw.Connection(str(path))
    with db:
        db.execute(SCHEMA)
        texts: list[str] = []
        for name, text in files.items():
            for window in iter_windows(text):
                piece = text[window.start : window.end]
                if piece.strip():
                    texts.append(piece)
                    db.execute("INSERT INTO windows VALUES (?, ?, ?, ?)", (len(texts), name, *window))
                    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (len(texts), piece))
        np = load_numpy()
        for start in range(0, len(texts), 4096):
            rows = embedder.embed_table(texts[start : start + 4096]).astype(np.float16)
            db.execute("INSERT INTO vectors VALUES (?, ?)", (start, rows.tobytes()))
    db.close()


class WindowIndex:
    """The windows of one corpus, in an open database."""

    def __init__(self, path: Path, files: Mapping[str, str]) -> None:
        self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._files = files
        self._table: Any = None

    def close(self) -> None:
        self._db.close()

    def by_words(self, match: str, count: int) -> list[int]:
        if not match:
            return []
        rows: Any = self._db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, count)
        )
        return [row[0] for row in rows]

    def by_meaning(self, vector: Sequence[float], count: int) -> list[int]:
        np = load_numpy()

        if self._table is None:
            rows: Any = self._db.execute("SELECT rows FROM vectors ORDER BY id")
            whole = b"".join(row[0] for row in rows)
            self._table = np.frombuffer(whole, dtype=np.float16).astype(np.float32).reshape(-1, len(vector))
        scores = self._table @ np.array(vector, dtype=np.float32)
        few = min(count, len(scores))
        places = np.argpartition(-scores, few - 1)[:few]
        return [int(at) + 1 for at in places[np.argsort(-scores[places], kind="stable")]]

    def read(self, ids: Sequence[int]) -> list[Hit]:
        hits = []
        for one in ids:
            row: Any = self._db.execute("SELECT path, start, end FROM windows WHERE id = ?", (one,)).fetchone()
            text = self._files[row[0]]
            start, end = grow(text, Window(row[1], row[2]))
            shown = text[start:end].lstrip("\n")
            first = 1 + text.count("\n", 0, end - len(shown))
            shown = shown.rstrip("\n")
            hits.append(Hit(row[0], first, first + shown.count("\n"), shown))
        return hits
