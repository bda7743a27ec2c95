"""Templates of HTML, Vue, Svelte and Astro: only the scripts in them are code."""

from __future__ import annotations

from truekeep.verify.languages.lexer import BLANK, repaint, without_comments
from truekeep.verify.languages.patterns import Patterns

_PATTERNS = Patterns({"script": rb"(?i)<(script|style)\b[^<>]*+>((?:[^<]++|<(?!/\1))*+)"})


def clean_markup(data: bytes) -> bytes:
    """Blank the comments of a template, and of the scripts and styles in it."""
    parts: list[bytes] = []
    at = 0
    for match in _PATTERNS["script"].finditer(data):
        parts.append(repaint(data[at : match.start(2)], "html", without_comments))
        language = "css" if match[1].lower() == b"style" else "javascript"
        parts.append(repaint(match[2], language, without_comments))
        at = match.end(2)
    parts.append(repaint(data[at:], "html", without_comments))
    return b"".join(parts)


def only_scripts(cleaned: bytes) -> bytes:
    """The scripts of a template where they stand, and blanks instead of the rest."""
    parts: list[bytes] = []
    at = 0
    for match in _PATTERNS["script"].finditer(cleaned):
        is_script = match[1].lower() == b"script"
        parts += (cleaned[at : match.start(2)].translate(BLANK), match[2] if is_script else match[2].translate(BLANK))
        at = match.end(2)
    return b"".join((*parts, cleaned[at:].translate(BLANK)))
