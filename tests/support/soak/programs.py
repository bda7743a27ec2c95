"""truekeep as processes: started, left alone, stopped for a while or killed; and those that stay the whole day."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

AT_ONCE = 3
PATIENCE = 300.0  # seconds until a program must have ended, or answered
FINE = frozenset((0, 1, 3, 5, 7, 8))  # whatever docs/operations.md has, but a broken set-up and bugs
_LINK = re.compile(r"((http://\S+?)/\?token=\S+)")
_BUG = re.compile(r"Traceback|a bug")


class Home(NamedTuple):
    """A machine as its programs see it."""

    name: str
    folder: Path
    environment: Mapping[str, str]


@dataclass
class Running:
    """A program on its way."""

    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes]
    said: Path
    begun: float
    fate: str  # kill, stop, then go on; else it is left alone
    at: float  # when
    until: float  # when a stopped one goes on

    def attend(self) -> bool:
        """Let its fate happen when its time has come. Gives whether it still runs."""
        now = time.monotonic()
        if self.process.poll() is not None:
            return False
        if now - self.begun > PATIENCE:
            self.process.kill()
            raise AssertionError(f"{' '.join(self.arguments)} does not end: {self.said.read_text()}")
        if self.fate == "kill" and now >= self.at:
            self.process.kill()
        elif self.fate == "stop" and now >= self.at:
            self.process.send_signal(signal.SIGSTOP)
            self.fate = "go on"
        elif self.fate == "go on" and now >= self.until:
            self.process.send_signal(signal.SIGCONT)
            self.fate = "went on"
        return True


@dataclass
class Programs:
    """Whoever starts them, and writes down how they end."""

    base: Path
    random: Random
    ends: Counter[str] = field(default_factory=Counter)  # by verb and exit code
    fates: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    _usual: dict[str, float] = field(default_factory=dict)  # seconds that a verb takes
    _count: int = 0

    def start(self, home: Home, *arguments: str, fate: str = "") -> Running:
        self._count += 1
        said = self.base / "said" / f"{self._count}.txt"
        said.parent.mkdir(exist_ok=True)
        with said.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "truekeep", *arguments],
                cwd=home.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=dict(home.environment),
            )
        now = time.monotonic()
        at = now + self.random.random() * 1.1 * self._usual.get(arguments[0], 0.5)
        return Running(arguments, process, said, now, fate, at, at + self.random.uniform(0.2, 1.0))

    def run(self, home: Home, *arguments: str) -> tuple[int, str]:
        """One program that is left alone: how it ended, and what it said."""
        (done,) = self.run_all([lambda: self.start(home, *arguments)])
        return done

    def run_all(
        self, starts: Sequence[Callable[[], Running]], meanwhile: Callable[[], object] = lambda: None
    ) -> list[tuple[int, str]]:
        """Programs, a few at once, and something else meanwhile."""
        waiting, active = list(starts), list[Running]()
        done: list[tuple[int, str]] = []
        try:
            while waiting or active:
                while waiting and len(active) < AT_ONCE:
                    active.append(waiting.pop(0)())
                for running in [running for running in active if not running.attend()]:
                    active.remove(running)
                    done.append(self._end(running))
                meanwhile()
                time.sleep(0.004)
        finally:
            for running in active:
                running.process.kill()
                running.process.wait()
        return done

    def _end(self, running: Running) -> tuple[int, str]:
        code, said = running.process.returncode, running.said.read_text(errors="replace")
        running.said.unlink()
        self.ends[f"{running.arguments[0]} {code}"] += 1
        is_killed = running.fate == "kill" and code == -signal.SIGKILL
        self.fates["killed"] += is_killed
        self.fates["stopped"] += running.fate == "went on"
        if code == 0 and not running.fate:
            self._usual[running.arguments[0]] = time.monotonic() - running.begun
        if (code not in FINE and not is_killed) or _BUG.search(said):
            self.complaints.append(f"{' '.join(running.arguments)} ended with {code}: {said[-1500:]}")
        return code, said


class Reading(NamedTuple):
    """What a process holds."""

    memory: int  # resident bytes
    descriptors: int
    threads: int
    locks: int


def read_process(pid: int) -> Reading:
    status = Path(f"/proc/{pid}/status").read_text()
    memory = re.search(r"VmRSS:\s+(\d+)", status)
    threads = re.search(r"Threads:\s+(\d+)", status)
    assert memory is not None
    assert threads is not None
    locks = sum(line.split()[-4] == str(pid) for line in Path("/proc/locks").read_text().splitlines())
    return Reading(1024 * int(memory[1]), len(os.listdir(f"/proc/{pid}/fd")), int(threads[1]), locks)


class Staying:
    """A program that stays: how it is asked, what it answers, and what it holds."""

    def __init__(self, home: Home, base: Path, *arguments: str) -> None:
        self.name = arguments[0]
        self.log = base / f"{self.name}-{time.monotonic_ns()}.log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "truekeep", *arguments],
                cwd=home.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(home.environment),
            )
        self.readings: list[Reading] = []
        self._heard = b""

    def line(self) -> str:
        """The next line that it says."""
        out = self.process.stdout
        assert out is not None
        while b"\n" not in self._heard:
            if not select.select([out], [], [], PATIENCE)[0] or not (more := os.read(out.fileno(), 1 << 20)):
                raise AssertionError(f"{self.name} says nothing: {self.log.read_text()}")
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def cpu(self) -> float:
        """The seconds that it has worked so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def look(self) -> Reading:
        self.readings.append(read_process(self.process.pid))
        return self.readings[-1]

    def gone_files(self) -> list[str]:
        """The files that it has open, though they were removed or replaced."""
        folder = f"/proc/{self.process.pid}/fd"
        try:
            links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
        except OSError:  # it has ended
            return []
        return [link for link in links if link.endswith(" (deleted)")]

    def stop(self) -> str:
        """End it as a session does; gives what it complained of."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return f"{self.name} did not end when it was told to"
        return self.log.read_text(errors="replace")


class Site(Staying):
    """`truekeep serve`, and somebody who came in by its link."""

    def __init__(self, home: Home, base: Path) -> None:
        super().__init__(home, base, "serve", "--port", "0")
        while not (found := _LINK.search(self.line())):
            pass
        self.client = httpx.Client(base_url=found[2], follow_redirects=True, timeout=PATIENCE)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.get(found[1]).raise_for_status()
                return
            except httpx.TransportError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def search(self, query: str) -> str:
        reply = self.client.get("/search", params={"q": query})
        reply.raise_for_status()
        return reply.text

    def stop(self) -> str:
        self.client.close()
        return super().stop()


class Mcp(Staying):
    """`truekeep mcp`, and a client on its standard input and output."""

    def __init__(self, home: Home, base: Path) -> None:
        super().__init__(home, base, "mcp")
        self._number = 0
        client = {"name": "soak", "version": "1"}
        self._ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def search(self, query: str) -> str:
        reply = self._ask("tools/call", name="memory_search", arguments={"query": query})
        if "error" in reply or reply["result"].get("isError"):
            raise AssertionError(f"memory_search {query!r}: {reply}")
        return str(reply["result"]["content"][0]["text"])

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        while (reply := json.loads(self.line())).get("id") != self._number:
            pass
        return reply

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
