"""Memory records: those that upstream's exporter makes of a file, and what all of truekeep's own have in common.

Pure: text in, values out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Unpack, cast

from truekeep.integrations.alf.created_dates import FileDates
from truekeep.integrations.alf.documents import MemoryRecord, OptionalMembers, SourceProvenance, TemporalMetadata
from truekeep.integrations.alf.record_ids import WHITESPACE, content_id, positional_id
from truekeep.integrations.alf.sections import ARCHIVE_FOLDERS, classify, daily_log_date, split_sections
from truekeep.integrations.alf.timestamps import format_midnight, format_timestamp

OPENCLAW_RUNTIME = "openclaw"
TRUEKEEP_RUNTIME = "truekeep"

_IMPORTANCE = re.compile(r"\[([^\[\]|\n]++)\|i=([\d.]++)\]")
_IMPORTANCE_MARK = "|i="
_HASHTAG = re.compile(f"#(?<![^{WHITESPACE}]#)#*([^{WHITESPACE}#][^{WHITESPACE}]*)")
_JOINERS = "\u200c\u200d"


def upstream_records(
    path: str,
    text: str,
    *,
    mtime_ns: int,
    agent: str,
    scheme: str,
    plain: bool = True,
    runtime_version: str = "",
) -> list[MemoryRecord]:
    """The records of a file for the runtime openclaw.

    `plain`: exactly those that upstream's exporter writes, with the same order of members. Otherwise more files are
    split, times come from what the file says, and the version of the runtime is noted. One difference in both: a
    confidence is at most 1. Upstream copies any number, and then its own validator rejects the archive.
    """
    kind = classify(path, scheme, plain=plain)
    if kind is None:
        return []
    dates = None if plain else FileDates.of(path, text)
    is_log = dates is not None and kind.namespace == "daily"
    day = dates.named if dates is not None and is_log else daily_log_date(path)
    is_archived = not plain and not set(ARCHIVE_FOLDERS).isdisjoint(path.split("/")[1:-1])
    updated_at = format_timestamp(mtime_ns)
    temporal: TemporalMetadata = {"created_at": format_midnight(day) if day else updated_at, "updated_at": updated_at}
    if day:
        temporal["observed_at"] = format_midnight(day)
    source: SourceProvenance = {"runtime": OPENCLAW_RUNTIME}
    if runtime_version and not plain:
        source["runtime_version"] = runtime_version
    source["origin"], source["origin_file"] = "workspace", path
    source["extraction_method"] = _extraction_method(path.lower())
    records = []
    occurrences: Counter[str] = Counter()
    for number, section in enumerate(split_sections(text, is_split=kind.is_split, scheme=scheme)):
        if scheme == "content":
            trimmed = section.content.rstrip(WHITESPACE)
            record_id = content_id(agent, path, trimmed, occurrences[trimmed])
            occurrences[trimmed] += 1
        else:
            record_id = positional_id(path, number)
        stated = dates.created_at(section.heading, section.content, mtime_ns) if dates is not None else None
        marks = find_marks(section.content, kind.namespace)
        record: MemoryRecord = {
            "id": record_id,
            "agent_id": agent,
            "content": section.content,
            "memory_type": kind.memory_type,
            "source": source.copy(),
            "temporal": {**temporal, "created_at": stated or temporal["created_at"]},
            "status": "archived" if is_archived else "active",
            "namespace": kind.namespace,
        }
        if marks.category is not None:
            record["category"] = marks.category
        if marks.confidence is not None:
            record["confidence"] = marks.confidence
        record["tags"] = marks.tags
        record["raw_source_format"] = place_in_file(section.heading, section.line_start, section.line_end)
        records.append(record)
    return records


def truekeep_record(
    *,
    id: str,  # noqa: A002 - the name of the member
    agent: str,
    content: str,
    memory_type: str,
    namespace: str,
    source: Mapping[str, str | None],
    temporal: Mapping[str, str | int | None],
    status: str = "active",
    **optional: Unpack[OptionalMembers],
) -> MemoryRecord:
    """A record that upstream's exporter does not make. Its runtime is truekeep, and empty members are left out."""
    record = {
        "id": id,
        "agent_id": agent,
        "content": content,
        "memory_type": memory_type,
        "source": {"runtime": TRUEKEEP_RUNTIME, **_filled(source, SourceProvenance)},
        "temporal": _filled(temporal, TemporalMetadata),
        "status": status,
        "namespace": namespace,
    }
    return cast(MemoryRecord, record | _filled(optional, OptionalMembers))


def _filled(values: Mapping[str, Any], members: type) -> dict[str, Any]:
    """The values that are not empty, in the order of a type's members."""
    return {name: value for name in members.__annotations__ if (value := values.get(name)) or value == 0}


def unique_tags(namespace: str, *tags: str) -> list[str]:
    """The namespace first, then the tags, each once."""
    return [tag for tag in dict.fromkeys((namespace, *tags)) if tag]


def place_in_file(heading: str | None, line_start: int, line_end: int) -> dict[str, Any]:
    """The raw_source_format of a record: the lines of its file that it was made of."""
    return {"heading": heading, "line_end": line_end, "line_start": line_start}


def _extraction_method(path: str) -> str:
    return "user_authored" if path == "memory.md" or "gating-policies" in path else "agent_written"


# --- Importance tags and hashtags -----------------------------------------------------------------------------------


class SectionMarks(NamedTuple):
    """The tags, category and confidence that a section's text contains."""

    tags: list[str]
    category: str | None
    confidence: float | None


def find_marks(content: str, namespace: str) -> SectionMarks:
    """Find importance tags such as [deploy|i=0.8], and hashtags. The namespace is always the first tag."""
    tags = {namespace: None}
    scored = []
    for part in content.split("\n") if _IMPORTANCE_MARK in content else (content,):
        if _IMPORTANCE_MARK in part and (found := parse_importance(part)) is not None:
            scored.append(found)
            tags[found[0]] = None
        if "#" in part:
            tags.update(dict.fromkeys(iter_hashtags(part)))
    if not scored:
        return SectionMarks(list(tags), None, None)
    return SectionMarks(list(tags), scored[0][0], min(1.0, max(score for _, score in scored)))


def parse_importance(line: str) -> tuple[str, float] | None:
    """The name and score of the first [name|i=0.9] in a line; None if the score is not a number."""
    for match in _IMPORTANCE.finditer(line):
        name, number = match.groups()
        if (name.isascii() and name.isalnum()) or all(map(_is_word_character, name)):
            try:
                return (name, float(number)) if number.isascii() else None
            except ValueError:
                return None
    return None


def iter_hashtags(text: str) -> Iterator[str]:
    """Words that begin with #, without the # and without punctuation at the end."""
    for word in _HASHTAG.findall(text):
        end = len(word)
        while end and not _is_alphanumeric(word[end - 1]):
            end -= 1
        if end:
            yield word[:end]


def _is_word_character(char: str) -> bool:
    r"""True for \w of Unicode's regular expressions, as upstream uses it; Python's \w excludes combining marks."""
    category = unicodedata.category(char)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or char in _JOINERS


def _is_alphanumeric(char: str) -> bool:
    """Approximates upstream's Unicode rule, which counts most vowel signs as letters; Python counts none."""
    if char.isalnum():
        return True
    if unicodedata.category(char) not in ("Mc", "Mn"):
        return False
    is_selector = "\ufe00" <= char <= "\ufe0f" or char >= "\U000e0100" or char == "\u034f"
    combining_class = unicodedata.combining(char)  # 10 to 36: the points of Hebrew and Arabic
    return (combining_class == 0 and not is_selector) or 10 <= combining_class <= 36
