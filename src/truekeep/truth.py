"""Truth: the memories of a workspace held against code, repaired where that is sure, and weighed where they disagree.

Reads memory and hands it to the inspection (`verify/`); writes only what a repair has planned, through the books, one
ledger entry for each file. Nothing here decides what is true: code does, then git, then the younger memory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.card import OWNED_KEYS, parse_card, parse_day
from truekeep.checkouts import Checkout, choose_checkout, find_checkouts
from truekeep.disk import ChangedSince, UnsafePath, decode_text
from truekeep.errors import BadInput, EditedSince
from truekeep.frontmatter import Field, Frontmatter
from truekeep.index.passages import describe
from truekeep.index.sources import STORES, store_of, sweep
from truekeep.model import CARDS, INDEX, REVIEW, as_stamp
from truekeep.verify.kept import Checked, Memory, Origin, quick_stamp, recall
from truekeep.verify.store import Store, begun_anew
from truekeep.verify.verdict import CHANGED, CODE, CONFIRMED, GIT, GONE, MOVED, OLDER, RECENT, UNVERIFIABLE, Verdict

if TYPE_CHECKING:
    from truekeep.books import Books
    from truekeep.draft import Draft
    from truekeep.index.search import Hit
    from truekeep.vault import Staging, Vault
    from truekeep.verify.check import Verifier
    from truekeep.verify.options import Options
    from truekeep.verify.repair import Edit

_LARGEST = 8_000_000
_REFUTED_SHARE = 0.4  # of its score, for a hit that code refutes: below what holds, not below what is about nothing
_ON_TOPIC = 0.6  # of the best hit's score, for a passage to speak of the same thing
_AT_ONCE = 200  # memories that the ledger is asked about
_RECENT = 7  # days: what "the last days" are
_REPAIRED = r"\(of (\d{4}-\d{2}-\d{2}|no day), brought up to (\d{4}-\d{2}-\d{2})\)\Z"  # rarely needed
_CHANGELOGS = ("changelog", "history", "release-notes", "changes")


class Repair(NamedTuple):
    """What is to be done to one memory file."""

    memory: Memory
    old: bytes
    new: bytes  # the same as old: nothing can be repaired without asking
    edits: tuple[Edit, ...]
    draft: Draft | None  # what is proposed for removal
    left: tuple[str, ...]  # what only a person can mend
    waiting: Draft | None = None  # an earlier proposal for the same card; without a new one, it stands

    @property
    def path(self) -> str:
        return self.memory.path


class Truth:
    """The claims of one workspace."""

    def __init__(
        self,
        root: str,
        store: Store,
        folders: Callable[[], Sequence[Path]],
        *,
        now: datetime,
        options: Options | None = None,
        origins: Callable[[str], tuple[Origin, ...]] | None = None,
        since_when: Callable[[Sequence[Memory]], list[Memory]] | None = None,
    ) -> None:
        self.root, self.store, self.now = root, store, now
        self._folders = folders
        self._options = options
        self._origins = origins
        self._since_when = since_when

    @cached_property
    def checkouts(self) -> list[Checkout]:
        """The checkouts on this machine; looked for when the first memory names a repository."""
        return begun_anew(lambda: find_checkouts(self._folders(), self.store))

    def verifier(self, options: Options | None = None, *, reuse: bool = False) -> Verifier:
        """The inspection. It is loaded here, so that recall of what is known does without it."""
        from truekeep.verify.check import Verifier

        return Verifier(self.store, self.checkouts, workspace=self.root, options=options or self._options, reuse=reuse)

    # Memories.

    def memories(self) -> Iterator[Memory]:
        """Every card and document. Logs and transcripts tell what happened, and that stays true."""
        read: list[Memory] = []
        for source in sweep(self.root):
            if source.store in ("cards", "documents") and source.path != INDEX:
                memory = self._read(source.location, source.path)
                read += [memory] if memory is not None else []
            if len(read) == _AT_ONCE:
                yield from self._since(read)
                read = []
        yield from self._since(read)

    def read(self, location: str, shown: str) -> Memory | None:
        """A memory file with what is known of its origin; None when it is no readable text."""
        memory = self._read(location, shown)
        return self._since([memory])[0] if memory is not None else None

    def _since(self, memories: list[Memory]) -> list[Memory]:
        """The memories as they are, cards that were repaired with the days of before."""
        return self._since_when(memories) if self._since_when is not None else memories

    def _read(self, location: str, shown: str) -> Memory | None:
        memory = read_memory(location, shown)
        is_document = store_of(shown) == "documents" and not shown.startswith(("/", ".."))
        if memory is None or self._origins is None or memory.origin.repository or not is_document:
            return memory
        return memory._replace(lines=self._origins(shown))

    def files(self, wanted: Sequence[str]) -> Iterator[Memory]:
        """The named files: of the workspace, or any Markdown anywhere."""
        for path in wanted:
            location = self._locate(path)
            shown = os.path.relpath(location, os.path.realpath(self.root)).replace(os.sep, "/")
            memory = self.read(location, path if shown.startswith("..") else shown)
            if memory is None:
                raise BadInput(f"{path} is no readable text", hint="name a Markdown file")
            yield memory

    def about(self, memories: Sequence[Memory], root: str) -> list[Memory]:
        """The memories about the repository of this checkout, and those that name none."""
        here = begun_anew(lambda: find_checkouts([Path(root)], self.store))

        def belongs(memory: Memory) -> bool:
            own = memory.origin.repository
            names = {own} if own else {origin.repository for origin in memory.lines}
            return not any(names) or any(choose_checkout(name, here) is not None for name in names)

        found = [memory for memory in memories if belongs(memory)]
        problem = next((item.problem for item in here), "")
        if problem and not found:
            raise BadInput(f"{root} cannot be read: {problem}", hint="name another checkout with --repo")
        return found

    def _locate(self, path: str) -> str:
        for candidate in (
            path,
            os.path.join(self.root, path),
            os.path.join(self.root, CARDS, path),
            os.path.join(self.root, CARDS, f"{path}.md"),
        ):
            if os.path.isfile(candidate):
                return os.path.realpath(candidate)
        raise BadInput(f"there is no file {path}", hint="name a card, a document, or any Markdown file")

    # Recall.

    def verdicts(self, hits: Sequence[Hit], *, budget: float) -> list[Hit]:
        """The hits with the verdicts on the claims inside them, as far as the time goes; refuted ones come last."""
        paths = [hit.path for hit in hits if hit.store != "transcripts"]
        known = self.checked(paths, budget)
        told = []
        for hit in hits:
            verdicts, checked_at, unchecked = _within(known.get(hit.path), hit.first, hit.last)
            told.append(hit._replace(verdicts=verdicts, checked_at=checked_at, unchecked=unchecked))
        return sorted(told, key=lambda hit: -hit.score * (_REFUTED_SHARE if _is_refuted(hit) else 1))

    def told(self, path: str, first: int, last: int, *, budget: float) -> tuple[tuple[Verdict, ...], str, str]:
        """The verdicts on some lines of a memory file, when they were found, or why there are none."""
        return _within(self.checked([path], budget).get(path), first, last)

    def checked(self, paths: Sequence[str], budget: float) -> dict[str, Checked | str]:
        """What is known of these memories, or can be found in time; a text for what could not."""
        found: dict[str, Checked | str] = {}
        missing = []
        look = cache(quick_stamp)
        named = [self._read(path if os.path.isabs(path) else os.path.join(self.root, path), path) for path in paths]
        for memory in self._since([memory for memory in dict.fromkeys(named) if memory is not None]):
            if not self._has_checkout(memory):
                continue
            known = recall(self.store, memory, look=look)
            if known is not None:
                found[memory.path] = known
            else:
                missing.append(memory)
                found[memory.path] = "not checked yet"
        if missing and budget > 0:
            from truekeep.verify.options import Options

            options = Options(system=False, deadline=time.monotonic() + budget, deleting=False)
            for item in self.verifier(options).check(missing, keep=False):
                is_asked = item.roots or not item.problems  # nothing to ask is an answer, too
                if is_asked and not any(verdict.reason == "out-of-time" for verdict in item.verdicts):
                    found[item.path] = item
        return found

    def code_says(self, topic: str, hits: Sequence[Hit]) -> list[Verdict]:
        """What code says to the things that a topic names, in the repositories that the memories of it are about."""
        names = dict.fromkeys(hit.repository for hit in hits if hit.repository)
        words = " ".join(f"`{word}`" for word in topic.split())
        found: dict[str, Verdict] = {}
        for repository in list(names)[:3]:
            memory = Memory("", f"{words}\n\n{topic}\n", Origin(repository))
            (checked,) = self.verifier().check([memory], keep=False)
            for verdict in checked.verdicts:
                if verdict.verdict != UNVERIFIABLE and verdict.claim.kind != "decision":
                    found.setdefault(verdict.claim.name, verdict)
        return list(found.values())

    def _has_checkout(self, memory: Memory) -> bool:
        names = {memory.origin.repository, *(origin.repository for origin in memory.lines)} - {""}
        return bool(names) and any(choose_checkout(name, self.checkouts) is not None for name in names)

    # Repair.

    def plan(self, memory: Memory, checked: Checked, data: bytes, *, waiting: Draft | None = None) -> Repair:
        """What can be written at once, and what is proposed. `waiting`: the proposal that waits for this card."""
        from truekeep.secrets import withhold
        from truekeep.verify.repair import apply_repairs, plan_repairs

        edits = [edit for edit in plan_repairs(memory.text, checked.verdicts) if withhold(edit.new) == edit.new]
        repaired = apply_repairs(memory.text, edits)
        new = spelled_like(data, bumped(memory.path, repaired, self.now.date())) if edits else data
        gone = [item for item in checked.verdicts if item.verdict == GONE]
        if not gone:
            return Repair(memory, data, new, tuple(edits), None, ())
        if not memory.path.startswith(CARDS + "/"):
            left = (f"{memory.path}:{item.claim.line} names {item.claim.shown}: {item.why}" for item in gone)
            return Repair(memory, data, new, tuple(edits), None, tuple(left))
        draft = self._removal(memory, repaired, new, checked, edits)
        if waiting is not None and (waiting.id == draft.id or waiting.is_edited):
            return Repair(memory, data, new, tuple(edits), None, (), waiting)
        return Repair(memory, data, new, tuple(edits), draft, (), waiting)

    def _removal(
        self, memory: Memory, repaired: str, repaired_bytes: bytes, checked: Checked, edits: Sequence[Edit]
    ) -> Draft:
        """A draft that proposes the card without what is gone."""
        import hashlib

        from truekeep.draft import Draft, card_mark, draft_id
        from truekeep.handoff import compose_handoff
        from truekeep.hidden import printable
        from truekeep.verify.repair import without_gone

        gone = [item for item in checked.verdicts if item.verdict == GONE]
        shifted = _shifted(gone, edits)
        card = parse_card(memory.path.rpartition("/")[2], without_gone(repaired, shifted))
        body = card.body.strip("\n")
        own = tuple(field for field in card.front.fields if field.key.casefold() not in OWNED_KEYS)
        facts = [f"`{item.claim.shown}` (line {item.claim.line}): {item.why}" for item in gone[:20]]
        facts += [f"… and {len(gone) - 20} more"] if len(gone) > 20 else []
        replaced = [
            f"`{item.claim.shown}` may now be {', '.join(item.candidates)}" for item in gone[:20] if item.candidates
        ]
        if not body.strip():
            body = "Nothing that this card said holds any more."
        text = compose_handoff(
            title=f"{card.topic}: what code refutes",
            kind="project-context",
            summary="Proposes this card without what is gone; edit the draft to say what holds instead.",
            facts=[printable(fact) for fact in (*facts, *replaced)],  # whoever names a file writes no card
            evidence=[f"truekeep verify, at {checked.head[:10] or 'no commit'}"],
            card=card.name,
            update=True,
            content=Frontmatter(own).render() + f"\n{body}\n",
        )
        reasons = [("refuted", printable(f"{item.claim.shown}: {item.why}")[:300]) for item in gone[:10]]
        more = [("refuted", f"… and {len(gone) - 10} more")] if len(gone) > 10 else []
        raw = text.encode()
        digest = hashlib.sha256(raw).digest()
        name = f"{self.now:%Y-%m-%d-%H%M}-verify-{card.name.removesuffix('.md')}.md"
        stable = hashlib.sha256(f"{memory.path}\0{body}".encode()).digest()
        return Draft(
            id=draft_id(name, stable),
            received_at=self._at,
            name=name,
            writer=card.writer or "verify",
            machine="",
            repository=memory.origin.repository,
            original=card_mark(memory.path, repaired_bytes),
            digest=digest.hex(),
            kept="whole",
            reasons=(*reasons, *more),
            target=memory.path,
            body=raw,
        )

    def waiting(self, vault: Vault) -> dict[str, Draft]:
        """The drafts that verification made earlier and nobody has decided on, by their card."""
        from truekeep.draft import parse_draft

        found = {}
        for item in vault.names(REVIEW):
            try:
                stored = vault.read(f"{REVIEW}/{item.name}")
            except (UnsafePath, ChangedSince, OSError):
                continue
            draft = parse_draft(item.name, stored.data) if stored is not None else None
            if draft is not None and draft.is_proposal:
                found[draft.target] = draft
        return found

    def apply(self, repairs: Sequence[Repair], books: Books, *, actor: str) -> list[str]:
        """Write repairs and drafts, one ledger entry for each file. Gives what happened, for people."""
        from truekeep.vault import Staging

        told = []
        for repair in repairs:
            if repair.new != repair.old:
                staging = Staging(books.vault)
                try:
                    found = staging.read(repair.path)
                except (UnsafePath, ChangedSince, OSError) as error:
                    told.append(f"{repair.path}: not repaired ({error})")
                    continue
                if found != repair.old:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
                try:
                    told.append(f"{repair.path}: {self._write(repair, staging, books, actor)}")
                except EditedSince:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
            if repair.draft is not None:
                told += self._propose(repair, repair.draft, books, actor)
        return told

    def _write(self, repair: Repair, staging: Staging, books: Books, actor: str) -> str:
        from truekeep.ledger import Entry
        from truekeep.verify.check import carry_prints
        from truekeep.verify.repair import shown_edits

        staging.put(repair.path, repair.new, 0)
        what = shown_edits(repair.edits)
        old = repair.memory.origin.written_at
        since = datetime.fromtimestamp(old, UTC).astimezone().date().isoformat() if old is not None else "no day"
        dated = f" (of {since}, brought up to {self.now.date()})" if repair.path.startswith(CARDS + "/") else ""
        books.act(staging, Entry(at=self._at, verb="repaired", actor=actor, note=what + dated))
        new = self.read(os.path.join(self.root, repair.path), repair.path)
        if new is not None:
            begun_anew(lambda: carry_prints(self.store, repair.memory, new))
        return what

    def _propose(self, repair: Repair, draft: Draft, books: Books, actor: str) -> Iterator[str]:
        from truekeep.draft import render_draft
        from truekeep.ledger import Entry
        from truekeep.vault import Staging

        staging = Staging(books.vault)
        if staging.read(draft.path) is not None:
            return
        last = next(books.ledger.entries(path=draft.path, limit=1), None)
        if last is not None and last.verb == "rejected":
            yield f"{repair.path}: to drop what is gone was turned down on {last.at[:10]}, so it is not proposed again"
            return
        if repair.waiting is not None:
            staging.put(repair.waiting.path, None, 0)
        staging.put(draft.path, render_draft(draft), 0)
        books.act(staging, Entry(at=self._at, verb="proposed", actor=actor, note=draft.id))
        instead = f", in place of {repair.waiting.id}" if repair.waiting is not None else ""
        yield f"{repair.path}: to drop what is gone is proposed as draft {draft.id}{instead}"

    @property
    def _at(self) -> str:
        return as_stamp(self.now)


def _is_refuted(hit: Hit) -> bool:
    return any(verdict.is_rot for verdict in hit.verdicts)


def _within(checked: Checked | str | None, first: int, last: int) -> tuple[tuple[Verdict, ...], str, str]:
    if checked is None or isinstance(checked, str):
        return (), "", checked or ""
    inside = tuple(item for item in checked.verdicts if first <= item.claim.line <= last)
    return inside, as_stamp(datetime.fromtimestamp(checked.checked_at, UTC)), ""


class Holder:
    """Holds handoffs against code on their way in. A repository is read once for all handoffs of a run."""

    def __init__(self, truth: Truth) -> None:
        from truekeep.verify.options import Options

        self.truth = truth
        self._verifier = truth.verifier(Options(system=False), reuse=True)

    def hold(self, content: str, day: date, root: Path | None, name: str) -> tuple[str, list[tuple[str, str]]]:
        """The content as it would be written today, and a finding for everything that moved or is refuted."""
        from truekeep.hidden import printable
        from truekeep.secrets import withhold
        from truekeep.verify.repair import apply_repairs, plan_repairs

        place = self._root(root, name)
        if not place:
            return content, []
        memory = Memory("", content, Origin(name, end_of_day(day)))
        (checked,) = self._verifier.check([memory], root=place, keep=False)
        edits = [edit for edit in plan_repairs(content, checked.verdicts) if withhold(edit.new) == edit.new]
        found = [("moved-since", f"{edit.shown}: {edit.verdict.why}") for edit in edits]
        refuted = [verdict for verdict in checked.verdicts if verdict.verdict == GONE]
        found += [("refuted", f"{verdict.claim.shown}: {verdict.why}") for verdict in refuted]
        told = dict.fromkeys((code, printable(what)) for code, what in found)  # what is said twice is found once
        return apply_repairs(content, edits) if edits else content, list(told)

    def _root(self, root: Path | None, name: str) -> str:
        if root is not None:
            return str(root) if (root / ".git").exists() else ""
        chosen = choose_checkout(name, self.truth.checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""


class Statement(NamedTuple):
    """One passage of memory about a topic, and how far to believe it."""

    citation: str
    text: str
    store: str
    day: str
    age_days: int | None
    repository: str
    rank: int
    trust: str  # the rank in words
    verdicts: tuple[Verdict, ...]


class Resolution(NamedTuple):
    """Everything memory says about one thing, in trust order, and which of it wins."""

    topic: str
    code: tuple[Verdict, ...]  # what code itself says about the things that the topic names
    statements: tuple[Statement, ...]
    winner: str  # the citation; empty: none
    why: str


def resolve(topic: str, hits: Sequence[Hit], code: Sequence[Verdict]) -> Resolution:
    """Put what memory says in the order of trust. Decided by rule: code, git, younger memory, older memory."""
    best_score = max((hit.score for hit in hits), default=0.0)
    best: dict[str, Hit] = {}  # one source counts once, by its best passage
    for hit in sorted(hits, key=lambda hit: -hit.score):
        if hit.score >= best_score * _ON_TOPIC:
            best.setdefault(hit.path, hit)
    about = list(best.values())
    statements = sorted((_statement(hit) for hit in about), key=lambda item: (item.rank, _age_key(item)))
    standing = [item for item in statements if item.rank < REFUTED]
    if not statements:
        return Resolution(topic, tuple(code), (), "", "memory does not speak of it")
    if not standing:
        return Resolution(
            topic, tuple(code), tuple(statements), "", "code refutes every memory of it; look at the code"
        )
    first = standing[0]
    others = [item for item in standing[1:] if item.rank == first.rank]
    if first.rank == CODE:
        why = "what it names is there in current code"
        why += ", and it is the youngest such memory" if others else ""
    elif first.rank == GIT:
        why = "git has the commit it speaks of"
    elif len(statements) == 1:
        why = "it is the only memory of it, and nothing could confirm it: check before you act"
    else:
        why = "it is the youngest memory that nothing refutes; nothing could confirm it: check before you act"
    return Resolution(topic, tuple(code), tuple(statements), first.citation, why)


REFUTED = 6


def _statement(hit: Hit) -> Statement:
    words = {verdict.verdict for verdict in hit.verdicts}
    code = [verdict for verdict in hit.verdicts if verdict.verdict in (CONFIRMED, CHANGED) and verdict.rank == CODE]
    if words & {GONE, MOVED}:
        rank, trust = REFUTED, "refuted by code"
    elif code:
        rank, trust = CODE, "code agrees"
    elif CONFIRMED in words:
        rank, trust = GIT, "git agrees"
    elif hit.age_days is not None and 0 <= hit.age_days <= _RECENT:
        rank, trust = RECENT, "memory of the last days"
    else:
        rank, trust = OLDER, "older memory"
    return Statement(
        hit.citation, hit.text, hit.store, hit.day, hit.age_days, hit.repository, rank, trust, tuple(hit.verdicts)
    )


def _age_key(item: Statement) -> tuple[int, int]:
    """Cards before documents before logs on the same day; what is dated in the future counts as old."""
    age = item.age_days if item.age_days is not None and item.age_days >= 0 else 100_000
    return age, STORES.index(item.store)


def read_memory(location: str, shown: str) -> Memory | None:
    """A Markdown file as a memory; None when it is no readable text."""
    try:
        with open(location, "rb") as file:
            data = file.read(min(os.fstat(file.fileno()).st_size, _LARGEST) + 1)
    except OSError:
        return None
    text = decode_text(data) if len(data) <= _LARGEST else None
    return text_memory(shown, text) if text is not None else None


def text_memory(shown: str, text: str) -> Memory:
    """A text as a memory, with what it says about itself."""
    about = describe(shown, text)
    name = shown.rpartition("/")[2].lower()
    origin = Origin(about.repository, end_of_day(parse_day(about.day)))
    return Memory(shown, text, origin, is_changelog=name.startswith(_CHANGELOGS))


def parse_repair(note: str) -> tuple[date | None, date | None] | None:
    """The days in a repair's note: which one the card was of before, and which one it was brought up to."""
    match = re.search(_REPAIRED, note)
    return (parse_day(match[1]), parse_day(match[2])) if match else None


def end_of_day(day: date | None) -> int | None:
    """The last second of a day, here; None for no day. A day in the future says nothing."""
    if day is None:
        return None
    try:
        return int((datetime.combine(day, datetime.min.time()).astimezone() + timedelta(days=1)).timestamp()) - 1
    except (OverflowError, OSError, ValueError):
        return None


def bumped(path: str, text: str, today: date) -> str:
    """A card's text with today in `updated`; any other file as it is."""
    if not path.startswith(CARDS + "/"):
        return text
    card = parse_card(path.rpartition("/")[2], text)
    if card.problem or not card.front.fields:
        return text
    day = today.isoformat()
    line = Field("updated", day, f"updated: {day}\n")
    # What somebody confirmed was the text before.
    fields = [line if field.key == "updated" else field for field in card.front.fields if field.key != "confirmed"]
    fields += [] if line in fields else [line]
    return Frontmatter(tuple(fields)).render() + card.body


def spelled_like(data: bytes, text: str) -> bytes:
    """A text as bytes with the mark and the line ends of the old ones; mixed ones stay as each line had them."""
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    if b"\r\n" not in data:
        return mark + text.encode()
    if data.count(b"\n") == data.count(b"\r\n"):
        return mark + text.replace("\n", "\r\n").encode()
    old = data.removeprefix(mark).decode("utf-8", "replace").split("\n")
    ends = {line.rstrip("\r"): line.endswith("\r") for line in old}
    lines = text.split("\n")
    return mark + "\n".join(line + ("\r" if ends.get(line, False) else "") for line in lines).encode()


def _shifted(gone: Sequence[Verdict], edits: Sequence[Edit]) -> list[Verdict]:
    """Verdicts with their claims' places as they are after the edits (and a longer or shorter frontmatter aside)."""
    moved = []
    for verdict in gone:
        claim = verdict.claim
        shift = sum(len(edit.new) - (edit.end - edit.start) for edit in edits if edit.end <= claim.start)
        moved.append(verdict._replace(claim=claim._replace(start=claim.start + shift, end=claim.end + shift)))
    return moved


def verify_anywhere(
    memories: Sequence[Memory], *, root: Path | None, online: bool = False, is_current: bool = False
) -> list[Checked]:
    """Hold texts against one checkout, without any workspace. What is read is kept in the user's cache."""
    from truekeep.verify.check import Verifier
    from truekeep.verify.options import Options

    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "truekeep")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        store = Store(os.path.join(folder, "facts.sqlite"))
    except OSError:
        store = Store(":memory:")
    try:
        verifier = Verifier(store, [], options=Options(online=online, is_current=is_current))
        return verifier.check(memories, root=str(root) if root else "", keep=False)
    finally:
        store.close()
