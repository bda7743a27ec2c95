"""News: a word that is another one as soon as memory changed, so that an open page can tell.

A page asks for it every few seconds while somebody looks at it. A stream would be quicker, but it holds one of the six
connections that a browser gives a host: the seventh tab would wait for ever.
"""

from __future__ import annotations

import os
from hashlib import sha256
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from truekeep.model import CARDS, REVIEW
from truekeep.state import STATE
from truekeep.web.site import Site


def routes(site: Site) -> list[BaseRoute]:
    async def news(request: Request) -> PlainTextResponse:
        shown = os.path.join(site.path, shown_file(unquote(request.query_params.get("at", ""))))

        def look() -> str:
            return sha256(repr((mark_of(str(site.path)), _time(shown))).encode()).hexdigest()[:16]

        return PlainTextResponse(await run_in_threadpool(look))

    return [Route("/news", news, methods=["GET"])]


def shown_file(page: str) -> str:
    """The file that a page shows: an editor may write it in place, which no folder tells."""
    for prefix, folder, ending in (("/memory/file/", "", ""), ("/review/", f"{REVIEW}/", ".md")):
        if page.startswith(prefix):
            path = f"{folder}{page[len(prefix) :].removesuffix('/edit')}{ending}"
            return path if "\0" not in path and ".." not in path and not path.startswith("/") else ""
    return ""


def mark_of(root: str) -> tuple[tuple[str, int], ...]:
    """The times of all in which a change of memory shows: the settings, the ledger, folders, files of the root."""
    watched = (f"{STATE}/config.toml", f"{STATE}/ledger.sqlite", f"{STATE}/ledger.sqlite-wal", CARDS, REVIEW)
    found = [(path, _time(os.path.join(root, path))) for path in watched]
    for folder in ("", "memory", "memory/daily"):
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                found += [(f"{folder}/{item.name}", _time(item.path)) for item in entries if item.name.endswith(".md")]
        except OSError:
            continue
    return tuple(sorted(found))


def _time(path: str) -> int:
    try:
        info = os.lstat(path)
    except OSError:
        return 0
    return info.st_mtime_ns if info.st_size or not path.endswith("-wal") else 0  # whoever only reads makes an empty one
