"""The door of a search: what it reads is what the command line would have read, and nothing else is read there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import Place
from truekeep.core.file_io import read_head
from truekeep.interfaces.cli import search as command
from truekeep.interfaces.cli.app import run
from truekeep.interfaces.fast_search import STANDINGS, STORES, SearchArguments, parse_search

HEAVY = ("click", "numpy", "inspect", "uuid", "platform", "difflib", "truekeep.interfaces.cli.app")


def read_by_the_command_line(arguments: list[str]) -> SearchArguments | None:
    """What the command line hands on; None where it shows something else instead."""
    read: list[SearchArguments] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "answer", read.append)
        run(arguments)
    return read[0] if read else None


@pytest.mark.parametrize(
    "line",
    [
        "search staging port",
        "-w here search staging",
        "--workspace here search staging -w there",
        "search -n 3 staging --json port --explain",
        "search --limit=1000 staging --store cards --store=logs --verified",
        "search staging --since 30d --repo paylane --verdict refuted --repo other",
    ],
)
def test_the_usual_forms_are_read_as_the_command_line_reads_them(line: str) -> None:
    read = parse_search(line.split())
    assert read is not None
    assert read == read_by_the_command_line(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "search",
        "search --json",
        "search --help",
        "search staging -h",
        "search -n 0 staging",
        "search -n 1001 staging",
        "search -n three staging",
        "search -n3 staging",
        "search staging -n",
        "search staging --store attic",
        "search staging --verdict maybe",
        "search staging --ranking openclaw --mmr 0.7",
        "search -- --staging",
        "search - staging",
        "search staging --jso",
        "search staging --json=1",
        "--json search staging",
        "--help search staging",
        "get search staging",
        "-w search staging",
        "transcripts search staging",
    ],
)
def test_all_else_is_left_to_the_command_line(line: str) -> None:
    assert parse_search(line.split()) is None


PIECES = (
    "search get -w --workspace --workspace=here here -n --limit --limit=2 2 0 1001 --store --store=cards --verdict "
    "--json --explain --verified --since 30d --repo --repo= --ranking openclaw - -- -x --mmr staging -h"
)


@given(
    arguments=st.lists(st.sampled_from([*PIECES.split(), *STORES, *STANDINGS, "", "a b"]), max_size=8),
    is_search=st.booleans(),
)
def test_it_never_reads_anything_but_what_the_command_line_would(arguments: list[str], is_search: bool) -> None:
    arguments = ["search", *arguments] if is_search else arguments
    read = parse_search(arguments)
    if read is not None:
        assert read == read_by_the_command_line(arguments)


def tell(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    command = [sys.executable, "-m", "truekeep", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture
def asked(place: Place) -> Place:
    (place.workspace / "memory/2026-11-14.md").write_text("# Ports\n\nThe staging proxy answers on port 8443.\n")
    place.open().search.index()
    return place


@pytest.mark.parametrize(
    "options", [[], ["--explain"], ["--json"], ["--since", "never"], ["--since", "never", "--json"]]
)
def test_both_doors_answer_alike(
    asked: Place, options: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(asked.workspace))
    arguments = ["search", "which prot does staging use", *options]
    assert parse_search(arguments) is not None
    done = tell(asked, *arguments)
    capfd.readouterr()
    code = run(arguments)
    shown = capfd.readouterr()
    assert (done.stdout, done.stderr, done.returncode) == (shown.out, shown.err, code)
    assert "never" in options or "8443" in done.stdout


def test_a_search_loads_no_command_line(asked: Place) -> None:
    program = (
        "import sys\nfrom truekeep.interfaces.fast_search import answer, parse_search\n"
        "answer(parse_search(sys.argv[1:]))\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    arguments = ["search", "-w", str(asked.workspace), "which port does staging use"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert "8443" in done.stdout
    assert not set(done.stderr.split()) & set(HEAVY)


def test_what_goes_wrong_is_said_by_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "truekeep", "search", "-w", str(tmp_path), "anything"]
    plain = subprocess.run(command, capture_output=True, text=True)
    assert (plain.returncode, plain.stdout) == (6, "")
    assert plain.stderr.startswith(f"truekeep: {tmp_path} is not a truekeep workspace\n")
    data = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert data.returncode == 6
    assert '"code": "bad-setup"' in data.stdout


@pytest.mark.needs("bash")
def test_a_reader_that_leaves_early_is_no_failure(asked: Place) -> None:
    script = f"set -o pipefail; {sys.executable} -m truekeep search -w {asked.workspace} staging -n 9 | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


FILLING = "".join(f"Line {number} says nothing of interest to anybody at all.\n" for number in range(80))


def test_a_hit_names_what_its_file_is_about(asked: Place) -> None:
    cards = asked.workspace / "memory/cards"
    cards.mkdir(parents=True, exist_ok=True)
    head = "---\ntopic: {}\ntags: [cart]\n---\n"
    (cards / "plain.md").write_text(head.format("How long carts are kept") + "Redis holds zebras for 30 days.\n")
    (cards / "headed.md").write_text(
        head.format("Yaks of the shop") + f"{FILLING}## Sweep\n\n{FILLING}The yak sweep runs.\n"
    )
    (cards / "same.md").write_text(head.format("Lamps") + f"{FILLING}# The lamps\n\n{FILLING}Lamplight is yellow.\n")
    (cards / "bare.md").write_text("# Toads\n\nToads are green.\n")
    lines = tell(asked, "search", "zebras", "-n", "1").stdout.split("\n")
    assert lines[1] == "   How long carts are kept"
    assert tell(asked, "search", "yak sweep", "-n", "1").stdout.split("\n")[1] == "   Yaks of the shop › Sweep"
    assert tell(asked, "search", "lamplight", "-n", "1").stdout.split("\n")[1] == "   The lamps"
    assert tell(asked, "search", "toads", "-n", "1").stdout.split("\n")[1] == "   Toads"
    hits = json.loads(tell(asked, "search", "yak sweep", "-n", "1", "--json").stdout)["hits"]
    assert [(hit["topic"], hit["heading"]) for hit in hits] == [("Yaks of the shop", "Sweep")]


def test_a_topic_is_not_read_through_a_link_or_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("---\ntopic: Outside\n---\n")
    (tmp_path / "link.md").symlink_to("outside.md")
    os.mkfifo(tmp_path / "pipe.md")
    heads = [read_head(tmp_path / name, 100) for name in ("outside.md", "link.md", "pipe.md", ".", "none.md")]
    assert [bool(head) for head in heads] == [True, False, False, False, False]
