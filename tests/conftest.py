"""A home of its own for every test, so that none can touch a developer's memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.helpers import OPENED, Place
from tests.support.programs import how_to_get, need

if TYPE_CHECKING:
    from tests.support.team import Team
    from tests.support.visitor import Visitor


os.environ["TZ"] = "UTC"  # what people read is in local time; a test of another zone sets it with `set_zone`
time.tzset()

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")  # an example may take as long as a busy machine needs

LONGEST_FIRST = (
    "robustness/test_crash.py",
    "unit/integrations/test_doctor.py",
    "integration/web/test_browser.py",
    "unit/interfaces/test_hooks.py",
    "integration/test_sync_git.py",
    "integration/test_sessions_real.py",
    "robustness/test_hostile_repositories.py",
    "robustness/test_year.py",
    "integration/test_sync_rclone.py",
    "integration/test_docs.py",
    "integration/test_sync_rsync.py",
    "robustness/test_hostile_pages.py",
    "unit/search/test_service.py",
    "integration/test_package.py",
    "integration/test_walk.py",
    "robustness/test_soak.py",
    "integration/test_connect_real.py",
)
TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder; files that take longest begin first, so that no worker begins one at the end."""
    ranks = {TESTS / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    for item in items:
        for folder in ("integration", "robustness"):
            if item.path.is_relative_to(TESTS / folder):
                item.add_marker(folder)
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        need(*mark.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """After everything else: which programs were missing."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    if line := how_to_get(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(TESTS.parent)  # and back afterwards, wherever the test goes
    for name in ("TRUEKEEP_WORKSPACE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDECODE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "test-machine")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return home


@pytest.fixture
def set_zone() -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process, and of those it starts, until the test ends."""
    with pytest.MonkeyPatch.context() as patch:

        def set_to(name: str) -> None:
            patch.setenv("TZ", name)
            time.tzset()

        yield set_to
    time.tzset()


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
    from tests.support.visitor import Visitor

    visitor = Visitor(place)
    yield visitor
    visitor.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL: the one that TRUEKEEP_TEST_POSTGRES names, else one of this test run."""
    pytest.importorskip("psycopg", reason="no PostgreSQL client: pip install 'truekeep[server]'")
    from tests.support.postgres import running_cluster

    if given := os.environ.get("TRUEKEEP_TEST_POSTGRES"):
        yield given
        return
    with running_cluster() as cluster:
        yield cluster.url


@pytest.fixture
def database_url(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    from tests.support.postgres import drop_database, new_database

    made = new_database(postgres)
    yield made
    drop_database(postgres, made)


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> Iterator[Team]:
    """A deployment of the team server, without a workspace."""
    from tests.support.team import Team
    from truekeep.server.administration import init_deployment

    init_deployment(database_url, "memory.example")
    team = Team(database_url, tmp_path / "servers")
    yield team
    team.close()
