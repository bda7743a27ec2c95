"""The values that a manifest is read into, the names of packages, and the limits on how much of a file is read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MAX_FILE_BYTES = 2 << 20  # of a file that people write
MAX_LOCK_BYTES = 20 << 20  # of a file that a program writes
MAX_LINES = 100_000
MAX_LOCK_LINES = 1_000_000
MAX_LINE_LENGTH = 2_000  # characters that a line-by-line reader looks at
MAX_NAME_LENGTH = 300
MAX_ENTRIES = 100_000
MAX_DEPTH = 40
MAX_JSON_BRACKETS = 500_000  # json.loads makes an object for each before this code sees any
MAX_JSON_COMMAS = 2_000_000
MAX_YAML_VALUES = 200_000

_PYTHON_SEPARATORS = re.compile(r"[-_.]+")
_GO_MAJOR_VERSION = re.compile(r"/v[0-9]+\Z|\.v[0-9]+\Z")
_PYTHON_EXTRAS = re.compile(r"\[[^\[\]]*\]\Z")


class UnreadableManifest(ValueError):
    """The file is not in the format that its name promises, or is over a limit."""


class Package(NamedTuple):
    """A package that a file requires or locks."""

    name: str  # normalized for its ecosystem
    spec: str  # as written; "" when the file gives none
    version: str  # the exact version when the file pins or locks one
    line: int
    is_locked: bool
    is_direct: bool  # False for a transitive package of a lock file, and where the lock file does not say


class Script(NamedTuple):
    """A command that can be run by name: a make target, an npm script, an entry point."""

    tool: str
    name: str
    line: int


class Manifest(NamedTuple):
    """The contents of one manifest, lock, task or container file."""

    ecosystem: str
    name: str = ""
    version: str = ""
    packages: tuple[Package, ...] = ()
    scripts: tuple[Script, ...] = ()
    runtimes: tuple[tuple[str, str, int], ...] = ()  # (name, as written, line)
    ports: tuple[tuple[int, int], ...] = ()  # (port, line)
    services: tuple[tuple[str, int], ...] = ()  # (name, line)
    problem: str = ""


def normalize_name(name: str, ecosystem: str) -> str:
    """Return a package name in the form in which two spellings of it are equal."""
    if ecosystem == "python":
        return _PYTHON_SEPARATORS.sub("-", name).lower()
    if ecosystem == "rust":
        return name.replace("_", "-").lower()
    if ecosystem == "docker":
        return name.removeprefix("docker.io/").removeprefix("library/")
    if ecosystem in ("php", "dotnet", "swift"):
        return name.lower()
    return name


def is_same_package(claimed: str, name: str, ecosystem: str) -> bool:
    """Whether a word in a memory refers to the package of this name.

    People leave out parts that every reader knows: the group of a Maven artifact, the host of a Go module, the
    registry of an image, the `.js` of a library, the `/core` of a scoped package.
    """
    spellings, suffixes = _spellings(claimed, ecosystem)
    own = name.casefold()
    if own in spellings or (suffixes and own.endswith(suffixes)):
        return True
    if ecosystem == "go":
        plain = _GO_MAJOR_VERSION.sub("", own)
        return plain in spellings or plain.endswith(suffixes)
    return ecosystem in ("python", "rust") and normalize_name(own, ecosystem) in spellings


@lru_cache(maxsize=4_096)
def _spellings(claimed: str, ecosystem: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names that a word may refer to, and the suffixes of longer names that it may refer to."""
    word = claimed.strip().strip("`'\"").casefold()
    if ecosystem == "python":
        word = _PYTHON_EXTRAS.sub("", word)
    word = normalize_name(word, ecosystem)
    if not word:
        return frozenset(), ()
    if ecosystem == "npm":
        bare = word.removesuffix("js").rstrip(".") if word.endswith("js") else word
        return frozenset(filter(None, (word, f"{word}.js", f"@{word}/core", bare))), ()
    if ecosystem == "java":
        return frozenset((word,)), () if ":" in word else (f":{word}",)
    if ecosystem == "go":
        word = _GO_MAJOR_VERSION.sub("", word)
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "php":
        return frozenset((word, f"{word}/framework")), (f"/{word}",)
    if ecosystem == "docker":
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "swift":
        return frozenset((word, word.rstrip("/").removesuffix(".git").rpartition("/")[2])), ()
    return frozenset((word,)), ()
