"""One machine writes. Several are played here: a folder for each, an id of its own, and a sync that knows no lock."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import NOW, Place, a_handoff, run_cli, tree
from truekeep.core import file_io
from truekeep.core import host_lease as lease
from truekeep.core.errors import BadInput, BadSetup, EditedSince, NotCanonical, SplitHost, StorageFailed
from truekeep.core.host_lease import HostLease, HostStatus, parse_lease, read_host_status, render_lease, write_lease
from truekeep.core.machine import HOST_FILE, HOSTS_FOLDER, has_routes, own_state, this_machine
from truekeep.handoffs.sync.routes import FILE as ROUTES
from truekeep.interfaces.cli import app
from truekeep.memory.ledger import Ledger
from truekeep.sessions.checkpoint import Checkpoint
from truekeep.workspace.context import WorkspaceContext
from truekeep.workspace.workspace import Workspace

LATER = NOW + timedelta(days=1)
_UNSYNCED = ("-wal", "-shm", ".log", file_io.TEMPORARY)


class Box:
    """One machine with its own copy of the workspace."""

    def __init__(self, name: str, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self.place = Place(base=base, workspace=base / "workspace", repo=base / "repos" / "app")
        self.home = base / "home"
        self._patch = monkeypatch

    @contextmanager
    def here(self) -> Iterator[None]:
        with self._patch.context() as patched:
            patched.setenv("TRUEKEEP_MACHINE_ID", self.name)
            patched.setenv("HOME", str(self.home))
            patched.setenv("TRUEKEEP_WORKSPACE", str(self.place.workspace))
            patched.setattr("truekeep.core.machine.machine_name", lambda: self.name)
            yield

    @property
    def state(self) -> Path:
        return self.place.workspace / ".truekeep"

    @property
    def id(self) -> str:
        with self.here():
            return this_machine().id

    @property
    def own(self) -> Path:
        return self.state / HOSTS_FOLDER / f"{self.id}.toml"

    def lease(self) -> HostLease:
        return parse_lease(self.own.read_bytes())

    def run(self, *arguments: str, code: int = 0) -> Any:
        """A command with --json, in this process."""
        import io
        from contextlib import redirect_stderr, redirect_stdout

        out, err = io.StringIO(), io.StringIO()
        with self.here(), redirect_stdout(out), redirect_stderr(err):
            found = app.run([*arguments, "--json"])
        assert found == code, out.getvalue() + err.getvalue()
        return json.loads(out.getvalue())

    def ingest(self, *, now: datetime = NOW) -> None:
        with self.here():
            self.place.ingest(now=now)

    def file(self, name: str, *, now: datetime = NOW) -> None:
        """Ingest something new."""
        self.place.leave(a_handoff(title=f"Fact {name}", card=f"{name}.md"), f"2026-11-14-0900-{name}.md")
        self.ingest(now=now)

    def take(self, *, now: datetime = NOW) -> HostLease:
        with self.here(), self.place.open(now=now) as workspace:
            return workspace.host.take(workspace.host.status())

    def init(self) -> None:
        with self.here():
            Workspace.init(self.place.workspace, now=lambda: NOW)

    def release(self, *, now: datetime = NOW) -> HostLease:
        with self.here(), self.place.open(now=now) as workspace:
            return workspace.host.release()

    def host_status(self) -> HostStatus:
        return read_host_status(str(self.state))

    @property
    def is_canonical(self) -> bool:
        with self.here(), self.place.open() as workspace:
            return workspace.is_canonical

    def refuses(self, kind: type[NotCanonical] = NotCanonical) -> NotCanonical:
        with pytest.raises(NotCanonical) as error:
            self.ingest()
        assert type(error.value) is kind
        return error.value

    def notes(self) -> list[tuple[str, str]]:
        with self.here(), self.place.open() as workspace:
            return [
                (entry.verb, entry.note) for entry, _ in workspace.history.entries() if entry.verb.endswith("-host")
            ]


class Fleet:
    """Machines that share one workspace."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._base, self._patch = base, monkeypatch
        self.desk = self._box("desk")
        with self.desk.here():
            Place.make(self._base / "desk")

    def _box(self, name: str) -> Box:
        return Box(name, self._base / name, self._patch)

    def join(self, name: str, source: Box | None = None) -> Box:
        """A machine that gets its first copy."""
        box = self._box(name)
        shutil.copytree((source or self.desk).place.base, box.place.base)
        with box.here():
            box.place.configure()
        return box

    @staticmethod
    def sync(*boxes: Box) -> None:
        """Last writer wins, for every file; nothing is asked, nothing is kept."""
        newest: dict[str, Path] = {}
        for box in boxes:
            for path in box.place.workspace.rglob("*"):
                name = str(path.relative_to(box.place.workspace))
                if path.is_file() and not name.endswith((*_UNSYNCED, "config.toml")):
                    known = newest.get(name)
                    if known is None or path.stat().st_mtime_ns > known.stat().st_mtime_ns:
                        newest[name] = path
        for box in boxes:
            for name, path in newest.items():
                target = box.place.workspace / name
                if target != path:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, target)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path, monkeypatch)


class TestTaking:
    def test_the_old_one_refuses_from_its_next_sync_on(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.file("one")
        laptop = fleet.join("laptop")
        assert laptop.refuses().details["host"] == "desk"
        taken = laptop.take(now=LATER)
        assert (taken.generation, taken.taken_from) == (2, "desk")
        laptop.file("two")
        desk.file("three")  # it cannot know yet
        fleet.sync(desk, laptop)
        error = desk.refuses()
        assert "laptop, which took over on 2026-11-16" in error.message
        laptop.file("four")
        assert laptop.is_canonical
        assert not desk.is_canonical

    def test_each_machine_writes_only_its_own_file(self, fleet: Fleet) -> None:
        desk, laptop = fleet.desk, fleet.join("laptop")
        before = {path.name: path.read_bytes() for path in (laptop.state / HOSTS_FOLDER).iterdir()}
        first = (laptop.state / HOST_FILE).read_bytes()
        laptop.take()
        laptop.file("one")
        after = {path.name: path.read_bytes() for path in (laptop.state / HOSTS_FOLDER).iterdir()}
        assert {name: after[name] for name in before} == before
        assert (laptop.state / HOST_FILE).read_bytes() == first
        assert set(after) - set(before) == {laptop.own.name}
        assert desk.own.name in before

    def test_it_is_in_the_ledger(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        laptop.take()
        laptop.take()
        assert laptop.notes() == [("took-host", "generation 2: laptop took over from desk")]
        with laptop.here(), laptop.place.open() as workspace:
            (entry,) = [entry for entry, _ in workspace.history.entries() if entry.verb == "took-host"]
            with pytest.raises(BadInput, match="changed no file"):
                workspace.history.undo(entry.id)
        (shown,) = laptop.run("history")["entries"]
        assert (shown["verb"], shown["files"]) == ("took-host", [])

    @pytest.mark.slow
    def test_back_and_forth(self, fleet: Fleet) -> None:
        desk, laptop = fleet.desk, fleet.join("laptop")
        for turn in range(2, 8):
            box, other = (laptop, desk) if turn % 2 == 0 else (desk, laptop)
            assert box.take().generation == turn
            fleet.sync(desk, laptop)
            assert (box.is_canonical, other.is_canonical) == (True, False)
            box.file(f"turn-{turn}")
            other.refuses()

    def test_clocks_decide_nothing(self, fleet: Fleet) -> None:
        desk, laptop = fleet.desk, fleet.join("laptop")
        assert laptop.take(now=NOW - timedelta(days=3650)).generation == 2
        fleet.sync(desk, laptop)
        desk.refuses()
        desk.take(now=NOW - timedelta(days=9000))
        fleet.sync(desk, laptop)
        assert laptop.refuses().details["host"] == "desk"
        assert desk.is_canonical

    def test_a_workspace_from_before_has_no_folder_of_hosts(self, fleet: Fleet) -> None:
        desk = fleet.desk
        shutil.rmtree(desk.state / HOSTS_FOLDER)
        assert desk.is_canonical
        laptop = fleet.join("laptop")
        assert laptop.refuses().details["host"] == "desk"
        assert laptop.take().generation == 2
        fleet.sync(desk, laptop)
        desk.refuses()

    def test_somebody_was_faster(self, fleet: Fleet) -> None:
        laptop, tablet = fleet.join("laptop"), fleet.join("tablet")
        seen = laptop.host_status()
        tablet.take()
        fleet.sync(laptop, tablet)
        with laptop.here(), laptop.place.open() as workspace, pytest.raises(EditedSince):
            workspace.host.take(seen)
        assert not laptop.own.exists()

    def test_asked_first(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        before = tree(laptop.place.workspace, skip=())
        assert laptop.run("host", "take", code=3)["error"]["code"] == "bad-input"
        assert tree(laptop.place.workspace, skip=()) == before
        done = laptop.run("host", "take", "--yes")
        assert (done["schema"], done["taken"], done["tenure"]["generation"]) == ("truekeep.host-take/1", True, 2)
        again = laptop.run("host", "take")
        assert (again["taken"], again["tenure"]) == (False, done["tenure"])

    @pytest.mark.parametrize("answer", ["", "yes", "the name"])
    def test_on_a_terminal_the_name_is_typed(self, fleet: Fleet, answer: str) -> None:
        laptop = fleet.join("laptop")
        typed = os.uname().nodename if answer == "the name" else answer
        with laptop.here():
            code, text = on_a_terminal("host", "take", typed=typed or "\x04")
        assert "desk" in text.split("Type ")[0], "the story comes first"
        assert "look there first" in text
        assert laptop.own.exists() == (answer == "the name")
        assert (code == 0) == (answer == "the name")

    def test_without_a_terminal_nothing_happens(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        with laptop.here():
            done = run_cli("host", "take")
        assert (done.returncode, laptop.own.exists()) == (3, False)
        assert "--yes" in done.stderr
        assert "desk" in done.stdout


def on_a_terminal(*arguments: str, typed: str) -> tuple[int, str]:
    """Run the program with a terminal for its input, and type one line."""
    master, slave = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "truekeep", *arguments], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    os.close(slave)
    os.write(master, typed.encode() + (b"" if typed == "\x04" else b"\n"))
    out, _ = done.communicate(timeout=120)
    os.close(master)
    return done.returncode, out.decode()


class TestReleasing:
    def test_then_nobody_writes_until_somebody_takes(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.file("one")
        assert desk.release().released_at
        laptop = fleet.join("laptop")
        for box in (desk, laptop):
            error = box.refuses()
            assert "there is no canonical host since desk released it" in error.message
            assert "truekeep host take" in error.hint
            assert box.run("host", "show")["state"] == "released"
        assert desk.notes() == [("released-host", "generation 1")]
        assert laptop.take().generation == 2
        laptop.file("two")
        assert laptop.host_status().overlaps() == ()

    def test_an_older_tenure_does_not_come_back(self, fleet: Fleet) -> None:
        """desk never released; when laptop does, desk is not the host again without anybody asking."""
        desk, laptop = fleet.desk, fleet.join("laptop")
        laptop.take()
        laptop.release()
        fleet.sync(desk, laptop)
        assert "laptop released it" in desk.refuses().message
        assert desk.take().generation == 3
        desk.file("one")

    def test_twice_is_once(self, fleet: Fleet) -> None:
        desk = fleet.desk
        first = desk.release()
        before = desk.own.read_bytes()
        assert desk.release(now=LATER) == first
        assert desk.own.read_bytes() == before
        assert len(desk.notes()) == 1

    def test_what_one_does_not_have(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        assert laptop.run("host", "release", code=4)["error"]["code"] == "not-canonical-host"
        laptop.take()
        fleet.sync(fleet.desk, laptop)
        assert fleet.desk.run("host", "release", code=4)["error"]["host"] == "laptop"
        assert laptop.run("host", "release")["tenure"]["released_at"]

    def test_cycles(self, fleet: Fleet) -> None:
        boxes = [fleet.desk, fleet.join("laptop"), fleet.join("tablet")]
        for generation in range(2, 8):
            old = next(box for box in boxes if box.is_canonical)
            old.release()
            fleet.sync(*boxes)
            assert not any(box.is_canonical for box in boxes)
            new = boxes[generation % 3]
            assert new.take().generation == generation
            fleet.sync(*boxes)
            assert [box.is_canonical for box in boxes] == [box is new for box in boxes]


def split(fleet: Fleet) -> tuple[Box, Box, Box]:
    """Two machines that both took over from a third one while apart, and met."""
    fleet.desk.file("one", now=NOW - timedelta(days=2))
    laptop, tablet = fleet.join("laptop"), fleet.join("tablet")
    laptop.take(now=NOW)
    laptop.file("two", now=LATER)
    tablet.take(now=LATER)
    fleet.sync(fleet.desk, laptop, tablet)
    return fleet.desk, laptop, tablet


class TestSplit:
    def test_all_stop_and_tell_the_story(self, fleet: Fleet) -> None:
        for box in split(fleet):
            error = box.refuses(SplitHost)
            told = "\n".join(error.details["story"])
            assert "laptop and tablet each" in error.message
            assert "truekeep host take" in error.hint
            for words in (
                "generation 2, took over 2026-11-15 12:00 from desk, last wrote on 2026-11-16",
                "generation 2, took over 2026-11-16 12:00 from desk, has not written since",
                "generation 1, took over 2026-11-15 12:00, last wrote on 2026-11-13",
            ):
                assert words in told
            assert not box.is_canonical
            found = box.run("ingest", code=4)["error"]
            assert (found["code"], len(found["story"])) == ("split-host", 3)
            assert box.run("host", "show")["state"] == "split"
            assert "in doubt" in box.run("status")["memory"]["canonical_host"]

    def test_a_take_ends_it(self, fleet: Fleet) -> None:
        desk, laptop, tablet = split(fleet)
        assert (laptop.take().generation, laptop.lease().taken_from) == (3, "laptop and tablet")
        laptop.file("three")
        fleet.sync(desk, laptop, tablet)
        assert tablet.refuses().details["host"] == "laptop"
        desk.refuses()

    def test_the_third_may_take_as_well(self, fleet: Fleet) -> None:
        desk, laptop, tablet = split(fleet)
        desk.take()
        fleet.sync(desk, laptop, tablet)
        assert [box.is_canonical for box in (desk, laptop, tablet)] == [True, False, False]

    def test_a_release_ends_it_too(self, fleet: Fleet) -> None:
        desk, laptop, tablet = split(fleet)
        tablet.release()
        fleet.sync(desk, laptop, tablet)
        assert [box.is_canonical for box in (desk, laptop, tablet)] == [False, True, False]

    def test_both_take_again(self, fleet: Fleet) -> None:
        _, laptop, tablet = split(fleet)
        laptop.take()
        tablet.take()
        fleet.sync(laptop, tablet)
        laptop.refuses(SplitHost)
        tablet.refuses(SplitHost)
        tablet.take()
        fleet.sync(laptop, tablet)
        assert tablet.is_canonical
        laptop.refuses()

    def test_handoffs_can_be_left(self, fleet: Fleet) -> None:
        for box in split(fleet):
            with box.here(), box.place.open() as workspace:
                left = workspace.sessions.checkpoint(Checkpoint(summary="Done."), root=box.place.repo)
                assert (left.paths, len(left.handoffs)) == ((), 1)
                with pytest.raises(SplitHost, match="each claim"):
                    workspace.sessions.checkpoint(Checkpoint(summary="Done."))

    def test_two_machines_that_both_began_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Even where the sync tool lets one `host` silently win."""
        one, two = Fleet(tmp_path / "a", monkeypatch).desk, Box("laptop", tmp_path / "b", monkeypatch)
        with two.here():
            Place.make(tmp_path / "b")
        Fleet.sync(one, two)
        assert (one.state / HOST_FILE).read_bytes() == (two.state / HOST_FILE).read_bytes()
        one.refuses(SplitHost)
        two.refuses(SplitHost)

    def test_init_does_not_make_one(self, fleet: Fleet) -> None:
        """The way to move of an earlier version: delete `host` in the copy, and init."""
        laptop = fleet.join("laptop")
        (laptop.state / HOST_FILE).unlink()
        with laptop.here(), pytest.raises(NotCanonical, match="desk") as error:
            Workspace.init(laptop.place.workspace)
        assert "truekeep host take" in error.value.hint
        laptop.take()
        laptop.file("one")
        with laptop.here():
            assert ".truekeep/host" in Workspace.init(laptop.place.workspace).created
        assert laptop.is_canonical


CONFLICTS = (
    "host.sync-conflict-20261115-120000-ABCDEFG",
    "host (conflicted copy 2026-11-15)",
    "host (Ada's conflicted copy 2026-11-15)",
    "host (1)",
    "host.conflict1",
    "host..path2",
    "host~",
    "host~HEAD",
    "host.orig",
)
OWN_CONFLICTS = (
    "{}.sync-conflict-20261115-120000-ABCDEFG.toml",
    "{} (conflicted copy 2026-11-15).toml",
    "{}.toml.conflict2",
    "{}.conflict2.toml",
    "{}.toml~",
)


class TestConflictCopies:
    @pytest.mark.parametrize("name", CONFLICTS)
    def test_of_host_that_name_another_machine(self, fleet: Fleet, name: str) -> None:
        desk, other = fleet.desk, "0" * 32
        (desk.state / name).write_text(f'format = 1\nid = "{other}"\nname = "attic"\nsince = "2026-11-15T00:00:00Z"\n')
        laptop = fleet.join("laptop")
        for box in (desk, laptop):
            error = box.refuses(SplitHost)
            assert any("attic" in line for line in error.details["story"])
            assert any(name in line for line in error.details["story"])
        assert desk.take().generation == 2
        desk.file("one")
        assert desk.run("host", "show")["copies"] == [name]

    @pytest.mark.parametrize("name", CONFLICTS)
    def test_of_host_that_name_the_same(self, fleet: Fleet, name: str) -> None:
        shutil.copy(fleet.desk.state / HOST_FILE, fleet.desk.state / name)
        fleet.desk.file("one")

    @pytest.mark.parametrize("name", OWN_CONFLICTS)
    def test_of_a_tenure(self, fleet: Fleet, name: str) -> None:
        """laptop took over; the tool gave its file another name and kept the older one in its place."""
        desk, laptop = fleet.desk, fleet.join("laptop")
        laptop.take()
        write_lease(str(desk.state), desk.lease()._replace(generation=2))
        copy = desk.state / HOSTS_FOLDER / name.format(laptop.id)
        shutil.copy(laptop.own, copy)
        desk.refuses(SplitHost)
        copy.write_text(render_lease(laptop.lease()._replace(generation=7)))
        assert desk.refuses().details["host"] == "laptop"
        copy.write_text(render_lease(laptop.lease()._replace(generation=1)))
        desk.file("one")

    def test_of_ones_own_file(self, fleet: Fleet) -> None:
        """A copy of an older state of it changes nothing; one of a release ends it, because doubt must not write."""
        desk = fleet.desk
        copy = desk.state / HOSTS_FOLDER / f"{desk.id}.sync-conflict-20261115-120000-ABCDEFG.toml"
        shutil.copy(desk.own, copy)
        desk.file("one")
        copy.write_text(render_lease(desk.lease()._replace(released_at="2026-11-15T12:00:00Z")))
        desk.refuses()
        assert desk.take().generation == 2
        desk.file("two")

    @pytest.mark.parametrize(
        "name", [".host.swp", "host.7f3a.partial", ".syncthing.host.tmp", f".host{file_io.TEMPORARY}", "hosted.tmp"]
    )
    def test_what_is_under_way_is_passed_over(self, fleet: Fleet, name: str) -> None:
        (fleet.desk.state / name).write_text("half a fi")
        fleet.desk.file("one")

    def test_a_second_folder(self, fleet: Fleet) -> None:
        (fleet.desk.state / "hosts (1)").mkdir()
        assert "hosts (1) is not a regular file" in fleet.desk.refuses(SplitHost).message


HOSTILE = {
    "empty": b"",
    "no TOML": b"<<<<<<< HEAD\n",
    "not text": b"\xff\xfe\0",
    "no id": b"generation = 3\n",
    "an id like a path": b'id = "../../x"\ngeneration = 3\n',
    "no generation": b'id = "%s"\n' % (b"1" * 32),
    "yes as generation": b'id = "%s"\ngeneration = true\n' % (b"1" * 32),
    "generation nought": b'id = "%s"\ngeneration = 0\n' % (b"1" * 32),
    "huge generation": b'id = "%s"\ngeneration = 99999999999999999999\n' % (b"1" * 32),
    "endless number": b'id = "%s"\ngeneration = %s\n' % (b"1" * 32, b"9" * 5_000),
    "endless but short enough": b"generation = " + b"9" * 4_000,
    "released some day": b'id = "%s"\ngeneration = 3\nreleased_at = "soon"\n' % (b"1" * 32),
    "deep": b"a = " + b"[" * 4_000,
    "long": b"# " + b"x" * 5_000,
}


class TestHostileFiles:
    @pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
    def test_a_tenure_that_cannot_be_read_stops_and_is_named(self, fleet: Fleet, raw: bytes) -> None:
        desk = fleet.desk
        bad = desk.state / HOSTS_FOLDER / f"{'1' * 32}.toml"
        bad.write_bytes(raw)
        error = desk.refuses(SplitHost)
        assert f".truekeep/hosts/{bad.name}" in error.message
        assert desk.run("host", "show")["unreadable"][0]["file"] == f"hosts/{bad.name}"
        assert desk.run("host", "take", "--yes", code=4)["error"]["code"] == "split-host"
        bad.unlink()
        desk.file("one")

    @pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
    def test_ones_own_can_be_taken_anew(self, fleet: Fleet, raw: bytes) -> None:
        desk = fleet.desk
        desk.own.write_bytes(raw)
        desk.refuses(SplitHost)
        assert desk.take().generation == 2
        desk.file("one")

    @pytest.mark.parametrize("raw", [b"", b"<<<<<<< HEAD\nid = 1\n", b"a = " + b"[" * 9_000, b"\xff", b"x" * 70_000])
    def test_host_itself(self, fleet: Fleet, raw: bytes) -> None:
        (fleet.desk.state / HOST_FILE).write_bytes(raw)
        assert fleet.desk.run("ingest", code=4 if raw == b"" else 6)["error"]["code"] in (
            "bad-setup",
            "unsafe-path",
            "split-host",
        )

    def test_links_are_not_followed(self, fleet: Fleet, tmp_path: Path) -> None:
        desk = fleet.desk
        elsewhere = tmp_path / "elsewhere"
        shutil.copytree(desk.state / HOSTS_FOLDER, elsewhere)
        link = desk.state / HOSTS_FOLDER / f"{'2' * 32}.toml"
        link.symlink_to(elsewhere / desk.own.name)
        assert "is a symlink" in desk.refuses(SplitHost).message
        link.unlink()
        shutil.rmtree(desk.state / HOSTS_FOLDER)
        (desk.state / HOSTS_FOLDER).symlink_to(elsewhere)
        before = tree(elsewhere)
        assert "hosts is a symlink" in desk.refuses(SplitHost).message
        with pytest.raises(NotCanonical):
            desk.take()
        assert tree(elsewhere) == before

    def test_ones_own_file_as_a_link(self, fleet: Fleet, tmp_path: Path) -> None:
        desk, kept = fleet.desk, tmp_path / "kept"
        kept.write_text("a person's")
        desk.own.unlink()
        desk.own.symlink_to(kept)
        desk.take()
        assert kept.read_text() == "a person's"
        assert not desk.own.is_symlink()

    def test_special_files_and_folders(self, fleet: Fleet) -> None:
        desk = fleet.desk
        for make in (os.mkdir, os.mkfifo):
            path = desk.state / HOSTS_FOLDER / f"{'3' * 32}.toml"
            make(path)
            desk.refuses(SplitHost)
            os.rmdir(path) if path.is_dir() else path.unlink()
        desk.file("one")

    @pytest.mark.slow
    def test_a_flood(self, fleet: Fleet) -> None:
        for number in range(3_000):
            (fleet.desk.state / HOSTS_FOLDER / f"{number:032x}.toml").write_text("x")
        assert "contains 3001 lease files" in "\n".join(fleet.desk.refuses(SplitHost).details["story"])

    @pytest.mark.slow
    def test_a_name_that_speaks_to_the_terminal(self, fleet: Fleet) -> None:
        desk = fleet.desk
        other = HostLease(id="4" * 32, name="a\x1b[2J\nb\u202e\x7f" + "c" * 900, generation=5, taken_from='"\\')
        write_lease(str(desk.state), other)
        with desk.here():
            for arguments in (["ingest"], ["host", "show"], ["host", "take"], ["status"]):
                done = run_cli(*arguments)
                assert not {"\x1b", "\u202e", "\x7f"} & set(done.stdout + done.stderr)
                assert "Traceback" not in done.stderr
                assert max(map(len, (done.stdout + done.stderr).splitlines())) < 1_000

    def test_what_is_not_understood_survives(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.own.write_text(desk.own.read_text() + 'colour = "blue"\n"odd key" = 3\nis_new = true\n')
        desk.file("one")
        assert desk.lease().others == (("colour", "blue"), ("odd key", 3), ("is_new", True))
        assert desk.lease().wrote_at


class TestWrites:
    def test_noted_once_a_day(self, fleet: Fleet) -> None:
        desk = fleet.desk
        assert desk.lease().wrote_at == ""
        desk.file("one")
        assert desk.lease().wrote_at == "2026-11-15T12:00:00Z"
        info = desk.own.stat()
        desk.file("two", now=NOW + timedelta(hours=3))
        assert (desk.own.stat().st_ino, desk.own.stat().st_mtime_ns) == (info.st_ino, info.st_mtime_ns)
        desk.file("three", now=LATER)
        assert desk.lease().wrote_at == "2026-11-16T12:00:00Z"

    def test_nothing_written_nothing_noted(self, fleet: Fleet) -> None:
        desk = fleet.desk
        before = desk.own.read_bytes()
        desk.ingest(now=LATER)
        with desk.here(), desk.place.open(now=LATER) as workspace:
            list(workspace.history.entries())
            workspace.review.drafts()
            assert workspace.is_canonical
        assert desk.own.read_bytes() == before

    def test_a_disk_that_refuses_the_note(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then nothing is written at all, and the handoff waits."""

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        desk = fleet.desk
        with monkeypatch.context() as patched:
            patched.setattr("truekeep.core.state_dir.write_lease", full)
            with pytest.raises(StorageFailed):
                desk.file("one")
        assert (desk.lease().wrote_at, desk.place.cards()) == ("", [])
        desk.ingest()
        assert desk.place.cards() == ["one.md"]

    @pytest.mark.slow
    def test_who_went_on_writing_is_told_with_the_day(self, fleet: Fleet) -> None:
        desk, laptop = fleet.desk, fleet.join("laptop")
        laptop.take(now=NOW)
        desk.file("one", now=LATER)
        fleet.sync(desk, laptop)
        for box in (desk, laptop):
            (found,) = box.run("host", "show")["overlaps"]
            assert (found["name"], found["taken_by"], found["taken_on"], found["wrote_on"], found["is_sure"]) == (
                *("desk", "laptop", "2026-11-15", "2026-11-16"),
                True,
            )
            with box.here():
                assert (
                    "desk wrote after laptop took over on 2026-11-15 (last on 2026-11-16)"
                    in run_cli("host", "show").stdout
                )

    def test_the_same_day_is_a_perhaps(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.file("one", now=NOW - timedelta(hours=2))
        laptop = fleet.join("laptop")
        laptop.take(now=NOW)
        (found,) = laptop.run("host", "show")["overlaps"]
        assert found["is_sure"] is False

    def test_a_proper_move_is_not_suspected(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.file("one", now=NOW)
        desk.release(now=NOW + timedelta(hours=1))
        laptop = fleet.join("laptop")
        laptop.take(now=NOW + timedelta(hours=2))
        assert laptop.run("host", "show")["overlaps"] == []


class TestRefusals:
    def test_every_writing_command(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.place.leave("# doubt\n", "doubt.md")
        desk.file("one")
        laptop = fleet.join("laptop")
        (draft,) = laptop.run("review", "list")["drafts"]
        archive = str(desk.place.base / "x.alf")
        desk.run("alf", "export", "-o", archive)
        before = tree(laptop.place.workspace)
        for arguments in (
            ["ingest"], ["undo", "1"], ["verify", "--fix"], ["review", "approve", draft["id"]],
            ["review", "reject", draft["id"]], ["review", "retry"], ["review", "prune"], ["init"],
            ["alf", "import", archive, "-w", str(laptop.place.workspace)], ["host", "release"],
        ):  # fmt: skip
            error = laptop.run(*arguments, code=4)["error"]
            assert (error["code"], error["host"]) == ("not-canonical-host", "desk"), arguments
            assert "the canonical host is desk" in error["message"]
            for command in ("truekeep handoff new", "truekeep checkpoint", "truekeep host take"):
                assert command in error["hint"]
            assert "sync run" not in error["hint"]
        assert tree(laptop.place.workspace) == before

    def test_a_producer_with_routes_is_told_of_them(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        with laptop.here():
            os.makedirs(own_state())
            Path(own_state(), ROUTES).write_text("")
            assert has_routes()
        assert "`truekeep sync run` sends" in laptop.refuses().hint

    def test_a_checkpoint_becomes_handoffs(self, fleet: Fleet) -> None:
        laptop = fleet.join("laptop")
        with laptop.here(), laptop.place.open() as workspace:
            left = workspace.sessions.checkpoint(Checkpoint(summary="Done."), root=laptop.place.repo)
            assert (left.paths, len(left.handoffs)) == ((), 1)
            with pytest.raises(NotCanonical) as error:
                workspace.sessions.checkpoint(Checkpoint(summary="Done."))
        assert "in a repository" in error.value.hint
        assert error.value.details["host"] == "desk"

    def test_a_namesake(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
        with fleet.desk.here(), monkeypatch.context() as patched:
            patched.setenv("TRUEKEEP_MACHINE_ID", "another")
            with pytest.raises(NotCanonical, match="another machine also called desk"):
                fleet.desk.place.ingest()

    def test_namesakes_are_told_apart(self, fleet: Fleet) -> None:
        desk = fleet.desk
        write_lease(str(desk.state), HostLease(id="5" * 32, name="desk", generation=1))
        assert {"desk (55555555)", f"desk ({desk.id[:8]})"} == set(desk.host_status().holders().split(" and "))

    def test_clones_need_an_id_of_their_own(self, fleet: Fleet) -> None:
        """Two machines with one id are one machine; the variable tells them apart."""
        clone = fleet.join("clone")
        clone.name = "desk"
        assert clone.is_canonical
        clone.name = "clone"
        assert not clone.is_canonical

    def test_a_take_that_came_while_it_waited_for_the_lock(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
        desk, laptop = fleet.desk, fleet.join("laptop")
        laptop.take()
        own = laptop.own
        locked = file_io.locked

        @contextmanager
        def slow(folder: str) -> Iterator[bool]:
            shutil.copy2(own, desk.state / HOSTS_FOLDER)
            with locked(folder) as held:
                yield held

        monkeypatch.setattr(file_io, "locked", slow)
        desk.refuses()


class Killed(BaseException):
    """The process ends here."""


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> bool:
    """Run an act and stop it before its n-th call that changes the disk. False when it had fewer."""
    calls = 0

    def stopping(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                raise Killed
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        for name in ("mkdir", "write", "fsync", "replace"):
            patched.setattr(os, name, stopping(getattr(os, name)))
        for name in ("begin", "finish"):
            patched.setattr(Ledger, name, stopping(getattr(Ledger, name)))
        patched.setattr(file_io, "discard", lambda *_: None)  # the dead do not tidy up
        try:
            act()
        except Killed:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["take", "release", "init"])
def test_killed_at_any_step(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """What is seen in between is the state before or the one after, and running it again gets there."""
    points = 0
    for number in range(1, 100):
        box = fleet.join(f"box-{number}")
        if verb == "init":
            shutil.rmtree(box.place.workspace)
            was_killed = killed_at(number, monkeypatch, box.init)
            box.init()
            assert box.is_canonical
            assert [item.generation for item in box.host_status().leases] == [1]
        elif verb == "take":
            shutil.rmtree(box.state / HOSTS_FOLDER)
            was_killed = killed_at(number, monkeypatch, box.take)
            assert not box.host_status().is_split
            assert box.host_status().generation in (1, 2)
            box.take()
            box.file("one")
            assert box.notes() == [("took-host", f"generation 2: {box.name} took over from desk")]
        else:
            box.take()
            was_killed = killed_at(number, monkeypatch, box.release)
            assert not box.host_status().is_split
            box.release()
            assert ("released-host", "generation 2") in box.notes()
            box.refuses()
        assert not list((box.state / HOSTS_FOLDER).glob(f".*{file_io.TEMPORARY}"))
        points += was_killed
        if not was_killed:
            break
    assert points >= 4


def test_killed_between_the_take_and_its_entry(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command that writes makes up for it, without another take."""
    laptop = fleet.join("laptop")
    with monkeypatch.context() as patched:
        patched.setattr(WorkspaceContext, "note_take", lambda *_: (_ for _ in ()).throw(Killed))
        with suppress(Killed):
            laptop.take()
    assert laptop.notes() == []
    laptop.file("one")
    assert laptop.notes() == [("took-host", "generation 2: laptop took over from desk")]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_events(tmp_path: Path, seed: int) -> None:
    """Whoever has synced with all agrees with all; no two of them ever believe that they may write."""
    chance = random.Random(seed)
    names = [letter * 32 for letter in "abc"]
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
        (folder / HOST_FILE).write_text(f'format = 1\nid = "{names[0]}"\nname = "a"\nsince = "2026-11-15T00:00:00Z"\n')
    for _ in range(80):
        name = chance.choice(names)
        folder, stamp = folders[name], f"20{chance.randint(10, 40)}-01-01T00:00:00Z"
        known = read_host_status(str(folder))
        act = chance.random()
        if act < 0.3:
            write_lease(str(folder), lease.next_lease(known, name, name[:1], at=stamp))
        elif act < 0.45 and (own := known.find(name)) in known.rivals and own is not None:
            write_lease(str(folder), own._replace(released_at=stamp))
        elif act < 0.8:
            other = folders[chance.choice(names)]
            carry(folder, other, names)
        else:
            for one in names:
                for two in names:
                    carry(folders[one], folders[two], names)
            seen = {read_host_status(str(folder)) for folder in folders.values()}
            assert len(seen) == 1
            (found,) = seen
            assert found.is_split == (len(found.rivals) > 1)
            if found.is_split:
                write_lease(str(folder), lease.next_lease(found, name, name[:1], at=stamp))
                assert read_host_status(str(folder)).canonical == read_host_status(str(folder)).find(name)


def carry(source: Path, target: Path, names: list[str]) -> None:
    """One-way, each file by its only writer: the owner's version is the newest; else the higher generation is."""
    for name in names:
        path = source / HOSTS_FOLDER / f"{name}.toml"
        if path.exists() and source != target and target.name != name:
            there = target / HOSTS_FOLDER / path.name
            there.parent.mkdir(exist_ok=True)
            if not there.exists() or age(path) >= age(there):
                shutil.copy(path, there)


def age(path: Path) -> tuple[int, bool]:
    found = parse_lease(path.read_bytes())
    return found.generation, bool(found.released_at)


class TestShow:
    def test_as_json(self, fleet: Fleet) -> None:
        desk = fleet.desk
        desk.file("one")
        laptop = fleet.join("laptop")
        laptop.take(now=LATER)
        shown = laptop.run("host", "show")
        assert shown["schema"] == "truekeep.host-show/1"
        assert shown["machine"] == {"id": laptop.id, "name": "laptop", "is_canonical": True}
        assert (shown["state"], shown["generation"]) == ("held", 2)
        assert shown["canonical"] == shown["tenures"][0] == {
            "id": laptop.id, "name": "laptop", "generation": 2, "taken_at": "2026-11-16T12:00:00Z",
            "taken_from": "desk", "released_at": None, "wrote_at": None,
        }  # fmt: skip
        assert shown["tenures"][1] == {
            "id": desk.id, "name": "desk", "generation": 1, "taken_at": "2026-11-15T12:00:00Z", "taken_from": None,
            "released_at": None, "wrote_at": "2026-11-15T12:00:00Z",
        }  # fmt: skip
        assert (shown["overlaps"], shown["unreadable"], shown["copies"]) == ([], [], [])

    def test_as_text(self, fleet: Fleet) -> None:
        with fleet.desk.here():
            lines = run_cli("host", "show").stdout.splitlines()
        assert lines[0].startswith("this machine    ")
        assert lines[1].startswith("canonical host  desk (")
        assert lines[1].endswith("generation 1, since 2026-11-15 12:00")
        assert lines[3].split()[:3] == ["machine", "id", "generation"]

    def test_it_writes_nothing(self, fleet: Fleet) -> None:
        before = tree(fleet.desk.state, skip=())
        fleet.desk.run("host", "show")
        assert tree(fleet.desk.state, skip=()) == before


def test_no_host_at_all(place: Place) -> None:
    shutil.rmtree(place.workspace / ".truekeep" / HOSTS_FOLDER)
    (place.workspace / ".truekeep" / HOST_FILE).unlink()
    with pytest.raises(BadSetup, match="is missing"):
        place.open()
