"""Kinds of values in the documents of the Agent Life Format, and what is wrong with a value that is of another.

A Kind notes all of it: unreadable where upstream's reader gives up, error where its validator says so, warning for what
both let pass. Which member has which kind is in rules.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from math import isfinite
from typing import Any, NamedTuple, TypeGuard

from truekeep.integrations.alf.record_times import parse_moment

UNREADABLE, ERROR, WARNING = "unreadable", "error", "warning"
LEVELS = (UNREADABLE, ERROR, WARNING)
MOST_TOLD = 100  # of each level, for one document: a list of a million wrong things is told by its first

_HYPHENATED = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(rf"(?:urn:uuid:)?{_HYPHENATED}|[0-9a-f]{{32}}|\{{{_HYPHENATED}\}}", re.IGNORECASE | re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class DocumentErrors:
    """What is wrong with one document."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self._told: Counter[str] = Counter()

    def add(self, level: str, place: str, what: str) -> None:
        self._told[level] += 1
        if self._told[level] <= MOST_TOLD:
            self.problems.append((level, f"{place} {what}" if place else what))


class ValueKind(NamedTuple):
    """What a value may be."""

    look: Callable[[DocumentErrors, str, Any], None]
    is_many: bool = False  # a list or a map, for which null does not stand


def look(kind: ValueKind, document: object) -> list[tuple[str, str]]:
    """What is wrong with a document: level and message."""
    found = DocumentErrors()
    kind.look(found, "", document)
    return found.problems


def parse_uuid(value: object) -> bytes | None:
    """The 16 bytes of a UUID in any spelling that the format takes."""
    if not isinstance(value, str) or not _UUID.fullmatch(value) or (len(value) == 45 and not value.startswith("urn:")):
        return None
    return bytes.fromhex(value.removeprefix("urn:uuid:").strip("{}").replace("-", ""))


def parse_day(value: object) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) and _DAY.fullmatch(value) else None
    except ValueError:
        return None


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value in a message: short, and without anything that a terminal would obey."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:60]!r}…"
    if isinstance(value, float) or (is_whole(value) and abs(value) < 1 << 64):  # more digits than that say nothing
        return str(value)
    return _named(value)


def _named(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


# --- single values


def _is_text(found: DocumentErrors, place: str, value: Any) -> bool:
    if isinstance(value, str):
        return True
    found.add(UNREADABLE, place, f"is {_named(value)}, not text")
    return False


def _look_text(found: DocumentErrors, place: str, value: Any) -> None:
    _is_text(found, place, value)


def _look_away(_found: DocumentErrors, _place: str, _value: Any) -> None:
    pass


def _look_filled(found: DocumentErrors, place: str, value: Any) -> None:
    if _is_text(found, place, value) and not value:
        found.add(ERROR, place, "is empty")


def _look_moment(found: DocumentErrors, place: str, value: Any) -> None:
    if not _is_text(found, place, value):
        return
    if parse_moment(value) is None:
        found.add(UNREADABLE, place, f"is {shown(value)}, no moment with its offset such as 2026-01-15T10:30:00Z")
    elif "t" in value or "z" in value:
        found.add(WARNING, place, "has its T or Z in lower case, which some readers refuse")


def _look_day(found: DocumentErrors, place: str, value: Any) -> None:
    if _is_text(found, place, value) and parse_day(value) is None:
        found.add(UNREADABLE, place, f"is {shown(value)}, no day such as 2026-01-15")


def _look_uuid(found: DocumentErrors, place: str, value: Any) -> None:
    if _is_text(found, place, value) and parse_uuid(value) is None:
        found.add(UNREADABLE, place, f"is {shown(value)}, no UUID")


def _look_flag(found: DocumentErrors, place: str, value: Any) -> None:
    if not isinstance(value, bool):
        found.add(UNREADABLE, place, f"is {_named(value)}, not true or false")


def _is_number(found: DocumentErrors, place: str, value: Any) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            if isfinite(value):
                return True
        except OverflowError:
            pass
        found.add(UNREADABLE, place, "is a number that is too large")
    else:
        found.add(UNREADABLE, place, f"is {_named(value)}, not a number")
    return False


def _look_number(found: DocumentErrors, place: str, value: Any) -> None:
    _is_number(found, place, value)


def _look_share(found: DocumentErrors, place: str, value: Any) -> None:
    if _is_number(found, place, value) and not 0 <= value <= 1:
        found.add(ERROR, place, f"is {shown(value)}; it must be between 0 and 1")


def _look_integer(found: DocumentErrors, place: str, value: Any) -> None:
    if not is_whole(value):
        what = shown(value) if isinstance(value, float) else _named(value)
        found.add(UNREADABLE, place, f"is {what}, not a whole number")


def whole(bits: int, *, least: int = 0) -> ValueKind:
    """A whole number that an unsigned integer of so many bits holds."""

    def look_whole(found: DocumentErrors, place: str, value: Any) -> None:
        if not is_whole(value):
            _look_integer(found, place, value)
        elif not 0 <= value < 1 << bits:
            found.add(UNREADABLE, place, "is negative" if value < 0 else "is a number that is too large")
        elif value < least:
            found.add(ERROR, place, f"is {value}; it must be at least {least}")

    return ValueKind(look_whole)


def one_of(known: str, unknown: str) -> ValueKind:
    """One of these words; another is kept, and treated as `unknown` says."""
    words = frozenset(known.split())

    def look_word(found: DocumentErrors, place: str, value: Any) -> None:
        if _is_text(found, place, value) and value not in words:
            found.add(WARNING, place, f"is {shown(value)}, an unknown value; it is {unknown}")

    return ValueKind(look_word)


def written(pattern: re.Pattern[str], example: str) -> ValueKind:
    def look_written(found: DocumentErrors, place: str, value: Any) -> None:
        if _is_text(found, place, value) and not pattern.fullmatch(value):
            found.add(ERROR, place, f"is {shown(value)}, not of the form {example}")

    return ValueKind(look_written)


# --- values of values


def list_of(kind: ValueKind, also: Callable[[DocumentErrors, str, list[Any]], None] | None = None) -> ValueKind:
    def look_list(found: DocumentErrors, place: str, value: Any) -> None:
        if not isinstance(value, list):
            found.add(UNREADABLE, place, f"is {_named(value)}, not a list")
            return
        if kind is NUMBER and set(map(type, value)) == {float} and all(map(isfinite, value)):
            return  # a vector: thousands of them, and nothing else to say
        for number, item in enumerate(value):
            kind.look(found, f"{place}[{number}]", item)
        if also is not None:
            also(found, place, value)

    return ValueKind(look_list, is_many=True)


def map_of(kind: ValueKind) -> ValueKind:
    def look_map(found: DocumentErrors, place: str, value: Any) -> None:
        if not isinstance(value, dict):
            found.add(UNREADABLE, place, f"is {_named(value)}, not an object")
            return
        for name, item in value.items():
            kind.look(found, f"{place}.{_shown_name(name)}", item)

    return ValueKind(look_map, is_many=True)


def shape(
    needed: Mapping[str, ValueKind],
    optional: Mapping[str, ValueKind] | None = None,
    *,
    also: Callable[[DocumentErrors, str, dict[str, Any]], None] | None = None,
    tells_unknown: bool = False,
) -> ValueKind:
    """An object with these members. `also`: what two of them must agree on; they may still be of any type."""
    optional = optional or {}

    def look_shape(found: DocumentErrors, place: str, value: Any) -> None:
        if not isinstance(value, dict):
            found.add(UNREADABLE, place, f"is {_named(value)}, not an object")
            return
        inside = f"{place}." if place else ""
        for name, kind in needed.items():
            if name in value:
                kind.look(found, inside + name, value[name])
            else:
                found.add(UNREADABLE, inside + name, "is missing")
        for name, kind in optional.items():
            if name in value and (value[name] is not None or kind.is_many):
                kind.look(found, inside + name, value[name])
        if also is not None:
            also(found, place, value)
        if tells_unknown:
            for name in value:
                if name not in needed and name not in optional:
                    found.add(WARNING, inside + _shown_name(name), "is not in the format; it is kept")

    return ValueKind(look_shape)


def _shown_name(name: object) -> str:
    return name if isinstance(name, str) and name.isidentifier() and len(name) <= 60 else shown(name)


TEXT = ValueKind(_look_text)
FILLED = ValueKind(_look_filled)
MOMENT = ValueKind(_look_moment)
DAY = ValueKind(_look_day)
UUID = ValueKind(_look_uuid)
FLAG = ValueKind(_look_flag)
NUMBER = ValueKind(_look_number)
INTEGER = ValueKind(_look_integer)
SHARE = ValueKind(_look_share)
ANYTHING = ValueKind(_look_away)
WHOLE_32, WHOLE_64 = whole(32), whole(64)
COUNTED = whole(32, least=1)  # versions begin at 1
TEXTS, UUIDS = list_of(TEXT), list_of(UUID)
