"""Records of the Agent Life Format: made from a file as upstream's own exporter makes them, and read and written.

Pure: text in, values out. A record is a plain dict, so that what a later version adds survives being read and written.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from truekeep.integrations.alf.record_ids import WHITESPACE, content_id, positional_id
from truekeep.integrations.alf.record_times import shown_day, shown_moment
from truekeep.integrations.alf.sections import classify, day_of, split

Record = dict[str, Any]

RUNTIME = "openclaw"
MAX_DEPTH = 127  # upstream's reader refuses what is deeper

_IMPORTANCE = re.compile(r"\[([^\[\]|\n]++)\|i=([\d.]++)\]")
_HASHTAG = re.compile(f"#(?<![^{WHITESPACE}]#)#*([^{WHITESPACE}#][^{WHITESPACE}]*)")
_SCORE = "|i="
_JOINERS = "\u200c\u200d"


class SectionMarks(NamedTuple):
    """What a section says about itself."""

    tags: list[str]
    category: str | None
    confidence: float | None


def upstream_records(path: str, text: str, *, mtime_ns: int, agent: str, scheme: str) -> list[Record]:
    """What upstream's exporter writes for this file, in its order of keys.

    Except that a confidence is at most 1: upstream copies any number, and then its own validator refuses the archive.
    """
    kind = classify(path, scheme)
    if kind is None:
        return []
    day = day_of(path)
    updated_at = shown_moment(mtime_ns)
    temporal = {"created_at": shown_day(day) if day else updated_at, "updated_at": updated_at}
    if day:
        temporal["observed_at"] = shown_day(day)
    source = {
        "runtime": RUNTIME,
        "origin": "workspace",
        "origin_file": path,
        "extraction_method": _extraction_method(path.lower()),
    }
    records = []
    said: Counter[str] = Counter()
    for number, section in enumerate(split(text, is_split=kind.is_split, scheme=scheme)):
        if scheme == "content":
            trimmed = section.content.rstrip(WHITESPACE)
            record_id = content_id(agent, path, trimmed, said[trimmed])
            said[trimmed] += 1
        else:
            record_id = positional_id(path, number)
        marks = find_marks(section.content, kind.namespace)
        record: Record = {
            "id": record_id,
            "agent_id": agent,
            "content": section.content,
            "memory_type": kind.memory_type,
            "source": dict(source),
            "temporal": dict(temporal),
            "status": "active",
            "namespace": kind.namespace,
        }
        if marks.category is not None:
            record["category"] = marks.category
        if marks.confidence is not None:
            record["confidence"] = marks.confidence
        record["tags"] = marks.tags
        record["raw_source_format"] = {
            "heading": section.heading,
            "line_end": section.line_end,
            "line_start": section.line_start,
        }
        records.append(record)
    return records


def _extraction_method(path: str) -> str:
    return "user_authored" if path == "memory.md" or "gating-policies" in path else "agent_written"


def find_marks(content: str, namespace: str) -> SectionMarks:
    """The namespace, then line by line the name of an importance tag and the hashtags; each once."""
    tags = {namespace: None}
    scored = []
    for part, is_scored in _iter_parts(content) if _SCORE in content else ((content, False),):
        if is_scored and (found := importance(part)) is not None:
            scored.append(found)
            tags[found[0]] = None
        if "#" in part:
            tags.update(dict.fromkeys(iter_hashtags(part)))
    if not scored:
        return SectionMarks(list(tags), None, None)
    return SectionMarks(list(tags), scored[0][0], min(1.0, max(score for _, score in scored)))


def _iter_parts(content: str) -> Iterator[tuple[str, bool]]:
    """The lines that may have an importance tag, and whatever lines there are between them."""
    start = 0
    while (at := content.find(_SCORE, start)) >= 0:
        line = content.rfind("\n", start, at) + 1 or start
        end = content.find("\n", at)
        end = end if end >= 0 else len(content)
        yield content[start:line], False
        yield content[line:end], True
        start = end
    yield content[start:], False


def importance(line: str) -> tuple[str, float] | None:
    """The name and score of the first [name|i=0.9] in a line; None where that is not a number."""
    for match in _IMPORTANCE.finditer(line):
        name, number = match.groups()
        if (name.isascii() and name.isalnum()) or all(map(_is_of_word, name)):
            try:
                return (name, float(number)) if number.isascii() else None
            except ValueError:
                return None
    return None


def iter_hashtags(text: str) -> Iterator[str]:
    """Words that begin with #, without it and without what is no letter or number at their end."""
    for word in _HASHTAG.findall(text):
        end = len(word)
        while end and not _is_alphanumeric(word[end - 1]):
            end -= 1
        if end:
            yield word[:end]


def _is_of_word(char: str) -> bool:
    """Unicode's idea of a word, which is upstream's; Python's has no combining marks."""
    category = unicodedata.category(char)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or char in _JOINERS


def _is_alphanumeric(char: str) -> bool:
    """As upstream has it, or nearly: Unicode counts most vowel signs as letters, and Python none."""
    if char.isalnum():
        return True
    if unicodedata.category(char) not in ("Mc", "Mn"):
        return False
    is_selector = "\ufe00" <= char <= "\ufe0f" or char >= "\U000e0100" or char == "\u034f"
    position = unicodedata.combining(char)  # 10 to 36: the points of Hebrew and Arabic
    return (position == 0 and not is_selector) or 10 <= position <= 36


def dump_record(record: Record) -> bytes:
    """One line of a partition."""
    return f"{_encode(record)}\n".encode()


def pretty(document: Any) -> bytes:
    """A document of its own, such as the manifest."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False).encode()


def parse_line(raw: bytes) -> Record:
    """The record in one line. Raises ValueError for whatever upstream's reader would not take as JSON."""
    try:
        record = _DECODER.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _refuse_depth(record)
    if b"\\ud" in raw or b"\\uD" in raw:
        _refuse_surrogates(record)
    return record


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise ValueError("is nested too deeply")


def _refuse_surrogates(record: Record) -> None:
    try:
        dump_record(record)
    except UnicodeEncodeError as error:
        raise ValueError("has half of a surrogate pair") from error


def _unique_members(pairs: list[tuple[str, Any]]) -> Record:
    members = dict(pairs)
    if len(members) != len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"has two members named {name!r}")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("has a number that is too large")
    return number


def _exact(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("has a number with too many digits") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"has {name}, which is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_finite, parse_int=_exact, parse_constant=_refuse_constant
)
