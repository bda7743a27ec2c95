"""truekeep completion: teach a shell."""

from __future__ import annotations

import click

from truekeep.interfaces.cli.output import json_option, print_json
from truekeep.interfaces.completion import SHELLS, read_script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print a shell completion script.

    Completes commands, options, drafts, cards and routes. bash: add `eval "$(truekeep completion bash)"` to ~/.bashrc.
    zsh: add `eval "$(truekeep completion zsh)"` to ~/.zshrc, below compinit. fish: run `truekeep completion fish >
    ~/.config/fish/completions/truekeep.fish` once.

    Example: truekeep completion bash
    """
    script = read_script(shell)
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)
