"""The repository that claims are checked against: one checkout, its history and its manifests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from truekeep.core.repository import GitFailed, remote_name
from truekeep.core.state_dir import STATE
from truekeep.verify.cache import FactsCache, StoreLost
from truekeep.verify.checkout import MAX_SOURCE_BYTES, CheckoutFiles, StoredDefinition, read_checkout
from truekeep.verify.declared_folders import DeclaredFolder
from truekeep.verify.file_kinds import FileKind, kind_of, prefer
from truekeep.verify.git_history import Commit, Past
from truekeep.verify.line_dates import LineDates
from truekeep.verify.manifests import Manifest, Package, is_manifest, read_manifest
from truekeep.verify.options import Options

_MAX_MANIFEST_BYTES = 20_000_000
_CLOCK_SLACK_SECONDS = 86_400
_MAX_OLD_MANIFESTS = 60
_MAX_FILES_ON_DISK = 20_000
ELSEWHERE = "/"  # the folder of what is not in this repository
_SITE_FILE = re.compile(
    r"(?:^|/)(?:mkdocs\.ya?ml|zensical\.toml|docusaurus\.config\.\w+|sidebars\.\w+|_config\.ya?ml|conf\.py|book\.toml"
    r"|antora\.yml|mint\.json|docs\.json|theme\.config\.\w+|astro\.config\.\w+|hugo\.\w+|\.vitepress/config\.\w+"
    r"|_sidebar\.md|_quarto\.yml|_index\.md)\Z"
)
_SITE_PACKAGES = frozenset(("ex_doc", "nextra", "vitepress", "vuepress", "mkdocs", "sphinx", "fumadocs-core", "yard"))
HOME_FOLDER = re.compile(r"/root(?=/|\Z)|/(?:home|Users)/[^/]+")
_OPENCLAW_WORKSPACE = re.compile(r"(?:~|/[^/]+(?:/[^/]+)?)/\.openclaw/workspace(?:/|\Z)")
_MIN_PATHS_OF_ALIAS = 2  # files here that a folder elsewhere has to have, to be this one under another name


class World:
    """One repository that claims are checked against."""

    def __init__(self, root: str, store: FactsCache, *, workspace: str = "", options: Options | None = None) -> None:
        self.root = os.path.realpath(root)
        self.store = store
        self.workspace = workspace
        self.options = options or Options()
        try:
            self.now: CheckoutFiles = read_checkout(self.root, store, deadline=self.options.deadline)
        except StoreLost:
            self.now = read_checkout(self.root, store, deadline=self.options.deadline)  # again, in memory
        self.git = self.now.git
        self.past = Past(self.git, store, self.now.state, deadline=self.options.deadline)
        self.name = os.path.basename(self.root)
        self.places: dict[Any, Any] = {}  # cache of path lookups
        self.packages: dict[str, list[tuple[str, Package]]] = {}  # found by each name that was asked for
        self._last_commits: dict[str, Commit | None] = {}
        self._manifests_at: dict[str, list[tuple[str, Manifest]]] = {}
        self._on_disk: dict[str, list[str]] = {}
        self._aliases: list[str] = []
        self._own_names: set[str] = set()  # what the workspace's texts call its folder, in full
        self._bases: dict[DeclaredFolder, str] = {}

    @cached_property
    def line_dates(self) -> LineDates:
        return LineDates(self.git, self.store, self.now.state.head)

    @cached_property
    def branches(self) -> list[str]:
        """The branches here and of remotes, the newest first."""
        with suppress(GitFailed):
            raw = self.git.run(
                "for-each-ref", "--sort=-committerdate", "--format=%(refname:short)", "refs/heads", "refs/remotes"
            )
            return [name for name in os.fsdecode(raw).splitlines() if not name.endswith("/HEAD")]
        return []

    @cached_property
    def is_in_use(self) -> bool:
        """Whether this is the workspace that agents work in, and no fresh clone: it has files that git ignores."""
        if not self.is_home:
            return False
        with suppress(GitFailed):
            raw = self.git.run("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
            return any(name and not name.startswith(os.fsencode(STATE)) for name in raw.split(b"\0"))
        return False

    @cached_property
    def is_home(self) -> bool:
        """Whether this is the repository of the workspace itself."""
        workspace = os.path.realpath(self.workspace) if self.workspace else ""
        return workspace == self.root or workspace.startswith(self.root + "/")

    def own_path(self, name: str) -> str | None:
        """A path of the workspace under the name that it has on another machine; None if it is something else."""
        if not self.is_home:
            return None
        prefix = openclaw_folder(name) or next((alias for alias in self._aliases if name.startswith(alias + "/")), "")
        if not prefix:
            return None
        base = os.path.relpath(os.path.realpath(self.workspace), self.root)
        return os.path.normpath(os.path.join(base, name[len(prefix) :].lstrip("/")))

    def learn_aliases(self, names: Iterable[str]) -> None:
        """Find folders on other machines that are this repository: several paths below them are files here."""
        if not self.is_home:
            return
        found: dict[str, set[str]] = {}
        for name in set(names):
            self._own_names |= {folder} if (folder := openclaw_folder(name)) else set()
            parts = name.split("/")
            for at in range(2, len(parts) - 1):
                rest = "/".join(parts[at:])
                if self.now.has(rest):
                    found.setdefault("/".join(parts[:at]), set()).add(rest)
        self._aliases = sorted((folder for folder in found if len(found[folder]) >= _MIN_PATHS_OF_ALIAS), key=len)
        self._own_names |= set(self._aliases)

    @property
    def is_copy(self) -> bool:
        """Whether the workspace tells of another machine: on this one, it is not where its texts say that it is."""
        return bool(self._own_names) and not any(
            os.path.isdir(os.path.expanduser(name)) for name in sorted(self._own_names)
        )

    def base_of(self, declared: DeclaredFolder) -> str:
        """The folder here that a part of a document is about: empty if all of it is, ELSEWHERE if it is not here."""
        if declared not in self._bases:
            self._bases[declared] = self._find_base(declared)
        return self._bases[declared]

    def _find_base(self, declared: DeclaredFolder) -> str:
        if declared.repository:
            if declared.repository == remote_name(Path(self.root)).lower():
                return ""
            return self._folder_named(declared.repository.rpartition("/")[2])
        name = declared.folder
        if (own := self.own_path(name + "/.")) is not None:
            return "" if own == "." else own
        if name.startswith(("/", "~")):
            own = os.path.realpath(os.path.expanduser(name))
            if own == self.root or own.startswith(self.root + "/"):
                return own[len(self.root) + 1 :]
            parts = name.strip("/~").split("/")
            tails = ("/".join(parts[at:]) for at in range(1, len(parts)))
            return next((path for path in tails if self.now.has_folder(path)), ELSEWHERE)
        path = os.path.normpath(name)
        if self.now.has_folder(path) or path == ".":
            return "" if path == "." else path
        ended = [folder for folder in self.now.folders if folder.endswith("/" + path)]
        return ended[0] if len(ended) == 1 else path if self.past.files_removed_from(path, None) else ELSEWHERE

    def _folder_named(self, name: str) -> str:
        """The folder nearest to the root that is called like a repository."""
        found = [path for path in self.now.folders if path.rpartition("/")[2].lower() == name]
        return min(found, key=lambda path: (path.count("/"), path), default=ELSEWHERE)

    def is_newer_than(self, written_at: int | None) -> bool:
        """Whether this checkout is newer than the memory."""
        if self.options.is_current:
            return True
        return written_at is not None and self.now.state.head_at >= written_at - _CLOCK_SLACK_SECONDS

    def knows_absence(self, written_at: int | None) -> bool:
        """Whether something missing from the tree counts as gone even though the clone lacks history.

        Only if the checkout is newer than the memory: for a memory without a date, even a full clone cannot decide.
        """
        return not self.now.state.is_whole and self.is_newer_than(written_at)

    def last_commit(self, path: str) -> Commit | None:
        """Return the last commit on any branch that touches a path. For many, call `prefetch_last_commits` first."""
        if path not in self._last_commits:
            self.prefetch_last_commits([path])
        return self._last_commits[path]

    def prefetch_last_commits(self, paths: Iterable[str]) -> None:
        asked = [path for path in paths if path not in self._last_commits]
        state = self.now.state
        found = self.past.last_commits(asked) if asked and state.head and state.has_commits else {}
        self._last_commits.update({path: found.get(path) for path in asked})

    @property
    def is_complete(self) -> bool:
        """Whether every file could be read, so that a name that is not found does not exist."""
        return not self.now.is_partial

    def outline(self, path: str) -> tuple[StoredDefinition, ...]:
        return self.now.outlines([path])[path]

    def find_word(self, path: str, word: str) -> int:
        """Return the first line of a file's code that contains exactly this word; 0 if none does."""
        code = self.now.code(path)
        match = whole_word(word).search(code)
        return code.count(b"\n", 0, match.start()) + 1 if match else 0

    def find_mention(self, path: str, word: str) -> int:
        """Return the first line of a file, comments included, that contains exactly this word; 0 if none does."""
        data = self.now.text(path) or b""
        match = whole_word(word).search(data)
        return data.count(b"\n", 0, match.start()) + 1 if match else 0

    @cached_property
    def products(self) -> frozenset[str]:
        """The lower-case names of the repository and of the packages it builds."""
        names = (manifest.name.rpartition("/")[2] for manifest in self.manifests.values() if manifest.name)
        return frozenset(name.lower() for name in (self.name, *names))

    @cached_property
    def has_site_generator(self) -> bool:
        """Whether a generator makes the documents into a website."""
        if any(_SITE_FILE.search(path) for path in self.now.paths):
            return True
        packages = (package.name for manifest in self.manifests.values() for package in manifest.packages)
        return any(name in _SITE_PACKAGES for name in packages)

    @cached_property
    def manifests(self) -> dict[str, Manifest]:
        return dict(read_manifests(self.now))

    def manifests_at(self, commit: str) -> list[tuple[str, Manifest]]:
        """Read the manifests of an old commit, those nearest to the root first; empty if git fails."""
        if commit not in self._manifests_at:
            found: list[tuple[str, Manifest]] = []
            with suppress(GitFailed):
                raw = self.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", timeout=60)
                paths = [path for item in raw.split(b"\0") if is_manifest(path := os.fsdecode(item))]
                paths = sorted(paths, key=lambda path: (path.count("/"), path))[:_MAX_OLD_MANIFESTS]
                names = [f"{commit}:{path}" for path in paths]
                for path, (_, data) in zip(paths, self.git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
                    if data is not None:
                        found.append((path, read_manifest(path, data)))
            self._manifests_at[commit] = found
        return self._manifests_at[commit]

    def files_on_disk(self, top: str) -> list[str]:
        """List the files below a folder, ignored ones included, up to a limit and without following symlinks."""
        if top not in self._on_disk:
            found: list[str] = []
            start = os.path.join(self.root, top)
            for here, folders, files in () if os.path.islink(start) else os.walk(start):
                folders[:] = [name for name in folders if name not in ("node_modules", ".git")]
                relative = os.path.relpath(here, self.root)
                found += [f"{relative}/{name}" for name in files]
                if len(found) > _MAX_FILES_ON_DISK:
                    break
            self._on_disk[top] = found
        return self._on_disk[top]


def openclaw_folder(name: str) -> str:
    """The folder of an OpenClaw workspace that a path begins with, on whatever machine; empty if it does not."""
    match = _OPENCLAW_WORKSPACE.match(name)
    return match[0].rstrip("/") if match is not None else ""


def read_manifests(now: CheckoutFiles) -> Iterable[tuple[str, Manifest]]:
    """Read the manifests and lock files of a checkout, those nearest to the root first."""
    paths = [
        path for path in now.paths if is_manifest(path) and kind_of(path) not in (FileKind.VENDORED, FileKind.TEST)
    ]
    for path in sorted(paths, key=lambda path: (path.count("/"), path))[:400]:
        data = now.data(path, _MAX_MANIFEST_BYTES)
        if data is not None:
            yield path, read_manifest(path, data)


def whole_word(word: str) -> re.Pattern[bytes]:
    """Return a pattern that matches a whole word. In flags, dashes count as part of the word."""
    raw = re.escape(word.encode("utf-8", "surrogateescape"))
    edge = rb"[\w$-]" if word.startswith("-") or "-" in word else rb"[\w$]"
    return re.compile(rb"(?<!" + edge + rb")" + raw + rb"(?!" + edge + rb")")


def is_code(path: str) -> bool:
    return kind_of(path) is FileKind.CODE


__all__ = ["MAX_SOURCE_BYTES", "Options", "World", "is_code", "prefer", "read_manifests", "whole_word"]
