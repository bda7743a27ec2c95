"""`truekeep verify` and `truekeep repos`: check memory against the current code."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.git import find_top
from truekeep.core.model import CARDS, as_stamp
from truekeep.interfaces.cli.complete_values import complete_files, complete_folders
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    read_named,
    shown_verdict,
    workspace_option,
)
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.text.unicode import clip
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.match_repositories import count_outcomes
from truekeep.verify.memory_reader import expand_folders, is_outside, read_memory, text_memory
from truekeep.verify.results import count_verdicts
from truekeep.verify.standalone import verify_anywhere
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.maintenance.repair import Repair
    from truekeep.verify.claim import Claim
    from truekeep.verify.match_repositories import AssignmentOutcome, Match
    from truekeep.verify.results import CheckedMemory
    from truekeep.verify.verdict import Verdict
    from truekeep.workspace.workspace import Workspace

EXIT_ROT = 12
EXIT_UNCHECKED = 13
_COLOURS = {"confirmed": "green", "moved": "yellow", "changed": "cyan", "gone": "red", "unverifiable": "bright_black"}
_ORDER = ("gone", "moved", "changed", "unverifiable", "confirmed")
_PLACE = re.compile(r" \([^()]*:\d+\)\Z")
_REASONS = 4  # that the summary tells
_NOT_LOOKED_AT = (
    "no-checkout",
    "no-commits",
    "incomplete",
    "git-failed",
    "out-of-time",
)  # the claim is not what stands in the way
_DEEPEN = {  # how a clone gets what it does not have
    "shallow": "`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout",
    "partial": "clone it again without `--filter`",
}
_MOST = 1_000_000  # characters of a text from standard input


@click.command()
@click.argument("files", nargs=-1, shell_complete=complete_files)
@click.option("--repo", "repository", metavar="DIR", shell_complete=complete_folders, help="Checkout to check against.")
@click.option(
    "--changed", is_flag=True, help="Check only memory that changed, or whose evidence changed, since the last check."
)
@click.option("--fix", is_flag=True, help="Write new locations into memory; propose removing what is gone.")
@click.option("--dry-run", is_flag=True, help="With --fix: show what would be written.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Check the text on standard input.")
@click.option("--list-claims", is_flag=True, help="List the claims of one file, and why each counts; check nothing.")
@click.option("--online", is_flag=True, help="Check links too.")
@click.option("--all", "show_all", is_flag=True, help="Show every claim, also confirmed, weak and past ones.")
@click.option(
    "--exit-code", is_flag=True, help="Exit 12 if something is gone or moved, 13 if nothing could be checked."
)
@json_option
@workspace_option
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    repository: str | None,
    as_json: bool,
    workspace: str | None,
    **given: Any,
) -> int:
    """Check memory against the current code.

    Paths, lines, symbols, flags, commits, versions, ports, decisions: each is confirmed, moved (to where), changed,
    gone (since which commit) or unverifiable (why). Checks all cards and documents unless files are given; of a folder,
    the Markdown files below it.

    Example: truekeep verify --fix --dry-run
    """
    if given["list_claims"]:
        if len(files) != 1 or given["fix"] or given["changed"] or given["from_stdin"]:
            raise click.UsageError("--list-claims takes one file, or - for standard input", ctx=ctx)
        list_claims(files[0], show_all=given["show_all"], as_json=as_json)
        return 0
    files = tuple(expand_folders(files))
    root = _checked_root(repository) or _around(files)
    if given["dry_run"] and not given["fix"]:
        raise click.UsageError("--dry-run goes with --fix", ctx=ctx)
    opened: Workspace | None = None
    if given["from_stdin"]:
        if files or given["fix"] or given["changed"]:
            raise click.UsageError("--stdin takes no files, no --fix and no --changed", ctx=ctx)
        checked = [_from_stdin(ctx, workspace, root, online=given["online"])]
    elif files and root is not None and not given["fix"] and not _has_workspace(ctx, workspace):
        checked = _anywhere(files, root, online=given["online"])
    else:
        opened = open_workspace(ctx, workspace)
        with ProgressDisplay("verifying") as display:
            checked = opened.verification.verify(
                files, repository=root, changed=given["changed"], online=given["online"], progress=display.step
            )
    repairs: Sequence[Repair] = ()
    done: Sequence[str] = ()
    if given["fix"] and opened is not None:
        repairs, done = opened.verification.repair(checked, dry_run=given["dry_run"])
        outside = [_as_given(item).path for item in checked if is_outside(item.path) and _is_rotten(item)]
        done = [*done, *(f"{path}: not a file of this memory, so nothing was written there" for path in outside)]
    if as_json:
        print_json("verify", shown_checked([_as_given(item) for item in checked], repairs, done))
    else:
        _show([_as_given(item) for item in checked], show_all=given["show_all"] or given["from_stdin"])
        if opened is not None and not given["fix"]:
            _show_next(checked)
        _show_repairs(repairs, done, dry_run=given["dry_run"])
    if not given["exit_code"]:
        return 0
    return EXIT_ROT if any(map(_is_rotten, checked)) else EXIT_UNCHECKED if _is_unchecked(checked) else 0


def _as_given(item: CheckedMemory) -> CheckedMemory:
    """A checked file under the name that it was given; see `is_outside`."""
    return item._replace(path=item.path.removeprefix("./"))


def _is_rotten(item: CheckedMemory) -> bool:
    return any(verdict.is_rot for verdict in item.verdicts)


def _is_unchecked(checked: Sequence[CheckedMemory]) -> bool:
    """True if there were claims, but none could be checked: no checkout, no history, no git."""
    verdicts = [verdict for item in checked for verdict in item.verdicts]
    return all(verdict.verdict == "unverifiable" for verdict in verdicts) and any(
        verdict.reason in _NOT_LOOKED_AT for verdict in verdicts
    )


def _checked_root(repository: str | None) -> Path | None:
    if repository is None:
        return None
    root = Path(repository).expanduser()
    if not root.is_dir():
        raise BadInput(f"{repository} is not a folder", hint="name a checkout with --repo")
    top = find_top(root.resolve())
    if top is None:
        raise BadInput(f"{repository} is not in a git repository", hint="name a checkout with --repo")
    return top.resolve()


def _around(files: Sequence[str]) -> Path | None:
    """The checkout that contains all of these files, if they name no repository; None for memory files."""
    tops = set()
    for name in files:
        path = Path(name).resolve()
        memory = read_memory(str(path), name) if path.is_file() else None
        top = find_top(path.parent)
        if memory is None or memory.origin.repository or top is None or _is_memory(path):
            return None
        tops.add(top)
    return tops.pop() if len(tops) == 1 else None


def _is_memory(path: Path) -> bool:
    return any((folder / ".truekeep").is_dir() for folder in path.parents)


def _from_stdin(ctx: click.Context, workspace: str | None, root: Path | None, *, online: bool) -> CheckedMemory:
    raw = sys.stdin.buffer.read(_MOST + 1)
    if len(raw) > _MOST:
        raise BadInput(f"the text is larger than {_MOST} bytes", hint="check it in parts")
    text = raw.decode("utf-8", "replace")
    root = root or _here()
    if _has_workspace(ctx, workspace):
        return open_workspace(ctx, workspace).verification.verify_text(text, repository=root, online=online)
    return verify_anywhere([text_memory("", text)], root=root, online=online, is_current=True)[0]


def _anywhere(files: Sequence[str], root: Path, *, online: bool) -> list[CheckedMemory]:
    """Files and a checkout are all that is needed: no workspace."""
    memories = []
    for file in files:
        memory = read_memory(file, file)
        if memory is None:
            raise BadInput(f"{file} is not readable text", hint="name a Markdown file")
        memories.append(memory)
    return verify_anywhere(memories, root=root, online=online)


def _has_workspace(ctx: click.Context, workspace: str | None) -> bool:
    chosen = workspace or (ctx.obj or {}).get("workspace")
    return bool(chosen) or (default_path() / ".truekeep").is_dir()


def _here() -> Path | None:
    return find_top(Path.cwd())


def shown_checked(
    checked: Sequence[CheckedMemory], repairs: Sequence[Repair] = (), done: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "files": [
            {
                "path": item.path,
                "repository": item.repository,
                "checkouts": list(item.roots),
                "head": item.head,
                "branch": item.branch,
                "in_progress": item.doing,
                "history": item.missing or ("whole" if item.roots else ""),
                "checked_at": _stamp(item.checked_at),
                "left_out": item.left_out,
                "problems": list(item.problems),
                "claims": [shown_verdict(verdict) for verdict in item.verdicts],
            }
            for item in checked
        ],
        "summary": {"files": len(checked), **count_verdicts(checked)},
        "repairs": [
            {
                "path": repair.path,
                "edits": [{"line": edit.verdict.claim.line, "old": edit.old, "new": edit.new} for edit in repair.edits],
                "draft": repair.draft.id if repair.draft else "",
                "waiting": repair.waiting.id if repair.waiting and not repair.draft else "",
                "left": list(repair.left),
            }
            for repair in repairs
        ],
        "done": list(done),
    }


def _stamp(seconds: float) -> str:
    return as_stamp(datetime.fromtimestamp(seconds, UTC))


def _show_next(checked: Sequence[CheckedMemory]) -> None:
    """Print what --fix would do. Claims that are gone only in a shallow clone and files outside memory do not count."""
    own = [item for item in checked if not is_outside(item.path)]
    cards = [item for item in own if item.path.startswith(f"{CARDS}/") and not item.missing]
    has_moves = any(verdict.verdict == "moved" for item in own for verdict in item.verdicts)
    has_drops = any(verdict.verdict == "gone" for item in cards for verdict in item.verdicts)
    if has_moves or has_drops:
        steps = ["writes the moves"] * has_moves + ["proposes what to drop"] * has_drops
        echo(f"next: truekeep verify --fix {' and '.join(steps)}")


def _show(checked: Sequence[CheckedMemory], *, show_all: bool) -> None:
    for item in checked:
        shown = [verdict for verdict in item.verdicts if show_all or verdict.verdict in ("gone", "moved", "changed")]
        if not shown and not item.left_out:
            continue
        at = f" at {item.head[:10]}" if item.head else ""
        doing = f", {item.doing} in progress" if item.doing else ""
        held_against = item.repository or ", ".join(Path(root).name for root in item.roots) or "no repository"
        where = f"{held_against}{at}{doing}"
        echo(f"{style((item.path or 'standard input'), bold=True)}  {style(where, dim=True)}")
        for verdict in sorted(shown, key=lambda verdict: (verdict.claim.line, verdict.claim.column)):
            _show_verdict(verdict)
        if item.left_out:
            echo(style(f"  {item.left_out} more claims were left out: the limit is 5000 for a file", fg="yellow"))
    counts = count_verdicts(checked)
    parts = [style(f"{counts[word]} {word}", fg=_COLOURS[word]) for word in _ORDER if counts[word]]
    if not checked:
        echo("nothing to check: there are no cards or documents, or none changed since the last check")
        return
    echo(f"{len(checked)} {'memory' if len(checked) == 1 else 'memories'}: {', '.join(parts) or 'no claims'}")
    _show_reasons(checked, show_all=show_all)
    _show_missing(checked)


def _show_verdict(verdict: Verdict) -> None:
    claim = verdict.claim
    word = style(verdict.verdict.ljust(12), fg=_COLOURS[verdict.verdict])
    dirty = style(" (not committed)", fg="yellow") if verdict.is_dirty else ""
    echo(f"  {claim.line:>4}  {word} {clip(claim.shown, 70)}")
    echo(f"        {style('↳ ' + verdict.why, dim=verdict.verdict == 'confirmed')}{dirty}")
    for candidate in verdict.candidates:
        echo(f"          {candidate}")


def _show_reasons(checked: Sequence[CheckedMemory], *, show_all: bool) -> None:
    """Why things could not be checked, each reason once."""
    if show_all:
        return
    reasons: dict[str, list[str]] = {}
    for item in checked:
        for verdict in item.verdicts:
            if verdict.verdict == "unverifiable":
                why = _PLACE.sub("", verdict.why)  # one reason, wherever it was met
                reasons.setdefault(why, []).append(f"{item.path}:{verdict.claim.line}")
    ordered = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    for why, places in ordered[:_REASONS]:
        where = f"{places[0]}, …" if len(places) > 1 else places[0]
        what = f"  {len(places)} unverifiable: {clip(why, 400)} ({where})"
        echo(style(what, dim=True))
    if len(ordered) > _REASONS:
        more = many(len(ordered) - _REASONS, "more reason")
        echo(style(f"  … and {more} (--all shows each claim)", dim=True))
    homeless = [item for item in checked if item.path.startswith(f"{CARDS}/") and not (item.repository or item.roots)]
    if homeless and sum(len(item.verdicts) for item in homeless):
        echo(
            f"next: `truekeep repos match` says which repository the cards are about that name none ({len(homeless)}"
            " here); --fix writes it"
        )


def _show_missing(checked: Sequence[CheckedMemory]) -> None:
    """Which clones do not have all of history, and what to do about it."""
    for kind in sorted({item.missing for item in checked} - {""}):
        names = sorted({Path(root).name for item in checked if item.missing == kind for root in item.roots})
        are = f"is a {kind} clone" if len(names) == 1 else f"are {kind} clones"
        told = f"{', '.join(names)} {are}: what is gone is found only where the tree shows it"
        echo(style(f"{told}. For the rest: {_DEEPEN[kind]}", fg="yellow"))
    if _is_unchecked(checked):
        echo(style("nothing could be checked", fg="red"))


def _show_repairs(repairs: Sequence[Repair], done: Sequence[str], *, dry_run: bool) -> None:
    for repair in repairs if dry_run else ():
        for edit in repair.edits:
            place = f"{repair.path}:{edit.verdict.claim.line}"
            echo(f"would write {place}  {edit.shown}")
        if repair.draft is not None:
            what = "remove" if repair.draft.is_removal else "drop from"
            echo(f"would propose to {what} {repair.path}: draft {repair.draft.id}")
    for line in done:
        echo(style("done     ", fg="green") + line)
    for repair in repairs:
        if repair.waiting is not None and repair.draft is None:
            known = f"{repair.path}: what is gone is proposed already; truekeep review show {repair.waiting.id}"
            echo(style("waits    ", fg="yellow") + known)
        if repair.kept:
            echo(style("kept     ", dim=True) + repair.kept)
        for line in repair.left:
            echo(style("by hand  ", fg="yellow") + line)
    if not dry_run and any(repair.draft is not None or repair.waiting is not None for repair in repairs):
        echo("next: truekeep review walk")


def list_claims(file: str, *, show_all: bool, as_json: bool) -> None:
    """Print the checkable claims of a Markdown file, and why each counts. Checks nothing."""
    text = _read_any(file)
    name = Path(file).name.lower()
    found = extract_claims(text, is_changelog=name.startswith(("changelog", "history", "changes", "release")))
    shown = [claim for claim in found.claims if show_all or not (claim.is_weak or claim.is_past)]
    hidden = len(found.claims) - len(shown)
    if as_json:
        rows = [claim._asdict() for claim in shown]
        print_json("claims", {"file": file, "claims": rows, "hidden": hidden, "left_out": found.left_out})
        return
    if shown:
        print_table(("line", "kind", "claim", "about", "why"), [_row(claim) for claim in shown])
    tail = f"; {hidden} more count only if the repository knows them, or speak of the past (--all)" if hidden else ""
    echo(f"{len(shown)} {'claim' if len(shown) == 1 else 'claims'}{tail}")
    if found.left_out:
        echo(style(f"{found.left_out} more were left out", fg="yellow"), err=True)


def _row(claim: Claim) -> tuple[str, ...]:
    about = f"in {claim.place}" if claim.place and claim.kind != "line" else claim.owner
    if claim.near:
        about = f"holds {claim.near}"
    why = claim.why + (", if known" if claim.is_weak else "") + (", past" if claim.is_past else "")
    return str(claim.line), claim.kind, clip(claim.text, 60), clip(about, 40), why


def _read_any(file: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MOST + 1) if file == "-" else read_named(file)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", hint="name a Markdown file, or - for standard input") from error
    return data.decode("utf-8", "replace")


@click.group(invoke_without_command=True)
@json_option
@workspace_option
@click.pass_context
def repos(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """List the checkouts that memory is checked against.

    They come from `repositories` and `verify.checkouts` in the configuration; patterns are allowed.

    Cards that name no repository are not checked; run `truekeep repos match` to find theirs.

    Example: truekeep repos
    """
    if ctx.invoked_subcommand is not None:
        return
    opened = open_workspace(ctx, workspace)
    found, missing = opened.repositories.count_cards()
    if as_json:
        rows = [
            {
                "root": item.root,
                "names": list(item.names),
                "worktree": item.is_linked,
                "problem": item.problem,
                "cards": cards,
            }
            for item, cards in found
        ]
        print_json("repos", {"checkouts": rows, "unknown": missing})
        return
    if found:
        rows_shown = [
            (item.name, str(cards), "worktree" if item.is_linked else "clone", item.problem or item.root)
            for item, cards in found
        ]
        print_table(("repository", "cards", "kind", "folder"), rows_shown)
    else:
        echo('no checkouts are known: add patterns such as "~/repos/*" to repositories in .truekeep/config.toml')
    for name, count in sorted(missing.items()):
        cards = f"{count} card{'s' if count > 1 else ''}"
        echo(style(f"no checkout of {name} here ({cards}): add its folder to verify.checkouts", fg="yellow"))


@repos.command()
@click.argument("files", nargs=-1, metavar="[MEMORY]...", shell_complete=complete_files)
@click.option("--fix", is_flag=True, help="Write `repository:` into the matched cards.")
@click.option("--dry-run", is_flag=True, help="With --fix: show what would be written.")
@json_option
@workspace_option
@click.pass_context
def match(
    ctx: click.Context, files: tuple[str, ...], fix: bool, dry_run: bool, as_json: bool, workspace: str | None
) -> None:
    """Find the repository of cards that name none.

    The names in a card (paths with folders, uncommon names, commits, its own flags and variables) are looked up in
    every local checkout. A card is matched if several of them are known to one repository alone, now or in its history,
    and most of the rest as well; or if its text names one repository in full, as owner/name or by its remote. Weak or
    ambiguous matches are listed with their candidates, never guessed. Checks all cards unless some are given.

    With --fix, only that line is added to the frontmatter; nothing else changes, not even `updated`. Each card is one
    entry in the ledger, which `truekeep undo` can revert.

    Example: truekeep repos match --fix --dry-run
    """
    if dry_run and not fix:
        raise click.UsageError("--dry-run goes with --fix", ctx=ctx)
    opened = open_workspace(ctx, workspace)
    with ProgressDisplay("matching") as display:
        found, left = opened.repositories.match(files, progress=display.step)
    is_written = fix and not dry_run and any(item.is_writable for item in found)
    done = opened.repositories.assign(found) if is_written else []
    if as_json:
        print_json("repos-match", _shown_matches(found, done, left))
    else:
        _show_matches(found, done, left, fix=fix, dry_run=dry_run)


def _shown_matches(found: Sequence[Match], done: Sequence[AssignmentOutcome], left: Sequence[str]) -> dict[str, Any]:
    written = {item.path: item for item in done}
    return {
        "cards": [
            {
                "path": item.path,
                "outcome": item.outcome,
                "repository": item.repository,
                "why": item.why,
                "problem": item.problem,
                "candidates": [
                    {
                        "repository": candidate.repository,
                        "root": candidate.root,
                        "named": candidate.is_named,
                        "unknown": candidate.unknown,
                        "evidence": [shown_verdict(proof.verdict) for proof in candidate.proofs],
                    }
                    for candidate in item.candidates
                ],
                "entry": written[item.path].entry if item.path in written else None,
                "done": written[item.path].message if item.path in written else "",
            }
            for item in found
        ],
        "left": list(left),
        "summary": {"cards": len(found), **count_outcomes(found)},
    }


def _show_matches(
    found: Sequence[Match], done: Sequence[AssignmentOutcome], left: Sequence[str], *, fix: bool, dry_run: bool
) -> None:
    written = {item.path: item for item in done}
    for item in found:
        tint = {"matched": "green", "ambiguous": "yellow"}.get(item.outcome, "bright_black")
        about = f"  {style(item.repository, bold=True)}" if item.repository else ""
        echo(f"{style(item.outcome.ljust(9), fg=tint)} {item.path}{about}")
        echo(style(f"          ↳ {clip(item.why, 300)}", dim=True))
        for candidate in item.candidates if item.outcome != "matched" else ():
            shown = "named, " if candidate.is_named else ""
            count = many(len(candidate.proofs), "claim")
            echo(f"            {(candidate.repository or candidate.root)}: {shown}{count}")
        if item.problem:
            echo(style("          by hand: ", fg="yellow") + item.problem)
        if item.path in written:
            entry = written[item.path].entry
            undo = f" (`truekeep undo {entry}` undoes it)" if entry is not None else ""
            tint = "green" if entry is not None else "yellow"
            echo("          " + style("done", fg=tint) + f" {written[item.path].message}{undo}")
        elif dry_run and item.is_writable:
            echo(f"          would write repository: {item.repository}")
    for line in left:
        echo(style(line, fg="yellow"), err=True)
    if not found:
        echo("every card names its repository" if not left else "nothing to match")
        return
    counts = count_outcomes(found)
    parts = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    echo(f"{many(len(found), 'card')} without a repository: {parts}")
    if any(item.is_writable for item in found) and (not fix or dry_run):
        echo("next: run `truekeep repos match --fix` to write the matches")
    elif any(item.entry is not None for item in done):
        echo("next: truekeep verify")
    if counts["ambiguous"] or counts["thin"]:
        echo("for the others, add `repository: NAME` to the frontmatter; `truekeep repos` lists the names")
