"""The pages that only a team server has: a workspace's home, assigning a draft, the audit log."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from truekeep.core.dates import as_stamp, day_bounds
from truekeep.core.errors import NotFound
from truekeep.interfaces.web.pages import history, memory, review, search
from truekeep.interfaces.web.pages.home import (
    HANDOFF_WEEKS,
    MAX_EXAMPLES,
    card_plots,
    done_since,
    draft_kinds,
    handoff_plot,
    health_row,
    shown_waiting,
)
from truekeep.interfaces.web.pages.memory_file import FilePages
from truekeep.interfaces.web.pages.review_choice import Choice
from truekeep.interfaces.web.site import Site, number_of, text_of
from truekeep.interfaces.web.team.site import TeamSite, asked_of
from truekeep.server import assignments
from truekeep.server.accounts import AUDIT_ROWS, read_audit
from truekeep.server.handoff_queue import count_waiting
from truekeep.workspace import memory_checks
from truekeep.workspace.check import Check, CheckContext, run_check
from truekeep.workspace.workspace import Workspace

CHECKS = (  # of memory itself; the others are of one machine
    Check("files", "What is in memory?", memory_checks.check_files),
    Check("cards", "How many cards are there?", memory_checks.check_cards),
    Check("untouched", "Which card is oldest?", memory_checks.check_untouched),
    Check("index", "How large is the index?", memory_checks.check_index),
    Check("duplicates", "Has a topic two cards?", memory_checks.check_duplicates),
)
ROLES = {"": "reader", "memory": "reader", "search": "reader", "history": "reader", "news": "reader"} | {
    "review": "reviewer",
    "audit": "owner",
}
"""The role that pages need, by the beginning of their address below the workspace."""


def routes(site: TeamSite) -> list[BaseRoute]:
    return [
        site.page("/", home),
        site.form("/review/{id}/assign", assign),
        *review.deciding_routes(site),
        *memory.reading_routes(site, FilePages()),
        *search.routes(site),
        *history.reading_routes(site),
        site.page("/audit", audit),
        Route(f"{site.base}/news", _news, methods=["GET"]),
    ]


async def _news(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(asked_of(request).reach.version))


def home(site: Site, workspace: Workspace, request: Request) -> Response:
    """What waits, what changed since yesterday, and how memory is."""
    assert isinstance(site, TeamSite)
    reach, now = asked_of(request).reach, workspace.now()
    sees_drafts = site.allowed(request).see_drafts
    drafts = workspace.review.drafts()
    assignees = site.assignees(request) if sees_drafts else {}
    yesterday = now - timedelta(days=1)
    done = done_since(workspace, as_stamp(yesterday), sees_drafts=sees_drafts)
    shown = {path for group in done for entry in group.newest for path, _ in entry.files}
    context = CheckContext(workspace.path, now=lambda: now, workspace=workspace)
    results = {check.name: run_check(check, context)[0] for check in CHECKS}
    rows = [
        health_row(replace(result, hint=""))._replace(title=check.title)
        for check in CHECKS
        if not (result := results[check.name]).is_absent
    ]
    cards = context.once(memory_checks.survey_of).cards
    first, _ = day_bounds(now.date() - timedelta(days=7 * HANDOFF_WEEKS - 1), None)
    plots = card_plots(memory_checks.ages(cards, now.date()), memory_checks.growth(cards, now.date())) if cards else []
    plots.append(handoff_plot(workspace.handoffs.received_by_day(first), now.date()))
    waiting, failed = count_waiting(site.server.database, reach.id)
    return site.render(
        request,
        "team/home.html",
        title=reach.name,
        version=reach.version,
        draft_count=len(drafts),
        kinds=draft_kinds(drafts),
        mine=sum(assignees.get(draft.id) == asked_of(request).caller.name for draft in drafts),
        unassigned=sum(draft.id not in assignees for draft in drafts),
        drafts=[
            (draft, workspace.review.title(draft) or draft.name, shown_waiting(draft.received_at, now))
            for draft in drafts[: MAX_EXAMPLES if sees_drafts else 0]
        ],
        waiting=waiting,
        failed=failed,
        done=done,
        titles={draft.path: workspace.review.title(draft) for draft in drafts if draft.path in shown},
        page_of=history.page_of,
        since=yesterday.date().isoformat(),
        questions=rows,
        plots=plots,
    )


def assign(site: Site, request: Request, form: FormData) -> Response:
    """Give a draft to a reviewer, or take it from them."""
    assert isinstance(site, TeamSite)
    wanted, (caller, reach) = request.path_params["id"], asked_of(request)
    with site.lend(request) as workspace:
        if all(draft.id != wanted for draft in workspace.review.drafts()):
            raise NotFound("this draft does not wait any more", hint="the queue has those that do")
    to = text_of(form, "to")
    assignments.assign(site.server.database, caller, reach, wanted, to, was=text_of(form, "was"))
    given = {name: text_of(form, name)[:300] for name in Choice._fields}
    return site.go(quote(f"/review/{wanted}"), **given, told=f"assigned to {to}" if to else "assigned to nobody")


def audit(site: Site, workspace: Workspace, request: Request) -> Response:  # noqa: ARG001 - no file is read
    """Who did what in this workspace, newest first."""
    assert isinstance(site, TeamSite)
    before = number_of(request, "before", 0, most=2**62)
    rows = read_audit(site.server.database, asked_of(request).reach.id, before or 2**62)
    entries: list[dict[str, Any]] = [
        {
            "at": as_stamp(row.at),
            "actor": row.actor,
            "act": row.act,
            "detail": [(name, _shown(value)) for name, value in row.detail.items() if value not in ("", None)],
        }
        for row in rows
    ]
    older = rows[-1].id if len(rows) == AUDIT_ROWS else 0
    return site.render(request, "team/audit.html", title="Audit", entries=entries, older=older, is_newest=not before)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value[:20])
    return str(value)[:300]
