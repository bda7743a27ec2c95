"""Search: find memories with verdicts, read excerpts, keep the index up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from truekeep.core.errors import BadInput
from truekeep.core.file_io import read_head
from truekeep.core.model import CARDS
from truekeep.memory.file_scan import STORES
from truekeep.search.file_metadata import FRONT, topic_in
from truekeep.search.passages import SHORT_SIZES, SIZES
from truekeep.search.searcher import STANDINGS, Filter, hits_within

if TYPE_CHECKING:
    from truekeep.search.build import IndexReport
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.searcher import Hit
    from truekeep.search.service import SearchResult, Status
    from truekeep.workspace.workspace import Workspace

MAX_DISAGREEMENTS = 3  # that are told with the hits of one search
RANKINGS = ("truekeep", "openclaw")
MAX_HITS = 1000
DEFAULT_ROOM = 4_000  # characters of an answer whose number of hits is not given
_HITS_IN_ROOM = 20  # more do not fit


class MemorySearch:
    """Search in one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def find(
        self,
        query: str,
        *,
        limit: int | None = None,
        stores: Sequence[str] = (),
        since: date | None = None,
        repository: str = "",
        ranking: str = "truekeep",
        mmr: float | None = None,
        half_life: float | None = None,
        verified: bool = False,
        verdict: str | None = None,
        budget: float | None = None,
        within: float = 0.0,
    ) -> SearchResult:
        """Find memories by words and by meaning, with the verdicts on their claims. Only the index is written.

        `limit`: the number of hits at most; without it, as many as fit into DEFAULT_ROOM.
        `verified` leaves out refuted and unchecked hits; `verdict` keeps the hits with this status (`Hit.standing`).
        `budget`: seconds for checking claims that are not checked yet. `within`: seconds that the last file scan may
        be old.
        """
        if verdict and verdict not in STANDINGS:
            raise BadInput(f"there is no verdict {verdict!r} on a hit", hint=f"one of {', '.join(STANDINGS)}")
        if unknown := set(stores) - set(STORES):
            raise BadInput(f"there is no store {sorted(unknown)[0]!r}", hint=f"stores: {', '.join(STORES)}")
        if ranking not in RANKINGS:
            raise BadInput(f"there is no ranking {ranking!r}", hint=f"rankings: {', '.join(RANKINGS)}")
        room, limit = (0, limit) if limit is not None else (DEFAULT_ROOM, _HITS_IN_ROOM)
        if not 1 <= limit <= MAX_HITS:
            raise BadInput(f"{limit} hits cannot be asked for", hint=f"from 1 to {MAX_HITS}")
        repository = repository.encode("utf-8", "replace").decode()
        chosen = Filter(stores=tuple(stores), since=since.isoformat() if since else "", repository=repository)
        # More than asked for, where verdicts may take hits out.
        candidates = min(MAX_HITS, limit * 4) if verdict else min(MAX_HITS, limit * 2 + 4) if verified else limit
        answer = self._context.recall.search(
            query,
            limit=candidates,
            filter_=chosen,
            formula=ranking,
            lambda_mmr=mmr,
            half_life=half_life,
            within=within,
            sizes=SHORT_SIZES if room else SIZES,
        )
        hits = list(hits_within(answer.hits, room) if room and not (verdict or verified) else answer.hits)
        if hits and self._context.shows_verdicts:
            hits = self._workspace.verification.with_verdicts(hits, patient=verified, budget=budget)
        if verdict:
            hits = [hit for hit in hits if hit.standing == verdict][:limit]
        if verified:
            hits = [hit for hit in hits if not hit.unchecked and not any(item.is_rot for item in hit.verdicts)][:limit]
        hits = list(hits_within(hits, room)) if room else hits
        source = (self._context.source_note,) if self._context.source is not None else ()
        return answer._replace(hits=tuple(hits), notes=(*source, *answer.notes, *_disagreements(hits)))

    def topics(self, hits: Sequence[Hit]) -> dict[str, str]:
        """The topics of the files that were hit, by path, read from the beginning of each file."""
        heads: dict[str, str] = {}
        for path in {hit.path for hit in hits if hit.store != "transcripts"}:
            head = read_head(self._context.path / path, FRONT).decode("utf-8", "replace")
            if topic_in(head):
                heads[path] = head
        if not heads:
            return {}
        from truekeep.verify.mask_credentials import mask_shown  # here: most files have no topic

        return {path: topic_in(mask_shown(head, self._context.facts)) for path, head in heads.items()}

    def get(self, path: str, *, first: int | None = None, lines: int | None = None) -> Excerpt:
        """Some lines of a memory file, by its path or by a citation such as memory/cards/a.md#L5-L9."""
        from truekeep.search.excerpt import LINES, parse_citation, read_excerpt

        context = self._context
        path, cited, count = parse_citation(path)
        first, lines, today = first or cited or 1, lines or count or LINES, context.today()
        if path.startswith("transcripts/"):
            return context.recall.read_transcript(path, first=first, lines=lines, today=today)
        extra = context.config.recall.extra_paths
        excerpt = read_excerpt(str(context.path), path, first=first, lines=lines, extra=extra, today=today)
        excerpt = excerpt._replace(source=context.source_note)
        return self._workspace.verification.add_verdicts(excerpt) if context.shows_verdicts else excerpt

    # The index.

    def index(
        self, *, rebuild: bool = False, progress: Callable[[str, int, int], None] = lambda *_: None, wait: float = 10.0
    ) -> IndexReport:
        """Bring the search index up to date with the files, and the warnings for agents with the lessons."""
        from truekeep.workspace.tool_warning_file import refresh_lessons  # here: searching needs none of it

        report = self._context.recall.index(rebuild=rebuild, progress=progress, wait=wait)
        refresh_lessons(self._context)
        return report

    def watch(
        self,
        on_indexed: Callable[[IndexReport], None],
        *,
        stop: Any = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Keep the search index up to date until stopped."""
        self._context.recall.watch(on_indexed, stop=stop, warn=warn)

    def drop_expired(self, *, dry_run: bool = False) -> tuple[int, list[str]]:
        """Remove from the index what decay let go: the number of sessions, and notes to show."""
        recall = self._context.recall
        sessions = recall.count_old_sessions() if dry_run else recall.drop_expired()
        return sessions, recall.notes

    def status(self) -> Status:
        """The size and state of the search index."""
        return self._context.recall.status()


def _disagreements(hits: Sequence[Hit]) -> list[str]:
    """A note for each thing to which two cards among the hits give different values: a port, a version, a setting."""
    if len({hit.path for hit in hits if hit.path.startswith(f"{CARDS}/")}) < 2:
        return []
    from truekeep.memory.values import agree, find_values  # not needed to start, and heavy

    said: dict[tuple[str, str], tuple[Hit, str]] = {}
    notes: dict[tuple[str, str], str] = {}
    for hit in hits:
        if not hit.path.startswith(f"{CARDS}/"):
            continue  # documents tell of many things, and of their own versions
        for value in find_values(hit.text, topic=hit.title, repository=hit.repository):
            other, known = said.setdefault((value.kind, value.subject), (hit, value.value))
            is_other_repository = bool(hit.repository and other.repository and hit.repository != other.repository)
            if other.path == hit.path or is_other_repository or agree(value.kind, known, value.value):
                continue
            newer, older = (hit, other) if hit.day > other.day else (other, hit)
            values = {hit.path: value.value, other.path: known}
            notes[value.kind, value.subject] = (
                f"two values for {value.subject} {value.kind}: {values[newer.path]} in {newer.path}"
                f" ({newer.day or 'no day'}), {values[older.path]} in {older.path} ({older.day or 'no day'});"
                " `truekeep reconcile` settles it"
            )
    return list(notes.values())[:MAX_DISAGREEMENTS]
