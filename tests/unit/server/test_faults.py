"""What goes wrong around a server: the database, its schema, edits by hand, tokens that are over."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.helpers import Place, a_card, a_handoff, run_cli, tree
from tests.support.postgres import running_cluster
from tests.support.team import Team
from truekeep.core.errors import BadInput, BadSetup, NewerState
from truekeep.server.accounts import Caller, Refused, find_caller, make_token
from truekeep.server.administration import create_workspace, export_workspace, init_deployment, read_status
from truekeep.server.database import DatabaseAway, as_owner, migrate
from truekeep.server.team_server import TeamServer

CARD = "memory/cards/staging-proxy.md"


@pytest.fixture
def filed(team: Team, place: Place) -> Team:
    place.leave(a_handoff())
    place.ingest()
    team.add(place)
    team.member("ada")
    return team


def test_edits_by_hand_come_to_the_record(filed: Team) -> None:
    server = filed.server()
    server.work_on(1)
    folder = server._writers[1].folder.path
    (folder / CARD).write_text(a_card("Proxy", "Staging answers on port 9000 only."))
    (folder / "memory/cards/new.md").write_text(a_card("New", "A new card."))
    (folder / "TOOLS.md").unlink(missing_ok=True)
    assert server.work_on(1) == 1
    with server.reading(filed.reach(server)) as workspace:
        assert "9000" in workspace.search.get(CARD).text
        assert workspace.search.get("memory/cards/new.md")
    assert server.work_on(1) == 0


def test_an_edit_of_what_changed_elsewhere_is_set_aside(filed: Team) -> None:
    one, two = filed.server("one"), filed.server("two")
    one.work_on(1)
    ours = one._writers[1].folder
    one._writers[1].record.release(one._writers[1].lease)  # type: ignore[arg-type]
    two.work_on(1)
    theirs = two._writers[1].folder.path / CARD
    theirs.write_text(a_card("Proxy", "Staging answers on port 9001 only."))
    assert two.work_on(1) == 1
    two._writers[1].record.release(two._writers[1].lease)  # type: ignore[arg-type]
    (ours.path / CARD).write_text("my own words\n")
    one.work_on(1)
    assert "9001" in (ours.path / CARD).read_text()
    (kept,) = ours.edits_set_aside()
    assert Path(kept).read_text() == "my own words\n"


def test_a_file_and_a_folder_change_places(filed: Team) -> None:
    one, two = filed.server("one"), filed.server("two")
    one.work_on(1)
    folder = one._writers[1].folder.path
    (folder / "memory/area.md").write_text("# Area\n")
    assert one.work_on(1) == 1
    with two.reading(filed.reach(two)):
        pass
    (folder / "memory/area.md").unlink()
    (folder / "memory/area.md").mkdir()
    (folder / "memory/area.md/inner.md").write_text("# Inner\n")
    assert one.work_on(1) == 1
    with two.reading(filed.reach(two)) as workspace:
        assert tree(workspace.path) == tree(folder)


def test_a_reader_sees_all_of_a_change_or_nothing(filed: Team) -> None:
    """Two files always change together; a reader that found them different would have seen half a change."""
    writer, reader = filed.server("one"), filed.server("two")
    writer.work_on(1)
    folder, torn, stop = writer._writers[1].folder.path, list[str](), threading.Event()

    def look() -> None:
        while not stop.is_set():
            with reader.reading(filed.reach(reader)) as workspace:
                texts = [(workspace.path / f"memory/pair-{part}.md") for part in "ab"]
                said = {path.read_text() if path.exists() else "" for path in texts}
                if len(said) > 1:
                    torn.append(str(said))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(15):
        for part in "ab":
            (folder / f"memory/pair-{part}.md").write_text(f"# Round {number}\n")
        writer._writers[1].take_edits()
    stop.set()
    for thread in threads:
        thread.join()
    assert not torn


def test_a_crash_of_ingest_does_not_lose_or_hold_up(filed: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    server = filed.server()
    filed.hand_in(server, a_handoff(card="one.md", title="One", content=a_card("One", "The first.")))
    with monkeypatch.context() as patch:
        patch.setattr("truekeep.workspace.handoffs.Handoffs.ingest", lambda *_, **__: 1 / 0)
        for _ in range(4):
            assert server.work_on(1) == 0
    filed.hand_in(
        server, a_handoff(card="two.md", title="Two", content=a_card("Two", "Another thing.")), "2026-11-14-0901-b.md"
    )
    assert server.work_on(1) == 2
    (status,) = read_status(filed.url).workspaces
    assert status.waiting == 0


def test_a_database_that_goes_away_and_comes_back(place: Place, tmp_path: Path) -> None:
    with running_cluster() as cluster:
        init_deployment(cluster.url, "memory.example")
        team = Team(cluster.url, tmp_path / "servers")
        team.add(place)
        team.member("ada")
        server = team.server()
        reach = team.reach(server)
        server.work_on(1)
        cluster.stop()
        with pytest.raises(DatabaseAway, match="cannot be used"):
            find_caller(server.database, team.tokens["ada"])
        assert server.work_on(1) == 0
        with pytest.raises(DatabaseAway):
            TeamServer(cluster.url, tmp_path / "another")
        cluster.start()
        team.hand_in(server, a_handoff())
        assert server.work_on(1) == 1
        with server.reading(team.reach(server)) as workspace:
            assert (workspace.path / CARD).exists()
        assert reach.version < team.reach(server).version
        team.close()


def test_schemas_that_do_not_fit(database_url: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetup, match="no truekeep in it"):
        TeamServer(database_url, tmp_path)
    init_deployment(database_url, "memory.example")
    assert migrate(database_url) == [], "a second time there is nothing to do"
    with as_owner(database_url) as connection:
        connection.execute("INSERT INTO migration (number, name) VALUES (9999, 'future')")
    for act in (lambda: TeamServer(database_url, tmp_path), lambda: migrate(database_url)):
        with pytest.raises(NewerState, match="newer truekeep"):
            act()
    with as_owner(database_url) as connection:
        connection.execute("DELETE FROM migration")
    with pytest.raises(BadSetup, match="has schema 0"):
        TeamServer(database_url, tmp_path)


def test_tokens_that_are_over(filed: Team) -> None:
    server = filed.server()
    token = filed.tokens["ada"]
    assert isinstance(find_caller(server.database, token), Caller)
    _, narrow = make_token(filed.url, "ada", workspace="team", role="reader")
    caller = find_caller(server.database, narrow)
    assert isinstance(caller, Caller)
    assert [reach.role for reach in caller.workspaces] == ["reader"], "never more than the token allows"
    with as_owner(filed.url) as connection:
        connection.execute("UPDATE token SET expires_at = now() WHERE id = 1")
    assert find_caller(server.database, token) == Refused("expired")
    with as_owner(filed.url) as connection:
        connection.execute("UPDATE account SET disabled_at = now()")
        assert token not in str(connection.execute("SELECT * FROM token").fetchall()), "only hashes are kept"
    assert find_caller(server.database, narrow) == Refused("disabled")
    assert find_caller(server.database, "tk1_" + "x" * 43) == Refused("unknown")


def test_one_process_for_a_folder(filed: Team) -> None:
    filed.server("one")
    with pytest.raises(BadSetup, match="another server process"):
        TeamServer(filed.url, filed.base / "one")


def test_a_new_workspace_and_names(filed: Team, tmp_path: Path) -> None:
    create_workspace(filed.url, "second")
    with pytest.raises(BadInput, match="already"):
        create_workspace(filed.url, "second")
    with pytest.raises(BadInput, match="cannot name"):
        create_workspace(filed.url, "../x")
    assert export_workspace(filed.url, "second", tmp_path / "out") == 2


def test_commands_say_what_is_missing(tmp_path: Path) -> None:
    ran = run_cli("server", "status", TRUEKEEP_DATABASE="")
    assert (ran.returncode, "no database is named" in ran.stderr) == (6, True), ran.stderr
    ran = run_cli("server", "status", "--database", "postgresql://ada:secret@127.0.0.1:1/none")
    assert (ran.returncode, "secret" in ran.stderr) == (7, False), ran.stderr
    ran = run_cli("server", "run", "--host", "0.0.0.0")
    assert "clear text" in ran.stderr
    ran = run_cli("login", "http://memory.example.com", TRUEKEEP_TOKEN="tk1_x")
    assert "clear text" in ran.stderr


def test_a_login_that_owns_nothing_serves(filed: Team) -> None:
    """As deploy/login.sh makes it: the server works, administration does not."""
    name = f"login_{uuid.uuid4().hex[:10]}"
    with as_owner(filed.url) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE truekeep_server")
    url = make_conninfo(filed.url, user=name)
    server = TeamServer(url, filed.base / "login")
    try:
        filed.hand_in(server, a_handoff(card="b.md", title="Bells", content=a_card("Bells", "They ring at noon.")))
        assert server.work_on(1) == 1
        with server.reading(filed.reach(server)) as workspace:
            assert (workspace.path / "memory/cards/b.md").exists()
        with pytest.raises(BadSetup, match="lacks a right"):
            make_token(url, "eve")
    finally:
        server.stop()
        with as_owner(filed.url) as connection:
            connection.execute(f"DROP ROLE {name}")


def test_nothing_of_it_is_needed_or_imported_elsewhere() -> None:
    asked = "import sys; sys.argv = ['truekeep', *sys.argv[1:]]; from truekeep.__main__ import main\n"
    block = "sys.modules['psycopg'] = sys.modules['prometheus_client'] = None\n"
    names = "[name for name in sys.modules if 'psycopg' in name or '.server.' in name]"
    seen = f"import atexit; atexit.register(lambda: print(*{names}))\n"

    def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", f"{asked}{code}main()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for arguments in (("--help",), ("login", "--help"), ("server", "--help"), ("search", "--help")):
        ran = run(seen, *arguments)
        assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, ""), ran.stderr
    for arguments in (("server", "status"), ("token", "list"), ("server", "run")):
        ran = run(block, *arguments)
        assert (ran.returncode, "truekeep[server]" in ran.stderr) == (6, True), ran.stderr
