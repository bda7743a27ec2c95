"""Memory on its way down by git: the branch truekeep/memory has the host's publication, and no history.

Each state is one commit without a parent, so that what became private is not in the branch's history. The commits of
earlier states are removed from truekeep's own repository when something became private; those on the remote are its
own to remove. The head is renewed at most every few minutes: until then nothing new is no push.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from truekeep.core.errors import TruekeepError
from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.handoffs.sync.publication import HEAD, MAX_HEAD_BYTES, MAX_PACK_BYTES, OBJECTS, parse_head
from truekeep.handoffs.sync.publication_store import is_recent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truekeep.handoffs.sync.publication_store import Publication
    from truekeep.handoffs.sync.via_git import Private, Tip

BRANCH = "memory"
_REMAINS = (
    "something became private: it is in no branch any more, but git keeps commits that no branch has;"
    " `git gc --prune=now` in the repository there removes them, at a hosting service its support does"
)


class GitPublication:
    """A publication in a commit."""

    def __init__(self, private: Private, tip: Tip) -> None:
        self._private, self._tip = private, tip

    def read_head(self) -> bytes | None:
        return self._read(HEAD, MAX_HEAD_BYTES)

    def read_object(self, digest: str, limit: int) -> bytes | None:
        return self._read(f"{OBJECTS}/{digest}", min(limit, MAX_PACK_BYTES))

    def _read(self, path: str, limit: int) -> bytes | None:
        git = Git(str(self._private.path), timeout=self._private.seconds)
        git.borrow(str(self._private.path / "objects"))
        try:
            ids = [file.id for file in self._private.list_tree(self._tip.commit, [path]) if file.size <= limit]
            return next((data for _, data in git.blobs(ids, limit=limit)), None)
        except GitFailed:
            return None
        finally:
            git.close()


def push_published(private: Private, tips: Mapping[str, Tip], published: Publication) -> list[str]:
    """Push the publication, if the branch does not have it or its time is some minutes old. Gives notes."""
    tip = tips.get(BRANCH)
    if tip is not None and is_recent(GitPublication(private, tip).read_head(), published):
        return []
    tree = private.write_tree(published.folder, [HEAD, *(f"{OBJECTS}/{name}" for name in published.objects)])
    ran = private.push(private.commit(tree, "", "Memory"), BRANCH, is_forced=True)
    if ran.ok:
        private.tidy()
        is_purge = private.forget_earlier(published.head.purged)
        return [_REMAINS] if is_purge and tip is not None else []
    return [f"memory could not be pushed, so the copies on other machines stay as they are: {ran.last_words}"]


def forget_received(private: Private, publication: GitPublication) -> None:
    """Remove the commits of earlier states here, if something in them became private since."""
    with suppress(TruekeepError):
        private.forget_earlier(parse_head(publication.read_head() or b"").purged)
