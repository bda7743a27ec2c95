"""Walk, and print what was seen; with `docs`, write it to docs/walk.md."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.walk.document import DOCUMENT, render
from tests.support.walk.story import walk
from tests.support.walk.world import a_world


def main(wanted: str) -> None:
    with tempfile.TemporaryDirectory(prefix="walk-") as base, a_world(Path(base)) as world:
        try:
            walk(world)
        finally:
            text = render(world.story)
            if wanted != "docs":
                print(text)
        if wanted == "docs":
            DOCUMENT.write_text(text)


main(sys.argv[1] if len(sys.argv) > 1 else "")
