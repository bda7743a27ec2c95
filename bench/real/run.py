"""Measures truekeep on real workspaces: python -m bench real [--half tuning|report] [NAME …]

Without labels for what it finds it says how many are missing; --sheet FOLDER writes what a person has to judge, and
--take FOLDER reads the answers back, as digests. --seal FOLDER takes the questions, NAME.json each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import scratch, table
from bench.promises import CannotRun, keep
from bench.real.answers import Judged, judge
from bench.real.commands import COMMANDS, CommandRun, ask_json, environment_for, run_on_terminal
from bench.real.findings import Finding, from_problems, from_reconcile, from_tidy, from_verify, sheet_row, to_judge
from bench.real.labels import Question, Tally, add_labels, load_labels, open_questions, seal_questions, tally
from bench.real.workspaces import HALVES, PublicWorkspace, clones_folder, load_workspaces

KINDS = ("gone", "moved", "changed", "confirmed", "tidy", "reconcile", "credential", "planted-order")
FIRST_HITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    workspace: PublicWorkspace
    runs: tuple[CommandRun, ...]
    claims: int
    unverifiable: int
    findings: tuple[Finding, ...]
    tallies: Mapping[str, Tally]
    ranks: tuple[int | None, ...] = field(default=())  # of the first right file, from 1
    judged: tuple[Judged, ...] = field(default=())  # of questions whose lines are known, or that have no answer


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones; bench/real/README.md lists them")
    chosen = [one for one in load_workspaces(options.half) if not options.names or one.name in options.names]
    if options.take or options.seal:
        take_answers(chosen, folder, options.take, options.seal)
        return
    measured = [measure(one, clone, options.sheet) for one, clone in with_clones(chosen, folder)]
    if not measured:
        raise CannotRun(f"{folder} has none of the workspaces that bench/real/workspaces.toml names")
    show_commands(measured)
    for half in HALVES:
        if of_half := [one for one in measured if one.workspace.half == half]:
            show_half(half, of_half)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench real", description=__doc__)
    parser.add_argument("names", nargs="*", help="owners of workspaces; all without")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--sheet", type=Path, help="write what has to be judged to FOLDER/NAME.jsonl")
    parser.add_argument("--take", type=Path, help="read judged sheets from FOLDER")
    parser.add_argument("--seal", type=Path, help="read questions from FOLDER/NAME.json and commit them sealed")
    return parser.parse_args(arguments)


def with_clones(chosen: Iterable[PublicWorkspace], folder: Path) -> Iterator[tuple[PublicWorkspace, Path]]:
    for workspace in chosen:
        clone = workspace.find_clone(folder)
        if clone is None:
            print(f"left out: {workspace.repository} is not in {folder}")
        else:
            yield workspace, clone


def take_answers(chosen: Iterable[PublicWorkspace], folder: Path, sheets: Path | None, questions: Path | None) -> None:
    for workspace, clone in with_clones(chosen, folder):
        if sheets and (sheet := sheets / f"{workspace.name}.jsonl").is_file():
            rows = map(json.loads, sheet.read_text(encoding="utf-8").splitlines())
            print(f"{workspace.name}: {add_labels(workspace, rows)} new labels")
        if questions and (file := questions / f"{workspace.name}.json").is_file():
            seal_questions(workspace, workspace.key(clone), json.loads(file.read_text(encoding="utf-8")))
            print(f"{workspace.name}: questions sealed")


def measure(workspace: PublicWorkspace, clone: Path, sheets: Path | None) -> Measured:
    with scratch() as folder:
        root = folder / "workspace"
        workspace.check_out(clone, root)
        environment = environment_for(folder / "home", root)
        run_on_terminal(("init", str(root)), environment)
        runs = tuple(run_on_terminal(command, environment) for command in COMMANDS)
        verified = ask_json(("verify",), environment)
        tidied = ask_json(("tidy",), environment)
        reconciled = ask_json(("reconcile",), environment)
        problems = ask_json(("status", "problems"), environment)
        findings = [*from_verify(verified), *from_tidy(tidied), *from_reconcile(reconciled), *from_problems(problems)]
        judged = to_judge(findings)
        labels = load_labels(workspace)
        if sheets:
            write_sheet(sheets / f"{workspace.name}.jsonl", root, [one for one in judged if one.id not in labels])
        questions = open_questions(workspace, workspace.key(clone))
        summary = verified["summary"]
        verdicts = ("confirmed", "moved", "changed", "gone", "unverifiable")
        return Measured(
            workspace=workspace,
            runs=runs,
            claims=sum(summary[verdict] for verdict in verdicts),
            unverifiable=summary["unverifiable"],
            findings=tuple(findings),
            tallies=tally(judged, labels),
            ranks=tuple(rank_of(question, environment) for question in questions if question.files),
            judged=tuple(judge(one, root, environment) for one in questions if one.parts or not one.files),
        )


def write_sheet(file: Path, root: Path, findings: Iterable[Finding]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps(sheet_row(root, finding), ensure_ascii=False) + "\n" for finding in findings]
    file.write_text("".join(rows), encoding="utf-8")


def rank_of(question: Question, environment: Mapping[str, str]) -> int | None:
    """Where the first file that answers stands among the first hits."""
    answer = ask_json(("search", "-n", str(FIRST_HITS), question.text), environment)
    paths = list(dict.fromkeys(hit["path"] for hit in answer["hits"]))
    return next((at for at, path in enumerate(paths, start=1) if path in question.files), None)


def show_commands(measured: Sequence[Measured]) -> None:
    rows = []
    for one in measured:
        for run in one.runs:
            cells = (one.workspace.name, run.command, str(run.exit_code), f"{run.seconds:.1f}", f"{run.cpu:.1f}")
            rows.append((*cells, f"{run.peak_mb:.0f}", f"{run.silence:.1f}", run.failed))
    table(("workspace", "command", "exit", "s", "CPU s", "MB", "silent s", ""), rows, left=2, last_left=1)


def show_half(half: str, measured: Sequence[Measured]) -> None:
    print(f"\n{half} half")
    rows = [row_of(one.workspace.name, [one]) for one in measured]
    rows.append(row_of("all", measured))
    table(("workspace", "claims", "checked", *KINDS, "first", f"in {FIRST_HITS}"), rows)
    print("right/judged of each kind; +n: not judged yet")
    show_answers(measured)
    if half == "report":
        keep_promises(measured)


def show_answers(measured: Sequence[Measured]) -> None:
    """How often the right lines are within 4,000 characters, and how often it is said that nothing is known."""
    rows = []
    for name, chosen in [*((one.workspace.name, [one]) for one in measured), ("all", measured)]:
        judged = [item for one in chosen for item in one.judged]
        answerable, several = [item for item in judged if item.parts], [item for item in judged if item.parts > 1]
        if judged:
            shares = [share_where(answerable, "terminal"), share_where(answerable, "mcp"), share_where(several, "mcp")]
            nowhere = [item for item in judged if not item.parts]
            for said in ("is_doubted", "is_cautioned"):
                shares += [share_where(nowhere, said), share_where(answerable, said)]
            cells = [percent(share) for share in shares]
            rows.append((name, str(len(judged)), *cells))
    unknown = ("unknown, said", "wrongly", "or a caution", "wrongly")
    table(("workspace", "questions", "lines, terminal", "MCP", "of several parts", *unknown), rows)


def share_where(judged: Sequence[Judged], name: str) -> float | None:
    return sum(bool(getattr(item, name)) for item in judged) / len(judged) if judged else None


def row_of(name: str, measured: Sequence[Measured]) -> tuple[str, ...]:
    claims = sum(one.claims for one in measured)
    checked = claims - sum(one.unverifiable for one in measured)
    ranks = [rank for one in measured for rank in one.ranks]
    kinds = [shown(sum((one.tallies.get(kind, Tally()) for one in measured), Tally())) for kind in KINDS]
    first, near = share_of(ranks, lambda rank: rank == 1), share_of(ranks, lambda rank: rank is not None)
    return (name, str(claims), percent(checked / claims if claims else None), *kinds, percent(first), percent(near))


def share_of(ranks: Sequence[int | None], test: Callable[[int | None], bool]) -> float | None:
    return sum(map(test, ranks)) / len(ranks) if ranks else None


def shown(counted: Tally) -> str:
    judged = counted.right + counted.wrong
    return f"{counted.right}/{judged}" + (f"+{counted.unlabelled}" if counted.unlabelled else "")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def keep_promises(measured: Sequence[Measured]) -> None:
    total = {kind: sum((one.tallies.get(kind, Tally()) for one in measured), Tally()) for kind in KINDS}
    ranks = [rank for one in measured for rank in one.ranks]
    claims = sum(one.claims for one in measured)
    keep("real.failed", sum(bool(run.failed) for one in measured for run in one.runs))
    keep_share("real.checked", 1 - sum(one.unverifiable for one in measured) / claims if claims else None)
    keep_share("real.gone", total["gone"].share)
    keep_share("real.moved", total["moved"].share)
    keep_share("real.confirmed", total["confirmed"].share)
    keep_share("real.proposals", (total["tidy"] + total["reconcile"]).share)
    keep_share("real.credentials", total["credential"].share)
    keep_share("real.first", share_of(ranks, lambda rank: rank == 1))
    keep_share("real.near", share_of(ranks, lambda rank: rank is not None))
    judged = [item for one in measured for item in one.judged]
    answerable = [item for item in judged if item.parts]
    keep_share("real.lines-terminal", share_where(answerable, "terminal"))
    keep_share("real.lines-mcp", share_where(answerable, "mcp"))
    keep_share("real.parts", share_where([item for item in answerable if item.parts > 1], "mcp"))
    keep_share("real.unknown", share_where([item for item in judged if not item.parts], "is_doubted"))
    keep_share("real.doubted", share_where(answerable, "is_doubted"))


def keep_share(key: str, share: float | None) -> None:
    if share is not None:
        keep(key, share)
