"""The account of a day: where every handoff and every edit ended, what is left lying about, and what it cost."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.soak.day import HOURS, Day
from tests.support.soak.programs import Mcp, Site, Staying
from truekeep.core import file_io
from truekeep.integrations.doctor.registry import OF_MEMORY
from truekeep.memory.ledger import Ledger
from truekeep.workspace.workspace import Workspace

FILED = ("promoted", "routed", "approved")
ENDS = (*FILED, "already", "review", "refused", "rejected", "expired", "undone")
_LETTER = re.compile(r"qx\d{5}[a-z]{4}")
_LEFT_OVER = re.compile(
    rf"{re.escape(file_io.TEMPORARY)}\Z|\.sqlite\.new|lexicon\.bin\.\d+\Z|\.json\.\d+\Z|-journal\Z|/tmp_(?:obj|pack|idx)_|\.git/.*\.lock\Z"
)


class Account(NamedTuple):
    """What a day came to."""

    problems: list[str]
    letters: dict[str, int]  # by kind
    happened: dict[str, int]
    outcomes: dict[str, int]
    ends: dict[str, int]  # of programs, by exit code
    held: dict[str, list[list[int]]]  # those that stay: memory, descriptors, threads, locks; at every look
    searches: dict[str, list[float]]  # CPU seconds of one: at first, at last, and at last by a fresh process
    skipped: list[str]


def close(day: Day) -> Account:
    """Mend what is to be mended, and look at everything."""
    problems = list(day.programs.complaints)
    fresh: list[Staying] = [Site(day.host.home, day.base), Mcp(day.host.home, day.base)]
    again = day.measure(fresh)
    for staying in (*fresh, *day.staying):
        if (code := staying.process.poll()) is not None:
            problems.append(f"{staying.name} ended by itself with {code}")
        problems += [f"{staying.name} holds on to {path}, which is gone" for path in staying.gone_files()]
        said = [line for line in staying.stop().splitlines() if not line.endswith("the disk is full")]
        if said:
            problems.append(f"{staying.name} complained: {said[-20:]}")
    problems += _bugs(day)
    problems += _health(day)
    with Workspace.open(day.workspace) as workspace:
        books = Books(day, workspace)
        problems += [*books.letters(), *books.marks(), *books.hand(), *books.lines(), *books.files()]
    problems += _left_over(day)
    skipped = [] if day.clock.can_jump else ["clock jumps: no C compiler here"]
    skipped += [] if day.can_fill else ["full disk: no file system of our own may be mounted here"]
    searches = {name: [day.first[name], day.last[name], again[name]] for name in day.first}
    happened = day.happened + day.programs.fates
    happened["edits by hand"] = day.hand.count
    held = {staying.name: [list(reading) for reading in staying.readings] for staying in day.staying}
    ends = dict(sorted(day.programs.ends.items()))
    letters = dict(Counter(letter.kind for letter in day.pen.written))
    return Account(problems, letters, dict(happened), dict(books.outcomes), ends, held, searches, skipped)


def _bugs(day: Day) -> Iterator[str]:
    for machine in day.machines:
        log = machine.folder / ".local" / "state" / "truekeep" / "bugs.log"
        if log.exists():
            yield f"{machine.name} has met bugs: {log.read_text()[-1500:]}"
    for path in sorted((day.workspace / ".truekeep" / "logs").glob("*")):
        if "Traceback" in (text := path.read_text(errors="replace")) or "a bug in truekeep" in text:
            yield f"{path.name} tells of bugs: {text[-1500:]}"


def _health(day: Day) -> Iterator[str]:
    """Everything is mended by doctor, which finds nothing afterwards; status and search agree with it."""
    day.clock.jump(3 * HOURS)  # what killed programs left is theirs for an hour
    for machine in day.machines:
        for fix in (("--fix",), ()):
            code, said = day.programs.run(machine.home, "doctor", "--json", *fix)
            checks = json.loads(said)["checks"] if code in (0, 1) else []
            bad = [
                check for check in checks if check["state"] not in ("well", "mended") and check["name"] not in OF_MEMORY
            ]
            if code or (bad and not fix):
                yield f"doctor {' '.join(fix)} on {machine.name} ended with {code}: {bad or said[-1500:]}"
    day.clock.jump(0)
    status = day.said("status")
    if status["exit"] or "said" in status:
        yield f"status ended with {status}"
    pipeline = day.said("status", "pipeline")
    if pipeline["exit"] or "said" in pipeline:
        yield f"status pipeline ended with {pipeline}"


class Books:
    """The ledger and the files of a day that is over, held against what was left and edited."""

    def __init__(self, day: Day, workspace: Workspace) -> None:
        self.day, self.workspace = day, workspace
        self.ledger = Ledger(str(day.workspace / ".truekeep" / "ledger.sqlite"))
        self.outcomes: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        for path in self._memory():
            self._texts[path] = (day.workspace / path).read_text(errors="replace")

    def _memory(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.day.workspace):
            names[:] = [name for name in names if name != ".truekeep"]
            for name in files:
                yield str((Path(folder) / name).relative_to(self.day.workspace))

    def letters(self) -> Iterator[str]:
        """Every handoff is in the ledger, was filed by ingest once, and lies in no inbox."""
        rows: Any = self.ledger._db.execute("SELECT digest, name, outcome FROM handoff")
        known: dict[bytes, str] = {}
        names: dict[str, str] = {}
        for digest, name, outcome in rows:
            known[digest], names[name] = outcome, outcome
        left = {letter.digest: letter for letter in self.day.pen.written}
        for digest, letter in left.items():
            outcome = names.get(letter.name, "") if letter.is_huge else known.get(digest, "")
            self.outcomes[outcome or "lost"] += 1
            if outcome not in ENDS:
                yield f"{letter.name} ({letter.kind}) ended as {outcome or 'nothing: it is lost'}"
        for machine in self.day.machines:
            yield from (f"{path} still waits" for path in machine.waiting())
        strange = known.keys() - left.keys() - self.day.first_halves
        rows = self.ledger._db.execute("SELECT digest, name, reasons FROM handoff").fetchall()
        for digest, name, reasons in rows:
            if digest in strange and "too-large" not in reasons:
                yield f"{name} was filed and never left like that"
        entries: dict[tuple[bytes, str], list[str]] = {}
        query = (
            "SELECT entry.handoff, change.path, entry.id, entry.at, entry.verb FROM entry"
            " JOIN splice ON splice.entry = entry.id JOIN change ON change.id = splice.change"
            " WHERE entry.actor = 'ingest' AND entry.handoff NOT NULL AND change.path != 'MEMORY.md'"
            " GROUP BY entry.id, change.path"
        )
        for digest, path, *entry in self.ledger._db.execute(query):
            entries.setdefault((digest, path), []).append(" ".join(map(str, entry)))
        for (digest, path), acts in entries.items():
            if len(acts) > 1:
                yield f"handoff {digest.hex()[:10]} was filed to {path} more than once: {acts}"

    def marks(self) -> Iterator[str]:
        """What was filed is in its file, unless the ledger or a person's own hand took it out again."""
        for letter in {letter.digest: letter for letter in self.day.pen.written if letter.mark}.values():
            record = self.ledger.find_handoff(letter.digest)
            if record is None or record.outcome not in FILED:
                continue
            chain = list(self._called(record.target))
            if any(letter.mark in self._texts.get(path, "") for path in chain):
                continue
            last = [content.decode(errors="replace") for path in chain if (content := self.ledger.content(path))]
            if not any(letter.mark in text for text in last):
                continue
            by_hand = any(
                path in self.day.hand.gone
                or any(saved.path == path and letter.mark not in saved.text for saved in self.day.hand.saved)
                for path in chain
            )
            if not by_hand:
                yield f"{letter.name} was {record.outcome} to {record.target}, and is not in it"
        yield from self._secrets()

    def _called(self, path: str) -> Iterator[str]:
        """A file's name, and those that it was given since."""
        yield path
        while path in self.day.hand.renamed:
            path = self.day.hand.renamed[path]
            yield path

    def _secrets(self) -> Iterator[str]:
        secrets = [letter.secret for letter in self.day.pen.written if letter.secret]
        state = self.day.workspace / ".truekeep"
        texts = {**self._texts}
        for path in state.rglob("*"):
            is_copy = (state / "synced") in path.parents or (state / "git") in path.parents
            if path.is_file() and not is_copy:
                texts[str(path)] = path.read_bytes().decode("latin-1")
        for secret in secrets:
            yield from (f"a credential is in {path}" for path, text in texts.items() if secret in text)

    def hand(self) -> Iterator[str]:
        """Every edit by hand is still there, unless a person approved of what took it out."""
        for path, marks in self.day.hand.marks.items():
            for mark in marks:
                if mark in self._texts.get(path, ""):
                    continue
                if not self._is_taken_out(path, mark):
                    there = [other for other, text in self._texts.items() if mark in text]
                    yield f"{path} has lost {mark!r}; it is in {there or 'no file'}"
        for path in self.day.hand.gone:
            if path in self._texts and self.ledger.content(path) != (self.day.workspace / path).read_bytes():
                yield f"{path} was removed by hand, and is there again"

    def _is_taken_out(self, path: str, mark: str) -> bool:
        for version in self.ledger.versions(path):
            for number, splice in version.splices:
                entry = self.ledger.get_entry(number)
                if mark.encode() in splice.removed and entry is not None and entry.verb in ("approved", "undone"):
                    return True
        return False

    def lines(self) -> Iterator[str]:
        """Whatever a letter said has an act that wrote it; whatever a person wrote has none."""
        renamed = set(self.day.hand.renamed.values())
        for path in self._texts:
            if path in renamed or not (
                path.startswith(("memory/cards/", "rules/")) or path in ("MEMORY.md", "TOOLS.md")
            ):
                continue
            for line in self.workspace.history.blame(path):
                if _LETTER.search(line.text) and line.entry is None:
                    yield f"nobody knows who wrote {path}:{line.number}: {line.text[:120]}"
                if "by-hand-" in line.text and line.entry is not None and line.entry.verb not in ("approved", "undone"):
                    yield f"{path}:{line.number} was written by hand, and is said to be {line.entry.verb}"

    def files(self) -> Iterator[str]:
        """No batch is open, and where no person edited, the disk has what the ledger wrote."""
        if self.ledger.has_pending():
            yield "a batch is still pending"
        hand = self.day.hand
        touched = hand.gone | {saved.path for saved in hand.saved} | hand.marks.keys()
        rows: Any = self.ledger._db.execute("SELECT DISTINCT path FROM change").fetchall()
        for (path,) in rows:
            target = self.day.workspace / path
            if path not in touched and self.ledger.content(path) != (target.read_bytes() if target.exists() else None):
                yield f"the ledger tells another story of {path} than the disk"


def _left_over(day: Day) -> Iterator[str]:
    """Temporary files, locks that somebody holds, programs that still run."""
    for top in (day.workspace, *(machine.folder for machine in day.machines)):
        for folder, _, files in os.walk(top):
            for name in files:
                if _LEFT_OVER.search(f"{folder}/{name}"):
                    yield f"left behind: {folder}/{name}"
    state = day.workspace / ".truekeep"
    for name in ("", "logs", "sync.lock.d"):
        with file_io.locked(str(state / name)) as held:
            if not held:
                yield f"somebody holds the lock on {state / name}"
    mine = f"SOAK_CLOCK={day.clock.path}".encode()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if mine in (process / "environ").read_bytes():
                    yield f"still running: {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}"
            except OSError:
                continue
