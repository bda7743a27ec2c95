"""Reads the manifests of a repository: packages and their versions, scripts and targets, runtimes, ports, services.

Manifests, lock files, task files and container files of many ecosystems become one small value, `Manifest`, where every
entry has its line. Nothing is run, included or downloaded. `read_manifest` never raises: a file that cannot be read
gives an empty `Manifest` whose `problem` says why, and an entry that is not understood is left out.
"""

from __future__ import annotations

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.model import (
    MAX_FILE_BYTES,
    MAX_LINES,
    MAX_LOCK_BYTES,
    MAX_LOCK_LINES,
    Manifest,
    Package,
    Script,
    UnreadableManifest,
    is_same_package,
    normalize_name,
)
from truekeep.verify.manifests.registry import find_reader, load_reader
from truekeep.verify.manifests.versions import runtime_package, satisfies

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_LOCK_BYTES",
    "Manifest",
    "Package",
    "Script",
    "is_manifest",
    "is_same_package",
    "normalize_name",
    "read_manifest",
    "runtime_package",
    "satisfies",
]

_LOCK_NAMES = frozenset(("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "Package.resolved"))
_INIT_READER = ("python", "python:read_python_version")


def is_manifest(path: str) -> bool:
    """Whether `read_manifest` has a reader for a file of this name. Fast: called for every path of a repository."""
    return find_reader(path) is not None


def read_manifest(path: str, data: bytes) -> Manifest:
    """Read one file. Never raises: see `problem`."""
    known = find_reader(path) or (_INIT_READER if path.endswith("__init__.py") else None)
    if known is None:
        return Manifest("", problem="no reader knows a file of this name")
    ecosystem, reader = known
    name = path[path.rfind("/") + 1 :]
    is_lock = name.endswith((".lock", ".locked")) or name in _LOCK_NAMES
    limit = MAX_LOCK_BYTES if is_lock else MAX_FILE_BYTES
    if len(data) > limit:
        return Manifest(ecosystem, problem=f"larger than {limit >> 20} MB")
    builder = ManifestBuilder(ecosystem)
    try:
        load_reader(reader)(builder, _decode(data, MAX_LOCK_LINES if is_lock else MAX_LINES))
    except UnreadableManifest as error:
        return Manifest(ecosystem, problem=" ".join(str(error).split())[:200])
    except RecursionError:
        return Manifest(ecosystem, problem="nested too deeply")
    except Exception as error:  # noqa: BLE001 - a file of a repository must not end a run; tests look for this text
        return Manifest(ecosystem, problem=f"a bug in its reader: {type(error).__name__}")
    return builder.build()


def _decode(data: bytes, max_lines: int) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text:
        raise UnreadableManifest("it is not a text file")
    if text.count("\n") > max_lines:
        raise UnreadableManifest(f"more than {max_lines} lines")
    return text
