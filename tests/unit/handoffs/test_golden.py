"""Golden folders: each case holds what lies in the inbox, what the workspace had, and what it must hold afterwards.

    tests/golden/<case>/inbox/*.md        the handoffs
    tests/golden/<case>/before/…          files of the workspace before the run (optional)
    tests/golden/<case>/after/…           files of the workspace after it; drafts without their received line
    tests/golden/<case>/outcomes.txt      how each handoff ended

TRUEKEEP_UPDATE_GOLDEN=1 writes what is found; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.helpers import Place

GOLDEN = Path(__file__).parents[2] / "golden"
UPDATE = bool(os.environ.get("TRUEKEEP_UPDATE_GOLDEN"))


def files_of(root: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".truekeep" not in path.parts:
            data = path.read_bytes()
            if "handoff-inbox" in path.parts:
                data = b"\n".join(
                    line for line in data.split(b"\n") if not line.startswith((b"machine: ", b"original: "))
                )
            found[str(path.relative_to(root))] = data
    return found


@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir()))
def test_golden(case: str, tmp_path: Path) -> None:
    folder = GOLDEN / case
    place = Place.make(tmp_path)
    if (folder / "before").exists():
        shutil.copytree(folder / "before", place.workspace, dirs_exist_ok=True)
    for path in sorted((folder / "inbox").iterdir()):
        place.leave(path.read_bytes(), path.name)
    place.ingest()
    outcomes = "".join(
        f"{item.outcome} {item.name}" + "".join(f" {finding.code}" for finding in item.findings) + "\n"
        for item in place.filed
    )
    found = files_of(place.workspace)
    if UPDATE:
        shutil.rmtree(folder / "after", ignore_errors=True)
        for name, data in found.items():
            (folder / "after" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "after" / name).write_bytes(data)
        (folder / "outcomes.txt").write_text(outcomes)
    assert outcomes == (folder / "outcomes.txt").read_text()
    assert found == files_of(folder / "after")
