"""How alike the meanings of two texts are, by the vectors that come with truekeep: no key, no download, no index."""

from __future__ import annotations

import os
from functools import lru_cache

from truekeep.search.embedder_choice import LEXICON_FILE
from truekeep.search.embedders import EmbedderFailed
from truekeep.search.embedders.static import Static

MAX_CHARACTERS = 4_000  # of a text that are compared


def likeness_of_meaning(one: str, other: str, *, state: str) -> float:
    """The cosine of two texts; 1 if there are no vectors, so that words alone decide. `state`: the state folder."""
    embedder = _embedder(os.path.join(state, LEXICON_FILE))
    if embedder is None:
        return 1.0
    first, second = embedder.embed([one[:MAX_CHARACTERS], other[:MAX_CHARACTERS]])
    return sum(x * y for x, y in zip(first, second, strict=True))


@lru_cache(maxsize=2)
def _embedder(lexicon: str) -> Static | None:
    try:
        return Static(lexicon=lexicon)
    except EmbedderFailed:
        return None
