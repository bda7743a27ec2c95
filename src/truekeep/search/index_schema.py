"""The search index, .truekeep/index.sqlite: its tables. Derived from the files.

It has a rollback journal, not a write-ahead log, so that a rebuilt index can replace it by a rename. Writers take a
lock; readers see the state before or after a batch.

    files             one row a file: its digest, and the stat that lets an unchanged file be skipped unread
    chunks            pieces of files with their lines and text; ids are reused, so that they stay dense
    chunks_fts        the words of each chunk (FTS5), without its text
    vectors           the vector of each chunk, half precision, for exact comparison
    vector_blocks     the same vectors in 8 bits, 256 to a row, for a scan over all of them
    embedding_cache   vectors by provider, model and content, for embedders that cost something
    meta              embedder, generation, decay record; the fingerprint of the files when all of them were indexed
"""

from __future__ import annotations

import apsw

from truekeep.core.derived_db import META_TABLE, Schema, open_derived
from truekeep.core.formats import INDEX
from truekeep.memory.file_scan import FILE_COLUMNS

VECTORS_PER_BLOCK = 256
FIRST_TRANSCRIPT_ID = 1 << 40  # chunk ids above this belong to transcripts, so that ordinary search can skip them
FIRST_ARCHIVE_ID = 1 << 50  # and above this, to memory/archive
SECTIONS = {  # the range of chunk ids of each section: above the first number, up to the second
    "memory": (0, FIRST_TRANSCRIPT_ID),
    "transcripts": (FIRST_TRANSCRIPT_ID, FIRST_ARCHIVE_ID),
    "archive": (FIRST_ARCHIVE_ID, 1 << 62),
}

SCHEMA = Schema(
    INDEX,
    f"""
{META_TABLE}
CREATE TABLE files ({FILE_COLUMNS},
  digest BLOB NOT NULL, day TEXT NOT NULL, repository TEXT NOT NULL, title TEXT NOT NULL, origin TEXT NOT NULL
);
CREATE INDEX files_day ON files(day);
CREATE INDEX files_cards ON files(repository, day DESC, path) WHERE store = 'cards';
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  digest BLOB NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL,
  lines BLOB                        -- for transcripts: the line of the original for each line of the text
);
CREATE INDEX chunks_file ON chunks(file_id);
CREATE TABLE free_chunks (id INTEGER PRIMARY KEY);
CREATE TABLE unembedded (chunk_id INTEGER PRIMARY KEY);   -- chunks without a vector yet
CREATE VIRTUAL TABLE chunks_fts USING fts5(
  title, text, parts, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE chunk_words USING fts5vocab(chunks_fts, row);
CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY, embedding BLOB NOT NULL);
CREATE TABLE vector_blocks (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, embeddings BLOB NOT NULL);
CREATE INDEX vector_blocks_generation ON vector_blocks(generation);
CREATE TABLE embedding_cache (
  provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, embedding BLOB NOT NULL,
  used_at INTEGER NOT NULL, PRIMARY KEY (provider, model, key, digest)
) WITHOUT ROWID;
INSERT INTO chunks_fts(chunks_fts, rank) VALUES ('hashsize', 16777216);
""",  # noqa: S608 - constants
    required=("files", "chunks", "chunks_fts", "vector_blocks", "embedding_cache"),
    # Not mapped into memory: a file that another program truncates must be an error, not a signal.
    pragmas="PRAGMA cache_size = -65536; PRAGMA cache_spill = OFF",
    page_size=8192,
)


def open_index(path: str, *, read_only: bool = False) -> apsw.Connection:
    """Open the index, or create it. Raises UnusableDatabase, OSError, or apsw's error for the disk."""
    return open_derived(path, SCHEMA, read_only=read_only)


def section_of(store: str) -> str:
    """The section of chunk ids that a store belongs to."""
    return store if store in SECTIONS else "memory"
