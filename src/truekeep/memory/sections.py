"""The `##` sections of a Markdown file: find and replace them, and make texts safe to be put in one. Text only.

What stands below a heading of ours may be anything that an agent wrote. An open fence or an HTML block in it would take
in every heading behind it, so a text is closed or escaped before it is written: the next reader finds the headings, and
sees every word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from truekeep.core.errors import BadInput
from truekeep.text.markdown import (
    Heading,
    HeadingOutline,
    TooComplex,
    fenced_lines,
    find_open_comment,
    is_underline,
    outline,
    underlines,
)
from truekeep.text.markdown_lines import closes_fence, opening_fence, without_indent

_LINE_END = re.compile(r"\r\n?")
_MARKS = re.compile(r"`+")
_INDENT = re.compile(r" {0,3}(?=<)")
_ITEM = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\Z))+")
_LIST_MARKS = re.compile(r"\A {0,3}(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_TAG = re.compile(r"</?[a-z]", re.IGNORECASE)
_BLANK = re.compile(r"\A\s*\Z")
NEVER_CODE_INDENT = 1_000_000
_FRONT = re.compile(r"\A---\n.*?\n---[ \t]*\n", re.DOTALL)
_STAMP = re.compile(r"Updated \d{4}-\d{2}-\d{2} \d{2}:\d{2}\r?\Z")
# CommonMark's HTML blocks that a blank line does not end: how they open, and what closes them.
_HTML = tuple(
    (re.compile(opened, re.IGNORECASE), re.compile(closed, re.IGNORECASE))
    for opened, closed in (
        (r"<(?:script|pre|style|textarea)(?:[\s>]|\Z)", r"</(?:script|pre|style|textarea)>"),
        (r"<!--", r"-->"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", r"\]\]>"),
        (r"<![a-z]", r">"),
    )
)


def plain_newlines(text: str) -> str:
    """A text with all line ends as newlines, as memory has them."""
    return _LINE_END.sub("\n", text)


def newline_of(text: str) -> str:
    """The line end that most lines of a file have."""
    if "\r" not in text:  # looking for one character is ten times as fast as counting
        return "\n"
    windows = text.count("\r\n")
    return "\r\n" if windows > text.count("\n") - windows else "\n"


def iter_lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text, each with whether it belongs to a code fence."""
    fence = ""
    for line in text.split("\n"):
        marks = _fence_in(line, fence)
        yield line, bool(fence or marks)
        fence = "" if fence and marks else fence or marks


def _fence_in(line: str, fence: str) -> str:
    """The marks of a fence that a line opens; within one, of the fence that it closes."""
    bare = without_indent(line)
    if not fence:
        return opening_fence(bare)
    return fence if closes_fence(bare.rstrip(), fence) else ""


# --- A text below a heading ------------------------------------------------------------------------------------------


def within(text: str, below: int = 2) -> str:
    """A text made safe for a place below a heading: its own headings become deeper, and nothing in it stays open.

    This is true for Markdown parsers and for readers of single lines, such as grep or a model.
    """
    text = _without_underlines(plain_newlines(text).strip())
    is_open = any(kind == "open" for _, _, kind, _ in _iter_blocks(text.split("\n")))
    for draft in (_closed(text), text) if is_open else (text, _closed(text)):
        fit = _deepened(_without_underlines(draft), below)
        if _is_safe_below(fit, below):
            return fit
    marks = "`" * max([3, *(len(run) + 1 for run in _MARKS.findall(text))])
    return f"{marks}text\n{text}\n{marks}"


def _is_safe_below(text: str, below: int) -> bool:
    """Whether a text leaves the headings around it intact and adds none of its own."""
    whole = f"## a\n\n{text}\n\n## b\n"
    seen = _outline(whole)
    if seen is None or seen.open_at is not None or find_open_comment(text) is not None or _underlines(whole):
        return False
    return [heading.text for heading in seen.headings if heading.level <= below] == ["a", "b"]


def _deepened(text: str, below: int) -> str:
    """The text with every line that looks like a heading of these levels made deeper, except code in closed fences."""
    looks = re.compile(rf"[ \t]*(#{{1,{below}}})(?=[ \t]|\Z)")
    lines = text.split("\n")
    found = [
        (number, match, kind == "code")
        for number, line, kind, most in _iter_blocks(lines)
        if (match := looks.match(line)) is not None and _indent(line) < most
    ]
    # Code is what everyone takes for it: a parser, who knows lists and HTML, and who knows fences alone.
    code = _fenced_lines(text) if any(is_code for _, _, is_code in found) else set()
    plain = _plain_code(lines) if code else set()
    for number, match, is_code in found:
        if not (is_code and number in code and (number in plain or _indent(match.string) > 3)):
            lines[number] = f"{match.string[: match.start(1)]}{'#' * (below + 1)}{match.string[match.end(1) :]}"
    return "\n".join(lines)


def _plain_code(lines: Sequence[str]) -> set[int]:
    """The lines of closed fences, found without looking at other blocks."""
    found: set[int] = set()
    fence, first = "", 0
    for number, line in enumerate(lines):
        if fence and closes_fence(line.strip(), fence):
            found.update(range(first, number + 1))
            fence = ""
        elif not fence:
            fence, first = opening_fence(_LIST_MARKS.sub("", line)), number
    return found


def _iter_blocks(lines: Sequence[str]) -> Iterator[tuple[int, str, str, int]]:
    """Each line with its number, its kind as read line by line, and the indent from which it is code.

    Kinds: code in a closed fence, open behind a fence that nothing closes, or text.
    """
    opened: list[tuple[int, str, int]] = []
    fence, item, is_after_blank = "", 0, False
    closing: re.Pattern[str] | None = None
    for number, line in enumerate(lines):
        bare = line.strip()
        if fence:
            opened.append((number, line, NEVER_CODE_INDENT))
            if closes_fence(line.strip(), fence):
                yield from ((one, text, "code", most) for one, text, most in opened)
                fence, opened = "", []
            continue
        marked = _ITEM.match(line)
        if marked is not None and closing is None and _indent(line) < item + 4:
            item = len(marked[0].expandtabs(4))
        elif bare and is_after_blank and not _indent(line):
            item = 0
        is_after_blank = not bare
        rest = line[marked.end() :] if marked is not None else line
        if closing is not None:
            yield number, line, "text", NEVER_CODE_INDENT
            closing = None if closing.search(line) else closing
        elif _indent(line) < item + 4 and (fence := opening_fence(rest.lstrip(" \t"))):
            opened = [(number, line, item + 4)]
        else:
            closing = _html_end(rest.lstrip(" \t")) if _indent(line) < item + 4 else None
            yield number, line, "text", item + 4
            closing = None if closing is not None and closing.search(line) else closing
    yield from ((one, text, "open", most) for one, text, most in opened)


def _html_end(bare: str) -> re.Pattern[str] | None:
    """The pattern that ends the HTML block that a line opens."""
    if not bare.startswith("<"):
        return None
    return next((closed for opened, closed in _HTML if opened.match(bare)), _BLANK if _TAG.match(bare) else None)


def _indent(line: str) -> int:
    wide = line.expandtabs(4)
    return len(wide) - len(wide.lstrip(" "))


def _without_underlines(text: str) -> str:
    """The text with a blank line before each line that would turn the line above it into a heading."""
    found = _underlines(text)
    if not found:
        return text
    lines = text.split("\n")
    for number in sorted(found, reverse=True):
        last = number + 1
        while last < len(lines) and is_underline(lines[last]):  # it would be a heading's then
            last += 1
        for place in range(last - 1, number - 1, -1):
            lines.insert(place, "")
    return "\n".join(lines)


def _underlines(text: str) -> list[int]:
    try:
        return [number for number, _ in underlines(text)]
    except TooComplex:
        pairs = enumerate(pairwise(text.split("\n")), start=1)
        return [number for number, (above, line) in pairs if above.strip() and is_underline(line)]


def _fenced_lines(text: str) -> set[int]:
    try:
        return fenced_lines(text)
    except TooComplex:
        return set()


def _closed(text: str) -> str:
    """The text with its last fence closed, and without HTML blocks that are never closed."""
    lines = text.split("\n")
    last = [
        max((number for number, line in enumerate(lines) if closed.search(line)), default=-1) for _, closed in _HTML
    ]
    fence = indent = ""
    closing: re.Pattern[str] | None = None
    for number, line in enumerate(lines):
        if closing is not None:
            closing = None if closing.search(line) else closing
        elif marks := _fence_in(line, fence):
            indent = line[: len(line) - len(line.lstrip(" "))]
            fence = "" if fence else marks
        elif not fence and (match := _INDENT.match(line)) is not None:
            kind = next((kind for kind, (opened, _) in enumerate(_HTML) if opened.match(line, match.end())), None)
            if kind is not None and last[kind] < number:
                lines[number] = f"{match[0]}\\{line[match.end() :]}"
            elif kind is not None and not _HTML[kind][1].search(line):
                closing = _HTML[kind][1]
    return "\n".join([*lines, indent + fence] if fence else lines)


# --- The sections of a file ------------------------------------------------------------------------------------------


def sections_of(text: str) -> dict[str, str]:
    """The `##` sections of a file, by their headings."""
    text = plain_newlines(text)
    seen = _outline(text)
    headings = [heading for heading in seen.headings if heading.level <= 2] if seen else []
    ends = [*(heading.start for heading in headings[1:]), len(text)]
    found: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=False):  # one end too many where there is no heading
        if heading.level == 2:
            found.setdefault(heading.text, text[heading.end : end].strip())
    return found


def with_sections(text: str, sections: Sequence[tuple[str, str]], *, path: str, title: str, stamp: str = "") -> str:
    """A file with some sections replaced, or added at the end, and a new time stamp; no other byte changes."""
    newline = newline_of(text)
    if not text.strip():
        text = f"# {title}\n"
    for name, body in sections:
        text = _with_section(text, name, body, newline, path)
    return _with_stamp(text, stamp, newline, path) if stamp else text


def _with_section(text: str, name: str, body: str, newline: str, path: str) -> str:
    headings = [heading for heading in _headings(text, path) if heading.level <= 2]
    new = f"## {name}\n\n{body}\n"
    for heading, following in zip(headings, [*headings[1:], None], strict=False):
        if heading.level == 2 and heading.text.casefold() == name.casefold():
            lines = text.split("\n")  # by their numbers: the lines themselves may end in \r
            head = "".join(f"{line}\n" for line in lines[: heading.line - 1])
            tail = newline + "\n".join(lines[following.line - 1 :]) if following else ""
            return head + new.replace("\n", newline) + tail
    ends = len(flat := plain_newlines(text)) - len(flat.rstrip("\n"))
    return text + newline * max(0, 2 - ends) + new.replace("\n", newline)


def _headings(text: str, path: str) -> Sequence[Heading]:
    """The headings of a file; an error if it cannot be edited safely."""
    # A lone \r ends a line for one of the parsers only; as a space, it does for none.
    seen = _outline(text.replace("\r\n", "\n").replace("\r", " "))
    if seen is None:
        raise BadInput(f"{path} is too involved to be edited", hint="edit it by hand")
    if seen.open_at is not None:
        raise BadInput(f"{path}:{seen.open_at} opens a fence that is never closed", hint="close it by hand")
    return seen.headings


def _with_stamp(text: str, stamp: str, newline: str, path: str) -> str:
    """The file with a new "Updated …" line below its title. Such a line further down is not changed."""
    front = _FRONT.match(text.replace("\r\n", "\n"))
    first = front[0].count("\n") if front else 0
    headings = [heading for heading in _headings(text, path) if heading.line > first]
    is_titled = bool(headings) and headings[0].level == 1
    start = headings[0].line if is_titled else first
    following = headings[is_titled].line - 1 if len(headings) > is_titled else None
    lines = text.split("\n")
    carriage = newline.removesuffix("\n")
    for number in range(start, following if following is not None else len(lines)):
        if _STAMP.match(lines[number]):
            lines[number] = stamp + ("\r" if lines[number].endswith("\r") else "")
            return "\n".join(lines)
    ours = [carriage, stamp + carriage] if is_titled else [stamp + carriage, carriage]
    if is_titled and lines[start:] and lines[start].strip():
        ours.append(carriage)
    return "\n".join([*lines[:start], *ours, *lines[start:]])


def _outline(text: str) -> HeadingOutline | None:
    try:
        return outline(text)
    except TooComplex:
        return None
