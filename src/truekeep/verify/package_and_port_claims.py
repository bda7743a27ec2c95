"""Everything that is neither a path nor a symbol: commits, packages, versions, scripts, ports, units, decisions.

Each is asked of the place that answers for it, and is unverifiable where nothing does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from truekeep.core.git import GitFailed, remote_name
from truekeep.verify.live_system.containers import query_containers
from truekeep.verify.live_system.ports import query_ports
from truekeep.verify.live_system.systemd import query_units, unit_ports
from truekeep.verify.live_system.urls import query_urls
from truekeep.verify.manifests import Manifest, Package, is_same_package, runtime_package, satisfies
from truekeep.verify.repository import World, is_code, prefer
from truekeep.verify.verdict import CODE, GIT, Question, Verdict, changed, confirmed, gone, moved, unverifiable

_RUNTIMES = frozenset(
    ("go", "golang", "gradle", "swift", "kotlin", "java", "python", "node", "nodejs", "node.js", "rust", "ruby", "php")
)  # languages and tools: a package that ends so is something else
_URL_CACHE_SECONDS = 7 * 86_400
_URL_TIMEOUT = 10.0
_MAX_URLS = 200
_BUILD_FOLDERS = ("dist", "build", "out", "public", "assets", ".next", "target", "www", "static")


# Commits.


def check_commits(world: World, questions: Sequence[Question]) -> dict[int, Verdict]:
    """All commits in one question to git; then whether each is on this branch."""
    if not questions:
        return {}
    names = [f"{question.claim.name.lower()}^{{commit}}" for question in questions]
    verdicts: dict[int, Verdict] = {}
    found = []
    for question, (_, oid, kind) in zip(questions, list(world.git.infos(names)), strict=True):
        if kind == "commit":
            found.append((question, oid))
        elif kind == "ambiguous" or next(iter(list(world.git.infos([question.claim.name.lower()]))))[2] == "ambiguous":
            verdicts[id(question)] = unverifiable(question, "ambiguous", "several objects begin like this")
        else:
            verdicts[id(question)] = _no_commit(world, question)
    here, anywhere = _reached(world, [oid for _, oid in found])
    for question, oid in found:
        if oid in here:
            verdicts[id(question)] = confirmed(question, "on-branch", "in this branch's history", rank=GIT, commit=oid)
        elif oid in anywhere:
            why = "the commit is on another branch, not on this one"
            verdicts[id(question)] = confirmed(question, "other-branch", why, rank=GIT, commit=oid)
        elif world.now.state.is_shallow:
            why = "the commit is here; whether a branch has it cannot be told in a shallow clone"
            verdicts[id(question)] = unverifiable(question, "incomplete", why)
        else:
            why = "no branch or tag reaches this commit any more: rebased away, or dropped"
            verdicts[id(question)] = gone(question, "unreachable", why, commit=oid)
    return verdicts


def _no_commit(world: World, question: Question) -> Verdict:
    """The verdict on an id that git does not know. It is never called gone: nothing says that it was here."""
    state, named = world.now.state, question.claim.owner
    if named and named != remote_name(Path(world.root)).lower():
        return unverifiable(question, "of-others", f"a commit of {named}, which is another repository")
    if not state.is_whole:
        return unverifiable(question, "incomplete", "not here, but this clone does not have all of history")
    if not state.head:
        return unverifiable(question, "no-commits", "nothing was committed here yet")
    if not world.past.is_whole:
        return unverifiable(question, "incomplete", "not here, but objects are missing in this clone")
    why = "no commit of this repository: it may be another repository's, was never pushed, or is no commit at all"
    return unverifiable(question, "never-seen", why)


def _reached(world: World, oids: list[str]) -> tuple[set[str], set[str]]:
    """Which of these commits this branch has, and which any branch or tag has. What was found out is kept."""
    here: set[str] = set()
    anywhere: set[str] = set()
    left = []
    if not oids:
        return here, anywhere
    refs = world.git.run("for-each-ref", "--format=%(objectname)")
    base = f"reached {world.past.key} {sha256(world.now.state.head.encode() + refs).hexdigest()[:24]}"
    for oid in oids:
        known = world.store.answer(f"{base} {oid}")
        if known is None:
            left.append(oid)
        elif known:
            anywhere.add(oid)
            if known == "here":
                here.add(oid)
    if left:
        on_branch, on_any = _walk(world, left)
        here |= on_branch
        anywhere |= on_any
        with world.store.transaction():
            for oid in left:
                world.store.remember(f"{base} {oid}", "here" if oid in on_branch else "there" if oid in on_any else "")
    return here, anywhere


def _walk(world: World, oids: list[str]) -> tuple[set[str], set[str]]:
    """The same, asked of git: one by one while they are few, else by listing all there are."""
    here = set()
    for oid in oids if len(oids) <= 3 else ():
        try:
            world.git.run("merge-base", "--is-ancestor", oid, "HEAD")
        except GitFailed:
            continue
        here.add(oid)
    if len(oids) > 3:
        here = set(world.git.run("rev-list", "HEAD", "--", timeout=60).decode().split()) & set(oids)
    if len(here) == len(oids):
        return here, here
    everything = set(world.git.run("rev-list", "--all", "HEAD", "--", timeout=60).decode().split())
    return here, everything & set(oids)


# Packages, versions, scripts.


def check_package(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    best = _best(_packages(world, claim.name))
    if best is not None:
        path, package = best
        return confirmed(question, "listed", f"{package.name} {_version(package)}".rstrip(), f"{path}:{package.line}")
    for path, manifest in world.manifests.items():
        if manifest.name and is_same_package(claim.name, manifest.name, manifest.ecosystem):
            return confirmed(question, "listed", f"{path} is the manifest of {manifest.name} itself", path)
    before = _then(world, question, claim.name, _lists(claim.name))
    if before is not None and _is_unread(world, before.path):
        return unverifiable(question, "unreadable", f"{before.path} listed it, and cannot be read now")
    if before is not None:
        why = f"{before.path} listed it when this was written; nothing lists it now{before.since}"
        return gone(question, "removed", why, place=before.path, commit=before.commit, day=before.day)
    if claim.is_weak:
        return None
    return unverifiable(question, "not-listed", "no manifest or lock file lists it")


def check_version(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    owner = claim.owner.lower()
    claimed = claim.name.removeprefix("v")  # with >= for the least, with == for the only one
    found = _packages(world, claim.owner) if owner not in _RUNTIMES else []
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
    if found:
        return _judged_version(question, claimed, found)
    if claim.is_weak:
        return None
    return unverifiable(question, "not-listed", f"no manifest or lock file lists {claim.owner}")


def _judged_version(question: Question, claimed: str, found: list[tuple[str, Package]]) -> Verdict | None:
    """Locked versions say more than ranges, direct ones more than what came along."""
    is_least = claimed.startswith(">=")  # what is asked for says more to that than what happens to be there
    ordered = sorted(
        found,
        key=lambda item: (
            is_least and bool(item[1].version),
            not item[1].is_locked,
            not item[1].is_direct,
            item[0].count("/"),
        ),
    )
    answers = [(path, package, satisfies(claimed, package)) for path, package in ordered]
    if is_least:
        answers = [item for item in answers if item[2] is not None][:1] or answers
    for path, package, agrees in answers:
        if agrees:
            return confirmed(question, "version", f"{package.name} {_version(package)}", f"{path}:{package.line}")
    for path, package, agrees in answers:
        if agrees is False:
            now, place = _version(package), f"{path}:{package.line}"
            return changed(question, "version", f"{package.name} is at {now} now", place, seen=now)
    if question.claim.is_weak:
        return None
    path, package, _ = answers[0]
    return unverifiable(
        question, "no-version", f"{path} names no version that can be compared ({_version(package) or 'none'})"
    )


def _version(package: Package) -> str:
    """The version or range of a package, to be shown. Not an address: people write passwords into those."""
    said = package.version or package.spec
    return "an address" if "//" in said or "@" in said else said


def _own_version(world: World, question: Question, claimed: str, own: list[tuple[str, Manifest]]) -> Verdict:
    is_least, claimed = claimed.startswith(">="), claimed.lstrip("=>")
    for path, manifest in own:
        own_package = Package(manifest.name, "", manifest.version, 0, True, True)
        agrees = satisfies(f">={claimed}", own_package) if is_least else None
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
        if newest and newest not in tags and not is_least:
            return changed(question, "version", f"tagged as {tags[0]}; the newest tag is {newest}", "")
        return confirmed(question, "tagged", f"tagged as {tags[0]}", rank=GIT)
    return unverifiable(question, "no-version", "no manifest and no tag says this version")


def _newest_tag(world: World) -> str:
    """The tag of the highest version."""
    try:
        found = world.git.lines("tag", "--list", "--sort=-version:refname", "[0-9]*", "v[0-9]*")
    except GitFailed:
        return ""
    return next((tag for tag in found if re.fullmatch(r"v?\d+(?:\.\d+)+", tag)), "")


def check_script(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    tool = {"gmake": "make", "pnpm": "npm", "yarn": "npm", "bun": "npm"}.get(claim.owner, claim.owner)
    has_tool = False
    for path, manifest in world.manifests.items():
        for script in manifest.scripts:
            if script.tool != tool:
                continue
            has_tool = True
            if script.name == claim.name:
                return confirmed(question, "listed", f"in {path}", f"{path}:{script.line}")
    wanted = (tool, claim.name)
    before = _then(
        world, question, claim.name, lambda manifest: any((item.tool, item.name) == wanted for item in manifest.scripts)
    )
    if before is not None and _is_unread(world, before.path):
        return unverifiable(question, "unreadable", f"{before.path} had it, and cannot be read now")
    if before is not None:
        why = f"{before.path} had it when this was written; nothing has it now{before.since}"
        return gone(question, "removed", why, place=before.path, commit=before.commit, day=before.day)
    if tool == "npm" and claim.owner != "npm":
        return None  # `yarn thing` may run any program
    if not has_tool:
        return unverifiable(question, "no-manifest", f"nothing here says what {claim.owner} can run")
    can_tell = not world.past.problem and world.is_complete and not world.now.state.is_damaged
    if tool == "make" and can_tell and not claim.is_weak and _plain_makefiles(world):
        if world.knows_absence(question.written_at):
            why = "no makefile has this target; since when is not known in this clone"
            return gone(question, "not-there", why, rank=CODE)
        if world.now.state.is_whole and world.is_newer_than(question.written_at):
            return gone(question, "never-seen", "no makefile has this target, now or when this was written", rank=CODE)
    return unverifiable(question, "not-listed", "no target or script of this name")


def _is_unread(world: World, path: str) -> bool:
    """Whether a manifest is there and could not be read, or not whole."""
    manifest = world.manifests.get(path)
    return world.now.has(path) and (manifest is None or bool(manifest.problem))


def _plain_makefiles(world: World) -> bool:
    """Whether makefiles name all their targets: none that includes others or makes rules up."""
    for path, manifest in world.manifests.items():
        if manifest.ecosystem == "make" and re.search(
            rb"^\s*-?include\b|\$\(eval|^[^#\t\n=]*\$\([^=\n]*:(?!=)|^[^#\t\n]*%[^=\n]*:",
            world.now.text(path) or b"",
            re.M,
        ):
            return False
    return True


def _packages(world: World, name: str) -> list[tuple[str, Package]]:
    return [
        (path, package)
        for path, manifest in world.manifests.items()
        for package in manifest.packages
        if is_same_package(name, package.name, manifest.ecosystem)
    ]


def _lists(name: str) -> Callable[[Manifest], bool]:
    return lambda manifest: any(is_same_package(name, item.name, manifest.ecosystem) for item in manifest.packages)


def _best(found: list[tuple[str, Package]]) -> tuple[str, Package] | None:
    return min(found, key=lambda item: (not item[1].is_direct, item[1].is_locked, item[0].count("/")), default=None)


class _Lost(NamedTuple):
    """The manifest that had something when the memory was written, and the commit that took it out, if known."""

    path: str
    commit: str = ""
    day: str = ""

    @property
    def since(self) -> str:
        return f", taken out in {self.commit[:10]} on {self.day}" if self.commit else ""


def _then(world: World, question: Question, word: str, has: Callable[[Manifest], bool]) -> _Lost | None:
    """Where something was listed when the memory was written; `word` is what it is written as there."""
    at = question.written_at
    commit = world.past.commit_at(at) if at is not None else None
    commits = [commit] if commit is not None and commit.id != world.now.state.head else world.past.checkpoints()
    for commit in commits:
        for path, manifest in world.manifests_at(commit.id):
            if has(manifest):
                taker = world.past.deleting(word, path, commit.at) if world.options.deleting else None
                return _Lost(path, taker.id, taker.day) if taker is not None else _Lost(path)
    return None


# The machine.


def check_ports(world: World, questions: Sequence[Question]) -> dict[int, Verdict]:
    """Ports: what listens here now, what the unit or the configuration says, what code names."""
    if not questions:
        return {}
    seen = query_ports({int(item.claim.name) for item in questions}) if world.options.system else {}
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
        unit = claim.near
        said = _file_ports(world, unit) if unit else []
        if unit and not said and world.options.system:
            said = list(unit_ports(unit))
        if said and port not in said:
            why = f"{unit} says {', '.join(map(str, sorted(set(said))))}"
            verdicts[id(question)] = (
                moved(question, "unit-says", why, str(said[0]))
                if len(set(said)) == 1
                else changed(question, "unit-says", why, unit)
            )
            continue
        here = seen.get(port)
        if said:
            verdicts[id(question)] = confirmed(question, "unit-says", f"{unit} says so")
        elif here is not None and here.state == "there":
            verdicts[id(question)] = confirmed(question, "listening", here.what)
        elif configured:
            path, line = configured[0]
            verdicts[id(question)] = confirmed(question, "configured", f"in {path}:{line}", f"{path}:{line}")
        else:
            verdicts[id(question)] = _port_by_word(world, question, words[claim.name])
    return verdicts


_UNIT_PORT = re.compile(
    rb"^\s*(?:ExecStart|Environment|ListenStream)\s*=[^\n]*?(?:port[ =]|PORT=|:|Stream\s*=\s*)(\d{2,5})\b", re.MULTILINE
)


def _file_ports(world: World, unit: str) -> list[int]:
    """The ports that a unit's file in the checkout names."""
    files = world.now.by_name.get(unit, ())
    return [int(match[1]) for path in files[:3] for match in _UNIT_PORT.finditer(world.now.text(path) or b"")]


def _port_by_word(world: World, question: Question, files: Iterable[str]) -> Verdict:
    name = question.claim.name
    for path in prefer(files)[:12]:
        if is_code(path) and (line := world.find_word(path, name)):
            text = world.now.code(path).split(b"\n")[line - 1].lower()
            if (
                b"port" in text
                or b"listen" in text
                or b":" + name.encode() in text
                or b"bind" in text
                or b"addr" in text
            ):
                return confirmed(question, "configured", f"named in {path}:{line}", f"{path}:{line}")
    port = int(name)
    before = _then(world, question, name, lambda manifest: any(number == port for number, _ in manifest.ports))
    if before is not None and not _is_unread(world, before.path):
        path = before.path
        now = sorted({number for number, _ in world.manifests[path].ports}) if path in world.manifests else []
        instead = f"; it names {', '.join(map(str, now[:5]))} now" if now else ""
        what = f"{path} named it when this was written, and no configuration does now{before.since}{instead}"
        return gone(question, "reconfigured", what, place=path, commit=before.commit, day=before.day)
    return unverifiable(question, "not-listening", "nothing listens on it here, and no configuration names it")


def check_units(world: World, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    if not questions:
        return {}
    seen = query_units({item.claim.name for item in questions}) if world.options.system else {}
    verdicts: dict[int, Verdict | None] = {}
    for question in questions:
        claim = question.claim
        files = world.now.by_name.get(claim.name, [])
        here = seen.get(claim.name)
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
    seen = query_containers({item.claim.name for item in questions}) if world.options.system else {}
    verdicts = {}
    for question in questions:
        name = question.claim.name
        composed = [
            (path, line)
            for path, manifest in world.manifests.items()
            for service, line in manifest.services
            if service == name
        ]
        here = seen.get(name)
        if here is not None and here.state == "there":
            verdicts[id(question)] = confirmed(question, "container", here.what)
        elif composed:
            verdicts[id(question)] = confirmed(
                question, "configured", f"in {composed[0][0]}", f"{composed[0][0]}:{composed[0][1]}"
            )
        else:
            what = here.what if here is not None else "this machine was not asked"
            verdicts[id(question)] = unverifiable(question, "no-answer", what)
    return verdicts


def check_bundle(world: World, question: Question) -> Verdict | None:
    """A built file with a hash in its name: the same stem with another hash is where it went."""
    claim = question.claim
    folder, _, name = claim.name.rpartition("/")
    match = re.match(r"(.+)([-.])([A-Za-z0-9_]{8,20})(\.\w+)\Z", name)
    if world.now.has(claim.name) or name in world.now.by_name:
        return confirmed(question, "exists", "there", (world.now.by_name.get(name) or [claim.name])[0])
    if match is None:
        return None
    pattern = re.compile(re.escape(match[1] + match[2]) + r"[A-Za-z0-9_]{8,20}" + re.escape(match[4]) + r"\Z")
    found = []
    for path in (*world.now.paths, *_built(world, folder)):
        base = path.rpartition("/")[2]
        if base == name and path.endswith(claim.name):
            return confirmed(question, "exists", "there, built", path)
        if pattern.match(base):
            found.append(path)
    if len(set(found)) == 1:
        return moved(question, "rebuilt", "the bundle has another hash now; name a symbol in it instead", found[0])
    if found:
        return gone(question, "rebuilt", "the bundle has another hash now", candidates=tuple(found[:5]), rank=CODE)
    return unverifiable(question, "not-built", "no such bundle here; it may not be built on this machine")


def _built(world: World, folder: str) -> Iterable[str]:
    """The files of build folders, which git usually ignores."""
    for top in dict.fromkeys((*_BUILD_FOLDERS, *([folder.split("/")[0]] if folder else []))):
        yield from world.files_on_disk(top)


def check_urls(world: World, questions: Sequence[Question]) -> dict[int, Verdict]:
    if not questions:
        return {}
    if not world.options.online:
        return {id(item): unverifiable(item, "offline", "links are only followed with --online") for item in questions}
    import time

    rows = world.store.rows("SELECT url, at, status, what FROM url")
    cache = {row[0]: (row[1], row[2], row[3]) for row in rows}
    seen = query_urls(
        {item.claim.name for item in questions},
        cached=cache,
        now=time.time(),
        max_age=_URL_CACHE_SECONDS,
        timeout=_URL_TIMEOUT,
        max_urls=_MAX_URLS,
    )
    with world.store.transaction():
        world.store.many(
            "INSERT OR REPLACE INTO url VALUES (?, ?, ?, ?)", [(url, *value) for url, value in cache.items()]
        )
    verdicts = {}
    for question in questions:
        here = seen.get(question.claim.name)
        if here is None or here.state == "unknown":
            verdicts[id(question)] = unverifiable(question, "no-answer", here.what if here else "not asked")
        elif here.state == "there":
            verdicts[id(question)] = confirmed(question, "answers", here.what)
        else:
            verdicts[id(question)] = gone(question, "not-found", here.what, rank=CODE)
    return verdicts


# Decisions.

_CHOSEN = re.compile(
    r"\b(?:use|using|chose|choose|picked|adopt(?:ed)?|go(?:ing)? with|went with|switch(?:ed)? to|mov(?:e|ed) to"
    r"|standardi[sz]e[d]? on|settled on"
    r"|opted for|prefer)\s+(?:the\s+)?[`\"*]*([A-Za-z@][\w./@+-]{1,40}?)[`\"*.,;:!?]*(?=\s|$)", re.IGNORECASE
)  # fmt: skip
_REJECTED = re.compile(
    r"\b(?:over|instead of|rather than|not|from|and dropped|dropping|replacing"
    r"|replaces)\s+(?:the\s+)?[`\"*]*([A-Za-z@][\w./@+-]{1,40}?)[`\"*.,;:!?]*(?=\s|$)",
    re.IGNORECASE,
)


def check_decision(world: World, question: Question) -> Verdict:
    """A decision is never confirmed by what lies around: code can contradict it, agree with it, or say nothing."""
    text = question.claim.name
    rejected = [match[1] for match in _REJECTED.finditer(text)]
    chosen: list[str] = []
    for match in _CHOSEN.finditer(text):
        is_refused = re.search(r"\b(?:not|never|no longer|stop(?:ped)?)(?: to)?\s+\Z|n't\s+\Z", text[: match.start()])
        (rejected if is_refused else chosen).append(match[1])
    for name in chosen:
        listed = _packages(world, name)
        against = [(other, found) for other in rejected if (found := _packages(world, other))]
        if listed and not (against and not any(package.is_direct for _, package in listed)):
            path, package = listed[0]
            return unverifiable(
                question,
                "consistent",
                f"{path} lists {package.name}; that agrees, and proves nothing",
                place=f"{path}:{package.line}",
            )
        before = _then(world, question, name, _lists(name))
        if before is not None and _is_unread(world, before.path):
            return unverifiable(question, "unreadable", f"{before.path} cannot be read now")
        if before is not None and not listed:
            why = f"{name} was listed in {before.path} when this was written and is not any more{before.since}"
            return gone(question, "contradicted", why, place=before.path, commit=before.commit, day=before.day)
        if against and not listed:
            _, found = against[0]
            path, package = found[0]
            if package.is_direct:
                return gone(
                    question,
                    "contradicted",
                    f"{path} lists {package.name}, and nothing lists {name}",
                    place=f"{path}:{package.line}",
                    rank=CODE,
                )
    return unverifiable(question, "decision", "code cannot confirm a decision; look for the commit that made it")
