"""rsync over ssh, against a real sshd on loopback: what waits on another machine is filed here once, and receipted."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.counting import count_work
from tests.support.helpers import CLAUDE, CODEX, Place, a_card, a_handoff, git_repo, tree, wait_until
from tests.support.programs import need
from tests.support.sshd import SshHost, ssh_host
from truekeep.core.errors import BadSetup
from truekeep.handoffs.sync import remote_scan, via_rsync
from truekeep.handoffs.sync.contact_history import Contact, read_history
from truekeep.handoffs.sync.mirror import MAX_FILE_BYTES, Mirror
from truekeep.handoffs.sync.mirror import RemoteRepository as Mirrored
from truekeep.handoffs.sync.processes import Ran, run_tool
from truekeep.handoffs.sync.remote_scan import Receipt, parse_survey, render_pattern, render_script
from truekeep.handoffs.sync.routes import Option, Route
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable, run_routes
from truekeep.workspace.machine_role import side_of

OLD = time.time() - 600


def a_numbered(number: int | str) -> str:
    """A handoff like no other."""
    return a_handoff(
        title=f"Fact {number}", card=f"fact-{number}.md", content=a_card(f"Fact {number}", f"Port {number} is open.")
    )


def leave(folder: Path, name: str, text: str, *, at: float = OLD) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    os.utime(path, (at, at))
    return path


@dataclass
class Setting:
    """A canonical host and one producer."""

    place: Place
    laptop: SshHost
    side: LocalMachine | None = None

    @property
    def repo(self) -> Path:
        return self.laptop.base / "repos" / "app"

    @property
    def inbox(self) -> Path:
        return self.repo / CLAUDE

    def here(self, **changes: object) -> LocalMachine:
        if self.side is None:
            with self.place.open() as workspace:
                self.side = side_of(workspace)
        return self.side._replace(**changes)  # type: ignore[arg-type]

    def route(self, **options: Option) -> Route:
        repos = (f"{self.laptop.base}/repos/*",)
        return Route(self.laptop.name, "rsync", {**self.laptop.options, "repos": repos, **options})

    def contact(self, **options: Option) -> Contact:
        return via_rsync.contact(self.route(**options), self.here())

    def filed(self) -> Counter[tuple[str, str, str, str]]:
        """Machine, repository, writer and name of every act of filing in the ledger."""
        with self.place.open() as workspace:
            return Counter(
                (record.origin.machine, record.origin.repository, record.origin.writer, record.origin.name)
                for entry, record in workspace.history.entries()
                if record is not None and entry.verb in ("promoted", "review")
            )

    def waiting(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.inbox) if entry.name != "processed")

    def processed(self) -> list[str]:
        folder = self.inbox / "processed"
        return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.fixture
def setting(place: Place, tmp_path: Path) -> Iterator[Setting]:
    with ssh_host(tmp_path / "other machines", "laptop") as laptop:
        git_repo(laptop.base / "repos" / "app", remote="git@github.com:me/app.git")
        yield Setting(place, laptop)


# --- From there to here and back ------------------------------------------------------------------------------------


def test_two_repositories_and_both_writers_are_filed_under_their_names(setting: Setting) -> None:
    tool = setting.laptop.base / "repos" / "my tool"
    (tool / ".git").mkdir(parents=True)
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    leave(setting.repo / CODEX, "2026-11-14-0901-two.md", a_numbered(2))
    leave(tool / CODEX, "2026-11-14-0902-three.md", a_numbered(3))

    first = setting.contact()
    assert (first.brought, first.receipts, first.waiting, first.notes) == (3, 0, 0, ())
    assert first.machines == ("laptop",)
    setting.place.ingest()
    assert setting.filed() == Counter(
        [
            ("laptop", "github.com/me/app", "claude", "2026-11-14-0900-one.md"),
            ("laptop", "github.com/me/app", "codex", "2026-11-14-0901-two.md"),
            ("laptop", "laptop:my tool", "codex", "2026-11-14-0902-three.md"),
        ]
    )
    assert setting.waiting() == ["2026-11-14-0900-one.md"], "the producer's copy stays until the next contact"

    second = setting.contact()
    assert (second.brought, second.receipts) == (0, 3)
    assert setting.waiting() == []
    assert setting.processed() == ["2026-11-14-0900-one.md"]
    assert os.listdir(tool / CODEX / "processed") == ["2026-11-14-0902-three.md"]
    assert not os.listdir(setting.here().state / via_rsync.QUARANTINE)

    third = setting.contact()
    assert (third.brought, third.receipts) == (0, 0)
    assert via_rsync.read_memory(Mirror.of(setting.here().state, "laptop").base) == {}


def test_a_run_with_nothing_new_is_one_trip(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.contact()
    assert setting.laptop.logins() == 2
    setting.contact()  # brought, not filed yet
    assert setting.laptop.logins() == 3
    setting.place.ingest()
    setting.contact()  # the receipt goes with the same trip
    assert setting.laptop.logins() == 4
    setting.contact()
    assert setting.laptop.logins() == 5


def test_two_producers_a_dead_one_and_the_program_itself(setting: Setting, tmp_path: Path) -> None:
    with ssh_host(tmp_path, "tower") as tower:
        leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
        leave(tower.home / "repos" / "it's a repo" / CODEX, "2026-11-14-0900-two.md", a_numbered(2))
        leave(tower.home / "repos" / "copy" / CODEX, "2026-11-14-0900-again.md", a_numbered(1))
        dead = Route("dead", "rsync", {"host": "127.0.0.1", "port": 1, "repos": ("~/repos/*",)})
        routes = [setting.route(), Route("tower", "rsync", {**tower.options, "repos": ("~/repos/*",)}), dead]
        here = setting.here()
        found = {item.route: item for item in run_routes(routes, here)}
        assert (found["laptop"].brought, found["tower"].brought) == (1, 2)
        assert not found["dead"].ok
        assert "ssh" in found["dead"].problem
        assert read_history(here.state, "dead").failures == 1
        report = setting.place.ingest()
        assert report.count("promoted") == 2, "what two machines have is one handoff"
        again = {item.route: item for item in run_routes(routes, here)}
        assert (again["laptop"].receipts, again["tower"].receipts) == (1, 2)
        assert not list(tower.home.glob("repos/*/.codex/memory-handoffs/*.md"))


def test_an_edit_between_contact_and_receipt_is_a_handoff_of_its_own(setting: Setting) -> None:
    path = leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    leave(setting.inbox, "2026-11-14-0901-two.md", a_numbered(2))
    setting.contact()
    setting.place.ingest()
    edited = a_numbered(3)
    assert len(edited) == path.stat().st_size
    leave(setting.inbox, path.name, edited)  # of the same size, and with the time set back

    second = setting.contact()
    assert (second.brought, second.receipts) == (1, 1)
    assert setting.waiting() == [path.name]
    assert setting.processed() == ["2026-11-14-0901-two.md"]
    setting.place.ingest()
    assert setting.contact().receipts == 1
    assert setting.waiting() == []
    assert sum(setting.filed().values()) == 3
    assert (setting.inbox / "processed" / path.name).read_text() == edited


def test_an_edit_that_no_stamp_shows_is_found_by_its_checksum(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.contact()
    setting.place.ingest()
    leave(setting.inbox, path.name, a_numbered(2))
    monkeypatch.setattr(via_rsync.FetchedHandoff, "is_same", lambda self, found: True)
    second = setting.contact()
    assert (second.brought, second.receipts) == (1, 0)
    assert setting.waiting() == [path.name]


def test_a_name_that_is_taken_in_processed_gets_a_number(setting: Setting) -> None:
    old = leave(setting.inbox / "processed", "2026-11-14-0900-one.md", "from before")
    leave(setting.inbox, old.name, a_numbered(1))
    setting.contact()
    setting.place.ingest()
    assert setting.contact().receipts == 1
    assert setting.processed() == ["2026-11-14-0900-one-2.md", "2026-11-14-0900-one.md"]
    assert old.read_text() == "from before"


def test_a_lost_memory_and_a_lost_mirror_file_nothing_twice(setting: Setting) -> None:
    for number in range(3):
        leave(setting.inbox, f"2026-11-14-090{number}-x.md", a_numbered(number))
    setting.contact()
    setting.place.ingest()
    mirror = Mirror.of(setting.here().state, "laptop")
    (mirror.base / via_rsync.MEMORY).write_text('{"seen": [[1]]')
    assert setting.contact().brought == 0, "the mirror has the very same"
    shutil.rmtree(mirror.base)
    assert setting.contact().brought == 3
    setting.place.ingest()
    assert setting.contact().receipts == 3
    assert sum(setting.filed().values()) == 3
    assert setting.waiting() == []


def test_a_pruned_mirror_still_gives_receipts(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.contact()
    setting.place.ingest()
    for path in Mirror.of(setting.here().state, "laptop").base.glob("*/.claude/memory-handoffs/processed/*"):
        path.unlink()
    assert setting.contact().brought == 1
    setting.place.ingest()
    assert setting.contact().receipts == 1
    assert sum(setting.filed().values()) == 1


# --- Names, links, times --------------------------------------------------------------------------------------------


def test_hostile_names(setting: Setting) -> None:
    good = [
        "-e sh.md",
        "--rsh=touch x.md",
        "$(touch x) `touch y`.md",
        'it\'s "quoted" \\ back.md',
        "Ámbar ’ 日本 \U0001f600.md",
        "; rm -rf * & #.md",
        "* ? [a-z].md",
    ]
    for number, name in enumerate(good):
        leave(setting.inbox, name, a_numbered(number))
    leave(setting.inbox, "two\nlines.md", a_numbered(90))
    leave(setting.inbox, "x\nf 1 2 3 .md", a_numbered(91))
    leave(setting.inbox, "tab\t.md", a_numbered(92))
    leave(setting.inbox, os.fsdecode(b"latin \xe9.md"), a_numbered(93))
    leave(setting.inbox, "README.md", "what these are")
    leave(setting.inbox, ".half.md", a_numbered(94))
    leave(setting.inbox, "notes.txt", "no handoff")
    left = len(setting.waiting()) - len(good)

    before = tree(setting.laptop.base, skip=("ssh",))
    found = setting.contact()
    assert found.brought == len(good)
    assert any("control characters" in note for note in found.notes)
    assert any("not UTF-8" in note for note in found.notes)
    assert len(found.notes) == 2
    assert tree(setting.laptop.base, skip=("ssh",)) == before, "a look changes nothing there"
    setting.place.ingest()
    assert setting.contact().receipts == len(good)
    assert len(setting.waiting()) == left
    assert setting.processed() == sorted(good)


def test_a_repository_with_a_hostile_name(setting: Setting) -> None:
    names = ["-e sh", 'it\'s $(touch x) "a"', os.fsdecode(b"latin \xe9"), "Á *?"]
    for number, name in enumerate([*names, "line\nbreak"]):
        repo = git_repo(setting.laptop.base / "repos" / name, remote="")
        leave(repo / CLAUDE, "2026-11-14-0900-x.md", a_numbered(number))
    found = setting.contact()
    assert found.brought == len(names)
    assert any("control characters" in note for note in found.notes)
    setting.place.ingest()
    assert setting.contact().receipts == len(names)


def test_symlinks_and_special_files_are_not_followed(setting: Setting, tmp_path: Path) -> None:
    secret = leave(tmp_path / "private", "secret.md", a_numbered(1))
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(2))
    (setting.inbox / "link.md").symlink_to(secret)
    (setting.inbox / "loop.md").symlink_to(setting.inbox)
    os.link(secret, setting.inbox / "hard.md")
    os.mkfifo(setting.inbox / "pipe.md")
    (setting.inbox / "folder.md").mkdir()
    other = setting.laptop.base / "repos" / "linked"
    (other / ".claude").mkdir(parents=True)
    (other / CLAUDE).symlink_to(secret.parent)
    third = setting.laptop.base / "repos" / "linked above"
    third.mkdir()
    (third / ".claude").symlink_to(setting.repo / ".claude")
    (setting.laptop.base / "repos" / "same again").symlink_to(setting.repo)

    found = setting.contact()
    assert found.brought == 1
    assert sum("symlink and is skipped" in note for note in found.notes) == 2
    assert any("symlinks, hard links" in note for note in found.notes)
    kept = [path for path in Mirror.of(setting.here().state, "laptop").base.rglob("*.md") if path.is_file()]
    assert [path.name for path in kept] == ["2026-11-14-0900-one.md"]

    (setting.inbox / "processed").symlink_to(secret.parent)
    setting.place.ingest()
    stuck = setting.contact()
    assert stuck.receipts == 0
    assert any("could not be moved" in note for note in stuck.notes)
    assert os.listdir(secret.parent) == ["secret.md"]
    assert setting.laptop.logins() == 3, "what is stuck is not fetched again"


@pytest.mark.parametrize("days", [-400, 0, 3])
def test_half_written_files_wait_by_the_other_machines_clock(setting: Setting, days: int) -> None:
    skew = days * 86_400
    setting.laptop.program("date", f'echo $(($(/bin/date "$@") + {skew}))')
    there = time.time() + skew
    leave(setting.inbox, "fresh.md", a_numbered(1), at=there - 2)
    leave(setting.inbox, "settled.md", a_numbered(2), at=there - 3_600)
    leave(setting.inbox, "from a wrong clock.md", a_numbered(3), at=there + 5 * 86_400)
    leave(setting.inbox, "of another century.md", a_numbered(4), at=-1e9)
    here = setting.here(settle=60.0)
    found = via_rsync.contact(setting.route(), here)
    assert (found.brought, found.waiting) == (3, 1)
    os.utime(setting.inbox / "fresh.md", (there - 61, there - 61))
    later = via_rsync.contact(setting.route(), here)
    assert (later.brought, later.waiting) == (1, 0)


def test_a_handoff_of_this_second_comes_with_this_run(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1), at=time.time())
    found = via_rsync.contact(setting.route(), setting.here(settle=1.0))
    assert (found.brought, found.waiting) == (1, 0)
    setting.place.ingest()
    leave(setting.inbox, "2026-11-14-0901-two.md", a_numbered(2), at=time.time())
    found = via_rsync.contact(setting.route(), setting.here(settle=1.0))
    assert (found.brought, found.receipts, found.waiting) == (1, 1, 0), "the receipt went with the first question"
    assert setting.waiting() == ["2026-11-14-0901-two.md"]


# --- What goes wrong ------------------------------------------------------------------------------------------------


def why(setting: Setting, **options: Option) -> tuple[str, str]:
    with pytest.raises(Unreachable) as raised:
        setting.contact(**options)
    return raised.value.problem, raised.value.hint


def test_unreachable_hosts_are_told_apart(setting: Setting) -> None:
    problem, _ = why(setting, host="no-such-host.invalid")
    assert "cannot resolve" in problem
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert "refuses ssh connections" in why(setting, port=closed.getsockname()[1])[0]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        options = ("ConnectTimeout=1", *setting.route().texts("ssh_options"))
        assert "does not answer" in why(setting, port=silent.getsockname()[1], ssh_options=options)[0]
    problem, hint = why(setting, ssh_options=("NoSuchOption=1",))
    assert "option" in problem
    assert hint


def test_refused_keys(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    keys = setting.laptop.base / "ssh"
    allowed = (keys / "authorized_keys").read_bytes()
    (keys / "authorized_keys").write_bytes(b"")
    problem, hint = why(setting)
    assert "refuses the login" in problem
    assert "ssh-copy-id" in hint
    (keys / "authorized_keys").write_bytes(allowed)

    (keys / "known_hosts").write_text("")
    assert "is not known here" in why(setting)[0]

    setting.laptop.make_key("other")
    other = (keys / "other.pub").read_text()
    (keys / "known_hosts").write_text(f"[127.0.0.1]:{setting.laptop.port} {other}")
    problem, hint = why(setting)
    assert "has changed" in problem
    assert "ssh-keygen -R '[" in hint
    assert "`ssh -p " in hint

    setting.laptop.trust()
    assert setting.contact().brought == 1


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch x", "a b", "a\nb", "a'b"])
def test_a_host_that_ssh_would_take_for_something_else(setting: Setting, host: str) -> None:
    with pytest.raises(BadSetup):
        setting.contact(host=host)


def test_rsync_is_missing_there(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.laptop.program("rsync", "echo 'bash: rsync: command not found' >&2; exit 127")
    problem, hint = why(setting)
    assert "rsync is not installed" in problem
    assert "install" in hint


def test_a_login_without_a_shell_and_one_that_talks(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.laptop.program("sh", "echo 'This account is currently not available.'; exit 1")
    assert "not available" in why(setting)[0]
    setting.laptop.program("sh", "echo 'Welcome!'; exec /bin/sh \"$@\"")
    assert setting.contact().brought == 1, "what is said before is passed over"
    setting.laptop.program("sh", '/bin/sh "$@" | head -n 3')
    assert "broke" in why(setting)[0]


def test_a_machine_that_talks_without_end(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.laptop.program("sh", "exec yes")
    monkeypatch.setattr(via_rsync, "MAX_SCAN_BYTES", 1 << 20)
    assert "too much output" in why(setting)[0]
    setting.laptop.program("sh", "exec sleep 600")
    with pytest.raises(Unreachable, match="took too long"):
        via_rsync.contact(setting.route(), setting.here(seconds=1.0))


def test_no_space_here(setting: Setting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(small)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can make a disk that is too small")
    try:
        for number in range(8):
            leave(setting.inbox, f"2026-11-14-090{number}-x.md", a_numbered(number) + "x" * 100_000)
        here = setting.here(state=small)
        with pytest.raises(Unreachable, match="no space left on this host"):
            via_rsync.contact(setting.route(), here)
        assert setting.laptop.logins() == 1, "it is not even tried"
        monkeypatch.setattr(via_rsync, "_MIN_FREE_BYTES", -(1 << 40))
        with pytest.raises((Unreachable, OSError), match=r"(?i)no space left"):
            via_rsync.contact(setting.route(), here)
        assert not os.listdir(small / via_rsync.QUARANTINE)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert setting.contact().brought == 8
    assert len(setting.waiting()) == 8


def test_no_space_there_stops_receipts_only(setting: Setting) -> None:
    leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    setting.contact()
    setting.place.ingest()
    leave(setting.inbox, "2026-11-14-0901-two.md", a_numbered(2))
    setting.laptop.program("mkdir", 'echo "mkdir: cannot create directory: No space left on device" >&2; exit 1')
    found = setting.contact()
    assert (found.brought, found.receipts) == (1, 0)
    assert any("No space left on device" in note for note in found.notes)
    (setting.laptop.bin / "mkdir").unlink()
    assert setting.contact().receipts == 1


def test_a_server_that_sends_something_else(setting: Setting) -> None:
    path = leave(setting.inbox, "2026-11-14-0900-one.md", a_numbered(1))
    leave(setting.inbox, "2026-11-14-0901-two.md", a_numbered(2))
    evil = setting.laptop.base / "evil"
    leave(evil / "a" / ".ssh", "authorized_keys", "a key")
    state = setting.here().state
    before = tree(state, skip=("synced", via_rsync.QUARANTINE))

    setting.laptop.program("rsync", f"exec /usr/bin/rsync --server --sender -logDtprR . '{evil}/'")
    assert why(setting)[0]
    assert tree(state, skip=("synced", via_rsync.QUARANTINE)) == before
    assert tree(state / "synced") == {"laptop/seen.json": tree(state / "synced")["laptop/seen.json"]}

    swap = f"rm '{path}'; ln -s /etc/passwd '{path}'; exec /usr/bin/rsync \"$@\""
    setting.laptop.program("rsync", swap)
    found = setting.contact()
    assert (found.brought, found.waiting) == (1, 1)
    path.unlink()

    leave(setting.inbox, path.name, a_numbered(1))
    setting.laptop.program("rsync", f"echo more >>'{path}'; exec /usr/bin/rsync \"$@\"")
    found = setting.contact()
    assert (found.brought, found.waiting) == (0, 1), "it is not what was announced any more"
    (setting.laptop.bin / "rsync").unlink()
    assert setting.contact().brought == 1

    setting.laptop.program("stat", 'echo "f 7 1 1 ./../../../../escape.md"; echo "f 7 1 1 ./lie.md"; echo "f x"')
    found = setting.contact()
    assert (found.brought, found.waiting) == (0, 1)
    assert not [name for name in tree(state) if "escape" in name or "lie" in name]


def test_more_than_is_brought_at_once(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_scan, "MAX_FILES", 20)
    monkeypatch.setattr(via_rsync, "_MAX_BATCH_FILES", 5)
    monkeypatch.setattr(via_rsync, "MAX_RUN_BYTES", 14 * len(a_numbered(10)))
    for number in range(30):
        leave(setting.inbox, f"2026-11-14-09{number}-x.md", a_numbered(number + 10))
    leave(setting.inbox, "2026-11-14-0900-large.md", "x" * (MAX_FILE_BYTES + 1))
    found = setting.contact()
    assert found.brought == 10
    assert any("has too many files" in note for note in found.notes)
    assert any("more handoffs than one run" in note for note in found.notes)
    for _ in range(4):
        setting.place.ingest()
        found = setting.contact()
    assert sum(setting.filed().values()) == 30
    assert setting.waiting() == ["2026-11-14-0900-large.md"]
    assert any("more than" in note for note in found.notes)


# --- Interrupted ----------------------------------------------------------------------------------------------------

_SLOW = 'shift; exec timeout -s KILL {seconds} /usr/bin/rsync --server --bwlimit=400 "$@"'


def test_rsync_is_killed_and_what_was_whole_is_kept(setting: Setting) -> None:
    for number in range(40):
        leave(setting.inbox, f"2026-11-14-09{number:02}-x.md", a_numbered(number) + "x" * 20_000)
    setting.laptop.program("rsync", _SLOW.format(seconds="1"))
    assert why(setting)[0]
    kept = list(Mirror.of(setting.here().state, "laptop").base.rglob("*.md"))
    assert len(kept) < 40
    assert {path.stat().st_size for path in kept} <= {path.stat().st_size for path in setting.inbox.iterdir()}
    (setting.laptop.bin / "rsync").unlink()
    assert setting.contact().brought == 40 - len(kept)
    assert len(list(Mirror.of(setting.here().state, "laptop").base.rglob("*.md"))) == 40


def test_the_host_is_killed_in_the_middle(setting: Setting) -> None:
    for number in range(40):
        leave(setting.inbox, f"2026-11-14-09{number:02}-x.md", a_numbered(number) + "x" * 20_000)
    setting.laptop.program("rsync", _SLOW.format(seconds="120"))
    here, route = setting.here(), setting.route()
    code = (
        "from pathlib import Path\n"
        "from truekeep.handoffs.sync import via_rsync as rsync\n"
        "from truekeep.handoffs.sync.runner import LocalMachine\n"
        "from truekeep.handoffs.sync.routes import Route\n"
        f"state = Path({str(here.state)!r})\n"
        f"here = LocalMachine(state, True, 'host', {dict(here.writers)!r}, 0.0)\n"
        f"rsync.contact(Route('laptop', 'rsync', {dict(route.options)!r}), here)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    quarantine = here.state / via_rsync.QUARANTINE
    assert wait_until(lambda: list(quarantine.rglob("*-x.md")))
    process.send_signal(signal.SIGKILL)  # its rsync, in a session of its own, may live on for a while
    process.wait()
    (setting.laptop.bin / "rsync").unlink()
    assert setting.contact().brought == 40
    assert not os.listdir(quarantine)
    setting.place.ingest()
    assert setting.contact().receipts == 40


class Fault(Exception):
    """Of the test's own making."""


def test_a_fault_between_any_two_steps_files_everything_once(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of a contact in turn does not happen, or happens and is not heard of."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no test of the disk's
    steps = 0
    fail_at = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == fail_at:
            raise Fault

    take, write = Mirror.take, via_rsync.write_memory

    def run(*given: object, **options: object) -> Ran:
        step()
        ran = run_tool(*given, **options)  # type: ignore[arg-type]
        step()
        return ran

    def taking(self: Mirror, place: Mirrored, inbox: str, name: str, data: bytes) -> str:
        step()
        name = take(self, place, inbox, name, data)
        step()
        return name

    def writing(base: Path, seen: dict[via_rsync.Key, via_rsync.FetchedHandoff]) -> None:
        step()
        write(base, seen)

    monkeypatch.setattr(via_rsync, "run_tool", run)
    monkeypatch.setattr(Mirror, "take", taking)
    monkeypatch.setattr(via_rsync, "write_memory", writing)
    left = 0
    faults = 0
    for fail_at in range(1, 30):  # noqa: B007 - `step` reads it
        for _ in range(2):
            leave(setting.inbox, f"2026-11-14-0900-{left:04}.md", a_numbered(left))
            left += 1
        is_over = True
        for _ in range(2):  # in the second contact it is the receipts that do not get through
            steps = 0
            try:
                setting.contact()
            except Fault:
                is_over = False
                faults += 1
            setting.place.ingest()
        if is_over:
            break
    assert faults >= 12
    fail_at = 0
    setting.contact()
    setting.place.ingest()
    setting.contact()
    assert setting.waiting() == []
    assert len(setting.processed()) == left
    assert sorted(setting.filed().values()) == [1] * left
    assert len(setting.place.cards()) == left


def test_five_thousand_files(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no test of the disk's
    for number in range(5_000):
        leave(setting.inbox, f"2026-11-14-0900-{number:04}.md", f"{number} " * 100)
    found = list[Contact]()
    fetched = count_work(lambda: found.append(setting.contact()))
    again = count_work(lambda: found.append(setting.contact()))
    assert [one.brought for one in found] == [5_000, 0]
    for place in Mirror.of(setting.here().state, "laptop").places():
        folder = place.folder / CLAUDE
        names = os.listdir(folder)
        (folder / "processed").mkdir()
        for name in names:  # as ingest does
            os.rename(folder / name, folder / "processed" / name)
    receipted = count_work(lambda: found.append(setting.contact()))
    assert found[-1].receipts == 5_000
    assert setting.waiting() == []
    assert len(setting.processed()) == 5_000
    assert fetched < 3_000 * 5_000  # so many steps a file; something done for each pair of them would be 25 million
    assert again < 1_500 * 5_000
    assert receipted < 1_500 * 5_000
    assert setting.laptop.logins() == 5


# --- The script, under other shells ---------------------------------------------------------------------------------

_SHELLS = {
    "sh": ["sh"],
    "dash": ["dash"],
    "busybox": ["busybox", "sh"],
    "toybox": ["dash"],
    "bash": ["bash"],
    "mksh": ["mksh"],
    "zsh": ["zsh", "--emulate", "sh"],
    "bsd": ["dash"],
}


def tools_of(shell: str, folder: Path) -> str:
    """A PATH with the tools of that system only."""
    folder.mkdir()
    if shell == "bsd":  # whose stat has other options, and which may have no sha256sum, as macOS
        (folder / "sha256sum").write_text("#!/bin/sh\nexit 127\n")
        (folder / "sha256sum").chmod(0o755)
        (folder / "shasum").write_text(
            '#!/bin/sh\n[ "$1 $2" = "-a 256" ] || exit 1\nshift 2; exec /usr/bin/sha256sum "$@"\n'
        )
        (folder / "shasum").chmod(0o755)
        (folder / "stat").write_text(
            "#!/bin/sh\n"
            '[ "$1" = -f ] && [ "$2" = "f %z %m %c %N" ] || exit 1\n'
            'shift 2; exec /usr/bin/stat -c "f %s %Y %Z %n" "$@"\n'
        )
        (folder / "stat").chmod(0o755)
    if shell not in ("busybox", "toybox"):
        return f"{folder}:{os.environ['PATH']}"
    box = shutil.which(shell)
    assert box is not None
    for tool in ("sha256sum", "date", "find", "head", "mkdir", "mv", "stat", "uname", "printf", "[", "test"):
        (folder / tool).symlink_to(box)
    return str(folder)


def a_receipt(folder: Path, name: str, text: str) -> Receipt:
    data = text.encode()
    return Receipt(str(folder), name, hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_runs_in_any_shell(shell: str, tmp_path: Path) -> None:
    need(*({shell, _SHELLS[shell][0]} - {"sh", "bsd"}))
    program = shutil.which(_SHELLS[shell][0])
    assert program is not None
    inbox = tmp_path / "repos" / "it's Á" / CLAUDE
    (tmp_path / "repos" / "no inbox").mkdir(parents=True)
    texts = {f"-n {number} Á'\"\\.md": f"text {number}\n" * number for number in range(60)}
    for name, text in texts.items():
        leave(inbox, name, text)
    leave(inbox, "line\nbreak.md", "x")
    leave(inbox / "processed", "-n 7 Á'\"\\.md", "older")
    receipts = [
        a_receipt(inbox, name, "other" if number == 9 else text)
        for number, (name, text) in enumerate(texts.items())
        if number < 58
    ]
    receipts += [a_receipt(inbox, "gone.md", "x"), a_receipt(tmp_path / "gone" / CLAUDE, "x.md", "x")]
    script = render_script([f"{tmp_path}/re[pq]os/*"], [CLAUDE, CODEX], receipts, mark="abc")
    before = time.time()
    ran = subprocess.run(
        [program, *_SHELLS[shell][1:], "-s"],
        input=script,
        capture_output=True,
        env={"PATH": tools_of(shell, tmp_path / "tools")},
        check=False,
        timeout=60,
    )
    found = parse_survey(ran.stdout, [CLAUDE, CODEX], mark="abc")
    assert ran.returncode == 0
    assert [item.name for item in sorted(found.files, key=lambda item: item.size)] == [
        f"-n {number} Á'\"\\.md" for number in (9, 58, 59)
    ]
    assert {(item.size, item.modified) for item in found.files} == {
        (len(texts[item.name]), int(OLD)) for item in found.files
    }
    assert found.unmoved == {str(inbox / "-n 9 Á'\"\\.md"): "changed"}
    assert found.odd == ((str(inbox), "odd"),)
    assert found.machine
    assert int(before) <= found.between[0] <= time.time()
    assert len(os.listdir(inbox / "processed")) == 58
    assert (inbox / "processed" / "-n 7 Á'\"\\.md").read_text() == "older"
    assert (inbox / "processed" / "-n 7 Á'\"\\-2.md").read_text() == texts["-n 7 Á'\"\\.md"]


def test_a_script_that_was_cut_off_does_nothing(tmp_path: Path) -> None:
    path = leave(tmp_path / "app" / CLAUDE, "x.md", "text")
    receipts = [a_receipt(path.parent, "x.md", "text")]
    script = render_script([f"{tmp_path}/*"], [CLAUDE], receipts, mark="abc")
    for end in range(script.index(b"put '"), len(script) - len("} </dev/null\n"), 7):
        subprocess.run(["sh", "-s"], input=script[:end], capture_output=True, check=False, timeout=60)
        assert path.exists()


@pytest.mark.parametrize(
    ("pattern", "rendered"),
    [
        ("~/repos/*", "~/repos/*"),
        ("~ada/my repos/[a-c]*", "~ada/my' 'repos/[a-c]*"),
        ("/srv/$(id)/x;y", "/srv/'$('id')'/x';'y"),
        ("it's/-x", "./it''\\'''s/-x"),
        ("-rf/*", "./-rf/*"),
        ("~$x/y", "./'~$'x/y"),
    ],
)
def test_patterns_are_quoted(pattern: str, rendered: str) -> None:
    assert render_pattern(pattern) == rendered


@pytest.mark.parametrize("root", ["", "repo", "/a/../../b", "/a/./b", "//a", "/a//b", "/a/"])
def test_an_answer_with_a_path_that_leads_elsewhere(root: str) -> None:
    answer = f"truekeep abc\nr {root}\nu \ni {CLAUDE}\nf 1 2 3 ./x.md\nend abc\n"
    assert parse_survey(answer.encode(), [CLAUDE], mark="abc").files == ()


def test_a_route_that_finds_nothing_says_so(setting: Setting) -> None:
    assert any("has an inbox" in note for note in setting.contact().notes)
    with pytest.raises(BadSetup):
        setting.contact(repos=())


def test_a_hundred_thousand_files_are_read_in_bounds() -> None:
    lines = [b"truekeep abc", b"m laptop", b"t 100", b"r /repo", b"u ", f"i {CLAUDE}".encode()]
    lines += [b"f 1 2 3 ./%d.md" % number for number in range(100_001)]
    found = parse_survey(b"\n".join([*lines, b"t 101", b"end abc", b""]), [CLAUDE], mark="abc")
    assert not found.is_whole
    plan = via_rsync.plan_fetch({}, found, settle=1)
    assert len(plan.new) <= 100_001
