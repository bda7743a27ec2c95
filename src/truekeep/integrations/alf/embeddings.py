"""Embeddings of records, from OpenClaw's databases.

A vector belongs to a chunk of lines, and a record gets the vectors of every chunk that shares a line with it. A chunk
only counts if its digest shows that the file's lines have not changed since. Databases are never written to; one that
is locked or damaged is reported in `problems` and skipped.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from truekeep.integrations.alf.documents import Embedding
from truekeep.integrations.alf.openclaw_vectors import FITS, VectorDatabase, decode_vector
from truekeep.integrations.alf.timestamps import format_timestamp
from truekeep.search.embedders import EmbedderFailed, load_numpy

MAX_CHUNKS_PER_FILE = 20_000


class EmbeddedChunk(NamedTuple):
    """An unchanged chunk of a file, with its vector."""

    first: int  # lines, counted from 1, both included
    last: int
    embedding: Embedding


class EmbeddingSources:
    """OpenClaw's databases, asked file by file. `problems` gets what could not be read."""

    def __init__(self, databases: Sequence[Path], problems: list[str]) -> None:
        self.problems = problems
        self._databases: list[_ChunkDatabase] = []
        for path in databases:
            try:
                self._databases.append(_ChunkDatabase(path))
            except EmbedderFailed as error:
                problems.append(f"{error.message}; its vectors are left out")
        self._last: tuple[str, str] | None = None
        self._chunks: list[EmbeddedChunk] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for database in self._databases:
            database.close()
        self._databases = []

    def find(self, path: str, text: str, line_start: int, line_end: int) -> list[Embedding]:
        """The embeddings of the chunks that share a line with these lines. `text`: the file as it is now."""
        if self._last != (path, text):  # callers pass the same strings for all records of a file
            self._last, self._chunks = (path, text), self.of_file(path, text)
        return [item.embedding for item in self._chunks if item.first <= line_end and item.last >= line_start]

    def of_file(self, path: str, text: str) -> list[EmbeddedChunk]:
        """Every chunk of a file that has a vector, in order; one for each model and place."""
        found: dict[tuple[int, int, str], EmbeddedChunk] = {}
        for database in list(self._databases):
            try:
                for item in database.of_file(path, text.removeprefix("\ufeff").split("\n")):
                    found.setdefault((item.first, item.last, item.embedding["model"]), item)
            except EmbedderFailed as error:  # it would fail for every file
                self.problems.append(f"{error.message}; the rest of its vectors are left out")
                self._databases.remove(database)
                database.close()
        return [found[key] for key in sorted(found)]


class _ChunkDatabase(VectorDatabase):
    """OpenClaw's database, queried by file and line instead of by text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._table = ""
        self._provider, self._model = "", ""
        self._rowids: dict[str, array[int]] = {}
        try:
            with self.reading():
                self._find_chunks()
        except EmbedderFailed:
            self.close()
            raise

    def _find_chunks(self) -> None:
        """Find the table with the chunks, the model of its vectors, and the rows of each file."""
        if (found := self.find_chunk_table()) is None:
            return
        self._table, owner = found
        if owner is not None:
            self._provider, self._model = owner
        # Not every version has an index on path, so the table is scanned once.
        for path, row in self.db.execute(f"SELECT CAST(path AS BLOB), rowid FROM {self._table}"):  # noqa: S608
            if path is not None:
                self._rowids.setdefault(path.decode("utf-8", "replace"), array("q")).append(row)

    def of_file(self, path: str, lines: list[str]) -> list[EmbeddedChunk]:
        with self.reading():
            chunks = [self._chunk(row, lines) for row in self._rowids.get(path, array("q"))[:MAX_CHUNKS_PER_FILE]]
        return [chunk for chunk in chunks if chunk is not None]

    def _chunk(self, row: int, lines: list[str]) -> EmbeddedChunk | None:
        """The chunk of a row, if its vector is valid and its lines are unchanged."""
        found: Any = self.db.execute(
            f"SELECT start_line, end_line, CAST(hash AS BLOB), CAST(model AS BLOB), updated_at FROM {self._table}"  # noqa: S608
            f" WHERE rowid = ? AND {FITS}",
            (row,),
        ).fetchone()
        if found is None:
            return None
        first, last, digest, raw_model, updated_at = found
        model = self._model_name(raw_model)
        if not model or not _is_unchanged(lines, first, last, digest):
            return None
        stored: Any = self.db.execute(
            f"SELECT typeof(embedding), CAST(embedding AS BLOB) FROM {self._table} WHERE rowid = ?",  # noqa: S608
            (row,),
        ).fetchone()
        vector = decode_vector(*stored) if stored is not None else None
        if vector is None:
            return None
        np = load_numpy()
        shortest: list[float] = np.frombuffer(vector, dtype=np.float32).astype("U16").astype(np.float64).tolist()
        at_ns = updated_at * 1_000_000 if isinstance(updated_at, int) and 0 < updated_at < 10**14 else 0
        embedding: Embedding = {
            "model": model,
            "dimensions": len(shortest),
            "vector": shortest,  # single precision, with the shortest exact decimals
            "computed_at": format_timestamp(at_ns),
            "source": "runtime",
        }
        return EmbeddedChunk(first, last, embedding)

    def _model_name(self, raw: bytes | None) -> str:
        """A model as provider/model; empty without a model. Of a path, only the file name is exported."""
        model = (raw or b"").decode("utf-8", "replace")
        provider = self._provider if model == self._model else ""
        if not model or provider == "none":
            return ""
        if model[0] in "/~" or "\\" in model:
            model = model.replace("\\", "/").rpartition("/")[2]
        return f"{provider or 'unknown'}/{model}"


def _is_unchanged(lines: list[str], first: object, last: object, digest: object) -> bool:
    """True if these lines of the file have the digest that the database noted."""
    if not isinstance(first, int) or not isinstance(last, int) or not 0 < first <= last <= len(lines):
        return False
    text = "\n".join(lines[first - 1 : last])
    return isinstance(digest, bytes) and sha256(text.encode("utf-8", "replace")).hexdigest().encode() == digest.lower()
