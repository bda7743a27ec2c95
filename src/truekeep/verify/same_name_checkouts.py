"""Decides which checkout owns a repository name when several claim it, since anyone can set `remote.origin.url`.

The checkout that the first handoffs for the name came from owns it. Others may use the name too if they share a commit
with that checkout.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from truekeep.core.errors import BadSetup
from truekeep.core.git import shares_history
from truekeep.core.machine import below_home
from truekeep.core.repository import find_irregular_file, find_top, remote_name, repository_name
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.verify.cache import read_rows
from truekeep.verify.checkouts import Answers, Checkout, find_checkouts
from truekeep.verify.results import quick_stamp

if TYPE_CHECKING:
    from truekeep.memory.ledger import Ledger

SAME_NAME_HINT = "change remote.origin.url of the wrong one"
First = Callable[[str], Path | None]  # the checkout that the first handoffs of a repository came from


class SameNames:
    """Checks whether handoffs come from the repository that owns their name; each checkout is checked once per run."""

    def __init__(self, ledger: Ledger, machine: str, writers: Mapping[str, str]) -> None:
        self._ledger, self._machine, self._writers = ledger, machine, writers
        self._firsts: dict[str, Path] = {}
        self._conflicts: dict[Path, str] = {}

    def find_conflict(self, root: Path, repository: str) -> str:
        """Return a message if another repository with this name sent handoffs first, otherwise an empty string."""
        if root not in self._conflicts:
            self._conflicts[root] = self._compare(find_top(root) or root, repository)
        return self._conflicts[root]

    def _compare(self, root: Path, repository: str) -> str:
        first = first_checkout(self._ledger, repository, self._machine, self._writers)
        first = first or self._firsts.setdefault(repository, root)
        if os.path.realpath(first) == os.path.realpath(root) or shares_history(first, root):
            return ""
        here, there = _shown(root), _shown(first)
        return (
            f"{here} and {there} are both called {repository} and share no commit; handoffs came from {there} first;"
            " change remote.origin.url, or the folder's name, of the wrong one"
        )


def first_checkout(ledger: Ledger, repository: str, machine: str, writers: Mapping[str, str]) -> Path | None:
    """Return the checkout that the first handoffs of a repository came from, if it still has that name."""
    for noted, writer in ledger.inboxes_of(repository, machine):
        folder = writers.get(writer, "")
        path = os.path.expanduser(noted)
        if not folder or not path.endswith(f"/{folder}"):
            continue
        first = Path(path.removesuffix(f"/{folder}"))
        first = find_top(first) or first
        if first.is_dir() and withhold(printable(repository_name(first))) == repository:
            return first
    return None


def mark_same_names(checkouts: Sequence[Checkout], first: First, answers: Answers) -> tuple[list[Checkout], list[str]]:
    """Mark the checkouts that use another repository's name; also return a message for each of them.

    Git is run only for names that several checkouts claim, and its answers are cached.
    """
    claims: dict[str, list[int]] = defaultdict(list)
    for at, item in enumerate(checkouts):
        for name in item.names[:-1] if not item.problem else ():
            claims[name.lower()].append(at)
    found, notices = list(checkouts), list[str]()
    for members in claims.values():
        if len(members) < 2:
            continue
        spelled = [name for at in members for name in checkouts[at].names[:-1] if members == claims[name.lower()]]
        owner = _owner([checkouts[at] for at in members], spelled, first)
        for at in members:
            if at == checkouts.index(owner) or _shares(owner.root, checkouts[at].root, answers):
                continue
            mine = found[at].names
            left = tuple(name for name in mine[:-1] if name not in spelled)
            why = f"is called {spelled[0]} as {_shown(Path(owner.root))} is, and shares no commit with it"
            notices.append(f"{_shown(Path(checkouts[at].root))} {why}: {_shown(Path(owner.root))} is used")
            found[at] = found[at]._replace(names=(*left, mine[-1])) if left else found[at]._replace(problem=why)
    return found, list(dict.fromkeys(notices))


def find_same_names(
    folders: Iterable[Path], *, state: str, machine: str, writers: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the messages of `mark_same_names` for the clones in these folders. Nothing is written.

    Linked worktrees are skipped, because they share the history of their clone.
    """
    named: dict[str, list[Path]] = defaultdict(list)
    for root in dict.fromkeys(os.path.realpath(folder) for folder in folders):
        if (
            os.path.isdir(os.path.join(root, ".git"))
            and not find_irregular_file(root)
            and (name := remote_name(Path(root)))
        ):
            named[name.lower()].append(Path(root))
    clashing = [root for roots in named.values() if len(roots) > 1 for root in roots]
    if not clashing:
        return ()
    answers = _KnownAnswers(os.path.join(state, "facts.sqlite"))

    def first(name: str) -> Path | None:
        from truekeep.memory.ledger import Ledger, LedgerFileDamaged, Unwritable

        with suppress(LedgerFileDamaged, Unwritable, BadSetup, apsw.Error, OSError):  # reported elsewhere
            ledger = Ledger(os.path.join(state, "ledger.sqlite"), read_only=True)
            try:
                return first_checkout(ledger, name, machine, writers)
            finally:
                ledger.close()
        return None

    return tuple(mark_same_names(find_checkouts(clashing, answers), first, answers)[1])


class _KnownAnswers:
    """Cached git answers, read from the cache file. New answers are kept in memory only."""

    def __init__(self, path: str) -> None:
        question = "SELECT key, value FROM answer WHERE key GLOB 'shares history *' OR key GLOB 'remotes *'"
        self._known: dict[str, str] = {}
        with suppress(apsw.Error):  # a damaged file is reported elsewhere
            self._known |= {str(key): str(value) for key, value in read_rows(path, question)}

    def answer(self, key: str) -> str | None:
        return self._known.get(key)

    def remember(self, key: str, value: str) -> None:
        self._known[key] = value


def _owner(members: Sequence[Checkout], spelled: Sequence[str], first: First) -> Checkout:
    """Return the member that the first handoffs came from, or the default choice if there were none."""
    for name in dict.fromkeys(spelled):
        known = first(name)
        for item in members if known is not None else ():
            if item.root == os.path.realpath(str(known)):
                return item
    return min(members, key=lambda item: item.is_linked)


def _shares(one: str, other: str, answers: Answers) -> bool:
    """Whether two checkouts share a commit. A negative answer is checked again after either of them changed."""
    key = f"shares history {one} {_inode(one)} {other} {_inode(other)}"
    no = f"no {quick_stamp(one)} {quick_stamp(other)}"
    known = answers.answer(key)
    if known not in ("yes", no):
        known = "yes" if shares_history(Path(one), Path(other)) else no
        answers.remember(key, known)
    return known == "yes"


def _inode(root: str) -> int:
    """Return the inode of .git, which changes if the repository is replaced."""
    try:
        return os.stat(os.path.join(root, ".git")).st_ino
    except OSError:
        return 0


def _shown(path: Path) -> str:
    return withhold(printable(below_home(path, Path.home())))
