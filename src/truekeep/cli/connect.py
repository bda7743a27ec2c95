"""truekeep connect and disconnect."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.ages import many
from truekeep.cli.show import (
    json_option,
    open_workspace,
    print_difference,
    print_json,
    print_table,
    short_path,
    workspace_option,
)
from truekeep.errors import BadInput
from truekeep.hidden import printable

if TYPE_CHECKING:
    from truekeep.connect.apply import Report
    from truekeep.connect.homes import Homes
    from truekeep.connect.plan import Edit, Plan, Problem, Wish
    from truekeep.connect.undo import Leave
    from truekeep.workspace import Workspace

EXIT_PROBLEMS = 1
NAMES = ("claude", "codex", "openclaw")


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option(
            "--harness",
            "harnesses",
            multiple=True,
            type=click.Choice(NAMES),
            help="Only this one; may be repeated. [default: those that are installed]",
        ),
        click.option("--user", "is_user", is_flag=True, help="The user's own instructions, for all repositories."),
        click.option("--project", "is_project", is_flag=True, help="This repository's instructions and inboxes."),
        click.option("--repo", metavar="DIR", help="The repository. [default: the one you are in]"),
        click.option("--dry-run", is_flag=True, help="Show the plan and change nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
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
@click.option("--check", "is_check", is_flag=True, help="Only say how the connections stand.")
@_options
def connect(
    ctx: click.Context,
    is_check: bool,
    harnesses: tuple[str, ...],
    is_user: bool,
    is_project: bool,
    repo: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    workspace: str | None,
) -> int:
    """Connect Claude Code, Codex and OpenClaw to this memory.

    Tells each harness about truekeep's plugin (hooks, skill, MCP server) through its own command, puts the closeout
    rule into CLAUDE.md and AGENTS.md, and makes the repository's inboxes. In a repository, its own files are used;
    elsewhere, or with --user, the user's. Shows the plan first. Every file that changes is kept, and disconnect
    puts it back. Running it again is safe. Exit 1 when something could not be connected, or with --check, when
    something is amiss.

    Example: truekeep connect --harness claude --harness codex
    """
    from truekeep.connect.apply import Report, apply_plan
    from truekeep.connect.check import next_steps
    from truekeep.connect.homes import find_homes
    from truekeep.connect.plan import Wish, plan_connect
    from truekeep.connect.record import Keep

    if ctx.invoked_subcommand is not None:
        return 0
    root = _root(repo, is_user=is_user, is_project=is_project)
    if root is None and is_project and not is_check:
        raise BadInput(
            f"{Path.cwd()} is in no git repository, so nothing was written",
            hint="go to the repository; or name another folder with --repo, or the user's own files with --user",
        )
    homes = find_homes()
    writers, cards, opened = _memory(ctx, workspace)
    if is_check:
        return _check(homes, root, cards, harnesses, as_json=as_json)
    is_named_place = is_project or is_user or repo is not None
    wish = Wish(root=root, named=harnesses, is_named_place=is_named_place, writers=writers, cards=cards)
    plan = plan_connect(wish, homes, Keep(homes.keep).read())
    notes = [*plan.notes, *_unseen(wish, opened), *_homeless(opened)]
    if not as_json:
        _show_plan(plan, notes, homes)
    report = Report(problems=list(plan.problems))
    is_applied = not dry_run and not (plan.is_empty and plan.is_noted) and bool(plan.owners)
    if is_applied:
        if not plan.is_empty:
            _ask("Connect?", yes=yes)
        report = apply_plan(plan, homes, tell=_teller(as_json=as_json))
    is_new = is_applied and not plan.is_empty and not report.problems
    steps = next_steps(homes, plan.harnesses, is_new=is_new) if not dry_run and plan.harnesses else []
    if as_json:
        print_json("connect", {**_plan_json(plan), "notes": notes, **_report_json(report, is_applied), "next": steps})
    else:
        _show_problems([problem for problem in report.problems if problem not in plan.problems])
        _show_end(plan, report, steps, dry_run=dry_run)
    return EXIT_PROBLEMS if report.problems or not plan.owners else 0


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every place that was connected from this machine.")
@_options
def disconnect(
    ctx: click.Context,
    everything: bool,
    harnesses: tuple[str, ...],
    is_user: bool,
    is_project: bool,
    repo: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    workspace: str | None,
) -> int:
    """Take back what connect did.

    Files that nobody changed since get their old bytes back; from others, only truekeep's part is taken out. A
    harness forgets truekeep when no place on this machine is connected with it any more. Inboxes with handoffs in
    them stay, and so does the memory. Exit 1 when something could not be taken back.

    Example: truekeep disconnect --all
    """
    from truekeep.connect.apply import Report
    from truekeep.connect.homes import find_homes
    from truekeep.connect.record import Keep
    from truekeep.connect.undo import apply_leave, plan_disconnect

    homes = find_homes()
    record = Keep(homes.keep).read()
    root = _root(repo, is_user=is_user, is_project=is_project)
    if root is None and not is_user and (is_project or str(Path.cwd()) in record.places):
        root = Path.cwd()  # a folder that is no repository, and was connected by its name
    _, cards, _ = _memory(ctx, workspace)
    leave = plan_disconnect(root, harnesses, homes, record, everything=everything, cards=cards)
    if not as_json:
        _show_leave(leave, homes, record.places)
    report = Report(problems=list(leave.problems))
    is_applied = not dry_run and not leave.is_empty
    if is_applied:
        _ask("Disconnect?", yes=yes)
        report = apply_leave(leave, homes, tell=_teller(as_json=as_json))
    if as_json:
        print_json("disconnect", {**_leave_json(leave), **_report_json(report, is_applied)})
    else:
        _show_problems([problem for problem in report.problems if problem not in leave.problems])
        for line in report.done:
            if line.startswith("left "):
                click.echo(f"  {printable(line)}")
        if is_applied and not report.problems:
            click.echo(click.style("disconnected", fg="green"))
    return EXIT_PROBLEMS if report.problems else 0


# What was asked for.


def _root(repo: str | None, *, is_user: bool, is_project: bool) -> Path | None:
    """The repository that is meant, or the folder that was named; None where there is neither."""
    from truekeep.repo import find_top

    if is_user and (is_project or repo):
        raise click.UsageError("--user is for all repositories: leave out --project and --repo")
    if is_user:
        return None
    start = Path(repo or ".").expanduser().resolve()
    if not start.is_dir():
        raise BadInput(f"{start} is not a folder", hint="name the repository's root with --repo")
    top = find_top(start)
    return top or (start if repo else None)


def _memory(ctx: click.Context, workspace: str | None) -> tuple[Mapping[str, str], Path | None, Workspace | None]:
    """The writers and the cards of this machine's workspace; the usual writers where there is none."""
    from truekeep.model import WRITERS
    from truekeep.state import STATE
    from truekeep.workspace import default_path

    named = workspace or (ctx.obj or {}).get("workspace") or os.environ.get("TRUEKEEP_WORKSPACE")
    if not named and not (default_path() / STATE).exists():
        return WRITERS, None, None
    opened = open_workspace(ctx, workspace)
    return opened.config.writers, Path(os.path.realpath(opened.path / "memory" / "cards")), opened


def _unseen(wish: Wish, opened: Workspace | None) -> list[str]:
    if wish.root is None or opened is None or opened.looks_into(wish.root):
        return []
    return [f"ingest does not look into {wish.root}; add it to `repositories` in {opened.path}/.truekeep/config.toml"]


def _homeless(opened: Workspace | None) -> list[str]:
    """That what agents leave goes nowhere: here is no memory, and no way to one."""
    from truekeep.machines import is_producer

    if opened is not None or NO_MEMORY in said_before() or is_producer():
        return []
    return [NO_MEMORY]


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput("nobody is there to ask", hint="--yes goes on without asking, --dry-run only shows the plan")
    click.confirm(question, default=True, abort=True)


# What is shown.


def _show_plan(plan: Plan, notes: Sequence[str], homes: Homes) -> None:
    where = "the user's own files" if plan.place == "user" else short_path(plan.place)
    click.echo(f"{click.style(', '.join(plan.harnesses) or 'no harness', bold=True)} in {where}")
    own = Counter((_folder_of(edit.path, homes), edit.what) for edit in plan.changes if edit.kind == "own")
    for (folder, what), count in own.items():
        click.echo(f"  write {short_path(folder)}/  {what}, {many(count, 'file')}")
    for edit in plan.changes:
        if edit.kind == "block":
            _show_edit(edit, said_before())
    for inbox in plan.inboxes.missing if plan.inboxes else ():
        click.echo(f"  make {short_path(Path(plan.place) / inbox)}/  the inbox")
    for call in plan.calls:
        click.echo(f"  run {click.style(printable(call.shown), fg='cyan')}  {call.why}")
    for name, paths in plan.rewritten:
        click.echo(f"  {name} writes {', '.join(map(short_path, paths))}")
    for name, why in plan.skipped:
        _echo_once(f"  {name}: {why}")
    for note in notes:
        click.echo(click.style("  note: ", fg="yellow") + printable(note))
    if plan.changes or plan.calls:
        _echo_once(f"  what changes is kept in {short_path(homes.keep)}/backups")
    _show_problems(plan.problems)


def said_before() -> set[object]:
    """What this run has said already: `connect machine` connects many repositories, and they get the same lines."""
    found: set[object] = click.get_current_context().meta.setdefault(__name__, set())
    return found


def _echo_once(line: str) -> None:
    if line not in said_before():
        click.echo(line)
    said_before().add(line)


def _show_edit(edit: Edit, shown: set[object]) -> None:
    from truekeep.difference import difference

    link = f" -> {short_path(edit.now.real)}" if edit.path.is_symlink() else ""
    verb = "change" if edit.now.data is not None else "write"
    added = edit.after.removeprefix(edit.now.data or b"").strip().replace(b"\r\n", b"\n")
    same = "; the same lines" if added in shown else ""
    click.echo(f"  {verb} {short_path(edit.path)}{link}  {edit.what}{same}")
    if not same:
        lines = difference(edit.now.data, edit.after, edit.path.name)[2:]
        print_difference([f"{line[:1]}   {line[1:]}" for line in lines if not line.startswith("@@")])
    shown.add(added)


def _folder_of(path: Path, homes: Homes) -> Path:
    return homes.market if path.is_relative_to(homes.market) else path.parent


def _way_back(place: str) -> str:
    """The command that takes a place out, from where we are."""
    import shlex

    from truekeep.repo import find_top

    if place == "user":
        return "truekeep disconnect --user"
    is_here = str(find_top(Path.cwd())) == place
    return "truekeep disconnect" if is_here else f"truekeep disconnect --repo {shlex.quote(place)}"


def _show_leave(leave: Leave, homes: Homes, places: Sequence[str]) -> None:
    for call in leave.calls:
        click.echo(f"  run {click.style(printable(call.shown), fg='cyan')}  {call.why}")
    for path in leave.configs:
        click.echo(f"  put back {short_path(path)}  (or only take truekeep out, if it was changed since)")
    own = [item for item in leave.returns if item.path.is_relative_to(homes.market) and item.way == "remove"]
    if own:
        click.echo(f"  remove {short_path(homes.market)}/  the plugin, {many(len(own), 'file')}")
    for item in leave.returns:
        if item not in own:
            click.echo(f"  {item.way} {short_path(item.path)}{f'  ({item.why})' if item.why else ''}")
    if leave.has_leftovers and not leave.folders:
        click.echo(f"  remove {short_path(homes.keep)}/  what a killed run left")
    if leave.folders:
        click.echo(f"  remove {many(len(leave.folders), 'folder')} that connect made, if empty")
    for note in leave.notes:
        click.echo(click.style("  note: ", fg="yellow") + printable(note))
    if leave.is_empty and not leave.problems:
        click.echo("nothing is connected here")
        for place in places:
            where = "the user's own files" if place == "user" else short_path(place)
            click.echo(f"  connected: {where}; `{printable(_way_back(place))}` takes it back")
    _show_problems(leave.problems)


def _show_problems(problems: Sequence[Problem]) -> None:
    for problem in problems:
        click.echo(click.style("  problem: ", fg="red") + printable(f"{problem.where}: {problem.what}"), err=True)
        if problem.hint:
            click.echo(f"    {printable(problem.hint)}", err=True)


def _show_end(plan: Plan, report: Report, steps: Sequence[str], *, dry_run: bool) -> None:
    if not plan.owners:
        click.echo(
            "no harness was found; name one with --harness and --project to write a repository's files", err=True
        )
    elif plan.is_empty and not report.problems:
        click.echo(click.style("already connected", fg="green"))
    elif not dry_run and len(report.problems) == 0:
        click.echo(f"{click.style('connected', fg='green')}; `{_way_back(plan.place)}` takes it back")
    for step in steps:
        _echo_once(click.style("next: ", fg="yellow") + step)


def _teller(*, as_json: bool) -> Callable[[str], None]:
    return lambda line: None if as_json else click.echo(f"  $ {printable(line)}")


def _check(homes: Homes, root: Path | None, cards: Path | None, harnesses: Sequence[str], *, as_json: bool) -> int:
    from truekeep.connect.check import connection_state

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
            click.echo(f"{item.harness}: {printable(problem)}")
    ran = f"ran in {probe.seconds:.2f} s" if probe.is_well else click.style(printable(probe.why), fg="red")
    click.echo(f"hook command: {ran}")
    return 0 if is_well else EXIT_PROBLEMS


# JSON.


def _plan_json(plan: Plan) -> dict[str, Any]:
    from truekeep.difference import difference

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


def _report_json(report: Report, is_applied: bool) -> dict[str, Any]:
    problems = [{"where": item.where, "what": item.what, "hint": item.hint} for item in report.problems]
    return {"applied": is_applied, "done": report.done, "problems": problems}
