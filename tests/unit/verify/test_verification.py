"""Truth where memory is used: ingest holds handoffs against code, recall carries verdicts, resolve weighs memories."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.support.helpers import CLAUDE, Place, a_card, a_document_handoff, a_handoff, git_repo, run_cli
from tests.support.histories import NAME, History, git
from tests.support.memories import lend_lexicon, remember, search
from truekeep.interfaces.mcp.responses import Reply
from truekeep.interfaces.mcp.schemas import TOOLS
from truekeep.interfaces.mcp.tools import MemoryTools
from truekeep.search.searcher import Hit
from truekeep.search.service import SearchResult
from truekeep.verify.resolve import Resolution

STALE = "src/old.py"


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def app(place: Place) -> Place:
    """A workspace and a repository whose last commit is of the tenth of November."""
    history = History()
    history.commit(
        "2026-01-05",
        {
            "src/api.py": "def fetch(key):\n    return key\n",
            "src/old.py": "OLD = 'the same all the time'\n",
            "src/dead.py": "DEAD = 'nobody misses it'\n",
        },
    )
    history.commit("2026-11-08", {"src/dead.py": None}, renames={"src/old.py": "src/new.py"})
    history.commit("2026-11-10", {"docs/x.md": "x\n"})
    history.write(place.repo)
    (place.repo / CLAUDE).mkdir(parents=True, exist_ok=True)
    place.configure("[verify]\nbudget_ms = 60000\n")  # a slow machine is no reason to say nothing
    lend_lexicon(place)
    return place


def note(place: Place, body: str, name: str = "note.md", **keys: str) -> Path:
    keys = {"repository": NAME, "updated": "2026-11-01", **keys}
    return remember(place, f"memory/cards/{name}", a_card(name.removesuffix(".md"), body, **keys))


def leave(
    place: Place, body: str, *, day: str = "2026-11-14", name: str = "handoff.md", title: str = "How the service works"
) -> str:
    """A handoff for a card, written on a day."""
    handoff = a_handoff(title=title, facts="- The service works", card=name, content=a_card(title, body))
    file = f"{day}-0900-{name}"
    place.leave(handoff, file)
    return file


# --- Ingest -----------------------------------------------------------------------------------------------------------


class TestIngest:
    def test_what_code_refutes_goes_to_review_with_the_verdicts(self, app: Place) -> None:
        file = leave(app, "The dead one is `src/dead.py` and always was.", day="2026-11-05")
        app.ingest()
        assert app.outcomes() == {file: "review"}
        assert app.codes() == {"refuted"}
        (finding,) = app.filed[0].findings
        assert "src/dead.py" in finding.message
        assert "2026-11-08" in finding.message
        (draft,) = app.drafts()
        assert "refuted" in draft.read_text()
        assert app.cards() == []

    def test_a_person_can_approve_it(self, app: Place) -> None:
        leave(app, "The dead one is `src/dead.py` and always was.", day="2026-11-05")
        app.ingest()
        with app.open() as workspace:
            assert workspace.review.approve(app.drafts()[0].stem).outcome == "promoted"
        assert "src/dead.py" in app.card("handoff.md")

    def test_the_policy_can_let_it_pass(self, app: Place) -> None:
        app.configure('[policy]\nrefuted = "promote"\n')
        leave(app, "The dead one is `src/dead.py` and always was.", day="2026-11-05")
        app.ingest()
        assert app.cards() == ["handoff.md"]
        assert app.codes() == {"refuted"}

    def test_the_policy_can_refuse_it(self, app: Place) -> None:
        app.configure('[policy]\nrefuted = "refuse"\n')
        file = leave(app, "The dead one is `src/dead.py` and always was.", day="2026-11-05")
        app.ingest()
        assert app.outcomes() == {file: "refused"}

    def test_it_can_be_switched_off(self, app: Place) -> None:
        app.configure("[verify]\ningest = false\n")
        leave(app, "The dead one is `src/dead.py`, the old one `src/old.py`.", day="2026-11-05")
        app.ingest()
        assert "src/dead.py" in app.card("handoff.md")
        assert STALE in app.card("handoff.md")

    def test_what_moved_since_is_repaired_on_the_way_in(self, app: Place) -> None:
        file = leave(app, "The old one is `src/old.py` and `./src/old.py:1`.", day="2026-11-05")
        app.ingest()
        assert app.outcomes() == {file: "promoted"}
        assert app.codes() == {"moved-since"}
        assert "The old one is `src/new.py` and `./src/new.py:1`." in app.card("handoff.md")
        assert STALE not in app.card("handoff.md")
        assert app.processed() == [file]
        assert STALE in (app.inbox / "processed" / file).read_text()  # the original stays as it was

    def test_it_is_filed_with_the_day_that_it_was_written(self, app: Place) -> None:
        leave(app, "The old one is `src/old.py`.", day="2026-11-05")
        app.ingest()
        assert "updated: 2026-11-05" in app.card("handoff.md")

    def test_a_handoff_that_is_newer_than_the_checkout_is_not_refuted(self, app: Place) -> None:
        text = "Never run `src/not_pulled_yet.py` while customers pay: prices come from commit 0123456789ab."
        file = leave(app, text, day="2026-11-14")
        app.ingest()
        assert app.outcomes() == {file: "promoted"}
        assert app.codes() == set()

    def test_but_an_older_one_is(self, app: Place) -> None:
        leave(app, "Customers see old prices unless `src/never_was.py` runs first.", day="2026-11-05")
        app.ingest()
        assert app.codes() == {"refuted"}

    def test_what_cannot_be_checked_is_no_finding(self, app: Place) -> None:
        leave(
            app, "The cache listens on port 5999 here, see https://example.com, `some_other_name()` and `nowhere/x.py`."
        )
        app.ingest()
        assert app.codes() == set()
        assert app.cards() == ["handoff.md"]

    def test_a_changed_body_is_no_finding(self, app: Place) -> None:
        leave(app, "The keys come from `fetch()` alone.", day="2026-11-05")
        (app.repo / "src" / "api.py").write_text("def fetch(key):\n    return key.strip()\n")
        app.ingest()
        assert app.codes() == set()

    def test_documents_are_held_too(self, app: Place) -> None:
        app.leave(a_document_handoff("### Where\nThe old one is `src/old.py`."), "2026-11-05-0900-a.md")
        app.leave(a_document_handoff("### Dead\nThe dead one is `src/dead.py`.", title="Dead"), "2026-11-05-0901-b.md")
        app.ingest()
        assert app.outcomes() == {"2026-11-05-0900-a.md": "routed", "2026-11-05-0901-b.md": "review"}
        assert "`src/new.py`" in (app.workspace / "TOOLS.md").read_text()

    def test_a_repair_makes_no_second_card(self, app: Place) -> None:
        """The same knowledge, written before and after the rename, is the same."""
        leave(app, "The old one is `src/new.py`.", day="2026-11-12")
        app.ingest()
        file = leave(app, "The old one is `src/old.py`.", day="2026-11-05")
        app.ingest()
        assert app.outcomes() == {file: "already"}
        assert len(app.cards()) == 1

    def test_lint_says_what_ingest_will_do(self, app: Place) -> None:
        text = a_handoff(facts="- The service works", content=a_card(body="The dead one is `src/dead.py`."))
        with app.open() as workspace:
            (filing,) = workspace.handoffs.lint([(text.encode(), "2026-11-05-0900-a.md", app.repo)])
        assert filing.outcome == "review"
        assert [finding.code for finding in filing.blocking] == ["refuted"]

    def test_what_is_refuted_is_said_once(self, app: Place) -> None:
        """A summary and a fact may name the same file."""
        said = ("--summary", "Counting is done in `src/dead.py`, for all.", "--fact", "`src/dead.py` counts them")
        done = run_cli("handoff", "new", "--title", "Counting", *said, "-w", str(app.workspace), cwd=app.repo)
        assert done.returncode != 0
        assert done.stderr.count("refuted") == 1

    def test_a_broken_repository_stops_nothing(self, app: Place) -> None:
        (app.repo / ".git" / "HEAD").write_text("nonsense\n")
        file = leave(app, "The dead one is `src/dead.py`.", day="2026-11-05")
        app.ingest()
        assert app.outcomes() == {file: "promoted"}

    def test_without_any_repository(self, app: Place) -> None:
        inbox = app.workspace / ".claude" / "memory-handoffs"
        handoff = a_handoff(
            facts="- The service works", card="a.md", content=a_card(body="The dead one is `src/dead.py`.")
        )
        app.leave(handoff, "2026-11-05-0900-a.md", inbox=inbox)
        app.ingest()
        assert app.cards() == ["a.md"]

    def test_a_second_run_of_the_same_process_looks_again(self, app: Place) -> None:
        with app.open() as workspace:
            leave(
                app, "`src/api.py` needs a warm cache, else customers wait.", name="a.md", day="2026-11-05", title="One"
            )
            workspace.handoffs.ingest()
            (app.repo / "src" / "fresh.py").write_text("FRESH = 1\n")
            leave(
                app, "Prices are wrong unless `src/fresh.py` runs at night.", name="b.md", day="2026-11-05", title="Two"
            )
            workspace.handoffs.ingest()
        assert app.cards() == ["a.md", "b.md"]

    def test_a_dry_run_tells_and_writes_nothing(self, app: Place) -> None:
        leave(app, "The dead one is `src/dead.py`.", day="2026-11-05")
        app.ingest(dry_run=True)
        assert app.codes() == {"refuted"}
        assert app.drafts() == []


# --- Recall -----------------------------------------------------------------------------------------------------------


def hit_of(answer: SearchResult, name: str) -> Hit:
    return next(hit for hit in answer.hits if hit.path.endswith(name))


def words(hit: Hit) -> dict[str, str]:
    return {verdict.claim.text: verdict.verdict for verdict in hit.verdicts}


class TestSearch:
    def test_hits_carry_the_verdicts_of_what_they_name(self, app: Place) -> None:
        note(app, "The walrus is fetched by `fetch()` in `src/api.py`, see `src/old.py` and `src/dead.py`.")
        hit = hit_of(search(app, "walrus"), "note.md")
        assert words(hit) == {"fetch": "confirmed", "src/api.py": "confirmed", STALE: "moved", "src/dead.py": "gone"}
        assert hit.checked_at
        assert not hit.unchecked

    def test_only_of_the_lines_that_it_shows(self, app: Place) -> None:
        filler = "\n\n".join(f"Paragraph {number} speaks of nothing in particular, at length." for number in range(120))
        note(app, f"The walrus is in `src/api.py`.\n\n{filler}\n\nThe ostrich is in `src/dead.py`.\n")
        for animal, told in (("walrus", {"src/api.py": "confirmed"}), ("ostrich", {"src/dead.py": "gone"})):
            (hit,) = [hit for hit in search(app, animal).hits if animal in hit.text]
            assert words(hit) == told

    def test_refuted_hits_rank_below(self, app: Place) -> None:
        note(app, "The walrus, the walrus, the walrus is kept in `src/dead.py`.", "a-walrus.md", updated="2026-11-12")
        note(app, "A walrus is kept in `src/api.py`.", "b.md", updated="2025-01-01")
        app.configure("[verify]\nrecall = false\n")
        assert [hit.path[-11:] for hit in search(app, "walrus walrus kept").hits] == ["a-walrus.md", "/cards/b.md"]
        app.configure("[verify]\nbudget_ms = 60000\n")
        assert [hit.path[-11:] for hit in search(app, "walrus walrus kept").hits] == ["/cards/b.md", "a-walrus.md"]

    def test_refuted_hits_still_rank_above_what_is_about_something_else(self, app: Place) -> None:
        note(app, "The walrus is fed by `feed_walrus()` from `src/dead.py`, twice a day.", "walrus.md")
        note(app, "Keys are kept in the vault of the office, not in files.", "keys.md")
        note(app, "Deploys start from the release branch, every day at two.", "deploy.md")
        hits = search(app, "feed_walrus").hits
        assert len(hits) == 3
        assert hits[0].path == "memory/cards/walrus.md", [(hit.path, hit.score) for hit in hits]

    def test_verified_leaves_them_out(self, app: Place) -> None:
        note(app, "The walrus is kept in `src/dead.py`.", "a.md")
        note(app, "The walrus is kept in `src/api.py`.", "b.md")
        note(app, "The walrus is kept in the zoo.", "c.md")
        assert sorted(hit.path[-4:] for hit in search(app, "walrus", verified=True).hits) == ["b.md", "c.md"]

    def test_verified_fills_up_what_was_asked_for(self, app: Place) -> None:
        for number in range(4):
            note(app, f"The walrus number {number} is kept in `src/dead.py`, walrus walrus.", f"dead-{number}.md")
        for number in range(4):
            note(app, f"A walrus number {number} lives in `src/api.py` now.", f"live-{number}.md")
        hits = search(app, "walrus", limit=4, verified=True).hits
        assert sorted(hit.path.rpartition("/")[2] for hit in hits) == [f"live-{number}.md" for number in range(4)]

    def test_without_time_it_says_so(self, app: Place) -> None:
        app.configure("[verify]\nbudget_ms = 0\n")
        note(app, "The walrus is kept in `src/dead.py`.")
        hit = hit_of(search(app, "walrus"), "note.md")
        assert (hit.verdicts, hit.checked_at, hit.unchecked) == ((), "", "not checked yet")

    def test_with_next_to_no_time_it_is_checked_or_says_so(self, app: Place) -> None:
        app.configure("[verify]\nbudget_ms = 1\n")
        note(app, "The walrus is kept in `src/dead.py` by `fetch()`.")
        hit = hit_of(search(app, "walrus"), "note.md")
        assert (hit.unchecked, bool(hit.verdicts)) in (("not checked yet", False), ("", True))
        assert "out-of-time" not in {verdict.reason for verdict in hit.verdicts}

    def test_but_what_a_check_found_is_shown_without_any_time(self, app: Place) -> None:
        app.configure("[verify]\nbudget_ms = 0\n")
        note(app, "The walrus is kept in `src/dead.py`.")
        with app.open() as workspace:
            workspace.verification.verify(system=False)
        assert words(hit_of(search(app, "walrus"), "note.md")) == {"src/dead.py": "gone"}

    @pytest.mark.parametrize("change", ["memory", "evidence", "commit"])
    def test_and_not_when_something_changed_since(self, app: Place, change: str) -> None:
        app.configure("[verify]\nbudget_ms = 0\n")
        note(app, "The walrus is kept in `src/api.py`.")
        with app.open() as workspace:
            workspace.verification.verify(system=False)
        if change == "memory":
            note(app, "The walrus is kept in `src/api.py`, and nowhere else.")
        else:
            (app.repo / "src" / "api.py").unlink()
        if change == "commit":
            git(app.repo, "commit", "-q", "-a", "-m", "away", day="2026-11-14")
        assert hit_of(search(app, "walrus"), "note.md").unchecked == "not checked yet"

    def test_memory_that_names_nothing_is_not_waiting_for_a_check(self, app: Place) -> None:
        note(app, "The walrus is kept in the zoo.")
        with app.open() as workspace:
            workspace.verification.verify(system=False)
        assert hit_of(search(app, "walrus"), "note.md").unchecked == ""

    def test_memory_without_a_checkout_is_simply_unchecked(self, app: Place) -> None:
        note(app, "The walrus is kept in `src/dead.py`.", repository="github.com/me/other")
        hit = hit_of(search(app, "walrus"), "note.md")
        assert (hit.verdicts, hit.checked_at) == ((), "")

    def test_it_can_be_switched_off(self, app: Place) -> None:
        app.configure("[verify]\nrecall = false\n")
        note(app, "The walrus is kept in `src/dead.py`.")
        hit = hit_of(search(app, "walrus"), "note.md")
        assert (hit.verdicts, hit.checked_at, hit.unchecked) == ((), "", "")

    def test_the_command_shows_and_leaves_out(self, app: Place) -> None:
        note(app, "The walrus is kept in `src/dead.py`.", "a.md")
        note(app, "The walrus is kept in `src/api.py`.", "b.md")
        done = run_cli("search", "walrus", "-w", str(app.workspace))
        assert "gone src/dead.py: deleted in " in done.stdout
        assert done.stdout.index("b.md") < done.stdout.index("a.md")
        data = json.loads(run_cli("search", "walrus", "--verified", "--json", "-w", str(app.workspace)).stdout)
        assert [hit["path"] for hit in data["hits"]] == ["memory/cards/b.md"]
        assert [verdict["verdict"] for verdict in data["hits"][0]["verdicts"]] == ["confirmed"]


class TestGet:
    def test_an_excerpt_carries_them_too(self, app: Place) -> None:
        note(app, "One is in `src/api.py`.\n\nTwo is in `src/dead.py`.")
        with app.open() as workspace:
            whole = workspace.search.get("memory/cards/note.md")
            part = workspace.search.get("memory/cards/note.md", first=1, lines=9)
        assert [verdict.verdict for verdict in whole.verdicts] == ["confirmed", "gone"]
        assert [verdict.verdict for verdict in part.verdicts] == ["confirmed"]
        assert whole.checked_at

    def test_without_time(self, app: Place) -> None:
        app.configure("[verify]\nbudget_ms = 0\n")
        note(app, "One is in `src/api.py`.")
        with app.open() as workspace:
            assert workspace.search.get("memory/cards/note.md").unchecked == "not checked yet"

    def test_the_command(self, app: Place) -> None:
        note(app, "Two is in `src/dead.py`.")
        done = run_cli("get", "memory/cards/note.md", "-w", str(app.workspace))
        assert "src/dead.py: deleted in " in done.stderr
        data = json.loads(run_cli("get", "memory/cards/note.md", "--json", "-w", str(app.workspace)).stdout)
        assert [verdict["verdict"] for verdict in data["verdicts"]] == ["gone"]


def call(place: Place, name: str, *, root: Path | None = None, **arguments: Any) -> Reply:
    """One call of a tool; whatever it gives fits its schema."""
    with place.open() as workspace:
        reply = MemoryTools(workspace, root=root).call(TOOLS[name], arguments)
    Draft202012Validator(TOOLS[name].shown().output_schema).validate(reply.data)
    return reply


class TestTools:
    def test_search_carries_verdicts(self, app: Place) -> None:
        note(app, "The walrus is kept in `src/dead.py`.")
        reply = call(app, "memory_search", query="walrus")
        (hit,) = reply.data["results"]
        assert [verdict["verdict"] for verdict in hit["verdicts"]] == ["gone"]
        assert hit["checkedAt"]
        assert "gone: src/dead.py: deleted in " in reply.text

    def test_get_carries_verdicts(self, app: Place) -> None:
        note(app, "The walrus is kept in `src/dead.py`.")
        reply = call(app, "memory_get", path="memory/cards/note.md")
        assert [verdict["verdict"] for verdict in reply.data["verdicts"]] == ["gone"]
        assert "gone: src/dead.py: deleted in " in reply.text

    def test_not_checked_yet(self, app: Place) -> None:
        app.configure("[verify]\nbudget_ms = 0\n")
        note(app, "The walrus is kept in `src/dead.py`.")
        reply = call(app, "memory_search", query="walrus")
        assert reply.data["results"][0]["unchecked"] == "not checked yet"
        assert "Not checked yet" in reply.text

    def test_verify_any_text(self, app: Place) -> None:
        text = "Edit `src/api.py` and `src/old.py`, then `src/none.py`."
        reply = call(app, "memory_verify", text=text, root=app.repo)
        told = {verdict["text"]: (verdict["verdict"], verdict["place"]) for verdict in reply.data["verdicts"]}
        assert told["src/api.py"] == ("confirmed", "src/api.py")
        assert told[STALE] == ("moved", "src/new.py")
        assert told["src/none.py"][0] == "gone"
        assert reply.data["summary"] == {"confirmed": 1, "moved": 1, "changed": 0, "gone": 1, "unverifiable": 0}
        assert reply.data["head"] == git(app.repo, "rev-parse", "HEAD")
        assert "1 gone" in reply.text

    @pytest.mark.parametrize("name", ["github.com/me/app", "me/app", "app"])
    def test_verify_in_a_repository_by_its_name(self, app: Place, name: str) -> None:
        reply = call(app, "memory_verify", text="Edit `src/api.py`.", repo=name)
        assert reply.data["summary"]["confirmed"] == 1
        assert reply.data["checkout"] == "app"

    def test_verify_in_no_repository(self, app: Place) -> None:
        reply = call(app, "memory_verify", text="Edit `src/api.py`.", repo="me/other")
        assert reply.is_error
        assert "truekeep repos" in reply.text
        assert call(app, "memory_verify", text="Edit `src/api.py`.").data["summary"]["unverifiable"] == 1

    def test_verify_writes_nothing(self, app: Place) -> None:
        before = sorted(str(path) for path in app.workspace.rglob("*.md"))
        call(app, "memory_verify", text="Run `rm -rf src/` and `make never`, see `src/dead.py`.", root=app.repo)
        assert sorted(str(path) for path in app.workspace.rglob("*.md")) == before
        assert (app.repo / "src" / "api.py").exists()


# --- Resolve ----------------------------------------------------------------------------------------------------------


def resolve(place: Place, topic: str) -> Resolution:
    with place.open() as workspace:
        return workspace.verification.resolve(topic)


def order(resolution: Resolution) -> list[tuple[str, str]]:
    return [(item.citation.rpartition("/")[2].partition("#")[0], item.trust) for item in resolution.statements]


class TestResolve:
    def test_code_then_recent_then_older_then_refuted(self, app: Place) -> None:
        note(app, "The walrus cache is kept in `src/dead.py`.", "refuted.md", updated="2026-11-14")
        note(app, "The walrus cache is kept in the zoo.", "recent.md", updated="2026-11-13")
        note(app, "The walrus cache is kept in the sea.", "older.md", updated="2025-06-01")
        note(app, "The walrus cache is kept in `src/api.py`.", "code.md", updated="2025-01-01")
        found = resolve(app, "walrus cache")
        assert order(found) == [
            ("code.md", "code agrees"),
            ("recent.md", "memory of the last days"),
            ("older.md", "older memory"),
            ("refuted.md", "refuted by code"),
        ]
        assert found.winner.startswith("memory/cards/code.md#")
        assert found.why == "what it names is there in current code"

    def test_git_comes_after_code(self, app: Place) -> None:
        head = git(app.repo, "rev-parse", "HEAD")[:10]
        note(app, f"The walrus cache came with commit {head} then.", "git.md")
        note(app, "The walrus cache is kept in the zoo.", "recent.md", updated="2026-11-13")
        found = resolve(app, "walrus cache")
        assert order(found)[0] == ("git.md", "git agrees")
        assert found.why == "git has the commit it speaks of"

    def test_the_younger_one_wins_when_nothing_can_be_checked(self, app: Place) -> None:
        note(app, "The walrus cache is kept in the sea.", "older.md", updated="2026-01-01")
        note(app, "The walrus cache is kept in the zoo.", "younger.md", updated="2026-06-01")
        found = resolve(app, "walrus cache")
        assert found.winner.startswith("memory/cards/younger.md#")
        assert "youngest" in found.why
        assert "check before you act" in found.why

    def test_a_day_in_the_future_gains_nothing(self, app: Place) -> None:
        note(app, "The walrus cache is kept in the sea.", "future.md", updated="2030-01-01")
        note(app, "The walrus cache is kept in the zoo.", "today.md", updated="2026-06-01")
        found = resolve(app, "walrus cache")
        assert found.winner.startswith("memory/cards/today.md#")
        assert order(found)[-1][0] == "future.md"

    def test_nothing_stands_when_code_refutes_all(self, app: Place) -> None:
        note(app, "The walrus cache is kept in `src/dead.py`.", "a.md")
        note(app, "The walrus cache is kept in `src/old.py`.", "b.md")
        found = resolve(app, "walrus cache")
        assert found.winner == ""
        assert "look at the code" in found.why
        assert len(found.statements) == 2

    def test_no_memory_is_better_than_a_wrong_one(self, app: Place) -> None:
        found = resolve(app, "walrus cache")
        assert (found.winner, found.statements) == ("", ())
        assert found.why == "memory does not speak of it"

    def test_one_source_counts_once(self, app: Place) -> None:
        note(app, "The walrus cache is kept in the sea.", "a.md", updated="2026-06-01")
        remember(app, "TOOLS.md", "# Tools\n\nThe walrus cache is kept in the sea.\n")
        filler = "\n\n".join(
            f"Paragraph {number}: the walrus cache, at length, again and again." for number in range(80)
        )
        note(app, f"The walrus cache is kept in the zoo.\n\n{filler}\n", "long.md", updated="2026-05-01")
        found = resolve(app, "walrus cache")
        sources = [item.citation.partition("#")[0] for item in found.statements]
        assert len(sources) == len(set(sources))

    def test_what_code_itself_says_about_the_topic(self, app: Place) -> None:
        note(app, "The helper fetch is in `src/api.py`.", "a.md")
        found = resolve(app, "fetch src/old.py")
        said = {verdict.claim.name: verdict.verdict for verdict in found.code}
        assert said["fetch"] == "confirmed"
        assert said[STALE] == "moved"

    def test_the_command(self, app: Place) -> None:
        note(app, "The walrus cache is kept in `src/dead.py`.", "a.md")
        note(app, "The walrus cache is kept in `src/api.py`.", "b.md")
        done = run_cli("resolve", "walrus", "cache", "-w", str(app.workspace))
        assert done.returncode == 0, done.stderr
        assert "believe memory/cards/b.md#" in done.stdout
        assert "gone: src/dead.py" in done.stdout
        data = json.loads(run_cli("resolve", "walrus", "cache", "--json", "-w", str(app.workspace)).stdout)
        assert data["winner"].startswith("memory/cards/b.md#")
        assert [item["trust"] for item in data["statements"]] == ["code agrees", "refuted by code"]
        assert data["statements"][1]["claims"][0]["verdict"] == "gone"


# --- Repositories -----------------------------------------------------------------------------------------------------


class TestRepos:
    def test_checkouts_with_their_cards(self, app: Place) -> None:
        note(app, "One.", "a.md")
        note(app, "Two.", "b.md", repository="me/app")
        note(app, "Three.", "c.md", repository="github.com/me/nowhere")
        with app.open() as workspace:
            ((checkout, cards),), missing = workspace.repositories.count_cards()
            assert (checkout.root, checkout.name, checkout.is_linked, cards) == (str(app.repo), NAME, False, 2)
            assert missing == {"github.com/me/nowhere": 1}

    def test_worktrees_clones_and_what_is_no_repository(self, app: Place) -> None:
        git(app.repo, "worktree", "add", "-q", "-b", "side", str(app.base / "repos" / "side"))
        git(app.base, "clone", "-q", str(app.repo), str(app.base / "repos" / "copy"))
        git(app.base / "repos" / "copy", "remote", "set-url", "origin", "git@github.com:me/app.git")
        (app.base / "repos" / "empty").mkdir()
        with app.open() as workspace:
            found = {
                os.path.basename(item.root): (item.name, item.is_linked) for item in workspace.repositories.checkouts()
            }
        assert found == {"app": (NAME, False), "copy": (NAME, False), "side": (NAME, True)}

    def test_checkouts_of_their_own(self, app: Place, tmp_path: Path) -> None:
        other = History()
        other.commit("2026-01-05", {"a.txt": "a\n"})
        other.write(tmp_path / "elsewhere", remote="https://github.com/me/other.git")
        app.configure(f'[verify]\ncheckouts = ["{tmp_path}/elsewhere"]\n')
        with app.open() as workspace:
            assert [item.name for item in workspace.repositories.checkouts()] == ["github.com/me/other", NAME]

    def test_a_repository_that_git_will_not_read(self, app: Place) -> None:
        (app.repo / ".git" / "HEAD").write_text("nonsense\n")
        with app.open() as workspace:
            (checkout,) = workspace.repositories.checkouts()
        assert checkout.problem

    def test_what_came_through_the_workspaces_own_inbox_is_about_no_repository(self, app: Place) -> None:
        content = (
            "### Where things are\n\nNotes are in `notes/today.md`.\n\nAda likes tea.\n\nShe works from nine to five.\n"
        )
        app.leave(a_document_handoff(content, "USER.md"), inbox=app.workspace / CLAUDE)
        app.ingest()
        assert "notes/today.md" in (app.workspace / "USER.md").read_text()
        note(app, "See `notes/today.md`.", "a.md", repository=app.workspace.name)
        for path in ("USER.md", "a.md"):
            done = run_cli("verify", path, "--json", "-w", str(app.workspace))
            assert "the memory names no repository" in done.stdout
            assert "no checkout of" not in done.stdout
        assert "no checkout of" not in run_cli("repos", "-w", str(app.workspace)).stdout

    def test_the_command(self, app: Place) -> None:
        note(app, "One.", "a.md")
        note(app, "Three.", "c.md", repository="github.com/me/nowhere")
        done = run_cli("repos", "-w", str(app.workspace))
        assert NAME in done.stdout
        assert str(app.repo) in done.stdout
        assert "no checkout of github.com/me/nowhere here (1 card)" in done.stdout
        data = json.loads(run_cli("repos", "--json", "-w", str(app.workspace)).stdout)
        assert data["unknown"] == {"github.com/me/nowhere": 1}
        assert [(item["names"][0], item["cards"]) for item in data["checkouts"]] == [(NAME, 1)]

    def test_the_command_without_any(self, app: Place) -> None:
        (app.workspace / ".truekeep" / "config.toml").write_text("repositories = []\n")
        done = run_cli("repos", "-w", str(app.workspace))
        assert done.returncode == 0
        assert "`truekeep config set repositories '~/repos/*'`" in done.stdout


@pytest.mark.parametrize(
    ("roots", "told"), [(["/a"], "a is a shallow clone: "), (["/a", "/b"], "a, b are shallow clones: ")]
)
def test_clones_without_history_are_counted(roots: list[str], told: str) -> None:
    from truekeep.interfaces.cli.verify import _render_missing

    checked: Any = [SimpleNamespace(missing="shallow", roots=roots, verdicts=(), claims=())]
    assert told in next(_render_missing(checked))


def test_a_folder_is_its_markdown_files(place: Place, own_home: Path) -> None:
    repo = git_repo(place.base / "lib")
    (repo / "docs" / "more").mkdir(parents=True)
    (repo / "docs" / ".hidden").mkdir()
    for name in ("a.md", "more/b.md", ".hidden/c.md", "d.txt"):
        (repo / "docs" / name).write_text("See `src/none.py`.\n")
    (repo / "src").mkdir()
    (repo / "src" / "none.py").write_text("none = 1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "One")
    (repo / "src" / "none.py").rename(repo / "src" / "some.py")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Two")
    for given in ((), ("-w", str(place.workspace))):
        done = run_cli("verify", "docs/", "--json", *given, cwd=repo)
        assert done.returncode == 0, done.stderr
        paths = [item["path"] for item in json.loads(done.stdout)["files"]]
        assert paths == ["docs/a.md", "docs/more/b.md"]
        done = run_cli("verify", "docs", *given, cwd=repo)
        assert "2 moved" in done.stdout
        assert "verify --fix" not in done.stdout, "it writes nothing outside of memory"
    done = run_cli("verify", "docs", "--fix", "-w", str(place.workspace), cwd=repo)
    assert "docs/a.md: not a file of this memory, so nothing was written there" in done.stdout
    assert "edited since" not in done.stdout
    done = run_cli("verify", "src", cwd=repo)
    assert (done.returncode, "src has no Markdown file" in done.stderr) == (3, True)
    cards = place.workspace / "memory" / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    (cards / "x.md").write_text(a_card("X", "See `src/none.py`."))
    done = run_cli("verify", "memory/cards", "--json", "-w", str(place.workspace), cwd=repo)
    assert [item["path"] for item in json.loads(done.stdout)["files"]] == ["memory/cards/x.md"]
