"""`truekeep check`: check a repository's documents against its code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from truekeep.check.alarm import FalseClaim
from truekeep.check.baseline import DEFAULT_FILE, write_baseline
from truekeep.check.formats import FORMATS
from truekeep.check.run import CheckReport, CheckRequest, run_check, write_repairs
from truekeep.check.settings import CONFIDENCES, CheckSettings, read_settings, validated
from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.repository import find_top
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.options import (
    checked_folder,
    has_workspace,
    json_flag,
    open_workspace,
    usage_error,
    wants_json,
    workspace_option,
)
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import style
from truekeep.interfaces.cli.verify import EXIT_ROT, EXIT_UNCHECKED
from truekeep.verify.results import CheckedMemory

_COLOURS = {"gone": "red", "moved": "yellow", "changed": "cyan"}
_MAX_OTHER_PLACES = 3  # of a group, shown beside the first
_HISTORY = {
    "shallow": "fetch-depth: 0 in the checkout step, or `git fetch --unshallow`",
    "partial": "a clone without --filter",
}


@click.command()
@click.argument("paths", nargs=-1, shell_complete=complete_files)
@click.option("--repo", "repository", metavar="DIR", shell_complete=complete_folders, help="Checkout to check against.")
@click.option("--since", metavar="REF", default="", help="Report only what changed since this commit made false.")
@click.option("--diff", is_flag=True, help="Report only what uncommitted changes make false; like --since HEAD.")
@click.option("--fix", is_flag=True, help="Write the new place of what moved into the documents.")
@click.option(
    "--confidence", type=click.Choice(CONFIDENCES), help="Report alarms at least this certain. [default: high]"
)
@click.option("--baseline", metavar="FILE", help="Leave out the alarms in this file.")
@click.option("--write-baseline", is_flag=True, help="Accept all alarms of today: write them to the baseline.")
@click.option(
    "--format", "style_", type=click.Choice(["text", *FORMATS, "json"]), default="text", help="How to report."
)
@json_flag
@workspace_option
@click.pass_context
def check(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    repository: str | None,
    workspace: str | None,
    style_: str,
    **given: Any,
) -> int:
    """Check documents of a repository against its code.

    Files, folders or patterns; without any, the documents that usually speak about the code: AGENTS.md, CLAUDE.md,
    README, CONTRIBUTING, docs/ and the like. Settings are in truekeep.toml or in pyproject.toml below [tool.truekeep].
    A line with the comment <!-- truekeep: ignore --> is left out. Exits 12 if something is false, 13 if nothing could
    be checked.

    Example: truekeep check --since origin/main --format github
    """
    if given["diff"] and given["since"]:
        raise usage_error("--diff is --since HEAD: give one of them")
    if given["write_baseline"] and (given["fix"] or given["diff"] or given["since"]):
        raise usage_error("--write-baseline takes all alarms: no --fix, --since or --diff")
    top = _top(repository, paths)
    settings = _settings(top, given["confidence"], given["baseline"])
    since = "HEAD" if given["diff"] else given["since"]
    uses_baseline = not given["write_baseline"]
    request = CheckRequest(top=top, named=paths, settings=settings, since=since, is_baseline_used=uses_baseline)
    with ProgressDisplay("checking") as display:
        memory: Sequence[CheckedMemory] = ()
        if since and not paths and has_workspace(ctx, workspace):
            opened = open_workspace(ctx, workspace)
            memory = opened.verification.verify((), repository=top, progress=display.step)
        report = run_check(request, memory=memory, progress=display.step)
    if given["write_baseline"]:
        return _accept(top, settings, report)
    fixed = list(write_repairs(top, report.alarms)) if given["fix"] else []
    left = [alarm for alarm in report.alarms if not (fixed and alarm.replacement and not alarm.is_memory)]
    if style_ in FORMATS and not wants_json():
        for line in FORMATS[style_](report):
            click.echo(line)
    else:
        ctx.meta["truekeep.json"] = wants_json() or style_ == "json"
        data = {"report": report, "fixed": [{"path": path, "places": count} for path, count in fixed]}
        emit("check", data, _render(report, left, fixed))
    return EXIT_ROT if left else EXIT_UNCHECKED if report.is_unchecked else 0


def _top(repository: str | None, paths: Sequence[str]) -> Path:
    start = checked_folder(repository) if repository is not None else Path.cwd()
    if repository is None and paths:
        first = Path(paths[0])
        start = first if first.is_dir() else first.parent if first.parent.is_dir() else start
    top = find_top(start.resolve())
    if top is None and (start / "HEAD").is_file() and (start / "objects").is_dir():
        raise BadInput(
            f"{start.resolve()} is a bare repository", hint="check a work tree of it: git worktree add ../checkout"
        )
    if top is None:
        raise BadInput(f"{start} is not in a git repository", hint="run it in a checkout, or name one with --repo")
    return top.resolve()


def _settings(top: Path, confidence: str | None, baseline: str | None) -> CheckSettings:
    settings = read_settings(top)
    if confidence is not None:
        settings = replace(settings, confidence=confidence)
    if baseline is not None:
        settings = replace(settings, baseline=baseline)
    return validated(settings, "the command line")


def _accept(top: Path, settings: CheckSettings, report: CheckReport) -> int:
    name = settings.baseline or DEFAULT_FILE
    write_baseline(top / name, report.alarms)

    def render() -> Iterator[Shown]:
        yield f"wrote {name}: {many(len(report.alarms), 'alarm')} accepted"
        if not settings.baseline:
            yield f'next: set baseline = "{name}" in truekeep.toml, and commit both'

    emit("check-baseline", {"baseline": name, "alarms": len(report.alarms)}, render())
    return 0


# --- Text ------------------------------------------------------------------------------------------------------------


def _render(report: CheckReport, left: Sequence[FalseClaim], fixed: Sequence[tuple[str, int]]) -> Iterator[Shown]:
    for group in _grouped(left):
        yield from _render_group(group)
    for path, count in fixed:
        yield style("fixed", fg="green") + f" {path}: {many(count, 'place')}"
    if fixed:
        yield "see it with `git diff`; `git restore FILE` takes it back"
    if left:
        yield ""
    yield _summary(report, left)
    yield from _notes(report)
    repairable = sum(bool(alarm.replacement) and not alarm.is_memory for alarm in left)
    if repairable and not fixed:
        yield f"next: truekeep check --fix writes {many(repairable, 'repair')}"


def _grouped(alarms: Sequence[FalseClaim]) -> list[list[FalseClaim]]:
    """Report the same claim with the same answer once, at its first place."""

    def key(alarm: FalseClaim) -> tuple[str, ...]:
        return alarm.verdict, alarm.claim, alarm.why

    groups = [list(group) for _, group in groupby(sorted(alarms, key=key), key)]
    return sorted(groups, key=lambda group: (group[0].path, group[0].line))


def _render_group(group: Sequence[FalseClaim]) -> Iterator[str]:
    first, *others = group
    word = style(first.verdict, fg=_COLOURS[first.verdict])
    yield f"{style(f'{first.path}:{first.line}:{first.column}', bold=True)}: {word}: {first.message}"
    if others:
        places = ", ".join(f"{alarm.path}:{alarm.line}" for alarm in others[:_MAX_OTHER_PLACES])
        more = f" and {len(others) - _MAX_OTHER_PLACES} more" if len(others) > _MAX_OTHER_PLACES else ""
        yield style(f"    also {places}{more}", dim=True)


def _summary(report: CheckReport, left: Sequence[FalseClaim]) -> str:
    against = f"{report.repository} at {report.head[:10]}" if report.head else report.repository
    checked = report.claims - report.counts["unverifiable"]
    since = f" since {report.base[:10]}" if report.base else ""
    count = style(f"{many(len(left), 'false claim')}", fg="red") if left else style("no false claims", fg="green")
    return (
        f"{count}{since}; checked {checked} of {report.claims} claims in {many(report.files, 'file')} against {against}"
    )


def _notes(report: CheckReport) -> Iterator[str]:
    left_out = {
        "in the baseline": report.known,
        "ignored": report.ignored,
        "less certain (--confidence medium or low shows them)": report.less_certain,
    }
    if parts := [f"{count} {what}" for what, count in left_out.items() if count]:
        yield style(f"not reported: {', '.join(parts)}", dim=True)
    for path in report.unread:
        yield style(f"{path}: not UTF-8 text, so it was not checked", fg="yellow")
    if not report.files and not report.unread and not report.base:
        yield style("no documents here: name files or folders, or set `include` in truekeep.toml", fg="yellow")
    if report.missing:
        why = f"this is a {report.missing} clone: more would be found with {_HISTORY[report.missing]}"
        yield style(why, fg="yellow")
    if report.is_unchecked:
        yield style("nothing could be checked", fg="red")
