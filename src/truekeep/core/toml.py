"""TOML as truekeep and most people write it, read without loading a parser, and texts as it has them.

Hooks read two small files of it, and Python's own parser costs more to load than both to read. What is not plainly
understood here is left to that parser, errors included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truekeep.core.errors import BadInput, BadSetup

if TYPE_CHECKING:
    from pathlib import Path


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML text says. What is wrong in it is a ValueError."""
    found = _parse_plain(text)
    if found is not None:
        return found
    import tomllib

    return tomllib.loads(text)


def read_toml(path: Path, *, hint: str) -> dict[str, Any]:
    """What a file of settings says; nothing where there is none."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadSetup(f"{path} cannot be read: {error}", hint=hint) from error


def _parse_plain(text: str) -> dict[str, Any] | None:
    """Tables, and keys with strings, plain numbers, yes or no, or lists of strings; None for anything else."""
    if not text.replace("\n", "").isprintable():
        return None
    found: dict[str, Any] = {}
    table = found
    for line in text.split("\n"):
        line = line.strip(" ")
        if not line or line[0] == "#":
            continue
        key, equals, value = line.partition("=")
        name = key.strip(" ") if equals else line[1:-1] if line[0] == "[" and line[-1] == "]" else ""
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            return None
        if name in (table if equals else found):
            return None
        if not equals:
            table = found[name] = {}
            continue
        table[name] = _parse_value(value.strip(" "))
        if table[name] is None:
            return None
    return found


def _parse_value(text: str) -> str | int | float | bool | list[str] | None:
    if text in ("true", "false"):
        return text == "true"
    whole, point, rest = text.partition(".")
    if text.isascii() and whole.isdigit() and (whole[0] != "0" or whole == "0"):
        return int(text) if not point else float(text) if rest.isdigit() else None
    if text[:1] != "[" or text[-1:] != "]":
        return _parse_string(text)
    items = [item.strip(" ") for item in text[1:-1].split(",")]
    if not items[-1]:
        items.pop()  # nothing, or a comma at the end
    strings = [_parse_string(item) for item in items]
    return None if None in strings else [item for item in strings if item is not None]


def _parse_string(text: str) -> str | None:
    """A string between two quotes, with nothing in it that would need a second look."""
    inner = text[1:-1]
    is_plain = len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in inner and "\\" not in inner
    return inner if is_plain else None


def render_text(text: str) -> str:
    """A text as TOML has it: like JSON, but a character beyond U+FFFF is no two escapes, and DEL is one."""
    import json

    if any("\ud800" <= character <= "\udfff" for character in text):
        from truekeep.text.unicode import printable

        what = f"{printable(text)} is not UTF-8 text, and a TOML file can hold no other"
        raise BadInput(what, hint="give the folder another name, or reach it through a symlink that has one")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
