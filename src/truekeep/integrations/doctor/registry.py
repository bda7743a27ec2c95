"""All checks of `truekeep doctor`: the installation, in order, and then memory as `truekeep status` checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truekeep.core.machine import has_routes
from truekeep.integrations.doctor import install_checks, state_checks
from truekeep.workspace.check import FIXED, OK, Check, CheckContext, CheckResult, run_check
from truekeep.workspace.health import FAILURES, HEALTH, check_health

WORKSPACE = Check("workspace", "Is there a workspace?", state_checks.check_workspace)
# Permissions come before the state, because an unreadable file looks damaged.
MACHINE = (
    Check("machine", "Has this machine an id?", install_checks.check_machine),
    Check("permissions", "Who may read and write?", install_checks.check_permissions),
)
RECEIPTS = Check("receipts", "Can receipts be verified?", install_checks.check_receipts)
# The ledger comes before leftovers, because a pending batch explains its temporary files.
STATE = (
    Check("host", "Is there one canonical host?", state_checks.check_host),
    Check("config", "Is the configuration valid?", state_checks.check_config),
    Check("folders", "Do the configured folders exist?", install_checks.check_folders),
    Check("ledger", "Is the ledger sound?", state_checks.check_ledger),
    Check("clock", "Is the clock right?", install_checks.check_clock),
    *(
        Check(schema.format.file, f"Is {schema.format.file} sound?", state_checks.check_derived(schema))
        for schema in state_checks.DERIVED
    ),
    Check("names", "Can every file name be read?", state_checks.check_names),
)
REST = (
    Check("transcripts", "Are transcripts sound?", state_checks.check_transcripts),
    Check("leftovers", "Did killed runs leave files?", state_checks.check_leftovers),
    Check("locks", "Is a lock left?", install_checks.check_locks),
    Check("hooks", "Are harnesses connected?", install_checks.check_hooks),
    Check("timer", "Does the timer run?", install_checks.check_timer),
)
INGESTER = Check("ingester", "Does only truekeep file handoffs?", install_checks.check_ingester)
_ELSEWHERE = ("folders", "hooks", "timer", "ingester")  # their problems are not in the state folder
OF_MEMORY = tuple(check.name for check in HEALTH if check not in FAILURES)


def run_checks(
    context: CheckContext, *, fix: bool = False, progress: Callable[[int, int], None] = lambda *_: None
) -> Iterator[CheckResult]:
    """Run all checks; failed scheduled runs and recorded crashes come first. `progress`: of reading memory.

    Memory is checked only where the installation has no problem left: reading it could change what is damaged.
    """
    failed = [result for check in FAILURES for result in run_check(check, context) if result.severity != OK]
    yield from failed
    is_sound = True
    for check in _plan(context):
        results = run_check(check, context, fix=fix)
        yield from results
        is_sound &= check.name in _ELSEWHERE or all(result.severity in (OK, FIXED) for result in results)
    if is_sound and context.has_state and not context.newer and context.machine is not None:
        yield from _check_memory(context, fix, progress)
    if not failed:
        yield from (run_check(check, context)[0] for check in FAILURES)  # a check may have crashed just now


def _plan(context: CheckContext) -> Iterator[Check]:
    yield WORKSPACE
    yield from MACHINE
    if has_routes() and not (context.has_state and context.is_host):
        yield RECEIPTS
    if context.has_state and not context.newer:
        yield from STATE
    yield from REST
    if context.has_state:
        yield INGESTER


def _check_memory(context: CheckContext, fix: bool, progress: Callable[[int, int], None]) -> Iterator[CheckResult]:
    with context.open() as workspace:
        look = CheckContext(context.path, now=context.now, workspace=workspace, command="doctor", progress=progress)
        yield from (
            result
            for result in check_health(look, fix=fix).results
            if result.name in OF_MEMORY and not result.is_absent
        )
