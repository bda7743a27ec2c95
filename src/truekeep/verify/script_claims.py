"""Checks claims about commands that run something by its name: a script, a target, a command of a framework."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from truekeep.core.repository import GitFailed
from truekeep.verify.manifests.formats import parse_yaml
from truekeep.verify.manifests.model import UnreadableManifest
from truekeep.verify.package_claims import find_last_listed, is_unreadable
from truekeep.verify.path_claims import PLACEHOLDER
from truekeep.verify.question import Question
from truekeep.verify.repository import World, is_code
from truekeep.verify.verdict import CODE, GONE, NOT_A_COMMAND, Verdict, confirmed, gone, unverifiable

_MIN_ALIKE = 2  # commands of one namespace that the code defines, by which it is this repository's own


class _Framework(NamedTuple):
    """Where code says the names of its commands, and which namespaces are not of the code."""

    pattern: str  # for git grep; the name is what is behind the last quote, blank or bracket
    files: tuple[str, ...]
    separator: str
    others: frozenset[str]


_FRAMEWORKS = {
    "artisan": _Framework(
        r"(signature|name|defaultName) *[=:] *['\"][a-z][A-Za-z0-9_:-]+|Artisan::command\( *['\"][a-z][A-Za-z0-9_:-]+"
        r"|(AsCommand|Signature)\( *['\"][a-z][A-Za-z0-9_:-]+",
        (".php",),
        ":",
        frozenset(
            "make migrate cache config route view db event queue schedule storage vendor key lang model notifications "
            "optimize package session stub auth channel env install horizon telescope pulse sail scout passport "
            "sanctum octane reverb livewire filament boost nova ide-helper permission backup app breeze jetstream "
            "dusk cashier folio pennant volt debugbar l5-swagger scribe shield media-library activitylog".split()
        ),
    ),
    "rake": _Framework(
        "",
        (),
        ":",
        frozenset(
            "db assets app log tmp time zeitwerk test spec rails secret secrets credentials action_mailbox action_text "
            "active_storage stats routes middleware cache dev destroy generate g new webpacker yarn css javascript "
            "tailwindcss importmap turbo stimulus solid_queue rubocop release build install erblint i18n".split()
        ),
    ),
    "mix": _Framework(
        r"defmodule Mix\.Tasks\.[A-Za-z0-9_.]+",
        (".ex", ".exs"),
        ".",
        frozenset(
            "app archive compile deps do escript format help hex local phx ecto test usage igniter ash assets "
            "profile cmd gettext dialyzer credo docs coveralls sobelow".split()
        ),
    ),
}


def check_script(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    if world.options.are_documents and PLACEHOLDER.match(claim.name):
        return None
    if (check := _CHECKS.get(claim.owner)) is not None:
        verdict = check(world, question)
        is_sure = verdict is None or verdict.verdict != GONE or world.options.are_documents
        return verdict if is_sure else None  # a memory may tell of another project's
    tool = {"gmake": "make", "pnpm": "npm", "yarn": "npm", "bun": "npm"}.get(claim.owner, claim.owner)
    if tool == "task" and claim.name.partition(":")[0] in _included_taskfiles(world):
        return None  # the included file has its tasks
    has_tool = False
    for path, manifest in world.manifests.items():
        for script in manifest.scripts:
            if script.tool != tool:
                continue
            has_tool = True
            if script.name == claim.name:
                return confirmed(question, "listed", f"in {path}", f"{path}:{script.line}")
    wanted = (tool, claim.name)
    before = find_last_listed(
        world, question, claim.name, lambda manifest: any((item.tool, item.name) == wanted for item in manifest.scripts)
    )
    if before is not None and is_unreadable(world, before.path):
        return unverifiable(question, "unreadable", f"{before.path} had it, and cannot be read now")
    if before is not None:
        why = f"{before.path} had it when this was written; nothing has it now{before.since}"
        return gone(question, "removed", why, place=before.path, commit=before.commit, day=before.day)
    if claim.is_weak or (tool == "npm" and claim.owner != "npm"):
        return None  # `yarn thing` may run any program
    if not has_tool:
        return unverifiable(question, "no-manifest", f"nothing here says what {claim.owner} can run")
    can_tell = not world.past.problem and world.is_complete and not world.now.state.is_damaged
    if tool == "make" and not _makefiles_list_all_targets(world):
        return unverifiable(question, "no-manifest", "no target of this name is written out; rules may make it")
    if tool == "make" and can_tell and not claim.is_weak:
        if world.knows_absence(question.written_at):
            why = "no makefile has this target; since when is not known in this clone"
            return gone(question, "not-there", why, rank=CODE)
        if world.now.state.is_whole and world.is_newer_than(question.written_at):
            return gone(question, "never-seen", "no makefile has this target, now or when this was written", rank=CODE)
    return unverifiable(question, "not-listed", "no target or script of this name")


def _check_framework(world: World, question: Question) -> Verdict | None:
    """Check a command of a framework; None if its namespace is not one of this repository's own."""
    claim = question.claim
    known = _commands(world, claim.owner)
    if claim.name in known:
        place = known[claim.name]
        return confirmed(question, "listed", f"in {place}", place)
    framework = _FRAMEWORKS[claim.owner]
    space = claim.name.partition(framework.separator)[0]
    alike = sorted(name for name in known if name.startswith(space + framework.separator))
    if space in framework.others or len(alike) < _MIN_ALIKE or not world.is_complete:
        return None
    if _is_quoted(world, claim.name):
        return None  # another name of a command
    why = f"no command here is called so; of {space} there are {', '.join(alike[:3])}"
    return gone(question, NOT_A_COMMAND, f"{why} and {len(alike) - 3} more" if len(alike) > 3 else why, rank=CODE)


def _commands(world: World, owner: str) -> dict[str, str]:
    """The commands that the code and the manifests define for a framework, with the files that do."""
    key = ("commands", owner)
    if key not in world.places:
        listed = (
            (item.name, path) for path, one in world.manifests.items() for item in one.scripts if item.tool == owner
        )
        world.places[key] = dict([*_commands_in_code(world, _FRAMEWORKS[owner]), *listed])
    found: dict[str, str] = world.places[key]
    return found


def _commands_in_code(world: World, framework: _Framework) -> Iterator[tuple[str, str]]:
    if not framework.pattern:
        return
    with suppress(GitFailed):
        raw = world.git.run("grep", "--untracked", "-ozIE", "-e", framework.pattern)
        for row in os.fsdecode(raw).split("\n"):
            path, _, text = row.partition("\0")
            name = re.split(r"['\" (]", text)[-1] if path.endswith(framework.files) else ""
            if name.startswith("Mix.Tasks."):
                name = ".".join(_snake(part) for part in name.removeprefix("Mix.Tasks.").split("."))
            if name:
                yield name, path


def _is_quoted(world: World, name: str) -> bool:
    """Whether code has the name in quotes."""
    with suppress(GitFailed):
        raw = world.git.run("grep", "--untracked", "-lzIE", "-e", f"['\"]{re.escape(name)}['\" ]")
        return any(is_code(os.fsdecode(item)) for item in raw.split(b"\0") if item)
    return False


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _check_management_command(world: World, question: Question) -> Verdict | None:
    """Check a command of Django's manage.py: Django and packages have some, so only one that was here is missed."""
    name = question.claim.name
    folder = "/management/commands/"
    here = [path for path in world.now.by_name.get(f"{name}.py", ()) if folder in f"/{path}"]
    if here:
        return confirmed(question, "listed", f"in {here[0]}", here[0])
    return _gone_with_file(world, question, f"{name}.py", lambda path: folder in f"/{path}")


def _check_by_config(world: World, question: Question) -> Verdict | None:
    """Check a command of a program that does nothing without its file, if that file was here once."""
    owner = question.claim.owner
    names = _CONFIGS[owner]
    here = [path for name in names for path in world.now.by_name.get(name, ())]
    if here:
        return confirmed(question, "configured", f"{here[0]} is here", here[0])
    found = (_gone_with_file(world, question, name, lambda _: True) for name in names)
    return next((verdict for verdict in found if verdict is not None), None)


def _gone_with_file(world: World, question: Question, name: str, is_meant: Callable[[str], bool]) -> Verdict | None:
    trails = (
        world.past.follow(path, question.written_at, world.now.position)
        for path in world.past.removed_paths_named(name, question.written_at)
        if is_meant(path)
    )
    lost = [trail for trail in trails if trail is not None and not trail.path]
    if not lost:
        return None
    last = max(lost, key=lambda trail: trail.commit.at)
    why = f"{last.last or name}, by which it ran, was deleted in {last.commit.id[:10]} on {last.commit.day}"
    return gone(question, NOT_A_COMMAND, why, place=last.last, commit=last.commit.id, day=last.commit.day)


def _check_workspace_package(world: World, question: Question) -> Verdict | None:
    """Check the package of a workspace that a command is told to run in."""
    claim = question.claim
    ecosystem = "rust" if claim.owner == "cargo package" else "npm"
    own = {one.name: path for path, one in world.manifests.items() if one.ecosystem == ecosystem and one.name}
    name = claim.name.replace("_", "-") if ecosystem == "rust" else claim.name
    for known, path in own.items():
        if name in (known, known.replace("_", "-"), known.rpartition("/")[2]):
            return confirmed(question, "listed", f"{path} is its manifest", path)
    if len(own) < _MIN_ALIKE or world.now.has_folder(claim.name) or not world.is_complete:
        return None  # a repository of one package shows what its readers do
    if any(package.name == claim.name for one in world.manifests.values() for package in one.packages):
        return None
    return gone(question, NOT_A_COMMAND, "no manifest here is of a package of this name", rank=CODE)


def _check_cargo_target(world: World, question: Question) -> Verdict | None:
    """Check a program or an example that cargo is told to run."""
    claim = question.claim
    folder = "bin" if claim.owner == "cargo bin" else "examples"
    named = [path for path in world.now.by_name.get(f"{claim.name}.rs", ()) if f"/{folder}/" in f"/{path}"]
    inside = [one for one in world.now.folders if f"/{one}".endswith(f"/{folder}/{claim.name}")]
    if named or inside:
        return confirmed(question, "listed", f"in {(named or inside)[0]}", (named or inside)[0])
    manifests = [(path, one) for path, one in world.manifests.items() if path.endswith("Cargo.toml")]
    for path, one in manifests:
        if claim.name == one.name or any(item.name == claim.name for item in one.scripts):
            return confirmed(question, "listed", f"in {path}", path)
        if f'"{claim.name}"'.encode() in (world.now.text(path) or b""):
            return confirmed(question, "listed", f"in {path}", path)
    if not manifests or not world.is_complete:
        return None
    return gone(question, NOT_A_COMMAND, f"no package here has such a {claim.owner.partition(' ')[2]}", rank=CODE)


_CONFIGS = {"mkdocs": ("mkdocs.yml", "mkdocs.yaml")}
_CHECKS: dict[str, Callable[[World, Question], Verdict | None]] = {
    **dict.fromkeys(_FRAMEWORKS, _check_framework),
    **dict.fromkeys(_CONFIGS, _check_by_config),
    "manage.py": _check_management_command,
    "workspace": _check_workspace_package,
    "cargo package": _check_workspace_package,
    "cargo bin": _check_cargo_target,
    "cargo example": _check_cargo_target,
}


def _included_taskfiles(world: World) -> set[str]:
    """The names under which Taskfiles include others: `website` for `task website` and `task website:build`."""
    found: set[str] = set()
    for path, manifest in world.manifests.items():
        if manifest.ecosystem == "task":
            with suppress(UnreadableManifest):
                found.update(parse_yaml((world.now.text(path) or b"").decode("utf-8", "replace")).table("includes"))
    return found


_MAKE_MAKEFILES = ("Makefile.am", "Makefile.in", "configure.ac", "configure", "CMakeLists.txt", "meson.build")


def _makefiles_list_all_targets(world: World) -> bool:
    """Whether every target is written out: no makefile includes others, has rules for patterns or is generated."""
    if any(world.now.has(name) for name in _MAKE_MAKEFILES):
        return False
    for path, manifest in world.manifests.items():
        if manifest.ecosystem == "make" and re.search(
            rb"^\s*-?include\b|\$\(eval|^[^#\t\n=]*\$\([^=\n]*:(?!=)|^[^#\t\n]*%[^=\n]*:",
            world.now.text(path) or b"",
            re.M,
        ):
            return False
    return True
