"""`truekeep history`, `truekeep blame`, `truekeep undo`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import day_bounds, local_minute, many, parse_since
from truekeep.core.errors import BadInput, EditedSince, NotFound, TruekeepError
from truekeep.interfaces.cli.app import show_error
from truekeep.interfaces.cli.complete_values import complete_memory_files
from truekeep.interfaces.cli.output import (
    coloured,
    json_option,
    open_workspace,
    print_json,
    print_table,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.memory.ledger import LedgerQuery
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference

if TYPE_CHECKING:
    from truekeep.memory.history import BlamedLine, Undoing
    from truekeep.memory.ledger import HandoffRow, LedgerEntry
    from truekeep.workspace.workspace import Workspace

_ENTRIES = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_PLACE = re.compile(r"(.+?):(\d+)\Z", re.DOTALL)


def _entry_json(entry: LedgerEntry, record: HandoffRow | None) -> dict[str, Any]:
    return {
        "entry": entry.id,
        "at": entry.at,
        "verb": entry.verb,
        "actor": entry.actor,
        "files": list(entry.paths),
        "note": entry.note,
        "undoes": entry.undoes,
        "undone_by": entry.undone_by,
        "handoff": None
        if record is None
        else {
            "name": record.origin.name,
            "sha256": record.digest.hex(),
            "title": record.title,
            "writer": record.origin.writer,
            "machine": record.origin.machine,
            "repository": record.origin.repository,
            "inbox": record.origin.inbox,
            "received_at": record.received_at,
            "outcome": record.outcome,
            "target": record.target,
            "findings": [
                {"code": finding.code, "message": finding.message, "line": finding.line} for finding in record.reasons
            ],
        },
    }


@click.command()
@click.argument("file", required=False, shell_complete=complete_memory_files)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 2**62), default=20, show_default=True, help="Maximum number of entries."
)
@click.option("--all", "everything", is_flag=True, help="Show all entries.")
@click.option("--who", default="", metavar="NAME", help="Only entries by this writer or actor.")
@click.option("--machine", default="", metavar="NAME", help="Only entries whose handoff came from this machine.")
@click.option("--verb", default="", metavar="WORD", help="Only entries with this action: promoted, approved, undone, …")
@click.option(
    "--since",
    default="",
    metavar="DAY",
    help="Only entries from this day on: 2026-03-01, or 30d, 8w, 6m, 1y ago.",
)
@click.option("--until", default="", metavar="DAY", help="Only entries up to this day.")
@json_option
@workspace_option
@click.pass_context
def history(
    ctx: click.Context,
    file: str | None,
    limit: int,
    everything: bool,
    who: str,
    machine: str,
    verb: str,
    since: str,
    until: str,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Show what was written, when, and from which handoff.

    Newest first; with FILE, only changes to that file.

    Example: truekeep history memory/cards/staging-proxy.md --since 30d
    """
    opened = open_workspace(ctx, workspace)
    first, last = parse_since(since, opened.today()), parse_since(until, opened.today())
    start, end = day_bounds(first, last)
    sought = LedgerQuery(who=who, machine=machine, verb=verb, since=start, until=end)
    entries = list(opened.history.entries(file, limit=None if everything else limit, sought=sought))
    if as_json:
        print_json("history", {"entries": [_entry_json(entry, record) for entry, record in entries]})
        return
    rows = []
    for entry, record in entries:
        origin = (
            f"{record.origin.writer}@{record.origin.machine}" if record and entry.actor == "ingest" else entry.actor
        )
        undone = f" (undone by {entry.undone_by})" if entry.undone_by else ""
        more = f", … and {len(entry.paths) - 2} more" if len(entry.paths) > 2 else ""
        files = ", ".join(entry.paths[:2]) + more
        rows.append([str(entry.id), local_minute(entry.at), entry.verb, origin, files, entry.note + undone])
    if rows:
        print_table(["entry", "when", "what", "who", "files", "note"], rows, colour=2, whole=(0, 1))
    else:
        is_asked = any(sought)
        echo("no entries for this file" if file else f"nothing {'like that ' if is_asked else ''}has been written yet")


@click.command()
@click.argument("place", metavar="FILE[:LINE]", shell_complete=complete_memory_files)
@json_option
@workspace_option
@click.pass_context
def blame(ctx: click.Context, place: str, as_json: bool, workspace: str | None) -> None:
    """Show who wrote a file or a line.

    Shows the handoff, writer, repository and time.

    Example: truekeep blame memory/cards/staging-proxy.md:9
    """
    opened = open_workspace(ctx, workspace)
    match = _PLACE.match(place)
    file, number = (match[1], int(match[2])) if match else (place, None)
    lines = opened.history.blame(file)
    if number is not None:
        if not 1 <= number <= len(lines):
            raise BadInput(f"{file} has {many(len(lines), 'line')}", hint="give an existing line number")
        lines = lines[number - 1 : number]
    if as_json:
        print_json("why", {"file": file, "lines": [_line_json(line) for line in lines]})
        return
    if number is not None:
        _show_one(lines[0])
        return
    for first, last in _runs(lines):
        span = f"{first.number}-{last.number}" if last.number > first.number else str(first.number)
        echo(f"{span:>9}  {_who(first)}")


def _line_json(line: BlamedLine) -> dict[str, Any]:
    by = "truekeep" if line.entry else "there before truekeep" if line.is_older else "by hand"
    by = "truekeep init" if line.is_first else "an archive" if line.arrival else by
    entry = _entry_json(line.entry, line.record) if line.entry else None
    archive = line.arrival._asdict() if line.arrival else None
    return {"line": line.number, "text": printable(line.text), "by": by, "entry": entry, "archive": archive}


def _runs(lines: list[BlamedLine]) -> list[tuple[BlamedLine, BlamedLine]]:
    runs: list[tuple[BlamedLine, BlamedLine]] = []
    for line in lines:
        same = runs and _key(runs[-1][1]) == _key(line)
        if same:
            runs[-1] = (runs[-1][0], line)
        else:
            runs.append((line, line))
    return runs


def _key(line: BlamedLine) -> tuple[object, ...]:
    return (line.entry.id if line.entry else 0, line.is_older, line.is_first, line.arrival)


def _who(line: BlamedLine) -> str:
    entry, record = line.entry, line.record
    if line.is_first:
        return "made by truekeep init"
    if line.arrival is not None:
        return f"came with {line.arrival.archive}, imported {local_minute(line.arrival.at)}"
    if entry is None:
        return "there before truekeep first changed the file" if line.is_older else style("by hand", fg="cyan")
    origin = ""
    if record is not None:
        where = f" in {record.origin.repository}" if record.origin.repository else ""
        origin = f" {record.origin.name} by {record.origin.writer}@{record.origin.machine}{where}"
    when = local_minute(entry.at)
    verb = "restored" if entry.verb == "undone" else entry.verb
    told = f":{origin}" if origin else f": {entry.note}" if entry.note else ""
    return f"entry {entry.id}, {when}, {coloured(verb)} by {entry.actor}{told}"


def _show_one(line: BlamedLine) -> None:
    echo(f"{line.number}: {line.text}")
    echo(_who(line))
    if line.record is not None:
        echo(f"  title: {line.record.title}")
        echo(f"  inbox: {line.record.origin.inbox}")
        echo(f"  sha256: {line.record.digest.hex()}")
    if line.entry is not None:
        echo(f"  undo with: truekeep undo {line.entry.id}")


@click.command()
@click.argument("entries", nargs=-1, required=True, metavar="ENTRY...")
@click.option("--dry-run", is_flag=True, help="Show what would be written without writing it; for one entry.")
@json_option
@workspace_option
@click.pass_context
def undo(ctx: click.Context, entries: tuple[str, ...], dry_run: bool, as_json: bool, workspace: str | None) -> int:
    """Revert a change, or several.

    Several are given as 12 14, or as 12-23 for all from 12 to 23. If the file was edited by a person since, the
    difference is shown and nothing is changed. An undo is an entry itself and can be undone.

    Several entries are undone one by one, newest first. One that cannot be undone is reported and left as it is; the
    others are undone where that is safe without it. In a range, entries that are already undone or changed no file are
    skipped.

    Example: truekeep undo 12
    """
    opened = open_workspace(ctx, workspace)
    numbers, ranged = _numbers(entries, opened)
    if len(numbers) == 1 and not ranged:
        _undo_one(opened, numbers[0], dry_run=dry_run, as_json=as_json)
        return 0
    if dry_run:
        hint = "run it for the newest one; what undoing the others writes depends on it"
        raise BadInput("--dry-run is for one entry at a time", hint=hint)
    return _undo_several(opened, numbers, ranged, as_json=as_json)


def _numbers(entries: tuple[str, ...], opened: Workspace) -> tuple[list[int], set[int]]:
    """The entries that are meant, the newest first, and those of them that only a range names."""
    named, ranged = set[int](), set[int]()
    for given in entries:
        match = _ENTRIES.fullmatch(given)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise BadInput(f"{given!r} names no entry", hint="write 12, or 12-23 for all from 12 to 23")
        if match and not match[2]:
            named.add(first)
            continue
        newest = next((entry.id for entry, _ in opened.history.entries(limit=1)), 0)
        if last > newest:  # a slip of the finger would take back all that there is
            raise NotFound(f"there is no entry {last}", hint=f"the newest is {newest}; `truekeep history` lists them")
        ranged.update(range(first, last + 1))
    return sorted(named | ranged, reverse=True), ranged - named


def _undo_one(opened: Workspace, number: int, *, dry_run: bool, as_json: bool) -> None:
    if dry_run:
        _show_undoing(opened.history.plan_undo(number), as_json=as_json)
        return
    made, notes = opened.history.undo(number)
    if as_json:
        print_json("undo", _undone_json(number, made, notes))
    else:
        _show_undone(number, made, notes)


def _undo_several(opened: Workspace, numbers: list[int], ranged: set[int], *, as_json: bool) -> int:
    """Undo one after the other; one that cannot be undone does not stop the others, a disk that says no does."""
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    passed: list[int] = []
    code = 0
    for number in numbers:
        if number in ranged and not opened.history.is_undoable(number):
            passed.append(number)
            continue
        try:
            made, notes = opened.history.undo(number)
        except TruekeepError as error:
            code = error.exit_code
            failed.append({"entry": number, "code": error.code, "message": error.message, "hint": error.hint})
            if not as_json:
                show_error(error, as_json=False)
            if not isinstance(error, (BadInput, EditedSince)):
                break  # a full disk, another writer: the next one would meet it, too
            continue
        done.append(_undone_json(number, made, notes))
        if not as_json:
            _show_undone(number, made, notes)
    if as_json:
        print_json("undo-several", {"undone": done, "failed": failed, "passed": passed})
        return code
    told = [f"{len(done)} undone"]
    if failed:
        told.append(f"{len(failed)} not: {', '.join(str(one['entry']) for one in failed)}")
    if passed:
        told.append(f"{len(passed)} passed over, undone already or without a file: {', '.join(map(str, passed))}")
    echo("; ".join(told))
    return code


def _undone_json(number: int, made: LedgerEntry, notes: list[str]) -> dict[str, Any]:
    return {"undone": number, "entry": made.id, "files": list(made.paths), "notes": notes}


def _show_undone(number: int, made: LedgerEntry, notes: list[str]) -> None:
    echo(f"{coloured('undone')} entry {number}; this is entry {made.id}")
    for path in made.paths:
        echo(f"  {path}")
    for note in notes:
        echo(f"  note: {note}")


def _show_undoing(planned: Undoing, *, as_json: bool) -> None:
    changed = [
        (change.path, difference(change.before.data if change.before else None, change.data, change.path))
        for change in planned.changes
    ]
    if as_json:
        files = [{"path": path, "difference": list(lines)} for path, lines in changed]
        print_json("undo-plan", {"undoes": planned.entry.id, "files": files, "notes": list(planned.notes)})
        return
    echo(f"undoing entry {planned.entry.id} would change {len(changed)} file{'s' if len(changed) != 1 else ''}")
    for _, lines in changed:
        for line in lines:
            echo(f"  {line}")
    for note in planned.notes:
        echo(f"  note: {note}")
