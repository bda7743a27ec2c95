"""The site under load: 50 requests at a time for a minute at 10,000 cards, and each page asked for alone.

The real `truekeep serve` in a process of its own; beside it a bare Starlette page under the same uvicorn, asked in
turns in the same minute. With 50 at a time a request waits for the 49 before it, so there the number that says most is
pages a second; alone, it is the time of a page. Every answer must be whole, and 200.

python -m bench site [--cards 10000] [--seconds 60] [--at-once 50]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from bench.measure import median, scratch, table
from bench.promises import keep
from bench.prose import Prose
from bench.recall_speed import milliseconds
from truekeep.workspace.workspace import Workspace

INBOX = ".claude/memory-handoffs"
FILED, DRAFTS, LOGS = 400, 60, 200  # handoffs that become cards, that wait for review; logs
CHARS = 900  # of a card
ALONE = 40  # requests for each page, one after the other
SLICE = 5.0  # seconds of load between two looks at the bare page
BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
async def page(request):
    return HTMLResponse("<!doctype html><title>bare</title>" + "<p>text</p>" * 800)
app = Starlette(routes=[Route("/", page)])
uvicorn.run(app, port=int(sys.argv[1]), http="h11", log_config=None, access_log=False)
"""
HANDOFF = (
    "# Memory Handoff\n\n## Type\nsetup\n\n## Title\n{topic}\n\n## Summary\n{topic}.\n\n## Durable facts\n- {topic}\n\n"
    "## Recommended memory action\n{action}\n\n## Target card\n{name}.md\n\n## Suggested card content\n{card}"
)


class Answer(NamedTuple):
    """One request, as it went."""

    page: str
    seconds: float
    size: int
    problem: str = ""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench site", description=__doc__)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--at-once", type=int, default=50)
    asked = parser.parse_args(arguments)
    with scratch() as folder:
        env = {**os.environ, "HOME": str(folder / "home"), "TRUEKEEP_MACHINE_ID": "bench", "PYTHONUNBUFFERED": "1"}
        os.environ.update(env)
        begun = time.monotonic()
        questions = build(folder, asked.cards)
        print(f"  made {asked.cards:,} cards, indexed and surveyed, in {time.monotonic() - begun:.0f} s")
        with serving(folder, env) as (process, port, cookie), bare() as other:
            asyncio.run(_measure(port, cookie, other, questions, asked.cards, asked.seconds, asked.at_once, process))


def build(folder: Path, cards: int) -> list[str]:
    """A memory of so many cards, some of which came by handoff, drafts, logs; index and survey up to date."""
    workspace, repo = folder / "workspace", folder / "repos" / "app"
    repo.mkdir(parents=True)
    git = ["git", "-C", str(repo), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for order in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*git, *order], check=True)
    (repo / INBOX).mkdir(parents=True)
    Workspace.init(workspace, repositories=[str(repo)])
    prose, rng, today = Prose(8_000), Random(9), date.today()  # noqa: DTZ011 - days of this machine, as cards have them
    questions, lines = [], []
    (workspace / "memory" / "cards").mkdir(parents=True, exist_ok=True)
    for number in range(cards - FILED):
        text = prose.note(CHARS)
        topic = " ".join(text.split()[:6]).strip("#-* ").replace(":", "")[:60] or f"note {number}"
        day = today - timedelta(days=rng.randrange(400))
        name = f"card-{number:05}"
        front = f"topic: {topic} {number}\ncategory: c{number % 12}\ntags: [t{number % 40}, u{number % 7}]\n"
        origin = f"created: {day}\nupdated: {day}\nrepository: example.org/app{number % 20}\nwriter: claude\n"
        (workspace / "memory" / "cards" / f"{name}.md").write_text(f"---\n{front}{origin}---\n\n{text}\n")
        if number < 150:
            lines.append(f"- [{topic}](memory/cards/{name}.md)\n")
        if number % (cards // 40) == 0:
            questions.append(prose.question(text))
    (workspace / "MEMORY.md").write_text("# Memory\n\n## Cards\n\n" + "".join(lines))
    for number in range(LOGS):
        day = today - timedelta(days=number)
        (workspace / "memory" / f"{day}.md").write_text(f"# {day}\n\n{prose.note(600)}\n")
    for number in range(FILED + DRAFTS):
        topic = f"Handed in {number}"
        card = f"---\ntopic: {topic}\ncategory: setup\ntags: [h]\n---\n\n{prose.note(400)}\n"
        action = "create-card" if number < FILED else "update-card"
        path = repo / INBOX / f"2026-11-14-{number // 60 % 24:02}{number % 60:02}-handed-{number}.md"
        path.write_text(HANDOFF.format(topic=topic, action=action, name=f"handed-{number}", card=card))
        os.utime(path, (1_760_000_000, 1_760_000_000))
    time.sleep(2.1)  # seconds after which a file's times prove that it did not change
    with Workspace.open(workspace) as opened:
        opened.handoffs.ingest()
        opened.search.index()
        opened.maintenance.survey()
        opened.verification.verify()
    return questions


@contextmanager
def serving(folder: Path, env: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """The site: its process, its port, and the cookie of somebody who came in."""
    command = [sys.executable, "-m", "truekeep", "serve", "--port", "0", "--workspace", str(folder / "workspace")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(env))
    try:
        assert process.stdout is not None
        text = process.stdout.readline() + process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", text)
        if found is None:
            raise SystemExit(f"truekeep serve said: {text}")
        port = int(found[1])
        head = asyncio.run(_whole(port, found[2]))
        yield process.pid, port, re.search(r"(?i)set-cookie: ([^;]+)", head)[1]  # type: ignore[index] # the link leaves one
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare() -> Iterator[int]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)], stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for _ in range(100):
        try:
            return await asyncio.open_connection("127.0.0.1", port, limit=4_000_000)
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


async def _whole(port: int, path: str, cookie: str = "") -> str:
    """One answer, head and body."""
    reader, writer = await _connect(port)
    asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    writer.write(asked.encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


class Client:
    """One keep-alive connection, as lean as can be: both programs share the machine."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self._port, self._cookie = port, cookie
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, page: str, path: str) -> Answer:
        if self._streams is None:
            self._streams = await _connect(self._port)
        reader, writer = self._streams
        begun = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {self._cookie}\r\n\r\n".encode())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index] # every page has one
            body = await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError, TypeError) as error:
            self._streams = None
            return Answer(page, time.perf_counter() - begun, 0, f"{path}: {type(error).__name__}")
        seconds = time.perf_counter() - begun
        is_whole = head.startswith(b"http/1.1 200") and body.rstrip().endswith((b"</html>", b"</p>"))
        return Answer(page, seconds, length, "" if is_whole else f"{path}: {head[:20]!r}")

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def _measure(
    port: int, cookie: str, other: int, questions: Sequence[str], cards: int, seconds: float, at_once: int, process: int
) -> None:
    ways = await _ways(port, cookie, questions, cards)
    alone, cpu = await _alone(port, cookie, other, ways, process)
    loaded: dict[str, list[Answer]] = {page: [] for page in [*ways, "bare page"]}
    spent = {"site": 0.0, "bare page": 0.0}
    while spent["site"] < seconds:
        for kind, target, word, share in (("site", port, cookie, SLICE), ("bare page", other, "", 1.0)):
            begun = time.perf_counter()
            choices = ways if kind == "site" else {"bare page": ["/"]}
            for answer in await _load(target, word, choices, share, at_once):
                loaded[answer.page].append(answer)
            spent[kind] += time.perf_counter() - begun
    _report(alone, cpu, loaded, spent, at_once, f"{cards:,} cards")


async def _ways(port: int, cookie: str, questions: Sequence[str], cards: int) -> dict[str, list[str]]:
    """Addresses of each page: many cards, questions, entries, so that it is not always the same one."""
    client = Client(port, cookie)
    rng = Random(4)
    reader, writer = await _connect(port)
    writer.write(
        f"GET /review HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode()
    )
    drafts = sorted(set(re.findall(r'href="(/review/handed-[^"?]+)"', (await reader.read()).decode())))
    writer.close()
    client.close()
    return {
        "Today": ["/"],
        "Review": ["/review"],
        "a draft": drafts,
        "Memory": ["/memory", *(f"/memory?page={page}" for page in (2, 17, 150)), "/memory?tag=t3", "/memory?sort=age"],
        "a card": [f"/memory/file/memory/cards/card-{rng.randrange(cards - FILED):05}.md" for _ in range(200)],
        "Search": [f"/search?q={quote_plus(question)}" for question in questions],
        "as one types": [f"/search?q={quote(question[:12])}&fragment=1" for question in questions],
        "History": ["/history", "/history?writer=claude"],
        "an act": [f"/history/{number}" for number in range(1, 300, 7)],
        "Transcripts": ["/transcripts"],
    }


async def _alone(
    port: int, cookie: str, other: int, ways: Mapping[str, Sequence[str]], process: int
) -> tuple[dict[str, list[Answer]], dict[str, float]]:
    """Each page by itself, in turns with the bare one; and the CPU seconds of a page."""
    site, plain = Client(port, cookie), Client(other)
    found: dict[str, list[Answer]] = {page: [] for page in [*ways, "bare page"]}
    spent: dict[str, float] = {}
    for page, paths in ways.items():
        for path in paths[:2]:  # by then everything is loaded
            await site.ask(page, path)
        before = cpu_of(process)
        for turn in range(ALONE):
            found[page].append(await site.ask(page, paths[turn % len(paths)]))
            found["bare page"].append(await plain.ask("bare page", "/"))
        spent[page] = (cpu_of(process) - before) / ALONE
    site.close()
    plain.close()
    return found, spent


def cpu_of(process: int) -> float:
    """The CPU seconds that a program has taken so far; what others do on the machine is not in it. 0 if unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _load(
    port: int, cookie: str, ways: Mapping[str, Sequence[str]], seconds: float, at_once: int
) -> list[Answer]:
    until = time.perf_counter() + seconds
    found: list[Answer] = []

    async def one(number: int) -> None:
        rng, client, pages = Random(number), Client(port, cookie), list(ways)
        while time.perf_counter() < until:
            page = rng.choice(pages)
            found.append(await client.ask(page, rng.choice(ways[page])))
        client.close()

    await asyncio.gather(*(one(number) for number in range(at_once)))
    return found


def _report(
    alone: Mapping[str, Sequence[Answer]],
    cpu: Mapping[str, float],
    loaded: Mapping[str, Sequence[Answer]],
    spent: Mapping[str, float],
    at_once: int,
    size: str,
) -> None:
    problems = [answer.problem for found in (alone, loaded) for answers in found.values() for answer in answers]
    base = {kind: median([one.seconds for one in found["bare page"]]) for kind, found in (("a", alone), ("l", loaded))}
    rows = []
    for page in alone:
        one, many = ([answer.seconds for answer in found[page]] for found in (alone, loaded))
        spent_here = [milliseconds(cpu[page]) if cpu.get(page) else ""]
        alone_here = [milliseconds(median(one)), milliseconds(late(one)), f"{median(one) / base['a']:.1f} x"]
        loaded_here = [milliseconds(median(many)), milliseconds(late(many)), f"{median(many) / base['l']:.1f} x"]
        weight = f"{median([answer.size for answer in alone[page]]) / 1000:.0f} kB"
        rows.append([page, *spent_here, *alone_here, *loaded_here, f"{len(many):,}", weight])
    headers = [
        "page",
        "CPU",
        "alone p50",
        "p95",
        "/ bare",
        f"{at_once} at once p50",
        "p95",
        "/ bare",
        "answers",
        "size",
    ]
    table(headers, rows)
    site = sum(len(answers) for page, answers in loaded.items() if page != "bare page")
    plain = len(loaded["bare page"])
    wrong = [problem for problem in problems if problem]
    print(
        f"  {site:,} answers in {spent['site']:.0f} s: {site / spent['site']:.0f} a second, the bare page"
        f" {plain / spent['bare page']:.0f}; {len(wrong)} went wrong"
    )
    print("  promised: no error; a page alone in under 100 ms at 10,000 cards")
    _tell(alone, cpu, loaded, len(wrong), size)
    if wrong:
        raise SystemExit("\n".join(sorted(set(wrong))[:10]))


def _tell(
    alone: Mapping[str, Sequence[Answer]],
    cpu: Mapping[str, float],
    loaded: Mapping[str, Sequence[Answer]],
    errors: int,
    size: str,
) -> None:
    times = {page: late([one.seconds for one in answers]) for page, answers in alone.items()}
    bare = times.pop("bare page")
    slowest = sorted(times, key=lambda page: -times[page])
    said = ", ".join(f"{page} {milliseconds(times[page])} (CPU {milliseconds(cpu[page])})" for page in slowest[:3])
    keep("site.page", times[slowest[0]] * 1000, f"{said}; bare page {milliseconds(bare)}; {size}")
    many = [one.seconds for page, answers in loaded.items() if page != "bare page" for one in answers]
    keep("site.errors", errors, f"{len(many):,} answers, {size}")
    plain = late([one.seconds for one in loaded["bare page"]])
    keep("site.late", late(many) * 1000, f"bare page {milliseconds(plain)}")


def late(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
