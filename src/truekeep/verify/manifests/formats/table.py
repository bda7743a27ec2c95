"""Tables and texts that know their line: what TOML and YAML are read into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Leaf(NamedTuple):
    text: str
    line: int


NOTHING = Leaf("", 0)


class ValueTable(dict[str, "Leaf | ValueTable"]):
    """A mapping or a list (then the keys count from 0) that knows its line."""

    def __init__(self, line: int, *, is_list: bool = False) -> None:
        super().__init__()
        self.line, self.is_list = line, is_list

    def table(self, *path: str) -> ValueTable:
        """The table at a path, empty when there is none."""
        node: Leaf | ValueTable | None = self
        for key in path:
            node = node.get(key) if isinstance(node, ValueTable) else None
        return node if isinstance(node, ValueTable) else ValueTable(0)

    def leaf(self, *path: str) -> Leaf:
        """The text at a path, `NOTHING` when there is none."""
        node = self.table(*path[:-1]).get(path[-1])
        return node if isinstance(node, Leaf) else NOTHING

    def leaves(self, *path: str) -> list[Leaf]:
        """The texts of a list, or the one text that stands in its place."""
        node = self.table(*path[:-1]).get(path[-1])
        if isinstance(node, Leaf):
            return [node] if node.text else []
        return [item for item in node.values() if isinstance(item, Leaf)] if node is not None else []

    def tables(self, *path: str) -> Iterator[tuple[str, ValueTable]]:
        for key, node in self.table(*path).items():
            if isinstance(node, ValueTable):
                yield key, node
