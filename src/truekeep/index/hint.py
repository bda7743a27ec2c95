"""Which cards a prompt surely needs: by rare words alone, within milliseconds, and rather none than a doubtful one.

Loads neither the embedder nor the ranking of search. A word is rare when few cards have it; a card is needed when it
has a rare name of code that the prompt has, or most of the prompt's rare words.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Container
from contextlib import closing
from typing import NamedTuple

import apsw

from truekeep.index.schema import DAMAGE, TRANSCRIPTS_FROM, Unusable, open_index
from truekeep.model import CARDS
from truekeep.words import STOP

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,60}(?:[./:-][A-Za-z0-9_]{1,60}){0,6}|\b\d{4,5}\b")
_MOST_WORDS = 24
_RARE_SHARE = 0.02
_RARE_AT_LEAST = 4  # chunks; in a small memory every word is in a large share of it
_ENOUGH_WORDS = 3


_HAVING = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? AND rowid < ? LIMIT ?"
_CARDS_HAVING = (
    f"SELECT DISTINCT files.path FROM ({_HAVING}) AS found JOIN chunks ON chunks.id = found.rowid"  # noqa: S608
    " JOIN files ON files.id = chunks.file_id"
    " WHERE files.store = 'cards' AND files.path GLOB ? AND files.repository IN ('', ?)"
)


class Hint(NamedTuple):
    """A card that a prompt needs, and the words that say so."""

    path: str
    words: tuple[str, ...]


def find_hints(path: str, prompt: str, *, repository: str, told: Container[str], most: int = 3) -> list[Hint]:
    """The cards that this prompt needs and the session was not given yet; of this repository, or of none."""
    words = _words_of(prompt)
    if not words or not os.path.exists(path):
        return []
    try:
        with closing(open_index(path, read_only=True)) as db:
            return _find(db, words, repository, told, most)
    except (Unusable, OSError, apsw.Error, *DAMAGE):
        return []


def _words_of(prompt: str) -> list[str]:
    """The words of a prompt that can tell something, names of code first."""
    found = dict.fromkeys(match[0] for match in _WORD.finditer(prompt[:8_000]))
    telling = [word for word in found if _is_name(word) or (len(word) > 3 and word.lower() not in STOP)]
    return sorted(telling, key=lambda word: (not _is_name(word), -len(word), word))[:_MOST_WORDS]


def _is_name(word: str) -> bool:
    return bool(re.search(r"[_./:]|\d|[a-z][A-Z]", word))


def _find(db: apsw.Connection, words: list[str], repository: str, told: Container[str], most: int) -> list[Hint]:
    total = db.execute("SELECT count(*) FROM chunks WHERE id < ?", (TRANSCRIPTS_FROM,)).get or 0
    limit = max(_RARE_AT_LEAST, int(total * _RARE_SHARE))
    rare = 0
    matched: dict[str, list[str]] = defaultdict(list)
    for word in words:
        asked = (f'"{word}"', TRANSCRIPTS_FROM, limit + 1)
        if not 0 < len(db.execute(_HAVING, asked).fetchall()) <= limit:
            continue
        rare += 1
        for (found,) in db.execute(_CARDS_HAVING, (*asked, f"{CARDS}/*", repository)):
            matched[str(found)].append(word)
    needed = [Hint(card, tuple(said)) for card, said in matched.items() if card not in told and _is_needed(said, rare)]
    return sorted(needed, key=lambda hint: (-sum(1 + _is_name(word) for word in hint.words), hint.path))[:most]


def _is_needed(said: list[str], rare: int) -> bool:
    names = sum(_is_name(word) for word in said)
    return names > 0 or (len(said) >= _ENOUGH_WORDS and len(said) * 2 >= rare)
