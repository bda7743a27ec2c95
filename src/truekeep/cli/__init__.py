"""The command line: parse, call one verb, show. No rules, no files, no SQL.

Commands are loaded when they are asked for, so that `truekeep --help` and hooks stay fast. Errors become text or JSON
in exactly one place, here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from truekeep import __version__

if TYPE_CHECKING:
    from truekeep.errors import TruekeepError

EXIT_BUG = 70
EXIT_INTERRUPTED = 130

# Heading: name: (module, short help). The help stands here so that listing the commands loads none of them.
GROUPS = {
    "Begin": {
        "init": ("setup", "Make a workspace, or adopt an existing one."),
        "connect": ("machine", "Connect Claude Code, Codex and OpenClaw to this memory."),
        "disconnect": ("connect", "Take back what connect did."),
        "adopt": ("adopt", "Take in what a harness remembers on its own."),
    },
    "Agents": {
        "wake": ("session", "What an agent must know before it begins."),
        "checkpoint": ("session", "Leave what a session did, each part in its place."),
        "handoff": ("handoff", "Write, check and list handoffs."),
        "log": ("session", "Append to today's log."),
        "heartbeat": ("session", "Show or update what is going on."),
        "decide": ("session", "Note a decision."),
        "project": ("session", "Set a project's status."),
        "correction": ("correction", "Note mistakes, so that they are made once."),
        "gating": ("correction", "Rules learned from mistakes: when this, do that."),
        "hook": ("hook", "Answer a harness; connect sets it up."),
        "mcp": ("mcp", "Serve memory to agents over MCP."),
    },
    "Memory": {
        "ingest": ("ingest", "File every waiting handoff into memory."),
        "review": ("review", "Decide what waits for a person."),
        "card": ("card", "Look at cards, write, confirm and drop them."),
        "search": ("search", "Find memories by words and by meaning."),
        "get": ("search", "Read a memory file, or the lines that a search cited."),
        "resolve": ("resolve", "What memory says about one thing, in trust order."),
        "index": ("search", "Bring the search index up to date."),
        "transcripts": ("transcripts", "Keep what was said in sessions, and read it again."),
    },
    "Truth": {
        "verify": ("verify", "Hold what memory names against current code."),
        "claims": ("verify", "Show what a Markdown file claims."),
        "repos": ("verify", "List the checkouts that memory is held against."),
        "reconcile": ("reconcile", "Where the stores disagree, who wins, and why."),
        "tidy": ("tidy", "Forget on purpose, merge what is doubled, keep what lasts."),
    },
    "Who wrote it": {
        "history": ("history", "What was written, when, from which handoff."),
        "why": ("history", "Who wrote this file or this line."),
        "undo": ("history", "Put back what an entry changed."),
    },
    "Machines": {
        "sync": ("sync", "Bring handoffs from other machines."),
        "host": ("host", "Which machine may write, and changing it."),
        "schedule": ("schedule", "Let the system run it all by a timer."),
        "alf": ("alf", "Carry the whole memory: archives out and in."),
    },
    "Care": {
        "status": ("status", "Whether memory is healthy, and what needs a person."),
        "doctor": ("doctor", "Find what is broken in the set-up, and mend it."),
        "serve": ("serve", "Serve pages for review, memory and health."),
        "completion": ("completion", "Teach your shell to complete truekeep."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"truekeep.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0], list(COMMANDS), 1)
            if close:
                raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx=ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in commands.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="The workspace is --workspace, else $TRUEKEEP_WORKSPACE, else ~/.openclaw/workspace.",
)
@click.option("-V", "--version", is_flag=True, help="Show the version, and what truekeep works with here, and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --version: print JSON.")
@click.option("-w", "--workspace", metavar="DIR", help="The workspace to use.")
@click.pass_context
def cli(ctx: click.Context, workspace: str | None, version: bool, as_json: bool) -> None:
    """Agent memory that stays true.

    One canonical Markdown memory beneath every coding agent: agents leave handoffs, ingest files them, review holds
    what is doubtful, and every change can be explained and undone.
    """
    if version:
        show_version(as_json=as_json)
        ctx.exit()
    if as_json:
        raise click.UsageError("--json goes behind the command.", ctx=ctx)
    if ctx.invoked_subcommand is None:
        raise click.UsageError("Missing command.", ctx=ctx)
    ctx.obj = {"workspace": workspace}
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def show_version(*, as_json: bool) -> None:
    from truekeep.about import read_about, render_about

    about = read_about()
    if as_json:
        import json

        click.echo(json.dumps({"schema": "truekeep.version/1", **about}, indent=2))
    else:
        click.echo(render_about(about))


def run(arguments: list[str]) -> int:
    work = partial(cli, args=arguments, prog_name="truekeep", standalone_mode=False)
    return end(work, as_json="--json" in arguments)


def end(work: Callable[[], Any], *, as_json: bool) -> int:
    """Do it, and turn every ending into words and an exit code."""
    from truekeep.errors import BadSetup, StorageFailed, TruekeepError, hint_for

    try:
        return _status(work())
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2, which writes it where no pager looks
            click.echo(error.format_message())
            return 0
        if as_json:
            from truekeep.cli.show import print_json

            message = error.format_message()
            print_json("error", {"error": {"code": "usage", "message": message, "hint": "see --help"}})
        else:
            error.show()
        return error.exit_code
    except TruekeepError as error:
        show_error(error, as_json=as_json)
        return error.exit_code
    except ImportError as error:
        missing = BadSetup(f"a part of truekeep is missing: {error.name}", hint="install truekeep again")
        show_error(missing, as_json=as_json)
        return missing.exit_code
    except (KeyboardInterrupt, click.Abort):
        said = "stopped; nothing is lost, and the next run goes on from here"
        if as_json:
            from truekeep.cli.show import print_json

            print_json("error", {"error": {"code": "stopped", "message": said, "hint": "run it again"}})
        else:
            click.echo(said, err=True)
        return EXIT_INTERRUPTED
    except SystemExit:
        # click ends with 1 when the reader of our output leaves, as `| head` does. That is no failure.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            return 0
        raise
    except BrokenPipeError:
        # The reader of our output left, as `| head` does. Give the interpreter nothing to flush into a closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        failed = StorageFailed(f"{error.filename or 'a file'}: {error.strerror}", hint=hint_for(error))
        show_error(failed, as_json=as_json)
        return failed.exit_code
    except Exception as error:  # noqa: BLE001 - the last resort: a bug must not show a traceback or lose its story
        if type(error).__module__ == "apsw":
            failed = StorageFailed(f"a database in .truekeep cannot be used: {error}", hint=hint_for(error))
            show_error(failed, as_json=as_json)
            return failed.exit_code
        where = _log_bug(error)
        if as_json:
            from truekeep.cli.show import print_json

            print_json("error", {"error": {"code": "bug", "message": type(error).__name__, "hint": f"see {where}"}})
        click.echo(f"truekeep: a bug ({type(error).__name__}); nothing is lost. The story is in {where}", err=True)
        return EXIT_BUG


def tell(error: BaseException, *, as_json: bool) -> int:
    """Say how something ended that ran without the command line."""

    def fail() -> None:
        raise error

    return end(fail, as_json=as_json)


def _status(value: Any) -> int:
    return value if isinstance(value, int) else 0


def show_error(error: TruekeepError, *, as_json: bool) -> None:
    from truekeep.errors import InvalidHandoff
    from truekeep.hidden import printable

    findings = error.findings if isinstance(error, InvalidHandoff) else ()
    if as_json:
        from truekeep.cli.show import print_json, shown_finding

        details = error.details | ({"findings": [shown_finding(finding) for finding in findings]} if findings else {})
        print_json("error", {"error": {"code": error.code, "message": error.message, "hint": error.hint, **details}})
        return
    for line in error.details.get("difference", ()):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(click.style(line, fg=colour), err=True)
    click.echo(click.style("truekeep: ", fg="red") + printable(error.message), err=True)
    for line in error.details.get("story", ()):
        click.echo(f"  {printable(line)}", err=True)
    for finding in findings:
        place = f"line {finding.line}: " if finding.line else ""
        click.echo(f"  {place}{click.style(finding.code, fg='yellow')}: {printable(finding.message)}", err=True)
    if error.hint:
        click.echo(f"  {printable(error.hint)}", err=True)


def _log_bug(error: Exception) -> str:
    """Write where it happened, but not the message: it could quote memory, or a secret."""
    import traceback
    from datetime import UTC, datetime
    from pathlib import Path

    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "truekeep"
    path = folder / "bugs.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} truekeep {__version__} {type(error).__name__}\n")
            file.writelines(traceback.format_tb(error.__traceback__))
    except OSError:
        return "nowhere: the log could not be written"
    return str(path)
