"""truekeep review list, walk, show, approve, reject, edit, retry, prune."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_minute, many
from truekeep.core.errors import BadInput, NotFound, TruekeepError
from truekeep.interfaces.cli.app import show_error
from truekeep.interfaces.cli.complete_values import complete_drafts
from truekeep.interfaces.cli.output import (
    Command,
    age_in_days,
    coloured,
    json_option,
    open_workspace,
    print_difference,
    print_findings,
    print_json,
    print_table,
    shown_age,
    shown_finding,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import echo, echo_text, style
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.policy.decision import Decision
    from truekeep.handoffs.review import Proposal
    from truekeep.workspace.workspace import Workspace

_AGE = re.compile(r"(\d{1,5})\s*(h|d|w|)\Z")


@click.group()
def review() -> None:
    """Approve, edit or reject drafts that need a decision.

    A draft contains the original handoff and the reasons why it was not filed, and shows what would be written. Name a
    draft by its id, or by any unique beginning or end of it.

    Example: truekeep review walk
    """


def _today() -> date:
    return datetime.now().astimezone().date()


def _age_of(draft: Draft) -> int | None:
    try:
        return age_in_days(datetime.fromisoformat(draft.received_at).astimezone().date(), _today())
    except (ValueError, OverflowError):
        return None


def _draft_json(draft: Draft, outdated: Sequence[str] | None = None) -> dict[str, Any]:
    """A draft as data; `outdated`: the cards that changed since, where that was looked at."""
    more = {} if outdated is None else {"outdated": list(outdated)}
    return more | {
        "id": draft.id,
        "path": draft.path,
        "received_at": draft.received_at,
        "age_days": _age_of(draft),
        "handoff": draft.name,
        "writer": draft.writer,
        "machine": draft.machine,
        "repository": draft.repository,
        "original": draft.original,
        "sha256": draft.digest,
        "kept": draft.kept,
        "target": draft.target,
        "drops": list(draft.dropped),
        "reasons": [{"code": code, "message": sentence} for code, sentence in draft.reasons],
    }


def _origin(draft: Draft) -> str:
    """Where a draft came from, as far as it says."""
    age = _age_of(draft)
    day = f" {local_minute(draft.received_at)} ({shown_age(age)} ago)" if age is not None else " on an unknown day"
    if draft.is_proposal:
        code = f" against {draft.repository}" if draft.repository else ""
        return f"truekeep verify, which checked {draft.card}{code}, proposed{day}"
    if draft.is_upkeep:
        return f"truekeep {draft.made_by}, proposed{day}"
    machine = f" on {draft.machine}" if draft.machine else ""
    return (
        f"{draft.writer or 'unknown writer'} in {draft.repository or 'an unknown repository'}{machine}, received{day}"
    )


def _choosing(command: Command) -> Command:
    """Options that say which drafts are meant."""
    for name, variable, what in (
        ("--repo", "repository", "Only drafts from this repository, by its name or the end of it."),
        ("--writer", "writer", "Only drafts by this writer, such as claude."),
        ("--why", "why", "Only drafts with this reason, such as same-topic."),
    ):
        command = click.option(name, variable, metavar="TEXT", help=what)(command)
    return command


def _chosen(drafts: Sequence[Draft], why: str | None, writer: str | None, repository: str | None) -> list[Draft]:
    return [
        draft
        for draft in drafts
        if (why is None or why in dict(draft.reasons))
        and (writer is None or writer == draft.writer)
        and (repository is None or f"/{draft.repository}".endswith(f"/{repository}"))
    ]


@review.command("list")
@_choosing
@json_option
@workspace_option
@click.pass_context
def list_(
    ctx: click.Context,
    why: str | None,
    writer: str | None,
    repository: str | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """List the drafts, oldest first.

    Example: truekeep review list --why same-topic
    """
    opened = open_workspace(ctx, workspace)
    waiting = opened.review.drafts(judged=True)
    drafts = _chosen(waiting, why, writer, repository)
    changed = [opened.review.outdated(draft) for draft in drafts]
    if as_json:
        print_json("review-list", {"drafts": [_draft_json(*item) for item in zip(drafts, changed, strict=True)]})
        return
    rows = [
        [
            draft.id,
            shown_age(_age_of(draft)),
            draft.writer,
            draft.repository,
            ", ".join((*(["outdated"] if old else []), *dict(draft.reasons))),
        ]
        for draft, old in zip(drafts, changed, strict=True)
    ]
    if rows:
        print_table(["draft", "age", "writer", "repository", "reasons"], rows)
        if old := sum(map(bool, changed)):
            echo(f"{old} outdated: their cards changed since; the next `truekeep tidy` or `reconcile` looks again")
        of = f" of {len(waiting)}" if len(waiting) > len(rows) else ""
        step = f"show {drafts[0].id}" if len(waiting) == 1 else "walk"
        echo(f"{many(len(rows), 'draft')}{of}. next: truekeep review {step}")
    else:
        echo(f"none of {many(len(waiting), 'draft')} is like that" if waiting else "nothing to review")


@review.command()
@click.argument("draft", shell_complete=complete_drafts)
@click.option("--target", default="", metavar="PLACE", help="Preview it for another card or document.")
@json_option
@workspace_option
@click.pass_context
def show(ctx: click.Context, draft: str, target: str, as_json: bool, workspace: str | None) -> None:
    """Show a draft: reasons, origin, what would be written, and the original.

    Example: truekeep review show proxy-port-3f9a
    """
    opened = open_workspace(ctx, workspace)
    proposal = opened.review.show(draft, target=target)
    found, filing = proposal.draft, proposal.decision
    if as_json:
        data = _draft_json(found, opened.review.outdated(found)) | {
            "would": filing.outcome,
            "would_write": filing.target,
            "must_be_mended": [shown_finding(finding) for finding in filing.blocking],
            "difference": list(proposal.difference),
            "original_text": found.body.decode("utf-8", "replace"),
        }
        print_json("review-show", data)
        return
    echo(style(found.id, bold=True))
    _show_proposal(opened, proposal)
    _show_original(found)


def _show_proposal(opened: Workspace, proposal: Proposal) -> None:
    """Where a draft came from, why it waits, and what approving would write."""
    found, filing, changed = proposal.draft, proposal.decision, opened.review.outdated(proposal.draft)
    echo(f"from {_origin(found)}")
    if found.original and not found.is_proposal and not found.is_upkeep:
        echo(f"original: {found.original}")
    if changed:
        told = f"outdated: {' and '.join(changed)} changed since; reject it, the next run proposes what is left of it"
        echo(style(told, fg="red"))
    echo(style("why it needs review", bold=True))
    for code, sentence in found.reasons:
        echo(f"  {style(code, fg='yellow')}: {sentence}")
    if filing.blocking:
        echo(style("must be fixed before it can be approved", bold=True))
        print_findings(filing.blocking, indent="  ")
    elif filing.outcome == "already":
        echo(f"{filing.target} already says this; approving only closes the draft")
    if proposal.difference:
        echo(style("approving would write", bold=True))
        print_difference(proposal.difference)


def _show_original(found: Draft) -> None:
    echo(style({"whole": "the original", "masked": "the original, masked"}.get(found.kept, ""), bold=True))
    if found.kept == "elsewhere" and not found.body:
        echo("  not copied here; see the original file")
    else:
        echo_text(found.body.decode("utf-8", "replace").rstrip("\n"))


@review.command()
@_choosing
@workspace_option
@click.pass_context
def walk(
    ctx: click.Context, why: str | None, writer: str | None, repository: str | None, workspace: str | None
) -> None:
    """Go through the drafts one by one, and decide each with a key.

    Decisions are saved as you go, so you can stop at any time. `truekeep undo` reverts any of them.

    Example: truekeep review walk --why same-topic
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("this is not a terminal", hint="`truekeep review list`, then `approve` or `reject`")
    opened = open_workspace(ctx, workspace)
    waiting = opened.review.drafts(judged=True)
    drafts = _chosen(waiting, why, writer, repository)
    if not drafts:
        echo(f"none of {many(len(waiting), 'draft')} is like that" if waiting else "nothing to review")
        return
    done = Counter[str]()
    for number, draft in enumerate(drafts, 1):
        word = _decide(opened, draft.id, f"{number} of {len(drafts)}")
        if word == "quit":
            break
        done[word] += 1
    told = [f"{done[word]} {word}" for word in ("approved", "rejected") if done[word]]
    echo(", ".join([*told, f"{len(opened.review.drafts())} still wait"]))


def _decide(opened: Workspace, wanted: str, place: str) -> str:
    """Show a draft, and do what the person says: approved, rejected, left or quit."""
    try:
        proposal = opened.review.show(wanted, exact=True)
        title = proposal.decision.title or wanted
        echo()
        echo(style(f"{place}: {title}", bold=True))
        _show_proposal(opened, proposal)
        while True:
            echo("[a]pprove  [x] reject  [e]dit  [o]riginal  [n]ext  [q]uit: ", nl=False)
            key = _key()
            echo(key)
            if key in "nq":
                return "left" if key == "n" else "quit"
            if key == "o":
                _show_original(proposal.draft)
                continue
            if word := _act(opened, proposal, key):
                return word
            proposal = opened.review.show(wanted, exact=True)
            _show_proposal(opened, proposal)
    except NotFound:
        echo("already decided elsewhere")
        return "left"


def _act(opened: Workspace, proposal: Proposal, key: str) -> str:
    """Do what a key says with a draft as it was seen; nothing when it stays."""
    wanted = proposal.draft.id
    try:
        if key == "a":
            filing = opened.review.approve(wanted, seen=proposal.seen)
            echo(f"{coloured(_did(proposal.draft, filing), width=9)} {filing.target}")
            return "approved"
        if key == "x":
            opened.review.reject(wanted, seen=proposal.seen)
            echo(coloured("rejected"))
            return "rejected"
        opened.review.edit(wanted, _in_editor, seen=proposal.seen)
    except NotFound:
        raise
    except TruekeepError as error:
        show_error(error, as_json=False)
    return ""


def _did(draft: Draft, filing: Decision) -> str:
    """The result of an approval, in one word."""
    return "removed" if draft.is_removal else filing.outcome


def _key() -> str:
    """The next key that means something."""
    while True:
        key = click.getchar()
        if key in ("\x1b", "q"):
            return "q"
        if key in ("a", "x", "e", "o", "n"):
            return key


def _in_editor(body: bytes) -> bytes:
    edited = click.edit(body.decode("utf-8", "surrogateescape"), extension=".md")
    return body if edited is None else edited.encode("utf-8", "surrogateescape")


@review.command()
@click.argument("drafts", nargs=-1, required=True, metavar="DRAFT...", shell_complete=complete_drafts)
@click.option("--target", default="", metavar="PLACE", help="File into this card or document instead.")
@click.option("--anyway", is_flag=True, help="File despite new findings that the draft's reasons do not list.")
@json_option
@workspace_option
@click.pass_context
def approve(
    ctx: click.Context, drafts: tuple[str, ...], target: str, anyway: bool, as_json: bool, workspace: str | None
) -> int:
    """File drafts that you approve.

    Approval overrides the policy, but not hard limits: a credential, a missing target, unreadable content. The text is
    checked again; findings that the draft's reasons do not list need --anyway.

    Example: truekeep review approve proxy-port-3f9a --target staging-proxy.md
    """
    if target and len(drafts) > 1:
        raise BadInput("--target is for one draft at a time", hint="approve them one by one")
    opened = open_workspace(ctx, workspace)

    def act(wanted: str) -> dict[str, Any]:
        draft = opened.review.show(wanted).draft
        found = draft.id
        filing = opened.review.approve(found, target=target, anyway=anyway)
        if not as_json:
            way = "took away" if draft.is_removal else "->"
            echo(f"{coloured(_did(draft, filing), width=9)} {found} {way} {filing.target}")
        return {"draft": found, "outcome": filing.outcome, "target": filing.target}

    return _for_each(drafts, act, "approved", as_json=as_json)


def _for_each(drafts: tuple[str, ...], act: Callable[[str], dict[str, Any]], word: str, *, as_json: bool) -> int:
    """Do something with each draft; one that cannot be done does not stop the others."""
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    code = 0
    for wanted in drafts:
        try:
            done.append(act(wanted))
        except BadInput as error:
            if len(drafts) == 1:
                raise
            code = error.exit_code
            failed.append({"draft": wanted, "code": error.code, "message": error.message})
            if not as_json:
                show_error(error, as_json=False)
    if as_json:
        print_json("review-approve" if word == "approved" else "review-reject", {word: done, "failed": failed})
    return code


@review.command()
@click.argument("drafts", nargs=-1, required=True, metavar="DRAFT...", shell_complete=complete_drafts)
@click.option("--reason", default="", help="Reason, recorded in the history.")
@json_option
@workspace_option
@click.pass_context
def reject(ctx: click.Context, drafts: tuple[str, ...], reason: str, as_json: bool, workspace: str | None) -> int:
    """Reject drafts.

    The original stays in processed/, and `truekeep undo` restores the draft.

    Example: truekeep review reject proxy-port-3f9a --reason 'was only true for a day'
    """
    opened = open_workspace(ctx, workspace)

    def act(wanted: str) -> dict[str, Any]:
        draft = opened.review.reject(wanted, reason=reason)
        if not as_json:
            echo(
                f"{coloured('rejected')} {draft.id}"
                + (f"; original: {draft.original}" if draft.original and not draft.is_upkeep else "")
            )
        return _draft_json(draft)

    return _for_each(drafts, act, "rejected", as_json=as_json)


@review.command()
@click.argument("draft", shell_complete=complete_drafts)
@click.option(
    "--stdin", "from_stdin", is_flag=True, help="Read the new text from standard input instead of opening an editor."
)
@json_option
@workspace_option
@click.pass_context
def edit(ctx: click.Context, draft: str, from_stdin: bool, as_json: bool, workspace: str | None) -> None:
    """Edit the handoff inside a draft.

    Opens your editor. The draft stays in review; approve it afterwards. You can also edit the draft's file directly.

    Example: truekeep review edit proxy-port-3f9a
    """

    def change(body: bytes) -> bytes:
        return sys.stdin.buffer.read() if from_stdin else _in_editor(body)

    found, changed = open_workspace(ctx, workspace).review.edit(draft, change)
    if as_json:
        print_json("review-edit", _draft_json(found) | {"changed": changed})
    else:
        echo(f"{found.id}: " + (f"changed. next: truekeep review approve {found.id}" if changed else "not changed"))


@review.command()
@click.argument("draft", required=False, shell_complete=complete_drafts)
@json_option
@workspace_option
@click.pass_context
def retry(ctx: click.Context, draft: str | None, as_json: bool, workspace: str | None) -> None:
    """Check drafts again as ingest would, and file those that pass.

    Checks the given draft, or all. Use it after changing the policy, or whatever blocked the draft.

    Example: truekeep review retry
    """
    results = open_workspace(ctx, workspace).review.retry(draft)
    if as_json:
        print_json(
            "review-retry",
            {
                "drafts": [
                    {
                        "draft": found.id,
                        "filed": filing.outcome != "review",
                        "target": filing.target,
                        "reasons": [shown_finding(finding) for finding in filing.blocking],
                    }
                    for found, filing in results
                ]
            },
        )
        return
    for found, filing in results:
        echo(f"{coloured(filing.outcome, width=9)} {found.id} -> {filing.target or 'still waits'}")
        print_findings(filing.blocking, indent="          ")
    echo(f"{sum(filing.outcome != 'review' for _, filing in results)} of {len(results)} filed")


@review.command()
@click.option(
    "--older-than", metavar="AGE", help="Minimum age, such as 30d, 6w or 12h. [default: the configured days, 30]"
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@click.option("--force", is_flag=True, help="Proceed even if the clock looks wrong.")
@json_option
@workspace_option
@click.pass_context
def prune(
    ctx: click.Context, older_than: str | None, dry_run: bool, force: bool, as_json: bool, workspace: str | None
) -> None:
    """Remove old drafts, and old files from processed/.

    A draft left undecided for a month is unlikely to be decided. `truekeep undo` restores drafts; originals of open
    drafts stay.

    Example: truekeep review prune --older-than 30d --dry-run
    """
    age = _parse_age(older_than) if older_than else None
    drafts, files = open_workspace(ctx, workspace).handoffs.prune(older_than=age, dry_run=dry_run, force=force)
    if as_json:
        shown = {
            "dry_run": dry_run,
            "drafts": [draft.id for draft in drafts],
            "processed": [withhold(printable(f)) for f in files],
        }
        print_json("review-prune", shown)
        return
    verb = "would be removed" if dry_run else "removed"
    for draft in drafts:
        echo(f"draft {draft.id} ({shown_age(_age_of(draft))}) {verb}")
    for file in files:
        echo(f"{withhold(file)} {verb}")
    echo(f"{many(len(drafts), 'draft')} and {many(len(files), 'processed file')} {verb}")


def _parse_age(text: str) -> timedelta:
    match = _AGE.match(text.strip().lower())
    if match is None:
        raise BadInput(f"{text!r} is not an age", hint="write 30d, 6w or 12h")
    hours = int(match[1]) * {"h": 1, "d": 24, "w": 168, "": 24}[match[2]]
    return timedelta(hours=hours)
