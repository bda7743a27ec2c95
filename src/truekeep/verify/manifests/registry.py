"""Maps file names to readers.

A reader is written as "module:function" and imported when a file of its ecosystem is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import LazyPattern

BY_NAME: dict[str, tuple[str, str]] = {
    "pyproject.toml": ("python", "python:read_pyproject"),
    "setup.cfg": ("python", "python:read_setup_cfg"),
    "setup.py": ("python", "python:read_setup_py"),
    "Pipfile": ("python", "python:read_pipfile"),
    "Pipfile.lock": ("python", "python:read_pipfile_lock"),
    "poetry.lock": ("python", "python:read_toml_lock"),
    "uv.lock": ("python", "python:read_toml_lock"),
    "pdm.lock": ("python", "python:read_toml_lock"),
    "pylock.toml": ("python", "python:read_toml_lock"),
    "environment.yml": ("python", "python:read_environment"),
    "environment.yaml": ("python", "python:read_environment"),
    "tox.ini": ("python", "python:read_tox"),
    "noxfile.py": ("python", "python:read_noxfile"),
    "_version.py": ("python", "python:read_python_version"),
    "version.py": ("python", "python:read_python_version"),
    "__about__.py": ("python", "python:read_python_version"),
    ".python-version": ("python", "tasks:read_runtime"),
    "package.json": ("npm", "node:read_package_json"),
    "package-lock.json": ("npm", "node:read_package_lock"),
    "npm-shrinkwrap.json": ("npm", "node:read_package_lock"),
    "yarn.lock": ("npm", "node:read_yarn_lock"),
    "pnpm-lock.yaml": ("npm", "node:read_pnpm_lock"),
    "pnpm-workspace.yaml": ("npm", "node:read_pnpm_workspace"),
    "bun.lock": ("npm", "node:read_bun_lock"),
    ".nvmrc": ("npm", "tasks:read_runtime"),
    ".node-version": ("npm", "tasks:read_runtime"),
    ".tool-versions": ("runtime", "tasks:read_tool_versions"),
    "rust-toolchain": ("rust", "go_rust_swift_dart:read_rust_toolchain"),
    "rust-toolchain.toml": ("rust", "go_rust_swift_dart:read_rust_toolchain"),
    "Cargo.toml": ("rust", "go_rust_swift_dart:read_cargo"),
    "Cargo.lock": ("rust", "python:read_toml_lock"),
    "go.mod": ("go", "go_rust_swift_dart:read_go_mod"),
    "go.work": ("go", "go_rust_swift_dart:read_go_mod"),
    "go.sum": ("go", "go_rust_swift_dart:read_go_sum"),
    ".go-version": ("go", "tasks:read_runtime"),
    "Gemfile": ("ruby", "ruby_php_elixir:read_gemfile"),
    "gems.rb": ("ruby", "ruby_php_elixir:read_gemfile"),
    "Gemfile.lock": ("ruby", "ruby_php_elixir:read_gemfile_lock"),
    "gems.locked": ("ruby", "ruby_php_elixir:read_gemfile_lock"),
    ".ruby-version": ("ruby", "tasks:read_runtime"),
    "composer.json": ("php", "ruby_php_elixir:read_composer"),
    "composer.lock": ("php", "ruby_php_elixir:read_composer_lock"),
    "pom.xml": ("java", "jvm_dotnet:read_pom"),
    "build.gradle": ("java", "jvm_dotnet:read_gradle"),
    "build.gradle.kts": ("java", "jvm_dotnet:read_gradle"),
    "settings.gradle": ("java", "jvm_dotnet:read_gradle"),
    "settings.gradle.kts": ("java", "jvm_dotnet:read_gradle"),
    "gradle-wrapper.properties": ("java", "jvm_dotnet:read_gradle_wrapper"),
    ".java-version": ("java", "tasks:read_runtime"),
    "Directory.Packages.props": ("dotnet", "jvm_dotnet:read_msbuild"),
    "Directory.Build.props": ("dotnet", "jvm_dotnet:read_msbuild"),
    "packages.config": ("dotnet", "jvm_dotnet:read_msbuild"),
    "global.json": ("dotnet", "jvm_dotnet:read_global_json"),
    "mix.exs": ("elixir", "ruby_php_elixir:read_mix"),
    "mix.lock": ("elixir", "ruby_php_elixir:read_mix_lock"),
    "pubspec.yaml": ("dart", "go_rust_swift_dart:read_pubspec"),
    "pubspec.lock": ("dart", "go_rust_swift_dart:read_pubspec_lock"),
    "Package.swift": ("swift", "go_rust_swift_dart:read_package_swift"),
    "Package.resolved": ("swift", "go_rust_swift_dart:read_package_resolved"),
    "Makefile": ("make", "tasks:read_makefile"),
    "makefile": ("make", "tasks:read_makefile"),
    "GNUmakefile": ("make", "tasks:read_makefile"),
    "BSDmakefile": ("make", "tasks:read_makefile"),
    "justfile": ("just", "tasks:read_justfile"),
    "Justfile": ("just", "tasks:read_justfile"),
    ".justfile": ("just", "tasks:read_justfile"),
    "Rakefile": ("rake", "tasks:read_rakefile"),
    "rakefile": ("rake", "tasks:read_rakefile"),
    "Rakefile.rb": ("rake", "tasks:read_rakefile"),
    "Procfile": ("procfile", "tasks:read_procfile"),
    "Dockerfile": ("docker", "containers:read_dockerfile"),
    "Containerfile": ("docker", "containers:read_dockerfile"),
    "Chart.yaml": ("helm", "containers:read_chart"),
    "VERSION": ("version", "tasks:read_version"),
    "VERSION.txt": ("version", "tasks:read_version"),
    "version.txt": ("version", "tasks:read_version"),
    **{
        f"{first}askfile{dist}.{end}": ("task", "tasks:read_taskfile")
        for first in "Tt"
        for dist in ("", ".dist")
        for end in ("yml", "yaml")
    },
}
BY_EXTENSION: dict[str, tuple[str, str]] = {
    "gemspec": ("ruby", "ruby_php_elixir:read_gemspec"),
    "csproj": ("dotnet", "jvm_dotnet:read_msbuild"),
    "fsproj": ("dotnet", "jvm_dotnet:read_msbuild"),
    "vbproj": ("dotnet", "jvm_dotnet:read_msbuild"),
    "mk": ("make", "tasks:read_makefile"),
    "just": ("just", "tasks:read_justfile"),
    "rake": ("rake", "tasks:read_rakefile"),
    "dockerfile": ("docker", "containers:read_dockerfile"),
    "Dockerfile": ("docker", "containers:read_dockerfile"),
}
_KUBERNETES_PATH = LazyPattern(
    r"(?:^|/)(?:k8s|kubernetes|kube|manifests|kustomize|helm|charts?)/|(?:^|/)(?:deployment|service|statefulset|daemonset|ingress|pod)s?[^/]*\Z",
    re.IGNORECASE,
)


def find_reader(path: str) -> tuple[str, str] | None:
    """Return the ecosystem of a file and its reader, by its path alone."""
    name = path[path.rfind("/") + 1 :]
    known = BY_NAME.get(name)
    if known is not None:
        return known
    end = name[name.rfind(".") + 1 :]
    known = BY_EXTENSION.get(end)
    if known is not None:
        return known
    if end in ("txt", "in", "pip"):
        lowered = name.lower()
        folder = path[: -len(name) - 1].rpartition("/")[2]
        if "requirement" in lowered or "constraint" in lowered or folder in ("requirements", "reqs"):
            return "python", "python:read_requirements"
    elif end in ("yml", "yaml"):
        if name.startswith(("docker-compose", "compose.", "compose-", "podman-compose")):
            return "docker", "containers:read_compose"
        if name.startswith("environment-") or name.endswith("-environment." + end):
            return "python", "python:read_environment"
        if _KUBERNETES_PATH.search(path):
            return "kubernetes", "containers:read_kubernetes"
    elif end == "toml":
        if name.endswith(".versions.toml"):
            return "java", "jvm_dotnet:read_version_catalog"
        if path.endswith(".cargo/config.toml"):
            return "rust", "go_rust_swift_dart:read_cargo"
        if name.startswith("pylock."):
            return "python", "python:read_toml_lock"
    elif name.startswith(("Dockerfile.", "Containerfile.", "Dockerfile-")):
        return "docker", "containers:read_dockerfile"
    elif name.startswith("Makefile.") and end not in ("py", "md", "rst"):
        return "make", "tasks:read_makefile"
    elif name.endswith((".gradle", ".gradle.kts")):
        return "java", "jvm_dotnet:read_gradle"
    return None


@cache
def load_reader(reader: str) -> Callable[[ManifestBuilder, str], None]:
    module, _, function = reader.partition(":")
    read: Callable[[ManifestBuilder, str], None] = getattr(
        import_module(f"truekeep.verify.manifests.{module}"), function
    )
    return read
