"""Reads the configuration files of harnesses."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any


class UnreadableHarnessFile(Exception):
    """A harness's file is not what it should be, so truekeep does not touch that harness."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}")
        self.path = path
        self.what = what


def read_bytes(path: Path) -> bytes | None:
    """A file's bytes; None when there is none."""
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
            raise UnreadableHarnessFile(path, "is not a regular file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise UnreadableHarnessFile(path, f"cannot be read: {error.strerror}") from error


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file; empty when there is none."""
    value = parse_object(read_bytes(path) or b"{}")
    if value is None:
        raise UnreadableHarnessFile(path, "is not a JSON object")
    return value


def parse_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def at(value: Any, *keys: str) -> Any:
    """What stands at the end of these keys; None where one of them is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def without_empty(value: Any) -> Any:
    """A value without the empty objects and lists in it, which harnesses leave behind."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    return value
