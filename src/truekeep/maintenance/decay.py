"""Decay: log entries that expire leave search, spent logs are archived, and cards without a sign of life are listed.

Entries of daily logs leave the search index by a record (see search/decay_record.py); no log is edited. A log without
unexpired entries may be moved to the archive. Cards are never removed: cards that were not updated, confirmed or
verified for long are listed, to be verified first, and else to be decided on. This module plans from the survey and the
last verdicts; workspace/maintenance.py carries the plans out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import EditedSince, as_argument
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import ARCHIVE
from truekeep.memory.importance import Tier, Tiers, tier_of
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.search.decay_record import RECORD, DecayRecord, affected_days, log_day, render_decay_record
from truekeep.text.encoding import decode_text
from truekeep.text.markdown_lines import iter_lines
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import CardFacts, Survey
    from truekeep.memory.transaction import MemoryTransaction

_UNARCHIVED_DAYS = 2  # every session reads the logs of today and yesterday


class Expiry(NamedTuple):
    """A log entry that leaves search, or returns to it."""

    path: str
    first: int
    last: int
    kind: str
    importance: float
    tier: Tier


class Forgetting(NamedTuple):
    """The new decay record, and the log entries that it removes from search or returns to it."""

    record: DecayRecord
    leaving: tuple[Expiry, ...]
    returning: tuple[Expiry, ...]

    @property
    def note(self) -> str:
        """The note for the ledger."""
        tiers = self.record.tiers
        parts = [f"{len(self.leaving)} entries of logs left search"] if self.leaving else []
        parts += [f"{len(self.returning)} came back"] if self.returning else []
        limits = (
            f"below {tiers.potential:g} after {tiers.contextual_days} days,"
            f" below {tiers.structural:g} after {tiers.potential_days}"
        )
        return f"up to {self.record.day}: {', '.join(parts)} ({limits})"


class Move(NamedTuple):
    """A log that moves to the archive."""

    path: str
    to: str


class LastVerification(NamedTuple):
    """The result of a card's last verification."""

    day: date
    counts: Mapping[str, int]  # of each verdict


class Stale(NamedTuple):
    """A card without a sign of life."""

    path: str
    age_days: int | None  # since the last one; None: it has no date
    is_checked: bool  # verification has said what it can: now it is for a person to decide
    why: str
    can_be_confirmed: bool = True  # it has frontmatter that can say so

    @property
    def next(self) -> str:
        return "decide" if self.is_checked else "verify"

    @property
    def commands(self) -> tuple[str, ...]:
        """What a person can run next."""
        if not self.is_checked:
            return (f"truekeep verify {as_argument(self.path)}",)
        name = self.path.rpartition("/")[2].removesuffix(".md")
        named = as_argument(self.path if name.startswith("-") or name.endswith(".md") else name)
        confirm = [f"truekeep card confirm {named}"] if self.can_be_confirmed else []
        return (*confirm, f"truekeep card drop {named} --reason 'not used for a long time'")


class DecayReport(NamedTuple):
    """The result of a run, or of a dry run."""

    day: date
    record: DecayRecord | None  # what is in force after it
    leaving: tuple[Expiry, ...] = ()
    returning: tuple[Expiry, ...] = ()
    moves: tuple[Move, ...] = ()
    drafts: tuple[str, ...] = ()  # their ids
    processed: tuple[str, ...] = ()
    sessions: int = 0  # that left the index
    tagged: int = 0  # entries of logs with an importance; others never expire
    cards: tuple[Stale, ...] = ()
    problems: tuple[str, ...] = ()  # what cannot be read, each with its place
    notes: tuple[str, ...] = ()

    @property
    def entries(self) -> list[dict[str, object]]:
        """The log entries that leave search, then those that come back."""
        both = ((True, self.leaving), (False, self.returning))
        return [
            {**entry._asdict(), "kind": withhold(printable(entry.kind)), "leaves": leaves}
            for leaves, entries in both
            for entry in entries
        ]

    @property
    def has_changes(self) -> bool:
        done = (self.leaving, self.returning, self.moves, self.drafts, self.processed, self.sessions)
        return any(done)


# --- Entries of logs -------------------------------------------------------------------------------------------------


def plan_forgetting(survey: Survey, before: DecayRecord | None, today: date, tiers: Tiers) -> Forgetting | None:
    """The next decay record; None if no entry expires or returns. Reads only logs of the affected days."""
    now = DecayRecord(today, tiers)
    leaving: list[Expiry] = []
    returning: list[Expiry] = []
    for day, entry in _iter_entries(survey, affected_days(before, now)):
        was = before is not None and before.has_expired(day, entry.importance)
        has = now.has_expired(day, entry.importance)
        if has and not was:
            leaving.append(entry._replace(tier=tier_of(entry.importance, tiers)))
        elif was and not has:
            returning.append(entry._replace(tier=tier_of(entry.importance, tiers)))
    return Forgetting(now, tuple(leaving), tuple(returning)) if leaving or returning else None


def _iter_entries(survey: Survey, between: Sequence[tuple[str, str]]) -> Iterator[tuple[date, Expiry]]:
    """The tagged entries of the logs of these days, each once."""
    seen: set[str] = set()
    for after, until in between:
        rows: Any = survey.db.execute(
            "SELECT path, first, last, kind, importance FROM files JOIN entries ON entries.file = files.id"
            " WHERE store = 'logs' AND day > ? AND day <= ? ORDER BY day, path, first",
            (after, until),
        )
        here: set[str] = set()
        for path, first, last, kind, importance in rows:
            day = log_day(path)
            if path in seen or day is None:
                continue
            here.add(path)
            yield day, Expiry(path, first, last, kind, importance, "contextual")
        seen |= here


def write_forgetting(transaction: MemoryTransaction, plan: Forgetting, *, at: str, actor: str) -> None:
    staging = Staging(transaction.vault)
    staging.put(RECORD, render_decay_record(plan.record).encode(), 0)
    transaction.act(staging, LedgerEntry(at=at, verb="decayed", actor=actor, note=plan.note))


def is_taken_back(transaction: MemoryTransaction) -> bool:
    """Whether the last change of the record was an undo."""
    last = next(transaction.ledger.entries(path=RECORD, limit=1), None)
    return last is not None and last.verb == "undone"


# --- The archive -----------------------------------------------------------------------------------------------------


def plan_moves(
    survey: Survey, record: DecayRecord | None, read: Callable[[str], bytes | None], today: date, problems: list[str]
) -> list[Move]:
    """The logs whose entries have all expired, and their paths in the archive."""
    if record is None:
        return []
    until = min(record.day, today - timedelta(days=_UNARCHIVED_DAYS))
    query = (
        "SELECT path, min(importance), max(importance) FROM files JOIN entries ON entries.file = files.id"
        " WHERE store = 'logs' AND day != '' AND day <= ? GROUP BY path ORDER BY day, path"
    )
    moves: list[Move] = []
    taken: set[str] = set()
    rows: list[Any] = survey.db.execute(query, (until.isoformat(),)).fetchall()
    for path, least, most in rows:
        day = log_day(path)
        if day is None or not (record.has_expired(day, least) and record.has_expired(day, most)):
            continue
        try:
            if not is_spent(path, read(path), record):
                continue
            to = _free_name(path, lambda name: name in taken or read(name) is not None)
        except (UnsafePath, ChangedSince, OSError) as error:
            problems.append(f"{path}: it is not put away ({error})")
            continue
        taken.add(to)
        moves.append(Move(path, to))
    return moves


def is_spent(path: str, data: bytes | None, record: DecayRecord) -> bool:
    """Whether a log has nothing but blank lines and headings left."""
    text = decode_text(data or b"")
    if not text:
        return False
    left = record.leave_out(path, text)
    return left is not text and all(line.kind in ("blank", "heading") for line in iter_lines(left.replace("\r", "")))


def _free_name(path: str, is_taken: Callable[[str], bool]) -> str:
    stem = f"{ARCHIVE}/{path.removeprefix('memory/')}".removesuffix(".md")
    name, number = f"{stem}.md", 1
    while is_taken(name):
        number += 1
        name = f"{stem}-{number}.md"
    return name


def write_moves(
    transaction: MemoryTransaction,
    moves: Sequence[Move],
    record: DecayRecord,
    *,
    at: str,
    actor: str,
    problems: list[str],
) -> list[Move]:
    """Move logs to the archive, byte for byte, one ledger entry each. A log that changed meanwhile stays."""
    done: list[Move] = []
    for move in moves:
        staging = Staging(transaction.vault)
        note = f"{move.path} to {move.to}: everything in it has expired"
        try:
            stored = transaction.vault.read(move.path)
            staging.move(move.path, move.to, 0)
            if stored is None or not is_spent(move.path, staging.found(move.path), record):
                continue
            transaction.act(staging, LedgerEntry(at=at, verb="archived", actor=actor, note=note))
        except (UnsafePath, ChangedSince, EditedSince) as error:
            problems.append(f"{move.path}: it is not put away ({error})")
            continue
        transaction.vault.set_time(move.to, stored.stamp.mtime_ns)
        done.append(move)
    return done


# --- Cards -----------------------------------------------------------------------------------------------------------


def find_stale(
    cards: Iterable[CardFacts],
    checks: Mapping[str, LastVerification],
    today: date,
    card_days: int,
    hurdle: Callable[[str], str],
    flawed: Container[str] = (),
) -> list[Stale]:
    """The cards without a sign of life for so long, the oldest first.

    `hurdle` says why memory of a repository cannot be verified on this machine; nothing if it can.
    `flawed` are cards without frontmatter that can be read.
    """
    oldest = (today - timedelta(days=card_days)).isoformat()
    ahead = last_believed(today)
    found: list[Stale] = []
    for card in cards:
        check = checks.get(card.path)
        life = last_sign(card, check, ahead)
        if life >= oldest:
            continue
        checked = check.day.isoformat() if check is not None else ""
        age = (today - date.fromisoformat(life)).days if life else None
        if check is not None and oldest <= checked <= ahead:
            found.append(Stale(card.path, age, True, _nothing_confirmed(check), card.path not in flawed))
        elif check is None and (why := hurdle(card.repository)):
            found.append(Stale(card.path, age, True, why, card.path not in flawed))
        else:
            why = f"last verified {(today - check.day).days} days ago" if check is not None else "never verified"
            found.append(Stale(card.path, age, False, why))
    found.sort(key=lambda item: (item.age_days is not None, -(item.age_days or 0), item.path))
    return found


def last_sign(card: CardFacts, check: LastVerification | None, ahead: str) -> str:
    """The day on which a card was last written, confirmed by a person, or confirmed by code; empty if unknown."""
    life = max((day for day in (card.created, card.updated, card.confirmed) if day <= ahead), default="")
    if check is not None and check.counts.get("confirmed") and (checked := check.day.isoformat()) <= ahead:
        return max(life, checked)
    return life


def last_believed(today: date) -> str:
    """The last day that counts as a sign of life: later dates are ignored."""
    return (today + timedelta(days=1)).isoformat()


def _nothing_confirmed(check: LastVerification) -> str:
    said = ", ".join(f"{count} {word}" for word, count in check.counts.items() if count)
    return f"verified {check.day}: {said}" if said else f"verified {check.day}: it names nothing that can be checked"


def checks_of(counts: Iterable[tuple[str, float, Mapping[str, int]]]) -> dict[str, LastVerification]:
    """The results of the last verifications, by path."""
    found: dict[str, LastVerification] = {}
    for path, at, words in counts:
        try:
            found[path] = LastVerification(datetime.fromtimestamp(at, UTC).astimezone().date(), words)
        except (ValueError, OverflowError, OSError):
            continue
    return found
