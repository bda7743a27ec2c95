"""Agents at work in the walk: the real Claude Code and Codex with a model on loopback, or their hooks without them.

The model is a stub that does what the story says: it works, hears that it left nothing, and leaves a handoff. Where the
programs are not installed, `Replay` does the same acts and calls the hooks with the payloads that they send, recorded
from them (`truekeep hook stop` and so on), with a transcript in their form.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.harnesses import real_programs
from tests.support.model_stubs import Model, Rule, Say, Use, serve_model
from tests.support.walk.world import Machine

REMINDED = "truekeep:begin closeout"  # what the stop hook says, without what Codex escapes
_TYPED = {
    "claude": "claude -p {} --permission-mode acceptEdits --allowedTools Bash",
    "codex": "codex exec {} --dangerously-bypass-hook-trust --dangerously-bypass-approvals-and-sandbox",
}


class Agent(Protocol):
    """Somebody who can be given a task in a repository."""

    is_real: bool

    def work(self, task: str, *, does: str, leaves: str = "") -> str:
        """Give it a task: it runs one command, and one more if it is reminded. Gives all that it was told."""
        ...


@contextmanager
def an_agent(machine: Machine, harness: str) -> Iterator[Agent]:
    """The harness on a machine, put on its PATH if it is there."""
    programs, _ = real_programs()
    if programs is None:
        yield Replay(machine, harness)
        return
    for name in ("node", harness):
        (machine.bin / name).symlink_to(programs / name)
    with serve_model() as model:
        if harness == "claude":
            machine.more |= {
                "ANTHROPIC_BASE_URL": model.url,
                "ANTHROPIC_API_KEY": "not-a-key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "IS_SANDBOX": "1",
            }
        else:
            provider = f'[model_providers.p]\nname = "p"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
            (machine.home / ".codex").mkdir(exist_ok=True)
            (machine.home / ".codex" / "config.toml").write_text(f'model = "m"\nmodel_provider = "p"\n{provider}')
        yield Real(machine, harness, model)


class Real:
    """The program itself."""

    is_real = True

    def __init__(self, machine: Machine, harness: str, model: Model) -> None:
        self._machine, self._harness, self._model = machine, harness, model

    def work(self, task: str, *, does: str, leaves: str = "") -> str:
        rules: list[Rule] = [(task, [self._shell(f"{does} && echo the-work-is-done")])]
        rules.append(("the-work-is-done", [Say("It is done.")]))
        if leaves:
            rules += [(REMINDED, [self._shell(leaves)]), ("ingest will", [Say("It is left.")])]
        self._model.expect(*rules)
        self._model.asked.clear()
        with self._machine.world.playing("agent"):
            said = self._machine.types(_TYPED[self._harness].format(shlex.quote(task)))
        heard = "\n".join(asked.text for asked in self._model.asked)
        assert self._model.is_done, f"{said}\nThe model was not asked all that it was to be; it heard:\n{heard[-4000:]}"
        return heard

    def _shell(self, command: str) -> Use:
        if self._harness == "claude":
            return Use("Bash", {"command": command, "description": "Run it"})
        return Use("exec_command", {"cmd": command})


class Replay:
    """The hooks, called as the program calls them, around the same acts."""

    is_real = False

    def __init__(self, machine: Machine, harness: str) -> None:
        self._machine, self._harness = machine, harness
        self._sessions = 0

    def work(self, task: str, *, does: str, leaves: str = "") -> str:
        with self._machine.world.playing("agent"):
            return self._work(task, does=does, leaves=leaves)

    def _work(self, task: str, *, does: str, leaves: str) -> str:
        self._sessions += 1
        heard = self._hook("session-start", source="startup") + self._hook("user-prompt-submit", prompt=task)
        self._act(does)
        if leaves:
            told = self._hook("stop", stop_hook_active=False)
            assert REMINDED in told, told
            self._act(leaves)
            heard += told
            assert not self._hook("stop", stop_hook_active=True)
        self._hook("session-end", reason="other")
        return heard

    @property
    def _session(self) -> str:
        return f"5e551011-aaaa-4bbb-8ccc-{self._machine.name:0>6.6}{self._sessions:06}"

    def _act(self, command: str) -> None:
        self._machine.types(command)
        if self._harness == "claude":
            use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}
            row: dict[str, object] = {"type": "assistant", "message": {"role": "assistant", "content": [use]}}
        else:
            ran = {"type": "exec_command_end", "command": ["bash", "-lc", command], "exit_code": 0}
            row = {"type": "event_msg", "payload": ran}
        with self._transcript.open("a") as file:
            file.write(json.dumps(row) + "\n")

    @property
    def _transcript(self) -> Path:
        folder = self._machine.home / (".claude/projects/p" if self._harness == "claude" else ".codex/sessions/2026")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._session}.jsonl"
        path.touch()
        return path

    def _hook(self, event: str, **given: object) -> str:
        payload = {
            "session_id": self._session,
            "cwd": str(self._machine.cwd),
            "transcript_path": str(self._transcript),
            "hook_event_name": event.title().replace("-", ""),
            **given,
        }
        return self._machine.types(f"truekeep hook {event} --for {self._harness}", given=json.dumps(payload))
