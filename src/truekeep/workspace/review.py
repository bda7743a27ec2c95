"""The review queue: list, show, approve, reject, edit and retry drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import EditedSince
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.handoffs.format import parse_handoff
from truekeep.handoffs.review import Review, iter_drafts
from truekeep.memory.lookup import document_names
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import clip

if TYPE_CHECKING:
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.policy.decision import Decision
    from truekeep.handoffs.review import DraftCache, Proposal
    from truekeep.workspace.workspace import Workspace

MAX_TITLE_BYTES = 64_000  # bytes of a draft that are searched for its title


class DraftFilter(NamedTuple):
    """Which drafts to list; None matches every draft."""

    why: str | None = None  # the code of a reason
    writer: str | None = None
    repository: str | None = None  # its name, or the end of it

    def matches(self, draft: Draft) -> bool:
        return (
            (self.why is None or self.why in dict(draft.reasons))
            and self.writer in (None, draft.writer)
            and (self.repository is None or f"/{draft.repository}".endswith(f"/{self.repository}"))
        )


class ListedDraft(NamedTuple):
    """A draft, the cards that changed since it was made from them, and on a team server its assignee."""

    draft: Draft
    outdated: Sequence[str]
    assignee: str = ""


class ReviewQueue:
    """The review queue of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context
        self._known_drafts: DraftCache = {}
        self._known_judged_drafts: DraftCache = {}
        self._known_titles: dict[str, str] = {}  # by the digest of the draft's file

    def open(self) -> Review:
        """The review of the drafts as they are now. Its caller holds the write lock if it writes."""
        context = self._context
        verifier = self._workspace.verification.content_verifier
        actor = context.actor or person()
        return Review(
            context.transaction, context.catalog, context.config, actor=actor, now=context.now(), verifier=verifier
        )

    def drafts(self, *, judged: bool = False) -> list[Draft]:
        """The waiting drafts, oldest first, without their texts. Unchanged drafts are not read again.

        `judged`: with the findings of the policy on their texts now, for a list that shows reasons.
        """
        known = self._known_judged_drafts if judged else self._known_drafts
        return list(iter_drafts(self._context.vault, known, judged=judged))

    def documents(self) -> list[str]:
        """The documents that a draft can be filed to."""
        return document_names(self._context.vault)

    def find(self, chosen: DraftFilter) -> tuple[Sequence[ListedDraft], int]:
        """The chosen drafts with current findings, oldest first, and the number of all drafts."""
        waiting = self.drafts(judged=True)
        review = self.open()
        return [ListedDraft(draft, review.outdated(draft)) for draft in waiting if chosen.matches(draft)], len(waiting)

    def title(self, draft: Draft) -> str:
        """The title of a draft's handoff; empty if it has none, or the draft is gone."""
        known = self._known_titles.get(draft.file_digest)
        if known is None:
            try:
                stored = self._context.vault.read(draft.path)
            except (UnsafePath, ChangedSince, OSError):
                return ""
            text = decode_text((stored.data if stored is not None else b"")[:MAX_TITLE_BYTES])
            known = clip(parse_handoff(text or "").title, 120)
            self._known_titles[draft.file_digest] = known
        return known

    def show(self, wanted: str, *, target: str = "", exact: bool = False) -> Proposal:
        """One draft, with what approving it would write."""
        review = self.open()
        return review.propose(review.get(wanted, exact=exact), target=target)

    def outdated(self, draft: Draft) -> list[str]:
        """The cards that changed since the draft was made from them."""
        return self.open().outdated(draft)

    def approve(
        self, wanted: str, *, target: str = "", seen: Mapping[str, str] | None = None, anyway: bool = False
    ) -> Decision:
        """File a draft because a person approves it.

        `seen` is what they saw (`Proposal.seen`): if a file differs, nothing is written. `anyway` also passes findings
        that the draft does not list.
        """
        with self._context.writing("approve drafts", patient=bool(seen)):
            review = self.open()
            draft = review.get(wanted, exact=seen is not None)
            return review.approve(draft, target=target, seen=seen, anyway=anyway)

    def reject(self, wanted: str, *, reason: str = "", seen: Mapping[str, str] | None = None) -> Draft:
        """Remove a draft without filing it; the original stays in processed/."""
        with self._context.writing("reject drafts", patient=bool(seen)):
            review = self.open()
            draft = review.get(wanted, exact=seen is not None)
            review.reject(draft, reason=reason, seen=seen)
            return draft

    def edit(
        self, wanted: str, change: Callable[[bytes], bytes], *, seen: Mapping[str, str] | None = None
    ) -> tuple[Draft, bool]:
        """Change the handoff inside a draft. `change` runs without the lock: a person may take an hour."""
        review = self.open()
        draft = review.get(wanted, exact=seen is not None)
        body = change(draft.body)
        if body == draft.body:
            return draft, False
        with self._context.writing("edit drafts", patient=bool(seen)):
            review = self.open()
            if review.get(draft.id, exact=True).file_digest != draft.file_digest:
                raise EditedSince(
                    f"draft {draft.id} was changed by somebody else meanwhile", hint="start again from it"
                )
            return review.edit(draft, body, seen=seen), True

    def retry(self, wanted: str | None, *, exact: bool = False) -> list[tuple[Draft, Decision]]:
        """Judge one draft, or all, as ingest would now; file those that pass."""
        with self._context.writing("retry drafts", patient=exact):
            review = self.open()
            ids = [review.get(wanted, exact=exact).id] if wanted else [draft.id for draft in review.drafts()]
            drafts = (review.get(number, exact=True) for number in ids)
            return [(draft, review.retry(draft)) for draft in drafts]
