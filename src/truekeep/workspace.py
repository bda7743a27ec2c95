"""The desk: opens a workspace and introduces its rooms to each other. Its methods are the product's verbs.

Every door (command line, hooks, MCP, web) comes through here. Reading verbs need nothing; writing verbs need this
machine to be the canonical host and take the workspace's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.config import Config
from truekeep.disk import ChangedSince, UnsafePath, decode_text
from truekeep.errors import BadInput, BadSetup, Busy, EditedSince, LedgerDamaged, NotCanonical, NotFound, StorageFailed
from truekeep.model import WORKSPACE, Filed, Report
from truekeep.state import STATE, Host, State

if TYPE_CHECKING:
    from truekeep.adopt.leave import Adopted
    from truekeep.adopt.note import Skipped as SkippedNote
    from truekeep.books import Books
    from truekeep.brief import Brief
    from truekeep.card import Card
    from truekeep.catalog import Catalog
    from truekeep.checkouts import Checkout as CheckoutFolder
    from truekeep.checkpoint import Checkpoint, Write
    from truekeep.days import Day
    from truekeep.draft import Draft
    from truekeep.excerpt import Excerpt
    from truekeep.filing import Filing
    from truekeep.history import History, Line, Undoing
    from truekeep.host import Machine
    from truekeep.inbox import Inbox
    from truekeep.index.search import Hit
    from truekeep.ledger import Entry, Ledger, Received, Record, Sought
    from truekeep.recall import Answer, Indexed, Recall, Status
    from truekeep.review import Known, Proposal, Review
    from truekeep.session import Left, Listed
    from truekeep.shelf import StoreShelf
    from truekeep.survey import Browse, Survey, Surveyed
    from truekeep.survey import Listed as Browsed
    from truekeep.sync.contact import History as SyncHistory
    from truekeep.sync.route import Route
    from truekeep.tenure import Standing, Tenure
    from truekeep.transcripts.archive import Archive
    from truekeep.transcripts.sync import Synced
    from truekeep.truth import Holder, Repair, Resolution, Truth
    from truekeep.vault import Staging, Stored, Vault
    from truekeep.verify.kept import Checked, Memory, Origin
    from truekeep.verify.options import Options
    from truekeep.verify.store import Store

RANKINGS = ("truekeep", "openclaw")
_NEWEST = 400  # cards that wake looks at one by one
_MOST_RULES = 2  # that a prompt is told of
_PATIENT = 60.0  # seconds that a check may take where its answer is relied upon
_WAITED_FOR = 300  # files that somebody waits for being read
_LATELY = 3.0  # seconds for which a list of files may be looked through again
_PATIENCE = 10.0  # seconds that a session waits for another one to finish writing


def default_path() -> Path:
    return _expanded(Path(os.environ.get("TRUEKEEP_WORKSPACE") or WORKSPACE))


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise BadSetup(f"{path}: {error}", hint="name the folder in full") from error


class Made(NamedTuple):
    """What init did."""

    path: Path
    created: tuple[str, ...]
    is_adopted: bool
    is_repeated: bool
    host: Host


class Workspace:
    """One canonical memory."""

    def __init__(self, path: Path, *, now: Callable[[], datetime] | None = None) -> None:
        self.path = path
        self.state = State(path)
        self._now = now or (lambda: datetime.now().astimezone())
        self._config: Config | None = None
        self._vault: Vault | None = None
        self._ledger: Ledger | None = None
        self._catalog: Catalog | None = None
        self._recall: Recall | None = None
        self._facts: Store | None = None
        self._survey: Survey | None = None
        self.surveyed: Surveyed | None = None  # by the last survey
        self._holder: Holder | None = None
        self.notices: list[str] = []
        self._is_writing = False
        self._tenure: Tenure | None = None
        self._drafts: Known = {}  # as they were read

    @classmethod
    def open(cls, path: Path | None = None, *, now: Callable[[], datetime] | None = None) -> Workspace:
        """Open an existing workspace."""
        chosen = _expanded(path or default_path())
        if not (chosen / STATE).is_dir():
            there = "is not a truekeep workspace" if chosen.is_dir() else "does not exist"
            raise BadSetup(
                f"{chosen} {there}",
                hint=f"memory lives on its canonical host: there, and only there, `truekeep init {chosen}` makes it"
                " one; from any other machine, `truekeep checkpoint` and `handoff new` leave handoffs for it",
            )
        workspace = cls(Path(os.path.abspath(chosen)), now=now)
        workspace.state.check_format()
        return workspace

    @classmethod
    def init(
        cls,
        path: Path | None = None,
        *,
        repositories: Sequence[str] = (),
        is_bare: bool = False,
        now: Callable[[], datetime] | None = None,
    ) -> Made:
        """Make a workspace, or adopt an existing folder of Markdown memory without touching a file in it.

        A bare one has no memory of its own yet: somebody brings it.
        """
        chosen = Path(os.path.abspath(_expanded(path or default_path())))
        if chosen.exists() and not chosen.is_dir():
            raise BadSetup(f"{chosen} is not a folder", hint="name a folder")
        try:
            return cls(chosen, now=now)._init(tuple(repositories), is_bare=is_bare)
        except OSError as error:
            raise StorageFailed(
                f"{error.filename or chosen}: {error.strerror}", hint="check the permissions"
            ) from error

    def _init(self, repositories: tuple[str, ...], *, is_bare: bool = False) -> Made:
        had = {item.name for item in self.path.iterdir()} if self.path.exists() else set()
        is_adopted = bool(had - {STATE})
        state = self.state
        if state.path.is_symlink():
            raise BadSetup(f"{state.path} is a symlink", hint="truekeep keeps its state in a real folder")
        is_repeated = state.is_begun
        state.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # the ledger has bytes that were taken out of memory
        with self._lock():
            if is_repeated:
                state.check_format()
                state.check_host(self.machine, "adopt it")
            is_new = not is_adopted and not is_repeated and not is_bare
            created = state.make(self.machine, repositories, at=_utc(self._now()), is_new=is_new)
            self._is_writing = True
            self._the_ledger()
        self.close()
        return Made(path=self.path, created=created, is_adopted=is_adopted, is_repeated=is_repeated, host=state.host())

    def close(self) -> None:
        for room in (self._survey, self._facts, self._recall, self._catalog, self._ledger, self._vault):
            if room is not None:
                room.close()
        self._survey = self._facts = self._recall = self._catalog = self._ledger = self._vault = None
        self._holder = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @cached_property
    def machine(self) -> Machine:
        from truekeep.host import this_machine

        return this_machine()

    @property
    def config(self) -> Config:
        if self._config is None:
            self._config = self.state.config()
        return self._config

    # Locks and rooms.

    @contextmanager
    def _lock(self, wait: float = 0) -> Iterator[None]:
        try:
            with self.state.lock(wait):
                yield
        except OSError as error:
            raise StorageFailed(
                f"{error.filename or self.path}: {error.strerror}", hint="nothing is lost; mend it and run it again"
            ) from error
        except Exception as error:
            # The rooms speak SQLite through apsw; naming its errors here would load it for commands that need none.
            if type(error).__module__ != "apsw":
                raise
            if type(error).__name__ in ("CorruptError", "NotADBError"):
                raise self._damaged_in_use() from error
            raise StorageFailed(
                f"{self.path / STATE}: {error}", hint="nothing is lost; make room or mend the disk and run it again"
            ) from error

    @contextmanager
    def _writing(self, what: str, *, wait: float = 0) -> Iterator[None]:
        """The canonical host, the lock, and whatever a killed run left, finished."""
        self.state.check_host(self.machine, what)
        with self._lock(wait):
            self._tenure = self.state.check_host(self.machine, what)  # again: a sync may have come while it waited
            self._open_for_writing()
            if self._the_ledger().has_pending():
                try:
                    recovered = self._books().recover()
                except UnsafePath as error:
                    raise StorageFailed(str(error), hint="put the folder back and run it again") from error
                self.notices.append(f"finished {recovered} batch(es) that an interrupted run had left")
            if (self.path / STATE / "importing").exists():
                from truekeep.arriving import clear_arriving

                clear_arriving(self.path, self._the_vault())
                self.notices.append("cleared what a stopped import had left")
            if not self._tenure.wrote_at:
                self._note_take(self._tenure)
            yield

    def _open_for_writing(self) -> None:
        self._is_writing = True
        if self._ledger is not None:
            self.close()  # it was opened for reading

    @property
    def is_canonical(self) -> bool:
        """Whether this machine is the one that may write the workspace."""
        return self.state.host().id == self.machine.id

    @contextmanager
    def writing(self, what: str) -> Iterator[Books]:
        """The books, for whoever brings files of its own."""
        with self._writing(what, wait=_PATIENCE):
            self._note_write()
            yield self._books()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nobody else's truekeep writes meanwhile."""
        with self._lock(_PATIENCE):
            yield

    def stamp(self) -> str:
        """Now, as the ledger writes it."""
        return _utc(self._now())

    def _books(self) -> Books:
        from truekeep.books import Books

        return Books(self._the_vault(), self._the_ledger(), before=self._note_write)

    def _the_vault(self) -> Vault:
        from truekeep.vault import Vault

        if self._vault is None:
            self._vault = Vault(str(self.path))
        return self._vault

    def _the_ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = self._open_ledger()
        return self._ledger

    def _open_ledger(self) -> Ledger:
        from truekeep.ledger import Damaged, Ledger, Unwritable

        path = str(self.path / STATE / "ledger.sqlite")
        try:
            if self._is_writing:
                return Ledger(path, known=self._known_handoffs)
            return Ledger(path) if os.path.exists(path) and os.path.getsize(path) else Ledger(":memory:")
        except Unwritable as error:
            if self._is_writing:
                raise StorageFailed(f"{path} cannot be written", hint="check the permissions and the disk") from error
            return Ledger(path, read_only=True)
        except Damaged as error:
            if not self._is_writing:
                raise LedgerDamaged(
                    f"{path} is damaged",
                    hint="`truekeep doctor --fix` saves what can be read, and keeps the damaged one",
                ) from error
            self._notice_damage(self._set_ledger_aside())
            return Ledger(path, known=self._known_handoffs)

    def _set_ledger_aside(self) -> str:
        from truekeep.ledger import set_aside

        stamp = self._now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        return Path(set_aside(str(self.path / STATE / "ledger.sqlite"), stamp=stamp)).name

    def _notice_damage(self, kept: str) -> None:
        self.notices.append(
            f"the ledger was damaged; it is kept as {STATE}/{kept}, a new one begins, and history before that is only"
            " in the one that is kept"
        )

    def _damaged_in_use(self) -> LedgerDamaged:
        """The ledger opened, but its pages are broken: keep it as evidence, and let the next run begin a new one."""
        self.close()
        kept = self._set_ledger_aside()
        hint = "run it again: a new one begins; `truekeep doctor` says where earlier history is"
        return LedgerDamaged(f"the ledger was damaged; it is kept as {STATE}/{kept}", hint=hint, kept=kept)

    def _known_handoffs(self) -> Iterator[Record]:
        """What the files tell of handoffs that were dealt with before: the processed ones and the drafts."""
        from truekeep.hidden import printable
        from truekeep.inbox import digest_in, iter_processed
        from truekeep.ledger import Record
        from truekeep.model import Origin
        from truekeep.review import iter_drafts
        from truekeep.secrets import withhold

        at = _utc(self._now())
        for draft in iter_drafts(self._the_vault()):
            try:
                digest = bytes.fromhex(draft.digest)
            except ValueError:
                continue
            if len(digest) == 32:
                origin = Origin(
                    writer=draft.writer, machine=draft.machine, repository=draft.repository, inbox="", name=draft.name
                )
                yield Record(
                    digest=digest,
                    origin=origin,
                    title="",
                    received_at=draft.received_at,
                    outcome="review",
                    target=draft.path,
                )
        for inbox in self.inboxes():
            for folder, item in iter_processed(inbox):
                digest = digest_in(folder, item.name, limit=self.config.limits.handoff_bytes)
                origin = Origin(
                    writer=inbox.writer,
                    machine="",
                    repository="",
                    inbox=withhold(printable(str(inbox.path))),
                    name=withhold(printable(item.name)),
                )
                yield Record(digest=digest, origin=origin, title="", received_at=at, outcome="seen", target="")

    def _cards_catalog(self) -> Catalog:
        from truekeep.catalog import Catalog

        if self._catalog is None:
            books = self._books()
            self._catalog = Catalog(str(self.path / STATE / "catalog.sqlite"), books.vault)
        return self._catalog

    def shelf(self, staging: Staging | None = None) -> StoreShelf:
        """The store as the judge sees it, with what is staged."""
        from truekeep.shelf import StoreShelf
        from truekeep.vault import Staging

        vault, hold = self._the_vault(), self._hold if self.config.verify.ingest else None
        return StoreShelf(vault, self._the_ledger(), self._cards_catalog(), staging or Staging(vault), hold=hold)

    def _review(self) -> Review:
        from truekeep.review import Review

        hold = self._hold if self.config.verify.ingest else None
        return Review(self._books(), self._cards_catalog(), self.config, actor=person(), now=self._now(), hold=hold)

    def _history(self) -> History:
        from truekeep.history import History

        return History(self._books(), actor=person(), now=self._now())

    def _the_recall(self) -> Recall:
        from truekeep.recall import Recall

        if self._recall is None:
            self._recall = Recall(str(self.path), str(self.path / STATE), self.config.recall, now=self._now)
        return self._recall

    # The verbs.

    def inboxes(self, repositories: Sequence[Path] | None = None) -> list[Inbox]:
        """The inboxes of the named repositories, else of the configured ones; the workspace's own are always there."""
        from truekeep.checkouts import expand_repositories
        from truekeep.inbox import find_inboxes

        roots = list(repositories) if repositories is not None else expand_repositories(self.config.repositories)
        for root in roots:
            if not root.is_dir():
                raise BadInput(f"{root} is not a folder", hint="name the repository's root with --repo")
        found = find_inboxes([Path(os.path.abspath(root)) for root in roots] + [self.path], self.config.writers)
        return found if repositories is not None else [*found, *self._mirrored()]

    def _mirrored(self) -> Iterator[Inbox]:
        """The inboxes of other machines, as they were brought here."""
        from truekeep.inbox import Inbox
        from truekeep.sync.mirror import FOLDER, all_places

        if not (self.state.path / FOLDER).is_dir():
            return
        for _, place in all_places(self.state.path):
            for writer, folder in self.config.writers.items():
                if (place.folder / folder).is_dir():
                    yield Inbox(place.folder, folder, writer, place.machine, place.repository, place.root)

    def ingest(
        self,
        *,
        repositories: Sequence[Path] | None = None,
        cards: bool = True,
        documents: bool = True,
        dry_run: bool = False,
        tell: Callable[[Filed], None] = lambda _: None,
    ) -> Report:
        """File every waiting handoff. Running it again after a crash is safe."""
        started = self._now()
        config = self.config
        for attempt in range(2):
            try:
                with self._writing("ingest"):
                    report = self._ingest(repositories, cards, documents, dry_run, tell, config, started)
                    report.warnings[:0] = self.notices
                    if not dry_run:
                        self._log_run(report, started)
                    return report
            except LedgerDamaged as error:
                if attempt or "kept" not in error.details:
                    raise
                self._notice_damage(error.details["kept"])
        raise AssertionError("unreachable")

    def _ingest(
        self,
        repositories: Sequence[Path] | None,
        cards: bool,
        documents: bool,
        dry_run: bool,
        tell: Callable[[Filed], None],
        config: Config,
        started: datetime,
    ) -> Report:
        from truekeep.inbox import Inboxes

        limits = config.limits
        inboxes = Inboxes(self.inboxes(repositories), limit=limits.handoff_bytes, settle=limits.settle_seconds)
        try:
            waiting = inboxes.waiting()
            if not waiting and not inboxes.problems:
                return Report(dry_run=dry_run)  # the usual case by far: it must cost nothing but the look
            from truekeep.filing import Routes
            from truekeep.ingest import Ingest

            return Ingest(
                inboxes,
                waiting,
                self._books(),
                self._cards_catalog(),
                config,
                machine=self.machine.name,
                now=started,
                routes=Routes(cards=cards, documents=documents),
                dry_run=dry_run,
                tell=tell,
                hold=self._hold if config.verify.ingest else None,
            ).run()
        finally:
            inboxes.close()

    def _log_run(self, report: Report, started: datetime) -> None:
        """One line a run, so that "did not run" differs from "found nothing"."""
        names = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
        counts = " ".join(f"{name}={report.count(name)}" for name in names)
        nothing = "" if report.processed else " NO_UPDATES"
        self.state.log("ingest.log", f"{_utc(started)} processed={report.processed} {counts}{nothing}")

    def lint(self, letters: Sequence[tuple[bytes, str, Path | None]]) -> list[Filing]:
        """Judge handoffs (bytes, name, repository) as ingest would, each after the ones before; write nothing."""
        import hashlib

        from truekeep.filing import Candidate, Filing, plan_filing
        from truekeep.repo import repository_name

        books, shelf = self._books(), self.shelf()
        filings: list[Filing] = []
        for raw, name, root in letters:
            known = books.ledger.find_handoff(hashlib.sha256(raw).digest())
            if known is not None:
                filings.append(Filing(outcome="already", findings=(), target=known.target, known_as=known.outcome))
                continue
            shelf.from_repository(root)
            too_large = len(raw) > self.config.limits.handoff_bytes
            candidate = Candidate(
                raw=None if too_large else raw,
                name=name,
                size=len(raw),
                repository=repository_name(root) if root else "",
                writer="lint",
            )
            filing = plan_filing(candidate, shelf, self.config, today=self._now().date())
            shelf.stage(filing, 0)
            filings.append(filing)
        self._cards_catalog().unstage()
        return filings

    def looks_into(self, root: Path) -> bool:
        """Whether ingest scans this repository."""
        from truekeep.checkouts import expand_repositories

        wanted = os.path.realpath(root)
        roots = [*expand_repositories(self.config.repositories), self.path]
        return any(os.path.realpath(known) == wanted for known in roots)

    def drafts(self) -> list[Draft]:
        """The drafts that wait, oldest first, without their texts. What was read before is not read again."""
        from truekeep.review import iter_drafts

        return list(iter_drafts(self._the_vault(), self._drafts))

    def show_draft(self, wanted: str, *, target: str = "", exact: bool = False) -> Proposal:
        review = self._review()
        return review.propose(review.get(wanted, exact=exact), target=target)

    def outdated(self, draft: Draft) -> list[str]:
        """The cards that changed since a draft was made from them."""
        return self._review().outdated(draft)

    def approve(self, wanted: str, *, target: str = "", seen: Mapping[str, str] | None = None) -> Filing:
        """File a draft on a person's word. `seen` is what they saw (`Proposal.seen`): nothing else is written."""
        with self._writing("approve drafts", wait=_PATIENCE if seen else 0):
            review = self._review()
            return review.approve(review.get(wanted, exact=seen is not None), target=target, seen=seen)

    def reject(self, wanted: str, *, reason: str = "", seen: Mapping[str, str] | None = None) -> Draft:
        """Turn a draft down; the original stays in processed/."""
        with self._writing("reject drafts", wait=_PATIENCE if seen else 0):
            review = self._review()
            draft = review.get(wanted, exact=seen is not None)
            review.reject(draft, reason=reason, seen=seen)
            return draft

    def edit_draft(
        self, wanted: str, change: Callable[[bytes], bytes], *, seen: Mapping[str, str] | None = None
    ) -> tuple[Draft, bool]:
        """Change the handoff inside a draft. `change` runs without the lock: a person may take an hour."""
        review = self._review()
        draft = review.get(wanted, exact=seen is not None)
        body = change(draft.body)
        if body == draft.body:
            return draft, False
        with self._writing("edit drafts", wait=_PATIENCE if seen else 0):
            review = self._review()
            if review.get(draft.id, exact=True).file_digest != draft.file_digest:
                raise EditedSince(
                    f"draft {draft.id} was changed by somebody else meanwhile", hint="start again from it"
                )
            return review.edit(draft, body, seen=seen), True

    def retry(self, wanted: str | None, *, exact: bool = False) -> list[tuple[Draft, Filing]]:
        """Judge one draft, or all, as ingest would now; file what passes."""
        with self._writing("retry drafts", wait=_PATIENCE if exact else 0):
            review = self._review()
            ids = [review.get(wanted, exact=exact).id] if wanted else [draft.id for draft in review.drafts()]
            out: list[tuple[Draft, Filing]] = []
            for number in ids:
                draft = review.get(number, exact=True)
                out.append((draft, review.retry(draft)))
            return out

    def prune(
        self, *, older_than: timedelta | None = None, dry_run: bool = False, force: bool = False
    ) -> tuple[list[Draft], list[str]]:
        """Remove drafts and processed handoffs that have waited past their age. Drafts can be had back with undo."""
        from truekeep.inbox import prune_processed

        limits = self.config.limits
        draft_age = older_than if older_than is not None else timedelta(days=limits.review_days)
        file_age = older_than if older_than is not None else timedelta(days=limits.processed_days)
        with self._writing("prune"):
            review = self._review()
            if not force:
                self._check_clock()
            drafts = review.expired(draft_age)
            gone = {draft.id for draft in drafts}
            keep = {draft.digest for draft in review.drafts() if draft.id not in gone}
            if not dry_run:
                for draft in drafts:
                    review.expire(review.get(draft.id))
            before = (self._now().astimezone(UTC) - file_age).timestamp()
            limit = self.config.limits.handoff_bytes
            pruned: list[str] = []
            for inbox in self.inboxes():
                old = min(before, self._acknowledged(inbox)) if inbox.there else before
                pruned += prune_processed([inbox], before=old, keep=keep, limit=limit, dry_run=dry_run)
            return drafts, pruned

    def _acknowledged(self, inbox: Inbox) -> float:
        """Until when the machine that an inbox was brought from has been told what was filed.

        A route that was removed has nobody left to tell.
        """
        from truekeep.sync.contact import read_history
        from truekeep.sync.route import read_routes

        name = inbox.root.parent.name
        if name not in read_routes(self.state.path):
            return float("inf")
        last = read_history(self.state.path, name).last_ok_at
        try:
            return datetime.fromisoformat(last).timestamp()
        except ValueError:
            return 0.0

    def _check_clock(self) -> None:
        """A clock that jumped makes everything look old. Ask before deleting on its word."""
        latest = self._the_ledger().latest_at()
        if not latest:
            return
        gap = self._now().astimezone(UTC) - datetime.fromisoformat(latest)
        if gap > timedelta(days=400) or gap < -timedelta(days=1):
            raise BadInput(
                f"the clock says {self._now():%Y-%m-%d}, but the last entry is of {latest[:10]}",
                hint="check the clock; --force prunes all the same",
            )

    def cards(self) -> Iterator[Card]:
        """Every card, by name."""
        from truekeep.card import parse_card
        from truekeep.model import CARDS

        vault = self._books().vault
        names = sorted(item.name for item in vault.names(CARDS) if item.name.endswith(".md") and item.name[0] != ".")
        names = [name for name in names if name.isprintable()]
        for name in names:
            try:
                stored = vault.read(f"{CARDS}/{name}")
            except (UnsafePath, ChangedSince, OSError):
                continue
            text = decode_text(stored.data) if stored else None
            if text is not None:
                yield parse_card(name, text)

    def card_file(self, wanted: str) -> tuple[str, Stored]:
        """A card's name and its file, by any way to call it."""
        from truekeep.model import CARDS

        name = wanted.removeprefix(f"{CARDS}/")
        if not name.endswith(".md"):
            name += ".md"
        if "/" in name or name.startswith("."):
            raise NotFound(f"{wanted!r} is not the name of a card", hint="`truekeep card list` shows the names")
        try:
            stored = self._the_vault().read(f"{CARDS}/{name}")
        except UnsafePath as error:
            raise BadInput(str(error), hint="a card is a plain file in memory/cards") from error
        except ChangedSince as error:
            raise EditedSince(f"{CARDS}/{name} changed while it was read", hint="run it again") from error
        if stored is None:
            raise NotFound(f"there is no card {name}", hint=self._nearest_card(name))
        return name, stored

    def card(self, wanted: str) -> tuple[Card, str, Entry | None, Record | None]:
        """One card, its text, and the entry and handoff that last wrote it."""
        from truekeep.card import parse_card
        from truekeep.model import CARDS

        name, stored = self.card_file(wanted)
        books = self._books()
        text = decode_text(stored.data)
        if text is None:
            raise BadInput(f"{CARDS}/{name} is not UTF-8 text", hint="open it in an editor and save it as UTF-8")
        entry = next(books.ledger.entries(path=f"{CARDS}/{name}", limit=1), None)
        return parse_card(name, text), text, entry, books.ledger.handoff_of(entry) if entry else None

    def _nearest_card(self, name: str) -> str:
        import difflib

        from truekeep.model import CARDS

        names = [item.name for item in self._books().vault.names(CARDS)]
        close = difflib.get_close_matches(name, names, 3)
        return f"did you mean {', '.join(close)}?" if close else "`truekeep card list` shows the names"

    def history(
        self, path: str | None = None, *, limit: int | None = None, sought: Sought | None = None
    ) -> Iterator[tuple[Entry, Record | None]]:
        """What truekeep did, newest first; only what is sought, and only what changed a file, if they are given."""
        ledger = self._books().ledger
        inside = self.relative(path) if path else None
        for entry in ledger.entries(path=inside, limit=limit, sought=sought):
            yield entry, ledger.handoff_of(entry)

    def why(self, path: str) -> list[Line]:
        """Every line of a file with the act that wrote it."""
        try:
            return self._history().lines(self.relative(path))
        except UnsafePath as error:
            raise BadInput(str(error), hint="name a plain file of the workspace") from error

    def differences(self, path: str, entries: Collection[int]) -> dict[int, tuple[str, ...]]:
        """What these entries changed in a file of the workspace, line by line."""
        return self._history().differences(path, entries)

    def find_entries(
        self, sought: Sought, *, most: int, before: int = 0, after: int = 0
    ) -> list[tuple[Entry, Record | None]]:
        """Some of what truekeep did, newest first: the newest, those before an entry, or next after one."""
        ledger = self._the_ledger()
        found = ledger.find_entries(sought, most=most, before=before, after=after)
        return [(entry, ledger.handoff_of(entry)) for entry in found]

    def plan_undo(self, number: int) -> Undoing:
        """What undo would write. Touches nothing."""
        return self._history().plan_undo(number)

    def undo(self, number: int, *, seen: str = "") -> tuple[Entry, list[str]]:
        """Put back what an entry changed, unless a person has edited since, or it is not what they have `seen`."""
        with self._writing("undo"):
            return self._history().undo(number, seen=seen)

    def index(
        self, *, rebuild: bool = False, tell: Callable[[str, int, int], None] = lambda *_: None, wait: float = 10.0
    ) -> Indexed:
        """Bring the search index up to date with the files."""
        return self._the_recall().index(rebuild=rebuild, tell=tell, wait=wait)

    def watch(
        self, tell: Callable[[Indexed], None], *, stop: Any = None, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Keep the search index up to date until stopped."""
        self._the_recall().watch(tell, stop=stop, warn=warn)

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        stores: Sequence[str] = (),
        since: date | None = None,
        repository: str = "",
        ranking: str = "truekeep",
        mmr: float | None = None,
        half_life: float | None = None,
        verified: bool = False,
        verdict: str = "",
        budget: float | None = None,
        within: float = 0.0,
    ) -> Answer:
        """Find memories by words and by meaning, with the verdicts on what they name. Nothing is changed but the index.

        `verified` leaves out what code refutes, `verdict` gives only what code says this to (`Hit.standing`). Who asks
        again and again may be content with verdicts that are known or found in a `budget` of seconds, and with files as
        they were `within` so many.
        """
        from truekeep.index.search import STANDINGS, Filter
        from truekeep.index.sources import STORES

        if verdict and verdict not in STANDINGS:
            raise BadInput(f"there is no verdict {verdict!r} on a hit", hint=f"one of {', '.join(STANDINGS)}")

        if unknown := set(stores) - set(STORES):
            raise BadInput(f"there is no store {sorted(unknown)[0]!r}", hint=f"stores: {', '.join(STORES)}")
        if ranking not in RANKINGS:
            raise BadInput(f"there is no ranking {ranking!r}", hint=f"rankings: {', '.join(RANKINGS)}")
        if not 1 <= limit <= 1000:
            raise BadInput(f"{limit} hits cannot be asked for", hint="from 1 to 1000")
        repository = repository.encode("utf-8", "replace").decode()
        chosen = Filter(stores=tuple(stores), since=since.isoformat() if since else "", repository=repository)
        asked = min(1000, limit * 4) if verdict else min(1000, limit * 2 + 4) if verified else limit
        answer = self._the_recall().search(
            query, limit=asked, filter_=chosen, formula=ranking, lambda_mmr=mmr, half_life=half_life, within=within
        )
        hits = self._with_verdicts(answer.hits, patient=verified, budget=budget)
        if verdict:
            hits = [hit for hit in hits if hit.standing == verdict][:limit]
        if verified:
            hits = [hit for hit in hits if not hit.unchecked and not any(item.is_rot for item in hit.verdicts)][:limit]
        return answer._replace(hits=tuple(hits))

    def _with_verdicts(self, hits: Sequence[Hit], *, patient: bool = False, budget: float | None = None) -> list[Hit]:
        """Hits with what code says to them, in the time that the configuration allows, or as long as it takes."""
        settings = self.config.verify
        if not settings.recall or not hits or not (settings.checkouts or self.config.repositories):
            return list(hits)
        allowed = settings.budget_ms / 1000 if budget is None else budget
        return self._truth().verdicts(hits, budget=_PATIENT if patient else allowed)

    def resolve(self, topic: str, *, limit: int = 10) -> Resolution:
        """Everything memory says about one thing, in trust order, with the winner and why."""
        from truekeep.truth import resolve

        answer = self.search(topic, limit=limit)
        hits = self._with_verdicts(answer.hits, patient=True)  # an answer to rely on may take its time
        return resolve(topic, hits, self._truth().code_says(topic, hits))

    def get(self, path: str, *, first: int | None = None, lines: int | None = None) -> Excerpt:
        """Some lines of a memory file, by its path or by a citation such as memory/cards/a.md#L5-L9."""
        from truekeep.excerpt import LINES, parse_citation, read_excerpt

        path, cited, count = parse_citation(path)
        first, lines = first or cited or 1, lines or count or LINES
        today = self._now().date()
        if path.startswith("transcripts/"):
            return self._the_recall().read_transcript(path, first=first, lines=lines, today=today)
        extra = self.config.recall.extra_paths
        excerpt = read_excerpt(str(self.path), path, first=first, lines=lines, extra=extra, today=today)
        settings = self.config.verify
        if not settings.recall or not (settings.checkouts or self.config.repositories):
            return excerpt
        told = self._truth().told(excerpt.path, excerpt.first, excerpt.last, budget=settings.budget_ms / 1000)
        return excerpt._replace(verdicts=told[0], checked_at=told[1], unchecked=told[2])

    def verify(
        self,
        files: Sequence[str] = (),
        *,
        repository: Path | None = None,
        changed: bool = False,
        online: bool = False,
        system: bool = True,
        tell: Callable[[str, int, int], None] = lambda *_: None,
    ) -> list[Checked]:
        """Hold memories against current code: the named files, else every card and document."""
        from functools import cache

        from truekeep.verify.kept import recall, renew
        from truekeep.verify.options import Options

        truth = self._truth(Options(online=online, system=system))
        memories = list(truth.files(files) if files else truth.memories())
        root = str(repository) if repository is not None else ""
        if root and not files:
            memories = truth.about(memories, root)
        # A checkout that was named by hand says nothing lasting about memory that belongs to another one.
        keep = not root or all(memory.path.startswith(("/", "..")) for memory in memories)
        recalled = ((memory.path, recall(truth.store, memory, root) if keep else None) for memory in memories)
        known = {path: item for path, item in recalled if item is not None}
        verifier = cache(lambda: truth.verifier(reuse=True))  # not loaded while all is settled
        if changed:
            same = {path for path, item in known.items() if item.is_settled or verifier().still_holds(item)}
            memories = [memory for memory in memories if memory.path not in same]
            renew(truth.store, same, self._now().timestamp())
            known = {}
        # What rests on evidence that is still the same holds without asking again; what was not found is looked for.
        settled = {path: item for path, item in known.items() if item.is_settled}
        asked = [memory for memory in memories if memory.path not in settled]
        renew(truth.store, settled, self._now().timestamp())
        fresh = verifier().check(asked, root=root, keep=keep, tell=tell) if asked else []
        found = {item.path: item for item in (*settled.values(), *fresh)}
        return [found[memory.path] for memory in memories]

    def verify_text(self, text: str, *, repository: Path | None = None, online: bool = False) -> Checked:
        """Hold any text against current code; nothing of it is kept."""
        from truekeep.truth import text_memory
        from truekeep.verify.options import Options

        truth = self._truth(Options(online=online, is_current=True))
        root = str(repository) if repository else ""
        (checked,) = truth.verifier().check([text_memory("", text)], root=root, keep=False)
        return checked

    def repair(self, checked: Sequence[Checked], *, dry_run: bool = False) -> tuple[list[Repair], list[str]]:
        """Write what moved into the memories, and propose to drop what is gone. Gives the plan and what was done."""
        with self._writing("repair memory"):
            truth, vault = self._truth(), self._the_vault()
            waiting = truth.waiting(vault)
            repairs, left = [], list[str]()
            for item in checked:
                if not any(verdict.is_rot for verdict in item.verdicts):
                    continue
                if not item.path or item.path.startswith(("/", "..")):
                    continue
                try:
                    stored = vault.read(item.path)
                except (UnsafePath, ChangedSince, OSError) as error:
                    left.append(f"{item.path}: left alone ({error})")
                    continue
                memory = truth.read(str(self.path / item.path), item.path)
                if stored is not None and memory is not None and _text_digest(memory.text) == item.digest:
                    repairs.append(truth.plan(memory, item, stored.data, waiting=waiting.get(item.path)))
                else:
                    left.append(f"{item.path}: edited since it was checked, so it was left alone; run it again")
            done = [] if dry_run else truth.apply(repairs, self._books(), actor=person())
            return repairs, [*done, *left]

    def checkouts(self) -> list[tuple[CheckoutFolder, int]]:
        """The checkouts known on this machine, each with the number of cards that belong to it."""
        from truekeep.checkouts import choose_checkout

        truth = self._truth()
        counts: dict[str, int] = {}
        for card in self.cards():
            chosen = choose_checkout(card.repository, truth.checkouts)
            if chosen is not None:
                counts[chosen.root] = counts.get(chosen.root, 0) + 1
        return [(item, counts.get(item.root, 0)) for item in truth.checkouts]

    def unknown_repositories(self) -> dict[str, int]:
        """Repositories that cards name and no checkout on this machine holds."""
        from truekeep.checkouts import choose_checkout

        truth = self._truth()
        missing: dict[str, int] = {}
        for card in self.cards():
            if card.repository and choose_checkout(card.repository, truth.checkouts) is None:
                missing[card.repository] = missing.get(card.repository, 0) + 1
        return missing

    def _truth(self, options: Options | None = None) -> Truth:
        from truekeep.truth import Truth

        return Truth(
            str(self.path),
            self._the_facts(),
            self._checkout_folders,
            now=self._now(),
            options=options,
            origins=self._line_origins,
            since_when=self._since_when,
        )

    def _the_facts(self) -> Store:
        from truekeep.verify.store import Store

        if self._facts is None:
            self._facts = Store(str(self.path / STATE / "facts.sqlite"))
        return self._facts

    def _since_when(self, memories: Sequence[Memory]) -> list[Memory]:
        """A card that was repaired says what it says since before; only the repaired lines are of the repair's day.

        Somebody who writes it anew gives it another day, and then that one counts.
        """
        from truekeep.model import CARDS

        paths = [memory.path for memory in memories if memory.path.startswith(f"{CARDS}/")]
        repairs = self._the_ledger().last_repairs(paths) if paths else {}
        return [self._before_repair(item, *repairs[item.path]) if item.path in repairs else item for item in memories]

    def _before_repair(self, memory: Memory, number: int, note: str) -> Memory:
        from truekeep.truth import end_of_day, parse_repair
        from truekeep.verify.kept import Origin, digest_text

        days = parse_repair(note)
        if days is None or end_of_day(days[1]) != memory.origin.written_at:
            return memory
        facts = self._the_facts()
        key = f"repaired {memory.path} {number} {digest_text(memory.text)}"
        marks = facts.answer(key)
        if marks is None:
            lines = self._history().lines(memory.path)
            marks = "".join("r" if line.entry is not None and line.entry.verb == "repaired" else "-" for line in lines)
            facts.remember(key, marks)
        before = Origin(memory.origin.repository, end_of_day(days[0]))
        return memory._replace(origin=before, lines=tuple(memory.origin if mark == "r" else before for mark in marks))

    def _hold(self, content: str, day: date, root: Path | None, name: str) -> tuple[str, list[tuple[str, str]]]:
        """Hold a handoff's content against its repository; one holder serves a whole run."""
        if self._holder is None:
            from truekeep.truth import Holder

            self._holder = Holder(self._truth())
        return self._holder.hold(content, day, root, name)

    def _checkout_folders(self) -> list[Path]:
        from truekeep.checkouts import expand_repositories

        return expand_repositories((*self.config.verify.checkouts, *self.config.repositories))

    def _line_origins(self, path: str) -> tuple[Origin, ...]:
        """For each line of a document, the repository of the handoff that it goes back to, and its day.

        A line that was repaired since is of the day of the repair: its places are those of that day.
        """
        from truekeep.truth import end_of_day
        from truekeep.verify.kept import Origin

        try:
            lines = self._history().lines(path)
        except (NotFound, UnsafePath):
            return ()
        found = []
        for line in lines:
            if line.source is None or not line.source.received_at:
                found.append(Origin())
                continue
            at = line.source.received_at if line.record is not None or line.entry is None else line.entry.at
            found.append(Origin(line.source.origin.repository, end_of_day(date.fromisoformat(at[:10]))))
        return tuple(found)

    # Sessions.

    def wake(
        self, root: Path | None = None, *, tokens: int | None = None, harness: str = "", budget: float = 0.0
    ) -> Brief:
        """What an agent in this repository must know. `budget`: seconds that may go into checking cards."""
        from truekeep import session
        from truekeep.brief import cap_for
        from truekeep.repo import repository_name
        from truekeep.wake import cards_for, compose, place_of

        cap = cap_for(harness, tokens)
        names, has = session.look_around(root)
        place = place_of(repository_name(root) if root is not None else "")._replace(names=names, has=has)
        vault = self._the_vault()
        listed, total = self._roll(place.repository, cards_for(cap))
        chosen = session.choose_cards(listed, place.repository, cards_for(cap))
        say = self.says([card.path for card in chosen], budget)
        cards = list(session.see_cards(vault, chosen, place.repository, say))
        return compose(
            lambda path: session.read_text(vault, path),
            cards,
            place,
            today=self._now().date(),
            cap=cap,
            others=total - len(chosen),
        )

    def _roll(self, repository: str, most: int) -> tuple[list[Listed], int]:
        """The latest cards of a repository and of none, as the index knows them and as they were written since.

        Without an index, the newest files. Also how many cards there are.
        """
        from truekeep.index.roll import read_roll
        from truekeep.session import Listed, list_cards

        path = str(self.path / STATE / "index.sqlite")
        written = self._cards_since(path)
        roll = read_roll(path, repositories={repository, ""}, most=most + len(written))
        if roll is None:
            return list_cards(str(self.path), repository, most=most)
        listed = {card: Listed(card, name, day) for card, name, day in roll.cards if card not in written}
        fresh = [known for card in written if (known := self._listed(card)) is not None]
        return [*listed.values(), *fresh], max(roll.total, len(listed) + len(fresh))

    def _cards_since(self, index: str) -> list[str]:
        """The cards that truekeep wrote since the index was brought up to date, the latest of them."""
        from truekeep.model import CARDS

        ledger = self.path / STATE / "ledger.sqlite"
        try:
            since = os.stat(index).st_mtime - 2
            files = [path for path in (ledger, f"{ledger}-wal") if os.path.exists(path)]
            if all(os.stat(path).st_mtime < since for path in files):
                return []
        except OSError:
            return []
        at = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            return self._the_ledger().paths_since(at, below=f"{CARDS}/", most=_NEWEST)
        except BadSetup:
            return []  # a damaged ledger is for the next ingest; who wakes is told what the index knows

    def _listed(self, path: str) -> Listed | None:
        """A card as a list has it, read from its file."""
        from truekeep.card import parse_card
        from truekeep.session import Listed, read_text

        text = read_text(self._the_vault(), path)
        if text is None:
            return None
        card = parse_card(path.rpartition("/")[2], text)
        day = card.updated or card.created
        return Listed(path, card.front.text("repository"), day.isoformat() if day else "")

    def says(self, paths: Sequence[str], budget: float) -> Callable[[str, str], tuple[str, bool]]:
        """What code says to each of these cards, in a few words, and whether it refutes it."""
        settings = self.config.verify
        if not settings.recall or not (settings.checkouts or self.config.repositories):
            return lambda *_: ("", False)
        known = self._truth().checked(paths, budget)

        def say(path: str, _: str) -> tuple[str, bool]:
            from truekeep.session import in_words

            found = known.get(path)
            return in_words(found) if found is not None else ("", False)

        return say

    def last_checked(self, path: str) -> Checked | None:
        """What the last check said to a memory, if everything that it rests on is as it was."""
        settings = self.config.verify
        if not (settings.checkouts or self.config.repositories):
            return None
        found = self._truth().checked([path], 0.0).get(path)
        return found if found is not None and not isinstance(found, str) else None

    def check(self, path: str, *, budget: float = 0.0) -> Checked | str:
        """What code says to one memory: as it is known, or as far as the time goes; a text where nobody can say."""
        if not (self.config.verify.checkouts or self.config.repositories):
            return "no checkout of any repository is configured here"
        found = self._truth().checked([path], budget).get(path)
        return found if found is not None else "nothing to check it against: no checkout here is of its repository"

    def hint(
        self, prompt: str, *, repository: str, told: Sequence[str], root: Path | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Cards and rules that a prompt surely needs, as text for the agent, and what they are known by.

        Words alone decide; often none.
        """
        from truekeep import session
        from truekeep.index.hint import find_hints

        found = find_hints(str(self.path / STATE / "index.sqlite"), prompt, repository=repository, told=set(told))
        listed = [known for hint in found if (known := self._listed(hint.path)) is not None]
        rules = self._rules_for(prompt, repository, told, root)
        if not listed and not rules:
            return "", ()
        say = self.says([card.path for card in listed], 0.0) if listed else lambda *_: ("", False)
        cards = list(session.see_cards(self._the_vault(), listed, repository, say))
        text = session.hint_text(cards, self._now().date(), tuple(rules.values()))
        return text, (*(card.path for card in cards), *rules)

    def _rules_for(self, prompt: str, repository: str, told: Sequence[str], root: Path | None) -> dict[str, str]:
        """Corrections and policies whose rare words a prompt has, by what they are known by."""
        from truekeep import session
        from truekeep.wake import CORRECTIONS, POLICIES, place_of

        vault = self._the_vault()
        texts = [(path, text) for path in (POLICIES, CORRECTIONS) if (text := session.read_text(vault, path))]
        if not any("|" in text for _, text in texts):
            return {}
        from zlib import crc32

        from truekeep.index.hint import rare_words
        from truekeep.lessons import KINDS, Here, called_for, is_called_for, read_lessons

        names, has = session.look_around(root)
        here = Here(repository, place_of(repository).slug, names, has)
        kinds = {kind.path: kind for kind in KINDS}
        found = {
            f"{path}#{crc32(asked.lesson.key.encode()):08x}": asked
            for path, text in texts
            for asked in called_for(prompt, read_lessons(kinds[path], text).lessons, here)
        }
        words = {word for asked in found.values() for word in asked.words}
        rare = rare_words(str(self.path / STATE / "index.sqlite"), words) if words else set()
        sure = [key for key, asked in found.items() if key not in told and is_called_for(asked, rare)]
        return {key: found[key].lesson.shown for key in sure[:_MOST_RULES]}

    def read(self, path: str) -> str:
        """A memory file as it is; empty where there is none. What is no plain text file is an error."""
        try:
            stored = self._the_vault().read(path)
        except ChangedSince as error:
            raise EditedSince(f"{path} changed while it was read", hint="run it again") from error
        text = decode_text(stored.data) if stored else ""
        if text is None:
            raise BadInput(f"{path} is not UTF-8 text", hint="open it in an editor and save it as UTF-8")
        return text

    def checkpoint(self, given: Checkpoint, *, root: Path | None = None, writer: str = "") -> Left:
        """Leave what a session learned: in memory here, as handoffs where this machine may not write it."""
        from truekeep.checkpoint import kinds_of, plan_writes
        from truekeep.closeout import note_checkpoint
        from truekeep.journal import check_writer, speaker
        from truekeep.repo import repository_name
        from truekeep.session import Left, Session, clean, leave_handoffs
        from truekeep.shelf import place_journal
        from truekeep.wake import place_of

        safe, notes = clean(given)
        repository = repository_name(root) if root is not None else ""
        by = speaker(check_writer(writer), repository)
        now = self._now()

        def plan(read: Callable[[str], str | None]) -> list[Write]:
            vault, slug = self._the_vault(), place_of(repository).slug
            return plan_writes(safe, read, lambda path: place_journal(path, vault), now=now, by=by, project=slug)

        try:
            with self._writing("checkpoint", wait=_PATIENCE):
                session = Session(self._books(), actor=person(), now=now)
                note = f"{kinds_of(safe)} ({by})" if by else kinds_of(safe)
                paths = session.write(plan, verb="checkpoint", note=note)
            note_checkpoint(str(root or ""), writer)
            return Left(tuple(paths), (), tuple(notes))
        except NotCanonical as error:
            if root is None:
                error.hint = f"in a repository, this leaves a handoff instead; {error.hint}"
                raise
        machine, writers = self.machine.name, self.config.writers
        left = leave_handoffs(safe, root, writer=writer or person(), writers=writers, now=now, machine=machine)
        note_checkpoint(str(root), writer)
        return Left((), tuple(left), tuple(notes))

    # The canonical host.

    def standing(self) -> Standing:
        """Which machines were and are the canonical host."""
        return self.state.standing()

    def take_host(self, seen: Standing) -> Tenure:
        """Make this machine the canonical host, and end every tenure that is known here. Again: nothing happens.

        `seen` is what the person was shown; where another machine was faster, nothing is done.
        """
        from truekeep.host import HOSTS
        from truekeep.tenure import next_tenure, refusal

        with self._lock(_PATIENCE):
            standing = self.standing()
            if (standing.generation, standing.holders()) != (seen.generation, seen.holders()):
                raise EditedSince(
                    "another machine was faster; nothing was done", hint="`truekeep host show` says which"
                )
            own = f"{HOSTS}/{self.machine.id}.toml"  # may be anything: it is written anew
            others = standing._replace(unreadable=tuple(item for item in standing.unreadable if item.file != own))
            if others.unreadable:
                raise refusal(others, self.machine, "take over")
            tenure = standing.canonical
            if tenure is None or tenure.id != self.machine.id:
                tenure = next_tenure(standing, self.machine.id, self.machine.name, at=self.stamp())
                self.state.write_tenure(tenure)
            self._open_for_writing()
            self._note_take(tenure)
            return tenure

    def release_host(self) -> Tenure:
        """End this machine's tenure; then nobody writes until some machine takes over. Again: nothing happens."""
        from truekeep.tenure import refusal

        standing = self.standing()
        own = standing.find(self.machine.id)
        if own is not None and own.released_at and own.generation == standing.generation:
            return own
        if own is None or own not in standing.rivals:
            raise refusal(standing, self.machine, "release what it does not have")
        with self._lock(_PATIENCE) if standing.is_split else self._writing("release it", wait=_PATIENCE):
            self._open_for_writing()
            self._note_act("released-host", f"generation {own.generation}", at=self.stamp())
            # The very last write, so that whoever sees it has all the others.
            released = (self.standing().find(self.machine.id) or own)._replace(released_at=self.stamp())
            self.state.write_tenure(released)
        return released

    def _note_take(self, tenure: Tenure) -> None:
        """Note in the ledger that this machine took over, unless that is there: a kill may have come in between."""
        if tenure.generation == 1:
            return
        by = f" from {tenure.taken_from}" if tenure.taken_from else ""
        note = f"generation {tenure.generation}: {tenure.name} took over{by}"
        if not self._the_ledger().has_entry("took-host", note):
            self._note_act("took-host", note, at=tenure.taken_at or self.stamp())

    def _note_act(self, verb: str, note: str, *, at: str) -> None:
        from truekeep.books import Books
        from truekeep.ledger import Entry
        from truekeep.vault import Staging

        vault = self._the_vault()
        Books(vault, self._the_ledger()).act(Staging(vault), Entry(at=at, verb=verb, actor=person(), note=note))

    def _note_write(self) -> None:
        """Note in this machine's tenure that it writes, once a day and first: a host that went on is found by it."""
        now = self.stamp()
        if self._tenure is not None and self._tenure.wrote_at[:10] != now[:10]:
            noted = self._tenure._replace(wrote_at=now)
            self.state.write_tenure(noted)
            self._tenure = noted

    # Transcripts.

    def archive(self) -> Archive:
        """The archive of sessions: this workspace's on its canonical host, elsewhere the machine's own."""
        from truekeep.host import own_state
        from truekeep.transcripts.archive import Archive

        return Archive(str(self.path / STATE) if self.is_canonical else own_state())

    def sync_transcripts(self, *, force: bool = False, tell: Callable[[int, int], None] = lambda *_: None) -> Synced:
        """Keep what was said in the harnesses' sessions, before they delete it. `force`: expire even most of it."""
        days = self.config.transcripts.keep_days
        return self.archive().sync_here(
            machine=self.machine.name, now=self._now(), keep_days=days, force=force, tell=tell
        )

    # Upkeep.

    def let_go(self, *, dry_run: bool = False) -> tuple[int, list[str]]:
        """Take out of the search index what was forgotten on purpose: how many sessions, and what to know of it."""
        recall = self._the_recall()
        sessions = recall.count_old_sessions() if dry_run else recall.let_go()
        return sessions, recall.notes

    def books(self) -> Books:
        """Vault and ledger, for looking; whoever writes comes through `writing`."""
        return self._books()

    def moment(self) -> datetime:
        return self._now()

    def found_checkouts(self) -> list[CheckoutFolder]:
        """The checkouts on this machine, looked for now."""
        return self._truth().checkouts

    def checkout_of(self, repository: str) -> str:
        """The folder on this machine that holds a repository; nothing where none does."""
        from truekeep.checkouts import choose_checkout

        chosen = choose_checkout(repository, self.found_checkouts())
        return chosen.root if chosen is not None and not chosen.problem else ""

    def waiting_letters(self) -> list[tuple[bytes, str, Path | None, str]]:
        """The handoffs that wait: bytes, name, repository's folder, and where each lies."""
        from truekeep.inbox import Inboxes, Skipped

        limits = self.config.limits
        inboxes = Inboxes(self.inboxes(), limit=limits.handoff_bytes, settle=limits.settle_seconds)
        found: list[tuple[bytes, str, Path | None, str]] = []
        try:
            for name, inbox in inboxes.waiting():
                letter = inboxes.read(name, inbox)
                if letter is not None and not isinstance(letter, Skipped) and letter.raw is not None:
                    root = None if inbox.there or inbox.root == self.path else inbox.root
                    found.append((letter.raw, name, root, str(inbox.path / name)))
        finally:
            inboxes.close()
        return found

    def survey(
        self, tell: Callable[[int, int], None] = lambda *_: None, *, within: float = 0.0, reuse: float = 0.0
    ) -> Survey:
        """What upkeep knows of every memory file, brought up to date.

        `reuse`: so many seconds old will do, where no file came, went or was replaced since.
        `within`: somebody waits for it. So many seconds old will do, where no file came, went or was replaced since;
        and where very many files are new, that is told (Busy) and nothing is read.
        """
        from truekeep.survey import Survey, TooMuch

        if self._survey is None:
            self._survey = Survey(str(self.path / STATE), str(self.path))
        if (within or reuse) and self._survey.is_fresh(within or reuse):
            return self._survey
        try:
            self.surveyed = self._survey.refresh(tell, most=_WAITED_FOR if within else None)
        except TooMuch as error:
            raise Busy(
                f"{error} memory files have not been looked through yet",
                hint="it goes on; try again in a minute or two",
            ) from error
        return self._survey

    def topics(self, paths: Sequence[str]) -> dict[str, str]:
        """The topics of cards, as the last survey knew them; nothing is looked at for it."""
        from truekeep.survey import Survey

        if self._survey is None:
            self._survey = Survey(str(self.path / STATE), str(self.path))
        return self._survey.topics(paths)

    def browse(self, wanted: Browse, *, first: int = 0, most: int = 50) -> tuple[list[Browsed], int]:
        """Memory files by store, words, repository, age, verdict and tag: some of them, and how many there are."""
        survey = self.survey(within=_LATELY)
        survey.hear_verdicts(str(self.path / STATE / "facts.sqlite"))
        return survey.browse(wanted, first=first, most=most)

    # Status.

    def card_names(self) -> list[str]:
        """The names of all cards, in no order; no card is read."""
        from truekeep.model import CARDS

        names = (item.name for item in self._the_vault().names(CARDS))
        return [name for name in names if name.endswith(".md") and name[0] != "."]

    def count_cards(self) -> int:
        return len(self.card_names())

    def count_waiting(self) -> int:
        from truekeep.inbox import Inboxes

        limits = self.config.limits
        inboxes = Inboxes(self.inboxes(), limit=limits.handoff_bytes, settle=limits.settle_seconds)
        try:
            return len(inboxes.waiting())
        finally:
            inboxes.close()

    def received(self, since: str) -> list[Received]:
        """What came from each machine, writer and repository."""
        return self._the_ledger().received(since)

    def routes(self) -> list[tuple[Route, SyncHistory]]:
        """The routes to other machines, and how they went."""
        from truekeep.sync.contact import read_history
        from truekeep.sync.route import read_routes

        return [(route, read_history(self.state.path, name)) for name, route in read_routes(self.state.path).items()]

    def days(self) -> list[Day]:
        """What memory was at the end of each day, as far as that was noted."""
        from truekeep.days import read_days

        return read_days(str(self.path / STATE / "logs"))

    def last_line(self, log: str) -> str:
        """The last line of one of the logs; empty when there is none."""
        try:
            with open(self.path / STATE / "logs" / log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4_096))
                return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        except OSError:
            return ""

    def adopt(
        self, harness: str, *, given: Path | None = None, repository: Path | None = None, dry_run: bool = False
    ) -> tuple[list[Adopted], list[SkippedNote]]:
        """Leave handoffs for what a harness remembers on its own and is new, each in its repository's inbox."""
        from truekeep.adopt.leave import Desk, bring
        from truekeep.model import CARDS

        desk = Desk(
            home=self.path,
            writers=self.config.writers,
            judge=self.lint,
            has_card=lambda name: (self.path / CARDS / name).is_file(),
            memory_path=self.path / STATE / f"adopted-{self.machine.id[:8]}.json",
        )
        folders = self._checkout_folders()
        return bring(
            harness, desk, folders=folders, now=self._now(), given=given, repository=repository, dry_run=dry_run
        )

    def today(self) -> date:
        return self._now().date()

    def recall_status(self) -> Status:
        """How the search index stands."""
        return self._the_recall().status()

    def leave_handoff(self, text: str, *, writer: str, name: str = "", root: Path | None = None) -> tuple[Path, Filing]:
        """Judge a handoff as ingest will, and leave it in a writer's inbox: a repository's, or the workspace's own."""
        from truekeep.errors import InvalidHandoff
        from truekeep.handoff import handoff_name, parse_handoff
        from truekeep.inbox import Inbox, deliver

        writers = self.config.writers
        if writer not in writers:
            raise BadInput(f"no writer is called {writer!r}", hint=f"known: {', '.join(writers)}")
        raw = text.encode("utf-8", "surrogateescape")
        name = handoff_name(name or parse_handoff(text).title, self._now())
        root = root if root is not None and self.looks_into(root) else self.path
        (filing,) = self.lint([(raw, name, root)])
        if filing.outcome in ("review", "refused"):
            raise InvalidHandoff("this handoff would not be filed, so it was not written", filing.blocking)
        return deliver(Inbox(root=root, folder=writers[writer], writer=writer), name, raw), filing

    def relative(self, path: str) -> str:
        """A path as the ledger knows it: inside the workspace. Seen from here, else from the workspace."""
        root = os.path.realpath(self.path)
        for start in (os.getcwd(), str(self.path)):
            full = os.path.join(start, path)
            inside = os.path.relpath(
                os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)), root
            )
            if not inside.startswith("..") and (start == str(self.path) or os.path.lexists(full)):
                card = f"memory/cards/{inside}"
                is_card = "/" not in inside and (self.path / card).is_file() and not (self.path / inside).exists()
                return card if is_card else inside
        raise BadInput(f"{path} is not in {self.path}", hint="name a file of the workspace")


def person() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _text_digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _utc(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
