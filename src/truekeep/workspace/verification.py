"""Checks memory against the current code of the checkouts here, and repairs what moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.verify.options import Options
from truekeep.verify.results import (
    CheckedMemory,
    MemoryText,
    digest_text,
    forget_others,
    modified_at,
    note_run,
    recall,
    renew,
)
from truekeep.verify.service import Holder, Truth, is_outside, text_memory
from truekeep.verify.verdict import GONE
from truekeep.workspace.briefing import in_words
from truekeep.workspace.line_origins import LineOrigins

if TYPE_CHECKING:
    from truekeep.maintenance.repair import Repair
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.searcher import Hit
    from truekeep.verify.cache import FactsCache
    from truekeep.verify.resolve import Resolution
    from truekeep.verify.verifier import Verifier
    from truekeep.workspace.briefing import Say
    from truekeep.workspace.workspace import Workspace

_PATIENT_BUDGET = 60.0  # seconds for checks whose answer is relied upon


class Verification:
    """Verdicts on the memory of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context
        self._origins = LineOrigins(workspace.context)
        self._holder: Holder | None = None

    def truth(self, options: Options | None = None) -> Truth:
        """The claims of the workspace, as of now."""
        return Truth(
            str(self._context.path),
            self._context.facts,
            self._workspace.repositories.folders,
            now=self._context.now(),
            options=options,
            origins=self._origins.of_document,
            since_when=self._origins.before_repairs,
            believe=self._workspace.repositories.without_same_names,
        )

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
        truth = self.truth(Options(online=online, system=system))
        at = self._context.now().timestamp()  # files written from here on are newer than what is read below
        root = str(repository) if repository is not None else ""
        verifier = cache(lambda: truth.verifier(reuse=True))  # loaded only if something has to be checked
        check = partial(self._check, truth, verifier, root=root, at=at, changed=changed, progress=progress)
        if files:
            named = list(truth.files(files))
            own = [memory for memory, is_own in named if is_own]
            others = [memory for memory, is_own in named if not is_own]
            # Verdicts on files outside of memory are not stored.
            from_outside = iter(verifier().check(others, root=root, keep=False, tell=progress) if others else ())
            checked = {item.path: item for item in check(own)}
            found = (checked.get(memory.path) if is_own else next(from_outside) for memory, is_own in named)
            return [item for item in found if item is not None]
        memories = list(truth.memories())
        if root:
            return check(truth.about(memories, root))
        results = check(memories)
        _ = truth.checkouts  # finding them adds the notices about same names, even if nothing had to be checked
        forget_others(truth.store, {memory.path for memory in memories})
        note_run(truth.store)
        self._workspace.health.note_day()
        return results

    def _check(
        self,
        truth: Truth,
        verifier: Callable[[], Verifier],
        memories: list[MemoryText],
        *,
        root: str,
        at: float,
        changed: bool,
        progress: Callable[[str, int, int], None],
    ) -> list[CheckedMemory]:
        """Check memories of the workspace, or only those that `changed`."""
        keep = not root  # verdicts from a checkout that was named by hand are not stored
        recalled = ((memory.path, recall(truth.store, memory, root) if keep else None) for memory in memories)
        known = {path: item for path, item in recalled if item is not None}
        if changed:
            same = {path for path, item in known.items() if item.is_settled or verifier().still_holds(item)}
            memories = [memory for memory in memories if memory.path not in same]
            self._renew(truth.store, {path: known[path] for path in same}, at)
            known = {}
        # Settled verdicts rest on unchanged evidence; everything else is checked.
        settled = {path: item for path, item in known.items() if item.is_settled}
        asked = [memory for memory in memories if memory.path not in settled]
        self._renew(truth.store, settled, at)
        fresh = verifier().check(asked, root=root, keep=keep, tell=progress) if asked else []
        found = {item.path: item for item in (*settled.values(), *fresh)}
        return [found[memory.path] for memory in memories]

    def _renew(self, store: FactsCache, known: Mapping[str, CheckedMemory], at: float) -> None:
        """Store that verdicts still hold: once a day, and when a memory was written again with the same text."""
        written = {path: modified_at(str(self._context.path / path)) for path in known}
        renew(store, known, at, [path for path, item in known.items() if item.checked_at < written[path] <= at])

    def verify_text(self, text: str, *, repository: Path | None = None, online: bool = False) -> CheckedMemory:
        """Check any text against current code; nothing is stored."""
        truth = self.truth(Options(online=online, is_current=True))
        root = str(repository) if repository else ""
        (checked,) = truth.verifier().check([text_memory("", text)], root=root, keep=False)
        return checked

    def check(self, path: str, *, budget: float = 0.0) -> CheckedMemory | str:
        """The verdicts on one memory, stored or found within the budget; a text that says why there are none."""
        if not self._context.has_checkouts:
            return "no checkout of any repository is configured here"
        found = self._known([path], budget).get(path)
        return found if found is not None else "nothing to check it against: no checkout here is of its repository"

    def last_checked(self, path: str) -> CheckedMemory | None:
        """The stored verdicts on one memory, if their evidence did not change."""
        found = self._known([path], 0.0).get(path) if self._context.has_checkouts else None
        return None if isinstance(found, str) else found

    def _known(self, paths: Sequence[str], budget: float) -> dict[str, CheckedMemory | str]:
        return self.truth().checked(paths, budget)

    # Verdicts for readers.

    def with_verdicts(self, hits: Sequence[Hit], *, patient: bool = False, budget: float | None = None) -> list[Hit]:
        """Search hits with their verdicts, found within the configured budget, or within a minute if `patient`."""
        allowed = self._budget if budget is None else budget
        return self.truth().verdicts(hits, budget=_PATIENT_BUDGET if patient else allowed)

    def add_verdicts(self, excerpt: Excerpt) -> Excerpt:
        """An excerpt with the verdicts on its lines."""
        verdicts, checked_at, unchecked = self.truth().told(
            excerpt.path, excerpt.first, excerpt.last, budget=self._budget
        )
        return excerpt._replace(verdicts=verdicts, checked_at=checked_at, unchecked=unchecked)

    def summaries(self, paths: Sequence[str], budget: float) -> Say:
        """A function that gives, for each of these cards, its verdicts in a few words, and whether it is refuted."""
        if not self._context.shows_verdicts:
            return lambda *_: ("", False)
        known = self._known(paths, budget)
        return lambda path, _: in_words(known[path]) if path in known else ("", False)

    def resolve(self, topic: str, *, limit: int = 10) -> Resolution:
        """Everything that memory says about a topic, in trust order, with the winner and the reason."""
        from truekeep.verify.resolve import resolve

        hits: Sequence[Hit] = self._workspace.search.find(topic, limit=limit).hits
        if hits and self._context.shows_verdicts:
            hits = self.with_verdicts(hits, patient=True)
        return resolve(topic, hits, self.truth().code_says(topic, hits))

    @property
    def _budget(self) -> float:
        return self._context.config.verify.budget_ms / 1000

    def hold(self, content: str, day: date, root: Path | None, name: str) -> tuple[str, list[tuple[str, str]]]:
        """Check a handoff's content against its repository; one holder serves a whole run."""
        if self._holder is None or self._holder.truth.store is not self._context.facts:  # the context was closed since
            self._holder = Holder(self.truth())
        return self._holder.hold(content, day, root, name)

    # Repair.

    def repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool = False) -> tuple[list[Repair], list[str]]:
        """Write new places into memories whose claims moved, and draft what to do about claims that are gone.

        Gives the planned repairs, and messages about what was done and left.
        """
        with self._context.writing("repair memory"):
            return self._repair(checked, dry_run=dry_run)

    def _repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool) -> tuple[list[Repair], list[str]]:
        from truekeep.maintenance.repair import Mending, rejected_on

        context, truth = self._context, self.truth()
        mending = Mending(truth)
        waiting = mending.waiting(context.vault)
        repairs, left = [], list[str]()
        for item in checked:
            if not any(verdict.is_rot for verdict in item.verdicts):
                continue
            if not item.path or is_outside(item.path):
                continue
            try:
                stored = context.vault.read(item.path)
            except (UnsafePath, ChangedSince, OSError) as error:
                left.append(f"{item.path}: left alone ({error})")
                continue
            memory = truth.read(str(context.path / item.path), item.path)
            if stored is not None and memory is not None and digest_text(memory.text) == item.digest:
                spans = self._origins.repaired_spans(memory) if item.count(GONE) else []
                repairs.append(
                    mending.plan(
                        memory,
                        item,
                        stored.data,
                        waiting=waiting.get(item.path),
                        repaired_before=spans,
                        rejected=lambda draft: rejected_on(draft, context.ledger),
                    )
                )
            else:
                left.append(f"{item.path}: edited since it was checked, so it was left alone; run it again")
        done = [] if dry_run else mending.apply(repairs, context.transaction, actor=person())
        return repairs, [*done, *left]
