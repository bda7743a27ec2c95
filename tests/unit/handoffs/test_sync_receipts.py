"""Receipts: a producer lets go of a handoff only on one that its own host signed, for that machine, place and bytes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchanges import REPOSITORIES, Producer, Trio
from tests.support.helpers import CLAUDE, Place, git_repo, run_cli
from tests.support.programs import need
from tests.support.sshd import ssh_host
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.machine import own_state
from truekeep.handoffs.sync import via_git
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.processes import Ran
from truekeep.handoffs.sync.protocol import FolderSource, read_offers
from truekeep.handoffs.sync.receipts import (
    KEY_FILE,
    ReceiptVerifier,
    Signer,
    judge,
    parse_key,
    parse_receipt,
    read_signer,
)
from truekeep.handoffs.sync.routes import Route, write_routes
from truekeep.handoffs.sync.runner import Unreachable, transport
from truekeep.workspace.pipeline import receipt_alarms


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def a_signer() -> Signer:
    """The key of somebody else."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Signer(Ed25519PrivateKey.generate())


def place_of(trio: Trio, producer: Producer, digest: str) -> str:
    base = producer.here.exchange(producer.route(trio.via, trio.remote))
    return next(told.place for told in read_offers(FolderSource(base)) if digest in told.files.values())


def plant(trio: Trio, producer: Producer, place: str, digest: str, content: bytes) -> None:
    """Put a receipt onto the remote, as anybody can who may write there."""
    folder = producer.here.folder
    if trio.via == "rclone":
        path = Path(trio.remote) / folder / place / "receipts" / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return

    def git(*arguments: str, given: bytes = b"") -> str:
        command = ["git", f"--git-dir={trio.remote}", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode().strip()

    blob = git("hash-object", "-w", "--stdin", given=content)
    inner = git("mktree", given=f"100644 blob {blob}\t{digest}\n".encode())
    tree = git("mktree", given=f"040000 tree {inner}\t{folder}\n".encode())
    git("update-ref", "refs/heads/truekeep/receipts", git("commit-tree", tree, "-m", "x"))


@pytest.fixture(params=("git", "rclone"))
def trio(request: pytest.FixtureRequest, tmp_path: Path) -> Trio:
    via = request.param
    remote = tmp_path / "remote"
    if via == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    else:
        need("rclone")
        remote.mkdir()
    return Trio.make(tmp_path, via, str(remote))


FORGED = ("empty", "words", "another key", "truncated", "another machine", "another place", "another handoff")


def forge(how: str, trio: Trio, place: str, digest: str) -> bytes:
    own, machine = read_signer(), trio.one.here.folder
    good = own.render(machine, [place], digest)
    return {
        "empty": b"",
        "words": b"dealt with\n",
        "another key": a_signer().render(machine, [place], digest),
        "truncated": good[:-5] + b"\n",
        "another machine": own.render(trio.two.here.folder, [place], digest),
        "another place": own.render(machine, ["plain-0123456789"], digest).replace(b"plain-0123456789", place.encode()),
        "another handoff": own.render(machine, [place], "0" * 64),
    }[how]


@pytest.mark.slow
@pytest.mark.parametrize("how", FORGED)
def test_a_forged_receipt_takes_nothing_away(trio: Trio, how: str) -> None:
    path = trio.one.leave("kept")
    digest = digest_of(path)
    trio.send(trio.one)
    place = place_of(trio, trio.one, digest)
    plant(trio, trio.one, place, digest, forge(how, trio, place, digest))
    for _ in range(2):
        contact = trio.send(trio.one)
        assert (contact.receipts, contact.refused) == (0, 1)
        assert "not signed by the paired host" in contact.notes[0]
        assert path.exists()
        assert place_of(trio, trio.one, digest), "it is still offered"
    assert trio.receive().brought == 1, "the host gets it all the same"
    trio.settle()
    trio.check()
    trio.check_clean()
    assert trio.send(trio.one).refused == 0


@pytest.mark.slow
def test_a_receipt_is_for_one_place_only(trio: Trio) -> None:
    """The same bytes in two repositories are two offers; the receipt for one does not clear the other."""
    first = trio.one.leave("twice")
    second = trio.one.leave("twice", repo=REPOSITORIES[1])
    trio.one.left.pop()
    assert digest_of(first) == digest_of(second)
    trio.send(trio.one)
    base = trio.one.here.exchange(trio.one.route(trio.via, trio.remote))
    places = {told.root: told.place for told in read_offers(FolderSource(base))}
    place = places[str(trio.one.repo(REPOSITORIES[1]))]
    receipt = read_signer().render(trio.one.here.folder, [place], digest_of(first))
    plant(trio, trio.one, place, digest_of(first), receipt)
    assert trio.send(trio.one).receipts == 1
    assert (first.exists(), second.exists()) == (True, False)


@pytest.mark.slow
def test_a_route_of_an_earlier_version_keeps_offering_until_it_is_paired(trio: Trio) -> None:
    trio.leave_some()
    trio.options = {"host_key": ""}
    for _ in range(3):
        trio.round()
        trio.receive()
    contact = trio.send(trio.one)
    assert (contact.receipts, contact.refused) == (0, len(trio.one.left))
    assert "not paired with its host" in contact.notes[0]
    assert "truekeep sync key" in contact.notes[0]
    assert len(trio.one.waiting()) == len(trio.one.left), "nothing is let go"
    assert len(trio.place.cards()) == 5, "and nothing is filed twice"
    trio.options = {}
    trio.settle()
    trio.check()
    trio.check_clean()


@pytest.mark.slow
def test_a_host_that_lost_its_key_is_paired_again(trio: Trio) -> None:
    old = read_signer().public
    os.unlink(Path(own_state()) / KEY_FILE)
    assert read_signer().public != old
    path = trio.one.leave("repaired")
    trio.options = {"host_key": old}
    for _ in range(2):
        trio.round()
        trio.receive()
    contact = trio.send(trio.one)
    assert (contact.receipts, contact.refused) == (0, 1)
    assert "lost its key" in contact.notes[0]
    assert path.exists()
    trio.options = {}
    trio.settle()
    trio.check()


@pytest.mark.slow
def test_the_private_key_stays_on_the_host(trio: Trio, own_home: Path) -> None:
    trio.leave_some()
    trio.settle()
    path = Path(own_state()) / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert own_home in path.parents, "and not in the workspace, which tools may sync"
    secret = path.read_bytes().strip()
    assert secret != b""
    for other in (*trio.base.rglob("*"), *own_home.rglob("*")):
        if other.is_file() and other != path:
            assert secret not in other.read_bytes(), other
            assert bytes.fromhex(secret.decode()) not in other.read_bytes(), other


# --- Keys -----------------------------------------------------------------------------------------------------------


def test_a_key_that_was_mistyped_is_refused() -> None:
    public = read_signer().public
    assert len(parse_key(f" {public}\n")) == 32
    changed = public[:20] + ("A" if public[20] != "A" else "B") + public[21:]
    for wrong in ("", "x", public[:-1], f"{public}A", changed, public.replace("tkhost1_", "")):
        with pytest.raises(BadInput, match="not a complete host key"):
            parse_key(wrong)


def test_a_key_file_that_is_none_is_named(own_home: Path) -> None:
    path = Path(own_state()) / KEY_FILE
    path.parent.mkdir(parents=True)
    path.write_text("nonsense\n")
    with pytest.raises(BadSetup, match="is not a key") as caught:
        read_signer()
    assert "truekeep sync key" in caught.value.hint


def test_what_is_signed_says_what_it_is_for() -> None:
    signer = read_signer()
    receipt = signer.render("m", ["b", "a"], "d")
    assert receipt == signer.render("m", ["a", "b"], "d")
    known, lines = ReceiptVerifier(signer.public), parse_receipt(receipt)
    assert known.places(lines, "m", "d") == {"a", "b"}
    assert known.places(lines, "m2", "d") == known.places(lines, "m", "d2") == set()
    assert judge(signer.public, "m", "ab", [("d", receipt + b"junk\n\xff")]).done == {"a": {"d"}, "b": {"d"}}
    assert judge("", "m", "ab", [("d", receipt)])[:2] == ({}, 1)


@pytest.mark.parametrize(("place", "most"), [("elsewhere{}", 0), ("a", 3)])
def test_few_signatures_of_a_hostile_receipt_are_verified(
    monkeypatch: pytest.MonkeyPatch, place: str, most: int
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ReceiptVerifier, "is_signed", lambda _, signature, message: asked.append(signature))
    lines = "".join(f"truekeep-receipt-1 {place.format(number)} {number:0128x}\n" for number in range(200))
    found = judge(read_signer().public, "m", {"a", "b"}, [("d", lines.encode())])
    assert len(asked) == most
    assert (found.done, found.refused, found.elsewhere) == ({}, int(most > 0), int(most == 0))


# --- git: branches that cannot be read ------------------------------------------------------------------------------


@pytest.fixture
def by_git(tmp_path: Path) -> Trio:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote")], check=True)
    return Trio.make(tmp_path, "git", str(tmp_path / "remote"))


def there(trio: Trio, *arguments: str, given: bytes = b"") -> str:
    command = ["git", f"--git-dir={trio.remote}", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["..", ".git", "a\tb", "-x", "*"])
def test_a_receipts_branch_with_an_odd_folder_ends_no_route(by_git: Trio, name: str) -> None:
    blob = there(by_git, "hash-object", "-w", "--stdin")
    inner = there(by_git, "mktree", "-z", given=f"100644 blob {blob}\t{'0' * 64}\0".encode())
    tree = there(by_git, "mktree", "-z", given=f"040000 tree {inner}\t{name}\0".encode())
    there(by_git, "update-ref", "refs/heads/truekeep/receipts", there(by_git, "commit-tree", tree, "-m", "x"))
    by_git.leave_some()
    by_git.settle()
    by_git.check()
    by_git.check_clean()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["", "^{tree}", ":PLACE", ":PLACE/origin.json"])
def test_missing_objects_of_one_branch_are_not_the_others_problem(by_git: Trio, what: str) -> None:
    by_git.leave_some()
    by_git.send(by_git.one)
    by_git.send(by_git.two)
    broken = f"refs/heads/truekeep/{by_git.one.here.folder}"
    place = there(by_git, "ls-tree", "--name-only", broken).splitlines()[0]
    lost = there(by_git, "rev-parse", broken + what.replace("PLACE", place))
    os.unlink(Path(by_git.remote) / "objects" / lost[:2] / lost[2:])
    contact = by_git.receive()
    assert (contact.ok, contact.brought) == (True, 2), "those of the other machine"
    (note,) = (note for note in contact.notes if "is damaged there" in note)
    assert f"--delete truekeep/{by_git.one.here.folder}" in note
    there(by_git, "update-ref", "-d", broken)  # as the note says
    by_git.settle()
    by_git.check()
    by_git.check_clean()


def test_a_remote_that_falls_silent_meanwhile_is_no_contact(by_git: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    by_git.leave_some()
    by_git.send(by_git.one)
    lost = there(by_git, "rev-parse", f"refs/heads/truekeep/{by_git.one.here.folder}")
    os.unlink(Path(by_git.remote) / "objects" / lost[:2] / lost[2:])
    run = via_git.Private._run

    def fall_silent(private: Any, verb: str, *arguments: str, **options: Any) -> Ran:
        if verb == "ls-remote":
            return Ran(128, b"", "fatal: Could not read from remote repository.")
        return run(private, verb, *arguments, **options)

    monkeypatch.setattr(via_git.Private, "_run", fall_silent)
    with pytest.raises(Unreachable, match="git ls-remote"):
        by_git.receive()


@pytest.mark.slow
def test_missing_objects_of_the_receipts_branch_stop_nobody(by_git: Trio) -> None:
    by_git.leave_some()
    by_git.round()
    by_git.receive()
    lost = there(by_git, "rev-parse", "refs/heads/truekeep/receipts^{tree}")
    os.unlink(Path(by_git.remote) / "objects" / lost[:2] / lost[2:])
    path = by_git.one.leave("later")
    contact = by_git.send(by_git.one)
    assert (contact.brought, contact.receipts) == (1, 0)
    assert path.exists()
    assert by_git.receive().brought == 1
    there(by_git, "update-ref", "-d", "refs/heads/truekeep/receipts")
    by_git.settle()
    by_git.check()


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["one", "receipts"])
def test_a_branch_that_was_rewritten_to_something_damaged_is_put_right(by_git: Trio, whose: str) -> None:
    by_git.leave_some()
    by_git.round()
    by_git.receive()
    lost = there(by_git, "hash-object", "-w", "--stdin", given=b"soon gone")
    tree = there(by_git, "mktree", given=f"100644 blob {lost}\tx\n".encode())
    name = by_git.one.here.folder if whose == "one" else "receipts"
    there(by_git, "update-ref", f"refs/heads/truekeep/{name}", there(by_git, "commit-tree", tree, "-m", "x"))
    os.unlink(Path(by_git.remote) / "objects" / lost[:2] / lost[2:])
    by_git.one.leave("later")
    by_git.settle()
    by_git.check()
    by_git.check_clean()


# --- rsync ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_rsync_nothing_that_lies_about_is_a_receipt(place: Place, tmp_path: Path) -> None:
    """The host itself moves what it filed, over ssh and by its digest; files named like receipts mean nothing."""
    with ssh_host(tmp_path, "laptop") as laptop:
        repo = git_repo(laptop.base / "repos" / "app")
        inbox = repo / CLAUDE
        (inbox / "receipts").mkdir(parents=True)
        producer = Producer(laptop.base, "laptop")
        path = producer.leave("pulled", repo="app")
        digest = digest_of(path)
        for folder in (inbox / "receipts", inbox / "processed", repo / "receipts"):
            folder.mkdir(exist_ok=True)
            (folder / digest).write_bytes(b"")
        trio = Trio(tmp_path, "rsync", "", place, producer, producer)
        route = Route("laptop", "rsync", {**laptop.options, "repos": (f"{laptop.base}/repos/*",)})
        contact = transport("rsync")(route, trio.host_here())
        assert (contact.brought, contact.receipts, path.exists()) == (1, 0, True)
        assert transport("rsync")(route, trio.host_here()).receipts == 0, "it is not filed yet"
        assert path.exists()
        place.ingest()
        path.write_text(path.read_text() + "edited since\n")
        transport("rsync")(route, trio.host_here())
        assert path.exists(), "the host's word is for the bytes that it filed"


# --- The commands ---------------------------------------------------------------------------------------------------


@pytest.fixture
def laptop(tmp_path: Path) -> dict[str, str]:
    """The environment of a producer."""
    home = tmp_path / "laptop"
    home.mkdir()
    return {"HOME": str(home), "TRUEKEEP_MACHINE_ID": "laptop", "TRUEKEEP_NO_BACKGROUND": "1"}


@pytest.mark.slow
def test_pairing_by_the_commands(place: Place, tmp_path: Path, laptop: dict[str, str]) -> None:
    remote = tmp_path / "post.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    host = ("-w", str(place.workspace))
    home = Path(laptop["HOME"])
    repo = git_repo(home / "repos" / "shop")
    added = run_cli(*host, "sync", "add", "post", "--via", "git", "--remote", str(remote))
    assert "truekeep sync key" in added.stdout
    key = run_cli(*host, "sync", "key").stdout.strip()
    assert json.loads(run_cli(*host, "sync", "key", "--json").stdout)["key"] == key
    named = ("--repo", str(home / "repos" / "*"), "--via", "git", "--remote", str(remote), "--yes")
    first = run_cli("connect", "machine", *named, cwd=home, **laptop)
    assert "not paired with its host" in first.stderr, first
    for command in (("sync", "run"), ("ingest",), ("sync", "run")):
        assert run_cli(*host, *command).returncode == 0
    ran = run_cli("sync", "run", cwd=home, **laptop)
    assert "0 receipts, 1 refused" in ran.stdout
    (letter,) = (repo / CLAUDE).glob("*.md")
    for command in (("status",), ("doctor",)):
        told = run_cli(*command, cwd=home, **laptop)
        assert "not paired with its host" in told.stdout, told
        assert "--host-key KEY" in told.stdout
    assert run_cli("status", "--exit-code", cwd=home, **laptop).returncode == 1
    wrong = run_cli("connect", "machine", "--host-key", key[:-2], cwd=home, **laptop)
    assert (wrong.returncode, "not a complete host key" in wrong.stderr) == (3, True), wrong
    routes = (home / ".local/state/truekeep/sync.toml").read_bytes()
    tried = run_cli("connect", "machine", "--host-key", key, "--dry-run", cwd=home, **laptop)
    assert tried.stdout == "would pair the route host with this key; nothing was done\n", tried
    tried = run_cli("connect", "machine", "--host-key", key, "--dry-run", "--json", cwd=home, **laptop)
    assert json.loads(tried.stdout)["dry_run"] is True
    for extra in (("--remote", "elsewhere"), ("--wait", "5")):
        tried = run_cli("connect", "machine", "--host-key", key, *extra, cwd=home, **laptop)
        assert (tried.returncode, f"{extra[0]} is for a new route" in tried.stderr) == (3, True), tried
    assert (home / ".local/state/truekeep/sync.toml").read_bytes() == routes
    paired = run_cli("connect", "machine", "--host-key", key, cwd=home, **laptop)
    assert "paired host" in paired.stdout, paired
    ran = run_cli("sync", "run", cwd=home, **laptop)
    assert "1 receipt;" in ran.stdout, ran
    assert not letter.exists()
    again = run_cli("connect", "machine", *named, "--json", cwd=home, **laptop)
    assert json.loads(again.stdout)["contact"]["notes"] == [], "it stays paired"
    assert "not paired" not in run_cli("status", cwd=home, **laptop).stdout


@pytest.mark.slow
def test_pairing_needs_a_route_and_a_host(place: Place, tmp_path: Path, laptop: dict[str, str]) -> None:
    host = ("-w", str(place.workspace))
    key = run_cli(*host, "sync", "key").stdout.strip()
    told = run_cli("connect", "machine", "--host-key", key, cwd=tmp_path, **laptop)
    assert (told.returncode, "no route by rclone or git" in told.stderr) == (3, True)
    told = run_cli("sync", "key", cwd=tmp_path, **laptop)
    assert (told.returncode, "not the canonical host" in told.stderr) == (6, True), told
    named = ("--via", "git", "--remote", "x", "--host-key", key)
    assert run_cli(*host, "sync", "add", "post", *named).returncode == 3


@pytest.mark.slow
def test_the_key_comes_over_ssh(place: Place, tmp_path: Path, laptop: dict[str, str]) -> None:
    with ssh_host(tmp_path, "desk") as desk:
        key = read_signer().public
        desk.program("truekeep", f'[ "$*" = "sync key" ] && echo {key}')
        route = Route("desk", "rsync", desk.options)
        options = [f"--ssh-option={option}" for option in (*route.texts("ssh_options"), f"Port={desk.port}")]
        state = Path(laptop["HOME"]) / ".local" / "state" / "truekeep"
        state.mkdir(parents=True)
        write_routes(state, {"host": Route("host", "git", {"remote": "x", "repos": ("/nowhere/*",)})})
        done = run_cli("connect", "machine", "--host", "127.0.0.1", *options, cwd=tmp_path, **laptop)
        assert (done.returncode, "paired host" in done.stdout) == (0, True), done
        assert key in (state / "sync.toml").read_text()
        desk.program("truekeep", "echo nothing")
        done = run_cli("connect", "machine", "--host", "127.0.0.1", *options, cwd=tmp_path, **laptop)
        assert (done.returncode, "gave no key" in done.stderr) == (6, True), done
        assert "--host-key" in done.stderr


def test_refused_receipts_are_told_by_status(own_home: Path) -> None:
    state = Path(own_state())
    state.mkdir(parents=True)
    write_routes(state, {"host": Route("host", "git", {"remote": "x", "host_key": read_signer().public})})
    assert list(receipt_alarms()) == []
    write_contact(state, Contact("host", "2026-11-17T00:00:00Z", True, refused=2))
    ((code, told, _),) = receipt_alarms()
    assert (code, "2 receipts" in told) == ("forged-receipts", True)
