"""Two plain ways to check a memory, as a measure of what the product adds: grep for the word, or look for the path."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from bench.truth.build import Label, Set
from bench.truth.git import Git
from bench.truth.score import Answer, Claim
from bench.truth.source import WORD, read_text

PATHS = ("path", "directory", "line", "place", "package")


def grep(found: set[str], label: Label) -> Answer:
    """git grep -F -w at HEAD, in any file: there, or gone."""
    verdict = "confirmed" if word_of(label) in found else "gone"
    return Answer(label, Claim(label.mark.kind, label.mark.text, label.mark.line, verdict))


def path_exists(paths: set[str], label: Label) -> Answer:
    """Whether the file or folder is there; of what is no path it knows nothing."""
    path = re.split(r":\d|#L", label.mark.text)[0].rstrip("/")
    if label.mark.kind not in ("path", "directory", "line"):
        return Answer(label, None)
    there = path in paths or any(one.endswith(f"/{path}") for one in paths if "/" not in path)
    return Answer(label, Claim(label.mark.kind, path, label.mark.line, "confirmed" if there else "gone"))


def word_of(label: Label) -> str:
    """What one would grep for: the name of a file, the last part of a method, all of a flag."""
    text = re.split(r":\d|#L", label.mark.text)[0].rstrip("/")
    if label.mark.kind in ("path", "directory", "line"):
        return text.rpartition("/")[2]
    if label.mark.kind == "method":
        return re.split(r"[.:#]", text.removesuffix("()"))[-1]
    if label.mark.kind == "script":
        return text.split()[-1]
    return text.removesuffix("()")


def find_all(one: Set) -> tuple[set[str], set[str]]:
    """The words of the labels that occur anywhere at HEAD, and all paths there; kept beside the cards."""
    kept = one.cards / "words.json"
    paths = Git(one.world).tree("HEAD")
    folders = {"/".join(path.split("/")[:count]) for path in paths for count in range(1, path.count("/") + 1)}
    wanted = {word_of(label) for label in one.labels}
    if kept.exists():
        return set(json.loads(kept.read_text())), {*paths, *folders}
    found = search(one.world, paths, wanted)
    kept.write_text(json.dumps(sorted(found)))
    return found, {*paths, *folders}


def search(folder: Path, paths: Iterable[str], wanted: set[str]) -> set[str]:
    """Which of these texts occur as whole words, by the first word of each."""
    starts: dict[str, set[str]] = defaultdict(set)
    for text in wanted:
        if match := WORD.search(text):
            starts[match[0]].add(text)
    found: set[str] = set()
    for path in paths:
        content = read_text(folder / path)
        if content is None:
            continue
        for match in WORD.finditer(content):
            for text in starts.get(match[0], set()) - found:
                begin = match.start() - (WORD.search(text) or match).start()
                end = begin + len(text)
                if content[begin:end] == text and not (
                    content[end : end + 1].isalnum() or content[end : end + 1] == "_"
                ):
                    found.add(text)
    return found
