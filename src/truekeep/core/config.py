"""The configuration of a workspace: .truekeep/config.toml, checked once, every problem at once.

A missing file or key means the default. An unknown key is a problem, because it is a typo more often than not, and a
misspelt policy must not silently mean the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from truekeep.core.errors import BadSetup
from truekeep.core.model import RULES, WRITERS, Policy
from truekeep.core.toml import parse_toml, render_text

_INBOX = r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z"
_MOST = {"settle_seconds": 3600, "review_days": 36_500, "processed_days": 36_500}
_WRITER = r"[a-z0-9][a-z0-9_-]{0,31}\Z"


class Limits(NamedTuple):
    """How large things may grow before they are set aside or warned about."""

    handoff_bytes: int = 262_144
    settle_seconds: float = 1.0
    index_lines: int = 200
    index_bytes: int = 25_600
    document_bytes: int = 65_536
    review_days: int = 30
    processed_days: int = 30
    waiting_handoffs: int = 10


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
    """What recall covers, and who turns texts into vectors."""

    embedder: str = "static"
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    dimensions: int = 0
    extra_paths: tuple[str, ...] = ()
    transcripts: bool = True
    transcript_days: int = 30
    lend: bool = True


class Verify(NamedTuple):
    """What claims are held against, and when."""

    checkouts: tuple[str, ...] = ()
    ingest: bool = True
    recall: bool = True
    budget_ms: int = 200


class DecayConfig(NamedTuple):
    """How long things count: tagged entries of logs by their importance, cards without a check, sessions in search."""

    structural: float = 0.8  # an entry of this importance or more always counts
    potential: float = 0.4  # one of this or more, for potential_days; all below, for contextual_days
    potential_days: int = 30
    contextual_days: int = 7
    card_days: int = 90
    transcript_days: int = 30


class Transcripts(NamedTuple):
    """How long the archive keeps sessions after somebody last spoke in them; 0: for ever."""

    keep_days: int = 365


class Config(NamedTuple):
    """What a workspace is told to do."""

    repositories: tuple[str, ...] = ()
    writers: Mapping[str, str] = WRITERS
    policy: Mapping[str, Policy] = MappingProxyType({})
    limits: Limits = Limits()
    recall: SearchConfig = SearchConfig()
    verify: Verify = Verify()
    transcripts: Transcripts = Transcripts()
    decay: DecayConfig = DecayConfig()

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

# What a finding leads to: "promote" (file it all the same), "review" (a person decides), "refuse" (turn it away).
# `truekeep handoff lint --codes` lists every code with its default.
[policy]
# task-state = "review"

[limits]
# handoff_bytes = 262144    # larger files go to review unread
# settle_seconds = 1.0      # a file changed more recently may still be being written
# index_lines = 200         # what agents load of MEMORY.md before they cut it off
# index_bytes = 25600
# document_bytes = 65536
# review_days = 30          # `review prune` without --older-than
# processed_days = 30
# waiting_handoffs = 10      # from here on, `status` says that the inboxes are too full

[recall]
# embedder = "static"       # static | none | transformer | openai-compatible | ollama | openai | gemini | voyage |
#                           # mistral | auto; only static, none and transformer keep every text on this machine
# model = ""                # the model's name, or the folder of a transformer
# base_url = ""             # for openai-compatible and ollama
# key_env = ""              # the environment variable that holds the key, if it is not the usual one
# dimensions = 0            # shorter vectors, where the service offers them
# extra_paths = []          # more Markdown to search, such as "~/notes"
# transcripts = true        # search the harnesses' own session files and the archive of them, when asked to
# lend = true               # take vectors from OpenClaw's database where it has them for the same model

[verify]
# checkouts = []            # more folders that hold repositories which memory is about, such as "~/src/*"
# ingest = true             # hold handoffs against code before they are filed
# recall = true             # show with every hit whether what it names still exists
# budget_ms = 200           # the time that a search may spend on checking its hits

[transcripts]
# keep_days = 365           # the archive of `truekeep transcripts sync` keeps sessions this long; 0: for ever

# What `truekeep tidy decay` goes by. Entries of daily logs such as "- [decision|i=0.9] ..." leave the search index.
[decay]
# structural = 0.8          # from this importance on, an entry never does
# potential = 0.4           # from this one on, after potential_days; all others after contextual_days
# potential_days = 30
# contextual_days = 7
# card_days = 90            # cards that nobody updated, confirmed or verified for so long are listed
# transcript_days = 30      # sessions that nobody spoke in for so long are not searched; the archive keeps them
"""


def render_config(repositories: tuple[str, ...]) -> str:
    return TEMPLATE.format(repositories=", ".join(map(render_text, repositories)))


def parse_config(text: str, *, where: str) -> Config:
    """Read a configuration; one error names everything that is wrong with it."""
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise BadSetup(f"{where}: {error}", hint="correct that line; nothing was changed") from error
    problems: list[str] = []
    _unknown(data, Config._fields, "", problems)
    config = Config(
        repositories=_repositories(data.get("repositories", []), problems),
        writers=_writers(data.get("writers", {}), problems),
        policy=_policy(data.get("policy", {}), problems),
        limits=_limits(data.get("limits", {}), problems),
        recall=_recall(data.get("recall", {}), problems),
        verify=_verify(data.get("verify", {}), problems),
        transcripts=_transcripts(data.get("transcripts", {}), problems),
        decay=_decay(data.get("decay", {}), problems),
    )
    if problems:
        told = f"{where}: " + "; ".join(problems)
        raise BadSetup(told, hint="correct the file; nothing was changed", problems=problems)
    return _one_age(config, is_new="transcript_days" in data.get("decay", {}))


def _one_age(config: Config, *, is_new: bool) -> Config:
    """The age of sessions in search stood under [recall] before there was [decay]; where both say it, the new key."""
    days = config.decay.transcript_days if is_new else config.recall.transcript_days
    return config._replace(
        decay=config.decay._replace(transcript_days=days), recall=config.recall._replace(transcript_days=days)
    )


def _unknown(table: Mapping[str, Any], known: tuple[str, ...], prefix: str, problems: list[str]) -> None:
    for key in table:
        if key not in known:
            import difflib

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
        if not re.match(_WRITER, name):
            problems.append(f"writers.{name}: a writer's name is lower-case letters, digits and dashes")
        elif not isinstance(folder, str) or not re.match(_INBOX, folder) or {".", ".."} & set(folder.split("/")):
            problems.append(f"writers.{name} must be a folder inside a repository, such as .{name}/memory-handoffs")
        else:
            writers[name] = folder
    return writers


def _policy(value: Any, problems: list[str]) -> dict[str, Policy]:
    table = _table(value, "policy", problems)
    _unknown(table, tuple(RULES), "policy.", problems)
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
    table = _table(value, "limits", problems)
    defaults = Limits()
    known = Limits._fields
    _unknown(table, known, "limits.", problems)
    chosen: dict[str, Any] = {}
    for key in known:
        if key not in table:
            continue
        number = table[key]
        whole = isinstance(getattr(defaults, key), int)
        is_number = not isinstance(number, bool) and isinstance(number, int if whole else (int, float))
        most = _MOST.get(key, 2**40)
        if not is_number or not 0 <= number <= most:
            problems.append(f"limits.{key} must be a {'whole ' if whole else ''}number from 0 to {most}")
        else:
            chosen[key] = number
    return Limits(**chosen)


def _recall(value: Any, problems: list[str]) -> SearchConfig:
    table = _table(value, "recall", problems)
    if "embedder" in table and table["embedder"] not in EMBEDDERS:
        problems.append(f"recall.embedder must be one of {', '.join(EMBEDDERS)}")
        table = {key: given for key, given in table.items() if key != "embedder"}
    return SearchConfig(**_settings(table, "recall", SearchConfig()._asdict(), problems))


def _verify(value: Any, problems: list[str]) -> Verify:
    return Verify(**_settings(_table(value, "verify", problems), "verify", Verify()._asdict(), problems))


def _transcripts(value: Any, problems: list[str]) -> Transcripts:
    table = _table(value, "transcripts", problems)
    return Transcripts(**_settings(table, "transcripts", Transcripts()._asdict(), problems))


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


def _settings(table: Mapping[str, Any], name: str, defaults: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The settings of a table, each of the type that its default has."""
    _unknown(table, tuple(defaults), f"{name}.", problems)
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
        elif type(given) is not type(default):
            problems.append(f"{name}.{key} must be {_KINDS[type(default)]}")
        elif isinstance(given, int) and not 0 <= given <= 100_000:
            problems.append(f"{name}.{key} must be a whole number from 0 to 100000")
        elif isinstance(given, float) and not 0 <= given <= 1:  # nor is it, if it is no number
            problems.append(f"{name}.{key} must be a number from 0 to 1")
        else:
            chosen[key] = given
    return chosen


_KINDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number from 0 to 1"}
