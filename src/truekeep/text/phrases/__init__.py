"""Words and phrases that decide what a sentence means, one TOML file for each subject and language.

Files are called `<subject>.<language>.toml`, such as `durability.en.toml`; the language `code` is for what is the same
in every language: commands, markup, names of products. To add a language, add a file: entries of one name are joined
over all files of a subject, English first. Files are read when a subject is first used.

Each entry is one text. It holds words, separated by blanks, or regular expressions, one a line; a line that is indented
by two blanks continues the line above it. In an expression, a name in braces stands for the entry of that name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

_FOLDER = os.path.dirname(__file__)


class Phrases:
    """The phrases of one subject in every language. Entries of a TOML table are named `table.entry`."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def words(self, name: str) -> frozenset[str]:
        """The words of an entry."""
        return frozenset(self._texts[name].split())

    def rows(self, name: str) -> list[list[str]]:
        """The words of an entry, line by line."""
        return [line.split() for line in self._texts[name].split("\n")]

    def lines(self, name: str) -> list[str]:
        """The expressions of an entry, one by one."""
        return self._texts[name].replace("\n  |", "|").replace("\n  ", " ").split("\n")

    def any_of(self, name: str) -> str:
        """One regular expression that matches each expression of an entry. Put it in a group before using it."""
        return self._texts[name].replace("\n  |", "|").replace("\n  ", " ").replace("\n", "|")

    def table(self, name: str) -> dict[str, str]:
        """The entries of a table, each as `any_of` gives it."""
        start = f"{name}."
        return {key.removeprefix(start): self.any_of(key) for key in self._texts if key.startswith(start)}


@cache
def load_phrases(subject: str) -> Phrases:
    """Read the files of a subject."""
    import tomllib  # loading the parser costs hooks more than reading the files

    texts: dict[str, str] = {}
    for name in sorted(_file_names(subject), key=lambda name: (not name.endswith(".en.toml"), name)):
        with open(os.path.join(_FOLDER, name), "rb") as file:
            _add_texts(texts, tomllib.load(file))
    return Phrases(texts)


def expand_names(expression: str, names: Mapping[str, str]) -> str:
    """An expression with each name in braces replaced by what it stands for, also inside of other names."""
    while (expanded := _expand_once(expression, names)) != expression:
        expression = expanded
    return expression


def _expand_once(expression: str, names: Mapping[str, str]) -> str:
    for name, meaning in names.items():
        expression = expression.replace(f"{{{name}}}", f"(?:{meaning})")
    return expression


def _file_names(subject: str) -> list[str]:
    return [name for name in os.listdir(_FOLDER) if name.startswith(f"{subject}.") and name.endswith(".toml")]


def _add_texts(texts: dict[str, str], entries: Mapping[str, Any], table: str = "") -> None:
    for key, value in entries.items():
        name = table + key
        if isinstance(value, dict):
            _add_texts(texts, value, f"{name}.")
        else:
            text = value.strip("\n")
            texts[name] = f"{texts[name]}\n{text}" if name in texts else text
