"""`truekeep help`."""

from __future__ import annotations

import click

from truekeep.interfaces.cli.pager import in_pager
from truekeep.interfaces.cli.terminal import echo_text


@click.command()
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001 - the command's name
    """Show the help of a command; the same as `truekeep COMMAND --help`.

    Example: truekeep help review approve
    """
    at = ctx.find_root()
    for word in words:
        if not isinstance(at.command, click.Group):
            raise click.UsageError(f"{at.command_path!r} has no commands.", ctx=at)
        name, command, _ = at.command.resolve_command(at, [word])
        assert command is not None  # resolve_command raises for unknown names
        at = click.Context(command, parent=at, info_name=name)
    with in_pager():
        echo_text(at.command.get_help(at))
