"""Checks of the state folder: hosts, configuration, ledger, derived databases, leftovers of killed runs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from truekeep.core import file_io
from truekeep.core.dates import many
from truekeep.core.default_workspace import find_damaged, find_workspace, read_remembered, remember
from truekeep.core.derived_db import Schema
from truekeep.core.errors import BadSetup, Busy, as_argument
from truekeep.core.machine import has_routes
from truekeep.core.sqlite import SIDECAR_SUFFIXES, remove_database
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.handoffs.inbox import find_inboxes
from truekeep.handoffs.sync.routes import read_routes
from truekeep.integrations.doctor import sqlite_checks
from truekeep.integrations.doctor.sqlite_checks import look_into, opened, save_tables
from truekeep.maintenance.survey import survey_schema
from truekeep.memory import ledger, similarity
from truekeep.search import index_schema
from truekeep.search.decay_record import RECORD, read_decay_record
from truekeep.text.unicode import printable
from truekeep.transcripts.service import FILE, FOLDER
from truekeep.verify import cache
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace import producer
from truekeep.workspace.check import CheckContext, Found, problem

CONFIG = "config.toml"
KEPT = "leftovers"  # folder for content of temporary files that exists nowhere else
_LEDGER_TABLES = ("handoff", "batch", "entry", "change", "splice")
_TABLE = re.compile(r"\s*\[\s*([\w.\"' -]+?)\s*\]\s*(?:#.*)?$")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_OF_KEY = re.compile(r"(?:unknown key )?([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?)")
_STAMPED = re.compile(r"ledger\.sqlite\.damaged-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_MAX_SHOWN = 5


# --- Workspace and host ---------------------------------------------------------------------------------------------


def check_workspace(context: CheckContext) -> Found:
    """Check that there is a workspace, in a format that this truekeep knows."""
    yield from _check_note()
    if context.path is None:
        yield from _check_none()
    elif not os.path.isdir(context.root):
        yield problem(
            "there is no such folder",
            context.root,
            f"run `truekeep init {as_argument(context.root)}` on the canonical host",
        )
    elif os.path.islink(context.state):
        yield problem("is a symlink", context.state, "replace it with a folder")
    elif not os.path.isdir(context.state):
        yield problem(
            "is not a truekeep workspace",
            context.root,
            f"run `truekeep init {as_argument(context.root)}` on the canonical host",
        )
    elif context.newer is not None:
        yield problem(f"is left alone: {context.newer.message}", context.root, context.newer.hint)
    else:
        yield context.root


def _check_note() -> Found:
    """Check the workspace path that `truekeep init` saved."""
    damaged, path = find_damaged(), read_remembered()
    if damaged and path:
        yield problem("does not name a folder", damaged, fix=lambda: _note(path), fix_summary=f"save {path} again")
    elif damaged:
        yield problem("does not name a folder", damaged, "run `truekeep init PATH` to choose the workspace")


def _note(path: str) -> str:
    remember(path)
    return f"saved {path}"


def _check_none() -> Found:
    """Check that it is right to have no workspace on this machine."""
    usual = "" if find_damaged() else find_workspace()
    if has_routes():
        yield "none on this machine; handoffs are sent to the canonical host"
    elif usual and os.path.isdir(usual):
        yield problem("is not a truekeep workspace yet", usual, f"run `truekeep init {as_argument(usual)}`")
    else:
        yield "none on this machine; run `truekeep init PATH` to create one"


def check_host(context: CheckContext) -> Found:
    """Check that the lease files name one canonical host."""
    host_status = context.host_status
    for file, why in host_status.unreadable:
        yield problem(
            f"{why}: the canonical host is unclear",
            f"{STATE}/{file}",
            "correct it, or delete it once you know which machine it belongs to; see `truekeep host show`",
        )
    if not host_status.leases and not host_status.unreadable:
        hint = f"run `truekeep init {as_argument(context.root)}` on the canonical host"
        yield problem("is missing, so there is no canonical host", f"{STATE}/host", hint)
    elif len(host_status.rivals) > 1:
        hint = "run `truekeep host take` on the one to keep; `truekeep host show` lists them"
        yield problem(f"{host_status.holders()} each claim to be the canonical host", f"{STATE}/hosts", hint)
    elif not host_status.rivals and host_status.leases:
        yield problem(
            f"there is no canonical host since {host_status.holders()} released it",
            f"{STATE}/hosts",
            "run `truekeep host take` on the new canonical host",
        )
    found = host_status.canonical
    if found is not None:
        yield f"{found.name} is the canonical host" + ("" if context.is_host else "; this is a copy")
    if host_status.copies:
        yield f"conflict copies of a sync tool: {', '.join(host_status.copies[:_MAX_SHOWN])}"


# --- The configuration ----------------------------------------------------------------------------------------------


def check_config(context: CheckContext) -> Found:
    """Report every problem in configuration files, with its line. truekeep never rewrites them."""
    path = os.path.join(context.state, CONFIG)
    hint = "correct that line in an editor; truekeep never rewrites it"
    try:
        StateFolder(Path(context.root)).config()
    except BadSetup as error:
        text = _read_text(path)
        for said in error.details.get("problems") or [error.message.removeprefix(f"{path}: ")]:
            line = line_of_problem(text, said)
            yield problem(said, f"{STATE}/{CONFIG}" + (f":{line}" if line else ""), hint)
    try:
        read_routes(Path(context.state))
    except BadSetup as error:
        yield problem(error.message, f"{STATE}/sync.toml", error.hint)
    try:
        read_decay_record(context.state)
    except BadSetup as error:
        yield problem(error.message.removeprefix(f"{RECORD}: "), RECORD, error.hint)


def line_of_problem(text: str, said: str) -> int:
    """The line of a problem in a TOML text; 0 if unknown."""
    at_line = _AT_LINE.search(said)
    if at_line is not None:
        return int(at_line[1])
    if said.endswith("(at end of document)"):
        return len(text.splitlines())
    named = _OF_KEY.match(said)
    return line_of_key(text, named[1]) if named is not None else 0


def line_of_key(text: str, dotted: str) -> int:
    """The line of a key or table in a TOML text; 0 if not found."""
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


def check_ledger(context: CheckContext) -> Found:
    """Check that the ledger is readable and that no killed run left a batch unfinished."""
    path = os.path.join(context.state, "ledger.sqlite")
    where = context.shown(path)
    found = look_into(path, version=ledger.VERSION, tables=_LEDGER_TABLES)
    if found.state == sqlite_checks.NEWER:
        yield problem(found.why, where, "upgrade truekeep on this machine")
    elif found.state == sqlite_checks.ODD:
        yield problem(found.why, where, "put the real file back in its place")
    elif found.state == sqlite_checks.BUSY:
        yield "is being written right now"
    elif found.state in (sqlite_checks.MISSING, sqlite_checks.EMPTY):
        if context.is_host and _is_ledger(f"{path}.new"):
            what = f"{found.why}: a rebuild was interrupted"
            yield problem(what, where, fix=lambda: _put_ledger(context, path), fix_summary="use the rebuilt ledger")
        elif context.is_host:
            yield problem(found.why, where, fix=lambda: _begin_ledger(context), fix_summary="start a new one")
        else:
            yield "none here; it is on the canonical host"
    elif found.state == sqlite_checks.OLDER:
        yield f"{found.why}; the next command migrates it to format {ledger.VERSION}"
    elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN):
        hint = "" if context.is_host else "run `truekeep doctor --fix` on the canonical host"
        fix = (lambda: _repair_ledger(context, path)) if context.is_host else None
        yield problem(found.why, where, hint, fix, "save what can be read, keep the damaged file as evidence")
    else:
        with opened(path) as db:
            pending = db.execute("SELECT count(*) FROM batch WHERE state != 'done'").get
        if pending and context.is_host:
            what = f"{pending} batch(es) of a killed run are not finished"
            yield problem(what, where, fix=lambda: _begin_ledger(context), fix_summary="finish them")
        elif pending:
            yield "a batch is under way on the canonical host"
    yield from _set_aside(context, path if found.state == sqlite_checks.SOUND else "")


def _set_aside(context: CheckContext, path: str) -> Iterator[str]:
    """Report damaged ledgers that were set aside, and whether history is only in them."""
    kept = sorted(name for name in os.listdir(context.state) if name.startswith("ledger.sqlite.damaged-"))
    kept = [name for name in kept if not name.endswith(SIDECAR_SUFFIXES)]
    if not kept:
        return
    first = ""
    if path:
        with opened(path) as db:
            first = str(db.execute("SELECT min(at) FROM entry").get or "")
    for name in kept[:_MAX_SHOWN]:
        match = _STAMPED.match(name)
        at = "{}-{}-{}T{}:{}:{}Z".format(*match.groups()) if match else ""
        if at and first and first < at:
            yield f"{name}: from earlier damage; delete it when you no longer need it"
        else:
            yield f"history before {at[:16].replace('T', ' ') or 'that'} is only in {name}"


def _begin_ledger(context: CheckContext) -> str:
    """Open the ledger for writing: creates a missing one, and finishes batches of killed runs."""
    with context.open() as workspace:
        with workspace.writing("repair the ledger"):
            pass
        return "; ".join(workspace.notices) or "started a new one, with the handoffs found in files"


def _repair_ledger(context: CheckContext, path: str) -> str:
    """Copy readable tables into a new ledger. If killed in between, the next run continues."""
    with context.open() as workspace, workspace.locked():
        workspace.state.check_host(workspace.machine, "repair the ledger")
        is_saved = save_tables(path, f"{path}.new") and _is_ledger(f"{path}.new")
        if not is_saved:
            remove_database(f"{path}.new")
        kept = os.path.basename(ledger.set_aside(path, stamp=context.stamp()))
    if is_saved:
        return f"{_put_ledger(context, path)}; kept the damaged one as {kept}"
    return f"kept the damaged one as {kept}: {_begin_ledger(context)}"


def _put_ledger(context: CheckContext, path: str) -> str:
    with context.open() as workspace, workspace.locked():
        workspace.state.check_host(workspace.machine, "repair the ledger")
        if os.path.lexists(path) and os.path.getsize(path):
            raise Busy("another truekeep is repairing the ledger", hint="run it again")
        remove_database(path)
        os.rename(f"{path}.new", path)
        _sync_folder(context.state)
    return "rebuilt with all of its history"


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


# --- Derived databases ----------------------------------------------------------------------------------------------


DERIVED = (similarity.SCHEMA, survey_schema.SCHEMA, cache.SCHEMA, index_schema.SCHEMA)


def check_derived(schema: Schema) -> Callable[[CheckContext], Found]:
    """The check of one derived database."""

    def check(context: CheckContext) -> Found:
        file = schema.format.file
        path = os.path.join(context.state, file)
        found = look_into(path, version=schema.format.number, tables=schema.required)
        where = context.shown(path)
        if found.state == sqlite_checks.NEWER:
            yield problem(found.why, where, "upgrade truekeep, or delete it: it is derived")
        elif found.state == sqlite_checks.ODD and os.path.isdir(path):
            yield problem("is a folder", where, "move it elsewhere")
        elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN, sqlite_checks.OLDER, sqlite_checks.ODD):
            yield problem(
                found.why, where, fix=lambda: _remove(path), fix_summary="remove it: it is rebuilt when needed"
            )
        elif found.state in (sqlite_checks.MISSING, sqlite_checks.EMPTY):
            yield "none yet; it is created when needed"
        elif found.state == sqlite_checks.BUSY:
            yield "is being written right now"
        if aside := sorted(entry for entry in os.listdir(context.state) if entry.startswith(f"{file}.damaged-")):
            what = f"{many(len(aside), 'damaged file')} left from earlier, no longer needed"
            yield problem(
                what, f"{STATE}/{aside[0]}", fix=lambda: _drop(context.state, aside), fix_summary="remove them"
            )

    return check


def _remove(path: str) -> str:
    remove_database(path)
    return "removed; it is rebuilt when it is needed next"


def _drop(folder: str, names: Sequence[str]) -> str:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    return f"removed {many(len(names), 'file')}"


def _undecodable_names(root: str) -> Iterator[str]:
    """Memory files whose names are not UTF-8; the rest of truekeep ignores them."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (STATE, ".git"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), root)
            if name.endswith(".md") and any("\udc80" <= character <= "\udcff" for character in path):
                yield printable(path)


def check_names(context: CheckContext) -> Found:
    """Report memory files whose names cannot be read."""
    for name in _undecodable_names(context.root):
        what = "its name is not UTF-8 text, so it is neither searched, verified nor exported"
        yield problem(what, name, "rename the file")


def check_transcripts(context: CheckContext) -> Found:
    """Check the transcript store, the only copy of sessions that harnesses have deleted."""
    from truekeep.transcripts import store

    for base in dict.fromkeys((context.state if context.has_state else context.own, context.own)):
        path = os.path.join(base, FOLDER, FILE)
        found = look_into(path, version=store.VERSION, tables=("session", "block", "source"))
        where = context.shown(path)
        if found.state == sqlite_checks.NEWER:
            yield problem(found.why, where, "upgrade truekeep on this machine")
        elif found.state in (sqlite_checks.DAMAGED, sqlite_checks.FOREIGN):
            hint = "run `truekeep transcripts sync` to save what can be read"
            is_current = (base == context.state) == context.is_host if context.has_state else True
            fix = (lambda: _repair_transcripts(context)) if is_current else None
            yield problem(found.why, where, hint, fix, "save what can be read, keep the damaged file as evidence")
        with suppress(OSError):
            kept = [name for name in os.listdir(os.path.dirname(path)) if name.startswith(f"{FILE}.damaged-")]
            if kept := sorted(name for name in kept if not name.endswith(SIDECAR_SUFFIXES)):
                yield f"{', '.join(kept[:_MAX_SHOWN])}: from earlier damage; delete it when you no longer need it"


def _repair_transcripts(context: CheckContext) -> str:
    if context.has_state:
        with context.open() as workspace:
            done = workspace.sessions.sync_transcripts()
    else:
        done = producer.sync_transcripts(force=False)
    return "; ".join(done.notes) or "synced"


# --- Leftovers ------------------------------------------------------------------------------------------------------


def check_leftovers(context: CheckContext) -> Found:
    """Find temporary files of killed writes beside memory files, in state folders and in inboxes."""
    if context.has_state and not context.newer:
        if os.path.lexists(os.path.join(context.state, "importing")) and context.is_host:
            yield problem(
                "an interrupted import left temporary files",
                f"{STATE}/importing",
                fix=lambda: _begin_ledger(context),
                fix_summary="remove them",
            )
        beside = list(_temporaries(context.root, deep=("memory", "rules", ".learnings")))
        if beside and context.is_host:
            what = f"{many(len(beside), 'temporary file')} of killed writes beside memory files"
            fix_summary = f"remove them; unique content is saved in {STATE}/{KEPT}"
            yield problem(
                what, context.shown(beside[0]), fix=lambda: _clear_beside(context, beside), fix_summary=fix_summary
            )
    old = [path for path in _own_leftovers(context) if context.is_old(path)]
    if old:
        what = f"{many(len(old), 'temporary file')} of killed runs"
        yield problem(what, context.shown(old[0]), fix=lambda: _drop("/", old), fix_summary="remove them")
    unfinished = [path for path in _in_inboxes(context) if context.is_old(path)]
    if unfinished:
        what = f"{many(len(unfinished), 'handoff')} that a killed command did not finish writing"
        fix_summary = f"move them to {STATE}/{KEPT}"
        yield problem(
            what, unfinished[0], fix=lambda: _clear_unfinished_handoffs(context, unfinished), fix_summary=fix_summary
        )


def _temporaries(folder: str, *, deep: Sequence[str] | None = None) -> Iterator[str]:
    """Temporary files in a folder and below, or only in the `deep` subfolders. Symlinks are not followed."""
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


def _own_leftovers(context: CheckContext) -> Iterator[str]:
    """Leftovers in the state folders: of writes, index rebuilds, git and session records."""
    for base in dict.fromkeys((context.state, context.own) if context.has_state else (context.own,)):
        yield from _temporaries(base)
        yield from (path for path in _listed(base) if re.search(r"/lexicon\.bin\.\d+\Z", path))
        yield from (path for path in _listed(base) if re.search(r"/index\.sqlite\.new(?:-\w+)?\Z", path))
        yield from (str(path) for path in sorted(Path(base, "git").glob("*/*.git/objects/*/tmp_*")))
    yield from (path for path in _listed(os.path.join(context.own, "sessions")) if re.search(r"\.json\.\d+\Z", path))


def _in_inboxes(context: CheckContext) -> Iterator[str]:
    if not context.has_state or context.newer:
        return
    roots = [*expand_repositories(context.config.repositories), Path(context.root)]
    for inbox in find_inboxes(roots, context.config.writers):
        for path in _listed(str(inbox.path)):
            if path.endswith(file_io.TEMPORARY) and os.path.isfile(path) and not os.path.islink(path):
                yield path


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


def _clear_beside(context: CheckContext, paths: Sequence[str]) -> str:
    """Remove temporary files beside memory files, under the lock. Content that exists nowhere else is saved."""
    kept = []
    with context.open() as workspace, workspace.writing("clear what a killed run left") as books:
        for path in paths:
            data = _read(path)
            if data is None:
                continue
            folder, name = os.path.split(context.shown(path))
            written = name.removeprefix(".").removesuffix(file_io.TEMPORARY)
            if not _is_elsewhere(books.ledger, os.path.join(context.root, folder), folder, written, data):
                kept.append(_keep(context, name, data))
            with suppress(FileNotFoundError):
                os.unlink(path)
    return f"removed {len(paths)}" + (f"; saved {', '.join(kept)}" if kept else "")


def _is_elsewhere(known: ledger.Ledger, place: str, folder: str, name: str, data: bytes) -> bool:
    """True if the file or one of its versions in the ledger has these bytes."""
    if not data or _read(os.path.join(place, name)) == data:
        return True
    path = f"{folder}/{name}" if folder else name
    digest = hashlib.sha256(data).digest()
    return any(digest in (version.before, version.after) for version in known.versions(path))


def _clear_unfinished_handoffs(context: CheckContext, paths: Sequence[str]) -> str:
    kept = []
    for path in paths:
        data = _read(path)
        if data:
            kept.append(_keep(context, os.path.basename(path), data))
        with suppress(FileNotFoundError):
            os.unlink(path)
    return f"saved {', '.join(kept)}" if kept else f"removed {len(paths)}"


def _keep(context: CheckContext, name: str, data: bytes) -> str:
    """Save bytes under a name made from their digest."""
    plain = name.removeprefix(".").removesuffix(file_io.TEMPORARY) or "file"
    chosen = f"{plain[:120]}.{hashlib.sha256(data).hexdigest()[:12]}"
    file_io.write_whole(os.path.join(context.state, KEPT, chosen), data)
    return f"{STATE}/{KEPT}/{chosen}"


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read()
    except OSError:
        return None
