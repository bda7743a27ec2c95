"""The schedule: three timers of the system, one job, and a log that tells what happened."""

from __future__ import annotations

import fcntl
import json
import os
import plistlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, a_handoff, run_cli, wait_until
from tests.support.programs import need
from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup, Busy, StorageFailed, TruekeepError
from truekeep.core.host_lease import HostLease
from truekeep.core.machine import own_state
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.mirror import Mirror
from truekeep.handoffs.sync.routes import Route, add_route
from truekeep.integrations.schedule import cron, launchd, systemd
from truekeep.integrations.schedule.base import choose
from truekeep.integrations.schedule.config import NAME, Job, job_name, plan_job, read_settings, settings_path
from truekeep.integrations.schedule.install import find, install, remove
from truekeep.integrations.schedule.intervals import (
    FilingHours,
    even_every,
    next_even,
    parse_every,
    parse_hours,
    render_every,
)
from truekeep.integrations.schedule.run import run_job
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.schedule_log import Run, append_run, judge_runs, parse_run, read_runs, render_run

ODD = (
    "plain",
    "with space",
    "quote'and\"double",
    "per%cent %h %%",
    "dollar $HOME ${HOME} $$",
    "; touch hacked #",
    "`touch hacked` $(touch hacked)",
    "a=b",
    "-e sh",
    "ünï★",
)


# --- Times ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "minutes"), [("30m", 30), ("2h", 120), ("1d", 1440), (" 90 min", 90), ("1 hour", 60), ("24H", 1440)]
)
def test_interval_is_read(text: str, minutes: int) -> None:
    assert parse_every(text) == minutes
    assert parse_every(render_every(minutes)) == minutes


@pytest.mark.parametrize("text", ["", "0m", "30", "25h", "2d", "-5m", "5s", "1.5h", "m", "99999999999m"])
def test_interval_that_is_none(text: str) -> None:
    with pytest.raises(BadInput):
        parse_every(text)


@pytest.mark.parametrize(
    ("asked", "even"), [(1, 1), (7, 6), (30, 30), (45, 30), (59, 30), (60, 60), (90, 60), (300, 240), (1440, 1440)]
)
def test_interval_that_cron_cannot_do_becomes_shorter(asked: int, even: int) -> None:
    assert even_every(asked) == even


def test_next_even() -> None:
    now = datetime(2026, 11, 16, 10, 29, 59, tzinfo=UTC)
    assert next_even(now, 30) == datetime(2026, 11, 16, 10, 30, tzinfo=UTC)
    assert next_even(now.replace(minute=30), 30) == datetime(2026, 11, 16, 11, 0, tzinfo=UTC)
    assert next_even(now, 1440) == datetime(2026, 11, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("09:00-18:00", "08:59", False),
        ("09:00-18:00", "09:00", True),
        ("09:00-18:00", "17:59", True),
        ("09:00-18:00", "18:00", False),
        ("22:00-06:00", "23:30", True),
        ("22:00-06:00", "00:00", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
        ("22:00-06:00", "12:00", False),
    ],
)
def test_pause_hours(hours: str, at: str, quiet: bool) -> None:
    parsed = parse_hours(hours, is_pause=True)
    assert parsed is not None
    assert parsed.span == parsed.paused == hours
    assert parsed.allows(datetime.fromisoformat(f"2026-11-16T{at}:00+01:00")) is not quiet


def test_hours_that_are_none() -> None:
    assert parse_hours("none", is_pause=True) is None
    for text in ("9-18", "25:00-06:00", "09:60-10:00", "09:00-09:00", "09:00", "09:00-18:00x"):
        with pytest.raises(BadInput):
            parse_hours(text, is_pause=True)


# --- The crontab ----------------------------------------------------------------------------------------------------


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crontab of this test's own, behind a program that behaves as crontab(1) does."""
    tab, bin_ = tmp_path / "tab", tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "crontab").write_text(
        "#!/bin/sh\n"
        f"tab='{tab}'\n"
        f"[ -e '{tmp_path}/locked' ] && {{ echo 'You (me) are not allowed to use this program' >&2; exit 1; }}\n"
        'case "$1" in\n'
        '-l) [ -f "$tab" ] || { echo "no crontab for me" >&2; exit 1; }; cat "$tab";;\n'
        '-r) rm "$tab";;\n'
        '-) cat > "$tab.new" && mv "$tab.new" "$tab";;\n'
        "esac\n"
    )
    for name in ("systemctl", "launchctl", "loginctl"):
        (bin_ / name).write_text("#!/bin/sh\nexit 1\n")
    for program in bin_.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    return tab


def a_job(every: int = 30, *, program: str = "/opt/truekeep/bin/truekeep", workspace: str = "/srv/memory") -> Job:
    command = (program, "schedule", "run", "--timer", "--workspace", workspace)
    return Job(NAME, command, {"PATH": "/usr/bin:/bin"}, every)


THEIRS = b'# mine\nMAILTO=""\n*/5 * * * * backup --all 100\\%\n\n\n# end, with a tab\t\n'


def test_crontab_keeps_every_other_byte(crontab: Path) -> None:
    crontab.write_bytes(THEIRS)
    cron.install(a_job())
    first = crontab.read_bytes()
    assert first.startswith(THEIRS)
    assert b"\n*/30 * * * * PATH=/usr/bin:/bin /opt/truekeep/bin/truekeep schedule run --timer" in first
    cron.install(a_job(120))
    assert crontab.read_bytes().count(b"truekeep:begin") == 1
    assert b"\n0 */2 * * * PATH=" in crontab.read_bytes()
    found = cron.find(NAME)
    assert found is not None
    assert found.every == 120
    assert cron.remove(NAME, ())
    assert crontab.read_bytes() == THEIRS
    assert not cron.remove(NAME, ())


def test_lines_written_around_the_block_stay(crontab: Path) -> None:
    crontab.write_bytes(THEIRS)
    cron.install(a_job())
    crontab.write_bytes(b"# above\n" + crontab.read_bytes() + b"1 1 * * * below\n")
    cron.install(a_job(60))
    cron.remove(NAME, ())
    assert crontab.read_bytes() == b"# above\n" + THEIRS + b"1 1 * * * below\n"


def test_crontab_that_was_not_there_goes_again(crontab: Path) -> None:
    made = cron.install(a_job()).made
    assert made == (cron.MADE,)
    cron.remove(NAME, made)
    assert not crontab.exists()
    crontab.write_bytes(b"")
    assert cron.install(a_job()).made == ()
    cron.remove(NAME, ())
    assert crontab.read_bytes() == b""


def test_crontab_that_may_not_be_read_is_not_taken_for_empty(crontab: Path, tmp_path: Path) -> None:
    crontab.write_bytes(THEIRS)
    (tmp_path / "locked").touch()
    with pytest.raises(StorageFailed, match="not allowed"):
        cron.install(a_job())
    assert crontab.read_bytes() == THEIRS


def test_broken_block_is_left_to_the_person(crontab: Path) -> None:
    cron.install(a_job())
    torn = crontab.read_bytes().replace(b"# truekeep:end schedule truekeep\n", b"")
    crontab.write_bytes(torn)
    for act in (lambda: cron.install(a_job()), lambda: cron.remove(NAME, ())):
        with pytest.raises(BadInput, match="in the crontab"):
            act()
    assert crontab.read_bytes() == torn


@pytest.mark.parametrize("every", [1, 2, 15, 30, 60, 120, 720, 1440])
def test_interval_is_found_again(crontab: Path, every: int) -> None:
    cron.install(a_job(every))
    found = cron.find(NAME)
    assert found is not None
    assert found.every == every


def test_rounded_interval_is_said(crontab: Path) -> None:
    done = cron.install(a_job(45))
    assert done.every == 30
    assert "45m" in done.notes[0]


def as_cron_reads(line: str) -> str:
    """The command of a line, as cron hands it to the shell."""
    command, out, at = line.split(" ", 5)[5], "", 0
    while at < len(command):
        if command[at] == "\\" and command[at + 1 : at + 2] == "%":
            out, at = out + "%", at + 2
        elif command[at] == "%":
            break
        else:
            out, at = out + command[at], at + 1
    return out


@pytest.mark.parametrize("odd", ODD)
def test_crontab_line_says_exactly_what_was_meant(tmp_path: Path, odd: str) -> None:
    program, heard = an_odd_program(tmp_path, odd)
    job = a_job(program=str(program), workspace=f"/srv/{odd}")
    line = cron.render_line(job._replace(environment={"PATH": os.environ["PATH"], "CODEX_HOME": f"/x/{odd}"}))
    assert "\n" not in line
    subprocess.run(["/bin/sh", "-c", as_cron_reads(line)], check=True, cwd=tmp_path)
    assert heard.read_text().splitlines() == [*job.command[1:], f"/x/{odd}"]
    assert not (tmp_path / "hacked").exists()


def an_odd_program(base: Path, odd: str) -> tuple[Path, Path]:
    """A program in a folder of this name that writes down what it is told."""
    heard = base / "heard"
    program = base / odd / "true keep"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" \"$CODEX_HOME\" > '{heard}'\n")
    program.chmod(0o755)
    return program, heard


def test_crontab_cannot_hold_a_backslash() -> None:
    with pytest.raises(BadInput, match="backslash"):
        cron.render_line(a_job(workspace="/srv/a\\b"))


@pytest.fixture
def real_crontab() -> Iterator[Callable[[], bytes | None]]:
    """The real program, with the user's crontab put back afterwards, byte for byte."""
    need("crontab")
    with open(Path(tempfile.gettempdir()) / f"truekeep-test-crontab-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # there is one for all tests of this user
        try:
            before = cron.read_crontab()
        except StorageFailed as error:
            pytest.skip(f"this user may not have a crontab: {error}")
        yield cron.read_crontab
        if before is None:
            if cron.read_crontab() is not None:
                subprocess.run(["crontab", "-r"], check=True)
        elif cron.read_crontab() != before:
            subprocess.run(["crontab", "-"], input=before, check=True)


def test_the_real_crontab(real_crontab: Callable[[], bytes | None]) -> None:
    before = real_crontab()
    job = a_job(workspace='/srv/it\'s 100% "mine"')._replace(name="truekeep-test")
    done = cron.install(job)
    try:
        assert cron.render_line(job).encode() in (real_crontab() or b"")
        assert (real_crontab() or b"").startswith(before or b"")
        cron.install(job._replace(every=60))
        assert (real_crontab() or b"").count(b"begin schedule truekeep-test:") == 1
    finally:
        assert cron.remove("truekeep-test", done.made)
    assert real_crontab() == before


# --- systemd --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "every"),
    [*((odd, 30) for odd in (*ODD, "back\\slash")), *(("plain", every) for every in (1, 45, 60, 120, 300, 1440))],
)
def test_units_are_what_systemd_takes(tmp_path: Path, odd: str, every: int) -> None:
    need("systemd-analyze")
    program, _ = an_odd_program(tmp_path, odd)
    job = a_job(every, program=str(program), workspace=f"/srv/{odd}")
    units = tmp_path / "units"
    units.mkdir()
    (units / "truekeep.service").write_text(systemd.render_service(job))
    (units / "truekeep.timer").write_text(systemd.render_timer(job))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(units / "truekeep.timer"), str(units / "truekeep.service")],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("odd", [*ODD, "back\\slash"])
def test_words_of_a_unit(odd: str) -> None:
    quoted = systemd.quote_word(odd)
    assert quoted[0] == quoted[-1] == '"'
    # As systemd.service(5) has it: C escapes, then %% and $$.
    inner = quoted[1:-1].replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\")
    assert "%" not in inner.replace("%%", "")
    assert "$" not in inner.replace("$$", "")
    assert inner.replace("%%", "%").replace("$$", "$") == odd


def test_timer_by_the_clock_catches_up() -> None:
    assert "OnCalendar=*:0/30\nPersistent=true\n" in systemd.render_timer(a_job(30))
    assert "OnCalendar=*-*-* 0/4:00\nPersistent=true\n" in systemd.render_timer(a_job(240))
    assert "OnUnitActiveSec=45min\n" in systemd.render_timer(a_job(45))


def a_systemctl(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl with a user manager behind it, and what it was told."""
    told, bin_ = base / "told", base / "sbin"
    bin_.mkdir()
    (bin_ / "systemctl").write_text(f"#!/bin/sh\necho \"$*\" >> '{told}'\n")
    (bin_ / "loginctl").write_text("#!/bin/sh\necho Linger=no\n")
    for program in bin_.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    return told


def test_units_come_and_go(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = a_systemctl(tmp_path, monkeypatch)
    done = systemd.install(a_job())
    folder = own_home / ".config" / "systemd" / "user"
    assert sorted(path.name for path in folder.iterdir()) == ["truekeep.service", "truekeep.timer"]
    assert "enable truekeep.timer" in told.read_text()
    assert "restart truekeep.timer" in told.read_text()
    assert "linger" in done.notes[0]
    again = systemd.install(a_job(45))
    assert again.made == ()
    found = systemd.find(NAME)
    assert found is not None
    assert found.every == 45
    assert systemd.remove(NAME, done.made)
    assert "disable --now truekeep.timer" in told.read_text()
    assert list(own_home.iterdir()) == []
    assert not systemd.remove(NAME, ())


def test_unit_of_somebody_else_stays(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_systemctl(tmp_path, monkeypatch)
    folder = own_home / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    (folder / "truekeep.service").write_text("[Service]\nExecStart=/bin/true\n")
    for act in (lambda: systemd.install(a_job()), lambda: systemd.remove(NAME, ())):
        with pytest.raises(BadInput, match="not written by truekeep"):
            act()
    assert [path.name for path in folder.iterdir()] == ["truekeep.service"]


def test_units_without_a_user_manager_are_enabled_for_later(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("systemctl")
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own_home / "nowhere"))
    done = systemd.install(a_job())
    assert "no user manager" in done.notes[-1]
    assert (own_home / ".config/systemd/user/timers.target.wants/truekeep.timer").is_symlink()
    assert systemd.remove(NAME, done.made)
    assert list(own_home.iterdir()) == []


# --- launchd --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [*ODD, "back\\slash", "<&]]>"])
def test_agent_is_a_property_list(odd: str) -> None:
    job = a_job(program=f"/{odd}/truekeep", workspace=f"/srv/{odd}")
    agent = plistlib.loads(launchd.render_agent(job))
    assert agent["ProgramArguments"] == list(job.command)
    assert agent["StartInterval"] == 1800
    assert agent["EnvironmentVariables"] == {"PATH": "/usr/bin:/bin"}


def test_agent_comes_and_goes(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_, told = tmp_path / "mac", tmp_path / "told"
    bin_.mkdir()
    (bin_ / "launchctl").write_text(f"#!/bin/sh\necho \"$*\" >> '{told}'\n")
    (bin_ / "launchctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    done = launchd.install(a_job(45))
    path = own_home / "Library" / "LaunchAgents" / "io.truekeep.truekeep.plist"
    assert path.is_file()
    assert f"bootstrap gui/{os.getuid()} {path}" in told.read_text()
    found = launchd.find(NAME)
    assert found is not None
    assert found.every == 45
    assert launchd.remove(NAME, done.made)
    assert list(own_home.iterdir()) == []


# --- Install, status, remove ----------------------------------------------------------------------------------------

AT = "2026-11-15T12:00:00Z"


def test_another_system_takes_the_place_of_the_first(crontab: Path, own_home: Path) -> None:
    placed = install(None, every=30, hours=None, system="cron", at=AT)
    assert not placed.is_update
    hours = parse_hours("22:00-06:00", is_pause=True)
    placed = install(None, every=45, hours=hours, system="systemd", at=AT)
    assert placed.is_update
    assert not crontab.exists()
    settings = read_settings(NAME)
    assert settings is not None
    assert (settings.every, settings.system, settings.hours) == (45, "systemd", hours)
    assert remove(None) == ("systemd",)
    assert not settings_path().exists()
    assert find(NAME) is None
    with pytest.raises(BadInput, match="no schedule"):
        remove(None)


def test_each_workspace_has_its_own(crontab: Path, tmp_path: Path, own_home: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other, None):
        install(path, every=30, hours=None, system="cron", at=AT)
    assert crontab.read_bytes().count(b"truekeep:begin") == 3
    assert f"--workspace {one}".encode() in crontab.read_bytes()
    assert job_name(own_home / ".openclaw" / "workspace") == NAME != job_name(one)
    remove(one)
    assert find(job_name(one)) is None
    assert find(job_name(other)) is not None
    remove(other)
    remove(None)
    assert not crontab.exists()


def test_job_is_named_in_full_and_brings_its_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    job = plan_job(tmp_path, 30)
    assert os.path.isabs(job.command[0])
    assert os.access(job.command[0], os.X_OK)
    assert job.command[-2:] == ("--workspace", str(tmp_path))
    assert os.path.dirname(shutil.which("git") or "") in job.environment["PATH"].split(":")
    assert job.environment["XDG_STATE_HOME"] == "/state"
    assert "OPENAI_API_KEY" not in job.environment
    with pytest.raises(BadInput, match="cannot be given"):
        plan_job(Path("/srv/new\nline"), 30)
    with pytest.raises(BadInput, match="cannot be given"):
        plan_job(Path(os.fsdecode(b"/srv/\xff")), 30)


def test_program_without_its_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    assert plan_job(None, 30).command[:4] == (str(tmp_path / "python3"), "-P", "-m", "truekeep")


def test_system_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadSetup, match="launchctl"):
        choose("launchd")
    with pytest.raises(BadSetup, match="neither"):
        choose("auto")


def test_auto_prefers_what_would_run(crontab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert choose("auto") == "cron"
    a_systemctl(tmp_path, monkeypatch)
    assert choose("auto") == "systemd"


@pytest.mark.slow
def test_install_status_remove_from_the_command_line(place: Place, crontab: Path) -> None:
    crontab.write_bytes(THEIRS)
    at = ("--workspace", str(place.workspace))
    done = run_cli("schedule", "install", "--every", "45m", "--pause-hours", "22:00-06:00", "--system", "cron", *at)
    assert done.returncode == 0
    assert "installed every 30m by cron, nothing filed 22:00-06:00" in done.stdout
    assert "45m" in done.stderr
    done = run_cli("schedule", "install", "--every", "15m", "--json", *at)
    told = json.loads(done.stdout)
    assert (told["updated"], told["every_minutes"], told["quiet_hours"]) == (True, 15, "22:00-06:00")
    told = json.loads(run_cli("schedule", "status", "--json", "--exit-code", *at).stdout)
    assert (told["installed"], told["system"], told["last"], told["overdue"]) == (True, "cron", None, False)
    assert run_cli("schedule", "run", "--timer", "--now", *at).stdout == ""
    done = run_cli("schedule", "status", "--exit-code", *at)
    assert done.returncode == 0
    assert "NO_UPDATES" in done.stdout
    assert run_cli("schedule", "remove", *at).stdout == "removed from cron\n"
    assert crontab.read_bytes() == THEIRS
    done = run_cli("schedule", "status", "--exit-code", *at)
    assert done.returncode == 1
    assert "no timer is installed" in done.stdout
    assert run_cli("schedule", "remove", *at).returncode == 3


# --- The log --------------------------------------------------------------------------------------------------------


def test_line_is_read_as_it_was_written() -> None:
    run = Run(NOW, 1.5, {"processed": "3", "promoted": "2"}, "FAILED", "sync: laptop (no answer)")
    line = render_run(run)
    assert line == "2026-11-15T12:00:00Z 1.5s processed=3 promoted=2 FAILED sync: laptop (no answer)"
    assert parse_run(line) == run
    assert "\n" not in render_run(run._replace(why="one\ntwo\x1b[31m"))
    for other in ("", "garbage", "2026-11-15T12:00:00Z 1s", "never 1.0s FILED", "2026-11-15T12:00:00 1.0s FILED"):
        assert parse_run(other) is None


def test_overdue_is_two_intervals_without_a_run(tmp_path: Path) -> None:
    def judge(*runs: Run, installed_at: str = AT, minutes: int = 0) -> tuple[bool, int]:
        now = NOW + timedelta(minutes=minutes)
        health = judge_runs(list(runs), every=30, installed_at=installed_at, now=now)
        return health.is_overdue, health.busy

    ran, busy = Run(NOW, 1, {}, "NO_UPDATES"), Run(NOW + timedelta(minutes=70), 0, {}, "BUSY")
    assert judge(minutes=59) == (False, 0)
    assert judge(minutes=61) == (True, 0)
    assert judge(ran, minutes=60) == (False, 0)
    assert judge(ran, minutes=61) == (True, 0)
    assert judge(ran, busy, minutes=71) == (True, 1)  # starts that find it busy are no runs
    assert judge(ran, installed_at="2026-11-15T13:00:00Z", minutes=90) == (False, 0)


def test_last_run_is_found_in_a_log_that_was_turned_over(tmp_path: Path) -> None:
    append_run(tmp_path, Run(NOW, 1, {}, "NO_UPDATES"))
    os.replace(tmp_path / "logs" / "schedule.log", tmp_path / "logs" / "schedule.log.1")
    assert read_runs(tmp_path)[-1].at == NOW
    append_run(tmp_path, Run(NOW + timedelta(hours=1), 1, {}, "FILED"))
    assert [run.ending for run in read_runs(tmp_path)] == ["NO_UPDATES", "FILED"]


@pytest.mark.slow
def test_status_of_one_that_stopped(place: Place, crontab: Path) -> None:
    at = ("--workspace", str(place.workspace))
    run_cli("schedule", "install", "--system", "cron", *at)
    settings = settings_path()
    settings.write_text(settings.read_text().replace('installed_at = "20', 'installed_at = "19'))
    long_ago = datetime.now(UTC) - timedelta(hours=5)
    append_run(place.workspace / ".truekeep", Run(long_ago, 2, {}, "FAILED", "verify: no space"))
    done = run_cli("schedule", "status", "--exit-code", *at)
    assert done.returncode == 1
    assert "overdue: it did not run since" in done.stdout
    assert "the last run failed: verify: no space" in done.stdout
    assert run_cli("schedule", "status", *at).returncode == 0


# --- A run ----------------------------------------------------------------------------------------------------------


def job_of(place: Place, *, quiet: FilingHours | None = None, now: datetime = NOW) -> Run:
    with place.open(now=now) as workspace:
        return run_job(workspace, side_of(workspace), now=lambda: now, hours=quiet, patience=0)


def last_line(place: Place) -> str:
    return (place.workspace / ".truekeep" / "logs" / "schedule.log").read_text().splitlines()[-1]


def test_run_that_finds_nothing(place: Place) -> None:
    run = job_of(place)
    assert run.ending == "NO_UPDATES"
    assert last_line(place).endswith(" NO_UPDATES")
    assert last_line(place).startswith("2026-11-15T12:00:00Z ")


@pytest.mark.slow
def test_run_that_files(place: Place) -> None:
    place.leave(a_handoff())
    run = job_of(place)
    assert run.ending == "FILED"
    assert (run.counts["processed"], run.counts["promoted"]) == ("1", "1")
    assert int(run.counts["indexed"]) > 0
    assert run.counts["checked"] == "1"
    assert place.cards() == ["staging-proxy.md"]
    assert job_of(place).ending == "NO_UPDATES"


@pytest.mark.slow
def test_nothing_is_filed_in_pause_hours(place: Place) -> None:
    place.leave(a_handoff())
    old = place.leave(a_handoff(), name="2026-09-01-0900-old.md", inbox=place.inbox / "processed", age=86_400)
    later = datetime.now(UTC) + timedelta(days=100)
    quiet = parse_hours(f"{later:%H}:00-{later + timedelta(hours=1):%H}:59", is_pause=True)
    run = job_of(place, quiet=quiet, now=later)
    assert run.ending == "PAUSED"
    assert "processed" not in run.counts
    assert "indexed" in run.counts
    assert last_line(place).endswith(" PAUSED")
    assert place.waiting()
    assert old.exists()
    assert job_of(place, now=later).ending == "FILED"
    assert not old.exists()


@pytest.mark.slow
def test_hours_are_those_of_install_unless_told_otherwise(place: Place, crontab: Path) -> None:
    at = ("--workspace", str(place.workspace))
    run_cli("schedule", "install", "--system", "cron", "--pause-hours", "00:00-23:59", *at)
    now = datetime.now().astimezone()
    if (now.hour, now.minute) == (23, 59):
        pytest.skip("the one minute that is not quiet")
    assert json.loads(run_cli("schedule", "run", "--json", *at).stdout)["ending"] == "PAUSED"
    assert json.loads(run_cli("schedule", "run", "--json", "--now", *at).stdout)["ending"] == "NO_UPDATES"
    done = run_cli("schedule", "run", "--json", "--pause-hours", "none", *at)
    assert json.loads(done.stdout)["ending"] == "NO_UPDATES"


@pytest.mark.slow
def test_step_that_fails_does_not_stop_the_others(place: Place) -> None:
    (place.workspace / ".truekeep" / "sync.toml").write_text("not toml")
    place.leave(a_handoff())
    done = run_cli("schedule", "run", "--workspace", str(place.workspace))
    assert done.returncode == 1
    assert place.cards() == ["staging-proxy.md"]
    assert " processed=1 " in last_line(place)
    assert " FAILED sync: " in last_line(place)
    done = run_cli("schedule", "run", "--timer", "--workspace", str(place.workspace))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "sync.toml cannot be read" in done.stderr


def test_bug_in_a_step_is_a_failure_of_that_step(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("truekeep.workspace.verification.Verification.verify", broken)
    run = job_of(place)
    assert (run.ending, run.why) == ("FAILED", "verify: a bug in truekeep (ZeroDivisionError)")
    assert run.counts["pruned"] == "0"


@pytest.mark.slow
def test_run_that_cannot_begin_is_a_line_too(own_home: Path, place: Place) -> None:
    done = run_cli("schedule", "run", "--timer", "--workspace", str(place.base / "nowhere"))
    assert done.returncode == 6
    log = own_home / ".local" / "state" / "truekeep" / "logs" / "schedule.log"
    assert " FAILED start: " in log.read_text()
    settings_path().write_text("[truekeep]\nevery = 5\n")
    assert run_cli("schedule", "run", "--timer", "--workspace", str(place.workspace)).returncode == 0
    settings_path().write_text(f'[{job_name(place.workspace)}]\nevery = "soon"\n')
    assert run_cli("schedule", "run", "--timer", "--workspace", str(place.workspace)).returncode == 6
    assert " FAILED start: " in last_line(place)


@pytest.mark.slow
def test_runs_never_overlap(place: Place) -> None:
    place.configure(settle=2)
    place.leave(a_handoff(), age=0)  # too fresh: the first run waits for it to settle
    at = ("--workspace", str(place.workspace))
    command = [sys.executable, "-m", "truekeep", "schedule", "run", "--timer", *at]
    with subprocess.Popen(command) as first:
        logs = place.workspace / ".truekeep" / "logs"

        def is_running() -> bool:
            with file_io.locked(str(logs)) as held:
                return not held

        assert wait_until(is_running)
        first.send_signal(signal.SIGSTOP)  # until the others have tried
        assert json.loads(run_cli("schedule", "status", "--json", *at).stdout)["running"] is True
        second = run_cli("schedule", "run", "--timer", *at)
        third = run_cli("schedule", "run", "--json", *at)
        assert first.poll() is None
        first.send_signal(signal.SIGCONT)
        assert first.wait(120) == 0
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert third.returncode == 5
    assert json.loads(third.stdout)["error"]["code"] == "busy"
    endings = [run.ending for run in read_runs(place.workspace / ".truekeep")]
    assert endings == ["BUSY", "BUSY", "FILED"]


def test_another_truekeep_that_writes_is_waited_for(place: Place) -> None:
    with place.open() as workspace, place.open() as other, other.locked():
        run = run_job(workspace, side_of(workspace), now=lambda: NOW, patience=0.1)
    assert run.ending == "FAILED"
    assert "another truekeep is writing" in run.why


def test_busy_is_told_and_noted(place: Place) -> None:
    job_of(place)
    with file_io.locked(str(place.workspace / ".truekeep" / "logs")), pytest.raises(Busy):
        job_of(place)
    assert last_line(place) == "2026-11-15T12:00:00Z 0.0s BUSY"


# --- Other machines -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_machine_without_memory_syncs_and_keeps_transcripts(own_home: Path, tmp_path: Path) -> None:
    done = run_cli("schedule", "run")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["sync", "transcripts", "NO_UPDATES"]
    log = own_home / ".local" / "state" / "truekeep" / "logs" / "schedule.log"
    assert log.read_text().endswith(" turns=0 NO_UPDATES\n")


@pytest.mark.slow
def test_copy_of_a_memory_is_not_written(place: Place, own_home: Path) -> None:
    place.leave(a_handoff())
    at = ("--workspace", str(place.workspace))
    done = run_cli("schedule", "run", *at, TRUEKEEP_MACHINE_ID="another")
    assert done.returncode == 0
    assert "ingest" not in done.stdout
    assert place.waiting()
    assert not (place.workspace / ".truekeep" / "logs" / "schedule.log").exists()
    told = json.loads(run_cli("schedule", "status", "--json", *at, TRUEKEEP_MACHINE_ID="another").stdout)
    assert told["canonical_host"] is False
    assert told["last"]["ending"] == "NO_UPDATES"
    assert told["last"]["why"].startswith("nothing is filed here, the canonical host is ")


@pytest.mark.slow
def test_a_host_that_was_superseded_or_gave_it_up(place: Place, own_home: Path) -> None:
    at = ("schedule", "run", "--json", "--workspace", str(place.workspace))
    with place.open() as workspace:
        released = workspace.host.release()
    done = run_cli(*at)
    assert (done.returncode, "there is no canonical host" in json.loads(done.stdout)["why"]) == (1, True), done
    with place.open() as workspace:
        workspace.state.write_lease(HostLease(id="0" * 32, name="box", generation=2, taken_at=AT))
    done = run_cli(*at)
    assert (done.returncode, json.loads(done.stdout)["ending"]) == (0, "NO_UPDATES"), "given up, then taken elsewhere"
    with place.open() as workspace:
        workspace.state.write_lease(released._replace(released_at=""))
    done = run_cli(*at)
    assert (done.returncode, "the canonical host is box" in json.loads(done.stdout)["why"]) == (1, True), done
    add_route(Path(own_state()), Route("host", "git", {"remote": str(place.base / "none"), "repos": ("~/x",)}))
    assert "ingest" not in run_cli(*at).stdout, "a producer now"


@pytest.mark.slow
def test_a_typo_is_no_run(place: Place, own_home: Path) -> None:
    done = run_cli("schedule", "run", "--pause-hours", "lunch", "--workspace", str(place.workspace))
    assert done.returncode == 3
    assert not (place.workspace / ".truekeep" / "logs" / "schedule.log").exists()
    assert not (own_home / ".local" / "state" / "truekeep" / "logs" / "schedule.log").exists()


def test_a_run_of_a_clock_that_was_ahead_hides_nothing() -> None:
    runs = [Run(NOW - timedelta(hours=5), 1, {}, "FILED"), Run(NOW + timedelta(days=9), 1, {}, "FILED")]
    health = judge_runs(runs, every=30, installed_at="", now=NOW)
    assert (health.is_overdue, health.last) == (True, runs[0])


@pytest.mark.slow
def test_two_hosts_are_a_failure_and_no_quiet_day(place: Place) -> None:
    with place.open() as workspace:
        for name in ("0", "1"):
            workspace.state.write_lease(HostLease(id=name * 32, name=f"box-{name}", generation=2, taken_at=AT))
    done = run_cli("schedule", "run", "--json", "--workspace", str(place.workspace))
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["ending"] == "FAILED"
    assert told["why"].startswith("ingest: ")


def with_route(place: Place, monkeypatch: pytest.MonkeyPatch, contact: Callable[[Route, object], Contact]) -> Path:
    state = place.workspace / ".truekeep"
    add_route(state, Route("laptop", "rsync", {"host": "laptop", "repos": ("~/repos/*",)}))
    monkeypatch.setattr("truekeep.handoffs.sync.runner.transport", lambda _: contact)
    return state


@pytest.mark.slow
def test_what_a_route_brings_is_filed_in_the_same_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def contact(route: Route, here: object) -> Contact:
        mirror = Mirror.of(place.workspace / ".truekeep", route.name)
        there = mirror.place("laptop", "/home/ada/repos/web", "github.com/ada/web")
        mirror.take(there, ".claude/memory-handoffs", "2026-11-14-0900-proxy.md", a_handoff().encode())
        path = there.folder / ".claude/memory-handoffs/2026-11-14-0900-proxy.md"
        os.utime(path, (time.time() - 60, time.time() - 60))
        return Contact(route.name, "", True, brought=1)

    with_route(place, monkeypatch, contact)
    run = job_of(place)
    assert run.ending == "FILED"
    assert (run.counts["reached"], run.counts["brought"], run.counts["promoted"]) == ("1", "1", "1")


@pytest.mark.slow
def test_machine_that_sleeps_is_told_and_no_failure_for_a_day(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def contact(route: Route, here: object) -> Contact:
        raise TruekeepError("no answer")

    state = with_route(place, monkeypatch, contact)
    run = job_of(place)
    assert run.ending == "FAILED"
    assert run.why == "sync: laptop (no answer; last reached never)"
    write_contact(state, Contact("laptop", "2026-11-15T02:00:00Z", True))
    run = job_of(place)
    assert (run.ending, run.counts["unreached"]) == ("NO_UPDATES", "1")
    assert run.why == "unreached laptop (no answer; last reached 2026-11-15T02:00:00Z)"
    assert job_of(place, now=NOW + timedelta(days=2)).ending == "FAILED"


def test_what_a_machine_was_not_told_of_is_not_pruned(place: Place) -> None:
    state = place.workspace / ".truekeep"
    add_route(state, Route("laptop", "rsync", {"host": "laptop", "repos": ("~/repos/*",)}))
    mirror = Mirror.of(state, "laptop")
    there = mirror.place("laptop", "/home/ada/repos/web", "github.com/ada/web")
    kept = place.leave(a_handoff(), inbox=there.folder / ".claude/memory-handoffs/processed")
    own = place.leave(a_handoff(), inbox=place.inbox / "processed")
    later = datetime.now(UTC) + timedelta(days=60)

    def prune() -> list[str]:
        with place.open(now=later) as workspace:
            return workspace.handoffs.prune(force=True)[1]

    assert prune() == [str(own)]
    write_contact(state, Contact("laptop", "2020-01-01T00:00:00Z", True))
    assert prune() == []
    write_contact(state, Contact("laptop", later.strftime("%Y-%m-%dT%H:%M:%SZ"), True))
    assert prune() == [str(kept)]
