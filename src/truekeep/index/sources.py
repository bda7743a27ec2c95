"""What is memory, and of which kind: the files that the index covers, seen by one sweep over the workspace.

The sweep looks (names and stats), it does not read; refresh reads what changed. Drafts that wait for review are not
memory, nor are instructions to the agent, hidden folders, or anything behind a symlink.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from truekeep.model import ARCHIVE, CARDS, INDEX, REVIEW

if TYPE_CHECKING:
    import apsw

Store = Literal["cards", "documents", "logs", "transcripts", "archive"]
STORES: tuple[Store, ...] = ("cards", "documents", "logs", "transcripts", "archive")

_LOG = re.compile(r"memory/(?:[^/]+/)*(\d{4}-\d{2}-\d{2})[^/]*\.md\Z")
_PROJECT = re.compile(r"memory/(?:projects/|project-)([^/]+)\.md\Z")
_CARDS = CARDS + "/"
_ARCHIVE = ARCHIVE + "/"
_make = tuple.__new__
_ROOT_FILES = (INDEX, "USER.md", "TOOLS.md")
_ROOT_FOLDERS = ("rules", ".learnings")


class Source(NamedTuple):
    """One file of memory as the sweep sees it."""

    path: str  # as shown and stored: relative to the workspace; extra paths in full
    store: Store
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    location: str  # where to open it


def store_of(path: str) -> Store:
    """Which store a path belongs to: curated memory, topic documents, the log of a day, or what was put away."""
    if path == INDEX or path.startswith(_CARDS):
        return "cards"
    if path.startswith(_ARCHIVE):
        return "archive"
    return "logs" if is_log(path) else "documents"


def is_log(path: str) -> bool:
    if path.startswith(_ARCHIVE):
        return False
    return _LOG.match(path) is not None or path.startswith(("memory/daily/", "memory/checkpoints/"))


def day_in(path: str) -> str:
    """The day that a log's name gives, or nothing."""
    match = _LOG.match(path)
    return match[1] if match else ""


def project_in(path: str) -> str:
    """The project that a project file's name gives, or nothing."""
    match = _PROJECT.match(path)
    return match[1] if match else ""


def sweep(root: str, extra: Sequence[str] = (), *, problems: list[str] | None = None) -> Iterator[Source]:
    """Every memory file there is, without reading one. Folders that cannot be listed are added to the problems."""
    problems = [] if problems is None else problems
    for name in _ROOT_FILES:
        location = os.path.join(root, name)
        try:
            info = os.lstat(location)
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode):
            yield _source(name, info, location)
    for folder in (*_ROOT_FOLDERS, "memory"):
        yield from _walk(os.path.join(root, folder), folder, problems)
    seen: set[str] = set()
    for location in extra:
        full = os.path.normpath(os.path.join(root, os.path.expanduser(location)))
        inside = os.path.relpath(os.path.realpath(full), os.path.realpath(root))
        if inside == "." or inside.split(os.sep)[0] in (*_ROOT_FOLDERS, *_ROOT_FILES, "memory", ".truekeep"):
            continue  # covered already, by the rules of the workspace
        is_inside = not inside.startswith("..")
        if is_inside and os.path.islink(full):
            continue
        for source in _extra(full, inside.replace(os.sep, "/") if is_inside else full, problems):
            if source.path not in seen and (is_inside or not source.location.startswith(root + os.sep)):
                seen.add(source.path)
                yield source


def fingerprint(root: str) -> str:
    """The state of all that a sweep sees, in a few characters; nothing where a folder cannot be listed.

    Names are not read: who renames, adds or removes a file changes its folder. Numbers hash the same in every process.
    """
    state = count = 0
    for name in _ROOT_FILES:
        try:
            info = os.lstat(os.path.join(root, name))
        except OSError:
            continue
        state += hash((name == INDEX, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
    review = os.path.join(root, REVIEW)
    folders = [os.path.join(root, folder) for folder in (*_ROOT_FOLDERS, "memory")]
    while folders:
        location = folders.pop()
        try:
            info = os.lstat(location)
            if stat.S_ISLNK(info.st_mode):
                continue
            state += hash((info.st_ino, info.st_mtime_ns, info.st_ctime_ns))
            with os.scandir(location) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(".md"):
                        info = entry.stat(follow_symlinks=False)
                        state += hash((info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
                        count += 1
                        is_folder = stat.S_ISDIR(info.st_mode)
                    else:
                        is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder and name[0] != "." and entry.path != review:
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return ""
    return f"{count} {state:x}"


def _walk(location: str, shown: str, problems: list[str]) -> Iterator[Source]:
    """The Markdown files below a folder; links and hidden names are left out."""
    folders = [(location, shown)]
    if os.path.islink(location):
        return
    while folders:
        location, shown = folders.pop()
        try:
            with os.scandir(location) as entries:
                listed = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            problems.append(shown)
            continue
        for entry in listed:
            name = entry.name
            if name[0] == ".":
                continue
            path = f"{shown}/{name}"
            try:
                if name.endswith(".md"):
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        if name.isascii() or _is_text(name):
                            yield _source(path, info, f"{location}/{name}")
                        continue
                if entry.is_dir(follow_symlinks=False) and path != REVIEW and _is_text(name):
                    folders.append((f"{location}/{name}", path))
            except OSError:
                continue  # it vanished between the listing and the look


def _extra(location: str, shown: str, problems: list[str]) -> Iterator[Source]:
    if os.path.islink(location):
        return
    if os.path.isdir(location):
        yield from _walk(location, shown, problems)
        return
    try:
        info = os.lstat(location)
    except OSError:
        return
    if stat.S_ISREG(info.st_mode):
        yield _source(shown, info, location)


def _source(path: str, info: os.stat_result, location: str) -> Source:
    store: Store = "cards" if path.startswith(_CARDS) else store_of(path)
    return _make(
        Source, (path, store, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, location)
    )  # ten thousand of them are made for every search, so without the detour over keywords


def _is_text(name: str) -> bool:
    """Whether a name can be written down; one that is not UTF-8 cannot be shown or asked for."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class Changes(NamedTuple):
    """What a sweep found to be different from the index."""

    changed: list[Source]
    gone: list[int]  # file ids
    total: int
    known: dict[str, int]  # file ids of changed files that are in the index in an older state


def compare(
    db: apsw.Connection, sources: Iterable[Source], *, transcripts: bool = False, unseen: Sequence[str] = ()
) -> Changes:
    """Which of the files seen are not in the index as they are, and which of the index's files are gone.

    `unseen` are folders that could not be listed, filled while the sources are: what was in them is not gone.
    """
    where = "= 'transcripts'" if transcripts else "!= 'transcripts'"
    rows = db.execute(
        f"SELECT path, id, size, mtime_ns, ctime_ns, inode, is_settled, store FROM files WHERE store {where}"  # noqa: S608
    )
    noted = {row[0]: row[1:] for row in rows}
    changed: list[Source] = []
    known: dict[str, int] = {}
    total = 0
    for source in sources:
        total += 1
        row = noted.pop(source.path, None)
        if row is None or row[1:] != (source.size, source.mtime_ns, source.ctime_ns, source.inode, 1, source.store):
            changed.append(source)
            if row is not None:
                known[source.path] = row[0]
    hidden = tuple(f"{folder}/" for folder in unseen)
    gone = [row[0] for path, row in noted.items() if not hidden or not path.startswith(hidden)]
    return Changes(changed, gone, total, known)
