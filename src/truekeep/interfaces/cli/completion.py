"""`truekeep completion`: print the script that makes a shell complete truekeep's commands."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from truekeep.interfaces.cli.options import json_flag
from truekeep.interfaces.cli.output import emit
from truekeep.interfaces.cli.terminal import MultilineText

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_flag
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    Completes commands, options, drafts, cards and routes. bash 4.4 or newer: add `eval "$(truekeep completion bash)"`
    to ~/.bashrc. zsh: add `eval "$(truekeep completion zsh)"` to ~/.zshrc, below compinit. fish: run `truekeep
    completion fish > ~/.config/fish/completions/truekeep.fish` once.

    Example: truekeep completion bash
    """
    script = render_script(ctx.find_root().command, shell)
    emit("completion", {"shell": shell, "script": script}, [MultilineText(script)])


def render_script(cli: click.Command, shell: str) -> str:
    """Click's script. Without the version check of BashComplete.source(), which would start a bash."""
    complete = get_completion_class(shell)
    assert complete is not None
    return ShellComplete.source(complete(cli, {}, "truekeep", "_TRUEKEEP_COMPLETE"))
