"""The fields of the review forms: digests of what was shown, and reasons."""

from __future__ import annotations

from starlette.datastructures import FormData

from truekeep.handoffs.review import Proposal
from truekeep.interfaces.web.pages.review_caches import ShownFiles
from truekeep.interfaces.web.site import text_of

ROWS = 50  # drafts on one page of the queue, and in one form


def remember_proposal(shown: ShownFiles, proposal: Proposal) -> list[str]:
    """The digests for the form; the files are remembered, to show what changed if they do."""
    for edit in proposal.edits:
        shown.add(edit.before)
    shown.add(proposal.draft.body, proposal.draft.file_digest)
    return [f"{digest} {path}" for path, digest in proposal.seen.items()]


def seen_in(form: FormData, name: str) -> dict[str, str]:
    """The digests that a form carries, by path."""
    parted = (str(value).partition(" ") for value in form.getlist(name))
    return {path: digest for digest, _, path in parted}


def reason_in(form: FormData) -> str:
    """The reason of a rejection, in one line."""
    return " ".join(text_of(form, "reason").split())[:500]
