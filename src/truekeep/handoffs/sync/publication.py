"""The host's publication: one whole state of its memory, for machines that only read.

    head.json          small: whose state it is, its number, the digest of its manifest, signed with the host's key
    objects/<digest>   the manifest (every file with its digest, and the pack that it is in), and the packs

A pack is a ZIP file whose entries are file contents by their SHA-256. Everything but head.json is named by its own
digest, so a half-copied file is noticed, and a reader of an earlier head is not disturbed by a later one. This module
has the values and their text; it neither reads nor writes a folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from truekeep.core.errors import BadSetup, NewerState
from truekeep.core.formats import PUBLICATION
from truekeep.handoffs.sync.receipts import Signer, is_signed
from truekeep.text.unicode import printable

HEAD = "head.json"
OBJECTS = "objects"
MAX_HEAD_BYTES = 16_384
MAX_MANIFEST_BYTES = 64 << 20
MAX_PACK_BYTES = 64 << 20  # a pack is begun anew long before
MAX_FILES = 200_000
MAX_PATH_BYTES = 1_000
_DOMAIN = b"truekeep publication\x001\x00"
_TEXTS = ("truekeep", "host", "host_id", "as_of", "manifest", "key", "signature")  # of a head; the others are numbers
MAX_NAME_BYTES = 255  # of one part of a path, as file systems have it
MAX_FILE_BYTES = 64 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_USUAL_PATH = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_ +-]*/)*[A-Za-z0-9_-][A-Za-z0-9_ +-]*\.md\Z")
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")
_PLAIN_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
STATE_FILES = re.compile(
    r"\.truekeep/(?:host|hosts/[0-9a-f]{32}\.toml|decay\.toml|known-verdicts\.json|known-origins\.json|known-settings\.json)\Z"
)


class UnusablePublication(BadSetup):
    """What came is not a publication of the host: incomplete, damaged, or not signed by it."""


class PublishedFile(NamedTuple):
    """One file of a publication."""

    path: str
    digest: str
    size: int
    mtime_ns: int
    pack: int  # its number among the packs


class PublicationManifest(NamedTuple):
    """The files of one state, and the packs with their contents."""

    files: tuple[PublishedFile, ...]
    packs: tuple[tuple[str, int], ...]  # digest and size of each
    purged: int = 0  # changes when something that had been published became private: then every copy is made anew


class Head(NamedTuple):
    """Which state of which host is the latest."""

    format: int
    truekeep: str
    host: str
    host_id: str
    generation: int  # of the host's lease
    sequence: int
    as_of: str
    manifest: str
    size: int  # of the manifest
    files: int
    private: int  # 1 if something stayed there, and not how much
    purged: int  # the last number with which something that had been published became private; 0: never
    key: str
    signature: str = ""

    @property
    def order(self) -> tuple[int, int]:
        """What makes a head later than another: the host that took over last, then the number."""
        return self.generation, self.sequence

    @property
    def message(self) -> bytes:
        fields = {name: value for name, value in self._asdict().items() if name != "signature"}
        return _DOMAIN + json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    def signed(self, signer: Signer) -> Head:
        return self._replace(signature=signer.sign(self.message))

    def render(self) -> bytes:
        return json.dumps(self._asdict(), sort_keys=True).encode() + b"\n"


def parse_head(raw: bytes, *, key: str = "") -> Head:
    """A head whose signature holds: of the paired host's key, or without one of the key that it names itself."""
    try:
        given: Any = json.loads(raw)
        number = given["format"]
        if type(number) is int and number > PUBLICATION:
            raise NewerState(
                f"the host's memory was published by a newer truekeep (format {number}, this one knows {PUBLICATION})",
                hint="upgrade truekeep on this machine; until then the earlier copy answers",
            )
        head = Head(**{name: given[name] for name in Head._fields})
        if not all(type(value) is (str if name in _TEXTS else int) for name, value in head._asdict().items()):
            raise TypeError
        if number != PUBLICATION or not is_digest(head.manifest) or min(head.generation, head.sequence, head.size) < 1:
            raise ValueError
        if not _STAMP.match(head.as_of) or max(head.generation, head.sequence) >= 1 << 53:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnusablePublication(
            "the host's head.json cannot be read", hint="`truekeep sync run` on the host"
        ) from error
    if not is_signed(key or head.key, head.signature, head.message):
        raise UnusablePublication(
            "the memory that came is not signed by the paired host, and was not installed",
            hint="if the host moved or lost its key: `truekeep sync key` there, and here"
            " `truekeep connect machine --host-key KEY`; if not, someone else wrote it",
        )
    return head._replace(host=printable(head.host)[:80])


def is_digest(text: object) -> bool:
    return isinstance(text, str) and _DIGEST.match(text) is not None


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def render_manifest(manifest: PublicationManifest) -> bytes:
    files = [list(file) for file in manifest.files]
    given = {"format": PUBLICATION, "purged": manifest.purged, "packs": manifest.packs, "files": files}
    return zlib.compress(json.dumps(given, separators=(",", ":")).encode(), 6)


def parse_manifest(raw: bytes) -> PublicationManifest:
    """A manifest whose paths are all inside memory. Its digest was checked against a signed head."""
    try:
        opened = zlib.decompressobj()
        text = opened.decompress(raw, MAX_MANIFEST_BYTES)
        if opened.unconsumed_tail:
            raise ValueError
        given: Any = json.loads(text)
        packs = tuple((str(name), int(size)) for name, size in given["packs"])
        files = tuple(PublishedFile(*item) for item in given["files"])
        paths = {file.path for file in files}
        is_whole = (
            len(paths) == len(files) <= MAX_FILES
            and all(is_digest(name) and 0 < size <= MAX_PACK_BYTES for name, size in packs)
            and all(is_valid_file(file, len(packs)) for file in files)
            and not any(above in paths for path in paths for above in _folders(path))
        )
    except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise UnusablePublication(
            "the host's manifest cannot be read", hint="`truekeep sync run` on the host"
        ) from error
    if not is_whole:
        raise UnusablePublication("the host's manifest names files that are not memory", hint="update truekeep there")
    return PublicationManifest(files, packs)


def is_valid_file(file: PublishedFile, packs: int) -> bool:
    return (
        isinstance(file.path, str)
        and is_memory_path(file.path)
        and is_digest(file.digest)
        and all(type(value) is int for value in file[2:])
        and 0 <= file.size <= MAX_FILE_BYTES
        and 0 <= file.pack < packs
        and 0 <= file.mtime_ns < 1 << 62
    )


def is_memory_path(path: str) -> bool:
    """True for a Markdown file inside the workspace, and for the few state files that a publication has."""
    if len(path) <= MAX_NAME_BYTES and _USUAL_PATH.match(path):
        return True
    parts = path.split("/")
    is_plain = all(part not in ("", ".", "..") and part.isprintable() for part in parts) and "\\" not in path
    if not is_plain or len(path.encode("utf-8", "replace")) > MAX_PATH_BYTES:
        return False
    if any(len(part.encode("utf-8", "replace")) > MAX_NAME_BYTES for part in parts):
        return False
    if parts[0] == ".truekeep":
        return STATE_FILES.match(path) is not None
    return path.endswith(".md") and (parts[0] == ".learnings" or not any(part[0] == "." for part in parts))


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def render_pack(contents: Mapping[str, bytes]) -> bytes:
    """A pack of these contents, by their digests."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as pack:
        for digest in sorted(contents):
            pack.writestr(zipfile.ZipInfo(digest), contents[digest], zipfile.ZIP_DEFLATED)
    return out.getvalue()


class PackReader:
    """Reads contents from a pack; each is compared with the digest that it was asked by."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        try:
            self._pack = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # zipfile raises many kinds for damaged headers
            raise UnusablePublication("a pack of the host cannot be read", hint="`truekeep sync run` again") from error

    def read(self, digest: str, size: int) -> bytes:
        try:
            info = self._pack.getinfo(digest)
            data = self._read(info, size) if info.file_size == size and info.compress_type in _PLAIN_PACKING else b""
        except Exception as error:  # zipfile and its decompressors raise many kinds for damaged data
            raise UnusablePublication("a pack of the host lacks a file", hint="`truekeep sync run` again") from error
        if len(data) != size or digest_of(data) != digest:
            raise UnusablePublication("a file of the host came damaged", hint="`truekeep sync run` again")
        return data

    def _read(self, info: zipfile.ZipInfo, size: int) -> bytes:
        """One entry, without the objects that zipfile makes for each: a first copy has ten thousand."""
        name, extra = struct.unpack_from("<HH", self._data, info.header_offset + 26)
        start = info.header_offset + 30 + name + extra
        packed = self._data[start : start + info.compress_size]
        if info.compress_type == zipfile.ZIP_STORED:
            return bytes(packed[:size])
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size) if size else b""
