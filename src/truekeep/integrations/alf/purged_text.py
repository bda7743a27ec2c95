"""Find purged text, however it is quoted, escaped or encoded.

A text is searched as it is and, if it contains escapes, as JSON would decode it, also JSON within JSON; each time
without indents, quote marks and trailing whitespace, in Unicode's composed form. Matches are returned as spans of the
original text, so that everything around them stays byte for byte. Pure: reads no archive.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from truekeep.integrations.alf.record_ids import WHITESPACE

MIN_CHARACTERS = 16  # a shorter text is only found as a whole line
MIN_LINE_CHARACTERS = 8  # a shorter text is not searched for at all
_MAX_JSON_DEPTH = 4  # of JSON within JSON
_MAX_OVERLAP_BYTES = 1 << 20
_LEADING = f"{WHITESPACE}>\ufeff"
_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(rf'\\(?:u([dD][89abAB]{_HEX}{{2}})\\u([dD][c-fC-F]{_HEX}{{2}})|u({_HEX}{{4}})|(["\\/bfnrt]))')
_ESCAPED_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MARKS = re.compile(rf"(?:[{_LEADING}]|#{{1,6}}(?=\s)|[-*+](?=\s|$)|\d{{1,9}}[.)](?=\s|$)|\[[ xX]\](?=\s))*")
_LINK = re.compile(r"\]\([^()\n]*\)")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)? ?(?:Z|[+-]\d\d:?\d\d)?)?")
_TABLE_RULE = re.compile(r"\|?[ :|-]*-[ :|-]*")
_KEY = re.compile(r"([\w-]+):(?:\s+|$)")
_FENCES = ("```", "~~~")
_COMMON_KEYS = frozenset(
    (
        *("category", "tags", "created", "updated", "repository", "writer", "status", "supersedes", "superseded_by"),
        *("verified", "trust", "type", "kind"),
    )
)
"""Frontmatter keys whose values many notes share, so that they do not identify a note."""


class DecodedText:
    """A decoded text, with the position of each part in the text that it was decoded from."""

    def __init__(self, text: str, source: DecodedText | None = None) -> None:
        self.text = text
        self._source = source
        self._starts: list[int] = []
        self._origins: list[tuple[int, int]] = []  # start and end; an end of -1 marks a part that was not changed

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the source of a span of this text."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        begin = self._origins[first][0] + (start - self._starts[first] if self._origins[first][1] < 0 else 0)
        origin, stop = self._origins[last]
        return begin, stop if stop >= 0 else origin + end - self._starts[last]

    def root_span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the original text of a span of this text."""
        return self._source.root_span(*self.span(start, end)) if self._source is not None else (start, end)

    def unescaped(self) -> DecodedText:
        """The text with its JSON escapes decoded."""
        found = DecodedText("", self)
        parts: list[str] = []
        at = length = 0
        for match in _ESCAPE.finditer(self.text):
            for part, origin in ((self.text[at : match.start()], (at, -1)), (_decode_escape(match), match.span())):
                if part:
                    found._starts.append(length)
                    found._origins.append(origin)
                    parts.append(part)
                    length += len(part)
            at = match.end()
        found._starts.append(length)
        found._origins.append((at, -1))
        found.text = "".join((*parts, self.text[at:]))
        return found

    def folded(self) -> DecodedText:
        """The same as fold(), with positions."""
        found = DecodedText("", self)
        is_composed = unicodedata.is_normalized("NFC", self.text)
        parts: list[str] = []
        at = length = 0
        for line in self.text.split("\n"):
            start = at + len(line) - len(line.lstrip(_LEADING))
            bare = _strip_line(line)
            for part, origin, size in ((bare, start, -1),) if is_composed else _iter_composed(bare, start):
                found._starts.append(length)
                found._origins.append((origin, size))
                parts.append(part)
                length += len(part)
            parts.append("\n")
            length += 1
            at += len(line) + 1
        found.text = "".join(parts[:-1])
        return found


def _decode_escape(match: re.Match[str]) -> str:
    high, low, code, letter = match.groups()
    if letter:
        return _ESCAPED_LETTERS.get(letter, str(letter))
    if code:
        return chr(int(code, 16))
    return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))


def _iter_composed(line: str, at: int) -> Iterator[tuple[str, int, int]]:
    """The composed characters of a line, each with the span that it was made of."""
    start = 0
    for end in range(1, len(line) + 1):
        if end < len(line):
            here = line[start:end]
            both = unicodedata.normalize("NFC", line[start : end + 1])
            is_apart = both == unicodedata.normalize("NFC", here) + unicodedata.normalize("NFC", line[end])
            if unicodedata.combining(line[end]) or not is_apart:
                continue
        yield unicodedata.normalize("NFC", line[start:end]), at + start, at + end
        start = end


def _strip_line(line: str) -> str:
    return line.lstrip(_LEADING).rstrip(WHITESPACE)


def fold(text: str) -> str:
    """The text without indents, quote marks and trailing whitespace, in Unicode's composed form."""
    return "\n".join(map(_strip_line, unicodedata.normalize("NFC", text).split("\n")))


def iter_decoded(text: str, decode: Callable[[re.Match[str]], str] = _decode_escape) -> Iterator[str]:
    """The text as it is, and with its JSON escapes decoded once, twice and so on."""
    for _ in range(_MAX_JSON_DEPTH):
        yield text
        decoded = _ESCAPE.sub(decode, text) if "\\" in text else text
        if decoded == text:
            return
        text = decoded


def _decode(text: str, depth: int) -> DecodedText:
    decoded = DecodedText(text)
    for _ in range(depth):
        decoded = decoded.unescaped()
    return decoded


def _as_bytes(text: str) -> str:
    """The UTF-8 bytes of a text, as one character each."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _decode_escape_to_bytes(match: re.Match[str]) -> str:
    return _as_bytes(_decode_escape(match))


# --- Searching ------------------------------------------------------------------------------------------------------


class PurgedText:
    """The texts to remove: each as a whole, and each of its lines that is long enough to identify it."""

    def __init__(self, texts: Iterable[str]) -> None:
        long: set[str] = set()
        alone: set[str] = set()  # only matched as whole lines
        for text in texts:
            folded = fold(text).strip(WHITESPACE)
            if len(folded) >= MIN_CHARACTERS:
                long |= {folded, *identifying_lines(text)}
            elif len(folded) >= MIN_LINE_CHARACTERS and not folded.startswith("#"):
                alone.add(folded)
        self.long = sorted(long, key=lambda text: (-len(text), text))
        self.alone = sorted(alone)
        self._min_length = min(map(len, (*long, *alone)), default=0)
        # In binary files a text is recognised by any of its lines.
        single = [text for text in self.long if "\n" not in text]
        needed = single + [text for text in self.long if not any(line in text for line in single)]
        forms = dict.fromkeys(form for text in needed for form in (text, unicodedata.normalize("NFD", text)))
        self._utf8_forms = ["\n".join(map(_strip_line, _as_bytes(form).split("\n"))) for form in forms]
        self._other_encodings = list(dict.fromkeys(code for form in forms for code in _encoded(form)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of purged text in a text with plain line feeds: whole lines if they contain nothing else."""
        for depth, decoded in enumerate(
            iter_decoded(text) if self._min_length and len(text) >= self._min_length else ()
        ):
            plain = fold(decoded)
            found = [(needle, False) for needle in self.long if needle in plain]
            found += [(needle, True) for needle in self.alone if needle in plain]
            if not found:
                continue
            mapped = _decode(text, depth)
            folded = mapped.folded()
            for needle, must_be_alone in found:
                at = folded.text.find(needle)
                while at >= 0:
                    start, end, is_alone = _widen_to_lines(mapped.text, *folded.span(at, at + len(needle)))
                    if is_alone or not must_be_alone:
                        yield mapped.root_span(start, end)
                    at = folded.text.find(needle, at + 1)

    def is_in(self, text: str) -> bool:
        return next(self.spans(text), None) is not None

    def is_in_binary(self, pieces: Iterable[bytes]) -> bool:
        """True if the bytes of a binary file contain one of the texts or lines. They are read piece by piece."""
        if not self._utf8_forms:
            return False
        overlap = min(_MAX_OVERLAP_BYTES, 8 * max(map(len, self._utf8_forms)))
        has_lines = any("\n" in form for form in self._utf8_forms)
        tail = b""
        for piece in pieces:
            data = tail + piece
            if any(form in data for form in self._other_encodings):
                return True
            for decoded in iter_decoded(data.decode("latin-1"), _decode_escape_to_bytes):
                plain = "\n".join(map(_strip_line, decoded.split("\n"))) if has_lines else decoded
                if any(form in plain for form in self._utf8_forms):
                    return True
            tail = data[-overlap:]
        return False


def _encoded(text: str) -> Iterator[bytes]:
    """The text in encodings other than UTF-8."""
    for codec in ("utf-16-le", "utf-16-be", "cp1252"):
        try:
            yield text.encode(codec)
        except UnicodeEncodeError:
            continue


def _widen_to_lines(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """Widen a span to whole lines if they contain nothing else; the last value is True if they do not."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = last if last >= 0 else len(text)
    before, after = _strip_markup(text[first:start]), text[end:last].strip(WHITESPACE)
    is_link = before == "[" and _LINK.fullmatch(after) is not None  # whose text would be empty
    if (before or after) and not is_link:
        return start, end, False
    return first, min(last + 1, len(text)), True


def _strip_markup(line: str) -> str:
    """A line without indent, quote marks, bullet and heading marks."""
    return _MARKS.sub("", line, count=1).rstrip(WHITESPACE) if line else ""


def identifying_lines(text: str) -> set[str]:
    """The lines that identify a text, without markup; table headers, fences and timestamps are left out."""
    lines = [line.strip(_LEADING) for line in unicodedata.normalize("NFC", text).split("\n")]
    front = _front_end(lines)
    body = [_value(line) for line in _telling_lines(lines[:front])]
    rest = lines[front:]
    pairs = enumerate(pairwise(rest))
    headers = {at for at, (line, below) in pairs if "|" in line and "|" in below and _TABLE_RULE.fullmatch(below)}
    body += [_strip_markup(line) for at, line in enumerate(rest) if at not in headers]
    return {line for line in body if len(line) >= MIN_CHARACTERS and not _is_structure(line)}


def _front_end(lines: list[str]) -> int:
    """The number of lines of the frontmatter."""
    start = next((at for at, line in enumerate(lines) if line), 0)
    if not lines or lines[start] != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines) if at > start and line in ("---", "...")), 0)


def _telling_lines(front: list[str]) -> Iterator[str]:
    is_telling = False
    for line in front:
        if match := _KEY.match(line):
            is_telling = match[1].casefold() not in _COMMON_KEYS
        if is_telling:
            yield line


def _value(line: str) -> str:
    return (
        _strip_markup(_KEY.sub("", line, count=1)).strip("\"'" + WHITESPACE)
        if _KEY.match(line)
        else _strip_markup(line)
    )


def _is_structure(line: str) -> bool:
    has_text = any(map(str.isalnum, line)) and not line.startswith(_FENCES)
    return not has_text or _TIMESTAMP.fullmatch(line) is not None
