"""Checks the content of a handoff or a card against its repository before it is filed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.verify.checkouts import choose_checkout
from truekeep.verify.options import Options
from truekeep.verify.results import LineOrigin, MemoryText, end_of_day
from truekeep.verify.text_edits import apply_repairs, plan_repairs
from truekeep.verify.verdict import GONE

if TYPE_CHECKING:
    from truekeep.verify.cache import FactsCache
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.verifier import Verifier


class ContentFinding(NamedTuple):
    """A claim that moved, or that code refutes."""

    code: str  # moved-since or refuted
    message: str


class ContentCheck(NamedTuple):
    """The content with moved claims updated, and a finding for each claim that moved or is refuted."""

    content: str
    findings: tuple[ContentFinding, ...] = ()


class ContentVerifier:
    """Checks the contents of one run; each repository is read once."""

    def __init__(self, store: FactsCache, root: str, find_checkouts: Callable[[], list[Checkout]]) -> None:
        self.store, self._root, self._find_checkouts = store, root, find_checkouts

    @cached_property
    def _checkouts(self) -> list[Checkout]:
        return self._find_checkouts()

    @cached_property
    def _verifier(self) -> Verifier:
        from truekeep.verify.verifier import Verifier  # heavy, and most handoffs are of repositories without a checkout

        return Verifier(self.store, self._checkouts, workspace=self._root, options=Options(system=False), reuse=True)

    def check(self, content: str, day: date, root: Path | None, name: str) -> ContentCheck:
        """Check content that was written on a day, against a repository: its folder, else its name."""
        checkout = self._checkout(root, name)
        if not checkout:
            return ContentCheck(content)
        memory = MemoryText("", content, LineOrigin(name, end_of_day(day)))
        (checked,) = self._verifier.check([memory], root=checkout, keep=False)
        edits = [edit for edit in plan_repairs(content, checked.verdicts) if withhold(edit.new) == edit.new]
        repaired = apply_repairs(content, edits)
        if edits and any(verdict.verdict == GONE for verdict in checked.verdicts):
            # A repair may also correct a claim that is gone.
            (checked,) = self._verifier.check([memory._replace(text=repaired)], root=checkout, keep=False)
        found = [ContentFinding("moved-since", printable(f"{edit.shown}: {edit.verdict.why}")) for edit in edits]
        refuted = [verdict for verdict in checked.verdicts if verdict.verdict == GONE]
        found += [ContentFinding("refuted", printable(f"{item.claim.shown}: {item.why}")) for item in refuted]
        return ContentCheck(repaired, tuple(dict.fromkeys(found)))

    def _checkout(self, root: Path | None, name: str) -> str:
        if root is not None:
            return str(root) if os.path.exists(f"{root}/.git") else ""
        chosen = choose_checkout(name, self._checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""
