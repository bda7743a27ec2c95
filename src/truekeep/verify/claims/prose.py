"""Claims in prose: names that can only be code, and numbers that the words beside them make a port or a version.

The words are in `phrases/claims.*.toml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import expand_names, load_phrases
from truekeep.verify.claims.patterns import (
    HARNESS_WORDS,
    HOSTS,
    MAX_CLAIM_CHARS,
    NAME,
    PRODUCTS,
    TOOLS,
    TOP_FOLDERS,
    UNIT,
    RawClaim,
    identifier_claims,
    is_file,
    is_port,
    token_claims,
    url_claim,
)

# In prose, where nothing marks a word as code.
_PROSE = re.compile(
    r"(?P<url>(?:https?|ftp)://[^\s<>\"'`)\]]+)"
    r"|(?<![\w./@:~-])(?P<path>(?:~/|\.{1,2}/|/)?(?:[\w.@+-]+/)+[\w.@+-]*"
    r"(?::\d{1,7}(?:[-–]\d{1,7})?(?!\d|\.\d)|#L\d{1,7}(?:-L?\d{1,7})?(?!\w))?)"
    r"|(?<![\w./@:-])(?P<file>[\w-][\w.-]*\.[a-zA-Z][a-zA-Z0-9]{0,8}(?::\d{1,7}(?:[-–]\d{1,7})?(?!\d"
    r"|\.\d))?)(?![\w/@(])"
    r"|(?<![\w-])(?P<flag>--[a-z][\w-]*[a-z0-9])(?![\w-])"
    r"|(?<![\w.$/-])(?P<call>[A-Za-z_][\w]*(?:(?:\.|::)[A-Za-z_]\w*){0,6})\(\)"
    r"|(?<![\w.$/-])(?P<constant>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?![\w/(-])"
    r"|(?<![\w.$/-])(?P<snake>_{0,2}[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w/(-])"
    r"|(?<![\w./-])(?P<method>[A-Z][A-Za-z0-9]*[a-z]\w*\.[a-z_]\w*)(?![\w/(-])"
)
_LEAST = re.compile(
    r"(?<![\w./@-])(?P<runtime>[Nn]ode(?:\.?js)?|NodeJS|Python|Go|Rust|Ruby|PHP|Java|Elixir|pnpm|npm|yarn|bun)\b[`*\])]{0,3}"
    r"(?:\([^()\s]*\))?[ ]?[*`]{0,2}(?:(?:>=|≥|&gt;=) ?v?(?P<at_least>\d{1,3}(?:\.\d{1,3}){0,2})(?![\w.]*[-<,])"
    r"|v?(?P<behind>\d{1,3})(?:\+|(?: |\.x )or (?:newer|later|higher|above|greater)\b))"
)
_HEX = re.compile(r"(?<![\w./#@-])[0-9a-f]{7,40}(?![\w/-]|\.\w)")
_MANIFEST = re.compile(
    r"\b(?:package\.json|pyproject\.toml|Cargo\.toml|go\.mod|Gemfile|composer\.json|pom\.xml|build\.gradle"
    r"|requirements[\w-]*\.txt|setup\.(?:py|cfg)|Pipfile|mix\.exs|pubspec\.yaml)\b"
)
_CONTAINER_NAME = r"[A-Za-z0-9][\w.-]{1,62}"
_ID = r"[A-Za-z0-9][A-Za-z0-9_:-]{5,127}"
_PACKAGE_NAME = r"@?[A-Za-z][\w./-]{1,60}"
_MAX_GAP_TO_PATH = 40  # characters between "line 12" and a path


class _WordPatterns(NamedTuple):
    """Patterns for what words beside a name or number make of it, built from the phrases of all languages."""

    port: re.Pattern[str]
    line_hint: re.Pattern[str]
    line: re.Pattern[str]
    commit: re.Pattern[str]
    commits: re.Pattern[str]
    commit_only: re.Pattern[str]
    version: re.Pattern[str]
    or_newer: re.Pattern[str]
    range_end: re.Pattern[str]
    since: re.Pattern[str]
    not_versioned: frozenset[str]
    container: re.Pattern[str]
    asked_id: re.Pattern[str]
    asked: re.Pattern[str]
    package: re.Pattern[str]
    target: re.Pattern[str]
    symbol_behind: re.Pattern[str]
    symbol_before: re.Pattern[str]
    decision: re.Pattern[str]
    choice: re.Pattern[str]


@cache
def _patterns() -> _WordPatterns:
    phrases = load_phrases("claims")
    words, ids = phrases.table("words"), phrases.table("id")
    container_names = {"QUOTED": rf"[`\"']({_CONTAINER_NAME})[`\"']", "NAME": rf"`({_CONTAINER_NAME})`"}
    return _WordPatterns(
        port=re.compile(
            rf"\b(?:{words['port']})[ :=]+`?(\d{{2,5}})`?(?:(?:,| (?:{words['and']})|/) ?`?(\d{{2,5}})`?)?(?!\w|\.\d)"
            rf"|\b(?:{words['listens']}) `?:?(\d{{3,5}})`?(?![\w:%]|\.\d)"
            r"|\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b"
        ),
        line_hint=re.compile(words["line_hint"]),
        line=re.compile(rf"\b(?:{words['line']})[ ]?(\d{{1,6}})(?: ?(?:-|–|{words['to']}) ?(\d{{1,6}}))?\b"),
        commit=re.compile(rf"\b(?:{words['commit']})s? +(?:id +)?`?([0-9a-f]{{7,40}})\b`?", re.IGNORECASE),
        commits=re.compile(rf"\b(?:{words['commits']})\b", re.IGNORECASE),
        commit_only=re.compile(words["commit_only"], re.IGNORECASE),
        version=re.compile(
            rf"(?<![\w./@-])([A-Za-z][\w.+-]{{1,40}}?)(?:`)?(?: (?:{words['version']}))?"
            r" v?(\d{1,4}(?:\.\d{1,4}){1,3})(?:\.x)?(?![\w%]|\.\d)"
        ),
        or_newer=re.compile(rf"`?(?:\+|,? (?:{words['or_newer']})\b)"),
        range_end=re.compile(rf"`?(?: ?(?:-|–|—|{words['range']}|,|/) ?v?\d|,? (?:{words['or_older']})\b)"),
        since=re.compile(rf"\b(?:{words['since']})\s+[`*_]*\Z", re.IGNORECASE),
        not_versioned=phrases.words("words.not_versioned"),
        container=re.compile(
            expand_names(words["container"], container_names)
            + rf"|\bdocker (?:exec(?: -\w+)*|logs(?: -\w+)*|restart|stop|start|inspect) ({_CONTAINER_NAME})"
        ),
        asked_id=re.compile(
            rf"\b(?P<what>{ids['asked']}|{ids['asked_if_configured']})s?(?: ids?)?:? `(?P<id>{_ID})`"
            rf"|`(?P<id_before>{_ID})` (?P<what_behind>{ids['asked']}|{ids['asked_if_configured']})\b",
            re.IGNORECASE,
        ),
        asked=re.compile(rf"(?:{ids['asked']})\Z", re.IGNORECASE),
        package=re.compile(expand_names(words["package"], {"NAME": rf"`({_PACKAGE_NAME})`"})),
        target=re.compile(
            rf"\b(?P<kind>make|npm|just|package\.json) (?:{words['target']})s? `(?P<before>[\w:.-]{{1,60}})`"
            rf"|`(?P<after>[\w:.-]{{1,60}})` (?P<other>make|npm|just|yarn|pnpm) (?:{words['target']})"
        ),
        symbol_behind=re.compile(rf"\b(?:{words['symbol']})s? (?:called |named )?({NAME})(?![\w(./-])"),
        symbol_before=re.compile(rf"(?<![\w./-])({NAME}) (?:{words['symbol']})\b"),
        decision=re.compile(words["decision"], re.IGNORECASE),
        choice=re.compile(words["choice"], re.IGNORECASE),
    )


def worded_claims(line: str, raws: list[RawClaim]) -> list[RawClaim]:
    """Claims that need the words around them: ports, containers, packages, versions, line numbers, commits."""
    found = list(_commit_claims(line))
    if any(character.isdigit() for character in line):
        found += _number_claims(line, raws)
    lowered = line.lower()
    if "container" in lowered or "docker" in lowered:
        for match in _patterns().container.finditer(line):
            group = match.lastindex or 1
            found.append(RawClaim(*match.span(group), "container", match[group], "called a container"))
    if "`" in line:
        found += _id_claims(line)
        found += _package_claims(line, raws)
        found += _target_claims(line)
    return found


def _id_claims(line: str) -> Iterator[RawClaim]:
    """Ids that only a live system knows; most things with ids count only if a command is configured for them."""
    patterns = _patterns()
    for match in patterns.asked_id.finditer(line):
        name, what = ("id", "what") if match["id"] else ("id_before", "what_behind")
        if any(character.isdigit() for character in match[name]) and not is_file(match[name]):
            owner = match[what].lower()
            is_weak = patterns.asked.match(owner) is None
            yield RawClaim(*match.span(name), "id", match[name], f"called a {owner}", owner=owner, is_weak=is_weak)


def _commit_claims(line: str) -> Iterator[RawClaim]:
    for match in _patterns().commit.finditer(line):
        if match[0].endswith("`") or not _is_word_or_number(match):
            yield RawClaim(*match.span(1), "commit", match[1].lower(), "called a commit")


def _number_claims(line: str, raws: list[RawClaim]) -> Iterator[RawClaim]:
    patterns = _patterns()
    for match in patterns.port.finditer(line):
        for group in range(1, patterns.port.groups + 1):
            if match[group] and is_port(match[group]):
                yield RawClaim(*match.span(group), "port", match[group], "called a port")
    if patterns.line_hint.search(line):
        yield from _line_claims(line, raws)
    mentions_commits = patterns.commits.search(line) is not None
    for match in _HEX.finditer(line):
        word = match[0]
        if not word.isdigit() and not word.isalpha() and (len(word) == 40 or mentions_commits):
            yield RawClaim(*match.span(), "commit", word, "called a commit")
    for match in patterns.version.finditer(line):
        if match[1].lower() in patterns.not_versioned or patterns.range_end.match(line, match.end()):
            continue
        if patterns.since.search(line, max(0, match.start() - 20), match.start()):
            continue
        least = ">=" if patterns.or_newer.match(line, match.end()) else ""
        why = "a name and the least number" if least else "a name and a number"
        yield RawClaim(*match.span(2), "version", least + match[2], why, owner=match[1], is_weak=True)
    for match in _LEAST.finditer(line):
        name = "behind" if match["behind"] else "at_least"
        owner, why = match["runtime"], "a name and the least number"
        yield RawClaim(*match.span(name), "version", ">=" + match[name], why, owner=owner, is_weak=True)


def _package_claims(line: str, raws: list[RawClaim]) -> Iterator[RawClaim]:
    for match in _patterns().package.finditer(line):
        group = match.lastindex or 1
        if not is_file(match[group]) and match[group].lower() not in TOOLS:
            yield RawClaim(*match.span(group), "package", match[group], "called a package", is_weak=True)
    if _MANIFEST.search(line):
        for raw in raws:
            is_name = raw.kind == "symbol" and raw.why == "inline code"
            if is_name and line[raw.end : raw.end + 1] == "`":
                yield raw._replace(kind="package", why="beside a manifest", is_weak=True)


def _target_claims(line: str) -> Iterator[RawClaim]:
    for match in _patterns().target.finditer(line):
        name = "before" if match["before"] else "after"
        tool = match["kind"] or match["other"]
        owner = "npm" if tool == "package.json" else tool
        yield RawClaim(*match.span(name), "script", match[name], "called a target", owner=owner)


def _is_word_or_number(match: re.Match[str]) -> bool:
    """Whether what follows "commit" or "revision" is a word ("defaced") or a number ("revision 20240101")."""
    is_commit = _patterns().commit_only.match(match[0]) is not None
    is_number = match[1].isdigit() and len(match[1]) < 40 and not is_commit
    return match[1].isalpha() or is_number


def _line_claims(line: str, raws: list[RawClaim]) -> Iterator[RawClaim]:
    """ "line 120 of `a.py`" and "`a.py`, lines 3 to 9"."""
    paths = sorted(raw for raw in raws if raw.kind == "path")
    if not paths:
        paths = [raw for raw in prose_claims(line) if raw.kind == "path"]
    starts = [raw.start for raw in paths]
    for match in _patterns().line.finditer(line):
        at = bisect_left(starts, match.start())
        near = min(
            paths[max(0, at - 2) : at + 2],
            key=lambda raw: min(abs(raw.start - match.end()), abs(match.start() - raw.end)),
            default=None,
        )
        if near is None or min(abs(near.start - match.end()), abs(match.start() - near.end)) > _MAX_GAP_TO_PATH:
            continue
        if re.search(r"[.!?;]\s", line[min(match.end(), near.end) : max(match.start(), near.start)]):
            continue  # another sentence's
        first = int(match[1])
        last = int(match[2] or 0)
        end = match.end(2) if match[2] else match.end(1)
        yield RawClaim(match.start(1), end, "line", near.name, "a line number by a path", place=near.name, first=first,
                   last=max(first, last))  # fmt: skip


def prose_claims(prose: str) -> list[RawClaim]:
    """Claims that can only be code, although nothing marks them as such."""
    found: list[RawClaim] = []
    for match in _PROSE.finditer(prose):
        kind = match.lastgroup
        start, end = match.span(kind or 0)
        word = match[kind or 0].rstrip(".,;:!?-")
        end = start + len(word)
        if kind == "url":
            found.append(url_claim(word, start, "a link"))
        elif kind in ("path", "file"):
            found += _prose_path(word, start) or _prose_method(word, start)
        elif kind == "flag":
            found.append(RawClaim(start, end, "flag", word, "two dashes", is_weak=True))
        elif kind == "constant" and word not in HARNESS_WORDS:
            found.append(RawClaim(start, end, "env", word, "capitals with underscores", is_weak=True))
        elif kind == "snake":
            found.append(RawClaim(start, end, "symbol", word, "underscores", is_weak=True))
        elif kind == "call":
            found += [raw._replace(is_weak=True) for raw in identifier_claims(f"{word}()", start, "a call")]
        elif kind == "method":
            found += _prose_method(word, start)
    for pattern in (_patterns().symbol_behind, _patterns().symbol_before):
        for match in pattern.finditer(prose):
            raws = identifier_claims(match[1], match.start(1), "called a function")
            found += [raw._replace(is_weak=True) for raw in raws if not raw.is_weak]
    return found


def _prose_method(word: str, start: int) -> list[RawClaim]:
    """A class and its method in prose: `Config.load`, never `Node.js`."""
    owner, _, name = word.partition(".")
    is_class = owner[:1].isupper() and any(character.islower() for character in owner)
    if not is_class or not name.isidentifier() or not name[0].islower():
        return []
    if name == "js" or is_file(word) or name in HOSTS or owner.lower() in PRODUCTS:
        return []
    return [RawClaim(start, start + len(word), "method", name, "a dot between names", owner=owner, is_weak=True)]


def _prose_path(word: str, start: int) -> list[RawClaim]:
    path, colon, _ = word.replace("#L", ":", 1).partition(":")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return []
    has_file = is_file(parts[-1])
    if "/" not in path:
        if not has_file or (path.lower().endswith(".js") and path[:-3].lower() in PRODUCTS):
            return []
        if UNIT.match(path):
            return [RawClaim(start, start + len(path), "unit", path, "a unit's name", is_weak=True)]
        if (
            not colon
            and path[0].isupper()
            and "." in path
            and path.rsplit(".", 1)[1] not in ("md", "json", "toml", "txt", "lock")
        ):
            return []  # "Vue.js", a sentence without a blank
        if colon:
            return token_claims(word, start, "a file and a line")
        return [RawClaim(start, start + len(path), "path", path, "a file's name", is_weak=True)]
    if has_file or path.startswith(("~/", "./", "../")):
        return [raw._replace(why="a path") for raw in token_claims(word, start, "a path")]
    if path.endswith("/") and len(parts) > 1:
        return [raw._replace(is_weak=parts[0] not in TOP_FOLDERS) for raw in token_claims(path, start, "a path")]
    if (parts[0] in TOP_FOLDERS and len(parts) > 1) or len(parts) > 2:
        return [raw._replace(is_weak=True) for raw in token_claims(path, start, "a path")]
    return []


def decision_claims(line: str, *, decided: bool) -> Iterator[RawClaim]:
    """Each sentence about a decision; under a heading about decisions (`decided`), each list item."""
    patterns = _patterns()
    if not decided and not patterns.decision.search(line) and not patterns.choice.search(line):
        return
    at = 0
    for match in re.finditer(r"[.!?](?=\s+[A-Z*`])|\Z", line):
        if not at and line[: match.start()].strip().isdigit():
            continue  # the number of a list item
        sentence, start, at = line[at : match.end()], at, match.end()
        bare = sentence.strip()
        if not bare:
            continue
        item = re.match(r"(?:[-*+>]|\d+[.)])\s+", bare)
        is_decision = patterns.decision.search(bare) is not None or (decided and item is not None)
        if is_decision or patterns.choice.search(bare):
            first = start + sentence.index(bare) + (item.end() if item else 0)
            text = line[first : start + len(sentence.rstrip())]
            why = "a decision" if is_decision else "a choice"
            yield RawClaim(first, first + len(text), "decision", text[:MAX_CLAIM_CHARS], why, is_weak=not is_decision)
