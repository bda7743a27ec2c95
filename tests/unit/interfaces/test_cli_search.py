"""`truekeep search` on the command line: what it prints, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.helpers import Place
from truekeep.core.file_io import read_head

HEAVY = {"numpy", "rich", "httpx", "watchfiles"}


def tell(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    command = [sys.executable, "-m", "truekeep", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture
def asked(place: Place) -> Place:
    (place.workspace / "memory/2026-11-14.md").write_text("# Ports\n\nThe staging proxy answers on port 8443.\n")
    place.open().search.index()
    return place


def test_a_search_loads_nothing_heavy(asked: Place) -> None:
    program = (
        "import sys\nfrom truekeep.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    arguments = ["search", "-w", str(asked.workspace), "which port does staging use"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert "8443" in done.stdout
    assert not set(done.stderr.split()) & HEAVY


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
    assert tell(asked, "search", "toads", "-n", "1").stdout.split("\n")[1] == " ▸ # Toads"  # which says it already
    hits = json.loads(tell(asked, "search", "yak sweep", "-n", "1", "--json").stdout)["hits"]
    assert [(hit["topic"], hit["heading"]) for hit in hits] == [("Yaks of the shop", "Sweep")]


def test_a_topic_is_not_read_through_a_link_or_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("---\ntopic: Outside\n---\n")
    (tmp_path / "link.md").symlink_to("outside.md")
    os.mkfifo(tmp_path / "pipe.md")
    heads = [read_head(tmp_path / name, 100) for name in ("outside.md", "link.md", "pipe.md", ".", "none.md")]
    assert [bool(head) for head in heads] == [True, False, False, False, False]
