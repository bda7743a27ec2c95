"""The body of a request, within limits."""

from __future__ import annotations

import anyio
from starlette.requests import Request

from truekeep.core.errors import BadInput
from truekeep.server.handoff_queue import HandoffTooLarge

BODY_SECONDS = 30.0


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it is no longer than allowed and comes in time. More than that is never kept."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise HandoffTooLarge(f"the body has more than {most} bytes", hint="nothing was taken")
    pieces: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_SECONDS) as scope:
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise HandoffTooLarge(f"the body has more than {most} bytes", hint="nothing was taken")
            pieces.append(piece)
    if scope.cancelled_caught:
        raise BadInput("the body did not come in time", hint="nothing was taken; send it again")
    return b"".join(pieces)
