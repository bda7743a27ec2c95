"""Repositories: the only module that runs git.

Every call has a fixed argument list, no shell, a time limit, and nothing of the repository's configuration that could
run a program. A repository that git will not read is still a folder with a name.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.file_io import read_head

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 10.0
_SHORTEST_TOKEN = 16  # characters
_AT_ONCE = 40  # questions that are sent before the answers are read,
_PORTION = 4096  # and their bytes: so few that the smallest pipe takes them at once
_OWN_FILES = ("HEAD", "index", "config.worktree")  # what git opens in a .git, and in a worktree's own folder,
_COMMON_FILES = (  # and in the one that worktrees share
    *("config", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts"),
    *("objects/info/alternates", "objects/info/commit-graph", "objects/info/packs"),
)
_PAUSE = 60.0  # seconds in which a repository that made git hang is not asked again
BUDGET = 900.0  # seconds that a process waits for git in one repository: a first look at a large one takes minutes,
_WINDOW = 3600.0  # within so many seconds: a server lives for weeks
_TYPES = (b"blob", b"tree", b"commit", b"tag")
_SAFE = (
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
)  # fmt: skip


def find_top(folder: Path) -> Path | None:
    """The root of the repository that a folder is in: the nearest folder with a .git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def repository_name(root: Path) -> str:
    """How a repository is called in provenance: host/owner/name of its origin, else the folder's own name."""
    return remote_name(root) or root.name


def remote_name(root: Path) -> str:
    """host/owner/name of a repository's origin; empty without one."""
    top = find_top(root) or root
    remote = _plain_origin(top)
    if remote is None:
        remote = _git(top, "config", "--local", "--get", "remote.origin.url")
    return parse_remote(remote) if remote else ""


def _plain_origin(top: Path) -> str | None:
    """The origin in a configuration as git itself writes it; None for anything that git had better read."""
    from truekeep.text.encoding import decode_text

    raw = read_head(top / ".git" / "config", 200_000, follow=True)
    text = decode_text(raw)
    if not text or any(mark in text for mark in "\\;#") or len(raw) == 200_000:
        return None
    section = ""
    found = ""
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith("["):
            if not bare.endswith("]"):
                return None
            section = bare
        elif section.lower().startswith("[remote") and section.partition(" ")[2].strip() == '"origin"]':
            key, equals, value = bare.partition("=")
            if key.strip().lower() == "url" and equals:
                if '"' in value:
                    return None
                found = value.strip()  # git, too, takes the last one
    return found


def odd_file(root: str) -> str:
    """The first file that git would open in a repository and that is no regular file: git waits for a FIFO for ever.

    Empty where all of them can be read, or are missing. Symlinks are followed, as git does.
    """
    own = os.path.join(root, ".git")
    if _is_odd(own):
        return own
    if os.path.isfile(own):  # a worktree or a submodule
        told = read_head(own, 4096, follow=True).removeprefix(b"gitdir:").strip()
        own = os.path.join(root, os.fsdecode(told))
    if _is_odd(shared := os.path.join(own, "commondir")):
        return shared
    common = os.path.join(own, os.fsdecode(read_head(shared, 4096, follow=True).strip()))
    for folder, names in ((own, _OWN_FILES), (common, _COMMON_FILES)):
        for name in names:
            if _is_odd(path := os.path.join(folder, name)):
                return os.path.normpath(path)
    head = read_head(os.path.join(own, "HEAD"), 4096, follow=True)
    if head.startswith(b"ref:"):
        branch = os.fsdecode(head.removeprefix(b"ref:").strip())
        for folder in (own, common):
            if _is_odd(path := os.path.join(folder, branch)):
                return os.path.normpath(path)
    return ""


def _is_odd(path: str) -> bool:
    """Whether something is there that git may wait for: neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def odd_file_failure(root: str) -> GitFailed | None:
    """Why git is not run in a repository: one of its files is a FIFO, a socket or a device."""
    path = odd_file(root)
    if not path:
        return None
    return GitFailed(f"{path} is not a regular file", "put a regular file there, or clone the repository anew")


def parse_remote(url: str) -> str:
    """A remote as host/owner/name, without user, password, port or scheme. Empty for a path on this machine."""
    url = url.strip()
    scheme, separator, rest = url.partition("://")
    if not separator:
        if url.startswith(("/", ".", "~")) or ":" not in url:
            return ""
        rest = url
    elif scheme.lower() == "file":
        return ""
    # git takes the last @ before the path for the end of user and password, and so must we: a password may hold one.
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, colon, tail = authority.partition(":")
    if not separator and colon:
        path = f"{tail}{slash}{path}"  # host:path, as ssh writes it; with a scheme, what follows the colon is a port
    path = path.partition("?")[0].partition("#")[0].strip("/").removesuffix(".git")
    return _without_token(f"{host.lower()}/{path}") if host and path else ""


def _without_token(name: str) -> str:
    """A repository's name is written down and shown; some servers take a token as a part of the path."""
    parts = name.split("/")
    if not any(len(part) >= _SHORTEST_TOKEN and any(map(str.isdigit, part)) for part in parts):
        return name
    from truekeep.text.secrets.scanner import find_secrets  # here, and not above: start-up time

    return "/".join("withheld" if find_secrets(part) else part for part in parts)


def git_version() -> str:
    """The version of the git that is found; empty when there is none."""
    return _git(Path("/"), "--version").removeprefix("git version ")


def head_commit(root: Path) -> str:
    """The commit that is checked out; empty where there is none."""
    return _git(root, "rev-parse", "--verify", "--quiet", "HEAD")


def shares_history(one: Path, other: Path) -> bool:
    """Whether two checkouts are of one repository: a branch or tag of one has a first commit of the other.

    The first commits of a shallow clone are those where it was cut; a whole clone has them, too, but two shallow ones
    that were cut at different commits share none. Objects alone prove nothing: any repository can borrow those of
    another (`objects/info/alternates`), as it can its whole `.git`.
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
    """Whether HEAD, a branch or a tag of a repository leads to a commit."""
    try:
        if not any(kind for _, _, kind in git.infos([f"{commit}^{{commit}}"])):
            return False
        if git.lines("for-each-ref", "--count=1", f"--contains={commit}", "--format=%(refname)"):
            return True
        return git.lines("merge-base", "HEAD", commit) == [commit]  # detached
    except GitFailed:
        return False


def _has_own_git_dir(root: Path) -> bool:
    """Whether a checkout has a `.git` of its own: a folder, or a file (worktree, submodule) whose folder names it."""
    own = os.path.join(root, ".git")
    folder = own
    if os.path.isfile(own):
        told = read_head(Path(own), 4096, follow=True).removeprefix(b"gitdir:").strip()
        folder = os.path.join(root, os.fsdecode(told))
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


def _git(root: Path, *arguments: str) -> str:
    """What git prints; empty when it fails, is missing or takes too long."""
    try:
        return Git(str(root)).run(*arguments).decode("utf-8", "replace").strip()
    except GitFailed:
        return ""


class GitFailed(Exception):
    """Git could not answer. `why` is a sentence for people, `hint` what to do about it."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.why} ({self.hint})" if self.hint else self.why


_hung: dict[str, tuple[float, str]] = {}  # repositories that made git hang: when, and at what
_waited: dict[str, tuple[float, float]] = {}  # since when, and how long, this process has waited for git in each


def _time_left(root: str) -> float:
    """How long git may still take in a repository."""
    since, waited = _waited.get(root, (0.0, 0.0))
    return BUDGET - waited if time.monotonic() - since < _WINDOW else BUDGET


def _note_waiting(root: str, begun: float) -> None:
    now = time.monotonic()
    since, waited = _waited.get(root, (begun, 0.0))
    _waited[root] = (since, waited + now - begun) if now - since < _WINDOW else (begun, now - begun)


class Git:
    """Read-only questions to one repository. Nothing of its configuration can run a program, and nothing is fetched.

    Commands that compare the work tree (status, diff, ls-files -m) are not used at all: they run the clean filters
    that a repository's own configuration names.
    """

    def __init__(self, root: str, *, timeout: float = TIMEOUT) -> None:
        self.root = root
        self.timeout = timeout
        self._processes: dict[str, _Answers] = {}
        self._stuck = ""  # why no object is asked for any more
        self._borrowing: dict[str, str] = {}

    def run(self, *arguments: str, given: bytes | None = None, timeout: float | None = None) -> bytes:
        """What git prints. Untrusted words go behind `--` or through `given`, never in front."""
        printed, failure = self.try_run(*arguments, given=given, timeout=timeout)
        if failure is not None:
            raise failure
        return printed

    def try_run(
        self, *arguments: str, given: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, GitFailed | None]:
        """What git printed, and why it stopped, if it did: a log of a damaged clone is good as far as it goes."""
        import subprocess

        self._check()
        limit = min(timeout or self.timeout, _time_left(self.root))
        begun = time.monotonic()
        try:
            done = subprocess.run(
                self.command(*arguments),
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                env=self._environment(),
                timeout=limit,
                check=False,
            )
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", "install git") from error
        except subprocess.TimeoutExpired as error:
            raise self._took_too_long(arguments[0], limit) from error
        except (OSError, ValueError) as error:
            raise GitFailed(f"git {arguments[0]} could not run: {error}") from error
        finally:
            _note_waiting(self.root, begun)
        if done.returncode != 0:
            return done.stdout, self._failure(arguments[0], done.stderr.decode("utf-8", "replace"), done.returncode)
        return done.stdout, None

    def _check(self) -> None:
        """Raise GitFailed where git would wait for ever, or did so a moment ago."""
        if (failure := odd_file_failure(self.root)) is not None:
            raise failure
        if _time_left(self.root) <= 0:
            raise GitFailed(f"not checked: git took longer than {BUDGET / 60:.0f} minutes there")
        at, why = _hung.get(self.root, (0.0, ""))
        if why and time.monotonic() - at < _PAUSE:
            raise GitFailed(why)

    def _took_too_long(self, verb: str, limit: float) -> GitFailed:
        why = f"git {verb} took longer than {limit:.0f} s"
        if limit <= TIMEOUT:  # a walk through history, which gets more time, may be slow in a sound repository
            _hung[self.root] = (time.monotonic(), why)
        return GitFailed(why)

    def command(self, *arguments: str) -> list[str]:
        # check-ignore takes names, not patterns, and refuses to be told so.
        literal = [] if arguments[0] == "check-ignore" else ["--literal-pathspecs"]
        return ["git", "-C", self.root, *_SAFE, *literal, *arguments]

    def lines(self, *arguments: str, timeout: float | None = None) -> list[str]:
        return self.run(*arguments, timeout=timeout).decode("utf-8", "surrogateescape").splitlines()

    def infos(self, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Name, object id and type of each; two empty texts for what is missing, `ambiguous` for what is not one thing.

        A name is an id, `commit:path` or `id^{commit}`. What has a newline in it cannot be asked for, and is missing.
        """
        for name, head, _ in self._ask("--batch-check", names):
            parts = head.split()
            if _is_found(parts):
                yield name, parts[0].decode(), parts[1].decode()
            else:
                yield name, "", "ambiguous" if head.rstrip().endswith(b"ambiguous") else ""

    def blobs(self, names: Sequence[str], *, limit: int) -> Iterator[tuple[str, bytes | None]]:
        """Blobs by name, in order, as they come; None for one that is missing, no blob, or larger than the limit."""
        for name, _, data in self._ask("--batch", names, limit=limit):
            yield name, data

    def _ask(self, how: str, names: Sequence[str], limit: int = 0) -> Iterator[tuple[str, bytes, bytes | None]]:
        """Ask one long-lived cat-file, some names at a time: so few that neither side waits for a full pipe."""
        for some in _portions(names):
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
                self._stuck = failure.why  # and would again
                raise failure from error
            except OSError as error:
                self.close()
                raise GitFailed(f"git cat-file failed: {error}") from error
            except GitFailed:
                self.close()
                raise
            except GeneratorExit:
                if unread:  # and nobody reads it: nothing that comes next would be the answer to its question
                    self.close()
                raise

    def _start(self, how: str) -> _Answers:
        import subprocess

        self._check()
        process = subprocess.Popen(
            self.command("cat-file", how),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=self._environment() | self._borrowing,
        )
        return _Answers(process, self.timeout, self.root)

    def borrow(self, objects: str) -> None:
        """Read objects from here on through an empty repository of our own, which borrows this folder of them.

        In a partial clone git does not say that an object is missing: it tries to fetch it, and dies. The borrower has
        no configuration, so it knows of nobody to fetch from, and what is missing is missing.
        """
        import shutil
        import tempfile
        import weakref

        if self._borrowing:
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
        self._borrowing = {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": objects}

    def close(self) -> None:
        """End the processes that wait for questions."""
        for answers in self._processes.values():
            answers.close()
        self._processes.clear()

    def __del__(self) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        from truekeep.core.child_process import absolute_path  # here, and not above: start-up time

        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        return environment | {
            "PATH": absolute_path(environment.get("PATH") or os.defpath),
            "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(self.root)),  # this repository, none around it
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",  # says more than protocol.allow, which a repository can overrule
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


class _Answers:
    """What a cat-file prints, read with a time limit: a repository can make git wait for ever."""

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
        """The object that a line announces; None when it is missing, no blob, or larger than the limit."""
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
    """Whether a line of cat-file, in its parts, announces an object."""
    return len(parts) == 3 and parts[2].isdigit() and parts[1] in _TYPES


def _portions(names: Sequence[str]) -> Iterator[list[tuple[str, bytes]]]:
    """Names with the lines that ask for them, some at a time."""
    some: list[tuple[str, bytes]] = []
    size = 0
    for name in names:
        question = _question(name)
        if len(some) == _AT_ONCE or size + len(question) > _PORTION:
            yield some
            some, size = [], 0
        some.append((name, question))
        size += len(question)
    if some:
        yield some


def _question(name: str) -> bytes:
    """The line that asks for a name. Cat-file ends a name at a line break, and dies of a path that leads upwards."""
    if name and "\n" not in name and "\0" not in name and ":../" not in name and ":./" not in name:
        with suppress(UnicodeEncodeError):
            question = name.encode("utf-8", "surrogateescape") + b"\n"
            if len(question) <= _PORTION:
                return question
    return b"?\n"
