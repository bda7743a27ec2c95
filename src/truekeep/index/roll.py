"""The roll of cards as the index has it: path, repository and day of each, without opening one of them."""

from __future__ import annotations

import os
from contextlib import closing

import apsw

from truekeep.index.schema import DAMAGE, Unusable, open_index
from truekeep.model import CARDS


def read_roll(path: str) -> list[tuple[str, str, str]] | None:
    """Path, repository and day of every card; None when there is no index that can be used."""
    if not os.path.exists(path):
        return None
    try:
        with closing(open_index(path, read_only=True)) as db:
            rows = db.execute(
                "SELECT path, repository, day FROM files WHERE store = 'cards' AND path GLOB ?", (f"{CARDS}/*",)
            )
            return [(str(card), str(repository), str(day)) for card, repository, day in rows]
    except (Unusable, OSError, apsw.Error, *DAMAGE):
        return None
