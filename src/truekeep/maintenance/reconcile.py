"""Reconciliation: where the stores disagree, who wins, and why. The rules are the founding document's, in its order.

    index and card          the card wins; the index is brought up to date, also numbers in lines that people wrote;
                            a line that a person took out stays out
    card and daily log      the card for what is so now, the log for what happened that day; both can be right
    handoff and card        a sure handoff updates the card at the next ingest; else a person decides
    card and transcript     the transcript is what was said, the card what was decided: the card
    memory and code         code wins; memory is corrected
    memory and instructions CLAUDE.md and AGENTS.md are written by a person: they win
    two values for a thing  code, then instructions; else a person decides, and learns which memory is of the last days

Nothing here guesses: a person decides what no rule decides. Nothing here writes; fixes are transactions in the ledger.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple
from unicodedata import normalize

from truekeep.core.errors import as_argument
from truekeep.core.model import CARDS, INDEX
from truekeep.maintenance.proposals import Idea, update_of
from truekeep.maintenance.survey.service import CardFacts, StatedValue
from truekeep.memory.card import (
    OWNED_KEYS,
    index_labels,
    index_line,
    indexed_as,
    parse_card,
    short_name,
    subject_of,
    with_subject,
)
from truekeep.memory.file_scan import is_dated, project_in
from truekeep.memory.frontmatter import Frontmatter
from truekeep.memory.memory_index import pointer_lines
from truekeep.memory.opposite_rules import Rule, find_opposites, find_rules
from truekeep.memory.sentence_values import Measure, SentenceValue, content_words, find_measures, sentence_values
from truekeep.memory.values import Value, agree, as_value, find_values, spelled
from truekeep.text.encoding import decode_text

BY = "reconcile"
YOUNGER = "the younger memory"
RECENT_DAYS = 7  # "the last few days"

Action = Literal["fix", "ask", "person", "none"]
"""fix: can be written. ask: becomes a draft. person: `step` says what a person can do. none: both can be right."""

REASONS = {
    "index-missing": ("card", "a card has one line in the index, unless a person took it out"),
    "index-dangling": ("card", "the index only points at cards, and this one is not there"),
    "index-unread": ("", "a card is there, but not as one that can be read; its line stays"),
    "index-doubled": ("card", "a card has one line in the index"),
    "index-drifted": ("card", "the index only points; the card says what it is about"),
    "index-value": ("card", "the index only points; the card says what is so"),
    "index-content": ("card", "the index never holds content: what is cut off from it is lost"),
    "card-log": ("card", "the card says what is so now, the log what happened that day; both can be right"),
    "handoff-card": ("", "a handoff is a proposal until it is filed"),
    "card-transcript": ("card", "a transcript is what was said, a card what was decided"),
    "memory-code": ("code", "current code wins over memory"),
    "memory-instructions": ("instructions", "an instruction file is a person's word; memory is an observation"),
    "two-values": ("", "two memories give one thing two values"),
}
_OWN_LINE = re.compile(
    r"- \[(?P<label>(?:[^\]\\\n]|\\.){1,400})\]\(" + re.escape(CARDS) + r"/(?P<name>[A-Za-z0-9._%-]+\.md)\)\Z"
)
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_NAMED = re.compile(r"[a-z0-9]{3,}")
_MAX_LINES_TO_DROP = 10  # at once, if they are most of the index: cards may be missing only for a moment


class Disagreement(NamedTuple):
    """Two places that do not say the same."""

    rule: str
    place: str  # path or path:line of the one that is wrong, or may be
    says: str
    other: str  # the place that disagrees
    other_says: str
    winner: str  # card, code, instructions, the younger memory, handoff, person; empty: undecided
    reason: str
    action: Action
    step: str = ""  # what a person can do
    is_held: bool = False  # a rule decides, but so much at once that it needs --force


class Repairs(NamedTuple):
    """How to fix one disagreement: exactly one of these is set."""

    point: tuple[str, str] | None = None  # card name and topic: add its line
    unpoint: str = ""  # card name: remove its lines that only point
    once: str = ""  # card name: keep one of its lines
    retitle: tuple[str, str, str] | None = None  # card name, the line as it is, the line as it should be
    value: tuple[StatedValue, str] | None = None  # the stated value, and the right one
    idea: Idea | None = None


Found = tuple[Disagreement, Repairs]


# The index.


Line = tuple[int, str, bool]
"""A line of the index: its number, its text, and whether it does nothing but point at a card."""


def compare_index(
    data: bytes,
    cards: Sequence[CardFacts],
    is_ours: Callable[[int], bool],
    unreadable: Callable[[str], str] = lambda _: "",
    needs_none: Callable[[str], bool] = lambda _: False,
    *,
    is_away: bool = False,
    force: bool = False,
) -> Iterator[Found]:
    """Compare MEMORY.md with the cards.

    `is_ours`: whether truekeep wrote a line and no person changed it since. `unreadable`: why a card that exists was
    not read; empty if there is no such card. `needs_none`: whether a card is to have no line, because a person removed
    it or another memory covers the card. If most lines would go at once, or the folder of cards `is_away`, none goes
    without `force`.
    """
    known = {facts.path.removeprefix(f"{CARDS}/"): facts for facts in cards}
    lines: dict[str, list[Line]] = {}
    numbers: set[int] = set()
    for number, text, names, is_pure in pointer_lines(data, known.__contains__):
        numbers.add(number)
        for name in names:
            lines.setdefault(name, []).append((number, text, is_pure))
    wanted = _index_labels_of(cards)
    spelled = {_folded(name): name for name in known}
    astray = {_folded(name) for name in lines if name not in known}
    for name, facts in known.items():
        if name not in lines and facts.key and _folded(name) not in astray and not needs_none(name):
            yield _index("index-missing", INDEX, "no line", facts, "fix"), Repairs(point=(name, wanted(facts)))
    gone: list[Found] = []
    for name, there in sorted(lines.items()):
        facts_there = known.get(name)
        if facts_there is None:
            own = spelled.get(_folded(name))
            wrong = f"is called {own}" if own is not None else unreadable(name)
            gone += _unread(name, there, wrong) if wrong else _dangling(name, there)
            continue
        yield from _doubled(name, there, facts_there)
        yield from _drifted(name, there, facts_there, wanted(facts_there), is_ours)
    yield from gone if force else _keep_if_most_are_gone(gone, len(numbers), is_away)


def _folded(name: str) -> str:
    """A key that is the same for names that some disks cannot tell apart by letter case or accents."""
    if name.isascii():
        return name.casefold()
    return normalize("NFC", normalize("NFC", name).casefold())


def _keep_if_most_are_gone(gone: Sequence[Found], total: int, is_away: bool) -> list[Found]:
    """Keep the lines of missing cards if they are most of the index."""
    many = len({item.place for item, repair in gone if repair.unpoint})
    if not is_away and (many < _MAX_LINES_TO_DROP or 2 * many <= total):
        return list(gone)
    step = (
        f"{many} of {total} lines point at cards that are not there, so none was taken out; put {CARDS} back, or if"
        " they are gone for good, `truekeep reconcile --fix --force`"
    )
    return [
        (item._replace(action="person", step=step, is_held=True), Repairs()) if repair.unpoint else (item, repair)
        for item, repair in gone
    ]


def _index(rule: str, place: str, says: str, facts: CardFacts, action: Action, step: str = "") -> Disagreement:
    winner, reason = REASONS[rule]
    return Disagreement(rule, place, says, facts.path, facts.topic, winner, reason, action, step)


def _unread(name: str, there: Sequence[Line], wrong: str) -> Iterator[Found]:
    """Lines of a card that exists but cannot be read: a person has to look at it."""
    winner, reason = REASONS["index-unread"]
    path = f"{CARDS}/{name}"
    for number, text, _ in there:
        place, step = f"{INDEX}:{number}", f"{path} {wrong}: see to it, or edit {INDEX} line {number}"
        yield Disagreement("index-unread", place, text, path, wrong, winner, reason, "person", step), Repairs()


def _dangling(name: str, there: Sequence[Line]) -> Iterator[Found]:
    winner, reason = REASONS["index-dangling"]
    for number, text, is_pure in there:
        action: Action = "fix" if is_pure else "person"
        step = "" if is_pure else f"the line says more than a pointer: edit {INDEX} line {number}"
        place = f"{INDEX}:{number}"
        found = Disagreement(
            "index-dangling", place, text, f"{CARDS}/{name}", "there is no such card", winner, reason, action, step
        )
        yield found, Repairs(unpoint=name if is_pure else "")


def _doubled(name: str, there: Sequence[Line], facts: CardFacts) -> Iterator[Found]:
    numbers = sorted({number for number, _, _ in there})
    if len(numbers) < 2:
        return
    pure = sum(is_pure for _, _, is_pure in there)
    others = len(there) - pure
    place, says = f"{INDEX}:{numbers[-1]}", f"{len(numbers)} lines, at {', '.join(map(str, numbers))}"
    if pure >= 2 or (pure and others):
        yield _index("index-doubled", place, says, facts, "fix"), Repairs(once=name)
    # Several lines in a person's own words may each have their reason.


def _index_labels_of(cards: Sequence[CardFacts]) -> Callable[[CardFacts], str]:
    """The label of each card in the index: with its repository if another card has the same topic."""
    scopes: dict[str, set[str]] = {}
    for facts in cards:
        scopes.setdefault(facts.key, set()).add(facts.repository)
    shorts = {key: Counter(map(short_name, found)) for key, found in scopes.items() if len(found) > 1}

    def label(facts: CardFacts) -> str:
        if facts.key not in shorts:
            return facts.label
        other = facts.repository if shorts[facts.key][short_name(facts.repository)] > 1 else ""
        return indexed_as(facts.label, facts.topic, facts.repository, other)

    return label


def _drifted(
    name: str, there: Sequence[Line], facts: CardFacts, label: str, is_ours: Callable[[int], bool]
) -> Iterator[Found]:
    """Lines with another topic or description than the card. A line without a description is right."""
    right = index_line(name, label)
    labels = (facts.label, facts.topic)
    rights = {index_line(name, item) for said in labels for item in index_labels(said, facts.topic, facts.repository)}
    for number, text, _ in there:
        own = _OWN_LINE.match(text)
        if own is None or text in rights or not facts.key:
            continue
        if is_ours(number):
            repair = Repairs(retitle=(name, text, right))
            yield _index("index-drifted", f"{INDEX}:{number}", text, facts, "fix"), repair
        elif not set(_NAMED.findall(own["label"].lower())) & set(_NAMED.findall(facts.topic.lower())):
            step = f"a person wrote that line: edit {INDEX} line {number}, or the topic of {facts.path}"
            found = _index("index-drifted", f"{INDEX}:{number}", text, facts, "person", step)
            yield found._replace(winner="person", reason="a person wrote the line, so it stays as it is"), Repairs()


def compare_index_values(
    data: bytes, cards: Sequence[CardFacts], read: Callable[[str], bytes | None]
) -> Iterator[Found]:
    """Compare the numbers in lines of the index with the cards that they point at."""
    known = {facts.path.removeprefix(f"{CARDS}/"): facts for facts in cards}
    for number, text, names, _ in pointer_lines(data, known.__contains__):
        name = next(iter(names))
        facts = known.get(name)
        words = _LINK_TARGET.sub("]", text)
        measures = find_measures(words) if facts is not None and len(names) == 1 else []
        card = decode_text(read(facts.path) or b"") if facts is not None and measures else None
        if facts is None or card is None:
            continue
        for measure in measures:
            yield from _index_measure(f"{INDEX}:{number}", text, words, measure, name, facts, card)


def _index_measure(
    place: str, text: str, words: str, measure: Measure, name: str, facts: CardFacts, card: str
) -> Iterator[Found]:
    """Compare one number of an index line with the card: it says the same, something else, or nothing of it."""
    body = parse_card(name, card).body
    said = f"{measure.number} {measure.unit}"
    if re.search(rf"(?<![\w.]){re.escape(measure.number)}(?![\w]|\.\d)", card):
        return
    about = content_words(words)
    others = {
        (number, sentence)
        for sentence in re.split(r"(?<=[.!?])\s+|\n", body)
        for number, unit, _, _ in find_measures(sentence)
        if unit == measure.unit and content_words(sentence) & about - {measure.unit}
    }
    if len({number for number, _ in others}) == 1:
        right, sentence = min(others)
        fixed = re.sub(rf"(?<![\w.]){re.escape(measure.number)}(?![\w]|\.\d)", right, text)
        can_fix = text.count(measure.number) == 1
        winner, reason = REASONS["index-value"]
        step = "" if can_fix else f"edit {place.replace(':', ' line ')}"
        yield (
            Disagreement(
                "index-value", place, text, facts.path, sentence.strip(" -*"), winner, reason,
                "fix" if can_fix else "person", step,
            ),
            Repairs(retitle=(name, text, fixed) if can_fix else None),
        )  # fmt: skip
    elif not others:
        winner, reason = REASONS["index-content"]
        update = f"`truekeep card write --update {as_argument(facts.path)}`"
        line = place.replace(":", " line ")
        step = f"the card does not say {said}: {update} adds it, then leave only the link in {line}"
        yield (
            Disagreement("index-content", place, text, facts.path, "nothing of it", winner, reason, "person", step),
            Repairs(),
        )


# Values.


class Judge(NamedTuple):
    """What decides between two values."""

    today: date
    code: Callable[[StatedValue], str]  # "confirmed", "refuted" or empty
    instructions: Callable[[str], Sequence[StatedValue]]  # the values in the instruction files of a repository
    read: Callable[[str], bytes | None]


def compare_values(clashes: Iterable[tuple[str, str, list[StatedValue]]], judge: Judge) -> Iterator[Found]:
    """Compare the values that cards and documents give to one thing, and those of logs with those of cards."""
    for kind, subject, said in clashes:
        memories = [item for item in said if _is_current(kind, item)]
        for group in _comparable(kind, memories):
            yield from _two_values(kind, subject, group, judge)
        cards = [item for item in memories if item.store == "cards"]
        for item in said:
            if item.store == "logs":
                yield from _log_against(item, cards)


def _is_current(kind: str, item: StatedValue) -> bool:
    """Whether a value is said about now, of a thing with a name of its own.

    A dated document describes its day, as a log does. A path that a document without a topic calls "script" or "source"
    may be that of any script.
    """
    if item.store == "documents":
        is_named = kind != "path" or len(item.value.subject.split()) > 1
        return is_named and not is_dated(item.path)
    return item.store in ("cards", "facts")


def _comparable(kind: str, said: Sequence[StatedValue]) -> Iterator[list[StatedValue]]:
    """Groups of values for one repository or project, or for none, from files that give one value each.

    A file with several values for a thing lists them, and does not contradict a file with one of them. The files of two
    projects tell of two things.
    """
    for group in _by_project(said):
        by_path: dict[str, set[str]] = {}
        for item in group:
            by_path.setdefault(item.path, set()).add(item.value.value)
        listing = {path for path, values in by_path.items() if _is_list(kind, values)}
        listed = {value for path in listing for value in by_path[path]}
        kept = [
            item
            for item in group
            if item.path not in listing and not any(agree(kind, item.value.value, value) for value in listed)
        ]
        if _is_list(kind, {item.value.value for item in kept}):
            yield kept


def _by_project(said: Sequence[StatedValue]) -> Iterator[list[StatedValue]]:
    """The values for each repository, and of these for each file about a project, with those that name none."""
    for name in sorted({item.repository for item in said if item.repository}) or [""]:
        group = [item for item in said if item.repository in (name, "")]
        for project in sorted({named for item in group if (named := project_in(item.path))}) or [""]:
            yield [item for item in group if project_in(item.path) in (project, "")]


def _is_list(kind: str, values: set[str]) -> bool:
    """Whether these are several values, and not one value in different precision."""
    return any(not agree(kind, one, other) for one in values for other in values if one < other)


def _two_values(kind: str, subject: str, said: Sequence[StatedValue], judge: Judge) -> Iterator[Found]:
    by_path: dict[str, StatedValue] = {}
    for item in said:
        by_path.setdefault(item.path, item)
    winner, reason, value = _decide(list(by_path.values()), judge)
    if value and winner != YOUNGER:
        best = next((item for item in by_path.values() if item.value.value == value), None)
        for item in by_path.values():
            if not agree(kind, item.value.value, value):
                other = f"{best.path}:{best.value.line}" if best is not None else winner
                yield _value_against(kind, subject, item, other, value, winner, reason)
        return
    ordered = sorted(by_path.values(), key=lambda item: (item.day, item.path), reverse=True)
    youngest = ordered[0]
    for item in ordered[1:]:
        if not agree(kind, item.value.value, youngest.value.value):
            yield _ask_value(kind, subject, item, youngest, judge, winner, reason)


def _decide(said: Sequence[StatedValue], judge: Judge) -> tuple[str, str, str]:
    """The winner, the reason and the right value; empty if no rule decides."""
    values = {item.value.value for item in said}
    confirmed = {item.value.value for item in said if judge.code(item) == "confirmed"}
    refuted = {item.value.value for item in said if judge.code(item) == "refuted"}
    if len(confirmed) == 1 and values - confirmed <= refuted:
        return "code", REASONS["memory-code"][1], confirmed.pop()
    first = said[0].value
    for repository in sorted({item.repository for item in said}):
        told = {
            item.value.value
            for item in judge.instructions(repository)
            if (item.value.kind, item.value.subject) == (first.kind, first.subject)
        }
        if len(told) == 1:
            return "instructions", REASONS["memory-instructions"][1], told.pop()
    if len({item.repository for item in said}) > 1:
        return "", "", ""  # perhaps two things of one name
    limit = (judge.today - timedelta(days=RECENT_DAYS)).isoformat()
    now = judge.today.isoformat()
    recent = {item.value.value for item in said if limit <= item.day <= now}
    older = [item for item in said if item.value.value not in recent]
    if len(recent) == 1 and all(item.day and item.day < limit for item in older):
        return YOUNGER, "memory of the last days wins over older memory, if both speak of one thing", recent.pop()
    return "", "", ""


def _value_against(
    kind: str, subject: str, item: StatedValue, other: str, value: str, winner: str, reason: str
) -> Found:
    rule = {"code": "memory-code", "instructions": "memory-instructions"}.get(winner, "two-values")
    can_write = item.store == "cards"
    found = Disagreement(
        rule=rule,
        place=f"{item.path}:{item.value.line}",
        says=f"{subject} {kind} {item.value.value}",
        other=other,
        other_says=f"{subject} {kind} {value}",
        winner=winner,
        reason=reason,
        action="fix" if can_write else "person",
        step="" if can_write else f"edit {item.path}: truekeep does not change it",
    )
    return found, Repairs(value=(item, value) if can_write else None)


def _ask_value(
    kind: str, subject: str, older: StatedValue, younger: StatedValue, judge: Judge, winner: str, reason: str
) -> Found:
    """Propose the younger value for the older card, in a draft that says that it may be the other way round.

    Days alone never change a card: only a person can see whether two sentences are about one thing.
    """
    asked = older if older.store == "cards" else younger
    other = younger if asked is older else older
    may_ask = asked.store == "cards" and (asked is older or not winner)
    idea = _value_idea(kind, subject, asked, other, judge) if may_ask else None
    found = Disagreement(
        rule="two-values",
        place=f"{older.path}:{older.value.line}",
        says=f"{subject} {kind} {older.value.value} ({older.day or 'no day'})",
        other=f"{younger.path}:{younger.value.line}",
        other_says=f"{subject} {kind} {younger.value.value} ({younger.day or 'no day'})",
        winner=winner,
        reason=reason or "neither code, nor an instruction file, nor the days of the two settle it",
        action="ask" if idea is not None else "person",
        step="" if idea is not None else f"check which one is right, and edit {older.path} or {younger.path}",
    )
    return found, Repairs(idea=idea)


def _value_idea(kind: str, subject: str, asked: StatedValue, other: StatedValue, judge: Judge) -> Idea | None:
    data = judge.read(asked.path)
    old = decode_text(data) if data is not None else None
    text = with_value(old, asked, other.value.value) if old is not None else None
    if data is None or text is None:
        return None
    card = parse_card(asked.path.removeprefix(f"{CARDS}/"), text)
    own = tuple(field for field in card.front.fields if field.key.casefold() not in OWNED_KEYS)
    says = (
        f"{asked.path}:{asked.value.line} says {asked.value.value}, {other.path}:{other.value.line} {other.value.value}"
    )
    return Idea(
        by=BY,
        slug=f"values-{card.name.removesuffix('.md')}",
        reasons=(("two-values", f"{kind} of {subject}: {says}; only you can decide which one is right"),),
        text=update_of(
            f"{subject_of(card)}: which {kind} is right?",
            card.name,
            with_subject(Frontmatter(own), card).render() + f"\n{card.body.strip(chr(10))}\n",
            summary=f"{says}. Approving takes {other.value.value}; if {asked.value.value} is right, reject it and edit"
            f" {other.path}.",
            facts=[says],
        ),
        target=asked.path,
        found=data,
        repository=asked.repository,
        writer=card.writer or "upkeep",
        key=f"{kind}\0{subject}\0{asked.path}\0{asked.value.value}\0{other.path}\0{other.value.value}",
    )


def with_value(text: str, said: StatedValue, value: str) -> str | None:
    """A card's text with another value in this place; None if the place says something else now."""
    start, end = said.value.start, said.value.end
    old = text[start:end]
    if as_value(old) != said.value.value:
        return None
    return text[:start] + spelled(value, old) + text[end:]


def _log_against(item: StatedValue, cards: Sequence[StatedValue]) -> Iterator[Found]:
    """Compare a log with cards. An earlier log is no disagreement: it was so then."""
    winner, reason = REASONS["card-log"]
    for card in cards:
        if agree(card.value.kind, card.value.value, item.value.value) or not (item.day > card.day and card.day):
            continue
        if item.repository and card.repository and item.repository != card.repository:
            continue
        if any(other.path == card.path and other.value.value == item.value.value for other in cards):
            continue
        update = f"`truekeep card write --update {as_argument(card.path)}`"
        step = f"the log is younger: if it is so now, update the card ({update})"
        yield _said_against("card-log", item, card, winner, reason, step), Repairs()


class DatedText(NamedTuple):
    """A card or a log with its day."""

    path: str
    day: str
    repository: str
    text: str


def compare_logs(logs: Iterable[DatedText], cards: Iterable[DatedText]) -> Iterator[Found]:
    """Compare the sentences of logs with those of older cards that differ from them in nothing but a value."""
    said: dict[str, list[tuple[DatedText, SentenceValue]]] = {}
    for log in logs:
        for item in sentence_values(log.text):
            said.setdefault(item.frame, []).append((log, item))
    winner, reason = REASONS["card-log"]
    for card in cards if said else ():
        for own in sentence_values(card.text):
            later = [(log, item) for log, item in said.get(own.frame, ()) if log.day > card.day and card.day]
            if not later or any(item.value.lower() == own.value.lower() for _, item in later):
                continue  # what the log says was so for a time, or several things are built alike
            log, item = max(later, key=lambda pair: (pair[0].day, pair[1].line))
            update = f"`truekeep card write --update {as_argument(card.path)}`"
            yield (
                Disagreement(
                    "card-log", f"{log.path}:{item.line}", f"{item.text} ({log.day})", f"{card.path}:{own.line}",
                    f"{own.text} ({card.day})", winner, reason, "none",
                    f"the log is younger: if it is so now, update the card ({update})",
                ),
                Repairs(),
            )  # fmt: skip


def compare_sessions(
    said: Iterable[StatedValue], about: Callable[[str, str], Sequence[StatedValue]]
) -> Iterator[Found]:
    """Compare the values in sessions with those of cards."""
    winner, reason = REASONS["card-transcript"]
    seen: set[tuple[str, str, str]] = set()
    for item in said:
        for card in about(item.value.kind, item.value.subject):
            key = (item.path, card.path, item.value.value)
            is_same = agree(card.value.kind, card.value.value, item.value.value)
            if card.store != "cards" or is_same or key in seen or item.day <= card.day:
                continue
            if item.repository and card.repository and item.repository != card.repository:
                continue
            seen.add(key)
            yield _said_against("card-transcript", item, card, winner, reason, ""), Repairs()


def _said_against(rule: str, item: StatedValue, card: StatedValue, winner: str, reason: str, step: str) -> Disagreement:
    kind, subject = item.value.kind, item.value.subject
    return Disagreement(
        rule=rule,
        place=f"{item.path}:{item.value.line}",
        says=f"{subject} {kind} {item.value.value} ({item.day})",
        other=f"{card.path}:{card.value.line}",
        other_says=f"{subject} {kind} {card.value.value} ({card.day})",
        winner=winner,
        reason=reason,
        action="none",
        step=step,
    )


def compare_instructions(
    instructions: Iterable[tuple[str | None, Sequence[StatedValue]]],
    about: Callable[[str, str], Sequence[StatedValue]],
) -> Iterator[Found]:
    """Compare instruction files of repositories, and those of the user (None), with cards.

    Instructions win: a person wrote them. Those of a repository come before those of the user.
    """
    seen: set[tuple[str, int]] = set()
    for repository, given in instructions:
        values: dict[tuple[str, str], set[str]] = {}
        for item in given:
            values.setdefault((item.value.kind, item.value.subject), set()).add(item.value.value)
        for item in given:
            own = values[item.value.kind, item.value.subject]
            if len(own) != 1:
                continue  # it lists several, and does not say which one is meant
            for card in about(item.value.kind, item.value.subject):
                is_same = agree(card.value.kind, card.value.value, item.value.value)
                is_of_here = repository is None or card.repository in (repository, "")
                if card.store != "cards" or not is_of_here or (card.path, card.value.start) in seen:
                    continue
                seen.add((card.path, card.value.start))
                if not is_same:
                    winner, reason = REASONS["memory-instructions"]
                    found = Disagreement(
                        rule="memory-instructions",
                        place=f"{card.path}:{card.value.line}",
                        says=f"{card.value.subject} {card.value.kind} {card.value.value}",
                        other=f"{item.path}:{item.value.line}",
                        other_says=f"{item.value.subject} {item.value.kind} {item.value.value}",
                        winner=winner,
                        reason=reason,
                        action="fix",
                    )
                    yield found, Repairs(value=(card, item.value.value))


def compare_rules(path: str, repository: str, data: bytes, given: Sequence[tuple[str, Rule]]) -> Iterator[Found]:
    """Compare what a card tells to do with the rules of instruction files. `given`: the rules, with their files."""
    text = decode_text(data)
    if text is None or not given:
        return
    card = parse_card(path.removeprefix(f"{CARDS}/"), text)
    files = {id(rule): file for file, rule in given}
    statements = find_rules(text)
    winner, reason = REASONS["memory-instructions"]
    for rule, said in find_opposites([rule for _, rule in given], statements):
        other = f"{files[id(rule)]}:{rule.line}"
        is_all = card.body.strip(" \n-*+.") == said.text.strip(" -*+.")
        idea = _dropped_for_rule(path, repository, data, said.text, other, rule.text) if is_all else None
        found = Disagreement(
            rule="memory-instructions",
            place=f"{path}:{said.line}",
            says=said.text,
            other=other,
            other_says=rule.text,
            winner=winner,
            reason=reason,
            action="ask" if idea is not None else "person",
            step="" if idea is not None else f"edit line {said.line} of {path}: take the sentence out",
        )
        yield found, Repairs(idea=idea)


def _dropped_for_rule(path: str, repository: str, data: bytes, said: str, other: str, rule: str) -> Idea:
    name = path.rpartition("/")[2].removesuffix(".md")
    return Idea(
        by=BY,
        slug=f"against-instructions-{name}",
        reasons=(("two-values", f"{path} says: {said}; {other} says: {rule}"),),
        text=f"Drops {path}: {other} says the opposite of all of it.\n\n- the card: {said}\n- {other}: {rule}\n",
        drops=((path, data),),
        repository=repository,
        key=f"{path}\0{said}\0{rule}",
    )


def values_in(path: str, text: str, *, store: str, day: str, repository: str) -> list[StatedValue]:
    """The values that a text gives to things."""
    found: list[Value] = find_values(text, repository=repository)
    return [StatedValue(path, store, day, repository, value) for value in found]
