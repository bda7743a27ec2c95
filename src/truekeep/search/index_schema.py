"""The index database, .truekeep/index.sqlite: its tables, how it is opened, and what happens when it is unusable.

Derived from the files, so every trouble has the same cure: set it aside and make it again. A database of a newer
version is left alone and not used. Writers are kept apart by a lock; readers see the state before or after a batch. It
has a rollback journal, not a write-ahead log, so that a rebuilt index can take its place by a rename.

    files             one row a file: its digest, and the stat that lets an unchanged file be skipped unread
    chunks            pieces of files with their lines and text; ids are reused, so that they stay dense
    chunks_fts        the words of each chunk (FTS5); holds no text of its own
    vectors           the vector of each chunk, half precision, for exact comparison
    vector_blocks     the same vectors in 8 bits, 256 to a row, for scanning all of them
    embedding_cache   vectors by provider, model and content, for embedders that cost something
    meta              version, fingerprint, generation; the mark of the files when all were in, for whoever looks next
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Any

import apsw

from truekeep.core.formats import INDEX
from truekeep.core.sqlite import DAMAGE, remove_database, transaction

VERSION = INDEX.number
BLOCK = 256  # vectors in a block
TRANSCRIPTS_FROM = 1 << 40  # chunk ids from here belong to transcripts, so that ordinary search can leave them out
ARCHIVE_FROM = 1 << 50  # and from here, to what was put away
SECTIONS = {
    "memory": (0, TRANSCRIPTS_FROM),
    "transcripts": (TRANSCRIPTS_FROM, ARCHIVE_FROM),
    "archive": (ARCHIVE_FROM, 1 << 62),
}

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, store TEXT NOT NULL, digest BLOB NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  is_settled INTEGER NOT NULL,      -- 0: changed so shortly before it was read that the stat proves nothing
  day TEXT NOT NULL, repository TEXT NOT NULL, title TEXT NOT NULL, origin TEXT NOT NULL
);
CREATE INDEX files_day ON files(day);
CREATE INDEX files_cards ON files(repository, day DESC, path) WHERE store = 'cards';   -- the roll of cards
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  digest BLOB NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL,
  lines BLOB                        -- for transcripts: the line of the original for each line of the text
);
CREATE INDEX chunks_file ON chunks(file_id);
CREATE TABLE free_chunks (id INTEGER PRIMARY KEY);
CREATE TABLE unembedded (chunk_id INTEGER PRIMARY KEY);   -- chunks that still wait for their vector
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
"""
_OURS = "SELECT count(*) FROM sqlite_schema WHERE name IN ('files', 'chunks_fts', 'vector_blocks', 'embedding_cache')"


class Unusable(Exception):
    """The database cannot be used: damaged, foreign, or of another version."""

    def __init__(self, what: str, *, is_newer: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.is_newer = is_newer


def open_index(path: str, *, read_only: bool = False) -> apsw.Connection:
    """Open the index, making an empty one where there is none. Raises Unusable, or apsw's error for the disk."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    is_file = path != ":memory:"
    if is_file and not read_only:
        with suppress(PermissionError):  # before SQLite makes it with everybody's permissions
            flags_here = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(os.open(path, flags_here, 0o600))
    if is_file and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    if is_file:  # a workspace may be reached through a symlink; its index may not be one
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        flags |= apsw.SQLITE_OPEN_NOFOLLOW
    db = apsw.Connection(path, flags=flags)
    try:
        db.set_busy_timeout(5000)
        version = db.execute("PRAGMA user_version").get
        if version == 0 and not read_only:
            db.execute("PRAGMA page_size = 8192; PRAGMA synchronous = OFF")
            _create(db)
        elif version != VERSION:
            newer = isinstance(version, int) and version > VERSION
            raise Unusable(f"it is of version {version}, this truekeep knows {VERSION}", is_newer=newer)
        elif db.execute(_OURS).get != 4:
            raise Unusable("it is some other database")
        else:
            # Derived: after a power loss a damaged index is noticed and made again.
            db.execute("PRAGMA synchronous = OFF")
        # Not mapped into memory: a file that somebody truncates must be an error, not a signal.
        db.execute("PRAGMA cache_size = -65536; PRAGMA cache_spill = OFF; PRAGMA temp_store = MEMORY")
    except DAMAGE as error:
        db.close()
        raise Unusable(str(error)) from error
    except BaseException:
        db.close()
        raise
    return db


def _create(db: apsw.Connection) -> None:
    with transaction(db):
        if db.execute("PRAGMA user_version").get == 0:  # nobody was faster
            if db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise Unusable("it is some other database")
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA user_version = {VERSION}")


def section_of(store: str) -> str:
    """Which part of the ids a store's chunks have: above the first number of SECTIONS, up to the second."""
    return store if store in SECTIONS else "memory"


def read_meta(db: apsw.Connection, key: str, default: Any = None) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


def write_meta(db: apsw.Connection, key: str, value: Any) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def set_aside(path: str, *, stamp: str) -> str:
    """Keep a damaged database as evidence, the last one only, and clear its place."""
    kept = f"{path}.damaged-{stamp}"
    folder, name = os.path.split(path)
    for old in os.listdir(folder or "."):
        if old.startswith(f"{name}.damaged-"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, old))
    os.replace(path, kept)
    remove_database(path)
    return kept
