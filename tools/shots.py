"""Pictures of every page for the docs: python -m tools.shots [FOLDER], or make shots.

Light and dark, on a desktop and on a phone, of a made-up memory. Pictures are written with few colours, so that they
stay small.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from tests.support.site_memory import lived_in, surroundings
from tests.support.website import Window, chromium, served, window

FOLDER = Path(__file__).parents[1] / "docs" / "images"
PAGES: Sequence[tuple[str, str]] = (
    ("today", "/"),
    ("plots", "/#plots"),
    ("review", "/review"),
    ("draft", "/review/{draft}"),
    ("memory", "/memory"),
    ("card", "/memory/file/memory/cards/payment-retries.md"),
    ("search", "/search?q=what+happens+when+a+payment+fails&explain=1"),
    ("history", "/history"),
    ("act", "/history/{entry}"),
    ("transcripts", "/transcripts"),
    ("session", "/transcripts/{session}"),
)
SCREENS = {"desktop": (1100, 760), "phone": (360, 740)}


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with place_of_ada() as base, surroundings(base / "home") as env:
        with named("desk"):
            place = lived_in(base / "memory")
        with place.open() as workspace, workspace.sessions.transcripts() as archive:
            names = {
                "draft": next(draft.id for draft in workspace.review.drafts() if draft.id.startswith("price")),
                "entry": str(next(entry.id for entry, _ in workspace.history.entries() if entry.verb == "approved")),
                "session": max(archive.sessions(), key=lambda kept: kept.total).name,
            }
        with served(place.workspace, env) as server, chromium() as browser:
            for screen, (width, height) in SCREENS.items():
                size = {"width": width, "height": height}
                for scheme in ("light", "dark"):
                    with window(browser, server, viewport=size, color_scheme=scheme) as opened:
                        for name, path in PAGES:
                            data = shot(opened, path.format(**names))
                            (folder / f"{name}-{screen}-{scheme}.png").write_bytes(smaller(data))
    made = list(folder.glob("*.png"))
    print(f"{len(made)} pictures, {sum(file.stat().st_size for file in made) / 1e6:.2f} MB, in {folder}")


@contextmanager
def place_of_ada() -> Iterator[Path]:
    """A folder with a name that may be seen in a picture."""
    base = Path(tempfile.gettempdir()) / "ada"
    base.mkdir()
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def named(machine: str) -> Iterator[None]:
    """This machine, under another name."""
    real = os.uname()
    with patch("os.uname", lambda: os.uname_result((real.sysname, machine, real.release, real.version, real.machine))):
        yield


def shot(opened: Window, path: str) -> bytes:
    page = opened.go(path)
    if path == "/#plots":
        page.locator(".plot").first.evaluate("one => one.closest('section').scrollIntoView()")
    page.evaluate("document.activeElement && document.activeElement.blur()")
    return page.screenshot(animations="disabled")


# PNG, as far as it is needed here.


def smaller(data: bytes) -> bytes:
    """The same picture with at most 256 colours: the commonest stay, the others become the nearest of them."""
    pixels = _pixels(data)
    height, width = pixels.shape[:2]
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    packed = flat[:, 0] << 16 | flat[:, 1] << 8 | flat[:, 2]
    found, inverse, count = np.unique(packed, return_inverse=True, return_counts=True)
    chosen = found[np.argsort(count)[::-1][:256]]
    table = np.stack([chosen >> 16, chosen >> 8 & 255, chosen & 255], axis=1).astype(np.int32)
    every = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(np.int32)
    nearest = np.empty(len(every), np.uint8)
    for start in range(0, len(every), 4096):
        part = every[start : start + 4096, None, :] - table[None, :, :]
        nearest[start : start + 4096] = (part * part).sum(axis=2).argmin(axis=1)
    rows = nearest[inverse].reshape(height, width)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [
        (b"IHDR", head),
        (b"PLTE", table.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def _pixels(data: bytes) -> NDArray[np.uint8]:
    """Height, width and colours of a picture as Chromium writes it: 8 bits, RGB or RGBA, not interlaced."""
    chunks = list(_chunks(data))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError("this is not a picture of Chromium")
    size = 3 if kind == 2 else 4
    raw = np.frombuffer(zlib.decompress(b"".join(part for name, part in chunks if name == b"IDAT")), np.uint8)
    rows = raw.reshape(height, 1 + width * size)
    out = np.zeros((height + 1, width * size), np.uint8)
    for at in range(height):
        out[at + 1] = _unfiltered(int(rows[at, 0]), rows[at, 1:], out[at], size)
    return out[1:].reshape(height, width, size)[:, :, :3]


def _unfiltered(how: int, row: NDArray[np.uint8], above: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    if how == 0:
        return row
    if how == 1:
        return np.cumsum(row.reshape(-1, size), axis=0, dtype=np.uint8).reshape(-1)
    if how == 2:
        return row + above
    out = [0] * size + row.tolist()
    over = [0] * size + above.tolist()
    for at in range(size, len(out)):
        left, up, corner = out[at - size], over[at], over[at - size]
        if how == 3:
            guess = (left + up) // 2
        else:
            first = left + up - corner
            guess = min((left, up, corner), key=lambda one: abs(first - one))
        out[at] = (out[at] + guess) & 255
    return np.array(out[size:], np.uint8)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
