"""Checks claims about commits."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from truekeep.core.repository import GitFailed, remote_name
from truekeep.verify.claims.hashes import DIGITS_ONLY
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import GIT, Verdict, confirmed, gone, unverifiable


def check_commits(world: World, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    """Ask git about all commits at once, then which of them this branch has."""
    if not questions:
        return {}
    names = [f"{question.claim.name.lower()}^{{commit}}" for question in questions]
    verdicts: dict[int, Verdict | None] = {}
    found = []
    for question, (_, oid, kind) in zip(questions, list(world.git.infos(names)), strict=True):
        if kind == "commit":
            found.append((question, oid))
        elif kind == "ambiguous" or next(iter(list(world.git.infos([question.claim.name.lower()]))))[2] == "ambiguous":
            verdicts[id(question)] = unverifiable(question, "ambiguous", "several objects begin like this")
        else:
            verdicts[id(question)] = _unknown_commit(world, question)
    here, anywhere = _find_reachable(world, [oid for _, oid in found])
    for question, oid in found:
        if oid in here:
            verdicts[id(question)] = confirmed(question, "on-branch", "in this branch's history", rank=GIT, commit=oid)
        elif oid in anywhere:
            why = "the commit is on another branch, not on this one"
            verdicts[id(question)] = confirmed(question, "other-branch", why, rank=GIT, commit=oid)
        elif world.now.state.is_shallow:
            why = "the commit is here; a shallow clone cannot show whether a branch has it"
            verdicts[id(question)] = unverifiable(question, "incomplete", why)
        else:
            why = "no branch or tag reaches this commit any more: rebased away, or dropped"
            verdicts[id(question)] = gone(question, "unreachable", why, commit=oid)
    return verdicts


def _unknown_commit(world: World, question: Question) -> Verdict | None:
    """Return the verdict on an id that git does not know. Never `gone`: nothing says that it was ever here."""
    state, named = world.now.state, question.claim.owner
    if named and named != remote_name(Path(world.root)).lower():
        return unverifiable(question, "of-others", f"a commit of {named}, which is another repository")
    if not state.is_whole:
        return unverifiable(question, "incomplete", "not here, but this clone does not have all of history")
    if not state.head:
        return unverifiable(question, "no-commits", "nothing was committed here yet")
    if not world.past.is_whole:
        return unverifiable(question, "incomplete", "not here, but objects are missing in this clone")
    if world.is_home and question.claim.why == DIGITS_ONLY:
        return None
    why = "no commit of this repository: it may be another repository's, was never pushed, or is no commit at all"
    return unverifiable(question, "never-seen", why)


def _find_reachable(world: World, oids: list[str]) -> tuple[set[str], set[str]]:
    """Return which of these commits this branch has, and which any branch or tag has. Cached."""
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
        on_branch, on_any = _ask_git_reachable(world, left)
        here |= on_branch
        anywhere |= on_any
        with world.store.transaction():
            for oid in left:
                world.store.remember(f"{base} {oid}", "here" if oid in on_branch else "there" if oid in on_any else "")
    return here, anywhere


def _ask_git_reachable(world: World, oids: list[str]) -> tuple[set[str], set[str]]:
    """Ask git for them: one by one if they are few, else by listing all commits."""
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
