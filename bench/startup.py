"""What it costs to start: hooks and timers pay it every time. Beside a bare interpreter in the same minute."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.measure import child, median, scratch, table
from truekeep.workspace import Workspace

ROUNDS = 15
SHOWN = 16
SCRIPT = "from truekeep.cli import main; main()"  # what the installed console script does


def main() -> None:
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
        print_imports([sys.executable, "-X", "importtime", "-m", "truekeep", "-w", str(workspace), "ingest"])


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
