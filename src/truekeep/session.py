"""Sessions: reads what an agent must know, writes what it leaves. One entry in the ledger for each checkpoint.

What is appended stays as it is; the handover before this one is in the ledger's history. Texts come from agents, so
no credential and no unseen character of theirs reaches memory, and what gives orders to the next reader is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.brief import unmarked, visible
from truekeep.card import parse_card
from truekeep.disk import ChangedSince, UnsafePath, decode_text
from truekeep.errors import BadInput, EditedSince
from truekeep.model import BEGIN_MARK, CARDS, END_MARK
from truekeep.wake import CardSeen, card_line

if TYPE_CHECKING:
    from truekeep.books import Books
    from truekeep.checkpoint import Checkpoint, Write
    from truekeep.vault import Vault
    from truekeep.verify.kept import Checked
    from truekeep.verify.verdict import Verdict

_RETRIES = 3
_LOOKED_AT = 1_000  # files that are asked for their time
_LANGUAGES: Mapping[str, tuple[str, ...]] = {  # by a file at the top of a repository, or its ending
    "pyproject.toml": ("python",), "setup.py": ("python",), "requirements.txt": ("python",), ".py": ("python",),
    "package.json": ("javascript", "node"), "tsconfig.json": ("typescript",), ".js": ("javascript",),
    ".ts": ("typescript",), "cargo.toml": ("rust",), "go.mod": ("go", "golang"), "pom.xml": ("java",),
    "build.gradle": ("java", "gradle"), "build.gradle.kts": ("kotlin", "gradle"), "gemfile": ("ruby",),
    "composer.json": ("php",), "mix.exs": ("elixir",), "package.swift": ("swift",), "cmakelists.txt": ("c++", "cmake"),
    ".csproj": ("c#", "dotnet"), ".sln": ("c#", "dotnet"), ".tf": ("terraform",), "dockerfile": ("docker",),
    "flake.nix": ("nix",), ".sh": ("bash", "shell"), ".sql": ("sql",),
}  # fmt: skip
_READ = 3  # times as many cards as are wanted are opened to find those of a repository


class Listed(NamedTuple):
    """A card as a list of cards has it: enough to choose by."""

    path: str
    repository: str
    day: str


class Left(NamedTuple):
    """What a checkpoint did: the files it wrote, or the handoffs it left for the canonical host."""

    paths: tuple[str, ...]
    handoffs: tuple[str, ...]
    notes: tuple[str, ...]


def read_text(vault: Vault, path: str) -> str | None:
    """A memory file's text; None for what is not there, or is no plain text file."""
    try:
        stored = vault.read(path)
    except (UnsafePath, ChangedSince, OSError):
        return None
    return decode_text(stored.data) if stored else None


# --- Waking ----------------------------------------------------------------------------------------------------------


def choose_cards(listed: Sequence[Listed], repository: str, most: int) -> list[Listed]:
    """The cards to tell of: of this repository, the latest first, then those that belong to none."""
    here = [card for card in listed if repository and card.repository == repository]
    free = [card for card in listed if not card.repository]
    return [*_latest(here)[:most], *_latest(free)[:most]]


def _latest(cards: Sequence[Listed]) -> list[Listed]:
    return sorted(sorted(cards), key=lambda card: card.day, reverse=True)


def see_cards(
    vault: Vault, chosen: Sequence[Listed], repository: str, say: Callable[[str, str], tuple[str, bool]]
) -> Iterator[CardSeen]:
    """The chosen cards, read. `say` tells what code says to a card's path and text, and whether it refutes it."""
    for item in chosen:
        text = read_text(vault, item.path)
        if text is None:
            continue
        card = parse_card(item.path.rpartition("/")[2], text)
        said, is_refuted = say(item.path, text)
        updated = card.updated or card.created
        yield CardSeen(
            path=item.path,
            topic=" ".join(card.topic.split()),
            day=updated.isoformat() if updated else item.day,
            body=card.body,
            is_here=bool(repository) and item.repository == repository,
            said=said,
            is_refuted=is_refuted,
        )


def look_around(root: Path | None) -> tuple[frozenset[str], Callable[[str], bool]]:
    """What a look at the top of a repository tells: its languages and files by name; and whether it has a path."""
    if root is None:
        return frozenset(), lambda _: False
    try:
        with os.scandir(root) as entries:
            found = {entry.name.lower() for entry, _ in zip(entries, range(_LOOKED_AT), strict=False)}
    except OSError:
        found = set()
    names = {name for name in found if "." in name.strip(".")}
    for name in found:
        names.update(_LANGUAGES.get(name, ()) or _LANGUAGES.get(name[name.rfind(".") :], ()))

    def has(path: str) -> bool:
        return ".." not in path.split("/") and os.path.lexists(os.path.join(root, path))

    return frozenset(names), has


def hint_text(cards: Sequence[CardSeen], today: date, rules: Sequence[str] = ()) -> str:
    """A few cards and rules as text for an agent, marked as ours."""
    body = ""
    for what, lines in (
        ("cards that this prompt touches", [line for card in cards for line in card_line(card, today).split("\n")]),
        ("what was learned about this from mistakes", [f"- {visible(rule)}" for rule in rules]),
    ):
        if lines:
            body += f"Shared memory has {what}:\n" + unmarked("".join(f"> {line}\n" for line in lines))
    return f"{BEGIN_MARK} hint -->\n{body}{END_MARK} hint -->\n"


def list_cards(root: str, repository: str, *, most: int) -> tuple[list[Listed], int]:
    """The newest cards of a repository and of none by their files, for a workspace that was never indexed.

    Also how many cards there are. With thousands of them there is no time to look at each: the inodes tell which may be
    new, as file systems mostly count them up.
    """
    folder = os.path.join(root, CARDS)
    try:
        with os.scandir(folder) as entries:
            cards = [entry for entry in entries if entry.name.endswith(".md") and entry.name[0] != "."]
    except OSError:
        return [], 0
    newest = sorted(cards, key=os.DirEntry.inode, reverse=True)[:_LOOKED_AT] if len(cards) > _LOOKED_AT else cards
    dated = sorted(((_written_at(entry), entry.name) for entry in newest), reverse=True)
    listed: list[Listed] = []
    for at, name in dated[: _READ * most]:
        if at and (card := _list_card(folder, name, at)) is not None:
            listed.append(card)
        if all(sum(card.repository == wanted for card in listed) >= most for wanted in (repository, "")):
            break
    return listed, len(cards)


def _written_at(entry: os.DirEntry[str]) -> int:
    """When a plain file was written; 0 for anything else."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0


def _list_card(folder: str, name: str, at: int) -> Listed | None:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            head = file.read(2_000)
    except OSError:
        return None
    card = parse_card(name, head)
    day = card.updated or card.created or datetime.fromtimestamp(at / 1e9, UTC).date()
    return Listed(f"{CARDS}/{name}", card.front.text("repository"), day.isoformat())


def in_words(checked: Checked | str) -> tuple[str, bool]:
    """What code says to a memory, in a few words, and whether it refutes it."""
    if isinstance(checked, str):
        return checked, False
    rot = [item for item in checked.verdicts if item.is_rot]
    if rot:
        named = ", ".join(f"`{item.claim.text}` {_fate(item)}" for item in rot[:3])
        return named + (f" and {len(rot) - 3} more" if len(rot) > 3 else ""), True
    held = sum(item.verdict == "confirmed" for item in checked.verdicts)
    changed = [item.claim.text for item in checked.verdicts if item.verdict == "changed"]
    if changed:
        return f"the code of `{changed[0]}`{' and others' if len(changed) > 1 else ''} changed since", False
    return (f"{held} of {len(checked.verdicts)} claims hold" if held else "", False)


def _fate(verdict: Verdict) -> str:
    return f"is now {verdict.place}" if verdict.verdict == "moved" and verdict.place else f"is {verdict.verdict}"


# --- Leaving ---------------------------------------------------------------------------------------------------------


def clean(checkpoint: Checkpoint) -> tuple[Checkpoint, list[str]]:
    """A checkpoint that may be written, and what was changed for that. Orders to the reader are refused."""
    from truekeep.checkpoint import checked
    from truekeep.hidden import strip_hidden
    from truekeep.instructions import find_instructions
    from truekeep.secrets import withhold
    from truekeep.transcript import cut_injected

    notes: list[str] = []
    for name, text in checkpoint.parts():
        orders = find_instructions(text)
        if orders:
            raise BadInput(
                f"{name.replace('_', ' ')} gives orders to the agent that will read it: {orders[0].excerpt!r}",
                hint="say what is so, not what to do with other instructions; nothing was written",
            )

    def safe(name: str, text: str) -> str:
        own = cut_injected(text)
        if own != text:
            notes.append(f"what truekeep itself had told was left out of {name.replace('_', ' ')}")
        plain = strip_hidden(own).strip()
        masked = withhold(plain)
        if masked != plain:
            notes.append(f"a credential in {name.replace('_', ' ')} was masked")
        return masked

    values: dict[str, Any] = {}
    for name, value in checkpoint._asdict().items():
        if isinstance(value, str):
            values[name] = safe(name, value)
        elif name == "subagents":
            values[name] = tuple((label, safe(name, text)) for label, text in value)
        else:
            values[name] = tuple(safe(name, text) for text in value)
    return checked(type(checkpoint)(**values)), list(dict.fromkeys(notes))


def leave_handoffs(
    checkpoint: Checkpoint, root: Path, *, writer: str, writers: Mapping[str, str], now: datetime, machine: str
) -> list[str]:
    """What a machine that may not write memory leaves for the one that may: a handoff for each entry."""
    from truekeep.checkpoint import as_handoffs
    from truekeep.config import Config
    from truekeep.handoff import compose_handoff, handoff_name
    from truekeep.inbox import Inbox, deliver
    from truekeep.journal import speaker
    from truekeep.repo import repository_name
    from truekeep.wake import place_of

    repository = repository_name(root)
    by = speaker(writer, repository, machine)
    letters = []
    for document, content in as_handoffs(checkpoint, now=now, by=by, project=place_of(repository).slug):
        title = f"Checkpoint for {document}"
        # The moment makes each handoff another one: the same words may be said again, and mean it.
        evidence = ", ".join(part for part in ("truekeep checkpoint", by, now.isoformat()) if part)
        summary = "What a session on another machine did."
        text = compose_handoff(title=title, summary=summary, evidence=[evidence], document=document, content=content)
        letters.append((handoff_name(f"{now:%S} {title}", now), text.encode()))  # its second, for the order
    if any(len(raw) > Config().limits.handoff_bytes for _, raw in letters):
        raise BadInput("the checkpoint is too long for a handoff; nothing was left", hint="say less, or in parts")
    chosen = writer if writer in writers else next(iter(writers))
    inbox = Inbox(root=root, folder=writers[chosen], writer=chosen)
    return [str(deliver(inbox, name, raw)) for name, raw in letters]


class Session:
    """Writes what a session leaves, through the books."""

    def __init__(self, books: Books, *, actor: str, now: datetime) -> None:
        self._books = books
        self._actor = actor
        self._now = now

    def write(
        self, plan: Callable[[Callable[[str], str | None]], Sequence[Write]], *, verb: str, note: str
    ) -> list[str]:
        """Plan with the files as they are, and write all of it or nothing. Gives the paths, in order."""
        for attempt in range(_RETRIES):
            try:
                return self._write(plan, verb, note)
            except EditedSince:
                if attempt == _RETRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def _write(self, plan: Callable[[Callable[[str], str | None]], Sequence[Write]], verb: str, note: str) -> list[str]:
        from truekeep.journal import appended
        from truekeep.ledger import Entry
        from truekeep.sections import with_sections
        from truekeep.vault import Staging

        staging = Staging(self._books.vault)

        def read(path: str) -> str | None:
            data = staging.read(path)
            return None if data is None else decode_text(data)

        writes = plan(read)
        for write in writes:
            try:
                data = staging.read(write.path)
            except UnsafePath as error:
                raise BadInput(str(error), hint="put a plain file there and run it again") from error
            try:
                text = data.decode() if data is not None else ""  # with its own line ends
            except UnicodeDecodeError as error:
                hint = "open it in an editor and save it as UTF-8"
                raise BadInput(f"{write.path} is not UTF-8 text", hint=hint) from error
            if write.mode == "overwrite":
                staging.put(write.path, write.text.encode(), 0)
            elif write.mode == "sections":
                new = with_sections(text, write.sections, path=write.path, title=write.title, stamp=write.text)
                staging.put(write.path, new.encode(), 0)
            else:
                staging.append(write.path, appended(text, write.text, title=write.title).encode(), 0)
        at = self._now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._books.act(staging, Entry(at=at, verb=verb, actor=self._actor, note=note[:200]))
        return list(dict.fromkeys(write.path for write in writes))
