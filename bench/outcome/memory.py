"""The memory of a repository at one time, and the questions of a later one: what its people wrote, as they wrote it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.truth.documents import read_documents
from bench.truth.git import Git
from bench.truth.judge import Judge

COMMITS = 300  # messages before that time
QUESTIONS = 24
PROBLEM = 300  # characters of the description of an issue
MONTH = 2_629_800  # seconds
ASKED_WITHIN = 3 * MONTH  # after the world's commit: what people worked on next
_PREFIX = re.compile(r"^(\[[^\]]*\]|\w+(\([^)]*\))?!?:)\s*")
_SUFFIX = re.compile(r"\s*(\(#\d+\)|#\d+)\s*$")
_CLOSES = re.compile(r"(?i)\b(fix(e[sd])?|close[sd]?|resolve[sd]?):?\s+(\S*)#\d+")
_MERGE = re.compile(r"^(merge|revert|bump|release|v?\d+\.\d+|chore\(deps|build\(deps|update dependency)", re.IGNORECASE)


class Question(NamedTuple):
    source: str  # commit, report or issue: whose words these are
    text: str


def write_memory(judge: Judge, repository: str, folder: Path) -> None:
    """Documents of the old commit as memory documents, and the messages of the commits before it as daily logs."""
    git, commit = judge.old.git, judge.old.commit
    day = git.day(commit)
    front = f"---\nrepository: github.com/{repository}\ncreated: {day}\nupdated: {day}\n---\n\n"
    for document in read_documents(judge):
        name = document.path.rpartition(".")[0].replace("/", "-")
        _write(folder / "memory" / "documents" / f"{name}.md", front + "\n".join(document.lines) + "\n")
    for log_day, entries in _logs(git, commit).items():
        text = f"---\nrepository: github.com/{repository}\n---\n\n# {log_day}\n\n" + "".join(entries)
        _write(folder / "memory" / f"{log_day}.md", text)


def _logs(git: Git, commit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    text = git.run("log", "--no-merges", f"-{COMMITS}", "--format=%x01%cs%x02%B", commit)
    for record in text.split("\1")[1:]:
        day, _, message = record.partition("\2")
        lines = [line.rstrip() for line in message.strip().splitlines() if not re.match(r"[\w-]+-by: ", line)]
        found[day].append("- " + "\n  ".join(lines[:12]).rstrip() + "\n")
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def questions(git: Git, world: str, newest: str) -> list[Question]:
    """What people did in the months after the world's commit, in their words: what an agent is asked to do next."""
    until = git.when(world) + ASKED_WITHIN
    text = git.run("log", "--no-merges", f"--until={until}", "--format=%B%x01", f"{world}..{newest}")
    messages = [message.strip() for message in text.split("\1") if message.strip()]
    subjects = [message.partition("\n")[0] for message in messages]
    return [
        *(Question("commit", one) for one in sample(subjects_as_questions(subjects))),
        *(Question("report", one) for one in sample(filter(None, map(reported_problem, messages)))),
    ]


def reported_problem(message: str) -> str | None:
    """How a commit that closes an issue describes it: the first paragraph of its message, if that is prose."""
    _, _, body = message.partition("\n")
    if not _CLOSES.search(body):
        return None
    for paragraph in re.split(r"\n\s*\n", body.strip()):
        text = " ".join(paragraph.split())
        if len(_CLOSES.sub("", text).split()) >= 8 and not re.match(r"[-*#>|`<]|[\w-]+: ", text):
            return text[:PROBLEM].strip()
    return None


def issue_questions(path: Path, world: int) -> list[Question]:
    """Titles of the issues that were opened after the world's commit; the README says how to make the file."""
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    titles = [row["title"] for row in rows if 0 < seconds(row["createdAt"]) - world <= ASKED_WITHIN]
    return [Question("issue", one) for one in sample(subjects_as_questions(titles))]


def sample(texts: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(texts), key=lambda one: hashlib.sha256(one.encode()).digest())[:QUESTIONS]


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()


def subjects_as_questions(subjects: Sequence[str]) -> Iterator[str]:
    for subject in subjects:
        text = _SUFFIX.sub("", _PREFIX.sub("", subject)).strip()
        if len(text.split()) >= 4 and not _MERGE.match(subject):
            yield text
