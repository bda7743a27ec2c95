"""Read the facts of one memory file that maintenance needs. Pure text.

From a card its topic, days and words; from a log its tagged entries and statements; from every file the values that it
gives to things, its links, and its problems.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple

from truekeep.core.model import CARDS, INDEX
from truekeep.memory.card import Card, parse_card, parse_day, words_of
from truekeep.memory.file_scan import day_in
from truekeep.memory.importance import TaggedEntry, parse_entries
from truekeep.memory.links import find_links
from truekeep.memory.values import Value, find_values
from truekeep.text.encoding import decode_text
from truekeep.text.injection import find_planted
from truekeep.text.program_text import cover_lines, find_program_lines
from truekeep.text.secrets.scanner import cover_secrets, find_secrets, mask_lines, withhold
from truekeep.text.tables import iter_prose
from truekeep.text.words import cjk_pairs

_MAX_TEXT_PROBLEMS = 20  # of one kind in one file
BARE_FRONTMATTER = "bare-frontmatter"  # told quietly: nothing depends on it
DAYS = ("created", "updated", "confirmed")
_CARDS = f"{CARDS}/"

MIN_UTF16_ZEROS = 0.2  # of the bytes
_CONVERT = "it is not UTF-8 text: convert it, for example: iconv -f {} -t utf-8"


class Facts(NamedTuple):
    """The facts of one memory file."""

    day: str  # ISO; empty where it is not known
    card: Card | None = None
    entries: tuple[TaggedEntry, ...] = ()
    statements: tuple[tuple[int, str], ...] = ()  # of a log, with their lines
    links: tuple[tuple[str, int], ...] = ()  # paths, with their lines
    values: tuple[Value, ...] = ()  # their places are those in the whole file
    problems: tuple[tuple[int, str, str], ...] = ()  # line, code, what

    @property
    def repository(self) -> str:
        return self.card.repository if self.card is not None else ""


def _why_not_text(data: bytes) -> tuple[int, str, str]:
    """The line, code and sentence for a file that is not UTF-8 text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return 1, "not-text", _CONVERT.format("utf-16")
    if data.count(0) > MIN_UTF16_ZEROS * len(data):
        return 1, "not-text", _CONVERT.format("utf-16le" if data[1::2].count(0) >= data[::2].count(0) else "utf-16be")
    shown = data.decode("utf-8", "replace")
    first = min((at for at in (shown.find("\ufffd"), shown.find("\0")) if at >= 0), default=0)
    if "\0" not in shown and all(letter.isascii() or letter == "\ufffd" for letter in shown):
        return 1, "not-text", _CONVERT.format("windows-1252")
    what = "it has NUL bytes" if "\0" in shown else "most of the file is UTF-8 text, this line is not"
    return shown.count("\n", 0, first) + 1, "not-text", f"{what}: correct it in an editor"


def read_facts(path: str, store: str, data: bytes) -> Facts:
    whole = decode_text(data)
    text = (
        cover_secrets(whole) if whole is not None else None
    )  # the survey stays on disk, so it must not have a credential
    is_card = path.startswith(_CARDS) and "/" not in path[len(_CARDS) :]
    card = parse_card(path.rpartition("/")[2], text) if is_card and text is not None else None
    day = day_in(path) if store == "logs" else _last_day(card)
    if text is None or whole is None:
        return Facts(day, problems=(_why_not_text(data),))
    problems = list(card_problems(card)) if card is not None else []
    problems += _text_problems(path, whole, text)
    by_program = find_program_lines(whole) if card is None else {}
    entries: list[TaggedEntry] = []
    statements: Iterable[tuple[int, str]] = ()
    if store == "logs":
        tagged, bad = parse_entries(whole)
        entries = [entry._replace(text=withhold(entry.text)) for entry in tagged]
        problems += ((tag.line, "bad-tag", tag.what) for tag in bad)
        statements = log_statements(cover_lines(mask_lines(whole), by_program))  # a mask: it is not to be proposed
    return Facts(
        day,
        card,
        entries=tuple(entries),
        statements=tuple(statements),
        links=tuple(find_links(text, path)),
        # The archive says nothing about the present.
        values=tuple(_values(cover_lines(text, by_program), card)) if path != INDEX and store != "archive" else (),
        problems=tuple(problems),
    )


def find_text_problems(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Credentials in a text, and orders that somebody may have planted there: line, code and what."""
    return _text_problems(path, text, cover_secrets(text))


def _text_problems(path: str, whole: str, covered: str) -> Iterator[tuple[int, str, str]]:
    """Credentials in a file, and orders that somebody may have planted there."""
    if covered != whole:
        for secret in find_secrets(whole)[:_MAX_TEXT_PROBLEMS]:
            line = whole.count("\n", 0, secret.start) + 1
            yield line, "credential", f"looks like a credential ({secret.rule}); take it out, and revoke it"
    for order in find_planted(path, covered)[:_MAX_TEXT_PROBLEMS]:
        yield order.line, "planted-order", f"{order.kind}: {order.excerpt}"


def _values(text: str, card: Card | None) -> Iterator[Value]:
    if card is None:
        yield from find_values(_FRONTMATTER.sub(lambda match: _BLANKED.sub(" ", match[0]), text))
        return
    above = len(text) - len(card.body)
    lines = text.count("\n", 0, above)
    for kind, subject, value, line, start, end in find_values(card.body, topic=card.topic, repository=card.repository):
        yield Value(kind, subject, value, line + lines, start + above, end + above)


_FRONTMATTER = re.compile(r"\A---[ \t]*\r?\n.{0,20000}?\n---[ \t]*(?=\r?\n|\Z)", re.DOTALL)
_BLANKED = re.compile(r"[^\n]")  # so that offsets and lines stay
_STATEMENT = re.compile(
    r"[ \t]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(?P<task>\[[ xX~-]\][ \t]+)?(?:\[[^\]|]{0,80}\|i=[^\]]{0,20}\][ \t]*)?"
)
MIN_STATEMENT_WORDS = 4
_MAX_STATEMENT_CHARS = 600


def log_statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements of a log, line by line, without headings, tasks, list marks and tags."""
    for number, line in iter_prose(text):
        if line.startswith(("#", "|", ">")) or not line.strip():
            continue
        lead = _STATEMENT.match(line)
        if lead is not None and lead["task"]:
            continue  # a list of tasks is copied from day to day
        bare = line[lead.end() if lead else 0 :].strip()[:_MAX_STATEMENT_CHARS]
        if len(statement_words(bare)) >= MIN_STATEMENT_WORDS:
            yield number, bare


def statement_words(text: str) -> set[int]:
    """The hashes of the words that identify a statement: without numbers and short words."""
    words = {hash_word(word) for word in words_of(text) if len(word) > 2 and not word[0].isdigit()}
    return words | _pair_words(text)


def _pair_words(text: str) -> set[int]:
    """The hashes of the pairs of characters in Chinese, Japanese and Korean, which have no blanks between words."""
    return set() if text.isascii() else {hash_word(pair) for pair in cjk_pairs(text)}


def line_keys(text: str) -> set[int]:
    """Keys that statements of mostly the same words share: their least words by several hashes."""
    words = statement_words(text)
    keys = set()
    for number, factor in enumerate((0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)):
        least = sorted((word * factor) & 0xFFFF_FFFF for word in words)[:2]
        keys.add(number << 60 | least[0] << 28 ^ least[1])
    return keys


def hash_word(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


def card_words(card: Card) -> set[int]:
    """The hashes of a card's words, without short ones."""
    words = (*words_of(card.topic), *words_of(card.body))
    return {hash_word(word) for word in words if len(word) > 2 or word.isdigit()} | _pair_words(
        f"{card.topic}\n{card.body}"
    )


def _last_day(card: Card | None) -> str:
    if card is None:
        return ""
    return max(iso_day(card.front.text(key)) for key in DAYS)


def iso_day(text: str) -> str:
    day = parse_day(text)
    return day.isoformat() if day is not None else ""


def card_problems(card: Card) -> Iterable[tuple[int, str, str]]:
    """The problems of a card's frontmatter: line, code and reason."""
    front = card.front
    if card.problem:
        where, _, what = card.problem.removeprefix("line ").partition(": ")
        yield (int(where) if where.isdecimal() else 1), "broken-frontmatter", what or card.problem
        return
    if not front.fields:
        yield 1, "no-frontmatter", "it has no frontmatter, so its topic and age are unknown"
        return
    if not front.text("topic"):
        yield 1, "no-topic", "it has no topic"
    missing = [key for key in ("category", "tags") if front.find(key) is None]
    if missing:
        yield 1, BARE_FRONTMATTER, f"its frontmatter has no {' and no '.join(missing)}"
    found: dict[str, date] = {}
    for line, field in _numbered(front.fields):
        if field.key not in DAYS:
            continue
        day = parse_day(front.text(field.key))
        if day is None:
            yield line, "bad-date", f"{field.key} is no day of the calendar; write YYYY-MM-DD"
        else:
            found[field.key] = day
    if not found:
        if not any(front.text(key) for key in DAYS):
            yield 1, "no-date", "it has no date, so its age is unknown"
    elif "created" in found and "updated" in found and found["updated"] < found["created"]:
        yield 1, "dates-lie", f"it was updated on {found['updated']}, before it was created on {found['created']}"


def _numbered(fields: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    line = 2
    for field in fields:
        yield line, field
        line += field.raw.count("\n")
