"""The inspection: memories in, verdicts out.

Each memory's claims go to the repository that the memory belongs to; there they are judged together. What was found is
kept with the identity of its evidence, so that recall can show it without asking again, as long as nothing changed.
Only a check renews what is kept here; reading never does.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from truekeep.checkouts import Checkout, choose_checkout
from truekeep.claim import Claim
from truekeep.claims import extract_claims
from truekeep.repo import GitFailed
from truekeep.verify import kept
from truekeep.verify.facts import language_for
from truekeep.verify.judge import judge
from truekeep.verify.kept import Checked, Memory, digest_text
from truekeep.verify.paths import outside
from truekeep.verify.source import clean
from truekeep.verify.store import Store
from truekeep.verify.tree import LARGEST, Outline, OutOfTime, digest_in, outline_of
from truekeep.verify.verdict import CONFIRMED, Question, Verdict, changed, confirmed, unverifiable
from truekeep.verify.world import Options, World

_WITH_BODY = ("symbol", "method", "env")
_DAY = 86_400


class _Asked(NamedTuple):
    """A question on its way: which memory asked it, and which checkout answers."""

    memory: int
    root: str
    question: Question
    problem: str


class Verifier:
    """Checks memories against the checkouts of this machine."""

    def __init__(
        self,
        store: Store,
        checkouts: Sequence[Checkout],
        *,
        workspace: str = "",
        options: Options | None = None,
        reuse: bool = False,
    ) -> None:
        self.store, self.checkouts, self.workspace = store, checkouts, workspace
        self.options = options or Options()
        self._worlds: dict[str, World] | None = {} if reuse else None  # a run of many small checks looks once

    def check(
        self,
        memories: Sequence[Memory],
        *,
        root: str = "",
        keep: bool = True,
        tell: Callable[[str, int, int], None] = lambda *_: None,
    ) -> list[Checked]:
        """Verdicts for every claim of every memory, in their order. `root`: the checkout to use for all of them."""
        left_out = [0] * len(memories)
        asked: list[_Asked] = []
        for at, memory in enumerate(memories):
            found = extract_claims(memory.text, is_changelog=memory.is_changelog)
            left_out[at] = found.left_out
            asked += self._ask(at, memory, found.claims, root)
        by_root: dict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(asked):
            by_root[item.root].append(number)
        verdicts: list[Verdict | None] = [None] * len(asked)
        worlds: dict[str, World] = {}
        problems: dict[str, str] = {}
        for done, (chosen, members) in enumerate(by_root.items()):
            tell("verify", done, len(by_root))
            world = self._open(chosen, problems)
            questions = [asked[number].question for number in members]
            if world is None:
                why = problems.get(chosen, "")
                answers = [self._without(asked[number], why) for number in members]
            else:
                worlds[chosen] = world
                answers = self._compare(world, questions, judge(world, questions), keep=keep)
            for number, verdict in zip(members, answers, strict=True):
                verdicts[number] = verdict
        tell("verify", len(by_root), len(by_root))
        results = self._collect(memories, asked, verdicts, worlds, problems, left_out)
        if keep:
            kept.keep(self.store, memories, results, {root: world.now.state.git_dir for root, world in worlds.items()})
        return results

    def _ask(self, at: int, memory: Memory, claims: Sequence[Claim], root: str) -> Iterable[_Asked]:
        chosen: dict[str, tuple[str, str]] = {}
        for claim in claims:
            if claim.is_past:
                continue
            origin = memory.origin_of(claim.line)
            if root:
                where, problem = root, ""
            else:
                if origin.repository not in chosen:
                    chosen[origin.repository] = self._root_for(origin.repository)
                where, problem = chosen[origin.repository]
            yield _Asked(at, where, Question(claim, memory.path, origin.written_at), problem)

    def _root_for(self, repository: str) -> tuple[str, str]:
        if not repository:
            return "", "the memory names no repository"
        checkout = choose_checkout(repository, self.checkouts)
        if checkout is None:
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
            problems[root] = error.why + (f" ({error.hint})" if error.hint else "")
        except OutOfTime:
            problems[root] = "the checkout could not be read in the time that was given"
        return None

    def _without(self, asked: _Asked, problem: str) -> Verdict | None:
        """A claim without a checkout: outside paths can still be looked at, everything else is unverifiable."""
        claim = asked.question.claim
        if claim.kind in ("path", "directory"):
            if claim.name.startswith(("/", "~")) and not claim.is_weak:
                return outside(asked.question, claim.name)
            inside = self.workspace and ".." not in claim.name.split("/")
            if inside and os.path.lexists(os.path.join(self.workspace, claim.name)):
                return confirmed(asked.question, "in-memory", "a file of this memory")
        if claim.is_weak:
            return None
        return unverifiable(asked.question, "no-checkout", problem or asked.problem)

    def _collect(
        self,
        memories: Sequence[Memory],
        asked: Sequence[_Asked],
        verdicts: Sequence[Verdict | None],
        worlds: Mapping[str, World],
        problems: Mapping[str, str],
        left_out: Sequence[int],
    ) -> list[Checked]:
        now = time.time()
        grouped: dict[int, list[int]] = defaultdict(list)
        for number, item in enumerate(asked):
            grouped[item.memory].append(number)
        results = []
        for at, memory in enumerate(memories):
            members = grouped[at]
            roots = tuple(dict.fromkeys(root for number in members if (root := asked[number].root) in worlds))
            said = (problems.get(asked[number].root, "") or asked[number].problem for number in members)
            state = worlds[roots[0]].now.state if roots else None
            results.append(
                Checked(
                    path=memory.path,
                    repository=memory.origin.repository,
                    roots=roots,
                    verdicts=tuple(verdict for number in members if (verdict := verdicts[number]) is not None),
                    checked_at=now,
                    head=state.head if state else "",
                    branch=state.branch if state else "",
                    doing=state.doing if state else "",
                    left_out=left_out[at],
                    problems=tuple(dict.fromkeys(why for why in said if why)),
                    digest=digest_text(memory.text),
                )
            )
        return results

    # What was seen before.

    def _compare(
        self, world: World, questions: Sequence[Question], verdicts: Sequence[Verdict | None], *, keep: bool
    ) -> list[Verdict | None]:
        """Tell `changed` from confirmed: by what the last check saw, else by the commit of the memory."""
        result = [_with_body(world, verdict) for verdict in verdicts]
        verdicts = tuple(result)
        prints = self._prints({_print_key(world, question) for question in questions if question.memory})
        ask: list[tuple[int, Question, Verdict]] = []
        for at, verdict in enumerate(verdicts):
            if (
                verdict is None
                or verdict.verdict != CONFIRMED
                or not verdict.seen
                or verdict.claim.kind not in _WITH_BODY
            ):
                continue
            question = questions[at]
            seen, since = prints.get((_print_key(world, question), _claim_key(verdict.claim)), ("", 0))
            if seen and (question.written_at is None or since >= question.written_at - _DAY):
                if seen != verdict.seen:
                    result[at] = _as_changed(question, verdict, "since the last check")
            elif question.written_at is not None:
                ask.append((at, question, verdict))
        for at, day in _seen_then(world, ask):
            before = verdicts[at]
            assert before is not None
            result[at] = _as_changed(questions[at], before, f"since {day}")
        if keep:
            self._remember(world, questions, result)
        return result

    def _prints(self, memories: set[str]) -> dict[tuple[str, str], tuple[str, int]]:
        found: dict[tuple[str, str], tuple[str, int]] = {}
        for memory in memories:
            for claim, seen, at in self.store.rows("SELECT claim, seen, at FROM print WHERE memory = ?", (memory,)):
                found[memory, claim] = (seen, int(at))
        return found

    def _remember(self, world: World, questions: Sequence[Question], verdicts: Sequence[Verdict | None]) -> None:
        now = int(time.time())
        rows = [
            (_print_key(world, question), _claim_key(verdict.claim), verdict.seen, now)
            for question, verdict in zip(questions, verdicts, strict=True)
            if verdict is not None and verdict.verdict == CONFIRMED and verdict.seen and question.memory
        ]
        if rows:
            with self.store.transaction():
                self.store.many("INSERT OR REPLACE INTO print VALUES (?, ?, ?, ?)", rows)


def _print_key(world: World, question: Question) -> str:
    """What a memory was seen to say is said of one repository, whichever checkout was asked."""
    return f"{question.memory}\0{world.past.key}"


def _claim_key(claim: Claim) -> str:
    """What makes a claim the same one after an edit elsewhere in the memory."""
    return "\0".join((claim.kind, claim.owner, claim.name, claim.place))


def _with_body(world: World, verdict: Verdict | None) -> Verdict | None:
    """A confirmed symbol with the digest of its body as it is now."""
    if verdict is None or verdict.verdict != CONFIRMED or verdict.claim.kind not in _WITH_BODY:
        return verdict
    path, _, line = verdict.place.rpartition(":")
    for item in world.outline(path) if path and line.isdigit() else ():
        if item.line == int(line) and item.name == verdict.claim.name:
            return verdict._replace(seen=world.now.digest(path, item))
    return verdict


def _as_changed(question: Question, verdict: Verdict, since: str) -> Verdict:
    return changed(
        question, "body-changed", f"still in {verdict.place}, but its code changed {since}", verdict.place,
        seen=verdict.seen,
        dirty=verdict.is_dirty,
    )  # fmt: skip


def _seen_then(world: World, asked: Sequence[tuple[int, Question, Verdict]]) -> Iterable[tuple[int, str]]:
    """The confirmed symbols whose code was another one at the commit of their memory, and the day of that commit."""
    past, now = world.past, world.now
    names: dict[int, tuple[str, str, str]] = {}
    for at, question, verdict in asked:
        commit = past.commit_at(question.written_at or 0)
        path = verdict.place.rpartition(":")[0]
        if commit is not None and commit.id != now.state.head and path:
            names[at] = (f"{commit.id}:{past.name_then(path, commit.at)}", path, commit.day)
    oids = past.oids([name for name, _, _ in names.values()])
    wanted: dict[str, list[int]] = defaultdict(list)
    for at, (name, path, _) in names.items():
        oid = oids.get(name)
        if oid is not None and path not in now.path_of_blob.get(oid, ()):
            wanted[oid.hex()].append(at)
    verdicts = {at: verdict for at, _, verdict in asked}
    for oid_hex, data in world.git.blobs(list(wanted), limit=LARGEST) if wanted else ():
        outlines: dict[str, tuple[Outline, ...]] = {}
        for at in wanted[oid_hex] if data is not None else ():
            _, path, day = names[at]
            if path not in outlines:
                outlines[path] = outline_of(data or b"", path)
            code = clean(data or b"", language_for(path))
            digests = [digest_in(code, item) for item in outlines[path] if item.name == verdicts[at].claim.name]
            if digests and verdicts[at].seen not in digests:
                yield at, day
