"""Every benchmark, one after the other: python -m bench [name …]

Each prints ratios beside a baseline that ran in the same minute on the same machine. Absolute times say little:
machines differ, and a shared one is noisy, so rounds are interleaved and the medians are compared.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

from bench import ingest, startup

BENCHES: dict[str, Callable[[], None]] = {"ingest": ingest.main, "startup": startup.main}


def main() -> None:
    print(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in sys.argv[1:] or BENCHES:
        print(f"\n== {name}")
        BENCHES[name]()


main()
