"""Collects the entries of one file into a `Manifest`."""

from __future__ import annotations

from truekeep.verify.manifests.formats import Leaf, ValueTable
from truekeep.verify.manifests.model import (
    MAX_ENTRIES,
    MAX_NAME_LENGTH,
    Manifest,
    Package,
    Script,
    UnreadableManifest,
    normalize_name,
)
from truekeep.verify.manifests.versions import find_pin

_MAX_PORT_RANGE = 100
_SOURCES = ("git", "url", "path", "file", "workspace", "hosted", "sdk")


class ManifestBuilder:
    """Collects entries; leaves out names that are too long or not printable."""

    def __init__(self, ecosystem: str) -> None:
        self.ecosystem = ecosystem
        self.name = self.version = ""
        self.packages: list[Package] = []
        self._scripts: dict[tuple[str, str], Script] = {}
        self._runtimes: dict[tuple[str, str, int], None] = {}
        self._ports: dict[tuple[int, int], None] = {}
        self._services: dict[tuple[str, int], None] = {}

    def add_package(
        self, name: str, spec: str, line: int, *, version: str | None = None, locked: bool = False, direct: bool = True
    ) -> None:
        """Add a package. Without a version, the one that the spec pins in this ecosystem is taken."""
        name = normalize_name(name.strip(), self.ecosystem)
        if not _is_name(name):
            return
        if len(self.packages) >= MAX_ENTRIES:
            raise UnreadableManifest(f"more than {MAX_ENTRIES} packages")
        spec = spec.strip()
        pin = find_pin(spec, self.ecosystem) if version is None else version.strip()
        self.packages.append(Package(name, spec, pin, line, locked, direct))

    def add_script(self, tool: str, name: str, line: int) -> None:
        """Add a script; of several with one name the first counts."""
        name = name.strip()
        if _is_name(name) and len(self._scripts) < MAX_ENTRIES:
            self._scripts.setdefault((tool, name), Script(tool, name, line))

    def add_runtime(self, runtime: str, spec: str, line: int) -> None:
        spec = spec.strip()
        if spec and len(spec) <= MAX_NAME_LENGTH and _is_name(runtime):
            self._runtimes[(runtime, spec, line)] = None

    def add_ports(self, text: str, line: int) -> None:
        """Add a port, or a short range such as 5000-5002."""
        low, dash, high = text.partition("-")
        first = _parse_port(low)
        last = _parse_port(high) if dash else first
        if first and last and 0 <= last - first < _MAX_PORT_RANGE:
            for port in range(first, last + 1):
                self._ports[(port, line)] = None

    def add_service(self, name: str, line: int) -> None:
        if _is_name(name):
            self._services[(name, line)] = None

    def build(self) -> Manifest:
        return Manifest(
            self.ecosystem,
            self.name.strip() if _is_name(self.name.strip()) else "",
            self.version.strip() if _is_name(self.version.strip()) else "",
            tuple(self.packages),
            tuple(self._scripts.values()),
            tuple(self._runtimes),
            tuple(self._ports),
            tuple(self._services),
        )


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_LENGTH and name.isprintable()


def _parse_port(text: str) -> int:
    """Return a port number, 0 when the text is not one."""
    text = text.strip()
    return int(text) if 0 < len(text) <= 5 and text.isascii() and text.isdigit() and int(text) < 65_536 else 0


def add_specs(builder: ManifestBuilder, table: ValueTable, runtimes: tuple[str, ...] = ("python",)) -> None:
    """Add a table of `name = spec` or `name = {version = spec, ...}`, as in poetry, Pipfile, Cargo and pub."""
    for name, node in table.items():
        if isinstance(node, Leaf):
            spec, line, real_name = node.text, node.line, ""
        else:
            alternatives = [inner for _, inner in node.tables()] if node.is_list else [node]
            spec = " || ".join(version for one in alternatives if (version := one.leaf("version").text))
            source = next((key for key in _SOURCES if key in node), "")
            if not spec and source:
                spec = f"{source}:{node.leaf(source).text}"
            line = node.line
            real_name = node.leaf("package").text if builder.ecosystem == "rust" else ""
        if name in runtimes:
            builder.add_runtime(name, spec, line)
        else:
            builder.add_package(real_name or name, spec, line)


def add_scripts(builder: ManifestBuilder, tool: str, table: ValueTable, prefix: str = "") -> None:
    """Add every key of a table as a script, except those that begin with an underscore."""
    for name, node in table.items():
        if not name.startswith("_"):
            builder.add_script(tool, prefix + name, node.line)
