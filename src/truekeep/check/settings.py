"""The settings of a check: truekeep.toml, or [tool.truekeep] in pyproject.toml, at the top of the repository."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from truekeep.core.errors import BadInput
from truekeep.core.file_io import read_regular
from truekeep.verify.claim import KINDS

OWN_FILE = "truekeep.toml"
SHARED_FILE = "pyproject.toml"
HIGH, MEDIUM, LOW = CONFIDENCES = ("high", "medium", "low")
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """What is checked, and what is reported."""

    include: tuple[str, ...] = ()  # patterns as in .gitignore; empty: documents that usually speak about the code
    exclude: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  # of claims; empty: all
    ignore: tuple[str, ...] = ()  # claims that are never reported: their text, with * and ?
    confidence: str = HIGH
    baseline: str = ""  # a file, from the top of the repository


def read_settings(top: Path) -> CheckSettings:
    """The settings of a repository; the defaults if it has none. An unknown setting is an error."""
    for name in (OWN_FILE, SHARED_FILE):
        table = _read_table(top / name, name)
        if table is not None:
            return _parse(table, name)
    return CheckSettings()


def _read_table(path: Path, name: str) -> dict[str, Any] | None:
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}", hint="make it a regular, readable file") from error
    if len(data) > _MAX_BYTES:
        raise BadInput(f"{name} is larger than {_MAX_BYTES} bytes", hint="settings of a check need far less")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        if name == SHARED_FILE and b"truekeep" not in data:
            return None
        raise BadInput(f"{name} is not valid TOML: {error}", hint="correct that line") from error
    if name == OWN_FILE:
        return table
    tool = table.get("tool")
    found = tool.get("truekeep") if isinstance(tool, dict) else None
    if found is not None and not isinstance(found, dict):
        raise BadInput(
            f"{name}: [tool.truekeep] is not a table", hint="write it as [tool.truekeep] with settings below"
        )
    return found


def _parse(table: dict[str, Any], name: str) -> CheckSettings:
    known = {field.name for field in fields(CheckSettings)}
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"the settings are {', '.join(sorted(known))}"
            raise BadInput(f"{name}: {key} is not a setting", hint=hint)
    given: dict[str, Any] = {}
    for key, value in table.items():
        given[key] = _word(key, value, name) if key in ("confidence", "baseline") else _words(key, value, name)
    return validated(CheckSettings(**given), name)


def validated(settings: CheckSettings, where: str) -> CheckSettings:
    """The settings, if every kind and the confidence is one that exists."""
    for kind in settings.kinds:
        if kind not in KINDS:
            raise BadInput(f"{where}: {kind} is not a kind of claim", hint=f"the kinds are {', '.join(KINDS)}")
    if settings.confidence not in CONFIDENCES:
        shown = f"{where}: {settings.confidence} is not a confidence"
        raise BadInput(shown, hint=f"it is one of {', '.join(CONFIDENCES)}")
    return settings


def _word(key: str, value: object, name: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name}: {key} has to be a text", hint=f'write {key} = "…"')
    return value


def _words(key: str, value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise BadInput(f"{name}: {key} has to be a list of texts", hint=f'write {key} = ["…"]')
    return tuple(value)
