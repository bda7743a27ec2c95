"""A unified diff of two versions of a file. Pure text."""

from __future__ import annotations

from collections.abc import Iterator

from truekeep.text.encoding import decode_text
from truekeep.text.line_diff import LineSpan, iter_spans
from truekeep.text.unicode import printable

_CONTEXT = 3  # lines that are the same, shown around what is not


def difference(old: bytes | None, new: bytes | None, path: str) -> tuple[str, ...]:
    """A unified diff. None means that the file does not exist."""
    before, after = _lines(old), _lines(new)
    hunks = tuple(_hunks(list(iter_spans(before, after))))
    if not hunks:
        return ()
    told = [f"--- {path if old is not None else 'nothing'}", f"+++ {path if new is not None else 'nothing'}"]
    for hunk in hunks:
        first, last = hunk[0], hunk[-1]
        told.append(f"@@ -{_range(first.old, last.old_end)} +{_range(first.new, last.new_end)} @@")
        for span in hunk:
            if span.is_same:
                told += (f" {line}" for line in before[span.old : span.old_end])
            else:
                told += (f"-{line}" for line in before[span.old : span.old_end])
                told += (f"+{line}" for line in after[span.new : span.new_end])
    return tuple(told)


def _hunks(spans: list[LineSpan]) -> Iterator[list[LineSpan]]:
    """Changes with the lines around them; those near each other are joined."""
    hunk: list[LineSpan] = []
    for number, span in enumerate(spans):
        if not span.is_same:
            hunk.append(span)
            continue
        length = span.old_end - span.old
        is_last = number == len(spans) - 1
        if hunk and not is_last and length <= 2 * _CONTEXT:
            hunk.append(span)
            continue
        if hunk:
            after = min(_CONTEXT, length)
            yield [*hunk, span._replace(old_end=span.old + after, new_end=span.new + after)]
        before = min(_CONTEXT, length)
        hunk = [] if is_last else [span._replace(old=span.old_end - before, new=span.new_end - before)]
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    """A range of lines as unified diffs write it: from 1; an empty range names the line before."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + 1 if end > start else start},{end - start}"


def _lines(data: bytes | None) -> list[str]:
    if data is None:
        return []
    text = decode_text(data)
    if text is None:
        return [f"({len(data)} bytes that are not text)"]
    return [printable(line) for line in text.removesuffix("\n").split("\n")]
