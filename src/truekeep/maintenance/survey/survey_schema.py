"""The survey's database, .truekeep/survey.sqlite: its tables, and how it is opened. Derived, and safe to delete.

files      one row a file, with the stat that lets an unchanged one be skipped
cards      topic, days, repository; the words of a card, sorted
words      which cards have a word; rare ones tell which cards may say the same
counts     how many cards have a word
fresh      cards that were not compared with the others yet
pairs      two cards that say the same, and how much
vals       what a file says the value of a thing is
links      which memory file points at which
verdicts   how many claims of a file the last check found to be what
entries    tagged entries of daily logs
lines      what daily logs say, by what a line shares with ones like it
heard      how far each session was listened to
talk       what was said in sessions that the value of a thing is
problems   what is wrong with a file, and where
"""

from __future__ import annotations

import os
from contextlib import suppress

import apsw

from truekeep.core.formats import SURVEY, read_format
from truekeep.core.sqlite import remove_database

NAME = "survey.sqlite"
VERSION = SURVEY.number

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, store TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, is_settled INTEGER NOT NULL,
  day TEXT NOT NULL, repository TEXT NOT NULL
);
CREATE TABLE cards (
  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL,
  confirmed TEXT NOT NULL, words BLOB NOT NULL, category TEXT NOT NULL,
  description TEXT NOT NULL,
  tags TEXT NOT NULL                -- each on a line of its own, in lower case
);
CREATE INDEX cards_key ON cards(key);
CREATE TABLE words (word INTEGER NOT NULL, card INTEGER NOT NULL, PRIMARY KEY (word, card)) WITHOUT ROWID;
CREATE TABLE counts (word INTEGER PRIMARY KEY, cards INTEGER NOT NULL);
CREATE TABLE fresh (card INTEGER PRIMARY KEY);
CREATE TABLE pairs (
  one INTEGER NOT NULL, other INTEGER NOT NULL, likeness REAL NOT NULL, PRIMARY KEY (one, other)
) WITHOUT ROWID;
CREATE INDEX pairs_other ON pairs(other);
CREATE TABLE vals (
  file INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, value TEXT NOT NULL, line INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL
);
CREATE INDEX vals_file ON vals(file);
CREATE INDEX vals_subject ON vals(kind, subject, value);
CREATE TABLE links (file INTEGER NOT NULL, target TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX links_file ON links(file);
CREATE INDEX links_target ON links(target);
CREATE TABLE verdicts (             -- by the last check, which may be older than the file
  path TEXT PRIMARY KEY, seal BLOB NOT NULL, at REAL NOT NULL, confirmed INTEGER NOT NULL, moved INTEGER NOT NULL,
  changed INTEGER NOT NULL, gone INTEGER NOT NULL, unverifiable INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE entries (
  file INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, kind TEXT NOT NULL, importance REAL NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX entries_file ON entries(file);
CREATE TABLE lines (                -- statements of logs, by what similar ones share
  key INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, file, line)
) WITHOUT ROWID;
CREATE INDEX lines_file ON lines(file);
CREATE TABLE heard (session TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE talk (                 -- values that were named in sessions
  session TEXT NOT NULL, day TEXT NOT NULL, repository TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
  value TEXT NOT NULL, line INTEGER NOT NULL
);
CREATE INDEX talk_session ON talk(session);
CREATE TABLE problems (file INTEGER NOT NULL, line INTEGER NOT NULL, code TEXT NOT NULL, what TEXT NOT NULL);
CREATE INDEX problems_file ON problems(file);
"""


class Foreign(Exception):
    """Another version's survey, or some other database."""


def open_survey(path: str) -> apsw.Connection:
    """Open the survey, or make an empty one. Raises Foreign, or apsw's error for the disk."""
    if read_format(path) > VERSION:
        path = ":memory:"  # a newer truekeep's is left alone
    if path != ":memory:":
        with suppress(OSError):  # before SQLite makes it with everybody's permissions
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(5000)
        db.execute("PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768")  # derived
        version = db.execute("PRAGMA user_version").get
        if version != VERSION:
            if version != 0 or db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise Foreign
            with db:
                db.execute(_SCHEMA)
                db.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        db.close()
        raise
    return db


def discard(path: str) -> None:
    """Derived: a damaged or foreign survey is simply made again."""
    with suppress(OSError):
        remove_database(path)


def stamp_of(path: str) -> str:
    """What changes whenever a file is written or replaced, or a folder gains or loses one."""
    try:
        info = os.stat(path)
    except OSError:
        return "-"
    return f"{info.st_mtime_ns}.{info.st_size}.{info.st_ino}"
