"""Results of the benchmarks that take long to make, on disk: in TRUEKEEP_BENCH_CACHE, or else beside the public sets.

A key is made of everything that the result depends on, so that nothing in here is ever out of date.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.corpus import data_folder


def cache_folder() -> Path:
    folder = Path(os.environ.get("TRUEKEEP_BENCH_CACHE") or data_folder() / "cache") / "recall"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest_of(*parts: object) -> str:
    """A short name for some values, the same in every process."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def digest_files(paths: Iterable[Path]) -> str:
    return digest_of(*((path.name, path.read_bytes()) for path in sorted(paths)))


def keep_file(name: str, make: Callable[[Path], object]) -> Path:
    """The file of this name; if there is none, `make` writes it. One that was made halfway is never seen."""
    path = cache_folder() / name
    if not path.exists():
        part = path.with_name(f"{name}.{os.getpid()}.part")
        part.unlink(missing_ok=True)
        make(part)
        part.replace(path)
    return path


def keep_value(name: str, make: Callable[[], Any]) -> Any:
    """The value of this name; if there is none, what `make` returns."""

    def write(path: Path) -> None:
        path.write_bytes(pickle.dumps(make(), pickle.HIGHEST_PROTOCOL))

    return pickle.loads(keep_file(f"{name}.pickle", write).read_bytes())
