"""INI files, with lines."""

from __future__ import annotations

from typing import NamedTuple

from truekeep.verify.manifests.formats.table import Leaf
from truekeep.verify.manifests.text import Pattern, numbered_lines

_KEY = Pattern(r"([^\s=:#;\[][^=:]{0,200}?)\s*[=:]\s*(.*)\Z")


class Setting(NamedTuple):
    section: str
    key: str
    values: list[Leaf]  # one for each line


def parse_ini(text: str) -> list[Setting]:
    found: list[Setting] = []
    section = ""
    for number, line in numbered_lines(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] == "[":
            section = line[1:].partition("]")[0].strip()
            found.append(Setting(section, "", []))
            found[-1].values.append(Leaf(section, number))
        elif line[0] in " \t":
            if found and found[-1].key:
                found[-1].values.append(Leaf(bare, number))
        else:
            match = _KEY.match(line)
            if match:
                found.append(Setting(section, match[1], [Leaf(match[2].strip(), number)] if match[2] else []))
    return found
