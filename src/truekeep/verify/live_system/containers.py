"""Asks docker and podman about containers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from truekeep.verify.live_system.answers import SystemAnswer, ask_program, find_program, make_answer

_SERVICE_LABELS = ("com.docker.compose.service", "io.podman.compose.service")
_LOCAL_DOCKER_HOST = r"(?:unix|fd)://|tcp://(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?\Z"


class _Container(NamedTuple):
    """A container as docker or podman lists it."""

    names: tuple[str, ...]
    detail: dict[str, str]  # id, image, state, status, service


def query_containers(names: Iterable[str]) -> dict[str, SystemAnswer]:
    """Ask docker, then podman, for containers by name, id (twelve digits or more) or compose service."""
    seen: dict[str, SystemAnswer] = {}
    missing = list(dict.fromkeys(names))
    asked: list[str] = []
    problems: list[str] = []
    for program in ("docker", "podman"):
        if missing and find_program(program) and (program == "docker" or _is_podman_used()):
            containers, problem = _list_containers(program)
            asked.append(program)
            problems += [problem] if problem else []
            seen |= {name: _answer_for_container(one) for name in missing if (one := _find_container(name, containers))}
            missing = [name for name in missing if name not in seen]
    for name in missing:
        if problems or not asked:
            seen[name] = make_answer("unknown", problems[0] if problems else "neither docker nor podman is installed")
        else:
            seen[name] = make_answer("absent", f"{' and '.join(asked)}, asked as this user: no container {name}")
    return seen


def _is_podman_used() -> bool:
    """Whether podman was ever used here. If not, `podman ps` would create its folders."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.isdir("/var/lib/containers/storage" if os.geteuid() == 0 else f"{home}/containers")


def _list_containers(program: str) -> tuple[list[_Container], str]:
    if program == "docker":
        host = ask_program(program, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").text.strip()
        if host and not re.match(_LOCAL_DOCKER_HOST, host):
            return [], "docker is set up for another machine"
    output = ask_program(program, "ps", "-a", "--no-trunc", "--format", "{{json .}}")
    if output.problem:
        return [], output.problem
    try:
        return [_parse_container(json.loads(line)) for line in output.text.split("\n") if line.strip()], ""
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [], f"the answer of {program} cannot be read"


def _parse_container(row: Any) -> _Container:
    """Parse a line of docker, where all is text, or of podman, where names are a list and labels an object."""
    names, labels = row["Names"], row.get("Labels") or {}
    if isinstance(labels, str):
        labels = dict(label.partition("=")[::2] for label in labels.split(","))
    detail = {key: str(row.get(key.title()) or "") for key in ("image", "state", "status")}
    detail["id"] = str(row.get("ID") or row["Id"])
    detail["service"] = next((str(labels[label]) for label in _SERVICE_LABELS if label in labels), "")
    return _Container(tuple(names.split(",")) if isinstance(names, str) else tuple(map(str, names)), detail)


def _find_container(name: str, containers: list[_Container]) -> _Container | None:
    """Find a container by name, else by id, else by service; of several, one that runs."""
    is_id = re.fullmatch("[0-9a-f]{12,64}", name) is not None
    fits = (
        [one for one in containers if name and name in one.names]
        or [one for one in containers if is_id and one.detail["id"].startswith(name)]
        or [one for one in containers if name and name == one.detail["service"]]
    )
    return max(fits, key=_is_running, default=None)


def _is_running(container: _Container) -> bool:
    state, status = container.detail["state"], container.detail["status"]
    return (
        state == "running" if state else status.startswith("Up") and "(Paused)" not in status
    )  # old versions give no state


def _answer_for_container(container: _Container) -> SystemAnswer:
    detail = container.detail
    name = container.names[0] if container.names else detail["id"][:12]
    what = f"container {name} of {detail['image']}: {detail['status'] or detail['state'] or 'in no known state'}"
    return make_answer("there" if _is_running(container) else "other", what, {"name": name, **detail})
