"""What a shell completes: commands and options from scripts that are made with the docs, names from the workspace.

The scripts need no process for words that never change. For names (drafts, cards, routes, memory files) they ask
`truekeep completion --values`, which comes in here without loading the command line: somebody holds the Tab key.
Names are read from folders alone, and only such as no shell could take for anything but a word are given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from truekeep.core.model import CARDS, REVIEW

SHELLS = {"bash": "truekeep.bash", "zsh": "_truekeep", "fish": "truekeep.fish"}
KINDS = ("drafts", "cards", "routes", "memory")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}", re.ASCII)
_ROUTE = re.compile(r'\[\s*"?([A-Za-z0-9_.-]+)"?\s*\]', re.ASCII)
_MOST = 2_000


def read_script(shell: str) -> str:
    """The script that teaches a shell."""
    with open(os.path.join(os.path.dirname(__file__), SHELLS[shell]), encoding="utf-8") as file:
        return file.read()


def answer(arguments: Sequence[str]) -> str:
    """What follows `truekeep completion --values`: a kind, the beginning of a word, perhaps a workspace."""
    kind, begun, workspace, *_ = *arguments, "", "", ""
    return "".join(f"{name}\n" for name in find_values(kind, begun, workspace))


def find_values(kind: str, begun: str = "", workspace: str = "") -> list[str]:
    """Names of a kind that begin so. Nothing where there is no workspace, or none that can be read."""
    root = os.path.expanduser(workspace or os.environ.get("TRUEKEEP_WORKSPACE") or _usual())
    names: Iterator[str]
    if kind in ("drafts", "cards"):
        names = _stems(os.path.join(root, REVIEW if kind == "drafts" else CARDS))
    elif kind == "routes":
        from truekeep.core.machine import own_state

        names = (name for folder in (os.path.join(root, ".truekeep"), own_state()) for name in _routes(folder))
    elif kind == "memory":
        names = _memory(root, begun)
    else:
        return []
    return sorted({name for name in names if name.startswith(begun)})[:_MOST]


def _usual() -> str:
    from truekeep.core.default_workspace import find_workspace
    from truekeep.core.errors import TruekeepError

    try:
        return find_workspace()
    except TruekeepError:
        return ""


def _stems(folder: str) -> Iterator[str]:
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.endswith(".md") and _PLAIN.fullmatch(name):
                yield name.removesuffix(".md")


def _routes(folder: str) -> Iterator[str]:
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(folder, "sync.toml"), encoding="utf-8") as file:
        for line in file.read(100_000).splitlines():
            if match := _ROUTE.match(line):
                yield match[1]


def _memory(root: str, begun: str) -> Iterator[str]:
    """What lies in the folder that a path has reached so far: one folder, however large the memory."""
    above = begun.rpartition("/")[0]
    if any(not _PLAIN.fullmatch(part) for part in above.split("/") if above):
        return
    with suppress(OSError), os.scandir(os.path.join(root, above)) as entries:
        for entry in entries:
            if not _PLAIN.fullmatch(entry.name):
                continue
            path = f"{above}/{entry.name}" if above else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield f"{path}/"
            elif entry.name.endswith(".md"):
                yield path
