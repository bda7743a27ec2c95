"""The command line as people and scripts meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from rich.text import Text
from tools.reference import render_reference, with_codes

from tests.support.helpers import CLAUDE, CODEX, Place, a_card, a_document_handoff, a_handoff, git_repo, run_cli
from tests.support.histories import History
from truekeep.interfaces.cli import app as cli_module
from truekeep.interfaces.cli.app import COMMANDS, RENAMED
from truekeep.interfaces.cli.table import Table, print_table, shorten
from truekeep.interfaces.cli.terminal import style
from truekeep.workspace.workspace import Workspace

ROOT = Path(__file__).parents[2]


def cli(place: Place, *arguments: str, cwd: Path | None = None, stdin: str = "", code: int = 0) -> str:
    done = run_cli(*arguments, cwd=cwd or place.repo, stdin=stdin, TRUEKEEP_WORKSPACE=str(place.workspace))
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    return done.stdout


def as_json(place: Place, *arguments: str, code: int = 0) -> Any:
    data = json.loads(cli(place, *arguments, "--json", code=code))
    assert data["schema"].startswith("truekeep.")
    return data


def test_the_main_flow(place: Place) -> None:
    git_repo(place.repo)
    out = cli(
        place, "handoff", "new", "--title", "Staging sits behind a proxy", "--fact", "Staging answers on port 8443 only"
    )
    assert "ingest will promote it to memory/cards/app-staging-sits-behind-a-proxy.md" in out
    assert "1 waiting in 1 inbox" in cli(place, "handoff", "list")
    assert ": ok, ingest will promote it" in cli(place, "handoff", "lint")
    place.leave("# doubt\n")
    out = cli(place, "ingest")
    counts = ["Processed 2", "Promoted 1", "Routed 0", "Review 1"]
    assert out.splitlines()[-5:] == [*counts, "next: truekeep review list"]
    assert cli(place, "ingest").splitlines() == ["Processed 0", "Promoted 0", "Routed 0", "Review 0", "NO_UPDATES"]
    assert "of today; updated" in cli(place, "card", "show", "app-staging-sits-behind-a-proxy").splitlines()[0]
    assert "not-a-handoff" in cli(place, "review", "list")
    assert "promoted" in cli(place, "history")
    assert "undo with: truekeep undo" in cli(place, "blame", "memory/cards/app-staging-sits-behind-a-proxy.md:3")
    assert "undone entry 2" in cli(place, "undo", "2")
    assert cli(place, "card", "list").splitlines() == ["0 cards"]


def test_people_read_local_times_and_json_has_utc(place: Place, set_zone: Callable[[str], None]) -> None:
    place.leave("# doubt\n")
    place.leave(a_handoff(), "2026-11-14-1000-proxy.md")
    place.ingest()  # at 2026-11-15 12:00 UTC
    set_zone("EAST-13")
    (draft,) = as_json(place, "review", "list")["drafts"]
    assert draft["received_at"] == "2026-11-15T12:00:00Z"
    assert "received 2026-11-16 01:00 (" in cli(place, "review", "show", draft["id"])
    done = run_cli("-w", str(place.workspace), "get", "memory/cards/staging-proxy.md")
    assert "0 claims" not in done.stderr
    assert "Z]" not in done.stderr


@pytest.mark.needs("bash")
def test_the_founding_wrapper_works(place: Place) -> None:
    """The counted lines are read by awk in scripts that people already have."""
    place.leave(a_handoff())
    script = """
    set -euo pipefail
    OUTPUT=$("$0" -m truekeep ingest --repo . --promote-cards --route-documents 2>&1)
    processed=$(printf '%s\\n' "$OUTPUT" | awk '/^Processed / {print $2}' | tail -1)
    promoted=$(printf '%s\\n' "$OUTPUT" | awk '/^Promoted / {print $2}' | tail -1)
    routed=$(printf '%s\\n' "$OUTPUT" | awk '/^Routed / {print $2}' | tail -1)
    echo "$processed $promoted $routed"
    """
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], cwd=place.repo, env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "1 1 0", done.stderr


def test_exit_codes(place: Place, tmp_path: Path) -> None:
    cli(place, "ingest", "--exit-code", code=10)
    place.leave("# doubt\n")
    cli(place, "ingest", "--exit-code", code=11)
    place.leave(a_handoff())
    cli(place, "ingest", "--exit-code", code=0)
    cli(place, "nonsense", code=2)
    cli(place, "undo", "99", code=3)
    cli(place, "ingest", "--repo", str(tmp_path / "none"), code=3)
    assert run_cli("ingest", TRUEKEEP_WORKSPACE=str(tmp_path)).returncode == 6
    done = run_cli("ingest", TRUEKEEP_WORKSPACE=str(place.workspace), TRUEKEEP_MACHINE_ID="another")
    assert done.returncode == 4
    assert "run it there" in done.stderr


def test_every_command_speaks_json(place: Place) -> None:
    place.leave("# doubt\n", "2026-11-14-0800-doubt.md")
    place.leave(a_handoff())
    assert as_json(place, "handoff", "lint", code=1)["ok"] is False
    assert len(as_json(place, "handoff", "list")["waiting"]) == 2
    assert as_json(place, "ingest", "--dry-run")["counts"]["promoted"] == 1
    assert as_json(place, "ingest")["processed"] == 2
    (card,) = as_json(place, "card", "list")["cards"]
    assert card["tags"] == ["proxy", "staging"]
    assert as_json(place, "card", "show", card["name"])["handoff"] == "2026-11-14-0900-proxy.md"
    (draft,) = as_json(place, "review", "list")["drafts"]
    assert as_json(place, "review", "show", draft["id"])["original_text"] == "# doubt\n"
    assert as_json(place, "history")["entries"][0]["handoff"]["title"] == "Staging sits behind a proxy"
    assert as_json(place, "blame", "MEMORY.md")["lines"][-1]["entry"]["entry"] == 2
    assert as_json(place, "review", "retry")["drafts"][0]["filed"] is False
    assert as_json(place, "review", "prune", "--dry-run")["drafts"] == []
    assert as_json(place, "review", "reject", draft["id"])["rejected"][0]["id"] == draft["id"]
    assert as_json(place, "undo", "2")["undone"] == 2
    assert as_json(place, "handoff", "lint", "--codes")["codes"]
    assert as_json(place, "init", str(place.workspace))["repeated"] is True
    assert as_json(place, "undo", "99", code=3)["error"]["code"] == "not-found"
    error = as_json(place, "handoff", "new", "--title", "x", "--card", "../x.md", code=3)["error"]
    assert {finding["code"] for finding in error["findings"]} >= {"bad-card-name"}


class TestLastChange:
    def test_undo_takes_back_the_last_change_and_then_the_one_before(self, place: Place) -> None:
        for name in ("one", "two"):
            place.leave(
                a_handoff(title=name, card=f"{name}.md", content=a_card(name, f"Port 80{len(name)} is {name}."))
            )
            place.ingest()
        assert cli(place, "undo", "--yes").startswith("undone entry 2;")
        assert cli(place, "undo", "--yes").startswith("undone entry 1;")
        cli(place, "undo", "--yes", code=3)

    def test_without_a_terminal_it_names_the_entry_and_changes_nothing(self, place: Place) -> None:
        place.leave(a_handoff())
        place.ingest()
        error = as_json(place, "undo", code=3)["error"]
        assert error["hint"] == "`truekeep undo 1` undoes it"
        assert len(as_json(place, "card", "list")["cards"]) == 1
        assert "would change" in cli(place, "undo", "--dry-run")


def test_help_is_that_of_the_command(place: Place) -> None:
    assert cli(place, "help", "review", "approve") == cli(place, "review", "approve", "--help")
    assert cli(place, "help") == cli(place, "--help")
    cli(place, "help", "nonsense", code=2)
    cli(place, "help", "status", "more", code=2)


def test_config(place: Place) -> None:
    assert "review_days is now 45 (was 30, the default)" in cli(place, "config", "set", "limits.review_days", "45")
    assert "limits.review_days     45" in cli(place, "config", "list")
    assert "default" in cli(place, "config", "list", "--all")
    assert cli(place, "config", "get", "limits.review_days") == "45\n"
    assert as_json(place, "config", "set", "limits.review_days", "x", code=3)["error"]["code"] == "bad-input"
    assert Path(cli(place, "config", "path").strip()).is_file()
    assert "is now 30, the default (was 45)" in cli(place, "config", "unset", "limits.review_days")
    cli(place, "config", "edit", code=3)  # no terminal


class TestInit:
    def test_a_pattern_that_the_shell_took_apart_makes_no_repository_a_workspace(self, tmp_path: Path) -> None:
        for name in ("api", "shop"):
            git_repo(tmp_path / "repos" / name)
        spilled = [str(tmp_path / "repos" / name) for name in ("api", "shop")]
        done = run_cli("init", "--repo", *spilled, cwd=tmp_path, HOME=str(tmp_path))
        assert done.returncode == 3
        assert "--repo '~/repos/*'" in done.stderr
        assert not (tmp_path / "repos" / "shop" / ".truekeep").exists()
        (tmp_path / "repos" / "shop" / "MEMORY.md").write_text("# Memory\n")  # now it is one that may be meant
        assert run_cli("init", "--repo", *spilled, cwd=tmp_path, HOME=str(tmp_path)).returncode == 0

    def test_a_stranger_is_told_what_comes_next(self, tmp_path: Path) -> None:
        git_repo(tmp_path / "repos" / "shop")
        notes = tmp_path / ".claude" / "projects" / "-repos-shop" / "memory"
        notes.mkdir(parents=True)
        before = run_cli("status", cwd=tmp_path, HOME=str(tmp_path))
        assert "`truekeep init`" in before.stdout
        done = run_cli("init", "--repo", "~/repos/*", "--repo", "~/repoz/*", cwd=tmp_path, HOME=str(tmp_path))
        assert "1 folder to scan" in done.stdout
        assert "~/repoz/*" in done.stderr
        assert "`truekeep connect`" in done.stdout
        assert "adopt" not in done.stdout.split("next: ")[1]
        (notes / "tabs.md").write_text("Tabs, never spaces.\n")
        other = run_cli("init", "other", "--repo", "~/repos/*", cwd=tmp_path, HOME=str(tmp_path))
        assert "`truekeep adopt claude`" in other.stdout


class TestNew:
    def test_from_standard_input(self, place: Place) -> None:
        out = cli(place, "handoff", "new", "--writer", "codex", stdin=a_document_handoff())
        assert str(place.repo / CODEX) in out
        (path,) = (place.repo / CODEX).glob("*.md")
        assert path.read_text() == a_document_handoff()

    def test_everything_by_options(self, place: Place) -> None:
        cli(
            place,
            "handoff",
            "new",
            "--title",
            "A: colon & [brackets]",
            "--type",
            "decision",
            "--summary",
            "Why it matters.",
            "--fact",
            "One",
            "--fact",
            "Two",
            "--evidence",
            "make test",
            "--card",
            "my-card",
            "--tag",
            "a b",
            "--tag",
            "c",
            "--category",
            "choices",
            "--content",
            "## Summary\nA heading of its own.\n\n- x",
        )
        cli(place, "ingest")
        card = json.loads(cli(place, "card", "show", "my-card", "--json"))
        assert (card["topic"], card["tags"], card["category"]) == ("A: colon & [brackets]", ["a b", "c"], "choices")
        assert "## Summary\nA heading of its own." in card["text"]

    def test_an_invalid_one_is_not_written(self, place: Place) -> None:
        done = run_cli(
            "handoff",
            "new",
            "--title",
            "x",
            "--document",
            "SOUL.md",
            cwd=place.repo,
            TRUEKEEP_WORKSPACE=str(place.workspace),
        )
        assert done.returncode == 3
        assert "bad-document" in done.stderr
        assert "no-content" in done.stderr
        assert place.waiting() == []

    def test_two_in_a_minute_do_not_collide(self, place: Place) -> None:
        for number in range(3):
            cli(
                place,
                "handoff",
                "new",
                "--title",
                "Same",
                "--card",
                f"c{number}",
                "--content",
                f"Fact {number} of this",
            )
        assert len(place.waiting()) == 3

    def test_a_title_alone_says_nothing(self, place: Place) -> None:
        done = run_cli("handoff", "new", "--title", "Staging", "-w", str(place.workspace), cwd=place.repo)
        assert done.returncode == 3
        assert "say what is to be known with --summary, --fact or --content" in done.stderr

    def test_without_a_workspace_on_a_producing_machine(self, tmp_path: Path) -> None:
        repo = git_repo(tmp_path / "repo")
        done = run_cli("handoff", "new", "--title", "A fact", "--fact", "Staging answers on 8443", cwd=repo)
        assert done.returncode == 0, done.stderr
        assert len(list((repo / CLAUDE).glob("*.md"))) == 1
        assert run_cli("handoff", "lint", cwd=repo).returncode == 0
        assert "1 waiting" in run_cli("handoff", "list", cwd=repo).stdout

    def test_the_inbox_is_never_reached_through_a_symlink(self, place: Place, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (place.repo / ".codex").symlink_to(outside)
        cli(place, "handoff", "new", "--writer", "codex", stdin=a_handoff(), code=3)
        assert list(outside.iterdir()) == []

    def test_the_running_harness_is_the_writer(self, place: Place) -> None:
        done = run_cli(
            "handoff",
            "new",
            cwd=place.repo,
            stdin=a_handoff(),
            CODEX_SANDBOX="x",
            TRUEKEEP_WORKSPACE=str(place.workspace),
        )
        assert CODEX in done.stdout


def test_help_fits_a_screen_and_gives_an_example(place: Place) -> None:
    for command in COMMANDS:
        out = cli(place, command, "--help")
        assert "Example: truekeep" in out, command
        assert len(out.splitlines()) <= 45, command
        assert max(map(len, out.splitlines())) <= 100, command


def test_the_reference_is_what_the_program_says() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == render_reference()


def test_every_code_is_documented() -> None:
    from truekeep.core import errors
    from truekeep.core.model import RULES

    text = (ROOT / "docs" / "operations.md").read_text()
    assert text == with_codes(text)
    for code in RULES:
        assert f"`{code}`" in text, code
    family = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TruekeepError)
    ]
    for kind in family:
        assert f"`{kind.code}`" in text or kind is errors.TruekeepError, kind.code


def test_an_old_command_name_leads_to_the_new_one() -> None:
    for old, new in RENAMED.items():
        done = run_cli(old, "x")
        assert (done.returncode, f"Did you mean `truekeep {new}`?" in done.stderr) == (2, True), old
        assert run_cli(*new.split(), "--help").returncode == 0
    assert "hook" not in run_cli("--help").stdout


HEAVY = ("numpy", "rich", "markdown_it", "starlette", "mcp", "httpx", "asyncio", "re2", "email", "http", "logging")
UNNEEDED = ("subprocess", "tempfile", "difflib")


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["--help"], ("apsw", "truekeep.workspace.workspace", *UNNEEDED, "tomllib", "json", "hashlib")),
        (["ingest"], (*UNNEEDED, "truekeep.handoffs.sync.mirror", "truekeep.handoffs.review")),
    ],
)
def test_starting_up_imports_little(place: Place, arguments: list[str], more: tuple[str, ...]) -> None:
    """Hooks run on every session of every agent."""
    program = (
        "import sys\nfrom truekeep.interfaces.cli.app import run\ncode = run(sys.argv[1:])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\nsys.exit(code)"
    )
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert not loaded & {*HEAVY, *more}


def test_a_search_of_a_ready_index_imports_little(place: Place) -> None:
    """Hybrid, in a new process: neither numpy nor anything that talks to a network."""
    (place.workspace / "memory/2026-11-14.md").write_text("The staging proxy answers on port 8443.\n")
    place.open().search.index()
    program = (
        "import sys\nfrom truekeep.interfaces.cli.app import run\ncode = run(sys.argv[1:])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\nsys.exit(code)"
    )
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    arguments = ["search", "which port does staging use", "--json"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment)
    assert '"mode": "hybrid"' in done.stdout
    assert "8443" in done.stdout
    loaded = set(done.stderr.split())
    assert not loaded & {*HEAVY, *UNNEEDED, "wordllama", "tokenizers", "watchfiles"}


@pytest.mark.needs("bash")
def test_output_to_a_closed_pipe_is_quiet(place: Place) -> None:
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    script = f"set -o pipefail; {sys.executable} -m truekeep handoff lint --codes | head -1"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_as_good_as_none(place: Place, closed: str) -> None:
    """Daemons and some shells close them. A file must not get their number: children would write into it."""
    place.leave(a_handoff())
    place.ingest()
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    for command in ("card list", "verify", "verify --list-claims -", "handoff new", "mcp"):
        script = f"{sys.executable} -m truekeep {command} {closed}"
        done = subprocess.run(
            ["sh", "-c", script], cwd=place.repo, env=environment, capture_output=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == (3 if command == "handoff new" else 0), (command, done.stderr)
    told = place.repo / "told"
    script = f'{sys.executable} -c \'import truekeep.__main__ as door; door.open_streams(); open("told", "w").write('
    script += f'str(open("told").fileno()))\' {closed}'
    subprocess.run(["sh", "-c", script], cwd=place.repo, stdin=subprocess.DEVNULL, check=True)
    assert int(told.read_text()) > 2


def test_a_hint_works_when_it_is_pasted(tmp_path: Path) -> None:
    wanted = tmp_path / "my memory"
    done = run_cli("ingest", "-w", str(wanted), cwd=tmp_path)
    assert f"`truekeep init '{wanted}'`" in done.stderr


def test_a_pattern_that_no_configuration_can_hold_makes_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"truekeep", b"init", os.fsencode(tmp_path / "w"), b"--repo", b"/r\xff/*"],
        capture_output=True,
    )
    assert (done.returncode, b"not UTF-8" in done.stderr) == (3, True)
    assert not (tmp_path / "w").exists()


def test_stopped_by_hand_is_told_in_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_module, "cli", stop)
    assert cli_module.run(["ingest", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "stopped"
    assert cli_module.run(["ingest"]) == 130
    assert "stopped" in capsys.readouterr().err


STOPPED_WHILE_LOADING = """
import importlib.abc, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
class Stop(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[0]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.argv = sys.argv[1:]
sys.meta_path.insert(0, Stop())
from truekeep.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("truekeep.interfaces.cli.app", "status"),
        ("click", "status"),
        ("truekeep.interfaces.cli.status", "status"),
        ("truekeep.interfaces.cli.search", "search", "staging"),
        ("truekeep.interfaces.hooks", "hook", "claude", "SessionStart"),
    ],
)
def test_stopped_by_hand_while_it_is_loaded(place: Place, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_LOADING, *arguments],
        capture_output=True, text=True, cwd=place.repo, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert done.stderr.lstrip().startswith("stopped; nothing is lost")


def test_stopped_by_hand_when_all_is_done(place: Place) -> None:
    script = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); leave = sys.exit\n"
        "def stop(status):\n    os.kill(os.getpid(), signal.SIGINT)\n    leave(status)\n"
        "sys.exit = stop\nfrom truekeep.__main__ import main; main()"
    )
    command = [sys.executable, "-c", script, "status", "--json", "-w", str(place.workspace)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place.repo)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"].startswith("truekeep.status/")


def test_terminal_codes_never_reach_the_terminal(place: Place) -> None:
    place.leave(a_handoff(title="\x1b]0;owned\x07\x1b[31mred"), "2026-11-14-0900-\x1b[2J.md")
    for command in (["handoff", "list"], ["handoff", "lint"], ["ingest"], ["review", "list"], ["history"]):
        done = run_cli(*command, cwd=place.repo, TRUEKEEP_WORKSPACE=str(place.workspace))
        assert "\x1b" not in done.stdout + done.stderr, command


def test_names_and_texts_that_are_not_utf8_are_told(place: Place) -> None:
    """A memory file of such a name was in no list, and to ask for it was a bug; a text was written with marks in it."""
    name = os.fsdecode(b"memory/cards/bad\xff.md")
    (place.workspace / "memory/cards").mkdir(parents=True, exist_ok=True)
    (place.workspace / name).write_text(a_card())
    for command in (["card", "show"], ["card", "confirm"], ["blame"], ["history"]):
        done = run_cli(*command, name, cwd=place.repo, TRUEKEEP_WORKSPACE=str(place.workspace))
        assert (done.returncode, "not UTF-8" in done.stderr) == (3, True), (command, done.stderr)
    done = run_cli("doctor", cwd=place.repo, TRUEKEEP_WORKSPACE=str(place.workspace))
    assert done.returncode == 1
    assert r"memory/cards/bad\xff.md" in done.stdout
    for command in (["note", "log"], ["checkpoint"]):
        for said in (b"x\xff", b"x" * 4_000_001):
            told = subprocess.run(
                [sys.executable, "-m", "truekeep", *command, "-w", str(place.workspace)],
                input=said, capture_output=True, cwd=place.repo,
            )  # fmt: skip
            assert (told.returncode, b"nothing was written" in told.stderr) == (3, True), told.stderr
    assert not list((place.workspace / "memory").glob("2026-*.md"))


def test_no_part_of_memory_speaks_to_the_terminal(place: Place) -> None:
    """Frontmatter that a person or a sync tool wrote, state files, names of repositories and of drafts' originals."""
    code = "\x1b]0;owned\x07\x9b31m\u202e"
    cards = place.workspace / "memory/cards"
    cards.mkdir(parents=True, exist_ok=True)
    front = f"topic: A {code}\ntags: [t{code}]\nupdated: 2026-11-01\nrepository: r{code}\nwriter: w{code}"
    for name in ("a.md", f"b{code}.md"):
        (cards / name).write_text(f"---\n{front}\n---\n\nText {code} of `src/x{code}.py`.\n")
    (place.workspace / "HEARTBEAT.md").write_text(f"## Now\n\nBusy {code}\n")
    place.leave("# doubt\n")
    cli(place, "ingest")
    (draft,) = place.drafts()
    draft.write_text(draft.read_text().replace("original: ", f'original: "{code}" # ', 1))
    git_repo(place.repo, remote=f"https://example.com/me/app{code}.git")
    for command in (
        ["card", "show", "a"], ["card", "show", f"b{code}"], ["card", "list"], ["note", "heartbeat"], ["wake"],
        ["status"],
        ["review", "list"], ["review", "show", draft.stem], ["review", "reject", draft.stem], ["undo", "2"],
        ["search", "text"], ["resolve", "text"], ["verify", "--all"], ["blame", "memory/cards/a.md"], ["doctor"],
        ["init", str(place.base / f"w{code}")],
    ):  # fmt: skip
        done = run_cli(*command, cwd=place.repo, TRUEKEEP_WORKSPACE=str(place.workspace))
        assert done.returncode in (0, 1), (command, done.stderr)
        assert not set(code) & set("\x1b\x07\x9b\u202e") & set(done.stdout + done.stderr), command


# --- What happened besides -------------------------------------------------------------------------------------------

WRITING = {
    "confirm": ("card", "confirm", "staging-proxy"),
    "write": ("card", "write", "--topic", "Gateway limits", "--file", "NOTE"),
    "drop": ("card", "drop", "staging-proxy", "--reason", "gone", "--yes"),
    "correction": ("note", "correction", "add", "pushed to main", "--instead", "open a pull request"),
    "gating": ("note", "gating", "add", "--when", "before a release", "--do", "run the smoke test"),
    "log": ("note", "log", "ran the tests"),
    "decide": ("note", "decision", "Keep the old lexer"),
    "decay": ("tidy", "decay", "--fix"),
    "reconcile": ("reconcile", "--fix"),
    "ingest": ("ingest",),
}  # fmt: skip


@pytest.mark.parametrize("command", WRITING.values(), ids=WRITING)
def test_a_ledger_that_was_damaged_is_told_by_whoever_sets_it_aside(place: Place, command: tuple[str, ...]) -> None:
    place.leave(a_handoff())
    place.ingest()
    (place.workspace / "MEMORY.md").write_text("# Memory\n\n- [Gone](memory/cards/gone.md)\n")
    (place.base / "note.md").write_text("The gateway rejects uploads over 64 MB, because the proxy buffers them.\n")
    arguments = [str(place.base / "note.md") if item == "NOTE" else item for item in command]
    ledger, card = place.workspace / ".truekeep" / "ledger.sqlite", place.workspace / "memory/cards/staging-proxy.md"
    said = card.read_bytes()
    for more in ([], ["--json"]):
        card.write_bytes(said)
        ledger.write_bytes(b"junk\n")
        for old in ledger.parent.glob("ledger.sqlite?*"):
            old.unlink()
        done = run_cli(*arguments, *more, "-w", str(place.workspace))
        if done.returncode == 7:  # it reads first: nothing was set aside
            assert "truekeep doctor --fix" in done.stderr + done.stdout
            assert ledger.read_bytes() == b"junk\n"
            continue
        assert done.returncode == 0, done.stderr
        (kept,) = ledger.parent.glob("ledger.sqlite.damaged-*")
        assert done.stderr.count("the ledger was damaged") == 1
        assert kept.name in done.stderr
        if more:
            assert kept.name in json.loads(done.stdout)["notices"][0]
    run_cli("doctor", "--fix", "-w", str(place.workspace))
    again = run_cli(*arguments, "-w", str(place.workspace))
    assert "damaged" not in again.stderr


@pytest.mark.parametrize("command", [("reconcile",), ("history",), ("blame", "MEMORY.md"), ("tidy", "duplicates")])
def test_a_damaged_ledger_has_its_own_code_and_names_the_doctor(place: Place, command: tuple[str, ...]) -> None:
    (place.workspace / ".truekeep" / "ledger.sqlite").write_bytes(b"junk\n")
    done = run_cli(*command, "--json", "-w", str(place.workspace))
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (7, "ledger-damaged")
    assert "truekeep doctor --fix" in error["hint"]
    assert run_cli("doctor", "--fix", "-w", str(place.workspace)).returncode == 0
    assert run_cli(*command, "-w", str(place.workspace)).returncode == 0


def test_the_schedule_writes_down_that_the_ledger_was_damaged(place: Place) -> None:
    (place.workspace / ".truekeep" / "ledger.sqlite").write_bytes(b"junk\n")
    done = run_cli("schedule", "run", "-w", str(place.workspace))
    assert "the ledger was damaged" in done.stderr
    log = (place.workspace / ".truekeep" / "logs" / "schedule.log").read_text()
    assert "the ledger was damaged" in log


NO_ROOM = """
import errno, sys
import apsw
import truekeep.workspace.cards
from truekeep.interfaces.cli.app import run
error = {"full": apsw.FullError("database or disk is full"), "io": apsw.IOError("disk I/O error"),
         "space": OSError(errno.ENOSPC, "No space left on device", "x"), "quota": OSError(errno.EDQUOT, "Quota", "x"),
         "corrupt": apsw.CorruptError("malformed")}[sys.argv[1]]
def fail(*_, **__):
    raise error
truekeep.workspace.cards.Cards.all = fail
sys.exit(run(["card", "list", "-w", sys.argv[2]]))
"""


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("full", "free some disk space"),
        ("io", "free some disk space"),
        ("space", "free some disk space"),
        ("quota", "free some disk space"),
        ("corrupt", "truekeep doctor --fix"),
    ],
)
def test_a_full_disk_says_to_make_room(place: Place, what: str, hint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, what, str(place.workspace)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert hint in done.stderr
    assert "truekeep ingest" not in done.stderr


def test_errors_of_the_disk_have_their_own_hints() -> None:
    import errno

    import apsw

    from truekeep.core.errors import hint_for

    for full in (apsw.FullError("x"), apsw.IOError("x"), OSError(errno.ENOSPC, "x"), OSError(errno.EDQUOT, "x")):
        assert "free some disk space" in hint_for(full)
    for damaged in (apsw.CorruptError("x"), apsw.NotADBError("x")):
        assert "truekeep doctor --fix" in hint_for(damaged)
    assert "free some disk space" not in hint_for(PermissionError(errno.EACCES, "x"))


# --- Tables ---------------------------------------------------------------------------------------------------------


def test_a_table_fits_the_terminal_and_keeps_every_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = "verify-carts-expire-after-48-hours-by-cart-hours-321ca5cde0"
    rows = [[draft, "0 d", "claude", "git.example/acme/shop", "refuted, same-topic"]]
    headers = ["draft", "age", "writer", "repository", "reasons"]
    print_table(Table(headers, rows))
    assert capsys.readouterr().out.splitlines()[1] == "  ".join(rows[0])  # whole where no terminal cuts it
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for columns in (100, 80, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table(Table(headers, rows))
        head, row = click.unstyle(capsys.readouterr().out).splitlines()
        assert max(len(head), len(row)) <= columns
        assert "reasons" in head
        assert "refuted" in row
        name = row.partition("  ")[0]
        assert "…" in name
        assert draft.startswith(name.partition("…")[0])
        assert draft.endswith(name.partition("…")[2])


def test_prose_loses_its_end_and_names_their_middle() -> None:
    for text, width, shown in (
        ("what it says in many words", 12, "what it say…"),
        ("memory/cards/staging-proxy.md", 15, "memory/…roxy.md"),
        ("short", 15, "short"),
        ("日本語のカード", 9, "日本語の…"),
    ):
        assert shorten(Text(text), width).plain == shown


def test_a_column_that_must_stay_whole_is_not_shortened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "44")
    print_table(Table(["note", "when", "file"], [["n" * 60, "2026-11-18 05:34", "f" * 60]], whole=(1,)))
    note, when, file = click.unstyle(capsys.readouterr().out).splitlines()[1].split("  ")
    assert when == "2026-11-18 05:34"
    assert "…" in note
    assert "…" in file


def test_styled_cells_are_aligned_and_plain_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(["verb", "file"], [[style("undone", fg="magenta"), "a.md"], ["promoted", "b\x1b[2J.md"]]))
    assert capsys.readouterr().out.splitlines() == ["verb      file", "undone    a.md", "promoted  b\\x1b[2J.md"]


def test_the_beginning_of_a_cards_name_will_do_for_looking_at_it(place: Place) -> None:
    cards = place.workspace / "memory/cards"
    cards.mkdir(parents=True, exist_ok=True)
    for name in ("carts-are-kept", "proxy-port", "proxy-host", "proxy"):
        (cards / f"{name}.md").write_text(a_card(topic=name, body=f"About {name}."))
    for wanted in ("carts", "memory/cards/carts", "carts-are-kept.md"):
        assert "About carts-are-kept." in cli(place, "card", "show", wanted)
    assert "About proxy." in cli(place, "card", "show", "proxy")  # a whole name is that card
    several = run_cli("-w", str(place.workspace), "card", "show", "proxy-")
    assert (several.returncode, several.stdout) == (3, "")
    assert "did you mean proxy-host.md, proxy-port.md?" in " ".join(several.stderr.split())
    for command in (["confirm"], ["drop", "--yes", "--reason", "old"]):
        refused = run_cli("-w", str(place.workspace), "card", *command, "carts")
        assert refused.returncode == 3
        assert "did you mean carts-are-kept.md?" in " ".join(refused.stderr.split())
    assert len(place.cards()) == 4


@pytest.mark.parametrize("arguments", [[], ["review"], ["card"]])
def test_without_a_command_the_help_is_the_answer(arguments: list[str]) -> None:
    """`truekeep | less` was an empty page."""
    done = run_cli(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run_cli(*arguments, "--help").stdout
    assert done.stdout.startswith("Usage: truekeep")


def test_init_says_what_it_found_in_an_old_workspace(tmp_path: Path) -> None:
    old = tmp_path / "old"
    for path in (
        "MEMORY.md",
        "TOOLS.md",
        "rules/a.md",
        "memory/cards/a.md",
        "memory/cards/b.md",
        "memory/2026-01-02.md",
    ):
        (old / path).parent.mkdir(parents=True, exist_ok=True)
        (old / path).write_text("# x\n")
    told = run_cli("init", str(old), cwd=tmp_path, HOME=str(tmp_path)).stdout
    assert "already there and not changed: 2 cards, 1 log, 2 documents" in told
    assert "`truekeep status` to see the health of this memory" in told
    again = run_cli("init", str(old), "--json", cwd=tmp_path, HOME=str(tmp_path)).stdout
    assert json.loads(again)["found"] == {"cards": 2, "logs": 1, "documents": 2}
    new = run_cli("init", str(tmp_path / "new"), cwd=tmp_path, HOME=str(tmp_path)).stdout
    assert "found there" not in new
    assert "truekeep status" not in new


def test_equal_alarms_of_verify_are_shown_once(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    history = History()
    notes = {f"notes/{number}.md": "Run `scripts/mail.py` first.\n" for number in range(7)}
    history.commit("2026-01-05", {"scripts/mail.py": "def send():\n    return 1\n", **notes})
    history.commit("2026-01-09", renames={"scripts/mail.py": "scripts/post.py"})
    history.write(root)
    Workspace.init(root)
    told = run_cli("verify", "-w", str(root)).stdout
    assert told.count("scripts/mail.py") == 1
    assert "scripts/mail.py, 7 places" in told
    assert "also notes/1.md:1, notes/2.md:1, notes/3.md:1, notes/4.md:1 and 2 more" in told
    assert run_cli("verify", "--all", "-w", str(root)).stdout.count("scripts/mail.py") == 7
