"""truekeep ingest."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.model import RULES
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.output import (
    COLOURS,
    json_option,
    open_workspace,
    print_difference,
    print_findings,
    print_json,
    shown_finding,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import echo, print_warning, style

if TYPE_CHECKING:
    from truekeep.core.model import FilingOutcome, IngestReport
    from truekeep.workspace.workspace import Workspace

EXIT_FAILED = 1
EXIT_NOTHING = 10
EXIT_REVIEW = 11
_DRY_RUN_WORDS = {"promoted": "would promote", "routed": "would route", "review": "would review"}


@click.command()
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_folders,
    help="Scan only this repository; may be repeated.",
)
@click.option("--promote-cards", is_flag=True, help="File into cards only, unless the other route is also given.")
@click.option("--route-documents", is_flag=True, help="File into documents only, unless the other route is also given.")
@click.option("--dry-run", is_flag=True, help="Show what would be written without changing anything.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the counts.")
@click.option("--exit-code", is_flag=True, help="Exit 10 if there was nothing to do, 11 if something needs review.")
@click.option(
    "--watch", is_flag=True, help="Keep running and file handoffs within seconds. With --json, one object per line."
)
@json_option
@workspace_option
@click.pass_context
def ingest(
    ctx: click.Context,
    repositories: tuple[str, ...],
    promote_cards: bool,
    route_documents: bool,
    dry_run: bool,
    quiet: bool,
    exit_code: bool,
    watch: bool,
    as_json: bool,
    workspace: str | None,
) -> int:
    """File all pending handoffs into memory.

    Each handoff becomes a card or lines in a document, is recognized as already filed, or goes to review with the
    reasons. Its file moves to processed/. Safe to run at any time, also from cron; only on the canonical host.

    Example: truekeep ingest --dry-run
    """
    opened = open_workspace(ctx, workspace)
    both = promote_cards == route_documents
    if watch:
        if dry_run or exit_code:
            raise click.UsageError("--watch goes with neither --dry-run nor --exit-code", ctx=ctx)
        roots = [Path(repo).expanduser().absolute() for repo in repositories] if repositories else None
        _watch(opened, roots, both or promote_cards, both or route_documents, quiet=quiet, as_json=as_json)
        return 0
    filed: list[dict[str, Any]] = []

    def tell(item: FilingOutcome) -> None:
        if as_json:
            filed.append(_as_json(item))
        elif not quiet:
            _show(opened, item, dry_run=dry_run)

    report = opened.handoffs.ingest(
        repositories=[Path(repo) for repo in repositories] if repositories else None,
        cards=both or promote_cards,
        documents=both or route_documents,
        dry_run=dry_run,
        on_filed=tell,
    )
    if as_json:
        _print_json(report, filed)
    else:
        opened.notices.clear()  # they are among the warnings
        _print_counts(report)
    if report.count("failed"):
        return EXIT_FAILED
    if exit_code and report.count("review"):
        return EXIT_REVIEW
    return EXIT_NOTHING if exit_code and not report.processed else 0


def _watch(
    opened: Workspace, roots: list[Path] | None, cards: bool, documents: bool, *, quiet: bool, as_json: bool
) -> None:
    import json

    from truekeep.workspace.watch import Watch

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(workspace: Workspace, item: FilingOutcome) -> None:
        if as_json:
            echo(json.dumps({"schema": "truekeep.filed/1", **_as_json(item)}))
        elif not quiet:
            _show(workspace, item, dry_run=False)
        sys.stdout.flush()

    if sys.stderr.isatty():
        echo("watching; press Ctrl-C to stop", err=True)
    Watch(opened.path, repositories=roots, cards=cards, documents=documents, on_filed=tell, warn=print_warning).run(
        stop
    )


def _show(opened: Workspace, item: FilingOutcome, *, dry_run: bool) -> None:
    word = _DRY_RUN_WORDS.get(item.outcome, item.outcome).ljust(13) if dry_run else item.outcome.ljust(9)
    word = style(word, fg=COLOURS.get(item.outcome))
    arrow = f" -> {item.target}" if item.target else ""
    why = f"  ({item.why})" if item.why else ""
    echo(f"{word} {item.name or item.inbox}{arrow}{why}")
    config = opened.config
    blocking = [finding for finding in item.findings if config.policy_for(finding.code) != "promote"]
    if item.outcome in ("review", "refused"):
        print_findings(blocking, indent="          ")
    print_difference(item.difference)


def _print_counts(report: IngestReport) -> None:
    for warning in report.warnings:
        print_warning(warning)
    if report.dry_run:
        echo("Dry run: nothing was changed.")
    echo(f"{'Would process' if report.dry_run else 'Processed'} {report.processed}")
    for name in ("promoted", "routed", "review"):
        word = _DRY_RUN_WORDS[name] if report.dry_run else name
        echo(f"{word.capitalize()} {report.count(name)}")
    for name in ("already", "refused", "skipped", "failed"):
        if report.count(name):
            echo(f"{name.capitalize()} {report.count(name)}")
    if not report.processed:
        echo("NO_UPDATES")
    if report.count("review") and not report.dry_run and sys.stdout.isatty():
        echo(style("next: truekeep review walk", fg="bright_black"))


def _print_json(report: IngestReport, filed: list[dict[str, Any]]) -> None:
    names = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
    print_json(
        "ingest",
        {
            "dry_run": report.dry_run,
            "processed": report.processed,
            "counts": {name: report.count(name) for name in names},
            "no_updates": not report.processed,
            "handoffs": filed,
            "warnings": report.warnings,
        },
    )


def _as_json(item: FilingOutcome) -> dict[str, Any]:
    return {
        "outcome": item.outcome,
        "name": item.name,
        "inbox": item.inbox,
        "writer": item.writer,
        "repository": item.repository,
        "title": item.title,
        "target": item.target,
        "findings": [shown_finding(finding) | {"meaning": RULES[finding.code].meaning} for finding in item.findings],
        "why": item.why,
        "difference": list(item.difference),
    }
