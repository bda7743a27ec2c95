"""Finds memory files for pages. Only files in the survey are shown: nothing outside of memory or behind a link."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request

from truekeep.core.bugs import is_bug, note_bug
from truekeep.core.dates import shown_age
from truekeep.core.errors import BadInput, Busy, EditedSince, NotFound
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS
from truekeep.core.state_dir import StateFolder
from truekeep.interfaces.web.local_site import LOG
from truekeep.maintenance.survey.queries import MemoryFileSummary
from truekeep.memory.card import parse_card
from truekeep.memory.frontmatter import Frontmatter
from truekeep.text.encoding import decode_text
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import Survey

MAX_SURVEY_AGE = 3.0  # seconds


class MemoryFilePage(NamedTuple):
    """A memory file as it is now."""

    listed: MemoryFileSummary
    data: bytes
    text: str | None
    front: Frontmatter
    problem: str  # of the frontmatter
    first: int  # the line that its body begins on

    @property
    def path(self) -> str:
        return self.listed.path

    @property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def is_card(self) -> bool:
        return self.path.startswith(f"{CARDS}/") and "/" not in self.path[len(CARDS) + 1 :]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


_SURVEYING = threading.Lock()


def survey_of(workspace: Workspace) -> Survey:
    """The survey of memory files. If very many files are new, it continues in the background."""
    try:
        survey = workspace.maintenance.survey(within=MAX_SURVEY_AGE)
    except Busy:
        _survey_in_background(workspace.path)
        raise
    if workspace.maintenance.last_refresh is not None and workspace.maintenance.last_refresh.later:
        _survey_in_background(workspace.path)
    return survey


def _survey_in_background(path: Path) -> None:
    if _SURVEYING.acquire(blocking=False):
        threading.Thread(target=_survey, args=(path,), name="survey", daemon=True).start()


def _survey(path: Path) -> None:
    try:
        with Workspace.open(path) as workspace:
            workspace.maintenance.survey()
    except Exception as error:  # noqa: BLE001 - the next request starts it again
        if is_bug(error):
            note_bug(error, "serve")
        StateFolder(path).log(LOG, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} the survey failed: {type(error).__name__}")
    finally:
        _SURVEYING.release()


def find_file(workspace: Workspace, path: str) -> MemoryFilePage | None:
    """A memory file by its exact path; None if it is not in the survey, gone, or behind a link."""
    listed = survey_of(workspace).browsing.find_file(path)
    if listed is None:
        return None
    try:
        data = workspace.files.read_stored(path)
    except (UnsafePath, FileNotFoundError, NotADirectoryError):
        return None
    except ChangedSince as error:
        raise EditedSince(f"{path} changed while it was read", hint="load the page again") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint="it must be a plain readable file") from error
    if data is None:
        return None
    text = decode_text(data)
    if text is None:
        return MemoryFilePage(listed, data, None, Frontmatter(), "", 1)
    card = parse_card(path.rpartition("/")[2], text)
    return MemoryFilePage(
        listed, data, text, card.front, card.problem, text.count("\n", 0, len(text) - len(card.body)) + 1
    )


def get_file(workspace: Workspace, request: Request) -> MemoryFilePage:
    path = request.path_params["path"].encode("utf-8", "replace").decode()
    file = find_file(workspace, path)
    if file is None:
        raise NotFound("there is no such file in memory any more", hint="History says what became of it")
    return file


def get_card(workspace: Workspace, request: Request) -> MemoryFilePage:
    """The card that an address names; raises for any other file, because cards are confirmed and dropped by name."""
    file = get_file(workspace, request)
    if not file.is_card:
        raise BadInput(f"{file.path} is not a card", hint="only cards are confirmed and dropped; edit it in an editor")
    return file


def shown_age_of(day: str, today: date) -> str:
    try:
        return shown_age((today - date.fromisoformat(day)).days)
    except ValueError:
        return shown_age(None)
