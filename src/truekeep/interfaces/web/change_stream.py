"""Tells an open page whether memory changed since it was loaded.

A page asks every few seconds while it is visible. A stream would be quicker, but would use up one of the six
connections that a browser opens to a host: the seventh tab would hang.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from truekeep.interfaces.web.site import Site


def routes(site: Site) -> list[BaseRoute]:
    async def news(request: Request) -> PlainTextResponse:
        page = unquote(request.query_params.get("at", ""))
        return PlainTextResponse(await run_in_threadpool(site.news_word, request, page))

    return [Route("/news", news, methods=["GET"])]
