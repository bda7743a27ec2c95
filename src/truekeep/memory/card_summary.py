"""A summary of a part of a Markdown file, for its line in the index. Pure text, and no model: its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekeep.memory.section_tree import is_rule
from truekeep.text.headings import plain_heading
from truekeep.text.markdown_lines import Scan

MIN_SUMMARY = 12  # characters
_NESTED_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_LEAD = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\*\*|__)(.+?)(?:\*\*|__)")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-{3}[\s:|-]*\Z")
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|\*\*|__|`|~~|<!--.*?-->|<[^<>\s][^<>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")


def summarize(body: str, room: int, topic: str) -> str:
    """What a part of a file says, in so many characters: its first sentence, else the names of what it lists."""
    if room < MIN_SUMMARY:
        return ""
    lines = _content_lines(body)
    paragraph = next((line for kind, line in lines if kind == "text"), "")
    is_first = bool(lines) and lines[0] == ("text", paragraph)
    if is_first and len(paragraph) >= MIN_SUMMARY and not paragraph.rstrip().endswith((":", "：")):
        return clipped(_SENTENCE_END.split(paragraph, maxsplit=1)[0], room)
    for kind in ("heading", "lead", "row"):
        found = dict.fromkeys(line for other, line in lines if other == kind)
        named = [line for line in found if line.casefold() != topic.casefold()]
        if len(named) >= 2:
            return _listed(named, room)
    item = next((line for kind, line in lines if kind in ("item", "lead-item") and len(line) >= MIN_SUMMARY), "")
    return clipped(_SENTENCE_END.split(item or paragraph, maxsplit=1)[0], room)


def _content_lines(body: str) -> list[tuple[str, str]]:
    """The lines of a card that a summary may take from, each with its kind and without markup."""
    found: list[tuple[str, str]] = []
    scan = Scan()
    is_head = True
    is_table_head = False
    raw = body.replace("\r", "").split("\n")
    for number, text in enumerate(raw):
        line = scan.see(text)
        if line.kind == "heading":
            if not is_head:
                found.append(("heading", plain_heading(line.title)))
            is_head = False
            continue
        if line.kind != "text" or scan.is_html or text.lstrip().startswith("<!--") or is_rule(text):
            continue
        is_head = False
        bare = text.strip()
        if bare.startswith("|"):
            is_table_head = number + 1 < len(raw) and bool(_TABLE_RULE.match(raw[number + 1]))
            cell = plain_text(bare.strip("|").split("|")[0])
            if cell and not is_table_head and not _TABLE_RULE.match(bare) and any(map(str.isalpha, cell)):
                found.append(("row", cell))
        elif lead := _LEAD.match(text):
            found.append(("lead", plain_heading(lead[1])))
            found.append(("lead-item", plain_text(_NESTED_ITEM.sub("", text, count=1))))
        elif _NESTED_ITEM.match(text):
            if not text[:1].isspace():
                found.append(("item", plain_text(_NESTED_ITEM.sub("", text, count=1))))
        elif words := plain_text(bare.lstrip("> ")):
            found.append(("text", words))
    return found


def plain_text(line: str) -> str:
    """A line without Markdown's marks."""
    return " ".join(_MARKUP.sub(lambda match: match[1] or "", line).split())


def _listed(names: Sequence[str], room: int) -> str:
    text = ""
    for name in names:
        more = f"{text}, {name}" if text else name
        if len(more) > room - 3:
            return f"{text}, …" if text else clipped(name, room)
        text = more
    return text


def clipped(text: str, room: int) -> str:
    text = text.strip()
    if len(text) <= room:
        return text.rstrip(".。")
    end = text.rfind(" ", 0, room - 1)
    return text[: end if end > room // 2 else room - 1].rstrip(" ,;:—–-") + "…"


def item_topic(line: str) -> str:
    """The topic of a list item: the words in bold that it begins with, else its first sentence."""
    lead = _LEAD.match(line)
    plain = plain_heading(lead[1]) if lead else plain_text(_NESTED_ITEM.sub("", line, count=1))
    return _SENTENCE_END.split(plain, maxsplit=1)[0].strip(" :：—–-")
