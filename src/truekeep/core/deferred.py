"""Modules that others load and hardly any command needs, put off until something of them is asked for.

The command line and dataclasses load `inspect`, and with it the parser's own modules: a tenth of what an idle command
costs. All that is asked of it in an ordinary run is to clean texts of one line. Whatever else is asked loads it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class Deferred(ModuleType):
    """Stands in for a module; becomes all of it as soon as more is asked than it was given."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_load(self.__name__), name)


def defer_inspect() -> None:
    """Let those who import `inspect` from now on go on without it, as far as they can."""
    if "inspect" not in sys.modules:
        stand_in = Deferred("inspect")
        stand_in.__dict__["cleandoc"] = clean_line
        sys.modules["inspect"] = stand_in


def clean_line(text: str) -> str:
    """What `inspect.cleandoc` makes of a text; of one plain line that is the line itself."""
    if text.isprintable() and not text.startswith(" "):
        return text
    cleaned: str = _load("inspect").cleandoc(text)
    return cleaned


def _load(name: str) -> ModuleType:
    """The module itself, which also fills the place of its stand-in."""
    found = sys.modules.get(name)
    if isinstance(found, Deferred):
        del sys.modules[name]
        found.__dict__.update(import_module(name).__dict__)
    return import_module(name)
