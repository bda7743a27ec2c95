"""Runs every check of `truekeep doctor` in order. With `fix`, problems are fixed where possible, and checked again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from truekeep.core.bugs import note_bug
from truekeep.core.errors import TruekeepError
from truekeep.core.machine import has_routes
from truekeep.integrations.doctor import install_checks, state_checks
from truekeep.integrations.doctor.base import BROKEN, MENDED, WELL, CheckContext, CheckProblem, CheckResult, Found
from truekeep.text.secrets.scanner import withhold

_MAX_FIX_ROUNDS = 4


class Check(NamedTuple):
    """A named check. It yields problems, each with an optional fix, and remarks."""

    name: str
    run: Callable[[CheckContext], Found]


# On every machine.
_MACHINE = (
    Check("machine", install_checks.check_machine),
    Check("permissions", install_checks.check_permissions),
)
# In a workspace. Permissions come first, because an unreadable file looks damaged. The ledger comes before leftovers,
# because a pending batch explains its temporary files.
_WORKSPACE = (
    Check("host", state_checks.check_host),
    Check("config", state_checks.check_config),
    Check("repositories", install_checks.check_repositories),
    Check("ledger", state_checks.check_ledger),
    Check("clock", install_checks.check_clock),
    Check("catalog", state_checks.check_derived("catalog")),
    Check("survey", state_checks.check_derived("survey")),
    Check("facts", state_checks.check_derived("facts")),
    Check("index", state_checks.check_derived("index")),
    Check("search", state_checks.check_search),
)
_REST = (
    Check("transcripts", state_checks.check_transcripts),
    Check("leftovers", state_checks.check_leftovers),
    Check("locks", install_checks.check_locks),
    Check("hooks", install_checks.check_hooks),
    Check("schedule", install_checks.check_schedule),
)
_RUNS = Check("schedule", install_checks.check_runs)
_BUGS = Check("bugs", install_checks.check_bugs)


def run_checks(context: CheckContext, *, fix: bool = False) -> Iterator[CheckResult]:
    """Run all checks; failed scheduled runs and recorded crashes come first."""
    runs, bugs = _failures(_RUNS, context), _failures(_BUGS, context)
    yield from runs
    yield from bugs
    yield from _run_check(Check("workspace", state_checks.check_workspace), context, fix)
    for check in _plan(context):
        yield from _run_check(check, context, fix)
    if not bugs:
        yield from _run_check(_BUGS, context, fix)  # a check may have crashed just now


def _failures(check: Check, context: CheckContext) -> list[CheckResult]:
    return [result for result in _run_check(check, context, fix=False) if result.state != WELL]


def _plan(context: CheckContext) -> Iterator[Check]:
    yield from _MACHINE
    if has_routes() and not (context.has_state and context.is_host):
        yield Check("receipts", install_checks.check_receipts)
    if context.has_state and not context.newer:
        yield from _WORKSPACE
    yield from _REST


def _run_check(check: Check, context: CheckContext, fix: bool) -> Iterator[CheckResult]:
    """Run one check. After a fix it runs again: a problem that is still there is broken, a new one is fixed next."""
    found: dict[tuple[str, str], CheckResult] = {}
    for _ in range(_MAX_FIX_ROUNDS):
        notes: list[str] = []
        is_mended = False
        for item in _run(check, context):
            if isinstance(item, str):
                notes.append(item)
                continue
            key = item.what, item.where
            if key not in found:
                found[key] = _result(check.name, item, fix)
                is_mended |= found[key].state == MENDED
            elif found[key].state == MENDED:
                found[key] = _still_broken(found[key])
        if not is_mended:
            break
    yield from found.values()
    if notes or not found:
        yield CheckResult(check.name, WELL, withhold("; ".join(notes)))


def _run(check: Check, context: CheckContext) -> Iterator[CheckProblem | str]:
    """What a check finds; a check that fails is a problem, too."""
    try:
        yield from check.run(context)
    except (TruekeepError, OSError, apsw.Error) as error:
        yield CheckProblem(f"could not be checked: {_why(error)}", _where(error), "check the disk and its permissions")
    except Exception as error:  # noqa: BLE001 - a crash of one check does not stop the others
        where = note_bug(error, "doctor")
        hint = "update truekeep, or report it with this file"
        yield CheckProblem(f"could not be checked: truekeep crashed ({type(error).__name__})", where, hint)


def _result(name: str, problem: CheckProblem, fix: bool) -> CheckResult:
    what, where = withhold(problem.what), withhold(problem.where)
    if problem.fix is None:
        return CheckResult(name, BROKEN, what, where, hint=problem.hint)
    if not fix:
        return CheckResult(name, BROKEN, what, where, hint=f"`truekeep doctor --fix`: {problem.fix_summary}")
    try:
        return CheckResult(name, MENDED, what, where, done=withhold(problem.fix()))
    except TruekeepError as error:
        return CheckResult(name, BROKEN, what, where, hint=f"{error.message}: {error.hint}")
    except (OSError, apsw.Error) as error:
        return CheckResult(name, BROKEN, what, where, hint=f"could not be fixed: {_why(error)}")


def _still_broken(check: CheckResult) -> CheckResult:
    return check._replace(state=BROKEN, hint=f"tried to fix it ({check.done}), without success", done="")


def _why(error: Exception) -> str:
    if isinstance(error, TruekeepError):
        return error.message
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _where(error: Exception) -> str:
    name = error.filename if isinstance(error, OSError) else None
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
