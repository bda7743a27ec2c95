"""Checks the entries of a drawn folder tree in a repository's own document.

A tree is about this repository if most of its entries are here, counted from one folder; then an entry that is missing
from a folder that is here is gone. Otherwise it shows some other project, and says nothing about this one.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.verify.claims.patterns import FOLDERS_OF_ANY_PROJECT, OF_ANY_PROJECT
from truekeep.verify.claims.trees import IN_TREE
from truekeep.verify.file_kinds import is_for_contributors
from truekeep.verify.path_claims import PLACEHOLDER, is_ignored_path, is_on_disk, judge_uncommitted
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import CODE, GIT, Verdict, confirmed, gone, moved, unverifiable

NOT_IN_FOLDER, RENAMED_IN_TREE = "not-in-folder", "renamed-in-tree"
TREE_REASONS = (NOT_IN_FOLDER, RENAMED_IN_TREE)
_MIN_HERE = 3
_SHARE_HERE = 0.6  # of the entries in folders that are here
_SHARE_OF_ALL = 0.35  # below a folder that is missing, everything is
_OF_ANY_PROJECT = OF_ANY_PROJECT | FOLDERS_OF_ANY_PROJECT | {"docs", "scripts", "README", "LICENSE", "examples"}
_MADE_HERE = frozenset(
    "node_modules dist build target out bin obj .venv venv env .env .env.local __pycache__ .next .nuxt coverage logs "
    "log tmp temp .cache cache .git vendor .idea .vscode data output outputs uploads storage .DS_Store Pods "
    "DerivedData _build deps .gradle .terraform .pytest_cache .mypy_cache .ruff_cache site".split()
)
_ALTERNATIVE = re.compile(r"(?P<name>.+)\((?P<ending>\.[\w.]+)\)\Z")  # `Window.axaml(.cs)`: two files


class _Anchor(NamedTuple):
    """How the paths of a tree are read: below which folder, and without how many of their first parts."""

    folder: str
    skipped: int

    def path(self, entry: str) -> str:
        rest = "/".join(entry.strip("/").split("/")[self.skipped :])
        return f"{self.folder}/{rest}" if self.folder and rest else self.folder or rest


def is_in_tree(question: Question) -> bool:
    return question.claim.why == IN_TREE


def check_tree_entry(world: World, question: Question) -> Verdict | None:
    """Check one entry of a tree; None if the tree is not of this repository, or a folder above is missing already."""
    anchor = _anchor(world, question)
    if anchor is None:
        return None
    path = anchor.path(question.claim.name)
    if not path:
        return None
    if (here := _find(world, path)) is not None:
        return confirmed(question, "exists", "there" if here == path else f"there as {here}", here)
    folder, _, name = path.rpartition("/")
    if (folder and not world.now.has_folder(folder)) or name in _MADE_HERE or PLACEHOLDER.match(name):
        return None
    if behind := world.now.behind(path):
        return unverifiable(question, "unread", f"behind {behind}, a submodule or a link, which was not looked into")
    if is_ignored_path(world, path, question):
        return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
    if (uncommitted := judge_uncommitted(world, question, path)) is not None:
        return uncommitted._replace(reason=NOT_IN_FOLDER)
    return _missing(world, question, path, folder or "the top folder", name)


def _missing(world: World, question: Question, path: str, folder: str, name: str) -> Verdict:
    trail = world.past.follow(path, None, world.now.position)
    why = f"{folder} has no {name}"
    if trail is not None and trail.path:
        commit = trail.commit
        why = f"{why}: it was renamed to {trail.path} in {commit.id[:10]}"
        return moved(question, RENAMED_IN_TREE, why, trail.path, commit=commit.id, day=commit.day, rank=GIT)
    if trail is not None:
        commit = trail.commit
        why = f"{why}: it was deleted in {commit.id[:10]} on {commit.day}"
        return gone(question, NOT_IN_FOLDER, why, commit=commit.id, day=commit.day)
    near = tuple(world.now.by_name.get(name, ())[:5])
    return gone(question, NOT_IN_FOLDER, why, place=path, candidates=near, rank=CODE)


def _find(world: World, path: str) -> str | None:
    """The path under which an entry is here; None if it is not."""
    now = world.now
    readings = [path]
    if (two := _ALTERNATIVE.match(path)) is not None:
        readings = [two["name"], two["name"] + two["ending"]]
    return next((one for one in readings if now.has(one) or now.has_folder(one) or is_on_disk(world, one)), None)


def _anchor(world: World, question: Question) -> _Anchor | None:
    """The reading under which most entries are here; None if too few are under any."""
    key = ("tree", question.folder, question.claim.quote)
    if key not in world.places:
        world.places[key] = _find_anchor(world, question)
    found: _Anchor | None = world.places[key]
    return found


def _find_anchor(world: World, question: Question) -> _Anchor | None:
    entries = question.claim.quote.split("\n")
    best, most = None, 0
    for anchor in _anchors(world, question.folder, entries):
        here = sum(bool(path) and _find(world, path) is not None for path in map(anchor.path, entries))
        if here > most:
            best, most = anchor, here
    return best if best is not None and _is_of_here(world, question, [best.path(entry) for entry in entries]) else None


def _is_of_here(world: World, question: Question, paths: list[str]) -> bool:
    """Whether a tree shows this repository: of what is listed in folders that are here, most is here.

    Names that any project has are no evidence, but in documents for contributors, which show this one.
    """
    here = [path for path in paths if path and _find(world, path) is not None]
    missing = [path for path in paths if path and path not in here and world.now.has_folder(path.rpartition("/")[0])]
    own = [path for path in here if path.rpartition("/")[2] not in _OF_ANY_PROJECT]
    return (
        len(own) >= (1 if is_for_contributors(question.memory) else _MIN_HERE)
        and len(here) >= _MIN_HERE
        and len(here) >= (len(here) + len(missing)) * _SHARE_HERE
        and len(here) >= len(paths) * _SHARE_OF_ALL
    )


def _anchors(world: World, folder: str, entries: list[str]) -> Iterator[_Anchor]:
    """The readings of a tree, the likeliest first: from the document's folder and those above, then from any other."""
    heads = {entry.strip("/").split("/")[0] for entry in entries}
    skips = (0, 1) if len(heads) == 1 else (0,)
    folders = [folder]
    while folder:
        folder = folder.rpartition("/")[0]
        folders.append(folder)
    yield from (_Anchor(one, skip) for skip in skips for one in folders)
    if len(heads) == 1:
        head = heads.pop()
        named = [known for known in world.now.folders if known.endswith(f"/{head}")]
        yield from (_Anchor(known, 1) for known in named[:20])
