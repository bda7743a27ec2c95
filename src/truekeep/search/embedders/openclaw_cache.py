"""Reuses vectors from OpenClaw's databases, so that texts it has embedded are not paid for twice.

It keeps vectors under the SHA-256 of the text, in two tables that have had two names and two encodings: JSON up to and
including the first builds with the new names, then float64 blobs. Which of them a database has is seen from its tables
and rows; its version number says nothing about the memory index. The database belongs to OpenClaw and may be in use:
it is opened for reading, and no file is left beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from truekeep.search.embedders import Embedder, EmbedderFailed, Vector, validate_vectors

if TYPE_CHECKING:
    pass

_CHUNK_TABLES = ("memory_index_chunks", "chunks")
_CACHE_TABLES = ("memory_embedding_cache", "embedding_cache")
_META_TABLES = ("memory_index_meta", "meta")
_META_KEY = "memory_index_meta_v1"
_COLUMNS = {
    **dict.fromkeys(_CHUNK_TABLES, frozenset({"hash", "model", "embedding"})),
    **dict.fromkeys(_CACHE_TABLES, frozenset({"provider", "model", "provider_key", "hash", "embedding", "updated_at"})),
    **dict.fromkeys(_META_TABLES, frozenset({"key", "value"})),
}
_BATCH = 500
_FITS = "octet_length(embedding) BETWEEN 3 AND 1000000"  # `[]` and empty blobs are not vectors


class LentModel(NamedTuple):
    """A model whose vectors a database holds. `provider` is empty where the database does not say."""

    provider: str
    model: str
    dims: int
    texts: int


class Owner(NamedTuple):
    """The provider of vectors. The same model at another endpoint has another key, and may give other vectors."""

    provider: str
    model: str
    provider_key: str


def find_databases(state_dir: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Find OpenClaw's databases, the current layout first. Symlinks below the state directory are not followed."""
    if state_dir is None:
        named = environ.get("OPENCLAW_STATE_DIR", "").strip()
        state_dir = Path(named).expanduser() if named else Path.home() / ".openclaw"
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


class Lender:
    """One database, open for reading. Raises EmbedderFailed if it cannot be read; skips broken rows."""

    def __init__(self, path: Path, *, busy_ms: int = 1_000) -> None:
        from truekeep.core.sqlite import ReadOnlyDatabase  # here: the embedder is chosen before a database is needed

        self.path = path
        self._visit: ReadOnlyDatabase | None = None
        with self._reading():
            self._visit = ReadOnlyDatabase(os.fspath(path), busy_ms=busy_ms)
            self._db = self._visit.db
            try:
                self._tables = self._find_tables()
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def models(self) -> list[LentModel]:
        """Return the models with vectors here, the one with most texts first. A text counts once."""
        texts: dict[tuple[str, str, int], set[str]] = {}
        with self._reading():
            for table in self._tables & {*_CHUNK_TABLES, *_CACHE_TABLES}:
                for provider, model, dims, digest in self._iter_sizes(table):
                    texts.setdefault((provider, model, dims), set()).add(digest)
        found = [LentModel(*named, len(digests)) for named, digests in texts.items()]
        return sorted(found, key=lambda lent: (-lent.texts, lent))

    def find(
        self, model: str, text_hashes: Collection[str], *, provider: str = "", dims: int | None = None
    ) -> dict[str, Vector]:
        """Return the vectors of these texts, by the SHA-256 of the text in hex; missing ones are left out.

        All come from one owner and are of one size: `dims`, or the size that most have.
        """
        wanted = {digest.lower() for digest in text_hashes}
        found: dict[str, Vector] = {}
        with self._reading():
            for names in zip(_CHUNK_TABLES, _CACHE_TABLES, _META_TABLES, strict=True):
                chunks, cache, meta = (name if name in self._tables else None for name in names)
                indexed = self._find_indexed(meta)
                is_indexed = indexed is not None and indexed.model == model and provider in ("", indexed.provider)
                owner = indexed if is_indexed else self._find_cached_owner(cache, model, provider)
                _take(self._iter_cached(cache, owner, wanted), found, dims)
                # Only the meta row names the provider of the chunks. Without one, the asked provider is assumed.
                if is_indexed or (indexed is None and not provider):
                    _take(self._iter_chunks(chunks, model, wanted - found.keys()), found, dims)
                if owner is not None or found:  # an older layout in the same file may be another owner's
                    break
        sizes = Counter(len(vector) for vector in found.values())
        if len(sizes) > 1:
            most, _ = max(sizes.items(), key=lambda item: (item[1], item[0]))
            found = {digest: vector for digest, vector in found.items() if len(vector) == most}
        return found

    # --- Rows. Table names in the statements are the constants above; text is read as bytes: a damaged row may hold
    # anything.

    def _iter_sizes(self, table: str) -> Iterator[tuple[str, str, int, str]]:
        """Return provider, model, size and text hash of each vector, without reading the vectors."""
        is_cache = table in _CACHE_TABLES
        # A chunk takes the provider from the meta row of the same layout.
        indexed = None if is_cache else self._find_indexed(_META_TABLES[_CHUNK_TABLES.index(table)])
        samples: dict[tuple[bytes, bytes], int] = {}
        provider_column = "CAST(provider AS BLOB)" if is_cache else "x''"
        for provider, model, digest, kind, size in self._db.execute(
            f"SELECT {provider_column}, CAST(model AS BLOB), CAST(hash AS BLOB), typeof(embedding), "  # noqa: S608
            f"octet_length(embedding) FROM {table} WHERE {_FITS}"
        ):
            if (read := _read_digest(digest)) is None:
                continue
            if kind == "blob":
                dims = size // 8 if size % 8 == 0 else 0
            else:
                if (provider, model) not in samples:
                    samples[provider, model] = self._measure(table, provider if is_cache else None, model)
                dims = samples[provider, model]
            if dims:
                named = provider.decode("utf-8", "replace")
                known = model.decode("utf-8", "replace")
                if indexed is not None and indexed.model == known:
                    named = indexed.provider
                yield named, known, dims, read

    def _measure(self, table: str, provider: bytes | None, model: bytes) -> int:
        """Return the size of this model's vectors by reading one; 0 if a few cannot be read."""
        where, values = ("", (model,)) if provider is None else ("AND provider = CAST(? AS TEXT)", (model, provider))
        for kind, data in self._db.execute(
            f"SELECT typeof(embedding), CAST(embedding AS BLOB) FROM {table} "  # noqa: S608
            f"WHERE model = CAST(? AS TEXT) {where} AND typeof(embedding) = 'text' AND {_FITS} LIMIT 9",
            values,
        ):
            if (vector := _decode(kind, data)) is not None:
                return len(vector)
        return 0

    def _find_indexed(self, table: str | None) -> Owner | None:
        """Return the provider of the chunks, from the meta row."""
        if table not in self._tables:
            return None
        row = self._db.execute(
            f"SELECT CAST(value AS BLOB) FROM {table} WHERE key = ?",  # noqa: S608
            (_META_KEY,),
        ).fetchone()
        try:
            meta = json.loads(row[0]) if row else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(meta, dict):
            return None
        values = [meta.get(name) for name in ("provider", "model", "providerKey")]
        return Owner(*(value if isinstance(value, str) else "" for value in values))

    def _find_cached_owner(self, table: str | None, model: str, provider: str) -> Owner | None:
        """Return the provider with vectors of this model that was used last."""
        if table is None:
            return None
        row = self._db.execute(
            f"SELECT CAST(provider AS BLOB), CAST(provider_key AS BLOB) FROM {table} "  # noqa: S608
            "WHERE model = ?1 AND (?2 = '' OR provider = ?2) ORDER BY updated_at DESC LIMIT 1",
            (model, provider),
        ).fetchone()
        if row is None:
            return None
        try:
            return Owner(row[0].decode(), model, row[1].decode())
        except UnicodeDecodeError:
            return None

    def _iter_cached(
        self, table: str | None, owner: Owner | None, wanted: Collection[str]
    ) -> Iterator[tuple[Any, ...]]:
        if table is None or owner is None:
            return
        for batch in _iter_batches(wanted):
            yield from self._db.execute(
                f"SELECT CAST(hash AS BLOB), typeof(embedding), CAST(embedding AS BLOB) FROM {table} "  # noqa: S608
                f"WHERE provider = ? AND model = ? AND provider_key = ? AND hash IN ({_marks(batch)}) AND {_FITS}",
                (*owner, *batch),
            )

    def _iter_chunks(self, table: str | None, model: str, wanted: Collection[str]) -> Iterator[tuple[Any, ...]]:
        if table is None or not wanted:
            return
        # There is no index on the hash, so all hashes are read once, and vectors fetched by row.
        rows = [
            row
            for row, digest in self._db.execute(
                f"SELECT rowid, CAST(hash AS BLOB) FROM {table} WHERE model = ? AND {_FITS}",  # noqa: S608
                (model,),
            )
            if _read_digest(digest) in wanted
        ]
        for batch in _iter_batches(rows):
            yield from self._db.execute(
                f"SELECT CAST(hash AS BLOB), typeof(embedding), CAST(embedding AS BLOB) FROM {table} "  # noqa: S608
                f"WHERE rowid IN ({_marks(batch)})",
                batch,
            )

    # --- The connection

    def _find_tables(self) -> set[str]:
        """Return the known tables that exist with the needed columns."""
        there = {name for (name,) in self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        return {table for table, needed in _COLUMNS.items() if table in there and needed <= self._list_columns(table)}

    def _list_columns(self, table: str) -> set[str]:
        return {name for (name,) in self._db.execute("SELECT name FROM pragma_table_info(?)", (table,))}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import apsw

        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:
            raise EmbedderFailed(f"{self.path} is locked by another program", hint="Try again.") from error
        except (apsw.NotADBError, apsw.CorruptError) as error:
            self._check_unchanged()
            raise EmbedderFailed(f"{self.path} is damaged or not a database") from error
        except apsw.Error as error:
            raise EmbedderFailed(f"{self.path} cannot be read: {type(error).__name__}") from error
        except OSError as error:
            raise EmbedderFailed(f"{self.path} cannot be read: {error.strerror}") from error
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        try:
            has_changed = self._visit is not None and self._visit.has_changed()
        except OSError as error:
            raise EmbedderFailed(f"{self.path} cannot be read: {error.strerror}") from error
        if has_changed:
            raise EmbedderFailed(f"{self.path} was written to while it was read", hint="Try again.")


# --- Values ---------------------------------------------------------------------------------------------------------


def _take(rows: Iterable[tuple[Any, ...]], found: dict[str, Vector], dims: int | None) -> None:
    for digest, kind, data in rows:
        read = _read_digest(digest)
        if read is None or read in found:
            continue
        vector = _decode(kind, data)
        if vector is not None and dims in (None, len(vector)):
            found[read] = vector


def _decode(kind: str, data: bytes) -> Vector | None:
    """Return the vector in a row, None if it is not valid."""
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


def _read_digest(data: bytes | None) -> str | None:
    if data is None or len(data) != 64:
        return None
    try:
        return bytes.fromhex(data.decode("ascii")).hex()
    except ValueError:
        return None


def _iter_batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


def _marks(batch: Collection[Any]) -> str:
    return ", ".join("?" * len(batch))


# --- Files ----------------------------------------------------------------------------------------------------------


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


class Lending:
    """An embedder that first looks for the vector in OpenClaw's databases: same model, same text."""

    def __init__(self, embedder: Embedder, databases: Sequence[Path]) -> None:
        self._embedder = embedder
        self._databases = tuple(databases)
        self.provider, self.model, self.key = embedder.provider, embedder.model, embedder.key
        self.lent = 0

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        found: dict[str, Vector] = {}
        hashes = [] if is_query else [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts]
        for path in self._databases if hashes else ():
            try:
                found.update(self._ask(path, [wanted for wanted in hashes if wanted not in found]))
            except EmbedderFailed:
                continue  # unreadable now; the model itself answers
        missing = [at for at in range(len(texts)) if not hashes or hashes[at] not in found]
        made = self._embedder.embed([texts[at] for at in missing], is_query=is_query)
        if made and any(len(vector) != len(made[0]) for vector in found.values()):
            return self._embedder.embed(texts, is_query=is_query)  # the sizes differ: another model
        self.lent += len(texts) - len(missing)
        fresh = dict(zip(missing, made, strict=True))
        return [fresh[at] if at in fresh else found[hashes[at]] for at in range(len(texts))]

    def _ask(self, path: Path, hashes: list[str]) -> dict[str, Vector]:
        with Lender(path) as lender:
            known = [item for item in lender.models() if item.provider == self.provider and item.model == self.model]
            if not known:
                return {}
            most = max(known, key=lambda item: item.texts)
            return lender.find(self.model, hashes, provider=self.provider, dims=most.dims)
