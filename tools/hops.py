"""How many modules one request passes through, on a copy of the demo workspace (`make demo` makes it).

    python -m tools.hops

A hop is a call from one module of truekeep into another; each function counts once, at its first call. Calls while a
module is imported are left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

DEMO = Path(__file__).parents[1] / "demo-home"
SHOP = "repos/shop"
CARD = "/memory/file/memory/cards/carts.md"
HANDOFF = ["handoff", "new", "--writer", "claude", "--type", "setup", "--title", "Queues are drained at night"]
HANDOFF += ["--summary", "Workers stop at 02:00.", "--fact", "`load_cart` waits for them", "--card", "night-queues.md"]
WALKS = {
    "ingest of one handoff": ["ingest"],
    "search": ["search", "redis persistence"],
    "verify": ["verify"],
    "alf export": ["alf", "export", "--replace", "-o", "copy.alf"],
    "web page of a card": [CARD],
}
COLUMNS = ("modules loaded", "modules executed", "functions", "hops", "deepest stack")


class Trace:
    """Counts the calls between modules of truekeep."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.hops = 0
        self.deepest = 0
        self._stack: list[tuple[str, bool]] = []  # for each frame of ours: its module, and whether it is being imported

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        if event not in ("call", "return") or not module.startswith("truekeep."):
            return
        if event == "return":
            if self._stack:
                self._stack.pop()
            return
        name = frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name
        is_import = name == "<module>" or (bool(self._stack) and self._stack[-1][1])
        caller = self._stack[-1][0] if self._stack else ""
        self._stack.append((module, is_import))
        if is_import or frame.f_code.co_name.startswith("<"):  # a lambda or a comprehension is part of its function
            return
        self.deepest = max(self.deepest, len(self._stack))
        if (module, name) not in self.functions:
            self.functions.add((module, name))
            self.hops += bool(caller) and caller != module

    def counts(self) -> dict[str, int]:
        ours = [module for name, module in sys.modules.items() if name.startswith("truekeep.")]
        loaded = sum(not hasattr(module, "__path__") for module in ours)  # without packages
        executed = len({module for module, _ in self.functions})
        return dict(zip(COLUMNS, (loaded, executed, len(self.functions), self.hops, self.deepest), strict=True))


def run_walk(arguments: list[str]) -> dict[str, int]:
    """Run one request in this process, traced."""
    trace = Trace()
    request = _page(arguments[0]) if arguments[0].startswith("/") else _command(arguments)
    sys.setprofile(trace)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            request()
    finally:
        sys.setprofile(None)
    return trace.counts()


def _command(arguments: list[str]) -> Callable[[], object]:
    from truekeep.__main__ import main

    sys.argv = ["truekeep", *arguments]
    return main


def _page(path: str) -> Callable[[], object]:
    """The function that answers a page, without the server around it."""
    from starlette.requests import Request

    from truekeep.interfaces.web.auth import Keys
    from truekeep.interfaces.web.local_site import LocalSite
    from truekeep.interfaces.web.pages.memory_file import FilePages

    site, pages = LocalSite(Path.home() / ".openclaw/workspace", Keys("hops")), FilePages()
    parameters = {"path": path.removeprefix("/memory/file/")}
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "state": {}}
    request = Request({**scope, "path_params": parameters})

    def answer() -> object:
        with site.borrow() as workspace:
            return pages.show(site, workspace, request)

    return answer


def trace_in_copy(arguments: list[str]) -> dict[str, int]:
    """Run one request in a new process, on a fresh copy of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(DEMO, home, symlinks=True)
        config = home / ".openclaw/workspace/.truekeep/config.toml"
        config.write_text(config.read_text().replace(str(DEMO), str(home)))
        environment = {**os.environ, "HOME": str(home), "TRUEKEEP_NO_BACKGROUND": "1"}
        environment["TRUEKEEP_WORKSPACE"] = str(home / ".openclaw/workspace")
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path[1:]])

        def run(*command: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", *command], env=environment, cwd=home / SHOP, capture_output=True, text=True
            )
            if done.returncode > 1:  # 1: something is refuted
                sys.exit(done.stdout + done.stderr)
            return done.stdout

        run("truekeep", "index")
        if arguments[0] != "verify":
            run("truekeep", "verify")  # the copy's checkouts are in another folder
        if arguments == ["ingest"]:
            run("truekeep", *HANDOFF)
        if arguments[0] not in ("ingest", "verify"):
            run("tools.hops", "--walk", *arguments)  # warm
        counts: dict[str, int] = json.loads(run("tools.hops", "--walk", *arguments).splitlines()[-1])
        return counts


def main() -> None:
    print("| request |", " | ".join(COLUMNS), "|")
    print("|---|" + "--:|" * len(COLUMNS))
    for name, arguments in WALKS.items():
        counts = trace_in_copy(arguments)
        print(f"| {name} |", " | ".join(str(counts[column]) for column in COLUMNS), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--walk"]:
        print(json.dumps(run_walk(sys.argv[2:])))
    else:
        main()
