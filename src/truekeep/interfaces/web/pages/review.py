"""Review: the queue of drafts, one draft beside what it would make of memory, and what a person does with it.

Every form carries the digests of what was shown. If the draft or a file that it changes is another one by the time the
form comes back, nothing is written: the page is shown again as things are now, with what changed, and with what the
person had typed.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, NotFound, TruekeepError
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, DOCUMENTS, REVIEW, RULES
from truekeep.handoffs.draft import Draft, parse_draft
from truekeep.handoffs.format import parse_handoff
from truekeep.handoffs.review import FileChange, Proposal, digest_of
from truekeep.interfaces.web.diff_view import Sides, compare
from truekeep.interfaces.web.site import Site, number_of, status_of, text_of
from truekeep.memory.card import words_of
from truekeep.memory.ledger import LedgerEntry
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import clip, find_hidden, strip_hidden
from truekeep.workspace.workspace import Workspace

ROWS = 50  # of the queue, on one page
SUGGESTED = 60  # cards that are offered as targets
MOST_SHOWN = 200_000  # characters of an original
MOST_TITLED = 64_000  # bytes of a draft in which its title is looked for
MOST_HIDDEN = 20  # places of hidden characters that are named
MEANINGS = {code: rule.meaning for code, rule in RULES.items()}
_BOM = b"\xef\xbb\xbf"
_DONE = {
    "approved": "Approved",
    "rejected": "Rejected",
    "edited": "Saved",
    "retried": "Filed",
    "expired": "Expired",
    "undone": "Taken back",
}
_LEAVING = ("review", "proposed", "edited")  # acts that leave a draft in its folder


def routes(site: Site) -> list[BaseRoute]:
    pages = _Pages()
    return [
        site.page("/review", pages.queue),
        site.page("/review/-/several", pages.several),
        site.act("/review/-/several", pages.decide_several),
        site.page("/review/{id}", pages.draft),
        site.act("/review/{id}", pages.decide),
        site.page("/review/{id}/edit", pages.edit),
        site.act("/review/{id}/edit", pages.save),
    ]


class Choice(NamedTuple):
    """Which drafts somebody goes through."""

    reason: str = ""
    writer: str = ""
    repository: str = ""

    @classmethod
    def of(cls, request: Request) -> Choice:
        return cls(*(request.query_params.get(name, "")[:300] for name in cls._fields))

    def has(self, draft: Draft) -> bool:
        return (
            (not self.reason or self.reason in draft.codes)
            and (not self.writer or draft.writer == self.writer)
            and (not self.repository or draft.repository == self.repository)
        )

    def query(self, **more: str | int) -> dict[str, str]:
        return {name: str(value) for name, value in (self._asdict() | more).items() if value}

    def link(self, path: str = "/review", **more: str | int) -> str:
        """A page of the review for the same drafts."""
        query = self.query(**more)
        return quote(path, safe="/") + (f"?{urlencode(query)}" if query else "")


class ShownFiles:
    """Files as they were last shown, by their digests: so that a page can tell what changed since."""

    MOST_BYTES = 8_000_000
    MOST_OF_ONE = 1_000_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def keep(self, data: bytes | None, digest: str = "") -> None:
        if data is None or len(data) > self.MOST_OF_ONE:
            return
        digest = digest or digest_of(data)
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = data
                self._size += len(data)
            self._kept.move_to_end(digest)
            while self._size > self.MOST_BYTES:
                self._size -= len(self._kept.popitem(last=False)[1])

    def find(self, digest: str) -> bytes | None:
        with self._lock:
            return self._kept.get(digest)


class Titles:
    """The titles of drafts, by the digests of their files: read once, and only of those that a page shows."""

    MOST = 2_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, str] = OrderedDict()

    def of(self, workspace: Workspace, draft: Draft) -> str:
        """What a draft's handoff is called; empty if it says nothing, or is gone by now."""
        known = self._known.get(draft.file_digest)
        if known is None:
            try:
                text = decode_text((_now(workspace, draft.path) or b"")[:MOST_TITLED])
            except (UnsafePath, ChangedSince, OSError):
                return ""
            known = clip(parse_handoff(text or "").title, 120)
            with self._lock:
                self._known[draft.file_digest] = known
                while len(self._known) > self.MOST:
                    self._known.popitem(last=False)
        return known


class CardNames:
    """The names of all cards, by their words; listed anew when a card came or went."""

    def __init__(self) -> None:
        self._known: tuple[object, list[str], Mapping[str, list[str]]] = (None, [], {})

    def like(self, workspace: Workspace, words: Iterable[str], most: int = SUGGESTED) -> list[str]:
        """The names that share most words with these, then others, each by the alphabet."""
        names, having = self._look(workspace)
        shared = Counter(name for word in words for name in having.get(word, ()))
        best = nsmallest(most, shared, key=lambda name: (-shared[name], name))
        return [*best, *islice((name for name in names if name not in shared), most - len(best))]

    def _look(self, workspace: Workspace) -> tuple[list[str], Mapping[str, list[str]]]:
        try:
            info = (workspace.path / CARDS).stat()
        except OSError:
            return [], {}
        stamp = (info.st_ino, info.st_mtime_ns, info.st_ctime_ns)  # before the listing
        known, names, having = self._known
        if known != stamp:
            names, found = sorted(workspace.cards.names()), dict[str, list[str]]()
            for name in names:
                for word in set(name[:-3].casefold().split("-")):
                    found.setdefault(word, []).append(name)
            having = found
            self._known = (stamp, names, having)
        return names, having


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

    def __init__(self) -> None:
        self._shown = ShownFiles()
        self._names = CardNames()
        self._titles = Titles()

    # The queue.

    def queue(self, site: Site, workspace: Workspace, request: Request) -> Response:
        choice = Choice.of(request)
        drafts = workspace.review.drafts(judged=True)
        chosen = [draft for draft in drafts if choice.has(draft)]
        pages = max(1, -(-len(chosen) // ROWS))
        page = min(max(1, number_of(request, "page", 1)), pages)
        rows = chosen[(page - 1) * ROWS : page * ROWS]
        now = workspace.now()
        return site.render(
            request,
            "review.html",
            title="Review",
            choice=choice,
            filters=_filters(drafts, choice),
            meanings=MEANINGS,
            total=len(drafts),
            count=len(chosen),
            rows=[
                {
                    "draft": draft,
                    "title": self._titles.of(workspace, draft),
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
        draft, filing = proposal.draft, proposal.filing
        ids = [one.id for one in workspace.review.drafts(judged=True) if choice.has(one)]
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
            is_approvable=not filing.blocking and proposal.hindrance is None,
            original=draft.body.decode("utf-8", "replace")[:MOST_SHOWN],
            is_cut=len(draft.body) > MOST_SHOWN,
            saw=self._saw(proposal),
            suggested=self._suggested(workspace, draft, filing.title),
            links=_links(choice, draft, target),
            problem=problem,
            done=_done(workspace, request),
        )

    def _suggested(self, workspace: Workspace, draft: Draft, title: str) -> list[str]:
        """Where else a draft might go: the cards whose names share most words with it, then the documents."""
        words = set(words_of(f"{draft.id} {draft.target} {title}".replace("-", " ").replace("/", " ")))
        return [f"{CARDS}/{name}" for name in self._names.like(workspace, words)] + [*DOCUMENTS]

    def _compared(self, edit: FileChange, is_whole: bool, context: int | None) -> FileComparison:
        if edit.before is None:
            said = "is new"
        elif edit.after is None:
            said = "goes"
        else:
            said = "changes" if is_whole else "gets these lines"
        return FileComparison(edit.path, compare(edit.before, edit.after, context=context), said)

    def _saw(self, proposal: Proposal) -> list[str]:
        """What the form carries of what is shown; and what is kept to tell the difference, should it change."""
        for edit in proposal.edits:
            self._shown.keep(edit.before)
        self._shown.keep(proposal.draft.body, proposal.draft.file_digest)
        return [f"{digest} {path}" for path, digest in proposal.seen.items()]

    def _gone(
        self, site: Site, workspace: Workspace, request: Request, error: NotFound, *, after: str, is_late: bool
    ) -> Response:
        """A draft that somebody decided on meanwhile: who, when, and the next one."""
        wanted = request.path_params["id"]
        entry = _last_entry(workspace, wanted)
        if entry is None:
            raise error
        choice = Choice.of(request)
        ids = [draft.id for draft in workspace.review.drafts(judged=True) if choice.has(draft)]
        following = after if after in ids else next(iter(ids), "")
        return site.render(
            request,
            "review_gone.html",
            status=409 if is_late else 410,
            title="This draft is not here any more",
            wanted=wanted,
            entry=entry,
            is_taken=entry.verb in _LEAVING,
            verb=_DONE.get(entry.verb, entry.verb).lower(),
            age=age_of(entry.at, workspace.now()),
            next=choice.link(f"/review/{following}") if following else "",
            queue=choice.link(),
            count=len(ids),
        )

    def decide(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Approve or reject, then on to the next draft."""
        wanted, choice, seen = request.path_params["id"], Choice.of(request), _seen(form, "saw")
        following = _following(workspace, choice, wanted)
        try:
            match text_of(form, "do"):
                case "approve":
                    workspace.review.approve(
                        wanted, target=request.query_params.get("target", "").strip()[:300], seen=seen
                    )
                case "reject":
                    workspace.review.reject(wanted, reason=_reason(form), seen=seen)
                case _:
                    raise BadInput("this form asks for nothing", hint="load the page again")
        except TruekeepError as error:
            problem = self._problem(workspace, error, seen)
            return self._draft(site, workspace, request, problem=problem, after=text_of(form, "after"))
        return _go_on(site, workspace, choice, wanted, following)

    def _problem(self, workspace: Workspace, error: TruekeepError, seen: Mapping[str, str]) -> PageProblem:
        """What changed while somebody looked, as far as it is known what they saw."""
        changed: list[FileComparison] = []
        for path in error.details.get("changed", ()):
            old = self._shown.find(seen.get(path, ""))
            if old is not None or not seen.get(path):
                changed.append(FileComparison(path, compare(old, _now(workspace, path))))
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
        entry = _last_entry(workspace, wanted) if draft is None else None
        mine = compare(draft.body, typed.encode()) if draft and typed is not None and typed != there else None
        runs = find_hidden(text or "")
        return site.render(
            request,
            "review_edit.html",
            status=(status_of(problem.error) if proposal else 409) if problem else 200,
            title=f"Edit {proposal.filing.title or wanted}" if proposal else f"Edit {wanted}",
            choice=choice,
            wanted=wanted,
            draft=draft,
            entry=entry,
            is_taken=entry is not None and entry.verb in _LEAVING,
            text=text,
            mine=mine if isinstance(problem.error if problem else None, EditedSince) else None,
            blocking=proposal.filing.blocking if proposal else (),
            saw=self._saw(proposal) if proposal else [],
            runs=[((text or "").count("\n", 0, run.start) + 1, run.kind, run.decoded) for run in runs[:MOST_HIDDEN]],
            hidden=len(runs),
            link=_links(choice, draft, target)["edit"] if draft else "",
            back=_links(choice, draft, target)["self"] if draft else choice.link(),
            queue=choice.link(),
            problem=problem,
            is_saved=is_saved,
        )

    def save(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Keep the person's text in the draft, judge it anew, and file it if they say so."""
        wanted, choice, seen = request.path_params["id"], Choice.of(request), _seen(form, "saw")
        target = request.query_params.get("target", "").strip()[:300]
        typed = text_of(form, "text").replace("\r\n", "\n").replace("\r", "\n")
        if text_of(form, "strip"):
            typed = strip_hidden(typed)
        following = _following(workspace, choice, wanted)
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

    def several(self, site: Site, workspace: Workspace, request: Request) -> Response:
        """What is about to be approved, or rejected, for somebody to say yes."""
        choice = Choice.of(request)
        is_reject = "reject" in (request.query_params.get("do"), request.query_params.get("all"))
        wanted = list(dict.fromkeys(request.query_params.getlist("draft")))[:ROWS]
        if request.query_params.get("all"):
            page = max(1, number_of(request, "page", 1))
            chosen = [draft.id for draft in workspace.review.drafts(judged=True) if choice.has(draft)]
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
                    "is_approvable": not proposal.filing.blocking and proposal.hindrance is None,
                    "added": sum(sides.added for sides in counted),
                    "removed": sum(sides.removed for sides in counted),
                    "saw": self._saw(proposal),
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

    def decide_several(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Approve or reject each; one that fails does not stop the others."""
        choice, do = Choice.of(request), text_of(form, "do")
        if do not in ("approve", "retry", "reject"):
            raise BadInput("this form asks for nothing", hint="load the page again")
        reason = _reason(form)
        done: list[tuple[str, LedgerEntry | None]] = []
        failed: list[tuple[str, TruekeepError, str]] = []
        for wanted in [str(one) for one in dict.fromkeys(form.getlist("draft"))][:ROWS]:
            try:
                if do == "retry":
                    ((_, filing),) = workspace.review.retry(wanted, exact=True)
                    if filing.outcome in ("review", "refused"):
                        raise InvalidHandoff("it still waits", filing.blocking)
                elif do == "reject":
                    workspace.review.reject(wanted, reason=reason, seen=_seen(form, f"saw-{wanted}"))
                else:
                    workspace.review.approve(wanted, seen=_seen(form, f"saw-{wanted}"))
            except TruekeepError as error:
                link = "" if isinstance(error, NotFound) else choice.link(f"/review/{wanted}")
                failed.append((wanted, error, link))
            else:
                done.append((wanted, _last_entry(workspace, wanted)))
        return site.render(
            request,
            "review_done.html",
            title=f"{len(done)} of {len(done) + len(failed)} {'rejected' if do == 'reject' else 'filed'}",
            word="rejected" if do == "reject" else "filed",
            done=done,
            failed=failed,
            queue=choice.link(),
        )


# What the pages have in common.


def age_of(at: str, now: datetime) -> str:
    """How long ago that was, in the largest unit that says enough."""
    try:
        seconds = (now - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return "unknown"
    minutes = max(0, int(seconds // 60))
    for size, unit in ((24 * 60, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size * (2 if size > 1 else 1):
            return f"{minutes // size} {unit}{'s' if minutes // size > 1 else ''}"
    return "a moment"


def _filters(drafts: Iterable[Draft], choice: Choice) -> list[tuple[str, str, str, list[tuple[str, int]]]]:
    """Name, label, what is chosen, and what there is to choose, the most frequent first."""
    reasons: Counter[str] = Counter()
    writers: Counter[str] = Counter()
    repositories: Counter[str] = Counter()
    for draft in drafts:
        reasons.update(draft.codes)
        writers[draft.writer] += 1
        repositories[draft.repository] += 1
    return [
        (name, label, chosen, _options(counts, chosen))
        for name, label, chosen, counts in (
            ("reason", "Reason", choice.reason, reasons),
            ("writer", "Writer", choice.writer, writers),
            ("repository", "Repository", choice.repository, repositories),
        )
    ]


def _options(counts: Counter[str], chosen: str) -> list[tuple[str, int]]:
    found = [(value, count) for value, count in counts.most_common(200) if value]
    return found if not chosen or any(value == chosen for value, _ in found) else [*found, (chosen, counts[chosen])]


def _now(workspace: Workspace, path: str) -> bytes | None:
    """A file as it is; of a draft, the handoff in it."""
    stored = workspace.context.transaction.vault.read(path)
    if stored is None or not path.startswith(f"{REVIEW}/"):
        return stored.data if stored is not None else None
    return parse_draft(path, stored.data).body


def _seen(form: FormData, name: str) -> dict[str, str]:
    """What a form says that was shown: path by path, each with its digest."""
    parted = (str(value).partition(" ") for value in form.getlist(name))
    return {path: digest for digest, _, path in parted}


def _reason(form: FormData) -> str:
    """Why something is rejected, in one line."""
    return " ".join(text_of(form, "reason").split())[:500]


def _following(workspace: Workspace, choice: Choice, wanted: str) -> str:
    """The draft after this one, among those that somebody goes through."""
    ids = [draft.id for draft in workspace.review.drafts(judged=True) if choice.has(draft)]
    at = ids.index(wanted) if wanted in ids else -1
    return ids[at + 1] if at + 1 < len(ids) else ""


def _go_on(site: Site, workspace: Workspace, choice: Choice, wanted: str, following: str) -> Response:
    path = f"/review/{following}" if following else "/review"
    return site.go(quote(path), **choice.query(done=_number(workspace, wanted)))


def _last_entry(workspace: Workspace, wanted: str) -> LedgerEntry | None:
    """The last act on a draft."""
    return next(workspace.context.transaction.ledger.entries(path=f"{REVIEW}/{wanted}.md", limit=1), None)


def _number(workspace: Workspace, wanted: str) -> int:
    entry = _last_entry(workspace, wanted)
    return entry.id if entry is not None else 0


def _done(workspace: Workspace, request: Request) -> dict[str, Any] | None:
    """What was done just now, as the ledger tells it."""
    number = number_of(request, "done", 0)
    entry = workspace.context.transaction.ledger.get_entry(number) if number else None
    if entry is None or entry.verb not in _DONE or entry.undone_by is not None:
        return None
    drafts = [path for path in entry.paths if path.startswith(f"{REVIEW}/")]
    return {
        "id": entry.id,
        "verb": _DONE[entry.verb],
        "draft": drafts[0].removeprefix(f"{REVIEW}/").removesuffix(".md") if drafts else "",
        "paths": [path for path in entry.paths if path not in drafts and path != "MEMORY.md"],
    }


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
    """A text from a form, written as the draft was: its line ends, and its mark at the beginning."""
    if decode_text(body) == text:
        return body
    is_dos = b"\r\n" in body and body.count(b"\n") == body.count(b"\r\n")
    data = text.replace("\n", "\r\n" if is_dos else "\n").encode("utf-8", "surrogatepass")
    return _BOM + data if body.startswith(_BOM) and not data.startswith(_BOM) else data
