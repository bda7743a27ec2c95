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
from truekeep.integrations.alf.import_plan import PlannedImport, count_states
from truekeep.integrations.alf.purge import REASONS, PurgeReport, purge_archive
from truekeep.integrations.alf.record_ids import SCHEMES
from truekeep.integrations.alf.validate import validate_archive, verdict
from truekeep.integrations.alf.writer import ArchiveSummary, DeltaSummary
from truekeep.integrations.alf.zip_container import ArchiveProblem
from truekeep.interfaces.cli.choose_workspace import choose_workspace, find_in_use
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.interruptible import InterruptibleGroup
from truekeep.interfaces.cli.output import emit, json_option, open_workspace, print_json, print_table, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.workspace.workspace import default_path

EXIT_PROBLEMS = 1
_MAX_LISTED = 20
_MAX_LISTED_IN_DRY_RUN = 200
_VERDICT_COLOURS = {"ok": "green", "warning": "yellow", "invalid": "red", "unreadable": "red"}
_LEVEL_COLOURS = {"unreadable": "red", "error": "red", "warning": "yellow"}
_STATE_COLOURS = {"new": "green", "same": "bright_black", "different": "yellow", "blocked": "red", "held": "red"}
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


_writing = _options(_encrypt_option, _identity_option, _replace_option, json_option)
_of_workspace = _options(workspace_option, click.pass_context)
_reading = _options(_identity_option, _large_option, json_option)


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
@_of_workspace
def export(ctx: click.Context, /, output: str | None, workspace: str | None, **options: Any) -> None:
    """Write the workspace to an archive.

    Contains memory, identity and principals as records, all memory files unchanged, small artifacts, and the names of
    large ones. The same workspace always gives the same bytes. Nothing from `.truekeep`, git or other repositories is
    included, links are not followed, and a non-memory file that contains a credential is left out.

    Example: truekeep alf export -o agent.alf
    """
    chosen = _export_options(options)
    with open_workspace(ctx, workspace) as opened, ProgressDisplay("exporting") as display:
        target = _target(output, opened.path.name, ".alf", chosen)
        report = export_archive(opened, target, chosen, display.step)
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
@_of_workspace
def delta(ctx: click.Context, /, since: str, output: str | None, workspace: str | None, **options: Any) -> None:
    """Write the changes since an archive.

    Reads only changed files. `truekeep alf apply` combines both into a full archive.

    Example: truekeep alf delta --since agent.alf -o agent.alf-delta
    """
    chosen = _export_options(options)
    with open_workspace(ctx, workspace) as opened, ProgressDisplay("comparing") as display:
        target = _target(output, opened.path.name, ".alf-delta", chosen)
        report = export_delta(opened, target, Path(since), chosen, display.step)
    _emit_report("alf-delta", report, _describe_delta(report.written))


@alf.command()
@_archive_argument
@click.argument("deltas", nargs=-1, required=True, metavar="DELTA...", shell_complete=complete_files)
@_output_option
@_writing
def apply(archive: str, deltas: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Combine an archive and its deltas, in order, into one archive.

    Example: truekeep alf apply agent.alf agent.alf-delta -o agent-new.alf
    """
    chosen = _export_options(options)
    target = _target(output, f"{Path(archive).stem}-applied", ".alf", chosen)
    with ProgressDisplay("applying") as display:
        report = apply_deltas(Path(archive), [Path(path) for path in deltas], target, chosen, display.step)
    _emit_report("alf-apply", report, _describe_archive(report.written))


def _export_options(options: dict[str, Any]) -> ExportOptions:
    return ExportOptions(**{name: options[name] for name in ExportOptions._fields if name in options})


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
    counts = {key: value for key, value in report.written._asdict().items() if key != "manifest"}
    if "size" in counts:  # of the files; "size" is that of the archive
        counts = {"file_bytes" if key == "size" else key: value for key, value in counts.items()}
    data = {
        "path": str(report.path),
        "size": report.size,
        **counts,
        "notes": list(report.notes),
        "omitted": [file._asdict() for file in report.omitted],
        **more,
    }
    emit(kind, data, _report_lines(report, contents))


def _report_lines(report: ExportReport[Any], contents: str) -> Iterator[str]:
    yield f"{style('wrote', fg='green')} {report.path} ({_size(report.size)}): {contents}"
    for note in report.notes:
        echo(style("note: ", fg="yellow") + note, err=True)
    for file in report.omitted[:_MAX_LISTED]:
        echo(style("left out: ", fg="yellow") + f"{file.path}, {file.why}", err=True)
    if len(report.omitted) > _MAX_LISTED:
        echo(f"  and {len(report.omitted) - _MAX_LISTED} more; --json lists them", err=True)


# --- import ---------------------------------------------------------------------------------------------------------


@alf.command("import")
@_archive_argument
@click.argument("folder", required=False, metavar="[WORKSPACE]", shell_complete=complete_folders)
@click.option("--dry-run", is_flag=True, help="Show what would change without changing anything.")
@click.option("--replace", is_flag=True, help="Overwrite existing files that differ.")
@click.option("--keep", is_flag=True, help="Keep existing files that differ.")
@click.option("--salvage", is_flag=True, help="Import the intact parts of a damaged archive, and report the rest.")
@click.option("--trust", is_flag=True, help="Import flagged files and executable bits too; only for your own archives.")
@click.option("--skip-flagged", is_flag=True, help="Skip flagged files; they stay in the archive.")
@_large_option
@_identity_option
@json_option
@workspace_option
@click.pass_context
def import_(
    ctx: click.Context, /, archive: str, folder: str | None, as_json: bool, workspace: str | None, **options: Any
) -> None:
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
    can_ask = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    in_use = find_in_use()
    try:
        with ProgressDisplay("importing") as display:
            ask = partial(_ask, display) if can_ask else None
            report = import_archive(Path(archive), root, chosen, ask=ask, progress=display.step)
    except FlaggedArchive as error:
        if not as_json and not can_ask:
            _print_flags(error.flags)
        raise
    if report.is_host and not chosen.dry_run:
        notes = (*report.plan.notes, *choose_workspace(root, in_use))  # as `truekeep init` does
        report = report._replace(plan=report.plan._replace(notes=notes))
    emit("alf-import", _import_json(report, chosen), _import_lines(report, chosen))


def _import_root(ctx: click.Context, folder: str | None, workspace: str | None) -> Path:
    """The workspace to import into: the argument or the option, which must not contradict each other."""
    option = workspace or (ctx.obj or {}).get("workspace")
    if folder and option and os.path.abspath(Path(folder).expanduser()) != os.path.abspath(Path(option).expanduser()):
        raise click.UsageError(f"Two workspaces are named: {folder} and {option}.", ctx=ctx)
    named = folder or option
    return Path(os.path.abspath(Path(named).expanduser() if named else default_path()))


def _print_flags(flags: Sequence[Flag], *, err: bool = True) -> None:
    for line in _flag_lines(flags):
        echo(line, err=err)


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


def _import_json(report: ImportReport, options: ImportOptions) -> JsonObject:
    plan = report.plan
    return {
        "workspace": str(report.root),
        "agent": report.agent,
        "dry_run": options.dry_run,
        "rebuilt": plan.is_rebuilt,
        "counts": count_states(plan.files),
        "files": [
            {"path": file.listed.path, "state": file.state, "why": file.why}
            for file in plan.files
            if file.state != "same"
        ],
        "written": report.written,
        "replaced": report.replaced,
        "canonical": report.is_host,
        "not_in_archive": [file.path for file in plan.referenced],
        "credentials": list(plan.credentials),
        "notes": list(plan.notes),
        "problems": [problem._asdict() for problem in report.problems],
        "own_archive": report.is_own,
        "flags": [flag._asdict() for flag in report.flags],
    }


def _import_lines(report: ImportReport, options: ImportOptions) -> Iterator[str]:
    plan = report.plan
    if options.dry_run:
        for file in [file for file in plan.files if file.state != "same"][:_MAX_LISTED_IN_DRY_RUN]:
            why = f", {file.why}" if file.why else ""
            yield f"{style(f'{file.state:<9}', fg=_STATE_COLOURS[file.state])} {file.listed.path}{why}"
        yield from _flag_lines(report.flags)
    verb = "would import" if options.dry_run else "imported"
    yield f"{style(verb, fg='green')} into {report.root}: {_state_counts(report, options)}"
    if plan.is_rebuilt:
        yield "  rebuilt from records: the archive has no files of OpenClaw's"
    for note in plan.notes:
        yield f"  {note}"
    _print_held_files(plan.of("held"))
    if report.is_host:
        yield "  this machine is its canonical host now; if another one still is: truekeep host release, there"
    yield from _problem_lines(report.problems)
    for listed in plan.referenced[:_MAX_LISTED]:
        echo(style("not in the archive: ", fg="yellow") + listed.path, err=True)
    for service in plan.credentials:
        echo(style("log in again: ", fg="yellow") + service, err=True)


def _state_counts(report: ImportReport, options: ImportOptions) -> str:
    counts = count_states(report.plan.files)
    if report.replaced:
        del counts["different"]
        counts["replaced"] = report.replaced
    names = {"held": "held back", "different": "kept" if options.keep else "different"}
    return ", ".join(f"{count:,} {names.get(state, state)}" for state, count in counts.items() if count) or "no files"


def _print_held_files(files: Sequence[PlannedImport]) -> None:
    if files:
        echo(style("held back, and still in the archive:", fg="yellow"), err=True)
    for file in files[:_MAX_LISTED]:
        echo(f"  {file.listed.path}: {file.why}", err=True)
    if len(files) > _MAX_LISTED:
        echo(f"  and {len(files) - _MAX_LISTED} more; --json lists them", err=True)


# --- validate, show -------------------------------------------------------------------------------------------------


@alf.command()
@_archive_argument
@_reading
def validate(archive: str, identities: tuple[str, ...], large: bool, **_: Any) -> int:
    """Check an archive or a delta, and list every error with entry and line.

    Checks the rules of the format and of its own tool. Exit 1 if the tool could not read it, or would call it invalid.

    Example: truekeep alf validate agent.alf
    """
    problems = validate_archive(Path(archive), identities=identities, large=large)
    found = verdict(problems)
    lines = [*_problem_lines(problems), f"{archive}: {style(found, fg=_VERDICT_COLOURS[found])}"]
    emit("alf-validate", {"verdict": found, "problems": [problem._asdict() for problem in problems]}, lines)
    return 0 if found in ("ok", "warning") else EXIT_PROBLEMS


def _problem_lines(problems: Sequence[ArchiveProblem]) -> Iterator[str]:
    for problem in problems:
        place = f"{problem.place}: " if problem.entry else ""
        yield f"{place}{style(problem.level, fg=_LEVEL_COLOURS[problem.level])}: {problem.message}"


@alf.command()
@_archive_argument
@click.option("--records", is_flag=True, help="List the records: id, namespace, file, first words.")
@_reading
def show(archive: str, records: bool, identities: tuple[str, ...], large: bool, as_json: bool) -> None:
    """Show what is in an archive, without unpacking it.

    Example: truekeep alf show agent.alf --records
    """
    description = describe_archive(Path(archive), with_records=records, identities=identities, large=large)
    if as_json:
        print_json("alf-show", description)
        return
    for line in _description_lines(description):
        echo(line)
    if description["records"]:
        echo()
        rows = [[row["namespace"], row["memory_type"], f"{row['count']:,}"] for row in description["records"]]
        print_table(["namespace", "type", "records"], rows)
    if description.get("listed"):
        echo()
        rows = [[str(row[key]) for key in ("id", "namespace", "file", "text")] for row in description["listed"]]
        print_table(["id", "namespace", "file", "first words"], rows)


def _description_lines(description: JsonObject) -> Iterator[str]:
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
def purge(archive: str, records: tuple[str, ...], reason: str, output: str | None, **options: Any) -> None:
    """Rewrite an archive without some records and their text.

    Lines that contain a line of these records, of 16 characters or more, are removed from all text files and documents,
    and so are other records with such a line; a binary file that contains one is left out. Packed files are not
    searched. With --replace and no -o, the archive is rewritten in place. The audit record lists which ids were
    removed, when and why. Earlier archives and deltas still contain them, and so does the workspace.

    Example: truekeep alf purge agent.alf --record 6bc9a540-0280-5320-b2c7-d4fe987ed858 -o clean.alf
    """
    chosen = _export_options(options)
    if not output and not chosen.replace:
        raise BadInput("no target for the new archive", hint="give -o FILE, or --replace to rewrite it in place")
    target = Path(output or archive)
    with ProgressDisplay("purging") as display:
        report, purged = purge_archive(Path(archive), target, records, reason, chosen, display.step)
    data = {
        "path": str(target),
        "size": report.size,
        "records_gone": purged.records,
        "files_edited": list(purged.files),
        "files_dropped": list(purged.dropped),
        "records_edited": [],
        "entries_edited": list(purged.entries),
        "notes": list(purged.notes),
        "audit": purged.audit,
    }
    emit("alf-purge", data, _purge_lines(report, purged))


def _purge_lines(report: ExportReport[ArchiveSummary], purged: PurgeReport) -> Iterator[str]:
    without = f"without {_count(purged.records, 'record')}"
    yield f"{style('wrote', fg='green')} {report.path} ({_size(report.size)}) {without}"
    for path in (*purged.files, *purged.entries):
        yield f"  removed from {path}"
    for path in purged.dropped:
        yield style("  left out: ", fg="yellow") + path
    for note in purged.notes:
        yield style(f"  {note}", fg="yellow")
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
