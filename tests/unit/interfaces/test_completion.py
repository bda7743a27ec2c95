"""Completion in the shells themselves: what bash, zsh and fish make of a half-typed line."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.reference import COMPLETION_FILES

from tests.support.helpers import PATIENCE, Place
from tests.support.programs import find, need
from truekeep.interfaces.cli.app import VISIBLE, cli
from truekeep.interfaces.cli.completion import SHELLS, render_script

HOSTILE = ("$(touch owned).md", "`touch owned`.md", "a b.md", "-rf.md", "x;touch owned.md", "é.md", "new\nline.md")


@pytest.fixture
def lived(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A workspace with cards, drafts and a route, some of them named by somebody who means harm; and `truekeep`."""
    cards, drafts = place.workspace / "memory" / "cards", place.workspace / "memory" / "handoff-inbox"
    for name in ("staging-proxy.md", "staging-port.md", "carts.md", *HOSTILE):
        (cards / name).write_text("x\n")
    for name in ("doubtful-bad9e614c0.md", "queue-8ca4fdb2c0.md", *HOSTILE):
        (drafts / name).write_text("x\n")
    (place.workspace / ".truekeep" / "sync.toml").write_text(
        '[laptop]\nvia = "git"\n\n["attic.example"]\nvia = "git"\n'
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "truekeep").write_text(f'#!/bin/sh\nexec {sys.executable} -m truekeep "$@"\n')
    (programs / "truekeep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    monkeypatch.chdir(tmp_path)
    return place


def read_script(shell: str) -> str:
    return render_script(cli, shell)


def in_bash(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    ask = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _truekeep_completion truekeep; printf "%s\n" "${COMPREPLY[@]}"'
    need("bash")
    program = f'compopt() {{ echo "$2"; }}\n{read_script("bash")}\n{ask}'
    return _offered(["bash", "--norc", "-c", program, "bash", *words])


def in_fish(line: str) -> list[str]:
    need("fish")
    script = f"{read_script('fish')}\ncomplete -C '{line}'"
    return [line.partition("\t")[0] for line in _offered(["fish", "--no-config", "-c", script])]


def _offered(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert not done.stderr
    return [line for line in done.stdout.splitlines() if line]


SETUP = {
    "zsh": """
PS1='> '; autoload -U compinit; compinit -u -D
source {folder}/script
show() {{ print -r -- "$BUFFER" > {folder}/shown.new; mv {folder}/shown.new {folder}/shown }}
zle -N show; bindkey '^X' show
""",
    "bash": """
PS1='> '; bind 'set bell-style none'
source {folder}/script
show() {{ printf '%s\\n' "$READLINE_LINE" > {folder}/shown.new; mv {folder}/shown.new {folder}/shown; }}
bind -x '"\\C-x": show'
""",
}
BARE = {"zsh": ["zsh", "-f", "-i"], "bash": ["bash", "--norc", "--noprofile", "-i"]}


def in_terminal(shell: str, line: str, folder: Path) -> str:
    """The line that a shell has after Tab, in a terminal."""
    need(shell)
    (folder / "script").write_text(read_script(shell))
    (folder / "setup").write_text(SETUP[shell].format(folder=folder) + f"touch {folder}/ready\n")
    pid, terminal = pty.fork()
    if not pid:
        os.execvp(shell, BARE[shell])
    try:
        os.write(terminal, f"source {folder}/setup\n".encode())
        _until(terminal, (folder / "ready").exists)
        os.write(terminal, f"{line}\t\x18".encode())
        _until(terminal, (folder / "shown").exists)
        return (folder / "shown").read_text().rstrip("\n")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def _until(terminal: int, is_done: Callable[[], bool]) -> None:
    """Read what the shell prints, so that it goes on, until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < deadline, "the shell does not answer"
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65_536)


def test_the_scripts_are_up_to_date() -> None:
    folder = Path(__file__).parents[3] / "completions"
    for shell in SHELLS:
        assert (folder / COMPLETION_FILES[shell]).read_text() == read_script(shell), "run `make docs`"


def test_bash_completes_commands_and_options(lived: Place) -> None:
    assert in_bash("truekeep", "rev") == ["review"]
    review = ["approve", "assign", "edit", "list", "prune", "reject", "retry", "show", "walk"]
    assert sorted(in_bash("truekeep", "review", "")) == review
    assert in_bash("truekeep", "search", "--sto") == ["--store"]
    assert in_bash("truekeep", "search", "--store", "t") == ["transcripts"]
    assert in_bash("truekeep", "wake", "--for", "c") == ["claude", "codex"]
    assert set(in_bash("truekeep", "")) == set(VISIBLE)


def test_bash_knows_a_value_from_a_command(lived: Place) -> None:
    """The value of an option may be called as a command is."""
    assert in_bash("truekeep", "-w", "review", "car") == ["card"]
    assert in_bash("truekeep", "handoff", "new", "--title", "list", "--ty") == ["--type"]


@pytest.mark.slow
def test_bash_completes_names(lived: Place) -> None:
    assert in_bash("truekeep", "review", "approve", "") == ["doubtful-bad9e614c0", "queue-8ca4fdb2c0"]
    assert in_bash("truekeep", "review", "approve", "queue-8ca4fdb2c0", "d") == ["doubtful-bad9e614c0"]
    assert in_bash("truekeep", "card", "show", "sta") == ["staging-port", "staging-proxy"]
    assert in_bash("truekeep", "card", "write", "--update", "c") == ["carts"]
    assert in_bash("truekeep", "sync", "remove", "") == ["attic.example", "laptop"]
    assert in_bash("truekeep", "blame", "memory/cards/c") == ["memory/cards/carts.md"]


def test_bash_asks_the_workspace_that_is_named(lived: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory" / "cards").mkdir(parents=True)
    (other / "memory" / "cards" / "elsewhere.md").write_text("x\n")
    assert in_bash("truekeep", "-w", str(other), "card", "show", "") == ["elsewhere"]
    assert in_bash("truekeep", "card", "show", "--workspace", str(tmp_path / "none"), "") == []


def test_bash_completes_files_and_folders(lived: Place) -> None:
    assert in_bash("truekeep", "alf", "show", "arch") == ["default"]  # what bash completes by default: files
    assert in_bash("truekeep", "-w", "arch") == ["dirnames"]


def test_fish_completes(lived: Place) -> None:
    assert "review" in in_fish("truekeep rev")
    assert in_fish("truekeep review approve ") == ["doubtful-bad9e614c0", "queue-8ca4fdb2c0"]
    assert in_fish("truekeep card show stag") == ["staging-port", "staging-proxy"]
    assert in_fish("truekeep search --store t") == ["transcripts"]
    assert "--verified" in in_fish("truekeep search --veri")


@pytest.mark.parametrize("shell", SETUP)
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("truekeep rev", "truekeep review "),
        ("truekeep search --verif", "truekeep search --verified "),
        ("truekeep search --store tr", "truekeep search --store transcripts "),
        ("truekeep review approve doub", "truekeep review approve doubtful-bad9e614c0 "),
        ("truekeep card show sta", "truekeep card show staging-p"),
    ],
)
def test_tab_in_a_terminal(lived: Place, tmp_path: Path, shell: str, line: str, completed: str) -> None:
    assert in_terminal(shell, line, tmp_path) == completed


def test_no_name_is_taken_for_a_command(lived: Place, tmp_path: Path) -> None:
    for words in (
        ("card", "show", ""),
        ("review", "approve", ""),
        ("blame", "memory/cards/"),
        ("blame", "$(touch owned)/"),
    ):
        in_bash("truekeep", *words)
    if find("fish"):
        in_fish("truekeep card show ")
    assert not list(tmp_path.glob("**/owned"))
    for words in (("card", "show", ""), ("review", "approve", ""), ("blame", "memory/cards/")):
        assert all(name.replace("/", "").isascii() and " " not in name for name in in_bash("truekeep", *words))
    assert in_bash("truekeep", "blame", "../") == in_bash("truekeep", "blame", "/etc/") == []


def test_nothing_heavy_is_loaded_for_a_tab(lived: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys\nfrom truekeep.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    monkeypatch.setenv("_TRUEKEEP_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "truekeep\nrev")
    monkeypatch.setenv("COMP_CWORD", "1")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain,review"]
    assert not set(done.stderr.split()) & {"apsw", "numpy", "rich", "truekeep.workspace.workspace"}
