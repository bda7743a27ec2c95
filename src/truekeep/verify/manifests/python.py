"""Python: pyproject.toml, requirements, setuptools, Pipfile, conda, tox and nox. Locks are in `toml_lock`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from truekeep.verify.manifests.draft import ManifestBuilder, add_scripts, add_specs
from truekeep.verify.manifests.formats.ini import parse_ini
from truekeep.verify.manifests.formats.json import Json, find_in, string_of
from truekeep.verify.manifests.formats.table import NOTHING, Leaf, ValueTable
from truekeep.verify.manifests.formats.toml import parse_toml
from truekeep.verify.manifests.formats.yaml import parse_yaml
from truekeep.verify.manifests.limits import LONGEST_LINE, LONGEST_NAME
from truekeep.verify.manifests.text import Pattern, Places, matching_lines, numbered_lines

_REQUIREMENT = Pattern(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\[\]]*\])?\s*(.*)", re.DOTALL)
_EGG = Pattern(r"[#&]egg=([\w.-]+)")
_STRING = Pattern(
    r"#[^\n]*+|\"\"\"(?:[^\"\\]++|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    r"|\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[\[\](){}]",
    re.DOTALL,
)
_REQUIRES = Pattern(
    r"(?:requires?|requirements?|required|extras|deps|dependencies)(?:_\w{1,20})?['\"]?(?:\s{0,20}\[[^\[\]\n]{1,40}\])?"
    r"\s{0,20}[=:]\s{0,20}(?:list\(|set\()?(?=[\[({])",
    re.IGNORECASE,
)
_CONSOLE = Pattern(r"\[?['\"]?\b(?:console|gui)_scripts\b['\"]?\]?\s{0,20}[=:]?\s{0,20}")
_FIELD = Pattern(
    r"(?:^|[\s,({])['\"]?(name|version|python_requires)['\"]?\s{0,20}[=:]\s{0,20}(['\"])([^'\"\n]{1,200})\2"
)
_ENTRY_POINT = Pattern(r"\s*([\w.-]+)\s*=\s*[\w.]+\s*(?::|\Z)")
_BRACES = Pattern(r"\{([^{}]*)\}")
_CONDA = Pattern(r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(?:\[[^\]]*\])?\s*([<>=!~ ].*)?\Z")
_VERSION = Pattern(
    r"(?:__version__|version|VERSION|__VERSION__)\s*(?::[^=]{1,80})?=(?:\s*\w+\s*=)?\s*[uU]?(?:['\"]([^'\"]{1,80})['\"]|"
    r"\(([0-9]{1,9}(?:\s*,\s*[0-9]{1,9}){1,4}))"
)


def _parse_requirement(text: str) -> tuple[str, str] | None:
    """Name and spec of a line such as `uvicorn[standard] >=0.31,<1 ; python_version < "3.13"`."""
    match = _REQUIREMENT.match(text[:LONGEST_LINE])
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


def _add_requirements(draft: ManifestBuilder, leaves: Iterable[Leaf]) -> None:
    for text, line in leaves:
        parsed = _parse_requirement(text)
        if parsed:
            draft.add(*parsed, line)


def read_pyproject(draft: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    project, poetry = root.table("project"), root.table("tool", "poetry")
    draft.name = project.leaf("name").text or poetry.leaf("name").text
    draft.version = project.leaf("version").text or poetry.leaf("version").text
    draft.needs("python", *project.leaf("requires-python"))
    _add_requirements(draft, project.leaves("dependencies"))
    for group in project.table("optional-dependencies"):
        _add_requirements(draft, project.leaves("optional-dependencies", group))
    for group in root.table("dependency-groups"):
        _add_requirements(draft, root.leaves("dependency-groups", group))
    _add_requirements(draft, root.leaves("build-system", "requires"))
    for section in ("scripts", "gui-scripts"):
        add_scripts(draft, "console", project.table(section))
    _add_poetry(draft, poetry)
    tool = root.table("tool")
    for name in ("pdm", "rye"):
        add_scripts(draft, name, tool.table(name, "scripts"))
    for name in ("pdm", "rye", "uv"):
        _add_requirements(draft, tool.leaves(name, "dev-dependencies"))
        for group in tool.table(name, "dev-dependencies"):
            if not tool.table(name, "dev-dependencies").is_list:
                _add_requirements(draft, tool.leaves(name, "dev-dependencies", group))
    for name in ("poe", "taskipy", "pixi"):
        add_scripts(draft, name, tool.table(name, "tasks"))
    for name in ("dependencies", "pypi-dependencies"):
        add_specs(draft, tool.table("pixi", name))
    add_scripts(draft, "tox", tool.table("tox", "env"))
    for name, env in tool.tables("hatch", "envs"):
        for key in ("dependencies", "extra-dependencies"):
            _add_requirements(draft, env.leaves(key))
        add_scripts(draft, "hatch", env.table("scripts"), "" if name == "default" else f"{name}:")


def _add_poetry(draft: ManifestBuilder, poetry: ValueTable) -> None:
    for section in ("dependencies", "dev-dependencies"):
        add_specs(draft, poetry.table(section))
    for _, group in poetry.tables("group"):
        add_specs(draft, group.table("dependencies"))
    add_scripts(draft, "console", poetry.table("scripts"))
    add_scripts(draft, "poetry", poetry.table("scripts"))


def read_pipfile(draft: ManifestBuilder, text: str) -> None:
    root = parse_toml(text)
    for section in ("packages", "dev-packages"):
        add_specs(draft, root.table(section))
    for key in ("python_full_version", "python_version"):
        draft.needs("python", *root.leaf("requires", key))
    add_scripts(draft, "pipenv", root.table("scripts"))


def read_pipfile_lock(draft: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("default", "develop")
    for section in ("default", "develop"):
        for name, value, line, *_ in json.inside(top.get(section)):
            version = string_of(find_in(value, "version"))
            draft.add(name, version, line, locked=True, direct=False)
    for member in json.inside(top.get("_meta")):
        if member.key == "requires":
            for _, spec, line, *_ in json.inside(member):
                draft.needs("python", string_of(spec), line)


def read_requirements(draft: ManifestBuilder, text: str) -> None:
    """A requirements or constraints file. One that pip-compile or uv made is a lock, and says who wanted what."""
    is_locked = re.search(r"^#[^\n]{0,80}autogenerated by (?:pip-compile|uv)", text[:1_000], re.MULTILINE) is not None
    is_continued = False
    for number, raw in numbered_lines(text):
        line = raw.strip()
        was_continued, is_continued = is_continued, line.endswith("\\")
        if was_continued and (not line or line[0] == "-"):
            continue
        if not line or line[0] == "#":
            if is_locked and draft.packages and re.search(r"(?:via|#) +(?:-r|-c) |\(pyproject\.toml\)|\(setup\.", line):
                draft.packages[-1] = draft.packages[-1]._replace(is_direct=True)
            continue
        egg = _EGG.search(line)
        if egg:
            draft.add(egg[1], line.removeprefix("-e").strip()[:LONGEST_NAME], number, version="")
        elif line[0] != "-" and "://" not in line.partition("@")[0]:
            parsed = _parse_requirement(line)
            if parsed:
                is_direct = not is_locked or re.search(r"# via -r ", line) is not None
                draft.add(*parsed, number, locked=is_locked, direct=is_direct)


def read_setup_cfg(draft: ManifestBuilder, text: str) -> None:
    for section, key, values in parse_ini(text):
        first = values[0] if values else NOTHING
        if section == "metadata" and key == "name":
            draft.name = first.text
        elif section == "metadata" and key == "version" and not first.text.startswith(("attr:", "file:")):
            draft.version = first.text
        elif section == "options" and key == "python_requires":
            draft.needs("python", *first)
        elif (section == "options" and key.endswith(("_requires", "_require"))) or (
            section == "options.extras_require" and key
        ):
            _add_requirements(draft, values)
        elif section == "options.entry_points" and key in ("console_scripts", "gui_scripts"):
            for leaf in values:
                _add_entry_point(draft, leaf.text, leaf.line)
    read_tox(draft, text, "tox:tox")


def _add_entry_point(draft: ManifestBuilder, text: str, line: int) -> None:
    match = _ENTRY_POINT.match(text[:LONGEST_LINE])
    if match:
        draft.run("console", match[1], line)


def read_tox(draft: ManifestBuilder, text: str, main: str = "tox") -> None:
    for section, key, values in parse_ini(text):
        if section == main and key in ("envlist", "env_list"):
            for leaf in values:
                for name in _split_outside_braces(leaf.text):
                    for one in _expand(name):
                        draft.run("tox", one, leaf.line)
        elif section.startswith("testenv:") and not key:
            for name in _split_outside_braces(section.removeprefix("testenv:")):
                for one in _expand(name):
                    draft.run("tox", one, values[0].line)
        elif section.startswith("testenv") and key == "deps":
            for text_, line in values:
                factor, colon, rest = text_.partition(": ")
                _add_requirements(draft, [Leaf(rest if colon and re.fullmatch(r"[\w,!{}-]+", factor) else text_, line)])


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
    """tox's `py{311,312}-django{42,50}` as the names that it stands for."""
    names = [name]
    while len(names) < 100:
        match = _BRACES.search(names[0])
        if match is None:
            return names
        names = [one.replace(match[0], choice.strip(), 1) for one in names for choice in match[1].split(",")[:50]]
    return [one for one in names if "{" not in one]


def _py_strings(text: str, at: int) -> tuple[list[tuple[str, int]], int]:
    """The string literals in the bracket that opens here, without the keys of dicts; and where it closes."""
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


def read_setup_py(draft: ManifestBuilder, text: str) -> None:
    """The literals of a setup.py: its lists of requirements wherever they are called so, its console scripts."""
    places = Places(text)
    for match in _FIELD.finditer(text, max(text.find("setup("), 0)):
        if match[1] == "python_requires":
            draft.needs("python", match[3], places.line(match.start(3)))
        elif match[1] == "name":
            draft.name = draft.name or match[3]
        else:
            draft.version = draft.version or match[3]
    end = 0
    for match in _REQUIRES.finditer(text):
        if match.start() >= end and not text.startswith("python_", match.start() - 7):
            found, end = _py_strings(text, match.end())
            _add_requirements(draft, [Leaf(literal, places.line(at)) for literal, at in found])
    end = 0
    for match in _CONSOLE.finditer(text):
        if match.start() < end:
            continue
        if text[match.end() : match.end() + 1] in ("[", "("):
            found, end = _py_strings(text, match.end())
            for literal, at in found:
                _add_entry_point(draft, literal, places.line(at))
        else:  # entry points as the text of an ini file
            end = match.end() + 20_000
            first = places.line(match.end())
            for number, line in numbered_lines(text[match.end() : end]):
                if line.strip()[:1] in ("[", '"', "'", ")"):
                    break
                _add_entry_point(draft, line, first + number - 1)


def read_noxfile(draft: ManifestBuilder, text: str) -> None:
    waiting: str | None = None
    for number, line in numbered_lines(text):
        if re.match(r"@(?:nox\.)?session\b", line):
            named = re.search(r"\bname\s*=\s*['\"]([^'\"]+)", line)
            waiting = named[1] if named else ""
            if waiting:
                draft.run("nox", waiting, number)
        elif waiting is not None:
            named = re.match(r"\s+name\s*=\s*['\"]([^'\"]+)", line)
            function = re.match(r"(?:async\s+)?def\s+(\w+)", line)
            if named and not waiting:
                waiting = named[1]
                draft.run("nox", waiting, number)
            elif function:
                if not waiting:
                    draft.run("nox", function[1], number)
                waiting = None


def read_environment(draft: ManifestBuilder, text: str) -> None:
    """conda's environment.yml, with what it leaves to pip."""
    root = parse_yaml(text)[0]
    draft.name = root.leaf("name").text
    for leaf in root.leaves("dependencies"):
        match = _CONDA.match(leaf.text)
        if match:
            spec = (match[2] or "").strip()
            if spec[:1] == "=" and spec[:2] != "==":
                spec = "=" + spec[1:].partition("=")[0]  # without the build
            if match[1] == "python":
                draft.needs("python", spec, leaf.line)
            else:
                draft.add(match[1], spec, leaf.line)
    for _, item in root.tables("dependencies"):
        _add_requirements(draft, item.leaves("pip"))


def read_python_version(draft: ManifestBuilder, text: str) -> None:
    for _, match in matching_lines(_VERSION, text):
        draft.version = match[1] or re.sub(r"\s*,\s*", ".", match[2])
        return
