"""A day of traffic in minutes, under one seed: 1,000 handoffs of 20 machines, and everything that goes wrong meanwhile.

`tests/support/soak` lives it; here is the table of what happened, where everything ended, and whether those that
stayed all day
hold more, or work longer for a search, than before. The morning ends with a quarter of the rounds: by then they have
loaded what they need.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from tests.support.soak.account import Account
from tests.support.soak.apart import live_apart
from tests.support.soak.day import Scale

from bench.measure import scratch, table
from bench.promises import keep

HOURS = 3600.0
WRONG = ("killed", "stopped", "clock jumps", "disks full")
HELD = ("descriptors", "threads", "locks")


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench soak")
    for name, value in Scale()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=value)
    scale = Scale(**vars(parser.parse_args(options)))
    with scratch() as base:
        account = live_apart(base, scale, seconds=HOURS)
    table(["", "morning", "evening", "most", "a fresh one"], list(stayed(account)))
    print(f"  {scale.handoffs:,} handoffs of {scale.machines} machines in {scale.rounds} rounds, seed {scale.seed}")
    print(f"  they were: {listed(account.letters)}")
    print(f"  they ended as: {listed(account.outcomes)}")
    print(f"  {sum(account.ends.values())} programs were run; besides: {listed(account.happened)}")
    for name in account.skipped:
        print(f"  left out: {name}")
    tell(account, f"{scale.handoffs:,} handoffs, {listed({key: account.happened.get(key, 0) for key in WRONG})}")
    for problem in account.problems:
        print(f"  ! {problem[:600]}")
    if account.problems:
        raise SystemExit(f"{len(account.problems)} lost or left lying about")


def stayed(account: Account) -> Iterator[list[str]]:
    """A row for whatever those that stay hold, and one for what they work."""
    for name, readings in account.held.items():
        morning, evening, most = (
            readings[len(readings) // 4],
            readings[-1],
            [max(row) for row in zip(*readings, strict=True)],
        )
        yield [f"{name}: MB", *(f"{row[0] / 1e6:.0f}" for row in (morning, evening, most)), ""]
        for at, what in enumerate(HELD, start=1):
            yield [f"{name}: {what}", *(str(row[at]) for row in (morning, evening, most)), ""]
    for name, (first, last, fresh) in account.searches.items():
        yield [f"{name}: ms a search, CPU", f"{1000 * first:.1f}", f"{1000 * last:.1f}", "", f"{1000 * fresh:.1f}"]


def tell(account: Account, beside: str) -> None:
    pairs = [(readings[len(readings) // 4], readings[-1]) for readings in account.held.values()]
    keep("soak.lost", len(account.problems), beside)
    keep("soak.memory", max(last[0] / first[0] for first, last in pairs), ", ".join(account.held))
    more = 0
    for readings in account.held.values():
        before_noon = [max(row) for row in zip(*readings[: len(readings) // 2], strict=True)]
        more += sum(max(0, readings[-1][at] - before_noon[at]) for at in range(1, 1 + len(HELD)))
    keep("soak.held", more, beside)
    aged = {name: last / fresh for name, (_, last, fresh) in account.searches.items()}
    grown = ", ".join(
        f"{name} {last / first:.2f} x its morning's" for name, (first, last, _) in account.searches.items()
    )
    keep("soak.search", max(aged.values()), grown)


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]) if count)


if __name__ == "__main__":
    main()
