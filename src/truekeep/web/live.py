"""Live pages: a stream that says when memory changed, so that an open page can tell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute, Route

from truekeep.model import CARDS, REVIEW
from truekeep.state import STATE
from truekeep.web.site import Site

EVERY = 2.0  # seconds between two looks
ALIVE = 15  # looks between two signs of life
MOST = 16  # pages that are kept up to date at a time


def routes(site: Site) -> list[BaseRoute]:
    streams = asyncio.Semaphore(MOST)

    async def events(request: Request) -> StreamingResponse:
        shown = os.path.join(site.path, shown_file(request.query_params.get("at", "")))

        def look() -> object:
            return mark_of(str(site.path)), _time(shown)

        async def stream() -> AsyncIterator[str]:
            if streams.locked():
                yield "event: full\ndata:\n\n"
                return
            async with streams:
                before = await run_in_threadpool(look)
                yield ": here\n\n"
                for number in range(1_000_000):
                    await asyncio.sleep(EVERY)
                    if await request.is_disconnected():
                        return
                    now = await run_in_threadpool(look)
                    if now != before:
                        before = now
                        yield "event: changed\ndata:\n\n"
                    elif number % ALIVE == 0:
                        yield ": still here\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    return [Route("/events", events, methods=["GET"])]


def shown_file(page: str) -> str:
    """The file that a page shows: an editor may write it in place, which no folder tells."""
    for prefix, folder, ending in (("/memory/file/", "", ""), ("/review/", f"{REVIEW}/", ".md")):
        if page.startswith(prefix):
            path = f"{folder}{page[len(prefix) :].removesuffix('/edit')}{ending}"
            return path if "\0" not in path and ".." not in path and not path.startswith("/") else ""
    return ""


def mark_of(root: str) -> tuple[tuple[str, int], ...]:
    """The times of everything in which a change of memory shows: the ledger, folders, and files of the root."""
    watched = (f"{STATE}/ledger.sqlite", f"{STATE}/ledger.sqlite-wal", CARDS, REVIEW)
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
