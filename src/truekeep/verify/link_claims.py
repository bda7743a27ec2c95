"""Checks relative links of a repository's own documents: where a link leads does not depend on what is meant."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from truekeep.verify.claims.patterns import is_file
from truekeep.verify.file_kinds import is_for_contributors
from truekeep.verify.path_claims import (
    PathPlace,
    is_ignored_path,
    is_on_disk,
    judge_uncommitted,
    moved_folder,
    unread,
)
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import CODE, GIT, Verdict, confirmed, gone, moved, unverifiable

LINK_BROKEN, LINK_MOVED = "link-broken", "link-moved"
LINK_OF_SITE = "link-of-site"  # the generator of the website may find it from another folder
LINK_REASONS = (LINK_BROKEN, LINK_MOVED, LINK_OF_SITE)
_PAGES = (".md", ".mdx", ".rst", ".markdown")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
_LANGUAGES = frozenset(
    "ar bg bn ca cs da de el es et fa fi fr he hi hr hu id it ja ko lt lv ms nb nl no pl pt ro ru sk sl sr sv ta th tr "
    "uk ur vi zh".split()
)
_LOUD = re.compile(r"[A-Z][A-Z0-9]+(?:[-_][A-Z0-9]+)*\Z")  # LICENSE-APACHE
_ENDING = re.compile(r"[\w-]\.[A-Za-z][A-Za-z0-9]{1,9}$")


def is_link(world: World, question: Question) -> bool:
    """Whether a claim is a relative link in a document of this repository."""
    claim = question.claim
    return world.options.are_documents and claim.why == "a link" and claim.kind in ("path", "directory")


def check_link(world: World, question: Question) -> Verdict | None:
    """Check where a link leads, from the document's own folder; None for a route of a website."""
    target = unquote(question.claim.text.partition("#")[0].partition("?")[0])
    if not target or "\0" in target:
        return None
    is_from_root = target.startswith("/")
    path = os.path.normpath(target.lstrip("/") if is_from_root else os.path.join(question.folder, target))
    if path.startswith(".."):
        return None  # `../../issues`: a page of the host, above the repository
    now = world.now
    for candidate in _pages(path):
        if now.has(candidate) or now.has_folder(candidate) or is_on_disk(world, candidate):
            return confirmed(question, "exists", f"the link leads to {candidate}", candidate)
    if any(now.has(original) for translated in _pages(path) for original in _originals(translated)):
        return unverifiable(question, "translated", "only the document that this one translates has such a target")
    if world.has_site_generator and question.folder and _is_beside_page(world, question, target):
        return unverifiable(question, "of-site", "a generator that makes a folder of each page finds it")
    if is_from_root:
        return None  # most often a route of the website that is made of these documents
    if (known := _led_away(world, question, path)) is not None:
        return known
    if path.endswith((".html", ".htm")):
        return None  # a page that a generator makes
    if not is_file(path.rpartition("/")[2]) and not _ENDING.search(path) and not _leads_to_file(question, path):
        return None  # `./intro`: a route, or a page that a generator makes
    near = tuple(now.by_name.get(path.rpartition("/")[2], ())[:5])
    if (near or "." not in path.rpartition("/")[2]) and _is_page_of_site(world, question, path):
        why = f"the link leads nowhere: there is no {path}" + (f"; a generator may mean {near[0]}" if near else "")
        return gone(question, LINK_OF_SITE, why, candidates=near, rank=CODE)
    return gone(question, LINK_BROKEN, f"the link leads nowhere: there is no {path}", candidates=near, rank=CODE)


def _led_away(world: World, question: Question, path: str) -> Verdict | None:
    """What became of the file that a link leads to; None if it never was here."""
    now = world.now
    if behind := now.behind(path):
        return unread(question, behind)
    if is_ignored_path(world, path, question):
        return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
    if (here := judge_uncommitted(world, question, path)) is not None:
        return here._replace(
            reason=LINK_MOVED if here.place else LINK_BROKEN, why=f"the link leads nowhere: {here.why}"
        )
    trail = world.past.follow(path, None, now.position)
    if (twin := _with_other_ending(world, path)) is not None:
        why = f"the link leads nowhere: {path} is {twin.rpartition('/')[2]} now"
        reason = LINK_OF_SITE if _is_page_of_site(world, question, path) else LINK_MOVED
        return moved(question, reason, why, twin, rank=CODE)
    if trail is not None and trail.path:
        why = f"the link leads nowhere: {path} was renamed to {trail.path} in {trail.commit.id[:10]}"
        return moved(question, LINK_MOVED, why, trail.path, commit=trail.commit.id, day=trail.commit.day, rank=GIT)
    if trail is not None:
        why = f"the link leads nowhere: {path} was deleted in {trail.commit.id[:10]} on {trail.commit.day}"
        return gone(question, LINK_BROKEN, why, commit=trail.commit.id, day=trail.commit.day)
    if (folder := moved_folder(world, path, question)) is not None and folder.trail is not None:
        return _moved_folder_verdict(question, path, folder)
    return None


def check_hosted_link(world: World, question: Question) -> Verdict:
    """Check a link to a file of this repository on a git host: the branch that it names is the one that is here."""
    path, now = question.claim.name.rstrip("/"), world.now
    if now.has(path) or now.has_folder(path):
        return confirmed(question, "exists", f"the link leads to {path}", path)
    if (known := _led_away(world, question, path)) is not None:
        return known
    near = tuple(now.by_name.get(path.rpartition("/")[2], ())[:5])
    return gone(question, LINK_BROKEN, f"the link leads nowhere: there is no {path}", candidates=near, rank=CODE)


def _with_other_ending(world: World, path: str) -> str | None:
    """The page of the same name in the same folder, as when x.md became x.mdx."""
    stem, ending = os.path.splitext(path)
    pages = (f"{stem}{other}" for other in _PAGES if other != ending) if ending in _PAGES else ()
    return next((page for page in pages if world.now.has(page)), None)


def _is_beside_page(world: World, question: Question, target: str) -> bool:
    """Whether a target is there as seen from a folder that has the name of the page."""
    stem = question.path.rpartition(".")[0]
    path = os.path.normpath(os.path.join(stem, target))
    return any(world.now.has(one) or world.now.has_folder(one) for one in _pages(path))


def _leads_to_file(question: Question, path: str) -> bool:
    """Whether a target without an ending is a file or folder: in documents that only the host of the code shows."""
    name = question.memory.rpartition("/")[2].lower()
    if _LOUD.match(path.rpartition("/")[2]):
        return True
    return name.startswith("readme.") or is_for_contributors(question.memory)


def _is_page_of_site(world: World, question: Question, target: str) -> bool:
    """Whether a page or picture is linked in a page that a generator makes into a website, with rules of its own."""
    name = question.memory.rpartition("/")[2]
    if is_for_contributors(question.memory) or name.lower().startswith("readme") or not question.folder:
        return False
    is_page = target.lower().endswith((*_PAGES, *_PICTURES)) or "." not in target.rpartition("/")[2]
    return is_page and world.has_site_generator


def _moved_folder_verdict(question: Question, path: str, folder: PathPlace) -> Verdict:
    assert folder.trail is not None
    commit = folder.trail.commit
    if folder.path:
        why = f"the link leads nowhere: {path} was renamed to {folder.path} in {commit.id[:10]}"
        return moved(question, LINK_MOVED, why, folder.path, commit=commit.id, day=commit.day, rank=GIT)
    why = f"the link leads nowhere: {path} was deleted in {commit.id[:10]} on {commit.day}"
    return gone(question, LINK_BROKEN, why, commit=commit.id, day=commit.day)


def _originals(path: str) -> Iterator[str]:
    """The files that stand in for one that is not translated: docs/x.md or docs/en/x.md for docs/ja/x.md."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if part.lower().replace("_", "-").partition("-")[0] in _LANGUAGES and len(part) in (2, 5, 7):
            yield "/".join((*parts[:at], *parts[at + 1 :]))
            yield "/".join((*parts[:at], "en", *parts[at + 1 :]))


def _pages(path: str) -> Iterator[str]:
    """The files that a link may mean: a page may be linked without its ending, or with that of the website."""
    yield path
    stem, ending = os.path.splitext(path)
    if ending == ".html":
        path = stem
        if stem.endswith("/index"):
            yield from (f"{stem.removesuffix('index')}README{page}" for page in _PAGES)
    if ending in ("", ".html"):
        yield from (f"{path}{page}" for page in _PAGES)
        yield from (f"{path}/{name}{page}" for name in ("index", "README", "_index") for page in _PAGES)
