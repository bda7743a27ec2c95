"""OpenClaw's database of memory chunks and vectors, in its three layouts."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import apsw

CURRENT = """
CREATE TABLE memory_index_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_chunks(chunk_rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory', start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
  hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, embedding BLOB NOT NULL,
  updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE memory_embedding_cache(provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
  hash TEXT NOT NULL, embedding BLOB NOT NULL, dims INTEGER, updated_at INTEGER NOT NULL,
  PRIMARY KEY(provider, model, provider_key, hash)) STRICT;
CREATE INDEX memory_embedding_cache_updated_at ON memory_embedding_cache(updated_at);
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5(text, id UNINDEXED, path UNINDEXED, source UNINDEXED,
  model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED);
"""
# The builds between kept JSON in tables of the new names.
BETWEEN = CURRENT.replace("embedding BLOB", "embedding TEXT")
LEGACY = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files(path TEXT PRIMARY KEY, source TEXT NOT NULL, hash TEXT NOT NULL, mtime INTEGER NOT NULL,
  size INTEGER NOT NULL);
CREATE TABLE chunks(id TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL, start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL, hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, embedding TEXT NOT NULL,
  updated_at INTEGER NOT NULL);
CREATE TABLE embedding_cache(provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
  hash TEXT NOT NULL, embedding TEXT NOT NULL, dims INTEGER, updated_at INTEGER NOT NULL,
  PRIMARY KEY(provider, model, provider_key, hash));
"""
SCHEMAS = {"legacy": LEGACY, "between": BETWEEN, "current": CURRENT}
OPENAI = "text-embedding-3-small"


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Claw:
    """A database as OpenClaw makes it, and a connection to fill it."""

    def __init__(self, path: Path, generation: str) -> None:
        self.path = path
        self.generation = generation
        self.is_legacy = generation == "legacy"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.db = apsw.Connection(str(path))
        if not self.is_legacy:
            self.db.execute("PRAGMA journal_mode = wal").fetchall()
        self.db.execute(SCHEMAS[generation])
        self.db.execute(f"PRAGMA user_version = {23 if generation == 'current' else 0}")

    def encode(self, vector: Any) -> Any:
        if not isinstance(vector, list):
            return vector
        return struct.pack(f"<{len(vector)}d", *vector) if self.generation == "current" else json.dumps(vector)

    def describe(self, provider: str = "openai", model: str = OPENAI, provider_key: str = "key") -> None:
        table = "meta" if self.is_legacy else "memory_index_meta"
        value = json.dumps({"provider": provider, "model": model, "providerKey": provider_key, "chunkTokens": 400})
        self.db.execute(f"INSERT OR REPLACE INTO {table} VALUES('memory_index_meta_v1', ?)", (value,))

    def chunk(self, text: str, vector: Any, *, model: str = OPENAI, digest: Any = None) -> None:
        table = "chunks" if self.is_legacy else "memory_index_chunks"
        digest = digest_of(text) if digest is None else digest
        self.db.execute(
            f"INSERT INTO {table}(id, path, source, start_line, end_line, hash, model, text, embedding, updated_at) "
            f"VALUES(hex(randomblob(16)), 'memory/a.md', 'memory', 1, 2, {self.cast(digest)}, ?, ?, ?, 1)",
            (digest, model, text, self.encode(vector)),
        )

    def cache(
        self,
        text: str,
        vector: Any,
        *,
        provider: str = "openai",
        model: str = OPENAI,
        provider_key: str = "key",
        at: int = 1,
    ) -> None:
        table = "embedding_cache" if self.is_legacy else "memory_embedding_cache"
        self.db.execute(
            f"INSERT INTO {table} VALUES(?, ?, ?, ?, ?, ?, ?)",
            (provider, model, provider_key, digest_of(text), self.encode(vector), None, at),
        )

    @staticmethod
    def cast(value: Any) -> str:
        return "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"

    def close(self) -> Path:
        self.db.close()
        return self.path
