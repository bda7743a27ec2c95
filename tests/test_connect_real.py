"""Connect and disconnect with the real programs: Claude Code, Codex and OpenClaw from the package registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.harnesses import real_programs
from tests.helpers import git_repo
from tests.test_connect import CONFIG, OPENCLAW, SETTINGS, VARIABLES, connect, disconnect, picture
from truekeep.connect import bundle, check
from truekeep.connect.homes import Homes, find_homes

TOML = {
    "crlf-inline-tables": CONFIG,
    "comments": b'# top\nmodel = "m" # here\n\n[tui] # there\nnotifications = ["a", "b"] # and here\n# end\n',
    "no-final-newline": b'model = "m"\n[projects."/x y"]\ntrust_level = "trusted"',
    "own-hook": b'[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "other"\n',
    "none": None,
}
JSON = {
    "crlf-own-hook": SETTINGS,
    "no-final-newline": b'{\n\t"permissions": {"allow": ["Bash(ls:*)"]},\n\t"env": {}\n}',
    "bom": b'\xef\xbb\xbf{"theme": "dark"}\n',
    "other-plugin": b'{"enabledPlugins": {"a@b": false}, "extraKnownMarketplaces": {}}\n',
    "none": None,
}


@pytest.fixture
def real(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    """A fresh machine on which the real programs can be linked, one by one."""
    programs, why = real_programs()
    if programs is None:
        pytest.skip(why)
    for name in (*VARIABLES, "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").symlink_to(programs / "node")
    return find_homes()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return git_repo(tmp_path / "app")


def link(tmp_path: Path, *names: str) -> None:
    programs, _ = real_programs()
    assert programs is not None
    for name in names:
        (tmp_path / "bin" / name).symlink_to(programs / name)


def ask(*arguments: str | Path, given: str = "", cwd: Path | None = None, **more: str) -> str:
    done = subprocess.run(
        [str(word) for word in arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **more},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-800:]} {done.stderr[-800:]}"
    return done.stdout + done.stderr


def put(path: Path, data: bytes | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if data is not None:
        path.write_bytes(data)


# Claude Code.


@pytest.mark.parametrize("name", JSON)
def test_claude_there_and_back(name: str, real: Homes, repo: Path, tmp_path: Path, own_home: Path) -> None:
    link(tmp_path, "claude")
    put(real.claude / "settings.json", JSON[name])
    before = picture(repo, own_home)
    assert connect(repo, "--harness", "claude") == 0
    assert connect(repo, "--harness", "claude") == 0
    if name == "crlf-own-hook":
        (found,) = json.loads(ask("claude", "plugin", "list", "--json"))
        assert (found["id"], found["enabled"]) == ("truekeep@truekeep", True)
        assert found["readFromFolder"] == str(real.market / "truekeep")
        settings = json.loads((real.claude / "settings.json").read_bytes())
        assert settings["hooks"]["Stop"][0]["hooks"][0]["command"] == "other"
    assert disconnect(repo) == 0
    theirs = str(real.claude / "backups")  # copies of .claude.json that Claude Code makes for itself
    assert {path: what for path, what in picture(repo, own_home).items() if not path.startswith(theirs)} == before


def test_claude_finds_nothing_to_say_against_the_bundle(real: Homes, repo: Path, tmp_path: Path) -> None:
    link(tmp_path, "claude")
    connect(repo, "--harness", "claude")
    for folder in (real.market, real.market / "truekeep"):
        assert "Validation passed" in ask("claude", "plugin", "validate", folder, "--strict")


# Codex.


def codex_hooks(cwd: Path, *more: tuple[str, dict[str, Any]]) -> list[Any]:
    """Ask Codex itself about its hooks, and whatever else."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("initialize", {"clientInfo": {"name": "test", "title": "test", "version": "0"}})
    ]
    calls += [("hooks/list", {"cwds": [str(cwd)]}), *more]
    answers: list[Any] = []
    with subprocess.Popen(
        ["codex", "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, parameters) in enumerate(calls):
            server.stdin.write(json.dumps({"id": number, "method": method, "params": parameters}) + "\n")
            if number == 0:
                server.stdin.write('{"method": "initialized"}\n')
            server.stdin.flush()
            answers.append(next(row for line in server.stdout if (row := json.loads(line)).get("id") == number))
        server.stdin.close()
    return answers


def trust_in_codex(cwd: Path) -> None:
    """What the TUI does when a person chooses to trust all."""
    found = codex_hooks(cwd)[1]["result"]["data"][0]["hooks"]
    state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in found}
    edits = [{"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}]
    codex_hooks(cwd, ("config/batchWrite", {"edits": edits}))


@pytest.mark.parametrize("name", TOML)
def test_codex_there_and_back(name: str, real: Homes, repo: Path, tmp_path: Path, own_home: Path) -> None:
    link(tmp_path, "codex")
    put(real.codex / "config.toml", TOML[name])
    before = picture(repo, own_home)
    assert connect(repo, "--harness", "codex") == 0
    assert connect(repo, "--harness", "codex") == 0
    assert "installed, enabled" in ask("codex", "plugin", "list")
    assert disconnect(repo) == 0
    shutil.rmtree(real.codex / "tmp", ignore_errors=True)  # Codex's own, where its home is in no temporary folder
    assert picture(repo, own_home) == before


def test_codex_trust_is_read_as_codex_reads_it(real: Homes, repo: Path, tmp_path: Path) -> None:
    """Both digests are ours to compute or to know, and a changed bundle is seen as Codex sees it."""
    link(tmp_path, "codex")
    put(real.codex / "config.toml", TOML["crlf-inline-tables"])
    connect(repo, "--harness", "codex")

    def told() -> tuple[set[str], str]:
        found = codex_hooks(repo)[1]["result"]["data"][0]["hooks"]
        connections, _ = check.connection_state(real, root=repo, cards=None)
        hashes = {hook["key"]: hook["currentHash"] for hook in found}
        assert hashes.keys() == {bundle.codex_hook_key(hook) for hook in bundle.HOOKS}
        for hook in bundle.HOOKS:
            assert hashes[bundle.codex_hook_key(hook)].split("/")[0] == bundle.codex_hook_hash(hook)
        return {hook["trustStatus"] for hook in found}, connections[1].hooks

    found = codex_hooks(repo)[1]["result"]["data"][0]["hooks"]
    assert {hook["currentHash"].split("/")[1] for hook in found} == {bundle.CODEX_CONTENT}
    assert told() == ({"untrusted"}, "untrusted")
    trust_in_codex(repo)
    assert told() == ({"trusted"}, "ready")
    assert disconnect(repo) == 0
    assert (real.codex / "config.toml").read_bytes() == TOML["crlf-inline-tables"]


class Model(BaseHTTPRequestHandler):
    """Answers every request of Codex with one finished message."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        message = {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "output_text", "text": "ok"}],
        }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events = (
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        )
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *arguments: object) -> None:
        return


@pytest.fixture
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_codex_runs_trusted_hooks_and_a_missing_program_is_silence(
    real: Homes, repo: Path, tmp_path: Path, model: str
) -> None:
    link(tmp_path, "codex")
    provider = f'[model_providers.p]\nname = "p"\nbase_url = "{model}"\nwire_api = "responses"\n'
    config = f'model = "m"\nmodel_provider = "p"\n{provider}'
    put(real.codex / "config.toml", config.encode())
    connect(repo, "--harness", "codex")
    program = tmp_path / "bin" / "truekeep"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/ran"\n')
    program.chmod(0o755)
    talk = ("codex", "exec", "hello")
    ask(*talk, cwd=repo)
    assert "hook" not in (tmp_path / "ran").read_text()  # not trusted: not a word, not even a failure
    trust_in_codex(repo)
    said = ask(*talk, cwd=repo)
    assert {"hook session-start", "hook user-prompt-submit", "hook stop"} <= set(
        (tmp_path / "ran").read_text().split("\n")
    )
    assert "Failed" not in said
    program.unlink()
    assert "Failed" not in ask(*talk, cwd=repo)


# OpenClaw.


def test_openclaw_there_and_back(real: Homes, repo: Path, tmp_path: Path) -> None:
    """Its commands take long, so this is one story: JSON5 with comments, an extra path, back to the same bytes."""
    link(tmp_path, "openclaw")
    put(real.openclaw_json, OPENCLAW)
    assert connect(repo, "--harness", "openclaw") == 0
    (found, _) = check.connection_state(real, root=repo, cards=None)
    state = next(item for item in found if item.harness == "openclaw")
    assert (state.is_connected, state.hooks, state.has_mcp) == (True, "ready", True)
    listed = json.loads(ask("openclaw", "hooks", "list", "--json", OPENCLAW_HIDE_BANNER="1"))["hooks"]
    (ours,) = [hook for hook in listed if hook["name"] == "truekeep"]
    assert ours["enabledByConfig"]
    assert ours["unknownEvents"] == []
    assert ours["missing"]["bins"] == ["truekeep"]  # it is not on this PATH
    assert connect(repo, "--harness", "openclaw") == 0
    assert disconnect(repo) == 0
    assert real.openclaw_json.read_bytes() == OPENCLAW
    assert not (real.openclaw / "extensions" / "truekeep").exists()
    assert not (real.openclaw / "hooks").exists()


HARNESS_JS = """
import handler from "./handler.mjs";
const files = [{ name: "AGENTS.md", path: "/w/AGENTS.md", content: "x", missing: false }];
const [type, action, sessionKey = "agent:main:main", more = "{}"] = process.argv.slice(2);
const event = { type, action, sessionKey, messages: [],
  context: { workspaceDir: "/w", bootstrapFiles: files, cfg: { token: "s3cret" }, ...JSON.parse(more) } };
const started = Date.now();
await handler(event);
console.log(JSON.stringify({ files: event.context.bootstrapFiles, ms: Date.now() - started }));
"""


class TestHandler:
    """OpenClaw's handler, run by node as the gateway would."""

    def run(self, tmp_path: Path, script: str | None, *words: str) -> dict[str, Any]:
        (tmp_path / "handler.mjs").write_text(bundle.PACK_FILES["handler.js"])
        (tmp_path / "run.mjs").write_text(HARNESS_JS)
        if script is not None:
            program = tmp_path / "bin" / "truekeep"
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        found: dict[str, Any] = json.loads(ask("node", tmp_path / "run.mjs", *words))
        return found

    def test_the_brief_is_added(self, real: Homes, tmp_path: Path) -> None:
        found = self.run(
            tmp_path, f'echo "$*" > "{tmp_path}/words"; cat > "{tmp_path}/told"; echo The brief.', "agent", "bootstrap"
        )
        assert [file["name"] for file in found["files"]] == ["AGENTS.md", "TRUEKEEP.md"]
        assert found["files"][1]["content"] == "The brief."
        assert (tmp_path / "words").read_text() == "hook agent-bootstrap --for openclaw\n"
        told = (tmp_path / "told").read_text()
        assert json.loads(told) == {
            "hook_event_name": "agent:bootstrap",
            "session_id": "",
            "session_key": "agent:main:main",
            "cwd": "/w",
        }
        assert "s3cret" not in told

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
        self, real: Homes, tmp_path: Path, event: tuple[str, str], context: dict[str, Any]
    ) -> None:
        self.run(tmp_path, f'cat > "{tmp_path}/told"', *event, "agent:main:main", json.dumps(context))
        assert json.loads((tmp_path / "told").read_text())["session_id"] == "one"

    @pytest.mark.parametrize(
        "script", [None, "exit 3", "echo half; exit 1", "head -c 200000 /dev/zero", "exec sleep 20"]
    )
    def test_whatever_goes_wrong_the_session_goes_on(self, real: Homes, tmp_path: Path, script: str | None) -> None:
        found = self.run(tmp_path, script, "agent", "bootstrap")
        assert len(found["files"]) == 1
        assert found["ms"] < 8_000

    def test_other_events_add_nothing(self, real: Homes, tmp_path: Path) -> None:
        assert len(self.run(tmp_path, "echo x", "command", "new")["files"]) == 1
        assert len(self.run(tmp_path, "echo x", "message", "sent")["files"]) == 1

    @pytest.mark.parametrize("key", ["agent:main:subagent:1", "cron:7", "agent:main:boot:3"])
    def test_sessions_of_programs_are_left_alone(self, real: Homes, tmp_path: Path, key: str) -> None:
        assert len(self.run(tmp_path, "echo x", "agent", "bootstrap", key)["files"]) == 1
