"""Reads the configuration files of harnesses."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any


class UnreadableHarnessFile(Exception):
    """A harness's file cannot be read or parsed, so truekeep does not touch that harness."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}")
        self.path = path
        self.what = what


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes; None if it does not exist."""
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
            raise UnreadableHarnessFile(path, "is not a regular file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise UnreadableHarnessFile(path, f"cannot be read: {error.strerror}") from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} if the file does not exist."""
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
    """The value at a path of keys; None if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def without_empty(value: Any) -> Any:
    """The value without nested empty objects and lists, which harnesses leave behind."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    return value
