"""The exchange: what is promised is taken, whole and once, whatever a tool does to the files on their way."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import CLAUDE, CODEX, git_repo
from truekeep.core.model import WRITERS
from truekeep.handoffs.inbox import InboxReader, find_inboxes
from truekeep.handoffs.sync import protocol
from truekeep.handoffs.sync.mirror import MAX_FILE_BYTES, Mirror
from truekeep.handoffs.sync.outbox import Outbox
from truekeep.handoffs.sync.protocol import FolderSource
from truekeep.handoffs.sync.receipts import read_signer


class Ends:
    """A producer's exchange and the host's copy of it, with a mirror behind; a tool between them is played."""

    def __init__(self, base: Path, machine: str = "laptop") -> None:
        self.machine = machine
        self.repo = base / f"repos-{machine}" / "app"
        self.here = base / f"exchange-{machine}"
        self.there = base / "there" / machine
        self.mirror = Mirror(base / "mirror")
        (self.repo / CLAUDE).mkdir(parents=True)

    def leave(self, text: str, name: str = "2026-11-14-0900-a.md", inbox: str = CLAUDE) -> str:
        (self.repo / inbox).mkdir(parents=True, exist_ok=True)
        (self.repo / inbox / name).write_text(text)
        return hashlib.sha256(text.encode()).hexdigest()

    def offer(self) -> protocol.OfferReport:
        outbox = Outbox([self.repo], WRITERS, settle=0)
        try:
            return protocol.offer(self.here, outbox.waiting(), machine=self.machine)
        finally:
            outbox.close()

    def clear(self) -> int:
        outbox = Outbox([self.repo], WRITERS, settle=0)
        try:
            found = protocol.receipts(self.here, machine=self.machine, key=read_signer().public)
            count = outbox.clear(found.done, machine=self.machine)
            protocol.withdraw(self.here, outbox.cleared(found.done))
            return count
        finally:
            outbox.close()

    def carry(self) -> None:
        """A tool that works: what each side alone writes comes to the other."""
        receipts = {path.name for path in self.there.glob("*/receipts/*")}
        kept = {path.parent.parent.name: path for path in self.there.glob("*/receipts/*")}
        for place, path in kept.items():
            (self.here / place).mkdir(parents=True, exist_ok=True)
            shutil.copytree(path.parent, self.here / place / "receipts", dirs_exist_ok=True)
        assert receipts <= {path.name for path in self.here.glob("*/receipts/*")}
        shutil.rmtree(self.there, ignore_errors=True)
        if self.here.exists():
            shutil.copytree(self.here, self.there)

    def collect(self) -> protocol.ExchangeReport:
        return protocol.collect(FolderSource(self.there), self.mirror, WRITERS)

    def ingest(self) -> list[bytes]:
        """Deal with what is in the mirror, as ingest would."""
        roots = [place.folder for place in self.mirror.places()]
        inboxes = InboxReader(find_inboxes(roots, WRITERS), limit=MAX_FILE_BYTES, settle=0)
        filed = []
        for name, inbox in inboxes.waiting():
            letter = inboxes.read(name, inbox)
            assert letter is not None
            assert inboxes.clear(letter) is not None  # type: ignore[arg-type]
            filed.append(letter.raw)  # type: ignore[union-attr]
        inboxes.close()
        return [raw for raw in filed if raw is not None]

    def give(self) -> int:
        signer = read_signer()
        return protocol.give_receipts(
            FolderSource(self.there), self.mirror, WRITERS, machine=self.machine, signer=signer
        )

    def round(self) -> list[bytes]:
        self.offer()
        self.carry()
        self.clear()
        self.collect()
        filed = self.ingest()
        self.give()
        return filed

    def promised(self) -> dict[str, str]:
        return {
            path: digest
            for told in protocol.read_offers(FolderSource(self.here))
            for path, digest in told.files.items()
        }

    def place(self) -> Path:
        (place,) = [self.here / name for name in FolderSource(self.here).places()]
        return place

    def waiting(self) -> list[str]:
        return sorted(path.name for path in self.repo.glob(".c*/memory-handoffs/*.md"))


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    return Ends(tmp_path)


def test_a_handoff_goes_there_and_its_receipt_back(ends: Ends) -> None:
    digest = ends.leave("one")
    assert ends.offer() == protocol.OfferReport(1, ())
    assert ends.promised() == {f"{CLAUDE}/2026-11-14-0900-a.md": digest}
    assert ends.offer().new == 0, "it is offered once"
    ends.carry()
    assert ends.collect() == protocol.ExchangeReport(1, 0, ("laptop",), ())
    assert ends.collect().brought == 0
    assert ends.give() == 0, "it is not dealt with yet"
    assert ends.ingest() == [b"one"]
    assert ends.collect().brought == 0
    assert ends.give() == 1
    assert ends.give() == 0
    ends.carry()
    assert ends.clear() == 1
    assert ends.waiting() == []
    assert ends.promised() == {}
    assert [path.name for path in ends.here.rglob("*") if path.is_file()] == ["origin.json"]


def test_two_handoffs_of_one_name_are_two(ends: Ends) -> None:
    """A producer reuses a name that the exchange, the mirror and processed/ have seen before."""
    filed = []
    for number in range(4):
        ends.leave(f"number {number}")
        filed += ends.round()
        if number == 1:
            ends.leave("another of the same size".ljust(30))
            ends.offer()
            ends.leave("another of one more size".ljust(30))
    for _ in range(3):
        filed += ends.round()
    assert sorted(filed) == sorted({*filed}), "each is filed once"
    assert {b"number 0", b"number 1", b"number 2", b"number 3"} < {*filed}
    assert ends.waiting() == []


@pytest.mark.parametrize("cut", [0, 1, 1000, 4999])
def test_half_of_a_handoff_is_never_taken(ends: Ends, cut: int) -> None:
    text = "x" * 5000
    ends.leave(text)
    ends.offer()
    ends.carry()
    (half,) = ends.there.rglob("*.md")
    half.write_text(text[:cut])
    assert ends.collect()[:2] == (0, 1)
    assert list(ends.mirror.base.rglob("*.md")) == []
    half.write_text(text)
    assert ends.collect()[:2] == (1, 0)


def test_a_promise_may_come_before_and_after_its_file(ends: Ends) -> None:
    ends.leave("one")
    ends.offer()
    ends.carry()
    (file,) = ends.there.rglob("*.md")
    file.rename(file.with_suffix(".later"))
    assert ends.collect()[:2] == (0, 1)
    file.with_suffix(".later").rename(file)
    (origin,) = ends.there.rglob("origin.json")
    told = origin.read_text()
    origin.write_text(told[: len(told) // 2])
    assert ends.collect() == protocol.ExchangeReport(0, 0, (), ())
    origin.write_text(told)
    assert ends.collect().brought == 1


@pytest.mark.parametrize("how", ["handoff", "half", "origin", "half origin", "place", "all"])
def test_what_a_tool_loses_is_offered_again(ends: Ends, how: str) -> None:
    """The originals wait in their inbox until the receipt has come, so whatever happens to the copies is made good."""
    digests = {ends.leave("one"), ends.leave("two", inbox=CODEX)}
    ends.offer()
    for path in ends.here.rglob("*"):
        if path.is_file() and ("handoff" in how or how == "half") and path.suffix == ".md":
            path.write_text("o") if how == "half" else path.unlink()
        if "origin" in how and path.name == "origin.json":
            path.write_text(path.read_text()[:40]) if how == "half origin" else path.unlink()
    if how == "place":
        shutil.rmtree(ends.place())
    if how == "all":
        shutil.rmtree(ends.here)
    ends.offer()
    assert set(ends.promised().values()) == digests
    ends.carry()
    assert ends.collect()[:2] == (2, 0)


def test_a_promise_of_what_is_nowhere_is_taken_back(ends: Ends) -> None:
    ends.leave("one")
    ends.leave("two", "2026-11-14-0901-b.md")
    ends.offer()
    (ends.repo / CLAUDE / "2026-11-14-0900-a.md").unlink()
    assert len(ends.promised()) == 2
    ends.offer()
    assert len(ends.promised()) == 2, "its copy is there, and goes"
    (ends.place() / CLAUDE / "2026-11-14-0900-a.md").unlink()
    ends.offer()
    assert list(ends.promised()) == [f"{CLAUDE}/2026-11-14-0901-b.md"]


def test_what_comes_back_after_it_was_withdrawn_goes_again(ends: Ends) -> None:
    """A bisync that starts anew brings back from the other end what had been deleted at this one."""
    ends.leave("one")
    ends.round()
    ends.carry()
    before = {path: path.read_bytes() for path in ends.here.rglob("*") if path.is_file()}
    assert ends.clear() == 1
    for path, data in before.items():
        if path.name != "origin.json":
            path.write_bytes(data)
    ends.offer()
    ends.clear()
    assert [path.name for path in ends.here.rglob("*") if path.is_file()] == ["origin.json"]


def test_conflict_copies_stay_and_are_not_taken(ends: Ends) -> None:
    ends.leave("one")
    ends.offer()
    copies = [ends.place() / CLAUDE / f"2026-11-14-0900-a.md{end}" for end in ("..path1", ".conflict1", ".conflict2")]
    for number, copy in enumerate(copies):
        copy.write_text(f"half {number}")
    for _ in range(3):
        assert ends.round() in ([], [b"one"])
    assert [copy.read_text() for copy in copies] == ["half 0", "half 1", "half 2"]
    assert ends.waiting() == []


def test_a_conflict_copy_in_an_inbox_is_a_handoff(ends: Ends) -> None:
    """There a person's own sync tool made it, and nobody else has it."""
    ends.leave("one")
    ends.leave("the other version", "2026-11-14-0900-a.md.conflict1")
    assert sorted(ends.round()) == [b"one", b"the other version"]


def test_what_cannot_be_moved_away_stays_offered(ends: Ends) -> None:
    ends.leave("one")
    ends.round()
    (ends.repo / CLAUDE / "processed").write_text("a file in the way")
    for _ in range(3):
        assert ends.round() == [], "it is not filed again"
    assert len(ends.promised()) == 1
    (ends.repo / CLAUDE / "processed").unlink()
    ends.round()
    assert ends.waiting() == []
    assert ends.promised() == {}


HOSTILE: dict[str, Any] = {
    "no JSON": b"{",
    "deep": b"[" * 100_000,
    "no table": b"[]",
    "a text": b'"machine"',
    "null": b"null",
    "not UTF-8": b'{"machine": "\xff"}',
    "surrogates": rb'{"machine": "\ud800", "repository": "\udcff", "root": "/\ud800", "files": {"\ud800/x": "\ud800"}}',
    "files a list": b'{"machine": "m", "repository": "r", "root": "/r", "files": [1]}',
    "files of numbers": b'{"machine": "m", "repository": "r", "root": "/r", "files": {"a": 1, "b": null}}',
    "terminal codes": rb'{"machine": "\u001b[31m", "repository": "\u202e", "root": "\u0000", "files": {}}',
    "large": b'{"machine": "m", "repository": "' + b"x" * MAX_FILE_BYTES + b'", "root": "/r"}',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_origin_harms_nobody(ends: Ends, raw: bytes) -> None:
    ends.leave("one")
    ends.offer()
    ends.carry()
    (ends.there / "aaa").mkdir()
    (ends.there / "aaa" / "origin.json").write_bytes(raw)
    assert ends.collect().brought == 1
    assert ends.ingest() == [b"one"]
    assert ends.give() == 1
    for note in ends.collect().notes:
        assert note.isprintable()


NAMES = [
    "../../escaped.md",
    f"{CLAUDE}/../../escaped.md",
    f"{CLAUDE}/processed/x.md",
    "/etc/escaped.md",
    f"{CLAUDE}/.hidden.md",
    f"{CLAUDE}/-e sh",
    f"{CLAUDE}/a\nb.md",
    f"{CLAUDE}/a\x1b[31m.md",
    f"{CLAUDE}/a\0b.md",
    f"{CLAUDE}/{'x' * 300}.md",
    f"{CLAUDE}/README.md",
    "receipts/x.md",
    "origin.json",
    ".git/hooks/x.md",
    "",
    "/",
    f"{CLAUDE}/",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_not_let_in(ends: Ends, tmp_path: Path, name: str) -> None:
    digest = hashlib.sha256(b"evil").hexdigest()
    place = ends.there / "evil"
    (place / CLAUDE / "processed").mkdir(parents=True)
    origin = {"machine": "m", "repository": "r", "root": "/r", "files": {name: digest}}
    (place / "origin.json").write_text(json.dumps(origin))
    for target in (place / name.lstrip("/"), place / CLAUDE / "processed" / "x.md"):
        try:
            if target.resolve().is_relative_to(tmp_path.resolve()) and target.name != "origin.json":
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(b"evil")
        except (OSError, ValueError):
            pass
    taken = ends.collect()
    assert taken.brought == 0
    assert len(taken.notes) == 1
    assert taken.notes[0].isprintable()
    assert list(ends.mirror.base.rglob("*.md")) == []
    assert ends.give() == 0


def test_a_place_reached_through_a_symlink_is_not_read(ends: Ends, tmp_path: Path) -> None:
    ends.leave("one")
    ends.offer()
    ends.carry()
    (place,) = [ends.there / name for name in FolderSource(ends.there).places()]
    secret = tmp_path / "secret"
    shutil.move(place / ".claude", secret)
    (place / ".claude").symlink_to(secret)
    assert ends.collect()[:2] == (0, 1)
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    assert ends.collect() == protocol.ExchangeReport(0, 0, (), ())


@pytest.mark.slow
def test_too_many_come_in_portions(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_FILES", 10)
    for number in range(25):
        ends.leave(f"text {number}", f"2026-11-14-{number:04}-a.md")
    offered = ends.offer()
    assert offered.new == 10
    assert "more than 10" in offered.notes[0]
    filed: list[bytes] = []
    for _ in range(8):
        filed += ends.round()
    assert len(filed) == 25
    assert ends.waiting() == []


@pytest.mark.slow
def test_a_remote_with_a_hundred_thousand_promises(ends: Ends) -> None:
    """One place that promises the moon costs no more than its limit, and the others are served."""
    ends.leave("one")
    ends.offer()
    ends.carry()
    (ends.there / "aaa").mkdir()
    files = {f"{CLAUDE}/{number:06}.md": f"{number:064x}" for number in range(60_000)}
    origin = {"machine": "big", "repository": "r", "root": "/r", "files": files}
    (ends.there / "aaa" / "origin.json").write_text(json.dumps(origin))
    taken = ends.collect()
    assert taken.brought == 1
    assert taken.waiting == protocol.MAX_FILES
    assert any("more than" in note for note in taken.notes)


def test_two_producers_at_once(tmp_path: Path) -> None:
    """The same repository name, path, file name and even text on two machines: both are told, one is filed."""
    one, two = Ends(tmp_path, "laptop"), Ends(tmp_path, "desk")
    for ends in (one, two):
        ends.leave("the same text")
        ends.leave(f"of {ends.machine}", "2026-11-14-0901-b.md")
    for _ in range(3):
        for ends in (one, two):
            ends.offer()
            ends.carry()
            ends.clear()
            ends.collect()
        one.ingest()
        for ends in (one, two):
            ends.give()
    assert one.waiting() == two.waiting() == []
    assert {place.machine for place in one.mirror.places()} == {"laptop", "desk"}
    assert len(list(one.mirror.base.rglob("processed/*.md"))) == 4


DOINGS = (
    "leave",
    "offer",
    "carry",
    "lose here",
    "lose there",
    "cut",
    "back",
    "clear",
    "collect",
    "ingest",
    "give",
    "mess",
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(DOINGS), max_size=40), st.integers(0, 2**32))
def test_whatever_happens_on_the_way_everything_is_taken_once(doings: list[str], seed: int) -> None:
    """Any order of steps, with a tool that loses, cuts and brings back files: in the end all is filed and cleared."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as base:
        ends = Ends(Path(base))
        filed: list[bytes] = []
        left: set[bytes] = set()
        seen: dict[Path, bytes] = {}
        for number, doing in enumerate(doings):
            files = sorted(path for path in (*ends.here.rglob("*"), *ends.there.rglob("*")) if path.is_file())
            if doing == "leave":
                text = f"handoff {number} {chance.random()}"
                left.add(text.encode())
                ends.leave(text, f"2026-11-14-{number:04}-{chance.choice('ab')}.md", chance.choice((CLAUDE, CODEX)))
            elif doing == "ingest":
                filed += ends.ingest()
            elif doing.startswith("lose") and files:
                wanted = ends.here if "here" in doing else ends.there
                for path in files:
                    if path.is_relative_to(wanted) and chance.random() < 0.4:
                        seen[path] = path.read_bytes()
                        os.unlink(path)
            elif doing == "cut" and files:
                path = chance.choice(files)
                path.write_bytes(path.read_bytes()[: chance.randrange(40)])
            elif doing == "back":
                for path, data in seen.items():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
            elif doing == "mess" and files:
                path = chance.choice(files)
                path.with_name(f"{path.name}..path1").write_bytes(b"mess")
            elif doing in ("offer", "carry", "clear", "collect", "give"):
                getattr(ends, doing)()
        for _ in range(4):
            filed += ends.round()
        assert set(filed) == left, "all of it, and nothing else"
        # A handoff that comes once more after it was filed is known by its digest, which the ledger keeps.
        assert ends.waiting() == []
        assert ends.promised() == {}


def test_each_copy_is_read_once_a_run(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        ends.leave(f"text {number}", f"2026-11-14-{number:04}-a.md")
    ends.offer()
    reads: list[str] = []
    real = FolderSource.read

    def read(self: FolderSource, path: str) -> bytes | None:
        reads.append(path)
        return real(self, path)

    monkeypatch.setattr(FolderSource, "read", read)
    assert ends.offer().new == 0
    assert len([path for path in reads if path.endswith(".md")]) == 50


def test_a_repository_without_a_remote_is_never_like_one_of_ours(ends: Ends) -> None:
    """As rsync names it: by machine and folder."""
    ends.leave("one")
    ends.offer()
    (told,) = protocol.read_offers(protocol.FolderSource(ends.here))
    assert told.repository == "laptop:app"
    git_repo(ends.repo)
    ends.offer()
    (told,) = protocol.read_offers(protocol.FolderSource(ends.here))
    assert told.repository == "github.com/me/app"
