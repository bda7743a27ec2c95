"""Power loss at any call, for each file that is neither memory nor a database; those are in test_crash.py.

Databases that cannot be made again sync their log at every commit, which is asked of each of them here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from truekeep.memory.ledger import Ledger
from truekeep.transcripts.store import TranscriptStore

ROOT = Path(__file__).parents[2]
POINTS = {"config": 12, "host": 12, "routes": 12, "host-key": 8, "machine-id": 8}


@pytest.mark.parametrize("store", POINTS)
def test_h2_a_file_is_as_before_or_as_after(tmp_path: Path, store: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.crash_files", str(tmp_path / "disk"), store],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["points"] >= POINTS[store]


def test_h2_databases_that_cannot_be_made_again_sync_every_commit(tmp_path: Path) -> None:
    ledger, transcripts = Ledger(str(tmp_path / "ledger.sqlite")), TranscriptStore(str(tmp_path / "transcripts.sqlite"))
    try:
        for db in (ledger._db, transcripts.db):
            assert db.pragma("synchronous") == 2, "FULL"
            assert db.pragma("journal_mode") in ("wal", "delete")
    finally:
        ledger.close()
        transcripts.close()
