"""The table of promises: what counts as met, what a bench that cannot run leaves in it, and that none is forgotten."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from bench import __main__ as bench
from bench import promises
from bench.promises import BOOK, PROMISES, Book, CannotRun, Kept, Promise, is_met, keep, put_into, show, tell_peer

HERE = Path(__file__).parents[3]
FIGURE = re.compile(r'\b(?:keep|lack|tell_peer)\(\s*(f?)"([^"{]+)')


@pytest.fixture(autouse=True)
def book() -> Iterator[Book]:
    for kept in (BOOK.kept, BOOK.peers, BOOK.machine):
        kept.clear()
    yield BOOK
    for kept in (BOOK.kept, BOOK.peers, BOOK.machine):
        kept.clear()


def source_of(name: str) -> str:
    """The source of a bench; of one that is a folder, of all its modules."""
    found = importlib.util.find_spec(bench.BENCHES[name])
    assert found is not None
    assert found.origin is not None
    module = Path(found.origin)
    modules = [module] if module.parent == HERE / "bench" else sorted(module.parent.glob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in modules)


@pytest.mark.parametrize("name", bench.BENCHES)
def test_every_bench_measures_its_promises(name: str) -> None:
    mine = [key for key, promise in PROMISES.items() if promise.bench == name]
    assert mine
    source = source_of(name)
    for key in mine:
        kind = key.partition(".")[0]
        assert f'"{key}"' in source or f'f"{kind}.{{' in source, f"nothing in {bench.BENCHES[name]} measures {key}"


def test_every_promise_has_its_bench() -> None:
    assert {promise.bench for promise in PROMISES.values()} == set(bench.BENCHES)


def test_every_figure_was_promised() -> None:
    for path in (HERE / "bench").rglob("*.py"):
        for is_made, key in FIGURE.findall(path.read_text(encoding="utf-8")):
            known = any(promise.startswith(key) for promise in PROMISES) if is_made else key in PROMISES
            assert known, f"{path.name} tells of {key}, which nobody promised"


@pytest.mark.parametrize(
    ("promise", "kept", "met"),
    [
        (Promise("x", "at most", 4.0), Kept(4.0), True),
        (Promise("x", "at most", 4.0), Kept(4.01), False),
        (Promise("x", "at least", 0.97, "share", True), Kept(0.97), True),
        (Promise("x", "at least", 0.97, "share", True), Kept(0.969), False),
        (Promise("x", "none", 0, ""), Kept(0), True),
        (Promise("x", "none", 0, ""), Kept(1), False),
        (Promise("x", "as good as others", None, "share"), Kept(0.92, 0.88), True),
        (Promise("x", "as good as others", None, "share"), Kept(0.87, 0.88), False),
        (Promise("x", "told only"), Kept(7.0), None),
        (Promise("x", "not measured", 4.0), Kept(why="no clones"), None),
    ],
)
def test_met(promise: Promise, kept: Kept, met: bool | None) -> None:
    assert is_met(promise, kept) is met


def test_a_run_goes_through_json(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    book.machine.update(promises.describe_machine(), load_during=[1.0, 3.0])
    keep("ingest.ratio", 4.5, "naive loop 0.14 s")
    keep("quality.memory", 0.92, "words 0.880", goal=0.88)
    tell_peer("ingest.ratio", "Brigade 64 s")
    promises.excuse("truth", "no clones")
    show(book)
    first = capsys.readouterr().out
    again = Book()
    again.join(json.loads(json.dumps(book.as_json())))
    show(again)
    assert capsys.readouterr().out == first
    line = next(line for line in first.splitlines() if "naive loop 0.14 s" in line)
    assert re.search(r"4\.50 x +≤ 4 x +SHORT ", line)
    assert line.endswith("Brigade 64 s")
    assert "1 met, 1 short, 7 not measured" in first
    assert "2.0 during (highest 3.0" in first


def test_of_two_runs_the_later_figure_counts_and_no_reason_takes_one_away(book: Book) -> None:
    one, two = Book(), Book()
    keep("year.missed", 3.0)
    one.join(book.as_json())
    keep("year.missed", 0.0)
    two.join(book.as_json())
    book.kept.clear()
    promises.excuse("year", "run alone: python -m bench year")
    one.join(two.as_json())
    one.join(book.as_json())
    assert one.kept["year.missed"].value == 0
    assert one.kept["year.false"].why == "run alone: python -m bench year"


def test_the_machine_is_described_without_its_name() -> None:
    line = promises.machine_line(promises.describe_machine())
    for private in (socket.gethostname(), os.path.expanduser("~")):
        assert private not in line or len(private) < 3


def run_with(monkeypatch: pytest.MonkeyPatch, work: Callable[[object], None], *more: str) -> int:
    """The bench `ingest`, as if it did this."""
    module = ModuleType("bench_of_a_test")
    module.main = work  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench_of_a_test", module)
    monkeypatch.setitem(bench.BENCHES, "ingest", "bench_of_a_test")
    return bench.main(["ingest", *more])


def test_a_bench_that_cannot_run_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def work(_: object) -> None:
        keep("ingest.seconds", 0.6)
        raise CannotRun("rclone is not installed")

    assert run_with(monkeypatch, work, "--json", str(tmp_path / "told.json")) == 0
    assert "cannot run here: rclone is not installed" in capsys.readouterr().out
    rows = {row["key"]: row for row in json.loads((tmp_path / "told.json").read_text())["promises"]}
    assert rows["ingest.seconds"]["met"] is True
    assert rows["ingest.ratio"]["measured"] is None
    assert "rclone" in rows["ingest.ratio"]["why"]


@pytest.mark.parametrize("error", [ZeroDivisionError("no baseline"), SystemExit("no baseline")])
def test_a_bench_that_fails_leaves_its_table_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    def work(_: object) -> None:
        os.environ["HOME"] = "/nowhere"
        keep("ingest.ratio", 3.0)
        raise error

    home = os.environ["HOME"]
    assert run_with(monkeypatch, work) == 1
    said = capsys.readouterr()
    assert "failed: no baseline" in said.out
    assert "1 met" in said.out
    assert "no baseline" in said.err
    assert os.environ["HOME"] == home


def test_usage() -> None:
    for wrong in (["nothing"], ["ingest", "sync", "--machines", "2"], ["ingest", "--json"]):
        with pytest.raises(SystemExit, match="usage"):
            bench.main(wrong)


@pytest.mark.slow
def test_two_benches_in_processes_of_their_own(tmp_path: Path) -> None:
    """The real ones, without what they need."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TRUEKEEP_")}
    environment = {**kept, "TRUEKEEP_BENCH_REPOS": str(tmp_path), "COLUMNS": "300"}
    result = tmp_path / "told.json"
    command = [sys.executable, "-m", "bench", "truth", "truth-speed", "--json", str(result)]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = {row["key"]: row["why"] for row in json.loads(result.read_text())["promises"]}
    mine = {key: promise for key, promise in PROMISES.items() if promise.bench in ("truth", "truth-speed")}
    assert set(told) == set(mine)
    for key, why in told.items():
        wanted = mine[key].alone or "TRUEKEEP_BENCH_REPOS"
        assert wanted in why
    assert done.stdout.count("load average") == 2  # before, and below the one table


def test_a_table_is_put_into_a_page(tmp_path: Path, book: Book) -> None:
    keep("ingest.ratio", 4.5, "a | b")
    page = tmp_path / "page.md"
    text = promises.as_markdown(book)
    for _ in range(2):
        page.write_text(
            page.read_text() if page.exists() else f"Before\n{promises.BEGIN}\nold\n{promises.END}\nafter\n"
        )
        put_into(page, text)
    assert page.read_text() == f"Before\n{promises.BEGIN}\n\n{text}\n\n{promises.END}\nafter\n"
    assert "| 4.50 x | ≤ 4 x | **short** | a \\| b |" in text
    page.write_text("no marks\n")
    with pytest.raises(SystemExit, match="no line"):
        put_into(page, text)
    assert page.read_text() == "no marks\n"
    ours = (HERE / "docs" / "benchmarks.md").read_text()
    assert 0 < ours.index(promises.BEGIN) < ours.index(promises.END)
