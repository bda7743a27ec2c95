"""Runs git; no other module does.

Every call has a fixed argument list, a time limit, no shell, and no repository configuration that could run a program.
A repository that git refuses to read still has a name: its folder's.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from truekeep.core.child_process import absolute_path, run_program
from truekeep.core.file_io import read_head
from truekeep.core.repository import GitFailed, irregular_file_failure

TIMEOUT = 10.0
MAX_OUTPUT = 1 << 30
_MAX_QUESTIONS_PER_BATCH = 40  # sent to cat-file before the answers are read
_MAX_BATCH_BYTES = 4096  # fits into the smallest pipe
_HUNG_PAUSE_SECONDS = 60.0  # before git runs again in a repository where it hung
BUDGET_SECONDS = 900.0  # that git may take in one repository within _BUDGET_WINDOW_SECONDS; a first scan takes minutes
_BUDGET_WINDOW_SECONDS = 3600.0
_OBJECT_TYPES = (b"blob", b"tree", b"commit", b"tag")
_SAFE_OPTIONS = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.allow=never",
    "-c", "log.showSignature=false",
    "-c", "core.untrackedCache=false",
    "-c", "diff.external=",
    "-c", "color.ui=false",
    "-c", "core.quotePath=false",
    "-c", "i18n.logOutputEncoding=UTF-8",
    # Git maps whole packs into memory and keeps 96 MB of deltas; with these it takes a fifth, in the same time.
    "-c", "core.packedGitWindowSize=1m",
    "-c", "core.packedGitLimit=32m",
    "-c", "core.deltaBaseCacheLimit=24m",
)  # fmt: skip


def git_version() -> str:
    """The installed git's version; "" if git is missing."""
    return _git(Path("/"), "--version").removeprefix("git version ")


def head_commit(root: Path) -> str:
    """The checked-out commit; "" if there is none."""
    return _git(root, "rev-parse", "--verify", "--quiet", "HEAD")


def shares_history(one: Path, other: Path) -> bool:
    """True if two checkouts belong to one repository: a branch or tag of one contains a root commit of the other.

    The root commits of a shallow clone are those where it was cut. A full clone contains them, but two shallow clones
    cut at different commits share none. Objects alone prove nothing: any repository can borrow those of another
    (`objects/info/alternates`), or its whole `.git`.
    """
    if not (_has_own_git_dir(one) and _has_own_git_dir(other)):
        return False
    for here, there in ((one, other), (other, one)):
        try:
            firsts = Git(str(here)).lines("rev-list", "--max-parents=0", "HEAD", "--")
        except GitFailed:
            continue
        if any(_has_commit(Git(str(there)), first) for first in firsts[:20]):
            return True
    return False


def _has_commit(git: Git, commit: str) -> bool:
    """True if a commit is reachable from HEAD, a branch or a tag."""
    try:
        if not any(kind for _, _, kind in git.infos([f"{commit}^{{commit}}"])):
            return False
        if git.lines("for-each-ref", "--count=1", f"--contains={commit}", "--format=%(refname)"):
            return True
        return git.lines("merge-base", "HEAD", commit) == [commit]  # detached
    except GitFailed:
        return False


def _has_own_git_dir(root: Path) -> bool:
    """True if a checkout has its own `.git`: a folder, or a file (worktree, submodule) whose target points back."""
    own = os.path.join(root, ".git")
    folder = own
    if os.path.isfile(own):
        git_dir = read_head(Path(own), 4096, follow=True).removeprefix(b"gitdir:").strip()
        folder = os.path.join(root, os.fsdecode(git_dir))
    shared = read_head(Path(folder, "commondir"), 4096, follow=True).strip()
    if shared:  # a worktree: its repository has a folder for it, which names it
        common = os.path.realpath(os.path.join(folder, os.fsdecode(shared)))
        back = os.fsdecode(read_head(Path(folder, "gitdir"), 4096, follow=True).strip())
        is_noted = os.path.dirname(os.path.realpath(folder)) == os.path.join(common, "worktrees")
        return is_noted and os.path.realpath(os.path.join(folder, back)) == os.path.realpath(own)
    if folder == own:
        return not os.path.islink(own)
    worktree = _git(root, "config", "--get", "core.worktree")  # a submodule
    return bool(worktree) and os.path.realpath(os.path.join(folder, worktree)) == os.path.realpath(root)


def read_origin(root: Path) -> str:
    """The URL of the repository's origin; "" without one."""
    return _git(root, "config", "--local", "--get", "remote.origin.url")


def _git(root: Path, *arguments: str) -> str:
    """Git's output; "" if it fails, is missing or takes too long."""
    try:
        return Git(str(root)).run(*arguments).decode("utf-8", "replace").strip()
    except GitFailed:
        return ""


_hung_repositories: dict[str, tuple[float, str]] = {}  # by root: when git hung, and the error
_time_waited: dict[str, tuple[float, float]] = {}  # by root: start of the budget window, and seconds waited for git


def _time_left(root: str) -> float:
    """Seconds that git may still take in a repository."""
    since, waited = _time_waited.get(root, (0.0, 0.0))
    return BUDGET_SECONDS - waited if time.monotonic() - since < _BUDGET_WINDOW_SECONDS else BUDGET_SECONDS


def _note_waiting(root: str, begun: float) -> None:
    now = time.monotonic()
    since, waited = _time_waited.get(root, (begun, 0.0))
    _time_waited[root] = (since, waited + now - begun) if now - since < _BUDGET_WINDOW_SECONDS else (begun, now - begun)


class Git:
    """Read-only access to one repository. Its configuration cannot run a program, and nothing is fetched.

    Commands that compare the work tree (status, diff, ls-files -m) are not used: they run clean filters from the
    repository's configuration.
    """

    def __init__(self, root: str, *, timeout: float = TIMEOUT) -> None:
        self.root = root
        self.timeout = timeout
        self._processes: dict[str, _CatFile] = {}
        self._stuck = ""  # the error after which cat-file is not used again
        self._borrower_environment: dict[str, str] = {}

    def run(self, *arguments: str, given: bytes | None = None, timeout: float | None = None) -> bytes:
        """Git's output. Pass untrusted words behind `--` or through `given`, never in front."""
        printed, failure = self.try_run(*arguments, given=given, timeout=timeout)
        if failure is not None:
            raise failure
        return printed

    def try_run(
        self, *arguments: str, given: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, GitFailed | None]:
        """Git's output, and the failure if there was one: the log of a damaged clone is usable up to the damage."""
        self._check()
        limit = min(timeout or self.timeout, _time_left(self.root))
        begun = time.monotonic()
        try:
            done = run_program(
                self.command(*arguments),
                timeout=limit,
                max_output=MAX_OUTPUT,
                env=self._environment(),
                given=given,
            )
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", "install git") from error
        except (OSError, ValueError) as error:
            raise GitFailed(f"git {arguments[0]} could not run: {error}") from error
        finally:
            _note_waiting(self.root, begun)
        if done.stopped == "timeout":
            raise self._took_too_long(arguments[0], limit)
        if done.stopped == "output":
            raise GitFailed(f"git {arguments[0]} printed more than {MAX_OUTPUT >> 20} MB")
        if done.code != 0:
            return done.out, self._failure(arguments[0], done.err.decode("utf-8", "replace"), done.code)
        return done.out, None

    def _check(self) -> None:
        """Raise GitFailed if git would block, or recently did."""
        if (failure := irregular_file_failure(self.root)) is not None:
            raise failure
        if _time_left(self.root) <= 0:
            raise GitFailed(f"not checked: git took longer than {BUDGET_SECONDS / 60:.0f} minutes there")
        at, why = _hung_repositories.get(self.root, (0.0, ""))
        if why and time.monotonic() - at < _HUNG_PAUSE_SECONDS:
            raise GitFailed(why)

    def _took_too_long(self, verb: str, limit: float) -> GitFailed:
        why = f"git {verb} took longer than {limit:.0f} s"
        if limit <= TIMEOUT:  # walking history gets more time, and may be slow in a healthy repository
            _hung_repositories[self.root] = (time.monotonic(), why)
        return GitFailed(why)

    def command(self, *arguments: str) -> list[str]:
        # check-ignore always takes names, not patterns, and rejects the option.
        literal = [] if arguments[0] == "check-ignore" else ["--literal-pathspecs"]
        return ["git", "-C", self.root, *_SAFE_OPTIONS, *literal, *arguments]

    def lines(self, *arguments: str, timeout: float | None = None) -> list[str]:
        return self.run(*arguments, timeout=timeout).decode("utf-8", "surrogateescape").splitlines()

    def infos(self, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Name, object id and type of each name. Id and type are "" if it is missing; the type may be "ambiguous".

        A name is an id, `commit:path` or `id^{commit}`. A name with a newline counts as missing.
        """
        for name, head, _ in self._ask("--batch-check", names):
            parts = head.split()
            if _is_found(parts):
                yield name, parts[0].decode(), parts[1].decode()
            else:
                yield name, "", "ambiguous" if head.rstrip().endswith(b"ambiguous") else ""

    def blobs(self, names: Sequence[str], *, limit: int) -> Iterator[tuple[str, bytes | None]]:
        """Blobs by name, in order; None if missing, not a blob, or larger than the limit."""
        for name, _, data in self._ask("--batch", names, limit=limit):
            yield name, data

    def _ask(self, how: str, names: Sequence[str], limit: int = 0) -> Iterator[tuple[str, bytes, bytes | None]]:
        """Ask one long-lived cat-file, in batches so small that neither side blocks on a full pipe."""
        for some in _batches(names):
            if self._stuck:
                raise GitFailed(self._stuck)
            if _time_left(self.root) <= 0:
                self._check()
            try:
                answers = self._processes.get(how)
                if answers is None:
                    answers = self._processes[how] = self._start(how)
                answers.ask(b"".join(question for _, question in some))
                unread = len(some)
                for name, _ in some:
                    unread -= 1
                    head = answers.line()
                    yield name, head, answers.blob(head, limit) if how == "--batch" else None
            except FileNotFoundError as error:
                raise GitFailed("git is not installed", "install git") from error
            except TimeoutError as error:
                self.close()
                failure = self._took_too_long("cat-file", self.timeout)
                self._stuck = failure.why
                raise failure from error
            except OSError as error:
                self.close()
                raise GitFailed(f"git cat-file failed: {error}") from error
            except GitFailed:
                self.close()
                raise
            except GeneratorExit:
                if unread:  # later answers would not match their questions
                    self.close()
                raise

    def _start(self, how: str) -> _CatFile:
        self._check()
        process = subprocess.Popen(
            self.command("cat-file", how),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=self._environment() | self._borrower_environment,
        )
        return _CatFile(process, self.timeout, self.root)

    def borrow(self, objects: str) -> None:
        """From now on, read objects through an empty temporary repository that borrows this object folder.

        In a partial clone, git does not report a missing object: it tries to fetch it, and dies. The temporary
        repository has no remote to fetch from, so a missing object is reported as missing.
        """
        if self._borrower_environment:
            return
        try:
            folder = tempfile.mkdtemp(prefix="truekeep-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            os.mkdir(os.path.join(folder, "refs"))
            os.mkdir(os.path.join(folder, "objects"))
            with open(os.path.join(folder, "HEAD"), "w") as file:
                file.write("ref: refs/heads/none\n")
        except OSError as error:
            raise GitFailed(f"no folder for temporary files: {error.strerror}") from error
        self._borrower_environment = {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": objects}

    def close(self) -> None:
        """End the cat-file processes."""
        for answers in self._processes.values():
            answers.close()
        self._processes.clear()

    def __del__(self) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        return environment | {
            "PATH": absolute_path(environment.get("PATH") or os.defpath),
            "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(self.root)),  # do not search parent folders
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",  # unlike protocol.allow, a repository cannot override it
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_PAGER": "cat",
            "LC_ALL": "C",
        }

    def _failure(self, verb: str, said: str, code: int) -> GitFailed:
        lowered = said.lower()
        first = next((line.strip() for line in said.splitlines() if line.strip()), f"exit {code}")
        if "dubious ownership" in lowered:
            return GitFailed(
                "git refuses it: another user owns the folder (dubious ownership)",
                f"if you trust it: git config --global --add safe.directory {self.root}",
            )
        if "not a git repository" in lowered:
            return GitFailed("not a git repository")
        if "bad config" in lowered:
            return GitFailed(f"git cannot read its configuration: {first[:160]}")
        if "unable to read" in lowered or "missing" in lowered or "promisor" in lowered or "could not fetch" in lowered:
            return GitFailed(f"git {verb}: objects are missing here (a partial or damaged clone): {first[:120]}")
        return GitFailed(f"git {verb} failed: {first[:160]}")


class _CatFile:
    """A running `git cat-file`, read with a time limit: a repository can make git block forever."""

    def __init__(self, process: subprocess.Popen[bytes], timeout: float, root: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._timeout, self._root = process, timeout, root
        self._questions, self._stream = process.stdin, process.stdout
        self._poll = select.poll()
        self._poll.register(self._stream, select.POLLIN)
        self._read = bytearray()

    def ask(self, questions: bytes) -> None:
        self._questions.write(questions)

    def line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            self._more()
        return self._take(end + 1)

    def blob(self, head: bytes, limit: int) -> bytes | None:
        """The object that a header line announces; None if missing, not a blob, or larger than the limit."""
        parts = head.split()
        if not _is_found(parts):
            return None
        size = int(parts[2]) + 1
        if parts[1] == b"blob" and size <= limit + 1:
            while len(self._read) < size:
                self._more()
            return self._take(size)[:-1]
        while size:
            if not self._read:
                self._more()
            size -= len(self._take(min(size, len(self._read))))
        return None

    def _take(self, size: int) -> bytes:
        taken = bytes(memoryview(self._read)[:size])
        del self._read[:size]
        return taken

    def _more(self) -> None:
        begun = time.monotonic()
        is_ready = self._poll.poll(self._timeout * 1000)
        _note_waiting(self._root, begun)
        if not is_ready:
            raise TimeoutError
        piece = os.read(self._stream.fileno(), 1 << 16)
        if not piece:
            raise GitFailed("git cat-file ended early: the repository cannot be read")
        self._read += piece

    def close(self) -> None:
        for stream in (self._questions, self._stream):
            with suppress(OSError):
                stream.close()
        self._process.kill()
        self._process.wait()


def _is_found(parts: Sequence[bytes]) -> bool:
    """True if a header line of cat-file, split at spaces, announces an object."""
    return len(parts) == 3 and parts[2].isdigit() and parts[1] in _OBJECT_TYPES


def _batches(names: Sequence[str]) -> Iterator[list[tuple[str, bytes]]]:
    """Names with their question lines, in batches."""
    some: list[tuple[str, bytes]] = []
    size = 0
    for name in names:
        question = _question(name)
        if len(some) == _MAX_QUESTIONS_PER_BATCH or size + len(question) > _MAX_BATCH_BYTES:
            yield some
            some, size = [], 0
        some.append((name, question))
        size += len(question)
    if some:
        yield some


def _question(name: str) -> bytes:
    """The input line for a name. Names that cat-file cannot take, such as paths leading upwards, become "?"."""
    if name and "\n" not in name and "\0" not in name and ":../" not in name and ":./" not in name:
        with suppress(UnicodeEncodeError):
            question = name.encode("utf-8", "surrogateescape") + b"\n"
            if len(question) <= _MAX_BATCH_BYTES:
                return question
    return b"?\n"
