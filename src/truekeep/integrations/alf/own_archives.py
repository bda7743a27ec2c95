"""Which archives this machine made itself: their digests, so that taking one back needs no questions."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from truekeep.core import file_io
from truekeep.core.machine import own_state
from truekeep.integrations.alf.archive_file import open_plain

FILE = "exported.jsonl"  # in the machine's own state folder
_MOST_BYTES = 1 << 20
_KEPT = 2_000  # lines, when it has become longer


def note_exported(path: Path) -> None:
    """Remember an archive that was just made. A disk that says no costs a question later."""
    with suppress(OSError):
        line = {"sha256": digest_of(path), "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "name": path.name}
        known = Path(own_state()) / FILE
        file_io.make_private(known.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(known, flags, 0o600), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
        if known.stat().st_size > _MOST_BYTES:
            file_io.write_whole(known, b"".join(known.read_bytes().splitlines(keepends=True)[-_KEPT:]))


def is_own_archive(path: Path) -> bool:
    """Whether this machine made exactly this file."""
    try:
        lines = (Path(own_state()) / FILE).read_bytes().splitlines()
        digest = digest_of(path)
    except OSError:
        return False
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            if json.loads(line)["sha256"] == digest:
                return True
    return False


def digest_of(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
