"""A home of its own for every test, so that none can touch a developer's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers import OPENED, Place

if TYPE_CHECKING:
    from tests.visitor import Visitor


LONGEST = (
    "crash",
    "doctor",
    "web_browser",
    "hooks",
    "sync_git",
    "sessions_real",
    "verify_hostile",
    "year",
    "sync_rclone",
    "docs",
    "sync_rsync",
    "web_hostile",
    "recall",
    "package",
    "walk",
    "soak",
    "connect_real",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin first, so that no worker begins one when the others are nearly done."""
    ranks = {f"test_{name}": rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("TRUEKEEP_WORKSPACE", "XDG_STATE_HOME", "CLAUDECODE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "test-machine")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return home


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Workspaces that a test of upkeep opened are closed: descriptors are few."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace and one repository with an inbox, ready for handoffs."""
    return Place.make(tmp_path)


@pytest.fixture
def in_the_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index is built by a process that outlives the test."""
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")


@pytest.fixture
def visitor(place: Place) -> Iterator[Visitor]:
    """Somebody with a browser at the pages of this workspace."""
    from tests.visitor import Visitor

    visitor = Visitor(place)
    yield visitor
    visitor.close()
