"""No repository runs anything: not by a package called truekeep, nor by modules with names of the standard library."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import truekeep
from tests.support.helpers import Place, a_handoff
from truekeep.core import child_process
from truekeep.core.harness_paths import find_homes
from truekeep.handoffs.sync.processes import ToolMissing, find_tool
from truekeep.integrations.harnesses.base import find_program
from truekeep.integrations.harnesses.status import probe_hook
from truekeep.integrations.schedule import cron
from truekeep.interfaces.hooks import EVENTS

SRC = Path(truekeep.__file__).parent
OTHERS = (
    "apsw",
    "click",
    "numpy",
    "re2",
    "yaml",
    "rich",
    "httpx",
    "mcp",
    "onnxruntime",
    "tokenizers",
    "pyrage",
    "watchfiles",
)
STARTED_BY_PYTHON = ("sitecustomize", "usercustomize")

DRIVER = """\
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
started = []
class Recorded(subprocess.Popen):
    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        started.append(self)
subprocess.Popen = Recorded
leave = os._exit
def wait_and_leave(status):
    for process in started:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            status = 99
    sys.stdout.flush()
    leave(status)
os._exit = wait_and_leave
import truekeep.search.service, truekeep.search.refresh
truekeep.search.service.TIME_TO_REFRESH = -1.0  # as where thousands of files wait
truekeep.search.refresh._BATCH_FILES = 1
from truekeep.__main__ import main
sys.argv = ["truekeep", *sys.argv[1:]]
os.chdir(os.environ["PLANTED"])
here = os.environ["PLANTED"]
if "PLAIN" not in os.environ:
    os.environ.update(PYTHONPATH=f".:{here}:", PYTHONSTARTUP="json.py", PYTHONUSERBASE=here, PYTHONINSPECT="1")
try:
    main()
except SystemExit as ended:
    wait_and_leave(ended.code or 0)
wait_and_leave(0)
"""


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "RAN"


@pytest.fixture
def planted(place: Place, ran: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A repository with a module for every name that Python or truekeep imports; each notes that it ran."""
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND  # built in, and in bytes: `encodings` runs before there is an open()
    line = f"import posix; posix.write(posix.open({os.fsencode(ran)!r}, {how}, 0o600), __name__.encode() + b' ')\n"
    names = {*sys.stdlib_module_names, *OTHERS, *STARTED_BY_PYTHON} - {"__main__"}
    for name in names:
        (place.repo / f"{name}.py").write_text(line)
    for name in ("truekeep", "encodings"):
        (place.repo / name).mkdir()
        (place.repo / name / "__init__.py").write_text(line)
        (place.repo / name / "__main__.py").write_text(line)
    for name in ("git", "rsync", "rclone", "ssh", "sh", "systemctl", "crontab"):  # PATH may name the current folder
        (place.repo / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (place.repo / name).chmod(0o755)
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Plant"],
    ):
        subprocess.run(["git", "-C", str(place.repo), *arguments], check=True)
    place.leave(a_handoff())
    for name in ("one", "two", "three"):
        (place.workspace / "memory" / "cards" / f"{name}.md").write_text(f"# Staging {name}\n\nStaging is {name}.\n")
    monkeypatch.setenv("PLANTED", str(place.repo))
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    monkeypatch.delenv("TRUEKEEP_NO_BACKGROUND", raising=False)
    return place


def drive(place: Place, *arguments: str, stdin: str = "", until: str = "") -> str:
    """Run an entry point in the planted repository, and wait for what it starts; one that serves, until it says so."""
    driver = place.base / "driver.py"
    driver.write_text(DRIVER)
    with subprocess.Popen(
        [sys.executable, "-I", "-u", str(driver), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, cwd="/",
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        if until:
            said = ""
            for line in process.stdout:
                said += line
                if until in line:
                    break
            process.send_signal(signal.SIGINT)
        else:
            process.stdin.write(stdin)
            said = ""
        process.stdin.close()
        said += process.stdout.read()
        assert process.wait(120) != 99, said
    return said


def call(place: Place, **more: str) -> str:
    return json.dumps(
        {"session_id": "s", "cwd": str(place.repo), "source": "startup", "prompt": "where is it?", **more}
    )


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_no_hook_runs_what_a_repository_holds(planted: Place, ran: Path, event: str) -> None:
    drive(planted, "hook", event, stdin=call(planted))
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("event", ["session-start", "session-end"])
def test_no_hook_needs_a_variable_for_that(
    planted: Place, ran: Path, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder alone, as a harness sets it."""
    monkeypatch.setenv("PLAIN", "1")
    drive(planted, "hook", event, stdin=call(planted))
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "rolling staging release"),
        ("search", "rolling staging release", "--json"),
        ("index",),
        ("ingest",),
        ("verify",),
        ("verify", "--json"),
        ("wake",),
        ("status",),
        ("doctor",),
        ("repos",),
        ("reconcile",),
        ("schedule", "run"),
        ("sync", "run"),
        ("handoff", "new", "--type", "setup", "--title", "A", "--summary", "B", "--fact", "C d e.", "--card", "a.md"),
        ("review", "list"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_no_command_runs_what_a_repository_holds(planted: Place, ran: Path, arguments: tuple[str, ...]) -> None:
    drive(planted, *arguments)
    assert not ran.exists(), ran.read_text()


def test_the_background_index_is_built_all_the_same(planted: Place, ran: Path) -> None:
    drive(planted, "ingest")
    index = planted.workspace / ".truekeep" / "index.sqlite"
    index.unlink(missing_ok=True)
    drive(planted, "hook", "session-end", stdin=call(planted))
    assert index.exists()
    assert not ran.exists(), ran.read_text()


def test_the_mcp_server_runs_nothing_of_a_repository(planted: Place, ran: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "memory_search", "arguments": {"query": "staging"}}},
    ]  # fmt: skip
    said = drive(planted, "mcp", stdin="".join(json.dumps(message) + "\n" for message in asked))
    assert '"id":2' in said.replace(" ", "")
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("arguments", [("serve", "--port", "0"), ("ingest", "--watch")])
def test_what_runs_on_runs_nothing_of_a_repository(planted: Place, ran: Path, arguments: tuple[str, ...]) -> None:
    drive(planted, *arguments, until="\n")
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("pythonpath", ["", ":/opt/lib", "."])
def test_python_m_imports_nothing_of_the_current_folder(planted: Place, ran: Path, pythonpath: str) -> None:
    """Except a package called truekeep, and what Python itself loads before it knows of us: those are the person's."""
    by_itself = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()
    for name in ("truekeep", "encodings"):
        shutil.rmtree(planted.repo / name)
    for name in {*by_itself, *STARTED_BY_PYTHON}:
        (planted.repo / f"{name}.py").unlink(missing_ok=True)
    assert {"__future__.py", "json.py", "apsw.py"} <= set(os.listdir(planted.repo))
    environ = {**os.environ, "PYTHONPATH": pythonpath}
    for arguments in (["status"], ["wake"], ["hook", "session-start"]):
        done = subprocess.run(
            [sys.executable, "-m", "truekeep", *arguments], cwd=planted.repo, env=environ, input=call(planted),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
    assert not ran.exists(), ran.read_text()


# --- One function ----------------------------------------------------------------------------------------------------

SPAWN = {"system", "popen", "posix_spawn", "posix_spawnp", "startfile", "fork", "forkpty"}
MAY_RUN_PROGRAMS = {
    "core/child_process.py": "truekeep itself, and the one runner of other programs",
    "core/git.py": "git cat-file, hardened, which answers many questions",
    "integrations/harnesses/status.py": "the truekeep on PATH, with child_process.environment()",
    "integrations/harnesses/base.py": "claude, codex, openclaw, in the home folder",
    "core/machine.py": "ioreg of macOS, by its full path",
}


def spawners() -> Iterator[tuple[str, str]]:
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                yield from ((name, found) for found in modules & {"subprocess", "multiprocessing", "pty"})
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                whole = f"{node.value.id}.{node.attr}"
                is_spawn = node.attr in SPAWN or node.attr.startswith(("exec", "spawn"))
                if whole == "sys.executable" or (node.value.id == "os" and is_spawn):
                    yield name, whole
            elif isinstance(node, ast.List | ast.Tuple):
                words = [item.value for item in node.elts if isinstance(item, ast.Constant)]
                if ("-m", "truekeep") in pairwise(words):
                    yield name, "-m truekeep"


def test_only_one_function_starts_truekeep() -> None:
    found = set(spawners())
    assert {name for name, what in found if what in ("sys.executable", "-m truekeep")} == {"core/child_process.py"}
    assert {name for name, _ in found} == set(MAY_RUN_PROGRAMS)
    assert {what for _, what in found} == {"subprocess", "sys.executable", "-m truekeep"}


def test_a_child_sees_no_variable_that_python_reads() -> None:
    given = {"PYTHONPATH": ".", "PYTHONHOME": "x", "PYTHONSTARTUP": "y", "PATH": ".::/usr/bin:bin", "HOME": "/h"}
    assert child_process.environment(given) == {"PATH": "/usr/bin", "HOME": "/h"}


def test_a_truekeep_that_pythonpath_found_is_found_by_its_children() -> None:
    given = {"PYTHONPATH": f".:/elsewhere:{SRC.parent}/"}
    assert child_process.environment(given) == {"PYTHONPATH": str(SRC.parent)}


def test_a_relative_workspace_is_the_same_one_for_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert child_process.environment({"TRUEKEEP_WORKSPACE": "memory"}) == {
        "TRUEKEEP_WORKSPACE": str(tmp_path / "memory")
    }


@pytest.mark.parametrize("part", [".", "", "bin", "./bin"])
def test_no_program_is_found_by_a_relative_part_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Harnesses, sync tools, timers and truekeep itself: one finder for all."""
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        for name in ("claude", "rclone", "truekeep", "crontab"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{part}:/nowhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find_program("claude", find_homes()) is None
    assert not probe_hook().is_well
    assert cron.missing()
    assert child_process.find_program("./claude") is None
    with pytest.raises(ToolMissing):
        find_tool("rclone")
    used = [path for path in SRC.rglob("*.py") if "shutil.which(" in path.read_text()]
    assert [path.name for path in used] == ["child_process.py"]
