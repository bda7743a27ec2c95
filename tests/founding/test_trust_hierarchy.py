"""The second document, "The trust hierarchy": a memory and an instruction file conflict; the file wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.helpers import Place
from tests.support.upkeep_place import REPOSITORY, point_at_all, upkeep, with_instructions, write_card

RULES = """\
# Instructions

- Use pnpm, not npm.
- Indent with tabs.
- Never push directly to main.
- Run with LOG_LEVEL=debug.
"""
OPPOSITES = [
    ("pnpm", "Use npm, not pnpm.", 3),
    ("indent", "Indent with spaces.", 4),
    ("pushing", "Push directly to main.", 5),
    ("logs", "Run with LOG_LEVEL=info.", 6),
]


@pytest.mark.parametrize(("name", "body", "line"), OPPOSITES)
def test_an_instruction_of_the_repository_wins(place: Place, name: str, body: str, line: int) -> None:
    """A memory and a CLAUDE.md instruction conflict. CLAUDE.md wins."""
    with_instructions(place, RULES)
    write_card(place, name, body, repository=REPOSITORY)
    point_at_all(place)
    (item,) = upkeep(place).reconcile().found
    assert (item.rule, item.winner) == ("memory-instructions", "instructions")
    assert item.other == f"{REPOSITORY}/CLAUDE.md:{line}"


@pytest.mark.parametrize(("name", "body", "line"), OPPOSITES)
def test_resolve_believes_the_instruction_file(place: Place, name: str, body: str, line: int) -> None:
    """CLAUDE.md is the user's durable instruction. Memory is your earlier observation. CLAUDE.md wins."""
    with_instructions(place, RULES)
    write_card(place, name, body, repository=REPOSITORY)
    with place.open() as workspace:
        told = workspace.verification.resolve(body.rstrip("."))
    assert told.winner == f"{REPOSITORY}/CLAUDE.md:{line}"


@pytest.mark.parametrize("file", [".claude/CLAUDE.md", ".codex/AGENTS.md"])
def test_an_instruction_of_the_user_wins(place: Place, own_home: Path, file: str) -> None:
    """A memory and a CLAUDE.md instruction conflict. CLAUDE.md is the user's durable instruction."""
    path = own_home / file
    path.parent.mkdir(parents=True)
    path.write_text("The proxy listens on port 9000.\n\nUse pnpm, not npm.\n")
    write_card(place, "proxy", "The proxy listens on port 9100.", repository=REPOSITORY)
    write_card(place, "pnpm", "Use npm, not pnpm.")
    point_at_all(place)
    found = {item.place.partition(":")[0]: item for item in upkeep(place).reconcile().found}
    assert {item.rule for item in found.values()} == {"memory-instructions"}
    assert found["memory/cards/proxy.md"].other == f"~/{file}:1"
    assert found["memory/cards/pnpm.md"].other == f"~/{file}:3"
