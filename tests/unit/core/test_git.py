"""Which checkouts are of one repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.helpers import git_repo
from truekeep.core.git import shares_history


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path, text: str) -> None:
    (root / "file").write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", text)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    root = git_repo(tmp_path / "app", remote="https://git.example/me/app.git")
    commit(root, "one")
    commit(root, "two")
    return root


def both(one: Path, other: Path) -> bool:
    found = {shares_history(one, other), shares_history(other, one)}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("options", [(), ("--depth", "1"), ("--filter=blob:none",), ("--shared",)])
def test_clones_are_of_one_repository(app: Path, options: tuple[str, ...]) -> None:
    git(app, "config", "uploadpack.allowFilter", "true")
    source = str(app) if "--shared" in options else f"file://{app}"
    git(app.parent, "clone", "-q", *options, source, "clone")
    assert both(app, app.parent / "clone")
    commit(app, "three")
    commit(app.parent / "clone", "another")
    assert both(app, app.parent / "clone")
    git(app.parent / "clone", "checkout", "-q", "--detach")
    assert both(app, app.parent / "clone")


@pytest.mark.slow
def test_worktrees_and_submodules_are(app: Path, tmp_path: Path) -> None:
    git(app, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert both(app, tmp_path / "tree")
    outer = git_repo(tmp_path / "outer")
    commit(outer, "outer")
    git(outer, "submodule", "add", "-q", str(app), "sub")
    assert both(app, outer / "sub")


def other(tmp_path: Path) -> Path:
    root = git_repo(tmp_path / "evil", remote="https://git.example/me/app.git")
    commit(root, "own")
    return root


def borrow_objects(app: Path, evil: Path) -> None:
    (evil / ".git/objects/info/alternates").write_text(f"{app}/.git/objects\n")


def borrow_by_file(app: Path, evil: Path) -> None:
    (evil / ".git").rename(evil / "old")
    (evil / ".git").write_text(f"gitdir: {app}/.git\n")


def borrow_by_link(app: Path, evil: Path) -> None:
    (evil / ".git").rename(evil / "old")
    (evil / ".git").symlink_to(app / ".git")


def borrow_common_folder(app: Path, evil: Path) -> None:
    (evil / ".git/commondir").write_text(f"{app}/.git\n")
    (evil / ".git/gitdir").write_text(f"{evil}/.git\n")


def borrow_as_worktree(app: Path, evil: Path) -> None:
    git(app, "worktree", "add", "-q", str(app.parent / "tree"))
    (evil / ".git").rename(evil / "old")
    (evil / ".git").write_text((app.parent / "tree/.git").read_text())


@pytest.mark.parametrize(
    "borrow", [borrow_objects, borrow_by_file, borrow_by_link, borrow_common_folder, borrow_as_worktree]
)
def test_what_is_borrowed_proves_nothing(app: Path, tmp_path: Path, borrow: object) -> None:
    evil = other(tmp_path)
    assert not both(app, evil)
    assert callable(borrow)
    borrow(app, evil)
    assert not both(app, evil)


def test_two_shallow_clones_that_were_cut_apart_share_nothing(app: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{app}", "early")
    commit(app, "three")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{app}", "late")
    assert not both(tmp_path / "early", tmp_path / "late")
    git(tmp_path / "late", "fetch", "-q", "--unshallow")
    assert both(tmp_path / "early", tmp_path / "late")
