"""A workspace for the tests of upkeep: cards, logs and instruction files, written as people and agents do."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

from tests.support.helpers import NOW, OPENED, Place, git_repo
from truekeep.workspace.maintenance import Maintenance

TODAY = NOW.date()

REPOSITORY = "github.com/me/app"


def write_card(
    place: Place,
    name: str,
    body: str,
    *,
    topic: str = "",
    day: str = "2026-03-01",
    repository: str = "",
    more: str = "",
    newline: str = "\n",
) -> Path:
    """A card as it might lie there, older than the moment in which files may still change unseen."""
    origin = f"repository: {repository}\nwriter: claude\n" if repository else ""
    text = (
        f"---\ntopic: {topic or name.replace('-', ' ')}\ncategory: notes\ntags: [a]\ncreated: {day}\nupdated: {day}\n"
        f"{origin}{more}---\n\n{body}\n"
    )
    return put(place, f"memory/cards/{name}.md", text.replace("\n", newline))


def put(place: Place, path: str, text: str | bytes) -> Path:
    file = place.workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    old = time.time() - 60
    os.utime(file, (old, old))
    return file


def point_at_all(place: Place) -> None:
    """An index that fits: one line for each card."""
    with place.open() as workspace:
        cards = [(card.name, card.topic) for card in workspace.cards.all()]
    lines = "".join(f"- [{topic}](memory/cards/{name})\n" for name, topic in cards)
    put(place, "MEMORY.md", f"# Memory\n\n## Cards\n\n{lines}")


def with_instructions(place: Place, text: str) -> Path:
    """A repository of its own with an instruction file."""
    repo = git_repo(place.base / "repos" / "own")
    (repo / "CLAUDE.md").write_text(text)
    return repo


def upkeep(place: Place, *, now: datetime = NOW) -> Maintenance:
    workspace = place.open(now=now)
    OPENED.append(workspace)
    return workspace.maintenance
