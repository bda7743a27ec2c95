"""Whether an answer shows the right lines: within 4,000 characters, on the terminal and over MCP.

A question has parts, and each part has lines that answer it; one of them has to be shown, in whichever file it stands,
because copies answer as well. A question without parts has no answer anywhere, and the answer has to say so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.real.labels import Question
from bench.score import BUDGET
from truekeep.interfaces.mcp.responses import shown_answer
from truekeep.workspace.workspace import Workspace

LINE_START = 400  # characters of a long line that have to be shown
_MARKS = re.compile(r"[\s>▸*`_|]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One question, asked at both doors."""

    parts: int  # 0: it has no answer
    terminal: bool  # every part is shown
    mcp: bool
    is_doubted: bool  # it was said that the answer is not known
    is_cautioned: bool  # that, or that the hits may not answer


def judge(question: Question, root: Path, environment: Mapping[str, str]) -> Judged:
    command = [sys.executable, "-m", "truekeep", "search", question.text]
    terminal = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=True).stdout
    with Workspace.open(root) as workspace:
        found = workspace.search.find(question.text)
        mcp = shown_answer(found.hits, (), found).text
    wanted = [[line_at(root, path, line) for path, line in part] for part in question.parts]
    return Judged(
        parts=len(question.parts),
        terminal=shows_all(terminal[:BUDGET], wanted),
        mcp=shows_all(mcp[:BUDGET], wanted),
        is_doubted=bool(found.doubt) or not found.hits,
        is_cautioned=found.evidence != "enough" or not found.hits,
    )


def line_at(root: Path, path: str, line: int) -> str:
    return (root / path).read_text(encoding="utf-8", errors="replace").split("\n")[line - 1]


def shows_all(answer: str, wanted: Sequence[Sequence[str]]) -> bool:
    """Whether one line of every part is in an answer, marks and blanks aside."""
    shown = _MARKS.sub("", answer)
    return all(any(_MARKS.sub("", line)[:LINE_START] in shown for line in part) for part in wanted)
