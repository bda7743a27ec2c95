"""What must not be said any more, found however it is spelled.

A text is looked at as it stands and, where it has escapes, as JSON would read it, and JSON in JSON; each time without
indents, quote marks and blanks at line ends, in Unicode's composed form. What is found so is told as places in the text
as it stands, so that what is around it stays byte for byte. Pure: it reads no archive.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from truekeep.integrations.alf.record_ids import WHITESPACE

LEAST = 16  # characters: what is shorter is not looked for inside of lines
LEAST_LINE = 8  # characters: what is shorter is no text that a line elsewhere would be known by
_DEPTH = 4  # JSON in JSON in JSON
_WINDOW = 1 << 20
_LEAD = f"{WHITESPACE}>\ufeff"
_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(rf'\\(?:u([dD][89abAB]{_HEX}{{2}})\\u([dD][c-fC-F]{_HEX}{{2}})|u({_HEX}{{4}})|(["\\/bfnrt]))')
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MARKS = re.compile(rf"(?:[{_LEAD}]|#{{1,6}}(?=\s)|[-*+](?=\s|$)|\d{{1,9}}[.)](?=\s|$)|\[[ xX]\](?=\s))*")
_LINK = re.compile(r"\]\([^()\n]*\)")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)? ?(?:Z|[+-]\d\d:?\d\d)?)?")
_RULE = re.compile(r"\|?[ :|-]*-[ :|-]*")
_KEY = re.compile(r"([\w-]+):(?:\s+|$)")
_FENCES = ("```", "~~~")
_NO_MEMORY = frozenset(
    (
        *("category", "tags", "created", "updated", "repository", "writer", "status", "supersedes", "superseded_by"),
        *("verified", "trust", "type", "kind"),
    )
)
"""Keys of a frontmatter whose values many notes share: they say nothing that a note would be known by."""


class Spelling:
    """One way to read a text: what it says then, and where each part of that stands in what it was read from."""

    def __init__(self, text: str, under: Spelling | None = None) -> None:
        self.text = text
        self._under = under
        self._starts: list[int] = []
        self._origins: list[tuple[int, int]] = []  # the second is -1 where the piece is the same on both sides

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where this part stands in the text below."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        begin = self._origins[first][0] + (start - self._starts[first] if self._origins[first][1] < 0 else 0)
        origin, stop = self._origins[last]
        return begin, stop if stop >= 0 else origin + end - self._starts[last]

    def root_span(self, start: int, end: int) -> tuple[int, int]:
        """Where this part stands in the text that was read first."""
        return self._under.root_span(*self.span(start, end)) if self._under is not None else (start, end)

    def unescaped(self) -> Spelling:
        """As JSON reads it."""
        found = Spelling("", self)
        parts: list[str] = []
        at = length = 0
        for match in _ESCAPE.finditer(self.text):
            for part, origin in ((self.text[at : match.start()], (at, -1)), (_meant(match), match.span())):
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

    def folded(self) -> Spelling:
        """As `fold` gives it, with the places."""
        found = Spelling("", self)
        is_composed = unicodedata.is_normalized("NFC", self.text)
        parts: list[str] = []
        at = length = 0
        for line in self.text.split("\n"):
            start = at + len(line) - len(line.lstrip(_LEAD))
            bare = _bare(line)
            for part, origin, size in ((bare, start, -1),) if is_composed else _composed(bare, start):
                found._starts.append(length)
                found._origins.append((origin, size))
                parts.append(part)
                length += len(part)
            parts.append("\n")
            length += 1
            at += len(line) + 1
        found.text = "".join(parts[:-1])
        return found


def _meant(match: re.Match[str]) -> str:
    high, low, code, letter = match.groups()
    if letter:
        return _LETTERS.get(letter, str(letter))
    if code:
        return chr(int(code, 16))
    return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))


def _composed(line: str, at: int) -> Iterator[tuple[str, int, int]]:
    """The characters of a line as Unicode composes them, with the places that they are made of."""
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


def _bare(line: str) -> str:
    return line.lstrip(_LEAD).rstrip(WHITESPACE)


def fold(text: str) -> str:
    """A text without indents, quote marks and blanks at line ends, in Unicode's composed form."""
    return "\n".join(map(_bare, unicodedata.normalize("NFC", text).split("\n")))


def spellings(text: str, meant: Callable[[re.Match[str]], str] = _meant) -> Iterator[str]:
    """A text as it stands, and as JSON reads it, down to JSON in JSON."""
    for _ in range(_DEPTH):
        yield text
        read = _ESCAPE.sub(meant, text) if "\\" in text else text
        if read == text:
            return
        text = read


def _spelling(text: str, depth: int) -> Spelling:
    shown = Spelling(text)
    for _ in range(depth):
        shown = shown.unescaped()
    return shown


def _as_bytes(text: str) -> str:
    """A text with a character for each of its bytes in UTF-8."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _bytes_meant(match: re.Match[str]) -> str:
    return _as_bytes(_meant(match))


# --- What is looked for ---------------------------------------------------------------------------------------------


class Cuts:
    """The texts that must not be found afterwards: each as a whole, and each of its lines that can be known again."""

    def __init__(self, texts: Iterable[str]) -> None:
        long: set[str] = set()
        alone: set[str] = set()
        for text in texts:
            whole = fold(text).strip(WHITESPACE)
            if len(whole) >= LEAST:
                long |= {whole, *said_lines(text)}
            elif len(whole) >= LEAST_LINE and not whole.startswith("#"):
                alone.add(whole)
        self.long = sorted(long, key=lambda text: (-len(text), text))
        self.alone = sorted(alone)
        self.least = min(map(len, (*long, *alone)), default=0)
        # In bytes a line tells as much as the whole that it is of.
        single = [text for text in self.long if "\n" not in text]
        telling = single + [text for text in self.long if not any(line in text for line in single)]
        forms = dict.fromkeys(form for text in telling for form in (text, unicodedata.normalize("NFD", text)))
        self._narrow = ["\n".join(map(_bare, _as_bytes(form).split("\n"))) for form in forms]
        self._wide = list(dict.fromkeys(code for form in forms for code in _encoded(form)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text whose lines end in line feeds: whole lines where they say nothing else."""
        for depth, said in enumerate(spellings(text) if self.least and len(text) >= self.least else ()):
            plain = fold(said)
            known = [(needle, False) for needle in self.long if needle in plain]
            known += [(needle, True) for needle in self.alone if needle in plain]
            if not known:
                continue
            shown = _spelling(text, depth)
            folded = shown.folded()
            for needle, has_to_be_alone in known:
                at = folded.text.find(needle)
                while at >= 0:
                    start, end, is_alone = _lines_around(shown.text, *folded.span(at, at + len(needle)))
                    if is_alone or not has_to_be_alone:
                        yield shown.root_span(start, end)
                    at = folded.text.find(needle, at + 1)

    def is_in(self, text: str) -> bool:
        return next(self.spans(text), None) is not None

    def are_in(self, pieces: Iterable[bytes]) -> bool:
        """Whether bytes that are no text hold one of the texts or lines; they pass through piece by piece."""
        if not self._narrow:
            return False
        overlap = min(_WINDOW, 8 * max(map(len, self._narrow)))
        has_lines = any("\n" in form for form in self._narrow)
        tail = b""
        for piece in pieces:
            data = tail + piece
            if any(form in data for form in self._wide):
                return True
            for said in spellings(data.decode("latin-1"), _bytes_meant):
                plain = "\n".join(map(_bare, said.split("\n"))) if has_lines else said
                if any(form in plain for form in self._narrow):
                    return True
            tail = data[-overlap:]
        return False


def _encoded(text: str) -> Iterator[bytes]:
    """A text in encodings other than UTF-8."""
    for codec in ("utf-16-le", "utf-16-be", "cp1252"):
        try:
            yield text.encode(codec)
        except UnicodeEncodeError:
            continue


def _lines_around(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """A span of a text, widened to whole lines with their end where nothing else is said in them."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = last if last >= 0 else len(text)
    before, after = _unmarked(text[first:start]), text[end:last].strip(WHITESPACE)
    is_link = before == "[" and _LINK.fullmatch(after) is not None  # a link that would be called nothing
    if (before or after) and not is_link:
        return start, end, False
    return first, min(last + 1, len(text)), True


def _unmarked(line: str) -> str:
    """A line without indent, quote marks, bullet and heading marks."""
    return _MARKS.sub("", line, count=1).rstrip(WHITESPACE) if line else ""


def said_lines(text: str) -> set[str]:
    """The lines by which a text would be known elsewhere: what they say, without what they only have for order."""
    lines = [line.strip(_LEAD) for line in unicodedata.normalize("NFC", text).split("\n")]
    front = _front_end(lines)
    body = [_value(line) for line in _memory_of(lines[:front])]
    rest = lines[front:]
    pairs = enumerate(pairwise(rest))
    headers = {at for at, (line, below) in pairs if "|" in line and "|" in below and _RULE.fullmatch(below)}
    body += [_unmarked(line) for at, line in enumerate(rest) if at not in headers]
    return {line for line in body if len(line) >= LEAST and not _is_order(line)}


def _front_end(lines: list[str]) -> int:
    """How many lines the frontmatter has."""
    start = next((at for at, line in enumerate(lines) if line), 0)
    if not lines or lines[start] != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines) if at > start and line in ("---", "...")), 0)


def _memory_of(front: list[str]) -> Iterator[str]:
    is_memory = False
    for line in front:
        if match := _KEY.match(line):
            is_memory = match[1].casefold() not in _NO_MEMORY
        if is_memory:
            yield line


def _value(line: str) -> str:
    return _unmarked(_KEY.sub("", line, count=1)).strip("\"'" + WHITESPACE) if _KEY.match(line) else _unmarked(line)


def _is_order(line: str) -> bool:
    is_said = any(map(str.isalnum, line)) and not line.startswith(_FENCES)
    return not is_said or _MOMENT.fullmatch(line) is not None
