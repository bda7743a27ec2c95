"""Cards about an old commit: facts put into sentences, real documentation, and text in which nothing is a claim.

Each card comes with a mark for each thing that it names: the line, the text as written, and what became of it. Where
the fate of a thing is not known, the mark says so, and what the product makes of it is not counted.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.truth import phrases
from bench.truth.judge import GONE, MOVED, TRUE, Fact

SKIP, LOOK_ALIKE, HISTORY, FOREIGN = "skip", "look-alike", "history", "foreign"  # beside true, moved and gone
MOST = {  # of each kind: true, moved, gone
    "path": (36, 30, 30),
    "base name": (10, 0, 8),
    "directory": (14, 12, 12),
    "symbol": (36, 0, 36),
    "method": (24, 0, 24),
    "place": (30, 30, 30),
    "line": (24, 30, 16),
    "bare": (12, 14, 8),
    "quoted": (6, 8, 8),
    "flag": (14, 0, 12),
    "env": (14, 0, 12),
    "commit": (12, 0, 12),
    "script": (10, 0, 10),
    "package": (16, 0, 14),
}
VERDICTS = (TRUE, MOVED, GONE)
A_CARD = 8  # facts
A_TABLE = 4


class Mark(NamedTuple):
    """One thing that a card names."""

    line: int
    kind: str
    text: str
    label: str
    where: str = ""
    mentioned: bool = False
    flags: tuple[str, ...] = ()
    why: str = ""


class Card(NamedTuple):
    name: str
    text: str
    marks: tuple[Mark, ...]


class Block(NamedTuple):
    lines: tuple[str, ...]
    marks: tuple[Mark, ...]  # lines counted from 1 within the block


class Setting(NamedTuple):
    """What all cards of one old commit have in common."""

    repository: str  # github.com/owner/name
    age: str  # such as 2y
    day: str
    dated: bool
    bank: phrases.Bank

    def front(self, topic: str) -> list[str]:
        dates = [f"created: {self.day}", f"updated: {self.day}"] if self.dated else []
        return ["---", f"topic: {topic}", "category: code", *dates, f"repository: {self.repository}", "---", ""]


def number_of(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")


# Which facts


def label_of(fact: Fact) -> str:
    """What a card's words are labelled: an id that no object has may be another repository's, and is not gone."""
    return FOREIGN if "unknown" in fact.flags else fact.verdict


def group_of(fact: Fact) -> str:
    return next((flag for flag in ("base name", "bare", "quoted") if flag in fact.flags), fact.kind)


def choose(facts: Iterable[Fact], seed: str) -> list[Fact]:
    """So many of each kind and verdict, always the same ones; half of what is gone may be mentioned."""
    groups: dict[tuple[str, str, bool], list[Fact]] = defaultdict(list)
    for fact in dict.fromkeys(facts):
        groups[group_of(fact), fact.verdict, fact.mentioned].append(fact)
    chosen = []
    for group, counts in MOST.items():
        for verdict, most in zip(VERDICTS, counts, strict=True):
            plain, mentioned = (
                sorted(groups[group, verdict, seen], key=lambda fact: number_of(f"{seed}\0{fact.text}\0{fact.path}"))
                for seen in (False, True)
            )
            half = max(most // 2, most - len(plain))
            mentioned = spread(mentioned)[:half]
            chosen += [*mentioned, *spread(plain)[: most - len(mentioned)]]
    return chosen


def spread(facts: Sequence[Fact]) -> list[Fact]:
    """Those that one commit or one folder brought forth come later, so that none fills a whole set."""
    seen: dict[str, int] = defaultdict(int)
    ranked = []
    for at, fact in enumerate(facts):
        folder = (fact.path or fact.text).rpartition("/")[0]
        seen[folder] += 1
        ranked.append((seen[folder] if "/" in (fact.path or fact.text) else 0, at, fact))
    return [fact for _, _, fact in sorted(ranked, key=lambda item: item[:2])]


# Facts into sentences


class Writer:
    def __init__(self, setting: Setting, files: Mapping[str, Fact], seed: str) -> None:
        self.setting, self.files, self.seed = setting, files, seed

    def write(self, facts: Sequence[Fact]) -> Iterator[Card]:
        mixed = sorted(facts, key=lambda fact: number_of(f"{self.seed}\0mix\0{fact.kind}\0{fact.text}\0{fact.path}"))
        for at in range(0, len(mixed), A_CARD):
            name = f"{self.setting.age}-{at // A_CARD:03d}.md"
            yield self.write_card(name, mixed[at : at + A_CARD])

    def write_card(self, name: str, facts: Sequence[Fact]) -> Card:
        chance = random.Random(number_of(f"{self.seed}\0{name}"))
        topic = chance.choice(self.setting.bank.topics).format(w=words_of(facts[0]))
        blocks = [Block((f"# {topic}", ""), ())]
        tabled = [fact for fact in facts if row_of(fact)] if chance.random() < 0.3 else []
        kind = tabled[0].kind if tabled else ""
        tabled = [fact for fact in tabled if fact.kind == kind][:A_TABLE]
        for fact in facts:
            if fact in tabled:
                continue
            if chance.random() < 0.35:
                blocks.append(Block((chance.choice(self.setting.bank.fillers), ""), ()))
            blocks.append(self.write_fact(fact, chance))
        if len(tabled) > 1:
            blocks.append(self.write_table(tabled))
        elif tabled:
            blocks.append(self.write_fact(tabled[0], chance))
        return join(name, self.setting.front(topic), blocks)

    def write_fact(self, fact: Fact, chance: random.Random) -> Block:
        return self.fill(chance.choice(phrases_for(fact, self.setting.bank)), fact, break_after=True)

    def write_table(self, facts: Sequence[Fact]) -> Block:
        row = row_of(facts[0])
        columns = row.count("|") - 1
        lines: list[str] = ["| What " + "| Note " * (columns - 1) + "|", "|---" * columns + "|"]
        marks: list[Mark] = []
        for fact in facts:
            block = self.fill(row, fact, break_after=False)
            marks += [mark._replace(line=mark.line + len(lines)) for mark in block.marks]
            lines += block.lines
        return Block((*lines, ""), tuple(marks))

    def fill(self, phrase: str, fact: Fact, *, break_after: bool) -> Block:
        line = fact.text.rpartition(":")[2] if fact.kind == "line" else ""
        name = fact.name.rstrip(";,") if fact.kind == "line" else fact.name
        text = phrase.format(t=fact.text, p=fact.path, n=name, l=line, e=fact.end, w=words_of(fact))
        lines = text.split("\n")
        written = fact.text
        if fact.kind == "line" and fact.text not in text:
            written = f"{fact.path}#L{line}" if f"#L{line}" in text else fact.path
        at = next(number for number, one in enumerate(lines, start=1) if written in one)
        marks = [self.mark(at, fact, written)]
        if fact.kind == "place" or (fact.kind == "package" and fact.path in text):
            marks.append(self.mark_path(at, fact.path))
        elif fact.kind == "line":
            if name and name in lines[at - 1]:
                marks.append(Mark(at, "symbol", name, SKIP))
            marks.append(Mark(at, "path", fact.path, SKIP))
        return Block((*lines, "") if break_after else tuple(lines), tuple(marks))

    def mark(self, line: int, fact: Fact, text: str) -> Mark:
        if not self.setting.dated and group_of(fact) == "bare" and fact.verdict != TRUE and fact.path:
            file = self.files.get(fact.path)
            if not (file and file.verdict == GONE):  # nobody can tell what stood at that line when
                return Mark(line, "line", text, SKIP)
        return Mark(line, fact.kind, text, label_of(fact), fact.where, fact.mentioned, fact.flags, fact.why)

    def mark_path(self, line: int, path: str) -> Mark:
        file = self.files.get(path)
        if file is None:
            return Mark(line, "path", path, SKIP)
        return Mark(line, "path", path, file.verdict, file.where, file.mentioned, ("beside",), file.why)

    # Text without claims

    def look_alikes(self) -> Iterator[Card]:
        lines = sorted(self.setting.bank.look_alikes, key=lambda line: number_of(f"{self.seed}\0{line}"))
        for at in range(0, len(lines), 10):
            blocks = [Block((line, ""), (Mark(1, LOOK_ALIKE, line, LOOK_ALIKE),)) for line in lines[at : at + 10]]
            name = f"{self.setting.age}-look-{at // 10}.md"
            yield join(name, self.setting.front("Odds and ends"), [Block(("# Odds and ends", ""), ()), *blocks])
        other = Block(
            (*self.setting.bank.other_code, ""),
            tuple(Mark(at, HISTORY, line, HISTORY) for at, line in enumerate(self.setting.bank.other_code, start=1)),
        )
        blocks = [Block((line, ""), (Mark(1, HISTORY, line, HISTORY),)) for line in self.setting.bank.elsewhere]
        name = f"{self.setting.age}-elsewhere.md"
        yield join(name, self.setting.front("Seen elsewhere"), [Block(("# Seen elsewhere", ""), ()), *blocks, other])

    def history(self, facts: Sequence[Fact]) -> Iterator[Card]:
        """Sentences that say of a thing that it is gone, which is still so."""
        bank = self.setting.bank
        gone = [
            fact for fact in facts if fact.verdict == GONE and fact.kind in ("path", "symbol", "method", "flag", "env")
        ]
        gone = sorted(gone, key=lambda fact: number_of(f"{self.seed}\0history\0{fact.text}"))
        for at in range(0, min(len(gone), 36), 12):
            blocks = []
            for number, fact in enumerate(gone[at : at + 12]):
                line = bank.history[(at + number) % len(bank.history)].format(t=fact.text)
                blocks.append(Block((line, ""), (Mark(1, HISTORY, fact.text, HISTORY, flags=(fact.kind,)),)))
            name = f"{self.setting.age}-history-{at // 12}.md"
            yield join(name, self.setting.front("What went away"), [Block(("# What went away", ""), ()), *blocks])
        lines, marks = ["# Changelog", "", "## 4.2.0", ""], []
        for number, fact in enumerate(gone[36:54]):
            marks.append(Mark(len(lines) + 1, HISTORY, fact.text, HISTORY, flags=("changelog",)))
            lines.append(bank.changelog[number % len(bank.changelog)].format(t=fact.text))
        if marks:
            name = f"{self.setting.age}-changelog.md"
            yield join(name, self.setting.front("Changelog"), [Block((*lines, ""), tuple(marks))])


def join(name: str, front: Sequence[str], blocks: Iterable[Block]) -> Card:
    lines, marks = list(front), []
    for block in blocks:
        marks += [mark._replace(line=mark.line + len(lines)) for mark in block.marks]
        lines += block.lines
    return Card(name, "\n".join(lines).rstrip("\n") + "\n", tuple(marks))


def phrases_for(fact: Fact, bank: phrases.Bank) -> Sequence[str]:
    match group_of(fact):
        case "path" if "/" not in fact.text or "." not in fact.text.rpartition("/")[2]:
            return [phrase for phrase in bank.paths if "`{t}`" in phrase]  # no path beyond doubt without backticks
        case "directory" if "/" not in fact.text:
            return [phrase for phrase in bank.directories if "`{t}" in phrase]
        case "base name":
            return bank.base_names
        case "bare":
            return bank.bare_lines
        case "quoted":
            return bank.quoted_lines
        case "line":
            line = int(fact.text.rpartition(":")[2])
            return [*bank.named_lines, *bank.ranges] if line < fact.end < line + 400 else bank.named_lines
        case "place" if "still named there" in fact.flags:
            return [phrase for phrase in bank.places if "defin" in phrase]
        case "symbol" if "class" in fact.flags:
            return bank.classes
        case "symbol" if "constant" in fact.flags:
            return bank.constants
    return {
        "path": bank.paths,
        "directory": bank.directories,
        "symbol": bank.symbols,
        "method": bank.methods,
        "place": bank.places,
        "flag": bank.flags,
        "env": bank.variables,
        "commit": bank.commits,
        "script": bank.scripts,
        "package": bank.packages,
    }[fact.kind]


def row_of(fact: Fact) -> str:
    """The phrase for a row of a table, where there is one; a row says too little of what is only defined elsewhere."""
    if "still named there" in fact.flags:
        return ""
    return {
        "path": phrases.PATH_ROW,
        "symbol": phrases.SYMBOL_ROW,
        "method": phrases.SYMBOL_ROW,
        "place": phrases.PLACE_ROW,
        "flag": phrases.FLAG_ROW,
    }.get(fact.kind, "")


def words_of(fact: Fact) -> str:
    """Plain words for what a thing is about, from its own name: resolvers.py is about resolvers."""
    path = fact.path or (fact.text if "/" in fact.text else "")
    name = path.rpartition("/")[2].partition(".")[0] or fact.text
    pieces = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    found = [word.lower() for word in re.findall(r"[A-Za-z]{3,}", pieces)][:3]
    return " ".join(found) if found and fact.kind not in ("commit", "script", "flag", "env") else "the build"
