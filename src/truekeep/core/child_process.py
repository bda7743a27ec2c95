"""How truekeep starts itself, and the environment that child processes get.

The current folder may be an untrusted repository. `python -m`, empty or relative parts of PYTHONPATH, and relative
parts of PATH would load code from it. So a child gets `-P`, `/` as its working folder, no PYTHON* variables, and no
relative folder in PATH.

`-I` is not used: it hides packages from `pip install --user`, which may include truekeep itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

_FOLDERS = ("TRUEKEEP_WORKSPACE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")


def command(*arguments: str) -> list[str]:
    """The command that runs this installation of truekeep, independent of the current folder."""
    return [os.path.abspath(sys.executable), "-P", "-m", "truekeep", *arguments]


def installed_command() -> tuple[str, ...]:
    """The command for timers, which outlive this process: the installed script if there is one."""
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "truekeep")
    return (script,) if os.path.isfile(script) and os.access(script, os.X_OK) else tuple(command())


def start(*arguments: str, environ: Mapping[str, str] | None = None) -> None:
    """Start truekeep detached from this process. Raises OSError if it cannot be started."""
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
    """The environment for a child process that runs truekeep."""
    given = os.environ if environ is None else environ
    found = {name: value for name, value in given.items() if not name.startswith("PYTHON")}
    found |= {name: os.path.abspath(os.path.expanduser(found[name])) for name in _FOLDERS if found.get(name)}
    if "PATH" in found:
        found["PATH"] = absolute_path(found["PATH"])
    if own := _folder_in_pythonpath(given):
        found["PYTHONPATH"] = own
    return found


def absolute_path(path: str) -> str:
    """PATH without empty and relative parts, which mean the current folder."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


def find_program(name: str) -> str | None:
    """The program's path, searched in absolute folders of PATH only; None if not found."""
    if os.path.dirname(name) and not os.path.isabs(name):
        return None
    return shutil.which(name, path=absolute_path(os.environ.get("PATH") or os.defpath))


def _folder_in_pythonpath(environ: Mapping[str, str]) -> str:
    """The folder truekeep was loaded from, if that came from PYTHONPATH (`pip install --target`)."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parts = environ.get("PYTHONPATH", "").split(os.pathsep)
    return own if own in (os.path.normpath(part) for part in parts if os.path.isabs(part)) else ""
