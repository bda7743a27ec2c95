"""Patterns for sentences that give a thing a value, built from `phrases/values.*.toml` and the form of the values."""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import Any, cast

from truekeep.text.phrases import Phrases, expand_names, load_phrases

_NUMBER_END = r"`?(?![\w%/-]|\.\d|:\d)"
_SETTING_NAME = (
    r"(?:`(?P<name>-{0,2}[A-Za-z][\w.-]{1,60})`"
    r"|(?<![\w$./-])(?P<plain>[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,6}|[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){1,6}))"
)

SENTENCE_END = re.compile(r"(?<=[.;!?])\s+")
LINE_START = re.compile(
    r"[\s>]*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?(?:\[[a-zA-Z -]{1,30}\|i=[^\]\s]{0,8}\]\s*)?"
)
INLINE_CODE = re.compile(r"`[^`]*`")
PORT_NUMBER = re.compile(
    r"(?<![\w./:-])(?P<host>`?(?:[A-Za-z][\w.-]*|\d{1,3}(?:\.\d{1,3}){3}|\[::1?\])?:)?`?(?P<port>\d{2,5})\b"
    r"(?![./:-]?\w)"
    r"|(?<![\w./:-])(?P<tcp>\d{2,5})(?=/(?:tcp|udp)\b)"
)
LOCAL_URL = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(?P<port>\d{2,5})(?P<rest>(?:/[^\s`\"'<>)]*)?)"
)
PINNED_VERSION = re.compile(r"`(?P<name>[A-Za-z@][\w./+-]*?)(?:==|@)v?(?P<number>\d[\w.]*)`")
PATH = re.compile(r"`(?P<quoted>[^`\s]{1,200})`|(?<![\w`/.~-])(?P<bare>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*)")
ASSIGNMENT = re.compile(
    r"(?<![\w$./-])`?(?P<name>[A-Z][A-Z0-9_]{2,60}|[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){1,6})\s?=\s?"
    r"(?P<value>\"[^\"`\n]{1,80}\"|[\w./:@%+-]{1,80})`?"
)
COMMAND_OPTION = re.compile(
    r"`(?P<command>[^`\n]{0,120}?)(?<![^\s`])(?P<name>--[a-z][\w-]{1,40})(?:=|\s)(?P<value>\d[\w.]*|true|false|on|off)\b"
    r"[^`\n]{0,80}`"
)
ARGUMENT = re.compile(r"\s*[,)]\s*(?:\w|\)|\Z)")
LABEL = re.compile(r"(?P<label>[^:=|]{1,80}?)\s*[:=]\s+(?P<rest>\S.{0,200})\Z")
ONLY_PORT = re.compile(r"[`*_]*(?P<port>\d{2,5})[`*_]*(?:/(?:tcp|udp))?[.,;]?\Z")
ONLY_VERSION = re.compile(r"[`*_]*v?(?P<number>\d+(?:\.\d+){0,3})[`*_]*[.,;]?\Z")
ONLY_PATH = re.compile(r"[`*_]*(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w.@+-]+)[`*_]*[.,;]?\Z")


class ValuePatterns:
    """The words and patterns of all languages, by what they are for."""

    def __init__(self, phrases: Phrases) -> None:
        self._read_words(phrases)
        self._build_time(phrases.table("time"))
        self._build_clause(phrases.table("clause"))
        self._build_port(phrases.table("port"))
        self._build_version(phrases.table("version"))
        self._build_path(phrases.table("path"))
        self._build_setting(phrases.table("setting"), phrases.any_of("units"))

    def _read_words(self, phrases: Phrases) -> None:
        self.stop = phrases.words("stop")
        self.generic = phrases.words("generic")
        self.workplaces = phrases.words("workplaces")
        self.aspects = phrases.words("aspects")
        self.containers = phrases.words("containers")
        self.contents = phrases.words("contents")
        self.numbered = phrases.words("numbered")
        self.runtimes = phrases.words("runtimes")
        self.port_labels = phrases.words("port_labels")
        self.version_labels = phrases.words("version_labels")
        self.path_labels = phrases.words("path_labels")
        self.path_keys = phrases.words("path_keys")
        self.kinds = _pairs(phrases, "kinds")
        self.same_thing = _pairs(phrases, "same_thing")
        self.same_runtime = _pairs(phrases, "same_runtime")
        self.same_unit = _pairs(phrases, "same_unit")
        self.switches = _pairs(phrases, "switches")
        self.tail_owner = phrases.words("clause.tail_owner")
        self.tail_target = phrases.words("clause.tail_target")

    def _build_time(self, words: dict[str, str]) -> None:
        self.not_now = _any_case(rf"\b(?:{words['not_now']})\b")
        self.changed = _any_case(rf"\b(?:{words['changed']})\b")
        self.since = _any_case(rf"\b(?:{words['since']})\s+(?:(?:{words['since_kind']})\s+)?(?:\w+\s+)?[`v]*\Z")
        self.until = _any_case(rf"\b(?:{words['until']})\b")
        self.order = _any_case(rf"\b(?:{words['order']})\b")
        self.reason = _any_case(rf"\A\W*(?:{words['reason']})\b[^,;]{{0,200}}[,;]")
        self.condition = _any_case(rf"[,;(]\s*(?:{words['condition']})\b")

    def _build_clause(self, words: dict[str, str]) -> None:
        self._article = rf"(?:(?:{words['article']})\s+)?"
        afterwards = rf"[`*_\"')\]]*(?:/(?:tcp|udp)\b)?(?:\s+(?:{words['afterwards']}))?"
        self.clause_break = _any_case(rf"[,;()—–]|\s-\s|\b(?:{words['break']})\b")
        self.clause_end = _any_case(afterwards + rf"\s*(?:[.,;!?()—–|]|\Z|(?:-|{words['end']})\s)")
        self.tail = _any_case(
            afterwards + rf"\s+(?P<how>{words['tail']})\s+{self._article}"
            r"(?P<which>[\w`-]+(?:\s[\w`-]+){0,2})\s*(?=[.,;!?()—–|]|\Z)"
        )
        self.must = _any_case(rf"\b(?:{words['must']})\b")
        self.or_else = _any_case(rf"[`*_]*\s+(?:{words['or_else']})\b")
        self.whose = _any_case(rf"\A\s*(?:{words['whose']})\s")
        self.where = _any_case(rf"\A\s*(?:{words['where']})\s+(?P<where>[^,;:]{{1,50}}),\s")
        self.directed = _any_case(rf"\b(?:{words['directed']})\s+(?=\S)")
        self.ends_up = _any_case(rf"\b(?:{words['ends_up']})\b")
        self.asked = _any_case(rf"\A\W*(?:{words['asked']})\s")
        self.label_owner = _any_case(
            rf"\A(?:(?:{words['label_where']})\s+(?P<place>[^,;:]{{1,40}}),|(?P<whose>[^:=`]{{1,60}}):)\s"
        )

    def _build_port(self, words: dict[str, str]) -> None:
        name, now = words["name"], words["now"]
        self.port_before = _any_case(
            rf"(?<![\w.])(?:{name})\b\W{{0,4}}(?:(?:{words['is']})\W{{0,3}})?(?:(?:{now})\s+)?[`*_]*\Z"
            rf"|\b(?:{name})\s+(?:{words['of']})\s+[^,;:()]{{1,60}}\s(?:{words['equals']})\s+(?:(?:{now})\s+)?[`*_]*\Z"
        )
        self.port_in_brackets = _late(rf"\((?:{name}) \Z")
        self.port_of = _any_case(
            rf"\A[`*_]*(?:{name})\s+`?(?P<port>\d{{2,5}})`?[`*_]*\s*(?::|=|{words['belongs']})\s+"
            r"(?P<thing>[^,;.()]{1,60})"
        )
        self.listens = _any_case(rf"\b(?:{words['listens']})\s+[`*_]*\Z")
        self.shown_by = _late(
            rf"[^`\n]{{0,80}}`?\s+(?:{words['shows']})\s+{self._article}(?P<thing>[^,;.()]{{1,60}})",
        )

    def _build_version(self, words: dict[str, str]) -> None:
        def number(least_dots: int) -> str:
            return rf"`?v?(\d+(?:\.\d+){{{least_dots},3}}){_NUMBER_END}"

        self.version = _late(
            rf"(?<![\w./-])`?(?P<name>[A-Za-z][\w+-]*(?:\.js|\.io)?)`?\s+(?:{words['word']})?"
            rf"`?v?(?P<number>\d+(?:\.\d+){{0,3}}){_NUMBER_END}"
        )
        names = {"ANY": number(0), "DOTTED": number(1), "FULL": number(2), "THING": r"[^,;:()]{1,60}"}
        self.version_of = _any_case(expand_names(words["of"], names))
        self.version_first = _any_case(
            rf"\b(?:{words['first']})\s+`?v?(?P<number>\d+(?:\.\d+){{0,3}})`?\s+(?:{words['first_of']})\s+"
            rf"{self._article}(?P<thing>[^,;.()]{{1,60}})"
        )
        self.runs_on = _any_case(rf"(?:\A|\b(?:{words['runs_on']}))\s*[`*_]*\Z")
        self.requires = _any_case(rf"\b(?:{words['requires']})\s*[`*_]*\Z")
        self.needed = _any_case(rf"`?\s+(?:{words['needed']})")

    def _build_path(self, words: dict[str, str]) -> None:
        self.lies = _any_case(words["lies"])
        self.path_first = _late(rf"`?\s+(?:{words['first']})(?P<thing>[^,;.()`]{{1,60}})(?=[.,;]|\Z)")

    def _build_setting(self, words: dict[str, str], units: str) -> None:
        amount = (
            rf"(?:`(?P<quoted>[^`\n]{{1,80}})`|(?P<bare>\d+(?:\.\d+)?(?:\s?(?:{units}))?|{words['value']})\b(?!\.\d))"
        )
        noun = rf"(?:\s+(?:{words['noun']}))?"
        self.setting_is = _late(_SETTING_NAME + noun + rf"\s*(?:{words['is']}|\s=|:)\s+" + amount)
        self.setting_changed = _any_case(
            rf"\b(?:{words['change']})\s+{self._article}{_SETTING_NAME}{noun}\s+(?:{words['change_to']}){amount}"
        )
        self.setting_turned = _any_case(
            rf"\b(?:{words['turned']})\s+(?P<bare>{words['switch']})\s+{self._article}(?:{words['turned_flag']}){_SETTING_NAME}"
        )
        self.default = _any_case(words["default"])
        self.by_default = _any_case(rf"[`*_]*\s+(?:{words['by_default']})\b")
        self.by_default_first = _late(rf"[*_ ]*(?:{words['by_default_first']})")
        self.is_set = _late(rf"\b(?:{words['is_set']})\b")
        self.amount_with_unit = _late(rf"(?P<number>\d+(?:\.\d+)?)\s?(?P<unit>{units})\Z")


@cache
def value_patterns() -> ValuePatterns:
    return ValuePatterns(load_phrases("values"))


class LatePattern:
    """A regular expression that is compiled when it is first used: most sentences need few of them."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._source = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def _late(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return cast("re.Pattern[str]", LatePattern(pattern, flags))


def _any_case(pattern: str) -> re.Pattern[str]:
    return _late(pattern, re.IGNORECASE)


def _pairs(phrases: Phrases, name: str) -> dict[str, str]:
    return {row[0]: row[1] for row in phrases.rows(name)}
