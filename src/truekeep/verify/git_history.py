"""Git history of a repository: the commit at a date, where a file moved, which commit removed it, and old files.

Moves are found by following the renames of each commit one after another, because comparing only the first and the last
commit finds a fraction of them. The rename records are read once, as far back as needed; later runs add new commits.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
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
from truekeep.verify.languages import clean, definitions
from truekeep.verify.results import stamp_of

_DAY = 86_400
_NEVER = 1 << 60
_MAX_RENAMES = 60  # followed for one path
_LOG_HEAD = re.compile(rb"\x02([0-9a-f]{40,64}) (\d+)(?:\n(.*))?", re.DOTALL)  # of a commit, in the log of `_walk`
_MAX_PATHS_FOR_GIT = 24  # given to one walk through history
_ESCAPE = re.compile(r"\\u(dc[89a-f][0-9a-f])")
MAX_MERGE_LAG = 90 * 86_400  # seconds that a commit may be older than its merge
_CHECKPOINT_COMMITS = (1, 2, 4, 8, 16, 32, 64, 128)
_CHECKPOINT_DAYS = (
    30, 60, 90, 135, 180, 225, 270, 320, 365, 430, 500, 570, 640, 730, 820, 910, 1_000, 1_150, 1_300, 1_500, 1_700,
    1_950, 2_200, 2_550, 2_900, 3_400, 4_000,
)  # fmt: skip


class Commit(NamedTuple):
    """The id and time of a commit."""

    id: str
    at: int

    @property
    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self.at)) if self.at else ""


class Trail(NamedTuple):
    """Where a path moved, and the commit that moved or deleted it."""

    path: str  # empty: deleted
    commit: Commit
    last: str  # its last known name


class Past:
    """The history of one repository, read on demand."""

    def __init__(self, git: Git, store: FactsCache, state: CheckoutState, *, deadline: float | None = None) -> None:
        self.git, self.store, self.state, self.deadline = git, store, state, deadline
        # A shallow clone can be deepened without moving HEAD, so its depth is part of the cache key.
        reach = stamp_of(state.common_dir, "shallow") if state.is_shallow else ""
        self.key = f"{state.git_dir} {reach}".rstrip()
        self._since: int | None = None
        self._only: list[Commit] = []  # searched instead of the checkpoints, if there is one
        self._name_search = OldNameSearch(())
        self._files: dict[str, PastTree] = {}  # by `commit:path`
        self._file_oids: dict[str, bytes | None] = {}
        self._touches: dict[str, list[tuple[Commit, str]]] = {}
        self._touched_since: dict[str, int] = {}  # by path, how far back `_touches` goes
        self._likely_asked: dict[str, int] = {}  # paths whose touches will be asked for, with the time
        self._added: dict[str, list[str]] = {}
        self._renamed: dict[str, dict[str, str]] = {}
        self.problem = ""  # why history could not be read, as a readable reason
        self.has_only_exact_renames = False  # blobs are missing, so a file that moved with an edit counts as deleted
        # A partial clone has only blob ids, so it can detect only renames without an edit.
        self._rename_options = ("-M100%",) if state.is_lazy else ("-M", "-l2000")
        self._is_partial = state.is_lazy  # some objects were not read, so a name that is not found may exist

    def _check_time(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise VerifyTimeout

    # Commits.

    def commit_at(self, at: int) -> Commit | None:
        """Return the commit that the main line was at at this time; None if there was none yet."""
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

    def time_of(self, commit: str) -> int:
        """When a commit was made, in seconds; 0 if this branch does not have it."""
        return self._times.get(commit, 0)

    @cached_property
    def _times(self) -> dict[str, int]:
        try:
            raw = self.git.run("rev-list", "--timestamp", "HEAD", "--", timeout=60).decode().splitlines()
        except GitFailed:
            return {}
        return {oid: int(seconds) for seconds, _, oid in (line.partition(" ") for line in raw)}

    @cached_property
    def subjects(self) -> list[tuple[Commit, str]]:
        """The first line of each commit's message on this branch, newest first; empty if git fails."""
        try:
            raw = self.git.run(
                "log", "--no-show-signature", "--no-decorate", "--format=%H %ct %s", "HEAD", "--", timeout=60
            )
        except GitFailed:
            return []
        rows = (line.split(" ", 2) for line in raw.decode("utf-8", "replace").split("\n"))  # a subject may have U+2028
        return [(Commit(row[0], int(row[1])), row[2]) for row in rows if len(row) == 3]

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
        """Whether all of history can be read."""
        return self.state.is_whole and bool(self._main_line) and not self.problem

    def oldest(self) -> int:
        return self._main_line[-1][1] if self._main_line else 0

    # Names that never occurred here. Memories often mention code of other projects, so this is cached.

    def search_only(self, commit: str, at: int) -> None:
        """Search one commit for what is not here any more: the base of a change. Nothing found so is remembered."""
        self._only = [Commit(commit, at)]

    def absent_until(self, name: str) -> int:
        """Return the time until which a name is known to be in no code; 0 if it was never searched for."""
        return 0 if self._only else int(self.store.answer(f"never {self.key} {name}") or 0)

    def remember_absent(self, names: Iterable[str]) -> None:
        if self._is_partial or self.problem or self._only:
            return
        with self.store.transaction():
            for name in names:
                self.store.remember(f"never {self.key} {name}", str(self.state.head_at))

    def cached_definitions(self, name: str, commit: str) -> str | None:
        """Return the definitions that an earlier run found for a name at a commit; at any commit if it is empty."""
        is_any = self._only and not commit
        return None if is_any else self.store.answer(f"was {self.key} {commit} {name}")

    def remember_old_definitions(self, name: str, commit: str, found: str) -> None:
        if (found or not self._is_partial) and not (self._only and not commit):
            self.store.remember(f"was {self.key} {commit} {name}", found)

    # Files.

    def load(self, since: int) -> None:
        """Load the records of renames and deletions since this time; 0 loads all of history."""
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
            return False  # history was rewritten, or the commit is gone: read all of it again
        return True

    def _append(self, revisions: str, *, since: int, keep: bool) -> None:
        rows, failure = self._log(revisions, *self._rename_options, "--diff-filter=DR", since=since)
        if failure is not None:
            # A blob is missing: a file that moved without an edit is known by its id alone.
            exact, second = self._log(revisions, "-M100%", "--diff-filter=DR", since=since)
            if second is None:
                rows, failure = exact, None
                self.has_only_exact_renames = True
        is_sound = failure is None and not self.has_only_exact_renames
        if failure is not None:
            # Before that commit, deletions can still be read, but not renames.
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
        """Follow a path through renames after this time, or from its last record. None if history does not have it."""
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
            # With a known date, take the first event after it; otherwise the last one, because the path is gone now.
            # A commit that is older than its merge still counts.
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
        """Follow a file or folder that moved before the records begin, from the last commit that touched it.

        None if this branch never had it. Each step walks through history, so call this only for paths that existed.
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
        """Return the renames of a commit, old path to new; the new path is empty for a deletion."""
        if commit not in self._renamed:
            self._check_time()
            rows, failure = self._log(commit, "--no-walk", *self._rename_options, "--diff-filter=DR", since=0)
            if failure is not None:
                self.problem = failure.why
                raise failure
            self._renamed[commit] = {old: new for _, _, old, new in rows}
        return self._renamed[commit]

    def name_then(self, path: str, at: int) -> str:
        """Return the path that a current file had at that time."""
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
        """Return the files that were moved out of a folder or deleted from it."""
        self.load(since or 0)
        rows = self.store.rows(
            "SELECT DISTINCT old FROM step WHERE repository = ? AND old > ? AND old < ? AND at >= ? LIMIT 400",
            (self.key, f"{folder}/", f"{folder}0", (since or 0) - _DAY),
        )
        return [_decode_stored_path(row[0]) for row in rows]

    def removed_paths_named(self, name: str, since: int | None) -> list[str]:
        """Return the removed or renamed paths with this file name."""
        self.load(since or 0)
        rows = self.store.rows(
            "SELECT DISTINCT old FROM step WHERE repository = ? AND (old = ? OR old LIKE ? ESCAPE '\\') LIMIT 20",
            (self.key, name, "%/" + name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")),
        )
        return [_decode_stored_path(row[0]) for row in rows]

    def last_removal(self, path: str) -> Commit | None:
        """Return the last commit that renamed or deleted a path."""
        row = self.store.row(
            "SELECT id, at FROM step WHERE repository = ? AND old = ? ORDER BY at DESC LIMIT 1", (self.key, path)
        )
        return Commit(row[0], row[1]) if row is not None else None

    def files_added_by(self, commit: str) -> list[str]:
        """Return the files that a commit added."""
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
        """Return a file as it was just before it was renamed or deleted."""
        commit = self.last_removal(path)
        if commit is None:
            return None
        tree = self.file(Commit(f"{commit.id}^", commit.at), path)
        return tree if tree.has(path) else None

    def last_commits(self, paths: Iterable[str]) -> dict[str, Commit]:
        """Find the last commit on any branch that touches each path, in one walk; omit paths without one."""
        asked = [path for path in dict.fromkeys(paths) if "\n" not in path]
        if not asked:
            return {}
        keys = {path: f"last {self.key} {self._tips_digest} {path}" for path in asked}
        known = {path: value for path, key in keys.items() if (value := self.store.answer(key)) is not None}
        found = {
            path: Commit(oid, int(at)) for path, value in known.items() for oid, _, at in [value.partition(" ")] if oid
        }
        unknown = [path for path in asked if path not in known]
        try:
            new = self._find_last_commits(unknown) if unknown else {}
        except GitFailed as error:
            self.problem = error.why
            return found
        with self.store.transaction():
            for path in unknown:
                self.store.remember(keys[path], f"{new[path].id} {new[path].at}" if path in new else "")
        return found | new

    @cached_property
    def _tips_digest(self) -> str:
        """A digest of where every branch and tag is."""
        try:
            tips = self.git.run("for-each-ref", "--format=%(objectname)")
        except GitFailed:
            tips = b""
        return blake2b(self.state.head.encode() + tips, digest_size=8).hexdigest()

    def _find_last_commits(self, asked: Sequence[str]) -> dict[str, Commit]:
        found: dict[str, Commit] = {}
        left = set(asked)
        for commit, _, touched in self._walk(asked, "--all", "--name-only"):
            while touched:
                if touched in left:
                    found[touched] = commit
                    left.discard(touched)
                touched = touched.rpartition("/")[0]
        return found

    def _walk(self, paths: Sequence[str], *how: str) -> Iterator[tuple[Commit, str, str]]:
        """Each commit, blob before it and path of a log, newest first; of these paths, and maybe of others.

        Git compares every file with every path that it is given: for many, reading all of history is faster.
        """
        self._check_time()
        limit = sorted(paths) if len(paths) <= _MAX_PATHS_FOR_GIT else []
        raw = self.git.run(
            "log", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-renames", "-z",
            "--format=%x02%H %ct", *how, "--", *limit, timeout=60,
        )  # fmt: skip
        commit, before = Commit("", 0), ""
        is_first = is_path = False
        for item in _split(raw):
            if is_path:  # it follows its record, whatever it looks like
                is_path = False
                yield commit, before, _decode_path(item)
                continue
            if head := _LOG_HEAD.fullmatch(item):
                commit, item, is_first = Commit(head[1].decode(), int(head[2])), head[3] or b"", True
            if is_first:
                item = item.removeprefix(b"\n")  # git puts one before the first record of a commit
                is_first = not item
            if "--raw" not in how:
                if item:
                    yield commit, before, _decode_path(item)
            elif item.startswith(b":"):
                before, is_path = item.split(b" ")[2].decode(), True

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
        """Set the names to search old trees for."""
        asked = set(names)
        if not asked <= self._name_search.names.keys():
            self._name_search = OldNameSearch(asked)

    def tree(self, commit: str, names: Iterable[str], now: CheckoutFiles) -> PastTree | None:
        """Read the files of an old commit that differ from now and contain these names."""
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
        """Return the commits to search when a memory has no date: a few, further and further back."""
        return self._only or self._checkpoints

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
        """Return one file of an old commit as a tree, which is empty if the commit does not have it."""
        key = f"{commit.id}:{path}"
        tree = self._files.get(key)
        if tree is None:
            if key not in self._file_oids:
                commits = self.checkpoints()
                asked = [f"{item.id}:{path}" for item in commits] if commit in commits else [key]
                oids = self.oids(asked)  # one git call for all checkpoints: the others are likely needed next
                self._file_oids.update({name: oids.get(name) for name in asked})
            tree = self._files[key] = read_file(self.git, self.store, commit.id, path, self._file_oids[key])
        return tree

    def oids(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the blob ids of `commit:path` names, without those that do not exist."""
        found = {}
        for name, oid, kind in self.git.infos(list(dict.fromkeys(names))):
            if kind == "blob":
                found[name] = bytes.fromhex(oid)[:20]
        return found

    def read_touches(self, paths: Iterable[str], since: int) -> None:
        """Read, in one walk, the commits that changed these files since a time, and the blobs before each change."""
        missing = [path for path in dict.fromkeys(paths) if self._touched_since.get(path, since + 1) > since]
        if not missing:
            return
        self._touches.update({path: [] for path in missing})
        self._touched_since.update(dict.fromkeys(missing, since))
        wanted = set(missing)
        start = f"--since=@{max(0, since - _DAY)}"
        with suppress(GitFailed):
            for commit, before, path in self._walk(missing, "--raw", "--no-abbrev", start, "HEAD"):
                if path in wanted:
                    self._touches[path].append((commit, before))

    def expect_removals(self, lost: Iterable[tuple[str, str, int]]) -> None:
        """Note which files lost words: the first question about one of them reads the history of all, in one walk."""
        for _, path, since in lost:
            self._likely_asked[path] = min(since, self._likely_asked.get(path, since))

    def _removal_key(self, word: str, path: str, since: int) -> str:
        return f"out {self.key} {self.state.head} {since} {word} {path}"

    def find_removing_commit(self, word: str, path: str, since: int) -> Commit | None:
        """Return the last commit that removed a word from a file."""
        key = self._removal_key(word, path, since)
        known = self.store.answer(key)
        if known is None:
            if path not in self._touches and path in self._likely_asked:
                self.read_touches(self._likely_asked, min(self._likely_asked.values()))
            self.read_touches([path], since)
            found = self._find_removal(word, path, since)
            known = f"{found.id} {found.at}" if found else ""
            self.store.remember(key, known)
        oid, _, at = known.partition(" ")
        return Commit(oid, int(at)) if oid else None

    def _find_removal(self, word: str, path: str, since: int) -> Commit | None:
        """Find the commit that removed a word, or removed its definition if the file still uses the word."""
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
            return code is not None and (not is_used or bool(definitions(code, language, {word})))

        if has(now):
            return None
        # Not a bisection: the word may have been added and removed more than once.
        touches = [(commit, before) for commit, before in self._touches[path] if commit.at >= since - _DAY]
        for commit, before in touches[:_MAX_RENAMES]:
            if has(self._blob(before)):
                return commit
        return None

    def _blob(self, name: str) -> bytes | None:
        return next(iter(list(self.git.blobs([name], limit=MAX_SOURCE_BYTES))), ("", None))[1]


def _split(raw: bytes) -> Iterator[bytes]:
    """The parts between zero bytes, one at a time: all of history has a million."""
    start = 0
    while (end := raw.find(b"\0", start)) >= 0:
        yield raw[start:end]
        start = end + 1
    yield raw[start:]


def _records(raw: bytes) -> Iterable[tuple[int, str, str, str]]:
    """Parse the renames and deletions in a log as (time, commit, old, new)."""
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
    """Return the path that a commit renamed a file or folder to; empty if it deleted it, None if it did neither."""
    if path in renames:
        return renames[path]
    inside = {old[len(path) :]: new for old, new in renames.items() if old.startswith(f"{path}/")}
    if not inside:
        return None
    successors = Counter(new[: -len(tail)] for tail, new in inside.items() if new.endswith(tail))
    successor, count = successors.most_common(1)[0] if successors else ("", 0)
    return successor if count * 5 >= sum(map(bool, inside.values())) * 3 else ""


def _decode_path(raw: bytes) -> str:
    """Decode a path, with surrogate escapes for bytes that are not valid text."""
    return os.fsdecode(raw)


def _decode_stored_path(stored: str) -> str:
    """Restore the surrogate escapes in a path from the cache, which stores them as text."""
    if "\\udc" not in stored:
        return stored
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), stored)
