"""Sync by rsync over ssh: 20 machines with 1,000 waiting handoffs each, and then with nothing new.

A real sshd on loopback stands for all of them, each with repositories of its own. Beside the first run: rsync of the
same files, one call a machine. Beside a run with nothing new: one `ssh HOST true` a machine; how often somebody logged
in is counted, too. CPU time is of truekeep and the programs that it runs, not of the sshd.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.sshd import SshHost, ssh_host

from bench.measure import Spent, scratch, table, watch
from bench.promises import CannotRun, keep
from truekeep.handoffs.sync.routes import Route, write_routes
from truekeep.workspace.workspace import Workspace

INBOX = ".claude/memory-handoffs"
_TEXT = (
    "# Memory Handoff\n\n## Type\nsetup\n\n## Title\nFact {n} of machine {m}\n\n## Summary\n{m} learned {n}.\n\n"
    "## Durable facts\n- Fact {n}\n\n## Recommended memory action\ncreate-card\n\n## Target card\nfact-{m}-{n}.md\n\n"
    "## Suggested card content\n---\ntopic: Fact {n} of machine {m}\ncategory: setup\ntags: []\n---\n\nFact {n}, {m}.\n"
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench sync", description=__doc__)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--handoffs", type=int, default=1_000)
    asked = parser.parse_args(arguments)
    if missing := [name for name in ("ssh", "sshd", "ssh-keygen", "rsync") if not shutil.which(name)]:
        raise CannotRun(f"not installed: {', '.join(missing)}")
    with scratch() as folder, ssh_host(folder, "laptop") as laptop:
        _run(folder, laptop, asked.machines, asked.handoffs)


def _run(folder: Path, laptop: SshHost, machines: int, handoffs: int) -> None:
    for machine in range(machines):
        inbox = laptop.base / f"m{machine}" / "repos" / "shop" / INBOX
        inbox.mkdir(parents=True)
        for number in range(handoffs):
            path = inbox / f"2026-11-14-{number // 60 % 24:02}{number % 60:02}-fact-{number}.md"
            path.write_text(_TEXT.format(n=number, m=machine))
            os.utime(path, (1_760_000_000, 1_760_000_000))
    workspace = folder / "workspace"
    Workspace.init(workspace)
    routes = {
        f"m{machine}": Route(
            f"m{machine}", "rsync", {**laptop.options, "repos": (f"{laptop.base}/m{machine}/repos/*",)}
        )
        for machine in range(machines)
    }
    write_routes(workspace / ".truekeep", routes)
    sync = [sys.executable, "-m", "truekeep", "-w", str(workspace), "sync", "run"]
    before = laptop.logins()
    first = watch(sync)
    came = laptop.logins() - before
    (folder / "plain").mkdir()
    plain = _added(
        watch(
            ["rsync", "-a", "-e", ssh_of(laptop), f"127.0.0.1:{laptop.base}/m{machine}/", f"{folder}/plain/m{machine}/"]
        )
        for machine in range(machines)
    )
    before = laptop.logins()
    idle = watch(sync)
    idle_logins = laptop.logins() - before
    trips = _added(watch([*ssh_of(laptop).split(" "), "127.0.0.1", "true"]) for _ in range(machines))
    ingest = watch([sys.executable, "-m", "truekeep", "-w", str(workspace), "ingest"])
    before = laptop.logins()
    receipts = watch(sync)
    left = sum(1 for _ in laptop.base.glob(f"m*/repos/shop/{INBOX}/*.md"))
    rows = [
        _row(f"first sync, {machines} x {handoffs}", first, plain, came),
        _row("rsync -a, one a machine", plain, plain, machines),
        _row("sync with nothing new", idle, trips, idle_logins),
        _row("ssh HOST true, one a machine", trips, trips, machines),
        _row("ingest of all of it", ingest, ingest, 0),
        _row("sync that leaves the receipts", receipts, trips, laptop.logins() - before),
    ]
    table(["", "CPU s", "wall s", "MB", "x baseline", "logins"], rows)
    print(f"waiting at the machines afterwards: {left}")
    keep(
        "sync.trips",
        idle_logins / machines,
        f"CPU {idle.cpu:.1f} s, ssh HOST true {trips.cpu:.1f} s; {machines} machines",
    )
    keep("sync.left", left, f"first sync CPU {first.cpu / plain.cpu:.1f} x rsync -a; {machines} x {handoffs:,}")


def ssh_of(laptop: SshHost) -> str:
    options = laptop.options["ssh_options"]
    assert isinstance(options, tuple)
    return " ".join(["ssh", "-p", str(laptop.port), *(f"-o{option.replace(chr(34), '')}" for option in options)])


def _added(runs: object) -> Spent:
    found = list(runs)  # type: ignore[call-overload]
    return Spent(sum(item.cpu for item in found), max(item.peak for item in found), sum(item.wall for item in found))


def _row(name: str, spent: Spent, base: Spent, logins: int) -> list[str]:
    ratio = f"{spent.cpu / base.cpu:.2f}" if base.cpu else "-"
    return [
        name,
        f"{spent.cpu:.2f}",
        f"{spent.wall:.1f}",
        f"{spent.peak / 1000:.0f}",
        ratio,
        str(logins) if logins else "",
    ]
