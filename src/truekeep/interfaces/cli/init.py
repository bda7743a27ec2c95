"""truekeep init."""

from __future__ import annotations

import os
from pathlib import Path

import click

from truekeep.core.dates import local_day, many
from truekeep.core.default_workspace import find_damaged, find_openclaw, is_workspace, read_remembered
from truekeep.core.errors import BadInput, BadSetup, as_argument
from truekeep.core.harness_paths import find_homes
from truekeep.core.model import INDEX, WORKSPACE
from truekeep.core.state_dir import STATE
from truekeep.interfaces.cli.choose_workspace import choose_workspace, find_in_use, is_same
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.output import json_option, print_json, short_path, workspace_option
from truekeep.interfaces.cli.terminal import echo, print_warning, style
from truekeep.memory.file_scan import iter_files
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.workspace import Workspace


@click.command()
@click.argument("path", required=False, metavar="[PATH]", shell_complete=complete_folders)
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="PATTERN",
    help="Repository to scan, or a pattern matching several.",
)
@click.option(
    "--default", "is_default", is_flag=True, help="Make it the default workspace instead of the previous one."
)
@json_option
@workspace_option
@click.pass_context
def init(
    ctx: click.Context,
    path: str | None,
    repositories: tuple[str, ...],
    is_default: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Create a workspace, or use an existing one.

    An existing folder of Markdown memory is used as it is: only .truekeep/ is added. This machine becomes the canonical
    host, and every later command and hook uses this workspace. Without PATH: the workspace set before, else the one in
    OpenClaw's configuration, else ~/.openclaw/workspace. Safe to run again.

    Example: truekeep init ~/memory --repo '~/repos/*'
    """
    if path and repositories and _is_spilled(Path(path), Path(repositories[-1])):
        raise BadInput(
            f"{path} is a repository beside {repositories[-1]}: it seems that the shell took the pattern apart",
            hint="put the pattern into quotes, as in --repo '~/repos/*'; nothing was written",
        )
    chosen = path or workspace or (ctx.obj or {}).get("workspace")
    if not chosen:
        _refuse_lost()
    is_unknown = bool(chosen) and not read_remembered() and bool(find_damaged())  # what was in use: it is named now
    in_use = "" if is_unknown else find_in_use()
    made = Workspace.init(Path(chosen) if chosen else None, repositories=repositories)
    told = choose_workspace(made.path, in_use, is_default=is_default) + _warn_of_others(made.path)
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
                "default": read_remembered(),
                "notes": told,
            },
        )
        return
    where = str(made.path)
    word = "already a workspace" if made.is_repeated else "adopted" if made.is_adopted else "made"
    echo(f"{where}: {style(word, fg='green')}")
    if made.is_adopted and not made.is_repeated:
        found = ", ".join(many(count, kind.removesuffix("s")) for kind, count in _count(made.path).items())
        echo(f"already there and not changed: {found}")
    echo(f"canonical host: {made.host.name} (since {local_day(made.host.since)})")
    for line in told:
        echo(line)
    for name in made.created:
        echo(f"  {'wrote' if made.is_repeated else 'created'} {name}")
    if made.is_repeated and repositories and f"{STATE}/config.toml" not in made.created:
        echo(f"  the repositories are listed in {where}/.truekeep/config.toml; add yours there")
    elif not repositories and not made.is_repeated:
        echo("next: name your repositories, as in `truekeep init --repo '~/repos/*'`; then `truekeep ingest`")
    elif made.is_repeated:
        echo("next: run `truekeep ingest` to file pending handoffs")
    else:
        _show_repositories(made.path, repositories)
        echo("next: run `truekeep connect` in a repository to connect its agents")
        echo("      `truekeep schedule install` to file handoffs from a timer")
    if made.is_adopted and not made.is_repeated:
        echo("      `truekeep status` to see the health of this memory")
    if not made.is_repeated and _has_claude_notes():
        echo("      `truekeep adopt claude` to import Claude Code's own notes")


def _refuse_lost() -> None:
    """Make no second memory where the one that was chosen is missing."""
    lost = read_remembered()
    if lost and not is_workspace(lost) and "TRUEKEEP_WORKSPACE" not in os.environ:
        raise BadSetup(
            f"{lost}, the workspace chosen by `truekeep init`, is missing",
            hint=f"bring it back; or name a folder: `truekeep init {as_argument(lost)}` starts a new one there",
        )


def _warn_of_others(path: Path) -> list[str]:
    """Messages about other settings that name a workspace on this machine."""
    named, told = os.environ.get("TRUEKEEP_WORKSPACE"), []
    if named and not is_same(os.path.expanduser(named), path):
        told.append(f"but TRUEKEEP_WORKSPACE names {named}, and comes first where it is set")
    own = _openclaw_memory()
    if own and not is_same(own, path):
        told.append(f"OpenClaw keeps its own memory in {short_path(own)}, and reads only the cards of this one")
        told.append(f"  `truekeep init {as_argument(own)} --default` keeps one memory for both")
    return told


def _openclaw_memory() -> str:
    """The folder that OpenClaw's configuration names, or its usual one if there is memory in it."""
    usual = os.path.expanduser(WORKSPACE)
    has_memory = any(os.path.exists(os.path.join(usual, name)) for name in ("MEMORY.md", "memory"))
    return find_openclaw() or (usual if has_memory else "")


def _count(workspace: Path) -> dict[str, int]:
    """How many cards, daily logs and documents there are; none is read."""
    stores = [source.store for source in iter_files(str(workspace)) if source.path != INDEX]
    return {"cards": stores.count("cards"), "logs": stores.count("logs"), "documents": stores.count("documents")}


def _is_spilled(path: Path, repository: Path) -> bool:
    """True if the shell expanded `--repo ~/repos/*`, so that PATH is a repository next to another."""
    is_memory = any((path / name).exists() for name in (STATE, "MEMORY.md", "memory"))
    return path.parent == repository.parent and (path / ".git").exists() and not is_memory


def _show_repositories(workspace: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if not expand_repositories((pattern,)):
            what = f"no folder is {pattern}; correct it in {short_path(workspace / STATE / 'config.toml')}"
            print_warning(what)
    if roots := expand_repositories(patterns):
        echo(f"{many(len(roots), 'folder')} to scan; `truekeep repos` lists the repositories")


def _has_claude_notes() -> bool:
    return any(find_homes().claude.glob("projects/*/memory/*.md"))
