"""Answer a question from the index: candidates by words and by meaning, one ranking, hits with their age and reasons.

Words come from FTS5, meaning from the vectors; either alone is enough. Nothing here writes.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.derived_db import read_meta
from truekeep.memory.file_scan import STORES
from truekeep.search import ranking as ranking
from truekeep.search.embedders import Embedder, EmbedderFailed, Vector
from truekeep.search.file_metadata import HEADING_SEPARATOR
from truekeep.search.index_schema import SECTIONS, section_of
from truekeep.search.passages import SIZES, Passage, choose_passages
from truekeep.search.query import Query, parse_query, phrase_of, quote
from truekeep.search.ranking import ChunkCandidate, Matcher, ScoredChunk
from truekeep.search.unanswered import Reading, judge_evidence
from truekeep.search.vectors import VectorBlock, cosines

if TYPE_CHECKING:
    import apsw

    from truekeep.verify.verdict import Verdict

_CANDIDATES_PER_SEARCH = 50
_RANKED_CHUNKS = 60  # the best, whose windows are ranked
_MAX_SCORED_ROWS = 20_000  # beyond this the word search leaves out common words
_BM25 = "bm25(chunks_fts, 1.2, 1.0, 0.6)"
_HEADING_ONLY = re.compile(r"(?:#[^\n]*+\n?+|\s++)++\Z")  # possessive: blanks after a heading are tried once
_TELLING_LINE = 40  # characters from which two passages with the same best line count as one
_SAME_PASSAGE = 0.8  # share of common words from which two passages count as one
_SAYS_SOMETHING = re.compile(r"[^\W_]")
_FIRST_HEADING, _LATER_HEADING, _LINE_MARK = 70, 20, 3  # characters that are shown besides a hit's text and path


STANDINGS = ("refuted", "changed", "holds", "unchecked")


class Filter(NamedTuple):
    """Limits the hits by store, day and repository."""

    stores: tuple[str, ...] = ()  # empty: everything but transcripts and the archive
    since: str = ""
    repository: str = ""

    @property
    def has_transcripts(self) -> bool:
        return "transcripts" in self.stores

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of chunk ids that this filter needs."""
        return tuple(dict.fromkeys(map(section_of, self.stores))) or ("memory",)

    @property
    def is_plain(self) -> bool:
        """True if a range of chunk ids is the whole filter."""
        if self.since or self.repository or len(self.sections) > 1:
            return False
        return not self.stores or set(self.stores) == {store for store in STORES if section_of(store) in self.sections}


class Hit(NamedTuple):
    """A piece of memory that answers the question: its place, text, age, and the reasons for its rank."""

    path: str
    first: int
    last: int
    text: str
    score: float
    parts: Mapping[str, float]
    store: str
    day: str
    age_days: int | None
    heading: str
    title: str
    repository: str
    matched: tuple[str, ...]
    best: int = 0  # the line that answers best
    also: tuple[str, ...] = ()  # citations of hits that say the same and were folded into this one
    origin: str = ""
    verdicts: tuple[Verdict, ...] = ()  # on the claims inside it
    checked_at: str = ""  # empty: not checked, or no code to check it against
    unchecked: str = ""  # why there are no verdicts, where there could be
    is_file_time: bool = False  # nothing but the file's own time tells its day

    @property
    def citation(self) -> str:
        return cite(self.path, self.first, self.last)

    @property
    def cited_lines(self) -> str:
        """The citation without the path, for hits below others of the same file."""
        return cite("", self.first, self.last)

    @property
    def telling_lines(self) -> list[tuple[int, str]]:
        """Its lines that say something, with their numbers: no blank ones, no rules, no fences."""
        lines = enumerate(self.text.split("\n"), self.first)
        return [(number, line) for number, line in lines if _SAYS_SOMETHING.search(line)]

    @property
    def heading_above(self) -> str:
        """The headings that it is under, without those that it shows itself."""
        names = self.heading.split(HEADING_SEPARATOR)
        while names and f" {names[-1]}\n" in f" {self.text}\n":
            names.pop()
        return HEADING_SEPARATOR.join(names)

    @property
    def standing(self) -> str:
        """The verdicts in one word of STANDINGS; empty if the hit names nothing that can be checked."""
        words = {verdict.verdict for verdict in self.verdicts}
        if words & {"gone", "moved"}:
            return "refuted"
        if self.unchecked or not self.checked_at:
            return "unchecked"
        return "changed" if "changed" in words else "holds" if "confirmed" in words else ""


class IndexResult(NamedTuple):
    """The answer of one index."""

    hits: tuple[Hit, ...]
    mode: str  # hybrid, words
    query: Query
    failure: str = ""  # why search by meaning failed
    is_match: bool = True  # a hit has a word of the question, and one of its identifiers if it has any
    evidence: str = "enough"  # for an answer: "none", "weak" or "enough"


def cite(path: str, first: int, last: int) -> str:
    return f"{path}#L{first}" if first == last else f"{path}#L{first}-L{last}"


def hits_within(hits: Sequence[Hit], room: int) -> tuple[Hit, ...]:
    """The first hits that fit into so many characters as they are shown, but at least one."""
    kept: list[Hit] = []
    paths: set[str] = set()
    for hit in hits:
        heading = _LATER_HEADING if hit.path in paths else _FIRST_HEADING + len(hit.path)
        room -= len(hit.text) + _LINE_MARK * (1 + hit.text.count("\n")) + heading
        if room < 0 and kept:
            break
        kept.append(hit)
        paths.add(hit.path)
    return tuple(kept)


def hits_by_file(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Hits of the same file together, where the best of them stands."""
    files: dict[str, list[Hit]] = {}
    for hit in hits:
        files.setdefault(hit.path, []).append(hit)
    return list(files.values())


class Searcher:
    """Searches one open index, and keeps its vectors in memory between questions."""

    def __init__(self, db: apsw.Connection, embedder: Embedder | None) -> None:
        self.db = db
        self.embedder = embedder
        self._blocks: dict[str, VectorBlock] = {}
        self._total: tuple[int, int] = (-1, 0)

    def search(
        self,
        text: str,
        *,
        limit: int,
        today: date,
        filter_: Filter = Filter(),  # noqa: B008
        formula: str = "truekeep",
        lambda_mmr: float | None = None,
        half_life: float | None = None,
        weights: ranking.RankingWeights = ranking.WEIGHTS,
        sizes: Sequence[int] = SIZES,
    ) -> IndexResult:
        knows = getattr(self.embedder, "knows", None)
        query = parse_query(text, self.db, self._count(), today=today, is_word=knows)
        vector, failure = self._embed(query)
        if query.is_strange:
            vector = None  # whatever were nearest to it would be so by chance
        if formula == "openclaw":
            hits = self._openclaw(query, vector, limit, filter_, today, lambda_mmr, half_life)
            return IndexResult(tuple(hits), "hybrid" if vector is not None else "words", query, failure)
        if vector is not None and (other := self._size()) not in (0, len(vector)):
            failure = f"the model gives {len(vector)} numbers for a text, the index has {other}"
            vector = None
        each, read = max(_CANDIDATES_PER_SEARCH, 2 * limit), max(_RANKED_CHUNKS, limit)
        candidates = self._candidates(query, vector, filter_, today, each)
        matcher = self._matcher(query, vector)
        ranked = ranking.rank(query, candidates, matcher, weights)
        best = ranked[:read]
        chosen = choose_passages(query, best, matcher, limit + 12, sizes=sizes)
        scored = [
            _hit(passage, query, matcher, score=_confidence(passage, matcher), also=also)
            for passage, also in _fold(chosen.passages, limit)
        ]
        hits = _with_falling_scores(scored)
        is_match = any(item.candidate.words > 0 for item in ranked) and (
            not query.identifiers or any("exact" in item.parts for item in ranked)
        )
        mode = "hybrid" if vector is not None else "words"
        reading = Reading(query, best, chosen.windows, chosen.scores, matcher, self._count())
        return IndexResult(tuple(hits), mode, query, failure, is_match, judge_evidence(reading))

    def find_repositories(self) -> list[str]:
        """The repositories that memory is of."""
        rows: Any = self.db.execute("SELECT DISTINCT repository FROM files WHERE repository != '' ORDER BY 1")
        return [row[0] for row in rows]

    # Candidates, by words and by meaning.

    def _count(self) -> int:
        generation = int(read_meta(self.db, "generation", 0))
        if self._total[0] != generation or generation == 0:
            self._total = (generation, int(self.db.execute("SELECT count(*) FROM chunks_fts_docsize").get))
        return self._total[1]

    def _embed(self, query: Query) -> tuple[Vector | None, str]:
        if self.embedder is None or not query.text:
            return None, ""
        try:
            return self.embedder.embed([query.text], is_query=True)[0], ""
        except EmbedderFailed as error:
            return None, error.told

    def _size(self) -> int:
        """The number of dimensions of the index's vectors; 0 if it has none."""
        row = self.db.execute("SELECT length(embedding) / 2 FROM vectors LIMIT 1").fetchone()
        return int(row[0]) if row else 0

    def _candidates(
        self, query: Query, vector: Vector | None, filter_: Filter, today: date, each: int
    ) -> list[ChunkCandidate]:
        words = self._by_words(query, filter_, each)
        ids = dict.fromkeys(words)
        if vector is not None:
            ids.update(dict.fromkeys(self._by_meaning(vector, filter_, each)))
        if query.spans:
            ids.update(dict.fromkeys(self._by_day(query, filter_)))
        near = cosines(self.db, vector, list(ids)) if vector is not None else {}
        return self._load(list(ids), words, near if vector is not None else None, today)

    def _by_words(self, query: Query, filter_: Filter, count: int) -> dict[int, float]:
        """Chunks by BM25, and in any case those with a whole identifier of the question."""
        found: dict[int, float] = {}
        match = _affordable(query)
        if match:
            found = self._ask(match, filter_, count)
        elif common := [term.match for term in query.terms if term.is_common]:
            found = self._among_common(common, filter_, 4 * count)
        for identifier in query.identifiers:
            for chunk_id, score in self._ask(phrase_of(identifier), filter_, 12).items():
                found[chunk_id] = found.get(chunk_id, 0.0) or score
        if not found and query.text:
            found = self._by_letters(query, filter_)
        return found

    def _ask(self, match: str, filter_: Filter, count: int) -> dict[int, float]:
        # The function, not FTS5's column `rank`: that sorts all rows that match, where SQLite keeps the best of them.
        if filter_.is_plain:
            first, last = SECTIONS[filter_.sections[0]]
            rows = self.db.execute(
                f"SELECT rowid, {_BM25} AS score FROM chunks_fts WHERE chunks_fts MATCH ?"  # noqa: S608
                " AND rowid > ? AND rowid <= ? ORDER BY score, rowid LIMIT ?",
                (match, first, last, count),
            )
        else:
            condition, values = _where(filter_)
            rows = self.db.execute(
                f"SELECT chunks_fts.rowid, {_BM25} AS score FROM chunks_fts"  # noqa: S608
                " JOIN chunks ON chunks.id = chunks_fts.rowid JOIN files ON files.id = chunks.file_id"
                f" WHERE chunks_fts MATCH ? AND {condition} ORDER BY score, chunks_fts.rowid LIMIT ?",
                (match, *values, count),
            )
        return {chunk_id: -score for chunk_id, score in rows}

    def _among_common(self, matches: Sequence[str], filter_: Filter, count: int) -> dict[int, float]:
        """For questions of common words only: some chunks with as many of them as possible, in no order."""
        condition, values = _where(filter_)
        for size in (min(6, len(matches)), 2, 1):
            rows: Any = self.db.execute(
                "SELECT chunks_fts.rowid FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid"  # noqa: S608
                f" JOIN files ON files.id = chunks.file_id WHERE chunks_fts MATCH ? AND {condition} LIMIT ?",
                (" AND ".join(matches[:size]), *values, count),
            )
            found = {row[0]: 1.0 for row in rows}
            if found:
                return found
        return {}

    def _by_letters(self, query: Query, filter_: Filter) -> dict[int, float]:
        """Chunks that contain the question, or its longest part, as typed: for scripts and signs without words."""
        condition, values = _where(filter_)
        for wanted in dict.fromkeys((query.text, max(query.text.split() or [""], key=len))):
            if not wanted or (len(wanted) < 2 and wanted.isalnum() and wanted.isascii()):
                continue
            rows = self.db.execute(
                "SELECT chunks.id FROM chunks JOIN files ON files.id = chunks.file_id"  # noqa: S608
                f" WHERE {condition} AND instr(lower(text), lower(?)) LIMIT 20",
                (*values, wanted),
            )
            found = {row[0]: 1.0 for row in rows}
            if found:
                return found
        return {}

    def _by_meaning(self, vector: Vector, filter_: Filter, count: int) -> list[int]:
        among: list[int] | None = None
        if not filter_.is_plain:
            condition, values = _where(filter_)
            rows: Any = self.db.execute(
                f"SELECT chunks.id FROM chunks JOIN files ON files.id = chunks.file_id WHERE {condition}",  # noqa: S608
                values,
            )
            among = [row[0] for row in rows]
        found: list[int] = []
        for section in filter_.sections:
            block = self._blocks.setdefault(section, VectorBlock(section))
            found += block.answer(self.db, vector, count, among)
        return found

    def _by_day(self, query: Query, filter_: Filter) -> list[int]:
        condition, values = _where(filter_)
        found: list[int] = []
        for span in query.spans[:4]:
            rows = self.db.execute(
                "SELECT chunks.id FROM files JOIN chunks ON chunks.file_id = files.id"  # noqa: S608
                f" WHERE day BETWEEN ? AND ? AND {condition} LIMIT 40",
                (span.first.isoformat(), span.last.isoformat(), *values),
            )
            found += [row[0] for row in rows]
        return found

    def _load(
        self, ids: Sequence[int], words: Mapping[int, float], near: Mapping[int, float] | None, today: date
    ) -> list[ChunkCandidate]:
        candidates: list[ChunkCandidate] = []
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            marks = ",".join("?" * len(part))
            rows: Any = self.db.execute(
                "SELECT chunks.id, path, store, day, repository, title, heading, first, last, text,"  # noqa: S608
                " mtime_ns, origin, lines FROM chunks JOIN files ON files.id = chunks.file_id"
                f" WHERE chunks.id IN ({marks})",
                tuple(part),
            )
            for row in rows:
                if row[9].startswith("#") and _HEADING_ONLY.match(row[9]):
                    continue  # a heading without anything under it
                chunk_id, day = row[0], row[3] or _day_of(row[10])
                cosine = None if near is None else near.get(chunk_id, 0.0)
                found = (words.get(chunk_id, 0.0), cosine, _age(day, today))
                candidates.append(ChunkCandidate._make((*row[:3], day, *row[4:10], *found, *row[11:], not row[3])))
        return candidates

    def _matcher(self, query: Query, vector: Vector | None) -> Matcher:
        words = [term.word for term in query.terms]
        nearest = getattr(self.embedder, "neighbours", None)
        if nearest is None or vector is None:
            return Matcher(query, [{} for _ in words])
        telling = [word if word.isalpha() and len(word) > 2 else "" for word in words[:24]]
        near, question = nearest(telling, vector)
        knows = getattr(self.embedder, "knows", lambda _: True)
        for word, found in zip(telling, near, strict=True):
            if not word:
                found.clear()
            elif query.known_share < 1 and not knows(
                word
            ):  # its vector is made of its pieces, and so near to words that are only like these
                for other in [other for other in found if len(other) < max(4, 0.6 * len(word))]:
                    del found[other]
        return Matcher(query, near, question)

    # The formula of the founding document.

    def _openclaw(
        self,
        query: Query,
        vector: Vector | None,
        limit: int,
        filter_: Filter,
        today: date,
        lambda_mmr: float | None,
        half_life: float | None,
    ) -> list[Hit]:
        pool = limit * 4
        match = " AND ".join(quote(word) for word in _openclaw_words(query.text))
        words = self._ask(match, filter_, pool) if match else {}
        ids = dict.fromkeys(words)
        near: Mapping[int, float] | None = None
        if vector is not None:
            ids.update(dict.fromkeys(self._by_meaning(vector, filter_, pool)))
            near = cosines(self.db, vector, list(ids))
        scored: list[ScoredChunk] = []
        for candidate in self._load(list(ids), words, near, today):
            # The document's 1 / (1 + max(0, rank)) gives every match 1, because FTS5's ranks are negative.
            text = 1.0 if candidate.id in words else 0.0
            parts = (
                {"words": 0.3 * text, "meaning": 0.7 * (candidate.cosine or 0.0)}
                if near is not None
                else {"words": text}
            )
            score = sum(parts.values())
            if half_life and candidate.store == "logs" and candidate.age_days:
                score *= math.exp(-math.log(2) / half_life * max(0, candidate.age_days))
            scored.append(ScoredChunk(candidate, score, parts))
        scored.sort(key=lambda item: (-item.score, -item.candidate.words, item.candidate.path, item.candidate.first))
        if lambda_mmr is not None:
            scored = _mmr(scored, lambda_mmr, limit)
        whole = [
            Passage(item, item.candidate.first, item.candidate.last, item.candidate.text, item.score)
            for item in scored[:limit]
        ]
        matcher = Matcher(query, [])
        return [_hit(passage, query, matcher, score=passage.score) for passage in whole]


def _openclaw_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)[:64]


def _mmr(scored: Sequence[ScoredChunk], weight: float, limit: int) -> list[ScoredChunk]:
    """Maximal marginal relevance: each next chunk is good, and unlike the chosen ones."""
    bags = {id(item): _bag(item.candidate.text) for item in scored}
    best = max((item.score for item in scored), default=1.0) or 1.0
    left, chosen = list(scored), list[ScoredChunk]()
    while left and len(chosen) < limit:

        def worth(item: ScoredChunk) -> float:
            alike = max((_alike(bags[id(item)], bags[id(other)]) for other in chosen), default=0.0)
            return weight * item.score / best - (1 - weight) * alike

        chosen.append(max(left, key=worth))
        left.remove(chosen[-1])
    return chosen


def _affordable(query: Query) -> str:
    """The FTS5 query: the words of the question, rarest first, until scoring the matches would take long."""
    chosen: list[str] = []
    rows = 0
    for term in query.terms:
        rows += term.chunks
        if not term.chunks or term.is_common:
            continue
        if chosen and rows > _MAX_SCORED_ROWS:
            break
        chosen.append(term.match)
    return " OR ".join(chosen)


def is_repository(wanted: str, known: str) -> bool:
    """Whether a repository is meant by a name, with or without its owner."""
    wanted, known = (name.lower().removesuffix(".git") for name in (wanted, known))
    return known == wanted or known.endswith(f"/{wanted}")


def _where(filter_: Filter) -> tuple[str, tuple[Any, ...]]:
    conditions, values = [], list[Any]()
    if filter_.stores:
        conditions.append(f"store IN ({','.join('?' * len(filter_.stores))})")
        values += filter_.stores
    else:
        conditions.append("store NOT IN ('transcripts', 'archive')")
    if filter_.since:
        conditions.append("coalesce(nullif(day, ''), date(mtime_ns / 1000000000, 'unixepoch')) >= ?")
        values.append(filter_.since)
    if filter_.repository:
        wanted = filter_.repository.lower().removesuffix(".git")
        conditions.append("(lower(repository) = ? OR lower(repository) LIKE ? ESCAPE '\\')")
        escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values += [wanted, f"%/{escaped}"]
    return " AND ".join(conditions), tuple(values)


def _hit(passage: Passage, query: Query, matcher: Matcher, *, score: float, also: tuple[str, ...] = ()) -> Hit:
    candidate = passage.scored.candidate
    lowered = passage.text.lower()
    matched = [term.word for term in query.terms if term.word in lowered]
    nearest = _nearest(matcher, lowered)
    matched += [
        f"{term.word}~{nearest[number]}"
        for number, term in enumerate(query.terms)
        if term.word not in lowered and number in nearest
    ]
    parts = passage.parts or passage.scored.parts
    first, last, best = _shown_lines(passage)
    return Hit(
        path=candidate.path, first=first, last=last, text=_shown_text(passage), score=round(score, 4),
        parts={name: round(value, 3) for name, value in parts.items()},
        store=candidate.store, day=candidate.day, age_days=candidate.age_days, heading=candidate.heading,
        title=candidate.title, repository=candidate.repository, matched=tuple(matched), best=best,
        also=also, origin=candidate.origin, is_file_time=candidate.is_file_time,
    )  # fmt: skip


def _shown_text(passage: Passage) -> str:
    return passage.text.replace("\r", "")


def _shown_lines(passage: Passage) -> tuple[int, int, int]:
    """The first, last and best line for a citation; for a session, the lines of its file."""
    candidate, best = passage.scored.candidate, passage.best or passage.first
    if not candidate.lines:
        return passage.first, passage.last, best
    lines = array("I", candidate.lines)  # of the session file, for each line of the dialogue
    first, last, best = (lines[min(at - candidate.first, len(lines) - 1)] for at in (passage.first, passage.last, best))
    return first, last, best


def _confidence(passage: Passage, matcher: Matcher) -> float:
    """The score of a hit, from 0 to 1: the share of the question's words in it, and its nearness in meaning."""
    candidate = passage.scored.candidate
    covered = min(1.0, matcher.soft(f"{candidate.title}\n{candidate.heading}\n{passage.text}"))
    if passage.scored.parts.get("exact") or passage.scored.parts.get("day"):
        covered = max(covered, 0.6)
    return 1 - (1 - covered) * (1 - 0.5 * max(0.0, candidate.cosine or 0.0))


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Lower scores so that no hit has a higher one than the hit before it."""
    least = 1.0
    falling: list[Hit] = []
    for hit in hits:
        least = min(least, hit.score)
        falling.append(hit._replace(score=least))
    return falling


def _nearest(matcher: Matcher, lowered: str) -> dict[int, str]:
    """For each word of the question, by number, the nearest word of a text."""
    best: dict[int, tuple[float, str]] = {}
    for word in sorted(matcher.words_in(lowered)):
        for number, cosine in matcher.matches[word]:
            if number not in best or cosine > best[number][0]:
                best[number] = (cosine, word)
    return {number: word for number, (_, word) in best.items()}


def _fold(passages: Sequence[Passage], limit: int) -> list[tuple[Passage, tuple[str, ...]]]:
    """Drop passages that repeat a better one, and cite them with it."""
    chosen: list[tuple[Passage, tuple[str, ...]]] = []
    bags: list[frozenset[str]] = []
    lines: dict[str, int] = {}
    for passage in passages:
        bag = _bag(_shown_text(passage))
        line = passage.best_line if len(passage.best_line) >= _TELLING_LINE else None
        twin = next((at for at, other in enumerate(bags) if _alike(bag, other) >= _SAME_PASSAGE), None)
        if twin is None and line is not None:
            twin = lines.get(line)
        if twin is None:
            if len(chosen) < limit:
                if line is not None:
                    lines[line] = len(chosen)
                copies = passage.scored.copies[:5]
                chosen.append((passage, tuple(cite(copy.path, copy.first, copy.last) for copy in copies)))
                bags.append(bag)
        else:
            kept, also = chosen[twin]
            is_card, was_card = (item.scored.candidate.is_card for item in (passage, kept))
            if is_card and not was_card:  # a card is above whatever repeats it
                kept, passage = passage, kept
            first, last, _ = _shown_lines(passage)
            chosen[twin] = kept, (*also, cite(passage.scored.candidate.path, first, last))[:5]
    return chosen


def _bag(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    if not one or not other:
        return 0.0
    if min(len(one), len(other)) < _SAME_PASSAGE * max(len(one), len(other)):
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def _day_of(mtime_ns: int) -> str:
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9).date().isoformat()  # noqa: DTZ006 - the day where we are
    except (ValueError, OverflowError, OSError):
        return ""


def _age(day: str, today: date) -> int | None:
    try:
        return (today - date.fromisoformat(day)).days
    except ValueError:
        return None
