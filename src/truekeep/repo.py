"""Repositories: the only module that runs git.

Every call has a fixed argument list, no shell, a time limit, and nothing of the repository's configuration that could
run a program. A repository that git will not read is still a folder with a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 10.0
_AT_ONCE = 40  # questions that are sent before the answers are read
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
)  # fmt: skip


def find_top(folder: Path) -> Path | None:
    """The root of the repository that a folder is in: the nearest folder with a .git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def repository_name(root: Path) -> str:
    """How a repository is called in provenance: host/owner/name of its origin, else the folder's own name."""
    remote = _git(root, "config", "--local", "--get", "remote.origin.url")
    return (parse_remote(remote) if remote else "") or root.name


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
    return f"{host.lower()}/{path}" if host and path else ""


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


class Git:
    """Read-only questions to one repository. Nothing of its configuration can run a program, and nothing is fetched.

    Commands that compare the work tree (status, diff, ls-files -m) are not used at all: they run the clean filters
    that a repository's own configuration names.
    """

    def __init__(self, root: str, *, timeout: float = TIMEOUT) -> None:
        self.root = root
        self.timeout = timeout
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

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

        limit = timeout or self.timeout
        try:
            done = subprocess.run(
                self.command(*arguments),
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                env=_environment(),
                timeout=limit,
                check=False,
            )
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", "install git") from error
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {arguments[0]} took longer than {limit:.0f} s") from error
        except (OSError, ValueError) as error:
            raise GitFailed(f"git {arguments[0]} could not run: {error}") from error
        if done.returncode != 0:
            return done.stdout, _failure(arguments[0], done.stderr.decode("utf-8", "replace"), done.returncode)
        return done.stdout, None

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
        for name, head in self._ask("--batch-check", names):
            parts = head.split()
            if len(parts) == 3 and parts[2].isdigit() and parts[1] in _TYPES:
                yield name, parts[0].decode(), parts[1].decode()
            else:
                yield name, "", "ambiguous" if head.rstrip().endswith(b"ambiguous") else ""

    def blobs(self, names: Sequence[str], *, limit: int) -> Iterator[tuple[str, bytes | None]]:
        """Blobs by name, in order, as they come; None for one that is missing, no blob, or larger than the limit."""
        for name, head in self._ask("--batch", names):
            parts = head.split()
            if len(parts) != 3 or not parts[2].isdigit() or parts[1] not in _TYPES:
                yield name, None
                continue
            size = int(parts[2])
            stream = self._processes["--batch"].stdout
            assert stream is not None
            if size > limit:
                _discard(stream, size + 1)
                yield name, None
            else:
                data = stream.read(size + 1)[:-1]
                yield name, data if parts[1] == b"blob" else None

    def _ask(self, how: str, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Ask one long-lived cat-file, some names at a time: so few that neither side waits for a full pipe."""
        import subprocess

        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            lines = [name if _is_askable(name) else "?" for name in some]
            process = self._processes.get(how)
            try:
                if process is None or process.poll() is not None:
                    process = self._processes[how] = subprocess.Popen(
                        self.command("cat-file", how),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env=_environment(),
                    )
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
                process.stdin.flush()
                for name in some:
                    head = process.stdout.readline()
                    if not head:
                        raise GitFailed("git cat-file ended early: the repository cannot be read")
                    yield name, head
            except FileNotFoundError as error:
                raise GitFailed("git is not installed", "install git") from error
            except OSError as error:
                raise GitFailed(f"git cat-file failed: {error}") from error
            except GeneratorExit:
                self.close()  # nobody reads the rest, so nothing that comes next would be the answer to its question
                raise

    def close(self) -> None:
        """End the processes that wait for questions."""
        for process in self._processes.values():
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.kill()
            process.wait()
        self._processes.clear()

    def __del__(self) -> None:
        self.close()


def _is_askable(name: str) -> bool:
    """Whether a name can be put to cat-file: it ends at a line break, and dies of a path that leads upwards."""
    return (
        bool(name) and len(name) < 4_000 and not {"\n", "\0"} & set(name) and ":../" not in name and ":./" not in name
    )


def _discard(stream: IO[bytes], size: int) -> None:
    while size > 0 and (piece := stream.read(min(size, 1 << 20))):
        size -= len(piece)


def _environment() -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return environment | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }


def _failure(verb: str, said: str, code: int) -> GitFailed:
    lowered = said.lower()
    first = next((line.strip() for line in said.splitlines() if line.strip()), f"exit {code}")
    if "dubious ownership" in lowered:
        return GitFailed(
            "git refuses it: another user owns the folder (dubious ownership)",
            "if you trust it: git config --global --add safe.directory FOLDER",
        )
    if "not a git repository" in lowered:
        return GitFailed("not a git repository")
    if "unable to read" in lowered or "missing" in lowered or "promisor" in lowered or "could not fetch" in lowered:
        return GitFailed(f"git {verb}: objects are missing here (a partial or damaged clone): {first[:120]}")
    return GitFailed(f"git {verb} failed: {first[:160]}")
