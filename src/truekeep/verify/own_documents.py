"""What a repository's own documents say and its code never had: there is no other project that could be meant.

A memory may tell of anything, so what was never seen is unverifiable there. A document that ties a name to this
repository (its script, its file, its port) is wrong about it instead.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from truekeep.core.repository import GitFailed
from truekeep.verify.claims.inline_code import SETTING
from truekeep.verify.file_kinds import DOCUMENTS, FileKind, is_for_contributors, kind_of
from truekeep.verify.own_settings import is_of_product, is_put_together, may_be_read
from truekeep.verify.path_claims import PLACEHOLDER, find_place
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.subject import reduce_words
from truekeep.verify.symbol_claims import GENERIC_VARIABLES, is_source
from truekeep.verify.verdict import (
    CODE,
    GONE,
    NEVER_SEEN,
    NOT_READ,
    NOT_THERE,
    UNVERIFIABLE,
    Verdict,
    gone,
    unverifiable,
)

_MIN_NAMED_ALIKE, _MIN_PREFIX_OF_VARIABLE = 2, 3
_OF_OTHER_PROGRAMS = frozenset(
    "NODE NPM PYTHON PIP UV CARGO RUST GO GIT GITHUB GITLAB AWS AZURE GOOGLE GCP DOCKER COMPOSE CI LD LC XDG SSH HTTP "
    "HTTPS JAVA MAVEN GRADLE ANDROID RUBY BUNDLE GEM OPENAI ANTHROPIC GEMINI CLAUDE CODEX HOMEBREW CMAKE MAKE "
    "PLAYWRIGHT POSTGRES MYSQL REDIS NEXT VITE EXPO SENTRY VERCEL SUPABASE FIREBASE STRIPE OTEL DOTNET".split()
)
_NOT_READ = "no file here has it but documents, though most variables of this document are here"
_OF_EVERY_PROGRAM = ("--help", "--version")  # a library makes them


def judge_own(world: World, question: Question, verdict: Verdict) -> Verdict:
    """Turn a verdict that nothing was seen into `gone` where the claim can only be about this repository."""
    state = world.now.state
    if verdict.verdict == GONE and (other := _namesake(world, question)):
        return unverifiable(question, "several", f"{other}, which is called alike, has the name", place=other)
    if verdict.verdict == GONE and question.claim.kind == "env" and is_put_together(world, question.claim.name):
        return unverifiable(question, "put-together", "the code may make this name out of others", place=verdict.place)
    if verdict.verdict != UNVERIFIABLE or not state.head or not world.is_complete or question.claim.is_weak:
        return verdict
    kind, reason = question.claim.kind, verdict.reason
    if kind == "commit" and reason == "never-seen":
        return gone(question, NEVER_SEEN, "no such commit in this repository", rank=CODE)
    if kind == "script" and reason == "not-listed":
        return gone(question, NEVER_SEEN, f"nothing here that {question.claim.owner} runs has this name", rank=CODE)
    if kind == "port" and reason == "not-listening" and (others := _ports(world)):
        named = NOT_THERE if len(others) == 1 and question.claim.why == "called a port" else NEVER_SEEN
        why = f"no configuration or code names it; they name {', '.join(map(str, others[:5]))}"
        return gone(question, named, why, rank=CODE)
    if kind in ("symbol", "method", "env", "flag") and reason in ("never-seen", "only-mentioned"):
        return _missing_name(world, question, verdict)
    return verdict


def _namesake(world: World, question: Question) -> str:
    """A file that has a name, if the file that is said to have it is not here and ends like this one."""
    claim = question.claim
    if claim.kind not in ("symbol", "method") or "/" not in claim.place or world.now.has(claim.place):
        return ""
    ending = "/".join(claim.place.split("/")[-2:])
    alike = [path for path in world.now.by_name.get(ending.rpartition("/")[2], ()) if path.endswith(f"/{ending}")]
    return next((path for path in alike if world.find_word(path, claim.name)), "")


def _ports(world: World) -> list[int]:
    """The ports that configuration names, and those that code gives to a variable or setting called port."""
    key = ("ports",)
    if key not in world.places:
        listed = {number for manifest in world.manifests.values() for number, _ in manifest.ports}
        given = {
            int(digits)
            for path, words in _grep(world, r"[A-Za-z_]*([Pp]ort|PORT)[\"']?( \|\| |[ =:(?]+)[\"']?[0-9]{4,5}")
            if is_source(path) and (digits := re.split(r"\D", words)[-1])
        }
        world.places[key] = sorted(listed | {number for number in given if number < 65_536})
    found: list[int] = world.places[key]
    return found


def _named_alike(world: World, name: str) -> list[str]:
    """Some variables of the code that begin like this one, by which it is one of this repository's; none if few do."""
    prefix = name.partition("_")[0]
    if len(prefix) < _MIN_PREFIX_OF_VARIABLE:
        return []
    alike = sorted({word for path, word in _grep(world, f"{prefix}_[A-Z0-9_]+") if not path.endswith(DOCUMENTS)})
    is_family = any(word == name or word.startswith(f"{name}_") for word in alike)  # the beginning of others
    return alike[:3] if len(alike) >= _MIN_NAMED_ALIKE and not is_family else []


def _is_written_anywhere(world: World, name: str) -> bool:
    """Whether a file that is no document has a word; also one in a language that is not read otherwise."""
    return any(not path.endswith(DOCUMENTS) for path, _ in _grep(world, re.escape(name)))


def _grep(world: World, pattern: str) -> Iterator[tuple[str, str]]:
    """The files of the work tree that have a word, and the word."""
    with suppress(GitFailed):
        raw = world.git.run("grep", "-ozIwE", "-e", pattern)
        for row in os.fsdecode(raw).split("\n"):
            path, _, word = row.partition("\0")
            if word:
                yield path, word


def _is_own_test(question: Question, path: str) -> bool:
    """Whether a test is named together with its file: `tests/test_x.py::TestX::test_y`."""
    claim = question.claim
    return bool(claim.place) and claim.kind in ("symbol", "method") and kind_of(path) is FileKind.TEST


def _other_capitals(world: World, question: Question) -> str | None:
    """The name in other capitals, if code has it so: `HttpServer` for what is called HTTPServer."""
    claim = question.claim
    if claim.kind not in ("symbol", "method") or not is_for_contributors(question.memory):
        return None
    if len(claim.name) < _MIN_SPELLED or not _TYPE.match(claim.name):
        return None
    with suppress(GitFailed):
        raw = world.git.run("grep", "-ozIiw", "-e", re.escape(claim.name))
        for row in os.fsdecode(raw).split("\n"):
            path, _, word = row.partition("\0")
            if word and is_source(path) and word.isidentifier() and word[0].isupper():
                return word
    return None


def _types_named_alike(world: World, question: Question) -> list[str]:
    """Some types and functions of the code whose names begin with the same two words; none if few do."""
    claim = question.claim
    if claim.kind not in ("symbol", "method") or not is_for_contributors(question.memory) or claim.may_be_past:
        return []
    words = _WORDS_OF_NAME.findall(claim.name)
    prefix = "".join(words[:2])
    if len(words) < _MIN_WORDS or len(prefix) < _MIN_PREFIX or PLACEHOLDER.match(claim.name) or words[0] in _VERBS:
        return []
    found = {word for path, word in _grep(world, f"{prefix}[A-Z][A-Za-z0-9]+") if is_source(path)}
    return sorted(found)[:3] if len(found) >= _MIN_TYPES_ALIKE else []


_WORDS_OF_NAME = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z][a-z0-9]+")
_VERBS = frozenset(
    ("Get", "Set", "Create", "Add", "Update", "Delete", "Remove", "List", "Find", "Is", "Has", "On", "Handle", "Use",
     "Make", "Load", "Save", "Send", "Read", "Write", "Run", "Start", "Stop", "Check", "Validate")
)  # fmt: skip  # names of examples begin so as well
_MIN_WORDS, _MIN_PREFIX, _MIN_TYPES_ALIKE = 3, 6, 4
_MIN_SPELLED = 10
_TYPE = re.compile(r"[A-Z][a-z0-9]+[A-Z]\w*\Z")
_NAMES_SPELLINGS = re.compile(
    r"\b(?:snake|kebab|screaming|pascal|camel|upper|lower)[-_ ]?(?:snake[-_ ]?)?case\b|\bnaming\b"
    r"|\bname-(?:constants|variables|functions)\b",
    re.IGNORECASE,
)  # a line that shows how names are written


def _missing_variable(world: World, question: Question) -> Verdict | None:
    """A variable that nothing here reads, if its name or its document ties it to this repository."""
    name = question.claim.name
    is_own = is_of_product(world, name)
    if not is_own and (name in GENERIC_VARIABLES or name.partition("_")[0] in _OF_OTHER_PROGRAMS):
        return None
    if question.claim.why == SETTING and not is_own:
        return None if may_be_read(world, name) else gone(question, NOT_READ, _NOT_READ, rank=CODE)
    others = _named_alike(world, name) if is_own or is_for_contributors(question.memory) else []
    if not others or may_be_read(world, name):
        return None
    return gone(question, NOT_READ, f"no code here has it; {', '.join(others)} are here", rank=CODE)


def _missing_name(world: World, question: Question, verdict: Verdict) -> Verdict:
    """A name that a document puts into a file here, or a flag of a program that is made here."""
    claim = question.claim
    if claim.kind == "env" and _NAMES_SPELLINGS.search(question.subject.line):
        return verdict
    if claim.name in _OF_EVERY_PROGRAM or (claim.kind != "flag" and _is_written_anywhere(world, claim.name)):
        return verdict
    if claim.kind == "flag" and claim.owner.rpartition("/")[2].lower() in world.products:
        return gone(question, NEVER_SEEN, f"no code here has it, and {claim.owner} is made here", rank=CODE)
    if claim.kind == "flag" and not claim.owner and is_for_contributors(question.memory):
        is_called = re.search(rf"-(?:flag|option|switch)-{reduce_words(claim.name).strip('-')}-", question.subject.line)
        why = "no code here has it" if is_called else "no code here has it; another program may"
        return gone(question, NOT_THERE if is_called else NEVER_SEEN, why, rank=CODE)
    if claim.kind == "env":
        return _missing_variable(world, question) or verdict
    if (spelled := _other_capitals(world, question)) is not None:
        return gone(question, NOT_THERE, f"no code here has it; {spelled} is here", rank=CODE)
    if others := _types_named_alike(world, question):
        return gone(question, NOT_THERE, f"no code here has it; {', '.join(others)} are here", rank=CODE)
    place = find_place(world, claim.place or (claim.owner if claim.kind == "flag" else ""), question)
    if (
        place is None
        or not world.now.has(place.path)
        or not (is_source(place.path) or _is_own_test(question, place.path))
    ):
        return verdict
    return gone(
        question, NOT_THERE, f"{place.path} does not have it, and no code here does", place=place.path, rank=CODE
    )
