"""truekeep init."""

from __future__ import annotations

from pathlib import Path

import click

from truekeep.ages import many
from truekeep.cli.show import json_option, print_json, short_path, workspace_option
from truekeep.errors import BadInput
from truekeep.hidden import printable
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
    if path and repositories and _is_spilled(Path(path), Path(repositories[-1])):
        raise BadInput(
            f"{path} is a repository beside {repositories[-1]}: it seems that the shell took the pattern apart",
            hint="put the pattern into quotes, as in --repo '~/repos/*'; nothing was written",
        )
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
                "found": _count(made.path),
                "host": {"id": made.host.id, "name": made.host.name, "since": made.host.since},
            },
        )
        return
    where = printable(str(made.path))
    word = "already a workspace" if made.is_repeated else "adopted" if made.is_adopted else "made"
    click.echo(f"{where}: {click.style(word, fg='green')}")
    if made.is_adopted and not made.is_repeated:
        found = ", ".join(many(count, kind.removesuffix("s")) for kind, count in _count(made.path).items())
        click.echo(f"found there, and left as it is: {found}")
    click.echo(f"canonical host: {made.host.name} (since {made.host.since[:10]})")
    for name in made.created:
        click.echo(f"  {'wrote' if made.is_repeated else 'created'} {name}")
    if made.is_repeated and repositories and f"{STATE}/config.toml" not in made.created:
        click.echo(f"  the repositories are listed in {where}/.truekeep/config.toml; add yours there")
    elif not repositories and not made.is_repeated:
        click.echo("next: name your repositories, as in `truekeep init --repo '~/repos/*'`; then `truekeep ingest`")
    elif made.is_repeated:
        click.echo("next: `truekeep ingest` files what waits")
    else:
        _show_repositories(made.path, repositories)
        click.echo("next: `truekeep connect` in a repository, for the agents that work there")
        click.echo("      `truekeep schedule install`, so that what they leave is filed by a timer")
    if made.is_adopted and not made.is_repeated:
        click.echo("      `truekeep status`, to see how this memory is")
    if not made.is_repeated and _has_claude_notes():
        click.echo("      `truekeep adopt claude` takes in what Claude Code remembers on its own")


def _count(workspace: Path) -> dict[str, int]:
    """How many cards, daily logs and documents there are; none is read."""
    from truekeep.index.sources import sweep
    from truekeep.model import INDEX

    stores = [source.store for source in sweep(str(workspace)) if source.path != INDEX]
    return {"cards": stores.count("cards"), "logs": stores.count("logs"), "documents": stores.count("documents")}


def _is_spilled(path: Path, repository: Path) -> bool:
    """Whether the workspace was named by a shell that took `--repo ~/repos/*` apart: a repository beside another."""
    is_memory = any((path / name).exists() for name in (STATE, "MEMORY.md", "memory"))
    return path.parent == repository.parent and (path / ".git").exists() and not is_memory


def _show_repositories(workspace: Path, patterns: tuple[str, ...]) -> None:
    from truekeep.checkouts import expand_repositories

    for pattern in patterns:
        if not expand_repositories((pattern,)):
            what = f"no folder is {pattern}; correct it in {short_path(workspace / STATE / 'config.toml')}"
            click.echo(click.style("warning: ", fg="yellow") + printable(what), err=True)
    if roots := expand_repositories(patterns):
        click.echo(f"{many(len(roots), 'folder')} to look into: `truekeep repos` lists the repositories")


def _has_claude_notes() -> bool:
    from truekeep.connect.homes import find_homes

    return any(find_homes().claude.glob("projects/*/memory/*.md"))
