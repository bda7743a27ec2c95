"""Embeddings of records, from truekeep's search index and OpenClaw's databases.

A vector belongs to a chunk of lines, and a record gets the vectors of every chunk that shares a line with it. A chunk
only counts if its digest shows that the file's lines have not changed since. Databases are never written to; one that
is locked or damaged is reported in `problems` and skipped.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self

from truekeep.core.derived_db import UnusableDatabase, read_meta
from truekeep.integrations.alf.documents import Embedding
from truekeep.integrations.alf.timestamps import format_timestamp
from truekeep.search.chunking import split_chunks, strip_notes
from truekeep.search.embedders import EmbedderFailed, Vector, load_numpy
from truekeep.search.embedders.openclaw_cache import _FITS, Lender, _decode
from truekeep.search.file_metadata import is_by_entry
from truekeep.search.index_schema import open_index

MAX_CHUNKS_PER_FILE = 20_000  # more than the largest indexed file can have
MAX_CHUNK_CHARACTERS = 20_000  # several times the maximum of any version


class EmbeddedChunk(NamedTuple):
    """An unchanged chunk of a file, with its vector."""

    first: int  # lines, counted from 1, both included
    last: int
    embedding: Embedding


class EmbeddingSources:
    """The search index and OpenClaw's databases, asked file by file. `problems` gets what could not be read."""

    def __init__(self, index_path: str, databases: Sequence[Path] = (), problems: list[str] | None = None) -> None:
        self.problems: list[str] = problems if problems is not None else []
        # OpenClaw's come first: truekeep may have copied them, with fewer digits.
        self._sources: list[_SearchIndex | _Lender] = []
        for path in databases:
            self._open(_Lender, path)
        if Path(index_path).exists():
            self._open(_SearchIndex, Path(index_path))
        self._last: tuple[str, str] | None = None
        self._chunks: list[EmbeddedChunk] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for source in self._sources:
            source.close()
        self._sources = []

    def _open(self, kind: type[_SearchIndex | _Lender], path: Path) -> None:
        try:
            self._sources.append(kind(path))
        except EmbedderFailed as error:
            self.problems.append(f"{error.message}; its vectors are left out")

    def find(self, path: str, text: str, line_start: int, line_end: int) -> list[Embedding]:
        """The embeddings of the chunks that share a line with these lines. `text`: the file as it is now."""
        if self._last != (path, text):  # callers pass the same strings for all records of a file
            self._last, self._chunks = (path, text), self.of_file(path, text)
        return [item.embedding for item in self._chunks if item.first <= line_end and item.last >= line_start]

    def of_file(self, path: str, text: str) -> list[EmbeddedChunk]:
        """Every chunk of a file that has a vector, in order; one for each model and place."""
        if not self._sources:
            return []
        lines = _ChunkedFile(path, text)
        found: dict[tuple[int, int, str], EmbeddedChunk] = {}
        for source in list(self._sources):
            try:
                for item in source.of_file(path, lines):
                    found.setdefault((item.first, item.last, item.embedding["model"]), item)
            except EmbedderFailed as error:  # it would fail for every file
                self.problems.append(f"{error.message}; the rest of its vectors are left out")
                self._sources.remove(source)
                source.close()
        return [found[key] for key in sorted(found)]


class _ChunkedFile:
    """The chunks of a file as it is now, to compare with indexed ones."""

    def __init__(self, path: str, text: str) -> None:
        raw = text.removeprefix("\ufeff").replace("\0", " ")
        bare = strip_notes(raw)
        self._known = {
            (chunk.first, chunk.last, _digest(chunk.text)) for chunk in split_chunks(bare, by_entry=is_by_entry(path))
        }
        # Older versions chunked differently, but always by whole lines.
        self._versions = [version.split("\n") for version in dict.fromkeys((bare, raw))]
        self._ends = [[0, *accumulate(len(line) + 1 for line in version)] for version in self._versions]

    def has(self, first: object, last: object, digest: bytes) -> bool:
        """True if these lines have this digest."""
        if not isinstance(first, int) or not isinstance(last, int):
            return False
        if (first, last, digest) in self._known:
            return True
        return any(
            0 < first <= last < len(ends)
            and ends[last] - ends[first - 1] <= MAX_CHUNK_CHARACTERS
            and _digest("\n".join(lines[first - 1 : last])) == digest
            for lines, ends in zip(self._versions, self._ends, strict=True)
        )


class _SearchIndex:
    """truekeep's own search index."""

    def __init__(self, path: Path) -> None:
        import apsw

        self._path = path
        try:
            self._db = open_index(str(path), read_only=True)
            try:
                provider, model, *_ = f"{read_meta(self._db, 'embedder', '')}\t".split("\t")
            except BaseException:
                self._db.close()
                raise
        except (UnusableDatabase, OSError, apsw.Error) as error:
            raise EmbedderFailed(f"{path} cannot be read ({error})") from error
        self._model = _model_name(provider, model)

    def close(self) -> None:
        self._db.close()

    def of_file(self, path: str, lines: _ChunkedFile) -> list[EmbeddedChunk]:
        """computed_at is the time of the file: the index does not record when a vector was computed."""
        import apsw

        try:
            rows = self._rows(path) if self._model else []
        except (apsw.Error, UnicodeDecodeError) as error:
            raise EmbedderFailed(f"{self._path} cannot be read ({error})") from error
        return [
            EmbeddedChunk(first, last, _embedding(self._model, vector, int(mtime_ns), "import_adapter"))
            for first, last, digest, mtime_ns, packed in rows
            if lines.has(first, last, digest) and (vector := _from_float16(packed))
        ]

    def _rows(self, path: str) -> list[Any]:
        return self._db.execute(
            "SELECT first, last, chunks.digest, mtime_ns, embedding FROM files"
            " JOIN chunks ON file_id = files.id JOIN vectors ON chunk_id = chunks.id"
            " WHERE path = ? AND store != 'transcripts' AND typeof(embedding) = 'blob' ORDER BY chunks.id LIMIT ?",
            (path, MAX_CHUNKS_PER_FILE),
        ).fetchall()


class _Lender(Lender):
    """OpenClaw's database, queried by file and line instead of by text."""

    _PLACES = frozenset({"path", "start_line", "end_line", "updated_at"})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._table = ""
        self._provider, self._model = "", ""
        self._rowids: dict[str, array[int]] = {}
        try:
            with self._reading():
                self._find_chunks()
        except EmbedderFailed:
            self.close()
            raise

    def _find_chunks(self) -> None:
        """Find the table with the chunks, the model of its vectors, and the rows of each file."""
        for table, meta in (("memory_index_chunks", "memory_index_meta"), ("chunks", "meta")):
            if table in self._tables and self._list_columns(table) >= self._PLACES:
                self._table = table
                owner = self._find_indexed(meta)
                if owner is not None:
                    self._provider, self._model = owner.provider, owner.model
                # Not every version has an index on path, so the table is scanned once.
                for path, row in self._db.execute(f"SELECT CAST(path AS BLOB), rowid FROM {table}"):  # noqa: S608
                    if path is not None:
                        self._rowids.setdefault(path.decode("utf-8", "replace"), array("q")).append(row)
                return

    def of_file(self, path: str, lines: _ChunkedFile) -> list[EmbeddedChunk]:
        wanted = self._rowids.get(path, array("q"))[:MAX_CHUNKS_PER_FILE]
        found: list[EmbeddedChunk] = []
        with self._reading():
            for row in wanted:
                item = self._embedded(row, lines)
                if item is not None:
                    found.append(item)
        return found

    def _embedded(self, row: int, lines: _ChunkedFile) -> EmbeddedChunk | None:
        """The chunk of a row, if its vector is valid and its lines are unchanged."""
        found: Any = self._db.execute(
            f"SELECT start_line, end_line, CAST(hash AS BLOB), CAST(model AS BLOB), updated_at FROM {self._table}"  # noqa: S608
            f" WHERE rowid = ? AND {_FITS}",
            (row,),
        ).fetchone()
        if found is None or not (name := self._name(found[3])) or not lines.has(found[0], found[1], _unhex(found[2])):
            return None
        stored: Any = self._db.execute(
            f"SELECT typeof(embedding), CAST(embedding AS BLOB) FROM {self._table} WHERE rowid = ?",  # noqa: S608
            (row,),
        ).fetchone()
        vector = _decode(*stored) if stored is not None else None
        if vector is None:
            return None
        embedding = _embedding(name, _from_float32(vector), _milliseconds_to_ns(found[4]), "runtime")
        return EmbeddedChunk(found[0], found[1], embedding)

    def _name(self, raw: bytes | None) -> str:
        """The model name, with its provider if the database states it."""
        model = (raw or b"").decode("utf-8", "replace")
        return _model_name(self._provider if model == self._model else "", model)


# --- Values ---------------------------------------------------------------------------------------------------------


def _embedding(model: str, vector: list[float], at_ns: int, source: str) -> Embedding:
    return {
        "model": model,
        "dimensions": len(vector),
        "vector": vector,
        "computed_at": format_timestamp(at_ns),
        "source": source,
    }


def _model_name(provider: str, model: str) -> str:
    """A model as provider/model; empty without a model. Of a path, only the file name is exported."""
    if not model or provider == "none":
        return ""
    if model[0] in "/~" or "\\" in model:
        model = model.replace("\\", "/").rpartition("/")[2]
    return f"{provider or 'unknown'}/{model}"


def _from_float16(packed: bytes) -> list[float]:
    """A vector of half precision, with the shortest exact decimals; empty if it is invalid."""
    if len(packed) % 2:
        return []
    shortest = _float16_values()
    vector = [shortest[number] for number in load_numpy().frombuffer(packed, dtype="<u2").tolist()]
    return vector if any(vector) and all(map(math.isfinite, vector)) else []


@cache
def _float16_values() -> list[float]:
    """Every number of half precision, by its bits."""
    np = load_numpy()

    return [float(str(number)) for number in np.arange(1 << 16, dtype=np.uint16).view(np.float16)]


def _from_float32(vector: Vector) -> list[float]:
    """A vector of single precision, with the shortest exact decimals."""
    np = load_numpy()

    shortest: list[float] = np.frombuffer(vector, dtype=np.float32).astype("U16").astype(np.float64).tolist()
    return shortest


def _milliseconds_to_ns(at: object) -> int:
    """A time in milliseconds, as OpenClaw stores it; 0 for anything else."""
    return at * 1_000_000 if isinstance(at, int) and 0 < at < 10**14 else 0


def _unhex(digest: object) -> bytes:
    try:
        return bytes.fromhex(digest.decode("ascii")) if isinstance(digest, bytes) else b""
    except ValueError:
        return b""


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "replace")).digest()
