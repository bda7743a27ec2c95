"""Archives: what export, import and a delta cost, beside zip, unzip and a bare walk of the same tree.

Every program runs in a process of its own, all of them once a round; the least CPU time and the most memory of the
rounds are told. A workspace of a tenth of the files shows whether time grows with the work, and memory does not.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.alf_load import ALWAYS, Load, build
from bench.measure import Spent, scratch, table, watch
from bench.promises import keep

TRUEKEEP = (
    sys.executable,
    "-c",
    "from truekeep.__main__ import main; main()",
)  # what the installed console script does
WALK = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        os.stat(os.path.join(folder, name))
"""
EXPORT, IMPORT, DELTA = "alf export", "alf import", "alf delta, one file changed"
BARE, STARTED, SCAN = "python -c pass", f"the same with {len(ALWAYS)} files", "os.walk and stat, in Python"


class Subject:
    """One workspace, and what is timed on it."""

    def __init__(self, folder: Path, *, files: int, size: int) -> None:
        self.load = build(folder / "workspace", files=files, size=size)
        self._folder = folder
        self._alf, self._zip, self._delta = (folder / f"agent.{ending}" for ending in ("alf", "zip", "alf-delta"))
        self._environment = {"HOME": str(folder), "TRUEKEEP_NO_BACKGROUND": "1"}
        environment = {**os.environ, **self._environment}
        subprocess.run([*TRUEKEEP, "init", str(self.load.root)], env=environment, stdout=subprocess.DEVNULL, check=True)

    def round(self) -> dict[str, Spent]:
        """Everything once. Ends with the file that was edited as it is, so the next round has one more line."""
        packed, unpacked = self._folder / "packed", self._folder / "unpacked"
        for path in (self._zip, self._alf, self._delta):
            path.unlink(missing_ok=True)
        for path in (packed, unpacked):
            shutil.rmtree(path, ignore_errors=True)
        root = str(self.load.root)
        took = {ZIP: self._run(*zipping(self.load, self._zip))}
        took[EXPORT] = self._truekeep("export", "-w", root, "-o", str(self._alf))
        took[UNZIP] = self._run(*unzipping(self._zip, unpacked))
        took[IMPORT] = self._truekeep("import", str(self._alf), str(packed))
        check_same(self.load.root, packed)
        with self.load.edited.open("a") as file:
            file.write("\nOne more line.\n")
        took[SCAN] = self._run(sys.executable, "-c", WALK, root)
        took[DELTA] = self._truekeep("delta", "-w", root, "--since", str(self._alf), "-o", str(self._delta))
        took[BARE] = self._run(sys.executable, "-c", "pass")
        return took

    def sizes(self) -> tuple[int, int, int]:
        """Bytes of the zip file, of the archive and of the delta."""
        return self._zip.stat().st_size, self._alf.stat().st_size, self._delta.stat().st_size

    def _truekeep(self, *arguments: str) -> Spent:
        return self._run(*TRUEKEEP, "alf", *arguments)

    def _run(self, *arguments: str) -> Spent:
        return watch(arguments, **self._environment)


HAS_ZIP = bool(shutil.which("zip") and shutil.which("unzip"))
ZIP, UNZIP = ("zip -r -q", "unzip -q") if HAS_ZIP else ("python -m zipfile -c", "python -m zipfile -e")


def zipping(load: Load, target: Path) -> tuple[str, ...]:
    if not HAS_ZIP:
        return sys.executable, "-m", "zipfile", "-c", str(target), *map(str, _visible(load.root))
    return "sh", "-c", 'cd "$0" && exec zip -r -q "$1" . -x ".truekeep/*"', str(load.root), str(target)


def _visible(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.name != ".truekeep")


def unzipping(source: Path, target: Path) -> tuple[str, ...]:
    if not HAS_ZIP:
        return sys.executable, "-m", "zipfile", "-e", str(source), str(target)
    return "unzip", "-q", "-d", str(target), str(source)


def check_same(root: Path, other: Path) -> None:
    """A fast import of something else would be worth nothing."""
    paths = [
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and ".truekeep" not in path.parts
    ]
    _, differing, missing = filecmp.cmpfiles(root, other, paths, shallow=False)
    if differing or missing:
        raise SystemExit(f"{len(differing)} files came back different, {len(missing)} not at all")


def best(rounds: Sequence[Mapping[str, Spent]]) -> dict[str, Spent]:
    """The least time and the most memory of each."""
    found: dict[str, list[Spent]] = defaultdict(list)
    for one in rounds:
        for name, spent in one.items():
            found[name].append(spent)
    return {
        name: Spent(min(one.cpu for one in each), max(one.peak for one in each), min(one.wall for one in each))
        for name, each in found.items()
    }


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench alf", description="What archives cost.")
    parser.add_argument("--files", type=int, default=10_000, metavar="N", help="in the workspace (%(default)s)")
    parser.add_argument("--megabytes", type=int, default=200, metavar="N", help="in the workspace (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="(%(default)s)")
    options = parser.parse_args(arguments)
    if not HAS_ZIP:
        print("zip and unzip: not installed; Python's zipfile stands in for them, with the same zlib as ours")
    size = options.megabytes * 1_000_000
    with scratch() as folder:
        whole = Subject(folder / "whole", files=options.files, size=size)
        tenth = Subject(folder / "tenth", files=options.files // 10, size=size // 10)
        empty = Subject(folder / "empty", files=len(ALWAYS), size=0)
        rounds = [(whole.round(), tenth.round(), empty.round()) for _ in range(options.rounds)]
        took, small, least = (best(each) for each in zip(*rounds, strict=True))
        took[STARTED] = least[DELTA]
        sizes = whole.sizes()
    show_copies(took, whole.load, sizes)
    show_delta(took, sizes[2])
    show_growth(took, small, tenth.load)


def show_copies(took: Mapping[str, Spent], load: Load, sizes: tuple[int, int, int]) -> None:
    rows = []
    for name, beside in ((ZIP, ZIP), (EXPORT, ZIP), (UNZIP, UNZIP), (IMPORT, UNZIP)):
        one, base = took[name], took[beside]
        rows.append([name, f"{one.cpu:.2f} s", ratio(one.cpu, base.cpu), f"{one.wall:.2f} s", megabytes(one.peak)])
    table([f"{load.files:,} files, {load.size / 1e6:.0f} MB, least", "CPU", "beside", "wall", "peak"], rows)
    print(
        f"  the zip file has {sizes[0] / 1e6:.0f} MB, the archive, with every memory as a record, {sizes[1] / 1e6:.0f}"
    )
    print("  promised: at most 3 x, in CPU\n")
    keep("alf.export", took[EXPORT].cpu / took[ZIP].cpu, f"{ZIP} {took[ZIP].cpu:.2f} s; {load.files:,} files")
    keep("alf.import", took[IMPORT].cpu / took[UNZIP].cpu, f"{UNZIP} {took[UNZIP].cpu:.2f} s")


def show_delta(took: Mapping[str, Spent], size: int) -> None:
    scan = took[SCAN].cpu - took[BARE].cpu
    work = took[DELTA].cpu - took[STARTED].cpu
    rows = [
        [BARE, milliseconds(took[BARE].cpu), "", "", megabytes(took[BARE].peak)],
        [SCAN, milliseconds(took[SCAN].cpu), milliseconds(scan), "1.0 x", megabytes(took[SCAN].peak)],
        [DELTA, milliseconds(took[DELTA].cpu), milliseconds(work), ratio(work, scan), megabytes(took[DELTA].peak)],
        [STARTED, milliseconds(took[STARTED].cpu), "", "", megabytes(took[STARTED].peak)],
    ]
    table(["a delta, CPU, least", "in all", "without start-up", "beside", "peak"], rows)
    export = took[EXPORT].cpu
    print(f"  it has {size / 1000:.0f} kB and costs {took[DELTA].cpu / export:.1%} of an export")
    print("  promised: what a scan costs\n")
    keep("alf.delta", max(0.0, work) / scan, f"scan {milliseconds(scan)}")


def show_growth(took: Mapping[str, Spent], small: Mapping[str, Spent], load: Load) -> None:
    rows = []
    for name in (ZIP, EXPORT, UNZIP, IMPORT, DELTA):
        one, other = small[name], took[name]
        times = [f"{one.cpu:.2f} s", f"{other.cpu:.2f} s", ratio(other.cpu, one.cpu)]
        rows.append([name, *times, megabytes(one.peak), megabytes(other.peak), ratio(other.peak, one.peak)])
    headers = [f"a tenth, {load.files:,} files, and the whole", "CPU", "whole", "ratio", "peak", "whole", "ratio"]
    table(headers, rows)
    print("  promised: time in step with the work, memory flat but for a line about each file")
    before, after = (max(each[name].peak for name in (EXPORT, IMPORT)) for each in (small, took))
    keep("alf.memory", after / before, f"{megabytes(before)} with a tenth")


def ratio(one: float, other: float) -> str:
    return f"{one / other:.1f} x"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def megabytes(kilobytes: float) -> str:
    return f"{kilobytes / 1024:,.0f} MB"


if __name__ == "__main__":
    main(sys.argv[1:])
