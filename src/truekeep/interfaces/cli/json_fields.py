"""Values as JSON, as docs/json.md describes them.

A named tuple or dataclass becomes an object of its fields, unless `FIELDS` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from datetime import UTC, date, datetime
from operator import attrgetter
from typing import Any

from truekeep.core.dates import age_in_days, as_stamp
from truekeep.text.unicode import printable

# Class: its keys, as "key", "key=attribute" or "key=attribute|filter"; "*attribute" stands for all keys of a value.
FIELDS = {
    "Finding": "code message=message|printable line",
    "Card": "name path topic=topic|masked category=category|masked tags=tags|masked created updated confirmed"
    " age_days=updated|age repository writer problem",
    "_ShownCard": "*card text entry handoff",
    "CardWriteResult": "outcome path topic entry passed hints covering difference notes",
    "SplitResult": "path=plan.path entry cards=plan.cards stays=plan.stays links notes before=file.old_size"
    " after=file.new_size difference=difference|masked",
    "SplitCard": "path topic=topic|masked summary=summary|masked category tags created updated first_line"
    " last_line=last",
    "StayingSection": "heading=title|masked first_line last_line=last why=why|masked needs_a_look=is_held",
    "JoinResult": "path=file.path entry cards=names links left=left|masked before=file.old_size after=file.new_size"
    " difference=difference|masked",
    "Draft": "id path received_at age_days=received_at|age handoff=name writer machine repository original"
    " sha256=digest kept target drops=dropped reasons=reasons|reasons",
    "Lesson": "line number day trigger wrong applies heading",
    "ListedDraft": "assignee outdated *draft",
    "_EditedDraft": "*draft changed",
    "_ShownDraft": "outdated *draft would=decision.outcome would_write=decision.target"
    " must_be_mended=decision.blocking difference original_text",
    "HistoryEntry": "entry=entry.id at=entry.at verb=entry.verb actor=entry.actor files=entry.paths note=entry.note"
    " undoes=entry.undoes undone_by=entry.undone_by handoff",
    "BlamedLine": "line=number text=text|printable by entry=written archive=arrival",
    "WrittenHandoff": "path writer repository=root outcome=decision.outcome target=decision.target scanned=is_taken"
    " hints",
    "LintedHandoff": "file ok outcome target problems hints",
    "InboxListing": "inboxes waiting not_handoffs",
    "HandoffRow": "name=origin.name sha256=digest title writer=origin.writer machine=origin.machine"
    " repository=origin.repository inbox=origin.inbox received_at outcome target findings=reasons",
    "HostLease": "id name generation taken_at=taken_at|or_null taken_from=taken_from|or_null"
    " released_at=released_at|or_null wrote_at=wrote_at|or_null",
    "Overlap": "id=former.id name=former.name taken_by=later.name taken_on=later.taken_at|day"
    " wrote_on=former.wrote_at|day is_sure",
    "Verdict": "kind=claim.kind text=claim.text shown=claim.shown line=claim.line column=claim.column verdict reason"
    " why place candidates commit commit_day=day rank uncommitted=is_dirty",
    "CheckedMemory": "path repository checkouts=roots head branch in_progress=doing history checked_at=checked_at|stamp"
    " left_out problems claims=verdicts",
    "Repair": "path edits draft=draft_id waiting=waiting_id left",
    "TextEdit": "line=verdict.claim.line old new",
    "RankedPassage": "citation text store day age_days rank trust repository claims=verdicts",
    "Hit": "path first last citation text best score parts store day age_days heading repository matched also verdicts"
    " checked_at unchecked",
    "SearchResult": "query mode provider model ranking notes corrections=corrections|typed waiting evidence hits",
    "Resolution": "topic winner why code statements",
    "Excerpt": "path first last total text store day age_days repository next verdicts checked_at unchecked",
    "Checkout": "root names worktree=is_linked problem",
    "Match": "path outcome repository why problem candidates",
    "RepositoryCandidate": "repository root named=is_named unknown evidence",
    "ProposalOutcome": "draft state target=idea.target drops=idea.dropped reasons=idea.reasons|reasons"
    " hindrance=idea.hindrance",
    "ReconcileReport": "disagreements=found open=open|count done proposed=offered problems held crowding unindexed",
    "DecayReport": "day record entries archived=moves drafts processed=processed|masked sessions cards"
    " problems=problems|masked notes=notes|printables",
    "DecayRecord": "day *tiers",
    "Stale": "path age_days next why=why|printable commands",
    "StoredSession": "session=name harness repository cwd branch machine started_at last_at kept_at turns=total shared"
    " first_words=title path=shown original=pointer",
    "CoveringCard": "*card why sure=is_sure code_says=said",
    "Run": "at=at|stamp seconds counts=counts|numbers ending why",
    "TestResult": "test=state path seconds contact",
    "_ConnectedPlace": "*plan notes applied *report next",
    "ConnectPlan": "place harnesses skipped=skipped|skipped files=changes folders=missing_folders commands=calls"
    " rewritten=rewritten|object",
    "ConnectReport": "done problems",
    "PlannedEdit": "path real=now.real what new=is_new difference",
    "HarnessCommand": "harness command=shown why",
    "Leave": "harnesses commands=calls configurations=configs files=returns folders notes",
    "Return": "path way why",
    "ImportReport": "workspace=root agent dry_run rebuilt=plan.is_rebuilt counts=plan.counts files=plan.changes written"
    " replaced canonical=is_host not_in_archive=plan.missing credentials=plan.credentials notes=plan.notes problems"
    " own_archive=is_own flags",
    "PlannedImport": "path=listed.path state why",
    "ExportReport": "path size *written notes omitted",
    "ArchiveSummary": "records files file_bytes=size referenced",
    "PurgeReport": "records_gone=records files_edited=files files_dropped=dropped records_edited=edited"
    " entries_edited=entries notes audit",
}


def mask(text: str) -> str:
    from truekeep.text.secrets.scanner import withhold  # here: most answers need no masks, and it is slow to import

    return withhold(printable(text))


FILTERS: dict[str, Callable[[Any], Any]] = {
    "printable": printable,
    "printables": lambda texts: [printable(text) for text in texts],
    "masked": lambda value: mask(value) if isinstance(value, str) else [mask(text) for text in value],
    "count": len,
    "age": age_in_days,
    "day": lambda stamp: stamp[:10],
    "or_null": lambda text: text or None,
    "stamp": lambda when: as_stamp(when if isinstance(when, datetime) else datetime.fromtimestamp(when, UTC)),
    "reasons": lambda pairs: [{"code": code, "message": sentence} for code, sentence in pairs],
    "skipped": lambda pairs: [{"harness": name, "why": why} for name, why in pairs],
    "typed": lambda pairs: [{"typed": typed, "known": known} for typed, known in pairs],
    "object": dict,
    "numbers": lambda counts: {key: int(text) if text.isdecimal() else text for key, text in counts.items()},
}


def to_json(value: Any) -> Any:
    """A value as json.dumps takes it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if keys := keys_of(type(value)):
        shown: dict[str, Any] = {}
        for key, read in keys:
            shown |= {key: to_json(read(value))} if key else to_json(read(value))
        return shown
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Set):
        return sorted(to_json(item) for item in value)
    return value.isoformat() if isinstance(value, date) else str(value)


def keys_of(kind: type) -> list[tuple[str, Callable[[Any], Any]]]:
    """The keys of a class's objects, and how each value is read; none for a class that is no object in JSON.

    An empty key stands for all keys of the value.
    """
    if spec := FIELDS.get(kind.__name__):
        return [_parse_key(word) for word in spec.split()]
    fields: Iterable[str] = getattr(kind, "_fields", getattr(kind, "__dataclass_fields__", ()))
    return [(name, attrgetter(name)) for name in fields]


def _parse_key(spec: str) -> tuple[str, Callable[[Any], Any]]:
    if spec.startswith("*"):
        return "", attrgetter(spec[1:])
    key, _, source = spec.partition("=")
    path, _, filter_ = (source or key).partition("|")
    read = attrgetter(path)
    if not filter_:
        return key, read
    change = FILTERS[filter_]
    return key, lambda value: change(read(value))
