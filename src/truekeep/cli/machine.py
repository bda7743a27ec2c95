"""truekeep connect machine: a producer, made ready in one go."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.cli.connect import NO_MEMORY, connect, said_before
from truekeep.cli.show import json_option, print_json, workspace_option
from truekeep.errors import BadInput, BadSetup, as_argument
from truekeep.hidden import printable
from truekeep.host import person

if TYPE_CHECKING:
    from truekeep.connect.machine import Test
    from truekeep.sync.contact import Contact
    from truekeep.sync.route import Route

EXIT_PROBLEMS = 1
_PAUSE = 5.0  # seconds between two looks for the receipt


@click.command()
@click.option("--repo", "repos", multiple=True, metavar="GLOB", help="A repository, or a pattern; may be repeated.")
@click.option("--via", type=click.Choice(("rsync", "rclone", "git")), help="How handoffs get to the host.")
@click.option("--remote", metavar="REMOTE", help="rclone: a remote and path. git: an address. The host has the same.")
@click.option("--name", default="host", show_default=True, metavar="NAME", help="What the route is called here.")
@click.option("--check", "is_check", is_flag=True, help="Only say whether the test letter has come back.")
@click.option("--wait", type=click.IntRange(0, 86_400), default=0, metavar="SECONDS", help="Wait for it to come back.")
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@workspace_option
@click.pass_context
def machine(
    ctx: click.Context, /, repos: tuple[str, ...], is_check: bool, as_json: bool, workspace: str | None, **given: Any
) -> int:
    """Make this machine a producer: inboxes, closeout rule, the way to the canonical host, and a test of all of it.

    Makes the inboxes of the repositories, puts the closeout rule into their instruction files (as `truekeep connect
    --project` does, shown first), adds the route, and leaves a marked test letter that goes to the host and comes back
    as a receipt; nothing of it is filed. With rsync there is no route here: the host pulls. Exit 1 when the letter
    could not be sent (a route that never worked is not kept), or is not back, with --check or --wait.

    Example: truekeep connect machine --repo '~/repos/*' --via git --remote git@git.example:me/handoffs.git
    """
    from truekeep.checkouts import expand_repositories
    from truekeep.cli.handoff import workspace_if_any
    from truekeep.connect import machine as room
    from truekeep.machines import side_of

    side = side_of(workspace_if_any(ctx, workspace))
    if is_check:
        has_route = given["via"] != "rsync" and bool(_routes(side))
        return _report(room.last_test(), None, as_json, is_sent=True, must_be_back=True, has_route=has_route)
    if side.is_host:
        raise BadSetup(
            f"this machine ({side.machine}) is the canonical host",
            hint="`truekeep connect` is enough here; run this elsewhere",
        )
    roots = [root for root in expand_repositories(repos) if root.is_dir()] if repos else []
    if not roots:
        raise BadInput("no repository was found", hint="name some: --repo '~/repos/*'")
    if not given["via"]:
        raise BadInput(
            "how handoffs get to the host is not said", hint="--via git or rclone with --remote; or --via rsync"
        )
    if given["via"] != "rsync" and not given["remote"]:
        raise BadInput(f"a route by {given['via']} needs --remote", hint="the same as on the host")
    route = _plan_route(side, repos, **given) if given["via"] != "rsync" else None
    for root in roots:
        _connect_project(ctx, root, yes=given["yes"], dry_run=given["dry_run"], as_json=as_json)
    if given["dry_run"]:
        return _show_wish(roots, route, given["via"], side.machine, repos, as_json=as_json)
    made = room.make_inboxes(roots, side.writers)
    test = room.send_test(roots[0], side.writers)
    contact = _try_route(side, route) if route is not None else None
    is_sent = route is None or (contact is not None and contact.ok and _is_sent(side, route, test))
    if not as_json:
        for path in made:
            click.echo(f"made {printable(path)}")
        _say_route(contact, given["via"], side.machine, repos, is_sent=is_sent)
    deadline = time.monotonic() + (given["wait"] if is_sent else 0)
    while not test.has_returned and time.monotonic() < deadline:
        time.sleep(min(_PAUSE, max(0.1, deadline - time.monotonic())))
        contact = _sync(side, route) if route is not None else None
    must_be_back = bool(given["wait"])
    return _report(test, contact, as_json, is_sent=is_sent, must_be_back=must_be_back, has_route=route is not None)


def _connect_project(ctx: click.Context, root: Path, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """The closeout rule and the inboxes of one repository, as connect puts them in."""
    if not as_json:
        said_before().add(NO_MEMORY)  # this is the way to one
        ctx.invoke(connect, repo=str(root), is_project=True, yes=yes, dry_run=dry_run)
        return
    if dry_run:
        return
    from truekeep.connect.apply import apply_plan
    from truekeep.connect.homes import find_homes
    from truekeep.connect.plan import Wish, plan_connect
    from truekeep.connect.record import Keep
    from truekeep.model import WRITERS

    homes = find_homes()
    wish = Wish(root=root, named=(), is_named_place=True, writers=WRITERS, cards=None)
    plan = plan_connect(wish, homes, Keep(homes.keep).read())
    if not plan.is_empty and plan.owners:
        if not yes:
            raise BadInput("nobody is there to ask", hint="--yes goes on without asking, --dry-run only shows the plan")
        apply_plan(plan, homes, tell=lambda *_: None)


def _show_wish(
    roots: list[Path], route: Route | None, via: str, name: str, repos: tuple[str, ...], *, as_json: bool
) -> int:
    if as_json:
        told = {"name": route.name, "via": route.via, "options": dict(route.options)} if route else None
        print_json("connect-machine", {"dry_run": True, "repositories": [str(root) for root in roots], "route": told})
    elif route is None:
        _say_route(None, via, name, repos, is_sent=False)
    else:
        there = printable(route.text("remote"))
        click.echo(f"would add the route {route.name} by {via} to {there}, and send a test letter; nothing was done")
    return 0


def _plan_route(side: Any, repos: tuple[str, ...], **given: Any) -> Route:
    """The route that is asked for. One of the same name that ever worked is not replaced."""
    from truekeep.sync.contact import read_history
    from truekeep.sync.route import Route, check_name, read_routes

    name = check_name(given["name"])
    wanted = Route(name, given["via"], {"remote": given["remote"], "repos": repos})
    known = read_routes(side.state).get(name)
    if known is not None and known != wanted and read_history(side.state, name).last_ok_at:
        raise BadInput(f"there is another route {name!r} here", hint=f"--name, or `truekeep sync remove {name}` first")
    return wanted


def _try_route(side: Any, route: Route) -> Contact:
    """One contact; a route that is new is kept when it works."""
    from truekeep.sync.contact import forget_route
    from truekeep.sync.route import read_routes, write_routes

    time.sleep(side.settle + 0.2)  # a file that was just written waits
    contact = _sync(side, route)
    routes = read_routes(side.state)
    if contact.ok:
        write_routes(side.state, {**routes, route.name: route})
    elif route.name not in routes:
        forget_route(side.state, route.name)
    return contact


def _sync(side: Any, route: Route) -> Contact:
    from truekeep.sync.run import run_routes

    (contact,) = run_routes([route], side)
    return contact


def _routes(side: Any) -> Mapping[str, Route]:
    from truekeep.sync.route import read_routes

    return read_routes(side.state)


def _is_sent(side: Any, route: Route, test: Test) -> bool:
    """Whether the test letter is in what the route carries, or has come back already."""
    import hashlib

    from truekeep.sync.exchange import Folder, read_offers

    if test.has_returned:
        return True
    try:
        digest = hashlib.sha256(Path(test.path).read_bytes()).hexdigest()
    except OSError:
        return False
    return any(digest in told.files.values() for told in read_offers(Folder(side.exchange(route))))


def _say_route(contact: Contact | None, via: str, name: str, repos: tuple[str, ...], *, is_sent: bool) -> None:
    if via == "rsync":
        shown = " ".join(
            f"--repo '{printable(repo)}'" if "'" not in repo else f"--repo {printable(as_argument(repo))}"
            for repo in repos
        )
        user = printable(person())
        click.echo(f"on the host, once: truekeep sync add {name} --via rsync --host {user}@{name} {shown}")
    elif contact is not None and not contact.ok:
        click.echo(f"{click.style('failed', fg='red')} {printable(contact.problem)}\n  {printable(contact.hint)}")
    elif is_sent:
        click.echo(f"{click.style('sent', fg='green')} the test letter by {via}")
    for note in contact.notes if contact is not None else ():
        click.echo(click.style("note: ", fg="yellow") + printable(note), err=True)


def _report(
    test: Test | None, contact: Contact | None, as_json: bool, *, is_sent: bool, must_be_back: bool, has_route: bool
) -> int:
    state = "none" if test is None else "back" if test.has_returned else "lost" if test.is_lost else "on its way"
    if state == "on its way" and not is_sent:
        state = "not sent"
    seconds = None
    if test is not None and test.returned_at is not None:
        seconds = round(max(0.0, test.returned_at - test.sent_at), 1)
    if as_json:
        print_json(
            "connect-machine",
            {
                "test": state,
                "path": test.path if test else None,
                "seconds": seconds,
                "contact": contact._asdict() if contact else None,
            },
        )
    elif state == "back":
        click.echo(
            f"{click.style('back', fg='green')}: the test letter was dealt with by the host, after {seconds:.0f} s"
        )
    elif state == "none":
        click.echo("no test letter was sent from here; `truekeep connect machine` sends one")
    elif state == "lost":
        click.echo(
            click.style("lost: ", fg="red") + f"{printable(test.path if test else '')} is gone without a receipt"
        )
    elif state == "not sent":
        click.echo(
            click.style("not sent: ", fg="red") + f"the test letter waits in {printable(test.path if test else '')}"
        )
        click.echo("  mend it and run this again")
    else:
        click.echo(f"the test letter is on its way: {printable(test.path if test else '')}")
        here = "`truekeep sync run`, and " if has_route else ""  # with rsync, the host's second run brings it back
        click.echo("  next, on the host: `truekeep sync run`, `truekeep ingest`, `truekeep sync run`;")
        click.echo(f"  then here: {here}`truekeep connect machine --check`")
    is_bad = state in ("not sent", "lost") or (must_be_back and state != "back")
    return EXIT_PROBLEMS if is_bad else 0


connect.add_command(machine)
