"""Whether the sentence around a claim is about the past or a plan. The phrases are in `phrases/claims.*.toml`."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import load_phrases
from truekeep.verify.claims.patterns import RawClaim

_SENTENCE_WINDOW = 160  # characters on either side of a claim
_PAST_WINDOW = 90
_PLAN_WINDOW = 70
_CODE = re.compile(r"`[^`]*\0[^`]*`|`[^`\0]*`|[^\s`]*(?:\0|[\w)][/._:(][\w(/])[^\s`]*")
_SENTENCE_STOP = re.compile(r"[.;!?]\s|[。；！？]")
# Edges of a word. Chinese has no blanks between words, so its characters are no letters here.
_LETTER = r"A-Za-z0-9_\u00c0-\u024f\u0400-\u04ff"
_FIRST, _LAST = rf"(?<![{_LETTER}])", rf"(?![{_LETTER}])"
_FILE_KINDS = ("path", "directory", "line", "bundle")
_QUOTES_AFTER = re.compile(r"^(?:\(\))?[`*_\"')\], ]*")
_ARROW = re.compile(r"(?:→|->|=>)\s")
_LIST_TO_ARROW = re.compile(r"(?:\(\))?[`*\"']*(?:\s?[/,&]\s?[`*\"']*[\w.-]+(?:\(\))?[`*\"']*)*\s?(?:→|->|=>)")
_TO_ARROW = 80  # characters from a name to the arrow behind it
_LOSS_BEHIND_ARROW = 24  # characters behind an arrow, in which a word can say that a thing goes: "→ DELETE"


class _TensePatterns(NamedTuple):
    """Patterns made of the phrases of all languages. "Before" and "after" are as seen from the claim."""

    past_before: re.Pattern[str]
    weak_before: re.Pattern[str]
    strong_before: re.Pattern[str]
    past_opening: re.Pattern[str]
    past_after: re.Pattern[str]
    past_next_clause: re.Pattern[str]
    past_in_brackets: re.Pattern[str]
    past_anywhere: re.Pattern[str]
    present: re.Pattern[str]
    habit: re.Pattern[str]
    fate: re.Pattern[str]
    instruction: re.Pattern[str]
    of_other_things: re.Pattern[str]
    no_hits: re.Pattern[str]
    planned_before: re.Pattern[str]
    imagined_before: re.Pattern[str]
    open_task: re.Pattern[str]
    changed_before: re.Pattern[str]
    planned_after: re.Pattern[str]
    none_before: re.Pattern[str]
    existed_after: re.Pattern[str]
    none_existed_before: re.Pattern[str]
    none_existed_after: re.Pattern[str]
    abbreviations: tuple[str, ...]


@cache
def _patterns() -> _TensePatterns:
    phrases = load_phrases("claims")
    past, planned = phrases.table("past"), phrases.table("planned")
    ignore_case = re.IGNORECASE
    none, existed, kind = past["none"], past["existed"], rf"(?: [\w-]+){{0,3}} (?:{past['file']})"
    none_existed = rf"(?:{none}){kind} (?:{existed})"
    return _TensePatterns(
        past_before=re.compile(
            rf"(?:{_FIRST}(?:{past['before']})(?: (?:{past['between']}))*):?[ \"'(*_`]*\Z",
            ignore_case,
        ),
        weak_before=re.compile(rf"{_FIRST}(?:{past['weak']}){_LAST}", ignore_case),
        strong_before=re.compile(past["strong"]),
        past_opening=re.compile(rf"{_FIRST}(?:{past['opening']}){_LAST}[^.;`]{{0,12}}[`\"'(*_ ]*\Z", ignore_case),
        past_after=re.compile(
            rf"[^.;]{{0,30}}?{_FIRST}(?:(?:{past['be']})\s+(?:(?:{past['adverb']})\s+)?(?:{past['lost']})|{past['after']})"
        ),
        past_next_clause=re.compile(rf"[^.;,]{{0,40}}[.;,] ?(?:{past['next_clause']})", ignore_case),
        past_in_brackets=re.compile(rf"[(\[](?:{past['in_brackets']})", ignore_case),
        past_anywhere=re.compile(rf"{_FIRST}(?:{past['anywhere']}){_LAST}", ignore_case),
        present=re.compile(rf"{_FIRST}(?:{past['present']}){_LAST}"),
        habit=re.compile(rf"[^.;,]{{0,30}}?{_FIRST}(?:{past['habit']})", ignore_case),
        fate=re.compile(rf"(?:{past['fate']}){_LAST}", ignore_case),
        instruction=re.compile(rf"[\s>*+\d.)-]*(?:{past['instruction']})[ :]+`[^`]*\Z", ignore_case),
        of_other_things=re.compile(rf"{_FIRST}(?:{past['of_other_things']}){_LAST}", ignore_case),
        no_hits=re.compile(rf"{_FIRST}(?:{past['no_hits']}){_LAST}", ignore_case),
        planned_before=re.compile(
            rf"(?:{_FIRST}(?:{planned['might']}){_LAST}[^.;`。；]{{0,40}}"
            rf"|{_FIRST}(?:{planned['create']})(?: ?(?:{planned['created']}){_LAST})*)[ \"'(*_`:]*\Z",
            ignore_case,
        ),
        imagined_before=re.compile(
            rf"(?:{_FIRST}(?:{planned['imagined']}){_LAST}[^.;`。；]{{0,40}}"
            rf"|{_FIRST}(?:{planned['create']})(?: ?(?:{planned['created']}){_LAST})*)[ \"'(*_`:]*\Z",
            ignore_case,
        ),
        changed_before=re.compile(rf"{_FIRST}(?:{past['changed']}){_LAST}[^.;。；]*\Z", ignore_case),
        open_task=re.compile(rf"\s*[-*+]\s+\[ \]\W+(?:{planned['create']}){_LAST}", ignore_case),
        planned_after=re.compile(rf"[`*_\"')]*,? ?(?:{planned['after']}){_LAST}"),
        none_before=re.compile(
            rf"{_FIRST}(?:{none})(?: (?!(?:{past['relates']}){_LAST})[\w-]+){{0,4}}[ \"'(*_`]*\Z", ignore_case
        ),
        existed_after=re.compile(rf"(?:{existed}){_LAST}", ignore_case),
        none_existed_before=re.compile(
            rf"{_FIRST}(?:{none_existed}(?: (?:{past['stands_for']}))?|(?:{past['there_was_none']}){kind})"
            rf"[ \"'(*_`:–—-]*\Z",
            ignore_case,
        ),
        none_existed_after=re.compile(rf"[:(\[–—-] ?{none_existed}{_LAST}", ignore_case),
        abbreviations=tuple(sorted(phrases.words("place.abbreviation"))),
    )


def may_mention_loss(text: str) -> bool:
    """Whether a line or sentence may be about something that is gone."""
    return _patterns().past_anywhere.search(text) is not None


def is_instruction(raw: RawClaim, line: str) -> bool:
    """Whether the sentence begins with a verb that tells to run or use the code that the claim is in."""
    return (
        _patterns().instruction.match(last_sentence(line[max(0, raw.start - _SENTENCE_WINDOW) : raw.start])) is not None
    )


def without_other_things(sentence: str) -> str:
    """A sentence without the words that call something old."""
    return _patterns().of_other_things.sub(" ", sentence)


def expects_no_hits(line: str) -> bool:
    """Whether a line with a search says that it finds nothing."""
    return _patterns().no_hits.search(line) is not None


def sentence_around(raw: RawClaim, line: str) -> str:
    """The sentence around a claim, without the claim and other code."""
    before = last_sentence(line[max(0, raw.start - _SENTENCE_WINDOW) : raw.start])
    after = line[raw.end : raw.end + _SENTENCE_WINDOW]
    stop = _SENTENCE_STOP.search(after)
    return _CODE.sub(" ", f"{before}\0{after[: stop.start()] if stop else after}")


def is_past(raw: RawClaim, line: str) -> bool:
    """Whether the sentence says that the thing is gone, was something else, or is not there."""
    patterns = _patterns()
    before = last_sentence(line[max(0, raw.start - _PAST_WINDOW) : raw.start])
    if (match := patterns.past_before.search(before)) is not None:
        is_weak = patterns.weak_before.match(match[0].strip()) is not None
        if not is_weak or patterns.strong_before.search(match[0]):
            return True
    is_struck_out = before.endswith(("~~`", "~~"))
    if is_struck_out or patterns.past_opening.search(before):
        return True
    after = _QUOTES_AFTER.sub("", line[raw.end : raw.end + _PAST_WINDOW])
    if _is_said_not_to_exist(before, after):
        return True
    if patterns.past_next_clause.match(after) or patterns.past_in_brackets.match(after):
        return True
    if (arrow := _ARROW.match(after)) is not None:
        fate = after[arrow.end() : arrow.end() + _LOSS_BEHIND_ARROW].lstrip("*_~ ")
        if patterns.fate.match(fate):
            return True
    match = patterns.past_after.match(after)
    # Another name between the claim and the verb is the subject of the verb.
    return match is not None and "`" not in match[0] and not _is_habit(match[0], after[match.end() :])


def _is_said_not_to_exist(before: str, after: str) -> bool:
    """Whether a sentence says that there was no such thing: a file of today does not make it true."""
    patterns = _patterns()
    if patterns.none_before.search(before) and patterns.existed_after.match(after):
        return True
    return bool(patterns.none_existed_before.search(before) or patterns.none_existed_after.match(after))


def _is_habit(matched: str, after: str) -> bool:
    """Whether a present tense tells what happens again and again: "is replaced at build time"."""
    patterns = _patterns()
    return patterns.present.search(matched) is not None and patterns.habit.match(after) is not None


def is_planned(raw: RawClaim, line: str) -> bool:
    """Whether the sentence is about what could be, or an example: then only names that the repository knows count."""
    patterns = _patterns()
    before = last_sentence(line[max(0, raw.start - _PLAN_WINDOW) : raw.start])
    is_ahead = patterns.planned_before.search(before) is not None
    return is_ahead or patterns.planned_after.match(line[raw.end : raw.end + 30]) is not None


def is_imagined(raw: RawClaim, line: str) -> bool:
    """Whether the sentence is about something to be made, or an example, so that it need not be there."""
    patterns = _patterns()
    before = last_sentence(line[max(0, raw.start - _PLAN_WINDOW) : raw.start])
    return patterns.imagined_before.search(before) is not None or patterns.open_task.match(line) is not None


def is_replaced(raw: RawClaim, raws: list[RawClaim], line: str) -> bool:
    """Whether an arrow leads from this name to another one of its kind: old → new, or "changed `a`/`b` → `c`"."""
    behind = line[raw.end : raw.end + _TO_ARROW]
    bare = _QUOTES_AFTER.sub("", behind[:12])
    if (arrow := _ARROW.match(bare)) is not None:
        if raw.kind == "port" and bare[arrow.end() :].lstrip("`*:")[:1].isdigit():
            return True
        following = next((other for other in raws if other.start >= raw.end), None)
        if following is not None and following.start <= raw.end + 14:
            return (raw.kind in _FILE_KINDS) == (following.kind in _FILE_KINDS)
    return _LIST_TO_ARROW.match(behind) is not None and _patterns().changed_before.search(line[: raw.start]) is not None


def last_sentence(text: str) -> str:
    """The last sentence of a stretch of text, as far as it goes."""
    for stop in (". ", "; ", "! ", "? ", "。", "；", "！", "？"):
        cut = text.rfind(stop)
        if cut >= 0 and not text[:cut].endswith(_patterns().abbreviations):
            text = text[cut + len(stop) :]
    return text
