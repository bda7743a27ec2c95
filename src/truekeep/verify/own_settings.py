"""Which variables of a document are settings of this repository, and which of those nothing here reads.

A block of settings may be of any program. It is of this repository if most variables of the document are; then one that
no file has is not read by anything, unless the code makes the names of variables out of other ones.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from truekeep.core.repository import GitFailed
from truekeep.verify.claims.inline_code import SETTING
from truekeep.verify.file_kinds import DOCUMENTS
from truekeep.verify.question import Question
from truekeep.verify.repository import World, is_code

_MIN_KNOWN = 3
_SHARE_KNOWN = 0.5
_MAKES_NAMES = (
    r"BaseSettings|env_prefix|AutomaticEnv|SetEnvPrefix|envconfig|koanf|figment|[Ee]nvironment::with_prefix|[Dd]ynaconf"
    r"|from_prefixed_env|org\.springframework\.boot|spring-boot-starter|io\.quarkus|io\.micronaut|com\.typesafe\.config|AddEnvironmentVariables"
    r"|auto_envvar_prefix|#\[(arg|clap)\([^)]*env[,)]|serde_env|(from|import) (environs|decouple)"
)  # libraries that read a variable for a field or a key of another name
_OF_AN_EXAMPLE = frozenset(("EXAMPLE", "MY", "YOUR", "FOO", "BAR", "SOME", "CUSTOM", "NEW"))
_PARTS = re.compile(r"[A-Z0-9]+")


def firm_settings(world: World, questions: Sequence[Question]) -> Sequence[Question]:
    """Take the settings of documents that are about this repository as surely its own."""
    by_document: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        if question.claim.kind == "env" and (question.claim.why == SETTING or "_" in question.claim.name):
            by_document[question.memory].add(question.claim.name)
    with_settings = {item.memory for item in questions if item.claim.kind == "env" and item.claim.why == SETTING}
    if not with_settings:
        return questions
    used = world.now.find("words", {name for path in with_settings for name in by_document[path]})
    own = {path for path in with_settings if _is_own([used[name] for name in by_document[path]])}

    def firm(question: Question) -> Question:
        is_setting = question.claim.why == SETTING and question.claim.kind == "env"
        is_firm = is_setting and question.memory in own
        return question._replace(claim=question.claim._replace(is_weak=False)) if is_firm else question

    return [firm(question) for question in questions]


def _is_own(users: Sequence[Sequence[str]]) -> bool:
    known = sum(any(not path.endswith(DOCUMENTS) for path in paths) for paths in users)
    return known >= _MIN_KNOWN and known >= len(users) * _SHARE_KNOWN


def may_be_read(world: World, name: str) -> bool:
    """Whether a variable may count though no code has it: it puts names together, or another program reads it."""
    parts = _PARTS.findall(name)
    if parts[0] in _OF_AN_EXAMPLE or not any(_files_with(world, parts[0], ignore_case=True)):
        return True  # of the reader, or of a program that is only used here
    heads = ["_".join(parts[:at]) + "_" for at in range(1, len(parts))]
    tails = ["_" + "_".join(parts[at:]) for at in range(1, len(parts))]
    pieces = "|".join(
        [*(f"{head}([^A-Za-z0-9_]|$)" for head in heads), *(f"(^|[^A-Za-z0-9_]){tail}" for tail in tails)]
    )
    if any(_files_with(world, pieces)):
        return True
    spelled = "[_.-]?".join(part.lower() for part in parts)
    return _makes_names(world) and any(_files_with(world, f"{_tail_of(spelled)}", ignore_case=True))


def _tail_of(spelled: str) -> str:
    """The name without its first part, which is the prefix of the program as a rule."""
    head, _, rest = spelled.partition("[_.-]?")
    return rest if "[_.-]?" in rest else f"{head}[_.-]?{rest}"


def _makes_names(world: World) -> bool:
    key = ("makes names of variables",)
    if key not in world.places:
        world.places[key] = any(_files_with(world, _MAKES_NAMES))
    found: bool = world.places[key]
    return found


def _files_with(world: World, pattern: str, *, ignore_case: bool = False) -> Iterator[str]:
    """The files that are read as code and have a pattern."""
    options = ("-i",) if ignore_case else ()
    with suppress(GitFailed):
        raw = world.git.run("grep", "--untracked", "-lzIE", *options, "-e", pattern)
        for item in raw.split(b"\0"):
            if item and is_code(os.fsdecode(item)):
                yield os.fsdecode(item)
