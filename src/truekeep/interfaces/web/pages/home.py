"""The home page: what waits for you, what changed since yesterday, is memory healthy; with charts.

Health reads every file, so it is computed in the background and shown with its time. Drafts and changes are read for
each request.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

import apsw
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.dates import as_stamp, day_bounds
from truekeep.core.errors import TruekeepError
from truekeep.handoffs.draft import Draft
from truekeep.interfaces.web import charts
from truekeep.interfaces.web.background import Glance
from truekeep.interfaces.web.change_polling import mark_of
from truekeep.interfaces.web.local_site import LocalSite
from truekeep.interfaces.web.pages.history import ShownEntry, as_shown, is_seen, page_of, seen_entry
from truekeep.interfaces.web.site import Site
from truekeep.maintenance.decay import Stale
from truekeep.memory.ledger import LedgerQuery
from truekeep.sessions.session_record import Closeout, closeouts, iter_records
from truekeep.verify.verdict import VERDICTS
from truekeep.workspace.check import OK, PROBLEM, WARNING, CheckResult
from truekeep.workspace.health import HEALTH, QUESTIONS, HealthReport
from truekeep.workspace.health_history import Day
from truekeep.workspace.pipeline import Pipeline, shown_wait
from truekeep.workspace.workspace import Workspace

MAX_EXAMPLES = 5  # drafts, cards, entries of a kind
CHART_DAYS = 30
HANDOFF_WEEKS = 2
MAX_COLOURED_WRITERS = 4
TITLES = {check.name: check.title for check in HEALTH}
PAGES = {
    "cards": "/memory?store=cards",
    "files": "/memory",
    "untouched": "/memory?store=cards&sort=oldest",
    "index": "/memory/file/MEMORY.md",
    "claims": "/memory?store=all&verdict=refuted",
    "review": "/review",
}
# A sign and a colour for each severity, never the colour alone.
SIGNS = {OK: ("✓", "good"), WARNING: ("!", "warn"), PROBLEM: ("✗", "bad")}
_SHORT = {"1 week": "week", "1 month": "month", "3 months": "3 mon.", "6 months": "6 mon.", "1 year": "year"}
_TINTS = {"confirmed": "good", "moved": "warn", "changed": "three", "gone": "bad", "unverifiable": "faint"}


class Picture(NamedTuple):
    """The health of memory, and the data of the charts."""

    health: HealthReport
    pipeline: Pipeline | None  # None if it could not be read; health says why
    stale: tuple[Stale, ...]
    closeouts: tuple[Closeout, ...]
    days: tuple[Day, ...]
    sent: tuple[tuple[str, str, int], ...]  # handoffs: day, writer, how many


class HealthRow(NamedTuple):
    """A result as the page shows it."""

    result: CheckResult
    title: str
    sign: str
    tone: str
    page: str


class ActivityCount(NamedTuple):
    """Entries of one kind since yesterday."""

    verb: str
    number: int
    newest: tuple[ShownEntry, ...]


def routes(site: LocalSite) -> list[BaseRoute]:
    def see() -> Picture:
        with site.borrow() as workspace:
            return take_picture(workspace, is_noted=not site.read_only)

    glance = Glance(see, lambda: mark_of(str(site.path)))

    def answer(site: Site, workspace: Workspace, request: Request) -> Response:
        return today(site, workspace, request, glance)

    return [site.page("/", answer)]


def take_picture(workspace: Workspace, *, is_noted: bool = False) -> Picture:
    """Look at all of memory. `is_noted`: the day's line is written, where this machine may."""
    now = workspace.now()
    records = list(iter_records())
    roots = list(dict.fromkeys(record.root for record in records if record.root))
    health = workspace.health.check(now=now, session_roots=roots)
    stale: list[Stale] = []
    try:
        stale = workspace.maintenance.stale_cards()
    except (TruekeepError, OSError, apsw.Error) as error:
        health = health._replace(unseen=(*health.unseen, f"cards to look at: {error}"))
    if is_noted:
        workspace.health.note_day(health)
    since, _ = day_bounds(now.date() - timedelta(days=7 * HANDOFF_WEEKS - 1), None)
    return Picture(
        health=health,
        pipeline=health.pipeline,
        stale=tuple(stale),
        closeouts=tuple(closeouts(records, since=now.timestamp() - CHART_DAYS * 86_400)),
        days=tuple(workspace.health.days()[-CHART_DAYS:]),
        sent=tuple(workspace.handoffs.received_by_day(since)),
    )


def today(site: Site, workspace: Workspace, request: Request, glance: Glance[Picture]) -> Response:
    """The page."""
    look = glance.get()
    picture, now = look.seen, workspace.now()
    drafts = workspace.review.drafts()
    done = done_since(workspace, as_stamp(now - timedelta(days=1)))
    shown = {path for group in done for entry in group.newest for path, _ in entry.files}
    titles = {draft.path: workspace.review.title(draft) for draft in drafts if draft.path in shown}
    yesterday = now - timedelta(days=1)
    health = picture.health
    rows = [health_row(result) for result in health.results if not result.is_absent and result not in health.failures]
    return site.render(
        request,
        "today.html",
        title="Today",
        health=health,
        state=health_row(CheckResult(health.severity, health.summary)),
        failures=[health_row(result) for result in health.failures],
        needed=[row for row in rows if row.result.severity != OK and row.result.name != "review"],
        questions=[row for row in rows if row.result.name in (*QUESTIONS, "files")],
        besides=[row for row in rows if row.result.name not in (*QUESTIONS, "files")],
        looked_at=time.strftime("%H:%M:%S", time.localtime(look.at)),
        is_current=look.is_current,
        pipeline=picture.pipeline,
        wait=shown_wait,
        drafts=[
            (draft, workspace.review.title(draft) or draft.name, shown_waiting(draft.received_at, now))
            for draft in drafts[:MAX_EXAMPLES]
        ],
        kinds=draft_kinds(drafts),
        draft_count=len(drafts),
        unverified=[item for item in picture.stale if not item.is_checked],
        undecided=[item for item in picture.stale if item.is_checked],
        has_cards=not health.get("cards").is_absent,
        most=MAX_EXAMPLES,
        page_of=page_of,
        done=done,
        titles=titles,
        since=yesterday.date().isoformat(),
        plots=_plots(picture, workspace.config.limits.index_bytes, now.date()),
    )


def health_row(result: CheckResult) -> HealthRow:
    sign, tone = SIGNS.get(result.severity, ("?", "warn"))
    return HealthRow(result, TITLES.get(result.name, ""), sign, tone, PAGES.get(result.name, ""))


def draft_kinds(drafts: Sequence[Draft]) -> list[tuple[str, int]]:
    """The number of drafts of each kind, the most frequent first."""
    counts = Counter(_kind(draft) for draft in drafts).most_common()
    return [(kind if count == 1 else f"{kind}s", count) for kind, count in counts]


def _kind(draft: Draft) -> str:
    if draft.is_upkeep:
        known = {"reconcile": "disagreement", "tidy duplicates": "merge", "tidy promote": "promotion"}
        return known.get(draft.made_by, "proposal")
    return "refuted claim" if draft.is_proposal else "handoff"


def shown_waiting(at: str, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(at)
    except ValueError:
        return ""
    days = max(0, (now - then).days) if then.tzinfo else 0
    return f"for {days} days" if days > 1 else "since yesterday" if days else "new"


def done_since(workspace: Workspace, since: str, *, sees_drafts: bool = True) -> list[ActivityCount]:
    """The entries since a time, by kind."""
    found = []
    for verb, count in workspace.history.count_by_verb(since):
        newest = workspace.history.find(LedgerQuery(verb=verb, since=since), most=MAX_EXAMPLES)
        shown = tuple(
            as_shown(seen_entry(entry, sees_drafts=sees_drafts), record, most=2)
            for entry, record in newest
            if is_seen(entry, sees_drafts=sees_drafts)
        )
        if shown:
            found.append(ActivityCount(verb, count, shown))
    return found


# --- Plots -----------------------------------------------------------------------------------------------------------


def _plots(picture: Picture, budget: int, today: date) -> list[Markup]:
    """The charts."""
    health = picture.health
    checked = [day for day in picture.days if day.verdicts]
    sized = [day for day in picture.days if day.index_bytes is not None]
    return [
        *([] if health.get("cards").is_absent else card_plots(health.ages, health.growth)),
        charts.bars(
            "Claims by verdict",
            [day.day for day in checked],
            [
                charts.Series(word, [day.verdicts.get(word, 0) for day in checked], _TINTS.get(word, "one"))
                for word in VERDICTS
            ],
            empty="No claim of a file that names its repository was checked yet: `truekeep verify`.",
        ),
        *(
            []
            if picture.pipeline is not None and not picture.pipeline.has_inboxes
            else [handoff_plot(picture.sent, today)]
        ),
        charts.lines(
            "Size of MEMORY.md",
            [day.day for day in sized],
            [charts.Series("size", [round((day.index_bytes or 0) / 1000, 1) for day in sized], "one")],
            limit=budget / 1000,
            unit=" kB",
            empty="Its size is noted each day from now on.",
        ),
        charts.shares(
            f"Sessions with real work that left something, in {CHART_DAYS} days",
            _rates(picture.closeouts),
            empty="No session was noted yet: `truekeep connect` installs the hooks that note them.",
        ),
    ]


def card_plots(ages: Sequence[tuple[str, int]], growth: Sequence[int]) -> list[Markup]:
    weeks = [f"{len(growth) - 1 - at} weeks ago" for at in range(len(growth))]
    weeks[-2:] = ["last week", "this week"]
    return [
        charts.bars(
            "Cards by when they were last touched",
            [_SHORT.get(name, name) for name, _ in ages],
            [charts.Series("cards", [count for _, count in ages], "one")],
            empty="There are no cards yet.",
        ),
        charts.bars(
            "New cards a week",
            weeks,
            [charts.Series("cards", growth, "two")],
            empty=f"No card was made in the last {len(weeks)} weeks.",
        ),
    ]


def handoff_plot(sent: Sequence[tuple[str, str, int]], today: date) -> Markup:
    return charts.bars(
        "Handoffs a day, by writer",
        *_sent(sent, today),
        empty=f"No handoff came in the last {HANDOFF_WEEKS} weeks: `truekeep connect` tells agents to leave them.",
    )


def _sent(sent: Sequence[tuple[str, str, int]], today: date) -> tuple[list[str], list[charts.Series]]:
    """Handoffs of the last days, a series for each of the usual writers and one for all others."""
    days = [(today - timedelta(days=back)).isoformat() for back in reversed(range(7 * HANDOFF_WEEKS))]
    by_writer = Counter[str]()
    for _, writer, count in sent:
        by_writer[writer] += count
    usual = [writer for writer, _ in by_writer.most_common(MAX_COLOURED_WRITERS)]
    names = [*usual, *(["others"] if len(by_writer) > MAX_COLOURED_WRITERS else [])]
    counts = {name: Counter[str]() for name in names}
    for day, writer, count in sent:
        counts[writer if writer in usual else "others"][day] += count
    tints = ("one", "two", "three", "four", "faint")
    return days, [
        charts.Series(name or "unknown", [counts[name][day] for day in days], tints[number])
        for number, name in enumerate(names)
    ]


def _rates(found: Sequence[Closeout]) -> list[charts.Share]:
    """For each harness, how many sessions with real work left something."""
    worked, closed = Counter[str](), Counter[str]()
    for item in found:
        worked[item.harness] += item.worked
        closed[item.harness] += item.closed
    return [charts.Share(harness, closed[harness], worked[harness]) for harness in sorted(worked)]
