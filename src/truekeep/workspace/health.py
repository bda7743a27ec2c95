"""The health of memory: readings with targets, the pipeline of handoffs, failures, and figures by day.

Nothing is checked again and nothing is changed. A reading that fails is reported as unknown; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import apsw

from truekeep.core.bugs import note_bug
from truekeep.core.config import Config
from truekeep.core.errors import BadSetup, NotCanonical, TruekeepError
from truekeep.core.file_io import ChangedSince
from truekeep.core.model import INDEX
from truekeep.core.state_dir import STATE
from truekeep.workspace import health_history, memory_readings, system_readings
from truekeep.workspace.failures import Failure, failed_runs, noted_bugs, runs_folder
from truekeep.workspace.health_history import Day, read_days
from truekeep.workspace.health_report import UNKNOWN, HealthReport, Reading
from truekeep.workspace.pipeline import Pipeline, see_pipeline

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

DATABASES = {"memory": "survey.sqlite", "claims": "facts.sqlite", "search": "index.sqlite"}

_Seen = TypeVar("_Seen")


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
        """Read everything. `session_roots`: folders of agent sessions, searched for inboxes that are not scanned."""
        workspace, now = self._workspace, now or self._workspace.now()
        today = now.date()
        attempt = _Attempts()
        config = attempt.value(lambda: workspace.config) or Config()
        surveyed = attempt.value(lambda: memory_readings.read_survey(workspace, today, progress), "memory")
        cards = surveyed.cards if surveyed is not None else ()
        topics = surveyed.same_topics if surveyed is not None else ()
        problems = surveyed.problems if surveyed is not None else ()
        attempt.unseen += surveyed.unread if surveyed is not None else ()
        checks = (attempt.value(lambda: memory_readings.last_checks(workspace), "claims") if cards else None) or {}
        growth = memory_readings.growth(cards, today)
        pipeline = attempt.value(lambda: self.pipeline(session_roots, now=now), "pipeline")
        untouched = attempt.reading(
            lambda: memory_readings.untouched(cards, checks, today, config.decay.card_days), "untouched", given=surveyed
        )
        readings: tuple[Reading, ...] = (
            memory_readings.cards(cards, growth, today)
            if surveyed is not None
            else attempt.reading(lambda: memory_readings.card_count(workspace), "cards"),
            untouched,
            attempt.reading(lambda: memory_readings.index(workspace, config, untouched, topics), "index"),
            attempt.reading(lambda: system_readings.handoffs(workspace, config), "handoffs"),
            attempt.reading(lambda: memory_readings.duplicates(topics), "duplicates", given=surveyed),
            attempt.reading(lambda: memory_readings.claims(workspace, cards), "claims"),
            attempt.reading(lambda: system_readings.review(workspace, now), "review"),
            system_readings.pipeline(pipeline) if pipeline is not None else _unknown("pipeline"),
            attempt.reading(lambda: system_readings.search(workspace), "search"),
            attempt.reading(lambda: memory_readings.frontmatter(problems), "frontmatter", given=surveyed),
            attempt.reading(lambda: system_readings.disk(str(workspace.path)), "disk"),
            attempt.reading(
                lambda: system_readings.failures("schedule", failed_runs(runs_folder(workspace), now=now)), "schedule"
            ),
            attempt.reading(lambda: system_readings.failures("bugs", noted_bugs(now=now)), "bugs"),
        )
        same_names = attempt.value(lambda: system_readings.same_names(workspace), "repositories")
        readings += (same_names,) if same_names is not None else ()
        ages = memory_readings.ages(cards, today)
        return HealthReport(readings, growth, ages, tuple(dict.fromkeys(attempt.unseen)), pipeline)

    def pipeline(self, session_roots: Iterable[str] = (), *, now: datetime | None = None) -> Pipeline:
        """The way of handoffs into memory: sources, sync routes, alarms."""
        now = (now or self._workspace.now()).astimezone(UTC)
        return see_pipeline(self._workspace, now=now, roots=session_roots)

    def failures(self) -> list[Failure]:
        """Scheduled steps and noted bugs that failed and did not succeed since."""
        now = self._workspace.now()
        return [*failed_runs(runs_folder(self._workspace), now=now), *noted_bugs(now=now)]

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
        is_new = not (logs / health_history.NAME).exists()
        sizes = _Attempts().value(lambda: workspace.context.ledger.sizes(INDEX), "ledger") if is_new else None
        earlier = [Day(day, index_bytes=size) for day, size in sizes or ()]
        return health_history.note_day(str(logs), self._figures(report), earlier)

    def _figures(self, report: HealthReport | None) -> Day:
        """Today's figures: from a report, else read now."""
        workspace = self._workspace
        if report is None:
            attempt, config, now = _Attempts(), workspace.config, workspace.now()
            readings: tuple[Reading, ...] = (
                attempt.reading(lambda: memory_readings.card_count(workspace), "cards"),
                attempt.reading(lambda: memory_readings.index(workspace, config), "index"),
                attempt.reading(lambda: memory_readings.claims(workspace), "claims"),
                attempt.reading(lambda: system_readings.review(workspace, now), "review"),
            )
        else:
            readings = tuple(report.get(name) for name in ("cards", "index", "claims", "review"))
        cards, index, claims, review = (reading.figures for reading in readings)
        verdicts = {word: count for word, count in claims.get("verdicts", {}).items() if count}
        day = workspace.today().isoformat()
        return Day(day, cards.get("cards"), review.get("drafts"), index.get("bytes"), verdicts)


def _unknown(name: str) -> Reading:
    return Reading(name, UNKNOWN, "could not be read")


class _Attempts:
    """Reads one thing after the other; `unseen` collects what could not be read, and why."""

    def __init__(self) -> None:
        self.unseen: list[str] = []

    def value(self, see: Callable[[], _Seen], name: str = "") -> _Seen | None:
        try:
            return see()
        except TruekeepError as error:
            why = f"{error.message} ({error.hint})" if error.hint else error.message
        except ChangedSince as error:
            why = f"{error.path} is being written"
        except OSError as error:
            why = f"{error.filename or name}: {error.strerror or error}"
        except apsw.Error as error:
            why = f"{STATE}/{DATABASES.get(name, 'ledger.sqlite')} cannot be used: {error} (`truekeep doctor`)"
        except Exception as error:  # noqa: BLE001 - a bug in one reading is not the others'
            note_bug(error, "status")
            why = f"{name or 'configuration'}: a bug in truekeep ({type(error).__name__})"
        self.unseen.append(why)
        return None

    def reading(self, see: Callable[[], Reading], name: str, *, given: object = True) -> Reading:
        """A reading; unknown if it fails, or if `given`, which it is made of, is missing."""
        return (self.value(see, name) if given is not None else None) or _unknown(name)
