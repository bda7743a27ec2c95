""".NET: projects of MSBuild, NuGet and global.json."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.json import Json, string_of
from truekeep.verify.manifests.formats.xml import attributes_of, iter_tags
from truekeep.verify.manifests.versions import pinned


def read_msbuild(draft: ManifestBuilder, text: str) -> None:
    properties: dict[str, str] = {}
    wanted: list[tuple[str, str, int]] = []
    for what, path, attributes, inner, line in iter_tags(text):
        if what == "close":
            continue
        name = path[-1]
        if name in ("PackageReference", "PackageVersion", "GlobalPackageReference", "package"):
            fields = attributes_of(attributes)
            package = fields.get("Include") or fields.get("Update") or fields.get("id") or ""
            wanted.append((package, fields.get("Version") or fields.get("version") or "", line))
        elif len(path) > 1 and path[-2].startswith("Package") and name == "Version" and wanted:
            wanted[-1] = (wanted[-1][0], inner, wanted[-1][2])
        elif len(path) > 1 and path[-2] == "PropertyGroup" and len(properties) < 10_000:
            properties[name] = inner
            if name in ("TargetFramework", "TargetFrameworks"):
                for target in inner.split(";"):
                    match = re.match(r"net(?:coreapp|standard)?([0-9]+\.[0-9]+)", target.strip())
                    if match:
                        draft.needs("dotnet", match[1], line)
    draft.name = properties.get("PackageId") or properties.get("AssemblyName") or ""
    draft.version = properties.get("Version") or properties.get("VersionPrefix") or ""
    for package, spec, line in wanted:
        plain = re.sub(r"\$\((\w{1,80})\)", lambda match: properties.get(match[1], match[0]), spec)
        draft.add(package, spec, line, version=pinned(plain, "dotnet"))


def read_global_json(draft: ManifestBuilder, text: str) -> None:
    json = Json(text)
    for key, value, line, *_ in json.inside(json.top().get("sdk")):
        if key == "version":
            draft.needs("dotnet", string_of(value), line)
