"""XML, as a row of tags with their lines. No entity is ever looked up."""

from __future__ import annotations

from collections.abc import Iterator

from truekeep.verify.manifests.limits import DEEPEST
from truekeep.verify.manifests.text import Pattern, Places, UnreadableManifest

_TAG = Pattern(r"<(/?)([A-Za-z_][\w.:-]{0,100})((?:\s[^<>]{0,1000})?)>([^<]{0,500})")
_ATTRIBUTE = Pattern(r"([A-Za-z]{1,40})\s{0,10}=\s{0,10}(?:\"([^\"<>]*)\"|'([^'<>]*)')")


def iter_tags(text: str) -> Iterator[tuple[str, list[str], str, str, int]]:
    """The tags of XML in their order: what it is ("open", "close", "whole"), path, attributes, text, line."""
    text = _without_markup(text)
    places = Places(text)
    path: list[str] = []
    for match in _TAG.finditer(text):
        closing, name, attributes, inner = match.groups()
        if closing:
            yield "close", path, "", "", 0
            if name in path[-4:]:  # closes what a broken file left open
                while path.pop() != name:
                    pass
            continue
        line = places.line(match.start())
        if len(path) > DEEPEST:
            raise UnreadableManifest(f"line {line}: nested too deeply")
        path.append(name)
        is_whole = attributes.endswith("/")
        yield ("whole" if is_whole else "open"), path, attributes, inner.strip(), line
        if is_whole:
            path.pop()


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of a tag."""
    return {key: first or second for key, first, second in _ATTRIBUTE.findall(text)}


def _without_markup(text: str) -> str:
    """XML without its comments, declarations and CDATA, at the same lines."""
    if "<!" not in text:
        return text
    pieces: list[str] = []
    position = 0
    ends = {"<!--": "-->", "<![CDATA[": "]]>"}
    while (start := text.find("<!", position)) >= 0:
        pieces.append(text[position:start])
        opening = next((known for known in ends if text.startswith(known, start)), "")
        if opening:
            end = text.find(ends[opening], start + len(opening))
            stop = end + 3 if end >= 0 else len(text)
        else:  # <!DOCTYPE x [ <!ENTITY ...> ]>: up to the bracket that ends it
            end, subset = text.find(">", start), text.find("[", start)
            if 0 <= subset < end:
                close = text.find("]", subset)
                end = text.find(">", close) if close >= 0 else -1
            stop = end + 1 if end >= 0 else len(text)
        pieces.append("\n" * text.count("\n", start, stop))
        position = stop
    return "".join([*pieces, text[position:]])
