"""Whether memory is healthy: five questions with their targets, what else needs a person, all on one screen."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import CLAUDE, NOW, Place, a_card, a_handoff, git_repo, run_cli, tree
from tests.support.histories import History
from truekeep.interfaces.cli.status import bars, render
from truekeep.interfaces.cli.terminal import for_terminal
from truekeep.maintenance.survey.service import CardFacts
from truekeep.verify.cache import FactsCache
from truekeep.verify.results import read_seals
from truekeep.workspace.check import OK, PROBLEM, WARNING, CheckResult
from truekeep.workspace.health import QUESTIONS, HealthReport
from truekeep.workspace.memory_checks import AGES, NOT_CHECKED_YET, SPLIT_INDEX, WEEKS, ages, growth

ROOT = Path(__file__).parents[3]
TODAY = NOW.date()


def day(ago: int) -> str:
    return (TODAY - timedelta(days=ago)).isoformat()


def put(place: Place, name: str, topic: str = "", *, created: str = "", updated: str = "", body: str = "A.") -> Path:
    """A card as a person would write it."""
    path = place.workspace / "memory" / "cards" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    days = "".join(f"{key}: {value}\n" for key, value in (("created", created), ("updated", updated)) if value)
    path.write_text(f"---\ntopic: {topic or name}\ncategory: x\ntags: []\n{days}---\n\n{body}\n")
    os.utime(path, (time.time() - 60, time.time() - 60))
    return path


def see(place: Place, *, now: datetime = NOW) -> HealthReport:
    with place.open(now=now) as workspace:
        return workspace.health.check(now=now)


def told(place: Place, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = run_cli("status", "--json", *arguments, TRUEKEEP_WORKSPACE=str(place.workspace))
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(place: Place) -> str:
    done = run_cli("status", TRUEKEEP_WORKSPACE=str(place.workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


# --- The five questions ---------------------------------------------------------------------------------------------


def facts(created: str, updated: str = "", confirmed: str = "") -> CardFacts:
    return CardFacts("memory/cards/x.md", "x", "x", created, updated, confirmed, "", 1)


DAYS = st.one_of(st.just(""), st.dates(date(2019, 1, 1), date(2027, 12, 31)).map(date.isoformat), st.just("2026-02-30"))


@pytest.mark.slow
@given(st.lists(st.builds(facts, DAYS, DAYS, DAYS), max_size=40))
def test_every_card_is_counted_once(cards: list[CardFacts]) -> None:
    since = TODAY - timedelta(days=WEEKS * 7 - 1)
    recent = [card for card in cards if since.isoformat() <= card.created <= TODAY.isoformat()]
    assert sum(growth(cards, TODAY)) == len([card for card in recent if card.created != "2026-02-30"])
    assert sum(count for _, count in ages(cards, TODAY)) == len(cards)


def test_weeks_and_ages_have_their_bounds() -> None:
    made = [facts(day(ago)) for ago in (0, 6, 7, 83, 84, -1)]
    assert growth(made, TODAY) == (1, *[0] * (WEEKS - 3), 1, 2)
    assert dict(ages(made, TODAY)) == {
        "1 week": 3, "1 month": 1, "3 months": 2, "6 months": 0, "1 year": 0, "older": 0, "unknown": 0,
    }  # fmt: skip
    for (name, most), (after, _) in pairwise(AGES):
        assert dict(ages([facts(day(most - 1))], TODAY))[name] == 1
        assert dict(ages([facts(day(most))], TODAY))[after] == 1


def test_cards_and_their_growth(place: Place) -> None:
    for number, ago in enumerate((0, 3, 10, 29, 40)):
        put(place, f"c{number}.md", created=day(ago))
    reading = see(place).get("cards")
    assert (reading.severity, reading.said) == (OK, "5; 2 new this week, 4 this month")
    assert reading.figures == {"cards": 5, "week": 2, "month": 4, "weekly_before": 0.3}


def test_a_flood_is_noticed_and_a_beginning_is_none(place: Place) -> None:
    for number in range(25):
        put(place, f"c{number}.md", created=day(number % 5))
    assert see(place).get("cards").severity == OK, "everything is new on the first day"
    put(place, "old.md", created=day(60))
    reading = see(place).get("cards")
    assert (reading.severity, "25 in a week" in reading.hint) == (WARNING, True)


@pytest.mark.parametrize(("ago", "severity"), [(90, "ok"), (91, WARNING), (180, WARNING), (181, PROBLEM)])
def test_the_oldest_card_against_the_budget(place: Place, ago: int, severity: str) -> None:
    put(place, "old.md", created=day(400), updated=day(ago))
    put(place, "young.md", created=day(1))
    reading = see(place).get("untouched")
    assert (reading.severity, reading.figures["oldest"]) == (severity, "memory/cards/old.md")
    assert (reading.figures["days"], reading.figures["past"]) == (ago, int(ago > 90))
    assert reading.target == "none past 90 days"
    assert bool(reading.hint) == (severity != "ok")


@pytest.mark.slow
def test_status_counts_the_cards_that_decay_lists(place: Place) -> None:
    put(place, "old.md", created=day(100))
    put(place, "older.md", created=day(170))
    put(place, "young.md", created=day(1))
    put(place, "never.md")
    put(place, "german.md", created="26.01.2025")
    put(place, "to-come.md", created=day(-30))
    reading = see(place).get("untouched")
    with place.open() as workspace:
        stale = workspace.maintenance.stale_cards()
    assert (reading.figures["past"], reading.figures["undated"]) == (2, 3)
    assert len(stale) == 5
    assert reading.said == "2 past 90 days, 3 undated, least recently updated: older.md, 170 days ago"
    assert "`truekeep tidy decay` lists these 5" in reading.hint
    assert "; 3 of them undated" in run_cli("tidy", "decay", "-w", str(place.workspace)).stdout


def test_a_card_of_no_day_is_to_look_at_as_decay_says(place: Place) -> None:
    put(place, "never.md")
    reading = see(place).get("untouched")
    assert (reading.severity, reading.said, reading.figures["days"]) == (WARNING, "1 undated", None)


def test_what_was_said_to_hold_is_touched(place: Place) -> None:
    path = put(place, "old.md", created=day(400))
    path.write_text(path.read_text().replace("category:", f"confirmed: {day(3)}\ncategory:"))
    assert see(place).get("untouched").severity == OK


@pytest.mark.parametrize(("lines", "severity"), [(15, "ok"), (20, "ok"), (21, PROBLEM)])
def test_the_index_against_its_budget(place: Place, lines: int, severity: str) -> None:
    place.configure("[limits]\nindex_lines = 20\nindex_bytes = 4000\n")
    text = "# Memory\n" + "- a line\n" * (lines - 1)
    (place.workspace / "MEMORY.md").write_text(text)
    reading = see(place).get("index")
    assert reading.severity == severity
    assert (reading.figures["lines"], reading.figures["bytes"]) == (lines, len(text))
    assert reading.figures["tokens"] == -(-len(text) // 4)
    assert (reading.figures["limit_lines"], reading.figures["limit_tokens"]) == (20, 1000)


def long_index(place: Place, names: list[str], *more: str) -> None:
    place.configure("[limits]\nindex_lines = 5\nindex_bytes = 4000\n")
    lines = [*(f"- [{name}](memory/cards/{name})" for name in names), *more]
    (place.workspace / "MEMORY.md").write_text("".join(f"{line}\n" for line in ("# Memory", "", *lines)))


def test_a_long_index_says_what_shortens_it(place: Place) -> None:
    names = [f"{letter}.md" for letter in "abcde"]
    for name in names:
        put(place, name, created=day(1))
    long_index(place, names)
    assert "`truekeep card consolidate`" in see(place).get("index").hint
    long_index(place, names, "We like tea.", "And coffee.")
    assert see(place).get("index").hint == SPLIT_INDEX
    put(place, "a.md", "b.md", created=day(1))
    assert "merge 1: `truekeep tidy duplicates`" in see(place).get("index").hint
    long_index(place, names)
    put(place, "c.md", created=day(100))
    put(place, "d.md")
    assert "drop of 2: `truekeep tidy decay`" in see(place).get("index").hint


def test_the_index_may_be_too_large_in_bytes_alone(place: Place) -> None:
    (place.workspace / "MEMORY.md").write_text("- " + "é" * 13_000 + "\n")
    assert see(place).get("index").severity == PROBLEM


@pytest.mark.parametrize(("waiting", "severity"), [(0, "ok"), (3, "ok"), (4, WARNING), (8, PROBLEM)])
def test_handoffs_that_wait(place: Place, waiting: int, severity: str) -> None:
    place.configure("[limits]\nwaiting_handoffs = 4\n")
    for number in range(waiting):
        place.leave(a_handoff(), f"2026-11-14-09{number:02}-x.md")
    reading = see(place).get("handoffs")
    assert (reading.severity, reading.figures) == (severity, {"waiting": waiting, "limit": 4})


def test_nine_handoffs_are_under_double_digits(place: Place) -> None:
    for number in range(9):
        place.leave(a_handoff(), f"2026-11-14-09{number:02}-x.md")
    assert see(place).get("handoffs").severity == OK
    place.leave(a_handoff(), "2026-11-14-0930-x.md")
    assert see(place).get("handoffs").severity == WARNING


def test_topics_that_two_cards_have(place: Place) -> None:
    put(place, "a.md", "Staging proxy")
    put(place, "b.md", "staging  Proxy")
    put(place, "c.md", "Another")
    reading = see(place).get("duplicates")
    assert (reading.severity, reading.figures["topics"]) == (WARNING, 1)
    assert reading.figures["first"][0]["paths"] == ["memory/cards/a.md", "memory/cards/b.md"]
    (place.workspace / "memory" / "cards" / "b.md").unlink()
    assert see(place).get("duplicates").severity == OK


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repositories", "doubled"),
    [
        (["github.com/me/a", "github.com/me/b"], []),
        (["github.com/me/a", "github.com/me/b", "github.com/me/a"], [0, 2]),
        (["github.com/me/a", ""], [0, 1]),
        (["", ""], [0, 1]),
    ],
)
def test_a_topic_counts_as_doubled_where_duplicates_looks_at_it(
    place: Place, repositories: list[str], doubled: list[int]
) -> None:
    for number, repository in enumerate(repositories):
        card = put(place, f"card-{number}.md", "Staging proxy", body=f"Fact {number} of it.")
        if repository:
            card.write_text(card.read_text().replace("tags: []", f"tags: []\nrepository: {repository}"))
            os.utime(card, (time.time() - 60, time.time() - 60))
    reading = see(place).get("duplicates")
    paths = [item["paths"] for item in reading.figures["first"]]
    assert paths == ([[f"memory/cards/card-{number}.md" for number in doubled]] if doubled else [])
    assert (reading.severity == OK) == (not doubled)
    told = json.loads(run_cli("tidy", "duplicates", "--json", "-w", str(place.workspace)).stdout)
    assert bool(told["duplicates"]) == bool(doubled)


# --- What else ------------------------------------------------------------------------------------------------------


def test_where_nothing_can_be_checked_nobody_has_to(place: Place) -> None:
    assert see(place).get("claims").severity == OK
    put(place, "tea.md", created=day(1), body="We like tea in the afternoon.")
    assert see(place).get("claims").severity == OK


def test_a_memory_of_no_repository_is_to_be_checked_once(place: Place) -> None:
    put(place, "a.md", created=day(1), body="`begin` is in `src/main.py`.")
    assert see(place).get("claims").severity == WARNING
    with place.open() as workspace:
        workspace.verification.verify()
    assert see(place).get("claims").severity == OK, "nothing but that can be done about it"


def test_nobody_is_told_again_to_verify_what_is_on_another_machine(place: Place) -> None:
    card = put(place, "a.md", created=day(1), body="`begin` is in `src/main.py`.")
    card.write_text(card.read_text().replace("tags: []", "tags: []\nrepository: git.example/acme/elsewhere"))
    assert see(place).get("claims").severity == WARNING
    with place.open() as workspace:
        workspace.verification.verify()
    claims = see(place).get("claims")
    assert (claims.severity, claims.said) == (OK, "none whose repository is known")


def test_claims_are_counted_from_the_last_check(place: Place) -> None:
    shutil.rmtree(place.repo / ".git")
    git_repo(place.repo)
    (place.repo / "main.py").write_text("def begin():\n    pass\n")
    for arguments in (["add", "main.py"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(place.repo), *arguments], check=True)
    today = datetime.now(UTC).astimezone()
    rest = {"created": today.date().isoformat()}
    card = put(place, "a.md", body="`begin` is in `main.py`.", **rest)
    card.write_text(card.read_text().replace("category:", "repository: github.com/me/app\ncategory:"))
    before = see(place, now=today).get("claims")
    assert (before.severity, before.said) == (WARNING, NOT_CHECKED_YET)
    assert not (place.workspace / ".truekeep" / "facts.sqlite").exists(), "looking makes nothing"
    with place.open(now=today) as workspace:
        workspace.verification.verify()
    reading = see(place, now=today).get("claims")
    assert (reading.severity, reading.figures["verdicts"]["confirmed"]) == (OK, 2)
    assert reading.figures["checked_at"]
    assert not list((place.workspace / ".truekeep").glob("facts.sqlite-*")), "looking leaves nothing beside it"
    store = FactsCache(str(place.workspace / ".truekeep" / "facts.sqlite"))
    store.remember("somebody", "writes")
    assert (place.workspace / ".truekeep" / "facts.sqlite-wal").stat().st_size
    assert see(place, now=today).get("claims") == reading, "also while somebody writes it"
    store.close()
    (place.repo / "main.py").rename(place.repo / "start.py")
    subprocess.run(["git", "-C", str(place.repo), "add", "-A"], check=True)
    subprocess.run(
        ["git", "-C", str(place.repo), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "y"], check=True
    )
    assert see(place, now=today).get("claims").severity == OK, "nothing is checked anew"
    text = card.read_text()
    card.write_text(f"{text}\n")
    os.utime(card, (time.time() + 60, time.time() + 60))
    assert see(place, now=today).get("claims").said == "1 edited since the last check"
    card.write_text(text)
    os.utime(card, (time.time() - 60, time.time() - 60))
    with place.open(now=today) as workspace:
        workspace.verification.verify()
    reading = see(place, now=today).get("claims")
    assert (reading.severity, reading.figures["verdicts"]["moved"]) == (WARNING, 2)
    os.utime(card, (time.time() + 60, time.time() + 60))
    reading = see(place, now=today).get("claims")
    assert (reading.severity, reading.figures["edited_since"], reading.figures["verdicts"]["moved"]) == (OK, 1, 0)
    card.unlink()
    assert see(place, now=today).get("claims").figures["edited_since"] == 0


@pytest.fixture
def named(place: Place) -> Path:
    """A card that names what its repository has; given is its file."""
    shutil.rmtree(place.repo / ".git")
    git_repo(place.repo)
    (place.repo / "main.py").write_text("def begin():\n    pass\n")
    for arguments in (["add", "main.py"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(place.repo), *arguments], check=True)
    today = datetime.now().astimezone().date().isoformat()
    card = put(place, "a.md", body="`begin` is in `main.py`.", created=today)
    card.write_text(card.read_text().replace("category:", "repository: github.com/me/app\ncategory:"))
    return card


def claims_of(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = told(place)["health"]["more"]["claims"]["figures"]
    verdicts: dict[str, Any] = found["verdicts"]
    return {key: found[key] for key in ("memories", "edited_since")} | verdicts


@pytest.mark.slow
@pytest.mark.parametrize("where", ["abroad/AGENTS.md", "abroad/notes.md", "workspace/memory/2026-11-10.md"])
def test_a_file_that_is_no_memory_leaves_nothing_in_status(
    place: Place, named: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.base)
    put(place, "../../BOOTSTRAP.md", body="`begin` is in `main.py`.")
    run_cli("verify", "-w", str(place.workspace))
    before = claims_of(place)
    assert (before["memories"], before["gone"]) == (1, 0)
    file = place.base / where
    file.parent.mkdir(exist_ok=True)
    file.write_text("2026-11-10: it is in `src/gone.py`, and `main.py` stays.\n")
    for path in (str(file), where, os.path.join("..", place.base.name, where)):
        done = run_cli("verify", path, "--repo", str(place.repo), "-w", str(place.workspace))
        assert done.returncode == 0, done.stderr
        done = run_cli("verify", path, "-w", str(place.workspace))
        assert done.returncode == 0, done.stderr
        assert claims_of(place) == before


@pytest.mark.slow
def test_what_an_earlier_version_kept_of_other_files_is_passed_over_and_goes(place: Place, named: Path) -> None:
    run_cli("verify", "-w", str(place.workspace))
    before = claims_of(place)
    abroad = place.base / "t.md"
    abroad.write_text("`src/gone.py`\n")
    facts = str(place.workspace / ".truekeep" / "facts.sqlite")
    store = FactsCache(facts)
    rotten = "replace(verdicts, 'confirmed', 'gone')"
    copy = f"INSERT INTO verdict SELECT ?, seal, at + 100, stamp, {rotten} FROM verdict LIMIT 1"
    for path in (str(abroad), "../t.md"):
        store.run(copy, (path,))
    store.close()
    assert claims_of(place) == before
    run_cli("verify", "-w", str(place.workspace))
    assert [path for path, _, _ in read_seals(facts)] == ["memory/cards/a.md"]


@pytest.mark.slow
def test_a_card_that_was_undone_and_redone_is_not_edited_since(place: Place, named: Path) -> None:
    run_cli("verify", "-w", str(place.workspace))
    before = claims_of(place)
    assert (before["memories"], before["confirmed"]) == (1, 2)
    time.sleep(0.02)
    text = named.read_text()
    named.unlink()
    named.write_text(text)
    os.utime(named.parent)
    assert claims_of(place)["edited_since"] == 1
    run_cli("verify", "-w", str(place.workspace))
    assert claims_of(place) == before


def test_review_and_how_long_it_waits(place: Place) -> None:
    assert see(place).get("review").said == "nothing waits for a person"
    place.leave("# doubt\n")
    place.ingest()
    found = see(place).get("review")
    assert (found.severity, found.said) == (OK, "1 draft waits, the oldest for 0 days")
    later = NOW + timedelta(days=14)
    assert see(place, now=later).get("review").severity == WARNING
    assert see(place, now=later).get("review").figures["oldest_days"] == 14


def test_the_pipeline_in_one_line(place: Place) -> None:
    reading = see(place).get("pipeline")
    assert (reading.severity, reading.figures["alarms"][0]["code"]) == (PROBLEM, "not-running")
    place.leave(a_handoff())
    place.ingest()
    reading = see(place).get("pipeline")
    assert (reading.severity, reading.figures["filed"], reading.figures["machines"]) == (OK, 1, 1)


@pytest.mark.slow
def test_the_search_index(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "truekeep.memory.file_scan.CLOCK_TICK_NS", -(1 << 62)
    )  # as if everything had been written long ago
    index = place.workspace / ".truekeep" / "index.sqlite"
    assert see(place).get("search").severity == OK
    assert not index.exists(), "looking makes no index"
    for number in range(60):
        put(place, f"c{number}.md", created=day(1))
    with place.open() as workspace:
        workspace.search.index()
    reading = see(place).get("search")
    assert (reading.severity, reading.figures["files"], reading.figures["waiting"]) == (OK, 61, 0)
    for number in range(55):
        put(place, f"d{number}.md", created=day(1))
    reading = see(place).get("search")
    assert (reading.severity, reading.figures["waiting"]) == (WARNING, 55)
    index.write_bytes(b"no database, " * 900)
    before = index.read_bytes()
    reading = see(place).get("search")
    assert (reading.severity, reading.hint) == (WARNING, "`truekeep doctor --fix` rebuilds it")
    assert index.read_bytes() == before, "what is damaged is told, and left for doctor"


@pytest.mark.slow
def test_frontmatter_with_its_place(place: Place) -> None:
    put(place, "a.md", created=day(-40))
    put(place, "b.md", created=day(3), updated=day(9))
    (place.workspace / "memory" / "cards" / "c.md").write_text("no frontmatter\n")
    reading = see(place).get("lines")
    assert (reading.severity, reading.said) == (WARNING, "3 to fix in 3 files")
    assert [(item["path"], item["code"]) for item in reading.figures["first"]] == [
        ("memory/cards/a.md", "future-date"),
        ("memory/cards/b.md", "dates-lie"),
        ("memory/cards/c.md", "no-frontmatter"),
    ]
    assert "memory/cards/b.md:1 dates-lie: " in shown(place)


@pytest.mark.slow
def test_a_secret_in_a_card_is_not_shown(place: Place) -> None:
    secret = "ghp_" + "a1B2" * 9
    put(place, "a.md", f"Key {secret}", created=secret)
    put(place, "b.md", f"Key {secret}", created=day(1))
    found = json.dumps(told(place))
    assert "bad-date" in found
    assert secret[:30] not in found + shown(place)


def test_the_disk(place: Place) -> None:
    put(place, "a.md", body="x" * 5000)
    figures = see(place).get("disk").figures
    assert figures["memory_files"] == 2
    assert 5000 < figures["memory_bytes"] < 6000
    assert figures["state_bytes"] > figures["memory_bytes"]
    assert figures["free_bytes"] > 0


# --- State that is missing or damaged -------------------------------------------------------------------------------


@pytest.mark.slow
def test_status_leaves_memory_as_it_is(place: Place) -> None:
    put(place, "a.md", created=day(200))
    before = tree(place.workspace)
    shown(place)
    assert tree(place.workspace) == before


DAMAGED = {
    "ledger.sqlite": ("pipeline",),
    "facts.sqlite": ("claims",),
    "survey.sqlite": (),
    "catalog.sqlite": (),
    "index.sqlite": ("search",),
    "config.toml": ("handoffs", "pipeline", "search"),
    "host": ("pipeline",),
    "sync.toml": ("pipeline",),
}


@pytest.mark.slow
def test_what_code_confirmed_is_touched_as_decay_says(place: Place) -> None:
    shutil.rmtree(place.repo / ".git")
    history = History()
    history.commit(day(300), {"app/proxy.py": "PROXY_PORT = 8443\n"})
    history.write(place.repo)
    for name, body in (("a.md", "`PROXY_PORT` is in `app/proxy.py`."), ("b.md", "The lamp in the hall is broken.")):
        text = a_card(name, body, created=day(200), repository="github.com/me/app")
        (place.workspace / "memory" / "cards" / name).write_text(text)
    assert told(place)["health"]["questions"]["untouched"]["figures"]["past"] == 2
    with place.open(now=datetime.now(UTC)) as workspace:
        workspace.verification.verify()
        stale = [card.path for card in workspace.maintenance.stale_cards()]
    figures = told(place)["health"]["questions"]["untouched"]["figures"]
    assert stale == [figures["oldest"]] == ["memory/cards/b.md"]
    assert figures["past"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_state_file_costs_its_own_line(place: Place, name: str) -> None:
    put(place, "a.md", "Same", created=day(200))
    put(place, "b.md", "Same", created=day(200))
    place.leave("# doubt\n")
    place.ingest()
    with place.open() as workspace:
        workspace.search.index()
        workspace.verification.verify()
    path = place.workspace / ".truekeep" / name
    path.write_bytes(b"\xff\0 = [ no longer what it was\n" * 400)
    for more in ("-wal", "-shm"):
        Path(f"{path}{more}").unlink(missing_ok=True)
    found = told(place)
    health = found["health"]
    readings = {**health["questions"], **health["more"]}
    for lost in DAMAGED[name]:
        assert readings[lost]["verdict"] != "ok", (lost, readings[lost])
    assert readings["untouched"]["figures"]["past"] == 2
    assert readings["duplicates"]["figures"]["topics"] == 1
    assert readings["review"]["figures"]["drafts"] == 1
    assert found["memory"]["cards"] == 2
    if name not in ("survey.sqlite", "catalog.sqlite"):
        assert name in json.dumps(health["unseen"]) or (name == "index.sqlite" and readings["search"]["hint"])
    assert run_cli("status", "--exit-code", TRUEKEEP_WORKSPACE=str(place.workspace)).returncode == 1


@pytest.mark.slow
def test_missing_state_files(place: Place) -> None:
    put(place, "a.md", created=day(2))
    for item in (place.workspace / ".truekeep").iterdir():
        shutil.rmtree(item) if item.is_dir() else item.unlink()
    found = told(place)
    assert (found["memory"]["cards"], found["memory"]["canonical_host"]) == (1, "in doubt: `truekeep doctor`")
    assert "host is missing" in found["health"]["unseen"][0]


def test_a_newer_workspace_is_refused(place: Place) -> None:
    host = place.workspace / ".truekeep" / "host"
    host.write_text(host.read_text().replace("format = 1", "format = 9"))
    assert run_cli("status", TRUEKEEP_WORKSPACE=str(place.workspace)).returncode == 6


def test_a_file_that_cannot_be_read_is_named(place: Place) -> None:
    put(place, "a.md", created=day(2))
    (place.workspace / "memory" / "cards" / "b.md").write_bytes(b"\xff\xfe")
    assert [item["code"] for item in see(place).get("lines").figures["first"]] == ["not-text"]


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; exec "$@"'


@pytest.mark.slow
@pytest.mark.needs("unshare")
def test_a_workspace_that_cannot_be_written(place: Place) -> None:
    put(place, "a.md", created=day(200))
    place.leave(a_handoff())
    place.ingest()
    with place.open() as workspace:
        workspace.verification.verify()
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    command = [sys.executable, "-m", "truekeep", "status", "--json", "-w", str(place.workspace)]
    done = subprocess.run(
        [*unshare, "sh", "-c", READ_ONLY, "sh", str(place.workspace), *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if done.returncode == 99:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    health = json.loads(done.stdout)["health"]
    readings = {**health["questions"], **health["more"]}
    assert readings["untouched"]["figures"]["days"] >= 200
    assert {name for name, reading in readings.items() if reading["verdict"] == "unknown"} == set()


# --- The screen -----------------------------------------------------------------------------------------------------


def everything_wrong() -> tuple[HealthReport, dict[str, Any]]:
    names = (*QUESTIONS, "claims", "review", "pipeline", "search", "lines", "disk")
    first = [{"path": f"memory/cards/{n}.md", "line": n, "code": "bad-date", "what": "x" * 30} for n in range(5)]
    figures = {"first": first}
    results = [
        CheckResult(PROBLEM, "said " * 10, "hint " * 14, name=name, target="target " * 2, figures=figures)
        for name in names
    ]
    health = HealthReport(tuple(results), (0, 1) * 6, (("1 week", 3), ("unknown", 1)), ("why " * 15,) * 7)
    return health, {"workspace": "/" + "w" * 40, "canonical_host": "h" * 20}


def test_nothing_is_cut_off_on_a_narrow_terminal(place: Place) -> None:
    put(place, f"{'long-' * 20}name.md", created=day(400))
    lines = list(render(see(place), {"workspace": "w", "canonical_host": "h"}, "", width=80))
    assert max(len(click.unstyle(for_terminal(line))) for line in lines) <= 80
    said = "".join(line.strip() for line in lines)
    assert f"{'long-' * 20}name.md, 400 days ago (normal: none past 90days)".replace(" ", "") in said.replace(" ", "")


def test_the_next_steps_for_cards_and_index_fit_into_a_line(place: Place) -> None:
    names = [f"c{number}.md" for number in range(12)]
    for name in names:
        put(place, name, "Same", created=day(100))
    long_index(place, names)
    lines = list(render(see(place), {"workspace": "w", "canonical_host": "h"}, "", width=100, has_bars=True))
    steps = [line for line in lines if "tidy decay" in line]
    assert len(steps) == 2
    assert all(len(line) <= 100 for line in steps)


@pytest.mark.parametrize("has_bars", [False, True])
def test_one_screen_whatever_is_wrong(has_bars: bool) -> None:
    health, memory = everything_wrong()
    lines = list(render(health, memory, "sessions " * 8, width=100, has_bars=has_bars))
    plain = [click.unstyle(for_terminal(line)) for line in lines]
    assert len(lines) <= 40
    assert max(map(len, plain)) <= 100
    assert health.severity == PROBLEM


def test_colour_is_for_what_needs_a_person(place: Place) -> None:
    put(place, "a.md", created=day(2))
    place.leave(a_handoff())
    place.ingest()
    with place.open() as workspace:
        workspace.verification.verify()
    health = see(place)
    assert health.severity == OK, [reading for reading in health.results if reading.severity != OK]
    memory = {"workspace": "w", "canonical_host": "h"}
    lines = list(render(health, memory, "", width=100, has_bars=True))
    assert not any("\x1b" in for_terminal(line) for line in lines)
    assert lines[-1] == "all good"
    put(place, "old.md", created=day(300))
    lines = list(render(see(place), memory, "", width=100, has_bars=True))
    lines = [for_terminal(line) for line in lines]
    assert [line.split()[0] for line in lines if "\x1b" in line] == ["\x1b[31mproblem\x1b[0m"]
    assert lines[-1] == "1 problem"
    put(place, "twin.md", "Proxy in front of staging", created=day(2))
    put(place, "twin-2.md", "Proxy in front of staging", created=day(2))
    lines = list(render(see(place), memory, "", width=100, has_bars=True))
    assert lines[-1] == "1 problem, 1 warning"


def test_bars() -> None:
    assert bars([0, 1, 4, 100]) == "▁▂▂█"
    assert bars([0, 0]) == "▁▁"
    assert bars([]) == ""
    assert bars(list(range(8))) == "▁▂▃▄▅▆▇█"


def on_a_terminal(place: Place, **environment: str) -> str:
    """What the real program says to a terminal of a hundred columns."""
    mine, its = pty.openpty()
    surroundings = {**os.environ, "COLUMNS": "100", "TERM": "xterm", "TRUEKEEP_WORKSPACE": str(place.workspace)}
    process = subprocess.Popen(
        [sys.executable, "-m", "truekeep", "status"], stdin=its, stdout=its, stderr=its, env=surroundings | environment
    )
    os.close(its)
    said = b""
    while True:
        try:
            more = os.read(mine, 65_536)
        except OSError:
            break  # the other end is closed
        if not more:
            break
        said += more
    os.close(mine)
    assert process.wait(60) == 0
    return said.decode()


@pytest.mark.slow
def test_a_terminal_gets_plots_and_a_pipe_gets_numbers(place: Place) -> None:
    put(place, "a.md", created=datetime.now().astimezone().date().isoformat())
    said = on_a_terminal(place, PYTHONIOENCODING="utf-8")
    assert "growth         ▁▁▁▁▁▁▁▁▁▁▁█" in said
    assert "\x1b[31mproblem\x1b[0m" in said
    lines = said.replace("\x1b[31m", "").replace("\x1b[0m", "").splitlines()
    assert [line for line in lines[1:] if len(line) > 100] == []
    piped = shown(place)
    assert "growth         0 0 0 0 0 0 0 0 0 0 0 1  cards a week" in piped
    assert not set("▁█→\x1b") & set(piped)


@pytest.mark.slow
def test_letters_that_a_terminal_lacks(place: Place) -> None:
    put(place, "ä.md", "Ä", created=day(400))
    said = on_a_terminal(place, PYTHONIOENCODING="ascii")
    assert "growth         0 0" in said
    assert r"\xe4.md" in said


@pytest.mark.slow
def test_the_shape_of_the_json(place: Place) -> None:
    put(place, "a.md", created=day(2))
    found = told(place)
    assert list(found) == ["schema", "memory", "waiting_here", "days", "closeout", "receipts", "failures", "health"]
    assert list(found["memory"]) == [
        "workspace", "canonical_host", "cards", "handoffs_waiting", "drafts_to_review", "last_ingest",
    ]  # fmt: skip
    health = found["health"]
    assert list(health) == ["verdict", "questions", "more", "growth", "ages", "unseen"]
    assert tuple(health["questions"]) == QUESTIONS
    assert list(health["more"]) == [
        "files", "claims", "review", "heartbeat", "pipeline", "copies", "search", "lines", "disk", "schedule",
        "bugs",
    ]  # fmt: skip
    for reading in (*health["questions"].values(), *health["more"].values()):
        assert list(reading) == ["verdict", "said", "target", "hint", "figures"]
        assert reading["verdict"] in ("ok", "look", "act", "unknown")
    assert len(health["growth"]) == WEEKS


@pytest.mark.slow
def test_the_exit_code_is_for_monitors(place: Place) -> None:
    assert told(place)["health"]["verdict"] == "act", "ingest has never run"
    told(place, "--exit-code", code=1)
    with place.open(now=datetime.now().astimezone()) as workspace:
        workspace.handoffs.ingest()
    assert told(place, "--exit-code", code=0)["health"]["verdict"] == "ok"


@pytest.mark.slow
def test_without_a_workspace_it_says_what_it_can(tmp_path: Path) -> None:
    repo = git_repo(tmp_path / "repo")
    (repo / CLAUDE).mkdir(parents=True)
    done = run_cli("status", "--json", "--exit-code", cwd=repo)
    found = json.loads(done.stdout)
    assert (done.returncode, found["memory"], found["health"], found["waiting_here"]) == (0, None, None, 0)


@pytest.mark.slow
def test_a_card_that_speaks_to_the_terminal(place: Place) -> None:
    put(place, "a.md", "x\x1b[2J\u202e", created="2026-99-99\x1b[2J")
    (place.workspace / "memory" / "cards" / "b\x1b[2J\u202e.md").write_text("---\ntopic: b\n---\nb\n")
    assert not {"\x1b", "\u202e"} & set(shown(place))


@pytest.mark.slow
def test_all_problems_are_listed_with_their_places(place: Place) -> None:
    cards = place.workspace / "memory" / "cards"
    for number in range(8):
        (cards / f"bare-{number}.md").write_text("Words only.\n")
    (cards / "bad day.md").write_text("---\ntopic: A\ncreated: 2026-02-31\n---\n\nText.\n")
    (cards / "broken.md").write_text("---\ntopic: A\ntopic: B\n---\n\nText.\n")
    (cards / "latin.md").write_bytes(b"---\ntopic: Caf\xe9\n---\n")
    (cards / "later.md").write_text("---\ntopic: L\ncreated: 2999-01-01\n---\n\nText.\n")
    put(place, "fine.md", created=day(1))
    at = ("-w", str(place.workspace))
    listed = json.loads(run_cli("status", "problems", "--json", *at).stdout)["problems"]
    found = {(item["path"].rpartition("/")[2], item["line"], item["code"]) for item in listed}
    assert found >= {(f"bare-{number}.md", 1, "no-frontmatter") for number in range(8)}
    assert found >= {("bad day.md", 3, "bad-date"), ("latin.md", 1, "not-text"), ("later.md", 1, "future-date")}
    assert {code for name, _, code in found if name == "broken.md"} == {"broken-frontmatter"}
    assert not any(name == "fine.md" for name, _, _ in found)
    done = run_cli("status", "problems", "--exit-code", *at)
    assert done.returncode == 1
    for name, line, code in found:
        assert f"memory/cards/{name}:{line} {code}: " in done.stdout
    assert f"{len(listed)} problems in 12 files" in done.stdout
    assert "truekeep status problems" in run_cli("status", *at).stdout
    for path in cards.iterdir():
        if path.name != "fine.md":
            path.unlink()
    assert run_cli("status", "problems", "--exit-code", *at).stdout == "nothing wrong\n"
