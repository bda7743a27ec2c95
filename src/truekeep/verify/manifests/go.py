"""Go: go.mod and go.sum."""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.text import Pattern, matching_lines, numbered_lines

_REQUIRE = Pattern(r"\s*(?:require\s+)?\"?([\w.~-]+(?:/[\w.~!-]+)*)\"?\s+(v[0-9][\w.+-]*)\s*(//.*)?\Z")
_SUM = Pattern(r"(\S+) (v[^\s/]+) h1:")


def read_go_mod(draft: ManifestBuilder, text: str) -> None:
    block = ""
    for number, line in numbered_lines(text):
        bare = line.strip()
        word, _, rest = bare.partition(" ")
        rest = rest.partition("//")[0].strip()
        if block:
            if bare.startswith(")"):
                block = ""
        elif rest == "(" or bare.endswith("("):
            block = word.rstrip("(")
            continue
        elif word == "module":
            draft.name = rest.strip('"')
        elif word == "go":
            draft.needs("go", rest, number)
        elif word == "toolchain":
            draft.needs("go", rest.removeprefix("go"), number)
        if block == "require" or (not block and word == "require"):
            match = _REQUIRE.match(line)
            if match:
                is_direct = "indirect" not in (match[3] or "")
                draft.add(match[1], match[2], number, version=match[2][1:], direct=is_direct)


def read_go_sum(draft: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_SUM, text):
        draft.add(match[1], match[2], number, version=match[2][1:], locked=True, direct=False)
