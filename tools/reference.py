"""Generates docs/commands.md, the table of codes in docs/operations.md, the man page and the completion scripts.

python -m tools.reference docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tools.manual import render_manual
from truekeep.core.model import RULES
from truekeep.interfaces.cli.app import COMMANDS, cli
from truekeep.interfaces.cli.completion import render_script

COMPLETION_FILES = {"bash": "truekeep.bash", "zsh": "_truekeep", "fish": "truekeep.fish"}
_CODES = re.compile(r"(<!-- codes:[^>]*-->\n).*?(<!-- /codes -->)", re.DOTALL)


def render_reference() -> str:
    """The help of every command, as one page."""
    parts = [
        "# Commands\n",
        "Generated from the program's own help by `make docs`; a test keeps it true.\n",
        *_sections(cli, "truekeep"),
    ]
    return "\n".join(parts)


def _sections(command: click.Command, name: str) -> Iterator[str]:
    with click.Context(command, info_name=name, terminal_width=100, **cli.context_settings) as ctx:
        yield f"## {name}\n\n```\n{command.get_help(ctx).rstrip()}\n```\n"
        if command is cli:
            for child in COMMANDS:
                found = cli.get_command(ctx, child)
                assert found is not None
                yield from _sections(found, f"{name} {child}")
        elif isinstance(command, click.Group):
            for child, found in command.commands.items():
                yield from _sections(found, f"{name} {child}")


def with_codes(page: str) -> str:
    """The operations page with its table of codes as it is now."""
    rows = ["| code | leads to | meaning |", "|---|---|---|"]
    rows += [
        f"| `{code}` | {rule.policy}{', fixed' if rule.binding else ''} | {rule.meaning} |"
        for code, rule in RULES.items()
    ]
    table = "\n".join(rows)
    return _CODES.sub(lambda match: f"{match[1]}\n{table}\n\n{match[2]}", page)


def write_docs(folder: Path) -> None:
    (folder / "commands.md").write_text(render_reference(), encoding="utf-8")
    operations = folder / "operations.md"
    operations.write_text(with_codes(operations.read_text(encoding="utf-8")), encoding="utf-8")
    manual = folder.parent / "man" / "truekeep.1"
    manual.parent.mkdir(exist_ok=True)
    manual.write_text(render_manual(), encoding="utf-8")
    scripts = folder.parent / "completions"
    scripts.mkdir(exist_ok=True)
    for shell, name in COMPLETION_FILES.items():
        (scripts / name).write_text(render_script(cli, shell), encoding="utf-8")


if __name__ == "__main__":
    write_docs(Path(sys.argv[1]))
