"""Reads a harness's own notes: only regular text files, without text that truekeep injected."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import below_home
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable, strip_hidden
from truekeep.transcripts.injected_text import cut_injected

MAX_NOTE_BYTES = 200_000  # so that its handoff stays below the limit for handoffs
_HEADING = re.compile(r" {0,3}#[ \t]+(.+?)[ \t]*#*[ \t]*")


class Note(NamedTuple):
    """One note of a harness."""

    harness: str
    key: str  # stable, and safe to store
    shown: str  # its path, for people
    scope: str  # user, feedback, project, reference; rollout, summary, note
    title: str
    summary: str  # its own description
    hook: str  # its text in the harness's index
    body: str
    modified_at: datetime
    session_id: str
    root: Path | None  # its repository; None if it is about the user, or about a folder without one

    @property
    def digest(self) -> str:
        text = "\0".join((self.scope, self.title, self.summary, self.body))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class SkippedNote(NamedTuple):
    """A note that was not imported, and why."""

    shown: str
    why: str


class HarnessNotes(NamedTuple):
    """All notes of a harness on this machine."""

    notes: list[Note]
    skipped: list[SkippedNote]


class AdoptionScope(NamedTuple):
    """Where to look: the user's home and environment, and the known repositories."""

    home: Path
    environ: Mapping[str, str]
    folders: Sequence[Path]  # configured repositories and checkouts
    now: datetime

    def shown(self, path: Path) -> str:
        """The path with a tilde for the home folder, and without credentials."""
        return withhold(printable(below_home(path, self.home)))


def make_note(
    harness: str,
    path: Path,
    place: AdoptionScope,
    *,
    scope: str,
    title: str,
    body: str,
    modified_at: datetime,
    root: Path | None,
    summary: str = "",
    hook: str = "",
    session_id: str = "",
) -> Note:
    is_sane = place.now - timedelta(days=36_500) < modified_at <= place.now
    return Note(
        harness=harness,
        key=f"{harness}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}",
        shown=place.shown(path),
        scope=scope,
        title=" ".join(strip_hidden(title).split())[:120],
        summary=" ".join(summary.split())[:500],
        hook=" ".join(hook.split())[:120],
        body=body.strip("\n"),
        modified_at=modified_at if is_sane else place.now,
        session_id=session_id,
        root=root,
    )


def add(found: HarnessNotes, note: Note) -> None:
    if note.body.strip():
        found.notes.append(note)
    else:
        found.skipped.append(SkippedNote(note.shown, "it is empty, or contains only text from truekeep itself"))


def read_note(folder: Path, name: str, place: AdoptionScope, found: HarnessNotes) -> tuple[str, datetime] | None:
    """A note's text and time of writing; None if it cannot be read, with the reason added to `found.skipped`."""
    try:
        return read_text(folder, name)
    except FileNotFoundError:
        return None
    except UnsafePath as error:
        why = error.what
    except ChangedSince:
        why = "it changed while it was read; the next run tries again"
    except OSError as error:
        why = error.strerror or str(error)
    found.skipped.append(SkippedNote(place.shown(folder / name), why))
    return None


def read_text(folder: Path, name: str) -> tuple[str, datetime]:
    descriptor = file_io.open_root(str(folder))
    try:
        data, stamp = file_io.read_file(descriptor, name, limit=MAX_NOTE_BYTES)
    finally:
        os.close(descriptor)
    text = decode_text(data)
    if text is None:
        raise UnsafePath(name, "is not UTF-8 text")
    return cut_injected(text), datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC)


def first_heading(body: str) -> str:
    """The first heading of a text; "" if there is none."""
    for line in body.split("\n")[:20]:
        if (match := _HEADING.fullmatch(line)) is not None:
            return match[1]
    return ""


def parse_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder)) if not folder.is_symlink() else []
    except OSError:
        return []


def list_folders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted, without symlinks."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(item.path) for item in entries if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(found)


def is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
