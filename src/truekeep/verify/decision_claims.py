"""Checks decisions: "we decided to use X over Y", "carts use X, not Y".

A manifest can contradict a decision, but never confirm it. Git's log can do both: the first line of a commit's message
that says "replace Y with X" made the decision, and one that says "replace X with Y" undid it. The newest of them
counts. It has to name both things, or one of them and what they are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import expand_names, load_phrases
from truekeep.verify.git_history import Commit
from truekeep.verify.package_claims import find_last_listed, find_packages, is_unreadable, lists_package
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import CODE, GIT, Verdict, confirmed, gone, unverifiable

_NAME = r"[`\"*]*([A-Za-z@][\w./@+-]{1,40}?)[`\"*.,;:!?)]*(?=\s|$)"
_CHOSEN = re.compile(
    r"\b(?:uses?|using|chose|choose|picked|adopt(?:ed)?|go(?:ing)? with|went with|switch(?:ed)? to|mov(?:e|ed) to"
    rf"|standardi[sz]e[d]? on|settled on|opted for|prefer)\s+(?:the\s+)?{_NAME}",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    rf"\b(?:over|instead of|rather than|not|from|and dropped|dropping|replacing|replaces)\s+(?:the\s+)?{_NAME}",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"\b(?:not|never|no longer|stop(?:ped)?)(?: to)?\s+\Z|n't\s+\Z")
_REVERT = re.compile(r"revert:? \"?", re.IGNORECASE)
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")


class _Choice(NamedTuple):
    """What a sentence or a commit's message chooses, what it turns down, and the other words: what it is for."""

    chosen: frozenset[str]
    rejected: frozenset[str]
    purpose: frozenset[str]


def check_decision(world: World, question: Question) -> Verdict | None:
    """Check a decision against manifests, then against git's log; None for a weak one that neither knows."""
    chosen, rejected = _parse_decision(question.claim.name)
    by_manifest = _check_manifests(world, question, chosen, rejected)
    if by_manifest is not None and by_manifest.verdict == "gone":
        return by_manifest
    by_log = _check_log(world, question, _choice(question.claim.name, chosen, rejected))
    if by_log is not None or question.claim.is_weak:
        return by_log
    why = "code cannot confirm a decision, and no commit's first line tells of it"
    return by_manifest or unverifiable(question, "decision", why)


def _parse_decision(text: str) -> tuple[list[str], list[str]]:
    """The names that a sentence chooses, and those that it turns down."""
    rejected = [match[1] for match in _REJECTED.finditer(text)]
    chosen: list[str] = []
    for match in _CHOSEN.finditer(text):
        (rejected if _REFUSED.search(text[: match.start()]) else chosen).append(match[1])
    return chosen, rejected


def _check_manifests(
    world: World, question: Question, chosen: Sequence[str], rejected: Sequence[str]
) -> Verdict | None:
    for name in chosen:
        listed = find_packages(world, name)
        against = [(other, found) for other in rejected if (found := find_packages(world, other))]
        if listed and not (against and not any(package.is_direct for _, package in listed)):
            path, package = listed[0]
            return unverifiable(
                question,
                "consistent",
                f"{path} lists {package.name}; that agrees, and proves nothing",
                place=f"{path}:{package.line}",
            )
        before = find_last_listed(world, question, name, lists_package(name))
        if before is not None and is_unreadable(world, before.path):
            return unverifiable(question, "unreadable", f"{before.path} cannot be read now")
        if before is not None and not listed:
            why = f"{name} was listed in {before.path} when this was written and is not any more{before.since}"
            return gone(question, "contradicted", why, place=before.path, commit=before.commit, day=before.day)
        if against and not listed:
            _, found = against[0]
            path, package = found[0]
            if package.is_direct:
                why = f"{path} lists {package.name}, and nothing lists {name}"
                return gone(question, "contradicted", why, place=f"{path}:{package.line}", rank=CODE)
    return None


# Git's log.


def _check_log(world: World, question: Question, decision: _Choice) -> Verdict | None:
    if not decision.chosen:
        return None
    names = [*decision.chosen, *decision.rejected]
    for commit, subject in world.past.subjects:
        low = subject.lower()
        for choice in _choices_of(subject) if any(name in low for name in names) else ():
            if _made(decision, choice):
                why = f"{commit.id[:10]} of {commit.day} did it: {subject[:120]}"
                return confirmed(question, "committed", why, rank=GIT, commit=commit.id, day=commit.day)
            if _undid(decision, choice):
                return _undone(question, commit, subject)
    return None


def _undone(question: Question, commit: Commit, subject: str) -> Verdict | None:
    if question.written_at is not None and commit.at > question.written_at:
        why = f"{commit.id[:10]} of {commit.day} undid it: {subject[:120]}"
        return gone(question, "undone", why, commit=commit.id, day=commit.day)
    if question.claim.is_weak:
        return None
    why = f"{commit.id[:10]} of {commit.day} did the opposite ({subject[:120]}); no later commit tells of it"
    return unverifiable(question, "decision", why)


def _made(decision: _Choice, commit: _Choice) -> bool:
    """Whether a commit chose what the decision chose, for the same purpose or over the same thing."""
    if not decision.chosen & commit.chosen:
        return False
    return _is_about_one_thing(decision, commit, is_pair=bool(decision.rejected & commit.rejected))


def _undid(decision: _Choice, commit: _Choice) -> bool:
    """Whether a commit gave up what the decision chose, or chose what it turned down."""
    gave_up, chose_other = decision.chosen & commit.rejected, decision.rejected & commit.chosen
    if decision.chosen & commit.chosen or not (gave_up or chose_other):
        return False
    return _is_about_one_thing(decision, commit, is_pair=bool(gave_up and chose_other))


def _is_about_one_thing(decision: _Choice, commit: _Choice, *, is_pair: bool) -> bool:
    if decision.purpose & commit.purpose:
        return True
    return is_pair and not (decision.purpose and commit.purpose)


@cache
def _choices_of(subject: str) -> tuple[_Choice, ...]:
    """The choices that the first line of a commit's message tells of; of a revert, the other way round."""
    found = list(_read_subject(subject))
    if _REVERT.match(subject):
        return tuple(item._replace(chosen=item.rejected, rejected=item.chosen) for item in found)
    return tuple(found)


def _read_subject(subject: str) -> Iterator[_Choice]:
    for pattern in _patterns():
        match = pattern.search(subject)
        if match is not None:
            named = match.groupdict()
            yield _choice(subject, [named["new"]], [named["old"]] if named.get("old") else [])
            return


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    names = {
        "NEW": rf"(?:the )?{_NAME.replace('(', '(?P<new>', 1)}",
        "OLD": rf"(?:the )?{_NAME.replace('(', '(?P<old>', 1)}",
    }
    phrases = load_phrases("claims")
    lines = [line for entry in ("commit.replaces", "commit.adopts") for line in phrases.lines(entry)]
    return tuple(re.compile(rf"\b{expand_names(line, names)}", re.IGNORECASE) for line in lines)


def _choice(text: str, chosen: Sequence[str], rejected: Sequence[str]) -> _Choice:
    mine, theirs = (frozenset(_folded(name) for name in names) for names in (chosen, rejected))
    words = {_folded(word) for word in _WORD.findall(text.lower())} - load_phrases("claims").words("commit.plain")
    named = {part for name in mine | theirs for part in (name, *(_folded(word) for word in _WORD.findall(name)))}
    return _Choice(mine, theirs, frozenset(words - named))


def _folded(name: str) -> str:
    low = name.lower()
    return low[:-1] if len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")) else low
