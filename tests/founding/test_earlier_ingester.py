"""Document 000: a host that already runs the document's ingester. There is one canonical writer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, a_card, run_cli
from tests.unit.integrations.test_schedule import crontab, real_crontab
from truekeep.integrations.schedule.earlier_ingester import OFF, find_ingester

__all__ = ["crontab", "real_crontab"]

LINE = "*/15 * * * * bash ~/.openclaw/workspace/scripts/run-memory-handoff-ingest.sh"
MINE = f"# mine\n*/5 * * * * backup --all 100\\%\n{LINE}\n@daily tidy\n"


@pytest.fixture
def host(own_home: Path) -> Path:
    """A workspace at the document's place, with the document's scripts."""
    workspace = own_home / ".openclaw/workspace"
    (workspace / "scripts").mkdir(parents=True)
    (workspace / "memory").mkdir()
    for name in ("run-memory-handoff-ingest.sh", "ingest-memory-handoffs.py"):
        (workspace / "scripts" / name).write_text("exit 1\n")
    return workspace


def test_init_names_the_ingester_that_runs(host: Path, crontab: Path) -> None:
    crontab.write_text(MINE)
    done = run_cli("init")
    assert f"another ingester files handoffs into this memory, by the crontab: {LINE}" in done.stdout
    assert "`truekeep schedule takeover`" in done.stdout
    assert crontab.read_text() == MINE


def test_schedule_install_and_doctor_name_it_too(host: Path, crontab: Path) -> None:
    run_cli("init")
    crontab.write_text(MINE)
    done = run_cli("schedule", "install", "--system", "cron")
    assert LINE in done.stderr
    assert "`truekeep schedule takeover`" in done.stderr
    done = run_cli("doctor")
    assert done.returncode == 1
    assert "problem ingester" in done.stdout
    assert LINE in done.stdout


def test_takeover_shows_first_and_is_undone_to_the_byte(host: Path, crontab: Path, own_home: Path) -> None:
    run_cli("init")
    crontab.write_text(MINE)
    shown = run_cli("schedule", "takeover", "--dry-run").stdout
    assert f"-   {LINE}\n+   {OFF}{LINE}" in shown
    assert crontab.read_text() == MINE
    assert run_cli("schedule", "takeover").returncode == 3  # it asks, and nobody answers
    assert crontab.read_text() == MINE
    done = run_cli("schedule", "takeover", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    after = crontab.read_text()
    assert after.startswith(MINE.replace(LINE, OFF + LINE))
    assert "*/15 * * * * PATH=" in after  # truekeep's own timer, as often as before
    assert "schedule run --timer" in after
    assert Path(told["backup"]).read_text().startswith(MINE)
    assert run_cli("doctor").stdout.count("another ingester") == 0
    assert (host / "scripts/ingest-memory-handoffs.py").exists()
    assert run_cli("schedule", "takeover", "--undo", "--yes").returncode == 0
    assert crontab.read_text() == MINE
    assert run_cli("schedule", "takeover", "--undo", "--yes").returncode == 3


def test_a_timer_that_was_there_stays_when_the_takeover_is_undone(host: Path, crontab: Path) -> None:
    run_cli("init")
    crontab.write_text(MINE)
    run_cli("schedule", "install", "--system", "cron", "--every", "2h")
    before = crontab.read_text()
    assert "already installed" in run_cli("schedule", "takeover", "--yes").stdout
    run_cli("schedule", "takeover", "--undo", "--yes")
    assert crontab.read_text() == before


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        (LINE, True),
        ("*/30 * * * * bash $HOME/bin/run-memory-handoff-ingest.sh", True),
        ("0 * * * * cd ~/.openclaw/workspace && python3 scripts/ingest-memory-handoffs.py --repo .", True),
        ("0 * * * * $WS/scripts/run-memory-handoff-ingest.sh", True),
        (f"# {LINE}", False),
        ("0 * * * * bash ~/.openclaw/workspace/scripts/run-memory-handoff-ingest.sh ~/other", False),
        ("0 * * * * bash ~/other/scripts/run-memory-handoff-ingest.sh ~/other", False),
        ("0 * * * * ~/.openclaw/workspace/scripts/backup.sh", False),
    ],
)
def test_only_lines_about_this_memory_count(
    host: Path, crontab: Path, own_home: Path, line: str, is_ours: bool
) -> None:
    (own_home / "other/memory").mkdir(parents=True)
    crontab.write_text(f"{line}\n")
    assert bool(find_ingester(host).lines) is is_ours


def test_takeover_with_the_real_crontab(host: Path, real_crontab: Callable[[], bytes | None]) -> None:
    run_cli("init")
    mine = (real_crontab() or b"") + f"{MINE}".encode()
    subprocess.run(["crontab", "-"], input=mine, check=True)
    assert run_cli("schedule", "takeover", "--yes").returncode == 0
    assert (real_crontab() or b"").startswith(mine.replace(LINE.encode(), (OFF + LINE).encode()))
    assert run_cli("schedule", "takeover", "--undo", "--yes").returncode == 0
    assert real_crontab() == mine


# Its drafts: the sections with lower-case names, in a file named by the time.


def leave_draft(place: Place, name: str, *, card: str = "Staging Proxy") -> Path:
    sections = {
        "type": "setup",
        "title": "Staging sits behind a proxy",
        "summary": "The proxy terminates TLS.",
        "durable facts": "- Staging answers on port 8443 only",
        "recommended memory action": "create-card",
        "target card": card,
        "suggested card content": a_card(),
    }
    path = place.workspace / "memory/handoff-inbox" / name
    path.write_text("\n\n".join(f"## {key}\n{value}" for key, value in sections.items()))
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))  # as after a copy: only its name tells how old it is
    return path


def test_drafts_of_the_earlier_ingester_can_be_reviewed(place: Place) -> None:
    path = leave_draft(place, "20261001T103000.md")
    with place.open() as workspace:
        (draft,) = workspace.review.drafts()
        assert (draft.id, draft.received_at) == ("20261001T103000", "2026-10-01T10:30:00Z")
        workspace.review.approve(draft.id, target="staging-proxy.md")
    assert "8443" in place.card()
    assert not path.exists()


def test_drafts_of_the_earlier_ingester_can_be_pruned(place: Place) -> None:
    old, new = leave_draft(place, "20261001T103000.md"), leave_draft(place, f"{NOW:%Y%m%dT%H%M%S}.md")
    note = place.workspace / "memory/handoff-inbox/my-note.md"
    note.write_text("A person's own.\n")
    long_ago = (datetime.now(UTC) - timedelta(days=400)).timestamp()
    os.utime(note, (long_ago, long_ago))
    text = old.read_bytes()
    with place.open() as workspace:
        workspace.maintenance.nightly().decay(by_hand=False)
        assert old.exists()  # nothing of another program is removed unasked
        drafts, _ = workspace.handoffs.prune(force=True)
        assert [draft.id for draft in drafts] == ["20261001T103000"]
        assert (old.exists(), new.exists(), note.exists()) == (False, True, True)
        entry, _ = next(iter(workspace.history.entries()))
        workspace.history.undo(entry.id)
    assert old.read_bytes() == text
