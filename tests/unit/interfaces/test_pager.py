"""The pager: only on a terminal, only for what is longer than the screen, and never at the cost of the text."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import sys
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

PROGRAM = """
import sys
from truekeep.interfaces.cli.output import show
from truekeep.interfaces.cli.pager import in_pager
from truekeep.interfaces.cli.terminal import style
with in_pager():
    show(f"{style('line', fg='red')} {number}" for number in range(int(sys.argv[1])))
    if sys.argv[2:]:
        raise SystemExit(7)
"""


def on_a_terminal(*arguments: str, pager: str) -> tuple[str, int]:
    """What a terminal of 24 lines shows, and the exit code."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TRUEKEEP_PAGER": pager, "TERM": "xterm"}
    environment.pop("LINES", None)
    command = [sys.executable, "-c", PROGRAM, *arguments]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65_536):
            shown += piece
    except OSError:  # the terminal ends with its last program
        pass
    os.close(ours)
    return shown.decode().replace("\r\n", "\n"), child.wait()


@pytest.fixture
def pager(tmp_path: object) -> str:
    """A pager that marks what went through it."""
    path = f"{tmp_path}/mark"
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho paged\nexec cat\n")
    os.chmod(path, 0o755)
    return path


def test_only_what_is_longer_than_the_screen_is_paged(pager: str) -> None:
    short, _ = on_a_terminal("23", pager=pager)
    assert "paged" not in short
    assert short.count("line") == 23
    long, _ = on_a_terminal("24", pager=pager)
    assert long.startswith("paged\n")
    assert long.count("\x1b[31mline\x1b[0m") == 24


def test_it_can_be_turned_off() -> None:
    shown, _ = on_a_terminal("100", pager="cat")
    assert shown.count("line") == 100


def test_what_was_printed_before_an_error_is_shown(pager: str) -> None:
    shown, code = on_a_terminal("100", "fail", pager=pager)
    assert shown.count("line") == 100
    assert code == 7


def test_a_pager_that_is_not_there_loses_nothing() -> None:
    shown, code = on_a_terminal("100", pager="/nowhere/pager")
    assert shown.count("line") == 100
    assert code == 0


def test_a_pipe_has_no_pager(pager: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "100"], capture_output=True, text=True, env={**os.environ, "PAGER": pager}
    )
    assert done.stdout.count("line") == 100
    assert "paged" not in done.stdout
