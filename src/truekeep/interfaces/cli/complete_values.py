"""Values that shells complete: cards, drafts, sync routes, memory files, local files and folders.

Reads folders and file names only. Names that a shell could take for anything but a word are left out. Every command
imports this module, but only a Tab calls it, so the functions import what they need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from truekeep.core.errors import TruekeepError
from truekeep.core.model import CARDS, REVIEW

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

MAX_VALUES = 2_000
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}", re.ASCII)
_ROUTE_HEADING = re.compile(r'\[\s*"?([A-Za-z0-9_.-]+)"?\s*\]', re.ASCII)


def complete_cards(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _matching(_stems(os.path.join(_workspace(ctx), CARDS)), incomplete)


def complete_drafts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _matching(_stems(os.path.join(_workspace(ctx), REVIEW)), incomplete)


def complete_routes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from truekeep.core.machine import own_state

    folders = (os.path.join(_workspace(ctx), ".truekeep"), own_state())
    return _matching((name for folder in folders for name in _routes(folder)), incomplete)


def complete_memory_files(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _matching(_memory_files(_workspace(ctx), incomplete), incomplete)


def complete_settings(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from truekeep.workspace.settings import setting_names

    return _matching(setting_names(), incomplete)


def complete_files(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_folders(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})[:MAX_VALUES]


def _workspace(ctx: click.Context) -> str:
    """The workspace named on the line so far, else the default one, else ""."""
    chosen = ctx.params.get("workspace") or ctx.find_root().params.get("workspace")
    if chosen := chosen or os.environ.get("TRUEKEEP_WORKSPACE"):
        return os.path.expanduser(chosen)
    from truekeep.core.default_workspace import find_workspace

    try:
        return find_workspace()
    except TruekeepError:
        return ""


def _stems(folder: str) -> Iterator[str]:
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.endswith(".md") and _SAFE_NAME.fullmatch(name):
                yield name.removesuffix(".md")


def _routes(folder: str) -> Iterator[str]:
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(folder, "sync.toml"), encoding="utf-8") as file:
        for line in file.read(100_000).splitlines():
            if match := _ROUTE_HEADING.match(line):
                yield match[1]


def _memory_files(root: str, incomplete: str) -> Iterator[str]:
    """Files and folders in the folder that the path has reached; never the whole memory."""
    above = incomplete.rpartition("/")[0]
    if any(not _SAFE_NAME.fullmatch(part) for part in above.split("/") if above):
        return
    with suppress(OSError), os.scandir(os.path.join(root, above)) as entries:
        for entry in entries:
            if not _SAFE_NAME.fullmatch(entry.name):
                continue
            path = f"{above}/{entry.name}" if above else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield f"{path}/"
            elif entry.name.endswith(".md"):
                yield path
