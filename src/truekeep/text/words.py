"""Words in texts and questions: which ones carry meaning, which are identifiers, which name a day.

Pure. Latin text is words between blanks; Chinese, Japanese and Korean text has none, so there every two neighbouring
characters count as a word.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

WORD = re.compile(r"[^\W_]+")
_BLANKED = "".join(chr(number) if chr(number).isalnum() else " " for number in range(128))
_BLANKED_LINES = _BLANKED[:10] + "\n" + _BLANKED[11:]  # the same, with line ends kept
_CJK = "\u2e80-\u303f\u3041-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # fmt: skip  # noqa: E501


def split_words(text: str) -> list[str]:
    """The words of a text, as WORD finds them; four times as fast for ASCII."""
    return text.translate(_BLANKED).split() if text.isascii() else WORD.findall(text)


def split_lines(text: str) -> list[list[str]]:
    """The words of each line of a text, as split_words finds them in the line."""
    if text.isascii():
        return [line.split() for line in text.translate(_BLANKED_LINES).split("\n")]
    return [split_words(line) for line in text.split("\n")]


@lru_cache(maxsize=1)
def _cjk_run() -> re.Pattern[str]:
    """A run of CJK text. Compiled on first use: it is a large class, and most texts do not need it."""
    return re.compile(f"[{_CJK}]+")


def count_cjk(text: str) -> int:
    """How many characters of a text are Chinese, Japanese or Korean."""
    return sum(map(len, _cjk_run().findall(text)))


_HIRAGANA = re.compile(r"[\u3041-\u309f]+\Z")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HAS_HUMP = re.compile(r"[A-Z](?<=[a-z0-9].)")  # a capital first: that is rare, so most of a text is skipped quickly
_HUMPS = re.compile(r"[A-Z](?<=[a-z0-9].)[A-Za-z0-9]*")
_PIECE = re.compile(r"[^\s\"'`()\[\]{}<>,;!?，。、；！？「」『』（）]+")
_INNER = re.compile(r"[\w][_./\\:@#+~=-]+[\w]")
_TELLING = r"[A-Za-z_][A-Za-z0-9_]{2,60}(?:[./:-][A-Za-z0-9_]{1,60}){0,6}|\b\d{4,5}\b"

# Function words: they say nothing about what a text is about. Short lists on purpose; rarity does the rest.
_STOP_TEXT = (
    # English
    "a about after all also am an and any are as at be because been before being both but by can could did do does "
    "doing during each few for from further get got had has have having he her here hers him his how i if in into is "
    "it its just let like ll may me might more most must my no nor not of off on once only or other our ours out over "
    "own re s same shall she should so some such t than that the their theirs them then there these they this those "
    "through to too under until up us use used using ve very was we were what when where which while who whom whose "
    "why will with would you your yours don doesn didn isn wasn aren weren won shouldn couldn wouldn hasn haven "
    # German
    "aber alle als am an auch auf aus bei beim bin bis bitte da damit dann das dass dem den denn der des "
    "dich die dies "
    "diese dieser dieses doch du durch ein eine einem einen einer eines er es etwas für gibt habe haben "
    "hat hatte ich "
    "ihr im ist ja jede jeder kann kein keine können man mein mich mir mit muss nach nicht noch nun nur "
    "ob oder ohne "
    "schon sehr sein seine sich sie sind so soll sollte über um und uns unser unter vom von vor war warum was weil "
    "welche welcher welches wenn wer werden wie wieder wir wird wo woher wurde wurden zu zum zur "
    # French, Spanish, Portuguese, Italian
    "au aux ce ces cette dans de des du elle en est et il ils je la le les leur lui mais ne nous ou où "
    "par pas pour "
    "qu que qui sa se ses son sont sur un une vous con cual del el ella ellos esta este lo los las más "
    "muy para pero "
    "por qué si sin su sus una uno y com como da dos ela ele em foi mas nas no nos o os não na pelo sua ao che chi "
    "della gli nel sono"
)
STOP = frozenset(_STOP_TEXT.split())

# Words of questions: they say what is asked for, not what about, and in notes they are rare, so rarity does not help.
_ASKING_TEXT = (
    # English
    "does exactly how many much whether whose "
    # German
    "ab alles allem beim dabei dazu derzeit eigentlich euch falls gab geht gehen gemacht genau hatten "
    "hätte jedem jeden "
    "jedes kam kamen kommt konnte machen macht mal meine meinem meinen meiner müssen musst muß sagen sagt "
    "seit soll "
    "sollen sollten unsere unserem unseren unserer viel viele vielen wann ward waren weshalb weg welchem "
    "welchen wem "
    "wen weswegen wieso wieviel will wollen wollte wollten worden wozu würde würden zwischen "
    # Malay and Indonesian
    "ada adakah adalah akan aku anda antara apa apakah atau bagaimana bagi berapa bila boleh buat dalam dan dari "
    "daripada dengan di dia dibuat guna harus hingga ia ialah ini itu jika juga kalau kami ke kenapa "
    "kepada kita lagi "
    "lebih macam mana masih mengapa mereka mesti oleh pada patut perlu saja sahaja sama saya sebab sebagai selepas "
    "semasa sesuatu siapa sudah supaya telah tentang tidak untuk yang "
    # Russian
    "а без более был была были было быть в вам вас весь во вот все всё всего вы где да для до его ее её "
    "если есть ещё "
    "еще же за зачем и из или им их к как какая какие каким каких какое какой какого какому каком когда "
    "кого ком кому "
    "который которая которые которое кто куда ли лишь между меня мне мной можно мой моя мы на над надо "
    "нам нас насколько "
    "наш не него неё ней нельзя несколько нет них но нужно о об он она они оно от отчего очень по под "
    "почему при про "
    "раз с самый сам своя свой себя сколько со так также такой там те тем то того тоже той только том тот "
    "ту ты у уже "
    "хотя часто чего чей чем через что чтобы чья эта эти это этого этой этом этот я делать значит "
    # Spanish, Portuguese, French, Italian
    "cuál cuáles cuándo cuánto cuánta cuántos cuántas cómo dónde quién quiénes hay fue era ser está están "
    "tiene hace "
    "hacer qual quais quando quanto quanta quantos quantas onde quem porque é eram foram ser está estão tem fazer "
    "combien comment pourquoi quand quel quelle quels quelles quoi était faire fait chi cosa dove perché "
    "quale quali "
    "quanti quante stato fare"
)
ASKING = frozenset(_ASKING_TEXT.split())
_ASKING_PAIRS_TEXT = (  # the same in Chinese, Japanese and Korean, by two characters
    "什么 什麼 么时 麼時 时候 時候 为什 為什 怎么 怎麼 么样 麼樣 哪个 哪個 哪些 哪里 哪裡 哪裏 哪一 哪天 哪几 哪幾 "
    "几个 幾個 几点 幾點 几次 幾次 几级 几层 多少 多久 是不 不是 是否 可以 应该 應該 能不 不能 我们 我們 你们 他们 "
    "那个 那個 这个 這個 一个 一個 有哪 有什 是什 是哪 的是 用什 做什 到底 一共 还是 還是 或者 以及 之前 之后 之後 "
    "以前 的时 的時 是几 是幾 在哪 要多 何で 何の です ます した して ない なぜ どの どれ どう いつ "
    "어떤 어떻 무엇 언제 누가 어디 얼마"
)
_ASKING_PAIRS = frozenset(_ASKING_PAIRS_TEXT.split())
_GERMAN_TEXT = (
    "wie wer wem wen wann warum weshalb wieso wo welche welcher welches welchem welchen der das dem den ein eine einen "
    "und ist sind wird werden hat haben ich wir"
)
_GERMAN = frozenset(_GERMAN_TEXT.split())
_PARTICLES = frozenset(
    "的了是嗎吗呢吧那這这個个麼么什哪幾几為为怎在有和與与也都就要會会能我你他她它們们到把被讓让从從對对用一不"
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar januari января январь",
            "february feb februar februari февраля февраль",
            "march mar märz maerz mrz mac maret marzo марта март",
            "april apr abril апреля апрель",
            "may mai mei мая май",
            "june jun juni jun июня июнь",
            "july jul juli julai июля июль",
            "august aug ogos августа август",
            "september sep sept сентября сентябрь",
            "october oct oktober okt октября октябрь",
            "november nov ноября ноябрь", "december dec dezember dez disember декабря декабрь",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_ISO = r"\b(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?\b"
_CJK_DAY = r"(?:(\d{4})\s*年)?\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*[日号])?"
_DAY_MONTH = r"\b(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?([^\W\d_]{3,9})\.?(?:,?\s+(\d{4}))?"
_MONTH_DAY = r"\b([^\W\d_]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4}))?"
_MONTH_YEAR = r"\b([^\W\d_]{3,9})\.?,?\s+(\d{4})\b"
_RELATIVE = (
    (("today", "heute", "今日", "今天"), 0, 0),
    (("yesterday", "gestern", "昨日", "昨天"), 1, 1),
    (("last week", "letzte woche", "letzter woche", "letzten woche", "vorige woche", "先週", "上周"), 1, 13),
    (("this week", "diese woche", "dieser woche", "今週", "本周"), 0, 6),
    (("last month", "letzten monat", "vorigen monat", "先月", "上个月"), 1, 61),
)


class DaySpan(NamedTuple):
    """A stretch of days that a question names, inclusive."""

    first: date
    last: date


def fold_words(text: str) -> set[str]:
    """The distinct words of a text that carry meaning, lower case."""
    return set(WORD.findall(text.lower())) - STOP


def spaced(text: str) -> str:
    """The text as the word index takes it: every CJK character on its own."""
    if text.isascii():
        return text
    return _cjk_run().sub(lambda run: f" {' '.join(run[0])} ", text)


def hump_words(text: str) -> str:
    """The parts of the camelCase words in a text; empty for most texts."""
    parts: dict[str, None] = {}
    for match in _HUMPS.finditer(text):
        start = match.start()
        while start and text[start - 1].isalnum():
            start -= 1
        parts[text[start : match.end()]] = None
    return " ".join(_HUMP.sub(" ", word) for word in parts) if parts else ""


class Identifier(NamedTuple):
    """A word to be matched exactly: a symbol, a flag, a path, a version, a ticket."""

    text: str
    words: tuple[str, ...]


def find_identifiers(text: str) -> tuple[Identifier, ...]:
    """The identifiers in a question, in order, each once."""
    found: dict[str, Identifier] = {}
    for piece in _PIECE.findall(text):
        stripped = piece.strip(".:…") or piece
        words = tuple(word.lower() for word in WORD.findall(stripped))
        if words and stripped not in found and _is_identifier(stripped, words):
            found[stripped] = Identifier(stripped, words)
    return tuple(found.values())


def _is_identifier(piece: str, words: tuple[str, ...]) -> bool:
    if not piece.isascii() and _cjk_run().search(piece):
        return False
    if len(words) > 1:
        return _INNER.search(piece) is not None
    if piece.startswith(("-", "$", "/", ".", "~", "@", "#")) and len(piece) > 2:
        return True
    word = words[0]
    if word.isdigit() and len(word) == 4 and word[:2] in ("19", "20"):
        return False  # a year
    has_digit = any(character.isdigit() for character in word)
    return (has_digit and len(word) > 2) or _HAS_HUMP.search(piece) is not None or (piece.isupper() and len(piece) > 3)


def cjk_pairs(text: str) -> tuple[str, ...]:
    """The words of the CJK text in a question: every two neighbours, or the one character of a run of one."""
    pairs: dict[str, None] = {}
    for run in () if text.isascii() else _cjk_run().findall(text):
        run = "".join(character for character in run if character.isalnum() or character == "々")
        for start in range(max(1, len(run) - 1)) if run else ():
            pairs[run[start : start + 2]] = None
    telling = [pair for pair in pairs if not _HIRAGANA.match(pair)]
    return tuple(telling or pairs)


def is_asking(word: str) -> bool:
    """Whether a word, or a pair of CJK characters, asks and says nothing about what."""
    return (
        word in ASKING or word in _ASKING_PAIRS or (len(word) <= 2 and not word.isascii() and set(word) <= _PARTICLES)
    )


def is_month(word: str) -> bool:
    """Whether a word in lower case names a month."""
    return word in _MONTHS


def is_german(text: str) -> bool:
    """Whether a question has words that only German ones have, so that its capital letters make no names."""
    return not _GERMAN.isdisjoint(split_words(text.lower()))


def has_particle(pair: str) -> bool:
    """Whether one of two CJK characters is a particle, so that the two are hardly a word."""
    return not pair.isascii() and not _PARTICLES.isdisjoint(pair)


_CYRILLIC_TEXT = (
    "иями ями ами иях ием ого его ому ему ыми ими ешь ишь ала ила ыла ены ено ена ана ано аны ает яет ует ют ят "
    "ать ять ить еть ться тся лся лась лись ов ев ей ий ый ой ая яя ое ее ые ие ую юю ом ем ам ям ах ях ых их "
    "ет ит ут ал ял ил ыл ла ло ли ть а я о е ы и у ю ь й"
)
_ENDINGS_CYRILLIC = tuple(sorted(_CYRILLIC_TEXT.split(), key=len, reverse=True))
_LATIN_TEXT = "ungen ung sten stem ster ten tem ter tet en em er es et st te e n s t kan nya an i"
_ENDINGS_LATIN = tuple(_LATIN_TEXT.split())


def word_beginning(word: str) -> str:
    """The part of a word that its other forms begin with, for languages that the index has no stemmer for."""
    is_cyrillic = "\u0400" <= word[:1] <= "\u052f"
    for ending in _ENDINGS_CYRILLIC if is_cyrillic else _ENDINGS_LATIN:
        if word.endswith(ending) and len(word) - len(ending) >= (4 if is_cyrillic else 5):
            return word[: -len(ending)]
    return word


_UMLAUTS = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"))


def transliterate(word: str) -> str:
    """A German word in its other spelling, with or without umlauts; empty if it has none."""
    other = word
    for umlaut, letters in _UMLAUTS:
        other = other.replace(umlaut, letters) if not word.isascii() else other.replace(letters, umlaut)
    return other if other != word else ""


def content_words(text: str) -> tuple[str, ...]:
    """The distinct words of a question that carry meaning, in order; all of them if none does."""
    words = list(dict.fromkeys(WORD.findall((text if text.isascii() else _cjk_run().sub(" ", text)).lower())))
    return tuple([word for word in words if word not in STOP] or words)


def telling_words(text: str, *, most: int) -> list[str]:
    """The words of a text that carry information, identifiers first."""
    found = dict.fromkeys(match[0] for match in re.finditer(_TELLING, text[:8_000]))
    telling = [word for word in found if is_name(word) or (len(word) > 3 and word.lower() not in STOP)]
    return sorted(telling, key=lambda word: (not is_name(word), -len(word), word))[:most]


def is_name(word: str) -> bool:
    """Whether a word looks like an identifier."""
    return bool(re.search(r"[_./:]|\d|[a-z][A-Z]", word))


def find_spans(text: str, today: date) -> tuple[tuple[DaySpan, ...], str]:
    """The days that a question names, and the question without them."""
    spans: list[DaySpan] = []
    cut: list[tuple[int, int]] = []

    def take(match: re.Match[str], year: str | None, month: str, day: str | None) -> None:
        if not any(start < match.end() and match.start() < end for start, end in cut) and _add(
            spans, year, month, day, today
        ):
            cut.append(match.span())

    lowered = text.lower()
    for phrases, newest, oldest in _RELATIVE:
        for phrase in phrases:
            at = lowered.find(phrase)
            if at >= 0 and len(lowered) == len(text) and _stands_alone(lowered, at, at + len(phrase)):
                spans.append(DaySpan(today - timedelta(days=oldest), today - timedelta(days=newest)))
                cut.append((at, at + len(phrase)))
    if any(character.isdigit() for character in text):
        for match in re.finditer(_ISO, text):
            take(match, match[1], match[2], match[3])
        if not text.isascii():
            for match in re.finditer(_CJK_DAY, text):
                take(match, match[1], match[2], match[3])
        if any(word in _MONTHS for word in WORD.findall(lowered)):
            for match in re.finditer(_DAY_MONTH, text):
                if month := _MONTHS.get(match[2].lower()):
                    take(match, match[3], str(month), match[1])
            for match in re.finditer(_MONTH_YEAR, text):
                if month := _MONTHS.get(match[1].lower()):
                    take(match, match[2], str(month), None)
            for match in re.finditer(_MONTH_DAY, text):
                if month := _MONTHS.get(match[1].lower()):
                    take(match, match[3], str(month), match[2])
    rest = text
    for start, end in sorted(cut, reverse=True):
        rest = f"{rest[:start]} {rest[end:]}"
    return tuple(dict.fromkeys(spans)), rest


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a match is not part of a longer word; CJK has no blanks between words."""
    if not text[start].isascii():
        return True
    return not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isalnum())


def _last_time(month: int, day: int, today: date) -> date:
    """The latest past day with this month and number; 29 February is not in every year."""
    for year in range(today.year, today.year - 9, -1):
        with suppress(ValueError):
            found = date(year, month, day)
            if found <= today:
                return found
    raise ValueError("no calendar has it")


def _add(spans: list[DaySpan], year: str | None, month: str, day: str | None, today: date) -> bool:
    """Add a day or a month; without a year, the latest past one. False if the date is not valid."""
    try:
        if year is None:
            found = _last_time(int(month), int(day or 1), today)
        else:
            found = date(int(year), int(month), int(day or 1))
        if day is None:
            following = date(found.year + found.month // 12, found.month % 12 + 1, 1)
            spans.append(DaySpan(found, following - timedelta(days=1)))
        else:
            spans.append(DaySpan(found, found))
    except (ValueError, OverflowError):
        return False
    return True


@lru_cache(maxsize=65_536)
def stem_key(word: str) -> str:
    """A rough common stem of a word's forms, for comparing words that the index has stemmed."""
    for ending in ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ers", "ed", "er", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
    return word
