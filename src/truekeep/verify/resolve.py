"""Ranks what memory says about a topic by trust: confirmed by code first, then by git, then newer memory first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from truekeep.memory.file_scan import STORES
from truekeep.verify.verdict import CHANGED, CODE, CONFIRMED, GIT, GONE, MOVED, OLDER, RECENT, Verdict

if TYPE_CHECKING:
    from truekeep.search.searcher import Hit

REFUTED = 6  # ranks below all verdicts
_MIN_RELATIVE_SCORE = 0.6  # of the best score; hits below it are about something else
_RECENT_DAYS = 7


class RankedPassage(NamedTuple):
    """One passage of memory about a topic, with its rank."""

    citation: str
    text: str
    store: str
    day: str
    age_days: int | None
    repository: str
    rank: int
    trust: str  # the rank in words
    verdicts: tuple[Verdict, ...]
    is_file_time: bool = False  # nothing but the file's own time tells its day


class InstructedOtherwise(NamedTuple):
    """An instruction file that says the opposite of a memory."""

    memory: str  # the path of the memory
    citation: str  # file:line
    text: str


class Resolution(NamedTuple):
    """The passages about a topic in order of trust, and the one that wins."""

    topic: str
    code: tuple[Verdict, ...]  # verdicts on what the topic itself names
    statements: tuple[RankedPassage, ...]
    winner: str  # its citation; empty if none wins
    why: str


def resolve(
    topic: str, hits: Sequence[Hit], code: Sequence[Verdict], instructed: Sequence[InstructedOtherwise] = ()
) -> Resolution:
    """Rank the hits about a topic by trust: code, git, newer memory, older memory.

    `instructed`: what instruction files say against them. Memory that they contradict is not believed.
    """
    best_score = max((hit.score for hit in hits), default=0.0)
    best: dict[str, Hit] = {}  # the best passage of each file
    for hit in sorted(hits, key=lambda hit: -hit.score):
        if hit.score >= best_score * _MIN_RELATIVE_SCORE:
            best.setdefault(hit.path, hit)
    about = list(best.values())
    against = {item.memory: item for item in instructed}
    ranked = [_overruled(_statement(hit)) if hit.path in against else _statement(hit) for hit in about]
    statements = sorted(ranked, key=lambda item: (item.rank, _age_key(item)))
    standing = [item for item in statements if item.rank < REFUTED]
    if not statements:
        return Resolution(topic, tuple(code), (), "", "memory does not speak of it")
    best_hit = about[0].path
    if best_hit in against:
        told = against[best_hit]
        first = RankedPassage(
            told.citation, told.text, "instructions", "", None, "", GIT, "an instruction file: a person's own word", ()
        )
        why = "an instruction file is a person's word, and memory an observation; they say the opposite"
        return Resolution(topic, tuple(code), (first, *statements), told.citation, why)
    if not standing:
        return Resolution(
            topic, tuple(code), tuple(statements), "", "code refutes every memory of it; look at the code"
        )
    first = standing[0]
    others = [item for item in standing[1:] if item.rank == first.rank]
    if first.rank == CODE:
        why = "what it names is there in current code"
        why += ", and it is the youngest such memory" if others else ""
    elif first.rank == GIT:
        why = "git has the commit it speaks of"
    elif len(statements) == 1:
        why = "it is the only memory of it, and nothing could confirm it: check before you act"
    else:
        why = "it is the youngest memory that nothing refutes; nothing could confirm it: check before you act"
    return Resolution(topic, tuple(code), tuple(statements), first.citation, why)


def _statement(hit: Hit) -> RankedPassage:
    words = {verdict.verdict for verdict in hit.verdicts}
    code = [verdict for verdict in hit.verdicts if verdict.verdict in (CONFIRMED, CHANGED) and verdict.rank == CODE]
    if words & {GONE, MOVED}:
        rank, trust = REFUTED, "refuted by code"
    elif code:
        rank, trust = CODE, "code agrees"
    elif CONFIRMED in words:
        rank, trust = GIT, "git agrees"
    elif hit.age_days is not None and 0 <= hit.age_days <= _RECENT_DAYS:
        rank, trust = RECENT, "memory of the last days"
    else:
        rank, trust = OLDER, "older memory"
    return RankedPassage(
        hit.citation,
        hit.text,
        hit.store,
        hit.day,
        hit.age_days,
        hit.repository,
        rank,
        trust,
        tuple(hit.verdicts),
        hit.is_file_time,
    )


def _overruled(item: RankedPassage) -> RankedPassage:
    return item._replace(rank=REFUTED, trust="an instruction file says the opposite")


def _age_key(item: RankedPassage) -> tuple[int, int]:
    """Sort key: newer first, on the same day cards before documents before logs; future dates count as old."""
    age = item.age_days if item.age_days is not None and item.age_days >= 0 else 100_000
    return age, STORES.index(item.store)
