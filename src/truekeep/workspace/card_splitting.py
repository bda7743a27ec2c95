"""Splits a file of the workspace into cards, and joins cards into a file again: each one ledger entry.

`memory/card_split` and `memory/card_join` plan it. Here is what they must know of the workspace: which names are free,
when each line was written, which lines may not become a card, and which other files link to a section.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, NotFound
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.git import Git
from truekeep.core.model import CARDS, INDEX, PROTECTED, RULES
from truekeep.core.repository import GitFailed, find_top
from truekeep.core.state_dir import STATE
from truekeep.handoffs.format import default_card_name
from truekeep.handoffs.policy.text_checks import check_text
from truekeep.memory.card_join import JoinPlan, plan_join
from truekeep.memory.card_split import (
    LinesLost,
    SplitOptions,
    SplitPlan,
    UnclosedBlock,
    UnknownHeading,
    check_nothing_lost,
    plan_split,
    rules_on_cards,
)
from truekeep.memory.file_scan import iter_files
from truekeep.memory.ledger import Ledger, LedgerEntry, LedgerQuery
from truekeep.memory.lookup import card_names, get_card_file, path_inside
from truekeep.memory.memory_index import Pointers, linked_cards
from truekeep.memory.section_tree import split_lines
from truekeep.memory.similarity import topic_key
from truekeep.memory.split_parts import MovedAnchor
from truekeep.memory.split_reversal import SplitRecord
from truekeep.memory.staging import Staging
from truekeep.text.line_diff import kept_lines
from truekeep.text.markdown_links import linked_path, relative_path
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference

if TYPE_CHECKING:
    from truekeep.memory.staging import FileOnDisk
    from truekeep.workspace.workspace import Workspace

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TARGET_SHARE = 0.5  # of what agents read of the index: so much it should have after a split
MAX_NAME_NUMBER = 1_000
MAX_BLAME_SECONDS = 20.0
_BLAME_LINE = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)")
_EMPTY_LIST = re.compile(rb"^## Cards\s*\Z", re.MULTILINE)
_SYLLABLE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


class LinkFromElsewhere(NamedTuple):
    """A link in another file to a section or a card that moved."""

    path: str
    line: int
    old: str
    new: str


class FileSize(NamedTuple):
    """The size of a file."""

    lines: int
    bytes: int


class FileRewrite(NamedTuple):
    """A file before and after."""

    path: str
    before: bytes
    after: bytes

    @property
    def old_size(self) -> FileSize:
        return _size_of(self.before)

    @property
    def new_size(self) -> FileSize:
        return _size_of(self.after)


class SplitResult(NamedTuple):
    """What was planned or written."""

    plan: SplitPlan
    file: FileRewrite
    links: tuple[LinkFromElsewhere, ...]
    notes: tuple[str, ...]
    difference: tuple[str, ...]
    entry: int | None = None


class JoinResult(NamedTuple):
    """What was planned or written."""

    file: FileRewrite
    names: tuple[str, ...]
    links: tuple[LinkFromElsewhere, ...]
    left: tuple[str, ...]  # lines of the index that say more than the link
    difference: tuple[str, ...]
    entry: int | None = None


class SplitRequest(NamedTuple):
    """What a person wants to be split, and how."""

    path: str = INDEX
    only: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    lines: int | None = None  # the length that the file should have; None: the default
    takes_all: bool = False
    anyway: bool = False  # a person read what the checks found
    rewrites_links: bool = False  # also in other files


# --- Split -----------------------------------------------------------------------------------------------------------


def preview_split(workspace: Workspace, request: SplitRequest) -> SplitResult:
    """What a split would do. Writes nothing."""
    return _split(workspace, Staging(workspace.context.vault), request, is_preview=True)


def split_file(workspace: Workspace, request: SplitRequest, *, actor: str, seen: bytes | None = None) -> SplitResult:
    """Split a file, as one ledger entry. `seen`: the file as the person saw it."""
    with workspace.writing("split files into cards") as transaction:
        staging = Staging(transaction.vault)
        result = _split(workspace, staging, request, is_preview=False)
        if seen not in (None, result.file.before):
            raise EditedSince(f"{result.plan.path} changed meanwhile; nothing was written", hint="run it again")
        if not result.plan.cards:
            return result
        count = len(result.plan.cards)
        note = f"{result.plan.path} into {count} card{'s' * (count != 1)}"
        transaction.act(staging, LedgerEntry(at=workspace.stamp(), verb="split", actor=actor, note=note))
        return result._replace(entry=next(transaction.ledger.entries(limit=1)).id)


def _split(workspace: Workspace, staging: Staging, request: SplitRequest, *, is_preview: bool) -> SplitResult:
    path = _chosen_path(workspace, request.path)
    before, text, mark = _read(staging, path)
    plan = _plan(workspace, staging, request, path, before, text)
    try:
        check_nothing_lost(text, plan)
    except LinesLost as error:
        raise BadInput(
            f"{path} cannot be split safely: {printable(str(error))}", hint="nothing was written; please report this"
        ) from error
    after = mark + plan.rest.encode()
    links = tuple(_links_to_sections(workspace, path, plan.anchors)) if plan.anchors else ()
    if plan.cards:
        for card in plan.cards:
            staging.put(card.path, card.text.encode(), 0)
        staging.put(path, after, 0)
        if path != INDEX:
            for card in plan.cards:
                staging.point_at(card.name, card.label, 0)
        if request.rewrites_links:
            _stage_links(staging, links)
    notes = (*_rule_notes(plan, text, is_preview=is_preview), *_same_topic_notes(workspace, plan))
    return SplitResult(plan, FileRewrite(path, before, after), links, notes, _difference(staging))


def _plan(
    workspace: Workspace, staging: Staging, request: SplitRequest, path: str, data: bytes, text: str
) -> SplitPlan:
    limits = workspace.config.limits
    options = SplitOptions(only=request.only, keep=request.keep)
    if path == INDEX and not request.takes_all and not request.only:
        lines = int(limits.index_lines * TARGET_SHARE) if request.lines is None else request.lines
        options = options._replace(lines=lines, size=int(limits.index_bytes * lines / limits.index_lines))
    elif request.lines is not None:
        options = options._replace(lines=request.lines, size=len(data))
    file_day = _file_day(workspace, path)
    days = _line_days(workspace, path, text, file_day)
    taken = _taken_names(workspace, staging)
    stops = _stops(text, anyway=request.anyway)
    while True:
        try:
            plan = plan_split(
                path,
                text,
                options,
                days=days,
                file_day=file_day,
                name_for=lambda topic, kind, names: _free_name(topic, kind, {*taken, *map(str.casefold, names)}),
                stops=stops,
            )
        except UnclosedBlock as error:
            raise _unclosed(path, error) from error
        except UnknownHeading as error:
            shown = "; ".join(printable(title) for title in error.headings[:12]) or "none"
            raise BadInput(
                f"{path} has no heading {printable(error.wanted)!r}", hint=f"its headings: {shown}"
            ) from error
        # A text check reports only the first findings of a long text: each card is checked by itself.
        more: dict[int, str] = {}
        for card in plan.cards:
            more |= _stops(card.body, anyway=request.anyway, first=card.first)
        if not more.keys() - stops.keys():
            return plan
        stops = {**stops, **more}


def _chosen_path(workspace: Workspace, given: str) -> str:
    path = path_inside(workspace.path, given)
    if path.startswith(f"{CARDS}/"):
        raise BadInput(f"{path} is a card already", hint="name a document, such as MEMORY.md")
    if path.startswith(f"{STATE}/") or not path.endswith(".md"):
        raise BadInput(f"{printable(path)} is not a Markdown file of memory", hint="name a document, such as MEMORY.md")
    if path in PROTECTED and path != INDEX:
        raise BadInput(f"{path} is read as it is by agents, and is not split", hint="name a document of knowledge")
    return path


def _read(staging: Staging, path: str) -> tuple[bytes, str, bytes]:
    """A file's bytes, its text with its own line ends, and its byte-order mark."""
    try:
        data = staging.read(path)
    except UnsafePath as error:
        raise BadInput(str(error), hint="put a plain file there and run it again") from error
    except ChangedSince as error:
        raise EditedSince(f"{path} changed while it was read", hint="run it again") from error
    if data is None:
        raise NotFound(f"there is no {printable(path)} in the workspace", hint="name a file of the workspace")
    mark = BYTE_ORDER_MARK if data.startswith(BYTE_ORDER_MARK) else b""
    try:
        text = data.removeprefix(mark).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text", hint="open it in an editor and save it as UTF-8") from error
    if "\0" in text or "\r" in text.replace("\r\n", "\n"):
        what = "NUL bytes" if "\0" in text else "lone carriage returns"
        raise BadInput(f"{path} has {what}", hint="open it in an editor and save it with plain line ends")
    return data, text, mark


def _stops(text: str, *, anyway: bool, first: int = 0) -> dict[int, str]:
    """The lines that may not be moved to a card as they are, from 0. `first`: the line at which the text begins."""
    found: dict[int, str] = {}
    for finding in check_text(text.replace("\r\n", "\n")):
        number = first + (finding.line or 1)
        if finding.code == "secret":
            found.setdefault(number - 1, f"line {number} {finding.message}; mask it or take it out")
        elif RULES[finding.code].binding or not anyway:
            what = f"line {number}, {finding.code}: {printable(finding.message)}"
            found.setdefault(number - 1, f"{what}; read it, then add --anyway")
    return found


def _file_day(workspace: Workspace, path: str) -> date:
    stored = workspace.context.vault.read(path)
    at = stored.stamp.mtime_ns / 1e9 if stored else 0.0
    return min(datetime.fromtimestamp(at, UTC).astimezone().date(), workspace.today())


def _line_days(workspace: Workspace, path: str, text: str, file_day: date) -> list[date | None]:
    """When each line was last written, by the workspace's git history; None where it does not say."""
    lines = text.replace("\r\n", "\n").split("\n")
    unknown: list[date | None] = [None] * len(lines)
    root = find_top(workspace.path)
    if root is None:
        return unknown
    inside = (workspace.path.resolve() / path).relative_to(root.resolve()).as_posix()
    git = Git(str(root))
    try:
        blamed = git.lines("blame", "--porcelain", "HEAD", "--", inside, timeout=MAX_BLAME_SECONDS)
    except GitFailed:
        return unknown
    finally:
        git.close()
    old, days = _parse_blame(blamed)
    found: list[date | None] = [file_day] * len(lines)  # lines that are not in git are new
    for start, new_start, length in kept_lines(old, lines):
        found[new_start : new_start + length] = days[start : start + length]
    return found


def _parse_blame(blamed: Sequence[str]) -> tuple[list[str], list[date | None]]:
    """The lines of a file in git, and the day of each."""
    commits: dict[str, date] = {}
    lines: list[str] = []
    days: list[date | None] = []
    commit = ""
    for line in blamed:
        if line.startswith("\t"):
            lines.append(line[1:].removesuffix("\r"))
            days.append(commits.get(commit))
        elif (match := _BLAME_LINE.match(line)) is not None:
            commit = match[1]
        elif line.startswith("author-time "):
            commits[commit] = datetime.fromtimestamp(int(line[12:]), UTC).date()
    return lines, days


def _taken_names(workspace: Workspace, staging: Staging) -> set[str]:
    """The names of all cards, and of those that the index still links to."""
    index = staging.read(INDEX) or b""
    return {name.casefold() for name in (*card_names(workspace.context.vault), *linked_cards(index))}


def _free_name(topic: str, category: str, taken: Collection[str]) -> str:
    stem = default_card_name(_in_latin(topic))[:-3]
    stem = category if stem == "card" else stem
    names = (f"{stem}.md" if number == 1 else f"{stem}-{number}.md" for number in range(1, MAX_NAME_NUMBER))
    name = next((name for name in names if name.casefold() not in taken), "")
    if not name:
        raise BadInput(f"all names like {stem}.md are taken", hint="give the section another heading")
    return name


def _in_latin(topic: str) -> str:
    """A topic in plain Latin letters, as far as it has a spelling in them: a card's name has no others."""
    if topic.isascii():
        return topic
    from anyascii import anyascii  # tables of all scripts

    plain = "".join(" " if unicodedata.category(letter) == "So" else letter for letter in topic)  # 🎉 is not a word
    spelled = (
        word if word.isascii() else _SYLLABLE.sub(" ", anyascii(word.translate(_UMLAUTS))) for word in plain.split()
    )
    return " ".join(spelled)


def _rule_notes(plan: SplitPlan, text: str, *, is_preview: bool) -> list[str]:
    """Standing rules that sessions no longer read by themselves."""
    if plan.path != INDEX:
        return []
    found = rules_on_cards(plan, text)
    if is_preview:
        return [
            f"line {number} reads like a standing rule, and would be on {card.name}: --keep leaves its section here"
            for card, number in found
        ]
    return [
        f"line {number} read like a standing rule, and is on {card.name} now:"
        f" `truekeep card join {card.name.removesuffix('.md')}` puts it back"
        for card, number in found
    ]


def _same_topic_notes(workspace: Workspace, plan: SplitPlan) -> list[str]:
    """Cards that are there already and have the topic of a new one."""
    keys = {topic_key(card.topic): card for card in plan.cards}
    return [
        f"{found.path} has the topic of {keys[topic_key(found.topic)].name} already: `truekeep tidy duplicates` merges"
        for found in (workspace.cards.all() if keys else ())
        if topic_key(found.topic) in keys
    ]


# --- Links from other files ------------------------------------------------------------------------------------------


def _links_to_sections(workspace: Workspace, path: str, anchors: Sequence[MovedAnchor]) -> list[LinkFromElsewhere]:
    """The places in other files that name a moved section as `FILE#section`."""
    moved = {item.anchor: item for item in anchors}
    name = re.escape(path.rpartition("/")[2])
    pattern = re.compile(rf"((?:[^\s()<>`\"'\[\]]*/)?{name})#([^\s()<>`\"'\[\]]+)")
    found = []
    for other, text in _other_files(workspace, path):
        for match in pattern.finditer(text):
            target = moved.get(match[2].rstrip(".,;:").lower())
            if target is None or path not in (linked_path(match[1], other), linked_path(match[1], "")):
                continue
            line = text.count("\n", 0, match.start()) + 1
            old = f"{match[1]}#{match[2].rstrip('.,;:')}"
            found.append(
                LinkFromElsewhere(other, line, old, f"{relative_path(target.path, other)}#{target.new_anchor}")
            )
    return found


def _links_to_cards(workspace: Workspace, names: Collection[str], into: str) -> list[LinkFromElsewhere]:
    """The places in other files that name a card which becomes a section."""
    found = []
    for other, text in _other_files(workspace, into):
        if other.removeprefix(f"{CARDS}/") in names:
            continue
        for name in names:
            pattern = re.compile(rf"(?<![\w/-])((?:\.{{1,2}}/)*(?:memory/)?(?:cards/)?{re.escape(name)})(?![\w-])")
            for match in pattern.finditer(text):
                if f"{CARDS}/{name}" in (linked_path(match[1], other), linked_path(match[1], "")):
                    line = text.count("\n", 0, match.start()) + 1
                    found.append(LinkFromElsewhere(other, line, match[1], relative_path(into, other)))
    return found


def _other_files(workspace: Workspace, path: str) -> list[tuple[str, str]]:
    """The other memory files as text; of the index, its own lines for cards are no links from elsewhere."""
    found = []
    for file in iter_files(str(workspace.path)):
        if file.path in (path, INDEX) or not file.location.startswith(str(workspace.path)):
            continue
        try:
            stored = workspace.context.vault.read(file.path)
        except (UnsafePath, ChangedSince, OSError):
            continue
        if stored is not None:
            found.append((file.path, stored.data.decode("utf-8", "surrogateescape")))
    return found


def _stage_links(staging: Staging, links: Sequence[LinkFromElsewhere]) -> None:
    for path in dict.fromkeys(link.path for link in links):
        data = staging.read(path)
        if data is None:
            continue
        lines = data.split(b"\n")
        for link in (link for link in links if link.path == path):
            old, new = (text.encode("utf-8", "surrogateescape") for text in (link.old, link.new))
            lines[link.line - 1] = lines[link.line - 1].replace(old, new, 1)
        staging.put(path, b"\n".join(lines), 0)


# --- Join ------------------------------------------------------------------------------------------------------------


def preview_join(workspace: Workspace, names: Sequence[str], into: str, *, rewrites_links: bool = False) -> JoinResult:
    """What a join would do. Writes nothing."""
    return _join(workspace, Staging(workspace.context.vault), names, into, rewrites_links=rewrites_links)


def join_cards(
    workspace: Workspace, names: Sequence[str], into: str, *, actor: str, rewrites_links: bool = False
) -> JoinResult:
    """Put cards back into a file as sections, and remove them and their index lines, as one ledger entry."""
    with workspace.writing("join cards") as transaction:
        staging = Staging(transaction.vault)
        result = _join(workspace, staging, names, into, rewrites_links=rewrites_links)
        note = f"{', '.join(result.names)} into {result.file.path}"[:200]
        transaction.act(staging, LedgerEntry(at=workspace.stamp(), verb="joined", actor=actor, note=note))
        return result._replace(entry=next(transaction.ledger.entries(limit=1)).id)


def _join(
    workspace: Workspace, staging: Staging, wanted: Sequence[str], into: str, *, rewrites_links: bool
) -> JoinResult:
    path = _chosen_path(workspace, into)
    before, text, mark = _read(staging, path)
    found = dict(get_card_file(workspace.context.vault, name) for name in wanted)
    texts = {name: _card_text(name, stored) for name, stored in found.items()}
    splits = _splits_of(workspace, path, texts)
    try:
        plan: JoinPlan = plan_join(path, text, texts, [record for _, record in splits])
    except UnclosedBlock as error:
        raise _unclosed(path, error) from error
    except LinesLost as error:
        raise BadInput(f"nothing was written: {printable(str(error))}", hint="please report this") from error
    after = mark + plan.text.encode()
    for name in texts:
        staging.put(f"{CARDS}/{name}", None, 0)
    left = _unlist(workspace, staging, texts, splits) if path != INDEX else []
    staging.put(path, after, 0)
    links = tuple(_links_to_cards(workspace, texts.keys(), path))
    if rewrites_links:
        _stage_links(staging, links)
    return JoinResult(FileRewrite(path, before, after), tuple(texts), links, tuple(left), _difference(staging))


def _splits_of(workspace: Workspace, path: str, texts: Collection[str]) -> list[tuple[int, SplitRecord]]:
    """The splits of a file that made some cards, newest first, each with its entry in the ledger."""
    ledger = workspace.context.ledger
    entries: dict[int, LedgerEntry] = {}
    for name in texts:
        found = ledger.entries(path=f"{CARDS}/{name}", sought=LedgerQuery(verb="split"))
        entries |= {entry.id: entry for entry in found if entry.undone_by is None and path in entry.paths}
    return [
        (number, record)
        for number, entry in sorted(entries.items(), reverse=True)
        if (record := _split_record(ledger, entry, path)) is not None
    ]


def _split_record(ledger: Ledger, entry: LedgerEntry, path: str) -> SplitRecord | None:
    """The file before and after a split, and the cards that it made; None if the ledger does not have them."""
    around = ledger.around(entry.id, path)
    made = {
        other.rpartition("/")[2]: ledger.around(entry.id, other)
        for other in entry.paths
        if other.startswith(f"{CARDS}/")
    }
    try:
        before, after = (_unmarked(data) for data in around or (None, None))
        cards = {name: _unmarked(pair[1]) for name, pair in made.items() if pair is not None and pair[0] is None}
    except UnicodeDecodeError:
        return None
    return SplitRecord(before, after, cards) if before else None


def _unmarked(data: bytes | None) -> str:
    return (data or b"").removeprefix(BYTE_ORDER_MARK).decode()


def _unlist(
    workspace: Workspace, staging: Staging, texts: Collection[str], splits: Sequence[tuple[int, SplitRecord]]
) -> list[str]:
    """Take the lines of joined cards out of the index. Returns the lines that stay, because they say more.

    If no card of a split is left, the index is as it was before, also around its list of cards.
    """
    now = staging.read(INDEX) or b""
    pointers = Pointers(now)
    pointers.update_lines(0, gone=texts)
    bare = _EMPTY_LIST.sub(b"", pointers.render()).rstrip()
    for number, _ in splits:
        around = workspace.context.ledger.around(number, INDEX)
        if around is not None and around[0] is not None and bare == around[0].rstrip():
            staging.put(INDEX, around[0], 0)
            return []
    return [line for name in texts for line in staging.unpoint(name, 0)]


def _unclosed(path: str, error: UnclosedBlock) -> BadInput:
    return BadInput(f"{path}:{error.line} opens a code fence or a comment that is never closed", hint="close it first")


def _card_text(name: str, stored: FileOnDisk) -> str:
    try:
        return stored.data.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{CARDS}/{name} is not UTF-8 text", hint="open it in an editor, save it as UTF-8") from error


def _difference(staging: Staging) -> tuple[str, ...]:
    lines: list[str] = []
    for change in staging.changes():
        lines += difference(change.before.data if change.before else None, change.data, change.path)
    return tuple(lines)


def _size_of(data: bytes) -> FileSize:
    return FileSize(len(split_lines(data.decode("utf-8", "replace"))), len(data))
