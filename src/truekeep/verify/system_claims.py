"""Checks claims about what runs: ports, units, containers, and URLs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence

from truekeep.verify.cache import FactsCache
from truekeep.verify.cron_claims import check_cron_here
from truekeep.verify.file_kinds import language_for
from truekeep.verify.live_system.answers import SystemAnswer
from truekeep.verify.live_system.configured import query_ids
from truekeep.verify.live_system.containers import query_containers
from truekeep.verify.live_system.ports import query_ports
from truekeep.verify.live_system.systemd import query_units, unit_ports
from truekeep.verify.live_system.urls import query_urls
from truekeep.verify.options import Options
from truekeep.verify.package_claims import find_last_listed, is_unreadable
from truekeep.verify.question import Question
from truekeep.verify.repository import World, is_code, prefer
from truekeep.verify.subject import IN_HEADING
from truekeep.verify.verdict import CODE, Verdict, changed, confirmed, gone, moved, unverifiable

_URL_CACHE_SECONDS = 7 * 86_400
_URL_TIMEOUT = 10.0
_MAX_URLS = 200


def check_ports(world: World, questions: Sequence[Question]) -> dict[int, Verdict]:
    """Check ports against unit files, what listens now, configuration, and code."""
    if not questions:
        return {}
    answers = query_ports({int(item.claim.name) for item in questions}) if world.options.system else {}
    installed = _installed_unit_ports(questions) if world.options.system else {}
    words = world.now.find("words", {item.claim.name for item in questions})
    verdicts = {}
    for question in questions:
        claim = question.claim
        port = int(claim.name)
        configured = [
            (path, line)
            for path, manifest in world.manifests.items()
            for number, line in manifest.ports
            if number == port
        ]
        said = _ports_of_unit_file(world, claim.near) or installed.get(claim.near, []) if claim.near else []
        if (by_unit := _check_port_of_unit(question, said)) is not None:
            verdicts[id(question)] = by_unit
            continue
        here = answers.get(port)
        if here is not None and here.state == "there":
            verdicts[id(question)] = confirmed(question, "listening", here.what)
        elif world.is_home:
            verdicts[id(question)] = _find_port_of_service(world, question, configured, words[claim.name])
        elif configured:
            path, line = configured[0]
            verdicts[id(question)] = confirmed(question, "configured", f"in {path}:{line}", f"{path}:{line}")
        else:
            verdicts[id(question)] = _find_port_in_code(world, question, words[claim.name])
    return verdicts


def _find_port_of_service(
    world: World, question: Question, configured: Sequence[tuple[str, int]], files: Iterable[str]
) -> Verdict:
    """Check a port of a workspace, whose projects use the same few: what names it has to be of the service meant."""
    in_code = ((path, line) for path in prefer(files)[:12] if (line := _port_line(world, path, question.claim.name)))
    places = [place for place in (*configured, *in_code) if not _is_shown_or_data(place[0])]
    for path, line in places:
        code = (world.now.text(path) or b"").split(b"\n")[line - 1].decode("utf-8", "replace")
        if _is_of_service(question, path, code):
            return confirmed(question, "configured", f"named in {path}:{line}", f"{path}:{line}")
    if places:
        path, line = places[0]
        why = f"nothing listens on it here; {path}:{line} names it, and may be of another service"
        return unverifiable(question, "not-listening", why, place=f"{path}:{line}")
    return unverifiable(question, "not-listening", "nothing listens on it here, and no configuration names it")


def _is_of_service(question: Question, path: str, code: str) -> bool:
    """Whether a line of a file is of the service that the text is about: it names its folder, or two of its words."""
    subject = question.subject
    if subject.nearness(path) <= IN_HEADING or subject.shared_words(path.rpartition("/")[0]):
        return True
    return len(subject.shared_words(f"{path} {code}")) > 1


def _check_port_of_unit(question: Question, said: Sequence[int]) -> Verdict | None:
    """Check a port against those that the file of its unit names; None if it names none."""
    claim, port = question.claim, int(question.claim.name)
    if port in said:
        return confirmed(question, "unit-says", f"{claim.near} says so")
    if not said:
        return None
    why = f"{claim.near} says {', '.join(map(str, sorted(set(said))))}"
    if len(set(said)) == 1:
        return moved(question, "unit-says", why, str(said[0]))
    return changed(question, "unit-says", why, claim.near)


def _installed_unit_ports(questions: Iterable[Question]) -> dict[str, list[int]]:
    """The ports in the files of the units that questions name, as this machine has them."""
    units = {item.claim.near for item in questions if item.claim.near}
    return {unit: unit_ports(unit, known) for unit, known in query_units(units).items()} if units else {}


_PORT_LINE = re.compile(rb"port(?!folio|rait|able|ion|al|s? to\b)|listen|\bbind|\baddr|\bexpose\b")
_SHOWN_FILE = re.compile(r"example|sample|template|\.jsonl\Z")
_UNIT_PORT = re.compile(
    rb"^\s*(?:ExecStart|Environment|ListenStream)\s*=[^\n]*?(?:port[ =]|PORT=|:|Stream\s*=\s*)(\d{2,5})\b", re.MULTILINE
)


def _ports_of_unit_file(world: World, unit: str) -> list[int]:
    """Return the ports that a unit file in the checkout names."""
    files = world.now.by_name.get(unit, ())
    return [int(match[1]) for path in files[:3] for match in _UNIT_PORT.finditer(world.now.text(path) or b"")]


def _is_shown_or_data(path: str) -> bool:
    """Whether a file shows, copies or collects what others say, instead of being configuration or code."""
    name = path.rpartition("/")[2].lower()
    is_data = language_for(path) == "json" and not any(word in name for word in ("conf", "settings", "package"))
    return is_data or _SHOWN_FILE.search(name) is not None


def _port_line(world: World, path: str, port: str) -> int:
    """The first line of a code file that names a number as a port; 0 if none does."""
    if not is_code(path) or language_for(path) == "html" or not (line := world.find_word(path, port)):
        return 0
    text = world.now.code(path).split(b"\n")[line - 1].lower()
    is_port = _PORT_LINE.search(text) or re.search(rb"(?:host|\d|\]|\*|[\"'/ ]):" + port.encode() + rb"\b", text)
    return line if is_port else 0


def _find_port_in_code(world: World, question: Question, files: Iterable[str]) -> Verdict:
    name = question.claim.name
    for path in prefer(files)[:12]:
        if line := _port_line(world, path, name):
            return confirmed(question, "configured", f"named in {path}:{line}", f"{path}:{line}")
    port = int(name)
    before = find_last_listed(
        world, question, name, lambda manifest: any(number == port for number, _ in manifest.ports)
    )
    if before is not None and not is_unreadable(world, before.path):
        path = before.path
        now = sorted({number for number, _ in world.manifests[path].ports}) if path in world.manifests else []
        instead = f"; it names {', '.join(map(str, now[:5]))} now" if now else ""
        what = f"{path} named it when this was written, and no configuration does now{before.since}{instead}"
        return gone(question, "reconfigured", what, place=path, commit=before.commit, day=before.day)
    return unverifiable(question, "not-listening", "nothing listens on it here, and no configuration names it")


def check_units(world: World, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    if not questions:
        return {}
    answers = query_units({item.claim.name for item in questions}) if world.options.system else {}
    verdicts: dict[int, Verdict | None] = {}
    for question in questions:
        claim = question.claim
        files = world.now.by_name.get(claim.name, [])
        here = answers.get(claim.name)
        if here is not None and here.state == "there":
            verdicts[id(question)] = confirmed(question, "unit", here.what)
        elif files:
            verdicts[id(question)] = confirmed(question, "unit-file", f"its file is {files[0]}", files[0])
        elif here is not None and here.state == "absent" and not claim.is_weak:
            verdicts[id(question)] = unverifiable(
                question, "not-on-this-host", f"{here.what}; it may be on another machine"
            )
        else:
            what = here.what if here is not None else "this machine was not asked"
            verdicts[id(question)] = None if claim.is_weak else unverifiable(question, "no-answer", what)
    return verdicts


def check_containers(world: World, questions: Sequence[Question]) -> dict[int, Verdict]:
    if not questions:
        return {}
    answers = _query_containers(world.options, {item.claim.name for item in questions}) if world.options.system else {}
    verdicts = {}
    for question in questions:
        name = question.claim.name
        composed = [
            (path, line)
            for path, manifest in world.manifests.items()
            for service, line in manifest.services
            if service == name
        ]
        here = answers.get(name)
        if here is not None and here.state == "there":
            verdicts[id(question)] = confirmed(question, "container", here.what)
        elif composed:
            verdicts[id(question)] = confirmed(
                question, "configured", f"in {composed[0][0]}", f"{composed[0][0]}:{composed[0][1]}"
            )
        elif "container" in world.options.ask and here is not None and here.state == "absent":
            verdicts[id(question)] = gone(question, "not-found", here.what, rank=CODE)
        else:
            what = here.what if here is not None else "this machine was not asked"
            verdicts[id(question)] = unverifiable(question, "no-answer", what)
    return verdicts


def _query_containers(options: Options, names: set[str]) -> dict[str, SystemAnswer]:
    """Ask docker and podman, and for what they do not have the command that is configured for containers."""
    answers = query_containers(names)
    command = options.ask.get("container")
    missing = {name for name in names if answers[name].state in ("absent", "unknown")}
    return answers | query_ids(command, missing) if command is not None else answers


def check_ids(options: Options, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    """Check ids with the commands that the configuration has for them."""
    verdicts: dict[int, Verdict | None] = {}
    for what in {item.claim.owner for item in questions}:
        command = options.ask.get(what) if options.system else None
        some = [item for item in questions if item.claim.owner == what]
        answers = query_ids(command, {item.claim.name for item in some}) if command is not None else {}
        for question in some:
            here = answers.get(question.claim.name)
            if here is not None and here.state == "there":
                verdicts[id(question)] = confirmed(question, "answers", here.what)
            elif here is not None and here.state == "absent":
                verdicts[id(question)] = gone(question, "not-found", here.what, rank=CODE)
            elif question.claim.is_weak and here is None:
                verdicts[id(question)] = None
            else:
                why = here.what if here is not None else f"only a live system knows it: see verify.ask.{what}"
                verdicts[id(question)] = unverifiable(question, "no-answer", why)
    return verdicts


def check_urls(world: World, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    return check_links(world.store, world.options, questions)


def check_machine(store: FactsCache, options: Options, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    """Check ports, units, containers and links without a repository, as far as this machine can tell."""
    links = [item for item in questions if item.claim.kind == "url"]
    found: dict[int, Verdict | None] = {**check_links(store, options, links)}
    found |= check_ids(options, [item for item in questions if item.claim.kind == "id"])
    found |= check_cron_here(options, [item for item in questions if item.claim.kind == "cron"])
    for kind, query, reason in (
        ("port", lambda names: {str(port): it for port, it in query_ports(set(map(int, names))).items()}, "listening"),
        ("unit", query_units, "unit"),
        ("container", lambda names: _query_containers(options, names), "container"),
    ):
        asked = [item for item in questions if item.claim.kind == kind]
        answers = query({item.claim.name for item in asked}) if asked and options.system else {}
        installed = _installed_unit_ports(asked) if kind == "port" and options.system else {}
        for question in asked:
            here = answers.get(question.claim.name)
            by_unit = _check_port_of_unit(question, installed.get(question.claim.near, [])) if kind == "port" else None
            if by_unit is not None:
                found[id(question)] = by_unit
            elif here is not None and here.state == "there":
                found[id(question)] = confirmed(question, reason, here.what)
            elif question.claim.is_weak:
                found[id(question)] = None
            elif here is not None and here.state == "absent" and kind == "container" and kind in options.ask:
                found[id(question)] = gone(question, "not-found", here.what, rank=CODE)
            elif here is not None and here.state == "absent":
                why = "nothing listens on it here" if kind == "port" else f"{here.what}; not on this machine"
                absent = "not-listening" if kind == "port" else "not-on-this-host"
                found[id(question)] = unverifiable(question, absent, why)
            else:
                what = here.what if here is not None else "this machine was not asked"
                found[id(question)] = unverifiable(question, "no-answer", what)
    return found


def check_links(store: FactsCache, options: Options, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    """Follow links; None for those of a run that does not go online: they are no claims about code or this machine."""
    if not questions:
        return {}
    if not options.online:
        return dict.fromkeys(map(id, questions))
    rows = store.rows("SELECT url, at, status, what FROM url")
    cache = {row[0]: (row[1], row[2], row[3]) for row in rows}
    answers = query_urls(
        {item.claim.name for item in questions},
        cached=cache,
        now=time.time(),
        max_age=_URL_CACHE_SECONDS,
        timeout=_URL_TIMEOUT,
        max_urls=_MAX_URLS,
    )
    with store.transaction():
        store.many("INSERT OR REPLACE INTO url VALUES (?, ?, ?, ?)", [(url, *value) for url, value in cache.items()])
    verdicts: dict[int, Verdict | None] = {}
    for question in questions:
        here = answers.get(question.claim.name)
        if here is None or here.state == "unknown":
            verdicts[id(question)] = unverifiable(question, "no-answer", here.what if here else "not asked")
        elif here.state == "there":
            verdicts[id(question)] = confirmed(question, "answers", here.what)
        else:
            verdicts[id(question)] = gone(question, "not-found", here.what, rank=CODE)
    return verdicts
