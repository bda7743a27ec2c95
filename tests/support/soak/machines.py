"""The machines of a day: one canonical host, and producers that are folders with real repositories in them.

Some are pulled by rsync, through an `ssh` that stays on this machine; the others push to a git repository that all of
them reach. All have names and one clock of their own (`clock.c`), which can jump.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.helpers import CLAUDE, CODEX, git_repo
from tests.support.soak.letters import InboxFile
from tests.support.soak.programs import Home

_SSH = """\
#!/bin/sh
# ssh to a machine that is a folder: its options are dropped, its command runs in the home of that name.
while getopts Tno:p:l: option; do :; done
shift $((OPTIND - 1))
there="{base}/machines/$1"; SOAK_NAME="$1"; shift
[ -e "$there/asleep" ] && { echo "ssh: connect to host $SOAK_NAME port 22: Connection timed out" >&2; exit 255; }
export SOAK_NAME HOME="$there"; cd "$there" && exec sh -c "$*"
"""


class Clock:
    """The time of all machines, as far as it is off. Without a compiler it cannot be."""

    def __init__(self, base: Path) -> None:
        self.path, self.library = base / "clock", base / "clock.so"
        self.path.write_bytes(struct.pack("l", 0))
        compiler = shutil.which("cc")
        source = Path(__file__).with_name("clock.c")
        command = [compiler or "", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(source), "-ldl"]
        self.can_jump = (
            sys.platform == "linux" and compiler is not None and not subprocess.run(command, check=False).returncode
        )
        self.off = 0

    def jump(self, seconds: int) -> None:
        self.off = seconds if self.can_jump else 0
        with self.path.open("r+b") as file:
            file.write(struct.pack("l", self.off))

    def now(self) -> float:
        return time.time() + self.off

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "SOAK_CLOCK": str(self.path)} if self.can_jump else {}


class Machine:
    """A folder that stands for a machine."""

    def __init__(self, base: Path, name: str, via: str, clock: Clock) -> None:
        self.name, self.via, self.clock = name, via, clock
        self.folder = base / "machines" / name
        self.folder.mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if key in ("LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")}
        environment = kept | clock.environment()
        environment |= {
            "PATH": f"{base / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(self.folder),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "TRUEKEEP_MACHINE_ID": f"soak {name}",
            "SOAK_NAME": name,
        }
        self.home = Home(name, self.folder, environment)
        self.left: list[InboxFile] = []

    def repository(self, number: int) -> Path:
        path = self.folder / "repos" / f"app{number}"
        return path if path.exists() else git_repo(path, remote=f"https://github.com/acme/app{number}.git")

    def inbox(self, number: int) -> Path:
        folder = self.repository(number % 3) / (CODEX if number % 2 else CLAUDE)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def leave(self, letter: InboxFile, number: int) -> Path:
        """Put a letter into an inbox, as if it had lain there for a minute; never over another one."""
        path = self.inbox(number) / letter.name
        stem, count = path.stem, 1
        while path.exists():
            count += 1
            path = path.with_name(f"{stem}-{count}.md")
        path.write_bytes(letter.data)
        self.age(path)
        self.left.append(letter)
        return path

    def age(self, path: Path) -> None:
        then = self.clock.now() - 60
        if then > 0:
            os.utime(path, (then, then))

    def fall_asleep(self, asleep: bool) -> None:
        note = self.folder / "asleep"
        note.touch() if asleep else note.unlink(missing_ok=True)

    def waiting(self) -> list[Path]:
        return [path for path in self._letters() if path.parent.name != "processed"]

    def _letters(self) -> Iterator[Path]:
        for inbox in (CLAUDE, CODEX):
            for path in self.folder.glob(f"repos/*/{inbox}/**/*"):
                if path.is_file():
                    yield path


def write_ssh(base: Path) -> None:
    program = base / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(_SSH.replace("{base}", str(base)))
    program.chmod(0o755)
