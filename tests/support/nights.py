"""The nights of a made-up year: upkeep as the scheduled job does it, held against what was planted; and the mornings.

What was planted in a day must be found in its night, and what is found must have been planted. Whatever a card ever
said is followed line by line, and each line that is gone must have gone on a person's word, by a merge that kept it, or
by a repair that replaced exactly its value.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.support.helpers import a_handoff, tree
from tests.support.year import CARDS, MACHINES, Plant, Year, keys_of
from truekeep.core.errors import EditedSince, InvalidHandoff
from truekeep.integrations.schedule.run import plan_steps
from truekeep.maintenance.decay import DecayReport
from truekeep.maintenance.reconcile import Disagreement
from truekeep.memory.ledger import Ledger, base_of, spliced
from truekeep.memory.transaction import MemoryTransaction
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.maintenance import TidyReport
from truekeep.workspace.reconciliation import ReconcileReport
from truekeep.workspace.workspace import Workspace

DOUBLES = ("same-topic", "reordered", "reworded", "extended")
KEPT_DAYS = {"potential": 30, "contextual": 7}
SETTLED = 20_000_000  # nanoseconds; a made-up day is over before files would be taken as settled


class Night(NamedTuple):
    """What upkeep said and did in one night."""

    decay: DecayReport
    doubles: TidyReport
    promoted: TidyReport
    unattended: TidyReport  # what the timer would promote
    reconciled: ReconcileReport


class Nights:
    """Every night and morning of a year. `planted`, `found` and `false` count; `missed` and `falsely` tell."""

    def __init__(self, year: Year, tell: Callable[[str], None] = lambda _: None) -> None:
        self.year, self.tell = year, tell
        self.planted: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.missed: list[str] = []  # not found, or lost
        self.falsely: list[str] = []  # found, and not there
        self.decided: Counter[str] = Counter()
        self.turned_down: dict[str, str] = {}  # id of a draft → who made it
        self.left: set[str] = set()  # entries that left search
        self._told: set[str] = set()

    def live(self) -> None:
        """The whole year."""
        with patch("truekeep.memory.file_scan.CLOCK_TICK_NS", SETTLED):
            days = self.year.days()
            self.year.begin()
            for number, day in enumerate(days):
                self.year.live(day, (number + 1) / len(days))
                is_last = number == len(days) - 1
                if number % 7 == 5:
                    self._look_at_handoffs()
                self._night(twice=is_last or number % 6 == 3, undo=is_last or number % 20 == 13, busy=number % 9 == 4)
                self._morning()
                if number % 20 == 0 or is_last:
                    self.tell(f"{day}: {self.year.card_count()} cards, {sum(self.found.values())} found")
            self._last_night()

    @property
    def false_kinds(self) -> Counter[str]:
        return Counter(line.split(" ")[1].rstrip(":") for line in self.falsely)

    def _miss(self, what: str) -> None:
        self.missed.append(f"{self.year.day} {what}")

    # Before the night.

    def _look_at_handoffs(self) -> None:
        """A handoff that waits and would change a card is told before it is filed."""
        year = self.year
        wanted = {agent.repository: agent for agent in year.agents if agent.machine == MACHINES[0]}
        for path in year.random.sample(year.free(), len(year.free())):
            text = (year.workspace / path).read_text()
            repository = re.search(r"^repository: github\.com/acme/(\S+)$", text, re.MULTILINE)
            agent = wanted.get(repository[1]) if repository else None
            if agent is not None and path not in year.lines.edited:
                break
        else:
            return
        content = year.extended(text, year.statement())
        handoff = a_handoff(title="More of it", card=path.rpartition("/")[2], action="update-card", content=content)
        year.leave(agent, handoff)
        year.busy.add(path)
        self.planted["handoff-card"] += 1
        with year.opened() as workspace:
            found = workspace.maintenance.reconcile(code=False).found
        if any(item.rule == "handoff-card" and item.other == path and item.winner == "handoff" for item in found):
            self.found["handoff-card"] += 1
        else:
            self._miss(f"handoff-card: {path}")

    # The night.

    def _night(self, *, twice: bool, undo: bool, busy: bool) -> None:
        year = self.year
        year.lines.look()
        with year.opened() as workspace:
            workspace.handoffs.ingest()
        year.lines.look()
        year.take_names()
        before = tree(year.workspace) if undo else {}
        first = self._last_entry()
        with self._edits() if busy and not undo else nullcontext():
            night = self._upkeep()
        self._check_lines(year.lines.look(), first)
        self._check(night, is_busy=busy and not undo)
        year.tonight = []
        if busy and not undo:
            self._upkeep()  # what was left alone because somebody was faster
            self._check_lines(year.lines.look(), first)
        if twice:
            self._check_twice()
        if undo:
            self._check_undo(first, before)

    def _upkeep(self) -> Night:
        """As the scheduled job does it, in a workspace that was just opened."""
        with self.year.opened() as workspace:
            if any(plant.kind == "card-transcript" for plant in self.year.tonight):
                workspace.sessions.sync_transcripts()
            workspace.search.index()
            if any(plant.kind == "memory-code" for plant in self.year.tonight):
                workspace.verification.verify(changed=True, system=False)
            desk = workspace.maintenance
            return Night(
                desk.decay(by_hand=False),
                desk.duplicates(),
                desk.promote(),
                desk.nightly().promote(dry_run=True),
                desk.reconcile(fix=True, code=False, by_hand=False),
            )

    def _last_entry(self) -> int:
        with self.year.opened() as workspace:
            return next((entry.id for entry, _ in workspace.history.entries(limit=1)), 0)

    @contextmanager
    def _edits(self) -> Iterator[None]:
        """People edit what is about to be written in the very moment in which it is: their words have to stay."""
        year = self.year
        words = f"A person wrote this in the night of {year.day}."
        commit = MemoryTransaction.commit
        edited: set[str] = set()

        def watched(books: MemoryTransaction, staging: Any, *given: Any, **more: Any) -> Any:
            for path in staging.paths():
                if (path == "MEMORY.md" or path.startswith(CARDS)) and path not in edited and len(edited) < 3:
                    edited.add(path)
                    file = year.workspace / path
                    if file.is_file():
                        file.write_text(f"{file.read_text().rstrip()}\n\n{words}\n")
            return commit(books, staging, *given, **more)

        with patch.object(MemoryTransaction, "commit", watched):
            yield
        for path in edited:
            if words not in (year.workspace / path).read_text():
                self._miss(f"an edit of a person is gone from {path}")
        self.found["edits meanwhile"] += len(edited)
        self.planted["edits meanwhile"] += len(edited)

    def _last_night(self) -> None:
        """The job itself, with all of its steps: none fails, and when it is run a second time, nothing changes."""
        for number in range(2):
            before = tree(self.year.workspace)
            with self.year.opened() as workspace:
                for name, step in plan_steps(workspace, side_of(workspace), is_paused=False, now=self.year.now):
                    if problem := step().problem:
                        self._miss(f"the job's step {name}: {problem}")
            if number and (changed := _changed(before, tree(self.year.workspace))):
                self._miss(f"the job changed {changed[:5]}")

    # What was found.

    def _check(self, night: Night, *, is_busy: bool) -> None:
        for plant in self.year.tonight:
            self.planted[plant.kind] += 1
            if self._is_found(plant, night, is_busy=is_busy):
                self.found[plant.kind] += 1
            else:
                self._miss(f"{plant.kind}: {plant.about}")
        self._check_expiry(night.decay)
        for kind, what in self._unplanted(night):
            if what not in self._told:
                self._told.add(what)
                self.falsely.append(f"{self.year.day} {kind}: {what}")
        if not is_busy:
            self.falsely += [f"{self.year.day} problem: {problem}" for problem in night.reconciled.problems]

    def _is_found(self, plant: Plant, night: Night, *, is_busy: bool) -> bool:
        found = night.reconciled.found
        if plant.kind in DOUBLES:
            return any({double.one, double.other} == plant.paths for double in night.doubles.doubles)
        if plant.kind in ("two-values", "card-log"):
            return any(
                (item.rule, _places(item), item.winner) == (plant.kind, plant.paths, plant.winner) for item in found
            )
        if plant.kind in ("memory-instructions", "memory-code"):
            (path,) = plant.paths
            is_told = any(
                (item.rule, item.winner) == (plant.kind, plant.winner) and path in _places(item) for item in found
            )
            return is_told and (is_busy or any(path in done for done in night.reconciled.done))
        if plant.kind == "card-transcript":
            (path,) = plant.paths
            return any((item.rule, item.winner, _path_of(item.other)) == (plant.kind, "card", path) for item in found)
        if plant.kind.startswith("index-"):
            return any((item.rule, _card_of(item)) == (plant.kind, plant.about) for item in found)
        if plant.kind in ("structural", "repeated"):
            is_unattended = _is_promoted(plant, night.unattended)
            return _is_promoted(plant, night.promoted) and is_unattended == (plant.kind == "structural")
        if plant.kind == "already-instructed":
            return any(dict(item.idea.drops).keys() == plant.paths for item in night.doubles.offered)
        return any(problem.code == plant.kind and problem.path in plant.paths for problem in night.doubles.problems)

    def _unplanted(self, night: Night) -> Iterator[tuple[str, str]]:
        """What was found and is not there."""
        year = self.year
        for double in night.doubles.doubles:
            if frozenset((double.one, double.other)) not in year.doubled:
                yield "double", f"{double.why}: {double.one} {double.other}"
        for offer in night.promoted.offered:
            if not any(plant.about in offer.idea.text for plant in year.lasting.values()):
                yield "promotion", offer.idea.text
        planted = {(plant.kind, plant.about) for plant in year.tonight} | year.standing
        mended = {plant.paths for plant in year.tonight if plant.kind in ("memory-instructions", "memory-code")}
        for found in night.reconciled.found:
            if found.rule.startswith("index-"):
                is_there = (found.rule, _card_of(found)) in planted
            elif found.rule == "two-values":
                is_there = _places(found) in year.open
            elif found.rule == "card-transcript":
                is_there = _path_of(found.other) in year.talked
            elif found.rule == "card-log":
                is_there = _places(found) in year.said
            else:
                is_there = frozenset((_path_of(found.place),)) in mended
            if not is_there:
                yield found.rule, f"{found.place}: {found.says} | {found.other}: {found.other_says}"

    def _check_expiry(self, decay: DecayReport) -> None:
        """Exactly what is due leaves, nothing that is structural, nothing without a tag."""
        year = self.year
        due = {
            entry.mark
            for entry in year.entries.values()
            if entry.tier in KEPT_DAYS and entry.day + timedelta(days=KEPT_DAYS[entry.tier]) <= year.day
        } - self.left
        leaving = set()
        for item in decay.leaving:
            lines = (year.workspace / item.path).read_text().split("\n")[item.first - 1 : item.last]
            marks = re.findall(r"zq\d+x", "\n".join(lines))
            if len(marks) != 1 or year.entries[marks[0]].tier != item.tier:
                self._miss(f"expiry: {item} takes {lines}")
            leaving.update(marks)
        self.planted["expiry"] += len(due)
        self.found["expiry"] += len(due & leaving)
        for mark in sorted(due ^ leaving):
            self._miss(f"expiry: {mark} {'did not leave' if mark in due else 'left and was not due'}")
        self.left |= leaving

    def check_search(self, count: int = 30) -> None:
        """What expired is not found by search any more; what is structural is, and so is what nobody tagged."""
        year = self.year
        with year.opened() as workspace:
            workspace.search.index()
            for entry in year.random.sample(sorted(year.entries.values()), min(count, len(year.entries))):
                hits = workspace.search.find(entry.mark, stores=("logs",)).hits
                is_there = any(entry.mark in hit.text for hit in hits)
                if is_there != (entry.mark not in self.left):
                    self._miss(f"search for {entry.mark} of {entry.day} ({entry.tier}): {is_there}")

    # What may not be lost.

    def _check_lines(self, changes: dict[str, tuple[str, str]], first: int) -> None:
        """What upkeep itself took out of cards must be values that it replaced, each of them noted."""
        for path, (old, new) in changes.items():
            if gone := keys_of(old) - keys_of(new):
                pairs = self._repairs(path, first)
                for key in gone:
                    if not any(_is_replaced(key, keys_of(new), *pair) for pair in pairs):
                        self._miss(f"line lost by upkeep in {path}: {key}")

    def _repairs(self, path: str, first: int) -> list[tuple[str, str]]:
        """What the ledger says was replaced in a card since an entry."""
        with self.year.opened() as workspace:
            notes = [
                entry.note
                for entry, _ in workspace.history.entries(path)
                if entry.id > first and entry.verb == "repaired"
            ]
        return [pair for note in notes for pair in _pairs(note)]

    def _check_twice(self) -> None:
        before, last = tree(self.year.workspace), self._last_entry()
        again = self._upkeep()
        changed = _changed(before, tree(self.year.workspace))
        if changed or self._last_entry() != last or again.reconciled.done:
            self._miss(f"second run: {changed[:5]} {again.reconciled.done}")

    def _check_undo(self, first: int, before: Mapping[str, str]) -> None:
        """In a copy, everything that the night did is undone, newest first; then the bytes are those of the evening."""
        copy = self.year.base / "copy"
        shutil.copytree(self.year.workspace, copy, symlinks=True)
        try:
            with Workspace.open(copy, now=self.year.now) as workspace:
                done = [entry for entry, _ in workspace.history.entries() if entry.id > first and entry.paths]
                for entry in done:
                    workspace.history.undo(entry.id)
            if wrong := _changed(before, tree(copy)):
                self._miss(f"undo of {len(done)} entries: {wrong[:5]} differ")
            self.planted["undone"] += len(done)
            self.found["undone"] += len(done)
        finally:
            shutil.rmtree(copy)

    # The mornings: a person decides.

    def _morning(self) -> None:
        year = self.year
        with year.opened() as workspace:
            drafts = workspace.review.drafts()
        for draft in drafts:
            if draft.id in self.turned_down:
                self._miss(f"came back after it was turned down: {draft.id}")
            if year.random.random() < 0.45:
                continue
            cards = frozenset((draft.target, *draft.dropped)) - {""}
            is_merge = draft.made_by == "tidy duplicates" and bool(draft.target)
            is_wanted = year.random.random() < 0.6 and (not is_merge or cards in year.doubled)
            if is_wanted:
                self._approve(draft.id, draft.made_by, cards, is_merge=is_merge)
            else:
                with year.opened() as workspace:
                    workspace.review.reject(draft.id, reason="no")
                self.turned_down[draft.id] = draft.made_by
                self.decided["turned down"] += 1

    def _approve(self, draft: str, by: str, cards: frozenset[str], *, is_merge: bool) -> None:
        year = self.year
        before = {path: (year.workspace / path).read_text() for path in cards if (year.workspace / path).is_file()}
        with year.opened() as workspace:
            try:
                workspace.review.approve(draft)
            except (EditedSince, InvalidHandoff):
                workspace.review.reject(draft)  # somebody edited the card: the next night asks anew
                self.decided["overtaken"] += 1
                return
        self.decided[by or "handoff"] += 1
        year.lines.look()
        year.take_names()
        after = {path: (year.workspace / path).read_text() for path in cards if (year.workspace / path).is_file()}
        for path in set(before) - set(after):
            year.notes.pop(path, None)
        if not is_merge:  # a person's word: a value, a card that instructions repeat
            for path, text in before.items():
                year.lines.by_hand(path, text, after.get(path, ""))
            return
        lost = {key for text in before.values() for key in keys_of(text)} - set().union(*map(keys_of, after.values()))
        if len(after) != 1 or lost:
            self._miss(f"a merge of {sorted(cards)} lost {lost}")
        year.doubled.pop(cards, None)

    # At the end.

    def check_ledger(self) -> int:
        """Every line that any card ever had: it is there, or a person's own edit or the ledger says why not."""
        year = self.year
        there = set().union(*(keys_of(path.read_text()) for path in (year.workspace / CARDS).iterdir()))
        with year.opened() as workspace:
            ledger = workspace.context.transaction.ledger
            for key in sorted(set(year.lines.ever) - there - year.lines.taken):
                if not any(_explains(ledger, key, path) for path in year.lines.ever[key]):
                    self._miss(f"line lost: {year.lines.ever[key]}: {key}")
        index = (year.workspace / "MEMORY.md").read_text()
        for path in sorted(year.unindexed):
            if f"({path})" in index:
                self._miss(f"an index line that a person took out came back: {path}")
        return len(year.lines.ever)

    def check_sources(self, count: int = 20) -> None:
        """Lines of cards that handoffs brought say so."""
        free = self.year.free()
        with self.year.opened() as workspace:
            for path in self.year.random.sample(free, min(count, len(free))):
                for line in workspace.history.blame(path):
                    if line.entry is not None and line.entry.verb == "promoted" and line.record is None:
                        self._miss(f"{path}:{line.number} has an entry without its handoff")


def _is_promoted(plant: Plant, report: TidyReport) -> bool:
    """Whether a card is proposed for what logs say, for the reason for which it was planted."""
    ideas = [item.idea for item in report.offered]
    return any(plant.about in idea.text and any(code == plant.kind for code, _ in idea.reasons) for idea in ideas)


def _explains(ledger: Ledger, key: str, path: str) -> bool:
    """Whether an entry took this line out of a card, and may: on a person's word, or by replacing a value."""
    known: bytes | None = None
    for version in ledger.versions(path):
        data = base_of(version, known)
        for by, splice in version.splices:
            after = spliced(data, splice)
            now = keys_of(after.decode())
            if key in keys_of(data.decode()) and key not in now:
                entry = ledger.get_entry(by)
                assert entry is not None
                if entry.verb in ("approved", "undone"):
                    return True
                if entry.verb == "repaired" and any(_is_replaced(key, now, *pair) for pair in _pairs(entry.note)):
                    return True
            data = after
        known = data if version.after is not None else None
    return False


def _pairs(note: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in re.finditer(r"([^\s`]+)`? → `?([^\s`;,]+)", note)]


def _is_replaced(key: str, now: Iterable[str], before: str, after: str) -> bool:
    """Whether a line is there with another value in the place of this one."""
    words = [" ".join(re.findall(r"\w+", value.casefold())) for value in (before, after)]
    switches = {"true": ("true", "on", "enabled"), "false": ("false", "off", "disabled")}
    old, new = words
    choices = [(old, new), (f"v{old}", f"v{new}"), *zip(switches.get(old, ()), switches.get(new, ()), strict=False)]
    there = set(now)
    return any(f" {key} ".replace(f" {one} ", f" {other} ").strip() in there for one, other in choices if one in key)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _path_of(place: str) -> str:
    return re.sub(r":\d+$", "", place)


def _places(item: Disagreement) -> frozenset[str]:
    return frozenset((_path_of(item.place), _path_of(item.other)))


def _card_of(item: Disagreement) -> str:
    return item.other.rpartition("/")[2]
