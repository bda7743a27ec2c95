"""The desk for cards: what a person or a script writes, confirms and drops on the canonical host.

Search comes first, always: what covers the topic is shown, and adding to it is preferred to a second card. Then the one
judge of ingest has its say. On top of it stands the durability filter: what code, git, an instruction file or a task
list keeps better is not written unless somebody insists, and the ledger keeps that they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from truekeep.core.dates import shown_age
from truekeep.core.errors import (
    AlreadyCovered,
    BadInput,
    EditedSince,
    InvalidHandoff,
    NotCanonical,
    TruekeepError,
    as_argument,
)
from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath
from truekeep.core.model import CARDS, HANDOFF_TYPES, RULES, Finding, Splice
from truekeep.handoffs.format import compose_handoff, default_card_name, handoff_name
from truekeep.handoffs.inbox import Inbox, deliver
from truekeep.handoffs.policy import Decision, EmptyShelf, IncomingHandoff, Lint, MemoryView, Retry, plan_filing
from truekeep.memory.card import Card, check_card_name, parse_card, place_field, words_of
from truekeep.memory.frontmatter import Field, Frontmatter, InvalidFrontmatter, quote, split_frontmatter
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.merge import woven
from truekeep.memory.similarity import sketch, topic_key
from truekeep.memory.staging import Staging
from truekeep.memory.values import agree, find_values
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference
from truekeep.text.words import STOP, stem_key

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.handoffs.policy_store import StoredMemoryView
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.memory.values import Value
    from truekeep.workspace.workspace import Workspace

DURABILITY = ("task-state", "code-layout", "git-history", "fix-recipe", "already-instructed")
"""What does not last, or is kept better elsewhere: ingest tells of it, and here it stops a write."""

_COVERS = ("same-topic", "near-duplicate")
_TEXT = ("instruction", "hidden-text", "own-words", "refuted", "relative-time", "dangling-reference", *DURABILITY)
"""What is found in lines; of a card that is added to, in the new ones alone."""

_LOOKED_AT, _SHOWN = 8, 5  # cards that a search brings up, and that are shown
_NEAR = 0.6  # of the words of two topics, to be about the same
_FIRST_LINES = 240  # characters of a text that are searched for
_NAMES = 1_000


class Manuscript(NamedTuple):
    """What somebody wants on a card."""

    front: Frontmatter
    body: str
    name: str = ""  # the card's, if they chose one
    first: int = 1  # the line of the text, as it was given, on which the body begins

    @property
    def topic(self) -> str:
        return self.front.text("topic")


class Covering(NamedTuple):
    """A card that may cover a topic already."""

    card: Card
    why: str
    is_sure: bool
    said: str = ""  # by code, in a few words
    is_refuted: bool = False


class CardWriteResult(NamedTuple):
    """What became of a manuscript."""

    outcome: Literal["written", "updated", "already", "planned", "left"]
    path: str
    topic: str
    hints: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()  # the codes of what was written all the same
    covering: tuple[Covering, ...] = ()
    difference: tuple[str, ...] = ()
    entry: int | None = None
    notes: tuple[str, ...] = ()


class Scribe(NamedTuple):
    """Who writes, when, and about which repository."""

    writer: str  # as cards name it: a harness, or the person
    actor: str
    now: datetime
    root: Path | None = None  # the repository's folder
    repository: str = ""  # its name
    is_named: bool = False  # somebody said which one


def parse_manuscript(
    text: str, *, name: str = "", topic: str = "", category: str = "", tags: Sequence[str] = (), is_update: bool = False
) -> Manuscript:
    """A text as it was given, with or without frontmatter; what is named besides comes before what that says."""
    try:
        front, body = split_frontmatter(text.lstrip("\n"))
    except InvalidFrontmatter as error:
        raise BadInput(f"line {error.line} of the text: {error.what}", hint="mend the frontmatter") from error
    front = front or Frontmatter()
    for key, value in (("topic", topic), ("category", category)):
        if value.strip():
            front = front.with_text(key, value)
    if tags:
        front = _with_tags(front, tags)
    if not is_update and not front.text("topic"):
        raise BadInput("the card has no topic", hint="say in one line what it is about: --topic TEXT")
    if not body.strip():
        raise BadInput("there is no text to write", hint="give it on standard input, or with --file FILE")
    if not is_update and not front.text("category"):
        front = front.with_text("category", "project-context")
    if not is_update and front.find("tags") is None:
        front = _with_tags(front, ())
    first = text[: text.rindex(body)].count("\n") + len(body) - len(body.lstrip("\n")) + 1
    name = name.removeprefix(f"{CARDS}/")
    if name and not name.endswith(".md"):
        name += ".md"
    return Manuscript(front, body.strip("\n").rstrip(), name, first)


def _with_tags(front: Frontmatter, tags: Iterable[str]) -> Frontmatter:
    value = f"[{', '.join(quote(tag) for tag in tags)}]"
    field = Field("tags", value, f"tags: {value}\n")
    if front.find("tags") is None:
        return Frontmatter((*front.fields, field))
    return Frontmatter(tuple(field if old.key == "tags" else old for old in front.fields))


# --- Search first ----------------------------------------------------------------------------------------------------


def find_covering(workspace: Workspace, wanted: Manuscript, repository: str = "") -> tuple[list[Covering], list[str]]:
    """The cards that may cover a topic already, the surest first, and what hindered the search."""
    notes: list[str] = []
    found: dict[str, tuple[str, bool]] = {}  # by name: why, and whether that is sure
    shelf = workspace.handoffs.memory_view()
    for name, why in _known_covering(shelf, wanted, repository):
        found.setdefault(name, (why, True))
    cards = {name: card for name in found if (card := _read_card(workspace, name)) is not None}
    for name in _recalled(workspace, wanted, notes):
        card = cards.get(name) or _read_card(workspace, name)
        if card is None or name in found:
            continue
        judged = _compared(card, wanted, repository)
        if judged is not None:
            found[name], cards[name] = judged, card
    kept = sorted((name for name in found if name in cards), key=lambda name: not found[name][1])[:_SHOWN]
    say = (
        workspace.verification.summaries([cards[name].path for name in kept], workspace.config.verify.budget_ms / 1000)
        if kept
        else None
    )
    covering = []
    for name in kept:
        said, is_refuted = say(cards[name].path, "") if say is not None else ("", False)
        covering.append(Covering(cards[name], *found[name], said, is_refuted))
    return covering, notes


def _known_covering(shelf: StoredMemoryView, wanted: Manuscript, repository: str) -> Iterator[tuple[str, str]]:
    """What the catalogue of cards says."""
    if wanted.name and not check_card_name(wanted.name):
        with suppress(UnsafePath, ChangedSince):
            if shelf.read(f"{CARDS}/{wanted.name}") is not None:
                yield wanted.name, "has this name"
        if (clash := shelf.find_clash(wanted.name)) is not None:
            yield clash, "has this name but for letter case"
    if (same := shelf.find_same_topic(topic_key(wanted.topic), repository, "")) is not None:
        yield same, "has the same topic"
    if (near := shelf.find_near(sketch(Card("", wanted.front, wanted.body)), "")) is not None:
        yield near, "says nearly the same"


def _recalled(workspace: Workspace, wanted: Manuscript, notes: list[str]) -> list[str]:
    """The names of cards that recall brings up for the topic and for the first lines."""
    names: dict[str, None] = {}
    first = " ".join(line for line in wanted.body.split("\n") if not line.startswith(("#", "```", "~~~", "|--")))
    for query in (wanted.topic, first[:_FIRST_LINES]):
        if not query.strip():
            continue
        try:
            hits = workspace.search.find(query, limit=_LOOKED_AT, stores=("cards",)).hits
        except TruekeepError as error:
            notes.append(f"cards could not be searched: {error.message}")
            break
        names.update((hit.path.removeprefix(f"{CARDS}/"), None) for hit in hits if hit.path.startswith(f"{CARDS}/"))
    return list(names)


def _read_card(workspace: Workspace, name: str) -> Card | None:
    with suppress(TruekeepError):
        return workspace.cards.get(name)[0]
    return None


def _compared(card: Card, wanted: Manuscript, repository: str) -> tuple[str, bool] | None:
    """Whether a card covers what is to be written: why, and whether that is sure; None if it speaks of other things."""
    own = card.body.strip("\n")
    if woven(own, wanted.body) == own:
        return "says all of it already", True
    if topic_key(card.topic) == topic_key(wanted.topic):
        return "has the same topic", repository in ("", card.repository)
    here, there = _topic_words(wanted.topic), _topic_words(card.topic)
    shared = here & there
    is_apart = bool(repository and card.repository and card.repository != repository)
    if len(shared) >= 2 and shared in (here, there) and len(shared) >= _NEAR * len(here | there):
        return "is about the same", not is_apart
    if shared and len(shared) >= _NEAR * min(len(here), len(there)):
        return "may be about the same", False
    return None


def _topic_words(topic: str) -> set[str]:
    return {stem_key(word) for word in words_of(topic) if word not in STOP}


def find_contradictions(
    workspace: Workspace, wanted: Manuscript, repository: str, notes: list[str], *, but: str = ""
) -> list[Finding]:
    """Where cards give a thing another value than a text does, each with the line of the text as it was given.

    Who names several values for a thing lists them, and contradicts nobody who names one of these. `but`: the card that
    is added to.
    """
    existing = _read_card(workspace, but) if but else None
    if existing is not None:
        repository = existing.repository or repository
    topic = wanted.topic or (existing.topic if existing is not None else "")
    given: dict[tuple[str, str], list[Value]] = {}
    for value in find_values(wanted.body, topic=topic, repository=repository):
        given.setdefault((value.kind, value.subject), []).append(value)
    found: list[Finding] = []
    try:
        survey = workspace.maintenance.survey() if given else None
    except TruekeepError as error:
        notes.append(f"cards could not be looked through for other values: {error.message}")
        return []
    for (kind, subject), values in given.items():
        value = values[0]
        if survey is None or any(not agree(kind, value.value, other.value) for other in values):
            continue
        by_path: dict[str, list[Value]] = {}
        for said in survey.said(kind, subject):
            is_apart = bool(repository and said.repository and said.repository != repository)
            if said.store == "cards" and said.path != f"{CARDS}/{but}" and not is_apart:
                by_path.setdefault(said.path, []).append(said.value)
        for path, said_there in by_path.items():
            if not any(agree(kind, value.value, other.value) for other in said_there):
                other = said_there[0]
                told = f"{subject} {kind} is {value.value} here, and {path}:{other.line} says {other.value}"
                found.append(Finding("two-values", withhold(printable(told)), wanted.first + value.line - 1))
    return found


# --- Writing ---------------------------------------------------------------------------------------------------------


def write_card(
    workspace: Workspace,
    wanted: Manuscript,
    by: Scribe,
    *,
    update: str = "",
    anyway: bool = False,
    is_seen: bool = False,
    dry_run: bool = False,
) -> CardWriteResult:
    """Write a new card, or add to one.

    A card that surely covers it is AlreadyCovered, unless somebody insists (`anyway`) or saw it (`is_seen`); what the
    judge or the durability filter objects to is InvalidHandoff, each with its line. Where this machine may not write,
    a new card is left as a handoff in the repository.
    """
    covering: list[Covering] = []
    notes: list[str] = []
    if not update:
        covering, notes = find_covering(workspace, wanted, by.repository)
        if any(item.is_sure for item in covering) and not anyway and not is_seen:
            raise covered(covering, by.now.date())
    clashes = find_contradictions(workspace, wanted, by.repository, notes, but=update)
    try:
        if dry_run:
            shelf = workspace.handoffs.memory_view()
            done = _plan(shelf, workspace.config, wanted, by, clashes, update=update, anyway=anyway, is_seen=is_seen)
            return _planned(done, shelf)._replace(covering=tuple(covering), notes=(*notes, *done.notes))
        with workspace.writing("write cards") as books:
            shelf = workspace.handoffs.memory_view(Staging(books.vault))
            done = _plan(shelf, workspace.config, wanted, by, clashes, update=update, anyway=anyway, is_seen=is_seen)
            written = _carry_out(done, shelf, books, by, at=workspace.stamp())
        return written._replace(covering=tuple(covering), notes=(*notes, *done.notes))
    except InvalidHandoff as error:
        if covering:
            error.details["story"] = [f"see also {_told(item, by.now.date())}" for item in covering]
        raise
    except NotCanonical as error:
        if update or by.root is None:
            error.hint = (
                f"what is on a card is changed there; a proposal goes by `truekeep handoff new --update`; {error.hint}"
                if update
                else f"in a repository, this leaves a handoff instead; {error.hint}"
            )
            raise
    left = leave_card(wanted, by, workspace.handoffs.lint, workspace.config, anyway=anyway)
    return left._replace(covering=tuple(covering), notes=tuple(notes))


def covered(covering: Sequence[Covering], today: date) -> AlreadyCovered:
    """Why a new card would be a second one, with the way to the first."""
    sure = [item for item in covering if item.is_sure]
    name = sure[0].card.name.removesuffix(".md")
    return AlreadyCovered(
        f"memory has this already: {sure[0].card.path} {sure[0].why}; nothing was written",
        hint=f"`truekeep card write --update {as_argument(name)}` adds to it, --anyway makes a new card",
        cards=[item.card.name for item in sure],
        story=[_told(item, today) for item in covering],
    )


def _told(item: Covering, today: date) -> str:
    """A card that may cover a topic, in one line."""
    day = item.card.updated
    age = shown_age(max(0, (today - day).days)) if day else "age unknown"
    said = f"; {item.said}" if item.said else ""
    return withhold(printable(f"{item.card.path} ({age}{said}) {item.why}: {item.card.topic}"))


class _Plan(NamedTuple):
    """A card that may be written."""

    filing: Decision
    passed: tuple[Finding, ...]  # what would have stopped it
    hints: tuple[Finding, ...]
    is_update: bool
    notes: tuple[str, ...] = ()


def _plan(
    shelf: StoredMemoryView,
    config: Config,
    wanted: Manuscript,
    by: Scribe,
    clashes: Sequence[Finding],
    *,
    update: str,
    anyway: bool,
    is_seen: bool,
) -> _Plan:
    """The decision of the judge, with a person's word where it does not bind. `clashes`: what other cards deny."""
    notes: list[str] = []
    try:
        if update:
            filing, findings = _judge_update(shelf, config, wanted, by, update, notes)
        else:
            shelf.from_repository(by.root, by.repository)
            filing, findings = _judge(shelf, config, wanted, by, _free_name(shelf, wanted, by.repository))
    except Retry as error:
        raise EditedSince(f"{error} changed while it was read", hint="run it again") from error
    findings = [*findings, *clashes]
    stops = [finding for finding in findings if _is_stop(finding, config)]
    check_stops(stops, passes=stops if anyway else [item for item in stops if is_seen and item.code in _COVERS])
    if filing.outcome in ("review", "refused"):
        raise refusal(filing.blocking or findings)
    hints = tuple(finding for finding in findings if finding not in stops)
    return _Plan(filing, tuple(stops), hints, bool(update), tuple(notes))


def _is_stop(finding: Finding, config: Config) -> bool:
    return finding.code in DURABILITY or RULES[finding.code].binding or config.policy_for(finding.code) != "promote"


def check_stops(stops: Sequence[Finding], *, passes: Sequence[Finding]) -> None:
    """Raise what keeps a text from being written, but for what somebody passes; what binds, nobody can."""
    left = [finding for finding in stops if RULES[finding.code].binding or finding not in passes]
    if left:
        raise refusal(left)


def refusal(stops: Sequence[Finding]) -> InvalidHandoff:
    """Why something is not written, all reasons at once."""
    if any(RULES[finding.code].binding for finding in stops):
        return InvalidHandoff("this cannot be written as it is", stops, hint="mend the text; nothing was written")
    if all(finding.code == "two-values" for finding in stops):
        what, hint = "memory says otherwise", "mend whichever does not hold; --anyway writes it, and both stand there"
    elif all(finding.code in DURABILITY for finding in stops):
        what, hint = "this does not last, or is kept better elsewhere", "leave out these lines; --anyway writes them"
    else:
        what, hint = "this was not written", "mend the text; --anyway writes it all the same"
    return InvalidHandoff(what, stops, hint=hint)


def _free_name(shelf: StoredMemoryView, wanted: Manuscript, repository: str) -> str:
    """The name of a new card: the chosen one or none; one made of the topic gets a number where it is taken."""
    if wanted.name:
        if why := check_card_name(wanted.name):
            raise BadInput(f"{printable(wanted.name)!r} cannot name a card: {why}", hint="choose another name")
        if not _is_free(shelf, wanted.name):
            raise BadInput(
                f"there is a card {wanted.name} already",
                hint=f"`truekeep card write --update {as_argument(wanted.name)}` adds to it;"
                " another NAME makes a second one",
            )
        return wanted.name
    if not any(map(str.isalnum, wanted.topic)):
        raise BadInput("the topic gives no name for the card", hint="name it: `truekeep card write NAME --topic …`")
    slug = default_card_name(wanted.topic, repository).removesuffix(".md")
    names = (f"{slug}.md" if number == 1 else f"{slug}-{number}.md" for number in range(1, _NAMES))
    name = next((name for name in names if not check_card_name(name) and _is_free(shelf, name)), "")
    if not name:
        raise BadInput(
            f"all names like {slug}.md are taken", hint="name the card: `truekeep card write NAME --topic …`"
        )
    return name


def _is_free(shelf: StoredMemoryView, name: str) -> bool:
    try:
        return shelf.read(f"{CARDS}/{name}") is None and shelf.find_clash(name) is None
    except (UnsafePath, ChangedSince):
        return False


def _compose(wanted: Manuscript, name: str, *, update: bool = False) -> str:
    kind = wanted.front.text("category")
    return compose_handoff(
        title=wanted.topic or name.removesuffix(".md"),
        kind=kind if kind in HANDOFF_TYPES else "project-context",
        card=name,
        update=update,
        content=f"{wanted.front.render()}\n{wanted.body}\n",
    )


def _judge(
    shelf: MemoryView, config: Config, wanted: Manuscript, by: Scribe, name: str, *, update: bool = False
) -> tuple[Decision, list[Finding]]:
    """What the judge of ingest makes of it, approved; its findings with the lines of the text as it was given."""
    text = _compose(wanted, name, update=update)
    raw = text.encode("utf-8", "surrogateescape")
    candidate = IncomingHandoff(
        raw=raw if len(raw) <= config.limits.handoff_bytes else None,
        name=handoff_name(wanted.topic or name, by.now),
        size=len(raw),
        repository=by.repository,
        writer=by.writer,
    )
    filing = plan_filing(candidate, shelf, config, today=by.now.date(), now=by.now, approved=True)
    return filing, _placed(filing.findings, text, wanted)


def _placed(findings: Iterable[Finding], text: str, wanted: Manuscript) -> list[Finding]:
    """Findings with the lines of the text as it was given; none for what the rest of the handoff repeats."""
    start = text[: text.rindex(wanted.body)].count("\n") + 1
    placed = (
        finding._replace(line=finding.line - start + wanted.first if finding.line and finding.line >= start else None)
        for finding in findings
    )
    return list(dict.fromkeys(placed))


class _TextShelf(EmptyShelf):
    """A shelf for judging a text alone: what the repository says to it, and nothing of the store."""

    def __init__(self, shelf: StoredMemoryView) -> None:
        self._shelf = shelf

    def instructions(self) -> str:
        return self._shelf.instructions()

    def hold(self, content: str, day: date) -> tuple[str, list[tuple[str, str]]]:
        return self._shelf.hold(content, day)


def _judge_update(
    shelf: StoredMemoryView, config: Config, wanted: Manuscript, by: Scribe, update: str, notes: list[str]
) -> tuple[Decision, list[Finding]]:
    """The new lines are judged by themselves: what the card says already was judged when it came.

    That it has a twin, and had it before, keeps nobody from adding to it; that is noted.
    """
    existing = _existing(shelf, update)
    if existing.repository and existing.repository != by.repository and not by.is_named:
        by = by._replace(root=None, repository=existing.repository)
    titled = wanted._replace(front=wanted.front.with_text("topic", wanted.topic or existing.topic))
    shelf.from_repository(by.root, by.repository)
    alone, findings = _judge(_TextShelf(shelf), config, titled, by, existing.name)
    held = parse_card(existing.name, decode_text(alone.data) or "").body if alone.data is not None else wanted.body
    body = woven(existing.body.strip("\n"), held.strip("\n")).rstrip()
    whole = wanted._replace(front=_added_keys(wanted, existing), body=body)
    apart = shelf.apart()
    filing, more = _judge(apart, config, whole, by, existing.name, update=True)
    known = {finding.code for finding in findings}
    twin = _twin(apart, existing) if any(item.code in _COVERS for item in more) else ""
    if twin:
        notes.append(f"{twin}, and did so before: `truekeep tidy duplicates` proposes how to merge them")
        known.update(_COVERS)
    of_store = [
        item for item in more if item.code not in known and (RULES[item.code].binding or item.code not in _TEXT)
    ]
    return filing, findings + [item._replace(line=None) for item in of_store]


def _twin(shelf: MemoryView, card: Card) -> str:
    """The card that covers what this one says, and how; nothing if there is none."""
    if (other := shelf.find_same_topic(topic_key(card.topic), card.repository, card.name)) is not None:
        return f"{CARDS}/{other} has the same topic"
    if (other := shelf.find_near(sketch(card), card.name)) is not None:
        return f"{CARDS}/{other} says nearly the same"
    return ""


def _added_keys(wanted: Manuscript, existing: Card) -> Frontmatter:
    """What a manuscript says besides the frontmatter of a card: keys that this does not have, and further tags."""
    front = Frontmatter(tuple(field for field in wanted.front.fields if not existing.front.find(field.key)))
    tags = wanted.front.items("tags")
    if existing.tags and set(tags) - set(existing.tags):
        return _with_tags(front, dict.fromkeys((*existing.tags, *tags)))
    return front


def _existing(shelf: StoredMemoryView, name: str) -> Card:
    try:
        data = shelf.read(f"{CARDS}/{name}")
    except UnsafePath as error:
        raise BadInput(str(error), hint="a card is a plain file in memory/cards") from error
    except ChangedSince as error:
        raise EditedSince(f"{CARDS}/{name} changed while it was read", hint="run it again") from error
    text = decode_text(data) if data is not None else None
    if text is None:
        what = "is not UTF-8 text" if data is not None else "is gone"
        raise BadInput(f"{CARDS}/{name} {what}", hint="`truekeep card list` shows the cards")
    existing = parse_card(name, text)
    if existing.problem:
        raise BadInput(f"{CARDS}/{name}, {existing.problem}", hint="mend its frontmatter by hand first")
    return existing


def _planned(plan: _Plan, shelf: StoredMemoryView) -> CardWriteResult:
    filing = plan.filing
    old = shelf.read(filing.target)
    told = difference(old, filing.data, filing.target) if filing.data is not None else ()
    outcome: Literal["already", "planned"] = "already" if filing.outcome == "already" else "planned"
    codes = tuple(dict.fromkeys(finding.code for finding in plan.passed))
    return CardWriteResult(outcome, filing.target, filing.topic, plan.hints, codes, difference=tuple(told))


def _carry_out(
    plan: _Plan, shelf: StoredMemoryView, books: MemoryTransaction, by: Scribe, *, at: str
) -> CardWriteResult:
    filing = plan.filing
    codes = tuple(dict.fromkeys(finding.code for finding in plan.passed))
    passed = f" (--anyway: {', '.join(codes)})" if codes else ""
    shelf.stage(filing, 0)
    stamps: dict[str, FileStamp] = {}
    is_changed = bool(shelf.staging.changes())
    try:
        if is_changed:
            note = f"{withhold(printable(filing.topic))[:150]}{passed}"
            stamps = books.act(shelf.staging, LedgerEntry(at=at, verb="written", actor=by.actor, note=note))
    finally:
        shelf.settle(stamps)
    entry = next(books.ledger.entries(limit=1)).id if is_changed else None
    outcome: Literal["already", "updated", "written"] = "updated" if plan.is_update else "written"
    outcome = "already" if filing.outcome == "already" else outcome
    return CardWriteResult(outcome, filing.target, filing.topic, plan.hints, codes, entry=entry)


def leave_card(wanted: Manuscript, by: Scribe, judge: Lint, config: Config, *, anyway: bool = False) -> CardWriteResult:
    """Leave a new card as a handoff in the repository's inbox, for the host to judge again."""
    assert by.root is not None
    name = wanted.name or default_card_name(wanted.topic, by.repository)
    text = _compose(wanted, name)
    raw, file_name = text.encode("utf-8", "surrogateescape"), handoff_name(wanted.topic, by.now)
    (filing,) = judge([(raw, file_name, by.root)])
    findings = _placed(filing.findings, text, wanted)
    stops = [finding for finding in findings if _is_stop(finding, config)]
    check_stops(stops, passes=stops if anyway else ())
    chosen = by.writer if by.writer in config.writers else next(iter(config.writers))
    inbox = Inbox(root=by.root, folder=config.writers[chosen], writer=chosen)
    left = deliver(inbox, file_name, raw)
    hints = tuple(finding for finding in findings if finding not in stops)
    codes = tuple(dict.fromkeys(finding.code for finding in stops))
    return CardWriteResult("left", str(left), wanted.topic, hints, codes)


# --- Confirming and dropping -----------------------------------------------------------------------------------------


def confirm_card(
    workspace: Workspace, wanted: str, *, actor: str, seen: bytes | None = None
) -> tuple[str, date, int | None]:
    """Note that a person says a card still holds. Gives its path, the day, and the entry if that is new.

    `seen`: the card as the person saw it.
    """
    with workspace.writing("confirm cards") as books:
        name, stored = workspace.cards.get_file(wanted)
        if seen not in (None, stored.data):
            raise EditedSince(f"{CARDS}/{name} changed meanwhile; nothing was written", hint="look at it, then confirm")
        day = workspace.today()
        splice = confirmation(name, stored.data, day)
        if splice is None:
            return f"{CARDS}/{name}", day, None
        staging = Staging(books.vault)
        if staging.read(splice.path) != stored.data:
            raise EditedSince(f"{splice.path} changed just now; nothing was written", hint="look at it, run it again")
        staging.splice(splice, 0)
        note = f"{name}: holds, as of {day}"
        books.act(staging, LedgerEntry(at=workspace.stamp(), verb="confirmed", actor=actor, note=note))
        return splice.path, day, next(books.ledger.entries(limit=1)).id


def confirmation(name: str, data: bytes, day: date) -> Splice | None:
    """The one line of a card's frontmatter that says when it was confirmed; None if it says that already."""
    path = f"{CARDS}/{name}"
    text = decode_text(data)
    if text is None:
        raise BadInput(f"{path} is not UTF-8 text", hint="open it in an editor and save it as UTF-8")
    card = parse_card(name, text)
    if card.problem:
        raise BadInput(f"{path}, {card.problem}", hint="mend its frontmatter by hand first")
    if not text.strip():
        raise BadInput(f"{path} is empty: it says nothing that could hold", hint="write it in an editor, or drop it")
    if card.body == text:
        what = "has no frontmatter: it says neither what it is about nor how old it is"
        hint = "put ---, topic: …, created: YYYY-MM-DD and --- above its text, then confirm it"
        raise BadInput(f"{path} {what}", hint=hint)
    if card.confirmed == day:
        return None
    offset, removed, inserted = place_field(data, card, "confirmed", day.isoformat())
    return Splice(path=path, offset=offset, removed=removed, inserted=inserted)


class CardDropResult(NamedTuple):
    """A card that is gone from memory, and what of the index is left to a person."""

    path: str
    entry: int
    left: tuple[str, ...]  # lines of the index that speak of it in other words


def drop_card(
    workspace: Workspace, wanted: str, *, reason: str, actor: str, seen: bytes | None = None
) -> CardDropResult:
    """Remove a card and the lines that only point at it, as one entry. `seen`: the card as the person saw it."""
    why = withhold(printable(" ".join(reason.split())))
    if not why:
        raise BadInput("there is no reason", hint="say why in a few words: --reason TEXT")
    with workspace.writing("drop cards") as books:
        name, stored = workspace.cards.get_file(wanted)
        path = f"{CARDS}/{name}"
        staging = Staging(books.vault)
        if staging.read(path) != stored.data or seen not in (None, stored.data):
            raise EditedSince(f"{path} changed meanwhile; nothing was dropped", hint="look at it and run it again")
        staging.put(path, None, 0)
        try:
            left = staging.unpoint(name, 0)
        except UnsafePath as error:
            raise BadInput(str(error), hint="put a plain file there and run it again") from error
        note = f"{name}: {why}"[:300]
        books.act(staging, LedgerEntry(at=workspace.stamp(), verb="dropped", actor=actor, note=note))
        return CardDropResult(
            path, next(books.ledger.entries(limit=1)).id, tuple(withhold(printable(line)) for line in left)
        )
