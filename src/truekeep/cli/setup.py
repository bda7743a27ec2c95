"""truekeep init."""

from __future__ import annotations

from pathlib import Path

import click

from truekeep.cli.show import json_option, print_json, workspace_option
from truekeep.state import STATE
from truekeep.workspace import Workspace


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@click.option(
    "--repo", "repositories", multiple=True, metavar="PATTERN", help="A repository to scan, or a pattern for many."
)
@json_option
@workspace_option
@click.pass_context
def init(
    ctx: click.Context, path: str | None, repositories: tuple[str, ...], as_json: bool, workspace: str | None
) -> None:
    """Make a workspace, or adopt an existing one.

    An existing folder of Markdown memory is adopted as it is: only .truekeep/ is added. This machine becomes the
    canonical host. Running it again is safe.

    Example: truekeep init ~/.openclaw/workspace --repo '~/repos/*'
    """
    chosen = path or workspace or (ctx.obj or {}).get("workspace")
    made = Workspace.init(Path(chosen) if chosen else None, repositories=repositories)
    if as_json:
        print_json(
            "init",
            {
                "workspace": str(made.path),
                "created": list(made.created),
                "adopted": made.is_adopted,
                "repeated": made.is_repeated,
                "host": {"id": made.host.id, "name": made.host.name, "since": made.host.since},
            },
        )
        return
    word = "already a workspace" if made.is_repeated else "adopted" if made.is_adopted else "made"
    click.echo(f"{made.path}: {click.style(word, fg='green')}")
    click.echo(f"canonical host: {made.host.name} (since {made.host.since[:10]})")
    for name in made.created:
        click.echo(f"  {'wrote' if made.is_repeated else 'created'} {name}")
    if made.is_repeated and repositories and f"{STATE}/config.toml" not in made.created:
        click.echo(f"  the repositories are listed in {made.path}/.truekeep/config.toml; add yours there")
    elif not repositories and not made.is_repeated:
        click.echo("next: name your repositories, as in `truekeep init --repo '~/repos/*'`; then `truekeep ingest`")
    else:
        click.echo("next: `truekeep ingest` files what waits")
