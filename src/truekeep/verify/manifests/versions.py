"""Compares a claimed version with what a manifest pins or allows.

Every ecosystem's way to write a range (`^1.2`, `~> 7.0`, `[4.12,5)`, `1.0.0..<3.0.0`) is translated into PEP 440
specifiers; `packaging` does the set arithmetic. Only the numbers of a version count in a range.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from truekeep.verify.manifests.formats import LazyPattern
from truekeep.verify.manifests.model import MAX_NAME_LENGTH, Package

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_RELEASE = LazyPattern(r"[vV=]{0,3}(?:[0-9]{1,4}!)?([0-9]{1,12}(?:\.[0-9]{1,12}){0,5})(?![0-9])(.*)\Z", re.DOTALL)
_PIN = LazyPattern(r"(===?|=)?\s*[vV]?([0-9][\w.+!-]*)\Z")
_COMPARATOR = LazyPattern(r"(~=|~>|===?|!=|>=|<=|=>|=<|\^|~|>|<|=)?\s*([vV]?[0-9][\w.*+!-]*)")
_MAVEN_RANGE = LazyPattern(r"([\[(])([^,\[\]()]*)(,?)([^,\[\]()]*)([\])])")
_HYPHEN_RANGE = LazyPattern(r"\s*([vV]?[0-9][\w.*+-]*)\s+-\s+([vV]?[0-9][\w.*+-]*)\s*\Z")
_PROTOCOL = LazyPattern(r"[A-Za-z@][\w+.-]*:|[./@~$]+[A-Za-z{(/]")
_SWIFT_FROM = LazyPattern(r"from:\s*|\"")

_Release = tuple[int, ...]


def satisfies(claimed: str, found: Package) -> bool | None:
    """Whether "uses NAME claimed" agrees with the manifest; None when that cannot be decided.

    A claim of one or two parts means every version that begins so: "4.2" agrees with a lock at 4.2.9 and with
    ">=4.2.7,<5". A longer one means exactly that version. ">=4.2" claims the minimum, "==4.2" an exact pin.
    """
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    release = _RELEASE.match(claimed.lstrip("=>").strip())
    if release is None:
        return None
    is_minimum, is_pin = claimed.startswith(">="), claimed.startswith("==")
    if found.version and is_minimum:
        have = _RELEASE.match(found.version.strip())
        return Version(have[1]) >= Version(release[1]) if have is not None else None
    if found.version:
        return _agrees_with_pin(_parts(release[1]), _plain_suffix(release[2]), found)
    allowed = _parse_ranges(found.spec, is_composer=_is_composer_name(found.name))
    if allowed is None:
        return None
    if is_minimum:
        below = SpecifierSet(f"<{release[1]}")
        return any(one.contains(release[1]) for one in allowed) and all(one.is_disjoint(below) for one in allowed)
    if is_pin:
        return False
    wanted = SpecifierSet(f"=={release[1]}" + (".*" if release[1].count(".") < 2 else ""))
    return not all(one.is_disjoint(wanted) for one in allowed)


def runtime_package(runtime: tuple[str, str, int]) -> Package:
    """Return a manifest's runtime in the form that `satisfies` takes.

    A bare number pins, as in `.python-version`. In go.mod, Cargo.toml and Java builds it is the minimum, and Java 1.8
    means Java 8.
    """
    name, spec, line = runtime
    if name == "java" and re.match(r"1\.[0-9]", spec):
        spec = spec[2:]
    pin = find_pin(spec, "")
    if pin and name in ("go", "rust", "java"):
        return Package(name, f">={pin}", "", line, False, True)
    return Package(name, spec, pin, line, False, True)


def find_pin(spec: str, ecosystem: str) -> str:
    """Return the version that a spec pins in its ecosystem, "" when it allows several."""
    if len(spec) > MAX_NAME_LENGTH:
        return ""
    if spec[:1] == "[" and spec[-1:] == "]" and ecosystem in ("java", "dotnet") and "," not in spec:
        spec = spec[1:-1]
    match = _PIN.match(spec)
    if match is None or match[2].endswith(("+", ".x", ".X", ".")):
        return ""
    operator, version = match[1] or "", match[2]
    if (ecosystem == "python" and not operator) or (ecosystem == "rust" and operator != "="):
        return ""
    if ecosystem == "npm" and version.isdigit():
        return ""  # "18" is any 18
    return version


def _agrees_with_pin(parts: _Release, suffix: str, found: Package) -> bool | None:
    release = _RELEASE.match(found.version.strip())
    if release is None:
        return None
    have = _parts(release[1])
    if len(parts) <= len(have):
        agrees = have[: len(parts)] == parts
    elif have != parts[: len(have)]:
        agrees = False
    elif not any(parts[len(have) :]):
        agrees = True
    else:  # the claim is "4.2.1" and the file has "4.2": a lock means 4.2.0, an image tag means any 4.2
        return False if found.is_locked or found.spec.startswith("==") else None
    if agrees and suffix and len(parts) >= len(have):
        return _plain_suffix(release[2]).startswith(suffix)
    return agrees


def _parts(text: str) -> _Release:
    return tuple(int(part) for part in text.split("."))


def _plain_suffix(text: str) -> str:
    """Return what follows the numbers of a version ("rc1", "slim"), without wildcards and build metadata."""
    plain = text.partition("+")[0].strip("-._* ").casefold()
    return "" if plain == "x" else plain


def _is_composer_name(name: str) -> bool:
    vendor, slash, rest = name.partition("/")
    return bool(slash) and not vendor.startswith("@") and "." not in vendor and "/" not in rest


def _parse_ranges(spec: str, *, is_composer: bool) -> list[SpecifierSet] | None:
    """Return the alternatives of a spec; None when it is not made of versions, or allows all of them."""
    from packaging.specifiers import SpecifierSet

    text = spec.strip()
    if text.startswith("npm:"):
        text = text.rpartition("@")[2]
    text = _SWIFT_FROM.sub(lambda match: "" if match[0] == '"' else "^", text[: MAX_NAME_LENGTH + 1])
    text = re.sub(r"@\w+\Z", "", text.strip())
    if not text or len(text) > MAX_NAME_LENGTH or _PROTOCOL.match(text):
        return None
    if text[0] in "[(" and text[-1] in "])":
        alternatives = _translate_maven(text)
    else:
        alternatives = [_translate(part, is_composer=is_composer) for part in re.split(r"\|\|?|\bor\b", text)]
    if not alternatives or None in alternatives:
        return None
    return [SpecifierSet(alternative) for alternative in alternatives if alternative is not None]


def _translate(text: str, *, is_composer: bool) -> str | None:
    """Translate one range without alternatives into PEP 440; None when it is not made of versions."""
    hyphen = _HYPHEN_RANGE.match(text)
    if hyphen:
        first, last = _RELEASE.match(hyphen[1]), _RELEASE.match(hyphen[2])
        return f">={first[1]},<{_next_release(last[1])}" if first and last else None
    if "..<" in text:  # Swift
        text = ">=" + text.replace("..<", " <")
    elif "..." in text:
        text = ">=" + text.replace("...", " <=")
    specifiers: list[str] = []
    position = 0
    for match in _COMPARATOR.finditer(text):
        between = text[position : match.start()].strip(" ,&\t\n")
        release = _RELEASE.match(match[2])
        if between not in ("", "and") or release is None:
            return None
        position = match.end()
        is_wild = release[2].startswith((".*", ".x", ".X", ".+", "*"))
        specifiers.append(_translate_comparator(match[1] or "", release[1], is_wild=is_wild, is_composer=is_composer))
    if not specifiers or text[position:].strip(" ,&\t\n)"):
        return None
    return ",".join(specifiers)


def _translate_comparator(operator: str, version: str, *, is_wild: bool, is_composer: bool) -> str:
    if operator in (">=", "=>"):
        return f">={version}"
    if operator == "<":
        return f"<{version}"
    if operator == ">":
        return f">={_next_release(version)}" if is_wild else f">{version}"
    if operator in ("<=", "=<"):
        return f"<{_next_release(version)}" if is_wild else f"<={version}"
    if operator == "!=":
        return f"!={version}.*" if is_wild else f"!={version}"
    if is_wild or operator == "=":
        return f"=={version}.*"
    if operator in ("==", "==="):
        return f"=={version}"
    parts = _parts(version)
    if operator in ("~=", "~>") or (operator == "~" and is_composer):
        fixed = max(1, len(parts) - 1)
    elif operator == "~":
        fixed = min(2, len(parts))
    else:  # a caret, and a bare version in Cargo: up to the first part that is not zero
        fixed = next((place for place, part in enumerate(parts) if part), len(parts) - 1) + 1
    return f">={version},=={'.'.join(map(str, parts[:fixed]))}.*"


def _next_release(version: str) -> str:
    """Return the first version after all that begin with this one."""
    *first, last = _parts(version)
    return ".".join(map(str, (*first, last + 1)))


def _translate_maven(text: str) -> list[str | None]:
    alternatives: list[str | None] = []
    for opening, first, comma, last, closing in _MAVEN_RANGE.findall(text):
        bounds = []
        for bound, operator in (
            (first.strip(), "==" if not comma else ">=" if opening == "[" else ">"),
            (last.strip(), "<=" if closing == "]" else "<"),
        ):
            release = _RELEASE.match(bound)
            if bound and release is None:
                return [None]
            if release is not None:
                bounds.append(operator + release[1])
        if bounds:
            alternatives.append(",".join(bounds))
    return alternatives
