"""An examination: every check in its order, each on its own; with `fix`, what can be mended is, and looked at again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import apsw

from truekeep.doctor import setup, state
from truekeep.doctor.case import BROKEN, MENDED, WELL, Case, Check, Found, Trouble
from truekeep.errors import TruekeepError
from truekeep.secrets import withhold

Look = Callable[[Case], Found]
_ROUNDS = 4  # of mending and looking again

# What can be looked at on every machine.
_MACHINE: tuple[tuple[str, Look], ...] = (
    ("machine", setup.check_machine),
    ("permissions", setup.check_permissions),
)
# What belongs to a workspace. Permissions come before: what cannot be read looks damaged. The ledger comes before the
# leftovers: a pending batch knows what its temporary files are.
_WORKSPACE: tuple[tuple[str, Look], ...] = (
    ("host", state.check_host),
    ("config", state.check_config),
    ("repositories", setup.check_repositories),
    ("ledger", state.check_ledger),
    ("clock", setup.check_clock),
    ("catalog", state.check_derived("catalog")),
    ("survey", state.check_derived("survey")),
    ("facts", state.check_derived("facts")),
    ("index", state.check_derived("index")),
    ("search", state.check_search),
)
_REST: tuple[tuple[str, Look], ...] = (
    ("transcripts", state.check_transcripts),
    ("leftovers", state.check_leftovers),
    ("locks", setup.check_locks),
    ("hooks", setup.check_hooks),
    ("schedule", setup.check_schedule),
    ("bugs", setup.check_bugs),
)


def examine(case: Case, *, fix: bool = False) -> Iterator[Check]:
    """Look at everything, one after the other."""
    if case.path is not None:
        yield from _examine("workspace", state.check_workspace, case, fix)
    for name, look in _plan(case):
        yield from _examine(name, look, case, fix)


def _plan(case: Case) -> Iterator[tuple[str, Look]]:
    yield from _MACHINE
    if case.has_state and not case.newer:
        yield from _WORKSPACE
    yield from _REST


def _examine(name: str, look: Look, case: Case, fix: bool) -> Iterator[Check]:
    """What one check finds. After mending it looks again: what is still there is broken, what came to light is next."""
    found: dict[tuple[str, str], Check] = {}
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
        yield Check(name, WELL, withhold("; ".join(notes)))


def _look(look: Look, case: Case) -> Iterator[Trouble | str]:
    """What a check finds; that it could not look is a finding, too."""
    try:
        yield from look(case)
    except (TruekeepError, OSError, apsw.Error) as error:
        yield Trouble(f"could not be looked at: {_why(error)}", _where(error), "see to the disk and its permissions")


def _deal(name: str, trouble: Trouble, fix: bool) -> Check:
    what, where = withhold(trouble.what), withhold(trouble.where)
    if trouble.mend is None:
        return Check(name, BROKEN, what, where, hint=trouble.hint)
    if not fix:
        return Check(name, BROKEN, what, where, hint=f"`truekeep doctor --fix`: {trouble.cure}")
    try:
        return Check(name, MENDED, what, where, done=withhold(trouble.mend()))
    except TruekeepError as error:
        return Check(name, BROKEN, what, where, hint=f"{error.message}: {error.hint}")
    except (OSError, apsw.Error) as error:
        return Check(name, BROKEN, what, where, hint=f"it could not be mended: {_why(error)}")


def _doubted(check: Check) -> Check:
    return check._replace(state=BROKEN, hint=f"tried ({check.done}), and it is still so", done="")


def _why(error: Exception) -> str:
    if isinstance(error, TruekeepError):
        return error.message
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _where(error: Exception) -> str:
    name = error.filename if isinstance(error, OSError) else None
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
