"""Transcripts: list sessions, read one as a conversation, and make a handoff from some turns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, NotFound
from truekeep.core.model import HANDOFF_TYPES
from truekeep.core.repository import repository_name
from truekeep.handoffs.format import compose_handoff, handoff_name
from truekeep.handoffs.from_transcript import find_gist
from truekeep.interfaces.web.markdown import render_markdown
from truekeep.interfaces.web.pages.search import ShownHit, shown_hit
from truekeep.interfaces.web.site import Site, number_of, text_of
from truekeep.transcripts.parser import Turn
from truekeep.transcripts.service import Archive
from truekeep.transcripts.store import StoredSession
from truekeep.workspace.workspace import Workspace

SESSIONS_PER_PAGE, TURNS_PER_PAGE, MAX_HITS = 50, 30, 20
MAX_TURN_CHARACTERS = 20_000
MAX_RENDERED_CHARACTERS = 20_000  # of a page; the rest is shown as text
MAX_SCAN_AGE = 3.0  # seconds, while typing
MAX_HANDOFF_TURNS = 100
_FIELDS = ("title", "kind", "summary", "facts", "card", "writer", "update")


class ShownTurn(NamedTuple):
    """A turn as a page shows it."""

    number: int
    turn: Turn
    at: str
    body: Markup | None  # None: shown as text
    left_out: int


def routes(site: Site) -> list[BaseRoute]:
    return [
        site.page("/transcripts", browse),
        site.page("/transcripts/{name}", read),
        site.page("/transcripts/{name}/handoff", propose),
        site.act("/transcripts/{name}/handoff", leave),
    ]


# --- The list --------------------------------------------------------------------------------------------------------


def browse(site: Site, workspace: Workspace, request: Request) -> Response:
    """Sessions by day, harness, machine and repository; or hits of a search in them."""
    given = request.query_params
    with workspace.sessions.transcripts() as archive:
        if cited := given.get("cited", ""):
            return _cited(site, workspace, archive, request, cited)
        query = {name: given.get(name, "")[:200] for name in ("q", "harness", "machine", "repo", "since", "until")}
        since, until = _day(query["since"]), _day(query["until"])
        page = max(1, number_of(request, "page", 1))
        context: dict[str, Any] = {"query": query, "page": page, "days": [], "hits": [], "notes": (), "total": 0}
        if query["q"].strip():
            context |= _found(workspace, archive, query, since, until, is_typing=bool(given.get("fragment")))
        else:
            listed, total = archive.browse(
                harness=query["harness"],
                machine=query["machine"],
                repository=query["repo"],
                since=since,
                until=until,
                first=(page - 1) * SESSIONS_PER_PAGE,
                most=SESSIONS_PER_PAGE,
            )
            context |= {"days": _by_day(listed), "total": total}
        context["pages"] = max(1, -(-context["total"] // SESSIONS_PER_PAGE))
        if given.get("fragment"):
            return site.render(request, "transcripts_list.html", **context)
        return site.render(request, "transcripts.html", title="Transcripts", choices=archive.choices(), **context)


def _found(
    workspace: Workspace,
    archive: Archive,
    query: dict[str, str],
    since: date | None,
    until: date | None,
    *,
    is_typing: bool,
) -> dict[str, Any]:
    """Search hits in transcripts, each with its session if the archive has it."""
    answer = workspace.search.find(
        query["q"],
        limit=MAX_HITS,
        stores=("transcripts",),
        since=since,
        repository=query["repo"],
        budget=0.0,
        within=MAX_SCAN_AGE if is_typing else 0.0,
    )
    hits: list[tuple[ShownHit, StoredSession | None]] = []
    for hit in answer.hits:
        kept = archive.find_shown(hit.path)
        if query["harness"] and (kept is None or kept.harness != query["harness"]):
            continue
        if query["machine"] and (kept is None or kept.machine != query["machine"]):
            continue
        if until is not None and hit.day > until.isoformat():
            continue
        hits.append((shown_hit(hit), kept))
    return {"hits": hits, "notes": answer.notes, "total": len(hits)}


def _by_day(listed: Sequence[StoredSession]) -> list[tuple[str, list[tuple[StoredSession, str]]]]:
    """Sessions by the day of their last turn."""
    days: dict[str, list[tuple[StoredSession, str]]] = {}
    for kept in listed:
        moment = kept.moment.astimezone()
        days.setdefault(f"{moment:%A, %Y-%m-%d}", []).append((kept, f"{moment:%H:%M}"))
    return list(days.items())


def _cited(site: Site, workspace: Workspace, archive: Archive, request: Request, cited: str) -> Response:
    """The turn that a search result means. A session that is not in the archive yet is shown as its dialogue."""
    line = max(1, number_of(request, "line", 1, most=999_999_999))
    kept = archive.find_shown(cited.partition("#")[0])
    if kept is not None:
        number = archive.turn_at(kept, line)
        return RedirectResponse(f"/transcripts/{quote(kept.name)}?turn={number}#T{number}", status_code=303)
    try:
        excerpt = (
            workspace.search.get(cited.partition("#")[0], first=line) if cited.startswith("transcripts/") else None
        )
    except (BadInput, EditedSince) as error:
        raise NotFound("there is no such session any more", hint="Transcripts lists what there is") from error
    if excerpt is None:
        raise NotFound("this is no session", hint="Transcripts lists what there is")
    return site.render(request, "transcript_excerpt.html", title=excerpt.path, excerpt=excerpt)


# --- One session -----------------------------------------------------------------------------------------------------


def read(site: Site, workspace: Workspace, request: Request) -> Response:
    """A session as conversation, some turns a page."""
    wanted = number_of(request, "turn", 0)
    page = max(1, number_of(request, "page", (wanted - 1) // TURNS_PER_PAGE + 1 if wanted else 1))
    with workspace.sessions.transcripts() as archive:
        told = archive.conversation(
            request.path_params["name"], first=(page - 1) * TURNS_PER_PAGE + 1, most=TURNS_PER_PAGE
        )
    kept = told.kept
    pages = max(1, -(-kept.total // TURNS_PER_PAGE))
    if not told.turns and page > 1:
        raise NotFound(f"it has {pages} pages, so there is no page {page}", hint="begin with the first")
    return site.render(
        request,
        "transcript.html",
        title=kept.title or f"Session {kept.name}",
        kept=kept,
        parent=told.parent,
        turns=_said(told.turns, (page - 1) * TURNS_PER_PAGE + 1),
        wanted=wanted,
        page=page,
        pages=pages,
        last=f"{kept.moment.astimezone():%Y-%m-%d %H:%M}",
    )


def _said(turns: Sequence[Turn], first: int) -> list[ShownTurn]:
    room = MAX_RENDERED_CHARACTERS
    shown = []
    for number, turn in enumerate(turns, first):
        room -= len(turn.text)
        body = render_markdown(turn.text) if room >= 0 else None
        shown.append(ShownTurn(number, turn, _moment(turn.at), body, max(0, len(turn.text) - MAX_TURN_CHARACTERS)))
    return shown


def _moment(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return ""


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


# --- A handoff -------------------------------------------------------------------------------------------------------


def propose(site: Site, workspace: Workspace, request: Request) -> Response:
    """A handoff from the chosen turns, for a person to finish."""
    numbers = _numbers(request.query_params.getlist("turn"))
    if not numbers:
        raise BadInput("no turn was chosen", hint="go back and tick the turns that the handoff is to be made from")
    kept, turns = _chosen(workspace, request.path_params["name"], numbers)
    gist = find_gist((turn for _, turn in turns), kept.title)
    writers = tuple(workspace.config.writers)
    typed = {
        "title": gist.title,
        "kind": "project-context",
        "summary": gist.summary,
        "facts": "\n".join(gist.facts),
        "card": gist.card,
        "writer": kept.harness if kept.harness in writers else writers[0],
        "update": "",
    }
    return _form(site, workspace, request, kept, turns, typed)


def leave(site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
    """Judge the handoff as ingest will; write it if the person asked for that and it would be filed."""
    numbers = _numbers([value for value in form.getlist("turn") if isinstance(value, str)])
    kept, turns = _chosen(workspace, request.path_params["name"], numbers)
    typed = {name: text_of(form, name).replace("\r\n", "\n") for name in _FIELDS}
    if not typed["title"].strip():
        error = BadInput("the handoff has no title", hint="say in one line what it is about")
        return _form(site, workspace, request, kept, turns, typed, problem=error)
    said = ", ".join(str(number) for number, _ in turns)
    root = _root(workspace, kept)
    text = compose_handoff(
        title=" ".join(typed["title"].split()),
        kind=typed["kind"] if typed["kind"] in HANDOFF_TYPES else "project-context",
        summary=typed["summary"],
        facts=[line for line in typed["facts"].split("\n") if line.strip()],
        evidence=[f"session {kept.name} of {kept.last_at[:10]} ({kept.harness})" + (f", turns {said}" if said else "")],
        card=typed["card"].strip() or None,
        update=bool(typed["update"]),
        repository=repository_name(root) if root is not None else "",
        has_card=workspace.cards.exists,
    )
    try:
        if text_of(form, "act") != "leave":
            name = handoff_name(typed["title"], workspace.now())
            (filing,) = workspace.handoffs.lint([(text.encode("utf-8", "replace"), name, root)])
            return _form(site, workspace, request, kept, turns, typed, filing=filing, text=text)
        path, filing = workspace.handoffs.write(text, writer=typed["writer"], root=root)
    except InvalidHandoff as error:
        return _form(site, workspace, request, kept, turns, typed, problem=error, text=text)
    what = f"ingest will make it {filing.target}" if filing.target else "memory has it already"
    return site.go(f"/transcripts/{quote(kept.name)}", told=f"left as {path.name}; {what}")


def _form(
    site: Site,
    workspace: Workspace,
    request: Request,
    kept: StoredSession,
    turns: Sequence[tuple[int, Turn]],
    typed: dict[str, str],
    *,
    filing: Any = None,
    problem: BadInput | None = None,
    text: str = "",
) -> Response:
    root = _root(workspace, kept)
    return site.render(
        request,
        "transcript_handoff.html",
        status=400 if problem is not None else 200,
        title="A handoff from this session",
        kept=kept,
        turns=[(number, turn, turn.text[:MAX_TURN_CHARACTERS]) for number, turn in turns],
        typed=typed,
        types=HANDOFF_TYPES,
        writers=tuple(workspace.config.writers),
        root=root,
        filing=filing,
        problem=problem,
        text=text,
        findings=filing.findings if filing is not None else getattr(problem, "findings", ()),
    )


def _chosen(workspace: Workspace, name: str, numbers: Sequence[int]) -> tuple[StoredSession, list[tuple[int, Turn]]]:
    """A session, and the turns of it that were chosen."""
    with workspace.sessions.transcripts() as archive:
        first = archive.conversation(name, most=1)
        turns = []
        for number in numbers:
            if number <= first.kept.total:
                turns += [(number, turn) for turn in archive.conversation(name, first=number, most=1).turns]
    return first.kept, turns


def _numbers(given: Sequence[str]) -> list[int]:
    plain = (int(text) for text in given if text.isascii() and text.isdigit() and len(text) < 8)
    return sorted({number for number in plain if number > 0})[:MAX_HANDOFF_TURNS]


def _root(workspace: Workspace, kept: StoredSession) -> Path:
    """The repository for the handoff; None for the workspace's own inbox."""
    folder = workspace.repositories.checkout_of(kept.repository) if kept.repository else ""
    return Path(folder) if folder and workspace.handoffs.is_scanned(Path(folder)) else workspace.path
