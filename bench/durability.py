"""What the durability filter stops of real notes and of our own sentences: python -m bench.durability.

Labels of public repositories are digests of lines (bench/real/durability.jsonl): nothing of those notes is here. The
workspaces of bench/real served for tuning, all of their lines: "known". Lines of other repositories ("real"; a row
names the commit) were labelled before the filter was looked at; the last digit of a digest decides their half, unless
the row says that it served for tuning. A kind's share is stopped by any hint; of what lasts, less is better.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
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


def main(_: Sequence[str] = ()) -> None:
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones")
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for line in (*own_sentences(), *real_lines(folder)):
        count = counts[line.label, line.source, line.half]
        count[0] += is_stopped(line.text)
        count[1] += 1
    print(f"{'label':<18} {'sentences':<10} {'half':<9} stopped")
    for (label, source, half), (stopped, total) in sorted(counts.items()):
        print(f"{label:<18} {source:<10} {half:<9} {stopped} of {total} ({stopped / total:.0%})")


class LabelledLine(NamedTuple):
    source: str  # own, known or real
    label: str
    half: str
    text: str


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
        for line in dict.fromkeys(lines_of(named, clone)) if clone is not None else ():
            if row := wanted.get(digest_of(line)):
                half = row.get("half") or (half_of(row["line"]) if commit else "tuning")
                yield LabelledLine("real" if commit else "known", row["label"], half, line)


def lines_of(workspace: PublicWorkspace, clone: Path) -> Iterator[str]:
    paths = git("-C", str(clone), "ls-tree", "-r", "-z", "--name-only", workspace.commit).split("\0")
    for path in paths:
        if path.endswith(".md"):
            with suppress(
                subprocess.CalledProcessError, UnicodeDecodeError
            ):  # a blob that this clone lacks, or no text
                text = git("-C", str(clone), "show", f"{workspace.commit}:{path}")
                yield from (line.strip() for line in text.splitlines())


def digest_of(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


def half_of(digest: str) -> str:
    return "tuning" if int(digest[-1], 16) < 8 else "held out"


def is_stopped(text: str) -> bool:
    is_item = text.startswith(("-", "*")) or text[:1].isdigit()
    return any(hint.code in STOPPING for hint in find_hints([(1, text if is_item else f"- {text}")]))


if __name__ == "__main__":
    main()
