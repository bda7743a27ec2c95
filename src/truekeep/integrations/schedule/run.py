"""One run of the job: sync, ingest, transcripts, index, verify, share, decay, tidy, reconcile, each on its own.

A step that fails is reported, and the next ones still run. Only the canonical host files handoffs; other machines sync
and store transcripts. Outside of the hours for filing, nothing is filed and nothing removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.bugs import SCHEDULED, note_bug
from truekeep.core.errors import Busy, TruekeepError, is_database_error
from truekeep.core.memory_copy import find_copy, has_news, live_path
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.routes import Route, read_routes
from truekeep.handoffs.sync.runner import run_routes
from truekeep.integrations.schedule.intervals import FilingHours
from truekeep.workspace import producer
from truekeep.workspace.check import OK, CheckContext
from truekeep.workspace.machine_role import is_astray
from truekeep.workspace.maintenance import Maintenance
from truekeep.workspace.publishing import publisher
from truekeep.workspace.receiving import receive_sent
from truekeep.workspace.schedule_log import BUSY, CHANGED, FAILED, FILED, NO_UPDATES, PAUSED, Run, append_run
from truekeep.workspace.system_checks import check_heartbeat
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.handoffs.sync.contact_history import Contact
    from truekeep.handoffs.sync.runner import LocalMachine
    from truekeep.maintenance.proposals import ProposalOutcome

LOCK_FOLDER = "logs"
LOCK_WAIT_SECONDS = 30.0  # for another truekeep that is writing
MAX_UNREACHED = timedelta(days=1)  # before it is a failure: laptops are closed at night
_HANDOFFS = ("brought", "receipts", "processed")
_UPKEEP = ("expired", "proposed", "reconciled", "asked")


class Step(NamedTuple):
    """The outcome of one step."""

    name: str
    counts: Mapping[str, int]
    problem: str = ""
    unreached: tuple[str, ...] = ()  # descriptions of routes; not yet a failure
    reminder: str = ""


Work = Callable[[], Step]


def run_job(
    workspace: Workspace | None,
    side: LocalMachine,
    *,
    now: Callable[[], datetime],
    hours: FilingHours | None = None,
    on_step: Callable[[Step], None] = lambda _: None,
    patience: float = LOCK_WAIT_SECONDS,
    watch: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> Run:
    """Do every step and log the run. If another run is going on, logs that and raises Busy.

    Each step runs within the context that `watch` gives for its name.
    """
    started, clock = now(), time.monotonic()
    folder = side.state / LOCK_FOLDER
    file_io.make_private(folder)
    with file_io.locked(str(folder)) as held:
        if not held:
            append_run(side.state, Run(started, 0.0, {}, BUSY))
            raise Busy("another run of the schedule is going on", hint="`truekeep schedule status` shows since when")
        is_paused = side.is_host and hours is not None and not hours.allows(started)
        steps = []
        for name, work in plan_steps(workspace, side, is_paused=is_paused, now=now):
            with watch(name):
                step = _run_step(name, work, patience)
            steps.append(step)
            on_step(step)
        ending, why = _ending(steps, is_paused)
        if ending != FAILED and workspace is not None and not side.is_host:
            why = "; ".join(filter(None, (_elsewhere(workspace), why)))
        if workspace is not None:
            why = "; ".join(filter(None, (why, *dict.fromkeys(workspace.notices))))
        run = Run(started, round(time.monotonic() - clock, 1), _counts(steps), ending, why)
        append_run(side.state, run)
        return run


def plan_steps(
    workspace: Workspace | None, side: LocalMachine, *, is_paused: bool, now: Callable[[], datetime]
) -> list[tuple[str, Work]]:
    """Return the steps of this machine, in order. Transcripts come before the index, which includes them."""
    steps: list[tuple[str, Work]] = [("sync", lambda: _sync(side, now()))]
    if workspace is None or not side.is_host:
        if workspace is not None and workspace.source is None and is_astray(workspace):
            steps.append(("ingest", lambda: _ingest(workspace)))  # refuses, and names the canonical host
        if find_copy() or has_news():
            steps.append(("copy", _copy))
        return [*steps, ("transcripts", lambda: _transcripts(workspace))]
    filed = 0

    def ingest() -> Step:
        nonlocal filed
        step = _ingest(workspace)
        filed = step.counts["promoted"] + step.counts["routed"]
        return step

    if not is_paused:
        steps.append(("ingest", ingest))
    steps += [
        ("transcripts", lambda: _transcripts(workspace)),
        ("index", lambda: _index(workspace)),
        ("verify", lambda: _verify(workspace)),
        ("heartbeat", lambda: _heartbeat(workspace)),
    ]
    if _shared_routes(side):
        steps.append(("share", lambda: _share(workspace, side) if filed else Step("share", {})))
    return steps if is_paused else [*steps, *plan_upkeep(workspace)]


def plan_upkeep(workspace: Workspace) -> list[tuple[str, Work]]:
    """Return the maintenance steps. They share one scan of the files; if nothing changed, they end after it."""
    proposed = -1  # by tidy; -1 until it has run, or if it failed

    @cache  # opened by the first step that needs it
    def nightly() -> Maintenance:
        return workspace.maintenance.nightly()

    @cache
    def is_settled() -> bool:
        return nightly().is_settled()

    def tidy() -> Step:
        nonlocal proposed
        step = _tidy(nightly()) if not is_settled() else Step("tidy", {"proposed": 0})
        proposed = step.counts["proposed"]
        return step

    def reconcile() -> Step:
        return _reconcile(nightly(), proposed) if not is_settled() else Step("reconcile", {"reconciled": 0, "asked": 0})

    return [
        ("decay", lambda: _decay(nightly())),
        ("tidy", tidy),
        ("reconcile", reconcile),
    ]


def _run_step(name: str, work: Work, patience: float) -> Step:
    """Do one step. Waits for another truekeep that is writing; a failure becomes the step's problem."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return work()
        except Busy as error:
            if time.monotonic() >= deadline:
                return Step(name, {}, error.message)
            time.sleep(0.5)
        except TruekeepError as error:
            return Step(name, {}, error.message)
        except OSError as error:
            return Step(name, {}, f"{error.filename or 'a file'}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - a bug in one step must not stop the others
            if is_database_error(error):
                return Step(name, {}, f"a database cannot be used: {error}")
            note_bug(error, f"{SCHEDULED}{name}")
            return Step(name, {}, f"a bug in truekeep ({type(error).__name__})")


def _counts(steps: list[Step]) -> dict[str, str]:
    return {key: str(value) for step in steps for key, value in step.counts.items()}


def _ending(steps: list[Step], is_paused: bool) -> tuple[str, str]:
    failed = "; ".join(f"{step.name}: {step.problem}" for step in steps if step.problem)
    if failed:
        return FAILED, failed
    unreached = "; ".join(route for step in steps for route in step.unreached)
    reminders = [step.reminder for step in steps if step.reminder]
    why = "; ".join([*([f"unreached {unreached}"] if unreached else []), *reminders])
    if is_paused:
        return PAUSED, why
    for ending, keys in ((FILED, _HANDOFFS), (CHANGED, _UPKEEP)):
        if any(step.counts.get(key) for step in steps for key in keys):
            return ending, why
    return NO_UPDATES, why


@contextmanager
def _in_use(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; of a copy the state in use now, because the sync may have removed the one that was opened."""
    path = Path(live_path(workspace.path))
    if path == workspace.path:
        yield workspace
        return
    with Workspace.open(path) as current:
        yield current


def _elsewhere(workspace: Workspace) -> str:
    with _in_use(workspace) as current:
        host = current.state.host()
    return f"nothing is filed here, the canonical host is {host.name}"


# --- The steps ------------------------------------------------------------------------------------------------------


def _sync(side: LocalMachine, now: datetime) -> Step:
    routes = list(read_routes(side.state).values())
    if not routes:
        return Step("sync", {})
    done = run_routes(routes, side)
    counts = {
        "reached": sum(contact.ok for contact in done),
        "unreached": sum(not contact.ok for contact in done),
        "brought": sum(contact.brought for contact in done),
        "receipts": sum(contact.receipts for contact in done),
    }
    out = [(contact, read_history(side.state, contact.route).last_ok_at) for contact in done if not contact.ok]
    silent = [_describe(contact, last) for contact, last in out if not _is_recent(last, now)]
    asleep = tuple(_describe(contact, last) for contact, last in out if _is_recent(last, now))
    return Step("sync", counts, ", ".join(silent), asleep)


def _share(workspace: Workspace, side: LocalMachine) -> Step:
    """Send the memory that was just filed to the machines that have a copy, with its verdicts."""
    again = side._replace(publish=publisher(workspace.path))  # what `sync` published was before it was filed
    done = run_routes(_shared_routes(side), again)
    return Step("share", {"shared": sum(contact.ok for contact in done)})  # `sync` reports who was not reached


def _shared_routes(side: LocalMachine) -> list[Route]:
    try:
        return [route for route in read_routes(side.state).values() if route.shares_memory]
    except TruekeepError:
        return []  # `sync` reports it


def _describe(contact: Contact, last: str) -> str:
    return f"{contact.route} ({contact.problem}; last reached {last or 'never'})"


def _is_recent(last: str, now: datetime) -> bool:
    try:
        age = now - datetime.fromisoformat(last)
    except ValueError:
        return False
    return -MAX_UNREACHED <= age <= MAX_UNREACHED  # negative: the clock was ahead


def _ingest(workspace: Workspace) -> Step:
    report = workspace.handoffs.ingest()
    names = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
    counts = {"processed": report.processed} | {name: report.count(name) for name in names}
    failed = report.count("failed")
    return Step("ingest", counts, f"{failed} could not be written and stay in their inboxes" if failed else "")


def _copy() -> Step:
    """Install the memory that the host sent, and check its claims against the checkouts here."""
    if has_news():
        receive_sent()
    path = find_copy()
    if not path:
        return Step("copy", {})
    with Workspace.open(Path(path)) as copy:
        return _verify(copy)._replace(name="copy") if copy.context.has_checkouts else Step("copy", {})


def _transcripts(workspace: Workspace | None) -> Step:
    if workspace is None:
        done = producer.sync_transcripts(force=False)
    else:
        with _in_use(workspace) as current:
            done = current.sessions.sync_transcripts()
    problem = f"{done.problems[0]} (and {len(done.problems) - 1} more)" if done.problems else ""
    return Step("transcripts", {"turns": done.turns}, problem.removesuffix(" (and 0 more)"))


def _index(workspace: Workspace) -> Step:
    done = workspace.search.index(wait=LOCK_WAIT_SECONDS)
    return Step("index", {"indexed": done.changed + done.removed})


def _verify(workspace: Workspace) -> Step:
    checked = workspace.verification.verify(changed=True, system=False)
    rot = sum(any(verdict.is_rot for verdict in item.verdicts) for item in checked)
    return Step("verify", {"checked": len(checked), "refuted": rot})


def _heartbeat(workspace: Workspace) -> Step:
    """A reminder if sessions worked and the heartbeat is overdue."""
    context = CheckContext(workspace.path, now=workspace.now, workspace=workspace)
    found = check_heartbeat(context)
    return Step("heartbeat", {}, reminder=f"{found.said} ({found.hint})" if found.severity != OK else "")


def _decay(nightly: Maintenance) -> Step:
    done = nightly.decay(by_hand=False)
    counts = {"expired": len(done.drafts), "pruned": len(done.processed), "decayed": len(done.leaving)}
    return Step("decay", counts)


def _tidy(nightly: Maintenance) -> Step:
    offered: list[ProposalOutcome] = []
    failed: Exception | None = None
    for propose in (nightly.duplicates, nightly.promote):
        try:
            offered += propose().offered
        except Exception as error:  # noqa: BLE001 - the other one still runs; raised after both
            failed = failed or error
    if failed is not None:
        raise failed
    return Step("tidy", {"proposed": sum(item.state == "proposed" for item in offered)})


def _reconcile(nightly: Maintenance, tidied: int) -> Step:
    done = nightly.reconcile(fix=True, code=False, by_hand=False)
    asked = sum(item.state == "proposed" for item in done.offered)
    if not (tidied or asked or done.done or done.problems or done.held):
        nightly.note_settled()
    return Step("reconcile", {"reconciled": len(done.done), "asked": asked}, done.held)


def is_at_work(state: Path) -> bool:
    """Whether a run of the schedule is going on."""
    folder = state / LOCK_FOLDER
    if not folder.is_dir():
        return False
    with file_io.locked(str(folder)) as held:
        return not held
