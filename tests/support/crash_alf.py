"""The crash proof of archives: an export or import, stopped at every call which changes the disk and run again.

`python -m tests.support.crash_alf BASE SCENARIO MODE` uses the faults of tests/support/crash.py; see there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.alf_places import SAMPLE, a_workspace, export, import_, look
from tests.support.crash import Fault, install
from truekeep.core import file_io
from truekeep.core.errors import TruekeepError
from truekeep.integrations.alf.record_ids import AGENT_ID_FILE

FILES = {
    path: SAMPLE[path]
    for path in ("MEMORY.md", "SOUL.md", "memory/latin.md", "memory/cards/proxy.md", "notes/todo.txt")
}
CHANGED = {"MEMORY.md": b"mine\n", "memory/cards/proxy.md": b"mine, too\n"}


class Unbuffered:
    """A file whose every write is a call of its own, so that each can be stopped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        return len(data)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> Unbuffered:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._descriptor)


class Stage:
    """What is done, and what may be seen of it afterwards."""

    def __init__(self, base: Path, scenario: str) -> None:
        self.base, self.scenario = base, scenario
        self.root, self.archive = base / "run" / "ws", base / "run" / "out" / "a.alf"
        os.environ["TRUEKEEP_MACHINE_ID"] = "test-machine"
        os.environ["HOME"] = str(base / "home")
        a_workspace(base / "source", FILES)
        export(base / "source", base / "made.alf", embeddings=False)
        template = base / "template"
        (template / "out").mkdir(parents=True)
        if scenario == "export":
            a_workspace(template / "ws", FILES)
        elif scenario == "replace":
            a_workspace(template / "ws", {**FILES, **CHANGED})
        else:
            a_workspace(template / "ws", {"mine.md": b"mine\n"}, agent=None)

    def act(self) -> object:
        if self.scenario == "export":
            return export(self.root, self.archive, embeddings=False)
        return import_(self.base / "made.alf", self.root, replace=self.scenario == "replace")

    def reset(self) -> None:
        shutil.rmtree(self.base / "run", ignore_errors=True)
        shutil.copytree(self.base / "template", self.base / "run", symlinks=True)

    def state(self) -> dict[str, Any]:
        """Every file; the times of those that are made anew do not count."""
        found = look(self.base / "run", skip=(".truekeep",))
        fresh = ("out/a.alf", f"ws/{AGENT_ID_FILE}")
        return {
            path: file._replace(mtime_ns=0) if path in fresh else file
            for path, file in found.items()
            if file_io.TEMPORARY not in path
        }

    def temporary(self) -> list[str]:
        return [path for path in look(self.base / "run", skip=(".truekeep",)) if file_io.TEMPORARY in path]


def run(stage: Stage, fault: Fault | None = None) -> dict[str, Any]:
    """Act in a forked process."""
    outcome = stage.base / "outcome.json"
    outcome.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        with outcome.open("w") as file:
            if fault is not None:
                install(fault)
                os.fdopen = lambda descriptor, *_, **__: Unbuffered(descriptor)  # type: ignore[assignment]
            told = _ended(stage.act)
            json.dump({**told, "hit": fault.hit if fault else ""}, file)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found: dict[str, Any] = {"kind": "killed"} if os.WIFSIGNALED(status) else json.loads(outcome.read_text())
    return found


def _ended(act: Callable[[], object]) -> dict[str, str]:
    import traceback

    try:
        act()
    except TruekeepError as error:
        return {"kind": "error", "what": f"{error.code}: {error.message}"}
    except Exception:  # noqa: BLE001 - that is what we look for
        return {"kind": "unexpected", "what": traceback.format_exc(limit=-6)}
    return {"kind": "clean", "what": ""}


def main(arguments: list[str]) -> int:
    base, scenario, mode = Path(arguments[0]), arguments[1], arguments[2]
    stage = Stage(base, scenario)
    stage.reset()
    _ended(stage.act)  # here, so that every fork finds all of it imported
    stage.reset()
    before = stage.state()
    problems = [] if run(stage)["kind"] == "clean" else ["an undisturbed run did not end well"]
    after = stage.state()
    at = 0
    while len(problems) < 8:
        at += 1
        stage.reset()
        ending = run(stage, Fault(mode, at, base / "run"))
        if ending["kind"] != "killed" and not ending["hit"]:
            break
        where = f"{mode} call {at} ({ending.get('hit', 'killed')})"
        if ending["kind"] == "unexpected":
            problems.append(f"{where}: {ending['what']}")
        now = stage.state()
        odd = [path for path, file in now.items() if not _is_either(file, before.get(path), after.get(path))]
        odd += [path for path in before if path not in now and path in after]
        if odd:
            problems.append(f"{where}: neither as before nor as after: {odd}")
        if ending["kind"] != "killed" and mode != "stay-EIO" and ending["hit"] != "unlink" and stage.temporary():
            problems.append(f"{where}: left behind {stage.temporary()}")
        if ending["kind"] == "clean" and now != after:
            problems.append(f"{where}: it ended well, but not where it should")
        again = run(stage)
        if again["kind"] == "error" and "already exists" in again["what"] and now == after:
            continue  # the archive was whole by then
        if again["kind"] != "clean" or stage.state() != after or stage.temporary():
            left = {path for path in {*stage.state(), *after} if stage.state().get(path) != after.get(path)}
            problems.append(f"{where}: the next run: {again} {sorted(left)} {stage.temporary()}")
    print(json.dumps({"points": at - 1, "problems": problems}))
    return 0


def _is_either(file: Any, before: Any, after: Any) -> bool:
    """Bytes of before or after; a time may still be missing."""
    return any(wanted is not None and file.digest == wanted.digest for wanted in (before, after))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
