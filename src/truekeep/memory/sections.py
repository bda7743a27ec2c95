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
from truekeep.text.markdown_lines import FenceReader, Scan, open_fence, without_indent

_LINE_END = re.compile(r"\r\n?")
_MARKS = re.compile(r"`+")
_LIST_MARKS = re.compile(r"\A {0,3}(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
MAX_ESCAPED = 20  # HTML blocks of one text
_FRONT = re.compile(r"\A---\n.*?\n---[ \t]*\n", re.DOTALL)
_STAMP = re.compile(r"Updated \d{4}-\d{2}-\d{2} \d{2}:\d{2}\r?\Z")


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
    fences = FenceReader()
    for line in text.split("\n"):
        yield line, fences.see(without_indent(line))


# --- A text below a heading ------------------------------------------------------------------------------------------


def within(text: str, below: int = 2) -> str:
    """A text made safe for a place below a heading: its own headings become deeper, and nothing in it stays open.

    This is true for Markdown parsers and for readers of single lines, such as grep or a model.
    """
    text = _without_underlines(plain_newlines(text).strip())
    is_open = _find_fences(text)[1]
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
    """The text with every line that looks like a heading of these levels made deeper, except code."""
    looks = re.compile(rf"[ \t]*(#{{1,{below}}})(?=[ \t]|\Z)")
    lines = text.split("\n")
    found = [(number, match) for number, line in enumerate(lines) if (match := looks.match(line)) is not None]
    # Code is what both take for it: a parser, who knows lists and HTML, and a reader who knows fences alone.
    code = _code_lines(text) if found else set()
    plain = _find_fences(text)[0] if code else set()
    for number, match in found:
        is_indented = len(match.string[: match.start(1)].expandtabs(4)) > 3
        if not (number in code and (number in plain or is_indented)):
            lines[number] = f"{match.string[: match.start(1)]}{'#' * (below + 1)}{match.string[match.end(1) :]}"
    return "\n".join(lines)


def _find_fences(text: str) -> tuple[set[int], bool]:
    """The lines of closed fences, found without looking at other blocks; and whether one is open at the end."""
    found: set[int] = set()
    fences, first = FenceReader(), 0
    for number, line in enumerate(text.split("\n")):
        if not fences.marks:
            first = number
            fences.see(_LIST_MARKS.sub("", line))
        elif fences.see(line.strip()) and not fences.marks:
            found.update(range(first, number + 1))
    return found, bool(fences.marks)


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


def _code_lines(text: str) -> set[int]:
    try:
        return fenced_lines(text, also_indented=True)
    except TooComplex:
        return set()


def _closed(text: str) -> str:
    """The text with its last fence closed, and with HTML blocks that are never closed escaped."""
    lines = text.split("\n")
    for _ in range(MAX_ESCAPED):
        scan, opened = Scan(), -1
        for number, line in enumerate((*lines, "")):  # a blank line ends most HTML blocks
            was_html = scan.is_html
            scan.see(line)
            opened = number if scan.is_html and not was_html else opened
        if not scan.is_html:
            break
        lines[opened] = lines[opened].replace("<", "\\<", 1)
    fence = open_fence("\n".join(lines))
    return "\n".join([*lines, fence] if fence else lines)


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
