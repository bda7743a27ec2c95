"""List cards from the index: path, repository and day, without opening one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

import apsw

from truekeep.core.derived_db import UnusableDatabase
from truekeep.core.model import CARDS, INDEX
from truekeep.core.sqlite import DAMAGE
from truekeep.search.index_schema import open_index

_CARDS = "FROM files WHERE store = 'cards' AND +path != ?"  # the plus: not by the index of all paths
_COUNT = "SELECT count(*) - EXISTS (SELECT 1 FROM files WHERE path = ?) FROM files WHERE store = 'cards'"


class CardList(NamedTuple):
    """The latest cards of some repositories, and the number of all cards."""

    cards: list[tuple[str, str, str]]  # path, repository, day
    total: int


def read_repositories(path: str, names: Sequence[str]) -> dict[str, str]:
    """The repositories of cards, by the names of their files; of those that the index does not know, nothing."""
    if not names or not os.path.exists(path):
        return {}
    asked = "SELECT path, repository FROM files WHERE path IN (SELECT value FROM json_each(?)) AND repository != ''"
    try:
        with closing(open_index(path, read_only=True)) as db:
            rows = list(db.execute(asked, (json.dumps([f"{CARDS}/{name}" for name in names]),)))
            return {str(card).rpartition("/")[2]: str(repository) for card, repository in rows}
    except (UnusableDatabase, OSError, apsw.Error, *DAMAGE):
        return {}


def read_card_list(path: str, *, repositories: set[str], limit: int) -> CardList | None:
    """At most `limit` cards of each repository, the latest first; None without a usable index."""
    if not os.path.exists(path):
        return None
    latest = f"SELECT path, repository, day {_CARDS} AND repository = ? ORDER BY day DESC, path LIMIT ?"
    try:
        with closing(open_index(path, read_only=True)) as db:
            rows = [row for name in sorted(repositories) for row in db.execute(latest, (INDEX, name, limit))]
            total = db.execute(_COUNT, (INDEX,)).get
            return CardList([(str(card), str(repository), str(day)) for card, repository, day in rows], int(total or 0))
    except (UnusableDatabase, OSError, apsw.Error, *DAMAGE):
        return None
