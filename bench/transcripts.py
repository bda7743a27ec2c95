"""The archive of sessions: what a first sync, an idle one and one more turn cost.

A first sync is put beside reading the same files and compressing all of their bytes with zlib, an idle one beside a
bare walk that only stats the files, and one more turn beside that.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from bench.measure import cpu_of, least, scratch, table
from bench.promises import keep
from bench.prose import Prose
from truekeep.transcripts.importer import Sync, TranscriptImportReport, Where
from truekeep.transcripts.locations import find_transcripts
from truekeep.transcripts.store import TranscriptStore

SESSIONS, TURNS = 400, 30
ROUNDS = 5


def main(_options: Sequence[str] = ()) -> None:
    with scratch() as home:
        size = _write_sessions(home)
        first = _syncing(home, "first")
        last = home / ".claude/projects/-home-me-app/0000.jsonl"
        times: dict[str, list[float]] = {"read and zlib": [], "first sync": []}
        done: list[TranscriptImportReport] = []
        for _ in range(ROUNDS):
            times["read and zlib"].append(cpu_of(lambda: _read_and_compress(home)))
            shutil.rmtree(home / "first", ignore_errors=True)
            times["first sync"].append(cpu_of(lambda: done.append(first())))
        said = done[-1]
        idle = least(ROUNDS * 4, {"stat walk": lambda: _walk(home), "idle sync": first})
        grown: list[float] = []
        for number in range(ROUNDS * 4):
            with last.open("a") as file:
                new = file.write(_row("user", f"and now {number}?"))
            grown.append(cpu_of(lambda: done.append(first())))
        whole, bare = min(times["first sync"]), min(times["read and zlib"])
        rows = [
            ["read and zlib", f"{bare * 1000:.1f} ms", "1.0 x", f"{size / bare / 1e6:.0f} MB/s"],
            ["first sync", f"{whole * 1000:.1f} ms", f"{whole / bare:.2f} x", f"{size / whole / 1e6:.0f} MB/s"],
            ["stat walk", f"{idle['stat walk'] * 1000:.1f} ms", "1.0 x", ""],
            ["idle sync", f"{idle['idle sync'] * 1000:.1f} ms", f"{idle['idle sync'] / idle['stat walk']:.2f} x", ""],
            ["one more turn", f"{min(grown) * 1000:.1f} ms", f"{min(grown) / idle['idle sync']:.2f} x idle", ""],
        ]
        table([f"{SESSIONS} sessions, {size / 1e6:.0f} MB, CPU, least", "time", "beside", "rate"], rows)
        told = f"{said.turns} turns in {said.size / 1e6:.1f} MB, {said.size / size:.1%} of the originals"
        print(f"  the archive keeps {told}; one more turn read {done[-1].bytes} bytes")
        keep("transcripts.turn", done[-1].bytes / new, f"{new} bytes were added")
        walk = f"stat walk {idle['stat walk'] * 1000:.1f} ms"
        keep("transcripts.idle", idle["idle sync"] / idle["stat walk"], walk)


def _syncing(home: Path, name: str) -> Callable[[], TranscriptImportReport]:
    where = Where(home, {}, "bench", datetime.now().astimezone(), 365, os.path.basename)

    def sync() -> TranscriptImportReport:
        store = TranscriptStore(str(home / name / "archive.sqlite"))
        try:
            return Sync(store, where).run()
        finally:
            store.close()

    return sync


def _write_sessions(home: Path) -> int:
    """Sessions as Claude Code writes them: for each turn of speech, many times as much that is none."""
    draw = random.Random(20261115)
    prose = Prose(20_000)
    folder = home / ".claude/projects/-home-me-app"
    folder.mkdir(parents=True)
    size = 0
    for number in range(SESSIONS):
        with (folder / f"{number:04}.jsonl").open("w") as file:
            for turn in range(TURNS):
                text = prose.note(draw.choice((80, 300, 800, 2400)))
                file.write(_row(("user", "assistant")[turn % 2], text))
                noise = prose.note(3000)
                for kind in ("attachment", "progress", "api-request"):
                    file.write(json.dumps({"type": kind, "sessionId": "s", "content": noise}) + "\n")
            size += file.tell()
    return size


def _row(role: str, text: str) -> str:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    row = {"type": role, "cwd": "/home/me/app", "timestamp": "2026-11-15T10:20:30Z", "message": message}
    return json.dumps(row) + "\n"


def _read_and_compress(home: Path) -> int:
    files = find_transcripts(home=home, environ={}, since=None)
    return sum(len(zlib.compress(file.path.read_bytes(), 6)) for file in files)


def _walk(home: Path) -> int:
    folders = os.scandir(home / ".claude/projects")
    return sum(1 for folder in folders for item in os.scandir(folder) if item.stat().st_size)


if __name__ == "__main__":
    main()
