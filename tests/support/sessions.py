"""What the archive's tests share: sessions of three harnesses on disk, and what the archive holds of them."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from tests.support.helpers import NOW, Place
from tests.unit.transcripts.test_parser import lines_of, said
from truekeep.transcripts.importer import TranscriptImportReport
from truekeep.transcripts.parser import Turn
from truekeep.transcripts.service import Archive
from truekeep.transcripts.session_file import load_zstd
from truekeep.transcripts.store import StoredSession, TranscriptStore

ONE = "5e551011-aaaa-4bbb-8ccc-0123456789ab"
TWO = "7a770022-aaaa-4bbb-8ccc-0123456789ab"
LONG = "The build is red because the port in the test is taken by another service, and the fixture does not wait. " * 3

SCHEMA = """
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT) STRICT;
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, event_zstd BLOB, PRIMARY KEY (session_id, seq)
) STRICT;
"""


def place_of(home: Path, harness: str, name: str = ONE) -> Path:
    """Where a harness keeps a session."""
    return {
        "claude": home / f".claude/projects/-home-me-app/{name}.jsonl",
        "codex": home / f".codex/sessions/2026/11/15/rollout-2026-11-15T10-20-30-{name}.jsonl",
        "openclaw": home / f".openclaw/agents/main/sessions/{name}.jsonl",
    }[harness]


def dialogue(harness: str, *texts: str) -> list[bytes]:
    """User and assistant in turn, as the harness writes it."""
    return lines_of(*(said(harness, ("user", "assistant")[at % 2], text) for at, text in enumerate(texts)))


def aged(harness: str, text: str, at: datetime) -> list[bytes]:
    row = said(harness, "user", text)
    return lines_of({**row, "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ")})


def write_session(path: Path, lines: Iterable[bytes], *, at: datetime | None = NOW) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(lines)
    path.write_bytes(load_zstd().compress(data) if path.name.endswith(".zst") else data)
    if at is not None:
        os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def grow(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(lines)


def sync(place: Place, *, now: datetime = NOW, force: bool = False) -> TranscriptImportReport:
    with place.open(now=now) as workspace:
        return workspace.sessions.sync_transcripts(force=force)


def archive_file(place: Place) -> Path:
    return place.workspace / ".truekeep" / "transcripts" / "archive.sqlite"


def held(place: Place) -> dict[str, list[str]]:
    """Every session of the archive by its name, with what was said in it."""
    return {name: [turn.text for turn in turns] for name, turns in held_turns(place).items()}


def held_turns(place: Place) -> dict[str, list[Turn]]:
    archive = Archive(str(place.workspace / ".truekeep"))
    found = {kept.name: list(archive.turns(kept)) for kept in archive.sessions()}
    archive.close()
    return found


def all_kept(place: Place) -> dict[str, StoredSession]:
    store = TranscriptStore(str(archive_file(place)), read_only=True)
    found = {kept.name: kept for kept in store.sessions()}
    store.close()
    return found


def raw_archive(place: Place) -> bytes:
    """Every byte of the archive, as it lies on disk and as it unpacks."""
    folder = archive_file(place).parent
    raw = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    db = apsw.Connection(str(archive_file(place)))
    unpacked = b"".join(zlib.decompress(data) for (data,) in db.execute("SELECT data FROM block"))
    db.close()
    return raw + unpacked


class AgentDatabase:
    """OpenClaw's database of one agent, as OpenClaw itself would write it: in WAL mode, and open all the while."""

    def __init__(self, home: Path, agent: str = "main", schema: str = SCHEMA) -> None:
        self.path = home / f".openclaw/agents/{agent}/agent/openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db = apsw.Connection(str(self.path))
        self.db.execute("PRAGMA journal_mode = WAL").fetchall()
        if not self.db.execute("SELECT count(*) FROM sqlite_schema").get:
            self.db.execute(schema)
            self.db.execute("PRAGMA user_version = 23")

    def add(self, session: str, rows: Sequence[Any], *, key: str = "agent:main:main", packed: bool = False) -> None:
        last: Any = self.db.execute("SELECT max(seq) FROM transcript_events WHERE session_id = ?", (session,)).get
        first = 0 if last is None else last + 1
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO session_windows VALUES (?, ?)", (session, key))
            for number, row in enumerate(rows, first):
                text = row if isinstance(row, str) else json.dumps(row)
                data = load_zstd().compress(text.encode()) if packed else None
                values = (session, number, None if packed else text, data)
                self.db.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", values)

    def close(self) -> None:
        self.db.close()
