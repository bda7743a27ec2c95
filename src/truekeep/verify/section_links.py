"""Checks links to sections: `#setup` in this document, `guide.md#setup` in another one of the repository.

Viewers make anchors of headings in slightly different ways, so only their letters and digits are compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from truekeep.text.markdown_lines import closes_fence, opening_fence
from truekeep.verify.file_kinds import is_for_contributors
from truekeep.verify.link_claims import LINK_BROKEN, LINK_OF_SITE
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import CODE, Verdict, confirmed, gone

PAGES = (".md", ".mdx", ".markdown")
_HEADING = re.compile(r"[ >]{0,6}#{1,6}[ \t]+(.+)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*\Z")
_ANCHOR = re.compile(r"""\b(?:id|name)\s*=\s*["'{]+([^"'}]+)|\{[:#]+\s*#?([\w.:-]+)|^\(([\w.:-]+)\)=\s*$""")
_HTML_HEADING = re.compile(r"<(?:h[1-6]|summary|dt)\b[^>]*>(.*?)(?:</|\Z)", re.IGNORECASE)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\([^()]*(?:\([^()]*\))?[^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"<[^>]*>")
_EMOJI = re.compile(r":[a-z0-9_+-]+:")
_NOT_WORD = re.compile(r"[\W_]+")
_PUT_TOGETHER = re.compile(
    r"--8<--|\{\{[#<%]|\{%|^:::|<!--\s*#?include|\[!INCLUDE|^\s*import .* from |^<<<|@import|^\.\. include"
    r"|^\s*<(?-i:[A-Z])\w+[^>]*/>", re.MULTILINE | re.IGNORECASE
)  # fmt: skip
_OF_VIEWERS = re.compile(
    r"(?:L\d+.*|top|readme|start-of-content|[a-z-]*-mode-only|.*[=:/~].*|.*\.\w+)\Z", re.IGNORECASE
)
_NUMBERED = re.compile(r"\d+\Z")


def check_section(world: World, question: Question) -> Verdict | None:
    """Check that a document has the section that a link leads to; None if its anchors are made by a program."""
    claim = question.claim
    fragment = unquote(claim.name)
    if not world.options.are_documents or not fragment or _OF_VIEWERS.match(fragment):
        return None
    path = os.path.normpath(os.path.join(question.folder, unquote(claim.place))) if claim.place else question.path
    if not path.endswith(PAGES) or not world.now.has(path):
        return None
    known = _anchors(world, path)
    wanted = letters_of(fragment.removeprefix("user-content-"))
    if known is None or not wanted:
        return None
    if wanted in known or _NUMBERED.sub("", wanted) in known:
        return confirmed(question, "exists", f"{path} has it", path)
    if "" in known:
        return None
    is_site = world.has_site_generator and bool(os.path.dirname(path)) and not is_for_contributors(path)
    reason = LINK_OF_SITE if is_site and "readme" not in path.lower() else LINK_BROKEN
    return gone(question, reason, f"the link leads nowhere: {path} has no section #{fragment}", rank=CODE)


def _anchors(world: World, path: str) -> frozenset[str] | None:
    """The letters of the anchors of a document; one that is put together of others has an empty one as well."""
    key = ("sections", path)
    if key not in world.places:
        data = world.now.text(path)
        world.places[key] = None if data is None else anchors_in(data.decode("utf-8", "replace"))
    found: frozenset[str] | None = world.places[key]
    return found


def anchors_in(text: str) -> frozenset[str]:
    """The letters and digits of each anchor that a text has, and an empty one if other texts are put into it."""
    found = {letters_of(title) for title in _titles(text)}
    found.discard("")
    return frozenset(found | {""} if _PUT_TOGETHER.search(text) else found)


def _titles(text: str) -> Iterator[str]:
    fence = before = ""
    for line in text.split("\n"):
        line = line.rstrip("\r")
        bare = line.strip(" \t>")
        if fence or (marks := opening_fence(bare)):
            fence = "" if fence and closes_fence(bare, fence) else fence or marks
            continue
        for match in _ANCHOR.finditer(line):
            yield match[1] or match[2] or match[3]
        for match in _HTML_HEADING.finditer(line):
            yield match[1]
        if (heading := _HEADING.match(line)) is not None:
            yield heading[1]
        elif before.strip() and _UNDERLINE.match(line):
            yield before
        before = line


def letters_of(title: str) -> str:
    """The letters and digits of a heading or of an anchor, in lower case."""
    plain = _EMOJI.sub("", _TAG.sub("", _LINK.sub(r"\1", title.partition(" {#")[0])))
    return _NOT_WORD.sub("", plain.lower())
