"""The health of memory: the checks of `truekeep status` and the home page, and figures by day.

Nothing is verified again and nothing but derived data is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import apsw

from truekeep.core.dates import many
from truekeep.core.errors import BadSetup, NotCanonical, TruekeepError
from truekeep.core.memory_copy import read_source
from truekeep.core.model import INDEX
from truekeep.core.state_dir import STATE
from truekeep.workspace import health_history, memory_checks, system_checks
from truekeep.workspace.check import OK, PROBLEM, WARNING, Check, CheckContext, CheckResult, run_check
from truekeep.workspace.health_history import Day, read_days
from truekeep.workspace.pipeline import Pipeline, see_pipeline

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import CardFacts
    from truekeep.workspace.workspace import Workspace

# What failed and did not succeed since comes first, everywhere.
FAILURES = (
    Check("schedule", "Did the scheduled runs go well?", system_checks.check_runs),
    Check("bugs", "Did truekeep itself fail?", system_checks.check_bugs),
)
MEASURES = (
    Check("cards", "How many cards are there?", memory_checks.check_cards),
    Check("untouched", "Which card is oldest?", memory_checks.check_untouched),
    Check("index", "How large is the index?", memory_checks.check_index),
    Check("handoffs", "How many handoffs wait?", system_checks.check_handoffs),
    Check("duplicates", "Has a topic two cards?", memory_checks.check_duplicates),
)
HEALTH = (
    Check("files", "What is in memory?", memory_checks.check_files),
    *MEASURES,
    Check("claims", "Do claims still hold?", memory_checks.check_claims),
    Check("review", "Are drafts reviewed?", system_checks.check_review),
    Check("heartbeat", "Is the heartbeat kept up?", system_checks.check_heartbeat),
    Check("pipeline", "Do handoffs still flow?", system_checks.check_pipeline),
    Check("copies", "Do other machines have this memory?", system_checks.check_copies),
    Check("search", "Is search up to date?", system_checks.check_search),
    Check("lines", "Does any line need a fix?", memory_checks.check_lines),
    Check("disk", "Is there room?", system_checks.check_disk),
    *FAILURES,
    Check("repositories", "Has each repository a name of its own?", system_checks.check_same_names),
)
OF_MEMORY = ("claims", "review", "heartbeat", "lines", *(check.name for check in MEASURES if check.name != "handoffs"))
QUESTIONS = tuple(check.name for check in MEASURES)


class HealthReport(NamedTuple):
    """The results of all checks of memory."""

    results: tuple[CheckResult, ...]
    growth: tuple[int, ...]  # cards made in each of the last weeks, this one last
    ages: tuple[tuple[str, int], ...]  # cards last touched within so long, and not within the one before
    unseen: tuple[str, ...]  # what could not be read, and why
    pipeline: Pipeline | None = None

    @property
    def severity(self) -> str:
        """The worst severity; a warning if something could not be read."""
        found = {result.severity for result in self.results}
        return PROBLEM if PROBLEM in found else WARNING if found - {OK} or self.unseen else OK

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """What failed and did not succeed since."""
        names = [check.name for check in FAILURES]
        return tuple(result for result in self.results if result.name in names and result.severity != OK)

    @property
    def summary(self) -> str:
        """One line: what needs a person."""
        problems = sum(result.severity == PROBLEM for result in self.results)
        warnings = sum(result.severity == WARNING for result in self.results) + len(self.unseen)
        needs = [many(problems, "problem")] * bool(problems) + [many(warnings, "warning")] * bool(warnings)
        drafts = self.get("review").figures.get("drafts")
        review = f"; {many(drafts, 'draft')} to review" if drafts else ""
        return (", ".join(needs) or "all good") + review

    def get(self, name: str) -> CheckResult:
        return next(result for result in self.results if result.name == name)


class Health:
    """The health of one workspace's memory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def check(
        self,
        *,
        now: datetime | None = None,
        session_roots: Iterable[str] = (),
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> HealthReport:
        """Run every check. `session_roots`: folders of agent sessions, searched for inboxes that are not scanned."""
        context = self._context(now, session_roots, progress)
        return check_health(context)

    def _context(
        self,
        now: datetime | None = None,
        session_roots: Iterable[str] = (),
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> CheckContext:
        at = now or self._workspace.now()
        return CheckContext(
            self._workspace.path,
            now=lambda: at,
            workspace=self._workspace,
            session_roots=session_roots,
            progress=progress,
        )

    def pipeline(self, session_roots: Iterable[str] = (), *, now: datetime | None = None) -> Pipeline:
        """The way of handoffs into memory: sources, sync routes, alarms."""
        now = (now or self._workspace.now()).astimezone(UTC)
        return see_pipeline(self._workspace, now=now, roots=session_roots)

    def days(self) -> list[Day]:
        """The noted figures of memory at the end of each day."""
        return read_days(str(self._workspace.path / STATE / "logs"))

    def note_day(self, report: HealthReport | None = None) -> bool:
        """Note today's figures, on the canonical host. True if they are new."""
        workspace = self._workspace
        try:
            if not workspace.is_canonical:
                return False
        except (BadSetup, NotCanonical, OSError):
            return False
        logs = workspace.path / STATE / "logs"
        earlier: list[Day] = []
        if not (logs / health_history.NAME).exists():
            with suppress(TruekeepError, OSError, apsw.Error):
                earlier = [Day(day, index_bytes=size) for day, size in workspace.context.ledger.sizes(INDEX)]
        return health_history.note_day(str(logs), self._figures(report), earlier)

    def _figures(self, report: HealthReport | None) -> Day:
        """Today's figures: from a report, else read now."""
        names = ("index", "claims", "review")
        if report is None:
            context = self._context()
            found = {check.name: run_check(check, context)[0] for check in HEALTH if check.name in names}
            cards: int | None = self._workspace.cards.count()
        else:
            found = {name: report.get(name) for name in names}
            cards = report.get("cards").figures.get("cards")
        index, claims, review = (found[name].figures for name in names)
        verdicts = {word: count for word, count in claims.get("verdicts", {}).items() if count}
        day = self._workspace.today().isoformat()
        return Day(day, cards, review.get("drafts"), index.get("bytes"), verdicts)


def check_health(context: CheckContext, *, fix: bool = False) -> HealthReport:
    """Run every check of memory in a context."""
    results = [result for check in HEALTH for result in run_check(check, context, fix=fix)]
    if (source := read_source(context.root)) is not None:
        from truekeep.workspace.team_review import team_page  # here: a copy alone needs it

        is_of_team = bool(team_page(context.workspace))
        results = [_on_the_host(result, source.host, is_of_team=is_of_team) for result in results]
    today = context.now().date()
    cards: tuple[CardFacts, ...] = ()
    pipeline = None
    with suppress(Exception):  # a check has reported it
        cards = context.once(memory_checks.survey_of).cards
    with suppress(Exception):
        pipeline = context.once(system_checks.pipeline_of)
    return HealthReport(
        tuple(result for result in results if result.said),
        memory_checks.growth(cards, today),
        memory_checks.ages(cards, today),
        tuple(dict.fromkeys(context.unseen)),
        pipeline,
    )


def _on_the_host(result: CheckResult, host: str, *, is_of_team: bool) -> CheckResult:
    """A result of a copy: what is in memory is put right where it is written."""
    if result.name not in OF_MEMORY:
        return result
    said, hint = result.said, f"on {host}: {result.hint}" if result.hint else ""
    if result.name == "review":  # drafts are not in copies
        said = "`truekeep review list` asks the server" if is_of_team else f"drafts are on {host}, not in this copy"
        return replace(result, said=said, hint="", target="", figures={})
    if said == memory_checks.NOT_CHECKED_YET and not is_of_team:  # a team server checks no claims
        said = f"{said} on {host}, or here"
    return replace(result, said=said, hint=hint)
