"""Versions: what a spec pins or admits, and whether a claim agrees with it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from truekeep.verify.manifests.limits import LONGEST_NAME
from truekeep.verify.manifests.manifest import Package
from truekeep.verify.manifests.text import Pattern

_RELEASE = Pattern(r"[vV=]{0,3}(?:[0-9]{1,4}!)?([0-9]{1,12}(?:\.[0-9]{1,12}){0,5})(?![0-9])(.*)\Z", re.DOTALL)
_PIN = Pattern(r"(===?|=)?\s*[vV]?([0-9][\w.+!-]*)\Z")
_COMPARATOR = Pattern(r"(~=|~>|===?|!=|>=|<=|=>|=<|\^|~|>|<|=)?\s*([vV]?[0-9][\w.*+!-]*)")
_MAVEN_RANGE = Pattern(r"([\[(])([^,\[\]()]*)(,?)([^,\[\]()]*)([\])])")
_HYPHEN_RANGE = Pattern(r"\s*([vV]?[0-9][\w.*+-]*)\s+-\s+([vV]?[0-9][\w.*+-]*)\s*\Z")
_PROTOCOL = Pattern(r"[A-Za-z@][\w+.-]*:|[./@~$]+[A-Za-z{(/]")
_SWIFT_FROM = Pattern(r"from:\s*|\"")
_WIDTH = 7

_Version = tuple[int, ...]
_ENDLESS: Final[_Version] = (1 << 62,)


class _Range(NamedTuple):
    low: _Version  # inside
    high: _Version  # outside
    holes: tuple[tuple[_Version, _Version], ...] = ()


def satisfies(claimed: str, found: Package) -> bool | None:
    """Whether "uses NAME claimed" agrees with what the manifest says; None when that cannot be told.

    A claim of few parts means all that begins so: "4.2" agrees with a lock at 4.2.9 and with ">=4.2.7,<5"; one of
    three or more is that version. ">=4.2" claims the least version, "==4.2" that nothing else is let in.
    """
    release = _RELEASE.match(claimed.lstrip("=>").strip())
    if release is None:
        return None
    parts, suffix = _parts(release[1]), _plain_suffix(release[2])
    is_least, is_pin = claimed.startswith(">="), claimed.startswith("==")
    if found.version and is_least:
        have = _RELEASE.match(found.version.strip())
        return _pad(_parts(have[1])) >= _pad(parts) if have is not None else None
    if found.version:
        return _agrees_with_pin(parts, suffix, found)
    ranges = _ranges(found.spec, is_composer=_is_composer_name(found.name))
    if ranges is None:
        return None
    if is_least:
        return min(at.low for at in ranges) == _pad(parts)
    if is_pin:
        return False
    low, high = _pad(parts), _bump(parts) if len(parts) < 3 else _after(parts)
    return any(
        low < at.high and at.low < high and not any(first <= low and high <= last for first, last in at.holes)
        for at in ranges
    )


def runtime_package(runtime: tuple[str, str, int]) -> Package:
    """A manifest's runtime in the form that `satisfies` takes.

    A bare number pins, as in `.python-version`; the numbers of go.mod, Cargo.toml and of Java builds are the least
    that will do, and Java 1.8 is Java 8.
    """
    name, spec, line = runtime
    if name == "java" and re.match(r"1\.[0-9]", spec):
        spec = spec[2:]
    pin = pinned(spec, "")
    if pin and name in ("go", "rust", "java"):
        return Package(name, f">={pin}", "", line, False, True)
    return Package(name, spec, pin, line, False, True)


def _agrees_with_pin(parts: _Version, suffix: str, found: Package) -> bool | None:
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
    else:  # "4.2.1" is claimed and "4.2" stands there: a lock means 4.2.0 by it, an image tag means any 4.2
        return False if found.is_locked or found.spec.startswith("==") else None
    if agrees and suffix and len(parts) >= len(have):
        return _plain_suffix(release[2]).startswith(suffix)
    return agrees


def _parts(text: str) -> _Version:
    return tuple(int(part) for part in text.split("."))


def _plain_suffix(text: str) -> str:
    """What follows the numbers of a version: "rc1", "slim"; without wildcards and build metadata."""
    plain = text.partition("+")[0].strip("-._* ").casefold()
    return "" if plain == "x" else plain


def _pad(parts: _Version) -> _Version:
    return parts + (0,) * (_WIDTH - len(parts))


def _bump(parts: _Version) -> _Version:
    """The first version after all that begin with these parts."""
    return _pad((*parts[:-1], parts[-1] + 1))


def _after(parts: _Version) -> _Version:
    """The first version after exactly this one."""
    return (*_pad(parts)[:-1], 1)


def _is_composer_name(name: str) -> bool:
    vendor, slash, rest = name.partition("/")
    return bool(slash) and not vendor.startswith("@") and "." not in vendor and "/" not in rest


def pinned(spec: str, ecosystem: str) -> str:
    """The version that a spec pins in its ecosystem, "" when it leaves a choice."""
    if len(spec) > LONGEST_NAME:
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


def _ranges(spec: str, *, is_composer: bool) -> list[_Range] | None:
    """The alternatives of a spec; None when it is not made of versions, or admits all of them."""
    text = spec.strip()
    if text.startswith("npm:"):
        text = text.rpartition("@")[2]
    text = _SWIFT_FROM.sub(lambda match: "" if match[0] == '"' else "^", text[: LONGEST_NAME + 1])
    text = re.sub(r"@\w+\Z", "", text.strip())
    if not text or len(text) > LONGEST_NAME or _PROTOCOL.match(text):
        return None
    if text[0] in "[(" and text[-1] in "])":
        return _maven_ranges(text)
    found: list[_Range] = []
    for alternative in re.split(r"\|\|?|\bor\b", text):
        one = _one_range(alternative, is_composer=is_composer)
        if one is None:
            return None
        found.append(one)
    return found


def _one_range(text: str, *, is_composer: bool) -> _Range | None:
    hyphen = _HYPHEN_RANGE.match(text)
    if hyphen:
        first, last = _RELEASE.match(hyphen[1]), _RELEASE.match(hyphen[2])
        return _Range(_pad(_parts(first[1])), _bump(_parts(last[1]))) if first and last else None
    if "..<" in text:  # Swift
        text = ">=" + text.replace("..<", " <")
    elif "..." in text:
        text = ">=" + text.replace("...", " <=")
    low, high, holes = _pad((0,)), _ENDLESS, []
    position = 0
    for match in _COMPARATOR.finditer(text):
        between = text[position : match.start()].strip(" ,&\t\n")
        release = _RELEASE.match(match[2])
        if between not in ("", "and") or release is None:
            return None
        position = match.end()
        parts = _parts(release[1])
        is_wild = release[2].startswith((".*", ".x", ".X", ".+", "*"))
        if match[1] == "!=":
            holes.append((_pad(parts), _bump(parts) if is_wild else _after(parts)))
            continue
        lower, upper = _bounds(match[1] or "", parts, is_wild=is_wild, is_composer=is_composer)
        low, high = max(low, lower), min(high, upper)
    if position == 0 or text[position:].strip(" ,&\t\n)"):
        return None
    return _Range(low, high, tuple(holes))


def _bounds(operator: str, parts: _Version, *, is_wild: bool, is_composer: bool) -> tuple[_Version, _Version]:
    least = _pad((0,))
    if operator in (">=", "=>"):
        return _pad(parts), _ENDLESS
    if operator == ">":
        return _bump(parts) if is_wild else _after(parts), _ENDLESS
    if operator in ("<=", "=<"):
        return least, _bump(parts) if is_wild else _after(parts)
    if operator == "<":
        return least, _pad(parts)
    if is_wild:
        return _pad(parts), _bump(parts)
    if operator in ("==", "==="):
        return _pad(parts), _after(parts)
    if operator == "=":
        return _pad(parts), _bump(parts)
    if operator in ("~=", "~>") or (operator == "~" and is_composer):
        return _pad(parts), _bump(parts[:-1] or parts)
    if operator == "~":
        return _pad(parts), _bump(parts[:2])
    significant = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    return _pad(parts), _bump(parts[: significant + 1])


def _maven_ranges(text: str) -> list[_Range] | None:
    found = []
    for opening, first, comma, last, closing in _MAVEN_RANGE.findall(text):
        low, high = _pad((0,)), _ENDLESS
        if first.strip():
            release = _RELEASE.match(first.strip())
            if release is None:
                return None
            low = _pad(_parts(release[1])) if opening == "[" else _after(_parts(release[1]))
            if not comma:
                high = _after(_parts(release[1]))
        if last.strip():
            release = _RELEASE.match(last.strip())
            if release is None:
                return None
            high = _after(_parts(release[1])) if closing == "]" else _pad(_parts(release[1]))
        if first.strip() or last.strip():
            found.append(_Range(low, high))
    return found or None
