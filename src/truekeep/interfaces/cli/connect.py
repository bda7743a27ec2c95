"""truekeep connect and disconnect."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, TruekeepError
from truekeep.core.harness_paths import find_homes
from truekeep.core.memory_copy import CURRENT, copy_root, is_copy
from truekeep.core.model import WRITERS
from truekeep.core.repository import find_top
from truekeep.integrations.harnesses.apply import ConnectReport, apply_plan
from truekeep.integrations.harnesses.installed import Keep
from truekeep.integrations.harnesses.plan import Wish, plan_connect
from truekeep.integrations.harnesses.status import connection_state, next_steps
from truekeep.integrations.harnesses.undo import apply_leave, plan_disconnect
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import (
    checked_folder,
    confirm_plan,
    dry_run_option,
    has_workspace,
    json_flag,
    named_workspace,
    open_workspace,
    repos_option,
    usage_error,
    wants_json,
    workspace_option,
    yes_option,
)
from truekeep.interfaces.cli.output import Shown, emit, short_path, show
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, echo, render_difference, style
from truekeep.text.unified_diff import difference
from truekeep.workspace.handoff_files import describe_unscanned, is_unscanned
from truekeep.workspace.machine_role import is_producer
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.core.harness_paths import Homes
    from truekeep.integrations.harnesses.plan import ConnectPlan, ConnectProblem, PlannedEdit
    from truekeep.integrations.harnesses.undo import Leave
    from truekeep.workspace.workspace import Workspace

EXIT_PROBLEMS = 1
NAMES = ("claude", "codex", "openclaw")


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option(
            "--harness",
            "harnesses",
            multiple=True,
            type=click.Choice(NAMES),
            help="Only this harness; may be repeated. [default: those that are installed]",
        ),
        click.option("--user", "is_user", is_flag=True, help="Use the user's instruction files, for all repositories."),
        click.option(
            "--project", "is_project", is_flag=True, help="Use this repository's instruction files and inboxes."
        ),
        repos_option("Repository; may be repeated. [default: this one]"),
        dry_run_option,
        yes_option,
        json_flag,
        workspace_option,
        click.pass_context,
    )
    for option in reversed(options):
        command = option(command)
    return command


NO_MEMORY = (
    "there is no memory on this machine yet: `truekeep init` makes one. Where another machine keeps it, "
    "`truekeep connect machine` sends there what agents leave"
)


@click.group(invoke_without_command=True)
@click.option("--check", "is_check", is_flag=True, help="Only show the state of the connections.")
@_options
def connect(
    ctx: click.Context, /, is_check: bool, dry_run: bool, yes: bool, workspace: str | None, **given: Any
) -> int:
    """Connect Claude Code, Codex and OpenClaw to this memory.

    Registers truekeep's plugin (hooks, skill, MCP server) with each harness through its own command, adds the closeout
    rule to CLAUDE.md and AGENTS.md, and creates the repository's inboxes. In a repository, its own files are used;
    elsewhere, or with --user, the user's. Shows the plan first. Every changed file is backed up, and `truekeep
    disconnect` restores it. Safe to run again. Exit 1 if something could not be connected or, with --check, if
    something is wrong.

    Example: truekeep connect --harness claude --harness codex
    """
    if ctx.invoked_subcommand is not None:
        return 0
    roots = _roots(given["repositories"], is_user=given["is_user"], is_project=given["is_project"])
    if roots[0] is None and given["is_project"] and not is_check:
        raise BadInput(
            f"{Path.cwd()} is in no git repository, so nothing was written",
            hint="go to the repository; or name another folder with --repo, or the user's own files with --user",
        )
    opened = open_workspace(ctx, workspace) if has_workspace(ctx, workspace) else None
    cards = Path(os.path.realpath(opened.path / "memory" / "cards")) if opened else None
    homes = find_homes()
    if is_check:
        if len(roots) > 1:
            raise usage_error("--check takes one repository")
        return _check(homes, roots[0], cards, given["harnesses"])
    is_named_place = given["is_project"] or given["is_user"] or bool(given["repositories"])
    writers = opened.config.writers if opened else WRITERS
    wishes = [
        Wish(root=root, named=given["harnesses"], is_named_place=is_named_place, writers=writers, cards=cards)
        for root in roots
    ]
    return _connect_places(wishes, homes, opened, dry_run=dry_run, yes=yes)


class _ConnectedPlace(NamedTuple):
    """A place with its plan, and what became of it."""

    plan: ConnectPlan
    notes: Sequence[str]
    applied: bool
    report: ConnectReport
    next: Sequence[str]


def _connect_places(wishes: Sequence[Wish], homes: Homes, opened: Workspace | None, *, dry_run: bool, yes: bool) -> int:
    plans = [plan_connect(wish, homes, Keep(homes.keep).read()) for wish in wishes]
    notes = [[*plan.notes, *_notes(wish, opened)] for wish, plan in zip(wishes, plans, strict=True)]
    if not wants_json():
        for plan, said in zip(plans, notes, strict=True):
            show(_render_plan(plan, said, homes))
    if not dry_run and any(plan.owners and not plan.is_empty for plan in plans):
        confirm_plan("Connect?", yes=yes)
    done = []
    for wish, shown, said in zip(wishes, plans, notes, strict=True):
        # Harnesses are connected with the first repository, so the others are planned again without them.
        plan = shown if wish is wishes[0] or dry_run else plan_connect(wish, homes, Keep(homes.keep).read())
        is_applied = not dry_run and not (plan.is_empty and plan.is_noted) and bool(plan.owners)
        report = apply_plan(plan, homes, log=_log) if is_applied else ConnectReport(problems=list(plan.problems))
        is_new = is_applied and not plan.is_empty and not report.problems
        steps = next_steps(homes, plan.harnesses, is_new=is_new) if not dry_run and plan.harnesses else []
        if not wants_json():
            show(_render_problems([problem for problem in report.problems if problem not in shown.problems]))
            show(_render_end(plan, report, steps, dry_run=dry_run))
        done.append(_ConnectedPlace(shown, said, is_applied, report, steps))
    emit("connect", done[0] if len(done) == 1 else {"places": done})
    return EXIT_PROBLEMS if any(place.report.problems or not place.plan.harnesses for place in done) else 0


def connect_quietly(root: Path, *, yes: bool) -> None:
    """Connect one repository, and show nothing of it."""
    homes = find_homes()
    wish = Wish(root=root, named=(), is_named_place=True, writers=WRITERS, cards=None)
    plan = plan_connect(wish, homes, Keep(homes.keep).read())
    if not plan.is_empty and plan.owners:
        confirm_plan("Connect?", yes=yes)
        apply_plan(plan, homes, log=lambda _: None)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Disconnect everything that was connected from this machine.")
@_options
def disconnect(
    ctx: click.Context, /, everything: bool, dry_run: bool, yes: bool, workspace: str | None, **given: Any
) -> int:
    """Undo what connect changed.

    Files that were not edited since are restored from their backup; from edited files, only truekeep's part is removed.
    A harness is unregistered when nothing on this machine is connected to it any more. Inboxes that contain handoffs
    stay, and so does the memory. Exit 1 if something could not be undone.

    Example: truekeep disconnect --all
    """
    homes = find_homes()
    record = Keep(homes.keep).read()
    roots = _roots(given["repositories"], is_user=given["is_user"], is_project=given["is_project"])
    if roots == [None] and not given["is_user"] and (given["is_project"] or str(Path.cwd()) in record.places):
        roots = [Path.cwd()]  # a folder that is no repository, and was connected by its name
    cards, writers = _cards_path(ctx, workspace), _writers(ctx, workspace)
    leave = plan_disconnect(
        roots, given["harnesses"], homes, record, everything=everything, cards=cards, writers=writers
    )
    if not wants_json():
        show(_render_leave(leave, homes, record.places))
    report = ConnectReport(problems=list(leave.problems))
    is_applied = not dry_run and not leave.is_empty
    if is_applied:
        confirm_plan("Disconnect?", yes=yes)
        report = apply_leave(leave, homes, log=_log)
    new = [problem for problem in report.problems if problem not in leave.problems]
    shown = [*_render_problems(new), *(f"  {line}" for line in report.done if line.startswith("left "))]
    shown += [style("disconnected", fg="green")] * (is_applied and not report.problems)
    emit("disconnect", {**to_json(leave), "applied": is_applied, **to_json(report)}, shown)
    return EXIT_PROBLEMS if report.problems else 0


def _log(line: str) -> None:
    if not wants_json():
        echo(f"  $ {line}")


# What was asked for.


def _roots(repos: Sequence[str], *, is_user: bool, is_project: bool) -> list[Path | None]:
    """The repositories that are meant, each once; None for the user's own files."""
    if is_user and (is_project or repos):
        raise click.UsageError("--user applies to all repositories; leave out --project and --repo")
    return [None] if is_user else list(dict.fromkeys(map(_root, repos or ("",))))


def _root(repo: str) -> Path | None:
    """The repository that is meant, or the folder that was named; None where there is neither."""
    start = checked_folder(repo or ".").resolve()
    return find_top(start) or (start if repo else None)


def _writers(ctx: click.Context, workspace: str | None) -> Mapping[str, str]:
    """The usual writers, and those of this machine's workspace if it can be read."""
    with suppress(TruekeepError):
        if has_workspace(ctx, workspace):
            return {**WRITERS, **open_workspace(ctx, workspace).config.writers}
    return WRITERS


def _cards_path(ctx: click.Context, workspace: str | None) -> Path:
    """Where the cards are, or were: what names them is taken out, whether or not the workspace is still there."""
    named = named_workspace(ctx, workspace)
    root = Path(named).expanduser() if named else default_path()
    if is_copy(root):
        return Path(copy_root()) / CURRENT / "memory" / "cards"  # each state of a copy has a folder of its own
    return Path(os.path.realpath(root / "memory" / "cards"))


def _notes(wish: Wish, opened: Workspace | None) -> list[str]:
    """What keeps handoffs from being filed: nobody looks for them, or there is no memory and no way to one."""
    if opened is None:
        return [] if NO_MEMORY in said_before() or is_producer() else [NO_MEMORY]
    return [describe_unscanned(opened, wish.root)] if wish.root and is_unscanned(opened, wish.root) else []


# What is shown.


def _render_plan(plan: ConnectPlan, notes: Sequence[str], homes: Homes) -> Iterator[Shown]:
    where = "the user's own files" if plan.place == "user" else short_path(plan.place)
    names = ", ".join(plan.harnesses)
    yield f"{style(names, bold=True)} in {where}" if names else f"no agent is installed for {where}"
    own = Counter((_folder_of(edit.path, homes), edit.what) for edit in plan.changes if edit.kind == "own")
    for (folder, what), count in own.items():
        yield from _once(f"  write {short_path(folder)}/  {what}, {many(count, 'file')}")
    for edit in plan.changes:
        if edit.kind == "block":
            yield from _render_edit(edit, said_before())
    for inbox in plan.inboxes.missing if plan.inboxes else ():
        yield f"  make {short_path(Path(plan.place) / inbox)}/  the inbox"
    for call in plan.calls:
        yield from _once(f"  run {style(call.shown, fg='cyan')}  {call.why}")
    for name, paths in plan.rewritten:
        yield from _once(f"  {name} writes {', '.join(map(short_path, paths))}")
    for name, why in plan.skipped:
        yield from _once(f"  {name}: {why}")
    for note in notes:
        yield from _once(style("  note: ", fg="yellow") + note)
    if plan.changes or plan.calls:
        yield from _once(f"  backups of changed files go to {short_path(homes.keep)}/backups")
    yield from _render_problems(plan.problems)


def said_before() -> set[object]:
    """Lines printed by this run: `connect machine` connects many repositories, which would print the same lines."""
    found: set[object] = click.get_current_context().meta.setdefault(__name__, set())
    return found


def _once(line: str) -> Iterator[str]:
    if line not in said_before():
        yield line
    said_before().add(line)


def _render_edit(edit: PlannedEdit, shown: set[object]) -> Iterator[str]:
    link = f" -> {short_path(edit.now.real)}" if edit.path.is_symlink() else ""
    verb = "change" if edit.now.data is not None else "write"
    added = edit.after.removeprefix(edit.now.data or b"").strip().replace(b"\r\n", b"\n")
    same = "; the same lines" if added in shown else ""
    yield f"  {verb} {short_path(edit.path)}{link}  {edit.what}{same}"
    if not same:
        lines = difference(edit.now.data, edit.after, edit.path.name)[2:]
        yield from render_difference(f"{line[:1]}   {line[1:]}" for line in lines if not line.startswith("@@"))
    shown.add(added)


def _folder_of(path: Path, homes: Homes) -> Path:
    return homes.market if path.is_relative_to(homes.market) else path.parent


def _way_back(place: str) -> str:
    """The command that takes a place out, from where we are."""
    if place == "user":
        return "truekeep disconnect --user"
    is_here = str(find_top(Path.cwd())) == place
    return "truekeep disconnect" if is_here else f"truekeep disconnect --repo {shlex.quote(place)}"


def _render_leave(leave: Leave, homes: Homes, places: Sequence[str]) -> Iterator[Shown]:
    for call in leave.calls:
        yield f"  run {style(call.shown, fg='cyan')}  {call.why}"
    for path in leave.configs:
        yield f"  put back {short_path(path)}  (or only take truekeep out, if it was changed since)"
    own = [item for item in leave.returns if item.path.is_relative_to(homes.market) and item.way == "remove"]
    if own:
        yield f"  remove {short_path(homes.market)}/  the plugin, {many(len(own), 'file')}"
    for item in leave.returns:
        if item not in own:
            yield f"  {item.way} {short_path(item.path)}{f'  ({item.why})' if item.why else ''}"
    if leave.has_leftovers and not leave.folders:
        yield f"  remove {short_path(homes.keep)}/  leftovers of an interrupted run"
    if leave.folders:
        yield f"  remove {many(len(leave.folders), 'folder')} that connect made, if empty"
    for note in leave.notes:
        yield style("  note: ", fg="yellow") + note
    if leave.is_empty and not leave.problems:
        yield "nothing is connected here"
        for place in places:
            where = "the user's own files" if place == "user" else short_path(place)
            yield f"  connected: {where}; undo with `{_way_back(place)}`"
    yield from _render_problems(leave.problems)


def _render_problems(problems: Sequence[ConnectProblem]) -> Iterator[Shown]:
    for problem in problems:
        yield Aside(style("  problem: ", fg="red") + f"{problem.where}: {problem.what}")
        if problem.hint:
            yield Aside(f"    {problem.hint}")


def _render_end(plan: ConnectPlan, report: ConnectReport, steps: Sequence[str], *, dry_run: bool) -> Iterator[Shown]:
    if not plan.owners:
        yield Aside("no harness found; use --harness and --project to write a repository's files")
    elif plan.is_empty and not report.problems:
        yield style("already connected", fg="green")
    elif not dry_run and len(report.problems) == 0:
        yield f"{style('connected', fg='green')}; undo with `{_way_back(plan.place)}`"
    for step in steps:
        yield from _once(style("next: ", fg="yellow") + step)


def _check(homes: Homes, root: Path | None, cards: Path | None, harnesses: Sequence[str]) -> int:
    found, probe = connection_state(homes, root=root, cards=cards)
    found = [item for item in found if not harnesses or item.harness in harnesses]
    is_well = probe.is_well and all(item.is_well for item in found) and any(item.is_connected for item in found)
    shown = [
        {
            "harness": item.harness,
            "installed": item.program is not None,
            "connected": item.is_connected,
            "hooks": item.hooks or "none",
            "rule": item.rule_path,
            "mcp": item.has_mcp,
            "problems": item.problems,
        }
        for item in found
    ]

    def render() -> Iterator[Shown]:
        words = {True: "yes", False: "no"}
        rows = [
            [
                item.harness,
                words[item.program is not None],
                words[item.is_connected],
                item.hooks or "none",
                words[item.has_rule] if item.has_rule or item.harness != "openclaw" else "-",
                words[item.has_mcp],
            ]
            for item in found
        ]
        yield Table(["harness", "installed", "connected", "hooks", "rule", "mcp"], rows)
        yield from (f"{item.harness}: {problem}" for item in found for problem in item.problems)
        yield "hook command: " + (f"ran in {probe.seconds:.2f} s" if probe.is_well else style(probe.why, fg="red"))

    hook = {"ok": probe.is_well, "seconds": round(probe.seconds, 3), "why": probe.why}
    emit("connect-check", {"ok": is_well, "harnesses": shown, "hook": hook}, render())
    return 0 if is_well else EXIT_PROBLEMS
