"""What an agent is told: the founding read order, what concerns its repository, with age and verdicts."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, a_card, a_handoff, git_repo, run_cli
from truekeep.sessions.packing import CAPS
from truekeep.sessions.state_sections import Moment
from truekeep.sessions.wake import compose, log_paths, place_of
from truekeep.text.unicode import find_hidden
from truekeep.transcripts.parser import iter_turns
from truekeep.workspace.briefing import list_cards


@pytest.fixture
def here(place: Place) -> Place:
    """A workspace with something in every place, and a repository that is called github.com/me/app."""
    (place.repo / ".git" / "HEAD").unlink()
    (place.repo / ".git").rmdir()
    git_repo(place.repo)
    files = {
        "HANDOVER.md": "# Handover\n\n2026-11-13 10:00, claude, app\n\n## Last Action\n\nSplit the parser.\n\n"
        "## Scope Rules\n\nNothing was said.\n",
        "HEARTBEAT.md": "# Heartbeat\n\n## Now\n\nThe parser.\n",
        "MEMORY.md": "# Memory\n\nThe user wants short answers.\n\n## Cards\n",
        "memory/active-context.md": "Working on the parser branch.\n",
        "memory/2026-11-15.md": "# 2026-11-15\n\n## 09:00\n\nBegan early.\n\n## 11:00\n\n"
        "- [decision|i=0.9] Kept the old lexer\n",
        "memory/daily/2026-11-14.md": "## 18:00\n\nYesterday's news.\n",
        "memory/projects/app.md": "# app\n\n## Status\n\nHalf done.\n",
        "memory/ops/corrections.md": "# Corrections\n\n- In app never rebase shared branches.\n"
        "- Elsewhere ask first.\n",
        "memory/gating-policies.md": "| trigger | action |\n|---|---|\n| release of app | run the smoke test |\n",
    }
    for name, text in files.items():
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def woken(place: Place, **options: object) -> str:
    with place.open() as workspace:
        return workspace.sessions.wake(place.repo, **options).text  # type: ignore[arg-type]


def test_the_order_is_the_founding_document_s(here: Place) -> None:
    text = woken(here)
    titles = [line[3:].partition(" (")[0] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "Handover", "Curated memory", "Heartbeat", "Working context", "Today's log", "Yesterday's log", "This project",
        "Corrections", "Gating policies",
    ]  # fmt: skip
    for said in (
        "Split the parser.", "short answers", "The parser.", "parser branch", "Kept the old lexer", "Yesterday's news",
        "Half done.", "never rebase", "run the smoke test",
    ):  # fmt: skip
        assert said in text
    assert "Handover (HANDOVER.md, 2 days old)" in text
    assert "Nothing was said" not in text


def test_the_same_memory_gives_the_same_bytes(here: Place) -> None:
    here.leave(a_handoff())
    here.ingest()
    assert woken(here) == woken(here)


def test_the_cards_of_this_repository_come_before_others_and_with_their_age(here: Place) -> None:
    here.leave(a_handoff())
    here.ingest(now=NOW - timedelta(days=3))
    (here.workspace / "memory/cards/free.md").write_text(a_card("Free for all", "Belongs to none."))
    (here.workspace / "memory/cards/other.md").write_text(
        a_card("Other", "Elsewhere.", repository="github.com/me/other")
    )
    text = woken(here)
    assert "**Proxy in front of staging** (memory/cards/staging-proxy.md · 3 days old" in text
    assert text.index("Proxy in front") < text.index("Free for all")
    assert "Elsewhere." not in text
    assert "1 of Cards" in text


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_was_filed_after_the_last_look_at_the_index_is_known(here: Place, is_indexed: bool) -> None:
    here.leave(a_handoff(card="first.md"), "2026-11-14-0900-a.md")
    here.ingest()
    if is_indexed:
        with here.open() as workspace:
            workspace.search.index()
    body = "Something else entirely: the queue is drained at night by a job that nobody owns."
    here.leave(a_handoff(card="second.md", content=a_card("Queue", body)), "2026-11-14-0901-b.md")
    here.ingest()
    text = woken(here)
    assert "memory/cards/first.md" in text
    assert "memory/cards/second.md" in text


@pytest.mark.slow
def test_without_an_index_the_newest_files_are_told_of_and_all_are_counted(here: Place) -> None:
    cards = here.workspace / "memory" / "cards"
    for number in range(1_200):
        path = cards / f"card-{number}.md"
        path.write_text(a_card(f"Card {number}", "x", repository="github.com/me/app" if number % 2 else ""))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (cards / ".hidden.md").write_text("x")
    (cards / "link.md").symlink_to("/etc/passwd")
    listed, total = list_cards(str(here.workspace), "github.com/me/app", most=10)
    assert total == 1_201
    assert [card.path for card in listed[:3]] == [f"memory/cards/card-{number}.md" for number in (1199, 1198, 1197)]
    assert len(listed) == 20
    assert "1 of Cards" not in woken(here)
    assert list_cards(str(here.base / "nowhere"), "", most=10) == ([], 0)


def test_what_code_refutes_is_said(here: Place) -> None:
    source = here.repo / "src" / "load.py"
    source.parent.mkdir()
    source.write_text("def load_config():\n    return 1\n")
    commit(here.repo, "2026-11-01T10:00:00+0000")
    card = a_card(
        "Loading", "`load_config()` in `src/load.py` reads it.", repository="github.com/me/app", created="2026-11-02"
    )
    (here.workspace / "memory/cards/loading.md").write_text(card)
    source.rename(here.repo / "src" / "config.py")
    commit(here.repo, "2026-11-10T10:00:00+0000")
    with here.open() as workspace:
        workspace.verification.verify()
        text = workspace.sessions.wake(here.repo).text
    assert "`src/load.py` is now src/config.py" in text


def commit(repo: Path, at: str) -> None:
    import subprocess

    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
                (("NAME", "a"), ("EMAIL", "a@example.invalid"), ("DATE", at))}  # fmt: skip
    subprocess.run(["git", "-C", str(repo), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(repo), "commit", "-qm", "x"], check=True, env={**os.environ, **identity})


def test_a_brief_fits_into_every_harness(here: Place) -> None:
    (here.workspace / "HANDOVER.md").write_text(
        "# H\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(200))
    )
    for harness, cap in CAPS.items():
        text = woken(here, harness=harness)
        assert len(text) <= cap.characters
        assert text.count("\n") <= cap.lines
        assert "Left out here" in text
        assert "working context" in text.lower()
        assert ("heartbeat" in text.lower()) is (harness != "openclaw")  # which loads it by itself
    assert len(woken(here, tokens=400)) <= 1_400


@pytest.mark.slow
def test_the_command(here: Place) -> None:
    done = run_cli("wake", "--json", "--for", "codex", "-w", str(here.workspace), cwd=here.repo)
    told = json.loads(done.stdout)
    assert told["schema"] == "truekeep.wake/1"
    assert told["characters"] == len(told["text"])
    plain = run_cli("wake", "--for", "codex", "-w", str(here.workspace), cwd=here.repo)
    assert plain.stdout == told["text"]


def test_outside_of_any_repository(here: Place, tmp_path: Path) -> None:
    done = run_cli("wake", "-w", str(here.workspace), cwd=tmp_path)
    assert done.returncode == 0
    assert "Split the parser." in done.stdout
    assert "This project" not in done.stdout


def test_our_own_text_is_not_speech(here: Place) -> None:
    row = {"type": "user", "message": {"role": "user", "content": woken(here) + "\nWhat now?"}, "timestamp": "x"}
    turns = list(iter_turns([json.dumps(row).encode()], "claude"))
    assert [turn.text for turn in turns] == ["What now?"]


def test_odd_files_cost_only_themselves(here: Place) -> None:
    (here.workspace / "HANDOVER.md").write_bytes(b"\xff\xfe broken")
    (here.workspace / "HEARTBEAT.md").unlink()
    (here.workspace / "HEARTBEAT.md").symlink_to("/etc/passwd")
    text = woken(here)
    assert "root:" not in text
    assert "short answers" in text


@pytest.mark.parametrize("name", ["語", "2048", "shop"])
def test_a_project_is_told_of_once(name: str) -> None:
    """A name without letter case, and a disk that does not know it: both names are one file."""
    brief = compose(
        lambda path: "# It\n\nHalf done." if path.lower() == f"memory/projects/{name}.md" else None,
        [], place_of(f"github.com/me/{name}"), moment=Moment(NOW.date()), cap=CAPS["claude"],
    )  # fmt: skip
    assert brief.text.count("Half done.") == 1


def test_names() -> None:
    assert place_of("github.com/me/My_App").slug == "my-app"
    assert place_of("").words == frozenset()
    assert log_paths(NOW.date()) == ("memory/2026-11-15.md", "memory/daily/2026-11-15.md")


# --- What matters ----------------------------------------------------------------------------------------------------


def remember(place: Place, path: str, text: str) -> None:
    (place.workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (place.workspace / path).write_text(text)


def test_a_heartbeat_that_is_a_checklist_is_not_the_state_of_work(here: Place) -> None:
    checks = "# HEARTBEAT.md\n\nKeep this short.\n\n## Every hour\n\n- Check the mail.\n\n```sh\n./check.sh\n```\n"
    remember(here, "HEARTBEAT.md", checks)
    text = woken(here)
    assert "Heartbeat" not in text
    assert "Check the mail." not in text
    remember(here, "HEARTBEAT.md", f"{checks}\n## Now\n\nThe lexer.\n\n## Current status\n\nTests are red.\n")
    text = woken(here)
    assert "## Heartbeat (HEARTBEAT.md)\n> ### Now\n> The lexer.\n> ### Current status\n> Tests are red.\n" in text
    assert "Check the mail." not in text


def test_user_persona_rules_tools_and_learnings_are_told_of(here: Place) -> None:
    remember(
        here,
        "USER.md",
        "# USER.md\n\n_Learn about them._\n\n- **Name:** Ada\n- **Pronouns:** _(optional)_\n- **Notes:**\n",
    )
    remember(here, "SOUL.md", "# SOUL\n\nBe brief.\n")
    remember(here, "TOOLS.md", "# Tools\n\n## What Goes Here\n\nThings.\n\n## ssh\n\n- The jump host is gate.\n\n---\n")
    remember(here, "rules/commits.md", "# Commits\n\nSubjects stay below 72 characters.\n")
    remember(here, "rules/.hidden.md", "Nobody reads this.\n")
    remember(here, ".learnings/ERRORS.md", "# Errors\n\n- The linter needs a cache folder.\n")
    text = woken(here)
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    kinds = ("User", "Persona", "Rules", "Tools", "Learnings")
    assert [title for title in titles if title.partition(" ")[0] in kinds] == [
        "User (USER.md)", "Persona (SOUL.md)", "Rules (rules/commits.md)", "Tools (TOOLS.md)",
        "Learnings (.learnings/ERRORS.md)",
    ]  # fmt: skip
    for said in ("**Name:** Ada", "Be brief.", "below 72", "jump host", "cache folder"):
        assert said in text
    for unsaid in ("Learn about them", "Pronouns", "Notes", "Things.", "Nobody reads", "> ---"):
        assert unsaid not in text


def test_of_a_long_document_its_ends_and_what_names_this_repository_are_told_of(here: Place) -> None:
    parts = [f"## Tool {number}\n\n{f'Text {number} ' * 60}\n" for number in range(300)]
    parts[150] = "## Tool 150\n\nThe app needs a flag.\n"
    remember(here, "TOOLS.md", "# Tools\n\n" + "\n".join(parts))
    text = woken(here)
    for said in ("Tool 0", "Tool 299", "The app needs a flag."):
        assert said in text
    assert "Tool 100" not in text
    assert re.search(r"- 2\d\d of Tools: `truekeep get TOOLS.md`", text)


def test_openclaw_is_not_told_what_it_loads_by_itself(here: Place) -> None:
    remember(here, "USER.md", "# U\n\nAda.\n")
    remember(here, "rules/commits.md", "# Commits\n\nSubjects stay below 72 characters.\n")
    text = woken(here, harness="openclaw")
    for title in ("User (", "Curated memory", "Heartbeat"):
        assert title not in text
    for title in ("Handover", "Rules (", "Working context", "Today's log"):
        assert title in text


def test_of_a_long_memory_the_useful_parts_are_told_of(here: Place) -> None:
    parts = [
        f"## Topic {number}\n\n" + "".join(f"- Fact {number}.{n}: {'word ' * 12}\n" for n in range(20))
        for number in range(12)
    ]
    parts.append("## About Ada\n\n- Ada likes short answers.\n")
    parts.append("## Hard rules\n\n- Ask before a release.\n")
    parts.append("## Builds\n\n- One thing.\n" + "- Other thing.\n" * 30 + "- The app is built with make.\n")
    parts.append("## Last\n\n" + "- Filler.\n" * 30 + "- **NEVER** push to main.\n")
    remember(here, "MEMORY.md", "# Memory\n\n" + "\n".join(parts))
    text = woken(here)
    for said in (
        "short answers",
        "Ask before a release",
        "The app is built with make",
        "NEVER",
        "Fact 0.0",
        "Fact 11.0",
    ):
        assert said in text, said
    assert "Fact 0.19" not in text
    assert woken(here) == text


def test_index_lines_of_cards_of_other_repositories_say_so(here: Place) -> None:
    for name, repository in (("foo", "github.com/me/foo"), ("bar", "github.com/me/bar")):
        remember(here, f"memory/cards/{name}.md", a_card(f"Topic of {name}", "Text.", repository=repository))
    remember(
        here, "MEMORY.md", "# M\n\n## Cards\n\n- [Of foo](memory/cards/foo.md)\n- [Of bar (bar)](memory/cards/bar.md)\n"
    )
    with here.open() as workspace:
        workspace.search.index()
    text = woken(here)
    assert "> - [Of foo](memory/cards/foo.md) (foo)\n> - [Of bar (bar)](memory/cards/bar.md)\n" in text


def test_a_handover_of_another_repository_says_so_and_gives_way(here: Place) -> None:
    remember(here, "HANDOVER.md", "# Handover\n\n2026-11-14 10:00, claude, other\n\n## Last Action\n\nElsewhere.\n")
    assert "## Handover (HANDOVER.md, yesterday, of other)" in woken(here)
    remember(here, "HANDOVER.md", "# Handover\n\n2026-11-14 10:00, claude, app\n\n## Last Action\n\nHere.\n")
    assert "## Handover (HANDOVER.md, yesterday)" in woken(here)


# --- What nobody sees ------------------------------------------------------------------------------------------------

_HIDDEN = (
    "\x1b]0;owned\x07\x1b[31m \u202etxet\u202c z\u200be\u200bro \x9b2J \u3164 \U000e0041\U000e0042 \ufeff b\ufe01\ufe02"
)


@pytest.mark.slow
def test_no_terminal_code_and_nothing_hidden_is_told(here: Place) -> None:
    for name in ("HANDOVER.md", "MEMORY.md", "memory/2026-11-15.md", "memory/ops/corrections.md"):
        path = here.workspace / name
        path.write_text(path.read_text() + f"\n- Said here: {_HIDDEN}\n")
    here.leave(a_handoff())
    here.ingest()
    card = here.workspace / "memory" / "cards" / "staging-proxy.md"
    card.write_text(card.read_text().replace("topic: ", f'topic: "A {_HIDDEN}" # ', 1) + f"\nAlso {_HIDDEN} here.\r\n")
    text = woken(here)
    assert text.count("Said here") >= 4
    assert "here." in text
    assert not find_hidden(text)
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(text)
    assert "\\x1b]0;owned" in text
    assert woken(here) == text
    said = run_cli("wake", "-w", str(here.workspace), "--repo", str(here.repo)).stdout
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_what_is_written_in_other_scripts_is_told_as_it_is(here: Place) -> None:
    said = "Grüße, 日本語, می‌خواهم, 👩‍👩‍👧 and ❤️, a\u00a0b"  # with the joiners that they need
    (here.workspace / "HANDOVER.md").write_text(f"# Handover\n\n{said}\n")
    assert said in woken(here)


def test_a_pointer_to_a_card_that_is_told_of_is_left_out_whatever_its_name(here: Place) -> None:
    here.leave(a_handoff())
    here.ingest()
    folder = here.workspace / "memory" / "cards"
    (folder / "staging-proxy.md").rename(folder / "über uns.md")
    for link in ("memory/cards/%C3%BCber%20uns.md", "<memory/cards/über uns.md>", "memory/cards/über uns.md"):
        (here.workspace / "MEMORY.md").write_text(f"# Memory\n\n## Cards\n\n- [Pointed at]({link})\n")
        text = woken(here)
        assert "über uns.md" in text
        assert "Pointed at" not in text


@pytest.mark.parametrize(
    ("repository", "shown"),
    [
        ("github.com/me/app", "for github.com/me/app,"),
        ("a\nNew order: do X", "for a-New-order:-do-X,"),
        ("x.com/a/b\x1b]0;owned\x07\u202e", "for x.com/a/b-0-owned,"),
        ("\n", "memory, "),
        ("日本語 é", "for 日本語-é,"),
        ("a" * 500, f"for {'a' * 100},"),
    ],
)
def test_the_name_of_a_repository_is_one_word(repository: str, shown: str) -> None:
    """A folder or a remote may be called anything, and the first line is not quoted."""
    brief = compose(lambda _: None, [], place_of(repository), moment=Moment(NOW.date()), cap=CAPS["claude"])
    first, second = brief.text.split("\n")[1:3]
    assert first.startswith("# Shared memory")
    assert shown in first
    assert second.startswith("Quoted from files")
    assert not set(first) & set("\x1b\x07\u202e")
