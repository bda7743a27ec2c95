"""CPU time, memory and small tables for the benchmarks."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of our own, on the same disk as the project, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="truekeep-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cpu_of(work: Callable[[], object]) -> float:
    """The CPU seconds, user and system, that a call takes in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def child(arguments: Sequence[str], **environment: str) -> tuple[float, int]:
    """The CPU seconds and the peak memory in kB of a program in a process of its own."""
    program = (
        "import os, resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "use = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(use.ru_utime + use.ru_stime, use.ru_maxrss, done.returncode)\n"
    )
    keep = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**keep, **environment},
        check=True,
    )
    seconds, peak, code = done.stdout.split()
    if code != "0":
        raise SystemExit(f"{arguments} ended with {code}: {done.stderr}")
    return float(seconds), int(peak)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        print(
            "  ".join(
                cell.rjust(width) if n else cell.ljust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )
