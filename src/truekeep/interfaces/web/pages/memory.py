"""The list of memory files, with its filters; fifty files a page."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.model import INDEX
from truekeep.interfaces.web.pages.memory_file import FilePages
from truekeep.interfaces.web.pages.memory_lookup import shown_age_of, survey_of
from truekeep.interfaces.web.site import Site, number_of
from truekeep.maintenance.survey.queries import ORDERS, VERDICT_FILTERS, Browse
from truekeep.memory.file_scan import STORES
from truekeep.workspace.workspace import Workspace

FILES_PER_PAGE = 50
TABS = ("cards", "documents", "logs", "archive")

AGES = {
    "7d": "of the last week",
    "30d": "of the last 30 days",
    "90d": "of the last 90 days",
    "over-90d": "older than 90 days",
    "over-365d": "older than a year",
}
SORTS = {
    "name": "name",
    "topic": "topic",
    "newest": "newest first",
    "oldest": "oldest first",
    "refuted": "refuted first",
}
VERDICTS = {
    "refuted": "refuted by code",
    "changed": "code changed since",
    "holds": "all of it holds",
    "unchecked": "not checked",
}
_NO_REPOSITORY = "none"


class AnyName(PathConvertor):
    """A file path in an address; it may contain any character, even a line end."""

    regex = r"(?s:.*)"


register_url_convertor("name", AnyName())


def routes(site: Site) -> list[BaseRoute]:
    pages = FilePages()
    return [
        *reading_routes(site, pages),
        site.page("/memory/drop/{path:name}", pages.ask_drop),
        site.act("/memory/drop/{path:name}", pages.drop),
        site.act("/memory/confirm/{path:name}", pages.confirm),
        site.act("/memory/repair/{path:name}", pages.repair),
    ]


def reading_routes(site: Site, pages: FilePages) -> list[BaseRoute]:
    return [site.page("/memory", browse), site.page("/memory/file/{path:name}", pages.show)]


# --- The list --------------------------------------------------------------------------------------------------------


def browse(site: Site, workspace: Workspace, request: Request) -> Response:
    """The memory files that match the filters."""
    survey = survey_of(workspace)
    given = request.query_params
    query = {name: given.get(name, "")[:200] for name in ("store", "q", "repo", "age", "verdict", "category", "tag")}
    query["sort"] = given.get("sort", "") if given.get("sort", "") in ORDERS else "name"
    query["verdict"] = query["verdict"] if query["verdict"] in VERDICT_FILTERS else ""
    counts = {store: facts.files for store, facts in survey.stores().items()}
    first = next((store for store in TABS if counts.get(store)), "cards")  # opens on what the workspace has
    query["store"] = query["store"] if query["store"] in (*STORES, "all") else first
    page = max(1, number_of(request, "page", 1))
    wanted = _wanted(query, workspace.today())
    listed, total = workspace.files.browse(wanted, first=(page - 1) * FILES_PER_PAGE, most=FILES_PER_PAGE)
    context: dict[str, Any] = {
        "query": query,
        "rows": [(item, shown_age_of(item.day, workspace.today())) for item in listed],
        "total": total,
        "cards": survey.browsing.count_cards(wanted) if query["store"] == "cards" else total,
        "elsewhere": [(store, counts[store]) for store in TABS if counts.get(store) and store != query["store"]],
        "page": page,
        "pages": max(1, -(-total // FILES_PER_PAGE)),
        "first": (page - 1) * FILES_PER_PAGE + 1,
    }
    if given.get("fragment"):
        return site.render(request, "memory_list.html", **context)
    choices = survey.browsing.choices()
    return site.render(
        request,
        "memory.html",
        title="Memory",
        stores=[(store, counts.get(store, 0)) for store in TABS],
        all_files=sum(counts.values()),
        index=INDEX if survey.browsing.find_file(INDEX) is not None else "",
        choices=choices,
        ages=AGES,
        sorts=SORTS,
        verdicts=VERDICTS,
        none=_NO_REPOSITORY,
        **context,
    )


def _wanted(query: dict[str, str], today: date) -> Browse:
    age = query["age"]
    over, _, days = age.rpartition("-")
    day = (today - timedelta(days=int(days.removesuffix("d")))).isoformat() if age in AGES else ""
    repository = query["repo"]
    return Browse(
        store="" if query["store"] == "all" else query["store"],
        text=query["q"],
        repository=None if not repository else "" if repository == _NO_REPOSITORY else repository,
        since="" if over else day,
        before=day if over else "",
        verdict=query["verdict"],
        category=query["category"],
        tag=query["tag"].strip(),
        order=query["sort"],
    )
