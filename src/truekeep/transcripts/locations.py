"""Finds the harnesses' session files by name and stat, without opening them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from truekeep.core.file_io import UnsafePath, open_folder, open_root
from truekeep.transcripts.session_file import Session, clean_name, parse_session_id


class TranscriptFile(NamedTuple):
    """A session file, not opened yet."""

    path: Path
    harness: str
    session_id: str
    mtime_ns: int
    size: int
    shown: str  # its name in indexes and for people: stable, printable, unique
    ctime_ns: int = 0


class _SessionFolder(NamedTuple):
    """A harness's session folder and the path pattern below it."""

    harness: str
    variable: str
    default: str
    shape: tuple[str, ...]
    is_wanted: Callable[[str], bool]
    telling: slice
    """The path components that identify a file."""


def _is_session(name: str) -> bool:
    return name.endswith(".jsonl") and not name.startswith("agent-")  # of subagents, in older versions


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst"))


def _is_openclaw_session(name: str) -> bool:
    """True for sessions and reset sessions; not for deleted ones, copies before a compaction, or traces."""
    stem, extension, rest = name.partition(".jsonl")
    if not extension or ".checkpoint." in stem or stem.endswith(".trajectory"):
        return False
    return not rest or rest.startswith(".reset.")


_PLACES = (
    _SessionFolder("claude", "CLAUDE_CONFIG_DIR", ".claude", ("projects", "*"), _is_session, slice(1, None)),
    _SessionFolder("codex", "CODEX_HOME", ".codex", ("archived_sessions", "**"), _is_rollout, slice(0, None)),
    _SessionFolder("codex", "CODEX_HOME", ".codex", ("sessions", "**"), _is_rollout, slice(0, None)),
    _SessionFolder(
        "openclaw",
        "OPENCLAW_STATE_DIR",
        ".openclaw",
        ("agents", "*", "sessions"),
        _is_openclaw_session,
        slice(1, None, 2),
    ),
)
_MAX_DEPTH = 8


def find_transcripts(*, home: Path, environ: Mapping[str, str], since: float | None) -> Iterator[TranscriptFile]:
    """Every session file of the three harnesses that was written since a time, in a stable order.

    A harness's own folder may be a symlink, as dotfiles often are; symlinks below it are not followed. Unreadable and
    compressed files are skipped.
    """
    for seen in iter_seen(home=home, environ=environ):
        old = since is not None and seen.info.st_mtime < since
        if not old and not seen.trail[-1].endswith(".zst"):
            yield seen.describe()


class SessionFile(NamedTuple):
    """A session file found by scanning. Its description is computed on request, because it is slower than the scan."""

    place: _SessionFolder
    root: str
    trail: tuple[str, ...]
    info: os.stat_result

    @property
    def path(self) -> str:
        return "/".join((self.root, *self.trail))

    def describe(self) -> TranscriptFile:
        harness = self.place.harness
        return TranscriptFile(
            path=Path(self.path),
            harness=harness,
            session_id=parse_session_id(self.trail[-1], harness),
            mtime_ns=self.info.st_mtime_ns,
            size=self.info.st_size,
            shown=render_shown("/".join(("transcripts", harness, *self.trail[self.place.telling]))),
            ctime_ns=self.info.st_ctime_ns,
        )


def iter_seen(*, home: Path, environ: Mapping[str, str]) -> Iterator[SessionFile]:
    """Every session file, including compressed ones, by its stat alone."""
    for place in _PLACES:
        root = str(find_root(home, environ, place.variable, place.default))
        try:
            folder = open_root(root)
        except OSError:
            continue
        try:
            for trail, info in _iter_files(folder, place.shape, place.is_wanted, ()):
                yield SessionFile(place, root, trail, info)
        finally:
            os.close(folder)


def find_agent_databases(*, home: Path, environ: Mapping[str, str]) -> Iterator[TranscriptFile]:
    """OpenClaw's databases, one per agent. `shown` is the prefix of their sessions' names."""
    root = find_root(home, environ, "OPENCLAW_STATE_DIR", ".openclaw")
    try:
        folder = open_root(str(root))
    except OSError:
        return
    try:
        found = _iter_files(folder, ("agents", "*", "agent"), "openclaw-agent.sqlite".__eq__, ())
        for trail, info in found:
            shown = render_shown(f"transcripts/openclaw/{trail[1]}.sqlite")
            yield TranscriptFile(
                root.joinpath(*trail), "openclaw", trail[1], info.st_mtime_ns, info.st_size, shown, info.st_ctime_ns
            )
    finally:
        os.close(folder)


def _iter_files(
    folder: int, shape: tuple[str, ...], is_wanted: Callable[[str], bool], trail: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """The files below a folder. The pattern lists the folders above them; `*` is any one, `**` any number."""
    step = shape[0] if shape else ""
    files, folders = _list_folder(folder) if step in ("", "*", "**") else ([], [step])
    for entry in files if step in ("", "**") else ():
        if not is_wanted(entry.name):
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # removed since
        yield (*trail, entry.name), info
    for name in folders if step and len(trail) < _MAX_DEPTH else ():
        try:
            inner = open_folder(folder, name)
        except (OSError, UnsafePath):
            continue
        try:
            yield from _iter_files(inner, shape if step == "**" else shape[1:], is_wanted, (*trail, name))
        finally:
            os.close(inner)


def _list_folder(folder: int) -> tuple[list[os.DirEntry[str]], list[str]]:
    """The regular files and the folders in a folder, sorted, without symlinks."""
    files: list[os.DirEntry[str]] = []
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_file(follow_symlinks=False):
                files.append(entry)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return files, folders


def find_root(home: Path, environ: Mapping[str, str], variable: str, default: str) -> Path:
    value = environ.get(variable) or default
    return home / (value[2:] if value.startswith("~/") else value)


def render_shown(path: str) -> str:
    """The path if it has only ordinary characters, else a printable, unique substitute."""
    shown = clean_name(path)
    if shown == path and _ORDINARY.fullmatch(path):
        return path
    # The sign is not an ordinary character, so that no plain name can imitate the substitute.
    return f"{shown}~{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"


_ORDINARY = re.compile(r"[A-Za-z0-9._/@+=, -]*")


def is_own_housekeeping(session: Session, environ: Mapping[str, str], *, home: Path | None = None) -> bool:
    """True if Codex ran this session on its own memory: it contains only Codex's prompts."""
    if session.harness != "codex" or not session.cwd:
        return False
    root = find_root(home or Path(environ.get("HOME", "/")), environ, "CODEX_HOME", ".codex")
    cwd = os.path.normpath(session.cwd)
    return any(
        cwd == own or cwd.startswith(own.rstrip("/") + "/") for own in (os.path.normpath(root), os.path.realpath(root))
    )
