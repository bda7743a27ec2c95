"""The sentence around a claim: which file it names for a symbol, and whether it speaks of the past or of a plan."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from truekeep.verify.claim import Claim
from truekeep.verify.claims.patterns import Raw, code_spans, is_file

# A sentence about the past.
_LOST = (  # what happened to a thing: "was ..." behind it
    "removed", "deleted", "dropped", "renamed", "replaced", "superseded", "retired", "gone", "scrapped", "ripped",
    "folded", "merged into", "split (?:up )?into", "moved (?:to|into|out|over)", "migrated to", "inlined", "killed",
    "axed", "ditched", "abandoned", "eliminated", "purged", "thrown (?:out|away)", "taken out", "obsolete", "history",
    "no more", "defunct", "discontinued", "not a thing", "dead(?= *(?:[.,;!)]|$|since|now))",
)  # fmt: skip
_PAST_AFTER = re.compile(
    r"[^.;]{0,30}?\b(?:(?:was|were|is|are|got|has been|have been|had been|being|been)\s+"
    rf"(?:(?:since|later|now|finally|recently|completely|entirely)\s+)?(?:{'|'.join(_LOST)})"
    # "used to live there", but neither "is used to read" nor "used to be slow"
    r"|(?<!is )(?<!are )(?<!be )(?<!get )used to (?!be (?:\w+ly |so |too |very |more |much )*"
    r"(?!(?:in|at|an?|the|our|part|there|here|called|named|under|known|done)\b)\w+)"
    r"|which (?:was|were|lived|sat|stood) (?:in|at|under|inside)\b"
    r"|no longer|do(?:es)?(?: not|n't) exist|never existed|did(?: not|n't) (?:exist|survive)|is absent"
    r"|went away|died\b|disappeared|vanished|ceased to"
    r"|(?:is|are|was|were)(?: not|n't)\b[^.;`]{0,30} any ?(?:more|longer)"
    r"|did (?:\w+ ){0,3}(?:is|are) now (?:done|handled|covered)"
    r"|(?:was|were) (?:formerly|previously|originally|once)|(?:became|becomes|turned into|moved to|renamed to)\b)"
)
_LOSING = (  # what somebody did to a thing, or where something was: in front of it
    "formerly", "previously", "originally", "once",
    "used to (?:be|live|sit|call|use|have|read|run)(?: in| at| called)?",
    "(?:was|were)(?: formerly| previously)? (?:called|named|in|at|known as)",
    "(?:lived|sat|stood|resided) (?:in|at|under|inside)",
    r"renamed(?: \w+){0,2} from", "renam(?:es?|ing|ed)", r"moved(?: \w+){0,3} from", r"migrat\w+(?: \w+){0,3} from",
    "away from",
    "instead of", "rather than", "in place of", "replac(?:es|ed|ing)", "supersed(?:es|ed|ing)",
    "remov(?:es?|ed|al of|ing)", "delet(?:es?|ed|ion of|ing)", "dropp?(?:s|ed|ing)?", "retir(?:es?|ed|ing)",
    "killed", "axed", "ditched", "scrapped", "purged", "nuked", "abandoned", "eliminated", "sunset",
    "(?:got|getting|get) rid of", "threw (?:out|away)", "ripped out", "took out", "said goodbye to",
    r"no longer(?: \w+){0,2}", "no more", "anymore in", "not", "never", "without", "no",
    "there(?: is|'s| was| are) no", "there used to be", "there (?:once (?:was|were)|(?:was|were) once)",
    r"until(?: [^.;`]{1,40})? (?:was|were)(?: \w+){0,3}", "until",
    r"(?:earlier|older|previous|former|past|old) (?:versions?|releases?|code|notes?|docs?)(?: \w+){0,3}",
    "old", "former", "ex-", "legacy", "the late",
    "does(?: not|n't) (?:have|use|exist in|contain)", "did(?: not|n't) (?:have|use)",
)  # fmt: skip
_PAST_BEFORE = re.compile(
    rf"(?:\b(?:{'|'.join(_LOSING)})"
    r"(?: (?:the|a|an|our|its|any|old|former|deprecated|file|folder|directory|module|function|class|method|flag"
    r"|option|setting|script|command|called|named|from|by|via|through|use|using|separate|such))*)"
    r":?[ \"'(*_`]*\Z",
    re.IGNORECASE,
)
_PAST_SENTENCE = re.compile(
    r"[^.;,]{0,40}[.;,] ?(?:and )?(?:it|this|that|they)(?: is|'s| was| are| were| has been| have been)(?: now"
    r"| since| long)? "
    r"(?:gone|not there|no longer|removed|deleted|dropped|dead)",
    re.IGNORECASE,
)
_PAST_OPENING = re.compile(
    r"\b(?:in the past|originally in|(?:formerly|previously|once) known as|until (?:[^.;`]|\.\d){1,60}\b(?:was"
    r"|were))\b[^.;`]{0,12}[`\"'(*_ ]*\Z",
    re.IGNORECASE,
)
_HABIT = re.compile(
    r"[^.;,]{0,30}?\b(?:at (?:build|run|start|startup|compile|load|deploy|install|import|test)\b|on (?:each|every|start"
    r"|startup|load|reload|save|exit|shutdown|deploy|install|release)\b|when(?:ever)?\b|while\b|during\b|every\b"
    r"|each\b|by default\b|automatically\b|again\b|if\b|unless\b|before\b|after\b|once\b)",
    re.IGNORECASE,
)
_LOSS = (  # somewhere in a sentence, they make it one that may speak of what is not there any more
    r"removed(?! (?:\w+ ){1,4}from\b)", "removal", r"deleted(?! (?:\w+ ){1,4}from\b)", "deletion", "dropped",
    "retired", "killed", "axed", "nuked", "purged", "scrapped", "abandoned", "eliminated", "discontinued", "obsolete",
    "superseded", "(?:was|were|been|is|are|got) replaced", "replaced by", "renamed", "sunset", "phased out", "pulled",
    "ripped", "threw", "thrown", "rid of", "gone", "went away", "disappeared", "vanished", "died",
    "dead(?! (?:one|code|end|simple|easy|link|letter|lock))", "defunct", "extinct", "no longer", "no more",
    "any ?more", "any longer", "used to", "formerly", "former", "previously",
    "previous (?:versions?|releases?|code|name|place|home)", "originally", r"historical\w*", "history", "legacy",
    "back then", "back in", "in the past", "old days", r"once(?! (?:a|per|in|every|you|the|it|we)\b)", "until",
    "till", "lived", "existed", "exists? no", "nowhere(?! else)", "absent", "ceased", "survived?", "ancient",
    "bygone", r"pre-v?\d", r"before (?:we|version|v?\d)", "earlier (?:versions?|releases?)",
    "older (?:versions?|releases?)", "in those days", "at (?:the|that) time", "farewell", "goodbye", "folded",
    "absorbed", "swallowed", "inlined", "cleaned (?:up|out)", "stripped", "wiped", "dismantled", "decommissioned",
    "torn down", "tore", "withdrawn", "reverted", "rolled back", "undone", "superfluous", "unneeded", "last seen",
    "taken out", "took out", "moved (?:away|out)", "(?:makes?|made|gave|gives) way", "yielded to",
    "fell (?:victim|away)", "passed away",
    "(?:not|n't) (?:exist|used|needed|present|part|around|available|found|there)",
)  # fmt: skip
_MAY_BE_PAST = re.compile(rf"\b(?:{'|'.join(_LOSS)})\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*\0[^`]*`|`[^`\0]*`|[^\s`]*(?:\0|[\w)][/._:(][\w(/])[^\s`]*")  # words that are no prose
_AROUND = 160  # characters of a sentence on either side of a claim
_IN_BRACKETS = re.compile(
    r"[(\[](?:now\b|removed|deleted|gone|dropped|renamed|obsolete|retired|replaced)", re.IGNORECASE
)
_NEIGHBOURS = 12
_LOOSE_BEFORE = re.compile(r"\b(?:not|never|without|no|until|once)\b", re.IGNORECASE)
_DEFINES = re.compile(
    r"\b(?:is |are |was )?(?:defined|declared|implemented|lives?|located|found|sits?|resides?|kept|exported"
    r"|stands?|handled)\b(?: \w+){0,5} (?:in|at|of|from|inside|under|by)\b|\bbelongs? to\b"
)
_JOINS = re.compile(
    r"[\s`*_\"'(\[|,:;—–-]*(?:(?:is |are |now |lives? |defined |declared |implemented |located |found "
    r"|function |class |method |helper |constant "
    r"|module |struct |type |macro |field |hook |component |still |the |live |which |that |file |a |an |sits "
    r"|kept |exported |handled |belongs? to |(?:near|at|towards?|in) the (?:end|top|bottom|start|beginning|middle) )*"
    r"(?:in|at|from|inside|of|under|within|by|see|->|→|=>)?(?: the| file| module)*)?[\s`*_\"'(\[|,:;—–-]*\Z",
    re.IGNORECASE,
)
_JOINED_BY = re.compile(
    r"[\s`*_\"'(\[|,:;—–-]*(?:(?:file |module )*(?:defines?|declares?|has|holds|contains?|exports?|implements?"
    r"|provides?|is where|there (?:is|are)|with|uses)?"
    r"(?: the| a| an| function| class| method| helper| constant| struct| type| macro| component| hook)*"
    r"(?: lives?| is| sits?| stands?)?)?[\s`*_\"'(\[|,:;—–>→#-]*\Z",
    re.IGNORECASE,
)


_SENTENCE = 90  # characters between a name and the only file of its sentence
_STOP = re.compile(r"[.!?;|]\s|\s\|")
_RELATES = re.compile(
    r"\b(?:calls?|called|uses?|used|using|imports?|imported|reads?|writes?|loads?|generat\w+|creates?|instead|before"
    r"|after|replac\w+|tests?|covers?|like|unlike|not|and then|depends?|needs?|requires?|see also|from|when|if|while"
    r"|because)\b",
    re.IGNORECASE,
)


def placed(raws: list[Raw], line: str, number: int, offset: int, *, past: bool) -> Iterator[Claim]:
    spans = list(code_spans(line)) if "`" in line and any(raw.kind == "line" for raw in raws) else []
    starts = [start for start, _ in spans]
    speaks_of_loss = raws and _MAY_BE_PAST.search(line) is not None
    for at, raw in enumerate(raws):
        place, near, quote, definite = raw.place, "", "", False
        about = raws[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS + 1]  # the next ones count, or a long line is slow
        if raw.kind in ("symbol", "method", "env", "flag") and not place and not (raw.kind == "flag" and raw.owner):
            place, definite = _named_place(raw, [other for other in about if _is_place(other)], line)
        if raw.kind == "line":
            near = _held_symbol(raw, about, line)
            first = bisect_left(starts, raw.start)
            quote = _quoted_beside(raw, about, line, spans[max(0, first - 3) : first + 3])
        elif raw.kind == "port":
            near = _unit_of(raw, about, line)
        yield Claim(
            kind=raw.kind,
            text=line[raw.start : raw.end],
            start=offset + raw.start,
            end=offset + raw.end,
            line=number,
            column=raw.start + 1,
            name=raw.name,
            place=place,
            owner=raw.owner,
            first=raw.first,
            last=raw.last,
            near=near,
            quote=quote,
            is_weak=raw.is_weak or _is_planned(raw, line),
            is_past=raw.kind not in ("decision", "url")
            and (past or _is_past(raw, line) or _gives_way(raw, about, line)),
            may_be_past=bool(speaks_of_loss) and _MAY_BE_PAST.search(_sentence(raw, line)) is not None,
            is_definite=definite,
            why=raw.why,
        )


def _is_place(raw: Raw) -> bool:
    return raw.kind == "line" or (raw.kind == "path" and is_file(raw.name.rsplit("/", 1)[-1]))


def _named_place(raw: Raw, files: list[Raw], line: str) -> tuple[str, bool]:
    """The file that the same sentence names for a symbol, and whether it says that the symbol is defined there."""
    found: list[tuple[int, int, str, bool]] = []
    for other in files:
        is_ahead = raw.end <= other.start
        gap = (line[raw.end : other.start] if is_ahead else line[other.end : raw.start]).removeprefix("()")
        if len(gap) > 70 or (raw.start < other.end and other.start < raw.end) or re.search(r"[.!?;]\s", gap):
            continue
        if not (_JOINS if is_ahead else _JOINED_BY).match(gap):
            continue
        # "`a` in `x.py`, `b` in `y.py`": words join more than a comma does, and what follows more than what precedes.
        rank = (0 if is_ahead else 1) if any(character.isalpha() for character in gap) else (2 if is_ahead else 3)
        definite = _DEFINES.search(gap) if is_ahead else re.search(r"defin|declar|implement|export", gap)
        found.append((rank, len(gap), other.place or other.name, definite is not None))
    if found:
        return min(found)[2:]
    return (_only_place(raw, files, line) if raw.kind in ("symbol", "method") else ""), False


def _only_place(raw: Raw, files: list[Raw], line: str) -> str:
    """The one file that the sentence names at all, unless it says that one only has to do with the other."""
    found = []
    for other in files:
        gap = line[raw.end : other.start] if raw.end <= other.start else line[other.end : raw.start]
        if len(gap) <= _SENTENCE and not _STOP.search(gap) and not (raw.start < other.end and other.start < raw.end):
            found.append((other, gap))
    if len({other.place or other.name for other, _ in found}) != 1 or _RELATES.search(found[0][1]):
        return ""
    return found[0][0].place or found[0][0].name


def _held_symbol(raw: Raw, raws: list[Raw], line: str) -> str:
    """The symbol that a line is said to hold: the one before it, else the one after, in the same sentence."""
    found: list[tuple[int, int, str]] = []
    for other in raws:
        if other.kind not in ("symbol", "method", "env"):
            continue
        is_before = other.end <= raw.start
        first, last = (other.end, raw.start) if is_before else (raw.end, other.start)
        gap = line[first:last].removeprefix("()")
        between = [item for item in raws if item.kind in ("path", "line") and first <= item.start < last]
        size = len(gap) - sum(item.end - item.start for item in between if item.name == raw.name)
        if any(item.name != raw.name for item in between) or re.search(r"[.!?;]\s", gap) or size > 60:
            continue
        # "`a` in `f:1`, `b` in `f:9`": what follows after a comma belongs to the next place.
        rank = 0 if is_before and _JOINS.match(gap) else 2 if is_before else 3 if "," in gap else 1
        found.append((rank, size, f"{other.owner}.{other.name}" if other.owner else other.name))
    return min(found)[2] if found else ""


def _unit_of(raw: Raw, raws: list[Raw], line: str) -> str:
    """The unit that the same sentence gives a port to: a unit has the next port behind it, else the last one before."""

    def is_beside(one: Raw, other: Raw) -> bool:
        first, second = sorted((one, other))
        return not _STOP.search(line[first.end : second.start])

    for unit in raws:
        if unit.kind != "unit" or not is_beside(unit, raw):
            continue
        ports = [other for other in raws if other.kind == "port" and is_beside(unit, other)]
        behind = [other for other in ports if other.start > unit.start]
        if (behind[0] if behind else ports[-1]) == raw:
            return unit.name
    return ""


def _quoted_beside(raw: Raw, raws: list[Raw], line: str, spans: list[tuple[int, int]]) -> str:
    """The code that a memory quotes right beside a line's number; empty when there is none."""
    for start, end in spans:
        if start <= raw.start < end or end - start < 4:
            continue
        inside = [other for other in raws if start <= other.start < end]
        if any(
            other.kind in ("path", "line", "directory") or end - start - (other.end - other.start) <= 4
            for other in inside
        ):
            continue
        gap = line[end + 1 : raw.start] if end <= raw.start else line[raw.end : start - 1]
        if len(gap) <= 30 and not re.search(r"[.!?;]\s|\d", gap):
            return line[start:end].strip()
    return ""


def _sentence(raw: Raw, line: str) -> str:
    """The sentence around a claim, without the claim."""
    before = _sentence_end(line[max(0, raw.start - _AROUND) : raw.start])
    after = line[raw.end : raw.end + _AROUND]
    stop = re.search(r"[.;!?]\s", after)
    return _CODE.sub(" ", f"{before}\0{after[: stop.start()] if stop else after}")


def _is_past(raw: Raw, line: str) -> bool:
    """Whether the sentence says that the thing is gone, was something else, or is not there."""
    before = _sentence_end(line[max(0, raw.start - 90) : raw.start])
    if (match := _PAST_BEFORE.search(before)) is not None:
        loose = _LOOSE_BEFORE.match(match[0].strip())
        if loose is None or re.search(r"\bno\b|there(?: is|'s| are)|never|without", match[0]):
            return True
    if before.endswith(("~~`", "~~")) or _PAST_OPENING.search(before):
        return True  # struck out, or a sentence that begins in the past
    after = _QUOTES_AFTER.sub("", line[raw.end : raw.end + 90])
    if _PAST_SENTENCE.match(after) or _IN_BRACKETS.match(after):
        return True
    match = _PAST_AFTER.match(after)
    # Another name between the claim and the verb is what the verb speaks of.
    return match is not None and "`" not in match[0] and not _is_habit(match[0], after[match.end() :])


def _is_habit(said: str, after: str) -> bool:
    """Whether a present tense tells of what happens again and again: "is replaced at build time"."""
    return re.search(r"\b(?:is|are|gets?)\b", said) is not None and _HABIT.match(after) is not None


_PLANNED = re.compile(
    r"(?:\b(?:TODO|FIXME|may|might|could|will|would|should|shall|plan(?:s|ned)? to|want(?:s)? to|going to"
    r"|propos(?:e|ed|al)|consider|if we|let's|imagine"
    r"|suppose|say|e\.g\.|for example|such as|like)\b[^.;`]{0,40}|\b(?:create|add|write|introduce|call it|name it)"
    r"(?: (?:a|an|the|new|your|file|folder|directory|called|named|helper|class|script))*)[ \"'(*_`:]*\Z",
    re.IGNORECASE,
)
_WOULD_BE = re.compile(r"[`*_\"')]*,? (?:would|could|might|will) (?:be|do|have|make|need)\b")


def _is_planned(raw: Raw, line: str) -> bool:
    """Whether the sentence speaks of what could be, or of an example: then only what is known here counts."""
    before = _sentence_end(line[max(0, raw.start - 70) : raw.start])
    return _PLANNED.search(before) is not None or _WOULD_BE.match(line[raw.end : raw.end + 30]) is not None


def _gives_way(raw: Raw, raws: list[Raw], line: str) -> bool:
    """Whether an arrow leads from this name to another one of its kind: old → new."""
    arrow = _ARROW.match(_QUOTES_AFTER.sub("", line[raw.end : raw.end + 12]))
    following = next((other for other in raws if other.start >= raw.end), None)
    if arrow is None or following is None or following.start > raw.end + 14:
        return False
    files = ("path", "directory", "line", "bundle")
    return (raw.kind in files) == (following.kind in files)


_QUOTES_AFTER = re.compile(r"^(?:\(\))?[`*_\"')\], ]*")
_ARROW = re.compile(r"(?:→|->|=>)\s")


def _sentence_end(text: str) -> str:
    """The last sentence of a stretch of text, as far as it goes."""
    for stop in (". ", "; ", "! ", "? "):
        cut = text.rfind(stop)
        if cut >= 0 and not text[:cut].endswith(("e.g", "i.e", "etc", "vs")):
            text = text[cut + 2 :]
    return text
