"""One truekeep command in this process, watched from inside: its own memory, a profile, or what each part of it takes.

python -m bench.truth_inside memory|profile|parts RESULT ARGUMENT …
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import GeneratorType
from typing import Any

# What is called → the part that it belongs to. Parts within a part are told apart, unless that one is in WHOLE.
PARTS = {
    "truekeep.verify.memory_reader.MemoryReader.memories": "memory files",
    "truekeep.verify.memory_reader.MemoryReader.files": "memory files",
    "truekeep.verify.claims.extract.extract_claims": "claims",
    "truekeep.workspace.repositories.find_checkouts": "listing",
    "truekeep.verify.checkout.read_checkout": "listing",
    "truekeep.verify.checkout.read_plain": "reading",
    "truekeep.verify.checkout.blob_id": "reading",
    "truekeep.verify.checkout.read_facts": "facts",
    "truekeep.verify.cache.FactsCache.add_blob": "storing facts",
    "truekeep.verify.git_history.Past.load": "rename records",
    "truekeep.verify.git_history.read_old_tree": "old trees",
    "truekeep.verify.git_history.read_file": "old files",
    "truekeep.verify.git_history.Past.find_removing_commit": "commits that deleted",
    "truekeep.verify.git_history.Past.last_touch": "commits that deleted",
    "truekeep.verify.git_history.Past.commit_at": "commits by day",
    "truekeep.verify.git_history.Past.oids": "old files",
    "truekeep.verify.checkout.FileTree.find": "finding words",
    "truekeep.verify.checkout.FileTree.outlines": "outlines",
    "truekeep.verify.verifier._add_body_digest": "bodies now",
    "truekeep.verify.verifier._fingerprints_then": "bodies then",
    "truekeep.verify.dispatch.judge": "judging",
    "truekeep.verify.line_claims.check_line": "lines",
    "truekeep.verify.commit_claims.check_commits": "commits",
    "truekeep.verify.results.save_verdicts": "keeping",
    "truekeep.verify.verifier.Verifier._save_fingerprints": "keeping",
    "truekeep.verify.verifier.Verifier._load_fingerprints": "keeping",
    "truekeep.interfaces.cli.output.emit": "printing",
}
WHOLE = ("old trees", "rename records", "old files", "bodies then", "lines")


def seconds() -> float:
    """CPU seconds of this process and of the programs that it ran and that have ended."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


class Clock:
    """Seconds by part; each second belongs to the innermost part that is running."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = defaultdict(float)
        self._running = ["start-up and the rest"]
        self._since = 0.0

    def enter(self, part: str) -> None:
        self._stop()
        current = self._running[-1]
        self._running.append(current if current in WHOLE else part)

    def leave(self) -> None:
        self._stop()
        self._running.pop()

    def _stop(self) -> None:
        now = seconds()
        self.parts[self._running[-1]] += now - self._since
        self._since = now

    def wrap(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def iterate(items: Iterator[Any]) -> Iterator[Any]:
            while True:
                self.enter(part)
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    self.leave()
                yield item

        def call(*arguments: Any, **named: Any) -> Any:
            self.enter(part)
            try:
                result = function(*arguments, **named)
            finally:
                self.leave()
            return iterate(result) if isinstance(result, GeneratorType) else result

        return call


def find_owner(name: str) -> tuple[Any, str]:
    """The module or class that has a function, and its name there."""
    module, _, last = name.rpartition(".")
    try:
        return importlib.import_module(module), last
    except ImportError:
        module, _, kind = module.rpartition(".")
        return getattr(importlib.import_module(module), kind, None), last


def watch_parts(clock: Clock) -> list[str]:
    """Put the clock around every part, wherever a module has it. Returns what is not there any more."""
    missing = []
    for name, part in PARTS.items():
        owner, last = find_owner(name)
        found = getattr(owner, last, None)
        if found is None:
            missing.append(name)
            continue
        wrapped = clock.wrap(found, part)
        setattr(owner, last, wrapped)
        for key, other in list(sys.modules.items()):
            if key.startswith("truekeep."):
                replace(vars(other), found, wrapped)
    return missing


def replace(names: dict[str, Any], old: object, new: object) -> None:
    """By whatever name a module knows it, or one of its tables."""
    for known, value in list(names.items()):
        if value is old:
            names[known] = new
        elif isinstance(value, dict) and not known.startswith("__"):
            for key in [key for key, inner in value.items() if inner is old]:
                value[key] = new


def main() -> None:
    how, result, *arguments = sys.argv[1:]
    sys.argv = ["truekeep", *arguments]
    from truekeep.__main__ import main as run

    told: dict[str, Any] = {}
    if how == "profile":
        import cProfile

        profile = cProfile.Profile()
        with suppress(SystemExit):
            profile.runcall(run)
        profile.dump_stats(result)
        return
    clock = Clock()
    if how == "parts":
        told["missing"] = watch_parts(clock)
    with suppress(SystemExit):
        run()
    if how == "parts":
        clock.leave()
        told["parts"] = clock.parts
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    told["programs"] = others.ru_utime + others.ru_stime
    told["memory"], told["programs' memory"] = own.ru_maxrss, others.ru_maxrss
    with open(result, "w", encoding="utf-8") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
