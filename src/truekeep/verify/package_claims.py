"""Checks claims about packages and versions against the manifests of a repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from truekeep.core.repository import GitFailed
from truekeep.verify.file_kinds import DOCUMENTS
from truekeep.verify.manifests import Manifest, Package, is_same_package, runtime_package, satisfies
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import DEPENDENCY_LEFT, GIT, LEAST_VERSION, Verdict, changed, confirmed, gone, unverifiable

_LANGUAGES_AND_TOOLS = frozenset(
    ("go", "golang", "gradle", "swift", "kotlin", "java", "python", "node", "nodejs", "node.js", "rust", "ruby", "php")
)  # languages and tools: a package that ends so is something else


_LISTS_OF_DEPENDENCIES = frozenset(
    ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json", "Cargo.toml", "go.mod", "Gemfile",
     "composer.json", "mix.exs", "pubspec.yaml", "build.gradle", "build.gradle.kts", "pom.xml", "Package.swift")
)  # fmt: skip
_RUNTIMES = {"golang": "go", "nodejs": "node", "node.js": "node"}
_SAY_THE_LEAST = frozenset(
    ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod", "composer.json", "mix.exs")
)  # others pin what developers use
_FIRST_NUMBER = re.compile(r"v?(\d+(?:\.\d+){0,2})")


def check_package(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    best = _most_direct(find_packages(world, claim.name))
    if best is not None:
        path, package = best
        return confirmed(
            question, "listed", f"{package.name} {_show_version(package)}".rstrip(), f"{path}:{package.line}"
        )
    for path, manifest in world.manifests.items():
        if manifest.name and is_same_package(claim.name, manifest.name, manifest.ecosystem):
            return confirmed(question, "listed", f"{path} is the manifest of {manifest.name} itself", path)
    before = find_last_listed(world, question, claim.name, lists_package(claim.name))
    if before is not None and is_unreadable(world, before.path):
        return unverifiable(question, "unreadable", f"{before.path} listed it, and cannot be read now")
    if before is not None:
        why = f"{before.path} listed it when this was written; nothing lists it now{before.since}"
        reason = DEPENDENCY_LEFT if _is_used_nowhere(world, claim.name, before.path) else "removed"
        return gone(question, reason, why, place=before.path, commit=before.commit, day=before.day)
    if claim.is_weak:
        return None
    return unverifiable(question, "not-listed", "no manifest or lock file lists it")


def _is_used_nowhere(world: World, name: str, manifest: str) -> bool:
    """Whether a dependency of the code left it for good: no code has its name any more, apart from comments."""
    if not world.options.are_documents or manifest.rpartition("/")[2] not in _LISTS_OF_DEPENDENCIES:
        return False
    spellings = {name, name.replace("-", "_"), name.rpartition("/")[2]}
    users = world.now.find("words", spellings)
    return not any(not path.endswith(DOCUMENTS) for paths in users.values() for path in paths)


def check_version(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    owner = claim.owner.lower()
    claimed = claim.name.removeprefix("v")  # may begin with >= or ==
    found = find_packages(world, claim.owner) if owner not in _LANGUAGES_AND_TOOLS else []
    for path, manifest in world.manifests.items():
        for name, spec, line in manifest.runtimes:
            if (
                name == owner
                or (name == "node" and owner in ("nodejs", "node.js"))
                or (name == "go" and owner == "golang")
            ):
                found.append((path, runtime_package((name, spec, line))))
    own = [(path, item) for path, item in world.manifests.items() if item.version and item.name.lower() == owner]
    if own or owner in (world.name.lower(), "version"):
        return _own_version(world, question, claimed, own)
    if world.options.are_documents and claimed.startswith(">=") and (too_old := _below_the_least(world, question)):
        return too_old
    if found:
        return _compare_versions(question, claimed, found)
    if claim.is_weak:
        return None
    return unverifiable(question, "not-listed", f"no manifest or lock file lists {claim.owner}")


def _below_the_least(world: World, question: Question) -> Verdict | None:
    """Whether a document allows an older runtime than every manifest nearest to the root does."""
    owner = question.claim.owner.lower()
    wanted = _RUNTIMES.get(owner, owner)
    least = [
        (path, line, spec, _numbers(spec))
        for path, manifest in world.manifests.items()
        if path.rpartition("/")[2] in _SAY_THE_LEAST and _are_of_one_project(path, question.folder)
        for name, spec, line in manifest.runtimes
        if name == wanted and not spec.lstrip().startswith("<")
    ]
    claimed = _numbers(question.claim.name)
    said = question.claim.name.count(".") + 1  # "18+" says nothing about 18.2
    if not claimed or not least or any(not numbers or numbers[:said] <= claimed[:said] for *_, numbers in least):
        return None
    path, line, spec, _ = min(least, key=lambda item: item[0].count("/"))
    why = f"{path} asks for {wanted} {spec}"
    return changed(question, LEAST_VERSION, why, f"{path}:{line}", seen=spec)


def _are_of_one_project(manifest: str, folder: str) -> bool:
    """Whether a manifest is in a folder above or below that of a document, and not in another one beside it."""
    base = manifest.rpartition("/")[0]
    return f"{folder}/".startswith(f"{base}/" if base else "") or f"{base}/".startswith(f"{folder}/" if folder else "")


def _numbers(spec: str) -> tuple[int, ...]:
    """The first version that a range names, which is its least as a rule."""
    match = _FIRST_NUMBER.search(spec)
    parts = [int(part) for part in match[1].split(".")] if match is not None else []
    return (*parts, *[0] * (3 - len(parts))) if parts else ()


def _compare_versions(question: Question, claimed: str, found: list[tuple[str, Package]]) -> Verdict | None:
    """Compare with the strongest evidence first: locked before ranges, direct before transitive."""
    is_minimum = claimed.startswith(">=")  # a minimum is compared with ranges before locked versions
    ordered = sorted(
        found,
        key=lambda item: (
            is_minimum and bool(item[1].version),
            not item[1].is_locked,
            not item[1].is_direct,
            item[0].count("/"),
        ),
    )
    answers = [(path, package, satisfies(claimed, package)) for path, package in ordered]
    if is_minimum:
        answers = [item for item in answers if item[2] is not None][:1] or answers
    for path, package, agrees in answers:
        if agrees:
            return confirmed(question, "version", f"{package.name} {_show_version(package)}", f"{path}:{package.line}")
    for path, package, agrees in answers:
        if agrees is False:
            now, place = _show_version(package), f"{path}:{package.line}"
            return changed(question, "version", f"{package.name} is at {now} now", place, seen=now)
    if question.claim.is_weak:
        return None
    path, package, _ = answers[0]
    return unverifiable(
        question, "no-version", f"{path} names no version that can be compared ({_show_version(package) or 'none'})"
    )


def _show_version(package: Package) -> str:
    """Return the version or range of a package for display. A URL is left out: it may hold a password."""
    said = package.version or package.spec
    return "an address" if "//" in said or "@" in said else said


def _own_version(world: World, question: Question, claimed: str, own: list[tuple[str, Manifest]]) -> Verdict:
    is_minimum, claimed = claimed.startswith(">="), claimed.lstrip("=>")
    for path, manifest in own:
        own_package = Package(manifest.name, "", manifest.version, 0, True, True)
        agrees = satisfies(f">={claimed}", own_package) if is_minimum else None
        if agrees or manifest.version == claimed or manifest.version.startswith(claimed + "."):
            return confirmed(question, "version", f"{manifest.name} {manifest.version}", path)
    try:
        tags = world.git.lines("tag", "--list", f"v{claimed}", claimed, f"v{claimed}.*", f"{claimed}.*")
    except GitFailed:
        tags = []
    if own:
        path, manifest = own[0]
        released = " (that version is tagged)" if tags else ""
        return changed(
            question, "version", f"{manifest.name} is at {manifest.version} now{released}", path, seen=manifest.version
        )
    if tags:
        newest = _newest_tag(world)
        if newest and newest not in tags and not is_minimum:
            return changed(question, "version", f"tagged as {tags[0]}; the newest tag is {newest}", "")
        return confirmed(question, "tagged", f"tagged as {tags[0]}", rank=GIT)
    return unverifiable(question, "no-version", "no manifest and no tag says this version")


def _newest_tag(world: World) -> str:
    """Return the tag of the highest version."""
    try:
        found = world.git.lines("tag", "--list", "--sort=-version:refname", "[0-9]*", "v[0-9]*")
    except GitFailed:
        return ""
    return next((tag for tag in found if re.fullmatch(r"v?\d+(?:\.\d+)+", tag)), "")


def is_unreadable(world: World, path: str) -> bool:
    """Whether a manifest exists but could not be read completely."""
    manifest = world.manifests.get(path)
    return world.now.has(path) and (manifest is None or bool(manifest.problem))


def find_packages(world: World, name: str) -> list[tuple[str, Package]]:
    if name not in world.packages:
        world.packages[name] = [
            (path, package)
            for path, manifest in world.manifests.items()
            for package in manifest.packages
            if is_same_package(name, package.name, manifest.ecosystem)
        ]
    return list(world.packages[name])  # callers add to it


def lists_package(name: str) -> Callable[[Manifest], bool]:
    return lambda manifest: any(is_same_package(name, item.name, manifest.ecosystem) for item in manifest.packages)


def _most_direct(found: list[tuple[str, Package]]) -> tuple[str, Package] | None:
    return min(found, key=lambda item: (not item[1].is_direct, item[1].is_locked, item[0].count("/")), default=None)


class LastListed(NamedTuple):
    """The manifest that listed something when the memory was written, and the commit that removed it, if known."""

    path: str
    commit: str = ""
    day: str = ""

    @property
    def since(self) -> str:
        return f", taken out in {self.commit[:10]} on {self.day}" if self.commit else ""


def find_last_listed(world: World, question: Question, word: str, has: Callable[[Manifest], bool]) -> LastListed | None:
    """Find the manifest that listed something when the memory was written; `word` is how it is written there."""
    at = question.written_at
    commit = world.past.commit_at(at) if at is not None else None
    commits = [commit] if commit is not None and commit.id != world.now.state.head else world.past.checkpoints()
    for commit in commits:
        for path, manifest in world.manifests_at(commit.id):
            if has(manifest):
                taker = world.past.find_removing_commit(word, path, commit.at) if world.options.deleting else None
                return LastListed(path, taker.id, taker.day) if taker is not None else LastListed(path)
    return None
