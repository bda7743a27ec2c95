"""Power loss at every call that changes the disk, for the files that are neither memory nor a database.

`python -m tests.support.crash_files BASE STORE` writes one of them again and again, cuts the power after the n-th call,
and reads what is left: the file as before or as after, never half of one. After the last call it has to be the new one.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.crash import DiskMemory, Fault, install
from tests.support.helpers import Place
from truekeep.core import file_io, host_lease, machine
from truekeep.handoffs.sync import receipts
from truekeep.handoffs.sync.routes import Route, read_routes, write_routes
from truekeep.workspace.workspace import Workspace


@dataclass(slots=True)
class WholeDisk(DiskMemory):
    """As `DiskMemory`, with the state folder: nothing here is a database."""

    def __post_init__(self) -> None:
        for folder, names, files in os.walk(self.base):
            self.live.update((os.path.join(folder, name), 0) for name in names)
            for name in files:
                path = os.path.join(folder, name)
                number = self.live[path] = len(self.data) + 1
                self.data[number] = Path(path).read_bytes()
        self.kept = dict(self.live)

    def _is_ours(self, path: str) -> bool:
        return path.startswith(f"{self.base}/")

    def write_out(self, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for path, number in sorted(self.kept.items()):
            place = target / Path(path).relative_to(self.base)
            if not self._is_reachable(path):
                continue
            if number == 0:
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.write_bytes(self.data[number] or b"")
                place.chmod(0o600)


@dataclass(frozen=True, slots=True)
class Store:
    """A file that has to survive: how it is written, and what of it is found."""

    write: Callable[[Path, int], None]
    read: Callable[[Path], object]


def _set_config(base: Path, number: int) -> None:
    with Workspace.open(base / "workspace") as workspace:
        workspace.settings.set("transcripts.keep_days", [str(100 + number)])


def _read_config(base: Path) -> object:
    with Workspace.open(base / "workspace") as workspace:
        return workspace.settings.get("transcripts.keep_days").value


def _take_lease(base: Path, number: int) -> None:
    state = str(base / "workspace" / ".truekeep")
    status = host_lease.read_host_status(state)
    lease = host_lease.next_lease(status, f"machine-{number}", "a machine", at="2026-11-19T10:00:00Z")
    host_lease.write_lease(state, lease)


def _read_lease(base: Path) -> object:
    status = host_lease.read_host_status(str(base / "workspace" / ".truekeep"))
    assert not status.unreadable, status.unreadable
    return status.generation


def _routes_folder(base: Path) -> Path:
    return base / "workspace" / ".truekeep" / "routes-of-a-test"


def _write_routes(base: Path, number: int) -> None:
    write_routes(_routes_folder(base), {"laptop": Route("laptop", "rsync", {"host": f"host-{number}"})})


def _read_routes(base: Path) -> object:
    route = read_routes(_routes_folder(base)).get("laptop")
    return route.options["host"] if route else None


def _use_home(base: Path) -> None:
    os.environ["XDG_STATE_HOME"] = str(base / "home" / "state")
    os.environ["HOME"] = str(base / "home")


def _public_key() -> str:
    return receipts.read_signer().public


def _make_key(base: Path, _number: int) -> None:
    _use_home(base)
    (base / "key.txt").write_text(_public_key())


def _read_key(base: Path) -> object:
    """The public key is what producers were given, so it must stay the same."""
    _use_home(base)
    return _public_key()


def _make_machine_id(base: Path, _number: int) -> None:
    _use_home(base)
    (base / "id.txt").write_text(machine._own_id())


def _read_machine_id(base: Path) -> object:
    _use_home(base)
    found = machine._own_id()
    assert len(found) == 32, f"{found!r} is no id"
    return found


STORES = {
    "config": Store(_set_config, _read_config),
    "host": Store(_take_lease, _read_lease),
    "routes": Store(_write_routes, _read_routes),
    "host-key": Store(_make_key, _read_key),
    "machine-id": Store(_make_machine_id, _read_machine_id),
}


def _forked(act: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def main(base: Path, name: str) -> dict[str, object]:
    store = STORES[name]
    template, run, power = base / "template", base / "run", base / "power"
    template.mkdir(parents=True)
    Place.make(template)
    is_made_once = name in ("host-key", "machine-id")
    if not is_made_once:
        store.write(template, 1)
    problems: list[str] = []
    points = 0
    while True:
        points += 1
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(template, run, symlinks=True)
        before = None if is_made_once else store.read(run)

        def act(at: int = points) -> None:
            disk = WholeDisk(run)
            install(Fault("power", at, run, memory=disk))
            store.write(run, 2)
            disk.write_out(power)

        ended = _forked(act)
        is_done = os.WIFEXITED(ended)
        if is_done and os.WEXITSTATUS(ended):
            problems.append(f"call {points}: the write itself failed")
            break
        after = store.read(run) if is_done else None
        shutil.rmtree(run)
        power.rename(run)
        try:
            found = store.read(run)
        except Exception as error:  # noqa: BLE001 - whatever it is, the file cannot be read
            problems.append(f"call {points}: {type(error).__name__}: {error}")
            found = before
        if is_done and found != after:
            problems.append(f"it was said to be written, and is not on the disk: {found!r}, not {after!r}")
        if is_done or points > 500:
            break
    leftover = [str(path) for path in run.rglob(f"*{file_io.TEMPORARY}*")]
    if leftover:
        problems.append(f"left behind: {leftover}")
    return {"points": points - 1, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
