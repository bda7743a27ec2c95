"""What this machine runs now: ports, units, containers, programs and, when somebody asks for it, addresses on the web.

It is looked at from outside and without privileges. No name from a memory is ever run, no port is connected to, and
nothing is started or changed; the four programs that are run (lsof, systemctl, docker, podman) only list, with a fixed
argument list, no shell, no input, a time limit and an output limit. "It is not there" is said only by somebody who was
asked and would have known; everything else is unknown, with the reason. Nothing here raises. What to make of it all is
decided elsewhere.
"""

from __future__ import annotations

import json
import os
import queue
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from functools import cache as remembered
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from truekeep.core import child_process
from truekeep.core.file_io import ChangedSince, UnsafePath, open_root, read_file
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable

if TYPE_CHECKING:
    import socket
    import ssl
    from urllib.parse import SplitResult

State = Literal["there", "other", "absent", "unknown"]

_PATIENCE = 3.0  # seconds for one program
_LARGEST_OUTPUT = 4 << 20
# Patterns are text here, and compiled when first used.
_CONFIDENTIAL = r"(?i)pass|pwd|secret|token|credential|signature|key(?!word)|auth(?!or)"


class SystemAnswer(NamedTuple):
    """What the machine says of one thing.

    `there`: it exists and, if it is something that runs, it runs. `other`: it exists, but not like that: stopped,
    failed, masked. `absent`: whoever would know says no. `unknown`: nobody could be asked, and that is never `absent`.
    """

    state: State
    what: str
    detail: dict[str, str] = {}  # noqa: RUF012 - never written to


def _seen(state: State, what: str, detail: Mapping[str, str] | None = None) -> SystemAnswer:
    """The one place where words of others become ours: on one line, short, nothing unseen in them."""
    return SystemAnswer(
        state, clip(what, 300), {key: printable(value[:1_000]) for key, value in (detail or {}).items() if value}
    )


# --- Programs -------------------------------------------------------------------------------------------------------


def find_program(name: str) -> Path | None:
    """Where PATH has a program of this name. It is not run, and the current folder never counts as part of PATH."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,127}", name):
        found = child_process.find_program(name)
        return Path(found) if found else None
    return None


class _ProgramOutput(NamedTuple):
    """What a program printed, and why that may not be all: empty when it ended well."""

    text: str
    trouble: str


def _ask(program: str, *arguments: str) -> _ProgramOutput:
    path = find_program(program)
    if path is None:
        return _ProgramOutput("", f"{program} is not on PATH")
    late = f"{program} did not answer within {_PATIENCE:g} s"
    deadline = time.monotonic() + _PATIENCE
    try:
        process = subprocess.Popen(
            [str(path), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            cwd="/",
            start_new_session=True,  # so that whatever it starts ends with it
        )
    except OSError as error:
        return _ProgramOutput("", f"{program} cannot be run: {error.strerror}")
    with process, selectors.DefaultSelector() as pipes:
        assert process.stdout is not None
        assert process.stderr is not None
        said = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
        try:
            for pipe in said:
                pipes.register(pipe, selectors.EVENT_READ)
            while pipes.get_map():
                ready = pipes.select(max(0.0, deadline - time.monotonic()))
                if not ready or time.monotonic() > deadline:
                    return _ProgramOutput("", late)
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    said[key.fd] += piece
                    if not piece:
                        pipes.unregister(key.fd)
                if sum(map(len, said.values())) > _LARGEST_OUTPUT:
                    return _ProgramOutput("", f"{program} answered with more than {_LARGEST_OUTPUT >> 20} MB")
            code = process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return _ProgramOutput("", late)
        finally:
            if process.returncode is None:  # not waited for, so the number still is that of its group
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
    text, errors = (data.decode("utf-8", "replace") for data in said.values())
    return _ProgramOutput(text, _trouble(program, code, errors) if code else "")


def _trouble(program: str, code: int, errors: str) -> str:
    said = clip(withhold(errors[:2_000]), 160)
    return f"{program} says: {said}" if said else f"{program} failed with code {code}"


def _environment() -> dict[str, str]:
    kept = "HOME USER LOGNAME XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG"
    clean = {name: os.environ[name] for name in kept.split() if name in os.environ}
    runtime = f"/run/user/{os.getuid()}"  # where a user's systemd is, also when cron or sudo forgot to say so
    if "XDG_RUNTIME_DIR" not in clean and os.path.isdir(runtime):
        clean["XDG_RUNTIME_DIR"] = runtime
    clean |= {"PATH": child_process.absolute_path(os.environ.get("PATH") or os.defpath), "LC_ALL": "C", "NO_COLOR": "1"}
    return clean | {"PAGER": "cat", "SYSTEMD_PAGER": "cat", "SYSTEMD_COLORS": "0"}


# --- Ports ----------------------------------------------------------------------------------------------------------

_PROC = "/proc"
_MACHINE_ONLY = "/proc/sys/net/core/netdev_max_backlog"  # exists in the first network namespace and in no other
_OWNER_PATIENCE = 0.05


class _Listener(NamedTuple):
    port: int
    protocol: str
    address: str
    inode: str = ""
    owner: str = ""
    pid: str = ""


def see_ports(ports: Iterable[int]) -> dict[int, SystemAnswer]:
    """Which of these ports something listens on (TCP) or is bound to (UDP). None of them is connected to."""
    wanted: dict[int, list[_Listener]] = {port: [] for port in ports}
    listeners, blind = _read_lsof() if sys.platform == "darwin" else _read_proc_net()
    for listener in listeners:
        if listener.port in wanted:
            wanted[listener.port].append(listener)
    owners = _find_owners({one.inode for found in wanted.values() for one in found if one.inode})
    return {port: _judge_port(port, found, owners, blind) for port, found in wanted.items()}


def _judge_port(port: int, found: list[_Listener], owners: Mapping[str, tuple[str, str]], blind: str) -> SystemAnswer:
    if not 0 < port < 65536:
        return _seen("unknown", f"{port} is no port")
    if not found:
        return _seen("unknown", blind) if blind else _seen("absent", f"nothing listens on port {port}")
    places = [f"{one.address}:{port}" + (" (UDP)" if one.protocol == "udp" else "") for one in found]
    known = [owner for one in found if (owner := owners.get(one.inode, (one.owner, one.pid)))[0]]
    where = ", ".join(dict.fromkeys(places[:4]))
    detail = {"address": where, "protocol": " ".join(sorted({one.protocol for one in found}))}
    if not known:
        return _seen("there", f"open on {where}; by which program is not visible", detail)
    who = "; ".join(dict.fromkeys(f"{owner}, pid {pid}" for owner, pid in known[:4]))
    return _seen("there", f"listening on {where} ({who})", detail | {"owner": known[0][0], "pid": known[0][1]})


def _read_proc_net() -> tuple[list[_Listener], str]:
    """Every open port of this network namespace, and why there may be others: empty when there are none."""
    found: list[_Listener] = []
    blind = "" if os.path.exists(_MACHINE_ONLY) else "this container or sandbox cannot see the ports of the machine"
    for table in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"{_PROC}/net/{table}", encoding="ascii", errors="replace") as lines:
                next(lines, "")
                for line in lines:
                    _, local, _, state, *rest = line.split()
                    if state == ("0A" if table.startswith("tcp") else "07"):  # listening; bound, with no peer
                        address, _, port = local.partition(":")
                        found.append(_Listener(int(port, 16), table[:3], _parse_address(address), inode=rest[5]))
        except FileNotFoundError:
            if table == "tcp":  # the others may be missing: a kernel without IPv6 has no tcp6
                return [], "this system does not list its open ports"
        except (OSError, ValueError, IndexError):
            blind = "the list of open ports cannot be read"
    return found, blind


def _parse_address(digits: str) -> str:
    """An address as the kernel prints it: 32-bit words in the byte order of this machine."""
    words = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    if len(words) == 1:
        return socket.inet_ntop(socket.AF_INET, packed)
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]"


def _find_owners(inodes: set[str]) -> dict[str, tuple[str, str]]:
    """The program and pid that hold a socket, for those that we may see and find in time."""
    owners: dict[str, tuple[str, str]] = {}
    deadline = time.monotonic() + _OWNER_PATIENCE
    for pid, link in _iter_open_files() if inodes else ():
        inode = link[8:-1] if link.startswith("socket:[") else ""
        if inode in inodes and inode not in owners:
            owners[inode] = (_read_name(pid), str(pid))
        if len(owners) == len(inodes) or time.monotonic() > deadline:
            break
    return owners


def _iter_open_files() -> Iterator[tuple[int, str]]:
    """Every process with what each of its descriptors is, and once without, so that somebody can look at the clock."""
    for pid in sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal()):  # parents before their children
        yield pid, ""
        with suppress(OSError):  # not ours to see, or gone meanwhile
            for number in os.listdir(f"{_PROC}/{pid}/fd"):
                with suppress(OSError):
                    yield pid, os.readlink(f"{_PROC}/{pid}/fd/{number}")


def _read_name(pid: int) -> str:
    try:
        with open(f"{_PROC}/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.readline(64).strip()
    except OSError:
        return ""


def _read_lsof() -> tuple[list[_Listener], str]:
    """What lsof lists. Without privileges it knows only this user's programs, so what it does not list is unknown."""
    told = _ask("lsof", "-nP", "-iTCP", "-sTCP:LISTEN", "-Fpcn")
    found: list[_Listener] = []
    pid = owner = ""
    for line in told.text.split("\n"):  # one field to a line, named by its first letter
        if line.startswith("p"):
            pid, owner = line[1:], ""
        elif line.startswith("c"):
            owner = line[1:]
        elif line.startswith("n"):
            address, _, port = line[1:].rpartition(":")
            if re.fullmatch("[0-9]{1,5}", port):
                found.append(_Listener(int(port), "tcp", address, owner=owner, pid=pid))
    blind = "lsof shows no such listener, but without privileges it may not see those of others"
    return found, blind if found else told.trouble or blind


# --- Units ----------------------------------------------------------------------------------------------------------

_LARGEST_UNIT = 256 << 10
_MOST_UNITS = 500
_UNIT_NAME = r"[A-Za-z0-9_][A-Za-z0-9_:.\\@-]{0,200}"
_UNIT_KINDS = (".service", ".socket", ".timer", ".target", ".mount", ".automount", ".path", ".slice", ".scope", ".swap")
_UNIT_FOLDERS: Mapping[str, tuple[str, ...]] = {  # the first has the last word
    "system": (
        "/etc/systemd/system",
        "/run/systemd/system",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ),
    "user": ("~/.config/systemd/user", "/etc/systemd/user", "~/.local/share/systemd/user", "/usr/lib/systemd/user"),
}

Properties = Mapping[str, str]


class UnitPort(NamedTuple):
    """A port number in a unit file or one of its drop-ins, and where it stands."""

    port: int
    line: int
    path: Path


def see_units(names: Iterable[str]) -> dict[str, SystemAnswer]:
    """What systemd says of these units: the system's, or else this user's own. A name without a kind is a service."""
    units = {name: _full_name(name) for name in names}
    # A template is nothing that systemd could be asked about, and one such name would end the answer for all.
    asked = list(dict.fromkeys(unit for unit in units.values() if unit and not _is_template(unit)))[:_MOST_UNITS]
    managers = {"system": _ask_systemd(asked), "user": _ask_systemd(asked, "--user")}
    return {
        name: _judge_unit(unit, managers) if unit else _seen("unknown", f"{name} is no unit's name")
        for name, unit in units.items()
    }


def _full_name(name: str) -> str:
    """The name as systemd has it, or nothing. A bare number must not go out as it is: systemctl takes it for a job."""
    if not re.fullmatch(_UNIT_NAME, name):
        return ""
    return name if name.endswith(_UNIT_KINDS) else f"{name}.service"


def _is_template(unit: str) -> bool:
    return "@." in unit


def _ask_systemd(units: list[str], *scope: str) -> tuple[dict[str, Properties], str]:
    if not units or find_program("systemctl") is None:
        return {}, "there is no systemd here"
    wanted = "--property=Id,LoadState,ActiveState,SubState,FragmentPath"
    told = _ask("systemctl", *scope, "show", wanted, "--no-pager", "--", *units)
    blocks = [dict(line.partition("=")[::2] for line in block.split("\n")) for block in told.text.split("\n\n")]
    blocks = [block for block in blocks if block.get("LoadState") and block.get("Id")]
    if not told.trouble and len(blocks) == len(units):
        return dict(zip(units, blocks, strict=True)), ""  # by place, because an alias is answered by another name
    trouble = told.trouble or "systemctl did not answer for every unit"
    if "not been booted with systemd" in trouble:
        trouble = "systemd is not running here"
    return {block["Id"]: block for block in blocks if block["Id"] in units}, trouble


def _judge_unit(unit: str, managers: Mapping[str, tuple[Mapping[str, Properties], str]]) -> SystemAnswer:
    answers = [(scope, told[unit]) for scope, (told, _) in managers.items() if unit in told]
    known = [(scope, told) for scope, told in answers if told["LoadState"] != "not-found" or _is_active(told)]
    if known:
        return _judge_properties(unit, *max(known, key=lambda pair: _is_active(pair[1])))  # the first of equals
    if len(answers) == len(managers):
        return _seen("absent", f"neither the system nor this user has a unit {unit}")
    troubles = [trouble for told, trouble in managers.values() if trouble and unit not in told]
    trouble = troubles[0] if troubles else f"systemd is asked for {_MOST_UNITS} units at most"
    trouble = "it is a template, of which only instances run" if _is_template(unit) else trouble
    scope, path = _find_unit_file(unit)
    if path is None:
        return _seen("unknown", f"{trouble}; no file of {unit} in the usual folders either")
    detail = {"FragmentPath": str(path), "manager": scope}
    if os.path.realpath(path) == os.devnull:
        return _seen("other", f"masked at {path}; {trouble}", detail)
    return _seen("there", f"unit file at {path}; {trouble}", detail)


def _judge_properties(unit: str, scope: str, told: Properties) -> SystemAnswer:
    detail = {key: told.get(key, "") for key in ("Id", "LoadState", "ActiveState", "SubState", "FragmentPath")}
    name = unit if told["Id"] == unit else f"{unit} ({told['Id']})"
    what = f"{name} is {detail['ActiveState'] or 'in no known state'}"
    what += f" ({detail['SubState']})" if detail["SubState"] else ""
    what += f", but {told['LoadState']}" if told["LoadState"] != "loaded" else ""
    is_well = told["LoadState"] == "loaded" and _is_active(told)
    return _seen("there" if is_well else "other", what, detail | {"manager": scope})


def _is_active(told: Properties) -> bool:
    return told.get("ActiveState") in ("active", "activating", "reloading", "refreshing")


def _unit_folders(scope: str) -> list[str]:
    return [os.path.expanduser(folder) for folder in _UNIT_FOLDERS[scope]]


def _unit_names(unit: str) -> list[str]:
    """The names of the files that may describe a unit: its own, and the template's of an instance."""
    prefix, at, instance = unit.partition("@")
    return [unit, f"{prefix}@.{instance.rpartition('.')[2]}"] if at else [unit]


def _find_unit_file(unit: str) -> tuple[str, Path | None]:
    for scope in _UNIT_FOLDERS:
        for name in _unit_names(unit):
            for folder in _unit_folders(scope):
                path = os.path.join(folder, name)
                if os.path.isfile(path) or os.path.realpath(path) == os.devnull:
                    return scope, Path(path)
    return "", None


# --- Ports of units -------------------------------------------------------------------------------------------------

_HOST = r"(?:\[[^\]]*\]|[^:\[\]/@]*)"
_PORT_NAME = r"(?i)(?:^|[-_.])(?:ports?|publish|listen|bind|addr|address)\Z|-p\Z"
_PORT_VALUE = rf"(?:(?:https?|tcp|udp)://)?(?:{_HOST}:)?([0-9]{{1,5}})(?:/.*)?"
_PUBLISHED = rf"(?:{_HOST}:)?([0-9]{{1,5}}):[0-9]{{1,5}}(?:/\w+)?"  # as containers have it: outside:inside
# Without a name that says "port", only an address of this machine counts. The port of a database elsewhere is not ours,
# and "admin:12345" is no port at all.
_LOCAL = r"(?:(?:https?|tcp|udp)://)?(?:localhost|[*+]|\d+(?:\.\d+){3}|\[[^\]]*\]|):([0-9]{1,5})(?:[/?#].*)?"


def unit_ports(name: str, seen: SystemAnswer | None = None) -> list[int]:
    """The ports that a unit file names, in their order. It need not listen on all of them, or on no others."""
    return list(dict.fromkeys(found.port for found in find_unit_ports(name, seen)))


def find_unit_ports(name: str, seen: SystemAnswer | None = None) -> list[UnitPort]:
    """The same, each with its file and line. `seen` spares asking systemd again. Of the text, nothing is returned."""
    unit = _full_name(name)
    detail = (seen or see_units([name])[name]).detail if unit else {}
    if not detail.get("FragmentPath"):
        return []
    instance = unit.partition("@")[2].rpartition(".")[0]
    named: dict[tuple[str, str], list[UnitPort]] = {}
    for path in (Path(detail["FragmentPath"]), *_find_drop_ins(unit, detail.get("manager", "system"))):
        for key, words in _iter_settings(_read_unit(path)):
            if not words:  # "ExecStart=" takes back what came before it
                named = {place: found for place, found in named.items() if place[0] != key}
            for line, label, value in _iter_values(key, words):
                port = _parse_port(label, re.sub("%[iI]", lambda _: instance, value))
                # A variable that is set again has only its last value.
                place = (key, label if key == "Environment" else f"{path}:{line}:{value}")
                named[place] = [UnitPort(port, line, path)] if port else []
    return [found for places in named.values() for found in places]


def _find_drop_ins(unit: str, scope: str) -> list[Path]:
    """The drop-ins in the order in which they count; one of the same name in a better folder hides the others."""
    found: dict[str, Path] = {}
    for name in reversed(_unit_names(unit)):
        for folder in reversed(_unit_folders(scope if scope in _UNIT_FOLDERS else "system")):
            try:
                confs = [conf for conf in os.listdir(f"{folder}/{name}.d") if conf.endswith(".conf")]
            except OSError:
                continue
            found |= {conf: Path(folder, f"{name}.d", conf) for conf in confs}
    return [found[conf] for conf in sorted(found)][:50]


def _read_unit(path: Path) -> str:
    """The text of a unit file, wherever its symlink leads; empty unless that is a plain file of a unit's size."""
    try:
        real = os.path.realpath(path)
        folder = open_root(os.path.dirname(real))
        try:
            return read_file(folder, os.path.basename(real), limit=_LARGEST_UNIT)[0].decode("utf-8", "replace")
        finally:
            os.close(folder)
    except (OSError, ValueError, UnsafePath, ChangedSince):
        return ""


def _iter_settings(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Each setting that can name a port: its key, and its words with their lines."""
    key, is_open = "", False
    words: list[tuple[int, str]] = []
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = raw.strip()
        if line.startswith(("#", ";")):
            continue
        if not is_open:
            key, _, line = line.partition("=")
            key, words = key.strip(), []
        is_open = line.endswith("\\")
        if key in ("ExecStart", "Environment", "ListenStream", "ListenDatagram"):
            words += [(number, word) for word in _split_words(line.removesuffix("\\"))]
            if not is_open:
                yield key, words


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quote that is not closed
        return line.split()


def _iter_values(key: str, words: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Line, name and value of everything in a setting: variables, options, and words without a name."""
    if key != "ExecStart":
        for line, word in words:
            label, _, value = word.partition("=") if key == "Environment" else ("listen", "", word)
            yield line, label, value
        return
    option = ""
    for line, word in [(line, part) for line, text in words for part in text.split()]:  # sh -c "one --port 80"
        label, equals, value = word.partition("=")
        if short := re.fullmatch(r"-p([\d.:/]+)", word):
            yield line, "-p", short[1]
        elif equals:
            yield line, label, value
        else:
            yield line, option, word
        option = word if word.startswith("-") and not equals else ""


def _parse_port(label: str, value: str) -> int:
    """The port that a value names; 0 for none, and for whatever may be a secret."""
    if re.search(_CONFIDENTIAL, label):
        return 0
    match = re.fullmatch(_LOCAL, value)
    if match is None and re.search(_PORT_NAME, label):
        is_published = label in ("-p", "--publish")
        match = (is_published and re.fullmatch(_PUBLISHED, value)) or re.fullmatch(_PORT_VALUE, value)
    port = int(match[1]) if match else 0
    return port if port < 65536 else 0


# --- Containers -----------------------------------------------------------------------------------------------------

_SERVICE_LABELS = ("com.docker.compose.service", "io.podman.compose.service")
_HERE = r"(?:unix|fd)://|tcp://(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?\Z"


class _Container(NamedTuple):
    names: tuple[str, ...]
    detail: dict[str, str]  # id, image, state, status, service


def see_containers(names: Iterable[str]) -> dict[str, SystemAnswer]:
    """What docker, and then podman, has under these names, ids of twelve digits or more, or compose services."""
    seen: dict[str, SystemAnswer] = {}
    missing = list(dict.fromkeys(names))
    asked: list[str] = []
    troubles: list[str] = []
    for program in ("docker", "podman"):
        if missing and find_program(program) and (program == "docker" or _is_podman_used()):
            containers, trouble = _list_containers(program)
            asked.append(program)
            troubles += [trouble] if trouble else []
            seen |= {name: _judge_container(one) for name in missing if (one := _find_container(name, containers))}
            missing = [name for name in missing if name not in seen]
    for name in missing:
        if troubles or not asked:
            seen[name] = _seen("unknown", troubles[0] if troubles else "neither docker nor podman is here")
        else:
            seen[name] = _seen("absent", f"{' and '.join(asked)}, asked as this user: no container {name}")
    return seen


def _is_podman_used() -> bool:
    """Whether podman ever had a container here. If not, only asking would make it set up its folders."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.isdir("/var/lib/containers/storage" if os.geteuid() == 0 else f"{home}/containers")


def _list_containers(program: str) -> tuple[list[_Container], str]:
    if program == "docker":
        host = _ask(program, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").text.strip()
        if host and not re.match(_HERE, host):
            return [], "docker is set up for another machine"
    told = _ask(program, "ps", "-a", "--no-trunc", "--format", "{{json .}}")
    if told.trouble:
        return [], told.trouble
    try:
        return [_parse_container(json.loads(line)) for line in told.text.split("\n") if line.strip()], ""
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [], f"the answer of {program} cannot be read"


def _parse_container(row: Any) -> _Container:
    """A line of docker, where all is text, or of podman, where names are a list and labels a table."""
    names, labels = row["Names"], row.get("Labels") or {}
    if isinstance(labels, str):
        labels = dict(label.partition("=")[::2] for label in labels.split(","))
    detail = {key: str(row.get(key.title()) or "") for key in ("image", "state", "status")}
    detail["id"] = str(row.get("ID") or row["Id"])
    detail["service"] = next((str(labels[label]) for label in _SERVICE_LABELS if label in labels), "")
    return _Container(tuple(names.split(",")) if isinstance(names, str) else tuple(map(str, names)), detail)


def _find_container(name: str, containers: list[_Container]) -> _Container | None:
    """By name, else by id, else by service; of several, one that runs."""
    is_id = re.fullmatch("[0-9a-f]{12,64}", name) is not None
    fits = (
        [one for one in containers if name and name in one.names]
        or [one for one in containers if is_id and one.detail["id"].startswith(name)]
        or [one for one in containers if name and name == one.detail["service"]]
    )
    return max(fits, key=_is_running, default=None)


def _is_running(container: _Container) -> bool:
    state, status = container.detail["state"], container.detail["status"]
    return state == "running" if state else status.startswith("Up") and "(Paused)" not in status  # old ones: no state


def _judge_container(container: _Container) -> SystemAnswer:
    detail = container.detail
    name = container.names[0] if container.names else detail["id"][:12]
    what = f"container {name} of {detail['image']}: {detail['status'] or detail['state'] or 'in no known state'}"
    return _seen("there" if _is_running(container) else "other", what, {"name": name, **detail})


# --- Addresses on the web -------------------------------------------------------------------------------------------

_AT_ONCE = 6
_MOST_REDIRECTS = 5
_LARGEST_HEAD = 16 << 10
_REFUSED = -1  # stands for a status where nobody was asked, which is not worth keeping
_METADATA = ("168.63.129.16",)  # Azure's; the other clouds have theirs in ranges that are not public anyway
_SAFE_IN_URL = "%/:=&?~+!$,;'@()*[]|"

Cached = tuple[float, int, str]


def see_urls(
    urls: Iterable[str],
    *,
    cache: MutableMapping[str, Cached],
    now: float,
    max_age: float,
    timeout: float,
    most: int,
    allow_private: bool = False,
) -> dict[str, SystemAnswer]:
    """Whether these addresses answer. This goes online, so it is for those who asked for it.

    The addresses come from text that anybody may have written. So none is asked that holds a credential or that leads,
    at once or by a redirect, to a network that is not public. `timeout` is for one address with all its redirects.
    `cache` has time, status (0: no answer) and words for each; what is unknown counts for a tenth of `max_age`.
    """
    seen: dict[str, SystemAnswer | None] = dict.fromkeys(urls)
    keys = {url: url.partition("#")[0] for url in seen}
    waiting: dict[str, None] = {}
    for url, key in keys.items():
        refusal = _find_refusal(key)
        seen[url] = _seen("unknown", refusal) if refusal else _find_cached(cache, key, now, max_age)
        if seen[url] is None and len(waiting) < most:
            waiting[key] = None
    answers = _ask_web(list(waiting), timeout, allow_private=allow_private)
    cache.update({key: (now, status, what) for key, (status, what) in answers.items() if status != _REFUSED})
    unasked = (_REFUSED, f"not asked: {most} addresses at a time are enough")
    return {url: known or _judge_url(*answers.get(keys[url], unasked)) for url, known in seen.items()}


def _judge_url(status: int, what: str) -> SystemAnswer:
    state: State = "absent" if status in (404, 410) else "there" if 200 <= status < 400 else "unknown"
    return _seen(state, what, {"status": str(status)} if status > 0 else None)


def _find_cached(cache: Mapping[str, Cached], key: str, now: float, max_age: float) -> SystemAnswer | None:
    try:
        at, status, what = cache[key]
        seen = _judge_url(status, what)
        limit = max_age / 10 if seen.state == "unknown" else max_age
        return seen if 0 <= now - at <= limit else None
    except (KeyError, TypeError, ValueError, AttributeError):  # whoever kept it may have kept anything
        return None


def _find_refusal(url: str) -> str:
    """Why an address in a memory is not asked; empty when it may be."""
    from truekeep.text.secrets.scanner import find_secrets

    parts = _split_url(url)
    if parts is None:
        return "no address that could be asked"
    named = [pair.partition("=")[0] for pair in parts.query.split("&") if "=" in pair]
    if "@" in parts.netloc or any(re.search(_CONFIDENTIAL, name) for name in named) or find_secrets(url):
        return "holds a credential, so it is not asked"
    return ""


def _split_url(url: str) -> SplitResult | None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and len(url) <= 2_000
    except ValueError:
        return None
    return parts if is_web and url.isprintable() and " " not in url else None


def _ask_web(urls: list[str], timeout: float, *, allow_private: bool) -> dict[str, tuple[int, str]]:
    """Status and words for each address. Past the deadline nobody listens any more: looking up a name has no limit."""
    late = (0, f"did not answer within {timeout:g} s")
    answers = dict.fromkeys(urls, late)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    arrived: queue.SimpleQueue[tuple[str, tuple[int, str]]] = queue.SimpleQueue()
    end = time.monotonic() + timeout * -(-len(urls) // _AT_ONCE) + 0.5

    def work() -> None:
        while time.monotonic() < end:
            try:
                url = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                arrived.put((url, _follow(url, time.monotonic() + timeout, allow_private=allow_private)))
            except TimeoutError:
                arrived.put((url, late))
            except Exception as error:  # noqa: BLE001 - the answer to a stranger's address may go wrong in any way
                arrived.put((url, (0, _explain(error))))

    for url in urls:
        waiting.put(url)
    for _ in urls[:_AT_ONCE]:
        threading.Thread(target=work, name="truekeep-web", daemon=True).start()
    for _ in urls:
        try:
            url, answer = arrived.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        answers[url] = answer
    return answers


def _explain(error: Exception) -> str:
    import ssl

    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "its name cannot be looked up"
    if isinstance(error, ssl.SSLError):
        return f"cannot be asked safely: {getattr(error, 'verify_message', '') or error.reason or 'TLS failed'}"
    return f"cannot be reached: {getattr(error, 'strerror', '') or type(error).__name__}"


def _follow(url: str, deadline: float, *, allow_private: bool) -> tuple[int, str]:
    """Ask, and follow redirects; each hop is checked as if it had come first."""
    from http.client import responses
    from urllib.parse import urljoin

    hop, by_way = url, ""
    for _ in range(_MOST_REDIRECTS + 1):
        parts = _split_url(hop)
        if parts is None or "@" in parts.netloc:
            return 0, "redirects to an address that is not asked"
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = _resolve(host, port)
        if not allow_private and not all(map(_is_public, addresses)):
            return _REFUSED, f"{'redirects to' if by_way else 'is on'} a network that is not public, which is not asked"
        for method in ("HEAD", "GET"):  # some know no HEAD, and some say 404 to it
            status, location = _exchange(method, parts, host, addresses, port, deadline)
            if 0 < status < 400 or status in (401, 429):
                break
        if not (location and status in (301, 302, 303, 307, 308)):
            if not status:
                return 0, "does not answer in HTTP"
            said = f"answers {status} {responses.get(status, '')}".rstrip()
            said += ", at least to those who are not signed in" if status in (404, 410) else ""
            return status, said + by_way
        hop = urljoin(hop, location)
        by_way = f", after a redirect to {withhold(hop.partition('?')[0].partition('#')[0])}"
    return 0, f"redirects more than {_MOST_REDIRECTS} times"


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_public(address: str) -> bool:
    """Whether an address belongs to the internet at large, also when it is an IPv4 address inside an IPv6 one."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in ip_network("64:ff9b::/96"):  # NAT64
            inner = IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is None and ip not in ip_network("2000::/3"):
            return False
        ip = inner or ip
    is_odd = ip.is_multicast or ip.is_reserved or ip in ip_network("192.0.0.0/24") or str(ip) in _METADATA
    return ip.is_global and not is_odd


def _exchange(
    method: str, parts: SplitResult, host: str, addresses: list[str], port: int, deadline: float
) -> tuple[int, str]:
    """Status and Location of one answer, of which only the head is read. 0 when there is none.

    It is a socket and not an HTTP client, because the connection must go to an address that was checked, and because
    one deadline must cover every read: a server that sends a byte now and then would hold a client for ever.
    """
    from urllib.parse import quote

    target = quote(parts.path or "/", safe=_SAFE_IN_URL)
    target += f"?{quote(parts.query, safe=_SAFE_IN_URL)}" if parts.query else ""
    name = f"[{host}]" if ":" in host else host
    name += f":{parts.port}" if parts.port else ""
    headers = f"Host: {name}\r\nUser-Agent: truekeep\r\nAccept: */*\r\nConnection: close\r\n"
    received = b""
    with _connect(addresses, port, deadline) as plain:
        plain.settimeout(_left(deadline))
        wire = _trust().wrap_socket(plain, server_hostname=host.rstrip(".")) if parts.scheme == "https" else plain
        with wire, suppress(ConnectionError):  # some hang up on HEAD, and some as soon as they have answered
            wire.sendall(f"{method} {target} HTTP/1.1\r\n{headers}\r\n".encode("ascii"))
            while len(received) < _LARGEST_HEAD:
                head, end, rest = received.partition(b"\r\n\r\n")
                if end and re.match(rb"HTTP/1\.1 1\d\d\b", head):
                    received = rest  # 100 Continue and 103 Early Hints come before the answer
                elif end:
                    break
                else:
                    wire.settimeout(_left(deadline))
                    piece = wire.recv(1 << 12)
                    if not piece:
                        break
                    received += piece
    head = received.partition(b"\r\n\r\n")[0]
    status = re.match(rb"HTTP/1\.[01] ([2-5]\d\d)\b", head)
    location = re.search(rb"(?im)^location:[ \t]*(\S+)", head)
    return int(status[1]) if status else 0, location[1].decode("utf-8", "replace") if location else ""


def _connect(addresses: list[str], port: int, deadline: float) -> socket.socket:
    failure: OSError = OSError("no address")
    for place, address in enumerate(addresses := addresses[:4]):
        try:
            return socket.create_connection((address, port), timeout=_left(deadline) / (len(addresses) - place))
        except OSError as error:
            failure = error
    raise failure


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@remembered
def _trust() -> ssl.SSLContext:
    """The certificates that the rest of truekeep trusts; reading them takes longer than many a request."""
    import httpx

    return httpx.create_ssl_context()
