"""What the durability filter stops of real notes and of our own sentences: python -m bench.durability.

Labels of public workspaces are digests of lines (bench/real/durability.jsonl): nothing of those notes is here. The last
digit of a digest decides the half. A kind's share is stopped by any hint of the filter; of what lasts, less is better.
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
    for source, label, text in (*own_sentences(), *real_lines(folder)):
        count = counts[label, source, half_of(digest_of(text))]
        count[0] += is_stopped(text)
        count[1] += 1
    print(f"{'label':<18} {'sentences':<10} {'half':<9} stopped")
    for (label, source, half), (stopped, total) in sorted(counts.items()):
        print(f"{label:<18} {source:<10} {half:<9} {stopped} of {total} ({stopped / total:.0%})")


def own_sentences() -> Iterator[tuple[str, str, str]]:
    table = tomllib.loads(OWN.read_text(encoding="utf-8"))
    for label, sentences in table.items():
        if label != "instructed":  # needs an instruction file beside it; the tests have it
            yield from (("own", label, sentence) for sentence in sentences)


def real_lines(folder: Path) -> Iterator[tuple[str, str, str]]:
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for row in map(json.loads, LABELS.read_text(encoding="utf-8").splitlines()):
        labels[row["repository"]][row["line"]] = row["label"]
    for workspace in load_workspaces():
        wanted = labels.get(workspace.repository, {})
        clone = workspace.find_clone(folder) if wanted else None
        for line in dict.fromkeys(lines_of(workspace, clone)) if clone is not None else ():
            if label := wanted.get(digest_of(line)):
                yield "real", label, line


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
