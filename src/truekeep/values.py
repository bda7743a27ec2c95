"""What a text says the value of a thing is: a service's port, a package's version, where something lies, a setting.

Only what is said outright counts: "the gateway listens on port 5204", "Port: 5204", `JOBS=4`, a row of a table. What
was, will be, might be, or is an example says nothing about now. The thing is named by the words of its clause; where
there are none ("listens on 5204"), by what the text is about. Two texts that give one thing two values disagree; so a
doubtful sentence gives none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.card import words_of
from truekeep.tables import iter_prose, iter_rows

KINDS = ("port", "version", "path", "flag", "setting")
MOST_WORDS = 6  # that name a thing; more are a story
LINE_CHARS = 600
MOST_VALUES = 2_000  # of one text

_STOP = frozenset(
    """
    a an the this that these those our your its their his her my we i you it they he she of for in on at to from by
    with and or as is are be been being has have had do does did s t only always still just also now currently here
    there listen listens listening run runs running serve serves served serving bind binds bound expose exposes
    exposed use uses used using require requires required need needs needed live lives lie lies sit sits stores
    stored keep keeps kept locate located find found writes written save saves saved reside resides set sets default
    defaults must pin pins pinned upgrade upgraded moved changed switched migrate migrated bump bumped built targets
    deployed available reachable answer answers accept accepts talk talks connect connects port ports version
    versions path file folder directory number value tcp udp http https note notes decision fact configured goes go
    become became via over under inside into per all every each both current actual
    """.split()  # noqa: SIM905
)
_GENERIC = frozenset(
    """
    service server app application container process daemon host machine instance system component project
    repository repo setup configuration config overview detail details info information reference settings setting
    ports
    """.split()  # noqa: SIM905
)
_ASPECTS = frozenset(
    """
    metric admin debug debugger health healthcheck grpc rest api ui web management ssh probe rpc internal external
    public private main primary secondary local remote
    """.split()  # noqa: SIM905
)  # of many things: each has one
_NOT_NOW = re.compile(
    r"\b(?:was|were|used to|formerly|previously|originally|once|no longer|not|never|n't|instead of|rather than|until"
    r"|unless|old|older|earlier|former|legacy|deprecated|would|could|might|may|will|should|plan|planned|planning|proposed|todo"
    r"|if|when|whenever|e\.g|for example|for instance|such as|example|sample|imagine|suppose|either|maybe|perhaps|try"
    r"|tried|like|free|taken|conflicts?|collides?|differs?|except|other than|before|after|between|at least|at most"
    r"|up to|minimum|maximum|min|max|or (?:newer|later|above|higher|below)|and (?:newer|later|above|up))\b",
    re.IGNORECASE,
)
_ORDER = re.compile(r"\b(?:before|after)\b", re.IGNORECASE)  # a setting holds before something as well
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")
_LEAD = re.compile(r"[\s>]*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?(?:\[[a-zA-Z -]{1,30}\|i=[^\]\s]{0,8}\]\s*)?")
_BREAK = re.compile(r"[,;()—–]|\s-\s|\b(?:because|since|so|which|that|while|but|and|via|using)\b", re.IGNORECASE)
_END = re.compile(
    r"[`*_\"')\]]*(?:\s+(?:now|today|again|instead|already))?\s*(?:[.,;!?()—–|]|\Z|(?:-|because|since|so|which|that|while|but|and)\s)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[`*_\"')\]]*(?:\s+(?:now|today|again|instead|already))?\s+(?:in|on|for|of|at|by)\s+(?:the\s+)?([\w-]+(?:\s[\w-]+){0,2})\s*(?=[.,;!?()—–|]|\Z)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w./:-])(?P<host>`?(?:[A-Za-z][\w.-]*|\d{1,3}(?:\.\d{1,3}){3}|\[::1?\])?:)?`?(?P<port>\d{2,5})\b(?![./:-]?\w)"
)
_PORT_BEFORE = re.compile(r"\bport\b\W{0,4}(?:(?:is|number|no|=)\W{0,3})?(?:now\s+)?[`*_]*\Z", re.IGNORECASE)
_PORT_OF = re.compile(
    r"\A[`*_]*port\s+`?(?P<port>\d{2,5})`?[`*_]*\s*(?::|=|is\s+(?:for|used\s+by)|belongs\s+to|serves)\s+(?P<thing>[^,;.()]{1,60})",
    re.IGNORECASE,
)
_LISTENS = re.compile(
    r"\b(?:listen(?:s|ing)?|serves?|served|runs?|running|bound|binds?|exposed|available|reachable|answers?)\s+"
    r"(?:on|at|to)\s+[`*_]*\Z",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?<![\w./-])`?(?P<name>[A-Za-z][\w+-]*(?:\.js|\.io)?)`?\s+(?:version\s+|v\.?\s?)?`?v?(?P<number>\d+(?:\.\d+){0,3})`?"
    r"(?![\w%/-]|\.\d|:\d)"
)
_VERSION_OF = re.compile(
    r"\b(?:is|are|at|on|runs?|to)\s+(?:version|v\.?)\s?`?v?(?P<number>\d+(?:\.\d+){0,3})`?(?![\w%/-]|\.\d|:\d)"
)
_PINNED = re.compile(r"`(?P<name>[A-Za-z][\w.+-]*)==(?P<number>\d[\w.]*)`")
_RUNS_ON = re.compile(
    r"(?:\A|\b(?:uses?|using|requires?|needs?|runs?(?:\s+on)?|on|with|to|pinned|pins?|targets?|is|are|now))\s*[`*_]*\Z",
    re.IGNORECASE,
)
_RUNTIMES = frozenset(
    """
    python node nodejs node.js ruby go golang java jdk php perl rust postgres postgresql mysql mariadb redis sqlite
    mongodb kafka nginx react vue angular django rails flask fastapi spring kubernetes docker debian ubuntu alpine
    terraform npm pnpm yarn gcc clang llvm cmake dotnet elixir erlang openssl elasticsearch rabbitmq helm typescript
    webpack vite
    """.split()  # noqa: SIM905
)
_PATH = re.compile(r"`(?P<quoted>[^`\s]{1,200})`|(?<![\w`/.~-])(?P<bare>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*)")
_LIES = re.compile(
    r"\b(?:is|are|lives?|lies|sits?|stored|kept|located|found|written|saved|goes|resides?)(?:\s+now)?"
    r"(?:\s+(?:in|at|under|to|inside))?\s*(?:the\s+file\s+)?[*_\"']*\Z",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"(?<![\w$./-])`?(?P<name>[A-Z][A-Z0-9_]{2,60})\s?=\s?(?P<value>\"[^\"`\n]{1,80}\"|[\w./:@%+-]{1,80})`?"
)
_NAMED = re.compile(
    r"`(?P<name>-{0,2}[A-Za-z][\w.-]{1,60})`\s+(?:is(?:\s+now)?(?:\s+set\s+to)?|are|defaults?\s+to|must\s+be|set\s+to|=)\s+"
    r"(?:`(?P<quoted>[^`\n]{1,80})`|(?P<bare>\d+(?:\.\d+)?(?:\s?(?:ms|s|min|minutes|seconds|hours|MB|GB|kB|%))?"
    r"|true|false|on|off|enabled|disabled)\b)"
)
_FLAGGED = re.compile(
    r"`(?P<command>[\w./-]{1,60})[^`\n]{0,120}?\s(?P<name>--[a-z][\w-]{1,40})[= ]"
    r"(?P<value>\d[\w.]*|true|false|on|off)\b[^`\n]{0,80}`"
)
_LABEL = re.compile(r"(?P<label>[^:=|]{1,80}?)\s*[:=]\s+(?P<rest>\S.{0,200})\Z")
_BARE_NUMBER = re.compile(r"[`*_]*(?P<port>\d{2,5})[`*_]*(?:/(?:tcp|udp))?[.,;]?\Z")
_BARE_VERSION = re.compile(r"[`*_]*v?(?P<number>\d+(?:\.\d+){0,3})[`*_]*[.,;]?\Z")
_BARE_PATH = re.compile(r"[`*_]*(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w.@+-]+)[`*_]*[.,;]?\Z")


class Value(NamedTuple):
    """One thing, and what a text says of it."""

    kind: str
    subject: str  # the words that name the thing, in order of the alphabet
    value: str
    line: int
    start: int  # of the value, in the text
    end: int


def find_values(text: str, *, topic: str = "", repository: str = "") -> list[Value]:
    """Every value that a text gives outright. `topic` names what it is about where a clause does not."""
    found: list[Value] = []
    about = _words(topic)
    starts = _line_starts(text)
    rows = {row.line for row in iter_rows(text)} if "|" in text else set()
    heading: tuple[str, ...] = ()
    for number, line in iter_prose(text):
        if line.startswith("#"):
            bare = line.lstrip("#")
            heading = _words(bare) if line.startswith("##") else ()
            continue
        if number in rows or len(found) >= MOST_VALUES:
            continue
        if any(character.isdigit() or character in "/=`" for character in line):
            scope = _Scope(about, heading, repository)
            found += _line_values(line[:LINE_CHARS], number, starts[number - 1], scope)
    if rows:
        found += _table_values(text, starts)
    return found[:MOST_VALUES]


def name_of(entity: str, key: str) -> tuple[str, str]:
    """The kind and the name of what a fact is about, as `find_values` would give them."""
    words = set(words_of(key))
    kind = next((kind for kind in ("port", "version", "path") if kind in words), "")
    if not kind and words & {"file", "folder", "directory", "location"}:
        kind = "path"
    named = (*_words(entity), *_words(key, keep=kind == "path"))
    if kind == "version":
        named = tuple(_runtime(word) for word in named)
    return kind or "setting", _subject(tuple(dict.fromkeys(named)), keep=kind == "path") if named else ""


class _Scope(NamedTuple):
    """What a line is about besides its own words."""

    topic: tuple[str, ...]
    heading: tuple[str, ...]
    repository: str

    def name(self, clause: _Clause, *, narrow: bool = True) -> tuple[str, ...]:
        """The thing that these words name. Without words of its own it is what the text is about.

        Not `narrow`: one repository has one of them, so it needs no topic.
        """
        own = (*clause.words, *clause.tail)
        if any(word not in _GENERIC and word not in _ASPECTS for word in clause.words):
            return own
        if not narrow and self.repository:
            return own
        inside = tuple(word for word in self.heading if word not in _GENERIC and word not in self.topic)
        return (*self.topic, *inside, *own)


class _Clause(NamedTuple):
    """The words around a value: those that name the thing, and those that say which of them."""

    words: tuple[str, ...]
    tail: tuple[str, ...] = ()


def _line_values(line: str, number: int, offset: int, scope: _Scope) -> Iterator[Value]:
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    for begin, end in _sentences(line, start):
        sentence = line[begin:end]
        settings = list(_settings(sentence))
        others = [
            *_labelled(sentence, scope),
            *_ports(sentence, scope),
            *_versions(sentence, scope),
            *_paths(sentence, scope),
        ]
        prose = _without_code(sentence) if settings or others else ""
        if settings and _NOT_NOW.search(_ORDER.sub(" ", prose)):
            settings = []
        if others and _NOT_NOW.search(prose):
            others = []
        taken: set[int] = set()
        for value in (*settings, *others):
            if value.start not in taken and 0 < len(value.subject.split()) <= MOST_WORDS:
                taken.add(value.start)
                at = offset + begin
                yield value._replace(line=number, start=value.start + at, end=value.end + at)


def _settings(sentence: str) -> Iterator[Value]:
    for match in _FLAGGED.finditer(sentence):
        yield _value(
            "flag", (match["command"].rpartition("/")[2].lower(), match["name"]), match["value"], match, "value"
        )
    for match in _NAMED.finditer(sentence):
        group = "quoted" if match["quoted"] else "bare"
        name = match["name"]
        if "/" in match[group] and not name.startswith("-") and name.islower() and "." not in name and "_" not in name:
            continue  # where a thing lies
        kind = "flag" if name.startswith("-") else "setting"
        yield _value(kind, (name.lower(),), _switch(match[group]), match, group)
    for match in _ASSIGNED.finditer(sentence):
        yield _value("setting", (match["name"].lower(),), match["value"].strip('"'), match, "value")


def _labelled(sentence: str, scope: _Scope) -> Iterator[Value]:
    """ "Gateway port: 5204", "Config file: `/etc/gateway.toml`", "Python version: 3.11"."""
    match = _LABEL.match(sentence)
    if match is None:
        return
    label = match["label"].strip("*_` ").lower()
    kinds = set(re.findall(r"[a-z]+", label))
    rest, at = match["rest"], match.start("rest")
    own = _Clause(_words(label))
    if kinds & {"port", "ports"} and (bare := _BARE_NUMBER.match(rest)) and _is_port(bare["port"]):
        yield _shifted(_value("port", scope.name(own), bare["port"], bare, "port"), at)
    elif (kinds & {"version"} or set(own.words[-1:]) & _RUNTIMES) and (bare := _BARE_VERSION.match(rest)):
        yield _shifted(_value("version", scope.name(own, narrow=False), bare["number"], bare, "number"), at)
    elif kinds & {"path", "file", "folder", "directory", "location", "log", "logs", "script", "config", "database"}:
        bare = _BARE_PATH.match(rest)
        if bare is not None and ("/" in bare["path"] or rest.startswith("`")):
            named = _Clause(_words(label, keep=True))
            yield _shifted(_value("path", scope.name(named), bare["path"], bare, "path"), at)


def _ports(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _NUMBER.finditer(sentence):
        before = sentence[: match.start()]
        says_port = _PORT_BEFORE.search(before)
        if not _is_port(match["port"]) or not (says_port or _LISTENS.search(before)):
            continue
        if not says_port and not match["host"] and _is_year(match["port"]):
            continue
        named = _clause(before, sentence[match.end() :])
        if named is not None:
            yield _value("port", scope.name(named), match["port"], match, "port")
    for match in _PORT_OF.finditer(sentence):
        own = _words(match["thing"])
        if own and _is_port(match["port"]):
            yield _value("port", scope.name(_Clause(own)), match["port"], match, "port")


def _versions(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _PINNED.finditer(sentence):
        yield _value("version", (match["name"].lower(),), match["number"], match, "number")
    for match in _VERSION.finditer(sentence):
        name = match["name"].lower()
        if name in _STOP or name in ("line", "step", "issue", "chapter", "section", "page", "level", "phase", "table"):
            continue
        before = sentence[: match.start()]
        is_known = name in _RUNTIMES
        if not (is_known or "." in match["number"]) or not _RUNS_ON.search(before):
            continue
        named = _clause(before, sentence[match.end() :])
        if named is not None and name not in named.words:
            own = scope.name(named, narrow=False)
            yield _value("version", (*own, _runtime(name)), match["number"], match, "number")
    for match in _VERSION_OF.finditer(sentence):
        named = _clause(sentence[: match.start()], sentence[match.end() :])
        if named is not None and named.words:
            own = tuple(_runtime(word) for word in scope.name(named, narrow=False))
            yield _value("version", own, match["number"], match, "number")


def _paths(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _PATH.finditer(sentence):
        group = "quoted" if match["quoted"] else "bare"
        path = match[group].rstrip(".,;:")
        if "/" not in path or "://" in path or any(mark in path for mark in "*<>{}$()|"):
            continue
        before = sentence[: match.start()]
        lies = _LIES.search(before)
        if lies is None or _END.match(sentence, match.start(group) + len(path)) is None:
            continue
        named = _clause(before, sentence[match.end() :], keep=True)
        if named is not None and named.words:
            start = match.start(group)
            yield Value("path", _subject(scope.name(named), keep=True), path, 0, start, start + len(path))


def _table_values(text: str, starts: list[int]) -> Iterator[Value]:
    """The cells under a column that is called port, version or path; the first other cell names the thing."""
    for row in iter_rows(text):
        names = [name.strip().lower() for name in row.columns]
        for at, cell in enumerate(row.cells):
            kind = names[at] if at < len(names) else ""
            if kind not in ("port", "version", "path") or not cell:
                continue
            label = next((other for other, name in zip(row.cells, names, strict=False) if name != kind and other), "")
            pattern, group = {
                "port": (_BARE_NUMBER, "port"), "version": (_BARE_VERSION, "number"), "path": (_BARE_PATH, "path")
            }[kind]  # fmt: skip
            match = pattern.match(cell)
            own = _words(label)
            if match is None or not own or len(own) > MOST_WORDS or (kind == "port" and not _is_port(match[group])):
                continue
            line_start = starts[row.line - 1]
            line_end = text.find("\n", line_start)
            place = text.find(match[group], line_start, line_end if line_end >= 0 else len(text))
            if place >= 0:
                name = tuple(_runtime(word) for word in own) if kind == "version" else own
                yield Value(kind, _subject(name), match[group], row.line, place, place + len(match[group]))


def _clause(before: str, after: str, *, keep: bool = False) -> _Clause | None:
    """The words of the clause around a value; None where the clause goes on in a way that is not understood."""
    pieces = _BREAK.split(before)
    own = pieces[-1]
    if len(pieces) > 1 and not _words(own, keep=keep):
        return None  # its subject stands further in front
    tail = _TAIL.match(after)
    if tail is not None:
        return _Clause(_words(own, keep=keep), _words(tail[1]))
    return _Clause(_words(own, keep=keep)) if _END.match(after) else None


def _words(text: str, *, keep: bool = False) -> tuple[str, ...]:
    """The words that name something. `keep`: file, folder and the like are names as well."""
    kept = []
    for word in words_of(text):
        if word.isdigit() or (word in _STOP and not (keep and word in ("file", "folder", "directory"))):
            continue
        kept.append(_singular(word))
    return tuple(dict.fromkeys(kept))


def _singular(word: str) -> str:
    if word in _RUNTIMES:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _subject(words: tuple[str, ...], *, keep: bool = False) -> str:
    """The name of a thing. A server is one whether it is called so or not; of paths, "config" tells them apart."""
    named = {word for word in words if keep or word not in _GENERIC} or set(words)
    return " ".join(sorted(named))


def _value(kind: str, words: tuple[str, ...], value: str, match: re.Match[str], group: str) -> Value:
    return Value(kind, _subject(words, keep=kind == "path"), value, 0, match.start(group), match.end(group))


def _shifted(value: Value, by: int) -> Value:
    return value._replace(start=value.start + by, end=value.end + by)


def _switch(value: str) -> str:
    return {"on": "true", "enabled": "true", "off": "false", "disabled": "false"}.get(value.lower(), value)


def _runtime(name: str) -> str:
    return {"nodejs": "node", "node.js": "node", "golang": "go", "postgresql": "postgres"}.get(name, name)


def _is_port(number: str) -> bool:
    return 1 <= int(number) <= 65_535 and not number.startswith("0")


def _is_year(number: str) -> bool:
    return 1990 <= int(number) <= 2100


def _sentences(line: str, start: int) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(line, start):
        yield start, match.start()
        start = match.end()
    yield start, len(line)


def _without_code(sentence: str) -> str:
    return re.sub(r"`[^`]*`", "`x`", sentence)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts += [match.end() for match in re.finditer("\n", text)]
    return starts
