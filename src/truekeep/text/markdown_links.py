"""The destinations of Markdown links in a text, and the anchors of headings. Pure text.

Code is left out. Offsets are those of the text, so that a destination can be replaced without touching another byte.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truekeep.text.markdown import without_code

_HREF = re.compile(
    r"\]\([ \t]*(?:<(?P<angled>[^<>\n]+)>|(?P<bare>[^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*))"
    r"|^ {0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*<?(?P<defined>[^\s<>]+)",
    re.MULTILINE,
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]+)\]:[ \t]*\S", re.MULTILINE)
_REFERENCE = re.compile(r"\[([^\[\]\n]*)\](?:\[([^\[\]\n]*)\])?(?![\[(:])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/|\\")
_INLINE_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_ROOT = "/1/2/3/4/5/6/7/8"  # deep enough for links that leave the workspace
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")


class LinkTarget(NamedTuple):
    """The destination of one link."""

    start: int  # offsets in the text
    end: int
    href: str


def iter_links(text: str) -> Iterator[LinkTarget]:
    """The destinations of all links, images and link definitions outside of code."""
    if "](" not in text and "]:" not in text:
        return
    shown = without_code(text.replace("\r", " "))
    for match in _HREF.finditer(shown):
        name = match.lastgroup or "bare"
        yield LinkTarget(*match.span(name), text[match.start(name) : match.end(name)])


def link_labels(text: str) -> tuple[set[str], set[str]]:
    """The labels of links and footnotes that a text defines, and those that it uses."""
    if "[" not in text:
        return set(), set()
    shown = without_code(text.replace("\r", " "))
    defined = {_label(match[1]) for match in _DEFINITION.finditer(shown)}
    used = {_label(match[2] or match[1]) for match in _REFERENCE.finditer(shown)}
    return defined, used


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


def is_relative(href: str) -> bool:
    """Whether a destination is a path that depends on the file's folder."""
    return bool(href) and not href.startswith("#") and _SCHEME.match(href) is None


def moved_href(href: str, old_path: str, new_path: str) -> str:
    """A relative destination as another file writes it. Both paths are of files in one folder tree."""
    path, mark, anchor = href.partition("#")
    if not is_relative(href):
        return href
    target = posixpath.normpath(posixpath.join(posixpath.dirname(old_path), path))
    moved = relative_path(target, new_path)
    return moved + ("/" if path.endswith("/") else "") + mark + anchor


def relative_path(target: str, from_file: str) -> str:
    """The path of a file as a link in another file writes it."""
    return posixpath.relpath(f"{_ROOT}/{target}", f"{_ROOT}/{posixpath.dirname(from_file)}")


def linked_path(href: str, path: str) -> str:
    """The path that a destination leads to, from the root that `path` is relative to; "" for other links."""
    bare = href.partition("#")[0]
    if not is_relative(href) or not bare:
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), bare))


def anchors_of(titles: Iterable[str]) -> list[str]:
    """The anchors of a file's headings, as GitHub and most viewers make them."""
    counts: dict[str, int] = {}
    found = []
    for title in titles:
        plain = _INLINE_LINK.sub(r"\1", title)
        anchor = _NOT_IN_ANCHOR.sub("", plain.lower()).replace(" ", "-")
        number = counts.get(anchor, 0)
        counts[anchor] = number + 1
        found.append(f"{anchor}-{number}" if number else anchor)
    return found
