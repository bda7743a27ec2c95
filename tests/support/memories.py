"""What the recall tests share: memories to write, ways to ask, an embedding server on this machine, sessions."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import apsw

from tests.support.helpers import NOW, Place, a_card
from truekeep.search.build import IndexReport
from truekeep.search.embedder_choice import LEXICON_FILE
from truekeep.search.embedders.static import Static
from truekeep.search.index_schema import open_index
from truekeep.search.service import SearchResult

SIZE = 16
WORDS_ONLY = '[recall]\nembedder = "none"\n'


def remember(place: Place, path: str, text: str | bytes, *, at: datetime | None = None) -> Path:
    """Write a memory file; its path is relative to the workspace."""
    file = place.workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if at is not None:
        os.utime(file, (at.timestamp(), at.timestamp()))
    return file


def some_memories(place: Place) -> None:
    """A little of everything: cards, a document, logs of two days."""
    lend_lexicon(place)
    remember(place, "memory/cards/staging-proxy.md", a_card())
    remember(place, "memory/cards/backup-window.md", "---\ntopic: Backup window\n---\n\nBackups run at two at night.\n")
    remember(place, "memory/projects/harbor.md", "# Harbor\n\nThe harbor service is written in Rust.\n")
    remember(place, "memory/2026-11-10.md", "# Log\n\n- Rotated the signing certificate for the mail gateway.\n")
    remember(place, "memory/2026-11-12.md", "# Log\n\n- The nightly import failed with ERR_QUOTA_4711.\n")


@cache
def _lexicon() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lexicon.bin")
        Static(lexicon=str(path)).embed(["anything"])
        return path.read_bytes()


def lend_lexicon(place: Place) -> None:
    """Making it takes ten times as long as a small index, and it is the same for everyone."""
    (state(place) / LEXICON_FILE).write_bytes(_lexicon())


def search(place: Place, query: str, *, now: datetime = NOW, **options: Any) -> SearchResult:
    with place.open(now=now) as workspace:
        return workspace.search.find(query, **options)


def reindex(place: Place, *, now: datetime = NOW, **options: Any) -> IndexReport:
    with place.open(now=now) as workspace:
        return workspace.search.index(**options)


def paths(answer: SearchResult) -> list[str]:
    return [hit.path for hit in answer.hits]


def state(place: Place) -> Path:
    return place.workspace / ".truekeep"


def index_file(place: Place) -> Path:
    return state(place) / "index.sqlite"


def beside_index(place: Place) -> list[str]:
    """What lies in the state folder because of the index, without the index itself, its lock and the lexicon."""
    known = ("index.sqlite", "index.lock")
    return sorted(path.name for path in state(place).glob("index*") if path.name not in known)


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """The index, looked into by somebody else."""
    db = open_index(str(path))
    try:
        yield db
    finally:
        db.close()


def times(root: Path) -> dict[str, int]:
    """When each memory file was last changed."""
    return {
        str(path.relative_to(root)): path.lstat().st_mtime_ns
        for path in root.rglob("*")
        if ".truekeep" not in path.parts and not path.is_dir()
    }


# --- A server that embeds -------------------------------------------------------------------------------------------


def numbers_for(text: str, *, size: int = SIZE, version: str = "") -> list[float]:
    """Numbers that depend on the text and the version of the model alone."""
    data = hashlib.sha512(f"{version} {text}".encode()).digest() * (size // 32 + 1)
    return [number / 1000 - 30 for number in struct.unpack(f">{size}H", data[: 2 * size])]


class EmbeddingServer(ThreadingHTTPServer):
    """Speaks OpenAI's protocol on this machine; its model, its size and its manners can change while it runs."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.version = ""
        self.size = SIZE
        self.spoil: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
        self.hangs = False
        self.status = 200
        self.after = 10**9  # requests from this one on are not answered well
        self.texts: list[list[str]] = []
        self.closing = threading.Event()

    @property
    def config(self) -> str:
        url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        return f'[recall]\nembedder = "openai-compatible"\nmodel = "m"\nbase_url = "{url}"\n'

    @property
    def documents(self) -> list[str]:
        """Every text that was embedded but for the question whether the model is still the same."""
        return [text for request in self.texts for text in request if text != "truekeep keeps memory true"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are expected."""


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        server = self.server
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        server.texts.append(asked)
        is_late = len(server.texts) >= server.after
        if server.hangs or (is_late and server.status == 200):
            server.closing.wait(60)
            return
        status = server.status if is_late or server.after == 10**9 else 200
        data = [
            {"index": at, "embedding": numbers_for(text, size=server.size, version=server.version)}
            for at, text in enumerate(asked)
        ]
        body = json.dumps({"data": server.spoil(data) if server.spoil else data}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


# --- Sessions -------------------------------------------------------------------------------------------------------


def claude_session(
    home: Path, *said: tuple[str, str], name: str = "5e551011-aaaa-4bbb-8ccc-0123456789ab", at: datetime = NOW
) -> Path:
    """A session of Claude Code: a row that is no speech, then what user and assistant said, a row each."""
    file = home / ".claude" / "projects" / "-home-me-app" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = [{"type": "summary", "summary": "nothing", "leafUuid": "u"}]
    for role, text in said:
        rows.append(
            {
                "isSidechain": False, "userType": "external", "cwd": "/home/me/app", "sessionId": name,
                "version": "2.1.325", "type": role, "message": {"role": role, "content": text},
                "timestamp": "2026-11-14T10:20:30.456Z",
            }
        )  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(file, (at.timestamp(), at.timestamp()))
    return file
