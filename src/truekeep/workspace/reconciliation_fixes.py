"""Writes the changes that reconcile decided: lines of the index, and values in cards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from truekeep.core.errors import EditedSince, StorageFailed
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import CARDS, INDEX
from truekeep.maintenance.reconcile import Repairs, with_value
from truekeep.maintenance.repair import bumped, spelled_like
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import StatedValue
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.workspace.context import WorkspaceContext

HOW_TO_SHORTEN = (
    "Shorten it: `truekeep tidy duplicates` merges cards, `truekeep tidy decay` lists those to drop; each takes its"
    " line with it. `truekeep card consolidate` puts one line in the place of many; lines that you take out stay out"
)


def index_overflow(context: WorkspaceContext, repairs: Sequence[Repairs]) -> str:
    """Why the index would be longer than agents read with the missing lines; "" if it would not."""
    lacking = sum(item.point is not None for item in repairs)
    if not lacking:
        return ""
    staging = Staging(context.vault)
    try:
        before = staging.read(INDEX) or b""
        _stage_index(context.vault.root, staging, repairs)
        after = staging.index().render()
    except (UnsafePath, ChangedSince, OSError):
        return ""  # reported when it is written
    limits = context.config.limits
    lines, size = after.count(b"\n"), len(after)
    if lines > limits.index_lines and lines > before.count(b"\n"):
        length = f"{lines} lines long, and agents read {limits.index_lines}"
    elif size > limits.index_bytes and size > len(before):
        length = f"{size:,} bytes long, and agents read {limits.index_bytes:,}"
    else:
        return ""
    missing = "a line that a card lacks" if lacking == 1 else f"{lacking} lines that cards lack"
    return f"with {missing}, {INDEX} is {length}: the rest is cut off. {HOW_TO_SHORTEN}"


def _stage_index(root: str, staging: Staging, repairs: Sequence[Repairs]) -> list[str]:
    """Stage all index repairs in one pass. A card that came back meanwhile keeps its line."""
    names = dict.fromkeys(item.unpoint for item in repairs if item.unpoint)
    gone = [name for name in names if not os.path.lexists(os.path.join(root, CARDS, name))]
    once = list(dict.fromkeys(item.once for item in repairs if item.once))
    retitled = [item.retitle for item in repairs if item.retitle is not None]
    points = [item.point for item in repairs if item.point is not None]
    staging.index().update_lines(0, gone=gone, once=once, retitled={old: new for _, old, new in retitled})
    for point in points:
        staging.point_at(*point, 0)
    done = [f"the line for {name}, which is not there, was taken out" for name in gone]
    done += [f"{name} has one line" for name in once]
    done += [f"the line for {name} says its topic" for name, _, _ in retitled]
    done += [f"{name} got its line" for name, _ in points]
    return [f"{INDEX}: {printable(line)}" for line in done]


def write_index_lines(
    repairs: Sequence[Repairs], transaction: MemoryTransaction, problems: list[str], *, at: str
) -> list[str]:
    staging = Staging(transaction.vault)
    try:
        done = _stage_index(transaction.vault.root, staging, repairs)
        if not staging.changes():
            return []
        note = f"{len(done)} index lines" if len(done) > 1 else done[0]
        transaction.act(staging, LedgerEntry(at=at, verb="reconciled", actor=person(), note=note))
    except (UnsafePath, ChangedSince, EditedSince, StorageFailed) as error:
        problems.append(f"{INDEX}: {error}")
        return []
    return done


def write_values(
    repairs: Sequence[Repairs],
    transaction: MemoryTransaction,
    problems: list[str],
    *,
    at: str,
    today: date,
    by_hand: bool,
) -> list[str]:
    """Write the winning values into the cards that state others, one ledger entry for each card."""
    wanted: dict[str, dict[int, tuple[StatedValue, str]]] = {}
    for item in repairs:
        if item.value is not None:
            said, value = item.value
            wanted.setdefault(said.path, {}).setdefault(said.value.start, (said, value))
    done = []
    for path, places in wanted.items():
        if not by_hand and _is_repair_undone(transaction, path):
            continue  # a person undid it, and only a person may do it again
        staging = Staging(transaction.vault)
        try:
            data = staging.read(path)
            if data is None:
                continue
            text = decode_text(data)
            what = []
            for _, (said, value) in sorted(places.items(), reverse=True):
                text = with_value(text, said, value) if text is not None else None
                what.append(f"{said.value.subject} {said.value.kind} {said.value.value} → {value}")
            if text is None:
                problems.append(f"{path}: edited since it was looked at, so it was left alone; run it again")
                continue
            since = next(iter(places.values()))[0].day or "no day"
            note = "; ".join(what) + f" (of {since}, brought up to {today})"
            staging.put(path, spelled_like(data, bumped(path, text, today)), 0)
            transaction.act(staging, LedgerEntry(at=at, verb="repaired", actor=person(), note=note))
        except (UnsafePath, ChangedSince, EditedSince) as error:
            problems.append(f"{path}: {error}")
            continue
        done.append(f"{path}: {'; '.join(what)}")
    return done


def _is_repair_undone(transaction: MemoryTransaction, path: str) -> bool:
    """True if the last ledger entry of a card undid a repair."""
    last = next(transaction.ledger.entries(path=path, limit=1), None)
    undone = transaction.ledger.get_entry(last.undoes) if last is not None and last.undoes is not None else None
    return undone is not None and undone.verb == "repaired"
