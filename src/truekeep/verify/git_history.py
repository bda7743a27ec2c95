"""What git remembers: which commit a memory was written at, where a file went, who deleted it, what code looked like.

Moves come from each commit's own rename records, chained: one comparison of two ends finds a fraction of them. The
records are read once, newest first, as far back as a question needs, and later only what is new since.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from truekeep.core.git import Git, GitFailed
from truekeep.verify.cache import FactsCache, StoreLost
from truekeep.verify.checkout import (
    MAX_SOURCE_BYTES,
    CheckoutFiles,
    CheckoutState,
    OldNameSearch,
    PastTree,
    VerifyTimeout,
    read_file,
    read_old_tree,
)
from truekeep.verify.file_kinds import language_for
from truekeep.verify.languages import clean
from truekeep.verify.languages import names as defined_names
from truekeep.verify.results import stamp_of

_DAY = 86_400
_NEVER = 1 << 60
_MAX_RENAMES = 60  # renames that one path is followed through
_ESCAPE = re.compile(r"\\u(dc[89a-f][0-9a-f])")
# Where to look for something that has no date: so many commits back, then so many days.
MAX_MERGE_LAG = 90 * 86_400  # seconds that a commit may be older than the merge which brought it
_CHECKPOINT_COMMITS = (1, 2, 4, 8, 16, 32, 64, 128)
_CHECKPOINT_DAYS = (
    30, 60, 90, 135, 180, 225, 270, 320, 365, 430, 500, 570, 640, 730, 820, 910, 1_000, 1_150, 1_300, 1_500, 1_700,
    1_950, 2_200, 2_550, 2_900, 3_400, 4_000,
)  # fmt: skip


class Commit(NamedTuple):
    """A commit that says something about a claim."""

    id: str
    at: int

    @property
    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self.at)) if self.at else ""


class Trail(NamedTuple):
    """Where a path went: the last name that is known, and the commit that took it there or away."""

    path: str  # empty: deleted
    commit: Commit
    last: str  # the last name that it had


class Past:
    """The history of one repository, as far as it was asked."""

    def __init__(self, git: Git, store: FactsCache, state: CheckoutState, *, deadline: float | None = None) -> None:
        self.git, self.store, self.state, self.deadline = git, store, state, deadline
        # A shallow clone may be deepened while its HEAD stays: what was not found in it may be found then.
        reach = stamp_of(state.common_dir, "shallow") if state.is_shallow else ""
        self.key = f"{state.git_dir} {reach}".rstrip()
        self._since: int | None = None
        self._name_search = OldNameSearch(())
        self._files: dict[str, PastTree] = {}
        self._touches: dict[str, list[tuple[Commit, str]]] = {}
        self._touched_since: dict[str, int] = {}  # how far back that goes, by path
        self._added: dict[str, list[str]] = {}
        self._renamed: dict[str, dict[str, str]] = {}
        self.problem = ""  # why history could not be read, for people
        # A rename without an edit is seen by the ids of its files; a partial clone has no more of them than that.
        self._rename_options = ("-M100%",) if state.is_lazy else ("-M", "-l2000")
        self._is_partial = state.is_lazy  # something of it was not read: what was not found may be there

    def _check_time(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise VerifyTimeout

    # Commits.

    def commit_at(self, at: int) -> Commit | None:
        """The commit that the main line was at, at this time; None when there was none yet."""
        if not self.state.head:
            return None
        if at >= self.state.head_at:
            return Commit(self.state.head, self.state.head_at)
        key = f"at {self.key} {self.state.head} {at}"
        known = self.store.answer(key)
        if known is None:
            line = self._main_line_at(at)
            known = f"{line[0]} {line[1]}" if line else ""
            if not self.problem:
                self.store.remember(key, known)
        if not known:
            return None
        oid, _, seconds = known.partition(" ")
        return Commit(oid, int(seconds))

    def _main_line_at(self, at: int) -> tuple[str, int] | None:
        for commit, seconds in self._main_line:
            if seconds <= at:
                return commit, seconds
        return None

    @cached_property
    def _main_line(self) -> list[tuple[str, int]]:
        """The commits of the main line, newest first."""
        try:
            raw = (
                self.git.run("rev-list", "--first-parent", "--timestamp", "HEAD", "--", timeout=60)
                .decode()
                .splitlines()
            )
        except GitFailed as error:
            self.problem = error.why
            return []
        return [(oid, int(seconds)) for seconds, _, oid in (line.partition(" ") for line in raw)]

    @property
    def is_whole(self) -> bool:
        """Whether every commit can be read, back to the first one."""
        return self.state.is_whole and bool(self._main_line) and not self.problem

    def oldest(self) -> int:
        return self._main_line[-1][1] if self._main_line else 0

    # Names that were never anything here: so many texts speak of other projects' code that it pays to remember.

    def absent_until(self, name: str) -> int:
        """Up to when a name is known to have been in no code; 0 when nobody has looked."""
        return int(self.store.answer(f"never {self.key} {name}") or 0)

    def remember_absent(self, names: Iterable[str]) -> None:
        if self._is_partial or self.problem:
            return
        with self.store.transaction():
            for name in names:
                self.store.remember(f"never {self.key} {name}", str(self.state.head_at))

    def cached_definitions(self, name: str, commit: str) -> str | None:
        """What an earlier run saw of a name at a commit (or, without one, anywhere): history does not change."""
        return self.store.answer(f"was {self.key} {commit} {name}")

    def remember_old_definitions(self, name: str, commit: str, seen: str) -> None:
        if seen or not self._is_partial:
            self.store.remember(f"was {self.key} {commit} {name}", seen)

    # Files.

    def load(self, since: int) -> None:
        """Have the records of renames and deletions since this time. 0: of all history."""
        if self._since is not None and self._since <= since:
            return
        if not self.state.head:
            self._since = 0
            return
        row = self.store.row("SELECT newest, since FROM history WHERE repository = ?", (self.key,))
        if row is not None and row[0] == self.state.head and row[1] <= since:
            self._since = row[1]
            return
        self._check_time()
        try:
            if row is not None and row[1] <= since and self._descends(row[0]):
                self._append(f"{row[0]}..HEAD", since=0, keep=True)
                self._since = row[1]
            else:
                self._append("HEAD", since=since, keep=False)
                self._since = since
        except GitFailed as error:
            self.problem = error.why
            self._since = since

    def _descends(self, commit: str) -> bool:
        try:
            self.git.run("merge-base", "--is-ancestor", commit, "HEAD")
        except GitFailed:
            return False  # history was rewritten, or the commit is gone: read it anew
        return True

    def _append(self, revisions: str, *, since: int, keep: bool) -> None:
        rows, failure = self._log(revisions, *self._rename_options, "--diff-filter=DR", since=since)
        is_sound = failure is None
        if failure is not None:
            # A blob is missing somewhere back there. What was deleted before is still known, only not where to.
            until = f"--until=@{rows[-1][0] if rows else self.state.head_at}"
            self.problem = f"where files went before that could not be read ({failure.why})"
            more, failure = self._log(revisions, "--no-renames", "--diff-filter=D", until, since=since)
            rows += more
            if failure is not None:
                raise failure
        with self.store.transaction():
            if not keep:
                self.store.run("DELETE FROM step WHERE repository = ?", (self.key,))
            self.store.many("INSERT INTO step VALUES (?, ?, ?, ?, ?)", [(self.key, *row) for row in rows])
            if not is_sound:  # to be read again next time
                self.store.run("DELETE FROM history WHERE repository = ?", (self.key,))
                return
            self.store.run(
                "INSERT INTO history VALUES (?, ?, ?) ON CONFLICT (repository)"
                " DO UPDATE SET newest = excluded.newest, since = min(since, excluded.since)",
                (self.key, self.state.head, since if not keep else _NEVER),
            )

    def _log(self, revisions: str, *how: str, since: int) -> tuple[list[tuple[int, str, str, str]], GitFailed | None]:
        limit = [f"--since=@{since}"] if since else []
        raw, failure = self.git.try_run(
            "log", "--no-show-signature", "--no-ext-diff", "--no-textconv", *how, "--name-status", "-z",
            "--no-decorate", "--format=%x02%H %ct", *limit, revisions, "--", timeout=120,
        )  # fmt: skip
        return list(_records(raw)), failure

    def follow(self, path: str, since: int | None, alive: Container[str]) -> Trail | None:
        """Where a path went after this time; without one, after its last mention. None: history has no trace of it."""
        self.load(max(0, since - MAX_MERGE_LAG) if since is not None else 0)
        current, last = path, ""
        at = since - _DAY if since is not None else None
        trail: Trail | None = None
        for _ in range(_MAX_RENAMES):
            rows = self.store.rows(
                "SELECT at, id, new FROM step WHERE repository = ? AND old = ? ORDER BY at", (self.key, current)
            )
            later = [row for row in rows if at is not None and row[0] >= at and row[1] != last]
            rows = [row for row in rows if row[1] != last and (at is None or row[0] >= at - MAX_MERGE_LAG)]
            if not rows:
                break
            # From a known day on, the first thing that happened; otherwise the last, because the path is not there now.
            # A commit may be older than the merge that brought it: then it counts all the same.
            when, last, new = later[0] if later else rows[-1]
            at = max(when, at or when)
            new = _decode_stored_path(new)
            trail = Trail(new, Commit(last, when), new or current)
            current = new or current
            if new and new in alive:
                return trail
        if trail is not None and trail.path:
            return Trail("", trail.commit, trail.path)
        return trail

    def trace(self, path: str, is_there: Callable[[str], bool]) -> Trail | None:
        """Where a file or folder went before the records begin: from the last commit that touched it, step by step.

        None when this branch never had it. Each step is a walk through history, so ask only for what had one.
        """
        current, trail = path, None
        for _ in range(_MAX_RENAMES):
            commit = self.last_touch(current)
            new = _rename_target(current, self._renames(commit.id)) if commit is not None else None
            if commit is None or new is None:
                break
            trail = Trail(new, commit, new or current)
            if not new or is_there(new):
                return trail
            current = new
        return trail and Trail("", trail.commit, trail.last)

    def _renames(self, commit: str) -> dict[str, str]:
        """What a commit renamed, old to new; an empty text for what it deleted."""
        if commit not in self._renamed:
            self._check_time()
            rows, failure = self._log(commit, "--no-walk", *self._rename_options, "--diff-filter=DR", since=0)
            if failure is not None:
                self.problem = failure.why
                raise failure
            self._renamed[commit] = {old: new for _, _, old, new in rows}
        return self._renamed[commit]

    def name_then(self, path: str, at: int) -> str:
        """What a file of today was called at that time."""
        self.load(at)
        current, limit = path, None
        for _ in range(_MAX_RENAMES):
            rows = self.store.rows(
                "SELECT at, old FROM step WHERE repository = ? AND new = ? AND at > ? ORDER BY at DESC",
                (self.key, current, at),
            )
            row = next((row for row in rows if limit is None or row[0] < limit), None)
            if row is None:
                return current
            current, limit = _decode_stored_path(row[1]), row[0]
        return current

    def files_removed_from(self, folder: str, since: int | None) -> list[str]:
        """The files that once were under a folder and left it."""
        self.load(since or 0)
        rows = self.store.rows(
            "SELECT DISTINCT old FROM step WHERE repository = ? AND old > ? AND old < ? AND at >= ? LIMIT 400",
            (self.key, f"{folder}/", f"{folder}0", (since or 0) - _DAY),
        )
        return [_decode_stored_path(row[0]) for row in rows]

    def removed_paths_named(self, name: str, since: int | None) -> list[str]:
        """Every path of the records that ends in this file name."""
        self.load(since or 0)
        rows = self.store.rows(
            "SELECT DISTINCT old FROM step WHERE repository = ? AND (old = ? OR old LIKE ? ESCAPE '\\') LIMIT 20",
            (self.key, name, "%/" + name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")),
        )
        return [_decode_stored_path(row[0]) for row in rows]

    def last_removal(self, path: str) -> Commit | None:
        """The last commit that took a path away, by renaming or deleting it."""
        row = self.store.row(
            "SELECT id, at FROM step WHERE repository = ? AND old = ? ORDER BY at DESC LIMIT 1", (self.key, path)
        )
        return Commit(row[0], row[1]) if row is not None else None

    def files_added_by(self, commit: str) -> list[str]:
        """The files that a commit added."""
        if commit in self._added:
            return self._added[commit]
        try:
            raw = self.git.run(
                "diff-tree",
                "-r",
                "-z",
                "--no-commit-id",
                "--no-renames",
                "--diff-filter=A",
                "--name-only",
                "--root",
                commit,
            )
        except GitFailed:
            return []
        self._added[commit] = [_decode_path(item) for item in raw.split(b"\0") if item][:2_000]
        return self._added[commit]

    def last_version(self, path: str) -> PastTree | None:
        """A file as it was just before it was taken away."""
        commit = self.last_removal(path)
        if commit is None:
            return None
        tree = self.file(Commit(f"{commit.id}^", commit.at), path)
        return tree if tree.has(path) else None

    def last_commits(self, paths: Iterable[str]) -> dict[str, Commit]:
        """The last commit on any branch that touches each path, in one walk; what no commit has is left out."""
        asked = [path for path in dict.fromkeys(paths) if "\n" not in path]
        found: dict[str, Commit] = {}
        for first in range(0, len(asked), 400):
            self._check_time()
            some = asked[first : first + 400]
            try:
                raw = self.git.run(
                    "log", "--all", "--no-show-signature", "--no-renames", "--name-only", "-z", "--format=%x02%H %ct",
                    "--", *some, timeout=60,
                )  # fmt: skip
            except GitFailed as error:
                self.problem = error.why
                continue
            commit = Commit("", 0)
            for item in raw.split(b"\0"):
                item = item.lstrip(b"\n")
                if item.startswith(b"\x02"):
                    oid, _, seconds = item[1:].partition(b" ")
                    commit = Commit(oid.decode(), int(seconds.split(b"\n")[0]))
                elif item:
                    touched = _decode_path(item)
                    for path in some if touched not in some else (touched,):
                        if touched == path or touched.startswith(path + "/"):
                            found.setdefault(path, commit)
        return found

    def last_touch(self, path: str) -> Commit | None:
        key = f"touch {self.key} {self.state.head} HEAD {path}"
        known = self.store.answer(key)
        if known is None:
            self._check_time()
            try:
                lines = self.git.lines(
                    "log", "-1", "--no-show-signature", "--format=%H %ct", "HEAD", "--", path, timeout=20
                )
            except GitFailed:
                return None
            known = lines[0] if lines else ""
            self.store.remember(key, known)
        oid, _, at = known.partition(" ")
        return Commit(oid, int(at)) if oid else None

    # Code.

    def set_names(self, names: Iterable[str]) -> None:
        """Say which names old trees will be asked for."""
        asked = set(names)
        if not asked <= self._name_search.names.keys():
            self._name_search = OldNameSearch(asked)

    def tree(self, commit: str, names: Iterable[str], now: CheckoutFiles) -> PastTree | None:
        """What an old tree had otherwise than it is now, as far as its files have these names."""
        self._check_time()
        asked = set(names)
        self.set_names(asked)
        try:
            try:
                tree = read_old_tree(
                    self.git, self.store, commit, now, asked, self._name_search, deadline=self.deadline
                )
            except StoreLost:
                tree = read_old_tree(
                    self.git, self.store, commit, now, asked, self._name_search, deadline=self.deadline
                )
        except GitFailed as error:
            self.problem = error.why
            return None
        self._is_partial |= tree.is_partial
        return tree

    def checkpoints(self) -> list[Commit]:
        """Where to look for something that has no date: a few commits, further and further back."""
        return self._checkpoints

    @cached_property
    def _checkpoints(self) -> list[Commit]:
        key = f"checkpoints {self.key} {self.state.head}"
        known = self.store.answer(key)
        if known is not None:
            return [Commit(oid, at) for oid, at in json.loads(known)]
        found = self._find_checkpoints()
        if not self.problem:
            self.store.remember(key, json.dumps(found))
        return found

    def _find_checkpoints(self) -> list[Commit]:
        line = self._main_line
        found = [Commit(*line[back]) for back in _CHECKPOINT_COMMITS if back < len(line)]
        for days in _CHECKPOINT_DAYS:
            commit = self.commit_at(self.state.head_at - days * _DAY)
            if commit is None:
                break
            if not found or commit.at < found[-1].at:
                found.append(commit)
        if line and found and found[-1].id != line[-1][0] and len(line) < 2 * _CHECKPOINT_COMMITS[-1]:
            found.append(Commit(*line[-1]))
        if self._main_line and found and self.state.head_at - self.oldest() > 2 * _CHECKPOINT_DAYS[-1] * _DAY:
            middle = self.commit_at((found[-1].at + self.oldest()) // 2)
            if middle is not None:
                found.append(middle)
        return found

    def file(self, commit: Commit, path: str) -> PastTree:
        """One file of an old commit as a tree of its own: much cheaper than the whole. Empty when it was not there."""
        key = f"{commit.id}:{path}"
        tree = self._files.get(key)
        if tree is None:
            commits = self.checkpoints()
            asked = [f"{item.id}:{path}" for item in commits] if commit in commits else [key]
            oids = self.oids(asked)  # one question for all checkpoints: the next one is likely asked next
            for name in asked:
                self._files[name] = read_file(self.git, self.store, name.partition(":")[0], path, oids.get(name))
            tree = self._files[key]
        return tree

    def oids(self, names: Sequence[str]) -> dict[str, bytes]:
        """The blob ids of `commit:path` names; what is missing is left out."""
        found = {}
        for name, oid, kind in self.git.infos(list(dict.fromkeys(names))):
            if kind == "blob":
                found[name] = bytes.fromhex(oid)[:20]
        return found

    def read_touches(self, paths: Iterable[str], since: int) -> None:
        """Read, in one walk, which commits changed these files since a time, and which blobs each had before."""
        missing = [path for path in dict.fromkeys(paths) if self._touched_since.get(path, since + 1) > since]
        for first in range(0, len(missing), 400):
            self._check_time()
            some = missing[first : first + 400]
            self._touches.update({path: [] for path in some})
            self._touched_since.update(dict.fromkeys(some, since))
            try:
                raw = self.git.run(
                    "log", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-renames", "--raw",
                    "--no-abbrev",
                    "-z", "--format=%x02%H %ct", f"--since=@{max(0, since - _DAY)}", "HEAD", "--", *some, timeout=60,
                )  # fmt: skip
            except GitFailed:
                return
            commit = Commit("", 0)
            items = iter(raw.split(b"\0"))
            for item in items:
                item = item.lstrip(b"\n")
                if item.startswith(b"\x02"):
                    oid, _, seconds = item[1:].partition(b" ")
                    commit = Commit(oid.decode(), int(seconds.split(b"\n")[0]))
                elif item.startswith(b":"):
                    before = item.split(b" ")[2].decode()
                    path = _decode_path(next(items, b""))
                    if path in self._touches:
                        self._touches[path].append((commit, before))

    def prefetch_removals(self, lost: Iterable[tuple[str, str, int]]) -> None:
        """Read the history of the files that lost these words in one walk, unless it is known already."""
        unknown = [item for item in lost if self.store.answer(self._removal_key(*item)) is None]
        if unknown:
            self.read_touches({path for _, path, _ in unknown}, min(since for _, _, since in unknown))

    def _removal_key(self, word: str, path: str, since: int) -> str:
        return f"out {self.key} {self.state.head} {since} {word} {path}"

    def find_removing_commit(self, word: str, path: str, since: int) -> Commit | None:
        """The last commit that took a word out of a file."""
        key = self._removal_key(word, path, since)
        known = self.store.answer(key)
        if known is None:
            self.read_touches([path], since)
            found = self._find_removal(word, path)
            known = f"{found.id} {found.at}" if found else ""
            self.store.remember(key, known)
        oid, _, at = known.partition(" ")
        return Commit(oid, int(at)) if oid else None

    def _find_removal(self, word: str, path: str) -> Commit | None:
        """The newest commit before which a file had a word that it has no more; a definition, if it is still used."""
        edge = rb"[\w$-]" if "-" in word else rb"[\w$]"
        raw = word.encode("utf-8", "surrogateescape")
        pattern = re.compile(rb"(?<!" + edge + rb")" + re.escape(raw) + rb"(?!" + edge + rb")")
        now = self._blob(f"{self.state.head}:{path}")
        language = language_for(path)

        def code_with_word(data: bytes | None) -> bytes | None:
            code = clean(data, language) if data is not None and pattern.search(data) else None
            return code if code is not None and pattern.search(code) else None

        is_used = code_with_word(now) is not None

        def has(data: bytes | None) -> bool:
            code = code_with_word(data)
            return code is not None and (not is_used or raw in defined_names(code, language))

        if has(now):
            return None
        # One after the other: a word may have come and gone more than once, so there is nothing to halve.
        for commit, before in self._touches[path][:_MAX_RENAMES]:
            if has(self._blob(before)):
                return commit
        return None

    def _blob(self, name: str) -> bytes | None:
        return next(iter(list(self.git.blobs([name], limit=MAX_SOURCE_BYTES))), ("", None))[1]


def _records(raw: bytes) -> Iterable[tuple[int, str, str, str]]:
    """The rename and delete records of a log, as (time, commit, old, new)."""
    commit, at = "", 0
    items = iter(raw.split(b"\0"))
    for item in items:
        item = item.lstrip(b"\n")
        if item.startswith(b"\x02"):
            oid, _, seconds = item[1:].partition(b" ")
            commit, at = oid.decode(), int(seconds.split(b"\n")[0])
            _, _, item = item.partition(b"\n")
            item = item.lstrip(b"\n")
        if item == b"D":
            yield at, commit, _decode_path(next(items, b"")), ""
        elif item.startswith(b"R"):
            old = _decode_path(next(items, b""))
            yield at, commit, old, _decode_path(next(items, b""))


def _rename_target(path: str, renames: Mapping[str, str]) -> str | None:
    """Where a commit took a file, or what was in a folder; empty: nowhere, it is deleted. None: it left it alone."""
    if path in renames:
        return renames[path]
    inside = {old[len(path) :]: new for old, new in renames.items() if old.startswith(f"{path}/")}
    if not inside:
        return None
    heirs = Counter(new[: -len(tail)] for tail, new in inside.items() if new.endswith(tail))
    heir, count = heirs.most_common(1)[0] if heirs else ("", 0)
    return heir if count * 5 >= sum(map(bool, inside.values())) * 3 else ""


def _decode_path(raw: bytes) -> str:
    """A path as a checkout has it, with escapes for bytes that are no text."""
    return os.fsdecode(raw)


def _decode_stored_path(stored: str) -> str:
    """A path out of the store, which writes those escapes in letters."""
    if "\\udc" not in stored:
        return stored
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), stored)
