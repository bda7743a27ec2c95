"""What a sentence of a workspace is about: whether its line, headings or section name the folder or file of a thing.

A workspace tells of many projects, and their files and names are often called alike. Of several things with one name,
the one that the text itself is about is meant; a name that any project may have counts only where the text says whose.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

IN_LINE, IN_HEADING, IN_SECTION, NOT_NAMED = range(4)  # where a text names a thing, nearest first

MAX_SECTION_LINES = 60
MIN_NAME_CHARS = 4
MIN_WORD_CHARS = 4
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_BOLD_HEADING = re.compile(r" {0,3}\*\*([^*]{3,80})\*\*:?\s*\Z")
_BOLD_LEVEL = 7
_OTHER_AGENT = re.compile(r"/workspace-[a-z][\w-]*|/\.openclaw/agents/\w", re.IGNORECASE)
_NO_WORD = re.compile(r"[^a-z0-9]+")
_DATED_LINE = re.compile(
    r"\s*(?:[-*+>|]\s*|\d{1,4}[.)]\s+)?[^\w\n]{0,4}(?:[A-Za-z]{0,8}\d{0,4}\W{1,5})?"
    r"20\d\d[-/.](?:0[1-9]|1[0-2])[-/.](?:0[1-9]|[12]\d|3[01])(?:T\d|\b)"
)  # "- 2026-04-24T11:28 | done", "[2026-04-24] …", "Tue 2026-04-24: …"
_DAY_ALONE_CHARS = 40
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,3}[.)])\s")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_GENERIC_NAMES = frozenset(
    "src lib app apps script scripts tool tools bin memory doc docs test tests package packages core util utils common "
    "shared main index server client clients backend frontend api web ui page pages config configs settings component "
    "components hook hooks module modules plugin plugins service services skill skills agent agents project projects "
    "repo repos workspace data tmp temp archive archives lab labs code assets static public init type types model "
    "models route routes router handler handlers store stores build dist demo demos example examples sample samples "
    "template templates output outputs report reports note notes draft drafts log logs readme setup install start run "
    "monitor status update updates system base helper helpers constants error errors manager query search state task "
    "tasks user users session sessions event events message messages control learning knowledge content default "
    "openclaw claude codex".split()
)
_COMMON_WORDS = _GENERIC_NAMES | frozenset(
    "localhost http https port ports host running live listen listens listening with from this that then url curl "
    "address default loopback bind ready open local health check post json true false check active operational "
    "const return export import environ example getenv process express https string number dashboard platform "
    "interface websocket gateway application container docker node python next vite react".split()
)


class Subject(NamedTuple):
    """The words around a claim, each text reduced to small letters and digits with dashes between."""

    line: str = ""
    heading: str = ""  # the headings above it, and the document's own name
    section: str = ""
    entry: str = ""  # the headings above it without the document's title
    is_of_other_agent: bool = False  # its section names the workspace of another agent
    is_dated: bool = False  # it is of an entry that begins with a day
    text: str = ""  # the line as it is written

    def nearness(self, path: str, own_name: str = "") -> int:
        """How near to the claim the text names the folders or the stem of a file: one of the constants above.

        The claim's own name says nothing about a file that is called alike.
        """
        own = reduce_words(own_name).strip("-")
        names = [name for part in path.split("/") if (name := _distinctive(part)) and name != own]
        if any(f"-{name}-" in self.line for name in names):
            return IN_LINE
        if any(f"-{name}-" in self.heading for name in names):
            return IN_HEADING
        if any("-" in name and f"-{name}-" in self.section for name in names):
            return IN_SECTION  # far away, one word alone is there by chance
        return NOT_NAMED

    def shared_words(self, text: str) -> set[str]:
        """The telling words of a text, such as a path and a line of code, that the line or its headings have."""
        words = {word for word in reduce_words(_HUMP.sub(" ", text)).split("-") if _is_telling(word)}
        return words & {*self.line.split("-"), *self.heading.split("-")}


def reduce_words(text: str) -> str:
    return f"-{_NO_WORD.sub('-', text.lower()).strip('-')}-"


@lru_cache(maxsize=50_000)
def _distinctive(part: str) -> str:
    """A folder's name or a file's stem, if it can hardly be there by chance; otherwise an empty string."""
    stem = part[1:].partition(".")[0] if part.startswith(".") else part.partition(".")[0]
    name = reduce_words(stem).strip("-")
    is_number = not any(character.isalpha() for character in name)
    return "" if len(name) < MIN_NAME_CHARS or is_number or name in _GENERIC_NAMES else name


def _is_telling(word: str) -> bool:
    return len(word) >= MIN_WORD_CHARS and not word.isdigit() and word not in _COMMON_WORDS


def is_one_word(name: str) -> bool:
    """Whether an identifier is one plain word, which many programs have: `get`, `update`, `Parser`."""
    return "_" not in name.strip("_") and not _HUMP.search(name)


class Subjects:
    """The subjects of the lines of one document. `with_days`: also which lines are of an entry of a day, as in logs."""

    def __init__(self, path: str, lines: Sequence[str], *, with_days: bool = True) -> None:
        self._lines = lines
        name = path.rpartition("/")[2].removesuffix(".md")
        self._name = reduce_words(name)
        self._starts: list[int] = []  # of the section of each line
        self._headings: list[str] = []  # of each section start
        self._entries: list[str] = []  # the same, without the title
        self._known: dict[int, tuple[str, str, str, bool]] = {}
        self._section_of: list[int] = []
        self._read_headings()
        self._dated = _find_dated(lines) if with_days else [False] * len(lines)

    def _read_headings(self) -> None:
        above: list[tuple[int, str]] = []
        for at, line in enumerate(self._lines):
            match = _HEADING.match(line)
            bold = _BOLD_HEADING.match(line) if match is None else None
            if match is not None or bold is not None or not at:
                level = len(match[1]) if match is not None else _BOLD_LEVEL
                title = match[2] if match is not None else bold[1] if bold is not None else ""
                above = [item for item in above if item[0] < level] + [(level, title)]
                self._starts.append(at)
                self._headings.append("\n".join(title for _, title in above))
                self._entries.append("\n".join(title for level, title in above if level > 1))
            self._section_of.append(len(self._starts) - 1)

    def of_line(self, number: int) -> Subject:
        """The subject of a line, counted from 1."""
        if not 0 < number <= len(self._lines):
            return Subject()
        section = self._section_of[number - 1]
        if section not in self._known:
            start = self._starts[section]
            stop = self._starts[section + 1] if section + 1 < len(self._starts) else len(self._lines)
            text = "\n".join(self._lines[start : min(stop, start + MAX_SECTION_LINES)])
            heading = reduce_words(self._headings[section]).rstrip("-") + self._name
            is_of_other = _OTHER_AGENT.search(text) is not None
            self._known[section] = heading, reduce_words(text), reduce_words(self._entries[section]), is_of_other
        line = self._lines[number - 1]
        return Subject(reduce_words(line), *self._known[section], self._dated[number - 1], line)


def _find_dated(lines: Sequence[str]) -> list[bool]:
    """For each line, whether it is of an entry that begins with a day.

    An item of a list goes on until the next item or a heading; a line with little but a day, until a heading; any other
    line, until an empty one; a row of a table is for itself.
    """
    found = []
    is_dated, indent, ends_at_gap = False, -1, False
    for line in lines:
        item = _ITEM.match(line)
        if _HEADING.match(line):
            is_dated = False
        elif _DATED_LINE.match(line):
            is_dated, indent = True, len(item[1]) if item is not None else -1
            ends_at_gap = item is None and len(line.strip()) > _DAY_ALONE_CHARS
        elif _ends_entry(line, item, indent, ends_at_gap=ends_at_gap):
            is_dated = False
        found.append(is_dated)
    return found


def _ends_entry(line: str, item: re.Match[str] | None, indent: int, *, ends_at_gap: bool) -> bool:
    """Whether a line without a day is no longer of the dated entry above it."""
    is_next_item = item is not None and len(item[1]) <= indent
    return is_next_item or (ends_at_gap and not line.strip()) or line.lstrip().startswith("|")


def nearest(subject: Subject, folder: str, paths: Iterable[str], own_name: str = "") -> list[tuple[int, str]]:
    """Paths with how near the text names them, nearest first; what is beside the document counts as named."""
    ranked = [(IN_LINE if is_beside(folder, path) else subject.nearness(path, own_name), path) for path in paths]
    return sorted(ranked, key=lambda item: item[0])


def is_beside(folder: str, path: str) -> bool:
    """Whether a path is in the same project folder as a document: `lab/parser/src/x.py` for `lab/parser/NOTES.md`."""
    project = project_folder(folder + "/")
    return bool(project) and path.startswith(project + "/")


def project_folder(path: str) -> str:
    """The folders of a path up to the first that tells a project; empty if none does."""
    parts = path.split("/")[:-1]
    if parts[:1] == ["memory"]:
        return ""
    for at, part in enumerate(parts):
        if _distinctive(part):
            return "/".join(parts[: at + 1])
    return ""
