"""What a change did: the lines it added to documents, and the names and paths that it took away.

Between the base commit and the work tree, uncommitted edits included. Git compares commits only: comparing the work
tree would run filters of the repository's configuration, so the files are read here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from truekeep.check.documents import is_document
from truekeep.core.errors import BadInput
from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.text.line_diff import iter_spans
from truekeep.verify.checkout import MAX_SOURCE_BYTES, CheckoutFiles
from truekeep.verify.claim import Claim
from truekeep.verify.link_claims import LINK_BROKEN, LINK_MOVED
from truekeep.verify.section_links import PAGES, anchors_in, letters_of
from truekeep.verify.verdict import GONE, GONE_BEFORE, MOVED, UNVERIFIABLE, Verdict

_NAMES = re.compile(rb"--[A-Za-z][\w-]*|[A-Za-z_$\x80-\xff][\w$\x80-\xff]*|\d[\w.]*\w|\d")
_SETTING = re.compile(r"\s*(?:export +)?[A-Z][A-Z0-9_]+=")
_DEFINED = re.compile(
    rb"\b(?:def|class|fn|func|fun|function|struct|enum|interface|trait|type|module|const|var|let|val|macro_rules!)\s+"
    rb"([A-Za-z_]\w*)|^[ \t]*[\"']?([A-Za-z_]\w*)[\"']?[ \t]*(?:[=:]|\Z)",
    re.MULTILINE,
)  # a definition, or a key with its value
_MAX_FILES_WITH_NAME = 20  # a word that more files of the tree still use was not taken away by one that lost it
_PATH_KINDS = ("path", "directory", "line", "bundle")
_NOT_FOUND = ("incomplete", "not-there", LINK_BROKEN)  # the tree lacks it, and history is not there to tell more


@dataclass(frozen=True, kw_only=True)
class CodeChange:
    """A change of a repository, from a base commit to the work tree."""

    base: str
    base_at: int = 0  # when it was made, in seconds
    added_lines: dict[str, frozenset[int]] = field(default_factory=dict)  # of documents
    lost_paths: dict[str, str] = field(default_factory=dict)  # files that are gone → their new path, or empty
    lost_names: dict[str, str] = field(default_factory=dict)  # words that a file no longer has → that file
    touched: frozenset[str] = frozenset()
    lost_folders: frozenset[str] = frozenset()  # the names of folders of which nothing is left
    lost_sections: frozenset[tuple[str, str]] = frozenset()  # document and letters of a heading that is gone
    mentioning: frozenset[str] = frozenset()  # documents that have one of the words

    def may_concern(self, path: str, data: bytes) -> bool:
        """Whether a document can have an alarm that this change caused; cheap, and true when in doubt."""
        if path in self.added_lines or path in self.mentioning:
            return True
        if self._lost_file_names is not None and self._lost_file_names.search(data):
            return True
        return bool(self.lost_sections) and b"](" in data and b"#" in data

    def lines_of(self, path: str, text: str) -> set[int]:
        """The lines of a document that can have such an alarm."""
        found = set(self.added_lines.get(path, ()))
        files = self._lost_file_names
        for number, line in enumerate(text.split("\n"), start=1):
            if number in found or not line:
                continue
            raw = line.encode("utf-8", "replace")
            is_section = bool(self.lost_sections) and b"#" in raw
            has_word = not self._lost_words.isdisjoint(_NAMES.findall(raw))
            if has_word or is_section or (files is not None and files.search(raw)):
                found.add(number)
        lines = text.split("\n")
        if any(_SETTING.match(lines[number - 1]) for number in found if number <= len(lines)):
            found |= {number for number, line in enumerate(lines, start=1) if _SETTING.match(line)}  # judged together
        return found

    @cached_property
    def _lost_words(self) -> frozenset[bytes]:
        return frozenset(map(os.fsencode, self.lost_names))

    @cached_property
    def _lost_file_names(self) -> re.Pattern[bytes] | None:
        """The names of files and folders that are gone, and of files whose lines moved where a line is named."""
        lost = {*(path.rpartition("/")[2] for path in self.lost_paths), *self.lost_folders}
        moved = {path.rpartition("/")[2] for path in self.touched} - lost
        gone = "|".join(re.escape(name) for name in sorted(lost))
        lines = "|".join(re.escape(name) for name in sorted(moved))
        parts = [rf"(?<![\w-])(?:{gone})(?![\w-])"] if gone else []
        parts += [rf"(?<![\w-])(?:{lines})(?:[:#]|`?,? lines? )", rf"lines? \d.{{0,40}}(?:{lines})"] if lines else []
        return re.compile(os.fsencode("|".join(parts))) if parts else None

    def concerns(self, path: str, claim: Claim) -> bool:
        """Whether this change added the line of a claim, or took away what it names."""
        if claim.line in self.added_lines.get(path, ()):
            return True
        if claim.kind == "section":
            own = os.path.normpath(os.path.join(os.path.dirname(path), claim.place)) if claim.place else path
            return (own, letters_of(claim.name)) in self.lost_sections
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
    defined: set[str] = set()
    names = [f"{base}:{path}" for path in old_paths]
    for path, (_, text) in zip(old_paths, git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
        after = now.data(statuses[path] or path, MAX_SOURCE_BYTES) or b""
        for word in set(_NAMES.findall(text or b"")) - set(_NAMES.findall(after)):
            lost_names.setdefault(os.fsdecode(word), path)
        defined |= {os.fsdecode(word) for word in _defined(text or b"") - _defined(after)}
    used = now.find("words", lost_names)
    lost_names = {word: path for word, path in lost_names.items() if _is_lost(word, len(used[word]), defined)}
    documents = sorted(path for path in _documents(now) if path in statuses or path not in before)
    return CodeChange(
        base=base,
        base_at=int(git.run("log", "-1", "--no-walk", "--no-show-signature", "--format=%ct", base, "--")),
        added_lines=dict(_added_lines(git, base, now, documents)),
        lost_paths=lost_paths,
        lost_names=lost_names,
        touched=frozenset(statuses),
        lost_folders=_lost_folders(lost_paths, now),
        lost_sections=frozenset(_lost_sections(git, base, now, [path for path in statuses if is_document(path)])),
        mentioning=frozenset(path for paths in now.find("mentions", lost_names).values() for path in paths),
    )


def _defined(text: bytes) -> set[bytes]:
    return {name or key for name, key in _DEFINED.findall(text)}


def _is_lost(word: str, users: int, defined: Collection[str]) -> bool:
    """Whether a word that a file lost may be what a document names: a word of prose only if it was defined there."""
    is_plain = not word.isascii() or (word.isalpha() and word[1:].islower())
    if word[:1].isdigit():
        return users == 0 and len(word) > 1
    return users <= _MAX_FILES_WITH_NAME and (not is_plain or word in defined)


def _lost_folders(lost_paths: Iterable[str], now: CheckoutFiles) -> frozenset[str]:
    found = set()
    for path in lost_paths:
        folder = os.path.dirname(path)
        while folder and not now.has_folder(folder):
            found.add(os.path.basename(folder))
            folder = os.path.dirname(folder)
    return frozenset(found)


def _lost_sections(git: Git, base: str, now: CheckoutFiles, documents: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = [f"{base}:{path}" for path in documents]
    for path, (_, before) in zip(documents, git.blobs(names, limit=MAX_SOURCE_BYTES), strict=True):
        after = now.data(path, MAX_SOURCE_BYTES)
        if before is not None and after is not None and path.endswith(PAGES):
            lost = anchors_in(before.decode("utf-8", "replace")) - anchors_in(after.decode("utf-8", "replace"))
            yield from ((path, letters) for letters in lost)


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
