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

from tests.support.harnesses import need_real_programs
from tests.support.helpers import git_repo
from tests.unit.integrations.test_connect import CONFIG, OPENCLAW, SETTINGS, VARIABLES, connect, disconnect, picture
from truekeep.core.harness_paths import Homes, find_homes
from truekeep.integrations.harnesses import plugin_files, status

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
    programs = need_real_programs()
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
    programs = need_real_programs()
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
        connections, _ = status.connection_state(real, root=repo, cards=None)
        hashes = {hook["key"]: hook["currentHash"] for hook in found}
        assert hashes.keys() == {plugin_files.codex_hook_key(hook) for hook in plugin_files.HOOKS}
        for hook in plugin_files.HOOKS:
            assert hashes[plugin_files.codex_hook_key(hook)].split("/")[0] == plugin_files.codex_hook_hash(hook)
        return {hook["trustStatus"] for hook in found}, connections[1].hooks

    found = codex_hooks(repo)[1]["result"]["data"][0]["hooks"]
    assert {hook["currentHash"].split("/")[1] for hook in found} == {plugin_files.CODEX_CONTENT}
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
    (found, _) = status.connection_state(real, root=repo, cards=None)
    state = next(item for item in found if item.harness == "openclaw")
    assert (state.is_connected, state.hooks, state.has_mcp) == (True, "ready", True)
    told = ask("openclaw", "hooks", "list", "--json", OPENCLAW_HIDE_BANNER="1")
    listed = json.JSONDecoder().raw_decode(told)[0]["hooks"]  # on a busy machine it complains behind it
    (ours,) = [hook for hook in listed if hook["name"] == "truekeep"]
    assert ours["enabledByConfig"]
    assert ours["unknownEvents"] == []
    assert ours["missing"]["bins"] == ["truekeep"]  # it is not on this PATH
    assert connect(repo, "--harness", "openclaw") == 0
    assert disconnect(repo) == 0
    assert real.openclaw_json.read_bytes() == OPENCLAW
    assert not (real.openclaw / "extensions" / "truekeep").exists()
    assert not (real.openclaw / "hooks").exists()
