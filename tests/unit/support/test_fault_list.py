"""docs/faults.md lists the faults that tests are named after."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = r"[a-m]\d{1,2}"


def test_every_fault_has_a_test_and_every_test_a_fault() -> None:
    listed = re.findall(r"(?m)^\| ([A-M]\d+) \|", (ROOT / "docs/faults.md").read_text())
    tested = {
        code.upper()
        for path in (ROOT / "tests").rglob("test_*.py")
        for codes in re.findall(rf"def test_((?:{CODE}_)+)", path.read_text())
        for code in re.findall(CODE, codes)
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == tested
