"""What a text says the value of a thing is: a service's port, a package's version, where something lies, a setting.

Only what is said outright counts: "the gateway listens on port 5204", "Port: 5204", `JOBS=4`, a row of a table. What
was, will be, might be, or is an example says nothing about now. The thing is named by the words of its clause; where
there are none ("listens on 5204"), by what the text is about. Two texts that give one thing two values disagree; so a
doubtful sentence gives none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from truekeep.memory.card import words_of
from truekeep.text.tables import iter_prose, iter_rows

KINDS = ("port", "version", "path", "flag", "setting")
MOST_WORDS = 6  # that name a thing; more are a story
LINE_CHARS = 600
_NUMERAL = 3  # digits of a number that may belong to a name
MOST_VALUES = 2_000  # of one text

_STOP = frozenset(
    """
    a an the this that these those our your its their his her my we i you it they he she of for in on at to from by
    with and or as is are be been being has have had do does did s t only always still just also now currently here
    there listen listens listening run runs running serve serves served serving bind binds bound expose exposes
    exposed use uses used using require requires required need needs needed live lives lie lies sit sits stores
    stored keep keeps kept locate located find found writes written save saves saved reside resides set sets default
    defaults must pin pins pinned upgrade upgraded moved changed switched migrate migrated bump bumped built targets
    deployed available reachable reached answer answers accept accepts talk talks connect connects port ports version
    versions path file folder directory number value note notes decision fact goes go become
    became via over under inside into per all every each both current actual start starts started launches launched
    comes invoke invoked passes passed puts publish published stay stays remain remains locked fixed frozen held raised
    lowered increased reduced updated plain released latest installed can ends lands up reads loads loaded was were
    everybody everyone anybody
    """.split()  # noqa: SIM905
)
_GENERIC = frozenset(
    """
    service server app application container process daemon host machine instance system component project
    repository repo setup configuration config overview detail details info information reference settings setting
    ports url address
    """.split()  # noqa: SIM905
)
_WORKPLACES = frozenset("build code codebase project everything team".split())  # noqa: SIM905 - they have no versions
_ASPECTS = frozenset(
    """
    metric admin debug debugger health healthcheck grpc rest api ui web management ssh probe rpc internal external
    public private main primary secondary local remote tcp udp http https
    """.split()  # noqa: SIM905
)  # of many things: each has one
_CONTAINERS = ("file", "folder", "directory", "dir", "path", "location")
_FILLED = frozenset("log data backup cache upload dump".split())  # noqa: SIM905 - a folder of these is where they are
_SAME_THING = {"configuration": "config", "configured": "config", "conf": "config", "folder": "directory"}
_NOT_NOW = re.compile(
    r"\b(?:was|were|used to|formerly|previously|originally|once|no longer|not|never|n't|instead of|rather than|until"
    r"|unless|old|older|earlier|former|legacy|deprecated|would|could|might|may|will|should|plan|planned|planning|proposed|todo"
    r"|if|when|whenever|e\.g|for example|for instance|such as|example|sample|imagine|suppose|either|maybe|perhaps|try"
    r"|tried|like|free|taken|conflicts?|collides?|differs?|except|other than|before|after|between|at least|at most"
    r"|up to|minimum|maximum|minimal|min|max|listened|ran|had|starting|prior|introduced|as of"
    r"|(?<!is )(?<!are )(?<!be )(?<!get )used (?!by\b|for\b|in\b|to\b)"
    r"|or (?:newer|later|above|higher|below)|and (?:newer|later|above|up))\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:was|were|been)\s+(?:moved|upgraded|updated|bumped|raised|lowered|increased|reduced|set|pinned|changed"
    r"|switched|migrated)\b",
    re.IGNORECASE,
)  # what was changed to something is that now
_SINCE = re.compile(r"\b(?:since|(?<!served )from)\s+(?:version\s+|port\s+)?(?:\w+\s+)?[`v]*\Z", re.IGNORECASE)
_ENDLESS = re.compile(r"\buntil\b", re.IGNORECASE)  # behind a value: it holds so far
_ORDER = re.compile(r"\b(?:before|after)\b", re.IGNORECASE)  # a setting holds before something as well
_REASON = re.compile(r"\A\W*(?:because|since|as)\b[^,;]{0,200}[,;]", re.IGNORECASE)
_ONLY_IF = re.compile(r"[,;(]\s*(?:only\s+)?(?:if|when|unless|except)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")
_LEAD = re.compile(r"[\s>]*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?(?:\[[a-zA-Z -]{1,30}\|i=[^\]\s]{0,8}\]\s*)?")
_BREAK = re.compile(r"[,;()—–]|\s-\s|\b(?:because|since|so|which|that|while|but|and|via|using)\b", re.IGNORECASE)
_AFTERWARDS = (
    r"[`*_\"')\]]*(?:/(?:tcp|udp)\b)?(?:\s+(?:now|today|again|instead|already|everywhere|only|by\s+default"
    r"|for\s+(?:everybody|everyone|all|now)|on\s+(?:every|all|each)\s+\w+))?"
)
_END = re.compile(
    _AFTERWARDS + r"\s*(?:[.,;!?()—–|]|\Z|(?:-|because|since|so|which|that|while|but|and|until|behind|through)\s)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    _AFTERWARDS
    + r"\s+(?P<how>in|on|for|of|at|by|to)\s+(?:the\s+)?(?P<which>[\w`-]+(?:\s[\w`-]+){0,2})\s*(?=[.,;!?()—–|]|\Z)",
    re.IGNORECASE,
)
_MUST = re.compile(r"\b(?:must|has\s+to|have\s+to|needs?)\b", re.IGNORECASE)
_OR_ELSE = re.compile(r"[`*_]*\s+or\s+(?:the|it|they|else)\b", re.IGNORECASE)
_WHOSE = re.compile(r"\A\s*(?:for|as\s+for)\s", re.IGNORECASE)
_WHERE = re.compile(r"\A\s*(?:on|in|for|at)\s+(?P<where>[^,;:]{1,50}),\s", re.IGNORECASE)
_DIRECTED = re.compile(
    r"\b(?:forwards?|proxies|routes?|sends?|points?|redirects?|connects?|talks?|maps?)\b[^,;]{0,60}?\s(?:to|with)\s+"
    r"(?=\S)",
    re.IGNORECASE,
)  # the port is that of what it is directed to
_ENDS_UP = re.compile(r"\bends?\s+up\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\A\W*(?:please\s+|we\s+)?(?:look\s+(?:for|at)|stick\s+to|see|check|visit|open|edit|leave|call|launch|pass|put"
    r"|install)\s",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w./:-])(?P<host>`?(?:[A-Za-z][\w.-]*|\d{1,3}(?:\.\d{1,3}){3}|\[::1?\])?:)?`?(?P<port>\d{2,5})\b"
    r"(?![./:-]?\w)"
    r"|(?<![\w./:-])(?P<tcp>\d{2,5})(?=/(?:tcp|udp)\b)"
)
_URL = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(?P<port>\d{2,5})(?P<rest>(?:/[^\s`\"'<>)]*)?)"
)
_SHOWN_BY = re.compile(
    r"[^`\n]{0,80}`?\s+(?:is|checks|shows|opens|reaches|serves|answers\s+for)\s+(?:the\s+)?(?P<thing>[^,;.()]{1,60})"
)
_PORT_BEFORE = re.compile(
    r"(?<![\w.])port\b\W{0,4}(?:(?:is|number|no|=)\W{0,3})?(?:now\s+)?[`*_]*\Z"
    r"|\bport\s+(?:of|for)\s+[^,;:()]{1,60}\s(?:is|=)\s+(?:now\s+)?[`*_]*\Z",
    re.IGNORECASE,
)
_PORT_OF = re.compile(
    r"\A[`*_]*port\s+`?(?P<port>\d{2,5})`?[`*_]*\s*(?::|=|is\s+(?:for|used\s+by|the\s+port\s+of)|belongs\s+to|serves"
    r"|goes\s+to)\s+(?P<thing>[^,;.()]{1,60})",
    re.IGNORECASE,
)
_LISTENS = re.compile(
    r"\b(?:listen(?:s|ing)?|serves?|served|runs?|running|bound|binds?|exposed|published|available|reachable|reached"
    r"|answers?)\s+(?:on|at|to|from|under)\s+[`*_]*\Z",
    re.IGNORECASE,
)
_NOT_MORE = r"`?(?![\w%/-]|\.\d|:\d)"
_DOTTED = r"`?v?(?P<{}>\d+(?:\.\d+){{{},3}})" + _NOT_MORE.replace("{", "{{").replace("}", "}}")
_VERSION = re.compile(
    r"(?<![\w./-])`?(?P<name>[A-Za-z][\w+-]*(?:\.js|\.io)?)`?\s+(?:version\s+|v\.?\s?)?" + _DOTTED.format("number", 0)
)
_VERSION_OF = re.compile(
    "|".join(
        (
            r"\b(?:is|are|at|on|runs?|to)\s+(?:version|v\.?)\s?" + _DOTTED.format("number", 0),
            r"\bversion\s+(?:of\s+[^,;:()]{1,60}\s)?(?:is|=)\s+(?:now\s+)?" + _DOTTED.format("said", 0),
            r"\b(?:pinned|locked|fixed|frozen|held|kept|upgraded|updated|bumped|migrated|moved)\s+(?:at|to|on)\s+"
            + _DOTTED.format("pinned", 1),
            r"\b(?:is|are|been|stays?|remains?|must\s+(?:be|stay))\s+(?:(?:still|now)\s+)?(?:(?:at|on)\s+)?"
            + _DOTTED.format("stays", 2),
            r"\b(?:keep|leave|pin|upgraded|updated|bumped|pinned)\s+[^,;:()]{1,60}\s(?:at|on|to)\s+"
            + _DOTTED.format("kept", 1),
        )
    ),
    re.IGNORECASE,
)
_VERSION_FIRST = re.compile(
    r"\b(?:at|on|run|runs|use|uses|with)\s+version\s+`?v?(?P<number>\d+(?:\.\d+){0,3})`?\s+of\s+(?:the\s+)?"
    r"(?P<thing>[^,;.()]{1,60})",
    re.IGNORECASE,
)
_PINNED = re.compile(r"`(?P<name>[A-Za-z@][\w./+-]*?)(?:==|@)v?(?P<number>\d[\w.]*)`")
_RUNS_ON = re.compile(
    r"(?:\A|\b(?:uses?|using|requires?|needs?|runs?(?:\s+on)?|on|with|to|pinned|pins?|targets?|is|are|now|only"
    r"|installs?))\s*[`*_]*\Z",
    re.IGNORECASE,
)
_REQUIRES = re.compile(r"\b(?:requires?|needs?)\s*[`*_]*\Z", re.IGNORECASE)
_NEEDED = re.compile(
    r"`?\s+(?:is|are)\s+(?:required|needed|installed|used|pinned|mandatory|what)\b|`?\s+works\b", re.IGNORECASE
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
    r"\b(?:is|are|lives?|lies|sits?|stored|kept|located|found|written|saved|goes|go|resides?|lands?|ends?\s+up|comes?"
    r"|configured)(?:\s+now)?(?:\s+(?:in|at|under|to|inside|from))?\s*(?:the\s+file\s+)?[*_\"']*\Z"
    r"|\b(?:writes|puts|stores|saves|keeps|sends|reads|loads|takes|gets)\s+(?:its|the|all|their|all\s+its)\s+[\w-]+"
    r"(?:\s[\w-]+)?\s(?:in|into|at|under|to|inside|from)\s+[*_\"']*\Z"
    r"|\blogs\s+to\s+[*_\"']*\Z|\A\W*(?:look\s+for|find|see)\s[^,;]{1,60}\s(?:in|at|under)\s+[*_\"']*\Z",
    re.IGNORECASE,
)
_PATH_FIRST = re.compile(
    r"`?\s+(?:is|holds|contains|has)\s+(?:the\s+|all\s+(?:the\s+)?)?(?P<thing>[^,;.()`]{1,60})(?=[.,;]|\Z)"
)
_ASSIGNED = re.compile(
    r"(?<![\w$./-])`?(?P<name>[A-Z][A-Z0-9_]{2,60}|[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){1,6})\s?=\s?"
    r"(?P<value>\"[^\"`\n]{1,80}\"|[\w./:@%+-]{1,80})`?"
)
_SETTING = (
    r"(?:`(?P<name>-{0,2}[A-Za-z][\w.-]{1,60})`"
    r"|(?<![\w$./-])(?P<plain>[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,6}|[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){1,6}))"
)
_AMOUNT = (
    r"(?:`(?P<quoted>[^`\n]{1,80})`|(?P<bare>\d+(?:\.\d+)?(?:\s?(?:ms|s|min|minutes|seconds|hours|MB|GB|kB|%))?"
    r"|true|false|on|off|enabled|disabled)\b(?!\.\d))"
)
_NAMED = re.compile(
    _SETTING + r"(?:\s+(?:flag|feature|setting|option|switch))?"
    r"\s*(?:\s(?:is|are)(?:\s+now)?(?:\s+(?:set\s+to|turned|switched|fixed\s+at))?|\sdefaults?\s+to"
    r"|\s(?:must|has\s+to)\s+(?:be|stay|remain)|\s(?:stays?|remains?)(?:\s+at)?|\sset\s+to|\s=|:)\s+" + _AMOUNT
)
_MADE = re.compile(
    r"\b(?:sets?|raised?|lowered?|increased?|reduced?|bumped?|changed?|keeps?|leave|turn(?:ed)?|switch(?:ed)?)\s+"
    r"(?:the\s+)?"
    + _SETTING
    + r"(?:\s+(?:flag|feature|setting|option|switch))?\s+(?:to\s+|at\s+)?(?:turned\s+|switched\s+)?"
    + _AMOUNT,
    re.IGNORECASE,
)
_TURNED = re.compile(
    r"\b(?:turned|switched)\s+(?P<bare>on|off)\s+(?:the\s+)?(?:(?:feature\s+)?flag\s+)?" + _SETTING, re.IGNORECASE
)
_OPTION = re.compile(
    r"`(?P<command>[^`\n]{0,120}?)(?<![^\s`])(?P<name>--[a-z][\w-]{1,40})(?:=|\s)(?P<value>\d[\w.]*|true|false|on|off)\b"
    r"[^`\n]{0,80}`"
)
_BY_DEFAULT = re.compile(r"[`*_]*\s+by\s+default\b", re.IGNORECASE)
_WHOSE_LABEL = re.compile(r"\A(?:(?:on|in|for)\s+(?P<place>[^,;:]{1,40}),|(?P<whose>[^:=`]{1,60}):)\s", re.IGNORECASE)
_LABEL = re.compile(r"(?P<label>[^:=|]{1,80}?)\s*[:=]\s+(?P<rest>\S.{0,200})\Z")
_BARE_NUMBER = re.compile(r"[`*_]*(?P<port>\d{2,5})[`*_]*(?:/(?:tcp|udp))?[.,;]?\Z")
_BARE_VERSION = re.compile(r"[`*_]*v?(?P<number>\d+(?:\.\d+){0,3})[`*_]*[.,;]?\Z")
_BARE_PATH = re.compile(r"[`*_]*(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w.@+-]+)[`*_]*[.,;]?\Z")
_NUMBERED = frozenset("line step issue chapter section page level phase table figure ticket".split())  # noqa: SIM905
_CODE = re.compile(r"`[^`]*`")
_ARGUMENT = re.compile(r"\s*[,)]\s*(?:\w|\)|\Z)")
_IS_SET = re.compile(r"\b(?:set|defaults?|must|has\s+to)\b")
_UNSAID = ("?", "...", '"?"')
_SWITCHES = {"on": "off", "true": "false", "enabled": "disabled", "yes": "no"}
_UNITS = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s?(?P<unit>ms|s|min|minutes|seconds|hours|MB|GB|kB|%)\Z")


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
        if sentence.rstrip(" *_\"')").endswith("?"):
            continue  # who asks says nothing
        found = [
            *_settings(sentence, scope),
            *_labelled(sentence, scope),
            *_ports(sentence, scope),
            *_versions(sentence, scope),
            *_paths(sentence, scope),
        ]
        if not found:
            continue
        prose, at = _CODE.sub(lambda match: f"`{'x' * (len(match[0]) - 2)}`", sentence), offset + begin
        taken: set[int] = set()
        for value in found:
            if value.start in taken or not 0 < len(value.subject.split()) <= MOST_WORDS:
                continue
            taken.add(value.start)
            if _is_now(prose, value):
                yield value._replace(line=number, start=value.start + at, end=value.end + at)


def _is_now(prose: str, value: Value) -> bool:
    """Whether a sentence says a value of now, and without a condition. Its reasons may be of any time."""
    before = _CHANGED.sub(" ", _REASON.sub(" ", prose[: value.start]))
    rest = prose[value.end :]
    if value.kind in ("port", "version") and _SINCE.search(before):
        return False
    after = _ENDLESS.sub(" ", _BREAK.split(rest, maxsplit=1)[0])
    if value.kind in ("setting", "flag"):
        before, after = _ORDER.sub(" ", before), _ORDER.sub(" ", after)
    return not (_NOT_NOW.search(before) or _NOT_NOW.search(after) or _ONLY_IF.search(rest))


def _settings(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _OPTION.finditer(sentence):
        words = [word for word in match["command"].split() if word[0] not in "-$"]
        own = tuple(_singular(part) for word in words for part in words_of(word.rpartition("/")[2]))
        if not own:
            named = _clause(sentence[: match.start()], sentence[match.end() :])
            own = scope.name(named) if named is not None else ()
        if own:
            yield _value("flag", (match["name"], *own), match["value"], match, "value")
    for pattern in (_NAMED, _MADE, _TURNED):
        for match in pattern.finditer(sentence):
            group = "quoted" if match.groupdict().get("quoted") else "bare"
            name = match["name"] or match["plain"]
            is_word = not (_is_switch(match[group]) or match[group][0].isdigit())
            is_said = not is_word or _IS_SET.search(match[0]) or (name.isupper() or name.startswith("-") or "_" in name)
            is_place = "/" in match[group] and name.islower() and not any(mark in name for mark in "-._")
            if is_said and not is_place:  # else it says what a thing is, or where it lies
                kind = "flag" if name.startswith("-") else "setting"
                own = (name.lower(), *_which(sentence, match, scope))
                yield _value(kind, own, _switch(match[group]), match, group)
    for match in _ASSIGNED.finditer(sentence):
        is_plain = _is_switch(match["value"]) or match["value"].isdigit()
        is_argument = sentence[: match.start()].rstrip().endswith(("(", ",")) or _ARGUMENT.match(sentence, match.end())
        if (match["name"].isupper() or (is_plain and not is_argument)) and match["value"] not in _UNSAID:
            own = (match["name"].lower(), *_which(sentence, match, scope))
            yield _value("setting", own, _switch(match["value"].strip('"')), match, "value")


def _which(sentence: str, match: re.Match[str], scope: _Scope) -> tuple[str, ...]:
    """Whose setting it is, as far as the sentence says: by default, for the importer, on a laptop.

    A name of one word, such as PORT, is in every program's environment: there it is that of what the text is about.
    """
    said: list[str] = []
    is_default = "default" in match[0].lower() or _BY_DEFAULT.match(sentence, match.end())
    if is_default or sentence[: match.start()].lower().lstrip("*_ ").startswith("by default"):
        said.append("default")
    tail = _TAIL.match(sentence, match.end())
    if tail is not None:
        said += _words(tail["which"])
    label = _WHOSE_LABEL.match(sentence, 0, match.start())
    if label is not None:
        said += _words(label["whose"] or label["place"])
    name = match.groupdict().get("name") or match.groupdict().get("plain") or ""
    is_common = name.replace("`", "").isupper() and "_" not in name
    if is_common and not said:
        said += [word for word in scope.topic if word not in _GENERIC]
    return tuple(dict.fromkeys(said))


def _labelled(sentence: str, scope: _Scope) -> Iterator[Value]:
    """ "Gateway port: 5204", "Config file: `/etc/gateway.toml`", "Python version: 3.11"."""
    match = _LABEL.match(sentence)
    if match is None:
        return
    label = match["label"].strip("*_` ").lower()
    if re.search(r"\w\.\w+\.\w", label):
        return  # the name of a setting, in parts
    kinds = set(re.findall(r"[a-z]+", label))
    rest, at = match["rest"], match.start("rest")
    own = _Clause(_words(label))
    if kinds & {"port", "ports"} and (bare := _BARE_NUMBER.match(rest)) and _is_port(bare["port"]):
        yield _shifted(_value("port", scope.name(own), bare["port"], bare, "port"), at)
    elif bare := _BARE_VERSION.match(rest):
        own = _Clause(tuple(word for word in _versioned(label) if word != "release"))
        is_one = bool(kinds & {"version", "release"}) or set(own.words[-1:]) & _RUNTIMES
        if is_one or (bare["number"].count(".") == 2 and len(own.words) <= 2):
            yield _shifted(_value("version", scope.name(own, narrow=False), bare["number"], bare, "number"), at)
    elif kinds & {
        "path",
        "file",
        "folder",
        "directory",
        "location",
        "log",
        "logs",
        "script",
        "config",
        "database",
        "data",
    }:
        bare = _BARE_PATH.match(rest)
        if bare is not None and ("/" in bare["path"] or rest.startswith("`")):
            named = _Clause(_words(label, keep=True))
            yield _shifted(_value("path", scope.name(named), bare["path"], bare, "path"), at)


def _ports(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _NUMBER.finditer(sentence):
        group = "port" if match["port"] else "tcp"
        before = sentence[: match.start()]
        says_port = _PORT_BEFORE.search(before)
        if not _is_port(match[group]) or not (says_port or _LISTENS.search(before)):
            continue
        if not says_port and not match["host"] and not match["tcp"] and _is_year(match[group]):
            continue
        named = _clause(before, sentence[match.end() :])
        if named is None and before.endswith("(port ") and sentence.startswith(")", match.end()):
            named = _clause(before[: -len("(port ")], "")
        if named is not None:
            yield _value("port", scope.name(named), match[group], match, group)
    for match in _PORT_OF.finditer(sentence):
        own = _words(match["thing"])
        if own and _is_port(match["port"]):
            yield _value("port", scope.name(_Clause(own)), match["port"], match, "port")
    for match in _URL.finditer(sentence):
        named = _clause(sentence[: match.start()], sentence[match.end() :]) if _is_port(match["port"]) else None
        shown = _SHOWN_BY.match(sentence, match.end())
        if named is not None and named.words:
            yield _value("port", scope.name(named), match["port"], match, "port")
        elif shown is not None and _is_port(match["port"]) and _words(shown["thing"]):
            yield _value("port", scope.name(_Clause(_words(shown["thing"]))), match["port"], match, "port")


def _versions(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _PINNED.finditer(sentence):
        own = tuple(_runtime(_singular(word)) for word in words_of(match["name"]))
        yield _value("version", own, match["number"], match, "number")
    for match in _VERSION.finditer(sentence):
        name = match["name"]
        if (name.lower() in _STOP and name != "Go") or name.lower() in _NUMBERED:
            continue
        before, after = sentence[: match.start()], sentence[match.end() :]
        is_known = name.lower() in _RUNTIMES
        if not (is_known or "." in match["number"]) or not _RUNS_ON.search(before):
            continue
        named = _clause(before, "" if _NEEDED.match(after) else after)
        own = _versioned(name)
        if named is not None and not set(own) & set(named.words):
            kept = named._replace(words=tuple(word for word in named.words if word not in _WORKPLACES))
            bound = ("required",) if _REQUIRES.search(before) and named.words else ()  # a newer one may run
            is_named = len(own) > 1 and not kept.words  # billing-worker is one thing, whatever the text is about
            about = kept.tail if is_named else scope.name(kept, narrow=False)
            yield _value("version", (*about, *own, *bound), match["number"], match, "number")
    for match in _VERSION_OF.finditer(sentence):
        group = next(name for name, found in match.groupdict().items() if found)
        before = sentence[: match.start(group)].removesuffix("v")
        named = _clause(before, sentence[match.end() :], by=_versioned)
        if named is not None and named.words:
            yield _value("version", scope.name(named, narrow=False), match[group], match, group)
    for match in _VERSION_FIRST.finditer(sentence):
        if own := _versioned(match["thing"]):
            yield _value("version", own, match["number"], match, "number")


def _versioned(text: str) -> tuple[str, ...]:
    """The words that name something that has versions; Go is one where it is written so."""
    words = ("golang" if word == "Go" else word.lower() for word in re.findall(r"[\w.]+", text))
    named = (part for word in words for part in ((word,) if word in _RUNTIMES else _words(word)))
    return tuple(dict.fromkeys(_runtime(word) for word in named))


def _paths(sentence: str, scope: _Scope) -> Iterator[Value]:
    for match in _PATH.finditer(sentence):
        group = "quoted" if match["quoted"] else "bare"
        path = match[group].rstrip(".,;:")
        if "/" not in path or "://" in path or any(mark in path for mark in "*<>{}$()|"):
            continue
        before, start = sentence[: match.start()], match.start(group)
        first = _PATH_FIRST.match(sentence, match.end()) if not before.strip("*_ ") else None
        if first is not None:
            named: _Clause | None = _Clause(_words(first["thing"], keep=True))
        elif _LIES.search(before) is None or _END.match(sentence, start + len(path)) is None:
            continue
        else:
            named = _clause(before, sentence[match.end() :], keep=True)
        if named is not None and named.words:
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


def _clause(
    before: str, after: str, *, keep: bool = False, by: Callable[[str], tuple[str, ...]] | None = None
) -> _Clause | None:
    """The words of the clause around a value; None where the clause goes on in a way that is not understood."""
    words = by or (lambda text: _words(text, keep=keep))
    where = _WHERE.match(before)
    pieces = _BREAK.split(before)
    own = _ASKED.sub(" ", _ENDS_UP.sub(" ", pieces[-1]))
    for directed in _DIRECTED.finditer(own):
        if words(own[directed.end() :]):
            own = own[directed.end() :]
            break
    if not words(own) and len(pieces) > 1:
        if not _WHOSE.match(pieces[-2]):
            return None  # its subject stands further in front
        own = pieces[-2]
    tail = _TAIL.match(after)
    if tail is None and _OR_ELSE.match(after) and _MUST.search(own):
        after = ""
    somewhere = words(where["where"]) if where is not None else ()
    if tail is None:
        return _Clause(words(own), somewhere) if _END.match(after) else None
    which = (*somewhere, *words(tail["which"]))
    if not words(own):
        return _Clause(which) if tail["how"].lower() in ("for", "of", "by", "to") else _Clause((), which)
    return _Clause(words(own), which) if tail["how"].lower() != "to" else None


def _words(text: str, *, keep: bool = False) -> tuple[str, ...]:
    """The words that name something. `keep`: file, folder and the like are names as well."""
    kept = []
    for word in words_of(text):
        if (word.isdigit() and len(word) > _NUMERAL) or (word in _STOP and not (keep and word in _CONTAINERS)):
            continue  # worker-1 is not worker-2, but a year or a port names nothing
        kept.append(_singular(word))
    return tuple(dict.fromkeys(kept))


def _singular(word: str) -> str:
    if word in _RUNTIMES:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _subject(words: tuple[str, ...], *, keep: bool = False) -> str:
    """The name of a thing. A server is one whether it is called so or not; of paths, "config" tells them apart."""
    if not keep:
        return " ".join(sorted({word for word in words if word not in _GENERIC} or set(words)))
    named = {_SAME_THING.get(word, word) for word in words}
    held = {word for word in named if word not in _CONTAINERS and (word not in _GENERIC or word == "config")}
    if held and not held & _FILLED and "directory" in named:
        held.add("directory")  # that of a configuration is something else than its file
    return " ".join(sorted(held or named))


def _value(kind: str, words: tuple[str, ...], value: str, match: re.Match[str], group: str) -> Value:
    return Value(kind, _subject(words, keep=kind == "path"), value, 0, match.start(group), match.end(group))


def _shifted(value: Value, by: int) -> Value:
    return value._replace(start=value.start + by, end=value.end + by)


def _switch(value: str) -> str:
    """A switch by one name, however it is called."""
    low = value.lower()
    return "true" if low in _SWITCHES else "false" if low in _SWITCHES.values() else value


def as_value(text: str) -> str:
    """What stands in the place of a value, as it is noted."""
    return _switch(text.strip('"'))


def _is_switch(value: str) -> bool:
    return _switch(value) in ("true", "false")


def spelled(value: str, like: str) -> str:
    """A value as it is written in the place of another one: in quotes as that, and a switch as on, true or enabled."""
    if len(like) > 1 and like[0] == like[-1] == '"':
        return f'"{spelled(value, like[1:-1])}"'
    if value not in ("true", "false") or not _is_switch(like):
        return value
    yes = next(yes for yes, no in _SWITCHES.items() if like.lower() in (yes, no))
    word = yes if value == "true" else _SWITCHES[yes]
    return word.upper() if like.isupper() else word.capitalize() if like[:1].isupper() else word


def agree(kind: str, one: str, other: str) -> bool:
    """Whether two values may both be right: one is said more exactly than the other, or spelled otherwise."""
    if one == other:
        return True
    if kind == "version":
        first, second = one.lower().removeprefix("v").split("."), other.lower().removeprefix("v").split(".")
        return all(mine == theirs for mine, theirs in zip(first, second, strict=False))
    if kind == "path":
        first, second = one.rstrip("/").split("/"), other.rstrip("/").split("/")
        if all(mine == theirs for mine, theirs in zip(first, second, strict=False)):
            return True
        # A file of a folder, and a folder in it.
        return (other.endswith("/") and second[: len(first) - 1] == first[:-1] != []) or (
            one.endswith("/") and first[: len(second) - 1] == second[:-1] != []
        )
    return _plain(one) == _plain(other)


def _plain(value: str) -> str:
    match = _UNITS.match(value)
    unit = {"seconds": "s", "minutes": "min"}.get(match["unit"], match["unit"]) if match else ""
    return f"{match['number']} {unit}" if match else _switch(value)


def _runtime(name: str) -> str:
    return {"nodejs": "node", "node.js": "node", "go": "golang", "postgresql": "postgres"}.get(name, name)


def _is_port(number: str) -> bool:
    return 1 <= int(number) <= 65_535 and not number.startswith("0")


def _is_year(number: str) -> bool:
    return 1990 <= int(number) <= 2100


def _sentences(line: str, start: int) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(line, start):
        yield start, match.start()
        start = match.end()
    yield start, len(line)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts += [match.end() for match in re.finditer("\n", text)]
    return starts
