"""Finds and names repositories by reading their files; git itself runs only for a configuration that is not plain."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from truekeep.core.file_io import read_head
from truekeep.text.encoding import decode_text

_MIN_TOKEN_LENGTH = 16
_OWN_FILES = ("HEAD", "index", "config.worktree")  # that git opens in .git, or in a worktree's own folder
_COMMON_FILES = (  # that git opens in the folder shared by worktrees
    *("config", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts"),
    *("objects/info/alternates", "objects/info/commit-graph", "objects/info/packs"),
)


class GitFailed(Exception):
    """Git failed. `why` is a message for the user, `hint` what to do about it."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.why} ({self.hint})" if self.hint else self.why


def find_top(folder: Path) -> Path | None:
    """The root of the repository that contains a folder: the nearest folder with a .git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def repository_name(root: Path) -> str:
    """The repository's name in provenance: host/owner/name of its origin, else the folder's name."""
    return remote_name(root) or root.name


def remote_name(root: Path) -> str:
    """host/owner/name of the repository's origin; "" without one."""
    top = find_top(root) or root
    remote = _plain_origin(top)
    if remote is None:
        from truekeep.core.git import read_origin

        remote = read_origin(top)
    return parse_remote(remote) if remote else ""


def _plain_origin(top: Path) -> str | None:
    """The origin's URL from a plain .git/config; None if the file needs git to read it."""
    raw = read_head(top / ".git" / "config", 200_000, follow=True)
    text = decode_text(raw)
    if not text or any(mark in text for mark in "\\;#") or len(raw) == 200_000:
        return None
    section = ""
    found = ""
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith("["):
            if not bare.endswith("]"):
                return None
            section = bare
        elif section.lower().startswith("[remote") and section.partition(" ")[2].strip() == '"origin"]':
            key, equals, value = bare.partition("=")
            if key.strip().lower() == "url" and equals:
                if '"' in value:
                    return None
                found = value.strip()  # the last one wins, as in git
    return found


def find_irregular_file(root: str) -> str:
    """The first file that git would open and that is not a regular file; "" if there is none.

    Git would block forever on a FIFO. Symlinks are followed, as git does.
    """
    own = os.path.join(root, ".git")
    if _is_irregular(own):
        return own
    if os.path.isfile(own):  # a worktree or a submodule
        git_dir = read_head(own, 4096, follow=True).removeprefix(b"gitdir:").strip()
        own = os.path.join(root, os.fsdecode(git_dir))
    if _is_irregular(shared := os.path.join(own, "commondir")):
        return shared
    common = os.path.join(own, os.fsdecode(read_head(shared, 4096, follow=True).strip()))
    for folder, names in ((own, _OWN_FILES), (common, _COMMON_FILES)):
        for name in names:
            if _is_irregular(path := os.path.join(folder, name)):
                return os.path.normpath(path)
    head = read_head(os.path.join(own, "HEAD"), 4096, follow=True)
    if head.startswith(b"ref:"):
        branch = os.fsdecode(head.removeprefix(b"ref:").strip())
        for folder in (own, common):
            if _is_irregular(path := os.path.join(folder, branch)):
                return os.path.normpath(path)
    return ""


def _is_irregular(path: str) -> bool:
    """True if the path exists and is neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def irregular_file_failure(root: str) -> GitFailed | None:
    """The error for a repository with a FIFO, socket or device in place of a file that git opens; else None."""
    path = find_irregular_file(root)
    if not path:
        return None
    return GitFailed(f"{path} is not a regular file", "put a regular file there, or clone the repository again")


def parse_remote(url: str) -> str:
    """A remote URL as host/owner/name, without user, password, port or scheme; "" for a local path."""
    url = url.strip()
    scheme, separator, rest = url.partition("://")
    if not separator:
        if url.startswith(("/", ".", "~")) or ":" not in url:
            return ""
        rest = url
    elif scheme.lower() == "file":
        return ""
    # As in git, the last @ before the path ends user and password: a password may contain one.
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, colon, tail = authority.partition(":")
    if not separator and colon:
        path = f"{tail}{slash}{path}"  # host:path, as ssh writes it; with a scheme, what follows the colon is a port
    path = path.partition("?")[0].partition("#")[0].strip("/").removesuffix(".git")
    return _without_token(f"{host.lower()}/{path}") if host and path else ""


def _without_token(name: str) -> str:
    """The name with secrets replaced: it is stored and shown, and some servers take a token as part of the path."""
    parts = name.split("/")
    if not any(len(part) >= _MIN_TOKEN_LENGTH and any(map(str.isdigit, part)) for part in parts):
        return name
    from truekeep.text.secrets.scanner import find_secrets  # compiles many patterns; rarely needed

    return "/".join("withheld" if find_secrets(part) else part for part in parts)
