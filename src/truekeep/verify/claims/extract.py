"""Find the claims of a Markdown text: names in it that can be checked against the code now. Pure.

A claim is a path, a line, a symbol, a flag, a port, a decision ... with its exact span in the text, so that a repair
changes nothing else. A word in prose is a claim only if it cannot be anything but code; a word in inline code may be
any identifier. A word that may well be something else (`iterator`, `origin/main`) is a weak claim: it counts only where
the repository knows it, now or in its history. A sentence about the past ("removed in 2.0", "formerly `old.py`") does
not claim that the thing exists.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from truekeep.text.markdown_lines import closes_fence, opening_fence
from truekeep.text.phrases import load_phrases
from truekeep.text.secrets.scanner import cover_secrets
from truekeep.verify.claim import Claim
from truekeep.verify.claims.context import complete_claims
from truekeep.verify.claims.cron import cron_claims
from truekeep.verify.claims.hashes import drop_other_ids
from truekeep.verify.claims.inline_code import (
    IN_CODE,
    SETTING,
    defined_in_fences,
    fence_claims,
    folder_after,
    folder_of_block,
    in_folder,
    inline_code_claims,
)
from truekeep.verify.claims.patterns import (
    MAX_CLAIM_CHARS,
    PATH,
    PATTERN,
    URL,
    RawClaim,
    bare_path,
    code_spans,
    is_file,
    is_path,
    url_claim,
)
from truekeep.verify.claims.prose import decision_claims, prose_claims, worded_claims
from truekeep.verify.claims.rst import RstText, read_rst
from truekeep.verify.claims.trees import tree_claims

MAX_CLAIMS = 5_000
MAX_LINE_CHARS = 20_000
_LINES_OF_SECRET = 150  # more than any key has
_FRONTMATTER = re.compile(r"---\r?\n(?:.*\n)*?---\s*?(?:\n|\Z)")
_RELEASE = re.compile(r"^\[?v?\d+\.\d+(?:\.\d+)?\]?(?:\s|$|[-(])")
_FENCE_LANGUAGE = re.compile(r"[`~]+[ \t]*([^\s`{]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_LINK = re.compile(r"\]\(\s*(?:<([^<>\n]{1,300})>|([^()\s<>]+(?:\([^()\s]*\))?))[^)\n]{0,200}\)")
_TREE_FENCES = ("", "text", "txt", "plaintext", "tree", "plain", "ascii", "bash", "sh", "shell", "console", "none")
_WITH_SECTIONS = (".md", ".mdx", ".markdown")
_INCLUDE = re.compile(
    r"--8<--|\{\{\s*#\w*include\b|\{%-?\s*(?:include|render|import)\b|\[!(?:INCLUDE|code)|^\s*<<<\s|^\s*!!!include",
    re.IGNORECASE,
)  # another text is put in here, from a folder that the generator knows
_SHELL_USE = re.compile(r"\$\{?([A-Z][A-Z0-9_]+)")  # a variable that the commands of the text set for themselves
_BARE_TARGET = re.compile(r"(?!(?:[\w-]*-)?(?:url|link|href|path|target|src|file|dest)\Z)[\w-]+\Z")
_REFERENCE = re.compile(r"^ {0,3}\[[^^\]][^\]]{0,79}\]:\s*<?(\S+?)>?(?:\s|$)")


class _LinePatterns(NamedTuple):
    """Lines that change what the lines below them are about, in all languages."""

    change_item: re.Pattern[str]
    changelog_heading: re.Pattern[str]
    decision_heading: re.Pattern[str]


@cache
def _patterns() -> _LinePatterns:
    phrases = load_phrases("claims")
    return _LinePatterns(
        change_item=re.compile(
            rf"^\s*(?:[-*+]|\d+[.)])\s+(?:\*\*|\[|`)?(?:{phrases.any_of('changelog.item')})\b[:\]*]*\s"
        ),
        changelog_heading=re.compile(rf"\W*(?:{phrases.any_of('changelog.heading')})\W*\Z", re.IGNORECASE),
        decision_heading=re.compile(phrases.any_of("words.decision_heading"), re.IGNORECASE),
    )


class Claims(NamedTuple):
    """The claims of a text, and how many were left out beyond the limit."""

    claims: tuple[Claim, ...]
    left_out: int = 0


def extract_claims(
    text: str,
    *,
    is_changelog: bool = False,
    is_rst: bool = False,
    are_documents: bool = False,
    lines: Collection[int] | None = None,
    limit: int = MAX_CLAIMS,
) -> Claims:
    """Find the claims of a Markdown or reStructuredText text below its frontmatter, in order.

    Claims are searched for in git, stored and shown; so credentials are masked first. `are_documents`: of a repository;
    then the entries of drawn folder trees and links to sections are claims, too. `lines`: only the claims of these.
    """
    text = cover_secrets(text) if lines is None else _cover_near(text, lines)
    found: list[Claim] = []
    left_out = 0
    rst = read_rst(text) if is_rst else None
    for claim in _walk(text if rst is None else rst.text, is_changelog, rst, are_documents=are_documents, asked=lines):
        if len(found) < limit:
            found.append(claim)
        else:
            left_out += 1
    return Claims(tuple(found), left_out)


def _cover_near(text: str, asked: Collection[int]) -> str:
    """A text without credentials in and around the lines that are asked about: only these give claims."""
    lines = text.split("\n")
    near = set[int]()
    for number in asked:
        near.update(range(number - _LINES_OF_SECRET, number + _LINES_OF_SECRET))
    covered = cover_secrets("\n".join(line if at in near else "" for at, line in enumerate(lines, 1))).split("\n")
    return "\n".join(covered[at - 1] if at in near else line for at, line in enumerate(lines, 1))


def _walk(
    text: str, is_changelog: bool, rst: RstText | None, *, are_documents: bool, asked: Collection[int] | None
) -> Iterator[Claim]:
    patterns = _patterns()
    fence = info = ""
    offset = 0
    in_front = _FRONTMATTER.match(text) is not None
    past_level = 0  # the level of the heading that opened a section about the past; 0: none
    decided = False
    drawn: set[int] = set()  # lines of folder trees
    folder: str | None = ""  # that the commands of a fence are in
    lines = text.split("\n")
    ends = _fence_ends(lines)
    defined = defined_in_fences(text) if are_documents else set()
    shell_variables = set(_SHELL_USE.findall(text)) if are_documents else set()
    is_open = False  # the fence is never closed: what follows after a blank line is read as what it looks like
    for number, line in enumerate(lines, start=1):
        start, offset = offset, offset + len(line) + 1
        if in_front:
            in_front = number == 1 or line.rstrip() not in ("---", "...")
            continue
        if len(line) > MAX_LINE_CHARS:
            line = line[:MAX_LINE_CHARS]
        if fence:
            bare = line.strip(" \t\r>")
            if (is_open and not bare) or closes_fence(bare, fence):
                fence = ""
            elif asked is not None and number not in asked:
                folder = folder_of_block(line, folder)
            elif not is_changelog and not past_level and number not in drawn and not _INCLUDE.search(line):
                base = None if folder and folder_after(line) != "" else folder  # a second `cd` may be from the root
                commands = in_folder(fence_claims(line, info), base)
                folder = folder_of_block(line, folder)
                raws = _without_overlaps([*cron_claims(line), *commands])
                raws = [raw for raw in raws if raw.why != SETTING or raw.name not in shell_variables]
                raws = [raw for raw in raws if raw.why != IN_CODE or (are_documents and raw.name not in defined)]
                yield from complete_claims(raws, line, number, start, past=False, is_code=True)
            continue
        if rst is not None and number in rst.code:
            if not is_changelog and (asked is None or number in asked):
                raws = fence_claims(line, rst.code[number])
                raws = [raw for raw in raws if raw.why != IN_CODE or (are_documents and raw.name not in defined)]
                yield from complete_claims(raws, line, number, start, past=False, is_code=True)
            continue
        bare = line.lstrip(" \t>")
        if rst is None and (fence := opening_fence(bare)) and (language := _FENCE_LANGUAGE.match(bare)) is not None:
            info = language[1].lower()
            is_open, folder = not _is_closed(ends, fence, number), ""
            if are_documents and not is_open and not is_changelog and not past_level and info in _TREE_FENCES:
                block = list(_block(lines, number, fence))
                is_asked = asked is None or any(at in asked for at in range(number + 1, number + 1 + len(block)))
                entries = list(tree_claims(block, number + 1, offset)) if is_asked else []
                drawn.update(range(number + 1, number + 1 + len(block)) if entries else ())
                yield from entries
            continue
        if (heading := _HEADING.match(line)) is not None:
            level, title = len(heading[1]), heading[2]
            if not past_level or level <= past_level:
                past_level = level if patterns.changelog_heading.match(title) or _RELEASE.match(title) else 0
            decided = patterns.decision_heading.search(title) is not None
        if not line.strip() or (asked is not None and number not in asked):
            continue
        past = is_changelog or bool(past_level) or patterns.change_item.match(line) is not None
        raws = _line_claims(line, decided=decided and heading is None, are_documents=are_documents and rst is None)
        if rst is not None:
            past = past or number in rst.past
            raws = _with_links(raws, rst.links.get(number, ()))
            line = rst.written[number - 1]
        yield from complete_claims(raws, line, number, start, past=past)


def _fence_ends(lines: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """For ` and for ~, the lines that can end a fence, each with the longest fence that it or a later one can end."""
    ends: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    for number in range(len(lines), 0, -1):
        bare = lines[number - 1].strip(" \t\r>")
        if bare.startswith(("```", "~~~")) and not bare.strip(bare[0]):
            below = ends[bare[0]]
            below.append((number, max(len(bare), below[-1][1] if below else 0)))
    return {mark: found[::-1] for mark, found in ends.items()}


def _block(lines: Sequence[str], first: int, fence: str) -> Iterator[str]:
    """The lines of a fence; `first` is the index of its first line."""
    for line in lines[first:]:
        if closes_fence(line.strip(" \t\r>"), fence):
            return
        yield line.rstrip("\r")


def _is_closed(ends: dict[str, list[tuple[int, int]]], fence: str, number: int) -> bool:
    below = ends[fence[0]]
    at = bisect_left(below, (number + 1, 0))
    return at < len(below) and below[at][1] >= len(fence)


def _line_claims(line: str, *, decided: bool, are_documents: bool) -> list[RawClaim]:
    """The claims of one line outside fences."""
    raws: list[RawClaim] = []
    if _INCLUDE.search(line):
        return raws
    taken: list[tuple[int, int]] = []
    if "`" in line:
        for start, end in code_spans(line):
            taken.append((start - 1, end + 1))
            raws += inline_code_claims(line[start:end], start)
    if "](" in line:
        for match in _LINK.finditer(line):
            group = 1 if match[1] else 2
            if _is_shown_as_code(match, taken):
                continue
            start = _text_start(line, match)
            raws = [raw for raw in raws if raw.start < start or raw.end > match.start() or not _is_path(raw)]
            taken.append((start, match.end()))
            raws += _link_claims(match[group], match.start(group), are_documents=are_documents)
    elif "]:" in line and (reference := _REFERENCE.match(line)) is not None:
        raws += _link_claims(reference[1], reference.start(1), are_documents=are_documents)
        taken.append(reference.span())
    raws += worded_claims(line, raws)
    raws += cron_claims(line)
    prose = line
    if taken:
        pieces, at = [], 0
        for start, end in sorted(taken):
            if start > at:
                pieces.append(line[at:start])
            pieces.append("\x00" * (end - max(start, at)))
            at = max(at, end)
        prose = "".join(pieces) + line[at:]
    raws += prose_claims(prose)
    raws += decision_claims(line, decided=decided)
    raws.sort(key=lambda raw: (raw.start, -raw.end))
    return _without_overlaps(drop_other_ids(raws, line))


def _is_shown_as_code(link: re.Match[str], taken: Sequence[tuple[int, int]]) -> bool:
    """Whether a link is only an example of one: all of it is in inline code, and it leads to no file by its look."""
    target = link[1] or link[2]
    is_inside = any(start <= link.start() and link.end() <= end for start, end in taken)
    return is_inside and ("#" in target or ("/" not in target and "." not in target))


def _text_start(line: str, link: re.Match[str]) -> int:
    """Where the text of a link begins, if it is its target as well, so that both are one claim; else where it ends."""
    target = link[1] or link[2]
    start = line.rfind("[", 0, link.start())
    text = line[start + 1 : link.start()].strip("`*_ ") if start >= 0 else ""
    is_target = text != "" and target.partition("#")[0].endswith(text.rpartition("/")[2])
    return start if is_target else link.start()


def _is_path(raw: RawClaim) -> bool:
    return raw.kind in ("path", "directory")


def _with_links(raws: list[RawClaim], links: Sequence[tuple[int, str]]) -> list[RawClaim]:
    """The claims of a line of reStructuredText, and its links, whose targets may lack the ending of the page."""
    if not links:
        return raws
    found = list(raws)
    for start, target in links:
        claims = _link_claims(target, start)
        if not claims and re.fullmatch(r"[\w./-]+", target):
            claims = [RawClaim(start, start + len(target), "path", bare_path(target), "a link", is_weak=True)]
        found += claims
    found.sort(key=lambda raw: (raw.start, -raw.end))
    return _without_overlaps(found)


def _link_claims(target: str, start: int, *, are_documents: bool = False) -> list[RawClaim]:
    """The claims of a link: the file that it leads to, and in documents of a repository the section."""
    if URL.match(target):
        return [url_claim(target, start, "a link")]
    bare, _, fragment = target.partition("#")
    if ":" in bare.split("/")[0] or len(target) > MAX_CLAIM_CHARS:
        return []
    sections = []
    if are_documents and fragment and (not bare or bare.endswith(_WITH_SECTIONS)):
        at = start + len(bare)
        sections = [RawClaim(at, start + len(target), "section", fragment, "a link", place=bare, is_weak=True)]
    return [*_linked_files(bare, fragment, target, start, are_documents=are_documents), *sections] if bare else sections


def _linked_files(bare: str, fragment: str, target: str, start: int, *, are_documents: bool) -> list[RawClaim]:
    end = start + len(bare)
    if (match := re.match(r"L(\d{1,7})(?:-L?(\d{1,7}))?\Z", fragment)) is not None and is_path(bare):
        path, first = bare_path(bare), int(match[1])
        last = max(first, int(match[2] or 0))
        return [RawClaim(start, start + len(target), "line", path, "a link", place=path, first=first, last=last)]
    is_named = "/" in bare or is_file(bare) or (are_documents and _BARE_TARGET.match(bare))
    if PATTERN.search(bare) or not PATH.match(bare) or not is_named:
        return []
    kind = "directory" if bare.endswith("/") else "path"
    return [RawClaim(start, end, kind, bare_path(bare), "a link", is_weak=True)]


def _without_overlaps(raws: list[RawClaim]) -> list[RawClaim]:
    """Of claims that overlap, the one of the more specific kind; a decision may contain others."""
    kept: list[RawClaim] = []
    taken: list[tuple[int, int]] = []  # in order and apart from each other
    for raw in sorted(raws, key=lambda raw: (_KIND_PRIORITY.get(raw.kind, 9), raw.is_weak, raw.start - raw.end)):
        if raw.kind != "decision":
            at = bisect_left(taken, (raw.start, raw.end))
            if (at and taken[at - 1][1] > raw.start) or (at < len(taken) and taken[at][0] < raw.end):
                continue
            taken.insert(at, (raw.start, raw.end))
        kept.append(raw)
    return sorted(kept, key=lambda raw: (raw.start, raw.end))


_KIND_PRIORITY = {
    "url": 0,
    "line": 1,
    "bundle": 1,
    "port": 1,
    "commit": 2,
    "version": 3,
    "container": 3,
    "cron": 3,
    "id": 3,
    "script": 3,
    "package": 4,
    "path": 5,
    "directory": 5,
}
