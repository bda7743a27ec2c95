"""Runtimes and versions that have a file of their own."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.text import Pattern, matching_lines, numbered_lines

_TOOL = Pattern(r"\s*([A-Za-z][\w-]*)[ \t]+v?([^\s#]+)")
_TOOL_NAMES = {"nodejs": "node", "golang": "go", "dotnet-core": "dotnet"}


def read_runtime(draft: ManifestBuilder, text: str) -> None:
    """`.python-version` and the like: the version of the runtime that the file's ecosystem is named for."""
    runtime = "node" if draft.ecosystem == "npm" else draft.ecosystem
    for number, line in numbered_lines(text):
        word = line.partition("#")[0].strip()
        if word:
            word = re.sub(rf"\A(?:{runtime}-)?v?(?=[0-9])", "", word)
            draft.needs(runtime, word, number)
            return


def read_tool_versions(draft: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_TOOL, text):
        version = match[2]
        if match[1] == "java":
            version = re.sub(r"\A[a-z][a-z0-9]*-(?=[0-9])", "", version)
        draft.needs(_TOOL_NAMES.get(match[1], match[1]), version, number)


def read_version(draft: ManifestBuilder, text: str) -> None:
    match = re.match(r"\s{0,100}v?([0-9]{1,9}(?:\.[0-9]{1,9}){1,4}[\w.+-]{0,60})\s*(?:\n|\Z)", text)
    if match:
        draft.version = match[1]
