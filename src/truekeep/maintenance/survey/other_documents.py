"""Credentials and planted orders in the documents outside of the memory files: what search shows and verify checks.

Nothing else of them is kept: they are people's own, so maintenance proposes nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from truekeep.core.sqlite import transaction
from truekeep.maintenance.survey.reader import find_text_problems
from truekeep.memory.document_scan import scan_documents
from truekeep.memory.file_scan import find_changes, is_settled, read_memory_file, stat_of
from truekeep.text.encoding import decode_text

if TYPE_CHECKING:
    import apsw

_FILES_PER_BATCH = 100


def refresh_documents(
    db: apsw.Connection, root: str, extra: Sequence[str], progress: Callable[[int, int], None]
) -> tuple[str, ...]:
    """Read the documents that changed, and store their problems. Gives those that could not be read, and why."""
    scan = scan_documents(root, extra, with_instructions=True)
    changes = find_changes(db, scan.files(), unlisted=scan.unlisted_folders, table="other_documents")
    if not changes.changed and not changes.gone:
        return ()
    unread = []
    with transaction(db):
        _forget(db, (*changes.gone, *changes.known.values()))
        for number, file in enumerate(changes.changed, start=1):
            try:
                data, info = read_memory_file(file.location)
            except FileNotFoundError:
                continue
            except OSError as error:
                unread.append(f"{file.path}: {error.strerror or error}")
                continue
            settled = is_settled(info.st_mtime_ns, info.st_ctime_ns)
            _write(db, (file.path, file.store, *stat_of(info), settled), decode_text(data))
            if number % _FILES_PER_BATCH == 0 or number == len(changes.changed):
                progress(number, len(changes.changed))
    return tuple(unread)


def _forget(db: apsw.Connection, files: Sequence[int]) -> None:
    for table, column in (("other_problems", "file"), ("other_documents", "id")):
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", ((file,) for file in files))  # noqa: S608


def _write(db: apsw.Connection, row: tuple[Any, ...], text: str | None) -> None:
    db.execute(
        "INSERT INTO other_documents (path, store, size, mtime_ns, ctime_ns, inode, is_settled)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    file = db.last_insert_rowid()
    found = find_text_problems(row[0], text) if text is not None else ()
    db.executemany("INSERT INTO other_problems VALUES (?, ?, ?, ?)", ((file, *problem) for problem in found))
