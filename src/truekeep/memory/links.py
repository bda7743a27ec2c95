"""Links from one memory file to others: Markdown links, [[names]] and plain paths. Pure text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from truekeep.core.model import CARDS

MAX_LINKS = 20_000  # of one file
_LINK = re.compile(r"\]\(<?([^()<>\s]{1,300})|\[\[([^\[\]\n|#]{1,200})|(?<![\w/.-])(memory/[^\s()\[\]<>`\"']{1,200})")
_ENDS = ".,;:!?*_"


def find_links(text: str, path: str) -> Iterator[tuple[str, int]]:
    """The memory files that a text links to, each with its line. `path` is the file of the text."""
    line, seen = 1, 0
    for number, match in enumerate(_LINK.finditer(text)):
        if number >= MAX_LINKS:
            return
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if match[1] is not None:
            target = resolve_link(match[1], path)
        elif match[2] is not None:
            name = match[2].strip()
            target = resolve_link(name if name.endswith(".md") else f"{name}.md", f"{CARDS}/")
        else:
            target = resolve_link(match[3].rstrip(_ENDS), path)
        if target and target != path:
            yield target, line


def resolve_link(href: str, path: str) -> str:
    """The memory file that a link leads to, as a path in the workspace; empty for other links."""
    bare = unquote(href.partition("#")[0])
    if not bare.endswith(".md") or ":" in bare or "\\" in bare or bare.startswith("/") or "\0" in bare:
        return ""
    inside = posixpath.normpath(bare if bare.startswith("memory/") else posixpath.join(posixpath.dirname(path), bare))
    return "" if inside.startswith("..") else inside
