"""Creates a workspace, or adopts a folder of Markdown memory without changing its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.config import render_config
from truekeep.core.errors import BadSetup, StorageFailed
from truekeep.core.state_dir import STATE, Host

if TYPE_CHECKING:
    from truekeep.workspace.context import WorkspaceContext


class InitReport(NamedTuple):
    """The result of init."""

    path: Path
    created: tuple[str, ...]
    is_adopted: bool
    is_repeated: bool
    host: Host


def init_workspace(context: WorkspaceContext, repositories: tuple[str, ...], *, is_bare: bool) -> InitReport:
    """Create the missing files of a workspace; existing files are not changed."""
    if context.path.exists() and not context.path.is_dir():
        raise BadSetup(f"{context.path} is not a folder", hint="name a folder")
    try:
        return _init(context, repositories, is_bare=is_bare)
    except OSError as error:
        where = error.filename or context.path
        raise StorageFailed(f"{where}: {error.strerror}", hint="check the permissions") from error


def _init(context: WorkspaceContext, repositories: tuple[str, ...], *, is_bare: bool) -> InitReport:
    path, state = context.path, context.state
    render_config(repositories)  # raises before anything is created
    had = {item.name for item in path.iterdir()} if path.exists() else set()
    is_adopted = bool(had - {STATE})
    if state.path.is_symlink():
        raise BadSetup(f"{state.path} is a symlink", hint="truekeep keeps its state in a real folder")
    is_repeated = state.is_begun
    state.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # the ledger contains bytes that were removed from memory
    with context.lock():
        if is_repeated:
            state.check_format()
            state.check_host(context.machine, "adopt it")
        is_new = not is_adopted and not is_repeated and not is_bare
        created = state.make(context.machine, repositories, at=context.stamp(), is_new=is_new)
        context.begin_ledger(is_first=is_new)
    return InitReport(path=path, created=created, is_adopted=is_adopted, is_repeated=is_repeated, host=state.host())
