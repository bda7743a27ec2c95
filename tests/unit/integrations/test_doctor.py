"""The doctor: each thing is broken for real, found with its place, mended, and found no more; memory stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.harnesses import put_stand_ins
from tests.support.helpers import NOW, Place, a_card, a_handoff, git_repo, run_cli, tree
from truekeep.core import file_io, machine
from truekeep.core.errors import BadSetup
from truekeep.core.host_lease import HostLease, write_lease
from truekeep.core.machine import own_state
from truekeep.integrations.doctor.registry import run_checks
from truekeep.integrations.doctor.state_checks import KEPT, line_of_key
from truekeep.integrations.schedule import cron, systemd
from truekeep.integrations.schedule.config import Job, plan_job
from truekeep.integrations.schedule.install import install
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.verify.cache import FactsCache
from truekeep.workspace.check import FIXED, OK, PROBLEM, CheckContext, CheckResult
from truekeep.workspace.schedule_log import FAILED, Run, append_run
from truekeep.workspace.workspace import Workspace

ROOT = Path(__file__).parents[3]
OLD = 7_300.0  # seconds: nobody is still writing it
DERIVED = ("catalog.sqlite", "survey.sqlite", "facts.sqlite", "index.sqlite")
# Checks that status has, too: what they find in these workspaces of a few files is tested with status.
OF_MEMORY = (
    "files", "cards", "untouched", "index", "handoffs", "duplicates", "claims", "review", "pipeline",
    "lines", "disk",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_machine(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No harness, no timer, and none of the developer's folders."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    put_crontab(tmp_path)


def put_crontab(base: Path) -> Path:
    """A crontab of this test's own, and no other timer."""
    tab = base / "tab"
    (base / "bin" / "crontab").write_text(
        f"#!/bin/sh\ntab='{tab}'\n"
        'case "$1" in\n'
        '-l) [ -f "$tab" ] || { echo "no crontab for me" >&2; exit 1; }; cat "$tab";;\n'
        '-r) rm "$tab";;\n'
        '-) cat > "$tab.new" && mv "$tab.new" "$tab";;\n'
        "esac\n"
    )
    for name in ("systemctl", "launchctl", "loginctl"):
        (base / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
    for program in (base / "bin").iterdir():
        program.chmod(0o755)
    return tab


@pytest.fixture
def kept(place: Place) -> Place:
    """A workspace with history, a draft, an index and verdicts, in which no problems found."""
    git_repo(place.repo)
    place.leave(a_handoff(), "2026-11-14-0900-proxy.md")
    place.leave("# doubt\n", "2026-11-14-0901-doubt.md")
    place.ingest()
    place.leave(a_handoff(action="update-card", content=a_card(body="Staging answers on port 9443 only.")))
    place.ingest()
    with place.open() as workspace:
        workspace.maintenance.survey()
        workspace.search.index()
        workspace.verification.verify()
        assert workspace.handoffs.lint(
            [(a_handoff(card="z.md").encode(), "2026-11-14-1000-z.md", None)]
        )  # makes the catalogue
    return place


def state(place: Place, *names: str) -> Path:
    return place.workspace.joinpath(".truekeep", *names)


def look(place: Place | None, *, fix: bool = False, now: datetime | None = None) -> list[CheckResult]:
    context = CheckContext(
        place.workspace if place is not None else None, now=(lambda: now) if now is not None else None
    )
    return [result for result in run_checks(context, fix=fix) if result.name not in OF_MEMORY]


def wrong(checks: list[CheckResult], name: str = "") -> list[CheckResult]:
    return [check for check in checks if check.severity != OK and name in ("", check.name)]


def names(checks: list[CheckResult]) -> list[tuple[str, str]]:
    return [(check.name, check.severity) for check in checks if check.severity != OK]


def picture(*roots: Path) -> dict[str, object]:
    """Every file below these with its bytes, mode and time; links as links."""
    found: dict[str, object] = {}
    for root in roots:
        for folder, inner, files in os.walk(root):
            for name in (*inner, *files):
                path = Path(folder, name)
                info = path.lstat()
                kind = stat.S_IFMT(info.st_mode)
                data = path.read_bytes() if kind == stat.S_IFREG else b""
                times = info.st_mtime_ns if kind == stat.S_IFREG else 0
                found[str(path)] = (kind, stat.S_IMODE(info.st_mode), times, data)
    return found


def mends(place: Place, *expected: str, now: datetime | None = None) -> list[CheckResult]:
    """Found by looking, which changes nothing; mended by fixing, with memory as it was; then found no more."""
    memory = {path: data for path, data in tree(place.workspace).items() if not path.endswith(file_io.TEMPORARY)}
    before = picture(place.base)
    found = look(place, now=now)
    assert [name for name, _ in names(found)] == list(expected), wrong(found)
    assert all(check.hint.startswith("`truekeep doctor --fix`: ") for check in wrong(found)), wrong(found)
    assert picture(place.base) == before, "looking changes nothing"
    fixed = look(place, fix=True, now=now)
    assert names(fixed) == [(name, FIXED) for name in expected], wrong(fixed)
    assert all(check.done for check in wrong(fixed))
    assert wrong(look(place, now=now)) == []
    mended = picture(place.base)
    assert wrong(look(place, fix=True, now=now)) == []
    assert picture(place.base) == mended, "there is nothing left to do"
    assert {path: data for path, data in tree(place.workspace).items() if path in memory} == memory
    return wrong(fixed)


def stays(place: Place, name: str, *, now: datetime | None = None) -> CheckResult:
    """Found, told with its place and the next step, and left alone even when fixing."""
    before = picture(place.base)
    for fix in (False, True):
        (check,) = wrong(look(place, fix=fix, now=now))
        assert (check.name, check.severity) == (name, PROBLEM)
        assert check.where
        assert check.hint
    assert picture(place.base) == before
    return check


# --- When all is well -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_healthy_workspace_is_left_as_it_is(kept: Place) -> None:
    before = picture(kept.base)
    for fix in (False, True):
        checks = look(kept, fix=fix)
        assert wrong(checks) == []
        assert [check.name for check in checks] == [
            "workspace", "machine", "permissions", "host", "config", "folders", "ledger", "clock", *DERIVED, "names",
            "transcripts", "leftovers", "locks", "hooks", "timer", "ingester", "search", "schedule", "bugs",
        ]  # fmt: skip
    assert picture(kept.base) == before


def test_a_workspace_that_was_just_made_is_well(place: Place) -> None:
    assert wrong(look(place)) == []
    assert stat.S_IMODE(state(place).stat().st_mode) == 0o700


# --- Databases ------------------------------------------------------------------------------------------------------


def scribble(path: Path) -> None:
    """Damage pages in the middle, and leave the head as it is."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18]) or 65_536
    size = 65_536 if size == 1 else size
    for page in range(1, len(data) // size):
        data[page * size : page * size + 32] = b"\xa7" * 32
    path.write_bytes(data)


def no_database(path: Path) -> None:
    path.write_bytes(b"this was a database once\n" * 900)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def foreign(path: Path) -> None:
    path.unlink()
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('x'); PRAGMA user_version = 1")
    db.close()


def older(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version = 0")
    db.close()


DAMAGES: list[Callable[[Path], None]] = [scribble, no_database, half, foreign]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", DERIVED)
def test_what_is_derived_is_made_anew(kept: Place, name: str, damage: Callable[[Path], None]) -> None:
    path = state(kept, name)
    damage(path)
    (check,) = mends(kept, name)
    assert check.where == f".truekeep/{name}"
    assert check.done.startswith("removed; ")
    with kept.open() as workspace:
        assert [hit.path for hit in workspace.search.find("staging port").hits] == ["memory/cards/staging-proxy.md"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVED[:3])
def test_an_older_version_is_made_anew(kept: Place, name: str) -> None:
    older(state(kept, name))
    (check,) = mends(kept, name)
    assert "older version" in check.said


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVED)
def test_a_link_in_the_place_of_a_database_is_not_followed(kept: Place, name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "theirs.sqlite"
    elsewhere.write_bytes(b"theirs")
    state(kept, name).unlink()
    state(kept, name).symlink_to(elsewhere)
    mends(kept, name)
    assert elsewhere.read_bytes() == b"theirs"


@pytest.mark.slow
def test_a_newer_version_is_left_alone(kept: Place) -> None:
    path = state(kept, "index.sqlite")
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert "version 99" in stays(kept, "index.sqlite").said


@pytest.mark.slow
def test_damaged_copies_of_derived_files_are_removed(kept: Place) -> None:
    state(kept, "index.sqlite.damaged-20261101T000000Z").write_bytes(b"x")
    (check,) = mends(kept, "index.sqlite")
    assert check.where == ".truekeep/index.sqlite.damaged-20261101T000000Z"


# --- The ledger -----------------------------------------------------------------------------------------------------


def history(place: Place) -> list[LedgerEntry]:
    with place.open() as workspace:
        return [entry for entry, _ in workspace.history.entries()]


def damage_an_index(path: Path) -> None:
    """Damage only what can be made again: the b-tree of an index of the ledger."""
    db = apsw.Connection(str(path))
    page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'change_path'").get
    size = db.execute("PRAGMA page_size").get
    db.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : (page - 1) * size + 64] = b"\xa7" * 64
    path.write_bytes(data)


@pytest.mark.slow
def test_a_ledger_with_a_damaged_index_keeps_its_history(kept: Place) -> None:
    before = history(kept)
    damage_an_index(state(kept, "ledger.sqlite"))
    (check,) = mends(kept, "ledger")
    assert "all of its history" in check.done
    assert history(kept) == before
    (evidence,) = state(kept).glob("ledger.sqlite.damaged-*")
    assert evidence.exists(), "even then, it is kept"
    assert "from earlier damage" in next(check.said for check in look(kept) if check.name == "ledger")
    with kept.open() as workspace:
        workspace.history.undo(before[0].id)
    assert "8443" in kept.card()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [scribble, no_database, foreign], ids=lambda damage: damage.__name__)
def test_a_ledger_that_cannot_be_read_is_set_aside(kept: Place, damage: Callable[[Path], None]) -> None:
    damage(state(kept, "ledger.sqlite"))
    data = state(kept, "ledger.sqlite").read_bytes()
    mends(kept, "ledger")
    (evidence,) = state(kept).glob("ledger.sqlite.damaged-*")
    assert evidence.read_bytes() == data
    assert evidence.name in next(check.said for check in look(kept) if check.name == "ledger")
    assert "history before " in next(check.said for check in look(kept) if check.name == "ledger")
    name = kept.processed()[0]
    kept.leave((kept.inbox / "processed" / name).read_bytes())
    kept.ingest()
    assert set(kept.outcomes().values()) == {"already"}, "what was dealt with is known from the files"


@pytest.mark.slow
def test_a_ledger_that_is_gone_begins_anew(kept: Place) -> None:
    state(kept, "ledger.sqlite").unlink()
    mends(kept, "ledger")


def leave_pending(place: Place) -> None:
    """What a run leaves that is killed between the ledger and the files."""
    with place.open() as workspace, workspace.writing("test") as books:
        staging = Staging(books.vault)
        staging.put("memory/cards/pending.md", a_card("Pending").encode(), 0)
        entry = LedgerEntry(at="2026-11-15T12:00:00Z", verb="test", actor="me")
        books.ledger.begin(staging.changes(), [entry], [], [], at=entry.at, whole=True)


@pytest.mark.slow
def test_what_a_killed_run_left_is_finished(kept: Place) -> None:
    leave_pending(kept)
    assert "pending.md" not in kept.cards()
    (check,) = mends(kept, "ledger")
    assert check.done == "finished 1 batch(es) that an interrupted run had left"
    assert "Pending" in kept.card("pending.md")


@pytest.mark.slow
def test_another_machine_does_not_touch_what_is_the_hosts(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_pending(kept)
    (kept.workspace / "memory" / "cards" / ".x.md.truekeep-tmp").write_text("half")
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
    before = picture(kept.base)
    checks = look(kept, fix=True)
    assert wrong(checks) == []
    assert "this is a copy" in next(check.said for check in checks if check.name == "host")
    assert picture(kept.base) == before
    no_database(state(kept, "ledger.sqlite"))
    (check,) = wrong(look(kept, fix=True))
    assert (check.severity, check.hint) == (PROBLEM, "run `truekeep doctor --fix` on the canonical host")


@pytest.mark.slow
def test_nothing_is_mended_while_another_truekeep_writes(kept: Place) -> None:
    no_database(state(kept, "ledger.sqlite"))
    before = picture(kept.base)
    with file_io.locked(str(state(kept))) as held, pytest.MonkeyPatch.context() as patch:
        assert held
        patch.setattr("truekeep.workspace.context.LOCK_WAIT_SECONDS", 0.1)
        (check,) = wrong(look(kept, fix=True))
    assert (check.severity, "another truekeep is writing" in check.hint) == (PROBLEM, True)
    assert picture(kept.base) == before


# --- Journals -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_journal_of_a_killed_run_is_taken_in(kept: Place) -> None:
    """The files as they are when a process is killed after a commit, before anything is written back."""
    ledger = state(kept, "ledger.sqlite")
    db = apsw.Connection(str(ledger))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("UPDATE entry SET note = 'from the journal' WHERE id = 1")
    left = {path: path.read_bytes() for path in state(kept).glob("ledger.sqlite*")}
    db.close()
    for path, data in left.items():
        path.write_bytes(data)
    assert state(kept, "ledger.sqlite-wal").stat().st_size
    (check,) = mends(kept, "locks")
    assert check.where == ".truekeep/ledger.sqlite-wal"
    assert history(kept)[-1].note == "from the journal"


@pytest.mark.slow
def test_a_hot_journal_is_no_damage(kept: Place) -> None:
    """A rollback journal of a killed writer: the database alone is half of two states."""
    index = state(kept, "index.sqlite")
    db = apsw.Connection(str(index))
    db.execute("PRAGMA cache_size = 1; PRAGMA cache_spill = ON; BEGIN IMMEDIATE")
    db.execute("CREATE TABLE filler (data BLOB)")
    for _ in range(200):
        db.execute("INSERT INTO filler VALUES (randomblob(3000))")
    left = {path: path.read_bytes() for path in state(kept).glob("index.sqlite*")}
    db.execute("ROLLBACK")
    db.close()
    for path, data in left.items():
        path.write_bytes(data)
    assert state(kept, "index.sqlite-journal").stat().st_size
    mends(kept, "locks")
    assert not state(kept, "index.sqlite-journal").exists()


@pytest.mark.slow
def test_a_journal_without_its_database(kept: Place) -> None:
    state(kept, "facts.sqlite").unlink()
    state(kept, "facts.sqlite-wal").write_bytes(b"x" * 9000)
    mends(kept, "locks")
    assert not state(kept, "facts.sqlite-wal").exists()


@pytest.mark.slow
def test_a_database_in_use_is_well(kept: Place) -> None:
    code = textwrap.dedent(
        """
        import apsw, sys
        db = apsw.Connection(sys.argv[1])
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute("UPDATE entry SET note = 'in use'")
        print("ready", flush=True)
        sys.stdin.read()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(state(kept, "ledger.sqlite"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert state(kept, "ledger.sqlite-wal").stat().st_size
        assert wrong(look(kept)) == []
    finally:
        process.communicate()


@pytest.mark.slow
def test_who_holds_the_lock_is_told(kept: Place) -> None:
    code = (
        "import sys; from truekeep.core.file_io import locked\n"
        "with locked(sys.argv[1]): print(flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(state(kept))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        checks = look(kept)
        assert wrong(checks) == []
        assert f"process {process.pid} (" in next(check.said for check in checks if check.name == "locks")
    finally:
        process.communicate()


@pytest.mark.slow
def test_locks_of_git(kept: Place) -> None:
    ours = state(kept, "git", "shared", "0123456789.git")
    ours.mkdir(parents=True)
    lock = aged(ours / "shallow.lock")
    young = ours / "config.lock"
    young.touch()
    mends(kept, "locks")
    assert not lock.exists()
    assert young.exists()
    theirs = aged(kept.repo / ".git" / "index.lock")
    assert stays(kept, "locks").where == str(theirs)


# --- Who may write, configuration -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_host_file_that_cannot_be_read(kept: Place) -> None:
    state(kept, "host").write_bytes(b"\xff\xfe id =")
    with pytest.raises(BadSetup):
        Workspace.open(kept.workspace)
    check = stays(kept, "host")
    assert check.where == ".truekeep/host"
    no_database(state(kept, "catalog.sqlite"))
    assert names(look(kept, fix=True)) == [("host", PROBLEM), ("catalog.sqlite", FIXED)]


@pytest.mark.slow
def test_no_host_at_all(kept: Place) -> None:
    state(kept, "host").unlink()
    shutil.rmtree(state(kept, "hosts"))
    assert "truekeep init" in stays(kept, "host").hint


@pytest.mark.slow
def test_two_hosts(kept: Place) -> None:
    write_lease(str(state(kept)), HostLease(id="4" * 32, name="other", generation=1, taken_at="2026-11-01T00:00:00Z"))
    assert "each claim to be" in stays(kept, "host").said


@pytest.mark.slow
def test_a_released_host(kept: Place) -> None:
    with kept.open() as workspace:
        workspace.host.release()
    assert "truekeep host take" in stays(kept, "host").hint


@pytest.mark.slow
def test_a_newer_workspace_is_left_alone(kept: Place) -> None:
    text = state(kept, "host").read_text()
    state(kept, "host").write_text(text.replace("format = 1", "format = 2"))
    no_database(state(kept, "catalog.sqlite"))
    assert "newer truekeep" in stays(kept, "workspace").said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('repositories = []\n[limits]\n\nindex_lines = "many"\n', 4, "limits.index_lines must be"),
        ("repositories = []\n[limits]\nindex_linse = 3\n", 3, "did you mean index_lines?"),
        ("repositories = []\n[recal]\n", 2, "unknown key recal"),
        ("repositories = []\n\nlimits = [\n", 3, "Invalid value"),
        ("repositories = [,]\n", 1, "Invalid value"),
        ('repositories = "x"\n', 1, "repositories must be a list"),
        ('[policy]\nsecret = "promote"\n', 2, "policy.secret cannot be"),
    ],
)
def test_a_configuration_is_named_with_its_line(kept: Place, text: str, line: int, what: str) -> None:
    state(kept, "config.toml").write_text(text)
    check = stays(kept, "config")
    assert check.where == f".truekeep/config.toml:{line}", check
    assert what in check.said


@pytest.mark.slow
def test_every_problem_of_a_configuration_has_its_own_line(kept: Place) -> None:
    state(kept, "config.toml").write_text("[limits]\nreview_days = -1\n[recall]\nembedder = 'x'\n")
    assert [(check.name, check.where) for check in wrong(look(kept))] == [
        ("config", ".truekeep/config.toml:2"),
        ("config", ".truekeep/config.toml:4"),
    ]


def test_a_key_is_found_in_its_own_table() -> None:
    text = 'a = 1\n[one]\nkey = 1\n\n["two"]  # this\n# key = 2\n"key" = 3\n[three]\n'
    assert [line_of_key(text, key) for key in ("a", "one.key", "two.key", "three", "three.key", "key")] == [
        1,
        3,
        7,
        8,
        0,
        0,
    ]


@pytest.mark.slow
def test_routes_that_cannot_be_read(kept: Place) -> None:
    state(kept, "sync.toml").write_text('[laptop]\nvia = "pigeon"\n')
    assert "pigeon" in stays(kept, "config").said


@pytest.mark.slow
def test_a_record_of_decay_that_cannot_be_read(kept: Place) -> None:
    state(kept, "decay.toml").write_text('day = "soon"\n')
    assert stays(kept, "config").where == ".truekeep/decay.toml"


@pytest.mark.slow
def test_what_the_configuration_names_and_is_not_there(kept: Place, tmp_path: Path) -> None:
    kept.configure(
        f'[writers]\nopencode = ".opencode/memory-handoffs"\n[recall]\nextra_paths = ["{tmp_path}/notes"]\n'
        f'[verify]\ncheckouts = [\n  "{kept.base}/repos/*",\n  "{tmp_path}/gone",\n]\n'
    )
    found = [(check.where, check.said.partition(":")[0]) for check in wrong(look(kept))]
    assert found == [
        (".truekeep/config.toml:9", "verify.checkouts"),
        (".truekeep/config.toml:5", "recall.extra_paths"),
        (".truekeep/config.toml:3", "writers.opencode"),
    ]
    kept.configure()
    shutil.rmtree(kept.repo)
    assert "matches no folder" in stays(kept, "folders").said


# --- Search ---------------------------------------------------------------------------------------------------------


def set_meta(place: Place, key: str, value: str) -> None:
    db = apsw.Connection(str(state(place, "index.sqlite")))
    db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    assert db.changes() == 1
    db.close()


@pytest.mark.slow
def test_an_index_that_does_not_fit(kept: Place) -> None:
    set_meta(kept, "fingerprint", "some other chunking\nstatic")
    (check,) = mends(kept, "search")
    assert "another version" in check.said


@pytest.mark.slow
def test_an_index_of_another_embedder(kept: Place) -> None:
    kept.configure('[recall]\nembedder = "none"\n')
    (check,) = mends(kept, "search")
    assert "vectors of static, but the settings say none" in check.said


@pytest.mark.slow
def test_no_index_where_there_are_cards_is_no_trouble(kept: Place) -> None:
    state(kept, "index.sqlite").unlink(missing_ok=True)
    (check,) = [check for check in look(kept) if check.name == "search"]
    assert (check.severity, check.said) == (OK, "no index yet; the first search makes it")


@pytest.mark.slow
def test_an_index_that_is_far_behind(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.memory.file_scan.CLOCK_TICK_NS", -(1 << 62))  # as if written long ago
    for number in range(60):
        (kept.workspace / "memory" / "cards" / f"c{number}.md").write_text(a_card(f"Topic {number}"))
    (check,) = mends(kept, "search")
    assert "changed since" in check.said


@pytest.mark.slow
def test_pieces_without_a_vector(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.workspace.system_checks.MAX_FILES_BEHIND", 0)
    db = apsw.Connection(str(state(kept, "index.sqlite")))
    db.execute("INSERT INTO unembedded SELECT id FROM chunks; DELETE FROM vectors")
    db.close()
    (check,) = mends(kept, "search")
    assert check.said.endswith("pieces without a vector")


# --- What killed runs left ------------------------------------------------------------------------------------------


def aged(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - OLD, time.time() - OLD))
    return path


@pytest.mark.slow
def test_temporary_files_beside_memory(kept: Place) -> None:
    cards = kept.workspace / "memory" / "cards"
    temporary = cards / file_io.temporary_name("staging-proxy.md")
    temporary.write_bytes((cards / "staging-proxy.md").read_bytes())
    mends(kept, "leftovers")
    assert not state(kept, KEPT).exists(), "the same bytes are in the file"
    temporary.write_bytes(b"")
    mends(kept, "leftovers")
    temporary.write_bytes(b"what a person wrote in the last moment")
    (kept.workspace / file_io.temporary_name("MEMORY.md")).write_bytes(b"half of an ind")
    (check,) = mends(kept, "leftovers")
    saved = sorted(state(kept, KEPT).iterdir())
    assert [path.name.rpartition(".")[0] for path in saved] == ["MEMORY.md", "staging-proxy.md"]
    assert saved[1].read_bytes() == b"what a person wrote in the last moment"
    assert all(path.name in check.done for path in saved)


@pytest.mark.slow
def test_an_earlier_version_is_in_the_ledger_and_need_not_be_kept(kept: Place) -> None:
    path = kept.workspace / "memory" / "cards" / "staging-proxy.md"
    later = path.read_bytes()
    with kept.open() as workspace:
        workspace.history.undo(history(kept)[0].id)
    assert path.read_bytes() != later
    path.with_name(file_io.temporary_name(path.name)).write_bytes(later)
    mends(kept, "leftovers")
    assert not state(kept, KEPT).exists()


@pytest.mark.slow
def test_what_a_killed_import_left(kept: Place) -> None:
    temporary = kept.workspace / "memory" / file_io.temporary_name("new.md")
    temporary.write_text("half of it")
    state(kept, "importing").write_text(json.dumps(["memory/new.md"]))
    found = look(kept, fix=True)
    assert names(found) == [("leftovers", FIXED)]
    assert not temporary.exists()
    assert not state(kept, "importing").exists()
    assert wrong(look(kept)) == []


@pytest.mark.slow
def test_temporary_files_of_our_own(kept: Place) -> None:
    left = [
        aged(state(kept, "hosts", f".{'a' * 32}.toml.truekeep-tmp")),
        aged(state(kept, "contacts", ".laptop.json.123.truekeep-tmp")),
        aged(state(kept, "index.sqlite.new")),
        aged(state(kept, "lexicon.bin.4711")),
        aged(state(kept, "git/pool/71eb99cd33.git/objects/04/tmp_obj_O6ZB3n")),
    ]
    young = state(kept, ".host.99.truekeep-tmp")
    young.write_text("somebody writes this")
    mends(kept, "leftovers")
    assert not any(path.exists() for path in left)
    assert young.exists()


@pytest.mark.slow
def test_a_handoff_that_was_about_to_be_left(kept: Place) -> None:
    letter = aged(kept.inbox / ".2026-11-14-1100-x.md.7-ab.truekeep-tmp", b"# Memory Handoff\n")
    young = kept.inbox / ".2026-11-14-1101-y.md.8-ab.truekeep-tmp"
    young.write_text("somebody writes this")
    mends(kept, "leftovers")
    assert not letter.exists()
    assert young.exists()
    (saved,) = state(kept, KEPT).iterdir()
    assert saved.read_bytes() == b"# Memory Handoff\n"


@pytest.mark.slow
def test_a_link_that_is_called_like_a_temporary_file(kept: Place, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (kept.workspace / "memory" / ".x.md.truekeep-tmp").symlink_to(theirs)
    (kept.workspace / "memory" / "elsewhere").symlink_to(tmp_path)
    (tmp_path / ".y.md.truekeep-tmp").write_text("theirs")
    assert wrong(look(kept, fix=True)) == []
    assert theirs.read_text() == (tmp_path / ".y.md.truekeep-tmp").read_text() == "theirs"


# --- Permissions ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_state_that_others_can_read(kept: Place) -> None:
    state(kept).chmod(0o777)
    (check,) = mends(kept, "permissions")
    assert "(0777)" in check.said
    assert stat.S_IMODE(state(kept).stat().st_mode) == 0o770


@pytest.mark.slow
def test_state_that_cannot_be_written(kept: Place) -> None:
    state(kept, "ledger.sqlite").chmod(0o400)
    state(kept, "logs").chmod(0o500)
    (check,) = mends(kept, "permissions")
    assert check.said.startswith("2 paths")


@pytest.mark.slow
def test_a_folder_of_memory_that_cannot_be_written_is_a_persons(kept: Place) -> None:
    folder = kept.workspace / "memory" / "cards"
    folder.chmod(0o555)
    try:
        check = stays(kept, "permissions")
        assert (check.where, check.hint) == (str(folder), f"`chmod u+w {folder}`")
    finally:
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_that_belong_to_somebody_else(kept: Place) -> None:
    os.chown(state(kept, "ledger.sqlite"), 12345, 12345)
    (check,) = mends(kept, "permissions")
    assert "user 12345" in check.said
    assert state(kept, "ledger.sqlite").stat().st_uid == 0


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; exec "$@"'


@pytest.mark.slow
@pytest.mark.needs("unshare")
def test_a_disk_that_can_only_be_read(kept: Place) -> None:
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    command = [sys.executable, "-m", "truekeep", "doctor", "--fix", "--json", "-w", str(kept.workspace)]
    done = subprocess.run(
        [*unshare, "sh", "-c", READ_ONLY, "sh", str(kept.workspace), *command],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if done.returncode == 99:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    assert done.returncode == 1, done.stderr
    broken = [check for check in json.loads(done.stdout)["checks"] if check["state"] != "well"]
    assert [(check["name"], check["where"]) for check in broken] == [("permissions", str(kept.workspace))]


# --- The machine, the clock -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_machine_without_an_id(kept: Place, monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    monkeypatch.delenv("TRUEKEEP_MACHINE_ID")
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", ())
    checks = look(kept)
    assert "has no id yet" in next(check.said for check in checks if check.name == "machine")
    assert not Path(own_state(), "machine-id").exists(), "looking makes none"
    Path(own_state()).mkdir(parents=True, mode=0o700)
    for raw in (b"", b"\xff\xfe"):
        Path(own_state(), "machine-id").write_bytes(raw)
        (check,) = wrong(look(kept, fix=True))
        assert (check.name, check.where) == ("machine", str(Path(own_state(), "machine-id")))
        assert Path(own_state(), "machine-id").read_bytes() == raw


@pytest.mark.slow
def test_a_clock_that_was_ahead(kept: Place) -> None:
    check = stays(kept, "clock", now=NOW - timedelta(days=3))
    assert "2026-11-15T12:00:00Z" in check.said
    assert wrong(look(kept, now=NOW)) == []


# --- Hooks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def connected(kept: Place, tmp_path: Path) -> Place:
    put_stand_ins(tmp_path / "bin", "claude")
    put_truekeep(tmp_path / "bin")
    named = ("--harness", "claude", "--repo", str(kept.repo))
    done = run_cli("connect", *named, "--yes", TRUEKEEP_WORKSPACE=str(kept.workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    found = look(kept)
    assert wrong(found) == []
    assert "claude connected; the hook answers" in next(check.said for check in found if check.name == "hooks")
    return kept


def put_truekeep(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / "truekeep"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m truekeep "$@"\n')
    program.chmod(0o755)


def hooks(place: Place) -> list[CheckResult]:
    found = look(place, fix=True)
    assert {check.name for check in wrong(found)} <= {"hooks"}
    return wrong(found)


@pytest.mark.slow
def test_a_harness_that_forgot_truekeep(connected: Place, own_home: Path) -> None:
    (own_home / ".claude" / "settings.json").write_text("{}")
    (check,) = hooks(connected)
    assert "no longer mention truekeep" in check.said
    assert check.hint == f"`truekeep connect --repo {connected.repo}`"


@pytest.mark.slow
def test_a_rule_that_was_taken_out(connected: Place) -> None:
    (connected.repo / "CLAUDE.md").unlink()
    (check,) = hooks(connected)
    assert "the closeout rule is neither" in check.said


@pytest.mark.slow
def test_a_plugin_with_a_file_gone(connected: Place, own_home: Path) -> None:
    path = next((own_home / ".local" / "share" / "truekeep" / "plugin").rglob("*.md"))
    path.unlink()
    (check,) = hooks(connected)
    assert (check.where, check.hint) == (str(path), "run `truekeep connect` to restore them")


@pytest.mark.slow
def test_a_plugin_is_not_missed_where_no_harness_is_installed(connected: Place, own_home: Path, tmp_path: Path) -> None:
    shutil.rmtree(own_home / ".local" / "share" / "truekeep" / "plugin")
    (check,) = hooks(connected)
    assert "of the plugin missing or changed" in check.said
    (tmp_path / "bin" / "claude").unlink()
    assert [check.said for check in hooks(connected) if "plugin" in check.said] == []


@pytest.mark.slow
def test_a_harness_that_has_only_the_rule_is_not_called_connected(kept: Place, own_home: Path, tmp_path: Path) -> None:
    """Claude Code of an editor has settings here and no program."""
    put_truekeep(tmp_path / "bin")
    (own_home / ".claude").mkdir()
    named = ("--harness", "claude", "--repo", str(kept.repo))
    done = run_cli("connect", *named, "--yes", TRUEKEEP_WORKSPACE=str(kept.workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    said = [check.said for check in look(kept) if check.name == "hooks"]
    assert "claude: only the closeout rule is there, no hooks" in said
    assert not any("connected" in line for line in said)


@pytest.mark.slow
def test_a_repository_that_is_gone(connected: Place) -> None:
    connected.repo.rename(connected.base / "repos" / "renamed")
    (check,) = hooks(connected)
    assert (check.said, check.where) == ("was connected but no longer exists", str(connected.repo))


@pytest.mark.slow
def test_a_hook_that_does_not_answer(connected: Place, tmp_path: Path) -> None:
    (tmp_path / "bin" / "truekeep").write_text("#!/bin/sh\nexit 3\n")
    (check,) = hooks(connected)
    assert "ended with 3" in check.said
    (tmp_path / "bin" / "truekeep").unlink()
    (check,) = hooks(connected)
    assert "not on PATH" in check.said


@pytest.mark.slow
def test_a_record_that_cannot_be_read(connected: Place, own_home: Path) -> None:
    (own_home / ".local" / "state" / "truekeep" / "connect" / "record.json").write_text("{")
    (check,) = hooks(connected)
    assert "cannot be read" in check.said


# --- The schedule ---------------------------------------------------------------------------------------------------


def installed(place: Place) -> None:
    install(place.workspace, every=30, hours=None, system="cron", at="2026-11-15T11:50:00Z")


def scheduled(place: Place, *, fix: bool = False) -> list[CheckResult]:
    return wrong(look(place, fix=fix, now=NOW))


@pytest.mark.slow
def test_a_timer_whose_program_is_gone(kept: Place, tmp_path: Path) -> None:
    installed(kept)
    assert scheduled(kept) == []
    tab = tmp_path / "tab"
    tab.write_text(tab.read_text().replace(f" {plan_job(kept.workspace, 30).command[0]} ", " /opt/gone/truekeep "))
    (check,) = scheduled(kept)
    assert "/opt/gone/truekeep, which does not exist" in check.said
    (check,) = scheduled(kept, fix=True)
    assert (check.severity, check.done) == (FIXED, "installed again by cron")
    assert "/opt/gone" not in tab.read_text()
    assert scheduled(kept) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_running", [True, False])
def test_a_timer_that_nothing_winds_up(kept: Place, is_running: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.integrations.schedule.cron.is_running", lambda: is_running)
    installed(kept)
    told = [item for item in look(kept, now=NOW) if item.name == "timer"]
    assert any("no cron daemon is running: start it" in item.said for item in told) is not is_running
    late = [item for item in look(kept, now=NOW + timedelta(days=2)) if "it did not run" in item.said]
    assert [("start the cron daemon" in item.hint) for item in late] == [not is_running]


@pytest.mark.slow
def test_a_timer_that_is_gone(kept: Place, tmp_path: Path) -> None:
    installed(kept)
    (tmp_path / "tab").write_text("# nothing of truekeep\n")
    (check,) = scheduled(kept, fix=True)
    assert "the cron timer is gone" in check.said


@pytest.mark.slow
def test_a_run_that_failed_and_a_timer_that_sleeps(kept: Place) -> None:
    installed(kept)
    append_run(state(kept), Run(NOW - timedelta(minutes=5), 1.0, {}, FAILED, "index: the disk is full"))
    (check,) = scheduled(kept, fix=True)
    told = "index failed in the run of 2026-11-15 11:55 UTC: the disk is full"
    assert (check.said, check.where) == (told, ".truekeep/logs/schedule.log")
    (check,) = wrong(look(kept, now=NOW + timedelta(days=2)), "timer")
    assert "it did not run since" in check.said


@pytest.mark.slow
def test_a_schedule_that_cannot_be_read(kept: Place) -> None:
    installed(kept)
    Path(own_state(), "schedule.toml").write_text("[")
    (check,) = scheduled(kept, fix=True)
    assert "schedule.toml cannot be read" in check.said


ODD = ("/opt/with space/truekeep", "/opt/per%cent $HOME/`x`/tr'ue\"keep", "/opt/a=b;c/truekeep", "/opt/ünï/truekeep")


@pytest.mark.parametrize("program", ODD)
def test_a_timer_says_what_it_runs(own_home: Path, program: str) -> None:
    job = Job("truekeep", (program, "schedule", "run", "--workspace", "/srv/my memory"), {"PATH": "/usr/bin:/a b"}, 30)
    cron.install(job)
    assert cron.command("truekeep") == job.command
    systemd.install(job)
    assert systemd.command("truekeep") == job.command
    assert cron.command("truekeep-other") == systemd.command("truekeep-other") == ()


# --- Transcripts ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_archive_of_sessions_that_is_damaged(kept: Place, own_home: Path) -> None:
    session = own_home / ".claude" / "projects" / "-app" / "0b1c2d3e-0000-4000-8000-000000000001.jsonl"
    session.parent.mkdir(parents=True)
    row = {
        "type": "user", "sessionId": session.stem, "cwd": "/app", "timestamp": "2026-11-15T10:00:00.000Z", "uuid": "u",
        "message": {"role": "user", "content": "Where does staging answer?"},
    }  # fmt: skip
    session.write_text(json.dumps(row) + "\n")
    with kept.open() as workspace:
        assert workspace.sessions.sync_transcripts().turns == 1
        workspace.search.index()
    no_database(state(kept, "transcripts", "archive.sqlite"))
    (check,) = mends(kept, "transcripts")
    assert "kept it as archive.sqlite.damaged-" in check.done
    with kept.open() as workspace:
        assert len(list(workspace.sessions.transcripts().sessions())) == 1


# --- A machine that only produces, the command line -----------------------------------------------------------------


def test_a_producer_has_its_own_part_examined(own_home: Path) -> None:
    checks = look(None)
    assert wrong(checks) == []
    assert [check.name for check in checks] == [
        "workspace", "machine", "permissions", "transcripts", "leftovers", "locks", "hooks", "timer", "schedule",
        "bugs",
    ]  # fmt: skip
    own = Path(own_state())
    sessions = own / "sessions"
    sessions.mkdir(parents=True, mode=0o755)
    left = aged(sessions / "claude-1.json.4711")
    aged(sessions / "claude-1.json", b"{}")
    assert names(look(None)) == [("permissions", PROBLEM), ("leftovers", PROBLEM)]
    assert names(look(None, fix=True)) == [("permissions", FIXED), ("leftovers", FIXED)]
    assert wrong(look(None)) == []
    assert not left.exists()
    assert (sessions / "claude-1.json").exists()


@pytest.mark.slow
def test_on_the_command_line(kept: Place) -> None:
    where = ("-w", str(kept.workspace))
    kept.ingest(now=datetime.now().astimezone())
    done = run_cli("doctor", *where)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "no problems found")
    no_database(state(kept, "catalog.sqlite"))
    done = run_cli("doctor", *where)
    assert done.returncode == 1
    assert "problem catalog.sqlite .truekeep/catalog.sqlite: is damaged" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 problem"
    done = run_cli("doctor", "--fix", "--json", *where)
    told: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, told["schema"], told["ok"], told["fix"]) == (0, "truekeep.doctor/1", True, True)
    (check,) = [check for check in told["checks"] if check["state"] == "mended"]
    assert list(check) == ["name", "state", "what", "where", "done", "hint"]
    assert check["name"] == "catalog.sqlite"


@pytest.mark.slow
def test_no_workspace_where_one_is_named(tmp_path: Path) -> None:
    done = run_cli("doctor", "-w", str(tmp_path / "none"), "--fix")
    assert done.returncode == 1
    assert "there is no such folder" in done.stdout
    assert "truekeep init" in done.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_state_folder_that_is_a_symlink(kept: Place, tmp_path: Path) -> None:
    state(kept).rename(tmp_path / "elsewhere")
    state(kept).symlink_to(tmp_path / "elsewhere")
    assert stays(kept, "workspace").said == "is a symlink"


@pytest.mark.slow
def test_names_that_speak_to_the_terminal(kept: Place) -> None:
    (kept.workspace / "memory" / ".a\x1b[2J\u202e.md.truekeep-tmp").write_text("x")
    state(kept, "config.toml").write_text('"a\\u001b[2J" = 1\n')
    done = run_cli("doctor", TRUEKEEP_WORKSPACE=str(kept.workspace))
    assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


@pytest.mark.slow
def test_a_secret_in_what_is_told_is_withheld(kept: Place) -> None:
    secret = "ghp_" + "a1B2" * 9
    kept.configure(f'[verify]\ncheckouts = ["/src/{secret}"]\n')
    (check,) = wrong(look(kept))
    assert secret not in check.said


def break_everything(place: Place) -> None:
    leave_pending(place)
    damage_an_index(state(place, "ledger.sqlite"))
    for name in DERIVED:
        no_database(state(place, name))
    state(place).chmod(0o755)
    (place.workspace / "memory" / "cards" / ".q.md.truekeep-tmp").write_text("only here")
    aged(state(place, ".x.truekeep-tmp"))


@pytest.mark.slow
def test_everything_at_once(kept: Place) -> None:
    """Broken all over, mended in one go."""
    memory = tree(kept.workspace)
    before = history(kept)
    break_everything(kept)
    fixed = look(kept, fix=True)
    assert [check.said for check in wrong(fixed, "ledger")][-1] == "1 batch(es) of a killed run are not finished"
    assert {state_ for _, state_ in names(fixed)} == {FIXED}, wrong(fixed)
    assert {name for name, _ in names(fixed)} == {"permissions", "ledger", *DERIVED, "leftovers"}
    assert wrong(look(kept)) == []
    after = dict(tree(kept.workspace))
    del after["memory/cards/pending.md"]
    assert after == memory
    assert history(kept)[1:] == before


CHANGING = ("rename", "replace", "unlink", "mkdir", "chmod", "fsync", "link", "write")


def killed_at(place: Place, point: int, *, is_after: bool) -> bool:
    """Mend in a process of its own that is killed at its n-th change of the disk; False when it has fewer."""
    pid = os.fork()
    if pid == 0:
        calls = 0

        def around(call: Callable[..., Any]) -> Callable[..., Any]:
            def changed(*given: Any, **named: Any) -> Any:
                nonlocal calls
                calls += 1
                is_here = calls == point
                if is_here and not is_after:
                    os._exit(9)
                try:
                    return call(*given, **named)
                finally:
                    if is_here:
                        os._exit(9)

            return changed

        try:
            for name in CHANGING:
                setattr(os, name, around(getattr(os, name)))
            look(place, fix=True)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_killed_while_it_mends(kept: Place, tmp_path_factory: pytest.TempPathFactory, is_after: bool) -> None:
    """Whenever the doctor itself is killed, the next one finishes, and nothing is lost."""
    before = history(kept)
    break_everything(kept)
    broken = tmp_path_factory.mktemp("broken") / "workspace"
    shutil.copytree(kept.workspace, broken, symlinks=True)
    point = 0
    while True:
        point += 1
        shutil.rmtree(kept.workspace)
        shutil.copytree(broken, kept.workspace, symlinks=True)
        os.utime(state(kept, ".x.truekeep-tmp"), (time.time() - OLD, time.time() - OLD))
        if not killed_at(kept, point, is_after=is_after):
            break
        look(kept, fix=True)
        assert wrong(look(kept)) == [], point
        assert history(kept)[1:] == before, point
        assert "Pending" in kept.card("pending.md")
        saved = [path for path in state(kept, KEPT).iterdir() if not path.name.endswith(file_io.TEMPORARY)]
        assert [path.read_text() for path in saved] == ["only here"], point
    assert point > 20


@pytest.mark.slow
def test_kept_verdicts_are_gone_and_come_back(kept: Place) -> None:
    no_database(state(kept, "facts.sqlite"))
    mends(kept, "facts.sqlite")
    store = FactsCache(str(state(kept, "facts.sqlite")))
    assert store.rows("SELECT count(*) FROM verdict") == [(0,)]
    store.close()
    with kept.open() as workspace:
        workspace.verification.verify()
    store = FactsCache(str(state(kept, "facts.sqlite")))
    assert store.rows("SELECT count(*) FROM verdict") != [(0,)]
    store.close()
