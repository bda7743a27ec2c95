"""truekeep login and logout: use the memory of a team server on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.machine import own_state
from truekeep.handoffs.sync.contact_history import forget_route
from truekeep.handoffs.sync.publication import parse_head
from truekeep.handoffs.sync.routes import Route, check_name, read_routes, remove_route, write_routes
from truekeep.handoffs.sync.runner import Unreachable, run_routes
from truekeep.handoffs.sync.server_login import HttpPublication, TeamClient, check_address, forget_token, keep_token
from truekeep.interfaces.cli.options import json_flag, repos_option, wants_json
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import can_ask, note, style
from truekeep.workspace.machine_role import side_of

TOKEN_ENV = "TRUEKEEP_TOKEN"  # noqa: S105 - the name of a variable
EXIT_PROBLEMS = 1


@click.command()
@click.argument("url")
@click.option("--workspace", "wanted", metavar="NAME", default="", help="Workspace, if the token reaches several.")
@click.option("--name", default="team", show_default=True, metavar="NAME", help="Name of the route on this machine.")
@repos_option("Repository or pattern whose handoffs go there; may be repeated.", metavar="GLOB")
@json_flag
def login(url: str, wanted: str, name: str, repositories: tuple[str, ...]) -> int:
    """Use a team's memory on this machine: fetch a copy of it, and send handoffs there.

    Asks for a token (or takes $TRUEKEEP_TOKEN, or the first line of standard input) and keeps it in a file that only
    you can read. From then on `search`, `wake` and hooks answer from the copy, offline too; `truekeep sync run` posts
    handoffs and brings news, and `truekeep schedule install` runs it by itself.

    Example: truekeep login https://memory.example.com --repo '~/repos/*'
    """
    address, state = check_address(url), Path(own_state())
    check_name(name)
    known = read_routes(state)
    if name in known and known[name].via != "server":
        raise BadInput(f"there is another route {name!r} here", hint=f"--name, or `truekeep sync remove {name}` first")
    token = _ask_token()
    try:
        route, account, role = _plan(address, token, wanted, name, repositories)
    except Unreachable as error:
        raise BadSetup(error.problem, hint=error.hint) from error
    earlier = known.get(name)
    if not repositories and earlier is not None and earlier.texts("repos"):
        route = route._replace(options={**route.options, "repos": earlier.texts("repos")})
    keep_token(state, name, token)
    write_routes(state, {**known, name: route})
    with ProgressDisplay("fetching memory"):
        (contact,) = run_routes([route], side_of(None))
    lines: list[Shown] = [f"{style('logged in', fg='green')} as {account}, {role} of {route.text('workspace')}"]
    if contact.ok and contact.memory:
        lines.append(
            f"  a copy of {many(contact.memory_files, 'file')} is here: `truekeep search` and `truekeep wake` answer"
        )
    if not contact.ok:
        lines += [f"  {contact.problem}", f"  {contact.hint}"]
    lines += [note(text) for text in contact.notes]
    if not route.texts("repos"):
        lines.append("  to hand in, name repositories: `truekeep login URL --repo '~/repos/*'`")
    emit("login", {"account": account, "role": role, "route": route, "contact": contact}, lines)
    return 0 if contact.ok else EXIT_PROBLEMS


def _ask_token() -> str:
    given = os.environ.pop(TOKEN_ENV, "").strip()
    if not given and can_ask() and not wants_json():
        given = str(click.prompt("token", hide_input=True)).strip()
    if not given:
        given = sys.stdin.readline(1_000).strip()
    if not given or not given.isascii() or not given.isprintable() or " " in given:
        raise BadInput("that is no token", hint="`truekeep token create ACCOUNT` on the server prints one")
    return given


def _plan(url: str, token: str, wanted: str, name: str, repos: tuple[str, ...]) -> tuple[Route, str, str]:
    """The route to the workspace that is meant, paired with the server's key."""
    with TeamClient(url, token) as client:
        told = client.workspaces()
    found = {str(item["name"]): str(item["role"]) for item in told.get("workspaces", ())}
    chosen = wanted or (next(iter(found)) if len(found) == 1 else "")
    if not chosen or chosen not in found:
        known = ", ".join(found) or "none"
        raise BadInput(
            f"the token does not reach {wanted!r}" if wanted else "which workspace?",
            hint=f"give --workspace NAME; it reaches: {known}",
        )
    with TeamClient(url, token, chosen) as client:
        head = parse_head(HttpPublication(client).read_head() or b"")
    options: dict[str, Any] = {"url": url, "workspace": chosen, "host_key": head.key}
    if repos:
        options["repos"] = repos
    return Route(name, "server", options), str(told.get("account", "")), found[chosen]


@click.command()
@click.argument("name", default="team")
@json_flag
def logout(name: str) -> None:
    """Forget a team server: its route and token. The copy of memory stays, and says how old it is.

    Example: truekeep logout
    """
    state = Path(own_state())
    route = read_routes(state).get(name)
    if route is not None and route.via != "server":
        raise BadInput(f"{name} is not a team server", hint=f"`truekeep sync remove {name}`")
    remove_route(state, name)
    forget_token(state, name)
    forget_route(state, name)
    emit("logout", {"route": name}, [f"{style('forgot', fg='green')} {name}; revoke the token on the server, too"])
