"""JavaScript: package.json, and the lock files of npm, yarn, pnpm and bun."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import (
    Json,
    LazyPattern,
    Leaf,
    Member,
    find_in,
    keys_of,
    numbered_lines,
    parse_yaml,
    string_of,
)

_DEPENDENCY_SECTIONS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_YARN_VERSION = LazyPattern(r"  version:? \"?([^\"\s]+)")
_YARN_DEPENDENCY = LazyPattern(r"    \"?((?:@[^/\s\"]+/)?[^@:\s\"]+)\"?[: ]")
_PNPM_PACKAGE = LazyPattern(r"['\"]?/?((?:@[^/@\s]+/)?[^/@\s]+)[@/]([0-9][^\s'\"(_:]*)")


def read_package_json(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top()
    builder.name, builder.version = (string_of(top[key].value) if key in top else "" for key in ("name", "version"))
    for section in _DEPENDENCY_SECTIONS:
        for name, spec, line, *_ in json.inside(top.get(section)):
            builder.add_package(name, string_of(spec), line)
    for name, _, line, *_ in json.inside(top.get("scripts")):
        builder.add_script("npm", name, line)
    for section in ("engines", "volta"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            if name != "extends":
                builder.add_runtime(name, string_of(spec), line)
    manager = top.get("packageManager")
    if manager:
        name, _, spec = string_of(manager.value).partition("@")
        builder.add_runtime(name, spec.partition("+")[0], manager.line)
    programs = top.get("bin")
    if programs and isinstance(programs.value, str):
        builder.add_script("console", builder.name.rpartition("/")[2], programs.line)
    for name, _, line, *_ in json.inside(programs):
        builder.add_script("console", name, line)


def read_package_lock(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("packages")
    builder.name, builder.version = (string_of(top[key].value) if key in top else "" for key in ("name", "version"))
    packages = top.get("packages")
    if packages is None:
        _add_npm_v1(builder, json, top.get("dependencies"), 0)
        return
    direct: set[str] = set()
    for path, value in packages.value.items() if isinstance(packages.value, dict) else ():
        if "node_modules/" not in path:  # the project itself and its workspaces
            for section in _DEPENDENCY_SECTIONS:
                direct.update(keys_of(find_in(value, section)))
    for path, value, line, *_ in json.inside(packages):
        before, folder, name = path.rpartition("node_modules/")
        if folder and find_in(value, "link") is not True:
            is_direct = "node_modules/" not in before and name in direct
            version = string_of(find_in(value, "version"))
            builder.add_package(name, "", line, version=version, locked=True, direct=is_direct)


def _add_npm_v1(builder: ManifestBuilder, json: Json, section: Member | None, depth: int) -> None:
    for member in json.inside(section):
        version = string_of(find_in(member.value, "version"))
        builder.add_package(member.key, "", member.line, version=version, locked=True, direct=False)
        if depth < 3 and find_in(member.value, "dependencies"):
            for inner in json.inside(member):
                if inner.key == "dependencies":
                    _add_npm_v1(builder, json, inner, depth + 1)


def read_yarn_lock(builder: ManifestBuilder, text: str) -> None:
    """Read a yarn.lock, old or new. Only the new one lists the repository's own packages, so what is direct."""
    entries: list[tuple[str, int, str]] = []
    direct: set[str] = set()
    name, line, is_own, in_dependencies = "", 0, False, False
    for number, raw in numbered_lines(text):
        if raw[:1] not in (" ", "#", ""):
            head = raw.partition(",")[0].rstrip(":").strip('"')
            name, line = head[: head.find("@", 1)] if head.find("@", 1) > 0 else "", number
            is_own, in_dependencies = "@workspace:" in raw, False
        elif not name:
            continue
        elif raw[:3] != "   " and raw[:2] == "  ":
            match = _YARN_VERSION.match(raw)
            if match and not is_own:
                entries.append((name, line, match[1]))
            in_dependencies = is_own and "ependencies:" in raw
        elif in_dependencies:
            match = _YARN_DEPENDENCY.match(raw)
            if match:
                direct.add(match[1])
    for name, line, version in entries:
        builder.add_package(name, "", line, version=version, locked=True, direct=name in direct)


def read_pnpm_lock(builder: ManifestBuilder, text: str) -> None:
    section, in_dependencies = "", False
    direct: set[str] = set()
    found: dict[tuple[str, str], int] = {}
    for number, line in numbered_lines(text):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not bare or indent > 6:
            continue
        if indent == 0:
            section = bare.partition(":")[0]
            in_dependencies = section in _DEPENDENCY_SECTIONS
        elif section in ("packages", "snapshots"):
            match = _PNPM_PACKAGE.match(bare) if indent == 2 else None
            if match:
                found.setdefault((match[1], match[2]), number)
        elif section == "importers":
            if indent == 4:
                in_dependencies = bare.partition(":")[0] in _DEPENDENCY_SECTIONS
            elif indent == 6 and in_dependencies:
                direct.add(bare.partition(":")[0].strip("'\""))
        elif in_dependencies and indent == 2:
            direct.add(bare.partition(":")[0].strip("'\""))
    for (name, version), number in found.items():
        builder.add_package(name, "", number, version=version, locked=True, direct=name in direct)


def read_pnpm_workspace(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    for catalog in (root.table("catalog"), *(table for _, table in root.tables("catalogs"))):
        for name, node in catalog.items():
            if isinstance(node, Leaf):
                builder.add_package(name, node.text, node.line)


def read_bun_lock(builder: ManifestBuilder, text: str) -> None:
    json = Json(re.sub(r",(?=[ \t\r\n]*+[}\]])", " ", text))  # JSON with commas before the end
    top = json.top("packages")
    direct: set[str] = set()
    workspaces = top["workspaces"].value if "workspaces" in top else None
    for workspace in workspaces.values() if isinstance(workspaces, dict) else ():
        for section in _DEPENDENCY_SECTIONS:
            direct.update(keys_of(find_in(workspace, section)))
    for key, value, line, *_ in json.inside(top.get("packages")):
        name, _, version = (string_of(value[0]) if isinstance(value, list) and value else "").rpartition("@")
        if name and not version.startswith("workspace:"):
            version = version if version[:1].isdigit() else ""
            builder.add_package(name, "", line, version=version, locked=True, direct=name == key and name in direct)
