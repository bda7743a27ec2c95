"""The archives that upstream's own reader and validator judged get the same verdict here, or a better one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.alf_builder import problems_of
from truekeep.integrations.alf.validate import verdict
from truekeep.integrations.alf.zip_container import ArchiveProblem, BadArchive

SHARED = Path(__file__).resolve().parents[5] / "shared" / "alf"
EXPECTED = SHARED / "tolerance" / "expected.json"
CASES: list[dict[str, Any]] = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.is_file() else []
ARCHIVES = sorted(path.name for path in (SHARED / "archives").glob("*.alf*"))

BETTER = {
    # case: our verdict. Why: docs/decisions.md, "Archives".
    "lowercase z": "warning",  # RFC 3339 has it, and so have newer versions of the library that refused it
    "dup ids": "warning",  # of two records with one id, a store keeps one
}

pytestmark = pytest.mark.skipif(not CASES, reason="the conformance data (shared/alf) is not beside this checkout")


def problems_in(path: Path) -> list[ArchiveProblem]:
    try:
        return problems_of(path.read_bytes())
    except BadArchive as error:
        return [error.problem]


def test_every_case_is_here() -> None:
    assert len(CASES) == 78
    assert {case["case"] for case in CASES} >= BETTER.keys()


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_the_verdict_is_upstreams(case: dict[str, Any]) -> None:
    problems = problems_in(SHARED / "tolerance" / case["file"])
    assert verdict(problems) == BETTER.get(case["case"], case["verdict"]), problems


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_upstream_wrote_is_sound(name: str) -> None:
    """Without a single remark, but for the one that upstream filled with random words."""
    problems = problems_in(SHARED / "archives" / name)
    assert verdict(problems) == ("warning" if name.startswith("synthetic") else "ok"), problems
