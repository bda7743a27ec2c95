"""Checks memory against the current code of the checkouts here, and repairs what moved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.dates import as_stamp
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.repository import GitFailed
from truekeep.core.state_dir import STATE
from truekeep.verify.checkouts import choose_checkout
from truekeep.verify.line_origins import LineOrigins, OriginReader, PublishedOrigins
from truekeep.verify.memory_reader import MemoryReader, is_outside, text_memory
from truekeep.verify.options import Options
from truekeep.verify.resolve import InstructedOtherwise, resolve
from truekeep.verify.results import (
    CheckedMemory,
    LineOrigin,
    MemoryText,
    digest_text,
    forget_others,
    modified_at,
    note_run,
    quick_stamp,
    recall,
    renew,
)
from truekeep.verify.verdict import GONE, UNVERIFIABLE, Verdict
from truekeep.workspace.briefing import in_words

if TYPE_CHECKING:
    from truekeep.maintenance.repair import Repair
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.searcher import Hit
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.content_verifier import ContentVerifier
    from truekeep.verify.resolve import Resolution
    from truekeep.verify.verifier import Verifier
    from truekeep.workspace.briefing import Say
    from truekeep.workspace.workspace import Workspace

PATIENT_BUDGET = 60.0  # seconds for checks whose answer is relied upon
REFUTED_SHARE = 0.4  # of its score, for a refuted hit: below what holds, above what is not about the query
MAX_REPOSITORIES_ASKED = 3  # about the words of a topic


class Verification:
    """Verdicts on the memory of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context
        self.reader = MemoryReader(str(workspace.path), _origins(workspace))
        self._content_verifier: ContentVerifier | None = None

    @property
    def content_verifier(self) -> ContentVerifier | None:
        """Checks the contents of handoffs before they are filed; None if the configuration turns that off."""
        if not self._context.config.verify.ingest:
            return None
        from truekeep.verify.content_verifier import ContentVerifier

        facts = self._context.facts
        if self._content_verifier is None or self._content_verifier.store is not facts:  # reopened for writing
            find_checkouts = self._workspace.repositories.checkouts
            self._content_verifier = ContentVerifier(facts, self.reader.root, find_checkouts)
        return self._content_verifier

    def _verifier(
        self, options: Options | None = None, checkouts: list[Checkout] | None = None, *, reuse: bool = False
    ) -> Verifier:
        from truekeep.verify.verifier import Verifier  # heavy: stored verdicts are given without it

        known = self._workspace.repositories.checkouts() if checkouts is None else checkouts
        home = self._workspace.repositories.home()
        return Verifier(self._context.facts, known, workspace=self.reader.root, home=home, options=options, reuse=reuse)

    # Checking.

    def verify(
        self,
        files: Sequence[str] = (),
        *,
        repository: Path | None = None,
        changed: bool = False,
        online: bool = False,
        system: bool = True,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> list[CheckedMemory]:
        """Check memories against current code: the named files, else every card and document.

        `changed` gives only those whose verdicts may differ from the last check. A check of everything also notes the
        day's figures.
        """
        reader, facts = self.reader, self._context.facts
        at = self._context.now().timestamp()  # files written from here on are newer than what is read below
        root = str(repository) if repository is not None else ""
        checkouts = cache(self._workspace.repositories.checkouts)
        # Loaded only if something has to be checked.
        verifier = cache(lambda: self._verifier(self._options(online=online, system=system), checkouts(), reuse=True))
        check = partial(self._check, verifier, root=root, at=at, changed=changed, online=online, progress=progress)
        if files:
            named = list(reader.files(files))
            own = [memory for memory, is_own in named if is_own]
            others = [memory for memory, is_own in named if not is_own]
            # Verdicts on files outside of memory are not stored.
            from_outside = iter(verifier().check(others, root=root, keep=False, progress=progress) if others else ())
            checked = {item.path: item for item in check(own)}
            found = (checked.get(memory.path) if is_own else next(from_outside) for memory, is_own in named)
            return [item for item in found if item is not None]
        memories = list(reader.memories())
        if root:
            return check(reader.about(memories, root, facts))
        results = check(memories)
        checkouts()  # adds the notices about same names, even if nothing had to be checked
        forget_others(facts, {memory.path for memory in memories})
        note_run(facts)
        self._prepare_warnings(results, memories, is_all=not changed)
        self._workspace.health.note_day()
        return results

    def _prepare_warnings(
        self, results: Sequence[CheckedMemory], memories: Sequence[MemoryText], *, is_all: bool
    ) -> None:
        """Prepare what the hook before edits and commands says about refuted memories."""
        from truekeep.workspace.tool_warning_file import has_verdicts, refresh_refuted  # here: hooks need only verdicts

        if not is_all and not has_verdicts(self._context):
            stored = (recall(self._context.facts, memory) for memory in memories)
            results = [item for item in stored if item is not None]
        refresh_refuted(self._context, results, {memory.path: memory for memory in memories})

    def _options(self, *, online: bool, system: bool) -> Options:
        """The options of a check that a person or the schedule asked for; no other one runs configured commands."""
        ask = self._context.config.verify.ask if system else {}
        return Options(online=online, system=system, ask={} if ask and self._is_config_shared() else ask)

    def _is_config_shared(self) -> bool:
        """Whether git tracks the configuration: then its commands may be somebody else's, and are not run."""
        home = self._workspace.repositories.home()
        if not home:
            return False
        path = os.path.relpath(os.path.join(os.path.realpath(self._context.path), STATE, "config.toml"), home)
        from truekeep.core.git import Git  # hooks need this module, and no processes

        try:
            return bool(Git(home).run("ls-files", "--", path))
        except GitFailed:
            return True  # git would know, and cannot say

    def _check(
        self,
        verifier: Callable[[], Verifier],
        memories: list[MemoryText],
        *,
        root: str,
        at: float,
        changed: bool,
        online: bool,
        progress: Callable[[str, int, int], None],
    ) -> list[CheckedMemory]:
        """Check memories of the workspace, or only those that `changed`."""
        keep = not root  # verdicts from a checkout that was named by hand are not stored
        facts = self._context.facts
        stored = ((memory, recall(facts, memory, root) if keep else None) for memory in memories)
        recalled = [(memory, item) for memory, item in stored if item is not None]
        known = {memory.path: item for memory, item in recalled if not item.checked_on}
        has_checkout = partial(_is_of_code, checkouts=cache(self._workspace.repositories.checkouts))
        of_host = {memory.path: item for memory, item in recalled if item.checked_on and not has_checkout(memory)}
        memories = [memory for memory in memories if not (changed and memory.path in of_host)]
        with_links = {memory.path for memory in memories if "://" in memory.text}
        if changed:
            same = {path for path, item in known.items() if item.is_settled or verifier().still_holds(item)}
            memories = [memory for memory in memories if memory.path not in same]
            self._renew({path: known[path] for path in same}, at)
            known = {}
        # Settled verdicts rest on unchanged evidence, others on a checkout in which nothing changed.
        settled = {
            path: item
            for path, item in known.items()
            if (item.is_settled or (item.is_answered and verifier().still_holds(item)))
            and not (online and path in with_links)
        }
        self._renew(settled, at)
        settled |= of_host
        asked = [memory for memory in memories if memory.path not in settled]
        fresh = verifier().check(asked, root=root, keep=keep, progress=progress) if asked else []
        found = {item.path: item for item in (*settled.values(), *fresh)}
        return [found[memory.path] for memory in memories]

    def _renew(self, known: Mapping[str, CheckedMemory], at: float) -> None:
        """Store that verdicts still hold: once a day, and when a memory was written again with the same text."""
        written = {path: modified_at(str(self._context.path / path)) for path in known}
        rewritten = [path for path, item in known.items() if item.checked_at < written[path] <= at]
        renew(self._context.facts, known, at, rewritten)

    def verify_text(self, text: str, *, repository: Path | None = None, online: bool = False) -> CheckedMemory:
        """Check any text against current code; nothing is stored."""
        verifier = self._verifier(Options(online=online, is_current=True))
        root = str(repository) if repository else ""
        (checked,) = verifier.check([text_memory("", text)], root=root, keep=False)
        return checked

    @property
    def _can_tell(self) -> bool:
        """True if there are checkouts here, or verdicts of the host."""
        return self._context.has_checkouts or self._workspace.source is not None

    def check(self, path: str, *, budget: float = 0.0) -> CheckedMemory | str:
        """The verdicts on one memory, stored or found within the budget; a text that says why there are none."""
        if not self._can_tell:
            return "no checkout of any repository is configured here"
        found = self._known([path], budget).get(path)
        return found if found is not None else "nothing to check it against: no checkout here is of its repository"

    def last_checked(self, path: str) -> CheckedMemory | None:
        """The stored verdicts on one memory, if their evidence did not change."""
        found = self._known([path], 0.0).get(path) if self._can_tell else None
        return None if isinstance(found, str) else found

    def _known(self, paths: Sequence[str], budget: float) -> dict[str, CheckedMemory | str]:
        """The verdicts on these memories, stored or found within the budget; a text for those without."""
        found: dict[str, CheckedMemory | str] = {}
        missing = []
        is_copy = self._workspace.source is not None  # the host's verdicts are stored, for what has no checkout here
        look = cache(quick_stamp)
        checkouts = cache(self._workspace.repositories.checkouts)
        for memory in self.reader.read_all(paths):
            is_of_code = _is_of_code(memory, checkouts)
            is_stored = is_of_code or is_copy or not _repositories(memory)
            stored = recall(self._context.facts, memory, look=look) if is_stored else None
            if stored is not None and (stored.roots or stored.checked_on):
                found[memory.path] = stored
            if is_of_code and (stored is None or not stored.roots):
                # What is about the workspace itself is checked by `verify`, which reads all of it.
                missing.append(memory)
                found.setdefault(memory.path, "not checked yet")
        if missing and budget > 0:
            options = Options(system=False, deadline=time.monotonic() + budget, deleting=False)
            for item in self._verifier(options, checkouts()).check(missing, keep=False):
                is_asked = item.roots or not item.problems  # nothing to ask is an answer, too
                if is_asked and not any(verdict.reason == "out-of-time" for verdict in item.verdicts):
                    found[item.path] = item
        return found

    # Verdicts for readers.

    def with_verdicts(self, hits: Sequence[Hit], *, patient: bool = False, budget: float | None = None) -> list[Hit]:
        """Search hits with their verdicts, found within the configured budget, or within a minute if `patient`.

        Refuted hits come last.
        """
        allowed = self._budget if budget is None else budget
        paths = [hit.path for hit in hits if hit.store != "transcripts"]
        known = self._known(paths, PATIENT_BUDGET if patient else allowed)
        checked = []
        for hit in hits:
            verdicts, checked_at, unchecked = _on_lines(known.get(hit.path), hit.first, hit.last)
            checked.append(hit._replace(verdicts=verdicts, checked_at=checked_at, unchecked=unchecked))
        return sorted(checked, key=lambda hit: -hit.score * (REFUTED_SHARE if _is_refuted(hit) else 1))

    def add_verdicts(self, excerpt: Excerpt) -> Excerpt:
        """An excerpt with the verdicts on its lines."""
        known = self._known([excerpt.path], self._budget).get(excerpt.path)
        verdicts, checked_at, unchecked = _on_lines(known, excerpt.first, excerpt.last)
        return excerpt._replace(verdicts=verdicts, checked_at=checked_at, unchecked=unchecked)

    def summaries(self, paths: Sequence[str], budget: float) -> Say:
        """A function that gives, for each of these cards, its verdicts in a few words, and whether it is refuted."""
        if not self._context.shows_verdicts:
            return lambda *_: ("", False)
        known = self._known(paths, budget)
        return lambda path, _: in_words(known[path]) if path in known else ("", False)

    def resolve(self, topic: str, *, limit: int = 10) -> Resolution:
        """Everything that memory says about a topic, in trust order, with the winner and the reason."""
        hits: Sequence[Hit] = self._workspace.search.find(topic, limit=limit).hits
        if hits and self._context.shows_verdicts:
            hits = self.with_verdicts(hits, patient=True)
        return resolve(topic, hits, self._verify_topic(topic, hits), list(self._instructed_otherwise(hits)))

    def _instructed_otherwise(self, hits: Sequence[Hit]) -> Iterator[InstructedOtherwise]:
        """The instructions that say the opposite of a hit: of its repository, else of the user."""
        from truekeep.memory.opposite_rules import find_opposites, find_rules
        from truekeep.memory.values import agree, find_values
        from truekeep.workspace.repository_instructions import USER, RepositoryInstructions

        instructions = RepositoryInstructions(self._workspace)
        for hit in hits:
            if hit.store == "transcripts":
                continue
            names = (hit.repository, USER) if hit.repository else (USER,)
            given = [item for name in names for item in instructions.rules(name)]
            files = {id(rule): file for file, rule in given}
            for rule, _ in find_opposites([rule for _, rule in given], find_rules(hit.text)):
                yield InstructedOtherwise(hit.path, f"{files[id(rule)]}:{rule.line}", rule.text)
            values = find_values(hit.text, repository=hit.repository)
            for name in names:
                for said in instructions.values(name):
                    kind, subject, value = said.value[:3]
                    if any(
                        (item.kind, item.subject) == (kind, subject) and not agree(kind, item.value, value)
                        for item in values
                    ):
                        citation = f"{said.path}:{said.value.line}"
                        yield InstructedOtherwise(hit.path, citation, f"{subject} {kind} {value}")

    def _verify_topic(self, topic: str, hits: Sequence[Hit]) -> list[Verdict]:
        """Verdicts on the words of a topic, in the repositories that the hits are about."""
        names = dict.fromkeys(hit.repository for hit in hits if hit.repository)
        words = " ".join(f"`{word}`" for word in topic.split())
        found: dict[str, Verdict] = {}
        for repository in list(names)[:MAX_REPOSITORIES_ASKED]:
            memory = MemoryText("", f"{words}\n\n{topic}\n", LineOrigin(repository))
            (checked,) = self._verifier().check([memory], keep=False)
            for verdict in checked.verdicts:
                if verdict.verdict != UNVERIFIABLE and verdict.claim.kind != "decision":
                    found.setdefault(verdict.claim.name, verdict)
        return list(found.values())

    @property
    def _budget(self) -> float:
        return self._context.config.verify.budget_ms / 1000

    # Repair.

    def repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool = False) -> tuple[list[Repair], list[str]]:
        """Write new places into memories whose claims moved, and draft what to do about claims that are gone.

        Gives the planned repairs, and messages about what was done and left.
        """
        with self._context.writing("repair memory"):
            return self._repair(checked, dry_run=dry_run)

    def _repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool) -> tuple[list[Repair], list[str]]:
        from truekeep.maintenance.repair import MemoryRepairs, rejected_on, repaired_spans

        context = self._context
        verifier = self._verifier(reuse=True)
        mending = MemoryRepairs(self.reader, context.facts, verifier, now=context.now())
        waiting = mending.waiting(context.vault)
        repairs, left = [], list[str]()
        for item in checked:
            if not item.path or is_outside(item.path) or not any(verdict.is_rot for verdict in item.verdicts):
                continue
            try:
                stored = context.vault.read(item.path)
            except (UnsafePath, ChangedSince, OSError) as error:
                left.append(f"{item.path}: left alone ({error})")
                continue
            memory = self.reader.read(str(context.path / item.path), item.path)
            if stored is None or memory is None or digest_text(memory.text) != item.digest:
                left.append(f"{item.path}: edited since it was checked, so it was left alone; run it again")
                continue
            repairs.append(
                mending.plan(
                    memory,
                    item,
                    stored.data,
                    waiting=waiting.get(item.path),
                    repaired_before=repaired_spans(context, memory) if item.count(GONE) else [],
                    rejected=lambda draft: rejected_on(draft, context.ledger),
                )
            )
        done = [] if dry_run else mending.apply(repairs, context.transaction, actor=person())
        return repairs, [*done, *left]


def _origins(workspace: Workspace) -> OriginReader:
    """Where the origins of lines are read: the ledger, or in a copy what the host published."""
    if workspace.source is None:
        return LineOrigins(workspace.context)
    return PublishedOrigins(str(workspace.path / STATE / "known-origins.json"))


def _repositories(memory: MemoryText) -> set[str]:
    return {memory.origin.repository, *(origin.repository for origin in memory.lines)} - {""}


def _is_of_code(memory: MemoryText, checkouts: Callable[[], list[Checkout]]) -> bool:
    """True if there is a checkout here of a repository that the memory names."""
    return any(choose_checkout(name, checkouts()) is not None for name in _repositories(memory))


def _is_refuted(hit: Hit) -> bool:
    return any(verdict.is_rot for verdict in hit.verdicts)


def _on_lines(checked: CheckedMemory | str | None, first: int, last: int) -> tuple[tuple[Verdict, ...], str, str]:
    """The verdicts on some lines, the time of the check, and why there are none."""
    if checked is None or isinstance(checked, str):
        return (), "", checked or ""
    inside = tuple(item for item in checked.verdicts if first <= item.claim.line <= last)
    return inside, as_stamp(datetime.fromtimestamp(checked.checked_at, UTC)), ""
