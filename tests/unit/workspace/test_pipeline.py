"""Is the pipeline alive? What came, what waits, what is silent or stuck, and inboxes that nobody scans."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, CODEX, NOW, Place, a_card, a_handoff, git_repo, run_cli
from truekeep.core.host_lease import HostLease
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.mirror import Mirror
from truekeep.handoffs.sync.routes import Route, add_route
from truekeep.workspace.pipeline import Pipeline, find_unscanned


def see(place: Place, *, now: datetime = NOW, roots: tuple[str, ...] = ()) -> Pipeline:
    with place.open(now=now) as workspace:
        return workspace.health.pipeline(roots, now=now)


def codes(seen: Pipeline) -> set[str]:
    return {alarm.code for alarm in seen.alarms}


def bring(place: Place, machine: str, text: str, name: str = "2026-11-14-1200-x.md") -> None:
    """What a transport does with a handoff of another machine."""
    mirror = Mirror.of(place.workspace / ".truekeep", machine)
    there = mirror.place(machine, "/home/ada/repos/shop", "github.com/acme/shop")
    assert mirror.take(there, CODEX, name, text.encode())


def test_what_was_filed_and_what_waits(place: Place, own_home: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    bring(place, "laptop", a_handoff(card="other.md", title="Another thing"))
    seen = see(place)
    assert [(item.writer, item.filed, item.waiting) for item in seen.sources if item.machine != "laptop"] == [
        ("claude", 1, 0)
    ]
    (laptop,) = [item for item in seen.sources if item.machine == "laptop"]
    assert (laptop.writer, laptop.repository, laptop.waiting, laptop.filed) == ("codex", "github.com/acme/shop", 1, 0)
    assert not codes(seen)


def test_what_another_machine_left_is_filed_with_its_name(place: Place, own_home: Path) -> None:
    bring(place, "laptop", a_handoff())
    place.ingest()
    assert "repository: github.com/acme/shop\nwriter: codex\n" in place.card()
    with place.open() as workspace:
        ((_, record),) = [pair for pair in workspace.history.entries() if pair[1] is not None]
        assert record is not None
        assert (record.origin.machine, record.origin.inbox) == ("laptop", f"laptop:/home/ada/repos/shop/{CODEX}")
    (source,) = see(place).sources
    assert source[:3] == ("laptop", "codex", "github.com/acme/shop")
    assert not see(place).sources[0].waiting


def test_a_handoff_that_came_by_two_routes_is_filed_once(place: Place, own_home: Path) -> None:
    bring(place, "laptop", a_handoff())
    mirror = Mirror.of(place.workspace / ".truekeep", "by-git")
    mirror.take(mirror.place("laptop", "/home/ada/repos/shop", "github.com/acme/shop"), CODEX, "2026-11-14-1200-x.md",
                a_handoff().encode())  # fmt: skip
    place.ingest()
    assert sorted(item.outcome for item in place.filed) == ["already", "promoted"]
    assert place.cards() == ["staging-proxy.md"]


def test_silence_is_noticed(place: Place, own_home: Path) -> None:
    assert codes(see(place)) == {"not-running"}
    place.leave(a_handoff())
    place.ingest()
    assert codes(see(place)) == set()
    later = NOW + timedelta(days=9)
    assert codes(see(place, now=later)) == {"not-running", "silent"}


def test_an_inbox_without_bound_is_named(place: Place, own_home: Path) -> None:
    for number in range(25):
        place.leave(a_handoff(card="bad/name.md", title=f"No {number}"), name=f"2026-11-14-12{number:02}-x.md")
    place.ingest()
    assert "growing" in codes(see(place))


def test_a_machine_that_is_not_reached(place: Place, own_home: Path) -> None:
    state = place.workspace / ".truekeep"
    add_route(state, Route("laptop", "rsync", {"host": "laptop", "repos": ("~/x",)}))
    write_contact(state, Contact("laptop", "2026-11-01T00:00:00Z", True, brought=2, machines=("laptop",)))
    write_contact(state, Contact("laptop", "2026-11-10T00:00:00Z", False, problem="no route to host"))
    place.leave(a_handoff())
    place.ingest()
    seen = see(place)
    assert codes(seen) == {"unreached"}
    assert "no route to host" in seen.alarms[0].message
    assert seen.routes[0].failures == 1


def test_what_waits_for_days(place: Place, own_home: Path) -> None:
    place.leave(a_handoff(), age=30 * 86_400)
    today = datetime.now(UTC)
    assert "waiting" not in codes(see(place, now=today)), "it came just now, whatever its mtime says"
    assert "waiting" in codes(see(place, now=today + timedelta(days=5)))


def test_what_is_held_is_not_filed(place: Place, own_home: Path) -> None:
    later = NOW + timedelta(days=9)
    place.leave(a_handoff(card="bad/name.md"))
    place.ingest(now=later)
    seen = see(place, now=later)
    assert [(item.filed, item.held) for item in seen.sources] == [(0, 1)]
    (alarm,) = seen.alarms
    assert (alarm.code, "1 handoff is before a person" in alarm.message) == ("silent", True)
    with place.open(now=later) as workspace:
        workspace.review.reject(workspace.review.drafts()[0].id, reason="no")
    seen = see(place, now=later)
    assert (seen.drafts, [(item.filed, item.held) for item in seen.sources]) == (0, [(0, 1)])
    place.leave(a_handoff(), name="2026-11-14-1300-y.md")
    place.ingest(now=later)
    seen = see(place, now=later)
    assert ([(item.filed, item.held) for item in seen.sources], codes(seen)) == ([(1, 1)], set())


@pytest.mark.slow
def test_nothing_to_review_does_not_grow(place: Place, own_home: Path) -> None:
    for number in range(25):
        place.leave(a_handoff(card="bad/name.md", title=f"No {number}"), name=f"2026-11-14-12{number:02}-x.md")
    place.ingest()
    with place.open() as workspace:
        for draft in workspace.review.drafts():
            workspace.review.reject(draft.id, reason="no")
    assert "growing" not in codes(see(place))


def test_a_machine_of_which_nothing_comes_any_more(place: Place, own_home: Path) -> None:
    bring(place, "laptop", a_handoff(card="other.md", title="Another thing"))
    place.ingest()
    for days, is_silent in ((13, False), (20, True), (95, False)):
        later = NOW + timedelta(days=days)
        text = a_handoff(card=f"n-{days}.md", title=f"Day {days}", content=a_card(f"Day {days}", f"It is {days}."))
        place.leave(text, name=f"2026-11-14-12{days}-x.md")
        place.ingest(now=later)
        told = [alarm.message for alarm in see(place, now=later).alarms if alarm.code == "silent"]
        assert told == ["nothing came from laptop since 2026-11-15, while others went on"] * is_silent
    bring(place, "laptop", a_handoff(card="more.md", title="More"), name="2026-11-14-1300-y.md")
    assert "silent" not in codes(see(place, now=NOW + timedelta(days=96)))


@pytest.mark.slow
def test_the_last_sync_of_a_machine(place: Place, own_home: Path) -> None:
    state = place.workspace / ".truekeep"
    add_route(state, Route("lap", "rsync", {"host": "laptop", "repos": ("~/x",)}))
    bring(place, "laptop", a_handoff())
    note = "laptop: no repository of this route has an inbox"
    write_contact(state, Contact("lap", "2026-11-14T00:00:00Z", True, machines=("laptop",), notes=(note,)))
    seen = see(place)
    assert [item.last_sync for item in seen.sources] == ["2026-11-14T00:00:00Z"]
    assert seen.routes[0].notes == (note,)
    shown = run_cli("status", "pipeline", TRUEKEEP_WORKSPACE=str(place.workspace)).stdout
    assert note in shown
    assert "last ingest never;" in shown
    write_contact(state, Contact("lap", "2026-11-15T00:00:00Z", False, problem="asleep"))
    assert [item.last_sync for item in see(place).sources] == ["2026-11-14T00:00:00Z"]


def test_a_clock_that_was_once_ahead(place: Place, own_home: Path) -> None:
    place.leave(a_handoff())
    place.ingest(now=NOW + timedelta(days=400))
    assert "not-running" in codes(see(place))
    assert "not-running" not in codes(see(place, now=NOW + timedelta(days=399, hours=12)))


@pytest.mark.slow
def test_whether_anybody_files(place: Place, own_home: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    assert not codes(see(place))
    other = HostLease(id="0" * 32, name="box", generation=2, taken_at="2026-11-15T00:00:00Z")
    with place.open() as workspace:
        workspace.state.write_lease(other)
    (alarm,) = see(place).alarms
    assert alarm.code == "not-canonical"
    assert "the canonical host is box" in alarm.message
    assert "is a copy" in alarm.message
    with place.open() as workspace:
        workspace.state.write_lease(other._replace(id="1" * 32, name="den"))
    assert codes(see(place)) == {"split-host"}
    done = run_cli("status", "pipeline", "--exit-code", TRUEKEEP_WORKSPACE=str(place.workspace))
    assert (done.returncode, "split-host: no machine files" in done.stdout) == (1, True), done
    (place.workspace / ".truekeep" / "hosts" / f"{'1' * 32}.toml").write_text("<<<<")
    assert codes(see(place)) == {"split-host"}
    (place.workspace / ".truekeep" / "hosts" / f"{'1' * 32}.toml").unlink()
    with place.open() as workspace:
        workspace.state.write_lease(other._replace(released_at="2026-11-15T00:00:00Z"))
    assert codes(see(place)) == {"no-host"}


def test_inboxes_that_nobody_scans(place: Place, own_home: Path) -> None:
    lonely = git_repo(own_home / "code" / "billing")
    (lonely / CODEX).mkdir(parents=True)
    assert not see(place).unscanned
    (lonely / CODEX / "2026-11-14-1200-x.md").write_text("x")
    assert see(place).unscanned == (str(lonely / CODEX),)
    assert "unscanned" in codes(see(place))


def test_the_search_for_them_ends(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"a{number}" / "b" / "c" / "d" / CLAUDE).mkdir(parents=True)
    os.symlink(tmp_path, tmp_path / "a0" / "loop")
    assert list(find_unscanned([], [tmp_path], {"claude": CLAUDE})) == []


@pytest.mark.slow
def test_on_the_command_line(place: Place, own_home: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    named = str(place.workspace)
    done = run_cli("status", "pipeline", "--exit-code", TRUEKEEP_WORKSPACE=named)
    assert "staging" not in done.stdout
    assert "last handoff" in done.stdout
    told = json.loads(run_cli("status", "pipeline", "--json", TRUEKEEP_WORKSPACE=named).stdout)
    assert told["schema"] == "truekeep.status-pipeline/1"
    assert told["sources"][0]["writer"] == "claude"
    assert run_cli("status", TRUEKEEP_WORKSPACE=named).returncode == 0
