"""The door of a search: what was typed → one question → its hits as lines or JSON. Loads no more than it must.

Agents ask many times a session, each time in a new process, and loading the command line takes longer than an answer.
So the usual forms of `truekeep search` are read here. Whatever is not one of them (help, an unknown option, a value out
of its range) is left to the command line, which says what is wrong with it and otherwise comes back to `answer`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from truekeep.core.errors import as_argument
from truekeep.text.unicode import clip, printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.search.searcher import Hit
    from truekeep.search.service import SearchResult
    from truekeep.verify.verdict import Verdict

LIMIT = 6
MOST = 1000
STORES = ("cards", "documents", "logs", "transcripts", "archive")
STANDINGS = ("refuted", "changed", "holds", "unchecked")
RANKINGS = ("truekeep", "openclaw")
_SHOWN = 7  # lines of a hit that a terminal shows
_FLAGS = {"--json": "as_json", "--explain": "explain", "--verified": "verified"}
_VALUES = {
    "-n": "limit",
    "--limit": "limit",
    "--store": "stores",
    "--since": "since",
    "--repo": "repository",
    "--verdict": "verdict",
    "-w": "workspace",
    "--workspace": "workspace",
}
_ALLOWED = {"stores": STORES, "verdict": STANDINGS}
_CODES = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1, "dim": 2}

Style = Callable[..., str]


class SearchArguments(NamedTuple):
    """A search as it was typed."""

    query: str
    workspace: str = ""  # empty: the default one
    limit: int = LIMIT
    stores: tuple[str, ...] = ()
    since: str = ""
    repository: str = ""
    verified: bool = False
    verdict: str = ""
    explain: bool = False
    as_json: bool = False
    ranking: str = "truekeep"
    mmr: float | None = None
    half_life: float | None = None


def parse_search(arguments: Sequence[str]) -> SearchArguments | None:
    """The arguments of truekeep as a search; None if they are anything else, or not in one of its usual forms."""
    given: dict[str, Any] = {}
    words: list[str] = []
    has_command = False
    left = iter(arguments)
    for argument in left:
        if not has_command and argument not in ("-w", "--workspace"):
            if argument != "search":
                return None
            has_command = True
        elif not argument.startswith("-"):
            words.append(argument)
        elif argument in _FLAGS:
            given[_FLAGS[argument]] = True
        else:
            option, is_joined, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
            name = _VALUES.get(option)
            if not is_joined:
                value = next(left, "-")
            if name is None or value.startswith("-") or not _take(given, name, value):
                return None
    return SearchArguments(" ".join(words), **given) if words else None


def _take(given: dict[str, Any], name: str, value: str) -> bool:
    """Note the value of an option; False if it is one that the command line must speak about."""
    if value not in _ALLOWED.get(name, (value,)) or (name == "workspace" and not value):
        return False
    if name == "limit":
        if not (value.isascii() and value.isdecimal() and len(value) < 5 and 1 <= int(value) <= MOST):
            return False
        given[name] = int(value)
    elif name == "stores":
        given[name] = (*given.get(name, ()), value)
    else:
        given[name] = value
    return True


def answer(asked: SearchArguments) -> None:
    """Open the workspace, ask, and show what was found."""
    from truekeep.core.dates import parse_since

    opened = Workspace.open(Path(asked.workspace) if asked.workspace else None)
    try:
        found = opened.search.find(
            asked.query,
            limit=asked.limit,
            stores=asked.stores,
            since=parse_since(asked.since, opened.today()),
            repository=asked.repository,
            ranking=asked.ranking,
            mmr=asked.mmr,
            half_life=asked.half_life,
            verified=asked.verified,
            verdict=asked.verdict,
        )
        topics = opened.search.topics(found.hits)
        if asked.as_json:
            _print(sys.stdout, [render_json("search", shown_answer(found, topics), opened.notices)])
        else:
            _print(sys.stdout, render_answer(found, topics, _style_for(sys.stdout), explain=asked.explain))
            _print(sys.stderr, render_remarks(found, _style_for(sys.stderr)))
    finally:
        opened.close()
        _print(sys.stderr, render_notices(opened.notices, _style_for(sys.stderr)))
        opened.notices.clear()


# As data.


def render_json(kind: str, data: dict[str, Any], notices: Sequence[str] = ()) -> str:
    """Every --json output says what it is and in which version of its shape."""
    import json

    told = {"schema": f"truekeep.{kind}/1", **data}
    if notices:
        told["notices"] = [printable(notice) for notice in notices]
    # ASCII only: JSON's own escapes keep every character, and none of them can speak to the terminal.
    return json.dumps(told, indent=2, default=str)


def shown_answer(answer: SearchResult, topics: Mapping[str, str]) -> dict[str, Any]:
    """An answer as data, for scripts."""
    return {
        "query": answer.query,
        "mode": answer.mode,
        "provider": answer.provider,
        "model": answer.model,
        "ranking": answer.ranking,
        "notes": list(answer.notes),
        "corrections": [{"typed": typed, "known": known} for typed, known in answer.corrections],
        "waiting": answer.waiting,
        "hits": [_shown_hit(hit, topics.get(hit.path, "")) for hit in answer.hits],
    }


def _shown_hit(hit: Hit, topic: str) -> dict[str, Any]:
    return {
        "path": hit.path,
        "first": hit.first,
        "last": hit.last,
        "citation": hit.citation,
        "text": hit.text,
        "best": hit.best,
        "score": hit.score,
        "parts": dict(hit.parts),
        "store": hit.store,
        "day": hit.day,
        "age_days": hit.age_days,
        "topic": topic,
        "heading": hit.heading,
        "repository": hit.repository,
        "matched": list(hit.matched),
        "also": list(hit.also),
        **shown_verdicts(hit.verdicts, hit.checked_at, hit.unchecked),
    }


def shown_verdicts(verdicts: Sequence[Verdict], checked_at: str, unchecked: str) -> dict[str, Any]:
    """The verdicts on what a passage names, as data."""
    return {
        "verdicts": [shown_verdict(verdict) for verdict in verdicts],
        "checked_at": checked_at,
        "unchecked": unchecked,
    }


def shown_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as data."""
    claim = verdict.claim
    return {
        "kind": claim.kind,
        "text": claim.text,
        "shown": claim.shown,
        "line": claim.line,
        "column": claim.column,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "why": verdict.why,
        "place": verdict.place,
        "candidates": list(verdict.candidates),
        "commit": verdict.commit,
        "commit_day": verdict.day,
        "rank": verdict.rank,
        "uncommitted": verdict.is_dirty,
    }


# As lines.


def render_answer(answer: SearchResult, topics: Mapping[str, str], style: Style, *, explain: bool) -> Iterator[str]:
    """The hits, for a person or an agent."""
    from truekeep.core.dates import shown_age

    if not answer.hits:
        yield "nothing in memory matches"
    for number, hit in enumerate(answer.hits, 1):
        days = hit.age_days or 0
        age = style(shown_age(hit.age_days), fg="red" if days > 365 else "yellow" if days > 90 else "green")
        yield f"{number}. {style(printable(hit.citation), bold=True)}  {hit.store}  {age}  {hit.score:.2f}"
        if named := _named(topics.get(hit.path, ""), hit.heading):
            yield style(f"   {clip(printable(named), 100)}", fg="cyan")
        yield from _render_lines(hit, style)
        yield from _render_verdicts(hit.verdicts, hit.unchecked, style)
        if hit.also:
            yield style(f"   the same in {', '.join(map(printable, hit.also))}", dim=True)
        if explain:
            heaviest = sorted(hit.parts.items(), key=lambda item: -abs(item[1]))
            yield style(f"   why: {'  '.join(f'{name} {value:+.2f}' for name, value in heaviest)}", dim=True)
            if hit.matched:
                yield style(f"   matched: {printable(', '.join(hit.matched[:12]))}", dim=True)


def _named(topic: str, heading: str) -> str:
    """What a hit is about: the topic of its file and its own heading, unless one of them says it all."""
    told, own = set(topic.casefold().split()), set(heading.casefold().split())
    return heading if told <= own else topic if own <= told else f"{topic} › {heading}"


def _render_verdicts(verdicts: Sequence[Verdict], unchecked: str, style: Style) -> Iterator[str]:
    """One line of what holds, and one for each thing that does not."""
    if unchecked:
        yield style(f"   {unchecked}: `truekeep verify` checks what this names", dim=True)
    for verdict in verdicts:
        if verdict.verdict in ("gone", "moved", "changed"):
            what = style(verdict.verdict, fg={"gone": "red", "moved": "yellow", "changed": "cyan"}[verdict.verdict])
            yield f"   {what} {printable(clip(verdict.claim.shown, 60))}: {printable(verdict.why)}"
    if holds := sum(verdict.verdict == "confirmed" for verdict in verdicts):
        yield style(f"   {holds} of {len(verdicts)} claims confirmed against current code", fg="green", dim=True)


def _render_lines(hit: Hit, style: Style) -> Iterator[str]:
    """The lines around the one that answers best, that one marked."""
    lines = [(hit.first + at, line) for at, line in enumerate(hit.text.split("\n")) if line.strip()]
    if hit.store == "transcripts" or not any(number == hit.best for number, _ in lines):
        chosen, best = lines[:_SHOWN], -1
    else:
        best = next(at for at, (number, _) in enumerate(lines) if number == hit.best)
        start = max(0, min(best - _SHOWN // 2, len(lines) - _SHOWN))
        chosen, best = lines[start : start + _SHOWN], best - start
    for at, (_, line) in enumerate(chosen):
        mark = style("▸", fg="green") if at == best and len(chosen) > 1 else " "
        yield f" {mark} {clip(printable(line), 160)}"
    if len(lines) > len(chosen):
        cited = hit.citation if as_argument(hit.path) == hit.path else as_argument(hit.citation)
        yield style(f"   … {len(lines) - len(chosen)} more lines: truekeep get {printable(cited)}", dim=True)


def render_remarks(answer: SearchResult, style: Style) -> Iterator[str]:
    """What to know about the hits."""
    for typed, known in answer.corrections:
        yield style(f"no memory has {printable(typed)!r}; looked for words like {printable(known)!r}", fg="yellow")
    for note in answer.notes:
        yield style(printable(note), fg="yellow")


def render_notices(notices: Sequence[str], style: Style) -> Iterator[str]:
    """What happened besides: a ledger was damaged, a killed run was finished. Said once, whatever the answer says."""
    for notice in notices:
        yield style("note: ", fg="yellow") + printable(notice)


def _style_for(stream: TextIO | None) -> Style:
    """Colours for a terminal, plain text for whoever else reads."""
    is_shown = stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")
    return _coloured if is_shown else _plain


def _plain(text: str, **_: object) -> str:
    return text


def _coloured(text: str, *, fg: str = "", bold: bool = False, dim: bool = False) -> str:
    chosen = [name for name in (fg, "bold" if bold else "", "dim" if dim else "") if name]
    return "".join(f"\x1b[{_CODES[name]}m" for name in chosen) + text + "\x1b[0m"


def _print(stream: TextIO | None, lines: Iterable[str]) -> None:
    text = "".join([f"{line}\n" for line in lines])
    if stream is not None and text:
        stream.write(text)
        stream.flush()
