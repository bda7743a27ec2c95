"""truekeep card list, show, write, confirm, drop."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.config import Config
from truekeep.core.dates import many
from truekeep.core.errors import BadInput, BadSetup, InvalidHandoff
from truekeep.core.git import find_top, repository_name
from truekeep.core.machine import person
from truekeep.core.model import RULES
from truekeep.interfaces.cli.app import show_error
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files, complete_folders
from truekeep.interfaces.cli.handoff import running_harness, workspace_if_any
from truekeep.interfaces.cli.output import (
    age_in_days,
    json_option,
    open_workspace,
    print_difference,
    print_findings,
    print_json,
    print_table,
    read_named,
    shown_age,
    shown_finding,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import ask_yes_no, echo, echo_text, print_note, prompt, style
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.workspace import producer
from truekeep.workspace.card_text import CardAuthor, parse_card_text
from truekeep.workspace.card_writing import leave_card

if TYPE_CHECKING:
    from truekeep.memory.card import Card
    from truekeep.workspace.card_overlap import CoveringCard
    from truekeep.workspace.card_text import CardText
    from truekeep.workspace.card_writing import CardWriteResult
    from truekeep.workspace.workspace import Workspace


@click.group()
def card() -> None:
    """List, show, write, confirm and remove cards.

    A card is a claim about one topic at one moment; its age is always shown first.

    Example: truekeep card list
    """


def _today() -> date:
    return datetime.now().astimezone().date()


def _card_json(found: Card) -> dict[str, Any]:
    return {
        "name": found.name,
        "path": found.path,
        "topic": withhold(found.topic),
        "category": withhold(found.category),
        "tags": [withhold(tag) for tag in found.tags],
        "created": found.created,
        "updated": found.updated,
        "confirmed": found.confirmed,
        "age_days": age_in_days(found.updated, _today()),
        "repository": found.repository,
        "writer": found.writer,
        "problem": found.problem,
    }


@card.command("list")
@click.option("--category", help="Only this category.")
@click.option("--tag", help="Only cards with this tag.")
@json_option
@workspace_option
@click.pass_context
def list_(ctx: click.Context, category: str | None, tag: str | None, as_json: bool, workspace: str | None) -> None:
    """List the cards with their age, origin and topic.

    Example: truekeep card list --tag proxy
    """
    cards = [
        found
        for found in open_workspace(ctx, workspace).cards.all()
        if (category is None or found.category == category) and (tag is None or tag in found.tags)
    ]
    if as_json:
        print_json("card-list", {"cards": [_card_json(found) for found in cards]})
        return
    rows = [
        [
            found.name,
            shown_age(age_in_days(found.updated, _today())),
            withhold(found.category),
            found.writer,
            found.repository,
            withhold(found.topic + (f"  [{', '.join(found.tags)}]" if found.tags else "")),
        ]
        for found in cards
    ]
    if rows:
        print_table(["card", "age", "category", "writer", "repository", "topic"], rows)
    echo(many(len(cards), "card"))


@card.command()
@click.argument("name", shell_complete=complete_cards)
@json_option
@workspace_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool, workspace: str | None) -> None:
    """Show a card, with its age and origin in the first line.

    A unique beginning of its name is enough.

    Example: truekeep card show staging-proxy
    """
    found, text, entry, record = open_workspace(ctx, workspace).cards.get(name, partly=True, masked=True)
    handoff = record.origin.name if record else ""
    if as_json:
        data = _card_json(found) | {"text": text, "entry": entry.id if entry else None, "handoff": handoff}
        print_json("card-show", data)
        return
    days = age_in_days(found.updated, _today())
    age = "of unknown age" if days is None else "of today" if days == 0 else f"{days} day{'s' * (days != 1)} old"
    parts = [f"a claim {age}"]
    if found.updated:
        parts.append(f"updated {found.updated}, created {found.created or '?'}")
    if found.confirmed:
        parts.append(f"confirmed {found.confirmed}")
    if found.writer or found.repository:
        parts.append(f"by {found.writer or '?'} in {found.repository or '?'}")
    if handoff:
        parts.append(f"handoff {handoff}")
    echo(style(f"{found.path}: {'; '.join(parts)}", bold=True))
    if found.problem:
        echo(style(f"frontmatter: {found.problem}", fg="yellow"))
    echo()
    echo_text(text.rstrip("\n"))


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
@click.option(
    "--repo", metavar="DIR", shell_complete=complete_folders, help="Repository it is about. [default: the current one]"
)
@click.option("--anyway", is_flag=True, help="Create a card even if one covers the topic or the text is short-lived.")
@click.option("--dry-run", is_flag=True, help="Show what would be written without writing it.")
@json_option
@workspace_option
@click.pass_context
def write(ctx: click.Context, /, as_json: bool, workspace: str | None, **given: Any) -> None:
    """Write a card, or add to the one that covers the topic.

    Searches first; a new card also gets its line in the index. The text comes from --file, standard input, or your
    editor; it may have its own frontmatter. It is checked as in ingest. Text that belongs in code, git, CLAUDE.md or a
    task list is rejected, with the reason for each line. On a machine that is not the canonical host it leaves a
    handoff. Exit 3, with nothing written: a card already covers it (`already-covered`), or the text was rejected
    (`invalid-handoff`).

    Example: truekeep card write --topic 'Staging sits behind a proxy' --file note.md
    """
    if given["name"] and given["update"]:
        raise click.UsageError("NAME is for a new card; --update names the one to add to.")
    opened = workspace_if_any(ctx, workspace)
    by = _scribe(opened, given["repo"])
    options = {name: given[name] for name in ("topic", "category", "tags")}
    is_asked = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    text, is_edited = _read_text(given["file"])
    desk = _CardEditor(opened, by, anyway=given["anyway"], dry_run=given["dry_run"], is_asked=is_asked)
    try:
        while True:
            update = given["update"] and _known_name(opened, given["update"])
            wanted = parse_card_text(text, name=given["name"] or "", is_update=bool(update), **options)
            try:
                written = desk.write(wanted, update)
            except InvalidHandoff as error:
                if not is_asked or (again := _ask_again(text, error, desk)) is None:
                    raise
                is_edited, text = is_edited or again != text, again
                continue
            break
    except BaseException:
        if is_edited:
            _keep(text)
        raise
    _show_written(written, as_json=as_json)


def _scribe(opened: Workspace | None, repo: str | None) -> CardAuthor:
    if repo is not None and not Path(repo).is_dir():
        raise BadInput(f"{repo} is not a folder", hint="name the repository's root with --repo")
    root = find_top(Path(repo) if repo is not None else Path.cwd()) or (Path(repo) if repo is not None else None)
    if repo is None and root is not None and opened is not None and root.resolve() == opened.path.resolve():
        root = None  # memory itself is about no repository
    return CardAuthor(
        writer=running_harness() or person(),
        actor=person(),
        now=datetime.now().astimezone(),
        root=root,
        repository=repository_name(root) if root is not None else "",
        is_named=repo is not None,
    )


def _known_name(opened: Workspace | None, wanted: str) -> str:
    """The name of a card that is there; where no cards can be seen, as it was given."""
    return opened.cards.get_file(wanted)[0] if opened is not None else wanted


def _read_text(file: str | None) -> tuple[str, bool]:
    """The text, and whether it was written in an editor just now."""
    if file is None and sys.stdin is not None and sys.stdin.isatty():
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

    def __init__(
        self, opened: Workspace | None, by: CardAuthor, *, anyway: bool, dry_run: bool, is_asked: bool
    ) -> None:
        self.opened, self.by, self.anyway, self.dry_run, self.is_asked = opened, by, anyway, dry_run, is_asked
        self._chosen: str | None = None  # the card to add to; empty: a new one

    def write(self, wanted: CardText, update: str) -> CardWriteResult:
        if self.opened is None:
            if self.by.root is None or update:
                raise BadSetup(
                    "there is no workspace on this machine",
                    hint="in a repository, a new card is left as a handoff; what is on a card is changed on the host",
                )
            return leave_card(wanted, self.by, producer.judge, Config(), anyway=self.anyway)
        if self.is_asked and not update and not self.anyway:
            if self._chosen is None:
                found = self.opened.cards.find_covering(wanted, self.by.repository)
                self._chosen = _ask_which(found) if found else ""
            update = self._chosen
        return self.opened.cards.write(
            wanted,
            self.by,
            update=update,
            anyway=self.anyway,
            is_seen=self._chosen is not None,
            dry_run=self.dry_run,
        )


def _ask_which(found: Sequence[CoveringCard]) -> str:
    """The card that a person wants to add to; empty for a new one."""
    echo("Memory may already have this:")
    for number, item in enumerate(found, 1):
        age = shown_age(age_in_days(item.card.updated, _today()))
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


def _ask_again(text: str, error: InvalidHandoff, desk: _CardEditor) -> str | None:
    """The text to try again, after a person has seen what is wrong with it; None to leave it."""
    echo(f"{error.message}:")
    print_findings(error.findings, indent="  ")
    can_pass = not any(RULES[finding.code].binding for finding in error.findings)
    answer = prompt(
        "e to edit the text, s to stop" + (", a to write it anyway" if can_pass else ""),
        type=click.Choice(["e", "s", *("a" * can_pass)]),
        default="e",
        show_choices=False,
    )
    if answer == "a":
        desk.anyway = True
        return text
    if answer == "e" and (edited := click.edit(text, extension=".md")) is not None:
        return edited
    return None


def _keep(text: str) -> None:
    """Save the text of a card that was not written, so that it is not lost."""
    descriptor, path = tempfile.mkstemp(prefix="truekeep-card-", suffix=".md")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    echo(f"your text was saved in {path}", err=True)


def _show_written(written: CardWriteResult, *, as_json: bool) -> None:
    if as_json:
        covering = [
            _card_json(item.card) | {"why": item.why, "sure": item.is_sure, "code_says": item.said}
            for item in written.covering
        ]
        data = {
            "outcome": written.outcome,
            "path": written.path,
            "topic": written.topic,
            "entry": written.entry,
            "passed": list(written.passed),
            "hints": [shown_finding(finding) for finding in written.hints],
            "covering": covering,
            "difference": list(written.difference),
            "notes": list(written.notes),
        }
        print_json("card-write", data)
        return
    words = {
        "written": "wrote",
        "updated": "added to",
        "already": "nothing new for",
        "planned": "would write",
        "left": "left",
    }
    ending = " for the canonical host" if written.outcome == "left" else ""
    undo = f" (`truekeep undo {written.entry}` undoes it)" if written.entry else ""
    print_difference(written.difference)
    echo(f"{style(words[written.outcome], fg='green')} {written.path}{ending}{undo}")
    if written.passed:
        echo(f"  accepted anyway, and recorded: {', '.join(written.passed)}")
    for finding in written.hints:
        place = f"line {finding.line}: " if finding.line else ""
        echo(f"  hint, {place}{finding.code}: {finding.message}")
    for item in written.covering:
        echo(f"  see also {item.card.path}, which {item.why}: {item.card.topic}")
    for note in written.notes:
        print_note(note)


@card.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_cards)
@json_option
@workspace_option
@click.pass_context
def confirm(ctx: click.Context, names: tuple[str, ...], as_json: bool, workspace: str | None) -> int:
    """Mark cards as still correct today.

    Writes `confirmed: YYYY-MM-DD` into the frontmatter and changes nothing else. Editing the card removes the
    confirmation. Cards that are empty or have no frontmatter are refused (exit 3); the others are still confirmed.

    Example: truekeep card confirm staging-proxy
    """
    _one_as_json(names, as_json)
    opened = open_workspace(ctx, workspace)

    def act(name: str) -> None:
        path, day, entry = opened.cards.confirm(name, actor=person())
        if as_json:
            print_json("card-confirm", {"path": path, "confirmed": day, "entry": entry, "changed": entry is not None})
        elif entry is None:
            echo(f"{path} was already confirmed on {day}")
        else:
            echo(f"{style('confirmed', fg='green')} {path}, {day} (`truekeep undo {entry}` undoes it)")

    return _for_each(names, act)


def _one_as_json(names: tuple[str, ...], as_json: bool) -> None:
    if as_json and len(names) > 1:
        raise BadInput("--json is for one card at a time", hint="run it once for each")


def _for_each(names: tuple[str, ...], act: Callable[[str], None]) -> int:
    """Do something with each card; one that cannot be done does not stop the others."""
    code = 0
    for name in names:
        try:
            act(name)
        except BadInput as error:
            if len(names) == 1:
                raise
            code = error.exit_code
            show_error(error, as_json=False)
    return code


@card.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_cards)
@click.option("--reason", required=True, metavar="TEXT", help="Reason, recorded in the ledger.")
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@json_option
@workspace_option
@click.pass_context
def drop(
    ctx: click.Context, names: tuple[str, ...], reason: str, yes: bool, as_json: bool, workspace: str | None
) -> int:
    """Remove cards and their lines in the index.

    An index line that contains more than the link to the card stays, and is reported. `truekeep undo` restores
    everything.

    Example: truekeep card drop staging-proxy --reason 'the proxy is gone'
    """

    _one_as_json(names, as_json)
    opened = open_workspace(ctx, workspace)

    def act(name: str) -> None:
        found, stored = opened.cards.get_file(name)
        if not yes:
            if as_json or not sys.stdin.isatty():
                raise BadInput(f"{found} needs confirmation", hint="add --yes to drop it without asking")
            shown = opened.cards.get(found)[0]
            age = shown_age(age_in_days(shown.updated, _today()))
            ask_yes_no(f"Drop {shown.path} ({age} old): {shown.topic}?", abort=True)
        dropped = opened.cards.drop(found, reason=reason, actor=person(), seen=stored.data)
        if as_json:
            print_json("card-drop", {"path": dropped.path, "entry": dropped.entry, "left": list(dropped.left)})
            return
        undo = f"`truekeep undo {dropped.entry}` brings it back"
        echo(f"{style('dropped', fg='magenta')} {dropped.path} ({undo})")
        for line in dropped.left:
            echo(style("MEMORY.md still says: ", fg="yellow") + line)

    return _for_each(names, act)
