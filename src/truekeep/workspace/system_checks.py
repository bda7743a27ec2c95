"""Checks of what feeds and holds memory: handoffs, review, schedule, pipeline, search index, repositories, disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from truekeep.core.dates import local_minute, many
from truekeep.core.derived_db import UnusableDatabase, read_meta
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.copy_install import find_edits
from truekeep.search.embedder_choice import CHUNKING
from truekeep.search.embedders.choice import choose
from truekeep.search.index_schema import open_index
from truekeep.sessions.session_record import last_activity
from truekeep.text.secrets.scanner import withhold
from truekeep.verify.same_name_checkouts import SAME_NAME_HINT
from truekeep.workspace.check import (
    MAX_DRAFT_DAYS,
    MAX_DRAFTS,
    MAX_EXAMPLES,
    OK,
    PROBLEM,
    WARNING,
    CheckContext,
    CheckResult,
    Found,
    other_documents_of,
    shown_bytes,
)
from truekeep.workspace.failures import Failure, failed_runs, noted_bugs
from truekeep.workspace.pipeline import Pipeline, see_pipeline

if TYPE_CHECKING:
    from truekeep.core.memory_copy import CopySource

MAX_FILES_BEHIND, MAX_SHARE_BEHIND = 50, 0.2  # files that the search index may lack, and their share
MIN_FREE_BYTES = 200 << 20
GRAVE_ALARMS = ("split-host", "no-host", "not-running", "growing")  # memory gets no handoffs
MEMORY_FOLDERS = ("memory", "rules", ".learnings")
CONNECT = "`truekeep connect` in a repository tells its agents to leave handoffs"


def pipeline_of(context: CheckContext) -> Pipeline:
    return see_pipeline(context.workspace, now=context.now().astimezone(UTC), roots=context.session_roots)


def check_handoffs(context: CheckContext) -> CheckResult:
    waiting, others = context.workspace.handoffs.scan_inboxes()
    limit = context.config.limits.waiting_handoffs
    severity = OK if waiting < limit or not waiting else WARNING if waiting < 2 * limit else PROBLEM
    said = f"{many(waiting, 'handoff')} {'waits' if waiting == 1 else 'wait'}"
    hint = "" if severity == OK else "`truekeep ingest` files them; `truekeep schedule install` does it by a timer"
    if others:
        said += f", {many(len(others), 'file')} {'is not a handoff' if len(others) == 1 else 'are not handoffs'}"
        severity = PROBLEM if severity == PROBLEM else WARNING
        hint = hint or "`truekeep handoff list` names what is not a handoff"
    return CheckResult(
        severity,
        said,
        hint,
        target=f"under {limit}",
        figures={"waiting": waiting, "limit": limit},
        is_absent=not waiting and not others and not context.once(pipeline_of).has_inboxes,
    )


def check_review(context: CheckContext) -> CheckResult:
    drafts = context.workspace.review.drafts()
    oldest = min((draft.received_at for draft in drafts), default="")
    begun = _parse_time(oldest)
    days = max(0, (context.now() - begun).days) if begun is not None else None
    titles = [withhold(context.workspace.review.title(draft) or draft.name) for draft in drafts[:MAX_EXAMPLES]]
    figures = {"drafts": len(drafts), "oldest": oldest or None, "oldest_days": days, "first": titles}
    target = f"under {MAX_DRAFTS}, none for {MAX_DRAFT_DAYS} days"
    if not drafts:
        return CheckResult(OK, "nothing waits for a person", target=target, figures=figures)
    age = f", the oldest for {many(days, 'day')}" if days is not None else ""
    said = f"{many(len(drafts), 'draft')} {'waits' if len(drafts) == 1 else 'wait'}{age}"
    is_late = len(drafts) >= MAX_DRAFTS or (days is not None and days >= MAX_DRAFT_DAYS)
    hint = "`truekeep review list` shows them with their reasons" if is_late else ""
    return CheckResult(WARNING if is_late else OK, said, hint, target=target, figures=figures)


def check_heartbeat(context: CheckContext) -> CheckResult:
    """Whether HEARTBEAT.md is updated while sessions work."""
    minutes = context.config.limits.heartbeat_minutes
    at = context.workspace.sessions.overdue_heartbeat()
    target = f"every {many(minutes, 'minute')} while a session works"
    if at is None:
        return CheckResult(OK, "not overdue", target=target, figures={"overdue_minutes": None}, is_absent=True)
    age = context.now().replace(tzinfo=None) - at
    figures = {"overdue_minutes": int(age.total_seconds() // 60) - minutes}
    said = f"HEARTBEAT.md is of {at:%Y-%m-%d %H:%M}"
    if last_activity() < at.timestamp() + minutes * 60:
        return CheckResult(OK, f"{said}; no session worked since", target=target, figures=figures)
    said += f", older than its interval of {many(minutes, 'minute')}, and sessions worked since"
    return CheckResult(WARNING, said, "`truekeep note heartbeat --now TEXT` updates it", target=target, figures=figures)


def _parse_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_runs(context: CheckContext) -> CheckResult:
    """Steps of the schedule that failed in their last run."""
    return _failed(context, failed_runs(context.runs_folder, now=context.now()))


def check_bugs(context: CheckContext) -> CheckResult:
    """Recorded crashes of truekeep."""
    return _failed(context, noted_bugs(now=context.now()))


def _failed(context: CheckContext, found: Sequence[Failure]) -> CheckResult:
    figures = {"failures": len(found)}
    if not found:
        return CheckResult(OK, "nothing failed", target="none", figures=figures, is_absent=True)
    said = "; ".join(failure.what for failure in found)
    hints = dict.fromkeys(failure.hint for failure in found)
    where = context.shown(found[0].where)
    return CheckResult(PROBLEM, said, "; ".join(hints), where=where, target="none", figures=figures)


def check_pipeline(context: CheckContext) -> CheckResult:
    seen = context.once(pipeline_of)
    filed, held = sum(source.filed for source in seen.sources), sum(source.held for source in seen.sources)
    machines = len({source.machine for source in seen.sources})
    last = f"last ingest {local_minute(seen.last_ingest)}" if seen.last_ingest else "ingest has never run"
    said = f"{filed} filed and {held} held in a week, from {many(machines, 'machine')}; {last}"
    hint = ""
    if context.workspace.source is not None:
        reached = max((route.last_ok_at for route in seen.routes), default="")
        waiting = sum(source.waiting for source in seen.sources)
        said = f"{many(waiting, 'handoff')} here for {context.workspace.source.host}"
        said += f"; last reached {local_minute(reached)}" if reached else "; the host fetches them"
    elif not seen.has_inboxes:
        said, hint = "no inboxes yet", CONNECT
    figures = {
        "filed": filed,
        "held": held,
        "machines": machines,
        "last_ingest": seen.last_ingest or None,
        "alarms": [alarm._asdict() for alarm in seen.alarms],
    }
    severity = OK
    if seen.alarms:
        first = seen.alarms[0]
        severity = PROBLEM if any(alarm.code in GRAVE_ALARMS for alarm in seen.alarms) else WARNING
        more = f"; {len(seen.alarms) - 1} more: `truekeep status pipeline`" if len(seen.alarms) > 1 else ""
        hint = f"{first.message}: {first.hint}{more}"
    return CheckResult(severity, said, hint, target="no alarm", figures=figures)


def check_copies(context: CheckContext) -> CheckResult:
    """On a copy, how old it is; on the host, when memory was last sent, and by which routes."""
    source = context.workspace.source
    if source is not None:
        return _check_copy(context, source)
    routes = [(route, history.last) for route, history in context.workspace.handoffs.sync_routes()]
    sent = {route.name: last.memory for route, last in routes if last is not None and last.memory}
    silent = [route.name for route, _ in routes if not route.shares_memory]
    figures = {"sent": sent, "not_sent": silent}
    if not routes:
        return CheckResult(OK, "no route to another machine", figures=figures, is_absent=True)
    told = [f"{name} has memory of {local_minute(at)}" for name, at in sorted(sent.items())]
    told += [f"{name} has sent none yet" for name in sorted({route.name for route, _ in routes} - {*sent, *silent})]
    if not silent:
        return CheckResult(OK, "; ".join(told), figures=figures)
    told.append(f"{', '.join(silent)}: handoffs only")
    return CheckResult(OK, f"{'; '.join(told)} (`truekeep sync share {silent[0]}` sends memory, too)", figures=figures)


def _check_copy(context: CheckContext, source: CopySource) -> CheckResult:
    now = context.now()
    edited = find_edits(context.workspace.path)
    stay = "; private files stayed there" if source.private else ""
    figures = {
        "host": source.host, "as_of": source.as_of, "minutes": source.minutes_old(now), "every": source.every,
        "edited": edited[:MAX_EXAMPLES],
    }  # fmt: skip
    aside = f"; {many(len(source.edited), 'edit')} made here kept as {source.edited[0]}" if source.edited else ""
    said, target = f"{source.in_words(now)}{stay}{aside}", f"at most {source.every} min"
    if edited:
        what = f"{said}; {many(len(edited), 'file')} edited here, such as {edited[0]}"
        hint = "leave a handoff instead: the next sync that brings something new keeps the edits aside"
        return CheckResult(WARNING, what, hint, target=target, figures=figures)
    return CheckResult(
        WARNING if source.is_stale(now) else OK, said, source.warning(now), target=target, figures=figures
    )


def check_search(context: CheckContext) -> CheckResult:
    """Whether the search index fits the settings and the files. What is damaged is rebuilt by doctor."""
    path = os.path.join(context.state, "index.sqlite")
    figures: dict[str, Any] = {"files": 0, "waiting": 0, "unembedded": 0, "indexed_at": None, "problem": None}
    if not os.path.lexists(path) or not os.path.getsize(path):
        return CheckResult(OK, "no index yet; the first search makes it", figures=figures)
    differs = ""
    try:
        differs = _differs(context, path)
        status = context.workspace.search.status()
        unusable = status.problem
    except UnusableDatabase as error:
        unusable = error.reason
    if unusable:
        figures["problem"] = unusable
        said, hint = f"the index cannot be used: {unusable}", "`truekeep doctor --fix` rebuilds it"
        return CheckResult(WARNING, said, hint, target="up to date", figures=figures)
    files = sum(count for store, count in status.files.items() if store != "transcripts")
    figures |= {"files": files, "waiting": status.waiting, "unembedded": status.unembedded}
    figures["indexed_at"] = status.indexed_at or None
    told = [f"{status.waiting} changed since"] if status.waiting else []
    told += [f"{status.unembedded} pieces without a vector"] if status.unembedded else []
    when = f", brought up to date {local_minute(status.indexed_at)}" if status.indexed_at else ""
    said = f"{many(files, 'file')}{when}; {', '.join(told) or 'nothing changed since'}"
    is_behind = status.waiting > max(MAX_FILES_BEHIND, MAX_SHARE_BEHIND * files) or status.unembedded > MAX_FILES_BEHIND
    if not differs and not is_behind:
        return CheckResult(OK, said, target="up to date", figures=figures)
    return CheckResult(
        WARNING,
        differs or said,
        target="up to date",
        where=context.shown(path) if differs else "",
        figures=figures,
        fix=lambda: _bring_up_to_date(context),
        fix_summary="rebuild it" if differs else "bring it up to date",
    )


def _differs(context: CheckContext, path: str) -> str:
    """How the index differs from what this truekeep and the settings would make; empty if it does not."""
    db = open_index(path, read_only=True)  # reports damage without setting the file aside
    try:
        made_by = str(read_meta(db, "fingerprint", "")).partition("\n")[0]
        embedder = str(read_meta(db, "embedder", "")).partition("\t")[0]
    finally:
        db.close()
    if made_by and made_by != CHUNKING:
        return "was made by another version of truekeep"
    wanted = choose(context.config.recall, os.environ)
    return f"has vectors of {embedder}, but the settings say {wanted}" if embedder and embedder != wanted else ""


def _bring_up_to_date(context: CheckContext) -> str:
    done = context.workspace.search.index()
    return f"brought up to date: {done.files} files, {done.chunks} pieces" + f" ({done.rebuilt})" * bool(done.rebuilt)


def check_same_names(context: CheckContext) -> Found:
    """Checkouts that have the name of another repository."""
    told = context.workspace.repositories.same_names()
    if told:
        figures = {"same_name": list(told)}
        yield CheckResult(WARNING, "; ".join(told), SAME_NAME_HINT, target="each name once", figures=figures)


def check_disk(context: CheckContext) -> CheckResult:
    root = context.root
    memory = [info.st_size for folder in MEMORY_FOLDERS for info in _files(os.path.join(root, folder))]
    with os.scandir(root) as entries:
        memory += [item.stat(follow_symlinks=False).st_size for item in entries if _is_memory(item)]
    others = context.once(other_documents_of)
    total, count = sum(memory) + others.size, len(memory) + others.files
    state = sum(info.st_size for info in _files(os.path.join(root, STATE)))
    room = os.statvfs(root)
    free = room.f_bavail * room.f_frsize
    figures = {"memory_bytes": total, "memory_files": count, "state_bytes": state, "free_bytes": free}
    said = f"{shown_bytes(total)} of memory, {shown_bytes(state)} of state, {shown_bytes(free)} free"
    target = f"{shown_bytes(MIN_FREE_BYTES)} free"
    is_scarce = free < MIN_FREE_BYTES
    hint = "make room" if is_scarce else ""
    return CheckResult(PROBLEM if is_scarce else OK, said, hint, target=target, figures=figures)


def _is_memory(item: os.DirEntry[str]) -> bool:
    return item.name.endswith(".md") and item.is_file(follow_symlinks=False)


def _files(folder: str) -> Iterator[os.stat_result]:
    """Every regular file below a folder; links and unreadable folders are skipped."""
    folders = [folder] if not os.path.islink(folder) else []
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue
        for item in listed:
            try:
                info = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(info.st_mode):
                folders.append(item.path)
            elif stat.S_ISREG(info.st_mode):
                yield info
