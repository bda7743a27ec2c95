"""The test handoff of a producer, which travels to the canonical host and comes back as a receipt.

Ingest recognises a test handoff and processes it without filing anything, so that its receipt shows that the route
works. The last test is recorded in the user's state folder.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.machine import machine_name, own_state
from truekeep.core.model import TEST_MARK
from truekeep.handoffs.format import handoff_name
from truekeep.handoffs.inbox import PROCESSED, Inbox, deliver
from truekeep.handoffs.sync.processes import ToolMissing, run_tool
from truekeep.handoffs.sync.receipts import parse_key
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.handoffs.sync.ssh import FAILED, host_of, ssh_command, unreachable

FILE = "machine-test.json"


class Test(NamedTuple):
    """A test handoff that was sent."""

    path: str
    sent_at: float

    @property
    def has_returned(self) -> bool:
        """True if the host has processed it: it was moved to processed/."""
        return not os.path.lexists(self.path) and os.path.lexists(self._processed)

    @property
    def is_lost(self) -> bool:
        return not os.path.lexists(self.path) and not os.path.lexists(self._processed)

    @property
    def _processed(self) -> str:
        folder, name = os.path.split(self.path)
        return os.path.join(folder, PROCESSED, name)

    @property
    def returned_at(self) -> float | None:
        """When it was moved to processed/."""
        try:
            return os.stat(self._processed).st_ctime if self.has_returned else None
        except OSError:
            return None


def ask_key(host: str, ssh_options: Sequence[str], port: int = 0) -> str:
    """Ask the canonical host for its receipt key over ssh."""
    by_hand = "or run `truekeep sync key` there and give its output as --host-key"
    route = Route("host", "rsync", {"host": host, "ssh_options": tuple(ssh_options), "port": port})
    command = [*ssh_command(route), "--", host_of(route), "PATH=$PATH:$HOME/.local/bin truekeep sync key"]
    try:
        ran = run_tool(command, seconds=60)
        if ran.code in (FAILED, -1):
            raise unreachable(host, ran, port=port)
    except ToolMissing as error:
        raise BadSetup("ssh is not installed", hint=f"install it, {by_hand}") from error
    except Unreachable as error:
        raise BadSetup(error.problem, hint=f"{error.hint}, {by_hand}") from error
    lines = ran.out.decode("ascii", "replace").split()
    try:
        parse_key(lines[-1] if ran.ok and lines else "")
    except BadInput as error:
        said = ran.last_words or f"exit {ran.code}"
        raise BadSetup(
            f"{host} gave no key: {said}",
            hint=f"check that it is the canonical host and has this truekeep, {by_hand}",
        ) from error
    return lines[-1]


def make_inboxes(roots: Sequence[Path], writers: Mapping[str, str]) -> list[str]:
    """Create missing inboxes of these repositories; returns those created."""
    made = []
    for root in roots:
        for folder in dict.fromkeys(writers.values()):
            path = root / folder
            if not path.is_dir():
                path.mkdir(parents=True)
                made.append(str(path))
    return made


def send_test(root: Path, writers: Mapping[str, str]) -> Test:
    """Write a test handoff into a repository's inbox, unless one is still on its way."""
    before = last_test()
    if before is not None and os.path.lexists(before.path):
        return before
    writer, folder = next(iter(writers.items()))
    now = datetime.now().astimezone()
    text = (
        f"{TEST_MARK} {uuid.uuid4()}\n\n"
        f"Sent by `truekeep connect machine` on {machine_name()}. It tries the way to the host and is filed nowhere.\n"
    )
    path = deliver(Inbox(root=root, folder=folder, writer=writer), handoff_name("truekeep test", now), text.encode())
    test = Test(str(path), time.time())
    _keep(test)
    return test


def last_test() -> Test | None:
    try:
        given = json.loads((Path(own_state()) / FILE).read_bytes())
        return Test(str(given["path"]), float(given["sent_at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(test: Test) -> None:
    file_io.write_whole(Path(own_state()) / FILE, json.dumps(test._asdict()).encode())
