"""The desk: archives made from a workspace, and put into one. Files on disk come and go whole, or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, cast

from truekeep import disk
from truekeep.alf import seal
from truekeep.alf.carry import by_scope
from truekeep.alf.container import BadArchive, Problem, Reader, Writer
from truekeep.alf.delta import Changed, applied, write_delta
from truekeep.alf.edition import Line, Spool, Tell, Written, write_edition
from truekeep.alf.export import Agent, Manner, edition_of
from truekeep.alf.files import ARCHIVES, INCLUDED, NO_TIME, Item, Omitted, Tree, sane_mode, sane_time
from truekeep.alf.ids import AGENT_FILE, agent_id_for, parse_agent_id
from truekeep.alf.purge import Purged, purged
from truekeep.alf.restore import BLOCKED, DIFFERENT, NEW, SAME, Plan, Planned, plan_import
from truekeep.alf.snapshot import Snapshot
from truekeep.arriving import arriving, note_arrived
from truekeep.disk import ChangedSince
from truekeep.errors import BadInput, EditedSince, StorageFailed
from truekeep.host import person
from truekeep.ledger import Entry
from truekeep.model import as_stamp
from truekeep.state import STATE
from truekeep.vault import FILE_LIMIT, Incoming, Staging, WriteFailed
from truekeep.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.alf.finer import CardFacts
    from truekeep.alf.records import Record
    from truekeep.books import Books

_RETRIES = 3
_BATCH, _BATCH_BYTES = 64, 16 << 20  # files that are replaced together
_SECRET_NAMES = (".env", ".pem", ".key", ".p12", ".pfx", ".keystore", "id_rsa", "id_ed25519", "auth-profiles.json")


class Asked(NamedTuple):
    """How an archive is to be made."""

    scheme: str = "content"
    plain: bool = False
    transcripts: bool = False
    embeddings: bool = True
    base: Path | None = None
    recipients: tuple[str, ...] = ()
    replace: bool = False
    identities: tuple[str, ...] = ()


class Made(NamedTuple):
    """An archive that was made."""

    path: Path
    size: int
    written: Written | Changed
    notes: tuple[str, ...]
    omitted: tuple[Omitted, ...]


# --- Archives on disk -----------------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path, *, identities: Sequence[str] = (), large: bool = False) -> Iterator[Reader]:
    """An archive, decrypted in memory if it is encrypted."""
    with ExitStack() as stack:
        try:
            file: BinaryIO = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}", hint="name an .alf file") from error
        if _is_sealed(file):
            seal.check_age()  # before somebody looks for a key
            if not identities:
                raise BadInput(f"{path} is encrypted", hint="name the private key with --identity FILE")
            file = stack.enter_context(seal.unsealed(file, seal.parse_identities(identities), str(path)))
        yield stack.enter_context(Reader(file, large=large, name=str(path)))


def _is_sealed(file: BinaryIO) -> bool:
    head = file.read(64)
    file.seek(0)
    return seal.is_sealed(head)


def _stay_sealed(sources: Sequence[Path], recipients: Sequence[str]) -> None:
    """What comes out of an encrypted archive goes into an encrypted one."""
    for path in () if recipients else sources:
        with suppress(OSError), open(path, "rb") as file:
            if _is_sealed(file):
                raise BadInput(
                    f"{path} is encrypted, and what is made of it would not be",
                    hint="--encrypt KEY (`age-keygen -y` prints yours)",
                )


@contextmanager
def written(path: Path, *, recipients: Sequence[str] = (), replace: bool = False) -> Iterator[Writer]:
    """An archive in the making: it gets its name when it is whole."""
    keys = seal.parse_recipients(recipients) if recipients else []
    _refuse_stream(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file with -o")
    if not replace and os.path.lexists(path):
        raise BadInput(f"{path} is there already", hint="name another file with -o, or say --replace")
    by = f".{os.getpid()}"
    beside = path.with_name(disk.temporary_name(path.name, by))
    try:
        _sweep(path)
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}", hint="name a file in a folder that can be written") from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if keys:
                with seal.sealing(file, keys) as stream:
                    yield from _writing(stream)
            else:
                yield from _writing(file)
            file.flush()
            os.fsync(file.fileno())
        _put(path, by, replace=replace)
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror or error}", hint="nothing was written") from error
    finally:
        with suppress(OSError):
            os.unlink(beside)


def _refuse_stream(path: Path) -> None:
    is_stream = str(path) == "-" or str(path.parent) in ("/dev", "/dev/fd") or path.parts[:2] == ("/", "proc")
    if is_stream or (path.exists() and not (path.is_file() or path.is_dir())):
        raise BadInput(
            f"an archive gets its name when it is whole, so it cannot go to {path}",
            hint="name a file with -o, and send that on",
        )


def _writing(file: IO[bytes]) -> Iterator[Writer]:
    with Writer(cast(BinaryIO, file)) as writer:
        yield writer


def _sweep(path: Path) -> None:
    """Remove what killed runs left, of this archive and of others in its folder. Who lives holds a lock on his."""
    start = disk.temporary_name(path.name, ".").removesuffix(disk.TEMPORARY)
    for name in os.listdir(path.absolute().parent):
        whose, _, by = name.removesuffix(disk.TEMPORARY).rpartition(".")
        is_archive = whose.startswith(".") and whose.endswith(ARCHIVES) and by.isdigit() and not _is_alive(int(by))
        if not name.endswith(disk.TEMPORARY) or not (name.startswith(start) or is_archive):
            continue
        left = path.with_name(name)
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(left)
            finally:
                os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _put(path: Path, by: str, *, replace: bool) -> None:
    """Give what was written its name."""
    folder = disk.open_root(str(path.absolute().parent))
    try:
        if replace:
            temporary = disk.temporary_name(path.name, by)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            disk.put_new(folder, path.name, by=by)
        try:
            os.fsync(folder)
        except OSError as error:
            raise StorageFailed(
                f"{path} is written, but the disk does not confirm its name: {error.strerror}", hint="check the disk"
            ) from error
    except ChangedSince as error:
        raise BadInput(f"{path} came to be meanwhile", hint="name another file with -o") from error
    finally:
        os.close(folder)


# --- Out ------------------------------------------------------------------------------------------------------------


def export_archive(workspace: Workspace, target: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """The workspace as one archive."""

    def make(tree: Tree, items: list[Item], agent: Agent, manner: Manner, writer: Writer) -> tuple[Written, list[str]]:
        base = None
        if asked.base is not None:
            with opened(asked.base, identities=asked.identities, large=True) as reader:
                earlier = Snapshot(reader)
                earlier.require_full()
                base = by_scope(record for record, _ in earlier.records())
        with _spool(target, asked.recipients) as spool:
            edition, notes = edition_of(tree, items, agent, manner, spool=spool, base=base, tell=tell)
            return write_edition(writer, edition, tell), notes

    return _from_workspace(workspace, target, asked, make)


def delta_archive(workspace: Workspace, target: Path, since: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """What changed in the workspace since an archive was made of it."""

    def make(tree: Tree, items: list[Item], agent: Agent, manner: Manner, writer: Writer) -> tuple[Changed, list[str]]:
        return write_delta(writer, old, tree, items, agent, manner, tell)

    _stay_sealed([since], asked.recipients)
    with opened(since, identities=asked.identities, large=True) as reader:
        old = Snapshot(reader)
        old.require_full()
        return _from_workspace(workspace, target, asked, make, old.files())


@contextmanager
def _spool(target: Path, recipients: Sequence[str]) -> Iterator[Spool]:
    spool = Spool(folder=None if recipients else str(target.absolute().parent))
    try:
        yield spool
    finally:
        spool.close()


_Make = Callable[[Tree, "list[Item]", Agent, Manner, Writer], "tuple[Written | Changed, list[str]]"]


def _from_workspace(
    workspace: Workspace, target: Path, asked: Asked, make: _Make, before: Mapping[str, Line] | None = None
) -> Made:
    """Make an archive of a workspace that holds still; begin again when it did not. `before`: of an earlier one."""
    root = str(workspace.path)
    _check_target(root, target)
    for attempt in range(_RETRIES):
        try:
            with (
                workspace.still(),
                Tree(root, plain=asked.plain) as tree,
                _manner(workspace, asked) as (manner, notes),
                written(target, recipients=asked.recipients, replace=asked.replace) as writer,
            ):
                agent = agent_of(workspace, is_plain=asked.plain)
                items = _without_secrets(tree, tree.scan(), before or {})
                done, more = make(tree, items, agent, manner, writer)
                notes += more
                omitted = tuple(tree.omitted)
        except ChangedSince as error:
            if attempt == _RETRIES - 1:
                raise EditedSince(
                    f"{error} is being written to", hint="run it again when it is quiet; nothing was written"
                ) from error
        else:
            return Made(target, target.stat().st_size, done, tuple(dict.fromkeys(notes)), omitted)
    raise AssertionError("unreachable")


def _check_target(root: str, target: Path) -> None:
    """Refuse a place where the archive would be part of the next one."""
    inside = os.path.realpath(target.absolute().parent) + os.sep
    if inside.startswith(os.path.realpath(root) + os.sep) and not target.name.endswith(ARCHIVES):
        raise BadInput(
            f"{target} would be a file of the workspace, and part of the next archive",
            hint=f"name a file elsewhere, or one that ends in {ARCHIVES[0]}",
        )


def agent_of(workspace: Workspace, *, is_plain: bool = False) -> Agent:
    """Whose memory this is: by the workspace's own file, which is begun where it is missing."""
    path = workspace.path / AGENT_FILE
    try:
        found = parse_agent_id(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = agent_id_for(os.path.realpath(workspace.path))
        if workspace.is_canonical and not is_plain:
            with suppress(OSError, ChangedSince):  # made of the path: it is the same one the next time
                _write_agent_id(workspace.path, found)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="put the agent's id there, or remove it") from error
    return Agent(found, workspace.path.name, _runtime_version(workspace.path))


def _write_agent_id(root: Path, agent: str) -> None:
    folder = disk.open_root(str(root))
    try:
        disk.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
        disk.put_new(folder, AGENT_FILE)
        os.fsync(folder)
    finally:
        os.close(folder)


def _openclaw_state(root: Path) -> Path | None:
    """OpenClaw's own folder, if this workspace lies in it: then what is said there is about this agent."""
    state = Path(os.environ.get("OPENCLAW_STATE_DIR") or Path.home() / ".openclaw").expanduser()
    inside = os.path.realpath(root).startswith(os.path.realpath(state) + os.sep)
    return state if inside else None


def _runtime_version(root: Path) -> str:
    state = _openclaw_state(root)
    if state is None:
        return ""
    try:
        with open(state / "openclaw.json", "rb") as file:
            given = json.loads(file.read(4 << 20))
        version = given["meta"]["lastTouchedVersion"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and len(version) < 64 else ""


@contextmanager
def _manner(workspace: Workspace, asked: Asked) -> Iterator[tuple[Manner, list[str]]]:
    """What an archive is told from, beside the files."""
    notes: list[str] = []
    if asked.plain:
        yield Manner(asked.scheme, plain=True), notes
        return
    from truekeep.alf.vectors import Vectors
    from truekeep.embed.openclaw import find_databases

    state = _openclaw_state(workspace.path)
    databases = find_databases(state) if state is not None else []
    vectors = Vectors(str(workspace.path / STATE / "index.sqlite"), databases) if asked.embeddings else None
    archive = workspace.archive() if asked.transcripts else None

    def sessions(agent: str) -> Iterable[Record]:
        from truekeep.alf.talk import session_records

        assert archive is not None
        return session_records(archive, agent=agent, tell=notes.append)

    agent = agent_of(workspace).id
    try:
        yield (
            Manner(
                asked.scheme,
                credentials=tuple(_credentials(state, agent)),
                vectors=vectors,
                seen=_seen(workspace),
                sessions=partial(sessions, agent) if archive is not None else None,
            ),
            notes,
        )
    finally:
        if vectors is not None:
            notes += vectors.problems
            vectors.close()
        if archive is not None:
            archive.close()


def _credentials(state: Path | None, agent: str) -> Iterator[dict[str, object]]:
    """What the agent logs in to, never with what."""
    from truekeep.alf.credentials import credentials_of
    from truekeep.alf.moment import shown_moment

    for path in sorted((state / "agents").glob("*/agent/auth-profiles.json")) if state is not None else ():
        with suppress(OSError, UnicodeDecodeError):
            at = shown_moment(sane_time(path.stat().st_mtime_ns))
            yield from credentials_of(path.read_text(encoding="utf-8"), agent=agent, at=at)


def _seen(workspace: Workspace) -> Callable[[str], CardFacts | None]:
    """What the last check said to a card, as far as that still stands."""
    from truekeep.alf.finer import card_facts

    def seen(path: str) -> CardFacts | None:
        checked = workspace.last_checked(path)
        return card_facts(checked) if checked is not None and checked.verdicts else None

    return seen


def _without_secrets(tree: Tree, items: list[Item], before: Mapping[str, Line]) -> list[Item]:
    """The files, but for those that are there for credentials, and artifacts that hold one.

    What memory says is taken as it is: it must come back so. What an earlier archive has is known to hold none.
    """
    kept = []
    for item in items:
        name = item.path.rpartition("/")[2].lower()
        if name.endswith(_SECRET_NAMES) or (name.startswith(".env") and not name.endswith(".md")):
            tree.omitted.append(Omitted(item.path, "a file for credentials"))
            continue
        if item.tier == INCLUDED and not _is_known(item, before.get(item.path)) and _holds_secret(tree, item):
            tree.omitted.append(Omitted(item.path, "holds what looks like a credential"))
            continue
        kept.append(item)
    tree.omitted.sort()
    return kept


def _is_known(item: Item, line: Line | None) -> bool:
    return line is not None and line[1:4] == (item.entry, item.size, sane_time(item.mtime_ns))


def _holds_secret(tree: Tree, item: Item) -> bool:
    from truekeep.disk import decode_text
    from truekeep.secrets import find_secrets

    text = decode_text(tree.read(item))
    return text is not None and bool(find_secrets(text))


# --- From archives --------------------------------------------------------------------------------------------------


def apply_archive(base: Path, deltas: Sequence[Path], target: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """An archive and its deltas, in their order, as one archive."""
    import io
    import tempfile

    _stay_sealed([base, *deltas], asked.recipients)
    notes: list[str] = []
    with ExitStack() as stack:
        reader = stack.enter_context(opened(base, identities=asked.identities, large=True))
        for number, path in enumerate(deltas):
            raise_problems(reader)
            changes = stack.enter_context(opened(path, identities=asked.identities, large=True))
            raise_problems(changes)
            spool = stack.enter_context(_spool(target, asked.recipients))
            edition, more = applied(Snapshot(reader), Snapshot(changes), spool=spool)
            notes += more
            if number == len(deltas) - 1:
                writer = stack.enter_context(written(target, recipients=asked.recipients, replace=asked.replace))
                done = write_edition(writer, edition, tell)
                break
            folder = str(target.absolute().parent)
            between: IO[bytes] = io.BytesIO() if asked.recipients else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            stack.callback(between.close)
            with Writer(cast(BinaryIO, between)) as step:
                write_edition(step, edition)
            reader = stack.enter_context(Reader(cast(BinaryIO, between), large=True, name=f"{base} with {path}"))
    return Made(target, target.stat().st_size, done, tuple(notes), ())


def purge_archive(
    source: Path, target: Path, records: Sequence[str], reason: str, asked: Asked, tell: Tell = lambda *_: None
) -> tuple[Made, Purged]:
    """An archive without some records, and without what they said."""
    _stay_sealed([source], asked.recipients)
    at = as_stamp(datetime.now(UTC))
    with (
        opened(source, identities=asked.identities, large=True) as reader,
        _spool(target, asked.recipients) as spool,
        written(target, recipients=asked.recipients, replace=asked.replace) as writer,
    ):
        raise_problems(reader)
        edition, gone = purged(Snapshot(reader), records, spool=spool, reason=reason, at=at)
        done = write_edition(writer, edition, tell)
    return Made(target, target.stat().st_size, done, (), ()), gone


def raise_problems(reader: Reader) -> None:
    """Refuse an archive with entries that cannot be used."""
    if reader.problems:
        first = reader.problems[0]
        rest = len(reader.problems) - 1
        more = f", and {rest} more {'entry' if rest == 1 else 'entries'}" if rest else ""
        raise BadArchive(f"{first.entry}: {first.message}{more}", entry=first.entry, of=reader.name)


# --- In -------------------------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    """What an import did, or would do."""

    root: Path
    agent: str
    plan: Plan
    problems: tuple[Problem, ...]  # of lines and entries that were left behind
    replaced: int
    written: int


def import_archive(
    source: Path,
    root: Path,
    *,
    replace: bool = False,
    keep: bool = False,
    dry_run: bool = False,
    salvage: bool = False,
    large: bool = False,
    identities: Sequence[str] = (),
    now: Callable[[], datetime] | None = None,
    tell: Tell = lambda *_: None,
) -> Imported:
    """Put an archive into a workspace. Nothing that differs is overwritten unless that is asked for."""
    problems: list[Problem] = []
    hear = (lambda error: problems.append(error.problem)) if salvage else None
    with opened(source, identities=identities, large=large) as reader:
        if salvage:
            problems += reader.problems
        else:
            raise_problems(reader)
        snapshot = Snapshot(reader, salvage=hear)
        agent = snapshot.find_agent_id() if salvage else snapshot.agent_id
        plan = plan_import(snapshot, str(root), salvage=hear)
        _check_agent(root, agent, replace=replace)
        different = plan.of(DIFFERENT)
        done = Imported(root, agent or "", plan, tuple(dict.fromkeys(problems)), 0, 0)
        if dry_run:
            return done
        blocked = [] if salvage else plan.of(BLOCKED)
        if blocked:
            raise BadInput(
                f"{_files(blocked)} in the way, such as {blocked[0].line.path}: {blocked[0].why}; nothing was written",
                hint="`--dry-run` lists them; `--salvage` leaves them out",
            )
        if different and not (replace or keep):
            raise BadInput(
                f"{_files(different)} there and different, such as {different[0].line.path}; nothing was written",
                hint="`--dry-run` lists them; --replace takes the archive's, --keep leaves yours",
            )
        if replace:
            _check_replaceable(root, different)
        Workspace.init(root, is_bare=True, now=now)
        with Workspace.open(root, now=now) as workspace, workspace.writing("import") as books:
            new = plan.of(NEW)
            with arriving(workspace.path, [file.line.path for file in new]):
                count = _take_in(books, new, tell)
            if new:
                _note_new(books, new, source.name, workspace.stamp())
            if replace:
                _replace(books, different, source.name, workspace.stamp(), tell)
                _set_times(books, plan.of(SAME))
            if agent:
                _put_agent_id(workspace.path, agent)
    return done._replace(replaced=len(different) if replace else 0, written=count)


def _files(found: Sequence[Planned]) -> str:
    return "1 file is" if len(found) == 1 else f"{len(found)} files are"


def _check_agent(root: Path, agent: str | None, *, replace: bool) -> None:
    with suppress(OSError, UnicodeDecodeError):
        here = (root / AGENT_FILE).read_text(encoding="utf-8").strip()
        if here and agent and here.lower() != agent and not replace:
            raise BadInput(
                f"{root} is of agent {here}, the archive of {agent}",
                hint="import it into a folder of its own, or say --replace",
            )


def _check_replaceable(root: Path, files: Sequence[Planned]) -> None:
    """Refuse before anything is written: what is too large for the ledger, and what is damaged."""
    for file in files:
        size = sum(map(len, file.pieces()))
        if max(size, os.lstat(root / file.line.path).st_size) > FILE_LIMIT:
            raise BadInput(
                f"{file.line.path} is too large to be replaced; nothing was written",
                hint="move yours away and run it again, or leave it with --keep",
            )


def _take_in(books: Books, files: Sequence[Planned], tell: Tell) -> int:
    def incoming() -> Iterator[Incoming]:
        fresh = int(datetime.now(UTC).timestamp() * 1e9)
        for file in files:
            at = file.line.mtime_ns if file.line.mtime_ns != NO_TIME else fresh
            yield Incoming(file.line.path, file.pieces(), sane_mode(file.line.mode), at)

    try:
        count = books.vault.take_in(incoming(), lambda number: tell("files", number, len(files)))
    except WriteFailed as failure:
        why = failure.error.strerror or str(failure.error)
        raise StorageFailed(f"{failure.path} cannot be written: {why}", hint="nothing new was written") from failure
    except ChangedSince as error:
        raise EditedSince(f"{error} came to be meanwhile", hint="look at it and run it again") from error
    tell("files", len(files), len(files))
    return count


def _note_new(books: Books, files: Sequence[Planned], name: str, at: str) -> None:
    """New files are told of, not kept: the ledger would have each of them a second time."""
    from truekeep.hidden import printable

    shown, count = printable(name)[:200], len(files)
    note_arrived(Path(books.vault.root), shown, at, {file.line.path: file.line.sha256 for file in files})
    note = f"{shown}: {count:,} new file{'' if count == 1 else 's'}"
    books.act(Staging(books.vault), Entry(at=at, verb="imported", actor=person(), note=note))


def _replace(books: Books, files: Sequence[Planned], name: str, at: str, tell: Tell) -> None:
    """Files that differ, through the books, so that the old bytes can be had again."""
    from truekeep.hidden import printable

    number = 0
    for batch in _batches(files):
        tell("replacing", number, len(files))
        staging = Staging(books.vault)
        for file in batch:
            staging.put(file.line.path, b"".join(file.pieces()), 0)
        books.act(staging, Entry(at=at, verb="imported", actor=person(), note=printable(name)[:200]))
        _set_times(books, batch)
        number += len(batch)
    tell("replacing", len(files), len(files))


def _batches(files: Sequence[Planned]) -> Iterator[list[Planned]]:
    """Files that are replaced together: as many as memory should hold."""
    batch: list[Planned] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _BATCH or size + file.line.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.line.size
    if batch:
        yield batch


def _set_times(books: Books, files: Sequence[Planned]) -> None:
    for file in files:
        books.vault.forget_folders()
        if file.line.mtime_ns != NO_TIME:
            books.vault.set_time(file.line.path, file.line.mtime_ns)


def _put_agent_id(root: Path, agent: str) -> None:
    with suppress(FileNotFoundError):
        if (root / AGENT_FILE).read_text(encoding="utf-8", errors="replace").strip().lower() == agent:
            return
    folder = disk.open_root(str(root))
    try:
        disk.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
        os.replace(disk.temporary_name(AGENT_FILE), AGENT_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        disk.discard(folder, AGENT_FILE)
        os.close(folder)
