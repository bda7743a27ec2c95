"""Classifies files and extracts the names a file defines, the words of its code, and the words it only mentions.

Names are extracted here only where that is fast. Files in a language with a grammar are parsed when a claim asks for
one of their words (`checkout`).

Words are stored as CRC-32 keys of four bytes, so that a whole repository fits into memory. Keys can collide, so callers
check the file itself after a match.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import enum
import re
import zlib
from array import array
from collections.abc import Iterable
from functools import lru_cache

from truekeep.verify.languages import clean, has_grammar, language_of, names

_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*|[0-9]{2,5}(?![0-9])")
_FLAG = re.compile(rb"(?<![\w-])--[A-Za-z][\w-]*")
_KEBAB = re.compile(rb"[\"'`]([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)[\"'`=]")
DOCUMENTS = (".md", ".mdx", ".rst", ".txt", ".adoc", ".markdown", ".org", ".pod", ".tex", ".rdoc", ".textile", ".wiki")
_OPAQUE = tuple(
    ".po .pot .mo .svg .png .jpg .jpeg .gif .ico .webp .woff .woff2 .ttf .eot .pdf .zip .gz .bz2 .xz .zst .tar .whl "
    ".egg .jar .class .pyc .so .o .a .dll .exe .mp3 .mp4 .wav .ogg .webm .mov .avi .min.js .min.css .map .snap "
    ".sqlite .db .parquet .geojson .ipynb .csv .tsv".split()
)
_LOCK_FILES = frozenset(
    "package-lock.json yarn.lock pnpm-lock.yaml bun.lock Cargo.lock poetry.lock uv.lock Pipfile.lock "
    "Gemfile.lock composer.lock "
    "go.sum pubspec.lock Podfile.lock flake.lock mix.lock".split()
)
_TEST = re.compile(
    r"(?:^|/)(?:(?:fun|func|unit|integration|smoke)?tests?|testing|testdata|test_data|fixtures?|__tests__|__mocks__|spec|specs|e2e|cypress|mocks?"
    r"|docs?|docs_src|examples?|samples?|demos?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest)\.py$|_test\.(?:py|go|rs|rb|exs|dart|cc|cpp|c)$|[._-](?:test|spec|tests"
    r"|stories)\.[a-z]+$|Tests?\.(?:java|kt|cs|swift|php|scala)$"
)
_DOCUMENT = re.compile(
    r"(?:^|/)(?:docs?|documentation|website|man|changelogs?|changes|newsfragments|release[-_]?notes|\.changeset)/"
    r"|(?:^|/)(?:CHANGE|HISTORY|NEWS|RELEASE|AUTHORS|CONTRIBUT|README|LICENSE)",
    re.IGNORECASE,
)
_VENDORED = re.compile(
    r"(?:^|/)(?:node_modules|_?vendor|_?vendored|third_party|third-party|site-packages|bower_components|dist|\.yarn"
    r"|\.obsidian)/"
)


_FOR_CONTRIBUTORS = re.compile(
    r"(?:^|/)(?:AGENTS?|CLAUDE|GEMINI|CONTRIBUTING|DEVELOPMENT|DEVELOPING|HACKING|ARCHITECTURE)\.\w+$"
    r"|(?:^|/)\.(?:cursor|windsurf|clinerules|github)/",
    re.IGNORECASE,
)


def is_for_contributors(document: str) -> bool:
    """Whether a document is about the code that is here, for people and agents who change it."""
    return _FOR_CONTRIBUTORS.search(document) is not None


class FileKind(enum.Enum):
    """The kind of a file, which decides how much its words count."""

    CODE = "code"
    TEST = "test"
    DOCUMENT = "document"
    VENDORED = "vendored"
    OPAQUE = "opaque"  # not read


@lru_cache(maxsize=200_000)
def kind_of(path: str) -> FileKind:
    name = path.rpartition("/")[2]
    lowered = name.lower()
    if lowered.endswith(_OPAQUE) or name in _LOCK_FILES:
        return FileKind.OPAQUE
    language = language_for(path)
    if not language:
        return (
            FileKind.DOCUMENT
            if lowered.endswith(DOCUMENTS) or "." not in name or _DOCUMENT.search(path)
            else FileKind.OPAQUE
        )
    if _VENDORED.search(path):
        return FileKind.VENDORED
    if _TEST.search(path):
        return FileKind.TEST
    return FileKind.CODE


@lru_cache(maxsize=200_000)
def language_for(path: str) -> str:
    return language_of(path)


_KIND_ORDER = {FileKind.CODE: 0, FileKind.TEST: 1, FileKind.VENDORED: 2, FileKind.DOCUMENT: 3, FileKind.OPAQUE: 4}


def prefer(paths: Iterable[str]) -> list[str]:
    """Sort paths by how likely they are meant: code before tests, shallow before deep."""
    return sorted(set(paths), key=lambda path: (_KIND_ORDER[kind_of(path)], path.count("/"), len(path), path))


def key_of(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogateescape"))


def names_to_keys(names: Iterable[str]) -> bytes:
    return array("I", {key_of(name) for name in names}).tobytes()


def word_in(name: str) -> str:
    """Return the longest word of a name, by which files that contain the name are found: `valid?` has `valid`."""
    if name.startswith("--"):
        return name
    words = [word.decode("utf-8", "surrogateescape") for word in _WORD.findall(name.encode("utf-8", "surrogateescape"))]
    return max(words, key=len, default="")


def read_facts(data: bytes, language: str, kind: FileKind) -> tuple[bytes, bytes, bytes]:
    """Return the keys of the names a file defines, the words in its code, and the words it only mentions.

    No names are returned for a file that has to be parsed.
    """
    if b"\0" in data[:8192]:
        return b"", b"", b""
    if not language or kind is FileKind.DOCUMENT:
        return b"", b"", _keys(_mentions(data))
    code = clean(data, language)
    defined = set() if has_grammar(language) else set(names(code, language))
    words = set(_WORD.findall(code))
    if b"--" in code:
        words.update(_FLAG.findall(code))
    words.update(_KEBAB.findall(code))
    mentioned = _mentions(_comments_only(data, code)) - words if code != data else set()
    return _keys(defined), _keys(words), _keys(mentioned)


def _mentions(text: bytes) -> set[bytes]:
    found = set(_WORD.findall(text))
    if b"--" in text:
        found.update(_FLAG.findall(text))
    return found


def _comments_only(data: bytes, code: bytes) -> bytes:
    """Return the comments, with blanks where the code was. Uses integer XOR, because a loop over bytes is slow."""
    size = len(data)
    blanks = int.from_bytes(b" " * size, "little")
    return (int.from_bytes(data, "little") ^ int.from_bytes(code, "little") ^ blanks).to_bytes(size, "little")


def _keys(words: set[bytes]) -> bytes:
    return array("I", map(zlib.crc32, words)).tobytes() if words else b""
