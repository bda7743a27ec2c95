"""Reconciliation: every rule names its winner and reason, fixing settles it once, and what nobody can tell is asked."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import Place, a_card, a_handoff, run_cli, tree
from tests.support.upkeep_place import REPOSITORY, point_at_all, put, upkeep, with_instructions, write_card
from truekeep.maintenance.reconcile import Disagreement
from truekeep.workspace.reconciliation import ReconcileReport, Reconciliation
from truekeep.workspace.sessions import AgentSessions

RECENT, OLD = "2026-11-12", "2026-03-01"


def found(place: Place, *rules: str) -> list[Disagreement]:
    result = upkeep(place).reconcile()
    return [item for item in result.found if not rules or item.rule in rules]


def fixed(place: Place) -> ReconcileReport:
    """Fix, and see that a second time there is nothing to do."""
    result = upkeep(place).reconcile(fix=True)
    before = tree(place.workspace)
    again = upkeep(place).reconcile(fix=True)
    assert again.done == ()
    assert [item for item in again.found if item.action == "fix"] == []
    assert tree(place.workspace) == before
    return result


def undo_all(place: Place) -> None:
    with place.open() as workspace:
        for entry, _ in list(workspace.history.entries()):
            if entry.undoes is None and entry.undone_by is None and entry.paths:
                workspace.history.undo(entry.id)


@pytest.mark.slow
def test_logs_that_disagree_where_no_card_says_anything(place: Place) -> None:
    put(place, "memory/2026-11-10.md", "- The gateway listens on port 5204.\n")
    put(place, "memory/2026-11-12.md", "- The gateway listens on port 5300.\n")
    assert found(place) == []
    done = run_cli("schedule", "run", "--workspace", str(place.workspace))
    assert (done.returncode, done.stdout.splitlines()[-1].split()[0]) == (0, "NO_UPDATES")


def test_what_two_dated_documents_say_is_history(place: Place) -> None:
    put(place, "memory/audits/audit-2026-11-02.md", "The gateway listens on port 5204.\n")
    put(place, "memory/audits/20261109/audit.md", "The gateway listens on port 5300.\n")
    assert found(place) == []
    put(place, "memory/services.md", "The gateway listens on port 5204.\n")
    put(place, "memory/network.md", "The gateway listens on port 5300.\n")
    (item,) = found(place, "two-values")
    assert {item.place, item.other} == {"memory/services.md:1", "memory/network.md:1"}


def test_two_things_that_share_a_word_do_not_disagree(place: Place) -> None:
    put(place, "memory/diary-tool.md", "Script: `tools/diary/today.py`\n")
    put(place, "memory/radio.md", "Script location: `tools/radio/play.py`\n")
    put(place, "memory/one.md", "---\nrank_limit: 4\n---\n\nText.\n")
    put(place, "memory/two.md", "---\nrank_limit: 9\n---\n\nText.\n")
    assert found(place) == []


@pytest.mark.slow
def test_a_scheduled_run_that_changed_memory_says_so(place: Place) -> None:
    put(place, "memory/cards/lost.md", a_card("Lost", "It is in no index."))
    ends = []
    for _ in range(2):
        done = run_cli("schedule", "run", "--json", "--workspace", str(place.workspace))
        told = json.loads(done.stdout)
        ends.append((told["ending"], int(told["counts"]["reconciled"]) > 0))
    assert ends == [("CHANGED", True), ("NO_UPDATES", False)]
    told = json.loads(run_cli("schedule", "status", "--json", "--workspace", str(place.workspace)).stdout)
    assert told["last"]["ending"] == "NO_UPDATES"


# The index.


def test_a_card_without_a_line_gets_one(place: Place) -> None:
    write_card(place, "one", "Text.", topic="First topic")
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("index-missing", "card", "fix")
    fixed(place)
    assert "- [First topic](memory/cards/one.md)" in place.index()


def test_a_line_without_a_card_goes_unless_it_says_more(place: Place) -> None:
    put(
        place,
        "MEMORY.md",
        "# Memory\n\n## Cards\n\n- [Gone](memory/cards/gone.md)\n- Ask Eve, not [this](memory/cards/lost.md)\n",
    )
    pure, more = found(place)
    assert (pure.rule, pure.place, pure.action) == ("index-dangling", "MEMORY.md:5", "fix")
    assert (more.place, more.action) == ("MEMORY.md:6", "person")
    fixed(place)
    assert "gone.md" not in place.index()
    assert "Ask Eve, not [this](memory/cards/lost.md)" in place.index()


def test_a_doubled_line_is_there_once(place: Place) -> None:
    write_card(place, "one", "Text.", topic="First")
    line = "- [First](memory/cards/one.md)\n"
    put(place, "MEMORY.md", f"# Memory\n\n## Cards\n\n{line}\nWords of a person.\n\n{line}")
    (item,) = found(place)
    assert item.rule == "index-doubled"
    fixed(place)
    assert place.index().count("one.md") == 1
    assert "Words of a person." in place.index()


def test_a_drifted_line_of_ours_says_the_topic_and_a_persons_stays(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    card = place.workspace / "memory" / "cards" / "staging-proxy.md"
    put(place, "memory/cards/staging-proxy.md", card.read_text().replace("topic: ", "topic: New name of ", 1))
    write_card(place, "two", "Text.", topic="Quarterly numbers")
    put(place, "MEMORY.md", place.index() + "- [Zebra facts](memory/cards/two.md)\n")
    drifted = found(place, "index-drifted")
    assert [item.action for item in drifted] == ["fix", "person"]
    fixed(place)
    assert "[New name of " in place.index()
    assert "- [Zebra facts](memory/cards/two.md)" in place.index()


@pytest.mark.parametrize("new", ["description: Now on port 9000\n", ""])
def test_a_description_that_changed_by_hand_is_brought_up_to_date(place: Place, new: str) -> None:
    content = a_card(topic="Staging").replace("topic:", "description: On port 8443\ntopic:", 1)
    place.leave(a_handoff(content=content))
    place.ingest()
    assert "- [Staging — On port 8443](memory/cards/staging-proxy.md)" in place.index()
    assert found(place, "index-drifted") == []
    card = place.card("staging-proxy.md")
    put(place, "memory/cards/staging-proxy.md", card.replace("description: On port 8443\n", new))
    (item,) = found(place, "index-drifted")
    assert item.action == "fix"
    fixed(place)
    label = "Staging — Now on port 9000" if new else "Staging"
    assert f"- [{label}](memory/cards/staging-proxy.md)" in place.index()
    assert found(place, "index-drifted") == []


def test_a_missing_line_has_the_description_and_the_repository_as_ingest_writes_it(place: Place) -> None:
    for name, owner in (("one", "a"), ("two", "b")):
        write_card(place, name, f"Text of {name}.", topic="Release", repository=f"git.example/{owner}/app")
    put(place, "memory/cards/one.md", place.card("one.md").replace("topic:", "description: By hand\ntopic:", 1))
    fixed(place)
    assert "- [Release (git.example/a/app) — By hand](memory/cards/one.md)" in place.index()
    assert "- [Release (git.example/b/app)](memory/cards/two.md)" in place.index()


def test_crlf_and_the_rest_of_the_index_stay(place: Place) -> None:
    write_card(place, "one", "Text.", topic="First")
    put(place, "MEMORY.md", b"# Memory\r\n\r\nMine.\r\n\r\n## Cards\r\n\r\n- [Gone](memory/cards/gone.md)\r\n")
    fixed(place)
    data = (place.workspace / "MEMORY.md").read_bytes()
    assert data == b"# Memory\r\n\r\nMine.\r\n\r\n## Cards\r\n\r\n- [First](memory/cards/one.md)\r\n"


# Values.


def two_ports(place: Place, one_day: str, other_day: str, **more: str) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.\nIt restarts slowly.", day=one_day, **more)
    write_card(place, "deploy", "- Deploys are on Tuesdays.\n- Gateway port: 5300", day=other_day, **more)
    point_at_all(place)


def test_two_old_cards_are_asked_about(place: Place) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("two-values", "", "ask")
    assert {item.place, item.other} == {"memory/cards/gateway.md:9", "memory/cards/deploy.md:10"}
    before = {name: place.card(name) for name in place.cards()}
    fixed(place)
    assert {name: place.card(name) for name in place.cards()} == before  # nothing is guessed
    (draft,) = place.drafts()
    with place.open() as workspace:
        workspace.review.approve(draft.stem)
    assert "port 5300." in place.card("gateway.md")
    assert "It restarts slowly." in place.card("gateway.md")


def test_a_card_without_a_topic_does_not_get_the_question_for_one(place: Place) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    put(place, "memory/cards/gateway.md", place.card("gateway.md").replace("topic: gateway\n", ""))
    fixed(place)
    (draft,) = place.drafts()
    with place.open() as workspace:
        workspace.review.approve(draft.stem)
    assert "topic: gateway\n" in place.card("gateway.md")
    assert "created: 2026-02-01" in place.card("gateway.md")
    assert found(place) == []


def test_a_person_who_leaves_it_so_is_not_asked_again(place: Place) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    fixed(place)
    (draft,) = place.drafts()
    with place.open() as workspace:
        workspace.review.reject(draft.stem)
    (item,) = found(place)
    assert item.action == "none"
    fixed(place)
    assert place.drafts() == []


def test_memory_of_the_last_days_wins_over_older_memory_on_a_persons_word(place: Place) -> None:
    two_ports(place, OLD, RECENT)
    (item,) = found(place)
    assert (item.place, item.winner, item.action) == ("memory/cards/gateway.md:9", "the younger memory", "ask")
    fixed(place)
    assert "The gateway listens on port 5204." in place.card("gateway.md")  # a day alone writes nothing
    (draft,) = place.drafts()
    with place.open() as workspace:
        workspace.review.approve(draft.stem)
    assert "The gateway listens on port 5300." in place.card("gateway.md")


def test_what_a_person_confirmed_is_of_that_day(place: Place) -> None:
    two_ports(place, OLD, RECENT)
    with place.open() as workspace:
        workspace.cards.confirm("gateway.md", actor="ada")
    (item,) = found(place)
    assert (item.winner, item.action) == ("", "ask")


@pytest.mark.slow
def test_a_repaired_line_does_not_make_the_rest_of_a_card_young(place: Place) -> None:
    with_instructions(place, "# Rules\n\nThe gateway listens on port 5300.\n")
    body = "The gateway listens on port 5204.\nThe mailer uses Redis 6.2."
    write_card(place, "gateway", body, day=OLD, repository=REPOSITORY, more="confirmed: 2026-03-02\n")
    write_card(place, "mailer", "The mailer uses Redis 7.0.", day="2026-06-01", repository=REPOSITORY)
    point_at_all(place)
    fixed(place)
    assert "port 5300" in place.card("gateway.md")
    assert "confirmed" not in place.card("gateway.md")  # that was another text
    mailer = [item for item in found(place) if "redis" in item.says]
    assert [item.winner for item in mailer] == [""]
    assert "Redis 6.2" in place.card("gateway.md")


def test_a_value_that_stands_twice_is_a_persons_work(place: Place) -> None:
    with_instructions(place, "# Rules\n\nThe proxy listens on port 8081.\n")
    write_card(place, "proxy", "The proxy listens on port 8080.\nClients use 8080, too.", repository=REPOSITORY)
    point_at_all(place)
    (item,) = found(place)
    assert item.action == "person"
    fixed(place)
    assert place.card("proxy.md").count("8080") == 2


def test_of_two_facts_the_last_counts(place: Place) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD)
    point_at_all(place)
    facts_db(
        place,
        [("gateway", "port", "5204", "2026-01-01T00:00:00Z"), ("gateway", "port", "5300", "2026-05-01T00:00:00Z")],
    )
    assert [item.action for item in found(place)] == ["ask"]


def test_two_recent_cards_are_asked_about(place: Place) -> None:
    two_ports(place, RECENT, RECENT)
    assert [item.action for item in found(place)] == ["ask"]


def test_cards_of_different_repositories_speak_of_different_things(place: Place) -> None:
    write_card(place, "one", "The gateway listens on port 5204.", repository="github.com/me/a")
    write_card(place, "two", "The gateway listens on port 5300.", repository="github.com/me/b")
    point_at_all(place)
    assert found(place) == []


def test_a_day_alone_does_not_decide_between_a_repository_and_none(place: Place) -> None:
    write_card(place, "one", "The gateway listens on port 5204.", repository="github.com/me/a", day=OLD)
    write_card(place, "two", "The gateway listens on port 5300.", day=RECENT)
    point_at_all(place)
    assert [item.action for item in found(place)] == ["ask"]


def test_who_lists_several_values_contradicts_nobody(place: Place) -> None:
    write_card(place, "one", "- Gateway port: 5204\n- Gateway port: 5300")
    write_card(place, "two", "The gateway listens on port 5300.")
    point_at_all(place)
    assert found(place) == []


def test_the_files_of_two_projects_tell_of_two_things(place: Place) -> None:
    put(place, "memory/projects/shop.md", "# Shop\n\nThe gateway listens on port 5204.\n")
    put(place, "memory/projects/depot.md", "# Depot\n\nThe gateway listens on port 5300.\n")
    assert found(place) == []
    put(place, "memory/gateways.md", "# Gateways\n\nThe gateway listens on port 5400.\n")
    assert {item.rule for item in found(place)} == {"two-values"}


def test_instructions_win_over_memory(place: Place) -> None:
    with_instructions(place, "# Rules\n\nThe admin console listens on port 7000.\n")
    write_card(place, "admin", "The admin console listens on port 7001.", repository=REPOSITORY, day=RECENT)
    point_at_all(place)
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("memory-instructions", "instructions", "fix")
    fixed(place)
    assert "port 7000." in place.card("admin.md")


def test_a_log_that_is_younger_is_told_and_changes_nothing(place: Place) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD)
    point_at_all(place)
    put(place, "memory/2026-01-01.md", "- The gateway listens on port 1111\n")
    put(place, "memory/2026-11-10.md", "- The gateway listens on port 5300\n")
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("card-log", "card", "none")
    assert item.place == "memory/2026-11-10.md:1"
    before = tree(place.workspace)
    fixed(place)
    assert tree(place.workspace) == before


def facts_db(place: Place, rows: list[tuple[str, str, str, str]]) -> Path:
    path = place.workspace / "memory" / "facts.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE facts (entity TEXT, key TEXT, value TEXT, updated_at TEXT)")
    db.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", rows)
    db.commit()
    db.close()
    return path


def test_a_fact_against_a_card_is_asked_and_the_database_is_never_written(place: Place) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD)
    point_at_all(place)
    path = facts_db(place, [("gateway", "port", "5300", "2026-05-01T00:00:00Z")])
    data = path.read_bytes()
    (item,) = found(place)
    assert (item.rule, item.action) == ("two-values", "ask")
    fixed(place)
    assert path.read_bytes() == data
    assert len(place.drafts()) == 1


def test_a_recent_card_and_an_older_fact_are_a_persons_work(place: Place) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.", day=RECENT)
    point_at_all(place)
    facts_db(place, [("gateway", "port", "5300", "2026-05-01T00:00:00Z")])
    (item,) = found(place)
    assert (item.place.partition(":")[0], item.action) == ("memory/facts.db", "person")


@pytest.mark.parametrize("shape", ["other", "text", "folder"])
def test_facts_of_another_shape_are_named_and_the_rest_goes_on(place: Place, shape: str) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    path = place.workspace / "memory" / "facts.db"
    if shape == "other":
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE things (colour TEXT)")
        db.commit()
        db.close()
    elif shape == "text":
        path.write_text("no database")
    else:
        path.mkdir()
    result = upkeep(place).reconcile()
    assert len(result.problems) == 1
    assert "facts.db" in result.problems[0]
    assert [item.rule for item in result.found] == ["two-values"]


# Handoffs, transcripts, code.


def test_a_waiting_handoff_that_disagrees_is_told_before_it_is_filed(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-13-0900-first.md")
    place.ingest()
    place.leave(a_handoff(content=a_card(body="Staging answers on 9443 now.")), "2026-11-14-0900-second.md")
    (item,) = found(place)
    assert (item.rule, item.action, item.winner) == ("handoff-card", "person", "")
    place.waiting()
    assert item.place.endswith("2026-11-14-0900-second.md")


def test_what_was_said_in_a_session_does_not_overrule_a_card(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD)
    point_at_all(place)
    monkeypatch.setattr(AgentSessions, "transcripts", lambda _: _Archive())
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("card-transcript", "card", "none")
    assert item.place == "transcripts/claude/abc.jsonl:3"


class _Archive:
    """An archive with one session."""

    def sessions(self, **_: object) -> list[object]:
        from types import SimpleNamespace

        return [
            SimpleNamespace(
                shown="transcripts/claude/abc.jsonl",
                version=1,
                turns=2,
                last_at="2026-11-10T10:00:00Z",
                repository="",
                cwd="",
                harness="claude",
            )
        ]

    def own_turns(self, _: object) -> list[object]:
        from types import SimpleNamespace

        return [SimpleNamespace(text="The gateway listens on port 5300 now.", line=3, at="2026-11-10T10:00:00Z")]


@pytest.mark.slow
def test_code_wins_over_memory(place: Place) -> None:
    from tests.support.helpers import git_repo

    repo = git_repo(place.base / "repos" / "own")
    (repo / "settings.py").write_text("LIMIT = 3\n")
    os.system(f"cd {repo} && git add . && git -c user.name=a -c user.email=a@b commit -qm one")
    write_card(place, "settings", "The limits are in `settings.py`.", repository=REPOSITORY, day=OLD)
    point_at_all(place)
    assert found(place) == []
    os.system(f"cd {repo} && git mv settings.py limits.py && git -c user.name=a -c user.email=a@b commit -qm two")
    (item,) = found(place)
    assert (item.rule, item.winner, item.action) == ("memory-code", "code", "fix")
    fixed(place)
    assert "`limits.py`" in place.card("settings.md")


# Edges.


def test_an_index_that_is_a_link_is_named_and_the_rest_goes_on(place: Place, tmp_path: Path) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    outside = tmp_path / "outside.md"
    outside.write_text("# Mine\n")
    (place.workspace / "MEMORY.md").unlink()
    (place.workspace / "MEMORY.md").symlink_to(outside)
    result = upkeep(place).reconcile(fix=True)
    assert outside.read_text() == "# Mine\n"
    assert any("MEMORY.md" in problem for problem in result.problems)
    assert "two-values" in [item.rule for item in result.found]


def test_a_card_edited_between_looking_and_writing_is_left_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with_instructions(place, "# Rules\n\nThe gateway listens on port 5300.\n")
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD, repository=REPOSITORY)
    point_at_all(place)
    inner = Reconciliation._fix

    def edit_first(*given: Any) -> list[str]:
        text = "A person wrote:\n\nthe gateway listens on port 5204."
        write_card(place, "gateway", text, day=OLD, repository=REPOSITORY)
        return inner(*given)

    monkeypatch.setattr(Reconciliation, "_fix", edit_first)
    result = upkeep(place).reconcile(fix=True)
    assert "port 5204." in place.card("gateway.md")
    assert any("edited since" in problem for problem in result.problems)


@pytest.mark.slow
def test_the_command_has_json_and_an_exit_code(place: Place) -> None:
    two_ports(place, "2026-02-01", "2026-05-01")
    ran = run_cli("reconcile", "--json", "--exit-code", "--workspace", str(place.workspace))
    assert ran.returncode == 1, ran.stderr
    told = json.loads(ran.stdout)
    assert told["schema"].startswith("truekeep.reconcile/")
    assert told["disagreements"][0]["rule"] == "two-values"
    assert run_cli("reconcile", "--fix", "--exit-code", "--workspace", str(place.workspace)).returncode == 0


def test_what_is_said_more_exactly_is_no_other_value(place: Place) -> None:
    write_card(place, "one", "The gateway is at version 3.11.", day=OLD)
    write_card(place, "two", "The gateway is at version 3.11.4.", day=OLD)
    write_card(place, "three", "The config of the gateway is in `/etc/gateway`.", day=OLD)
    write_card(place, "four", "The config of the gateway is in `/etc/gateway/main.toml`.", day=OLD)
    assert found(place, "two-values") == []


def test_a_switch_is_only_turned_where_it_still_stands(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person wrote something else in that place while truekeep looked: it is left alone."""
    repo = with_instructions(place, "`fast_path` is on.\n")
    assert repo.is_dir()
    path = write_card(place, "one", "`fast_path` is off.", day=OLD, repository=REPOSITORY)
    point_at_all(place)
    whole = Reconciliation._fix

    def edit_first(*given: Any) -> list[str]:
        path.write_text(path.read_text().replace("is off.", "is odd, and that was my word."))
        return whole(*given)

    monkeypatch.setattr(Reconciliation, "_fix", edit_first)
    result = upkeep(place).reconcile(fix=True)
    assert "is odd, and that was my word." in path.read_text()
    assert any("edited since" in problem for problem in result.problems)


def test_a_repair_that_a_person_undid_is_not_done_again_at_night(place: Place) -> None:
    with_instructions(place, "The gateway listens on port 5300.\n")
    path = write_card(place, "one", "The gateway listens on port 5204.", day=OLD, repository=REPOSITORY)
    point_at_all(place)
    upkeep(place).reconcile(fix=True, by_hand=False)
    assert "5300" in path.read_text()
    undo_all(place)
    assert upkeep(place).reconcile(fix=True, by_hand=False).done == ()
    assert "5204" in path.read_text()
    assert upkeep(place).reconcile(fix=True).done != ()  # a person who asks for it gets it
    assert "5300" in path.read_text()
