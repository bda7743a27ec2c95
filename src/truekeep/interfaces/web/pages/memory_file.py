"""One memory file: read it with its verdicts and history, confirm it, repair it, drop it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, EditedSince, NotFound
from truekeep.core.machine import person
from truekeep.core.model import CARDS, INDEX
from truekeep.interfaces.web.markdown import render_markdown
from truekeep.interfaces.web.pages.history import is_draft, seen_entry
from truekeep.interfaces.web.pages.memory_lookup import (
    MemoryFilePage,
    find_file,
    get_card,
    get_file,
    shown_age_of,
    survey_of,
)
from truekeep.interfaces.web.pages.memory_text import (
    MAX_CLAIMS,
    MAX_LINE_CHARACTERS,
    MAX_SOURCE_LINES,
    LinePiece,
    TextRow,
    claim_mark,
    last_rendered_line,
    parse_lines,
    render_body,
    shown_fields,
    source_rows,
)
from truekeep.interfaces.web.site import Site, number_of, text_of
from truekeep.text.secrets.scanner import cover_secrets
from truekeep.text.unified_diff import difference
from truekeep.verify.results import CheckedMemory, digest_text
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.memory.history import BlamedLine

MAX_ENTRIES = 20
COMPARED_ENTRIES = 3  # entries whose difference is shown at once
VERDICT_BUDGET = 0.05  # seconds that a page waits for verdicts; with "check now", as long as it takes
MAX_REMEMBERED_FILES, MAX_REMEMBERED_BYTES = 64, 200_000  # shown files, for showing what changed since


class FilePages:
    """The pages of one file. They remember the files they showed, to show what changed since."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, site: Site, workspace: Workspace, request: Request) -> Response:
        """A file, rendered or as lines, with its verdicts, its origin and its neighbours."""
        path = request.path_params["path"].encode("utf-8", "replace").decode()
        query = request.query_params
        if path.startswith("transcripts/"):
            return site.go("/transcripts", cited=path, line=query.get("line", ""))
        file = find_file(workspace, path)
        if file is None:
            return self._elsewhere(site, workspace, request, path)
        self._remember(file)
        checked = self._checked(site, workspace, file, is_asked=query.get("check") == "1")
        wanted = parse_lines(query.get("line", ""))
        is_source = bool(query.get("view") == "lines" or wanted or query.get("why"))
        verdicts = checked.verdicts if isinstance(checked, CheckedMemory) else ()
        text = cover_secrets(file.text or "", "•")
        lines = text.removesuffix("\n").split("\n")
        context: dict[str, Any] = {"is_source": is_source, "total": len(lines), "wanted": wanted}
        by: list[BlamedLine] = []
        if is_source:
            by = workspace.history.blame(str(workspace.path / file.path)) if query.get("why") == "1" else []
            first = number_of(
                request, "from", (max(1, wanted[0] if wanted else 1) - 1) // MAX_SOURCE_LINES * MAX_SOURCE_LINES + 1
            )
            first = min(max(1, first), len(lines))
            last = min(len(lines), first + MAX_SOURCE_LINES - 1)
            context |= {"first": first, "last": last, "has_why": bool(by)}
            context["source"] = source_rows(text, lines, first, last, verdicts, wanted, by)
        else:
            first = min(max(file.first, number_of(request, "from", file.first)), len(lines))
            last = last_rendered_line(lines, first)
            inside = [item for item in enumerate(verdicts[:MAX_CLAIMS], 1) if first <= item[1].claim.line <= last]
            inside.sort(key=lambda item: item[1].claim.start)
            marks = [claim_mark(item, number, first, lines[item.claim.line - 1]) for number, item in inside]
            context |= {"first": first, "last": last, "has_why": False}
            context["body"] = render_markdown(
                "\n".join(lines[first - 1 : last]), marks=marks, path=file.path, base=site.base
            )
        found = workspace.history.entries(str(workspace.path / file.path), limit=MAX_ENTRIES)
        sees_drafts = site.allowed(request).see_drafts
        entries = [(seen_entry(entry, sees_drafts=sees_drafts), record) for entry, record in found]
        records = [*(record for _, record in entries), *(line.record for line in by)]
        changes = workspace.history.differences(file.path, [entry.id for entry, _ in entries[:COMPARED_ENTRIES]])
        return site.render(
            request,
            "memory_file.html",
            title=file.listed.topic or file.path,
            file=file,
            age=shown_age_of(file.listed.day, workspace.today()),
            fields=shown_fields(file.front),
            checked=checked if isinstance(checked, CheckedMemory) else None,
            unchecked=checked if isinstance(checked, str) else "",
            checked_on=_moment(checked.checked_at) if isinstance(checked, CheckedMemory) else "",
            claims=list(enumerate(verdicts[:MAX_CLAIMS], 1)),
            more_claims=max(0, len(verdicts) - MAX_CLAIMS),
            may_check=site.is_local and file.listed.store in ("cards", "documents"),
            rot=sum(item.is_rot for item in verdicts),
            entries=entries,
            changes=changes,
            source_record=next((record for _, record in entries if record is not None), None),
            accounts=site.accounts(request, [record.digest for record in records if record is not None]),
            around=survey_of(workspace).browsing.neighbours(file.path),
            **context,
        )

    def _elsewhere(self, site: Site, workspace: Workspace, request: Request, path: str) -> Response:
        """A file named by a part of its path, or one of the configured extra paths."""
        survey = survey_of(workspace)
        for name in (f"{path}.md", f"memory/{path}", f"{CARDS}/{path}", f"{CARDS}/{path}.md"):
            if survey.browsing.find_file(name) is not None:
                return _to_file(site, name)
        if (gone := self._gone(site, workspace, request, path)) is not None:
            return gone
        if not workspace.config.recall.extra_paths:
            raise NotFound("there is no such file in memory", hint="Search finds where something is said")
        wanted = parse_lines(request.query_params.get("line", ""))
        first = max(1, number_of(request, "from", max(1, wanted[0] - 20) if wanted else 1))
        try:
            excerpt = workspace.search.get(path, first=first)
        except (BadInput, EditedSince) as error:
            raise NotFound("there is no such file in memory", hint="Search finds where something is said") from error
        if excerpt.path != path and find_file(workspace, excerpt.path) is not None:
            return _to_file(site, excerpt.path)
        lines = excerpt.text.split("\n")
        named = range(wanted[0], wanted[1] + 1) if wanted else range(0)
        rows = [
            TextRow(at, (LinePiece(line[:MAX_LINE_CHARACTERS]),), at in named, None)
            for at, line in enumerate(lines, first)
        ]
        return site.render(request, "memory_extra.html", title=excerpt.path, excerpt=excerpt, source=rows, accounts={})

    def _gone(self, site: Site, workspace: Workspace, request: Request, path: str) -> Response | None:
        """The last entry of a file that is gone; None if truekeep never wrote it."""
        entry = workspace.history.last(path)
        if entry is None or (is_draft(path) and not site.allowed(request).see_drafts):
            return None
        entry = seen_entry(entry, sees_drafts=site.allowed(request).see_drafts)
        versions = workspace.history.versions(entry.id, path)
        is_taken = versions is not None and versions[1] is not None  # truekeep left it there
        title = "It is not here any more"
        return site.render(
            request, "memory_gone.html", status=404, title=title, gone=path, entry=entry, is_taken=is_taken
        )

    def _checked(
        self, site: Site, workspace: Workspace, file: MemoryFilePage, *, is_asked: bool
    ) -> CheckedMemory | str:
        if not site.is_local:
            return "they are checked on members' machines, where the repositories are"
        if file.listed.store not in ("cards", "documents"):
            return "it tells what happened, and that stays true"
        if file.text is None:
            return "it is not UTF-8 text"
        if not is_asked:
            return workspace.verification.check(file.path, budget=VERDICT_BUDGET)
        (checked,) = workspace.verification.verify([str(workspace.path / file.path)])
        if not checked.roots and checked.problems:
            return "; ".join(checked.problems)
        return checked

    # Acts.

    def confirm(self, site: Site, workspace: Workspace, request: Request, form: FormData) -> Response:
        """Record that a card still holds."""
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
        return site.render(
            request, "memory_drop.html", title=title, file=file, pointing=pointing, body=render_body(file, site.base)
        )

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
        """Write moved claims into a memory. More than one edit, or a draft, is shown first."""
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
        workspace.verification.verify([str(workspace.path / file.path)])  # for its page and the lists
        return site.go(f"/memory/file/{quote(file.path)}", told="; ".join(done)[:300] or "nothing was repaired")

    # What was shown.

    def _remember(self, file: MemoryFilePage) -> None:
        with self._lock:
            if len(file.data) <= MAX_REMEMBERED_BYTES:
                self._shown[file.digest] = file.data
                self._shown.move_to_end(file.digest)
            while len(self._shown) > MAX_REMEMBERED_FILES:
                self._shown.popitem(last=False)

    def _conflict(
        self, site: Site, request: Request, file: MemoryFilePage, form: FormData, *, typed: str = ""
    ) -> Response | None:
        """The page for a file that changed since the person saw it: what changed, and what they typed."""
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
            body=render_body(file, site.base),
            typed=typed,
        )


def _to_file(site: Site, path: str) -> Response:
    return site.go(f"/memory/file/{quote(path)}")


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
