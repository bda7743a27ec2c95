"""Prose: what can only be code although nothing marks it, and what the words around it make a port or a version."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from truekeep.verify.claims.patterns import (
    HOSTS,
    LONGEST,
    PRODUCTS,
    TOOLS,
    TOP_FOLDERS,
    UNIT,
    Raw,
    is_file,
    is_port,
    symbol_token,
    token,
    url_token,
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
_PORT = re.compile(
    r"\b[Pp]orts?(?: number)?[ :=]+`?(\d{2,5})`?(?:(?:,| and| or|/) ?`?(\d{2,5})`?)?(?!\w|\.\d)"
    r"|\b(?:listen(?:s|ing)?|answers?|serv(?:es|ing)|runs?|running|bound|binds?) (?:on|at"
    r"|to) `?:?(\d{3,5})`?(?![\w:%]|\.\d)"
    r"|\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b"
)
_LINE_WORD = re.compile(r"\b(?:at |on )?(?:[Ll]ines?|L)[ ]?(\d{1,6})(?: ?(?:-|–|to|and|through) ?(\d{1,6}))?\b")
_HEX = re.compile(r"(?<![\w./#@-])[0-9a-f]{7,40}(?![\w/-]|\.\w)")
_COMMITS = re.compile(
    r"\b(?:commits?|git (?:show|log|revert|diff|checkout|cherry-pick)|reverts?|cherry-pick(?:ed)?|bisect(?:ed)?"
    r"|revision|changeset)\b",
    re.IGNORECASE,
)
_COMMIT_WORD = re.compile(r"\b(?:commit|revision|rev|sha|changeset)s? +(?:id +)?`?([0-9a-f]{7,40})\b`?", re.IGNORECASE)
_VERSIONED = re.compile(
    r"(?<![\w./@-])([A-Za-z][\w.+-]{1,40}?)(?:`)?(?: version"
    r"| release)? v?(\d{1,4}(?:\.\d{1,4}){1,3})(?:\.x)?(?![\w%]|\.\d)"
)
_OR_NEWER = re.compile(r"`?(?:\+|,? (?:or|and) (?:newer|later|above|higher|greater|up|upwards?|more recent)\b)")
_UP_TO = re.compile(
    r"`?(?: ?(?:-|–|—|to|through|until|and|or|,|/) ?v?\d|,? (?:or|and) (?:older|earlier|below|lower)\b)"
)  # one end of a range, one of several
_SINCE = re.compile(r"\b(?:since|before|until|till|as of|prior to|up to)\s+[`*_]*\Z", re.IGNORECASE)
_CONTAINER = re.compile(
    r"\bcontainers? (?:named |called )?[`\"']([A-Za-z0-9][\w.-]{1,62})[`\"']"
    r"|`([A-Za-z0-9][\w.-]{1,62})` container\b"
    r"|\bdocker (?:exec(?: -\w+)*|logs(?: -\w+)*|restart|stop|start|inspect) ([A-Za-z0-9][\w.-]{1,62})"
)
_PACKAGE_WORD = re.compile(
    r"\b(?:package|library|dependency|crate|gem|module|plugin)s? (?:called |named )?`(@?[A-Za-z][\w./-]{1,60})`"
    r"|`(@?[A-Za-z][\w./-]{1,60})` (?:package|library|dependency|crate|gem)\b"
    r"|\b(?:depends? on|dependency on|dependency:|pinned? to|pins|requires?|asks for"
    r"|installs?) `(@?[A-Za-z][\w./-]{1,60})`"
    r"|`(@?[A-Za-z][\w./-]{1,60})` is (?:a|our|an indirect|a direct|a dev|a runtime) (?:\w+ )?dependency\b"
)
_MANIFEST = re.compile(
    r"\b(?:package\.json|pyproject\.toml|Cargo\.toml|go\.mod|Gemfile|composer\.json|pom\.xml|build\.gradle"
    r"|requirements[\w-]*\.txt|setup\.(?:py|cfg)"
    r"|Pipfile|mix\.exs|pubspec\.yaml)\b"
)
_TARGET_WORD = re.compile(
    r"\b(?P<kind>make|npm|just|package\.json) (?:target|script|recipe|task)s? `(?P<before>[\w:.-]{1,60})`"
    r"|`(?P<after>[\w:.-]{1,60})` (?P<other>make|npm|just|yarn|pnpm) (?:target|script|recipe|task)"
)
DECISION = re.compile(
    r"\b(?:we|they|the team|I) (?:have |had )?(?:decided|chose|chosen|agreed (?:to|on|that|not)|settled (?:on|for)"
    r"|picked|opted (?:for|to)|switched (?:\w+ ){0,3}(?:to|from)|standardi[sz]ed on|moved (?:\w+ )?(?:to|from|away))\b"
    r"|\b(?:it was|was) (?:decided|agreed)\b|^\W{0,6}(?:\*\*)?(?:Decision|Decided|Agreed)\b:?"
    r"|\bwe(?:'re| are)? (?:use|using|go with|going with)\b[^.;]{0,60}\b(?:over|instead of|rather than|not)\b",
    re.IGNORECASE,
)


def in_words(line: str, raws: list[Raw]) -> list[Raw]:
    """Claims that need the words around them: ports, containers, packages, versions, line numbers, commits."""
    found = [
        Raw(*match.span(1), "commit", match[1].lower(), "called a commit")
        for match in _COMMIT_WORD.finditer(line)
        if match[0].endswith("`") or not _is_word_or_number(match)
    ]
    lowered = line.lower()
    if any(character.isdigit() for character in line):
        for match in _PORT.finditer(line):
            named = [group for group in range(1, 5) if match[group] and is_port(match[group])]
            found += [Raw(*match.span(group), "port", match[group], "called a port") for group in named]
        if "line" in lowered or " L" in line:
            found += _line_words(line, raws)
        speaks_of_commits = _COMMITS.search(line) is not None
        for match in _HEX.finditer(line):
            word = match[0]
            if not word.isdigit() and not word.isalpha() and (len(word) == 40 or speaks_of_commits):
                found.append(Raw(*match.span(), "commit", word, "called a commit"))
        for match in _VERSIONED.finditer(line):
            is_current = not _UP_TO.match(line, match.end()) and not _SINCE.search(
                line, max(0, match.start() - 20), match.start()
            )
            if match[1].lower() not in _NOT_VERSIONED and is_current:
                least = ">=" if _OR_NEWER.match(line, match.end()) else ""
                why = "a name and the least number" if least else "a name and a number"
                found.append(Raw(*match.span(2), "version", least + match[2], why, owner=match[1], is_weak=True))
    if "container" in lowered or "docker" in lowered:
        for match in _CONTAINER.finditer(line):
            group = match.lastindex or 1
            found.append(Raw(*match.span(group), "container", match[group], "called a container"))
    if "`" in line:
        for match in _PACKAGE_WORD.finditer(line):
            group = match.lastindex or 1
            if not is_file(match[group]) and match[group].lower() not in TOOLS:
                found.append(Raw(*match.span(group), "package", match[group], "called a package", is_weak=True))
        if _MANIFEST.search(line):
            for raw in raws:
                is_name = raw.kind == "symbol" and raw.why == "inline code"
                if is_name and line[raw.end : raw.end + 1] == "`":
                    found.append(raw._replace(kind="package", why="beside a manifest", is_weak=True))
        for match in _TARGET_WORD.finditer(line):
            name = "before" if match["before"] else "after"
            tool = match["kind"] or match["other"]
            found.append(
                Raw(
                    *match.span(name),
                    "script",
                    match[name],
                    "called a target",
                    owner="npm" if tool == "package.json" else tool,
                )
            )
    return found


def _is_word_or_number(match: re.Match[str]) -> bool:
    """Whether what follows "commit" or "revision" is a word ("defaced") or a number ("revision 20240101")."""
    is_number = match[1].isdigit() and len(match[1]) < 40 and not match[0].lower().startswith("commit")
    return match[1].isalpha() or is_number


_NOT_VERSIONED = frozenset(
    "section version chapter figure table step release since before after until from to in at by of about over "
    "under only "
    "than and or is was are be the a an with line lines page port http tls ssl rfc iso utf ip than least most "
    "around nearly "
    "roughly approximately x score ratio rate took takes up down for on v".split()
)


def _line_words(line: str, raws: list[Raw]) -> Iterator[Raw]:
    """ "line 120 of `a.py`" and "`a.py`, lines 3 to 9"."""
    paths = sorted(raw for raw in raws if raw.kind == "path")
    if not paths:
        paths = [raw for raw in in_prose(line) if raw.kind == "path"]
    starts = [raw.start for raw in paths]
    for match in _LINE_WORD.finditer(line):
        at = bisect_left(starts, match.start())
        near = min(
            paths[max(0, at - 2) : at + 2],
            key=lambda raw: min(abs(raw.start - match.end()), abs(match.start() - raw.end)),
            default=None,
        )
        if near is None or min(abs(near.start - match.end()), abs(match.start() - near.end)) > 40:
            continue
        if re.search(r"[.!?;]\s", line[min(match.end(), near.end) : max(match.start(), near.start)]):
            continue  # another sentence's
        first = int(match[1])
        last = int(match[2] or 0)
        end = match.end(2) if match[2] else match.end(1)
        yield Raw(match.start(1), end, "line", near.name, "a line number by a path", place=near.name, first=first,
                   last=max(first, last))  # fmt: skip


def in_prose(prose: str) -> list[Raw]:
    """What can only be code, although nothing marks it."""
    found: list[Raw] = []
    for match in _PROSE.finditer(prose):
        kind = match.lastgroup
        start, end = match.span(kind or 0)
        word = match[kind or 0].rstrip(".,;:!?-")
        end = start + len(word)
        if kind == "url":
            found.append(url_token(word, start, "a link"))
        elif kind in ("path", "file"):
            found += _prose_path(word, start) or _prose_method(word, start)
        elif kind == "flag":
            found.append(Raw(start, end, "flag", word, "two dashes", is_weak=True))
        elif kind == "constant":
            found.append(Raw(start, end, "env", word, "capitals with underscores", is_weak=True))
        elif kind == "snake":
            found.append(Raw(start, end, "symbol", word, "underscores", is_weak=True))
        elif kind == "call":
            found += [raw._replace(is_weak=True) for raw in symbol_token(f"{word}()", start, "a call")]
        elif kind == "method":
            found += _prose_method(word, start)
    return found


def _prose_method(word: str, start: int) -> list[Raw]:
    """A class and its method in prose: `Config.load`, never `Node.js`."""
    owner, _, name = word.partition(".")
    is_class = owner[:1].isupper() and any(character.islower() for character in owner)
    if not is_class or not name.isidentifier() or not name[0].islower():
        return []
    if name == "js" or is_file(word) or name in HOSTS or owner.lower() in PRODUCTS:
        return []
    return [Raw(start, start + len(word), "method", name, "a dot between names", owner=owner, is_weak=True)]


def _prose_path(word: str, start: int) -> list[Raw]:
    path, colon, _ = word.replace("#L", ":", 1).partition(":")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return []
    has_file = is_file(parts[-1])
    if "/" not in path:
        if not has_file or (path.lower().endswith(".js") and path[:-3].lower() in PRODUCTS):
            return []
        if UNIT.match(path):
            return [Raw(start, start + len(path), "unit", path, "a unit's name", is_weak=True)]
        if (
            not colon
            and path[0].isupper()
            and "." in path
            and path.rsplit(".", 1)[1] not in ("md", "json", "toml", "txt", "lock")
        ):
            return []  # "Vue.js", a sentence without a blank
        if colon:
            return token(word, start, "a file and a line")
        return [Raw(start, start + len(path), "path", path, "a file's name", is_weak=True)]
    if has_file or path.startswith(("~/", "./", "../")):
        return [raw._replace(why="a path") for raw in token(word, start, "a path")]
    if path.endswith("/") and len(parts) > 1:
        return [raw._replace(is_weak=parts[0] not in TOP_FOLDERS) for raw in token(path, start, "a path")]
    if (parts[0] in TOP_FOLDERS and len(parts) > 1) or len(parts) > 2:
        return [raw._replace(is_weak=True) for raw in token(path, start, "a path")]
    return []


def decisions(line: str, *, decided: bool) -> Iterator[Raw]:
    """Each sentence that tells of a decision; under a heading about decisions, each list item."""
    at = 0
    for match in re.finditer(r"[.!?](?=\s+[A-Z*`])|\Z", line):
        if not at and line[: match.start()].strip().isdigit():
            continue  # the number of a list item
        sentence, start, at = line[at : match.end()], at, match.end()
        bare = sentence.strip()
        if not bare:
            continue
        item = re.match(r"(?:[-*+>]|\d+[.)])\s+", bare)
        if DECISION.search(bare) or (decided and item is not None):
            first = start + sentence.index(bare) + (item.end() if item else 0)
            text = line[first : start + len(sentence.rstrip())]
            yield Raw(first, first + len(text), "decision", text[:LONGEST], "a decision")
