"""The machines of the walk: homes, names, clocks and ssh between them; and what was typed and seen, for the documents.

A machine has a home of its own, an id and a name of its own, its own PATH; those that others log into run a real sshd.
What somebody types is run by bash in that home. Clocks go ahead all together.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.sshd import SshHost, ssh_host

USER_HOME = "/home/ada"
_HERE = Path(__file__).parent
_CRONTAB = """\
tab="$HOME/.crontab"
case "$1" in
-l) [ -f "$tab" ] || { echo "no crontab for ada" >&2; exit 1; }; cat "$tab";;
-r) rm "$tab";;
-) cat > "$tab.new" && mv "$tab.new" "$tab";;
esac"""


@dataclass
class Typed:
    """One command, and what came of it."""

    machine: str
    folder: str
    command: str
    said: str
    code: int
    part: str = ""  # agent or reviewer: how it is done depends on what is installed


@dataclass
class Told:
    """A heading of the story, or a paragraph of it."""

    text: str
    is_heading: bool = False


@dataclass
class World:
    """All machines, and the story so far."""

    base: Path
    seconds_ahead: int = 0
    story: list[Typed | Told] = field(default_factory=list)
    part: str = ""
    machines: dict[str, Machine] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def origin(self) -> Path:
        """Where the repositories are pushed to and pulled from."""
        return self.base / "origin"

    def machine(self, name: str, *, answers_ssh: bool = False) -> Machine:
        """A new machine. Whoever is there already can log into it, and it into them, if they answer."""
        host = self.stack.enter_context(ssh_host(self.base, name)) if answers_ssh else None
        made = Machine(self, name, host)
        self.machines[name] = made
        for machine in self.machines.values():
            machine.know(self.machines.values())
        return made

    def lose(self, machine: Machine) -> None:
        """Gone, with everything on it."""
        shutil.rmtree(machine.base)
        del self.machines[machine.name]

    def chapter(self, title: str, text: str = "") -> None:
        self.story.append(Told(title, is_heading=True))
        if text:
            self.tell(text)

    def tell(self, text: str) -> None:
        self.story.append(Told(" ".join(text.split())))

    @contextmanager
    def playing(self, part: str) -> Iterator[None]:
        """Whatever is typed meanwhile is an agent's, or a reviewer's."""
        self.part = part
        yield
        self.part = ""

    def typed(self, machine: Machine, command: str, said: str, code: int = 0) -> None:
        self.story.append(Typed(machine.name, machine.folder, self.plain(command), said, code, self.part))

    def wait_weeks(self, weeks: int) -> None:
        """All clocks go ahead."""
        self.seconds_ahead += weeks * 7 * 86_400

    def plain(self, text: str) -> str:
        """Without what differs from run to run: homes as such machines have them, seconds, ports and keys."""
        text = re.sub(rf"{re.escape(str(self.base))}/\w+/home", USER_HOME, text)
        text = re.sub(r"\(\d+\.\d s\)", "(0.4 s)", text)
        text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:8765", text)
        return re.sub(r"token=[\w-]+", "token=…", text)


class Machine:
    """One computer of the walk."""

    def __init__(self, world: World, name: str, host: SshHost | None) -> None:
        self.world, self.name, self.host = world, name, host
        self.base = world.base / name
        self.home, self.bin = self.base / "home", self.base / "bin"
        self.folder = "~"
        self.more: dict[str, str] = {}  # environment, as a harness needs it
        for folder in (self.home / "repos", self.home / ".ssh", self.bin):
            folder.mkdir(parents=True, exist_ok=True)
        for tool in ("ssh", "scp"):  # which take their configuration from the account's home, not from $HOME
            self.program(tool, f'exec {shutil.which(tool)} -F "$HOME/.ssh/config" "$@"')
        self.program("crontab", _CRONTAB)
        for tool in ("systemctl", "launchctl", "loginctl"):
            self.program(tool, "exit 1")
        origin = f'[url "file://{world.origin}/"]\n\tinsteadOf = https://git.example/acme/\n'
        who = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
        (self.home / ".gitconfig").write_text(f"{who}{origin}[advice]\n\tdetachedHead = false\n")
        (self.home / ".profile").write_text(f'PATH="{self.path}"\n')  # some harnesses use a login shell

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def know(self, others: Iterable[Machine]) -> None:
        """Ada's keys and hosts, as they are on each of her machines."""
        text = ""
        for other in others:
            if other.host is not None:
                options = other.host.options
                given = options["ssh_options"]
                assert isinstance(given, tuple)
                named = "".join(f"  {option.replace('=', ' ', 1)}\n" for option in given)
                text += f"Host {other.name}\n  HostName {options['host']}\n  Port {options['port']}\n{named}"
        (self.home / ".ssh" / "config").write_text(text)

    @property
    def path(self) -> str:
        return f"{self.bin}:{Path(sys.executable).parent}:/usr/bin:/bin"

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key in ("TMPDIR", "SSL_CERT_FILE") if (value := os.environ.get(key))}
        ahead = {"WALK_SECONDS_AHEAD": str(self.world.seconds_ahead)} if self.world.seconds_ahead else {}
        return {
            **kept,
            **ahead,
            "HOME": str(self.home),
            "PATH": self.path,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "ada",
            "COLUMNS": "110",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(_HERE / "machine"), os.environ.get("PYTHONPATH")))),
            "WALK_MACHINE": self.name,
            "TRUEKEEP_MACHINE_ID": self.name,
            "TRUEKEEP_NO_BACKGROUND": "1",
            **self.more,
        }

    @property
    def workspace(self) -> Path:
        return self.home / ".openclaw" / "workspace"

    def at(self, folder: str) -> Machine:
        """Go to a folder, as `cd` does."""
        self.folder = folder
        return self

    @property
    def cwd(self) -> Path:
        return Path(self.folder.replace("~", str(self.home), 1))

    def types(self, command: str, *sees: str, not_: Sequence[str] = (), code: int = 0, given: str | None = None) -> str:
        """Type a command; these words must be seen."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.cwd,
            env=self.environment,
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        said = self.world.plain(done.stdout)
        self.world.typed(self, command, said, done.returncode)
        where = f"{self.name} {self.folder}$ {command}\n{said}\n"
        assert done.returncode == code, f"{where}exit {done.returncode}, not {code}"
        for words in sees:
            assert words in said, f"{where}does not say: {words}"
        for words in not_:
            assert words not in said, f"{where}says: {words}"
        return said

    def quietly(self, command: str) -> str:
        """Run what belongs to the walk's stage and not to its story."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def a_world(base: Path) -> Iterator[World]:
    world = World(base)
    world.origin.mkdir(parents=True)
    with world.stack:
        yield world
