"""Flags, environment variables, scripts and packages, where a file defines them in a way that leaves no doubt."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

NAME = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
FLAGS = [
    re.compile(rf"""(?:add_argument|\boption|\bOption|\.on|names\s*=)\s*\(?\s*\{{?[^\n)]{{0,80}}?["'`](--{NAME})\b"""),
    re.compile(rf"""strcasecmp\([^\n]*"(--{NAME})"|strcmp\([^\n]*"(--{NAME})\""""),
    re.compile(rf"""new InputOption\(\s*'({NAME})'"""),
    re.compile(
        rf"""\b(?:String|Bool|Int|StringSlice|Duration|Count|StringArray)(?:Var)?P?\((?:&?[\w.]+,\s*)?"({NAME})","""
    ),
    re.compile(rf"""#\[(?:arg|clap)\([^\]]*\blong\s*=\s*"({NAME})\""""),
    re.compile(rf"""fn name_long\(&self\)[^{{]*\{{\s*"({NAME})\""""),
]
DERIVED = re.compile(
    r"#\[(?:arg|clap)\((?:[^\]]*[(,\s])?long(?=[,)])[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(\w+)\s*:"
)
VARIABLE = r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"
ENVIRONMENT = [
    re.compile(
        rf"""(?:environ(?:\.get|\.pop|\.setdefault)?|getenv|Getenv|LookupEnv|getEnv)\s*[\[(]\s*["']{VARIABLE}["']"""
    ),
    re.compile(rf"""env::var(?:_os)?\(\s*"{VARIABLE}\""""),
    re.compile(rf"""process\.env\.{VARIABLE}\b|process\.env\[["']{VARIABLE}["']\]"""),
    re.compile(rf"""\bENV(?:\.fetch\(|\[)\s*["']{VARIABLE}["']"""),
]
TARGET = re.compile(r"^([a-z][\w-]{2,})\s*:(?!=)", re.MULTILINE)
MODULE = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[a-z]+/[\w./-]+)\s+v\d\S*(?!.*// indirect)\s*$", re.MULTILINE)
GEM = re.compile(r"""^\s*(?:gem|\w+\.add_(?:runtime_|development_)?dependency)[ (]+["']([\w-]+)["']""", re.MULTILINE)
REQUIREMENT = re.compile(r"[A-Za-z][\w.-]*")


def read_flags(text: str) -> Iterator[str]:
    for pattern in FLAGS:
        for match in pattern.finditer(text):
            name = next(group for group in match.groups() if group).lstrip("-")
            yield from spell(name)
    for match in DERIVED.finditer(text):
        yield from spell(match[1].replace("_", "-"))


def spell(name: str) -> Iterator[str]:
    if len(name) >= 5:
        yield f"--{name}"


def read_environment(text: str) -> Iterator[str]:
    for pattern in ENVIRONMENT:
        for match in pattern.finditer(text):
            yield next(group for group in match.groups() if group)


def read_scripts(path: str, read: Callable[[], str]) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if name in ("Makefile", "GNUmakefile"):
        yield from (f"make {target}" for target in TARGET.findall(read()))
    elif name == "package.json":
        yield from (f"npm run {script}" for script in table(parse_json(read()), "scripts"))
    elif name == "composer.json":
        yield from (f"composer run {script}" for script in table(parse_json(read()), "scripts"))


def read_packages(path: str, read: Callable[[], str]) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if name == "package.json":
        content = parse_json(read())
        for section in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
            yield from table(content, section)
    elif name == "composer.json":
        for section in ("require", "require-dev"):
            yield from (one for one in table(parse_json(read()), section) if "/" in one)
    elif name == "Cargo.toml":
        yield from cargo(parse_toml(read()))
    elif name == "pyproject.toml":
        yield from python(parse_toml(read()))
    elif name == "go.mod":
        yield from MODULE.findall(read())
    elif name == "Gemfile" or name.endswith(".gemspec"):
        yield from GEM.findall(read())


def cargo(content: dict[str, Any]) -> Iterator[str]:
    for section in ("dependencies", "dev-dependencies", "build-dependencies"):
        for holder in (content, table(content, "workspace")):
            for name, wanted in table(holder, section).items():
                if not (isinstance(wanted, dict) and ("path" in wanted or "package" in wanted)):
                    yield name


def python(content: dict[str, Any]) -> Iterator[str]:
    project = table(content, "project")
    groups = [project.get("dependencies"), *table(project, "optional-dependencies").values()]
    groups += [*table(content, "dependency-groups").values(), table(content, "build-system").get("requires")]
    for group in groups:
        for wanted in group if isinstance(group, list) else ():
            if isinstance(wanted, str) and (match := REQUIREMENT.match(wanted)):
                yield match[0]


def table(content: Any, name: str) -> dict[str, Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
