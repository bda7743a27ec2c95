"""git: every machine has a branch of its own in a repository that all of them reach, and the host one for receipts.

    refs/heads/truekeep/<machine>   that machine's exchange, as a tree
    refs/heads/truekeep/receipts    <machine>/<digest>, empty: dealt with, and still offered

Commits are made and read in a bare repository of our own, without index or work tree: a user's repository is never
touched. Names and sizes in a fetched tree are judged before anything is read, and only the promised shapes are looked
at. That repository holds nothing that is not also elsewhere; when it is damaged it is made anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.hidden import printable
from truekeep.repo import Git, GitFailed
from truekeep.sync import exchange
from truekeep.sync.contact import Contact
from truekeep.sync.mirror import LARGEST, ORIGIN, Mirror
from truekeep.sync.outbox import opened_outbox
from truekeep.sync.route import Route
from truekeep.sync.run import Here, Unreachable
from truekeep.sync.tool import Ran, run_tool

FOLDER = "git"
BRANCHES = "refs/heads/truekeep"  # there
RECEIPTS = "receipts"
MOST_BRANCHES = 1000
_THERE = "refs/there"  # what was fetched, here
_PUSHED = "refs/pushed/own"  # what this machine put there last
_BRANCH = re.compile(r"[a-z0-9][a-z0-9-]{0,60}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_AT_ONCE = 200  # paths in one question to ls-tree
_STEADY = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.logAllRefUpdates=false",
    "-c", "core.protectNTFS=false",  # any name is good in a tree that nobody checks out
    "-c", "core.protectHFS=false",
    "-c", "protocol.ext.allow=never",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "fetch.fsckObjects=false",  # one machine's odd tree is not the others' problem, and nothing is checked out
    "-c", "transfer.fsckObjects=false",
    "-c", "fetch.writeCommitGraph=false",
    "-c", "fetch.recurseSubmodules=false",
    "-c", "push.recurseSubmodules=no",
    "-c", "push.gpgSign=false",
    "-c", "push.followTags=false",
    "-c", "color.ui=false",
)  # fmt: skip
_FOREIGN = (  # what a hook or an alias leaves in the environment, about a repository that is not ours
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_DIR",
    "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
)  # fmt: skip
_DAMAGED = (
    ".lock': File exists", "not a git repository", "object file", "bad object", "unable to read sha1", "is corrupt",
    "bad tree object", "invalid sha1 pointer", "missing object", "missing blob", "missing tree", "missing commit",
)  # fmt: skip


def contact(route: Route, here: Here) -> Contact:
    """This machine's side of a repository that all of them reach."""
    remote = route.text("remote")
    if not remote or remote.startswith("-"):
        raise Unreachable("the route names no repository", hint=f"add it again with --remote: {route.name}")
    key = hashlib.sha256(remote.encode("utf-8", "surrogateescape")).hexdigest()[:10]
    path = here.state / FOLDER / route.name / f"{key}.git"
    side = _collect if here.is_host else _offer
    try:
        return side(Private(path, remote, here.seconds), route, here)
    except Damaged as error:
        shutil.rmtree(path, ignore_errors=True)
        try:
            found = side(Private(path, remote, here.seconds), route, here)
        except Damaged as again:
            raise Unreachable(f"git: {again}", hint=f"nothing is lost; remove {path} and run it again") from again
        return found._replace(notes=(f"truekeep's own repository was damaged and is made anew: {error}", *found.notes))


# --- The producer's side --------------------------------------------------------------------------------------------


def _offer(private: Private, route: Route, here: Here) -> Contact:
    base = here.exchange(route)
    notes: list[str] = []
    os.makedirs(base, mode=0o700, exist_ok=True)
    private.fetch(f"{here.folder}*", f"{RECEIPTS}*")
    tips = private.tips()
    with opened_outbox(route, here) as outbox:
        done = _receipts(private, tips, here.folder)
        cleared = outbox.clear(done)
        exchange.withdraw(base, done - outbox.stuck)
        offered = exchange.offer(base, outbox.waiting(), machine=here.machine)
        left_out = len(dict.fromkeys(outbox.notes))
        notes += (*offered.notes, *outbox.notes)
    _push_own(private, tips, here, base, notes)
    return Contact(
        route.name, "", True, brought=offered.new, receipts=cleared, waiting=left_out, machines=(here.machine,),
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _receipts(private: Private, tips: Mapping[str, Tip], folder: str) -> set[str]:
    tip = tips.get(RECEIPTS)
    if tip is None:
        return set()
    names = (entry.path.rpartition("/")[2] for entry in private.list_tree(tip.commit, [f"{folder}/"]))
    return {name for name in names if _DIGEST.match(name)}


def _push_own(private: Private, tips: Mapping[str, Tip], here: Here, base: Path, notes: list[str]) -> None:
    """Put this machine's exchange onto its branch, on top of whatever is there."""
    tree = private.write_tree(base, _promised(base))
    tip = tips.get(here.folder)
    pushed = private.pushed
    if pushed and (tip is None or not private.is_ancestor(pushed, tip.commit)):
        how = "rewritten" if tip else "deleted"
        notes.append(f"the branch truekeep/{here.folder} was {how} by somebody else; what waits is put there again")
        private.keep_pushed(tip.commit if tip else "")
    for attempt in range(2):
        if (tip is None and _is_bare(base)) or (tip is not None and tip.tree == tree):
            return
        commit = private.commit(tree, tip.commit if tip else "", f"Handoffs of {here.machine}")
        ran = private.push(commit, here.folder)
        if ran.ok:
            private.keep_pushed(commit)
            private.tidy()
            return
        if attempt or not _is_overtaken(ran):
            raise Unreachable(f"git push: {said(ran)}", hint=_push_hint(ran))
        private.fetch(f"{here.folder}*")  # somebody was faster: on top of that, then
        tip = private.tips().get(here.folder)


def _promised(base: Path) -> Iterator[str]:
    """The files of this machine's exchange that the host may read."""
    for told in exchange.read_offers(exchange.Folder(base)):
        yield f"{told.place}/{ORIGIN}"
        yield from (f"{told.place}/{path}" for path in told.files)


def _is_bare(base: Path) -> bool:
    return not any(told.files for told in exchange.read_offers(exchange.Folder(base)))


# --- The host's side ------------------------------------------------------------------------------------------------


def _collect(private: Private, route: Route, here: Here) -> Contact:
    mirror = Mirror.of(here.state, route.name)
    private.fetch("*")
    tips = private.tips()
    taken: list[exchange.Taken] = []
    notes: list[str] = []
    done: set[str] = set()
    if len(tips) >= MOST_BRANCHES:
        notes.append(f"there are more than {MOST_BRANCHES} branches truekeep/*; only so many are looked at")
    for name, tip in tips.items():
        if name == RECEIPTS:
            continue
        if not _BRANCH.match(name):
            notes.append(f"the branch truekeep/{printable(name)[:120]} is no machine's; it is left alone")
            continue
        try:
            with Tree(private, tip.commit, here.writers) as tree:
                taken.append(exchange.collect(tree, mirror, here.writers))
                for _, digests in exchange.find_done(tree, mirror, here.writers):
                    done |= {f"{name}/{digest}" for digest in digests}
        except (GitFailed, Unreadable) as error:
            private.suspect(tip.commit, str(error))
            notes.append(f"the branch truekeep/{name} cannot be read: {error}")
            done |= {f"{name}/{digest}" for digest in _receipts(private, tips, name)}
    receipts = _push_receipts(private, tips.get(RECEIPTS), done, notes)
    return Contact(
        route.name, "", True,
        brought=sum(item.brought for item in taken),
        receipts=receipts,
        waiting=sum(item.waiting for item in taken),
        machines=tuple(dict.fromkeys(name for item in taken for name in item.machines)),
        notes=tuple(dict.fromkeys((*notes, *(note for item in taken for note in item.notes))))[: exchange.MOST_NOTES],
    )  # fmt: skip


def _push_receipts(private: Private, tip: Tip | None, done: set[str], notes: list[str]) -> int:
    """Tell the machines what has been dealt with; only what they still offer, so that it never grows."""
    tree = private.write_receipts(done)
    if (tip is None and not done) or (tip is not None and tip.tree == tree):
        return 0
    before = {entry.path for entry in private.list_receipts(tip.commit)} if tip else set()
    ran = private.push(private.commit(tree, tip.commit if tip else "", "Receipts"), RECEIPTS)
    if ran.ok:
        private.tidy()
        return len(done - before)
    if not _is_overtaken(ran):
        notes.append(f"the receipts could not be pushed, so the machines keep what was filed: {said(ran)}")
    return 0


class Entry(NamedTuple):
    """A file in a tree."""

    path: str
    id: str
    size: int


class Unreadable(Exception):
    """A tree that git cannot, or will not, list."""


class Tree:
    """One machine's places as they are in a commit."""

    def __init__(self, private: Private, commit: str, writers: Mapping[str, str]) -> None:
        self._private, self._commit = private, commit
        self._inboxes = sorted(set(writers.values()))
        self._files: dict[str, Entry] | None = None
        self._places: list[str] = []
        self._git = Git(str(private.path), timeout=private.seconds)
        self._git.borrow(str(private.path / "objects"))

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self._git.close()

    def places(self) -> list[str]:
        self._look()
        return self._places

    def read(self, path: str) -> bytes | None:
        entry = self._look().get(path)
        if entry is None or entry.size > LARGEST:
            return None
        for _, data in self._git.blobs([entry.id], limit=LARGEST):
            return data
        return None

    def _look(self) -> dict[str, Entry]:
        """The plain files in the places of an exchange; whatever else there is, however deep, is not looked at."""
        if self._files is None:
            self._files = {}
            self._places = [name for name in self._private.list_folders(self._commit) if _BRANCH.match(name)]
            wanted = [
                f"{place}/{inside}" for place in self._places for inside in (ORIGIN, *(f"{i}/" for i in self._inboxes))
            ]
            for start in range(0, len(wanted), _AT_ONCE):
                for entry in self._private.list_tree(self._commit, wanted[start : start + _AT_ONCE]):
                    self._files[entry.path] = entry
        return self._files


# --- A repository of our own ----------------------------------------------------------------------------------------


class Damaged(Exception):
    """Our repository cannot be used any more."""


class Tip(NamedTuple):
    """Where a branch is."""

    commit: str
    tree: str


class Private:
    """The bare repository of one route."""

    def __init__(self, path: Path, remote: str, seconds: float) -> None:
        self.path, self.remote, self.seconds = path, remote, seconds
        self.pushed = ""  # what this machine put there last, as `tips` found it
        self._is_new = not all((path / name).exists() for name in ("HEAD", "config", "objects", "refs"))
        if self._is_new:
            self._make()
        self._over_ssh = self._quiet_ssh()

    def _make(self) -> None:
        """Make the repository aside, so that it is there whole or not at all."""
        aside = self.path.with_suffix(".new")
        for left in (aside, self.path):
            shutil.rmtree(left, ignore_errors=True)
        os.makedirs(aside, mode=0o700)
        self._ask("init", "--quiet", "--bare", "--template=", "--", str(aside), cwd=str(aside))
        os.rename(aside, self.path)

    def suspect(self, commit: str, why: str) -> None:
        """A commit that cannot be read: our damage, until it cannot be read in a new repository either."""
        odd = self.path / "truekeep-odd"
        known = odd.read_text().split() if odd.exists() else []
        if commit in known:
            return
        if not self._is_new:
            raise Damaged(why)
        odd.write_text("\n".join((*known[-100:], commit)))

    def fetch(self, *branches: str) -> None:
        """Bring the branches of these names, and forget those that are gone: one round trip when nothing is new."""
        specs = [f"+{BRANCHES}/{name}:{_THERE}/{name}" for name in branches]
        ran = self._run(
            "fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance",
            "--no-write-fetch-head", "--no-show-forced-updates", "--", self.remote, *specs,
        )  # fmt: skip
        if not ran.ok:
            _refuse_damage(ran)
            raise Unreachable(f"git fetch: {said(ran)}", hint=_hint(ran))

    def push(self, commit: str, branch: str) -> Ran:
        """Put a commit onto a branch there; never over anything that is not below it."""
        return self._run(
            "push", "--quiet", "--no-verify", "--no-follow-tags", "--", self.remote, f"{commit}:{BRANCHES}/{branch}"
        )

    def tips(self) -> dict[str, Tip]:
        """What was fetched, by name."""
        found = self._ask("for-each-ref", "--format=%(refname)%00%(objectname)%00%(tree)", _PUSHED, f"{_THERE}/")
        tips: dict[str, Tip] = {}
        for line in found.decode("utf-8", "surrogateescape").splitlines()[:MOST_BRANCHES]:
            name, commit, tree = line.split("\0")
            if name == _PUSHED:
                self.pushed = commit
            elif tree:  # a branch may name something else than a commit
                tips[name.removeprefix(f"{_THERE}/")] = Tip(commit, tree)
        return tips

    def list_folders(self, commit: str) -> list[str]:
        """The folders at the top of a commit."""
        return [path for mode, _, _, path in self._list(commit, []) if mode == "040000"]

    def list_tree(self, commit: str, paths: Sequence[str]) -> Iterator[Entry]:
        """The plain files at these paths, or in these folders when they end with a slash."""
        for mode, id_, size, path in self._list(commit, paths):
            if mode in ("100644", "100755"):
                if not size.isdigit():
                    raise Unreadable(f"{printable(path)[:120]} is missing")
                yield Entry(path, id_, int(size))

    def list_receipts(self, commit: str) -> list[Entry]:
        folders = [f"{name}/" for name in self.list_folders(commit)]
        return list(self.list_tree(commit, folders)) if folders else []

    def _list(self, commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
        ran = self._run("ls-tree", "-z", "-l", "--full-tree", commit, "--", *paths)
        if not ran.ok:
            raise Unreadable(said(ran))
        for item in ran.out.split(b"\0"):
            head, tab, path = item.partition(b"\t")
            parts = head.decode("ascii", "replace").split()
            if tab and len(parts) == 4:
                yield parts[0], parts[2], parts[3], path.decode("utf-8", "surrogateescape")

    def write_tree(self, base: Path, paths: Iterable[str]) -> str:
        """The tree of some files below a folder."""
        names = [path for path in paths if (base / path).is_file()]
        given = "".join(f"{name}\n" for name in names).encode()
        ids = self._ask("hash-object", "-w", "--no-filters", "--stdin-paths", given=given, cwd=str(base)).split()
        if len(ids) != len(names):
            raise Damaged("git hash-object gave too few answers")
        return self._tree(zip(names, (id_.decode() for id_ in ids), strict=True))

    def write_receipts(self, paths: Iterable[str]) -> str:
        empty = self._ask("hash-object", "-w", "--no-filters", "--stdin").decode().strip()
        return self._tree((path, empty) for path in sorted(paths))

    def _tree(self, files: Iterable[tuple[str, str]]) -> str:
        given = b"".join(f"100644 {id_}\t{path}\0".encode() for path, id_ in files)
        index = self.path / "truekeep-index"
        for left in (index, index.with_suffix(".lock")):  # of a run that was killed
            left.unlink(missing_ok=True)
        told = {"GIT_INDEX_FILE": str(index)}
        self._ask("update-index", "-z", "--index-info", given=given, environment=told)
        return self._ask("write-tree", environment=told).decode().strip()

    def commit(self, tree: str, parent: str, message: str) -> str:
        who = {"NAME": "truekeep", "EMAIL": "truekeep@localhost", "DATE": f"{int(time.time())} +0000"}
        environment = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        above = ["-p", parent] if parent else []
        given = printable(message).encode("utf-8", "replace") + b"\n"
        return self._ask("commit-tree", tree, *above, given=given, environment=environment).decode().strip()

    def keep_pushed(self, commit: str) -> None:
        self._ask("update-ref", *([_PUSHED, commit] if commit else ["-d", _PUSHED]))

    def is_ancestor(self, below: str, above: str) -> bool:
        return below == above or self._run("merge-base", "--is-ancestor", below, above).ok

    def tidy(self) -> None:
        """Pack what has become much; here and now, never behind anyone's back."""
        self._run("-c", "gc.auto=2000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")

    def _ask(
        self,
        *arguments: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> bytes:
        """What git prints about our own repository, where only damage or a full disk makes it fail."""
        ran = self._run(*arguments, given=given, environment=environment, cwd=cwd)
        if not ran.ok:
            _refuse_damage(ran)
            raise Unreachable(f"git {arguments[0]}: {said(ran)}", hint=_hint(ran))
        return ran.out

    def _run(
        self,
        *arguments: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Ran:
        where = [] if arguments[0] == "init" else [f"--git-dir={self.path}"]
        env: dict[str, str | None] = dict.fromkeys(_FOREIGN)
        env |= {
            "GIT_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
        }
        env |= {**getattr(self, "_over_ssh", {}), **(environment or {})}
        command = ["git", "--no-pager", *where, *_STEADY, *arguments]
        return run_tool(command, seconds=self.seconds, given=given, environment=env, cwd=cwd or str(self.path))

    def _quiet_ssh(self) -> dict[str, str]:
        """The user's own ssh, told not to ask."""
        if self.remote.startswith(("/", "http://", "https://", "file://", "git://")):
            return {}
        if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ:
            return {}
        command = (
            os.environ.get("GIT_SSH_COMMAND") or self._run("config", "--get", "core.sshCommand").out.decode().strip()
        )
        with suppress(ValueError):
            words = shlex.split(command or "ssh")
            if words and os.path.basename(words[0]) == "ssh":
                return {"GIT_SSH_COMMAND": f"{command or 'ssh'} -o BatchMode=yes -o ConnectTimeout=15"}
        return {}


def _refuse_damage(ran: Ran) -> None:
    ours = "\n".join(line for line in ran.err.splitlines() if not line.startswith("remote:"))
    if any(words in ours for words in _DAMAGED) and "does not appear to be a git repository" not in ours:
        raise Damaged(said(ran))


def _is_overtaken(ran: Ran) -> bool:
    return any(words in ran.err for words in ("fetch first", "non-fast-forward", "stale info", "cannot lock ref"))


def said(ran: Ran) -> str:
    """The line of git's complaint that says most: what the other side says, else the first that is an error."""
    lines = [line.strip() for line in ran.err.splitlines() if line.strip()]
    for mark in ("Permission denied", "Host key", "remote: error", "remote: fatal", "ssh: ", "fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark) or (mark in line and mark[0].isupper()):
                return line[:300]
    return lines[-1][:300] if lines else f"it ended with {ran.code}"


def _hint(ran: Ran) -> str:
    words = ran.err.lower()
    if "host key" in words:
        return "log in there once by hand with ssh and check its key"
    if any(word in words for word in ("permission denied", "authentication failed", "could not read username", "403")):
        return "`git ls-remote` with this address tries the login by itself; a key or a credential helper is needed"
    if "does not appear to be" in words or "not found" in words or "does not exist" in words:
        return "the repository must exist there; `git init --bare` makes one"
    if "no space" in words or "quota" in words:
        return "there is no space left; nothing is lost, free some and run it again"
    return "nothing is lost; it is tried again in the next run"


def _push_hint(ran: Ran) -> str:
    if "'refs/heads/truekeep' exists" in ran.err:
        return "a branch named truekeep is in the way there; give it another name"
    if "rejected" in ran.err or "denied" in ran.err or "protected" in ran.err:
        return "this machine must be allowed to push branches truekeep/* there"
    return _hint(ran)
