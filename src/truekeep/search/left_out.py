"""Markdown that search and verify do not read although its owner may expect it; `truekeep index` lists it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.memory.document_scan import is_of_others
from truekeep.memory.file_scan import FileScan

_MAX_NAMED = 5  # of each kind


def find_left_out(root: str, scan: FileScan) -> list[str]:
    """One line for each reason: too large, no regular file, behind a link that leaves the workspace, ignored by git."""
    notes = [f"{path} is over 1 MB and is not searched" for path in scan.large_documents]
    notes += _line("not read because they are not regular files", sorted(scan.special_files))
    notes += _line("not read because they are links out of the workspace", sorted(_outward_links(root, scan)))
    return notes + _line("not read because .gitignore names them, though git keeps them", _ignored(root, scan))


def _line(why: str, paths: list[str]) -> list[str]:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return [f"{why}: {', '.join(paths[:_MAX_NAMED])}{more}"] if paths else []


def _outward_links(root: str, scan: FileScan) -> Iterator[str]:
    """The links to Markdown files and to folders in the folders that were scanned, if they lead elsewhere."""
    inside = os.path.realpath(root) + os.sep
    for folder in {folder.location: folder for folder in scan.folders}.values():
        try:
            with os.scandir(folder.location) as entries:
                links = [item for item in entries if item.is_symlink() and not item.name.startswith(".")]
        except OSError:
            continue
        for item in links:
            is_wanted = item.name.endswith(".md") or item.is_dir()
            if is_wanted and not is_of_others(item.name) and not os.path.realpath(item.path).startswith(inside):
                yield os.path.relpath(item.path, root)


def _ignored(root: str, scan: FileScan) -> list[str]:
    """The Markdown files that git keeps although a .gitignore names them; the walk passes them over."""
    try:
        raw = Git(root).run("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    except GitFailed:
        return []
    paths = [os.fsdecode(name) for name in raw.split(b"\0") if name.endswith(b".md")]
    if not paths:
        return []
    read = {file.path for file in scan.files()}
    return [path for path in paths if path not in read and "/." not in f"/{path}" and not is_of_others(path)]
