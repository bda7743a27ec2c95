"""truekeep sync: handoffs from other machines, and receipts back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_minute, many
from truekeep.core.errors import BadSetup
from truekeep.core.memory_copy import is_sent
from truekeep.handoffs.sync.contact_history import forget_route, read_history
from truekeep.handoffs.sync.new_route import plan_route
from truekeep.handoffs.sync.pull_rsync import render_answer
from truekeep.handoffs.sync.receipts import read_signer
from truekeep.handoffs.sync.routes import Route, add_route, choose_routes, read_routes, remove_route, write_routes
from truekeep.handoffs.sync.runner import run_routes
from truekeep.integrations.harnesses.test_handoff import ask_key
from truekeep.interfaces.cli.complete_values import complete_routes
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import in_workspace_if_any
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import note, style
from truekeep.workspace.answering import answer_machine
from truekeep.workspace.machine_role import check_side, side_of
from truekeep.workspace.publishing import preview_memory, private_for
from truekeep.workspace.receiving import receive_sent

if TYPE_CHECKING:
    from truekeep.handoffs.sync.contact_history import Contact, RouteHistory
    from truekeep.handoffs.sync.copy_install import CopyReport
    from truekeep.handoffs.sync.publication_choice import Masked, PublicationChoice
    from truekeep.handoffs.sync.runner import LocalMachine
    from truekeep.workspace.workspace import Workspace

EXIT_UNREACHED = 1


@click.group()
def sync() -> None:
    """Transfer handoffs from other machines to the canonical host.

    Each route uses a standard tool: rsync over ssh, rclone bisync, or git. Nothing is deleted at its source before the
    host has it; once it is filed, the producer's copy moves to its `processed/` on the next contact.

    Example: truekeep sync status
    """


def _checked_side(opened: Workspace | None) -> LocalMachine:
    """This machine's side: the workspace's on its canonical host, else the machine's own."""
    check_side(opened)
    return side_of(opened)


@sync.command()
@click.argument("name")
@click.option("--via", type=click.Choice(("rsync", "rclone", "git")), required=True, help="Transport to use.")
@click.option("--host", metavar="USER@HOST", help="rsync: the other machine, as in ssh.")
@click.option("--port", type=click.IntRange(1, 65_535), help="rsync: ssh port.")
@click.option(
    "--repo", "--repos", "repos", multiple=True, metavar="GLOB",
    help="On the host, by rsync: repositories there. On a producer: here. Such as '~/repos/*'; may be repeated.",
)  # fmt: skip
@click.option("--remote", metavar="REMOTE", help="rclone: remote and path, such as drive:handoffs. git: URL.")
@click.option(
    "--ssh-option",
    "ssh_options",
    multiple=True,
    metavar="OPTION",
    help="rsync: option passed to ssh -o; may be repeated.",
)
@click.option("--flag", "flags", multiple=True, metavar="FLAG", help="rclone: extra rclone flag; may be repeated.")
@click.option(
    "--host-key", metavar="KEY", help="On a producer: the host's key, as printed there by `truekeep sync key`."
)
@click.option(
    "--memory/--no-memory", default=True, help="On the host: also send a read-only copy of memory. [default: yes]"
)
@click.option(
    "--private",
    multiple=True,
    metavar="GLOB",
    help="On the host: files that this route never sends, besides those of the configuration; may be repeated.",
)
@in_workspace_if_any
def add(opened: Workspace | None, name: str, via: str, **options: Any) -> None:
    """Add a route for handoffs to this host, or from this machine.

    By rsync, one of the two machines connects to the other: the host to each machine, or a machine to the host, where
    it needs no route of the host. rclone and git need a route with the same --remote at both ends and, on the producer,
    the host's key: without it handoffs are sent, but stay in their inboxes after they are filed.

    Example: truekeep sync add laptop --via rsync --host ada@laptop --repo '~/repos/*'
    """
    side = side_of(opened)
    if via == "rsync" and not side.is_host and options["host"] and not options["host_key"]:
        options["host_key"] = ask_key(options["host"], options["ssh_options"], options["port"] or 0)
    route = plan_route(name, via, options, is_host=side.is_host)
    add_route(side.state, route)
    lines = [f"{style('added', fg='green')} {name}; `truekeep sync run {name}` tries it"]
    if via != "rsync" and side.is_host:
        lines.append("  `truekeep sync key` prints the key that each producer needs for it")
    if opened is not None and side.is_host and route.shares_memory:
        choice, asked = preview_memory(opened, private_for(route)), f"`truekeep sync private {name}`"
        is_all = not (choice.private or choice.withheld or choice.masked)
        lines.append(
            f"  all of memory is sent, nothing is private: {asked} says what would stay"
            if is_all
            else f"  {_stays(choice)}: {asked} lists it"
        )
    emit("sync-add", route, lines)


@sync.command()
@in_workspace_if_any
def key(opened: Workspace | None) -> None:
    """Print the public key that verifies this host's receipts.

    It is not a secret. Give it to each producer that sends by rclone or git: run `truekeep connect machine --host-key
    KEY` there. The private key is created on first use, stays in a file on this machine (mode 0600), and signs each
    receipt. A host on another machine, or one that lost that file, has a different key, and its producers must be
    paired again.

    Example: truekeep sync key
    """
    side = _checked_side(opened)
    if not side.is_host:
        raise BadSetup(f"this machine ({side.machine}) is not the canonical host", hint="run it there")
    public = read_signer().public
    emit("sync-key", {"key": public}, [public])


@sync.command()
@click.argument("name", shell_complete=complete_routes)
@click.option("--stop", is_flag=True, help="Send handoffs' receipts only, and no memory.")
@in_workspace_if_any
def share(opened: Workspace | None, name: str, stop: bool) -> None:
    """Send a read-only copy of memory by a route, too.

    For routes of earlier versions, which carry handoffs only; `truekeep sync add` makes new ones so. SOUL.md, any
    USER.md but your own, and what `sync.private` of the configuration names never leave the host.

    Example: truekeep sync share laptop
    """
    side = _checked_side(opened)
    if not side.is_host:
        raise BadSetup(f"this machine ({side.machine}) is not the canonical host", hint="run it there")
    routes = read_routes(side.state)
    (route,) = choose_routes(side.state, [name])
    changed = route._replace(options={**route.options, "memory": not stop})
    write_routes(side.state, {**routes, name: changed})
    told = "memory is not sent any more; copies stay as they are" if stop else "`truekeep sync run` sends memory"
    emit("sync-share", changed, [f"{style('changed', fg='green')} {name}: {told}"])


@sync.command()
@click.argument("name", required=False, shell_complete=complete_routes)
@in_workspace_if_any
def private(opened: Workspace | None, name: str | None) -> None:
    """List what of memory stays on this host, and why. Nothing is sent.

    Files that the list of private ones names (`sync.private`, `--private` of a route), files that are copies of them,
    and lines in other files that say what a private file says or name it: those are masked. Without the name of a
    route, for routes that have no list of their own. A file that is to be sent whole all the same goes into
    `sync.public`. The same fact in other words is not recognised: read what you send.

    Example: truekeep sync private laptop
    """
    side = _checked_side(opened)
    if opened is None or not side.is_host:
        raise BadSetup(f"this machine ({side.machine}) is not the canonical host", hint="run it there")
    route = choose_routes(side.state, [name])[0] if name else None
    choice = preview_memory(opened, private_for(route) if route is not None else ())
    told = {"private": choice.private, "withheld": choice.withheld, "masked": choice.masked}
    emit("sync-private", {**told, "sent": len(choice.published)}, _render_private(choice))


def _render_private(choice: PublicationChoice) -> Iterator[Shown]:
    rows = [[path, "", "on the list"] for path in choice.private]
    rows += [[item.path, "", f"a copy of {item.same_as}"] for item in choice.withheld]
    rows += [
        [item.path, ", ".join(map(str, item.lines[:8])) + (" …" if len(item.lines) > 8 else ""), _masked_for(item)]
        for item in choice.masked
    ]
    if rows:
        yield Table(["file", "lines", "why"], rows)
    yield f"{_stays(choice)}; {many(len(choice.published), 'file')} sent"


def _masked_for(item: Masked) -> str:
    return f"says what {item.same_as} says, or names it"


def _stays(choice: PublicationChoice) -> str:
    stays = many(len(choice.private) + len(choice.withheld), "file")
    lines = many(sum(len(item.lines) for item in choice.masked), "line")
    return f"{stays} and {lines} of other files stay here"


def _no_routes(opened: Workspace | None) -> str:
    if opened is None or opened.source is None or not is_sent():
        return "no routes yet; see `truekeep sync add --help`"
    return f"no routes here: {opened.source.host} fetches handoffs and sends memory, {opened.context.source_note}"


@sync.command()
@in_workspace_if_any
def receive(_: Workspace | None) -> None:
    """Install the copy of memory that the host sent to this machine by rsync.

    The host starts this over ssh. Where it cannot, the next command that reads memory does it.

    Example: truekeep sync receive
    """
    with ProgressDisplay("installing the copy") as display:
        report = receive_sent(lambda _, done, total: display.count(done, total))
    emit("sync-receive", {"received": report}, _render_received(report))


def _render_received(report: CopyReport | None) -> Iterator[Shown]:
    if report is None:
        yield "the host sent no memory here; on the host: `truekeep sync add NAME --via rsync --host USER@HOST`"
        return
    what = "nothing new" if report.changed < 0 else f"{many(report.changed, 'file')} changed"
    yield f"{style('received', fg='green')} {many(report.files, 'file')}, {what}"
    yield from map(note, report.notes)


@sync.command()
@click.option("--machine", "folder", required=True, metavar="NAME", help="The machine that asks.")
@click.option("--login", required=True, metavar="USER", help="Who works there.")
@in_workspace_if_any
def answer(opened: Workspace | None, folder: str, login: str) -> None:
    """Answer another machine that syncs with this host over ssh.

    That machine runs it: its handoffs that rsync put here are taken, and what is said back is for truekeep there. It
    gets what the host's own routes by rsync give, and never a USER.md of another person.

    Example: truekeep sync answer --machine laptop-0123456789 --login ada
    """
    side = _checked_side(opened)
    if not side.is_host:
        raise BadSetup(f"this machine ({side.machine}) is not the canonical host", hint="name the host in the route")
    found = answer_machine(side, folder, login)
    emit("sync-answer", found, [render_answer(found)])


@sync.command()
@click.argument("name", shell_complete=complete_routes)
@in_workspace_if_any
def remove(opened: Workspace | None, name: str) -> None:
    """Remove a route.

    Handoffs it already transferred stay, and are filed.

    Example: truekeep sync remove laptop
    """
    side = side_of(opened)
    route = remove_route(side.state, name)
    forget_route(side.state, name)
    told = f"removed {name}; received files stay in {side.state / 'synced' / name}"
    emit("sync-remove", {"name": name, "via": route.via}, [told])


@sync.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_routes)
@in_workspace_if_any
def run(opened: Workspace | None, names: tuple[str, ...]) -> int:
    """Contact every route, or the given ones, all at once.

    Exit 1 if a machine could not be reached; the others are still contacted.

    Example: truekeep sync run
    """
    side = _checked_side(opened)
    chosen = choose_routes(side.state, names)
    finished: list[Contact] = []
    with ProgressDisplay("syncing") as display:

        def count(contact: Contact) -> None:
            finished.append(contact)
            display.count(len(finished), len(chosen))

        done = run_routes(chosen, side, on_contact=count)
    shown = [line for contact in done for line in _render_contact(contact, is_host=side.is_host)]
    emit("sync-run", {"contacts": done}, shown or [_no_routes(opened)])
    return EXIT_UNREACHED if any(not item.ok for item in done) else 0


def _render_contact(contact: Contact, *, is_host: bool) -> Iterator[Shown]:
    if contact.ok:
        told = _moved(contact, is_host=is_host)
        told += f", {contact.refused} refused" if contact.refused else ""
        told += f", {contact.waiting} still being written: next run" if contact.waiting else ""
        yield f"{style('reached', fg='green')} {contact.route}: {told} ({contact.seconds:.1f} s)"
    else:
        yield f"{style('failed', fg='red')}  {contact.route}: {contact.problem}"
        if contact.hint:
            yield f"         {contact.hint}"
    yield from map(note, contact.notes)


def _moved(contact: Contact, *, is_host: bool) -> str:
    told = f"{contact.brought} {'brought' if is_host else 'sent'}, {many(contact.receipts, 'receipt')}"
    if not contact.memory:
        return told
    changed = f", {contact.memory_changed} changed" if contact.memory_changed else ""
    masked = f", {contact.memory_masked} with masked lines" if contact.memory_masked else ""
    return f"{told}; memory {'sent' if is_host else 'received'}: {many(contact.memory_files, 'file')}{changed}{masked}"


@sync.command()
@in_workspace_if_any
def status(opened: Workspace | None) -> None:
    """List the routes and the results of their last contacts.

    Example: truekeep sync status
    """
    side = _checked_side(opened)
    found = [(route, read_history(side.state, name)) for name, route in read_routes(side.state).items()]
    routes = [{**to_json(route), **to_json(history)} for route, history in found]
    shown: Sequence[Shown] = [_table(found, is_host=side.is_host)] if found else [_no_routes(opened)]
    emit("sync-status", {"is_host": side.is_host, "routes": routes}, shown)


def _table(found: Sequence[tuple[Route, RouteHistory]], *, is_host: bool) -> Table:
    rows = []
    for route, history in found:
        last, tint = history.last, None
        if last is None:
            how = "never tried"
        elif last.ok:
            how = "; ".join((_moved(last, is_host=is_host), *last.notes[:1]))
            tint = "yellow" if last.notes else None
        else:
            times = "once" if history.failures == 1 else f"{history.failures} times"
            how, tint = f"failed {times}: {last.problem}", "red"
        there = route.text("host") or route.text("remote") or route.text("url")
        reached = local_minute(history.last_ok_at) or "never"
        rows.append([route.name, route.via, there, reached, style(how, fg=tint)])
    return Table(["route", "via", "with", "last reached", "last contact"], rows)
