"""Reads OpenClaw's configuration, which is JSON5."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from truekeep.core.harness_files import UnreadableHarnessFile, at, parse_object, read_bytes
from truekeep.core.harness_paths import Homes

_MAX_DEPTH = 100


def read_config(homes: Homes) -> dict[str, Any]:
    """The values in openclaw.json; {} if it does not exist."""
    config = parse_config(read_bytes(homes.openclaw_json) or b"{}")
    if config is None:
        raise UnreadableHarnessFile(homes.openclaw_json, "is not JSON5")
    return config


def parse_config(data: bytes) -> dict[str, Any] | None:
    """Parse JSON or JSON5; None if it is neither, or not an object."""
    value = parse_object(data)
    if value is not None:
        return value
    try:
        found = parse_json5(data.decode("utf-8-sig"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def parse_json5(text: str) -> Any:
    """Parse JSON5. Raises ValueError."""
    import pyjson5

    try:
        return pyjson5.decode(text, maxdepth=_MAX_DEPTH)
    except pyjson5.Json5Exception as error:
        raise ValueError(str(error.args[0])) from error


def named_workspace(homes: Homes, config: dict[str, Any]) -> str:
    """The workspace of the owner's agent, from the configuration or the environment; "" if neither names one.

    Resolved as OpenClaw does: the agent's own folder, else the default for all agents. With several agents and none
    marked as the owner's, the default folder only contains theirs and does not count.
    """
    agents = _agents(config)
    owner = _owner(config, agents)
    named = at(agents.get(owner), "workspace")
    if not isinstance(named, str) or not named.strip():
        is_shared = len(agents) > 1 and not at(agents.get(owner), "default")
        named = at(config, "agents", "defaults", "workspace")
        if is_shared or not isinstance(named, str):
            named = os.environ.get("OPENCLAW_WORKSPACE_DIR") or ""
    named = named.strip()
    return os.path.abspath(homes.home / os.path.expanduser(named)) if named else ""


def named_workspaces(homes: Homes, config: dict[str, Any]) -> set[str]:
    """The workspaces of all agents that the configuration or the environment names."""
    named = (at(entry, "workspace") for entry in _agents(config).values())
    found = {os.path.abspath(homes.home / os.path.expanduser(path.strip())) for path in named if isinstance(path, str)}
    return {path for path in (*found, named_workspace(homes, config)) if path}


def _agents(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The configured agents, by id."""
    entries = at(config, "agents", "entries")
    if isinstance(entries, dict):
        return {str(name).lower(): entry for name, entry in entries.items() if isinstance(entry, dict)}
    listed = at(config, "agents", "list")
    found = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {str(entry.get("id") or "main").lower(): entry for entry in found}


def _owner(config: dict[str, Any], agents: dict[str, dict[str, Any]]) -> str:
    """The id of the only agent, or of the one marked as default; "" if none is marked."""
    if len(agents) < 2:
        return next(iter(agents), "main")
    marked = [name for name, entry in agents.items() if entry.get("default") is True]
    return marked[0] if marked else str(at(config, "agents", "defaults", "systemAgent", "agentId") or "").lower()


# --- The main private session ----------------------------------------------------------------------------------------


def is_main_private_session(config: dict[str, Any], session_key: str, homes: Homes) -> bool:
    """True if this is the main session of the owner's agent and only the owner can write to it."""
    match = re.fullmatch(r"agent:([^:\s]+):main", session_key)
    if match is None or _has_include(config):  # included files are not read
        return False
    return match[1] == _owner(config, _agents(config)).strip() and not _is_main_shared(config, homes)


def _has_include(value: Any) -> bool:
    return (isinstance(value, dict) and "$include" in value) or any(map(_has_include, _items(value)))


def _is_main_shared(config: dict[str, Any], homes: Homes) -> bool:
    """True if groups, strangers, or several senders of a channel can write to the main session."""
    bindings = config.get("bindings")
    routes = [config.get("session"), *(at(item, "session") for item in _items(bindings))]
    if any(at(route, "groupScope") == "main" for route in routes):
        return True
    if "main" not in (at(config, "session", "dmScope") or "main", *(at(route, "dmScope") for route in routes[1:])):
        return False
    channels = config.get("channels")
    senders: dict[str, set[str]] = {}
    for name, channel in channels.items() if isinstance(channels, dict) else ():
        for account in (channel, *_items(at(channel, "accounts"))):
            for policy, allowed in ((at(account, "dmPolicy"), at(account, "allowFrom")), _nested(account)):
                if policy == "open":
                    return True
                senders.setdefault(name, set()).update(map(_sender, _items(allowed)))
    for name, paired in _paired_senders(homes):
        fitting = [known for known in senders if name == known or name.startswith(f"{known}-")]
        senders.setdefault(max(fitting, key=len, default=name), set()).update(paired)
    return any("*" in found or len(found) > 1 for found in senders.values())


def _nested(account: Any) -> tuple[Any, Any]:
    """Policy and senders of direct messages, in the place where some channels have them."""
    return at(account, "dm", "policy"), at(account, "dm", "allowFrom")


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _sender(value: Any) -> str:
    """A sender without its optional channel prefix."""
    return str(value).strip().rpartition(":")[2].lower()


def _paired_senders(homes: Homes) -> Iterator[tuple[str, set[str]]]:
    """Senders allowed by pairing: for each file its channel (and account) and senders."""
    for path in sorted((homes.openclaw / "credentials").glob("*-allowFrom.json")):
        name = path.name.removesuffix("-allowFrom.json")
        try:
            stored = parse_object(read_bytes(path) or b"{}")
        except UnreadableHarnessFile:
            stored = None
        yield name, {"*"} if stored is None else set(map(_sender, _items(stored.get("allowFrom"))))
