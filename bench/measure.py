"""CPU time, memory and small tables for the benchmarks."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


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


def least(rounds: int, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least CPU seconds of each work, all of them once a round: on a noisy machine the least is the truest."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            times[name].append(cpu_of(work))
    return {name: min(found) for name, found in times.items()}


def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a call returns in a new process, whose memory is then its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(work, args, kwargs)


def peak_memory() -> int:
    """The most bytes that this process had in memory. Linux hands ru_maxrss on from a parent, so it is asked last."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Spent(NamedTuple):
    """What a program took."""

    cpu: float  # seconds, user and system
    peak: int  # kB
    wall: float  # seconds


def child(arguments: Sequence[str], *, given: str = "", **environment: str) -> tuple[float, int]:
    """The CPU seconds and the peak memory in kB of a program in a process of its own; `given` is its input."""
    return watch(arguments, given=given, **environment)[:2]


def watch(arguments: Sequence[str], *, given: str = "", **environment: str) -> Spent:
    """What a program takes in a process of its own; `given` is its input."""
    program = (
        "import os, resource, subprocess, sys, time\n"
        "begun = time.monotonic()\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "wall = time.monotonic() - begun\n"
        "use = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(use.ru_utime + use.ru_stime, use.ru_maxrss, wall, done.returncode)\n"
    )
    keep = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=given,
        capture_output=True,
        text=True,
        env={**keep, **environment},
        check=True,
    )
    seconds, peak, wall, code = done.stdout.split()
    if code != "0":
        raise SystemExit(f"{arguments} ended with {code}: {done.stderr}")
    return Spent(float(seconds), int(peak), float(wall))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    last_left: int = 0,
    bold: Collection[tuple[int, int]] = (),
) -> None:
    """Aligned columns, the first and the last ones to the left; cells (row, column) stand out on a terminal."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    shown = bold if sys.stdout.isatty() else ()
    for at, row in enumerate((headers, *rows), start=-1):
        cells = [
            cell.ljust(width) if n < left or n >= len(widths) - last_left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(f"\x1b[1m{cell}\x1b[0m" if (at, n) in shown else cell for n, cell in enumerate(cells))
        print(line.rstrip())
