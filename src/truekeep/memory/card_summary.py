"""A summary of a part of a Markdown file, for its line in the index. Pure text, and no model: its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekeep.memory.section_tree import is_rule
from truekeep.text.headings import plain_heading
from truekeep.text.markdown_lines import Scan

MIN_SUMMARY = 12  # characters
_ITEM_MARK = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_LEAD = re.compile(r"(?:(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?(?:\*\*|__)(.+?)(?:\*\*|__)")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-{3}[\s:|-]*\Z")
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|\*\*|__|`|~~|<!--.*?-->|<[^<>\s][^<>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")


def summarize(body: str, room: int, topic: str) -> str:
    """What a part of a file says, in so many characters: its first sentence, else the names of what it lists."""
    if room < MIN_SUMMARY:
        return ""
    lines = [(kind, line) for kind, line in _content_lines(body) if line.casefold() != topic.casefold()]
    first = lines[0] if lines else ("", "")
    if first[0] == "text" and len(first[1]) >= MIN_SUMMARY and not first[1].endswith((":", "：")):
        return _first_sentence(first[1], room)
    for kind, least in (("heading", 1), ("lead", 2), ("row", 2)):
        named = list(dict.fromkeys(line for other, line in lines if other == kind))
        if len(named) >= least:
            return _listed(named, room)
    for kinds in (("item", "text"), ("quotation",)):
        said = [line for kind, line in lines if kind in kinds and len(line) >= MIN_SUMMARY]
        if said:
            return _first_sentence(next((line for line in said if line[-1] not in ":："), said[0]), room)
    return ""


def _first_sentence(text: str, room: int) -> str:
    return clipped(_SENTENCE_END.split(text, maxsplit=1)[0], room)


def _content_lines(body: str) -> list[tuple[str, str]]:
    """The lines of a card that a summary may take from, each with its kind and without markup."""
    found: list[tuple[str, str]] = []
    scan = Scan()
    is_head = True
    raw = body.replace("\r", "").split("\n")
    for number, text in enumerate(raw):
        line = scan.see(text)
        if line.kind == "heading":
            if not is_head and any(map(str.isalpha, line.title)):
                found.append(("heading", plain_heading(line.title)))
            is_head = False
            continue
        if line.kind != "text" or scan.is_html or text.lstrip().startswith("<!--") or is_rule(text):
            continue
        is_head = False
        is_table_head = number + 1 < len(raw) and _TABLE_RULE.match(raw[number + 1]) is not None
        found += _row_or_words(text, is_table_head=is_table_head)
    return found


def _row_or_words(text: str, *, is_table_head: bool) -> list[tuple[str, str]]:
    bare = text.strip()
    if bare.startswith("|"):
        cell = plain_text(bare.strip("|").split("|")[0])
        is_named = any(map(str.isalpha, cell)) and not is_table_head and not _TABLE_RULE.match(bare)
        return [("row", cell)] if is_named else []
    item = _ITEM_MARK.match(text)
    if item is not None and text[:1].isspace():
        return []
    words = plain_text(text[item.end() :] if item else bare.lstrip("> "))
    kind = "item" if item else "quotation" if bare.startswith(">") else "text"
    found = [(kind, words)] if words else []
    lead = _LEAD.match(text)
    if lead is not None and any(map(str.isalpha, lead[1])) and not _is_label(lead):
        found.insert(0, ("lead", plain_heading(lead[1])))
    return found


def _is_label(lead: re.Match[str]) -> bool:
    """Whether bold words name a field, such as **Status:**, instead of a thing."""
    return lead[1].rstrip().endswith((":", "：")) or lead.string[lead.end() :].lstrip()[:1] in (":", "：")


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
    plain = plain_heading(lead[1]) if lead else plain_text(_ITEM_MARK.sub("", line, count=1))
    return _SENTENCE_END.split(plain, maxsplit=1)[0].strip(" :：—–-")
