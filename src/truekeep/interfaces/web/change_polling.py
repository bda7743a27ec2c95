"""A version string of memory that changes with it: a page has it, and asks for it again."""

from __future__ import annotations

import os
from hashlib import sha256

from truekeep.core.model import CARDS, REVIEW
from truekeep.core.state_dir import STATE


def word_of(root: str, page: str) -> str:
    """The current version string for a page."""
    shown = os.path.join(root, shown_file(page))
    return sha256(repr((mark_of(root), _time(shown))).encode()).hexdigest()[:16]


def shown_file(page: str) -> str:
    """The file that a page shows; an editor may rewrite it in place, which does not change its folder."""
    for prefix, folder, ending in (("/memory/file/", "", ""), ("/review/", f"{REVIEW}/", ".md")):
        if page.startswith(prefix):
            path = f"{folder}{page[len(prefix) :].removesuffix('/edit')}{ending}"
            return path if "\0" not in path and ".." not in path and not path.startswith("/") else ""
    return ""


def mark_of(root: str) -> tuple[tuple[str, int], ...]:
    """The times of all in which a change of memory shows: the settings, the ledger, folders, files of the root."""
    watched = (f"{STATE}/config.toml", f"{STATE}/ledger.sqlite", f"{STATE}/ledger.sqlite-wal", CARDS, REVIEW)
    found = [(path, _time(os.path.join(root, path))) for path in watched]
    for folder in ("", "memory", "memory/daily"):
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                found += [(f"{folder}/{item.name}", _time(item.path)) for item in entries if item.name.endswith(".md")]
        except OSError:
            continue
    return tuple(sorted(found))


def _time(path: str) -> int:
    try:
        info = os.lstat(path)
    except OSError:
        return 0
    return info.st_mtime_ns if info.st_size or not path.endswith("-wal") else 0  # a reader creates an empty one
