"""The rules for agents and the ignore lines that connect puts between marks into a user's files."""

from __future__ import annotations

from collections.abc import Iterable

from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.text.managed_block import BlockMarkers, find_block
from truekeep.text.markdown_lines import FenceReader, without_indent

RULE_MARKS = BlockMarkers(f"{BEGIN_MARK} rule -->", f"{END_MARK} rule -->")
IGNORE_MARKS = BlockMarkers("# truekeep:begin", "# truekeep:end")

_RULE = """\
## Memory handoffs

Long-term memory is shared by all agents and kept by truekeep. This environment may keep notes of its own for the
session; knowledge that outlasts it reaches the others only as a memory handoff. If no shared memory was shown to you
when the session began, `truekeep wake` prints it.

At the end of every substantial task, check whether it produced durable knowledge: a decision and its reason, how
something is set up, a way of working, the cause of a bug and its fix, a preference of the user. If so, leave a
handoff, without waiting to be asked, one for each topic:

    truekeep handoff new --type bugfix --title '...' --summary '...' --fact '...' --evidence '...'

It is checked and put into this repository's inbox:
{inboxes}.
`truekeep handoff new --help` lists the types and options. Updating a card that exists (`--update --card NAME.md`) is
better than a second one on the same topic: on a machine with the memory, `truekeep search '...'` finds it. Leave out
task state, what code and git say anyway, and anything secret.

"Remember X" goes where it is read again: a preference of the user (`--type preference`) to USER.md, a rule of work
(`--type workflow`: always, never, must) to rules/, the state of the project (`truekeep note project . '...'`) to its
file, all else to a card.

At the end of a session, and before its context is compacted, leave a checkpoint: where the work stands, for the next
session here. Each observation has a type (decision, milestone, lesson, context) and an importance from 0 to 1: from 0.8
on it is kept for good, below 0.4 for a week.

    truekeep checkpoint --last-action '...' --next-action '...' --summary '...' --observe lesson 0.7 '...'
"""

CHECKPOINT_RULE = """\
## Checkpoint protocol

For the main private session only; groups, channels and sub-agents leave no checkpoint.

When a session ends or its context is about to be compacted, and after each larger piece of work, what the next session
needs is written to disk, not only said:

    truekeep checkpoint --last-action '...' --next-action '...' --summary '...' --observe lesson 0.7 '...'

It writes HANDOVER.md, the day's log and memory/active-context.md; `--now`, `--next` and `--blocker` update
HEARTBEAT.md, `--decision` and `--change` the logs of decisions and operations, `--subagent LABEL '...'` a sub-agent's
result. Each observation has a type (decision, milestone, lesson, context) and an importance from 0 to 1: from 0.8 on it
is kept for good, below 0.4 for a week. `truekeep checkpoint --help` has the rest.
"""

_NAMES = {"claude": "Claude Code", "codex": "Codex"}


def render_rule(inboxes: Iterable[tuple[str, str]]) -> str:
    """The closeout rule with each writer's inbox."""
    named = [f"`{folder}/` for {_NAMES.get(writer, writer)}" for writer, folder in inboxes]
    return _RULE.format(inboxes=", ".join(named))


def render_ignored(folders: Iterable[str]) -> str:
    """Lines for .gitignore, so that handoffs are not committed."""
    return "".join(f"/{folder}/\n" for folder in folders)


def find_open_fence(data: bytes, marks: BlockMarkers) -> int | None:
    """The line of a code fence that is still open where truekeep's block begins; None if there is none."""
    span = find_block(data, marks)
    fences, opened = FenceReader(), 0
    for number, line in enumerate(data[: span[0] if span else len(data)].split(b"\n"), 1):
        opened = opened if fences.marks else number
        fences.see(without_indent(line.decode("utf-8", "replace")))
    return opened if fences.marks else None
