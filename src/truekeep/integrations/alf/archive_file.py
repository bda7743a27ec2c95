"""Archives as files: opened, decrypted in memory if they are encrypted, and written completely or not at all.

A new archive is written under a temporary name and gets its own name when it is complete; what a killed run left under
that name is overwritten. The digests of archives made on this machine are remembered, so that importing one needs no
questions.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO, cast

from truekeep.core import file_io
from truekeep.core.errors import BadInput, StorageFailed
from truekeep.core.file_io import ChangedSince
from truekeep.core.machine import own_state
from truekeep.integrations.alf import encryption
from truekeep.integrations.alf.writer import RecordSpool
from truekeep.integrations.alf.zip_container import BadArchive, ZipReader, ZipWriter

OWN_ARCHIVES_FILE = "exported.jsonl"  # in the state folder of this machine
_MAX_OWN_ARCHIVES_BYTES = 1 << 20
_OWN_ARCHIVES_AFTER_TRIMMING = 2_000


# --- Reading --------------------------------------------------------------------------------------------------------


@contextmanager
def open_archive(path: Path, *, identities: Sequence[str] = (), large: bool = False) -> Iterator[ZipReader]:
    """Open an archive. `identities`: private keys for an encrypted one; `large`: accept any unpacked size."""
    with ExitStack() as stack:
        try:
            file: BinaryIO = stack.enter_context(open_regular_file(path))
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}", hint="give the path of an .alf file") from error
        if _is_encrypted(file):
            encryption.require_age()
            if not identities:
                raise BadInput(f"{path} is encrypted", hint="give the private key with --identity FILE")
            file = stack.enter_context(encryption.decrypt(file, encryption.parse_identities(identities), str(path)))
        yield stack.enter_context(ZipReader(file, large=large, name=str(path)))


def open_regular_file(path: Path) -> BufferedReader:
    """Open a file for reading. Anything but a regular file is refused: a pipe could block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise BadInput(f"{path} is not a regular file", hint="save what comes through a pipe to an .alf file first")
    return open(descriptor, "rb")


def _is_encrypted(file: BinaryIO) -> bool:
    head = file.read(64)
    file.seek(0)
    return encryption.is_encrypted(head)


def require_same_encryption(sources: Sequence[Path], recipients: Sequence[str]) -> None:
    """Refuse to write the contents of an encrypted archive to an unencrypted one."""
    for path in () if recipients else sources:
        with suppress(OSError), open_regular_file(path) as file:
            if _is_encrypted(file):
                raise BadInput(
                    f"{path} is encrypted, but the new archive would not be",
                    hint="add --encrypt KEY (`age-keygen -y` prints yours)",
                )


def require_undamaged(reader: ZipReader) -> None:
    """Refuse an archive with unusable entries."""
    if reader.problems:
        first = reader.problems[0]
        others = len(reader.problems) - 1
        more = f", and {others} more {'entry' if others == 1 else 'entries'}" if others else ""
        raise BadArchive(f"{first.entry}: {first.message}{more}", entry=first.entry, of=reader.name)


# --- Writing --------------------------------------------------------------------------------------------------------


@contextmanager
def create_archive(path: Path, *, recipients: Sequence[str] = (), replace: bool = False) -> Iterator[ZipWriter]:
    """A new archive, which gets its name when the block ends without an error."""
    keys = encryption.parse_recipients(recipients) if recipients else []
    _refuse_stream(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file with -o")
    if not replace and os.path.lexists(path):
        raise BadInput(f"{path} already exists", hint="name another file with -o, or add --replace")
    temporary = path.with_name(file_io.temporary_name(path.name))
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StorageFailed(
            f"{path}: {error.strerror}", hint="name a file in a folder that you can write to"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)  # a killed run may have left it
    except OSError as error:
        os.close(descriptor)
        raise BadInput(
            f"{path} is being written by another process", hint="wait for it, or name another file"
        ) from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if keys:
                with encryption.encrypting(file, keys) as stream:
                    yield from _zip_writer(stream)
            else:
                yield from _zip_writer(file)
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(path, replace=replace)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror or error}", hint="nothing was written") from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _refuse_stream(path: Path) -> None:
    is_stream = str(path) == "-" or str(path.parent) in ("/dev", "/dev/fd") or path.parts[:2] == ("/", "proc")
    if is_stream or (path.exists() and not (path.is_file() or path.is_dir())):
        raise BadInput(
            f"an archive cannot be written to {path}: it is renamed when it is complete",
            hint="name a regular file with -o, and send that on",
        )


def _zip_writer(file: IO[bytes]) -> Iterator[ZipWriter]:
    with ZipWriter(cast(BinaryIO, file)) as writer:
        yield writer


def _put_in_place(path: Path, *, replace: bool) -> None:
    """Rename the temporary file to the archive's own name."""
    folder = file_io.open_root(str(path.absolute().parent))
    try:
        if replace:
            os.replace(file_io.temporary_name(path.name), path.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            file_io.put_new(folder, path.name)
        try:
            os.fsync(folder)
        except OSError as error:
            raise StorageFailed(
                f"{path} is written, but the disk does not confirm its name: {error.strerror}", hint="check the disk"
            ) from error
    except ChangedSince as error:
        raise BadInput(f"{path} was created meanwhile", hint="name another file with -o") from error
    finally:
        os.close(folder)


@contextmanager
def open_spool(target: Path, recipients: Sequence[str]) -> Iterator[RecordSpool]:
    """A spool beside the archive; in memory if the archive is encrypted."""
    spool = RecordSpool(folder=None if recipients else str(target.absolute().parent))
    try:
        yield spool
    finally:
        spool.close()


# --- Archives made on this machine ----------------------------------------------------------------------------------


def remember_own_archive(path: Path) -> None:
    """Record the digest of a new archive. If that fails, a later import only asks more questions."""
    with suppress(OSError):
        line = {"sha256": file_digest(path), "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "name": path.name}
        known = Path(own_state()) / OWN_ARCHIVES_FILE
        file_io.make_private(known.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(known, flags, 0o600), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
        if known.stat().st_size > _MAX_OWN_ARCHIVES_BYTES:
            lines = known.read_bytes().splitlines(keepends=True)
            file_io.write_whole(known, b"".join(lines[-_OWN_ARCHIVES_AFTER_TRIMMING:]))


def is_own_archive(path: Path) -> bool:
    """True if exactly this file was made on this machine."""
    try:
        lines = (Path(own_state()) / OWN_ARCHIVES_FILE).read_bytes().splitlines()
        digest = file_digest(path)
    except OSError:
        return False
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            if json.loads(line)["sha256"] == digest:
                return True
    return False


def file_digest(path: Path) -> str:
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
