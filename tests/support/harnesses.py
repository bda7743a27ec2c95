"""Harnesses for the tests of connect: the real programs from the package registry, and stand-ins that write as they do.

The real ones take 1.6 GB, so `make harnesses` puts them into a cache outside of the repository, once:
$TRUEKEEP_TEST_HARNESSES, else the user's cache folder. Where they are, the tests use them;
`TRUEKEEP_TEST_HARNESSES=off` leaves them out.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyjson5
import pytest

from tests.support.programs import skip_without

PACKAGES = ("@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0", "openclaw@2026.9.6")
NODE = "node@26"  # newer than most systems have; OpenClaw wants it
_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # read before a test moves HOME
_CHOSEN = os.environ.get("TRUEKEEP_TEST_HARNESSES", "")
_NOT_HERE = "the real harnesses are not here: `make harnesses` gets them (1.6 GB)"
_IS_ASKED = _CHOSEN not in ("", "off") or __name__ == "__main__"
FOLDER = Path(_CHOSEN) if _CHOSEN not in ("", "off") else Path(_CACHE) / "truekeep" / "harnesses"


@cache  # a registry that is out of reach is asked once
def real_programs() -> tuple[Path | None, str]:
    """The folder with the real programs; or None, and why not."""
    if _CHOSEN == "off":
        return None, "TRUEKEEP_TEST_HARNESSES is off"
    programs = FOLDER / "node_modules" / ".bin"
    ready = FOLDER / "ready"
    wanted = "\n".join((NODE, *PACKAGES))
    if ready.exists() and ready.read_text() == wanted:
        return programs, ""
    if not _IS_ASKED:
        return None, _NOT_HERE
    if shutil.which("npm") is None:
        return None, "npm is not installed, so the real harnesses cannot be had"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists() and ready.read_text() == wanted:
            return programs, ""
        (FOLDER / "package.json").write_text('{"private": true}\n')
        for packages in ((NODE,), PACKAGES):
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", *packages],
                cwd=FOLDER,
                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
                capture_output=True,
                text=True,
                check=False,
                timeout=900,
            )
            if done.returncode:
                said = next((line for line in done.stderr.splitlines() if "error" in line), "npm failed")
                return None, f"the registry did not give {' '.join(packages)}: {said}"
        ready.write_text(wanted)
    return programs, ""


def need_real_programs() -> Path:
    """The folder with the real programs; skips the test where they are not."""
    programs, why = real_programs()
    if programs is None and why == _NOT_HERE:
        skip_without("claude", "codex", "openclaw")
    if programs is None:
        pytest.skip(why)
    return programs


# Stand-ins. What they do to files was seen with the programs above; test_connect_real.py holds them to it.

_CLAUDE = """
import json, os, sys
from pathlib import Path
base = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
plugins = base / "plugins"
plugins.mkdir(parents=True, exist_ok=True)
def change(path, act):
    value = json.loads(path.read_text("utf-8-sig")) if path.exists() else {}
    act(value)
    path.write_text(json.dumps(value, indent=2))
def put(*keys, to):
    def act(value):
        for key in keys[:-1]:
            value = value.setdefault(key, {})
        if to is None:
            value.pop(keys[-1], None)
        else:
            value[keys[-1]] = to
    return act
settings = base / "settings.json"
known, installed = plugins / "known_marketplaces.json", plugins / "installed_plugins.json"
words = sys.argv[2:]
if words[:2] == ["marketplace", "add"]:
    source = {"source": "directory", "path": words[2]}
    change(settings, put("extraKnownMarketplaces", "truekeep", to={"source": source}))
    change(known, put("truekeep", to={"source": source}))
elif words[:2] == ["marketplace", "remove"]:
    change(settings, put("extraKnownMarketplaces", "truekeep", to=None))
    change(known, put("truekeep", to=None))
elif words[0] == "install":
    change(settings, put("enabledPlugins", words[1], to=True))
    change(installed, put("plugins", words[1], to=[{"scope": "user"}]))
    (plugins / "cache/truekeep/truekeep/1.1.0").mkdir(parents=True)
    (plugins / "cache/truekeep/truekeep/1.1.0/.mcp.json").write_text("{}")
elif words[0] == "uninstall":
    change(settings, put("enabledPlugins", words[1], to=None))
    change(installed, put("plugins", words[1], to=None))
change(base.parent / ".claude.json", put("numStartups", to=1))
"""

_CODEX = """
import os, shutil, sys
from pathlib import Path
home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
home.mkdir(exist_ok=True)
config = home / "config.toml"
text = config.read_bytes().decode("utf-8-sig").replace("\\r\\n", "\\n") if config.exists() else ""
words = sys.argv[2:]
cache = home / "plugins/cache/truekeep"
market = 'source_type = "local"\\nsource = "%s"\\n'
def without(header):
    blocks = text.split("\\n[")
    kept = [block for block in blocks if not block.startswith(header)]
    return "\\n[".join(kept).rstrip("\\n") + "\\n"
if words[:2] == ["marketplace", "add"]:
    text = text.rstrip("\\n") + "\\n\\n[marketplaces.truekeep]\\n" + market % words[2]
elif words[:2] == ["marketplace", "remove"]:
    text = without("marketplaces.truekeep]")
elif words[0] == "add":
    text = text.rstrip("\\n") + '\\n\\n[plugins."%s"]\\nenabled = true\\n' % words[1]
    source = [line for line in text.splitlines() if line.startswith("source = ")][-1].split('"')[1]
    shutil.copytree(source + "/truekeep", cache / "truekeep/1.1.0", dirs_exist_ok=True)
elif words[0] == "remove":
    text = without('plugins."truekeep@truekeep"]')
    shutil.rmtree(cache)
config.write_text(text)
"""

_OPENCLAW = """
import json, os, shutil, sys
from pathlib import Path
sys.path[:0] = os.environ["STAND_IN_SOURCE"].split(os.pathsep)
from truekeep.core.openclaw_config import parse_json5
state = Path(os.environ.get("OPENCLAW_STATE_DIR") or Path.home() / ".openclaw")
path = state / "openclaw.json"
config = parse_json5(path.read_text("utf-8-sig")) if path.exists() else {}
def merge(value, patch):
    for key, item in patch.items():
        if item is None:
            value.pop(key, None)
        elif isinstance(item, dict):
            merge(value.setdefault(key, {}), item)
        else:
            value[key] = item
words = sys.argv[1:]
place = state / "extensions" / "truekeep"
if words[:2] == ["plugins", "install"]:
    shutil.copytree(words[2], place, dirs_exist_ok=True)
    merge(config, {"plugins": {"entries": {"truekeep": {"enabled": True}}}})
elif words[:2] == ["plugins", "uninstall"]:
    shutil.rmtree(place)
    merge(config, {"plugins": {"entries": {"truekeep": {"enabled": False}}}})
elif words[:2] == ["config", "patch"]:
    merge(config, json.load(sys.stdin))
merge(config, {"meta": {"lastTouchedVersion": "2026.9.6"}})
path.write_text(json.dumps(config, indent=2))
"""

SOURCES = {"claude": _CLAUDE, "codex": _CODEX, "openclaw": _OPENCLAW}


def put_stand_ins(folder: Path, *names: str) -> Path:
    """Programs that change a harness's files as the real one does, without being it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or SOURCES:
        script = folder / f"{name}.py"
        script.write_text(SOURCES[name])
        program = folder / name
        source = Path(__file__).parents[2] / "src"
        packages = Path(pyjson5.__file__).parents[1]  # `-S` leaves site-packages out
        program.write_text(
            f'#!/bin/sh\nSTAND_IN_SOURCE="{source}:{packages}" exec "{sys.executable}" -S "{script}" "$@"\n'
        )
        program.chmod(0o755)
    return folder


if __name__ == "__main__":
    found, problem = real_programs()
    print(found or problem)
    sys.exit(found is None)
