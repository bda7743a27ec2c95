"""One day: rounds of a timer on every machine, with a person at the host, and what goes wrong in each of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.helpers import git_repo
from tests.support.soak.hand import Hand
from tests.support.soak.letters import InboxFile, Pen
from tests.support.soak.machines import Clock, Machine, write_ssh
from tests.support.soak.programs import Home, Mcp, Programs, Running, Site, Staying

HOURS = 3600
DAYS = 24 * HOURS
JUMPS = (0, 0, 0, 300, -300, 3 * HOURS, -2 * HOURS, DAYS, -26 * HOURS, 33 * DAYS, 800 * DAYS, -7000 * DAYS)
HOST = "hub"
ROOM = 220 << 20  # bytes of the disk that the workspace is on
WARM = 10  # searches before any is measured
FULL = (0, 4096, 40_960, 262_144, 1 << 20)  # bytes that are left of it when it is nearly full


class Scale(NamedTuple):
    """How much of a day."""

    handoffs: int = 1000
    machines: int = 20
    rounds: int = 48
    searches: int = 100  # that are measured, at either end
    seed: int = 10


class Day:
    """The machines, the person, and those that stay."""

    def __init__(self, base: Path, scale: Scale) -> None:
        self.base, self.scale = base, scale
        self.random = Random(scale.seed)
        self.clock = Clock(base)
        self.programs = Programs(base, Random(f"programs {scale.seed}"))
        self.pen = Pen(Random(f"letters {scale.seed}"))
        self.workspace = base / "host" / "workspace"
        self.hand = Hand(self.workspace, Random(f"hand {scale.seed}"))
        self.happened: Counter[str] = Counter()
        self.halves: list[tuple[str, int, bytes]] = []  # letters of which one half is written
        self.first_halves: set[bytes] = set()
        self.staying: list[Staying] = []
        self.can_fill = os.path.ismount(base / "host")
        self._edits = 0
        self._make()

    # The place.

    def _make(self) -> None:
        write_ssh(self.base)
        subprocess.run(["git", "init", "-q", "--bare", str(self.base / "pool.git")], check=True)
        self.host = Machine(self.base, HOST, "", self.clock)
        environment = {**self.host.home.environment, "TRUEKEEP_WORKSPACE": str(self.workspace)}
        self.host.home = self.host.home._replace(environment=environment)
        self.must("init", "--repo", f"{self.host.folder}/repos/*")
        config = self.workspace / ".truekeep" / "config.toml"
        config.write_text(config.read_text().replace("[limits]\n", "[limits]\nsettle_seconds = 0\n"))
        self.must("sync", "add", "pool", "--via", "git", "--remote", str(self.base / "pool.git"))
        host_key = self.must("sync", "key").strip()
        self.machines = [self.host]
        for number in range(1, self.scale.machines):
            machine = Machine(self.base, f"machine-{number}", "git" if number % 2 else "rsync", self.clock)
            repos = f"{machine.folder}/repos/*"
            machine.inbox(0)
            if machine.via == "rsync":
                self.must("sync", "add", machine.name, "--via", "rsync", "--host", machine.name, "--repos", repos)
            else:
                remote = str(self.base / "pool.git")
                self.programs.run(machine.home, "sync", "add", "pool", "--via", "git", "--remote", remote,
                                  "--repos", repos, "--host-key", host_key)  # fmt: skip
            self.machines.append(machine)
        git_repo(self.host.folder / "repos" / "app0", remote="https://github.com/acme/app0.git")

    def must(self, *arguments: str) -> str:
        """A command on the host that has to succeed."""
        code, said = self.programs.run(self.host.home, *arguments)
        assert code == 0, f"{' '.join(arguments)} ended with {code}: {said}"
        return said

    # Living.

    def live(self) -> None:
        self.leave(self.scale.handoffs // 4)  # a memory that is there already
        self.finish_halves()
        self.settle()
        self.staying = [Site(self.host.home, self.base), Mcp(self.host.home, self.base)]
        self.staying.append(Staying(self.host.home, self.base, "index", "--watch"))
        self.first = self.measure(self.staying)
        for staying in self.staying:
            staying.look()
        due = self.scale.handoffs - len(self.pen.written)
        for number in range(self.scale.rounds):
            self.round(due * (number + 1) // self.scale.rounds - due * number // self.scale.rounds)
        self.clock.jump(0)
        self.hand.finish()
        self.finish_halves()
        for machine in self.machines:
            machine.fall_asleep(False)
        self.settle()
        self.must("schedule", "run", "--now")  # what failed in a disturbed run is done now
        self.last = self.measure(self.staying)
        for staying in self.staying:
            staying.look()

    def round(self, letters: int) -> None:
        """What a timer's half hour brings."""
        self.jump()
        self.leave(letters)
        producers = [machine for machine in self.machines if machine.via == "git" and machine.waiting()]
        self.random.shuffle(producers)
        busy = producers[: max(1, len(producers) * 2 // 3)]
        self.programs.run_all([partial(self.start, machine.home, "sync", "run") for machine in busy])
        for machine in self.machines:
            if machine.via == "rsync":
                machine.fall_asleep(self.random.random() < 0.15)
        self.finish_halves(via="rsync")  # nothing but time tells that one is still being written there
        is_full = self.can_fill and self.random.random() < 0.2
        if is_full:
            self.fill()
        jobs = self.random.choice(
            (
                [("schedule", "run", "--now"), ("ingest", "--quiet")],
                [("sync", "run"), ("ingest", "--quiet"), ("ingest", "--quiet")],
                [("ingest", "--quiet"), ("sync", "run"), ("sync", "run"), ("schedule", "run", "--now")],
                [("schedule", "run", "--timer"), ("verify", "--fix"), ("ingest",)],
            )
        )
        if not is_full:
            jobs = [*jobs, *self.decisions()]
        self._edits = 0 if is_full else max(4, self.scale.handoffs // self.scale.rounds // 3)
        home = self.host.home
        self.programs.run_all([partial(self.start, home, *job) for job in jobs], self.meanwhile)
        self.hand.finish()
        if is_full:
            self.search()
            (self.base / "host" / "ballast").unlink()
        for staying in self.staying:
            staying.look()

    def start(self, home: Home, *arguments: str) -> Running:
        """A program, which is killed or stopped as likely as not."""
        fate = self.random.choice(("", "", "kill", "kill", "stop"))
        return self.programs.start(home, *arguments, fate=fate)

    def jump(self) -> None:
        off = self.random.choice(JUMPS)
        self.happened["clock jumps"] += off != self.clock.off and self.clock.can_jump
        self.clock.jump(off)

    def fill(self) -> None:
        """Leave next to nothing of the host's disk."""
        space = os.statvfs(self.base / "host")
        size = space.f_bavail * space.f_frsize - self.random.choice(FULL)
        with (self.base / "host" / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size))
        self.happened["disks full"] += 1

    def meanwhile(self) -> None:
        """While programs run: a person edits, and somebody searches."""
        if (self._edits and self.random.random() < 0.04) or self.hand._open is not None:
            is_new = self.hand._open is None
            self.hand.edit()
            self._edits -= is_new
        if self.random.random() < 0.02:
            self.search()

    def search(self) -> None:
        query = self.random.choice(self.pen.written).mark or "which port does it answer on"
        self.random.choice(self.staying[:2]).search(query)  # type: ignore[attr-defined]
        self.happened["searches"] += 1

    def decisions(self) -> list[tuple[str, ...]]:
        """What a person does with what waits, and with what was written."""
        drafts = sorted((self.workspace / "memory" / "handoff-inbox").glob("*.md"))
        chosen = self.random.sample(drafts, min(2, len(drafts)))
        acts: list[tuple[str, ...]] = [
            ("review", self.random.choice(("approve", "reject")), draft.stem) for draft in chosen
        ]
        if self.random.random() < 0.3:
            acts.append(("undo", str(self.random.randint(1, max(1, len(self.pen.written))))))
        return acts

    # Letters.

    def leave(self, count: int) -> None:
        """The letters of a round, each on some machine; of some, only the first half yet."""
        self.finish_halves()
        day = time.strftime("%Y-%m-%d", time.gmtime())
        cards = self._some_cards()
        for _ in range(count):
            letter = self.pen.write(day, cards)
            machine = self.random.choice(self.machines)
            path = machine.leave(letter, self.random.randrange(6))
            if letter.kind == "half and half":
                self._halve(path, letter, machine.via)

    def _halve(self, path: Path, letter: InboxFile, via: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        half = letter.data[: len(letter.data) // 2]
        os.write(descriptor, half)
        self.halves.append((via, descriptor, letter.data[len(half) :]))
        self.first_halves.add(hashlib.sha256(half).digest())

    def finish_halves(self, via: str = "") -> None:
        done = [half for half in self.halves if via in ("", half[0])]
        for _, descriptor, rest in done:
            os.write(descriptor, rest)
            os.close(descriptor)
        self.halves = [half for half in self.halves if half not in done]

    def _some_cards(self) -> dict[str, str]:
        """What an agent has read: cards that truekeep wrote, and knows under this name.

        Of others it cannot tell what a person wrote into them: an update may drop that.
        """
        folder = self.workspace / "memory" / "cards"
        names = sorted(name for name in os.listdir(folder) if re.fullmatch(r"qx\d{5}[a-z]{4}-[a-z-]+\.md", name))
        found = {}
        for name in self.random.sample(names, min(5, len(names))):
            try:
                found[f"memory/cards/{name}"] = (folder / name).read_text()
            except (OSError, UnicodeDecodeError):
                continue
        return found

    # Its end.

    def settle(self) -> None:
        """Everybody's timer goes off, undisturbed, until nothing waits anywhere."""
        for _ in range(5):
            for machine in self.machines:
                if machine.via == "git":
                    self.programs.run(machine.home, "sync", "run")
            self.must("sync", "run")
            self.must("ingest", "--quiet")
            if not any(machine.waiting() for machine in self.machines):
                return

    def measure(self, staying: Sequence[Staying]) -> dict[str, float]:
        """The CPU seconds of a search by those that stay, while nothing else goes on."""
        marks = [letter.mark for letter in self.pen.written if letter.mark]
        random = Random(f"measure {self.scale.seed}")
        found: dict[str, float] = {}
        for one in staying:
            if isinstance(one, (Site, Mcp)):
                for number in range(WARM + self.scale.searches):
                    if number == WARM:
                        before = one.cpu()
                    one.search(random.choice(marks) if number % 2 else self.pen.says())
                found[one.name] = (one.cpu() - before) / self.scale.searches
        return found

    def said(self, *arguments: str) -> dict[str, object]:
        code, said = self.programs.run(self.host.home, *arguments, "--json")
        try:
            return {"exit": code, **json.loads(said)}
        except ValueError:
            return {"exit": code, "said": said}
