"""The files of a repository: the checkout on disk, or the tree of an old commit.

Both list their paths, what each file defines, and which words its code contains. Git lists the files and truekeep reads
them. Git commands that compare the work tree are not used, because they run filters that a repository can configure.
Facts are cached by blob id, so the next run stats each file and reads only those that changed. Symlinks count as names
and are never followed, and no file is opened through a symlinked folder.

Files in a language with a grammar are parsed on demand: a current file when a claim asks for one of its words, an old
one only for the names in question.
"""

from __future__ import annotations

import json
import os
import stat
import time
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b, sha1
from typing import NamedTuple

from truekeep.core.file_io import read_head
from truekeep.core.git import Git
from truekeep.core.model import WRITERS
from truekeep.core.repository import GitFailed
from truekeep.verify.cache import FactsCache
from truekeep.verify.file_kinds import (
    FileKind,
    key_of,
    kind_of,
    language_for,
    names_to_keys,
    prefer,
    read_facts,
    word_in,
)
from truekeep.verify.languages import clean, definitions, has_grammar
from truekeep.verify.results import stamp_of

MAX_SOURCE_BYTES = 1_000_000  # larger files are not read
# A file changed this recently may change again with the same stat, so it is read again next time.
RECENT_CHANGE_NS = 2_000_000_000
_HANDOFF_FOLDERS = tuple(f"{folder}/" for folder in WRITERS.values())
_FILES_PER_BATCH = 512  # read between two checks of the deadline
_ENOUGH_DEFINING_FILES = 24  # of one name; no more files are parsed for it, the least likely ones
_NAME_ONLY_STAT = (0, 0, 0, 0)  # stored instead of a stat for submodules and links, which are not read
_SPARSE_STAT = (0, 0, 0, 1)  # the same for files outside a sparse checkout, which are read from git


class VerifyTimeout(Exception):
    """The deadline has passed. Facts that were read before it stay in the cache."""


class StoredDefinition(NamedTuple):
    """One definition as it is stored in the cache, with its lines and offsets."""

    name: str
    scope: str
    kind: str
    line: int
    end: int
    start: int
    stop: int

    @property
    def qualified(self) -> str:
        return f"{self.scope}.{self.name}" if self.scope else self.name


class FileTree:
    """The paths of one tree, and the facts about their blobs."""

    def __init__(self, store: FactsCache, paths: Sequence[str], ids: Sequence[int]) -> None:
        self.store = store
        self.paths = paths
        self.ids = ids  # the cache id of each path's blob; 0: it was not read
        self.is_single = False  # a tree of one file, which is read even if the cache has no facts about it
        self.is_partial = False  # some file could not be read, so a name that is not found may still exist
        self.deadline: float | None = None
        self._found: dict[str, dict[str, list[str]]] = {}
        self._defining: dict[str, list[str]] = {}
        self._outlines: dict[str, tuple[StoredDefinition, ...]] = {}
        self._code: dict[str, bytes] = {}

    @cached_property
    def position(self) -> dict[str, int]:
        return {path: at for at, path in enumerate(self.paths)}

    @cached_property
    def folders(self) -> set[str]:
        folders: set[str] = set()
        for path in self.paths:
            folder = path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return folders

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for path in self.paths:
            names.setdefault(path.rpartition("/")[2], []).append(path)
        return names

    @cached_property
    def by_lower(self) -> dict[str, str]:
        return {path.lower(): path for path in self.paths}

    @cached_property
    def paths_of(self) -> dict[int, list[str]]:
        """Blob id → the paths with that blob."""
        found: dict[int, list[str]] = {}
        for path, number in zip(self.paths, self.ids, strict=True):
            if number:
                found.setdefault(number, []).append(path)
        return found

    def has(self, path: str) -> bool:
        return path in self.position

    def has_folder(self, path: str) -> bool:
        return path in self.folders

    def find(self, table: str, words: Iterable[str]) -> dict[str, list[str]]:
        """Map each word to the paths whose blob has its key in this table.

        Two words may share a key, so callers check the file itself. Results are cached: ask for many words at once.
        """
        known = self._found.setdefault(table, {})
        asked = set(words)
        words_of: dict[int, list[str]] = {}
        for word in asked - known.keys():
            words_of.setdefault(key_of(word), []).append(word)
        if words_of:
            known.update({word: [] for some in words_of.values() for word in some})
            for key, number in self._search(table, words_of.keys()):
                for word in words_of[key]:
                    known[word] += self.paths_of[number]
        return {word: known[word] for word in asked}

    def _search(self, table: str, wanted: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield each wanted key with each blob that has it."""
        paths_of = self.paths_of
        if len(wanted) <= 12:
            needles = [(key.to_bytes(4, "little"), key) for key in wanted]
            for number, keys in self.store.keys(table, self._ranges):
                for needle, key in needles:
                    at = keys.find(needle)
                    while at >= 0 and at % 4:
                        at = keys.find(needle, at + 1)
                    if at >= 0 and number in paths_of:
                        yield key, number
            return
        known = frozenset(wanted)
        for number, keys in self.store.keys(table, self._ranges):
            if number in paths_of:
                for key in known.intersection(memoryview(keys).cast("I")):
                    yield key, number

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """The blobs of this tree as ranges of ids, so that searches skip the blobs of other repositories."""
        ranges: list[tuple[int, int]] = []
        for number in sorted(self.paths_of):
            if ranges and number - ranges[-1][1] <= 64:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        return ranges

    def defining(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Map each name to the files that define it, parsing files that contain it. Ask for many names at once.

        Two names may share a key, so callers check the definitions themselves.
        """
        asked = set(names)
        if missing := asked - self._defining.keys():
            self._defining.update(self._find_defining(missing))
        return {name: self._defining[name] for name in asked}

    def _find_defining(self, names: set[str]) -> dict[str, list[str]]:
        raise NotImplementedError

    def _unparsed_files_with(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Map each name to the files whose code contains it and whose definitions are not known yet."""
        words = {name: word for name in names if (word := word_in(name))}
        spellings = {spelling for word in words.values() for spelling in (word, f"${word}")}
        found = self.find("unparsed words", spellings)
        return {
            name: {path for path in (*found[word], *found[f"${word}"]) if has_grammar(language_for(path))}
            for name, word in words.items()
        }

    def _check_time(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise VerifyTimeout

    def outlines(self, paths: Iterable[str]) -> dict[str, tuple[StoredDefinition, ...]]:
        """Return the definitions of each of these files, with lines and scopes."""
        asked = set(paths)
        missing: list[tuple[str, int]] = []
        for path in asked:
            if path in self._outlines:
                continue
            number = self.blob_of(path)
            row = self.store.row("SELECT definitions FROM outline WHERE id = ?", (number,)) if number else None
            known = row[0] if row is not None else None
            if known is None and self.is_single and not number:
                known = self.store.answer(self._outline_key(path))
            if known is not None:
                self._outlines[path] = tuple(StoredDefinition(*item) for item in json.loads(known))
            elif number or self.is_single:
                missing.append((path, number))
            else:
                self._outlines[path] = ()
        if missing:
            with self.store.transaction():
                for (_, number), (path, data) in zip(missing, self.read([path for path, _ in missing]), strict=True):
                    self._outlines[path] = found = outline_of(data, path) if data is not None else ()
                    if data is not None and number:
                        self._store_outline(path, number, found)
                    elif data is not None:
                        self.store.remember(self._outline_key(path), json.dumps(found))
        return {path: self._outlines[path] for path in asked}

    def _store_outline(self, path: str, number: int, found: Sequence[StoredDefinition]) -> None:
        self.store.run("INSERT OR REPLACE INTO outline VALUES (?, ?)", (number, json.dumps(found)))
        if has_grammar(language_for(path)):
            keys = names_to_keys(item.name for item in found)
            self.store.run("INSERT OR REPLACE INTO names VALUES (?, ?)", (number, keys))

    def named(self, path: str, name: str) -> tuple[StoredDefinition, ...]:
        """Return the definitions of a name in a file."""
        return tuple(item for item in self.outlines([path])[path] if item.name == name)

    def _outline_key(self, path: str) -> str:
        """The cache key for the outline of a file without facts."""
        raise NotImplementedError

    def blob_of(self, path: str) -> int:
        at = self.position.get(path)
        return self.ids[at] if at is not None else 0

    def digest(self, path: str, item: StoredDefinition) -> str:
        """Return a digest of a definition's body that changes only with its code."""
        number = self.blob_of(path)
        if not number:
            return digest_in(self.code(path), item)
        row = self.store.row("SELECT digest FROM body WHERE id = ? AND start = ?", (number, item.start))
        if row is not None:
            return str(row[0])
        found = digest_in(self.code(path), item)
        self.store.run("INSERT OR REPLACE INTO body VALUES (?, ?, ?)", (number, item.start, found))
        return found

    def code(self, path: str) -> bytes:
        """Return a file's code without comments; empty if the file cannot be read."""
        known = self._code.get(path)
        if known is None:
            data = self.text(path) or b""
            known = clean(data, language_for(path)) if data and language_for(path) else data
            if len(self._code) > 64:
                self._code.clear()
            self._code[path] = known
        return known

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        raise NotImplementedError

    def text(self, path: str) -> bytes | None:
        for _, data in self.read([path]):
            return data
        return None


def outline_of(data: bytes, path: str) -> tuple[StoredDefinition, ...]:
    language = language_for(path)
    return outline_in(clean(data, language), language) if language and len(data) <= MAX_SOURCE_BYTES else ()


def outline_in(code: bytes, language: str, wanted: Collection[str] | None = None) -> tuple[StoredDefinition, ...]:
    """Return the definitions in code whose comments are already blanked, or only those with a wanted name."""
    return tuple(StoredDefinition(*item) for item in definitions(code, language, wanted))


def digest_in(code: bytes, item: StoredDefinition) -> str:
    """Return a digest of a definition's body that ignores white space and comments."""
    return blake2b(code[item.start : item.stop].translate(None, b" \t\r\n"), digest_size=8).hexdigest()


class CheckoutFiles(FileTree):
    """The files of a checkout on disk, committed or not."""

    def __init__(self, git: Git, store: FactsCache, listing: _Listing, state: CheckoutState) -> None:
        super().__init__(store, listing.paths, listing.ids)
        self.git = git
        self.root = git.root
        self.state = state
        self._listing = listing
        self.is_partial = listing.is_partial
        self._has_unreadable_files = False  # among those that were to be parsed

    def _find_defining(self, names: set[str]) -> dict[str, list[str]]:
        found = {name: set(paths) for name, paths in self.find("names", names).items()}
        names_of: dict[str, frozenset[str]] = {}  # what the files define that are parsed now
        if unknown := names - self._parsed_names:
            for name, files in self._unparsed_files_with(unknown).items():
                self._parse_until_enough(name, files, found[name], names_of)
            if not self._has_unreadable_files:
                self._parsed_names |= unknown
                value = json.dumps([self._blobs_digest, *sorted(self._parsed_names)])
                self.store.remember(f"parsed {self.root}", value)
        return {name: list(paths) for name, paths in found.items()}

    @cached_property
    def _parsed_names(self) -> set[str]:
        """The names for which the files of this checkout, as they are now, have been parsed already."""
        digest, *names = json.loads(self.store.answer(f"parsed {self.root}") or '[""]')
        return set(names) if digest == self._blobs_digest else set()

    @cached_property
    def _blobs_digest(self) -> str:
        return blake2b(self._listing.ids.tobytes(), digest_size=8).hexdigest()

    def _parse_until_enough(
        self, name: str, files: set[str], defining: set[str], names_of: dict[str, frozenset[str]]
    ) -> None:
        """Parse files that contain a name, the most likely ones first, until enough of them define it."""
        count = 0
        for path in prefer(files | defining) if files else ():
            if path in files:
                if path not in names_of:
                    names_of[path] = self._parse(path)
                if name in names_of[path]:
                    defining.add(path)
            count += path in defining
            if count >= _ENOUGH_DEFINING_FILES:
                return

    def _parse(self, path: str) -> frozenset[str]:
        """Find and store the definitions of a file; return their names."""
        self._check_time()
        data = self.text(path)
        if data is None:
            self._has_unreadable_files = True
            return frozenset()
        outline = outline_of(data, path)
        with self.store.transaction():
            self._store_outline(path, self.blob_of(path), outline)
        return frozenset(item.name for item in outline)

    def _paths_with_stat(self, wanted_stat: tuple[int, ...]) -> Iterator[tuple[int, str]]:
        """Yield the index and path of each file with this stored stat."""
        stats, wanted = self._listing.stats, array("q", wanted_stat)
        for at, path in enumerate(self.paths):
            if not stats[at * 4 + 2] and stats[at * 4 : at * 4 + 4] == wanted:
                yield at, path

    @cached_property
    def _sparse_files(self) -> dict[str, str]:
        """Path → blob id of the files outside a sparse checkout."""
        oids = self._listing.staged
        return {path: oids[at * 20 : at * 20 + 20].hex() for at, path in self._paths_with_stat(_SPARSE_STAT)}

    def is_dirty(self, path: str) -> bool:
        """Whether a file differs from the index: edited, new, or deleted."""
        at = self.position.get(path)
        return at is None or self._listing.oids[at * 20 : at * 20 + 20] != self._listing.staged[at * 20 : at * 20 + 20]

    @cached_property
    def deleted(self) -> frozenset[str]:
        """Files that are tracked but not on disk."""
        return frozenset(self._listing.deleted)

    @cached_property
    def path_of_blob(self) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        oids = self._listing.oids
        for at, path in enumerate(self.paths):
            found.setdefault(bytes(oids[at * 20 : at * 20 + 20]), []).append(path)
        return found

    @cached_property
    def changed_since_head(self) -> list[tuple[str, bytes]]:
        """Files of HEAD whose blob is no longer anywhere on disk, with that blob: uncommitted changes."""
        here = self.path_of_blob
        return [(path, oid) for path, oid in _list_files(self.git, self.state.head) if oid not in here]

    @cached_property
    def _names_only(self) -> frozenset[str]:
        """Submodules and links; nothing below them is read."""
        return frozenset(path for _, path in self._paths_with_stat(_NAME_ONLY_STAT))

    def behind(self, path: str) -> str:
        """Return the submodule or link that a path goes through; empty if there is none."""
        folder = path.rpartition("/")[0] if self._names_only else ""
        while folder and folder not in self._names_only:
            folder = folder.rpartition("/")[0]
        return folder

    def became_submodule(self, path: str) -> str:
        """Return the submodule that has the name of a folder of a path that is not here; empty if there is none."""
        folders = set(path.split("/")[:-1]) if self._names_only else set()
        named = (one for one in self._names_only if one.rpartition("/")[2] in folders)
        return next((one for one in named if not os.path.islink(os.path.join(self.root, one))), "")

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        for path in paths:
            data = self.data(path, MAX_SOURCE_BYTES)
            yield path, None if data is not None and is_opaque(data) else data

    def data(self, path: str, limit: int) -> bytes | None:
        """Return a file's content, from disk or, outside a sparse checkout, from git; None if neither has it."""
        data = read_plain(self.root, path, limit)
        if data is None and path in self._sparse_files:
            with suppress(GitFailed):
                ((_, data),) = self.git.blobs([self._sparse_files[path]], limit=limit)
        return data


class CheckoutState(NamedTuple):
    """The state of a checkout as git reports it."""

    head: str  # commit id; empty if there is no commit yet or it cannot be read
    head_at: int  # seconds
    branch: str
    doing: str  # "rebase", "merge" ...: in progress
    is_shallow: bool
    is_lazy: bool  # a partial clone
    is_damaged: bool  # HEAD cannot be read
    git_dir: str
    common_dir: str  # for a linked worktree, the one of its clone; otherwise the same
    index_stamp: str

    @property
    def is_whole(self) -> bool:
        """Whether all commits and all their files are here."""
        return self.has_commits and not self.is_lazy

    @property
    def has_commits(self) -> bool:
        """Whether all commits are here. A partial clone has them, but may lack old files."""
        return not (self.is_shallow or self.is_damaged)

    @property
    def missing(self) -> str:
        """The kind of clone, "shallow" or "partial", if it does not have all of history."""
        return "shallow" if self.is_shallow else "partial" if self.is_lazy else ""


def read_state(git: Git) -> CheckoutState:
    """Read the state of a checkout. Raises GitFailed with a readable reason."""
    raw, failure = git.try_run(
        "rev-parse", "--absolute-git-dir", "--git-common-dir", "--is-shallow-repository", "--show-toplevel",
        "--verify", "-q", "HEAD",
    )  # fmt: skip
    lines = [os.fsdecode(line) for line in raw.split(b"\n")[:-1]]
    if len(lines) < 4:
        raise failure or GitFailed("git does not know this as a checkout")
    git_dir, common, shallow, top = lines[0], os.path.join(git.root, lines[1]), lines[2], lines[3]
    if os.path.realpath(top) != os.path.realpath(git.root):
        raise GitFailed(f"git has its files elsewhere, in {top} (core.worktree)")
    head, head_at = lines[4] if len(lines) > 4 else "", 0
    branch, is_damaged = "", False
    if head_ref := read_head(os.path.join(git_dir, "HEAD"), 500, follow=True).decode("utf-8", "replace").strip():
        branch = head_ref.removeprefix("ref: refs/heads/") if head_ref.startswith("ref: ") else "(detached)"
        is_damaged = not head and os.path.isfile(os.path.join(common, head_ref.removeprefix("ref: ")))
    if head:
        try:
            head_at = int(git.run("log", "-1", "--no-walk", "--no-show-signature", "--format=%ct", head, "--"))
        except GitFailed:
            head, is_damaged = "", True
    doing = next((word for name, word in _OPERATION_FILES if os.path.exists(os.path.join(git_dir, name))), "")
    config = read_head(os.path.join(common, "config"), 200_000, follow=True).lower()
    lazy = b"partialclone" in config or b"promisor" in config
    index_stamp = stamp_of(git_dir, "index")
    return CheckoutState(
        head, head_at, branch, doing, shallow == "true", lazy, is_damaged, git_dir, common, index_stamp
    )


_OPERATION_FILES = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)


class _Listing(NamedTuple):
    """The files of a checkout as they are cached between runs."""

    paths: list[str]
    ids: array[int]
    stats: array[int]  # four for each path
    oids: bytes  # twenty bytes for each path: the blob id on disk
    staged: bytes  # the same for the index; zeros for an untracked file
    deleted: tuple[str, ...]
    large: tuple[str, ...]
    untracked: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]
    is_partial: bool


def read_checkout(root: str, store: FactsCache, *, deadline: float | None = None) -> CheckoutFiles:
    """Read a checkout: list it, stat each file, and read the files that changed since the last run."""
    git = Git(root)
    state = read_state(git)
    if state.is_lazy:
        git.borrow(os.path.join(state.common_dir, "objects"))
    old = _load(store, root)
    entries = _read_index(git)
    untracked, folders = _find_untracked(git, root, entries, old)
    listing = _scan_files(git, root, store, entries, untracked, folders, old, deadline)
    files = CheckoutFiles(git, store, listing, state)
    files.deadline = deadline
    return files


def _list_files(git: Git, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of a commit with their blob ids."""
    for item in git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", timeout=60).split(b"\0"):
        head, _, raw = item.partition(b"\t")
        if raw and head.startswith(b"100"):
            yield os.fsdecode(raw), bytes.fromhex(head.split(b" ")[2].decode())[:20]


class _Entry(NamedTuple):
    path: str
    oid: bytes
    mode: str
    is_sparse: bool


def _read_index(git: Git) -> list[_Entry]:
    """Read the index, one entry per path even where the path has a merge conflict."""
    entries: dict[str, _Entry] = {}
    for item in git.run("ls-files", "-s", "-t", "-z", "--full-name", timeout=60).split(b"\0"):
        if not item:
            continue
        head, _, raw = item.partition(b"\t")
        tag, mode, oid, _stage = head.split(b" ")
        path = os.fsdecode(raw)
        entries.setdefault(path, _Entry(path, bytes.fromhex(oid.decode())[:20], mode.decode(), tag == b"S"))
    return list(entries.values())


def _find_untracked(
    git: Git, root: str, entries: list[_Entry], old: _Listing | None
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """List untracked files that git does not ignore. If no folder changed, reuse the last result.

    Handoffs are left out, because a memory must not confirm itself.
    """
    names = {entry.path.rpartition("/")[0] for entry in entries}
    for name in list(names):
        while name:
            name = name.rpartition("/")[0]
            names.add(name)
    names.add("")
    times = []
    recent = time.time_ns() - RECENT_CHANGE_NS
    for name in sorted(names):
        with suppress(OSError):
            changed = os.lstat(os.path.join(root, name) if name else root).st_mtime_ns
            times.append((name, changed if changed < recent else -1))
    folders = tuple(times)
    if old is not None and folders == old.folders and all(at >= 0 for _, at in folders) and not old.untracked:
        return (), folders
    try:
        raw = git.run("ls-files", "-o", "-z", "--exclude-standard", "--full-name", timeout=30)
    except GitFailed:
        return (), ()
    found = (os.fsdecode(item) for item in raw.split(b"\0") if item)
    return tuple(path for path in found if not path.startswith(_HANDOFF_FOLDERS)), folders


def _scan_files(
    git: Git,
    root: str,
    store: FactsCache,
    entries: list[_Entry],
    untracked: tuple[str, ...],
    folders: tuple[tuple[str, int], ...],
    old: _Listing | None,
    deadline: float | None,
) -> _Listing:
    known = {path: at for at, path in enumerate(old.paths)} if old is not None else {}
    paths: list[str] = []
    ids = array("q")
    stats = array("q")
    oids, staged = bytearray(), bytearray()
    deleted: list[str] = []
    large: list[str] = []
    todo: list[tuple[int, str, str, bytes]] = []
    sparse: list[tuple[int, str, str, bytes]] = []
    recent = time.time_ns() - RECENT_CHANGE_NS
    join = root.rstrip("/") + "/"
    items = [(entry.path, entry.oid, entry.mode, entry.is_sparse) for entry in entries]
    items += [(path, b"", "100644", False) for path in untracked if not path.endswith("/")]
    lstat = os.lstat
    for path, oid, mode, is_sparse in items:
        try:
            info = lstat(join + path)
        except (OSError, ValueError):
            if not is_sparse:
                deleted.append(path)
                continue
            info = None
        at = len(paths)
        paths.append(path)
        staged += oid or bytes(20)
        if info is None or mode == "160000" or not stat.S_ISREG(info.st_mode):
            # Submodules and symlinks are not read; files outside a sparse checkout are read from git.
            is_left_out = info is None and mode.startswith("100")
            ids.append(0)
            stats.extend(_SPARSE_STAT if is_left_out else _NAME_ONLY_STAT)
            oids += oid or bytes(20)
            if is_left_out:
                sparse.append((at, path, language_for(path), oid))
            continue
        old_at = known.get(path)
        mtime, size, inode, ctime = info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns
        if old_at is not None and old is not None:
            first = old_at * 4
            if old.stats[first : first + 4] == array("q", (mtime, size, inode, ctime)):
                ids.append(old.ids[old_at])
                stats.extend((mtime, size, inode, ctime))
                oids += old.oids[old_at * 20 : old_at * 20 + 20]
                if size > MAX_SOURCE_BYTES:
                    large.append(path)
                continue
        if mtime >= recent or ctime >= recent:
            mtime = -1
        ids.append(0)
        stats.extend((mtime, size, inode, ctime))
        oids += bytes(20)
        if size > MAX_SOURCE_BYTES:
            large.append(path)
        todo.append((at, path, language_for(path), oid))
    is_partial = False
    if todo or sparse or old is None or len(old.paths) != len(paths) or old.untracked != untracked:
        is_partial = _read_new(git, root, store, todo, sparse, ids, oids, deadline)
        listing = _Listing(
            paths, ids, stats, bytes(oids), bytes(staged), tuple(deleted), tuple(large), untracked, folders, is_partial
        )
        _save(store, root, listing)
        return listing
    listing = _Listing(
        paths, ids, stats, bytes(oids), bytes(staged), tuple(deleted), tuple(large), untracked, folders, False
    )
    if old is not None and (old.staged != listing.staged or old.folders != folders or old.deleted != listing.deleted):
        _save(store, root, listing)
    return listing


def _read_new(
    git: Git,
    root: str,
    store: FactsCache,
    todo: list[tuple[int, str, str, bytes]],
    sparse: list[tuple[int, str, str, bytes]],
    ids: array[int],
    oids: bytearray,
    deadline: float | None,
) -> bool:
    """Read new files from disk, and files outside a sparse checkout from git. Return whether any could not be read."""
    is_partial = False
    for first in range(0, len(todo), _FILES_PER_BATCH):
        if deadline is not None and time.monotonic() > deadline:
            raise VerifyTimeout
        with store.transaction(
            required=True
        ):  # in batches, so that other processes can write and a timeout loses little
            _read_batch(root, store, todo[first : first + _FILES_PER_BATCH], ids, oids)
    with store.transaction(required=True):
        wanted = [
            (at, path, language, oid) for at, path, language, oid in sparse if kind_of(path) is not FileKind.OPAQUE
        ]
        known = store.blob_ids([(oid, language) for _, _, language, oid in wanted])
        missing = []
        for at, path, language, oid in wanted:
            if number := known.get((oid, language), 0):
                ids[at] = number
            else:
                missing.append((at, path, language, oid))
        if missing:
            try:
                names = [oid.hex() for _, _, _, oid in missing]
                for (at, path, language, oid), (_, data) in zip(
                    missing, git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True
                ):
                    if data is None:
                        is_partial = True
                    else:
                        ids[at] = _add_facts(store, oid, language, data, path)
            except GitFailed:
                is_partial = True
    return is_partial


def _read_batch(
    root: str, store: FactsCache, batch: list[tuple[int, str, str, bytes]], ids: array[int], oids: bytearray
) -> None:
    for at, path, language, oid in batch:
        if kind_of(path) is FileKind.OPAQUE:
            oids[at * 20 : at * 20 + 20] = oid or bytes(20)
            continue
        data = read_plain(root, path, MAX_SOURCE_BYTES)
        if data is None or is_opaque(data):
            oids[at * 20 : at * 20 + 20] = oid or bytes(20)
            continue
        found = blob_id(data)
        if oid and found != oid and blob_id(data.replace(b"\r\n", b"\n")) == oid:
            found = oid  # checked out with CRLF line ends
        oids[at * 20 : at * 20 + 20] = found
        ids[at] = _add_facts(store, found, language, data, path)


def is_opaque(data: bytes) -> bool:
    """Whether a file is binary or a Git LFS pointer."""
    return b"\0" in data[:8192] or data.startswith(b"version https://git-lfs.github.com/spec/")


def _add_facts(store: FactsCache, oid: bytes, language: str, data: bytes, path: str) -> int:
    row = store.row("SELECT id FROM blob WHERE oid = ? AND language = ?", (oid, language))
    if row is not None:
        return int(row[0])
    return store.add_blob(oid, language, *read_facts(data, language, kind_of(path)))


def blob_id(data: bytes) -> bytes:
    """Compute the git blob id of this content."""
    digest = sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


def read_plain(root: str, path: str, limit: int) -> bytes | None:
    """Read a regular file below the root without following symlinks; None if it is not one or exceeds the limit."""
    folder = os.path.dirname(path)
    if folder and os.path.realpath(os.path.join(root, folder)) != _real_folder(root, folder):
        return None
    try:
        descriptor = os.open(os.path.join(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            return None
        pieces = []
        left = limit + 1
        while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
            if len(piece) == info.st_size:
                break
        return b"".join(pieces) if left > 0 else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


_REAL_ROOTS: dict[str, str] = {}


def _real_folder(root: str, folder: str) -> str:
    real = _REAL_ROOTS.get(root)
    if real is None:
        real = _REAL_ROOTS[root] = os.path.realpath(root)
    return f"{real}/{folder}"


def _save(store: FactsCache, root: str, listing: _Listing) -> None:
    state = {
        "deleted": listing.deleted,
        "large": listing.large,
        "untracked": listing.untracked,
        "folders": listing.folders,
        "sizes": (len(listing.paths), len(listing.staged)),
    }
    paths = "\0".join(listing.paths).encode("utf-8", "surrogateescape")
    data = b"".join(
        (
            len(paths).to_bytes(8, "little"),
            paths,
            listing.ids.tobytes(),
            listing.stats.tobytes(),
            listing.oids,
            listing.staged,
        )
    )
    with store.transaction():
        store.run(
            "INSERT OR REPLACE INTO checkout VALUES (?, ?, ?)",
            (root, data, json.dumps(state)),
        )


def _load(store: FactsCache, root: str) -> _Listing | None:
    row = store.row("SELECT listing, state FROM checkout WHERE root = ?", (root,))
    if row is None:
        return None
    data, state = bytes(row[0]), json.loads(row[1])
    length = int.from_bytes(data[:8], "little")
    text = data[8 : 8 + length].decode("utf-8", "surrogateescape")
    paths = text.split("\0") if text else []
    count, at = len(paths), 8 + length
    ids, stats = array("q"), array("q")
    ids.frombytes(data[at : at + count * 8])
    at += count * 8
    stats.frombytes(data[at : at + count * 32])
    at += count * 32
    oids, staged = data[at : at + count * 20], data[at + count * 20 :]
    if len(staged) != count * 20:
        return None
    return _Listing(
        paths,
        ids,
        stats,
        oids,
        staged,
        tuple(state["deleted"]),
        tuple(state["large"]),
        tuple(state["untracked"]),
        tuple((name, at) for name, at in state["folders"]),
        False,
    )


class PastTree(FileTree):
    """Files of an old commit, read from git."""

    def __init__(
        self, git: Git, store: FactsCache, commit: str, entries: Sequence[tuple[str, bytes]], ids: Sequence[int]
    ) -> None:
        super().__init__(store, [path for path, _ in entries], ids)
        self.commit = commit
        self._git = git
        self._oids = [oid for _, oid in entries]
        self._named: dict[tuple[str, str], tuple[StoredDefinition, ...]] = {}

    def oid(self, path: str) -> bytes | None:
        at = self.position.get(path)
        return self._oids[at] if at is not None else None

    def alone(self, path: str) -> PastTree:
        """One file of this tree: what refers to it need not keep the paths of the others in memory."""
        return read_file(self._git, self.store, self.commit, path, self.oid(path))

    def _find_defining(self, names: set[str]) -> dict[str, list[str]]:
        found = self.find("names", names)
        wanted: dict[str, set[str]] = defaultdict(set)
        for name, files in self._unparsed_files_with(names).items():
            for path in prefer(files)[:_ENOUGH_DEFINING_FILES]:
                wanted[path].add(name)
        self._find_named(wanted)
        return {
            name: [*paths, *(path for path, asked in wanted.items() if name in asked and self._named[path, name])]
            for name, paths in found.items()
        }

    def named(self, path: str, name: str) -> tuple[StoredDefinition, ...]:
        """Return the definitions of a name in a file. A file that has to be parsed is only searched for that name."""
        if not has_grammar(language_for(path)):
            return super().named(path, name)
        if (path, name) not in self._named:
            self._find_named({path: {name}})
        return self._named[path, name]

    def _find_named(self, wanted: Mapping[str, set[str]]) -> None:
        """Find the definitions of the wanted names in each file."""
        missing: dict[str, set[str]] = {}
        for path, names in wanted.items():
            for name in names:
                known = self.store.answer(self._named_key(path, name)) if self.has(path) else "[]"
                if known is None:
                    missing.setdefault(path, set()).add(name)
                else:
                    self._named[path, name] = tuple(StoredDefinition(*item) for item in json.loads(known))
        if not missing:
            return
        with self.store.transaction():
            for path, data in self.read(list(missing)):
                language = language_for(path)
                code = clean(data, language) if data is not None else b""
                items = _definitions_of(self.store, code, language, missing[path])
                for name in missing[path]:
                    self._named[path, name] = found = tuple(item for item in items if item.name == name)
                    if data is not None:
                        self.store.remember(self._named_key(path, name), json.dumps(found))

    def _named_key(self, path: str, name: str) -> str:
        return f"named {language_for(path)} {(self.oid(path) or b'').hex()} {name}"

    def _outline_key(self, path: str) -> str:
        return f"outline {language_for(path)} {(self.oid(path) or b'').hex()}"

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        names = [oid.hex() if (oid := self.oid(path)) else "" for path in paths]
        for path, (_, data) in zip(paths, self._git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
            yield path, data


def _definitions_of(
    store: FactsCache, code: bytes, language: str, names: Collection[str]
) -> tuple[StoredDefinition, ...]:
    """Return the definitions of some names in one of many versions of a file.

    A name whose lines define nothing in one version is not looked for in others that have the same lines.
    """
    keys = {name: f"undefined {language} {name} {_digest_of_lines_with(code, name)}" for name in names}
    asked = {name for name in names if store.answer(keys[name]) is None}
    found = outline_in(code, language, asked) if asked else ()
    for name in asked - {item.name for item in found}:
        store.remember(keys[name], "")
    return found


def _digest_of_lines_with(code: bytes, name: str) -> str:
    """Return a digest of the lines that contain a name, with the lines around them."""
    needle = name.encode("utf-8", "surrogateescape")
    digest = blake2b(digest_size=8)
    at = code.find(needle)
    while at >= 0:
        begin = code.rfind(b"\n", 0, max(0, code.rfind(b"\n", 0, at))) + 1
        end = code.find(b"\n", at)
        end = code.find(b"\n", end + 1) if end >= 0 else -1
        end = end if end >= 0 else len(code)
        digest.update(code[begin:end])
        at = code.find(needle, max(end, at + 1))
    return digest.hexdigest()


class OldNameSearch:
    """Searches old files for a set of names, each blob once. Most files have none of them.

    What a blob contains is kept as a number with a bit for each name: as sets, it took 40 MB in a large repository.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = {name: name.encode("utf-8", "surrogateescape") for name in names}
        raw = frozenset(self.names.values())
        self._bits = {name: 1 << at for at, name in enumerate(raw)}
        self._words = frozenset(name for name in raw if name.translate(_NON_WORD_TO_SPACE) == name)
        self._others = raw - self._words  # flags, names that end in ? or !, non-ASCII names
        self._found: dict[bytes, int] = {}  # by blob

    def bits_of(self, names: Iterable[str]) -> int:
        return sum(self._bits[name] for name in {self.names[name] for name in names})

    def in_blob(self, oid: bytes) -> int | None:
        """Return the bits of the names that a blob contains; None if it was not searched yet."""
        return self._found.get(oid)

    def look_into(self, oid: bytes, data: bytes) -> int:
        found = self._words.intersection(data.translate(_NON_WORD_TO_SPACE).split())
        found |= {name for name in self._others if name in data}
        bits = self._found[oid] = sum(self._bits[name] for name in found)
        return bits


_NON_WORD_TO_SPACE = bytes(
    byte if byte < 128 and (chr(byte).isalnum() or byte == ord("_")) else 32 for byte in range(256)
)


def read_old_tree(
    git: Git,
    store: FactsCache,
    commit: str,
    now: CheckoutFiles,
    names: Iterable[str],
    search: OldNameSearch,
    *,
    deadline: float | None = None,
) -> PastTree:
    """Read the files of an old commit that differ from now, with facts for those that contain one of the names."""
    asked = search.bits_of(names)
    entries = list(_files_changed_since(git, commit, now))
    wanted = [
        (path, oid, language_for(path))
        for path, oid in entries
        if ((contained := search.in_blob(oid)) is None or asked & contained)
        and kind_of(path) in (FileKind.CODE, FileKind.TEST)
    ]
    known = store.blob_ids([(oid, language) for _, oid, language in wanted])
    missing = [item for item in wanted if (item[1], item[2]) not in known]
    is_partial = False
    if missing:
        with store.transaction(required=True):
            oids = [oid.hex() for _, oid, _ in missing]
            for count, ((path, oid, language), (_, data)) in enumerate(
                zip(missing, git.blobs(oids, limit=MAX_SOURCE_BYTES), strict=True)
            ):
                if deadline is not None and count % _FILES_PER_BATCH == 0 and time.monotonic() > deadline:
                    raise VerifyTimeout
                if data is None:
                    is_partial = True
                elif asked & search.look_into(oid, data):
                    known[oid, language] = _add_facts(store, oid, language, data, path)
    ids = [known.get((oid, language_for(path)), 0) for path, oid in entries]
    tree = PastTree(git, store, commit, entries, ids)
    tree.is_partial = is_partial
    return tree


def _files_changed_since(git: Git, commit: str, now: CheckoutFiles) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of a commit that differ from the checkout, with their blob ids."""
    found = git.run("diff-tree", "-r", "-z", "--no-renames", commit, now.state.head, "--", timeout=60).split(b"\0")
    changed = set()
    for head, raw in zip(found[::2], found[1::2], strict=False):
        mode, _, oid, _, _ = head.split(b" ")
        path = os.fsdecode(raw)
        changed.add(path)
        if mode.startswith(b":100"):
            yield path, bytes.fromhex(oid.decode())[:20]
    yield from ((path, oid) for path, oid in now.changed_since_head if path not in changed)


def read_file(git: Git, store: FactsCache, commit: str, path: str, oid: bytes | None) -> PastTree:
    """Return one file of an old commit as a tree. Its definitions are read on demand."""
    if oid is None:
        return PastTree(git, store, commit, [], [])
    language = language_for(path)
    tree = PastTree(git, store, commit, [(path, oid)], [store.blob_ids([(oid, language)]).get((oid, language), 0)])
    tree.is_single = kind_of(path) is not FileKind.OPAQUE
    return tree
