"""Checks of memory and of the installation: what a check is, what it finds, and how it runs.

`truekeep status` and the home page run the checks of `workspace/health.py`; `truekeep doctor` runs them all
(`integrations/doctor/registry.py`). A check that fails is reported as unknown; the others go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from truekeep.core.bugs import bugs_path, note_bug
from truekeep.core.config import Config
from truekeep.core.errors import BadSetup, NewerState, TruekeepError
from truekeep.core.file_io import ChangedSince
from truekeep.core.host_lease import HostStatus, read_host_status
from truekeep.core.machine import Machine, known_machine, own_state
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.memory.document_scan import OtherDocuments, count_other_documents
from truekeep.text.secrets.scanner import withhold
from truekeep.workspace.workspace import Workspace

OK, WARNING, PROBLEM, UNKNOWN, FIXED = "ok", "warning", "problem", "unknown", "fixed"
MAX_EXAMPLES = 5  # of each kind of thing, by name
MAX_DRAFTS, MAX_DRAFT_DAYS = 20, 14  # from here on, reviews do not seem to happen
STALE_SECONDS = 3600.0  # no process is still writing a small file after this long
_MAX_FIX_ROUNDS = 4
_DATABASES = {"cards": "survey.sqlite", "claims": "facts.sqlite", "search": "index.sqlite"}

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found: how bad it is, one sentence, and the next step."""

    severity: str
    said: str
    hint: str = ""
    _: KW_ONLY
    name: str = ""  # of the check
    where: str = ""
    target: str = ""  # the value of a healthy memory
    figures: Mapping[str, Any] = field(default_factory=dict)
    is_absent: bool = False  # the workspace has nothing of this kind, so a screen leaves it out
    fix: Callable[[], str] | None = field(default=None, compare=False)  # returns what was done
    fix_summary: str = ""
    done: str = ""  # by `fix`


Found = Iterator[CheckResult | str]  # results, and plain text for information


class Check(NamedTuple):
    """A named check. It gives one result, or yields a result for each problem, with a fix where that is safe."""

    name: str
    title: str  # the question that it answers
    run: Callable[[CheckContext], CheckResult | Iterable[CheckResult | str]]


def problem(
    said: str, where: str = "", hint: str = "", fix: Callable[[], str] | None = None, fix_summary: str = ""
) -> CheckResult:
    return CheckResult(PROBLEM, said, hint, where=where, fix=fix, fix_summary=fix_summary)


class CheckContext:
    """The machine and the workspace, if there is one, that checks look at."""

    def __init__(
        self,
        path: Path | None,
        *,
        now: Callable[[], datetime] | None = None,
        workspace: Workspace | None = None,
        session_roots: Iterable[str] = (),
        command: str = "status",
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self.path = path
        self.now = now or (lambda: datetime.now().astimezone())
        self.own = own_state()
        self.session_roots = tuple(session_roots)
        self.command = command  # status stores derived data, doctor stores nothing without --fix
        self.progress = progress
        self.unseen: list[str] = []  # what could not be read, and why
        self.crashes: list[Exception] = []
        self._workspace = workspace
        self._made: dict[object, tuple[Any, Exception | None]] = {}

    @property
    def workspace(self) -> Workspace:
        """The open workspace, for checks of memory."""
        assert self._workspace is not None
        return self._workspace

    def once(self, make: Callable[[CheckContext], _Made]) -> _Made:
        """What several checks share: made once, also if it fails."""
        if make not in self._made:
            try:
                self._made[make] = make(self), None
            except Exception as error:  # noqa: BLE001 - raised below, for each check that needs it
                self._made[make] = None, error
        made, failed = self._made[make]
        if failed is not None:
            raise failed
        found: _Made = made
        return found

    @property
    def root(self) -> str:
        assert self.path is not None
        return str(self.path)

    @property
    def state(self) -> str:
        """The state folder of the workspace."""
        return os.path.join(self.root, STATE)

    @property
    def has_state(self) -> bool:
        return self.path is not None and os.path.isdir(self.state) and not os.path.islink(self.state)

    @cached_property
    def newer(self) -> NewerState | None:
        """The error if a newer truekeep wrote the workspace, which is then left alone; else None."""
        try:
            StateFolder(Path(self.root)).check_format()
        except NewerState as error:
            return error
        except BadSetup:
            return None
        return None

    @cached_property
    def machine(self) -> Machine | None:
        """This machine; None if it has no id yet, or one that cannot be read."""
        try:
            return known_machine()
        except (OSError, ValueError):
            return None

    @cached_property
    def host_status(self) -> HostStatus:
        return read_host_status(self.state)

    @property
    def is_host(self) -> bool:
        """True if this machine is the canonical host."""
        found = self.host_status.canonical
        return found is not None and self.machine is not None and found.id == self.machine.id

    @property
    def runs_folder(self) -> Path:
        """The folder with the run log of this machine; works for a broken workspace, too."""
        return Path(self.state if self.has_state and self.is_host else self.own)

    @cached_property
    def config(self) -> Config:
        """The configuration, or the defaults if it cannot be read, which another check reports."""
        try:
            return StateFolder(Path(self.root)).config()
        except BadSetup:
            return Config()

    def open(self) -> Workspace:
        """Open the workspace without checks, for fixes."""
        return Workspace(Path(self.root), now=self.now)

    def stamp(self) -> str:
        return self.now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    def is_old(self, path: str) -> bool:
        """True if the file is too old for a process to be still writing it."""
        try:
            return self.now().timestamp() - os.lstat(path).st_mtime > STALE_SECONDS
        except OSError:
            return False

    def shown(self, path: str) -> str:
        """The path to show; relative inside the workspace."""
        inside = self.root + os.sep if self.path is not None else ""
        return path.removeprefix(inside) if inside and path.startswith(inside) else path


# --- Running --------------------------------------------------------------------------------------------------------


def run_check(check: Check, context: CheckContext, *, fix: bool = False) -> list[CheckResult]:
    """Run one check. After a fix it runs again: a problem that is still there is left, a new one is fixed next."""
    found: dict[tuple[str, str], CheckResult] = {}
    for _ in range(_MAX_FIX_ROUNDS):
        notes: list[str] = []
        is_fixed = False
        for item in _run(check, context):
            if isinstance(item, str):
                notes.append(item)
                continue
            key = item.said, item.where
            if key not in found:
                found[key] = _settle(item, check.name, fix)
                is_fixed |= found[key].severity == FIXED
            elif found[key].severity == FIXED:
                done = found[key].done
                hint = f"tried to fix it ({done}), without success"
                found[key] = replace(found[key], severity=PROBLEM, hint=hint, done="")
        if not is_fixed:
            break
    results = list(found.values())
    if notes or not found:
        results.append(CheckResult(OK, withhold("; ".join(notes)), name=check.name))
    return results


def _run(check: Check, context: CheckContext) -> Iterator[CheckResult | str]:
    """What a check finds; one that fails is reported, too."""
    try:
        found = check.run(context)
        yield from [found] if isinstance(found, CheckResult) else found
    except Exception as error:  # noqa: BLE001 - a failure of one check does not stop the others
        yield _failed(check, error, context)


def _failed(check: Check, error: Exception, context: CheckContext) -> CheckResult:
    where, hint = "", ""
    if isinstance(error, TruekeepError):
        why, hint = error.message, error.hint
    elif isinstance(error, ChangedSince):
        why = f"{error.path} is being written"
    elif isinstance(error, OSError):
        where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
        why, hint = error.strerror or str(error), "check the disk and its permissions"
    elif isinstance(error, apsw.Error):
        file = _DATABASES.get(check.name, "ledger.sqlite")
        why, hint = f"{STATE}/{file} cannot be used: {error}", "`truekeep doctor`"
    else:
        if not any(error is known for known in context.crashes):  # several checks may share what crashed
            context.crashes.append(error)
            note_bug(error, context.command)
        why, hint = f"truekeep crashed ({type(error).__name__})", f"update truekeep, or report it with {bugs_path()}"
        where = check.name
    context.unseen.append(": ".join(filter(None, (where, why))) + (f" ({hint})" if hint else ""))
    return CheckResult(UNKNOWN, f"could not be checked: {why}", hint, where=where)


def _settle(found: CheckResult, name: str, fix: bool) -> CheckResult:
    """The result with its name; fixed, if that is possible and wanted."""
    found = replace(found, name=name, said=withhold(found.said), where=withhold(found.where))
    if found.fix is None:
        return found
    if not fix:
        return replace(found, hint=f"`truekeep doctor --fix`: {found.fix_summary}")
    try:
        return replace(found, severity=FIXED, done=withhold(found.fix()), hint="")
    except TruekeepError as error:
        return replace(found, hint=f"{error.message}: {error.hint}")
    except (OSError, apsw.Error) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return replace(found, hint=f"could not be fixed: {why}")


# --- Words ----------------------------------------------------------------------------------------------------------


def other_documents_of(context: CheckContext) -> OtherDocuments:
    """The documents outside of the memory files. Asked for by `once`, they are counted once for all checks."""
    return count_other_documents(context.root)


def shown_bytes(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    number, unit = size / 1e3, "kB"
    for larger in ("MB", "GB", "TB"):
        if number >= 1000:
            number, unit = number / 1000, larger
    return f"{number:.1f} {unit}" if number < 100 else f"{number:.0f} {unit}"
