"""What all pages share: open workspaces, templates, and errors with their next step.

A page is a function from a workspace and a request to a response. It runs in its own thread, so that it may read files;
a workspace serves one page at a time, because its databases do.
"""

from __future__ import annotations

import os
import queue
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from anyio import CapacityLimiter, to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from truekeep import __version__
from truekeep.core.bugs import note_bug
from truekeep.core.dates import local_clock, local_day, local_minute
from truekeep.core.errors import (
    BadInput,
    Busy,
    EditedSince,
    NotCanonical,
    NotFound,
    StorageFailed,
    TruekeepError,
    hint_for,
    is_database_error,
)
from truekeep.core.memory_copy import live_path, read_source
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.interfaces.web.auth import FORM, MAX_FORM_BYTES, Keys, parse_fields, typed_in
from truekeep.interfaces.web.change_polling import word_of
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.search.searcher import Hit

MAX_WORKSPACES = 4  # open at a time
LOG = "web.log"
MAX_NOTICES = 20  # that wait for a page


class TooLarge(BadInput):
    """The form is too large."""


_STATUS: tuple[tuple[type[TruekeepError], int], ...] = (
    (NotFound, 404),
    (TooLarge, 413),
    (EditedSince, 409),
    (BadInput, 400),
    (NotCanonical, 403),
    (Busy, 503),
    (StorageFailed, 507),
)

Page = Callable[["Site", Workspace, Request], Response]
Act = Callable[["Site", Workspace, Request, FormData], Response]


class Site:
    """The web site of one workspace."""

    def __init__(self, path: Path, keys: Keys, *, read_only: bool = False) -> None:
        self._path = path
        self.keys = keys
        self.read_only = read_only
        self._room = CapacityLimiter(
            MAX_WORKSPACES
        )  # requests that wait for a workspace block no thread for styles and polling
        self._free: queue.LifoQueue[tuple[Workspace, object] | None] = queue.LifoQueue()
        for _ in range(MAX_WORKSPACES):
            self._free.put(None)
        self._lent = threading.local()  # the workspace of this thread
        self._noticed: list[str] = []  # notices that no page has shown yet
        self._noticing = threading.Lock()
        self._templates = Environment(
            loader=PackageLoader("truekeep.interfaces.web"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "shown": lambda text: printable(str(text)),
            "lines": lambda text: printable(str(text), newlines=True),
            "local_minute": lambda stamp: printable(local_minute(stamp)),
            "local_day": lambda stamp: printable(local_day(stamp)),
            "local_clock": lambda stamp: printable(local_clock(stamp)),
            "in_path": lambda text: quote(str(text), safe="/"),
            "in_query": lambda given: urlencode(given),
        }
        self._templates.tests |= {"worded": _is_worded, "far": _is_far}
        self._templates.globals |= {"version": __version__, "read_only": read_only}

    @property
    def path(self) -> Path:
        """The workspace; of a copy, the state that is in use now."""
        return Path(live_path(self._path))

    @contextmanager
    def borrow(self) -> Iterator[Workspace]:
        """A workspace for one request. After an error it is closed, and the next request opens a new one.

        Also if its configuration was edited, or its ledger is another file: restored, or moved away.
        """
        kept, now = self._free.get(), self._mark()
        workspace: Workspace | None = None
        is_well = False
        try:
            if kept is not None and kept[1] != now:
                kept[0].close()
                kept = None
            workspace = self._lent.workspace = kept[0] if kept is not None else Workspace.open(self.path)
            yield workspace
            is_well = True
        finally:
            self._lent.workspace = None
            if workspace is not None:
                self._note(workspace)
                if not is_well:
                    workspace.close()
            self._free.put((workspace, now) if workspace is not None and is_well else None)

    def _mark(self) -> object:
        """A stamp that changes when an open workspace must be reopened."""
        path = self.path
        found: list[object] = [path]
        for name in ("config.toml", "ledger.sqlite"):
            try:
                info = os.stat(path / STATE / name)
            except OSError:
                found.append(None)
                continue
            is_edited = name == "config.toml"  # the ledger changes with every act, and stays the same file
            found.append((info.st_dev, info.st_ino, *((info.st_mtime_ns, info.st_size) if is_edited else ())))
        return found

    def close(self) -> None:
        while not self._free.empty():
            kept = self._free.get()
            if kept is not None:
                kept[0].close()

    # Notices: messages for the user, whatever page they opened.

    def _note(self, workspace: Workspace) -> None:
        """Save the notices of a workspace for the next page: forms and background work have no page."""
        with self._noticing:
            self._noticed += [notice for notice in workspace.notices if notice not in self._noticed]
            del self._noticed[MAX_NOTICES:]
        workspace.notices.clear()

    def _notices(self, request: Request) -> list[str]:
        """The notices for this page; each is shown once."""
        if request.query_params.get("fragment") or request.method == "HEAD":
            return []
        if (workspace := getattr(self._lent, "workspace", None)) is not None:
            self._note(workspace)
        with self._noticing:
            found = self._noticed[:]
            self._noticed.clear()
        return found

    def _copy_source(self) -> tuple[str, str]:
        """Of a copy: whose memory it is and of when, and a warning if it is stale."""
        workspace: Workspace | None = getattr(self._lent, "workspace", None)
        source = workspace.source if workspace is not None else read_source(self.path)
        now = datetime.now(UTC)
        return (source.in_words(now), source.warning(now)) if source is not None else ("", "")

    # Answers.

    def render(self, request: Request, name: str, *, status: int = 200, **given: Any) -> HTMLResponse:
        """A page from its template. Texts are escaped; hidden characters are shown as what they are (`|shown`)."""
        told = request.query_params.get("told", "")
        if not self.keys.is_seal(request.query_params.get("seal", ""), told):
            told = ""  # a link in a memory must not make the site show a message
        context: Mapping[str, Any] = {
            "csrf": self.keys.form,
            "path": request.scope["path"],
            "told": told,
            "notices": self._notices(request),
            "copy_source": self._copy_source(),
            "news": getattr(request.state, "news", ""),
            **given,
        }
        return HTMLResponse(self._templates.get_template(name).render(context), status_code=status)

    def go(self, path: str, **query: str) -> RedirectResponse:
        """Redirect to another page of the site; `told` is shown there."""
        wanted = {key: value for key, value in query.items() if value}
        if told := wanted.get("told", "")[:300]:
            wanted |= {"told": told, "seal": self.keys.seal(told)}
        where = "/" + path.lstrip("/\\")  # of this site, whatever a page made of a name
        return RedirectResponse(where + (f"?{urlencode(wanted)}" if wanted else ""), status_code=303)

    def failed(self, request: Request, error: TruekeepError, *, typed: Sequence[str] = ()) -> Response:
        """An error as a page: what is wrong, where, the next step, and the typed text."""
        status = status_of(error)
        findings = getattr(error, "findings", ())
        return self.render(
            request,
            "error.html",
            status=status,
            title="That did not work",
            error=error,
            findings=findings,
            difference=error.details.get("difference", ()),
            typed=typed,
            back=_back(request),
        )

    def known(self, error: Exception) -> TruekeepError:
        """Any error as a TruekeepError. The traceback of a bug goes to the log, without its message."""
        if isinstance(error, TruekeepError):
            return error
        if isinstance(error, OSError) and error.strerror:
            return StorageFailed(
                f"{error.filename or 'a file'}: {error.strerror}", hint="check the permissions and the disk"
            )
        if is_database_error(error, "BusyError", "LockedError"):
            return Busy("another program keeps a database locked", hint="nothing is lost; try again in a moment")
        if is_database_error(error):
            return StorageFailed(f"a database cannot be read: {error}", hint=hint_for(error))
        traceback_text = f"bug {type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}".rstrip()
        note_bug(error, "serve")
        StateFolder(self.path).log(
            LOG, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} truekeep {__version__} {traceback_text}"
        )
        return TruekeepError(
            f"a bug in truekeep ({type(error).__name__}); nothing is lost",
            hint=f"the traceback is in .truekeep/logs/{LOG}",
        )

    # Routes.

    def page(self, path: str, answer: Page, *, name: str = "") -> Route:
        """A page that only shows."""

        def run(request: Request) -> Response:
            request.state.news = word_of(str(self.path), request.scope["path"])  # before anything is read
            try:
                with self.borrow() as workspace:
                    return answer(self, workspace, request)
            except Exception as error:  # noqa: BLE001 - a bug becomes a page; its traceback goes to the log
                return self.failed(request, self.known(error))

        async def endpoint(request: Request) -> Response:
            return await to_thread.run_sync(run, request, limiter=self._room)

        return Route(path, endpoint, methods=["GET"], name=name or None)

    def act(self, path: str, do: Act) -> Route:
        """The target of a form: it changes something, then redirects to a page."""

        def run(request: Request, form: FormData) -> Response:
            try:
                with self.borrow() as workspace:
                    return do(self, workspace, request, form)
            except Exception as error:  # noqa: BLE001 - a bug becomes a page; its traceback goes to the log
                return self.failed(request, self.known(error), typed=_typed(form))

        async def endpoint(request: Request) -> Response:
            try:
                form = await _read_form(request)
            except TruekeepError as error:
                refused = self.failed(request, error)
                refused.headers["connection"] = "close"  # what still comes is not read
                return refused
            if not self.keys.is_form(text_of(form, "csrf")):
                unexpected = BadInput(
                    "this form does not come from a page of this site as it runs now; nothing was done",
                    hint="perhaps the site was restarted: load the page again",
                )
                return self.failed(request, unexpected, typed=_typed(form))
            return await to_thread.run_sync(run, request, form, limiter=self._room)

        return Route(path, endpoint, methods=["POST"])


async def _read_form(request: Request) -> FormData:
    """Read a form: text fields of limited size."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise BadInput("this is not what a form of this site sends", hint="load the page again")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_FORM_BYTES:
            raise TooLarge("this is too large for a form", hint="use the command line")
    try:
        fields = parse_fields(bytes(body))
    except ValueError:
        raise BadInput("this form has too many fields", hint="use the command line") from None
    return FormData([*fields])


def _is_worded(hit: Hit) -> bool:
    """True if the hit contains a word of the query itself, not only a similar one."""
    return any("~" not in word for word in hit.matched)


def _is_far(hit: Hit, asked: str) -> bool:
    """True if neither the lines nor the names of the hit contain a word of the query."""
    named = f"{hit.path} {hit.title} {hit.heading} {hit.repository}".lower()
    return not hit.matched and not any(word in named for word in re.findall(r"\w{3,}", asked.lower()))


def _typed(form: FormData) -> list[str]:
    return typed_in([(name, value) for name, value in form.multi_items() if isinstance(value, str)])


def _back(request: Request) -> str:
    """The previous page, if it was one of this site."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return "/"
    if came.netloc.lower() != request.headers.get("host", "").lower() or not came.path.startswith("/"):
        return "/"
    return "/" + came.path.lstrip("/\\") + (f"?{came.query}" if came.query else "")


def status_of(error: TruekeepError) -> int:
    """The HTTP status of an error."""
    return next((number for kind, number in _STATUS if isinstance(error, kind)), 500)


def text_of(form: FormData, name: str) -> str:
    """A field of a form; "" if it is missing."""
    value = form.get(name)
    return value if isinstance(value, str) else ""


def number_of(request: Request, name: str, default: int, *, most: int = 1_000_000) -> int:
    """A number in the address, within bounds; the default if it is missing or invalid."""
    given = request.query_params.get(name, "")
    return min(most, max(0, int(given))) if given.isascii() and given.isdigit() and len(given) < 10 else default
