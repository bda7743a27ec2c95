"""Any error as an answer: its status, its headers, and what it tells."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from truekeep.core.bugs import note_bug
from truekeep.core.errors import BadInput, Busy, EditedSince, NotFound, StorageFailed, TruekeepError, is_database_error
from truekeep.interfaces.api.access import Forbidden, Unauthenticated
from truekeep.server.database import DatabaseAway
from truekeep.server.handoff_queue import HandoffTooLarge, QuotaExceeded
from truekeep.server.sign_in import ProviderFailed, SignInRefused

_STATUS: tuple[tuple[type[TruekeepError], int], ...] = (  # the first that fits
    (Unauthenticated, 401),
    (Forbidden, 403),
    (SignInRefused, 403),
    (NotFound, 404),
    (HandoffTooLarge, 413),
    (QuotaExceeded, 429),
    (BadInput, 400),
    (EditedSince, 409),
    (Busy, 503),
    (DatabaseAway, 503),
    (StorageFailed, 503),
    (ProviderFailed, 502),
)


def status_of(error: TruekeepError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def known_error(error: Exception) -> TruekeepError:
    """What may be told of an error. Internal errors are reported without details."""
    if isinstance(error, DatabaseAway):  # its text is for who runs the server
        return DatabaseAway("the database cannot be reached now", hint="try again in a minute; nothing was taken")
    if isinstance(error, TruekeepError):
        return error
    note_bug(error, "server")
    if isinstance(error, OSError) or is_database_error(error):
        return StorageFailed("the server's disk or a database on it cannot be used", hint="tell who runs it")
    told = TruekeepError("a bug in truekeep; nothing is lost", hint="tell who runs the server")
    told.code = "bug"
    return told


def retry_headers(status: int) -> dict[str, str]:
    return {"Retry-After": "30"} if status in (429, 503) else {}


def error_response(error: Exception) -> Response:
    """An error as JSON."""
    told = known_error(error)
    status = status_of(told)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else retry_headers(status)
    said = {"code": told.code, "message": told.message, "hint": told.hint}
    return JSONResponse({"error": said}, status, headers=headers)
