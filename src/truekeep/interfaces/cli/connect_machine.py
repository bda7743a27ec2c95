"""truekeep connect machine: a producer, made ready in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, BadSetup, as_argument
from truekeep.core.machine import person
from truekeep.handoffs.sync.new_route import pair_routes, plan_producer_route
from truekeep.handoffs.sync.receipts import parse_key
from truekeep.handoffs.sync.routes import Option, Route, read_routes
from truekeep.integrations.harnesses.producer_route import TestResult, try_route, wait_for_receipt
from truekeep.integrations.harnesses.test_handoff import ask_key, last_test, make_inboxes, send_test
from truekeep.interfaces.cli.connect import NO_MEMORY, connect, connect_quietly, said_before
from truekeep.interfaces.cli.options import (
    dry_run_option,
    json_flag,
    repos_option,
    wants_json,
    workspace_if_any,
    workspace_option,
    yes_option,
)
from truekeep.interfaces.cli.output import Shown, emit, show
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import note, style
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.machine_role import side_of

if TYPE_CHECKING:
    from truekeep.handoffs.sync.runner import LocalMachine

EXIT_PROBLEMS = 1


@click.command()
@repos_option("Repository or pattern; may be repeated.", metavar="GLOB")
@click.option("--via", type=click.Choice(("rsync", "rclone", "git")), help="Transport for handoffs to the host.")
@click.option("--remote", metavar="REMOTE", help="rclone: remote and path. git: URL. Same as on the host.")
@click.option("--name", default="host", show_default=True, metavar="NAME", help="Name of the route on this machine.")
@click.option("--host-key", metavar="KEY", help="The host's key, as printed there by `truekeep sync key`.")
@click.option("--host", metavar="USER@HOST", help="The host, as in ssh: for rsync from here, and to fetch its key.")
@click.option("--port", type=click.IntRange(1, 65_535), help="With --host: ssh port.")
@click.option(
    "--ssh-option", "ssh_options", multiple=True, metavar="OPTION", help="With --host: option passed to ssh -o."
)
@click.option("--check", "is_check", is_flag=True, help="Only show whether the test message was answered.")
@click.option(
    "--wait", type=click.IntRange(0, 86_400), default=0, metavar="SECONDS", help="Wait up to this long for the answer."
)
@dry_run_option
@yes_option
@json_flag
@workspace_option
@click.pass_context
def machine(
    ctx: click.Context, /, repositories: tuple[str, ...], is_check: bool, workspace: str | None, **given: Any
) -> int:
    """Set up this machine to send handoffs to the canonical host, and to read its memory.

    Creates the inboxes of the repositories, adds the closeout rule to their instruction files (as `truekeep connect
    --project` does, shown first), adds the route, and sends a test message that the host answers with a receipt; the
    test is not filed. By rsync, with --host where this machine reaches the host over ssh; else no route is needed here:
    the host connects. Exit 1 if the test could not be sent (a route that never worked is removed) or, with --check or
    --wait, if it has not been answered.

    With rclone and git, a handoff leaves its inbox only after a receipt signed by the host, so the route needs the
    host's key: pass --host-key, or --host to fetch it over ssh. With a key but no --repo, existing routes are paired
    with it: those named by --name, else all.

    Example: truekeep connect machine --repo '~/repos/*' --via git --remote git@git.example:me/handoffs.git
    """
    side = side_of(workspace_if_any(ctx, workspace))
    if is_check:
        has_route = bool(read_routes(side.state))
        return _emit_result(TestResult(last_test()), must_be_back=True, has_route=has_route)
    if side.is_host:
        raise BadSetup(
            f"this machine ({side.machine}) is the canonical host",
            hint="`truekeep connect` is enough here; run this elsewhere",
        )
    key = _host_key(given)
    if key and not repositories and not given["via"]:
        is_named = ctx.get_parameter_source("name") is ParameterSource.COMMANDLINE
        return _pair(side, key, given["name"] if is_named else "", given)
    return _set_up(ctx, side, repositories, key, given)


def _host_key(given: dict[str, Any]) -> str:
    """The given key, else the one that the host prints over ssh, else ""."""
    key, host = given["host_key"], given["host"]
    if host and not key:
        try:
            return ask_key(host, given["ssh_options"], given["port"] or 0)
        except BadSetup as error:
            if given["via"] != "rsync":
                raise
            hint = f"{error.hint}; or leave out --host: then the host connects to this machine"
            raise BadSetup(error.message, hint=hint) from error
    if key:
        parse_key(key)
    return (key or "").strip()


def _pair(side: LocalMachine, key: str, name: str, given: dict[str, Any]) -> int:
    """Give the routes that are here the host's key."""
    for option in ("remote", "wait"):
        if given[option]:
            raise BadInput(
                f"--{option} is for a new route; a key alone only pairs the routes that are here",
                hint=f"leave out --{option}; or name --repo and --via, for a new route",
            )
    dry_run = given["dry_run"]
    paired = pair_routes(side.state, key, name, dry_run=dry_run)
    word = style("paired", fg="green")
    lines = [
        f"would pair the route {route} with this key; nothing was done"
        if dry_run
        else f"{word} {route}; `truekeep sync run {route}` takes receipts"
        for route in paired
    ]
    emit("connect-machine", {"paired": paired, **({"dry_run": True} if dry_run else {})}, lines)
    return 0


def _set_up(ctx: click.Context, side: LocalMachine, repos: tuple[str, ...], key: str, given: dict[str, Any]) -> int:
    via = given["via"]
    roots = [root for root in expand_repositories(repos) if root.is_dir()] if repos else []
    if not roots:
        raise BadInput("no repository found", hint="give some: --repo '~/repos/*'")
    if not via:
        hint = "--via git or rclone with --remote; or --via rsync"
        raise BadInput("no transport given for handoffs to the host", hint=hint)
    if via != "rsync" and not given["remote"]:
        raise BadInput(f"a route by {via} needs --remote", hint="the same as on the host")
    route = None
    if via != "rsync" or given["host"]:
        options: dict[str, Option] = {"repos": repos, **({"host_key": key} if key else {})}
        wanted = ("host", "port", "ssh_options") if via == "rsync" else ("remote",)
        options |= {name: given[name] for name in wanted if given[name]}
        route = plan_producer_route(side.state, Route(given["name"], via, options))
    for root in roots:
        _connect_project(ctx, root, yes=given["yes"], dry_run=given["dry_run"])
    if given["dry_run"]:
        planned = [_host_command(side, repos)]
        if route is not None:
            there = route.text("remote") or route.text("host")
            planned = [f"would add the route {route.name} by {via} to {there}, and send a test handoff"]
        emit("connect-machine", {"dry_run": True, "repositories": roots, "route": route}, planned)
        return 0
    made = make_inboxes(roots, side.writers)
    test = send_test(roots[0], side.writers)
    with ProgressDisplay("contacting the host"):
        sent = try_route(side, route, test) if route is not None else TestResult(test)
    if not wants_json():
        show([*(f"made {path}" for path in made), *_render_contact(sent, via, side, repos)])
    with ProgressDisplay("waiting for the receipt"):
        sent = wait_for_receipt(side, route, sent, given["wait"] if sent.is_sent else 0)
    return _emit_result(sent, must_be_back=bool(given["wait"]), has_route=route is not None)


def _connect_project(ctx: click.Context, root: Path, *, yes: bool, dry_run: bool) -> None:
    """The closeout rule and the inboxes of one repository, as connect puts them in."""
    if not wants_json():
        said_before().add(NO_MEMORY)  # this is the way to one
        ctx.invoke(connect, repositories=(str(root),), is_project=True, yes=yes, dry_run=dry_run)
    elif not dry_run:
        connect_quietly(root, yes=yes)


def _host_command(side: LocalMachine, repos: Sequence[str]) -> str:
    """What to run on the host, which pulls from here by rsync."""
    shown = " ".join(f"--repo '{repo}'" if "'" not in repo else f"--repo {as_argument(repo)}" for repo in repos)
    name = side.machine
    return f"on the host, once: truekeep sync add {name} --via rsync --host {person()}@{name} {shown}"


def _render_contact(sent: TestResult, via: str, side: LocalMachine, repos: Sequence[str]) -> Iterator[Shown]:
    contact = sent.contact
    if contact is None:
        yield _host_command(side, repos)
        yield f"  or, if this machine reaches the host over ssh: add --host {person()}@HOST here"
        return
    if not contact.ok:
        yield f"{style('failed', fg='red')} {contact.problem}"
        yield f"  {contact.hint}"
    elif sent.is_sent:
        yield f"{style('sent', fg='green')} the test handoff by {via}"
    if contact.memory:
        copied = f"{style('received', fg='green')} a copy of memory, {many(contact.memory_files, 'file')}"
        yield f"{copied}: `truekeep search` and `truekeep wake` answer here now"
    elif contact.ok:
        yield "no memory has come yet: it comes after the next `truekeep sync run` on the host"
    yield from map(note, contact.notes)


def _emit_result(result: TestResult, *, must_be_back: bool, has_route: bool) -> int:
    emit("connect-machine", result, _render_result(result, has_route=has_route))
    is_bad = result.state in ("not sent", "lost") or (must_be_back and result.state != "back")
    return EXIT_PROBLEMS if is_bad else 0


def _render_result(result: TestResult, *, has_route: bool) -> Iterator[Shown]:
    if result.state == "back":
        yield f"{style('back', fg='green')}: the host filed the test handoff, after {result.seconds or 0:.0f} s"
    elif result.state == "none":
        yield "no test handoff was sent from here; send one with `truekeep connect machine`"
    elif result.state == "lost":
        yield style("lost: ", fg="red") + f"{result.path} is gone without a receipt"
    elif result.state == "not sent":
        yield style("not sent: ", fg="red") + f"the test handoff is still in {result.path}"
        yield "  fix the problem and run this again"
    else:
        here = "`truekeep sync run`, and " if has_route else ""  # with rsync, the host's second run brings it back
        yield f"the test handoff is on its way: {result.path}"
        yield "  next, on the host: `truekeep sync run`, `truekeep ingest`, `truekeep sync run`;"
        yield f"  then here: {here}`truekeep connect machine --check`"


connect.add_command(machine)
