"""Swift: Package.swift and Package.resolved."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.json import Json, find_in, string_of
from truekeep.verify.manifests.text import Pattern, Places

_PACKAGE = Pattern(
    r"\.package\(\s{0,40}(?:name:\s{0,10}\"[^\"\n]{0,100}\",\s{0,40})?(url|path|id):\s{0,10}\"([^\"\n]{1,300})\""
)
_SPEC = Pattern(
    r"\s{0,40},\s{0,40}(?:(from|exact|branch|revision):\s{0,10}\"([^\"\n]{1,80})\""
    r"|\.(exact|branch|revision)\(\s{0,10}\"([^\"\n]{1,80})\"|\.upToNext(Major|Minor)\(from:\s{0,10}\"([^\"\n]{1,80})\""
    r"|\"([^\"\n]{1,80})\"\s{0,10}(\.\.[.<])\s{0,10}\"([^\"\n]{1,80})\")"
)


def read_package_swift(draft: ManifestBuilder, text: str) -> None:
    places = Places(text)
    tools = re.match(r"//\s*swift-tools-version:\s*([0-9.]+)", text)
    if tools:
        draft.needs("swift", tools[1], 1)
    own = re.search(r"\bPackage\(\s{0,40}name:\s{0,10}\"([^\"\n]{1,100})\"", text)
    draft.name = own[1] if own else ""
    for match in _PACKAGE.finditer(text):
        name = match[2].rstrip("/").removesuffix(".git").rpartition("/")[2]
        spec, pin = ("" if match[1] != "path" else f"path:{match[2]}"), ""
        found = _SPEC.match(text, match.end())
        if found:
            word, value = found[1] or found[3], found[2] or found[4]
            if word == "exact":
                spec = pin = value
            elif word:
                spec = f"{word}: {value}"
            elif found[5]:
                spec = f"{'^' if found[5] == 'Major' else '~'}{found[6]}"
            else:
                spec = f"{found[7]}{found[8]}{found[9]}"
        draft.add(name, spec, places.line(match.start(2)), version=pin)


def read_package_resolved(draft: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("pins")
    pins = top.get("pins") or next((item for item in json.inside(top.get("object")) if item.key == "pins"), None)
    for pin in json.inside(pins):
        version = string_of(find_in(find_in(pin.value, "state"), "version"))
        for key, value, line, *_ in json.inside(pin):
            if key in ("identity", "package"):
                draft.add(string_of(value), "", line, version=version, locked=True, direct=False)
