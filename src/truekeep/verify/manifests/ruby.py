"""Ruby: Gemfile, gemspecs and their lock. Rake is in `tasks`."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.text import Pattern, numbered_lines

_GEM = Pattern(r"\s*gem[\s(]\s*(['\"])([^'\"]+)\1(.*)")
_GEM_DEPENDENCY = Pattern(r"\s*\w+\.add_(?:\w+_)?dependency[\s(]\s*(?:['\"]|%q[<({\[])([\w.-]+)['\">)}\]](.*)")
_GEM_SPECS = Pattern(r"\s*,\s*\[?\s*(?:['\"]|%q[<({\[])\s*([~<>=!]*\s*v?[0-9][\w.-]*)\s*['\">)}\]]\s*\]?")
_GEM_FIELD = Pattern(r"\s*\w+\.(name|version|required_ruby_version)\s*=\s*\[?\s*(?:Gem::Requirement\.new\(?)?(.*)")
_STRING = Pattern(r"['\"]([^'\"]*)['\"]")
_GEM_LOCKED = Pattern(r"    ([\w.-]+) \(([^()\s]+)\)\Z")
_GEM_WANTED = Pattern(r"  ([\w.-]+)!?(?: \(|!?\Z)")


def _add_gem(draft: ManifestBuilder, name: str, rest: str, line: int) -> None:
    specs = []
    position = 0
    while match := _GEM_SPECS.match(rest, position):
        specs.append(match[1].strip())
        position = match.end()
    draft.add(name, ", ".join(specs), line)


def read_gemfile(draft: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        gem = _GEM.match(line)
        if gem:
            _add_gem(draft, gem[2], gem[3], number)
            continue
        ruby = re.match(r"\s*ruby[\s(]\s*(['\"][^#]*)", line)
        if ruby:
            specs = (text for text in _STRING.findall(ruby[1]) if re.match(r"[~<>=! ]*[0-9]", text))
            draft.needs("ruby", ", ".join(specs), number)


def read_gemspec(draft: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        gem = _GEM_DEPENDENCY.match(line)
        if gem:
            _add_gem(draft, gem[1], gem[2], number)
            continue
        new = re.match(r"\s*Gem::Specification\.new[\s(]\s*['\"]([\w.-]+)['\"]", line)
        if new:
            draft.name = new[1]
        field = _GEM_FIELD.match(line)
        strings = _STRING.findall(field[2]) if field else []
        if field and strings:
            if field[1] == "name":
                draft.name = strings[0]
            elif field[1] == "version":
                draft.version = strings[0] if strings[0][:1].isdigit() else ""
            else:
                draft.needs("ruby", ", ".join(strings), number)
        programs = re.match(r"\s*\w+\.executables\s*(?:=|<<)\s*(?:%w[\[({<]([^\])}>]*)|(.*))", line)
        if programs:
            for name in (programs[1] or "").split() or _STRING.findall(programs[2] or ""):
                draft.run("console", name, number)


def read_gemfile_lock(draft: ManifestBuilder, text: str) -> None:
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
                draft.needs("ruby", ruby[1], number)
        elif section == "BUNDLED WITH" and line.strip():
            draft.needs("bundler", line.strip(), number)
    for (name, version), (number, is_own) in found.items():
        if is_own and not draft.name:
            draft.name, draft.version = name, version
        else:
            draft.add(name, "", number, version=version, locked=True, direct=name in direct)
