"""Review several drafts at once: what would happen, and the result for each."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from truekeep.core.errors import BadInput, InvalidHandoff, NotFound, TruekeepError
from truekeep.core.model import REVIEW
from truekeep.interfaces.web.diff_view import compare
from truekeep.interfaces.web.pages.review_caches import ShownFiles
from truekeep.interfaces.web.pages.review_choice import Choice
from truekeep.interfaces.web.pages.review_forms import ROWS, reason_in, remember_proposal, seen_in
from truekeep.interfaces.web.site import Site, number_of, text_of
from truekeep.memory.ledger import LedgerEntry
from truekeep.workspace.workspace import Workspace


class SeveralPages:
    """Approve, retry or reject the drafts of one page of the queue."""

    def __init__(self, shown: ShownFiles) -> None:
        self._shown = shown

    def several(self, site: Site, workspace: Workspace, request: Request) -> Response:
        """Show what would be approved or rejected, and ask."""
        choice = Choice.of(request)
        is_reject = "reject" in (request.query_params.get("do"), request.query_params.get("all"))
        wanted = list(dict.fromkeys(request.query_params.getlist("draft")))[:ROWS]
        if request.query_params.get("all"):
            page = max(1, number_of(request, "page", 1))
            chosen = [draft.id for draft in choice.drafts(site, workspace, request)]
            wanted = chosen[(page - 1) * ROWS : page * ROWS]
        rows, missing = [], []
        for one in wanted:
            try:
                proposal = workspace.review.show(one, exact=True)
            except NotFound:
                missing.append(one)
                continue
            counted = [compare(edit.before, edit.after, most=1) for edit in proposal.edits]
            rows.append(
                {
                    "proposal": proposal,
                    "link": choice.link(f"/review/{one}"),
                    "is_approvable": not proposal.decision.blocking and proposal.blocker is None,
                    "added": sum(sides.added for sides in counted),
                    "removed": sum(sides.removed for sides in counted),
                    "saw": remember_proposal(self._shown, proposal),
                }
            )
        return site.render(
            request,
            "review_several.html",
            title=f"{'Reject' if is_reject else 'Approve'} several drafts",
            is_reject=is_reject,
            rows=rows,
            missing=missing,
            ready=len(rows) if is_reject else sum(row["is_approvable"] is True for row in rows),
            action=choice.link("/review/-/several"),
            queue=choice.link(),
        )

    def decide_several(self, site: Site, request: Request, form: FormData) -> Response:
        """Approve or reject each; one that fails does not stop the others."""
        choice, do = Choice.of(request), text_of(form, "do")
        if do not in ("approve", "reject", *(("retry",) if site.allowed(request).edit else ())):
            raise BadInput("this form has no action", hint="load the page again")
        reason = reason_in(form)
        done: list[tuple[str, LedgerEntry | None]] = []
        failed: list[tuple[str, TruekeepError, str]] = []
        for wanted in [str(one) for one in dict.fromkeys(form.getlist("draft"))][:ROWS]:
            try:
                if do == "retry":
                    with site.lend(request) as workspace:
                        ((_, filing),) = workspace.review.retry(wanted, exact=True)
                    if filing.outcome in ("review", "refused"):
                        raise InvalidHandoff("it still waits", filing.blocking)
                elif do == "reject":
                    site.reject(request, wanted, reason=reason, seen=seen_in(form, f"saw-{wanted}"))
                else:
                    site.approve(request, wanted, seen=seen_in(form, f"saw-{wanted}"))
            except TruekeepError as error:
                link = "" if isinstance(error, NotFound) else choice.link(f"/review/{wanted}")
                failed.append((wanted, error, link))
            else:
                with site.lend(request) as workspace:
                    done.append((wanted, workspace.history.last(f"{REVIEW}/{wanted}.md")))
        return site.render(
            request,
            "review_done.html",
            title=f"{len(done)} of {len(done) + len(failed)} {'rejected' if do == 'reject' else 'filed'}",
            word="rejected" if do == "reject" else "filed",
            done=done,
            failed=failed,
            queue=choice.link(),
        )
