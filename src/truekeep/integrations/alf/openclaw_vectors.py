"""OpenClaw's databases of vectors, open for reading while OpenClaw may be using them.

Two layouts exist, with other table names, and two encodings: JSON, then float64 blobs. Which of them a database has is
seen from its tables and rows; its version number says nothing about the memory index. No file is left beside it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from truekeep.core.sqlite import ReadOnlyDatabase
from truekeep.search.embedders import EmbedderFailed, Vector, validate_vectors

TABLES = (("memory_index_chunks", "memory_index_meta"), ("chunks", "meta"))  # of the current layout, of the old one
FITS = "octet_length(embedding) BETWEEN 3 AND 1000000"  # `[]` and empty blobs are not vectors
_META_KEY = "memory_index_meta_v1"
_CHUNK_COLUMNS = frozenset({"hash", "model", "embedding", "path", "start_line", "end_line", "updated_at"})


class VectorOwner(NamedTuple):
    """The provider and model of indexed vectors."""

    provider: str
    model: str


def find_databases(state_dir: Path) -> list[Path]:
    """Find OpenClaw's databases, the current layout first. Symlinks below the state directory are not followed."""
    found = [
        agent / "agent" / "openclaw-agent.sqlite"
        for agent in _list_folder(state_dir / "agents")
        if _is_kind(agent, stat.S_ISDIR) and _is_kind(agent / "agent", stat.S_ISDIR)
    ]
    # Other files beside a database, such as main.sqlite.reindex-lock.sqlite, hold no vectors.
    found += [
        path
        for path in _list_folder(state_dir / "memory")
        if path.suffix == ".sqlite" and ".sqlite" not in path.stem and not path.name.startswith(".")
    ]
    return [path for path in found if _is_kind(path, stat.S_ISREG)]


class VectorDatabase:
    """One database. Raises EmbedderFailed if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._visit: ReadOnlyDatabase | None = None
        with self.reading():
            self._visit = ReadOnlyDatabase(os.fspath(path))
            self.db = self._visit.db

    def close(self) -> None:
        self.db.close()

    def find_chunk_table(self) -> tuple[str, VectorOwner | None] | None:
        """Return the table with the chunks, and whose vectors it has, if the database says so."""
        for chunks, meta in TABLES:
            if self._list_columns(chunks) >= _CHUNK_COLUMNS:
                return chunks, self._find_owner(meta)
        return None

    def _find_owner(self, meta: str) -> VectorOwner | None:
        if not self._list_columns(meta) >= {"key", "value"}:
            return None
        # Text is read as bytes: a damaged row may hold anything.
        row = self.db.execute(
            f"SELECT CAST(value AS BLOB) FROM {meta} WHERE key = ?",  # noqa: S608 - one of TABLES
            (_META_KEY,),
        ).fetchone()
        try:
            noted = json.loads(row[0]) if row else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(noted, dict):
            return None
        values = (noted.get(name) for name in VectorOwner._fields)
        return VectorOwner(*(value if isinstance(value, str) else "" for value in values))

    def _list_columns(self, table: str) -> set[str]:
        return {name for (name,) in self.db.execute("SELECT name FROM pragma_table_info(?)", (table,))}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Translate the errors of a block that reads, and refuse what was read while OpenClaw wrote."""
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:
            raise EmbedderFailed(f"{self.path} is locked by another program", hint="Try again.") from error
        except (apsw.NotADBError, apsw.CorruptError) as error:
            self._check_unchanged()
            raise EmbedderFailed(f"{self.path} is damaged or not a database") from error
        except (apsw.Error, OSError) as error:
            raise EmbedderFailed(f"{self.path} cannot be read: {error}") from error
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        try:
            has_changed = self._visit is not None and self._visit.has_changed()
        except OSError as error:
            raise EmbedderFailed(f"{self.path} cannot be read: {error.strerror}") from error
        if has_changed:
            raise EmbedderFailed(f"{self.path} was written to while it was read", hint="Try again.")


def decode_vector(kind: str, data: bytes) -> Vector | None:
    """Return the unit vector in a row, None if it is not valid."""
    values: Any
    if kind == "blob":
        if len(data) % 8:
            return None
        values = array("d", data)
        if sys.byteorder == "big":
            values.byteswap()
    else:
        try:
            values = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(values, list):
            return None
    try:
        (vector,) = validate_vectors([values], 1, who="OpenClaw")
    except EmbedderFailed:
        return None
    return vector if any(vector) else None


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir()) if _is_kind(folder, stat.S_ISDIR) else []
    except OSError:
        return []


def _is_kind(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        return is_kind(path.lstat().st_mode)
    except OSError:
        return False
