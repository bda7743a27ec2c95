"""ingest --watch: handoffs are filed as they come, whatever comes and goes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, CODEX, PATIENCE, Place, a_card, a_handoff, run_cli, wait_until
from truekeep.core.errors import NotCanonical
from truekeep.core.model import FilingOutcome
from truekeep.handoffs.sync.mirror import Mirror
from truekeep.workspace.watch import Watch, _parents_of


class Watcher:
    """The program, watching."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self.said: list[str] = []
        for stream, kept in ((process.stdout, self.lines), (process.stderr, self.said)):
            threading.Thread(target=self._read, args=(stream, kept), daemon=True).start()

    @staticmethod
    def _read(stream: Iterator[str], kept: list[str]) -> None:
        for line in stream:
            kept.append(line)  # noqa: PERF402 - one by one, as they come

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(place: Place, *options: str, **environment: str) -> Iterator[Watcher]:
    command = [sys.executable, "-m", "truekeep", "ingest", "--watch", "--workspace", str(place.workspace), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            yield Watcher(process)
        finally:
            process.kill()


def ready(place: Place, watcher: Watcher) -> None:
    """Wait until the watch has begun: what lay there before is filed."""
    assert wait_until(lambda: "staging-proxy.md" in place.cards()), watcher.said
    time.sleep(0.5)


def another(number: int) -> str:
    """A handoff for a card of its own."""
    topic, body = f"Thing {number} of the {number * 7919} things", f"The thing {number} weighs {number * 104729} grams."
    return a_handoff(
        card=f"thing-{number}.md",
        title=f"Thing {number}",
        facts=f"- it weighs {number * 104729} grams",
        summary=f"Weighed {number}.",
        content=a_card(topic, body),
    )


def drop(folder: Path, number: int) -> None:
    """Leave a handoff as producers do: written beside, then renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"2026-11-14-09{number:02}-thing.md"
    (folder / f".{name}.tmp").write_text(another(number))
    (folder / f".{name}.tmp").rename(folder / name)


@pytest.fixture
def watched(place: Place) -> Iterator[tuple[Place, Watcher]]:
    place.configure(settle=0.3)
    place.leave(a_handoff())
    with watching(place) as watcher:
        ready(place, watcher)
        yield place, watcher


@pytest.mark.slow
def test_handoffs_are_filed_as_they_come(watched: tuple[Place, Watcher]) -> None:
    place, watcher = watched
    for number in range(1, 4):
        drop(place.inbox, number)
        assert wait_until(lambda name=f"thing-{number}.md": name in place.cards()), watcher.said  # type: ignore[misc]
    assert wait_until(lambda: len(watcher.lines) == 4)
    assert watcher.lines[1] == "promoted  2026-11-14-0901-thing.md -> memory/cards/thing-1.md\n"
    assert watcher.stop() == 0
    assert "".join(watcher.said) == ""
    log = (place.workspace / ".truekeep" / "logs" / "ingest.log").read_text().splitlines()
    assert len(log) == 4  # one a run that had something to do


@pytest.mark.slow
def test_repositories_and_inboxes_come_and_go(watched: tuple[Place, Watcher]) -> None:
    place, watcher = watched
    drop(place.base / "repos" / "new" / CODEX, 1)  # a repository that was not there
    assert wait_until(lambda: "thing-1.md" in place.cards()), watcher.said
    shutil.rmtree(place.repo)
    time.sleep(1)
    drop(place.inbox, 2)  # the same path, another folder
    assert wait_until(lambda: "thing-2.md" in place.cards()), watcher.said
    shutil.rmtree(place.base / "repos")
    drop(place.inbox, 3)  # at once, and the folder of all repositories too
    assert wait_until(lambda: "thing-3.md" in place.cards()), watcher.said
    drop(place.workspace / CLAUDE, 4)  # the workspace's own inbox
    assert wait_until(lambda: "thing-4.md" in place.cards()), watcher.said
    assert watcher.stop(signal.SIGTERM) == 0


@pytest.mark.slow
def test_what_other_machines_leave_is_filed(watched: tuple[Place, Watcher]) -> None:
    place, watcher = watched
    mirror = Mirror.of(place.workspace / ".truekeep", "laptop")
    there = mirror.place("laptop", "/home/ada/repos/web", "github.com/ada/web")
    mirror.take(there, CLAUDE, "2026-11-14-0901-thing.md", another(1).encode())
    assert wait_until(lambda: "thing-1.md" in place.cards()), watcher.said
    mirror.take(there, CLAUDE, "2026-11-14-0902-thing.md", another(2).encode())
    assert wait_until(lambda: "thing-2.md" in place.cards()), watcher.said


@pytest.mark.slow
def test_half_of_a_handoff_is_never_filed(place: Place) -> None:
    place.configure(settle=1.0)
    place.leave(a_handoff())
    with watching(place) as watcher:
        ready(place, watcher)
        text = another(1)
        with (place.inbox / "2026-11-14-0901-thing.md").open("w") as file:
            for start in range(0, len(text), 100):
                file.write(text[start : start + 100])
                file.flush()
                time.sleep(0.4)
                assert "thing-1.md" not in place.cards()
            drop(place.inbox, 2)
            assert wait_until(lambda: "thing-2.md" in place.cards()), watcher.said  # nobody waits for it
            assert "thing-1.md" not in place.cards()
        assert wait_until(lambda: "thing-1.md" in place.cards()), watcher.said
        assert place.drafts() == []


@pytest.mark.slow
def test_errors_are_told_and_survived(place: Place) -> None:
    place.configure(settle=0)
    place.leave(a_handoff())
    config = place.workspace / ".truekeep" / "config.toml"
    right = config.read_text()
    with watching(place) as watcher:
        ready(place, watcher)
        config.write_text("not toml")
        drop(place.inbox, 1)
        assert wait_until(lambda: any("config.toml" in line for line in watcher.said))
        config.write_text(right)
        assert wait_until(lambda: "thing-1.md" in place.cards()), watcher.said
        with place.open() as other, other.locked():
            drop(place.inbox, 2)
            assert wait_until(lambda: any("another truekeep is writing" in line for line in watcher.said))
        assert wait_until(lambda: "thing-2.md" in place.cards()), watcher.said
        os.symlink("/etc/passwd", place.inbox / "2026-11-14-0903-link.md")
        assert wait_until(lambda: any(line.startswith("skipped") for line in watcher.lines))
        drop(place.inbox, 4)
        assert wait_until(lambda: "thing-4.md" in place.cards()), watcher.said
        assert sum(line.startswith("skipped") for line in watcher.lines) == 1  # and it is said once
        assert watcher.stop() == 0


@pytest.mark.slow
def test_json_is_one_object_a_line(place: Place) -> None:
    place.leave(a_handoff())
    with watching(place, "--json") as watcher:
        ready(place, watcher)
        drop(place.inbox, 1)
        assert wait_until(lambda: len(watcher.lines) == 2)
        told = [json.loads(line) for line in watcher.lines]
        assert [item["target"] for item in told] == ["memory/cards/staging-proxy.md", "memory/cards/thing-1.md"]
        assert {item["schema"] for item in told} == {"truekeep.filed/1"}
        assert watcher.stop() == 0


@pytest.mark.slow
def test_only_the_named_repository(place: Place, tmp_path: Path) -> None:
    place.leave(a_handoff())
    apart = tmp_path / "apart"
    apart.mkdir()
    with watching(place, "--repo", str(apart)) as watcher:
        time.sleep(1)
        drop(apart / CLAUDE, 1)
        assert wait_until(lambda: place.cards() == ["thing-1.md"]), watcher.said
        shutil.rmtree(apart)
        time.sleep(1)
        drop(apart / CLAUDE, 2)
        assert wait_until(lambda: place.cards() == ["thing-1.md", "thing-2.md"]), watcher.said
        assert place.waiting()


@pytest.mark.slow
def test_reader_that_leaves_ends_it(place: Place) -> None:
    place.leave(a_handoff())
    with watching(place) as watcher:
        ready(place, watcher)
        assert wait_until(lambda: bool(watcher.lines))
    command = [sys.executable, "-m", "truekeep", "ingest", "--watch", "--workspace", str(place.workspace)]
    read, write = os.pipe()
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(write)
        os.close(read)
        drop(place.inbox, 1)
        try:
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_only_the_canonical_host_watches(place: Place) -> None:
    done = run_cli("ingest", "--watch", "--workspace", str(place.workspace), TRUEKEEP_MACHINE_ID="another")
    assert done.returncode == 4
    assert run_cli("ingest", "--watch", "--dry-run", "--workspace", str(place.workspace)).returncode == 2


def test_watch_ends_when_another_machine_became_the_host(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.leave(a_handoff())
    filed: list[FilingOutcome] = []

    def tell(_: object, item: FilingOutcome) -> None:
        filed.append(item)
        monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
        drop(place.inbox, 1)

    with pytest.raises(NotCanonical):
        Watch(place.workspace, on_filed=tell, warn=lambda _: None).run(threading.Event())
    assert len(filed) == 1


def test_without_events_it_still_looks(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> Iterator[set[tuple[int, str]]]:
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr("watchfiles.watch", none)
    monkeypatch.setattr("truekeep.workspace.watch.SCAN_SECONDS", 0.2)
    stop, warned, filed = threading.Event(), list[str](), list[FilingOutcome]()

    def tell(_: object, item: FilingOutcome) -> None:
        filed.append(item)
        if len(filed) == 3:
            stop.set()
        else:
            drop(place.inbox, len(filed))

    place.leave(a_handoff())
    Watch(place.workspace, on_filed=tell, warn=warned.append).run(stop)
    assert len(filed) == 3
    assert len(warned) == 1
    assert "limit reached" in warned[0]


def test_folders_in_which_repositories_appear(tmp_path: Path) -> None:
    for name in ("src/one/app", "src/two/app", "fixed"):
        (tmp_path / name).mkdir(parents=True)
    base = str(tmp_path)
    assert list(_parents_of(f"{base}/src/*")) == [f"{base}/src"]
    assert sorted(_parents_of(f"{base}/src/*/app")) == [f"{base}/src", f"{base}/src/one", f"{base}/src/two"]
    assert list(_parents_of(f"{base}/fixed")) == [base]
    assert list(_parents_of(f"{base}/gone/deep/*")) == [base]
    assert list(_parents_of(f"{base}/src/**/app")) == [f"{base}/src"]
    assert list(_parents_of("/*")) == ["/"]
