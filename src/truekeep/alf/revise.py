"""Archives made from archives: one with its deltas, and one without some of its records."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, cast

from truekeep.alf.archive_file import Asked, Made, opened, raise_problems, spooled, stay_sealed, written
from truekeep.alf.container import Reader, Writer
from truekeep.alf.delta import applied
from truekeep.alf.edition import Tell, write_edition
from truekeep.alf.purge import Purged, purged
from truekeep.alf.snapshot import Snapshot
from truekeep.model import as_stamp


def apply_archive(base: Path, deltas: Sequence[Path], target: Path, asked: Asked, tell: Tell = lambda *_: None) -> Made:
    """An archive and its deltas, in their order, as one archive."""
    import io
    import tempfile

    stay_sealed([base, *deltas], asked.recipients)
    notes: list[str] = []
    with ExitStack() as stack:
        reader = stack.enter_context(opened(base, identities=asked.identities, large=True))
        for number, path in enumerate(deltas):
            raise_problems(reader)
            changes = stack.enter_context(opened(path, identities=asked.identities, large=True))
            raise_problems(changes)
            spool = stack.enter_context(spooled(target, asked.recipients))
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
    stay_sealed([source], asked.recipients)
    at = as_stamp(datetime.now(UTC))
    with (
        opened(source, identities=asked.identities, large=True) as reader,
        spooled(target, asked.recipients) as spool,
        written(target, recipients=asked.recipients, replace=asked.replace) as writer,
    ):
        raise_problems(reader)
        edition, gone = purged(Snapshot(reader), records, spool=spool, reason=reason, at=at)
        done = write_edition(writer, edition, tell)
    return Made(target, target.stat().st_size, done, (), ()), gone
