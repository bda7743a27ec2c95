"""The record of what connect changed on this machine, written before each change, with backups.

Record and backups are in the user's state folder, readable by the user only, because a harness's configuration may
contain credentials. An owner is a harness in a place ("claude@/home/me/app", "codex@user"); a file without owners is
restored. Without the record, disconnect cannot restore the exact bytes but still finds truekeep's blocks by their
marks.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from truekeep.core import file_io
from truekeep.core.errors import BadSetup, Busy, NewerState

FORMAT = 1
UNKNOWN = "?"
"""For `before`: the state without truekeep's part is unknown. For `after`: the commands may not have finished."""

Kind = Literal["block", "own", "config"]


@dataclass(slots=True)
class InstalledFile:
    """One file that connect or a harness's command wrote."""

    kind: Kind
    owners: set[str] = field(default_factory=set)
    before: str | None = None  # digest and name of the backup; None if there was no file
    after: str = UNKNOWN  # digest after connect
    mode: int | None = None  # before connect; some harnesses change it


@dataclass(slots=True)
class InstallRecord:
    """Everything that connect changed and disconnect has not restored."""

    files: dict[str, InstalledFile] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=dict)  # created by connect: path -> owners
    owners: set[str] = field(default_factory=set)
    cards: str = ""  # the folder that OpenClaw was configured to search

    @property
    def places(self) -> tuple[str, ...]:
        """The connected repositories and folders, and "user"."""
        return tuple(sorted({owner.partition("@")[2] for owner in self.owners}))

    def owners_left(self, harness: str, leaving: Iterable[str]) -> set[str]:
        return {owner for owner in self.owners - set(leaving) if owner.partition("@")[0] == harness}


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Keep:
    """The folder of the record and the backups."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._record = path / "record.json"
        self._backups = path / "backups"
        self.made: tuple[Path, ...] = ()  # parent folders that were created

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Allow only one connect or disconnect per user."""
        self.made = tuple(folder for folder in self.path.parents if not folder.exists())
        file_io.make_private(self._backups)
        self.path.chmod(0o700)
        with file_io.locked(str(self.path)) as held:
            if not held:
                raise Busy(
                    "another truekeep connect is running", hint="wait until it has finished, then run this again"
                )
            yield

    def read(self) -> InstallRecord:
        try:
            data = json.loads(self._record.read_bytes())
        except FileNotFoundError:
            return InstallRecord()
        except ValueError as error:
            raise self._damaged() from error
        try:
            if data["format"] > FORMAT:
                formats = f"format {data['format']}, this one knows {FORMAT}"
                raise NewerState(
                    f"{self._record} was written by a newer truekeep ({formats})",
                    hint="upgrade truekeep on this machine",
                )
            return _parse(data)
        except (KeyError, TypeError, AttributeError) as error:
            raise self._damaged() from error

    def _damaged(self) -> BadSetup:
        return BadSetup(
            f"{self._record} cannot be read",
            hint=f"move it elsewhere; backups stay in {self._backups}, and disconnect then looks for truekeep's marks",
        )

    def write(self, record: InstallRecord) -> None:
        _write(self._record, (json.dumps(_render(record), indent=1) + "\n").encode())

    def save(self, data: bytes) -> str:
        """Back up these bytes and return the backup's name."""
        name = digest_of(data)
        path = self._backups / name
        if not path.exists():
            _write(path, data)
        return name

    def saved(self, name: str) -> bytes | None:
        """The bytes of a backup; None if it is missing or damaged."""
        try:
            data = (self._backups / name).read_bytes()
        except OSError:
            return None
        return data if digest_of(data) == name else None

    def backup_path(self, name: str) -> Path:
        return self._backups / name

    def names(self) -> set[str]:
        """The names of all backups."""
        return {path.name for path in self._backups.iterdir()}

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            (self._backups / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the record and its folder."""
        self._record.unlink(missing_ok=True)
        for folder in (self._backups, self.path, self.path.parent):
            try:
                folder.rmdir()
            except OSError:
                return


def _write(path: Path, data: bytes) -> None:
    folder = file_io.open_root(str(path.parent))
    try:
        file_io.write_beside(folder, path.name, data, mode=0o600)
        os.rename(file_io.temporary_name(path.name), path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _render(record: InstallRecord) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "owners": sorted(record.owners),
        "cards": record.cards,
        "files": {
            path: {
                "kind": kept.kind,
                "owners": sorted(kept.owners),
                "before": kept.before,
                "after": kept.after,
                "mode": kept.mode,
            }
            for path, kept in sorted(record.files.items())
        },
        "folders": {path: sorted(owners) for path, owners in sorted(record.folders.items())},
    }


def _parse(data: dict[str, Any]) -> InstallRecord:
    files = {
        str(path): InstalledFile(
            kind=item["kind"],
            owners=set(item["owners"]),
            before=item["before"],
            after=item["after"],
            mode=item["mode"],
        )
        for path, item in data["files"].items()
    }
    folders = {str(path): set(owners) for path, owners in data["folders"].items()}
    return InstallRecord(files=files, folders=folders, owners=set(data["owners"]), cards=data.get("cards", ""))
