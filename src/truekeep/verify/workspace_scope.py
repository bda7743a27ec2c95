"""What a workspace's own text claims about the workspace, and what it only mentions.

A workspace tells of many projects and machines. A verdict is taken back where the name is surely of something else: the
part of the document is about another folder, most names around it are unknown here, or the machine that is meant is not
this one.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from truekeep.memory.document_scan import is_backup
from truekeep.memory.file_scan import is_log
from truekeep.verify.claims.patterns import OF_ANY_PROJECT, TOP_FOLDERS, is_bundle, is_file
from truekeep.verify.file_kinds import FileKind, kind_of, language_for
from truekeep.verify.path_claims import MADE_AT_RUN_TIME, WORKSPACE_FILES
from truekeep.verify.question import Question
from truekeep.verify.repository import ELSEWHERE, World
from truekeep.verify.subject import IN_HEADING, IN_LINE, IN_SECTION, is_one_word, nearest, reduce_words
from truekeep.verify.verdict import CONFIRMED, GONE, UNVERIFIABLE, Verdict

_PATHS = ("path", "directory")
_NAMES = ("symbol", "method", "env", "flag")
_OF_MACHINE = ("port", "unit", "container", "cron")
_SEEN_LIVE = ("on-this-host", "listening", "unit", "container", "scheduled", "answers")
_HARNESS_TOOLS = frozenset(
    "memory_search memory_get memory_recall memory_store memory_forget sessions_spawn sessions_send sessions_list "
    "sessions_history sessions_yield session_status session_search agents_list web_search web_fetch apply_patch "
    "image_generate video_generate exec_command write_stdin update_plan tool_search read_file write_file".split()
)  # what a text without a file calls so is a tool of the harness
_SEVERAL_OR_NAME = ("files", "naming", "convention", "format", "templates", "dateien", "archivos")
_OF_EACH_AGENT = re.compile(r"-(?:each|every|jede[rsn]?|cada|chaque|chacun)-(?:\w+-){0,2}?agent")
_OF_A_VENDOR = re.compile(
    r"(?:GITHUB|GITLAB|GH|OPENAI|ANTHROPIC|CLAUDE|GEMINI|GOOGLE|AWS|AZURE|SLACK|DISCORD|TELEGRAM|NOTION|STRIPE|BRAVE|TAVILY"
    r"|OPENROUTER|GROQ|DEEPSEEK|ELEVENLABS|HF|NPM|VERCEL|RAILWAY|SUPABASE|FIRECRAWL|X|TWITTER)_\w*(?:KEY|TOKEN|SECRET|ID)\Z"
)  # credentials that programs of many projects read
_MIN_PARTS_OF_VARIABLE = 2  # underscores in a name that hardly two projects have
_MIN_STRANGERS = 3  # unknown names in a section, and this many times those that are known
_STRANGERS_FOR_EACH = 2


def keep_claims_about(
    world: World, questions: Sequence[Question], found: Mapping[int, Verdict | None]
) -> dict[int, Verdict | None]:
    """The verdicts of a workspace's claims; None for what is no claim about it."""
    strange = _strange_sections(world, questions, found)
    kept: dict[int, Verdict | None] = {}
    for question in questions:
        verdict = found.get(id(question))
        if verdict is not None and verdict.verdict == UNVERIFIABLE:
            verdict = verdict if _is_checkable(world, question, verdict) else None
        elif verdict is not None and verdict.verdict == GONE and _is_of_backup(question, verdict):
            verdict = None  # no code here ever had it, but a copy of another machine's did
        elif verdict is not None and verdict.verdict == CONFIRMED:
            is_strange = (question.memory, question.subject.heading) in strange
            verdict = verdict if _is_meant(world, question, verdict, is_strange=is_strange) else None
        kept[id(question)] = verdict
    return kept


def _is_checkable(world: World, question: Question, verdict: Verdict) -> bool:
    """Whether something that could not be checked is of this workspace and of this machine."""
    claim, reason = question.claim, verdict.reason
    if reason == "other-machine":
        return True  # the owner's machine can tell; here, that it is not checked is said
    if reason in ("decision", "of-others"):
        return False
    if world.base_of(question.declared) == ELSEWHERE and not claim.name.startswith(("/", "~")):
        return False
    if claim.kind == "commit" and reason == "never-seen":
        return False  # of a project that has a repository of its own
    if claim.kind in _OF_MACHINE or reason in ("outside", "ignored", "unread"):
        return True
    if reason == "no-date" or (claim.kind == "script" and verdict.reason in ("not-listed", "no-manifest")):
        return False  # a line number alone, as of a stack trace; a script of whatever project the text is about
    if claim.kind in (*_PATHS, "line") and reason == "never-seen":
        return _is_place_here(world, question)
    if claim.kind in _NAMES and reason in ("never-seen", "only-mentioned"):
        return bool(claim.place)
    return True


def _is_place_here(world: World, question: Question) -> bool:
    """Whether a path that nothing ever had is said to be in a folder of this workspace, to last.

    A log tells what was made on its day, and it may have been made anywhere.
    """
    name = question.claim.place or question.claim.name
    own = world.own_path(name) if name.startswith(("/", "~")) else name.strip("/")
    if own is None or is_log(question.memory) or MADE_AT_RUN_TIME.search(own) or (world.is_copy and own != name):
        return False
    folder = os.path.dirname(own)
    return bool(folder) and any(
        world.now.has_folder(os.path.normpath(os.path.join(base, folder))) for base in ("", question.folder)
    )


def _is_meant(world: World, question: Question, verdict: Verdict, *, is_strange: bool) -> bool:
    """Whether a thing that exists is the one that the text is about."""
    if verdict.reason in _SEEN_LIVE and world.is_copy:
        return False
    if question.claim.name in _HARNESS_TOOLS and not question.claim.place:
        return False
    if not _is_own_code(question, verdict):
        return False
    if _is_any_file_of_the_name(question):
        return False
    base = world.base_of(question.declared)
    if not base and not (is_strange and _is_found_by_name(question)):
        return True
    if base and _is_exact(question, verdict):
        return True
    path = verdict.place.partition(":")[0]
    if base and base != ELSEWHERE and (path == base or path.startswith(base + "/")):
        return True
    named = question.subject.nearness(path, question.claim.name.rpartition("/")[2].partition(".")[0])
    return named <= (IN_LINE if base else IN_HEADING)


def _is_own_code(question: Question, verdict: Verdict) -> bool:
    """Whether the evidence for a name is no installed package, and no script or variable that any project has."""
    claim, path = question.claim, verdict.place.partition(":")[0]
    if claim.kind in _NAMES and not claim.place and path:
        if kind_of(path) is FileKind.VENDORED or is_backup(path) or is_bundle(path):
            return False
        if claim.kind == "env" and language_for(path) in ("json", "html"):
            return False  # a word of a record
        is_common = claim.name.count("_") < _MIN_PARTS_OF_VARIABLE or _OF_A_VENDOR.match(claim.name) is not None
        if claim.kind == "env" and is_common:
            return _nearness(question, path) <= IN_HEADING
    if claim.kind == "port" and is_backup(path):
        return False
    if claim.kind == "script" and "/" in path:
        return _nearness(question, path) <= IN_SECTION
    if claim.kind in ("version", "package") and "/" in path:
        return _nearness(question, path) <= IN_HEADING
    return True


def _is_of_backup(question: Question, verdict: Verdict) -> bool:
    """Whether only a backup had what is gone, or the text puts it into a file of data, whose words come and go."""
    if question.claim.kind == "method" and language_for(question.claim.place) in ("json", "yaml"):
        return True
    return question.claim.kind in _NAMES and not question.claim.place and is_backup(verdict.place.partition(":")[0])


def _nearness(question: Question, path: str) -> int:
    return nearest(question.subject, question.folder, [path], question.claim.name)[0][0]


def _is_any_file_of_the_name(question: Question) -> bool:
    """Whether the text tells of all files with a name ("the `AGENTS.md` files"), or of the name itself."""
    claim = question.claim
    name = reduce_words(claim.name)
    if claim.name in WORKSPACE_FILES:
        line = question.subject.line
        if _OF_EACH_AGENT.search(line) or f"-s{name}" in line:  # "each agent has a SOUL.md", "Kim's SOUL.md"
            return True
    is_bare = claim.kind == "path" and "/" not in claim.name
    return is_bare and any(f"{name}{word}-" in question.subject.line for word in _SEVERAL_OR_NAME)


def _is_found_by_name(question: Question) -> bool:
    """Whether a name could be that of something else: no path, or a path that many projects have."""
    claim = question.claim
    if claim.kind in ("commit", "unit", "id", "url", "container"):
        return False
    return claim.kind not in (*_PATHS, "line") or _is_common((claim.place or claim.name).rpartition("/")[2])


def _is_exact(question: Question, verdict: Verdict) -> bool:
    """Whether the text names the thing in full: its path from the workspace, a file of every workspace, a commit."""
    claim = question.claim
    if claim.kind not in (*_PATHS, "line"):
        return claim.kind in ("commit", "unit", "id", "url")
    name = claim.place or claim.name
    if name.startswith(("/", "~")) or name in WORKSPACE_FILES:
        return True
    place = verdict.place.partition(":")[0]
    is_full = place == name.strip("/") or place == os.path.normpath(os.path.join(question.folder, name))
    return is_full and (claim.why == "a link" or ("/" in name.strip("/") and name.partition("/")[0] not in TOP_FOLDERS))


def _strange_sections(
    world: World, questions: Sequence[Question], found: Mapping[int, Verdict | None]
) -> set[tuple[str, str]]:
    """The sections whose files are hardly any of this workspace: what is there, is there by its common name."""
    known: Counter[tuple[str, str]] = Counter()
    unknown: Counter[tuple[str, str]] = Counter()
    for question in questions:
        claim = question.claim
        if claim.kind not in (*_PATHS, "line") or (name := claim.place or claim.name).startswith(("/", "~")):
            continue
        section = (question.memory, question.subject.heading)
        verdict = found.get(id(question))
        if verdict is None or verdict.reason in ("never-seen", "several"):
            last = name.rpartition("/")[2]
            unknown[section] += is_file(last) and name not in OF_ANY_PROJECT and not world.now.by_name.get(last)
        elif not (verdict.verdict == CONFIRMED and _is_common(name)):
            known[section] += 1
    return {
        section
        for section, count in unknown.items()
        if count >= _MIN_STRANGERS and count >= _STRANGERS_FOR_EACH * known[section]
    }


def _is_common(name: str) -> bool:
    return name in OF_ANY_PROJECT or (
        "/" not in name.strip("/") and is_one_word(name.partition(".")[0].replace("-", "_"))
    )
