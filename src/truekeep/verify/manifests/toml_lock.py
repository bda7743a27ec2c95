"""Lock files in TOML: poetry.lock, uv.lock, pdm.lock, pylock.toml, Cargo.lock."""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.names import normal_name
from truekeep.verify.manifests.text import Pattern, matching_lines

_LINE = Pattern(r"\[|name = |version = |source = |dependencies = |\s*\{ ?name = |\s+\"|requires-python|python-ver")
_VALUE = Pattern(r"[\w-]+ = [\"']([^\"']*)[\"']")
_NAME = Pattern(r"\{ ?name = \"([^\"]+)\"")
_OWN = Pattern(r"\b(?:virtual|editable|directory|workspace) = ")
_ITEM = Pattern(r"\"([^\" ]+)[^\"]*\"")


class _LockedPackage:
    """One package of a lock file while it is being read."""

    def __init__(self, *, is_own: bool) -> None:
        self.name = self.version = ""
        self.line = 0
        self.is_own = is_own  # a package of the repository itself
        self.needs: list[str] = []


def read_toml_lock(draft: ManifestBuilder, text: str) -> None:
    """A lock file: generated, so one fact a line.

    What a package of the repository itself depends on is direct; poetry and pdm do not say which that is.
    """
    is_cargo = draft.ecosystem == "rust"
    found: list[_LockedPackage] = []
    is_package = is_head = False
    for number, match in matching_lines(_LINE, text):
        line = match.string
        if line[0] == "[":
            is_head = line.startswith(("[[package]]", "[[packages]]"))
            is_package = is_head or (is_package and line.startswith(("[package", "[[package")))
            if is_head:
                found.append(_LockedPackage(is_own=is_cargo))
            continue
        value = _VALUE.match(line)
        if not is_package:
            if value and line.startswith(("requires-python", "python-ver")):
                draft.needs("python", value[1], number)
            continue
        package = found[-1]
        if is_head and value and line.startswith("name") and not package.name:
            package.name, package.line = value[1], number
        elif is_head and value and line.startswith("version"):
            package.version = value[1]
        elif is_head and line.startswith("source"):
            package.is_own = not is_cargo and _OWN.search(line) is not None
        elif package.is_own:
            package.needs += _NAME.findall(line) or (_ITEM.findall(line) if is_cargo else [])
    own = [package for package in found if package.is_own]
    direct = {normal_name(name, draft.ecosystem) for package in own for name in package.needs}
    if len(own) == 1:
        draft.name, draft.version = own[0].name, own[0].version
    for package in found:
        if not package.is_own:
            is_direct = normal_name(package.name, draft.ecosystem) in direct
            draft.add(package.name, "", package.line, version=package.version, locked=True, direct=is_direct)
