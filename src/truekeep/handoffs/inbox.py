"""Inboxes, where writers put handoffs: finds inboxes, reads their files, and moves processed files away.

No other module touches an inbox. Everything in one is untrusted: symlinks are not followed, special files are not
opened, and files that are still being written wait for the next run. A file is moved to processed/ only if it is still
the one that was read.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput
from truekeep.core.file_io import BeingWritten, ChangedSince, FileStamp, UnsafePath
from truekeep.core.machine import below_home
from truekeep.handoffs.format import is_conflict_copy
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

PROCESSED = "processed"
_MAX_OPEN_INBOXES = 8
_GITIGNORE = b"# Handoffs travel to memory, not into this repository's history.\n*\n"
_GUIDE_NAMES = frozenset(("readme", "template", "agents", "claude"))
_NUMBERED = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{4}-.+)-([0-9]{1,3})\.md\Z", re.DOTALL)  # see `deliver`
_HANDOFF_NAME = re.compile(r"\.(?:md|markdown)(?:\.[^/]*(?:conflict[0-9]*|path[0-9]))?\Z", re.IGNORECASE)
_MAX_OTHER_FILES = 100


class Inbox(NamedTuple):
    """One writer's folder in one repository."""

    root: Path  # the repository
    folder: str  # relative, such as .claude/memory-handoffs
    writer: str
    machine: str = ""  # for a synced inbox: the machine it came from,
    repository: str = ""  # the repository's name,
    there: str = ""  # and the repository's path on that machine
    shown: str = ""  # what people read instead of its path, if that tells them nothing

    @property
    def path(self) -> Path:
        return self.root / self.folder


class InboxFile(NamedTuple):
    """A handoff file in an inbox, not parsed or trusted yet."""

    inbox: Inbox
    name: str
    raw: bytes | None  # None when the file is too large to read
    size: int
    digest: bytes
    stamp: FileStamp


class SkippedFile(NamedTuple):
    """A file left in the inbox, and why. The next run tries again."""

    inbox: Inbox
    name: str
    why: str
    is_settling: bool = False


def find_inboxes(roots: Sequence[Path], writers: Mapping[str, str]) -> list[Inbox]:
    """The existing inboxes of these repositories, without duplicates."""
    found: dict[tuple[int, int], Inbox] = {}
    for root in roots:
        for writer, folder in writers.items():
            inbox = Inbox(root=root, folder=folder, writer=writer)
            try:
                info = os.lstat(inbox.path)
            except OSError:
                continue
            found.setdefault((info.st_dev, info.st_ino), inbox)
    return list(found.values())


def is_handoff_name(name: str) -> bool:
    """True if the name is that of a handoff, not of a temporary, backup or instruction file."""
    return _HANDOFF_NAME.search(name) is not None and name[0] not in ".~#" and not _is_guide(name)


def _is_guide(name: str) -> bool:
    """True for files that explain how to write handoffs, such as README.md."""
    return name.casefold().removesuffix(".markdown").removesuffix(".md") in _GUIDE_NAMES


def describe_other_files(others: Sequence[Path], *, most: int = 5) -> list[str]:
    """One line for each inbox file that ingest never takes."""
    home = Path.home()
    lines = [
        f"{withhold(printable(below_home(path, home)))} is not a handoff: its name does not end in .md"
        for path in others[:most]
    ]
    return [*lines, f"{len(others) - most} more files in inboxes are not handoffs"] if len(others) > most else lines


class InboxReader:
    """Reads the inboxes of one run. Keeps at most a few folders open."""

    def __init__(self, inboxes: Sequence[Inbox], *, limit: int, settle: float) -> None:
        self.inboxes = list(inboxes)
        self.problems: list[SkippedFile] = []
        self.others: list[Path] = []  # files that are not handoffs; filled by `waiting`
        self._limit = limit
        self._settle = settle
        self._open: OrderedDict[Inbox, _OpenInbox] = OrderedDict()
        self._ignore_lease_signal()

    def _ignore_lease_signal(self) -> None:
        self._can_lease = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGIO")
        if self._can_lease:
            signal.signal(signal.SIGIO, signal.SIG_IGN)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def waiting(self) -> list[tuple[str, Inbox]]:
        """Names of waiting files, oldest first: names start with the time of writing."""
        names: list[tuple[str, Inbox]] = []
        for inbox in self.inboxes:
            try:
                folder = self._opened(inbox).folder
                for name in os.listdir(folder):
                    if is_handoff_name(name):
                        names.append((name, inbox))
                    elif len(self.others) < _MAX_OTHER_FILES and _is_other_file(folder, name):
                        self.others.append(inbox.path / name)
            except UnsafePath as error:
                self.problems.append(SkippedFile(inbox=inbox, name="", why=f"the inbox {error.what} and is skipped"))
            except FileNotFoundError:
                continue
            except OSError as error:
                self.problems.append(SkippedFile(inbox=inbox, name="", why=error.strerror or str(error)))
        # A conflict copy comes after its original, so that of two equal files the original is filed.
        names.sort(key=lambda item: (is_conflict_copy(item[0]), *_sort_key(item[0]), str(item[1].root), item[1].folder))
        return names

    def read(self, name: str, inbox: Inbox) -> InboxFile | SkippedFile | None:
        """The file; why it cannot be read now; or None if it is gone."""

        def inspect(descriptor: int, info: os.stat_result) -> None:
            if info.st_nlink > 1:
                raise UnsafePath(name, "is a hard link to a file elsewhere; copy it instead")
            age = time.time() - info.st_mtime
            if 0 <= age < self._settle and not inbox.there:  # synced files are complete
                raise BeingWritten
            if self._can_lease:
                file_io.refuse_writers(descriptor)

        try:
            folder = self._opened(inbox).folder
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if info.st_size > self._limit and stat.S_ISREG(info.st_mode):
                return self._too_large(name, inbox, folder, inspect)
            data, stamp = file_io.read_file(folder, name, limit=self._limit, inspect=inspect)
        except FileNotFoundError:
            return None
        except BeingWritten:
            return SkippedFile(inbox=inbox, name=name, why="still being written", is_settling=True)
        except ChangedSince:
            return SkippedFile(inbox=inbox, name=name, why="changed while it was read", is_settling=True)
        except UnsafePath as error:
            return SkippedFile(inbox=inbox, name=name, why=error.what)
        except OSError as error:
            return SkippedFile(inbox=inbox, name=name, why=error.strerror or str(error))
        return InboxFile(
            inbox=inbox,
            name=name,
            raw=data,
            size=len(data),
            digest=hashlib.sha256(data).digest(),
            stamp=stamp,
        )

    def _too_large(
        self, name: str, inbox: Inbox, folder: int, inspect: Callable[[int, os.stat_result], None]
    ) -> InboxFile:
        """A file beyond the limit, identified by its size and both ends; it is never read in full or copied."""
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            info = os.fstat(descriptor)
            inspect(descriptor, info)
            ends = _ends(descriptor, info)
        finally:
            os.close(descriptor)
        return InboxFile(
            inbox=inbox,
            name=name,
            raw=None,
            size=info.st_size,
            digest=_large_digest(info, ends),
            stamp=file_io.stamp_of(info),
        )

    def processed_name(self, file: InboxFile) -> str:
        """The name that the file will get in processed/."""
        try:
            return _free_name(self._opened(file.inbox).open_processed(), file)
        except (OSError, UnsafePath):
            return file.name

    def clear(self, file: InboxFile) -> str | None:
        """Move a file to processed/ and return its name there; None if it changed or cannot be moved."""
        try:
            opened = self._opened(file.inbox)
            folder = opened.folder
            if file_io.stamp_of(os.stat(file.name, dir_fd=folder, follow_symlinks=False)) != file.stamp:
                return None
            processed = opened.open_processed()
            name = _free_name(processed, file)
            os.rename(file.name, name, src_dir_fd=folder, dst_dir_fd=processed)
        except (OSError, UnsafePath):
            return None
        return name

    def _opened(self, inbox: Inbox) -> _OpenInbox:
        opened = self._open.get(inbox)
        if opened is not None:
            self._open.move_to_end(inbox)
            return opened
        while len(self._open) >= _MAX_OPEN_INBOXES:
            self._open.popitem(last=False)[1].close()
        opened = self._open[inbox] = _OpenInbox(open_inbox(inbox))
        return opened


class _OpenInbox:
    """An open inbox folder, and its processed/ folder once that is needed."""

    def __init__(self, folder: int) -> None:
        self.folder = folder
        self._processed: int | None = None

    def open_processed(self) -> int:
        if self._processed is None:
            with suppress(FileExistsError):
                os.mkdir(PROCESSED, dir_fd=self.folder)
                os.fsync(self.folder)
            self._processed = file_io.open_folder(self.folder, PROCESSED)
        return self._processed

    def close(self) -> None:
        os.close(self.folder)
        if self._processed is not None:
            os.fsync(self._processed)
            os.close(self._processed)


def _sort_key(name: str) -> tuple[str, int, str]:
    """Sort key: the time in a file's name, then the number that `deliver` appended."""
    match = _NUMBERED.match(name)
    return (match[1], int(match[2]), name) if match else (name.removesuffix(".md"), 1, name)


def _is_other_file(folder: int, name: str) -> bool:
    """True for a visible regular file that may have been meant as a handoff: not a backup, not a guide."""
    if name[0] in ".~#" or name.endswith("~") or name == PROCESSED or _is_guide(name):
        return False
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_inbox(inbox: Inbox) -> int:
    """Open an inbox from its repository down, without following symlinks."""
    descriptor = file_io.open_root(str(inbox.root))
    for part in inbox.folder.split("/"):
        above = descriptor
        try:
            descriptor = file_io.open_folder(above, part, shown=inbox.folder)
        finally:
            os.close(above)
    return descriptor


def _free_name(processed: int, file: InboxFile) -> str:
    """The file's own name, or one with its digest if that name is taken."""
    name = file.name
    stem = f"{_clipped(name.removesuffix('.md'), 200)}-{file.digest.hex()[:8]}"
    for number in range(1, 1000):
        try:
            os.stat(name, dir_fd=processed, follow_symlinks=False)
        except FileNotFoundError:
            return name
        name = f"{stem}.md" if number == 1 else f"{stem}-{number}.md"
    raise FileExistsError(file.name)


def _clipped(name: str, size: int) -> str:
    """A name cut to a number of bytes, at a character boundary."""
    raw = os.fsencode(name)[:size]
    return raw.decode("utf-8", "ignore") if len(os.fsencode(name)) > size else name


def iter_processed(inbox: Inbox) -> Iterator[tuple[int, os.DirEntry[str]]]:
    """The files in an inbox's processed/ folder, with the folder's descriptor."""
    try:
        above = open_inbox(inbox)
    except (OSError, UnsafePath):
        return
    try:
        folder = file_io.open_folder(above, PROCESSED)
    except (OSError, UnsafePath):
        return
    finally:
        os.close(above)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield folder, entry
    finally:
        os.close(folder)


def prune_processed(
    inboxes: Sequence[Inbox], *, before: float, keep: set[str], limit: int, dry_run: bool
) -> Iterator[str]:
    """Remove files processed before a time, except those with a digest to keep. Yields their paths."""
    for inbox in inboxes:
        for folder, item in iter_processed(inbox):
            info = item.stat(follow_symlinks=False)
            # ctime is when the file was moved here; the writer's mtime may be anything.
            if max(info.st_mtime, info.st_ctime) >= before or not is_handoff_name(item.name):
                continue
            if keep and digest_in(folder, item.name, limit=limit).hex() in keep:
                continue
            if not dry_run:
                os.unlink(item.name, dir_fd=folder)
            yield str(inbox.path / PROCESSED / item.name)


def digest_in(folder: int, name: str, *, limit: int) -> bytes:
    """The digest of a file, as `InboxReader.read` computes it."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if info.st_size > limit:
            return _large_digest(info, _ends(descriptor, info))
        return hashlib.file_digest(file, "sha256").digest()


def _ends(descriptor: int, info: os.stat_result) -> bytes:
    return os.pread(descriptor, 65536, 0) + os.pread(descriptor, 65536, max(0, info.st_size - 65536))


def _large_digest(info: os.stat_result, ends: bytes) -> bytes:
    """A stand-in digest for a file too large to read: its size, time and both ends."""
    return hashlib.sha256(f"large {info.st_size} {info.st_mtime_ns} ".encode() + ends).digest()


def keep_untracked(folder: Path) -> None:
    """Keep an inbox out of its repository's git, with a .gitignore in the inbox itself."""
    descriptor = file_io.open_root(str(folder))
    try:
        _put(descriptor, ".gitignore", _GITIGNORE)
    finally:
        os.close(descriptor)


def deliver(inbox: Inbox, name: str, data: bytes) -> Path:
    """Write a new handoff into an inbox atomically, without replacing another. Creates missing folders.

    An inbox created here, in a repository that is not connected, gets a .gitignore of its own.
    """
    descriptor = file_io.open_root(str(inbox.root))
    is_new = False
    for part in inbox.folder.split("/"):
        above = descriptor
        try:
            try:
                os.mkdir(part, dir_fd=above)
                is_new = True
            except FileExistsError:
                is_new = False
            descriptor = file_io.open_folder(above, part, shown=inbox.folder)
        except UnsafePath as error:
            raise BadInput(
                f"{inbox.path}: {error.path} {error.what}", hint="remove it or choose another writer"
            ) from error
        finally:
            os.close(above)
    try:
        if is_new and os.path.lexists(inbox.root / ".git"):
            _put(descriptor, ".gitignore", _GITIGNORE)
        stem = name.removesuffix(".md")
        for number in range(1, 1000):
            chosen = name if number == 1 else f"{stem}-{number}.md"
            if _put(descriptor, chosen, data):
                os.fsync(descriptor)
                return inbox.path / chosen
        raise BadInput(
            f"a thousand handoffs named {name} are waiting already",
            hint="run `truekeep ingest`, or choose another title",
        )
    finally:
        os.close(descriptor)


def _put(folder: int, name: str, data: bytes) -> bool:
    """Create a file atomically; False if the name is taken."""
    by = f".{os.getpid()}-{os.urandom(4).hex()}"  # two producers may choose the same name at once
    file_io.write_beside(folder, name, data, by=by)
    try:
        file_io.put_new(folder, name, by=by)
    except ChangedSince:
        file_io.discard(folder, name, by)
        return False
    return True
