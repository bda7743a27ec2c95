"""Which cards a prompt surely needs: by rare words alone, within milliseconds, and rather none than a doubtful one.

Loads neither the embedder nor the ranking of search. A word is rare when few cards have it; a card is needed when it
has a rare name of code that the prompt has, or most of the prompt's rare words. A card of another repository needs
more: the prompt names that repository and a rare word, or has two rare words, one of them a name of code.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable
from contextlib import closing
from typing import NamedTuple

import apsw

from truekeep.core.derived_db import UnusableDatabase
from truekeep.core.model import CARDS
from truekeep.core.sqlite import DAMAGE
from truekeep.search.index_schema import FIRST_TRANSCRIPT_ID, open_index
from truekeep.text.words import is_name, telling_words

_MOST_HINTS = 3
_MOST_WORDS = 24
_RARE_SHARE = 0.02
_RARE_AT_LEAST = 4  # chunks; in a small memory every word is in a large share of it
_ENOUGH_WORDS = 3
_SPOKEN = re.compile(r"\w[\w-]*")  # also words too short or too common to tell anything: names of repositories


_HAVING = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? AND rowid < ? LIMIT ?"
_CARDS_HAVING = (
    f"SELECT DISTINCT files.path, files.repository FROM ({_HAVING}) AS found JOIN chunks ON chunks.id = found.rowid"  # noqa: S608
    " JOIN files ON files.id = chunks.file_id"
    " WHERE files.store = 'cards' AND files.path GLOB ?"
)


class CardHint(NamedTuple):
    """A card that a prompt needs, and the words that say so."""

    path: str
    words: tuple[str, ...]
    is_elsewhere: bool = False  # of another repository


def find_hints(path: str, prompt: str, *, repository: str, told: Container[str]) -> list[CardHint]:
    """The cards that this prompt needs and the session was not given yet; those of other repositories last."""
    words = telling_words(prompt, most=_MOST_WORDS)
    if not words or not os.path.exists(path):
        return []
    try:
        with closing(open_index(path, read_only=True)) as db:
            return _find(db, words, repository, told, frozenset(_SPOKEN.findall(prompt.casefold())))
    except (UnusableDatabase, OSError, apsw.Error, *DAMAGE):
        return []


def rare_words(path: str, words: Iterable[str]) -> set[str]:
    """Those of these words that occur in memory, but rarely; none without a usable index."""
    if not os.path.exists(path):
        return set()
    try:
        with closing(open_index(path, read_only=True)) as db:
            return {word for word in words if _is_rare(db, word, _limit(db))}
    except (UnusableDatabase, OSError, apsw.Error, *DAMAGE):
        return set()


def _limit(db: apsw.Connection) -> int:
    """The chunks that may have a word which counts as rare."""
    total = db.execute("SELECT count(*) FROM chunks WHERE id < ?", (FIRST_TRANSCRIPT_ID,)).get or 0
    return max(_RARE_AT_LEAST, int(total * _RARE_SHARE))


def _is_rare(db: apsw.Connection, word: str, limit: int) -> bool:
    return 0 < len(db.execute(_HAVING, (f'"{word}"', FIRST_TRANSCRIPT_ID, limit + 1)).fetchall()) <= limit


def _find(
    db: apsw.Connection, words: list[str], repository: str, told: Container[str], spoken: Container[str]
) -> list[CardHint]:
    limit = _limit(db)
    rare = 0
    matched: dict[tuple[str, str], list[str]] = defaultdict(list)
    for word in words:
        if not _is_rare(db, word, limit):
            continue
        rare += 1
        asked = (f'"{word}"', FIRST_TRANSCRIPT_ID, limit + 1)
        for found, owner in db.execute(_CARDS_HAVING, (*asked, f"{CARDS}/*")):
            matched[str(found), str(owner)].append(word)
    needed = []
    for (card, owner), said in matched.items():
        is_elsewhere = owner not in ("", repository)
        is_fit = _fits_elsewhere(said, rare, owner, spoken) if is_elsewhere else _is_needed(said, rare)
        if card not in told and is_fit:
            needed.append(CardHint(card, tuple(said), is_elsewhere))
    needed.sort(key=lambda hint: (hint.is_elsewhere, -sum(1 + is_name(word) for word in hint.words), hint.path))
    return needed[:_MOST_HINTS]


def _is_needed(said: list[str], rare: int) -> bool:
    names = sum(is_name(word) for word in said)
    return names > 0 or (len(said) >= _ENOUGH_WORDS and len(said) * 2 >= rare)


def _fits_elsewhere(said: list[str], rare: int, owner: str, spoken: Container[str]) -> bool:
    """Whether a card of another repository fits a prompt: the same names of code are often used in several."""
    is_owner_named = owner.rpartition("/")[2].casefold() in spoken
    names = sum(is_name(word) for word in said)
    if is_owner_named and said:
        return True
    return (names > 0 and len(said) > 1) or (len(said) >= _ENOUGH_WORDS and len(said) * 2 >= rare)
