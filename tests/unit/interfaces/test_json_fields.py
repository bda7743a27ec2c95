"""Values as JSON: every key of the table can be read, and containers, days, paths and bytes become plain values."""

from __future__ import annotations

import json
import pkgutil
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import truekeep
from truekeep.core.model import Finding
from truekeep.interfaces.cli import json_fields
from truekeep.interfaces.cli.json_fields import FIELDS, FILTERS, keys_of, to_json
from truekeep.memory.ledger import LedgerEntry


class Inner(NamedTuple):
    path: Path
    days: tuple[date, ...]


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    digest: bytes
    tags: frozenset[str]
    counts: dict[str, int]


def test_values_become_plain_json() -> None:
    inner = Inner(Path("/a"), (date(2026, 11, 18),))
    shown = to_json(Outer("x", inner, b"\xff", frozenset(("b", "a")), {"gone": 1}))
    assert json.loads(json.dumps(shown)) == {
        "name": "x",
        "inner": {"path": "/a", "days": ["2026-11-18"]},
        "digest": "ff",
        "tags": ["a", "b"],
        "counts": {"gone": 1},
    }


def test_keys_are_renamed_filtered_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIELDS, "Outer", "title=name where=inner.path *inner tags=tags|count")
    shown = to_json(Outer("x", Inner(Path("/a"), ()), b"", frozenset("ab"), {}))
    assert shown == {"title": "x", "where": "/a", "path": "/a", "days": [], "tags": 2}


def test_hidden_characters_of_a_message_are_escaped() -> None:
    assert to_json(Finding("secret", "a\x1b[2J", 3)) == {"code": "secret", "message": "a\\x1b[2J", "line": 3}


def _classes() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(truekeep.__path__, "truekeep."):
        if not module.name.endswith("__main__"):
            loaded = vars(import_module(module.name))
            found |= {name: item for name, item in loaded.items() if isinstance(item, type)}
    return found


@pytest.mark.slow
def test_every_class_of_the_table_exists_and_has_the_attributes() -> None:
    classes = _classes()
    for name, spec in FIELDS.items():
        fields = {*dir(classes[name]), *getattr(classes[name], "__annotations__", ())}
        for word in spec.split():
            source = word.removeprefix("*").partition("=")[2] or word.removeprefix("*")
            path, _, filter_ = source.partition("|")
            assert path.partition(".")[0] in fields, (name, word)
            assert not filter_ or filter_ in FILTERS, (name, word)
    assert keys_of(LedgerEntry)
    assert keys_of(int) == []
    assert json_fields.mask("token \x1b") == "token \\x1b"
