"""Hexadecimal words: which of them may be commits, and of which repository. Pure.

Many things have a hexadecimal id (containers, jobs, sessions, checksums), and a commit may be another repository's: the
words beside it say so.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from truekeep.verify.claims.patterns import Raw

_MD5 = 32  # digits of an MD5 sum and of a UUID without dashes; nobody shortens a commit to that
_NOUNS = "|".join(
    "account agent artifact backup bucket channel chat checksum container conversation cron cronjob crontab "
    "database device digest document event fingerprint guid image instance invoice job key layer md5 message namespace "
    "network node object order org page pipeline pod process project queue record request resource row schedule "
    "schema secret session sha-?1 sha-?256 snapshot span subscription task tenant thread ticket token trace "
    "transaction user uuid volume webhook worker workflow workspace id ids".split()
)
_MARKS = r"[\s`\"'*_(\[|:=#,–—-]"
_LINKS = r"(?:ids?|uuid|run|job|task|hash|sum|value|name|number|named|called|is|are|was|were|has|with|and|or)"
_ID_BEFORE = re.compile(
    rf"(?<![\w-])(?:{_NOUNS})(?:e?s)?(?:{_MARKS}+(?:{_LINKS}|[0-9a-f]{{6,64}}))*{_MARKS}+\Z", re.IGNORECASE
)
_ID_AFTER = re.compile(rf"[`\"'*_)\]]*\s(?:{_NOUNS})s?(?![\w-])", re.IGNORECASE)
_COMMIT_BEFORE = re.compile(
    rf"\b(?:commit|revision|rev|changeset|sha|hash)s?(?: (?:id|ids|hash|hashes))?{_MARKS}+\Z", re.IGNORECASE
)
_NEAR = 100  # characters around an id that may say what it is
_REPOSITORY = re.compile(r"https?://(?:www\.)?([\w.-]+\.\w+/[\w.-]+/[\w-]+(?:\.[\w-]+)*)[^\s<>\"'`]*")
_STOP = re.compile(r"[.!?;]\s")


def only_commits(raws: Sequence[Raw], line: str) -> list[Raw]:
    """The claims of a line without ids that are no commits; commits with the repository whose URL is beside them."""
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
            raw = raw._replace(owner=_repository_beside(raw, line, urls[max(0, at - 1) : at + 1]))
        kept.append(raw)
    return kept


def _may_be_commit(raw: Raw, line: str) -> bool:
    """Whether an id can be a commit's: of such a length, and not called something else."""
    if len(raw.name) == _MD5:
        return False
    before = line[max(0, raw.start - _NEAR) : raw.start]
    if _COMMIT_BEFORE.search(before):
        return True
    return not (_ID_BEFORE.search(before) or _ID_AFTER.match(line, raw.end))


def _repository_beside(raw: Raw, line: str, urls: Sequence[re.Match[str]]) -> str:
    """host/owner/name of the nearest URL in the same sentence; empty when there is none."""
    found = []
    for url in urls:
        gap = line[raw.end : url.start()] if url.start() >= raw.end else line[url.end() : raw.start]
        if len(gap) <= _NEAR and not _STOP.search(gap):
            found.append((len(gap), url[1].removesuffix(".git").lower()))
    return min(found)[1] if found else ""
