"""What a run of the tests says where programs are missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import PROGRAMS, how_to_get

TESTS = Path(__file__).parents[2]


def test_the_closing_line_names_programs_and_their_packages() -> None:
    reasons = ["Skipped: not installed: rsync, sshd", "Skipped: only root can", "Skipped: not installed: rsync"]
    assert how_to_get(reasons, "linux") == (
        "2 tests were skipped, as these programs are not installed: rsync, sshd. "
        "To run them: apt-get install openssh-server rsync"
    )
    assert how_to_get(reasons, "darwin").endswith("To run them: brew install openssh rsync")
    assert how_to_get(["Skipped: not installed: claude, crontab"], "linux").endswith(
        "1 test was skipped, as these programs are not installed: claude, crontab. "
        "To run them: apt-get install cron; make harnesses"
    )
    assert how_to_get(["Skipped: not installed: strace"], "darwin") == (
        "1 test was skipped, as these programs are not installed: strace."
    )
    assert how_to_get(["Skipped: only root can"], "linux") == ""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_without_the_programs_passes_and_says_so(tmp_path: Path, workers: str) -> None:
    """Also where workers run the tests, and the process that prints only hears of them."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom tests.support.programs import need\n\n"
        "@pytest.mark.needs('rsync')\ndef test_one():\n    raise AssertionError\n\n"
        "@pytest.fixture\ndef host():\n    need('sshd')\n\n"
        "def test_two(host):\n    raise AssertionError\n\n"
        "def test_three():\n    pass\n"
    )
    (tmp_path / "bin").mkdir()
    command = [sys.executable, "-m", "pytest", "-n", workers, "-p", "tests.conftest", "-p", "no:cacheprovider", "-rs"]
    settings = str(TESTS.parent / "pyproject.toml")
    done = subprocess.run(
        [*command, "-c", settings, "--rootdir", str(tmp_path), str(tmp_path / "test_it.py")],
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path), "PYTHONPATH": str(TESTS.parent)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    *_, reason, closing, count = done.stdout.strip().splitlines()
    assert "not installed: " in reason
    assert count.startswith("1 passed, 2 skipped")
    assert closing == how_to_get(["not installed: rsync", "not installed: sshd"])


def test_every_program_that_a_test_needs_is_known() -> None:
    asked = re.compile(r"""\bneeds?\((("[\w-]+"(, )?)+)\)""")
    for path in TESTS.rglob("*.py"):
        if path != Path(__file__):
            for call in asked.finditer(path.read_text()):
                assert set(re.findall(r'"([\w-]+)"', call[1])) <= set(PROGRAMS), path


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (r"\b(process_time|perf_counter|thread_time|getrusage)\b", "count_work of tests/support/counting.py"),
        (
            r"assert .*monotonic\(\) - ",
            "count_work of tests/support/counting.py, or wait_until of tests/support/helpers.py",
        ),
        (r"assert .*(\btime\(\) - [a-z].*[<>]|- time\.time\(\)\)* *[<>])", "two moments that it lies between"),
        (r"skip.*(\bwhich\(|\w+ is not installed)", "need or @pytest.mark.needs of tests/support/programs.py"),
    ],
)
def test_no_test_asserts_a_time_or_skips_by_itself(words: str, instead: str) -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in TESTS.rglob("*.py")
        if path.name not in ("programs.py", Path(__file__).name)
        for line in path.read_text().splitlines()
        if re.search(words, line)
    ]
    assert found == [], f"use {instead}"
