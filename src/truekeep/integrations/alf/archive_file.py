"""Archives as files: opened, decrypted in memory where they are encrypted, and written whole or not at all.

An archive gets its name when it is whole; what a killed run left beside it is swept.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from truekeep.core import file_io
from truekeep.core.errors import BadInput, StorageFailed
from truekeep.core.file_io import ChangedSince
from truekeep.integrations.alf import encryption
from truekeep.integrations.alf.delta import DeltaContents
from truekeep.integrations.alf.files import ARCHIVES, OmittedFile
from truekeep.integrations.alf.writer import Spool, WrittenArchive
from truekeep.integrations.alf.zip_container import BadArchive, Reader, Writer


class ExportOptions(NamedTuple):
    """How an archive is to be made."""

    scheme: str = "content"
    plain: bool = False
    transcripts: bool = False
    embeddings: bool = True
    base: Path | None = None
    recipients: tuple[str, ...] = ()
    replace: bool = False
    identities: tuple[str, ...] = ()


class ExportReport(NamedTuple):
    """An archive that was made."""

    path: Path
    size: int
    written: WrittenArchive | DeltaContents
    notes: tuple[str, ...]
    omitted: tuple[OmittedFile, ...]


@contextmanager
def opened(path: Path, *, identities: Sequence[str] = (), large: bool = False) -> Iterator[Reader]:
    """An archive, decrypted in memory if it is encrypted."""
    with ExitStack() as stack:
        try:
            file: BinaryIO = stack.enter_context(open_plain(path))
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}", hint="name an .alf file") from error
        if _is_sealed(file):
            encryption.check_age()  # before somebody looks for a key
            if not identities:
                raise BadInput(f"{path} is encrypted", hint="name the private key with --identity FILE")
            file = stack.enter_context(encryption.unsealed(file, encryption.parse_identities(identities), str(path)))
        yield stack.enter_context(Reader(file, large=large, name=str(path)))


def open_plain(path: Path) -> BufferedReader:
    """A file to read. Nobody waits for the other end of a pipe: what is no plain file is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise BadInput(f"{path} is not a regular file", hint="name an .alf file; what comes through a pipe, save first")
    return open(descriptor, "rb")


def _is_sealed(file: BinaryIO) -> bool:
    head = file.read(64)
    file.seek(0)
    return encryption.is_sealed(head)


def stay_sealed(sources: Sequence[Path], recipients: Sequence[str]) -> None:
    """What comes out of an encrypted archive goes into an encrypted one."""
    for path in () if recipients else sources:
        with suppress(OSError), open_plain(path) as file:
            if _is_sealed(file):
                raise BadInput(
                    f"{path} is encrypted, and what is made of it would not be",
                    hint="--encrypt KEY (`age-keygen -y` prints yours)",
                )


@contextmanager
def written(path: Path, *, recipients: Sequence[str] = (), replace: bool = False) -> Iterator[Writer]:
    """An archive in the making: it gets its name when it is whole."""
    keys = encryption.parse_recipients(recipients) if recipients else []
    _refuse_stream(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file with -o")
    if not replace and os.path.lexists(path):
        raise BadInput(f"{path} is there already", hint="name another file with -o, or say --replace")
    by = f".{os.getpid()}"
    beside = path.with_name(file_io.temporary_name(path.name, by))
    try:
        _sweep(path)
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}", hint="name a file in a folder that can be written") from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if keys:
                with encryption.sealing(file, keys) as stream:
                    yield from _writing(stream)
            else:
                yield from _writing(file)
            file.flush()
            os.fsync(file.fileno())
        _put(path, by, replace=replace)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror or error}", hint="nothing was written") from error
    finally:
        with suppress(OSError):
            os.unlink(beside)


def _refuse_stream(path: Path) -> None:
    is_stream = str(path) == "-" or str(path.parent) in ("/dev", "/dev/fd") or path.parts[:2] == ("/", "proc")
    if is_stream or (path.exists() and not (path.is_file() or path.is_dir())):
        raise BadInput(
            f"an archive gets its name when it is whole, so it cannot go to {path}",
            hint="name a file with -o, and send that on",
        )


def _writing(file: IO[bytes]) -> Iterator[Writer]:
    with Writer(cast(BinaryIO, file)) as writer:
        yield writer


def _sweep(path: Path) -> None:
    """Remove what killed runs left, of this archive and of others in its folder. Who lives holds a lock on his."""
    start = file_io.temporary_name(path.name, ".").removesuffix(file_io.TEMPORARY)
    for name in os.listdir(path.absolute().parent):
        whose, _, by = name.removesuffix(file_io.TEMPORARY).rpartition(".")
        is_archive = whose.startswith(".") and whose.endswith(ARCHIVES) and by.isdecimal() and not _is_alive(int(by))
        if not name.endswith(file_io.TEMPORARY) or not (name.startswith(start) or is_archive):
            continue
        left = path.with_name(name)
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(left)
            finally:
                os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _put(path: Path, by: str, *, replace: bool) -> None:
    """Give what was written its name."""
    folder = file_io.open_root(str(path.absolute().parent))
    try:
        if replace:
            temporary = file_io.temporary_name(path.name, by)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            file_io.put_new(folder, path.name, by=by)
        try:
            os.fsync(folder)
        except OSError as error:
            raise StorageFailed(
                f"{path} is written, but the disk does not confirm its name: {error.strerror}", hint="check the disk"
            ) from error
    except ChangedSince as error:
        raise BadInput(f"{path} came to be meanwhile", hint="name another file with -o") from error
    finally:
        os.close(folder)


@contextmanager
def spooled(target: Path, recipients: Sequence[str]) -> Iterator[Spool]:
    spool = Spool(folder=None if recipients else str(target.absolute().parent))
    try:
        yield spool
    finally:
        spool.close()


def raise_problems(reader: Reader) -> None:
    """Refuse an archive with entries that cannot be used."""
    if reader.problems:
        first = reader.problems[0]
        rest = len(reader.problems) - 1
        more = f", and {rest} more {'entry' if rest == 1 else 'entries'}" if rest else ""
        raise BadArchive(f"{first.entry}: {first.message}{more}", entry=first.entry, of=reader.name)
