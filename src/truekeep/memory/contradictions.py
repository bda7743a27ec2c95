"""Two texts of mostly the same words: do they say one thing, or does one of them say another? Pure.

"Ada prefers tabs over spaces" and "Ada prefers spaces over tabs" have all their words in common. Statements of two
texts are put side by side, each beside the one that it shares the most words with. Where such two differ in a negation,
an opposite, a name, a number, a word of an otherwise equal sentence, or in what comes before what, they are variants,
and the texts are not doubles. A statement that has no partner is an addition. A doubtful pair counts as a variant:
whoever makes one text of two that disagree loses what both of them knew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import NamedTuple

from truekeep.memory.merge import parts_of
from truekeep.text.words import STOP, stem_key

ALIKE = 0.34  # of the words of two statements, for them to be about one thing
CONTAINED = 0.6  # or of the words of the shorter one
TOUCHING = 0.2  # or of the words of two that are built alike
FRAME = 0.6  # of their words in the same order: one sentence, with something exchanged in it
SAME_FRAME = 0.8  # with hardly anything: whatever only one of them denies makes another statement
MOST_STATEMENTS = 400
_MOST_TOKENS = 80
_EXCHANGED = 3  # words that stand in the place of others

_TOKEN = re.compile(r"`([^`\n]{1,200})`|\||--?[A-Za-z][\w=-]*|[\w$@#~][\w$@#]*(?:[./:=+&-]+\w+)*")
_NOT = re.compile(r"\b(\w{2,12})n't\b", re.IGNORECASE)
_OWN = re.compile(r"'s\b")
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu)'(?=\w)", re.IGNORECASE)
_END = re.compile(r"(?<=[.;!?])[)\"'*_]*\s+")
_MARK = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_WRITTEN = re.compile(r"[_/@#$~=&:]|\w\.\w|[a-z][A-Z]|\A-{1,2}[a-z]|\d")  # as code, an address or a version is


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    "not no never nobody nothing none neither nor nowhere cannot"
    " nicht kein keine keinen keinem keiner keines nie niemals niemand nichts weder"
    " pas jamais aucun aucune rien nunca jamás nadie nada ningún ninguno ninguna tampoco não non"
)
# What follows one of these has a part of its own in the sentence: from here to there, this over that.
_PARTS = _words(
    "from to into onto over than before after until by as via against instead"
    " von nach vor statt als durch bis gegen"
    " avant après vers plutôt antes después hacia"
)
# What may stand between such a word and that.
_LEADS = _words(
    "the a an this that our your its their his her my it they we you i he she der die das dem den des ein eine einem"
    " einen einer er sie es wir le la les un une il elle on el los las una"
)
_PLAIN = (
    STOP
    | _words("since whereas although though else otherwise thus therefore hence even still yet already again ever now")
    | _words("must need one ones every way sonst daher deshalb also dann müssen | =")
) - _NEGATIONS
_DAYS = _words(
    "monday tuesday wednesday thursday friday saturday sunday"
    " montag dienstag mittwoch donnerstag freitag samstag sonntag"
    " lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo"
)
_SAME_LINES = """
    production prod
    development dev
    database db
    repository repo
    configuration config
    application app
    environment env
    documentation docs
    authentication auth
    directory folder
    show display
    use utilise utilize employ
    need require
    start begin
    large big
    small little
    remove delete
    make create
    repair fix
    machine host
    present current
    failure error
    quick fast
    right correct
    image picture
"""
_NUMBER_LINES = """
    2 two twice zwei doppelt deux dos
    3 three drei trois tres
    4 four vier quatre cuatro
    5 five fünf cinq cinco
    6 six sechs seis
    7 seven sieben sept siete
    8 eight acht huit ocho
    9 nine neun neuf nueve
    10 ten zehn dix diez
    11 eleven elf onze
    12 twelve zwölf douze doce
    20 twenty zwanzig vingt veinte
    30 thirty dreißig trente treinta
    40 forty vierzig quarante cuarenta
    50 fifty fünfzig cinquante cincuenta
    60 sixty sechzig soixante sesenta
    90 ninety neunzig
    100 hundred hundert
    1000 thousand tausend
    2nd second
    3rd third
"""
# Of a line, each two beside the bar are opposites; small words only where they stand in each other's place.
_SMALL_LINES = """
    on|off
    with|without
    before|after
    above over|below under
    up|down
    in inside into|out outside
    into|from
    more|less fewer
    most|least
    all every|some
    always|sometimes
    an ein|aus
    mit|ohne
    vor|nach
    avec|sans
    avant|après
    plus|moins
    con|sin
    antes|después
    más|menos
"""
_OPPOSITE_LINES = """
    enable enabled activate|disable disabled deactivate
    allow allowed permit permitted|forbid forbidden prohibit prohibited disallow deny denied
    increase increased raise raised grow|decrease decreased reduce reduced lower lowered shrink
    true|false
    yes|no
    max maximum|min minimum
    accept accepts|reject rejects refuse refuses
    include includes|exclude excludes
    required mandatory|optional forbidden
    open opened|close closed
    faster|slow slower
    high higher|low lower
    public|private
    local|remote
    automatic automatically|manual manually
    succeed succeeds passes|fail fails
    keep keeps|delete deletes remove removes discard
    safe|dangerous
    online|offline
    opt-in|opt-out
    mehr|weniger
    erlaubt|verboten
    aktivieren aktiviert|deaktivieren deaktiviert
    erhöhen erhöht|senken gesenkt
    öffnen geöffnet|schließen geschlossen
    autorisé autorisée permis|interdit interdite
    augmenter|diminuer réduire
    ouvert|fermé
    permitido|prohibido
    aumentar|reducir
    abierto|cerrado
"""
_REVERSING = ("un", "in", "im", "ir", "il", "non", "dis", "de", "des", "dé", "dés", "a", "anti", "mis")


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().split("\n")]


_NUMBERS = {word: number for number, *words in _lines(_NUMBER_LINES) for word in words}
_SAME = {stem_key(word): stem_key(words[0]) for words in _lines(_SAME_LINES) for word in words}


def _stem(word: str) -> str:
    """What the forms of a word, and words for the same, share. Small words stay as they are."""
    if word in _PLAIN or word in _NEGATIONS or word in _PARTS:
        return word
    stem = stem_key(word)
    return word if stem in _NEGATIONS else _SAME.get(stem, stem)  # "notes" are no "not"


# What says no in other words, or only under a condition: a negation beside it says nothing new.
_RESTRAINTS = frozenset(
    _stem(word)
    for word in _words(
        "without only except unless instead rather forbid forbids forbidden prohibit disallow disable disabled deny"
        " denied refuse reject rejected lack lacks miss misses missing fail fails failing avoid prevent exclude ignore"
        " skip omit lose loses lost bypass exempt rarely hardly stop stops stopped frozen muted turned wait waits until"
        " ohne nur statt außer verboten fehlt fehlen sonst sans seulement sin solo sólo"
    )
)


def _opposites(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in text.strip().split("\n"):
        one, other = ([_stem(word) for word in half.split()] for half in line.split("|"))
        for first, second in ((one, other), (other, one)):
            for word in first:
                found.setdefault(word, set()).update(second)
    return {word: frozenset(words) for word, words in found.items()}


_OPPOSITES, _SMALL = _opposites(_OPPOSITE_LINES), _opposites(_SMALL_LINES)


class Variant(NamedTuple):
    """Two statements that cannot both be what one card says, or not for sure."""

    one: str
    other: str
    why: str  # in a few words: what they differ in


class _Statement:
    """A sentence or a line of a list, as its words."""

    def __init__(self, text: str, item: str = "") -> None:
        self.text = text
        self.item = item or text  # the line or paragraph that it stands in
        self.stems: list[str] = []
        self.names: set[str] = set()
        self.numbers: set[str] = set()
        for number, (word, is_code) in enumerate(_tokens(text)):
            low = word.casefold()
            is_written = is_code or _WRITTEN.search(word) is not None
            stem = low if is_written else _stem(low)
            if low in _NUMBERS or low[0].isdigit():
                stem = _NUMBERS.get(low) or low.replace(",", "")
                self.numbers.add(stem)
            elif is_written or low in _DAYS or (number and word[0].isupper()):
                self.names.add(stem)
            self.stems.append(stem)
        self.all = frozenset(self.stems)
        self.content = frozenset(stem for stem in self.stems if stem not in _PLAIN or stem in self.names)
        self.denied = Counter(self._denied())

    def _denied(self) -> Iterator[str]:
        """What each negation says no to: the next word that says something, else the last one."""
        for at, stem in enumerate(self.stems):
            if stem in _NEGATIONS:
                behind = (word for word in self.stems[at + 1 :] if word in self.content and word not in _NEGATIONS)
                before = (word for word in reversed(self.stems[:at]) if word in self.content)
                yield next(behind, None) or next(before, "")

    def parts(self) -> dict[str, set[str]]:
        """What has a part of its own in the sentence, by the word that gives it."""
        found: dict[str, set[str]] = {}
        for at, stem in enumerate(self.stems):
            if stem in _PARTS:
                behind = (word for word in self.stems[at + 1 :] if word not in _LEADS)
                found.setdefault(stem, set()).update(islice(takewhile(self.content.__contains__, behind), _EXCHANGED))
        return found

    @property
    def skeleton(self) -> list[str]:
        """The sentence without the words that say something."""
        return ["" if stem in self.content else stem for stem in self.stems]


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a statement, and whether each is code. What is written together stays so."""
    plain = text.replace("\u2019", "'")
    plain = _NOT.sub(lambda match: {"ca": "can", "wo": "will"}.get(match[1].lower(), match[1]) + " not", plain)
    plain = _ELISION.sub("", _OWN.sub("", plain)).replace("cannot", "can not")
    count = 0
    for match in _TOKEN.finditer(plain):
        words = (match[1] if match[1] is not None else match[0]).replace("=", " = ").split()
        for word in words:
            yield word, match[1] is not None
            count += 1
            if count == _MOST_TOKENS:
                return


def statements_of(text: str) -> list[tuple[str, str]]:
    """What a text says, sentence by sentence, each with what it stands in; code line by line. Headings are none."""
    found: list[tuple[str, str]] = []
    for part in parts_of(text.replace("\r\n", "\n")):
        for statement in part.statements:
            if statement.is_code:
                found += [(f"`{line.strip()}`", "") for line in statement.lines[1:-1] if line.strip(" `~")]
                continue
            bare = [line[match.end() :] if (match := _MARK.match(line)) else line for line in statement.lines]
            is_table = bare[0].lstrip().startswith("|")
            for piece in bare if is_table else [" ".join(bare)]:
                found += [(sentence, piece) for sentence in _END.split(piece) if sentence.strip(" |-:")]
            if len(found) >= MOST_STATEMENTS:
                return found[:MOST_STATEMENTS]
    return found


def find_variant(one: str, other: str, topics: tuple[str, str] = ("", "")) -> Variant | None:
    """The first two statements of two texts that say different things in nearly the same words; else their topics."""
    mine, theirs = ([_Statement(*said) for said in statements_of(body)] for body in (one, other))
    about, subject = (_Statement(topic) for topic in topics)
    here = {word for item in (*mine, about) for word in item.all}
    there = {word for item in (*theirs, subject) for word in item.all}
    for first, second in _side_by_side(mine, theirs):
        why = _differ(first, second, here, there)
        if why:
            return Variant(first.text, second.text, why)
    return Variant(*topics, "what it is about") if _is_other_topic(about, subject, here, there) else None


def differ_in(one: str, other: str) -> str:
    """What two single statements differ in; nothing where they may say the same."""
    first, second = _Statement(one), _Statement(other)
    return _differ(first, second, set(first.all), set(second.all))


def _is_other_topic(one: _Statement, other: _Statement, here: set[str], there: set[str]) -> bool:
    """Whether two topics differ in a word that the other card does not know."""
    if _ratio(one, other) < FRAME:
        return False
    for left, right in _exchanged(one, other):
        mine, theirs = left - there, right - here
        is_named = mine & (one.names | one.numbers) and theirs & (other.names | other.numbers)
        if mine and theirs and (is_named or len(one.stems) - len(left) > 2):
            return True
    return False


def _side_by_side(mine: Sequence[_Statement], theirs: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Statements that are about one thing, the most alike first, each once. Those that both sides have are left out."""
    said, told = ({" ".join(item.stems) for item in side} for side in (mine, theirs))
    mine = [item for item in mine if " ".join(item.stems) not in told]
    theirs = [item for item in theirs if " ".join(item.stems) not in said]
    by_word: dict[str, list[int]] = {}
    for at, item in enumerate(theirs):
        for word in item.content:
            by_word.setdefault(word, []).append(at)
    found: list[tuple[float, int, int]] = []
    for number, item in enumerate(mine):
        shared: Counter[int] = Counter(at for word in item.content for at in by_word.get(word, ()))
        for at, count in shared.items():
            other = theirs[at]
            every = len(item.content | other.content)
            least = min(len(item.content), len(other.content))
            is_alike = count / every >= ALIKE or (count / least >= CONTAINED and (count > 1 or every <= 3))
            if is_alike or (count / every >= TOUCHING and _ratio(item, other) >= FRAME):
                found.append((count / every, number, at))
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, number, at in sorted(found, key=lambda item: (-item[0], item[1], item[2])):
        if number not in taken[0] and at not in taken[1]:
            taken[0].add(number)
            taken[1].add(at)
            yield mine[number], theirs[at]


def _differ(one: _Statement, other: _Statement, here: set[str], there: set[str]) -> str:
    """What two statements about one thing differ in: `here` and `there` are all words of the texts around them."""
    if one.stems == other.stems:
        return ""
    ratio = _ratio(one, other)
    is_framed = ratio >= FRAME
    here, there = (set(one.all), set(other.all)) if is_framed else (here, there)
    if one.numbers - there and other.numbers - here:
        return "a number"
    if one.names - there and other.names - here:
        return "a name"
    opposed = list(_opposed(one, other, is_framed=is_framed))
    if any((word in one.denied) == (stem in other.denied) for word, stem in opposed):
        return "an opposite"
    if ratio >= SAME_FRAME and _denials_differ(one, other):
        return "a negation"
    if bool(one.denied) != bool(other.denied) and not opposed and not _is_restrained(one, other):
        return "a negation"
    if is_framed and any(left and right for left, right in _exchanged(one, other)):
        return "a word"
    return "the order" if _is_turned(one, other, is_framed=is_framed) else ""


def _ratio(one: _Statement, other: _Statement) -> float:
    """How much of two statements is the same words in the same order."""
    first, second = sorted((one.stems, other.stems))  # which of them is looked up in which makes a difference
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _is_restrained(one: _Statement, other: _Statement) -> bool:
    """Whether the one that denies nothing says no in other words."""
    positive, negative = (other, one) if one.denied else (one, other)
    around = _Statement(positive.item)
    if around.denied or around.all & _RESTRAINTS:
        return True
    return any(_reversed(word, denied) for word in around.all for denied in negative.denied)


def _denials_differ(one: _Statement, other: _Statement) -> bool:
    """Whether two statements deny different things. A denial and an opposite make none."""
    if one.denied == other.denied:
        return False
    for first, second in ((one, other), (other, one)):
        for word in first.denied - second.denied:
            if not any(_are_opposite(word, stem) for stem in second.all - first.all):
                return True
    return False


def _opposed(one: _Statement, other: _Statement, *, is_framed: bool) -> Iterator[tuple[str, str]]:
    """The words of one whose opposites the other has. Small words count in their place only."""
    for word in one.all - other.all - _PLAIN:
        for stem in other.all - one.all - _PLAIN:
            if _are_opposite(word, stem):
                yield word, stem
    for left, right in _replaced(one, other) if is_framed else ():
        for word in left - other.all:
            yield from ((word, stem) for stem in right - one.all if stem in _SMALL.get(word, ()))


def _are_opposite(one: str, other: str) -> bool:
    return other in _OPPOSITES.get(one, ()) or _reversed(one, other) or _reversed(other, one)


def _reversed(word: str, plain: str) -> bool:
    """Whether a word is another one with the syllable before it that says no."""
    return (
        len(plain) > 3
        and word != plain
        and word.endswith(plain)
        and word[: len(word) - len(plain)].rstrip("-") in _REVERSING
    )


def _replaced(one: _Statement, other: _Statement) -> Iterator[tuple[set[str], set[str]]]:
    """The few words that stand in the place of others."""
    first, second = sorted((one.stems, other.stems))
    for tag, start, end, at, to in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "replace" and max(end - start, to - at) <= _EXCHANGED:
            left, right = set(first[start:end]), set(second[at:to])
            yield (left, right) if first is one.stems else (right, left)


def _exchanged(one: _Statement, other: _Statement) -> Iterator[tuple[set[str], set[str]]]:
    """The words that stand in each other's place, each side without what is only another form of the other's."""
    for left, right in _replaced(one, other):
        mine = {word for word in left & one.content - other.all if word not in _NEGATIONS}
        theirs = {word for word in right & other.content - one.all if word not in _NEGATIONS}
        yield (
            {word for word in mine if not any(_is_form(word, stem) for stem in theirs)},
            {word for word in theirs if not any(_is_form(word, stem) for stem in mine)},
        )


def _is_form(one: str, other: str) -> bool:
    """Whether one word is another form of the other: it begins with it."""
    short, long = sorted((one, other), key=len)
    return len(short) > 3 and long.startswith(short) and not _WRITTEN.search(long)


def _is_turned(one: _Statement, other: _Statement, *, is_framed: bool) -> bool:
    """Whether two statements have their words in each other's places."""
    mine, theirs = ([stem for stem in item.stems if stem in item.content] for item in (one, other))
    if mine != theirs and Counter(mine) == Counter(theirs) and one.skeleton == other.skeleton:
        return True
    for left, right in _replaced(one, other) if is_framed else ():
        if (left & one.content) - right and (right & other.content) - left and left <= other.all and right <= one.all:
            return True
    parts, others = one.parts() | {"no": set(one.denied)}, other.parts() | {"no": set(other.denied)}
    return any(
        not parts[part] & others[part] and parts[part] & other.all and others[part] & one.all
        for part in parts.keys() & others.keys()
    )
