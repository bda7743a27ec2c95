"""The documents of a workspace outside of its memory files: every Markdown file that people wrote into it.

Search reads them, and verify checks them and the instructions to the agent; maintenance and hooks see memory files only
(`file_scan`).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truekeep.memory.file_scan import (
    ROOT_FILES,
    ROOT_FOLDERS,
    FileScan,
    MemoryFile,
    ScannedFolder,
    list_folder,
    scan_files,
)
from truekeep.memory.ignore_rules import IgnoreRules, is_ignored, parse_ignore_rules

_INSTRUCTIONS = frozenset(("AGENTS.md", "CLAUDE.md", "GEMINI.md", "HANDOVER.md"))  # verify checks them
_TEMPLATES = frozenset(("BOOTSTRAP.md",))  # of the harness, until they are filled in and deleted
_SKILL = "SKILL.md"
_OTHERS_FOLDERS = frozenset(  # of packages, builds and caches
    (
        "node_modules", "bower_components", "vendor", "third_party", "site-packages", "venv", "env", "virtualenv",
        "__pycache__", "dist", "build", "target", "coverage", "htmlcov", "out", "tmp", "temp", "cache", "skills",
    )
)  # fmt: skip
_BACKUP_FOLDER = re.compile(r"(?:.*[-_.])?(?:back-?ups?|bak|trash|snapshots?|old)(?:[-_.]?\d.*)?", re.IGNORECASE)
DOCUMENT_LIMIT = 1_000_000  # bytes of a document outside of memory/; a larger one is data, or made by a program
_IGNORE_FILE_LIMIT = 200_000  # bytes of a .gitignore that are read


def scan_workspace(root: str, extra: Sequence[str] = (), *, with_instructions: bool = False) -> FileScan:
    """The memory files, and every other Markdown file that people wrote into the workspace, as documents.

    Not those of packages, builds, skills and other repositories, what git ignores, or (unless asked for) instructions
    to the agent.
    """
    memory = scan_files(root, extra)
    documents = _scan_documents(root, memory, with_instructions=with_instructions)
    return documents._replace(folders=memory.folders + documents.folders)


def scan_documents(root: str, extra: Sequence[str] = (), *, with_instructions: bool = False) -> FileScan:
    """What scan_workspace finds besides the memory files."""
    return _scan_documents(root, scan_files(root, extra), with_instructions=with_instructions)


def _scan_documents(root: str, memory: FileScan, *, with_instructions: bool) -> FileScan:
    seen = {file.path for file in memory.extra}
    folders: list[ScannedFolder] = []
    large: list[str] = []
    for folder in _walk_documents(root, memory.special_files, with_instructions=with_instructions):
        prefix = f"{folder.shown}/" if folder.shown else ""
        entries = [entry for entry in folder.entries if f"{prefix}{entry[0]}" not in seen]
        large += [f"{prefix}{name}" for name, info in entries if info[0] > DOCUMENT_LIMIT]
        entries = [entry for entry in entries if entry[1][0] <= DOCUMENT_LIMIT]
        if entries:
            folders.append(folder._replace(entries=entries))
    return memory._replace(folders=folders, large_documents=large)


def iter_workspace(root: str, extra: Sequence[str] = ()) -> Iterator[MemoryFile]:
    """Every file that scan_workspace finds."""
    return scan_workspace(root, extra).files()


def iter_current(root: str) -> Iterator[MemoryFile]:
    """Every file that tells how things are: what search reads and the instructions to the agent, without backups."""
    for file in scan_workspace(root, with_instructions=True).files():
        if not is_backup(file.path):
            yield file


class OtherDocuments(NamedTuple):
    """How much people wrote into folders of their own, outside of memory/."""

    files: int
    size: int


def count_other_documents(root: str) -> OtherDocuments:
    """Count the documents that verify and search read besides the memory files."""
    documents = scan_documents(root, with_instructions=True).files()
    sizes = [file.size for file in documents if not is_backup(file.path)]
    return OtherDocuments(len(sizes), sum(sizes))


def is_of_others(path: str) -> bool:
    """Whether a path is in a folder of packages, builds, caches or skills, or is one."""
    return any(part.lower() in _OTHERS_FOLDERS for part in path.split("/"))


def is_backup(path: str) -> bool:
    """Whether a file is in a folder of backups or of old states: it tells what another file told then."""
    return any(map(_BACKUP_FOLDER.fullmatch, path.split("/")[:-1]))


def _walk_documents(root: str, special: list[str], *, with_instructions: bool) -> Iterator[ScannedFolder]:
    """The folders with documents outside of memory/. One that cannot be listed is passed over."""
    waiting: list[tuple[str, str, tuple[IgnoreRules, ...]]] = [(root, "", ())]
    while waiting:
        location, shown, ignored = waiting.pop()
        prefix = f"{shown}/" if shown else ""
        try:
            opened = os.open(location, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            files, names, others = list_folder(opened)
            if shown and (any(name == _SKILL for name, _ in files) or _has_entry(opened, ".git")):
                continue
            ignored += _read_ignore_rules(opened, prefix)
        except OSError:
            continue
        finally:
            os.close(opened)
        special += [f"{prefix}{name}" for name in others if prefix or name not in ROOT_FILES]
        left_out = _TEMPLATES if with_instructions else _TEMPLATES | _INSTRUCTIONS
        documents = [entry for entry in files if entry[0] not in left_out and _is_document(prefix, entry[0], ignored)]
        yield ScannedFolder(location, shown, documents)
        for name in names:
            is_memory = not shown and name in (*ROOT_FOLDERS, "memory")
            if not is_memory and name.lower() not in _OTHERS_FOLDERS:
                path = prefix + name
                if not (ignored and is_ignored(path, ignored, is_folder=True)):
                    waiting.append((f"{location}/{name}", path, ignored))


def _is_document(prefix: str, name: str, ignored: tuple[IgnoreRules, ...]) -> bool:
    if not prefix and name in ROOT_FILES:
        return False
    return not (ignored and is_ignored(prefix + name, ignored, is_folder=False))


def _has_entry(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _read_ignore_rules(folder: int, prefix: str) -> tuple[IgnoreRules, ...]:
    """The rules of an open folder's .gitignore, if it has one."""
    try:
        opened = os.open(".gitignore", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return ()
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return ()
        return (parse_ignore_rules(prefix, file.read(_IGNORE_FILE_LIMIT).decode("utf-8", "replace")),)
