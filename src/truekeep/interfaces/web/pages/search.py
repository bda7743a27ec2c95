"""The search page: results while typing, by words and by meaning, with age and verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.dates import shown_age
from truekeep.interfaces.web.site import Site, number_of
from truekeep.memory.file_scan import STORES
from truekeep.search.excerpt import parse_citation
from truekeep.search.searcher import STANDINGS, Hit
from truekeep.workspace.workspace import Workspace

HITS, MAX_HITS = 12, 100
MAX_LINES = 9  # of a hit
MAX_QUERY_CHARACTERS = 300
MAX_LINE_CHARACTERS = 400
MAX_SCAN_AGE, MAX_SCAN_AGE_TYPING = 1.0, 3.0  # seconds
VERDICT_BUDGET = 0.05  # seconds; 0 while typing
SINCE = {"7": "the last week", "30": "the last 30 days", "90": "the last 90 days", "365": "the last year"}
VERDICTS = {
    "refuted": "refuted by code",
    "changed": "code changed since",
    "holds": "code agrees",
    "unchecked": "not checked",
}


class ShownHit(NamedTuple):
    """A hit as its page shows it."""

    hit: Hit
    name: str  # what it is called: a card's topic, else its path
    target: str
    age: str
    lines: tuple[tuple[int, str, bool], ...]  # number, text, whether it answers best
    more: int
    parts: tuple[tuple[str, float], ...]
    also: tuple[tuple[str, str], ...]  # other places that say the same, and their pages


def routes(site: Site) -> list[BaseRoute]:
    return [site.page("/search", search)]


def search(site: Site, workspace: Workspace, request: Request) -> Response:
    given = request.query_params
    query = {name: given.get(name, "")[:200] for name in ("store", "since", "repo", "verdict", "explain")}
    query["store"] = query["store"] if query["store"] in STORES else ""
    query["verdict"] = query["verdict"] if query["verdict"] in STANDINGS else ""
    query["since"] = query["since"] if query["since"] in SINCE else ""
    text = given.get("q", "")[:MAX_QUERY_CHARACTERS]
    count = min(MAX_HITS, max(1, number_of(request, "n", HITS)))
    is_typing = bool(given.get("fragment"))
    answer = None
    if text.strip():
        answer = workspace.search.find(
            text,
            limit=count,
            stores=(query["store"],) if query["store"] else (),
            since=workspace.today() - timedelta(days=int(query["since"])) if query["since"] else None,
            repository=query["repo"].strip(),
            verdict=query["verdict"],
            budget=0.0 if is_typing or not site.is_local else VERDICT_BUDGET,
            within=site.scan_seconds or (MAX_SCAN_AGE_TYPING if is_typing else MAX_SCAN_AGE),
        )
    found = answer.hits if answer is not None else ()
    topics = workspace.files.topics([hit.path for hit in found])
    hits = [shown_hit(hit, topics.get(hit.path, "")) for hit in found]
    more = {**query, "q": text, "n": str(min(MAX_HITS, count * 2))} if len(hits) == count < MAX_HITS else None
    name = "search_hits.html" if is_typing else "search.html"
    return site.render(
        request,
        name,
        title="Search",
        query=query,
        text=text,
        answer=answer,
        hits=hits,
        more=more,
        stores=STORES if site.is_local else [store for store in STORES if store != "transcripts"],
        sinces=SINCE,
        verdicts=VERDICTS,
    )


def shown_hit(hit: Hit, topic: str = "") -> ShownHit:
    """A hit with the lines around the one that answers best, and where it leads."""
    lines = [
        (hit.first + at, line[:MAX_LINE_CHARACTERS]) for at, line in enumerate(hit.text.split("\n")) if line.strip()
    ]
    best = next((at for at, (number, _) in enumerate(lines) if number == hit.best), -1)
    if hit.store == "transcripts":
        best = -1  # the lines of a session's file are no lines of this text
    start = max(0, min(best - MAX_LINES // 2, len(lines) - MAX_LINES)) if best >= 0 else 0
    chosen = tuple(
        (number, line, start + at == best) for at, (number, line) in enumerate(lines[start : start + MAX_LINES])
    )
    parts = tuple(sorted(hit.parts.items(), key=lambda item: -abs(item[1])))
    also = tuple((citation, _place(citation)) for citation in hit.also)
    target = target_of(hit.path, hit.first, hit.last, hit.best)
    return ShownHit(
        hit, topic or hit.path, target, shown_age(hit.age_days), chosen, len(lines) - len(chosen), parts, also
    )


def target_of(path: str, first: int, last: int, best: int = 0) -> str:
    """The page that shows some lines of a memory."""
    if path.startswith("transcripts/"):
        return f"/transcripts?{urlencode({'cited': path, 'line': first})}"
    at = best if first <= best <= last else first
    lines = f"{first}-{last}" if last > first else str(first)
    return f"/memory/file/{quote(path)}?line={lines}#L{at}"


def _place(citation: str) -> str:
    path, first, count = parse_citation(citation)
    return target_of(path, first or 1, (first or 1) + (count or 1) - 1)
