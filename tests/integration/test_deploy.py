"""What deploy/ says fits the program: the image, compose.yaml and the unit name commands and files that exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import yaml
from psycopg.conninfo import make_conninfo

from tests.support.helpers import a_card, a_handoff, wait_until
from tests.support.postgres import Cluster, running_cluster
from truekeep.interfaces.cli.app import cli

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
UNIT = (ROOT / "deploy/truekeep-server.service").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())


def parse(words: list[str]) -> dict[str, Any]:
    """The options of the command that these words call; a wrong one is an error."""
    found: click.Command = cli
    context = click.Context(found)
    while isinstance(found, click.Group):
        name, *words = words
        found = found.get_command(context, name) or pytest.fail(f"there is no command {name}")
        context = click.Context(found, parent=context, info_name=name)
    found.parse_args(context, words)
    return context.params


def instruction(name: str) -> str:
    (text,) = re.findall(rf"^{name} (.*(?:\\\n.*)*)$", DOCKERFILE, re.MULTILINE)
    return str(text)


def test_the_image_runs_a_server_on_the_port_that_it_exposes() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["truekeep"]
    options = parse(json.loads(instruction("CMD")))
    assert options["host"] == "0.0.0.0"
    port = options["port"]
    assert instruction("EXPOSE") == str(port)
    assert f"http://127.0.0.1:{port}/healthz" in instruction("HEALTHCHECK")
    assert instruction("VOLUME") in json.loads(instruction("CMD"))
    assert COMPOSE["services"]["proxy"]["command"].endswith(f" --to server:{port}")


def test_the_image_installs_an_extra_and_versions_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extra,) = re.findall(r"/src\[(\w+)\]", DOCKERFILE)
    assert extra in extras
    (constraints,) = re.findall(r"--constraint /src/(\S+)", DOCKERFILE)
    assert (ROOT / constraints).is_file()


def test_nothing_that_was_made_here_goes_into_the_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().replace("**/", "").split()
    assert set(ignored) >= set((ROOT / ".gitignore").read_text().split()) - {"*.egg-info/"}


def test_compose_names_files_commands_and_services_that_exist() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        if build := service.get("build"):
            assert (ROOT / "deploy" / build["context"] / build["dockerfile"]).is_file()
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / "deploy" / source).is_file()
    comments = re.findall(r"docker compose .* run --rm admin (.+)$", (ROOT / "deploy/compose.yaml").read_text(), re.M)
    assert len(comments) == 2
    for comment in comments:
        parse(shlex.split(comment))


def test_the_worker_of_compose_takes_no_requests() -> None:
    worker = COMPOSE["services"]["worker"]
    options = parse(worker["command"])
    assert f"worker:{options['data']}" in worker["volumes"]
    assert worker["healthcheck"] == {"disable": True}, "the image's own asks for /healthz"
    assert (
        worker["environment"]["TRUEKEEP_DATABASE"] == COMPOSE["services"]["server"]["environment"]["TRUEKEEP_DATABASE"]
    )


def test_the_unit_runs_a_server_with_a_folder_of_its_own() -> None:
    (command,) = re.findall(r"^ExecStart=/usr/bin/env truekeep (.+)$", UNIT, re.MULTILINE)
    (folder,) = re.findall(r"^StateDirectory=(.+)$", UNIT, re.MULTILINE)
    assert str(parse(shlex.split(command))["data"]) == f"/var/lib/{folder}"


# --- The same steps, without containers -----------------------------------------------------------------------------


@pytest.fixture
def database() -> Iterator[Cluster]:
    """A PostgreSQL after its first start: with the database of compose.yaml, and what login.sh does."""
    pytest.importorskip("psycopg")
    with running_cluster() as cluster:
        folder = cluster.url.partition("host=")[2]
        psql = next((str(path) for path in (cluster.binaries / "psql",) if path.exists()), shutil.which("psql"))
        if psql is None:
            pytest.skip("no psql")
        subprocess.run([psql, "-q", "-h", folder, "-U", "postgres", "-c", "CREATE DATABASE truekeep"], check=True)
        path = f"{Path(psql).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "PGHOST": folder, "SERVER_PASSWORD": "it's secret"}
        subprocess.run(["sh", str(ROOT / "deploy/login.sh")], env=env, check=True, stdout=subprocess.DEVNULL)
        yield cluster


def test_the_images_steps_as_a_script(database: Cluster, tmp_path: Path) -> None:
    """Install as the image does, prepare as compose.yaml says, run what the image runs, ask what it asks for health.

    Dependencies are those of this environment, unless an index may be asked (TRUEKEEP_TEST_INDEX).
    """
    owner = make_conninfo(database.url, dbname="truekeep")
    source, data = tmp_path / "src", tmp_path / "data"
    ignored = [Path(pattern).name for pattern in (ROOT / ".dockerignore").read_text().split()]
    skipped = shutil.ignore_patterns(*ignored, ".git", "images", "tests")
    shutil.copytree(ROOT, source, ignore=skipped)
    venv.create(tmp_path / "image", with_pip=False, symlinks=True)
    python, truekeep = (tmp_path / "image/bin" / name for name in ("python", "truekeep"))
    (install,) = re.findall(r"^RUN (pip install .*?) &&", DOCKERFILE, re.MULTILINE)
    words = [word.replace("/src", str(source)) for word in shlex.split(install)[1:]]
    offline = [] if os.environ.get("TRUEKEEP_TEST_INDEX") else ["--no-index", "--no-deps", "--no-build-isolation"]
    if offline:
        site = next((tmp_path / "image/lib").glob("python*/site-packages"))
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *words, "-q", *offline], check=True)

    def run(*words: str) -> str:
        env = {**os.environ, "TRUEKEEP_DATABASE": owner}
        done = subprocess.run([str(truekeep), *words], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("server", "init", "--name", "memory.example.com")
    run("server", "create", "platform")
    run("server", "grant", "ada", "platform", "owner")
    token = run("token", "create", "ada").split()[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [word.replace("/data", str(data)) for word in json.loads(instruction("CMD"))]
    env = {**os.environ, "TRUEKEEP_DATABASE": make_conninfo(owner, user="truekeep_login", password="it's secret")}
    process = subprocess.Popen([str(truekeep), *command, "--port", port], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "serving at" in process.stdout.readline()
        _, health = instruction("HEALTHCHECK").split(" CMD ")
        words = json.loads(health.replace("127.0.0.1:8381", f"127.0.0.1:{port}"))
        subprocess.run([str(python), *words[1:]], check=True)
        url = f"http://127.0.0.1:{port}"
        headers = {"Authorization": f"Bearer {token}"}
        letter = a_handoff(card="queue.md", title="Queue", content=a_card("Job queue", "Jobs are in `orders`."))
        sent = httpx.post(f"{url}/api/v1/workspaces/platform/handoffs", content=letter, headers=headers)
        assert sent.status_code == 202, sent.text

        def is_filed() -> bool:
            found = httpx.get(f"{url}/api/v1/workspaces/platform/memory/memory/cards/queue.md", headers=headers)
            return found.status_code == 200

        assert wait_until(is_filed)
        assert httpx.get(f"{url}/").headers["location"] == "/sign-in"
    finally:
        process.terminate()
        process.communicate(timeout=60)
