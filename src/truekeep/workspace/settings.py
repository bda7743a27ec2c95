"""The settings of a workspace: list, get, set, unset. Comments in .truekeep/config.toml stay."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.config import Config, parse_config
from truekeep.core.errors import BadInput, BadSetup, EditedSince, NotFound
from truekeep.core.model import RULES

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

Value = str | int | float | bool | list[str]

# Tables whose keys people choose, each with a value of the type that they take.
_OPEN_TABLES: Mapping[str, Value] = {"writers": "", "verify.ask": []}
_OLD_PLACES = {"recall.transcript_days"}  # still read; decay.transcript_days is where it belongs
_LIST_HINT = "`truekeep config list --all` shows every setting"


class ConfigSetting(NamedTuple):
    """A setting and its value."""

    key: str
    value: Value | None  # None: not set, and without a default
    default: Value | None
    is_set: bool  # in the file; else it is the default


class SettingChange(NamedTuple):
    """What `set` or `unset` changed."""

    key: str
    before: ConfigSetting
    after: ConfigSetting


class Settings:
    """The settings of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.path: Path = workspace.state.path / "config.toml"

    def list(self) -> Iterator[ConfigSetting]:
        """Every setting; of the policies only those that the file sets."""
        present, defaults = self._present(), _defaults()
        for key in [*defaults, *(key for key in present if key not in defaults)]:
            if key in present or not key.startswith("policy."):
                yield ConfigSetting(key, present.get(key, defaults.get(key)), defaults.get(key), key in present)

    def get(self, key: str) -> ConfigSetting:
        """Raises NotFound if it has neither a value nor a default."""
        setting = self._find(key)
        if setting.value is None:
            raise NotFound(f"{key} is not set", hint="it has no default; `truekeep config set` sets it")
        return setting

    def set(self, key: str, words: Sequence[str]) -> SettingChange:
        """Write a setting. Raises BadInput if the value does not fit; the file is then unchanged."""
        value = _parse_value(key, words)
        return self._change(key, value)

    def unset(self, key: str) -> SettingChange:
        """Remove a setting from the file, so that its default holds."""
        if not self._find(key).is_set:
            raise NotFound(f"{key} is not set", hint="nothing to do: its default already holds")
        return self._change(key, None)

    def read_text(self) -> str:
        """The file as it is, also if it cannot be used."""
        if self.path.is_symlink():
            hint = "edit the file that it leads to, or replace the link by that file"
            raise BadSetup(f"{self.path} is a symbolic link", hint=hint)
        try:
            return file_io.read_regular(self.path).decode()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetup(f"{self.path} cannot be read: {error}", hint="correct or remove it") from error

    def replace_text(self, before: str, after: str) -> None:
        """Replace the whole file. Raises BadSetup if the new text cannot be used, EditedSince if it changed."""
        parse_config(after, where=str(self.path))
        self._workspace.state.check_host(self._workspace.machine, "change its settings")
        with self._workspace.locked():
            if self.read_text() != before:
                raise EditedSince(f"{self.path} was changed in the meantime", hint="run it again")
            file_io.write_whole(self.path, after.encode(), mode=0o644)

    def _change(self, key: str, value: Value | None) -> SettingChange:
        text = self.read_text()
        before = self._find(key)
        changed = _edit(text, key, value)
        try:
            self.replace_text(text, changed)
        except BadSetup as error:
            problems = error.details.get("problems") or [error.message]
            raise BadInput("; ".join(problems), hint="nothing was changed") from error
        return SettingChange(key, before, self._find(key))

    def _find(self, key: str) -> ConfigSetting:
        if _value_like(key) is None:
            raise _unknown(key)
        present, default = self._present(), _defaults().get(key)
        return ConfigSetting(key, present.get(key, default), default, key in present)

    def _present(self) -> dict[str, Value]:
        """The settings that the file has, by key, as they are used."""
        text = self.read_text()
        used = dict(_flatten(parse_config(text, where=str(self.path))))
        return {key: used.get(key, value) for key, value in _flatten(_parse(text).unwrap())}


def _parse(text: str) -> Any:
    import tomlkit  # 25 ms; only this service changes TOML that people wrote

    return tomlkit.parse(text)


def _edit(text: str, key: str, value: Value | None) -> str:
    """The TOML text with one key set, or removed if the value is None. Everything else stays byte for byte."""
    import tomlkit

    document = _parse(text)
    table: Any = document
    above = ""
    first, *rest = key.split(".")
    if rest:
        above, (first, *rest) = first, rest
        table = document.setdefault(above, tomlkit.table())
    if value is None:
        if not rest or len(table[first]) == 1:
            del table[first]
        else:
            del table[first][rest[0]]
        if above and not table.as_string().strip():
            del document[above]
    elif rest and first in table:
        table[first][rest[0]] = value
    else:
        table.append(tomlkit.key([first, *rest]), value) if rest else table.update({first: value})
    return tomlkit.dumps(document)


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Settings by their dotted key."""
    table = value._asdict() if hasattr(value, "_asdict") else value
    for name, inner in table.items():
        key = f"{prefix}{name}"
        if key in _OLD_PLACES or key == "warnings":
            continue
        if isinstance(inner, Mapping) or hasattr(inner, "_asdict"):
            yield from _flatten(inner, f"{key}.")
        else:
            yield key, list(inner) if isinstance(inner, tuple) else inner


def _defaults() -> dict[str, Value]:
    return {**dict(_flatten(Config())), **{f"policy.{code}": rule.policy for code, rule in RULES.items()}}


def setting_names() -> list[str]:
    """The keys that have a default."""
    return list(_defaults())


def _value_like(key: str) -> Value | None:
    """A value of the type that a key takes; None if there is no such key."""
    table, _, name = key.rpartition(".")
    default = _defaults().get(key)
    return default if default is not None else _OPEN_TABLES.get(table) if name else None


def _unknown(key: str) -> NotFound:
    close = difflib.get_close_matches(key, _defaults(), 1)
    return NotFound(f"there is no setting {key}" + (f" (did you mean {close[0]}?)" if close else ""), hint=_LIST_HINT)


def _parse_value(key: str, words: Sequence[str]) -> Value:
    like = _value_like(key)
    if like is None:
        raise _unknown(key)
    if isinstance(like, list):
        return [word for word in words if word]
    if len(words) != 1:
        raise BadInput(f"{key} takes one value", hint=f"quote a value with blanks; {_LIST_HINT}")
    (word,) = words
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[word.lower()]
        return type(like)(word)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(like)]
        raise BadInput(f"{key} must be {kind}, not {word!r}", hint="nothing was changed") from None
