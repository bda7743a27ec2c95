"""The wake brief, and the cards and rules that a prompt needs.

Reads the card list of the index and the chosen files, and uses stored verdicts only, because a hook waits for this.
`sessions/wake` decides what fits and in which order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from truekeep.core.dates import as_stamp
from truekeep.core.errors import BadSetup
from truekeep.core.file_io import ChangedSince, UnsafePath, open_regular
from truekeep.core.model import BEGIN_MARK, CARDS, END_MARK
from truekeep.core.repository import repository_name
from truekeep.core.state_dir import STATE
from truekeep.memory.card import parse_card
from truekeep.sessions.packing import Brief, cap_for, unmarked, visible
from truekeep.sessions.state_sections import HEARTBEAT, Moment, overdue_since, plain_text
from truekeep.sessions.wake import (
    CORRECTIONS,
    LISTED_FOLDERS,
    POLICIES,
    CardSeen,
    card_line,
    cards_for,
    compose,
    compose_delegation,
    place_of,
)
from truekeep.text.encoding import decode_text
from truekeep.verify.mask_credentials import mask_shown

if TYPE_CHECKING:
    from truekeep.verify.results import CheckedMemory
    from truekeep.verify.verdict import Verdict
    from truekeep.workspace.context import WorkspaceContext

Say = Callable[[str, str], tuple[str, bool]]
"""The verdicts on a card, by its path and text, in a few words, and whether it is refuted."""

Says = Callable[[Sequence[str], float], Say]
"""Makes a `Say` for several cards, checked within a number of seconds."""

MAX_CARDS_SINCE_INDEX = 400  # that are read one by one
MAX_RULES_PER_PROMPT = 2
MAX_FILES_LISTED = 1_000
MAX_DOCUMENTS = 20  # rules and learnings, of each
CARDS_READ_PER_WANTED = 3  # files that are opened to find one card of a repository
LANGUAGES: Mapping[str, tuple[str, ...]] = {  # by a file at the top of a repository, or its ending
    "pyproject.toml": ("python",), "setup.py": ("python",), "requirements.txt": ("python",), ".py": ("python",),
    "package.json": ("javascript", "node"), "tsconfig.json": ("typescript",), ".js": ("javascript",),
    ".ts": ("typescript",), "cargo.toml": ("rust",), "go.mod": ("go", "golang"), "pom.xml": ("java",),
    "build.gradle": ("java", "gradle"), "build.gradle.kts": ("kotlin", "gradle"), "gemfile": ("ruby",),
    "composer.json": ("php",), "mix.exs": ("elixir",), "package.swift": ("swift",), "cmakelists.txt": ("c++", "cmake"),
    ".csproj": ("c#", "dotnet"), ".sln": ("c#", "dotnet"), ".tf": ("terraform",), "dockerfile": ("docker",),
    "flake.nix": ("nix",), ".sh": ("bash", "shell"), ".sql": ("sql",),
}  # fmt: skip


class CardSummary(NamedTuple):
    """A card as a list of cards has it: enough to choose by."""

    path: str
    repository: str
    day: str


class WakeRequest(NamedTuple):
    """For whom a brief is."""

    tokens: int | None = None
    harness: str = ""
    loaded: Collection[str] | None = None  # files that the harness has shown; None: the usual ones
    is_delegating: bool = False
    repository: str = ""  # its name, where it is on another machine


def wake(context: WorkspaceContext, says: Says, root: Path | None, asked: WakeRequest, *, budget: float) -> Brief:
    """The brief for an agent that starts in this repository. `budget`: seconds for checking cards."""
    tokens, harness = asked.tokens, asked.harness
    cap = cap_for(harness, tokens)
    names, has = look_around(root)
    name = repository_name(root) if root is not None else asked.repository
    place = place_of(name)._replace(names=names, has=has)
    listed, total = _roll(context, place.repository, cards_for(cap))
    chosen = choose_cards(listed, place.repository, cards_for(cap))
    say = says([card.path for card in chosen], budget)
    unread: list[str] = []
    cards = list(see_cards(context, chosen, place.repository, say, unread))
    others = total - len(chosen)
    moment = Moment(context.today(), context.now(), context.config.limits.heartbeat_minutes)
    return compose(
        lambda path: read_shown(context, path, unread),
        cards, place, moment=moment, cap=cap, others=others, unread=unread,
        harness=harness, loaded=asked.loaded, is_delegating=asked.is_delegating,
        source=context.source_note,
        documents=list_documents(str(context.path)), repositories_of=lambda names: _repositories_of(context, names),
    )  # fmt: skip


def overdue_heartbeat(context: WorkspaceContext) -> datetime | None:
    """When HEARTBEAT.md was last updated, if that is longer ago than its interval; None if not, or without one."""
    text = read_shown(context, HEARTBEAT)
    return overdue_since(plain_text(text), context.now(), context.config.limits.heartbeat_minutes) if text else None


def delegation(context: WorkspaceContext, root: Path | None) -> str:
    """What AGENTS.md of the workspace says about giving work to other agents; "" if nothing."""
    place = place_of(repository_name(root) if root is not None else "")
    return compose_delegation(lambda path: read_shown(context, path), place, context.today())


def hint(
    context: WorkspaceContext, says: Says, prompt: str, *, repository: str, told: Sequence[str], root: Path | None
) -> tuple[str, tuple[str, ...]]:
    """Cards and rules for a prompt, as text for the agent, and their keys. Often none: only rare words count."""
    from truekeep.search.prompt_hints import find_hints

    found = find_hints(str(context.path / STATE / "index.sqlite"), prompt, repository=repository, told=set(told))
    listed = [known for item in found if (known := _list_file(context, item.path)) is not None]
    rules = _rules_for(context, prompt, repository, told, root)
    if not listed and not rules:
        return "", ()
    say: Say = says([card.path for card in listed], 0.0) if listed else lambda *_: ("", False)
    cards = list(see_cards(context, listed, repository, say))
    text = hint_text(cards, context.today(), tuple(rules.values()), source=context.source_note)
    return text, (*(card.path for card in cards), *rules)


def _rules_for(
    context: WorkspaceContext, prompt: str, repository: str, told: Sequence[str], root: Path | None
) -> dict[str, str]:
    """Corrections and policies that share rare words with a prompt, by key."""
    texts = [(path, text) for path in (POLICIES, CORRECTIONS) if (text := read_shown(context, path))]
    if not any("|" in text for _, text in texts):
        return {}
    from truekeep.memory.lessons import KINDS, WorkingRepository, called_for, is_called_for, read_lessons
    from truekeep.search.prompt_hints import rare_words

    names, has = look_around(root)
    here = WorkingRepository(repository, place_of(repository).slug, names, has)
    kinds = {kind.path: kind for kind in KINDS}
    found = {
        f"{path}#{crc32(asked.lesson.key.encode()):08x}": asked
        for path, text in texts
        for asked in called_for(prompt, read_lessons(kinds[path], text).lessons, here)
    }
    words = {word for asked in found.values() for word in asked.words}
    rare = rare_words(str(context.path / STATE / "index.sqlite"), words) if words else set()
    sure = [key for key, asked in found.items() if key not in told and is_called_for(asked, rare)]
    return {key: found[key].lesson.shown for key in sure[:MAX_RULES_PER_PROMPT]}


# --- Which cards there are -------------------------------------------------------------------------------------------


def _roll(context: WorkspaceContext, repository: str, most: int) -> tuple[list[CardSummary], int]:
    """The latest cards of a repository and of none: those in the index and those written since.

    Without an index, the newest files. Also the number of all cards.
    """
    from truekeep.search.card_list import read_card_list

    path = str(context.path / STATE / "index.sqlite")
    written = _cards_since(context, path)
    roll = read_card_list(path, repositories={repository, ""}, limit=most + len(written))
    if roll is None:
        return list_cards(str(context.path), repository, most=most)
    listed = {card: CardSummary(card, name, day) for card, name, day in roll.cards if card not in written}
    fresh = [known for card in written if (known := _list_file(context, card)) is not None]
    return [*listed.values(), *fresh], max(roll.total, len(listed) + len(fresh))


def _cards_since(context: WorkspaceContext, index: str) -> list[str]:
    """The cards that truekeep wrote since the index was brought up to date, the latest of them."""
    ledger = context.path / STATE / "ledger.sqlite"
    try:
        since = os.stat(index).st_mtime - 2
        files = [path for path in (ledger, f"{ledger}-wal") if os.path.exists(path)]
        if all(os.stat(path).st_mtime < since for path in files):
            return []
    except OSError:
        return []
    try:
        return context.ledger.paths_since(
            as_stamp(datetime.fromtimestamp(since, UTC)), below=f"{CARDS}/", most=MAX_CARDS_SINCE_INDEX
        )
    except BadSetup:
        return []  # the next ingest reports a damaged ledger; the brief has what the index has


def _list_file(context: WorkspaceContext, path: str) -> CardSummary | None:
    """A card as a list has it, read from its file."""
    text = read_shown(context, path)
    if text is None:
        return None
    card = parse_card(path.rpartition("/")[2], text)
    day = card.updated or card.created
    return CardSummary(path, card.front.text("repository"), day.isoformat() if day else "")


def read_shown(context: WorkspaceContext, path: str, unread: list[str] | None = None) -> str | None:
    """A memory file's text with credentials masked; None if it is missing or not plain text.

    `unread` gets a message if something else has the file's name: a FIFO, a symlink.
    """
    try:
        stored = context.vault.read(path)
    except UnsafePath as error:
        if unread is not None:
            unread.append(f"{error.path} {error.what}")
        return None
    except (ChangedSince, OSError):
        return None
    text = decode_text(stored.data) if stored else None
    return mask_shown(text, context.facts) if text is not None else None


def choose_cards(listed: Sequence[CardSummary], repository: str, most: int) -> list[CardSummary]:
    """The cards for the brief: those of this repository, the latest first, then those of none."""
    here = [card for card in listed if repository and card.repository == repository]
    free = [card for card in listed if not card.repository]
    return [*_latest(here)[:most], *_latest(free)[:most]]


def _latest(cards: Sequence[CardSummary]) -> list[CardSummary]:
    return sorted(sorted(cards), key=lambda card: card.day, reverse=True)


def see_cards(
    context: WorkspaceContext, chosen: Sequence[CardSummary], repository: str, say: Say, unread: list[str] | None = None
) -> Iterator[CardSeen]:
    """Read the chosen cards, with the verdicts on each."""
    for item in chosen:
        text = read_shown(context, item.path, unread)
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
            repository=item.repository if item.repository != repository else "",
        )


def list_documents(root: str) -> list[str]:
    """The rules and learnings of a workspace, by path."""
    found = []
    for folder in LISTED_FOLDERS:
        with suppress(OSError):
            names = sorted(name for name in os.listdir(os.path.join(root, folder)) if name.endswith(".md"))
            found += [f"{folder}/{name}" for name in names if name[0] != "."][:MAX_DOCUMENTS]
    return found


def _repositories_of(context: WorkspaceContext, names: Collection[str]) -> Mapping[str, str]:
    from truekeep.search.card_list import read_repositories

    return read_repositories(str(context.path / STATE / "index.sqlite"), sorted(names)[:MAX_FILES_LISTED])


def look_around(root: Path | None) -> tuple[frozenset[str], Callable[[str], bool]]:
    """The names of files and languages at the top of a repository, and a test for whether it has a path."""
    if root is None:
        return frozenset(), lambda _: False
    try:
        with os.scandir(root) as entries:
            found = {entry.name.lower() for entry, _ in zip(entries, range(MAX_FILES_LISTED), strict=False)}
    except OSError:
        found = set()
    names = {name for name in found if "." in name.strip(".")}
    for name in found:
        names.update(LANGUAGES.get(name, ()) or LANGUAGES.get(name[name.rfind(".") :], ()))

    def has(path: str) -> bool:
        return ".." not in path.split("/") and os.path.lexists(os.path.join(root, path))

    return frozenset(names), has


def hint_text(cards: Sequence[CardSeen], today: date, rules: Sequence[str] = (), *, source: str = "") -> str:
    """A few cards and rules as text for an agent, marked as ours."""
    body = ""
    for what, lines in (
        ("cards that this prompt touches", [line for card in cards for line in card_line(card, today).split("\n")]),
        ("what was learned about this from mistakes", [f"- {visible(rule)}" for rule in rules]),
    ):
        if lines:
            body += f"Shared memory{f' ({visible(source)})' if source else ''} has {what}:\n" + unmarked(
                "".join(f"> {line}\n" for line in lines)
            )
    return f"{BEGIN_MARK} hint -->\n{body}{END_MARK} hint -->\n"


def list_cards(root: str, repository: str, *, most: int) -> tuple[list[CardSummary], int]:
    """The newest cards of a repository and of none, by their files, for a workspace that was never indexed.

    Also the number of all cards. With thousands of them there is no time to read each; the highest inode numbers are
    tried, because most file systems count them up.
    """
    folder = os.path.join(root, CARDS)
    try:
        with os.scandir(folder) as entries:
            cards = [entry for entry in entries if entry.name.endswith(".md") and entry.name[0] != "."]
    except OSError:
        return [], 0
    newest = (
        sorted(cards, key=os.DirEntry.inode, reverse=True)[:MAX_FILES_LISTED]
        if len(cards) > MAX_FILES_LISTED
        else cards
    )
    dated = sorted(((_written_at(entry), entry.name) for entry in newest), reverse=True)
    listed: list[CardSummary] = []
    for at, name in dated[: CARDS_READ_PER_WANTED * most]:
        if at and (card := _list_card(folder, name, at)) is not None:
            listed.append(card)
        if all(sum(card.repository == wanted for card in listed) >= most for wanted in (repository, "")):
            break
    return listed, len(cards)


def _written_at(entry: os.DirEntry[str]) -> int:
    """The modification time of a regular file; 0 for anything else."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0


def _list_card(folder: str, name: str, at: int) -> CardSummary | None:
    try:
        with open(open_regular(os.path.join(folder, name), follow=False), encoding="utf-8", errors="replace") as file:
            head = file.read(2_000)
    except OSError:
        return None
    card = parse_card(name, head)
    day = card.updated or card.created or datetime.fromtimestamp(at / 1e9, UTC).date()
    return CardSummary(f"{CARDS}/{name}", card.front.text("repository"), day.isoformat())


def in_words(checked: CheckedMemory | str) -> tuple[str, bool]:
    """The verdicts on a memory in a few words, and whether it is refuted."""
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
