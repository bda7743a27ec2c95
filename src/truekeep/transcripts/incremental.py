"""Reads the new lines of a session file, after the offset that was read last.

A file that only grew is read from there on. One that was truncated, rewritten or replaced is recognised by digests of
its first bytes and of those before the offset. A last line without a newline is read but not counted, and is read again
once it is complete. Memory use is bounded by a line and a portion.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from truekeep.transcripts.parser import Listener, Turn
from truekeep.transcripts.session_file import MAX_LINE
from truekeep.transcripts.store import TranscriptSource

FINGERPRINT_BYTES = 4096  # at either end of what was read
PORTION_CHARACTERS = 1_000_000  # of dialogue stored at once
PORTION_BYTES = 64 << 20  # of a file read at once, so that a killed run need not start over


class Portion(NamedTuple):
    """Some turns, and the offset after them."""

    turns: list[Turn]
    source: TranscriptSource
    loose: int  # 1 if the last turn's line has no newline yet
    is_last: bool


def has_only_grown(descriptor: int, size: int, source: TranscriptSource) -> bool:
    """True if the file still begins with what was read."""
    return size >= source.offset and fingerprint(descriptor, source.offset) == (source.head, source.tail)


def fingerprint(descriptor: int, offset: int) -> tuple[bytes, bytes]:
    """Digests of both ends of a file's first `offset` bytes."""
    length = min(FINGERPRINT_BYTES, offset)
    ends = (os.pread(descriptor, length, 0), os.pread(descriptor, length, offset - length))
    head, tail = (blake2b(end, digest_size=16).digest() for end in ends)
    return head, tail


def iter_portions(file: BinaryIO, source: TranscriptSource, harness: str) -> Iterator[Portion]:
    """The dialogue after a source's offset, in portions; the last one may be empty."""
    listener = Listener(harness, breaks=True, progress=source.progress)
    offset, is_skipping = source.offset, source.is_skipping
    turns: list[Turn] = []
    size = loose = 0
    begun = offset
    file.seek(offset)
    while not listener.has_ended and (line := file.readline(MAX_LINE + 1)):
        turn = None
        if is_skipping or len(line) > MAX_LINE:
            is_skipping = not line.endswith(b"\n")
            if not is_skipping:
                listener.hear(b"")
        elif line.endswith(b"\n"):
            turn = listener.hear(line)
        else:
            if (turn := Listener(harness, breaks=True, progress=listener.progress).hear(line)) is not None:
                turns.append(turn)
                loose = 1
            break
        offset += len(line)
        if turn is not None:
            turns.append(turn)
            size += len(turn.text)
        if size >= PORTION_CHARACTERS or offset - begun >= PORTION_BYTES:
            yield Portion(turns, _at(source, offset, listener, is_skipping), 0, is_last=False)
            turns, size, begun = [], 0, offset
    if listener.has_ended:
        offset = max(offset, file.seek(0, os.SEEK_END))
    yield Portion(turns, _at(source, offset, listener, is_skipping), loose, is_last=True)


def _at(source: TranscriptSource, offset: int, listener: Listener, is_skipping: bool) -> TranscriptSource:
    line, has_spoken, has_ended = listener.progress
    return source._replace(
        offset=offset, line=line, has_spoken=has_spoken, has_ended=has_ended, is_skipping=is_skipping
    )
