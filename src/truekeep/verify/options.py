"""Options of a check."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Options(NamedTuple):
    """Permissions and limits of a check."""

    online: bool = False
    system: bool = True  # ask this machine for ports, units, containers
    deadline: float | None = None  # by time.monotonic()
    deleting: bool = True  # look for the commit that removed a symbol
    ask: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # configured commands, by what has the ids
    is_current: bool = False  # the text was written at this checkout, so what is missing here is gone
    are_documents: bool = False  # the texts are documents of the repository that they are checked against
