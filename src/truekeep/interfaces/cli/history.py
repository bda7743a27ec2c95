"""`truekeep history`, `truekeep blame`, `truekeep undo`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import day_bounds, local_minute, many, parse_since
from truekeep.core.errors import BadInput, NotCanonical, TruekeepError
from truekeep.interfaces.cli.complete_values import complete_memory_files
from truekeep.interfaces.cli.options import dry_run_option, in_workspace, since_option, wants_json, yes_option
from truekeep.interfaces.cli.output import Shown, coloured, emit, show
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import ask_yes_no, can_ask, print_error, render_difference, style
from truekeep.memory.history import HistoryEntry
from truekeep.memory.ledger import LedgerQuery

if TYPE_CHECKING:
    from truekeep.memory.history import BlamedLine
    from truekeep.workspace.history import UndoPlan, UndoResult
    from truekeep.workspace.workspace import Workspace


@click.command()
@click.argument("file", required=False, shell_complete=complete_memory_files)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 2**62), default=20, show_default=True, help="Maximum number of entries."
)
@click.option("--all", "everything", is_flag=True, help="Show all entries.")
@click.option("--who", default="", metavar="NAME", help="Only entries by this writer or actor.")
@click.option("--machine", default="", metavar="NAME", help="Only entries whose handoff came from this machine.")
@click.option("--verb", default="", metavar="WORD", help="Only entries with this action: promoted, approved, undone, …")
@since_option("entries")
@click.option("--until", default="", metavar="DAY", help="Only entries up to this day.")
@in_workspace
def history(
    opened: Workspace,
    file: str | None,
    limit: int,
    everything: bool,
    who: str,
    machine: str,
    verb: str,
    since: str,
    until: str,
) -> None:
    """Show what was written, when, and from which handoff.

    Newest first; with FILE, only changes to that file.

    Example: truekeep history memory/cards/staging-proxy.md --since 30d
    """
    _check_ledger(opened, "history")
    start, end = day_bounds(parse_since(since, opened.today()), parse_since(until, opened.today()))
    sought = LedgerQuery(who=who, machine=machine, verb=verb, since=start, until=end)
    with ProgressDisplay("reading the history"):
        entries = opened.history.recent(file, limit=None if everything else limit, sought=sought)
    nothing = "no entries for this file" if file else f"nothing {'like that ' * any(sought)}has been written yet"
    emit("history", {"entries": entries}, [_table(entries)] if entries else [nothing], is_long=True)


def _check_ledger(opened: Workspace, command: str) -> None:
    """Raise NotCanonical for a copy: the ledger stays on the host."""
    if opened.source is not None:
        from truekeep.workspace.team_review import team_page  # here: a copy alone needs it

        host, page = opened.source.host, team_page(opened)
        raise NotCanonical(
            f"memory here is a copy, and who wrote it is known on {host}",
            hint=f"{page}/{'history' if command == 'history' else 'memory'} shows it in a browser"
            if page
            else f"`truekeep {command}` on {host}",
        )


def _table(entries: Sequence[HistoryEntry]) -> Table:
    rows = []
    for entry, record in entries:
        origin = (
            f"{record.origin.writer}@{record.origin.machine}" if record and entry.actor == "ingest" else entry.actor
        )
        undone = f", undone by {entry.undone_by}" if entry.undone_by else ""
        more = f", … and {len(entry.paths) - 2} more" if len(entry.paths) > 2 else ""
        files = ", ".join(entry.paths[:2]) + more
        rows.append([str(entry.id), local_minute(entry.at), coloured(entry.verb) + undone, origin, files, entry.note])
    return Table(["entry", "when", "what", "who", "files", "note"], rows, whole=(0, 1, 2))


@click.command()
@click.argument("place", metavar="FILE[:LINE]", shell_complete=complete_memory_files)
@in_workspace
def blame(opened: Workspace, place: str) -> None:
    """Show who wrote a file or a line.

    Shows the handoff, writer, repository and time.

    Example: truekeep blame memory/cards/staging-proxy.md:9
    """
    _check_ledger(opened, "blame")
    file, number, lines = opened.history.blame_place(place)
    shown = _render_line(lines[0]) if number is not None else _render_lines(lines)
    emit("why", {"file": file, "lines": lines}, shown, is_long=True)


def _render_lines(lines: Sequence[BlamedLine]) -> Iterator[str]:
    """One row for each run of lines with one origin."""
    for _, same in groupby(lines, key=lambda line: line.origin):
        run = list(same)
        span = f"{run[0].number}-{run[-1].number}" if len(run) > 1 else str(run[0].number)
        yield f"{span:>9}  {_who(run[0])}"


def _who(line: BlamedLine) -> str:
    entry, record = line.entry, line.record
    if line.is_first:
        return "made by truekeep init"
    if line.arrival is not None:
        return f"came with {line.arrival.archive}, imported {local_minute(line.arrival.at)}"
    if entry is None:
        return "there before truekeep first changed the file" if line.is_older else style("by hand", fg="cyan")
    told = f": {entry.note}" if entry.note else ""
    if record is not None:
        where = f" in {record.origin.repository}" if record.origin.repository else ""
        told = f": {record.origin.name} by {record.origin.writer}@{record.origin.machine}{where}"
    verb = "restored" if entry.verb == "undone" else entry.verb
    return f"entry {entry.id}, {local_minute(entry.at)}, {coloured(verb)} by {entry.actor}{told}"


def _render_line(line: BlamedLine) -> Iterator[str]:
    yield f"{line.number}: {line.text}"
    yield _who(line)
    if line.record is not None:
        yield f"  title: {line.record.title}"
        yield f"  inbox: {line.record.origin.inbox}"
        yield f"  sha256: {line.record.digest.hex()}"
    if line.entry is not None:
        yield f"  undo with: truekeep undo {line.entry.id}"


@click.command()
@click.argument("entries", nargs=-1, metavar="[ENTRY]...")
@dry_run_option
@yes_option
@in_workspace
def undo(opened: Workspace, entries: tuple[str, ...], dry_run: bool, yes: bool) -> int:
    """Revert a change, or several.

    Without ENTRY it is the last change that is not undone yet; it is shown, and you are asked. Several are given as
    12 14, or as 12-23 for all from 12 to 23. If the file was edited by a person since, the difference is shown and
    nothing is changed. An undo is an entry itself and can be undone.

    Several entries are undone one by one, newest first. One that cannot be undone is reported and left as it is; the
    others are undone where that is safe without it. In a range, entries that are already undone or changed no file are
    skipped.

    Example: truekeep undo 12
    """
    numbers, ranged = opened.history.parse_entries(entries or (_last_change(opened, yes=yes or dry_run),))
    if len(numbers) == 1 and not ranged:
        if dry_run:
            planned = opened.history.preview_undo(numbers[0])
            emit("undo-plan", planned, _render_plan(planned))
        else:
            done = opened.history.undo_entry(numbers[0])
            emit("undo", done, _render_undone(done))
        return 0
    if dry_run:
        hint = "run it for the newest one; what undoing the others writes depends on it"
        raise BadInput("--dry-run is for one entry at a time", hint=hint)

    def tell(done: UndoResult | TruekeepError) -> None:
        if wants_json():
            return
        if isinstance(done, TruekeepError):
            print_error(done)
        else:
            show(_render_undone(done))

    report, code = opened.history.undo_several(numbers, ranged, tell)
    told = [f"{len(report.undone)} undone"]
    if report.failed:
        told.append(f"{len(report.failed)} not: {', '.join(str(item.entry) for item in report.failed)}")
    if report.passed:
        skipped = ", ".join(map(str, report.passed))
        told.append(f"{len(report.passed)} skipped, undone already or without a file: {skipped}")
    emit("undo-several", report, ["; ".join(told)])
    return code


def _last_change(opened: Workspace, *, yes: bool) -> str:
    """The number of the newest change that can be undone, after a person has seen it and agreed."""
    entry, record = opened.history.last_undoable()
    if not yes:
        if wants_json() or not can_ask():
            what = f"the last change is entry {entry.id}: {entry.verb} {', '.join(entry.paths[:2])}"
            raise BadInput(what, hint=f"`truekeep undo {entry.id}` undoes it")
        show([_table([HistoryEntry(entry, record)])])
        ask_yes_no("undo it?", default=True, abort=True)
    return str(entry.id)


def _render_undone(done: UndoResult) -> Iterator[Shown]:
    yield f"{coloured('undone')} entry {done.undone}; this is entry {done.entry}"
    yield from (f"  {path}" for path in done.files)
    yield from (f"  note: {note}" for note in done.notes)


def _render_plan(planned: UndoPlan) -> Iterator[Shown]:
    yield f"undoing entry {planned.undoes} would change {many(len(planned.files), 'file')}"
    for file in planned.files:
        yield from (f"  {line}" for line in render_difference(file.difference))
    yield from (f"  note: {note}" for note in planned.notes)
