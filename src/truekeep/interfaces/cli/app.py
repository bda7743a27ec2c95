"""The command line: parse, call one verb, show. No rules, no files, no SQL.

Commands are loaded when they are asked for, so that `truekeep --help` and hooks stay fast. Errors become text or JSON
in exactly one place, here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.errors import BadSetup, InvalidHandoff, StorageFailed, TruekeepError, hint_for, is_database_error
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.terminal import echo, echo_text, print_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
STOPPED = "stopped; nothing is lost, and the next run continues from here"

# Heading: name: (module, short help). The help stands here so that listing the commands loads none of them.
GROUPS = {
    "Setup": {
        "init": ("init", "Create a workspace, or use an existing one."),
        "connect": ("connect_machine", "Connect Claude Code, Codex and OpenClaw to this memory."),
        "disconnect": ("connect", "Undo what connect changed."),
        "adopt": ("adopt", "Import Claude Code's or Codex's own notes."),
        "config": ("config", "Show and change settings."),
    },
    "Agents": {
        "wake": ("session", "Print the context an agent needs at the start of a session."),
        "checkpoint": ("session", "Save what a session did."),
        "handoff": ("handoff", "Write, check and list handoffs."),
        "note": ("note", "Record a log line, a decision, a status or a lesson."),
        "mcp": ("mcp", "Serve memory to agents over MCP."),
    },
    "Memory": {
        "ingest": ("ingest", "File all pending handoffs into memory."),
        "review": ("review", "Approve, edit or reject drafts that need a decision."),
        "card": ("card", "List, write and remove cards; split a long file into cards."),
        "search": ("search", "Search memory by words and by meaning."),
        "get": ("search", "Print a memory file, or lines cited by a search."),
        "resolve": ("resolve", "Show what memory says about a topic, most trusted first."),
        "index": ("search", "Update the search index."),
        "transcripts": ("transcripts", "Archive agent sessions and read them."),
    },
    "Verification": {
        "check": ("check", "Check documents of a repository against its code."),
        "verify": ("verify", "Check memory against the current code."),
        "repos": ("repos", "List the checkouts that memory is checked against."),
        "reconcile": ("reconcile", "Find contradictions between memory, logs and code."),
        "tidy": ("tidy", "Expire old log entries, merge duplicates, promote recurring notes."),
    },
    "History": {
        "history": ("history", "Show what was written, when, and from which handoff."),
        "blame": ("history", "Show who wrote a file or a line."),
        "undo": ("history", "Revert a change."),
    },
    "Machines": {
        "sync": ("sync", "Transfer handoffs between machines."),
        "host": ("host", "Show or change which machine may write."),
        "schedule": ("schedule", "Run truekeep from a system timer."),
        "alf": ("alf", "Export, import and compare memory archives."),
    },
    "Team": {
        "login": ("login", "Use the memory of a team server on this machine."),
        "logout": ("login", "Forget a team server."),
        "server": ("server", "Serve one memory to a team, from PostgreSQL."),
        "token": ("server", "Make, list and revoke tokens for a team server."),
    },
    "Health": {
        "status": ("status", "Show memory health and what needs attention."),
        "doctor": ("doctor", "Find and fix problems with the installation."),
        "serve": ("serve", "Serve a local web UI for review, memory and health."),
        "completion": ("completion", "Print a shell completion script."),
        "help": ("help", "Show the help of a command."),
    },
}
HIDDEN = {"hook": ("hook", "Handle a harness event; installed by connect.")}
VISIBLE = {name: command for group in GROUPS.values() for name, command in group.items()}
COMMANDS = VISIBLE | HIDDEN
RENAMED = {  # names from before the first release, which some notes and fingers still have
    "why": "blame",
    "claims": "verify --list-claims",
    "log": "note log",
    "decide": "note decision",
    "decision": "note decision",
    "project": "note project",
    "heartbeat": "note heartbeat",
    "correction": "note correction",
    "gating": "note gating",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"truekeep.interfaces.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = RENAMED.get(args[0]) or next(iter(get_close_matches(args[0], VISIBLE, 1)), "")
            if close:
                message = f"No such command {args[0]!r}. Did you mean `truekeep {close}`?"
                raise click.UsageError(message, ctx=ctx) from error
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Click would import every command for its help."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, (_, text) in VISIBLE.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        widest = max(map(len, VISIBLE))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in commands.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="The workspace is --workspace, else $TRUEKEEP_WORKSPACE, else the one set by `truekeep init`.",
)
@click.option("-V", "--version", is_flag=True, help="Show the version and the detected environment, and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --version: output JSON.")
@click.option("-w", "--workspace", metavar="DIR", shell_complete=complete_folders, help="Workspace to use.")
@click.pass_context
def cli(ctx: click.Context, workspace: str | None, version: bool, as_json: bool) -> None:
    """Agent memory that stays true.

    One canonical Markdown memory for all your coding agents: agents leave handoffs, ingest files them, doubtful ones
    wait for review, and every change can be explained and undone. Run `truekeep init` to start.
    """
    if version:
        show_version(as_json=as_json)
        ctx.exit()
    if as_json:
        raise click.UsageError("--json goes after the command.", ctx=ctx)
    if ctx.invoked_subcommand is None:
        raise click.UsageError("Missing command.", ctx=ctx)
    ctx.obj = {"workspace": workspace}
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def show_version(*, as_json: bool) -> None:
    from truekeep.workspace.version_info import read_about, render_about  # here: only --version needs it

    about = read_about()
    if as_json:
        _print_json("version", about)
    else:
        echo_text(render_about(about))


def run(arguments: list[str]) -> int:
    work = partial(cli, args=arguments, prog_name="truekeep", standalone_mode=False)
    command = next((word for word in arguments if word in COMMANDS), "")
    return end(work, as_json="--json" in arguments, command=command)


def end(work: Callable[[], Any], *, as_json: bool, command: str = "") -> int:
    """Do it, and turn every ending into words and an exit code. `command`: what a bug is noted under."""
    try:
        return _status(work())
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        return _end_usage_error(error, as_json=as_json)
    except TruekeepError as error:
        return _end_error(error, as_json=as_json)
    except ImportError as error:
        missing = BadSetup(f"a part of truekeep is missing: {error.name}", hint="install truekeep again")
        return _end_error(missing, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        if as_json:
            _print_json("error", {"error": {"code": "stopped", "message": STOPPED, "hint": "run it again"}})
        else:
            echo(STOPPED, err=True)
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
        return _end_error(failed, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the last resort: a bug must not show a traceback or lose its story
        if is_database_error(error):
            failed = StorageFailed(f"a database in .truekeep cannot be used: {error}", hint=hint_for(error))
            return _end_error(failed, as_json=as_json)
        return _end_bug(error, command, as_json=as_json)


def _end_usage_error(error: click.ClickException, *, as_json: bool) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2, which writes it where no pager looks
        echo_text(error.format_message())
        return 0
    if as_json:
        _print_json("error", {"error": {"code": "usage", "message": error.format_message(), "hint": "see --help"}})
    else:
        shown = StringIO()
        error.show(file=shown)
        echo_text(shown.getvalue(), err=True)
    return error.exit_code


def _end_error(error: TruekeepError, *, as_json: bool) -> int:
    if as_json:
        findings = {"findings": error.findings} if isinstance(error, InvalidHandoff) and error.findings else {}
        told = {"code": error.code, "message": error.message, "hint": error.hint, **error.details, **findings}
        _print_json("error", {"error": told})
    else:
        print_error(error)
    return error.exit_code


def _end_bug(error: Exception, command: str, *, as_json: bool) -> int:
    from truekeep.core.bugs import note_bug  # here: it is hardly ever needed

    where = note_bug(error, command)
    if as_json:
        _print_json("error", {"error": {"code": "bug", "message": type(error).__name__, "hint": f"see {where}"}})
    echo(f"truekeep crashed ({type(error).__name__}). Your memory is unchanged. Details: {where}", err=True)
    echo("  update truekeep; if it still happens, report it with that file, which has no memory text", err=True)
    return EXIT_BUG


def _print_json(kind: str, data: Mapping[str, Any]) -> None:
    from truekeep.interfaces.cli.output import print_json  # here: --help needs neither JSON nor a workspace

    print_json(kind, data)


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Show an error that was raised outside of a command. Returns the exit code."""

    def fail() -> None:
        raise error

    return end(fail, as_json=as_json)


def _status(value: Any) -> int:
    return value if isinstance(value, int) else 0
