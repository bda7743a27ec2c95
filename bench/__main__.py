"""Every benchmark, one after the other: python -m bench [name …], or one of them with its options.

Each prints ratios beside a baseline that ran in the same minute on the same machine. Absolute times say little:
machines differ, and a shared one is noisy, so rounds are interleaved and medians or minima are compared.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from itertools import takewhile

from bench import (
    alf,
    hooks,
    ingest,
    recall_quality,
    recall_speed,
    startup,
    sync,
    transcripts,
    truth_speed,
    upkeep,
    website,
    year,
)
from bench.truth import run as truth

BENCHES: dict[str, Callable[[Sequence[str]], None]] = {
    "ingest": lambda _: ingest.main(),
    "startup": lambda _: startup.main(),
    "hooks": lambda _: hooks.main(),
    "recall-quality": recall_quality.main,
    "recall-speed": recall_speed.main,
    "truth": truth.main,
    "truth-speed": truth_speed.main,
    "transcripts": lambda _: transcripts.main(),
    "alf": alf.main,
    "sync": sync.main,
    "upkeep": upkeep.main,
    "year": year.main,
    "site": website.main,
}
ALONE = ("year",)  # half an hour: only when it is named


def main() -> None:
    names = list(takewhile(lambda argument: not argument.startswith("-"), sys.argv[1:]))
    options = sys.argv[1 + len(names) :]
    if any(name not in BENCHES for name in names) or (options and len(names) != 1):
        raise SystemExit(f"usage: python -m bench [{'|'.join(BENCHES)} …], or one of them with its options (--help)")
    print(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in names or [name for name in BENCHES if name not in ALONE]:
        print(f"\n== {name}")
        BENCHES[name](options)


main()
