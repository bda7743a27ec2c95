"""The vectors of all chunks, in 8 bits, and the scan that compares a question with every one of them.

A scan beats every index that would have to be kept up to date: 10,000 vectors take a fifth of a millisecond, a million
some ten. The best are compared again at half precision, so that packing costs nothing that shows. Of very many vectors
only the first half of the numbers is kept in memory, and more of the best are compared again.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from truekeep.search.embedders import load_numpy, multiply
from truekeep.search.index_schema import SECTIONS, VECTORS_PER_BLOCK

if TYPE_CHECKING:
    import apsw

_OFTEN = 3  # a process that asks more often than this is one that stays
_MANY = 40_000  # from here on numpy picks the best faster than Python, even if it has to be loaded first
_LARGE = 100_000_000  # bytes of vectors from which half of each is kept in memory
_RESCORED = 4_000  # of halved vectors, the best that are compared again: nearly all of the nearest are among them
_COLUMNS = 1024  # in which scores are laid out to find out quickly which are among the best


def scale_for(dimensions: int) -> float:
    """The factor for the numbers of a unit vector before rounding: five standard deviations fit in 8 bits."""
    return 25.375 * float(dimensions**0.5)


def block_of(chunk_id: int) -> int:
    return (chunk_id - 1) // VECTORS_PER_BLOCK


def pack_rows(rows: Any) -> Any:
    """A numpy table of unit vectors as 8-bit numbers."""
    np = load_numpy()

    return np.clip(np.rint(rows * scale_for(rows.shape[1])), -127, 127).astype(np.int8)


def store_vectors(db: apsw.Connection, ids: Sequence[int], rows: Any, generation: int) -> None:
    """Write the vectors of chunks, as a numpy table of as many rows: half precision each, 8 bits in their blocks."""
    np = load_numpy()

    halves = np.ascontiguousarray(rows, dtype="<f2")
    db.executemany(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
        ((chunk_id, half.tobytes()) for chunk_id, half in zip(ids, halves, strict=True)),
    )
    packed = pack_rows(rows)
    size = packed.shape[1]
    blocks: dict[int, list[int]] = {}
    for at, chunk_id in enumerate(ids):
        blocks.setdefault(block_of(chunk_id), []).append(at)
    for number, places in blocks.items():
        block = _read_block(db, number, size)
        for at in places:
            start = ((ids[at] - 1) % VECTORS_PER_BLOCK) * size
            block[start : start + size] = packed[at].tobytes()
        db.execute("INSERT OR REPLACE INTO vector_blocks VALUES (?, ?, ?)", (number, generation, bytes(block)))


def clear_vectors(db: apsw.Connection, ids: Iterable[int], generation: int) -> None:
    """Chunks that are gone: a vector of zeros is like nothing."""
    blocks: dict[int, list[int]] = {}
    for chunk_id in ids:
        blocks.setdefault(block_of(chunk_id), []).append(chunk_id)
    for number, members in blocks.items():
        db.executemany("DELETE FROM vectors WHERE chunk_id = ?", ((chunk_id,) for chunk_id in members))
        row = db.execute("SELECT embeddings FROM vector_blocks WHERE id = ?", (number,)).fetchone()
        if row is None:
            continue
        block = bytearray(row[0])
        size = len(block) // VECTORS_PER_BLOCK
        for chunk_id in members:
            start = ((chunk_id - 1) % VECTORS_PER_BLOCK) * size
            block[start : start + size] = bytes(size)
        db.execute("INSERT OR REPLACE INTO vector_blocks VALUES (?, ?, ?)", (number, generation, bytes(block)))


def _read_block(db: apsw.Connection, number: int, size: int) -> bytearray:
    row = db.execute("SELECT embeddings FROM vector_blocks WHERE id = ?", (number,)).fetchone()
    block = bytearray(row[0]) if row else bytearray()
    return block if len(block) == VECTORS_PER_BLOCK * size else bytearray(VECTORS_PER_BLOCK * size)


class VectorBlock:
    """All 8-bit vectors of a section (memory, transcripts, archive) in one array, updated with the index."""

    def __init__(self, section: str = "memory") -> None:
        self._base, last = SECTIONS[section]
        self._first, self._last = block_of(self._base + 1), block_of(last + 1)
        self._seen = -1
        self._data = bytearray()
        self._size = 0  # numbers of a vector
        self._kept = 0  # of them in memory
        self._asked = 0

    def load(self, db: apsw.Connection, size: int) -> None:
        """Read the blocks that changed since the last time: all of them at first, none usually."""
        if size != self._size:
            self._seen, self._size, self._kept = -1, size, self._choose_kept(db, size)
            self._data = bytearray()
        width = VECTORS_PER_BLOCK * self._kept
        for number, generation, embeddings in self._read(db, size):
            if self._kept < size:
                embeddings = _cut_rows(embeddings, size, self._kept)
            start = (number - self._first) * width
            if start + width > len(self._data):
                self._data.extend(bytes(start + width - len(self._data)))
            self._data[start : start + width] = embeddings
            self._seen = max(self._seen, generation)

    def _choose_kept(self, db: apsw.Connection, size: int) -> int:
        """How many numbers of each vector are kept in memory."""
        query = "SELECT count(*) FROM vector_blocks WHERE id >= ? AND id < ?"
        blocks = int(db.execute(query, (self._first, self._last)).get)
        return size if blocks * VECTORS_PER_BLOCK * size < _LARGE else size // 2

    def _read(self, db: apsw.Connection, size: int) -> Iterator[tuple[int, int, bytes]]:
        """The blocks that were not seen yet, with their numbers and generations."""
        rows: Any = db.execute(
            "SELECT id, generation, embeddings FROM vector_blocks"
            " WHERE generation > ? AND id >= ? AND id < ? ORDER BY id",
            (self._seen, self._first, self._last),
        )
        for row in rows:
            if (
                len(row[2]) == VECTORS_PER_BLOCK * size
            ):  # else of another embedder; the index that holds it is being rebuilt
                yield row

    def __len__(self) -> int:
        return len(self._data) // self._kept if self._kept else 0

    def answer(
        self, db: apsw.Connection, vector: Sequence[float], count: int, among: Sequence[int] | None = None
    ) -> list[int]:
        """As `nearest`, of the index as it is now. A first question is often the only one: nothing is kept for it."""
        if self._asked or self._size:
            self.load(db, len(vector))
            if self._kept == self._size:
                return self.nearest(vector, count, among)
            near = cosines(db, vector, self.nearest(vector, max(_RESCORED, 4 * count), among))
            return [one for one in sorted(near, key=lambda one: -near[one])[:count] if near[one] > 0]
        self._asked = 1
        asked = _pack(vector, len(vector))
        scores = bytearray()
        for number, _, embeddings in self._read(db, len(vector)):
            block = memoryview(embeddings).cast("b", (VECTORS_PER_BLOCK, len(vector)))
            scores += bytes((number - self._first) * VECTORS_PER_BLOCK * 4 - len(scores))
            scores += multiply(asked, block, kind="int8", out="int32")
        return self._pick(memoryview(scores).cast("i"), count, among)

    def nearest(self, vector: Sequence[float], count: int, among: Sequence[int] | None = None) -> list[int]:
        """The ids of the chunks most like a vector, by the numbers in memory, best first; only those given, if any."""
        total = len(self)
        if not total:
            return []
        self._asked += among is None
        table = memoryview(self._data).cast("b", (total, self._kept))
        scores = multiply(_pack(vector, self._kept), table, kind="int8", out="int32").cast("i")
        table.release()
        return self._pick(scores, count, among)

    def _pick(self, scores: memoryview, count: int, among: Sequence[int] | None) -> list[int]:
        base, total = self._base + 1, len(scores)
        if among is not None:
            within = [at for chunk_id in among if 0 <= (at := chunk_id - base) < total]
            return [at + base for at in nlargest(count, within, key=scores.__getitem__) if scores[at] > 0]
        if total >= _MANY or (self._asked > _OFTEN and total > 1000):
            np = load_numpy()

            return [at + base for at in pick_best(np, np.frombuffer(scores, dtype=np.int32), count)]
        if not total:
            return []
        listed = scores.tolist()
        least = nlargest(min(count, total), listed)[-1]
        chosen = [at for at, score in enumerate(listed) if score >= least and score > 0]
        chosen.sort(key=lambda at: -listed[at])
        return [at + base for at in chosen[:count]]


def _pack(vector: Sequence[float], kept: int) -> memoryview:
    """The first numbers of a unit vector in 8 bits, as a table of one row."""
    scale = scale_for(len(vector))
    packed = bytes([max(-127, min(127, round(value * scale))) & 0xFF for value in vector[:kept]])
    return memoryview(packed).cast("b", (1, kept))


def _cut_rows(embeddings: bytes, size: int, kept: int) -> bytes:
    """A block of vectors with only the first numbers of each."""
    np = load_numpy()

    rows: bytes = np.frombuffer(embeddings, dtype=np.int8).reshape(-1, size)[:, :kept].tobytes()
    return rows


def pick_best(np: Any, scores: Any, count: int) -> list[int]:
    """The places of the best scores above zero, best first, the earlier first where they are the same.

    Laid out in columns, each column's best is one score: as many of them as are wanted reach the floor that is looked
    for, and few others do. So a hundred thousand are sifted, and some hundred sorted.
    """
    columns = _COLUMNS * (1 + count // (_COLUMNS // 4))
    rows = len(scores) // columns
    tops = scores[: rows * columns].reshape(rows, columns).max(axis=0) if rows > 1 else scores
    few = min(count, len(tops))
    best = np.flatnonzero(scores >= max(1, np.partition(tops, -few)[-few]))
    best = best[np.argsort(-scores[best], kind="stable")]
    found: list[int] = best[:count].tolist()
    return found


def cosines(db: apsw.Connection, vector: Sequence[float], ids: Sequence[int]) -> dict[int, float]:
    """How like a vector each chunk is, from the half-precision vectors."""
    if not ids:
        return {}
    size = len(vector)
    found: list[int] = []
    packed = bytearray()
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        marks = ",".join("?" * len(part))
        rows = db.execute(f"SELECT chunk_id, embedding FROM vectors WHERE chunk_id IN ({marks})", tuple(part))  # noqa: S608
        for chunk_id, embedding in rows:
            if len(embedding) == 2 * size:
                found.append(chunk_id)
                packed += embedding
    if not found:
        return {}
    query = memoryview(struct.pack(f"<{size}e", *vector)).cast("H", (1, size))
    table = memoryview(packed).cast("H", (len(found), size))
    scores = multiply(query, table, kind="float16", out="float32").cast("f")
    return dict(zip(found, array("f", scores.tolist()), strict=True))
