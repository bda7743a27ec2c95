"""reStructuredText as the extraction of claims sees it: what is code, what tells history, what is only a link. Pure."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_ROLE = re.compile(r"(?<![\w`])(:[a-zA-Z][\w:+.-]*:)`([^`\n]+)`")
_REFERENCE = re.compile(r"(?<![`:\w])`([^`\n]+)`__?(?!\w)")
_TARGET_IN = re.compile(r"[^<>]*<([^<>]+)>\Z")
_DIRECTIVE = re.compile(r"([ \t]*)\.\. ([a-zA-Z][\w:+.-]*)::(?:[ \t]+(.*))?\Z")
_COMMENT = re.compile(r"([ \t]*)\.\.(?![ \t]*[_\[|])(?:[ \t]|\Z)")
_NAMED_TARGET = re.compile(r"[ \t]*\.\. (?:_|\[|\|)")
_CODE_ROLES = frozenset(
    "func function class meth method attr attribute mod module data exc obj const envvar option file code command samp "
    "macro type member var enum struct".split()
)
_CODE_DIRECTIVES = frozenset(
    "code-block code sourcecode parsed-literal prompt console console-block ipython doctest testcode testoutput "
    "testsetup productionlist raw math graphviz digraph mermaid highlight snippet jinja toctree".split()
)
_HISTORY_DIRECTIVES = frozenset(
    "versionadded versionchanged versionremoved deprecated deprecated-removed versionchange removed changed".split()
)
_FILE_DIRECTIVES = frozenset("include literalinclude image figure".split())
_UNDERLINES = "=-~^\"'`#*+:."
_RELEASE = re.compile(
    r"(?:[\w.-]+ )?(?:version |release )?v?\d+\.\d+(?:\.\d+)*\w*(?:\s*\(.*\)|\s*[-–].*)?\Z", re.IGNORECASE
)
_NO_LANGUAGE = "text"
_NO_CLAIMS = "comment"


class RstText(NamedTuple):
    """A text whose markup is blanked, of the same length, and what its lines are."""

    text: str
    written: list[str]  # the lines with their markup
    code: dict[int, str]  # line number → language, for lines of a code block
    past: frozenset[int]  # lines that tell when something changed
    links: dict[int, list[tuple[int, str]]]  # line number → column and target of its links to files


def read_rst(text: str) -> RstText:
    """Blank the markup that names no code, and find code blocks, notes about changes, and links to files."""
    past: set[int] = set()
    links: dict[int, list[tuple[int, str]]] = {}
    written = text.split("\n")
    lines = list(written)
    code = dict(_code_lines(lines, past))
    past.update(_lines_about_releases(lines))
    for number, line in enumerate(lines, start=1):
        if number in code or ("`" not in line and ".." not in line):
            continue
        found = [*_file_of_directive(line), *_links(line)]
        if found:
            links[number] = found
        lines[number - 1] = " " * len(line) if _NAMED_TARGET.match(line) else _without_markup(line)
    return RstText("\n".join(lines), written, code, frozenset(past), links)


def _code_lines(lines: list[str], past: set[int]) -> Iterator[tuple[int, str]]:
    """Yield the lines of code blocks and comments; add those below a note about a change to `past`."""
    indent, language, tells_past = -1, "", False  # of the block that is open
    for number, line in enumerate(lines, start=1):
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if indent >= 0 and bare and depth <= indent:
            indent, tells_past = -1, False
        if indent >= 0 and language:
            yield number, language
            continue
        if indent >= 0 and tells_past:
            past.add(number)
        if bare.startswith(">>> "):
            yield number, _NO_LANGUAGE
            continue
        directive = _DIRECTIVE.match(line)
        if directive is not None:
            name = directive[2].rpartition(":")[2]
            if name in _CODE_DIRECTIVES:
                language = (directive[3] or name).strip().lower() or _NO_LANGUAGE
                indent = depth
            elif name in _HISTORY_DIRECTIVES:
                past.add(number)
                indent, language, tells_past = depth, "", True
        elif _COMMENT.match(line) is not None:
            yield number, _NO_CLAIMS
            indent, language = depth, _NO_CLAIMS
        elif bare.endswith("::"):
            indent, language = depth, _NO_LANGUAGE


def _lines_about_releases(lines: list[str]) -> Iterator[int]:
    """Yield the lines of sections whose title is a release: "Scrapy 2.13.0 (2025-05-08)"."""
    marks: list[str] = []  # of underlines, the highest level first
    level = -1  # of the release whose section is open
    for number in range(1, len(lines)):
        title, line = lines[number - 1].strip(), lines[number].strip()
        is_underline = len(line) >= 3 and line[0] in _UNDERLINES and not line.strip(line[0]) and len(line) >= len(title)
        if title and is_underline and not lines[number - 1].startswith(" "):
            if line[0] not in marks:
                marks.append(line[0])
            if level < 0 or marks.index(line[0]) <= level:
                level = marks.index(line[0]) if _RELEASE.match(title) else -1
        if level >= 0:
            yield number
            yield number + 1


def _file_of_directive(line: str) -> Iterator[tuple[int, str]]:
    directive = _DIRECTIVE.match(line)
    if directive is not None and directive[2] in _FILE_DIRECTIVES and (target := (directive[3] or "").strip()):
        yield line.index(target, directive.start(3)), target


def _links(line: str) -> Iterator[tuple[int, str]]:
    for match in _ROLE.finditer(line):
        if match[1] in (":doc:", ":download:"):
            yield _target(match[2], match.start(2))
    for match in _REFERENCE.finditer(line):
        if (inner := _TARGET_IN.match(match[1])) is not None and not inner[1].endswith("_"):
            yield match.start(1) + inner.start(1), inner[1]


def _target(content: str, start: int) -> tuple[int, str]:
    inner = _TARGET_IN.match(content)
    return (start + inner.start(1), inner[1]) if inner is not None else (start, content)


def _without_markup(line: str) -> str:
    line = _ROLE.sub(_code_of_role, line)
    return _REFERENCE.sub(lambda match: " " * len(match[0]), line)


def _code_of_role(match: re.Match[str]) -> str:
    """Inline code for a role that names code, without the marks of the role; blanks for any other role."""
    role = match[1].strip(":").rpartition(":")[2]
    if role not in _CODE_ROLES:
        return " " * len(match[0])
    content = match[2]
    if (inner := _TARGET_IN.match(content)) is not None:
        content = " " * inner.start(1) + inner[1] + " "
    bare = content.lstrip(" ").lstrip("~!.")
    return " " * len(match[1]) + " " * (len(content) - len(bare)) + "`" + bare + "`"
