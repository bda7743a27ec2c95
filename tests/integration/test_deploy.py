"""What deploy/ says fits the program: the image, compose.yaml and the unit name commands and files that exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

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


def test_the_unit_runs_a_server_with_a_folder_of_its_own() -> None:
    (command,) = re.findall(r"^ExecStart=/usr/bin/env truekeep (.+)$", UNIT, re.MULTILINE)
    (folder,) = re.findall(r"^StateDirectory=(.+)$", UNIT, re.MULTILINE)
    assert str(parse(shlex.split(command))["data"]) == f"/var/lib/{folder}"
