"""Readings about memory itself: cards, the index, duplicates, claims, frontmatter. Nothing is checked again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.errors import TruekeepError
from truekeep.core.file_io import ChangedSince
from truekeep.core.model import CARDS, INDEX
from truekeep.core.state_dir import STATE
from truekeep.maintenance.decay import checks_of, last_believed, last_sign
from truekeep.text.secrets.scanner import withhold
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.results import has_run, read_counts, read_seals
from truekeep.verify.verdict import VERDICTS as CLAIM_VERDICTS
from truekeep.workspace.health_report import (
    ACT,
    LOOK,
    MAX_EXAMPLES,
    OK,
    Reading,
    count_of,
    parse_day,
    shown_bytes,
    tokens_of,
)

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.maintenance.decay import LastVerification
    from truekeep.maintenance.survey.service import CardFacts, FileProblem
    from truekeep.workspace.workspace import Workspace

WEEKS = 12
AGES = (("1 week", 7), ("1 month", 30), ("3 months", 90), ("6 months", 180), ("1 year", 365), ("older", 10**9))
INDEX_WARNING_SHARE = 0.8  # of the index budget
FLOOD_CARDS, FLOOD_FACTOR = 20, 4  # new cards in a week, and times the usual number
FLOOD_MIN_AGE_DAYS = 28  # a younger memory has no usual number
CARDS_SAMPLED_FOR_CLAIMS = 200


class SurveyFacts(NamedTuple):
    """The parts of a survey that the readings use."""

    cards: tuple[CardFacts, ...]
    same_topics: tuple[tuple[str, list[str]], ...]
    problems: tuple[FileProblem, ...]
    unread: tuple[str, ...]


def read_survey(workspace: Workspace, today: date, progress: Callable[[int, int], None]) -> SurveyFacts:
    found = workspace.maintenance.survey(progress)
    unread = workspace.maintenance.last_refresh.unread if workspace.maintenance.last_refresh is not None else ()
    cards = tuple(found.cards())
    return SurveyFacts(cards, _same_topics(cards, found.same_topics()), tuple(found.problems(today)), unread)


def _same_topics(
    cards: Iterable[CardFacts], topics: Iterable[tuple[str, list[str]]]
) -> tuple[tuple[str, list[str]], ...]:
    """Topics of several cards that may be about one thing: of one repository, or with one card of none."""
    repositories = {card.path: card.repository for card in cards}
    found = []
    for topic, paths in topics:
        shared = Counter(repositories.get(path, "") for path in paths)
        kept = [path for path in paths if shared[""] or shared[repositories.get(path, "")] > 1]
        if len(kept) > 1:
            found.append((topic, kept))
    return tuple(found)


def growth(cards: Iterable[CardFacts], today: date) -> tuple[int, ...]:
    """The number of cards created in each of the last weeks; dates in the future are ignored."""
    weeks = [0] * WEEKS
    for card in cards:
        made = parse_day(card.created)
        if made is not None and 0 <= (age := (today - made).days) < WEEKS * 7:
            weeks[WEEKS - 1 - age // 7] += 1
    return tuple(weeks)


def ages(cards: Iterable[CardFacts], today: date) -> tuple[tuple[str, int], ...]:
    """The number of cards by the age of their last change, and of those without a date."""
    counts = dict.fromkeys((*(name for name, _ in AGES), "unknown"), 0)
    for card in cards:
        touched = _touched(card)
        age = (today - touched).days if touched is not None else None
        counts["unknown" if age is None else next(name for name, most in AGES if age < most)] += 1
    return tuple(counts.items())


def cards(cards: Sequence[CardFacts], grown: Sequence[int], today: date) -> Reading:
    made = [day for card in cards if (day := parse_day(card.created)) is not None and day <= today]
    month = sum((today - day).days < 30 for day in made)
    week, usual = grown[-1], sum(grown[:-1]) / (len(grown) - 1)
    is_settled = bool(made) and (today - min(made)).days >= FLOOD_MIN_AGE_DAYS
    is_flood = is_settled and week >= FLOOD_CARDS and week > FLOOD_FACTOR * usual
    said = f"{len(cards)}; {week} new this week, {month} this month"
    figures = {"cards": len(cards), "week": week, "month": month, "weekly_before": round(usual, 1)}
    target = f"at most {FLOOD_FACTOR} times the usual growth"
    hint = f"{week} in a week, {usual:.0f} usually: `truekeep history` shows who writes so many"
    return Reading("cards", LOOK if is_flood else OK, said, target, hint if is_flood else "", figures)


def card_count(workspace: Workspace) -> Reading:
    count = workspace.cards.count()
    return Reading("cards", OK, f"{count}; their dates are unknown", figures={"cards": count})


def untouched(cards: Sequence[CardFacts], checks: Mapping[str, LastVerification], today: date, budget: int) -> Reading:
    """The least recently confirmed card, by the rule of `tidy decay`, which lists the same cards."""
    ahead = last_believed(today)
    signs = [(parse_day(last_sign(card, checks.get(card.path), ahead)), card.path) for card in cards]
    known = [(touched, path) for touched, path in signs if touched is not None]
    undated = len(signs) - len(known)
    target = f"none past {budget} days"
    oldest, path = min(known, default=(None, None))
    days = max(0, (today - oldest).days) if oldest is not None else None
    past = sum((today - touched).days > budget for touched, _ in known)
    figures = {"oldest": path, "days": days, "past": past, "undated": undated, "budget_days": budget}
    name = path.removeprefix(f"{CARDS}/") if path else ""
    said = f"the oldest for {count_of(days, 'day')}: {name}" if days is not None else ""
    if not past and not undated:
        return Reading("untouched", OK, said or "no cards", target, figures=figures)
    counts = [f"{past} past that"] * bool(past) + [f"{undated} undated"] * bool(undated)
    told = ", ".join([*counts, said] if said else counts)
    verdict = ACT if days is not None and days > 2 * budget else LOOK
    them = "it" if past + undated == 1 else f"these {past + undated}"
    hint = f"`truekeep tidy decay` lists {them}: check first, then decide"
    return Reading("untouched", verdict, told, target, hint, figures)


def last_checks(workspace: Workspace) -> dict[str, LastVerification]:
    """The last verification of each memory."""
    return checks_of(read_counts(os.path.join(workspace.path, STATE, "facts.sqlite")))


def index(
    workspace: Workspace,
    config: Config,
    untouched: Reading | None = None,
    doubled: Sequence[tuple[str, list[str]]] = (),
) -> Reading:
    data = workspace.files.read(INDEX).encode()
    limits = config.limits
    lines, size = data.count(b"\n"), len(data)
    most_lines, most_bytes = limits.index_lines, limits.index_bytes
    said = f"{lines} lines, {shown_bytes(size)}, about {tokens_of(size)} tokens"
    target = f"{most_lines} lines, {shown_bytes(most_bytes)}, {tokens_of(most_bytes)} tokens"
    figures = {
        "lines": lines,
        "bytes": size,
        "tokens": tokens_of(size),
        "limit_lines": most_lines,
        "limit_bytes": most_bytes,
        "limit_tokens": tokens_of(most_bytes),
    }
    if lines > most_lines or size > most_bytes:
        return Reading("index", ACT, said, target, _how_to_shorten(data, untouched, doubled), figures)
    if lines >= INDEX_WARNING_SHARE * most_lines or size >= INDEX_WARNING_SHARE * most_bytes:
        return Reading("index", LOOK, said, target, _how_to_shorten(data, untouched, doubled), figures)
    return Reading("index", OK, said, target, figures=figures)


def _how_to_shorten(data: bytes, untouched: Reading | None, doubled: Sequence[tuple[str, list[str]]]) -> str:
    """The hint for an index that is too long: a dropped card takes its line along."""
    figures = untouched.figures if untouched is not None else {}
    old, twice = figures.get("past", 0) + figures.get("undated", 0), sum(len(paths) - 1 for _, paths in doubled)
    steps = [f"merge {twice}: `truekeep tidy duplicates`"] * bool(twice)
    steps += [f"drop of {old}: `truekeep tidy decay`"] * bool(old)
    if steps:
        return "; ".join(steps)  # short, so that two commands fit into a line of the screen
    if others := sum(b"](" not in line for line in data.split(b"\n") if line.strip() and line[:1] != b"#"):
        return f"{count_of(others, 'line')} of it {'points' if others == 1 else 'point'} at no card: put that on cards"
    return "put one line for a sub-card in place of many; `truekeep card drop` removes a card and its line"


def duplicates(topics: Sequence[tuple[str, list[str]]]) -> Reading:
    shown = [{"topic": withhold(topic), "paths": list(paths)} for topic, paths in topics[:MAX_EXAMPLES]]
    figures = {"topics": len(topics), "first": shown}
    if not topics:
        return Reading("duplicates", OK, "no topic twice", "none", figures=figures)
    first = " and ".join(os.path.basename(path) for path in topics[0][1][:2])
    said = f"{count_of(len(topics), 'topic')} on more than one card: {first}"
    return Reading("duplicates", LOOK, said, "none", "`truekeep tidy duplicates` proposes how to merge them", figures)


def claims(workspace: Workspace, cards: Sequence[CardFacts] = ()) -> Reading:
    """The last verdicts of all memories; those edited since are only counted."""
    facts = os.path.join(workspace.path, STATE, "facts.sqlite")
    rows = read_counts(facts)
    counts, memories, edited, latest = dict.fromkeys(CLAIM_VERDICTS, 0), 0, 0, 0.0
    for memory, checked_at, words in rows:
        try:
            info = os.lstat(os.path.join(workspace.path, memory))
        except (OSError, ValueError):
            continue  # deleted since
        if info.st_mtime > checked_at:
            edited += 1
            continue
        memories, latest = memories + 1, max(latest, checked_at)
        for word, count in words.items():
            counts[word] = counts.get(word, 0) + count
    at = as_stamp(datetime.fromtimestamp(latest, UTC)) if latest else None
    figures = {"verdicts": counts, "memories": memories, "edited_since": edited, "checked_at": at}
    if not memories and not edited and not read_seals(facts) and not has_run(facts):
        if not _name_something(workspace, cards):
            return Reading("claims", OK, "not checked yet; run `truekeep verify`", figures=figures)
        hint = "`truekeep verify` says which of what cards name is still there"
        return Reading("claims", LOOK, "never checked against code", "none gone or moved", hint, figures)
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    told = f"{told}, in {count_of(memories, 'memory', 'memories')}" if told else ""
    since = f"{edited} edited since" if told else f"{edited} edited since the last check"
    said = "; ".join(filter(None, (told, since if edited else ""))) or "none whose repository is known"
    rot = sum(counts[word] for word in ("gone", "moved"))
    hint = "`truekeep verify --fix` writes what moved, proposes to drop what is gone and lists what is left to you"
    return Reading("claims", LOOK if rot else OK, said, "none gone or moved", hint if rot else "", figures)


def _name_something(workspace: Workspace, cards: Sequence[CardFacts]) -> bool:
    """True if one of the first cards has a claim to check."""
    for card in cards[:CARDS_SAMPLED_FOR_CLAIMS]:
        try:
            if extract_claims(workspace.files.read(card.path), limit=1).claims:
                return True
        except (TruekeepError, ChangedSince, OSError):
            continue  # reported elsewhere
    return False


def frontmatter(problems: Sequence[FileProblem]) -> Reading:
    shown = [problem._replace(what=withhold(problem.what))._asdict() for problem in problems[:MAX_EXAMPLES]]
    figures = {"problems": len(problems), "first": shown}
    if not problems:
        return Reading("frontmatter", OK, "nothing wrong", "none", figures=figures)
    files = len({problem.path for problem in problems})
    said = f"{count_of(len(problems), 'problem')} in {count_of(files, 'file')}"
    hint = "fix these lines in an editor; `truekeep status problems` lists all of them"
    return Reading("frontmatter", LOOK, said, "none", hint, figures)


def _touched(card: CardFacts) -> date | None:
    """The day on which the card was last written or confirmed."""
    return max((day for text in (card.updated, card.confirmed, card.created) if (day := parse_day(text))), default=None)
