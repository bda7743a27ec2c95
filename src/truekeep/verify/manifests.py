"""What a repository's manifests say: packages and their versions, scripts and targets, runtimes, ports. Pure.

Manifests, lock files, task files and container files of many ecosystems become one small value, `Manifest`, where every
entry knows its line. Nothing is run, included, downloaded or expanded, and no general parser of XML, YAML or TOML meets
a hostile file: what is read here is the part of those formats that manifests use. `read_manifest` never raises. A file
that cannot be read gives an empty `Manifest` that says why in `problem`; an entry that is not understood is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

LARGEST = 2 << 20  # bytes of a file that people write
LARGEST_LOCK = 20 << 20  # bytes of a file that a program writes
_MOST_LINES = 100_000
_MOST_LOCK_LINES = 1_000_000
_MOST_ENTRIES = 100_000
_MOST_BRACKETS = 500_000  # of JSON, where each becomes an object before anybody looks at it
_MOST_COMMAS = 2_000_000
_LONGEST_LINE = 2_000  # characters that a line reader looks at
_LONGEST_NAME = 300
_DEEPEST = 40


class Package(NamedTuple):
    """One package that a file asks for or locks."""

    name: str  # as it compares within its ecosystem
    spec: str  # as written; "" when the file says nothing
    version: str  # the exact version when the file pins or locks one
    line: int
    is_locked: bool
    is_direct: bool  # False for what a lock file has for other packages' sake, or cannot tell


class Script(NamedTuple):
    """Something that can be run by name: a make target, an npm script, an entry point."""

    tool: str
    name: str
    line: int


class Manifest(NamedTuple):
    """What one file says."""

    ecosystem: str
    name: str = ""
    version: str = ""
    packages: tuple[Package, ...] = ()
    scripts: tuple[Script, ...] = ()
    runtimes: tuple[tuple[str, str, int], ...] = ()  # (name, as written, line)
    ports: tuple[tuple[int, int], ...] = ()  # (port, line)
    services: tuple[tuple[str, int], ...] = ()  # (name, line)
    problem: str = ""


class _Unreadable(ValueError):
    """This file is not what its name says."""


class _Pattern:
    """A pattern that is compiled when it is first used: a repository needs few of them, and all would take 40 ms."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self._compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        return self._compiled.findall

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self._compiled.sub


class _Draft:
    """A manifest while it is being read."""

    def __init__(self, ecosystem: str) -> None:
        self.ecosystem = ecosystem
        self.name = self.version = ""
        self.packages: list[Package] = []
        self.scripts: dict[tuple[str, str], Script] = {}
        self.runtimes: dict[tuple[str, str, int], None] = {}
        self.ports: dict[tuple[int, int], None] = {}
        self.services: dict[tuple[str, int], None] = {}

    def add(
        self, name: str, spec: str, line: int, *, version: str | None = None, locked: bool = False, direct: bool = True
    ) -> None:
        """A package. Without a version, the spec is asked whether it pins one, as its ecosystem means it."""
        name = normal_name(name.strip(), self.ecosystem)
        if not _is_name(name):
            return
        if len(self.packages) >= _MOST_ENTRIES:
            raise _Unreadable(f"more than {_MOST_ENTRIES} packages")
        spec = spec.strip()
        pin = _pinned(spec, self.ecosystem) if version is None else version.strip()
        self.packages.append(Package(name, spec, pin, line, locked, direct))

    def run(self, tool: str, name: str, line: int) -> None:
        """A script; the first place where it stands is the one that counts."""
        name = name.strip()
        if _is_name(name) and len(self.scripts) < _MOST_ENTRIES:
            self.scripts.setdefault((tool, name), Script(tool, name, line))

    def needs(self, runtime: str, spec: str, line: int) -> None:
        spec = spec.strip()
        if spec and len(spec) <= _LONGEST_NAME and _is_name(runtime):
            self.runtimes[(runtime, spec, line)] = None

    def listen(self, text: str, line: int) -> None:
        """A port, or a short range of them, as text."""
        low, dash, high = text.partition("-")
        first = _port(low)
        last = _port(high) if dash else first
        if first and last and 0 <= last - first < 100:
            for port in range(first, last + 1):
                self.ports[(port, line)] = None

    def serve(self, name: str, line: int) -> None:
        if _is_name(name):
            self.services[(name, line)] = None

    def done(self) -> Manifest:
        return Manifest(
            self.ecosystem,
            self.name.strip() if _is_name(self.name.strip()) else "",
            self.version.strip() if _is_name(self.version.strip()) else "",
            tuple(self.packages),
            tuple(self.scripts.values()),
            tuple(self.runtimes),
            tuple(self.ports),
            tuple(self.services),
        )


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()


def _port(text: str) -> int:
    """A port, 0 when it is none."""
    text = text.strip()
    return int(text) if 0 < len(text) <= 5 and text.isascii() and text.isdigit() and int(text) < 65_536 else 0


# Names.

_DASHES = _Pattern(r"[-_.]+")
_GO_MAJOR = _Pattern(r"/v[0-9]+\Z|\.v[0-9]+\Z")
_EXTRAS = _Pattern(r"\[[^\[\]]*\]\Z")


def normal_name(name: str, ecosystem: str) -> str:
    """A package's name in the form in which two spellings of it are equal."""
    if ecosystem == "python":
        return _DASHES.sub("-", name).lower()
    if ecosystem == "rust":
        return name.replace("_", "-").lower()
    if ecosystem == "docker":
        return name.removeprefix("docker.io/").removeprefix("library/")
    if ecosystem in ("php", "dotnet", "swift"):
        return name.lower()
    return name


def same_package(claimed: str, name: str, ecosystem: str) -> bool:
    """Whether a word of a memory means the package of this name.

    People leave away what every reader knows: the group of a Maven artifact, the host of a Go module, the registry of
    an image, the `.js` of a library, the `/core` of a scoped package.
    """
    spellings, ends = _spellings(claimed, ecosystem)
    own = name.casefold()
    if own in spellings or (ends and own.endswith(ends)):
        return True
    if ecosystem == "go":
        plain = _GO_MAJOR.sub("", own)
        return plain in spellings or plain.endswith(ends)
    return ecosystem in ("python", "rust") and normal_name(own, ecosystem) in spellings


@lru_cache(maxsize=4_096)
def _spellings(claimed: str, ecosystem: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names that a word may mean, and the ends of longer ones that it may."""
    word = claimed.strip().strip("`'\"").casefold()
    if ecosystem == "python":
        word = _EXTRAS.sub("", word)
    word = normal_name(word, ecosystem)
    if not word:
        return frozenset(), ()
    if ecosystem == "npm":
        bare = word.removesuffix("js").rstrip(".") if word.endswith("js") else word
        return frozenset(filter(None, (word, f"{word}.js", f"@{word}/core", bare))), ()
    if ecosystem == "java":
        return frozenset((word,)), () if ":" in word else (f":{word}",)
    if ecosystem == "go":
        word = _GO_MAJOR.sub("", word)
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "php":
        return frozenset((word, f"{word}/framework")), (f"/{word}",)
    if ecosystem == "docker":
        return frozenset((word,)), (f"/{word}",)
    if ecosystem == "swift":
        return frozenset((word, word.rstrip("/").removesuffix(".git").rpartition("/")[2])), ()
    return frozenset((word,)), ()


# Versions.

_RELEASE = _Pattern(r"[vV=]{0,3}(?:[0-9]{1,4}!)?([0-9]{1,12}(?:\.[0-9]{1,12}){0,5})(?![0-9])(.*)\Z", re.DOTALL)
_PIN = _Pattern(r"(===?|=)?\s*[vV]?([0-9][\w.+!-]*)\Z")
_COMPARATOR = _Pattern(r"(~=|~>|===?|!=|>=|<=|=>|=<|\^|~|>|<|=)?\s*([vV]?[0-9][\w.*+!-]*)")
_MAVEN_RANGE = _Pattern(r"([\[(])([^,\[\]()]*)(,?)([^,\[\]()]*)([\])])")
_HYPHEN_RANGE = _Pattern(r"\s*([vV]?[0-9][\w.*+-]*)\s+-\s+([vV]?[0-9][\w.*+-]*)\s*\Z")
_PROTOCOL = _Pattern(r"[A-Za-z@][\w+.-]*:|[./@~$]+[A-Za-z{(/]")
_SWIFT_FROM = _Pattern(r"from:\s*|\"")
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
    three or more is that version.
    """
    release = _RELEASE.match(claimed.strip())
    if release is None:
        return None
    parts, suffix = _parts(release[1]), _plain_suffix(release[2])
    if found.version:
        return _agrees_with_pin(parts, suffix, found)
    ranges = _ranges(found.spec, is_composer=_is_composer_name(found.name))
    if ranges is None:
        return None
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
    pin = _pinned(spec, "")
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


def _pinned(spec: str, ecosystem: str) -> str:
    """The version that a spec pins in its ecosystem, "" when it leaves a choice."""
    if len(spec) > _LONGEST_NAME:
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
    text = _SWIFT_FROM.sub(lambda match: "" if match[0] == '"' else "^", text[: _LONGEST_NAME + 1])
    text = re.sub(r"@\w+\Z", "", text.strip())
    if not text or len(text) > _LONGEST_NAME or _PROTOCOL.match(text):
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


# Text, and where in it something stands.


class _Places:
    """Line numbers of offsets; quick as long as the offsets mostly grow."""

    def __init__(self, text: str) -> None:
        self.text, self._at, self._line = text, 0, 1

    def line(self, at: int) -> int:
        if at >= self._at:
            self._line += self.text.count("\n", self._at, at)
        else:
            self._line -= self.text.count("\n", at, self._at)
        self._at = at
        return self._line


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers. Of a very long one only the beginning, so that no pattern can run away on it."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line[:_LONGEST_LINE].rstrip("\r")


def _matches(pattern: _Pattern, text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines that begin with the pattern."""
    match_at = pattern.match
    for number, line in _lines(text):
        match = match_at(line)
        if match:
            yield number, match


class _Leaf(NamedTuple):
    text: str
    line: int


_NOTHING = _Leaf("", 0)


class _Table(dict[str, "_Leaf | _Table"]):
    """A mapping or a list (then the keys count from 0) that knows its line."""

    def __init__(self, line: int, *, is_list: bool = False) -> None:
        super().__init__()
        self.line, self.is_list = line, is_list

    def table(self, *path: str) -> _Table:
        """The table at a path, empty when there is none."""
        node: _Leaf | _Table | None = self
        for key in path:
            node = node.get(key) if isinstance(node, _Table) else None
        return node if isinstance(node, _Table) else _Table(0)

    def leaf(self, *path: str) -> _Leaf:
        """The text at a path, `_NOTHING` when there is none."""
        node = self.table(*path[:-1]).get(path[-1])
        return node if isinstance(node, _Leaf) else _NOTHING

    def leaves(self, *path: str) -> list[_Leaf]:
        """The texts of a list, or the one text that stands in its place."""
        node = self.table(*path[:-1]).get(path[-1])
        if isinstance(node, _Leaf):
            return [node] if node.text else []
        return [item for item in node.values() if isinstance(item, _Leaf)] if node is not None else []

    def tables(self, *path: str) -> Iterator[tuple[str, _Table]]:
        for key, node in self.table(*path).items():
            if isinstance(node, _Table):
                yield key, node


# TOML.

_TOML_GAP = _Pattern(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOML_END = _Pattern(r"[ \t\r]*+(?:#[^\n]*+)?(?:\n|\Z)")
_TOML_KEY = _Pattern(r"[ \t]*+(?:([A-Za-z0-9_-]++)|\"((?:[^\"\\\n]++|\\.)*+)\"|'([^'\n]*+)')[ \t]*+(\.)?")
_TOML_LONG = _Pattern(r"\"\"\"((?:[^\"\\]++|\\.|\"\"?(?!\"))*+)\"{3,5}", re.DOTALL)
_TOML_BASIC = _Pattern(r"\"((?:[^\"\\\n]++|\\.)*+)\"")
_TOML_BARE = _Pattern(r"[^\s,\[\]{}#\"'=][^,\[\]{}#\"'=\n]*+")
_TOML_ESCAPE = _Pattern(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[ \t]*\n\s*|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


class _Toml:
    """A reader for TOML that keeps lines. Every scalar stays text; dates and numbers are not looked into."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places = _Places(text)

    def read(self) -> _Table:
        root = table = _Table(1)
        text, at = self.text, 0
        while True:
            at = self._gap(at)
            if at >= len(text):
                return root
            line = self.places.line(at)
            if text[at] == "[":
                is_list = text.startswith("[[", at)
                keys, at = self._key(at + 1 + is_list)
                closing = "]]" if is_list else "]"
                if not text.startswith(closing, at):
                    raise _Unreadable(f"line {line}: a table's name is not closed")
                at += len(closing)
                table = self._open(root, keys, line, is_list=is_list)
            else:
                at = self._pair(table, at, line, 0)
            end = _TOML_END.match(text, at)
            if end is None:
                raise _Unreadable(f"line {line}: something stands after the value")
            at = end.end()

    def _gap(self, at: int) -> int:
        match = _TOML_GAP.match(self.text, at)
        return match.end() if match else at

    def _key(self, at: int) -> tuple[list[str], int]:
        keys: list[str] = []
        while len(keys) < _DEEPEST:
            match = _TOML_KEY.match(self.text, at)
            if match is None:
                break
            at = match.end()
            keys.append(match[1] or (_toml_text(match[2]) if match[2] is not None else match[3]) or "")
            if not match[4]:
                return keys, at
        raise _Unreadable(f"line {self.places.line(at)}: this is not `key = value`")

    def _open(self, table: _Table, keys: list[str], line: int, *, is_list: bool = False) -> _Table:
        """The table of a header, made when it is new; in a list of tables always a new one."""
        for key in keys[:-1] if is_list else keys:
            node = table.setdefault(key, _Table(line))
            if isinstance(node, _Table) and node.is_list and node:
                node = node[str(len(node) - 1)]
            if not isinstance(node, _Table):
                raise _Unreadable(f"line {line}: {key[:60]!r} stands twice")
            table = node
        if is_list:
            nodes = table.setdefault(keys[-1], _Table(line, is_list=True))
            if not isinstance(nodes, _Table) or not nodes.is_list:
                raise _Unreadable(f"line {line}: {keys[-1][:60]!r} stands twice")
            table = _Table(line)
            nodes[str(len(nodes))] = table
        return table

    def _pair(self, table: _Table, at: int, line: int, depth: int) -> int:
        keys, at = self._key(at)
        if not self.text.startswith("=", at):
            raise _Unreadable(f"line {line}: this is not `key = value`")
        value, at = self._value(at + 1, depth)
        table = self._open(table, keys[:-1], line)
        if keys[-1] in table:
            raise _Unreadable(f"line {line}: {keys[-1][:60]!r} stands twice")
        if isinstance(value, _Leaf):
            value = _Leaf(value.text, line)  # of a long text the line of its key
        else:
            value.line = line
        table[keys[-1]] = value
        return at

    def _value(self, at: int, depth: int) -> tuple[_Leaf | _Table, int]:
        text = self.text
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        line = self.places.line(at)
        first = text[at : at + 1]
        if first in ("[", "{") and first:
            if depth >= _DEEPEST:
                raise _Unreadable(f"line {line}: nested too deeply")
            return self._nested(at, line, depth + 1)
        if text.startswith("'''", at):
            end = text.find("'''", at + 3)
            if end >= 0:
                close = end + 3
                while close < end + 5 and text[close : close + 1] == "'":
                    close += 1
                return _Leaf(text[at + 3 : close - 3].removeprefix("\n"), line), close
        elif first == "'":
            end = text.find("'", at + 1)
            if end >= 0 and "\n" not in text[at:end]:
                return _Leaf(text[at + 1 : end], line), end + 1
        else:
            pattern = _TOML_LONG if text.startswith('"""', at) else _TOML_BASIC if first == '"' else _TOML_BARE
            match = pattern.match(text, at)
            if match:
                if pattern is _TOML_BARE:
                    return _Leaf(match[0].rstrip(), line), match.end()
                extra = match.end() - match.end(1) - 3 if pattern is _TOML_LONG else 0
                body = _toml_text(match[1].removeprefix("\n") if pattern is _TOML_LONG else match[1])
                return _Leaf(body + '"' * extra, line), match.end()
        raise _Unreadable(f"line {line}: this value is not TOML")

    def _nested(self, at: int, line: int, depth: int) -> tuple[_Table, int]:
        text = self.text
        is_list = text[at] == "["
        closing = "]" if is_list else "}"
        table = _Table(line, is_list=is_list)
        at = self._gap(at + 1)
        while not text.startswith(closing, at):
            here = self.places.line(at)
            if is_list:
                value, at = self._value(at, depth)
                table[str(len(table))] = value
            else:
                at = self._pair(table, at, here, depth)
            at = self._gap(at)
            if text.startswith(",", at):
                at = self._gap(at + 1)
            elif not text.startswith(closing, at):
                raise _Unreadable(f"line {here}: a comma or {closing} is missing")
        return table, at + 1


def _toml_text(raw: str) -> str:
    return _TOML_ESCAPE.sub(_toml_escape, raw) if "\\" in raw else raw


def _toml_escape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
    return _ESCAPES.get(match[3], match[3]) if match[3] else ""


# JSON.

_JSON_GAP = _Pattern(r"[ \t\n\r]*+")


class _Member(NamedTuple):
    key: str  # of a list, the place in it
    value: object
    line: int
    at: int  # where the value begins
    members: list[_Member] | None = None  # of the value, when they were walked over already


class _Json:
    """A walk over the members of JSON objects that knows their lines; the values are decoded at the speed of C."""

    def __init__(self, text: str) -> None:
        from json import JSONDecoder

        if text.count("{") + text.count("[") > _MOST_BRACKETS or text.count(",") > _MOST_COMMAS:
            raise _Unreadable("too many parts")
        self.text = text
        self.places = _Places(text)
        # Numbers stay text: nobody calculates with them, and a long one would take its time.
        self._raw_decode = JSONDecoder(parse_int=str, parse_float=str, strict=False).raw_decode

    def _decode(self, text: str, at: int) -> tuple[Any, int]:
        try:
            return self._raw_decode(text, at)
        except ValueError as error:
            raise _Unreadable(f"line {self.places.line(at)}: {error}") from error

    def _gap(self, at: int) -> int:
        text = self.text
        while text.startswith((" ", "\n", "\t", "\r"), at):
            match = _JSON_GAP.match(text, at)
            at = match.end() if match else at
        return at

    def _walk(self, at: int, deep: tuple[str, ...] = ()) -> tuple[list[_Member], int]:
        """The members of the value that begins here, and where it ends. Those of `deep` keys are walked in turn."""
        text, gap, decode, line = self.text, self._gap, self._decode, self.places.line
        at = gap(at)
        opening = text[at : at + 1]
        if opening not in ("{", "["):
            raise _Unreadable("it is not a JSON object")
        closing = "}" if opening == "{" else "]"
        members: list[_Member] = []
        at = gap(at + 1)
        while not (text.startswith(closing, at) and not members):
            key, place = str(len(members)), line(at)
            if opening == "{":
                if not text.startswith('"', at):
                    raise _Unreadable(f"line {place}: a key is missing")
                key, at = decode(text, at)
                at = gap(at)
                if not text.startswith(":", at):
                    raise _Unreadable(f"line {place}: a colon is missing")
                at = gap(at + 1)
            if key in deep and text.startswith(("{", "["), at):
                inner, end = self._walk(at)
                value: object = {member.key: member.value for member in inner}
                members.append(_Member(key, value, place, at, inner))
            else:
                value, end = decode(text, at)
                members.append(_Member(key, value, place, at))
            at = gap(end)
            if text.startswith(closing, at):
                break
            if not text.startswith(",", at):
                raise _Unreadable(f"line {line(at)}: a comma is missing")
            at = gap(at + 1)
        return members, at + 1

    def top(self, *deep: str) -> dict[str, _Member]:
        """The members of the whole; those that hold most of the file are best named as `deep`, to be read once."""
        return {member.key: member for member in self._walk(0, deep)[0]}

    def inside(self, member: _Member | None) -> Iterable[_Member]:
        """The members of a value; of doubled keys the last, as JSON readers have it. Nothing when it has none."""
        if member is None or not isinstance(member.value, (dict, list)):
            return ()
        members = self._walk(member.at)[0] if member.members is None else member.members
        return {inner.key: inner for inner in members}.values()


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _keys(value: object) -> Iterable[str]:
    return value.keys() if isinstance(value, dict) else ()


# YAML.

_YAML_QUOTED_KEY = _Pattern(r"(?:\"([^\"]*+)\"|'([^']*+)')\s*:(?:\s+|\Z)")
_YAML_PROPERTY = _Pattern(r"(?:[&!][^\s,\[\]{}]*+\s*+)++")


def _yaml(text: str) -> list[_Table]:
    """The documents of a YAML file: block mappings and lists, every scalar as text, block scalars skipped.

    Anchors and tags are dropped, aliases and merges are not followed. Flow values stay text; see `_flow`.
    """
    documents = [_Table(1)]
    stack: list[tuple[int, bool, _Table]] = [(-1, False, documents[0])]  # (indent, is a list's item, its table)
    scalar_indent = -1  # of the key whose block scalar is being skipped
    flow: tuple[_Table, str, int, list[str]] | None = None  # a flow value that goes on over lines
    for number, raw in _lines(text):
        line = raw.rstrip()
        content = line.lstrip(" ")
        if flow is not None:
            flow[3].append(_without_comment(content))
            joined = " ".join(flow[3])
            if _is_closed(joined) or len(flow[3]) > 100:
                flow[0][flow[1]] = _Leaf(joined, flow[2])
                flow = None
            continue
        if not content or content[0] == "#":
            continue
        indent = len(line) - len(content)
        if scalar_indent >= 0:
            if indent > scalar_indent:
                continue
            scalar_indent = -1
        if indent == 0 and content[:3] in ("---", "..."):
            if documents[-1]:
                documents.append(_Table(number))
            stack = [(-1, False, documents[-1])]
            continue
        while content[:2] == "- " or content == "-":
            while stack[-1][0] > indent or (stack[-1][0] == indent and stack[-1][1]):
                stack.pop()
            parent = stack[-1][2]
            parent.is_list = True
            key = str(len(parent))
            rest = content[1:].lstrip()
            if len(stack) > _DEEPEST:
                content = ""
                break
            if not rest or rest[:2] == "- " or _yaml_key(rest) is not None:
                table = _Table(number)
                parent[key] = table
                stack.append((indent, True, table))
                indent += len(content) - len(rest)
                content = rest
            else:
                leaf = _yaml_leaf(rest, number)
                parent[key] = leaf
                if leaf.text[:1] in ("[", "{") and not _is_closed(leaf.text):
                    flow = (parent, key, number, [leaf.text])
                content = ""
                if rest[0] in "|>":
                    scalar_indent = indent
        split = _yaml_key(content) if content else None
        if split is None:
            continue
        key, value = split
        while stack[-1][0] >= indent:
            stack.pop()
        if len(stack) > _DEEPEST:
            continue
        parent = stack[-1][2]
        value = _YAML_PROPERTY.sub("", value, count=1) if value[:1] in ("&", "!") else value
        if not value or value[0] == "#":
            table = _Table(number)
            parent[key] = table
            stack.append((indent, False, table))
            continue
        leaf = _yaml_leaf(value, number)
        parent[key] = leaf
        if value[0] in "|>":
            scalar_indent = indent
        elif value[0] in "[{" and not _is_closed(leaf.text):
            flow = (parent, key, number, [leaf.text])
    return documents


def _yaml_key(content: str) -> tuple[str, str] | None:
    """A line's key and what stands behind the colon."""
    if content[0] in "\"'":
        match = _YAML_QUOTED_KEY.match(content)
        return (match[1] or match[2] or "", content[match.end() :]) if match else None
    if content[0] in "[{":
        return None
    content = _without_comment(content)
    colon = content.find(": ")
    if colon < 0:
        if not content.endswith(":"):
            colon = content.find(":\t")
            return (content[:colon].rstrip(), content[colon + 1 :].strip()) if colon > 0 else None
        return content[:-1].rstrip(), ""
    return content[:colon].rstrip(), content[colon + 2 :].strip()


def _yaml_leaf(value: str, line: int) -> _Leaf:
    value = value.strip()
    if value[:1] in ("|", ">"):
        return _Leaf("", line)
    if value[:1] in ("[", "{"):
        return _Leaf(_without_comment(value), line)
    return _Leaf(_yaml_text(value), line)


def _without_comment(value: str) -> str:
    comment = value.find(" #")
    return value if comment < 0 else value[:comment].rstrip()


def _yaml_text(value: str) -> str:
    value = value.strip()
    if value[:1] in ('"', "'"):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value
    return "" if value[:1] == "#" else _without_comment(value)


def _is_closed(flow: str) -> bool:
    return flow.count("[") + flow.count("{") <= flow.count("]") + flow.count("}")


def _flow(node: _Leaf | _Table | None) -> _Table:
    """A node as a table, when it is one: a block as it is, `[a, b]` and `{a: b}` on their first level."""
    if isinstance(node, _Table):
        return node
    if node is None or node.text[:1] not in ("[", "{"):
        return _Table(0)
    table = _Table(node.line, is_list=node.text[0] == "[")
    depth, start, quoted = 0, 1, ""
    pieces: list[str] = []
    for position, char in enumerate(node.text[: _LONGEST_LINE * 10]):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in "[{":
            depth += 1
        elif char in "]}" or (char == "," and depth == 1):
            if depth == 1:
                pieces.append(node.text[start:position])
                start = position + 1
            depth -= char != ","
    for piece in pieces:
        bare = piece.strip()
        if not bare:
            continue
        if table.is_list:
            table[str(len(table))] = _yaml_leaf(bare, node.line)
        else:
            key, colon, value = bare.partition(":")
            if colon:
                table[_yaml_text(key)] = _yaml_leaf(value, node.line)
    return table


# Python.

_REQUIREMENT = _Pattern(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\[\]]*\])?\s*(.*)", re.DOTALL)
_EGG = _Pattern(r"[#&]egg=([\w.-]+)")
_PY_STRING = _Pattern(
    r"#[^\n]*+|\"\"\"(?:[^\"\\]++|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    r"|\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[\[\](){}]",
    re.DOTALL,
)
_PY_REQUIRES = _Pattern(
    r"(?:requires?|requirements?|required|extras|deps|dependencies)(?:_\w{1,20})?['\"]?(?:\s{0,20}\[[^\[\]\n]{1,40}\])?"
    r"\s{0,20}[=:]\s{0,20}(?:list\(|set\()?(?=[\[({])",
    re.IGNORECASE,
)
_PY_CONSOLE = _Pattern(r"\[?['\"]?\b(?:console|gui)_scripts\b['\"]?\]?\s{0,20}[=:]?\s{0,20}")
_PY_FIELD = _Pattern(
    r"(?:^|[\s,({])['\"]?(name|version|python_requires)['\"]?\s{0,20}[=:]\s{0,20}(['\"])([^'\"\n]{1,200})\2"
)
_ENTRY_POINT = _Pattern(r"\s*([\w.-]+)\s*=\s*[\w.]+\s*(?::|\Z)")


def _parse_requirement(text: str) -> tuple[str, str] | None:
    """Name and spec of a line such as `uvicorn[standard] >=0.31,<1 ; python_version < "3.13"`."""
    match = _REQUIREMENT.match(text[:_LONGEST_LINE])
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


def _add_requirements(draft: _Draft, leaves: Iterable[_Leaf]) -> None:
    for text, line in leaves:
        parsed = _parse_requirement(text)
        if parsed:
            draft.add(*parsed, line)


def _add_specs(draft: _Draft, table: _Table, runtimes: tuple[str, ...] = ("python",)) -> None:
    """A table of `name = spec` or `name = {version = spec, ...}`, as poetry, Pipfile, cargo and others write it."""
    for name, node in table.items():
        if isinstance(node, _Leaf):
            spec, line, real = node.text, node.line, ""
        else:
            several = [inner for _, inner in node.tables()] if node.is_list else [node]
            found = [text for inner in several if (text := inner.leaf("version").text)]
            sources = ("git", "url", "path", "file", "workspace", "hosted", "sdk")
            source = next((key for key in sources if key in node), "")
            spec, line = " || ".join(found), node.line
            if not spec and source:
                spec = f"{source}:{node.leaf(source).text}"
            real = node.leaf("package").text if draft.ecosystem == "rust" else ""
        if name in runtimes:
            draft.needs(name, spec, line)
        else:
            draft.add(real or name, spec, line)


def _read_pyproject(draft: _Draft, text: str) -> None:
    root = _Toml(text).read()
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
        _add_scripts(draft, "console", project.table(section))
    _read_poetry(draft, poetry)
    tool = root.table("tool")
    for name in ("pdm", "rye"):
        _add_scripts(draft, name, tool.table(name, "scripts"))
    for name in ("pdm", "rye", "uv"):
        _add_requirements(draft, tool.leaves(name, "dev-dependencies"))
        for group in tool.table(name, "dev-dependencies"):
            if not tool.table(name, "dev-dependencies").is_list:
                _add_requirements(draft, tool.leaves(name, "dev-dependencies", group))
    for name in ("poe", "taskipy", "pixi"):
        _add_scripts(draft, name, tool.table(name, "tasks"))
    for name in ("dependencies", "pypi-dependencies"):
        _add_specs(draft, tool.table("pixi", name))
    _add_scripts(draft, "tox", tool.table("tox", "env"))
    for name, env in tool.tables("hatch", "envs"):
        for key in ("dependencies", "extra-dependencies"):
            _add_requirements(draft, env.leaves(key))
        _add_scripts(draft, "hatch", env.table("scripts"), "" if name == "default" else f"{name}:")


def _read_poetry(draft: _Draft, poetry: _Table) -> None:
    for section in ("dependencies", "dev-dependencies"):
        _add_specs(draft, poetry.table(section))
    for _, group in poetry.tables("group"):
        _add_specs(draft, group.table("dependencies"))
    _add_scripts(draft, "console", poetry.table("scripts"))
    _add_scripts(draft, "poetry", poetry.table("scripts"))


def _add_scripts(draft: _Draft, tool: str, table: _Table, prefix: str = "") -> None:
    for name, node in table.items():
        if not name.startswith("_"):
            draft.run(tool, prefix + name, node.line)


def _read_pipfile(draft: _Draft, text: str) -> None:
    root = _Toml(text).read()
    for section in ("packages", "dev-packages"):
        _add_specs(draft, root.table(section))
    for key in ("python_full_version", "python_version"):
        draft.needs("python", *root.leaf("requires", key))
    _add_scripts(draft, "pipenv", root.table("scripts"))


def _read_pipfile_lock(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top("default", "develop")
    for section in ("default", "develop"):
        for name, value, line, *_ in json.inside(top.get(section)):
            version = _string(_get(value, "version"))
            draft.add(name, version, line, locked=True, direct=False)
    for member in json.inside(top.get("_meta")):
        if member.key == "requires":
            for _, spec, line, *_ in json.inside(member):
                draft.needs("python", _string(spec), line)


_LOCK_LINE = _Pattern(
    r"\[|name = |version = |source = |dependencies = |\s*\{ ?name = |\s+\"|requires-python|python-ver"
)
_LOCK_VALUE = _Pattern(r"[\w-]+ = [\"']([^\"']*)[\"']")
_LOCK_NAME = _Pattern(r"\{ ?name = \"([^\"]+)\"")
_LOCK_OWN = _Pattern(r"\b(?:virtual|editable|directory|workspace) = ")
_LOCK_ITEM = _Pattern(r"\"([^\" ]+)[^\"]*\"")


class _Locked:
    """One package of a lock file while it is being read."""

    def __init__(self, *, is_own: bool) -> None:
        self.name = self.version = ""
        self.line = 0
        self.is_own = is_own  # a package of the repository itself
        self.needs: list[str] = []


def _read_toml_lock(draft: _Draft, text: str) -> None:
    """poetry.lock, uv.lock, pdm.lock, pylock.toml, Cargo.lock: generated, so one fact a line.

    What a package of the repository itself depends on is direct; poetry and pdm do not say which that is.
    """
    is_cargo = draft.ecosystem == "rust"
    found: list[_Locked] = []
    is_package = is_head = False
    for number, match in _matches(_LOCK_LINE, text):
        line = match.string
        if line[0] == "[":
            is_head = line.startswith(("[[package]]", "[[packages]]"))
            is_package = is_head or (is_package and line.startswith(("[package", "[[package")))
            if is_head:
                found.append(_Locked(is_own=is_cargo))
            continue
        value = _LOCK_VALUE.match(line)
        if not is_package:
            if value and line.startswith(("requires-python", "python-ver")):
                draft.needs("python", value[1], number)
            continue
        package = found[-1]
        if is_head and value and line.startswith("name") and not package.name:
            package.name, package.line = value[1], number
        elif is_head and value and line.startswith("version"):
            package.version = value[1]
        elif is_head and line.startswith("source"):
            package.is_own = not is_cargo and _LOCK_OWN.search(line) is not None
        elif package.is_own:
            package.needs += _LOCK_NAME.findall(line) or (_LOCK_ITEM.findall(line) if is_cargo else [])
    own = [package for package in found if package.is_own]
    direct = {normal_name(name, draft.ecosystem) for package in own for name in package.needs}
    if len(own) == 1:
        draft.name, draft.version = own[0].name, own[0].version
    for package in found:
        if not package.is_own:
            is_direct = normal_name(package.name, draft.ecosystem) in direct
            draft.add(package.name, "", package.line, version=package.version, locked=True, direct=is_direct)


def _read_requirements(draft: _Draft, text: str) -> None:
    """A requirements or constraints file. One that pip-compile or uv made is a lock, and says who wanted what."""
    is_locked = re.search(r"^#[^\n]{0,80}autogenerated by (?:pip-compile|uv)", text[:1_000], re.MULTILINE) is not None
    is_continued = False
    for number, raw in _lines(text):
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
            draft.add(egg[1], line.removeprefix("-e").strip()[:_LONGEST_NAME], number, version="")
        elif line[0] != "-" and "://" not in line.partition("@")[0]:
            parsed = _parse_requirement(line)
            if parsed:
                is_direct = not is_locked or re.search(r"# via -r ", line) is not None
                draft.add(*parsed, number, locked=is_locked, direct=is_direct)


class _Setting(NamedTuple):
    section: str
    key: str
    values: list[_Leaf]  # one for each line


_INI_KEY = _Pattern(r"([^\s=:#;\[][^=:]{0,200}?)\s*[=:]\s*(.*)\Z")


def _ini(text: str) -> list[_Setting]:
    found: list[_Setting] = []
    section = ""
    for number, line in _lines(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] == "[":
            section = line[1:].partition("]")[0].strip()
            found.append(_Setting(section, "", []))
            found[-1].values.append(_Leaf(section, number))
        elif line[0] in " \t":
            if found and found[-1].key:
                found[-1].values.append(_Leaf(bare, number))
        else:
            match = _INI_KEY.match(line)
            if match:
                found.append(_Setting(section, match[1], [_Leaf(match[2].strip(), number)] if match[2] else []))
    return found


def _read_setup_cfg(draft: _Draft, text: str) -> None:
    for section, key, values in _ini(text):
        first = values[0] if values else _NOTHING
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
    _read_tox(draft, text, "tox:tox")


def _add_entry_point(draft: _Draft, text: str, line: int) -> None:
    match = _ENTRY_POINT.match(text[:_LONGEST_LINE])
    if match:
        draft.run("console", match[1], line)


_BRACES = _Pattern(r"\{([^{}]*)\}")


def _read_tox(draft: _Draft, text: str, main: str = "tox") -> None:
    for section, key, values in _ini(text):
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
                _add_requirements(
                    draft, [_Leaf(rest if colon and re.fullmatch(r"[\w,!{}-]+", factor) else text_, line)]
                )


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
    for match in _PY_STRING.finditer(text, at):
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


def _read_setup_py(draft: _Draft, text: str) -> None:
    """The literals of a setup.py: its lists of requirements wherever they are called so, its console scripts."""
    places = _Places(text)
    for match in _PY_FIELD.finditer(text, max(text.find("setup("), 0)):
        if match[1] == "python_requires":
            draft.needs("python", match[3], places.line(match.start(3)))
        elif match[1] == "name":
            draft.name = draft.name or match[3]
        else:
            draft.version = draft.version or match[3]
    end = 0
    for match in _PY_REQUIRES.finditer(text):
        if match.start() >= end and not text.startswith("python_", match.start() - 7):
            found, end = _py_strings(text, match.end())
            _add_requirements(draft, [_Leaf(literal, places.line(at)) for literal, at in found])
    end = 0
    for match in _PY_CONSOLE.finditer(text):
        if match.start() < end:
            continue
        if text[match.end() : match.end() + 1] in ("[", "("):
            found, end = _py_strings(text, match.end())
            for literal, at in found:
                _add_entry_point(draft, literal, places.line(at))
        else:  # entry points as the text of an ini file
            end = match.end() + 20_000
            first = places.line(match.end())
            for number, line in _lines(text[match.end() : end]):
                if line.strip()[:1] in ("[", '"', "'", ")"):
                    break
                _add_entry_point(draft, line, first + number - 1)


def _read_noxfile(draft: _Draft, text: str) -> None:
    waiting: str | None = None
    for number, line in _lines(text):
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


_CONDA = _Pattern(r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(?:\[[^\]]*\])?\s*([<>=!~ ].*)?\Z")


def _read_environment(draft: _Draft, text: str) -> None:
    """conda's environment.yml, with what it leaves to pip."""
    root = _yaml(text)[0]
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


_PY_VERSION = _Pattern(
    r"(?:__version__|version|VERSION|__VERSION__)\s*(?::[^=]{1,80})?=(?:\s*\w+\s*=)?\s*[uU]?(?:['\"]([^'\"]{1,80})['\"]|"
    r"\(([0-9]{1,9}(?:\s*,\s*[0-9]{1,9}){1,4}))"
)


def _read_python_version(draft: _Draft, text: str) -> None:
    for _, match in _matches(_PY_VERSION, text):
        draft.version = match[1] or re.sub(r"\s*,\s*", ".", match[2])
        return


# JavaScript.


def _read_package_json(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top()
    draft.name, draft.version = (_string(top[key].value) if key in top else "" for key in ("name", "version"))
    for section in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            draft.add(name, _string(spec), line)
    for name, _, line, *_ in json.inside(top.get("scripts")):
        draft.run("npm", name, line)
    for section in ("engines", "volta"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            if name != "extends":
                draft.needs(name, _string(spec), line)
    manager = top.get("packageManager")
    if manager:
        name, _, spec = _string(manager.value).partition("@")
        draft.needs(name, spec.partition("+")[0], manager.line)
    programs = top.get("bin")
    if programs and isinstance(programs.value, str):
        draft.run("console", draft.name.rpartition("/")[2], programs.line)
    for name, _, line, *_ in json.inside(programs):
        draft.run("console", name, line)


_NPM_SECTIONS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


def _read_package_lock(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top("packages")
    draft.name, draft.version = (_string(top[key].value) if key in top else "" for key in ("name", "version"))
    packages = top.get("packages")
    if packages is None:
        _add_npm_v1(draft, json, top.get("dependencies"), 0)
        return
    direct: set[str] = set()
    for path, value in packages.value.items() if isinstance(packages.value, dict) else ():
        if "node_modules/" not in path:  # the project itself and its workspaces
            for section in _NPM_SECTIONS:
                direct.update(_keys(_get(value, section)))
    for path, value, line, *_ in json.inside(packages):
        before, folder, name = path.rpartition("node_modules/")
        if folder and _get(value, "link") is not True:
            is_direct = "node_modules/" not in before and name in direct
            draft.add(name, "", line, version=_string(_get(value, "version")), locked=True, direct=is_direct)


def _add_npm_v1(draft: _Draft, json: _Json, section: _Member | None, depth: int) -> None:
    for member in json.inside(section):
        version = _string(_get(member.value, "version"))
        draft.add(member.key, "", member.line, version=version, locked=True, direct=False)
        if depth < 3 and _get(member.value, "dependencies"):
            for inner in json.inside(member):
                if inner.key == "dependencies":
                    _add_npm_v1(draft, json, inner, depth + 1)


_YARN_VERSION = _Pattern(r"  version:? \"?([^\"\s]+)")
_YARN_DEPENDENCY = _Pattern(r"    \"?((?:@[^/\s\"]+/)?[^@:\s\"]+)\"?[: ]")


def _read_yarn_lock(draft: _Draft, text: str) -> None:
    """yarn.lock of both kinds. Only the newer one names the repository's own packages, whose needs are direct."""
    entries: list[tuple[str, int, str]] = []
    direct: set[str] = set()
    name, line, is_own, in_needs = "", 0, False, False
    for number, raw in _lines(text):
        if raw[:1] not in (" ", "#", ""):
            head = raw.partition(",")[0].rstrip(":").strip('"')
            name, line = head[: head.find("@", 1)] if head.find("@", 1) > 0 else "", number
            is_own, in_needs = "@workspace:" in raw, False
        elif not name:
            continue
        elif raw[:3] != "   " and raw[:2] == "  ":
            match = _YARN_VERSION.match(raw)
            if match and not is_own:
                entries.append((name, line, match[1]))
            in_needs = is_own and "ependencies:" in raw
        elif in_needs:
            match = _YARN_DEPENDENCY.match(raw)
            if match:
                direct.add(match[1])
    for name, line, version in entries:
        draft.add(name, "", line, version=version, locked=True, direct=name in direct)


_PNPM_PACKAGE = _Pattern(r"['\"]?/?((?:@[^/@\s]+/)?[^/@\s]+)[@/]([0-9][^\s'\"(_:]*)")


def _read_pnpm_lock(draft: _Draft, text: str) -> None:
    section, in_needs = "", False
    direct: set[str] = set()
    found: dict[tuple[str, str], int] = {}
    for number, line in _lines(text):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not bare or indent > 6:
            continue
        if indent == 0:
            section = bare.partition(":")[0]
            in_needs = section in _NPM_SECTIONS
        elif section in ("packages", "snapshots"):
            match = _PNPM_PACKAGE.match(bare) if indent == 2 else None
            if match:
                found.setdefault((match[1], match[2]), number)
        elif section == "importers":
            if indent == 4:
                in_needs = bare.partition(":")[0] in _NPM_SECTIONS
            elif indent == 6 and in_needs:
                direct.add(bare.partition(":")[0].strip("'\""))
        elif in_needs and indent == 2:
            direct.add(bare.partition(":")[0].strip("'\""))
    for (name, version), number in found.items():
        draft.add(name, "", number, version=version, locked=True, direct=name in direct)


def _read_pnpm_workspace(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    for catalog in (root.table("catalog"), *(table for _, table in root.tables("catalogs"))):
        for name, node in catalog.items():
            if isinstance(node, _Leaf):
                draft.add(name, node.text, node.line)


def _read_bun_lock(draft: _Draft, text: str) -> None:
    json = _Json(re.sub(r",(?=[ \t\r\n]*+[}\]])", " ", text))  # JSON with commas before the end
    top = json.top("packages")
    direct: set[str] = set()
    workspaces = top["workspaces"].value if "workspaces" in top else None
    for workspace in workspaces.values() if isinstance(workspaces, dict) else ():
        for section in _NPM_SECTIONS:
            direct.update(_keys(_get(workspace, section)))
    for key, value, line, *_ in json.inside(top.get("packages")):
        name, _, version = (_string(value[0]) if isinstance(value, list) and value else "").rpartition("@")
        if name and not version.startswith("workspace:"):
            version = version if version[:1].isdigit() else ""
            draft.add(name, "", line, version=version, locked=True, direct=name == key and name in direct)


# Rust.


def _read_cargo(draft: _Draft, text: str) -> None:
    root = _Toml(text).read()
    package, workspace = root.table("package"), root.table("workspace")
    draft.name = package.leaf("name").text
    draft.version = package.leaf("version").text or workspace.leaf("package", "version").text
    for owner in (package, workspace.table("package")):
        draft.needs("rust", *owner.leaf("rust-version"))
    for owner in (root, workspace, *(table for _, table in root.tables("target"))):
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            _add_specs(draft, owner.table(section), ())
    for section in ("bin", "example"):
        for _, table in root.tables(section):
            name = table.leaf("name")
            draft.run("cargo", name.text, name.line)
    _add_scripts(draft, "cargo", root.table("alias"))


def _read_rust_toolchain(draft: _Draft, text: str) -> None:
    if "[" in text:
        draft.needs("rust", *_Toml(text).read().leaf("toolchain", "channel"))
    else:
        _read_one_runtime(draft, text, "rust")


# Go.

_GO_REQUIRE = _Pattern(r"\s*(?:require\s+)?\"?([\w.~-]+(?:/[\w.~!-]+)*)\"?\s+(v[0-9][\w.+-]*)\s*(//.*)?\Z")


def _read_go_mod(draft: _Draft, text: str) -> None:
    block = ""
    for number, line in _lines(text):
        bare = line.strip()
        word, _, rest = bare.partition(" ")
        rest = rest.partition("//")[0].strip()
        if block:
            if bare.startswith(")"):
                block = ""
        elif rest == "(" or bare.endswith("("):
            block = word.rstrip("(")
            continue
        elif word == "module":
            draft.name = rest.strip('"')
        elif word == "go":
            draft.needs("go", rest, number)
        elif word == "toolchain":
            draft.needs("go", rest.removeprefix("go"), number)
        if block == "require" or (not block and word == "require"):
            match = _GO_REQUIRE.match(line)
            if match:
                is_direct = "indirect" not in (match[3] or "")
                draft.add(match[1], match[2], number, version=match[2][1:], direct=is_direct)


_GO_SUM = _Pattern(r"(\S+) (v[^\s/]+) h1:")


def _read_go_sum(draft: _Draft, text: str) -> None:
    for number, match in _matches(_GO_SUM, text):
        draft.add(match[1], match[2], number, version=match[2][1:], locked=True, direct=False)


# Ruby.

_GEM = _Pattern(r"\s*gem[\s(]\s*(['\"])([^'\"]+)\1(.*)")
_GEM_DEPENDENCY = _Pattern(r"\s*\w+\.add_(?:\w+_)?dependency[\s(]\s*(?:['\"]|%q[<({\[])([\w.-]+)['\">)}\]](.*)")
_GEM_SPECS = _Pattern(r"\s*,\s*\[?\s*(?:['\"]|%q[<({\[])\s*([~<>=!]*\s*v?[0-9][\w.-]*)\s*['\">)}\]]\s*\]?")
_GEM_FIELD = _Pattern(r"\s*\w+\.(name|version|required_ruby_version)\s*=\s*\[?\s*(?:Gem::Requirement\.new\(?)?(.*)")
_RUBY_STRING = _Pattern(r"['\"]([^'\"]*)['\"]")


def _add_gem(draft: _Draft, name: str, rest: str, line: int) -> None:
    specs = []
    position = 0
    while match := _GEM_SPECS.match(rest, position):
        specs.append(match[1].strip())
        position = match.end()
    draft.add(name, ", ".join(specs), line)


def _read_gemfile(draft: _Draft, text: str) -> None:
    for number, line in _lines(text):
        gem = _GEM.match(line)
        if gem:
            _add_gem(draft, gem[2], gem[3], number)
            continue
        ruby = re.match(r"\s*ruby[\s(]\s*(['\"][^#]*)", line)
        if ruby:
            specs = (text for text in _RUBY_STRING.findall(ruby[1]) if re.match(r"[~<>=! ]*[0-9]", text))
            draft.needs("ruby", ", ".join(specs), number)


def _read_gemspec(draft: _Draft, text: str) -> None:
    for number, line in _lines(text):
        gem = _GEM_DEPENDENCY.match(line)
        if gem:
            _add_gem(draft, gem[1], gem[2], number)
            continue
        new = re.match(r"\s*Gem::Specification\.new[\s(]\s*['\"]([\w.-]+)['\"]", line)
        if new:
            draft.name = new[1]
        field = _GEM_FIELD.match(line)
        strings = _RUBY_STRING.findall(field[2]) if field else []
        if field and strings:
            if field[1] == "name":
                draft.name = strings[0]
            elif field[1] == "version":
                draft.version = strings[0] if strings[0][:1].isdigit() else ""
            else:
                draft.needs("ruby", ", ".join(strings), number)
        programs = re.match(r"\s*\w+\.executables\s*(?:=|<<)\s*(?:%w[\[({<]([^\])}>]*)|(.*))", line)
        if programs:
            for name in (programs[1] or "").split() or _RUBY_STRING.findall(programs[2] or ""):
                draft.run("console", name, number)


_GEM_LOCKED = _Pattern(r"    ([\w.-]+) \(([^()\s]+)\)\Z")
_GEM_WANTED = _Pattern(r"  ([\w.-]+)!?(?: \(|!?\Z)")


def _read_gemfile_lock(draft: _Draft, text: str) -> None:
    section = ""
    direct: set[str] = set()
    found: dict[tuple[str, str], tuple[int, bool]] = {}
    for number, line in _lines(text):
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


# PHP.


def _read_composer(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top()
    draft.name, draft.version = (_string(top[key].value) if key in top else "" for key in ("name", "version"))
    for section in ("require", "require-dev"):
        for name, spec, line, *_ in json.inside(top.get(section)):
            if name == "php":
                draft.needs("php", _string(spec), line)
            elif "/" in name:
                draft.add(name, _string(spec), line)
    for name, _, line, *_ in json.inside(top.get("scripts")):
        draft.run("composer", name, line)


def _read_composer_lock(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top("packages", "packages-dev")
    for section in ("packages", "packages-dev"):
        for package in json.inside(top.get(section)):
            for key, value, line, *_ in json.inside(package):
                if key == "name":
                    version = _string(_get(package.value, "version")).removeprefix("v")
                    version = "" if version.startswith("dev-") else version
                    draft.add(_string(value), "", line, version=version, locked=True, direct=False)
    for name, spec, line, *_ in json.inside(top.get("platform")):
        if name == "php":
            draft.needs("php", _string(spec), line)


# Java and its relatives.

_XML_TAG = _Pattern(r"<(/?)([A-Za-z_][\w.:-]{0,100})((?:\s[^<>]{0,1000})?)>([^<]{0,500})")
_XML_ATTRIBUTE = _Pattern(r"([A-Za-z]{1,40})\s{0,10}=\s{0,10}(?:\"([^\"<>]*)\"|'([^'<>]*)')")


def _without_markup(text: str) -> str:
    """XML without its comments, declarations and CDATA, at the same lines. No entity is ever looked up."""
    if "<!" not in text:
        return text
    pieces: list[str] = []
    position = 0
    ends = {"<!--": "-->", "<![CDATA[": "]]>"}
    while (start := text.find("<!", position)) >= 0:
        pieces.append(text[position:start])
        opening = next((known for known in ends if text.startswith(known, start)), "")
        if opening:
            end = text.find(ends[opening], start + len(opening))
            stop = end + 3 if end >= 0 else len(text)
        else:  # <!DOCTYPE x [ <!ENTITY ...> ]>: up to the bracket that ends it
            end, subset = text.find(">", start), text.find("[", start)
            if 0 <= subset < end:
                close = text.find("]", subset)
                end = text.find(">", close) if close >= 0 else -1
            stop = end + 1 if end >= 0 else len(text)
        pieces.append("\n" * text.count("\n", start, stop))
        position = stop
    return "".join([*pieces, text[position:]])


def _xml_leaves(text: str) -> Iterator[tuple[str, list[str], str, str, int]]:
    """The tags of XML in their order: what it is ("open", "close", "whole"), path, attributes, text, line."""
    text = _without_markup(text)
    places = _Places(text)
    path: list[str] = []
    for match in _XML_TAG.finditer(text):
        closing, name, attributes, inner = match.groups()
        if closing:
            yield "close", path, "", "", 0
            if name in path[-4:]:  # closes what a broken file left open
                while path.pop() != name:
                    pass
            continue
        line = places.line(match.start())
        if len(path) > _DEEPEST:
            raise _Unreadable(f"line {line}: nested too deeply")
        path.append(name)
        is_whole = attributes.endswith("/")
        yield ("whole" if is_whole else "open"), path, attributes, inner.strip(), line
        if is_whole:
            path.pop()


_MAVEN_PROPERTY = _Pattern(r"\$\{([\w.-]{1,100})\}")
_JAVA_PROPERTIES = ("java.version", "maven.compiler.release", "maven.compiler.source", "maven.compiler.target")


def _read_pom(draft: _Draft, text: str) -> None:
    properties: dict[str, str] = {}
    wanted: list[tuple[dict[str, str], int]] = []
    open_items: list[tuple[int, dict[str, str], list[int]]] = []  # (depth, fields, line of the artifact)
    parent: dict[str, str] = {}
    for what, path, _, inner, line in _xml_leaves(text):
        if what == "close":
            if open_items and len(path) == open_items[-1][0]:
                _, fields, lines = open_items.pop()
                wanted.append((fields, lines[-1]))
            continue
        name, depth = path[-1], len(path)
        if what == "open" and name in ("dependency", "plugin", "parent", "extension") and len(open_items) < _DEEPEST:
            open_items.append((depth, {"kind": name}, [line]))
        elif open_items and depth == open_items[-1][0] + 1 and name in ("groupId", "artifactId", "version"):
            open_items[-1][1][name] = inner
            if name == "artifactId":
                open_items[-1][2].append(line)
            if open_items[-1][1]["kind"] == "parent":
                parent[name] = inner
        elif depth == 3 and path[1] == "properties" and len(properties) < 10_000:
            properties[name] = inner
            if name in _JAVA_PROPERTIES and "$" not in inner:
                draft.needs("java", inner, line)
        elif depth == 2 and name == "artifactId":
            draft.name = inner
        elif depth == 2 and name == "groupId":
            properties["project.groupId"] = inner
        elif depth == 2 and name == "version":
            draft.version = inner
        elif depth > 3 and name in ("release", "source", "target") and re.fullmatch(r"[0-9.]{1,6}", inner):
            draft.needs("java", inner, line)
    draft.version = draft.version or parent.get("version", "")
    properties.setdefault("project.version", draft.version)
    properties.setdefault("project.artifactId", draft.name)
    properties.setdefault("project.groupId", parent.get("groupId", ""))
    draft.version = _filled(draft.version, properties)
    for fields, line in wanted:
        artifact = _filled(fields.get("artifactId", ""), properties)
        group = fields.get("groupId") or ("org.apache.maven.plugins" if fields["kind"] == "plugin" else "")
        if artifact:
            group = _filled(group, properties)
            spec = fields.get("version", "")
            pin = _pinned(_filled(spec, properties), "java")
            draft.add(f"{group}:{artifact}" if group else artifact, spec, line, version=pin)


def _filled(text: str, properties: dict[str, str]) -> str:
    """A text with its `${properties}` filled in; what is not known stays as it is."""
    for _ in range(3):
        if "$" not in text or len(text) > _LONGEST_NAME:
            break
        text = _MAVEN_PROPERTY.sub(lambda match: properties.get(match[1], match[0])[:_LONGEST_NAME], text)
    return text


_GRADLE_VALUE = _Pattern(
    r"\s*(?:(?:def|val|var|final|const|private|String)\s+){0,3}(?:(?:ext|extra|project|rootProject)\.)?"
    r"(?:set\(\s*)?(?:ext\[|extra\[)?['\"]?([A-Za-z_][\w.]{0,80})['\"]?\]?\s*(?:=|,|\sby\s+extra\()\s*['\"]([^'\"]{1,200})['\"]"
)
_GRADLE_DEPENDENCY = _Pattern(
    r"\s*['\"]?[A-Za-z]\w{1,60}['\"]?[\s(][^'\"]{0,120}['\"]([\w.-]{1,120}):([\w.-]{1,120})(?::([^'\":@]{1,120}))?(?:[:@][^'\"]{0,60})?['\"]"
)
_GRADLE_MAP = _Pattern(
    r".{0,200}?\bgroup\s*[:=]\s*['\"]([^'\"]{1,120})['\"]\s*,\s*(?:name|module)\s*[:=]\s*['\"]([^'\"]{1,120})['\"]"
    r"(?:\s*,\s*version\s*[:=]\s*['\"]([^'\"]{1,120})['\"])?"
)
_GRADLE_PLUGIN = _Pattern(
    r"\s*(id|kotlin)[\s(]\s*['\"]([\w.-]{1,120})['\"]\s*\)?(?:\s*\.?version[\s(]\s*['\"]?([^'\"\s)]{1,120}))?"
)
_GRADLE_TASK = _Pattern(
    r"\s*(?:(?:val|def)\s+(\w+)\s+by\s+tasks\.(?:registering|creating)|(?:val\s+\w+\s*=\s*)?tasks\.(?:register|create)\s*"
    r"(?:<[^<>]{0,80}>)?\s*\(\s*['\"]([^'\"]{1,80})|task[\s(]\s*['\"]?([A-Za-z_][\w-]*))"
)
_GRADLE_JAVA = _Pattern(
    r"(?:JavaLanguageVersion\.of\(|jvmToolchain\(|(?:source|target)Compatibility\s*=?\s*(?:JavaVersion\.VERSION_)?['\"]?|"
    r"jvmTarget\s*=\s*['\"])(1[._])?([0-9]{1,2})\b"
)


def _read_gradle(draft: _Draft, text: str) -> None:
    values: dict[str, str] = {}
    wanted: list[tuple[str, str, int]] = []
    for number, line in _lines(text):
        bare = line.lstrip()
        if bare.startswith(("//", "*", "/*")):
            continue
        value = _GRADLE_VALUE.match(line)
        if value:
            values.setdefault(value[1], value[2])
            if value[1] == "rootProject.name" or (value[1] == "name" and "rootProject" in line):
                draft.name = value[2]
        own = re.match(r"version\s*=?\s*['\"]([^'\"$]+)['\"]", line)
        if own:
            draft.version = own[1]
        java = _GRADLE_JAVA.search(line)
        if java:
            draft.needs("java", java[2], number)
        plugin = _GRADLE_PLUGIN.match(line)
        if plugin:
            name = "kotlin" if plugin[1] == "kotlin" else plugin[2]
            wanted.append((name, plugin[3] or "", number))
            continue
        found = _GRADLE_DEPENDENCY.match(line) or (_GRADLE_MAP.match(line) if "group" in line else None)
        if found:
            wanted.append((f"{found[1]}:{found[2]}", found[3] or "", number))
            continue
        task = _GRADLE_TASK.match(line)
        if task:
            draft.run("gradle", task[1] or task[2] or task[3], number)
    for name, spec, number in wanted:
        plain = re.sub(r"\$\{?([\w.]{1,80})\}?", lambda match: values.get(match[1], match[0]), spec)
        draft.add(name, spec, number, version=_pinned(plain, "java"))


def _read_version_catalog(draft: _Draft, text: str) -> None:
    root = _Toml(text).read()
    for section in ("libraries", "plugins"):
        for node in root.table(section).values():
            if isinstance(node, _Leaf):
                head, _, spec = node.text.rpartition(":")
                draft.add(head or spec, spec if head else "", node.line)
                continue
            name = node.leaf("module").text or node.leaf("id").text
            name = name or f"{node.leaf('group').text}:{node.leaf('name').text}"
            version: _Leaf | _Table | None = node.get("version")
            if isinstance(version, _Table) and "ref" in version:
                version = root.table("versions").get(version.leaf("ref").text)
            if isinstance(version, _Table):
                keys = ("strictly", "require", "prefer")
                version = next((leaf for key in keys if (leaf := version.leaf(key)).text), _NOTHING)
            draft.add(name, version.text if version is not None else "", node.line)


def _read_gradle_wrapper(draft: _Draft, text: str) -> None:
    for number, match in _matches(_Pattern(r"distributionUrl=.{0,200}/gradle-([0-9][\w.]*)-"), text):
        draft.needs("gradle", match[1], number)


# .NET.


def _read_msbuild(draft: _Draft, text: str) -> None:
    properties: dict[str, str] = {}
    wanted: list[tuple[str, str, int]] = []
    for what, path, attributes, inner, line in _xml_leaves(text):
        if what == "close":
            continue
        name = path[-1]
        if name in ("PackageReference", "PackageVersion", "GlobalPackageReference", "package"):
            fields = {key: first or second for key, first, second in _XML_ATTRIBUTE.findall(attributes)}
            package = fields.get("Include") or fields.get("Update") or fields.get("id") or ""
            wanted.append((package, fields.get("Version") or fields.get("version") or "", line))
        elif len(path) > 1 and path[-2].startswith("Package") and name == "Version" and wanted:
            wanted[-1] = (wanted[-1][0], inner, wanted[-1][2])
        elif len(path) > 1 and path[-2] == "PropertyGroup" and len(properties) < 10_000:
            properties[name] = inner
            if name in ("TargetFramework", "TargetFrameworks"):
                for target in inner.split(";"):
                    match = re.match(r"net(?:coreapp|standard)?([0-9]+\.[0-9]+)", target.strip())
                    if match:
                        draft.needs("dotnet", match[1], line)
    draft.name = properties.get("PackageId") or properties.get("AssemblyName") or ""
    draft.version = properties.get("Version") or properties.get("VersionPrefix") or ""
    for package, spec, line in wanted:
        plain = re.sub(r"\$\((\w{1,80})\)", lambda match: properties.get(match[1], match[0]), spec)
        draft.add(package, spec, line, version=_pinned(plain, "dotnet"))


def _read_global_json(draft: _Draft, text: str) -> None:
    json = _Json(text)
    for key, value, line, *_ in json.inside(json.top().get("sdk")):
        if key == "version":
            draft.needs("dotnet", _string(value), line)


# Elixir, Dart, Swift.

_MIX_DEPENDENCY = _Pattern(r"\{\s*:(\w+)\s*,\s*(?:\"([^\"]*)\")?")
_MIX_LOCK = _Pattern(r"\s*\"(\w+)\":\s*\{:hex,\s*:\w+,\s*\"([^\"]+)\"")
_MIX_ALIAS = _Pattern(r"\s+(?:\"([\w.]+)\"|(\w+)):\s*(?:\[|&|\")")


def _read_mix(draft: _Draft, text: str) -> None:
    function = ""
    attributes: dict[str, str] = {}
    for number, line in _lines(text):
        attribute = re.match(r"\s*@(\w+)\s+\"([^\"]+)\"", line)
        if attribute and len(attributes) < 1_000:
            attributes["@" + attribute[1]] = attribute[2]
        start = re.match(r"\s*defp?\s+(\w+)", line)
        if start:
            function = start[1]
        if function == "aliases":
            alias = _MIX_ALIAS.match(line)
            if alias:
                draft.run("mix", alias[1] or alias[2], number)
        elif function == "project":
            field = re.match(r"\s*(?:\[\s*)?(app|version|elixir):\s*(?::|\"|(?=@))([^\",\s][^\",]*)", line)
            value = attributes.get(field[2].strip(), field[2]) if field else ""
            if field and field[1] == "app":
                draft.name = value
            elif field and field[1] == "version":
                draft.version = "" if value.startswith("@") else value
            elif field and not value.startswith("@"):
                draft.needs("elixir", value, number)
        if function.endswith("deps") and not line.lstrip().startswith("#"):
            for match in _MIX_DEPENDENCY.finditer(line):
                draft.add(match[1], match[2] or "", number)


def _read_mix_lock(draft: _Draft, text: str) -> None:
    for number, match in _matches(_MIX_LOCK, text):
        draft.add(match[1], "", number, version=match[2], locked=True, direct=False)


def _read_pubspec(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    draft.name, draft.version = root.leaf("name").text, root.leaf("version").text
    for key in ("sdk", "flutter"):
        draft.needs("dart" if key == "sdk" else key, *root.leaf("environment", key))
    for section in ("dependencies", "dev_dependencies", "dependency_overrides"):
        _add_specs(draft, root.table(section), ())


def _read_pubspec_lock(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    for name, table in root.tables("packages"):
        is_direct = table.leaf("dependency").text.startswith("direct")
        draft.add(name, "", table.line, version=table.leaf("version").text, locked=True, direct=is_direct)
    for key, node in root.table("sdks").items():
        if isinstance(node, _Leaf):
            draft.needs(key, node.text, node.line)


_SWIFT_PACKAGE = _Pattern(
    r"\.package\(\s{0,40}(?:name:\s{0,10}\"[^\"\n]{0,100}\",\s{0,40})?(url|path|id):\s{0,10}\"([^\"\n]{1,300})\""
)
_SWIFT_SPEC = _Pattern(
    r"\s{0,40},\s{0,40}(?:(from|exact|branch|revision):\s{0,10}\"([^\"\n]{1,80})\""
    r"|\.(exact|branch|revision)\(\s{0,10}\"([^\"\n]{1,80})\"|\.upToNext(Major|Minor)\(from:\s{0,10}\"([^\"\n]{1,80})\""
    r"|\"([^\"\n]{1,80})\"\s{0,10}(\.\.[.<])\s{0,10}\"([^\"\n]{1,80})\")"
)


def _read_package_swift(draft: _Draft, text: str) -> None:
    places = _Places(text)
    tools = re.match(r"//\s*swift-tools-version:\s*([0-9.]+)", text)
    if tools:
        draft.needs("swift", tools[1], 1)
    own = re.search(r"\bPackage\(\s{0,40}name:\s{0,10}\"([^\"\n]{1,100})\"", text)
    draft.name = own[1] if own else ""
    for match in _SWIFT_PACKAGE.finditer(text):
        name = match[2].rstrip("/").removesuffix(".git").rpartition("/")[2]
        spec, pin = ("" if match[1] != "path" else f"path:{match[2]}"), ""
        found = _SWIFT_SPEC.match(text, match.end())
        if found:
            word, value = found[1] or found[3], found[2] or found[4]
            if word == "exact":
                spec = pin = value
            elif word:
                spec = f"{word}: {value}"
            elif found[5]:
                spec = f"{'^' if found[5] == 'Major' else '~'}{found[6]}"
            else:
                spec = f"{found[7]}{found[8]}{found[9]}"
        draft.add(name, spec, places.line(match.start(2)), version=pin)


def _read_package_resolved(draft: _Draft, text: str) -> None:
    json = _Json(text)
    top = json.top("pins")
    pins = top.get("pins") or next((item for item in json.inside(top.get("object")) if item.key == "pins"), None)
    for pin in json.inside(pins):
        version = _string(_get(_get(pin.value, "state"), "version"))
        for key, value, line, *_ in json.inside(pin):
            if key in ("identity", "package"):
                draft.add(_string(value), "", line, version=version, locked=True, direct=False)


# What can be run by name.

_MAKE_SKIP = _Pattern(
    r"(?:ifeq|ifneq|ifdef|ifndef|else|endif|-?include|sinclude|export|unexport|override|vpath|private|undefine)\b"
    r"|\$[({][a-z-]+[ \t]"
)
_MAKE_VALUE = _Pattern(r"\s*([\w.-]{1,80})\s*(?:::?:?|\?)?=\s*([^#]*)")
_MAKE_REFERENCE = _Pattern(r"\$[({]([\w.-]{1,80})[)}]")
_MAKE_CALL = _Pattern(r"\$[({][^(){}]*[)}]")


class _Makefile:
    """The targets of a makefile's rules, and what .PHONY names besides. Variables that hold words are filled in."""

    def __init__(self, draft: _Draft) -> None:
        self.draft = draft
        self.values: dict[str, str] = {}
        self.phony: list[tuple[str, int]] = []

    def read(self, text: str) -> None:
        logical: list[tuple[int, str]] = []  # a line with those that it goes on in
        is_definition = False
        for number, line in _lines(text):
            if not logical and (not line or line[0] in "\t#"):
                continue
            is_continued = line.endswith("\\")
            logical.append((number, line[:-1] if is_continued else line))
            if is_continued and len(logical) < 1_000:
                continue
            first = logical[0][1].lstrip(" ")
            if is_definition or re.match(r"(?:override\s+)?define\b", first):
                is_definition = not first.startswith("endef")
            elif not _MAKE_SKIP.match(first):
                self._rule(logical)
            logical = []
        for name, number in self.phony:
            self.draft.run("make", name, number)

    def _rule(self, logical: list[tuple[int, str]]) -> None:
        targets: list[tuple[str, int]] = []
        needs: list[tuple[str, int]] = []
        is_head = True
        for number, line in logical:
            piece = line.partition("#")[0]
            if is_head:
                # Colons and equal signs in `$(A:b=c)` are not the rule's.
                stop = re.search(r"[:=]", _MAKE_CALL.sub(lambda match: "$" * len(match[0]), piece))
                if stop is None:
                    targets += self._words(piece, number)
                    continue
                head, rest = piece[: stop.start()], piece[stop.start() :]
                if re.match(r":{0,3}=", rest):
                    self._remember(logical)
                    return
                targets += self._words(head.rstrip("&"), number)
                piece = rest.lstrip(":")
                is_head = False
            needs += self._words(piece.partition(";")[0], number)
        if is_head:
            return
        for name, number in targets:
            if name == ".PHONY":
                self.phony += [(word, at) for word, at in needs if "$" not in word and "%" not in word]
            elif "%" not in name and "$" not in name and (name[0] != "." or "/" in name):
                self.draft.run("make", name, number)

    def _words(self, text: str, number: int) -> list[tuple[str, int]]:
        if "$" in text:
            text = _MAKE_REFERENCE.sub(lambda match: self.values.get(match[1], match[0]), text)
        return [(word, number) for word in text.split()]

    def _remember(self, logical: list[tuple[int, str]]) -> None:
        """A variable, when it holds nothing but words; one that grows or calls something is not known."""
        match = _MAKE_VALUE.match(" ".join(line for _, line in logical)[:_LONGEST_LINE])
        if match and "$" not in match[2] and len(self.values) < 1_000:
            self.values[match[1]] = match[2].strip()


def _read_makefile(draft: _Draft, text: str) -> None:
    _Makefile(draft).read(text)


_JUST_RECIPE = _Pattern(r"@?([A-Za-z_][\w-]*)(?:\s+(?:[^:\"'`]++|\"[^\"]*+\"|'[^']*+'|`[^`]*+`)*+)?:(?!=)")


def _read_justfile(draft: _Draft, text: str) -> None:
    for number, line in _lines(text):
        alias = re.match(r"alias\s+([\w-]+)\s*:=", line)
        recipe = None if alias or line.startswith(("set ", "export ", "import ", "mod ")) else _JUST_RECIPE.match(line)
        if alias or recipe:
            draft.run("just", (alias or recipe)[1], number)  # type: ignore[index]


def _read_taskfile(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    for name, node in root.table("tasks").items():
        draft.run("task", name, node.line)
        if isinstance(node, _Table):
            for alias in _flow(node.get("aliases")).values():
                if isinstance(alias, _Leaf):
                    draft.run("task", alias.text, alias.line)


_RAKE_NAME = r"(?::\"?|['\"])([\w:.-]+)|([A-Za-z_]\w*):(?!:)"
_RAKE_TASK = _Pattern(rf"(\s*)(?:multitask|task)[\s(]\s*(?:{_RAKE_NAME})")
_RAKE_NAMESPACE = _Pattern(r"(\s*)namespace[\s(]\s*(?::\"?|['\"])([\w:-]+)")
_RAKE_CLASS = _Pattern(r"(\s*)[A-Z][\w:]*Task\.new(?:[\s(]\s*[:'\"]([\w:-]+))?")
_RAKE_DEFAULTS = {"RSpec": "spec", "RuboCop": "rubocop", "TestTask": "test", "RDoc": "rdoc", "Yard": "yard"}


def _read_rakefile(draft: _Draft, text: str) -> None:
    """Tasks with the namespaces that they stand in, told by indentation."""
    spaces: list[tuple[int, str]] = []
    for number, line in _lines(text):
        bare = line.lstrip()
        if not bare or bare[0] == "#":
            continue
        indent = len(line) - len(bare)
        while spaces and indent <= spaces[-1][0]:
            spaces.pop()
        namespace = _RAKE_NAMESPACE.match(line)
        if namespace:
            if len(spaces) < _DEEPEST:
                spaces.append((indent, namespace[2]))
            continue
        task, made = _RAKE_TASK.match(line), _RAKE_CLASS.match(line)
        name = ""
        if task:
            name = task[2] or task[3]
        elif made:
            name = made[2] or next((name for key, name in _RAKE_DEFAULTS.items() if key in made[0]), "")
        if name:
            draft.run("rake", ":".join([*(space for _, space in spaces), name]), number)


def _read_procfile(draft: _Draft, text: str) -> None:
    for number, match in _matches(_Pattern(r"([A-Za-z0-9_-]+):\s"), text):
        draft.run("procfile", match[1], number)


# Containers.

_FROM = _Pattern(r"\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_ARG = _Pattern(r"\s*ARG\s+(\w+)=[\"']?([^\"'\s]*)", re.IGNORECASE)
_EXPOSE = _Pattern(r"\s*EXPOSE\s+(.*)", re.IGNORECASE)
_DEFAULT = _Pattern(r"\$\{(\w{1,80})(?::?-([^{}$]{0,200}))?\}|\$(\w{1,80})")


def _add_image(draft: _Draft, image: str, line: int, values: dict[str, str] | None = None) -> None:
    """An image and its tag; the version is the number that the tag begins with."""
    known = values or {}

    def fill(match: re.Match[str]) -> str:
        return known.get(match[1] or match[3], match[2] or match[0])

    plain = _DEFAULT.sub(fill, image[:_LONGEST_NAME])
    name, _, digest = plain.partition("@")
    colon = name.rfind(":")
    tag = ""
    if colon > name.rfind("/"):
        name, tag = name[:colon], name[colon + 1 :]
    written = image.partition("@")[0].rpartition(":")[2] if tag and tag not in image else tag
    if not name or "$" in name or name == "scratch":
        return
    number = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", tag)
    if draft.ecosystem == "docker":
        draft.add(name, written or digest, line, version=number[1] if number else "")


def _read_dockerfile(draft: _Draft, text: str) -> None:
    stages: set[str] = set()
    values: dict[str, str] = {}
    for number, line in _lines(text):
        arg = _ARG.match(line)
        if arg and len(values) < 1_000:
            values[arg[1]] = arg[2]
        image = _FROM.match(line)
        if image:
            if image[1].lower() not in stages:
                _add_image(draft, image[1], number, values)
            if image[2]:
                stages.add(image[2].lower())
        expose = _EXPOSE.match(line)
        if expose:
            for word in expose[1].partition("#")[0].split():
                draft.listen(word.partition("/")[0], number)


def _read_compose(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    draft.name = root.leaf("name").text
    for name, service in root.tables("services"):
        draft.serve(name, service.line)
        draft.serve(*service.leaf("container_name"))
        image = service.leaf("image")
        if image.text:
            _add_image(draft, image.text, image.line)
        for key in ("ports", "expose"):
            for node in _flow(service.get(key)).values():
                if isinstance(node, _Leaf):
                    _add_port_mapping(draft, node)
                else:
                    for side in ("target", "published"):
                        draft.listen(*node.leaf(side))


def _add_port_mapping(draft: _Draft, leaf: _Leaf) -> None:
    """`127.0.0.1:8080:80/tcp`, `${PORT:-8080}:80`: the ports on both sides."""
    plain = _DEFAULT.sub(lambda match: match[2] or "", leaf.text[:200]).partition("/")[0]
    for side in re.sub(r"\[[^\]]*\]", "", plain).split(":"):
        draft.listen(side, leaf.line)


_KUBERNETES_PORT = _Pattern(
    r"\s*(?:- +)?(?:containerPort|hostPort|targetPort|nodePort|port)\s*:\s*[\"']?([0-9]{1,5})[\"']?\s*(?:#.*)?\Z"
)
_KUBERNETES_IMAGE = _Pattern(r"\s*(?:- +)?image\s*:\s*[\"']?([^\s\"'{}#]+)[\"']?\s*(?:#.*)?\Z")
_KUBERNETES_KIND = _Pattern(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)


def _read_kubernetes(draft: _Draft, text: str) -> None:
    """Ports and images of Kubernetes objects, line by line: templates are no YAML. Other YAML says nothing here."""
    if not _KUBERNETES_KIND.search(text) or "apiVersion:" not in text:
        return
    draft.ecosystem = "docker"  # where its images belong
    in_metadata = False
    for number, line in _lines(text):
        port = _KUBERNETES_PORT.match(line)
        if port:
            draft.listen(port[1], number)
            continue
        image = _KUBERNETES_IMAGE.match(line)
        if image:
            _add_image(draft, image[1], number)
        if line[:1] not in ("", " ", "#"):
            in_metadata = line.startswith("metadata:")
        elif in_metadata:
            name = re.match(r"  name:\s*[\"']?([\w.-]+)[\"']?\s*\Z", line)
            if name:
                draft.serve(name[1], number)


def _read_chart(draft: _Draft, text: str) -> None:
    root = _yaml(text)[0]
    draft.name, draft.version = root.leaf("name").text, root.leaf("version").text
    draft.needs("kubernetes", *root.leaf("kubeVersion"))
    for _, item in root.tables("dependencies"):
        name = item.leaf("name")
        draft.add(name.text, item.leaf("version").text, name.line)


# Runtimes and versions that have a file of their own.

_TOOL_NAMES = {"nodejs": "node", "golang": "go", "dotnet-core": "dotnet"}


def _read_one_runtime(draft: _Draft, text: str, runtime: str) -> None:
    for number, line in _lines(text):
        word = line.partition("#")[0].strip()
        if word:
            word = re.sub(rf"\A(?:{runtime}-)?v?(?=[0-9])", "", word)
            draft.needs(runtime, word, number)
            return


def _read_node_version(draft: _Draft, text: str) -> None:
    _read_one_runtime(draft, text, "node")


def _read_pyenv_version(draft: _Draft, text: str) -> None:
    _read_one_runtime(draft, text, "python")


def _read_ruby_version(draft: _Draft, text: str) -> None:
    _read_one_runtime(draft, text, "ruby")


def _read_java_version(draft: _Draft, text: str) -> None:
    _read_one_runtime(draft, text, "java")


def _read_go_version(draft: _Draft, text: str) -> None:
    _read_one_runtime(draft, text, "go")


def _read_tool_versions(draft: _Draft, text: str) -> None:
    for number, match in _matches(_Pattern(r"\s*([A-Za-z][\w-]*)[ \t]+v?([^\s#]+)"), text):
        version = match[2]
        if match[1] == "java":
            version = re.sub(r"\A[a-z][a-z0-9]*-(?=[0-9])", "", version)
        draft.needs(_TOOL_NAMES.get(match[1], match[1]), version, number)


def _read_version(draft: _Draft, text: str) -> None:
    match = re.match(r"\s{0,100}v?([0-9]{1,9}(?:\.[0-9]{1,9}){1,4}[\w.+-]{0,60})\s*(?:\n|\Z)", text)
    if match:
        draft.version = match[1]


# Which file is read how.

_Reader = Callable[[_Draft, str], None]

_BY_NAME: dict[str, tuple[str, _Reader]] = {
    "pyproject.toml": ("python", _read_pyproject),
    "setup.cfg": ("python", _read_setup_cfg),
    "setup.py": ("python", _read_setup_py),
    "Pipfile": ("python", _read_pipfile),
    "Pipfile.lock": ("python", _read_pipfile_lock),
    "poetry.lock": ("python", _read_toml_lock),
    "uv.lock": ("python", _read_toml_lock),
    "pdm.lock": ("python", _read_toml_lock),
    "pylock.toml": ("python", _read_toml_lock),
    "environment.yml": ("python", _read_environment),
    "environment.yaml": ("python", _read_environment),
    "tox.ini": ("python", _read_tox),
    "noxfile.py": ("python", _read_noxfile),
    "_version.py": ("python", _read_python_version),
    "version.py": ("python", _read_python_version),
    "__about__.py": ("python", _read_python_version),
    ".python-version": ("python", _read_pyenv_version),
    "package.json": ("npm", _read_package_json),
    "package-lock.json": ("npm", _read_package_lock),
    "npm-shrinkwrap.json": ("npm", _read_package_lock),
    "yarn.lock": ("npm", _read_yarn_lock),
    "pnpm-lock.yaml": ("npm", _read_pnpm_lock),
    "pnpm-workspace.yaml": ("npm", _read_pnpm_workspace),
    "bun.lock": ("npm", _read_bun_lock),
    ".nvmrc": ("npm", _read_node_version),
    ".node-version": ("npm", _read_node_version),
    ".tool-versions": ("runtime", _read_tool_versions),
    "rust-toolchain": ("rust", _read_rust_toolchain),
    "rust-toolchain.toml": ("rust", _read_rust_toolchain),
    "Cargo.toml": ("rust", _read_cargo),
    "Cargo.lock": ("rust", _read_toml_lock),
    "go.mod": ("go", _read_go_mod),
    "go.work": ("go", _read_go_mod),
    "go.sum": ("go", _read_go_sum),
    ".go-version": ("go", _read_go_version),
    "Gemfile": ("ruby", _read_gemfile),
    "gems.rb": ("ruby", _read_gemfile),
    "Gemfile.lock": ("ruby", _read_gemfile_lock),
    "gems.locked": ("ruby", _read_gemfile_lock),
    ".ruby-version": ("ruby", _read_ruby_version),
    "composer.json": ("php", _read_composer),
    "composer.lock": ("php", _read_composer_lock),
    "pom.xml": ("java", _read_pom),
    "build.gradle": ("java", _read_gradle),
    "build.gradle.kts": ("java", _read_gradle),
    "settings.gradle": ("java", _read_gradle),
    "settings.gradle.kts": ("java", _read_gradle),
    "gradle-wrapper.properties": ("java", _read_gradle_wrapper),
    ".java-version": ("java", _read_java_version),
    "Directory.Packages.props": ("dotnet", _read_msbuild),
    "Directory.Build.props": ("dotnet", _read_msbuild),
    "packages.config": ("dotnet", _read_msbuild),
    "global.json": ("dotnet", _read_global_json),
    "mix.exs": ("elixir", _read_mix),
    "mix.lock": ("elixir", _read_mix_lock),
    "pubspec.yaml": ("dart", _read_pubspec),
    "pubspec.lock": ("dart", _read_pubspec_lock),
    "Package.swift": ("swift", _read_package_swift),
    "Package.resolved": ("swift", _read_package_resolved),
    "Makefile": ("make", _read_makefile),
    "makefile": ("make", _read_makefile),
    "GNUmakefile": ("make", _read_makefile),
    "BSDmakefile": ("make", _read_makefile),
    "justfile": ("just", _read_justfile),
    "Justfile": ("just", _read_justfile),
    ".justfile": ("just", _read_justfile),
    "Rakefile": ("rake", _read_rakefile),
    "rakefile": ("rake", _read_rakefile),
    "Rakefile.rb": ("rake", _read_rakefile),
    "Procfile": ("procfile", _read_procfile),
    "Dockerfile": ("docker", _read_dockerfile),
    "Containerfile": ("docker", _read_dockerfile),
    "Chart.yaml": ("helm", _read_chart),
    "VERSION": ("version", _read_version),
    "VERSION.txt": ("version", _read_version),
    "version.txt": ("version", _read_version),
    **{
        f"{first}askfile{dist}.{end}": ("task", _read_taskfile)
        for first in "Tt"
        for dist in ("", ".dist")
        for end in ("yml", "yaml")
    },
}
_BY_END: dict[str, tuple[str, _Reader]] = {
    "gemspec": ("ruby", _read_gemspec),
    "csproj": ("dotnet", _read_msbuild),
    "fsproj": ("dotnet", _read_msbuild),
    "vbproj": ("dotnet", _read_msbuild),
    "mk": ("make", _read_makefile),
    "just": ("just", _read_justfile),
    "rake": ("rake", _read_rakefile),
    "dockerfile": ("docker", _read_dockerfile),
    "Dockerfile": ("docker", _read_dockerfile),
}
_KUBERNETES_PATH = _Pattern(
    r"(?:^|/)(?:k8s|kubernetes|kube|manifests|kustomize|helm|charts?)/|(?:^|/)(?:deployment|service|statefulset|daemonset|ingress|pod)s?[^/]*\Z",
    re.IGNORECASE,
)
_LOCK_NAMES = frozenset(("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "Package.resolved"))
_INIT = ("python", _read_python_version)


def _reader_of(path: str) -> tuple[str, _Reader] | None:
    name = path[path.rfind("/") + 1 :]
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    end = name[name.rfind(".") + 1 :]
    known = _BY_END.get(end)
    if known is not None:
        return known
    if end in ("txt", "in", "pip"):
        lowered = name.lower()
        folder = path[: -len(name) - 1].rpartition("/")[2]
        if "requirement" in lowered or "constraint" in lowered or folder in ("requirements", "reqs"):
            return "python", _read_requirements
    elif end in ("yml", "yaml"):
        if name.startswith(("docker-compose", "compose.", "compose-", "podman-compose")):
            return "docker", _read_compose
        if name.startswith("environment-") or name.endswith("-environment." + end):
            return "python", _read_environment
        if _KUBERNETES_PATH.search(path):
            return "kubernetes", _read_kubernetes
    elif end == "toml":
        if name.endswith(".versions.toml"):
            return "java", _read_version_catalog
        if path.endswith(".cargo/config.toml"):
            return "rust", _read_cargo
        if name.startswith("pylock."):
            return "python", _read_toml_lock
    elif name.startswith(("Dockerfile.", "Containerfile.", "Dockerfile-")):
        return "docker", _read_dockerfile
    elif name.startswith("Makefile.") and end not in ("py", "md", "rst"):
        return "make", _read_makefile
    elif name.endswith((".gradle", ".gradle.kts")):
        return "java", _read_gradle
    return None


def is_manifest(path: str) -> bool:
    """Whether the file's name is one that `read_manifest` knows. Quick: it is asked for every path of a repository."""
    return _reader_of(path) is not None


def read_manifest(path: str, data: bytes) -> Manifest:
    """What one file says. Never raises: see `problem`."""
    known = _reader_of(path) or (_INIT if path.endswith("__init__.py") else None)
    if known is None:
        return Manifest("", problem="this is no manifest that is known here")
    ecosystem, read = known
    name = path[path.rfind("/") + 1 :]
    is_lock = name.endswith((".lock", ".locked")) or name in _LOCK_NAMES
    limit = LARGEST_LOCK if is_lock else LARGEST
    if len(data) > limit:
        return Manifest(ecosystem, problem=f"larger than {limit >> 20} MB")
    draft = _Draft(ecosystem)
    try:
        read(draft, _text_of(data, _MOST_LOCK_LINES if is_lock else _MOST_LINES))
    except _Unreadable as error:
        return Manifest(ecosystem, problem=" ".join(str(error).split())[:200])
    except RecursionError:
        return Manifest(ecosystem, problem="nested too deeply")
    except Exception as error:  # noqa: BLE001 - a stranger's file must not end a run; tests look for this text
        return Manifest(ecosystem, problem=f"a bug in its reader: {type(error).__name__}")
    return draft.done()


def _text_of(data: bytes, most_lines: int) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text:
        raise _Unreadable("it is not a text")
    if text.count("\n") > most_lines:
        raise _Unreadable(f"more than {most_lines} lines")
    return text
