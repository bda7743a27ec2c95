"""Go modules, Cargo, Swift packages and pub."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder, add_scripts, add_specs
from truekeep.verify.manifests.formats import (
    Json,
    LazyPattern,
    Leaf,
    LineCounter,
    find_in,
    matching_lines,
    numbered_lines,
    parse_yaml,
    string_of,
)
from truekeep.verify.manifests.tasks import read_runtime
from truekeep.verify.manifests.toml import parse_toml

# --- Go --------------------------------------------------------------------------------------------------------------

_GO_REQUIRE = LazyPattern(r"\s*(?:require\s+)?\"?([\w.~-]+(?:/[\w.~!-]+)*)\"?\s+(v[0-9][\w.+-]*)\s*(//.*)?\Z")
_GO_SUM = LazyPattern(r"(\S+) (v[^\s/]+) h1:")


def read_go_mod(builder: ManifestBuilder, text: str) -> None:
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
            builder.name = rest.strip('"')
        elif word == "go":
            builder.add_runtime("go", rest, number)
        elif word == "toolchain":
            builder.add_runtime("go", rest.removeprefix("go"), number)
        if block == "require" or (not block and word == "require"):
            match = _GO_REQUIRE.match(line)
            if match:
                is_direct = "indirect" not in (match[3] or "")
                builder.add_package(match[1], match[2], number, version=match[2][1:], direct=is_direct)


def read_go_sum(builder: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_GO_SUM, text):
        builder.add_package(match[1], match[2], number, version=match[2][1:], locked=True, direct=False)


# --- Rust ------------------------------------------------------------------------------------------------------------


def read_cargo(builder: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    package, workspace = root.table("package"), root.table("workspace")
    builder.name = package.leaf("name").text
    builder.version = package.leaf("version").text or workspace.leaf("package", "version").text
    for owner in (package, workspace.table("package")):
        builder.add_runtime("rust", *owner.leaf("rust-version"))
    for owner in (root, workspace, *(table for _, table in root.tables("target"))):
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            add_specs(builder, owner.table(section), ())
    for section in ("bin", "example"):
        for _, table in root.tables(section):
            name = table.leaf("name")
            builder.add_script("cargo", name.text, name.line)
    add_scripts(builder, "cargo", root.table("alias"))


def read_rust_toolchain(builder: ManifestBuilder, text: str) -> None:
    if "[" in text:
        builder.add_runtime("rust", *parse_toml(text).leaf("toolchain", "channel"))
    else:
        read_runtime(builder, text)


# --- Swift -----------------------------------------------------------------------------------------------------------

_SWIFT_PACKAGE = LazyPattern(
    r"\.package\(\s{0,40}(?:name:\s{0,10}\"[^\"\n]{0,100}\",\s{0,40})?(url|path|id):\s{0,10}\"([^\"\n]{1,300})\""
)
_SWIFT_SPEC = LazyPattern(
    r"\s{0,40},\s{0,40}(?:(from|exact|branch|revision):\s{0,10}\"([^\"\n]{1,80})\""
    r"|\.(exact|branch|revision)\(\s{0,10}\"([^\"\n]{1,80})\"|\.upToNext(Major|Minor)\(from:\s{0,10}\"([^\"\n]{1,80})\""
    r"|\"([^\"\n]{1,80})\"\s{0,10}(\.\.[.<])\s{0,10}\"([^\"\n]{1,80})\")"
)


def read_package_swift(builder: ManifestBuilder, text: str) -> None:
    lines = LineCounter(text)
    tools = re.match(r"//\s*swift-tools-version:\s*([0-9.]+)", text)
    if tools:
        builder.add_runtime("swift", tools[1], 1)
    own = re.search(r"\bPackage\(\s{0,40}name:\s{0,10}\"([^\"\n]{1,100})\"", text)
    builder.name = own[1] if own else ""
    for match in _SWIFT_PACKAGE.finditer(text):
        name = match[2].rstrip("/").removesuffix(".git").rpartition("/")[2]
        spec, pin = ("" if match[1] != "path" else f"path:{match[2]}"), ""
        found = _SWIFT_SPEC.match(text, match.end())
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
        builder.add_package(name, spec, lines.line_at(match.start(2)), version=pin)


def read_package_resolved(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("pins")
    pins = top.get("pins") or next((item for item in json.inside(top.get("object")) if item.key == "pins"), None)
    for pin in json.inside(pins):
        version = string_of(find_in(find_in(pin.value, "state"), "version"))
        for key, value, line, *_ in json.inside(pin):
            if key in ("identity", "package"):
                builder.add_package(string_of(value), "", line, version=version, locked=True, direct=False)


# --- Dart ------------------------------------------------------------------------------------------------------------


def read_pubspec(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    builder.name, builder.version = root.leaf("name").text, root.leaf("version").text
    for key in ("sdk", "flutter"):
        builder.add_runtime("dart" if key == "sdk" else key, *root.leaf("environment", key))
    for section in ("dependencies", "dev_dependencies", "dependency_overrides"):
        add_specs(builder, root.table(section), ())


def read_pubspec_lock(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    for name, table in root.tables("packages"):
        is_direct = table.leaf("dependency").text.startswith("direct")
        builder.add_package(name, "", table.line, version=table.leaf("version").text, locked=True, direct=is_direct)
    for key, node in root.table("sdks").items():
        if isinstance(node, Leaf):
            builder.add_runtime(key, node.text, node.line)
