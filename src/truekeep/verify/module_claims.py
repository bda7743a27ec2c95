"""Checks modules of the repository's own packages that examples import: what is not here cannot be imported."""

from __future__ import annotations

import re

from truekeep.verify.file_kinds import FileKind, kind_of
from truekeep.verify.path_claims import PLACEHOLDER
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import CODE, MODULE_MISSING, Verdict, gone

_GENERIC = frozenset(
    ("app", "src", "tests", "test", "lib", "api", "core", "main", "config", "utils", "models", "project", "mypackage")
)
_MAKES_MODULES = re.compile(rb"sys\.modules|extend_path|recreate_module|LazyModule|ModuleType")


def check_module(world: World, question: Question) -> Verdict | None:
    """Tell that a module of an own package is missing; None if it is there, or may be made in another way."""
    claim = question.claim
    parts = claim.owner.split(".")
    if not world.options.are_documents or claim.why != "an import" or len(parts) < 2 or parts[0] in _GENERIC:
        return None
    for root in _package_roots(world, parts[0]):
        here = root
        for at, part in enumerate(parts[1:], start=1):
            below = f"{here}/{part}"
            if world.now.has_folder(below):
                here = below
                continue
            if _has_module(world, here, part) or _may_make(world, here, part):
                return None
            if PLACEHOLDER.match(part):
                return None
            name = ".".join(parts[: at + 1])
            return gone(
                question, MODULE_MISSING, f"there is no module {name}: {here} has no {part}", place=here, rank=CODE
            )
        return None
    return None


def _package_roots(world: World, name: str) -> list[str]:
    """The folder of a package, if there is only one of its name."""
    key = ("package roots", name)
    if key not in world.places:
        ended = [one for one in world.now.folders if one == name or one.endswith(f"/{name}")]
        world.places[key] = [one for one in ended if _is_imported_by_name(world, one)]
    found: list[str] = world.places[key]
    return found if len(found) == 1 and world.is_complete else []


def _is_imported_by_name(world: World, folder: str) -> bool:
    """Whether a folder is a package by itself: one of tests or in another may be called like somebody else's."""
    init, above = f"{folder}/__init__.py", f"{folder.rpartition('/')[0]}/__init__.py"
    return world.now.has(init) and not world.now.has(above.lstrip("/")) and kind_of(init) is FileKind.CODE


def _has_module(world: World, folder: str, name: str) -> bool:
    return any(path.startswith(f"{folder}/{name}.") for path in world.now.position if path.startswith(f"{folder}/"))


def _may_make(world: World, folder: str, name: str) -> bool:
    """Whether the package itself names what is missing, or makes modules while it runs."""
    text = world.now.text(f"{folder}/__init__.py")
    return (
        text is None
        or _MAKES_MODULES.search(text) is not None
        or re.search(rb"\b" + name.encode() + rb"\b", text) is not None
    )
