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
_MIN_PREFIX = 3
_MAKES_NAMES = (
    r"BaseSettings|env_prefix|AutomaticEnv|SetEnvPrefix|envconfig|koanf|figment|[Ee]nvironment::with_prefix|[Dd]ynaconf"
    r"|from_prefixed_env|org\.springframework\.boot|spring-boot-starter|io\.quarkus|io\.micronaut|com\.typesafe\.config|AddEnvironmentVariables"
    r"|auto_envvar_prefix|#\[(arg|clap)\([^)]*env[,)]|serde_env|(from|import) (environs|decouple)"
)  # libraries that read a variable for a field or a key of another name
_OF_AN_EXAMPLE = frozenset(("EXAMPLE", "MY", "YOUR", "FOO", "BAR", "SOME", "CUSTOM", "NEW"))
_PARTS = re.compile(r"[A-Z0-9]+")
_PIECE = r"(^|[^A-Za-z0-9_])([A-Z][A-Z0-9_]*_([^A-Za-z0-9_]|$)|_[A-Z][A-Z0-9_]*)"
_PIECE_ALONE = re.compile(r"(?<![A-Za-z0-9_])(?:[A-Z][A-Z0-9_]*_(?![A-Za-z0-9_])|_[A-Z][A-Z0-9_]*(?![A-Za-z0-9_]))")


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
        is_firm = is_setting and (question.memory in own or is_of_product(world, question.claim.name))
        return question._replace(claim=question.claim._replace(is_weak=False)) if is_firm else question

    return [firm(question) for question in questions]


def _is_own(users: Sequence[Sequence[str]]) -> bool:
    known = sum(any(not path.endswith(DOCUMENTS) for path in paths) for paths in users)
    return known >= _MIN_KNOWN and known >= len(users) * _SHARE_KNOWN


def is_of_product(world: World, name: str) -> bool:
    """Whether a variable begins with the name of this repository or of what it builds: `SHOP_DEBUG` of shop."""
    key = ("prefixes of variables",)
    if key not in world.places:
        names = (re.sub(r"[^a-z0-9]+", "_", product).strip("_").upper() for product in world.products)
        world.places[key] = tuple(f"{prefix}_" for prefix in names if len(prefix) >= _MIN_PREFIX)
    prefixes: tuple[str, ...] = world.places[key]
    return name.startswith(prefixes)


def may_be_read(world: World, name: str) -> bool:
    """Whether a variable may count though no code has it: it puts names together, or another program reads it."""
    parts = _PARTS.findall(name)
    if not _OF_AN_EXAMPLE.isdisjoint(parts) or not _is_named(world, parts[0]):
        return True  # of the reader, or of a program that is only used here
    if is_of_product(world, name):
        return _makes_names(world) or is_put_together(world, name)
    cuts = range(1, len(parts))
    ends = [*("_".join(parts[:at]) + "_" for at in cuts), *("_" + "_".join(parts[at:]) for at in cuts)]
    return not _pieces(world).isdisjoint(ends) or (_makes_names(world) and is_put_together(world, name))


def is_put_together(world: World, name: str) -> bool:
    """Whether the code may make the name of a variable out of two parts, both of which it has: `SHOP_` and `debug`."""
    parts = _PARTS.findall(name)
    pieces = _pieces(world)
    cuts = [(parts[:at], parts[at:]) for at in range(1, len(parts))]
    if _makes_names(world):
        return any(_has_word(world, tail) for _, tail in [([], parts), *cuts[:1]])
    return any(
        ("_".join(head) + "_" in pieces and _has_word(world, tail))
        or ("_" + "_".join(tail) in pieces and _has_word(world, head))
        for head, tail in cuts
    )


def _pieces(world: World) -> frozenset[str]:
    """The beginnings and ends of variables that the code has by themselves, such as `SHOP_` and `_API_KEY`."""
    key = ("pieces of variables",)
    if key not in world.places:
        found = set()
        with suppress(GitFailed):
            raw = world.git.run("grep", "--untracked", "-ozIE", "-e", _PIECE)
            for row in os.fsdecode(raw).split("\n"):
                path, _, piece = row.partition("\0")
                if piece and is_code(path):
                    found.update(_PIECE_ALONE.findall(piece))
        world.places[key] = frozenset(found)
    known: frozenset[str] = world.places[key]
    return known


def _has_word(world: World, parts: Sequence[str]) -> bool:
    """Whether code has these words as one name, in any spelling: MAX_SIZE, max_size, maxSize, MaxSize, max-size."""
    low = [part.lower() for part in parts]
    capital = [part.capitalize() for part in low]
    names = {"_".join(parts), "_".join(low), "-".join(low), "".join(low), "".join(capital)}
    names.add(low[0] + "".join(capital[1:]))
    return any(is_code(path) for paths in world.now.find("words", names).values() for path in paths)


def _is_named(world: World, word: str) -> bool:
    """Whether a file of code has a word, in whatever case and inside of other words as well."""
    key = ("is named", word)
    if key not in world.places:
        world.places[key] = any(_files_with(world, word, ignore_case=True))
    found: bool = world.places[key]
    return found


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
