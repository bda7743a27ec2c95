"""Values that a text states: a service's port, a package's version, a file's path, a setting.

Only plain statements count: "the gateway listens on port 5204", "Port: 5204", `JOBS=4`, a row of a table. Statements
about the past, plans and examples are left out. The words of the clause name the thing; if there are none ("listens on
5204"), the topic of the text does. Two texts that give one thing two values disagree, so a doubtful sentence gives
none. The words are in `phrases/values.*.toml`, the patterns in `value_patterns`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.memory.card import words_of
from truekeep.memory.value_patterns import (
    ARGUMENT,
    ASSIGNMENT,
    COMMAND_OPTION,
    INLINE_CODE,
    LABEL,
    LINE_START,
    LOCAL_URL,
    ONLY_PATH,
    ONLY_PORT,
    ONLY_VERSION,
    PATH,
    PINNED_VERSION,
    PORT_NUMBER,
    SENTENCE_END,
    value_patterns,
)
from truekeep.memory.value_subjects import (
    Clause,
    Scope,
    name_words,
    read_clause,
    runtime_name,
    singular,
    subject_of,
    versioned_words,
)
from truekeep.text.tables import iter_prose, iter_rows

KINDS = ("port", "version", "path", "flag", "setting")
MAX_SUBJECT_WORDS = 6
MAX_LINE_CHARS = 600  # the rest of a line is not read
MAX_VALUES = 2_000  # of one text
_CELL_PATTERNS = {"port": (ONLY_PORT, "port"), "version": (ONLY_VERSION, "number"), "path": (ONLY_PATH, "path")}
_NO_VALUE = ("?", "...", '"?"')
_DAY = re.compile(r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d")


class Value(NamedTuple):
    """The value that a text gives one thing."""

    kind: str
    subject: str  # the words that name the thing, in order of the alphabet
    value: str
    line: int
    start: int  # of the value, in the text
    end: int


def find_values(text: str, *, topic: str = "", repository: str = "") -> list[Value]:
    """The values that a text states. `topic` names the thing where a clause does not."""
    found: list[Value] = []
    about = name_words(topic)
    starts = _line_starts(text)
    rows = {row.line for row in iter_rows(text)} if "|" in text else set()
    heading: tuple[str, ...] = ()
    for number, line in iter_prose(text):
        if line.startswith("#"):
            bare = line.lstrip("#")
            heading = name_words(bare) if line.startswith("##") else ()
            continue
        if number in rows or len(found) >= MAX_VALUES:
            continue
        if any(character.isdigit() or character in "/=`" for character in line):
            scope = Scope(about, heading, repository)
            found += _line_values(line[:MAX_LINE_CHARS], number, starts[number - 1], scope)
    if rows:
        found += _table_values(text, starts)
    return found[:MAX_VALUES]


def name_of(entity: str, key: str) -> tuple[str, str]:
    """The kind and the subject of a fact, as `find_values` would give them."""
    patterns = value_patterns()
    words = set(words_of(key))
    kind = next((kind for word, kind in patterns.kinds.items() if word in words), "")
    if not kind and words & patterns.path_keys:
        kind = "path"
    named = (*name_words(entity), *name_words(key, keep_containers=kind == "path"))
    if kind == "version":
        named = tuple(runtime_name(word) for word in named)
    return kind or "setting", subject_of(tuple(dict.fromkeys(named)), is_path=kind == "path") if named else ""


def _line_values(line: str, number: int, offset: int, scope: Scope) -> Iterator[Value]:
    lead = LINE_START.match(line)
    start = lead.end() if lead else 0
    for begin, end in _sentences(line, start):
        sentence = line[begin:end]
        if sentence.rstrip(" *_\"')").endswith("?"):
            continue  # a question states nothing
        found = [
            *_settings(sentence, scope),
            *_labelled(sentence, scope),
            *_ports(sentence, scope),
            *_versions(sentence, scope),
            *_paths(sentence, scope),
        ]
        if not found:
            continue
        prose, at = INLINE_CODE.sub(lambda match: f"`{'x' * (len(match[0]) - 2)}`", sentence), offset + begin
        taken: set[int] = set()
        for value in found:
            if value.start in taken or not 0 < len(value.subject.split()) <= MAX_SUBJECT_WORDS:
                continue
            taken.add(value.start)
            if _is_now(prose, value):
                yield value._replace(line=number, start=value.start + at, end=value.end + at)


def _is_now(prose: str, value: Value) -> bool:
    """Whether a sentence is about now and has no condition. The tense of a reason does not matter."""
    patterns = value_patterns()
    before = patterns.changed.sub(" ", patterns.reason.sub(" ", prose[: value.start]))
    rest = prose[value.end :]
    if value.kind in ("port", "version") and patterns.since.search(before):
        return False
    after = patterns.until.sub(" ", patterns.clause_break.split(rest, maxsplit=1)[0])
    if value.kind in ("setting", "flag"):
        before, after = patterns.order.sub(" ", before), patterns.order.sub(" ", after)
    return not (patterns.not_now.search(before) or patterns.not_now.search(after) or patterns.condition.search(rest))


def _settings(sentence: str, scope: Scope) -> Iterator[Value]:
    patterns = value_patterns()
    for match in COMMAND_OPTION.finditer(sentence):
        words = [word for word in match["command"].split() if word[0] not in "-$"]
        own = tuple(singular(part) for word in words for part in words_of(word.rpartition("/")[2]))
        if not own:
            named = read_clause(sentence[: match.start()], sentence[match.end() :])
            own = scope.name(named) if named is not None else ()
        if own:
            yield _value("flag", (match["name"], *own), match["value"], match, "value")
    for pattern in (patterns.setting_is, patterns.setting_changed, patterns.setting_turned):
        for match in pattern.finditer(sentence):
            group = "quoted" if match.groupdict().get("quoted") else "bare"
            name = match["name"] or match["plain"]
            is_word = not (_is_switch(match[group]) or match[group][0].isdigit())
            is_setting_name = name.isupper() or name.startswith("-") or "_" in name
            is_setting = not is_word or patterns.is_set.search(match[0]) or is_setting_name
            is_place = "/" in match[group] and name.islower() and not any(mark in name for mark in "-._")
            if is_setting and not is_place:  # otherwise it tells what or where a thing is
                kind = "flag" if name.startswith("-") else "setting"
                own = (name.lower(), *_setting_owner(sentence, match, scope))
                yield _value(kind, own, _switch(match[group]), match, group)
    for match in ASSIGNMENT.finditer(sentence):
        is_plain = _is_switch(match["value"]) or match["value"].isdigit()
        is_argument = sentence[: match.start()].rstrip().endswith(("(", ",")) or ARGUMENT.match(sentence, match.end())
        is_setting = _is_environment_variable(match) if match["name"].isupper() else is_plain and not is_argument
        if is_setting and match["value"] not in _NO_VALUE:
            own = (match["name"].lower(), *_setting_owner(sentence, match, scope))
            yield _value("setting", own, _switch(match["value"].strip('"')), match, "value")


def _is_environment_variable(match: re.Match[str]) -> bool:
    """Whether NAME=value is a setting. A name without "_" may be an acronym that a sentence explains or measures."""
    name, value = match["name"], match["value"]
    if match[0].startswith("`") or "_" in name:
        return True
    if " " in match[0].strip() or name.lower() in value_patterns().stop:
        return False
    return value.startswith('"') or value.isdigit() or _is_switch(value) or "/" in value


def _setting_owner(sentence: str, match: re.Match[str], scope: Scope) -> tuple[str, ...]:
    """The words that say which setting it is: by default, for the importer, on a laptop.

    A name of one word, such as PORT, is used by many programs, so it belongs to the topic of the text.
    """
    patterns = value_patterns()
    owner: list[str] = []
    is_default = patterns.default.search(match[0]) or patterns.by_default.match(sentence, match.end())
    if is_default or patterns.by_default_first.match(sentence[: match.start()].lower()):
        owner.append("default")
    tail = patterns.tail.match(sentence, match.end())
    if tail is not None:
        owner += name_words(tail["which"])
    label = patterns.label_owner.match(sentence, 0, match.start())
    if label is not None:
        owner += name_words(label["whose"] or label["place"])
    name = match.groupdict().get("name") or match.groupdict().get("plain") or ""
    is_common = name.replace("`", "").isupper() and "_" not in name
    if is_common and not owner:
        owner += [word for word in scope.topic if word not in patterns.generic]
    return tuple(dict.fromkeys(owner))


def _labelled(sentence: str, scope: Scope) -> Iterator[Value]:
    """ "Gateway port: 5204", "Config file: `/etc/gateway.toml`", "Python version: 3.11"."""
    patterns = value_patterns()
    match = LABEL.match(sentence)
    if match is None:
        return
    label = match["label"].strip("*_` ").lower()
    if re.search(r"\w\.\w+\.\w", label):
        return  # a dotted setting name
    kinds = set(re.findall(r"[a-z]+", label))
    rest, at = match["rest"], match.start("rest")
    own = Clause(name_words(label))
    if kinds & patterns.port_labels and (bare := ONLY_PORT.match(rest)) and _is_port(bare["port"]):
        yield _shifted(_value("port", scope.name(own), bare["port"], bare, "port"), at)
    elif bare := ONLY_VERSION.match(rest):
        own = Clause(tuple(word for word in versioned_words(label) if word not in patterns.version_labels))
        is_one = bool(kinds & patterns.version_labels) or set(own.words[-1:]) & patterns.runtimes
        if is_one or (bare["number"].count(".") == 2 and len(own.words) <= 2):
            yield _shifted(_value("version", scope.name(own, narrow=False), bare["number"], bare, "number"), at)
    elif kinds & patterns.path_labels:
        bare = ONLY_PATH.match(rest)
        if bare is not None and ("/" in bare["path"] or rest.startswith("`")):
            named = Clause(name_words(label, keep_containers=True))
            yield _shifted(_value("path", scope.name(named), bare["path"], bare, "path"), at)


def _ports(sentence: str, scope: Scope) -> Iterator[Value]:
    patterns = value_patterns()
    for match in PORT_NUMBER.finditer(sentence):
        group = "port" if match["port"] else "tcp"
        before = sentence[: match.start()]
        says_port = patterns.port_before.search(before)
        if not _is_port(match[group]) or not (says_port or patterns.listens.search(before)):
            continue
        if not says_port and not match["host"] and not match["tcp"] and _is_year(match[group]):
            continue
        named = read_clause(before, sentence[match.end() :])
        bracket = patterns.port_in_brackets.search(before)
        if named is None and bracket is not None and sentence.startswith(")", match.end()):
            named = read_clause(before[: bracket.start()], "")
        if named is not None:
            yield _value("port", scope.name(named), match[group], match, group)
    for match in patterns.port_of.finditer(sentence):
        own = name_words(match["thing"])
        if own and _is_port(match["port"]):
            yield _value("port", scope.name(Clause(own)), match["port"], match, "port")
    for match in LOCAL_URL.finditer(sentence):
        named = read_clause(sentence[: match.start()], sentence[match.end() :]) if _is_port(match["port"]) else None
        shown = patterns.shown_by.match(sentence, match.end())
        if named is not None and named.words:
            yield _value("port", scope.name(named), match["port"], match, "port")
        elif shown is not None and _is_port(match["port"]) and name_words(shown["thing"]):
            yield _value("port", scope.name(Clause(name_words(shown["thing"]))), match["port"], match, "port")


def _versions(sentence: str, scope: Scope) -> Iterator[Value]:
    patterns = value_patterns()
    for match in PINNED_VERSION.finditer(sentence):
        own = tuple(runtime_name(singular(word)) for word in words_of(match["name"]))
        yield _value("version", own, match["number"], match, "number")
    for match in patterns.version.finditer(sentence):
        name = match["name"]
        if (name.lower() in patterns.stop and name != "Go") or name.lower() in patterns.numbered:
            continue
        before, after = sentence[: match.start()], sentence[match.end() :]
        is_known = name.lower() in patterns.runtimes
        if not (is_known or "." in match["number"]) or not patterns.runs_on.search(before):
            continue
        named = read_clause(before, "" if patterns.needed.match(after) else after)
        own = versioned_words(name)
        if named is not None and not set(own) & set(named.words):
            kept = named._replace(words=tuple(word for word in named.words if word not in patterns.workplaces))
            bound = ("required",) if patterns.requires.search(before) and named.words else ()  # a newer one may run
            is_named = len(own) > 1 and not kept.words  # "billing-worker" needs no topic
            about = kept.which if is_named else scope.name(kept, narrow=False)
            yield _value("version", (*about, *own, *bound), match["number"], match, "number")
    for match in patterns.version_of.finditer(sentence):
        group = match.lastindex or 1
        before = sentence[: match.start(group)].removesuffix("v")
        named = read_clause(before, sentence[match.end() :], words_by=versioned_words)
        if named is not None and named.words:
            yield _value("version", scope.name(named, narrow=False), match[group], match, group)
    for match in patterns.version_first.finditer(sentence):
        if own := versioned_words(match["thing"]):
            yield _value("version", own, match["number"], match, "number")


def _paths(sentence: str, scope: Scope) -> Iterator[Value]:
    patterns = value_patterns()
    for match in PATH.finditer(sentence):
        group = "quoted" if match["quoted"] else "bare"
        path = match[group].rstrip(".,;:")
        if "/" not in path or "://" in path or any(mark in path for mark in "*<>{}$()|"):
            continue
        before, start = sentence[: match.start()], match.start(group)
        first = patterns.path_first.match(sentence, match.end()) if not before.strip("*_ ") else None
        if first is not None:
            named: Clause | None = Clause(name_words(first["thing"], keep_containers=True))
        elif patterns.lies.search(before) is None or patterns.clause_end.match(sentence, start + len(path)) is None:
            continue
        else:
            named = read_clause(before, sentence[match.end() :], keep_containers=True)
        if named is not None and named.words:
            yield Value("path", subject_of(scope.name(named), is_path=True), path, 0, start, start + len(path))


def _table_values(text: str, starts: list[int]) -> Iterator[Value]:
    """The cells below a column called port, version or path; the first other cell of the row names the thing."""
    kinds = value_patterns().kinds
    for row in iter_rows(text):
        names = [name.strip().lower() for name in row.columns]
        for at, cell in enumerate(row.cells):
            column = names[at] if at < len(names) else ""
            kind = kinds.get(column, "")
            if not kind or not cell:
                continue
            label = next((other for other, name in zip(row.cells, names, strict=False) if name != column and other), "")
            pattern, group = _CELL_PATTERNS[kind]
            match = pattern.match(cell)
            own = name_words(label)
            if match is None or not 0 < len(own) <= MAX_SUBJECT_WORDS:
                continue
            if kind == "port" and not _is_port(match[group]):
                continue
            line_start = starts[row.line - 1]
            line_end = text.find("\n", line_start)
            place = text.find(match[group], line_start, line_end if line_end >= 0 else len(text))
            if place >= 0:
                name = tuple(runtime_name(word) for word in own) if kind == "version" else own
                yield Value(kind, subject_of(name), match[group], row.line, place, place + len(match[group]))


def _value(kind: str, words: tuple[str, ...], value: str, match: re.Match[str], group: str | int) -> Value:
    return Value(kind, subject_of(words, is_path=kind == "path"), value, 0, match.start(group), match.end(group))


def _shifted(value: Value, by: int) -> Value:
    return value._replace(start=value.start + by, end=value.end + by)


def _switch(value: str) -> str:
    """The value, or "true" or "false" for words such as "on" and "disabled"."""
    patterns = value_patterns()
    low = value.lower()
    return "true" if low in patterns.switches else "false" if low in patterns.switches.values() else value


def as_value(text: str) -> str:
    """The value that a piece of text stands for, as `find_values` gives it."""
    return _switch(text.strip('"'))


def _is_switch(value: str) -> bool:
    return _switch(value) in ("true", "false")


def spelled(value: str, like: str) -> str:
    """A value written as another one is: in quotes, and a switch as on, true or enabled."""
    patterns = value_patterns()
    if len(like) > 1 and like[0] == like[-1] == '"':
        return f'"{spelled(value, like[1:-1])}"'
    if value not in ("true", "false") or not _is_switch(like):
        return value
    yes = next(yes for yes, no in patterns.switches.items() if like.lower() in (yes, no))
    word = yes if value == "true" else patterns.switches[yes]
    return word.upper() if like.isupper() else word.capitalize() if like[:1].isupper() else word


def agree(kind: str, one: str, other: str) -> bool:
    """Whether two values may both be right: one is more exact than the other, or spelled in another way."""
    if one == other:
        return True
    if kind == "version":
        first, second = one.lower().removeprefix("v").split("."), other.lower().removeprefix("v").split(".")
        return all(mine == theirs for mine, theirs in zip(first, second, strict=False))
    if kind == "path":
        first, second = one.rstrip("/").split("/"), other.rstrip("/").split("/")
        if all(mine == theirs for mine, theirs in zip(first, second, strict=False)):
            return True
        if all(mine == theirs for mine, theirs in zip(reversed(first), reversed(second), strict=False)):
            return True  # one of them begins further up
        if _DAY.sub("", one) == _DAY.sub("", other) or (_DAY.search(one) and _DAY.search(other)):
            return True  # two files of a series, one for each day
        # A file of a folder, and a folder in it.
        return (other.endswith("/") and second[: len(first) - 1] == first[:-1] != []) or (
            one.endswith("/") and first[: len(second) - 1] == second[:-1] != []
        )
    return _plain(one) == _plain(other)


def _plain(value: str) -> str:
    patterns = value_patterns()
    match = patterns.amount_with_unit.match(value)
    unit = patterns.same_unit.get(match["unit"], match["unit"]) if match else ""
    return f"{match['number']} {unit}" if match else _switch(value)


def _is_port(number: str) -> bool:
    return 1 <= int(number) <= 65_535 and not number.startswith("0")


def _is_year(number: str) -> bool:
    return 1990 <= int(number) <= 2100


def _sentences(line: str, start: int) -> Iterator[tuple[int, int]]:
    for match in SENTENCE_END.finditer(line, start):
        yield start, match.start()
        start = match.end()
    yield start, len(line)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts += [match.end() for match in re.finditer("\n", text)]
    return starts
