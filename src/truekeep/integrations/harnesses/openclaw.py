"""OpenClaw: the plugin with skill and MCP server, a hook pack, a rule in SOUL.md, and the search path of the cards.

OpenClaw does not run a plugin's hooks.json, so the hook pack goes into its hooks folder and is enabled by name. If the
user enabled discovery of all hooks, naming one would disable the others, so none is named. OpenClaw's commands write
openclaw.json as plain JSON: comments are lost, and restored from the backup.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truekeep.core.harness_files import UnreadableHarnessFile, at, parse_object, read_bytes, without_empty
from truekeep.core.harness_paths import Homes
from truekeep.core.openclaw_config import named_workspace, parse_config, read_config
from truekeep.integrations.harnesses.base import HarnessCommand, Hooks, InstallState
from truekeep.integrations.harnesses.plugin_files import HOOK_PACK, PACK_FILES, PLUGIN, PLUGIN_FILES

PROGRAM = "openclaw"


def rule_path(homes: Homes, root: Path | None) -> Path | None:  # noqa: ARG001
    """SOUL.md, which sub-agents are not shown; None before OpenClaw made it, because it would not add its own then."""
    try:
        path = own_workspace(homes) / "SOUL.md"
    except UnreadableHarnessFile:
        return None
    return path if path.is_file() else None


def files(homes: Homes) -> Mapping[Path, str]:
    return {homes.openclaw / "hooks" / HOOK_PACK / name: text for name, text in PACK_FILES.items()}


def watched(homes: Homes) -> Sequence[Path]:
    return (homes.openclaw_json,)


def trees(homes: Homes) -> Sequence[Path]:
    return (homes.openclaw / "extensions" / PLUGIN,)


def look(homes: Homes, cards: Path | None) -> InstallState:
    config = read_config(homes)
    entry = at(config, "plugins", "entries", PLUGIN, "enabled")
    has_plugin = entry is True and _has_copy(homes)
    if entry is False and _has_copy(homes):
        return InstallState(is_off=True, hooks="off", note="the plugin is disabled in openclaw.json")
    has_pack = all(read_bytes(path) == text.encode() for path, text in files(homes).items())
    is_off = at(config, "hooks", "internal", "enabled") is False or at(_entry(config), "enabled") is False
    is_ready = has_pack and (_entry(config) is not None or _is_open(config))
    is_registered = has_plugin and (is_ready or is_off) and not _missing_path(homes, config, cards)
    note = "hooks are disabled in openclaw.json (hooks.internal)" if is_off and has_plugin else ""
    if not is_registered and parse_object(read_bytes(homes.openclaw_json) or b"{}") is None:
        note = "OpenClaw rewrites openclaw.json as plain JSON; disconnect restores its comments"
    hooks: Hooks = "off" if is_off else "ready" if is_ready else "unknown"
    return InstallState(is_registered=is_registered, hooks=hooks if has_pack else "", has_mcp=has_plugin, note=note)


def plan_join(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
    standing = look(homes, cards)
    if standing.is_registered or standing.is_off:
        return ()
    config = read_config(homes)
    calls = []
    if at(config, "plugins", "entries", PLUGIN, "enabled") is not True or not _has_copy(homes):
        words = ("plugins", "install", str(homes.market / PLUGIN), "--force", "--accept-capabilities")
        calls.append(_call(program, *words, why="skill and MCP server"))
    patch: dict[str, Any] = {}
    is_off = at(config, "hooks", "internal", "enabled") is False or at(_entry(config), "enabled") is False
    if not is_off and not _is_open(config) and _entry(config) is None:
        patch["hooks"] = {"internal": {"entries": {HOOK_PACK: {"enabled": True}}}}
    if _missing_path(homes, config, cards):
        patch["memory"] = {"search": {"extraPaths": [*_extra_paths(config), str(cards)]}}
    if patch:
        calls.append(
            _patch(program, patch, why="enables the hook pack" if "hooks" in patch else "adds the cards to its search")
        )
    return calls


def plan_leave(program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
    config = read_config(homes)
    calls = []
    patch: dict[str, Any] = {}
    if _has_copy(homes) or at(config, "plugins", "entries", PLUGIN, "enabled") is True:
        calls.append(_call(program, "plugins", "uninstall", PLUGIN, "--force", why="removes the plugin"))
        patch["plugins"] = {"entries": {PLUGIN: None}}
    elif at(config, "plugins", "entries", PLUGIN) is not None:
        patch["plugins"] = {"entries": {PLUGIN: None}}
    if _entry(config) is not None:
        patch["hooks"] = {"internal": {"entries": {HOOK_PACK: None}}}
    ours = [path for path in _extra_paths(config) if path == str(cards)]
    if ours:
        rest = [path for path in _extra_paths(config) if path not in ours]
        patch["memory"] = {"search": {"extraPaths": rest or None}}
    if patch:
        calls.append(_patch(program, patch, why="removes its settings"))
    return calls


def _call(program: str, *words: str, given: str = "", why: str) -> HarnessCommand:
    return HarnessCommand(harness="openclaw", arguments=(program, *words), given=given, why=why)


def _patch(program: str, patch: dict[str, Any], *, why: str) -> HarnessCommand:
    return _call(program, "config", "patch", "--stdin", given=json.dumps(patch), why=why)


def cut(path: Path, data: bytes) -> bytes:  # noqa: ARG001
    return data


def says_the_same(path: Path, one: bytes, other: bytes) -> bool:  # noqa: ARG001
    values = [parse_config(data) for data in (one, other)]
    if None in values or any(parse_object(data) is None for data in (one, other)):
        return False  # with comments, only equal bytes count
    bare = [without_empty({key: item for key, item in (value or {}).items() if key != "meta"}) for value in values]
    return bool(bare[0] == bare[1])


def own_workspace(homes: Homes) -> Path:
    """The folder that OpenClaw itself searches."""
    return Path(named_workspace(homes, read_config(homes)) or homes.openclaw / "workspace")


def _has_copy(homes: Homes) -> bool:
    folder = homes.openclaw / "extensions" / PLUGIN
    return all(read_bytes(folder / name) == text.encode() for name, text in PLUGIN_FILES.items())


def _entry(config: dict[str, Any]) -> Any:
    return at(config, "hooks", "internal", "entries", HOOK_PACK)


def _is_open(config: dict[str, Any]) -> bool:
    """True if all hooks are discovered, named or not."""
    internal = at(config, "hooks", "internal") or {}
    return bool(at(internal, "load", "extraDirs")) or (internal.get("enabled") is True and not internal.get("entries"))


def _extra_paths(config: dict[str, Any]) -> list[Any]:
    paths = at(config, "memory", "search", "extraPaths")
    return paths if isinstance(paths, list) else []


def _missing_path(homes: Homes, config: dict[str, Any], cards: Path | None) -> bool:
    if cards is None or str(cards) in _extra_paths(config):
        return False
    return not os.path.realpath(cards).startswith(os.path.realpath(own_workspace(homes)) + os.sep)
