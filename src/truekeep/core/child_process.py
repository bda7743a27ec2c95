"""Child processes of ours: how truekeep starts truekeep, and what any program that it starts gets to see.

The folder that one works in may be anybody's repository. `python -m` looks there first for what it imports, and so do
PYTHONPATH with an empty or a relative part, and PATH; so a child of ours gets `-P`, the root folder to work in, none of
the variables that Python reads, and no relative folder in PATH.

Not `-I`: it hides what `pip install --user` installed, and with that truekeep itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

_FOLDERS = ("TRUEKEEP_WORKSPACE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")


def command(*arguments: str) -> list[str]:
    """The command that runs this very truekeep; nothing of it depends on the current folder."""
    return [os.path.abspath(sys.executable), "-P", "-m", "truekeep", *arguments]


def installed_command() -> tuple[str, ...]:
    """The same for a timer, which outlives this process: the installed program, where there is one."""
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "truekeep")
    return (script,) if os.path.isfile(script) and os.access(script, os.X_OK) else tuple(command())


def start(*arguments: str, environ: Mapping[str, str] | None = None) -> None:
    """Start a truekeep that nobody waits for, and that outlives this process. OSError when it cannot be started."""
    subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment(environ),
        start_new_session=True,
    )


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child that is truekeep itself."""
    given = os.environ if environ is None else environ
    found = {name: value for name, value in given.items() if not name.startswith("PYTHON")}
    found |= {name: os.path.abspath(os.path.expanduser(found[name])) for name in _FOLDERS if found.get(name)}
    if "PATH" in found:
        found["PATH"] = absolute_path(found["PATH"])
    if own := _folder_in_pythonpath(given):
        found["PYTHONPATH"] = own
    return found


def absolute_path(path: str) -> str:
    """PATH without its empty and relative parts: they mean the current folder."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


def find_program(name: str) -> str | None:
    """Where PATH has a program of this name. Its empty and relative parts never count: they mean the current folder."""
    import shutil

    if os.path.dirname(name) and not os.path.isabs(name):
        return None
    return shutil.which(name, path=absolute_path(os.environ.get("PATH") or os.defpath))


def _folder_in_pythonpath(environ: Mapping[str, str]) -> str:
    """The folder that this truekeep was loaded from, if PYTHONPATH is how it was found (`pip install --target`)."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parts = environ.get("PYTHONPATH", "").split(os.pathsep)
    return own if own in (os.path.normpath(part) for part in parts if os.path.isabs(part)) else ""
