"""A day in a process of its own, with the host's memory on a small disk of its own that goes away with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.soak.account import Account
from tests.support.soak.day import ROOM, Scale

ROOT = Path(__file__).parents[3]
_MOUNT = 'mount -t tmpfs -o "size=$1" tmpfs "$2"'


def live_apart(base: Path, scale: Scale, *, seconds: float) -> Account:
    """Live a day below a folder; where nothing may be mounted, the disk is never full."""
    point = base / "host"
    point.mkdir(parents=True)
    options = [f"--{name}={value}" for name, value in scale._asdict().items()]
    command = [sys.executable, "-m", "tests.support.soak", str(base), *options]
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    mount = [*unshare, "sh", "-c", f'{_MOUNT} && shift 2 && exec "$@"', "sh", str(ROOM), str(point)]
    can_mount = shutil.which("unshare") and not subprocess.run([*mount, "true"], capture_output=True).returncode
    log = base / "account.json"
    with log.open("wb") as out, (base / "errors.txt").open("wb") as errors:
        done = subprocess.run(
            [*mount, *command] if can_mount else command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            check=False,
            timeout=seconds,
        )
    if done.returncode:
        raise AssertionError(f"the day broke off with {done.returncode}:\n{(base / 'errors.txt').read_text()[-4000:]}")
    return Account(**json.loads(log.read_text()))
