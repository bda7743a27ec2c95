"""The survey, .truekeep/survey.sqlite: its tables. Derived from the files and safe to delete.

files              one row a file, with the stat that lets an unchanged one be skipped
cards              topic, days and words of each card
card_words         which cards have a word; rare words show which cards may say the same
word_counts        how many cards have a word
uncompared_cards   cards that were not compared with the others yet
similar_cards      two cards that say the same, and how much
stated_values      the values that a file gives to things
links              which memory file points at which
verdicts           how many claims of a file have which verdict, by the last check
entries            tagged entries of daily logs
log_statements     lines of daily logs, by a key that similar lines share
read_sessions      how far each session was read
session_values     the values that sessions give to things
problems           what is wrong with a file, and where
other_documents    one row a document outside of the memory files
other_problems     credentials and planted orders in these, and where
"""

from __future__ import annotations

import os

from truekeep.core.derived_db import META_TABLE, Schema
from truekeep.core.formats import SURVEY
from truekeep.memory.file_scan import FILE_COLUMNS

SCHEMA = Schema(
    SURVEY,
    f"""
{META_TABLE}
CREATE TABLE files ({FILE_COLUMNS}, day TEXT NOT NULL, repository TEXT NOT NULL);
CREATE TABLE cards (
  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, key TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL,
  confirmed TEXT NOT NULL, words BLOB NOT NULL, category TEXT NOT NULL,
  description TEXT NOT NULL,
  tags TEXT NOT NULL                -- each on a line of its own, in lower case
);
CREATE INDEX cards_key ON cards(key);
CREATE TABLE card_words (word INTEGER NOT NULL, card INTEGER NOT NULL, PRIMARY KEY (word, card)) WITHOUT ROWID;
CREATE TABLE word_counts (word INTEGER PRIMARY KEY, cards INTEGER NOT NULL);
CREATE TABLE uncompared_cards (card INTEGER PRIMARY KEY);
CREATE TABLE similar_cards (
  one INTEGER NOT NULL, other INTEGER NOT NULL, likeness REAL NOT NULL, PRIMARY KEY (one, other)
) WITHOUT ROWID;
CREATE INDEX similar_cards_other ON similar_cards(other);
CREATE TABLE stated_values (
  file INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, value TEXT NOT NULL, line INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL
);
CREATE INDEX stated_values_file ON stated_values(file);
CREATE INDEX stated_values_subject ON stated_values(kind, subject, value);
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
CREATE TABLE log_statements (                -- statements of logs, by what similar ones share
  key INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, file, line)
) WITHOUT ROWID;
CREATE INDEX log_statements_file ON log_statements(file);
CREATE TABLE read_sessions (session TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE session_values (                 -- values that were named in sessions
  session TEXT NOT NULL, day TEXT NOT NULL, repository TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
  value TEXT NOT NULL, line INTEGER NOT NULL
);
CREATE INDEX session_values_session ON session_values(session);
CREATE TABLE problems (file INTEGER NOT NULL, line INTEGER NOT NULL, code TEXT NOT NULL, what TEXT NOT NULL);
CREATE INDEX problems_file ON problems(file);
CREATE TABLE other_documents ({FILE_COLUMNS});
CREATE TABLE other_problems (file INTEGER NOT NULL, line INTEGER NOT NULL, code TEXT NOT NULL, what TEXT NOT NULL);
CREATE INDEX other_problems_file ON other_problems(file);
""",
    required=("files", "cards", "problems", "other_documents"),
    pragmas="PRAGMA cache_size = -32768",
)


def stat_text(path: str) -> str:
    """A text that changes whenever a file is written or replaced, or a folder gains or loses an entry."""
    try:
        info = os.stat(path)
    except OSError:
        return "-"
    return f"{info.st_mtime_ns}.{info.st_size}.{info.st_ino}"
