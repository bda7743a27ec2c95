"""Readings about the rest: handoffs, review, schedule, pipeline, search index, repositories, disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from truekeep.core.dates import local_minute
from truekeep.core.derived_db import UnusableDatabase
from truekeep.core.state_dir import STATE
from truekeep.search.index_schema import open_index
from truekeep.verify.same_name_checkouts import SAME_NAME_HINT
from truekeep.workspace.health_report import (
    ACT,
    LOOK,
    MAX_DRAFT_DAYS,
    MAX_DRAFTS,
    OK,
    Reading,
    count_of,
    parse_time,
    shown_bytes,
)

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.workspace.failures import Failure
    from truekeep.workspace.pipeline import Pipeline
    from truekeep.workspace.workspace import Workspace

MAX_FILES_BEHIND, MAX_SHARE_BEHIND = 50, 0.2  # files that the search index may lack, and their share
MIN_FREE_BYTES = 200 << 20
GRAVE_ALARMS = ("split-host", "no-host", "not-running", "growing")  # memory gets no handoffs
MEMORY_FMAX_DRAFT_DAYSERS = ("memory", "rules", ".learnings")


def handoffs(workspace: Workspace, config: Config) -> Reading:
    waiting, others = workspace.handoffs.scan_inboxes()
    limit = config.limits.waiting_handoffs
    verdict = OK if waiting < limit or not waiting else LOOK if waiting < 2 * limit else ACT
    said = f"{count_of(waiting, 'handoff')} {'waits' if waiting == 1 else 'wait'}"
    hint = "" if verdict == OK else "`truekeep ingest` files them; `truekeep schedule install` does it by a timer"
    if others:
        said += f", {count_of(len(others), 'file')} {'is not a handoff' if len(others) == 1 else 'are not handoffs'}"
        verdict = max(verdict, LOOK, key=(OK, LOOK, ACT).index)
        hint = hint or "`truekeep handoff list` names what is not a handoff"
    return Reading("handoffs", verdict, said, f"under {limit}", hint, {"waiting": waiting, "limit": limit})


def review(workspace: Workspace, now: datetime) -> Reading:
    drafts = workspace.review.drafts()
    oldest = min((draft.received_at for draft in drafts), default="")
    begun = parse_time(oldest)
    days = max(0, (now - begun).days) if begun is not None else None
    figures = {"drafts": len(drafts), "oldest": oldest or None, "oldest_days": days}
    target = f"under {MAX_DRAFTS}, none for {MAX_DRAFT_DAYS} days"
    if not drafts:
        return Reading("review", OK, "nothing waits for a person", target, figures=figures)
    age = f", the oldest for {count_of(days, 'day')}" if days is not None else ""
    said = f"{count_of(len(drafts), 'draft')} {'waits' if len(drafts) == 1 else 'wait'}{age}"
    is_late = len(drafts) >= MAX_DRAFTS or (days is not None and days >= MAX_DRAFT_DAYS)
    hint = "`truekeep review list` shows them with their reasons" if is_late else ""
    return Reading("review", LOOK if is_late else OK, said, target, hint, figures)


def failures(name: str, found: Sequence[Failure]) -> Reading:
    figures = {"failures": len(found)}
    if not found:
        return Reading(name, OK, "nothing failed", "none", figures=figures)
    said = "; ".join(failure.what for failure in found)
    hints = dict.fromkeys(failure.hint for failure in found)
    return Reading(name, ACT, said, "none", "; ".join(hints), figures)


def pipeline(seen: Pipeline) -> Reading:
    filed, held = sum(source.filed for source in seen.sources), sum(source.held for source in seen.sources)
    machines = len({source.machine for source in seen.sources})
    last = f"last ingest {local_minute(seen.last_ingest)}" if seen.last_ingest else "ingest has never run"
    said = f"{filed} filed and {held} held in a week, from {count_of(machines, 'machine')}; {last}"
    figures = {
        "filed": filed,
        "held": held,
        "machines": machines,
        "last_ingest": seen.last_ingest or None,
        "alarms": [alarm._asdict() for alarm in seen.alarms],
    }
    if not seen.alarms:
        return Reading("pipeline", OK, said, "no alarm", figures=figures)
    first = seen.alarms[0]
    verdict = ACT if any(alarm.code in GRAVE_ALARMS for alarm in seen.alarms) else LOOK
    more = f"; {len(seen.alarms) - 1} more: `truekeep status pipeline`" if len(seen.alarms) > 1 else ""
    return Reading("pipeline", verdict, said, "no alarm", f"{first.message}: {first.hint}{more}", figures)


def search(workspace: Workspace) -> Reading:
    path = os.path.join(workspace.path, STATE, "index.sqlite")
    figures: dict[str, Any] = {"files": 0, "waiting": 0, "unembedded": 0, "indexed_at": None, "problem": None}
    if not os.path.lexists(path) or not os.path.getsize(path):
        return Reading("search", OK, "no index yet; the first search makes it", figures=figures)
    try:
        open_index(path, read_only=True).close()  # reports damage without setting the file aside
        status = workspace.search.status()
        problem = status.problem
    except UnusableDatabase as error:
        problem = error.reason
    if problem:
        hint = "`truekeep doctor --fix` rebuilds it"
        figures["problem"] = problem
        return Reading("search", LOOK, f"the index cannot be used: {problem}", "up to date", hint, figures)
    files = sum(count for store, count in status.files.items() if store != "transcripts")
    figures |= {"files": files, "waiting": status.waiting, "unembedded": status.unembedded}
    figures["indexed_at"] = status.indexed_at or None
    told = [f"{status.waiting} changed since"] if status.waiting else []
    told += [f"{status.unembedded} pieces without a vector"] if status.unembedded else []
    when = f", brought up to date {local_minute(status.indexed_at)}" if status.indexed_at else ""
    said = f"{count_of(files, 'file')}{when}; {', '.join(told) or 'nothing changed since'}"
    is_behind = status.waiting > max(MAX_FILES_BEHIND, MAX_SHARE_BEHIND * files) or status.unembedded > MAX_FILES_BEHIND
    hint = "`truekeep index` takes them in" if is_behind else ""
    return Reading("search", LOOK if is_behind else OK, said, "up to date", hint, figures)


def same_names(workspace: Workspace) -> Reading | None:
    """Checkouts that have the name of another repository; None if there are none."""
    told = workspace.repositories.same_names()
    if not told:
        return None
    figures = {"same_name": list(told)}
    return Reading("repositories", LOOK, "; ".join(told), "each name once", SAME_NAME_HINT, figures)


def disk(root: str) -> Reading:
    memory = [info.st_size for folder in MEMORY_FMAX_DRAFT_DAYSERS for info in _files(os.path.join(root, folder))]
    with os.scandir(root) as entries:
        memory += [item.stat(follow_symlinks=False).st_size for item in entries if _is_memory(item)]
    state = sum(info.st_size for info in _files(os.path.join(root, STATE)))
    room = os.statvfs(root)
    free = room.f_bavail * room.f_frsize
    figures = {"memory_bytes": sum(memory), "memory_files": len(memory), "state_bytes": state, "free_bytes": free}
    said = f"{shown_bytes(sum(memory))} of memory, {shown_bytes(state)} of state, {shown_bytes(free)} free"
    target = f"{shown_bytes(MIN_FREE_BYTES)} free"
    is_scarce = free < MIN_FREE_BYTES
    return Reading("disk", ACT if is_scarce else OK, said, target, "make room" if is_scarce else "", figures)


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
