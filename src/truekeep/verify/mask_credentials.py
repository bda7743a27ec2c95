"""Masks credentials in memory before it is shown, and caches which texts have none.

Importing the scanner and scanning a few texts costs as much CPU as the rest of a brief, and hooks must be fast.
"""

from __future__ import annotations

from contextlib import suppress

from truekeep import __version__
from truekeep.verify.cache import FactsCache, StoreDamaged
from truekeep.verify.results import digest_text


def mask_shown(text: str, facts: FactsCache) -> str:
    """Return the text with credentials masked and line numbers unchanged."""
    key = f"no-secret {digest_text(text)}"
    with suppress(StoreDamaged):
        if facts.answer(key) == __version__:  # another version may detect more formats
            return text
    from truekeep.text.secrets.scanner import mask_lines

    masked = mask_lines(text)
    if masked == text:
        with suppress(StoreDamaged):
            facts.remember(key, __version__)
    return masked
