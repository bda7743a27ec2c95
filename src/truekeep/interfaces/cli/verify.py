"""`truekeep verify`: check memory against the current code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.model import CARDS
from truekeep.core.repository import find_top
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.options import (
    checked_folder,
    dry_run_option,
    exit_code_option,
    has_workspace,
    json_flag,
    open_workspace,
    read_named,
    usage_error,
    workspace_option,
)
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, style
from truekeep.text.unicode import clip
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.memory_reader import CHANGELOG_NAMES, expand_folders, is_outside, text_memory
from truekeep.verify.results import count_reasons, count_verdicts, is_unchecked
from truekeep.verify.standalone import find_checkout, verify_anywhere, verify_files

if TYPE_CHECKING:
    from truekeep.maintenance.repair import Repair
    from truekeep.verify.claim import Claim
    from truekeep.verify.results import CheckedMemory
    from truekeep.verify.verdict import Verdict
    from truekeep.workspace.workspace import Workspace

EXIT_ROT = 12
EXIT_UNCHECKED = 13
MAX_TEXT = 1_000_000  # bytes of a text from standard input
_MAX_REASONS = 4  # in the summary
_MAX_PLACES = 4  # that are named besides the first one
_ALARMS = ("gone", "moved", "changed")
_COLOURS = {"gone": "red", "moved": "yellow", "changed": "cyan", "unverifiable": "bright_black", "confirmed": "green"}
_DEEPEN = {  # how a clone gets what it does not have
    "shallow": "`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout",
    "partial": "clone it again without `--filter`",
}


@click.command()
@click.argument("files", nargs=-1, shell_complete=complete_files)
@click.option("--repo", "repository", metavar="DIR", shell_complete=complete_folders, help="Checkout to check against.")
@click.option(
    "--changed", is_flag=True, help="Check only memory that changed, or whose evidence changed, since the last check."
)
@click.option("--fix", is_flag=True, help="Write new locations into memory; propose removing what is gone.")
@dry_run_option
@click.option("--stdin", "from_stdin", is_flag=True, help="Check the text on standard input.")
@click.option("--list-claims", is_flag=True, help="List the claims of one file, and why each counts; check nothing.")
@click.option("--online", is_flag=True, help="Check links too.")
@click.option("--all", "show_all", is_flag=True, help="Show every claim, also confirmed, weak and past ones.")
@exit_code_option("Exit 12 if something is gone or moved, 13 if nothing could be checked.")
@json_flag
@workspace_option
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    repository: str | None,
    workspace: str | None,
    fix: bool,
    dry_run: bool,
    show_all: bool,
    exit_code: bool,
    **given: Any,
) -> int:
    """Check memory against the current code.

    Paths, lines, symbols, flags, commits, versions, ports, decisions: each is confirmed, moved (to where), changed,
    gone (since which commit) or unverifiable (why). Checks all cards and documents unless files are given; of a folder,
    the Markdown files below it. --dry-run goes with --fix.

    Example: truekeep verify --fix --dry-run
    """
    _check_options(files, fix=fix, dry_run=dry_run, **given)
    if given["list_claims"]:
        _list_claims(files[0], show_all=show_all)
        return 0
    files = tuple(expand_folders(files))
    root = (_checkout(repository) if repository is not None else None) or find_checkout(files)
    has_memory, online = has_workspace(ctx, workspace), given["online"]
    opened: Workspace | None = None
    if given["from_stdin"]:
        opened = open_workspace(ctx, workspace) if has_memory else None
        checked = [_check_text(opened, _read_text("-"), root or find_top(Path.cwd()), online=online)]
    elif files and root is not None and not fix and not has_memory:
        checked = verify_files(files, root=root, online=online)
    else:
        opened = open_workspace(ctx, workspace)
        with ProgressDisplay("verifying") as display:
            checked = opened.verification.verify(
                files, repository=root, changed=given["changed"], online=online, progress=display.step
            )
    repairs, done, entries = _repair(opened, checked, dry_run=dry_run) if opened and fix else ((), (), ())
    shown = [item._replace(path=item.path.removeprefix("./")) for item in checked]  # as it was given

    def render() -> Iterator[Shown]:
        yield from _render(shown, show_all=show_all or given["from_stdin"])
        if opened is not None and not fix and not given["from_stdin"]:
            yield from _render_next(checked)
        yield from _render_repairs(repairs, done, entries, dry_run=dry_run)

    summary = {"files": len(checked), **count_verdicts(checked)}
    emit("verify", {"files": shown, "summary": summary, "repairs": repairs, "done": done}, render())
    if not exit_code:
        return 0
    return EXIT_ROT if any(item.is_rotten for item in checked) else EXIT_UNCHECKED if is_unchecked(checked) else 0


def _check_options(
    files: Sequence[str], *, fix: bool, dry_run: bool, list_claims: bool, from_stdin: bool, changed: bool, **_: Any
) -> None:
    if list_claims and (len(files) != 1 or fix or changed or from_stdin):
        raise usage_error("--list-claims takes one file, or - for standard input")
    if from_stdin and (files or fix or changed):
        raise usage_error("--stdin takes no files, no --fix and no --changed")
    if dry_run and not fix:
        raise usage_error("--dry-run goes with --fix")


def _checkout(repository: str) -> Path:
    top = find_top(checked_folder(repository).resolve())
    if top is None:
        raise BadInput(f"{repository} is not in a git repository", hint="name a checkout with --repo")
    return top.resolve()


def _check_text(opened: Workspace | None, text: str, root: Path | None, *, online: bool) -> CheckedMemory:
    if opened is not None:
        return opened.verification.verify_text(text, repository=root, online=online)
    return verify_anywhere([text_memory("", text)], root=root, online=online, is_current=True)[0]


def _read_text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read(MAX_TEXT + 1) if file == "-" else read_named(file)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", hint="name a Markdown file, or - for standard input") from error
    if file == "-" and len(data) > MAX_TEXT:
        raise BadInput(f"the text is larger than {MAX_TEXT} bytes", hint="check it in parts")
    return data.decode("utf-8", "replace")


def _repair(
    opened: Workspace, checked: Sequence[CheckedMemory], *, dry_run: bool
) -> tuple[Sequence[Repair], Sequence[str], range]:
    """The repairs, what was done, and the entries of the ledger that it made."""
    before = opened.history.newest()
    repairs, done = opened.verification.repair(checked, dry_run=dry_run)
    outside = [item.path.removeprefix("./") for item in checked if is_outside(item.path) and item.is_rotten]
    done += [f"{path}: not a file of this memory, so nothing was written there" for path in outside]
    return repairs, done, range(before + 1, opened.history.newest() + 1)


# --- Text ------------------------------------------------------------------------------------------------------------


def _render(checked: Sequence[CheckedMemory], *, show_all: bool) -> Iterator[Shown]:
    places = {} if show_all else _alarm_places(checked)
    for item in checked:
        shown = [verdict for verdict in item.verdicts if show_all or id(verdict) in places]
        if not shown and not item.left_out:
            continue
        at = f" at {item.head[:10]}" if item.head else ""
        doing = f", {item.doing} in progress" if item.doing else ""
        against = item.repository or ", ".join(Path(root).name for root in item.roots) or "no repository"
        yield f"{style((item.path or 'standard input'), bold=True)}  {style(f'{against}{at}{doing}', dim=True)}"
        for verdict in sorted(shown, key=lambda verdict: (verdict.claim.line, verdict.claim.column)):
            yield from _render_verdict(verdict, places.get(id(verdict), ()))
        if item.left_out:
            yield style(f"  {item.left_out} more claims were left out: the limit is 5000 for a file", fg="yellow")
    if not checked:
        yield "nothing to check: there are no cards or documents, or none changed since the last check"
        return
    counts = count_verdicts(checked)
    parts = [style(f"{counts[word]} {word}", fg=colour) for word, colour in _COLOURS.items() if counts[word]]
    yield f"{many(len(checked), 'file')}: {', '.join(parts) or 'no claims'}"
    if not show_all:
        yield from _render_reasons(checked)
    yield from _render_missing(checked)


def _alarm_places(checked: Sequence[CheckedMemory]) -> dict[int, tuple[str, ...]]:
    """By the id of the first alarm about a thing: all places of memory that say it, so that it is shown once."""
    alike: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for item in checked:
        for verdict in sorted(item.verdicts, key=lambda verdict: (verdict.claim.line, verdict.claim.column)):
            if verdict.verdict in _ALARMS:
                place = f"{item.path}:{verdict.claim.line}" if item.path else f"line {verdict.claim.line}"
                alike.setdefault((verdict.verdict, verdict.claim.shown, verdict.why), []).append((id(verdict), place))
    return {found[0][0]: tuple(dict.fromkeys(place for _, place in found)) for found in alike.values()}


def _render_verdict(verdict: Verdict, places: Sequence[str] = ()) -> Iterator[str]:
    word = style(verdict.verdict.ljust(12), fg=_COLOURS[verdict.verdict])
    dirty = style(" (not committed)", fg="yellow") if verdict.is_dirty else ""
    several = f", {len(places)} places" if len(places) > 1 else ""
    yield f"  {verdict.claim.line:>4}  {word} {clip(verdict.claim.shown, 70)}{several}"
    yield f"        {style('↳ ' + verdict.why, dim=verdict.verdict == 'confirmed')}{dirty}"
    yield from (f"          {candidate}" for candidate in verdict.candidates)
    if len(places) > 1:
        more = f" and {len(places) - 1 - _MAX_PLACES} more" if len(places) - 1 > _MAX_PLACES else ""
        yield style(f"        also {', '.join(places[1 : _MAX_PLACES + 1])}{more}", dim=True)


def _render_reasons(checked: Sequence[CheckedMemory]) -> Iterator[str]:
    """Why claims could not be checked, each reason once."""
    reasons = count_reasons(checked)
    for why, places in reasons[:_MAX_REASONS]:
        where = f"{places[0]}, …" if len(places) > 1 else places[0]
        yield style(f"  {len(places)} not checked: {clip(why, 400)} ({where})", dim=True)
    if len(reasons) > _MAX_REASONS:
        more = sum(len(places) for _, places in reasons[_MAX_REASONS:])
        yield style(f"  {more} not checked for other reasons (--all shows each claim)", dim=True)
    homeless = [item for item in checked if item.verdicts and not (item.repository or item.roots)]
    if cards := sum(item.path.startswith(f"{CARDS}/") for item in homeless):
        yield f"next: `truekeep repos match` finds the repository of cards that name none ({cards} here)"


def _render_missing(checked: Sequence[CheckedMemory]) -> Iterator[str]:
    """Which clones do not have all of history, and what to do about it."""
    for kind in sorted({item.missing for item in checked} - {""}):
        names = sorted({Path(root).name for item in checked if item.missing == kind for root in item.roots})
        are = f"is a {kind} clone" if len(names) == 1 else f"are {kind} clones"
        told = f"{', '.join(names)} {are}: what is gone is found only where the tree shows it"
        yield style(f"{told}. For the rest: {_DEEPEN[kind]}", fg="yellow")
    if is_unchecked(checked):
        yield style("nothing could be checked", fg="red")


def _render_next(checked: Sequence[CheckedMemory]) -> Iterator[str]:
    """What --fix would do. Claims that are gone only in a shallow clone and files outside memory do not count."""
    own = [item for item in checked if not is_outside(item.path)]
    cards = [item for item in own if item.path.startswith(f"{CARDS}/") and not item.missing]
    steps = ["writes the moves"] * any(item.count("moved") for item in own)
    steps += ["proposes what to drop"] * any(item.count("gone") for item in cards)
    if steps:
        yield f"next: truekeep verify --fix {' and '.join(steps)}"


def _render_repairs(
    repairs: Sequence[Repair], done: Sequence[str], entries: Sequence[int], *, dry_run: bool
) -> Iterator[str]:
    for repair in repairs if dry_run else ():
        for edit in repair.edits:
            yield f"would write {repair.path}:{edit.verdict.claim.line}  {edit.shown}"
        if repair.draft is not None:
            what = "remove" if repair.draft.is_removal else "drop from"
            yield f"would propose to {what} {repair.path}: draft {repair.draft.id}"
    yield from (style("done     ", fg="green") + line for line in done)
    for repair in repairs:
        if repair.waiting_id:
            known = f"{repair.path}: what is gone is proposed already; truekeep review show {repair.waiting_id}"
            yield style("waits    ", fg="yellow") + known
        if repair.kept:
            yield style("kept     ", dim=True) + repair.kept
        yield from (style("by hand  ", fg="yellow") + line for line in repair.left)
    if entries:
        span = str(entries[0]) if len(entries) == 1 else f"{entries[0]}-{entries[-1]}"
        yield f"undo with: truekeep undo {span}"
    if not dry_run and any(repair.draft is not None or repair.waiting is not None for repair in repairs):
        yield "next: truekeep review walk"


# --- Claims ----------------------------------------------------------------------------------------------------------


def _list_claims(file: str, *, show_all: bool) -> None:
    """Print the checkable claims of a Markdown file, and why each counts. Checks nothing."""
    is_changelog = Path(file).name.lower().startswith(CHANGELOG_NAMES)
    found = extract_claims(_read_text(file), is_changelog=is_changelog)
    shown = [claim for claim in found.claims if show_all or not (claim.is_weak or claim.is_past)]
    hidden = len(found.claims) - len(shown)

    def render() -> Iterator[Shown]:
        if shown:
            yield Table(("line", "kind", "claim", "about", "why"), [_row(claim) for claim in shown])
        more = (
            f"; {hidden} more count only if the repository knows them, or speak of the past (--all)" if hidden else ""
        )
        yield f"{many(len(shown), 'claim')}{more}"
        if found.left_out:
            yield Aside(style(f"{found.left_out} more were left out", fg="yellow"))

    emit("claims", {"file": file, "claims": shown, "hidden": hidden, "left_out": found.left_out}, render())


def _row(claim: Claim) -> tuple[str, ...]:
    about = f"in {claim.place}" if claim.place and claim.kind != "line" else claim.owner
    if claim.near:
        about = f"holds {claim.near}"
    why = claim.why + (", if known" if claim.is_weak else "") + (", past" if claim.is_past else "")
    return str(claim.line), claim.kind, clip(claim.text, 60), clip(about, 40), why
