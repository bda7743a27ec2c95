"""`truekeep check` where it runs: the steps of the GitHub Action, the real pre-commit program, SARIF's own schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from tests.support.helpers import run_cli
from tests.support.project import Project

TOP = Path(__file__).parents[2]
SCHEMA = TOP / "tests" / "samples" / "sarif-schema-2.1.0.json"  # of OASIS, without its descriptions
BIN = Path(sys.executable).parent


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "app")
    made.write("src/client.py", "def call_server():\n    return 1\n")
    made.write("README.md", "# App\n\nThe client is in `src/client.py`, see [it](src/client.py).\n")
    made.commit("first")
    return made


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **more}


def test_sarif_is_valid(project: Project) -> None:
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("rename")
    done = run_cli("check", "--repo", str(project.path), "--format", "sarif", "--confidence", "low")
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert len(report["runs"][0]["results"]) == 2
    assert all(result["fixes"] for result in report["runs"][0]["results"])


def action_step(name: str) -> tuple[str, dict[str, str]]:
    """The command of a step of the Action, and the variables that it gets."""
    steps = yaml.safe_load((TOP / "action.yml").read_text())["runs"]["steps"]
    (step,) = (step for step in steps if step["name"] == name)
    return step["run"], step["env"]


def test_the_action_reviews_a_pull_request_in_a_checkout_of_depth_one(project: Project, tmp_path: Path) -> None:
    base = project.git("rev-parse", "HEAD")
    project.git("switch", "-q", "-c", "change")
    project.git("mv", "src/client.py", "src/remote.py")
    project.commit("rename")
    project.git("config", "uploadpack.allowReachableSHA1InWant", "true")
    clone = tmp_path / "runner"
    subprocess.run(["git", "clone", "-q", "--depth", "1", "-b", "change", f"file://{project.path}", clone], check=True)
    run, variables = action_step("Check documents")
    assert set(variables) == {"ACTION_PATH", "BASE_SHA"} | {
        f"INPUT_{name}" for name in ("PATHS", "SINCE", "CONFIDENCE", "FORMAT", "OUTPUT", "HISTORY")
    }
    given = environment(ACTION_PATH=str(TOP), BASE_SHA=base, INPUT_FORMAT="github")
    done = subprocess.run(["bash", "-c", run], cwd=clone, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 12, done.stderr
    assert done.stdout.startswith("::error file=README.md,line=3,")
    assert "src/remote.py" in done.stdout
    output = environment(ACTION_PATH=str(TOP), BASE_SHA=base, INPUT_FORMAT="sarif", INPUT_OUTPUT="results.sarif")
    subprocess.run(["bash", "-c", run], cwd=clone, env=output, capture_output=True, text=True, check=False)
    assert json.loads((clone / "results.sarif").read_text())["version"] == "2.1.0"
    whole = environment(ACTION_PATH=str(TOP), BASE_SHA=base, INPUT_SINCE="none", INPUT_PATHS="README.md\n")
    done = subprocess.run(["bash", "-c", run], cwd=clone, env=whole, capture_output=True, text=True, check=False)
    assert done.returncode == 12, done.stderr


def test_the_action_fetches_the_history_for_a_check_of_everything(project: Project, tmp_path: Path) -> None:
    project.write("README.md", "# App\n\nCall `call_server()` first.\n")
    project.commit("a document")
    project.write("src/client.py", "def ask():\n    return 1\n")
    project.commit("another name")
    run, _ = action_step("Check documents")

    def check(history: str) -> tuple[int, str]:
        clone = tmp_path / f"runner-{history}"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{project.path}", clone], check=True)
        given = environment(ACTION_PATH=str(TOP), INPUT_FORMAT="text", INPUT_HISTORY=history)
        done = subprocess.run(["bash", "-c", run], cwd=clone, env=given, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, shown = check("true")
    assert code == 12
    assert "call_server" in shown
    code, shown = check("false")
    assert "call_server" not in shown


def test_inputs_of_the_action_are_never_code(project: Project, tmp_path: Path) -> None:
    run, _ = action_step("Check documents")
    bad = f"$(touch {tmp_path}/ran)"
    given = environment(ACTION_PATH=str(TOP), INPUT_PATHS=f"{bad}\n; touch {tmp_path}/ran", INPUT_FORMAT="text")
    done = subprocess.run(["bash", "-c", run], cwd=project.path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert not (tmp_path / "ran").exists()


def test_the_action_installs_truekeep(tmp_path: Path) -> None:
    """From a wheel without its dependencies, so that nothing is downloaded."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*build, str(TOP)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("truekeep-*.whl")
    path = tmp_path / "path"
    run, variables = action_step("Install truekeep")
    assert set(variables) == {"ACTION_PATH", "VERSION"}
    given = environment(
        ACTION_PATH=str(TOP),
        RUNNER_TEMP=str(tmp_path),
        GITHUB_PATH=str(path),
        VERSION=f" @ {wheel.as_uri()}",
        PIP_NO_DEPS="1",
    )
    subprocess.run(["bash", "-c", run], cwd=tmp_path, env=given, capture_output=True, text=True, check=True)
    assert (Path(path.read_text().strip()) / "truekeep").exists()


def test_pre_commit_stops_the_commit_that_makes_a_document_false(project: Project, tmp_path: Path) -> None:
    pre_commit = [sys.executable, "-m", "pre_commit"]
    home = environment(PRE_COMMIT_HOME=str(tmp_path / "pre-commit"))
    hooks = TOP / ".pre-commit-hooks.yaml"
    subprocess.run([*pre_commit, "validate-manifest", str(hooks)], env=home, check=True)
    # The hooks as they are, without the installation of a package from a repository.
    local = [{**hook, "language": "system"} for hook in yaml.safe_load(hooks.read_text())]
    project.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}))
    project.commit("hooks")
    subprocess.run([*pre_commit, "install"], cwd=project.path, env=home, capture_output=True, check=True)
    project.git("mv", "src/client.py", "src/remote.py")
    commit = ["git", "commit", "-m", "rename"]
    done = subprocess.run(commit, cwd=project.path, env=home, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "README.md:3" in done.stdout + done.stderr
    assert "src/remote.py" in done.stdout + done.stderr
    project.write("README.md", "# App\n\nThe client is in `src/remote.py`, see [it](src/remote.py).\n")
    project.git("add", "-A")
    done = subprocess.run(commit, cwd=project.path, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
