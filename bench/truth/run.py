"""How right verify is, from Markdown in to verdicts out, beside two plain ways to check.

python -m bench truth [--part tuning|held-out] [--repos a,b] [--limit N] [--undated] [--errors FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import scratch, table
from bench.promises import CannotRun, keep
from bench.truth import baselines
from bench.truth.build import Label, Set, clones, load, part_of
from bench.truth.cards import SKIP, number_of
from bench.truth.git import Incomplete
from bench.truth.score import Claim, Outcome, Tally, answer, judge, parse_report, tally

A_CALL = 100  # cards
WAYS = ("verify", "grep finds the word", "path exists")
HEADERS = (
    "n|found|precision|recall|false alarms|unverif.|moved right|lines right|mentioned|look-alikes|history|foreign|stray"
)
BOUNDS: list[tuple[str, float, Callable[[Tally], float | None]]] = [  # name, at least, value
    ("rot precision", 0.97, lambda one: share(one.caught, one.caught + one.false_alarms)),
    ("rot precision among claims alone", 0.97, lambda one: share(one.caught, one.caught + one.alarms + one.stray)),
    ("rot recall", 0.97, lambda one: share(one.caught, one.rot)),
    ("true claims without alarm", 0.98, lambda one: share(one.true - one.alarms, one.true)),
    ("moved to the right place", 0.95, lambda one: share(one.moved_right, one.moved)),
    ("moved to the right line", 0.90, lambda one: share(one.lines_right, one.lines)),
    ("mentioned only, caught", 0.90, lambda one: share(one.mentioned_caught, one.mentioned)),
    ("look-alikes without claim", 1.0, lambda one: share(one.look_alikes - one.look_alike_claims, one.look_alikes)),
]

MEASURES: dict[str, Callable[[Tally], float | None]] = {  # of the promises
    "precision": lambda one: share(one.caught, one.caught + one.false_alarms),
    "recall": lambda one: share(one.caught, one.rot),
    "alarms": lambda one: share(one.alarms, one.true),
    "moved": lambda one: share(one.moved_right, one.moved),
    "lines": lambda one: share(one.lines_right, one.lines),
    "mentioned": lambda one: share(one.mentioned_caught, one.mentioned),
    "prose": lambda one: float(one.look_alike_claims),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    chosen = options.repos.split(",") if options.repos else None
    wholes: dict[str, dict[str, Tally]] = {}
    rows: list[list[str]] = []
    errors: list[dict[str, Any]] = []
    for name, clone in clones().items():
        if (chosen and name not in chosen) or (options.part and part_of(name) != options.part):
            continue
        try:
            one = limit(load(name, clone, dated=not options.undated), options.limit)
        except Incomplete as problem:
            print(f"{name}: left out; {problem}")
            continue
        if options.sizes:
            show_sizes(one)
            continue
        begun = time.monotonic()
        outcome = answer(one.labels, run_product(options.product, one))
        print(f"{name}: {len({label.card for label in one.labels}):,} cards in {time.monotonic() - begun:.1f} s")
        errors += iter_errors(one, outcome)
        ways = {"verify": tally(outcome), **run_baselines(one)}
        for way, result in ways.items():
            wholes.setdefault(one.part, {}).setdefault(way, Tally()).join(result)
            rows.append([name, way, *cells(result)])
    if options.errors:
        lines = (json.dumps(error, ensure_ascii=False) + "\n" for error in errors)
        Path(options.errors).write_text("".join(lines), encoding="utf-8")
    if rows:
        show(rows, wholes)
        tell(wholes, is_whole=not (options.limit or options.undated))
    elif not options.sizes:
        raise CannotRun("TRUEKEEP_BENCH_REPOS names no folder of clones with their whole history")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench truth", description="How right verify is.")
    parser.add_argument("--part", choices=("tuning", "held-out"), help="only these repositories")
    parser.add_argument("--repos", metavar="A,B", help="only these clones")
    parser.add_argument("--limit", type=int, metavar="N", help="cards of a repository at most")
    parser.add_argument("--undated", action="store_true", help="cards that do not say when they were written")
    parser.add_argument("--errors", metavar="FILE", help="write every mistake there, one JSON object a line")
    parser.add_argument("--sizes", action="store_true", help="only say what is labelled, and what was dropped")
    default = shlex.join([sys.executable, "-m", "truekeep"])
    parser.add_argument(
        "--product", default=default, metavar="COMMAND", help="what is called with verify (%(default)s)"
    )
    return parser.parse_args(arguments)


def limit(one: Set, most: int | None) -> Set:
    if most is None:
        return one
    names = sorted({label.card for label in one.labels}, key=number_of)[:most]
    return one._replace(labels=[label for label in one.labels if label.card in names])


def tell(wholes: Mapping[str, Mapping[str, Tally]], *, is_whole: bool) -> None:
    """The promises, by the repositories that no rule was chosen with if there are any."""
    part = "held-out" if "held-out" in wholes else "tuning"
    one, grep, paths = (wholes[part][way] for way in WAYS)
    ways = {"grep": grep, "path exists": paths}
    size = f"{one.labels:,} claims, {part}" + ("" if is_whole else ", a sample")
    for key, value in MEASURES.items():
        if (got := value(one)) is not None:
            beside = ", ".join(f"{way} {show_share(value(other))}" for way, other in ways.items())
            keep(f"truth.{key}", got, f"{beside}; {size}" if key != "prose" else f"{one.look_alikes} lines; {size}")


# The product, through its command line


def run_product(command: str, one: Set) -> dict[str, list[Claim]]:
    """What verify says of each card, in a home and a workspace of its own."""
    names = sorted({label.card for label in one.labels})
    found: dict[str, list[Claim]] = {}
    with scratch() as home:
        workspace = str(home / "workspace")
        call(command, home, "init", workspace)
        for at in range(0, len(names), A_CALL):
            files = [str(one.cards / name) for name in names[at : at + A_CALL]]
            done = call(command, home, "verify", *files, "--repo", str(one.world), "--json")
            try:
                found.update(parse_report(json.loads(done.stdout)))
            except (ValueError, KeyError, TypeError) as problem:
                said = f"{done.stdout[:1_000]}{done.stderr[-1_000:]}"
                raise SystemExit(f"truth: verify ended with {done.returncode}, {problem}: {said}") from problem
    if missing := [name for name in names if name not in found]:
        raise SystemExit(f"truth: verify said nothing about {len(missing)} cards, such as {missing[0]}")
    return found


def call(command: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    environment = {**kept, "HOME": str(home), "TRUEKEEP_WORKSPACE": str(home / "workspace")}
    words = [*shlex.split(command), *arguments]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def run_baselines(one: Set) -> dict[str, Tally]:
    words, paths = baselines.find_all(one)
    judged = [label for label in one.labels if label.mark.label in ("true", "moved", "gone")]
    by_word = [baselines.grep(words, label) for label in judged if label.mark.kind != "commit"]
    by_path = [found for label in judged if (found := baselines.path_exists(paths, label)).claim]
    return {
        "grep finds the word": tally(Outcome(by_word, [], [], [], [], [])),
        "path exists": tally(Outcome(by_path, [], [], [], [], [])),
    }


# What is shown


def show(rows: Sequence[Sequence[str]], wholes: Mapping[str, Mapping[str, Tally]]) -> None:
    headers = HEADERS.split("|")
    print()
    table(["repository", "way", *headers], rows, left=2)
    for part, ways in wholes.items():
        print()
        table([part, "way", *headers], [["all", way, *cells(ways[way])] for way in WAYS], left=2)
        print()
        kinds = sorted(ways["verify"].kinds)
        by_kind = [
            [kind, way, *cells(ways[way].kinds[kind])[:9]] for kind in kinds for way in WAYS if kind in ways[way].kinds
        ]
        table([f"{part}, by kind", "way", *headers[:9]], by_kind, left=2)
        print()
        verify = ways["verify"]
        for name, least, value in BOUNDS:
            got = value(verify)
            print(
                f"  {name}: {show_share(got)} (at least {least:.2f}){'' if got is None or got >= least else '  MISSED'}"
            )
        print(
            f"  gone but said to be elsewhere: {verify.called_moved:,} of "
            f"{verify.rot - verify.moved - verify.lines:,}; "
            f"alarms in real documents on what nobody labelled: {verify.unjudged:,}"
        )


def cells(one: Tally) -> list[str]:
    return [
        f"{one.labels:,}",
        show_share(share(one.found, one.labels)),
        show_share(share(one.caught, one.caught + one.false_alarms)),
        show_share(share(one.caught, one.rot)),
        show_share(share(one.alarms, one.true)),
        show_share(share(one.unverifiable, one.true)),
        show_share(share(one.moved_right, one.moved)),
        show_share(share(one.lines_right, one.lines)),
        show_share(share(one.mentioned_caught, one.mentioned)),
        f"{one.look_alike_claims}/{one.look_alikes}",
        f"{one.history_alarms}/{one.history}",
        f"{one.foreign_alarms}/{one.foreign}",
        f"{one.stray}",
    ]


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def show_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def show_sizes(one: Set) -> None:
    counts = Counter((label.mark.kind, label.mark.label) for label in one.labels if label.mark.label != SKIP)
    names = ("true", "moved", "gone", "look-alike", "history", "foreign")
    mentioned = Counter(label.mark.kind for label in one.labels if label.mark.mentioned)
    kinds = sorted({kind for kind, _ in counts})
    rows = [[kind, *(f"{counts[kind, name]:,}" for name in names), f"{mentioned[kind]:,}"] for kind in kinds]
    print()
    table([one.name, *names, "mentioned"], rows)
    for (kind, why), count in sorted(one.dropped.items()):
        print(f"  dropped, {kind}: {why}: {count:,}")


def iter_errors(one: Set, outcome: Outcome) -> Iterator[dict[str, Any]]:
    texts: dict[str, list[str]] = {}

    def line_of(card: str, line: int) -> str:
        if card not in texts:
            texts[card] = (one.cards / card).read_text(encoding="utf-8").split("\n")
        return texts[card][line - 1] if 0 < line <= len(texts[card]) else ""

    def row(error: str, label: Label | None, claim: Claim | None, card: str, line: int) -> dict[str, Any]:
        return {
            "repository": one.name,
            "error": error,
            "card": card,
            "line": line,
            "written": line_of(card, line),
            "label": label.mark._asdict() if label else None,
            "verdict": claim._asdict() if claim else None,
        }

    for found in outcome.answers:
        label, claim = found
        if (error := judge(label, claim)) != "right":
            yield row(error, label, claim, label.card, label.mark.line)
        elif label.mark.label == "gone" and claim and claim.verdict == "moved":
            yield row("gone, said to be elsewhere", label, claim, label.card, label.mark.line)
        elif claim is None:
            yield row("not extracted", label, None, label.card, label.mark.line)
        elif claim.verdict == "unverifiable":
            yield row("true, but unverifiable", label, claim, label.card, label.mark.line)
    negative = (
        ("claim in look-alikes", outcome.look_alikes),
        ("alarm in history", outcome.history),
        ("alarm on what is of others", outcome.foreign),
    )
    for error, groups in negative:
        for label, claims in groups:
            yield from (row(error, label, claim, label.card, label.mark.line) for claim in claims)
    for error, found_alone in (("stray alarm", outcome.stray), ("not labelled", outcome.unjudged)):
        yield from (row(error, None, claim, card, claim.line) for card, claim in found_alone)


if __name__ == "__main__":
    main()
