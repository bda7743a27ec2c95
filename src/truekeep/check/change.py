"""What a change did: the lines it added to documents, and the names and paths that it took away.

Between the base commit and the work tree, uncommitted edits included. Git compares commits only: comparing the work
tree would run filters of the repository's configuration, so the files are read here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from truekeep.check.documents import is_document
from truekeep.core.errors import BadInput
from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.text.line_diff import iter_spans
from truekeep.verify.checkout import MAX_SOURCE_BYTES, CheckoutFiles
from truekeep.verify.claim import Claim
from truekeep.verify.link_claims import LINK_BROKEN, LINK_MOVED
from truekeep.verify.verdict import GONE, GONE_BEFORE, MOVED, UNVERIFIABLE, Verdict

_NAMES = re.compile(rb"--[A-Za-z][\w-]*|[A-Za-z_$\x80-\xff][\w$\x80-\xff]*|\d[\w.]*\w|\d")
_MAX_FILES_WITH_NAME = 20  # a word that more files of the tree still use was not taken away by one that lost it
_PATH_KINDS = ("path", "directory", "line", "bundle")
_NOT_FOUND = ("incomplete", "not-there", LINK_BROKEN)  # the tree lacks it, and history is not there to tell more


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChange:
    """A change of a repository, from a base commit to the work tree."""

    base: str
    added_lines: dict[str, frozenset[int]] = field(default_factory=dict)  # of documents
    lost_paths: dict[str, str] = field(default_factory=dict)  # files that are gone → their new path, or empty
    lost_names: dict[str, str] = field(default_factory=dict)  # words that a file no longer has → that file
    touched: frozenset[str] = frozenset()

    def may_concern(self, path: str, data: bytes) -> bool:
        """Whether a document can have an alarm that this change caused; cheap, and true when in doubt."""
        if path in self.added_lines:
            return True
        if any(os.fsencode(name) in data for name in self._file_names):
            return True
        words = {os.fsdecode(word) for word in _NAMES.findall(data)}
        return not words.isdisjoint(self.lost_names)

    @property
    def _file_names(self) -> set[str]:
        """The last parts of the paths that are gone or whose lines moved, and of the folders above the former."""
        folders = (folder for path in self.lost_paths for folder in path.split("/")[:-1])
        return {path.rpartition("/")[2] for path in (*self.lost_paths, *self.touched)} | set(folders)

    def concerns(self, path: str, claim: Claim) -> bool:
        """Whether this change added the line of a claim, or took away what it names."""
        if claim.line in self.added_lines.get(path, ()):
            return True
        if claim.kind not in _PATH_KINDS:
            return bool(self._lost_name(claim.name))
        own = claim.place or claim.name if claim.kind == "line" else claim.name
        return self._lost_file(own) is not None or (claim.kind == "line" and self._is_touched(own))

    def caused(self, path: str, verdict: Verdict) -> Verdict | None:
        """The verdict, if this change made the claim false or added it; also where only this change tells that."""
        verdict = self._without_history(verdict)
        if verdict.verdict == UNVERIFIABLE:
            return None
        lost_from = self.lost_names.get(verdict.claim.name, "")
        if verdict.reason == GONE_BEFORE and lost_from and verdict.claim.line not in self.added_lines.get(path, ()):
            # The base has the line and the name, though the commits that were searched do not.
            why = f"this change removed it from {lost_from}"
            verdict = verdict._replace(reason="removed-by-change", why=why, place=lost_from, commit="", day="")
        return verdict if self.concerns(path, verdict.claim) else None

    def _without_history(self, verdict: Verdict) -> Verdict:
        """A claim that a shallow clone cannot tell about, though the change itself shows what became of it."""
        claim = verdict.claim
        if verdict.verdict not in (UNVERIFIABLE, GONE) or verdict.reason not in _NOT_FOUND:
            return verdict
        if claim.kind in ("path", "directory"):
            lost = self._lost_file(claim.name)
            if lost is None:
                return verdict
            new = self.lost_paths[lost]
            reason = LINK_MOVED if verdict.reason == LINK_BROKEN else "moved-by-change"
            if new and claim.kind == "path":
                return verdict._replace(verdict=MOVED, reason=reason, why=f"this change moved it to {new}", place=new)
            return verdict._replace(verdict=GONE, why="this change deleted it")
        if verdict.verdict == GONE:
            return verdict
        if file := self._lost_name(claim.name):
            return verdict._replace(verdict=GONE, reason="removed-by-change", why=f"this change removed it from {file}")
        return verdict

    def _lost_file(self, name: str) -> str | None:
        """The lost file that a path in a document names; for a folder, one that was in it."""
        parts = [part for part in name.strip("/").split("/") if part not in (".", "..")]
        ending = "/".join(parts)
        if not ending:
            return None
        for path in self.lost_paths:
            if f"/{path}".endswith(f"/{ending}") or f"/{path}".find(f"/{ending}/") >= 0:
                return path
        return None

    def _is_touched(self, name: str) -> bool:
        return any(f"/{path}".endswith(f"/{name.strip('/')}") for path in self.touched)

    def _lost_name(self, name: str) -> str:
        """The file that lost a name; the name may have several words."""
        words = [word.decode() for word in _NAMES.findall(name.encode("utf-8", "replace"))]
        return next((self.lost_names[word] for word in words if word in self.lost_names), "")


def read_change(git: Git, now: CheckoutFiles, ref: str) -> CodeChange:
    """The change since a commit, branch or tag: since where HEAD left it, for a branch that went on."""
    base = _find_base(git, ref)
    try:
        before = _read_tree(git, base)
        statuses = _compare(git, base, before, now)
    except GitFailed as error:
        raise BadInput(
            f"{ref} cannot be compared: {error}", hint="fetch more of history, e.g. `fetch-depth: 0`"
        ) from error
    lost_paths = {path: new for path, new in statuses.items() if new is not None}
    # What was renamed has its words at the new place; what only one file lost may be in another.
    old_paths = [path for path in statuses if not is_document(path)]
    lost_names: dict[str, str] = {}
    names = [f"{base}:{path}" for path in old_paths]
    for path, (_, text) in zip(old_paths, git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
        after = now.data(statuses[path] or path, MAX_SOURCE_BYTES) or b""
        for word in set(_NAMES.findall(text or b"")) - set(_NAMES.findall(after)):
            lost_names.setdefault(os.fsdecode(word), path)
    used = now.find("words", lost_names)
    lost_names = {word: path for word, path in lost_names.items() if len(used[word]) <= _MAX_FILES_WITH_NAME}
    documents = sorted(path for path in _documents(now) if path in statuses or path not in before)
    return CodeChange(
        base=base,
        added_lines=dict(_added_lines(git, base, now, documents)),
        lost_paths=lost_paths,
        lost_names=lost_names,
        touched=frozenset(statuses),
    )


def _find_base(git: Git, ref: str) -> str:
    hint = "name a commit, branch or tag that this clone has; in CI, fetch the base first (`fetch-depth: 0`)"
    if ref == "HEAD" and not git.lines("rev-list", "-1", "--all"):
        raise BadInput("this repository has no commit yet", hint="run `truekeep check` without --diff and --since")
    try:
        (commit,) = git.lines("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except (GitFailed, ValueError) as error:
        raise BadInput(f"there is no commit {ref} here", hint=hint) from error
    try:
        return git.lines("merge-base", commit, "HEAD")[0]
    except (GitFailed, IndexError):
        return commit  # no common history here, as in a shallow clone


def _compare(git: Git, base: str, before: Mapping[str, bytes], now: CheckoutFiles) -> dict[str, str | None]:
    """The files of the base that changed: None if edited, the new path if renamed, empty if deleted."""
    here = {path: oid for oid, paths in now.path_of_blob.items() for path in paths}
    found: dict[str, str | None] = {path: None for path, oid in before.items() if here.get(path, oid) != oid}
    lost = [path for path in before if path not in here and not now.has(path)]
    renames = _committed_renames(git, base) if lost else {}
    for path in lost:
        same = [other for other in now.path_of_blob.get(before[path], ()) if other not in before]
        new = renames.get(path, "") or (same[0] if len(same) == 1 else "")
        found[path] = new if now.has(new) else ""
    return found


def _read_tree(git: Git, commit: str) -> dict[str, bytes]:
    """The files of a commit, with the ids of their blobs; submodules are left out."""
    found = {}
    for item in git.run("ls-tree", "-r", "-z", "--full-tree", commit, timeout=60).split(b"\0"):
        about, _, path = item.partition(b"\t")
        _, kind, oid = about.split() if about else (b"", b"", b"")
        if kind == b"blob":
            found[os.fsdecode(path)] = bytes.fromhex(oid.decode())
    return found


def _committed_renames(git: Git, base: str) -> dict[str, str]:
    options = ("-r", "-z", "-M", "--diff-filter=R", "--no-commit-id", "--name-status", "--no-ext-diff")
    parts = git.run("diff-tree", *options, base, "HEAD", timeout=60).split(b"\0")
    return {os.fsdecode(old): os.fsdecode(new) for old, new in zip(parts[1::3], parts[2::3], strict=False)}


def _documents(now: CheckoutFiles) -> set[str]:
    return {path for path in now.paths if is_document(path)}


def _added_lines(
    git: Git, base: str, now: CheckoutFiles, documents: Sequence[str]
) -> Iterable[tuple[str, frozenset[int]]]:
    names = [f"{base}:{path}" for path in documents]
    for path, (_, before) in zip(documents, git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
        after = now.data(path, MAX_SOURCE_BYTES) or b""
        old, new = (before or b"").split(b"\n"), after.split(b"\n")
        spans = (span for span in iter_spans(old, new) if not span.is_same)
        added = frozenset(number + 1 for span in spans for number in range(span.new, span.new_end))
        if added:
            yield path, added
