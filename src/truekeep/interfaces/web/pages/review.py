"""Review: the queue of drafts, and one draft with what it would change in memory.

Every form carries the digests of what was shown. If the draft or a file that it would change differs when the form
arrives, nothing is written: the page is shown again with what changed, and with the typed text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, NotFound, TruekeepError
from truekeep.core.model import CARDS, REVIEW, RULES
from truekeep.handoffs.draft import Draft
from truekeep.handoffs.review import FileChange
from truekeep.interfaces.web.diff_view import Sides, compare
from truekeep.interfaces.web.pages.review_caches import CardNames, ShownFiles, read_current
from truekeep.interfaces.web.pages.review_choice import Choice, filters_of
from truekeep.interfaces.web.pages.review_forms import ROWS, reason_in, remember_proposal, seen_in
from truekeep.interfaces.web.pages.review_several import SeveralPages
from truekeep.interfaces.web.site import Site, number_of, status_of, text_of
from truekeep.memory.card import words_of
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import find_hidden, strip_hidden
from truekeep.workspace.workspace import Workspace

MAX_SUGGESTED_DOCUMENTS = 50
MAX_ORIGINAL_CHARACTERS = 200_000
MAX_HIDDEN_PLACES = 20  # of hidden characters that are listed
MEANINGS = {code: rule.meaning for code, rule in RULES.items()}
_BOM = b"\xef\xbb\xbf"
DONE_WORDS = {
    "approved": "Approved",
    "rejected": "Rejected",
    "edited": "Saved",
    "retried": "Filed",
    "expired": "Expired",
    "undone": "Taken back",
}
VERBS_THAT_KEEP_A_DRAFT = ("review", "proposed", "edited")


def routes(site: Site) -> list[BaseRoute]:
    shown = ShownFiles()
    pages, several = _Pages(shown), SeveralPages(shown)
    return [
        *_deciding(site, pages, several),
        site.page("/review/{id}/edit", pages.edit),
        site.act("/review/{id}/edit", pages.save),
    ]


def deciding_routes(site: Site) -> list[BaseRoute]:
    """The pages without those that edit drafts."""
    shown = ShownFiles()
    return _deciding(site, _Pages(shown), SeveralPages(shown))


def _deciding(site: Site, pages: _Pages, several: SeveralPages) -> list[BaseRoute]:
    return [
        site.page("/review", pages.queue),
        site.page("/review/-/several", several.several),
        site.form("/review/-/several", several.decide_several),
        site.page("/review/{id}", pages.draft),
        site.form("/review/{id}", pages.decide),
    ]


class FileComparison(NamedTuple):
    """A file beside what it becomes, or beside what it was."""

    path: str
    sides: Sides
    said: str = ""


class PageProblem(NamedTuple):
    """Why something was not done, above the page on which it was asked for."""

    error: TruekeepError
    changed: tuple[FileComparison, ...] = ()

    @property
    def findings(self) -> Sequence[Any]:
        return getattr(self.error, "findings", ())


class _Pages:
    """The pages of one site's review."""

    def __init__(self, shown: ShownFiles) -> None:
        self._shown = shown
        self._names = CardNames()

    # The queue.

    def queue(self, site: Site, workspace: Workspace, request: Request) -> Response:
        choice = Choice.of(request)
        drafts, assignees = workspace.review.drafts(judged=True), site.assignees(request)
        chosen = [draft for draft in drafts if choice.has(draft, assignees)]
        pages = max(1, -(-len(chosen) // ROWS))
        page = min(max(1, number_of(request, "page", 1)), pages)
        rows = chosen[(page - 1) * ROWS : page * ROWS]
        now = workspace.now()
        return site.render(
            request,
            "review.html",
            title="Review",
            choice=choice,
            filters=filters_of(drafts, choice, assignees),
            assignees=assignees,
            accounts=site.accounts(request, _digests(rows)),
            meanings=MEANINGS,
            total=len(drafts),
            count=len(chosen),
            rows=[
                {
                    "draft": draft,
                    "title": workspace.review.title(draft),
                    "age": age_of(draft.received_at, now),
                    "link": choice.link(f"/review/{draft.id}"),
                }
                for draft in rows
            ],
            page=page,
            pages=pages,
            before=choice.link(page=page - 1) if page > 1 else "",
            after=choice.link(page=page + 1) if page < pages else "",
            done=_done(workspace, request),
        )

    # One draft.

    def draft(self, site: Site, workspace: Workspace, request: Request) -> Response:
        return self._draft(site, workspace, request)

    def _draft(
        self, site: Site, workspace: Workspace, request: Request, *, problem: PageProblem | None = None, after: str = ""
    ) -> Response:
        choice, wanted = Choice.of(request), request.path_params["id"]
        target = request.query_params.get("target", "").strip()[:300]
        try:
            proposal = workspace.review.show(wanted, target=target, exact=True)
        except NotFound as error:
            return self._gone(site, workspace, request, error, after=after, is_late=problem is not None)
        draft, filing = proposal.draft, proposal.decision
        ids = [one.id for one in choice.drafts(site, workspace, request)]
        at = ids.index(draft.id) if draft.id in ids else -1
        context = None if request.query_params.get("lines") == "all" else 3
        return site.render(
            request,
            "review_draft.html",
            status=status_of(problem.error) if problem else 200,
            title=filing.title or draft.id,
            choice=choice,
            draft=draft,
            proposal=proposal,
            filing=filing,
            target=target,
            at=at + 1,
            count=len(ids),
            before=choice.link(f"/review/{ids[at - 1]}") if at > 0 else "",
            after=choice.link(f"/review/{ids[at + 1]}") if at + 1 < len(ids) else "",
            next_id=ids[at + 1] if at + 1 < len(ids) else "",
            age=age_of(draft.received_at, workspace.now()),
            meanings=MEANINGS,
            edits=[self._compared(edit, filing.is_whole, context) for edit in proposal.edits],
            is_approvable=not filing.blocking and proposal.blocker is None,
            original=draft.body.decode("utf-8", "replace")[:MAX_ORIGINAL_CHARACTERS],
            is_cut=len(draft.body) > MAX_ORIGINAL_CHARACTERS,
            saw=remember_proposal(self._shown, proposal),
            suggested=self._suggested(workspace, draft, filing.title),
            links=_links(choice, draft, target),
            problem=problem,
            account_of=site.accounts(request, _digests([draft])).get(draft.digest, ""),
            assignees=site.assignees(request),
            reviewers=site.reviewers(request),
            done=_done(workspace, request),
        )

    def _suggested(self, workspace: Workspace, draft: Draft, title: str) -> list[str]:
        """Other targets for a draft: the cards whose names share most words with it, then the documents."""
        words = set(words_of(f"{draft.id} {draft.target} {title}".replace("-", " ").replace("/", " ")))
        cards = [f"{CARDS}/{name}" for name in self._names.like(workspace, words)]
        return cards + workspace.review.documents()[:MAX_SUGGESTED_DOCUMENTS]

    def _compared(self, edit: FileChange, is_whole: bool, context: int | None) -> FileComparison:
        if edit.before is None:
            said = "is new"
        elif edit.after is None:
            said = "goes"
        else:
            said = "changes" if is_whole else "gets these lines"
        return FileComparison(edit.path, compare(edit.before, edit.after, context=context), said)

    def _gone(
        self, site: Site, workspace: Workspace, request: Request, error: NotFound, *, after: str, is_late: bool
    ) -> Response:
        """The page for a draft that was decided meanwhile: by whom, when, and the next one."""
        wanted = request.path_params["id"]
        entry = workspace.history.last(f"{REVIEW}/{wanted}.md")
        if entry is None:
            raise error
        choice = Choice.of(request)
        ids = [draft.id for draft in choice.drafts(site, workspace, request)]
        following = after if after in ids else next(iter(ids), "")
        return site.render(
            request,
            "review_gone.html",
            status=409 if is_late else 410,
            title="This draft is not here any more",
            wanted=wanted,
            entry=entry,
            is_taken=entry.verb in VERBS_THAT_KEEP_A_DRAFT,
            verb=DONE_WORDS.get(entry.verb, entry.verb).lower(),
            age=age_of(entry.at, workspace.now()),
            next=choice.link(f"/review/{following}") if following else "",
            queue=choice.link(),
            count=len(ids),
        )

    def decide(self, site: Site, request: Request, form: FormData) -> Response:
        """Approve or reject, then on to the next draft."""
        wanted, choice, seen = request.path_params["id"], Choice.of(request), seen_in(form, "saw")
        with site.lend(request) as workspace:
            following = _following(site, workspace, request, wanted)
        try:
            match text_of(form, "do"):
                case "approve":
                    target = request.query_params.get("target", "").strip()[:300]
                    site.approve(request, wanted, target=target, seen=seen)
                case "reject":
                    site.reject(request, wanted, reason=reason_in(form), seen=seen)
                case _:
                    raise BadInput("this form has no action", hint="load the page again")
        except TruekeepError as error:
            with site.lend(request) as workspace:
                problem = self._problem(workspace, error, seen)
                return self._draft(site, workspace, request, problem=problem, after=text_of(form, "after"))
        with site.lend(request) as workspace:
            return _go_on(site, workspace, choice, wanted, following)

    def _problem(self, workspace: Workspace, error: TruekeepError, seen: Mapping[str, str]) -> PageProblem:
        """The error, with what changed since the person loaded the page."""
        changed: list[FileComparison] = []
        for path in error.details.get("changed", ()):
            old = self._shown.find(seen.get(path, ""))
            if old is not None or not seen.get(path):
                changed.append(FileComparison(path, compare(old, read_current(workspace, path))))
        return PageProblem(error, tuple(changed))

    # Editing.

    def edit(self, site: Site, workspace: Workspace, request: Request) -> Response:
        return self._edit(site, workspace, request)

    def _edit(
        self,
        site: Site,
        workspace: Workspace,
        request: Request,
        *,
        problem: PageProblem | None = None,
        typed: str | None = None,
        is_saved: bool = False,
    ) -> Response:
        choice, wanted = Choice.of(request), request.path_params["id"]
        target = request.query_params.get("target", "").strip()[:300]
        try:
            proposal = workspace.review.show(wanted, target=target, exact=True)
        except NotFound as error:
            if typed is None:
                return self._gone(site, workspace, request, error, after="", is_late=False)
            proposal = None
        draft = proposal.draft if proposal else None
        there = decode_text(draft.body) if draft else ""
        text = there if typed is None else typed
        entry = workspace.history.last(f"{REVIEW}/{wanted}.md") if draft is None else None
        mine = compare(draft.body, typed.encode()) if draft and typed is not None and typed != there else None
        runs = find_hidden(text or "")
        return site.render(
            request,
            "review_edit.html",
            status=(status_of(problem.error) if proposal else 409) if problem else 200,
            title=f"Edit {proposal.decision.title or wanted}" if proposal else f"Edit {wanted}",
            choice=choice,
            wanted=wanted,
            draft=draft,
            entry=entry,
            is_taken=entry is not None and entry.verb in VERBS_THAT_KEEP_A_DRAFT,
            text=text,
            mine=mine if isinstance(problem.error if problem else None, EditedSince) else None,
            blocking=proposal.decision.blocking if proposal else (),
            saw=remember_proposal(self._shown, proposal) if proposal else [],
            runs=[
                ((text or "").count("\n", 0, run.start) + 1, run.kind, run.decoded) for run in runs[:MAX_HIDDEN_PLACES]
            ],
            hidden=len(runs),
            link=_links(choice, draft, target)["edit"] if draft else "",
            back=_links(choice, draft, target)["self"] if draft else choice.link(),
            queue=choice.link(),
            problem=problem,
            is_saved=is_saved,
        )

    def save(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Save the person's text in the draft, and file it if they ask for that."""
        wanted, choice, seen = request.path_params["id"], Choice.of(request), seen_in(form, "saw")
        target = request.query_params.get("target", "").strip()[:300]
        typed = text_of(form, "text").replace("\r\n", "\n").replace("\r", "\n")
        if text_of(form, "strip"):
            typed = strip_hidden(typed)
        following = _following(site, workspace, request, wanted)
        is_saved = False
        try:
            draft, is_saved = workspace.review.edit(wanted, lambda body: _as_before(body, typed), seen=seen)
            if text_of(form, "do") != "approve":
                told = "" if is_saved else "Nothing was changed: the text is as it was"
                query = choice.query(target=target, done=_number(workspace, wanted) if is_saved else 0, told=told)
                return site.go(quote(f"/review/{wanted}"), **query)
            seen = seen | {draft.path: draft.file_digest} if is_saved else seen
            workspace.review.approve(wanted, target=target, seen=seen)
        except TruekeepError as error:
            problem = self._problem(workspace, error, seen)
            if is_saved and not isinstance(error, InvalidHandoff):
                return self._draft(site, workspace, request, problem=problem)
            return self._edit(site, workspace, request, problem=problem, typed=typed, is_saved=is_saved)
        return _go_on(site, workspace, choice, wanted, following)

    # Several at once.


# What the pages have in common.


def age_of(at: str, now: datetime) -> str:
    """The age of a time, in its largest unit."""
    try:
        seconds = (now - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return "unknown"
    minutes = max(0, int(seconds // 60))
    for size, unit in ((24 * 60, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size * (2 if size > 1 else 1):
            return f"{minutes // size} {unit}{'s' if minutes // size > 1 else ''}"
    return "a moment"


def _following(site: Site, workspace: Workspace, request: Request, wanted: str) -> str:
    """The next draft that matches the filters."""
    ids = [draft.id for draft in Choice.of(request).drafts(site, workspace, request)]
    at = ids.index(wanted) if wanted in ids else -1
    return ids[at + 1] if at + 1 < len(ids) else ""


def _go_on(site: Site, workspace: Workspace, choice: Choice, wanted: str, following: str) -> Response:
    path = f"/review/{following}" if following else "/review"
    return site.go(quote(path), **choice.query(done=_number(workspace, wanted)))


def _number(workspace: Workspace, wanted: str) -> int:
    entry = workspace.history.last(f"{REVIEW}/{wanted}.md")
    return entry.id if entry is not None else 0


def _done(workspace: Workspace, request: Request) -> dict[str, Any] | None:
    """The last action, from the ledger."""
    number = number_of(request, "done", 0)
    try:
        entry, _ = workspace.history.get(number)
    except NotFound:
        return None
    if entry.verb not in DONE_WORDS or entry.undone_by is not None:
        return None
    drafts = [path for path in entry.paths if path.startswith(f"{REVIEW}/")]
    return {
        "id": entry.id,
        "verb": DONE_WORDS[entry.verb],
        "draft": drafts[0].removeprefix(f"{REVIEW}/").removesuffix(".md") if drafts else "",
        "paths": [path for path in entry.paths if path not in drafts and path != "MEMORY.md"],
    }


def _digests(drafts: Sequence[Draft]) -> list[bytes]:
    """The digests of the handoffs that drafts are of."""
    return [bytes.fromhex(draft.digest) for draft in drafts if re.fullmatch(r"[0-9a-f]{64}", draft.digest)]


def _links(choice: Choice, draft: Draft, target: str) -> dict[str, str]:
    path = f"/review/{draft.id}"
    return {
        "self": choice.link(path, target=target),
        "all": choice.link(path, target=target, lines="all"),
        "own": choice.link(path),
        "edit": choice.link(f"{path}/edit", target=target),
        "queue": choice.link(),
    }


def _as_before(body: bytes, text: str) -> bytes:
    """A text from a form, with the line ends and the byte order mark of the draft."""
    if decode_text(body) == text:
        return body
    is_dos = b"\r\n" in body and body.count(b"\n") == body.count(b"\r\n")
    data = text.replace("\n", "\r\n" if is_dos else "\n").encode("utf-8", "surrogatepass")
    return _BOM + data if body.startswith(_BOM) and not data.startswith(_BOM) else data
