"""Classifies the lines of a Markdown text as heading, code, blank or text, without loading a parser.

Follows CommonMark where it matters for headings: a line in a fence, a comment, an HTML block or a list item is never a
heading of the text. `markdown.outline` gives the same result with a parser. A doubtful line is text here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

Kind = Literal["heading", "code", "blank", "text"]

MAX_QUOTE_DEPTH = 8  # quotations in quotations that are read
MAX_ITEMS_PER_LINE = 40  # list items that one line begins; an endless line of dashes would take too long
_MARKER = re.compile(r"(?:[-*+]|(\d{1,9})[.)])(?: +|\Z)")
_REFERENCE = r"\[[^\[\]\\]+\]: *(?:<[^<>]*>|[^ <]\S*)(?: +(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))? *\Z"  # where a link goes
_RULE = re.compile(r"(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})\Z")
_LOOKALIKE = r"((?:\s|[-*+]\s|\d{1,9}[.)]\s|>)*)(?=#{1,6}(?:\s|\Z))"
_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|"
    "tr|track|ul"
)


class MarkdownLine(NamedTuple):
    """One line."""

    text: str
    kind: Kind
    level: int = 0  # of a heading
    title: str = ""
    is_closing: bool = False  # it ends a fence


def iter_lines(text: str) -> Iterator[MarkdownLine]:
    """The lines of a text with plain newlines. A line that only looks like a heading gets a backslash in front."""
    scan = Scan()
    for line in text.split("\n"):
        yield scan.see(line)


def open_fence(text: str) -> str:
    """The marks of the fence that is open at the end of a text, with their indent; empty without one."""
    scan = Scan()
    for line in text.split("\n"):
        scan.see(line)
    return " " * scan.floor + scan.fence if scan.fence else ""


class Scan:
    """Reads lines one after the other and remembers which blocks are open after the last one."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._quote: Scan | None = None  # the same for the quotation that the line before was in
        self.fence = ""  # its marks
        self.floor = 0  # the column that a fence counts from: in a list item, where its content begins
        self._html: re.Pattern[str] | None = None  # what ends an HTML block
        self._item = 0  # where the content of the outermost list item begins
        self._inner = 0  # the same of the last one inside of it
        self._is_empty_item = False
        self.is_paragraph = False  # a paragraph that the next line may go on with

    @property
    def is_html(self) -> bool:
        """Whether an HTML block or a comment is open."""
        return self._html is not None

    def see(self, line: str) -> MarkdownLine:
        if line[:2] == "- " and (self._item or not (self.fence or self._html)):
            first = line[2:3]
            if first.isalpha() or (first == "[" and "]:" not in line):
                return self._see_plain_item(line)
        flat = line.expandtabs(4) if "\t" in line else line
        bare = flat.lstrip(" ")
        column = len(flat) - len(bare)
        if not bare:
            return self._see_blank(line)
        if self._item and column < self._item and not self._goes_on(bare, column):
            self._item = 0
            self.is_paragraph = False
            self._html = self._quote = None
        if self.fence and column < self.floor:
            self.fence, self.floor = "", 0  # it ends with the item that it is in
        if self.fence:
            return self._see_code(line, bare, column)
        self._is_empty_item = False
        if self._html is not None:
            if self._html.search(line):
                self._html = None
            return _text(line)
        return self._see_content(line, bare, column) if self._item else self._see_top(line, bare, column)

    def _see_plain_item(self, line: str) -> MarkdownLine:
        """A fast path for list items without indent that begin with a word or a link, as in an index."""
        self.fence, self.floor, self._html, self._quote = "", 0, None, None
        self._item = self._inner = 2
        self._is_empty_item = False
        self.is_paragraph = True
        return MarkdownLine(line, "text")

    def _see_blank(self, line: str) -> MarkdownLine:
        if self._is_empty_item:
            self._item = 0
            self._is_empty_item = False
        if self._html is not None and self._html is _html()[2]:
            self._html = None
        self.is_paragraph = False
        self._quote = None
        return MarkdownLine(line, "code" if self.fence else "blank")

    def _see_code(self, line: str, bare: str, column: int) -> MarkdownLine:
        is_closing = column - self.floor <= 3 and closes_fence(bare, self.fence)
        if is_closing:
            self.fence, self.floor = "", 0
        return MarkdownLine(line, "code", is_closing=is_closing)

    def _goes_on(self, bare: str, column: int) -> bool:
        """Whether a line left of an item's content still belongs to the paragraph in it."""
        return self.is_paragraph and not self.fence and (column > 3 or not begins(bare))

    def _see_content(self, line: str, bare: str, column: int) -> MarkdownLine:
        """The content of a list item: never a heading of the text, but perhaps code."""
        for _ in range(MAX_ITEMS_PER_LINE):
            if not (width := item_width(bare)):
                break
            column += width
            self._inner = column
            bare = bare[width:]
        column += len(bare) - len(bare.lstrip(" "))
        bare = bare.lstrip(" ")
        floor = self._inner if column >= self._inner else self._item
        is_code = column - floor > 3
        if not is_code and (marks := opening_fence(bare)):
            self.fence, self.floor = marks, floor
            self.is_paragraph = False
            return MarkdownLine(line, "code")
        if not is_code and bare[:1] == ">":
            return self._see_quotation(line, bare)
        self._quote = None
        if not is_code and bare[:1] == "<" and (ending := _html_ending(bare, is_paragraph=self.is_paragraph)):
            self._open_html(ending, line)
        else:
            is_more = self.is_paragraph
            is_words = bool(bare) and not begins(bare) and (is_more or not _is_reference(bare))
            self.is_paragraph = is_more if is_code and bare else is_words
        return _text(line)

    def _open_html(self, ending: re.Pattern[str], line: str) -> None:
        self._html = None if ending.search(line) else ending
        self.is_paragraph = False

    def _see_top(self, line: str, bare: str, column: int) -> MarkdownLine:
        if column > 3:
            return MarkdownLine(line, "text")  # code, or more of a paragraph
        first = bare[0]
        if first == ">":
            return self._see_quotation(line, bare)
        if first.isalpha():
            self._quote = self._quote if self.is_paragraph else None
            self.is_paragraph = True
            return MarkdownLine(line, "text")
        is_quoted = self._quote is not None and self.is_paragraph
        self._quote = self._quote if is_quoted and not begins(bare) else None
        if first == "#" and (level := _level_of(bare)):
            self.is_paragraph = False
            return MarkdownLine(line, "heading", level, title_of(bare[level:]))
        if first in "`~" and (marks := opening_fence(bare)):
            self.fence, self.floor = marks, 0
            self.is_paragraph = False
            return MarkdownLine(line, "code")
        if first == "<" and (ending := _html_ending(bare, is_paragraph=self.is_paragraph)) is not None:
            self._open_html(ending, line)
            return _text(line)
        is_underline = self.is_paragraph and not is_quoted and first in "=-" and not bare.rstrip(" ").strip(first)
        if is_underline or _RULE.match(bare):
            self.is_paragraph = False
            return _text(line)
        is_within = self.is_paragraph and not is_quoted
        if (marker := _MARKER.match(bare)) is not None and not (is_within and _cannot_interrupt(bare, marker)):
            self.is_paragraph = False
            self._item = self._inner = column + _content_at(marker)
            self._is_empty_item = len(bare.rstrip(" ")) == len(marker[0].rstrip(" "))
            return self._see_content(line, bare[_content_at(marker) :], self._item)
        self.is_paragraph = self.is_paragraph or not _is_reference(bare)
        return _text(line)

    def _see_quotation(self, line: str, bare: str) -> MarkdownLine:
        """A quotation. Its headings do not count, but the next line may continue a paragraph in it."""
        if self._depth < MAX_QUOTE_DEPTH:
            self._quote = self._quote or Scan(self._depth + 1)
            self._quote.see(bare[1:].removeprefix(" "))
        self.is_paragraph = self._quote is not None and self._quote.is_paragraph
        return _text(line)


def _content_at(marker: re.Match[str]) -> int:
    """The width of a list mark and the blanks behind it: up to four, else one."""
    bare = marker[0].rstrip(" ")
    blanks = len(marker[0]) - len(bare)
    return len(bare) + (blanks if 1 <= blanks <= 4 and marker.end() < len(marker.string) else 1)


def item_width(bare: str) -> int:
    """The offset of the content of the list item that a line begins; 0 if it begins none."""
    marker = _MARKER.match(bare)
    return 0 if marker is None or _RULE.match(bare) else _content_at(marker)


def _cannot_interrupt(bare: str, marker: re.Match[str]) -> bool:
    """Whether this does not begin a list because a paragraph is open."""
    is_empty = len(bare.rstrip(" ")) == len(marker[0].rstrip(" "))
    return is_empty or (marker[1] is not None and int(marker[1]) != 1)


def begins(bare: str) -> bool:
    """Whether a line begins a block, instead of continuing a paragraph."""
    if bare[0] == "#":
        return bool(_level_of(bare))
    if bare[0] in "`~":
        return bool(opening_fence(bare))
    if bare[0] == "<":
        return _html_ending(bare, is_paragraph=True) is not None
    return bare[0] == ">" or _RULE.match(bare) is not None or _MARKER.match(bare) is not None


def _is_reference(bare: str) -> bool:
    """Whether a line is a link reference definition, which is not a paragraph."""
    return bare[0] == "[" and re.match(_REFERENCE, bare) is not None


def _level_of(bare: str) -> int:
    title = bare.lstrip("#")
    level = len(bare) - len(title)
    return level if level <= 6 and title[:1] in ("", " ", "\t") else 0


def title_of(raw: str) -> str:
    """A heading's text without the closing #s that CommonMark allows."""
    text = raw.strip(" \t")
    if text.endswith("#"):
        bare = text.rstrip("#")
        if not bare or bare[-1] in " \t":
            return bare.rstrip(" \t")
    return text


def opening_fence(bare: str) -> str:
    """The marks of the code fence that a line opens; empty if it opens none. Words in three backticks are no fence.

    The caller strips what may be in front of a fence: an indent, and for some the marks of quotes and lists.
    """
    if bare[:3] not in ("```", "~~~"):
        return ""
    rest = bare.lstrip(bare[0])
    return "" if bare[0] == "`" and "`" in rest else bare[: len(bare) - len(rest)]


def closes_fence(bare: str, marks: str) -> bool:
    """Whether a line closes the fence that was opened by these marks."""
    bare = bare.rstrip(" \t\r")
    return len(bare) >= len(marks) and not bare.strip(marks[0])


class FenceReader:
    """Finds code fences line by line, where no other block matters."""

    def __init__(self) -> None:
        self.marks = ""  # of the open fence

    def see(self, bare: str) -> bool:
        """Whether a line belongs to a fence, as its first and last one do. The caller strips what may be in front."""
        if self.marks:
            if closes_fence(bare, self.marks):
                self.marks = ""
            return True
        self.marks = opening_fence(bare)
        return bool(self.marks)


def without_indent(line: str) -> str:
    """The line without up to three blanks; with more, it is code or belongs to a list item."""
    bare = line.lstrip(" ")
    return bare if len(line) - len(bare) <= 3 else line


def _html_ending(bare: str, *, is_paragraph: bool) -> re.Pattern[str] | None:
    """The pattern that ends the HTML block that a line begins; None if it begins none."""
    endings, opened, blank, tag = _html()
    match = opened.match(bare)
    if match is None:
        return blank if not is_paragraph and tag.match(bare) else None
    return endings[match.lastindex - 1] if match.lastindex else blank


@cache
def _html() -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """How CommonMark's HTML blocks end and begin, a blank line, and a tag alone on its line. Few texts need them."""
    words = r"script|pre|style|textarea"
    endings = (rf"</(?:{words})>", "-->", r"\?>", r"\]\]>", ">")
    opened = rf"<(?:({words})(?=\s|>|\Z)|(!--)|(\?)|(!\[CDATA\[)|(![A-Za-z])|/?(?:{_NAMES})(?=\s|/?>|\Z))"
    value = r"(?:[^\"'=<>`\x00-\x20]+|'[^']*'|\"[^\"]*\")"
    attribute = rf"\s+[A-Za-z_:][\w:.-]*(?:\s*=\s*{value})?"
    tag = rf"<(?:[A-Za-z][A-Za-z0-9-]*(?:{attribute})*\s*/?|/[A-Za-z][A-Za-z0-9-]*\s*)>\s*\Z"
    flags = re.IGNORECASE | re.ASCII
    return (
        tuple(re.compile(ending, flags) for ending in endings),
        re.compile(opened, flags),
        re.compile(r"\A\Z"),
        re.compile(tag, re.ASCII),
    )


def _text(line: str) -> MarkdownLine:
    """A text line, escaped if it looks like a heading."""
    if "#" in line and (match := re.match(_LOOKALIKE, line)) is not None:
        line = f"{match[1]}\\{line[match.end() :]}"
    return MarkdownLine(line, "text")
