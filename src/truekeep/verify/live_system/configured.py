"""Asks about ids (of workflows, jobs, containers) with a command that a person configured.

The command comes from the configuration of the workspace, never from a memory; a memory only gives the id, which
replaces `{id}` in an argument. No shell is involved, and an id that could be read as an option is not asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os.path import basename

from truekeep.core import child_process
from truekeep.text.secrets.scanner import withhold
from truekeep.verify.live_system.answers import SystemAnswer, make_answer

PLACEHOLDER = "{id}"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{2,127}\Z")
_SECONDS = 10.0
_MAX_OUTPUT = 65_536
_MAX_IDS = 50  # of one run


def query_ids(command: Sequence[str], ids: Iterable[str]) -> dict[str, SystemAnswer]:
    """Run the command once for each id: exit code 0 means that it exists, 1 that it does not, any other nothing."""
    asked = sorted({name for name in ids if _ID.match(name)})[:_MAX_IDS]
    return {name: _ask(command, name) for name in asked}


def _ask(command: Sequence[str], name: str) -> SystemAnswer:
    program = child_process.find_program(command[0])
    shown = basename(command[0])
    if program is None:
        return make_answer("unknown", f"{command[0]} is not an absolute path or on PATH")
    arguments = [argument.replace(PLACEHOLDER, name) for argument in command[1:]]
    try:
        done = child_process.run_program(
            [program, *arguments], timeout=_SECONDS, max_output=_MAX_OUTPUT, env=child_process.environment(), cwd="/"
        )
    except OSError as error:
        return make_answer("unknown", f"{shown} cannot be run: {error.strerror}")
    if done.stopped:
        limit = f"within {_SECONDS:g} s" if done.stopped == "timeout" else f"within {_MAX_OUTPUT >> 10} kB"
        return make_answer("unknown", f"{shown} did not answer {limit}")
    said = withhold(done.out.decode("utf-8", "replace").strip().partition("\n")[0][:200])
    if done.code == 0:
        return make_answer("there", f"{shown} says: {said}" if said else f"{shown} has it")
    if done.code == 1:
        return make_answer("absent", f"{shown} does not have it")
    return make_answer("unknown", f"{shown} failed with code {done.code}")
