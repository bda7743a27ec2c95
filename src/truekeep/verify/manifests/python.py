"""Python: pyproject.toml, requirements, setuptools, Pipfile, conda, tox and nox; and every lock file in TOML."""

from __future__ import annotations

import re
from collections.abc import Iterable

from truekeep.verify.manifests.builder import ManifestBuilder, add_scripts, add_specs
from truekeep.verify.manifests.formats import (
    NO_VALUE,
    Json,
    LazyPattern,
    Leaf,
    LineCounter,
    ValueTable,
    find_in,
    matching_lines,
    numbered_lines,
    parse_ini,
    parse_yaml,
    string_of,
)
from truekeep.verify.manifests.model import MAX_LINE_LENGTH, MAX_NAME_LENGTH, normalize_name
from truekeep.verify.manifests.toml import parse_toml

_REQUIREMENT = LazyPattern(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\[\]]*\])?\s*(.*)", re.DOTALL)
_REQUIRED_BY_PROJECT = LazyPattern(r"(?:via|#) +(?:-r|-c) |\(pyproject\.toml\)|\(setup\.")
_EGG = LazyPattern(r"[#&]egg=([\w.-]+)")
_STRING = LazyPattern(
    r"#[^\n]*+|\"\"\"(?:[^\"\\]++|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    r"|\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[\[\](){}]",
    re.DOTALL,
)
_REQUIRES = LazyPattern(
    r"(?:requires?|requirements?|required|extras|deps|dependencies)(?:_\w{1,20})?['\"]?(?:\s{0,20}\[[^\[\]\n]{1,40}\])?"
    r"\s{0,20}[=:]\s{0,20}(?:list\(|set\()?(?=[\[({])",
    re.IGNORECASE,
)
_CONSOLE = LazyPattern(r"\[?['\"]?\b(?:console|gui)_scripts\b['\"]?\]?\s{0,20}[=:]?\s{0,20}")
_FIELD = LazyPattern(
    r"(?:^|[\s,({])['\"]?(name|version|python_requires)['\"]?\s{0,20}[=:]\s{0,20}(['\"])([^'\"\n]{1,200})\2"
)
_ENTRY_POINT = LazyPattern(r"\s*([\w.-]+)\s*=\s*[\w.]+\s*(?::|\Z)")
_BRACES = LazyPattern(r"\{([^{}]*)\}")
_CONDA = LazyPattern(r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(?:\[[^\]]*\])?\s*([<>=!~ ].*)?\Z")
_VERSION = LazyPattern(
    r"(?:__version__|version|VERSION|__VERSION__)\s*(?::[^=]{1,80})?=(?:\s*\w+\s*=)?\s*[uU]?(?:['\"]([^'\"]{1,80})['\"]|"
    r"\(([0-9]{1,9}(?:\s*,\s*[0-9]{1,9}){1,4}))"
)


def _parse_requirement(text: str) -> tuple[str, str] | None:
    """Return name and spec of a requirement such as `uvicorn[standard] >=0.31,<1 ; python_version < "3.13"`."""
    match = _REQUIREMENT.match(text[:MAX_LINE_LENGTH])
    if match is None:
        return None
    spec = match[2].strip()
    if spec.startswith("@"):
        return match[1], spec.partition(" ;")[0].strip()
    for stop in (";", " #", "\t#", " --", "\\"):
        spec = spec.partition(stop)[0].strip()
    if spec.startswith("#"):
        spec = ""
    spec = spec.removeprefix("(").removesuffix(")").strip()
    if spec and spec[0] not in "<>=!~":
        return None
    return match[1], spec


def _add_requirements(builder: ManifestBuilder, leaves: Iterable[Leaf]) -> None:
    for text, line in leaves:
        parsed = _parse_requirement(text)
        if parsed:
            builder.add_package(*parsed, line)


def read_pyproject(builder: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    project, poetry = root.table("project"), root.table("tool", "poetry")
    builder.name = project.leaf("name").text or poetry.leaf("name").text
    builder.version = project.leaf("version").text or poetry.leaf("version").text
    builder.add_runtime("python", *project.leaf("requires-python"))
    _add_requirements(builder, project.leaves("dependencies"))
    for group in project.table("optional-dependencies"):
        _add_requirements(builder, project.leaves("optional-dependencies", group))
    for group in root.table("dependency-groups"):
        _add_requirements(builder, root.leaves("dependency-groups", group))
    _add_requirements(builder, root.leaves("build-system", "requires"))
    for section in ("scripts", "gui-scripts"):
        add_scripts(builder, "console", project.table(section))
    _add_poetry(builder, poetry)
    tool = root.table("tool")
    for name in ("pdm", "rye"):
        add_scripts(builder, name, tool.table(name, "scripts"))
    for name in ("pdm", "rye", "uv"):
        _add_requirements(builder, tool.leaves(name, "dev-dependencies"))
        for group in tool.table(name, "dev-dependencies"):
            if not tool.table(name, "dev-dependencies").is_list:
                _add_requirements(builder, tool.leaves(name, "dev-dependencies", group))
    for name in ("poe", "taskipy", "pixi"):
        add_scripts(builder, name, tool.table(name, "tasks"))
    for name in ("dependencies", "pypi-dependencies"):
        add_specs(builder, tool.table("pixi", name))
    add_scripts(builder, "tox", tool.table("tox", "env"))
    for name, env in tool.tables("hatch", "envs"):
        for key in ("dependencies", "extra-dependencies"):
            _add_requirements(builder, env.leaves(key))
        add_scripts(builder, "hatch", env.table("scripts"), "" if name == "default" else f"{name}:")


def _add_poetry(builder: ManifestBuilder, poetry: ValueTable) -> None:
    for section in ("dependencies", "dev-dependencies"):
        add_specs(builder, poetry.table(section))
    for _, group in poetry.tables("group"):
        add_specs(builder, group.table("dependencies"))
    add_scripts(builder, "console", poetry.table("scripts"))
    add_scripts(builder, "poetry", poetry.table("scripts"))


def read_pipfile(builder: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    for section in ("packages", "dev-packages"):
        add_specs(builder, root.table(section))
    for key in ("python_full_version", "python_version"):
        builder.add_runtime("python", *root.leaf("requires", key))
    add_scripts(builder, "pipenv", root.table("scripts"))


def read_pipfile_lock(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("default", "develop")
    for section in ("default", "develop"):
        for name, value, line, *_ in json.inside(top.get(section)):
            version = string_of(find_in(value, "version"))
            builder.add_package(name, version, line, locked=True, direct=False)
    for member in json.inside(top.get("_meta")):
        if member.key == "requires":
            for _, spec, line, *_ in json.inside(member):
                builder.add_runtime("python", string_of(spec), line)


def read_requirements(builder: ManifestBuilder, text: str) -> None:
    """Read a requirements or constraints file; one from pip-compile or uv is a lock."""
    is_locked = re.search(r"^#[^\n]{0,80}autogenerated by (?:pip-compile|uv)", text[:1_000], re.MULTILINE) is not None
    is_continued = False
    for number, raw in numbered_lines(text):
        line = raw.strip()
        was_continued, is_continued = is_continued, line.endswith("\\")
        if was_continued and (not line or line[0] == "-"):
            continue
        if not line or line[0] == "#":
            if is_locked and builder.packages and _REQUIRED_BY_PROJECT.search(line):
                builder.packages[-1] = builder.packages[-1]._replace(is_direct=True)
            continue
        egg = _EGG.search(line)
        if egg:
            builder.add_package(egg[1], line.removeprefix("-e").strip()[:MAX_NAME_LENGTH], number, version="")
        elif line[0] != "-" and "://" not in line.partition("@")[0]:
            parsed = _parse_requirement(line)
            if parsed:
                is_direct = not is_locked or re.search(r"# via -r ", line) is not None
                builder.add_package(*parsed, number, locked=is_locked, direct=is_direct)


def read_setup_cfg(builder: ManifestBuilder, text: str) -> None:
    for section, key, values in parse_ini(text):
        first = values[0] if values else NO_VALUE
        if section == "metadata" and key == "name":
            builder.name = first.text
        elif section == "metadata" and key == "version" and not first.text.startswith(("attr:", "file:")):
            builder.version = first.text
        elif section == "options" and key == "python_requires":
            builder.add_runtime("python", *first)
        elif (section == "options" and key.endswith(("_requires", "_require"))) or (
            section == "options.extras_require" and key
        ):
            _add_requirements(builder, values)
        elif section == "options.entry_points" and key in ("console_scripts", "gui_scripts"):
            for leaf in values:
                _add_entry_point(builder, leaf.text, leaf.line)
    read_tox(builder, text, "tox:tox")


def _add_entry_point(builder: ManifestBuilder, text: str, line: int) -> None:
    match = _ENTRY_POINT.match(text[:MAX_LINE_LENGTH])
    if match:
        builder.add_script("console", match[1], line)


def read_tox(builder: ManifestBuilder, text: str, main: str = "tox") -> None:
    for section, key, values in parse_ini(text):
        if section == main and key in ("envlist", "env_list"):
            for leaf in values:
                for name in _split_outside_braces(leaf.text):
                    for one in _expand(name):
                        builder.add_script("tox", one, leaf.line)
        elif section.startswith("testenv:") and not key:
            for name in _split_outside_braces(section.removeprefix("testenv:")):
                for one in _expand(name):
                    builder.add_script("tox", one, values[0].line)
        elif section.startswith("testenv") and key == "deps":
            for requirement, line in values:
                factor, colon, rest = requirement.partition(": ")
                has_factor = colon and re.fullmatch(r"[\w,!{}-]+", factor)
                _add_requirements(builder, [Leaf(rest if has_factor else requirement, line)])


def _split_outside_braces(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text.partition(" #")[0]:
        depth += (char == "{") - (char == "}")
        if char in ", \t" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]


def _expand(name: str) -> list[str]:
    """Expand tox's `py{311,312}-django{42,50}` into names."""
    names = [name]
    while len(names) < 100:
        match = _BRACES.search(names[0])
        if match is None:
            return names
        names = [one.replace(match[0], choice.strip(), 1) for one in names for choice in match[1].split(",")[:50]]
    return [one for one in names if "{" not in one]


def _py_strings(text: str, at: int) -> tuple[list[tuple[str, int]], int]:
    """Return the string literals in the bracket that opens here, without the keys of dicts; and where it closes."""
    found: list[tuple[str, int]] = []
    depth = 0
    for match in _STRING.finditer(text, at):
        token = match[0]
        if token[0] in "[({":
            depth += 1
        elif token[0] in "])}":
            depth -= 1
            if depth <= 0:
                return found, match.end()
        elif token[0] != "#" and not re.match(r"\s{0,20}:", text[match.end() : match.end() + 22]):
            quotes = 3 if token[:3] in ('"""', "'''") else 1
            found.append((token[quotes:-quotes], match.start()))
    return found, len(text)


def read_setup_py(builder: ManifestBuilder, text: str) -> None:
    """Read the literals of a setup.py: lists with a name like install_requires or REQUIREMENTS, and console scripts."""
    lines = LineCounter(text)
    for match in _FIELD.finditer(text, max(text.find("setup("), 0)):
        if match[1] == "python_requires":
            builder.add_runtime("python", match[3], lines.line_at(match.start(3)))
        elif match[1] == "name":
            builder.name = builder.name or match[3]
        else:
            builder.version = builder.version or match[3]
    end = 0
    for match in _REQUIRES.finditer(text):
        if match.start() >= end and not text.startswith("python_", match.start() - 7):
            found, end = _py_strings(text, match.end())
            _add_requirements(builder, [Leaf(literal, lines.line_at(at)) for literal, at in found])
    end = 0
    for match in _CONSOLE.finditer(text):
        if match.start() < end:
            continue
        if text[match.end() : match.end() + 1] in ("[", "("):
            found, end = _py_strings(text, match.end())
            for literal, at in found:
                _add_entry_point(builder, literal, lines.line_at(at))
        else:  # entry points as the text of an ini file
            end = match.end() + 20_000
            first = lines.line_at(match.end())
            for number, line in numbered_lines(text[match.end() : end]):
                if line.strip()[:1] in ("[", '"', "'", ")"):
                    break
                _add_entry_point(builder, line, first + number - 1)


def read_noxfile(builder: ManifestBuilder, text: str) -> None:
    waiting: str | None = None
    for number, line in numbered_lines(text):
        if re.match(r"@(?:nox\.)?session\b", line):
            named = re.search(r"\bname\s*=\s*['\"]([^'\"]+)", line)
            waiting = named[1] if named else ""
            if waiting:
                builder.add_script("nox", waiting, number)
        elif waiting is not None:
            named = re.match(r"\s+name\s*=\s*['\"]([^'\"]+)", line)
            function = re.match(r"(?:async\s+)?def\s+(\w+)", line)
            if named and not waiting:
                waiting = named[1]
                builder.add_script("nox", waiting, number)
            elif function:
                if not waiting:
                    builder.add_script("nox", function[1], number)
                waiting = None


def read_environment(builder: ManifestBuilder, text: str) -> None:
    """Read conda's environment.yml, with its `pip:` list."""
    root = parse_yaml(text)
    builder.name = root.leaf("name").text
    for leaf in root.leaves("dependencies"):
        match = _CONDA.match(leaf.text)
        if match:
            spec = (match[2] or "").strip()
            if spec[:1] == "=" and spec[:2] != "==":
                spec = "=" + spec[1:].partition("=")[0]  # without the build
            if match[1] == "python":
                builder.add_runtime("python", spec, leaf.line)
            else:
                builder.add_package(match[1], spec, leaf.line)
    for _, item in root.tables("dependencies"):
        _add_requirements(builder, item.leaves("pip"))


def read_python_version(builder: ManifestBuilder, text: str) -> None:
    for _, match in matching_lines(_VERSION, text):
        builder.version = match[1] or re.sub(r"\s*,\s*", ".", match[2])
        return


# --- Lock files in TOML ----------------------------------------------------------------------------------------------

_LOCK_LINE = LazyPattern(
    r"\[|name = |version = |source = |dependencies = |\s*\{ ?name = |\s+\"|requires-python|python-ver"
)
_LOCK_VALUE = LazyPattern(r"[\w-]+ = [\"']([^\"']*)[\"']")
_LOCK_DEPENDENCY = LazyPattern(r"\{ ?name = \"([^\"]+)\"")
_LOCK_OWN_SOURCE = LazyPattern(r"\b(?:virtual|editable|directory|workspace) = ")
_CARGO_DEPENDENCY = LazyPattern(r"\"([^\" ]+)[^\"]*\"")


class _LockedPackage:
    """A package of a lock file that is being read."""

    def __init__(self, *, is_own: bool) -> None:
        self.name = self.version = ""
        self.line = 0
        self.is_own = is_own  # belongs to the repository itself
        self.dependencies: list[str] = []


def read_toml_lock(builder: ManifestBuilder, text: str) -> None:
    """Read poetry.lock, uv.lock, pdm.lock, pylock.toml or Cargo.lock line by line: they are generated, one fact a line.

    Dependencies of the repository's own packages are direct; poetry and pdm do not list those packages.
    """
    is_cargo = builder.ecosystem == "rust"
    found: list[_LockedPackage] = []
    is_package = is_head = False
    for number, match in matching_lines(_LOCK_LINE, text):
        line = match.string
        if line[0] == "[":
            is_head = line.startswith(("[[package]]", "[[packages]]"))
            is_package = is_head or (is_package and line.startswith(("[package", "[[package")))
            if is_head:
                found.append(_LockedPackage(is_own=is_cargo))
            continue
        value = _LOCK_VALUE.match(line)
        if not is_package:
            if value and line.startswith(("requires-python", "python-ver")):
                builder.add_runtime("python", value[1], number)
            continue
        package = found[-1]
        if is_head and value and line.startswith("name") and not package.name:
            package.name, package.line = value[1], number
        elif is_head and value and line.startswith("version"):
            package.version = value[1]
        elif is_head and line.startswith("source"):
            package.is_own = not is_cargo and _LOCK_OWN_SOURCE.search(line) is not None
        elif package.is_own:
            package.dependencies += _LOCK_DEPENDENCY.findall(line)
            if is_cargo:
                package.dependencies += _CARGO_DEPENDENCY.findall(line)
    own = [package for package in found if package.is_own]
    direct = {normalize_name(name, builder.ecosystem) for package in own for name in package.dependencies}
    if len(own) == 1:
        builder.name, builder.version = own[0].name, own[0].version
    for package in found:
        if not package.is_own:
            is_direct = normalize_name(package.name, builder.ecosystem) in direct
            builder.add_package(package.name, "", package.line, version=package.version, locked=True, direct=is_direct)
