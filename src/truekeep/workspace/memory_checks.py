"""Checks of memory itself: files, cards, the index, duplicates, claims, lines to fix. No claim is checked again."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

import apsw

from truekeep.core.dates import as_stamp, many
from truekeep.core.errors import TruekeepError
from truekeep.core.file_io import ChangedSince
from truekeep.core.model import CARDS, INDEX
from truekeep.maintenance.decay import checks_of, last_believed, last_sign
from truekeep.maintenance.survey.reader import BARE_FRONTMATTER
from truekeep.maintenance.survey.service import Survey
from truekeep.memory.card import parse_day
from truekeep.text.secrets.scanner import withhold
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.results import has_run, read_counts, read_seals
from truekeep.verify.verdict import VERDICTS as CLAIM_VERDICTS
from truekeep.workspace.check import (
    MAX_EXAMPLES,
    OK,
    PROBLEM,
    WARNING,
    CheckContext,
    CheckResult,
    other_documents_of,
    shown_bytes,
)

if TYPE_CHECKING:
    from truekeep.maintenance.decay import LastVerification
    from truekeep.maintenance.survey.service import CardFacts, FileProblem, StoreFacts

WEEKS = 12
AGES = (("1 week", 7), ("1 month", 30), ("3 months", 90), ("6 months", 180), ("1 year", 365), ("older", 10**9))
FLOOD_CARDS, FLOOD_FACTOR = 20, 4  # new cards in a week, and times the usual number
FLOOD_MIN_AGE_DAYS = 28  # a younger memory has no usual number
FILES_SAMPLED_FOR_CLAIMS = 200
BYTES_PER_TOKEN = 4
SPLIT_INDEX = f"`truekeep card split {INDEX}` proposes how it becomes cards"
NOT_CHECKED_YET = "not checked yet; run `truekeep verify`"


class SurveyFacts(NamedTuple):
    """The parts of a survey that checks use."""

    stores: Mapping[str, StoreFacts]
    documents: tuple[str, ...]  # the paths of the first ones
    cards: tuple[CardFacts, ...]
    same_topics: tuple[tuple[str, list[str]], ...]
    problems: tuple[FileProblem, ...]


def survey_of(context: CheckContext) -> SurveyFacts:
    """Survey memory, once for all checks. Doctor, which looks without touching, does not store the survey."""
    if context.command != "doctor":
        survey = context.workspace.maintenance.survey(context.progress)
        refresh = context.workspace.maintenance.last_refresh
        return _facts_of(context, survey, refresh.unread if refresh is not None else ())
    with tempfile.TemporaryDirectory(prefix="truekeep-doctor-") as folder:
        survey = Survey(folder, context.root)
        try:
            unread = survey.refresh(context.progress).unread
            return _facts_of(context, survey, unread)
        finally:
            survey.close()


def _facts_of(context: CheckContext, survey: Survey, unread: Sequence[str]) -> SurveyFacts:
    unread_documents = survey.refresh_documents(context.config.recall.extra_paths, context.progress)
    context.unseen += (*unread, *unread_documents)
    cards = tuple(survey.cards())
    problems = tuple(survey.all_problems(context.now().date()))
    documents = tuple(survey.documents(FILES_SAMPLED_FOR_CLAIMS))
    return SurveyFacts(survey.stores(), documents, cards, _same_topics(cards, survey.same_topics()), problems)


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


def check_files(context: CheckContext) -> CheckResult:
    """Documents, daily logs and what was archived; cards have a check of their own."""
    stores, others = context.once(survey_of).stores, context.once(other_documents_of)
    documents, logs, archive = (stores.get(name) for name in ("documents", "logs", "archive"))
    told = [f"{many(documents.files, 'document')} ({shown_bytes(documents.size)})"] if documents else []
    if logs:
        days = f" ({logs.first_day} to {logs.last_day})" if logs.first_day else ""
        told.append(f"{many(logs.files, 'daily log')}{days}")
    if archive:
        told.append(f"{many(archive.files, 'file')} in memory/archive")
    if others.files:
        told.append(f"{many(others.files, 'document')} in other folders ({shown_bytes(others.size)})")
    figures = {name: stores[name].files if name in stores else 0 for name in ("documents", "logs", "archive")}
    figures["elsewhere"] = others.files
    figures["bytes"] = sum(facts.size for facts in stores.values()) + others.size
    return CheckResult(OK, ", ".join(told) or "no documents or logs", figures=figures, is_absent=not told)


def check_cards(context: CheckContext) -> CheckResult:
    cards, today = context.once(survey_of).cards, context.now().date()
    made = [day for card in cards if (day := parse_day(card.created)) is not None and day <= today]
    month = sum((today - day).days < 30 for day in made)
    *before, week = growth(cards, today)
    usual = sum(before) / len(before)
    is_settled = bool(made) and (today - min(made)).days >= FLOOD_MIN_AGE_DAYS
    is_flood = is_settled and week >= FLOOD_CARDS and week > FLOOD_FACTOR * usual
    return CheckResult(
        WARNING if is_flood else OK,
        f"{len(cards)}; {week} new this week, {month} this month",
        f"{week} in a week, {usual:.0f} usually: `truekeep history` shows who writes so many" if is_flood else "",
        target=f"up to {FLOOD_FACTOR}x the average week",
        figures={"cards": len(cards), "week": week, "month": month, "weekly_before": round(usual, 1)},
        is_absent=not cards,
    )


def check_untouched(context: CheckContext) -> CheckResult:
    """The least recently confirmed card, by the rule of `tidy decay`, which lists the same cards."""
    every, today, budget = context.once(survey_of).cards, context.now().date(), context.config.decay.card_days
    split: set[str] = set()
    with suppress(apsw.Error, TruekeepError):  # the check of the ledger reports it
        split = context.workspace.maintenance.recently_split() if every else set()
    cards = [card for card in every if card.path not in split]
    checks: dict[str, LastVerification] = {}
    with suppress(apsw.Error):  # the check of claims reports it
        checks = context.once(last_checks) if cards else {}
    ahead = last_believed(today)
    signs = [(parse_day(last_sign(card, checks.get(card.path), ahead)), card.path) for card in cards]
    known = [(touched, path) for touched, path in signs if touched is not None]
    undated = len(signs) - len(known)
    oldest, path = min(known, default=(None, None))
    days = max(0, (today - oldest).days) if oldest is not None else None
    past = sum((today - touched).days > budget for touched, _ in known)
    ago = "" if days is None else "today" if not days else f"{many(days, 'day')} ago"
    counts = [f"{past} past {budget} days"] * bool(past) + [f"{undated} undated"] * bool(undated)
    counts += [f"least recently updated: {path.removeprefix(f'{CARDS}/')}, {ago}"] if path else []
    is_due = bool(past or undated)
    them = "it" if past + undated == 1 else f"these {past + undated}"
    return CheckResult(
        OK if not is_due else PROBLEM if days is not None and days > 2 * budget else WARNING,
        ", ".join(counts) or ("all cards are new" if every else "no cards"),
        f"`truekeep tidy decay` lists {them}: check first, then decide" if is_due else "",
        target=f"none past {budget} days",
        figures={"oldest": path, "days": days, "past": past, "undated": undated, "budget_days": budget},
        is_absent=not every,
    )


def last_checks(context: CheckContext) -> dict[str, LastVerification]:
    """The last verification of each memory."""
    return checks_of(read_counts(os.path.join(context.state, "facts.sqlite")))


def check_index(context: CheckContext) -> CheckResult:
    data = context.workspace.files.read(INDEX).encode()
    limits = context.config.limits
    lines, size = data.count(b"\n"), len(data)
    most_lines, most_bytes = limits.index_lines, limits.index_bytes
    figures = {
        "lines": lines,
        "bytes": size,
        "tokens": _tokens(size),
        "limit_lines": most_lines,
        "limit_bytes": most_bytes,
        "limit_tokens": _tokens(most_bytes),
    }
    target = f"{most_lines} lines, {shown_bytes(most_bytes)}, {_tokens(most_bytes)} tokens"
    if not data:
        return CheckResult(OK, f"no {INDEX} yet; the first card makes it", figures=figures)
    severity = PROBLEM if lines > most_lines or size > most_bytes else OK
    said = f"{lines} lines, {shown_bytes(size)}, about {_tokens(size)} tokens"
    hint = _how_to_shorten(context, data) if severity != OK else ""
    return CheckResult(severity, said, hint, target=target, figures=figures)


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _how_to_shorten(context: CheckContext, data: bytes) -> str:
    """The hint for an index that is too long: text becomes cards, and a dropped card takes its line along."""
    figures = check_untouched(context).figures
    old = figures["past"] + figures["undated"]
    twice = sum(len(paths) - 1 for _, paths in context.once(survey_of).same_topics)
    has_text = any(b"](" not in line for line in data.split(b"\n") if line.strip() and line[:1] != b"#")
    steps = [SPLIT_INDEX] * has_text
    steps += [f"merge {twice}: `truekeep tidy duplicates`"] * bool(twice)
    steps += [f"drop of {old}: `truekeep tidy decay`"] * bool(old)
    # Short, so that two commands fit into a line of the screen.
    return "; ".join(steps[:2]) or "`truekeep card consolidate` puts one line in place of many"


def check_duplicates(context: CheckContext) -> CheckResult:
    survey = context.once(survey_of)
    topics = survey.same_topics
    shown = [{"topic": withhold(topic), "paths": list(paths)} for topic, paths in topics[:MAX_EXAMPLES]]
    figures = {"topics": len(topics), "first": shown}
    if not topics:
        return CheckResult(OK, "no topic twice", target="none", figures=figures, is_absent=not survey.cards)
    first = " and ".join(os.path.basename(path) for path in topics[0][1][:2])
    said = f"{many(len(topics), 'topic')} on more than one card: {first}"
    return CheckResult(
        WARNING, said, "`truekeep tidy duplicates` proposes how to merge them", target="none", figures=figures
    )


def check_claims(context: CheckContext) -> CheckResult:
    """The last verdicts of all memories; those edited since are only counted."""
    facts = os.path.join(context.state, "facts.sqlite")
    checked = _count_verdicts(context.root, read_counts(facts))
    loose = _count_verdicts(context.root, read_counts(facts, of_no_repository=True))
    at = as_stamp(datetime.fromtimestamp(checked.latest, UTC)) if checked.latest else None
    figures = {
        "verdicts": checked.verdicts,
        "memories": checked.memories,
        "edited_since": checked.edited,
        "checked_at": at,
        "without_repository": {word: loose.verdicts[word] for word in ("confirmed", "unverifiable")},
    }
    target = "none gone or moved"
    if not checked.memories and not checked.edited and not read_seals(facts) and not has_run(facts):
        severity = WARNING if _name_something(context) else OK
        return CheckResult(severity, NOT_CHECKED_YET, target=target, figures=figures)
    told = ", ".join(f"{count} {word}" for word, count in checked.verdicts.items() if count)
    told = f"{told}, in {many(checked.memories, 'file')}" if told else ""
    since = f"{checked.edited} edited since" if told else f"{checked.edited} edited since the last check"
    unknown = _said_of_loose(loose.verdicts)
    said = "; ".join(filter(None, (told, since if checked.edited else "", unknown)))
    rot = sum(checked.verdicts[word] for word in ("gone", "moved"))
    hint = "`truekeep verify --fix` writes what moved, proposes to drop what is gone and lists what is left to you"
    if not rot:
        hint = _how_to_check(context) if loose.verdicts["unverifiable"] else ""
    return CheckResult(
        WARNING if rot else OK, said or "none whose repository is known", hint, target=target, figures=figures
    )


class _VerdictCounts(NamedTuple):
    """The stored verdicts of some memories."""

    verdicts: dict[str, int]
    memories: int
    edited: int  # since their check: their verdicts do not count
    latest: float


def _count_verdicts(root: str, rows: Iterable[tuple[str, float, dict[str, int]]]) -> _VerdictCounts:
    counts, memories, edited, latest = dict.fromkeys(CLAIM_VERDICTS, 0), 0, 0, 0.0
    for memory, checked_at, words in rows:
        try:
            info = os.lstat(os.path.join(root, memory))
        except (OSError, ValueError):
            continue  # deleted since
        if info.st_mtime > checked_at:
            edited += 1
            continue
        memories, latest = memories + 1, max(latest, checked_at)
        for word, count in words.items():
            counts[word] = counts.get(word, 0) + count
    return _VerdictCounts(counts, memories, edited, latest)


def _said_of_loose(verdicts: Mapping[str, int]) -> str:
    """The claims of files that name no repository: few can be confirmed, none refuted."""
    if not verdicts["unverifiable"]:
        return ""
    confirmed = f"{verdicts['confirmed']} confirmed, " if verdicts["confirmed"] else ""
    return f"{confirmed}{verdicts['unverifiable']} not checked: their files name no repository"


def _how_to_check(context: CheckContext) -> str:
    if os.path.lexists(os.path.join(context.root, ".git")):
        return f"if they are about this folder: `truekeep verify --repo {context.root}`"
    return "`truekeep repos match` proposes a repository for each card"


def _name_something(context: CheckContext) -> bool:
    """True if one of the first cards or documents has a claim to check."""
    survey = context.once(survey_of)
    for path in (*(card.path for card in survey.cards[:FILES_SAMPLED_FOR_CLAIMS]), *survey.documents):
        try:
            if extract_claims(context.workspace.files.read(path), limit=1).claims:
                return True
        except (TruekeepError, ChangedSince, OSError):
            continue  # reported elsewhere
    return False


def check_lines(context: CheckContext) -> CheckResult:
    """Lines to fix; cards without category or tags are only counted, for many workspaces do without them."""
    problems = context.once(survey_of).problems
    to_fix = [item for item in problems if item.code != BARE_FRONTMATTER]
    shown = [item._replace(what=withhold(item.what))._asdict() for item in to_fix[:MAX_EXAMPLES]]
    figures = {"problems": len(to_fix), "first": shown}
    if not to_fix:
        bare = len(problems)
        said = (
            f"{many(bare, 'card')} without category or tags (`truekeep status problems`)" if bare else "nothing to fix"
        )
        return CheckResult(OK, said, target="none", figures=figures)
    files = len({item.path for item in to_fix})
    said = f"{len(to_fix)} to fix in {many(files, 'file')}"
    if credentials := sum(item.code == "credential" for item in to_fix):
        look = "looks like a credential" if credentials == 1 else "look like credentials"
        said += f" ({credentials} {look})"
    hint = "fix these lines in an editor; `truekeep status problems` lists all of them"
    return CheckResult(WARNING, said, hint, target="none", figures=figures)


def _touched(card: CardFacts) -> date | None:
    """The day on which the card was last written or confirmed."""
    return max((day for text in (card.updated, card.confirmed, card.created) if (day := parse_day(text))), default=None)
