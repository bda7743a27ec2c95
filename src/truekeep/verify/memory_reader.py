"""Reads memory files for verification, with the repository and date of each line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput
from truekeep.core.file_io import NOT_REGULAR, open_regular
from truekeep.core.model import CARDS, INDEX
from truekeep.memory.card import parse_day
from truekeep.memory.file_scan import MemoryFile, iter_files, store_of
from truekeep.memory.own_blocks import blank_rule
from truekeep.search.file_metadata import describe
from truekeep.text.encoding import decode_text
from truekeep.verify.cache import FactsCache, retry_if_damaged
from truekeep.verify.checkouts import choose_checkout, find_checkouts
from truekeep.verify.results import LineOrigin, MemoryText, end_of_day

if TYPE_CHECKING:
    from truekeep.verify.line_origins import OriginReader

MAX_FILE_BYTES = 8_000_000
MEMORIES_PER_LEDGER_QUERY = 200
_INDEX_LINE = re.compile(r"\s*(?:$|#|<!--|\[//\]|[-*+]\s+\[[^\]]*\]\((?:\./)?memory/cards/)")
CHANGELOG_NAMES = ("changelog", "history", "release-notes", "changes")


class MemoryReader:
    """Reads the memory of one workspace."""

    def __init__(self, root: str, origins: OriginReader) -> None:
        self.root = root
        self._origins = origins

    def memories(self) -> Iterator[MemoryText]:
        """Every card, document and daily log, the index, and the instructions to the agent, by their paths."""
        read: list[MemoryText] = []
        for source in sorted(self._sources(), key=lambda source: source.path):
            if _is_memory(source):
                memory = self._read(source.location, source.path)
                is_read = memory is not None and not (source.path == INDEX and _only_lists_cards(memory.text))
                read += [memory] if memory is not None and is_read else []
            if len(read) == MEMORIES_PER_LEDGER_QUERY:
                yield from self._origins.before_repairs(read)
                read = []
        yield from self._origins.before_repairs(read)

    def cards(self) -> list[MemoryText]:
        """Every card, in the order of their paths."""
        sources = [source for source in iter_files(self.root) if source.store == "cards" and source.path != INDEX]
        read = [self._read(source.location, source.path) for source in sorted(sources, key=lambda item: item.path)]
        return self._origins.before_repairs([memory for memory in read if memory is not None])

    def read(self, location: str, shown: str) -> MemoryText | None:
        """A memory file with the origins of its lines; None if it is not readable text."""
        memory = self._read(location, shown)
        return self._origins.before_repairs([memory])[0] if memory is not None else None

    def read_all(self, paths: Sequence[str]) -> list[MemoryText]:
        """These memory files, once each; those that cannot be read are left out."""
        named = [self._read(path if os.path.isabs(path) else os.path.join(self.root, path), path) for path in paths]
        return self._origins.before_repairs([memory for memory in dict.fromkeys(named) if memory is not None])

    def _read(self, location: str, shown: str) -> MemoryText | None:
        memory = read_memory(location, shown)
        store = store_of(shown)
        if memory is None or memory.origin.repository or store not in ("documents", "logs") or is_outside(shown):
            return memory
        lines = self._origins.of_document(shown, memory.text)
        if store == "documents":
            return memory._replace(lines=lines)
        if not any(line.repository for line in lines):
            return memory
        day = memory.origin.written_at  # of a log's lines it is the day in its name
        return memory._replace(lines=tuple(line._replace(written_at=day) for line in lines))

    def files(self, wanted: Sequence[str]) -> Iterator[tuple[MemoryText, bool]]:
        """The named Markdown files, in the workspace or elsewhere; and whether each is a memory of the workspace."""
        own = self.own_paths()
        for path in expand_folders(wanted, self.root):
            location = self._locate(path)
            shown = os.path.relpath(location, os.path.realpath(self.root)).replace(os.sep, "/")
            memory = self.read(location, _outside(path) if shown.startswith("..") else shown)
            if memory is None:
                raise BadInput(f"{path} is not readable text", hint="name a Markdown file")
            yield memory, shown in own

    def own_paths(self) -> set[str]:
        """The paths of every file that is checked without being named."""
        return {source.path for source in self._sources() if _is_memory(source)}

    def _sources(self) -> Iterator[MemoryFile]:
        from truekeep.memory.document_scan import iter_current  # hooks read single files only

        return iter_current(self.root)

    def about(self, memories: Sequence[MemoryText], root: str, store: FactsCache) -> list[MemoryText]:
        """The memories about the repository of this checkout, and those without a repository."""
        here = retry_if_damaged(lambda: find_checkouts([Path(root)], store))

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


def _is_memory(source: MemoryFile) -> bool:
    return source.store in ("cards", "documents", "logs")


def _only_lists_cards(text: str) -> bool:
    """Whether an index has nothing but headings, comments and entries for cards."""
    return all(_INDEX_LINE.match(line) for line in text.split("\n"))


def read_memory(location: str, shown: str) -> MemoryText | None:
    """A Markdown file as a memory; None if it is not readable text."""
    try:
        with open(open_regular(location), "rb") as file:
            data = file.read(min(os.fstat(file.fileno()).st_size, MAX_FILE_BYTES) + 1)
    except OSError:
        return None
    text = decode_text(data) if len(data) <= MAX_FILE_BYTES else None
    return text_memory(shown, blank_rule(text)) if text is not None else None


def text_memory(shown: str, text: str) -> MemoryText:
    """A text as a memory, with the repository and day of its frontmatter."""
    about = describe(shown, text)
    name = shown.rpartition("/")[2].lower()
    origin = LineOrigin(about.repository, end_of_day(parse_day(about.day)))
    return MemoryText(shown, text, origin, is_changelog=name.startswith(CHANGELOG_NAMES))


def expand_folders(files: Sequence[str], root: str = "") -> list[str]:
    """The files; a folder is replaced by the Markdown files below it, except in hidden folders."""
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
    """Remove hidden folders and node_modules in place, and sort the others."""
    folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
    return True


def _outside(path: str) -> str:
    """The shown name of a file outside of the workspace; never like one inside."""
    return path if is_outside(path) else f"./{path}"


def is_outside(path: str) -> bool:
    """True if the checked file is outside of the workspace."""
    return path.startswith(("/", "../", "./"))
