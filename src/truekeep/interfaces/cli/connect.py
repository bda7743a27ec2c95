"""truekeep connect and disconnect."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.default_workspace import find_chosen
from truekeep.core.errors import BadInput, TruekeepError
from truekeep.core.git import find_top
from truekeep.core.harness_paths import find_homes
from truekeep.core.model import WRITERS
from truekeep.core.state_dir import STATE
from truekeep.integrations.harnesses.apply import ConnectReport, apply_plan
from truekeep.integrations.harnesses.installed import Keep
from truekeep.integrations.harnesses.plan import Wish, plan_connect
from truekeep.integrations.harnesses.status import connection_state, next_steps
from truekeep.integrations.harnesses.undo import apply_leave, plan_disconnect
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_difference,
    print_json,
    print_table,
    short_path,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import ask_yes_no, echo, style
from truekeep.text.unified_diff import difference
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
        click.option(
            "--repo",
            "repos",
            multiple=True,
            metavar="DIR",
            shell_complete=complete_folders,
            help="Repository; may be repeated. [default: this one]",
        ),
        click.option("--dry-run", is_flag=True, help="Show the plan without changing anything."),
        click.option("--yes", is_flag=True, help="Skip the confirmation prompt."),
        json_option,
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
    ctx: click.Context,
    is_check: bool,
    harnesses: tuple[str, ...],
    is_user: bool,
    is_project: bool,
    repos: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    workspace: str | None,
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
    roots = _roots(repos, is_user=is_user, is_project=is_project)
    if roots[0] is None and is_project and not is_check:
        raise BadInput(
            f"{Path.cwd()} is in no git repository, so nothing was written",
            hint="go to the repository; or name another folder with --repo, or the user's own files with --user",
        )
    homes = find_homes()
    writers, cards, opened = _memory(ctx, workspace)
    if is_check:
        if len(roots) > 1:
            raise click.UsageError("--check takes one repository", ctx=ctx)
        return _check(homes, roots[0], cards, harnesses, as_json=as_json)
    is_named_place = is_project or is_user or bool(repos)
    wishes = [
        Wish(root=root, named=harnesses, is_named_place=is_named_place, writers=writers, cards=cards) for root in roots
    ]
    plans = [plan_connect(wish, homes, Keep(homes.keep).read()) for wish in wishes]
    notes = [
        [*plan.notes, *_unseen(wish, opened), *_homeless(opened)] for wish, plan in zip(wishes, plans, strict=True)
    ]
    if not as_json:
        for plan, said in zip(plans, notes, strict=True):
            _show_plan(plan, said, homes)
    if not dry_run and any(plan.owners and not plan.is_empty for plan in plans):
        _ask("Connect?", yes=yes)
    done = []
    for wish, shown, said in zip(wishes, plans, notes, strict=True):
        # The harnesses are told with the first place, so what is left for the next ones is planned anew.
        plan = shown if wish is wishes[0] or dry_run else plan_connect(wish, homes, Keep(homes.keep).read())
        report = ConnectReport(problems=list(plan.problems))
        is_applied = not dry_run and not (plan.is_empty and plan.is_noted) and bool(plan.owners)
        if is_applied:
            report = apply_plan(plan, homes, log=_teller(as_json=as_json))
        is_new = is_applied and not plan.is_empty and not report.problems
        steps = next_steps(homes, plan.harnesses, is_new=is_new) if not dry_run and plan.harnesses else []
        if not as_json:
            _show_problems([problem for problem in report.problems if problem not in shown.problems])
            _show_end(plan, report, steps, dry_run=dry_run)
        done.append({**_plan_json(shown), "notes": said, **_report_json(report, is_applied), "next": steps})
    if as_json:
        print_json("connect", done[0] if len(done) == 1 else {"places": done})
    return EXIT_PROBLEMS if any(told["problems"] or not told["harnesses"] for told in done) else 0


@click.command()
@click.option("--all", "everything", is_flag=True, help="Disconnect everything that was connected from this machine.")
@_options
def disconnect(
    ctx: click.Context,
    everything: bool,
    harnesses: tuple[str, ...],
    is_user: bool,
    is_project: bool,
    repos: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    workspace: str | None,
) -> int:
    """Undo what connect changed.

    Files that were not edited since are restored from their backup; from edited files, only truekeep's part is removed.
    A harness is unregistered when nothing on this machine is connected to it any more. Inboxes that contain handoffs
    stay, and so does the memory. Exit 1 if something could not be undone.

    Example: truekeep disconnect --all
    """
    homes = find_homes()
    record = Keep(homes.keep).read()
    roots = _roots(repos, is_user=is_user, is_project=is_project)
    if roots == [None] and not is_user and (is_project or str(Path.cwd()) in record.places):
        roots = [Path.cwd()]  # a folder that is no repository, and was connected by its name
    cards = _cards_path(ctx, workspace)
    writers = _writers(ctx, workspace)
    leave = plan_disconnect(roots, harnesses, homes, record, everything=everything, cards=cards, writers=writers)
    if not as_json:
        _show_leave(leave, homes, record.places)
    report = ConnectReport(problems=list(leave.problems))
    is_applied = not dry_run and not leave.is_empty
    if is_applied:
        _ask("Disconnect?", yes=yes)
        report = apply_leave(leave, homes, log=_teller(as_json=as_json))
    if as_json:
        print_json("disconnect", {**_leave_json(leave), **_report_json(report, is_applied)})
    else:
        _show_problems([problem for problem in report.problems if problem not in leave.problems])
        for line in report.done:
            if line.startswith("left "):
                echo(f"  {line}")
        if is_applied and not report.problems:
            echo(style("disconnected", fg="green"))
    return EXIT_PROBLEMS if report.problems else 0


# What was asked for.


def _roots(repos: Sequence[str], *, is_user: bool, is_project: bool) -> list[Path | None]:
    """The repositories that are meant, each once; None for the user's own files."""
    if is_user and (is_project or repos):
        raise click.UsageError("--user applies to all repositories; leave out --project and --repo")
    return [None] if is_user else list(dict.fromkeys(map(_root, repos or ("",))))


def _root(repo: str) -> Path | None:
    """The repository that is meant, or the folder that was named; None where there is neither."""
    start = Path(repo or ".").expanduser().resolve()
    if not start.is_dir():
        raise BadInput(f"{start} is not a folder", hint="name the repository's root with --repo")
    top = find_top(start)
    return top or (start if repo else None)


def _memory(ctx: click.Context, workspace: str | None) -> tuple[Mapping[str, str], Path | None, Workspace | None]:
    """The writers and cards of this machine's workspace; the default writers without a workspace."""
    named = workspace or (ctx.obj or {}).get("workspace") or find_chosen()
    if not named and not (default_path() / STATE).exists():
        return WRITERS, None, None
    opened = open_workspace(ctx, workspace)
    return opened.config.writers, Path(os.path.realpath(opened.path / "memory" / "cards")), opened


def _writers(ctx: click.Context, workspace: str | None) -> Mapping[str, str]:
    """The usual writers, and those of this machine's workspace if it can be read."""
    with suppress(TruekeepError):
        return {**WRITERS, **_memory(ctx, workspace)[0]}
    return WRITERS


def _cards_path(ctx: click.Context, workspace: str | None) -> Path:
    """Where the cards are, or were: what names them is taken out, whether or not the workspace is still there."""
    named = workspace or (ctx.obj or {}).get("workspace")
    root = Path(named).expanduser() if named else default_path()
    return Path(os.path.realpath(root / "memory" / "cards"))


def _unseen(wish: Wish, opened: Workspace | None) -> list[str]:
    if wish.root is None or opened is None or opened.handoffs.is_scanned(wish.root):
        return []
    return [f"ingest does not look into {wish.root}; add it to `repositories` in {opened.path}/.truekeep/config.toml"]


def _homeless(opened: Workspace | None) -> list[str]:
    """That what agents leave goes nowhere: here is no memory, and no way to one."""
    if opened is not None or NO_MEMORY in said_before() or is_producer():
        return []
    return [NO_MEMORY]


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(
            "this is not a terminal, so the plan cannot be confirmed",
            hint="add --yes to go ahead, or --dry-run to see the plan",
        )
    ask_yes_no(question, default=True, abort=True)


# What is shown.


def _show_plan(plan: ConnectPlan, notes: Sequence[str], homes: Homes) -> None:
    where = "the user's own files" if plan.place == "user" else short_path(plan.place)
    names = ", ".join(plan.harnesses)
    echo(f"{style(names, bold=True)} in {where}" if names else f"no agent is installed for {where}")
    own = Counter((_folder_of(edit.path, homes), edit.what) for edit in plan.changes if edit.kind == "own")
    for (folder, what), count in own.items():
        _echo_once(f"  write {short_path(folder)}/  {what}, {many(count, 'file')}")
    for edit in plan.changes:
        if edit.kind == "block":
            _show_edit(edit, said_before())
    for inbox in plan.inboxes.missing if plan.inboxes else ():
        echo(f"  make {short_path(Path(plan.place) / inbox)}/  the inbox")
    for call in plan.calls:
        _echo_once(f"  run {style(call.shown, fg='cyan')}  {call.why}")
    for name, paths in plan.rewritten:
        _echo_once(f"  {name} writes {', '.join(map(short_path, paths))}")
    for name, why in plan.skipped:
        _echo_once(f"  {name}: {why}")
    for note in notes:
        _echo_once(style("  note: ", fg="yellow") + note)
    if plan.changes or plan.calls:
        _echo_once(f"  what changes is kept in {short_path(homes.keep)}/backups")
    _show_problems(plan.problems)


def said_before() -> set[object]:
    """Lines printed by this run: `connect machine` connects many repositories, which would print the same lines."""
    found: set[object] = click.get_current_context().meta.setdefault(__name__, set())
    return found


def _echo_once(line: str) -> None:
    if line not in said_before():
        echo(line)
    said_before().add(line)


def _show_edit(edit: PlannedEdit, shown: set[object]) -> None:
    link = f" -> {short_path(edit.now.real)}" if edit.path.is_symlink() else ""
    verb = "change" if edit.now.data is not None else "write"
    added = edit.after.removeprefix(edit.now.data or b"").strip().replace(b"\r\n", b"\n")
    same = "; the same lines" if added in shown else ""
    echo(f"  {verb} {short_path(edit.path)}{link}  {edit.what}{same}")
    if not same:
        lines = difference(edit.now.data, edit.after, edit.path.name)[2:]
        print_difference([f"{line[:1]}   {line[1:]}" for line in lines if not line.startswith("@@")])
    shown.add(added)


def _folder_of(path: Path, homes: Homes) -> Path:
    return homes.market if path.is_relative_to(homes.market) else path.parent


def _way_back(place: str) -> str:
    """The command that takes a place out, from where we are."""
    if place == "user":
        return "truekeep disconnect --user"
    is_here = str(find_top(Path.cwd())) == place
    return "truekeep disconnect" if is_here else f"truekeep disconnect --repo {shlex.quote(place)}"


def _show_leave(leave: Leave, homes: Homes, places: Sequence[str]) -> None:
    for call in leave.calls:
        echo(f"  run {style(call.shown, fg='cyan')}  {call.why}")
    for path in leave.configs:
        echo(f"  put back {short_path(path)}  (or only take truekeep out, if it was changed since)")
    own = [item for item in leave.returns if item.path.is_relative_to(homes.market) and item.way == "remove"]
    if own:
        echo(f"  remove {short_path(homes.market)}/  the plugin, {many(len(own), 'file')}")
    for item in leave.returns:
        if item not in own:
            echo(f"  {item.way} {short_path(item.path)}{f'  ({item.why})' if item.why else ''}")
    if leave.has_leftovers and not leave.folders:
        echo(f"  remove {short_path(homes.keep)}/  leftovers of an interrupted run")
    if leave.folders:
        echo(f"  remove {many(len(leave.folders), 'folder')} that connect made, if empty")
    for note in leave.notes:
        echo(style("  note: ", fg="yellow") + note)
    if leave.is_empty and not leave.problems:
        echo("nothing is connected here")
        for place in places:
            where = "the user's own files" if place == "user" else short_path(place)
            echo(f"  connected: {where}; undo with `{_way_back(place)}`")
    _show_problems(leave.problems)


def _show_problems(problems: Sequence[ConnectProblem]) -> None:
    for problem in problems:
        echo(style("  problem: ", fg="red") + f"{problem.where}: {problem.what}", err=True)
        if problem.hint:
            echo(f"    {problem.hint}", err=True)


def _show_end(plan: ConnectPlan, report: ConnectReport, steps: Sequence[str], *, dry_run: bool) -> None:
    if not plan.owners:
        echo("no harness found; use --harness and --project to write a repository's files", err=True)
    elif plan.is_empty and not report.problems:
        echo(style("already connected", fg="green"))
    elif not dry_run and len(report.problems) == 0:
        echo(f"{style('connected', fg='green')}; undo with `{_way_back(plan.place)}`")
    for step in steps:
        _echo_once(style("next: ", fg="yellow") + step)


def _teller(*, as_json: bool) -> Callable[[str], None]:
    return lambda line: None if as_json else echo(f"  $ {line}")


def _check(homes: Homes, root: Path | None, cards: Path | None, harnesses: Sequence[str], *, as_json: bool) -> int:
    found, probe = connection_state(homes, root=root, cards=cards)
    found = [item for item in found if not harnesses or item.harness in harnesses]
    is_well = probe.is_well and all(item.is_well for item in found) and any(item.is_connected for item in found)
    if as_json:
        shown = [
            {
                "harness": item.harness,
                "installed": item.program is not None,
                "connected": item.is_connected,
                "hooks": item.hooks or "none",
                "rule": str(item.rule_path) if item.rule_path else None,
                "mcp": item.has_mcp,
                "problems": list(item.problems),
            }
            for item in found
        ]
        hook = {"ok": probe.is_well, "seconds": round(probe.seconds, 3), "why": probe.why}
        print_json("connect-check", {"ok": is_well, "harnesses": shown, "hook": hook})
        return 0 if is_well else EXIT_PROBLEMS
    words = {True: "yes", False: "no"}
    rows = [
        [
            item.harness,
            words[item.program is not None],
            words[item.is_connected],
            item.hooks or "none",
            words[item.has_rule] if item.harness != "openclaw" else "-",
            words[item.has_mcp],
        ]
        for item in found
    ]
    print_table(["harness", "installed", "connected", "hooks", "rule", "mcp"], rows)
    for item in found:
        for problem in item.problems:
            echo(f"{item.harness}: {problem}")
    ran = f"ran in {probe.seconds:.2f} s" if probe.is_well else style(probe.why, fg="red")
    echo(f"hook command: {ran}")
    return 0 if is_well else EXIT_PROBLEMS


# JSON.


def _plan_json(plan: ConnectPlan) -> dict[str, Any]:
    return {
        "place": plan.place,
        "harnesses": list(plan.harnesses),
        "skipped": [{"harness": name, "why": why} for name, why in plan.skipped],
        "files": [
            {
                "path": str(edit.path),
                "real": str(edit.now.real),
                "what": edit.what,
                "new": edit.now.data is None,
                "difference": list(difference(edit.now.data, edit.after, edit.path.name)),
            }
            for edit in plan.changes
        ],
        "folders": [str(plan.inboxes.root / folder) for folder in plan.inboxes.missing] if plan.inboxes else [],
        "commands": [{"harness": call.harness, "command": call.shown, "why": call.why} for call in plan.calls],
        "rewritten": {name: [str(path) for path in paths] for name, paths in plan.rewritten},
    }


def _leave_json(leave: Leave) -> dict[str, Any]:
    return {
        "harnesses": list(leave.harnesses),
        "commands": [{"harness": call.harness, "command": call.shown, "why": call.why} for call in leave.calls],
        "configurations": [str(path) for path in leave.configs],
        "files": [{"path": str(item.path), "way": item.way, "why": item.why} for item in leave.returns],
        "folders": [str(folder) for folder in leave.folders],
        "notes": list(leave.notes),
    }


def _report_json(report: ConnectReport, is_applied: bool) -> dict[str, Any]:
    problems = [{"where": item.where, "what": item.what, "hint": item.hint} for item in report.problems]
    return {"applied": is_applied, "done": report.done, "problems": problems}
