"""What all pages share: templates, forms, and errors with their next step.

A page is a function from a workspace and a request to a response. It runs in its own thread, so that it may read files;
a workspace serves one page at a time, because its databases do. `local_site.py` is the site of this machine's
workspace, `team/` has those of a team server.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from anyio import CapacityLimiter, move_on_after, to_thread
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
from truekeep.interfaces.web.auth import FORM, MAX_FORM_BYTES, Keys, parse_fields, typed_in
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.search.searcher import Hit


FORM_SECONDS = 30.0  # for all of a form to come


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
FormTarget = Callable[["Site", Request, FormData], Response]
FRAME: Mapping[str, Any] = {
    "account": "", "role": "", "workspace_name": "", "base": "", "nav": (), "path": "", "csrf": "", "told": "",
    "notices": (), "news": None, "news_seconds": 2, "copy_source": ("", ""), "copy_host": "", "read_only": False,
    "is_team": False,
}  # fmt: skip
"""What a page has that belongs to no workspace."""


@cache
def templates() -> Environment:
    """The templates of all pages. Texts are escaped; hidden characters are shown as what they are (`|shown`)."""
    made = Environment(
        loader=PackageLoader("truekeep.interfaces.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "shown": lambda text: printable(str(text)),
        "lines": lambda text: printable(str(text), newlines=True),
        "local_minute": lambda stamp: printable(local_minute(stamp)),
        "local_day": lambda stamp: printable(local_day(stamp)),
        "local_clock": lambda stamp: printable(local_clock(stamp)),
        "in_path": lambda text: quote(str(text), safe="/"),
        "in_query": lambda given: urlencode(given),
    }
    made.tests |= {"worded": _is_worded, "far": _is_far}
    made.globals |= {"version": __version__}
    return made


class Allowed(NamedTuple):
    """What the person may do on a site, for its pages to offer that and nothing else."""

    decide: bool = True  # approve and reject drafts
    edit: bool = True  # everything else that changes memory
    see_drafts: bool = True


class Tab(NamedTuple):
    """One of the pages that every page names at its top."""

    name: str
    path: str
    key: str  # after g


class Site(ABC):
    """The web site of one workspace."""

    base = ""  # the beginning of its addresses
    is_local = True  # repositories and sessions of this machine belong to it
    scan_seconds: float | None = None  # how old what is known of files may be; None: as the page has it

    def __init__(self, keys: Keys, *, at_once: int) -> None:
        self.keys = keys
        self._room = CapacityLimiter(at_once)  # what waits for a workspace blocks no thread for styles and polling
        self._form_room = CapacityLimiter(at_once)  # and what waits for a decision blocks no page

    @abstractmethod
    def lend(self, request: Request) -> AbstractContextManager[Workspace]:
        """The workspace, for one request."""

    @abstractmethod
    def allowed(self, request: Request) -> Allowed:
        """What the person who asks may do."""

    @abstractmethod
    def context(self, request: Request) -> Mapping[str, Any]:
        """What the frame of each page needs."""

    @abstractmethod
    def news_word(self, request: Request, page: str) -> str:
        """A word that is another one when a page would be."""

    @abstractmethod
    def is_form(self, request: Request, word: str) -> bool:
        """True if this word was put into a form for the person who sends it."""

    @abstractmethod
    def approve(self, request: Request, draft: str, *, target: str = "", seen: Mapping[str, str]) -> None:
        """File a draft, as the person saw it. No workspace is lent meanwhile."""

    @abstractmethod
    def reject(self, request: Request, draft: str, *, reason: str, seen: Mapping[str, str]) -> None:
        """Remove a draft, as the person saw it. No workspace is lent meanwhile."""

    def assignees(self, request: Request) -> Mapping[str, str] | None:  # noqa: ARG002
        """Who looks at each draft; None where drafts have no assignees."""
        return None

    def reviewers(self, request: Request) -> Sequence[str]:  # noqa: ARG002
        """Who may be an assignee."""
        return ()

    def accounts(self, request: Request, digests: Iterable[bytes]) -> Mapping[str, str]:  # noqa: ARG002
        """Who handed these in, by the digest of the handoff, where people have accounts."""
        return {}

    def log_bug(self, error: Exception) -> str:
        """Log a bug, without its message; gives where."""
        return str(note_bug(error, "serve"))

    # Answers.

    def render(self, request: Request, name: str, *, status: int = 200, **given: Any) -> HTMLResponse:
        """A page from its template. Texts are escaped; hidden characters are shown as what they are (`|shown`)."""
        told = request.query_params.get("told", "")
        if not self.keys.is_seal(request.query_params.get("seal", ""), told):
            told = ""  # a link in a memory must not make the site show a message
        context: Mapping[str, Any] = {
            **FRAME,
            "base": self.base,
            "path": request.scope["path"].removeprefix(self.base) or "/",
            "told": told,
            "news": getattr(request.state, "news", ""),
            "may": self.allowed(request),
            "is_local": self.is_local,
            **self.context(request),
            **given,
        }
        return HTMLResponse(templates().get_template(name).render(context), status_code=status)

    def go(self, path: str, **query: str) -> RedirectResponse:
        """Redirect to another page of the site; `told` is shown there."""
        wanted = {key: value for key, value in query.items() if value}
        if told := wanted.get("told", "")[:300]:
            wanted |= {"told": told, "seal": self.keys.seal(told)}
        where = f"{self.base}/" + path.lstrip("/\\")  # of this site, whatever a page made of a name
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
            back=_back(request, f"{self.base}/"),
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
        return TruekeepError(f"a bug in truekeep ({type(error).__name__}); nothing is lost", hint=self.log_bug(error))

    # Routes.

    def page(self, path: str, answer: Page, *, name: str = "") -> Route:
        """A page that only shows."""

        def run(request: Request) -> Response:
            try:
                request.state.news = self.news_word(request, request.scope["path"])  # before anything is read
                with self.lend(request) as workspace:
                    return answer(self, workspace, request)
            except Exception as error:  # noqa: BLE001 - a bug becomes a page; its traceback goes to the log
                return self.failed(request, self.known(error))

        async def endpoint(request: Request) -> Response:
            return await to_thread.run_sync(run, request, limiter=self._room)

        return Route(self.base + path, endpoint, methods=["GET"], name=name or None)

    def act(self, path: str, do: Act) -> Route:
        """The target of a form: it changes something, then redirects to a page."""

        def run(site: Site, request: Request, form: FormData) -> Response:
            with site.lend(request) as workspace:
                return do(site, workspace, request, form)

        return self.form(path, run)

    def form(self, path: str, do: FormTarget) -> Route:
        """The target of a form that borrows workspaces itself."""

        def run(request: Request, form: FormData) -> Response:
            try:
                return do(self, request, form)
            except Exception as error:  # noqa: BLE001 - a bug becomes a page; its traceback goes to the log
                return self.failed(request, self.known(error), typed=_typed(form))

        async def endpoint(request: Request) -> Response:
            try:
                form = await _read_form(request)
            except TruekeepError as error:
                refused = self.failed(request, error)
                refused.headers["connection"] = "close"  # what still comes is not read
                return refused
            if not self.is_form(request, text_of(form, "csrf")):
                unexpected = BadInput(
                    "this form does not come from a page of this site as it runs now; nothing was done",
                    hint="perhaps the site was restarted: load the page again",
                )
                return self.failed(request, unexpected, typed=_typed(form))
            return await to_thread.run_sync(run, request, form, limiter=self._form_room)

        return Route(self.base + path, endpoint, methods=["POST"])


async def _read_form(request: Request) -> FormData:
    """Read a form: text fields of limited size."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise BadInput("this is not what a form of this site sends", hint="load the page again")
    body = bytearray()
    with move_on_after(FORM_SECONDS) as scope:
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_FORM_BYTES:
                raise TooLarge("this is too large for a form", hint="use the command line")
    if scope.cancelled_caught:
        raise BadInput("the form did not come in time; nothing was done", hint="send it again")
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


def _back(request: Request, home: str) -> str:
    """The previous page, if it was one of this site."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return home
    if came.netloc.lower() != request.headers.get("host", "").lower() or not came.path.startswith(home):
        return home
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
