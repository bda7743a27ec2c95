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

from truekeep.core.errors import NotFound
from truekeep.interfaces.web import change_stream
from truekeep.interfaces.web.auth import WebRequestGuard
from truekeep.interfaces.web.local_site import LocalSite
from truekeep.interfaces.web.pages import history, home, memory, review, search, transcripts

if TYPE_CHECKING:
    from starlette.types import ASGIApp

PAGES = (home, review, memory, search, history, transcripts, change_stream)


def make_app(site: LocalSite, hosts: Iterable[str], *, has_tls: bool = False) -> ASGIApp:
    """The site, ready to be served under these host names."""
    routes: list[BaseRoute] = [route for page in PAGES for route in page.routes(site)]
    routes.append(Mount("/static", StaticFiles(packages=[("truekeep.interfaces.web", "static")])))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        site.close()

    async def failed(request: Request, error: Exception) -> Response:
        """Answer unknown addresses, and errors outside of pages."""
        if not isinstance(error, HTTPException):
            return site.failed(request, site.known(error))
        told = NotFound("there is no such page", hint="the pages are named above")
        if error.status_code != 404:
            told = NotFound(f"this cannot be answered ({error.detail})", hint="the pages are named above")
        response = site.failed(request, told)
        response.status_code = error.status_code
        return response

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: failed, Exception: failed})
    return WebRequestGuard(app, site.keys, hosts, read_only=site.read_only, has_tls=has_tls)
