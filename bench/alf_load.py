"""A workspace for the benchmark of archives: so many files, so many bytes, the same ones every time.

The mix is that of an agent that has worked for some years: daily logs, cards, notes in folders of their own, project
files, skills, and artifacts, of which half are images and so already compressed. Artifacts are kept below the size at
which an archive only names them, so that every byte that zip packs is packed by truekeep too.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.prose import Prose
from truekeep.integrations.alf.files import ARTIFACT_THRESHOLD

FIRST = date(2021, 1, 1)
FOLDERS = ("projects", "decisions", "ops", "procedures", "research/papers", "people", "archive/2023", "meetings/weekly")
SHARES = {"day": 15, "card": 40, "project": 2, "note": 23, "skill": 5, "text": 7, "image": 8}
"""How many of a hundred files are of each kind."""
SIZES = {"day": 30_000, "card": 4_000, "project": 40_000, "note": 20_000, "skill": 15_000, "text": 50_000}
SIZES["image"] = SIZES["text"]
"""How long they are beside each other, in the middle; they are stretched to the size that is asked for."""
ALWAYS = ("MEMORY.md", "SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", "TOOLS.md")
SUPPLY = 6_000_000  # characters of prose that all texts are cut from: far more than a compressor looks back


class Load(NamedTuple):
    """What was built."""

    root: Path
    files: int
    size: int
    edited: Path  # a note of ordinary size in a folder of its own, for deltas


def build(root: Path, *, files: int, size: int) -> Load:
    """Fill a folder."""
    draw = random.Random(20270101)
    prose = _Supply(draw)
    kinds = [kind for kind, share in SHARES.items() for _ in range(round((files - len(ALWAYS)) * share / 100))]
    stretch = size / sum(SIZES[kind] for kind in kinds) if kinds else 1.0
    done = written = 0
    for kind, path in _places(kinds):
        most = ARTIFACT_THRESHOLD if kind in ("text", "image") else 1 << 30
        wanted = min(most, int(SIZES[kind] * stretch * draw.uniform(0.4, 1.6)))
        data = draw.randbytes(wanted) if kind == "image" else prose.text(kind, wanted, done).encode()
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        then = (FIRST - date(1970, 1, 1)).days * 86_400 + (done * 104_729) % (5 * 365 * 86_400)
        os.utime(target, ns=(then * 10**9, then * 10**9))
        done += 1
        written += len(data)
    edited = next((root / path for kind, path in _places(kinds) if kind == "note"), root / ALWAYS[0])
    return Load(root, done, written, edited)


def _places(kinds: list[str]) -> Iterator[tuple[str, str]]:
    for name in ALWAYS:
        yield "card", name
    for number, kind in enumerate(kinds):
        folder = FOLDERS[number % len(FOLDERS)]
        yield (
            kind,
            {
                "day": f"memory/{FIRST + timedelta(days=number)}.md",
                "card": f"memory/cards/card-{number}.md",
                "project": f"memory/project-{number}.md",
                "note": f"memory/{folder}/note-{number}.md",
                "skill": f"skills/skill-{number // 5}/part-{number}.md",
                "text": f"artifacts/runs/{number // 50}/report-{number}.json",
                "image": f"artifacts/images/{number // 50}/plot-{number}.png",
            }[kind],
        )


class _Supply:
    def __init__(self, draw: random.Random) -> None:
        prose = Prose(20_000)
        self._draw = draw
        self._text = "\n".join(prose.note(8_000) for _ in range(SUPPLY // 8_000))

    def text(self, kind: str, size: int, number: int) -> str:
        if kind == "text":
            rows = [
                {"run": at, "passed": self._draw.random() < 0.9, "said": self._cut(60)} for at in range(size // 130)
            ]
            return json.dumps(rows, indent=1)
        if kind == "card":
            others = [self._draw.randrange(1, number + 2) for _ in range(2)]
            head = (
                f"---\ntopic: {self._cut(30)!r}\ncategory: setup\ntags: [{number % 7}, deploy]\n"
                f"created: {FIRST + timedelta(days=number % 1800)}\nrelated: [card-{others[0]}.md]\n---\n\n"
                f"See [[card-{others[1]}]] for more.\n"
            )
            return head + self._cut(size - len(head))
        if kind in ("day", "project", "note"):
            parts = max(1, size // 1_500)
            return "".join(
                f"## {9 + at % 12:02}:{at * 7 % 60:02} {self._cut(30)}\n\n{self._cut(size // parts - 80)}\n"
                f"- [deploy|i=0.{at % 9 + 1}] {self._cut(30)} #ops\n\n"
                for at in range(parts)
            )
        return self._cut(size)

    def _cut(self, size: int) -> str:
        start = self._draw.randrange(len(self._text) - size)
        cut = self._text[start : start + size]
        return cut if size > 200 else cut.replace("\n", " ").replace("#", "")
