"""The acceptance test: the whole product, walked through once on four machines (tests/support/walk), and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.walk.document import DOCUMENT, commands_of, commands_typed, headings_of
from tests.support.walk.story import walk
from tests.support.walk.world import Told, a_world


@pytest.mark.needs("bash", "ssh", "scp", "sshd", "ssh-keygen", "rsync")
def test_the_walk(tmp_path: Path) -> None:
    """And its page in the docs tells this walk and no other."""
    with a_world(tmp_path) as world:
        walk(world)
    page = DOCUMENT.read_text()
    chapters = [item.text for item in world.story if isinstance(item, Told) and item.is_heading]
    assert headings_of(page) == chapters, "`make walk` writes it anew"
    assert commands_of(page) == commands_typed(world.story), "`make walk` writes it anew"
