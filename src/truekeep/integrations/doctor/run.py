"""An examination: every check in its order, each on its own; with `fix`, what can be mended is, and looked at again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import apsw

from truekeep.core.bugs import note_bug
from truekeep.core.errors import TruekeepError
from truekeep.core.machine import has_routes
from truekeep.integrations.doctor import install_checks, state_checks
from truekeep.integrations.doctor.base import BROKEN, MENDED, WELL, Case, CheckResult, Found, Trouble
from truekeep.text.secrets.scanner import withhold

Look = Callable[[Case], Found]
_ROUNDS = 4  # of mending and looking again

# What can be looked at on every machine.
_MACHINE: tuple[tuple[str, Look], ...] = (
    ("machine", install_checks.check_machine),
    ("permissions", install_checks.check_permissions),
)
# What belongs to a workspace. Permissions come before: what cannot be read looks damaged. The ledger comes before the
# leftovers: a pending batch knows what its temporary files are.
_WORKSPACE: tuple[tuple[str, Look], ...] = (
    ("host", state_checks.check_host),
    ("config", state_checks.check_config),
    ("repositories", install_checks.check_repositories),
    ("ledger", state_checks.check_ledger),
    ("clock", install_checks.check_clock),
    ("catalog", state_checks.check_derived("catalog")),
    ("survey", state_checks.check_derived("survey")),
    ("facts", state_checks.check_derived("facts")),
    ("index", state_checks.check_derived("index")),
    ("search", state_checks.check_search),
)
_REST: tuple[tuple[str, Look], ...] = (
    ("transcripts", state_checks.check_transcripts),
    ("leftovers", state_checks.check_leftovers),
    ("locks", install_checks.check_locks),
    ("hooks", install_checks.check_hooks),
    ("schedule", install_checks.check_schedule),
)


def examine(case: Case, *, fix: bool = False) -> Iterator[CheckResult]:
    """Look at everything, one after the other; what failed is told first."""
    runs, bugs = (
        _failures("schedule", install_checks.check_runs, case),
        _failures("bugs", install_checks.check_bugs, case),
    )
    yield from runs
    yield from bugs
    yield from _examine("workspace", state_checks.check_workspace, case, fix)
    for name, look in _plan(case):
        yield from _examine(name, look, case, fix)
    if not bugs:
        yield from _examine("bugs", install_checks.check_bugs, case, fix)  # a check may have met one just now


def _failures(name: str, look: Look, case: Case) -> list[CheckResult]:
    return [check for check in _examine(name, look, case, fix=False) if check.state != WELL]


def _plan(case: Case) -> Iterator[tuple[str, Look]]:
    yield from _MACHINE
    if has_routes() and not (case.has_state and case.is_host):
        yield "receipts", install_checks.check_receipts
    if case.has_state and not case.newer:
        yield from _WORKSPACE
    yield from _REST


def _examine(name: str, look: Look, case: Case, fix: bool) -> Iterator[CheckResult]:
    """What one check finds. After mending it looks again: what is still there is broken, what came to light is next."""
    found: dict[tuple[str, str], CheckResult] = {}
    for _ in range(_ROUNDS):
        notes: list[str] = []
        is_mended = False
        for item in _look(look, case):
            if isinstance(item, str):
                notes.append(item)
                continue
            key = item.what, item.where
            if key not in found:
                found[key] = _deal(name, item, fix)
                is_mended |= found[key].state == MENDED
            elif found[key].state == MENDED:
                found[key] = _doubted(found[key])
        if not is_mended:
            break
    yield from found.values()
    if notes or not found:
        yield CheckResult(name, WELL, withhold("; ".join(notes)))


def _look(look: Look, case: Case) -> Iterator[Trouble | str]:
    """What a check finds; that it could not look is a finding, too."""
    try:
        yield from look(case)
    except (TruekeepError, OSError, apsw.Error) as error:
        yield Trouble(f"could not be looked at: {_why(error)}", _where(error), "see to the disk and its permissions")
    except Exception as error:  # noqa: BLE001 - a bug in one check is not the others'
        where = note_bug(error, "doctor")
        hint = "update truekeep, or report it with this file"
        yield Trouble(f"could not be looked at: a bug in truekeep ({type(error).__name__})", where, hint)


def _deal(name: str, trouble: Trouble, fix: bool) -> CheckResult:
    what, where = withhold(trouble.what), withhold(trouble.where)
    if trouble.mend is None:
        return CheckResult(name, BROKEN, what, where, hint=trouble.hint)
    if not fix:
        return CheckResult(name, BROKEN, what, where, hint=f"`truekeep doctor --fix`: {trouble.cure}")
    try:
        return CheckResult(name, MENDED, what, where, done=withhold(trouble.mend()))
    except TruekeepError as error:
        return CheckResult(name, BROKEN, what, where, hint=f"{error.message}: {error.hint}")
    except (OSError, apsw.Error) as error:
        return CheckResult(name, BROKEN, what, where, hint=f"it could not be mended: {_why(error)}")


def _doubted(check: CheckResult) -> CheckResult:
    return check._replace(state=BROKEN, hint=f"tried ({check.done}), and it is still so", done="")


def _why(error: Exception) -> str:
    if isinstance(error, TruekeepError):
        return error.message
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _where(error: Exception) -> str:
    name = error.filename if isinstance(error, OSError) else None
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
