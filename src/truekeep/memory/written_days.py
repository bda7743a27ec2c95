"""The day on which a memory file was written, as git knows it.

A file's own time says little: clone, unzip and copies reset it. So a file whose content is committed has the day of
the last commit that touched it. Git is asked once for many files, and only about files that say no day themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from truekeep.core.repository import GitFailed, find_top

_MAX_PATHS = 40  # asked about by name; for more of them, all of history is read once


class CommittedDay(NamedTuple):
    """The day of the last commit that touched a file."""

    day: str
    is_first: bool  # the repository's first commit, which often brings in older files


def blob_id(data: bytes) -> str:
    """The id that git gives to a file with this content."""
    from hashlib import sha1  # loads OpenSSL, which is slow for a hook

    return sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def committed_days(root: str, blobs: Mapping[str, str]) -> dict[str, CommittedDay]:
    """The days of those files, by path below `root`, whose content is committed as it is. `blobs`: their ids."""
    top = find_top(Path(os.path.realpath(root))) if blobs else None
    if top is None:
        return {}
    from truekeep.core.git import Git, head_commit  # starts processes; hooks do without

    base = os.path.relpath(os.path.realpath(root), top)
    inside = {os.path.normpath(os.path.join(base, path)): path for path in blobs}
    git = Git(str(top))
    names = tuple(inside) if len(inside) <= _MAX_PATHS else ()
    try:
        listed = git.run("ls-files", "-s", "-z", "--full-name", "--", *names)
        same = [path for path, oid in _staged(listed) if path in inside and blobs[inside[path]] == oid]
        if not same:
            return {}
        days = _read_days(str(top), head_commit(top), tuple(same) if names else ())
    except GitFailed:
        return {}
    return {inside[path]: days[path] for path in same if path in days}


def _staged(raw: bytes) -> list[tuple[str, str]]:
    rows = (item.partition(b"\t") for item in raw.split(b"\0") if item)
    return [(os.fsdecode(path), head.split(b" ")[1].decode()) for head, _, path in rows]


@lru_cache(maxsize=4)
def _read_days(top: str, head: str, paths: tuple[str, ...]) -> dict[str, CommittedDay]:
    """The day of each path's last commit; of all paths, if none are named. `head` is part of the cache's key."""
    from truekeep.core.git import Git

    if not head:
        return {}
    raw = Git(top).run(
        "log", "--no-show-signature", "--no-renames", "--name-only", "-z", "--format=%x02%cs %P", head, "--", *paths,
        timeout=60,
    )  # fmt: skip
    found: dict[str, CommittedDay] = {}
    commit = CommittedDay("", False)
    for item in raw.split(b"\0"):
        item = item.lstrip(b"\n")
        if item.startswith(b"\x02"):
            day, _, parents = item[1:].partition(b"\n")[0].decode().partition(" ")
            commit = CommittedDay(day, not parents.strip())
            item = item.partition(b"\n")[2].lstrip(b"\n")
        if item:
            found.setdefault(os.fsdecode(item), commit)
    return found
