"""A manifest while it is being read."""

from __future__ import annotations

from truekeep.verify.manifests.formats.table import Leaf, ValueTable
from truekeep.verify.manifests.limits import LONGEST_NAME, MOST_ENTRIES
from truekeep.verify.manifests.manifest import Manifest, Package, Script
from truekeep.verify.manifests.names import normal_name
from truekeep.verify.manifests.text import UnreadableManifest
from truekeep.verify.manifests.versions import pinned


class ManifestBuilder:
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
        if len(self.packages) >= MOST_ENTRIES:
            raise UnreadableManifest(f"more than {MOST_ENTRIES} packages")
        spec = spec.strip()
        pin = pinned(spec, self.ecosystem) if version is None else version.strip()
        self.packages.append(Package(name, spec, pin, line, locked, direct))

    def run(self, tool: str, name: str, line: int) -> None:
        """A script; the first place where it stands is the one that counts."""
        name = name.strip()
        if _is_name(name) and len(self.scripts) < MOST_ENTRIES:
            self.scripts.setdefault((tool, name), Script(tool, name, line))

    def needs(self, runtime: str, spec: str, line: int) -> None:
        spec = spec.strip()
        if spec and len(spec) <= LONGEST_NAME and _is_name(runtime):
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
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _port(text: str) -> int:
    """A port, 0 when it is none."""
    text = text.strip()
    return int(text) if 0 < len(text) <= 5 and text.isascii() and text.isdigit() and int(text) < 65_536 else 0


def add_specs(draft: ManifestBuilder, table: ValueTable, runtimes: tuple[str, ...] = ("python",)) -> None:
    """A table of `name = spec` or `name = {version = spec, ...}`, as poetry, Pipfile, cargo and others write it."""
    for name, node in table.items():
        if isinstance(node, Leaf):
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


def add_scripts(draft: ManifestBuilder, tool: str, table: ValueTable, prefix: str = "") -> None:
    for name, node in table.items():
        if not name.startswith("_"):
            draft.run(tool, prefix + name, node.line)
