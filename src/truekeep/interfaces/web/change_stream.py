"""News: whether memory changed since a page was made, so that an open one can tell.

A page asks every few seconds while somebody looks at it. A stream would be quicker, but it holds one of the six
connections that a browser gives a host: the seventh tab would wait for ever.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from truekeep.interfaces.web.change_polling import word_of
from truekeep.interfaces.web.site import Site


def routes(site: Site) -> list[BaseRoute]:
    async def news(request: Request) -> PlainTextResponse:
        page = unquote(request.query_params.get("at", ""))
        return PlainTextResponse(await run_in_threadpool(word_of, str(site.path), page))

    return [Route("/news", news, methods=["GET"])]
