"""The team server on a real PostgreSQL: python -m bench.team [--chaos], and --help for sizes.

With --chaos, producers hand in to several server processes while these are killed (SIGKILL) and started again, the
database is stopped at once and started again, and connections are cut; then every acknowledged handoff must be filed
exactly once. Without it: time to import, disk, and search alone and with 50 clients, beside SQLite on the same memory.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
from tests.support import lore
from tests.support.helpers import a_card, a_handoff
from tests.support.postgres import Cluster, running_cluster

from truekeep.core.state_dir import STATE
from truekeep.interfaces.api.app import PREFIX
from truekeep.memory.ledger import Ledger
from truekeep.server.accounts import make_token, set_grant
from truekeep.server.administration import create_workspace, export_workspace, import_workspace, init_deployment
from truekeep.server.database import as_owner
from truekeep.workspace.workspace import Workspace


class Process:
    """A server process that can be killed and started again at the same address."""

    def __init__(self, database: str, data: Path, port: int = 0) -> None:
        self._database, self._data, self.port = database, data, port
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "truekeep",
            "server",
            "run",
            "--port",
            str(self.port),
            "--data",
            str(self._data),
        ]
        environment = {**os.environ, "TRUEKEEP_DATABASE": self._database}
        while True:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
            )
            assert self._process.stdout is not None
            found = re.search(r"http://\S+:(\d+)", self._process.stdout.readline())
            if found:
                self.port = int(found[1])
                return
            self.stop()  # the database is away
            time.sleep(0.3)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


# Chaos.


class Producer(threading.Thread):
    """Hands in until each of its handoffs is acknowledged, whatever happens meanwhile."""

    def __init__(self, number: int, count: int, token: str, servers: Sequence[Process]) -> None:
        super().__init__(daemon=True)
        self._number, self._count, self._token, self._servers = number, count, token, servers
        self.acknowledged: set[str] = set()
        self.tries: Counter[str] = Counter()

    def run(self) -> None:
        dice = random.Random(self._number)
        services = lore.services(dice, self._count)
        with httpx.Client(timeout=15, headers={"Authorization": f"Bearer {self._token}"}) as client:
            for number, service in enumerate(services):
                topic = f"{service.name} of team {self._number}"
                body = f"The {topic} listens on port {10_000 + self._number * 100 + number}."
                text = a_handoff(card=f"{service.slug}-{self._number}.md", title=topic, content=a_card(topic, body))
                self.acknowledged.add(self._hand_in(client, text, f"2026-11-14-0900-{self._number}-{number}.md", dice))

    def _hand_in(self, client: httpx.Client, text: str, name: str, dice: random.Random) -> str:
        while True:
            with suppress(httpx.HTTPError):
                url = f"{dice.choice(self._servers).url}{PREFIX}/team/handoffs?name={name}"
                answer = client.post(url, content=text)
                self.tries[str(answer.status_code)] += 1
                if answer.is_success:
                    return str(answer.json()["sha256"])
            self.tries["again"] += 1
            time.sleep(0.1 + dice.random() / 4)


def chaos(handoffs: int, producers: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="truekeep-team-"))
    each = handoffs // producers
    with running_cluster() as cluster:
        init_deployment(cluster.url, "bench")
        create_workspace(cluster.url, "team")
        servers = [Process(cluster.url, folder / f"server-{number}") for number in range(3)]
        threads = []
        for number in range(producers):
            set_grant(cluster.url, f"p{number}", "team", "writer")
            threads.append(Producer(number, each, make_token(cluster.url, f"p{number}")[1], servers))
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        disturbances = _disturb(cluster, servers, threads)
        told = time.perf_counter() - started
        _wait_until_filed(cluster.url, max(600, handoffs / 5))
        filed = time.perf_counter() - started
        for server in servers:
            server.stop()
        acknowledged = {digest for thread in threads for digest in thread.acknowledged}
        _check(cluster.url, acknowledged, folder / "out")
        again = sum(thread.tries["again"] for thread in threads)
        print(f"{len(acknowledged)} handoffs of {producers} producers were acknowledged in {told:.0f} s;")
        print(f"  {again} tries more, meanwhile {dict(disturbances)};")
        print(f"  all were filed after {filed:.0f} s, each exactly once")
    shutil.rmtree(folder, ignore_errors=True)


def _disturb(cluster: Cluster, servers: Sequence[Process], threads: Sequence[Producer]) -> Counter[str]:
    dice, done, rounds = random.Random(25), Counter[str](), 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.5)
        rounds += 1
        server = dice.choice(servers)
        if rounds % 6 == 5:
            cluster.stop("immediate")
            time.sleep(0.5)
            cluster.start()
            done["database stopped at once"] += 1
        elif rounds % 3 == 2:
            with psycopg.connect(cluster.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'truekeep'"
                )
            done["connections cut"] += 1
        elif rounds % 3 == 1:
            server._process.send_signal(signal.SIGSTOP)  # the lease moves meanwhile, if it had it
            threading.Timer(25, server._process.send_signal, (signal.SIGCONT,)).start()
            done["process paused 25 s"] += 1
            time.sleep(26)
        else:
            server.stop(signal.SIGKILL)
            server.start()
            done["process killed"] += 1
    return done


def _wait_until_filed(url: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with as_owner(url) as connection:
            if connection.execute("SELECT count(*) FROM handoff_queue WHERE state = 'waiting'").fetchone() == (0,):
                return
        time.sleep(0.2)
    raise SystemExit("some handoffs were never filed")


def _check(url: str, acknowledged: set[str], out: Path) -> None:
    """Every acknowledged handoff is in the ledger once, and its card or draft in the files."""
    export_workspace(url, "team", out)
    with as_owner(url) as connection:
        rows = connection.execute("SELECT encode(digest, 'hex'), state, outcome, target FROM handoff_queue").fetchall()
    assert {row[0] for row in rows} == acknowledged
    ledger = Ledger(str(out / STATE / "ledger.sqlite"), read_only=True)
    for digest, state, outcome, target in rows:
        assert (state, outcome) in {("done", "promoted"), ("done", "review")}, (state, outcome)
        assert ledger.find_handoff(bytes.fromhex(digest)) is not None
        assert (out / target).is_file()
        assert len(list(ledger.versions(target))) == 1, target
    ledger.close()


# Speed and size.


def memory_of(folder: Path, cards: int, seed: int) -> None:
    """A workspace of made-up cards, each of a few chunks."""
    dice = random.Random(seed)
    Workspace.init(folder)
    services = lore.services(dice, min(cards, len(lore.AREAS) * len(lore.ROLES)))
    for number in range(cards):
        service = services[number % len(services)]
        lines = [
            f"The {service.name} number {number} uses {dice.choice(lore.TOOLS)} and {dice.choice(lore.TOOLS)} on port"
            f" {dice.randrange(1024, 65_000)}; {dice.choice(lore.AREAS)} asks it for {dice.choice(lore.AREAS)}."
            for _ in range(12)
        ]
        path = folder / f"memory/cards/{service.slug}-{number}.md"
        path.write_text(a_card(f"{service.name} {number}", "\n\n".join(lines)))


def speed(workspaces: int, cards: int) -> None:
    base = Path(tempfile.mkdtemp(prefix="truekeep-team-"))
    with running_cluster() as cluster:
        init_deployment(cluster.url, "bench")
        set_up = []
        for number in range(workspaces):
            memory_of(base / f"w{number}", cards, number)
            started = time.perf_counter()
            with Workspace.open(base / f"w{number}") as opened:
                import_workspace(cluster.url, f"w{number}", opened)
            set_up.append(time.perf_counter() - started)
            set_grant(cluster.url, "ada", f"w{number}", "reader")
        with as_owner(cluster.url) as connection:
            size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        token = make_token(cluster.url, "ada")[1]
        server = Process(cluster.url, base / "server")
        try:
            started = time.perf_counter()
            first = [_ask(server.url, token, f"w{number}", "port of the checkout API") for number in range(workspaces)]
            ready = time.perf_counter() - started
            with Workspace.open(base / "w0") as opened:
                chunks = opened.search.index().chunks
                own = [
                    _timed(lambda query=query: opened.search.find(query, limit=8, within=1e9))
                    for query in _queries(200)
                ]
            alone = _searches(server.url, token, workspaces, clients=1, each=200)
            many = _searches(server.url, token, workspaces, clients=50, each=20)
        finally:
            server.stop()
        assert size is not None
        print(f"{workspaces} workspaces of {cards} cards, {chunks} chunks each")
        print(f"  import {statistics.median(set_up):.1f} s each; database {size[0] / 1e6 / workspaces:.1f} MB each")
        print(
            f"  first search of each (working folder and index): {ready / workspaces:.1f} s; slowest {max(first):.1f} s"
        )
        for name, times in (("SQLite in one process", own), ("server, 1 client", alone), ("server, 50 clients", many)):
            ordered = sorted(times)
            p50, p95 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
            print(f"  {name}: p50 {p50 * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms")
    shutil.rmtree(base, ignore_errors=True)


def _queries(count: int) -> list[str]:
    dice = random.Random(5)
    return [f"port of the {dice.choice(lore.AREAS)} {dice.choice(lore.ROLES)}" for _ in range(count)]


def _timed(act: object) -> float:
    started = time.perf_counter()
    act()  # type: ignore[operator]
    return time.perf_counter() - started


def _ask(url: str, token: str, workspace: str, query: str) -> float:
    started = time.perf_counter()
    answer = httpx.get(
        f"{url}{PREFIX}/{workspace}/search", params={"q": query, "limit": 8},
        headers={"Authorization": f"Bearer {token}"}, timeout=600,
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - started


def _searches(url: str, token: str, workspaces: int, *, clients: int, each: int) -> list[float]:
    times: list[float] = []

    def search(number: int) -> None:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
            for query in _queries(each):
                started = time.perf_counter()
                client.get(f"{PREFIX}/w{number % workspaces}/search", params={"q": query, "limit": 8})
                times.append(time.perf_counter() - started)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def main(options: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.team")
    parser.add_argument("--chaos", action="store_true")
    parser.add_argument("--handoffs", type=int, default=2_000)
    parser.add_argument("--producers", type=int, default=20)
    parser.add_argument("--workspaces", type=int, default=5)
    parser.add_argument("--cards", type=int, default=2_000)
    given = parser.parse_args(options)
    if given.chaos:
        chaos(given.handoffs, given.producers)
    else:
        speed(given.workspaces, given.cards)


if __name__ == "__main__":
    main(sys.argv[1:])
