"""`truekeep completion`: print the script that makes a shell complete truekeep's commands."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from truekeep.interfaces.cli.output import json_option, print_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print a shell completion script.

    Completes commands, options, drafts, cards and routes. bash 4.4 or newer: add `eval "$(truekeep completion bash)"`
    to ~/.bashrc. zsh: add `eval "$(truekeep completion zsh)"` to ~/.zshrc, below compinit. fish: run `truekeep
    completion fish > ~/.config/fish/completions/truekeep.fish` once.

    Example: truekeep completion bash
    """
    script = render_script(ctx.find_root().command, shell)
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)


def render_script(cli: click.Command, shell: str) -> str:
    """Click's script. Without the version check of BashComplete.source(), which would start a bash."""
    complete = get_completion_class(shell)
    assert complete is not None
    return ShellComplete.source(complete(cli, {}, "truekeep", "_TRUEKEEP_COMPLETE"))
