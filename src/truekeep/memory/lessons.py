"""Lessons from mistakes: rows of two tables that people edit, corrections and gating policies. Pure.

A table is known by the names of its columns, in any order and spelling; a new row is written in its columns and its
style, and every other character stays. What cannot be read is named by its line, not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.text.tables import MarkdownTable, iter_rows, iter_tables, split_cells
from truekeep.text.words import is_name, stem_key, telling_words

MAX_CELL_CHARS = 1_000
_NUMBER = ("#", "no", "nr", "number", "id", "№")
_APPLIES = ("applies to", "applies", "scope", "repository", "repo", "project", "area")
_WRONG = ("went wrong", "wrong", "mistake", "what happened", "problem", "failure", "incident", "error")
_EVERYTHING = frozenset((
    "", "-", "--", "—", "–", "*", "all", "any", "every", "everything", "everywhere", "always", "general", "global",
    "n/a", "na", "none", "all repositories", "all repos", "all projects", "any repository", "every repository",
))  # fmt: skip
_TERM = re.compile(r"[,;]|\s(?:and|or|&|\+)\s|<br\s*/?>")
_TOKEN = re.compile(r"[\w.+#/@:-]+")
_COUNT = re.compile(r"(.*?)(\d{1,9})(\D*)\Z")
_BAR = "&#124;"  # where a backslash before it would make another one of it
_APPLIES_HERE = re.compile(r" \(Applies to: ([^()]{1,300})\)\Z")  # as it is written where there is no column for it
_MARKS = "`'\"*([{<"  # that stand before a word
MAX_PATHS_CHECKED = 200  # in a repository


class LessonTable(NamedTuple):
    """One of the two tables: its path, and the names that its columns may have."""

    word: str
    path: str
    title: str
    main: tuple[str, str]  # the roles that make it one
    roles: Mapping[str, tuple[str, ...]]  # by column: the first name is ours


CORRECTION = LessonTable(
    "correction",
    "memory/ops/corrections.md",
    "Corrections",
    ("wrong", "instead"),
    {
        "day": ("Date", "day", "when", "added", "logged", "since"),
        "wrong": ("What went wrong", *_WRONG, "issue", "what i did", "did"),
        "instead": (
            *("Instead", "what to do", "do instead", "correction", "correct", "right way", "right", "fix", "lesson"),
            *("rule", "required action", "action", "do"),
        ),
        "applies": ("Applies to", *_APPLIES[1:], "where", "context"),
        "number": _NUMBER,
    },
)
POLICY = LessonTable(
    "policy",
    "memory/gating-policies.md",
    "Gating policies",
    ("trigger", "action"),
    {
        "number": _NUMBER,
        "trigger": ("Trigger condition", "trigger", "when", "condition", "if", "situation", "event", "before"),
        "action": (
            *("Required action", "action", "do", "then", "must", "required", "rule", "policy", "gate", "instead"),
            "response",
        ),
        "wrong": ("What went wrong", *_WRONG, "because", "why", "reason", "origin", "learned from", "lesson"),
        "applies": _APPLIES,
        "day": ("date", "day", "added", "created", "since"),
    },
)
KINDS = (CORRECTION, POLICY)
_NEW_COLUMNS = {
    "correction": ("day", "wrong", "instead", "applies"),
    "policy": ("number", "trigger", "action", "wrong"),
}


def find_table(path: str) -> LessonTable | None:
    return next((kind for kind in KINDS if kind.path == path), None)


class Lesson(NamedTuple):
    """One row: what to do in another way, and when."""

    kind: str
    line: int
    number: str = ""
    day: str = ""
    trigger: str = ""
    wrong: str = ""
    action: str = ""
    applies: str = ""
    heading: str = ""  # the section that the table stands in

    @property
    def key(self) -> str:
        """A key that is equal for rows that say the same."""
        return "\0".join(_folded(text) for text in (self.trigger, self.wrong, self.action, self.applies))

    @property
    def shown(self) -> str:
        """The row as one line."""
        about = [self.heading, "" if applies_to_all(self.applies) else self.applies]
        where = f" ({'; '.join(filter(None, about))})" if any(about) else ""
        if self.kind == "correction":
            parts = [self.wrong, f"Instead: {self.action}" if self.action else ""]
            head = f"{self.day}: " if self.day else ""
        else:
            because = f"What went wrong: {self.wrong}" if self.wrong else ""
            parts = [f"{self.trigger}: {self.action}" if self.trigger else self.action, because]
            head = f"{self.number.rstrip('.')}. " if self.number else ""
        return head + " ".join(part if part[-1] in ".!?…" else f"{part}." for part in parts if part) + where


class Unread(NamedTuple):
    """Lines of a table that cannot be read, and why."""

    line: int
    what: str
    rows: tuple[str, ...] = ()  # as they stand there


class LessonFile(NamedTuple):
    """The lessons of a file."""

    lessons: tuple[Lesson, ...]
    unread: tuple[Unread, ...]
    lines: frozenset[int]  # the lines that are part of a table, from 1


def read_lessons(kind: LessonTable, text: str) -> LessonFile:
    """Every readable row, each once, and the lines that cannot be read."""
    lessons: dict[str, Lesson] = {}
    unread: list[Unread] = []
    lines: set[int] = set()
    for table in iter_tables(text):
        above = [table.rule - bool(table.columns)] if table.rule else []
        lines.update(range(min([*above, *(row.line for row in table.rows)]), table.last + 1))
        loose = tuple(row for row in table.rows if not row.columns)
        if loose:
            shown = tuple(" · ".join(cell for cell in row.cells if cell) for row in loose)
            unread.append(Unread(loose[0].line, "rows without a header", shown))
        if not table.columns:
            continue
        roles = roles_of(kind, table.columns)
        if not any(role in roles for role in kind.main):
            names = " or ".join(repr(kind.roles[role][0]) for role in kind.main)
            shown = tuple(": ".join(pair for pair in pairs if pair) for row in table.rows for pairs in row.pairs())
            unread.append(Unread(table.rule - 1, f"a table without a column {names}", shown))
            continue
        for row in table.rows:
            if not row.columns:
                continue
            if len(row.cells) > len(table.columns):
                unread.append(Unread(row.line, f"{len(row.cells)} cells below {len(table.columns)} columns"))
            lesson = _lesson(kind, roles, row.cells, row.line, len(table.columns), row.heading)
            if lesson is not None:
                lessons.setdefault("\0".join(lesson[4:8]).casefold(), lesson)
    return LessonFile(tuple(lessons.values()), tuple(unread), frozenset(lines))


def _lesson(
    kind: LessonTable, roles: Mapping[str, int], cells: Sequence[str], line: int, width: int, heading: str = ""
) -> Lesson | None:
    """A row by the roles of its cells. The text behind an extra bar belongs to the last cell."""
    if len(cells) > width:
        cells = [*cells[: width - 1], " | ".join(cells[width - 1 :])]
    said = {role: cells[at].replace(_BAR, "|") for role, at in roles.items() if at < len(cells)}
    wrong, action = said.get("wrong", ""), said.get("instead" if kind is CORRECTION else "action", "")
    trigger, applies = said.get("trigger", ""), said.get("applies", "")
    if not action and not wrong and not trigger:
        return None
    if not applies and (match := _APPLIES_HERE.search(action or wrong)) is not None:
        applies = match[1]
        wrong, action = (wrong, action[: match.start()]) if action else (wrong[: match.start()], action)
    return Lesson(
        kind.word, line, said.get("number", ""), said.get("day", ""), trigger, wrong, action, applies, heading
    )


def roles_of(kind: LessonTable, columns: Sequence[str]) -> dict[str, int]:
    """Which column has which role: by its exact name first, then by a name that contains it."""
    names = [_folded(column.replace(".", " ")) or column.strip().casefold() for column in columns]
    found: dict[str, int] = {}
    for fits in (_is_called, _is_about):
        for role, words in kind.roles.items():
            if role in found:
                continue
            at = next((at for at, name in enumerate(names) if at not in found.values() and fits(name, words)), None)
            if at is not None:
                found[role] = at
    return found


def _is_called(name: str, words: Sequence[str]) -> bool:
    return any(name == word.casefold() for word in words)


def _is_about(name: str, words: Sequence[str]) -> bool:
    return any(f" {word.casefold()} " in f" {name} " for word in words if word.isascii() and word != "#")


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+|#", text.casefold()))


# --- A new row -------------------------------------------------------------------------------------------------------


class LessonInsertion(NamedTuple):
    """The place of a new row in a text, and the text to insert."""

    offset: int
    inserted: str
    line: int
    number: str = ""


def plan_row(kind: LessonTable, text: str, said: Mapping[str, str]) -> LessonInsertion | Lesson:
    """Plan to add a row, given by roles, to a file; or find the row that says the same.

    The file's own line ends are in the text. What would not be read as that row afterwards is a BadInput.
    """
    flat = {role: " ".join(value.split()) for role, value in said.items()}
    bare = text.removeprefix("\ufeff")
    table = _chosen(kind, bare)
    added, row = _in_table(kind, bare, table, flat) if table is not None else _as_table(kind, bare, flat)
    there = next(
        (lesson for lesson in read_lessons(kind, bare).lessons if lesson.key in (row.key, _plain(kind, flat))), None
    )
    if there is not None:
        return there
    _check(kind, bare, added)
    return added._replace(offset=added.offset + len(text) - len(bare))


def _plain(kind: LessonTable, said: Mapping[str, str]) -> str:
    """The key of a row in a table that has all columns."""
    row = _lesson(kind, {role: at for at, role in enumerate(said)}, list(said.values()), 0, len(said))
    return row.key if row is not None else ""


def _chosen(kind: LessonTable, text: str) -> MarkdownTable | None:
    """The table that a row goes to: the one with the most of its columns; of several, the last."""
    best: tuple[int, MarkdownTable] | None = None
    for table in iter_tables(text):
        roles = roles_of(kind, table.columns)
        if any(role in roles for role in kind.main) and (best is None or len(roles) >= best[0]):
            best = len(roles), table
    return best[1] if best else None


def _in_table(
    kind: LessonTable, text: str, table: MarkdownTable, said: Mapping[str, str]
) -> tuple[LessonInsertion, Lesson]:
    lines = text.split("\n")
    roles = roles_of(kind, table.columns)
    cells = [""] * len(table.columns)
    number = ""
    if "number" in roles:
        number = cells[roles["number"]] = _next_number([_cell(row.cells, roles["number"]) for row in table.rows])
    for role, value in _fitted(kind, roles, said).items():
        cells[roles[role]] = value
    lesson = _lesson(kind, roles, cells, table.last + 1, len(cells))
    assert lesson is not None
    row = _row(cells, lines[table.rule - 2 : table.last])
    newline = "\r\n" if lines[table.rule - 1].endswith("\r") else "\n"
    if table.last == len(lines):  # the file ends with it, and without a line end
        return LessonInsertion(len(text), newline + row + newline, table.last + 1, number), lesson
    offset = sum(len(line) + 1 for line in lines[: table.last])
    return LessonInsertion(offset, row + newline, table.last + 1, number), lesson


def _fitted(kind: LessonTable, roles: Mapping[str, int], said: Mapping[str, str]) -> dict[str, str]:
    """The text of each column. A text without a column of its own is added to the main column."""
    fitted = {role: value for role, value in said.items() if value and role in roles}
    home = next(role for role in (*kind.main[::-1], *kind.main) if role in roles)
    for role, value in said.items():
        if value and role not in roles and role in (*kind.main, "wrong", "applies"):
            words = {"wrong": "What went wrong", "applies": "Applies to", "trigger": "When"}.get(role, "Instead")
            fitted[home] = " ".join(part for part in (fitted.get(home, ""), f"({words}: {value})") if part)
    return fitted


def _cell(cells: Sequence[str], at: int) -> str:
    return cells[at] if at < len(cells) else ""


def _next_number(cells: Sequence[str]) -> str:
    """The number after the highest one, in the same form."""
    counted = [(int(match[2]), match) for cell in cells if (match := _COUNT.match(cell)) is not None]
    if not counted:
        return "1" if not any(cells) else ""
    highest, match = max(counted, key=lambda item: item[0])
    return f"{match[1]}{highest + 1:0{len(match[2])}d}{match[3]}"


def _row(cells: Sequence[str], lines: Sequence[str]) -> str:
    """A row in the style of a table's lines: indent, outer bars, blanks, and widths if they are all the same."""
    sample = lines[-1].rstrip("\r")
    bare = sample.strip()
    indent = sample[: len(sample) - len(sample.lstrip())]
    escaped = [escape_cell(cell) for cell in cells]
    is_spaced = "| " in bare or " |" in bare or bare.startswith(("|-", "|:"))
    widths = [_widths(line) for line in lines]
    if len(lines) > 2 and len(set(widths)) == 1 and len(widths[0]) == len(cells):
        escaped = [cell.ljust(width - 2 * is_spaced) for cell, width in zip(escaped, widths[0], strict=True)]
    gap = " " if is_spaced or any(cell.endswith("\\") for cell in escaped) else ""
    row = f"{gap}|{gap}".join(escaped)
    if bare.startswith("|") or not escaped[0][:1].isalnum():
        row = f"|{gap}{row}"
    if bare.endswith("|") or not escaped[-1]:
        row = f"{row}{gap}|"
    return indent + row


def _widths(line: str) -> tuple[int, ...]:
    """The width of the cells of a line."""
    return tuple(len(part) for part in re.split(r"(?<!\\)\|", line.strip().strip("|")))


def escape_cell(text: str) -> str:
    """A text as one table cell, with its bars escaped."""
    flat = " ".join(text.split())
    return re.sub(r"(\\*)\|", lambda match: match[1] + _BAR if match[1] else "\\|", flat)


def _as_table(kind: LessonTable, text: str, said: Mapping[str, str]) -> tuple[LessonInsertion, Lesson]:
    """A table of our own at the end of a file."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    roles = {role: at for at, role in enumerate(_NEW_COLUMNS[kind.word])}
    names = ["#" if role == "number" else kind.roles[role][0] for role in roles]
    cells = ["1" if role == "number" else said.get(role, "") for role in roles]
    lesson = _lesson(kind, roles, cells, 0, len(cells))
    assert lesson is not None
    head = [] if text.strip() else [f"# {kind.title}", ""]
    shown = [f"| {' | '.join(line)} |" for line in (names, map(escape_cell, cells))]
    table = newline.join([*head, shown[0], f"|{'---|' * len(names)}", shown[1]])
    gap = newline * (0 if not text.strip() else 1 if text.endswith("\n") else 2)
    inserted = f"{gap}{table}{newline}"
    return LessonInsertion(len(text), inserted, text.count("\n") + inserted.count("\n"), lesson.number), lesson


def _check(kind: LessonTable, text: str, added: LessonInsertion) -> None:
    """Check that the new row can be read, and that every other row is unchanged."""
    before = [row.cells for row in iter_rows(text)]
    new = text[: added.offset] + added.inserted + text[added.offset :]
    after = [row.cells for row in iter_rows(new)]
    cells = tuple(split_cells(added.inserted.rstrip("\r\n").rpartition("\n")[2]))
    if len(after) != len(before) + 1 or cells not in after:
        raise BadInput(
            f"{kind.path}: the row would not be read back where it goes (line {added.line})",
            hint="close the fence or comment that is open there, or fix the table in an editor",
        )


# --- A row as a list, in a handoff -----------------------------------------------------------------------------------


def render_lesson(kind: LessonTable, said: Mapping[str, str]) -> str:
    """A row as a list of its columns, for a handoff to the machine that keeps the table."""
    flat = {role: " ".join(said.get(role, "").split()) for role in _NEW_COLUMNS[kind.word]}
    return "\n".join(f"- {kind.roles[role][0]}: {value}" for role, value in flat.items() if value)


def parse_lesson(kind: LessonTable, content: str) -> dict[str, str] | None:
    """The row in such a list, by roles; None if a line is not a column of the table, or a main column is missing."""
    said: dict[str, str] = {}
    for line in filter(None, map(str.strip, content.split("\n"))):
        name, colon, value = line.removeprefix("- ").partition(":")
        roles = roles_of(kind, [name])
        if not colon or not roles or set(roles) & said.keys():
            return None
        said[next(iter(roles))] = value.strip()
    return said if all(said.get(role) for role in kind.main) else None


# --- The work at hand ------------------------------------------------------------------------------------------------


class WorkingRepository(NamedTuple):
    """The repository of the current work, as far as it is cheap to know."""

    repository: str = ""  # as provenance names it
    slug: str = ""
    names: frozenset[str] = frozenset()  # languages, and files at its top, in lower case
    has: Callable[[str], bool] = lambda _: False  # whether it has a path


def applies_to_all(applies: str) -> bool:
    return " ".join(applies.casefold().strip("`*_. ").split()) in _EVERYTHING


def fits(lesson: Lesson, here: WorkingRepository, looked: list[str]) -> int:
    """How well a row fits this repository: 3 names it, 2 names something in it, 1 is for all, 0 does not fit.

    `looked` counts the paths that were looked for: beyond some, none is.
    """
    if not applies_to_all(lesson.applies):
        return max((_fits(term, here, looked) for term in _TERM.split(lesson.applies)), default=0)
    said = f"{lesson.heading} {lesson.trigger} {lesson.wrong} {lesson.action}".casefold()
    own = {name for name in (here.slug.casefold(), here.repository.rpartition("/")[2].casefold()) if name}
    if not any(name in said for name in own | here.names):
        return 1  # as most rows: there is no need to look at each word
    tokens = [token.strip(".:") for token in _TOKEN.findall(said)]
    if any(_is_repository(token, here) for token in tokens):
        return 3
    return 2 if any(token in here.names for token in tokens) else 1


def _fits(term: str, here: WorkingRepository, looked: list[str]) -> int:
    bare = " ".join(term.strip("`'\"*_ ").split())
    if bare.casefold() in _EVERYTHING:
        return 1 if bare else 0
    tokens = [token.strip("`'\".:") for token in _TOKEN.findall(bare)]
    if any(_is_repository(token, here) for token in tokens):
        return 3
    if any(token.casefold() in here.names for token in tokens):
        return 2
    for token in tokens:
        is_path = "/" in token and not token.startswith(("/", "..")) and ":" not in token
        if is_path and len(looked) < MAX_PATHS_CHECKED:
            looked.append(token)
            if here.has(token):
                return 2
    return 0


def _is_repository(token: str, here: WorkingRepository) -> bool:
    name, token = here.repository.casefold(), token.casefold().removesuffix("/").removesuffix(".git")
    if not name or len(token) < 3:
        return False
    return token == name or name.endswith(f"/{token}") or token == here.slug.casefold()


class LessonMatch(NamedTuple):
    """A row whose trigger shares words with a prompt."""

    lesson: Lesson
    words: tuple[str, ...]  # of the trigger, that tell something
    said: frozenset[str]  # of these, the ones that the prompt has


def called_for(prompt: str, lessons: Iterable[Lesson], here: WorkingRepository) -> list[LessonMatch]:
    """The rows that a prompt may call for, by the words of their triggers."""
    stems = {stem_key(word.lower()) for word in telling_words(prompt, most=400)}
    starts = {stem[:3] for stem in stems}  # a stem keeps three letters: most rows need no further look
    found = []
    for lesson in lessons:
        trigger = lesson.trigger or ("" if applies_to_all(lesson.applies) else lesson.applies)
        if not any(word.lstrip(_MARKS)[:3] in starts for word in trigger.lower().split()):
            continue
        words = tuple(telling_words(trigger, most=24)) if trigger else ()
        said = frozenset(word for word in words if stem_key(word.lower()) in stems)
        if not said or len(said) * 2 < len(words):
            continue
        if bool(fits(lesson, here, [])) == bool(lesson.trigger):  # without a trigger, wake has told what fits
            found.append(LessonMatch(lesson, words, said))
    return found


def is_called_for(asked: LessonMatch, rare: Iterable[str]) -> bool:
    """Whether a prompt surely calls for a row: it shares a rare identifier, or all rare words and more than one."""
    telling = set(rare) & set(asked.words)
    if any(is_name(word) for word in telling & asked.said):
        return True
    return bool(telling) and telling <= asked.said and len(asked.said) > 1
