"""Elixir: mix.exs and mix.lock."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.text import Pattern, matching_lines, numbered_lines

_DEPENDENCY = Pattern(r"\{\s*:(\w+)\s*,\s*(?:\"([^\"]*)\")?")
_LOCK = Pattern(r"\s*\"(\w+)\":\s*\{:hex,\s*:\w+,\s*\"([^\"]+)\"")
_ALIAS = Pattern(r"\s+(?:\"([\w.]+)\"|(\w+)):\s*(?:\[|&|\")")


def read_mix(draft: ManifestBuilder, text: str) -> None:
    function = ""
    attributes: dict[str, str] = {}
    for number, line in numbered_lines(text):
        attribute = re.match(r"\s*@(\w+)\s+\"([^\"]+)\"", line)
        if attribute and len(attributes) < 1_000:
            attributes["@" + attribute[1]] = attribute[2]
        start = re.match(r"\s*defp?\s+(\w+)", line)
        if start:
            function = start[1]
        if function == "aliases":
            alias = _ALIAS.match(line)
            if alias:
                draft.run("mix", alias[1] or alias[2], number)
        elif function == "project":
            field = re.match(r"\s*(?:\[\s*)?(app|version|elixir):\s*(?::|\"|(?=@))([^\",\s][^\",]*)", line)
            value = attributes.get(field[2].strip(), field[2]) if field else ""
            if field and field[1] == "app":
                draft.name = value
            elif field and field[1] == "version":
                draft.version = "" if value.startswith("@") else value
            elif field and not value.startswith("@"):
                draft.needs("elixir", value, number)
        if function.endswith("deps") and not line.lstrip().startswith("#"):
            for match in _DEPENDENCY.finditer(line):
                draft.add(match[1], match[2] or "", number)


def read_mix_lock(draft: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_LOCK, text):
        draft.add(match[1], "", number, version=match[2], locked=True, direct=False)
