"""The house is as ARCHITECTURE.md draws it: all modules are on the page, imports point down it, none is in a circle."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "truekeep"
LAYERS = ("door", "desk", "story", "rooms", "room", "keeping", "words")
ROW = re.compile(rf"  ((?:[a-z_]+(?:\.py|/)\s+)+)({'|'.join(LAYERS)})  ")


def drawn() -> dict[str, int]:
    """Every module and folder on the page, and how far down it stands."""
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("src/truekeep/\n")[2].partition("```")[0]
    found: dict[str, int] = {}
    for row in filter(None, map(ROW.match, page.splitlines())):
        for name in row[1].split():
            assert name not in found, f"{name} stands twice"
            found[name] = LAYERS.index(row[2])
    return found


@cache
def modules() -> list[tuple[str, bool, ast.Module]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        found.append((".".join(parts[:-1] if is_package else parts), is_package, ast.parse(path.read_text())))
    return found


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of ours, anywhere in it, for types too."""
    trees = {name: tree for name, _, tree in modules()}
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        wanted: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name} imports from a relative place"
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= {each if each in trees else str(node.module) for each in named}
            elif isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
        found[name] = (wanted & trees.keys()) - {name, "truekeep"}
    return found


def place_of(module: str) -> str:
    name = module.split(".")[1]
    return f"{name}/" if (PACKAGE / name).is_dir() else f"{name}.py"


def test_every_module_is_on_the_page() -> None:
    there = {place_of(name) for name, _, _ in modules() if name != "truekeep"}
    assert set(drawn()) == there


def test_imports_point_down_the_page() -> None:
    level = drawn()
    upwards = [
        f"{name} → {other}"
        for name, wanted in imports().items()
        if name != "truekeep"
        for other in wanted
        if level[place_of(other)] < level[place_of(name)]
    ]
    assert upwards == []


def test_no_import_is_in_a_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None
