"""Going forward, and not back: the state that every earlier commit's format left is taken over, a newer one is refused.

The samples were written by the programs of those commits, not by today's (tools/freeze.py): a few days of work, ended
by a run that was killed before its files were written.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from tools.freeze import ADA, MACHINE, SAMPLES

from tests.support.helpers import CLAUDE, CODEX, a_card, a_handoff, run_cli, tree
from truekeep.core.formats import FORMATS, WORKSPACE, read_format
from truekeep.interfaces.cli.app import run
from truekeep.memory.ledger import VERSION, Ledger

STATES = sorted(path.name.removesuffix(".tar.xz") for path in SAMPLES.glob("*.tar.xz"))
LINT = "Run make lint before every push."
PROXY, KILLED = "memory/cards/staging-proxy.md", "memory/cards/killed.md"


@dataclass
class Past:
    """Ada's home as an earlier truekeep left it, and today's program in it."""

    home: Path
    told: dict[str, Any]
    capsys: pytest.CaptureFixture[str]

    @property
    def workspace(self) -> Path:
        return self.home / ".openclaw" / "workspace"

    @property
    def state(self) -> Path:
        return self.workspace / ".truekeep"

    @property
    def repo(self) -> Path:
        return self.home / "repos" / "shop"

    def __call__(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What a command tells as JSON."""
        status, told = self.any(*arguments)
        assert status == code, told
        return told

    def any(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """What a command tells as JSON, however it ends."""
        self.capsys.readouterr()
        status = run([*arguments, "--json"])
        return status, json.loads(self.capsys.readouterr().out)

    def text(self, path: str) -> str:
        return (self.workspace / path).read_text()

    def memory(self) -> dict[str, str]:
        return dict(tree(self.workspace))


def move_home(home: Path, *, was: Path) -> None:
    """Write the paths of a user's own files as they are after the whole home was moved."""
    for path in [*(home / ".local").rglob("*.json"), *(home / ".local").rglob("workspace")]:
        path.write_text(path.read_text().replace(str(was), str(home)))


def unpack(name: str, home: Path) -> dict[str, Any]:
    """Put a sample into a home, which may be elsewhere than it was."""
    with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
        archive.extractall(home, filter="data")
    move_home(home, was=ADA)
    told: dict[str, Any] = json.loads((home / "told.json").read_text())
    (home / "told.json").unlink()
    return told


@pytest.fixture
def ada(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", MACHINE)
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    return own_home


@pytest.fixture(params=STATES)
def past(
    request: pytest.FixtureRequest, ada: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Past:
    told = unpack(request.param, ada)
    monkeypatch.chdir(ada / "repos" / "shop")
    return Past(ada, told, capsys)


def numbered(entries: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {entry["entry"]: entry for entry in entries}


def test_every_format_has_its_sample() -> None:
    """Who raises a number freezes what was before, and so the newest sample is of the number before, or of today's."""
    names = " ".join(STATES)
    older = [f"{name}-{number}" for name, known in FORMATS.items() for number in range(1, known.number)]
    assert [name for name in older if name not in names] == []


def test_history_is_whole(past: Past) -> None:
    memory = past.memory()
    before = numbered(past.told["history"]["entries"])
    assert len(before) >= 10
    now = numbered(past("history", "-n", "100")["entries"])
    assert now.keys() == {*before, max(before) + 1}  # and the entry of the run that was killed
    for number, entry in before.items():
        shared = entry.keys() & now[number].keys()
        assert {"verb", "at", "actor", "note", "files", "undoes", "undone_by", "handoff"} <= shared
        assert {key: now[number][key] for key in shared} == {key: entry[key] for key in shared}
    assert past.memory() == memory
    drafts = [draft["id"] for draft in past.told["drafts"]["drafts"]]
    assert [draft["id"] for draft in past("review", "list")["drafts"]] == drafts
    assert any(draft.startswith("doubtful-") for draft in drafts)


def test_a_killed_run_is_finished_and_nothing_is_filed_twice(past: Past) -> None:
    assert not (past.workspace / KILLED).exists()
    past("ingest")
    assert "The run was killed." in past.text(KILLED)
    assert past.text("MEMORY.md").count("killed.md") == 1
    memory = past.memory()
    for inbox in (CLAUDE, CODEX):
        for path in (past.repo / inbox / "processed").iterdir():
            shutil.copy2(path, past.repo / inbox / path.name)
    again = past("ingest")
    assert (again["processed"], again["counts"]["already"]) == (8, 8)
    assert past.memory() == memory
    assert past("ingest")["processed"] == 0
    assert past.memory() == memory


def test_lines_are_explained_and_taken_back(past: Past) -> None:
    before = past.memory()
    text = past.text(PROXY)
    line = text.splitlines().index("The proxy is nginx.") + 1
    (told,) = past("blame", f"{PROXY}:{line}")["lines"]
    assert told["entry"]["handoff"]["name"] == "2026-11-11-0910-proxy.md"
    done = past("undo", "4")
    assert "nginx" not in past.text(PROXY)
    assert "port 8443" in past.text(PROXY)
    past("undo", str(done["entry"]))
    assert past.text(PROXY) == text
    # What the old program had undone itself can be had again, and what a person wrote in between stays.
    assert LINT not in past.text("TOOLS.md")
    past("undo", "10")
    assert LINT in past.text("TOOLS.md")
    assert "Ada says so." in past.text("TOOLS.md")
    changed = {path for path, digest in past.memory().items() if before.get(path) != digest}
    assert changed == {"TOOLS.md", KILLED, "MEMORY.md"}  # the last two by the run that was killed


def test_a_draft_of_before_is_decided(past: Past) -> None:
    (draft,) = [draft["id"] for draft in past.told["drafts"]["drafts"] if draft["id"].startswith("doubtful-")]
    past("review", "approve", draft)
    assert "port 8443" in past.text("memory/cards/doubtful.md")
    assert draft not in [item["id"] for item in past("review", "list")["drafts"]]


def test_what_is_derived_is_made_anew(past: Past) -> None:
    inbox = past.repo / CLAUDE / "2026-11-13-0900-cache.md"
    card = a_card("Cache", "Pages are cached for an hour.")
    inbox.write_text(a_handoff(title="Cache", card="cache.md", content=card))
    os.utime(inbox, (1_794_300_000, 1_794_300_000))
    assert past("ingest")["counts"]["promoted"] == 1
    (hit, *_) = past("search", "ERR_INVOICE_4417")["hits"]
    assert hit["path"] == "memory/2026-11-09.md"
    past("index")
    past("verify")
    past("status")
    for known in FORMATS.values():
        assert read_format(str(past.state / known.file)) in (known.number, 0)
    for name in ("index", "catalog", "survey", "facts"):
        db = apsw.Connection(str(past.state / FORMATS[name].file), flags=apsw.SQLITE_OPEN_READONLY)
        assert db.execute("PRAGMA integrity_check").get == "ok"
        db.close()
    past.any("doctor", "--fix")  # early folders could be read by everybody
    checks = past.any("doctor")[1]["checks"]
    assert [check for check in checks if check["state"] == "broken" and check["name"] != "hooks"] == []


def with_file(name: str) -> list[str]:
    """The samples that have such a file."""
    found = []
    for state in STATES:
        with tarfile.open(SAMPLES / f"{state}.tar.xz") as archive:
            found += [state] if any(item.endswith(name) for item in archive.getnames()) else []
    assert found
    return found


@pytest.mark.parametrize("past", with_file("archive.sqlite"), indirect=True)
def test_sessions_that_the_harness_has_deleted_are_still_there(past: Past) -> None:
    shutil.rmtree(past.home / ".claude")
    past("transcripts", "sync")
    (session,) = past("transcripts", "list")["sessions"]
    shown = past("transcripts", "show", session["session"])
    assert "Redis drops them." in json.dumps(shown)
    past("index")
    (hit, *_) = past("search", "carts expire", "--store", "transcripts")["hits"]
    assert "expire after two days" in hit["text"]


@pytest.mark.parametrize("past", with_file(f"{'0' * 11}1.json"), indirect=True)
def test_sessions_are_counted(past: Past) -> None:
    (told,) = past("status", "closeout", "--days", "3650")["closeout"]
    assert told["sessions"] == 1


@pytest.mark.parametrize("past", with_file("connect/record.json"), indirect=True)
def test_what_was_connected_can_be_disconnected(past: Past) -> None:
    assert (past.repo / "CLAUDE.md").exists()
    past("disconnect", "--yes", "--repo", str(past.repo))
    assert not (past.repo / "CLAUDE.md").exists()
    assert (past.repo / ".gitignore").read_text() == "**/memory-handoffs/\n"


@pytest.mark.parametrize("past", with_file("sync.toml"), indirect=True)
def test_routes_are_known(past: Past) -> None:
    (route,) = past("sync", "status")["routes"]
    assert (route["name"], route["via"]) == ("laptop", "rsync")
    assert past("host", "show")["canonical"]["name"] == "desk"


@pytest.mark.parametrize("past", with_file("decay.toml"), indirect=True)
def test_what_was_forgotten_stays_forgotten(past: Past) -> None:
    assert past("search", "Ran the import once more", "--store", "logs")["hits"][0]["text"].count("once more") == 0


# --- Going back -----------------------------------------------------------------------------------------------------

READING: dict[str, tuple[str, ...]] = {
    "search": ("search", "staging"),
    "status": ("status",),
    "verify": ("verify",),
    "history": ("history",),
    "wake": ("wake",),
    "tidy": ("tidy",),
}
WRITING: dict[str, tuple[str, ...]] = {
    "ingest": ("ingest",),
    "approve": ("review", "approve", "doubtful"),
    "undo": ("undo", "4"),
    "write": ("note", "log", "The cache is warm."),
    "confirm": ("card", "confirm", "staging-proxy"),
    "verify --fix": ("verify", "--fix"),
    "host release": ("host", "release"),
}
SETTING: dict[str, tuple[str, ...]] = {
    "sync add": ("sync", "add", "x", "--via", "git", "--remote", "git@git.example:x.git"),
    "init": ("init",),
    "host take": ("host", "take", "--yes"),
}
NEWEST = STATES[-1]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The newest sample as today's program leaves it: no run is under way, and every file is of today's format."""
    home = tmp_path_factory.mktemp("ada")
    unpack(NEWEST, home)
    settings = {"HOME": str(home), "TRUEKEEP_MACHINE_ID": MACHINE, "TRUEKEEP_NO_BACKGROUND": "1", "XDG_STATE_HOME": ""}
    for command in (("ingest",), ("index",), ("verify",), ("status",), ("transcripts", "sync")):
        done = run_cli(*command, cwd=home / "repos" / "shop", TRUEKEEP_WORKSPACE="", **settings)
        assert done.returncode == 0, done.stderr
    return home


def raise_number(path: Path, *, to: int) -> None:
    """As a newer truekeep would have left it."""
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA user_version = {to}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@pytest.fixture
def back(ada: Path, today: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Past:
    shutil.copytree(today, ada, dirs_exist_ok=True)
    move_home(ada, was=today)
    monkeypatch.chdir(ada / "repos" / "shop")
    return Past(ada, {}, capsys)


def refused(past: Past, arguments: tuple[str, ...], file: str, number: int) -> None:
    """It says which file it is, of which format, and what to do; nothing is written, but for what looking derives."""
    derived = {known.file for known in FORMATS.values() if known.is_derived and known.file != file}
    before = {path: digest for path, digest in tree(past.home, skip=()).items() if Path(path).name not in derived}
    error = past(*arguments, code=6)["error"]
    assert error["code"] == "newer-state"
    assert str(past.state / file) in error["message"]
    assert f"format {number}" in error["message"]
    assert "upgrade truekeep on this machine" in error["hint"]
    now = tree(past.home, skip=())
    assert {path: digest for path, digest in now.items() if Path(path).name not in derived} == before


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_written_where_a_newer_truekeep_wrote(back: Past, name: str) -> None:
    known = FORMATS[name]
    raise_number(back.state / known.file, to=known.number + 1)
    more = {"ledger": SETTING.values(), "transcripts": [("transcripts", "sync")], "index": [("index",)]}
    for arguments in (*WRITING.values(), *more.get(name, ())):
        refused(back, arguments, known.file, known.number + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_reading_goes_on_without_that_file_or_is_refused(back: Past, name: str) -> None:
    known = FORMATS[name]
    path = back.state / known.file
    raise_number(path, to=known.number + 1)
    data = path.read_bytes()
    for arguments in READING.values():
        if name == "ledger":
            refused(back, arguments, known.file, known.number + 1)
            continue
        memory = back.memory()
        status, told = back.any(*arguments)
        assert status == 0 or told["error"]["code"] == "newer-state", (arguments, told)
        assert path.read_bytes() == data
        assert back.memory() == memory


def test_a_workspace_of_a_newer_format_is_left_alone(back: Past) -> None:
    host = back.state / "host"
    host.write_text(host.read_text().replace(f"format = {WORKSPACE}", f"format = {WORKSPACE + 1}"))
    for arguments in (*READING.values(), *WRITING.values(), *SETTING.values()):
        refused(back, arguments, "host", WORKSPACE + 1)


def test_a_newer_record_of_connections_is_left_alone(back: Past) -> None:
    path = back.home / ".local" / "state" / "truekeep" / "connect" / "record.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    before = tree(back.home, skip=())
    error = back("disconnect", "--yes", "--repo", str(back.repo), code=6)["error"]
    assert error["code"] == "newer-state"
    assert str(path) in error["message"]
    assert tree(back.home, skip=()) == before


def test_a_newer_ledger_is_told_by_doctor_and_not_mended(back: Past) -> None:
    raise_number(back.state / "ledger.sqlite", to=VERSION + 1)
    state = tree(back.state, skip=())
    checks = back("doctor", "--fix", code=1)["checks"]
    (check,) = [check for check in checks if check["name"] == "workspace"]
    assert "ledger.sqlite was written by a newer truekeep" in check["what"]
    assert tree(back.state, skip=()) == state


def test_a_newer_number_that_is_still_in_the_log_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(str(path)).close()
    newer = apsw.Connection(str(path))
    newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    try:
        assert read_format(str(path)) == VERSION  # the head of the file does not know yet
        with pytest.raises(Exception, match="newer truekeep"):
            Ledger(str(path))
    finally:
        newer.close()


def test_hooks_are_silent_and_say_why_in_the_log(back: Past) -> None:
    raise_number(back.state / "ledger.sqlite", to=VERSION + 1)
    memory = back.memory()
    done = run_cli("hook", "session-start", cwd=back.repo, stdin=json.dumps({"session_id": "s", "cwd": str(back.repo)}))
    assert (done.returncode, done.stdout) == (0, "")
    assert "newer truekeep" in (back.state / "logs" / "hooks.log").read_text()
    assert back.memory() == memory
