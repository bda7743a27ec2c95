"""Options that several commands share, and the workspace that a command is about."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from truekeep.core.default_workspace import find_chosen
from truekeep.core.errors import BadInput, BadSetup, TruekeepError
from truekeep.core.file_io import read_regular
from truekeep.core.memory_copy import has_news
from truekeep.core.repository import find_top
from truekeep.core.state_dir import STATE
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.terminal import ask_yes_no, can_ask, print_note
from truekeep.workspace.workspace import Workspace, default_path

Command = TypeVar("Command", bound=Callable[..., Any])

_NO_SOURCE = frozenset((  # commands that tell the source of a copy themselves, or show nothing of memory
    "search", "get", "wake", "status", "receive", "run", "machine", "connect", "add", "key", "remove", "share", "new",
    "checkpoint", "lint", "doctor", "install", "serve", "take", "adopt", "sync",
))  # fmt: skip
_OPENED = "truekeep.opened"  # key in click's context: the workspaces opened by this command
_JSON = "truekeep.json"  # key in click's context: True with --json


def _remember_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.meta[_JSON] = value
    return value


def wants_json() -> bool:
    """True if the current command was called with --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON))


json_flag = click.option("--json", is_flag=True, help="Output JSON.", callback=_remember_json, expose_value=False)
"""--json, for a command that prints with `emit`."""

json_option = click.option("--json", "as_json", is_flag=True, help="Output JSON.", callback=_remember_json)
workspace_option = click.option(
    "-w", "--workspace", metavar="DIR", help="Workspace to use.", shell_complete=complete_folders
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change without changing anything.")
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
repo_option = click.option(
    "--repo",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Repository this is about. [default: the current one]",
)
writer_option = click.option("--writer", metavar="NAME", default="", help="Author: claude, codex, or a person's name.")


def repos_option(help_text: str, *, metavar: str = "DIR") -> Callable[[Command], Command]:
    return click.option(
        "--repo", "repositories", multiple=True, metavar=metavar, shell_complete=complete_folders, help=help_text
    )


def since_option(what: str) -> Callable[[Command], Command]:
    text = f"Only {what} from this day on: 2026-03-01, or 30d, 8w, 6m, 1y ago."
    return click.option("--since", default="", metavar="DAY", help=text)


def exit_code_option(help_text: str) -> Callable[[Command], Command]:
    return click.option("--exit-code", is_flag=True, help=help_text)


def in_workspace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json and --workspace, and pass the opened workspace first."""
    return _with_workspace(command, open_workspace)


def in_workspace_if_any(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with None on a machine that only leaves handoffs for another."""
    return _with_workspace(command, workspace_if_any)


def _with_workspace(command: Callable[..., Any], open_it: Callable[..., Any]) -> Callable[..., Any]:
    @json_flag
    @workspace_option
    @click.pass_context
    @wraps(command)
    def run(ctx: click.Context, /, workspace: str | None, **given: Any) -> Any:
        return command(open_it(ctx, workspace), **given)

    return run


def named_workspace(ctx: click.Context, workspace: str | None) -> str | None:
    """The workspace that -w names, after the command or before it."""
    return workspace or (ctx.obj or {}).get("workspace")


def has_workspace(ctx: click.Context, workspace: str | None) -> bool:
    return bool(named_workspace(ctx, workspace) or find_chosen()) or (default_path() / STATE).exists()


def open_workspace(ctx: click.Context, workspace: str | None) -> Workspace:
    """The workspace that this command is about."""
    chosen = named_workspace(ctx, workspace)
    if not chosen and has_news() and ctx.info_name != "receive":
        _install_news()
    opened = Workspace.open(Path(chosen) if chosen else None)
    if opened.source is not None and ctx.info_name not in _NO_SOURCE:
        opened.notices.append(f"memory {opened.context.source_note}")
    ctx.call_on_close(lambda: _print_notices(opened))
    ctx.call_on_close(opened.close)
    ctx.meta.setdefault(_OPENED, []).append(opened)
    return opened


def _install_news() -> None:
    """Install the copy of memory that the host sent here. If that fails, the earlier copy answers."""
    from truekeep.workspace.receiving import receive_sent  # heavy, and seldom needed

    try:
        receive_sent()
    except TruekeepError as error:
        print_note(f"{error.message}; {error.hint}")


def workspace_if_any(ctx: click.Context, workspace: str | None) -> Workspace | None:
    """The workspace, or None on a machine that only produces handoffs. A broken one is still an error."""
    try:
        return open_workspace(ctx, workspace)
    except BadSetup:
        if has_workspace(ctx, workspace):
            raise
        return None


def opened_workspaces() -> list[Workspace]:
    context = click.get_current_context(silent=True)
    return context.meta.get(_OPENED, []) if context is not None else []


def _print_notices(opened: Workspace) -> None:
    for notice in opened.notices:
        print_note(notice)
    opened.notices.clear()


def usage_error(message: str) -> click.UsageError:
    """Options that do not go together."""
    return click.UsageError(message, click.get_current_context())


def repository_root(repo: str | None) -> Path | None:
    """The repository that --repo names, or that contains the current folder; a folder that is named is one."""
    folder = checked_folder(repo) if repo is not None else Path.cwd()
    return find_top(folder) or (folder if repo is not None else None)


def checked_folder(repo: str) -> Path:
    folder = Path(repo).expanduser()
    if not folder.is_dir():
        raise BadInput(f"{repo} is not a folder", hint="name the repository's root with --repo")
    return folder


def confirm_plan(question: str, *, yes: bool) -> None:
    """Go on only if a person says so, or said so with --yes."""
    if yes:
        return
    if not can_ask() or wants_json():
        raise BadInput("not a terminal, so I cannot ask", hint="add --yes to go ahead, or --dry-run to see the plan")
    ask_yes_no(question, default=True, abort=True)


def read_named(file: str) -> bytes:
    """The bytes of a file that a person named: a regular one, or a pipe that the shell made of `<(…)`."""
    if file.startswith("/dev/fd/"):
        return Path(file).read_bytes()
    return read_regular(file)
