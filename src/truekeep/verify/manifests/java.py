"""Java and its relatives: Maven and Gradle."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.table import NOTHING, Leaf, ValueTable
from truekeep.verify.manifests.formats.toml import parse_toml
from truekeep.verify.manifests.formats.xml import iter_tags
from truekeep.verify.manifests.limits import DEEPEST, LONGEST_NAME
from truekeep.verify.manifests.text import Pattern, matching_lines, numbered_lines
from truekeep.verify.manifests.versions import pinned

_MAVEN_PROPERTY = Pattern(r"\$\{([\w.-]{1,100})\}")
_JAVA_PROPERTIES = ("java.version", "maven.compiler.release", "maven.compiler.source", "maven.compiler.target")
_GRADLE_VALUE = Pattern(
    r"\s*(?:(?:def|val|var|final|const|private|String)\s+){0,3}(?:(?:ext|extra|project|rootProject)\.)?"
    r"(?:set\(\s*)?(?:ext\[|extra\[)?['\"]?([A-Za-z_][\w.]{0,80})['\"]?\]?\s*(?:=|,|\sby\s+extra\()\s*['\"]([^'\"]{1,200})['\"]"
)
_GRADLE_DEPENDENCY = Pattern(
    r"\s*['\"]?[A-Za-z]\w{1,60}['\"]?[\s(][^'\"]{0,120}['\"]([\w.-]{1,120}):([\w.-]{1,120})(?::([^'\":@]{1,120}))?(?:[:@][^'\"]{0,60})?['\"]"
)
_GRADLE_MAP = Pattern(
    r".{0,200}?\bgroup\s*[:=]\s*['\"]([^'\"]{1,120})['\"]\s*,\s*(?:name|module)\s*[:=]\s*['\"]([^'\"]{1,120})['\"]"
    r"(?:\s*,\s*version\s*[:=]\s*['\"]([^'\"]{1,120})['\"])?"
)
_GRADLE_PLUGIN = Pattern(
    r"\s*(id|kotlin)[\s(]\s*['\"]([\w.-]{1,120})['\"]\s*\)?(?:\s*\.?version[\s(]\s*['\"]?([^'\"\s)]{1,120}))?"
)
_GRADLE_TASK = Pattern(
    r"\s*(?:(?:val|def)\s+(\w+)\s+by\s+tasks\.(?:registering|creating)|(?:val\s+\w+\s*=\s*)?tasks\.(?:register|create)\s*"
    r"(?:<[^<>]{0,80}>)?\s*\(\s*['\"]([^'\"]{1,80})|task[\s(]\s*['\"]?([A-Za-z_][\w-]*))"
)
_GRADLE_JAVA = Pattern(
    r"(?:JavaLanguageVersion\.of\(|jvmToolchain\(|(?:source|target)Compatibility\s*=?\s*(?:JavaVersion\.VERSION_)?['\"]?|"
    r"jvmTarget\s*=\s*['\"])(1[._])?([0-9]{1,2})\b"
)
_GRADLE_WRAPPER = Pattern(r"distributionUrl=.{0,200}/gradle-([0-9][\w.]*)-")


def read_pom(draft: ManifestBuilder, text: str) -> None:
    properties: dict[str, str] = {}
    wanted: list[tuple[dict[str, str], int]] = []
    open_items: list[tuple[int, dict[str, str], list[int]]] = []  # (depth, fields, line of the artifact)
    parent: dict[str, str] = {}
    for what, path, _, inner, line in iter_tags(text):
        if what == "close":
            if open_items and len(path) == open_items[-1][0]:
                _, fields, lines = open_items.pop()
                wanted.append((fields, lines[-1]))
            continue
        name, depth = path[-1], len(path)
        if what == "open" and name in ("dependency", "plugin", "parent", "extension") and len(open_items) < DEEPEST:
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
                draft.needs("java", inner, line)
        elif depth == 2 and name == "artifactId":
            draft.name = inner
        elif depth == 2 and name == "groupId":
            properties["project.groupId"] = inner
        elif depth == 2 and name == "version":
            draft.version = inner
        elif depth > 3 and name in ("release", "source", "target") and re.fullmatch(r"[0-9.]{1,6}", inner):
            draft.needs("java", inner, line)
    draft.version = draft.version or parent.get("version", "")
    properties.setdefault("project.version", draft.version)
    properties.setdefault("project.artifactId", draft.name)
    properties.setdefault("project.groupId", parent.get("groupId", ""))
    draft.version = _filled(draft.version, properties)
    for fields, line in wanted:
        artifact = _filled(fields.get("artifactId", ""), properties)
        group = fields.get("groupId") or ("org.apache.maven.plugins" if fields["kind"] == "plugin" else "")
        if artifact:
            group = _filled(group, properties)
            spec = fields.get("version", "")
            pin = pinned(_filled(spec, properties), "java")
            draft.add(f"{group}:{artifact}" if group else artifact, spec, line, version=pin)


def _filled(text: str, properties: dict[str, str]) -> str:
    """A text with its `${properties}` filled in; what is not known stays as it is."""
    for _ in range(3):
        if "$" not in text or len(text) > LONGEST_NAME:
            break
        text = _MAVEN_PROPERTY.sub(lambda match: properties.get(match[1], match[0])[:LONGEST_NAME], text)
    return text


def read_gradle(draft: ManifestBuilder, text: str) -> None:
    values: dict[str, str] = {}
    wanted: list[tuple[str, str, int]] = []
    for number, line in numbered_lines(text):
        bare = line.lstrip()
        if bare.startswith(("//", "*", "/*")):
            continue
        value = _GRADLE_VALUE.match(line)
        if value:
            values.setdefault(value[1], value[2])
            if value[1] == "rootProject.name" or (value[1] == "name" and "rootProject" in line):
                draft.name = value[2]
        own = re.match(r"version\s*=?\s*['\"]([^'\"$]+)['\"]", line)
        if own:
            draft.version = own[1]
        java = _GRADLE_JAVA.search(line)
        if java:
            draft.needs("java", java[2], number)
        plugin = _GRADLE_PLUGIN.match(line)
        if plugin:
            name = "kotlin" if plugin[1] == "kotlin" else plugin[2]
            wanted.append((name, plugin[3] or "", number))
            continue
        found = _GRADLE_DEPENDENCY.match(line) or (_GRADLE_MAP.match(line) if "group" in line else None)
        if found:
            wanted.append((f"{found[1]}:{found[2]}", found[3] or "", number))
            continue
        task = _GRADLE_TASK.match(line)
        if task:
            draft.run("gradle", task[1] or task[2] or task[3], number)
    for name, spec, number in wanted:
        plain = re.sub(r"\$\{?([\w.]{1,80})\}?", lambda match: values.get(match[1], match[0]), spec)
        draft.add(name, spec, number, version=pinned(plain, "java"))


def read_version_catalog(draft: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    for section in ("libraries", "plugins"):
        for node in root.table(section).values():
            if isinstance(node, Leaf):
                head, _, spec = node.text.rpartition(":")
                draft.add(head or spec, spec if head else "", node.line)
                continue
            name = node.leaf("module").text or node.leaf("id").text
            name = name or f"{node.leaf('group').text}:{node.leaf('name').text}"
            version: Leaf | ValueTable | None = node.get("version")
            if isinstance(version, ValueTable) and "ref" in version:
                version = root.table("versions").get(version.leaf("ref").text)
            if isinstance(version, ValueTable):
                keys = ("strictly", "require", "prefer")
                version = next((leaf for key in keys if (leaf := version.leaf(key)).text), NOTHING)
            draft.add(name, version.text if version is not None else "", node.line)


def read_gradle_wrapper(draft: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_GRADLE_WRAPPER, text):
        draft.needs("gradle", match[1], number)
