"""Bring the index up to date with changed files: read them, cut them up, write them in batches.

The digest decides whether a file changed; size, times and inode only save the reading. Words are always indexed; a
chunk without a vector waits in `unembedded` and is found by its words until then.
"""

from __future__ import annotations

import errno
import hashlib
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.derived_db import read_meta, write_meta
from truekeep.core.sqlite import transaction
from truekeep.memory.file_scan import FILE_LIMIT, Changes, MemoryFile, is_settled, read_memory_file
from truekeep.memory.written_days import blob_id, committed_days
from truekeep.search import file_metadata
from truekeep.search.chunking import Chunk, split_chunks, strip_notes
from truekeep.search.embedders import Embedder, EmbedderFailed, Vector, load_numpy
from truekeep.search.index_schema import SECTIONS, section_of
from truekeep.search.vectors import clear_vectors, store_vectors
from truekeep.text.secrets.scanner import mask_lines, mask_secrets
from truekeep.text.words import hump_words, spaced

if TYPE_CHECKING:
    import apsw

    from truekeep.search.decay_record import DecayRecord

_BATCH_BYTES = 1_500_000
_BATCH_FILES = 400
_CHUNKS_PER_EMBEDDING = 256
_KEPT_CACHED_VECTORS = 50_000


class RefreshReport(NamedTuple):
    """The result of a refresh."""

    files: int = 0
    chunks: int = 0
    removed: int = 0
    unread: tuple[str, ...] = ()  # files with the reason why they could not be read
    left: int = 0  # changed files that there was no time for
    embedded: int = 0
    unembedded: int = 0
    failure: str = ""  # why there are no vectors


class PreparedFile(NamedTuple):
    """A file, read and cut up."""

    source: MemoryFile
    digest: bytes
    is_settled: bool
    about: file_metadata.About
    chunks: list[Chunk]
    lines: list[list[int]] | None = None  # of a transcript: original lines, for each chunk
    blob: str = ""  # the id that git gives to its content, for a file that says no day itself


def refresh(
    db: apsw.Connection,
    changes: Changes,
    embedder: Embedder | None,
    *,
    until: float | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    read: Callable[[MemoryFile, bytes | None], PreparedFile] | None = None,
) -> RefreshReport:
    """Index changes in whole batches. With `until`, the newest files first, as far as there is time."""
    read = read or (lambda source, noted: prepare(source, noted=noted))

    def known_digest(source: MemoryFile) -> bytes | None:
        row = _noted(db, source.path) if source.path in changes.known else None
        return row[0] if row is not None and row[1] == source.store else None

    files = chunks = embedded = 0
    unread: list[str] = []
    failure = ""
    if changes.gone:
        with transaction(db):
            generation = _next_generation(db)
            for file_id in changes.gone:
                _drop_file(db, file_id, generation)
    waiting = changes.changed
    if until is not None:
        waiting = sorted(waiting, key=lambda source: -source.mtime_ns)
    done = 0
    for batch in _batches(waiting):
        if until is not None and done and time.monotonic() >= until:
            break
        prepared: list[PreparedFile] = []
        for source in batch:
            try:
                prepared.append(read(source, known_digest(source)))
            except FileNotFoundError:
                continue  # it vanished; the next scan notices
            except OSError as error:
                unread.append(f"{source.path}: {error.strerror or error}")
            except (RecursionError, MemoryError, ValueError) as error:
                unread.append(f"{source.path}: {type(error).__name__}")  # one file never stops the others
        fresh = _with_days(_with_new_content(db, prepared, changes.known))
        vectors = None
        if embedder is not None and not failure and fresh:
            try:
                vectors = _embed(
                    db,
                    embedder,
                    [_embedded_text(embedder, item, at) for item in fresh for at in range(len(item.chunks))],
                )
            except EmbedderFailed as error:
                failure = error.told
        with transaction(db):
            ids = _write(db, fresh, changes.known)
            if vectors is not None and ids:
                store_vectors(db, ids, vectors, _next_generation(db))
                embedded += len(ids)
            elif ids:
                db.executemany("INSERT OR IGNORE INTO unembedded VALUES (?)", ((chunk_id,) for chunk_id in ids))
        files += len(fresh)
        chunks += len(ids)
        done += len(batch)
        progress(done, len(waiting))
    _forget_words(embedder)
    return RefreshReport(
        files=files,
        chunks=chunks,
        removed=len(changes.gone),
        unread=tuple(unread),
        left=len(waiting) - done,
        embedded=embedded,
        failure=failure,
    )


def embed_waiting(
    db: apsw.Connection,
    embedder: Embedder,
    *,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[int, str]:
    """Embed the chunks without a vector. Gives how many were embedded, and the failure that stopped it."""
    total = db.execute("SELECT count(*) FROM unembedded").get
    done = 0
    while True:
        rows: list[Any] = db.execute(
            "SELECT chunk_id, heading, text, title FROM unembedded JOIN chunks ON chunks.id = chunk_id"
            " JOIN files ON files.id = file_id LIMIT ?",
            (_CHUNKS_PER_EMBEDDING,),
        ).fetchall()
        if not rows:
            break
        try:
            vectors = _embed(
                db, embedder, [_text_for(embedder, title, heading, text) for _, heading, text, title in rows]
            )
        except EmbedderFailed as error:
            return done, error.told
        ids = [row[0] for row in rows]
        with transaction(db):
            alive = {row[0] for row in db.execute("SELECT chunk_id FROM unembedded")}
            kept = [at for at, chunk_id in enumerate(ids) if chunk_id in alive]
            store_vectors(db, [ids[at] for at in kept], vectors[kept], _next_generation(db))
            db.executemany("DELETE FROM unembedded WHERE chunk_id = ?", ((chunk_id,) for chunk_id in ids))
        done += len(rows)
        progress(done, total)
    _forget_words(embedder)
    return done, ""


# Reading.


def prepare(source: MemoryFile, decayed: DecayRecord | None = None, noted: bytes | None = None) -> PreparedFile:
    """Read a file and cut it into chunks, with credentials masked and expired log entries left out.

    Without expired entries the digest is another one, so that the change is noticed. `noted`: the digest in the index;
    a file that still has it is not cut up again.
    """
    data, info = read_memory_file(source.location)
    source = source._replace(size=info.st_size, mtime_ns=info.st_mtime_ns, ctime_ns=info.st_ctime_ns, inode=info.st_ino)
    settled = is_settled(info.st_mtime_ns, info.st_ctime_ns)
    whole = decode(data[:FILE_LIMIT])
    left = decayed.leave_out(source.path, whole) if decayed is not None and source.store == "logs" else whole
    digest = hashlib.sha256(data if left is whole else b"decayed\0" + left.encode("utf-8", "replace")).digest()
    if digest == noted:
        return PreparedFile(source, digest, settled, file_metadata.About("", "", "", ()), [])
    text = strip_notes(mask_lines(left))
    about = file_metadata.describe(source.path, text)
    chunks = split_chunks(text)
    blob = "" if about.day or about.day_in_name else blob_id(data)
    return PreparedFile(source, digest, settled, about, chunks, blob=blob)


def decode(data: bytes) -> str:
    """Decode a file: UTF-8, UTF-16 or cp1252, without byte order mark and stray NULs. Raises OSError for other data."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    elif data.count(b"\0") > len(data) // 100 + 2:
        raise OSError(errno.EILSEQ, "it is not text")
    else:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            whole = error.start >= len(data) - 4  # cut in the middle of a character
            text = data.decode("utf-8" if whole or data.count(b"\xc3") else "cp1252", "replace")
            if text.count("\ufffd") > len(text) // 10:
                raise OSError(errno.EILSEQ, "it is not text") from error
    if "\0" in text:
        text = text.replace("\0", " ")
    return text.removeprefix("\ufeff")


def _batches(sources: Sequence[MemoryFile]) -> Iterator[list[MemoryFile]]:
    batch: list[MemoryFile] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += min(source.size, FILE_LIMIT)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# Vectors.


def _embedded_text(embedder: Embedder, item: PreparedFile, at: int) -> str:
    chunk = item.chunks[at]
    return _text_for(embedder, item.about.title, file_metadata.heading_at(item.about, chunk.first), chunk.text)


def _text_for(embedder: Embedder, title: str, heading: str, text: str) -> str:
    """The text to embed. For all but the built-in model it is the chunk alone, as OpenClaw embeds it."""
    if embedder.provider == "static":
        return f"{title}\n{heading}\n{text}"
    return text


def _embed(db: apsw.Connection, embedder: Embedder, texts: list[str]) -> Any:
    np = load_numpy()

    table = getattr(embedder, "embed_table", None)
    if table is not None:
        return table(texts) if texts else np.zeros((0, 1), dtype=np.float32)
    vectors = embed_cached(db, embedder, texts)
    return np.array([np.frombuffer(vector, dtype=np.float32) for vector in vectors])


def _forget_words(embedder: Embedder | None) -> None:
    """Give back the memory that words of many texts took, for processes that stay."""
    forget = getattr(embedder, "forget_words", None)
    if forget is not None:
        forget()


def embed_cached(db: apsw.Connection, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """Vectors from the cache, and from the embedder for texts that are not in it."""
    digests = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
    name = (embedder.provider, embedder.model, embedder.key)
    found: dict[bytes, Vector] = {}
    for digest in dict.fromkeys(digests):
        row = db.execute(
            "SELECT embedding FROM embedding_cache WHERE provider = ? AND model = ? AND key = ? AND digest = ?",
            (*name, digest),
        ).fetchone()
        if row is not None and len(row[0]) % 4 == 0:
            found[digest] = array("f", row[0])
    missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
    now = int(time.time())
    for start in range(0, len(missing), _CHUNKS_PER_EMBEDDING):
        part = list(missing)[start : start + _CHUNKS_PER_EMBEDDING]
        vectors = embedder.embed([_outgoing(embedder, missing[digest]) for digest in part])
        sizes = {len(vector) for vector in (*found.values(), *vectors)}
        if len(vectors) != len(part) or len(sizes) > 1:
            raise EmbedderFailed(f"{embedder.provider} {embedder.model} returned vectors of another size than before")
        found.update(zip(part, vectors, strict=True))
        with transaction(db):
            db.executemany(
                "INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, ?, ?, ?, ?)",
                ((*name, digest, found[digest].tobytes(), now) for digest in part),
            )
    return [found[digest] for digest in digests]


def _outgoing(embedder: Embedder, text: str) -> str:
    """A text for another program or machine, with credentials masked."""
    if embedder.provider in ("static", "transformer"):
        return text
    return mask_secrets(text) or "[withheld]"


# Writing.


def _with_new_content(db: apsw.Connection, prepared: list[PreparedFile], known: dict[str, int]) -> list[PreparedFile]:
    """Update the stats of files with the same content, and give the files with new content."""
    fresh: list[PreparedFile] = []
    same: list[tuple[int, int, int, int, int, str]] = []
    for item in prepared:
        source = item.source
        if source.path in known and _noted(db, source.path) == (item.digest, source.store):
            same.append((source.size, source.mtime_ns, source.ctime_ns, source.inode, item.is_settled, source.path))
        else:
            fresh.append(item)
    if same:
        with transaction(db):
            db.executemany(
                "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, is_settled = ? WHERE path = ?", same
            )
    return fresh


def _with_days(prepared: list[PreparedFile]) -> list[PreparedFile]:
    """Give each file the day on which it was written, where it or git tells."""
    undated = [item for item in prepared if item.blob and item.source.location.endswith("/" + item.source.path)]
    roots = {item.source.location.removesuffix("/" + item.source.path) for item in undated}
    blobs = {item.source.path: item.blob for item in undated}
    days = {path: day for root in roots for path, day in committed_days(root, blobs).items()}

    def dated(item: PreparedFile) -> PreparedFile:
        day = file_metadata.written_day(item.about, days.get(item.source.path))
        return item._replace(about=item.about._replace(day=day)) if day != item.about.day else item

    return [dated(item) for item in prepared]


def _noted(db: apsw.Connection, path: str) -> tuple[bytes, str] | None:
    """A file's digest and store in the index."""
    row: Any = db.execute("SELECT digest, store FROM files WHERE path = ?", (path,)).fetchone()
    return (row[0], row[1]) if row else None


def _write(db: apsw.Connection, prepared: list[PreparedFile], known: dict[str, int]) -> list[int]:
    """Write files and their chunks, replacing older states. Gives the chunk ids, in order."""
    replaced = [known[item.source.path] for item in prepared if item.source.path in known]
    if replaced:
        generation = _next_generation(db)
        for file_id in replaced:
            _drop_file(db, file_id, generation)
    file_id = db.execute("SELECT coalesce(max(id), 0) FROM files").get
    counts: dict[str, int] = {}
    for item in prepared:
        section = section_of(item.source.store)
        counts[section] = counts.get(section, 0) + len(item.chunks)
    ids = {section: iter(_new_ids(db, count, section)) for section, count in counts.items()}
    files, chunks, words = [], [], []
    for item in prepared:
        file_id += 1
        source, about = item.source, item.about
        files.append(
            (file_id, source.path, source.store, *source.stat, item.is_settled, item.digest, about.day,
             about.repository, about.title, source.location)
        )  # fmt: skip
        mine = ids[section_of(source.store)]
        folders = "" if source.store == "transcripts" else file_metadata.words_of_path(source.path.rpartition("/")[0])
        for at, chunk in enumerate(item.chunks):
            chunk_id = next(mine)
            text = chunk.text
            heading = file_metadata.heading_at(about, chunk.first) if about.headings else ""
            digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
            lines = None if item.lines is None else _pack_lines(item.lines[at])
            chunks.append((chunk_id, file_id, chunk.first, chunk.last, digest, heading, text, lines))
            named = f"{folders} {about.title} {heading}"
            words.append((chunk_id, spaced(named), spaced(text), hump_words(text)))
    db.executemany(
        "INSERT INTO files (id, path, store, size, mtime_ns, ctime_ns, inode, is_settled, digest, day, repository,"
        " title, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        files,
    )
    db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chunks)
    db.executemany("INSERT INTO chunks_fts (rowid, title, text, parts) VALUES (?, ?, ?, ?)", words)
    return [chunk[0] for chunk in chunks]


def _new_ids(db: apsw.Connection, count: int, section: str) -> list[int]:
    """Ids for new chunks, free ones first, so that vector blocks stay dense."""
    low, high = SECTIONS[section]
    highest = db.execute(
        "SELECT max((SELECT coalesce(max(id), ?1) FROM chunks WHERE id > ?1 AND id <= ?2),"
        " (SELECT coalesce(max(id), ?1) FROM free_chunks WHERE id > ?1 AND id <= ?2))",
        (low, high),
    ).get
    rows: Any = db.execute(
        "SELECT id FROM free_chunks WHERE id > ? AND id <= ? ORDER BY id LIMIT ?", (low, high, count)
    )
    ids = [row[0] for row in rows]
    db.executemany("DELETE FROM free_chunks WHERE id = ?", ((chunk_id,) for chunk_id in ids))
    return ids + list(range(highest + 1, highest + 1 + count - len(ids)))


def _drop_file(db: apsw.Connection, file_id: int, generation: int) -> None:
    ids = [row[0] for row in db.execute("SELECT id FROM chunks WHERE file_id = ?", (file_id,))]
    for statement in (
        "DELETE FROM chunks_fts WHERE rowid = ?",
        "DELETE FROM unembedded WHERE chunk_id = ?",
        "INSERT OR IGNORE INTO free_chunks VALUES (?)",
    ):
        db.executemany(statement, ((chunk_id,) for chunk_id in ids))
    clear_vectors(db, ids, generation)
    db.execute("DELETE FROM chunks WHERE file_id = ?", (file_id,))
    db.execute("DELETE FROM files WHERE id = ?", (file_id,))


def _next_generation(db: apsw.Connection) -> int:
    generation = int(read_meta(db, "generation", 0)) + 1
    write_meta(db, "generation", generation)
    return generation


def _pack_lines(lines: Sequence[int]) -> bytes:
    return array("I", lines).tobytes()


def remove_stale_cache(db: apsw.Connection) -> None:
    """Delete the longest unused vectors from the cache."""
    with suppress(Exception), transaction(db):
        db.execute(
            "DELETE FROM embedding_cache WHERE (provider, model, key, digest) IN (SELECT provider, model, key, digest"
            " FROM embedding_cache ORDER BY used_at DESC LIMIT -1 OFFSET ?)",
            (_KEPT_CACHED_VECTORS,),
        )
