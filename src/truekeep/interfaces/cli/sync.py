"""truekeep sync: handoffs from other machines, and receipts back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_minute
from truekeep.core.errors import BadInput, BadSetup, NotFound
from truekeep.handoffs.sync.contact_history import forget_route, read_history
from truekeep.handoffs.sync.receipts import parse_key, read_signer
from truekeep.handoffs.sync.routes import Route, add_route, read_routes, remove_route
from truekeep.handoffs.sync.runner import run_routes
from truekeep.interfaces.cli.complete_values import complete_routes
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import json_option, print_json, print_table, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, print_note, style
from truekeep.workspace.machine_role import check_side, side_of

if TYPE_CHECKING:
    from truekeep.handoffs.sync.contact_history import Contact, RouteHistory

EXIT_UNREACHED = 1


@click.group()
def sync() -> None:
    """Transfer handoffs from other machines to the canonical host.

    Each route uses a standard tool: rsync over ssh, rclone bisync, or git. Nothing is deleted at its source before the
    host has it; once it is filed, the producer's copy moves to its `processed/` on the next contact.

    Example: truekeep sync status
    """


def _side(ctx: click.Context, workspace: str | None, *, is_checked: bool = False) -> Any:
    """This machine's side: the workspace's on its canonical host, else the machine's own."""
    opened = workspace_if_any(ctx, workspace)
    if is_checked:
        check_side(opened)
    return side_of(opened)


@sync.command()
@click.argument("name")
@click.option("--via", type=click.Choice(("rsync", "rclone", "git")), required=True, help="Transport to use.")
@click.option("--host", metavar="USER@HOST", help="rsync: the machine, as in ssh.")
@click.option("--port", type=click.IntRange(1, 65_535), help="rsync: ssh port.")
@click.option(
    "--repo", "--repos", "repos", multiple=True, metavar="GLOB",
    help="Repositories there (rsync), or here on a producer (rclone, git), such as '~/repos/*'; may be repeated.",
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
@json_option
@workspace_option
@click.pass_context
def add(ctx: click.Context, /, name: str, via: str, as_json: bool, workspace: str | None, **given: Any) -> None:
    """Add a route for handoffs to this host, or from this machine.

    rsync is pulled by the canonical host. rclone and git need a route with the same --remote at both ends and, on the
    producer, the host's key: without it handoffs are sent, but stay in their inboxes after they are filed.

    Example: truekeep sync add laptop --via rsync --host ada@laptop --repo '~/repos/*'
    """
    side = _side(ctx, workspace)
    if given["host_key"]:
        if side.is_host or via == "rsync":
            raise BadInput("--host-key is for a producer's route by rclone or git", hint="leave it out here")
        parse_key(given["host_key"])
    needed = {"rsync": ("host", "repos"), "rclone": ("remote",), "git": ("remote",)}[via]
    if via != "rsync" and not side.is_host:
        needed = (*needed, "repos")
    if missing := [f"--{key}" for key in needed if not given[key]]:
        raise BadInput(f"a route by {via} needs {' and '.join(missing)}", hint="`truekeep sync add --help`")
    if via == "rsync" and not side.is_host:
        raise BadInput("rsync is pulled by the canonical host", hint="add this route there")
    options = {key: value for key, value in given.items() if value}
    add_route(side.state, Route(name, via, options))
    if as_json:
        print_json("sync-add", {"name": name, "via": via, "options": options})
    else:
        echo(f"{style('added', fg='green')} {name}; `truekeep sync run {name}` tries it")
        if via != "rsync" and side.is_host:
            echo("  `truekeep sync key` prints the key that each producer needs for it")


@sync.command()
@json_option
@workspace_option
@click.pass_context
def key(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Print the public key that verifies this host's receipts.

    It is not a secret. Give it to each producer that sends by rclone or git: run `truekeep connect machine --host-key
    KEY` there. The private key is created on first use, stays in a file on this machine (mode 0600), and signs each
    receipt. A host on another machine, or one that lost that file, has a different key, and its producers must be
    paired again.

    Example: truekeep sync key
    """
    side = _side(ctx, workspace, is_checked=True)
    if not side.is_host:
        raise BadSetup(f"this machine ({side.machine}) is not the canonical host", hint="run it there")
    public = read_signer().public
    if as_json:
        print_json("sync-key", {"key": public})
    else:
        echo(public)


@sync.command()
@click.argument("name", shell_complete=complete_routes)
@json_option
@workspace_option
@click.pass_context
def remove(ctx: click.Context, name: str, as_json: bool, workspace: str | None) -> None:
    """Remove a route.

    Handoffs it already transferred stay, and are filed.

    Example: truekeep sync remove laptop
    """
    side = _side(ctx, workspace)
    route = remove_route(side.state, name)
    forget_route(side.state, name)
    if as_json:
        print_json("sync-remove", {"name": name, "via": route.via})
    else:
        echo(f"removed {name}; received files stay in {side.state / 'synced' / name}")


@sync.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_routes)
@json_option
@workspace_option
@click.pass_context
def run(ctx: click.Context, names: tuple[str, ...], as_json: bool, workspace: str | None) -> int:
    """Contact every route, or the given ones, all at once.

    Exit 1 if a machine could not be reached; the others are still contacted.

    Example: truekeep sync run
    """
    side = _side(ctx, workspace, is_checked=True)
    routes = read_routes(side.state)
    if unknown := [name for name in names if name not in routes]:
        raise NotFound(f"there is no route {unknown[0]!r}", hint=f"known: {', '.join(routes) or 'none'}")
    chosen = [route for name, route in routes.items() if not names or name in names]
    with ProgressDisplay("syncing") as display:
        finished: list[Contact] = []

        def count(contact: Contact) -> None:
            finished.append(contact)
            display.count(len(finished), len(chosen))

        done = run_routes(chosen, side, on_contact=count)
    if as_json:
        print_json("sync-run", {"contacts": [item._asdict() for item in done]})
    elif not chosen:
        echo("no routes yet; see `truekeep sync add --help`")
    else:
        for item in done:
            _say(item, is_host=side.is_host)
    return EXIT_UNREACHED if any(not item.ok for item in done) else 0


def _say(contact: Contact, *, is_host: bool) -> None:
    if contact.ok:
        told = _moved(contact, is_host=is_host)
        told += f", {contact.refused} refused" if contact.refused else ""
        told += f", {contact.waiting} still being written: next run" if contact.waiting else ""
        echo(f"{style('reached', fg='green')} {contact.route}: {told} ({contact.seconds:.1f} s)")
    else:
        echo(f"{style('failed', fg='red')}  {contact.route}: {contact.problem}")
        if contact.hint:
            echo(f"         {contact.hint}")
    for note in contact.notes:
        print_note(note)


def _moved(contact: Contact, *, is_host: bool) -> str:
    word = "brought" if is_host else "sent"
    return f"{contact.brought} {word}, {contact.receipts} receipt{'' if contact.receipts == 1 else 's'}"


@sync.command()
@json_option
@workspace_option
@click.pass_context
def status(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """List the routes and the results of their last contacts.

    Example: truekeep sync status
    """
    side = _side(ctx, workspace, is_checked=True)
    found = [(route, read_history(side.state, name)) for name, route in read_routes(side.state).items()]
    if as_json:
        print_json(
            "sync-status",
            {
                "is_host": side.is_host,
                "routes": [
                    {
                        "name": route.name,
                        "via": route.via,
                        "options": dict(route.options),
                        "last": history.last._asdict() if history.last else None,
                        "last_ok_at": history.last_ok_at,
                        "failures": history.failures,
                    }
                    for route, history in found
                ],
            },
        )
        return
    if not found:
        echo("no routes yet; see `truekeep sync add --help`")
        return
    rows = [_row(*item, is_host=side.is_host) for item in found]
    tints = [_tint(history) for _, history in found]
    print_table(["route", "via", "with", "last reached", "last contact"], rows, tints=tints)


def _tint(history: RouteHistory) -> str | None:
    last = history.last
    return None if last is None else "red" if not last.ok else "yellow" if last.notes else None


def _row(route: Route, history: RouteHistory, *, is_host: bool) -> list[str]:
    last = history.last
    if last is None:
        how = "never tried"
    elif last.ok:
        how = "; ".join((_moved(last, is_host=is_host), *last.notes[:1]))
    else:
        times = "once" if history.failures == 1 else f"{history.failures} times"
        how = f"failed {times}: {last.problem}"
    there = route.text("host") or route.text("remote")
    reached = local_minute(history.last_ok_at) or "never"
    return [route.name, route.via, there, reached, how]
