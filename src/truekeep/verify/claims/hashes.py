"""Find out which hexadecimal words may be commits, and the repository of each. Pure.

Many things have a hexadecimal id (containers, jobs, sessions, checksums), and a commit may be in another repository:
the words beside it say so (`phrases/claims.*.toml`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import load_phrases
from truekeep.verify.claims.patterns import RawClaim

DIGITS_ONLY = "hexadecimal digits"  # nothing else says that it is a commit
MD5_DIGITS = 32  # also of a UUID without dashes; commits are not shortened to that length
_MARKS = r"[\s`\"'*_(\[|:=#,–—-]"
_WINDOW = 100  # characters around an id that may say what it is
_REPOSITORY = re.compile(r"https?://(?:www\.)?([\w.-]+\.\w+/[\w.-]+/[\w-]+(?:\.[\w-]+)*)[^\s<>\"'`]*")
_SENTENCE_STOP = re.compile(r"[.!?;]\s")


class _IdPatterns(NamedTuple):
    """Patterns for the words around a hexadecimal id, in all languages."""

    other_before: re.Pattern[str]
    other_after: re.Pattern[str]
    commit_before: re.Pattern[str]
    commits: re.Pattern[str]


@cache
def _patterns() -> _IdPatterns:
    phrases = load_phrases("claims")
    words = phrases.table("id")
    return _IdPatterns(
        other_before=re.compile(
            rf"(?<![\w-])(?:{words['owner']})(?:e?s)?(?:{_MARKS}+(?:(?:{words['links']})|[0-9a-f]{{6,64}}))*{_MARKS}+\Z",
            re.IGNORECASE,
        ),
        other_after=re.compile(rf"[`\"'*_)\]]*\s(?:{words['owner']})s?(?![\w-])", re.IGNORECASE),
        commit_before=re.compile(rf"\b(?:{words['commit']}){_MARKS}+\Z", re.IGNORECASE),
        commits=re.compile(rf"(?:{phrases.table('words')['commits']})", re.IGNORECASE),
    )


def drop_other_ids(raws: Sequence[RawClaim], line: str) -> list[RawClaim]:
    """The claims of a line without ids of other things; a commit gets the repository whose URL is beside it."""
    if not any(raw.kind == "commit" for raw in raws):
        return list(raws)
    urls = list(_REPOSITORY.finditer(line))
    starts = [match.start() for match in urls]
    kept = []
    for raw in raws:
        if raw.kind == "commit":
            if not _may_be_commit(raw, line):
                continue
            at = bisect_left(starts, raw.start)
            owner = _repository_beside(raw, line, urls[max(0, at - 1) : at + 1])
            is_called = raw.why == "called a commit" or owner or _patterns().commits.search(line)
            raw = raw._replace(owner=owner, why=raw.why if is_called else DIGITS_ONLY)
        kept.append(raw)
    return kept


def _may_be_commit(raw: RawClaim, line: str) -> bool:
    """Whether an id has the length of a commit and is not called something else."""
    if len(raw.name) == MD5_DIGITS:
        return False
    before = line[max(0, raw.start - _WINDOW) : raw.start]
    patterns = _patterns()
    if patterns.commit_before.search(before):
        return True
    return not (patterns.other_before.search(before) or patterns.other_after.match(line, raw.end))


def _repository_beside(raw: RawClaim, line: str, urls: Sequence[re.Match[str]]) -> str:
    """host/owner/name of the nearest URL in the same sentence; empty without one."""
    found = []
    for url in urls:
        gap = line[raw.end : url.start()] if url.start() >= raw.end else line[url.end() : raw.start]
        if len(gap) <= _WINDOW and not _SENTENCE_STOP.search(gap):
            found.append((len(gap), url[1].removesuffix(".git").lower()))
    return min(found)[1] if found else ""
