"""Dart: pubspec.yaml and its lock."""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder, add_specs
from truekeep.verify.manifests.formats.table import Leaf
from truekeep.verify.manifests.formats.yaml import parse_yaml


def read_pubspec(draft: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)[0]
    draft.name, draft.version = root.leaf("name").text, root.leaf("version").text
    for key in ("sdk", "flutter"):
        draft.needs("dart" if key == "sdk" else key, *root.leaf("environment", key))
    for section in ("dependencies", "dev_dependencies", "dependency_overrides"):
        add_specs(draft, root.table(section), ())


def read_pubspec_lock(draft: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)[0]
    for name, table in root.tables("packages"):
        is_direct = table.leaf("dependency").text.startswith("direct")
        draft.add(name, "", table.line, version=table.leaf("version").text, locked=True, direct=is_direct)
    for key, node in root.table("sdks").items():
        if isinstance(node, Leaf):
            draft.needs(key, node.text, node.line)
