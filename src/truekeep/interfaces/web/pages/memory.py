"""Memory: browse its files, read one with what code says to it, confirm it, repair it, drop it.

Only files that the survey has seen are shown, so nothing outside of memory and nothing behind a link can be asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from truekeep.core.bugs import is_bug, note_bug
from truekeep.core.dates import many, shown_age
from truekeep.core.errors import BadInput, Busy, EditedSince, NotFound
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import CARDS, INDEX
from truekeep.core.state_dir import StateFolder
from truekeep.interfaces.web.markdown import ClaimMark, render_markdown
from truekeep.interfaces.web.site import LOG, Site, number_of, text_of
from truekeep.maintenance.survey.queries import ORDERS, VERDICT_FILTERS, Browse, MemoryFileSummary
from truekeep.memory.card import parse_card
from truekeep.memory.file_scan import STORES
from truekeep.memory.frontmatter import Frontmatter
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import cover_secrets, mask_lines, withhold
from truekeep.text.unified_diff import difference
from truekeep.verify.results import CheckedMemory, digest_text
from truekeep.verify.verdict import Verdict
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import Survey
    from truekeep.memory.history import BlamedLine

PAGE = 50  # files of a list
MOST_CLAIMS = 100
MOST_ENTRIES = 20
COMPARED = 3  # entries whose difference is shown at once
BUDGET = 0.05  # seconds that a page waits for verdicts; who asks for a check waits as long as it takes
LATELY = 3.0  # seconds for which the list of files may be looked through again
_RENDERED_LINES, _RENDERED_CHARS = 400, 20_000  # of a page of a rendered file
_SOURCE_LINES, _LONGEST = 500, 2_000  # of a page of lines, and of one of them
_REMEMBERED, _LARGEST = 64, 200_000  # texts that were shown, for telling what changed since

AGES = {
    "7d": "of the last week",
    "30d": "of the last 30 days",
    "90d": "of the last 90 days",
    "over-90d": "older than 90 days",
    "over-365d": "older than a year",
}
SORTS = {
    "name": "name",
    "topic": "topic",
    "newest": "newest first",
    "oldest": "oldest first",
    "refuted": "refuted first",
}
VERDICTS = {
    "refuted": "refuted by code",
    "changed": "code changed since",
    "holds": "all of it holds",
    "unchecked": "not checked",
}
_NO_REPOSITORY = "none"


class AnyName(PathConvertor):
    """A path as files may be called: even with a line's end in it."""

    regex = r"(?s:.*)"


register_url_convertor("name", AnyName())


def routes(site: Site) -> list[BaseRoute]:
    pages = Pages()
    return [
        site.page("/memory", browse),
        site.page("/memory/file/{path:name}", pages.show),
        site.page("/memory/drop/{path:name}", pages.ask_drop),
        site.act("/memory/drop/{path:name}", pages.drop),
        site.act("/memory/confirm/{path:name}", pages.confirm),
        site.act("/memory/repair/{path:name}", pages.repair),
    ]


# --- The list --------------------------------------------------------------------------------------------------------


def browse(site: Site, workspace: Workspace, request: Request) -> Response:
    """Memory files, by what they are filtered by; fifty a page."""
    survey = survey_of(workspace)
    given = request.query_params
    query = {name: given.get(name, "")[:200] for name in ("store", "q", "repo", "age", "verdict", "category", "tag")}
    query["sort"] = given.get("sort", "") if given.get("sort", "") in ORDERS else "name"
    query["verdict"] = query["verdict"] if query["verdict"] in VERDICT_FILTERS else ""
    query["store"] = query["store"] if query["store"] in (*STORES, "all") else "cards"
    page = max(1, number_of(request, "page", 1))
    wanted = _wanted(query, workspace.today())
    listed, total = workspace.files.browse(wanted, first=(page - 1) * PAGE, most=PAGE)
    context: dict[str, Any] = {
        "query": query,
        "rows": [(item, _age(item.day, workspace.today())) for item in listed],
        "total": total,
        "cards": survey.browsing.count_cards(wanted) if query["store"] == "cards" else total,
        "page": page,
        "pages": max(1, -(-total // PAGE)),
        "first": (page - 1) * PAGE + 1,
    }
    if given.get("fragment"):
        return site.render(request, "memory_list.html", **context)
    choices = survey.browsing.choices()
    stores = ("cards", "documents", "logs", "archive", "all")
    return site.render(
        request,
        "memory.html",
        title="Memory",
        stores=stores,
        choices=choices,
        ages=AGES,
        sorts=SORTS,
        verdicts=VERDICTS,
        none=_NO_REPOSITORY,
        **context,
    )


def _wanted(query: dict[str, str], today: date) -> Browse:
    age = query["age"]
    over, _, days = age.rpartition("-")
    day = (today - timedelta(days=int(days.removesuffix("d")))).isoformat() if age in AGES else ""
    repository = query["repo"]
    return Browse(
        store="" if query["store"] == "all" else query["store"],
        text=query["q"],
        repository=None if not repository else "" if repository == _NO_REPOSITORY else repository,
        since="" if over else day,
        before=day if over else "",
        verdict=query["verdict"],
        category=query["category"],
        tag=query["tag"].strip(),
        order=query["sort"],
    )


def _age(day: str, today: date) -> str:
    try:
        return shown_age((today - date.fromisoformat(day)).days)
    except ValueError:
        return shown_age(None)


# --- One file --------------------------------------------------------------------------------------------------------


class LinePiece(NamedTuple):
    """Some of a line; with the number of its claim and the verdict on it, if it is one."""

    text: str
    number: int = 0
    verdict: str = ""
    note: str = ""


class TextRow(NamedTuple):
    """A line of a file as its text."""

    number: int
    pieces: tuple[LinePiece, ...]
    is_wanted: bool
    by: BlamedLine | None


class MemoryFilePage(NamedTuple):
    """A memory file as it is now."""

    listed: MemoryFileSummary
    data: bytes
    text: str | None
    front: Frontmatter
    problem: str  # of the frontmatter
    first: int  # the line that its body begins on

    @property
    def path(self) -> str:
        return self.listed.path

    @property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def is_card(self) -> bool:
        return self.path.startswith(f"{CARDS}/") and "/" not in self.path[len(CARDS) + 1 :]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Pages:
    """The pages of one file. Remembers the texts it showed, to tell what changed since."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, site: Site, workspace: Workspace, request: Request) -> Response:
        """A file rendered or as its lines, what code says to it, where it comes from, and what is around it."""
        path = request.path_params["path"].encode("utf-8", "replace").decode()
        query = request.query_params
        if path.startswith("transcripts/"):
            return site.go("/transcripts", cited=path, line=query.get("line", ""))
        file = find_file(workspace, path)
        if file is None:
            return self._elsewhere(site, workspace, request, path)
        self._remember(file)
        checked = self._checked(workspace, file, is_asked=query.get("check") == "1")
        wanted = _lines_of(query.get("line", ""))
        is_source = bool(query.get("view") == "lines" or wanted or query.get("why"))
        verdicts = checked.verdicts if isinstance(checked, CheckedMemory) else ()
        text = cover_secrets(file.text or "", "•")
        lines = text.removesuffix("\n").split("\n")
        context: dict[str, Any] = {"is_source": is_source, "total": len(lines), "wanted": wanted}
        if is_source:
            by = workspace.history.blame(str(workspace.path / file.path)) if query.get("why") == "1" else []
            first = number_of(
                request, "from", (max(1, wanted[0] if wanted else 1) - 1) // _SOURCE_LINES * _SOURCE_LINES + 1
            )
            first = min(max(1, first), len(lines))
            last = min(len(lines), first + _SOURCE_LINES - 1)
            context |= {"first": first, "last": last, "has_why": bool(by)}
            context["source"] = _source(text, lines, first, last, verdicts, wanted, by)
        else:
            first = min(max(file.first, number_of(request, "from", file.first)), len(lines))
            last = _fitting(lines, first)
            inside = [item for item in enumerate(verdicts[:MOST_CLAIMS], 1) if first <= item[1].claim.line <= last]
            inside.sort(key=lambda item: item[1].claim.start)
            marks = [_mark(item, number, first, lines[item.claim.line - 1]) for number, item in inside]
            context |= {"first": first, "last": last, "has_why": False}
            context["body"] = render_markdown("\n".join(lines[first - 1 : last]), marks=marks, path=file.path)
        entries = list(workspace.history.entries(str(workspace.path / file.path), limit=MOST_ENTRIES))
        changes = workspace.history.differences(file.path, [entry.id for entry, _ in entries[:COMPARED]])
        return site.render(
            request,
            "memory_file.html",
            title=file.listed.topic or file.path,
            file=file,
            age=_age(file.listed.day, workspace.today()),
            fields=_fields(file.front),
            checked=checked if isinstance(checked, CheckedMemory) else None,
            unchecked=checked if isinstance(checked, str) else "",
            checked_on=_moment(checked.checked_at) if isinstance(checked, CheckedMemory) else "",
            claims=list(enumerate(verdicts[:MOST_CLAIMS], 1)),
            more_claims=max(0, len(verdicts) - MOST_CLAIMS),
            may_check=file.listed.store in ("cards", "documents"),
            rot=sum(item.is_rot for item in verdicts),
            entries=entries,
            changes=changes,
            origin=next((record for _, record in entries if record is not None), None),
            around=survey_of(workspace).browsing.neighbours(file.path),
            **context,
        )

    def _elsewhere(self, site: Site, workspace: Workspace, request: Request, path: str) -> Response:
        """A file that is called by a part of its path, or one of the configured extra paths; else there is none."""
        survey = survey_of(workspace)
        for name in (f"{path}.md", f"memory/{path}", f"{CARDS}/{path}", f"{CARDS}/{path}.md"):
            if survey.browsing.find_file(name) is not None:
                return _to_file(name)
        if (gone := self._gone(site, workspace, request, path)) is not None:
            return gone
        if not workspace.config.recall.extra_paths:
            raise NotFound("there is no such file in memory", hint="Search finds where something is said")
        wanted = _lines_of(request.query_params.get("line", ""))
        first = max(1, number_of(request, "from", max(1, wanted[0] - 20) if wanted else 1))
        try:
            excerpt = workspace.search.get(path, first=first)
        except (BadInput, EditedSince) as error:
            raise NotFound("there is no such file in memory", hint="Search finds where something is said") from error
        if excerpt.path != path and find_file(workspace, excerpt.path) is not None:
            return _to_file(excerpt.path)
        lines = excerpt.text.split("\n")
        named = range(wanted[0], wanted[1] + 1) if wanted else range(0)
        rows = [TextRow(at, (LinePiece(line[:_LONGEST]),), at in named, None) for at, line in enumerate(lines, first)]
        return site.render(request, "memory_extra.html", title=excerpt.path, excerpt=excerpt, source=rows)

    def _gone(self, site: Site, workspace: Workspace, request: Request, path: str) -> Response | None:
        """What became of a file that truekeep once wrote; None where it never did."""
        ledger = workspace.context.transaction.ledger
        entry = next(ledger.entries(path=path, limit=1), None)
        if entry is None:
            return None
        around = ledger.around(entry.id, path)
        is_taken = around is not None and around[1] is not None  # truekeep left it there
        title = "It is not here any more"
        return site.render(
            request, "memory_gone.html", status=404, title=title, gone=path, entry=entry, is_taken=is_taken
        )

    def _checked(self, workspace: Workspace, file: MemoryFilePage, *, is_asked: bool) -> CheckedMemory | str:
        if file.listed.store not in ("cards", "documents"):
            return "it tells what happened, and that stays true"
        if file.text is None:
            return "it is not UTF-8 text"
        if not is_asked:
            return workspace.verification.check(file.path, budget=BUDGET)
        (checked,) = workspace.verification.verify([str(workspace.path / file.path)])
        if not checked.roots and checked.problems:
            return "; ".join(checked.problems)
        return checked

    # Acts.

    def confirm(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """A person says that a card still holds."""
        file = get_card(workspace, request)
        if (conflict := self._conflict(site, request, file, form)) is not None:
            return conflict
        path, day, entry = workspace.cards.confirm(file.name, actor=person(), seen=file.data)
        told = f"confirmed, {day}" if entry is not None else f"it says so already: confirmed {day}"
        return site.go(f"/memory/file/{quote(path)}", told=told)

    def ask_drop(self, site: Site, workspace: Workspace, request: Request) -> Response:
        file = get_card(workspace, request)
        self._remember(file)
        pointing = [
            item for item in survey_of(workspace).browsing.neighbours(file.path).linked_from if item[0] != INDEX
        ]
        title = f"Drop {file.name}?"
        return site.render(request, "memory_drop.html", title=title, file=file, pointing=pointing, body=_body(file))

    def drop(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Remove a card and the lines that only point at it."""
        file = get_card(workspace, request)
        reason = text_of(form, "reason")
        if (conflict := self._conflict(site, request, file, form, typed=reason)) is not None:
            return conflict
        dropped = workspace.cards.drop(file.name, reason=reason, actor=person(), seen=file.data)
        left = f"; MEMORY.md still speaks of it in {many(len(dropped.left), 'line')}" if dropped.left else ""
        return site.go(f"/history/{dropped.entry}", told=f"dropped {dropped.path}{left}; undo brings it back")

    def repair(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Write what moved into a memory. More than one edit, or a draft, is shown before."""
        file = get_file(workspace, request)
        if (conflict := self._conflict(site, request, file, form)) is not None:
            return conflict
        checked = workspace.verification.verify([str(workspace.path / file.path)])
        if checked[0].digest != digest_text(file.text or ""):
            raise EditedSince(f"{file.path} changed while it was checked; nothing was written", hint="look at it again")
        is_sure = text_of(form, "sure") == "1"
        plans, left = workspace.verification.repair(checked, dry_run=True)
        edits = sum(len(plan.edits) for plan in plans)
        has_draft = any(plan.draft is not None for plan in plans)
        if not plans or (not edits and not has_draft):
            notes = [note for plan in plans for note in plan.left] + left
            told = "; ".join(notes) or "there is nothing to repair; what waits for you is in Review"
            return site.go(f"/memory/file/{quote(file.path)}", told=told[:300])
        if not is_sure and (edits > 1 or has_draft):
            self._remember(file)
            told_changes = [line for plan in plans for line in difference(plan.old, plan.new, plan.path)]
            return site.render(
                request, "memory_repair.html", title=f"Repair {file.path}", file=file, plans=plans, changes=told_changes
            )
        _, done = workspace.verification.repair(checked)
        workspace.verification.verify([str(workspace.path / file.path)])  # so that its page and the lists know
        return site.go(f"/memory/file/{quote(file.path)}", told="; ".join(done)[:300] or "nothing was repaired")

    # What was shown.

    def _remember(self, file: MemoryFilePage) -> None:
        with self._lock:
            if len(file.data) <= _LARGEST:
                self._shown[file.digest] = file.data
                self._shown.move_to_end(file.digest)
            while len(self._shown) > _REMEMBERED:
                self._shown.popitem(last=False)

    def _conflict(
        self, site: Site, request: Request, file: MemoryFilePage, form: FormData, *, typed: str = ""
    ) -> Response | None:
        """The answer where the file is not the one that the person saw: what changed, and what they typed."""
        seen = text_of(form, "seen")
        if seen == file.digest:
            return None
        with self._lock:
            before = self._shown.get(seen)
        changes = difference(before, file.data, file.path) if before is not None else ()
        return site.render(
            request,
            "memory_conflict.html",
            status=409,
            title="It changed meanwhile",
            file=file,
            changes=changes,
            is_known=before is not None,
            body=_body(file),
            typed=typed,
        )


_LOOKING = threading.Lock()


def survey_of(workspace: Workspace) -> Survey:
    """The survey. One that has very much to read goes on by itself; whoever asks is told so, or gets the last one."""
    try:
        survey = workspace.maintenance.survey(within=LATELY)
    except Busy:
        _look_later(workspace.path)
        raise
    if workspace.maintenance.last_refresh is not None and workspace.maintenance.last_refresh.later:
        _look_later(workspace.path)
    return survey


def _look_later(path: Path) -> None:
    if _LOOKING.acquire(blocking=False):
        threading.Thread(target=_look, args=(path,), name="survey", daemon=True).start()


def _look(path: Path) -> None:
    try:
        with Workspace.open(path) as workspace:
            workspace.maintenance.survey()
    except Exception as error:  # noqa: BLE001 - the next who asks begins anew
        if is_bug(error):
            note_bug(error, "serve")
        StateFolder(path).log(LOG, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} the survey failed: {type(error).__name__}")
    finally:
        _LOOKING.release()


def find_file(workspace: Workspace, path: str) -> MemoryFilePage | None:
    """A memory file by its exact path; None where the survey has seen none, or it is gone or behind a link by now."""
    listed = survey_of(workspace).browsing.find_file(path)
    if listed is None:
        return None
    try:
        stored = workspace.context.transaction.vault.read(path)
    except (UnsafePath, FileNotFoundError, NotADirectoryError):
        return None
    except ChangedSince as error:
        raise EditedSince(f"{path} changed while it was read", hint="load the page again") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="it must be a plain readable file") from error
    if stored is None:
        return None
    text = decode_text(stored.data)
    if text is None:
        return MemoryFilePage(listed, stored.data, None, Frontmatter(), "", 1)
    card = parse_card(path.rpartition("/")[2], text)
    return MemoryFilePage(
        listed, stored.data, text, card.front, card.problem, text.count("\n", 0, len(text) - len(card.body)) + 1
    )


def get_file(workspace: Workspace, request: Request) -> MemoryFilePage:
    path = request.path_params["path"].encode("utf-8", "replace").decode()
    file = find_file(workspace, path)
    if file is None:
        raise NotFound("there is no such file in memory any more", hint="History says what became of it")
    return file


def get_card(workspace: Workspace, request: Request) -> MemoryFilePage:
    """The card that an address names. Cards are acted on by their names, so a file elsewhere must not pass for one."""
    file = get_file(workspace, request)
    if not file.is_card:
        raise BadInput(f"{file.path} is no card", hint="only cards are confirmed and dropped; edit it in an editor")
    return file


def _body(file: MemoryFilePage) -> Markup:
    """What a file says, without its frontmatter; of a long one the beginning."""
    text = "\n".join(mask_lines(file.text or "").split("\n")[file.first - 1 :])
    return render_markdown(text[:_RENDERED_CHARS], path=file.path)


def _to_file(path: str) -> RedirectResponse:
    return RedirectResponse(f"/memory/file/{quote(path)}", status_code=303)


def _lines_of(text: str) -> tuple[int, int] | None:
    """A line or a range of them, as an address gives it: 5, 5-9."""
    first, _, last = text.partition("-")
    if not (first.isascii() and first.isdigit() and len(first) < 9):
        return None
    end = int(last) if last.isascii() and last.isdigit() and len(last) < 9 else int(first)
    return max(1, int(first)), max(1, int(first), end)


def _fitting(lines: Sequence[str], first: int) -> int:
    """The last line of a page that begins with this one."""
    size = 0
    for number in range(first, min(len(lines), first + _RENDERED_LINES - 1) + 1):
        size += len(lines[number - 1]) + 1
        if size > _RENDERED_CHARS and number > first:
            return number - 1
    return min(len(lines), first + _RENDERED_LINES - 1)


def _fields(front: Frontmatter) -> list[tuple[str, str]]:
    """The frontmatter for a table; what is nested, as it stands."""
    return [
        (field.key, withhold(front.text(field.key) or field.raw.partition(":")[2].strip())[:400])
        for field in front.fields
        if field.key
    ]


def _source(
    text: str,
    lines: Sequence[str],
    first: int,
    last: int,
    verdicts: Sequence[Verdict],
    wanted: tuple[int, int] | None,
    by: Sequence[BlamedLine],
) -> list[TextRow]:
    """The lines of a page, the claims in them marked by their places."""
    claims: dict[int, list[tuple[int, Verdict]]] = {}
    for number, item in enumerate(verdicts[:MOST_CLAIMS], 1):
        claims.setdefault(item.claim.line, []).append((number, item))
    start = sum(len(line) + 1 for line in lines[: first - 1])
    rows = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        is_wanted = wanted is not None and wanted[0] <= number <= wanted[1]
        pieces = _pieces(text, line, start, claims.get(number, ()))
        rows.append(TextRow(number, pieces, is_wanted, by[number - 1] if number <= len(by) else None))
        start += len(line) + 1
    return rows


def _pieces(text: str, line: str, start: int, claims: Sequence[tuple[int, Verdict]]) -> tuple[LinePiece, ...]:
    end, at = start + min(len(line), _LONGEST), start
    pieces = []
    for number, item in sorted(claims, key=lambda claim: claim[1].claim.start):
        claim = item.claim
        if claim.start < at or claim.end > end:
            continue  # inside another one, or beyond what is shown
        pieces += [
            LinePiece(text[at : claim.start]),
            LinePiece(text[claim.start : claim.end], number, item.verdict, _note(item)),
        ]
        at = claim.end
    pieces.append(LinePiece(text[at:end]))
    if len(line) > _LONGEST:
        pieces.append(LinePiece(f" … {len(line) - _LONGEST} more characters"))
    return tuple(piece for piece in pieces if piece.text)


def _mark(verdict: Verdict, number: int, first: int, line: str) -> ClaimMark:
    """A claim for the renderer. The backticks before it tell whether it is code; a fence has none."""
    claim = verdict.claim
    is_code = bool(line[: max(0, claim.column - 1)].count("`") % 2)
    return ClaimMark(claim.line - first + 1, claim.text, verdict.verdict, _note(verdict), f"claim-{number}", is_code)


def _note(verdict: Verdict) -> str:
    place = f" (now {verdict.place})" if verdict.verdict == "moved" and verdict.place else ""
    return f"{verdict.why}{place}"


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
