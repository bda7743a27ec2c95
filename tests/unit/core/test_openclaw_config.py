"""Whose OpenClaw's main session is, by its configuration and by who was paired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truekeep.core.harness_paths import find_homes
from truekeep.core.openclaw_config import is_main_private_session

MAIN = "agent:main:main"
SHARED: list[dict[str, Any]] = [
    {"session": {"groupScope": "main"}},
    {"bindings": [{"agentId": "main", "session": {"groupScope": "main"}}]},
    {"channels": {"telegram": {"dmPolicy": "open"}}},
    {"channels": {"slack": {"dm": {"policy": "open"}}}},
    {"channels": {"whatsapp": {"accounts": {"biz": {"dmPolicy": "open"}}}}},
    {"channels": {"whatsapp": {"allowFrom": ["*"]}}},
    {"channels": {"whatsapp": {"dmPolicy": "allowlist", "allowFrom": ["+1", "+2", "+3"]}}},
    {"channels": {"discord": {"dm": {"policy": "allowlist", "allowFrom": ["1", "2"]}}}},
    {"channels": {"whatsapp": {"allowFrom": ["+1"], "accounts": {"biz": {"allowFrom": ["+2"]}}}}},
    {
        "session": {"dmScope": "per-peer"},
        "bindings": [{"session": {"dmScope": "main"}}],
        "channels": {"telegram": {"dmPolicy": "open"}},
    },
    {"agents": {"entries": {"ada": {}}}},
    {"agents": {"list": [{"id": "main"}, {"id": "work", "default": True}]}},
    {"agents": {"entries": {"main": {}, "work": {"default": True}}}},
    {"agents": {"entries": {"main": {}, "work": {}}}},
]
PRIVATE: list[tuple[str, dict[str, Any]]] = [
    (MAIN, {}),
    (MAIN, {"session": {"groupScope": "per-group"}, "channels": {"telegram": {"dmPolicy": "pairing"}}}),
    (MAIN, {"session": {"dmScope": "per-peer"}, "channels": {"telegram": {"dmPolicy": "open", "allowFrom": ["*"]}}}),
    (MAIN, {"channels": {"telegram": {"allowFrom": ["7", "tg:7"]}, "whatsapp": {"allowFrom": ["+1"]}}}),
    (MAIN, {"channels": {"telegram": {"groupPolicy": "open", "groupAllowFrom": ["*"]}}}),
    (MAIN, {"agents": {"list": [{"id": "main"}]}}),
    ("agent:ada:main", {"agents": {"entries": {"ada": {}}}}),
    ("agent:work:main", {"agents": {"list": [{"id": "main"}, {"id": "work", "default": True}]}}),
    ("agent:work:main", {"agents": {"entries": {"main": {}, "work": {"default": True}}}}),
    (
        "agent:home:main",
        {"agents": {"entries": {"home": {}, "work": {}}, "defaults": {"systemAgent": {"agentId": "home"}}}},
    ),
]


@pytest.mark.parametrize("config", [*SHARED, {"channels": {"$include": "rest.json5"}}])
def test_a_main_session_that_others_share_is_not_private(own_home: Path, config: dict[str, Any]) -> None:
    assert not is_main_private_session(config, MAIN, find_homes())


@pytest.mark.parametrize(("key", "config"), PRIVATE)
def test_the_owners_main_session_is_private(own_home: Path, key: str, config: dict[str, Any]) -> None:
    assert is_main_private_session(config, key, find_homes())


@pytest.mark.parametrize(
    ("stored", "is_private"),
    [
        ({"telegram": ["7"]}, True),
        ({"telegram": ["7", "8"]}, False),
        ({"telegram": ["8"], "telegram-work": ["7"]}, False),
        ({"whatsapp": ["+1"]}, True),
        ({"signal": ["*"]}, False),
        ({"telegram": None}, False),
    ],
)
def test_senders_that_were_paired_count(own_home: Path, stored: dict[str, Any], is_private: bool) -> None:
    folder = own_home / ".openclaw" / "credentials"
    folder.mkdir(parents=True)
    for name, senders in stored.items():
        text = json.dumps({"version": 1, "allowFrom": senders}) if senders is not None else "{ half"
        (folder / f"{name}-allowFrom.json").write_text(text)
    config = {"channels": {"telegram": {"dmPolicy": "pairing", "allowFrom": ["7"]}}}
    assert is_main_private_session(config, MAIN, find_homes()) == is_private


@pytest.mark.parametrize("odd", [None, 7, "x", [], [None], {"a": 7}, {"a": None}])
def test_odd_values_break_nothing(own_home: Path, odd: Any) -> None:
    for key in ("session", "bindings", "channels", "agents"):
        assert isinstance(is_main_private_session({key: odd}, MAIN, find_homes()), bool)
