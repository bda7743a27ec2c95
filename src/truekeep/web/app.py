"""All pages of the site, behind its guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from truekeep.errors import NotFound
from truekeep.web import live
from truekeep.web.guard import Guard
from truekeep.web.pages import history, memory, review, search, today, transcripts
from truekeep.web.site import Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp

PAGES = (today, review, memory, search, history, transcripts, live)


def make_app(site: Site, hosts: Iterable[str]) -> ASGIApp:
    """The site, ready to be served under these host names."""
    routes: list[BaseRoute] = [route for page in PAGES for route in page.routes(site)]
    routes.append(Mount("/static", StaticFiles(packages=[("truekeep.web", "static")])))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        site.close()

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        response = site.failed(request, NotFound("there is no such page", hint="the pages are named above"))
        response.status_code = status
        return response

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: missing, 405: missing})
    return Guard(app, site.keys, hosts, read_only=site.read_only)
