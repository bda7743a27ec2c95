"""The one function that runs other programs: input, output, limits, and what a program leaves running."""

from __future__ import annotations

import os
import selectors
import sys
import time
from pathlib import Path

import pytest

from tests.support.helpers import wait_until
from truekeep.core.child_process import ProgramResult, run_program


def run_shell(script: str, *, timeout: float = 60.0, max_output: int = 1 << 20, **more: object) -> ProgramResult:
    return run_program(
        ["/bin/sh", "-c", script],
        timeout=timeout,
        max_output=max_output,
        env={"PATH": "/usr/bin:/bin"},
        **more,  # type: ignore[arg-type]
    )


def is_gone(pid: int) -> bool:
    def is_it() -> bool:
        try:
            os.kill(pid, 0)
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    return wait_until(is_it)


def test_output_written_between_a_look_at_the_pipes_and_the_end_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look finds nothing, and the program has written and ended before anything else is asked."""
    select, looks = selectors.DefaultSelector.select, [0]

    def look_too_early(self: selectors.DefaultSelector, timeout: float | None = None) -> object:
        looks[0] += 1
        if looks[0] == 1 and timeout != 0:  # one that asks for what is there now is answered
            time.sleep(0.5)
            return []
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", look_too_early)
    assert run_shell("echo out", leave_children=True) == ProgramResult(0, b"out\n", b"")


def test_output_errors_and_exit_code() -> None:
    assert run_shell("echo out; echo err >&2; exit 3") == ProgramResult(3, b"out\n", b"err\n")


def test_input_larger_than_a_pipe_comes_back_whole() -> None:
    given = bytes(range(256)) * 4_000
    assert run_shell("cat", given=given, max_output=2 << 20).out == given


def test_a_program_that_reads_no_input_still_ends() -> None:
    assert run_shell("exit 0", given=b"x" * 1_000_000) == ProgramResult(0, b"", b"")


def test_without_input_there_is_nothing_to_read() -> None:
    assert run_shell("cat; echo end").out == b"end\n"


def test_past_its_time_a_program_ends_with_all_that_it_started(tmp_path: Path) -> None:
    result = run_shell(f"sleep 600 & echo $! > {tmp_path}/pid; echo begun; wait", timeout=2.0)
    assert (result.stopped, result.out) == ("timeout", b"begun\n")
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_prints_without_end_is_stopped() -> None:
    result = run_shell("exec yes", max_output=100_000)
    assert result.stopped == "output"
    assert 100_000 < len(result.out) < 300_000


def test_a_child_that_keeps_the_output_open_is_left_running_only_on_request(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid; echo done"
    assert run_shell(script, leave_children=True) == ProgramResult(0, b"done\n", b"")
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 9)  # raises if it was not left running
    assert run_shell(script, timeout=2.0).stopped == "timeout"
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_is_missing_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run_program([f"{sys.prefix}/no-such-program"], timeout=5.0, max_output=10, env={})
