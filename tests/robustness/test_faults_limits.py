"""Faults J and K: no room, no permission, few descriptors, little memory, odd surroundings, wrong clocks."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import crash
from tests.support.helpers import NOW, Place, a_card, a_document_handoff, a_handoff, run_cli, tree
from tests.support.programs import need
from truekeep.core import file_io
from truekeep.core.errors import BadInput, StorageFailed, TruekeepError
from truekeep.workspace.workspace import Workspace

ROOT = Path(__file__).parents[2]
EXIT_BUG = 70


def numbered(number: int, body: str = "") -> str:
    """A handoff for a card of its own."""
    topic = f"Topic number {number}"
    text = body or f"Fact {number} says that service {number} listens on port {10000 + number}."
    return a_handoff(title=topic, card=f"card-{number}.md", content=a_card(topic, text))


def leave_many(place: Place, count: int, repositories: int = 1) -> None:
    for number in range(count):
        box = place.base / "repos" / f"app{number % repositories}" / ".claude" / "memory-handoffs"
        place.leave(numbered(number), f"2026-11-14-0900-card-{number:05}.md", inbox=box)


def run_limited(limit: str, value: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real program under a limit of the kernel."""
    code = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.{limit}, ({value}, {value}))\n"
        "sys.argv[0] = 'truekeep'\n"
        "runpy.run_module('truekeep', run_name='__main__')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )


# J1, J2. A real file system without room.


def run_mounted(options: str, point: Path, function: str) -> dict[str, Any]:
    """Call a function of this module on a small file system of its own, in a mount namespace that goes away with it."""
    call = f"test_faults_limits.{function}(Path({str(point)!r}))"
    code = f"from tests.robustness import test_faults_limits; from pathlib import Path; {call}"
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && exec "$3" -c "$4"'
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    need("unshare")
    tried = subprocess.run(
        [*unshare, "sh", "-c", 'mount -t tmpfs -o "$1" tmpfs "$2"', "sh", options, str(point)],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip(f"mounting is not permitted here: {tried.stderr.strip()}")
    done = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", options, str(point), sys.executable, code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def prepared(point: Path) -> Place:
    place = Place.make(point / "place")
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.leave(a_document_handoff("### First\nHere from the start."), "2026-11-10-0901-doc.md")
    place.ingest()
    for number in range(4):
        place.leave(
            numbered(number, f"Body {number}. " + "Words that take room on a disk. " * 100),
            f"2026-11-14-090{number}.md",
        )
    place.leave(a_document_handoff("### Second\nAdded when there was no room."), "2026-11-14-0910-doc.md")
    place.leave(a_handoff(title="Doubtful", card=None), "2026-11-14-0911-review.md")
    return place


def try_without_room(point: Path, rooms: list[int], fill: Callable[[Path, int], None]) -> None:
    """For each amount of room: run on the full disk, then with room again; report what went wrong."""
    problems: list[str] = []
    endings: list[str] = []
    place = prepared(point)
    template = Path(tempfile.mkdtemp(prefix="truekeep-full-", dir="/tmp"))
    shutil.copytree(point / "place", template / "place")
    letters = sorted(tree(place.inbox).values())
    place.ingest()
    wanted = tree(place.workspace)
    for room in rooms:
        shutil.rmtree(point / "place")
        shutil.copytree(template / "place", point / "place")
        before = tree(place.workspace)
        fill(point, room)
        ending = "clean"
        try:
            report = place.ingest()
            if report.count("failed") or report.warnings:
                ending = "reported"
        except TruekeepError as error:
            ending = error.code
        except Exception as error:  # noqa: BLE001 - that is what we look for
            ending = f"unexpected {error!r}"
            problems.append(f"room {room}: {ending}")
        endings.append(ending)
        after = tree(place.workspace)
        for name, digest in before.items():
            if after.get(name) not in (digest, wanted.get(name)):
                problems.append(f"room {room}: {name} is neither old nor new")
        if sorted(tree(place.inbox).values()) != letters:
            problems.append(f"room {room}: handoffs lost or doubled")
        for ballast in point.glob("ballast*"):
            shutil.rmtree(ballast) if ballast.is_dir() else ballast.unlink()
        place.ingest()
        if tree(place.workspace) != wanted:
            problems.append(f"room {room}: with room again, not as undisturbed")
        if place.ingest().processed:
            problems.append(f"room {room}: filed twice")
    shutil.rmtree(template)
    print(json.dumps({"problems": problems, "endings": endings}))


def fill_bytes(point: Path, room: int) -> None:
    with suppress(OSError), (point / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    size = (point / "ballast").stat().st_size
    os.truncate(point / "ballast", max(0, size - room))


def fill_inodes(point: Path, room: int) -> None:
    folder = point / "ballast"
    folder.mkdir()
    made: list[Path] = []
    with suppress(OSError):
        while True:
            path = folder / str(len(made))
            path.touch()
            made.append(path)
    for path in made[:room]:
        path.unlink()


def no_bytes(point: Path) -> None:
    try_without_room(point, list(range(0, 260_000, 12288)), fill_bytes)


def no_inodes(point: Path) -> None:
    try_without_room(point, list(range(16)), fill_inodes)


def reads_without_room(point: Path) -> None:
    place = prepared(point)
    place.ingest()
    fill_bytes(point, 0)
    problems = []
    for command in (["history"], ["blame", "MEMORY.md"], ["review", "list"], ["status", "pipeline"], ["card", "list"]):
        done = run_cli(*command, cwd=point, TRUEKEEP_WORKSPACE=str(place.workspace))
        if done.returncode or not done.stdout:
            problems.append(f"{command}: {done.returncode} {done.stderr}")
    done = run_cli("ingest", cwd=point, TRUEKEEP_WORKSPACE=str(place.workspace))
    if done.returncode != 7 or "free some disk space" not in done.stderr:
        problems.append(f"ingest: {done.returncode} {done.stderr}")
    print(json.dumps({"problems": problems}))


def test_j1_what_is_there_can_be_read_on_a_full_disk(tmp_path: Path) -> None:
    assert run_mounted("size=3m", tmp_path, "reads_without_room") == {"problems": []}


def test_j1_full_disk(tmp_path: Path) -> None:
    found = run_mounted("size=3m", tmp_path, "no_bytes")
    assert found["problems"] == []
    assert len(set(found["endings"])) > 1, found  # some runs had room, some had not


def test_j2_no_inodes_left(tmp_path: Path) -> None:
    found = run_mounted("size=8m,nr_inodes=400", tmp_path, "no_inodes")
    assert found["problems"] == []
    assert len(set(found["endings"])) > 1, found


@pytest.mark.parametrize("size", [0, 4096, 30_000, 120_000])
def test_j1_files_may_not_grow(place: Place, size: int) -> None:
    """The kernel's limit on file sizes stands for a quota: any write may be refused or cut short."""
    place.leave(numbered(1, "Long. " * 8000))
    place.leave(numbered(2), "2026-11-14-0901-small.md")
    before = sorted(tree(place.inbox).values())
    done = run_limited("RLIMIT_FSIZE", size, "ingest", "-w", str(place.workspace))
    assert done.returncode in (0, 1, StorageFailed.exit_code), done.stderr
    assert sorted(tree(place.inbox).values()) == before
    place.ingest()
    assert place.cards() == ["card-1.md", "card-2.md"]
    assert place.card("card-1.md").count("Long.") == 8000
    assert place.ingest().processed == 0


# J3, J4. Few descriptors, little memory.


def test_j3_thirty_two_descriptors(place: Place) -> None:
    leave_many(place, 200, repositories=20)
    done = run_limited("RLIMIT_NOFILE", 32, "ingest", "-q", "-w", str(place.workspace))
    assert done.returncode == 0, done.stderr
    assert len(place.cards()) == 200


def test_j3_no_descriptor_leaks(place: Place) -> None:
    def descriptors() -> int:
        gc.collect()  # what earlier tests left in cycles is closed now, and not in between
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no /proc to count descriptors in")
    leave_many(place, 20)
    place.ingest()  # opens what a process opens once: the vectors of words
    before = descriptors()
    leave_many(place, 150, repositories=20)
    place.leave("not a handoff at all")
    place.leave(b"\xff\x00", "2026-11-14-0901-bytes.md")
    (place.inbox / "2026-11-14-0902-link.md").symlink_to("/etc/passwd")
    place.ingest()
    with place.open() as workspace:
        for action in (lambda: workspace.history.undo(99_999), lambda: workspace.review.reject("nothing-like-it")):
            with pytest.raises(TruekeepError):
                action()
    assert descriptors() == before


def test_j4_little_memory(place: Place) -> None:
    leave_many(place, 2000)
    done = run_limited("RLIMIT_AS", 700 * 1024 * 1024, "ingest", "-q", "-w", str(place.workspace))
    assert done.returncode == 0, done.stderr
    assert "Promoted 2000" in done.stdout
    assert len(place.cards()) == 2000


# J5. Read-only.


@contextmanager
def as_ordinary_user(base: Path) -> Iterator[None]:
    """Permissions do not bind root: give the files to nobody, and be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    for folder, _, names in os.walk(base):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, 65534, 65534, follow_symlinks=False)
    try:
        os.seteuid(65534)
    except OSError as error:
        pytest.skip(f"cannot become another user: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A place that another user can reach."""
    base = Path(tempfile.mkdtemp(prefix="truekeep-readonly-"))
    base.chmod(0o755)
    place = Place.make(base)
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.leave(a_document_handoff(), "2026-11-10-0901-doc.md")
    place.leave(a_handoff(title="Doubtful", card=None), "2026-11-10-0902-review.md")
    place.ingest()
    place.leave(numbered(1), "2026-11-14-0900-new.md")
    place.leave(a_document_handoff("### More\nMore of it."), "2026-11-14-0901-doc.md")
    with place.open() as workspace:  # load what is loaded late, while it can still be read
        list(workspace.cards.all())
        workspace.review.drafts()
    yield place
    for folder, _, _ in os.walk(base):
        os.chmod(folder, 0o755)
    shutil.rmtree(base)


@pytest.mark.parametrize("folder", ["memory/cards", ".", ".truekeep", "memory/handoff-inbox"])
def test_j5_read_only_folder(open_place: Place, folder: str) -> None:
    place = open_place
    path = place.workspace / folder
    letters = sorted(tree(place.inbox).values())
    before = tree(place.workspace)
    with as_ordinary_user(place.base):
        path.chmod(0o555)
        try:
            report = place.ingest()
            if folder == "memory/cards":
                assert report.count("failed") == 1
                assert report.count("routed") == 1, "one folder's trouble is not the other's"
            elif folder == "memory/handoff-inbox":
                assert report.processed == 2
        except StorageFailed:
            assert folder in (".", ".truekeep")
            assert tree(place.workspace) == before
        assert sorted(tree(place.inbox).values()) == letters
        with place.open() as workspace:
            assert "staging-proxy.md" in [card.name for card in workspace.cards.all()]
            assert len(workspace.review.drafts()) == 1
            assert list(workspace.history.entries())
        path.chmod(0o755)
        place.ingest()
    assert place.cards() == ["card-1.md", "staging-proxy.md"]
    assert (place.workspace / "TOOLS.md").read_text().count("More of it.") == 1
    assert place.waiting() == []
    assert [name for name in tree(place.workspace) if file_io.TEMPORARY in name] == []


def test_j5_read_only_inbox(open_place: Place) -> None:
    """The handoffs can be read but not moved: filed once, and said so."""
    place = open_place
    with as_ordinary_user(place.base):
        place.inbox.chmod(0o555)
        report = place.ingest()
        assert report.processed == 2
        assert len(report.warnings) == 2
        again = place.ingest()
        assert again.processed == 0
        place.inbox.chmod(0o755)
        place.ingest()
    assert place.waiting() == []
    assert (place.workspace / "TOOLS.md").read_text().count("More of it.") == 1


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
shift
status=0
for command in "ingest" "card list" "card show staging-proxy" "review list" "history" "handoff lint $LETTER"; do
  "$@" $command -w "$PLACE" >/dev/null 2>"$ERRORS"; code=$?
  echo "$command: $code $(head -c 300 "$ERRORS" | tr '\\n' ' ')"
done
"""


@pytest.mark.needs("unshare")
def test_j5_read_only_file_system(place: Place, tmp_path: Path) -> None:
    """Writing is refused; reading still works."""
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.ingest()
    letter = place.leave(numbered(1))
    before = tree(place.workspace)
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*unshare, "sh", "-c", READ_ONLY, "sh", str(place.workspace), sys.executable, "-m", "truekeep"],
        env={**os.environ, "PLACE": str(place.workspace), "LETTER": str(letter), "ERRORS": str(tmp_path / "errors")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 99 or not done.stdout:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    codes = {line.partition(":")[0]: int(line.partition(": ")[2].split()[0]) for line in done.stdout.splitlines()}
    assert codes.pop("ingest") == StorageFailed.exit_code, done.stdout
    assert set(codes.values()) == {0}, done.stdout
    assert tree(place.workspace) == before
    assert letter.exists()


# J7, J8. Odd surroundings.

SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "no-home": {"HOME": None},
    "c-locale": {"LC_ALL": "C", "LANG": None},
    "no-locale": {"LC_ALL": None, "LANG": None, "LC_CTYPE": None},
    "far-east": {"TZ": "Pacific/Kiritimati"},
    "far-west": {"TZ": "Etc/GMT+12"},
    "no-zone": {"TZ": None},
    "no-tmp": {"TMPDIR": "/nonexistent", "SQLITE_TMPDIR": "/nonexistent"},
    "umask": {},
}


def surrounded(**changes: str | None) -> dict[str, str]:
    merged: dict[str, str | None] = {**os.environ, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def test_j7_same_bytes_in_any_surroundings(tmp_path: Path) -> None:
    crash.prepare(tmp_path, "ingest")
    words = "Grüße, 日本語, naïve — and an emoji 👩‍💻."
    for name, text in {
        "2026-11-14-1000-unicode.md": a_document_handoff(f"### Unicode\n{words}"),
        "2026-11-14-1001-unicode-card.md": a_handoff(title=words, card="unicode.md", content=a_card(words, words)),
        "2026-11-14-1002-unicode-ä.md": a_handoff(title=words, card=None),
    }.items():
        (tmp_path / "template/repos/app/.claude/memory-handoffs" / name).write_text(text, encoding="utf-8")
    wanted: crash.State | None = None
    for name, changes in {"plain": {}, **SURROUNDINGS}.items():
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(tmp_path / "template", tmp_path / "run")
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.crash", "once", str(tmp_path), "ingest"],
            cwd=ROOT,
            env=surrounded(**changes),
            capture_output=True,
            text=True,
            check=False,
            umask=0o077 if name == "umask" else 0o022,
        )
        assert done.returncode == 0, (name, done.stderr)
        state = crash.look(tmp_path / "run")
        wanted = wanted or state
        assert state == wanted, name


@pytest.mark.parametrize("name", ["no-home", "c-locale", "far-east", "no-tmp"])
def test_j7_the_program_in_odd_surroundings(place: Place, name: str) -> None:
    place.leave(a_handoff(title="Grüße — 日本語"), "2026-11-14-0900-ä.md")
    place.leave(a_handoff(title="Grüße", card=None), "2026-11-14-0901-ü.md")
    for command in (["ingest"], ["card", "list"], ["review", "list"], ["history"]):
        done = subprocess.run(
            [sys.executable, "-m", "truekeep", *command, "-w", str(place.workspace)],
            env=surrounded(**SURROUNDINGS[name]),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
    assert place.cards() == ["staging-proxy.md"]


# K. Time.


def filed_at(tmp_path: Path, now: datetime, name: str = "2026-11-14-0900-proxy.md") -> Place:
    place = Place.make(tmp_path)
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.leave(a_handoff(title="Doubtful", card=None), "2026-11-10-0901-review.md")
    place.ingest()
    update = a_handoff(action="update-card", content=a_card(body="Staging answers on port 9443 only."))
    place.leave(update, name)
    place.leave(a_document_handoff(), "2026-11-14-0901-doc.md")
    place.ingest(now=now)
    return place


@pytest.mark.parametrize("year", [1970, 2024, 2038, 2107, 9999])
def test_k1_k2_clock_set_back_or_forward(tmp_path: Path, year: int) -> None:
    place = filed_at(tmp_path, datetime(year, 6, 15, 12, 0, tzinfo=UTC))
    outcomes = place.outcomes()
    assert outcomes["2026-11-14-0901-doc.md"] == "routed"
    assert outcomes["2026-11-14-0900-proxy.md"] == "promoted", place.codes()
    assert len(place.drafts()) == 1
    with place.open() as workspace:
        entries = [entry for entry, _ in workspace.history.entries()]
        assert [entry.id for entry in entries] == sorted((entry.id for entry in entries), reverse=True)
        assert entries[0].at.startswith(str(year)), "the order is the ledger's own, not the clock's"
        workspace.history.undo(next(entry.id for entry in entries if "memory/cards/staging-proxy.md" in entry.paths))
    assert "8443" in place.card()


@pytest.mark.parametrize("year", [1971, 2038, 9999])
def test_k2_prune_brakes_when_the_clock_jumped(tmp_path: Path, year: int) -> None:
    place = filed_at(tmp_path, NOW)
    before = tree(place.base, skip=(".truekeep",))
    with place.open(now=datetime(year, 1, 1, tzinfo=UTC)) as workspace:
        with pytest.raises(BadInput, match="clock"):
            workspace.handoffs.prune()
        with pytest.raises(BadInput, match="clock"):
            workspace.handoffs.prune(dry_run=True)
    assert tree(place.base, skip=(".truekeep",)) == before


def test_k2_prune_after_one_run_with_a_wrong_clock(tmp_path: Path) -> None:
    """A run with a clock far ahead has made an entry. The right clock must not look like the wrong one for ever."""
    place = filed_at(tmp_path, NOW)
    place.leave(numbered(1))
    place.ingest(now=NOW + timedelta(days=4000))
    with place.open(now=NOW + timedelta(days=1)) as workspace:
        with pytest.raises(BadInput, match="clock"):
            workspace.handoffs.prune()
        drafts, _ = workspace.handoffs.prune(force=True)
        assert drafts == []
    assert len(place.drafts()) == 1


def test_k2_prune_forced(tmp_path: Path) -> None:
    place = filed_at(tmp_path, NOW)
    with place.open(now=datetime(2099, 1, 1, tzinfo=UTC)) as workspace:
        drafts, files = workspace.handoffs.prune(force=True)
    assert len(drafts) == 1
    assert len(files) == 4
    assert place.drafts() == []
    assert place.processed() == []


def test_k3_clock_jumps_during_a_run(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-14-0900-a.md")
    place.leave(a_document_handoff(), "2026-11-14-0901-b.md")
    place.leave(a_handoff(title="Doubtful", card=None), "2026-11-14-0902-c.md")
    calls: list[datetime] = []

    def jumping() -> datetime:
        calls.append(NOW + timedelta(days=365 * (-1) ** len(calls) * len(calls)))
        return calls[-1]

    with Workspace.open(place.workspace, now=jumping) as workspace:
        assert workspace.handoffs.ingest().processed == 3
    with place.open() as workspace:
        assert {entry.at for entry, _ in workspace.history.entries()} == {"2026-11-15T12:00:00Z"}
        assert [draft.received_at for draft in workspace.review.drafts()] == ["2026-11-15T12:00:00Z"]


@pytest.mark.parametrize("mtime", [-86_400, 0, 2**31, 2**32, 2**33])
def test_k4_odd_file_times(place: Place, mtime: int) -> None:
    def stamp(path: Path) -> None:
        try:
            os.utime(path, (mtime, mtime))
        except (OSError, OverflowError) as error:
            pytest.skip(f"this file system has no such time: {error}")

    place.leave(a_handoff(), "2026-11-10-0900-a.md")
    place.leave(a_handoff(title="Doubtful", card=None), "2026-11-10-0901-b.md")
    for path in place.inbox.glob("*.md"):
        stamp(path)
    assert place.ingest().processed == 2
    stamp(place.workspace / "memory" / "cards" / "staging-proxy.md")
    stamp(place.drafts()[0])
    update = a_handoff(action="update-card", content=a_card(body="Staging answers on port 9443 only."))
    stamp(place.leave(update, "2026-11-14-0900-a.md"))
    assert place.ingest().count("promoted") == 1, place.filed
    assert "9443" in place.card()
    with place.open() as workspace:
        assert len(workspace.review.drafts()) == 1
    done = run_cli("review", "list", "-w", str(place.workspace))
    assert done.returncode == 0, done.stderr


def test_k4_same_time_other_content(place: Place) -> None:
    """A sync tool keeps time and size: only the content tells that the card is another one."""
    place.leave(a_handoff(), "2026-11-10-0900-a.md")
    place.ingest()
    card = place.workspace / "memory" / "cards" / "staging-proxy.md"
    info = card.stat()
    card.write_text(card.read_text().replace("port 8443 only", "port 8444 only"))
    os.utime(card, ns=(info.st_atime_ns, info.st_mtime_ns))
    with place.open() as workspace:
        number = next(entry.id for entry, _ in workspace.history.entries())
        with pytest.raises(TruekeepError):
            workspace.history.undo(number)
    assert "8444" in card.read_text()


def test_k5_names_dated_in_the_future(place: Place) -> None:
    place.leave(a_handoff(), "2099-01-01-0900-proxy.md")
    assert place.ingest().count("promoted") == 1
    assert "future-date" in place.codes()
    assert "2099" not in place.card()
    update = a_handoff(action="update-card", content=a_card(body="Staging answers on port 9443 only."))
    place.leave(update, "2026-11-16-0900-proxy.md")
    place.ingest(now=NOW + timedelta(days=1))
    assert "9443" in place.card(), "a card from the future does not win for ever"
