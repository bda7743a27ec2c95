"""The desk of inspection: memories held against the code of the checkouts here, and repaired where that is sure.

Knows what `truth` cannot know by itself: where the checkouts are, which handoff each line goes back to, and of which
day a card is that was repaired since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadSetup, NotFound
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import CARDS
from truekeep.core.state_dir import STATE
from truekeep.memory.card import parse_card
from truekeep.text.encoding import decode_text
from truekeep.verify.checkouts import choose_checkout, expand_repositories, is_of_workspace
from truekeep.verify.results import (
    CheckedMemory,
    LineOrigin,
    MemoryText,
    digest_text,
    forget_others,
    modified_at,
    note_run,
    recall,
    renew,
)
from truekeep.verify.service import Holder, Truth, end_of_day, is_outside, text_memory
from truekeep.verify.verdict import GONE

if TYPE_CHECKING:
    from truekeep.maintenance.repair import Repair
    from truekeep.memory.card import Card
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.searcher import Hit
    from truekeep.verify.cache import FactsCache
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.match_repositories import AssignmentOutcome, Match
    from truekeep.verify.options import Options
    from truekeep.verify.resolve import Resolution
    from truekeep.verify.verifier import Verifier
    from truekeep.workspace.context import WorkspaceContext

_PATIENT = 60.0  # seconds that a check may take where its answer is relied upon


class Inspection:
    """What code says to the memories of one workspace."""

    def __init__(self, rooms: WorkspaceContext) -> None:
        self._rooms = rooms
        self._holder: Holder | None = None

    def truth(self, options: Options | None = None) -> Truth:
        """The claims of the workspace, as of now."""
        return Truth(
            str(self._rooms.path),
            self._rooms.facts,
            self.folders,
            now=self._rooms.now(),
            options=options,
            origins=self._line_origins,
            since_when=self._since_when,
            believe=self._believe,
        )

    def _believe(self, found: list[Checkout]) -> list[Checkout]:
        """The checkouts, without those that borrow the name of another; that they do is told once."""
        names = [name.lower() for item in found for name in item.names[:-1]]
        if len(set(names)) == len(names):
            return found
        from truekeep.verify.same_name_checkouts import believed, first_checkout

        def first(name: str) -> Path | None:
            try:
                return first_checkout(rooms.ledger, name, rooms.machine.name, rooms.config.writers)
            except BadSetup:
                return None  # a damaged ledger is for the next ingest

        rooms = self._rooms
        kept, told = believed(found, first, rooms.facts)
        rooms.notices += [notice for notice in told if notice not in rooms.notices]
        return kept

    # Verify and repair.

    def verify(
        self,
        files: Sequence[str],
        *,
        repository: Path | None,
        changed: bool,
        online: bool,
        system: bool,
        tell: Callable[[str, int, int], None],
    ) -> list[CheckedMemory]:
        """Hold memories against current code: the named files, else every card and document."""
        from truekeep.verify.options import Options

        truth = self.truth(Options(online=online, system=system))
        at = self._rooms.now().timestamp()  # what is written from here on is not what is read below
        root = str(repository) if repository is not None else ""
        verifier = cache(lambda: truth.verifier(reuse=True))  # not loaded while all is settled
        hold = partial(self._hold, truth, verifier, root=root, at=at, changed=changed, tell=tell)
        if files:
            named = list(truth.files(files))
            own = [memory for memory, is_own in named if is_own]
            others = [memory for memory, is_own in named if not is_own]
            # What is no memory of this workspace leaves nothing behind: nobody would ever look at it again.
            from_outside = iter(verifier().check(others, root=root, keep=False, tell=tell) if others else ())
            checked = {item.path: item for item in hold(own)}
            found = (checked.get(memory.path) if is_own else next(from_outside) for memory, is_own in named)
            return [item for item in found if item is not None]
        memories = list(truth.memories())
        if root:
            return hold(truth.about(memories, root))
        results = hold(memories)
        _ = truth.checkouts  # two that claim one name are told of, also where nothing had to be checked anew
        forget_others(truth.store, {memory.path for memory in memories})
        note_run(truth.store)
        return results

    def _hold(
        self,
        truth: Truth,
        verifier: Callable[[], Verifier],
        memories: list[MemoryText],
        *,
        root: str,
        at: float,
        changed: bool,
        tell: Callable[[str, int, int], None],
    ) -> list[CheckedMemory]:
        """Hold memories of the workspace against current code, or only those that `changed`."""
        keep = not root  # a checkout that was named by hand says nothing lasting about memory that belongs to another
        recalled = ((memory.path, recall(truth.store, memory, root) if keep else None) for memory in memories)
        known = {path: item for path, item in recalled if item is not None}
        if changed:
            same = {path for path, item in known.items() if item.is_settled or verifier().still_holds(item)}
            memories = [memory for memory in memories if memory.path not in same]
            self._renew(truth.store, {path: known[path] for path in same}, at)
            known = {}
        # What rests on evidence that is still the same holds without asking again; what was not found is looked for.
        settled = {path: item for path, item in known.items() if item.is_settled}
        asked = [memory for memory in memories if memory.path not in settled]
        self._renew(truth.store, settled, at)
        fresh = verifier().check(asked, root=root, keep=keep, tell=tell) if asked else []
        found = {item.path: item for item in (*settled.values(), *fresh)}
        return [found[memory.path] for memory in memories]

    def _renew(self, store: FactsCache, known: Mapping[str, CheckedMemory], at: float) -> None:
        """Note that verdicts still hold: once a day, and where a memory was written since and says the same again."""
        written = {path: modified_at(str(self._rooms.path / path)) for path in known}
        renew(store, known, at, [path for path, item in known.items() if item.checked_at < written[path] <= at])

    def verify_text(self, text: str, *, repository: Path | None, online: bool) -> CheckedMemory:
        """Hold any text against current code; nothing of it is kept."""
        from truekeep.verify.options import Options

        truth = self.truth(Options(online=online, is_current=True))
        root = str(repository) if repository else ""
        (checked,) = truth.verifier().check([text_memory("", text)], root=root, keep=False)
        return checked

    def repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool) -> tuple[list[Repair], list[str]]:
        """Write what moved, and propose to drop what is gone. Whoever calls has the lock."""
        from truekeep.maintenance.repair import Mending, rejected_on

        rooms, truth = self._rooms, self.truth()
        mending = Mending(truth)
        waiting = mending.waiting(rooms.vault)
        repairs, left = [], list[str]()
        for item in checked:
            if not any(verdict.is_rot for verdict in item.verdicts):
                continue
            if not item.path or is_outside(item.path):
                continue
            try:
                stored = rooms.vault.read(item.path)
            except (UnsafePath, ChangedSince, OSError) as error:
                left.append(f"{item.path}: left alone ({error})")
                continue
            memory = truth.read(str(rooms.path / item.path), item.path)
            if stored is not None and memory is not None and digest_text(memory.text) == item.digest:
                spans = self._repaired_spans(memory) if item.count(GONE) else []
                repairs.append(
                    mending.plan(
                        memory,
                        item,
                        stored.data,
                        waiting=waiting.get(item.path),
                        repaired_before=spans,
                        rejected=lambda draft: rejected_on(draft, rooms.ledger),
                    )
                )
            else:
                left.append(f"{item.path}: edited since it was checked, so it was left alone; run it again")
        done = [] if dry_run else mending.apply(repairs, rooms.books, actor=person())
        return repairs, [*done, *left]

    # What is known, for whoever recalls.

    def with_verdicts(self, hits: Sequence[Hit], *, patient: bool = False, budget: float | None = None) -> list[Hit]:
        """Hits with what code says to them, in the time that the configuration allows, or as long as it takes."""
        allowed = self._budget if budget is None else budget
        return self.truth().verdicts(hits, budget=_PATIENT if patient else allowed)

    def told(self, excerpt: Excerpt) -> Excerpt:
        """An excerpt with what code says to its lines."""
        told = self.truth().told(excerpt.path, excerpt.first, excerpt.last, budget=self._budget)
        return excerpt._replace(verdicts=told[0], checked_at=told[1], unchecked=told[2])

    def resolve(self, topic: str, hits: Sequence[Hit]) -> Resolution:
        """What memory says about one thing, in trust order. An answer to rely on may take its time."""
        from truekeep.verify.resolve import resolve

        held = self.with_verdicts(hits, patient=True) if hits and self._rooms.tells_verdicts else hits
        return resolve(topic, held, self.truth().code_says(topic, held))

    def known(self, paths: Sequence[str], budget: float) -> dict[str, CheckedMemory | str]:
        """What is known of these memories, or can be found in so many seconds; a text for what could not."""
        return self.truth().checked(paths, budget)

    @property
    def _budget(self) -> float:
        return self._rooms.config.verify.budget_ms / 1000

    def hold(self, content: str, day: date, root: Path | None, name: str) -> tuple[str, list[tuple[str, str]]]:
        """Hold a handoff's content against its repository; one holder serves a whole run."""
        if self._holder is None or self._holder.truth.store is not self._rooms.facts:  # the rooms were closed meanwhile
            self._holder = Holder(self.truth())
        return self._holder.hold(content, day, root, name)

    # Checkouts.

    def folders(self) -> list[Path]:
        """The folders that may hold checkouts."""
        return expand_repositories((*self._rooms.config.verify.checkouts, *self._rooms.config.repositories))

    def same_names(self) -> tuple[str, ...]:
        """What is to be said of checkouts that claim one name, without writing anything."""
        from truekeep.verify.same_name_checkouts import find_same_names

        rooms = self._rooms
        state, writers = str(rooms.path / STATE), rooms.config.writers
        return find_same_names(self.folders(), state=state, machine=rooms.machine.name, writers=writers)

    def count_checkouts(self, cards: Iterator[Card]) -> tuple[list[tuple[Checkout, int]], dict[str, int]]:
        """The checkouts here, each with the number of cards that belong to it; and repositories that none holds."""
        known = self.truth().checkouts
        counts: dict[str, int] = {}
        missing: dict[str, int] = {}
        for card in cards:
            chosen = choose_checkout(card.repository, known)
            if chosen is not None:
                counts[chosen.root] = counts.get(chosen.root, 0) + 1
            elif card.repository and not is_of_workspace(card.repository, str(self._rooms.path)):
                missing[card.repository] = missing.get(card.repository, 0) + 1
        return [(item, counts.get(item.root, 0)) for item in known], missing

    def match(self, files: Sequence[str], *, tell: Callable[[str, int, int], None]) -> tuple[list[Match], list[str]]:
        """Which repositories the cards are about that name none; and what was left out of it, and why."""
        from truekeep.verify.match_repositories import Matching

        truth = self.truth()
        memories = list(dict.fromkeys(memory for memory, _ in truth.files(files))) if files else truth.cards()
        homeless, left = [], list[str]()
        for memory in memories:
            if not memory.path.startswith(f"{CARDS}/"):
                left.append(f"{memory.path}: not a card; only a card's frontmatter names its repository")
            elif name := memory.origin.repository or parse_card(memory.path.rpartition("/")[2], memory.text).repository:
                left += [f"{memory.path}: it says already that it is about {name}"] if files else []
            else:
                homeless.append(memory)
        found, unread = Matching(truth).find(homeless, tell=tell)
        return found, [*left, *unread]

    def assign(self, matches: Sequence[Match]) -> list[AssignmentOutcome]:
        """Write what was matched into the cards. Whoever calls has the lock."""
        from truekeep.verify.match_repositories import Matching

        return Matching(self.truth()).write(matches, self._rooms.books, actor=person())

    # Of which day a memory is.

    def _since_when(self, memories: Sequence[MemoryText]) -> list[MemoryText]:
        """A card that was repaired says what it says since before; only the repaired lines are of the repair's day.

        Somebody who writes it anew gives it another day, and then that one counts.
        """
        paths = [memory.path for memory in memories if memory.path.startswith(f"{CARDS}/")]
        repairs = self._rooms.ledger.last_repairs(paths) if paths else {}
        return [self._before_repair(item, *repairs[item.path]) if item.path in repairs else item for item in memories]

    def _before_repair(self, memory: MemoryText, number: int, note: str) -> MemoryText:
        from truekeep.maintenance.repair import parse_repair

        days = parse_repair(note)
        if days is None or end_of_day(days[1]) != memory.origin.written_at:
            return memory
        facts = self._rooms.facts
        key = f"repaired {memory.path} {number} {digest_text(memory.text)}"
        marks = facts.answer(key)
        if marks is None:
            lines = self._rooms.history.lines(memory.path)
            marks = "".join("r" if line.entry is not None and line.entry.verb == "repaired" else "-" for line in lines)
            facts.remember(key, marks)
        before = LineOrigin(memory.origin.repository, end_of_day(days[0]))
        return memory._replace(origin=before, lines=tuple(memory.origin if mark == "r" else before for mark in marks))

    def _repaired_spans(self, memory: MemoryText) -> list[tuple[int, int]]:
        """The words of a card that an earlier repair wrote, as far as nobody changed their lines since."""
        from truekeep.verify.text_edits import changed_words

        if not memory.path.startswith(f"{CARDS}/") or not self._rooms.ledger.last_repairs([memory.path]):
            return []
        starts = [0, *accumulate(len(line) + 1 for line in memory.text.split("\n"))]
        spans: list[tuple[int, int]] = []
        before: dict[int, dict[str, str]] = {}  # by repair: each line as it left it, and as it was
        for line in self._rooms.history.lines(memory.path):
            if line.entry is None or line.entry.verb != "repaired" or line.number >= len(starts):
                continue
            if line.entry.id not in before:
                around = self._rooms.ledger.around(line.entry.id, memory.path) or (None, None)
                old, new = ((decode_text(data or b"") or "").split("\n") for data in around)
                # From the end: a day may be new at the top.
                before[line.entry.id] = dict(zip(reversed(new), reversed(old), strict=False))
            if (old_text := before[line.entry.id].get(line.text)) is not None:
                first = starts[line.number - 1]
                spans += [(first + start, first + end) for start, end in changed_words(old_text, line.text)]
        return spans

    def _line_origins(self, path: str) -> tuple[LineOrigin, ...]:
        """For each line of a document, the repository of the handoff that it goes back to, and its day.

        A line that was repaired since is of the day of the repair: its places are those of that day.
        """
        try:
            lines = self._rooms.history.lines(path)
        except (NotFound, UnsafePath):
            return ()
        found = []
        for line in lines:
            if line.source is None or not line.source.received_at:
                found.append(LineOrigin())
                continue
            at = line.source.received_at if line.record is not None or line.entry is None else line.entry.at
            found.append(LineOrigin(line.source.origin.repository, end_of_day(date.fromisoformat(at[:10]))))
        return tuple(found)
