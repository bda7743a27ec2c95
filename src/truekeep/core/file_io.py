"""Safe file primitives: open folder descriptors, no symlinks followed, files replaced as a whole.

Functions take a folder's descriptor and a plain name, so that a path that changes underneath cannot lead elsewhere. A
file is written to a temporary file beside its target, synced, and then exchanged with the target. The exchange shows
what was really replaced, so an edit made at the last moment is put back instead of lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from truekeep.core.digest import sha256
from truekeep.core.errors import BadSetup

TEMPORARY = ".truekeep-tmp"
NOT_REGULAR = "is not a regular file"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOREPLACE, _EXCHANGE = 1, 2
_MAX_NAME_BYTES = 255  # bytes of a name


class UnsafePath(BadSetup):
    """Not a file that truekeep reads or writes: a symlink, a folder, a device, or too large."""

    code = "unsafe-path"

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} {what}", hint="put a regular file there; truekeep does not follow symlinks")
        self.path = path
        self.what = what


class BeingWritten(Exception):
    """Another process has the file open for writing, so its content may be incomplete."""


class StrandedEdit(OSError):
    """A person's edit is in the temporary file, and exchanging it back failed. The temporary file must be kept."""


class ChangedSince(Exception):
    """The file changed since it was read. It was left as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class FileStamp(NamedTuple):
    """Identifies a file's state; differs after every write or replacement."""

    inode: int
    size: int
    mtime_ns: int
    mode: int


def stamp_of(info: os.stat_result) -> FileStamp:
    return FileStamp(info.st_ino, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))


def open_root(path: str) -> int:
    """Open a folder named by the user. Its path may contain symlinks; paths below it may not."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_folder(parent: int, name: str, *, shown: str = "") -> int:
    """Open a folder inside another. Raises UnsafePath for a symlink or a file."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            what = "is a symlink" if is_symlink(parent, name) else "is not a folder"
            raise UnsafePath(shown or name, what) from error
        raise


def is_symlink(parent: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read_file(
    folder: int, name: str, *, limit: int, shown: str = "", inspect: Callable[[int, os.stat_result], None] | None = None
) -> tuple[bytes, FileStamp]:
    """A regular file's bytes and the stamp of exactly these bytes.

    `inspect` gets the open descriptor before anything is read, and may raise.
    """
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafePath(shown or name, "is a symlink") from error
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise UnsafePath(shown or name, NOT_REGULAR) from error
        raise
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise UnsafePath(shown or name, NOT_REGULAR)
        if inspect is not None:
            inspect(descriptor, before)
        if before.st_size > limit:
            raise UnsafePath(shown or name, f"has {before.st_size} bytes, more than the limit of {limit}")
        data = os.read(descriptor, before.st_size + 1)
        while 0 < len(data) <= before.st_size and (more := os.read(descriptor, before.st_size + 1 - len(data))):
            data += more
        after = os.fstat(descriptor)
        if len(data) != before.st_size or after.st_mtime_ns != before.st_mtime_ns or after.st_size != before.st_size:
            raise ChangedSince(shown or name)
        return data, stamp_of(before)
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> int:
    """Open a regular file for reading. Raises OSError for a FIFO, device or socket, without blocking."""
    try:
        descriptor = os.open(path, _READ & ~os.O_NOFOLLOW if follow else _READ)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise OSError(errno.EINVAL, NOT_REGULAR, os.fspath(path)) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(code, os.strerror(code) if code == errno.EISDIR else NOT_REGULAR, os.fspath(path))


def read_regular(path: str | os.PathLike[str], *, follow: bool = True) -> bytes:
    """All bytes of a regular file. Raises OSError for anything else."""
    with open(open_regular(path, follow=follow), "rb") as file:
        return file.read()


def read_head(path: str | os.PathLike[str], size: int, *, follow: bool = False) -> bytes:
    """The first bytes of a regular file; empty if it cannot be read or is not a regular file."""
    try:
        descriptor = open_regular(path, follow=follow)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, size)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def refuse_writers(descriptor: int) -> None:
    """Raise BeingWritten if a process has the file open for writing. Uses Linux leases; does nothing elsewhere.

    The kernel grants a lease only if the file is not open for writing. A process that opens it while we hold the lease
    makes the kernel send SIGIO, which the caller must ignore.
    """
    set_lease = getattr(fcntl, "F_SETLEASE", None)
    if set_lease is None:
        return
    try:
        fcntl.fcntl(descriptor, set_lease, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise BeingWritten from error
        return  # not our file, or a file system without leases: only the quiet period protects then
    fcntl.fcntl(descriptor, set_lease, fcntl.F_UNLCK)


@contextmanager
def lease_unwritten(folder: int, name: str, *, shown: str = "") -> Iterator[Callable[[], bool]]:
    """Hold a lease on a file that no process has open for writing. Yields a check that the lease is still held.

    Without it, a process that is saving the file would write the rest into an unlinked file. A process that opens the
    file for writing waits until the lease ends, and the kernel signals us: with SIGURG, because the default signal
    kills. Uses Linux leases; elsewhere the check is always true.
    """
    set_lease, get_lease = getattr(fcntl, "F_SETLEASE", None), getattr(fcntl, "F_GETLEASE", None)
    set_signal, harmless = getattr(fcntl, "F_SETSIG", None), getattr(signal, "SIGURG", None)
    if set_lease is None or get_lease is None or set_signal is None or harmless is None:
        yield lambda: True
        return
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        raise ChangedSince(shown or name) from error
    try:
        is_held = True
        try:
            fcntl.fcntl(descriptor, set_signal, harmless)
            fcntl.fcntl(descriptor, set_lease, fcntl.F_RDLCK)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                raise ChangedSince(shown or name) from error
            is_held = False  # not our file, or a file system without leases
        yield lambda: not is_held or fcntl.fcntl(descriptor, get_lease) == fcntl.F_RDLCK
    finally:
        os.close(descriptor)


def write_beside(
    folder: int, name: str, data: bytes, *, mode: int | None = None, by: str = "", sync: bool = True
) -> FileStamp:
    """Write and sync a temporary file beside its target.

    With the workspace lock held, the temporary name depends only on the target, so that a file left by a killed run is
    found again. A writer without the lock passes a suffix of its own in `by`.
    """
    temporary = temporary_name(name, by)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    except FileExistsError:
        os.unlink(temporary, dir_fd=folder)  # left by a run that was killed
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        written = os.write(descriptor, data)
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
        if mode is not None:
            os.fchmod(descriptor, mode)
        if sync:
            os.fsync(descriptor)
        return stamp_of(os.fstat(descriptor))
    except BaseException:
        discard(folder, name, by)
        raise
    finally:
        os.close(descriptor)


def make_private(folder: str | os.PathLike[str]) -> None:
    """Create a folder and its missing parents, readable by the owner only."""
    path = os.path.abspath(folder)
    missing = []
    while not os.path.isdir(path) and path != os.path.dirname(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            _sync_folder(os.path.dirname(path))  # or a power loss takes the new folder and all that is in it
    if missing and not os.path.isdir(folder):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(folder))


def write_whole(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o600) -> None:
    """Replace or create a small file atomically. Creates its folder."""
    above, name = os.path.split(path)
    make_private(above)
    folder = open_root(above)
    by = f".{os.getpid()}"
    try:
        write_beside(folder, name, data, mode=mode, by=by)
        os.replace(temporary_name(name, by), name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        discard(folder, name, by)
        os.close(folder)


def write_once(path: str | os.PathLike[str], data: bytes) -> None:
    """Create a small file for its owner only, unless it exists by now: whoever reads it finds all of it."""
    above, name = os.path.split(path)
    make_private(above)
    folder = open_root(above)
    by = f".{os.urandom(6).hex()}"
    try:
        write_beside(folder, name, data, mode=0o600, by=by)
        put_new(folder, name, by=by)
        os.fsync(folder)
    except ChangedSince:
        return
    finally:
        discard(folder, name, by)
        os.close(folder)


def _sync_folder(path: str) -> None:
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # one may make folders there, but not read it
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def can_sync_together() -> bool:
    """True if syncfs is available and reports errors (Linux 5.8 or newer)."""
    version = os.uname().release.split(".")
    try:
        is_recent = (int(version[0]), int(version[1])) >= (5, 8)
    except (ValueError, IndexError):
        return False
    return os.uname().sysname == "Linux" and is_recent and _library_call("syncfs") is not None


def sync_together(folders: Iterable[int]) -> None:
    """Sync the file systems of these folders: far cheaper than file by file."""
    call = _library_call("syncfs")
    assert call is not None
    for folder in {os.fstat(folder).st_dev: folder for folder in folders}.values():
        if call(folder) != 0:
            code = _error_number()
            raise OSError(code, os.strerror(code), "syncfs")


def temporary_name(name: str, by: str = "") -> str:
    """The name of the temporary file beside a file; a digest if the plain name would be too long."""
    temporary = f".{name}{by}{TEMPORARY}"
    if len(os.fsencode(temporary)) <= _MAX_NAME_BYTES:
        return temporary
    return f".{sha256(os.fsencode(name)).hexdigest()[:32]}{by}{TEMPORARY}"


def put_new(folder: int, name: str, *, shown: str = "", by: str = "") -> None:
    """Rename the temporary file to its target, which must not exist."""
    temporary = temporary_name(name, by)
    if _renameat2(folder, temporary, name, _NOREPLACE, shown or name):
        return
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise ChangedSince(shown or name) from error
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS):
            raise
        # A file system without hard links. The lock excludes other truekeeps; a race with a person lasts microseconds.
        if _exists(folder, name):
            raise ChangedSince(shown or name) from error
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.unlink(temporary, dir_fd=folder)


def put_over(folder: int, name: str, expected: FileStamp, *, shown: str = "") -> None:
    """Replace exactly the file that was read with the temporary file, unless a process is writing it."""
    temporary = temporary_name(name)
    if _stamp(folder, name) != expected:
        raise ChangedSince(shown or name)
    with lease_unwritten(folder, name, shown=shown) as is_unwritten:
        try:
            exchanged = _renameat2(folder, temporary, name, _EXCHANGE, shown or name)
        except FileNotFoundError as error:
            raise ChangedSince(shown or name) from error
        if not exchanged:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        if _stamp(folder, temporary) != expected or not is_unwritten():
            try:
                _renameat2(folder, temporary, name, _EXCHANGE, shown or name)
            except OSError as error:
                raise StrandedEdit(error.errno, error.strerror, shown or name) from error
            raise ChangedSince(shown or name)
        os.unlink(temporary, dir_fd=folder)


def remove(folder: int, name: str, expected: FileStamp, *, shown: str = "") -> None:
    """Remove exactly the file that was read, unless a process is writing it."""
    if _stamp(folder, name) != expected:
        raise ChangedSince(shown or name)
    with lease_unwritten(folder, name, shown=shown):
        os.unlink(name, dir_fd=folder)


def discard(folder: int, name: str, by: str = "") -> None:
    """Remove a file's temporary file, if there is one."""
    with suppress(OSError):
        os.unlink(temporary_name(name, by), dir_fd=folder)


def put_back(folder: int, name: str) -> None:
    """Undo an exchange that was interrupted halfway: restore the replaced file."""
    temporary = temporary_name(name)
    if not _renameat2(folder, temporary, name, _EXCHANGE, name):
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _stamp(folder: int, name: str) -> FileStamp | None:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stamp_of(info) if stat.S_ISREG(info.st_mode) else None


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


_calls: dict[str, Callable[..., int] | None] = {}


def _renameat2(folder: int, old: str, new: str, flags: int, shown: str) -> bool:
    """Rename with flags. False if the system does not support it; then nothing was done."""
    call = _library_call("renameat2")
    if call is None:
        return False
    if call(folder, os.fsencode(old), folder, os.fsencode(new), flags) == 0:
        return True
    code = _error_number()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    if code == errno.EEXIST:
        raise ChangedSince(shown)
    raise OSError(code, os.strerror(code), shown)


def _library_call(name: str) -> Callable[..., int] | None:
    """A C library function that Python does not wrap; None if the library lacks it."""
    if name not in _calls:
        import ctypes  # slow to load, and needed only to write

        library: Any = ctypes.CDLL(None, use_errno=True)
        call = getattr(library, name, None)
        if call is not None:
            text, number = ctypes.c_char_p, ctypes.c_int
            call.argtypes = {"renameat2": (number, text, number, text, ctypes.c_uint), "syncfs": (number,)}[name]
            call.restype = number
        _calls[name] = call
    return _calls[name]


def _error_number() -> int:
    """The error of the last call of a C library function."""
    import ctypes

    return ctypes.get_errno()


@contextmanager
def locked(folder: str) -> Iterator[bool]:
    """Take the kernel's lock on a folder. Yields False at once if another process has it.

    The kernel frees the lock when its holder dies. A folder rather than a file: a folder that is not empty cannot be
    deleted and recreated unnoticed.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)
