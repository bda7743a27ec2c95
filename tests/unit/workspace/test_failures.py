"""A failed run or a noted bug is the first thing that status, doctor and the home page say, until it is over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_handoff, run_cli
from tests.support.visitor import Visitor, shown
from truekeep import __version__
from truekeep.core.bugs import REPORTED_FOR, SCHEDULED, bugs_path, find_bugs, is_bug, note_bug
from truekeep.core.errors import BadSetup
from truekeep.core.machine import own_state
from truekeep.integrations.schedule.run import run_job
from truekeep.interfaces.cli.app import run
from truekeep.workspace.check import Check
from truekeep.workspace.failures import failed_runs
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.maintenance import TidyReport
from truekeep.workspace.schedule_log import BUSY, FAILED, FILED, NO_UPDATES, PAUSED, Run, append_run, still_failed

SAID = "a text of memory"
NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
WHOLE = dict.fromkeys(("turns", "processed", "indexed", "checked", "expired", "proposed", "reconciled"), "0")
QUIET = dict.fromkeys(("turns", "indexed", "checked"), "0")


def broken(*_: object, **__: object) -> None:
    raise IndexError(SAID)


def job(place: Place) -> Run:
    with place.open() as workspace:
        return run_job(workspace, side_of(workspace), now=lambda: datetime.now(UTC), patience=0.1)


def first_line(command: str, place: Place) -> str:
    return run_cli(command, "-w", str(place.workspace)).stdout.splitlines()[0]


# --- Which steps failed, and until when -----------------------------------------------------------------------------


def failing(*runs: tuple[dict[str, str], str, str]) -> dict[str, str]:
    made = [Run(NOW + timedelta(minutes=at), 1.0, counts, ending, why) for at, (counts, ending, why) in enumerate(runs)]
    return {step: why for step, (_, why) in still_failed(made, now=NOW + timedelta(hours=1)).items()}


def without(*counts: str) -> dict[str, str]:
    return {name: value for name, value in WHOLE.items() if name not in counts}


BROKEN = (without("reconciled"), FAILED, "reconcile: a bug in truekeep (IndexError)")


def test_a_step_is_failed_until_its_next_good_run() -> None:
    assert failing(BROKEN) == {"reconcile": "a bug in truekeep (IndexError)"}
    assert failing(BROKEN, (WHOLE, NO_UPDATES, "")) == {}
    assert failing((WHOLE, FILED, ""), BROKEN, ({}, BUSY, "")) == failing(BROKEN)


def test_a_step_that_was_passed_over_did_not_go_well() -> None:
    assert failing(BROKEN, (QUIET, PAUSED, "")) == failing(BROKEN)
    index = (without("indexed", "reconciled"), FAILED, "index: the disk is full; reconcile: no; sync: gone (x; y)")
    assert failing(index) == {"index": "the disk is full", "reconcile": "no", "sync": "gone (x; y)"}
    assert failing(index, (QUIET, PAUSED, "")) == {"reconcile": "no"}
    assert failing(BROKEN, (without("indexed"), FAILED, "index: the disk is full")) == {"index": "the disk is full"}


def test_a_run_that_could_not_begin_says_nothing_of_the_steps() -> None:
    start: tuple[dict[str, str], str, str] = ({}, FAILED, "start: config.toml cannot be read")
    assert failing(BROKEN, start) == failing(BROKEN) | {"start": "config.toml cannot be read"}
    assert failing(BROKEN, start, (WHOLE, FILED, "")) == {}


def test_steps_that_this_machine_does_no_more_are_forgotten() -> None:
    assert failing(({"turns": "0"}, FAILED, "ingest: two hosts"), ({"turns": "0"}, NO_UPDATES, "elsewhere")) == {}


# --- A bug in a job -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_success_counts_though_the_clock_of_the_failure_ran_ahead(tmp_path: Path) -> None:
    append_run(tmp_path, Run(NOW + timedelta(hours=3), 1.0, {}, FAILED, "sync: desk does not answer"))
    assert [failure.name for failure in failed_runs(tmp_path, now=NOW)] == ["schedule"]
    append_run(tmp_path, Run(NOW, 1.0, WHOLE, NO_UPDATES))
    assert failed_runs(tmp_path, now=NOW) == []


def test_a_bug_in_a_job_is_told_first_until_the_job_goes_well(
    place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.leave(a_handoff())
    with monkeypatch.context() as patched:
        patched.setattr("truekeep.workspace.maintenance.Maintenance.reconcile", broken)
        done = job(place)
    assert (done.ending, done.why) == (FAILED, "reconcile: a bug in truekeep (IndexError)")
    assert place.cards() == ["staging-proxy.md"]
    noted = Path(bugs_path()).read_text()
    assert f"IndexError in {SCHEDULED}reconcile\n" in noted
    assert SAID not in noted

    told = run_cli("status", "-w", str(place.workspace))
    lines = told.stdout.splitlines()
    assert lines[0].startswith("problem schedule       reconcile failed in the run of ")
    assert lines[0].endswith(": a bug in truekeep (IndexError)")
    assert lines[1].strip() == (
        "-> update truekeep, or report it with ~/.local/state/truekeep/bugs.log; `truekeep schedule run` tries again"
    )
    assert "all good" not in told.stdout
    found = run_cli("status", "--json", "--exit-code", "-w", str(place.workspace))
    health = json.loads(found.stdout)
    assert (found.returncode, health["health"]["verdict"]) == (1, "act")
    assert [failure["name"] for failure in health["failures"]] == ["schedule"]

    examined = run_cli("doctor", "-w", str(place.workspace))
    assert examined.returncode == 1
    assert examined.stdout.startswith(
        "problem schedule       .truekeep/logs/schedule.log: reconcile failed in the run of"
    )
    assert "problem" in examined.stdout.splitlines()[-1]
    page = shown(visitor.see("/"))
    assert page.index("reconcile failed in the run of") < page.index("What waits for you")
    assert "Memory is healthy" not in page

    assert job(place).ending == NO_UPDATES
    assert "canonical host" in first_line("status", place)
    assert first_line("doctor", place).startswith("ok      workspace")
    assert json.loads(run_cli("status", "--json", "-w", str(place.workspace)).stdout)["failures"] == []


@pytest.mark.slow
def test_tidying_goes_on_behind_a_bug_in_its_first_half(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def promote(*_: object, **__: object) -> TidyReport:
        asked.append("promote")
        return TidyReport((), (), ())

    monkeypatch.setattr("truekeep.workspace.maintenance.Maintenance.duplicates", broken)
    monkeypatch.setattr("truekeep.workspace.maintenance.Maintenance.promote", promote)
    assert job(place).why == "tidy: a bug in truekeep (IndexError)"
    assert asked == ["promote"]


@pytest.mark.slow
def test_a_run_that_could_not_open_the_workspace_is_told_with_its_log(place: Place) -> None:
    append_run(Path(own_state()), Run(datetime.now(UTC), 0.0, {}, FAILED, "start: no such folder"))
    lines = run_cli("doctor", "-w", str(place.workspace)).stdout.splitlines()
    assert f"{own_state()}/logs/schedule.log: start failed" in lines[0]


# --- A bug in a command ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_noted_bug_is_told_first(
    place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("truekeep.workspace.maintenance.Maintenance.reconcile", broken)
        assert run(["reconcile", "-w", str(place.workspace)]) == 70
    assert f"truekeep crashed (IndexError). Your memory is unchanged. Details: {bugs_path()}" in capsys.readouterr().err
    assert first_line("status", place).startswith("problem bugs           a bug in `truekeep reconcile` on ")
    assert run_cli("status", "--exit-code", "-w", str(place.workspace)).returncode == 1
    assert first_line("doctor", place).startswith(
        f"problem bugs           {bugs_path()}: a bug in `truekeep reconcile`"
    )
    page = shown(visitor.see("/"))
    assert page.index("a bug in truekeep reconcile") < page.index("What waits for you")
    Path(bugs_path()).unlink()
    assert "canonical host" in first_line("status", place)
    assert first_line("doctor", place).startswith("ok      workspace")


@pytest.mark.slow
def test_a_machine_without_memory_tells_it_too(own_home: Path) -> None:
    note_bug(KeyError(), "sync")
    done = run_cli("status", "--exit-code")
    assert (done.returncode, done.stdout.splitlines()[0].split()[:2]) == (1, ["problem", "bugs"])
    assert json.loads(run_cli("status", "--json").stdout)["failures"][0]["name"] == "bugs"
    assert run_cli("doctor").stdout.startswith("problem bugs")


def test_a_noted_bug_counts_for_two_weeks_and_one_version() -> None:
    head = f"{NOW:%Y-%m-%dT%H:%M:%SZ} truekeep"
    path = Path(bugs_path())
    path.parent.mkdir(parents=True)
    path.write_text(
        f'{head} {__version__} KeyError\n  File "x.py", line 1, in y\n    z truekeep 1 KeyError\n'
        f"{head} 0.0.1 KeyError in ingest\n{head} {__version__} TypeError in verify\n"
        f"{head} {__version__} TypeError in {SCHEDULED}verify\n"
    )
    assert [(bug.kind, bug.command) for bug in find_bugs(NOW)] == [("KeyError", ""), ("TypeError", "verify")]
    assert find_bugs(NOW + REPORTED_FOR) == []


def test_a_disk_or_a_person_is_no_bug() -> None:
    assert not any(map(is_bug, (OSError(), BadSetup("x"), KeyboardInterrupt(), ImportError())))
    assert is_bug(ValueError())


def test_a_log_that_cannot_be_written_is_said(own_home: Path) -> None:
    (own_home / ".local").write_text("")
    assert note_bug(KeyError(), "sync").startswith("nowhere")


def test_a_bug_in_a_hook_is_noted_and_bad_input_is_none(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.interfaces import hooks

    run_cli("hook", "session-start", stdin="{no json", TRUEKEEP_WORKSPACE=str(place.workspace))
    assert not Path(bugs_path()).exists()
    monkeypatch.setitem(hooks.EVENTS, "stop", (4.0, broken))
    monkeypatch.setattr(hooks, "_read_payload", dict)
    assert hooks.main(["stop", "-w", str(place.workspace)]) == 0
    assert " IndexError in hook stop\n" in Path(bugs_path()).read_text()


# --- A bug in what looks at it all ----------------------------------------------------------------------------------


def test_a_bug_in_one_reading_or_check_stops_no_other(
    place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("truekeep.workspace.system_checks._parse_time", broken)
    assert run(["status", "-w", str(place.workspace)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("problem bugs           a bug in `truekeep status`")
    assert "review: truekeep crashed (IndexError)" in said
    assert "disk" in said
    assert "review: truekeep crashed (IndexError)" in shown(visitor.see("/"))

    def clock(*_: object) -> Iterator[str]:
        broken()
        yield ""

    monkeypatch.setattr("truekeep.integrations.doctor.registry.STATE", (Check("clock", "", clock),))
    assert run(["doctor", "-w", str(place.workspace)]) == 1
    said = capsys.readouterr().out
    assert "could not be checked: truekeep crashed (IndexError)" in said
    assert "ok      leftovers" in said


# --- Drafts ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_drafts_that_wait_need_a_person(place: Place, visitor: Visitor) -> None:
    with place.open() as workspace:
        workspace.verification.verify()
    place.leave("no handoff at all\n", "2026-11-14-1100-odd.md")
    place.ingest(now=datetime.now(UTC))
    done = run_cli("status", "--exit-code", "-w", str(place.workspace))
    last = done.stdout.splitlines()[-1]
    assert last.endswith("1 draft to review: `truekeep review walk`")
    assert done.stdout.splitlines()[2:4] == [
        "ok      review         1 draft waits, the oldest for 0 days", f"{'':23}2026-11-14-1100-odd.md",
    ]  # fmt: skip
    assert "1 draft waits" in shown(visitor.see("/"))
