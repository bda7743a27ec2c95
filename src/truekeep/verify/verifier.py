"""Checks memories: extracts their claims, checks each against its repository, and stores the verdicts.

The claims of one repository are checked together. Verdicts are stored with the state of the files they depend on, so
that recall can show them without a new check as long as nothing changed.

To detect changed code, a check stores a fingerprint for each claim: the digest of its code when the memory was written.
It is keyed by the memory's date and the line of the claim, so a rewritten line gets a new fingerprint; a repair changes
only paths and line numbers, so it carries the fingerprints over. The fingerprint is read from git at the memory's date,
and again if history was rewritten; without git history it is taken at the first check.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from json import JSONDecodeError
from pathlib import Path
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.core.model import CARDS
from truekeep.core.repository import GitFailed, remote_name
from truekeep.memory.file_scan import is_log, project_in
from truekeep.text.program_text import find_program_lines
from truekeep.verify.bundle_claims import check_bundle_on_disk
from truekeep.verify.cache import FactsCache, StoreDamaged
from truekeep.verify.checkout import MAX_SOURCE_BYTES, VerifyTimeout, digest_in, outline_in
from truekeep.verify.checkouts import Checkout, choose_checkout, is_of_workspace
from truekeep.verify.claim import Claim
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.declared_folders import NOTHING, find_declared_folders
from truekeep.verify.dispatch import judge
from truekeep.verify.emptied_folders import find_emptied_folders
from truekeep.verify.file_kinds import language_for
from truekeep.verify.git_history import Commit
from truekeep.verify.hosted_links import HOSTED, hosted_in, read_hosted_link
from truekeep.verify.languages import clean, is_config
from truekeep.verify.memory_reader import is_outside
from truekeep.verify.path_claims import find_longer_paths, missing_here, outside, words_above
from truekeep.verify.question import Question
from truekeep.verify.repository import Options, World, openclaw_folder
from truekeep.verify.results import NO_REPOSITORY, CheckedMemory, MemoryText, digest_text, save_verdicts, stamp_of
from truekeep.verify.subject import Subjects
from truekeep.verify.system_claims import check_machine
from truekeep.verify.verdict import CONFIRMED, Verdict, changed, confirmed, unverifiable

_MACHINE_KINDS = ("port", "unit", "container", "cron", "id", "url")
_PROGRAM_TEXT = ("session", "prompt", "dreaming", "mail", "generated")
_KINDS_WITH_BODY = ("symbol", "method", "env")


class _RoutedQuestion(NamedTuple):
    """A question with the memory it comes from and the checkout that answers it."""

    memory: int
    root: str
    question: Question
    problem: str
    context: str  # a digest of the memory's date and the line of the claim


class _Fingerprint(NamedTuple):
    """The code of a claim when the memory was written."""

    seen: str  # the digests of the definitions with its name
    day: str = ""  # the day of that commit; empty if the digests are from the first check
    commit: str = ""  # the commit at the memory's date
    is_pinned: bool = False  # not to be replaced by the code at the memory's date: repaired, or as new as HEAD


class Verifier:
    """Checks memories against the checkouts of this machine."""

    def __init__(
        self,
        store: FactsCache,
        checkouts: Sequence[Checkout],
        *,
        workspace: str = "",
        home: str = "",
        options: Options | None = None,
        reuse: bool = False,
    ) -> None:
        self.store, self.checkouts, self.workspace = store, checkouts, workspace
        self.home = os.path.realpath(home) if home else ""  # the repository that contains the workspace
        self.options = options or Options()
        self._worlds: dict[str, World] | None = {} if reuse else None  # a run of many small checks opens each once
        self._trees: dict[str, str] = {}

    def check(
        self,
        memories: Sequence[MemoryText],
        *,
        root: str = "",
        keep: bool = True,
        progress: Callable[[str, int, int], None] = lambda *_: None,
        is_asked: Callable[[MemoryText, Claim], bool] = lambda *_: True,
        lines_asked: Callable[[MemoryText], Collection[int] | None] = lambda _: None,
    ) -> list[CheckedMemory]:
        """Check the claims of every memory, in order. `root`: the checkout to use for all of them.

        `lines_asked`: the lines of a memory whose claims are asked about; None for all.
        """
        try:
            return self._check(
                memories, root=root, keep=keep, progress=progress, is_asked=is_asked, lines_asked=lines_asked
            )
        except JSONDecodeError:
            self.store.recreate()  # a damaged page that SQLite did not notice
        except StoreDamaged:
            pass
        self._worlds = {} if self._worlds is not None else None  # they refer to facts that are deleted
        return self._check(
            memories, root=root, keep=keep, progress=progress, is_asked=is_asked, lines_asked=lines_asked
        )

    def open(self, root: str) -> World:
        """The repository of a checkout; with `reuse`, the one that later checks use."""
        problems: dict[str, str] = {}
        world = self._open(root, problems)
        if world is None:
            raise BadInput(f"{root} cannot be read: {problems[root]}", hint="name another checkout with --repo")
        return world

    def still_holds(self, item: CheckedMemory) -> bool:
        """Whether no file of the memory's checkouts changed since the check."""
        try:
            return all(self._tree(root) == tree for root, tree in zip(item.roots, item.trees, strict=True))
        except (StoreDamaged, JSONDecodeError):
            return False

    def _tree(self, root: str) -> str:
        if root not in self._trees:
            world = self._open(root, {})
            self._trees[root] = _tree_digest(world) if world is not None else ""
        return self._trees[root]

    def _check(
        self,
        memories: Sequence[MemoryText],
        *,
        root: str,
        keep: bool,
        progress: Callable[[str, int, int], None],
        is_asked: Callable[[MemoryText, Claim], bool],
        lines_asked: Callable[[MemoryText], Collection[int] | None],
    ) -> list[CheckedMemory]:
        left_out = [0] * len(memories)
        asked: list[_RoutedQuestion] = []
        own = self._own_names(memories, root)
        for at, memory in enumerate(memories):
            progress("reading memory", at, len(memories))
            wanted_lines = lines_asked(memory)
            if wanted_lines is not None and not wanted_lines:
                continue
            found = extract_claims(
                memory.text,
                is_changelog=memory.is_changelog,
                is_rst=memory.is_rst,
                are_documents=self.options.are_documents,
                lines=wanted_lines,
            )
            left_out[at] = found.left_out
            claims = [_as_file_here(claim, own) for claim in self._of_people(memory, found.claims)]
            asked += self._route(at, memory, [claim for claim in claims if is_asked(memory, claim)], root)
        by_root: dict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(asked):
            by_root[item.root].append(number)
        verdicts: list[Verdict | None] = [None] * len(asked)
        worlds: dict[str, World] = {}
        problems: dict[str, str] = {}
        for done, (chosen, members) in enumerate(by_root.items()):
            progress(f"checking {len(members)} claims", done, len(by_root) if len(by_root) > 1 else 0)
            world = self._open(chosen, problems)
            some = [asked[number] for number in members]
            if world is None:
                why = problems.get(chosen, "")
                answers = self._answer_without_checkout(some, why)
            else:
                worlds[chosen] = world
                answers = self._compare(world, some, judge(world, [item.question for item in some]), keep=keep)
            for number, verdict in zip(members, answers, strict=True):
                verdicts[number] = verdict
        progress("verify", len(by_root), len(by_root))
        results = self._collect(memories, asked, verdicts, worlds, problems, left_out)
        if keep:
            git_dirs = {root: world.now.state.git_dir for root, world in worlds.items()}
            save_verdicts(self.store, memories, results, git_dirs, workspace=self.workspace)
        return results

    def _own_names(self, memories: Sequence[MemoryText], root: str) -> frozenset[str]:
        """The names under which hosts of git have the repository whose documents are checked."""
        world = self._open(root, {}) if root and self.options.are_documents else None
        if world is None:
            return frozenset()
        now = world.now
        linked = hosted_in((memory.text for memory in memories), lambda path: now.has(path) or now.has_folder(path))
        return linked | {name for name in (remote_name(Path(root)).lower(),) if name}

    def _of_people(self, memory: MemoryText, claims: Sequence[Claim]) -> Sequence[Claim]:
        """The claims of a workspace's document without those of sessions, prompts and reports that programs wrote."""
        if not claims or not self._is_own(memory):
            return claims
        by_programs = {number for number, what in find_program_lines(memory.text).items() if what in _PROGRAM_TEXT}
        return [claim for claim in claims if claim.line not in by_programs] if by_programs else claims

    def _is_own(self, memory: MemoryText) -> bool:
        """Whether a memory is a document or a log of the workspace, and no card."""
        is_file = bool(self.workspace and memory.path) and not is_outside(memory.path)
        return is_file and not memory.path.startswith(f"{CARDS}/")

    def _route(self, at: int, memory: MemoryText, claims: Sequence[Claim], root: str) -> Iterable[_RoutedQuestion]:
        if not claims:
            return
        chosen: dict[str, tuple[str, str]] = {}
        lines = memory.text.split("\n")
        subjects = Subjects(memory.path, lines, with_days=not self.options.are_documents)
        longer = find_longer_paths(claims)
        declared = find_declared_folders(lines, is_log=is_log(memory.path)) if self._is_own(memory) else []
        emptied = find_emptied_folders(claims, lines)
        above = words_above(lines) if self.options.are_documents and claims else []
        for claim in claims:
            if claim.is_past:
                continue
            origin = memory.origin_of(claim.line)
            context = _context_digest(origin.written_at, lines[claim.line - 1])
            subject = subjects.of_line(claim.line)
            if claim.why == HOSTED:
                question = Question(claim, memory.path, origin.written_at, subject=subject, is_rooted=True)
                yield _RoutedQuestion(at, root, question, "", context)
                continue
            if (hosted := self._find_hosted(claim)) is not None:
                where, about = hosted
                question = Question(about, memory.path, origin.written_at, subject=subject, is_rooted=True)
                yield _RoutedQuestion(at, where, question, "", context)
                continue
            if root:
                where, problem = root, ""
            else:
                if origin.repository not in chosen:
                    chosen[origin.repository] = self._root_for(origin.repository, memory.path)
                where, problem = chosen[origin.repository]
            question = Question(
                claim,
                memory.path,
                origin.written_at,
                self._folder(memory.path, where),
                subject,
                longer.get(claim, ()),
                declared=declared[claim.line - 1] if declared else NOTHING,
                named_above=above[claim.line - 1] if above and claim.kind in ("path", "directory") else (),
                emptied=emptied,
            )
            yield _RoutedQuestion(at, where, question, problem, context)

    def _find_hosted(self, claim: Claim) -> tuple[str, Claim] | None:
        """The checkout here of the repository that a link to a git host is about, and the claim about its file."""
        found = read_hosted_link(claim) if claim.kind == "url" and not self.options.are_documents else None
        if found is None:
            return None
        if self.home and found.repository == remote_name(Path(self.home)).lower():
            return self.home, found.claim
        checkout = choose_checkout(found.repository, self.checkouts)
        return (checkout.root, found.claim) if checkout is not None and not checkout.problem else None

    def _folder(self, path: str, root: str) -> str:
        """The folder of a memory's file, from the root of the repository; empty at the root and outside of it."""
        if not path or not root:
            return ""
        base = os.getcwd() if is_outside(path) or not self.workspace else os.path.realpath(self.workspace)
        folder = os.path.dirname(os.path.normpath(os.path.join(base, path)))
        return folder[len(root) + 1 :] if folder.startswith(root + "/") else ""

    def _root_for(self, repository: str, path: str) -> tuple[str, str]:
        if not repository:
            return self.home, "" if self.home else NO_REPOSITORY
        checkout = choose_checkout(repository, self.checkouts)
        if checkout is None:
            if is_of_workspace(repository, self.workspace) or project_in(path) == repository:
                return self.home, "" if self.home else NO_REPOSITORY
            return "", f"no checkout of {repository} is known on this machine"
        if checkout.problem:
            return "", f"{checkout.root}: {checkout.problem}"
        return checkout.root, ""

    def _open(self, root: str, problems: dict[str, str]) -> World | None:
        if not root:
            return None
        if self._worlds is not None and root in self._worlds:
            return self._worlds[root]
        try:
            world = World(root, self.store, workspace=self.workspace, options=self.options)
            if self._worlds is not None:
                self._worlds[root] = world
            return world
        except GitFailed as error:
            problems[root] = str(error)
        except VerifyTimeout:
            problems[root] = "the checkout could not be read before the time limit"
        return None

    def _answer_without_checkout(self, asked: Sequence[_RoutedQuestion], problem: str) -> list[Verdict | None]:
        """Check claims without a checkout: paths on this machine, and what runs here; all else is unverifiable."""
        running = [item.question for item in asked if item.question.claim.kind in _MACHINE_KINDS]
        answers = check_machine(self.store, self.options, running)
        return [
            answers[id(item.question)]
            if item.question.claim.kind in _MACHINE_KINDS
            else self._answer_from_disk(item, problem)
            for item in asked
        ]

    def _answer_from_disk(self, asked: _RoutedQuestion, problem: str) -> Verdict | None:
        question, claim = asked.question, asked.question.claim
        if claim.kind == "bundle" and claim.name.startswith(("/", "~")):
            return check_bundle_on_disk(question)
        if claim.kind in ("path", "directory"):
            own = openclaw_folder(claim.name) if self.workspace else ""
            if claim.name.startswith(("/", "~")) and not own and not claim.is_weak:
                return outside(question, claim.name, self.workspace)
            name = claim.name[len(own) :].lstrip("/") or "."
            if any(os.path.lexists(place) for place in self._places(question.memory if not own else "", name)):
                return confirmed(question, "in-memory", "a file of this memory")
            if (missing := missing_here(question, claim.name, self.workspace)) is not None:
                return missing
            if self.workspace and asked.problem == NO_REPOSITORY and not claim.is_weak:
                why = "not in this workspace; it is in no git repository, so whether it ever was is not known"
                return unverifiable(question, "not-there", why)
        if claim.is_weak:
            return None
        return unverifiable(question, "no-checkout", problem or asked.problem)

    def _places(self, memory: str, name: str) -> Iterator[str]:
        """Where a path can be in a workspace without git: from the document's folder, and from each one above."""
        root = os.path.realpath(self.workspace) if self.workspace else ""
        folder = os.path.dirname(memory) if not is_outside(memory) else ""
        while root:
            place = os.path.normpath(os.path.join(root, folder, name))
            if place == root or place.startswith(root + "/"):
                yield place
            if not folder:
                return
            folder = os.path.dirname(folder)

    def _collect(
        self,
        memories: Sequence[MemoryText],
        asked: Sequence[_RoutedQuestion],
        verdicts: Sequence[Verdict | None],
        worlds: Mapping[str, World],
        problems: Mapping[str, str],
        left_out: Sequence[int],
    ) -> list[CheckedMemory]:
        now = time.time()
        trees = {root: _tree_digest(world) for root, world in worlds.items()}
        grouped: dict[int, list[int]] = defaultdict(list)
        for number, item in enumerate(asked):
            grouped[item.memory].append(number)
        results = []
        for at, memory in enumerate(memories):
            members = grouped[at]
            roots = tuple(dict.fromkeys(root for number in members if (root := asked[number].root) in worlds))
            reasons = (problems.get(asked[number].root, "") or asked[number].problem for number in members)
            state = worlds[roots[0]].now.state if roots else None
            results.append(
                CheckedMemory(
                    path=memory.path,
                    repository=memory.origin.repository,
                    roots=roots,
                    verdicts=tuple(verdict for number in members if (verdict := verdicts[number]) is not None),
                    checked_at=now,
                    head=state.head if state else "",
                    branch=state.branch if state else "",
                    doing=state.doing if state else "",
                    left_out=left_out[at],
                    missing=next((kind for root in roots if (kind := worlds[root].now.state.missing)), ""),
                    problems=tuple(dict.fromkeys(why for why in reasons if why)),
                    digest=digest_text(memory.text),
                    trees=tuple(trees[root] for root in roots),
                )
            )
        return results

    # Fingerprints.

    def _compare(
        self, world: World, asked: Sequence[_RoutedQuestion], verdicts: Sequence[Verdict | None], *, keep: bool
    ) -> list[Verdict | None]:
        """Turn `confirmed` into `changed` where the code differs from when the memory was written."""
        result = [_add_body_digest(world, verdict) for verdict in verdicts]
        bodies = {
            at: verdict
            for at, verdict in enumerate(result)
            if verdict is not None
            and verdict.claim.kind in _KINDS_WITH_BODY
            and verdict.verdict == CONFIRMED
            and verdict.seen
            and not is_config(language_for(verdict.place.rpartition(":")[0]))  # values change all the time
        }
        known = self._load_fingerprints(world, asked)
        is_in_history = cache(lambda commit: _descends(world, commit))
        missing = {
            at: verdict
            for at, verdict in bodies.items()
            if not _is_up_to_date(known.get(_fingerprint_key(asked[at])), world, asked[at].question, is_in_history)
        }
        fresh: dict[int, _Fingerprint] = {}
        try:
            then = _fingerprints_then(world, asked, missing)
            for at, verdict in missing.items():
                first = _Fingerprint(verdict.seen, commit=_commit_then(world, asked[at].question))
                fresh[at] = then.get(at, first)
        except VerifyTimeout:
            for at in missing:
                why = "the time limit was reached before its old code was read"
                result[at] = unverifiable(asked[at].question, "out-of-time", why)
        except GitFailed:
            pass  # the claim is confirmed; the next check reads its old code again
        for at, verdict in bodies.items():
            before = fresh.get(at) or known.get(_fingerprint_key(asked[at]))
            is_current = not is_log(asked[at].question.memory)
            if is_current and before is not None and verdict.seen not in before.seen.split():
                result[at] = _as_changed(asked[at].question, verdict, before)
        if keep:
            self._save_fingerprints(world, asked, known, fresh)
        return result

    def _load_fingerprints(
        self, world: World, asked: Sequence[_RoutedQuestion]
    ) -> dict[tuple[str, str, str], _Fingerprint]:
        found: dict[tuple[str, str, str], _Fingerprint] = {}
        for memory in {item.question.memory for item in asked} - {""}:
            for claim, context, seen, day, commit, is_pinned in self.store.rows(
                "SELECT claim, said, seen, day, at_commit, is_held FROM print WHERE memory = ? AND repository = ?",
                (memory, world.past.key),
            ):
                found[memory, claim, context] = _Fingerprint(seen, day, commit, bool(is_pinned))
        return found

    def _save_fingerprints(
        self,
        world: World,
        asked: Sequence[_RoutedQuestion],
        known: Mapping[tuple[str, str, str], _Fingerprint],
        fresh: Mapping[int, _Fingerprint],
    ) -> None:
        """Store the new fingerprints, and delete those of lines that the memory no longer has."""
        key = world.past.key
        stale = set(known) - {_fingerprint_key(item) for item in asked}
        rows = [
            (memory, key, claim, context, *fresh[at])
            for at in fresh
            for memory, claim, context in (_fingerprint_key(asked[at]),)
            if memory
        ]
        if rows or stale:
            with self.store.transaction():
                self.store.many(
                    "DELETE FROM print WHERE memory = ? AND repository = ? AND claim = ? AND said = ?",
                    [(memory, key, claim, context) for memory, claim, context in stale],
                )
                self.store.many("INSERT OR REPLACE INTO print VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _as_file_here(claim: Claim, own: Collection[str]) -> Claim:
    """The claim about a file that a link to this repository on a git host makes; every other claim as it is."""
    is_shown = claim.why == "inline code"  # an example of a link
    found = read_hosted_link(claim) if own and claim.kind == "url" and not is_shown else None
    if found is None or found.repository not in own:
        return claim
    return found.claim._replace(kind="directory" if found.claim.kind == "directory" else "path", place="")


def carry_fingerprints(store: FactsCache, old: MemoryText, new: MemoryText) -> None:
    """Copy a memory's fingerprints to its repaired text, whose lines and date differ."""
    new_keys = _fingerprint_keys(new)
    rows = [(*new_keys[place], old.path, *key) for place, key in _fingerprint_keys(old).items() if place in new_keys]
    with store.transaction():
        store.many(
            "INSERT OR IGNORE INTO print SELECT memory, repository, ?, ?, seen, day, at_commit, 1 FROM print"
            " WHERE memory = ? AND claim = ? AND said = ?",
            rows,
        )


def _fingerprint_keys(memory: MemoryText) -> dict[tuple[str, str, str, int], tuple[str, str]]:
    """Map each claim, by kind, owner, name and occurrence, which a repair does not change, to its fingerprint key."""
    found: dict[tuple[str, str, str, int], tuple[str, str]] = {}
    lines = memory.text.split("\n")
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for claim in extract_claims(memory.text, is_changelog=memory.is_changelog, is_rst=memory.is_rst).claims:
        if claim.kind in _KINDS_WITH_BODY:
            name = (claim.kind, claim.owner, claim.name)
            context = _context_digest(memory.origin_of(claim.line).written_at, lines[claim.line - 1])
            found[*name, seen[name]] = _claim_key(claim), context
            seen[name] += 1
    return found


def _descends(world: World, commit: str) -> bool:
    """Whether a commit is still in the history of HEAD."""
    try:
        world.git.run("merge-base", "--is-ancestor", commit, "HEAD")
    except GitFailed:
        return False
    return True


def _is_up_to_date(
    known: _Fingerprint | None, world: World, question: Question, is_in_history: Callable[[str], bool]
) -> bool:
    """Whether a stored fingerprint can be used without reading git again."""
    if known is None:
        return False
    if known.commit == _commit_then(world, question):
        return True
    return known.is_pinned and (not known.commit or is_in_history(known.commit))


def _commit_then(world: World, question: Question) -> str:
    """Return the id of the commit at the memory's date; empty if there is no commit or no date."""
    commit = world.past.commit_at(question.written_at) if question.written_at is not None else None
    return commit.id if commit is not None else ""


def _fingerprint_key(asked: _RoutedQuestion) -> tuple[str, str, str]:
    return asked.question.memory, _claim_key(asked.question.claim), asked.context


def _claim_key(claim: Claim) -> str:
    """Return a key for a claim that edits elsewhere in the memory do not change."""
    return "\0".join((claim.kind, claim.owner, claim.name, claim.place))


def _context_digest(written_at: int | None, line: str) -> str:
    return blake2b(f"{written_at} {line.strip()}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _tree_digest(world: World) -> str:
    """Return a digest of all paths and contents of a checkout, and of when git got objects: some may be missing."""
    names = "\0".join(world.now.paths).encode("utf-8", "surrogateescape")
    state = world.now.state
    objects = [stamp_of(state.common_dir, name) for name in ("objects/pack", "FETCH_HEAD")]
    return blake2b(names + repr([list(world.now.ids), objects]).encode(), digest_size=8).hexdigest()


def _add_body_digest(world: World, verdict: Verdict | None) -> Verdict | None:
    """Add the digest of the current body to the verdict on a confirmed symbol."""
    if verdict is None or verdict.verdict != CONFIRMED or verdict.claim.kind not in _KINDS_WITH_BODY:
        return verdict
    path, _, line = verdict.place.rpartition(":")
    for item in world.outline(path) if path and line.isdecimal() else ():
        if item.line == int(line) and item.name == verdict.claim.name:
            return verdict._replace(seen=world.now.digest(path, item))
    return verdict


def _as_changed(question: Question, verdict: Verdict, before: _Fingerprint) -> Verdict:
    since = before.day or "the last check"
    return changed(
        question, "body-changed", f"still in {verdict.place}, but its code changed since {since}", verdict.place,
        seen=verdict.seen,
        is_dirty=verdict.is_dirty,
    )  # fmt: skip


def _fingerprints_then(
    world: World, asked: Sequence[_RoutedQuestion], wanted: Mapping[int, Verdict]
) -> dict[int, _Fingerprint]:
    """Read the code of confirmed symbols at the commit of their memory, where git has it."""
    past, now = world.past, world.now
    found: dict[int, _Fingerprint] = {}
    names: dict[int, tuple[str, Commit]] = {}  # commit:path, and the commit
    for at, verdict in wanted.items():
        written_at = asked[at].question.written_at
        commit = past.commit_at(written_at) if written_at is not None else None
        path = verdict.place.rpartition(":")[0]
        if commit is None:
            continue
        if commit.id == now.state.head:  # the memory is as new as the code, committed or not
            found[at] = _Fingerprint(
                _bodies_now(world, path, verdict.claim.name), commit.day, commit.id, is_pinned=True
            )
        else:
            names[at] = (f"{commit.id}:{past.name_then(path, commit.at)}", commit)
    oids = past.oids([name for name, _ in names.values()])
    changed_files: dict[str, list[int]] = defaultdict(list)
    for at, (name, commit) in names.items():
        path, oid = wanted[at].place.rpartition(":")[0], oids.get(name)
        if oid is not None and path in now.path_of_blob.get(oid, ()):
            found[at] = _Fingerprint(_bodies_now(world, path, wanted[at].claim.name), commit.day, commit.id)
        elif oid is not None:
            changed_files[oid.hex()].append(at)
    for oid_hex, data in world.git.blobs(list(changed_files), limit=MAX_SOURCE_BYTES) if changed_files else ():
        bodies: dict[str, dict[str, list[str]]] = {}
        for at in changed_files[oid_hex] if data is not None else ():
            path = wanted[at].place.rpartition(":")[0]
            if path not in bodies and _has_bodies(world, path, wanted[at].claim.name, data or b""):
                commit = names[at][1]
                found[at] = _Fingerprint(_bodies_now(world, path, wanted[at].claim.name), commit.day, commit.id)
                continue
            if path not in bodies:
                asked_names = {wanted[other].claim.name for other in changed_files[oid_hex]}
                bodies[path] = _bodies_in(data or b"", path, asked_names)
            if wanted[at].claim.name in bodies[path]:
                commit = names[at][1]
                found[at] = _Fingerprint(" ".join(bodies[path][wanted[at].claim.name]), commit.day, commit.id)
    return found


def _bodies_now(world: World, path: str, name: str) -> str:
    return " ".join(world.now.digest(path, item) for item in world.outline(path) if item.name == name)


def _has_bodies(world: World, path: str, name: str, data: bytes) -> bool:
    """Whether an old file contains every current body of this name verbatim, so that it need not be parsed."""
    text = world.now.text(path)
    items = [item for item in world.outline(path) if item.name == name]
    return text is not None and bool(items) and all(_has_lines(data, text[item.start : item.stop]) for item in items)


def _has_lines(data: bytes, lines: bytes) -> bool:
    at = data.find(lines)
    end = at + len(lines)
    return at >= 0 and (at == 0 or data[at - 1 : at].isspace()) and data[end : end + 1] in (b"", b"\n", b"\r")


def _bodies_in(data: bytes, path: str, names: Collection[str]) -> dict[str, list[str]]:
    """Return the digests of the definitions of these names in a file, by name."""
    language = language_for(path)
    code = clean(data, language)
    found: dict[str, list[str]] = defaultdict(list)
    for item in outline_in(code, language, names):
        found[item.name].append(digest_in(code, item))
    return found
