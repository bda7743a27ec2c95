"""Memory as HTML: Markdown made into a few plain tags, with the claims in it marked by their verdicts.

Memory is hostile until checked. No HTML of it is ever passed on, no picture is loaded, a link leads to http, https or
another memory file and nowhere else, and hidden characters are shown as what they are. Only this module makes tags from
memory.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from truekeep.text.unicode import printable

MAX_RENDERED_CHARACTERS = 60_000  # a longer text is shown as it is
MAX_SHOWN_ADDRESS = 500  # characters
_BLOCKS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}
_SPANS = {"em": "em", "strong": "strong", "s": "s"}


class ClaimMark(NamedTuple):
    """A claim in a text, with its verdict."""

    line: int  # counted from 1, in the text that is rendered
    text: str
    verdict: str
    note: str  # evidence, as a tooltip
    anchor: str = ""  # the id of the element that describes it
    is_code: bool | None = None  # True between backticks; None if unknown


def render_markdown(text: str, *, marks: Iterable[ClaimMark] = (), path: str = "", base: str = "") -> Markup:
    """A memory's text as HTML. `path` is its file and `base` the site, for links between memories."""
    if len(text) > MAX_RENDERED_CHARACTERS:
        return Markup("<pre>{}</pre>").format(printable(text, newlines=True))
    try:
        tokens = _parser().parse(text)
    except RecursionError:
        return Markup("<pre>{}</pre>").format(printable(text, newlines=True))
    return Markup(_Writer(list(marks), path, base).write(tokens))  # noqa: S704 - every piece is escaped where it is made


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])


class _Writer:
    def __init__(self, marks: list[ClaimMark], path: str, base: str) -> None:
        self._marks = sorted(marks, key=_line)
        self._path, self._base = path, base
        self._out: list[str] = []

    def write(self, tokens: Sequence[Token]) -> str:
        for token in tokens:
            self._block(token)
        return "".join(self._out)

    def _block(self, token: Token) -> None:
        kind, _, way = token.type.rpartition("_")
        if token.type == "inline":
            first, last = token.map or (0, 0)
            self._inline(token.children or [], first + 1, max(first + 1, last))
        elif token.type in ("fence", "code_block"):
            first = (token.map or (0, 0))[0] + (2 if token.type == "fence" else 1)
            self._out.append("<pre><code>")
            for number, line in enumerate(token.content.split("\n")):
                self._text(line + "\n", first + number, first + number, is_code=None)
            self._out.append("</code></pre>\n")
        elif token.type == "hr":
            self._out.append("<hr>\n")
        elif kind == "heading":
            level = min(6, int(token.tag[1:]) + 1)  # the page has its own first heading
            self._out.append(f"<h{level}>" if way == "open" else f"</h{level}>\n")
        elif kind in _BLOCKS and not token.hidden:
            tag = _BLOCKS[kind]
            self._out.append(f"<{tag}>" if way == "open" else f"</{tag}>\n")
        elif token.content:
            self._text(token.content, 0, 0)

    def _inline(self, children: Sequence[Token], first: int, last: int) -> None:
        line = first
        links: list[str] = []  # what follows the text of each link that is open
        for token in children:
            kind, _, way = token.type.rpartition("_")
            if token.type == "text":
                self._text(token.content, line, last)
            elif token.type == "code_inline":
                self._out.append("<code>")
                self._text(token.content, line, last, is_code=True)
                self._out.append("</code>")
            elif token.type in ("softbreak", "hardbreak"):
                self._out.append("<br>\n" if token.type == "hardbreak" else "\n")
                line += 1
            elif token.type == "link_open":
                href = str(token.attrs.get("href", ""))
                target = self._target(href)
                if target:
                    self._out.append(f'<a href="{escape(target, quote=True)}" rel="noopener noreferrer nofollow">')
                links.append(
                    "</a>" if target else f' <span class="withheld">[link: {_safe(href[:MAX_SHOWN_ADDRESS])}]</span>'
                )
            elif token.type == "link_close":
                self._out.append(links.pop() if links else "")
            elif token.type == "image":
                source = str(token.attrs.get("src", ""))
                said = f"[picture: {token.content or 'no words'}, {source[:MAX_SHOWN_ADDRESS]}]"
                self._out.append(f'<span class="withheld">{_safe(said)}</span>')
            elif kind in _SPANS:
                self._out.append(f"<{_SPANS[kind]}>" if way == "open" else f"</{_SPANS[kind]}>")
            elif token.content:
                self._text(token.content, line, last)

    def _text(self, text: str, first: int, last: int, *, is_code: bool | None = False) -> None:
        """A text with its claims marked. Each mark is used once, in the order of the claims."""
        start = 0
        low = bisect_left(self._marks, first, key=_line)
        high = bisect_right(self._marks, max(first, last), key=_line)
        unused: list[ClaimMark] = []
        for mark in self._marks[low:high]:
            at = text.find(mark.text, start)
            if at < 0 or (None not in (is_code, mark.is_code) and is_code is not mark.is_code):
                unused.append(mark)
                continue
            self._out.append(_safe(text[start:at]))
            anchor = f' aria-describedby="{escape(mark.anchor, quote=True)}"' if mark.anchor else ""
            self._out.append(
                f'<mark class="verdict {escape(mark.verdict, quote=True)}" tabindex="0"'
                f' title="{escape(printable(f"{mark.verdict}: {mark.note}"), quote=True)}"{anchor}>'
                f"{_safe(mark.text)}</mark>"
            )
            start = at + len(mark.text)
        self._marks[low:high] = unused
        self._out.append(_safe(text[start:]))

    def _target(self, href: str) -> str:
        """The target of a link, if it is on the web or a memory of this site."""
        try:
            parts = urlsplit(href)
        except ValueError:
            return ""
        if parts.scheme in ("http", "https") and parts.netloc:
            return href if "@" not in parts.netloc else ""  # text before an @ looks like a host, but is not
        if parts.scheme or parts.netloc or not parts.path or href.startswith(("/", "\\")):
            return ""
        path = unquote(parts.path)
        inside = posixpath.normpath(
            path if path.startswith("memory/") else posixpath.join(posixpath.dirname(self._path), path)
        )
        if inside.startswith(("..", "/")) or not inside.endswith(".md") or printable(inside) != inside:
            return ""
        return f"{self._base}/memory/file/{quote(inside)}"


def _line(mark: ClaimMark) -> int:
    return mark.line


def _safe(text: str) -> str:
    return escape(printable(text, newlines=True), quote=True)
