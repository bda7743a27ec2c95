"""The headings, fences and comments of Markdown, as CommonMark defines them.

Follows CommonMark: a heading inside a code fence or a comment is text. Plain files take a single pass with one
pattern; a file with constructs that need a real parser (indented fences, HTML blocks) is given to markdown-it-py. A
property test holds the two to the same answer. Nothing here knows what a handoff is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from truekeep.text.markdown_lines import title_of

# Beyond this, a text that needs the real parser is refused instead: its worst cases are not linear.
PARSER_LIMIT = 200_000

_MAY_COUNT = re.compile(r"^ {0,3}((?:#|```|~~~|<).*)", re.MULTILINE)  # a line that may matter to an outline
_WRAPPERS = frozenset(("", "md", "markdown", "text", "txt", "yaml", "yml"))  # a fence of code is content
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_UNDERLINE = re.compile(r"[ \t]*(?:=+|-+)[ \t]*\Z")


class TooComplex(Exception):
    """The text is too large for the parser that its constructs need."""


class Heading(NamedTuple):
    """A heading at the top level of a text."""

    level: int
    text: str
    start: int  # offset of its line
    end: int  # offset behind its line
    line: int  # 1-based


class HeadingOutline(NamedTuple):
    """The top-level headings of a text, and where a fence or comment was opened and never closed."""

    headings: tuple[Heading, ...]
    open_at: int | None  # line of an unclosed fence or comment


def outline(text: str) -> HeadingOutline:
    """The top-level ATX headings of a text with plain newlines."""
    headings: list[Heading] = []
    fence = ""
    opened = counted = behind = 0
    number = 1
    for match in _MAY_COUNT.finditer(text):
        start, end = match.span()
        if start < behind:
            continue  # inside a comment
        number += text.count("\n", counted, start)
        counted = start
        bare = match[1]
        is_indented = end - start > len(bare)
        kind = bare[0]
        if kind in ("`", "~"):
            rest = bare.lstrip(kind)
            marks = len(bare) - len(rest)
            if fence:
                if kind == fence[0] and marks >= len(fence) and not rest.strip(" \t"):
                    fence = ""
            elif kind == "~" or "`" not in rest:
                if is_indented:
                    return _parsed_outline(text)
                fence, opened = kind * marks, number
        elif fence:
            continue
        elif kind == "#":
            title = bare.lstrip("#")
            level = len(bare) - len(title)
            if level > 6 or title[:1] not in ("", " ", "\t"):
                continue
            if is_indented:
                return _parsed_outline(text)
            headings.append(Heading(level, title_of(title), start, min(end + 1, len(text)), number))
        elif bare[1:2].isalpha() or bare[1:2] in ("/", "?", "!"):
            if is_indented or not bare.startswith("<!--"):
                return _parsed_outline(text)
            if "-->" not in bare:
                close = text.find("-->", end)
                if close < 0:
                    return HeadingOutline(tuple(headings), number)
                behind = text.find("\n", close)
                if behind < 0:
                    break
    return HeadingOutline(tuple(headings), opened if fence else None)


def underlines(text: str) -> list[tuple[int, int]]:
    """The lines, from 0, that turn the line above them into a heading, with its level; also in lists."""
    lines = text.split("\n")
    if not any(above.strip() and is_underline(line) for above, line in pairwise(lines)):
        return []
    return [
        (last - 1, 1 if markup == "=" else 2)
        for kind, markup, _, last in _blocks(text)
        if kind == "heading_open" and markup in ("=", "-") and not lines[last - 1].lstrip(" \t").startswith(">")
    ]


def is_underline(line: str) -> bool:
    """Whether a line would turn a paragraph above it into a heading."""
    return line.lstrip(" \t")[:1] in ("=", "-") and _UNDERLINE.match(line) is not None


def fenced_lines(text: str, *, also_indented: bool = False) -> set[int]:
    """The lines, from 0, of closed code fences, and of indented code if asked for; also in lists."""
    lines = text.split("\n")
    found: set[int] = set()
    for kind, markup, first, last in _blocks(text):
        is_closed = kind == "fence" and _fence_closes("\n".join(lines[first:last]), markup)
        if is_closed or (also_indented and kind == "code_block"):
            found.update(range(first, last))
    return found


def _blocks(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Every block of a text at any depth: its kind, its marks, its first line and the one behind it, from 0."""
    if len(text) > PARSER_LIMIT:
        raise TooComplex
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    for token in parser.parse(text):
        if token.map is not None:
            yield token.type, token.markup, token.map[0], token.map[1]


def _parsed_outline(text: str) -> HeadingOutline:
    if len(text) > PARSER_LIMIT:
        raise TooComplex
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    starts = _line_starts(text)
    headings: list[Heading] = []
    open_at: int | None = None
    for token in parser.parse(text):
        if token.map is None or token.level:
            continue  # what is open in a list or a quotation ends with it
        first, last = token.map
        if token.type == "heading_open" and token.markup.startswith("#"):
            raw = text[starts[first] : starts[first + 1]].strip(" \t\n").lstrip("#")
            headings.append(Heading(int(token.tag[1]), title_of(raw), starts[first], starts[first + 1], first + 1))
        elif (token.type == "fence" and not _fence_closes(text[starts[first] : starts[last]], token.markup)) or (
            token.type == "html_block" and token.content.lstrip(" ").startswith("<!--") and "-->" not in token.content
        ):
            open_at = open_at or first + 1
    return HeadingOutline(tuple(headings), open_at)


def _fence_closes(block: str, markup: str) -> bool:
    lines = block.rstrip("\n").split("\n")
    last = lines[-1].strip(" \t>")
    return len(lines) > 1 and len(last) >= len(markup) and not last.strip(markup[0])


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    starts.append(len(text))
    starts.append(len(text))
    return starts


def peel_fence(text: str) -> str:
    """The text without a code fence around all of it, which models like to add."""
    stripped = text.strip("\n \t")
    opened = _FENCE.match(stripped)
    if not opened:
        return text
    marks, info = opened.groups()
    if info.strip().casefold() not in _WRAPPERS:
        return text
    lines = stripped.split("\n")
    for number, line in enumerate(lines[1:], start=1):
        bare = line.strip(" \t")
        if len(bare) >= len(marks) and not bare.strip(marks[0]) and len(line) - len(line.lstrip(" ")) <= 3:
            return "\n".join(lines[1:number]) + "\n" if number == len(lines) - 1 else text
    return text


def find_open_comment(text: str) -> int | None:
    """The start of a comment that is never closed; comments in code do not count."""
    if "<!--" not in text:
        return None
    shown = without_code(text)
    position = 0
    while (start := shown.find("<!--", position)) >= 0:
        before = shown[max(0, start - 20) : start]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            position = start + 4  # \\< is a plain character
            continue
        end = text.find("-->", start + 2)  # in a comment there is no code
        if end < 0:
            return start
        position = end + 3
    return None


def without_code(text: str) -> str:
    """The text with blanks instead of code, in fences and between backticks; offsets stay the same."""
    try:
        fenced = fenced_lines(text) if "```" in text or "~~~" in text else set()
    except TooComplex:
        fenced = set()
    lines = [" " * len(line) if number in fenced else line for number, line in enumerate(text.split("\n"))]
    return "".join(map(_without_spans, re.split(r"(\n[ \t]*\n)", "\n".join(lines))))


def _without_spans(paragraph: str) -> str:
    """A paragraph with blanks instead of the code between two equal runs of backticks."""
    runs = list(re.finditer("`+", paragraph))
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[number][0]), []).append(number)
    parts, position, number = [], 0, 0
    while number < len(runs):
        same = later[len(runs[number][0])]
        while same and same[-1] <= number:
            same.pop()
        if same:
            start, end = runs[number].end(), runs[same[-1]].start()
            parts += [paragraph[position:start], " " * (end - start)]
            position, number = end, same[-1]
        number += 1
    return "".join((*parts, paragraph[position:]))


def strip_comments(text: str) -> str:
    """The text without HTML comments; an unclosed one reaches to the end."""
    parts = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        parts.append(text[position:start])
        end = text.find("-->", start)
        if end < 0:
            return "".join(parts)
        position = end + 3
    parts.append(text[position:])
    return "".join(parts)
