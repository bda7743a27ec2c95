"""Child processes: how truekeep starts truekeep, and the one function that runs other programs to their end.

The current folder may be a repository of anyone. `python -m` imports from there first, and so do PYTHONPATH and PATH
with an empty or a relative part. So a truekeep that truekeep starts gets `-P`, the root folder to work in, none of the
variables that Python reads, and no relative folder in PATH.

`-I` is not used: it hides packages from `pip install --user`, which may include truekeep itself.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

_PIPE_CHUNK = 4096  # bytes that a pipe takes at once when it is ready
_EXIT_POLL = 0.05  # seconds between looks whether a program ended that left its output open
_FOLDER_VARIABLES = ("TRUEKEEP_WORKSPACE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")


def command(*arguments: str) -> list[str]:
    """The command that runs this installation of truekeep, independent of the current folder."""
    return [os.path.abspath(sys.executable), "-P", "-m", "truekeep", *arguments]


def installed_command() -> tuple[str, ...]:
    """The command for timers, which outlive this process: the installed script if there is one."""
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "truekeep")
    return (script,) if os.path.isfile(script) and os.access(script, os.X_OK) else tuple(command())


def start(*arguments: str, environ: Mapping[str, str] | None = None) -> None:
    """Start truekeep detached from this process. Raises OSError if it cannot be started."""
    subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment(environ),
        start_new_session=True,
    )


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child process that runs truekeep."""
    given = os.environ if environ is None else environ
    found = {name: value for name, value in given.items() if not name.startswith("PYTHON")}
    found |= {name: os.path.abspath(os.path.expanduser(found[name])) for name in _FOLDER_VARIABLES if found.get(name)}
    if "PATH" in found:
        found["PATH"] = absolute_path(found["PATH"])
    if own := _folder_in_pythonpath(given):
        found["PYTHONPATH"] = own
    return found


def absolute_path(path: str) -> str:
    """PATH without empty and relative parts, which mean the current folder."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


def find_program(name: str) -> str | None:
    """The program's path, searched in absolute folders of PATH only; None if not found."""
    if os.path.dirname(name) and not os.path.isabs(name):
        return None
    return shutil.which(name, path=absolute_path(os.environ.get("PATH") or os.defpath))


def _folder_in_pythonpath(environ: Mapping[str, str]) -> str:
    """The folder truekeep was loaded from, if that came from PYTHONPATH (`pip install --target`)."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parts = environ.get("PYTHONPATH", "").split(os.pathsep)
    return own if own in (os.path.normpath(part) for part in parts if os.path.isabs(part)) else ""


class ProgramResult(NamedTuple):
    """How a program ended."""

    code: int  # negative: ended by a signal
    out: bytes
    err: bytes
    stopped: Literal["", "timeout", "output"] = ""  # why it was ended early: too slow, or more output than allowed


def run_program(
    arguments: Sequence[str],
    *,
    timeout: float,
    max_output: int,
    env: Mapping[str, str],
    cwd: str | None = None,
    given: bytes | None = None,
    leave_children: bool = False,
) -> ProgramResult:
    """Run a program with a time limit and an output limit. Raises OSError when it cannot be started.

    It gets no terminal: `given` is its input. Past a limit, the program and all that it started are killed. With
    `leave_children`, processes that it left running are not waited for, and keep running: a shared ssh connection.
    """
    with subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    ) as process:
        exchange = _Exchange(process, given or b"")
        try:
            stopped = exchange.run(time.monotonic() + timeout, max_output, until_exit=leave_children)
        finally:
            exchange.close()
            if process.returncode is None:  # not waited for yet, so the group still has this number
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return ProgramResult(process.returncode, exchange.out, exchange.err, stopped)


class _Exchange:
    """Feeds a program its input and collects its output until it ends or a limit is reached."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input = memoryview(given)
        self._received = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._selector = selectors.DefaultSelector()
        for descriptor in self._received:
            self._selector.register(descriptor, selectors.EVENT_READ)
        if process.stdin is not None:
            self._selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)

    @property
    def out(self) -> bytes:
        return bytes(next(iter(self._received.values())))

    @property
    def err(self) -> bytes:
        return bytes(list(self._received.values())[1])

    def run(self, deadline: float, max_output: int, *, until_exit: bool) -> Literal["", "timeout", "output"]:
        while self._selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            has_ended = until_exit and self._process.poll() is not None  # asked first: then all output is in the pipes
            ready = self._selector.select(0 if has_ended else min(left, _EXIT_POLL) if until_exit else left)
            for key, _ in ready:
                if key.fd in self._received:
                    self._read(key.fd)
                else:
                    self._write(key.fd)
            if sum(map(len, self._received.values())) > max_output:
                return "output"
            if has_ended and not ready:
                return ""
        try:
            self._process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return "timeout"
        return ""

    def _read(self, descriptor: int) -> None:
        piece = os.read(descriptor, 1 << 16)
        self._received[descriptor] += piece
        if not piece:
            self._selector.unregister(descriptor)

    def _write(self, descriptor: int) -> None:
        try:
            self._input = self._input[os.write(descriptor, self._input[:_PIPE_CHUNK]) :]
        except BrokenPipeError:
            self._input = self._input[:0]
        if not self._input:
            self._selector.unregister(descriptor)
            assert self._process.stdin is not None
            self._process.stdin.close()

    def close(self) -> None:
        self._selector.close()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
