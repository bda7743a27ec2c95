"""Cards: list, look up, write, confirm, split files into them, join and drop them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, NotCanonical
from truekeep.core.file_io import UnsafePath
from truekeep.core.model import CARDS, Splice
from truekeep.handoffs.format import topic_slug
from truekeep.memory.card import parse_card, place_field
from truekeep.memory.frontmatter import Frontmatter, text_field
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.lookup import card_names, get_card, get_card_file, iter_cards
from truekeep.memory.staging import Staging
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.memory.card import Card
    from truekeep.memory.ledger import HandoffRow
    from truekeep.memory.staging import FileOnDisk
    from truekeep.workspace.card_overlap import CoveringCard
    from truekeep.workspace.card_splitting import JoinResult, SplitRequest, SplitResult
    from truekeep.workspace.card_text import CardAuthor, CardText
    from truekeep.workspace.card_writing import CardWriteResult
    from truekeep.workspace.workspace import Workspace


class CardDropResult(NamedTuple):
    """A dropped card, and the index lines about it that a person has to edit."""

    path: str
    entry: int
    left: tuple[str, ...]  # index lines that mention it in other words


class ConsolidationResult(NamedTuple):
    """A card that stands for several in the index, and the index lines about them that a person has to edit."""

    path: str
    cards: tuple[str, ...]
    entry: int
    left: tuple[str, ...]


class Cards:
    """The cards of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def all(self) -> Iterator[Card]:
        """Every card, by name."""
        return iter_cards(self._context.vault)

    def names(self) -> list[str]:
        """The file names of all cards, unordered; no card is read."""
        return card_names(self._context.vault)

    def count(self) -> int:
        return len(self.names())

    def exists(self, name: str) -> bool:
        """True if there is a card file of this name."""
        return (self._context.path / CARDS / name).is_file()

    def get(
        self, wanted: str, *, partly: bool = False, masked: bool = False
    ) -> tuple[Card, str, LedgerEntry | None, HandoffRow | None]:
        """One card, its text, and the entry and handoff that last wrote it.

        `partly` also finds it by the beginning of its name; `masked` hides credentials.
        """
        card, text = get_card(self._context.vault, wanted, partly=partly, masked=masked)
        entry, record = next(self._workspace.history.entries(f"{CARDS}/{card.name}", limit=1), (None, None))
        return card, text, entry, record

    def get_file(self, wanted: str) -> tuple[str, FileOnDisk]:
        """A card's name and its file, by name, path or citation."""
        return get_card_file(self._context.vault, wanted)

    # Writing.

    def find_covering(self, wanted: CardText, repository: str = "") -> list[CoveringCard]:
        """Cards that may cover the topic already, the surest first."""
        from truekeep.workspace.card_overlap import find_covering

        return find_covering(self._workspace, wanted, repository)[0]

    def write(
        self,
        wanted: CardText,
        by: CardAuthor,
        *,
        update: str = "",
        anyway: bool = False,
        is_seen: bool = False,
        dry_run: bool = False,
    ) -> CardWriteResult:
        """Write a new card, or add to one.

        Raises AlreadyCovered if a card surely covers it, unless the author insists (`anyway`) or saw it (`is_seen`);
        InvalidHandoff with the findings of the policy and the durability filter. On a machine that may not write, a
        new card becomes a handoff in the repository.
        """
        from truekeep.workspace.card_overlap import (
            already_covered,
            describe_covering,
            find_contradictions,
            find_covering,
        )
        from truekeep.workspace.card_policy import plan_card  # loads the policy, which readers do not need
        from truekeep.workspace.card_writing import leave_card, planned_result, write_planned

        covering: list[CoveringCard] = []
        notes: list[str] = []
        if not update:
            covering, notes = find_covering(self._workspace, wanted, by.repository)
            if any(item.is_sure for item in covering) and not anyway and not is_seen:
                raise already_covered(covering, by.now.date())
        clashes = find_contradictions(self._workspace, wanted, by.repository, notes, but=update)
        try:
            if dry_run:
                view = self._workspace.handoffs.memory_view()
                done = plan_card(
                    view, self._workspace.config, wanted, by, clashes, update=update, anyway=anyway, is_seen=is_seen
                )
                return planned_result(done, view)._replace(covering=tuple(covering), notes=(*notes, *done.notes))
            with self._workspace.writing("write cards") as transaction:
                view = self._workspace.handoffs.memory_view(Staging(transaction.vault))
                done = plan_card(
                    view, self._workspace.config, wanted, by, clashes, update=update, anyway=anyway, is_seen=is_seen
                )
                written = write_planned(done, view, transaction, by, at=self._workspace.stamp())
            return written._replace(covering=tuple(covering), notes=(*notes, *done.notes))
        except InvalidHandoff as error:
            if covering:
                error.details["story"] = [f"see also {describe_covering(item, by.now.date())}" for item in covering]
            raise
        except NotCanonical as error:
            if update or by.root is None:
                error.hint = (
                    f"cards are changed there; `truekeep handoff new --update` proposes a change; {error.hint}"
                    if update
                    else f"in a repository, this leaves a handoff instead; {error.hint}"
                )
                raise
        left = leave_card(wanted, by, self._workspace.handoffs.lint, self._workspace.config, anyway=anyway)
        return left._replace(covering=tuple(covering), notes=tuple(notes))

    def confirm(self, wanted: str, *, actor: str, seen: bytes | None = None) -> tuple[str, date, int | None]:
        """Record that a person says a card still holds. Gives its path, the day, and the entry unless it has that day.

        `seen`: the card as the person saw it.
        """
        with self._workspace.writing("confirm cards") as transaction:
            name, stored = self.get_file(wanted)
            if seen not in (None, stored.data):
                raise EditedSince(
                    f"{CARDS}/{name} changed meanwhile; nothing was written", hint="look at it, then confirm"
                )
            day = self._workspace.today()
            splice = confirmation(name, stored.data, day)
            if splice is None:
                return f"{CARDS}/{name}", day, None
            staging = Staging(transaction.vault)
            if staging.read(splice.path) != stored.data:
                raise EditedSince(
                    f"{splice.path} changed just now; nothing was written", hint="look at it, run it again"
                )
            staging.splice(splice, 0)
            note = f"{name}: holds, as of {day}"
            transaction.act(staging, LedgerEntry(at=self._workspace.stamp(), verb="confirmed", actor=actor, note=note))
            return splice.path, day, next(transaction.ledger.entries(limit=1)).id

    def preview_split(self, request: SplitRequest) -> SplitResult:
        """What splitting a file into cards would do. Writes nothing."""
        from truekeep.workspace.card_splitting import preview_split

        return preview_split(self._workspace, request)

    def split(self, request: SplitRequest, *, actor: str, seen: bytes | None = None) -> SplitResult:
        """Move sections of a file to cards, as one entry. `seen`: the file as the person saw it."""
        from truekeep.workspace.card_splitting import split_file

        return split_file(self._workspace, request, actor=actor, seen=seen)

    def preview_join(self, names: Sequence[str], into: str, *, rewrites_links: bool = False) -> JoinResult:
        """What putting cards back into a file would do. Writes nothing."""
        from truekeep.workspace.card_splitting import preview_join

        return preview_join(self._workspace, names, into, rewrites_links=rewrites_links)

    def join(self, names: Sequence[str], into: str, *, actor: str, rewrites_links: bool = False) -> JoinResult:
        """Put cards back into a file as sections, as one entry."""
        from truekeep.workspace.card_splitting import join_cards

        return join_cards(self._workspace, names, into, actor=actor, rewrites_links=rewrites_links)

    def consolidate(self, topic: str, wanted: Sequence[str], *, actor: str) -> ConsolidationResult:
        """Put one line for a new card that lists some cards in the place of their lines in the index, as one entry."""
        subject = withhold(printable(" ".join(topic.split())))
        name = f"{topic_slug(subject)}.md"
        if not subject or not topic_slug(subject):
            raise BadInput("there is no topic", hint="name what the cards have in common, such as Importer")
        with self._workspace.writing("consolidate cards") as transaction:
            members = list(dict.fromkeys(self.get_file(card)[0] for card in wanted))
            if len(members) < 2:
                raise BadInput("at least two cards are needed", hint="name them, or choose them with --matching WORD")
            staging = Staging(transaction.vault)
            if name in members or staging.read(f"{CARDS}/{name}") is not None:
                raise BadInput(
                    f"{CARDS}/{name} exists", hint="choose another topic, or add the links to it in an editor"
                )
            day = self._workspace.today().isoformat()
            topics = {card: parse_card(card, decode_text(self.get_file(card)[1].data) or "").topic for card in members}
            lines = [f"- [{topics[card] or card.removesuffix('.md')}]({card})" for card in members]
            front = (text_field("topic", subject), text_field("category", "index"), text_field("tags", "index"))
            dates = (text_field("created", day), text_field("updated", day))
            text = Frontmatter((*front, *dates)).render() + "\n" + "\n".join(lines) + "\n"
            staging.put(f"{CARDS}/{name}", text.encode(), 0)
            left = [line for card in members for line in staging.unpoint(card, 0)]
            staging.point_at(name, subject, 0)
            note = f"{len(members)} cards under {name}"
            transaction.act(
                staging, LedgerEntry(at=self._workspace.stamp(), verb="consolidated", actor=actor, note=note)
            )
            shown = tuple(withhold(printable(line)) for line in left)
            entry = next(transaction.ledger.entries(limit=1)).id
        return ConsolidationResult(f"{CARDS}/{name}", tuple(f"{CARDS}/{card}" for card in members), entry, shown)

    def drop(self, wanted: str, *, reason: str, actor: str, seen: bytes | None = None) -> CardDropResult:
        """Remove a card and the lines that only point at it, as one entry. `seen`: the card as the person saw it."""
        why = withhold(printable(" ".join(reason.split())))
        if not why:
            raise BadInput("there is no reason", hint="say why in a few words: --reason TEXT")
        with self._workspace.writing("drop cards") as transaction:
            name, stored = self.get_file(wanted)
            path = f"{CARDS}/{name}"
            staging = Staging(transaction.vault)
            if staging.read(path) != stored.data or seen not in (None, stored.data):
                raise EditedSince(f"{path} changed meanwhile; nothing was dropped", hint="look at it and run it again")
            staging.put(path, None, 0)
            try:
                left = staging.unpoint(name, 0)
            except UnsafePath as error:
                raise BadInput(str(error), hint="put a plain file there and run it again") from error
            note = f"{name}: {why}"[:300]
            transaction.act(staging, LedgerEntry(at=self._workspace.stamp(), verb="dropped", actor=actor, note=note))
            return CardDropResult(
                path, next(transaction.ledger.entries(limit=1)).id, tuple(withhold(printable(line)) for line in left)
            )


def confirmation(name: str, data: bytes, day: date) -> Splice | None:
    """The edit that sets `confirmed` in a card's frontmatter; None if it has that day already."""
    path = f"{CARDS}/{name}"
    text = decode_text(data)
    if text is None:
        raise BadInput(f"{path} is not UTF-8 text", hint="open it in an editor and save it as UTF-8")
    card = parse_card(name, text)
    if card.problem:
        raise BadInput(f"{path}, {card.problem}", hint="fix its frontmatter in an editor first")
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
