"""Kills a server process between any two steps of filing handoffs, and looks at what the next one makes of it.

`python -m tests.support.team_crash DATABASE FOLDER` hands in three handoffs and works on them in a forked process that
dies at the n-th step, for n = 1, 2, 3 … until one lives to its end; after each, a process with the same folder or with
an empty one finishes. `… DATABASE FOLDER pause` stops itself (SIGSTOP) just before it would commit, once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.helpers import a_card, a_handoff
from truekeep.server import handoff_queue, record, writer
from truekeep.server.accounts import Caller, WorkspaceAccess
from truekeep.server.handoff_queue import Quotas, hand_in
from truekeep.server.record import Record
from truekeep.server.team_server import TeamServer
from truekeep.server.working_folder import WorkingFolder
from truekeep.workspace.handoffs import Handoffs

STEPS: tuple[tuple[Any, str], ...] = (
    (Record, "take_lease"), (Record, "changes_since"), (Record, "commit"), (WorkingFolder, "follow"),
    (WorkingFolder, "distrust"), (WorkingFolder, "begin"), (WorkingFolder, "changes"),
    (WorkingFolder, "note_committed"), (WorkingFolder, "_write"), (Handoffs, "ingest"), (handoff_queue, "take_batch"),
    (handoff_queue, "settle"), (Record, "_write_files"), (Record, "_write_pages"),
)  # fmt: skip
LEASE = 0.3  # seconds, so that nobody waits long for a dead holder


def kill_at(number: int) -> None:
    """Before each step, and after the two that write: die at the n-th of all."""
    calls = [0]

    def step() -> None:
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            step()
            done = real(*given, **named)
            if real.__name__ in ("commit", "ingest"):
                step()
            return done

        return call

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))


def letters(number: int) -> list[str]:
    return [
        a_handoff(
            card=f"card-{number}-{part}.md",
            title=f"Gate {number} of hall {part}",
            content=a_card(
                f"Gate {number} of hall {part}", f"Gate {number} of hall {part} opens at {part + 5} o'clock."
            ),
        )
        for part in range(3)
    ]


def work(database: str, folder: Path, number: int, *, is_killed: bool, pause: bool = False) -> None:
    """Hand in and file, as one server process."""
    if pause:
        _pause_before_commit()
    server = TeamServer(database, folder)
    if is_killed:
        with server.database.plain() as cursor:
            assert cursor is not None
        caller, reach = Caller(1, "ada", 1, ()), WorkspaceAccess(1, "team", "owner", 1)
        for part, text in enumerate(letters(number)):
            hand_in(
                server.database, caller, reach, text.encode(), name=f"2026-11-14-{number:04d}-{part}.md",
                writer="claude", machine="laptop", repository="github.com/me/app", quotas=Quotas(),
            )  # fmt: skip
        if not pause:
            kill_at(number)
    for _ in range(200):
        server.work_on(1)
        with server.database.plain() as cursor:
            if not cursor.execute("SELECT waiting_workspaces()").fetchall():
                break
        signal.sigtimedwait([], 0.05)
    server.stop()


def _pause_before_commit() -> None:
    real = Record.commit
    paused: list[int] = []

    def commit(self: Record, *given: Any, **named: Any) -> int:
        if not paused:
            paused.append(1)
            os.kill(os.getpid(), signal.SIGSTOP)
        return real(self, *given, **named)

    Record.commit = commit  # type: ignore[method-assign]


def run(act: Callable[[], None]) -> int:
    """Do it in a process of its own; gives how that ended."""
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return os.waitpid(child, 0)[1]


def loop(database: str, folder: Path) -> int:
    number = 0
    while True:
        number += 1
        ended = run(partial(work, database, folder / "one", number, is_killed=True))
        if os.WIFEXITED(ended):
            assert os.WEXITSTATUS(ended) == 0
            return number
        place = folder / ("one" if number % 2 else f"other-{number}")
        assert run(partial(work, database, place, number, is_killed=False)) == 0


def main() -> None:
    database, folder = sys.argv[1], Path(sys.argv[2])
    record.LEASE_SECONDS = LEASE
    assert writer
    if "pause" in sys.argv:
        work(database, folder, 1, is_killed=True, pause=True)
        return
    print(json.dumps({"points": loop(database, folder)}))


if __name__ == "__main__":
    main()
