"""truekeep alf: export the memory to an archive, and import it again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from truekeep.core.dates import local_minute
from truekeep.core.errors import BadInput
from truekeep.integrations.alf.apply_delta import apply_deltas
from truekeep.integrations.alf.delta import export_delta
from truekeep.integrations.alf.describe import describe_archive
from truekeep.integrations.alf.documents import JsonObject
from truekeep.integrations.alf.export import ExportOptions, ExportReport, export_archive
from truekeep.integrations.alf.import_ import SKIP, STOP, TRUST, ImportOptions, ImportReport, import_archive
from truekeep.integrations.alf.import_flags import Flag, FlaggedArchive
from truekeep.integrations.alf.purge import REASONS, PurgeReport, purge_archive
from truekeep.integrations.alf.record_ids import SCHEMES
from truekeep.integrations.alf.validate import validate_archive, verdict
from truekeep.integrations.alf.writer import ArchiveSummary, DeltaSummary
from truekeep.integrations.alf.zip_container import ArchiveProblem
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.interruptible import InterruptibleGroup
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import dry_run_option, in_workspace, json_flag, named_workspace, workspace_option
from truekeep.interfaces.cli.output import Shown, emit, wants_json
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, echo, note, style
from truekeep.workspace.choose_workspace import choose_workspace, find_in_use
from truekeep.workspace.workspace import Workspace, default_path

EXIT_PROBLEMS = 1
_MAX_LISTED = 20
_MAX_LISTED_IN_DRY_RUN = 200
_COLOURS = {
    **dict.fromkeys(("ok", "new"), "green"),
    **dict.fromkeys(("warning", "different"), "yellow"),
    **dict.fromkeys(("error", "invalid", "unreadable", "blocked", "held"), "red"),
}
"""Of verdicts, levels of problems, and states of files."""
_STOPPED = {
    "import": "stopped; every file is complete, and running it again imports the missing ones",
    **dict.fromkeys(("export", "delta", "apply", "purge"), "stopped; no incomplete archive is left"),
}

_output_option = click.option("-o", "--output", metavar="FILE", shell_complete=complete_files, help="Archive to write.")
_replace_option = click.option("--replace", is_flag=True, help="Overwrite an existing file.")
_encrypt_option = click.option(
    "--encrypt", "recipients", multiple=True, metavar="KEY",
    help="Encrypt with age to this public key (age1…, ssh-…, or a file of them); may be repeated.",
)  # fmt: skip
_identity_option = click.option(
    "--identity", "identities", multiple=True, metavar="FILE", shell_complete=complete_files,
    help="age private key, for encrypted archives.",
)  # fmt: skip
_large_option = click.option("--large", is_flag=True, help="Accept any size; only for archives you made yourself.")
_ids_option = click.option(
    "--ids", "scheme", type=click.Choice(SCHEMES), default="content", show_default=True,
    help="Derive ids from the content of a record, or from its position in the file, as the first adapters did.",
)  # fmt: skip
_plain_option = click.option(
    "--plain", is_flag=True, help="Write exactly what the format's own tool would write, without truekeep's records."
)
_transcripts_option = click.option("--transcripts", is_flag=True, help="Include the archived sessions.")
_embeddings_option = click.option(
    "--embeddings/--no-embeddings", default=True, help="Include OpenClaw's vectors.  [default: yes]"
)
_archive_argument = click.argument("archive", shell_complete=complete_files)


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_writing = _options(_encrypt_option, _identity_option, _replace_option)
_reading = _options(_identity_option, _large_option, json_flag)


@click.group(cls=InterruptibleGroup, stopped_messages=_STOPPED)
def alf() -> None:
    """Export and import archives in the Agent Life Format.

    An archive is a ZIP file: every memory as a record, the agent's identity, and the files themselves, byte for byte.
    Credentials are listed by name, never included.

    Example: truekeep alf export -o agent.alf
    """


# --- export, delta, apply -------------------------------------------------------------------------------------------


@alf.command()
@_output_option
@_ids_option
@_plain_option
@_transcripts_option
@_embeddings_option
@click.option(
    "--base", type=click.Path(path_type=Path), metavar="ARCHIVE", shell_complete=complete_files,
    help="Earlier archive whose record ids are kept across edits.",
)  # fmt: skip
@_writing
@in_workspace
def export(workspace: Workspace, output: str | None, **options: Any) -> None:
    """Write the workspace to an archive.

    Contains memory, identity and principals as records, all memory files unchanged, small artifacts, and the names of
    large ones. The same workspace always gives the same bytes. Nothing from `.truekeep`, git or other repositories is
    included, links are not followed, and a non-memory file that contains a credential is left out.

    Example: truekeep alf export -o agent.alf
    """
    chosen = ExportOptions(**options)
    with ProgressDisplay("exporting") as display:
        report = export_archive(workspace, _target(output, workspace.path.name, ".alf", chosen), chosen, display.step)
    _emit_report("alf-export", report, _describe_archive(report.written), agent=report.written.manifest["agent"])


@alf.command()
@click.option(
    "--since", metavar="ARCHIVE", shell_complete=complete_files, required=True, help="Archive to compare with."
)
@_output_option
@_ids_option
@_transcripts_option
@_embeddings_option
@_writing
@in_workspace
def delta(workspace: Workspace, since: str, output: str | None, **options: Any) -> None:
    """Write the changes since an archive.

    Reads only changed files. `truekeep alf apply` combines both into a full archive.

    Example: truekeep alf delta --since agent.alf -o agent.alf-delta
    """
    chosen = ExportOptions(**options)
    target = _target(output, workspace.path.name, ".alf-delta", chosen)
    with ProgressDisplay("comparing") as display:
        report = export_delta(workspace, target, Path(since), chosen, display.step)
    _emit_report("alf-delta", report, _describe_delta(report.written))


@alf.command()
@_archive_argument
@click.argument("deltas", nargs=-1, required=True, metavar="DELTA...", shell_complete=complete_files)
@_output_option
@_writing
@json_flag
def apply(archive: str, deltas: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Combine an archive and its deltas, in order, into one archive.

    Example: truekeep alf apply agent.alf agent.alf-delta -o agent-new.alf
    """
    chosen = ExportOptions(**options)
    target = _target(output, f"{Path(archive).stem}-applied", ".alf", chosen)
    with ProgressDisplay("applying") as display:
        report = apply_deltas(Path(archive), [Path(path) for path in deltas], target, chosen, display.step)
    _emit_report("alf-apply", report, _describe_archive(report.written))


def _target(output: str | None, stem: str, suffix: str, options: ExportOptions) -> Path:
    """The archive to write: as given, else in the current folder, named after the workspace and the day."""
    if output:
        return Path(output)
    encrypted = ".age" if options.recipients else ""
    return Path(f"{stem}-{datetime.now().astimezone():%Y-%m-%d}{suffix}{encrypted}")


def _describe_archive(summary: ArchiveSummary) -> str:
    referenced = f", {summary.referenced:,} of them only referenced" if summary.referenced else ""
    return f"{_count(summary.records, 'record')}, {_count(summary.files, 'file')} of {_size(summary.size)}{referenced}"


def _describe_delta(summary: DeltaSummary) -> str:
    if summary.is_empty:
        return "nothing changed"
    records = f"{_count(summary.created, 'record')} created, {summary.updated} updated, {summary.deleted} deleted"
    return f"{records}; {_count(summary.files, 'file')} changed, {summary.removed} removed"


def _emit_report(
    kind: str, report: ExportReport[ArchiveSummary] | ExportReport[DeltaSummary], contents: str, **more: Any
) -> None:
    emit(kind, {**to_json(report), **more}, _report_lines(report, contents))


def _report_lines(report: ExportReport[Any], contents: str) -> Iterator[Shown]:
    yield f"{style('wrote', fg='green')} {report.path} ({_size(report.size)}): {contents}"
    yield from map(note, report.notes)
    yield from _aside("left out: ", [f"{file.path}, {file.why}" for file in report.omitted])


def _aside(label: str, lines: Sequence[str]) -> Iterator[Aside]:
    """Lines for standard error, not too many."""
    for line in lines[:_MAX_LISTED]:
        yield Aside(style(label, fg="yellow") + line)
    if len(lines) > _MAX_LISTED:
        yield Aside(f"  and {len(lines) - _MAX_LISTED} more; --json lists them")


# --- import ---------------------------------------------------------------------------------------------------------


@alf.command("import")
@_archive_argument
@click.argument("folder", required=False, metavar="[WORKSPACE]", shell_complete=complete_folders)
@dry_run_option
@click.option("--replace", is_flag=True, help="Overwrite existing files that differ.")
@click.option("--keep", is_flag=True, help="Keep existing files that differ.")
@click.option("--salvage", is_flag=True, help="Import the intact parts of a damaged archive, and report the rest.")
@click.option("--trust", is_flag=True, help="Import flagged files and executable bits too; only for your own archives.")
@click.option("--skip-flagged", is_flag=True, help="Skip flagged files; they stay in the archive.")
@_large_option
@_identity_option
@json_flag
@workspace_option
@click.pass_context
def import_(ctx: click.Context, /, archive: str, folder: str | None, workspace: str | None, **options: Any) -> None:
    """Import an archive into a workspace; the default one if none is given.

    Files are restored byte for byte, with their times. An archive of another runtime, which has no such files, is
    rebuilt from its records. Existing files that differ are overwritten only with --replace, and `truekeep undo` can
    then restore them. Nothing is ever written outside the workspace.

    Before anything is written, files that need your approval are listed: files that harnesses, editors, shells or git
    act on, files that harnesses read as instructions (MEMORY.md and SOUL.md among them), files missing from the
    archive's own list, and texts in which the handoff checks find a credential, an instruction or hidden characters. On
    a terminal you are asked; elsewhere the import is refused (exit 3, flagged-archive) unless --trust or --skip-flagged
    is given. An archive made by this machine is imported without asking.

    Example: truekeep alf import agent.alf ~/.openclaw/workspace --dry-run
    """
    chosen = ImportOptions(**options)
    if chosen.trust and chosen.skip_flagged:
        raise BadInput("--trust and --skip-flagged are opposites", hint="give one of them")
    if chosen.replace and chosen.keep:
        raise BadInput("--replace and --keep are opposites", hint="give one of them")
    root = _import_root(ctx, folder, workspace)
    can_ask = not wants_json() and sys.stdin.isatty() and sys.stderr.isatty()
    in_use = find_in_use()
    try:
        with ProgressDisplay("importing") as display:
            ask = partial(_ask, display) if can_ask else None
            report = import_archive(Path(archive), root, chosen, ask=ask, progress=display.step)
    except FlaggedArchive as error:
        if not wants_json() and not can_ask:
            _print_flags(error.flags)
        raise
    if report.is_host and not chosen.dry_run:
        notes = (*report.plan.notes, *choose_workspace(root, in_use))  # as `truekeep init` does
        report = report._replace(plan=report.plan._replace(notes=notes))
    emit("alf-import", report, _import_lines(report, chosen))


def _import_root(ctx: click.Context, folder: str | None, workspace: str | None) -> Path:
    """The workspace to import into: the argument or the option, which must not contradict each other."""
    option = named_workspace(ctx, workspace)
    if folder and option and os.path.abspath(Path(folder).expanduser()) != os.path.abspath(Path(option).expanduser()):
        raise click.UsageError(f"Two workspaces are named: {folder} and {option}.", ctx=ctx)
    named = folder or option
    return Path(os.path.abspath(Path(named).expanduser() if named else default_path()))


def _print_flags(flags: Sequence[Flag]) -> None:
    for line in _flag_lines(flags):
        echo(line, err=True)


def _flag_lines(flags: Sequence[Flag]) -> Iterator[str]:
    for flag in flags[:_MAX_LISTED_IN_DRY_RUN]:
        colour = "red" if flag.holds_back else "yellow"
        yield f"{style(f'{flag.code:<12}', fg=colour)} {flag.place}  {flag.what}"
    if len(flags) > _MAX_LISTED_IN_DRY_RUN:
        yield f"  and {len(flags) - _MAX_LISTED_IN_DRY_RUN} more; `--dry-run --json` lists them"


def _ask(display: ProgressDisplay, flags: tuple[Flag, ...]) -> str:
    """Let a person decide about flagged files."""
    display.stop()
    _print_flags(flags)
    files = len({flag.path for flag in flags if flag.holds_back})
    echo(f"{_count(files, 'file')} of the archive {'needs' if files == 1 else 'need'} your approval.", err=True)
    answers = {"a": TRUST, "s": SKIP, "n": STOP}
    key: str = click.prompt(
        "import [a]ll of it, because the archive is your own, [s]kip these files, or [n]othing",
        type=click.Choice(tuple(answers)),
        default="n",
        show_choices=False,
        err=True,
    )
    return answers[key]


def _import_lines(report: ImportReport, options: ImportOptions) -> Iterator[Shown]:
    plan = report.plan
    if options.dry_run:
        for file in plan.changes[:_MAX_LISTED_IN_DRY_RUN]:
            why = f", {file.why}" if file.why else ""
            yield f"{style(f'{file.state:<9}', fg=_COLOURS[file.state])} {file.listed.path}{why}"
        yield from _flag_lines(report.flags)
    verb = "would import" if options.dry_run else "imported"
    yield f"{style(verb, fg='green')} into {report.root}: {_state_counts(report, options)}"
    if plan.is_rebuilt:
        yield "  rebuilt from records: the archive has no files of OpenClaw's"
    for line in plan.notes:
        yield f"  {line}"
    if held := [f"{file.listed.path}: {file.why}" for file in plan.of("held")]:
        yield Aside(style("held back, and still in the archive:", fg="yellow"))
        yield from _aside("  ", held)
    if report.is_host:
        yield "  this machine is its canonical host now; if another one still is: truekeep host release, there"
    yield from _problem_lines(report.problems)
    yield from _aside("not in the archive: ", plan.missing)
    yield from _aside("log in again: ", plan.credentials)


def _state_counts(report: ImportReport, options: ImportOptions) -> str:
    counts = report.plan.counts
    if report.replaced:
        del counts["different"]
        counts["replaced"] = report.replaced
    names = {"held": "held back", "different": "kept" if options.keep else "different"}
    return ", ".join(f"{count:,} {names.get(state, state)}" for state, count in counts.items() if count) or "no files"


# --- validate, show -------------------------------------------------------------------------------------------------


@alf.command()
@_archive_argument
@_reading
def validate(archive: str, identities: tuple[str, ...], large: bool) -> int:
    """Check an archive or a delta, and list every error with entry and line.

    Checks the rules of the format and of its own tool. Exit 1 if the tool could not read it, or would call it invalid.

    Example: truekeep alf validate agent.alf
    """
    problems = validate_archive(Path(archive), identities=identities, large=large)
    found = verdict(problems)
    lines = [*_problem_lines(problems), f"{archive}: {style(found, fg=_COLOURS[found])}"]
    emit("alf-validate", {"verdict": found, "problems": problems}, lines)
    return 0 if found in ("ok", "warning") else EXIT_PROBLEMS


def _problem_lines(problems: Sequence[ArchiveProblem]) -> Iterator[str]:
    for problem in problems:
        place = f"{problem.place}: " if problem.entry else ""
        yield f"{place}{style(problem.level, fg=_COLOURS[problem.level])}: {problem.message}"


@alf.command()
@_archive_argument
@click.option("--records", is_flag=True, help="List the records: id, namespace, file, first words.")
@_reading
def show(archive: str, records: bool, identities: tuple[str, ...], large: bool) -> None:
    """Show what is in an archive, without unpacking it.

    Example: truekeep alf show agent.alf --records
    """
    description = describe_archive(Path(archive), with_records=records, identities=identities, large=large)
    emit("alf-show", description, _description_lines(description))


def _description_lines(description: JsonObject) -> Iterator[Shown]:
    agent, files = description["agent"], description["files"]
    about = ", ".join(str(agent[key]) for key in ("source_runtime", "id") if agent.get(key))
    name = f"{agent['name']} ({about})" if agent.get("name") else f"agent {agent.get('id') or '?'}"
    yield f"{style(description['kind'], bold=True)} of {name}, state of {local_minute(description['created_at'])}"
    yield f"  {_size(description['size'])}; layers: {', '.join(description['layers']) or 'none'}"
    tiers = ", ".join(f"{count:,} {tier}" for tier, count in files["tiers"].items())
    yield f"  {_count(files['count'], 'file')} of {_size(files['bytes'])}" + (f" ({tiers})" if tiers else "")
    for service in description["credentials"]:
        yield f"  needs a login: {service}"
    for problem in description["problems"]:
        yield style(f"  {problem['entry']}: {problem['message']}", fg="red")
    if counts := description["records"]:
        yield ""
        rows = [[row["namespace"], row["memory_type"], f"{row['count']:,}"] for row in counts]
        yield Table(["namespace", "type", "records"], rows)
    if listed := description.get("listed"):
        yield ""
        rows = [[str(row[key]) for key in ("id", "namespace", "file", "text")] for row in listed]
        yield Table(["id", "namespace", "file", "first words"], rows)


# --- purge ----------------------------------------------------------------------------------------------------------


@alf.command()
@_archive_argument
@click.option(
    "--record", "records", multiple=True, required=True, metavar="ID", help="Record to remove; may be repeated."
)
@click.option(
    "--reason", type=click.Choice(REASONS), default="user_request", show_default=True,
    help="Reason, for the audit record.",
)  # fmt: skip
@_output_option
@_writing
@json_flag
def purge(archive: str, records: tuple[str, ...], reason: str, output: str | None, **options: Any) -> None:
    """Rewrite an archive without some records and their text.

    Lines that contain a line of these records, of 16 characters or more, are removed from all text files and documents,
    and so are other records with such a line; a binary file that contains one is left out. Packed files are not
    searched. With --replace and no -o, the archive is rewritten in place. The audit record lists which ids were
    removed, when and why. Earlier archives and deltas still contain them, and so does the workspace.

    Example: truekeep alf purge agent.alf --record 6bc9a540-0280-5320-b2c7-d4fe987ed858 -o clean.alf
    """
    chosen = ExportOptions(**options)
    if not output and not chosen.replace:
        raise BadInput("no target for the new archive", hint="give -o FILE, or --replace to rewrite it in place")
    target = Path(output or archive)
    with ProgressDisplay("purging") as display:
        report, purged = purge_archive(Path(archive), target, records, reason, chosen, display.step)
    data = {"path": target, "size": report.size, **to_json(purged)}
    emit("alf-purge", data, _purge_lines(report, purged))


def _purge_lines(report: ExportReport[ArchiveSummary], purged: PurgeReport) -> Iterator[str]:
    without = f"without {_count(purged.records, 'record')}"
    yield f"{style('wrote', fg='green')} {report.path} ({_size(report.size)}) {without}"
    for path in (*purged.files, *purged.entries):
        yield f"  removed from {path}"
    for path in purged.dropped:
        yield style("  left out: ", fg="yellow") + path
    for line in purged.notes:
        yield style(f"  {line}", fg="yellow")
    yield f"  audit record {purged.audit['purge_id']}; the workspace and older archives still contain the text"


# --- Helpers --------------------------------------------------------------------------------------------------------


def _size(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:.1f} GB"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
