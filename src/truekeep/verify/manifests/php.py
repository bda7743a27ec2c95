"""PHP: composer.json and its lock."""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.json import Json, find_in, string_of


def read_composer(draft: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top()
    draft.name, draft.version = (string_of(top[key].value) if key in top else "" for key in ("name", "version"))
    for section in ("require", "require-dev"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            if name == "php":
                draft.needs("php", string_of(spec), line)
            elif "/" in name:
                draft.add(name, string_of(spec), line)
    for name, _, line, *_ in json.inside(top.get("scripts")):
        draft.run("composer", name, line)


def read_composer_lock(draft: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("packages", "packages-dev")
    for section in ("packages", "packages-dev"):
        for package in json.inside(top.get(section)):
            for key, value, line, *_ in json.inside(package):
                if key == "name":
                    version = string_of(find_in(package.value, "version")).removeprefix("v")
                    version = "" if version.startswith("dev-") else version
                    draft.add(string_of(value), "", line, version=version, locked=True, direct=False)
    for name, spec, line, *_ in json.inside(top.get("platform")):
        if name == "php":
            draft.needs("php", string_of(spec), line)
