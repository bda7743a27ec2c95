"""Reads a harness's session file: its lines, rows, and the session's metadata.

Files are read line by line and never written; compressed ones (`.zst`) are unpacked on the fly. Any line may be
hostile. OpenClaw's SQLite database is read by `openclaw_db`; its rows are equal to these lines.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from truekeep.core.file_io import UnsafePath
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from json import JSONDecoder

HARNESSES = ("claude", "codex", "openclaw")

MAX_LINE = 8 << 20
"""Longer lines, in bytes, are skipped. The largest real ones are tool results and pictures, not dialogue."""

HEAD = 64 << 10

Row = dict[str, Any]


class Session(NamedTuple):
    """Metadata from the head of a session file; "" where unknown."""

    harness: str
    id: str
    cwd: str
    started_at: str
    branch: str


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a session file. A line that is too long becomes empty, so that line numbers stay right."""
    with open_session(path) as file:
        while line := file.readline(MAX_LINE + 1):
            if len(line) <= MAX_LINE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield b""


def read_session(path: Path, harness: str) -> Session:
    """The session's metadata from the first 64 kB."""
    with open_session(path) as file:
        head = file.read(HEAD)
    return parse_session(head, harness, path.name)


def parse_session(head: bytes, harness: str, name: str) -> Session:
    """The session's metadata from its head; the id comes from the file name if the head has none."""
    *lines, last = head.split(b"\n")
    rows = [row for row in map(parse_row, lines) if row is not None]
    rows.append(_parse_cut_row(last.decode("utf-8", "ignore")))
    session = Session(harness=harness, id="", cwd="", started_at="", branch="")
    for row in rows:
        found = _parse_session(row, harness)
        session = Session(*(known or new for known, new in zip(session, found, strict=True)))
        if all(session) or (session.id and harness != "claude"):
            break  # one row has it all for the others, and a fork repeats the row of its parent
    return session if session.id else session._replace(id=parse_session_id(name, harness))


def _parse_session(row: Row, harness: str) -> Session:
    """The session's metadata in one row."""
    said: Row = {}
    if harness == "claude":
        said = {**row, "id": row.get("sessionId"), "branch": row.get("gitBranch")}
    elif harness == "openclaw" and row.get("type") == "session":
        said = row
    elif harness == "codex" and row.get("type") == "session_meta" and isinstance(meta := row.get("payload"), dict):
        git = meta.get("git")
        said = {"timestamp": row.get("timestamp"), **meta, "branch": git.get("branch") if isinstance(git, dict) else ""}
    return Session(
        harness=harness,
        id=clean_name(said.get("id")),
        cwd=clean_name(said.get("cwd")),
        started_at=parse_moment(said.get("timestamp")),
        branch=clean_name(said.get("branch")),
    )


def clean_name(value: object) -> str:
    """A path, branch or id, safe to store and show."""
    if not isinstance(value, str) or not value or len(value) > 4096:
        return ""
    return withhold(printable(value))


@contextmanager
def open_session(path: Path) -> Iterator[BinaryIO]:
    """Open a session file for reading; a compressed one is unpacked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafePath(printable(str(path)), "is a symlink") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafePath(printable(str(path)), "is not a regular file")
    with open(descriptor, "rb", buffering=1 << 18) as file:
        if not path.name.endswith(".zst"):
            yield file
            return
        zstd = load_zstd()
        try:
            with zstd.ZstdFile(file) as unpacked:
                yield unpacked
        except (zstd.ZstdError, EOFError) as error:
            raise OSError(errno.EILSEQ, "it is damaged or incomplete", str(path)) from error


def load_zstd() -> Any:
    """The zstd module: Python's own from 3.14 on, before that its backport."""
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def parse_session_id(name: str, harness: str) -> str:
    stem = name.partition(".jsonl")[0]
    if harness == "codex" and (rollout := _ROLLOUT.fullmatch(stem)):
        stem = rollout[1]
    return clean_name(stem)


_ROLLOUT = re.compile(r"rollout-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-([^_]+)(?:_.*)?")


# --- Rows -----------------------------------------------------------------------------------------------------------


def parse_row(line: bytes) -> Row | None:
    try:
        row = _decoder().decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _parse_cut_row(text: str, at: int = 0, *, depth: int = 3) -> Row:
    """The complete members of a truncated JSON object."""
    decode = _decoder().raw_decode
    row: Row = {}
    try:
        at = _skip_blanks(text, at, "{")
        while True:
            key, at = decode(text, at)
            at = _skip_blanks(text, at, ":")
            try:
                value, at = decode(text, at)
            except (ValueError, RecursionError):
                if depth and text.startswith("{", at):
                    row.setdefault(key, _parse_cut_row(text, at, depth=depth - 1))
                return row
            row.setdefault(key, value)
            at = _skip_blanks(text, at, ",")
    except (ValueError, RecursionError, TypeError):  # TypeError: a key that is a list or an object
        return row


def _skip_blanks(text: str, at: int, sign: str) -> int:
    """The position after the sign and the blanks around it."""
    blanks = _BLANKS.match(text, at)
    at = blanks.end() if blanks else at
    if not text.startswith(sign, at):
        raise ValueError(sign)
    blanks = _BLANKS.match(text, at + 1)
    return blanks.end() if blanks else at + 1


_BLANKS = re.compile(r"[ \t\r\n]*")


@cache
def _decoder() -> JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_as_row, parse_constant=_refuse_constant)


def _as_row(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) != len(pairs):
        # Parsers differ in which one they use, so the row may mean something else to its harness.
        raise ValueError("duplicate key")
    return row


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_moment(value: object) -> str:
    return value if isinstance(value, str) and _MOMENT.fullmatch(value) else ""


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{4,20}(?:Z|[+-][0-9:]{2,6})?")
