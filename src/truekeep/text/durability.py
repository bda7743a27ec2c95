"""Hints that a piece of knowledge will not stand alone or will not last.

A card is read months later by someone who has neither the conversation nor the working tree it came from. These checks
point at the words that will mean nothing by then, and at facts which the code, git or a task list already keeps better.
They are hints for the writer and the reviewer, so a doubtful case stays quiet: a reason, a condition or a named subject
in the line is enough to let it pass. Lines come from the caller; nothing here knows Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from truekeep.text.unicode import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_HINTS = 20
MAX_EXCERPT = 120

WHY = {
    "relative-time": "Give the date, or leave the time out.",
    "dangling-reference": "Name what is meant; the reader will not have it in view.",
    "task-state": "Move it to the task list and keep only what was learned.",
    "code-layout": "Drop it or say what is surprising; a search finds where code lives.",
    "git-history": "Drop it or say why it matters; git log keeps who changed what.",
    "fix-recipe": "Say what caused it and how to notice; the fix itself is in the code.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DurabilityHint:
    """One line that may not last, and what to do about it."""

    code: str
    line: int
    excerpt: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    code: str
    finds: str
    excuses: str = ""
    only_opening: bool = False  # holds only where a bullet or a paragraph begins


# Patterns are for lower case. An excuse sees the surroundings of a find, which stands there between two NULs.
_RULES = (
    _Rule(
        code="relative-time",
        finds=r"\b(?:currently|yesterday|today|tomorrow|tonight|recently|lately|presently|nowadays|right now|just now"
        r"|for now|at the moment|at present|these days|as of (?:now|today)|the other day|this (?:morning|afternoon"
        r"|evening"
        r"|week|month|sprint)|(?:last|next) (?:week|month|night|sprint|weekend|{DAY})|(?:\d+|an?|a few|a couple of|two"
        r"|three|four|five|six|several|some) (?:minute|hour|day|week|month|year)s? ago)\b",
        # "the currently selected row", "least recently used", "in the last week", "more than two days ago", "today's"
        excuses=r"(?:'|\b(?:the|an?|any|each|every|most|least|more|less|than|before|after) )\x00|\x00(?:['(=_-]|\.\w"
        r"| (?:selected|active|open|running|focused|checked|logged|used|viewed|of|when|that)\b)",
    ),
    _Rule(
        code="dangling-reference",
        only_opening=True,
        finds=r"{OPEN}(?:it|this|that|these|those|they|he|she)(?:'(?:s|re|ll) (?:an?|the|not|only|also|because|why|how"
        r"|what)| (?:is|isn't|are|aren't|was|wasn't|were|has|hasn't|have|had|does|doesn't|do|don't|did|didn't|can|can't"
        r"|cannot|could|will|won't|would|should|must|may|might|needs?|requires?|breaks?|broke|works?|worked|uses?|used"
        r"|fails?|failed|happens|happened|means|meant|makes?|made|causes?|caused|runs?|ran|only|also|never|always|still"
        r"|just|now))\b",
        # "it is safe to …" has no subject that could be named
        excuses=r"\bit \w+(?:n't)?\x00 (?:(?:be|been|not|also|often|usually|always|never|only) )*(?:safe|possible"
        r"|important"
        r"|impossible|recommended|best|better|necessary|required|fine|ok|okay|worth|easy|hard|tempting|faster|cheaper"
        r"|enough|common|known|clear|likely|unlikely|up to|useful|helpful|wrong|rare)\b",
    ),
    _Rule(
        code="dangling-reference",
        finds=r"\bthis (?:file|repo|repository|project|codebase|function|method|class|module|directory|folder|branch"
        r"|commit|pr|pull request|session|conversation|chat|thread|machine|laptop|bug|issue|error|script)\b"
        r"|\b(?:see|mentioned|described|noted|discussed|explained|listed|shown|the) above(?:[.,;:)]|$| (?:is|are|was"
        r"|were"
        r"|also|applies|means|fix|bug|issue|problem|command|file|error|example|approach|note|change)\b)"
        r"|\bthat (?:bug|issue|error|fix|pr|crash|commit)(?:[.,;)]|$| (?:is|was|has|had|again|happens|happened|came)\b)"
        r"|\b(?:works?|runs?|used|done|lives?|happens|happened|installed|deployed|in|over|around) here(?:[.,;)]|$)",
        excuses=r"^[^\x00]*[`\"/][^\x00]*\x00",  # something was named earlier in the line
    ),
    _Rule(
        code="task-state",
        finds=r"\bnext steps? (?:is|are|will be|would be)\b|{OPEN}next steps?[*_]*\s*:"
        r"|\b(?:we|i)(?: are| am|'re|'m) (?:(?:currently|still|now|just) )?(?:debugging|working on|investigating"
        r"|trying to"
        r"|looking into|fixing|implementing|refactoring|waiting (?:for|on)|in the (?:middle|process) of)\b"
        r"|{OPEN}(?:todo|fixme|wip)[*_]*(?:\s*[:(\]-]|$)|\btodo\s*:\s|[(\[]wip[)\]]|\bis (?:still )?(?:a )?wip\b"
        r"|\b(?:will|going to|plan to|need to|have to|should) (?:\w+ ){1,5}(?:tomorrow|tonight|next week|next sprint)\b"
        r"|\b(?:i|we)(?: still)?(?: will|'ll| need to| have to) (?:fix|finish|continue|look at|revisit|clean up)\b"
        r"|\b(?:i|we) (?:left|stopped) off\b|\b(?:remaining|open) (?:tasks?|todos?|work)[*_]*\s*:",
    ),
    _Rule(
        code="task-state",
        finds=r"\b(?:work|still) in progress\b|\b(?:is|are) (?:currently )?in progress[.;,]?\s*$"
        r"|(?:{OPEN}|\b(?:still|now|currently|are|is) )(?:waiting|blocked) (?:for|on) (?:(?:an?|the|code|pr|their) )*"
        r"(?:review|approval|feedback|reply|answer|response|merge|sign-off)\b",
        excuses="{CONDITION}",
    ),
    _Rule(
        code="code-layout",
        finds=r"{OPEN}(?:[^\s,;:.]+ ){1,8}(?:lives?|(?:is|are) (?:defined|implemented|declared|located|found)) (?:in|at"
        r"|under|inside) {PLACE}(?:(?:,| and|, and) (?:(?:[^\s,;:.]+ ){0,8}(?:in|at|under|inside) )?{PLACE})*"
        r"[*_]*\.?\s*$"
        r"|{OPEN}(?:the )?(?:file|module|directory|folder|package|script) {PATH} (?:contains|defines|holds|implements"
        r"|exports)\b[^;:,]*$"
        r"|{OPEN}{PATH} (?:contains|defines|implements|exports) (?:all )?(?:the )?[^;:,]*$",
        excuses=r"{REASON}|{CONDITION}|\.(?:com|org|io|dev|net)/",
    ),
    _Rule(
        code="git-history",
        finds=r"\bcommit `?[0-9a-f]{7,40}`? (?:\w+ )?(?:changed|changes|added|adds|removed|removes|introduced"
        r"|introduces"
        r"|renamed|moved|fixed|fixes|refactored|updated|touched)\b"
        r"|{OPEN}(?:the )?(?:most )?(?:recent|latest|last (?:few|two|three)) commits\b"
        r"|\bin (?:the )?(?:recent|latest) commits\b"
        r"|\b(?:was|were|got|has been|have been) (?:just |recently )?(?:merged|committed|pushed|reverted|landed)"
        r" (?:yesterday|today|last \w+|this (?:morning|week|afternoon)|by @?\w+|on {DAY})\b"
        r"|{OPEN}@?[a-z]+ (?:changed|renamed|refactored|rewrote|moved|merged|committed|reverted"
        r"|touched) [^.;]*(?:in (?:pr"
        r"|commit|pull request|#\d)|yesterday|last (?:week|month|night)|this (?:morning|week))"
        r"|\bgit (?:log|blame) (?:shows|says)\b",
        excuses="{REASON}|{CONDITION}",
    ),
    _Rule(
        code="fix-recipe",
        finds=r"\b(?:fixed|solved|resolved) (?:(?:it|this|that|the [\w-]+(?: [\w-]+)?) )?by [a-z]+ing\b"
        r"|\bthe (?:fix|solution|workaround) was (?:to|simply|just)\b|\b(?:i|we) fixed (?:it|this|that|the)\b",
        excuses=r"{REASON}|{CONDITION}|\b(?:be|is|are) \x00",
    ),
)

_NAMES = {
    "{PLACE}": r"(?:the )?(?:(?:file|module|directory|folder|package) )?{PATH}(?::\d+)?(?: (?:(?:on|at|around) )?"
    r"lines? \d+)?",
    "{OPEN}": r"^[\t\x20>]*(?:[-*+]\s+|\d+[.)]\s+)?(?:\[[\x20x]\]\s+)?[*_]*",
    "{DAY}": r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
    "{PATH}": r"`?(?:(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.(?:py|tsx?|jsx?|go|rs|java|kt|rb|php|[ch]|cc|cpp|cs|swift|sql"
    r"|sh))`?",
    # A reason or a condition makes a line a rule or a finding instead of a state of affairs.
    "{REASON}": r"\b(?:because|since|so that|otherwise|root cause|caused by|due to|reason|why|never|must|do not|don't"
    r"|avoid)\b",
    "{CONDITION}": r"\b(?:if|when|whenever|while|whether|until|unless|once|after|before)\b",
}

_WINDOW = 200
_MAX_FINDS = 50


def find_hints(lines: Iterable[tuple[int, str]]) -> tuple[DurabilityHint, ...]:
    """What in these numbered lines will not stand alone or will not last; one hint of a code per line, 20 at most."""
    numbered = list(lines)
    if _anything().search(_lower("\n".join([text for _, text in numbered]))) is None:
        return ()
    hints: list[DurabilityHint] = []
    for code, line, excerpt in _iter_finds(numbered):
        hints.append(DurabilityHint(code=code, line=line, excerpt=excerpt, why=WHY[code]))
        if len(hints) == MAX_HINTS:
            break
    return tuple(hints)


def _iter_finds(numbered: list[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    before: tuple[int, str] | None = None
    for number, text in numbered:
        shown = text.replace("\x00", " ")
        raw = _lower(shown)
        if _anything().search(raw) is not None:
            opens = before is None or before[0] != number - 1 or not before[1].strip() or _is_item(text)
            seen: set[str] = set()
            for rule in _RULES:
                if rule.code in seen or (rule.only_opening and not opens):
                    continue
                # Where code lives is said in code spans; elsewhere quoted words are somebody else's.
                if _holds(rule, raw if rule.code in ("code-layout", "git-history") else _unquoted(raw)):
                    seen.add(rule.code)
                    yield rule.code, number, clip(shown, MAX_EXCERPT)
        before = (number, text)


def _holds(rule: _Rule, line: bytes) -> bool:
    finds, excuses = _compiled(rule)
    for count, match in enumerate(finds.finditer(line)):
        start, end = match.span()
        around = b"\x00".join((line[max(0, start - _WINDOW) : start], line[start:end], line[end : end + _WINDOW]))
        if excuses is None or count >= _MAX_FINDS or excuses.search(around) is None:
            return True
    return False


def _lower(text: str) -> bytes:
    return text.lower().replace("\u2019", "'").encode("utf-8", "replace")


def _is_item(text: str) -> bool:
    start = text.lstrip()
    return start.startswith(("-", "*", "+", ">")) or start[:1].isdigit()


def _unquoted(line: bytes) -> bytes:
    """The line with code spans and double-quoted words blanked, their marks kept."""
    for mark in (b"`", b'"'):
        pieces = line.split(mark)
        pieces[1:-1:2] = [b"x"] * len(pieces[1:-1:2])
        line = mark.join(pieces)
    return line


@cache
def _anything() -> Any:
    return _compile("|".join(rule.finds for rule in _RULES))


@cache
def _compiled(rule: _Rule) -> tuple[Any, Any]:
    return _compile(rule.finds), _compile(rule.excuses) if rule.excuses else None


def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    options.max_mem = 64 << 20
    for name, meaning in _NAMES.items():
        pattern = pattern.replace(name, meaning)
    return re2.compile("(?m)" + pattern, options)
