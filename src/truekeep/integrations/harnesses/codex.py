"""Codex: a marketplace and a plugin in config.toml. The plugin has hooks, a skill and the MCP server.

Codex copies the plugin, and runs a hook only while the hook and all files of the copy are the ones that the user
trusted. Both digests are in config.toml, so trust can be read without running Codex. `codex plugin remove` leaves them
there, and turns CRLF into LF; disconnect repairs both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truekeep.core.harness_files import UnreadableHarnessFile, at, read_bytes
from truekeep.core.harness_paths import Homes
from truekeep.integrations.harnesses.base import HarnessCommand, Hooks, InstallState
from truekeep.integrations.harnesses.plugin_files import (
    CODEX_CONTENT,
    HOOKS,
    MARKET,
    PLUGIN,
    PLUGIN_FILES,
    PLUGIN_ID,
    VERSION,
    codex_hook_hash,
    codex_hook_key,
)

PROGRAM = "codex"
OVERRIDE = "AGENTS.override.md"

UNTRUSTED = "Codex runs no hook until you trust it"
TRUST_HINT = (
    'start `codex`, and at "Hooks need review" choose "Trust all and continue" (or type /hooks). Once is enough, '
    "upgrades of truekeep keep the hooks as they are. `codex exec` never asks, and leaves untrusted hooks out without "
    "a word. `truekeep connect --check` says whether it worked."
)
TRUST_STEP = f"{UNTRUSTED}: {TRUST_HINT}"


def rule_path(homes: Homes, root: Path | None) -> Path | None:
    folder = root or homes.codex
    # If the override exists, Codex does not read AGENTS.md beside it.
    return folder / (OVERRIDE if (folder / OVERRIDE).exists() else "AGENTS.md")


def files(homes: Homes) -> Mapping[Path, str]:  # noqa: ARG001
    return {}


def watched(homes: Homes) -> Sequence[Path]:
    return (homes.codex / "config.toml",)


def trees(homes: Homes) -> Sequence[Path]:
    return (homes.codex / "plugins" / "cache" / MARKET, homes.codex / ".tmp" / "marketplaces" / MARKET)


def look(homes: Homes, cards: Path | None) -> InstallState:  # noqa: ARG001
    config = _config(homes)
    if at(config, "plugins", PLUGIN_ID, "enabled") is False:
        return InstallState(is_off=True, hooks="off", note=f"the plugin is disabled in {homes.codex / 'config.toml'}")
    is_known = at(config, "marketplaces", MARKET, "source") == str(homes.market)
    is_there = is_known and at(config, "plugins", PLUGIN_ID, "enabled") is True and _has_copy(homes)
    return InstallState(is_registered=is_there, hooks=_trust(config) if is_there else "", has_mcp=is_there)


def _has_copy(homes: Homes) -> bool:
    folder = homes.codex / "plugins" / "cache" / MARKET / PLUGIN / VERSION
    return all(read_bytes(folder / name) == text.encode() for name, text in PLUGIN_FILES.items())


def _trust(config: dict[str, Any]) -> Hooks:
    if at(config, "features", "hooks") is False:
        return "off"
    states = [(hook, at(config, "hooks", "state", codex_hook_key(hook)) or {}) for hook in HOOKS]
    if any(state.get("enabled") is False for _, state in states):
        return "off"
    if any("trusted_hash" not in state for _, state in states):
        return "untrusted"
    if any(state["trusted_hash"] != codex_hook_hash(hook) for hook, state in states):
        return "modified"
    contents = {state.get("trusted_content_hash") for _, state in states}
    if contents == {None}:
        return "unknown"  # trusted by an older Codex that did not check the other files
    return "ready" if contents == {CODEX_CONTENT} else "modified"


def plan_join(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
    standing = look(homes, cards)
    if standing.is_registered or standing.is_off:
        return ()
    market = at(_config(homes), "marketplaces", MARKET, "source")
    calls = []
    if market not in (None, str(homes.market)):
        calls.append(_call(program, "marketplace", "remove", MARKET, why=f"it points at {market}"))
    if market != str(homes.market):
        calls.append(_call(program, "marketplace", "add", str(homes.market), why="registers the plugin"))
    calls.append(_call(program, "add", PLUGIN_ID, why="hooks, skill and MCP server"))
    return calls


def plan_leave(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:  # noqa: ARG001
    config = _config(homes)
    calls = []
    if at(config, "plugins", PLUGIN_ID) is not None:
        calls.append(_call(program, "remove", PLUGIN_ID, why="removes the plugin"))
    if at(config, "marketplaces", MARKET) is not None:
        calls.append(_call(program, "marketplace", "remove", MARKET, why="unregisters the plugin"))
    return calls


def _call(program: str, *words: str, why: str) -> HarnessCommand:
    return HarnessCommand(harness="codex", arguments=(program, "plugin", *words), why=why)


def cut(path: Path, data: bytes) -> bytes:  # noqa: ARG001
    """Remove the trust tables of truekeep's hooks, which Codex wrote. Anything unclear stays as it is."""
    config = _parse(data)
    state = at(config, "hooks", "state")
    if config is None or not isinstance(state, dict) or not any(map(_is_ours, state)):
        return data
    rest = {key: item for key, item in state.items() if not _is_ours(key)}
    lines = _without_tables(data.decode("utf-8").splitlines(keepends=True), f'[hooks.state."{PLUGIN_ID}:')
    after = "".join(lines if rest else _without_tables(lines, "[hooks.state]")).encode()
    found = _parse(after)
    if found is None or (at(found, "hooks", "state") or {}) != rest or _without_state(found) != _without_state(config):
        return data
    return after


def _is_ours(key: str) -> bool:
    return key.startswith(f"{PLUGIN_ID}:")


def _without_state(config: dict[str, Any]) -> dict[str, Any]:
    hooks = {key: item for key, item in (config.get("hooks") or {}).items() if key != "state"}
    rest = {key: item for key, item in config.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def _without_tables(lines: Sequence[str], header: str) -> list[str]:
    """The lines without tables whose header begins like this. A comment ends a table: it belongs to the user."""
    kept: list[str] = []
    is_ours = False
    for line in lines:
        if line.startswith("["):
            is_ours = line.startswith(header)
        elif is_ours and line.startswith("#"):
            is_ours = False
        if not is_ours:
            kept.append(line)
    while is_ours and kept and not kept[-1].strip():
        kept.pop()
    return kept


def says_the_same(path: Path, one: bytes, other: bytes) -> bool:  # noqa: ARG001
    # Comments belong to the user, so the text counts, apart from line ends.
    return _plain(one) == _plain(other)


def _plain(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").rstrip(b"\n")


def _config(homes: Homes) -> dict[str, Any]:
    path = homes.codex / "config.toml"
    config = _parse(read_bytes(path) or b"")
    if config is None:
        raise UnreadableHarnessFile(path, "is not TOML")
    return config


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
