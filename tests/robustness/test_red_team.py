"""What a red team got past the judge once: each stays out, and good handoffs beside it are filed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_card, a_document_handoff, a_handoff, git_repo, run_cli, tree
from tests.support.histories import git
from truekeep.core import git as repo
from truekeep.core.git import Git
from truekeep.core.repository import GitFailed, find_irregular_file
from truekeep.handoffs.sync.mirror import place_name
from truekeep.handoffs.sync.protocol import FolderSource, read_offers
from truekeep.text.markdown import find_open_comment

BAD, GOOD = "2026-11-14-0900-bad.md", "2026-11-14-0901-good.md"
NAMES = (
    *("CLAUDE", "Claude.local", "AGENTS", "agents.override", "GEMINI", "copilot-instructions", "SOUL", "IDENTITY"),
    *("USER", "TOOLS", "BOOTSTRAP", "HEARTBEAT", "MEMORY", "memory", "README", "TEMPLATE", "SKILL", "CONVENTIONS"),
)


def leave_with_a_good_one(place: Place, bad: str, name: str = BAD) -> None:
    place.leave(bad, name)
    place.leave(a_document_handoff(), GOOD)


class TestInstructionFiles:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_handoff_makes_no_card_that_agents_read_as_instructions(self, place: Place, name: str) -> None:
        leave_with_a_good_one(place, a_handoff(card=f"{name}.md"))
        place.ingest()
        assert place.outcomes() == {BAD: "review", GOOD: "routed"}
        assert "instruction-file" in place.codes(BAD)
        assert place.cards() == []

    @pytest.mark.parametrize(
        "document",
        [
            *("memory/projects/AGENTS.md", "memory/projects/claude.md", "rules/AGENTS.md", "rules/Claude.md"),
            *("rules/CONVENTIONS.md", "rules/SKILL.md", "memory/projects/tools.md"),
        ],
    )
    def test_a_handoff_makes_no_document_that_agents_read_as_instructions(self, place: Place, document: str) -> None:
        before = tree(place.workspace)
        place.leave(a_document_handoff(document=document), BAD)
        place.ingest()
        assert place.outcomes() == {BAD: "review"}
        assert "instruction-file" in place.codes(BAD)
        drafts = {str(draft.relative_to(place.workspace)) for draft in place.drafts()}
        assert tree(place.workspace).keys() - before.keys() == drafts

    @pytest.mark.parametrize("document", ["TOOLS.md", "USER.md", ".learnings/LEARNINGS.md"])
    def test_documents_of_the_root_are_routed_as_before(self, place: Place, document: str) -> None:
        place.leave(a_document_handoff(document=document))
        assert place.ingest().count("routed") == 1

    def test_an_update_of_such_a_card_waits_for_a_person(self, place: Place) -> None:
        folder = place.workspace / "memory" / "cards"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "conventions.md").write_text(a_card(body="Tabs."))
        text = a_handoff(action="update-card", card="conventions.md", content=a_card(body="Tabs.\n\nNo spaces."))
        place.leave(text, BAD)
        place.ingest()
        assert place.codes() >= {"instruction-file"}
        with place.open() as workspace:
            (draft,) = workspace.review.drafts()
            workspace.review.approve(draft.id)
        assert "No spaces." in place.card("conventions.md")

    def test_a_project_of_such_a_name_has_a_file_of_another(self, place: Place) -> None:
        repo = place.base / "repos" / "agents"
        (repo / ".git").mkdir(parents=True)
        (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        done = run_cli(
            *("checkpoint", "--workspace", str(place.workspace), "--project", "The importer works."), cwd=repo
        )
        assert done.returncode == 0, done.stderr
        names = {path.name for path in (place.workspace / "memory" / "projects").iterdir()}
        assert names == {"project-agents.md"}


class TestOpenComments:
    @pytest.mark.parametrize(
        "text",
        [
            *("- A note. <!-- hidden from here", "## --> VISIBLE-BREAKOUT <!--", "a <!-- b --> c <!-- d", "<!--"),
            *("`a` <!-- `", "One ` tick.\n\n<!-- and ` another", "``` <!-- ` ```` x", "    x <!-- y"),
        ],
    )
    def test_one_is_found_anywhere_in_a_line(self, text: str) -> None:
        assert find_open_comment(text) is not None

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                "a --> b",
                "a \\<!-- b",
                "<!-- a -->",
                "a <!-- b\n\nc --> d",
                "`<!--` begins one",
                "``a ` <!--``",
                "<!-->",
            ),
            *("```html\n<!-- shown\n```", "- ~~~\n  <!-- in a list\n  ~~~\n"),
        ],
    )
    def test_one_that_is_closed_or_shown_as_code_is_none(self, text: str) -> None:
        assert find_open_comment(text) is None

    def test_a_document_gets_none(self, place: Place) -> None:
        leave_with_a_good_one(place, a_document_handoff("- A note. <!-- hidden from here"))
        place.ingest()
        assert place.outcomes() == {BAD: "review", GOOD: "routed"}
        assert place.codes(BAD) == {"open-fence"}

    @pytest.mark.parametrize(
        "card", [a_card(body="## --> VISIBLE-BREAKOUT <!--\n\nText."), a_card(topic="Proxy <!-- x", body="Text. -->")]
    )
    def test_a_card_and_its_line_in_the_index_get_none(self, place: Place, card: str) -> None:
        leave_with_a_good_one(place, a_handoff(content=card))
        place.ingest()
        assert place.outcomes() == {BAD: "review", GOOD: "routed"}
        assert "open-fence" in place.codes(BAD)

    def test_a_log_shows_it_as_text(self, place: Place) -> None:
        place.leave(a_document_handoff("Worked. <!-- hidden", "memory/2026-11-14.md"))
        assert place.ingest().count("review") == 1
        done = run_cli("note", "log", "--workspace", str(place.workspace), "Worked. <!-- hidden", cwd=place.base)
        assert done.returncode == 0, done.stderr
        logs = [path.read_text() for path in (place.workspace / "memory").rglob("20*.md")]
        assert any("<!-- hidden" in text for text in logs)
        assert all(find_open_comment(text) is None for text in logs)


def test_a_handoff_cannot_take_the_id_of_another_card(place: Place) -> None:
    folder = place.workspace / "memory" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.md").write_text(a_card(topic="Mine", body="Mine alone.", id="0b1c"))
    place.leave(a_handoff(content=a_card(id="0b1c")), BAD)
    updated = a_card(topic="Mine", body="Mine alone.\n\nAnd more.", ID="ffff")
    place.leave(a_handoff(card="mine.md", action="update-card", content=updated), GOOD)
    place.ingest()
    assert place.outcomes() == {BAD: "promoted", GOOD: "promoted"}
    assert "owned-keys" in place.codes(BAD)
    assert "0b1c" not in place.card()
    assert "id: 0b1c\n" in place.card("mine.md")
    assert "ffff" not in place.card("mine.md")


@pytest.mark.parametrize("has_ledger", [True, False])
def test_a_review_folder_that_is_a_link_keeps_only_what_needs_it(place: Place, has_ledger: bool) -> None:
    outside = place.base / "outside"
    outside.mkdir()
    review = place.workspace / "memory" / "handoff-inbox"
    review.parent.mkdir(exist_ok=True)
    if review.exists():
        review.rmdir()
    review.symlink_to(outside)
    if not has_ledger:
        (place.workspace / ".truekeep" / "ledger.sqlite").unlink()
    place.leave("# no handoff\n", BAD)
    place.leave(a_document_handoff(), GOOD)
    place.leave(a_handoff(), "2026-11-14-0902-card.md")
    place.ingest()
    assert place.outcomes() == {BAD: "failed", GOOD: "routed", "2026-11-14-0902-card.md": "promoted"}
    (failed,) = [item for item in place.filed if item.outcome == "failed"]
    assert failed.why.startswith("memory/handoff-inbox is a symlink")
    assert place.waiting() == [BAD]
    assert list(outside.iterdir()) == []
    done = run_cli("ingest", "--workspace", str(place.workspace), cwd=place.base)
    assert "memory/handoff-inbox is a symlink; put a regular file there" in done.stdout + done.stderr
    assert "handoff-inbox" in run_cli("doctor", "--workspace", str(place.workspace), cwd=place.base).stdout


class TestOtherFilesInAnInbox:
    @pytest.mark.parametrize("ending", ["markdown", "MARKDOWN", "MD", "Md"])
    def test_markdown_is_a_handoff_whatever_its_ending(self, place: Place, ending: str) -> None:
        name = f"2026-11-14-0900-proxy.{ending}"
        place.leave(a_handoff(), name)
        assert place.ingest().count("promoted") == 1
        assert "odd-name" not in place.codes()
        assert place.processed() == [name]

    def test_what_is_no_handoff_is_told(self, place: Place) -> None:
        for name in ("note.txt", "2026-11-14-0900-half.md.tmp", ".gitignore", "README.markdown", "draft.md~"):
            place.leave("# text\n", name)
        os.utime(place.inbox / "note.txt", (1, 1))
        os.utime(place.inbox / "2026-11-14-0900-half.md.tmp", (1, 1))
        (warning, other) = sorted(place.ingest().warnings)
        assert "2026-11-14-0900-half.md.tmp is not a handoff" in warning
        assert "note.txt is not a handoff: its name does not end in .md" in other
        place.leave(a_handoff())
        assert len(place.ingest().warnings) == 2
        for command in (["handoff", "list"], ["ingest"], ["status"], ["doctor"]):
            done = run_cli(*command, "--workspace", str(place.workspace), cwd=place.base)
            told = [
                line
                for line in (done.stdout + done.stderr).splitlines()
                if "not a handoff" in line or "not handoffs" in line
            ]
            assert 1 <= len(told) <= 2, (command, done.stdout, done.stderr)


class TestFifosInGit:
    """Git and truekeep would wait for whoever writes into a FIFO, and nobody does."""

    @pytest.mark.parametrize("name", ["config", "HEAD", "index", "packed-refs", "commondir", "refs/heads/main"])
    def test_its_repository_is_refused_and_the_others_are_filed(self, place: Place, name: str) -> None:
        pipe = place.repo / ".git" / name
        pipe.parent.mkdir(parents=True, exist_ok=True)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        other = place.base / "repos" / "other"
        (other / ".git").mkdir(parents=True)
        place.leave(a_handoff(), BAD)
        place.leave(a_document_handoff(), GOOD, inbox=other / ".claude" / "memory-handoffs")
        for command in ("ingest", "status", "repos", "verify", "wake"):
            done = run_cli(command, "--workspace", str(place.workspace), cwd=place.repo)
            assert done.returncode != 70, done.stderr
            if command in ("ingest", "repos"):
                assert f"{pipe} is not a regular file" in " ".join((done.stdout + done.stderr).split())
        assert (place.inbox / BAD).exists()
        assert not (other / ".claude" / "memory-handoffs" / GOOD).exists()

        pipe.unlink()
        if name == "HEAD":
            pipe.write_text("ref: refs/heads/main\n")
        place.ingest()
        assert place.outcomes() == {BAD: "promoted"}

    def test_nothing_is_promised_for_it(self, place: Place) -> None:
        given = ("--title", "A port", "--fact", "Staging answers on port 8443", "-w", str(place.workspace))
        os.mkfifo(pipe := place.repo / ".git" / "config")
        done = run_cli("handoff", "new", *given, cwd=place.repo)
        assert (done.returncode, "ingest will" in done.stdout) == (0, False)
        assert f"ingest will leave it in the inbox: {pipe} is not a regular file" in done.stderr
        assert len(list(place.inbox.glob("*.md"))) == 1
        done = run_cli("handoff", "lint", "-w", str(place.workspace), cwd=place.repo)
        assert done.returncode == 1
        assert "not-taken" in done.stdout
        assert "would stay where it is" in done.stdout
        pipe.unlink()
        assert "ingest will promote it" in run_cli("handoff", "lint", "-w", str(place.workspace), cwd=place.repo).stdout

    def test_a_worktree_of_such_a_repository_is_refused_too(self, place: Place) -> None:
        tree_ = place.base / "repos" / "tree"
        tree_.mkdir()
        own = place.repo / ".git" / "worktrees" / "tree"
        own.mkdir(parents=True)
        (tree_ / ".git").write_text(f"gitdir: {own}\n")
        (own / "commondir").write_text("../..\n")
        assert find_irregular_file(str(tree_)) == ""
        os.mkfifo(place.repo / ".git" / "config")
        assert find_irregular_file(str(tree_)) == str(place.repo / ".git" / "config")

    def test_git_that_hung_is_not_asked_again_at_once(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        programs = place.base / "programs"
        programs.mkdir()
        (programs / "git").write_text(f"#!/bin/sh\necho >> {place.base}/calls\nexec sleep 600\n")
        (programs / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        for _ in range(3):
            with pytest.raises(GitFailed, match="took longer than 1 s"):
                Git(str(place.repo), timeout=1).run("rev-parse", "HEAD")
        assert (place.base / "calls").read_text() == "\n"

    def test_a_repository_has_one_budget_for_all_calls(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        other = place.base / "repos" / "other"
        for root in (place.repo, git_repo(other)):
            git(root, "init", "-q")
            git(root, "commit", "-q", "--allow-empty", "-m", "One")
        monkeypatch.setattr("truekeep.core.git._time_waited", {})
        head = Git(str(place.repo)).run("rev-parse", "HEAD").decode().strip()
        (waited,) = repo._time_waited.values()
        assert waited[1] > 0
        asked = Git(str(place.repo))
        assert [kind for _, _, kind in asked.infos([head])] == ["commit"]
        monkeypatch.setattr("truekeep.core.git.BUDGET_SECONDS", waited[1] / 2)
        for ask in (lambda: Git(str(place.repo)).run("rev-parse", "HEAD"), lambda: list(asked.infos([head]))):
            with pytest.raises(GitFailed, match="not checked: git took longer than"):
                ask()
        (place.workspace / "memory" / "cards").mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr("truekeep.core.git.BUDGET_SECONDS", 900.0)
        monkeypatch.setattr("truekeep.core.git._time_waited", {str(place.repo): (time.monotonic(), 900.0)})
        for name in ("app", "other"):
            (place.workspace / "memory" / "cards" / f"{name}.md").write_text(
                a_card(name, "See `src/none.py`.", repository=name if name == "app" else "github.com/me/app")
            )
        with place.open() as workspace:
            problems = {item.path: item.problems for item in workspace.verification.verify(system=False)}
        assert "took longer than 15 minutes" in problems["memory/cards/app.md"][0]
        assert problems["memory/cards/other.md"] == ()
        monkeypatch.setattr("truekeep.core.git._time_waited", {str(place.repo): (time.monotonic() - 4000, 900.0)})
        assert Git(str(place.repo)).run("rev-parse", "HEAD").decode().strip() == head, (
            "a server is not cut off for good"
        )

    def test_an_archive_that_is_one_is_refused(self, place: Place) -> None:
        pipe = place.base / "memory.alf"
        os.mkfifo(pipe)
        done = run_cli("alf", "validate", str(pipe), cwd=place.base)
        assert done.returncode == 3
        assert f"{pipe} is not a regular file" in done.stderr


class TestRepositoriesOfOneName:
    URL = "https://git.example/acme/shop.git"

    def update_from(self, place: Place, other: Path) -> str:
        """What becomes of an update from another checkout, of a card that came from the first one."""
        git_repo(place.repo, remote=self.URL)
        git(place.repo, "commit", "-q", "--allow-empty", "-m", "The first one")
        place.leave(a_handoff())
        assert place.ingest().count("promoted") == 1
        if other.name == "impostor":
            git_repo(other, remote=self.URL)
            git(other, "commit", "-q", "--allow-empty", "-m", "Another one")
        elif other.name == "clone":
            git(place.repo, "clone", "-q", f"file://{place.repo}", str(other))
            git(other, "remote", "set-url", "origin", self.URL)
            git(other, "commit", "-q", "--allow-empty", "-m", "More")
        else:
            git(place.repo, "worktree", "add", "-q", str(other))
        content = a_card(body="Staging answers on port 8443 only, they say.")
        inbox = other / ".claude" / "memory-handoffs"
        place.leave(a_handoff(action="update-card", content=content), BAD, inbox=inbox)
        place.ingest()
        return place.outcomes()[BAD]

    def test_an_update_from_one_of_other_history_waits_and_says_which_two(self, place: Place) -> None:
        other = place.base / "repos" / "impostor"
        assert self.update_from(place, other) == "review"
        assert place.codes(BAD) == {"other-repository"}
        (draft,) = place.drafts()
        assert str(other) in draft.read_text()
        assert str(place.repo) in draft.read_text()

    def test_lint_reports_what_ingest_will(self, place: Place) -> None:
        other = place.base / "repos" / "impostor"
        assert self.update_from(place, other) == "review"
        content = a_card(body="Staging answers on port 9443 only, they say.")
        left = place.leave(
            a_handoff(action="update-card", content=content), inbox=other / ".claude" / "memory-handoffs"
        )
        done = run_cli("handoff", "lint", "-w", str(place.workspace), str(left), cwd=other)
        assert "other-repository" in done.stdout
        assert done.returncode == 1

    def test_verify_holds_cards_against_the_first_of_them(self, place: Place) -> None:
        other = place.base / "repos" / "aa-impostor"  # it is found first
        git_repo(place.repo, remote=self.URL)
        (place.repo / "real.py").write_text("def real():\n    pass\n")
        git(place.repo, "add", "real.py")
        git(place.repo, "commit", "-q", "-m", "The first one")
        place.leave(a_handoff(content=a_card(body="See `real.py` and `evil.py`.")))
        assert place.ingest().count("promoted") == 1
        git_repo(other, remote=self.URL)
        (other / "evil.py").write_text("def evil():\n    pass\n")
        git(other, "add", "evil.py")
        git(other, "commit", "-q", "-m", "Another one")
        asked: list[int] = []
        for _ in range(2):
            done = run_cli("verify", "--json", "-w", str(place.workspace), cwd=place.base)
            (checked,) = json.loads(done.stdout)["files"]
            assert [item["text"] for item in checked["claims"] if item["verdict"] == "confirmed"] == ["real.py"]
            (notice,) = json.loads(done.stdout)["notices"]
            assert str(other) in notice
            assert notice.endswith(f"{place.repo} is used")
        with place.open() as workspace, pytest.MonkeyPatch.context() as patch:
            patch.setattr("truekeep.verify.same_name_checkouts.shares_history", lambda *_: asked.append(1))
            workspace.verification.verify(system=False)
        assert asked == [], "what git answered is kept"
        assert "shares no commit" in run_cli("repos", "-w", str(place.workspace), cwd=place.base).stdout

    def test_status_and_doctor_say_which_of_them_is_used(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        other = place.base / "repos" / "aa-impostor"  # it is found first
        git_repo(place.repo, remote=self.URL)
        git(place.repo, "commit", "-q", "--allow-empty", "-m", "The first one")
        place.leave(a_handoff())
        assert place.ingest().count("promoted") == 1
        git(place.repo, "clone", "-q", f"file://{place.repo}", str(place.base / "repos" / "clone"))
        git(place.base / "repos" / "clone", "remote", "set-url", "origin", self.URL)
        for command in ("status", "doctor"):
            assert "shares no commit" not in run_cli(command, "-w", str(place.workspace), cwd=place.base).stdout
        git_repo(other, remote=self.URL)
        git(other, "commit", "-q", "--allow-empty", "-m", "Another one")
        facts = place.workspace / ".truekeep" / "facts.sqlite"
        facts.unlink(missing_ok=True)
        for command in ("status", "doctor"):
            done = run_cli(command, "-w", str(place.workspace), cwd=place.base)
            (told,) = [line for line in done.stdout.splitlines() if "shares no commit" in line]
            assert str(other) in told
            assert told.endswith(f"{place.repo} is used")
            assert "change remote.origin.url of the wrong one" in done.stdout
        assert not facts.exists(), "nothing is written"
        run_cli("verify", "-w", str(place.workspace), cwd=place.base)
        asked: list[int] = []
        monkeypatch.setattr("truekeep.verify.same_name_checkouts.shares_history", lambda *_: asked.append(1))
        with place.open() as workspace:
            assert len(workspace.repositories.same_names()) == 1
        assert asked == [], "what git answered to verify is kept"

    def test_verify_knows_clones_and_another_remote_of_other_history(self, place: Place) -> None:
        git_repo(place.repo, remote=self.URL)
        git(place.repo, "commit", "-q", "--allow-empty", "-m", "The first one")
        git(place.repo, "clone", "-q", f"file://{place.repo}", str(place.base / "repos" / "clone"))
        git(place.base / "repos" / "clone", "remote", "set-url", "origin", self.URL)
        other = git_repo(place.base / "repos" / "other", remote="https://git.example/acme/other.git")
        git(other, "commit", "-q", "--allow-empty", "-m", "Another one")
        git(other, "remote", "add", "template", self.URL)
        with place.open() as workspace:
            found = {Path(item.root).name: item for item in workspace.repositories.checkouts()}
            assert not any(item.problem for item in found.values())
            assert found["other"].names == ("git.example/acme/other", "other")
            assert found["clone"].names == ("git.example/acme/shop", "clone")

    @pytest.mark.parametrize("name", ["clone", "tree"])
    def test_clones_and_worktrees_update_as_before(self, place: Place, name: str) -> None:
        assert self.update_from(place, place.base / "repos" / name) == "promoted"

    def test_another_machine_cannot_call_its_place_like_a_folder_of_the_host(self, place: Place) -> None:
        offered = {"machine": "laptop", "repository": "app", "root": "/home/ada/app", "files": {}}
        folder = place.base / "exchange" / place_name("laptop", "/home/ada/app")
        folder.mkdir(parents=True)
        (folder / "origin.json").write_text(json.dumps(offered))
        (told,) = read_offers(FolderSource(folder.parent))
        assert told.repository == "laptop:app"
