"""Insert and remove a block of ours in a person's file, such as an instruction file or a crontab. Pure.

A block stands between two lines of its own, at the end of the file, one empty line below what was there; without that
line, if there was no last newline. Everything else keeps its bytes: a byte order mark, CRLF, that missing newline.
Taking a block out is the exact opposite of putting it in, also after a person has written above or below it.
"""

from __future__ import annotations

from typing import NamedTuple


class BrokenBlock(Exception):
    """The marks in a file are not one pair, so it is unclear which lines are ours. The message says where."""


class BlockMarkers(NamedTuple):
    """The lines around a block of ours."""

    begin: str
    end: str


def put_block(data: bytes, text: str, marks: BlockMarkers) -> bytes:
    """The file with our block at its end, or with its existing block replaced."""
    newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    lines = [marks.begin, *text.splitlines(), marks.end]
    block = newline.join(line.encode() for line in lines)
    span = find_block(data, marks)
    if span is not None:
        return data[: span[0]] + block + (data[span[1] :] or newline)
    if not data.removeprefix(b"\xef\xbb\xbf"):
        return data + block + newline
    return data + newline + block + newline  # whatever is written below it begins a line of its own


def cut_block(data: bytes, marks: BlockMarkers) -> bytes:
    """The file without our block and without the empty line that came with it."""
    span = find_block(data, marks)
    if span is None:
        return data
    start, end = span
    above, below = data[:start], data[end:]
    newline = b"\r\n" if data[start:end].count(b"\r\n") else b"\n"  # as it was put in, or as an editor made all of it
    if not below.removeprefix(newline):
        return above.removesuffix(newline)  # the empty line, or the newline that the file did not have
    is_gap = above.removesuffix(newline)[-1:] in (b"", b"\n")
    return (above.removesuffix(newline) if is_gap else above) + below.removeprefix(newline)


def find_block(data: bytes, marks: BlockMarkers) -> tuple[int, int] | None:
    """The span of our block, marks included, without the newline after it."""
    begins, ends = _lines_with(data, marks.begin), _lines_with(data, marks.end)
    if not begins and not ends:
        return None
    if len(begins) == 1 and len(ends) == 1 and begins[0][0] < ends[0][0]:
        return begins[0][0], ends[0][1]
    if len(begins) > 1 or len(ends) > 1:
        raise BrokenBlock(f"the line {marks.begin if len(begins) > 1 else marks.end!r} stands there more than once")
    missing = marks.begin if not begins else marks.end
    raise BrokenBlock(f"the line {missing!r} is missing, or stands in the wrong place")


def _lines_with(data: bytes, mark: str) -> list[tuple[int, int]]:
    """Where a mark is alone on a line. A mark quoted in a sentence does not count."""
    wanted = mark.encode()
    found = []
    at = data.find(wanted)
    while at >= 0:
        after = at + len(wanted)
        is_first = at == 0 or data[at - 1 : at] == b"\n" or data[:at] == b"\xef\xbb\xbf"
        is_last = after == len(data) or data[after : after + 1] == b"\n" or data[after : after + 2] == b"\r\n"
        if is_first and is_last:
            found.append((at, after))
        at = data.find(wanted, after)
    return found
