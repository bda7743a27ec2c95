"""History: what truekeep wrote, as a timeline; one act with what it changed; and taking it back.

The ledger is asked for one page at a time. What an undo would write is shown before it is done, and it is done only if
it still is what was shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from truekeep.core.dates import day_bounds, local_day
from truekeep.core.errors import BadInput, EditedSince, NotFound, TruekeepError
from truekeep.core.model import REVIEW
from truekeep.interfaces.web.diff_view import Cell, DiffText, Sides, compare
from truekeep.interfaces.web.site import Site, number_of, text_of
from truekeep.memory.ledger import HandoffRow, LedgerEntry, LedgerQuery
from truekeep.text.secrets.scanner import find_secrets, withhold
from truekeep.workspace.workspace import Workspace

ENTRIES_PER_PAGE = 50
MAX_COMPARED_FILES = 6  # of an entry, whose differences are shown at once
MAX_LISTED_FILES = 200
MAX_ROWS = 300  # of a difference

# The colour of an entry, as a class of the stylesheet.
TONES = {
    **dict.fromkeys(("promoted", "routed", "approved", "written", "confirmed"), "good"),
    **dict.fromkeys(("repaired", "assigned", "corrected"), "good"),
    **dict.fromkeys(("review", "proposed", "expired", "decayed", "archived", "retried"), "warn"),
    **dict.fromkeys(("undone", "rejected", "refused", "dropped"), "bad"),
}


class ShownEntry(NamedTuple):
    """An entry as the pages show it."""

    entry: LedgerEntry
    record: HandoffRow | None
    who: str
    tone: str
    files: tuple[tuple[str, str], ...]  # each with the page that shows it
    more: int  # files that are not named

    @property
    def link(self) -> str:
        return f"/history/{self.entry.id}"


class ChangedFile(NamedTuple):
    """A file that an entry changed."""

    path: str
    page: str
    sides: Sides | None  # None: it is shown when it is asked for


def routes(site: Site) -> list[BaseRoute]:
    return [
        *reading_routes(site),
        site.page("/history/{id:int}/undo", ask_undo),
        site.act("/history/{id:int}/undo", undo),
    ]


def reading_routes(site: Site) -> list[BaseRoute]:
    return [site.page("/history", timeline), site.page("/history/{id:int}", show)]


# --- Drafts, for who may not see them: their names and texts are in no entry ----------------------------------------


def is_draft(path: str) -> bool:
    return path.startswith(f"{REVIEW}/")


def is_seen(entry: LedgerEntry, *, sees_drafts: bool, path: str = "") -> bool:
    """True if an entry changed memory itself, in a file with this part of a path, or drafts may be seen."""
    return sees_drafts or any(path in one and not is_draft(one) for one in entry.paths)


def seen_entry(entry: LedgerEntry, *, sees_drafts: bool) -> LedgerEntry:
    """An entry without what it has of drafts, where they may not be seen."""
    if sees_drafts or not any(is_draft(path) for path in entry.paths):
        return entry
    return entry._replace(paths=tuple(path for path in entry.paths if not is_draft(path)), note="")


# --- The timeline ----------------------------------------------------------------------------------------------------


def timeline(site: Site, workspace: Workspace, request: Request) -> Response:
    """The list of entries, newest first."""
    given = request.query_params
    first, last = _day(given.get("since", "")), _day(given.get("until", ""))
    sought = LedgerQuery(
        **{name: given.get(name, "").strip()[:300] for name in ("who", "machine", "path", "verb")},
        since=first.isoformat() if first else "",
        until=last.isoformat() if last else "",
    )
    start, end = day_bounds(first, last)
    in_utc = sought._replace(since=start, until=end)
    before, after = number_of(request, "before", 0), number_of(request, "after", 0)
    found = workspace.history.find(in_utc, most=ENTRIES_PER_PAGE + 1, before=0 if after else before, after=after)
    is_more = len(found) > ENTRIES_PER_PAGE
    found = found[-ENTRIES_PER_PAGE:] if after else found[:ENTRIES_PER_PAGE]
    has_newer = is_more if after else bool(before)
    has_older = bool(after) or is_more
    query = {name: value for name, value in sought._asdict().items() if value}
    ends = (found[0][0].id, found[-1][0].id) if found else (0, 0)
    sees_drafts = site.allowed(request).see_drafts
    found = [
        (seen_entry(entry, sees_drafts=sees_drafts), record)
        for entry, record in found
        if is_seen(entry, sees_drafts=sees_drafts, path=sought.path)
    ]
    return site.render(
        request,
        "history.html",
        title="History",
        sought=sought,
        query=query,
        names=workspace.history.names(),
        days=list(_by_day(found)),
        accounts=site.accounts(request, [record.digest for _, record in found if record is not None]),
        newer={**query, "after": ends[0]} if has_newer and ends[0] else {},
        older={**query, "before": ends[1]} if has_older and ends[1] else {},
        is_newest=not before and not after,
    )


def _by_day(found: Sequence[tuple[LedgerEntry, HandoffRow | None]]) -> Iterator[tuple[str, list[ShownEntry]]]:
    day, shown = "", list[ShownEntry]()
    for entry, record in found:
        entry_day = local_day(entry.at)
        if entry_day != day and shown:
            yield day, shown
            shown = []
        day = entry_day
        shown.append(as_shown(entry, record, most=3))
    if shown:
        yield day, shown


def as_shown(entry: LedgerEntry, record: HandoffRow | None, *, most: int) -> ShownEntry:
    """An entry for a page, with so many of its files."""
    is_sent = record is not None and entry.actor == "ingest"
    who = f"{record.origin.writer} on {record.origin.machine}" if record is not None and is_sent else entry.actor
    files = tuple((path, page_of(path)) for path in entry.paths[:most])
    return ShownEntry(entry, record, who, TONES.get(entry.verb, ""), files, max(0, len(entry.paths) - most))


def page_of(path: str) -> str:
    """The address of the page of a file; "" if it is not a memory file."""
    if path.startswith(f"{REVIEW}/"):
        return "/review/" + quote(path.removeprefix(f"{REVIEW}/").removesuffix(".md"), safe="")
    return "" if path.startswith(".truekeep/") else "/memory/file/" + quote(path)


def _day(text: str) -> date | None:
    """The day that a text names; None if it names none."""
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None


# --- One entry -------------------------------------------------------------------------------------------------------


def show(site: Site, workspace: Workspace, request: Request) -> Response:
    """One act: who, when, from which handoff, and what it changed."""
    entry, record = _entry(workspace, request)
    sees_drafts = site.allowed(request).see_drafts
    if not is_seen(entry, sees_drafts=sees_drafts):
        raise NotFound(f"there is no entry {entry.id}", hint="`truekeep history` lists the entries")
    entry = seen_entry(entry, sees_drafts=sees_drafts)
    wanted = request.query_params.get("file", "")
    if wanted and wanted not in entry.paths:
        raise NotFound(f"entry {entry.id} did not change {wanted[:200]}", hint=f"/history/{entry.id} lists what it did")
    opened = {wanted} if wanted else set(entry.paths[:MAX_COMPARED_FILES])
    files = [
        _file(workspace, entry, path, is_open=path in opened)
        for path in entry.paths[:MAX_LISTED_FILES]
        if path != wanted
    ]
    if wanted:
        files.insert(0, _file(workspace, entry, wanted, is_open=True))
    return site.render(
        request,
        "history_entry.html",
        title=f"Entry {entry.id}",
        item=as_shown(entry, record, most=MAX_LISTED_FILES),
        files=files,
        accounts=site.accounts(request, [record.digest] if record is not None else []),
        may_undo=bool(entry.paths) and entry.undone_by is None,
        **(_around(workspace, entry) if sees_drafts else {"newer": 0, "older": 0}),
    )


def _around(workspace: Workspace, entry: LedgerEntry) -> dict[str, Any]:
    """The entries next to one, for going on."""
    newer = workspace.history.find(LedgerQuery(), most=1, after=entry.id)
    older = workspace.history.find(LedgerQuery(), most=1, before=entry.id)
    return {"newer": newer[0][0].id if newer else 0, "older": older[0][0].id if older else 0}


def _entry(workspace: Workspace, request: Request) -> tuple[LedgerEntry, HandoffRow | None]:
    return workspace.history.get(int(request.path_params["id"]))


def _file(workspace: Workspace, entry: LedgerEntry, path: str, *, is_open: bool) -> ChangedFile:
    around = workspace.history.versions(entry.id, path) if is_open else None
    return ChangedFile(path, page_of(path), _sides(*around) if around is not None else None)


def _sides(before: bytes | None, after: bytes | None) -> Sides:
    """Two versions side by side. The ledger still has what was taken out of memory: no credential is shown."""
    sides = compare(before, after, most=MAX_ROWS)
    cells = [cell for row in sides.rows for cell in (row.left, row.right) if cell is not None]
    if not find_secrets("\n".join(_text(cell) for cell in cells)):
        return sides
    rows = tuple(row._replace(left=_masked(row.left), right=_masked(row.right)) for row in sides.rows)
    return replace(sides, rows=rows, note="Credentials are not shown.")


def _masked(cell: Cell | None) -> Cell | None:
    return cell._replace(pieces=(DiffText(withhold(_text(cell))),)) if cell is not None else None


def _text(cell: Cell) -> str:
    return "".join(piece.text for piece in cell.pieces)


# --- Undo ------------------------------------------------------------------------------------------------------------


def ask_undo(site: Site, workspace: Workspace, request: Request) -> Response:
    """Show what undo would write, or why it cannot be done."""
    return _answer(site, workspace, request)


def undo(site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
    """Take an entry back, if that still means what the person saw."""
    number = int(request.path_params["id"])
    try:
        made, notes = workspace.history.undo(number, seen=text_of(form, "seen") or "nothing")
    except (EditedSince, BadInput) as error:
        return _answer(site, workspace, request, failed=error)
    told = f"undone: entry {number}; this is entry {made.id}, and can be undone itself"
    return site.go(f"/history/{made.id}", told="; ".join((told, *notes)))


def _answer(site: Site, workspace: Workspace, request: Request, failed: TruekeepError | None = None) -> Response:
    entry, record = _entry(workspace, request)
    refused = failed
    changes: list[tuple[str, Sides]] = []
    notes: tuple[str, ...] = ()
    seen = ""
    try:
        planned = workspace.history.plan_undo(entry.id)
        seen, notes = planned.digest, planned.notes
        changes += [
            (change.path, _sides(change.before.data if change.before else None, change.data))
            for change in planned.changes[:MAX_COMPARED_FILES]
        ]
        more = [change.path for change in planned.changes[MAX_COMPARED_FILES:]]
    except TruekeepError as error:
        refused, more = refused or error, []
    status = 200 if failed is None else 409 if isinstance(failed, EditedSince) else 400
    return site.render(
        request,
        "history_undo.html",
        status=status,
        title=f"Undo entry {entry.id}",
        item=as_shown(entry, record, most=MAX_LISTED_FILES),
        accounts={},
        refused=refused,
        difference=[withhold(line) for line in refused.details.get("difference", ())] if refused is not None else (),
        changes=changes,
        more=more,
        notes=notes,
        seen=seen,
    )
