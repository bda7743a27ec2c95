"""The filters of the review pages: reason, writer and repository, in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request

from truekeep.handoffs.draft import Draft

if TYPE_CHECKING:
    from truekeep.interfaces.web.site import Site
    from truekeep.workspace.workspace import Workspace

MAX_OPTIONS = 200  # of one filter
NOBODY = "-"  # no account has this name


class Choice(NamedTuple):
    """The filters of the review pages."""

    reason: str = ""
    writer: str = ""
    repository: str = ""
    assignee: str = ""

    @classmethod
    def of(cls, request: Request) -> Choice:
        return cls(*(request.query_params.get(name, "")[:300] for name in cls._fields))

    def drafts(self, site: Site, workspace: Workspace, request: Request) -> list[Draft]:
        """The drafts that match, oldest first."""
        assignees = site.assignees(request)
        return [draft for draft in workspace.review.drafts(judged=True) if self.has(draft, assignees)]

    def has(self, draft: Draft, assignees: Mapping[str, str] | None = None) -> bool:
        return (
            (not self.reason or self.reason in draft.codes)
            and (not self.writer or draft.writer == self.writer)
            and (not self.repository or draft.repository == self.repository)
            and (not self.assignee or assignees is None or self.assignee == assignees.get(draft.id, NOBODY))
        )

    def query(self, **more: str | int) -> dict[str, str]:
        return {name: str(value) for name, value in (self._asdict() | more).items() if value}

    def link(self, path: str = "/review", **more: str | int) -> str:
        """A page of the review for the same drafts."""
        query = self.query(**more)
        return quote(path, safe="/") + (f"?{urlencode(query)}" if query else "")


def filters_of(
    drafts: Iterable[Draft], choice: Choice, assignees: Mapping[str, str] | None
) -> list[tuple[str, str, str, list[tuple[str, int]]]]:
    """For each filter: name, label, chosen value, and its options, most frequent first."""
    reasons: Counter[str] = Counter()
    writers: Counter[str] = Counter()
    repositories: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for draft in drafts:
        reasons.update(draft.codes)
        writers[draft.writer] += 1
        repositories[draft.repository] += 1
        if assignees is not None:
            given[assignees.get(draft.id, NOBODY)] += 1
    return [
        (name, label, chosen, _options(counts, chosen))
        for name, label, chosen, counts in (
            ("reason", "Reason", choice.reason, reasons),
            ("writer", "Writer", choice.writer, writers),
            ("repository", "Repository", choice.repository, repositories),
            *((("assignee", "Assignee", choice.assignee, given),) if assignees is not None else ()),
        )
    ]


def _options(counts: Counter[str], chosen: str) -> list[tuple[str, int]]:
    found = [(value, count) for value, count in counts.most_common(MAX_OPTIONS) if value]
    return found if not chosen or any(value == chosen for value, _ in found) else [*found, (chosen, counts[chosen])]
