"""Every benchmark, one after the other: python -m bench [name …] [--json FILE], or one of them with its options.

Each prints ratios beside a baseline that ran in the same minute on the same machine. Absolute times say little:
machines differ, and a shared one is noisy, so rounds are interleaved and medians or minima are compared. At the end
one table has every promise with its figure (bench/promises.py). Several benches run in a process each, so that none
pays for what another left in memory, and none that fails takes the table with it.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

from bench.promises import BOOK, CannotRun, describe_machine, excuse, machine_line, show, stolen

BENCHES = {  # name → the module with its main(options)
    "ingest": "bench.ingest",
    "startup": "bench.startup",
    "hooks": "bench.hooks",
    "recall-quality": "bench.recall_quality",
    "recall-speed": "bench.recall_speed",
    "outcome": "bench.outcome.run",
    "truth": "bench.truth.run",
    "truth-speed": "bench.truth_speed",
    "transcripts": "bench.transcripts",
    "alf": "bench.alf",
    "sync": "bench.sync",
    "copy": "bench.memory_copy",
    "upkeep": "bench.upkeep",
    "site": "bench.website",
    "real": "bench.real.run",
    "check": "bench.check.run",
    "peers": "bench.peers",
    "year": "bench.year",
    "soak": "bench.soak",
}
ALONE = ("outcome", "truth", "real", "check", "year", "soak")  # a quarter of an hour and more: only if named
USAGE = f"usage: python -m bench [{'|'.join(BENCHES)} …] [--json FILE], or one of them with its options (--help)"


def main(arguments: Sequence[str]) -> int:
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = list(arguments[len(names) :])
    result, is_part = take(options, "--json", 1), take(options, "--part-of-a-run", 0) is not None
    if any(name not in BENCHES for name in names) or (options and len(names) != 1):
        raise SystemExit(USAGE)
    BOOK.machine = describe_machine()
    if not is_part:
        print(machine_line(BOOK.machine), flush=True)
    loads: list[float] = []
    taken, ticks = stolen()
    has_failed = False
    try:
        if len(names) == 1:
            has_failed = not run_here(names[0], options)
            loads.append(os.getloadavg()[0])
        else:
            for name in names or [name for name in BENCHES if name not in ALONE]:
                has_failed |= not run_apart(name)
                loads.append(os.getloadavg()[0])
    except KeyboardInterrupt:
        has_failed = True
    for name in ALONE if not names else ():
        excuse(name, f"run alone: python -m bench {name}")
    BOOK.machine["load_during"] = loads
    now_taken, now_ticks = stolen()
    BOOK.machine["stolen"] = (now_taken - taken) / max(1.0, now_ticks - ticks)
    if result:
        Path(result).write_text(json.dumps(BOOK.as_json(), indent=1) + "\n", encoding="utf-8")
    if not is_part:
        show(BOOK)
    return int(has_failed)


def take(options: list[str], name: str, values: int) -> str | None:
    """Take one of our own options out of those of a bench: its value, or its name when it has none."""
    if name not in options:
        return None
    at = options.index(name)
    if at + values >= len(options):
        raise SystemExit(USAGE)
    found = options[at + values]
    del options[at : at + values + 1]
    return found


def run_here(name: str, options: Sequence[str]) -> bool:
    """One bench in this process. Its figures stay, also when it fails on the way."""
    why = "not measured with these options" if options else "not measured"
    is_whole = True
    try:
        with patch.dict(os.environ):
            importlib.import_module(BENCHES[name]).main(options)
    except CannotRun as error:
        why = f"cannot run here: {error}"
        print(f"{name}: {why}")
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.code, str):
            raise  # --help, or an option that it does not have
        traceback.print_exc()
        said = str(error).strip().splitlines() or [type(error).__name__]
        why, is_whole = f"failed: {said[0][:60]}", False
    excuse(name, why)
    return is_whole


def run_apart(name: str) -> bool:
    """One bench in a process of its own."""
    print(f"\n== {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "told.json"
        command = [sys.executable, "-m", "bench", name, "--json", str(result), "--part-of-a-run"]
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"  ({name}: {time.monotonic() - begun:.0f} s by the clock, {spent:.0f} s of CPU)", flush=True)
        if result.exists():
            BOOK.join(json.loads(result.read_text(encoding="utf-8")))
        else:
            excuse(name, f"ended with {done.returncode}")
        return not done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
