"""A copy of 10,000 memory files on another machine, by rsync over ssh: the first, with nothing new, one changed file.

A real sshd on loopback is the other machine. Sending and installing are two steps, so that each has its own figure. The
other machine builds its index as it installs; what the host's own index of these files took is subtracted to tell how
much of it is the transfer. Beside the first copy: `rsync -a` of the same files, both of its sides. Beside nothing new:
one `ssh HOST true`, and the logins. Then search, wake and the hook SessionStart, on the host and in the copy, each in a
process of its own, by turns. CPU time is of truekeep and the programs that it runs, not of the sshd.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.sshd import SshHost, ssh_host

from bench.measure import Spent, scratch, table, watch
from bench.promises import CannotRun, keep
from bench.sync import ssh_of
from truekeep.handoffs.sync.routes import Route, write_routes
from truekeep.workspace.workspace import Workspace

ROUNDS = 5
_CARD = (
    "---\ntopic: Fact {n} of service {s}\ncategory: setup\ntags: [service-{s}]\ncreated: 2026-10-01\n---\n\n"
    "Service {s} keeps table `orders_{n}` on node {m}, and its queue drains every {n} seconds.\n"
    "Deploys of part {n} go to node {m} first; the rest follows after an hour.\n"
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench copy", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    asked = parser.parse_args(arguments)
    if missing := [name for name in ("ssh", "sshd", "ssh-keygen", "rsync") if not shutil.which(name)]:
        raise CannotRun(f"not installed: {', '.join(missing)}")
    with scratch() as folder, ssh_host(folder, "laptop") as laptop:
        _run(folder, laptop, asked.files)


def _run(folder: Path, laptop: SshHost, files: int) -> None:
    workspace = folder / "workspace"
    Workspace.init(workspace)
    for number in range(files):
        path = workspace / f"memory/cards/fact-{number}.md"
        path.write_text(_CARD.format(n=number, s=number % 97, m=number % 13))
        os.utime(path, (1_760_000_000, 1_760_000_000))
    options = {**laptop.options, "repos": (f"{laptop.base}/repos/*",), "memory": True}
    write_routes(workspace / ".truekeep", {"laptop": Route("laptop", "rsync", options)})
    there = {"HOME": str(laptop.home), "TRUEKEEP_MACHINE_ID": "laptop"}
    program = [sys.executable, "-m", "truekeep"]
    host = [*program, "-w", str(workspace)]
    index = watch([*host, "index"])
    sync, receive = [*host, "sync", "run"], [*program, "sync", "receive"]

    sent = watch(sync)
    installed = watch(receive, **there)
    (folder / "plain").mkdir()
    plain = watch(["rsync", "-a", f"{workspace}/memory", f"{folder}/plain/"])  # here, so that both of its sides count
    before = laptop.logins()
    idle = watch(sync)
    logins = laptop.logins() - before
    trip = watch([*ssh_of(laptop).split(" "), "127.0.0.1", "true"])
    (workspace / "memory/cards/fact-7.md").write_text(_CARD.format(n=7, s=7, m=99))
    watch([*host, "index"])
    resent = watch(sync)
    updated = watch(receive, **there)
    asked = {
        "search": ["search", "which node keeps orders_77"],
        "wake": ["wake"],
        "session-start": ["hook", "session-start", "--for", "claude"],
    }
    started = json.dumps({"session_id": "s1", "cwd": str(folder), "source": "startup"})
    spent = {name: _least([*host, *words], [*program, *words], there, started) for name, words in asked.items()}
    transfer = sent.cpu + max(0.0, installed.cpu - index.cpu)
    rows = [
        _row(f"first copy, {files} files: sent", sent, plain),
        _row("first copy: installed and indexed there", installed, plain),
        _row("index of the host, of the same files", index, plain),
        _row("rsync -a of the same files", plain, plain),
        _row("nothing new", idle, trip, str(logins)),
        _row("ssh HOST true", trip, trip, "1"),
        _row("one changed file: sent", resent, sent),
        _row("one changed file: installed there", updated, installed),
        *(
            _row(f"{name} {where}", Spent(cpu, 0, 0.0), Spent(pair[0], 0, 0.0))
            for name, pair in spent.items()
            for where, cpu in zip(("on the host", "in the copy"), pair, strict=True)
        ),
    ]
    table(["", "CPU s", "wall s", "MB", "x baseline", "logins"], rows)
    both = (sent.cpu + installed.cpu) / plain.cpu
    detail = f"sent {sent.cpu:.1f} s, installed and indexed {installed.cpu:.1f} s, rsync -a {plain.cpu:.1f} s"
    keep("copy.first", both, detail)
    keep("copy.transfer", transfer / plain.cpu, f"{transfer:.1f} s, the host's own index took {index.cpu:.1f} s")
    keep("copy.trips", logins, f"CPU {idle.cpu:.2f} s, ssh HOST true {trip.cpu:.2f} s")
    changed = (resent.cpu + updated.cpu) / (sent.cpu + installed.cpu)
    keep("copy.changed", changed, f"sent {resent.cpu:.1f} s, installed {updated.cpu:.1f} s")
    keep(
        "copy.session-start", 1000 * spent["session-start"][1], f"on the host {1000 * spent['session-start'][0]:.0f} ms"
    )
    for name, (mine, theirs) in list(spent.items())[:2]:
        keep(f"copy.{name}", theirs / mine, f"{1000 * theirs:.0f} ms, on the host {1000 * mine:.0f} ms")


def _least(host: Sequence[str], copy: Sequence[str], there: dict[str, str], given: str) -> tuple[float, float]:
    """The least CPU of a command on the host and in the copy, by turns."""
    found = [(watch(host, given=given).cpu, watch(copy, given=given, **there).cpu) for _ in range(ROUNDS)]
    return min(mine for mine, _ in found), min(theirs for _, theirs in found)


def _row(name: str, spent: Spent, base: Spent, logins: str = "") -> list[str]:
    ratio = f"{spent.cpu / base.cpu:.2f}" if base.cpu else "-"
    return [name, f"{spent.cpu:.2f}", f"{spent.wall:.1f}", f"{spent.peak / 1000:.0f}", ratio, logins]
