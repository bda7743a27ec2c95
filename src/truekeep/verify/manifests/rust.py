"""Rust: Cargo.toml and the toolchain. Cargo.lock is in `toml_lock`."""

from __future__ import annotations

from truekeep.verify.manifests.draft import ManifestBuilder, add_scripts, add_specs
from truekeep.verify.manifests.formats.toml import parse_toml
from truekeep.verify.manifests.runtimes import read_runtime


def read_cargo(draft: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    package, workspace = root.table("package"), root.table("workspace")
    draft.name = package.leaf("name").text
    draft.version = package.leaf("version").text or workspace.leaf("package", "version").text
    for owner in (package, workspace.table("package")):
        draft.needs("rust", *owner.leaf("rust-version"))
    for owner in (root, workspace, *(table for _, table in root.tables("target"))):
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            add_specs(draft, owner.table(section), ())
    for section in ("bin", "example"):
        for _, table in root.tables(section):
            name = table.leaf("name")
            draft.run("cargo", name.text, name.line)
    add_scripts(draft, "cargo", root.table("alias"))


def read_rust_toolchain(draft: ManifestBuilder, text: str) -> None:
    if "[" in text:
        draft.needs("rust", *parse_toml(text).leaf("toolchain", "channel"))
    else:
        read_runtime(draft, text)
