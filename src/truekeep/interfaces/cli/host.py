"""truekeep host: which machine may write, and changing that on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import local_day, local_minute
from truekeep.core.errors import BadInput
from truekeep.core.host_lease import lease_history, refusal
from truekeep.interfaces.cli.options import in_workspace, wants_json, yes_option
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.output import show as show_lines
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import can_ask, prompt, style
from truekeep.workspace.take_copy import CopyContents, default_target, make_workspace, read_contents

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostLease, HostStatus, Overlap
    from truekeep.core.machine import Machine
    from truekeep.workspace.workspace import Workspace


@click.group()
def host() -> None:
    """Show or change which machine may write this memory.

    Only one machine writes, the canonical host; every other machine leaves handoffs for it. Each machine has its own
    file in .truekeep/hosts, so a synced workspace shows everywhere which machine it is.

    Example: truekeep host show
    """


@host.command()
@in_workspace
def show(opened: Workspace) -> None:
    """Show this machine, the canonical host, and all former ones.

    Example: truekeep host show
    """
    found, here = opened.host.status(), opened.machine
    data = {
        "machine": {"id": here.id, "name": here.name, "is_canonical": found.is_canonical(here)},
        "state": "split" if found.is_split else "held" if found.canonical else "released",
        "canonical": found.canonical,
        "generation": found.generation,
        "tenures": found.leases,
        "overlaps": list(found.overlaps()),
        "unreadable": found.unreadable,
        "copies": found.copies,
    }
    emit("host-show", data, _render_status(found, here))


def _render_status(found: HostStatus, here: Machine) -> Iterator[Shown]:
    other = "" if found.is_canonical(here) else ", not the canonical host"
    yield f"this machine    {here.name} ({here.id[:8]}){other}"
    yield f"canonical host  {_shown_canonical(found)}"
    yield ""
    headers = ["machine", "id", "generation", "took over", "from", "released", "last wrote"]
    yield Table(headers, [_row(item) for item in found.leases])
    if found.is_split:
        error = refusal(found, here, "write")
        story = [line for line in error.details["story"] if ".truekeep/" in line]
        yield from _render_note(error.message, *story, error.hint)
    for overlap in found.overlaps():
        hint = "what it filed then may be only there: see `truekeep history` on it"
        yield from _render_note(_shown_overlap(overlap), hint)


def _render_note(message: str, *lines: str) -> Iterator[str]:
    yield ""
    yield style("note: ", fg="yellow") + message
    yield from (f"  {line}" for line in lines)


def _shown_canonical(found: HostStatus) -> str:
    lease = found.canonical
    if lease is None:
        return style("in doubt", fg="red") if found.is_split else style("none", fg="yellow")
    since = f", since {local_minute(lease.taken_at)}" if lease.taken_at else ""
    return f"{lease.name} ({lease.id[:8]}), generation {lease.generation}{since}"


def _row(item: HostLease) -> list[str]:
    taken_at, released_at = (local_minute(stamp) or "-" for stamp in (item.taken_at, item.released_at))
    wrote = local_day(item.wrote_at) or "-"
    return [item.name, item.id[:8], str(item.generation), taken_at, item.taken_from or "-", released_at, wrote]


def _shown_overlap(overlap: Overlap) -> str:
    former, later = overlap.former, overlap.later
    day = local_day(former.wrote_at)
    when = f"last on {day}" if overlap.is_sure else f"perhaps: it wrote on {day}, within a day of that"
    return f"{former.name} wrote after {later.name} took over on {local_day(later.taken_at)} ({when})"


@host.command()
@click.option(
    "--to", "target", metavar="DIR", help="From a copy: folder of the new workspace. [default: ~/.openclaw/workspace]"
)
@yes_option
@in_workspace
def take(opened: Workspace, target: str | None, yes: bool) -> None:
    """Make this machine the canonical host.

    On a machine with a copy of memory, a workspace is made of it first; private files, drafts in review and the history
    of the lost host are not in it.

    Use it on a new machine when the old one is lost or retired, or to resolve a split. The old host refuses to write
    once the workspace has been synced to it. If it still runs, run `truekeep host release` there first and sync.

    Example: truekeep host take
    """
    found, here = opened.host.status(), opened.machine
    is_copy = opened.source is not None
    is_held = found.is_canonical(here) and not is_copy
    if target and not is_copy:
        raise BadInput("--to is for a machine that has a copy of memory", hint="leave it out here")
    if not is_held:
        if not wants_json():
            show_lines(_render_consequences(found, here))
            show_lines([f"This copy of its memory is {opened.context.source_note}."] if is_copy else [])
        if not yes:
            _ask_name(here)
    contents = read_contents(opened) if is_copy else None
    place = Path(target).expanduser().absolute() if target else default_target()
    made = make_workspace(opened, place, contents) if contents else None
    with made or nullcontext():
        lease = (made or opened).host.take(found)
    told = [
        *([f"{style('made', fg='green')} {made.path} of the copy; every later command uses it"] if made else []),
        *(_render_contents(contents) if contents else ()),
        f"{style('taken', fg='green')}: {here.name} is the canonical host now (generation {lease.generation})",
        "next: add its routes here with `truekeep sync add`, so that the others follow; then `truekeep ingest`"
        if made
        else "next: sync the workspace, so that the others know; then `truekeep ingest`",
    ]
    if is_held:
        told = [f"{here.name} is the canonical host already, since {local_minute(lease.taken_at)}"]
    data: dict[str, object] = {"taken": not is_held, "tenure": lease}
    if made and contents:
        data |= {"workspace": str(made.path), "edited": contents.edited, "left": contents.left}
    emit("host-take", data, told)


def _render_contents(contents: CopyContents) -> Iterator[str]:
    """Which files are not as the host sent them."""
    for path in contents.edited:
        yield f"{style('edited', fg='yellow')} {path}: taken with what was written in the copy; look through it"
    for path in contents.left:
        yield f"{style('left', fg='yellow')} {path}: missing in the copy, a link, or not a file of memory"


def _render_consequences(found: HostStatus, here: Machine) -> Iterator[str]:
    """The history first: what would change, and what could be lost from sight."""
    yield from (f"  {line}" for line in lease_history(found))
    yield ""
    yield f"{here.name} would be the canonical host, with generation {found.generation + 1}."
    for item in found.rivals:
        if item.id != here.id:
            yield (
                f"{item.name} refuses to write as soon as the workspace is synced to it. What it writes until then, and"
                " what has not been synced from it yet, is not in this memory: look there first if it still runs."
            )
    yield from map(_shown_overlap, found.overlaps())


def _ask_name(here: Machine) -> None:
    if wants_json() or not can_ask():
        raise BadInput(
            "not a terminal, so I cannot ask; nothing was changed", hint="add --yes to take over without asking"
        )
    if prompt(f"Type {here.name} to go on", prompt_suffix=": ", err=True).strip() != here.name:
        raise BadInput("that is not the name of this machine; nothing was changed", hint="run it again")


@host.command()
@in_workspace
def release(opened: Workspace) -> None:
    """Stop being the canonical host.

    No machine writes until one runs `truekeep host take`. To move the host: release here, sync, take there.

    Example: truekeep host release
    """
    lease = opened.host.release()
    told = [
        f"released: {lease.name} is no longer the canonical host, since {local_minute(lease.released_at)}",
        "next: sync the workspace, then `truekeep host take` on the machine that takes over",
    ]
    emit("host-release", {"tenure": lease}, told)
