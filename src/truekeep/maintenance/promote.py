"""Statements that daily logs repeat or call structural, and no card has yet: proposed as cards, with their places.

A log tells what happened; what lasts belongs into a card. Statements of mostly the same words are one, whatever day
they are of. A card holds a statement when a passage of it has nearly all of its telling words. A word tells the more,
the fewer cards have it: what logs say of two services in the same words are two statements, and so are a statement and
its opposite. What a day is made of (tests that ran, meetings, what is to be done tomorrow) is not proposed, however
often it is said.

Most of what real logs repeat word by word is a form that a program or a habit fills in: the files that repeat it have
many other lines in common. So a statement that nobody tagged is proposed only if it reads as a rule, a reason, a
preference or a value, if its days have little else in common, and if no other memory that agents read has it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import zip_longest
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.handoffs.format import compose_handoff, slugify
from truekeep.maintenance.proposals import Idea
from truekeep.maintenance.survey.reader import hash_word, statement_words
from truekeep.maintenance.survey.service import Survey
from truekeep.memory.card import Card, parse_card, words_of
from truekeep.memory.contradictions import differ_in, find_variant
from truekeep.memory.covering import names_in
from truekeep.memory.values import find_values
from truekeep.text.durability import find_hints
from truekeep.text.encoding import decode_text
from truekeep.text.phrases import load_phrases
from truekeep.text.secrets.scanner import holds_secret, withhold
from truekeep.text.unicode import clip, printable
from truekeep.text.words import STOP, cjk_pairs

BY = "tidy promote"
MIN_DAYS = 3  # on which logs repeat a statement
ALIKE = 0.75  # of the words of two statements, by how telling they are, for them to be one
HELD = 0.97  # of a statement's words, by how telling they are, in one card
_MIN_TOTAL_CARDS = 100  # for weights: in a store of three cards, a word of two is not common
TELLING = 4  # words of a statement that says something by itself, and one less of what is called structural
MAX_STATEMENT_CHARS = 8_000
_MAX_CITED_PLACES = 12  # in a draft
_MAX_TITLE_CHARS = 90
_MAX_CITED_CHARS = 160
_CONTRARY = ("a negation", "an opposite", "the order")  # what makes a statement the contrary of another one
_STRUCK = re.compile(r"~~[^~\n]{1,2000}~~")
# What a day is made of, at the beginning of what is said of it; and what makes a rule or a finding of it all the same.
_ROUTINE = re.compile(
    r"\W*(?:(?:i|we|just|then|also|again|today|yesterday|morning|evening)\W+)*(?:ran|re-?ran|stand-?up|daily|meeting|met"
    r"|call|sync|synced|lunch|break|retro|planning|reviewed|merged|pushed|pulled|committed|rebased|deployed|released"
    r"|shipped|worked|working|continued|continuing|started|finished|updated|upgraded|bumped|cleaned|answered|replied"
    r"|wrote|read|restarted|tests? (?:pass|passed|green|ran)|all (?:green|good|tests)|todo|besprechung|réunion|reunión"
    r"|gearbeitet|weiter)\b",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"\b(?:must|never|always|because|since|otherwise|needs?|should|do not|don't|cannot|can't|only|unless|if|when"
    r"|whenever|before|after|decided|use|uses|avoid|muss|nie|immer|weil|sonst|nur|wenn|toujours|jamais|car|siempre"
    r"|nunca|porque)\b",
    re.IGNORECASE,
)
# The logs of days, and not reports about one thing that happen to be dated.
_JOURNAL = re.compile(
    r"memory/(?:(?:daily|daily-?logs?|daily-?notes|logs?|journal|diary|days)/(?:\d{4}/)?(?:[\d-]{2,7}/)?)?"
    r"\d{4}-\d\d-\d\d[^/]*\.md"
)
_MIN_FORM_LINES = 3  # that the files of a statement have in common besides it: they are filled-in forms
_STATUS = re.compile(r"[^.:!?]{1,60}:\s*(?P<value>\S.{0,60})")
_MAX_STATUS_WORDS = 3  # "Themes reviewed: none today"
_DATED = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d|\A\W*\d{1,2}[:.]\d\d\b|\b\d{1,2}:\d\d:\d\d\b")
_NO_PROSE = re.compile(
    r"`[^`]*`|https?://\S+|\S+@\S+\.\w+|\w+(?::[\w-]+){2,}|(?:[\w.~-]*/)+[\w.-]*"
    r"|\b[\w-]+\.(?:md|py|sh|jsonl?|ya?ml|csv|ts|js)\b"
)
_MIN_PROSE_CHARS = 0.5  # of a statement that are not paths, addresses and code
_WELL_KNOWN = ("MEMORY.md", "AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "CLAUDE.md")
_SAID_ELSEWHERE = 0.8  # of a statement's words in two neighbouring lines of such a file
_TIMES = ("today", "tomorrow", "yesterday", "tonight", "morning", "evening", "week", "monday", "tuesday", "wednesday",
          "thursday", "friday", "heute", "morgen", "gestern")  # fmt: skip

_OFTEN_SAID = ("again", "ever", "never", "always", "still", "yet", "already", "now", "today")  # whatever is told
_COMMON = frozenset(hash_word(word) for word in (*STOP, *_OFTEN_SAID))

Read = Callable[[str], bytes | None]


class LogPlace(NamedTuple):
    """A place in a log."""

    day: str
    path: str
    line: int
    text: str
    more: str = ""  # what stands below it

    @property
    def cited(self) -> str:
        return f"{self.path}:{self.line}"


class RepeatedStatement(NamedTuple):
    """A statement of logs, with all its places."""

    kind: str  # of its tag; empty without one
    importance: float
    places: tuple[LogPlace, ...]
    against: str = ""  # who says the contrary, and what

    @property
    def text(self) -> str:
        return self.places[-1].text  # as it was said last

    @property
    def days(self) -> int:
        return len({place.day for place in self.places})


def lasting_statements(survey: Survey, *, structural: float, is_tagged_only: bool = False) -> list[RepeatedStatement]:
    """Lasting statements of logs: tagged as structural, or repeated on several days. Similar ones are one."""
    groups = _Groups(WordWeights(survey))
    for entry in survey.entries():
        first, _, more = entry.text.strip().partition("\n")
        text = _unstruck(first)
        if entry.importance < structural:
            continue
        if len(text) > MAX_STATEMENT_CHARS or lasts(text, is_structural=True) or holds_secret(text):
            place = LogPlace(entry.day, entry.path, entry.first, text, _unstruck(more))
            groups.add(place, entry.kind, entry.importance)
    for rows in survey.repeated_statements(MIN_DAYS):
        for day, path, line, text in rows:
            if _JOURNAL.fullmatch(path) and lasts(bare := _unstruck(text)):
                groups.add(LogPlace(day, path, line, bare), "", 0.0)
    found = [group.statement() for group in groups.all]
    tagged = [item for item in found if item.importance >= structural]
    if is_tagged_only:
        return tagged
    often = [item for item in found if item.importance < structural and item.days >= MIN_DAYS]
    return tagged + [item for item in often if reads_as_lasting(item.text) and not _is_form(survey, item)]


@lru_cache(maxsize=10_000)
def reads_as_lasting(text: str) -> bool:
    """Whether a sentence says a rule, a reason, a preference or the value of a thing, and not how a day went."""
    if _DATED.search(text) or len(_NO_PROSE.sub("", text).strip()) < _MIN_PROSE_CHARS * len(text):
        return False
    status = _STATUS.fullmatch(text)
    has_value = bool(find_values(text))
    if status is not None and len(status["value"].split()) <= _MAX_STATUS_WORDS and not has_value:
        return False
    return has_value or _rule().search(text) is not None


@cache
def _rule() -> re.Pattern[str]:
    return re.compile(rf"(?:{load_phrases('lasting').any_of('rule')})", re.IGNORECASE)


def _is_form(survey: Survey, item: RepeatedStatement) -> bool:
    """Whether the logs that repeat a statement repeat many other lines as well."""
    own = {place.text for place in item.places}
    shared = Counter(
        text for path in {place.path for place in item.places} for text in survey.statements_of(path) - own
    )
    return sum(count >= MIN_DAYS for count in shared.values()) >= _MIN_FORM_LINES


def _unstruck(text: str) -> str:
    """A text without its struck-through parts."""
    return _STRUCK.sub("", text).strip() if "~~" in text else text.strip()


@lru_cache(maxsize=10_000)  # logs say the same again and again
def lasts(text: str, *, is_structural: bool = False) -> bool:
    """Whether a statement may be worth a card: it is long enough, and not only about one day.

    A statement that is tagged as structural may name a day or refer to "this"; the draft says so.
    """
    words = {word for word in words_of(text) if len(word) > 2 and word not in STOP and word not in _TIMES}
    words.update(cjk_pairs(text))
    if len(words) < TELLING - is_structural or (_ROUTINE.match(text) and not _LASTS.search(text)):
        return False
    codes = {hint.code for hint in find_hints([(1, text)])}
    return "task-state" not in codes if is_structural else not codes


class WordWeights:
    """The weights of words: the fewer cards have a word, the higher its weight."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._total = max(_MIN_TOTAL_CARDS, survey.count("cards"))
        self._known: dict[int, float] = {}

    def of(self, words: Iterable[int]) -> float:
        return sum(self._of(word) for word in words)

    def _of(self, word: int) -> float:
        known = self._known.get(word)
        if known is None:
            ((_, count),) = self._survey.count_cards_with((word,))
            cards = self._total // 2 if word in _COMMON else max(0, count)
            known = math.log((self._total + 2) / (cards + 1))
            self._known[word] = known
        return known


class _Group:
    """Places with one statement."""

    def __init__(self, words: set[int], weight: float) -> None:
        self.words, self.weight = words, weight
        self.places: dict[tuple[str, int], LogPlace] = {}
        self.kind, self.importance = "", 0.0
        self.against: _Group | None = None  # those that say the contrary

    @property
    def first(self) -> LogPlace:
        return next(iter(self.places.values()))

    def statement(self) -> RepeatedStatement:
        place = self.against.first if self.against is not None else None
        against = f'{place.cited} says "{clip(place.text, _MAX_CITED_CHARS)}"' if place is not None else ""
        return RepeatedStatement(self.kind, self.importance, tuple(sorted(self.places.values())), against)


class _Groups:
    """Groups of similar statements, found by their rare words."""

    def __init__(self, weights: WordWeights) -> None:
        self._weights = weights
        self.all: list[_Group] = []
        self._by_word: dict[int, list[_Group]] = {}

    def add(self, place: LogPlace, kind: str, importance: float) -> None:
        words = statement_words(place.text)
        group, against = self._find(words, place.text)
        if group is None:
            group = _Group(words, self._weights.of(words))
            if against is not None:
                group.against, against.against = against, group
            self.all.append(group)
            for word in words:
                self._by_word.setdefault(word, []).append(group)
        group.places.setdefault((place.path, place.line), place)
        if importance > group.importance:
            group.kind, group.importance = kind, importance

    def _find(self, words: set[int], text: str) -> tuple[_Group | None, _Group | None]:
        """The group of a statement, and a group with its contrary."""
        against = None
        known = [self._by_word[word] for word in words if word in self._by_word]
        best, most, own = None, ALIKE, self._weights.of(words)
        for group in {id(group): group for groups in sorted(known, key=len)[:4] for group in groups[-200:]}.values():
            both = self._weights.of(words & group.words)
            every = own + group.weight - both
            alike = both / every if every else 1.0
            if alike >= most:
                why = differ_in(text, group.first.text) if text != group.first.text else ""
                if why in _CONTRARY:
                    against = group
                elif why in ("", "a word"):
                    best, most = group, alike
        return best, against


def is_well_known(read: Read, text: str) -> bool:
    """Whether a file that agents read at the start of every session says this already."""
    words = statement_words(text)
    wanted = _SAID_ELSEWHERE * len(words)
    for path in _WELL_KNOWN:
        lines = [statement_words(line) for line in (decode_text(read(path) or b"") or "").split("\n")]
        for one, other in zip_longest(lines, lines[1:], fillvalue=set[int]()):
            if len(words & (one | other)) >= wanted:
                return True
    return False


def find_card_with(survey: Survey, read: Read, text: str, weights: WordWeights) -> tuple[str, str]:
    """The card that has a statement, else a sentence about a card with its contrary; both empty if no card has either.

    A statement with another name or number is another statement.
    """
    words = statement_words(text)
    named, wanted = names_in(text), HELD * weights.of(words)
    against = ""
    for path in survey.find_cards_with(words):
        data = read(path)
        card = parse_card(path.removeprefix(f"{CARDS}/"), decode_text(data) or "") if data is not None else None
        if card is None:
            continue
        for said in _passages(card):
            if named <= said and weights.of(words & {hash_word(word) for word in said}) >= wanted:
                variant = find_variant(text, card.body.replace("\r\n", "\n"))
                if variant is None or variant.why not in _CONTRARY:
                    return path, ""
                against = f'{path} says "{clip(variant.other, _MAX_CITED_CHARS)}"'
                break
    return "", against


def _passages(card: Card) -> Iterator[set[str]]:
    """The words of every two consecutive lines of a card, with those of its topic."""
    topic = {*words_of(card.topic), *cjk_pairs(card.topic)}
    lines = [[*words_of(line), *cjk_pairs(line)] for line in card.body.split("\n") if line.strip()]
    for one, other in zip_longest(lines, lines[1:], fillvalue=()):
        yield {*topic, *one, *other}


def promotion_ideas(survey: Survey, read: Read, *, structural: float, is_tagged_only: bool = False) -> Iterator[Idea]:
    """A proposed card for each lasting statement that no card has, the most important first.

    `is_tagged_only`: only what a log tags as structural, because most of what logs repeat nobody wants as a card.
    """
    statements = lasting_statements(survey, structural=structural, is_tagged_only=is_tagged_only)
    statements.sort(key=lambda item: (-item.importance, -item.days, item.places[0]))
    names: set[str] = set()
    weights = WordWeights(survey)
    for item in statements:
        if any(map(holds_secret, map(_whole, item.places))):
            yield _withheld_idea(item)
            continue
        held, against = find_card_with(survey, read, item.text, weights)
        if held or is_well_known(read, item.text):
            continue
        item = item._replace(against="; ".join(filter(None, (item.against, against))))
        name = _free_name(item.places[0].text, lambda name: name in names or read(f"{CARDS}/{name}") is not None)
        names.add(name)
        yield promotion_idea(item, name)


def promotion_idea(item: RepeatedStatement, name: str) -> Idea:
    text = " ".join(item.text.split())
    why = [("structural", f"{item.places[-1].cited} marks it with i={item.importance:g}")] if item.importance else []
    if item.days >= MIN_DAYS:
        why.append(("repeated", f"said on {item.days} days, from {item.places[0].day} to {item.places[-1].day}"))
    if item.against:
        why.append(("contradicted", withhold(printable(f"{item.against}, which is the contrary"))))
    said = dict.fromkeys((" ".join(place.text.split()), place.more) for place in reversed(item.places))
    lines = [line for text, more in list(said)[:5] for line in (f"- {text}", *_below(more))]
    cited = [f"{place.cited}: {clip(place.text, _MAX_CITED_CHARS)}" for place in item.places[-_MAX_CITED_PLACES:]]
    cited += (
        [f"and {len(item.places) - _MAX_CITED_PLACES} earlier places"] if len(item.places) > _MAX_CITED_PLACES else []
    )
    handoff = compose_handoff(
        title=text[:_MAX_TITLE_CHARS],
        kind="decision" if item.kind == "decision" else "project-context",
        summary=f"Daily logs say this, and no card holds it: {printable(text[:200])}",
        evidence=[printable(line) for line in cited],
        card=name,
        topic=printable(text[:_MAX_TITLE_CHARS]),
        category=item.kind or "log",
        tags=["from-log"],
        content=printable("\n".join(lines), newlines=True) + "\n",
    )
    size = max(len(place.text) + len(place.more) for place in item.places)
    cited_last = item.places[-1].cited
    is_long = f"{cited_last} has {size:,} characters, too many for one statement; write a card of what lasts in it"
    return Idea(
        by=BY,
        slug=f"promote-{name.removesuffix('.md')}",
        reasons=tuple(why),
        text=handoff,
        target=f"{CARDS}/{name}",
        key=_key(item),
        hindrance=is_long if size > MAX_STATEMENT_CHARS else "",
    )


def _withheld_idea(item: RepeatedStatement) -> Idea:
    """The report of a statement with a credential, which is not proposed: only its places are named."""
    places = ", ".join(place.cited for place in item.places[-_MAX_CITED_PLACES:])
    reason = ("secret", f"{places}: what looks like a credential stands there")
    text = next(text for text in map(_whole, item.places) if holds_secret(text))
    return Idea(by=BY, slug="withheld", reasons=(reason,), text=text, key=_key(item), hindrance="a credential")


def _whole(place: LogPlace) -> str:
    return f"{place.text}\n{place.more}"


def _key(item: RepeatedStatement) -> str:
    return " ".join(map(str, sorted(statement_words(item.places[0].text))))


def _below(more: str) -> list[str]:
    """The lines below a statement, as a list."""
    lines = [line for line in more.split("\n") if line.strip()]
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [f"  {line[least:]}" for line in lines]


def _free_name(text: str, is_taken: Callable[[str], bool]) -> str:
    stem = slugify(text, limit=60) or "from-the-logs"
    name, number = f"{stem}.md", 2
    while is_taken(name):
        name, number = f"{stem}-{number}.md", number + 1
    return name
