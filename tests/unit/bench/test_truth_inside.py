"""The clock around parts of `verify`: it must know the functions as they are called now."""

from __future__ import annotations

import pytest
from bench.truth_inside import PARTS, find_owner


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_there(name: str) -> None:
    owner, last = find_owner(name)
    assert callable(getattr(owner, last, None))
