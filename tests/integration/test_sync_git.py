"""git as the carrier: branches of their own, receipts, and nothing of a user's repository touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchanges import Producer, Trio, killed_at
from tests.support.helpers import CLAUDE, CODEX, run_cli, tree
from tests.support.programs import need
from truekeep.core import file_io
from truekeep.handoffs.sync import via_git as transport
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.processes import Ran
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import Unreachable, contact_route

BRANCHES = "refs/heads/truekeep"


@pytest.fixture
def trio(tmp_path: Path) -> Trio:
    return Trio.make(tmp_path, "git", str(bare(tmp_path / 'a "remote" of ours.git')))


def bare(path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return path


def there(trio: Trio, *arguments: str, given: bytes = b"", **more: str) -> str:
    """Ask the remote, or do something to it."""
    who = {f"GIT_{role}_{key}": "somebody@x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "--git-dir", trio.remote, *arguments], input=given, capture_output=True, check=True,
        env={**os.environ, **who, **more},
    )  # fmt: skip
    return done.stdout.decode().strip()


def branch(producer: Producer) -> str:
    return f"{BRANCHES}/{producer.here.folder}"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs of git that cost a round trip."""
    found: list[str] = []
    real: Callable[..., Any] = vars(transport)["run_tool"]

    def run_tool(arguments: list[str], **more: Any) -> Any:
        found.extend(verb for verb in ("fetch", "push", "ls-remote") if verb in arguments)
        return real(arguments, **more)

    monkeypatch.setattr(transport, "run_tool", run_tool)
    return found


def test_three_machines(trio: Trio, calls: list[str]) -> None:
    trio.leave_some()
    sent = trio.send(trio.one)
    assert (sent.brought, sent.receipts, sent.notes) == (3, 0, ())
    assert calls == ["fetch", "push"]
    assert trio.send(trio.two).brought == 2
    came = trio.receive()
    assert (came.brought, came.waiting, came.notes) == (5, 0, ())
    assert set(came.machines) == {"lap top", "desk"}
    calls.clear()
    assert trio.receive().brought == 0
    assert trio.send(trio.one).brought == 0
    assert calls == ["fetch", "fetch"], "nothing new: one round trip each"
    trio.place.ingest()
    assert trio.receive().receipts == 5
    assert trio.send(trio.one).receipts == 3
    trio.settle()
    trio.check()
    trio.check_clean()
    assert there(trio, "ls-tree", "-r", "--name-only", f"{BRANCHES}/receipts") == "", "only what is still offered"
    calls.clear()
    trio.round()
    assert calls == ["fetch"] * 3


def test_branches_are_what_a_person_would_expect(trio: Trio) -> None:
    trio.leave_some()
    trio.round()
    told = there(trio, "for-each-ref", "--format=%(refname) %(authorname) %(subject)").splitlines()
    assert told == [
        f"{branch(trio.two)} truekeep Handoffs of desk",
        f"{branch(trio.one)} truekeep Handoffs of lap top",
    ]
    trio.receive()
    files = there(trio, "ls-tree", "-r", "--name-only", f"{BRANCHES}/receipts").splitlines()
    assert len(files) == 5
    assert {name.partition("/")[0] for name in files} == {trio.one.here.folder, trio.two.here.folder}


def test_a_users_repository_is_not_touched(trio: Trio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not its branch, index, HEAD, refs, objects or work tree; not even from within one of its hooks."""
    repo = trio.one.repo()
    run = ["git", "-C", str(repo), "-c", "user.name=me", "-c", "user.email=me@x"]
    (repo / "tracked").write_text("1\n")
    subprocess.run([*run, "add", "tracked"], check=True)
    subprocess.run([*run, "commit", "-qm", "first"], check=True)
    (repo / "staged").write_text("2\n")
    subprocess.run([*run, "add", "staged"], check=True)
    (repo / "tracked").write_text("changed\n")
    (repo / "untracked").write_text("3\n")
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
    hook.chmod(0o755)
    trio.leave_some()

    def state() -> tuple[dict[str, str], str]:
        files = {path: digest for path, digest in tree(repo, skip=()).items() if "memory-handoffs" not in path}
        refs = subprocess.run([*run, "for-each-ref"], capture_output=True, text=True, check=True).stdout
        return files, refs

    before = state()
    for name, value in {
        "GIT_DIR": repo / ".git", "GIT_INDEX_FILE": repo / ".git/index", "GIT_WORK_TREE": repo,
        "GIT_OBJECT_DIRECTORY": repo / ".git/objects", "GIT_PREFIX": "sub/",
        "GIT_CONFIG_PARAMETERS": f"'core.hookspath'='{repo}/.git/hooks'",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    for _ in range(3):
        trio.send(trio.one)
        trio.send(trio.two)
        trio.receive()
        trio.place.ingest()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.delenv(name)
    assert state() == before
    assert not (tmp_path / "hook-ran").exists()
    trio.check()


def test_a_users_own_configuration_does_not_interfere(
    trio: Trio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-push", "post-commit", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\n hooksPath = {hooks}\n autocrlf = true\n sshCommand = ssh -4\n[commit]\n gpgSign = true\n"
        "[push]\n gpgSign = if-asked\n followTags = true\n default = matching\n[fetch]\n fsckObjects = true\n"
        "[safe]\n bareRepository = explicit\n[user]\n useConfigOnly = true\n[init]\n templateDir = /nonexistent\n"
        "[gc]\n auto = 1\n[transfer]\n fsckObjects = true\n[receive]\n denyNonFastForwards = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    trio.leave_some()
    trio.settle()
    trio.check()
    assert not (tmp_path / "hook-ran").exists()


def steps() -> tuple[tuple[Any, str], ...]:
    return (
        (transport, "run_tool"), (os, "replace"), (os, "unlink"), (os, "rename"),
        (file_io, "write_beside"), (file_io, "put_new"),
    )  # fmt: skip


def test_killed_between_any_two_steps(trio: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each machine dies at each of its steps, one after the other, with new handoffs all the time."""
    killed = 0
    trio.leave_some()
    for number in range(1, 25):
        (trio.one if number % 2 else trio.two).leave(f"n-{number}", inbox=(CLAUDE, CODEX)[number % 3 == 0])
        acts: tuple[Callable[[], Contact], ...] = (
            partial(trio.send, trio.one),
            trio.receive,
            partial(trio.send, trio.two),
        )
        for act in acts:
            with killed_at(monkeypatch, number, *steps()) as calls:
                act()
            killed += calls[-1] == "killed"
        if number % 4 == 0:
            trio.round()
    assert killed > 40
    trio.settle()
    trio.check()
    trio.check_clean()


def test_killed_in_the_first_run_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer(tmp_path / "one", "one")
    producer.leave("a")
    for number in range(1, 18):
        remote = bare(tmp_path / f"{number}.git")
        route = producer.route("git", str(remote))
        with killed_at(monkeypatch, number, *steps()):
            transport.contact(route, producer.here)
        done = transport.contact(route, producer.here)
        assert done.notes == ()
        refs = subprocess.run(["git", "--git-dir", str(remote), "for-each-ref"], capture_output=True, check=True)
        assert b"truekeep/one-" in refs.stdout
        shutil.rmtree(producer.here.state)


def rewrite(trio: Trio) -> None:
    """Somebody force-pushes something else onto a machine's branch."""
    blob = there(trio, "hash-object", "-w", "--stdin", given=b"something else")
    made = there(trio, "mktree", given=f"100644 blob {blob}\tREADME\n".encode())
    commit = there(trio, "commit-tree", made, "-m", "mine now")
    there(trio, "update-ref", branch(trio.one), commit)


WAYS = [(how, when) for how in ("rewritten", "deleted", "rewound") for when in ("offered", "filed")]
WAYS += [("rewritten", "receipted"), ("emptied", "taken"), ("recreated", "receipted")]


@pytest.mark.parametrize(("how", "when"), WAYS)
def test_a_branch_that_somebody_rewrote(trio: Trio, how: str, when: str) -> None:
    """At any time between two contacts; what waits is put there again, and nothing is filed twice."""
    trio.leave_some()
    trio.send(trio.one)
    trio.send(trio.two)
    if when != "offered":
        trio.receive()
    if when in ("filed", "receipted"):
        trio.place.ingest()
    if when == "receipted":
        trio.receive()
    trio.one.leave("later")
    if how == "rewritten":
        rewrite(trio)
    elif how == "deleted":
        there(trio, "update-ref", "-d", branch(trio.one))
    elif how == "rewound":
        first = there(trio, "rev-parse", branch(trio.one))
        trio.send(trio.one)
        there(trio, "update-ref", branch(trio.one), first)
    else:
        shutil.rmtree(trio.remote)
        if how == "recreated":
            with pytest.raises(Unreachable) as caught:
                trio.send(trio.one)
            assert "git init --bare" in caught.value.hint
        bare(Path(trio.remote))
    told = trio.send(trio.one)
    if how in ("rewritten", "deleted", "rewound"):
        assert any("someone else" in note for note in told.notes), told
    assert trio.send(trio.one).notes == (), "it is told once"
    trio.settle()
    trio.check()
    trio.check_clean()


def test_somebody_is_faster_than_a_push(trio: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    trio.leave_some()
    trio.send(trio.one)
    trio.one.leave("later")
    real = transport.Private.push
    raced: list[bool] = []

    def push(self: transport.Private, commit: str, name: str) -> Any:
        if not raced:
            raced.append(True)
            rewrite(trio)
        return real(self, commit, name)

    monkeypatch.setattr(transport.Private, "push", push)
    assert trio.send(trio.one).brought == 1
    trio.settle()
    trio.check()


def test_a_remote_that_refuses_receipts(trio: Trio) -> None:
    """The host may read only: handoffs are filed, the machines keep theirs, and the reason is told."""
    hook = Path(trio.remote) / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/heads/truekeep/receipts ] || { echo read only >&2; exit 1; }\n')
    hook.chmod(0o755)
    trio.leave_some()
    trio.round()
    told = trio.receive()
    assert told.ok
    assert told.receipts == 0
    assert any("receipts could not be pushed" in note for note in told.notes)
    assert len(trio.one.waiting()) == 3
    hook.unlink()
    trio.settle()
    trio.check()


def test_a_remote_that_refuses_a_machine(trio: Trio) -> None:
    hook = Path(trio.remote) / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    trio.leave_some()
    told = contact_route(trio.one.route("git", trio.remote), trio.one.here)
    assert not told.ok
    assert "git push" in told.problem
    assert "allowed to push" in told.hint
    assert len(trio.one.waiting()) == 3
    hook.unlink()
    trio.settle()
    trio.check()


def test_a_branch_named_truekeep_is_in_the_way(trio: Trio) -> None:
    made = there(trio, "mktree")
    there(trio, "update-ref", "refs/heads/truekeep", there(trio, "commit-tree", made, "-m", "x"))
    trio.leave_some()
    told = contact_route(trio.one.route("git", trio.remote), trio.one.here)
    assert "truekeep" in told.problem
    assert "another name" in told.hint


REMOTES = {
    "missing": ("/nonexistent/x.git", "git init --bare"),
    "no repository": ("{tmp}", "git init --bare"),
    "nobody listens by ssh": ("ssh://me@127.0.0.1:1/x.git", "next run"),
    "http nobody listens": ("http://127.0.0.1:1/x.git", "next run"),
    "ext": ("ext::sh -c 'touch {tmp}/ran'", ""),
    "option": ("--upload-pack=touch {tmp}/ran", "--remote"),
    "ssh option": ("ssh://-oProxyCommand=touch {tmp}/x.git", ""),
    "none": ("", "--remote"),
}


@pytest.mark.parametrize(("remote", "hint"), REMOTES.values(), ids=REMOTES)
def test_a_remote_that_cannot_be_reached(tmp_path: Path, remote: str, hint: str) -> None:
    if remote.startswith("ssh://me@"):
        need("ssh")
    (tmp_path / "empty").mkdir()
    remote = remote.format(tmp=tmp_path / "empty")
    producer = Producer(tmp_path / "one", "one")
    producer.leave("a")
    for here in (producer.here, producer.here._replace(is_host=True, state=tmp_path / "host")):
        told = contact_route(producer.route("git", remote), here)
        assert not told.ok
        assert told.problem
        assert "bug" not in told.problem
        assert hint in told.hint
    assert list((tmp_path / "empty").iterdir()) == []
    assert producer.waiting() == ["2026-11-14-0900-a.md"]


@pytest.mark.parametrize("command", ["", "ssh -v"])
def test_a_machine_without_ssh_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GIT_SSH_COMMAND", command)
    producer = Producer(tmp_path / "one", "one")
    producer.leave("a")
    told = contact_route(producer.route("git", "ssh://me@127.0.0.1:1/x.git"), producer.here)
    assert (told.problem, told.hint) == ("ssh is not installed", "install ssh")
    assert producer.waiting() == ["2026-11-14-0900-a.md"]


def test_a_login_that_is_refused_asks_nobody(trio: Trio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text(
        f"#!/bin/sh\necho \"$@\" > '{tmp_path}/asked'\necho 'git@x: Permission denied (publickey).' >&2\nexit 255\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    told = contact_route(trio.one.route("git", "git@example.org:x/y.git"), trio.one.here)
    assert "Permission denied" in told.problem
    assert "credential" in told.hint
    assert "BatchMode=yes" in (tmp_path / "asked").read_text()


# --- A hostile remote -----------------------------------------------------------------------------------------------


def evil(trio: Trio, name: str, lines: list[str]) -> None:
    commit = there(trio, "commit-tree", a_tree(trio, lines), "-m", "x")
    there(trio, "update-ref", f"{BRANCHES}/{name}", commit)


def a_tree(trio: Trio, lines: list[str]) -> str:
    return there(trio, "mktree", "-z", "--missing", given="\0".join((*lines, "")).encode())


def a_blob(trio: Trio, data: bytes) -> str:
    return there(trio, "hash-object", "-w", "--stdin", given=data)


def an_origin(files: dict[str, str]) -> bytes:
    return json.dumps({"machine": "evil", "repository": "r", "root": "/r", "files": files}).encode()


def test_hostile_branches(trio: Trio, tmp_path: Path) -> None:
    """Symlinks, submodules, deep trees, large files, odd names: noted or ignored, and the others are filed."""
    text = b"/etc/passwd"
    digest = hashlib.sha256(text).hexdigest()
    large = b"x" * (9 << 20)
    odd_name = '2026-11-14-0900-new\nline "q".md'
    files = {
        f"{CLAUDE}/2026-11-14-0900-link.md": digest,
        f"{CLAUDE}/2026-11-14-0900-module.md": digest,
        f"{CLAUDE}/2026-11-14-0900-large.md": hashlib.sha256(large).hexdigest(),
        f"{CLAUDE}/{odd_name}": digest,
        f"{CLAUDE}/../../../escaped.md": digest,
        "../escaped.md": digest,
    }
    blob = a_blob(trio, text)
    inbox = a_tree(
        trio,
        [
            f"120000 blob {blob}\t2026-11-14-0900-link.md",
            f"160000 commit {'1' * 40}\t2026-11-14-0900-module.md",
            f"100644 blob {a_blob(trio, large)}\t2026-11-14-0900-large.md",
            f"100644 blob {blob}\t{odd_name}",
            f"100644 blob {blob}\t-e sh",
        ],
    )
    claude = a_tree(trio, [f"040000 tree {inbox}\tmemory-handoffs"])
    origin = a_blob(trio, an_origin(files))
    place = a_tree(trio, [f"040000 tree {claude}\t.claude", f"100644 blob {origin}\torigin.json"])
    deep = a_tree(trio, [f"100644 blob {blob}\tend"])
    for _ in range(200):
        deep = a_tree(trio, [f"040000 tree {deep}\td"])
    link_to_place = a_tree(trio, [f"120000 blob {blob}\torigin.json"])
    evil(
        trio,
        "evil-1234567890",
        [
            f"040000 tree {place}\tplace-1",
            f"040000 tree {place}\tnew\nline",
            f"040000 tree {place}\t..",
            f"040000 tree {deep}\tdeep-1",
            f"040000 tree {link_to_place}\tplace-2",
            f"120000 blob {blob}\tlink",
            f"160000 commit {'1' * 40}\tmodule-1",
        ],
    )
    evil(trio, 'it\'s-"quoted"', [f"040000 tree {place}\tplace-1"])
    evil(trio, "nested/branch", [f"040000 tree {place}\tplace-1"])
    (Path(trio.remote) / BRANCHES / "a-blob").write_text(f"{blob}\n")
    trio.leave_some()
    trio.send(trio.one)
    trio.send(trio.two)
    came = trio.receive()
    assert came.brought == 5
    assert any("quoted" in note and "no machine" in note for note in came.notes)
    assert all(note.isprintable() for note in came.notes)
    assert not list(tmp_path.rglob("escaped.md"))
    assert not [path for path in tmp_path.glob("host/**/synced/**/*") if path.name.endswith(("link.md", "large.md"))]
    trio.settle()
    trio.check()


def test_a_remote_with_a_hundred_thousand_files(trio: Trio) -> None:
    blob = a_blob(trio, b"x")
    digest = hashlib.sha256(b"x").hexdigest()
    names = [f"2026-11-14-0900-{number:06}.md" for number in range(100_000)]
    inbox = a_tree(trio, [f"100644 blob {blob}\t{name}" for name in names])
    claude = a_tree(trio, [f"040000 tree {inbox}\tmemory-handoffs"])
    origin = a_blob(trio, an_origin({f"{CLAUDE}/{name}": digest for name in names[:10]}))
    place = a_tree(trio, [f"040000 tree {claude}\t.claude", f"100644 blob {origin}\torigin.json"])
    evil(trio, "big-1234567890", [f"040000 tree {place}\tplace-1"])
    trio.leave_some()
    trio.send(trio.one)
    assert trio.receive().brought == 13, "what is promised, and no more"


def test_hostile_receipts(trio: Trio) -> None:
    blob = a_blob(trio, b"")
    inner = a_tree(trio, [f"100644 blob {blob}\t{name}" for name in ("..", "a\nb", "f" * 63)])
    evil(
        trio,
        "receipts",
        [f"040000 tree {inner}\t{trio.one.here.folder}", f"100644 blob {blob}\t{trio.two.here.folder}"],
    )
    trio.leave_some()
    trio.settle()
    trio.check()


# --- Our own repository ---------------------------------------------------------------------------------------------


def private(state: Path) -> Path:
    (path,) = state.glob("git/*/*.git")
    return path


@pytest.mark.parametrize("what", ["HEAD", "refs", "objects", "all objects", "cut objects", "lock", "all"])
def test_our_own_repository_is_damaged(trio: Trio, what: str) -> None:
    """It is made anew; nothing in it was only there."""
    trio.leave_some()
    trio.round()
    trio.one.leave("later")
    trio.send(trio.one)
    for state in (trio.one.here.state, trio.host_here().state):
        path = private(state)
        if what == "all":
            shutil.rmtree(path)
        elif what == "HEAD":
            (path / what).unlink()
        elif what in ("refs", "objects"):
            shutil.rmtree(path / what)
        elif what == "lock":
            for ref in (*path.glob("refs/there/*"), *path.glob("refs/pushed/*")):
                ref.with_name(f"{ref.name}.lock").touch()
            (path / "packed-refs.lock").touch()
        else:
            for file in path.glob("objects/**/*"):
                if file.is_file():
                    file.chmod(0o644)
                    file.write_bytes(b"" if what == "cut objects" else b"nonsense")
    trio.two.leave("much-later")
    trio.settle()
    trio.check()
    trio.check_clean()


def test_a_full_disk_is_no_damage_to_our_repository() -> None:
    full = Ran(128, b"", "fatal: unable to write loose object file: No space left on device")
    failed = transport._failure("fetch", full)
    assert isinstance(failed, Unreachable)
    assert failed.hint == "there is no space left; nothing is lost, free some and run it again"


def test_a_run_that_was_stopped_is_repeated(trio: Trio) -> None:
    """At whatever moment git is killed: even while it makes our repository."""
    trio.leave_some()
    for milliseconds in (1, 2, 4, 8, 16, 32):
        trio.one.seconds = milliseconds / 1000
        told = contact_route(trio.one.route("git", trio.remote), trio.one.here)
        assert told.ok or "no answer" in told.problem, told
    trio.one.seconds = 60
    trio.settle()
    trio.check()


def test_all_at_once(trio: Trio) -> None:
    """Nobody waits for anybody: the three run side by side, again and again."""
    trio.leave_some()
    problems: list[BaseException] = []

    def again(act: Any) -> None:
        try:
            for _ in range(4):
                act()
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            problems.append(error)

    here = trio.host_here()
    route = Route("by-git", "git", {"remote": trio.remote})
    acts = (lambda: trio.send(trio.one), lambda: trio.send(trio.two), lambda: transport.contact(route, here))
    threads = [threading.Thread(target=again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    trio.settle()
    trio.check()


def test_one_handoff_by_two_routes(trio: Trio, tmp_path: Path) -> None:
    """The same repositories are sent by two ways: filed once, and both ways learn of it."""
    other = str(bare(tmp_path / "other.git"))
    trio.leave_some()
    second: list[Contact] = []
    for _ in range(4):
        for producer in (trio.one, trio.two):
            trio.send(producer)
            route = producer.route("git", other)._replace(name="second")
            second.append(transport.contact(route, producer.here))
        trio.receive()
        transport.contact(Route("second", "git", {"remote": other}), trio.host_here())
        trio.place.ingest()
    assert second[0].brought == 3
    trio.check()
    trio.check_clean()


def test_by_the_command_line(trio: Trio, tmp_path: Path) -> None:
    """Two real processes with homes of their own: a producer that has no workspace, and the host."""
    path = trio.one.leave("by-hand")
    home: dict[str, Any] = {"HOME": str(tmp_path / "lap-top"), "TRUEKEEP_MACHINE_ID": "laptop"}
    host = ("--workspace", str(trio.place.workspace))
    repos = str(trio.one.base / "repos" / "*")
    key = run_cli("sync", "key", *host).stdout.strip()
    named = ("--via", "git", "--remote", trio.remote, "--repos", repos, "--host-key", key)
    added = run_cli("sync", "add", "hub", *named, **home)
    assert added.returncode == 0, added.stderr
    assert run_cli("sync", "add", "hub", "--via", "git", "--remote", trio.remote, *host).returncode == 0
    for command, more in (("sync run", ()), ("sync run", host), ("ingest", host), ("sync run", host), ("sync run", ())):
        ran = run_cli(*command.split(), *more, **({} if more else home))
        assert ran.returncode == 0, (command, more, ran.stdout, ran.stderr)
    assert not path.exists()
    assert (path.parent / "processed" / path.name).exists()
    assert "by-hand.md" in trio.place.cards()
