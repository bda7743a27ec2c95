"""The record: what goes in comes out byte for byte, and only the holder of the lease changes it."""

from __future__ import annotations

from pathlib import Path

from tests.support.helpers import Place, a_card, a_handoff, run_cli, tree
from tests.support.team import Team
from truekeep.server.administration import export_workspace, import_workspace


def test_a_workspace_comes_back_byte_for_byte(team: Team, place: Place, tmp_path: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    (place.workspace / "memory/notes.bin").write_bytes(b"\0\xff" * 3)
    team.add(place)
    assert export_workspace(team.url, "team", tmp_path / "out") > 2
    assert tree(tmp_path / "out") == tree(place.workspace)
    ledger = ".truekeep/ledger.sqlite"
    assert (tmp_path / "out" / ledger).read_bytes() == (place.workspace / ledger).read_bytes()


def test_a_handoff_is_filed_once_and_read_by_every_process(team: Team, place: Place) -> None:
    team.add(place)
    one, two = team.server("one"), team.server("two")
    first = team.hand_in(one, a_handoff())
    assert first.is_new
    assert not team.hand_in(two, a_handoff()).is_new
    assert one.work_on(1) == 1
    assert team.hand_in(one, a_handoff()).outcome == "promoted"
    for server in (one, two):
        with server.reading(team.reach(server)) as workspace:
            assert workspace.search.find("staging port").hits[0].path == "memory/cards/staging-proxy.md"
            assert workspace.context.ledger.latest_at()
    assert two.work_on(1) == 0, "the lease is the other's"
    one._writers[1].close()
    team.hand_in(
        two,
        a_handoff(card="other.md", title="Other", content=a_card("Other thing", "The queue is named jobs.")),
        "2026-11-14-0901-b.md",
    )
    assert two.work_on(1) == 1
    with one.reading(team.reach(one)) as workspace:
        assert {card.name for card in workspace.cards.all()} == {"other.md", "staging-proxy.md"}


def test_an_export_becomes_a_workspace_with_its_history(team: Team, place: Place, tmp_path: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    team.add(place)
    out = tmp_path / "out"
    ran = run_cli("server", "export", "team", str(out), TRUEKEEP_DATABASE=team.url)
    assert ran.returncode == 0, ran.stderr
    assert run_cli("init", str(out)).returncode == 0
    assert "promoted" in run_cli("history", "-w", str(out)).stdout


def test_what_is_private_does_not_come_to_a_server(team: Team, place: Place, tmp_path: Path) -> None:
    secret = "The budget of the heron project is 84,000 crowns a year"
    (place.workspace / "memory/diary.md").write_text(f"# Diary\n\n{secret}.\n")
    (place.workspace / "memory/plans.md").write_text(f"# Plans\n\n- Ask Ada. {secret}!\n- The gate opens at nine.\n")
    (place.workspace / "memory/export.json").write_text(f'{{"note": "{secret}"}}')
    place.leave(a_handoff())
    place.ingest()
    place.configure('[sync]\nprivate = ["diary.md"]\n')
    with place.open() as workspace:
        done = import_workspace(team.url, "team", workspace)
    assert {"memory/diary.md", "memory/export.json"} <= set(done.left_out)
    assert (done.masked, done.ledger) == (("memory/plans.md",), False)
    export_workspace(team.url, "team", tmp_path / "out")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"heron" not in everything
    assert b"The gate opens at nine." in everything
    with place.open() as workspace:
        assert import_workspace(team.url, "whole", workspace, with_history=True).ledger
