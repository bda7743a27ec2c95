"""Masks credentials in memory before it is shown, and caches where texts have some.

Importing the scanner and scanning a few texts costs as much CPU as the rest of a brief, and hooks must be fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from truekeep import __version__
from truekeep.verify.cache import FactsCache, StoreDamaged
from truekeep.verify.results import digest_text

_Span = tuple[int, int, str]  # offsets of a credential, and the rule that found it


def mask_shown(text: str, facts: FactsCache) -> str:
    """Return the text with credentials masked and line numbers unchanged."""
    key = f"secrets {digest_text(text)}"
    with suppress(StoreDamaged):
        spans = _parse_spans(facts.answer(key) or "")
        if spans is not None:
            return _masked(text, spans)
    from truekeep.text.secrets.scanner import find_secrets, mask_lines

    masked = mask_lines(text)
    found = [(secret.start, secret.end, secret.rule) for secret in find_secrets(text)] if masked != text else []
    if _masked(text, found) == masked:
        with suppress(StoreDamaged):
            facts.remember(key, "\n".join((__version__, *(f"{start} {end} {rule}" for start, end, rule in found))))
    return masked


def _parse_spans(answer: str) -> list[_Span] | None:
    """The spans of an answer; None if there is none of this version. Another version may detect more formats."""
    version, *rows = answer.split("\n")
    if version != __version__:
        return None
    parts = (row.split(" ", 2) for row in rows)
    return [(int(start), int(end), rule) for start, end, rule in parts]


def _masked(text: str, spans: Sequence[_Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, rule in spans:
        mark = f"[secret: {rule}]"
        pieces += (text[at:start], mark, f"\n{mark}" * text.count("\n", start, end))
        at = end
    return "".join((*pieces, text[at:]))
