"""Asks systemd about units, and finds the ports that unit files name."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from truekeep.core.file_io import ChangedSince, UnsafePath, open_root, read_file
from truekeep.verify.live_system.answers import CONFIDENTIAL_NAME, SystemAnswer, ask_program, find_program, make_answer

_MAX_UNIT_BYTES = 256 << 10
_MAX_UNITS = 500
_UNIT_NAME = r"[A-Za-z0-9_][A-Za-z0-9_:.\\@-]{0,200}"
_UNIT_KINDS = (".service", ".socket", ".timer", ".target", ".mount", ".automount", ".path", ".slice", ".scope", ".swap")
_UNIT_FOLDERS: Mapping[str, tuple[str, ...]] = {  # the first wins
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
    """A port number in a unit file or one of its drop-ins, with its place."""

    port: int
    line: int
    path: Path


def query_units(names: Iterable[str]) -> dict[str, SystemAnswer]:
    """Ask systemd about units: the system's, then this user's. A name without a type is a service."""
    units = {name: _full_name(name) for name in names}
    # systemctl fails for the whole list if one name is a template.
    asked = list(dict.fromkeys(unit for unit in units.values() if unit and not _is_template(unit)))[:_MAX_UNITS]
    managers = {"system": _ask_systemd(asked), "user": _ask_systemd(asked, "--user")}
    return {
        name: _answer_for_unit(unit, managers) if unit else make_answer("unknown", f"{name} is not a unit name")
        for name, unit in units.items()
    }


def _full_name(name: str) -> str:
    """Return the name with its type, "" if it is not a unit name. systemctl would take a bare number for a job."""
    if not re.fullmatch(_UNIT_NAME, name):
        return ""
    return name if name.endswith(_UNIT_KINDS) else f"{name}.service"


def _is_template(unit: str) -> bool:
    return "@." in unit


def _ask_systemd(units: list[str], *scope: str) -> tuple[dict[str, Properties], str]:
    if not units or find_program("systemctl") is None:
        return {}, "there is no systemd here"
    wanted = "--property=Id,LoadState,ActiveState,SubState,FragmentPath"
    output = ask_program("systemctl", *scope, "show", wanted, "--no-pager", "--", *units)
    blocks = [dict(line.partition("=")[::2] for line in block.split("\n")) for block in output.text.split("\n\n")]
    blocks = [block for block in blocks if block.get("LoadState") and block.get("Id")]
    if not output.problem and len(blocks) == len(units):
        return dict(zip(units, blocks, strict=True)), ""  # by position: for an alias the answer has another Id
    problem = output.problem or "systemctl did not answer for every unit"
    if "not been booted with systemd" in problem:
        problem = "systemd is not running here"
    return {block["Id"]: block for block in blocks if block["Id"] in units}, problem


def _answer_for_unit(unit: str, managers: Mapping[str, tuple[Mapping[str, Properties], str]]) -> SystemAnswer:
    answers = [(scope, told[unit]) for scope, (told, _) in managers.items() if unit in told]
    known = [(scope, told) for scope, told in answers if told["LoadState"] != "not-found" or _is_active(told)]
    if known:
        return _answer_for_properties(
            unit, *max(known, key=lambda pair: _is_active(pair[1]))
        )  # the system before the user
    if len(answers) == len(managers):
        return make_answer("absent", f"neither the system nor this user has a unit {unit}")
    problems = [problem for told, problem in managers.values() if problem and unit not in told]
    problem = problems[0] if problems else f"systemd is asked for {_MAX_UNITS} units at most"
    problem = "it is a template, so only its instances run" if _is_template(unit) else problem
    scope, path = _find_unit_file(unit)
    if path is None:
        return make_answer("unknown", f"{problem}; no file of {unit} in the usual folders either")
    detail = {"FragmentPath": str(path), "manager": scope}
    if os.path.realpath(path) == os.devnull:
        return make_answer("other", f"masked at {path}; {problem}", detail)
    return make_answer("there", f"unit file at {path}; {problem}", detail)


def _answer_for_properties(unit: str, scope: str, told: Properties) -> SystemAnswer:
    detail = {key: told.get(key, "") for key in ("Id", "LoadState", "ActiveState", "SubState", "FragmentPath")}
    name = unit if told["Id"] == unit else f"{unit} ({told['Id']})"
    what = f"{name} is {detail['ActiveState'] or 'in no known state'}"
    what += f" ({detail['SubState']})" if detail["SubState"] else ""
    what += f", but {told['LoadState']}" if told["LoadState"] != "loaded" else ""
    is_well = told["LoadState"] == "loaded" and _is_active(told)
    return make_answer("there" if is_well else "other", what, detail | {"manager": scope})


def _is_active(told: Properties) -> bool:
    return told.get("ActiveState") in ("active", "activating", "reloading", "refreshing")


def _unit_folders(scope: str) -> list[str]:
    return [os.path.expanduser(folder) for folder in _UNIT_FOLDERS[scope]]


def _unit_names(unit: str) -> list[str]:
    """Return the file names that may define a unit: its own, and for an instance the template's."""
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


# --- Ports in unit files ---------------------------------------------------------------------------------------------

_HOST = r"(?:\[[^\]]*\]|[^:\[\]/@]*)"
_PORT_NAME = r"(?i)(?:^|[-_.])(?:ports?|publish|listen|bind|addr|address)\Z|-p\Z"
_PORT_VALUE = rf"(?:(?:https?|tcp|udp)://)?(?:{_HOST}:)?([0-9]{{1,5}})(?:/.*)?"
_PUBLISHED = rf"(?:{_HOST}:)?([0-9]{{1,5}}):[0-9]{{1,5}}(?:/\w+)?"  # of a container, outside:inside
# A value whose name does not say "port" must be an address of this machine: the port of a database elsewhere is not
# ours, and "admin:12345" is not a port.
_LOCAL_ADDRESS = r"(?:(?:https?|tcp|udp)://)?(?:localhost|[*+]|\d+(?:\.\d+){3}|\[[^\]]*\]|):([0-9]{1,5})(?:[/?#].*)?"


def unit_ports(name: str, known: SystemAnswer | None = None) -> list[int]:
    """Return the ports that a unit file names, in order. The unit may listen on others, or not on all of these."""
    return list(dict.fromkeys(found.port for found in find_unit_ports(name, known)))


def find_unit_ports(name: str, known: SystemAnswer | None = None) -> list[UnitPort]:
    """Return the ports with file and line. `known` saves asking systemd again. No text of the file is returned."""
    unit = _full_name(name)
    detail = (known or query_units([name])[name]).detail if unit else {}
    if not detail.get("FragmentPath"):
        return []
    instance = unit.partition("@")[2].rpartition(".")[0]
    named: dict[tuple[str, str], list[UnitPort]] = {}
    for path in (Path(detail["FragmentPath"]), *_find_drop_ins(unit, detail.get("manager", "system"))):
        for key, words in _iter_settings(_read_unit(path)):
            if not words:  # "ExecStart=" clears the earlier ones
                named = {place: found for place, found in named.items() if place[0] != key}
            for line, label, value in _iter_values(key, words):
                port = _parse_port(label, re.sub("%[iI]", lambda _: instance, value))
                # Of a variable that is set twice the last value counts.
                place = (key, label if key == "Environment" else f"{path}:{line}:{value}")
                named[place] = [UnitPort(port, line, path)] if port else []
    return [found for places in named.values() for found in places]


def _find_drop_ins(unit: str, scope: str) -> list[Path]:
    """Return the drop-ins in order; one of the same name in a stronger folder hides the others."""
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
    """Return the text of a unit file, through symlinks; "" unless it is a regular file of a sensible size."""
    try:
        real = os.path.realpath(path)
        folder = open_root(os.path.dirname(real))
        try:
            return read_file(folder, os.path.basename(real), limit=_MAX_UNIT_BYTES)[0].decode("utf-8", "replace")
        finally:
            os.close(folder)
    except (OSError, ValueError, UnsafePath, ChangedSince):
        return ""


def _iter_settings(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield each setting that can name a port: its key, and its words with their lines."""
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
    except ValueError:  # an unclosed quote
        return line.split()


def _iter_values(key: str, words: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and value of everything in a setting: variables, options, and words without a name."""
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
    """Return the port that a value names; 0 for none, and for a value that may be a secret."""
    if re.search(CONFIDENTIAL_NAME, label):
        return 0
    match = re.fullmatch(_LOCAL_ADDRESS, value)
    if match is None and re.search(_PORT_NAME, label):
        is_published = label in ("-p", "--publish")
        match = (is_published and re.fullmatch(_PUBLISHED, value)) or re.fullmatch(_PORT_VALUE, value)
    port = int(match[1]) if match else 0
    return port if port < 65536 else 0
