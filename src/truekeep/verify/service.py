"""Truth: the memories of a workspace held against code, for recall, ingest and whoever asks.

Reads memory and hands it to the verifier (`verify/`); writes no memory. What is to be repaired is for `mending`, which
memory to believe for `resolution`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput
from truekeep.core.file_io import NOT_REGULAR, open_regular
from truekeep.core.model import CARDS, INDEX, as_stamp
from truekeep.memory.card import parse_day
from truekeep.search.file_metadata import describe
from truekeep.search.file_scan import MemoryFile, store_of, sweep
from truekeep.text.encoding import decode_text
from truekeep.verify.cache import FactsCache, begun_anew
from truekeep.verify.checkouts import Checkout, choose_checkout, find_checkouts
from truekeep.verify.results import CheckedMemory, LineOrigin, MemoryText, quick_stamp, recall
from truekeep.verify.verdict import GONE, UNVERIFIABLE, Verdict

if TYPE_CHECKING:
    from truekeep.search.searcher import Hit
    from truekeep.verify.options import Options
    from truekeep.verify.verifier import Verifier

_LARGEST = 8_000_000
_REFUTED_SHARE = 0.4  # of its score, for a hit that code refutes: below what holds, not below what is about nothing
_AT_ONCE = 200  # memories that the ledger is asked about
_CHANGELOGS = ("changelog", "history", "release-notes", "changes")


class Truth:
    """The claims of one workspace."""

    def __init__(
        self,
        root: str,
        store: FactsCache,
        folders: Callable[[], Sequence[Path]],
        *,
        now: datetime,
        options: Options | None = None,
        origins: Callable[[str], tuple[LineOrigin, ...]] | None = None,
        since_when: Callable[[Sequence[MemoryText]], list[MemoryText]] | None = None,
        believe: Callable[[list[Checkout]], list[Checkout]] = lambda found: found,
    ) -> None:
        self.root, self.store, self.now = root, store, now
        self._folders = folders
        self._options = options
        self._origins = origins
        self._since_when = since_when
        self._believe = believe

    @cached_property
    def checkouts(self) -> list[Checkout]:
        """The checkouts on this machine; looked for when the first memory names a repository."""
        return begun_anew(lambda: self._believe(find_checkouts(self._folders(), self.store)))

    def verifier(self, options: Options | None = None, *, reuse: bool = False) -> Verifier:
        """The inspection. It is loaded here, so that recall of what is known does without it."""
        from truekeep.verify.verifier import Verifier

        return Verifier(self.store, self.checkouts, workspace=self.root, options=options or self._options, reuse=reuse)

    # Memories.

    def memories(self) -> Iterator[MemoryText]:
        """Every card and document. Logs and transcripts tell what happened, and that stays true."""
        read: list[MemoryText] = []
        for source in sweep(self.root):
            if _is_memory(source):
                memory = self._read(source.location, source.path)
                read += [memory] if memory is not None else []
            if len(read) == _AT_ONCE:
                yield from self._since(read)
                read = []
        yield from self._since(read)

    def cards(self) -> list[MemoryText]:
        """Every card, in the order of their paths."""
        sources = [source for source in sweep(self.root) if source.store == "cards" and source.path != INDEX]
        read = [self._read(source.location, source.path) for source in sorted(sources, key=lambda item: item.path)]
        return self._since([memory for memory in read if memory is not None])

    def read(self, location: str, shown: str) -> MemoryText | None:
        """A memory file with what is known of its origin; None when it is no readable text."""
        memory = self._read(location, shown)
        return self._since([memory])[0] if memory is not None else None

    def _since(self, memories: list[MemoryText]) -> list[MemoryText]:
        """The memories as they are, cards that were repaired with the days of before."""
        return self._since_when(memories) if self._since_when is not None else memories

    def _read(self, location: str, shown: str) -> MemoryText | None:
        memory = read_memory(location, shown)
        is_document = store_of(shown) == "documents" and not is_outside(shown)
        if memory is None or self._origins is None or memory.origin.repository or not is_document:
            return memory
        return memory._replace(lines=self._origins(shown))

    def files(self, wanted: Sequence[str]) -> Iterator[tuple[MemoryText, bool]]:
        """The named files, of the workspace or any Markdown anywhere; and whether each is a memory of the workspace."""
        own = self.own_paths()
        for path in expand_folders(wanted, self.root):
            location = self._locate(path)
            shown = os.path.relpath(location, os.path.realpath(self.root)).replace(os.sep, "/")
            memory = self.read(location, _outside(path) if shown.startswith("..") else shown)
            if memory is None:
                raise BadInput(f"{path} is no readable text", hint="name a Markdown file")
            yield memory, shown in own

    def own_paths(self) -> set[str]:
        """The memories of the workspace: every card and document."""
        return {source.path for source in sweep(self.root) if _is_memory(source)}

    def about(self, memories: Sequence[MemoryText], root: str) -> list[MemoryText]:
        """The memories about the repository of this checkout, and those that name none."""
        here = begun_anew(lambda: find_checkouts([Path(root)], self.store))

        def belongs(memory: MemoryText) -> bool:
            own = memory.origin.repository
            names = {own} if own else {origin.repository for origin in memory.lines}
            return not any(names) or any(choose_checkout(name, here) is not None for name in names)

        found = [memory for memory in memories if belongs(memory)]
        problem = next((item.problem for item in here), "")
        if problem and not found:
            raise BadInput(f"{root} cannot be read: {problem}", hint="name another checkout with --repo")
        return found

    def _locate(self, path: str) -> str:
        candidates = (
            path,
            os.path.join(self.root, path),
            os.path.join(self.root, CARDS, path),
            os.path.join(self.root, CARDS, f"{path}.md"),
        )
        for candidate in candidates:
            if os.path.isfile(candidate):
                return os.path.realpath(candidate)
        if any(map(os.path.exists, candidates)):
            raise BadInput(f"{path} {NOT_REGULAR}", hint="name a card, a document, or any Markdown file")
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

    def checked(self, paths: Sequence[str], budget: float) -> dict[str, CheckedMemory | str]:
        """What is known of these memories, or can be found in time; a text for what could not."""
        found: dict[str, CheckedMemory | str] = {}
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
            memory = MemoryText("", f"{words}\n\n{topic}\n", LineOrigin(repository))
            (checked,) = self.verifier().check([memory], keep=False)
            for verdict in checked.verdicts:
                if verdict.verdict != UNVERIFIABLE and verdict.claim.kind != "decision":
                    found.setdefault(verdict.claim.name, verdict)
        return list(found.values())

    def _has_checkout(self, memory: MemoryText) -> bool:
        names = {memory.origin.repository, *(origin.repository for origin in memory.lines)} - {""}
        return bool(names) and any(choose_checkout(name, self.checkouts) is not None for name in names)


def _is_memory(source: MemoryFile) -> bool:
    return source.store in ("cards", "documents") and source.path != INDEX


def _is_refuted(hit: Hit) -> bool:
    return any(verdict.is_rot for verdict in hit.verdicts)


def _within(checked: CheckedMemory | str | None, first: int, last: int) -> tuple[tuple[Verdict, ...], str, str]:
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
        place = self._root(root, name)
        if not place:
            return content, []
        from truekeep.text.secrets.scanner import withhold
        from truekeep.text.unicode import printable
        from truekeep.verify.text_edits import apply_repairs, plan_repairs

        memory = MemoryText("", content, LineOrigin(name, end_of_day(day)))
        (checked,) = self._verifier.check([memory], root=place, keep=False)
        edits = [edit for edit in plan_repairs(content, checked.verdicts) if withhold(edit.new) == edit.new]
        repaired = apply_repairs(content, edits)
        if edits and any(verdict.verdict == GONE for verdict in checked.verdicts):
            # What a repair puts right is not refuted.
            (checked,) = self._verifier.check([memory._replace(text=repaired)], root=place, keep=False)
        found = [("moved-since", f"{edit.shown}: {edit.verdict.why}") for edit in edits]
        refuted = [verdict for verdict in checked.verdicts if verdict.verdict == GONE]
        found += [("refuted", f"{verdict.claim.shown}: {verdict.why}") for verdict in refuted]
        told = dict.fromkeys((code, printable(what)) for code, what in found)  # what is said twice is found once
        return repaired, list(told)

    def _root(self, root: Path | None, name: str) -> str:
        if root is not None:
            return str(root) if os.path.exists(f"{root}/.git") else ""
        chosen = choose_checkout(name, self.truth.checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""


def read_memory(location: str, shown: str) -> MemoryText | None:
    """A Markdown file as a memory; None when it is no readable text."""
    try:
        with open(open_regular(location), "rb") as file:
            data = file.read(min(os.fstat(file.fileno()).st_size, _LARGEST) + 1)
    except OSError:
        return None
    text = decode_text(data) if len(data) <= _LARGEST else None
    return text_memory(shown, text) if text is not None else None


def text_memory(shown: str, text: str) -> MemoryText:
    """A text as a memory, with what it says about itself."""
    about = describe(shown, text)
    name = shown.rpartition("/")[2].lower()
    origin = LineOrigin(about.repository, end_of_day(parse_day(about.day)))
    return MemoryText(shown, text, origin, is_changelog=name.startswith(_CHANGELOGS))


def end_of_day(day: date | None) -> int | None:
    """The last second of a day, here; None for no day. A day in the future says nothing."""
    if day is None:
        return None
    try:
        return int((datetime.combine(day, datetime.min.time()).astimezone() + timedelta(days=1)).timestamp()) - 1
    except (OverflowError, OSError, ValueError):
        return None


def expand_folders(files: Sequence[str], root: str = "") -> list[str]:
    """The files, and for each folder among them the Markdown files below it; hidden folders are passed over."""
    found: list[str] = []
    for name in files:
        places = [name, os.path.join(root, name)] if root and not os.path.exists(name) else [name]
        folder = next((place for place in places if os.path.isdir(place)), "")
        if not folder:
            found.append(name)
            continue
        below = [
            os.path.join(at, file)
            for at, folders, names in os.walk(folder)
            if _keep_visible(folders)
            for file in sorted(names)
            if file.lower().endswith(".md") and os.path.isfile(os.path.join(at, file))
        ]
        if not below:
            raise BadInput(f"{name} has no Markdown file", hint="name a card, a document, or any Markdown file")
        found += below
    return found


def _keep_visible(folders: list[str]) -> bool:
    """Take out, in place, the folders that nobody writes documents into; the others in order."""
    folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
    return True


def _outside(path: str) -> str:
    """How a file is called that is none of the workspace's: never like one that is."""
    return path if is_outside(path) else f"./{path}"


def is_outside(path: str) -> bool:
    """Whether a checked file is none of the workspace's."""
    return path.startswith(("/", "../", "./"))


def verify_anywhere(
    memories: Sequence[MemoryText], *, root: Path | None, online: bool = False, is_current: bool = False
) -> list[CheckedMemory]:
    """Hold texts against one checkout, without any workspace. What is read is kept in the user's cache."""
    from truekeep.verify.options import Options
    from truekeep.verify.verifier import Verifier

    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "truekeep")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        store = FactsCache(os.path.join(folder, "facts.sqlite"))
    except OSError:
        store = FactsCache(":memory:")
    try:
        verifier = Verifier(store, [], options=Options(online=online, is_current=is_current))
        return verifier.check(memories, root=str(root) if root else "", keep=False)
    finally:
        store.close()
