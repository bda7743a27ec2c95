"""The second document, "The verify-before-recommend rule": what a memory mentions, and how it is verified."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.helpers import Place
from tests.support.histories import NAME, History, git
from tests.support.upkeep_place import write_card
from truekeep.core.errors import BadSetup
from truekeep.verify.live_system.configured import query_ids
from truekeep.verify.verdict import Verdict


def verdicts(
    place: Place, body: str, *, repository: str = NAME, day: str = "2026-03-01", system: bool = True
) -> dict[str, Verdict]:
    """The verdicts on a card, by the words of its claims."""
    write_card(place, "note", body, repository=repository, day=day)
    with place.open() as workspace:
        (checked,) = workspace.verification.verify(["memory/cards/note.md"], system=system)
    return {verdict.claim.text: verdict for verdict in checked.verdicts}


def unit_file(home: Path, port: int) -> None:
    folder = home / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    (folder / "shop.service").write_text(f"[Service]\nExecStart=/usr/bin/shop --port {port}\n")


class TestDecisions:
    """A "we decided X" claim: check git log for the actual change."""

    @pytest.fixture
    def carts(self, place: Place) -> Place:
        history = History()
        history.commit("2026-01-05", {"a.py": "A = 1\n"}, message="Use Redis instead of Memcached for carts")
        history.commit("2026-06-01", {"a.py": "A = 2\n"}, message="Replace Redis with Memcached for carts")
        history.write(place.repo)
        return place

    @pytest.mark.parametrize(
        "said",
        [
            "We decided to use Redis over Memcached for carts.",
            "We decided to use Redis for carts.",
            "Carts use Redis, not Memcached.",
            "We went with Redis rather than Memcached.",
        ],
    )
    def test_the_commit_that_undid_a_decision_is_found(self, carts: Place, said: str) -> None:
        """If the codebase already moved past that decision, the memory is a snapshot, not a directive."""
        (verdict,) = verdicts(carts, said).values()
        assert (verdict.verdict, verdict.claim.kind, verdict.day) == ("gone", "decision", "2026-06-01")
        assert "Replace Redis with Memcached for carts" in verdict.why

    def test_the_commit_that_made_a_decision_is_found(self, carts: Place) -> None:
        """Check git log for the actual change."""
        (verdict,) = verdicts(carts, "We decided to use Memcached over Redis for carts.", day="2026-07-01").values()
        assert (verdict.verdict, verdict.day) == ("confirmed", "2026-06-01")
        assert "Replace Redis with Memcached for carts" in verdict.why

    def test_a_commit_about_something_else_undoes_nothing(self, carts: Place) -> None:
        """A false alarm costs more than a miss."""
        (verdict,) = verdicts(carts, "We decided to use Redis for sessions.").values()
        assert verdict.verdict == "unverifiable"

    def test_went_with_one_package_rather_than_another(self, place: Place) -> None:
        """We decided to use X over Y two months ago."""
        history = History()
        history.commit("2026-01-05", {"package.json": '{"dependencies": {"pg": "^8.0.0"}}\n'})
        history.commit("2026-06-01", {"package.json": '{"dependencies": {"sqlite3": "^5.0.0"}}\n'})
        history.write(place.repo)
        (verdict,) = verdicts(place, "We went with pg rather than sqlite3.").values()
        assert (verdict.claim.kind, verdict.verdict) == ("decision", "gone")


class TestPorts:
    """A card claims a service runs on port 5204 and the systemd unit says 5300. Trust the unit."""

    @pytest.mark.parametrize("repository", [NAME, ""])
    def test_the_unit_of_a_service_that_is_named_in_words(self, place: Place, own_home: Path, repository: str) -> None:
        """A card claims a service runs on port 5204 and the systemd unit says 5300. Trust the unit."""
        history = History()
        history.commit("2026-01-05", {"a.py": "A = 1\n"})
        history.write(place.repo)
        unit_file(own_home, 5300)
        verdict = verdicts(place, "The shop service runs on port 5204.", repository=repository)["5204"]
        assert (verdict.verdict, verdict.place) == ("moved", "5300")
        assert "shop.service" in verdict.why

    def test_the_unit_in_the_repository(self, place: Place) -> None:
        """A card claims a service runs on port 5204 and the systemd unit says 5300. Trust the unit."""
        history = History()
        history.commit("2026-01-05", {"deploy/shop.service": "[Service]\nExecStart=/usr/bin/shop --port 5204\n"})
        history.write(place.repo)
        assert verdicts(place, "The shop service runs on port 5204.")["5204"].verdict == "confirmed"
        assert verdicts(place, "The shop service runs on port 5300.")["5300"].place == "5204"

    def test_a_unit_of_a_card_without_a_repository(self, place: Place, own_home: Path) -> None:
        """A workflow ID, container ID, port number: query the live system once before acting."""
        unit_file(own_home, 5300)
        found = verdicts(place, "`shop.service` runs on port 5204.", repository="")
        assert found["shop.service"].verdict == "confirmed"
        assert (found["5204"].verdict, found["5204"].place) == ("moved", "5300")


class TestPaths:
    """A file path: read it; if missing, memory is stale."""

    def test_a_missing_path_of_this_workspace(self, place: Place, own_home: Path) -> None:
        """A file path: read it; if missing, memory is stale."""
        here = str(place.workspace)
        found = verdicts(place, f"Run `{here}/scripts/run.sh` at night; see `{here}/MEMORY.md`.", repository="")
        assert found[f"{here}/scripts/run.sh"].verdict == "gone"

    def test_a_missing_path_below_this_home(self, place: Place, own_home: Path) -> None:
        """A file path: read it; if missing, memory is stale."""
        (own_home / "bin").mkdir()
        found = verdicts(place, "The backup is `~/bin/backup.sh`.", repository="")
        assert found["~/bin/backup.sh"].verdict == "gone"


class TestNames:
    """A function or flag name: grep for it in current code."""

    @pytest.fixture
    def tool(self, place: Place) -> Place:
        history = History()
        cli = "import argparse\n\ndef main():\n    argparse.ArgumentParser().add_argument('--old-flag')\n"
        history.commit("2026-01-05", {"src/cli.py": cli, "src/sums.py": "def oldHelper(a):\n    return a\n"})
        history.commit(
            "2026-06-01",
            {
                "src/cli.py": cli.replace("--old-flag", "--format"),
                "src/sums.py": "def newHelper(a):\n    return a + 1\n",
            },
        )
        history.write(place.repo)
        return place

    def test_a_function_that_is_named_in_prose(self, tool: Place) -> None:
        """A function or flag name: grep for it in current code."""
        assert verdicts(tool, "The function oldHelper does the sums.")["oldHelper"].verdict == "gone"
        assert (
            verdicts(tool, "The function newHelper does the sums.", day="2026-07-01")["newHelper"].verdict
            == "confirmed"
        )

    def test_a_flag_in_an_instruction_that_says_legacy(self, tool: Place) -> None:
        """A function or flag name: grep for it in current code."""
        found = verdicts(tool, "Run `src/cli.py --old-flag` for legacy output.")
        assert found["--old-flag"].verdict == "gone"

    @pytest.mark.parametrize("code", [r"PLANNING_ONLY_PROMISE_RE\s*=", "rg PLANNING_ONLY_PROMISE_RE"])
    def test_a_symbol_grep_target(self, place: Place, code: str) -> None:
        r"""Store symbol grep targets instead - PLANNING_ONLY_PROMISE_RE\s*= survives bundle renames."""
        history = History()
        history.commit("2026-01-05", {"src/a.js": "const PLANNING_ONLY_PROMISE_RE = /x/;\nconst GONE_ONLY_RE = /y/;\n"})
        history.commit("2026-06-01", {"src/a.js": "const PLANNING_ONLY_PROMISE_RE = /x/;\n"})
        history.write(place.repo)
        (verdict,) = verdicts(place, f"Find the bundle by `{code}`.").values()
        assert (verdict.verdict, verdict.claim.name) == ("confirmed", "PLANNING_ONLY_PROMISE_RE")
        gone = code.replace("PLANNING_ONLY_PROMISE_RE", "GONE_ONLY_RE")
        (verdict,) = verdicts(place, f"Find the bundle by `{gone}`.").values()
        assert (verdict.verdict, verdict.claim.name) == ("gone", "GONE_ONLY_RE")


class TestBundles:
    """A bundle hash filename (*-CQnl8oWA.js): find the bundle by symbol grep, not filename."""

    def test_with_a_line_in_a_folder_that_git_ignores(self, place: Place) -> None:
        """A card that says "function X lives at dist/foo-CQnl8oWA.js:382" stops being true with the next build."""
        history = History()
        history.commit("2026-01-05", {".gitignore": "dist/\n", "a.js": "1\n"})
        history.write(place.repo)
        (place.repo / "dist").mkdir()
        (place.repo / "dist" / "foo-BXm2kPq9.js").write_text("function runner() {}\n")
        found = verdicts(place, "The function `runner` lives at `dist/foo-CQnl8oWA.js:382`.")
        assert found["dist/foo-CQnl8oWA.js:382"].verdict == "moved"
        assert found["dist/foo-CQnl8oWA.js:382"].place == "dist/foo-BXm2kPq9.js:1"

    @pytest.mark.parametrize("repository", [NAME, ""])
    def test_an_absolute_path_with_the_new_bundle_beside_it(
        self, place: Place, tmp_path: Path, repository: str
    ) -> None:
        """Bundle hashes change every release."""
        history = History()
        history.commit("2026-01-05", {"a.js": "1\n"})
        history.write(place.repo)
        folder = tmp_path / "node_modules" / "openclaw" / "dist"
        folder.mkdir(parents=True)
        (folder / "foo-BXm2kPq9.js").write_text("function runner() {}\n")
        found = verdicts(place, f"It is in `{folder}/foo-CQnl8oWA.js`.", repository=repository)
        (verdict,) = found.values()
        assert (verdict.verdict, verdict.place) == ("moved", f"{folder}/foo-BXm2kPq9.js")


class TestLiveSystem:
    """A workflow ID, container ID, port number: query the live system once before acting."""

    @pytest.mark.parametrize(
        "said", ["The container `4f5e6d7c8b9a` runs n8n.", "n8n runs in container `4f5e6d7c8b9a`."]
    )
    def test_a_container_s_id_is_no_commit(self, place: Place, said: str) -> None:
        """A workflow ID, container ID, port number: query the live system once before acting."""
        history = History()
        history.commit("2026-01-05", {"a.js": "1\n"})
        history.write(place.repo)
        found = verdicts(place, said)
        assert {(item.claim.kind, item.verdict) for item in found.values()} <= {("container", "unverifiable")}

    def test_a_configured_command_answers_for_workflows(self, place: Place, tmp_path: Path) -> None:
        """A workflow ID, container ID, port number: query the live system once before acting."""
        program = tmp_path / "workflows"
        program.write_text('#!/bin/sh\ncase "$1" in Xy12AbCd34EfGh56) echo active ;; *) exit 1 ;; esac\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        place.configure(f'[verify.ask]\nworkflow = ["{program}", "{{id}}"]\n')
        found = verdicts(
            place, "The workflow `Xy12AbCd34EfGh56` sends invoices, workflow `Zz99AbCd34EfGh56` mails.", repository=""
        )
        assert found["Xy12AbCd34EfGh56"].verdict == "confirmed"
        assert found["Zz99AbCd34EfGh56"].verdict == "gone"

    @pytest.mark.parametrize("name", ["-rf--force12", "../../etc12", "a1;touch x", "$(id)1234", "--help12"])
    def test_what_is_not_an_id_reaches_no_command(self, tmp_path: Path, name: str) -> None:
        """Configured, never from memory: a memory gives an id, and nothing else."""
        assert query_ids(["/usr/bin/touch", f"{tmp_path}/{{id}}"], [name]) == {}
        assert list(tmp_path.iterdir()) == []

    def test_a_command_that_came_with_a_clone_is_not_run(self, place: Place, tmp_path: Path) -> None:
        """Configured, never from memory: what git tracks may be somebody else's."""
        flag = tmp_path / "ran"
        place.configure(f'[verify.ask]\nworkflow = ["/usr/bin/touch", "{flag}-{{id}}"]\n')
        git(place.workspace, "init", "-q")
        git(place.workspace, "add", "-f", ".truekeep/config.toml")
        git(place.workspace, "commit", "-qm", "all of it")
        found = verdicts(place, "The workflow `Xy12AbCd34EfGh56` sends invoices.", repository="")
        assert found["Xy12AbCd34EfGh56"].verdict == "unverifiable"
        assert not list(tmp_path.glob("ran*"))

    @pytest.mark.parametrize(
        "command", ['"touch"', '["touch"]', '["bin/touch", "{id}"]', '["{id}", "x"]', '[1, "{id}"]']
    )
    def test_a_command_that_could_not_be_meant_is_refused(self, place: Place, command: str) -> None:
        """A workflow ID, container ID, port number: query the live system once before acting."""
        place.configure(f"[verify.ask]\nworkflow = {command}\n")
        with pytest.raises(BadSetup, match=r"verify\.ask\.workflow"):
            _ = place.open().config
