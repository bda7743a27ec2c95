"""Sync routes: which machines to reach, and how. Stored in sync.toml, which may also be edited by hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup, NotFound
from truekeep.core.toml import read_toml, render_text

FILE = "sync.toml"
VIAS = ("rsync", "rclone", "git", "server")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}\Z")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")

Option = str | int | bool | tuple[str, ...]


class Route(NamedTuple):
    """One way to receive or send handoffs."""

    name: str
    via: str
    options: Mapping[str, Option]

    @property
    def shares_memory(self) -> bool:
        """True if the host sends a copy of its memory on this route."""
        return self.options.get("memory") is True

    def text(self, key: str, default: str = "") -> str:
        found = self.options.get(key, default)
        return found if isinstance(found, str) else default

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.options.get(key, ())
        return (found,) if isinstance(found, str) else tuple(found) if isinstance(found, tuple) else ()

    def number(self, key: str, default: int) -> int:
        found = self.options.get(key, default)
        return found if isinstance(found, int) and not isinstance(found, bool) else default


def check_name(name: str) -> str:
    if not _NAME.match(name):
        raise BadInput(f"{name[:60]!r} cannot name a route", hint="lower-case letters, digits, dots, dashes; as laptop")
    return name


def read_routes(folder: Path) -> dict[str, Route]:
    """Every route that is kept in a state folder."""
    path = folder / FILE
    given = read_toml(path, hint="correct it, or remove it and add the routes again")
    return {name: _route(name, table, path) for name, table in given.items()}


def _route(name: str, table: Any, path: Path) -> Route:
    where = f"{path}, [{name}]"
    if not _NAME.match(name) or not isinstance(table, dict):
        raise BadSetup(f"{where} is no route", hint="a route is a table named in lower case, with `via`")
    via = table.get("via")
    if via not in VIAS:
        raise BadSetup(f"{where}: via is {via!r}", hint=f"one of {', '.join(VIAS)}")
    options: dict[str, Option] = {}
    for key, value in table.items():
        if key == "via":
            continue
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            options[key] = tuple(value)
        elif isinstance(value, (str, int, bool)):
            options[key] = value
        else:
            raise BadSetup(f"{where}: {key} is neither text, number nor a list of texts", hint="correct it")
    return Route(name, via, options)


def write_routes(folder: Path, routes: Mapping[str, Route]) -> None:
    """Write sync.toml atomically."""
    lines = ["# How handoffs come from other machines. `truekeep sync add` and `remove` write this file.\n"]
    for name in sorted(routes):
        route = routes[name]
        lines.append(f'\n[{_quoted(name)}]\nvia = "{route.via}"\n')
        lines += [f"{key} = {_value(value)}\n" for key, value in sorted(route.options.items()) if _KEY.match(key)]
    file_io.write_whole(folder / FILE, "".join(lines).encode())


def _quoted(name: str) -> str:
    return render_text(name) if "." in name else name


def _value(value: Option) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(render_text(item) for item in value)}]"
    return render_text(value)


def choose_routes(folder: Path, names: Collection[str]) -> list[Route]:
    """The routes of these names, or all."""
    routes = read_routes(folder)
    if unknown := [name for name in names if name not in routes]:
        raise NotFound(f"there is no route {unknown[0]!r}", hint=f"known: {', '.join(routes) or 'none'}")
    return [route for name, route in routes.items() if not names or name in names]


def add_route(folder: Path, route: Route) -> None:
    check_name(route.name)
    routes = read_routes(folder)
    if route.name in routes:
        raise BadInput(f"route {route.name!r} already exists", hint=f"run `truekeep sync remove {route.name}` first")
    write_routes(folder, {**routes, route.name: route})


def remove_route(folder: Path, name: str) -> Route:
    routes = read_routes(folder)
    if name not in routes:
        raise NotFound(f"there is no route {name!r}", hint=f"known: {', '.join(routes) or 'none'}")
    route = routes.pop(name)
    write_routes(folder, routes)
    return route
