"""The files that begin first, because they take longest, are files that exist."""

from __future__ import annotations

from tests.conftest import LONGEST_FIRST, TESTS


def test_every_file_that_begins_first_exists() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []
