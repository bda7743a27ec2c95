"""OpenClaw's state folder, which is beside the workspace: the version of the runtime, logins and search databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core.harness_files import UnreadableHarnessFile, at, read_bytes
from truekeep.core.harness_paths import find_homes
from truekeep.core.openclaw_config import named_workspaces, read_config
from truekeep.integrations.alf.credentials import CredentialFile
from truekeep.integrations.alf.documents import JsonObject
from truekeep.integrations.alf.files import clamp_time
from truekeep.integrations.alf.timestamps import format_timestamp

_NO_CREDENTIALS = ("-allowFrom.json", "-pairing.json")  # lists of senders, in the same folder
_MAX_VERSION_CHARACTERS = 64


class OpenclawState(NamedTuple):
    """The state folder of the agent whose workspace is exported."""

    folder: Path
    config: JsonObject

    @property
    def runtime_version(self) -> str:
        version = at(self.config, "meta", "lastTouchedVersion")
        return version if isinstance(version, str) and len(version) < _MAX_VERSION_CHARACTERS else ""

    def credential_files(self) -> Iterator[CredentialFile]:
        """The auth profiles of all agents, and the files and folders in credentials/."""
        profiles = sorted((self.folder / "agents").glob("*/agent/auth-profiles.json"))
        others = sorted((self.folder / "credentials").glob("*"))
        for path in (*profiles, *(path for path in others if not path.name.endswith(_NO_CREDENTIALS))):
            with suppress(OSError, UnreadableHarnessFile):
                text = (read_bytes(path) or b"").decode("utf-8", "replace")
                changed_at = format_timestamp(clamp_time(path.stat().st_mtime_ns))
                yield CredentialFile(path.name, text, changed_at, is_profiles=path in profiles)


def find_state(root: Path) -> tuple[OpenclawState | None, str]:
    """OpenClaw's state folder, if this workspace is in it or its configuration names it; else None and a note."""
    homes = find_homes()
    config: JsonObject = {}
    note = ""
    try:
        config = read_config(homes)
    except (UnreadableHarnessFile, OSError):
        note = f"{homes.openclaw_json} cannot be read: the version of OpenClaw is left out"
    real = os.path.realpath(root)
    is_inside = real.startswith(os.path.realpath(homes.openclaw) + os.sep)
    if is_inside or real in map(os.path.realpath, named_workspaces(homes, config)):
        return OpenclawState(homes.openclaw, config), note
    if homes.openclaw.is_dir():
        return None, "OpenClaw's configuration does not name this workspace: no version, logins or vectors of OpenClaw"
    return None, ""
