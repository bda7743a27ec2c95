"""Creates a workspace, or adopts a folder of Markdown memory without changing its files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.config import render_config
from truekeep.core.default_workspace import find_openclaw, is_workspace, read_remembered
from truekeep.core.errors import BadInput, BadSetup, StorageFailed, as_argument
from truekeep.core.machine import below_home
from truekeep.core.model import INDEX, WORKSPACE
from truekeep.core.state_dir import STATE, Host
from truekeep.memory.document_scan import iter_current
from truekeep.text.unicode import printable
from truekeep.workspace.choose_workspace import is_same

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
        is_denied = isinstance(error, PermissionError)
        hint = "check its permissions" if is_denied else "name a folder on a disk that you can write to"
        raise StorageFailed(f"cannot create {where}: {error.strerror}", hint=hint) from error


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


# Before and after.


def check_expanded_pattern(path: str | None, repositories: Sequence[str]) -> None:
    """Raise if the shell expanded `--repo ~/repos/*`, so that PATH is a repository next to another."""
    if not path or not repositories:
        return
    folder, repository = Path(path), Path(repositories[-1])
    is_memory = any((folder / name).exists() for name in (STATE, INDEX, "memory"))
    if folder.parent == repository.parent and (folder / ".git").exists() and not is_memory:
        raise BadInput(
            f"{path} is a repository beside {repository}: it seems that the shell took the pattern apart",
            hint="put the pattern into quotes, as in --repo '~/repos/*'; nothing was written",
        )


def check_remembered() -> None:
    """Raise if the workspace that was chosen is missing: a second memory must not take its place unasked."""
    lost = read_remembered()
    if lost and not is_workspace(lost) and "TRUEKEEP_WORKSPACE" not in os.environ:
        raise BadSetup(
            f"{lost}, the workspace chosen by `truekeep init`, is missing",
            hint=f"bring it back; or name a folder: `truekeep init {as_argument(lost)}` starts a new one there",
        )


def describe_other_settings(path: Path) -> list[str]:
    """Messages about other settings that name a workspace on this machine."""
    told = []
    named = os.environ.get("TRUEKEEP_WORKSPACE")
    if named and not is_same(os.path.expanduser(named), path):
        told.append(f"but TRUEKEEP_WORKSPACE names {named}, and comes first where it is set")
    own = _openclaw_memory()
    if own and not is_same(own, path):
        shown = printable(below_home(own, os.path.expanduser("~")))
        told.append(f"OpenClaw keeps its own memory in {shown}, and reads only the cards of this one")
        told.append(f"  `truekeep init {as_argument(own)} --default` keeps one memory for both")
    return told


def _openclaw_memory() -> str:
    """The folder that OpenClaw's configuration names, or its usual one if there is memory in it."""
    usual = os.path.expanduser(WORKSPACE)
    has_memory = any(os.path.exists(os.path.join(usual, name)) for name in (INDEX, "memory"))
    return find_openclaw() or (usual if has_memory else "")


def count_memory(workspace: Path) -> dict[str, int]:
    """How many cards, daily logs and documents there are; none is read."""
    stores = [source.store for source in iter_current(str(workspace)) if source.path != INDEX]
    return {store: stores.count(store) for store in ("cards", "logs", "documents")}
