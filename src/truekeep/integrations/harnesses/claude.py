"""Claude Code: a marketplace and a plugin in the user's settings. The plugin has hooks, a skill and the MCP server.

A folder marketplace is read in place, so a plugin upgrade needs no command. Claude Code rewrites settings.json whenever
it changes it, and leaves empty objects and a cache behind when the plugin is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from truekeep.core.harness_files import at, parse_object, read_json, without_empty
from truekeep.core.harness_paths import Homes
from truekeep.integrations.harnesses.base import HarnessCommand, InstallState
from truekeep.integrations.harnesses.plugin_files import MARKET, PLUGIN_ID

PROGRAM = "claude"


def rule_path(homes: Homes, root: Path | None) -> Path | None:
    inner = root / ".claude" / "CLAUDE.md" if root else None
    if root and inner and inner.is_file() and not (root / "CLAUDE.md").exists():
        return inner  # the other file that it reads in a repository
    return (root or homes.claude) / "CLAUDE.md"


def files(homes: Homes) -> Mapping[Path, str]:  # noqa: ARG001
    return {}


def watched(homes: Homes) -> Sequence[Path]:
    plugins = homes.claude / "plugins"
    registers = (plugins / "known_marketplaces.json", plugins / "installed_plugins.json")
    return (homes.claude / "settings.json", homes.claude_json, *registers)


def trees(homes: Homes) -> Sequence[Path]:
    plugins = homes.claude / "plugins"
    return (plugins / "cache" / MARKET, plugins / "marketplaces" / MARKET)


def look(homes: Homes, cards: Path | None) -> InstallState:  # noqa: ARG001
    settings = read_json(homes.claude / "settings.json")
    enabled = at(settings, "enabledPlugins", PLUGIN_ID)
    if enabled is False:
        note = f"the plugin is disabled in Claude Code; run `claude plugin enable {PLUGIN_ID}` to enable it"
        return InstallState(is_off=True, hooks="off", note=note)
    installed = at(read_json(homes.claude / "plugins" / "installed_plugins.json"), "plugins", PLUGIN_ID)
    is_there = enabled is True and _market(homes) == str(homes.market) and bool(installed)
    if is_there and settings.get("disableAllHooks") is True:
        return InstallState(
            is_registered=True, hooks="off", has_mcp=True, note="`disableAllHooks` is set in settings.json"
        )
    return InstallState(is_registered=is_there, hooks="ready" if is_there else "", has_mcp=is_there)


def _market(homes: Homes) -> str | None:
    known = read_json(homes.claude / "plugins" / "known_marketplaces.json")
    path = at(known, MARKET, "source", "path")
    return path if isinstance(path, str) else None


def plan_join(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
    standing = look(homes, cards)
    if standing.is_registered or standing.is_off:
        return ()
    calls = []
    market = _market(homes)
    if market not in (None, str(homes.market)):
        calls.append(_call(program, "marketplace", "remove", MARKET, why=f"it points at {market}"))
    if market != str(homes.market):
        calls.append(_call(program, "marketplace", "add", str(homes.market), why="registers the plugin"))
    calls.append(_call(program, "install", PLUGIN_ID, why="hooks, skill and MCP server"))
    return calls


def plan_leave(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:  # noqa: ARG001
    calls = []
    if at(read_json(homes.claude / "plugins" / "installed_plugins.json"), "plugins", PLUGIN_ID):
        calls.append(_call(program, "uninstall", PLUGIN_ID, why="removes the plugin"))
    if _market(homes) is not None:
        calls.append(_call(program, "marketplace", "remove", MARKET, why="unregisters the plugin"))
    return calls


def _call(program: str, *words: str, why: str) -> HarnessCommand:
    return HarnessCommand(harness="claude", arguments=(program, "plugin", *words), why=why)


def cut(path: Path, data: bytes) -> bytes:  # noqa: ARG001
    return data


def says_the_same(path: Path, one: bytes, other: bytes) -> bool:  # noqa: ARG001
    # JSON has no comments, so equal values differ only in spaces and order.
    values = [parse_object(data) for data in (one, other)]
    if None in values:
        return False
    bare = [{key: item for key, item in without_empty(value).items() if key != "version"} for value in values]
    return bool(bare[0] == bare[1])
