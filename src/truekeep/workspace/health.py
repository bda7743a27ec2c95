"""Whether memory is healthy: the five questions of the founding document, and what else needs a person.

Each thing that is looked at becomes a reading: what was found, what a healthy memory has, a verdict and the next step.
Nothing is checked anew and nothing is changed; what cannot be told is said, and the rest goes on.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw

from truekeep.core.bugs import note_bug
from truekeep.core.config import Config
from truekeep.core.errors import BadSetup, NotCanonical, TruekeepError
from truekeep.core.file_io import ChangedSince
from truekeep.core.model import CARDS, INDEX, as_stamp
from truekeep.core.state_dir import STATE
from truekeep.maintenance.decay import checks_of, last_believed, last_sign
from truekeep.search.index_schema import Unusable, open_index
from truekeep.text.secrets.scanner import withhold
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.results import has_run, read_counts, read_seals
from truekeep.verify.same_name_checkouts import SAME_NAME_HINT
from truekeep.verify.verdict import VERDICTS as WORDS
from truekeep.workspace.failures import Failure, failed_runs, noted_bugs, runs_folder
from truekeep.workspace.health_history import Day, read_days

if TYPE_CHECKING:
    from truekeep.maintenance.decay import LastVerification
    from truekeep.maintenance.survey.service import CardFacts, FileProblem
    from truekeep.workspace.pipeline import Pipeline
    from truekeep.workspace.workspace import Workspace

OK, LOOK, ACT, UNKNOWN = VERDICTS = ("ok", "look", "act", "unknown")
QUESTIONS = ("cards", "untouched", "index", "handoffs", "duplicates")
FAILURES = ("schedule", "bugs")  # told before everything else
WEEKS = 12
AGES = (("1 week", 7), ("1 month", 30), ("3 months", 90), ("6 months", 180), ("1 year", 365), ("older", 10**9))
MANY, OLD = 20, 14  # drafts, and days that one waits, from which on nobody seems to review
SHOWN = 5  # of each kind of thing, by name
_NEAR = 0.8  # of a budget: from here on, somebody should make room
_FLOOD, _SURGE, _SETTLED = 20, 4, 28  # cards in a week; times the usual; days of life before that says anything
_BEHIND, _SHARE = 50, 0.2  # files that the search index may lack, and their share
_SAMPLED = 200  # cards that are asked whether they name anything
_SCARCE = 200 << 20  # bytes free on the disk
_GRAVE = ("split-host", "no-host", "not-running", "growing")  # alarms: memory is not fed
_ROT = ("gone", "moved")
_DATABASES = {"memory": "survey.sqlite", "claims": "facts.sqlite", "search": "index.sqlite"}
_MEMORY = ("memory", "rules", ".learnings")

_Seen = TypeVar("_Seen")


class Reading(NamedTuple):
    """One thing that was looked at."""

    name: str
    verdict: str  # ok, look, act; unknown: it could not be told
    said: str
    target: str = ""  # what a healthy memory has
    hint: str = ""  # the next step
    figures: Mapping[str, Any] = {}


class HealthReport(NamedTuple):
    """How memory stands."""

    readings: tuple[Reading, ...]  # the questions first
    growth: tuple[int, ...]  # cards made in each of the last weeks, this one last
    ages: tuple[tuple[str, int], ...]  # cards last touched within so long, and not within the one before
    unseen: tuple[str, ...]  # what could not be looked at, and why

    @property
    def verdict(self) -> str:
        """The gravest of them. What could not be looked at needs a person, too."""
        found = {reading.verdict for reading in self.readings}
        return ACT if ACT in found else LOOK if found - {OK} or self.unseen else OK

    @property
    def failures(self) -> tuple[Reading, ...]:
        """What failed and has not gone well since."""
        return tuple(reading for reading in self.readings if reading.name in FAILURES and reading.verdict != OK)

    def get(self, name: str) -> Reading:
        return next(reading for reading in self.readings if reading.name == name)


class Health:
    """How memory stands in one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._context = workspace.context

    def days(self) -> list[Day]:
        """The noted figures of memory at the end of each day."""
        return read_days(str(self._context.path / STATE / "logs"))


def see_health(
    workspace: Workspace,
    *,
    now: datetime,
    flow: Callable[[], Pipeline],
    tell: Callable[[int, int], None] = lambda *_: None,
) -> HealthReport:
    """How memory stands now. `flow` tells of the pipeline; `tell` hears of files that are read for the first time."""
    look = _HealthChecks()
    config = look.at(lambda: workspace.config) or Config()
    today = now.date()
    surveyed = look.at(lambda: _survey(workspace, today, tell), "memory")
    cards = surveyed.cards if surveyed is not None else ()
    checks = (look.at(lambda: _last_checks(workspace), "claims") if cards else None) or {}
    grown = growth(cards, today)
    look.unseen += surveyed.unread if surveyed is not None else ()
    days, topics = config.decay.card_days, surveyed.same_topics if surveyed is not None else ()
    untouched = look.only(lambda: _untouched(cards, checks, today, days), "untouched", given=surveyed)
    readings: tuple[Reading, ...] = (
        _cards(cards, grown, today) if surveyed is not None else look.only(lambda: _count(workspace), "cards"),
        untouched,
        look.only(lambda: _index(workspace, config, untouched, topics), "index"),
        look.only(lambda: _handoffs(workspace, config), "handoffs"),
        look.only(lambda: _duplicates(topics), "duplicates", given=surveyed),
        look.only(lambda: _claims(workspace, cards), "claims"),
        look.only(lambda: _review(workspace, now), "review"),
        look.only(lambda: _pipeline(flow()), "pipeline"),
        look.only(lambda: _search(workspace), "search"),
        look.only(lambda: _frontmatter(surveyed.problems if surveyed else ()), "frontmatter", given=surveyed),
        look.only(lambda: _disk(str(workspace.path)), "disk"),
        look.only(lambda: _failures("schedule", failed_runs(runs_folder(workspace), now=now)), "schedule"),
        look.only(lambda: _failures("bugs", noted_bugs(now=now)), "bugs"),
    )
    doubtful = look.at(lambda: _same_names(workspace), "repositories")
    readings += (doubtful,) if doubtful is not None else ()
    return HealthReport(readings, grown, ages(cards, today), tuple(dict.fromkeys(look.unseen)))


def note_day(workspace: Workspace, health: HealthReport | None = None) -> bool:
    """Note what memory is today, on its canonical host. Gives whether that is news."""
    from truekeep.workspace import health_history as days

    try:
        if not workspace.is_canonical:
            return False
    except (BadSetup, NotCanonical, OSError):
        return False
    logs = workspace.path / STATE / "logs"
    is_new = not (logs / days.NAME).exists()
    before = _HealthChecks().at(lambda: workspace.context.transaction.ledger.sizes(INDEX), "ledger") if is_new else None
    earlier = [days.Day(day, index_bytes=size) for day, size in before or ()]
    return days.note_day(str(logs), see_day(workspace, workspace.today(), health), earlier)


def see_day(workspace: Workspace, today: date, health: HealthReport | None = None) -> Day:
    """What a day came to so far: from what was just seen, else from a look at that alone."""
    if health is None:
        look, config, now = _HealthChecks(), workspace.config, workspace.now()
        readings: tuple[Reading, ...] = (
            look.only(lambda: _count(workspace), "cards"),
            look.only(lambda: _index(workspace, config), "index"),
            look.only(lambda: _claims(workspace), "claims"),
            look.only(lambda: _review(workspace, now), "review"),
        )
    else:
        readings = tuple(health.get(name) for name in ("cards", "index", "claims", "review"))
    cards, index, claims, review = (reading.figures for reading in readings)
    verdicts = {word: count for word, count in claims.get("verdicts", {}).items() if count}
    return Day(today.isoformat(), cards.get("cards"), review.get("drafts"), index.get("bytes"), verdicts)


class _HealthChecks:
    """Looks at one thing after the other; what cannot be looked at is noted."""

    def __init__(self) -> None:
        self.unseen: list[str] = []

    def at(self, see: Callable[[], _Seen], name: str = "") -> _Seen | None:
        try:
            return see()
        except TruekeepError as error:
            why = f"{error.message} ({error.hint})" if error.hint else error.message
        except ChangedSince as error:
            why = f"{error.path} is being written"
        except OSError as error:
            why = f"{error.filename or name}: {error.strerror or error}"
        except apsw.Error as error:
            why = f"{STATE}/{_DATABASES.get(name, 'ledger.sqlite')} cannot be used: {error} (`truekeep doctor`)"
        except Exception as error:  # noqa: BLE001 - a bug in one reading is not the others'
            note_bug(error, "status")
            why = f"{name or 'configuration'}: a bug in truekeep ({type(error).__name__})"
        self.unseen.append(why)
        return None

    def only(self, see: Callable[[], Reading], name: str, *, given: object = True) -> Reading:
        """A reading; where what it is made of is missing, that it could not be had."""
        return (self.at(see, name) if given is not None else None) or Reading(name, UNKNOWN, "could not be told")


# --- The five questions ---------------------------------------------------------------------------------------------


class _SurveyFacts(NamedTuple):
    cards: tuple[CardFacts, ...]
    same_topics: tuple[tuple[str, list[str]], ...]
    problems: tuple[FileProblem, ...]
    unread: tuple[str, ...]


def _survey(workspace: Workspace, today: date, tell: Callable[[int, int], None]) -> _SurveyFacts:
    found = workspace.maintenance.survey(tell)
    unread = workspace.maintenance.last_refresh.unread if workspace.maintenance.last_refresh is not None else ()
    cards = tuple(found.cards())
    return _SurveyFacts(cards, _doubled(cards, found.same_topics()), tuple(found.problems(today)), unread)


def _doubled(cards: Iterable[CardFacts], topics: Iterable[tuple[str, list[str]]]) -> tuple[tuple[str, list[str]], ...]:
    """Topics that cards share which may be one: of one repository, or one of them of none. Others are two things."""
    repositories = {card.path: card.repository for card in cards}
    found = []
    for topic, paths in topics:
        shared = Counter(repositories.get(path, "") for path in paths)
        kept = [path for path in paths if shared[""] or shared[repositories.get(path, "")] > 1]
        if len(kept) > 1:
            found.append((topic, kept))
    return tuple(found)


def growth(cards: Iterable[CardFacts], today: date) -> tuple[int, ...]:
    """How many cards were made in each of the last weeks. What is dated in the future was made in none."""
    weeks = [0] * WEEKS
    for card in cards:
        made = _day(card.created)
        if made is not None and 0 <= (age := (today - made).days) < WEEKS * 7:
            weeks[WEEKS - 1 - age // 7] += 1
    return tuple(weeks)


def ages(cards: Iterable[CardFacts], today: date) -> tuple[tuple[str, int], ...]:
    """How many cards were last touched when, and of how many nobody knows."""
    counts = dict.fromkeys((*(name for name, _ in AGES), "unknown"), 0)
    for card in cards:
        touched = _touched(card)
        age = (today - touched).days if touched is not None else None
        counts["unknown" if age is None else next(name for name, most in AGES if age < most)] += 1
    return tuple(counts.items())


def _cards(cards: Sequence[CardFacts], grown: Sequence[int], today: date) -> Reading:
    made = [day for card in cards if (day := _day(card.created)) is not None and day <= today]
    month = sum((today - day).days < 30 for day in made)
    week, usual = grown[-1], sum(grown[:-1]) / (len(grown) - 1)
    is_settled = bool(made) and (today - min(made)).days >= _SETTLED
    is_flood = is_settled and week >= _FLOOD and week > _SURGE * usual
    said = f"{len(cards)}; {week} new this week, {month} this month"
    figures = {"cards": len(cards), "week": week, "month": month, "weekly_before": round(usual, 1)}
    target = f"at most {_SURGE} times the usual growth"
    hint = f"{week} in a week, {usual:.0f} usually: `truekeep history` shows who writes so many"
    return Reading("cards", LOOK if is_flood else OK, said, target, hint if is_flood else "", figures)


def _count(workspace: Workspace) -> Reading:
    count = workspace.cards.count()
    return Reading("cards", OK, f"{count}; their days could not be told", figures={"cards": count})


def _untouched(cards: Sequence[CardFacts], checks: Mapping[str, LastVerification], today: date, budget: int) -> Reading:
    """By the rule of `tidy decay`, which lists the very same cards, those that nobody knows the age of included."""
    ahead = last_believed(today)
    signs = [(_day(last_sign(card, checks.get(card.path), ahead)), card.path) for card in cards]
    known = [(touched, path) for touched, path in signs if touched is not None]
    undated = len(signs) - len(known)
    target = f"none past {budget} days"
    oldest, path = min(known, default=(None, None))
    days = max(0, (today - oldest).days) if oldest is not None else None
    past = sum((today - touched).days > budget for touched, _ in known)
    figures = {"oldest": path, "days": days, "past": past, "undated": undated, "budget_days": budget}
    name = path.removeprefix(f"{CARDS}/") if path else ""
    said = f"the oldest for {_count_of(days, 'day')}: {name}" if days is not None else ""
    if not past and not undated:
        return Reading("untouched", OK, said or "no cards", target, figures=figures)
    counts = [f"{past} past that"] * bool(past) + [f"{undated} undated"] * bool(undated)
    told = ", ".join([*counts, said] if said else counts)
    verdict = ACT if days is not None and days > 2 * budget else LOOK
    them = "it" if past + undated == 1 else f"these {past + undated}"
    hint = f"`truekeep tidy decay` lists {them}: check first, then decide"
    return Reading("untouched", verdict, told, target, hint, figures)


def _last_checks(workspace: Workspace) -> dict[str, LastVerification]:
    """What code last said to each memory."""
    return checks_of(read_counts(os.path.join(workspace.path, STATE, "facts.sqlite")))


def _index(
    workspace: Workspace,
    config: Config,
    untouched: Reading | None = None,
    doubled: Sequence[tuple[str, list[str]]] = (),
) -> Reading:
    data = workspace.files.read(INDEX).encode()
    limits = config.limits
    lines, size = data.count(b"\n"), len(data)
    most_lines, most_bytes = limits.index_lines, limits.index_bytes
    said = f"{lines} lines, {_shown_bytes(size)}, about {tokens_of(size)} tokens"
    target = f"{most_lines} lines, {_shown_bytes(most_bytes)}, {tokens_of(most_bytes)} tokens"
    figures = {
        "lines": lines,
        "bytes": size,
        "tokens": tokens_of(size),
        "limit_lines": most_lines,
        "limit_bytes": most_bytes,
        "limit_tokens": tokens_of(most_bytes),
    }
    if lines > most_lines or size > most_bytes:
        return Reading("index", ACT, said, target, _shorter(data, untouched, doubled), figures)
    if lines >= _NEAR * most_lines or size >= _NEAR * most_bytes:
        return Reading("index", LOOK, said, target, _shorter(data, untouched, doubled), figures)
    return Reading("index", OK, said, target, figures=figures)


def _shorter(data: bytes, untouched: Reading | None, doubled: Sequence[tuple[str, list[str]]]) -> str:
    """What makes the index shorter: a card takes its line along, and what is no pointer has a better place."""
    figures = untouched.figures if untouched is not None else {}
    old, twice = figures.get("past", 0) + figures.get("undated", 0), sum(len(paths) - 1 for _, paths in doubled)
    steps = [f"merge {twice}: `truekeep tidy duplicates`"] * bool(twice)
    steps += [f"drop of {old}: `truekeep tidy decay`"] * bool(old)
    if steps:
        return "; ".join(steps)  # short: two commands are to fit into a line of the screen
    if others := sum(b"](" not in line for line in data.split(b"\n") if line.strip() and line[:1] != b"#"):
        return f"{_count_of(others, 'line')} of it {'points' if others == 1 else 'point'} at no card: put that on cards"
    return "put one line for a sub-card in place of many; `truekeep card drop` removes a card and its line"


def _handoffs(workspace: Workspace, config: Config) -> Reading:
    waiting, others = workspace.handoffs.scan_inboxes()
    limit = config.limits.waiting_handoffs
    verdict = OK if waiting < limit or not waiting else LOOK if waiting < 2 * limit else ACT
    said = f"{_count_of(waiting, 'handoff')} {'waits' if waiting == 1 else 'wait'}"
    hint = "" if verdict == OK else "`truekeep ingest` files them; `truekeep schedule install` does it by a timer"
    if others:
        said += f", {_count_of(len(others), 'file')} {'is not a handoff' if len(others) == 1 else 'are not handoffs'}"
        verdict = max(verdict, LOOK, key=(OK, LOOK, ACT).index)
        hint = hint or "`truekeep handoff list` names what is not a handoff"
    return Reading("handoffs", verdict, said, f"under {limit}", hint, {"waiting": waiting, "limit": limit})


def _duplicates(topics: Sequence[tuple[str, list[str]]]) -> Reading:
    shown = [{"topic": _safe(topic), "paths": list(paths)} for topic, paths in topics[:SHOWN]]
    figures = {"topics": len(topics), "first": shown}
    if not topics:
        return Reading("duplicates", OK, "no topic twice", "none", figures=figures)
    first = " and ".join(os.path.basename(path) for path in topics[0][1][:2])
    said = f"{_count_of(len(topics), 'topic')} on more than one card: {first}"
    return Reading("duplicates", LOOK, said, "none", "`truekeep tidy duplicates` proposes how to merge them", figures)


# --- What else needs a person ---------------------------------------------------------------------------------------


def _claims(workspace: Workspace, cards: Sequence[CardFacts] = ()) -> Reading:
    """What the last check of each memory said. One that was edited since is only counted."""
    facts = os.path.join(workspace.path, STATE, "facts.sqlite")
    rows = read_counts(facts)
    counts, memories, edited, latest = dict.fromkeys(WORDS, 0), 0, 0, 0.0
    for memory, checked_at, words in rows:
        try:
            info = os.lstat(os.path.join(workspace.path, memory))
        except (OSError, ValueError):
            continue  # it is gone by now
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
            return Reading("claims", OK, "nothing that code could confirm", figures=figures)
        hint = "`truekeep verify` says which of what cards name is still there"
        return Reading("claims", LOOK, "never held against code", "none gone or moved", hint, figures)
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    told = f"{told}, in {_count_of(memories, 'memory', 'memories')}" if told else ""
    since = f"{edited} edited since" if told else f"{edited} edited since the last check"
    said = "; ".join(filter(None, (told, since if edited else ""))) or "none whose repository is known"
    rot = sum(counts[word] for word in _ROT)
    hint = "`truekeep verify --fix` writes what moved, proposes to drop what is gone and lists what is left to you"
    return Reading("claims", LOOK if rot else OK, said, "none gone or moved", hint if rot else "", figures)


def _same_names(workspace: Workspace) -> Reading | None:
    """Checkouts that claim one repository's name and are not one repository; nothing where there are none."""
    told = workspace.repositories.same_names()
    if not told:
        return None
    figures = {"same_name": list(told)}
    return Reading("repositories", LOOK, "; ".join(told), "each name once", SAME_NAME_HINT, figures)


def _name_something(workspace: Workspace, cards: Sequence[CardFacts]) -> bool:
    """Whether one of the first cards names what can be checked: most do, and who has looked at many has an answer."""
    for card in cards[:_SAMPLED]:
        try:
            if extract_claims(workspace.files.read(card.path), limit=1).claims:
                return True
        except (TruekeepError, ChangedSince, OSError):
            continue  # told elsewhere
    return False


def _review(workspace: Workspace, now: datetime) -> Reading:
    drafts = workspace.review.drafts()
    oldest = min((draft.received_at for draft in drafts), default="")
    begun = _moment(oldest)
    days = max(0, (now - begun).days) if begun is not None else None
    figures = {"drafts": len(drafts), "oldest": oldest or None, "oldest_days": days}
    target = f"under {MANY}, none for {OLD} days"
    if not drafts:
        return Reading("review", OK, "nothing waits for a person", target, figures=figures)
    age = f", the oldest for {_count_of(days, 'day')}" if days is not None else ""
    said = f"{_count_of(len(drafts), 'draft')} {'waits' if len(drafts) == 1 else 'wait'}{age}"
    is_late = len(drafts) >= MANY or (days is not None and days >= OLD)
    hint = "`truekeep review list` shows them with their reasons" if is_late else ""
    return Reading("review", LOOK if is_late else OK, said, target, hint, figures)


def _failures(name: str, found: Sequence[Failure]) -> Reading:
    figures = {"failures": len(found)}
    if not found:
        return Reading(name, OK, "nothing failed", "none", figures=figures)
    said = "; ".join(failure.what for failure in found)
    hints = dict.fromkeys(failure.hint for failure in found)
    return Reading(name, ACT, said, "none", "; ".join(hints), figures)


def _pipeline(seen: Pipeline) -> Reading:
    filed, held = sum(source.filed for source in seen.sources), sum(source.held for source in seen.sources)
    machines = len({source.machine for source in seen.sources})
    last = f"last ingest {seen.last_ingest[:16].replace('T', ' ')} UTC" if seen.last_ingest else "ingest has never run"
    said = f"{filed} filed and {held} held in a week, from {_count_of(machines, 'machine')}; {last}"
    figures = {
        "filed": filed,
        "held": held,
        "machines": machines,
        "last_ingest": seen.last_ingest or None,
        "alarms": [alarm._asdict() for alarm in seen.alarms],
    }
    if not seen.alarms:
        return Reading("pipeline", OK, said, "no alarm", figures=figures)
    first = seen.alarms[0]
    verdict = ACT if any(alarm.code in _GRAVE for alarm in seen.alarms) else LOOK
    more = f"; {len(seen.alarms) - 1} more: `truekeep status pipeline`" if len(seen.alarms) > 1 else ""
    return Reading("pipeline", verdict, said, "no alarm", f"{first.message}: {first.hint}{more}", figures)


def _search(workspace: Workspace) -> Reading:
    path = os.path.join(workspace.path, STATE, "index.sqlite")
    figures: dict[str, Any] = {"files": 0, "waiting": 0, "unembedded": 0, "indexed_at": None, "problem": None}
    if not os.path.lexists(path) or not os.path.getsize(path):
        return Reading("search", OK, "no index yet; the first search makes it", figures=figures)
    try:
        open_index(path, read_only=True).close()  # what is damaged is told, not set aside
        status = workspace.search.status()
        problem = status.problem
    except Unusable as error:
        problem = error.what
    if problem:
        hint = "`truekeep doctor --fix` makes it anew"
        figures["problem"] = problem
        return Reading("search", LOOK, f"the index cannot be used: {problem}", "up to date", hint, figures)
    files = sum(count for store, count in status.files.items() if store != "transcripts")
    figures |= {"files": files, "waiting": status.waiting, "unembedded": status.unembedded}
    figures["indexed_at"] = status.indexed_at or None
    told = [f"{status.waiting} changed since"] if status.waiting else []
    told += [f"{status.unembedded} pieces without a vector"] if status.unembedded else []
    when = f", brought up to date {status.indexed_at[:16].replace('T', ' ')} UTC" if status.indexed_at else ""
    said = f"{_count_of(files, 'file')}{when}; {', '.join(told) or 'nothing changed since'}"
    is_behind = status.waiting > max(_BEHIND, _SHARE * files) or status.unembedded > _BEHIND
    hint = "`truekeep index` takes them in" if is_behind else ""
    return Reading("search", LOOK if is_behind else OK, said, "up to date", hint, figures)


def _frontmatter(problems: Sequence[FileProblem]) -> Reading:
    shown = [problem._replace(what=_safe(problem.what))._asdict() for problem in problems[:SHOWN]]
    figures = {"problems": len(problems), "first": shown}
    if not problems:
        return Reading("frontmatter", OK, "nothing wrong", "none", figures=figures)
    files = len({problem.path for problem in problems})
    said = f"{_count_of(len(problems), 'problem')} in {_count_of(files, 'file')}"
    hint = "mend these lines in an editor; `truekeep status problems` lists all of them"
    return Reading("frontmatter", LOOK, said, "none", hint, figures)


def _disk(root: str) -> Reading:
    memory = [info.st_size for folder in _MEMORY for info in _files(os.path.join(root, folder))]
    with os.scandir(root) as entries:
        memory += [item.stat(follow_symlinks=False).st_size for item in entries if _is_memory(item)]
    state = sum(info.st_size for info in _files(os.path.join(root, STATE)))
    room = os.statvfs(root)
    free = room.f_bavail * room.f_frsize
    figures = {"memory_bytes": sum(memory), "memory_files": len(memory), "state_bytes": state, "free_bytes": free}
    said = f"{_shown_bytes(sum(memory))} of memory, {_shown_bytes(state)} of state, {_shown_bytes(free)} free"
    target = f"{_shown_bytes(_SCARCE)} free"
    is_scarce = free < _SCARCE
    return Reading("disk", ACT if is_scarce else OK, said, target, "make room" if is_scarce else "", figures)


def _is_memory(item: os.DirEntry[str]) -> bool:
    return item.name.endswith(".md") and item.is_file(follow_symlinks=False)


def _files(folder: str) -> Iterator[os.stat_result]:
    """Every file below a folder. Links, and what cannot be looked at, are passed over."""
    folders = [folder] if not os.path.islink(folder) else []
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue
        for item in listed:
            try:
                info = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(info.st_mode):
                folders.append(item.path)
            elif stat.S_ISREG(info.st_mode):
                yield info


# --- Words ----------------------------------------------------------------------------------------------------------


def _safe(text: str) -> str:
    """What a memory says, without a credential that somebody wrote into it."""
    return withhold(text)


def tokens_of(size: int) -> int:
    """About how many tokens a text of so many bytes is."""
    return -(-size // 4)


def _touched(card: CardFacts) -> date | None:
    """The day on which somebody last wrote a card, or said that it holds."""
    return max((day for text in (card.updated, card.confirmed, card.created) if (day := _day(text))), default=None)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _count_of(number: int, what: str, many: str = "") -> str:
    return f"{number} {what if number == 1 else many or what + 's'}"


def _shown_bytes(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    number, unit = size / 1e3, "kB"
    for larger in ("MB", "GB", "TB"):
        if number >= 1000:
            number, unit = number / 1000, larger
    return f"{number:.1f} {unit}" if number < 100 else f"{number:.0f} {unit}"
