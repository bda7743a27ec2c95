"""truekeep review list, walk, show, approve, reject, edit, retry, prune."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from truekeep.core.dates import age_in_days, local_minute, many, parse_age, short_age
from truekeep.core.errors import BadInput, NotFound, TruekeepError
from truekeep.interfaces.cli.complete_values import complete_drafts
from truekeep.interfaces.cli.options import Command, dry_run_option, in_workspace
from truekeep.interfaces.cli.output import Shown, coloured, emit, for_each
from truekeep.interfaces.cli.output import show as show_lines
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import (
    MultilineText,
    can_ask,
    echo,
    print_error,
    render_difference,
    render_findings,
    style,
)
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace.review import DraftFilter
from truekeep.workspace.team_review import TeamReview, review_of

if TYPE_CHECKING:
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.policy.decision import Decision
    from truekeep.handoffs.review import Proposal
    from truekeep.workspace.review import ListedDraft
    from truekeep.workspace.workspace import Workspace

_draft_argument = click.argument("draft", shell_complete=complete_drafts)
_drafts_argument = click.argument("drafts", nargs=-1, required=True, metavar="DRAFT...", shell_complete=complete_drafts)


@click.group()
def review() -> None:
    """Approve, edit or reject drafts that need a decision.

    A draft contains the original handoff and the reasons why it was not filed, and shows what would be written. Name a
    draft by its id, or by any unique beginning or end of it.

    Example: truekeep review walk
    """


def _filter_options(command: Command) -> Command:
    for name, variable, what in (
        ("--repo", "repository", "Only drafts from this repository, by its name or the end of it."),
        ("--writer", "writer", "Only drafts by this writer, such as claude."),
        ("--why", "why", "Only drafts with this reason, such as same-topic."),
    ):
        command = click.option(name, variable, metavar="TEXT", help=what)(command)
    return command


@review.command("list")
@_filter_options
@click.option("--assignee", metavar="NAME", help="On a team server: only drafts of this reviewer, of me, or of nobody.")
@in_workspace
def list_(opened: Workspace, assignee: str | None, **chosen: str | None) -> None:
    """List the drafts, oldest first.

    Example: truekeep review list --why same-topic
    """
    with ProgressDisplay("reading drafts"):
        queue = review_of(opened)
        drafts, total = queue.find(DraftFilter(**chosen))
    if assignee is not None:
        if not isinstance(queue, TeamReview):
            raise _no_assignees()
        wanted = {"me": queue.account, "nobody": ""}.get(assignee, assignee)
        drafts = [item for item in drafts if item.assignee == wanted]
    if opened.source is not None and queue is opened.review:
        opened.notices.append(f"memory here is a copy: drafts wait on {opened.source.host}")
    emit("review-list", {"drafts": drafts}, _render_list(drafts, total), is_long=True)


def _render_list(drafts: Sequence[ListedDraft], total: int) -> Iterator[Shown]:
    if not drafts:
        yield _nothing(total)
        return
    has_assignees = any(item.assignee for item in drafts)
    rows = [
        [
            draft.id,
            short_age(age_in_days(draft.received_at)),
            draft.writer,
            draft.repository,
            *([assignee or "nobody"] if has_assignees else []),
            ", ".join((*(["outdated"] if outdated else []), *dict(draft.reasons))),
        ]
        for draft, outdated, assignee in drafts
    ]
    yield Table(["draft", "age", "writer", "repository", *(["assignee"] if has_assignees else []), "reasons"], rows)
    if old := sum(bool(item.outdated) for item in drafts):
        yield f"{old} outdated: their cards changed since; the next `truekeep tidy` or `reconcile` looks again"
    of = f" of {total}" if total > len(rows) else ""
    step = f"show {drafts[0].draft.id}" if total == 1 else "walk"
    yield f"{many(len(rows), 'draft')}{of}. next: truekeep review {step}"


def _no_assignees() -> BadInput:
    return BadInput("drafts of this workspace have no assignees", hint="those of a team server have: `truekeep login`")


@review.command()
@_draft_argument
@click.argument("reviewer")
@in_workspace
def assign(opened: Workspace, draft: str, reviewer: str) -> None:
    """Give a draft on a team server to a reviewer: a name, me, or nobody.

    It says who looks at it; any reviewer may still decide.

    Example: truekeep review assign proxy-port-3f9a me
    """
    queue = review_of(opened)
    if not isinstance(queue, TeamReview):
        raise _no_assignees()
    found, name = queue.assign(draft, reviewer)
    emit("review-assign", {"draft": found, "assignee": name}, [f"{found}: {name or 'nobody'} looks at it"])


def _nothing(total: int) -> str:
    return f"no match among {many(total, 'draft')}" if total else "nothing to review"


class _ShownDraft(NamedTuple):
    """A draft, what approving it would do, and the cards that changed since."""

    draft: Draft
    outdated: Sequence[str]
    decision: Decision
    difference: Sequence[str]
    original_text: str


@review.command()
@_draft_argument
@click.option("--target", default="", metavar="PLACE", help="Preview it for another card or document.")
@in_workspace
def show(opened: Workspace, draft: str, target: str) -> None:
    """Show a draft: reasons, origin, what would be written, and the original.

    Example: truekeep review show proxy-port-3f9a
    """
    proposal = review_of(opened).show(draft, target=target)
    found = proposal.draft
    text = found.body.decode("utf-8", "replace")
    shown = _ShownDraft(found, review_of(opened).outdated(found), proposal.decision, proposal.difference, text)
    lines = [style(found.id, bold=True), *_render_proposal(proposal, shown.outdated), *_render_original(found)]
    emit("review-show", shown, lines, is_long=True)


def _render_proposal(proposal: Proposal, outdated: Sequence[str]) -> Iterator[Shown]:
    """Where a draft came from, why it waits, and what approving would write."""
    found, filing = proposal.draft, proposal.decision
    yield f"from {_origin(found)}"
    if found.original and not found.is_proposal and not found.is_upkeep:
        yield f"original: {found.original}"
    if outdated:
        told = f"outdated: {' and '.join(outdated)} changed since; reject it, the next run proposes what is left of it"
        yield style(told, fg="red")
    yield style("why it needs review", bold=True)
    yield from (f"  {style(code, fg='yellow')}: {sentence}" for code, sentence in found.reasons)
    if filing.blocking:
        yield style("must be fixed before it can be approved", bold=True)
        yield from render_findings(filing.blocking, indent="  ")
    elif filing.outcome == "already":
        yield f"{filing.target} already says this; approving only closes the draft"
    if proposal.difference:
        yield style("approving would write", bold=True)
        yield from render_difference(proposal.difference)


def _origin(draft: Draft) -> str:
    """Where a draft came from, as far as it says."""
    age = age_in_days(draft.received_at)
    day = f" {local_minute(draft.received_at)} ({short_age(age)} ago)" if age is not None else " on an unknown day"
    if draft.is_proposal:
        code = f" against {draft.repository}" if draft.repository else ""
        return f"truekeep verify, which checked {draft.card}{code}, proposed{day}"
    if draft.is_upkeep:
        return f"truekeep {draft.made_by}, proposed{day}"
    machine = f" on {draft.machine}" if draft.machine else ""
    where = f"{draft.writer or 'unknown writer'} in {draft.repository or 'an unknown repository'}{machine}"
    return f"{where}, received{day}"


def _render_original(found: Draft) -> Iterator[Shown]:
    yield style({"whole": "the original", "masked": "the original, masked"}.get(found.kept, ""), bold=True)
    if found.kept == "elsewhere" and not found.body:
        yield "  not copied here; see the original file"
    else:
        yield MultilineText(found.body.decode("utf-8", "replace").rstrip("\n"))


@review.command()
@_filter_options
@in_workspace
def walk(opened: Workspace, **chosen: str | None) -> None:
    """Go through the drafts one by one, and decide each with a key.

    Decisions are saved as you go, so you can stop at any time. `truekeep undo` reverts any of them.

    Example: truekeep review walk --why same-topic
    """
    if not (can_ask() and sys.stdout.isatty()):
        raise BadInput("this is not a terminal", hint="`truekeep review list`, then `approve` or `reject`")
    drafts, total = review_of(opened).find(DraftFilter(**chosen))
    if not drafts:
        echo(_nothing(total))
        return
    done = Counter[str]()
    for number, (draft, *_) in enumerate(drafts, 1):
        word = _decide(opened, draft.id, f"{number} of {len(drafts)}")
        if word == "quit":
            break
        done[word] += 1
    told = [f"{done[word]} {word}" for word in ("approved", "rejected") if done[word]]
    echo(", ".join([*told, f"{len(review_of(opened).drafts())} left to review"]))


def _decide(opened: Workspace, wanted: str, place: str) -> str:
    """Show a draft, and do what the person says: approved, rejected, left or quit."""

    def present() -> Proposal:
        proposal = review_of(opened).show(wanted, exact=True)
        show_lines(_render_proposal(proposal, review_of(opened).outdated(proposal.draft)))
        return proposal

    try:
        echo()
        echo(style(f"{place}: {review_of(opened).show(wanted, exact=True).decision.title or wanted}", bold=True))
        proposal = present()
        while True:
            echo("[a]pprove  [x] reject  [e]dit  [o]riginal  [n]ext  [q]uit: ", nl=False)
            key = _key()
            echo(key)
            if key in "nq":
                return "left" if key == "n" else "quit"
            if key == "o":
                show_lines(_render_original(proposal.draft))
            elif word := _act(opened, proposal, key):
                return word
            else:
                proposal = present()
    except NotFound:
        echo("already decided elsewhere")
        return "left"


def _act(opened: Workspace, proposal: Proposal, key: str) -> str:
    """Do what a key says with a draft as it was seen; nothing when it stays."""
    wanted = proposal.draft.id
    try:
        if key == "a":
            filing = review_of(opened).approve(wanted, seen=proposal.seen)
            echo(f"{coloured(_did(proposal.draft, filing), width=9)} {filing.target}")
            return "approved"
        if key == "x":
            review_of(opened).reject(wanted, seen=proposal.seen)
            echo(coloured("rejected"))
            return "rejected"
        review_of(opened).edit(wanted, _in_editor, seen=proposal.seen)
    except NotFound:
        raise
    except TruekeepError as error:
        print_error(error)
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
@_drafts_argument
@click.option("--target", default="", metavar="PLACE", help="File into this card or document instead.")
@click.option("--anyway", is_flag=True, help="File despite new findings that the draft's reasons do not list.")
@in_workspace
def approve(opened: Workspace, drafts: tuple[str, ...], target: str, anyway: bool) -> int:
    """File drafts that you approve.

    Approval overrides the policy, but not hard limits: a credential, a missing target, unreadable content. The text is
    checked again; findings that the draft's reasons do not list need --anyway.

    Example: truekeep review approve proxy-port-3f9a --target staging-proxy.md
    """
    if target and len(drafts) > 1:
        raise BadInput("--target is for one draft at a time", hint="approve them one by one")

    def act(wanted: str) -> tuple[dict[str, Any], str]:
        draft = review_of(opened).show(wanted).draft
        filing = review_of(opened).approve(draft.id, target=target, anyway=anyway)
        arrow = "took away" if draft.is_removal else "->"
        told = f"{coloured(_did(draft, filing), width=9)} {draft.id} {arrow} {filing.target}"
        return {"draft": draft.id, "outcome": filing.outcome, "target": filing.target}, told

    return _decide_each(drafts, act, "approve", "approved")


def _decide_each(drafts: Sequence[str], act: Callable[[str], tuple[Any, str]], verb: str, key: str) -> int:
    done, failed, code = for_each(drafts, act)
    problems = [{"draft": wanted, "code": error.code, "message": error.message} for wanted, error in failed]
    emit(f"review-{verb}", {key: [data for data, _ in done], "failed": problems}, [told for _, told in done])
    return code


@review.command()
@_drafts_argument
@click.option("--reason", default="", help="Reason, recorded in the history.")
@in_workspace
def reject(opened: Workspace, drafts: tuple[str, ...], reason: str) -> int:
    """Reject drafts.

    The original stays in processed/, and `truekeep undo` restores the draft.

    Example: truekeep review reject proxy-port-3f9a --reason 'was only true for a day'
    """

    def act(wanted: str) -> tuple[Draft, str]:
        draft = review_of(opened).reject(wanted, reason=reason)
        original = f"; original: {draft.original}" if draft.original and not draft.is_upkeep else ""
        return draft, f"{coloured('rejected')} {draft.id}{original}"

    return _decide_each(drafts, act, "reject", "rejected")


@review.command()
@_draft_argument
@click.option(
    "--stdin", "from_stdin", is_flag=True, help="Read the new text from standard input instead of opening an editor."
)
@in_workspace
def edit(opened: Workspace, draft: str, from_stdin: bool) -> None:
    """Edit the handoff inside a draft.

    Opens your editor. The draft stays in review; approve it afterwards. You can also edit the draft's file directly.

    Example: truekeep review edit proxy-port-3f9a
    """
    change = (lambda _: sys.stdin.buffer.read()) if from_stdin else _in_editor
    found, changed = review_of(opened).edit(draft, change)
    told = f"changed. next: truekeep review approve {found.id}" if changed else "not changed"
    emit("review-edit", _EditedDraft(found, changed), [f"{found.id}: {told}"])


class _EditedDraft(NamedTuple):
    draft: Draft
    changed: bool


@review.command()
@click.argument("draft", required=False, shell_complete=complete_drafts)
@in_workspace
def retry(opened: Workspace, draft: str | None) -> None:
    """Check drafts again as ingest would, and file those that pass.

    Checks the given draft, or all. Use it after changing the policy, or whatever blocked the draft.

    Example: truekeep review retry
    """
    with ProgressDisplay("checking drafts"):
        results = review_of(opened).retry(draft)
    drafts = [
        {"draft": found.id, "filed": filing.outcome != "review", "target": filing.target, "reasons": filing.blocking}
        for found, filing in results
    ]
    emit("review-retry", {"drafts": drafts}, _render_retried(results))


def _render_retried(results: Sequence[tuple[Draft, Decision]]) -> Iterator[Shown]:
    for found, filing in results:
        yield f"{coloured(filing.outcome, width=9)} {found.id} -> {filing.target or 'still needs review'}"
        yield from render_findings(filing.blocking, indent="          ")
    yield f"{sum(filing.outcome != 'review' for _, filing in results)} of {len(results)} filed"


@review.command()
@click.option(
    "--older-than", metavar="AGE", help="Minimum age, such as 30d, 6w or 12h. [default: the configured days, 30]"
)
@dry_run_option
@click.option("--force", is_flag=True, help="Proceed even if the clock looks wrong.")
@in_workspace
def prune(opened: Workspace, older_than: str | None, dry_run: bool, force: bool) -> None:
    """Remove old drafts, and old files from processed/.

    A draft left undecided for a month is unlikely to be decided. `truekeep undo` restores drafts; originals of open
    drafts stay.

    Example: truekeep review prune --older-than 30d --dry-run
    """
    age = parse_age(older_than) if older_than else None
    drafts, files = opened.handoffs.prune(older_than=age, dry_run=dry_run, force=force)
    processed = [withhold(printable(file)) for file in files]
    verb = "would be removed" if dry_run else "removed"
    lines = [f"draft {draft.id} ({short_age(age_in_days(draft.received_at))}) {verb}" for draft in drafts]
    lines += [f"{file} {verb}" for file in processed]
    total = f"{many(len(drafts), 'draft')} and {many(len(files), 'processed file')} {verb}"
    emit(
        "review-prune",
        {"dry_run": dry_run, "drafts": [draft.id for draft in drafts], "processed": processed},
        [*lines, total],
    )
