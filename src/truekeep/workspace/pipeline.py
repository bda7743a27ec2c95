"""The way of handoffs from machines into memory: sources, sync routes, and alarms.

Two failures are easy to overlook: an inbox that grows without bound because the rules are too strict, and a
week without any filed handoff because agents leave none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import as_stamp, local_day
from truekeep.core.errors import BadSetup
from truekeep.core.host_lease import refusal
from truekeep.core.machine import own_state
from truekeep.core.repository import repository_name
from truekeep.handoffs.inbox import Inbox, InboxReader, is_handoff_name
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.receipts import PAIR
from truekeep.handoffs.sync.routes import read_routes
from truekeep.text.unicode import printable
from truekeep.workspace.check import MAX_DRAFT_DAYS, MAX_DRAFTS

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostStatus
    from truekeep.core.machine import Machine
    from truekeep.handoffs.sync.contact_history import RouteHistory
    from truekeep.handoffs.sync.routes import Route
    from truekeep.memory.ledger import WriterActivity
    from truekeep.workspace.workspace import Workspace

DAYS_IN_WEEK = 7
STALE_DAYS = 3  # without a contact, or that a handoff waits
SILENT_DAYS, KNOWN_DAYS = 14, 90  # a machine is silent if it sent something in 90 days and nothing in 14
MAX_FOLDERS_SEARCHED = 4_000  # for inboxes that are not scanned
MAX_SEARCH_DEPTH = 3


class HandoffSourceStatus(NamedTuple):
    """One writer in one repository on one machine."""

    machine: str
    writer: str
    repository: str
    last_at: str = ""  # of its last handoff that was dealt with; empty: never
    filed: int = 0  # in the last week
    held: int = 0  # in the last week: put before a person, or turned away
    waiting: int = 0
    oldest: float = 0.0  # seconds that the oldest of those has waited
    last_sync: str = ""  # the last contact with the machine, where a route has it for itself


class Reach(NamedTuple):
    """A sync route and its last contacts."""

    name: str
    via: str
    machines: tuple[str, ...]
    last_ok_at: str
    failures: int
    problem: str
    waiting: int
    notes: tuple[str, ...] = ()  # of the last contact


class Alarm(NamedTuple):
    """A problem that a person should look at."""

    code: str  # split-host, no-host, not-canonical, growing, silent, unreached, waiting, unscanned, not-running,
    # unpaired, forged-receipts, bad-routes
    message: str
    hint: str


class Pipeline(NamedTuple):
    """Sources, routes and alarms."""

    sources: tuple[HandoffSourceStatus, ...]
    routes: tuple[Reach, ...]
    last_ingest: str
    drafts: int
    oldest_draft: str
    unscanned: tuple[str, ...]
    alarms: tuple[Alarm, ...]
    began_at: str = ""  # the workspace
    has_inboxes: bool = True  # or had some: else nobody can leave handoffs yet


def see_pipeline(workspace: Workspace, *, now: datetime, roots: Iterable[str] = ()) -> Pipeline:
    """The state of the pipeline now. `roots`: folders of agent sessions."""
    inboxes = workspace.handoffs.inboxes()
    since = now - timedelta(days=DAYS_IN_WEEK)
    received = workspace.handoffs.received(as_stamp(since))
    routes = tuple(see_route(route, history) for route, history in _routes(workspace))
    sources = _synced(_sources(workspace, inboxes, received, now), routes)
    drafts = workspace.review.drafts()
    oldest = min((draft.received_at for draft in drafts), default="")
    last_ingest = workspace.state.last_line("ingest.log").partition(" ")[0]
    unscanned = tuple(find_unscanned(inboxes, _near(workspace, roots), workspace.config.writers))
    host_status = workspace.host.status()
    began = min((lease.taken_at for lease in host_status.leases if lease.taken_at), default="")
    has_inboxes = bool(sources or routes) or any(inbox.path.is_dir() for inbox in inboxes)
    seen = Pipeline(sources, routes, last_ingest, len(drafts), oldest, unscanned, (), began, has_inboxes)
    if workspace.source is not None:  # what a copy shows is no surprise: `copies` says how old it is
        return seen._replace(alarms=(*receipt_alarms(), *_stuck(seen, "`truekeep sync run` sends what waits here")))
    amiss = _judge_host(host_status, workspace.machine)
    if amiss is not None and amiss.code == "not-canonical":
        stuck = _stuck(seen, "`truekeep sync run` sends what waits here")
        return seen._replace(alarms=(amiss, *receipt_alarms(), *stuck))
    return seen._replace(alarms=(*([amiss] if amiss else ()), *_alarms(seen, now)))


def _routes(workspace: Workspace) -> list[tuple[Route, RouteHistory]]:
    """The routes of the workspace; of a machine that has a copy, its own."""
    if workspace.source is None:
        return list(workspace.handoffs.sync_routes())
    state = Path(own_state())
    with suppress(BadSetup):  # `receipt_alarms` tells of it
        return [(route, read_history(state, name)) for name, route in read_routes(state).items()]
    return []


def _sources(
    workspace: Workspace, inboxes: Sequence[Inbox], received: Iterable[WriterActivity], now: datetime
) -> tuple[HandoffSourceStatus, ...]:
    found: dict[tuple[str, str, str], HandoffSourceStatus] = {}
    for row in received:
        key = (row.machine, row.writer, row.repository)
        found[key] = HandoffSourceStatus(*key, row.last_at, row.filed, row.held)
    names: dict[Path, str] = {}
    looked = InboxReader(inboxes, limit=0, settle=0)
    try:
        for name, inbox in looked.waiting():
            key = (inbox.machine or workspace.machine.name, inbox.writer, _repository(inbox, names))
            source = found.get(key) or HandoffSourceStatus(*key)
            try:
                info = os.lstat(inbox.path / name)
                age = max(0.0, now.timestamp() - max(info.st_mtime, info.st_ctime))  # a copy may keep an old mtime
            except OSError:
                continue
            found[key] = source._replace(waiting=source.waiting + 1, oldest=max(source.oldest, age))
    finally:
        looked.close()
    return tuple(found[key] for key in sorted(found))


def _synced(sources: Iterable[HandoffSourceStatus], routes: Iterable[Reach]) -> tuple[HandoffSourceStatus, ...]:
    """The sources with the last contact of their machines, where a route has one machine only (rsync)."""
    last: dict[str, str] = {}
    for route in routes:
        if route.via == "rsync":
            last |= {name: max(route.last_ok_at, last.get(name, "")) for name in route.machines}
    return tuple(source._replace(last_sync=last.get(source.machine, "")) for source in sources)


def _repository(inbox: Inbox, names: dict[Path, str]) -> str:
    if inbox.repository:
        return inbox.repository
    if inbox.root not in names:
        names[inbox.root] = printable(repository_name(inbox.root))
    return names[inbox.root]


def see_route(route: Route, history: RouteHistory) -> Reach:
    last = history.last
    problem = last.problem if last is not None and not last.ok else ""
    machines = last.machines if last is not None else ()
    waiting = last.waiting if last is not None else 0
    notes = last.notes if last is not None else ()
    return Reach(route.name, route.via, machines, history.last_ok_at, history.failures, problem, waiting, notes)


# --- Inboxes that are not scanned -----------------------------------------------------------------------------------


def _near(workspace: Workspace, roots: Iterable[str]) -> Iterator[Path]:
    """Folders that may contain inboxes: of sessions, beside the configured repositories, and the home folder."""
    yield from (Path(root) for root in roots)
    for pattern in workspace.config.repositories:
        yield Path(os.path.expanduser(pattern)).parent
    yield Path(os.path.expanduser("~"))


def find_unscanned(inboxes: Sequence[Inbox], near: Iterable[Path], writers: Mapping[str, str]) -> Iterator[str]:
    """Inboxes with handoffs that ingest does not scan. Searches a few thousand folders at most."""
    known = {os.path.realpath(inbox.path) for inbox in inboxes}
    seen: set[str] = set()
    left = MAX_FOLDERS_SEARCHED
    waiting = [(path, 0) for path in near]
    while waiting and left:
        folder, depth = waiting.pop(0)
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        left -= 1
        for inbox in writers.values():
            path = os.path.join(real, inbox)
            if os.path.realpath(path) not in known and _has_letters(path):
                known.add(os.path.realpath(path))
                yield printable(path)
        if depth < MAX_SEARCH_DEPTH:
            waiting += ((path, depth + 1) for path in _folders(real))


def _has_letters(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return any(is_handoff_name(entry.name) for entry in entries)
    except OSError:
        return False


def _folders(path: str) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name != "node_modules"
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


# --- A producer's receipts ------------------------------------------------------------------------------------------


def receipt_alarms() -> Iterator[Alarm]:
    """Why handoffs of this producer stay in their inboxes."""
    state = Path(own_state())
    try:
        routes = read_routes(state)
    except BadSetup as error:
        yield Alarm("bad-routes", error.message, error.hint)
        return
    for name, route in routes.items():
        last = read_history(state, name).last
        if route.via == "rsync":
            continue
        if not route.text("host_key"):
            told = f"the route {name} is not paired with its host: handoffs are sent, but stay in their inboxes"
            yield Alarm("unpaired", told, PAIR)
        elif last is not None and last.refused:
            many = "1 receipt" if last.refused == 1 else f"{last.refused} receipts"
            told = f"{many} on the route {name} not signed by its host, and not obeyed"
            yield Alarm("forged-receipts", told, f"`truekeep sync run {name}` says more")


# --- What a person should look at -----------------------------------------------------------------------------------


def _judge_host(host_status: HostStatus, machine: Machine) -> Alarm | None:
    """An alarm if no machine may write, or another one than this."""
    found = host_status.canonical
    if found is not None and found.id == machine.id:
        return None
    why = refusal(host_status, machine, "file")
    if found is not None:
        return Alarm("not-canonical", f"{why.message}; what is shown here is a copy", f"look on {found.name}")
    return Alarm("split-host" if host_status.is_split else "no-host", f"no machine files: {why.message}", why.hint)


def _alarms(seen: Pipeline, now: datetime) -> Iterator[Alarm]:
    if seen.has_inboxes and not _is_since(seen.last_ingest, now, 1):
        told = f"ingest last ran {seen.last_ingest}" if seen.last_ingest else "ingest has never run"
        yield Alarm("not-running", told, "`truekeep schedule install` runs it by a timer")
    filed = sum(source.filed for source in seen.sources)
    held = sum(source.held for source in seen.sources)
    came = filed + held
    is_old = bool(seen.oldest_draft) and not _is_since(seen.oldest_draft, now, MAX_DRAFT_DAYS)
    if (seen.drafts >= MAX_DRAFTS and is_old) or (seen.drafts and came >= MAX_DRAFTS and held > 0.5 * came):
        yield Alarm(
            "growing",
            f"{seen.drafts} drafts wait for review, the oldest since {local_day(seen.oldest_draft)}: the inbox grows "
            "without bound, the rules are too strict for what is written",
            "`truekeep review list` shows the reasons; policies are in config.toml",
        )
    if seen.has_inboxes and not filed and not _is_since(seen.began_at, now, DAYS_IN_WEEK):
        yield _silence(held)
    yield from _mute(seen, now)
    for route in seen.routes:
        if route.failures and not _is_since(route.last_ok_at, now, STALE_DAYS):
            since = f"since {local_day(route.last_ok_at)}" if route.last_ok_at else "ever"
            yield Alarm(
                "unreached",
                f"{route.name} was not reached {since}: {route.problem}",
                f"`truekeep sync run {route.name}`",
            )
    yield from _stuck(seen, "`truekeep ingest`")
    for path in seen.unscanned:
        yield Alarm("unscanned", f"{path} is not scanned", "add its repository to `repositories` in config.toml")


def _silence(held: int) -> Alarm:
    if held:
        what = "handoff is" if held == 1 else "handoffs are"
        return Alarm(
            "silent",
            f"nothing was filed in a week; {held} {what} before a person, or turned away",
            "`truekeep review list` shows the reasons; policies are in config.toml",
        )
    return Alarm(
        "silent",
        "nothing was filed in a week: the closeout rule does not fire",
        "`truekeep status closeout` names the sessions that left nothing; `connect --check`, whether the rule is in",
    )


def _mute(seen: Pipeline, now: datetime) -> Iterator[Alarm]:
    """Alarms for machines that stopped sending while others go on."""
    last: dict[str, str] = {}
    waiting: set[str] = set()
    for source in seen.sources:
        last[source.machine] = max(source.last_at, last.get(source.machine, ""))
        waiting |= {source.machine} if source.waiting else set()
    alive = {name for name, at in last.items() if name in waiting or _is_since(at, now, SILENT_DAYS)}
    for name, at in last.items() if alive else ():
        if name not in alive and _is_since(at, now, KNOWN_DAYS):
            yield Alarm(
                "silent",
                f"nothing came from {name} since {local_day(at)}, while others went on",
                f"on {name}: `truekeep sync run` and `truekeep schedule status`; is it still in use?",
            )


def _stuck(seen: Pipeline, hint: str) -> Iterator[Alarm]:
    for source in seen.sources:
        if source.oldest > STALE_DAYS * 86_400:
            told = f"{source.waiting} of {source.writer} in {source.repository or '?'} on {source.machine}"
            yield Alarm("waiting", f"{told} wait, the oldest for {source.oldest / 86_400:.0f} days", hint)


def _is_since(at: str, now: datetime, days: float) -> bool:
    """True if a time is within so many days. A time in the future is not, beyond a day of clock error."""
    try:
        moment = datetime.strptime(at[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return timedelta(days=-1) <= now - moment <= timedelta(days=days)


def shown_wait(seconds: float) -> str:
    """A waiting time, for a column."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"
