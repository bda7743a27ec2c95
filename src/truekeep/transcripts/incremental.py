"""What is new in a session file: the lines after the place that was read last, if the file is still the one it was.

A file that only grew is read from there on. One that was truncated, written anew or exchanged is told by the digests of
its first bytes and of those before that place. A last line without an end is read, but not counted: it is read again
when it has one, so that nothing is lost or taken twice. Memory is bounded by a line and a portion, whatever the size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO, NamedTuple

from truekeep.transcripts.parser import Listener, Turn
from truekeep.transcripts.session_file import MAX_LINE
from truekeep.transcripts.store import TranscriptSource

PRINT = 4096  # bytes at either end of what was read by which a file is known again
PORTION = 1_000_000  # characters of dialogue that are kept at once,
STRETCH = 64 << 20  # and bytes of a file, so that a killed run need not begin anew


class Portion(NamedTuple):
    """Some turns, and how far the file was read with them."""

    turns: list[Turn]
    source: TranscriptSource
    loose: int  # 1: the last one stands in a line without an end
    is_last: bool


def has_only_grown(descriptor: int, size: int, source: TranscriptSource) -> bool:
    """Whether what was read of a file is still its beginning."""
    return size >= source.offset and fingerprint(descriptor, source.offset) == (source.head, source.tail)


def fingerprint(descriptor: int, offset: int) -> tuple[bytes, bytes]:
    """Digests of the two ends of a file's first bytes."""
    length = min(PRINT, offset)
    ends = (os.pread(descriptor, length, 0), os.pread(descriptor, length, offset - length))
    head, tail = (blake2b(end, digest_size=16).digest() for end in ends)
    return head, tail


def iter_portions(file: BinaryIO, source: TranscriptSource, harness: str) -> Iterator[Portion]:
    """The dialogue after the place that a source was read up to, in portions; the last one may be empty."""
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
        if size >= PORTION or offset - begun >= STRETCH:
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
