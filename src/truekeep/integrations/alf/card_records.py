"""Records that upstream's exporter does not make: one for each card, and one for each rule of the gating policies.

Pure: a file's text in, records out. Ids are made of names, so that a card can refer to another card's record without
reading it, and so that an id stays the same when other parts of the file are edited.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from truekeep.core.model import CARDS
from truekeep.integrations.alf.documents import EntityReference, MemoryRecord, RelatedRecord
from truekeep.integrations.alf.record_ids import WHITESPACE, truekeep_id
from truekeep.integrations.alf.records import place_in_file, truekeep_record, unique_tags
from truekeep.integrations.alf.timestamps import format_midnight, format_timestamp
from truekeep.memory.card import Card, check_card_name, parse_card, parse_day
from truekeep.text.tables import TableRow, iter_prose, iter_rows

if TYPE_CHECKING:
    from truekeep.verify.results import CheckedMemory

POLICIES = "memory/gating-policies.md"
MAX_RULES_PER_FILE = 5_000

_VERDICTS_THAT_HOLD = ("confirmed", "changed")
_UNCHECKED = "unverifiable"

_TYPES = {
    "setup": "semantic", "workflow": "procedural", "bugfix": "semantic", "decision": "semantic",
    "security": "semantic", "preference": "preference", "research": "semantic", "project-context": "semantic",
    # Other words that people use.
    "preferences": "preference", "procedure": "procedural", "how-to": "procedural", "howto": "procedural",
    "runbook": "procedural", "rule": "procedural", "policy": "procedural", "convention": "procedural",
    "incident": "episodic", "event": "episodic", "session": "episodic", "summary": "summary",
}  # fmt: skip
"""The memory type of a card by its category. Other categories are semantic."""

_STATES = {"superseded": "superseded", "replaced": "superseded", "archived": "archived"}

_CODE_SPAN = re.compile(r"`[^`]{1,500}`")
_LINK = re.compile(r"(?<!\\)\]\([ ]?<?([^()<>\s]{1,400})|\[\[([^\[\]|#\n]{1,250})(?:#[^\[\]|\n]{0,250})?(?=\]\]|\|)")

_NUMBER_COLUMNS = ("#", "id", "no", "no.", "nr", "nr.", "number", "№")
_TRIGGER_COLUMNS = ("trigger", "when", "condition", "if", "situation", "event", "rule", "policy")
_DAY_COLUMNS = ("date", "day", "added", "created", "since")


_quote = json.JSONEncoder(ensure_ascii=False).encode


def card_id(agent: str, name: str) -> str:
    """The id of a card's record, by the name of its file."""
    return truekeep_id(agent, "card", name)


def with_truekeep_records(
    path: str,
    text: str,
    upstream: list[MemoryRecord],
    mtime_ns: int,
    *,
    agent: str,
    find_last_check: Callable[[str], CheckedMemory | None] = lambda _: None,
) -> list[MemoryRecord]:
    """All records of a file, for an export that is not plain. `upstream`: those for the runtime openclaw.

    A section of the gating policies with a table becomes a record for each row.
    """
    if not text.strip(WHITESPACE):
        return upstream
    folder, _, name = path.rpartition("/")
    if folder == CARDS and not name.startswith("."):
        card = parse_card(name, _plain(text))
        return [*upstream, _card_record(path, card, text, mtime_ns, agent, upstream, find_last_check(path))]
    if path == POLICIES:
        rules = list(_rule_records(path, text, mtime_ns, agent))
        lines = sorted(rule["raw_source_format"]["line_start"] for rule in rules)
        return [*(record for record in upstream if not _has_line(record, lines)), *rules]
    return upstream


def _has_line(record: MemoryRecord, lines: Sequence[int]) -> bool:
    place = record["raw_source_format"]
    at = bisect_left(lines, place["line_start"])
    return at < len(lines) and lines[at] <= place["line_end"]


# --- Cards ----------------------------------------------------------------------------------------------------------


def _card_record(
    path: str,
    card: Card,
    text: str,
    mtime_ns: int,
    agent: str,
    upstream: Sequence[MemoryRecord],
    check: CheckedMemory | None,
) -> MemoryRecord:
    front = card.front
    created, updated = card.created, card.updated
    is_superseded = _is_superseded(card)
    replaced = [name for name in _names(front.items("supersedes")) if name != card.name]
    temporal = {
        "created_at": format_midnight(created) if created else format_timestamp(mtime_ns),
        "updated_at": format_midnight(max(updated, created or updated)) if updated else format_timestamp(mtime_ns),
        "observed_at": format_midnight(created) if created else None,
        "valid_from": format_midnight(created) if created else None,
        "valid_until": _valid_until(card, mtime_ns) if is_superseded else None,
    }
    entities: list[EntityReference] = [{"name": card.repository, "type": "project"}] if card.repository else []
    entities += [{"name": name, "type": "tool"} for name in dict.fromkeys(front.items("tools"))]
    raw_source = place_in_file(None, 1, text.count("\n") + (not text.endswith("\n")))
    if check is not None and check.verdicts:
        raw_source["truekeep"] = _check_summary(check)
    return truekeep_record(
        id=card_id(agent, card.name),
        agent=agent,
        content=text,
        memory_type=_TYPES.get(card.category.casefold(), "semantic"),
        namespace="cards",
        source={
            "origin": "workspace",
            "origin_file": path,
            "extraction_method": "agent_written" if card.writer else "user_authored",
            "session_id": front.text("session_id") or front.text("session"),
        },
        temporal=temporal,
        status="superseded" if is_superseded else _STATES.get(front.text("status").casefold(), "active"),
        category=card.category,
        supersedes=card_id(agent, replaced[0]) if replaced else None,
        confidence=_confidence(check),
        entities=entities,
        tags=unique_tags("cards", *card.tags),
        related_records=_card_relations(card, replaced, agent, upstream),
        raw_source_format=raw_source,
    )


def _is_superseded(card: Card) -> bool:
    """True if the card's own frontmatter says that it was replaced."""
    ending = _superseded_field(card)
    return (
        bool(_replacements(card))
        or _STATES.get(card.front.text("status").casefold()) == "superseded"
        or ending.casefold() in ("true", "yes")
        or parse_day(ending) is not None
    )


def _replacements(card: Card) -> list[str]:
    names = _names((*card.front.items("superseded_by"), *card.front.items("superseded-by")))
    return [name for name in names if name != card.name]


def _superseded_field(card: Card) -> str:
    return card.front.text("superseded_at") or card.front.text("superseded")


def _valid_until(card: Card, mtime_ns: int) -> str:
    """The end that the card states, else the day of its last change."""
    fields = (_superseded_field(card), card.front.text("valid_until"), card.front.text("updated"))
    days = map(parse_day, fields)
    day = next((day for day in days if day is not None), None)
    ended = format_midnight(day) if day else format_timestamp(mtime_ns)
    return max(ended, format_midnight(card.created)) if card.created else ended


def _confidence(check: CheckedMemory | None) -> float | None:
    """The share of checkable claims that hold."""
    verdicts = [item.verdict for item in check.verdicts if item.verdict != _UNCHECKED] if check is not None else []
    return round(sum(item in _VERDICTS_THAT_HOLD for item in verdicts) / len(verdicts), 4) if verdicts else None


def _check_summary(check: CheckedMemory) -> dict[str, Any]:
    claims = []
    for item in check.verdicts:
        claim = item.claim
        summary = {"kind": claim.kind, "text": claim.shown, "line": claim.line, "verdict": item.verdict}
        claims.append(summary | ({"why": item.why} if item.why else {}))
    return {"claims": claims, "checked_at": format_timestamp(int(check.checked_at) * 1_000_000_000)}


def _card_relations(
    card: Card, replaced: Iterable[str], agent: str, upstream: Sequence[MemoryRecord]
) -> list[RelatedRecord]:
    """Links to the records that the card was made of and to other cards, each once with the strongest relation."""
    relations: dict[str, str] = {record["id"]: "derived_from" for record in upstream}
    for names, relation in (
        (replaced, "supersedes"),
        (_replacements(card), "superseded_by"),
        (_names((*card.front.items("related"), *card.front.items("see_also"))), "related_to"),
        (_linked(card.body), "related_to"),
    ):
        for name in names:
            if name != card.name:
                relations.setdefault(card_id(agent, name), relation)
    return [{"id": id_, "relation": relation} for id_, relation in relations.items()]


def _linked(body: str) -> list[str]:
    """The cards that the text links to, by Markdown links or [[names]]; links in code do not count."""
    targets: dict[tuple[str, str], None] = {}
    for _, line in iter_prose(body) if "[[" in body or "](" in body else ():
        if "[[" not in line and "](" not in line:
            continue
        targets.update(dict.fromkeys(_LINK.findall(_CODE_SPAN.sub("", line) if "`" in line else line)))
    names = (_name_of(wiki, is_bare=True) if wiki else _name_of(unquote(link)) for link, wiki in targets)
    return list(dict.fromkeys(name for name in names if name is not None))


def _names(values: Iterable[str]) -> list[str]:
    """Card file names from frontmatter values, which may have a folder, brackets or no suffix."""
    names = (_name_of(item.strip("[]\"' "), is_bare=True) for item in values)
    return list(dict.fromkeys(name for name in names if name is not None))


def _name_of(target: str, *, is_bare: bool = False) -> str | None:
    """The card that a link points to, or None. `is_bare`: the name may lack its .md suffix."""
    target = target.strip().partition("#")[0].removeprefix("./").removeprefix("/")
    folder = next((folder for folder in (f"{CARDS}/", "../cards/", "cards/") if target.startswith(folder)), "")
    name = target.removeprefix(folder)
    name = f"{name}.md" if is_bare and not name.endswith(".md") else name
    return name if check_card_name(name) is None else None


# --- Rules ----------------------------------------------------------------------------------------------------------


def _rule_records(path: str, text: str, mtime_ns: int, agent: str) -> Iterator[MemoryRecord]:
    """A record for each table row of the gating policies."""
    occurrences: Counter[str] = Counter()
    for row in islice(iter_rows(text), MAX_RULES_PER_FILE):
        content = _rule_text(row)
        if not content:
            continue
        number = _cell(row, _NUMBER_COLUMNS)
        key = _quote([row.heading, number or None, "" if number else _trigger(row)])
        day = parse_day(_cell(row, _DAY_COLUMNS))
        yield truekeep_record(
            id=truekeep_id(agent, "rule", _unique_name(path, key, occurrences)),
            agent=agent,
            content=content,
            memory_type="procedural",
            namespace="procedural",
            source={"origin": "workspace", "origin_file": path, "extraction_method": "user_authored"},
            temporal=_times(day, mtime_ns),
            tags=["procedural"],
            raw_source_format={
                **place_in_file(row.heading or None, row.line, row.line),
                **({"truekeep": {"rule": number}} if number else {}),
            },
        )


def _rule_text(row: TableRow) -> str:
    """The text of a rule, one line for each cell; bare numbers are left out."""
    return "\n".join(
        f"{column}: {cell}" if column else cell
        for column, cell in row.pairs()
        if not (column.casefold() in _NUMBER_COLUMNS and cell.isdecimal())
    )


def _trigger(row: TableRow) -> str:
    """What identifies a rule without a number: its trigger, else its first cell."""
    cell = _cell(row, _TRIGGER_COLUMNS) or next((cell for _, cell in row.pairs()), "")
    return " ".join(cell.split())


def _cell(row: TableRow, columns: Sequence[str]) -> str:
    return next((cell for column, cell in row.pairs() if column.casefold() in columns), "")


# --- Helpers --------------------------------------------------------------------------------------------------------


def _unique_name(path: str, key: str, occurrences: Counter[str]) -> str:
    """A name for an id: equal keys in one file are numbered."""
    occurrences[key] += 1
    return f"{path}:{key}:{occurrences[key] - 1}"


def _times(day: date | None, mtime_ns: int) -> dict[str, str]:
    changed = format_timestamp(mtime_ns)
    if day is None:
        return {"created_at": changed, "updated_at": changed}
    return {"created_at": format_midnight(day), "updated_at": changed, "observed_at": format_midnight(day)}


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
