"""systemd: a service and a timer in the user's unit folder, enabled if the user manager runs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from truekeep.core import file_io
from truekeep.core.child_process import find_program
from truekeep.core.errors import StorageFailed
from truekeep.integrations.schedule.base import OURS, InstalledJob, ask, check_ours, remove_made
from truekeep.integrations.schedule.config import Job, make_folders
from truekeep.integrations.schedule.intervals import DAY, even_every

_PLAIN = re.compile(r"/[\w/.+,:@~ -]*\Z", re.ASCII)  # program paths that systemd accepts
_SHELL_WRAPPER = ("/bin/sh", "-c", 'exec "$@"', "truekeep")
_START = re.compile(r"^ExecStart=(.*)$", re.MULTILINE)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_EVERY = re.compile(r"^# every (\d+) minutes$", re.MULTILINE)


def missing() -> str:
    return "" if find_program("systemctl") else "there is no systemctl"


def is_running() -> bool:
    return ask("systemctl", "--user", "show-environment").ok


def install(job: Job) -> InstalledJob:
    folder = _folder()
    service, timer = folder / f"{job.name}.service", folder / f"{job.name}.timer"
    for path in (service, timer):
        check_ours(path)
    made = make_folders(folder)
    file_io.write_whole(service, render_service(job).encode(), mode=0o644)
    file_io.write_whole(timer, render_timer(job).encode(), mode=0o644)
    return InstalledJob((str(service), str(timer)), job.every, made, _enable(timer.name))


def _enable(timer: str) -> tuple[str, ...]:
    if not is_running():
        done = ask("systemctl", "--user", "enable", timer)
        notes = [] if done.ok else [f"cannot enable the timer: {done.last_words}"]
        later = f"run `systemctl --user enable --now {timer}` in a login session"
        return (*notes, f"no user manager runs here; {later}")
    ask("systemctl", "--user", "daemon-reload")
    done = ask("systemctl", "--user", "enable", timer)
    if done.ok:  # a start would keep the old interval of a running timer
        done = ask("systemctl", "--user", "restart", timer)
    if not done.ok:
        raise StorageFailed(
            f"systemctl did not start {timer}: {done.last_words}", hint=f"`systemctl --user status {timer}`"
        )
    if "Linger=no" in ask("loginctl", "show-user", str(os.getuid()), "--property=Linger").out.decode(
        "ascii", "replace"
    ):
        return ("it runs only while you are logged in; `loginctl enable-linger` makes it run always",)
    return ()


def find(name: str) -> InstalledJob | None:
    folder = _folder()
    paths = (folder / f"{name}.service", folder / f"{name}.timer")
    try:
        text = paths[1].read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if OURS not in text or not paths[0].exists():
        return None
    every = _EVERY.search(text)
    return InstalledJob(tuple(str(path) for path in paths), int(every[1]) if every else 0)


def command(name: str) -> tuple[str, ...]:
    try:
        text = (_folder() / f"{name}.service").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    line = _START.search(text)
    words = tuple(_unquoted(word) for word in _WORD.findall(line[1])) if line is not None else ()
    return words[len(_SHELL_WRAPPER) :] if words[: len(_SHELL_WRAPPER)] == _SHELL_WRAPPER else words


def remove(name: str, made: tuple[str, ...]) -> bool:
    folder = _folder()
    timer = folder / f"{name}.timer"
    there = [path for path in (timer, folder / f"{name}.service") if os.path.lexists(path)]
    if not there:
        return False
    for path in there:
        check_ours(path)
    is_on = is_running()
    ask("systemctl", "--user", "disable", *(("--now",) if is_on else ()), timer.name)
    wants = folder / "timers.target.wants"
    with suppress(OSError):
        os.unlink(wants / timer.name)  # where systemctl could not
    for path in there:
        path.unlink(missing_ok=True)
    if is_on:
        ask("systemctl", "--user", "daemon-reload")
    if str(folder) in made:
        remove_made((str(wants), *made))
    else:
        remove_made(made)
    return True


def next_run(name: str, now: datetime) -> datetime | None:
    done = ask("systemctl", "--user", "show", f"{name}.timer", "--property=NextElapseUSecRealtime", "--timestamp=unix")
    match = re.search(rb"=@(\d{1,12})", done.out)
    return datetime.fromtimestamp(int(match[1]), UTC).astimezone(now.tzinfo) if done.ok and match else None


def _folder() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(config) / "systemd" / "user"


# --- The units ------------------------------------------------------------------------------------------------------


def render_service(job: Job) -> str:
    # A program whose path systemd rejects is started through a shell, as an argument.
    wrapper = () if _PLAIN.match(job.command[0]) else _SHELL_WRAPPER
    words = [quote_word(word) for word in (*wrapper, *job.command)]
    environment = "".join(f"Environment={_quoted(f'{key}={value}')}\n" for key, value in job.environment.items())
    return (
        f"# {OURS}\n"
        "[Unit]\n"
        "Description=truekeep: bring handoffs, file them, check and search what they say\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        f"{environment}"
        f"ExecStart={' '.join(words)}\n"
        "Nice=10\n"
        "TimeoutStartSec=2h\n"
    )


def render_timer(job: Job) -> str:
    return (
        f"# {OURS}\n"
        f"# every {job.every} minutes\n"
        "[Unit]\n"
        "Description=truekeep's timer\n"
        "\n"
        "[Timer]\n"
        f"{_when(job.every)}"
        f"RandomizedDelaySec={min(60, job.every * 3)}\n"
        "\n"
        "[Install]\n"
        "WantedBy=timers.target\n"
    )


def _when(every: int) -> str:
    """Return the time settings: a calendar where possible, because systemd then catches up on runs it missed asleep."""
    if even_every(every) != every:
        return f"OnStartupSec=2min\nOnUnitActiveSec={every}min\n"
    calendar = "daily" if every == DAY else f"*:0/{every}" if every < 60 else f"*-*-* 0/{every // 60}:00"
    return f"OnCalendar={calendar}\nPersistent=true\n"


def quote_word(word: str) -> str:
    """Quote a word of ExecStart; systemd expands % and $ even between quotes."""
    return _quoted(word).replace("$", "$$")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word).replace("%%", "%").replace("$$", "$")
