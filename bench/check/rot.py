"""What a commit made false in documents, by a resolver that shares no code with truekeep.

A reference is a name in inline code or the target of a link. It is rot if the commit deleted or renamed the file, or
removed the last definition and every other use outside of documents, while the line that names it stayed as it was.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

PAGES = (".md", ".mdx", ".mdc", ".markdown", ".rst")
_CODE = re.compile(r"``([^`\n]+)``|`([^`\n]+)`")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)")
_PATH = re.compile(
    r"\A[\w.@+-]+(?:/[\w.@+-]+)+/?\Z|\A[\w-]+\.(?:py|go|rs|ts|tsx|js|mjs|rb|kt|java|sh|toml|json|ya?ml)\Z"
)
_NAME = re.compile(r"\A([A-Za-z_][\w]*(?:(?:\.|::|#)[A-Za-z_]\w*)*)(?:\(.*\))?\Z")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])")
_SCRIPT = re.compile(r"\b(?:npm|pnpm|yarn|bun) run ([\w:.-]+)|\bmake ([a-z][\w-]+)")
_WORD = re.compile(r"--[a-z][a-z0-9-]+|[A-Za-z_]\w{3,}")
_KEYWORDS = "def class fn func function struct enum trait type interface const let var val fun module define".split()
_DEFINING = rf"(?:{'|'.join(_KEYWORDS)})\s+(?:\([^)]*\)\s*)?"
_MODIFIERS = r"\A\s*(?:pub(?:\([a-z]+\))? |export |public |private |static |async )*"


@dataclass(frozen=True, slots=True)
class Reference:
    """One name in one line of a document."""

    line: int
    text: str  # of the line
    kind: str  # path, name, flag or script
    name: str


@dataclass(frozen=True, slots=True)
class Rot:
    """A line that a commit made false, where it is after the commit."""

    commit: str
    path: str
    line: int
    text: str
    kind: str
    name: str


class History:
    """The objects of one repository, read with git."""

    def __init__(self, clone: Path) -> None:
        self.clone = clone

    def git(self, *arguments: str, given: str | None = None, codes: Sequence[int] = (0,)) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.clone), "-c", "core.quotePath=false", *arguments],
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode not in codes:
            raise RuntimeError(f"git {arguments[0]}: {done.stderr.strip()[:200]}")
        return done.stdout

    def commits(self, head: str, count: int) -> list[str]:
        """The last commits of the main line, the oldest first."""
        return self.git("rev-list", "--first-parent", f"-{count}", head).split()[::-1]

    @lru_cache(maxsize=8)  # noqa: B019 (one object for one repository of a run)
    def tree(self, commit: str) -> dict[str, str]:
        found = {}
        for item in self.git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            about, _, path = item.partition("\t")
            if about and about.split()[1] == "blob":
                found[path] = about.split()[2]
        return found

    @lru_cache(maxsize=20_000)  # noqa: B019
    def lines(self, blob: str) -> tuple[str, ...]:
        return tuple(self.git("cat-file", "blob", blob).split("\n"))

    @lru_cache(maxsize=20_000)  # noqa: B019
    def references(self, blob: str) -> tuple[Reference, ...]:
        return tuple(read_references(self.lines(blob)))

    def statuses(self, commit: str) -> Iterator[tuple[str, str, str]]:
        """The letter, the path before and the path after of each file that a commit changed."""
        raw = self.git("diff-tree", "-r", "-z", "-M", "--name-status", "--no-commit-id", f"{commit}^1", commit)
        parts = iter(raw.split("\0"))
        for letter in parts:
            if letter[:1] in ("R", "C"):
                yield letter[0], next(parts), next(parts)
            elif letter:
                path = next(parts)
                yield letter[0], path, path

    def removed(self, commit: str) -> tuple[list[str], set[str]]:
        """The lines that a commit took out of files that are no documents, and the words that it put in."""
        raw = self.git(
            "diff", "--no-ext-diff", "--no-textconv", "-U0", "-M", f"{commit}^1", commit, "--", ".", *no_pages()
        )
        gone = [line[1:] for line in raw.split("\n") if line.startswith("-") and not line.startswith("---")]
        added = (line for line in raw.split("\n") if line.startswith("+") and not line.startswith("+++"))
        return gone, {word for line in added for word in _WORD.findall(line)}

    def still_named(self, commit: str, names: Sequence[str]) -> set[str]:
        """Of these names, those that a file other than a document still has."""
        if not names:
            return set()
        given = "\n".join(names) + "\n"
        found = self.git("grep", "-h", "-I", "-F", "-f", "-", commit, "--", ".", *no_pages(), given=given, codes=(0, 1))
        return {name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", found)}


def no_pages() -> list[str]:
    return [f":(exclude)*{ending}" for ending in (*PAGES, ".txt", ".lock", "CHANGELOG*")]


def read_references(lines: Sequence[str]) -> Iterator[Reference]:
    """The references of a document; code blocks are left out."""
    is_code = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
            continue
        if is_code:
            continue
        seen = set()
        for kind, name in [*_in_links(line), *_in_code(line)]:
            if (kind, name) not in seen:
                seen.add((kind, name))
                yield Reference(number, line, kind, name)


def _in_links(line: str) -> Iterator[tuple[str, str]]:
    for match in _LINK.finditer(line):
        target = unquote((match[1] or match[2]).partition("#")[0])
        if target and "://" not in target and not target.startswith(("mailto:", "/", "{", "<")):
            yield "path", target


def _in_code(line: str) -> Iterator[tuple[str, str]]:
    for match in _CODE.finditer(line):
        code = (match[1] or match[2]).strip()
        for script in _SCRIPT.finditer(code):
            yield "script", script[1] or script[2]
        for flag in _FLAG.findall(code):
            yield "flag", flag
        if _PATH.match(code):
            yield "path", code.rstrip("/")
        elif (name := _NAME.match(code)) is not None:
            last = re.split(r"\.|::|#", name[1])[-1]
            if _is_distinct(last):
                yield "name", last


def _is_distinct(name: str) -> bool:
    """Whether a name is surely one of code: of several words, and long enough not to be somebody else's by chance."""
    return len(name) > 6 and ("_" in name.strip("_") or re.search(r"[a-z][A-Z]", name) is not None)


def find_rot(history: History, commit: str, is_read: Iterable[str]) -> list[Rot]:
    """What a commit made false in documents that existed before it and after it."""
    before, after = history.tree(f"{commit}^1"), history.tree(commit)
    changes = list(history.statuses(commit))
    pages = {new: old for letter, old, new in changes if letter in "RM" and new.lower().endswith(PAGES)}
    read = [path for path in is_read if path in after and pages.get(path, path) in before]
    gone, added = history.removed(commit)
    words = {word for line in gone for word in _WORD.findall(line)} - added
    lost_files = {old for letter, old, _ in changes if letter in "DR"} - after.keys()
    folders = folders_of(after)
    candidates: list[tuple[str, Reference]] = []
    for path in read:
        old = pages.get(path, path)
        for reference in history.references(before[old]):
            if reference.kind == "path":
                is_candidate = bool(lost_files) and _lost_path(reference.name, old, path, lost_files, after, folders)
            else:
                is_candidate = reference.name in words and _was_defined(reference, gone)
            if is_candidate:
                candidates.append((path, reference))
    names = sorted({reference.name for _, reference in candidates if reference.kind != "path"})
    alive = history.still_named(commit, names)
    found = []
    for path, reference in candidates:
        if reference.kind != "path" and reference.name in alive:
            continue
        lines = history.lines(after[path])
        places = [at for at, line in enumerate(lines, 1) if line == reference.text]
        if places:
            line = min(places, key=lambda at: abs(at - reference.line))
            found.append(Rot(commit, path, line, reference.text, reference.kind, reference.name))
    return found


def folders_of(files: Iterable[str]) -> set[str]:
    found = set()
    for file in files:
        while (file := posixpath.dirname(file)) and file not in found:
            found.add(file)
    return found


def _lost_path(name: str, old: str, new: str, lost: set[str], after: dict[str, str], folders: set[str]) -> bool:
    """Whether a path led to a file before, from the document's folder or the root, and leads nowhere now."""
    if any(place in after or place in folders or place + end in after for place in _places(name, new) for end in PAGES):
        return False
    return any(place in lost or any(file.startswith(f"{place}/") for file in lost) for place in _places(name, old))


def _places(name: str, page: str) -> set[str]:
    return {posixpath.normpath(name), posixpath.normpath(posixpath.join(posixpath.dirname(page), name))}


def _was_defined(reference: Reference, gone: Sequence[str]) -> bool:
    name = re.escape(reference.name)
    if reference.kind == "flag":
        pattern = rf"""["'`]{name}["'`=\s]"""
    elif reference.kind == "script":
        pattern = rf"""\A(?:{name}:(?!=)|\s*"{name}"\s*:)"""
    else:
        pattern = rf"(?:{_DEFINING}|{_MODIFIERS}){name}\b\s*(?:[:=(<{{,]|\Z)"
    wanted = re.compile(pattern)
    return any(reference.name in line and wanted.search(line) for line in gone)


def is_fixed_later(history: History, commit: str, head: str, path: str, text: str, name: str) -> bool | None:
    """Whether a later commit took the name out of a line, or the line; None if nobody touched it."""
    for later in history.git("rev-list", "--first-parent", "--reverse", f"{commit}..{head}", "--", path).split():
        blob = history.tree(later).get(path)
        if blob is None:
            return None
        lines = history.lines(blob)
        if text not in lines:
            return not any(name in line and _is_like(line, text) for line in lines)
    return None


def _is_like(line: str, text: str) -> bool:
    ours, theirs = set(line.split()), set(text.split())
    return 2 * len(ours & theirs) >= len(theirs)
