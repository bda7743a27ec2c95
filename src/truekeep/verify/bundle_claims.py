"""Checks claims about built files with a hash in their name, which changes with every build.

The same stem with another hash is the successor. Where the memory names a symbol with a line, its line in the successor
is found by the symbol, and so is a successor with another stem.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from stat import S_ISREG

from truekeep.verify.line_claims import check_line
from truekeep.verify.question import Question
from truekeep.verify.repository import World, whole_word
from truekeep.verify.verdict import CODE, Verdict, confirmed, gone, moved, unverifiable

_BUILD_FOLDERS = ("dist", "build", "out", "public", "assets", ".next", "target", "www", "static")
_HASHED_NAME = re.compile(r"(.+)([-.])([A-Za-z0-9_]{8,20})(\.\w+)\Z")
_MAX_BUNDLE_BYTES = 20_000_000
_MAX_BUNDLES_READ = 200
_MAX_NAMES = 20_000


def check_bundle(world: World, question: Question) -> Verdict | None:
    """Check a built file of a checkout, or one outside of it by its full path."""
    claim = question.claim
    name = claim.name.rpartition("/")[2]
    if claim.name.startswith(("/", "~")):
        return check_bundle_on_disk(question)
    if world.now.has(claim.name) and claim.first:
        as_line = question._replace(claim=claim._replace(kind="line", place=claim.name))
        verdict = check_line(world, as_line)
        return verdict and verdict._replace(claim=claim)
    if world.now.has(claim.name) or name in world.now.by_name:
        return confirmed(question, "exists", "there", (world.now.by_name.get(name) or [claim.name])[0])
    folder = claim.name.rpartition("/")[0]
    return _among(question, [*world.now.paths, *_files_of_build_folders(world, folder)], world.root)


def check_bundle_on_disk(question: Question) -> Verdict | None:
    """Check a built file by its full path on this machine: its successor is beside it. No file there is read."""
    folder = os.path.dirname(os.path.expanduser(question.claim.name))
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for _, entry in zip(range(_MAX_NAMES), entries, strict=False)]
    except OSError:
        return unverifiable(question, "outside", "not on this machine, and outside of the repository")
    verdict = _among(question._replace(claim=question.claim._replace(near="")), paths, "/")
    verdict = verdict and verdict._replace(claim=question.claim)
    is_of_home = question.claim.name.startswith("~/") and verdict is not None
    home = os.path.expanduser("~") + "/"
    return verdict._replace(place=verdict.place.replace(home, "~/", 1)) if is_of_home and verdict else verdict


def _among(question: Question, paths: Iterable[str], root: str) -> Verdict | None:
    """Find a built file, or its successor, among the files below a root."""
    claim = question.claim
    name = claim.name.rpartition("/")[2]
    match = _HASHED_NAME.match(name)
    if match is None:
        return None
    alike = re.compile(re.escape(match[1] + match[2]) + r"[A-Za-z0-9_]{8,20}" + re.escape(match[4]) + r"\Z")
    successors, others = [], []
    for path in paths:
        base = path.rpartition("/")[2]
        if base == name and path.endswith(claim.name.removeprefix("~")):
            return _exists(question, path, root)
        if alike.match(base):
            successors.append(path)
        elif base.endswith(match[4]) and _HASHED_NAME.match(base):
            others.append(path)
    successors = sorted(set(successors))
    symbol = claim.near.rpartition(".")[2]
    if symbol and len(successors) != 1:
        successors = [path for path, _ in _holding(symbol, successors or sorted(set(others)), root)] or successors
    if len(successors) == 1:
        place = successors[0]
        line = next((line for _, line in _holding(symbol, successors, root)), 0) if symbol else 0
        why = f"the bundle has another hash now{f', and {symbol} is at line {line}' if line else ''}"
        return moved(question, "rebuilt", f"{why}; name a symbol in it instead", f"{place}:{line}" if line else place)
    if successors:
        return gone(question, "rebuilt", "the bundle has another hash now", candidates=tuple(successors[:5]), rank=CODE)
    return unverifiable(question, "not-built", "no such bundle here; it may not be built on this machine")


def _exists(question: Question, path: str, root: str) -> Verdict:
    claim = question.claim
    symbol = claim.near.rpartition(".")[2]
    line = next((line for _, line in _holding(symbol, [path], root)), 0) if symbol and claim.first else 0
    if line and line != claim.first:
        return moved(question, "line-moved", f"{symbol} is at line {line} now", f"{path}:{line}")
    return confirmed(question, "exists", "there, built", path)


def _holding(symbol: str, paths: Iterable[str], root: str) -> Iterator[tuple[str, int]]:
    """The files that hold a name, and the line of its first occurrence."""
    pattern = whole_word(symbol)
    for _, path in zip(range(_MAX_BUNDLES_READ), paths, strict=False):
        data = _read(os.path.join(root, path))
        match = pattern.search(data)
        if match is not None:
            yield path, data.count(b"\n", 0, match.start()) + 1


def _read(path: str) -> bytes:
    """The bytes of a regular file of a sensible size; empty for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        return file.read() if S_ISREG(known.st_mode) and known.st_size <= _MAX_BUNDLE_BYTES else b""


def _files_of_build_folders(world: World, folder: str) -> Iterable[str]:
    """Yield the files of build folders, which git usually ignores."""
    for top in dict.fromkeys((*_BUILD_FOLDERS, *([folder.split("/")[0]] if folder else []))):
        yield from world.files_on_disk(top)
