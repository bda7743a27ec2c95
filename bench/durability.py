"""What the durability filter stops of real notes and of our own sentences: python -m bench.durability.

Labels of public repositories are digests of lines (bench/real/durability.jsonl): nothing of those notes is here. What
each label means is in bench/real/durability.md. A repository is in one half with all of its lines: no line of the held
out ones is read while the filter changes. A kind's share is stopped by any hint; of what lasts, less is better. With
`--model`, a linear model over words is measured beside the filter (bench/durability_model.py).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.promises import CannotRun
from bench.real.workspaces import PublicWorkspace, clones_folder, git, load_workspaces
from truekeep.text.durability import find_hints

LABELS = Path(__file__).parent / "real" / "durability.jsonl"
OWN = Path(__file__).parents[1] / "tests" / "samples" / "durability" / "sentences.toml"
LASTING = "yes"
STOPPING = frozenset(("code-layout", "git-history", "fix-recipe", "task-state", "config-preference"))


def main(arguments: Sequence[str] = ()) -> None:
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones")
    lines = [*own_sentences(), *real_lines(folder)]
    if "--model" in arguments:
        from bench.durability_model import compare

        compare([line for line in lines if line.source != "own"])
        return
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for line in lines:
        count = counts[line.label, line.source, line.half]
        count[0] += is_stopped(line.text)
        count[1] += 1
    print(f"{'label':<18} {'sentences':<10} {'half':<9} stopped")
    for (label, source, half), (stopped, total) in sorted(counts.items()):
        print(f"{label:<18} {source:<10} {half:<9} {stopped} of {total} ({stopped / total:.0%})")


class LabelledLine(NamedTuple):
    source: str  # own, known (of repositories that the first phrases were made for) or real
    label: str
    half: str
    text: str
    repository: str = ""


def own_sentences() -> Iterator[LabelledLine]:
    table = tomllib.loads(OWN.read_text(encoding="utf-8"))
    for label, sentences in table.items():
        if label != "instructed":  # needs an instruction file beside it; the tests have it
            yield from (LabelledLine("own", label, half_of(digest_of(text)), text) for text in sentences)


def real_lines(folder: Path) -> Iterator[LabelledLine]:
    labels: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(dict)
    for row in map(json.loads, LABELS.read_text(encoding="utf-8").splitlines()):
        labels[row["repository"], row.get("commit", "")][row["line"]] = row
    known = {workspace.repository: workspace for workspace in load_workspaces()}
    for (repository, commit), wanted in labels.items():
        if not commit and repository not in known:
            continue
        named = PublicWorkspace(repository=repository, commit=commit, half="") if commit else known[repository]
        clone = named.find_clone(folder)
        if clone is None:
            print(f"{repository} is not in {folder}: {len(wanted)} lines left out")
            continue
        for line in dict.fromkeys(lines_of(named, clone)):
            if row := wanted.get(digest_of(line)):
                half = row.get("half", "tuning")
                source = "real" if commit and "known" not in row else "known"
                yield LabelledLine(source, row["label"], half, line, repository)


def lines_of(workspace: PublicWorkspace, clone: Path) -> Iterator[str]:
    names = git("-C", str(clone), "ls-tree", "-r", "-z", "--name-only", workspace.commit).split("\0")
    asked = "".join(f"{workspace.commit}:{name}\n" for name in names if name.lower().endswith(".md"))
    answer = subprocess.run(
        ["git", "-C", str(clone), "cat-file", "--batch"], input=asked.encode(), check=True, capture_output=True
    ).stdout
    place = 0
    while place < len(answer):
        end = answer.index(b"\n", place)
        header = answer[place:end].split()
        place = end + 1
        if header[-1] != b"missing":  # a blob that this clone lacks
            size = int(header[-1])
            with suppress(UnicodeDecodeError):
                text = answer[place : place + size].decode("utf-8")
                yield from (line.strip() for line in text.splitlines())
            place += size + 1


def digest_of(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def half_of(digest: str) -> str:
    return "tuning" if int(digest[-1], 16) < 8 else "held out"


def is_stopped(text: str) -> bool:
    is_item = text.startswith(("-", "*")) or text[:1].isdigit()
    return any(hint.code in STOPPING for hint in find_hints([(1, text if is_item else f"- {text}")]))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CannotRun as error:
        sys.exit(str(error))
