"""Document 000: "Ingest during quiet hours if you care about cache continuity"."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, a_handoff, run_cli
from tests.unit.integrations.test_schedule import crontab
from truekeep.integrations.schedule.config import read_settings, settings_path
from truekeep.integrations.schedule.intervals import parse_hours
from truekeep.integrations.schedule.run import run_job
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.schedule_log import parse_run

__all__ = ["crontab"]


@pytest.mark.parametrize(("hours", "is_filed"), [("11:00-13:00", True), ("13:00-11:00", False), ("22:00-13:00", True)])
def test_ingest_during_quiet_hours(place: Place, hours: str, is_filed: bool) -> None:
    place.leave(a_handoff())
    with place.open() as workspace:
        wanted = parse_hours(hours, is_pause=False)
        run = run_job(workspace, side_of(workspace), now=lambda: NOW, hours=wanted, patience=0)
    assert (run.ending == "FILED", bool(place.cards())) == (is_filed, is_filed)
    assert (run.ending == "PAUSED") is not is_filed


def test_the_words_of_both_options_are_plain(place: Place, crontab: Path) -> None:
    at = ("--workspace", str(place.workspace), "--system", "cron")
    done = run_cli("schedule", "install", "--ingest-hours", "01:00-05:00", *at)
    assert "every 30m by cron, filed only 01:00-05:00" in done.stdout
    done = run_cli("schedule", "install", "--every", "2h", *at, "--json")
    told = json.loads(done.stdout)
    assert (told["ingest_hours"], told["pause_hours"], told["quiet_hours"]) == ("01:00-05:00", None, "05:00-01:00")
    done = run_cli("schedule", "install", "--pause-hours", "09:00-18:00", *at)
    assert "every 2h by cron, nothing filed 09:00-18:00" in done.stdout
    assert run_cli("schedule", "install", "--pause-hours", "none", *at).stdout.startswith("updated every 2h by cron\n")
    assert run_cli("schedule", "install", "--pause-hours", "1:00-2:00", "--ingest-hours", "none", *at).returncode == 2


def test_the_ambiguous_option_is_refused_with_both_meanings(place: Place, crontab: Path) -> None:
    done = run_cli("schedule", "install", "--quiet-hours", "01:00-05:00", "--workspace", str(place.workspace))
    assert done.returncode == 2
    assert "--pause-hours 01:00-05:00" in done.stderr
    assert "--ingest-hours 01:00-05:00" in done.stderr
    assert not crontab.exists()


def test_hours_of_an_earlier_version_keep_their_meaning(place: Place, crontab: Path) -> None:
    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_text('[truekeep]\nevery = "30m"\nsystem = "cron"\nquiet_hours = "09:00-18:00"\n')
    known = read_settings("truekeep")
    assert known is not None
    assert known.hours is not None
    assert not known.hours.allows(NOW)
    assert known.hours.allows(NOW + timedelta(hours=12))
    run = parse_run("2026-11-16T10:30:00Z 1.9s QUIET_HOURS")
    assert run is not None
    assert run.ending == "PAUSED"
