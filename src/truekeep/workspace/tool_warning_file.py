"""Prepares the small file that the hook before each edit and command reads: see `sessions/tool_warnings`.

It is derived: the lessons are read again with every index and every new row, the refuted memories with every check.
Credentials are masked and invisible characters escaped here, because the hook has no time for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from truekeep.core.file_io import TEMPORARY, read_head, write_whole
from truekeep.core.state_dir import STATE
from truekeep.memory.lessons import CORRECTION, KINDS, Lesson, applies_to_all, read_lessons
from truekeep.sessions.packing import unmarked, visible
from truekeep.sessions.tool_patterns import ToolPatterns, find_patterns, is_path
from truekeep.sessions.tool_warnings import FILE, FORMAT, MAX_FILE_BYTES
from truekeep.workspace.briefing import LANGUAGES, read_shown

if TYPE_CHECKING:
    from truekeep.verify.results import CheckedMemory, MemoryText
    from truekeep.verify.verdict import Verdict
    from truekeep.workspace.context import WorkspaceContext

MAX_LESSONS, MAX_REFUTED = 400, 400
MAX_LINE = 300
_LEFTOVER = re.compile(rf"{re.escape('.' + FILE)}\.(\d+){re.escape(TEMPORARY)}")
_ITEM = re.compile(r"^\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+(.+)$", re.MULTILINE)
_TERM = re.compile(r"[,;]|\s(?:and|or|&|\+)\s")
_RUNNERS = ("npm", "pnpm", "yarn", "bun", "make", "just", "task")


def refresh_lessons(context: WorkspaceContext) -> None:
    """Read corrections and gating policies again."""
    _store(context, {**_load(context), "lessons": list(_lessons(context))[:MAX_LESSONS]})


def refresh_refuted(
    context: WorkspaceContext, checked: Sequence[CheckedMemory], memories: Mapping[str, MemoryText]
) -> None:
    """Take the verdicts of a check. Those of memories that were not checked again stay, if the memory does."""
    stored = _load(context)
    known = stored["refuted"] or {}
    refuted: dict[str, list[dict[str, Any]]] = {path: items for path, items in known.items() if path in memories}
    for item in checked:
        found = list(_refuted(item, memories.get(item.path)))
        refuted.pop(item.path, None)
        if found and sum(map(len, refuted.values())) < MAX_REFUTED:
            refuted[item.path] = found
    _store(context, {**stored, "lessons": list(_lessons(context))[:MAX_LESSONS], "refuted": refuted})


def has_verdicts(context: WorkspaceContext) -> bool:
    """Whether the file has the verdicts of an earlier check."""
    return _load(context)["refuted"] is not None


# --- Lessons ---------------------------------------------------------------------------------------------------------


def _lessons(context: WorkspaceContext) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        text = read_shown(context, kind.path)
        if not text:
            continue
        found = read_lessons(kind, text)
        for lesson in found.lessons:
            named = find_patterns(_cause(lesson))
            if named:
                where = list(_places(lesson.applies)) if not applies_to_all(lesson.applies) else []
                yield _warning(f"{kind.path}#{crc32(lesson.key.encode()):08x}", lesson.shown, named, where)
        if kind is CORRECTION:
            rest = "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in found.lines)
            for item in _ITEM.findall(rest):
                if named := find_patterns(item):
                    yield _warning(f"{kind.path}#{crc32(item.encode()):08x}", item, named, [])


def _cause(lesson: Lesson) -> str:
    """The cells that say what to look out for; what to do instead is no reason for a warning."""
    return " ".join(filter(None, (lesson.trigger, lesson.wrong))) or lesson.action


def _places(applies: str) -> Iterator[str]:
    """What a row applies to: repositories by name, or files that a repository must have."""
    for term in _TERM.split(applies):
        name = term.strip("`'\"*_. ").casefold()
        languages = [file for file, words in LANGUAGES.items() if name in words and not file.startswith(".")]
        yield from (f"file:{file}" for file in languages)
        if is_path(term.strip("`'\"* ")):
            yield f"file:{term.strip('`* ')}"
        elif name and not languages:
            yield f"repository:{name.removesuffix('.git')}"


# --- Refuted memories ------------------------------------------------------------------------------------------------


def _refuted(item: CheckedMemory, memory: MemoryText | None) -> Iterator[dict[str, Any]]:
    if memory is None:
        return
    for verdict in item.verdicts:
        named = _named_by(verdict) if verdict.is_rot else None
        repository = memory.origin_of(verdict.claim.line).repository or item.repository
        if named and repository:
            line = f"{item.path}:{verdict.claim.line} says `{verdict.claim.text}`: {_fate(verdict)}"
            key = f"{item.path}#{crc32(verdict.claim.text.encode()):08x}"
            yield _warning(key, line, named, [f"repository:{repository.casefold()}"])


def _fate(verdict: Verdict) -> str:
    when = f" ({verdict.commit[:10]}, {verdict.day})" if verdict.commit else ""
    if verdict.verdict == "moved" and verdict.place:
        return f"it is now {verdict.place}{when}"
    return f"it is {verdict.verdict}{when}"


def _named_by(verdict: Verdict) -> ToolPatterns | None:
    """The file, flag or command that a refuted claim is about."""
    claim = verdict.claim
    path = claim.place or claim.name if claim.kind == "line" else claim.name
    if claim.kind in ("path", "line", "bundle") and not path.startswith(("/", "~")):
        return ToolPatterns((f"./{path.removeprefix('./')}",), ())
    if claim.kind == "directory" and not path.startswith(("/", "~")):
        return ToolPatterns((f"./{path.removeprefix('./').rstrip('/')}/",), ())
    if claim.kind == "flag":
        name = claim.name if claim.name.startswith("-") else claim.text
        return ToolPatterns((), ((claim.owner.rpartition("/")[2], (), (name,)),))
    if claim.kind == "script":
        runners = [claim.owner] if claim.owner in _RUNNERS else _RUNNERS
        runs = [(runner, ("run", claim.name), ()) for runner in runners] + [
            (runner, (claim.name,), ()) for runner in runners
        ]
        return ToolPatterns((), tuple(runs))
    return None


# --- The file --------------------------------------------------------------------------------------------------------


def _warning(key: str, line: str, named: ToolPatterns, where: list[str]) -> dict[str, Any]:
    flat = " ".join(visible(unmarked(line)).split())
    shown = flat if len(flat) <= MAX_LINE else flat[:MAX_LINE].rstrip() + " […]"
    return {"key": key, "line": shown, "files": named.files, "commands": named.commands, "where": where}


def _path(context: WorkspaceContext) -> str:
    return os.path.join(context.path, STATE, FILE)


def _load(context: WorkspaceContext) -> dict[str, Any]:
    empty: dict[str, Any] = {"format": FORMAT, "lessons": [], "refuted": None}
    with suppress(ValueError):
        stored = json.loads(read_head(_path(context), MAX_FILE_BYTES) or b"{}")
        if isinstance(stored, dict) and stored.get("format") == FORMAT:
            return {**empty, **stored}
    return empty


def _store(context: WorkspaceContext, warnings: dict[str, Any]) -> None:
    """Write the file. A disk error only loses warnings."""
    data = _encode(warnings)
    if len(data) > MAX_FILE_BYTES:
        data = _encode({**warnings, "refuted": {}})
    with suppress(OSError):
        if data == read_head(_path(context), MAX_FILE_BYTES + 1):
            os.utime(_path(context))  # it is up to date
        else:
            write_whole(_path(context), data)
        _remove_leftovers(os.path.dirname(_path(context)))


def _remove_leftovers(folder: str) -> None:
    """Remove what killed runs left of this file: no lock or ledger is held while it is written."""
    for name in os.listdir(folder):
        match = _LEFTOVER.fullmatch(name)
        if match is not None and not _is_alive(int(match[1])):
            os.unlink(os.path.join(folder, name))


def _encode(warnings: dict[str, Any]) -> bytes:
    return json.dumps(warnings, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
