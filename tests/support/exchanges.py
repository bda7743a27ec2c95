"""Machines that exchange handoffs: producers with repositories, a host with a workspace, and faults between them."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import CLAUDE, CODEX, Place, a_card, a_handoff, git_repo
from truekeep.core.model import WRITERS
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import slug
from truekeep.handoffs.sync.receipts import read_signer
from truekeep.handoffs.sync.routes import Option, Route
from truekeep.handoffs.sync.runner import LocalMachine, transport
from truekeep.workspace.machine_role import side_of

REPOSITORIES = ('it\'s a "repo"', "plain")


class Killed(BaseException):
    """The process ends here, as by a signal: nothing catches it."""


@dataclass
class Producer:
    """A machine that writes handoffs."""

    base: Path
    name: str
    seconds: float = 60
    left: list[tuple[str, str, str]] = field(default_factory=list)  # digest, repository, writer

    @property
    def here(self) -> LocalMachine:
        state = self.base / "state"
        return LocalMachine(state, False, self.name, WRITERS, 0, seconds=self.seconds, id=f"id of {self.name}")

    def repo(self, name: str = REPOSITORIES[0]) -> Path:
        path = self.base / "repos" / name
        if not path.exists():
            git_repo(path, remote=f"https://github.com/me/{slug(name)}.git")
        return path

    def leave(self, card: str, *, repo: str = REPOSITORIES[0], inbox: str = CLAUDE, name: str = "") -> Path:
        """Write a handoff for a card of its own, as if a minute ago."""
        text = a_handoff(title=f"About {card}", card=f"{card}.md", content=a_card(topic=card, body=f"It is {card}."))
        folder = self.repo(repo) / inbox
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"2026-11-14-0900-{card}.md")
        path.write_text(text)
        then = time.time() - 60
        os.utime(path, (then, then))
        writer = next(key for key, value in WRITERS.items() if value == inbox)
        self.left.append((hashlib.sha256(text.encode()).hexdigest(), repo, writer))
        return path

    def route(self, via: str, remote: str, **options: Option) -> Route:
        paired = {"host_key": read_signer().public}  # one home for all machines of a test: the host's key is in it
        repos = (str(self.base / "repos" / "*"),)
        return Route(f"by-{via}", via, {"remote": remote, "repos": repos, **paired, **options})

    def waiting(self) -> list[str]:
        return sorted(path.name for path in self.base.glob("repos/*/.c*/memory-handoffs/*.md"))

    def processed(self) -> list[str]:
        return sorted(path.name for path in self.base.glob("repos/*/.c*/memory-handoffs/processed/*.md"))


@dataclass
class Trio:
    """Two producers and a host, and the way between them."""

    base: Path
    via: str
    remote: str
    place: Place
    one: Producer
    two: Producer
    options: Mapping[str, Option] = field(default_factory=dict)

    @classmethod
    def make(cls, base: Path, via: str, remote: str, **options: Option) -> Trio:
        (base / "host").mkdir()
        place = Place.make(base / "host")
        one, two = (Producer(base / name.replace(" ", "-"), name) for name in ("lap top", "desk"))
        return cls(base, via, remote, place, one, two, options)

    def send(self, producer: Producer) -> Contact:
        return transport(self.via)(producer.route(self.via, self.remote, **self.options), producer.here)

    def host_here(self) -> LocalMachine:
        with self.place.open() as workspace:
            return side_of(workspace)._replace(seconds=60)

    def receive(self, route: str = "") -> Contact:
        named = Route(route or f"by-{self.via}", self.via, {"remote": self.remote, **self.options})
        return transport(self.via)(named, self.host_here())

    def round(self) -> None:
        """Everybody's timer goes off once, and the host files what came."""
        for producer in (self.one, self.two):
            self.send(producer)
        self.receive()
        self.place.ingest()

    def settle(self) -> None:
        """Everything goes there and its receipt comes back: as many rounds as a timer would need at most."""
        for _ in range(3):
            self.round()
            self.receive()
            for producer in (self.one, self.two):
                self.send(producer)
            if not any(producer.waiting() or self.offered(producer) for producer in (self.one, self.two)):
                return

    def offered(self, producer: Producer) -> list[Path]:
        """What still lies in a machine's exchange."""
        base = producer.here.exchange(producer.route(self.via, self.remote))
        return [path for path in base.rglob("*") if path.is_file() and path.name not in ("origin.json", "truekeep.txt")]

    def leave_some(self) -> None:
        """Handoffs of both machines: two repositories, two writers, one name twice."""
        self.one.leave("a-quoted")
        self.one.leave("b-codex", inbox=CODEX)
        self.one.leave("c-plain", repo=REPOSITORIES[1], name='2026-11-14-0900-it\'s "c".md')
        self.two.leave("d-same-name", name="2026-11-14-0900-a-quoted.md")
        self.two.leave("e-other", repo=REPOSITORIES[1], inbox=CODEX)

    def check(self) -> None:
        """Every handoff is filed exactly once, with its origin; and the producers' copies are cleared."""
        expected = {
            digest: (producer.name, repo, writer)
            for producer in (self.one, self.two)
            for digest, repo, writer in producer.left
        }
        found: dict[str, tuple[str, str, str]] = {}
        with self.place.open() as workspace:
            for entry, record in workspace.history.entries():
                if record is None or entry.verb != "promoted":
                    continue
                digest = record.digest.hex()
                assert digest not in found, f"{record.origin} was filed twice"
                origin = record.origin
                found[digest] = (origin.machine, origin.repository, origin.writer)
                _, repo, _ = expected[digest]
                assert f"/{repo}/" in origin.inbox
        assert found.keys() == expected.keys()
        for digest, (machine, repo, writer) in expected.items():
            assert found[digest] == (machine, f"github.com/me/{slug(repo)}", writer)
        for producer in (self.one, self.two):
            assert producer.waiting() == []
            assert len(producer.processed()) == len(producer.left)

    def check_clean(self) -> None:
        """Nothing is offered any more, and no receipt lies about."""
        for producer in (self.one, self.two):
            assert self.offered(producer) == []


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, number: int, *targets: tuple[Any, str]) -> Iterator[list[str]]:
    """The process dies at the n-th call of any of these functions. Gives the calls that were made."""
    calls: list[str] = []

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if not sys._getframe(1).f_globals["__name__"].startswith("truekeep"):
                return real(*arguments, **more)  # the library's own, as in a finalizer
            calls.append(name)
            if len(calls) == number:
                raise Killed(name)
            return real(*arguments, **more)

        return call

    with monkeypatch.context() as patch:
        for module, name in targets:
            patch.setattr(module, name, wrap(name, getattr(module, name)))
        try:
            yield calls
        except Killed:
            calls.append("killed")
