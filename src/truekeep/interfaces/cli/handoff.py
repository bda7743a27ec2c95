"""truekeep handoff new, lint, list."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.config import Config
from truekeep.core.dates import many
from truekeep.core.default_workspace import find_chosen
from truekeep.core.errors import BadInput, BadSetup, InvalidHandoff
from truekeep.core.git import find_top, repository_name
from truekeep.core.model import HANDOFF_TYPES, RULES, WRITERS, Finding
from truekeep.core.state_dir import STATE
from truekeep.handoffs.format import compose_handoff, handoff_name, parse_handoff
from truekeep.handoffs.inbox import Inbox, InboxReader, deliver, describe_other_files, find_inboxes, is_handoff_name
from truekeep.handoffs.policy.decision import Decision
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files, complete_folders
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    read_named,
    shown_finding,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import echo, print_warning, style
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace import producer
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.handoffs.policy.decision import UnsavedHandoff
    from truekeep.workspace.workspace import Workspace

EXIT_PROBLEMS = 1


@click.group()
def handoff() -> None:
    """Write, check and list handoffs.

    A handoff is a Markdown file of proposed durable knowledge that an agent leaves in its repository's inbox.

    Example: truekeep handoff list
    """


def workspace_if_any(ctx: click.Context, workspace: str | None) -> Workspace | None:
    """The workspace, or None on a machine that only produces handoffs. A broken one is still an error."""
    try:
        return open_workspace(ctx, workspace)
    except BadSetup:
        named = workspace or (ctx.obj or {}).get("workspace")
        if named or find_chosen() or (default_path() / STATE).exists():
            raise
        return None


def _this_repository(repo: str | None) -> Path:
    start = Path(repo or ".").expanduser().resolve()
    if not start.is_dir():
        raise BadInput(f"{start} is not a folder", hint="name the repository's root with --repo")
    return find_top(start) or start


def this_writer(writer: str | None) -> str:
    return writer or running_harness() or "claude"


def running_harness() -> str:
    """The harness that runs this command, judged by its environment variables; "" for a person."""
    if "CLAUDECODE" in os.environ:
        return "claude"
    return "codex" if any(key.startswith("CODEX_") for key in os.environ) else ""


def _judge(opened: Workspace | None, letters: Sequence[UnsavedHandoff]) -> list[Decision]:
    """Plan how ingest would file these handoffs. Without a workspace, existing cards are not considered."""
    if opened is not None:
        return opened.handoffs.lint(letters)
    return producer.judge(letters)


@handoff.command()
@click.option("--title", help="Short, specific title. Without it, a complete handoff is read from standard input.")
@click.option("--type", "type_", type=click.Choice(HANDOFF_TYPES), default="project-context", show_default=True)
@click.option("--summary", default="", help="Two to four sentences: what happened and why it matters.")
@click.option("--fact", "facts", multiple=True, help="Durable fact; may be repeated.")
@click.option("--evidence", multiple=True, help="File, command or error string; may be repeated.")
@click.option(
    "--card", metavar="NAME", shell_complete=complete_cards, help="Card to create. [default: REPOSITORY-TOPIC.md]"
)
@click.option("--update", is_flag=True, help="Update the existing card.")
@click.option("--document", metavar="PATH", help="Append to this document instead of creating a card.")
@click.option("--topic", help="Topic of the card. [default: the title]")
@click.option("--category", help="Category of the card. [default: the type]")
@click.option("--tag", "tags", multiple=True, help="Tag of the card; may be repeated.")
@click.option("--content", help="Exact content to file; - reads standard input. [default: summary and facts]")
@click.option(
    "--writer", metavar="NAME", help="Inbox to use: claude, codex or a configured one. [default: the running harness]"
)
@click.option("--repo", metavar="DIR", shell_complete=complete_folders, help="Repository. [default: the current one]")
@click.option("--slug", help="Last part of the file name. [default: from the title]")
@json_option
@workspace_option
@click.pass_context
def new(ctx: click.Context, /, as_json: bool, workspace: str | None, **given: Any) -> None:
    """Write a handoff to the current repository's inbox.

    The handoff is checked first, exactly as ingest will check it; one that could not be filed is refused with every
    reason.

    Example: truekeep handoff new --title 'Staging sits behind a proxy' --fact 'Staging answers on port 8443 only'
    """
    opened = workspace_if_any(ctx, workspace)
    writers = opened.config.writers if opened else _default_writers()
    writer = this_writer(given["writer"])
    if writer not in writers:
        raise BadInput(
            f"no writer is called {writer!r}", hint=f"known: {', '.join(writers)}; add others in config.toml"
        )
    root = _this_repository(given["repo"])
    text = _compose(given, opened, root) if given["title"] else _read_whole()
    title = given["title"] or parse_handoff(text).title
    name = handoff_name(given["slug"] or title, datetime.now().astimezone())
    raw = text.encode("utf-8", "surrogateescape")
    (filing,) = _judge(opened, [(raw, name, root)])
    if filing.outcome in ("review", "refused"):
        is_empty = given["title"] and not (given["content"] or given["summary"] or given["facts"])
        hint = filing.way_out(topic="`--topic TEXT`", update="`--update --card {card}`") or "correct it and try again"
        if is_empty:
            hint = "say what is to be known with --summary, --fact or --content"
        blocking = filing.blocking
        if given["title"]:  # nobody has seen the lines of a text that was made of options
            blocking = tuple(finding._replace(line=None) for finding in blocking)
        raise InvalidHandoff("not saved: this handoff would be refused", blocking, hint=hint)
    path = deliver(Inbox(root=root, folder=writers[writer], writer=writer), name, raw)
    unseen = opened is not None and not opened.handoffs.is_scanned(root)
    hints = [finding for finding in filing.findings if finding not in filing.blocking]
    if as_json:
        print_json(
            "handoff-new",
            {
                "path": str(path),
                "writer": writer,
                "repository": str(root),
                "outcome": filing.outcome,
                "target": filing.target,
                "scanned": not (unseen or filing.held_up),
                "hints": [shown_finding(finding) for finding in hints],
            },
        )
        return
    echo(f"{style('left', fg='green')} {path}")
    if unseen:
        _warn_unseen(opened, root)
    elif filing.held_up:
        print_warning(filing.promise)
    else:
        echo(f"  {filing.promise}")
    for finding in hints:
        echo(f"  hint {finding.code}: {finding.message}")


def _default_writers() -> Mapping[str, str]:
    return WRITERS


def _read_whole() -> str:
    if sys.stdin.isatty():
        raise BadInput("no --title given, and standard input is empty", hint="`truekeep handoff new --help`")
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("standard input is not UTF-8 text", hint="send the handoff as UTF-8") from error


def _compose(given: dict[str, Any], opened: Workspace | None, root: Path) -> str:
    if given["document"] and (given["card"] or given["update"]):
        raise BadInput("a handoff is for a card or for a document, not both", hint="leave out --document or --card")
    content = _read_whole() if given["content"] == "-" else given["content"]
    names = ("title", "summary", "facts", "evidence", "card", "update", "document", "topic", "category", "tags")
    is_own = opened is not None and root == opened.path
    return compose_handoff(
        kind=given["type_"],
        content=content,
        repository="" if is_own else repository_name(root),
        has_card=opened.cards.exists if opened is not None else lambda _: False,
        **{name: given[name] for name in names},
    )


def _warn_unseen(opened: Workspace | None, root: Path) -> None:
    config = f"{opened.path}/.truekeep/config.toml" if opened else "config.toml"
    what = f"ingest does not look into {root}; add it to `repositories` in {config}"
    print_warning(what)


@handoff.command()
@click.argument("files", nargs=-1, metavar="[FILE]...", shell_complete=complete_files)
@click.option("--codes", is_flag=True, help="List every code, its meaning and its effect.")
@json_option
@workspace_option
@click.pass_context
def lint(ctx: click.Context, files: tuple[str, ...], codes: bool, as_json: bool, workspace: str | None) -> int:
    """Check handoffs exactly as ingest will.

    Without FILE, checks everything pending in the current repository; - is standard input. All problems are shown at
    once, each with its line and code. Hints do not block filing. Exit 1 if a handoff would not be filed.

    Example: truekeep handoff lint .claude/memory-handoffs/*.md
    """
    opened = workspace_if_any(ctx, workspace)
    if codes:
        _print_codes(opened, as_json=as_json)
        return 0
    inputs = _lint_inputs(opened, files)
    filings = _judge(opened, [(raw, name, root) for _, name, raw, root, _ in inputs])
    results = [
        (shown, _not_taken(skipped) if skipped else _not_taken(_held_up(filing)) if filing.held_up else filing)
        for (shown, _, _, _, skipped), filing in zip(inputs, filings, strict=True)
    ]
    bad = sum(filing.outcome in ("review", "refused") for _, filing in results)
    if as_json:
        print_json(
            "handoff-lint", {"ok": not bad, "handoffs": [_lint_json(shown, filing) for shown, filing in results]}
        )
        return EXIT_PROBLEMS if bad else 0
    for shown, filing in results:
        for finding in filing.findings:
            is_problem = finding in filing.blocking
            word = style("problem", fg="red") if is_problem else style("hint", fg="yellow")
            place = f":{finding.line}" if finding.line else ""
            echo(f"{withhold(shown)}{place}: {word} {finding.code}: {finding.message}")
        if filing.outcome in ("promoted", "routed", "already"):
            echo(f"{withhold(shown)}: {style('ok', fg='green')}, {filing.promise}")
        else:
            where = "be turned away" if filing.outcome == "refused" else "go to review"
            if any(finding.code == "not-taken" for finding in filing.blocking):
                where = "stay where it is"
            echo(f"{withhold(shown)}: would {where}")
    if not results:
        echo("no pending handoffs here")
    for root in dict.fromkeys(root for _, _, _, root, _ in inputs if root):
        if opened is not None and not opened.handoffs.is_scanned(root):
            _warn_unseen(opened, root)
    if opened is None and results:
        echo("(no workspace on this machine, so existing cards cannot be checked)", err=True)
    return EXIT_PROBLEMS if bad else 0


def _not_taken(why: Finding) -> Decision:
    return Decision(outcome="review", findings=(why,), blocking=(why,))


def _held_up(filing: Decision) -> Finding:
    return Finding(code="not-taken", message=filing.held_up)


def _lint_inputs(
    opened: Workspace | None, files: tuple[str, ...]
) -> list[tuple[str, str, bytes, Path | None, Finding | None]]:
    """One handoff to lint: label, name, bytes, repository, and why ingest would skip it."""
    if not files:
        root = _this_repository(None)
        writers = opened.config.writers if opened else _default_writers()
        files = tuple(
            str(path)
            for inbox in find_inboxes([root], writers)
            if inbox.path.is_dir()
            for path in sorted(inbox.path.iterdir())
            if path.is_file() and is_handoff_name(path.name)
        )
    inputs: list[tuple[str, str, bytes, Path | None, Finding | None]] = []
    for file in files:
        if file == "-":
            name = f"{datetime.now().astimezone():%Y-%m-%d-%H%M}-stdin.md"
            inputs.append(("standard input", name, sys.stdin.buffer.read(), None, None))
            continue
        path = Path(file)
        try:
            raw = read_named(file)
            is_linked = path.is_symlink() or path.stat().st_nlink > 1
        except OSError as error:
            raise BadInput(f"{file}: {error.strerror}", hint="name a handoff, or - for standard input") from error
        skipped = None
        if not is_handoff_name(path.name):
            skipped = Finding(code="not-taken", message="a handoff is called YYYY-MM-DD-HHMM-slug.md")
        elif is_linked:
            skipped = Finding(code="not-taken", message="it is a symlink or a hard link; copy it instead")
        inputs.append((file, path.name, raw, find_top(path.resolve().parent), skipped))
    return inputs


def _lint_json(shown: str, filing: Decision) -> dict[str, Any]:
    return {
        "file": withhold(printable(shown)),
        "ok": filing.outcome not in ("review", "refused"),
        "outcome": filing.outcome,
        "target": filing.target,
        "problems": [shown_finding(finding) for finding in filing.blocking],
        "hints": [shown_finding(finding) for finding in filing.findings if finding not in filing.blocking],
    }


def _print_codes(opened: Workspace | None, *, as_json: bool) -> None:
    config = opened.config if opened else Config()
    rows = [(code, config.policy_for(code), rule) for code, rule in RULES.items()]
    if as_json:
        print_json(
            "handoff-codes",
            {
                "codes": [
                    {"code": code, "policy": policy, "binding": rule.binding, "meaning": rule.meaning}
                    for code, policy, rule in rows
                ]
            },
        )
        return
    table = [[code, policy + (" (fixed)" if rule.binding else ""), rule.meaning] for code, policy, rule in rows]
    print_table(["code", "leads to", "meaning"], table)


@handoff.command("list")
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_folders,
    help="Only this repository; may be repeated.",
)
@json_option
@workspace_option
@click.pass_context
def list_(ctx: click.Context, repositories: tuple[str, ...], as_json: bool, workspace: str | None) -> None:
    """List pending handoffs, where they are and how old.

    Looks in the inboxes of every configured repository; on a machine without a workspace, in those of the current one.

    Example: truekeep handoff list
    """
    opened = workspace_if_any(ctx, workspace)
    if opened is not None:
        inboxes = opened.handoffs.inboxes([Path(repo) for repo in repositories] if repositories else None)
    else:
        roots = [_this_repository(repo) for repo in repositories or (".",)]
        inboxes = find_inboxes(roots, _default_writers())
    looked = InboxReader(inboxes, limit=0, settle=0)
    waiting = []
    now = time.time()
    for name, inbox in looked.waiting():
        try:
            hours = max(now - os.lstat(inbox.path / name).st_mtime, 0) / 3600
        except OSError:
            continue
        waiting.append((name, inbox, hours))
    looked.close()
    if as_json:
        print_json(
            "handoff-list",
            {
                "inboxes": [str(inbox.path) for inbox in inboxes],
                "waiting": [
                    {
                        "name": withhold(printable(name)),
                        "inbox": str(inbox.path),
                        "writer": inbox.writer,
                        "repository": str(inbox.root),
                        "waiting_hours": round(hours, 2),
                    }
                    for name, inbox, hours in waiting
                ],
                "not_handoffs": [withhold(printable(str(path))) for path in looked.others],
            },
        )
        return
    rows = [[_shown_hours(hours), inbox.writer, inbox.root.name, withhold(name)] for name, inbox, hours in waiting]
    if rows:
        print_table(["waits", "writer", "repository", "handoff"], rows)
    echo(f"{len(waiting)} waiting in {many(len(inboxes), 'inbox')}")
    told = [f"{problem.inbox.path}: {problem.why}" for problem in looked.problems]
    for warning in (*told, *describe_other_files(looked.others)):
        print_warning(warning)


def _shown_hours(hours: float) -> str:
    if hours < 1:
        return f"{int(hours * 60)} min"
    return f"{int(hours)} h" if hours < 48 else f"{int(hours / 24)} d"
