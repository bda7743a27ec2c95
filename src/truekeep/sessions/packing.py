"""Packs pieces of memory, each with a value, into the size that a harness accepts.

A section is one memory file or one kind of item; its pieces are paragraphs, list items or table rows. The most valuable
pieces that fit are taken and shown in their original order, quoted, under their file and age. Omitted pieces are
counted, with the command that shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.text.markdown_lines import iter_lines, open_fence
from truekeep.text.unicode import printable

CHARACTERS_A_TOKEN = 3.5  # estimate for Markdown with code; harnesses count tokens
LONGEST_PIECE = 1_200
_MAX_FOOTER_SHARE = 0.35  # of the space
_MIN_FILLER_SHARE = 0.4  # of the value of a piece that did not fit; less valuable pieces do not replace it
_ITEM = re.compile(r"\s{0,3}(?:[-*+]|\d{1,3}[.)])\s")
_RULER = r"\s*\|?[\s:|-]*---[\s:|-]*\Z"
_IMPORTANCE = re.compile(r"\[[\w -]{1,30}\|i=([01](?:\.\d{1,3})?)\]")


class Cap(NamedTuple):
    """The size that a harness accepts before it cuts, or that a text uses."""

    characters: int
    lines: int
    size: int  # bytes of UTF-8

    def plus(self, text: str) -> Cap:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return Cap(self.characters + len(text), self.lines + text.count("\n"), self.size + size)

    def holds(self, used: Cap) -> bool:
        return used.characters <= self.characters and used.lines <= self.lines and used.size <= self.size


CAPS = {
    "claude": Cap(8_000, 250, 24_000),  # accepts 10,000 characters of hook output
    "codex": Cap(8_000, 250, 9_400),  # accepts 2,500 tokens, counted as four bytes each
    "openclaw": Cap(18_000, 500, 54_000),  # 20,000 characters for one file
}


class BriefHeading(NamedTuple):
    """A heading or a table head at one place; equal text elsewhere is another one."""

    line: str
    at: int = 0


class BriefPiece(NamedTuple):
    """Text that is taken or omitted as a whole."""

    text: str  # one or more lines, without a newline at the end
    value: float
    under: tuple[BriefHeading, ...] = ()  # its headings, shown once for all their pieces
    short: str = ""  # a shorter text if it does not fit
    is_cut: bool = False  # the original is longer than any brief shows


class BriefSection(NamedTuple):
    """Pieces that belong together."""

    title: str
    more: str  # the command that shows all of it
    pieces: tuple[BriefPiece, ...]
    counted: int = 0  # items that belong here but were not made into pieces


class Brief(NamedTuple):
    """The text for an agent, and what was omitted."""

    text: str
    shown: tuple[tuple[str, int], ...]  # a section's title and the number of pieces shown
    left_out: tuple[tuple[str, int, str], ...]  # title, number of omitted or shortened pieces, command that shows them


def cap_for(harness: str, tokens: int | None) -> Cap:
    """The size for a harness, or for a number of tokens if that is less."""
    cap = CAPS.get(harness, CAPS["claude"])
    if tokens is None:
        return cap
    asked = int(tokens * CHARACTERS_A_TOKEN)
    if harness:
        return Cap(min(asked, cap.characters), cap.lines, cap.size)
    return Cap(asked, max(40, asked // 20), asked * 3)


def pack(sections: Sequence[BriefSection], cap: Cap, *, head: str) -> Brief:
    """Pack the brief into a size. Deterministic."""
    opening = f"{BEGIN_MARK} wake -->\n{unmarked(head)}\n"
    closing = f"{END_MARK} wake -->\n"
    longest = _foot([(part.title, 99_999, part.more) for part in sections], lambda _: True)
    foot = min(int(cap.characters * _MAX_FOOTER_SHARE), len(longest))
    room = Cap(cap.characters - foot, cap.lines - len(sections) - 3, cap.size - 2 * foot)
    used = Cap(0, 0, 0).plus(opening).plus(closing)
    taken: list[dict[int, str]] = [{} for _ in sections]
    missed = 0.0  # value of the best piece that did not fit
    headed: list[set[BriefHeading]] = [set() for _ in sections]
    order = sorted(
        (
            (piece.value, at, number)
            for at, section in enumerate(sections)
            for number, piece in enumerate(section.pieces)
        ),
        key=lambda item: (-item[0], item[1], item[2]),
    )
    for value, at, number in order:
        if value < missed * _MIN_FILLER_SHARE:
            break  # leave some space rather than fill it with unimportant pieces
        section = sections[at]
        piece = section.pieces[number]
        title = "" if taken[at] else _titled(section)
        new = [heading for heading in piece.under if heading not in headed[at]]
        for text in (piece.text, piece.short):
            needed = title + _quoted("\n".join((*(heading.line for heading in new), text)))
            if text and room.holds(after := used.plus(needed)):
                used = after
                taken[at][number] = text
                headed[at].update(new)
                break
        else:
            missed = max(missed, value)
    body = "".join(_rendered(section, chosen) for section, chosen in zip(sections, taken, strict=True) if chosen)
    left_out = tuple(
        (section.title, count, section.more)
        for section, chosen in zip(sections, taken, strict=True)
        if (count := sum(_is_left(piece, chosen.get(at)) for at, piece in enumerate(section.pieces)) + section.counted)
    )
    shown = tuple((section.title, len(chosen)) for section, chosen in zip(sections, taken, strict=True) if chosen)
    ending = _foot(left_out, lambda text: cap.holds(used.plus(text)))
    return Brief(opening + body + ending + closing, shown, left_out)


def _is_left(piece: BriefPiece, shown: str | None) -> bool:
    return shown is None or piece.is_cut


def _titled(section: BriefSection) -> str:
    return f"\n## {unmarked(section.title)}\n"


def _rendered(section: BriefSection, chosen: Mapping[int, str]) -> str:
    lines = []
    headed: set[BriefHeading] = set()
    for number, piece in enumerate(section.pieces):
        if number not in chosen:
            continue
        lines += [heading.line for heading in piece.under if heading not in headed]
        headed.update(piece.under)
        lines.append(chosen[number])
    return _titled(section) + _quoted("\n".join(lines))


def _quoted(text: str) -> str:
    """The text as a Markdown quotation, so that it is not taken for truekeep's own words."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")  # many readers treat it as a line end
    return "".join(f"> {line}\n" if line.strip() else ">\n" for line in unmarked(text).split("\n"))


def unmarked(text: str) -> str:
    """The text without truekeep's marks, so that it cannot end the brief or begin another."""
    return text.replace("<!--", "<!-").replace("-->", "->") if "<!--" in text or "-->" in text else text


# Invisible characters that str.isprintable() accepts, in UTF-8: fillers, and unusual variation selectors.
_UNSEEN = (
    *(b"\xf3", b"\xe3\x85\xa4", b"\xe2\xa0\x80", b"\xef\xbe\xa0", b"\xe1\x85\x9f", b"\xe1\x85\xa0"),
    *(b"\xcd\x8f", b"\xef\xb8"),
)
_STYLE, _USUAL = b"\xef\xb8\x8f", ("\n", "\t", "\xa0")


def visible(text: str) -> str:
    """The text with invisible characters and terminal codes escaped."""
    bare = text
    for usual in _USUAL:
        bare = bare.replace(usual, "")
    is_plain = bare.isprintable()
    if is_plain and not bare.isascii():
        data = bare.encode()
        is_plain = _STYLE * 2 not in data and not any(unseen in data.replace(_STYLE, b"") for unseen in _UNSEEN)
    if is_plain:
        return text
    return printable(text, newlines=True)


def _foot(left_out: Sequence[tuple[str, int, str]], fits: Callable[[str], bool]) -> str:
    """The list of omitted parts with the commands that show them, as far as it fits."""
    if not left_out:
        return ""
    head = "\nLeft out here:\n"
    rest = "- and more: `truekeep wake --budget 50000`\n"
    lines = [f"- {count} of {unmarked(title.partition(' (')[0])}: `{more}`\n" for title, count, more in left_out]
    if fits(whole := head + "".join(lines)):
        return whole
    for number in range(len(lines) - 1, -1, -1):
        if fits(text := head + "".join(lines[:number]) + rest):
            return text
    return ""


# --- Markdown into pieces --------------------------------------------------------------------------------------------


def cut(text: str, value: Callable[[str, int, int], float], *, without: Sequence[str] = ()) -> tuple[BriefPiece, ...]:
    """Split a Markdown text into pieces; `value` gets a piece's text, its number and the number of pieces.

    The first level-one heading is the file's title and is dropped. `without` names headings whose parts are dropped.
    """
    blocks = _blocks(text, tuple(name.casefold() for name in without))
    for number in range(len(blocks) - 1, 0, -1):  # consecutive paragraphs stay separate
        (above, over), (block, under) = blocks[number - 1], blocks[number]
        if over == under and not block.startswith("|") and not _ITEM.match(block) and not _ITEM.match(above):
            blocks[number] = (f"\n{block}", under)
    return tuple(
        BriefPiece(_shortened(block), value(block, number, len(blocks)), under, is_cut=len(block) > LONGEST_PIECE)
        for number, (block, under) in enumerate(blocks)
    )


def _blocks(text: str, without: tuple[str, ...]) -> list[tuple[str, tuple[BriefHeading, ...]]]:
    """Paragraphs, list items, table rows and fences, each with the headings above it."""
    found: list[tuple[str, tuple[BriefHeading, ...]]] = []
    path: list[tuple[int, BriefHeading]] = []
    headings = 0
    block: list[str] = []
    is_table = is_skipped = False

    def end() -> None:
        if block and not is_skipped and any(line.strip() for line in block):
            found.append(("\n".join(block).strip("\n"), tuple(heading for _, heading in path)))
        block.clear()

    for line, kind, level, title, is_closing in iter_lines(text):
        if kind == "code":
            block.append(line)  # a fence below a paragraph or item belongs to it
            if is_closing:
                end()
            continue
        if kind == "heading":
            end()
            is_table = False
            path = [item for item in path if item[0] < level and item[0] < 9]
            names = (title, *(_bare(over.line) for _, over in path))
            is_skipped = any(name.casefold() in without for name in names)
            if level > 1:
                headings += 1
                path.append((level, BriefHeading(f"{'#' * min(6, max(3, level + 1))} {title}", headings)))
            continue
        if kind == "blank" or not line.strip():
            end()
            if is_table:
                path = [item for item in path if item[0] < 9]
            is_table = False
            continue
        if _ITEM.match(line):
            end()
        elif line.lstrip().startswith("|"):
            if len(block) == 1 and re.match(_RULER, line):
                path = [item for item in path if item[0] < 9]
                headings += 1
                path += [(9, BriefHeading(f"{block.pop()}\n{line}", headings))]
                is_table = True
                continue
            if is_table:
                end()
        block.append(line)
    end()
    return found


def _bare(heading: str) -> str:
    return heading.lstrip("# ")


def _shortened(block: str) -> str:
    if len(block) <= LONGEST_PIECE:
        return block
    end = max(block.rfind(" ", 0, LONGEST_PIECE), block.rfind("\n", 0, LONGEST_PIECE), LONGEST_PIECE // 2)
    kept = block[:end].rstrip() + " […]"
    fence = open_fence(kept)
    return f"{kept}\n{fence}" if fence else kept


def importance(text: str) -> float | None:
    """The value of an importance tag such as [decision|i=0.9]; None if there is none."""
    match = _IMPORTANCE.search(text)
    return min(1.0, float(match[1])) if match else None
