"""What truekeep tells beyond upstream's exporter: a record for each card, each rule of the gating policies, and the
sections of notes that upstream leaves without any.

Pure: a file's text in, records out; no other file is looked at. Another card's record is found by its name alone, since
ids are made of names. Beside upstream's records these are additional ones, linked to what they were made from; an id
stays the same when other parts of the file are edited.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from truekeep.core.model import CARDS, REVIEW
from truekeep.integrations.alf.own_records import own_record, tags_of
from truekeep.integrations.alf.record_ids import WHITESPACE, own_id
from truekeep.integrations.alf.record_times import shown_day, shown_moment
from truekeep.integrations.alf.records import Record, find_marks
from truekeep.integrations.alf.sections import split
from truekeep.memory.card import Card, check_card_name, parse_card, parse_day
from truekeep.text.tables import TableRow, iter_prose, iter_rows

if TYPE_CHECKING:
    from truekeep.verify.results import CheckedMemory

POLICIES = "memory/gating-policies.md"
MAX_ROWS = 5_000  # of one file that are told one by one; what has more is no set of rules

_HOLDING = ("confirmed", "changed")  # what is said is there, though it may look different
_UNCHECKED = "unverifiable"

_TYPES = {
    "setup": "semantic", "workflow": "procedural", "bugfix": "semantic", "decision": "semantic",
    "security": "semantic", "preference": "preference", "research": "semantic", "project-context": "semantic",
    # What people write besides.
    "preferences": "preference", "procedure": "procedural", "how-to": "procedural", "howto": "procedural",
    "runbook": "procedural", "rule": "procedural", "policy": "procedural", "convention": "procedural",
    "incident": "episodic", "event": "episodic", "session": "episodic", "summary": "summary",
}  # fmt: skip
"""The memory type of a card by its category: each of the handoff types, and some others; anything else is semantic."""

_STATES = {"superseded": "superseded", "replaced": "superseded", "archived": "archived"}
_ARCHIVES = ("archive", "archived")

_CODE_SPAN = re.compile(r"`[^`]{1,500}`")
_LINK = re.compile(r"(?<!\\)\]\([ ]?<?([^()<>\s]{1,400})|\[\[([^\[\]|#\n]{1,250})(?:#[^\[\]|\n]{0,250})?(?=\]\]|\|)")

_NUMBER_COLUMNS = ("#", "id", "no", "no.", "nr", "nr.", "number", "№")
_TRIGGER_COLUMNS = ("trigger", "when", "condition", "if", "situation", "event", "rule", "policy")
_DAY_COLUMNS = ("date", "day", "added", "created", "since")


_quote = json.JSONEncoder(ensure_ascii=False).encode


class ClaimResult(NamedTuple):
    """One claim of a card, and what the last check said to it."""

    kind: str
    text: str
    line: int
    verdict: str
    why: str = ""


class LastCheck(NamedTuple):
    """What the last check of a memory found."""

    claims: tuple[ClaimResult, ...]
    checked_at: float | None = None  # seconds


class _NoteKind(NamedTuple):
    """What the sections of a note are, by where it lies."""

    memory_type: str
    namespace: str
    category: str = ""


_SHELVES = {
    "daily": _NoteKind("episodic", "daily"),
    "projects": _NoteKind("semantic", "project"),
    "decisions": _NoteKind("semantic", "workspace", "decision"),
    "ops": _NoteKind("procedural", "procedural"),
    "procedures": _NoteKind("procedural", "procedural"),
    "checkpoints": _NoteKind("episodic", "checkpoints"),
    "cards": _NoteKind("semantic", "cards"),
}


def last_check_of(checked: CheckedMemory) -> LastCheck:
    """What a check found, as far as an archive tells it."""
    claims = (
        ClaimResult(item.claim.kind, item.claim.shown, item.claim.line, item.verdict, item.why)
        for item in checked.verdicts
    )
    return LastCheck(tuple(claims), checked.checked_at)


def card_id(agent: str, name: str) -> str:
    """The id of a card's record, by the name of its file."""
    return own_id(agent, "card", name)


def finer_records(
    path: str,
    text: str,
    *,
    mtime_ns: int,
    agent: str,
    upstream: Sequence[Record],
    seen: Callable[[str], LastCheck | None],
) -> list[Record]:
    """The additional records of a file. `upstream`: its records as upstream makes them; `seen`: what was verified."""
    if not is_told(path) or not text.strip(WHITESPACE):
        return []
    folder, _, name = path.rpartition("/")
    if folder == CARDS:
        return [_card_record(path, parse_card(name, _plain(text)), text, mtime_ns, agent, upstream, seen(path))]
    if path == POLICIES:
        return list(_rule_records(path, text, mtime_ns, agent, upstream))
    return [] if upstream else list(_section_records(path, text, mtime_ns, agent))


def is_told(path: str) -> bool:
    """Whether a file is one that truekeep has something to say about: a memory, and neither hidden nor a draft."""
    parts = path.split("/")
    is_memory = parts[0] == "memory" and len(parts) > 1 and path.endswith(".md")
    if not is_memory or path.startswith(f"{REVIEW}/") or "processed" in parts[:-1]:
        return False
    return not any(part.startswith(".") or not part for part in parts) and _is_text(path)


def _is_text(path: str) -> bool:
    """Whether a name can be written down; one that is not UTF-8 cannot."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- Cards ----------------------------------------------------------------------------------------------------------


def _card_record(
    path: str, card: Card, text: str, mtime_ns: int, agent: str, upstream: Sequence[Record], check: LastCheck | None
) -> Record:
    front = card.front
    created, updated = card.created, card.updated
    is_over = _is_superseded(card)
    replaced = [name for name in _names(front.items("supersedes")) if name != card.name]
    temporal = {
        "created_at": shown_day(created) if created else shown_moment(mtime_ns),
        "updated_at": shown_day(max(updated, created or updated)) if updated else shown_moment(mtime_ns),
        "observed_at": shown_day(created) if created else None,
        "valid_from": shown_day(created) if created else None,
        "valid_until": _ended_at(card, mtime_ns) if is_over else None,
    }
    entities = [{"name": card.repository, "type": "project"}] if card.repository else []
    entities += [{"name": name, "type": "tool"} for name in dict.fromkeys(front.items("tools"))]
    told: dict[str, Any] = _place(None, 1, text.count("\n") + (not text.endswith("\n")))
    if check is not None and check.claims:
        told["truekeep"] = _told_check(check)
    return own_record(
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
        status="superseded" if is_over else _STATES.get(front.text("status").casefold(), "active"),
        category=card.category,
        supersedes=card_id(agent, replaced[0]) if replaced else None,
        confidence=_confidence(check),
        entities=entities,
        tags=tags_of("cards", *card.tags),
        related_records=_card_relations(card, replaced, agent, upstream),
        raw_source_format=told,
    )


def _is_superseded(card: Card) -> bool:
    """Whether a card says itself that another one has taken its place."""
    said = _ending(card)
    return (
        bool(_replacements(card))
        or _STATES.get(card.front.text("status").casefold()) == "superseded"
        or said.casefold() in ("true", "yes")
        or parse_day(said) is not None
    )


def _replacements(card: Card) -> list[str]:
    said = (*card.front.items("superseded_by"), *card.front.items("superseded-by"))
    return [name for name in _names(said) if name != card.name]


def _ending(card: Card) -> str:
    return card.front.text("superseded_at") or card.front.text("superseded")


def _ended_at(card: Card, mtime_ns: int) -> str:
    """Until when it held: the day that it names, else that of its last change."""
    days = (parse_day(said) for said in (_ending(card), card.front.text("valid_until"), card.front.text("updated")))
    day = next((day for day in days if day is not None), None)
    ended = shown_day(day) if day else shown_moment(mtime_ns)
    return max(ended, shown_day(card.created)) if card.created else ended


def _confidence(check: LastCheck | None) -> float | None:
    """The share of the claims that could be checked which hold."""
    checked = [claim for claim in check.claims if claim.verdict != _UNCHECKED] if check is not None else []
    return round(sum(claim.verdict in _HOLDING for claim in checked) / len(checked), 4) if checked else None


def _told_check(check: LastCheck) -> dict[str, Any]:
    claims = []
    for claim in check.claims:
        told = {"kind": claim.kind, "text": claim.text, "line": claim.line, "verdict": claim.verdict}
        claims.append(told | ({"why": claim.why} if claim.why else {}))
    when = {"checked_at": shown_moment(int(check.checked_at) * 1_000_000_000)} if check.checked_at else {}
    return {"claims": claims, **when}


def _card_relations(
    card: Card, replaced: Iterable[str], agent: str, upstream: Sequence[Record]
) -> list[dict[str, str]]:
    """What the card's record comes from, and the other cards that it names: each once, by the strongest word."""
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
    """The cards that a card's text links to: Markdown links and [[names]], not those in code."""
    targets: dict[tuple[str, str], None] = {}
    for _, line in iter_prose(body) if "[[" in body or "](" in body else ():
        if "[[" not in line and "](" not in line:
            continue
        targets.update(dict.fromkeys(_LINK.findall(_CODE_SPAN.sub("", line) if "`" in line else line)))
    names = (_name_of(wiki, is_bare=True) if wiki else _name_of(unquote(link)) for link, wiki in targets)
    return list(dict.fromkeys(name for name in names if name is not None))


def _names(said: Iterable[str]) -> list[str]:
    """Names of cards as frontmatter has them: with or without folder, ending and brackets."""
    names = (_name_of(item.strip("[]\"' "), is_bare=True) for item in said)
    return list(dict.fromkeys(name for name in names if name is not None))


def _name_of(target: str, *, is_bare: bool = False) -> str | None:
    """The card that a link leads to from another card; None where it leads elsewhere. A bare name needs no ending."""
    target = target.strip().partition("#")[0].removeprefix("./").removeprefix("/")
    folder = next((folder for folder in (f"{CARDS}/", "../cards/", "cards/") if target.startswith(folder)), "")
    name = target.removeprefix(folder)
    name = f"{name}.md" if is_bare and not name.endswith(".md") else name
    return name if check_card_name(name) is None else None


# --- Rules ----------------------------------------------------------------------------------------------------------


def _rule_records(path: str, text: str, mtime_ns: int, agent: str, upstream: Sequence[Record]) -> Iterator[Record]:
    """A record for each row of the tables; a file without any has none."""
    said: Counter[str] = Counter()
    sources = _by_line(upstream)
    for row in islice(iter_rows(text), MAX_ROWS):
        content = _rule_text(row)
        if not content:
            continue
        number = _cell(row, _NUMBER_COLUMNS)
        key = _quote([row.heading, number or None, "" if number else _trigger(row)])
        day = parse_day(_cell(row, _DAY_COLUMNS))
        source = _covering(sources, row.line)
        yield own_record(
            id=own_id(agent, "rule", _nth(path, key, said)),
            agent=agent,
            content=content,
            memory_type="procedural",
            namespace="procedural",
            source={"origin": "workspace", "origin_file": path, "extraction_method": "user_authored"},
            temporal=_times(day, mtime_ns),
            tags=["procedural"],
            related_records=[{"id": source, "relation": "derived_from"}] if source else None,
            raw_source_format={
                **_place(row.heading or None, row.line, row.line),
                **({"truekeep": {"rule": number}} if number else {}),
            },
        )


def _rule_text(row: TableRow) -> str:
    """What a rule says, a line for each cell. A bare number says nothing."""
    return "\n".join(
        f"{column}: {cell}" if column else cell
        for column, cell in row.pairs()
        if not (column.casefold() in _NUMBER_COLUMNS and cell.isdecimal())
    )


def _trigger(row: TableRow) -> str:
    """What tells a rule without a number from others: its trigger, else the first thing that it says."""
    cell = _cell(row, _TRIGGER_COLUMNS) or next((cell for _, cell in row.pairs()), "")
    return " ".join(cell.split())


def _cell(row: TableRow, columns: Sequence[str]) -> str:
    return next((cell for column, cell in row.pairs() if column.casefold() in columns), "")


def _by_line(upstream: Sequence[Record]) -> list[tuple[int, int, str]]:
    """First line, last line and id of the records that say where they stand."""
    places = []
    for record in upstream:
        place = record.get("raw_source_format")
        if isinstance(place, dict):
            first, last = place.get("line_start"), place.get("line_end")
            if isinstance(first, int) and isinstance(last, int):
                places.append((first, last, str(record["id"])))
    return sorted(places)


def _covering(places: Sequence[tuple[int, int, str]], line: int) -> str | None:
    at = bisect_right(places, line, key=lambda place: place[0]) - 1
    return places[at][2] if at >= 0 and places[at][1] >= line else None


# --- Notes ----------------------------------------------------------------------------------------------------------


def _section_records(path: str, text: str, mtime_ns: int, agent: str) -> Iterator[Record]:
    """A record for each section of a note that upstream has no record of."""
    shelf, is_archived = _shelf_of(path)
    name = path.rpartition("/")[2]
    named = parse_day(name)
    project = name.removesuffix(".md") if shelf.namespace == "project" else ""
    said: Counter[str] = Counter()
    for section in split(text, is_split=True, scheme="content"):
        marks = find_marks(section.content, shelf.namespace)
        day = parse_day(section.heading or "")
        yield own_record(
            id=own_id(agent, "section", _nth(path, _quote(section.heading), said)),
            agent=agent,
            content=section.content,
            memory_type=shelf.memory_type,
            namespace=shelf.namespace,
            source={"origin": "workspace", "origin_file": path, "extraction_method": "agent_written"},
            temporal=_times(named or day, mtime_ns),
            status="archived" if is_archived else "active",
            category=marks.category or shelf.category,
            confidence=marks.confidence,
            entities=[{"name": project, "type": "project"}] if project else None,
            tags=marks.tags,
            raw_source_format=_place(section.heading, section.line_start, section.line_end),
        )


def _shelf_of(path: str) -> tuple[_NoteKind, bool]:
    """What a note is by its folder, or by a day for a name; and whether it was put away."""
    *folders, name = path.split("/")[1:]
    kept = [folder for folder in folders if folder not in _ARCHIVES]
    shelf = _SHELVES.get(kept[0] if kept else "")
    if shelf is None:
        is_day = len(name) == len("2026-01-31.md") and parse_day(name) is not None
        shelf = _SHELVES["daily"] if is_day else _NoteKind("semantic", "workspace")
    return shelf, len(kept) < len(folders)


# --- What they have in common ---------------------------------------------------------------------------------------


def _nth(path: str, key: str, said: Counter[str]) -> str:
    """A name that is another one each time the same key comes up in a file."""
    said[key] += 1
    return f"{path}:{key}:{said[key] - 1}"


def _times(day: date | None, mtime_ns: int) -> dict[str, str | None]:
    changed = shown_moment(mtime_ns)
    if day is None:
        return {"created_at": changed, "updated_at": changed}
    return {"created_at": shown_day(day), "updated_at": changed, "observed_at": shown_day(day)}


def _place(heading: str | None, first: int, last: int) -> dict[str, Any]:
    return {"heading": heading, "line_end": last, "line_start": first}


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
