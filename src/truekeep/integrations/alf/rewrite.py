"""Archives made from archives: one with its deltas, and one without some of its records."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, cast

from truekeep.core.model import as_stamp
from truekeep.integrations.alf.archive_file import (
    ExportOptions,
    ExportReport,
    opened,
    raise_problems,
    spooled,
    stay_sealed,
    written,
)
from truekeep.integrations.alf.delta import applied
from truekeep.integrations.alf.own_archives import is_own_archive, note_exported
from truekeep.integrations.alf.purge import PurgeReport, purged
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.writer import Tell, write_edition
from truekeep.integrations.alf.zip_container import Reader, Writer


def apply_archive(
    base: Path, deltas: Sequence[Path], target: Path, asked: ExportOptions, tell: Tell = lambda *_: None
) -> ExportReport:
    """An archive and its deltas, in their order, as one archive."""
    stay_sealed([base, *deltas], asked.recipients)
    is_own = all(is_own_archive(path) for path in (base, *deltas))
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
    if is_own:
        note_exported(target)
    return ExportReport(target, target.stat().st_size, done, tuple(notes), ())


def purge_archive(
    source: Path, target: Path, records: Sequence[str], reason: str, asked: ExportOptions, tell: Tell = lambda *_: None
) -> tuple[ExportReport, PurgeReport]:
    """An archive without some records, and without what they said."""
    stay_sealed([source], asked.recipients)
    is_own = is_own_archive(source)
    at = as_stamp(datetime.now(UTC))
    with (
        opened(source, identities=asked.identities, large=True) as reader,
        spooled(target, asked.recipients) as spool,
        written(target, recipients=asked.recipients, replace=asked.replace) as writer,
    ):
        raise_problems(reader)
        edition, gone = purged(Snapshot(reader), records, spool=spool, reason=reason, at=at)
        done = write_edition(writer, edition, tell)
    if is_own:
        note_exported(target)
    return ExportReport(target, target.stat().st_size, done, (), ()), gone
