"""Export: a workspace as an edition. Reads everything once, in the order in which the archive will have it.

Every Markdown memory gives the records that the format's own adapter would make, and beside them truekeep's own; facts
and, if asked for, sessions give theirs. A file that is not text travels in raw/ and has no records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.integrations.alf.card_records import finer_records
from truekeep.integrations.alf.fact_records import iter_fact_records
from truekeep.integrations.alf.files import LONGEST_TEXT, Item, WorkspaceTree, sane_mode, sane_time
from truekeep.integrations.alf.id_carryover import EarlierRecord, carry
from truekeep.integrations.alf.identity import agent_name, identity_of, principals_of
from truekeep.integrations.alf.record_times import shown_moment
from truekeep.integrations.alf.records import RUNTIME, Record, upstream_records
from truekeep.integrations.alf.writer import VERSION, Document, Edition, FileEntry, Spool, Tell, place_in_file
from truekeep.memory.facts_db import UnreadableFacts

if TYPE_CHECKING:
    from truekeep.integrations.alf.card_records import LastCheck
    from truekeep.integrations.alf.embeddings import Vectors

FACTS = "memory/facts.db"
PEOPLE = ("SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md")


class Agent(NamedTuple):
    """Whose memory this is."""

    id: str
    folder: str  # the name of the workspace's folder
    runtime_version: str = ""


class Manner(NamedTuple):
    """How it is told."""

    scheme: str = "content"
    plain: bool = False  # only what the format's own tool would write
    credentials: Sequence[Document] = ()
    vectors: Vectors | None = None
    seen: Callable[[str], LastCheck | None] = lambda _: None
    sessions: Callable[[], Iterable[Record]] | None = None


def lines_of(items: Sequence[Item]) -> list[FileEntry]:
    return [
        FileEntry(item.path, item.entry, item.size, sane_time(item.mtime_ns), sane_mode(item.mode)) for item in items
    ]


def edition_of(
    tree: WorkspaceTree,
    items: Sequence[Item],
    agent: Agent,
    manner: Manner,
    *,
    spool: Spool,
    base: Mapping[str, Sequence[EarlierRecord]] | None = None,
    tell: Tell = lambda *_: None,
) -> tuple[Edition, list[str]]:
    """The workspace as it is, and notes on what could not be told. `base`: earlier records, whose ids are carried."""
    by_path = {item.path: item for item in items}
    notes: list[str] = []
    lines = lines_of(items)
    told = sorted((line for line in lines if has_records(line.path)), key=lambda line: (line.moment, line.path))
    for number, line in enumerate(told):
        if number % 50 == 0:
            tell("memories", number, len(told))
        for record in records_of(tree, by_path[line.path], agent, manner, base=base, notes=notes):
            spool.add(record, path=line.path)
    tell("memories", len(told), len(told))
    if manner.sessions is not None:
        for record in manner.sessions():
            spool.add(record)

    def read(name: str) -> str | None:
        item = by_path.get(name)
        return _text(tree.read(item)) if item is not None and item.size <= LONGEST_TEXT else None

    newest = max((line.mtime_ns for line in lines), default=0)
    documents = people_of(read, agent, manner, by_path)
    name = agent_name(read, agent.folder, manner.scheme)
    head = head_of(agent, name, created_at=shown_moment(newest), has_raw=True)
    edition = Edition(head, documents, spool, lines, lambda line: tree.pieces(by_path[line.path]), {}, (), manner.plain)
    return edition, notes


def head_of(agent: Agent, name: str, *, created_at: str, has_raw: bool) -> Document:
    about: Document = {"id": agent.id, "name": name, "source_runtime": RUNTIME}
    if agent.runtime_version:
        about["source_runtime_version"] = agent.runtime_version
    head: Document = {"alf_version": VERSION, "created_at": created_at, "agent": about}
    return {**head, "raw_sources": [RUNTIME]} if has_raw else head


def people_of(
    read: Callable[[str], str | None], agent: Agent, manner: Manner, items: Mapping[str, Item]
) -> dict[str, Document]:
    """The documents beside memory: who the agent is, whom it works for, what it needs to log in."""

    def newest(names: Iterable[str]) -> str:
        return shown_moment(max((sane_time(items[name].mtime_ns) for name in names if name in items), default=0))

    scheme, plain = manner.scheme, manner.plain
    found: dict[str, Document | None] = {
        "identity": identity_of(
            read, agent.folder, agent=agent.id, scheme=scheme, updated_at=newest(PEOPLE[:3]), plain=plain
        ),
        "principals": principals_of(read, agent=agent.id, scheme=scheme, updated_at=newest(PEOPLE[3:]), plain=plain),
        "credentials": {"credentials": list(manner.credentials)} if manner.credentials else None,
    }
    return {layer: document for layer, document in found.items() if document is not None}


def has_records(path: str) -> bool:
    return path == "MEMORY.md" or path == FACTS or (path.startswith("memory/") and path.endswith(".md"))


def records_of(
    tree: WorkspaceTree,
    item: Item,
    agent: Agent,
    manner: Manner,
    *,
    base: Mapping[str, Sequence[EarlierRecord]] | None,
    notes: list[str],
) -> list[Record]:
    """The records of one file, in their order."""
    mtime_ns = sane_time(item.mtime_ns)
    if item.path == FACTS:
        return [] if manner.plain else _facts(tree, item, agent, mtime_ns, notes)
    if item.size > LONGEST_TEXT:
        notes.append(f"{item.path} has {item.size:,} bytes: it travels whole, without records")
        return []
    text = _text(tree.read(item))
    if text is None:
        notes.append(f"{item.path} is not UTF-8 text: it travels whole, without records")
        return []
    records = upstream_records(item.path, text, mtime_ns=mtime_ns, agent=agent.id, scheme=manner.scheme)
    if base is not None and manner.scheme == "content":
        carry(records, base.get(item.path, ()), agent=agent.id, scope=item.path)
    if not manner.plain:
        more = finer_records(item.path, text, mtime_ns=mtime_ns, agent=agent.id, upstream=records, seen=manner.seen)
        records = [*records, *more]
        if manner.vectors is not None:
            _embed(records, manner.vectors, item.path, text)
    return sorted(records, key=place_in_file)


def _facts(tree: WorkspaceTree, item: Item, agent: Agent, mtime_ns: int, notes: list[str]) -> list[Record]:
    records: list[Record] = []
    try:
        records += iter_fact_records(os.path.join(tree.root, item.path), agent=agent.id, mtime_ns=mtime_ns)
    except UnreadableFacts as error:
        notes.append(f"{item.path}: {error.what}")
    return sorted(records, key=place_in_file)


def _embed(records: Sequence[Record], vectors: Vectors, path: str, text: str) -> None:
    upstream = [record for record in records if record["source"]["runtime"] == RUNTIME]
    for record in upstream or records:  # one chunk need not be told twice
        place: Any = record.get("raw_source_format")
        if isinstance(place, dict) and "line_start" in place:
            found = vectors.find(path, text, place["line_start"], place["line_end"])
            if found:
                _insert(record, "embeddings", found, before=("related_records", "raw_source_format"))


def _insert(record: Record, key: str, value: object, *, before: tuple[str, ...]) -> None:
    """Put a field where the format has it."""
    after = {name: record.pop(name) for name in before if name in record}
    record[key] = value
    record.update(after)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
