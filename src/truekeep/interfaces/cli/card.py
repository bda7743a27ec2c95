"""truekeep card list, show, write, confirm, drop; split and join are in card_split."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from truekeep.core.dates import age_in_days, many, short_age
from truekeep.core.errors import BadInput, InvalidHandoff
from truekeep.core.machine import person, running_harness
from truekeep.core.model import RULES
from truekeep.interfaces.cli.card_split import join, split
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files
from truekeep.interfaces.cli.options import (
    dry_run_option,
    in_workspace,
    in_workspace_if_any,
    read_named,
    repo_option,
    repository_root,
    usage_error,
    wants_json,
    yes_option,
)
from truekeep.interfaces.cli.output import Shown, emit, for_each, how_to_undo
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import (
    Aside,
    MultilineText,
    ask_yes_no,
    can_ask,
    echo,
    note,
    prompt,
    render_difference,
    render_findings,
    style,
)
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.workspace import producer
from truekeep.workspace.card_text import CardAuthor, parse_card_text

if TYPE_CHECKING:
    from truekeep.memory.card import Card
    from truekeep.workspace.card_overlap import CoveringCard
    from truekeep.workspace.card_text import CardText
    from truekeep.workspace.card_writing import CardWriteResult
    from truekeep.workspace.workspace import Workspace

_names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_cards)
_WORDS = {
    "written": "wrote",
    "updated": "added to",
    "already": "nothing new for",
    "planned": "would write",
    "left": "handed in",
}


@click.group()
def card() -> None:
    """List, write and remove cards; split a long file into cards.

    A card is a claim about one topic at one moment; its age is always shown first.

    Example: truekeep card list
    """


@card.command("list")
@click.option("--category", help="Only this category.")
@click.option("--tag", help="Only cards with this tag.")
@in_workspace
def list_(opened: Workspace, category: str | None, tag: str | None) -> None:
    """List the cards with their age, origin and topic.

    Example: truekeep card list --tag proxy
    """
    with ProgressDisplay("reading cards"):
        cards = [
            found
            for found in opened.cards.all()
            if category in (None, found.category) and (tag is None or tag in found.tags)
        ]
    emit("card-list", {"cards": cards}, _render_cards(cards), is_long=True)


def _render_cards(cards: Sequence[Card]) -> Iterator[Shown]:
    rows = [
        [
            found.name,
            short_age(age_in_days(found.updated)),
            withhold(found.category),
            found.writer,
            found.repository,
            withhold(found.topic + (f"  [{', '.join(found.tags)}]" if found.tags else "")),
        ]
        for found in cards
    ]
    if rows:
        yield Table(["card", "age", "category", "writer", "repository", "topic"], rows)
    yield many(len(cards), "card")
    if not rows:
        yield Aside("cards come by handoffs (`truekeep ingest`) and by `truekeep card write`")


class _ShownCard(NamedTuple):
    """A card, its text, and where it came from."""

    card: Card
    text: str
    entry: int | None
    handoff: str


@card.command()
@click.argument("name", shell_complete=complete_cards)
@in_workspace
def show(opened: Workspace, name: str) -> None:
    """Show a card, with its age and origin in the first line.

    A unique beginning of its name is enough.

    Example: truekeep card show staging-proxy
    """
    found, text, entry, record = opened.cards.get(name, partly=True, masked=True)
    shown = _ShownCard(found, text, entry.id if entry else None, record.origin.name if record else "")
    emit("card-show", shown, _render_card(shown), is_long=True)


def _render_card(shown: _ShownCard) -> Iterator[Shown]:
    found, days = shown.card, age_in_days(shown.card.updated)
    age = "of unknown age" if days is None else "of today" if days == 0 else f"{many(days, 'day')} old"
    parts = [f"a claim {age}"]
    if found.updated:
        parts.append(f"updated {found.updated}, created {found.created or '?'}")
    if found.confirmed:
        parts.append(f"confirmed {found.confirmed}")
    if found.writer or found.repository:
        parts.append(f"by {found.writer or '?'} in {found.repository or '?'}")
    if shown.handoff:
        parts.append(f"handoff {shown.handoff}")
    yield style(f"{found.path}: {'; '.join(parts)}", bold=True)
    if found.problem:
        yield style(f"frontmatter: {found.problem}", fg="yellow")
    yield ""
    yield MultilineText(shown.text.rstrip("\n"))


# --- Writing ---------------------------------------------------------------------------------------------------------


@card.command()
@click.argument("name", required=False)
@click.option("--topic", default="", metavar="TEXT", help="Topic, in one line.")
@click.option("--category", default="", metavar="WORD", help="Category. [default: project-context]")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Tag; may be repeated.")
@click.option(
    "--file",
    "file",
    metavar="FILE",
    shell_complete=complete_files,
    help="Read the text from a file; - is standard input.",
)
@click.option(
    "--update",
    metavar="CARD",
    default="",
    shell_complete=complete_cards,
    help="Add the new lines to this card instead.",
)
@repo_option
@click.option("--anyway", is_flag=True, help="Create a card even if one covers the topic or the text is short-lived.")
@dry_run_option
@in_workspace_if_any
def write(
    opened: Workspace | None, name: str | None, update: str, file: str | None, repo: str | None, **given: Any
) -> None:
    """Write a card, or add to the one that covers the topic.

    Searches first; a new card also gets its line in the index. The text comes from --file, standard input, or your
    editor; it may have its own frontmatter. It is checked as in ingest. Text that belongs in code, git, CLAUDE.md or a
    task list is rejected, with the reason for each line. On a machine that is not the canonical host it leaves a
    handoff. Exit 3, with nothing written: a card already covers it (`already-covered`), or the text was rejected
    (`invalid-handoff`).

    Example: truekeep card write --topic 'Staging sits behind a proxy' --file note.md
    """
    if name and update:
        raise usage_error("NAME is for a new card; --update names the one to add to.")
    by = CardAuthor.here(
        repository_root(repo),
        writer=running_harness() or person(),
        actor=person(),
        is_named=repo is not None,
        memory=opened.path if opened else None,
    )
    options = {key: given[key] for key in ("topic", "category", "tags")}
    editor = _CardEditor(opened, by, anyway=given["anyway"], dry_run=given["dry_run"])
    text, is_edited = _read_text(file)
    try:
        while True:
            known = update and (opened.cards.get_file(update)[0] if opened is not None else update)
            wanted = parse_card_text(text, name=name or "", is_update=bool(known), **options)
            try:
                written = editor.write(wanted, known)
                break
            except InvalidHandoff as error:
                if not editor.is_asked or (again := editor.ask_again(text, error)) is None:
                    raise
                is_edited, text = is_edited or again != text, again
    except BaseException:
        if is_edited:
            _keep(text)
        raise
    emit("card-write", written, _render_written(written))


def _read_text(file: str | None) -> tuple[str, bool]:
    """The text, and whether it was written in an editor just now."""
    if file is None and can_ask():
        edited = click.edit("", extension=".md")
        if edited is None:
            raise BadInput("no text was saved in the editor", hint="read the text from a file with --file FILE")
        return edited, True
    try:
        raw = sys.stdin.buffer.read() if file in (None, "-") else read_named(str(file))
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", hint="give a text file, or - for standard input") from error
    text = decode_text(raw)
    if text is None:
        raise BadInput(f"{file or 'standard input'} is not UTF-8 text", hint="save it as UTF-8")
    return text, False


class _CardEditor:
    """Writes a card, and asks questions if a person is at the terminal."""

    def __init__(self, opened: Workspace | None, by: CardAuthor, *, anyway: bool, dry_run: bool) -> None:
        self.opened, self.by, self.anyway, self.dry_run = opened, by, anyway, dry_run
        self.is_asked = not wants_json() and can_ask() and sys.stdout.isatty()
        self._chosen: str | None = None  # the card to add to; empty: a new one

    def write(self, wanted: CardText, update: str) -> CardWriteResult:
        if self.opened is None:
            return producer.leave_card(wanted, self.by, is_update=bool(update), anyway=self.anyway)
        if self.is_asked and not update and not self.anyway:
            if self._chosen is None:
                found = self.opened.cards.find_covering(wanted, self.by.repository)
                self._chosen = _ask_which(found) if found else ""
            update = self._chosen
        is_seen = self._chosen is not None
        return self.opened.cards.write(
            wanted, self.by, update=update, anyway=self.anyway, is_seen=is_seen, dry_run=self.dry_run
        )

    def ask_again(self, text: str, error: InvalidHandoff) -> str | None:
        """The text to try again, after a person has seen what is wrong with it; None to leave it."""
        echo(f"{error.message}:")
        for line in render_findings(error.findings, indent="  "):
            echo(line)
        can_pass = not any(RULES[finding.code].binding for finding in error.findings)
        answer = prompt(
            "e to edit the text, s to stop" + (", a to write it anyway" if can_pass else ""),
            type=click.Choice(["e", "s", *("a" * can_pass)]),
            default="e",
            show_choices=False,
        )
        if answer == "a":
            self.anyway = True
            return text
        return click.edit(text, extension=".md") if answer == "e" else None


def _ask_which(found: Sequence[CoveringCard]) -> str:
    """The card that a person wants to add to; empty for a new one."""
    echo("Memory may already have this:")
    for number, item in enumerate(found, 1):
        age = short_age(age_in_days(item.card.updated))
        said = style(f"; {item.said}", fg="red" if item.is_refuted else None) if item.said else ""
        echo(f"  {number}  {item.card.name} ({age}) {item.why}{said}: {item.card.topic}")
    choices = [str(number) for number in range(1, len(found) + 1)]
    answer = prompt(
        "Add to which one? Or n for a new card, s to stop",
        type=click.Choice([*choices, "n", "s"]),
        default="1" if found[0].is_sure else "n",
        show_choices=False,
    )
    if answer == "s":
        raise click.Abort
    return "" if answer == "n" else found[int(answer) - 1].card.name


def _keep(text: str) -> None:
    """Save the text of a card that was not written, so that it is not lost."""
    descriptor, path = tempfile.mkstemp(prefix="truekeep-card-", suffix=".md")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    echo(f"your text was saved in {path}", err=True)


def _render_written(written: CardWriteResult) -> Iterator[Shown]:
    ending = " for the canonical host" if written.outcome == "left" else ""
    yield from render_difference(written.difference)
    yield f"{style(_WORDS[written.outcome], fg='green')} {written.path}{ending}{how_to_undo(written.entry)}"
    if written.passed:
        yield f"  accepted anyway, and recorded: {', '.join(written.passed)}"
    for finding in written.hints:
        place = f"line {finding.line}: " if finding.line else ""
        yield f"  hint, {place}{finding.code}: {finding.message}"
    for item in written.covering:
        yield f"  see also {item.card.path}, which {item.why}: {item.card.topic}"
    yield from map(note, written.notes)


@card.command()
@_names_argument
@in_workspace
def confirm(opened: Workspace, names: tuple[str, ...]) -> int:
    """Mark cards as still correct today.

    Writes `confirmed: YYYY-MM-DD` into the frontmatter and changes nothing else. Editing the card removes the
    confirmation. Cards that are empty or have no frontmatter are refused (exit 3); the others are still confirmed.

    Example: truekeep card confirm staging-proxy
    """
    _one_as_json(names)

    def act(name: str) -> None:
        path, day, entry = opened.cards.confirm(name, actor=person())
        told = f"{style('confirmed', fg='green')} {path}, {day}{how_to_undo(entry)}"
        emit(
            "card-confirm",
            {"path": path, "confirmed": day, "entry": entry, "changed": entry is not None},
            [told if entry is not None else f"{path} was already confirmed on {day}"],
        )

    return for_each(names, act)[2]


def _one_as_json(names: tuple[str, ...]) -> None:
    if wants_json() and len(names) > 1:
        raise BadInput("--json is for one card at a time", hint="run it once for each")


@card.command()
@_names_argument
@click.option("--reason", required=True, metavar="TEXT", help="Reason, recorded in the ledger.")
@yes_option
@in_workspace
def drop(opened: Workspace, names: tuple[str, ...], reason: str, yes: bool) -> int:
    """Remove cards and their lines in the index.

    An index line that contains more than the link to the card stays, and is reported. `truekeep undo` restores
    everything.

    Example: truekeep card drop staging-proxy --reason 'the proxy is gone'
    """
    _one_as_json(names)

    def act(name: str) -> None:
        found, stored = opened.cards.get_file(name)
        if not yes:
            if wants_json() or not can_ask():
                raise BadInput(f"{found} needs confirmation", hint="add --yes to drop it without asking")
            shown = opened.cards.get(found)[0]
            age = short_age(age_in_days(shown.updated))
            ask_yes_no(f"Drop {shown.path} ({age} old): {shown.topic}?", abort=True)
        dropped = opened.cards.drop(found, reason=reason, actor=person(), seen=stored.data)
        told = f"{style('dropped', fg='magenta')} {dropped.path}{how_to_undo(dropped.entry)}"
        left = (style("MEMORY.md still says: ", fg="yellow") + line for line in dropped.left)
        emit("card-drop", dropped, [told, *left])

    return for_each(names, act)[2]


@card.command()
@click.argument("topic")
@click.argument("names", nargs=-1, metavar="[CARD]...")
@click.option("--matching", metavar="WORD", default="", help="All cards whose topic contains WORD.")
@in_workspace
def consolidate(opened: Workspace, topic: str, names: tuple[str, ...], matching: str) -> None:
    """Replace the index lines of several cards by one.

    Writes a new card that lists them, and puts its line in the place of theirs. The cards stay as they are, and are
    found by search as before; `truekeep reconcile` does not add their lines again. An index line that contains more
    than the link to a card stays, and is reported. `truekeep undo` restores everything.

    Example: truekeep card consolidate Importer --matching importer
    """
    chosen = [found.name for found in opened.cards.all() if matching and matching.casefold() in found.topic.casefold()]
    done = opened.cards.consolidate(topic, [*names, *chosen], actor=person())
    told = f"{style('consolidated', fg='green')} {len(done.cards)} cards under {done.path}{how_to_undo(done.entry)}"
    left = (style("MEMORY.md still says: ", fg="yellow") + line for line in done.left)
    emit("card-consolidate", done, [told, *left])


card.add_command(split)
card.add_command(join)
