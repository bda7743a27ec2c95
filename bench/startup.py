"""What it costs to start: hooks and timers pay it every time. Beside a bare interpreter in the same minute."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import child, median, scratch, table
from bench.promises import keep
from truekeep.workspace.workspace import Workspace

ROUNDS = 15
SHOWN = 16
HERE = Path(__file__).parent.parent
SCRIPT = "from truekeep.__main__ import main; main()"  # what the installed console script does


def main(_options: Sequence[str] = ()) -> None:
    with scratch() as folder:
        workspace = folder / "workspace"
        Workspace.init(workspace)
        programs = {
            "python -c pass": ["-c", "pass"],
            "python -c 'import click'": ["-c", "import click"],
            "truekeep --help": ["-c", SCRIPT, "--help"],
            "truekeep ingest, nothing to do": ["-c", SCRIPT, "-w", str(workspace), "ingest"],
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(ROUNDS):
            for name, arguments in programs.items():
                times[name].append(child([sys.executable, *arguments])[0])
        bare = median(times["python -c pass"])
        rows = [
            [name, f"{median(found) * 1000:.0f} ms", f"{median(found) / bare:.1f} x"] for name, found in times.items()
        ]
        table(["start-up, CPU, median", "time", "beside bare"], rows)
        print("  promised: under 100 ms for both\n")
        for key, name in (("help", "truekeep --help"), ("idle", "truekeep ingest, nothing to do")):
            keep(f"startup.{key}", median(times[name]) * 1000, f"python -c pass {bare * 1000:.0f} ms")
        print_imports([sys.executable, "-X", "importtime", "-m", "truekeep", "-w", str(workspace), "ingest"])
    with scratch() as folder:
        seconds = time_demo(folder)
    keep("startup.demo", seconds, "its own set-up not included")
    print(f"\nmake demo, without its set-up: {seconds:.1f} s by the clock; promised: under half a minute")


def time_demo(folder: Path) -> float:
    """The demo's own script, in a copy, so that nobody's demo-home is touched."""
    shutil.copytree(HERE / "demo", folder / "demo")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    begun = time.monotonic()
    done = subprocess.run(
        ["sh", str(folder / "demo" / "run.sh")], env={**os.environ, "PATH": path}, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the demo ended with {done.returncode}: {done.stderr[-500:].decode(errors='replace')}")
    return time.monotonic() - begun


def print_imports(arguments: list[str]) -> None:
    keep = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(arguments, capture_output=True, text=True, env=keep, check=True)
    found = []
    for line in done.stderr.splitlines():
        if line.startswith("import time:") and "self" not in line:
            own, _, name = line.removeprefix("import time:").split("|")
            found.append((int(own), name.strip()))
    found.sort(reverse=True)
    rows = [[name, f"{own / 1000:.1f} ms"] for own, name in found[:SHOWN]]
    table([f"imports of an idle ingest ({len(found)} modules), own time", "time"], rows)


if __name__ == "__main__":
    main()
