"""Repositories: the checkouts on this machine, the cards that belong to each, and cards that name none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadSetup
from truekeep.core.machine import person
from truekeep.core.model import CARDS
from truekeep.core.state_dir import STATE
from truekeep.memory.card import parse_card
from truekeep.verify.cache import retry_if_damaged
from truekeep.verify.checkouts import (
    choose_checkout,
    expand_repositories,
    find_below,
    find_checkouts,
    find_home,
    is_of_workspace,
)

if TYPE_CHECKING:
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.match_repositories import AssignmentOutcome, Match, Matching
    from truekeep.workspace.workspace import Workspace


class Repositories:
    """The repositories that one workspace's memory is about."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def folders(self) -> list[Path]:
        """The folders that may hold checkouts: the configured ones, then those below the workspace."""
        config = self._context.config
        configured = expand_repositories((*config.verify.checkouts, *config.repositories))
        return [*configured, *find_below(self._context.path)]

    def home(self) -> str:
        """The repository that the workspace is, or is in; empty if it is in none."""
        return find_home(self._context.path)

    def checkouts(self) -> list[Checkout]:
        """The checkouts on this machine; of two with the same name, the one that memory knows."""
        return retry_if_damaged(lambda: self._without_same_names(find_checkouts(self.folders(), self._context.facts)))

    def _without_same_names(self, found: list[Checkout]) -> list[Checkout]:
        """Leave out checkouts that have the name of another one, with a notice for each."""
        names = [name.lower() for item in found for name in item.names[:-1]]
        if len(set(names)) == len(names):
            return found
        from truekeep.verify.same_name_checkouts import first_checkout, mark_same_names

        context = self._context

        def first(name: str) -> Path | None:
            try:
                return first_checkout(context.ledger, name, context.machine.name, context.config.writers)
            except BadSetup:
                return None  # the next ingest reports a damaged ledger

        kept, notices = mark_same_names(found, first, context.facts)
        context.notices += [notice for notice in notices if notice not in context.notices]
        return kept

    def same_names(self) -> tuple[str, ...]:
        """One sentence for each checkout that is not used because another has its name; nothing is written."""
        from truekeep.verify.same_name_checkouts import find_same_names

        context = self._context
        state, writers = str(context.path / STATE), context.config.writers
        return find_same_names(self.folders(), state=state, machine=context.machine.name, writers=writers)

    def checkout_of(self, repository: str) -> str:
        """The folder of a repository's checkout on this machine, or ""."""
        chosen = choose_checkout(repository, self.checkouts())
        return chosen.root if chosen is not None and not chosen.problem else ""

    def count_cards(self) -> tuple[list[tuple[Checkout, int]], dict[str, int]]:
        """The checkouts here, each with the number of its cards; and repositories without a checkout, likewise."""
        known = self.checkouts()
        counts: dict[str, int] = {}
        missing: dict[str, int] = {}
        for card in self._workspace.cards.all():
            chosen = choose_checkout(card.repository, known)
            if chosen is not None:
                counts[chosen.root] = counts.get(chosen.root, 0) + 1
            elif card.repository and not is_of_workspace(card.repository, str(self._context.path)):
                missing[card.repository] = missing.get(card.repository, 0) + 1
        return [(item, counts.get(item.root, 0)) for item in known], missing

    def match(
        self, files: Sequence[str] = (), *, progress: Callable[[str, int, int], None] = lambda *_: None
    ) -> tuple[list[Match], list[str]]:
        """Find the repositories of cards that name none: of these files, else of all cards. Also what was left out."""
        reader = self._workspace.verification.reader
        memories = list(dict.fromkeys(memory for memory, _ in reader.files(files))) if files else reader.cards()
        without_repository, left = [], list[str]()
        for memory in memories:
            if not memory.path.startswith(f"{CARDS}/"):
                left.append(f"{memory.path}: not a card; only a card's frontmatter names its repository")
            elif name := memory.origin.repository or parse_card(memory.path.rpartition("/")[2], memory.text).repository:
                left += [f"{memory.path}: it says already that it is about {name}"] if files else []
            else:
                without_repository.append(memory)
        found, unread = self._matching().find(without_repository, self.checkouts, progress=progress)
        return found, [*left, *unread]

    def assign(self, matches: Sequence[Match]) -> list[AssignmentOutcome]:
        """Write the matched repositories into their cards, one ledger entry each."""
        with self._context.writing("name repositories"):
            return self._matching().write(matches, self._context.transaction, actor=person())

    def _matching(self) -> Matching:
        from truekeep.verify.match_repositories import Matching  # heavy: it reads code

        return Matching(str(self._context.path), self._context.facts, now=self._context.now())
