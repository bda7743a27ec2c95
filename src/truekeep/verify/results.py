"""Stores verdicts between a check and a recall, with the state of everything that they depend on.

Recall shows the verdicts of the last check as long as nothing changed: the memory, the checkout's HEAD and index, and
every file that a verdict names, inside or outside the checkout. That takes a few stats and does not import the checks.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from truekeep.core.digest import sha256
from truekeep.core.file_io import read_head
from truekeep.verify.cache import FactsCache, read_rows, retry_if_damaged
from truekeep.verify.claim import VERSION, Claim
from truekeep.verify.verdict import CHANGED, CONFIRMED, MOVED, UNVERIFIABLE, VERDICTS, Verdict

MAX_LIVE_AGE_SECONDS = 300  # for verdicts on ports, units and containers
NO_REPOSITORY = "the memory names no repository"
_FULL_RUN_KEY = "verified"  # key in the answer table
_LIVE_KINDS = ("port", "unit", "container", "cron", "id", "bundle")  # git sees no change of build folders
_NOT_LOOKED_AT = ("no-checkout", "no-commits", "incomplete", "git-failed", "out-of-time")  # the claim itself is fine
_CITED = re.compile(r" \([^()]*:\d+\)\Z")  # the place that ends a sentence
_SAME_REASON = {  # reasons that are told once, though each claim has its own words for them
    "of-its-day": "a log tells of its day, and what it names has moved or gone since",
    "gone-before": "gone or moved before the line was written",
    "of-others": "of another project, as far as this repository tells",
}
_STEPS = {  # what to do about claims that could not be checked
    "no-checkout": "`truekeep repos` lists the known checkouts",
    "other-machine": "check it there",
    "not-there": "`git init` lets the next check tell",
}
_UNANSWERED = ("git-failed", "out-of-time")
_REF_FILES = (".git/packed-refs", ".git/refs/heads", ".git/refs/tags", ".git/FETCH_HEAD")
_REASONS_FROM_REFS = ("on-branch", "other-branch", "unreachable", "tagged")


def end_of_day(day: date | None) -> int | None:
    """Return the last second of a day in local time; None for None or a day out of range."""
    if day is None:
        return None
    try:
        return int((datetime.combine(day, datetime.min.time()).astimezone() + timedelta(days=1)).timestamp()) - 1
    except (OverflowError, OSError, ValueError):
        return None


class LineOrigin(NamedTuple):
    """The repository that a line of memory is about, and when the line was written."""

    repository: str = ""
    written_at: int | None = None


_RST_DIRECTIVE = re.compile(r"^\.\. [a-z][\w-]*::", re.MULTILINE)


class MemoryText(NamedTuple):
    """A text to check, with its origin."""

    path: str  # as shown to the user; empty for a text without a file
    text: str
    origin: LineOrigin = LineOrigin()
    lines: tuple[LineOrigin, ...] = ()  # the origin of each line, for a document that several handoffs wrote
    is_changelog: bool = False

    @property
    def is_rst(self) -> bool:
        path = self.path.lower()
        return path.endswith(".rst") or (path.endswith(".txt") and _RST_DIRECTIVE.search(self.text) is not None)

    def origin_of(self, line: int) -> LineOrigin:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else self.origin


class CheckedMemory(NamedTuple):
    """One memory with its verdicts."""

    path: str
    repository: str
    roots: tuple[str, ...]  # the checkouts that it was checked against
    verdicts: tuple[Verdict, ...]
    checked_at: float
    head: str = ""  # of the first of them
    branch: str = ""
    doing: str = ""
    left_out: int = 0  # claims beyond the limit
    problems: tuple[str, ...] = ()
    digest: str = ""
    missing: str = ""  # the kind of clone, "shallow" or "partial", if it lacks history
    trees: tuple[str, ...] = ()  # a digest of all files and objects of each checkout
    checked_on: str = ""  # the machine that checked it, if it was another one

    @property
    def is_settled(self) -> bool:
        """Whether every verdict depends only on files that were found, so that no new file can change it."""
        return not self.roots or all(item.verdict in (CONFIRMED, CHANGED, MOVED) for item in self.verdicts)

    @property
    def is_rotten(self) -> bool:
        return any(item.is_rot for item in self.verdicts)

    @property
    def history(self) -> str:
        """How much of git's history the checkout has: whole, shallow or partial; "" without one."""
        return self.missing or ("whole" if self.roots else "")

    @property
    def is_answered(self) -> bool:
        """Whether every claim was looked at: git answered, in time. What runs is asked again after a few minutes."""
        return not any(item.reason in _UNANSWERED for item in self.verdicts)

    def count(self, verdict: str) -> int:
        return sum(item.verdict == verdict for item in self.verdicts)


def save_verdicts(
    store: FactsCache,
    memories: Sequence[MemoryText],
    results: Sequence[CheckedMemory],
    git_dirs: Mapping[str, str],
    *,
    workspace: str = "",
) -> None:
    """Store the verdicts for recall, with the state of everything that they depend on."""
    quick = {root: quick_stamp(root, git_dir) for root, git_dir in git_dirs.items()}
    rows = []
    for memory, checked in zip(memories, results, strict=True):
        if not memory.path or (not checked.roots and set(checked.problems) - {NO_REPOSITORY}):
            continue  # its checkout may be configured later
        places = {item.place.partition(":")[0] for item in checked.verdicts}
        places |= {item.claim.place for item in checked.verdicts}
        places |= {item.claim.name for item in checked.verdicts if item.claim.kind in ("path", "directory")}
        if any(item.reason in _REASONS_FROM_REFS for item in checked.verdicts):
            places.update(_REF_FILES)
        inside = sorted(place for place in places if place and place[0] not in "/~")
        beside = sorted(set(_paths_outside(checked.verdicts, workspace)))
        stamp = {
            "version": VERSION,
            "text": checked.digest,
            "origins": _origins(memory),
            "head": checked.head,
            "branch": checked.branch,
            "doing": checked.doing,
            "left_out": checked.left_out,
            "missing": checked.missing,
            "trees": checked.trees,
            "beside": {path: os.path.lexists(path) for path in beside},
            "roots": {
                root: [quick[root], {place: stamp_of(root, place) for place in inside}] for root in checked.roots
            },
        }
        texts = json.dumps(stamp), json.dumps([pack_verdict(item) for item in checked.verdicts])
        rows.append((memory.path, _seal(checked.digest, *texts), checked.checked_at, *texts))
    with store.transaction():
        store.many("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?, ?)", rows)


def recall(
    store: FactsCache, memory: MemoryText, root: str = "", *, look: Callable[[str], str] | None = None
) -> CheckedMemory | None:
    """Return the verdicts of the last check; None if something that they depend on has changed since.

    `look` returns a checkout's stamp. Pass a cached function to recall many memories.
    """
    row = retry_if_damaged(
        lambda: store.row("SELECT seal, at, stamp, verdicts FROM verdict WHERE path = ?", (memory.path,))
    )
    digest = digest_text(memory.text)
    if row is None or row[0] != _seal(digest, row[2], row[3]):
        return None
    stamp = json.loads(row[2])
    host = stamp.get("host", "")
    if stamp["version"] != VERSION or "beside" not in stamp:
        return None
    if stamp["origins"] != _origins(memory) and not host:  # the host's clock may be in another zone
        return None
    if any(os.path.lexists(path) != was for path, was in stamp["beside"].items()):
        return None
    roots = tuple(stamp["roots"])
    if root and roots != (root,):
        return None
    for place, (known, files) in stamp["roots"].items():
        if known != (look or quick_stamp)(place) or any(stamp_of(place, path) != was for path, was in files.items()):
            return None
    verdicts = tuple(unpack_verdict(item) for item in json.loads(row[3]))
    if host:
        verdicts = tuple(item for item in verdicts if item.claim.kind not in _LIVE_KINDS)  # what runs there
    elif any(item.claim.kind in _LIVE_KINDS for item in verdicts) and time.time() - row[1] > MAX_LIVE_AGE_SECONDS:
        return None
    return CheckedMemory(
        path=memory.path,
        repository=memory.origin.repository,
        roots=roots,
        verdicts=verdicts,
        checked_at=row[1],
        head=stamp["head"],
        branch=stamp["branch"],
        doing=stamp["doing"],
        left_out=stamp["left_out"],
        missing=stamp.get("missing", ""),
        digest=digest,
        trees=tuple(stamp["trees"]),
        checked_on=host,
    )


def read_verdicts(path: str, memories: Iterable[str]) -> dict[str, list[Any]]:
    """Read from a cache file the verdicts of these memories on code, for another machine.

    For each: the digest of its text, when it was checked, the commit, and the verdicts as text.
    """
    wanted = set(memories)
    rows = read_rows(
        path,
        "SELECT path, stamp ->> 'text', at, stamp ->> 'head', verdicts FROM verdict WHERE stamp ->> 'version' = ?"
        """ AND stamp ->> 'text' != '' AND stamp -> 'roots' != '{}'""",
        (VERSION,),
    )
    return {memory: list(rest) for memory, *rest in rows if memory in wanted}


def save_host_verdicts(store: FactsCache, host: str, given: Mapping[str, Any], keep: Iterable[str]) -> None:
    """Store the verdicts that another machine read with `read_verdicts`.

    Those of `keep` only where there are none by a checkout that is still here.
    """
    if given.get("version") != VERSION:
        return
    own = set(keep)
    rows: dict[bool, list[tuple[Any, ...]]] = {True: [], False: []}
    for path, (digest, at, head, verdicts) in given["memories"].items():
        stamp = json.dumps(
            {"version": VERSION, "origins": "", "head": head, "branch": "", "doing": "", "left_out": 0, "missing": "",
             "trees": [], "beside": {}, "roots": {}, "host": host}
        )  # fmt: skip
        [unpack_verdict(item) for item in json.loads(verdicts)]  # raises for another machine's nonsense
        rows[path in own].append((path, _seal(digest, stamp, verdicts), at, stamp, verdicts))
    roots = store.rows("SELECT DISTINCT item.key FROM verdict, json_each(verdict.stamp, '$.roots') AS item")
    gone = json.dumps([root for (root,) in roots if not os.path.isdir(root)])
    with store.transaction():
        store.many("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?, ?)", rows[False])
        store.many(
            "INSERT INTO verdict VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (path) DO UPDATE SET seal = excluded.seal,"
            " at = excluded.at, stamp = excluded.stamp, verdicts = excluded.verdicts WHERE stamp ->> 'host' != ''"
            " OR NOT EXISTS (SELECT 1 FROM json_each(verdict.stamp, '$.roots') WHERE key NOT IN"
            " (SELECT value FROM json_each(?6)))",
            [(*row, gone) for row in rows[True]],
        )


def renew(store: FactsCache, paths: Iterable[str], at: float, touched: Iterable[str] = ()) -> None:
    """Update the check time of memories whose stored verdicts still hold, at most once a day.

    Memories in `touched` are updated at once, because until then they count as edited.
    """
    if not (paths := list(paths)):
        return
    with store.transaction():
        store.run(
            "UPDATE verdict SET at = ?1 WHERE at < ?1 AND path IN (SELECT value FROM json_each(?2))"
            " AND (at < ?1 - 86400 OR path IN (SELECT value FROM json_each(?3)))",
            (at, json.dumps(paths), json.dumps(list(touched))),
        )


def forget_others(store: FactsCache, memories: Iterable[str]) -> None:
    """Delete the verdicts of files that are not among these memories."""
    with store.transaction():
        store.run(
            "DELETE FROM verdict WHERE path NOT IN (SELECT value FROM json_each(?))", (json.dumps(list(memories)),)
        )


def modified_at(path: str) -> float:
    """Return when a file was last written; 0 if it does not exist."""
    try:
        return os.lstat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _paths_outside(verdicts: Iterable[Verdict], workspace: str) -> Iterator[str]:
    """Yield the paths outside any checkout whose existence was checked."""
    for item in verdicts:
        name = item.claim.name
        if "\0" in name:
            continue
        if name.startswith(("/", "~")):
            yield os.path.abspath(os.path.expanduser(name))
            continue
        is_missing = item.verdict not in (CONFIRMED, CHANGED, MOVED)
        if workspace and item.claim.kind in ("path", "directory") and (item.reason == "in-memory" or is_missing):
            yield os.path.join(workspace, name)


def _seal(digest: str, stamp: str, verdicts: str) -> bytes:
    """Return a checksum of a memory's text and its stored verdicts, because SQLite does not notice every bad page."""
    return sha256("\0".join((digest, stamp, verdicts)).encode()).digest()


def _origins(memory: MemoryText) -> str:
    return sha256(json.dumps([memory.origin, memory.lines]).encode()).hexdigest()[:16]


def quick_stamp(root: str, git_dir: str = "") -> str:
    """Return the state of a checkout without running git: the stats of HEAD, index, reflog and shallow file."""
    if not git_dir:
        git_dir = os.path.join(root, ".git")
        if not os.path.isdir(git_dir):
            pointer = os.fsdecode(read_head(git_dir, 4096, follow=True).strip())
            if not pointer:
                return "-"
            git_dir = os.path.join(root, pointer.removeprefix("gitdir:").strip())
    return " ".join(stamp_of(git_dir, name) for name in ("HEAD", "index", "logs/HEAD", "shallow"))


def digest_text(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stamp_of(root: str, path: str) -> str:
    """Return a file's stat as text; a dash if it does not exist."""
    try:
        info = os.lstat(os.path.join(root, path))
    except (OSError, ValueError):
        return "-"
    return f"{info.st_mtime_ns}.{info.st_size}.{info.st_ino}.{info.st_ctime_ns}"


def pack_verdict(verdict: Verdict) -> list[Any]:
    return [list(verdict.claim), *verdict[1:]]


def unpack_verdict(packed: list[Any]) -> Verdict:
    claim, word, reason, why, place, candidates, *rest = packed
    return Verdict(Claim(*claim), word, reason, why, place, tuple(candidates), *rest)


def is_unchecked(checked: Sequence[CheckedMemory]) -> bool:
    """True if there were claims, but none could be checked: no checkout, no history, no git."""
    verdicts = [verdict for item in checked for verdict in item.verdicts]
    return all(verdict.verdict == UNVERIFIABLE for verdict in verdicts) and any(
        verdict.reason in _NOT_LOOKED_AT for verdict in verdicts
    )


def count_reasons(checked: Sequence[CheckedMemory]) -> list[tuple[str, list[str]]]:
    """Why claims could not be checked, and the places of each reason; the most frequent first."""
    reasons: dict[str, list[str]] = {}
    for item in checked:
        for verdict in item.verdicts:
            if verdict.verdict == UNVERIFIABLE:
                why = _SAME_REASON.get(verdict.reason) or _CITED.sub("", verdict.why)  # one, wherever it was met
                why = f"{why}; {step}" if (step := _STEPS.get(verdict.reason)) else why
                reasons.setdefault(why, []).append(f"{item.path}:{verdict.claim.line}")
    return sorted(reasons.items(), key=lambda pair: -len(pair[1]))


def count_verdicts(checked: Iterable[CheckedMemory]) -> dict[str, int]:
    items = list(checked)
    return {word: sum(item.count(word) for item in items) for word in VERDICTS}


def read_counts(path: str, *, of_no_repository: bool = False) -> list[tuple[str, float, dict[str, int]]]:
    """Read from a cache file, for each memory, when it was checked and how many verdicts of each kind it has.

    Memories without a repository are left out, because no code confirms them; or only they are read.
    """
    rows = read_rows(
        path,
        "SELECT verdict.path, at, json_extract(item.value, '$[1]'), count(*) FROM verdict"
        " LEFT JOIN json_each(iif(json_valid(verdicts), verdicts, '[]')) AS item"
        """ WHERE (verdicts != '[]' AND instr(stamp, '"roots": {}') > 0 AND instr(stamp, '"host":') = 0) = ?"""
        " GROUP BY 1, 3 ORDER BY 1",
        (of_no_repository,),
    )
    found: dict[str, tuple[str, float, dict[str, int]]] = {}
    for memory, checked_at, word, count in rows:
        if memory.startswith(("/", "..", "~")):
            continue  # written by earlier versions for files outside the workspace
        words = found.setdefault(memory, (memory, checked_at, {}))[2]
        if word is not None:
            words[str(word)] = count
    return list(found.values())


def note_run(store: FactsCache) -> None:
    """Record that a full check has run: memories without a checkout leave no verdicts to show it."""
    if store.answer(_FULL_RUN_KEY) is None:
        store.remember(_FULL_RUN_KEY, "all")


def has_run(path: str) -> bool:
    """Whether a cache file records a full check."""
    return bool(read_rows(path, "SELECT 1 FROM answer WHERE key = ?", (_FULL_RUN_KEY,)))


def read_seals(path: str) -> list[tuple[str, bytes, float]]:
    """Read, for each memory in a cache file, the checksum of its verdicts and when they were stored."""
    return [(memory, seal, at) for memory, seal, at in read_rows(path, "SELECT path, seal, at FROM verdict")]


def count_stored_verdicts(path: str, memories: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Count the stored verdicts of some memories by kind, in the order of VERDICTS."""
    found: dict[str, tuple[int, ...]] = {}
    wanted = sorted(memories)
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        for memory, verdicts in read_rows(
            path,
            "SELECT path, verdicts FROM verdict WHERE path IN (SELECT value FROM json_each(?))"
            """ AND json_valid(verdicts)"""
            """ AND (verdicts = '[]' OR instr(stamp, '"roots": {}') = 0 OR instr(stamp, '"host":') > 0)""",
            (json.dumps(part),),
        ):
            try:
                words = [item[1] for item in json.loads(verdicts)]
            except (TypeError, LookupError):
                continue  # damaged
            found[memory] = tuple(words.count(word) for word in VERDICTS)
    return found
