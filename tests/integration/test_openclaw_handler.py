"""OpenClaw's handler, run by node as the gateway would; any node will do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import Place
from tests.support.programs import find, need
from tests.unit.core.test_openclaw_config import PRIVATE, SHARED
from truekeep.core.harness_paths import find_homes
from truekeep.core.openclaw_config import is_main_private_session
from truekeep.integrations.harnesses import plugin_files

HARNESS_JS = """
import handler from "./handler.mjs";
const files = [{ name: "AGENTS.md", path: "/w/AGENTS.md", content: "x", missing: false }];
const [type, action, sessionKey, more] = JSON.parse(process.argv[2]);
const event = { type, action, sessionKey, messages: [],
  context: { workspaceDir: "/w", bootstrapFiles: files, cfg: { token: "s3cret" }, ...more } };
await handler(event);
console.log(JSON.stringify(event.context.bootstrapFiles));
"""
MAIN = "agent:main:main"
BOOTSTRAP = ("agent", "bootstrap")


class Gateway:
    """What runs the handler, with a stand-in for truekeep on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "handler.mjs").write_text(plugin_files.PACK_FILES["handler.js"])
        (folder / "run.mjs").write_text(HARNESS_JS)

    def install(self, script: str) -> None:
        program = self.folder / "bin" / "truekeep"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def fire(self, event: tuple[str, str] = BOOTSTRAP, key: Any = MAIN, **context: Any) -> list[dict[str, Any]]:
        """The files that the session begins with."""
        done = subprocess.run(
            ["node", str(self.folder / "run.mjs"), json.dumps([*event, key, context])],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


@pytest.fixture
def gateway(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    need("node")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").symlink_to(find("node") or "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Gateway(tmp_path)


def test_the_brief_is_added(gateway: Gateway, tmp_path: Path) -> None:
    gateway.install(f'echo "$*" > "{tmp_path}/words"; cat > "{tmp_path}/told"; echo The brief.')
    files = gateway.fire()
    assert [file["name"] for file in files] == ["AGENTS.md", "TRUEKEEP.md"]
    assert files[1]["content"] == "The brief."
    assert (tmp_path / "words").read_text() == "hook agent-bootstrap --for openclaw\n"
    told = (tmp_path / "told").read_text()
    assert json.loads(told) == {
        "hook_event_name": "agent:bootstrap",
        "session_id": "",
        "session_key": "agent:main:main",
        "access": {"session": {}, "agents": {"defaults": {"systemAgent": {}}}},
        "cwd": "/w",
        "loaded": ["AGENTS.md"],
    }
    assert "s3cret" not in told
    assert not (tmp_path / "TRUEKEEP.md").exists()  # it is never a file that a later session could find


@pytest.mark.parametrize(
    ("event", "context"),
    [
        (("agent", "bootstrap"), {"sessionId": "one"}),
        (("session", "compact:before"), {"sessionId": "one", "tokenCount": 7}),
        (("command", "new"), {"previousSessionEntry": {"sessionId": "one"}, "sessionEntry": {"sessionId": "two"}}),
        (("session", "auto-reset"), {"sessionEntry": {"sessionId": "one"}, "nextSessionId": "two"}),
    ],
)
def test_the_session_is_named_that_begins_or_ends(
    gateway: Gateway, tmp_path: Path, event: tuple[str, str], context: dict[str, Any]
) -> None:
    gateway.install(f'cat > "{tmp_path}/told"')
    gateway.fire(event, **context)
    assert json.loads((tmp_path / "told").read_text())["session_id"] == "one"


@pytest.mark.parametrize("script", ["", "exit 3", "echo half; exit 1", "head -c 200000 /dev/zero", "exec sleep 600"])
def test_whatever_goes_wrong_the_session_goes_on(gateway: Gateway, script: str) -> None:
    if script:
        gateway.install(script)
    assert len(gateway.fire()) == 1


def test_other_events_add_nothing(gateway: Gateway) -> None:
    gateway.install("echo x")
    assert len(gateway.fire(("command", "new"))) == 1
    assert len(gateway.fire(("message", "sent"))) == 1


# --- Who may see memory ----------------------------------------------------------------------------------------------

NOT_PRIVATE: list[Any] = [
    "agent:main:whatsapp:group:123@g.us",
    "agent:main:discord:channel:42",
    "agent:main:discord:channel:42:thread:7",
    "agent:main:telegram:group:-100:topic:42",
    "agent:main:telegram:direct:7",  # who that is, nobody knows here
    "agent:main:direct:7",
    "agent:main:telegram:default:direct:7",
    "agent:main:main:thread:17",
    "agent:main:subagent:1",
    "agent:main:cron:7",
    "agent:main:boot:3",
    "agent:main:dashboard:1",
    "agent:main:explicit:x",
    "agent:work:main",
    "agent::main",
    "agent:main:main ",
    "agent:main:main\n",
    " agent:main:main",
    "agent:main:MAIN",
    "agent:main:main:heartbeat",
    "agent:x:agent:main:main",
    "cron:7",
    "hook:1",
    "global",
    "unknown",
    "main",
    "",
    None,
    7,
    {},
]


@pytest.mark.parametrize("key", [key for key in NOT_PRIVATE if key != "agent:work:main"])  # which truekeep judges
def test_memory_is_for_the_main_private_session_alone(gateway: Gateway, key: Any) -> None:
    gateway.install("echo secret")
    assert len(gateway.fire(key=key)) == 1


def test_without_a_configuration_there_is_no_memory(gateway: Gateway) -> None:
    gateway.install("echo secret")
    assert len(gateway.fire(cfg=None)) == 1


@pytest.mark.parametrize(("key", "config"), [*((MAIN, config) for config in SHARED), *PRIVATE])
def test_what_the_gateway_sends_is_judged_like_its_configuration(
    gateway: Gateway, own_home: Path, key: str, config: Any
) -> None:
    gateway.install(f'cat > "{own_home}/told"')
    gateway.fire(key=key, cfg={**config, "gateway": {"auth": {"token": "s3cret"}}})
    told = (own_home / "told").read_text()
    assert "s3cret" not in told
    homes = find_homes()
    sent = is_main_private_session(json.loads(told)["access"], key, homes)
    assert sent == is_main_private_session(config, key, homes)


def test_with_the_real_program(gateway: Gateway, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    (place.workspace / "HANDOVER.md").write_text("# Handover\n\n## Last Action\n\nSplit the parser.\n")
    gateway.install(f'exec "{sys.executable}" -m truekeep "$@"')
    assert "Split the parser." in gateway.fire()[1]["content"]
    assert "Split" not in json.dumps(gateway.fire(key="agent:main:whatsapp:group:1"))
