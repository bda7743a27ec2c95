"""Live one day in a folder, and print its account as JSON: python -m tests.support.soak FOLDER [--handoffs N …]."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.support.soak.account import close
from tests.support.soak.day import Day, Scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, value in Scale()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = vars(parser.parse_args())
    day = Day(given.pop("folder"), Scale(**given))
    try:
        day.live()
        account = close(day)
    finally:
        for staying in day.staying:
            staying.stop()
    print(json.dumps(account._asdict()))


main()
