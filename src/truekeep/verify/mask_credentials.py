"""Memory as it may be shown: without credentials. A text that has none is known again by its digest.

Loading the scanner and reading a few texts costs as much CPU as all the rest of a brief, and a hook waits for it.
"""

from __future__ import annotations

from contextlib import suppress

from truekeep import __version__
from truekeep.verify.cache import FactsCache, StoreDamaged
from truekeep.verify.results import digest_text


def mask_shown(text: str, facts: FactsCache) -> str:
    """A text of memory as it may be shown: credentials masked, every line at its place."""
    key = f"no-secret {digest_text(text)}"
    with suppress(StoreDamaged):
        if facts.answer(key) == __version__:  # another version may know more formats
            return text
    from truekeep.text.secrets.scanner import mask_lines

    masked = mask_lines(text)
    if masked == text:
        with suppress(StoreDamaged):
            facts.remember(key, __version__)
    return masked
