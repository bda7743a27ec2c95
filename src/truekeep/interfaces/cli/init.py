"""truekeep init."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import local_day, many
from truekeep.core.default_workspace import find_damaged, read_remembered
from truekeep.core.harness_paths import find_homes
from truekeep.core.state_dir import STATE
from truekeep.integrations.schedule.earlier_ingester import HINT, describe, find_ingester
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.options import json_flag, named_workspace, repos_option, workspace_option
from truekeep.interfaces.cli.output import Shown, emit, short_path
from truekeep.interfaces.cli.terminal import style, warning
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.choose_workspace import choose_workspace, find_in_use
from truekeep.workspace.init import check_expanded_pattern, check_remembered, count_memory, describe_other_settings
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.workspace.init import InitReport


@click.command()
@click.argument("path", required=False, metavar="[PATH]", shell_complete=complete_folders)
@repos_option("Repository to scan, or a pattern matching several.", metavar="PATTERN")
@click.option(
    "--default", "is_default", is_flag=True, help="Make it the default workspace instead of the previous one."
)
@json_flag
@workspace_option
@click.pass_context
def init(
    ctx: click.Context, path: str | None, repositories: tuple[str, ...], is_default: bool, workspace: str | None
) -> None:
    """Create a workspace, or use an existing one.

    An existing folder of Markdown memory is used as it is: only .truekeep/ is added. This machine becomes the canonical
    host, and every later command and hook uses this workspace. Without PATH: the workspace set before, else the one in
    OpenClaw's configuration, else ~/.openclaw/workspace. Safe to run again.

    Example: truekeep init ~/memory --repo '~/repos/*'
    """
    check_expanded_pattern(path, repositories)
    chosen = path or named_workspace(ctx, workspace)
    if not chosen:
        check_remembered()
    is_unknown = bool(chosen) and not read_remembered() and bool(find_damaged())  # what was in use: it is named now
    in_use = "" if is_unknown else find_in_use()
    made = Workspace.init(Path(chosen) if chosen else None, repositories=repositories)
    notes = choose_workspace(made.path, in_use, is_default=is_default) + describe_other_settings(made.path)
    notes += [f"{told}; {HINT}" for told in describe(find_ingester(made.path))]
    found = count_memory(made.path)
    data = {
        "workspace": made.path,
        "created": made.created,
        "adopted": made.is_adopted,
        "repeated": made.is_repeated,
        "found": found,
        "host": {"id": made.host.id, "name": made.host.name, "since": made.host.since},
        "default": read_remembered(),
        "notes": notes,
    }
    emit("init", data, _render(made, found, notes, repositories))


def _render(
    made: InitReport, found: dict[str, int], notes: Sequence[str], repositories: Sequence[str]
) -> Iterator[Shown]:
    is_new_home = made.is_adopted and not made.is_repeated
    word = "already a workspace" if made.is_repeated else "adopted" if made.is_adopted else "created"
    yield f"{made.path}: {style(word, fg='green')}"
    if is_new_home:
        counts = ", ".join(many(count, kind.removesuffix("s")) for kind, count in found.items() if count)
        yield f"already there and not changed: {counts or 'no memory yet'}"
    yield f"canonical host: {made.host.name} (since {local_day(made.host.since)})"
    yield from notes
    yield from (f"  {'wrote' if made.is_repeated else 'created'} {name}" for name in made.created)
    yield from _render_next(made, repositories)
    if is_new_home:
        yield "      `truekeep status` to see the health of this memory"
    if not made.is_repeated and any(find_homes().claude.glob("projects/*/memory/*.md")):
        yield "      `truekeep adopt claude` to import Claude Code's own notes"


def _render_next(made: InitReport, repositories: Sequence[str]) -> Iterator[Shown]:
    config = f"{STATE}/config.toml"
    if made.is_repeated and repositories and config not in made.created:
        yield "  `truekeep config get repositories` shows the repositories; `truekeep config set` changes them"
    elif made.is_repeated:
        yield "next: run `truekeep ingest` to file pending handoffs"
    elif not repositories:
        yield "next: name your repositories, as in `truekeep init --repo '~/repos/*'`; then `truekeep ingest`"
    else:
        for pattern in repositories:
            if not expand_repositories((pattern,)):
                yield warning(f"no folder is {pattern}; correct it in {short_path(made.path / config)}")
        if roots := expand_repositories(repositories):
            yield f"{many(len(roots), 'folder')} to scan; `truekeep repos` lists the repositories"
        yield "next: run `truekeep connect` in a repository to connect its agents"
        yield "      `truekeep schedule install` to file handoffs from a timer"
