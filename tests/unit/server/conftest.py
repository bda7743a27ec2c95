"""One PostgreSQL for these tests, and a database for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import drop_database, new_database, running_cluster
from tests.support.team import Team
from truekeep.server.administration import init_deployment


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL."""
    given = os.environ.get("TRUEKEEP_TEST_POSTGRES")
    if given:
        yield given
        return
    with running_cluster() as cluster:
        yield cluster.url


@pytest.fixture
def database_url(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    made = new_database(postgres)
    yield made
    drop_database(postgres, made)


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> Iterator[Team]:
    init_deployment(database_url, "memory.example")
    team = Team(database_url, tmp_path / "servers")
    yield team
    team.close()
