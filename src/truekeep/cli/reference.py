"""Writes docs/commands.md from the commands themselves: python -m truekeep.cli.reference > docs/commands.md"""

from __future__ import annotations

from collections.abc import Iterator

import click

from truekeep.cli import COMMANDS, cli


def render_reference() -> str:
    """The help of every command, as one page."""
    parts = [
        "# Commands\n",
        "Generated from the program's own help by `make docs`; a test keeps it true.\n",
        *_sections(cli, "truekeep"),
    ]
    return "\n".join(parts)


def _sections(command: click.Command, name: str) -> Iterator[str]:
    with click.Context(command, info_name=name, max_content_width=100, terminal_width=100) as ctx:
        yield f"## {name}\n\n```\n{command.get_help(ctx).rstrip()}\n```\n"
        if command is cli:
            for child in COMMANDS:
                found = cli.get_command(ctx, child)
                assert found is not None
                yield from _sections(found, f"{name} {child}")
        elif isinstance(command, click.Group):
            for child, found in command.commands.items():
                yield from _sections(found, f"{name} {child}")


if __name__ == "__main__":
    click.echo(render_reference(), nl=False)
