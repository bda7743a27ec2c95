"""The archive as a ZIP file: its entries, read with mistrust and written the same way each time.

Reading: names, sizes, methods and places are checked before anything is unpacked; what is wrong is noted, with its
entry, all of it at once. Contents come in pieces, never more than an entry says, and their checksums are held to.
Writing: no clock and no machine gets in, so that equal contents are equal bytes.
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

PIECE = 1 << 16
LONGEST_NAME = 1_024  # bytes
LONGEST_LINE = 64 << 20
MOST_ENTRIES = 1_000_000
MOST_JSON = 64 << 20  # bytes of a document that is read whole
SWELL, SLACK = 200, 256 << 20  # an archive may unpack to so many times its size, and this on top
_USUAL_NAME = re.compile(r"(?:\.?[\w-][\w.-]{0,99}/){0,8}\.?[\w-][\w.-]{0,99}", re.ASCII)
"""Names that nothing can be wrong with, as most are: they need no closer look."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
    OverflowError,
)  # fmt: skip
"""What zipfile raises for an archive whose bytes are wrong, wherever they are."""


class ArchiveProblem(NamedTuple):
    """Something wrong in an archive: where, and what."""

    level: str  # unreadable, error, warning
    entry: str  # empty: the archive as a whole
    line: int  # 0: the whole entry
    message: str

    @property
    def place(self) -> str:
        entry = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in self.entry)
        return f"{entry}:{self.line}" if self.line else entry


class BadArchive(BadInput):
    """An archive that cannot be used."""

    def __init__(self, message: str, *, hint: str = "", entry: str = "", line: int = 0, of: str = "") -> None:
        """`of`: which archive, where there are several."""
        told = f"{of}: {message}" if of else message
        super().__init__(told, hint=hint or "`truekeep alf validate` shows everything that is wrong with it")
        self.problem = ArchiveProblem("unreadable", entry, line, message)


def is_usual(name: str) -> bool:
    """Whether a name is of the kind that nothing can be wrong with, also two folders further down."""
    return _USUAL_NAME.fullmatch(name) is not None


def unsafe_name(name: str) -> str:
    """Why an entry's name is not one that a file inside a folder could have; empty when it is."""
    if _USUAL_NAME.fullmatch(name):
        return ""
    parts = name.removesuffix("/").split("/")
    if not name or name.startswith("/"):
        return "is absolute" if name else "is empty"
    if "\\" in name:
        return "holds a backslash"
    if len(parts[0]) > 1 and parts[0][1] == ":":
        return "names a drive"
    if any(part in ("", ".", "..") for part in parts):
        return "leads elsewhere"
    if any(char < " " or char == "\x7f" for char in name):
        return "holds a control character"
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME or any(
        len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts
    ):
        return "is too long"
    return ""


class Reader:
    """An archive that is read. `large`: its sizes are believed, because whoever asks made it. `name`: for errors."""

    def __init__(self, file: BinaryIO, *, large: bool = False, name: str = "") -> None:
        self.name = name
        self.problems: list[ArchiveProblem] = []
        try:
            self._zip = _opened(file)
        except _DAMAGE as error:
            raise _unopened(file, error, name) from error
        self.entries: dict[str, zipfile.ZipInfo] = {}
        file.seek(0, 2)
        self.size = file.tell()
        self._look(large)

    def close(self) -> None:
        self._zip.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, large: bool) -> None:
        """Note every entry that can be used, and what is wrong with the others."""
        found = self._zip.infolist()
        if len(found) > MOST_ENTRIES:
            raise BadArchive(f"it has {len(found)} entries; at most {MOST_ENTRIES} are read", of=self.name)
        twice: set[str] = set()
        for info in found:
            if info.filename.endswith("/") and "\0" not in info.orig_filename:
                if why := unsafe_name(info.filename):
                    self._note(info, f"the name {why}")
                continue
            why = _fault(info)
            if not why and info.filename in self.entries:
                twice.add(info.filename)
                why = "stands in the archive twice"
            if why:
                self._note(info, why)
            else:
                self.entries[info.filename] = info
        for name in twice:
            del self.entries[name]  # which one is meant, nobody can tell
        end = 0
        for info in sorted(self.entries.values(), key=lambda item: item.header_offset):
            if info.header_offset < end:
                self._note(info, "overlaps another entry")
                del self.entries[info.filename]
            end = max(end, info.header_offset + 30 + info.compress_size)
        total = sum(info.file_size for info in self.entries.values())
        if not large and total > SWELL * self.size + SLACK:
            raise BadArchive(
                f"it would unpack to {total:,} bytes, {total // max(1, self.size)} times its size",
                hint="if you made it yourself and trust it, say --large",
                of=self.name,
            )

    def _note(self, info: zipfile.ZipInfo, what: str) -> None:
        self.problems.append(ArchiveProblem("unreadable", info.filename.replace("\0", "\\0"), 0, what))

    def pieces(self, name: str) -> Iterator[bytes]:
        """An entry's bytes. Less or more than it says, or other ones, are a BadArchive that names it."""
        info = self.entries.get(name)
        if info is None:
            raise BadArchive(f"{name} is not in the archive", entry=name, of=self.name)
        left = info.file_size
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(PIECE):
                    left -= len(piece)
                    yield piece
        except _DAMAGE as error:
            raise BadArchive(f"{name} is damaged: {error}", entry=name, of=self.name) from error
        if left:
            raise BadArchive(f"{name} has {left:,} bytes less than it says", entry=name, of=self.name)

    def read(self, name: str, most: int = MOST_JSON) -> bytes:
        info = self.entries.get(name)
        if info is not None and info.file_size > most:
            what = f"{name} has {info.file_size:,} bytes; at most {most:,} are read"
            raise BadArchive(what, entry=name, of=self.name)
        return b"".join(self.pieces(name))

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """An entry's lines with their numbers, without their ends; blank ones left out."""
        number = held = 0
        rest: list[bytes] = []  # of a line that has not ended yet
        for piece in self.pieces(name):
            first, *whole = piece.split(b"\n")
            rest.append(first)
            held += len(first)
            if held > LONGEST_LINE:
                what = f"{name} has a line {number + 1} of more than {LONGEST_LINE:,} bytes"
                raise BadArchive(what, entry=name, line=number + 1, of=self.name)
            if not whole:
                continue
            for line in (b"".join(rest), *whole[:-1]):
                number += 1
                if line.strip():
                    yield number, line.removesuffix(b"\r")
            rest = [whole[-1]]
            held = len(whole[-1])
        last = b"".join(rest)
        if last.strip():
            yield number + 1, last


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(file)


def _unopened(file: BinaryIO, error: Exception, name: str) -> BadArchive:
    """Why a file cannot be opened as an archive. Its list of entries stands at its end."""
    file.seek(0)
    head = file.read(4)
    if not head:
        return BadArchive("it is empty", hint="copy it again from where it was made", of=name)
    if head == b"PK\x03\x04":
        what = "its end is missing: the copy was cut short"
        return BadArchive(what, hint="copy it again; what is in it is listed at its end", of=name)
    return BadArchive(f"this is no ZIP archive that can be read: {error}", hint="is it an .alf file?", of=name)


def _fault(info: zipfile.ZipInfo) -> str:
    if why := unsafe_name(info.filename):
        return f"the name {why}"
    if "\0" in info.orig_filename:
        return "the name holds a NUL byte"
    if info.flag_bits & 0x1 or info.flag_bits & 0x40:
        return "is encrypted"
    if info.compress_type not in _METHODS:
        return f"is packed by method {info.compress_type}, which the format does not have"
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is a symbolic link" if stat.S_ISLNK(mode) else "is no plain file"
    return ""


class Writer:
    """An archive that is written, entry by entry, to a file or a pipe."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(cast(IO[bytes], _Onward(file)), "w", zipfile.ZIP_DEFLATED)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._zip.fp = None  # abandoned: it must not try to write its end when it is forgotten

    def close(self) -> None:
        """Write the list of entries. Without it, what was written is no archive."""
        self._zip.close()

    def add(self, name: str, data: bytes) -> None:
        self._zip.writestr(_info(name, len(data)), data)

    def add_pieces(self, name: str, pieces: Iterable[bytes], *, size: int = 0, level: int | None = None) -> None:
        """An entry from its pieces. `level`: how hard to pack it, for what is there twice anyway."""
        with self.entry(name, size=size, level=level) as stream:
            for piece in pieces:
                stream.write(piece)

    @contextmanager
    def entry(self, name: str, *, size: int = 0, level: int | None = None) -> Iterator[IO[bytes]]:
        """A stream for the bytes of an entry; `size`: about how many there will be."""
        info = _info(name, size)
        if level is not None:
            info._compresslevel = level  # type: ignore[attr-defined]
        with self._zip.open(info, "w", force_zip64=size > 1 << 30) as stream:
            yield stream


class _Onward:
    """A file that is only written on, never back: so a pipe gets the same bytes."""

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
