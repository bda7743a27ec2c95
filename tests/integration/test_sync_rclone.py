"""rclone as the carrier: the real bisync between folders, interrupted, overtaken, emptied and started anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchanges import Producer, Trio, killed_at
from tests.support.helpers import CLAUDE, CODEX
from truekeep.core import file_io
from truekeep.handoffs.sync import via_git, via_rclone
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.processes import Ran
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import Unreachable, contact_route

pytestmark = pytest.mark.needs("rclone")


@pytest.fixture
def trio(tmp_path: Path) -> Trio:
    return Trio.make(tmp_path, "rclone", f':local:{tmp_path}/a "remote" of ours')


def remote(trio: Trio) -> Path:
    return Path(trio.remote.removeprefix(":local:"))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What rclone was called for."""
    found: list[str] = []
    real: Callable[..., Any] = vars(via_rclone)["run_tool"]

    def run_tool(arguments: list[str], **more: Any) -> Any:
        found.append("resync" if "--resync" in arguments else arguments[1])
        return real(arguments, **more)

    monkeypatch.setattr(via_rclone, "run_tool", run_tool)
    via_rclone.rclone_version()
    found.clear()
    return found


def test_three_machines(trio: Trio, runs: list[str]) -> None:
    trio.leave_some()
    sent = trio.send(trio.one)
    assert (sent.brought, sent.receipts, sent.notes) == (3, 0, ())
    assert runs == ["mkdir", "resync"]
    assert trio.send(trio.two).brought == 2
    came = trio.receive()
    assert (came.brought, came.waiting, came.notes) == (5, 0, ())
    assert set(came.machines) == {"lap top", "desk"}
    trio.place.ingest()
    runs.clear()
    assert trio.receive().receipts == 5
    assert trio.send(trio.one).receipts == 3
    assert trio.send(trio.two).receipts == 2
    assert runs == ["bisync"] * 3, "receipts travel with the one run"
    trio.round()
    trio.check()
    trio.check_clean()
    assert {path.name for path in remote(trio).rglob("*") if path.is_file()} == {"origin.json", "truekeep.txt"}
    runs.clear()
    told = [trio.send(trio.one), trio.receive()]
    assert runs == ["bisync"] * 2, "nothing new: one run each"
    assert [(item.brought, item.receipts, item.notes) for item in told] == [(0, 0, ())] * 2


def test_a_machine_sees_only_its_own(trio: Trio) -> None:
    trio.leave_some()
    trio.round()
    trio.send(trio.one)
    base = trio.one.here.exchange(trio.one.route("rclone", trio.remote))
    told = [path.read_text() for path in base.rglob("origin.json")]
    assert len(told) == 2
    assert all('"lap top"' in text for text in told)


def test_only_the_shapes_of_an_exchange_travel(trio: Trio, tmp_path: Path) -> None:
    trio.leave_some()
    trio.send(trio.one)
    (place, _) = sorted(remote(trio).glob("lap-top-*/*-*"))
    inbox = place / CLAUDE
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / "half.md.partial").write_text("x")
    (inbox / ".a.md.truekeep-tmp").write_text("x")
    (inbox / "large.md").write_bytes(b"x" * (9 << 20))
    (inbox / "link.md").symlink_to("/etc/passwd")
    (place / "node_modules" / "deep").mkdir(parents=True)
    (place / "node_modules" / "deep" / "x.md").write_text("x")
    (remote(trio) / "holiday.jpg").write_text("x")
    assert trio.receive().brought == 3
    base = trio.host_here().exchange(Route("by-rclone", "rclone", {}))
    there = {path.name for path in base.rglob("*") if path.is_file()}
    assert there.isdisjoint({"half.md.partial", ".a.md.truekeep-tmp", "large.md", "link.md", "x.md", "holiday.jpg"})
    trio.settle()
    trio.check()
    assert (remote(trio) / "holiday.jpg").exists()


def steps() -> tuple[tuple[Any, str], ...]:
    return (
        (via_rclone, "run_tool"), (os, "replace"), (os, "unlink"), (os, "rename"), (os, "utime"),
        (file_io, "write_beside"), (file_io, "put_new"),
    )  # fmt: skip


def test_killed_between_any_two_steps(trio: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each machine dies at each of its steps, one after the other, with new handoffs all the time."""
    killed = 0
    trio.leave_some()
    acts: tuple[Callable[[], Contact], ...] = (partial(trio.send, trio.one), trio.receive, partial(trio.send, trio.two))
    for number in range(1, 15):
        (trio.one if number % 2 else trio.two).leave(f"n-{number}", inbox=(CLAUDE, CODEX)[number % 3 == 0])
        for act in acts:
            with killed_at(monkeypatch, number, *steps()) as calls:
                act()
            killed += calls[-1] == "killed"
        if number % 4 == 0:
            trio.round()
    assert killed > 20
    trio.settle()
    trio.check()
    trio.check_clean()


def bombed(monkeypatch: pytest.MonkeyPatch, folder: Path, delay: float) -> None:
    """An rclone that is killed, with SIGKILL, so many seconds after it started to work."""
    real = shutil.which("rclone")
    folder.mkdir(exist_ok=True)
    script = folder / "rclone"
    script.write_text(
        f"#!{sys.executable}\nimport subprocess, sys, time\n"
        f"process = subprocess.Popen([{real!r}, *sys.argv[1:]])\n"
        f"if 'bisync' in sys.argv:\n    time.sleep({delay})\n    process.kill()\n"
        "sys.exit(process.wait() and 1)\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_rclone_is_killed_midway(trio: Trio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At any moment of its work, on either side; what it left half is not taken, and the next run makes it good."""
    trio.leave_some()
    for number in range(5):
        (trio.one if number % 2 else trio.two).leave(f"n-{number}")
        with monkeypatch.context() as patch:
            bombed(patch, tmp_path / "bin", 0.03 + 0.05 * number)
            for act in (partial(trio.send, trio.one), trio.receive):
                with suppress(Unreachable):
                    act()
        trio.send(trio.one)
        trio.receive()
    trio.settle()
    trio.check()
    trio.check_clean()


def test_a_slow_remote_leaves_half_a_handoff(trio: Trio) -> None:
    """The time is up in the middle of a file. Half of it may be there; the host does not take it."""
    trio.one.leave("long")
    path = trio.one.repo() / CLAUDE / "2026-11-14-0900-long.md"
    text = path.read_text().replace("It is long.", "It is long.\n" + "and longer\n" * 20_000)
    path.write_text(text)
    os.utime(path, (time.time() - 60,) * 2)
    trio.one.left.clear()
    trio.one.seconds = 6
    route = trio.one.route("rclone", trio.remote, flags=("--bwlimit", "20k"))
    told = contact_route(route, trio.one.here)
    assert not told.ok
    assert "no answer within 6 s" in told.problem
    came = trio.receive()
    assert came.brought == 0
    assert list(trio.host_here().state.glob("synced/*/*/.c*/*/*")) == []
    trio.one.seconds = 60
    sent = trio.send(trio.one)
    assert any("interrupted" in note or "anew" in note for note in sent.notes), sent
    assert trio.receive().brought == 1
    trio.place.ingest()
    trio.settle()
    assert trio.one.waiting() == []


def test_the_lock_of_a_living_rclone_is_respected(trio: Trio) -> None:
    trio.leave_some()
    trio.send(trio.one)
    work = trio.one.here.state / "rclone" / "by-rclone"
    (listing,) = work.glob("*.path1.lst")
    lock = work / listing.name.replace(".path1.lst", ".lck")
    command = [sys.executable, "-c", "print(flush=True); input()", "rclone"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it runs: before, it has no command line that could be read
        for text in (
            f"{process.pid}",
            f'{{"Session":"x","PID":"{process.pid}","TimeExpires":"2999-01-01T00:00:00Z"}}\n',
        ):
            lock.write_text(text)
            with pytest.raises(Unreachable, match="still running"):
                trio.send(trio.one)
        process.kill()
    for text in (f"{process.pid}", "", "nonsense", '{"PID":"99999999999999999999"}'):
        lock.write_text(text)
        assert any("interrupted" in note for note in trio.send(trio.one).notes)
    trio.settle()
    trio.check()


@pytest.mark.parametrize("how", ["deleted", "emptied", "handoffs", "origins", "receipts", "halved"])
def test_a_remote_that_lost_things(trio: Trio, how: str) -> None:
    """At every stage. The originals are in the inboxes, and what waits is offered again."""

    def lose() -> None:
        if how == "deleted":
            shutil.rmtree(remote(trio))
            remote(trio).mkdir()
            return
        for path in sorted(remote(trio).rglob("*")):
            if path.is_file():
                if how == "emptied":
                    path.unlink()
                elif how == "halved" and path.suffix in (".md", ".json"):
                    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
                elif (
                    (how == "handoffs" and path.suffix == ".md")
                    or (how == "origins" and path.suffix == ".json")
                    or (how == "receipts" and path.parent.name == "receipts")
                ):
                    path.unlink()

    acts: tuple[Callable[[], object], ...] = (
        partial(trio.send, trio.one), partial(trio.send, trio.two), trio.receive, trio.place.ingest, trio.receive,
    )  # fmt: skip
    trio.leave_some()
    for number, act in enumerate(acts):
        trio.one.leave(f"n-{number}")
        act()
        if number != 3:
            lose()
    before = len(trio.one.waiting()) + len(trio.one.processed())
    trio.settle()
    assert before == len(trio.one.left)
    trio.check()
    left = {path.name for producer in (trio.one, trio.two) for path in trio.offered(producer)}
    assert all("path" in name or "conflict" in name for name in left), left  # rclone kept both
    assert not left or how == "halved"


def test_a_folder_that_vanished_is_not_made_anew(trio: Trio) -> None:
    """It may be on a disk that is not mounted, and then everything would go into the mount point."""
    trio.leave_some()
    trio.send(trio.one)
    trio.receive()
    away = remote(trio).rename(remote(trio).with_name("unmounted"))
    for act in (partial(trio.send, trio.one), trio.receive):
        with pytest.raises(Unreachable) as raised:
            act()
        assert "is gone" in raised.value.problem
        assert "mount its disk" in raised.value.hint
    assert not remote(trio).exists()
    away.rename(remote(trio))
    trio.settle()
    trio.check()


def test_both_ends_changed(trio: Trio) -> None:
    """rclone keeps both versions under names of their own; nothing is deleted, the promise is written anew."""
    trio.leave_some()
    trio.send(trio.one)
    trio.send(trio.two)
    base = trio.one.here.exchange(trio.one.route("rclone", trio.remote))
    then = time.time() + 5
    for path in [*base.rglob("origin.json"), *base.rglob("*.md")]:
        there = remote(trio) / trio.one.here.folder / path.relative_to(base)
        there.write_text("edited there")
        path.write_text("edited here, and longer")
        os.utime(path, (then, then))
        os.utime(there, (then + 5, then + 5))
    trio.one.leave("later")
    told = trio.send(trio.one)
    assert any("both versions" in note for note in told.notes), told
    copies = {path: path.read_bytes() for path in base.rglob("*.md?*")}
    assert b"edited there" in copies.values()
    trio.settle()
    trio.check()
    assert {path: path.read_bytes() for path in copies} == copies


def test_all_at_once(trio: Trio) -> None:
    """Nobody waits for anybody: three bisyncs of one remote side by side, again and again."""
    trio.leave_some()
    problems: list[BaseException] = []

    def again(act: Callable[[], object]) -> None:
        for _ in range(5):
            try:
                act()
            except Unreachable:
                pass  # overtaken by another one; the next run
            except BaseException as error:  # noqa: BLE001 - shown by the main thread
                problems.append(error)

    here = trio.host_here()
    route = Route("by-rclone", "rclone", {"remote": trio.remote})
    acts = (partial(trio.send, trio.one), partial(trio.send, trio.two), partial(via_rclone.contact, route, here))
    threads = [threading.Thread(target=again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    trio.settle()
    trio.check()


def test_one_handoff_by_two_routes(trio: Trio, tmp_path: Path) -> None:
    """The same repositories are sent by rclone and by git: filed once, and both ways learn of it."""
    other = str(tmp_path / "other.git")
    subprocess.run(["git", "init", "-q", "--bare", other], check=True)
    trio.leave_some()
    for _ in range(2):
        for producer in (trio.one, trio.two):
            trio.send(producer)
            via_git.contact(producer.route("git", other), producer.here)
        for _ in range(2):
            trio.receive()
            via_git.contact(Route("by-git", "git", {"remote": other}), trio.host_here())
            trio.place.ingest()
    for producer in (trio.one, trio.two):
        trio.send(producer)
    trio.check()
    trio.check_clean()


REMOTES = {
    "not configured": ("nosuchremote:x", "rclone config"),
    "nobody listens": (":webdav,url='http://127.0.0.1:1/':x", "next run"),
    "not allowed": ("/proc/truekeep", ""),
    "a file": ("{tmp}/file", ""),
    "option": ("--config={tmp}/ran", "absolute path"),
    "relative": ("handoffs", "absolute path"),
    "none": ("", "--remote"),
}


@pytest.mark.parametrize(("address", "hint"), REMOTES.values(), ids=REMOTES)
def test_a_remote_that_cannot_be_reached(tmp_path: Path, address: str, hint: str) -> None:
    (tmp_path / "file").write_text("x")
    producer = Producer(tmp_path / "one", "one")
    producer.leave("a")
    route = producer.route("rclone", address.format(tmp=tmp_path))
    for here in (producer.here, producer.here._replace(is_host=True, state=tmp_path / "host")):
        told = contact_route(route, here)
        assert not told.ok
        assert told.problem
        assert "bug" not in told.problem
        assert hint in told.hint, told
    assert producer.waiting() == ["2026-11-14-0900-a.md"]


def test_rclone_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    producer = Producer(tmp_path / "one", "one")
    told = contact_route(producer.route("rclone", str(tmp_path / "remote")), producer.here)
    assert told.problem == "rclone is not installed"


@pytest.mark.parametrize(("version", "has_it"), [("v1.60.1-DEV", False), ("v1.65.2", False), ("v1.66.0", True)])
def test_flags_are_those_that_a_version_has(
    trio: Trio, monkeypatch: pytest.MonkeyPatch, version: str, has_it: bool
) -> None:
    given: list[list[str]] = []

    def run_tool(arguments: list[str], **_: Any) -> Ran:
        given.append(arguments)
        return Ran(0, f"rclone {version}\n- os".encode(), "")

    monkeypatch.setattr(via_rclone, "run_tool", run_tool)
    via_rclone._version_of.cache_clear()
    trio.options = {"flags": ("--transfers", "1")}
    trio.send(trio.one)
    via_rclone._version_of.cache_clear()
    command = given[-1]
    assert ("--recover" in command) is has_it
    assert ("--conflict-resolve" in command) is has_it
    assert command[command.index("--") - 2 : command.index("--")] == ["--transfers", "1"]
