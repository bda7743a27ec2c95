"""Checkouts that claim one name: anybody can write `remote.origin.url`, so history decides which of them is believed.

The checkout that the first handoffs of a name came from has it; others have it as well if they share a commit with it.
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
from truekeep.core.git import find_irregular_file, find_top, remote_name, repository_name, shares_history
from truekeep.core.machine import below_home
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
    """Whether handoffs come from the repository whose name they carry; each checkout is asked once a run."""

    def __init__(self, ledger: Ledger, machine: str, writers: Mapping[str, str]) -> None:
        self._ledger, self._machine, self._writers = ledger, machine, writers
        self._firsts: dict[str, Path] = {}
        self._conflicts: dict[Path, str] = {}

    def find_conflict(self, root: Path, repository: str) -> str:
        """What to say where another repository has this name, whose handoffs came first; else empty."""
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
    """The checkout that the first handoffs of a repository came from, of those that still have its name."""
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
    """The checkouts, those of a borrowed name marked as such; and one sentence for each of them.

    Only names that several claim cost anything, and what git answered is kept.
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
    """What `believed` says of the clones in these folders; nothing is written, and git is asked only where names clash.

    Linked worktrees are left out: they have the history of their clone.
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

        with suppress(LedgerFileDamaged, Unwritable, BadSetup, apsw.Error, OSError):  # told elsewhere
            ledger = Ledger(os.path.join(state, "ledger.sqlite"), read_only=True)
            try:
                return first_checkout(ledger, name, machine, writers)
            finally:
                ledger.close()
        return None

    return tuple(mark_same_names(find_checkouts(clashing, answers), first, answers)[1])


class _KnownAnswers:
    """What git answered before, read from the file of facts; what is new is kept no longer than this."""

    def __init__(self, path: str) -> None:
        question = "SELECT key, value FROM answer WHERE key GLOB 'shares history *' OR key GLOB 'remotes *'"
        self._known: dict[str, str] = {}
        with suppress(apsw.Error):  # a damaged file is told elsewhere
            self._known |= {str(key): str(value) for key, value in read_rows(path, question)}

    def answer(self, key: str) -> str | None:
        return self._known.get(key)

    def remember(self, key: str, value: str) -> None:
        self._known[key] = value


def _owner(members: Sequence[Checkout], spelled: Sequence[str], first: First) -> Checkout:
    """The member that the first handoffs came from; where none came, the one that would be chosen anyway."""
    for name in dict.fromkeys(spelled):
        known = first(name)
        for item in members if known is not None else ():
            if item.root == os.path.realpath(str(known)):
                return item
    return min(members, key=lambda item: item.is_linked)


def _shares(one: str, other: str, answers: Answers) -> bool:
    """Whether two checkouts share a commit; asked of git again only where they did not and either moved since."""
    key = f"shares history {one} {_inode(one)} {other} {_inode(other)}"
    no = f"no {quick_stamp(one)} {quick_stamp(other)}"
    known = answers.answer(key)
    if known not in ("yes", no):
        known = "yes" if shares_history(Path(one), Path(other)) else no
        answers.remember(key, known)
    return known == "yes"


def _inode(root: str) -> int:
    """Another .git in the place of the one that was asked is another repository."""
    try:
        return os.stat(os.path.join(root, ".git")).st_ino
    except OSError:
        return 0


def _shown(path: Path) -> str:
    return withhold(printable(below_home(path, Path.home())))
