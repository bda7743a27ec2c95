"""truekeep completion: teach a shell."""

from __future__ import annotations

import click

from truekeep.cli.show import json_option, print_json
from truekeep.completion import SHELLS, read_script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print what teaches a shell to complete commands, options, drafts, cards and routes.

    bash: `eval "$(truekeep completion bash)"` in ~/.bashrc. zsh: `eval "$(truekeep completion zsh)"` in ~/.zshrc, below
    compinit. fish: `truekeep completion fish > ~/.config/fish/completions/truekeep.fish`, once.

    Example: truekeep completion bash
    """
    script = read_script(shell)
    if as_json:
        print_json("completion", {"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)
