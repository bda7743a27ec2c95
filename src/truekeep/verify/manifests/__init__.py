"""What a repository's manifests say: packages and their versions, scripts and targets, runtimes, ports. Pure.

Manifests, lock files, task files and container files of many ecosystems become one small value, `Manifest`, where every
entry knows its line. Nothing is run, included, downloaded or expanded, and no general parser of XML, YAML or TOML meets
a hostile file: what is read here is the part of those formats that manifests use. `read_manifest` never raises. A file
that cannot be read gives an empty `Manifest` that says why in `problem`; an entry that is not understood is left out.
"""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.limits import LARGEST, LARGEST_LOCK, MOST_LINES, MOST_LOCK_LINES
from truekeep.verify.manifests.manifest import Manifest, Package, Script
from truekeep.verify.manifests.names import normal_name, same_package
from truekeep.verify.manifests.registry import find_reader, load_reader
from truekeep.verify.manifests.text import UnreadableManifest
from truekeep.verify.manifests.versions import runtime_package, satisfies

__all__ = [
    "LARGEST",
    "LARGEST_LOCK",
    "Manifest",
    "Package",
    "Script",
    "is_manifest",
    "normal_name",
    "read_manifest",
    "runtime_package",
    "same_package",
    "satisfies",
]

_LOCK_NAMES = frozenset(("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "Package.resolved"))
_INIT = ("python", "python:read_python_version")


def is_manifest(path: str) -> bool:
    """Whether the file's name is one that `read_manifest` knows. Quick: it is asked for every path of a repository."""
    return find_reader(path) is not None


def read_manifest(path: str, data: bytes) -> Manifest:
    """What one file says. Never raises: see `problem`."""
    known = find_reader(path) or (_INIT if path.endswith("__init__.py") else None)
    if known is None:
        return Manifest("", problem="this is no manifest that is known here")
    ecosystem, reader = known
    name = path[path.rfind("/") + 1 :]
    is_lock = name.endswith((".lock", ".locked")) or name in _LOCK_NAMES
    limit = LARGEST_LOCK if is_lock else LARGEST
    if len(data) > limit:
        return Manifest(ecosystem, problem=f"larger than {limit >> 20} MB")
    draft = ManifestBuilder(ecosystem)
    try:
        load_reader(reader)(draft, _text_of(data, MOST_LOCK_LINES if is_lock else MOST_LINES))
    except UnreadableManifest as error:
        return Manifest(ecosystem, problem=" ".join(str(error).split())[:200])
    except RecursionError:
        return Manifest(ecosystem, problem="nested too deeply")
    except Exception as error:  # noqa: BLE001 - a stranger's file must not end a run; tests look for this text
        return Manifest(ecosystem, problem=f"a bug in its reader: {type(error).__name__}")
    return draft.done()


def _text_of(data: bytes, most_lines: int) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text:
        raise UnreadableManifest("it is not a text")
    if text.count("\n") > most_lines:
        raise UnreadableManifest(f"more than {most_lines} lines")
    return text
