"""What the tests of verify share: repositories with a history of chosen days, and ways to hold a text against them.

A history is written by one `git fast-import`, whatever its length, so that a module can afford several.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from truekeep.verify.cache import FactsCache
from truekeep.verify.checkouts import find_checkouts
from truekeep.verify.options import Options
from truekeep.verify.results import CheckedMemory, LineOrigin, MemoryText, end_of_day
from truekeep.verify.verdict import Verdict
from truekeep.verify.verifier import Verifier

NAME = "github.com/me/app"
WHO = "Ada <ada@example.org>"


class History:
    """Commits, each with its day; written into a real repository at the end."""

    def __init__(self) -> None:
        self._stream: list[bytes] = []
        self._marks = 0
        self._tips: dict[str, int] = {}

    def commit(
        self,
        day: str,
        files: Mapping[str, str | bytes | None] | None = None,
        *,
        renames: Mapping[str, str] | None = None,
        branch: str = "main",
        start: int = 0,
        message: str = "",
        at: str = "12:00",
    ) -> int:
        """Add a commit at noon: renames first (folders, too), then contents; None deletes. Gives its number."""
        self._marks += 1
        when = int(datetime.fromisoformat(f"{day}T{at}:00+00:00").timestamp())
        said = (message or f"as of {day}").encode()
        lines = [b"commit refs/heads/%s" % branch.encode(), b"mark :%d" % self._marks]
        lines += [b"author %s %d +0000" % (WHO.encode(), when), b"committer %s %d +0000" % (WHO.encode(), when)]
        lines += [b"data %d" % len(said), said]
        if parent := start or self._tips.get(branch, 0):
            lines.append(b"from :%d" % parent)
        lines += [b'R "%s" "%s"' % (old.encode(), new.encode()) for old, new in (renames or {}).items()]
        for path, content in (files or {}).items():
            if content is None:
                lines.append(b'D "%s"' % path.encode())
                continue
            data = content.encode() if isinstance(content, str) else content
            lines += [b'M 100644 inline "%s"' % path.encode(), b"data %d" % len(data), data]
        self._stream += [*lines, b""]
        self._tips[branch] = self._marks
        return self._marks

    def write(self, root: Path, *, remote: str = f"https://{NAME}.git", drop: Sequence[str] = ()) -> Repo:
        """Make the repository and check out main; the branches in `drop` are deleted, their commits stay."""
        root.mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q", "-b", "main")
        if remote:
            git(root, "remote", "add", "origin", remote)
        marks = root / ".git" / "marks"
        git(root, "fast-import", "--quiet", f"--export-marks={marks}", given=b"\n".join(self._stream) + b"\n")
        for branch in drop:
            git(root, "update-ref", "-d", f"refs/heads/{branch}")
        git(root, "reset", "-q", "--hard", "main")
        settle(root)
        rows = (line.split() for line in marks.read_text().splitlines())
        return Repo(root, {int(mark[1:]): oid for mark, oid in rows})


class Repo:
    """A checkout and the ids of its commits, by the numbers that they were given when they were written."""

    def __init__(self, root: Path, commits: Mapping[int, str]) -> None:
        self.root, self.commits = root, commits
        self._verifier: Verifier | None = None

    @property
    def verifier(self) -> Verifier:
        """Looks at the checkout once, for many questions: only for repositories that no test changes."""
        if self._verifier is None:
            self._verifier = verifier_for([self.root], reuse=True)
        return self._verifier

    def check(self, text: str, *, written: str = "", path: str = "", keep: bool = False) -> CheckedMemory:
        """Hold a text against the checkout, as one that was written on a day."""
        return check(self.verifier, self.root, text, written=written, path=path, keep=keep)

    def told(self, text: str, *, written: str = "") -> dict[str, Verdict]:
        """Every verdict by the words of its claim."""
        return {verdict.claim.text: verdict for verdict in self.check(text, written=written).verdicts}

    def ask(self, text: str, *, written: str = "") -> Verdict:
        """The verdict on a text that makes one claim."""
        (verdict,) = self.check(text, written=written).verdicts
        return verdict


def verifier_for(
    roots: Sequence[Path], *, store: FactsCache | None = None, reuse: bool = False, options: Options | None = None
) -> Verifier:
    store = store or FactsCache(":memory:")
    return Verifier(store, find_checkouts(roots, store), options=options or Options(system=False), reuse=reuse)


def check(
    verifier: Verifier, root: Path, text: str, *, written: str = "", path: str = "", keep: bool = False
) -> CheckedMemory:
    memory = MemoryText(path, text, LineOrigin(NAME, seconds(written)))
    (checked,) = verifier.check([memory], root=str(root), keep=keep)
    return checked


def seconds(day: str) -> int | None:
    """The end of a day, as memories count; None for no day."""
    return end_of_day(date.fromisoformat(day)) if day else None


def git(root: Path, *arguments: str, given: bytes | None = None, day: str = "2026-07-01") -> str:
    """Run git as a person would, on a chosen day."""
    when = f"{day}T12:00:00+00:00"
    known = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        known |= {f"GIT_{role}_NAME": "Ada", f"GIT_{role}_EMAIL": "ada@example.org"}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], input=given, capture_output=True, check=True, env={**os.environ, **known}
    )
    return done.stdout.decode().strip()


def settle(root: Path) -> None:
    """Make every file old: what changed in the last two seconds is never believed at the next look."""
    then = datetime(2026, 7, 1, tzinfo=UTC).timestamp()
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            if not os.path.islink(os.path.join(folder, name)):
                os.utime(os.path.join(folder, name), (then, then))
