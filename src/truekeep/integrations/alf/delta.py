"""Deltas: what changed since an archive, and an archive with such changes applied.

Only files that changed are read again, and of the old archive only the partitions that they had records in. Applied to
the old archive, a delta gives the very archive that exporting the new state, with the old one as its base, gives; only
what was found out since about files that did not change (a verdict, a vector) waits for the next export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from json.encoder import encode_basestring_ascii as _quoted
from typing import NamedTuple

from truekeep.integrations.alf.export import Agent, Manner, has_records, head_of, lines_of, people_of, records_of
from truekeep.integrations.alf.files import LONGEST_TEXT, NO_TIME, Item, WorkspaceTree
from truekeep.integrations.alf.id_carryover import by_scope, scope_of
from truekeep.integrations.alf.identity import agent_name
from truekeep.integrations.alf.reader import CHANGES, DELTA, Snapshot
from truekeep.integrations.alf.record_times import Quarter, parse_moment, quarter_of, shown_moment
from truekeep.integrations.alf.records import RUNTIME, Record, dump_record, pretty
from truekeep.integrations.alf.writer import (
    DOCUMENTS,
    FILES,
    PURGES,
    VERSION,
    Document,
    Edition,
    FileEntry,
    Other,
    Spool,
    Tell,
    place_in_file,
)
from truekeep.integrations.alf.zip_container import BadArchive, Writer

OURS = "truekeep"  # what only truekeep needs stands under this name among the changes
_FEW = 16  # files whose names are looked for in every line, before it is parsed


class DeltaContents(NamedTuple):
    """What a delta holds."""

    created: int
    updated: int
    deleted: int
    files: int
    removed: int
    documents: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        return not any(self)


def write_delta(
    writer: Writer,
    old: Snapshot,
    tree: WorkspaceTree,
    items: Sequence[Item],
    agent: Agent,
    manner: Manner,
    tell: Tell = lambda *_: None,
) -> tuple[DeltaContents, list[str]]:
    """What changed in a workspace since an archive of it was made, and notes on what could not be told."""
    old.require_full()
    if old.agent_id != agent.id:
        raise BadArchive(
            f"this archive is of agent {old.agent_id}, not of {agent.id}",
            hint="name an earlier archive of this workspace",
            of=old.reader.name,
        )
    before = old.files()
    now = {line.path: line for line in lines_of(items)}
    changed = [line for path, line in now.items() if not _is_same(before.get(path), line)]
    removed = sorted(path for path in before if path not in now)
    notes: list[str] = []
    held = _held(old, before, {*(line.path for line in changed), *removed}, with_sessions=manner.sessions is not None)
    base = by_scope(held.values())
    by_path = {item.path: item for item in items}
    fresh: dict[str, Record] = {}
    for number, line in enumerate(changed):
        tell("memories", number, len(changed))
        if has_records(line.path):
            for record in records_of(tree, by_path[line.path], agent, manner, base=base, notes=notes):
                fresh[record["id"]] = record
    if manner.sessions is not None:
        fresh.update((record["id"], record) for record in manner.sessions())
    counts = _write_changes(writer, held, fresh)

    def read(name: str) -> str | None:
        item = by_path.get(name)
        if item is None or item.size > LONGEST_TEXT:
            return None
        try:
            return tree.read(item).decode()
        except UnicodeDecodeError:
            return None

    documents = people_of(read, agent, manner, by_path)
    earlier = old.documents()
    new = {layer: document for layer, document in documents.items() if document != earlier.get(layer)}
    for layer, document in new.items():
        writer.add(DOCUMENTS[layer], pretty(document))
    listed = _write_changed(writer, changed, lambda line: tree.pieces(by_path[line.path]))
    created_at = shown_moment(max((line.mtime_ns for line in now.values()), default=0))
    total = _count(old) + counts[0] - counts[2]
    told = _state_lines(before.values())
    after = {path: told[path] for path in now if path in told} | _state_lines(listed)
    ours = {
        "base": _digest_of(told, earlier, _count(old)),
        "state": _digest_of(after, documents, total),
        "files": FILES,
        "deleted": removed,
        "documents_removed": [layer for layer in earlier if layer not in documents],
        "head": head_of(agent, agent_name(read, agent.folder, manner.scheme), created_at=created_at, has_raw=True),
    }
    writer.add_pieces(FILES, (dump_record(line.as_record()) for line in listed))
    writer.add(DELTA, pretty(_manifest(old, agent, created_at, counts, new, changed, removed, before, ours)))
    return DeltaContents(*counts, len(changed), len(removed), tuple(new)), notes


def _is_same(one: FileEntry | None, other: FileEntry) -> bool:
    return one is not None and one[:5] == other[:5]


def _held(old: Snapshot, before: Mapping[str, FileEntry], paths: set[str], *, with_sessions: bool) -> dict[str, Record]:
    """The old archive's records of these files, by id."""
    listed = [before[path] for path in paths if path in before]
    is_known = old.is_ours and not with_sessions
    homes = {home for line in listed for home in line.partitions}
    partitions = [name for name in old.partitions() if not is_known or name in homes]
    files = set(before)
    found: dict[str, Record] = {}
    about = paths if is_known and len(paths) <= _FEW else ()
    for record, _ in old.records(partitions, about=about):
        scope = scope_of(record)
        if scope in paths or (with_sessions and _is_session(record)) or (not is_known and scope not in files):
            found[str(record["id"])] = record
    if not with_sessions:
        found = {key: record for key, record in found.items() if not _is_session(record)}
    return found


def _is_session(record: Record) -> bool:
    return record.get("namespace") == "session"


def _write_changes(writer: Writer, old: Mapping[str, Record], new: Mapping[str, Record]) -> tuple[int, int, int]:
    """The changes of records: what is new, what is different, what is gone, in that order."""
    created = [record for key, record in new.items() if key not in old]
    updated = [record for key, record in new.items() if key in old and record != old[key]]
    deleted = [record for key, record in old.items() if key not in new]
    if created or updated or deleted:
        with writer.entry(CHANGES) as stream:
            for operation, records in (("create", created), ("update", updated), ("delete", deleted)):
                for record in records:
                    stream.write(dump_record({"operation": operation, **record}))
    return len(created), len(updated), len(deleted)


def _write_changed(
    writer: Writer, lines: Iterable[FileEntry], pieces: Callable[[FileEntry], Iterable[bytes]]
) -> Iterable[FileEntry]:
    listed = []
    for line in lines:
        digest = hashlib.sha256()

        def told(line: FileEntry = line, digest: hashlib._Hash = digest) -> Iterator[bytes]:
            for piece in pieces(line):
                digest.update(piece)
                yield piece

        if line.entry is None:
            for _ in told():
                pass
        else:
            writer.add_pieces(line.entry, told(), size=line.size)
        listed.append(line._replace(sha256=digest.hexdigest()))
    return listed


def _manifest(
    old: Snapshot,
    agent: Agent,
    created_at: str,
    counts: tuple[int, int, int],
    documents: Mapping[str, Document],
    changed: Sequence[FileEntry],
    removed: Sequence[str],
    before: Mapping[str, FileEntry],
    ours: Document,
) -> Document:
    changes: Document = {}
    for layer, document in documents.items():
        changes[layer] = {"file": DOCUMENTS[layer]}
        if layer == "identity":
            changes[layer]["new_version"] = document.get("version", 1)
        elif layer == "principals":
            changes[layer]["changed_ids"] = [item["id"] for item in document["principals"]]
    if any(counts):
        changes["memory"] = {"file": CHANGES, "record_count": sum(counts)}
    raw = f"raw/{RUNTIME}/"
    entries = [line.entry for line in changed if line.entry is not None and line.entry.startswith(raw)]
    gone = [entry for path in removed if (entry := before[path].entry) is not None and entry.startswith(raw)]
    if entries or gone:
        changes["raw"] = {"changed": entries, "deleted": gone}
    changes[OURS] = ours
    sequence = _sequence(old)
    return {
        "alf_version": VERSION,
        "created_at": created_at,
        "agent": {"id": agent.id, "source_runtime": RUNTIME},
        "sync": {"base_sequence": sequence, "new_sequence": sequence + 1},
        "changes": changes,
    }


def _sequence(snapshot: Snapshot) -> int:
    sync = snapshot.manifest.get("sync")
    found = sync.get("last_sequence") if isinstance(sync, dict) else None
    return found if isinstance(found, int) and found >= 0 else 0


def state_digest(snapshot: Snapshot) -> str:
    """Which state of the agent a full archive holds: the same for an export and for what apply makes of a delta.

    Its files, its documents and how many records it has. Not what the records say beside the files: a verdict or a
    vector that was found since makes no other state.
    """
    return _digest_of(_state_lines(snapshot.files().values()), snapshot.documents(), _count(snapshot))


def _digest_of(files: Mapping[str, bytes], documents: Mapping[str, Document], records: int) -> str:
    digest = hashlib.sha256(b"truekeep state 1\n")
    digest.update(b"".join([files[path] for path in sorted(files)]))
    digest.update(json.dumps([documents, records], sort_keys=True).encode())
    return digest.hexdigest()


def _state_lines(lines: Iterable[FileEntry]) -> dict[str, bytes]:
    return {line.path: _state_line(line) for line in lines}


def _state_line(line: FileEntry) -> bytes:
    """A file's line in a state: as JSON writes a list, put together by hand because there are many."""
    path, _, size, mtime_ns, mode, sha256, _ = line
    if not type(size) is type(mtime_ns) is type(mode) is int:  # true and false are numbers in Python, not in JSON
        return json.dumps([path, size, mtime_ns, mode, sha256]).encode() + b"\n"
    return f"[{_quoted(path)}, {size}, {mtime_ns}, {mode}, {_quoted(sha256)}]\n".encode()


def _count(snapshot: Snapshot) -> int:
    """How many records the manifest says that there are."""
    memory = snapshot.layers.get("memory")
    found = memory.get("record_count") if isinstance(memory, dict) else None
    return found if isinstance(found, int) else 0


# --- Applied --------------------------------------------------------------------------------------------------------


def applied(old: Snapshot, delta: Snapshot, *, spool: Spool) -> tuple[Edition, list[str]]:
    """The old archive with the changes of a delta, and notes on changes that had nothing to change."""
    if not delta.is_delta or old.is_delta:
        wrong, what = (old, "is a delta") if old.is_delta else (delta, "is no delta")
        name = wrong.reader.name or "this"
        raise BadArchive(
            f"{name} {what}; a delta is applied to a full archive", hint="give the archive first, then the deltas"
        )
    if delta.find_agent_id() not in (None, old.agent_id):
        raise BadArchive(
            "the delta is of another agent than the archive",
            hint="`truekeep alf show` tells whose they are",
            of=delta.reader.name,
        )
    notes: list[str] = []
    ours = delta.changes.get(OURS)
    ours = ours if isinstance(ours, dict) else {}
    _check_order(old, delta, ours, notes)
    before, moved = old.files(), _dated(delta)
    gone = {*_texts(ours.get("deleted")), *_deleted_raw(delta)}
    files = {**{path: line for path, line in before.items() if path not in gone}, **moved}
    _apply_records(old, delta, files, {*moved, *gone}, spool, notes)
    documents = {**old.documents(), **delta.documents()}
    for layer in _texts(ours.get("documents_removed")):
        documents.pop(layer, None)

    def pieces(line: FileEntry) -> Iterable[bytes]:
        if line.entry is None:
            return ()
        return (delta if line.path in moved else old).reader.pieces(line.entry)

    is_ours = old.is_ours or delta.is_ours
    layers = layers_of(old, is_ours=is_ours)
    others = [
        Other(name, old.reader.entries[name].file_size, partial(old.reader.pieces, name))
        for name in kept_of(old, layers)
    ]
    ordered = [files[path] for path in sorted(files)]
    return Edition(_head(old, delta, ours), documents, spool, ordered, pieces, layers, others, plain=not is_ours), notes


def _check_order(old: Snapshot, delta: Snapshot, ours: Document, notes: list[str]) -> None:
    """Refuse a delta that continues another state than this one. Other tools' deltas say at most a number."""
    base, state = ours.get("base"), ours.get("state")
    if isinstance(base, str):
        here = state_digest(old)
        is_next, is_applied = base == here, state == here
    else:
        sync = delta.manifest.get("sync")
        numbers = [sync.get("base_sequence"), sync.get("new_sequence")] if isinstance(sync, dict) else []
        first, last = (number if isinstance(number, int) else 0 for number in (*numbers, 0, 0)[:2])
        at = _sequence(old)
        is_next, is_applied = first <= 0 or at <= 0 or first == at, first < last <= at
    if is_next:
        return
    name = delta.reader.name or "this delta"
    if is_applied:
        raise BadArchive(f"{name} is applied already", hint="leave it out")
    if PURGES in old.reader.entries:  # the deltas that were made before know nothing of that
        notes.append(f"something was purged: whether {name} is the next delta cannot be told")
        return
    raise BadArchive(
        f"{name} continues another state: a delta is missing or out of order",
        hint="give every delta since the archive, in the order in which they were made",
    )


def _dated(delta: Snapshot) -> Mapping[str, FileEntry]:
    """The files of a delta; those whose time nobody wrote down have the delta's."""
    at = parse_moment(delta.manifest.get("created_at"))
    if at is None:
        return delta.files()
    at_ns = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    return {
        path: line._replace(mtime_ns=at_ns) if line.mtime_ns == NO_TIME else line
        for path, line in delta.files().items()
    }


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def layers_of(old: Snapshot, *, is_ours: bool) -> Document:
    """The layers that a new archive takes over as they are: another tool's index of attachments is one."""
    known = {*DOCUMENTS, "memory", *(("attachments",) if is_ours else ())}
    return {layer: about for layer, about in old.layers.items() if layer not in known}


def kept_of(old: Snapshot, layers: Document) -> list[str]:
    """The entries that a new archive takes over as they are: of other tools, and of layers of other kinds."""
    named = [about.get("file") for about in layers.values() if isinstance(about, dict)]
    inside = [name for name in named if isinstance(name, str) and name in old.reader.entries]
    return list(dict.fromkeys((*old.others(), *inside)))


def _deleted_raw(delta: Snapshot) -> Iterator[str]:
    raw = delta.changes.get("raw")
    prefix = f"raw/{RUNTIME}/"
    for entry in _texts(raw.get("deleted")) if isinstance(raw, dict) else ():
        if entry.startswith(prefix):
            yield entry.removeprefix(prefix)


def _head(old: Snapshot, delta: Snapshot, ours: Document) -> Document:
    given = ours.get("head")
    head = {key: value for key, value in old.manifest.items() if key not in ("layers", "checksum")}
    if isinstance(given, dict):
        about = given.get("agent")
        if isinstance(about, dict) and about.get("id") == old.agent_id:
            head["agent"] = about
        sources = (*_texts(head.get("raw_sources")), *_texts(given.get("raw_sources")))
        head |= {"raw_sources": list(dict.fromkeys(sources))} if sources else {}
    if parse_moment(delta.manifest.get("created_at")) is not None:
        head["created_at"] = delta.manifest["created_at"]
    sync = delta.manifest.get("sync")
    numbers = [sync.get("base_sequence"), sync.get("new_sequence")] if isinstance(sync, dict) else []
    base, new = (number if isinstance(number, int) else 0 for number in (*numbers, 0, 0)[:2])
    before = head.get("sync")
    kept = {key: value for key, value in before.items() if key != "last_sync_at"} if isinstance(before, dict) else {}
    head["sync"] = {**kept, "last_sequence": max(_sequence(old), new, base + 1)}
    return head


def _apply_records(
    old: Snapshot, delta: Snapshot, files: Mapping[str, FileEntry], paths: set[str], spool: Spool, notes: list[str]
) -> None:
    changes = [record for record, _ in delta.records()]
    stale = {path for path in map(scope_of, changes) if path in files and path not in paths}
    notes += [f"{path} is the old one: the delta has its records, and not the file" for path in sorted(stale)]
    ids = {str(record["id"]) for record in changes}
    held: dict[str, Record] = {}
    for record, _ in old.records():
        if str(record["id"]) in ids or scope_of(record) in paths:
            held[str(record["id"])] = record
    known = set(held)
    for change in changes:
        record = {key: value for key, value in change.items() if key != "operation"}
        operation, key = change.get("operation"), str(record["id"])
        if operation == ("update" if key in known else "create"):
            held[key] = record
        elif operation == "delete" and key in known:
            held.pop(key, None)
        else:
            notes.append(
                f"{operation} of {key} was passed over: the archive has {'it' if key in known else 'no such record'}"
            )
    if not (old.is_ours or delta.is_ours):
        _spool_in_order(old, held, known, spool)
        return
    by_quarter: dict[Quarter, list[Record]] = {}
    for record in held.values():
        by_quarter.setdefault(quarter_of(record) or Quarter(1970, 1), []).append(record)

    def place(record: Record) -> tuple[str, str, tuple[int, str, str]]:
        path = scope_of(record)
        line = files.get(path)
        return (line.moment if line is not None else "~", path, place_in_file(record))

    for name in old.partitions():
        rest = ((place(record), record, line) for record, line in old.records([name]) if str(record["id"]) not in known)
        mine: list[Record] = []
        for quarter in [quarter for quarter in by_quarter if quarter.file == name]:
            mine = by_quarter.pop(quarter)
        new = sorted(((place(record), record, b"") for record in mine), key=lambda item: item[0])
        for _, record, line in merge(rest, new, key=lambda item: item[0]):
            _spool(spool, record, line, files)
    for quarter in sorted(by_quarter):
        for record in sorted(by_quarter[quarter], key=place):
            _spool(spool, record, b"", files)


def _spool_in_order(old: Snapshot, held: dict[str, Record], known: set[str], spool: Spool) -> None:
    """As the format's own tool does it: what was there stays where it stood, what is new stands behind it."""
    for record, line in old.records():
        key = str(record["id"])
        new = held.pop(key, None) if key in known else record
        if new is not None:
            spool.add(new, path=scope_of(new), line=line + b"\n" if new == record else None)
    for record in held.values():
        spool.add(record, path=scope_of(record))


def _spool(spool: Spool, record: Record, line: bytes, files: Mapping[str, FileEntry]) -> None:
    path = scope_of(record)
    spool.add(record, path=path if path in files else "", line=line + b"\n" if line else None)
