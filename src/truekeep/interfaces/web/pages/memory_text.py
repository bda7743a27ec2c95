"""A memory file as text for its page: lines with their claims marked, rendered Markdown, frontmatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from truekeep.interfaces.web.markdown import ClaimMark, render_markdown
from truekeep.memory.frontmatter import Frontmatter
from truekeep.text.secrets.scanner import mask_lines, withhold
from truekeep.verify.verdict import Verdict

if TYPE_CHECKING:
    from truekeep.interfaces.web.pages.memory_lookup import MemoryFilePage
    from truekeep.memory.history import BlamedLine

MAX_CLAIMS = 100
MAX_RENDERED_LINES, MAX_RENDERED_CHARACTERS = 400, 20_000  # on one page of a rendered file
MAX_SOURCE_LINES, MAX_LINE_CHARACTERS = 500, 2_000  # on one page of lines, and in one line


class LinePiece(NamedTuple):
    """A part of a line; if it is a claim, with its number and verdict."""

    text: str
    number: int = 0
    verdict: str = ""
    note: str = ""


class TextRow(NamedTuple):
    """A line of a file as text."""

    number: int
    pieces: tuple[LinePiece, ...]
    is_wanted: bool
    by: BlamedLine | None


def parse_lines(text: str) -> tuple[int, int] | None:
    """A line or a range of lines in an address: 5, 5-9."""
    first, _, last = text.partition("-")
    if not (first.isascii() and first.isdigit() and len(first) < 9):
        return None
    end = int(last) if last.isascii() and last.isdigit() and len(last) < 9 else int(first)
    return max(1, int(first)), max(1, int(first), end)


def last_rendered_line(lines: Sequence[str], first: int) -> int:
    """The last line of a rendered page that begins with this line."""
    size = 0
    for number in range(first, min(len(lines), first + MAX_RENDERED_LINES - 1) + 1):
        size += len(lines[number - 1]) + 1
        if size > MAX_RENDERED_CHARACTERS and number > first:
            return number - 1
    return min(len(lines), first + MAX_RENDERED_LINES - 1)


def render_body(file: MemoryFilePage, base: str) -> Markup:
    """The rendered text of a file without its frontmatter; of a long one the beginning."""
    text = "\n".join(mask_lines(file.text or "").split("\n")[file.first - 1 :])
    return render_markdown(text[:MAX_RENDERED_CHARACTERS], path=file.path, base=base)


def shown_fields(front: Frontmatter) -> list[tuple[str, str]]:
    """The frontmatter for a table; nested values as they are written."""
    return [
        (field.key, withhold(front.text(field.key) or field.raw.partition(":")[2].strip())[:400])
        for field in front.fields
        if field.key
    ]


def source_rows(
    text: str,
    lines: Sequence[str],
    first: int,
    last: int,
    verdicts: Sequence[Verdict],
    wanted: tuple[int, int] | None,
    by: Sequence[BlamedLine],
) -> list[TextRow]:
    """The lines of a page with their claims marked."""
    claims: dict[int, list[tuple[int, Verdict]]] = {}
    for number, item in enumerate(verdicts[:MAX_CLAIMS], 1):
        claims.setdefault(item.claim.line, []).append((number, item))
    start = sum(len(line) + 1 for line in lines[: first - 1])
    rows = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        is_wanted = wanted is not None and wanted[0] <= number <= wanted[1]
        pieces = _pieces(text, line, start, claims.get(number, ()))
        rows.append(TextRow(number, pieces, is_wanted, by[number - 1] if number <= len(by) else None))
        start += len(line) + 1
    return rows


def _pieces(text: str, line: str, start: int, claims: Sequence[tuple[int, Verdict]]) -> tuple[LinePiece, ...]:
    end, at = start + min(len(line), MAX_LINE_CHARACTERS), start
    pieces = []
    for number, item in sorted(claims, key=lambda claim: claim[1].claim.start):
        claim = item.claim
        if claim.start < at or claim.end > end:
            continue  # inside another claim, or beyond what is shown
        pieces += [
            LinePiece(text[at : claim.start]),
            LinePiece(text[claim.start : claim.end], number, item.verdict, _note(item)),
        ]
        at = claim.end
    pieces.append(LinePiece(text[at:end]))
    if len(line) > MAX_LINE_CHARACTERS:
        pieces.append(LinePiece(f" … {len(line) - MAX_LINE_CHARACTERS} more characters"))
    return tuple(piece for piece in pieces if piece.text)


def claim_mark(verdict: Verdict, number: int, first: int, line: str) -> ClaimMark:
    """A claim for the renderer. The backticks before it show whether it is inline code."""
    claim = verdict.claim
    is_code = bool(line[: max(0, claim.column - 1)].count("`") % 2)
    return ClaimMark(claim.line - first + 1, claim.text, verdict.verdict, _note(verdict), f"claim-{number}", is_code)


def _note(verdict: Verdict) -> str:
    place = f" (now {verdict.place})" if verdict.verdict == "moved" and verdict.place else ""
    return f"{verdict.why}{place}"
