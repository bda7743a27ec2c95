"""Sync by git: each machine has its own branch in a shared repository, and the host one for receipts.

    refs/heads/truekeep/<machine>   that machine's exchange, as a tree
    refs/heads/truekeep/receipts    <machine>/<digest>, signed by the host, for processed handoffs still on offer
    refs/heads/truekeep/memory      the memory that the host publishes for copies (`git_memory`)

Commits are made and read in a bare repository of our own, without index or work tree: a user's repository is never
touched. Names and sizes in a fetched tree are checked before anything is read, and only files of the exchange format
are looked at. The bare repository contains only copies; if it is damaged, it is recreated.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.handoffs.sync import git_memory, protocol
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import MAX_FILE_BYTES, ORIGIN, Mirror
from truekeep.handoffs.sync.outbox import opened_outbox
from truekeep.handoffs.sync.processes import Ran, ToolMissing, run_tool
from truekeep.handoffs.sync.push_memory import publish_for, receive_memory, told_memory, told_published
from truekeep.handoffs.sync.receipts import (
    MAX_RECEIPT_BYTES,
    Receipts,
    ReceiptVerifier,
    Signer,
    judge,
    parse_receipt,
    read_signer,
)
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.copy_install import CopyReport

FOLDER = "git"
BRANCHES = "refs/heads/truekeep"  # on the remote
RECEIPTS = "receipts"
MAX_BRANCHES = 1000
_THERE = "refs/there"  # fetched branches, in our repository
_PUSHED = "refs/pushed/own"  # the commit that this machine pushed last
_BRANCH = re.compile(r"[a-z0-9][a-z0-9-]{0,60}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MAX_PATHS_PER_CALL = 200
_STEADY = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.logAllRefUpdates=false",
    "-c", "core.protectNTFS=false",  # the tree is never checked out
    "-c", "core.protectHFS=false",
    "-c", "protocol.ext.allow=never",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "fetch.fsckObjects=false",  # one malformed tree must not block the others, and nothing is checked out
    "-c", "transfer.fsckObjects=false",
    "-c", "fetch.writeCommitGraph=false",
    "-c", "fetch.recurseSubmodules=false",
    "-c", "push.recurseSubmodules=no",
    "-c", "push.gpgSign=false",
    "-c", "push.followTags=false",
    "-c", "color.ui=false",
)  # fmt: skip
_FOREIGN = (  # variables that a hook or an alias may have set for another repository
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_DIR",
    "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
)  # fmt: skip
_DAMAGED = (
    ".lock': File exists", "not a git repository", "object file", "bad object", "unable to read sha1", "is corrupt",
    "bad tree object", "invalid sha1 pointer", "missing object", "missing blob", "missing tree", "missing commit",
)  # fmt: skip
_UNSENT = "did not send all necessary objects"


def contact(route: Route, here: LocalMachine) -> Contact:
    """Run this machine's side of a git route."""
    remote = route.text("remote")
    if not remote or remote.startswith("-"):
        raise Unreachable("the route has no repository", hint=f"remove and add route {route.name} again, with --remote")
    key = hashlib.sha256(remote.encode("utf-8", "surrogateescape")).hexdigest()[:10]
    path = here.state / FOLDER / route.name / f"{key}.git"
    side = _collect if here.is_host else _offer
    try:
        return side(Private(path, remote, here.seconds), route, here)
    except ExchangeRepositoryDamaged as error:
        shutil.rmtree(path, ignore_errors=True)
        try:
            found = side(Private(path, remote, here.seconds), route, here)
        except ExchangeRepositoryDamaged as again:
            raise Unreachable(f"git: {again}", hint=f"remove {path} and run it again; nothing was lost") from again
        return found._replace(
            notes=(f"truekeep's sync repository was damaged and has been recreated: {error}", *found.notes)
        )


# --- Producer -------------------------------------------------------------------------------------------------------


def _offer(private: Private, route: Route, here: LocalMachine) -> Contact:
    base = here.exchange(route)
    notes: list[str] = []
    file_io.make_private(base)
    private.fetch(f"{here.folder}*", f"{RECEIPTS}*", f"{git_memory.BRANCH}*")
    tips = private.tips()
    with opened_outbox(route, here) as outbox:
        promised = {
            digest for told in protocol.read_offers(protocol.FolderSource(base)) for digest in told.files.values()
        }
        places = outbox.places(here.machine).union(protocol.FolderSource(base).places())
        found = _receipts(private, tips, route, here.folder, places, promised, notes)
        cleared = outbox.clear(found.done, machine=here.machine)
        protocol.withdraw(base, outbox.cleared(found.done))
        offered = protocol.offer(base, outbox.waiting(), machine=here.machine)
        left_out = len(dict.fromkeys(outbox.notes))
        notes += (*offered.notes, *outbox.notes, *private.notes)
    _push_own(private, tips, here, base, notes)
    came = _receive(private, tips, route, here, notes)
    return Contact(
        route.name, "", True, brought=offered.new, receipts=cleared, refused=found.refused, waiting=left_out,
        machines=(here.machine,), notes=tuple(dict.fromkeys(notes)), **told_memory(came),
    )  # fmt: skip


def _receive(
    private: Private, tips: Mapping[str, Tip], route: Route, here: LocalMachine, notes: list[str]
) -> CopyReport | None:
    """Install the memory that the host published on its branch."""
    tip = tips.get(git_memory.BRANCH)
    if tip is None:
        return None
    publication = git_memory.GitPublication(private, tip)
    report = receive_memory(publication, route, here, notes)
    if report is not None:
        git_memory.forget_received(private, publication)
    return report


def _receipts(
    private: Private,
    tips: Mapping[str, Tip],
    route: Route,
    folder: str,
    places: set[str],
    promised: set[str],
    notes: list[str],
) -> Receipts:
    """The valid receipts for this machine."""
    found = Receipts({})
    try:
        found = judge(route.text("host_key"), folder, places, _iter_receipts(private, tips, folder, promised))
    except UnreadableTree as error:
        notes.append(_odd_receipts(error))
    notes += found.notes(route)
    return found


def _iter_receipts(
    private: Private, tips: Mapping[str, Tip], folder: str, promised: set[str]
) -> Iterator[tuple[str, bytes]]:
    """Unverified receipts for a machine on the branch: those for current offers first, up to a limit."""
    tip = tips.get(RECEIPTS)
    if tip is None:
        return
    entries = {entry.path.rpartition("/")[2]: entry for entry in private.list_tree(tip.commit, [f"{folder}/"])}
    digests = sorted(filter(_DIGEST.match, entries), key=lambda digest: digest not in promised)
    del digests[2 * protocol.MAX_FILES :]
    ids = [entries[digest].id for digest in digests if entries[digest].size <= MAX_RECEIPT_BYTES]
    contents = private.read_blobs(ids)
    for digest in digests:
        yield digest, contents.get(entries[digest].id, b"unreadable")


def _odd_receipts(error: Exception) -> str:
    return f"the branch truekeep/{RECEIPTS} cannot be read, so its receipts are ignored: {error}"


def _push_own(private: Private, tips: Mapping[str, Tip], here: LocalMachine, base: Path, notes: list[str]) -> None:
    """Push this machine's exchange to its branch, on top of its current commit."""
    tree = private.write_tree(base, _promised(base))
    is_broken = here.folder in private.broken
    tip = None if is_broken else tips.get(here.folder)
    pushed = private.pushed
    if pushed and (tip is None or not private.is_ancestor(pushed, tip.commit)):
        how = "rewritten" if tip else "damaged" if is_broken else "deleted"
        notes.append(f"the branch truekeep/{here.folder} was {how} by someone else; waiting handoffs are pushed again")
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
        private.fetch(f"{here.folder}*")  # the branch moved: push on top of it
        tip = private.tips().get(here.folder)


def _promised(base: Path) -> Iterator[str]:
    """The files of this machine's exchange to push."""
    for told in protocol.read_offers(protocol.FolderSource(base)):
        yield f"{told.place}/{ORIGIN}"
        yield from (f"{told.place}/{path}" for path in told.files)


def _is_bare(base: Path) -> bool:
    return not any(told.files for told in protocol.read_offers(protocol.FolderSource(base)))


# --- Host -----------------------------------------------------------------------------------------------------------


def _collect(private: Private, route: Route, here: LocalMachine) -> Contact:
    mirror = Mirror.of(here.state, route.name)
    private.fetch("*")
    tips = private.tips()
    signer = read_signer()
    taken: list[protocol.ExchangeReport] = []
    notes: list[str] = list(private.notes)
    receipts: dict[str, bytes] = {}
    if len(tips) >= MAX_BRANCHES:
        notes.append(f"there are more than {MAX_BRANCHES} branches truekeep/*; the rest is ignored")
    for name, tip in tips.items():
        if name in (RECEIPTS, git_memory.BRANCH):
            continue
        if not _BRANCH.match(name):
            notes.append(f"the branch truekeep/{printable(name)[:120]} belongs to no machine and is ignored")
            continue
        try:
            with GitTreeSource(private, tip.commit, here.writers) as tree:
                taken.append(protocol.collect(tree, mirror, here.writers))
                receipts |= _sign(signer, name, protocol.find_done(tree, mirror, here.writers))
        except (GitFailed, UnreadableTree) as error:
            private.suspect(tip.commit, str(error))
            notes.append(f"the branch truekeep/{name} cannot be read: {error}")
            receipts |= _own_receipts(private, tips, signer, name)
    tip_there = None if RECEIPTS in private.broken else tips.get(RECEIPTS)
    count = _push_receipts(private, tip_there, receipts, notes)
    published, unpublished = publish_for(route, here)
    notes += unpublished
    if published is not None:
        notes += git_memory.push_published(private, tips, published)
    return Contact(
        route.name, "", True, **told_published(published),
        brought=sum(item.brought for item in taken),
        receipts=count,
        waiting=sum(item.waiting for item in taken),
        machines=tuple(dict.fromkeys(name for item in taken for name in item.machines)),
        notes=tuple(dict.fromkeys((*notes, *(note for item in taken for note in item.notes))))[: protocol.MAX_NOTES],
    )  # fmt: skip


def _sign(signer: Signer, machine: str, done: Iterable[tuple[str, set[str]]]) -> dict[str, bytes]:
    """Signed receipts for a machine, by path on the branch."""
    places: dict[str, list[str]] = {}
    for place, digests in done:
        for digest in digests:
            places.setdefault(digest, []).append(place)
    return {f"{machine}/{digest}": signer.render(machine, found, digest) for digest, found in places.items()}


def _own_receipts(private: Private, tips: Mapping[str, Tip], signer: Signer, machine: str) -> dict[str, bytes]:
    """This host's earlier receipts for a machine whose branch cannot be read now."""
    own = ReceiptVerifier(signer.public)
    try:
        given = list(_iter_receipts(private, tips, machine, set()))
    except UnreadableTree:
        return {}
    return {f"{machine}/{digest}": data for digest, data in given if own.places(parse_receipt(data), machine, digest)}


def _push_receipts(private: Private, tip: Tip | None, receipts: Mapping[str, bytes], notes: list[str]) -> int:
    """Push receipts for the handoffs that machines still offer, so that the branch never grows."""
    tree = private.write_receipts(receipts)
    if (tip is None and not receipts) or (tip is not None and tip.tree == tree):
        return 0
    before: set[str] = set()
    try:
        before = {entry.path for entry in private.list_receipts(tip.commit)} if tip else set()
    except UnreadableTree as error:
        notes.append(f"the branch truekeep/{RECEIPTS} could not be read and has been rewritten: {error}")
    ran = private.push(private.commit(tree, tip.commit if tip else "", "Receipts"), RECEIPTS)
    if ran.ok:
        private.tidy()
        return len(receipts.keys() - before)
    if not _is_overtaken(ran):
        notes.append(f"receipts could not be pushed, so the machines keep filed handoffs: {said(ran)}")
    return 0


class TreeFile(NamedTuple):
    """A file in a tree."""

    path: str
    id: str
    size: int


class UnreadableTree(Exception):
    """A tree that git cannot list."""


class GitTreeSource:
    """Reads one machine's places from a commit."""

    def __init__(self, private: Private, commit: str, writers: Mapping[str, str]) -> None:
        self._private, self._commit = private, commit
        self._inboxes = sorted(set(writers.values()))
        self._files: dict[str, TreeFile] | None = None
        self._places: list[str] = []
        self._git = Git(str(private.path), timeout=private.seconds)
        self._git.borrow(str(private.path / "objects"))

    def __enter__(self) -> GitTreeSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._git.close()

    def places(self) -> list[str]:
        self._look()
        return self._places

    def read(self, path: str) -> bytes | None:
        entry = self._look().get(path)
        if entry is None or entry.size > MAX_FILE_BYTES:
            return None
        for _, data in self._git.blobs([entry.id], limit=MAX_FILE_BYTES):
            return data
        return None

    def _look(self) -> dict[str, TreeFile]:
        """The regular files in the places of an exchange; nothing else is listed."""
        if self._files is None:
            self._files = {}
            self._places = [name for name in self._private.list_folders(self._commit) if _BRANCH.match(name)]
            wanted = [
                f"{place}/{inside}" for place in self._places for inside in (ORIGIN, *(f"{i}/" for i in self._inboxes))
            ]
            for start in range(0, len(wanted), _MAX_PATHS_PER_CALL):
                for entry in self._private.list_tree(self._commit, wanted[start : start + _MAX_PATHS_PER_CALL]):
                    self._files[entry.path] = entry
        return self._files


# --- truekeep's own bare repository -----------------------------------------------------------------------------------


class ExchangeRepositoryDamaged(Exception):
    """truekeep's own bare repository is damaged."""


class Tip(NamedTuple):
    """The commit and tree of a branch."""

    commit: str
    tree: str


class Private:
    """The bare repository of one route."""

    def __init__(self, path: Path, remote: str, seconds: float) -> None:
        self.path, self.remote, self.seconds = path, remote, seconds
        self.pushed = ""  # the commit that this machine pushed last, set by `tips`
        self.broken: dict[str, str] = {}  # branches that cannot be fetched, with their commit on the remote
        self.notes: list[str] = []
        self._is_new = not all((path / name).exists() for name in ("HEAD", "config", "objects", "refs"))
        if self._is_new:
            self._make()
        self._over_ssh = self._quiet_ssh()

    def _make(self) -> None:
        """Create the repository under another name and rename it, so that it is never incomplete."""
        aside = self.path.with_suffix(".new")
        for left in (aside, self.path):
            shutil.rmtree(left, ignore_errors=True)
        file_io.make_private(aside)
        self._ask("init", "--quiet", "--bare", "--template=", "--", str(aside), cwd=str(aside))
        os.rename(aside, self.path)

    def suspect(self, commit: str, why: str) -> None:
        """Treat an unreadable commit as damage to our repository, unless a new repository cannot read it either."""
        odd = self.path / "truekeep-odd"
        known = odd.read_text().split() if odd.exists() else []
        if commit in known:
            return
        if not self._is_new:
            raise ExchangeRepositoryDamaged(why)
        odd.write_text("\n".join((*known[-100:], commit)))

    def fetch(self, *branches: str) -> None:
        """Fetch these branches and prune deleted ones: one round trip if nothing is new."""
        ran = self._fetch([f"+{BRANCHES}/{name}:{_THERE}/{name}" for name in branches], "--prune")
        if not ran.ok:
            if not _is_broken_there(ran):
                raise _failure("fetch", ran)
            self._fetch_singly(branches)

    def _fetch_singly(self, patterns: Sequence[str]) -> None:
        """Fetch branch by branch if the remote lacks objects, so that one damaged branch does not block the others.

        A branch that cannot be fetched keeps its last fetched state.
        """
        there = self._list_remote(patterns)
        known = {f"{_THERE}/{name}": tip.commit for name, tip in self.tips().items()}
        todo = [[ref for ref, commit in there.items() if known.get(ref) != commit]]
        until = time.monotonic() + self.seconds
        while todo:
            some = todo.pop()
            if not some:
                continue
            ran = self._fetch([f"+{BRANCHES}{ref.removeprefix(_THERE)}:{ref}" for ref in some])
            if ran.ok:
                continue
            if not _is_broken_there(ran) or time.monotonic() > until:
                raise _failure("fetch", ran)
            if len(some) > 1:
                todo += [some[: len(some) // 2], some[len(some) // 2 :]]
                continue
            name = some[0].removeprefix(f"{_THERE}/")
            if _UNSENT in ran.err:  # or our repository lacks objects that it claimed to have
                self.suspect(there[some[0]], said(ran))
            self.broken[name] = there[some[0]]
            shown = f"truekeep/{printable(name)[:120]}"
            self.notes.append(
                f"the branch {shown} is damaged there; the others were fetched. `git push REMOTE --delete {shown}` "
                "removes it, and the next runs put it there again"
            )

    def _list_remote(self, patterns: Sequence[str]) -> dict[str, str]:
        """The commits of these branches on the remote, by local ref."""
        ran = self._run("ls-remote", "--", self.remote, *(f"{BRANCHES}/{name}" for name in patterns))
        found: dict[str, str] = {}
        if not ran.ok:
            raise _failure("ls-remote", ran)
        for line in ran.out.decode("utf-8", "surrogateescape").splitlines()[:MAX_BRANCHES]:
            commit, _, ref = line.partition("\t")
            if ref.startswith(f"{BRANCHES}/"):
                found[_THERE + ref.removeprefix(BRANCHES)] = commit
        return found

    def _fetch(self, specs: Sequence[str], *options: str) -> Ran:
        return self._run(
            "fetch", "--quiet", "--force", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance",
            "--no-write-fetch-head", "--no-show-forced-updates", *options, "--", self.remote, *specs,
        )  # fmt: skip

    def push(self, commit: str, branch: str, *, is_forced: bool = False) -> Ran:
        """Push a commit to a branch; only as a fast-forward, unless the branch there is damaged."""
        lease = [f"--force-with-lease={BRANCHES}/{branch}:{self.broken[branch]}"] if branch in self.broken else []
        return self._run(
            "push", "--quiet", "--no-verify", "--no-follow-tags", *lease,
            "--", self.remote, f"{'+' if is_forced else ''}{commit}:{BRANCHES}/{branch}",
        )  # fmt: skip

    def tips(self) -> dict[str, Tip]:
        """The fetched branches, by name."""
        found = self._ask("for-each-ref", "--format=%(refname)%00%(objectname)%00%(tree)", _PUSHED, f"{_THERE}/")
        tips: dict[str, Tip] = {}
        for line in found.decode("utf-8", "surrogateescape").splitlines()[:MAX_BRANCHES]:
            name, commit, tree = line.split("\0")
            if name == _PUSHED:
                self.pushed = commit
            elif tree:  # a branch may name something else than a commit
                tips[name.removeprefix(f"{_THERE}/")] = Tip(commit, tree)
        return tips

    def list_folders(self, commit: str) -> list[str]:
        """The top-level folders of a commit."""
        return [path for mode, _, _, path in self._list(commit, []) if mode == "040000"]

    def list_tree(self, commit: str, paths: Sequence[str]) -> Iterator[TreeFile]:
        """The regular files at these paths, or in these folders if they end with a slash."""
        for mode, id_, size, path in self._list(commit, paths):
            if mode in ("100644", "100755"):
                if not size.isdigit():
                    raise UnreadableTree(f"{printable(path)[:120]} is missing")
                yield TreeFile(path, id_, int(size))

    def list_receipts(self, commit: str) -> list[TreeFile]:
        folders = [f"{name}/" for name in self.list_folders(commit) if _BRANCH.match(name)]
        return list(self.list_tree(commit, folders)) if folders else []

    def read_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Small blobs by id; missing and large ones are left out."""
        git = Git(str(self.path), timeout=self.seconds)
        git.borrow(str(self.path / "objects"))
        try:
            return {id_: data for id_, data in git.blobs(ids, limit=MAX_RECEIPT_BYTES) if data is not None}
        except GitFailed as error:
            raise UnreadableTree(str(error)) from error
        finally:
            git.close()

    def _list(self, commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
        ran = self._run("ls-tree", "-z", "-l", "--full-tree", commit, "--", *paths)
        if not ran.ok:
            raise UnreadableTree(said(ran))
        for item in ran.out.split(b"\0"):
            head, tab, path = item.partition(b"\t")
            parts = head.decode("ascii", "replace").split()
            if tab and len(parts) == 4:
                yield parts[0], parts[2], parts[3], path.decode("utf-8", "surrogateescape")

    def write_tree(self, base: Path, paths: Iterable[str]) -> str:
        """Write a tree of files below a folder."""
        names = [path for path in paths if (base / path).is_file()]
        return self._tree(zip(names, self._hash(base, names), strict=True))

    def write_receipts(self, receipts: Mapping[str, bytes]) -> str:
        """Write the tree of all receipts."""
        names = sorted(receipts)
        with tempfile.TemporaryDirectory(dir=self.path) as folder:
            for number, name in enumerate(names):
                (Path(folder) / str(number)).write_bytes(receipts[name])
            ids = self._hash(Path(folder), [str(number) for number in range(len(names))])
        return self._tree(zip(names, ids, strict=True))

    def _hash(self, base: Path, names: Sequence[str]) -> list[str]:
        """Store files below a folder as blobs and return their ids."""
        if not names:
            return []
        given = "".join(f"{name}\n" for name in names).encode()
        ids = self._ask("hash-object", "-w", "--no-filters", "--stdin-paths", given=given, cwd=str(base)).split()
        if len(ids) != len(names):
            raise ExchangeRepositoryDamaged("git hash-object gave too few answers")
        return [id_.decode() for id_ in ids]

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
        """Pack objects if there are many, in the foreground."""
        self._run("-c", "gc.auto=2000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")

    def forget_earlier(self, purged: int) -> bool:
        """Remove commits that no branch has, once for each number of a purge. True if it was done."""
        note = self.path / "truekeep-purged"
        with suppress(OSError, ValueError):
            if int(note.read_text()) >= purged:
                return False
        if purged and not self._run("gc", "--quiet", "--prune=now").ok:
            return False
        file_io.write_whole(note, str(purged).encode())
        return True

    def _ask(
        self,
        *arguments: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> bytes:
        """Run git on our own repository, where only damage or a full disk makes it fail."""
        ran = self._run(*arguments, given=given, environment=environment, cwd=cwd)
        if not ran.ok:
            raise _failure(arguments[0], ran)
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
        """The user's ssh command, without prompts."""
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


def _failure(verb: str, ran: Ran) -> Exception:
    """The error for a failed git: our repository is damaged, ssh failed, or the remote is unreachable."""
    ours = "\n".join(line for line in ran.err.splitlines() if not line.startswith("remote:"))
    is_full = any(words in ours.lower() for words in ("no space", "quota"))
    if (
        not is_full
        and any(words in ours for words in _DAMAGED)
        and "does not appear to be a git repository" not in ours
    ):
        return ExchangeRepositoryDamaged(said(ran))
    if re.search(r"\bssh: (?:command )?not found|cannot run ssh:", ran.err):
        return ToolMissing("ssh")
    return Unreachable(f"git {verb}: {said(ran)}", hint=_hint(ran))


def _is_broken_there(ran: Ran) -> bool:
    """True if the remote lacks objects of a branch that it lists."""
    return any(words in ran.err for words in ("corruption on the remote side", "not our ref", _UNSENT))


def _is_overtaken(ran: Ran) -> bool:
    return any(words in ran.err for words in ("fetch first", "non-fast-forward", "stale info", "cannot lock ref"))


def said(ran: Ran) -> str:
    """The most informative line of git's error output: the remote's message, else the first error."""
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
