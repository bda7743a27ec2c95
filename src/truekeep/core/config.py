"""The configuration of a workspace, .truekeep/config.toml. Parsing reports every problem at once.

A missing file or key means the default. An unknown key is a problem: it is usually a typo, and a misspelt policy must
not silently mean the default.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from truekeep.core.errors import BadSetup
from truekeep.core.model import RULES, WRITERS, Policy
from truekeep.core.toml import render_text

_INBOX_PATTERN = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z"
_MAXIMA: Mapping[str | type, int] = {
    "limits.settle_seconds": 3600,
    "limits.review_days": 36_500,
    "limits.processed_days": 36_500,
    "limits.heartbeat_minutes": 1_000_000,
    "limits": 2**40,
    int: 100_000,
    float: 1,
}
_RETIRED = {"recall.lend": "vectors are no longer taken from OpenClaw's databases"}
_WRITER_PATTERN = r"[a-z0-9][a-z0-9_-]{0,31}\Z"


class Limits(NamedTuple):
    """Sizes and ages above which truekeep warns or sends to review."""

    handoff_bytes: int = 262_144
    settle_seconds: float = 1.0
    index_lines: int = 200
    index_bytes: int = 25_600
    document_bytes: int = 65_536
    review_days: int = 30
    processed_days: int = 30
    waiting_handoffs: int = 10
    heartbeat_minutes: int = 30


EMBEDDERS = (
    "static",
    "auto",
    "none",
    "transformer",
    "openai-compatible",
    "ollama",
    "openai",
    "gemini",
    "voyage",
    "mistral",
)


class SearchConfig(NamedTuple):
    """What search covers, and the embedder."""

    embedder: str = "static"
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    dimensions: int = 0
    extra_paths: tuple[str, ...] = ()
    transcripts: bool = True
    transcript_days: int = 30


class VerifyConfig(NamedTuple):
    """Where and when claims are checked."""

    checkouts: tuple[str, ...] = ()
    ingest: bool = True
    recall: bool = True
    budget_ms: int = 200
    ask: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # commands that know ids, by what has them


class DecayConfig(NamedTuple):
    """When log entries, unverified cards and transcripts expire."""

    structural: float = 0.8  # log entries of this importance or more never expire
    potential: float = 0.4  # from this importance on after potential_days, below it after contextual_days
    potential_days: int = 30
    contextual_days: int = 7
    card_days: int = 90
    transcript_days: int = 30


class TranscriptsConfig(NamedTuple):
    """How many days after their last message the store keeps sessions; 0 keeps them forever."""

    keep_days: int = 365


class LogsConfig(NamedTuple):
    """Where the line of each ingest run is written besides .truekeep/logs/ingest.log: auto, none or a path."""

    ingest: str = "auto"  # logs/memory-handoff-ingest.log, if the workspace has a folder logs


class SyncConfig(NamedTuple):
    """What the copies on other machines do not get."""

    private: tuple[str, ...] = ()  # patterns of files that stay on the canonical host
    public: tuple[str, ...] = ()  # of files that are sent as they are, though private files say the same


class Config(NamedTuple):
    """All settings of a workspace."""

    repositories: tuple[str, ...] = ()
    writers: Mapping[str, str] = WRITERS
    policy: Mapping[str, Policy] = MappingProxyType({})
    limits: Limits = Limits()
    recall: SearchConfig = SearchConfig()
    verify: VerifyConfig = VerifyConfig()
    transcripts: TranscriptsConfig = TranscriptsConfig()
    decay: DecayConfig = DecayConfig()
    logs: LogsConfig = LogsConfig()
    sync: SyncConfig = SyncConfig()
    warnings: tuple[str, ...] = ()  # about keys without effect

    def policy_for(self, code: str) -> Policy:
        return self.policy.get(code) or RULES[code].policy


TEMPLATE = """\
# truekeep's configuration for this workspace. Everything left out has its default.

# The repositories whose inboxes are scanned; patterns such as "~/repos/*" are fine.
# The workspace's own inboxes are always scanned.
repositories = [{repositories}]

# Writers and their inbox inside a repository. Naming one adds it to claude and codex.
[writers]
# opencode = ".opencode/memory-handoffs"

# The effect of a finding: "promote" (file it anyway), "review" (a person decides) or "refuse" (reject it).
# `truekeep handoff lint --codes` lists every code with its default.
[policy]
# task-state = "review"

[limits]
# handoff_bytes = 262144    # larger files go to review unread
# settle_seconds = 1.0      # files changed more recently may still be being written
# index_lines = 200         # agents load no more of MEMORY.md than this
# index_bytes = 25600
# document_bytes = 65536
# review_days = 30          # `review prune` without --older-than
# processed_days = 30
# waiting_handoffs = 10     # `status` warns from this many on
# heartbeat_minutes = 30    # HEARTBEAT.md is overdue when it is older; 0: never

[recall]
# embedder = "static"       # static | none | transformer | openai-compatible | ollama | openai | gemini | voyage |
#                           # mistral | auto; only static, none and transformer keep every text on this machine
# model = ""                # the model's name, or the folder of a transformer
# base_url = ""             # for openai-compatible and ollama
# key_env = ""              # the environment variable that holds the key, if not the default
# dimensions = 0            # shorter vectors, if the service offers them
# extra_paths = []          # more Markdown to search, such as "~/notes"
# transcripts = true        # let `search --store transcripts` search the harnesses' sessions

[verify]
# checkouts = []            # more folders with repositories that memory is about, such as "~/src/*"
# ingest = true             # check handoffs against the code before filing them
# recall = true             # show a verdict with each search hit
# budget_ms = 200           # time that a search may spend on checking its hits
# ask.workflow = ["n8n-has", "{{id}}"]  # a command of yours that exits with 0 if an id exists, with 1 if not

[transcripts]
# keep_days = 365           # how long `truekeep transcripts sync` keeps sessions; 0: forever

# Rules of `truekeep tidy decay`. Expired log entries such as "- [decision|i=0.9] ..." leave the search index.
[decay]
# structural = 0.8          # entries of this importance or more never expire
# potential = 0.4           # from this importance on after potential_days, others after contextual_days
# potential_days = 30
# contextual_days = 7
# card_days = 90            # list cards not updated, confirmed or verified for this long
# transcript_days = 30      # do not search sessions older than this; they are kept

[logs]
# ingest = "auto"           # another log of ingest runs: a path, none, or auto, which is
#                           # logs/memory-handoff-ingest.log if the workspace has a folder logs

[sync]
# private = []              # files that copies on other machines never get, such as "memory/diary/", "salary*.md";
#                           # SOUL.md and any USER.md but your own stay here anyway
# public = []               # files that are sent whole, also where they say what a private file says
"""


def render_config(repositories: tuple[str, ...]) -> str:
    return TEMPLATE.format(repositories=", ".join(map(render_text, repositories)))


def parse_config(text: str, *, where: str) -> Config:
    """Parse a configuration. One BadSetup error names every problem."""
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise BadSetup(f"{where}: {error}", hint="correct that line") from error
    problems: list[str] = []
    warnings = _remove_retired_keys(data, where)
    _report_unknown_keys(data, Config._fields[:-1], "", problems)
    config = Config(
        repositories=_repositories(data.get("repositories", []), problems),
        writers=_writers(data.get("writers", {}), problems),
        policy=_policy(data.get("policy", {}), problems),
        limits=_limits(data.get("limits", {}), problems),
        recall=_recall(data.get("recall", {}), problems),
        verify=_verify(data.get("verify", {}), problems),
        transcripts=TranscriptsConfig(
            **_settings(data.get("transcripts", {}), "transcripts", TranscriptsConfig()._asdict(), problems)
        ),
        decay=_decay(data.get("decay", {}), problems),
        logs=LogsConfig(**_settings(data.get("logs", {}), "logs", LogsConfig()._asdict(), problems)),
        sync=SyncConfig(**_settings(data.get("sync", {}), "sync", SyncConfig()._asdict(), problems)),
        warnings=warnings,
    )
    if problems:
        raise BadSetup(f"{where}: " + "; ".join(problems), hint="correct the file", problems=problems)
    return _unify_transcript_days(config, is_new="transcript_days" in data.get("decay", {}))


def _remove_retired_keys(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Remove keys that older versions had. Returns a warning for each."""
    warnings = []
    for path, why in _RETIRED.items():
        table, _, key = path.partition(".")
        if isinstance(data.get(table), dict) and data[table].pop(key, None) is not None:
            warnings.append(f"{where}: {path} has no effect: {why}")
    return tuple(warnings)


def _unify_transcript_days(config: Config, *, is_new: bool) -> Config:
    """transcript_days was in [recall] before there was [decay]; if both are set, [decay] wins."""
    days = config.decay.transcript_days if is_new else config.recall.transcript_days
    return config._replace(
        decay=config.decay._replace(transcript_days=days), recall=config.recall._replace(transcript_days=days)
    )


def _report_unknown_keys(table: Mapping[str, Any], known: tuple[str, ...], prefix: str, problems: list[str]) -> None:
    for key in table:
        if key not in known:
            import difflib  # here: hooks read the configuration, and few have an unknown key

            close = difflib.get_close_matches(key, known, 1)
            problems.append(f"unknown key {prefix}{key}" + (f" (did you mean {close[0]}?)" if close else ""))


def _table(value: Any, name: str, problems: list[str]) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    problems.append(f"{name} must be a table")
    return {}


def _repositories(value: Any, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        problems.append('repositories must be a list of patterns, such as ["~/repos/*"]')
        return ()
    return tuple(value)


def _writers(value: Any, problems: list[str]) -> dict[str, str]:
    writers = dict(WRITERS)
    for name, folder in _table(value, "writers", problems).items():
        if not re.match(_WRITER_PATTERN, name):
            problems.append(f"writers.{name}: a writer's name is lower-case letters, digits and dashes")
        elif (
            not isinstance(folder, str) or not re.match(_INBOX_PATTERN, folder) or {".", ".."} & set(folder.split("/"))
        ):
            problems.append(f"writers.{name} must be a folder inside a repository, such as .{name}/memory-handoffs")
        else:
            writers[name] = folder
    return writers


def _policy(value: Any, problems: list[str]) -> dict[str, Policy]:
    table = _table(value, "policy", problems)
    _report_unknown_keys(table, tuple(RULES), "policy.", problems)
    policy: dict[str, Policy] = {}
    for code, choice in table.items():
        if code not in RULES:
            continue
        if choice not in get_args(Policy):
            problems.append(f'policy.{code} must be "promote", "review" or "refuse"')
        elif choice == "promote" and RULES[code].binding:
            problems.append(f'policy.{code} cannot be "promote": {RULES[code].meaning}')
        else:
            policy[code] = choice
    return policy


def _limits(value: Any, problems: list[str]) -> Limits:
    table = dict(_table(value, "limits", problems))
    if isinstance(table.get("settle_seconds"), int) and not isinstance(table["settle_seconds"], bool):
        table["settle_seconds"] = float(table["settle_seconds"])
    return Limits(**_settings(table, "limits", Limits()._asdict(), problems))


def _recall(value: Any, problems: list[str]) -> SearchConfig:
    table = _table(value, "recall", problems)
    if "embedder" in table and table["embedder"] not in EMBEDDERS:
        problems.append(f"recall.embedder must be one of {', '.join(EMBEDDERS)}")
        table = {key: given for key, given in table.items() if key != "embedder"}
    return SearchConfig(**_settings(table, "recall", SearchConfig()._asdict(), problems))


def _verify(value: Any, problems: list[str]) -> VerifyConfig:
    table = dict(_table(value, "verify", problems))
    ask: dict[str, tuple[str, ...]] = {}
    for what, command in _table(table.pop("ask", {}), "verify.ask", problems).items():
        is_list = isinstance(command, list) and all(isinstance(item, str) and item for item in command)
        if not is_list or not any("{id}" in item for item in command[1:]) or not re.match(r"[a-z][a-z-]*\Z", what):
            problems.append(f'verify.ask.{what} must be a command and its arguments, such as ["n8n-has", "{{id}}"]')
        elif "/" in command[0] and not command[0].startswith("/"):
            problems.append(f"verify.ask.{what} must name a program on PATH, or by its full path")
        else:
            ask[what] = tuple(command)
    defaults = {key: default for key, default in VerifyConfig()._asdict().items() if key != "ask"}
    return VerifyConfig(**_settings(table, "verify", defaults, problems), ask=MappingProxyType(ask))


def _decay(value: Any, problems: list[str]) -> DecayConfig:
    table = dict(_table(value, "decay", problems))
    for key in ("structural", "potential"):
        if isinstance(table.get(key), int) and not isinstance(table[key], bool):
            table[key] = float(table[key])
    chosen = DecayConfig(**_settings(table, "decay", DecayConfig()._asdict(), problems))
    if chosen.potential > chosen.structural:
        problems.append("decay.potential must not be above decay.structural")
    keys = ("potential_days", "contextual_days", "card_days")
    problems += [f"decay.{key} must be at least 1" for key in keys if getattr(chosen, key) == 0]
    return chosen


def _settings(value: Any, name: str, defaults: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The settings of a table; each must have the type of its default."""
    table = _table(value, name, problems)
    _report_unknown_keys(table, tuple(defaults), f"{name}.", problems)
    chosen: dict[str, Any] = {}
    for key, default in defaults.items():
        if key not in table:
            continue
        given = table[key]
        if isinstance(default, tuple):
            if not isinstance(given, list) or not all(isinstance(item, str) and item for item in given):
                problems.append(f"{name}.{key} must be a list of paths")
            else:
                chosen[key] = tuple(given)
        elif isinstance(default, (int, float)) and not isinstance(default, bool):
            maximum = _MAXIMA.get(f"{name}.{key}") or _MAXIMA.get(name) or _MAXIMA[type(default)]
            if type(given) is not type(default) or not 0 <= given <= maximum:  # also rejects NaN
                whole = "whole " if isinstance(default, int) else ""
                problems.append(f"{name}.{key} must be a {whole}number from 0 to {maximum}")
            else:
                chosen[key] = given
        elif type(given) is not type(default):
            problems.append(f"{name}.{key} must be {'a text' if isinstance(default, str) else 'true or false'}")
        else:
            chosen[key] = given
    return chosen
