"""What this machine runs: real sockets, unit files and web servers; stand-ins only for systemctl and its like."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import wait_until
from truekeep.verify.live_system import answers, containers, ports, systemd, urls
from truekeep.verify.live_system.answers import SystemAnswer, find_program
from truekeep.verify.live_system.containers import query_containers
from truekeep.verify.live_system.ports import query_ports
from truekeep.verify.live_system.systemd import find_unit_ports, query_units, unit_ports
from truekeep.verify.live_system.urls import query_urls

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

StandIn = Callable[[str, str], Path]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Puts a program on PATH, which has nothing else: none of the real ones is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/asked\n{script}\n')
        path.chmod(0o755)
        return path

    return make


def asked(tmp_path: Path) -> list[str]:
    """The argument lists that stand-ins were run with."""
    log = tmp_path / "asked"
    return log.read_text().splitlines() if log.exists() else []


# --- Programs -------------------------------------------------------------------------------------------------------


def test_a_program_is_found_and_not_run(stand_in: StandIn, tmp_path: Path) -> None:
    path = stand_in("deploy-app", "")

    assert find_program("deploy-app") == path
    assert find_program("deploy") is None
    assert not asked(tmp_path)


def test_only_what_can_be_run_is_a_program(stand_in: StandIn) -> None:
    path = stand_in("notes", "")
    path.chmod(0o644)
    (path.parent / "folder").mkdir()

    assert find_program("notes") is None
    assert find_program("folder") is None


@pytest.mark.parametrize("name", ["", "-la", "..", "a/b", "/bin/sh", "a b", "sh\n", "sh\0", "é", "x" * 500, "$(id)"])
def test_what_is_no_name_is_no_program(name: str) -> None:
    assert find_program(name) is None


def test_the_current_folder_is_not_on_path(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stand_in("tool", "")
    monkeypatch.chdir(path.parent)
    for entry in (".", "", "./", f"../{path.parent.name}"):
        monkeypatch.setenv("PATH", entry)
        assert find_program("tool") is None


def test_programs_are_run_in_a_clean_place(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEMD_PAGER", "evil")
    monkeypatch.setenv("LD_PRELOAD_OF_MEMORY", "evil")
    monkeypatch.setenv("SECRET_TOKEN", "evil")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    stand_in("systemctl", f"/usr/bin/env > {tmp_path}/env; pwd >> {tmp_path}/env; /bin/cat > {tmp_path}/stdin")

    query_units(["app"])

    lines = (tmp_path / "env").read_text().splitlines()
    assert "LC_ALL=C" in lines
    assert "SYSTEMD_PAGER=cat" in lines
    assert not [line for line in lines if "evil" in line]
    assert "/" in lines
    assert (tmp_path / "stdin").read_bytes() == b""


def test_a_program_that_hangs_is_ended_with_all_it_started(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_PROGRAM_SECONDS", 2)
    stand_in("docker", f"/bin/sleep 600 & echo $! > {tmp_path}/pid; wait")

    seen = query_containers(["web"])["web"]

    assert (seen.state, seen.what) == ("unknown", "docker did not answer within 2 s")
    assert is_gone(int((tmp_path / "pid").read_text()))


def is_gone(pid: int) -> bool:
    """One that nobody has waited for yet is gone too."""

    def is_it() -> bool:
        try:
            os.kill(pid, 0)
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    return wait_until(is_it)


def test_one_that_leaves_its_output_open_is_not_waited_for(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_PROGRAM_SECONDS", 2)
    stand_in("docker", f"/bin/sleep 600 & echo $! > {tmp_path}/pid; exit 0")

    assert query_containers(["web"])["web"].state == "unknown"
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_start_up_stays_cheap() -> None:
    code = "import sys, truekeep.verify.system_claims; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"ssl", "httpx", "http.client", "re2"} & set(modules)


# --- Ports ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def whole_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if these tests never ran in a container, where nothing can be said to be absent."""
    marker = tmp_path / "netdev_max_backlog"
    marker.write_text("1000\n")
    monkeypatch.setattr(ports, "_HOST_NAMESPACE_MARKER", str(marker))


def listen(family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, host: str = "127.0.0.1") -> socket.socket:
    try:
        bound = socket.socket(family, kind)
        bound.bind((host, 0))
    except OSError as error:
        pytest.skip(f"no such socket here: {error}")
    if kind == socket.SOCK_STREAM:
        bound.listen()
    return bound


def port_of(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


@on_linux
@pytest.mark.parametrize(
    ("family", "kind", "host", "shown"),
    [
        (socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1", "127.0.0.1:{}"),
        (socket.AF_INET, socket.SOCK_STREAM, "0.0.0.0", "0.0.0.0:{}"),
        (socket.AF_INET6, socket.SOCK_STREAM, "::1", "[::1]:{}"),
        (socket.AF_INET6, socket.SOCK_STREAM, "::", "[::]:{}"),
        (socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1", "127.0.0.1:{} (UDP)"),
        (socket.AF_INET6, socket.SOCK_DGRAM, "::1", "[::1]:{} (UDP)"),
    ],
)
def test_an_open_port_is_there(family: int, kind: int, host: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_OWNER_SEARCH_SECONDS", 10.0)
    with closing(listen(family, kind, host)) as bound:
        seen = query_ports([port_of(bound)])[port_of(bound)]

        assert seen.state == "there"
        assert seen.what.startswith(f"listening on {shown.format(port_of(bound))} (")
        assert seen.what.endswith(f", pid {os.getpid()})")
        assert seen.detail["pid"] == str(os.getpid())
        assert seen.detail["owner"] == Path("/proc/self/comm").read_text().strip()
        assert seen.detail["protocol"] == ("tcp" if kind == socket.SOCK_STREAM else "udp")


@on_linux
@pytest.mark.usefixtures("whole_machine")
def test_a_closed_port_is_absent() -> None:
    with closing(listen()) as bound:
        port = port_of(bound)

    assert query_ports([port])[port] == SystemAnswer("absent", f"nothing listens on port {port}", {})


@on_linux
def test_in_a_sandbox_no_port_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_HOST_NAMESPACE_MARKER", "/nowhere")
    with closing(listen()) as bound, closing(listen()) as other:
        free = port_of(other)
        other.close()
        seen = query_ports([port_of(bound), free])

    assert [one.state for one in seen.values()] == ["there", "unknown"]
    assert "sandbox" in seen[free].what


@on_linux
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a network namespace")
@pytest.mark.needs("unshare")
def test_a_real_network_namespace_is_a_sandbox() -> None:
    code = "from truekeep.verify.live_system.ports import query_ports; print(query_ports([9])[9].state)"
    done = subprocess.run(["unshare", "-n", sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)

    assert done.stdout.strip() == "unknown"


@on_linux
@pytest.mark.usefixtures("whole_machine")
def test_a_client_does_not_listen() -> None:
    with (
        closing(listen()) as server,
        closing(listen(kind=socket.SOCK_DGRAM)) as bound,
        socket.create_connection(server.getsockname()) as client,
        socket.socket(type=socket.SOCK_DGRAM) as connected,
    ):
        connected.connect(bound.getsockname())
        seen = query_ports([port_of(client), port_of(connected)])

    assert {one.state for one in seen.values()} == {"absent"}


@on_linux
def test_no_port_is_connected_to() -> None:
    with closing(listen()) as bound:
        bound.setblocking(False)
        query_ports([port_of(bound)])
        with pytest.raises(BlockingIOError):
            bound.accept()


def test_what_is_no_port_is_unknown() -> None:
    assert {one.state for one in query_ports([0, -1, 65536, 10**30]).values()} == {"unknown"}


@on_linux
def test_without_time_the_owner_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_OWNER_SEARCH_SECONDS", -1.0)
    with closing(listen()) as bound:
        seen = query_ports([port_of(bound)])[port_of(bound)]

    assert seen.state == "there"
    assert seen.what == f"open on 127.0.0.1:{port_of_text(seen)}; the program is not visible to this user"
    assert "owner" not in seen.detail


def port_of_text(seen: SystemAnswer) -> str:
    return seen.detail["address"].rpartition(":")[2]


@on_linux
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_users_program_is_not_visible() -> None:
    with closing(listen()) as bound:
        port = port_of(bound)
        back, forth = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this child does nothing that a thread could hold a lock for
            child = os.fork()
        if not child:
            bound.close()
            os.setgroups([])
            os.setuid(65534)
            os.write(forth, query_ports([port])[port].what.encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(forth)
        with os.fdopen(back) as pipe:
            assert pipe.read() == f"open on 127.0.0.1:{port}; the program is not visible to this user"


@on_linux
def test_a_program_with_a_hostile_name_is_shown_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_OWNER_SEARCH_SECONDS", 10.0)
    code = (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        "open('/proc/self/comm', 'wb').write(b'\\x1b[2J\\xe2\\x80\\xaeok\\xff');"
        "print(s.getsockname()[1], flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        seen = query_ports([port])[port]
        other.communicate("\n")

    assert seen.state == "there"
    assert seen.what.startswith(f"listening on 127.0.0.1:{port} (\\x1b[2J\\u202eok")
    assert "\x1b" not in seen.detail["owner"]


@on_linux
@pytest.mark.usefixtures("whole_machine")
@pytest.mark.parametrize(
    ("tables", "state"),
    [
        ({}, "unknown"),
        ({"tcp": "header\n"}, "absent"),  # no IPv6, and no UDP
        ({"tcp": "header\n", "tcp6": "header\n", "udp": "header\n", "udp6": "header\n"}, "absent"),
        ({"tcp": "header\n  0: rubbish\n"}, "unknown"),
        ({"tcp": "header\n  0: 0100007F:ZZZZ 00000000:0000 0A 0 0 0 0 0 1\n"}, "unknown"),
        ({"tcp": "header\n  0: 01:0009 00000000:0000 0A 0 0 0 0 0 1\n"}, "unknown"),
        ({"tcp": None}, "unknown"),  # cannot be opened
        ({"tcp": "header\n", "udp6": None}, "unknown"),
    ],
)
def test_absent_needs_a_whole_list(
    tables: dict[str, str | None], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net").mkdir()
    for name, text in tables.items():
        if text is None:
            (tmp_path / "net" / name).mkdir()
        else:
            (tmp_path / "net" / name).write_text(text)
    monkeypatch.setattr(ports, "_PROC", str(tmp_path))

    assert query_ports([9])[9].state == state


def test_a_mac_is_asked_through_lsof(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    stand_in("lsof", "printf 'p812\\ncpostgres\\nf7\\nn127.0.0.1:5432\\nf8\\nn[::1]:5432\\np9\\ncx\\nf3\\nn*:*\\nn\\n'")

    seen = query_ports([5432, 5433])

    assert seen[5432].what == "listening on 127.0.0.1:5432, [::1]:5432 (postgres, pid 812)"
    assert seen[5433].state == "unknown"  # another user's programs are not listed
    assert asked(tmp_path) == ["-nP -iTCP -sTCP:LISTEN -Fpcn"]


@pytest.mark.needs("lsof")
def test_the_real_lsof_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with closing(listen()) as bound:
        seen = query_ports([port_of(bound)])[port_of(bound)]

    assert seen.state == "there"
    assert seen.detail["pid"] == str(os.getpid())


@pytest.mark.parametrize("script", ["exit 1", "/bin/sleep 60", "/usr/bin/yes n", "printf '\\377\\0n:\\n'"])
def test_a_bad_lsof_leaves_all_unknown(script: str, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(answers, "_PROGRAM_SECONDS", 0.5)
    stand_in("lsof", script)

    assert query_ports([5432])[5432].state == "unknown"


# --- Units ----------------------------------------------------------------------------------------------------------

NOT_BOOTED = """\
echo "System has not been booted with systemd as init system (PID 1). Can't operate." >&2
echo "Failed to connect to bus: Host is down" >&2
exit 1"""
NO_BUS = 'echo "Failed to connect to bus: No medium found" >&2; exit 1'


def block(name: str, load: str = "loaded", active: str = "active", sub: str = "running", path: str = "") -> str:
    """What systemd 252 prints for one unit."""
    return f"Id={name}\nLoadState={load}\nActiveState={active}\nSubState={sub}\nFragmentPath={path}\n"


def missing(name: str) -> str:
    return block(name, "not-found", "inactive", "dead")


@pytest.fixture
def systemctl(stand_in: StandIn, tmp_path: Path) -> Callable[..., None]:
    """A systemctl for the system and one for the user: the blocks that it prints, or a script."""

    def make(system_says: list[str] | str, user_says: list[str] | str) -> None:
        scripts = []
        for name, says in (("system", system_says), ("user", user_says)):
            (tmp_path / name).write_text("\n".join(says) if isinstance(says, list) else "")
            scripts.append(f"/bin/cat {tmp_path}/{name}" if isinstance(says, list) else says)
        stand_in("systemctl", f'if [ "$1" = --user ]; then\n{scripts[1]}\nelse\n{scripts[0]}\nfi')

    return make


@pytest.fixture(autouse=True)
def unit_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders for unit files: one of the administrator, one of the distribution, one of the user."""
    folders = {name: tmp_path / "units" / name for name in ("etc", "lib")}
    folders["home"] = Path(os.environ["HOME"], ".config/systemd/user")
    for folder in folders.values():
        folder.mkdir(parents=True)
    usual = {"system": (str(folders["etc"]), str(folders["lib"])), "user": ("~/.config/systemd/user",)}
    monkeypatch.setattr(systemd, "_UNIT_FOLDERS", usual)
    return folders


def test_units_are_asked_for_once(systemctl: Callable[..., None], tmp_path: Path) -> None:
    systemctl(
        [
            block("app.service", path="/etc/systemd/system/app.service"),
            block("backup.timer", active="inactive", sub="dead"),
            missing("gone.service"),
            missing("mine.service"),
        ],
        [missing("app.service"), missing("backup.timer"), missing("gone.service"), block("mine.service")],
    )

    seen = query_units(["app", "backup.timer", "gone", "mine.service", "app"])

    assert {name: one.state for name, one in seen.items()} == {
        "app": "there",
        "backup.timer": "other",
        "gone": "absent",
        "mine.service": "there",
    }
    assert seen["app"].what == "app.service is active (running)"
    assert seen["app"].detail == {
        "Id": "app.service",
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "FragmentPath": "/etc/systemd/system/app.service",
        "manager": "system",
    }
    assert seen["mine.service"].detail["manager"] == "user"
    show = "show --property=Id,LoadState,ActiveState,SubState,FragmentPath --no-pager --"
    names = "app.service backup.timer gone.service mine.service"
    assert asked(tmp_path) == [f"{show} {names}", f"--user {show} {names}"]


@pytest.mark.parametrize(
    ("printed", "state", "what"),
    [
        (block("app.service", active="failed", sub="failed"), "other", "app.service is failed (failed)"),
        (block("app.service", active="activating", sub="start"), "there", "app.service is activating (start)"),
        (block("app.service", "masked", "inactive", "dead"), "other", "app.service is inactive (dead), but masked"),
        (block("app.service", "not-found"), "other", "app.service is active (running), but not-found"),
        (
            block("app.service", "bad-setting", "inactive", "dead"),
            "other",
            "app.service is inactive (dead), but bad-set",
        ),
        (block("real.service"), "there", "app.service (real.service) is active (running)"),  # an alias
        (block("app.service", active="\x1b[2Jactive"), "other", "app.service is \\x1b[2Jactive (running)"),
        ("Id=app.service\nLoadState=loaded\n", "other", "app.service is in no known state"),
    ],
)
def test_a_unit_is_what_systemd_says(systemctl: Callable[..., None], printed: str, state: str, what: str) -> None:
    systemctl([printed], [missing("app.service")])
    seen = query_units(["app"])["app"]

    assert seen.state == state
    assert seen.what.startswith(what)


def test_of_two_units_of_one_name_the_running_one_counts(systemctl: Callable[..., None]) -> None:
    systemctl([block("app.service", active="inactive", sub="dead")], [block("app.service")])

    assert query_units(["app"])["app"].detail["manager"] == "user"


@pytest.mark.parametrize(
    "other",
    [
        NO_BUS,
        NOT_BOOTED,
        "exit 0",
        "echo rubbish",
        "printf 'LoadState=not-found\\n'",
        "printf 'Id=other.service\\nLoadState=not-found\\n\\nId=third.service\\nLoadState=not-found\\n'",
        "printf '\\377\\376\\0=\\n\\n=\\n'",
        "/usr/bin/yes LoadState=not-found",
        "/bin/sleep 60",
        "kill -9 $$",
    ],
)
@pytest.mark.parametrize("is_system", [True, False])
def test_absent_needs_both_answers(
    systemctl: Callable[..., None], other: str, is_system: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_PROGRAM_SECONDS", 0.5)
    answer = [missing("app.service")]
    systemctl(*((other, answer) if is_system else (answer, other)))

    assert query_units(["app"])["app"].state == "unknown"


def test_one_name_that_systemd_chokes_on_spares_the_others(systemctl: Callable[..., None]) -> None:
    printed = block("app.service").replace("\n", "\\n")
    systemctl(f"printf '{printed}'; exit 1", NO_BUS)

    seen = query_units(["app", "odd:name"])

    assert seen["app"].state == "there"
    assert seen["odd:name"].state == "unknown"


@pytest.mark.parametrize(
    "name",
    ["", "-H", "--root=/", "-.mount", "a b", "a/b", "../x", "a;b", "a*", "$(id)", "a\nb", "app\n", "é", "x" * 300],
)
def test_what_is_no_units_name_is_not_asked(systemctl: Callable[..., None], tmp_path: Path, name: str) -> None:
    systemctl([], [])

    assert query_units([name])[name].state == "unknown"
    assert unit_ports(name) == []
    assert not asked(tmp_path)


def test_a_number_is_never_a_job(systemctl: Callable[..., None], tmp_path: Path) -> None:
    systemctl([missing("123.service")], [missing("123.service")])

    assert query_units(["123"])["123"].state == "absent"
    assert all(line.endswith("-- 123.service") for line in asked(tmp_path))


def test_a_template_is_looked_up_and_not_asked(
    systemctl: Callable[..., None], tmp_path: Path, unit_folders: dict[str, Path]
) -> None:
    systemctl([], [])
    (unit_folders["lib"] / "worker@.service").write_text("[Service]\nExecStart=/bin/worker --port %i\n")

    seen = query_units(["worker@", "other@.service"])

    assert [one.state for one in seen.values()] == ["there", "unknown"]
    assert not asked(tmp_path)


def test_a_thousand_units_are_too_many_and_no_failure(systemctl: Callable[..., None]) -> None:
    systemctl([missing(f"u{n}.service") for n in range(500)], [missing(f"u{n}.service") for n in range(500)])

    states = [one.state for one in query_units(f"u{n}" for n in range(1_000)).values()]

    assert states == ["absent"] * 500 + ["unknown"] * 500


def test_without_systemd_there_are_still_unit_files(stand_in: StandIn, unit_folders: dict[str, Path]) -> None:
    (unit_folders["etc"] / "app.service").write_text("[Service]\n")
    (unit_folders["home"] / "mine.timer").write_text("[Timer]\n")
    (unit_folders["etc"] / "masked.service").symlink_to("/dev/null")
    (unit_folders["etc"] / "loop.service").symlink_to("loop.service")
    (unit_folders["etc"] / "dangling.service").symlink_to("nowhere")
    (unit_folders["etc"] / "folder.service").mkdir()

    seen = query_units(["app", "mine.timer", "masked", "loop", "dangling", "folder", "gone"])

    assert [one.state for one in seen.values()] == ["there", "there", "other", *["unknown"] * 4]
    assert seen["app"].what == f"unit file at {unit_folders['etc']}/app.service; there is no systemd here"
    assert seen["gone"].what.startswith("there is no systemd here; ")


def test_a_systemd_that_does_not_run_is_said(systemctl: Callable[..., None], unit_folders: dict[str, Path]) -> None:
    systemctl(NOT_BOOTED, NO_BUS)
    (unit_folders["etc"] / "app.service").write_text("[Service]\n")

    seen = query_units(["app", "gone"])

    assert seen["app"].what == f"unit file at {unit_folders['etc']}/app.service; systemd is not running here"
    assert seen["gone"].state == "unknown"


@pytest.mark.needs("systemctl")
def test_the_real_systemctl_does_not_know_it() -> None:
    seen = query_units(["truekeep-is-not-here"])["truekeep-is-not-here"]

    assert seen.state in ("absent", "unknown")
    assert seen.what


# --- Ports of units -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "ports"),
    [
        ("ExecStart=/bin/app --port 5300", [5300]),
        ("ExecStart=/bin/app --port=5300 --admin-port 5301", [5300, 5301]),
        ("ExecStart=/bin/app -p 5300", [5300]),
        ("ExecStart=/bin/app -p5300", [5300]),
        ("ExecStart=/bin/app --bind 0.0.0.0:5300", [5300]),
        ("ExecStart=/bin/app --listen [::1]:5300", [5300]),
        ("ExecStart=/bin/app :5300", [5300]),
        ("ExecStart=java -Dserver.port=5300 -jar x.jar", [5300]),
        ("ExecStart=/bin/sh -c 'exec app --port 5300'", [5300]),
        ("ExecStart=/usr/bin/env PORT=5300 app", [5300]),
        ("ExecStart=docker run -p 5300:80 -p 127.0.0.1:5301:81/tcp app", [5300, 5301]),
        ("ExecStart=/bin/app \\\n  --port \\\n# the new one\n  5300", [5300]),
        ("Environment=PORT=5300", [5300]),
        ('Environment="APP_PORT=5300" HOST=x', [5300]),
        ("Environment=OLLAMA_HOST=127.0.0.1:5300", [5300]),
        ("Environment=URLS=http://*:5300/api", [5300]),
        ("ListenStream=5300", [5300]),
        ("ListenStream=127.0.0.1:5300\nListenDatagram=[::]:5301", [5300, 5301]),
        # No ports of ours.
        ("ListenStream=/run/app.sock", []),
        ("ListenStream=vsock:2:1234", []),
        ("ExecStart=/bin/app --workers 8 --timeout 300 --report 60 --export 80", []),
        ("ExecStart=/bin/app --bind ::1", []),
        ("ExecStart=/bin/app --upstream api.example.com:443", []),
        ("ExecStart=/bin/app --port 0 --port 65536 --port 123456", []),
        ("# ExecStart=/bin/app --port 5300", []),
        ("Description=Serves port 5300", []),
        ("ExecStartPost=/bin/curl localhost:5300", []),
        # What may be a secret.
        ("Environment=DATABASE_URL=postgres://app:12345@db.example.com:5432/app", []),
        ("Environment=DB_PASSWORD=12345 TOKEN=:5300 API_KEY=localhost:5300", []),
        ("ExecStart=/bin/app --password 12345 --auth admin:12345 --token :5300", []),
        ("ExecStart=/bin/app --user admin:12345 http://admin:12345@localhost/", []),
        ("ExecStart=/bin/app 'unclosed --port 5300", [5300]),
        ("ExecStart=/bin/app --port 5300\nExecStart=\nExecStart=/bin/app --port 5301", [5301]),
        ("Environment=PORT=5300\nEnvironment=PORT=5301", [5301]),
    ],
)
def test_ports_in_a_unit_file(stand_in: StandIn, unit_folders: dict[str, Path], setting: str, ports: list[int]) -> None:
    (unit_folders["etc"] / "app.service").write_text(f"[Unit]\nDescription=App\n\n[Service]\n{setting}\n")

    assert unit_ports("app") == ports


def test_ports_come_with_their_lines(stand_in: StandIn, unit_folders: dict[str, Path]) -> None:
    path = unit_folders["etc"] / "app.service"
    path.write_text("[Service]\nEnvironment=PORT=5300\nExecStart=/bin/app \\\n  --admin-port 5301 \\\n  --token 5302\n")

    assert [tuple(found) for found in find_unit_ports("app")] == [(5300, 2, path), (5301, 4, path)]


def test_drop_ins_have_the_last_word(stand_in: StandIn, unit_folders: dict[str, Path]) -> None:
    (unit_folders["lib"] / "app.service").write_text("[Service]\nEnvironment=PORT=5204\nExecStart=/bin/app -p 80\n")
    for folder, name, text in (
        ("lib", "10-port.conf", "Environment=PORT=1"),
        ("etc", "10-port.conf", "Environment=PORT=5300"),  # hides the one of the distribution
        ("etc", "20-start.conf", "ExecStart=\nExecStart=/bin/app -p 81"),
        ("etc", "notes.txt", "Environment=OTHER_PORT=2"),
        ("home", "90-user.conf", "Environment=PORT=3"),  # a user's, and this is the system's
    ):
        drop_ins = unit_folders[folder] / "app.service.d"
        drop_ins.mkdir(exist_ok=True)
        (drop_ins / name).write_text(f"[Service]\n{text}\n")

    assert unit_ports("app") == [5300, 81]


def test_an_instance_has_its_templates_ports(stand_in: StandIn, unit_folders: dict[str, Path]) -> None:
    (unit_folders["lib"] / "app@.service").write_text("[Service]\nExecStart=/bin/app --port %i\n")

    assert unit_ports("app@5300") == [5300]
    assert unit_ports("app@main.service") == []
    assert unit_ports("app@") == []


def test_the_file_that_systemd_names_is_read(systemctl: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.service"
    path.write_text("[Service]\nExecStart=/bin/app --port 5300\n")
    systemctl([block("app.service", path=str(path))], NO_BUS)

    assert unit_ports("app") == [5300]
    assert unit_ports("app", query_units(["app"])["app"]) == [5300]


def test_only_plain_files_of_a_units_size_are_read(stand_in: StandIn, unit_folders: dict[str, Path]) -> None:
    etc, lib = unit_folders["etc"], unit_folders["lib"]
    (lib / "real.service").write_text("ExecStart=/bin/app --port 5300\n")
    (etc / "linked.service").symlink_to(lib / "real.service")
    (etc / "loop.service").symlink_to("loop.service")
    (etc / "masked.service").symlink_to("/dev/null")
    (etc / "huge.service").write_text("ExecStart=/bin/app --port 5300\n" + "#" * (1 << 20))
    (etc / "bytes.service").write_bytes(b"\xff\xfe\0\nExecStart=/bin/app\xff --port 5300\n")
    os.mkfifo(etc / "pipe.service")

    names = ["linked", "loop", "masked", "huge", "bytes", "pipe", "gone"]
    assert [unit_ports(name) for name in names] == [[5300], [], [], [], [5300], [], []]
    # Also when somebody says that they are unit files.
    for name in ("pipe", "loop", "huge"):
        assert (
            unit_ports(name, SystemAnswer("there", "", {"FragmentPath": str(etc / f"{name}.service"), "manager": "?"}))
            == []
        )
    assert unit_ports("x", SystemAnswer("there", "", {"FragmentPath": "/dev/zero\0"})) == []


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            ["ExecStart=", "Environment=", "ListenStream=", " \\\n", "--port", " ", ":", "'", "%i", "99999", "1"]
        )
    ),
)
def test_no_unit_file_raises(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = tmp_path / "x.service"
    path.write_text("".join(parts) + "\n" + text, encoding="utf-8", errors="replace")

    for found in find_unit_ports("x", SystemAnswer("there", "", {"FragmentPath": str(path)})):
        assert 0 < found.port < 65536


# --- Containers -----------------------------------------------------------------------------------------------------

ID = "4c01db0b339c7b5e1a85004739b6584d271065a6d4b2d42838f0637a15eda833"


def row(name: str, **keys: Any) -> dict[str, Any]:
    """What docker 28 prints for one container."""
    return {
        "Command": '"/docker-entrypoint.sh"',
        "CreatedAt": "2026-11-01 10:00:00 +0000 UTC",
        "ID": ID,
        "Image": "nginx:1.27",
        "Labels": "maintainer=NGINX Docker Maintainers,com.docker.compose.project=shop",
        "LocalVolumes": "0",
        "Mounts": "",
        "Names": name,
        "Networks": "bridge",
        "Ports": "0.0.0.0:8080->80/tcp",
        "RunningFor": "2 weeks ago",
        "Size": "0B",
        "State": "running",
        "Status": "Up 2 hours",
    } | keys


def lists(tmp_path: Path, *rows: dict[str, Any], host: str = "unix:///var/run/docker.sock") -> str:
    """The script of a stand-in that has these containers."""
    path = tmp_path / f"rows{len(list(tmp_path.glob('rows*')))}"
    path.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows))
    return f'if [ "$1" = context ]; then echo "{host}"; else /bin/cat {path}; fi'


def test_containers_are_found_by_name_id_or_service(stand_in: StandIn, tmp_path: Path) -> None:
    service = "com.docker.compose.project=shop,com.docker.compose.service=db,com.docker.compose.version=2.29"
    stand_in(
        "docker",
        lists(
            tmp_path,
            row("shop-web-1"),
            row("shop-db-2", ID="a" * 64, Labels=service, State="exited", Status="Exited (0) 3 days ago"),
            row("shop-db-1", ID="b" * 64, Labels=service, Image="postgres:16"),
            row("old", ID="c" * 64, State="exited", Status="Exited (137) 2 weeks ago"),
            row("frozen", ID="d" * 64, State="paused", Status="Up 2 hours (Paused)"),
        ),
    )

    seen = query_containers(["shop-web-1", ID, ID[:12], ID[:11], "db", "old", "frozen", "web", "shop", ""])

    assert {name: one.state for name, one in seen.items()} == {
        "shop-web-1": "there",
        ID: "there",
        ID[:12]: "there",
        ID[:11]: "absent",
        "db": "there",
        "old": "other",
        "frozen": "other",
        "web": "absent",
        "shop": "absent",
        "": "absent",
    }
    assert seen["shop-web-1"].what == "container shop-web-1 of nginx:1.27: Up 2 hours"
    assert seen["db"].detail["name"] == "shop-db-1"
    assert seen["db"].detail["image"] == "postgres:16"
    assert seen["old"].detail["status"] == "Exited (137) 2 weeks ago"
    assert asked(tmp_path)[1:] == ["ps -a --no-trunc --format {{json .}}"]


def test_old_dockers_have_no_state(stand_in: StandIn, tmp_path: Path) -> None:
    rows = [row("up"), row("down", Status="Exited (0)"), row("frozen", Status="Up 2 hours (Paused)")]
    stand_in("docker", lists(tmp_path, *({k: v for k, v in one.items() if k != "State"} for one in rows)))

    assert [one.state for one in query_containers(["up", "down", "frozen"]).values()] == ["there", "other", "other"]


def podman_row(name: str, **keys: Any) -> dict[str, Any]:
    """What podman 5 prints for one container."""
    labels = {"io.podman.compose.service": "cache"}
    return {
        "Id": "e" * 64,
        "Names": [name],
        "Image": "redis:7",
        "Labels": labels,
        "State": "running",
        "Status": "",
    } | keys


@pytest.fixture
def podman_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_is_podman_used", lambda: True)


@pytest.mark.usefixtures("podman_was_used")
def test_podman_is_asked_for_what_docker_does_not_have(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in("docker", lists(tmp_path, row("web")))
    stand_in("podman", lists(tmp_path, podman_row("redis"), podman_row("bare", Labels=None, Names=[], Id="f" * 64)))

    seen = query_containers(["web", "redis", "cache", "f" * 12, "gone"])

    assert [one.state for one in seen.values()] == ["there"] * 4 + ["absent"]
    assert seen["redis"].what == "container redis of redis:7: running"
    assert query_containers(["web"])["web"].state == "there"
    assert sum("ps -a" in line for line in asked(tmp_path)) == 3  # both, and then docker alone


@pytest.mark.usefixtures("podman_was_used")
def test_absent_needs_everybodys_answer(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in("docker", 'echo "permission denied while trying to connect to the docker API" >&2; exit 1')
    stand_in("podman", lists(tmp_path, podman_row("redis")))

    seen = query_containers(["redis", "web"])

    assert [one.state for one in seen.values()] == ["there", "unknown"]
    assert seen["web"].what == "docker says: permission denied while trying to connect to the docker API"


def test_a_podman_that_was_never_used_is_left_alone(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    stand_in("podman", "exit 0")

    assert query_containers(["web"])["web"] == SystemAnswer("unknown", "neither docker nor podman is installed", {})
    assert not asked(tmp_path)
    Path(os.environ["HOME"], ".local/share/containers").mkdir(parents=True)
    assert query_containers(["web"])["web"].state == "absent"


@pytest.mark.parametrize("host", ["ssh://me@build.example.com", "tcp://10.0.0.5:2375", "tcp://127.0.0.1.evil.com:1"])
def test_containers_of_another_machine_say_nothing(stand_in: StandIn, tmp_path: Path, host: str) -> None:
    stand_in("docker", lists(tmp_path, row("web"), host=host))

    assert query_containers(["web"])["web"] == SystemAnswer("unknown", "docker is set up for another machine", {})
    assert len(asked(tmp_path)) == 1


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "docker failed with code 3"),
        (
            'echo "Cannot connect to the Docker daemon at unix:///x." >&2; exit 1',
            "docker says: Cannot connect to the D",
        ),
        ("echo rubbish", "the answer of docker cannot be read"),
        ("echo '[1]'", "the answer of docker cannot be read"),
        ("echo 7", "the answer of docker cannot be read"),
        ("echo '{}'", "the answer of docker cannot be read"),
        ("""echo '{"Names": 1, "ID": "x"}'""", "the answer of docker cannot be read"),
        ("""echo '{"Names": "a", "ID": "x", "Labels": [["b"]]}' '{'""", "the answer of docker cannot be read"),
        ("printf '\\377\\376\\0'", "the answer of docker cannot be read"),
        ("/usr/bin/yes '{'", "docker answered with more than 0 MB"),
        ("/usr/bin/yes >&2", "docker answered with more than 0 MB"),
        ("printf '%099999d' 0 | /usr/bin/tr 0 '['", "the answer of docker cannot be read"),
        ('echo "no: \\033[2Jpassword=hunter2hunter2x9" >&2; exit 1', "docker says: no: "),
    ],
)
def test_a_docker_that_cannot_say_leaves_all_unknown(
    stand_in: StandIn, script: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MAX_OUTPUT", 300_000)
    stand_in("docker", f'[ "$1" = context ] && exit 1\n{script}')
    seen = query_containers(["web"])["web"]

    assert seen.state == "unknown"
    assert seen.what.startswith(why)
    assert "\x1b" not in seen.what


def test_hostile_names_stay_words(stand_in: StandIn, tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e\u0085x"
    stand_in("docker", lists(tmp_path, row(evil, Image=evil, Status=evil)))

    for seen in query_containers([evil, f"{evil}; rm -rf /", "--all"]).values():
        assert not set("\x1b\u202e\u0085\n") & set(seen.what + "".join(seen.detail.values()))
    assert asked(tmp_path)[-1] == "ps -a --no-trunc --format {{json .}}"


def test_a_docker_that_may_not_be_run_is_no_docker(stand_in: StandIn, tmp_path: Path) -> None:
    path = stand_in("docker", "")
    path.write_text("#!/nowhere/interpreter\n")

    assert query_containers(["web"])["web"].what.startswith("docker cannot be run: ")


# --- Addresses on the web -------------------------------------------------------------------------------------------


class Web:
    """A real server on this machine, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                web.answer(self)

            do_GET = do_HEAD  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self.lock:
            self.asked.append((handler.command, handler.path))
            self.headers.append(dict(handler.headers))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        word, _, rest = handler.path.strip("/").partition("/")
        if word == "slow":  # waits for another one beside it
            wait_until(lambda: self.most_at_once > 1)
        with self.lock:
            self.at_once -= 1
        if word == "early":
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        if word == "hangup" and handler.command == "HEAD":
            handler.close_connection = True
            return
        statuses = {
            "nohead": 405 if handler.command == "HEAD" else 200,
            "only-get": 404 if handler.command == "HEAD" else 204,
        }
        status = int(word) if word.isdecimal() else statuses.get(word, 200)
        if word in ("to", "count"):
            status = 302
        handler.send_response(status)
        if word == "to":
            handler.send_header("Location", rest.replace("PORT", str(self.port)))
        if word == "count":
            handler.send_header("Location", f"/count/{int(rest) - 1}" if int(rest) > 1 else "/200")
        handler.send_header("Set-Cookie", "a=b")
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.server.shutdown()
    web.server.server_close()
    web.thread.join()


def see(
    *urls: str,
    cache: MutableMapping[str, tuple[float, int, str]] | None = None,
    now: float = 1000.0,
    max_age: float = 100.0,
    timeout: float = 60.0,
    most: int = 50,
    allow_private: bool = True,
) -> list[SystemAnswer]:
    seen = query_urls(
        urls,
        cached={} if cache is None else cache,
        now=now,
        max_age=max_age,
        timeout=timeout,
        max_urls=most,
        allow_private=allow_private,
    )
    assert list(seen) == list(dict.fromkeys(urls))
    return list(seen.values())


@pytest.mark.parametrize(
    ("path", "state", "what"),
    [
        ("/200", "there", "answers 200 OK"),
        ("/204", "there", "answers 204 No Content"),
        ("/304", "there", "answers 304 Not Modified"),
        ("/301", "there", "answers 301 Moved Permanently"),  # it does not say where to
        ("/404", "absent", "answers 404 Not Found, at least to those who are not signed in"),
        ("/410", "absent", "answers 410 Gone, at least to those who are not signed in"),
        ("/400", "unknown", "answers 400 Bad Request"),
        ("/401", "unknown", "answers 401 Unauthorized"),
        ("/403", "unknown", "answers 403 Forbidden"),
        ("/429", "unknown", "answers 429 Too Many Requests"),
        ("/451", "unknown", "answers 451 Unavailable For Legal Reasons"),
        ("/500", "unknown", "answers 500 Internal Server Error"),
        ("/503", "unknown", "answers 503 Service Unavailable"),
        ("/599", "unknown", "answers 599"),
        ("/nohead", "there", "answers 200 OK"),
        ("/only-get", "there", "answers 204 No Content"),
        ("/hangup", "there", "answers 200 OK"),
        ("/early", "there", "answers 200 OK"),
    ],
)
def test_an_address_is_what_it_answers(web: Web, path: str, state: str, what: str) -> None:
    [seen] = see(web.url + path)

    assert (seen.state, seen.what) == (state, what)
    assert seen.detail["status"] == what.split()[1]


def test_what_is_sent(web: Web) -> None:
    see(f"{web.url}/200/caf\u00e9 x".replace(" ", "%20") + '?q="a"&b=\u00fc#part')

    assert web.asked == [("HEAD", "/200/caf%C3%A9%20x?q=%22a%22&b=%C3%BC")]
    assert web.headers == [
        {"Host": f"127.0.0.1:{web.port}", "User-Agent": "truekeep", "Accept": "*/*", "Connection": "close"}
    ]


def test_redirects_are_followed_a_few_times(web: Web) -> None:
    near, far, relative, loop = see(
        *(web.url + path for path in ("/count/5", "/count/6", "/to/../404", "/to//to/x")), timeout=10
    )

    assert (near.state, near.what) == ("there", f"answers 200 OK, after a redirect to {web.url}/200")
    assert (far.state, far.what) == ("unknown", "redirects more than 5 times")
    assert relative.state == "absent"
    assert loop.state == "unknown"
    assert all("Cookie" not in headers for headers in web.headers)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x/", "http://me:pw@127.0.0.1:PORT/200", "http://["])
def test_a_redirect_leads_only_to_the_web(web: Web, target: str) -> None:
    [seen] = see(f"{web.url}/to/{target}")

    assert seen.state == "unknown"
    assert "pw" not in seen.what
    assert len(web.asked) == 1


def test_what_a_redirect_carries_is_not_shown(web: Web) -> None:
    [seen] = see(f"{web.url}/to//200?session=4711")

    assert (seen.state, "4711" in seen.what) == ("there", False)
    assert web.asked[-1] == ("HEAD", "/200?session=4711")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0", "[::ffff:127.0.0.1]", "127.0.0.1."],
)
def test_this_machine_is_not_asked(web: Web, host: str) -> None:
    [seen] = see(f"http://{host}:{web.port}/200", allow_private=False, timeout=2)

    assert seen.state == "unknown"
    assert not web.asked


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("::ffff:8.8.8.8", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("100.100.100.200", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("192.0.0.192", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::7f00:1", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("2002:7f00:1::", False),
        ("2001:db8::1", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
    ],
)
def test_public_addresses(address: str, is_public: bool) -> None:
    assert urls._is_public(address) is is_public


def test_every_address_of_a_name_must_be_public(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "_resolve", lambda host, port: ["8.8.8.8", "127.0.0.1"])
    monkeypatch.setattr(urls, "_connect", lambda *_: pytest.fail("it connects"))

    [seen] = see(f"http://mixed.example:{web.port}/200", allow_private=False)

    assert (seen.state, seen.what) == ("unknown", "is on a network that is not public, which is not asked")


def test_a_name_is_looked_up_once_and_that_address_is_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = []

    def resolve(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"] if len(looked_up) == 1 else ["127.0.0.2"]  # rebinding

    monkeypatch.setattr(urls, "_resolve", resolve)
    monkeypatch.setattr(urls, "_is_public", lambda address: address == "127.0.0.1")

    [seen] = see(f"http://rebind.example:{web.port}/nohead", allow_private=False)

    assert seen.state == "there"
    assert looked_up == ["rebind.example"]
    assert {headers["Host"] for headers in web.headers} == {f"rebind.example:{web.port}"}


def test_each_hop_is_checked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "_is_public", lambda address: address == "127.0.0.1")

    [seen] = see(f"{web.url}/to/http://127.0.0.2:PORT/200", allow_private=False)

    assert (seen.state, seen.what) == ("unknown", "redirects to a network that is not public, which is not asked")
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    "tail",
    ["/200?api_key=8f7d6s5a4f3d2s1a9f8e7d6c", "/200?token=abc", "/200?a=1&X-Amz-Signature=abc", "/200?password=x"],
)
def test_a_credential_is_never_sent(web: Web, tail: str) -> None:
    cache: dict[str, tuple[float, int, str]] = {}
    with_user = web.url.replace("//", "//me:hunter2@")
    for seen in see(web.url + tail, with_user + "/200", web.url.replace("//", "//@"), cache=cache):
        assert seen == SystemAnswer("unknown", "holds a credential, so it is not asked", {})
    assert not web.asked
    assert not cache


@pytest.mark.parametrize(
    "url",
    ["", "http://", "http:///x", "file:///etc/passwd", "ftp://example.com", "gopher://x", "javascript:1", "//x/y", "http://[",
     "http://x:99999/", "http://x:0/", "http://x/ y", "http://x/\r\nHost: y", "http://x/\u202e", "http://x/\ud800",
     "http://x/" + "a" * 3000],
)  # fmt: skip
def test_what_is_no_web_address_is_not_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "_resolve", lambda *_: pytest.fail("it asks"))

    assert see(url)[0].state == "unknown"


@pytest.mark.parametrize("host", ["truekeep.invalid", "a..b", "x" * 70 + ".com", "\u00e9" * 70])
def test_a_name_that_nobody_knows_is_unknown(host: str) -> None:
    [seen] = see(f"http://{host}/", timeout=10)

    assert seen.state == "unknown"


def test_a_closed_port_is_unknown() -> None:
    with closing(listen()) as bound:
        port = port_of(bound)

    assert see(f"http://127.0.0.1:{port}/")[0] == SystemAnswer("unknown", "cannot be reached: Connection refused", {})


@pytest.fixture
def raw_server() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """A server that is no web server: every connection is given to a function."""
    bound = listen()
    stopped = threading.Event()
    threads: list[threading.Thread] = []

    def start(serve: Callable[[socket.socket], None]) -> str:
        def one(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(4096)
                    serve(connection)
                except OSError:
                    pass

        def run() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = bound.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=one, args=(connection,), daemon=True))
                threads[-1].start()

        threads.append(threading.Thread(target=run, daemon=True))
        threads[0].start()
        return f"http://127.0.0.1:{port_of(bound)}/"

    yield start
    stopped.set()
    bound.shutdown(socket.SHUT_RDWR)
    bound.close()
    for thread in threads:
        thread.join(timeout=10)


RawServer = Callable[[Callable[[socket.socket], None]], str]


def test_a_server_that_drips_is_given_up(raw_server: RawServer) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:  # until the other end has closed
            connection.sendall(b"x")
            time.sleep(0.05)

    [seen] = see(raw_server(drip), timeout=0.4)

    assert seen == SystemAnswer("unknown", "did not answer within 0.4 s", {})
    assert wait_until(lambda: not [one for one in threading.enumerate() if one.name == "truekeep-web"])


def test_a_silent_server_is_given_up(raw_server: RawServer) -> None:
    over = threading.Event()

    def say_nothing(connection: socket.socket) -> None:
        over.wait(60)

    [seen] = see(raw_server(say_nothing), timeout=0.2)
    over.set()

    assert seen == SystemAnswer("unknown", "did not answer within 0.2 s", {})


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (b"", "unknown"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "unknown"),
        (b"\xff\0" * 100_000, "unknown"),
        (b"HTTP/1.1 999 Odd\r\n\r\n", "unknown"),
        (b"HTTP/1.1 2000 Odd\r\n\r\n", "unknown"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, "there"),
        (b"HTTP/1.0 200 OK\n\nhello", "there"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n", "absent"),
        (b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\x1b[2J\r\n\r\n", "unknown"),
        (b"HTTP/1.1 302 Found\r\nLocation:\r\n\r\n", "there"),
    ],
)
def test_any_answer_is_survived(raw_server: RawServer, answer: bytes, state: str) -> None:
    [seen] = see(raw_server(lambda connection: connection.sendall(answer)))

    assert seen.state == state
    assert "\x1b" not in seen.what


def test_looking_up_a_name_may_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    released, looked_up = threading.Event(), list[bool]()
    monkeypatch.setattr(urls, "_resolve", lambda *_: looked_up.append(released.wait(60)))

    seen = see(*(f"http://host{n}.example/" for n in range(3)), timeout=0.2)
    assert not looked_up
    released.set()

    assert {one.what for one in seen} == {"did not answer within 0.2 s"}


def test_a_few_at_a_time_and_no_more_than_wanted(web: Web) -> None:
    urls = [f"{web.url}/slow/{n}" for n in range(30)]
    seen = see(*urls, *urls, most=20)

    assert [one.state for one in seen] == ["there"] * 20 + ["unknown"] * 10
    assert seen[-1].what == "not asked: at most 20 URLs are asked at a time"
    assert len(web.asked) == 20
    assert 1 < web.most_at_once <= 6


def test_answers_are_kept_for_their_time(web: Web) -> None:
    cache: dict[str, tuple[float, int, str]] = {}
    urls = [web.url + path for path in ("/200", "/404", "/500")]
    first = see(*urls, cache=cache, now=1000)
    assert {key: value[:2] for key, value in cache.items()} == dict(
        zip(urls, [(1000, 200), (1000, 404), (1000, 500)], strict=True)
    )

    def asked_again(now: float) -> list[str]:
        before = len(web.asked)
        assert see(*urls, cache=dict(cache), now=now, most=50) == first
        return sorted({path for _, path in web.asked[before:]})

    assert asked_again(1010) == []  # the unknown for a tenth
    assert asked_again(1011) == ["/500"]
    assert asked_again(1100) == ["/500"]
    assert asked_again(1101) == ["/200", "/404", "/500"]
    assert asked_again(999) == ["/200", "/404", "/500"]  # kept in the future: the clock was wrong


def test_fragments_are_one_address(web: Web) -> None:
    cache: dict[str, tuple[float, int, str]] = {}
    see(f"{web.url}/200#a", f"{web.url}/200#b", cache=cache, most=1)

    assert len(web.asked) == 1
    assert list(cache) == [f"{web.url}/200"]


def test_what_is_kept_does_not_use_up_the_limit(web: Web) -> None:
    cache: dict[str, tuple[float, int, str]] = {}
    see(f"{web.url}/200", cache=cache)

    assert [one.state for one in see(f"{web.url}/200", f"{web.url}/404", cache=cache, most=1)] == [
        "there",
        "absent",
    ]


@pytest.mark.parametrize(
    "kept", [None, 7, (), (1,), ("a", "b", "c"), (999.0, "200", "x"), (999.0, 200, None), (999.0, 200, 5)]
)
def test_a_damaged_cache_is_no_cache(web: Web, kept: Any) -> None:
    assert see(f"{web.url}/404", cache={f"{web.url}/404": kept})[0].state == "absent"


def test_what_was_refused_is_not_kept(web: Web) -> None:
    cache: dict[str, tuple[float, int, str]] = {}

    assert see(f"{web.url}/200", cache=cache, allow_private=False)[0].state == "unknown"
    assert see(f"{web.url}/200", cache=cache, allow_private=True)[0].state == "there"


@pytest.mark.needs("openssl")
def test_certificates_are_checked_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    web = Web()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    web.server.socket = context.wrap_socket(web.server.socket, server_side=True)
    monkeypatch.setattr(urls, "_resolve", lambda *_: ["127.0.0.1"])
    try:
        [stranger] = see(f"https://localhost:{web.port}/200")
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(urls, "_ssl_context", lambda: trusting)
        known, misnamed = see(f"https://localhost:{web.port}/200", f"https://other.example:{web.port}/200")
    finally:
        web.server.shutdown()
        web.server.server_close()

    assert (stranger.state, known.state, misnamed.state) == ("unknown", "there", "unknown")
    assert stranger.what.startswith("cannot be asked safely: self")
    assert "other.example" in misnamed.what
    assert len(web.asked) == 1
