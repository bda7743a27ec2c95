"""Reports the connections of this machine: reads the harnesses' files and runs the hook once. Changes nothing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from truekeep.core import child_process
from truekeep.core.harness_files import UnreadableHarnessFile, read_bytes
from truekeep.core.harness_paths import Homes
from truekeep.integrations.harnesses.base import Hooks, InstallState
from truekeep.integrations.harnesses.codex import TRUST_STEP
from truekeep.integrations.harnesses.instruction_block import RULE_MARKS
from truekeep.integrations.harnesses.plan import HARNESSES, find_programs
from truekeep.integrations.harnesses.plugin_files import HOOKS
from truekeep.text.managed_block import BrokenBlock, find_block

PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The connection of one harness."""

    harness: str
    program: str | None  # None if not installed
    is_connected: bool  # according to its own files
    hooks: Hooks  # "ready" if it will run them
    has_rule: bool  # in the instructions of this repository or of the user
    rule_path: Path | None
    has_mcp: bool
    problems: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        return self.program is None or (self.is_connected and not self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The result of running the hook as a harness would."""

    is_well: bool
    seconds: float
    why: str = ""


def connection_state(homes: Homes, *, root: Path | None, cards: Path | None) -> tuple[list[Connection], Probe]:
    """The connection of every harness, and the result of running the hook."""
    return see_connections(homes, root=root, cards=cards), probe_hook()


def see_connections(homes: Homes, *, root: Path | None, cards: Path | None) -> list[Connection]:
    """The connection of every harness, from its files."""
    programs = find_programs(homes)
    return [_look(name, programs[name], homes, root, cards) for name in HARNESSES]


def _look(name: str, program: str | None, homes: Homes, root: Path | None, cards: Path | None) -> Connection:
    problems = []
    try:
        standing = HARNESSES[name].look(homes, cards)
    except UnreadableHarnessFile as error:
        standing = InstallState()
        problems.append(str(error))
    rule = _rule(name, homes, root)
    if standing.note:
        problems.append(standing.note)
    if standing.is_registered:
        problems.extend(_hook_problems(standing.hooks))
        if rule is None and HARNESSES[name].rule_path(homes, root) is not None:
            problems.append(_MISSING_RULES[name])
    return Connection(
        harness=name,
        program=program,
        is_connected=standing.is_registered,
        hooks=standing.hooks,
        has_rule=rule is not None,
        rule_path=rule,
        has_mcp=standing.has_mcp,
        problems=tuple(problems),
    )


_MISSING_RULE = "the closeout rule is neither in this repository nor in the user's instructions"
_MISSING_RULES = {"claude": _MISSING_RULE, "codex": _MISSING_RULE, "openclaw": "the checkpoint rule is not in SOUL.md"}
SPOKEN = {"claude": "Claude Code", "codex": "Codex"}  # harnesses that read hooks when a session starts


def next_steps(homes: Homes, harnesses: Sequence[str], *, is_new: bool) -> list[str]:
    """What the user has to do after connecting; `is_new`: something was connected just now."""
    steps = []
    if is_new and (names := [SPOKEN[name] for name in harnesses if name in SPOKEN]):
        steps.append(f"restart {' and '.join(names)}; sessions already running will not pick this up.")
        steps.append(
            "run `truekeep connect --check` to test the connection; after a session, `truekeep status` counts it."
        )
    with suppress(UnreadableHarnessFile):
        if "codex" in harnesses and HARNESSES["codex"].look(homes, None).hooks in ("untrusted", "modified"):
            steps.append(TRUST_STEP)
    if "openclaw" in harnesses:
        steps.append("restart OpenClaw's gateway to load the hook pack: `openclaw gateway restart`.")
    if child_process.find_program("truekeep") is None:
        steps.append("put `truekeep` on PATH, or the hooks and the MCP server will not work.")
    return steps


def _hook_problems(hooks: Hooks) -> list[str]:
    if hooks == "untrusted":
        return [TRUST_STEP]
    if hooks == "modified":
        return [f"the plugin is not the one that was trusted. {TRUST_STEP}"]
    if hooks == "unknown":
        return ["it is unknown whether the hooks will run; type /hooks in Codex to see"]
    return []


def _rule(name: str, homes: Homes, root: Path | None) -> Path | None:
    """The instruction file with the closeout rule for a harness; None if there is none."""
    places = [HARNESSES[name].rule_path(homes, place) for place in dict.fromkeys((root, None))]
    if root is not None and name == "claude":
        places.append(root / "AGENTS.md")  # CLAUDE.md may import it
    for path in places:
        if path is None:
            continue
        if path.name == "AGENTS.md" and name == "claude" and b"@AGENTS.md" not in (_read(path.parent / "CLAUDE.md")):
            continue
        try:
            if find_block(_read(path), RULE_MARKS) is not None:
                return path
        except BrokenBlock:
            continue
    return None


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path) or b""
    except UnreadableHarnessFile:
        return b""


def probe_hook() -> Probe:
    """Run the hook with the payload of an unknown session: it has nothing to do and must end quickly."""
    program = child_process.find_program("truekeep")
    if program is None:
        return Probe(is_well=False, seconds=0, why="`truekeep` is not on PATH, so hooks and MCP server do not work")
    payload = {"session_id": "truekeep-check", "transcript_path": None, "cwd": "/", "hook_event_name": HOOKS[-1].event}
    started = time.monotonic()
    try:
        done = subprocess.run(
            [program, "hook", HOOKS[-1].verb],
            input=json.dumps(payload).encode(),
            capture_output=True,
            cwd="/",
            env=child_process.environment(),
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(is_well=False, seconds=PROBE_SECONDS, why=f"no answer within {PROBE_SECONDS:.0f} seconds")
    except OSError as error:
        return Probe(is_well=False, seconds=0, why=f"{program}: {error.strerror}")
    seconds = time.monotonic() - started
    if done.returncode:
        return Probe(
            is_well=False, seconds=seconds, why=f"`truekeep hook {HOOKS[-1].verb}` ended with {done.returncode}"
        )
    return Probe(is_well=True, seconds=seconds)
