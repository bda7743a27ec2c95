"""Decides on new sync routes: what each needs, and which existing ones a host's key is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truekeep.core.errors import BadInput
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.receipts import parse_key
from truekeep.handoffs.sync.routes import Option, Route, check_name, read_routes, write_routes


def plan_route(name: str, via: str, options: Mapping[str, Option], *, is_host: bool) -> Route:
    """A route with all that it needs on this machine."""
    if options.get("host_key"):
        if is_host:
            raise BadInput("--host-key is for a producer's route to its host", hint="leave it out here")
        parse_key(str(options["host_key"]))
    needed = ["host", "repos"] if via == "rsync" else ["remote"] if is_host else ["remote", "repos"]
    if missing := [f"--{key}" for key in needed if not options.get(key)]:
        raise BadInput(f"a route by {via} needs {' and '.join(missing)}", hint="`truekeep sync add --help`")
    chosen = {key: value for key, value in options.items() if value}
    if not is_host:
        for key in ("memory", "private"):  # the host decides what it sends
            chosen.pop(key, None)
    return Route(name, via, chosen)


def plan_producer_route(state: Path, wanted: Route) -> Route:
    """A producer's route to its host. One of the same name that ever worked is not replaced; its key stays."""
    name = check_name(wanted.name)
    known = read_routes(state).get(name)
    key = wanted.text("host_key") or (known.text("host_key") if known is not None else "")
    if known is not None and not _is_alike(known, wanted) and read_history(state, name).last_ok_at:
        raise BadInput(f"there is another route {name!r} here", hint=f"--name, or `truekeep sync remove {name}` first")
    return wanted._replace(options={**wanted.options, "host_key": key} if key else wanted.options)


def _is_alike(one: Route, other: Route) -> bool:
    """True if two routes differ only in the host's key."""
    plain = [{key: value for key, value in route.options.items() if key != "host_key"} for route in (one, other)]
    return one.via == other.via and plain[0] == plain[1]


def pair_routes(state: Path, key: str, name: str = "", *, dry_run: bool = False) -> list[str]:
    """Give the host's key to the routes by rclone and git: the named one, else all. Gives their names."""
    routes = read_routes(state)
    chosen = [route for route in routes.values() if route.via != "rsync" and name in ("", route.name)]
    if not chosen:
        raise BadInput(
            f"there is no route {name!r} by rclone or git here" if name else "there is no route by rclone or git here",
            hint="--repo, --via and --remote make one; `truekeep sync status` shows the routes",
        )
    paired = {route.name: route._replace(options={**route.options, "host_key": key}) for route in chosen}
    if not dry_run:
        write_routes(state, {**routes, **paired})
    return sorted(paired)
