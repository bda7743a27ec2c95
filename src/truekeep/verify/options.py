"""What a check may do, and how long."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """What the person allows."""

    online: bool = False
    system: bool = True  # ask this machine for ports, units, containers
    deadline: float | None = None  # by time.monotonic()
    deleting: bool = True  # look for the commit that took a symbol out
    is_current: bool = False  # the text was written at this very checkout, so that what is not here is not there
