"""The archive as a ZIP file: untrusted when read, reproducible when written.

Reading: names, sizes, compression methods and positions are checked before anything is unpacked, and all problems are
reported together. Contents are read in pieces, never more than an entry declares, and their checksums are verified.
Writing: no clock and no property of the machine is recorded, so that equal contents give equal bytes.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, NamedTuple, cast

from truekeep.core.errors import BadInput

PIECE_BYTES = 1 << 16
MAX_NAME_BYTES = 1_024
MAX_LINE_BYTES = 64 << 20
MAX_ENTRIES = 1_000_000
MAX_DOCUMENT_BYTES = 64 << 20
MAX_COMPRESSION_RATIO = 200
COMPRESSION_ALLOWANCE = 256 << 20  # bytes that any archive may unpack to, beyond that ratio
_ORDINARY_NAME = re.compile(r"(?:\.?[\w-][\w.-]{0,99}/){0,8}\.?[\w-][\w.-]{0,99}", re.ASCII)
"""Names that are certainly safe, as most are: they skip the detailed checks."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
    OverflowError,
)  # fmt: skip
"""Everything that zipfile raises for a damaged archive."""


class ArchiveProblem(NamedTuple):
    """Something wrong in an archive."""

    level: str  # unreadable, error, warning
    entry: str  # empty for the whole archive
    line: int  # 0 for the whole entry
    message: str

    @property
    def place(self) -> str:
        entry = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in self.entry)
        return f"{entry}:{self.line}" if self.line else entry


class BadArchive(BadInput):
    """An archive that cannot be used."""

    def __init__(self, message: str, *, hint: str = "", entry: str = "", line: int = 0, of: str = "") -> None:
        """`of`: the name of the archive."""
        super().__init__(
            f"{of}: {message}" if of else message, hint=hint or "`truekeep alf validate` lists every problem"
        )
        self.problem = ArchiveProblem("unreadable", entry, line, message)


def is_ordinary(name: str) -> bool:
    """True for a name that is certainly safe, also two folders further down."""
    return _ORDINARY_NAME.fullmatch(name) is not None


def unsafe_name(name: str) -> str:
    """The reason why an entry's name is unsafe; empty if it is safe."""
    if _ORDINARY_NAME.fullmatch(name):
        return ""
    parts = name.removesuffix("/").split("/")
    if not name or name.startswith("/"):
        return "is absolute" if name else "is empty"
    if "\\" in name:
        return "contains a backslash"
    if len(parts[0]) > 1 and parts[0][1] == ":":
        return "names a drive"
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder"
    if any(char < " " or char == "\x7f" for char in name):
        return "contains a control character"
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES or any(
        len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts
    ):
        return "is too long"
    return ""


class ZipReader:
    """A ZIP file opened for reading. `large`: accept any unpacked size. `name`: for error messages."""

    def __init__(self, file: BinaryIO, *, large: bool = False, name: str = "") -> None:
        self.name = name
        self.problems: list[ArchiveProblem] = []
        try:
            self._zip = _open(file)
        except _DAMAGE as error:
            raise _open_failure(file, error, name) from error
        self.entries: dict[str, zipfile.ZipInfo] = {}
        file.seek(0, 2)
        self.size = file.tell()
        self._find_entries(large)

    def close(self) -> None:
        self._zip.close()

    def __enter__(self) -> ZipReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find_entries(self, large: bool) -> None:
        """Fill `entries` with the usable entries, and `problems` with the others."""
        found = self._zip.infolist()
        if len(found) > MAX_ENTRIES:
            raise BadArchive(f"it has {len(found):,} entries; the maximum is {MAX_ENTRIES:,}", of=self.name)
        duplicates: set[str] = set()
        for info in found:
            if info.filename.endswith("/") and "\0" not in info.orig_filename:
                if why := unsafe_name(info.filename):
                    self._add_problem(info, f"the name {why}")
                continue
            why = _entry_fault(info)
            if not why and info.filename in self.entries:
                duplicates.add(info.filename)
                why = "is in the archive twice"
            if why:
                self._add_problem(info, why)
            else:
                self.entries[info.filename] = info
        for name in duplicates:
            del self.entries[name]  # nothing says which of them is the right one
        end = 0
        for info in sorted(self.entries.values(), key=lambda item: item.header_offset):
            if info.header_offset < end:
                self._add_problem(info, "overlaps another entry")
                del self.entries[info.filename]
            end = max(end, info.header_offset + 30 + info.compress_size)
        total = sum(info.file_size for info in self.entries.values())
        if not large and total > MAX_COMPRESSION_RATIO * self.size + COMPRESSION_ALLOWANCE:
            raise BadArchive(
                f"it would unpack to {total:,} bytes, {total // max(1, self.size)} times its size",
                hint="if you made it yourself, add --large",
                of=self.name,
            )

    def _add_problem(self, info: zipfile.ZipInfo, what: str) -> None:
        self.problems.append(ArchiveProblem("unreadable", info.filename.replace("\0", "\\0"), 0, what))

    def pieces(self, name: str) -> Iterator[bytes]:
        """An entry's bytes. Raises BadArchive if they do not match its declared size and checksum."""
        info = self.entries.get(name)
        if info is None:
            raise BadArchive(f"{name} is not in the archive", entry=name, of=self.name)
        left = info.file_size
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(PIECE_BYTES):
                    left -= len(piece)
                    yield piece
        except _DAMAGE as error:
            raise BadArchive(f"{name} is damaged: {error}", entry=name, of=self.name) from error
        if left:
            raise BadArchive(f"{name} has {left:,} bytes less than declared", entry=name, of=self.name)

    def read(self, name: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        info = self.entries.get(name)
        if info is not None and info.file_size > limit:
            what = f"{name} has {info.file_size:,} bytes; the maximum is {limit:,}"
            raise BadArchive(what, entry=name, of=self.name)
        return b"".join(self.pieces(name))

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """An entry's lines without their line ends, with their numbers; blank lines are skipped."""
        number = pending_bytes = 0
        pending: list[bytes] = []  # the parts of a line whose end has not been read
        for piece in self.pieces(name):
            first, *whole = piece.split(b"\n")
            pending.append(first)
            pending_bytes += len(first)
            if pending_bytes > MAX_LINE_BYTES:
                what = f"{name} has a line {number + 1} of more than {MAX_LINE_BYTES:,} bytes"
                raise BadArchive(what, entry=name, line=number + 1, of=self.name)
            if not whole:
                continue
            for line in (b"".join(pending), *whole[:-1]):
                number += 1
                if line.strip():
                    yield number, line.removesuffix(b"\r")
            pending = [whole[-1]]
            pending_bytes = len(whole[-1])
        last = b"".join(pending)
        if last.strip():
            yield number + 1, last


def _open(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(file)


def _open_failure(file: BinaryIO, error: Exception, name: str) -> BadArchive:
    """Why a file cannot be opened as an archive. A ZIP file lists its entries at its end."""
    file.seek(0)
    head = file.read(4)
    if not head:
        return BadArchive("it is empty", hint="copy it again from where it was made", of=name)
    if head == b"PK\x03\x04":
        what = "its end is missing: the copy was cut short"
        return BadArchive(what, hint="copy it again from where it was made", of=name)
    return BadArchive(f"this is not a readable ZIP archive: {error}", hint="is it an .alf file?", of=name)


def _entry_fault(info: zipfile.ZipInfo) -> str:
    if why := unsafe_name(info.filename):
        return f"the name {why}"
    if "\0" in info.orig_filename:
        return "the name contains a NUL byte"
    if info.flag_bits & 0x1 or info.flag_bits & 0x40:
        return "is encrypted"
    if info.compress_type not in _METHODS:
        return f"is compressed with method {info.compress_type}, which the format does not allow"
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is a symbolic link" if stat.S_ISLNK(mode) else "is not a regular file"
    return ""


class ZipWriter:
    """A ZIP file that is written entry by entry to a file or a pipe."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(cast(IO[bytes], _ForwardOnly(file)), "w", zipfile.ZIP_DEFLATED)

    def __enter__(self) -> ZipWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._zip.fp = None  # abandoned: the garbage collector must not write the list of entries

    def close(self) -> None:
        """Write the list of entries, which completes the archive."""
        self._zip.close()

    def add(self, name: str, data: bytes) -> None:
        self._zip.writestr(_info(name, len(data)), data)

    def add_pieces(self, name: str, pieces: Iterable[bytes], *, size: int = 0, level: int | None = None) -> None:
        """Add an entry from its pieces. `level`: the compression level."""
        with self.entry(name, size=size, level=level) as stream:
            for piece in pieces:
                stream.write(piece)

    @contextmanager
    def entry(self, name: str, *, size: int = 0, level: int | None = None) -> Iterator[IO[bytes]]:
        """A stream for the bytes of an entry; `size`: about how many bytes."""
        info = _info(name, size)
        if level is not None:
            info._compresslevel = level  # type: ignore[attr-defined]
        with self._zip.open(info, "w", force_zip64=size > 1 << 30) as stream:
            yield stream


class _ForwardOnly:
    """A file without seek(), so that files and pipes get the same bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write
        self.flush = file.flush


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    info.file_size = size
    return info
