"""The filters of the review pages: reason, writer and repository, in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request

from truekeep.handoffs.draft import Draft

MAX_OPTIONS = 200  # of one filter


class Choice(NamedTuple):
    """The filters of the review pages."""

    reason: str = ""
    writer: str = ""
    repository: str = ""

    @classmethod
    def of(cls, request: Request) -> Choice:
        return cls(*(request.query_params.get(name, "")[:300] for name in cls._fields))

    def has(self, draft: Draft) -> bool:
        return (
            (not self.reason or self.reason in draft.codes)
            and (not self.writer or draft.writer == self.writer)
            and (not self.repository or draft.repository == self.repository)
        )

    def query(self, **more: str | int) -> dict[str, str]:
        return {name: str(value) for name, value in (self._asdict() | more).items() if value}

    def link(self, path: str = "/review", **more: str | int) -> str:
        """A page of the review for the same drafts."""
        query = self.query(**more)
        return quote(path, safe="/") + (f"?{urlencode(query)}" if query else "")


def filters_of(drafts: Iterable[Draft], choice: Choice) -> list[tuple[str, str, str, list[tuple[str, int]]]]:
    """For each filter: name, label, chosen value, and its options, most frequent first."""
    reasons: Counter[str] = Counter()
    writers: Counter[str] = Counter()
    repositories: Counter[str] = Counter()
    for draft in drafts:
        reasons.update(draft.codes)
        writers[draft.writer] += 1
        repositories[draft.repository] += 1
    return [
        (name, label, chosen, _options(counts, chosen))
        for name, label, chosen, counts in (
            ("reason", "Reason", choice.reason, reasons),
            ("writer", "Writer", choice.writer, writers),
            ("repository", "Repository", choice.repository, repositories),
        )
    ]


def _options(counts: Counter[str], chosen: str) -> list[tuple[str, int]]:
    found = [(value, count) for value, count in counts.most_common(MAX_OPTIONS) if value]
    return found if not chosen or any(value == chosen for value, _ in found) else [*found, (chosen, counts[chosen])]
