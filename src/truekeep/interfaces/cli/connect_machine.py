"""truekeep connect machine: a producer, made ready in one go."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from truekeep.core.errors import BadInput, BadSetup, as_argument
from truekeep.core.harness_paths import find_homes
from truekeep.core.machine import person
from truekeep.core.model import WRITERS
from truekeep.handoffs.sync.contact_history import forget_route, read_history
from truekeep.handoffs.sync.protocol import FolderSource, read_offers
from truekeep.handoffs.sync.receipts import parse_key
from truekeep.handoffs.sync.routes import Route, check_name, read_routes, write_routes
from truekeep.handoffs.sync.runner import run_routes
from truekeep.integrations.harnesses import test_handoff as room
from truekeep.integrations.harnesses.apply import apply_plan
from truekeep.integrations.harnesses.installed import Keep
from truekeep.integrations.harnesses.plan import Wish, plan_connect
from truekeep.integrations.harnesses.test_handoff import ask_key
from truekeep.interfaces.cli.connect import NO_MEMORY, connect, said_before
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import json_option, print_json, workspace_option
from truekeep.interfaces.cli.terminal import echo, print_note, style
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.machine_role import side_of

if TYPE_CHECKING:
    from truekeep.handoffs.sync.contact_history import Contact
    from truekeep.integrations.harnesses.test_handoff import Test

EXIT_PROBLEMS = 1
_PAUSE = 5.0  # seconds between two looks for the receipt


@click.command()
@click.option("--repo", "repos", multiple=True, metavar="GLOB", help="Repository or pattern; may be repeated.")
@click.option("--via", type=click.Choice(("rsync", "rclone", "git")), help="Transport for handoffs to the host.")
@click.option("--remote", metavar="REMOTE", help="rclone: remote and path. git: URL. Same as on the host.")
@click.option("--name", default="host", show_default=True, metavar="NAME", help="Name of the route on this machine.")
@click.option("--host-key", metavar="KEY", help="rclone, git: the host's key, as printed there by `truekeep sync key`.")
@click.option("--host", metavar="USER@HOST", help="rclone, git: fetch the host's key over ssh.")
@click.option(
    "--ssh-option", "ssh_options", multiple=True, metavar="OPTION", help="With --host: option passed to ssh -o."
)
@click.option("--check", "is_check", is_flag=True, help="Only show whether the test message was answered.")
@click.option(
    "--wait", type=click.IntRange(0, 86_400), default=0, metavar="SECONDS", help="Wait up to this long for the answer."
)
@click.option("--dry-run", is_flag=True, help="Show the plan without changing anything.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@json_option
@workspace_option
@click.pass_context
def machine(
    ctx: click.Context, /, repos: tuple[str, ...], is_check: bool, as_json: bool, workspace: str | None, **given: Any
) -> int:
    """Set up this machine to send handoffs to the canonical host.

    Creates the inboxes of the repositories, adds the closeout rule to their instruction files (as `truekeep connect
    --project` does, shown first), adds the route, and sends a test message that the host answers with a receipt; the
    test is not filed. With rsync no route is needed here: the host pulls. Exit 1 if the test could not be sent (a route
    that never worked is removed) or, with --check or --wait, if it has not been answered.

    With rclone and git, a handoff leaves its inbox only after a receipt signed by the host, so the route needs the
    host's key: pass --host-key, or --host to fetch it over ssh. With a key but no --repo, existing routes are paired
    with it: those named by --name, else all.

    Example: truekeep connect machine --repo '~/repos/*' --via git --remote git@git.example:me/handoffs.git
    """
    side = side_of(workspace_if_any(ctx, workspace))
    if is_check:
        has_route = given["via"] != "rsync" and bool(_routes(side))
        return _report(room.last_test(), None, as_json, is_sent=True, must_be_back=True, has_route=has_route)
    if side.is_host:
        raise BadSetup(
            f"this machine ({side.machine}) is the canonical host",
            hint="`truekeep connect` is enough here; run this elsewhere",
        )
    given["host_key"] = _host_key(given.pop("host_key"), given.pop("host"), given.pop("ssh_options"))
    if given["host_key"] and not repos and not given["via"]:
        for option in ("remote", "wait"):
            if given[option]:
                raise BadInput(
                    f"--{option} is for a new route; a key alone only pairs the routes that are here",
                    hint=f"leave out --{option}; or name --repo and --via, for a new route",
                )
        is_named = ctx.get_parameter_source("name") is ParameterSource.COMMANDLINE
        name = given["name"] if is_named else ""
        return _pair(side, given["host_key"], name, dry_run=given["dry_run"], as_json=as_json)
    roots = [root for root in expand_repositories(repos) if root.is_dir()] if repos else []
    if not roots:
        raise BadInput("no repository found", hint="give some: --repo '~/repos/*'")
    if not given["via"]:
        raise BadInput(
            "no transport given for handoffs to the host", hint="--via git or rclone with --remote; or --via rsync"
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
            echo(f"made {path}")
        _say_route(contact, given["via"], side.machine, repos, is_sent=is_sent)
    deadline = time.monotonic() + (given["wait"] if is_sent else 0)
    while not test.has_returned and time.monotonic() < deadline:
        time.sleep(min(_PAUSE, max(0.1, deadline - time.monotonic())))
        contact = _sync(side, route) if route is not None else None
    must_be_back = bool(given["wait"])
    return _report(test, contact, as_json, is_sent=is_sent, must_be_back=must_be_back, has_route=route is not None)


def _host_key(key: str | None, host: str | None, ssh_options: tuple[str, ...]) -> str:
    """The given key, else the one that the host prints over ssh, else ""."""
    if host and not key:
        return ask_key(host, ssh_options)
    if key:
        parse_key(key)
    return (key or "").strip()


def _pair(side: Any, key: str, name: str, *, dry_run: bool, as_json: bool) -> int:
    """Give the routes that are here the host's key."""
    routes = read_routes(side.state)
    chosen = [route for route in routes.values() if route.via != "rsync" and name in ("", route.name)]
    if not chosen:
        raise BadInput(
            f"there is no route {name!r} by rclone or git here" if name else "there is no route by rclone or git here",
            hint="--repo, --via and --remote make one; `truekeep sync status` shows the routes",
        )
    paired = {route.name: route._replace(options={**route.options, "host_key": key}) for route in chosen}
    if not dry_run:
        write_routes(side.state, {**routes, **paired})
    if as_json:
        print_json("connect-machine", {"paired": sorted(paired), **({"dry_run": True} if dry_run else {})})
        return 0
    for route in chosen:
        if dry_run:
            echo(f"would pair the route {route.name} with this key; nothing was done")
            continue
        echo(f"{style('paired', fg='green')} {route.name}; `truekeep sync run {route.name}` takes receipts")
    return 0


def _connect_project(ctx: click.Context, root: Path, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """The closeout rule and the inboxes of one repository, as connect puts them in."""
    if not as_json:
        said_before().add(NO_MEMORY)  # this is the way to one
        ctx.invoke(connect, repos=(str(root),), is_project=True, yes=yes, dry_run=dry_run)
        return
    if dry_run:
        return
    homes = find_homes()
    wish = Wish(root=root, named=(), is_named_place=True, writers=WRITERS, cards=None)
    plan = plan_connect(wish, homes, Keep(homes.keep).read())
    if not plan.is_empty and plan.owners:
        if not yes:
            raise BadInput(
                "this is not a terminal, so the plan cannot be confirmed",
                hint="add --yes to go ahead, or --dry-run to see the plan",
            )
        apply_plan(plan, homes, log=lambda *_: None)


def _show_wish(
    roots: list[Path], route: Route | None, via: str, name: str, repos: tuple[str, ...], *, as_json: bool
) -> int:
    if as_json:
        told = {"name": route.name, "via": route.via, "options": dict(route.options)} if route else None
        print_json("connect-machine", {"dry_run": True, "repositories": [str(root) for root in roots], "route": told})
    elif route is None:
        _say_route(None, via, name, repos, is_sent=False)
    else:
        there = route.text("remote")
        echo(f"would add the route {route.name} by {via} to {there}, and send a test handoff; nothing was done")
    return 0


def _plan_route(side: Any, repos: tuple[str, ...], **given: Any) -> Route:
    """The route that is asked for. One of the same name that ever worked is not replaced."""
    name = check_name(given["name"])
    known = read_routes(side.state).get(name)
    key = given["host_key"] or (known.text("host_key") if known is not None else "")
    wanted = Route(
        name, given["via"], {"remote": given["remote"], "repos": repos, **({"host_key": key} if key else {})}
    )
    if known is not None and not _is_alike(known, wanted) and read_history(side.state, name).last_ok_at:
        raise BadInput(f"there is another route {name!r} here", hint=f"--name, or `truekeep sync remove {name}` first")
    return wanted


def _is_alike(one: Route, other: Route) -> bool:
    """True if two routes differ only in the host's key."""
    plain = [{key: value for key, value in route.options.items() if key != "host_key"} for route in (one, other)]
    return one.via == other.via and plain[0] == plain[1]


def _try_route(side: Any, route: Route) -> Contact:
    """One contact; a route that is new is kept when it works."""
    time.sleep(side.settle + 0.2)  # a file that was just written waits
    contact = _sync(side, route)
    routes = read_routes(side.state)
    if contact.ok:
        write_routes(side.state, {**routes, route.name: route})
    elif route.name not in routes:
        forget_route(side.state, route.name)
    return contact


def _sync(side: Any, route: Route) -> Contact:
    (contact,) = run_routes([route], side)
    return contact


def _routes(side: Any) -> Mapping[str, Route]:
    return read_routes(side.state)


def _is_sent(side: Any, route: Route, test: Test) -> bool:
    """True if the route carries the test handoff, or its receipt is back."""
    if test.has_returned:
        return True
    try:
        digest = hashlib.sha256(Path(test.path).read_bytes()).hexdigest()
    except OSError:
        return False
    return any(digest in told.files.values() for told in read_offers(FolderSource(side.exchange(route))))


def _say_route(contact: Contact | None, via: str, name: str, repos: tuple[str, ...], *, is_sent: bool) -> None:
    if via == "rsync":
        shown = " ".join(f"--repo '{repo}'" if "'" not in repo else f"--repo {as_argument(repo)}" for repo in repos)
        user = person()
        echo(f"on the host, once: truekeep sync add {name} --via rsync --host {user}@{name} {shown}")
    elif contact is not None and not contact.ok:
        echo(f"{style('failed', fg='red')} {contact.problem}")
        echo(f"  {contact.hint}")
    elif is_sent:
        echo(f"{style('sent', fg='green')} the test handoff by {via}")
    for note in contact.notes if contact is not None else ():
        print_note(note)


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
        echo(f"{style('back', fg='green')}: the host filed the test handoff, after {seconds:.0f} s")
    elif state == "none":
        echo("no test handoff was sent from here; send one with `truekeep connect machine`")
    elif state == "lost":
        echo(style("lost: ", fg="red") + f"{(test.path if test else '')} is gone without a receipt")
    elif state == "not sent":
        echo(style("not sent: ", fg="red") + f"the test handoff is still in {(test.path if test else '')}")
        echo("  fix the problem and run this again")
    else:
        echo(f"the test handoff is on its way: {(test.path if test else '')}")
        here = "`truekeep sync run`, and " if has_route else ""  # with rsync, the host's second run brings it back
        echo("  next, on the host: `truekeep sync run`, `truekeep ingest`, `truekeep sync run`;")
        echo(f"  then here: {here}`truekeep connect machine --check`")
    is_bad = state in ("not sent", "lost") or (must_be_back and state != "back")
    return EXIT_PROBLEMS if is_bad else 0


connect.add_command(machine)
