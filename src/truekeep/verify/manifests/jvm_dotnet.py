"""Java, Kotlin and .NET: Maven, Gradle, MSBuild, NuGet and global.json."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import (
    NO_VALUE,
    Json,
    LazyPattern,
    Leaf,
    ValueTable,
    attributes_of,
    iter_tags,
    matching_lines,
    numbered_lines,
    string_of,
)
from truekeep.verify.manifests.model import MAX_DEPTH, MAX_NAME_LENGTH
from truekeep.verify.manifests.toml import parse_toml
from truekeep.verify.manifests.versions import find_pin

# --- Maven and Gradle ------------------------------------------------------------------------------------------------

_MAVEN_PROPERTY = LazyPattern(r"\$\{([\w.-]{1,100})\}")
_JAVA_PROPERTIES = ("java.version", "maven.compiler.release", "maven.compiler.source", "maven.compiler.target")
_GRADLE_VALUE = LazyPattern(
    r"\s*(?:(?:def|val|var|final|const|private|String)\s+){0,3}(?:(?:ext|extra|project|rootProject)\.)?"
    r"(?:set\(\s*)?(?:ext\[|extra\[)?['\"]?([A-Za-z_][\w.]{0,80})['\"]?\]?\s*(?:=|,|\sby\s+extra\()\s*['\"]([^'\"]{1,200})['\"]"
)
_GRADLE_DEPENDENCY = LazyPattern(
    r"\s*['\"]?[A-Za-z]\w{1,60}['\"]?[\s(][^'\"]{0,120}['\"]([\w.-]{1,120}):([\w.-]{1,120})(?::([^'\":@]{1,120}))?(?:[:@][^'\"]{0,60})?['\"]"
)
_GRADLE_MAP = LazyPattern(
    r".{0,200}?\bgroup\s*[:=]\s*['\"]([^'\"]{1,120})['\"]\s*,\s*(?:name|module)\s*[:=]\s*['\"]([^'\"]{1,120})['\"]"
    r"(?:\s*,\s*version\s*[:=]\s*['\"]([^'\"]{1,120})['\"])?"
)
_GRADLE_PLUGIN = LazyPattern(
    r"\s*(id|kotlin)[\s(]\s*['\"]([\w.-]{1,120})['\"]\s*\)?(?:\s*\.?version[\s(]\s*['\"]?([^'\"\s)]{1,120}))?"
)
_GRADLE_TASK = LazyPattern(
    r"\s*(?:(?:val|def)\s+(\w+)\s+by\s+tasks\.(?:registering|creating)|(?:val\s+\w+\s*=\s*)?tasks\.(?:register|create)\s*"
    r"(?:<[^<>]{0,80}>)?\s*\(\s*['\"]([^'\"]{1,80})|task[\s(]\s*['\"]?([A-Za-z_][\w-]*))"
)
_GRADLE_JAVA = LazyPattern(
    r"(?:JavaLanguageVersion\.of\(|jvmToolchain\(|(?:source|target)Compatibility\s*=?\s*(?:JavaVersion\.VERSION_)?['\"]?|"
    r"jvmTarget\s*=\s*['\"])(1[._])?([0-9]{1,2})\b"
)
_GRADLE_WRAPPER = LazyPattern(r"distributionUrl=.{0,200}/gradle-([0-9][\w.]*)-")


def read_pom(builder: ManifestBuilder, text: str) -> None:
    properties: dict[str, str] = {}
    dependencies: list[tuple[dict[str, str], int]] = []
    open_items: list[tuple[int, dict[str, str], list[int]]] = []  # (depth, fields, line of the artifact)
    parent: dict[str, str] = {}
    for kind, path, _, inner, line in iter_tags(text):
        if kind == "close":
            if open_items and len(path) == open_items[-1][0]:
                _, fields, lines = open_items.pop()
                dependencies.append((fields, lines[-1]))
            continue
        name, depth = path[-1], len(path)
        if kind == "open" and name in ("dependency", "plugin", "parent", "extension") and len(open_items) < MAX_DEPTH:
            open_items.append((depth, {"kind": name}, [line]))
        elif open_items and depth == open_items[-1][0] + 1 and name in ("groupId", "artifactId", "version"):
            open_items[-1][1][name] = inner
            if name == "artifactId":
                open_items[-1][2].append(line)
            if open_items[-1][1]["kind"] == "parent":
                parent[name] = inner
        elif depth == 3 and path[1] == "properties" and len(properties) < 10_000:
            properties[name] = inner
            if name in _JAVA_PROPERTIES and "$" not in inner:
                builder.add_runtime("java", inner, line)
        elif depth == 2 and name == "artifactId":
            builder.name = inner
        elif depth == 2 and name == "groupId":
            properties["project.groupId"] = inner
        elif depth == 2 and name == "version":
            builder.version = inner
        elif depth > 3 and name in ("release", "source", "target") and re.fullmatch(r"[0-9.]{1,6}", inner):
            builder.add_runtime("java", inner, line)
    builder.version = builder.version or parent.get("version", "")
    properties.setdefault("project.version", builder.version)
    properties.setdefault("project.artifactId", builder.name)
    properties.setdefault("project.groupId", parent.get("groupId", ""))
    builder.version = _fill_properties(builder.version, properties)
    for fields, line in dependencies:
        artifact = _fill_properties(fields.get("artifactId", ""), properties)
        group = fields.get("groupId") or ("org.apache.maven.plugins" if fields["kind"] == "plugin" else "")
        if artifact:
            group = _fill_properties(group, properties)
            spec = fields.get("version", "")
            pin = find_pin(_fill_properties(spec, properties), "java")
            builder.add_package(f"{group}:{artifact}" if group else artifact, spec, line, version=pin)


def _fill_properties(text: str, properties: dict[str, str]) -> str:
    """Fill in `${properties}`; unknown ones stay as they are."""
    for _ in range(3):
        if "$" not in text or len(text) > MAX_NAME_LENGTH:
            break
        text = _MAVEN_PROPERTY.sub(lambda match: properties.get(match[1], match[0])[:MAX_NAME_LENGTH], text)
    return text


def read_gradle(builder: ManifestBuilder, text: str) -> None:
    values: dict[str, str] = {}
    dependencies: list[tuple[str, str, int]] = []
    for number, line in numbered_lines(text):
        bare = line.lstrip()
        if bare.startswith(("//", "*", "/*")):
            continue
        value = _GRADLE_VALUE.match(line)
        if value:
            values.setdefault(value[1], value[2])
            if value[1] == "rootProject.name" or (value[1] == "name" and "rootProject" in line):
                builder.name = value[2]
        own = re.match(r"version\s*=?\s*['\"]([^'\"$]+)['\"]", line)
        if own:
            builder.version = own[1]
        java = _GRADLE_JAVA.search(line)
        if java:
            builder.add_runtime("java", java[2], number)
        plugin = _GRADLE_PLUGIN.match(line)
        if plugin:
            name = "kotlin" if plugin[1] == "kotlin" else plugin[2]
            dependencies.append((name, plugin[3] or "", number))
            continue
        found = _GRADLE_DEPENDENCY.match(line) or (_GRADLE_MAP.match(line) if "group" in line else None)
        if found:
            dependencies.append((f"{found[1]}:{found[2]}", found[3] or "", number))
            continue
        task = _GRADLE_TASK.match(line)
        if task:
            builder.add_script("gradle", task[1] or task[2] or task[3], number)
    for name, spec, number in dependencies:
        plain = re.sub(r"\$\{?([\w.]{1,80})\}?", lambda match: values.get(match[1], match[0]), spec)
        builder.add_package(name, spec, number, version=find_pin(plain, "java"))


def read_version_catalog(builder: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    for section in ("libraries", "plugins"):
        for node in root.table(section).values():
            if isinstance(node, Leaf):
                head, _, spec = node.text.rpartition(":")
                builder.add_package(head or spec, spec if head else "", node.line)
                continue
            name = node.leaf("module").text or node.leaf("id").text
            name = name or f"{node.leaf('group').text}:{node.leaf('name').text}"
            version: Leaf | ValueTable | None = node.get("version")
            if isinstance(version, ValueTable) and "ref" in version:
                version = root.table("versions").get(version.leaf("ref").text)
            if isinstance(version, ValueTable):
                keys = ("strictly", "require", "prefer")
                version = next((leaf for key in keys if (leaf := version.leaf(key)).text), NO_VALUE)
            builder.add_package(name, version.text if version is not None else "", node.line)


def read_gradle_wrapper(builder: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_GRADLE_WRAPPER, text):
        builder.add_runtime("gradle", match[1], number)


# --- .NET ------------------------------------------------------------------------------------------------------------


def read_msbuild(builder: ManifestBuilder, text: str) -> None:
    properties: dict[str, str] = {}
    dependencies: list[tuple[str, str, int]] = []
    for kind, path, attributes, inner, line in iter_tags(text):
        if kind == "close":
            continue
        name = path[-1]
        if name in ("PackageReference", "PackageVersion", "GlobalPackageReference", "package"):
            fields = attributes_of(attributes)
            package = fields.get("Include") or fields.get("Update") or fields.get("id") or ""
            dependencies.append((package, fields.get("Version") or fields.get("version") or "", line))
        elif len(path) > 1 and path[-2].startswith("Package") and name == "Version" and dependencies:
            dependencies[-1] = (dependencies[-1][0], inner, dependencies[-1][2])
        elif len(path) > 1 and path[-2] == "PropertyGroup" and len(properties) < 10_000:
            properties[name] = inner
            if name in ("TargetFramework", "TargetFrameworks"):
                for target in inner.split(";"):
                    match = re.match(r"net(?:coreapp|standard)?([0-9]+\.[0-9]+)", target.strip())
                    if match:
                        builder.add_runtime("dotnet", match[1], line)
    builder.name = properties.get("PackageId") or properties.get("AssemblyName") or ""
    builder.version = properties.get("Version") or properties.get("VersionPrefix") or ""
    for package, spec, line in dependencies:
        plain = re.sub(r"\$\((\w{1,80})\)", lambda match: properties.get(match[1], match[0]), spec)
        builder.add_package(package, spec, line, version=find_pin(plain, "dotnet"))


def read_global_json(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    for key, value, line, *_ in json.inside(json.top().get("sdk")):
        if key == "version":
            builder.add_runtime("dotnet", string_of(value), line)
