"""Text on a terminal: stored text cannot speak to it, our own colours can."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from truekeep.interfaces.cli.terminal import echo, echo_text, for_terminal, style
from truekeep.workspace.workspace import Workspace

HOSTILE = "a\x1b[31mred\x1b]0;title\x07\x9b2J\u202eback\u200bzero\x00\rcarriage"
RAW = set("\x1b\x07\x9b\u202e\u200b\x00\r")


def test_hostile_text_is_escaped_styled_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"{style('ours', fg='green')} {HOSTILE}", err=False)
    echo(style(HOSTILE, fg="red", bold=True), err=True)
    echo_text(f"{HOSTILE}\n{HOSTILE}")
    said = capsys.readouterr()
    assert not RAW & set(said.out + said.err)
    assert "\\x1b[31mred" in said.out


def test_our_colours_survive_and_theirs_do_not() -> None:
    shown = for_terminal(style(f"x{HOSTILE}", fg="red"))
    assert shown.startswith("\x1b[31mx")
    assert shown.endswith("\x1b[0m")
    assert shown.count("\x1b") == 2
    assert click.unstyle(shown) == for_terminal(f"x{HOSTILE}")


def test_a_line_break_in_a_field_forges_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    echo("topic: x\ntruekeep: all is well\tyes")
    assert capsys.readouterr().out == "topic: x\\ntruekeep: all is well\\tyes\n"
    echo_text("one\n\ttwo\n")
    assert capsys.readouterr().out == "one\n\ttwo\n"


PROGRAM = """
import sys, time
from truekeep.interfaces.cli import progress
progress.DELAY_SECONDS = {delay}
with progress.ProgressDisplay("reading memory") as display:
    for at in range(5):
        display.count(at, 5)
        time.sleep({pause})
print("rich" in sys.modules)
"""


def on_a_terminal(program: str) -> tuple[str, str]:
    """What a program writes to standard output, a pipe, and to standard error, a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65_536):
            shown += piece
    except OSError:  # all is read, and nobody writes any more
        pass
    os.close(ours)
    return done.stdout.decode().strip(), shown.decode()


def test_progress_is_shown_when_it_takes_long() -> None:
    assert on_a_terminal(PROGRAM.format(delay=3600, pause=0)) == ("False", "")
    said, shown = on_a_terminal(PROGRAM.format(delay=0, pause=0.2))
    assert said == "True"
    assert "reading memory" in shown


def test_progress_is_for_terminals() -> None:
    program = PROGRAM.format(delay=0, pause=0.05)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


SLOW = """
import threading
from truekeep.interfaces.cli import doctor, progress, schedule
progress.DELAY_SECONDS = 0
shown = threading.Event()
show = progress.ProgressDisplay._show
progress.ProgressDisplay._show = lambda display: (show(display), shown.set())
"""
DOCTOR = """
def checks(context, *, fix, progress):
    progress(3, 7)
    shown.wait(20)
    yield from ()
doctor.run_checks = checks
doctor.doctor.main(["--workspace", {path!r}], standalone_mode=False)
"""
SCHEDULE = """
def job(*_, watch, **__):
    with watch("index"):
        shown.wait(20)
    raise schedule.Busy("enough")
schedule.run_job = job
try:
    schedule.run.main(["--workspace", {path!r}], standalone_mode=False)
except schedule.Busy:
    pass
"""


@pytest.mark.parametrize(("program", "word"), [(DOCTOR, "reading memory"), (SCHEDULE, "index")])
def test_doctor_and_scheduled_runs_are_not_silent(program: str, word: str, tmp_path: Path) -> None:
    Workspace.init(tmp_path / "memory")
    _, shown = on_a_terminal(SLOW + program.format(path=str(tmp_path / "memory")))
    assert word in shown
