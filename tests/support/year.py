"""A year of made-up life in one workspace: what agents hand in and people write, and what is planted in it, all known.

Days are lived one after the other, with a clock of their own. `nights` has what upkeep says and does about them, and
holds it against what was planted.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.helpers import CLAUDE, CODEX, a_handoff, git_repo
from tests.support.lore import (
    AREAS,
    ASIDES,
    FACTS,
    PEOPLE,
    PLACES,
    REPOSITORIES,
    ROLES,
    THING_LIST,
    TOOLS,
    VALUES,
    WORDS,
    Said,
    Service,
    Thing,
    a_fact,
    a_thing,
    an_aside,
    services,
    wordings,
)
from tests.support.sessions import aged, place_of, write_session
from truekeep.handoffs.sync.mirror import Mirror
from truekeep.maintenance.reconcile import RECENT_DAYS, YOUNGER
from truekeep.memory.card import words_of
from truekeep.workspace.workspace import Workspace

FIRST = date(2025, 11, 15)
CARDS = "memory/cards"
MACHINES = ("hub", "laptop", "desktop", "runner")  # the first one is the canonical host
CODE = "engine"  # the repository that has code
TIERS = {
    "structural": ("0.9", "0.85", "1", "0.8"),
    "potential": ("0.5", "0.7", "0.4"),
    "contextual": ("0.1", "0.3", "0", "0.39"),
}
KINDS = ("decision", "context", "note", "milestone", "bug", "task")
FACT_COUNT = len(FACTS)
SLOTS = ("{word}", "{thing}", "{place}", "{person}", "{tool}", "{size}", "{other}")
RICH = [at for at, (text, *_) in enumerate(FACTS) if sum(slot in text for slot in SLOTS) > 1]  # no two say the same


class Scale(NamedTuple):
    """How much of a year."""

    cards: int = 600
    nights: int = 60
    days: int = 365
    agents: int = 20
    seed: int = 8


class Agent(NamedTuple):
    """Somebody who works in a repository on a machine and leaves handoffs."""

    name: str
    machine: str
    repository: str
    inbox: str


class Note(NamedTuple):
    """What a card says, as it was thought of."""

    service: Service
    topic: str
    facts: tuple[Said, ...]
    values: tuple[tuple[Thing, str, int], ...]
    asides: tuple[str, ...] = ()

    def lines(self, wording: Callable[[int], int] = lambda _: 0) -> list[str]:
        said = [fact.worded(wording(number)) for number, fact in enumerate(self.facts)]
        said += [thing.say(value, first + wording(number)) for number, (thing, value, first) in enumerate(self.values)]
        return [*said, *self.asides]


class Plant(NamedTuple):
    """Something that upkeep has to find."""

    kind: str
    about: str
    paths: frozenset[str]
    winner: str = ""


class Entry(NamedTuple):
    """A tagged entry of a log, by a word that only it has."""

    day: date
    mark: str
    tier: str


class Year:
    """The life of one year. What has to be found tonight is in `tonight`; what stays to be found, in the others."""

    def __init__(self, base: Path, scale: Scale) -> None:
        self.base, self.scale = base, scale
        self.random = Random(scale.seed)
        self.day = FIRST
        self.workspace = base / "workspace"
        self.lines = Lines(self.workspace)
        self.notes: dict[str, Note] = {}  # cards as they were thought of, by path
        self.busy: set[str] = set()  # cards that something was planted in
        self.entries: dict[str, Entry] = {}  # of logs, by a word that only each of them has
        self.tonight: list[Plant] = []
        self.open: dict[frozenset[str], Plant] = {}  # two memories that give one thing two values
        self.said: dict[frozenset[str], Plant] = {}  # a log and a card
        self.talked: set[str] = set()  # cards that somebody contradicted in a session
        self.doubled: dict[frozenset[str], Plant] = {}
        self.lasting: dict[str, Plant] = {}  # what logs say and belongs into a card
        self.unindexed: set[str] = set()  # cards whose index line a person took out
        self.standing: set[tuple[str, str]] = set()  # index lines that only a person can mend
        self.truth: dict[Thing, str] = {}
        self._things: set[Thing] = set()
        self._tools: set[tuple[str, str]] = set()
        self._statements: set[tuple[int, Service]] = set()
        self._topics: set[str] = set()
        self._names: set[str] = set()
        self._number = 0
        self._waiting: list[str] = []  # cards that are handed in today
        self._services = services(self.random, len(AREAS) * len(ROLES))
        self._make()

    # The place.

    def _make(self) -> None:
        for name in (*REPOSITORIES, CODE):
            repo = git_repo(self.base / "repos" / name, remote=f"https://github.com/acme/{name}.git")
            (repo / ("CLAUDE.md" if name < "d" else "AGENTS.md")).write_text(f"# {name}\n\nRun the tests first.\n")
        Workspace.init(self.workspace, now=lambda: self.now())
        (self.workspace / ".truekeep" / "config.toml").write_text(
            f'repositories = ["{self.base}/repos/*"]\n[limits]\nsettle_seconds = 0\n'
        )
        agents = []
        for number in range(self.scale.agents):
            machine = MACHINES[number % len(MACHINES)]
            repository = REPOSITORIES[number % len(REPOSITORIES)]
            agents.append(Agent(f"agent-{number}", machine, repository, CODEX if number % 3 == 2 else CLAUDE))
        self.agents = agents

    def now(self, hour: int = 22, minute: int = 0) -> datetime:
        return datetime.combine(self.day, time(hour, minute), UTC)

    def opened(self) -> Workspace:
        return Workspace.open(self.workspace, now=self.now)

    def days(self) -> list[date]:
        """The days that are lived, the last of the year among them."""
        step = (self.scale.days - 1) / max(1, self.scale.nights - 1)
        return [FIRST + timedelta(days=round(number * step)) for number in range(self.scale.nights)]

    # Living.

    def begin(self) -> None:
        """A memory that is there already: cards with their lines in an index, written by hand and by OpenClaw."""
        lines = []
        for _ in range(self.scale.cards // 6):
            note = self.a_note()
            path = self._write_card(note, day=FIRST - timedelta(days=self.random.randint(1, 400)), is_pointed=True)
            lines.append(f"- [{note.topic}]({path})\n")
        self._put("MEMORY.md", "# Memory\n\n## Cards\n\n" + "".join(lines))
        self._put("TOOLS.md", "# Tools\n\nUse the staging account for everything that writes.\n")
        self.lines.look()

    def live(self, day: date, share: float) -> None:
        """One day; `share` is the part of the year that is over when it ends."""
        self.day = day
        self._write_log()
        self._people_work()
        wanted = round(self.scale.cards * share) - self.card_count() - len(self._waiting)
        for _ in range(max(1, wanted)):
            self._hand_in(self.a_note(), self.random.choice(self.agents))
        for _ in range(max(1, wanted // 8)):
            self._update_by_handoff()
        self._waiting.clear()

    def card_count(self) -> int:
        return sum(name.endswith(".md") for name in os.listdir(self.workspace / CARDS))

    # What there is to say.

    def a_service(self) -> Service:
        return self.random.choice(self._services)

    def take_names(self) -> None:
        """Cards that came by themselves have names, too."""
        self._names.update(os.listdir(self.workspace / CARDS))

    def a_new_thing(self, kind: str = "", service: Service | None = None) -> Thing:
        """Something that nobody has spoken of."""
        kinds = [kind] if kind else [kind for kind in VALUES if kind != "tool"]
        while True:
            thing = a_thing(self.random, service or self.a_service(), self.random.choice(kinds))
            if thing not in self._things:
                self._things.add(thing)
                return thing

    def a_note(self, service: Service | None = None, *, values: Sequence[tuple[Thing, str, int]] = ()) -> Note:
        random = self.random
        service = service or self.a_service()
        facts = tuple(
            a_fact(random, service, self.a_service(), fact)
            for fact in random.sample(range(FACT_COUNT), random.randint(2, 5))
        )
        known = list(values)
        if random.random() < 0.5 and not values:
            thing = a_thing(random, service)
            if thing in self.truth or thing not in self._things:
                self._things.add(thing)
                value = self.truth.setdefault(thing, thing.value(random))
                known.append((thing, value, random.choice(wordings(thing.kind))))
        asides = tuple(self._aside(service) for _ in range(random.random() < 0.25))
        return Note(service, self._topic(service), facts, tuple(known), asides)

    def _aside(self, service: Service) -> str:
        """The same one for the same service: it is no value, but if it were, it would not change."""
        text = self.random.choice(ASIDES)
        return an_aside(Random(f"{service.slug} {text}"), service, text)

    def _topic(self, service: Service) -> str:
        random = self.random
        while True:
            shapes = (
                f"{service.name}: {random.choice(WORDS)} {random.choice(THING_LIST)}",
                f"What to know about {random.choice(THING_LIST)} in the {service.name}",
                f"{random.choice(PLACES)} and the {service.name}",
                f"{service.name}, {random.choice(WORDS)} {random.choice(WORDS)} notes",
                f"How {random.choice(PEOPLE)} wants the {service.name} handled ({random.choice(WORDS)})",
            )
            topic = random.choice(shapes)
            topic = topic[:1].upper() + topic[1:]
            if " ".join(words_of(topic)) not in self._topics:
                self._topics.add(" ".join(words_of(topic)))
                return topic

    def _other_topic(self, topic: str) -> str:
        """The same in other words."""
        low = topic[:1].lower() + topic[1:]
        shapes = (f"Notes: {topic}", f"More on {low}", f"{topic} (to be remembered)", f"Mind: {low}")
        other = self.random.choice(shapes)
        self._topics.add(" ".join(words_of(other)))
        return other

    def _name(self, topic: str) -> str:
        stem = "-".join(words_of(topic))[:50].strip("-")
        name, number = f"{stem}.md", 1
        while name in self._names:
            number += 1
            name = f"{stem}-{number}.md"
        self._names.add(name)
        return name

    def _body(self, lines: Sequence[str], title: str) -> str:
        """The lines of a card in one of the ways in which people lay one out."""
        shape = self.random.randrange(4)
        if shape == 0:
            return f"# {title}\n\n" + "".join(f"- {line}\n" for line in lines)
        if shape == 1:
            return "\n\n".join(lines) + "\n"
        if shape == 2:
            cut = max(1, len(lines) // 2)
            head, rest = lines[:cut], lines[cut:]
            below = "\n## Details\n\n" + "".join(f"* {line}\n" for line in rest) if rest else ""
            return "".join(f"{line}\n" for line in head) + below
        return f"# {title}\n\n{lines[0]}\n\n" + "".join(
            f"{number}. {line}\n" for number, line in enumerate(lines[1:], 1)
        )

    # Writing by hand.

    def _put(self, path: str, text: str, hour: int = 12) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        at = self.now(hour).timestamp()
        os.utime(file, (at, at))

    def _write_card(
        self,
        note: Note,
        *,
        day: date | None = None,
        lines: Sequence[str] | None = None,
        repository: str = "",
        is_pointed: bool = False,
    ) -> str:
        """A card by hand. Without a line in the index that is one more thing to find."""
        day = day or self.day
        name = self._name(note.topic)
        origin = f"repository: github.com/acme/{repository}\nwriter: claude\n" if repository else ""
        topic = f'"{note.topic}"' if ": " in note.topic else note.topic
        front = f"topic: {topic}\ncategory: notes\ntags: [{note.service.area}]\ncreated: {day}\nupdated: {day}\n"
        body = self._body(list(lines) if lines is not None else note.lines(), note.topic)
        path = f"{CARDS}/{name}"
        self._put(path, f"---\n{front}{origin}---\n\n{body}")
        self.notes[path] = note
        if not is_pointed:
            self.tonight.append(Plant("index-missing", name, frozenset((path,)), "card"))
        return path

    def _edit(self, path: str, change: Callable[[str], str]) -> None:
        """A person changes a file. What they take out is gone on their word."""
        old = (self.workspace / path).read_text()
        new = change(old)
        self.lines.by_hand(path, old, new)
        self._put(path, new, 15)

    def _index(self, change: Callable[[str], str]) -> None:
        self._put("MEMORY.md", change((self.workspace / "MEMORY.md").read_text()), 16)

    # The days of agents.

    def _hand_in(self, note: Note, agent: Agent, *, lines: Sequence[str] | None = None) -> str:
        name = self._name(note.topic)
        topic = f'"{note.topic}"' if ": " in note.topic else note.topic
        body = self._body(list(lines) if lines is not None else note.lines(), note.topic)
        content = f"---\ntopic: {topic}\ncategory: setup\ntags: [{note.service.area}]\n---\n\n{body}"
        self.leave(
            agent,
            a_handoff(
                title=note.topic,
                summary=f"About the {note.service.name}.",
                facts=f"- {note.lines()[0]}",
                card=name,
                content=content,
            ),
        )
        self.notes[f"{CARDS}/{name}"] = note
        self._waiting.append(name)
        return f"{CARDS}/{name}"

    def leave(self, agent: Agent, text: str) -> None:
        self._number += 1
        at = self.now(8) + timedelta(minutes=self._number % 700)
        name = f"{at:%Y-%m-%d-%H%M}-{agent.name}-{self._number}.md"
        if agent.machine == MACHINES[0]:
            folder = self.base / "repos" / agent.repository / agent.inbox
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            os.utime(folder / name, (at.timestamp(), at.timestamp()))
        else:
            mirror = Mirror.of(self.workspace / ".truekeep", agent.machine)
            place = mirror.place(
                agent.machine, f"/home/{agent.name}/{agent.repository}", f"github.com/acme/{agent.repository}"
            )
            mirror.take(place, agent.inbox, name, text.encode())

    def _update_by_handoff(self) -> None:
        """An agent adds something to a card of its repository; all that was there stays."""
        free = [path for path in self.notes if path not in self.busy and (self.workspace / path).is_file()]
        if not free:
            return
        path = self.random.choice(free)
        text = (self.workspace / path).read_text()
        repository = re.search(r"^repository: github\.com/acme/(\S+)$", text, re.MULTILINE)
        agents = [agent for agent in self.agents if repository is not None and agent.repository == repository[1]]
        if not agents or path in self.lines.edited:
            return
        note = self.notes[path]
        fact = a_fact(self.random, note.service, self.a_service())
        content = self.extended(text, fact.worded(0))
        self.notes[path] = note._replace(facts=(*note.facts, fact))
        self.leave(
            self.random.choice(agents),
            a_handoff(title=note.topic, card=path.rpartition("/")[2], action="update-card", content=content),
        )

    def extended(self, text: str, line: str) -> str:
        """What an agent suggests that has read a card and adds a line to it."""
        front, _, body = text.removeprefix("---\n").partition("\n---\n")
        kept = "\n".join(line for line in front.split("\n") if line.partition(":")[0] in ("topic", "category", "tags"))
        return f"---\n{kept}\n---\n{body.rstrip()}\n\n{line}\n"

    def _write_log(self) -> None:
        """The day's log: tagged entries of every tier, some with more lines, and lines without a tag."""
        random = self.random
        path = self._log_path(self.day)
        lines = [f"# {self.day}", ""]
        for _ in range(random.randint(3, 6)):
            lines += self._log_entry()
        lines += [
            "",
            f"Talked with {random.choice(PEOPLE)} about {random.choice(PLACES)} {self.day}.",
            f"- [x] {self.statement()}",
        ]
        if random.random() < 0.2:
            lines.append(f"- [note|i={random.choice(('7', 'high', ''))}] {self.statement()}")
            self.tonight.append(Plant("bad-tag", path, frozenset((path,))))
        self._put(path, "\n".join(lines) + "\n", 18)

    def _log_path(self, day: date) -> str:
        return f"memory/{day}.md"

    def _log_entry(self, tier: str = "") -> list[str]:
        random = self.random
        tier = tier or random.choice(("potential", "contextual", "contextual", "potential", "contextual", "structural"))
        self._number += 1
        mark = f"zq{self._number}x"
        text = f"{self.statement()} ({mark})"
        self.entries[mark] = Entry(self.day, mark, tier)
        if tier == "structural":
            self.lasting[mark] = Plant("structural", text, frozenset((self._log_path(self.day),)))
            self.tonight.append(self.lasting[mark])
        tag = f"[{random.choice(KINDS)}|i={random.choice(TIERS[tier])}]"
        more = (
            [f"  seen by {random.choice(PEOPLE)} on the {random.choice(WORDS)} host"] if random.random() < 0.3 else []
        )
        return [f"{random.choice(('-', '*', '-'))} {tag} {text}", *more]

    def statement(self) -> str:
        """Something that no log said before."""
        while True:
            service, fact = self.a_service(), self.random.randrange(FACT_COUNT)
            if (fact, service) not in self._statements:
                self._statements.add((fact, service))
                return a_fact(self.random, service, self.a_service(), fact).worded(self.random.randrange(2))

    # The days of people: edits of no consequence, and what is planted.

    def _people_work(self) -> None:
        """So much of each a day that a tenth of all cards has something planted in it."""
        scale = self.scale.cards / self.scale.nights / 10
        for plant, often in (
            (self._plant_values, 1.5),
            (self._plant_double, 1.5),
            (self._plant_index, 2.0),
            (self._plant_instruction, 0.6),
            (self._plant_log, 0.6),
            (self._plant_talk, 0.3),
            (self._plant_repeated, 0.6),
            (self._plant_fact, 0.2),
            (self._plant_instructed, 0.2),
            (self._plant_code, 0.1),
            (self._plant_trouble, 0.4),
            (self._edit_something, 4.0),
        ):
            wanted = often * scale
            for _ in range(int(wanted) + (self.random.random() < wanted % 1)):
                plant()

    def free(self) -> list[str]:
        return sorted(path for path in self.notes if path not in self.busy and (self.workspace / path).is_file())

    def _edit_something(self) -> None:
        free = self.free()
        choice = self.random.randrange(4)
        if choice == 0 and free:
            path, line = self.random.choice(free), f"{self.statement()}"
            self._edit(path, lambda text: f"{text.rstrip()}\n\n{line}\n")
        elif choice == 1 and free:
            path = self.random.choice(free)
            self._edit(path, lambda text: text.replace(" because ", " since ", 1))
        elif choice == 2:
            word = self.random.choice(WORDS)
            self._index(lambda text: f"{text.rstrip()}\n\nAsk {self.random.choice(PEOPLE)} about the {word} plan.\n")
        elif (self.workspace / self._log_path(self.day)).is_file():
            self._edit(self._log_path(self.day), lambda text: f"{text.rstrip()}\n\n{self.statement()}\n")

    def _plant_values(self) -> None:
        """Two cards that give one thing two values, in two of the ways to say so."""
        random = self.random
        agent = random.choice(self.agents)
        thing = self.a_new_thing(random.choice(list(VALUES)))
        if thing.kind == "tool":  # a repository has one version of it
            tools = [tool for tool in TOOLS if (tool, agent.repository) not in self._tools]
            if not tools:
                return
            thing = thing._replace(more=random.choice(tools))
            self._tools.add((thing.more, agent.repository))
        value = thing.value(random)
        other = thing.other_value(random, value)
        one, two = random.sample(wordings(thing.kind), 2)
        first = self.a_note(thing.service, values=[(thing, value, one)])
        second = self.a_note(thing.service, values=[(thing, other, two)])
        # Both by a person: a handoff that contradicts a card waits for one, and never becomes a card of its own.
        day = self.day - timedelta(days=random.randint(0, 60)) if random.random() < 0.5 else self.day
        winner = YOUNGER if (self.day - day).days > RECENT_DAYS else ""
        path = self._write_card(first, day=day, repository=agent.repository)
        paths = frozenset((path, self._write_card(second, day=self.day, repository=agent.repository)))
        self.busy |= paths
        self.open[paths] = Plant("two-values", f"{thing.say(value, one)} | {thing.say(other, two)}", paths, winner)
        self.tonight.append(self.open[paths])

    def _plant_fact(self) -> None:
        """A fact of the database that a card contradicts."""
        random = self.random
        thing = self.a_new_thing(random.choice(("port", "version")))
        value = thing.value(random)
        path = self._hand_in(
            self.a_note(thing.service, values=[(thing, value, random.choice(wordings(thing.kind)))]),
            random.choice(self.agents),
        )
        self.busy.add(path)
        with sqlite3.connect(self.workspace / "memory" / "facts.db") as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS facts (entity TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
                " category TEXT, source TEXT, updated_at TEXT, PRIMARY KEY (entity, key))"
            )
            db.execute(
                "INSERT INTO facts VALUES (?, ?, ?, 'setup', 'a person', ?)",
                (thing.service.slug, thing.kind, thing.other_value(random, value), f"{self.day}"),
            )
        db.close()
        plant = Plant("two-values", f"{thing} {value}", frozenset((path, "memory/facts.db")))
        self.open[plant.paths] = plant
        self.tonight.append(plant)

    def _plant_instruction(self) -> None:
        """An instruction file that a card of its repository contradicts: it wins, and the card is mended."""
        random = self.random
        agent = random.choice(self.agents)
        thing = self.a_new_thing()
        value = thing.value(random)
        other = thing.other_value(random, value)
        one, two = random.sample(wordings(thing.kind), 2)
        path = self._hand_in(self.a_note(thing.service, values=[(thing, other, one)]), agent)
        self.busy.add(path)
        root = self.base / "repos" / agent.repository
        file = next(root / name for name in ("CLAUDE.md", "AGENTS.md") if (root / name).is_file())
        file.write_text(f"{file.read_text()}- {thing.say(value, two)}\n")
        about = f"{thing.say(other, one)} | {thing.say(value, two)}"
        self.tonight.append(Plant("memory-instructions", about, frozenset((path,)), "instructions"))

    def _plant_log(self) -> None:
        """A log that says otherwise than an older card: both can be right."""
        random = self.random
        thing = self.a_new_thing()
        value = thing.value(random)
        one, two = random.sample(wordings(thing.kind), 2)
        note = self.a_note(thing.service, values=[(thing, value, one)])
        path = self._write_card(note, day=self.day - timedelta(days=random.randint(1, 90)))
        self.busy.add(path)
        line = thing.say(thing.other_value(random, value), two)
        log = self._log_path(self.day)
        self._put(log, f"{(self.workspace / log).read_text()}- {line}\n", 19)
        plant = Plant("card-log", f"{thing.say(value, one)} | {line}", frozenset((path, log)), "card")
        self.said[plant.paths] = plant
        self.tonight.append(plant)

    def _plant_talk(self) -> None:
        """A session in which somebody says otherwise than an older card: the card is what was decided."""
        random = self.random
        thing = self.a_new_thing()
        value = thing.value(random)
        one, two = random.sample(wordings(thing.kind), 2)
        note = self.a_note(thing.service, values=[(thing, value, one)])
        path = self._write_card(note, day=self.day - timedelta(days=random.randint(1, 90)))
        self.busy.add(path)
        text = thing.say(thing.other_value(random, value), two)
        name = f"{random.getrandbits(32):08x}-aaaa-4bbb-8ccc-{random.getrandbits(48):012x}"
        file = place_of(Path(os.environ["HOME"]), random.choice(("claude", "codex", "openclaw")), name)
        harness = next(part[1:] for part in file.parts if part in (".claude", ".codex", ".openclaw"))
        write_session(file, aged(harness, text, self.now(11)), at=self.now(11))
        self.tonight.append(Plant("card-transcript", f"{thing.say(value, one)} | {text}", frozenset((path,)), "card"))
        self.talked.add(path)

    def _plant_double(self) -> None:
        """A card that says what another one says: under the same topic, reordered, reworded or with more to it."""
        random = self.random
        free = [path for path in self.free() if path not in self.lines.edited]
        if not free:
            return
        path = random.choice(free)
        note = self.notes[path]
        kind = random.choice(("same-topic", "reordered", "reworded", "extended"))
        if kind == "same-topic":
            other = self.a_note(note.service)._replace(
                topic=random.choice((note.topic.upper(), f"{note.topic}!", note.topic))
            )
            lines = other.lines()
        else:
            other = note._replace(topic=self._other_topic(note.topic))
            turn = {"reordered": lambda _: 0, "extended": lambda _: 0, "reworded": lambda number: number % 2}[kind]
            lines = note.lines(turn)
            random.shuffle(lines)
            if kind == "extended":
                lines += [a_fact(random, note.service, self.a_service()).worded(0) for _ in range(random.randint(1, 2))]
        twin = self._write_card(other, lines=lines, is_pointed=random.random() < 0.3)
        if self.tonight[-1].paths != frozenset((twin,)):
            self._index(lambda text: f"{text.rstrip()}\n- [{other.topic}]({twin})\n")
        self.busy.update((path, twin))
        plant = Plant(kind, f"{path} | {twin}", frozenset((path, twin)))
        self.doubled[plant.paths] = plant
        self.tonight.append(plant)

    def _plant_repeated(self) -> None:
        """A rule that logs of three days say, that nobody tagged, and that no card holds."""
        random = self.random
        while True:
            service, fact = self.a_service(), random.choice(RICH)
            said = a_fact(random, service, self.a_service(), fact)
            keys = set().union(*(keys_of(said.worded(wording)) for wording in range(2)))
            if (fact, service) not in self._statements and not keys & set(self.lines.ever):
                break
        self._statements.add((fact, service))
        fact_text = said.worded(0)
        text = f"Never forget that {fact_text[0].lower()}{fact_text[1:]}"
        past = [day for day in self.days() if day < self.day][-20:]
        if len(past) < 2:
            return
        for day in (*random.sample(past, 2), self.day):
            log = self._log_path(day)
            if not (self.workspace / log).is_file():
                self._put(log, f"# {day}\n")
            lead = random.choice(("- ", "", "* ", "- Again: "))
            self._put(log, f"{(self.workspace / log).read_text().rstrip()}\n\n{lead}{text}\n", 20)
        plant = Plant("repeated", text, frozenset())
        self.lasting[text] = plant
        self.tonight.append(plant)

    def _plant_code(self) -> None:
        """A card about a file that was moved since: code wins, and the card gets the new place."""
        self._number += 1
        old, new = f"src/part_{self._number}.py", f"src/engine/part_{self._number}.py"
        text = "\n".join(
            f"def {word}_{self._number}():\n    return {len(word)}\n" for word in self.random.sample(WORDS, 5)
        )
        self._commit({old: text}, self.day - timedelta(days=40))
        note = self.a_note()
        line = f"Start reading at `{old}` before you change the {note.service.name}."
        path = self._write_card(note, lines=[*note.lines(), line], day=self.day - timedelta(days=30), repository=CODE)
        self.busy.add(path)
        self._commit({old: None, new: text}, self.day - timedelta(days=2))
        self.tonight.append(Plant("memory-code", f"{old} is {new}", frozenset((path,)), "code"))

    def _commit(self, files: Mapping[str, str | None], day: date) -> None:
        root = self.base / "repos" / CODE
        for name, text in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
        at = datetime.combine(day, time(9), UTC).isoformat()
        who = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", "A"), ("EMAIL", "a@example.com"), ("DATE", at))
        }
        for arguments in (["add", "-A"], ["commit", "-q", "-m", "work"]):
            subprocess.run(["git", "-C", str(root), *arguments], check=True, env={**os.environ, **who})

    def _plant_instructed(self) -> None:
        """A card of which every line stands in an instruction file."""
        random = self.random
        agent = random.choice(self.agents)
        note = self.a_note(values=[])._replace(values=(), asides=())
        root = self.base / "repos" / agent.repository
        file = next(root / name for name in ("CLAUDE.md", "AGENTS.md") if (root / name).is_file())
        path = self._write_card(note, repository=agent.repository, lines=note.lines())
        self.busy.add(path)
        body = (self.workspace / path).read_text().partition("\n---\n")[2]
        file.write_text(f"{file.read_text()}\n{body}\n")
        self.tonight.append(Plant("already-instructed", path, frozenset((path,))))

    def _plant_trouble(self) -> None:
        """Frontmatter that is missing, broken or lying."""
        note = self.a_note()
        path = self._write_card(note)
        kind = self.random.choice(("dates-lie", "future-date", "bad-date", "no-frontmatter"))
        old, late = f"created: {self.day}", f"created: {self.day + timedelta(days=300)}"
        text = (self.workspace / path).read_text()
        if kind == "dates-lie":
            text = text.replace(old, f"created: {self.day + timedelta(days=0)}").replace(
                f"updated: {self.day}", f"updated: {self.day - timedelta(days=9)}"
            )
        elif kind == "future-date":
            text = text.replace(old, late).replace(f"updated: {self.day}", late.replace("created", "updated"))
        elif kind == "bad-date":
            text = text.replace(old, "created: 2026-02-31")
        else:
            text = text.partition("\n---\n")[2].lstrip()
            self.tonight.pop()  # without a topic it gets its line by its name
            self.tonight.append(Plant("index-missing", path.rpartition("/")[2], frozenset((path,)), "card"))
        self.busy.add(path)
        self._put(path, text)
        self.tonight.append(Plant(kind, path, frozenset((path,))))

    def _plant_index(self) -> None:
        random = self.random
        text = (self.workspace / "MEMORY.md").read_text()
        kind = random.choice(("dangling", "removed", "impure", "doubled", "missing", "drifted", "renamed"))
        free = [path for path in self.free() if path in text]
        path = random.choice(free) if free else ""
        name = path.rpartition("/")[2]
        line = next((line for line in text.split("\n") if f"({path})" in line), "") if path else ""
        if kind == "dangling":
            self._number += 1
            name = f"gone-{self._number}.md"
            self._index(lambda text: f"{text.rstrip()}\n- [Some old thing {self._number}]({CARDS}/{name})\n")
        elif kind == "impure":
            self._number += 1
            name = f"lost-{self._number}.md"
            self._index(lambda text: f"{text.rstrip()}\n\nSee [the plan]({CARDS}/{name}) before you ask Eve.\n")
            self.standing.add(("index-dangling", name))
            kind = "dangling"
        elif not path or not line.startswith("- ["):
            return
        elif kind == "removed":
            self.lines.by_hand(path, (self.workspace / path).read_text(), "")
            (self.workspace / path).unlink()
            del self.notes[path]
            kind = "dangling"
        elif kind == "doubled":
            self._index(lambda text: f"{text.rstrip()}\n\n## More\n\n{line}\n")
        elif kind == "missing":
            self._index(lambda text: text.replace(f"{line}\n", "", 1))
            self.busy.add(path)
            self.unindexed.add(path)  # a person's word: the line stays out
            return
        elif kind == "drifted":
            if not self._is_ours(line):
                return
            topic = self._topic(self.notes[path].service).replace(": ", " and ")
            self._edit(path, lambda text: re.sub(r"(?m)^topic: .*$", f"topic: {topic}", text, count=1))
            self.notes[path] = self.notes[path]._replace(topic=topic)
        else:
            self._index(lambda text: text.replace(line, f"- [Xyzzy]({path})", 1))
            self.standing.add(("index-drifted", name))
            kind = "drifted"
        self.busy.add(path)
        self.tonight.append(Plant(f"index-{kind}", name, frozenset((f"{CARDS}/{name}",)), "card"))

    def _is_ours(self, line: str) -> bool:
        with self.opened() as workspace:
            return any(found.text == line and found.entry is not None for found in workspace.history.blame("MEMORY.md"))


class Lines:
    """What cards say, line by line, as it comes and goes."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.ever: dict[str, set[str]] = {}  # a line's words → the cards that had it
        self.taken: set[str] = set()  # by a person's own hand
        self.edited: set[str] = set()
        self._seen: dict[str, tuple[int, int, str]] = {}

    def look(self) -> dict[str, tuple[str, str]]:
        """The cards that changed since the last look: what each said, and says."""
        changed: dict[str, tuple[str, str]] = {}
        there = set()
        folder = self.workspace / CARDS
        folder.mkdir(parents=True, exist_ok=True)
        for item in os.scandir(folder):
            path, info = f"{CARDS}/{item.name}", item.stat()
            there.add(path)
            old = self._seen.get(path, (0, 0, ""))
            if old[:2] == (info.st_mtime_ns, info.st_ino):
                continue
            text = Path(item.path).read_text()
            changed[path] = (old[2], text)
            self._seen[path] = (info.st_mtime_ns, info.st_ino, text)
            for key in keys_of(text):
                self.ever.setdefault(key, set()).add(path)
        for path in set(self._seen) - there:
            changed[path] = (self._seen.pop(path)[2], "")
        return changed

    def by_hand(self, path: str, old: str, new: str) -> None:
        """A person's own edit: what they took out, they took out."""
        if path.startswith(CARDS):
            self.taken |= keys_of(old) - keys_of(new)
            self.edited.add(path)


_LEAD = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")


def keys_of(text: str) -> set[str]:
    """The lines that a card's body has, by their words. Headings are no facts."""
    body = text.partition("\n---\n")[2] if text.startswith("---\n") else text
    lines = (line for line in body.split("\n") if line.strip() and not line.startswith("#"))
    return {" ".join(words_of(_LEAD.sub("", line, count=1))) for line in lines} - {""}
