"""The whole made-up year of tests/support/year.py: 365 nights, 20 agents, 5,000 cards; what was found, missed and lost.

It takes more than an hour of CPU. tests/robustness/test_year.py lives a tenth of it with every run of the tests.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from unittest.mock import patch

from tests.support.nights import Nights
from tests.support.year import Scale, Year

from bench.measure import cpu_of, scratch, table
from bench.promises import keep


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench year")
    parser.add_argument("--cards", type=int, default=5_000, help="at the end of the year")
    parser.add_argument("--nights", type=int, default=365, help="of the year that are lived")
    parser.add_argument("--seed", type=int, default=8)
    given = parser.parse_args(options)
    scale = Scale(cards=given.cards, nights=given.nights, seed=given.seed)
    with scratch() as folder, tempfile.TemporaryDirectory() as home:
        own = {"HOME": home, "TRUEKEEP_MACHINE_ID": "bench", "GIT_CONFIG_GLOBAL": os.devnull}
        with patch.dict(os.environ, own):
            nights = Nights(Year(folder, scale), print)
            spent = cpu_of(nights.live)
            lines = nights.check_ledger()
            nights.check_sources()
            nights.check_search()
    rows = [[kind, str(count), str(nights.found[kind])] for kind, count in sorted(nights.planted.items())]
    table(["planted", "", "found"], rows)
    print(f"  {lines:,} lines that cards ever said were followed; a person decided {dict(nights.decided)}")
    print(f"  found and not there: {dict(nights.false_kinds) or 'nothing'}")
    print(f"  {spent:.0f} s of CPU, {spent / given.nights:.2f} s a night with all that checks it")
    planted = f"{sum(nights.planted.values()):,} planted, {given.cards:,} cards, {given.nights} nights"
    keep("year.missed", len(nights.missed), planted)
    keep("year.false", len(nights.falsely), planted)
    for what in (*nights.missed[:20], *nights.falsely[:20]):
        print(f"  ! {what[:300]}")
    if nights.missed:
        raise SystemExit(f"{len(nights.missed)} missed or lost")


if __name__ == "__main__":
    main()
