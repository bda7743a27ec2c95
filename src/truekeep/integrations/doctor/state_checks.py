"""The state folder: who may write, the configuration, the ledger, what is derived, what a killed run left."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from truekeep.core import file_io
from truekeep.core.dates import many
from truekeep.core.default_workspace import find_damaged, find_workspace, read_remembered, remember
from truekeep.core.derived_db import Schema, read_meta
from truekeep.core.errors import BadSetup, Busy, as_argument
from truekeep.core.machine import has_routes
from truekeep.core.sqlite import SIDECAR_SUFFIXES, remove_database
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.handoffs.inbox import find_inboxes
from truekeep.handoffs.sync.routes import read_routes
from truekeep.integrations.doctor import sqlite_checks
from truekeep.integrations.doctor.base import Case, Found, Trouble
from truekeep.integrations.doctor.sqlite_checks import look_into, opened, save_tables
from truekeep.maintenance.survey import survey_schema
from truekeep.memory import ledger, similarity
from truekeep.memory.file_scan import find_changes, iter_files
from truekeep.memory.staging import MemoryFiles
from truekeep.search import index_schema
from truekeep.search.decay_record import RECORD, read_decay_record
from truekeep.search.embedder_choice import CHUNKING
from truekeep.search.embedders.choice import choose
from truekeep.text.unicode import printable
from truekeep.transcripts.service import FILE, FOLDER
from truekeep.verify import cache
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace import producer

CONFIG = "config.toml"
KEPT = "leftovers"  # in the state folder: what lay beside memory files and is nowhere else
_LEDGER_TABLES = ("handoff", "batch", "entry", "change", "splice")
_TABLE = re.compile(r"\s*\[\s*([\w.\"' -]+?)\s*\]\s*(?:#.*)?$")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_OF_KEY = re.compile(r"(?:unknown key )?([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?)")
_STAMPED = re.compile(r"ledger\.sqlite\.damaged-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_SHOWN = 5


# --- Who may write --------------------------------------------------------------------------------------------------


def check_workspace(case: Case) -> Found:
    """Whether there is a workspace at all, and one that this truekeep knows."""
    yield from _check_note()
    if case.path is None:
        yield from _check_none()
    elif not os.path.isdir(case.root):
        yield Trouble(
            "there is no such folder",
            case.root,
            f"`truekeep init {as_argument(case.root)}` on the canonical host makes it",
        )
    elif os.path.islink(case.state):
        yield Trouble("is a symlink", case.state, "truekeep keeps its state in a real folder: put one there")
    elif not os.path.isdir(case.state):
        yield Trouble(
            "is no truekeep workspace", case.root, f"`truekeep init {as_argument(case.root)}` on the canonical host"
        )
    elif case.newer is not None:
        yield Trouble(f"is left alone: {case.newer.message}", case.root, case.newer.hint)
    else:
        yield case.root


def _check_note() -> Found:
    """Whether what `truekeep init` noted can be read."""
    damaged, path = find_damaged(), read_remembered()
    if damaged and path:
        yield Trouble("does not name a folder", damaged, mend=lambda: _note(path), cure=f"note {path} there again")
    elif damaged:
        yield Trouble("does not name a folder", damaged, "`truekeep init PATH` notes the workspace to use")


def _note(path: str) -> str:
    remember(path)
    return f"noted {path}"


def _check_none() -> Found:
    """Whether it is right that no memory is kept on this machine."""
    usual = "" if find_damaged() else find_workspace()
    if has_routes():
        yield "none on this machine: its handoffs are sent to the canonical host"
    elif usual and os.path.isdir(usual):
        yield Trouble("is not adopted, so no memory is kept", usual, f"`truekeep init {as_argument(usual)}` adopts it")
    else:
        yield "none on this machine; `truekeep init PATH` names one, or begins it"


def check_host(case: Case) -> Found:
    """Whether the files say which machine may write."""
    host_status = case.host_status
    for file, why in host_status.unreadable:
        yield Trouble(
            f"{why}: nobody can tell which machine may write",
            f"{STATE}/{file}",
            "put it right, or delete it once you know of which machine it was; `truekeep host show` has the others",
        )
    if not host_status.leases and not host_status.unreadable:
        hint = f"`truekeep init {as_argument(case.root)}` writes it, on the machine that is to be the canonical host"
        yield Trouble("is missing: no file says which machine may write", f"{STATE}/host", hint)
    elif len(host_status.rivals) > 1:
        hint = "`truekeep host take` on the one that stays; `truekeep host show` tells the story"
        yield Trouble(f"{host_status.holders()} each hold themselves for the canonical host", f"{STATE}/hosts", hint)
    elif not host_status.rivals and host_status.leases:
        yield Trouble(
            f"nobody is the canonical host since {host_status.holders()} released it",
            f"{STATE}/hosts",
            "`truekeep host take` on the machine that is to be it",
        )
    found = host_status.canonical
    if found is not None:
        yield f"{found.name} is the canonical host" + ("" if case.is_host else "; this is a copy")
    if host_status.copies:
        yield f"a sync tool left {', '.join(host_status.copies[:_SHOWN])}"


# --- The configuration ----------------------------------------------------------------------------------------------


def check_config(case: Case) -> Found:
    """Every problem in the files that a person writes, with its line. They are never rewritten."""
    path = os.path.join(case.state, CONFIG)
    hint = "correct that line in an editor; truekeep never rewrites it"
    try:
        StateFolder(Path(case.root)).config()
    except BadSetup as error:
        text = _read_text(path)
        for problem in error.details.get("problems") or [error.message.removeprefix(f"{path}: ")]:
            line = line_of_problem(text, problem)
            yield Trouble(problem, f"{STATE}/{CONFIG}" + (f":{line}" if line else ""), hint)
    try:
        read_routes(Path(case.state))
    except BadSetup as error:
        yield Trouble(error.message, f"{STATE}/sync.toml", error.hint)
    try:
        read_decay_record(case.state)
    except BadSetup as error:
        yield Trouble(error.message.removeprefix(f"{RECORD}: "), RECORD, error.hint)


def line_of_problem(text: str, problem: str) -> int:
    """The line that a problem in a TOML text is about; 0 where it cannot be told."""
    told = _AT_LINE.search(problem)
    if told is not None:
        return int(told[1])
    if problem.endswith("(at end of document)"):
        return len(text.splitlines())
    named = _OF_KEY.match(problem)
    return line_of_key(text, named[1]) if named is not None else 0


def line_of_key(text: str, dotted: str) -> int:
    """The line on which a key, or table, of a TOML text stands; 0 where it is not found."""
    table, _, key = dotted.rpartition(".")
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _TABLE.match(line)
        if header is not None:
            inside = header[1].strip("\"' ")
            if not table and inside == key:
                return number
        elif inside == table and line.partition("=")[0].strip(" \t\"'") == key and "=" in line:
            return number
    return 0


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1_000_000)
    except OSError:
        return ""


# --- The ledger -----------------------------------------------------------------------------------------------------


def check_ledger(case: Case) -> Found:
    """Whether history can be read, and whether a killed run left something to finish."""
    path = os.path.join(case.state, "ledger.sqlite")
    where = case.shown(path)
    found = look_into(path, version=ledger.VERSION, tables=_LEDGER_TABLES)
    if found.state == sqlite_checks.NEWER:
        yield Trouble(found.why, where, "upgrade truekeep on this machine")
    elif found.state == sqlite_checks.ODD:
        yield Trouble(found.why, where, "put the real file back in its place")
    elif found.state == sqlite_checks.BUSY:
        yield "is being written right now"
    elif found.state in (sqlite_checks.MISSING, sqlite_checks.EMPTY):
        if case.is_host and _is_ledger(f"{path}.new"):
            what = f"{found.why}: it was just being written anew"
            yield Trouble(what, where, mend=lambda: _put_ledger(case, path), cure="put the new one in its place")
        elif case.is_host:
            yield Trouble(found.why, where, mend=lambda: _begin_ledger(case), cure="begin a new one")
        else:
            yield "none here; the canonical host has it"
    elif found.state == sqlite_checks.OLDER:
        yield f"{found.why}; whoever opens it next brings it to format {ledger.VERSION}, with all of its history"
    elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN):
        hint = "" if case.is_host else "on the canonical host, `truekeep doctor --fix`"
        mend = (lambda: _mend_ledger(case, path)) if case.is_host else None
        yield Trouble(found.why, where, hint, mend, "save what can be read, keep the damaged file as evidence")
    else:
        with opened(path) as db:
            pending = db.execute("SELECT count(*) FROM batch WHERE state != 'done'").get
        if pending and case.is_host:
            what = f"{pending} batch(es) of a killed run are not finished"
            yield Trouble(what, where, mend=lambda: _begin_ledger(case), cure="finish them")
        elif pending:
            yield "a batch is under way on the canonical host"
    yield from _set_aside(case, path if found.state == sqlite_checks.SOUND else "")


def _set_aside(case: Case, path: str) -> Iterator[str]:
    """Damaged ledgers of earlier, and whether history is only in them: the new one then begins later."""
    kept = sorted(name for name in os.listdir(case.state) if name.startswith("ledger.sqlite.damaged-"))
    kept = [name for name in kept if not name.endswith(SIDECAR_SUFFIXES)]
    if not kept:
        return
    first = ""
    if path:
        with opened(path) as db:
            first = str(db.execute("SELECT min(at) FROM entry").get or "")
    for name in kept[:_SHOWN]:
        match = _STAMPED.match(name)
        at = "{}-{}-{}T{}:{}:{}Z".format(*match.groups()) if match else ""
        if at and first and first < at:
            yield f"{name}: evidence of earlier damage; delete it when you need it no more"
        else:
            yield f"history before {at[:16].replace('T', ' ') or 'that'} is only in {name}"


def _begin_ledger(case: Case) -> str:
    """Open the ledger for writing: a missing one begins, and what a killed run left is finished."""
    with case.open() as workspace:
        with workspace.writing("mend the ledger"):
            pass
        return "; ".join(workspace.notices) or "a new one begins, with the handoffs that the files tell of"


def _mend_ledger(case: Case, path: str) -> str:
    """Write what can be read into a new ledger; killed in between, the next run finds that and goes on with it."""
    with case.open() as workspace, workspace.locked():
        workspace.state.check_host(workspace.machine, "mend the ledger")
        is_saved = save_tables(path, f"{path}.new") and _is_ledger(f"{path}.new")
        if not is_saved:
            remove_database(f"{path}.new")
        kept = os.path.basename(ledger.set_aside(path, stamp=case.stamp()))
    if is_saved:
        return f"{_put_ledger(case, path)}; the damaged one is kept as {kept}"
    return f"the damaged one is kept as {kept}: {_begin_ledger(case)}"


def _put_ledger(case: Case, path: str) -> str:
    with case.open() as workspace, workspace.locked():
        workspace.state.check_host(workspace.machine, "mend the ledger")
        if os.path.lexists(path) and os.path.getsize(path):
            raise Busy("another truekeep was faster", hint="run it again")
        remove_database(path)
        os.rename(f"{path}.new", path)
        _sync_folder(case.state)
    return "written anew with all of its history"


def _is_ledger(path: str) -> bool:
    return look_into(path, version=ledger.VERSION, tables=_LEDGER_TABLES).state in (
        sqlite_checks.SOUND,
        sqlite_checks.OLDER,
    )


def _sync_folder(path: str) -> None:
    folder = file_io.open_root(path)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# --- What is derived ------------------------------------------------------------------------------------------------


class DerivedCheck(NamedTuple):
    """A derived database, and how to make it again."""

    schema: Schema
    rebuild: Callable[[Case], str]

    @property
    def file(self) -> str:
        return self.schema.format.file

    @property
    def version(self) -> int:
        return self.schema.format.number

    @property
    def tables(self) -> Sequence[str]:
        return self.schema.required


def _catalog(case: Case) -> str:
    vault = MemoryFiles(case.root)
    catalog = similarity.Catalog(os.path.join(case.state, "catalog.sqlite"), vault)
    try:
        catalog.find_clash("")  # the first question brings it up to date
    finally:
        catalog.close()
        vault.close()
    return "made anew from the cards"


def _survey(case: Case) -> str:
    with case.open() as workspace:
        workspace.maintenance.survey()
        total = workspace.maintenance.last_refresh.total if workspace.maintenance.last_refresh is not None else 0
    return f"made anew from {total} files"


def _facts(case: Case) -> str:
    cache.FactsCache(os.path.join(case.state, "facts.sqlite")).close()
    return "begun anew; the next `truekeep verify` fills it"


def _index(case: Case) -> str:
    with case.open() as workspace:
        done = workspace.search.index()
    return f"made anew from {done.files} files"


DERIVED = {
    "catalog": DerivedCheck(similarity.SCHEMA, _catalog),
    "survey": DerivedCheck(survey_schema.SCHEMA, _survey),
    "facts": DerivedCheck(cache.SCHEMA, _facts),
    "index": DerivedCheck(index_schema.SCHEMA, _index),
}


def check_derived(name: str) -> Callable[[Case], Found]:
    """The check of one derived database."""

    def check(case: Case) -> Found:
        known = DERIVED[name]
        path = os.path.join(case.state, known.file)
        found = look_into(path, version=known.version, tables=known.tables)
        where = case.shown(path)
        cure = "remove it and make it anew: it is derived"
        if found.state == sqlite_checks.NEWER:
            yield Trouble(found.why, where, "upgrade truekeep, or delete it: it is derived")
        elif found.state == sqlite_checks.ODD and os.path.isdir(path):
            yield Trouble("is a folder", where, "move it away")
        elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN, sqlite_checks.OLDER, sqlite_checks.ODD):
            yield Trouble(found.why, where, mend=lambda: _remake(case, known), cure=cure)
        elif found.state in (sqlite_checks.MISSING, sqlite_checks.EMPTY):
            yield "none yet; it is made when it is needed"
        elif found.state == sqlite_checks.BUSY:
            yield "is being written right now"
        if aside := sorted(entry for entry in os.listdir(case.state) if entry.startswith(f"{known.file}.damaged-")):
            what = f"{many(len(aside), 'damaged file')} of earlier, of no use: it is derived"
            cure = "remove them"
            yield Trouble(what, f"{STATE}/{aside[0]}", mend=lambda: _drop(case.state, aside), cure=cure)

    return check


def _remake(case: Case, known: DerivedCheck) -> str:
    remove_database(os.path.join(case.state, known.file))
    return f"removed, and {known.rebuild(case)}"


def _drop(folder: str, names: Sequence[str]) -> str:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    return f"removed {many(len(names), 'file')}"


def _unnamed(root: str) -> Iterator[str]:
    """Memory files that nobody can name: every other part of truekeep leaves them out."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (STATE, ".git"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), root)
            if name.endswith(".md") and any("\udc80" <= character <= "\udcff" for character in path):
                yield printable(path)


def check_search(case: Case) -> Found:
    """Whether the search index fits the settings and the files. A damaged one is another check's."""
    for name in _unnamed(case.root):
        what = "its name is not UTF-8 text, so it is neither searched, verified nor carried along"
        yield Trouble(what, name, "give the file another name")
    known = DERIVED["index"]
    path = os.path.join(case.state, known.file)
    where = case.shown(path)
    state = look_into(path, version=known.version, tables=known.tables).state
    cure = "bring it up to date"

    def bring() -> str:
        with case.open() as workspace:
            done = workspace.search.index()
        return f"brought up to date: {done.files} files, {done.chunks} pieces" + (
            f" ({done.rebuilt})" * bool(done.rebuilt)
        )

    if state in (sqlite_checks.MISSING, sqlite_checks.EMPTY):
        yield "there is no search index yet; it is made when it is needed"
        return
    if state != sqlite_checks.SOUND:
        return
    try:
        with opened(path) as db:
            noted = str(read_meta(db, "fingerprint", ""))
            embedder = str(read_meta(db, "embedder", ""))
            unembedded = db.execute("SELECT count(*) FROM unembedded").get
            changes = find_changes(db, iter_files(case.root, case.config.recall.extra_paths))
    except (apsw.Error, UnicodeDecodeError):
        return
    behind = len(changes.changed) + len(changes.gone)
    wanted = choose(case.config.recall, os.environ)
    if noted and noted.partition("\n")[0] != CHUNKING:
        yield Trouble("was made by another version of truekeep", where, mend=bring, cure="build it anew")
    elif embedder and embedder.partition("\t")[0] != wanted:
        was = embedder.partition("\t")[0]
        yield Trouble(f"has vectors of {was}, and the settings say {wanted}", where, mend=bring, cure="build it anew")
    elif behind > max(50, 0.2 * changes.total):
        yield Trouble(f"{behind} of {changes.total} files changed since", where, mend=bring, cure=cure)
    elif unembedded and wanted != "none":
        yield Trouble(f"{unembedded} pieces have no vector", where, mend=bring, cure=cure)


def check_transcripts(case: Case) -> Found:
    """The archive of sessions: the only copy of what the harnesses have deleted."""
    from truekeep.transcripts import store

    for base in dict.fromkeys((case.state if case.has_state else case.own, case.own)):
        path = os.path.join(base, FOLDER, FILE)
        found = look_into(path, version=store.VERSION, tables=("session", "block", "source"))
        where = case.shown(path)
        if found.state == sqlite_checks.NEWER:
            yield Trouble(found.why, where, "upgrade truekeep on this machine")
        elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN):
            hint = "`truekeep transcripts sync` saves what can be read of it"
            is_current = (base == case.state) == case.is_host if case.has_state else True
            mend = (lambda: _mend_transcripts(case)) if is_current else None
            yield Trouble(found.why, where, hint, mend, "save what can be read, keep the damaged file as evidence")
        with suppress(OSError):
            kept = [name for name in os.listdir(os.path.dirname(path)) if name.startswith(f"{FILE}.damaged-")]
            if kept := sorted(name for name in kept if not name.endswith(SIDECAR_SUFFIXES)):
                yield f"{', '.join(kept[:_SHOWN])}: evidence of earlier damage; delete it when you need it no more"


def _mend_transcripts(case: Case) -> str:
    if case.has_state:
        with case.open() as workspace:
            done = workspace.sessions.sync_transcripts()
    else:
        done = producer.sync_transcripts(force=False)
    return "; ".join(done.notes) or "synced"


# --- What a killed run left -----------------------------------------------------------------------------------------


def check_leftovers(case: Case) -> Found:
    """Temporary files of killed writes: beside memory files, in the state folders, in inboxes."""
    if case.has_state and not case.newer:
        if os.path.lexists(os.path.join(case.state, "importing")) and case.is_host:
            yield Trouble(
                "a stopped import left files beside their places",
                f"{STATE}/importing",
                mend=lambda: _begin_ledger(case),
                cure="clear them",
            )
        beside = list(_temporaries(case.root, deep=("memory", "rules", ".learnings")))
        if beside and case.is_host:
            what = f"{many(len(beside), 'temporary file')} of killed writes beside memory files"
            cure = f"remove them; what is nowhere else is kept in {STATE}/{KEPT}"
            yield Trouble(what, case.shown(beside[0]), mend=lambda: _clear_beside(case, beside), cure=cure)
    old = [path for path in _own_leftovers(case) if case.is_old(path)]
    if old:
        what = f"{many(len(old), 'temporary file')} of killed runs"
        yield Trouble(what, case.shown(old[0]), mend=lambda: _drop("/", old), cure="remove them")
    letters = [path for path in _in_inboxes(case) if case.is_old(path)]
    if letters:
        what = f"{many(len(letters), 'handoff')} that a killed command was about to leave"
        cure = f"put them into {STATE}/{KEPT}"
        yield Trouble(what, letters[0], mend=lambda: _clear_letters(case, letters), cure=cure)


def _temporaries(folder: str, *, deep: Sequence[str] | None = None) -> Iterator[str]:
    """The temporary files in a folder and below: everywhere, or in the named folders only. Links are not followed."""
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in listed:
        if entry.name.endswith(file_io.TEMPORARY) and entry.is_file(follow_symlinks=False):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False) and (deep is None or entry.name in deep):
            yield from _temporaries(entry.path)


def _own_leftovers(case: Case) -> Iterator[str]:
    """What lies in the state folders: of writes, of an index that was being rebuilt, of git, of records of sessions."""
    for base in dict.fromkeys((case.state, case.own) if case.has_state else (case.own,)):
        yield from _temporaries(base)
        yield from (path for path in _listed(base) if re.search(r"/lexicon\.bin\.\d+\Z", path))
        yield from (path for path in _listed(base) if re.search(r"/index\.sqlite\.new(?:-\w+)?\Z", path))
        yield from (str(path) for path in sorted(Path(base, "git").glob("*/*.git/objects/*/tmp_*")))
    yield from (path for path in _listed(os.path.join(case.own, "sessions")) if re.search(r"\.json\.\d+\Z", path))


def _in_inboxes(case: Case) -> Iterator[str]:
    if not case.has_state or case.newer:
        return
    roots = [*expand_repositories(case.config.repositories), Path(case.root)]
    for inbox in find_inboxes(roots, case.config.writers):
        for path in _listed(str(inbox.path)):
            if path.endswith(file_io.TEMPORARY) and os.path.isfile(path) and not os.path.islink(path):
                yield path


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


def _clear_beside(case: Case, paths: Sequence[str]) -> str:
    """Remove what lies beside memory files, under the lock. A version that nobody else has is kept."""
    kept = []
    with case.open() as workspace, workspace.writing("clear what a killed run left") as books:
        for path in paths:
            data = _read(path)
            if data is None:
                continue
            folder, name = os.path.split(case.shown(path))
            written = name.removeprefix(".").removesuffix(file_io.TEMPORARY)
            if not _is_elsewhere(books.ledger, os.path.join(case.root, folder), folder, written, data):
                kept.append(_keep(case, name, data))
            with suppress(FileNotFoundError):
                os.unlink(path)
    return f"removed {len(paths)}" + (f"; kept {', '.join(kept)}" if kept else "")


def _is_elsewhere(known: ledger.Ledger, place: str, folder: str, name: str, data: bytes) -> bool:
    """Whether these bytes are in the file itself, or were before or after a change of it."""
    if not data or _read(os.path.join(place, name)) == data:
        return True
    path = f"{folder}/{name}" if folder else name
    digest = hashlib.sha256(data).digest()
    return any(digest in (version.before, version.after) for version in known.versions(path))


def _clear_letters(case: Case, paths: Sequence[str]) -> str:
    kept = []
    for path in paths:
        data = _read(path)
        if data:
            kept.append(_keep(case, os.path.basename(path), data))
        with suppress(FileNotFoundError):
            os.unlink(path)
    return f"kept {', '.join(kept)}" if kept else f"removed {len(paths)}"


def _keep(case: Case, name: str, data: bytes) -> str:
    """Put bytes by, under a name that nothing has yet."""
    plain = name.removeprefix(".").removesuffix(file_io.TEMPORARY) or "file"
    chosen = f"{plain[:120]}.{hashlib.sha256(data).hexdigest()[:12]}"
    file_io.write_whole(os.path.join(case.state, KEPT, chosen), data)
    return f"{STATE}/{KEPT}/{chosen}"


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read()
    except OSError:
        return None
