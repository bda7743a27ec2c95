"""Ruby, PHP and Elixir: Bundler, gemspecs, Composer and Mix. Rake tasks are in `tasks`."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import Json, LazyPattern, find_in, matching_lines, numbered_lines, string_of

# --- Ruby ------------------------------------------------------------------------------------------------------------

_GEM = LazyPattern(r"\s*gem[\s(]\s*(['\"])([^'\"]+)\1(.*)")
_GEM_DEPENDENCY = LazyPattern(r"\s*\w+\.add_(?:\w+_)?dependency[\s(]\s*(?:['\"]|%q[<({\[])([\w.-]+)['\">)}\]](.*)")
_GEM_SPECS = LazyPattern(r"\s*,\s*\[?\s*(?:['\"]|%q[<({\[])\s*([~<>=!]*\s*v?[0-9][\w.-]*)\s*['\">)}\]]\s*\]?")
_GEM_FIELD = LazyPattern(r"\s*\w+\.(name|version|required_ruby_version)\s*=\s*\[?\s*(?:Gem::Requirement\.new\(?)?(.*)")
_RUBY_STRING = LazyPattern(r"['\"]([^'\"]*)['\"]")
_GEM_LOCKED = LazyPattern(r"    ([\w.-]+) \(([^()\s]+)\)\Z")
_GEM_WANTED = LazyPattern(r"  ([\w.-]+)!?(?: \(|!?\Z)")


def _add_gem(builder: ManifestBuilder, name: str, rest: str, line: int) -> None:
    specs = []
    position = 0
    while match := _GEM_SPECS.match(rest, position):
        specs.append(match[1].strip())
        position = match.end()
    builder.add_package(name, ", ".join(specs), line)


def read_gemfile(builder: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        gem = _GEM.match(line)
        if gem:
            _add_gem(builder, gem[2], gem[3], number)
            continue
        ruby = re.match(r"\s*ruby[\s(]\s*(['\"][^#]*)", line)
        if ruby:
            specs = (text for text in _RUBY_STRING.findall(ruby[1]) if re.match(r"[~<>=! ]*[0-9]", text))
            builder.add_runtime("ruby", ", ".join(specs), number)


def read_gemspec(builder: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        gem = _GEM_DEPENDENCY.match(line)
        if gem:
            _add_gem(builder, gem[1], gem[2], number)
            continue
        new = re.match(r"\s*Gem::Specification\.new[\s(]\s*['\"]([\w.-]+)['\"]", line)
        if new:
            builder.name = new[1]
        field = _GEM_FIELD.match(line)
        strings = _RUBY_STRING.findall(field[2]) if field else []
        if field and strings:
            if field[1] == "name":
                builder.name = strings[0]
            elif field[1] == "version":
                builder.version = strings[0] if strings[0][:1].isdigit() else ""
            else:
                builder.add_runtime("ruby", ", ".join(strings), number)
        programs = re.match(r"\s*\w+\.executables\s*(?:=|<<)\s*(?:%w[\[({<]([^\])}>]*)|(.*))", line)
        if programs:
            for name in (programs[1] or "").split() or _RUBY_STRING.findall(programs[2] or ""):
                builder.add_script("console", name, number)


def read_gemfile_lock(builder: ManifestBuilder, text: str) -> None:
    section = ""
    direct: set[str] = set()
    found: dict[tuple[str, str], tuple[int, bool]] = {}
    for number, line in numbered_lines(text):
        if line[:1] not in (" ", ""):
            section = line
        elif section in ("GEM", "GIT", "PATH"):
            match = _GEM_LOCKED.match(line)
            if match:
                version = re.split(r"-(?=[a-z])", match[2], maxsplit=1)[0]  # without the platform
                found.setdefault((match[1], version), (number, section == "PATH"))
        elif section == "DEPENDENCIES":
            match = _GEM_WANTED.match(line)
            if match:
                direct.add(match[1])
        elif section == "RUBY VERSION":
            ruby = re.match(r"\s+ruby ([0-9.]+)", line)
            if ruby:
                builder.add_runtime("ruby", ruby[1], number)
        elif section == "BUNDLED WITH" and line.strip():
            builder.add_runtime("bundler", line.strip(), number)
    for (name, version), (number, is_own) in found.items():
        if is_own and not builder.name:
            builder.name, builder.version = name, version
        else:
            builder.add_package(name, "", number, version=version, locked=True, direct=name in direct)


# --- PHP -------------------------------------------------------------------------------------------------------------


def read_composer(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top()
    builder.name, builder.version = (string_of(top[key].value) if key in top else "" for key in ("name", "version"))
    for section in ("require", "require-dev"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            if name == "php":
                builder.add_runtime("php", string_of(spec), line)
            elif "/" in name:
                builder.add_package(name, string_of(spec), line)
    for name, _, line, *_ in json.inside(top.get("scripts")):
        builder.add_script("composer", name, line)


def read_composer_lock(builder: ManifestBuilder, text: str) -> None:
    json = Json(text)
    top = json.top("packages", "packages-dev")
    for section in ("packages", "packages-dev"):
        for package in json.inside(top.get(section)):
            for key, value, line, *_ in json.inside(package):
                if key == "name":
                    version = string_of(find_in(package.value, "version")).removeprefix("v")
                    version = "" if version.startswith("dev-") else version
                    builder.add_package(string_of(value), "", line, version=version, locked=True, direct=False)
    for name, spec, line, *_ in json.inside(top.get("platform")):
        if name == "php":
            builder.add_runtime("php", string_of(spec), line)


# --- Elixir ----------------------------------------------------------------------------------------------------------

_MIX_DEPENDENCY = LazyPattern(r"\{\s*:(\w+)\s*,\s*(?:\"([^\"]*)\")?")
_MIX_LOCK = LazyPattern(r"\s*\"(\w+)\":\s*\{:hex,\s*:\w+,\s*\"([^\"]+)\"")
_MIX_ALIAS = LazyPattern(r"\s+(?:\"([\w.]+)\"|(\w+)):\s*(?:\[|&|\")")


def read_mix(builder: ManifestBuilder, text: str) -> None:
    function = ""
    attributes: dict[str, str] = {}
    for number, line in numbered_lines(text):
        attribute = re.match(r"\s*@(\w+)\s+\"([^\"]+)\"", line)
        if attribute and len(attributes) < 1_000:
            attributes["@" + attribute[1]] = attribute[2]
        start = re.match(r"\s*defp?\s+(\w+)", line)
        if start:
            function = start[1]
        if function == "aliases":
            alias = _MIX_ALIAS.match(line)
            if alias:
                builder.add_script("mix", alias[1] or alias[2], number)
        elif function == "project":
            field = re.match(r"\s*(?:\[\s*)?(app|version|elixir):\s*(?::|\"|(?=@))([^\",\s][^\",]*)", line)
            value = attributes.get(field[2].strip(), field[2]) if field else ""
            if field and field[1] == "app":
                builder.name = value
            elif field and field[1] == "version":
                builder.version = "" if value.startswith("@") else value
            elif field and not value.startswith("@"):
                builder.add_runtime("elixir", value, number)
        if function.endswith("deps") and not line.lstrip().startswith("#"):
            for match in _MIX_DEPENDENCY.finditer(line):
                builder.add_package(match[1], match[2] or "", number)


def read_mix_lock(builder: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_MIX_LOCK, text):
        builder.add_package(match[1], "", number, version=match[2], locked=True, direct=False)
