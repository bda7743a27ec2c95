"""truekeep alf: the whole memory as one archive, and back."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.errors import BadInput
from truekeep.integrations.alf.archive_file import ExportOptions
from truekeep.integrations.alf.delta import DeltaContents
from truekeep.integrations.alf.diff import first_words
from truekeep.integrations.alf.export_options import delta_archive, export_archive
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.import_files import count_states, services_of
from truekeep.integrations.alf.import_flags import FlaggedArchive
from truekeep.integrations.alf.import_plan import import_archive
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.records import pretty
from truekeep.integrations.alf.rewrite import apply_archive, purge_archive
from truekeep.integrations.alf.sync_map import MAP_FILE, generic_map, write_map
from truekeep.integrations.alf.validate import check_archive, verdict
from truekeep.integrations.alf.writer import WrittenArchive
from truekeep.integrations.alf.zip_container import BadArchive
from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.choose_workspace import choose_workspace, find_in_use
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, print_table, workspace_option
from truekeep.text.unicode import clip, printable
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.integrations.alf.archive_file import ExportReport
    from truekeep.integrations.alf.import_files import ImportedFile
    from truekeep.integrations.alf.import_flags import Flag
    from truekeep.integrations.alf.import_plan import ImportReport
    from truekeep.integrations.alf.writer import Tell
    from truekeep.integrations.alf.zip_container import ArchiveProblem

EXIT_PROBLEMS = 1
_MOST_SHOWN = 20
_LEVELS = {"unreadable": "red", "error": "red", "warning": "yellow"}
_STATES = {"new": "green", "same": "bright_black", "different": "yellow", "blocked": "red", "held": "red"}
_SHOWN = {"size": "file_bytes"}  # the size of what is in it; that of the archive is another
_CHANGES = {"added": "green", "removed": "red", "changed": "yellow"}

_out = click.option("-o", "--output", metavar="FILE", shell_complete=complete_files, help="Archive to write.")
_replace = click.option("--replace", is_flag=True, help="Overwrite an existing file.")
_encrypt = click.option(
    "--encrypt", "recipients", multiple=True, metavar="KEY",
    help="Encrypt with age to this public key (age1…, ssh-…, or a file of them); may be repeated.",
)  # fmt: skip
_identity = click.option(
    "--identity",
    "identities",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="age private key, for encrypted archives.",
)
_large = click.option("--large", is_flag=True, help="Accept any size; only for archives you made yourself.")
_ids = click.option(
    "--ids", "scheme", type=click.Choice(("content", "positional")), default="content", show_default=True,
    help="Derive ids from the content of a record, or from its position in the file, as the first adapters did.",
)  # fmt: skip
_plain = click.option(
    "--plain", is_flag=True, help="Write only what the format's own tool would write, without truekeep's records."
)
_transcripts = click.option("--transcripts", is_flag=True, help="Include the archived sessions.")
_embeddings = click.option("--embeddings/--no-embeddings", default=True, help="Include vectors.  [default: yes]")


_STOPPED = {
    "import": "stopped; every file is whole, and running it again brings what is missing",
    **dict.fromkeys(("export", "delta", "apply", "purge"), "stopped; no half archive is left"),
}


class _Stoppable(click.Group):
    """Commands that may take long: a request to end clears up as Ctrl-C does, and what is then true is said."""

    def invoke(self, ctx: click.Context) -> Any:
        with _ended_like_ctrl_c():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                click.echo(_STOPPED.get(ctx.invoked_subcommand or "", "stopped"), err=True)
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: clearing up is not to be cut short
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.group(cls=_Stoppable)
def alf() -> None:
    """Export, import and compare archives in the Agent Life Format.

    An archive is a ZIP file: every memory as a record, the agent's identity, and the files themselves, byte for byte.
    Credentials are listed by name, never included.

    Example: truekeep alf export -o agent.alf
    """


def _tell(as_json: bool) -> Tell:
    if as_json or not sys.stderr.isatty():
        return lambda *_: None

    def tell(what: str, at: int, total: int) -> None:
        click.echo(f"\r\x1b[K{what} {at}/{total}" if at < total else "\r\x1b[K", nl=False, err=True)

    return tell


def _asked(given: dict[str, Any]) -> ExportOptions:
    base = given.get("base")
    return ExportOptions(
        scheme=given.get("scheme", "content"),
        plain=given.get("plain", False),
        transcripts=given.get("transcripts", False),
        embeddings=given.get("embeddings", True),
        base=Path(base) if base else None,
        recipients=given.get("recipients", ()),
        replace=given.get("replace", False),
        identities=given.get("identities", ()),
    )


def _target(output: str | None, stem: str, ending: str, given: dict[str, Any]) -> Path:
    """Where an archive goes: as asked, else here, named after the workspace and the day."""
    if output:
        return Path(output)
    sealed = ".age" if given.get("recipients") else ""
    return Path(f"{stem}-{datetime.now().astimezone():%Y-%m-%d}{ending}{sealed}")


def _size(size: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size = size / 1_000  # type: ignore[assignment]
    return f"{size:.1f} GB"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _held(done: WrittenArchive) -> str:
    named = f", {done.referenced:,} of them only named" if done.referenced else ""
    return f"{_many(done.records, 'record')}, {_many(done.files, 'file')} of {_size(done.size)}{named}"


def _show_made(made: ExportReport, kind: str, said: str, as_json: bool, **more: Any) -> None:
    if as_json:
        print_json(
            kind,
            {
                "path": str(made.path),
                "size": made.size,
                **{_SHOWN.get(key, key): value for key, value in made.written._asdict().items() if key != "manifest"},
                "notes": list(made.notes),
                "omitted": [item._asdict() for item in made.omitted],
                **more,
            },
        )
        return
    click.echo(f"{click.style('wrote', fg='green')} {made.path} ({_size(made.size)}): {said}")
    for note in made.notes:
        click.echo(click.style("note: ", fg="yellow") + printable(note), err=True)
    for item in made.omitted[:_MOST_SHOWN]:
        click.echo(click.style("left out: ", fg="yellow") + printable(f"{item.path}, {item.why}"), err=True)
    if len(made.omitted) > _MOST_SHOWN:
        click.echo(f"  and {len(made.omitted) - _MOST_SHOWN} more; --json lists them", err=True)


@alf.command()
@_out
@_ids
@_plain
@_transcripts
@_embeddings
@click.option(
    "--base",
    metavar="ARCHIVE",
    shell_complete=complete_files,
    help="Earlier archive whose record ids are kept across edits.",
)
@_encrypt
@_identity
@_replace
@json_option
@workspace_option
@click.pass_context
def export(ctx: click.Context, /, output: str | None, as_json: bool, workspace: str | None, **given: Any) -> None:
    """Write the workspace to an archive.

    Contains memory, identity and principals as records, all memory files unchanged, small artifacts, and the names of
    large ones. The same workspace always gives the same bytes. Nothing from `.truekeep`, git or other repositories is
    included, links are not followed, and a non-memory file that contains a credential is left out.

    Example: truekeep alf export -o agent.alf
    """
    with open_workspace(ctx, workspace) as opened:
        made = export_archive(opened, _target(output, opened.path.name, ".alf", given), _asked(given), _tell(as_json))
    done = made.written
    assert isinstance(done, WrittenArchive)
    _show_made(made, "alf-export", _held(done), as_json, agent=done.manifest["agent"])


@alf.command()
@click.option(
    "--since", metavar="ARCHIVE", shell_complete=complete_files, required=True, help="Archive to compare with."
)
@_out
@_ids
@_transcripts
@_embeddings
@_encrypt
@_identity
@_replace
@json_option
@workspace_option
@click.pass_context
def delta(
    ctx: click.Context, /, since: str, output: str | None, as_json: bool, workspace: str | None, **given: Any
) -> None:
    """Write the changes since an archive.

    Reads only changed files. `truekeep alf apply` combines both into a full archive.

    Example: truekeep alf delta --since agent.alf -o agent.alf-delta
    """
    with open_workspace(ctx, workspace) as opened:
        target = _target(output, opened.path.name, ".alf-delta", given)
        made = delta_archive(opened, target, Path(since), _asked(given), _tell(as_json))
    done = made.written
    assert isinstance(done, DeltaContents)
    told = f"{_many(done.created, 'record')} created, {done.updated} updated, {done.deleted} deleted; "
    told += f"{_many(done.files, 'file')} changed, {done.removed} removed"
    _show_made(made, "alf-delta", told if not done.is_nothing else "nothing changed", as_json)


@alf.command()
@click.argument("archive", shell_complete=complete_files)
@click.argument("deltas", nargs=-1, required=True, metavar="DELTA...", shell_complete=complete_files)
@_out
@_encrypt
@_identity
@_replace
@json_option
def apply(archive: str, deltas: tuple[str, ...], output: str | None, as_json: bool, **given: Any) -> None:
    """Combine an archive and its deltas, in order, into one archive.

    Example: truekeep alf apply agent.alf agent.alf-delta -o agent-new.alf
    """
    target = _target(output, f"{Path(archive).stem}-applied", ".alf", given)
    made = apply_archive(Path(archive), [Path(path) for path in deltas], target, _asked(given), _tell(as_json))
    done = made.written
    assert isinstance(done, WrittenArchive)
    _show_made(made, "alf-apply", _held(done), as_json)


@alf.command("import")
@click.argument("archive", shell_complete=complete_files)
@click.argument("folder", required=False, metavar="[WORKSPACE]", shell_complete=complete_folders)
@click.option("--dry-run", is_flag=True, help="Show what would change without changing anything.")
@click.option("--replace", is_flag=True, help="Overwrite existing files that differ.")
@click.option("--keep", is_flag=True, help="Keep existing files that differ.")
@click.option("--salvage", is_flag=True, help="Import the intact parts of a damaged archive, and report the rest.")
@click.option("--trust", is_flag=True, help="Import flagged files and executable bits too; only for your own archives.")
@click.option("--skip-flagged", is_flag=True, help="Skip flagged files; they stay in the archive.")
@_large
@_identity
@json_option
@workspace_option
@click.pass_context
def import_(
    ctx: click.Context, /, archive: str, folder: str | None, as_json: bool, workspace: str | None, **given: Any
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
    if given["trust"] and given["skip_flagged"]:
        raise BadInput("--trust and --skip-flagged are opposites", hint="say one of them")
    if given["replace"] and given["keep"]:
        raise BadInput("--replace and --keep are opposites", hint="say one of them")
    other = workspace or (ctx.obj or {}).get("workspace")
    if folder and other and os.path.abspath(Path(folder).expanduser()) != os.path.abspath(Path(other).expanduser()):
        raise click.UsageError(f"Two workspaces are named: {folder} and {other}.", ctx=ctx)
    named = folder or other
    root = Path(os.path.abspath(Path(named).expanduser() if named else default_path()))
    ask = _ask if not as_json and sys.stdin.isatty() and sys.stderr.isatty() else None
    in_use = find_in_use()
    try:
        done = import_archive(Path(archive), root, tell=_tell(as_json), ask=ask, **given)
    except FlaggedArchive as error:
        if not as_json and ask is None:
            _show_flags(error.flags)
        raise
    if done.is_host and not given["dry_run"]:
        told = choose_workspace(root, in_use)  # as `truekeep init` does
        done = done._replace(plan=done.plan._replace(notes=(*done.plan.notes, *told)))
    if as_json:
        print_json("alf-import", _import_json(done, given["dry_run"]))
    else:
        _show_import(done, given["dry_run"], kept=given["keep"])


def _show_flags(flags: Sequence[Flag], *, most: int = 200, err: bool = True) -> None:
    """What a person should know of the files that are to come."""
    for flag in flags[:most]:
        tint = "red" if flag.holds_back else "yellow"
        click.echo(f"{click.style(f'{flag.code:<12}', fg=tint)} {flag.place}  {flag.what}", err=err)
    if len(flags) > most:
        click.echo(f"  and {len(flags) - most} more; `--dry-run --json` lists them", err=err)


def _ask(flags: tuple[Flag, ...]) -> str:
    """Let a person decide on flagged files."""
    _show_flags(flags)
    files = len({flag.path for flag in flags if flag.holds_back})
    click.echo(f"{_many(files, 'file')} of the archive {'needs' if files == 1 else 'need'} your word.", err=True)
    words = {"a": "trust", "s": "skip", "n": "stop"}
    key: str = click.prompt(
        "import [a]ll of it, because the archive is your own, [s]kip these files, or [n]othing",
        type=click.Choice(tuple(words)), default="n", show_choices=False, err=True,
    )  # fmt: skip
    return words[key]


def _import_json(done: ImportReport, dry_run: bool) -> dict[str, Any]:
    return {
        "workspace": str(done.root),
        "agent": done.agent,
        "dry_run": dry_run,
        "rebuilt": done.plan.is_rebuilt,
        "counts": count_states(done.plan.files),
        "files": [
            {"path": file.line.path, "state": file.state, "why": file.why}
            for file in done.plan.files
            if file.state != "same"
        ],
        "written": done.written,
        "replaced": done.replaced,
        "canonical": done.is_host,
        "not_in_archive": [line.path for line in done.plan.elsewhere],
        "credentials": list(done.plan.credentials),
        "notes": list(done.plan.notes),
        "problems": [problem._asdict() for problem in done.problems],
        "own_archive": done.is_own,
        "flags": [flag._asdict() for flag in done.flags],
    }


def _show_import(done: ImportReport, dry_run: bool, *, kept: bool) -> None:
    plan = done.plan
    if dry_run:
        for file in [file for file in plan.files if file.state != "same"][:200]:
            why = f", {file.why}" if file.why else ""
            click.echo(f"{click.style(f'{file.state:<9}', fg=_STATES[file.state])} {printable(file.line.path)}{why}")
        _show_flags(done.flags, err=False)
    counts = count_states(plan.files)
    if done.replaced:
        del counts["different"]
        counts["replaced"] = done.replaced
    if kept:
        counts = {"kept" if state == "different" else state: count for state, count in counts.items()}
    shown = {"held": "held back"}
    told = ", ".join(f"{count:,} {shown.get(state, state)}" for state, count in counts.items() if count) or "no files"
    verb = "would import" if dry_run else "imported"
    click.echo(f"{click.style(verb, fg='green')} into {done.root}: {told}")
    if plan.is_rebuilt:
        click.echo("  rebuilt from records: the archive has no files of OpenClaw's")
    for note in plan.notes:
        click.echo(f"  {printable(note)}")
    _show_held(plan.of("held"))
    if done.is_host:
        click.echo("  this machine is its canonical host now; if another one still is: truekeep host release, there")
    _show_problems(done.problems)
    for line in plan.elsewhere[:_MOST_SHOWN]:
        click.echo(click.style("not in the archive: ", fg="yellow") + printable(line.path), err=True)
    for service in plan.credentials:
        click.echo(click.style("log in again: ", fg="yellow") + printable(service), err=True)


def _show_held(held: Sequence[ImportedFile]) -> None:
    if held:
        click.echo(click.style("held back, and still in the archive:", fg="yellow"), err=True)
    for file in held[:_MOST_SHOWN]:
        click.echo(f"  {printable(file.line.path)}: {printable(file.why)}", err=True)
    if len(held) > _MOST_SHOWN:
        click.echo(f"  and {len(held) - _MOST_SHOWN} more; --json lists them", err=True)


def _show_problems(problems: Sequence[ArchiveProblem]) -> None:
    for problem in problems:
        place = f"{printable(problem.place)}: " if problem.entry else ""
        click.echo(f"{place}{click.style(problem.level, fg=_LEVELS[problem.level])}: {printable(problem.message)}")


@alf.command()
@click.argument("archive", shell_complete=complete_files)
@_identity
@_large
@json_option
def validate(archive: str, identities: tuple[str, ...], large: bool, as_json: bool) -> int:
    """Check an archive or a delta, and list every error with entry and line.

    Checks the rules of the format and of its own tool. Exit 1 if the tool could not read it, or would call it invalid.

    Example: truekeep alf validate agent.alf
    """
    from truekeep.integrations.alf.archive_file import opened

    try:
        with opened(Path(archive), identities=identities, large=large) as reader:
            problems = list(check_archive(reader))
    except BadArchive as error:
        problems = [error.problem]
    found = verdict(problems)
    if as_json:
        print_json("alf-validate", {"verdict": found, "problems": [item._asdict() for item in problems]})
    else:
        _show_problems(problems)
        colour = {"ok": "green", "warning": "yellow"}.get(found, "red")
        click.echo(f"{printable(archive)}: {click.style(found, fg=colour)}")
    return 0 if found in ("ok", "warning") else EXIT_PROBLEMS


@alf.command()
@click.argument("archive", shell_complete=complete_files)
@click.option("--records", is_flag=True, help="List the records: id, namespace, file, first words.")
@_identity
@_large
@json_option
def show(archive: str, records: bool, identities: tuple[str, ...], large: bool, as_json: bool) -> None:
    """Show what is in an archive, without unpacking it.

    Example: truekeep alf show agent.alf --records
    """
    from truekeep.integrations.alf.archive_file import opened

    with opened(Path(archive), identities=identities, large=large) as reader:
        told = _told(Snapshot(reader), with_records=records)
    if as_json:
        print_json("alf-show", told)
        return
    _show_told(told)


def _told(snapshot: Snapshot, *, with_records: bool) -> dict[str, Any]:
    counts: Counter[tuple[str, str]] = Counter()
    listed = []
    for record, _ in snapshot.records():
        counts[str(record.get("namespace")), str(record.get("memory_type"))] += 1
        if with_records:
            row = {"id": record["id"], "namespace": record.get("namespace"), "file": scope_of(record)}
            listed.append({**row, "operation": record.get("operation"), "text": clip(first_words(record), 80)})
    files = snapshot.files().values()
    size = sum(line.size for line in files if line.entry is not None)  # as export counts
    tiers = Counter(line.tier for line in files)
    told: dict[str, Any] = {
        "kind": "delta" if snapshot.is_delta else "archive",
        "agent": snapshot.agent,
        "created_at": snapshot.manifest.get("created_at"),
        "size": snapshot.reader.size,
        "layers": sorted(snapshot.changes if snapshot.is_delta else snapshot.layers),
        "partitions": snapshot.partitions(),
        "records": [
            {"namespace": namespace, "memory_type": kind, "count": count}
            for (namespace, kind), count in sorted(counts.items())
        ],
        "files": {"count": len(files), "bytes": size, "tiers": dict(sorted(tiers.items()))},
        "credentials": list(services_of(snapshot)),
        "problems": [problem._asdict() for problem in snapshot.reader.problems],
    }
    return {**told, "listed": listed} if with_records else told


def _show_told(told: dict[str, Any]) -> None:
    agent = told["agent"]
    about = ", ".join(str(agent[key]) for key in ("source_runtime", "id") if agent.get(key))
    name = f"{agent['name']} ({about})" if agent.get("name") else f"agent {agent.get('id') or '?'}"
    name = printable(name)
    click.echo(f"{click.style(told['kind'], bold=True)} of {name}, state of {printable(str(told['created_at']))}")
    click.echo(f"  {_size(told['size'])}; layers: {printable(', '.join(told['layers']) or 'none')}")
    files = told["files"]
    tiers = ", ".join(f"{count:,} {tier}" for tier, count in files["tiers"].items())
    click.echo(f"  {_many(files['count'], 'file')} of {_size(files['bytes'])}" + (f" ({tiers})" if tiers else ""))
    for service in told["credentials"]:
        click.echo(f"  needs a login: {printable(service)}")
    for problem in told["problems"]:
        click.echo(click.style(f"  {printable(problem['entry'])}: {problem['message']}", fg="red"))
    if told["records"]:
        click.echo()
        rows = [
            [printable(row["namespace"]), printable(row["memory_type"]), f"{row['count']:,}"] for row in told["records"]
        ]
        print_table(["namespace", "type", "records"], rows)
    if told.get("listed"):
        click.echo()
        rows = [
            [
                printable(str(row["id"])),
                printable(str(row["namespace"])),
                printable(row["file"]),
                printable(row["text"]),
            ]
            for row in told["listed"]
        ]
        print_table(["id", "namespace", "file", "first words"], rows)


@alf.command()
@click.argument("archive", shell_complete=complete_files)
@click.option(
    "--record", "records", multiple=True, required=True, metavar="ID", help="Record to remove; may be repeated."
)
@click.option(
    "--reason", type=click.Choice(("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")),
    default="user_request", show_default=True, help="Reason, for the audit record.",
)  # fmt: skip
@_out
@_replace
@_encrypt
@_identity
@json_option
def purge(archive: str, records: tuple[str, ...], reason: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Rewrite an archive without some records and their text.

    Each line of 16 characters or more of these records is removed everywhere in the archive, from files and other
    records too, however it is quoted, escaped or encoded; a binary file that contains one is left out. Packed files are
    not searched. With --replace and no -o, the archive is rewritten in place. The audit record lists which ids were
    removed, when and why. Earlier archives and deltas still contain them, and so does the workspace.

    Example: truekeep alf purge agent.alf --record 6bc9a540-0280-5320-b2c7-d4fe987ed858 -o clean.alf
    """
    if not output and not given["replace"]:
        raise BadInput("where the new archive goes is not said", hint="-o FILE, or --replace for in place")
    target = Path(output or archive)
    made, purged = purge_archive(Path(archive), target, records, reason, _asked(given), _tell(as_json))
    if as_json:
        told = {
            "files_edited": list(purged.files),
            "files_dropped": list(purged.dropped),
            "records_edited": list(purged.changed),
            "entries_edited": list(purged.entries),
            "notes": list(purged.notes),
            "audit": purged.audit,
        }
        print_json("alf-purge", {"path": str(target), "size": made.size, "records_gone": purged.records, **told})
        return
    click.echo(
        f"{click.style('wrote', fg='green')} {target} ({_size(made.size)}) without {_many(purged.records, 'record')}"
    )
    for path in (*purged.files, *purged.entries):
        click.echo(f"  cut out of {printable(path)}")
    for record in purged.changed:
        click.echo(f"  cut out of record {printable(record)}")
    for path in purged.dropped:
        click.echo(click.style("  left out: ", fg="yellow") + printable(path))
    for note in purged.notes:
        click.echo(click.style(f"  {printable(note)}", fg="yellow"))
    click.echo(f"  audit record {purged.audit['purge_id']}; it still stands in the workspace and in older archives")


@alf.command()
@click.argument("one", shell_complete=complete_files)
@click.argument("other", shell_complete=complete_files)
@_identity
@_large
@click.option("--exit-code", is_flag=True, help="Exit 1 if they differ.")
@json_option
def diff(one: str, other: str, identities: tuple[str, ...], large: bool, exit_code: bool, as_json: bool) -> int:
    """Show what differs between two archives: records, files, documents.

    Example: truekeep alf diff old.alf new.alf
    """
    from truekeep.integrations.alf.archive_file import opened
    from truekeep.integrations.alf.diff import compare

    asked: dict[str, Any] = {"identities": identities, "large": large}
    with opened(Path(one), **asked) as left, opened(Path(other), **asked) as right:
        pair = Snapshot(left), Snapshot(right)
        for snapshot in () if all(snapshot.is_delta for snapshot in pair) else pair:
            snapshot.require_full()
        found = list(compare(*pair))
    if as_json:
        print_json("alf-diff", {"same": not found, "differences": [item._asdict() for item in found]})
    else:
        for item in found:
            about = " ".join(part for part in (item.where, ", ".join(item.fields), item.text) if part)
            change = click.style(f"{item.change:<8}", fg=_CHANGES[item.change])
            click.echo(f"{change} {item.kind:<8} {printable(f'{item.name}  {about}'.rstrip())}")
        click.echo(f"{_many(len(found), 'difference')}" if found else "they hold the same")
    return EXIT_PROBLEMS if found and exit_code else 0


@alf.command("map")
@click.option("--write", is_flag=True, help="Write it to .alf-map.json in the workspace.")
@click.option("--replace", is_flag=True, help="Overwrite an existing map that differs.")
@json_option
@workspace_option
@click.pass_context
def map_(ctx: click.Context, write: bool, replace: bool, as_json: bool, workspace: str | None) -> None:
    """Print the map that lets the format's own tool sync this workspace.

    Stock `alf` from 1.1 on, with its `generic` runtime, reads it from .alf-map.json.

    Example: truekeep alf map --write
    """
    with open_workspace(ctx, workspace) as opened:
        document = generic_map()
        path = write_map(opened, document, replace=replace) if write else None
    if as_json:
        print_json("alf-map", {"path": str(path) if path else None, "map": document})
    elif path is not None:
        click.echo(f"{click.style('wrote', fg='green')} {path}; now `alf sync -r generic -w {opened.path}`")
    else:
        click.echo(pretty(document).decode())
        click.echo(f"--write puts it into {opened.path / MAP_FILE}", err=True)
