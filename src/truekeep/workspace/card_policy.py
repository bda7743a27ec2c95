"""Decides if a card may be written: the policy of ingest, with the author's approval, and the durability filter.

Text that code, git, an instruction file or a task list keeps better is refused unless the author insists; the ledger
records that they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, as_argument
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, RULES, Finding
from truekeep.handoffs.format import default_card_name, handoff_name
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, MemoryView, Retry
from truekeep.handoffs.policy.instructed import InstructionLine
from truekeep.handoffs.policy.plan import plan_filing
from truekeep.memory.card import Card, check_card_name, parse_card
from truekeep.memory.frontmatter import Frontmatter
from truekeep.memory.merge import merge_texts
from truekeep.memory.similarity import sketch, topic_key
from truekeep.text.durability import NOT_DURABLE
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import printable
from truekeep.workspace.card_text import CardAuthor, CardText, compose, with_tags

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.handoffs.policy_store import StoredMemoryView
    from truekeep.verify.content_verifier import ContentCheck

DURABILITY = NOT_DURABLE
"""Findings about text that does not last, or that is kept better elsewhere: ingest reports them, `card write` stops."""

COVERED = ("same-topic", "near-duplicate")
TEXT_FINDINGS = (
    *("instruction", "hidden-text", "own-words", "refuted", "relative-time", "dangling-reference"),
    *DURABILITY,
)
"""Findings about lines; of a card that is added to, only the new lines are judged for them."""

MAX_NAME_NUMBER = 1_000


class CardPlan(NamedTuple):
    """A card that may be written."""

    filing: Decision
    passed: tuple[Finding, ...]  # findings that were overridden
    hints: tuple[Finding, ...]
    is_update: bool
    notes: tuple[str, ...] = ()


def plan_card(
    shelf: StoredMemoryView,
    config: Config,
    wanted: CardText,
    by: CardAuthor,
    clashes: Sequence[Finding],
    *,
    update: str,
    anyway: bool,
    is_seen: bool,
) -> CardPlan:
    """The decision of the policy, with the author's approval where it may be overridden.

    `clashes`: values that other cards contradict.
    """
    notes: list[str] = []
    try:
        if update:
            filing, findings = _judge_update(shelf, config, wanted, by, update, notes)
        else:
            shelf.from_repository(by.root, by.repository)
            filing, findings = _judge(shelf, config, wanted, by, _free_name(shelf, wanted, by.repository))
    except Retry as error:
        raise EditedSince(f"{error} changed while it was read", hint="run it again") from error
    findings = [*(item for item in findings if item.code != "two-values"), *clashes]
    stops = [finding for finding in findings if is_stop(finding, config)]
    check_stops(stops, passes=stops if anyway else [item for item in stops if is_seen and item.code in COVERED])
    if filing.outcome in ("review", "refused"):
        raise refusal(filing.blocking or findings)
    hints = tuple(finding for finding in findings if finding not in stops)
    return CardPlan(filing, tuple(stops), hints, bool(update), tuple(notes))


def is_stop(finding: Finding, config: Config) -> bool:
    return finding.code in DURABILITY or RULES[finding.code].binding or config.policy_for(finding.code) != "promote"


def check_stops(stops: Sequence[Finding], *, passes: Sequence[Finding]) -> None:
    """Raise the findings that stop the write, except those in `passes`. Binding ones cannot be passed."""
    left = [finding for finding in stops if RULES[finding.code].binding or finding not in passes]
    if left:
        raise refusal(left)


def refusal(stops: Sequence[Finding]) -> InvalidHandoff:
    """The error that lists all findings that stop a write."""
    if any(RULES[finding.code].binding for finding in stops):
        return InvalidHandoff("this cannot be written as it is", stops, hint="fix the text; nothing was written")
    if all(finding.code == "two-values" for finding in stops):
        what, hint = "memory says otherwise", "fix the one that is wrong; --anyway writes it, and memory then has both"
    elif all(finding.code in DURABILITY for finding in stops):
        what, hint = "this does not last, or is kept better elsewhere", "leave out these lines; --anyway writes them"
    else:
        what, hint = "this was not written", "fix the text; --anyway writes it as it is"
    return InvalidHandoff(what, stops, hint=hint)


def _free_name(shelf: StoredMemoryView, wanted: CardText, repository: str) -> str:
    """The name of a new card: the chosen one, or one made of the topic, with a number if that is taken."""
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
    names = (f"{slug}.md" if number == 1 else f"{slug}-{number}.md" for number in range(1, MAX_NAME_NUMBER))
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


def _judge(
    shelf: MemoryView, config: Config, wanted: CardText, by: CardAuthor, name: str, *, update: bool = False
) -> tuple[Decision, list[Finding]]:
    """The decision of the ingest policy, approved, and its findings with the line numbers of the given text."""
    text = compose(wanted, name, update=update)
    raw = text.encode("utf-8", "surrogateescape")
    candidate = IncomingHandoff(
        raw=raw if len(raw) <= config.limits.handoff_bytes else None,
        name=handoff_name(wanted.topic or name, by.now),
        size=len(raw),
        repository=by.repository,
        writer=by.writer,
    )
    filing = plan_filing(candidate, shelf, config, today=by.now.date(), now=by.now, approved=True)
    return filing, at_given_lines(filing.findings, text, wanted)


def at_given_lines(findings: Iterable[Finding], text: str, wanted: CardText) -> list[Finding]:
    """The findings with line numbers of the given text; without repetitions from the rest of the handoff."""
    start = text[: text.rindex(wanted.body)].count("\n") + 1
    placed = (
        finding._replace(line=finding.line - start + wanted.first if finding.line and finding.line >= start else None)
        for finding in findings
    )
    return list(dict.fromkeys(placed))


class _TextOnlyView(MemoryView):
    """A view for judging a text alone: with its repository, without the cards of the workspace."""

    def __init__(self, shelf: StoredMemoryView) -> None:
        self._shelf = shelf

    def instructions(self) -> Sequence[InstructionLine]:
        return self._shelf.instructions()

    def check_content(self, content: str, day: date) -> ContentCheck:
        return self._shelf.check_content(content, day)


def _judge_update(
    shelf: StoredMemoryView, config: Config, wanted: CardText, by: CardAuthor, update: str, notes: list[str]
) -> tuple[Decision, list[Finding]]:
    """Judge only the new lines: the others were judged when they came.

    A card that has a duplicate already may be added to; `notes` says so.
    """
    existing = _existing(shelf, update)
    if existing.repository and existing.repository != by.repository and not by.is_named:
        by = by._replace(root=None, repository=existing.repository)
    titled = wanted._replace(front=wanted.front.with_text("topic", wanted.topic or existing.topic))
    shelf.from_repository(by.root, by.repository)
    alone, findings = _judge(_TextOnlyView(shelf), config, titled, by, existing.name)
    held = parse_card(existing.name, decode_text(alone.data) or "").body if alone.data is not None else wanted.body
    body = merge_texts(existing.body.strip("\n"), held.strip("\n")).rstrip()
    whole = wanted._replace(front=_added_keys(wanted, existing), body=body)
    apart = shelf.apart()
    filing, more = _judge(apart, config, whole, by, existing.name, update=True)
    known = {finding.code for finding in findings}
    twin = _twin(apart, existing) if any(item.code in COVERED for item in more) else ""
    if twin:
        notes.append(f"{twin}, and did so before: `truekeep tidy duplicates` proposes how to merge them")
        known.update(COVERED)
    of_store = [
        item for item in more if item.code not in known and (RULES[item.code].binding or item.code not in TEXT_FINDINGS)
    ]
    return filing, findings + [item._replace(line=None) for item in of_store]


def _twin(shelf: MemoryView, card: Card) -> str:
    """The card that duplicates this one, and how; "" if there is none."""
    if (other := shelf.find_same_topic(topic_key(card.topic), card.repository, card.name)) is not None:
        return f"{CARDS}/{other} has the same topic"
    if (other := shelf.find_near(sketch(card), card.name)) is not None:
        return f"{CARDS}/{other} says nearly the same"
    return ""


def _added_keys(wanted: CardText, existing: Card) -> Frontmatter:
    """The frontmatter that the text adds to the card: keys that it does not have, and further tags."""
    front = Frontmatter(tuple(field for field in wanted.front.fields if not existing.front.find(field.key)))
    tags = wanted.front.items("tags")
    if existing.tags and set(tags) - set(existing.tags):
        return with_tags(front, dict.fromkeys((*existing.tags, *tags)))
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
        raise BadInput(f"{CARDS}/{name}, {existing.problem}", hint="fix its frontmatter in an editor first")
    return existing
