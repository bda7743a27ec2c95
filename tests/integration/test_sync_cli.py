"""truekeep sync on the command line: routes of a machine that is the host, was it, or never is."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.helpers import Place, run_cli
from truekeep.core.host_lease import HostLease
from truekeep.core.machine import own_state
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.routes import Route, add_route, remove_route

OTHER = HostLease(id="0" * 32, name="box", generation=2, taken_at="2026-11-15T00:00:00Z")


def test_routes_of_a_host_that_is_one_no_longer(place: Place, own_home: Path) -> None:
    state = place.workspace / ".truekeep"
    add_route(state, Route("laptop", "rsync", {"host": "laptop", "repos": ("~/x",)}))
    with place.open() as workspace:
        workspace.state.write_lease(OTHER)
    for verb in ("run", "status"):
        done = run_cli("-w", str(place.workspace), "sync", verb)
        assert (done.returncode, "the canonical host is box" in done.stderr) == (4, True), done
    never = run_cli("-w", str(place.workspace), "sync", "status", TRUEKEEP_MACHINE_ID="never")
    assert (never.returncode, "the canonical host is box" in never.stderr) == (4, True), never
    with place.open() as workspace:
        workspace.state.write_lease(OTHER._replace(id="1" * 32, name="den"))
    done = run_cli("-w", str(place.workspace), "sync", "run", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "split-host")
    (state / "hosts" / f"{'1' * 32}.toml").write_text("<<<<")
    done = run_cli("-w", str(place.workspace), "sync", "status", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "split-host")
    add_route(Path(own_state()), Route("host", "git", {"remote": "/nowhere", "repos": ("~/x",)}))
    assert "never tried" in run_cli("-w", str(place.workspace), "sync", "status").stdout, "a producer now"
    remove_route(Path(own_state()), "host")
    assert run_cli("-w", str(place.workspace), "sync", "status").returncode == 4


def test_a_copy_without_routes_is_no_error(place: Place, own_home: Path) -> None:
    done = run_cli("-w", str(place.workspace), "sync", "status", TRUEKEEP_MACHINE_ID="never")
    assert (done.returncode, "no routes yet" in done.stdout) == (0, True), done


def test_how_the_last_contact_is_shown(place: Place, own_home: Path) -> None:
    state = place.workspace / ".truekeep"
    add_route(state, Route("laptop", "rsync", {"host": "laptop", "repos": ("~/x",)}))
    found = Contact("laptop", "2026-11-15T00:00:00Z", True, brought=2, receipts=1, notes=("no inbox there", "more"))
    write_contact(state, found)
    shown = run_cli("-w", str(place.workspace), "sync", "status").stdout
    assert "2 brought, 1 receipt; no inbox there\n" in shown
    write_contact(Path(own_state()), found._replace(route="host", notes=()))
    add_route(Path(own_state()), Route("host", "git", {"remote": "/nowhere", "repos": ("~/x",)}))
    shown = run_cli("sync", "status").stdout
    assert "2 sent, 1 receipt\n" in shown
    write_contact(Path(own_state()), Contact("host", "2026-11-15T00:00:00Z", False, problem="no answer"))
    assert "failed once: no answer" in run_cli("sync", "status").stdout
