"""truekeep ingest."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.model import RULES
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import (
    dry_run_option,
    exit_code_option,
    in_workspace,
    repos_option,
    usage_error,
    wants_json,
)
from truekeep.interfaces.cli.output import COLOURS, Shown, emit, show
from truekeep.interfaces.cli.terminal import echo, print_warning, render_difference, render_findings, style, warning
from truekeep.text.durability import NOT_DURABLE

if TYPE_CHECKING:
    from truekeep.core.model import FilingOutcome, IngestReport
    from truekeep.workspace.workspace import Workspace

EXIT_FAILED = 1
EXIT_NOTHING = 10
EXIT_REVIEW = 11
_OUTCOMES = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
_SHOWN_HINTS = (*NOT_DURABLE, "added-to", "related-card")  # of handoffs that were filed
_DRY_RUN_WORDS = {"promoted": "would promote", "routed": "would route", "review": "would review"}


@click.command()
@repos_option("Scan only this repository; may be repeated.")
@click.option("--promote-cards", is_flag=True, help="File into cards only, unless the other route is also given.")
@click.option("--route-documents", is_flag=True, help="File into documents only, unless the other route is also given.")
@dry_run_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the counts.")
@exit_code_option("Exit 10 if there was nothing to do, 11 if something needs review.")
@click.option(
    "--watch", is_flag=True, help="Keep running and file handoffs within seconds. With --json, one object per line."
)
@in_workspace
def ingest(
    opened: Workspace,
    repositories: tuple[str, ...],
    promote_cards: bool,
    route_documents: bool,
    dry_run: bool,
    quiet: bool,
    exit_code: bool,
    watch: bool,
) -> int:
    """File all pending handoffs into memory.

    Each handoff becomes a card or lines in a document, is recognized as already filed, or goes to review with the
    reasons. Its file moves to processed/. Safe to run at any time, also from cron; only on the canonical host.

    Example: truekeep ingest --dry-run
    """
    both = promote_cards == route_documents
    routes: dict[str, Any] = {"cards": both or promote_cards, "documents": both or route_documents}
    roots = [Path(repo).expanduser().absolute() for repo in repositories] if repositories else None
    if watch:
        if dry_run or exit_code:
            raise usage_error("--watch goes with neither --dry-run nor --exit-code")
        _watch(opened, roots, routes, quiet=quiet)
        return 0
    filed: list[FilingOutcome] = []

    def tell(item: FilingOutcome) -> None:
        filed.append(item)
        if not quiet and not wants_json():
            show(_render_filed(opened, item, dry_run=dry_run))

    report = opened.handoffs.ingest(repositories=roots, dry_run=dry_run, on_filed=tell, **routes)
    if not wants_json():
        opened.notices.clear()  # they are among the warnings
    emit("ingest", _report_json(report, filed), _render_counts(report))
    if report.count("failed"):
        return EXIT_FAILED
    if exit_code and report.count("review"):
        return EXIT_REVIEW
    return EXIT_NOTHING if exit_code and not report.processed else 0


def _watch(opened: Workspace, roots: list[Path] | None, routes: dict[str, bool], *, quiet: bool) -> None:
    from truekeep.workspace.watch import Watch  # here: loads watchfiles

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(workspace: Workspace, item: FilingOutcome) -> None:
        if as_json:
            echo(json.dumps({"schema": "truekeep.filed/1", **_filed_json(item)}))
        elif not quiet:
            show(_render_filed(workspace, item, dry_run=False))
        sys.stdout.flush()

    as_json = wants_json()  # asked here: other threads have no context
    if sys.stderr.isatty():
        echo("watching; press Ctrl-C to stop", err=True)
    Watch(opened.path, repositories=roots, on_filed=tell, warn=print_warning, **routes).run(stop)


def _render_filed(opened: Workspace, item: FilingOutcome, *, dry_run: bool) -> Iterator[str]:
    word = _DRY_RUN_WORDS.get(item.outcome, item.outcome).ljust(13) if dry_run else item.outcome.ljust(9)
    arrow = f" -> {item.target}" if item.target else ""
    why = f"  ({item.why})" if item.why else ""
    yield f"{style(word, fg=COLOURS.get(item.outcome))} {item.name or item.inbox}{arrow}{why}"
    if item.outcome in ("review", "refused"):
        policy_for = opened.config.policy_for
        blocking = [finding for finding in item.findings if policy_for(finding.code) != "promote"]
        yield from render_findings(blocking, indent="          ")
    elif shown := [finding for finding in item.findings if finding.code in _SHOWN_HINTS]:
        yield from render_findings(shown, indent="          ")
    yield from render_difference(item.difference)


def _render_counts(report: IngestReport) -> Iterator[Shown]:
    yield from map(warning, report.warnings)
    if report.dry_run:
        yield "Dry run: nothing was changed."
    yield f"{'Would process' if report.dry_run else 'Processed'} {report.processed}"
    for name in ("promoted", "routed", "review"):
        word = _DRY_RUN_WORDS[name] if report.dry_run else name
        yield f"{word.capitalize()} {report.count(name)}"
    for name in ("already", "refused", "skipped", "failed"):
        if report.count(name):
            yield f"{name.capitalize()} {report.count(name)}"
    if not report.processed:
        yield "NO_UPDATES"
    if report.count("review") and not report.dry_run:
        yield "next: truekeep review walk" if sys.stdout.isatty() else "next: truekeep review list"


def _report_json(report: IngestReport, filed: list[FilingOutcome]) -> dict[str, Any]:
    return {
        "dry_run": report.dry_run,
        "processed": report.processed,
        "counts": {name: report.count(name) for name in _OUTCOMES},
        "no_updates": not report.processed,
        "handoffs": [_filed_json(item) for item in filed],
        "warnings": report.warnings,
    }


def _filed_json(item: FilingOutcome) -> dict[str, Any]:
    findings = [{**to_json(finding), "meaning": RULES[finding.code].meaning} for finding in item.findings]
    return {**to_json(item), "findings": findings}
