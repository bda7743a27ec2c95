"""Reads TOML files and writes TOML strings."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from truekeep.core.errors import BadInput, BadSetup
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from pathlib import Path


def read_toml(path: Path, *, hint: str) -> dict[str, Any]:
    """The values in a TOML file; {} if the file does not exist. Raises BadSetup if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadSetup(f"{path} cannot be read: {error}", hint=hint) from error


def render_text(text: str) -> str:
    """A TOML string: JSON, but with DEL escaped and characters beyond U+FFFF written as they are."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        what = f"{printable(text)} is not UTF-8 text, which a TOML file requires"
        raise BadInput(what, hint="rename the folder, or use a symlink with a UTF-8 name")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
