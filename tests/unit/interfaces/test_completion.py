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

from tests.support.helpers import PATIENCE, Place
from tests.support.programs import find, need
from truekeep.interfaces.cli.app import COMMANDS
from truekeep.interfaces.cli.scripts import RENDERED, places
from truekeep.interfaces.completion import SHELLS, find_values, read_script

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


def in_bash(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    ask = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _truekeep; printf "%s\n" "${COMPREPLY[@]}"'
    need("bash")
    program = f"{read_script('bash')}\n{ask}"
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
    for shell in SHELLS:
        assert read_script(shell) == RENDERED[shell](), "run `make docs`"


def test_every_command_is_completed() -> None:
    assert {place.path for place in places()} >= set(COMMANDS)


def test_bash_completes_commands_and_options(lived: Place) -> None:
    assert in_bash("truekeep", "rev") == ["review"]
    assert in_bash("truekeep", "review", "") == ["list", "show", "walk", "approve", "reject", "edit", "retry", "prune"]
    assert in_bash("truekeep", "search", "--sto") == ["--store"]
    assert in_bash("truekeep", "search", "--store", "t") == ["transcripts"]
    assert in_bash("truekeep", "search", "--store", "=", "t") == ["transcripts"]
    assert in_bash("truekeep", "wake", "--for", "c") == ["claude", "codex"]
    assert set(COMMANDS) == set(in_bash("truekeep", ""))


def test_bash_knows_a_value_from_a_command(lived: Place) -> None:
    """The value of an option may be called as a command is."""
    assert in_bash("truekeep", "-w", "review", "car") == ["card"]
    assert in_bash("truekeep", "handoff", "new", "--title", "list", "--ty") == ["--type"]


def test_bash_completes_names(lived: Place) -> None:
    assert in_bash("truekeep", "review", "approve", "") == ["doubtful-bad9e614c0", "queue-8ca4fdb2c0"]
    assert in_bash("truekeep", "review", "approve", "queue-8ca4fdb2c0", "d") == ["doubtful-bad9e614c0"]
    assert in_bash("truekeep", "card", "show", "sta") == ["staging-port", "staging-proxy"]
    assert in_bash("truekeep", "card", "write", "--update", "c") == ["carts"]
    assert in_bash("truekeep", "sync", "remove", "") == ["attic.example", "laptop"]
    assert in_bash("truekeep", "why", "memory/cards/c") == ["memory/cards/carts.md"]


def test_bash_asks_the_workspace_that_is_named(lived: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory" / "cards").mkdir(parents=True)
    (other / "memory" / "cards" / "elsewhere.md").write_text("x\n")
    assert in_bash("truekeep", "-w", str(other), "card", "show", "") == ["elsewhere"]
    assert in_bash("truekeep", "card", "show", "--workspace", str(tmp_path / "none"), "") == []


def test_bash_completes_files_and_folders(lived: Place, tmp_path: Path) -> None:
    (tmp_path / "archive.alf").touch()
    (tmp_path / "archives").mkdir()
    assert sorted(in_bash("truekeep", "alf", "show", "arch")) == ["archive.alf", "archives"]
    assert in_bash("truekeep", "-w", "arch") == ["archives"]


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
        ("why", "memory/cards/"),
        ("why", "$(touch owned)/"),
    ):
        in_bash("truekeep", *words)
    if find("fish"):
        in_fish("truekeep card show ")
    assert not list(tmp_path.glob("**/owned"))
    for kind in ("cards", "drafts", "memory"):
        assert all(name.replace("/", "").isascii() and " " not in name for name in find_values(kind))
    assert find_values("memory", "../") == find_values("memory", "/etc/") == []


def test_nothing_heavy_is_loaded_for_a_tab(lived: Place) -> None:
    program = (
        "import sys\nsys.argv[1:] = ['completion', '--values', 'cards', 'sta']\n"
        "from truekeep.__main__ import main\nmain()\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["staging-port", "staging-proxy"]
    loaded = set(done.stderr.split())
    assert not loaded & {"click", "apsw", "json", "tomllib", "subprocess", "pathlib"}
    assert {name for name in loaded if name.startswith("truekeep.")} == {
        "truekeep.__main__",
        "truekeep.interfaces",
        "truekeep.interfaces.completion",
        "truekeep.core",
        "truekeep.core.model",
    }
