"""Find memory files as people name them: a card by its name, any file by a relative path. Reads only."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput, EditedSince, NotFound
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, DOCUMENTS
from truekeep.memory.card import REFERENCE_FOLDERS, Card, is_document_path, parse_card
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import mask_lines
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.memory.staging import FileOnDisk, MemoryFiles


def card_names(vault: MemoryFiles) -> list[str]:
    """The names of all cards, in no order; no card is read."""
    names = (item.name for item in vault.names(CARDS))
    return [name for name in names if name.endswith(".md") and name[0] != "."]


def document_names(vault: MemoryFiles) -> list[str]:
    """The documents that a draft can be filed to: the usual ones, then those that are there, by path."""
    folders = ("rules", *REFERENCE_FOLDERS)
    found = (f"{folder}/{item.name}" for folder in folders for item in vault.names(folder))
    return [*dict.fromkeys((*DOCUMENTS, *sorted(path for path in found if is_document_path(path))))]


def iter_cards(vault: MemoryFiles) -> Iterator[Card]:
    """Every card that can be read, by name."""
    for name in sorted(name for name in card_names(vault) if name.isprintable()):
        try:
            stored = vault.read(f"{CARDS}/{name}")
        except (UnsafePath, ChangedSince, OSError):
            continue
        text = decode_text(stored.data) if stored else None
        if text is not None:
            yield parse_card(name, text)


def get_card_file(vault: MemoryFiles, wanted: str) -> tuple[str, FileOnDisk]:
    """The name and the file of a card, by any form of its name."""
    _check_text(wanted)
    name = wanted.removeprefix(f"{CARDS}/")
    if not name.endswith(".md"):
        name += ".md"
    if "/" in name or name.startswith("."):
        raise NotFound(f"{wanted!r} is not the name of a card", hint="`truekeep card list` shows the names")
    try:
        stored = vault.read(f"{CARDS}/{name}")
    except UnsafePath as error:
        raise BadInput(str(error), hint="a card is a plain file in memory/cards") from error
    except ChangedSince as error:
        raise EditedSince(f"{CARDS}/{name} changed while it was read", hint="run it again") from error
    if stored is None:
        raise NotFound(f"there is no card {name}", hint=_nearest(vault, name))
    return name, stored


def get_card(vault: MemoryFiles, wanted: str, *, partly: bool = False, masked: bool = False) -> tuple[Card, str]:
    """One card and its text. `partly`: the beginning of its name is enough if no other card begins with it.

    `masked`: without credentials, to be shown.
    """
    try:
        name, stored = get_card_file(vault, wanted)
    except NotFound:
        begun = _beginning(vault, wanted.removeprefix(f"{CARDS}/")) if partly else []
        if len(begun) != 1:
            raise
        name, stored = get_card_file(vault, begun[0])
    text = _decoded(f"{CARDS}/{name}", stored)
    if masked:
        text = mask_lines(text)
    return parse_card(name, text), text


def get_text(vault: MemoryFiles, path: str) -> str:
    """The text of a memory file; empty if it does not exist."""
    try:
        stored = vault.read(path)
    except ChangedSince as error:
        raise EditedSince(f"{path} changed while it was read", hint="run it again") from error
    return _decoded(path, stored) if stored else ""


def _decoded(path: str, stored: FileOnDisk) -> str:
    text = decode_text(stored.data)
    if text is None:
        raise BadInput(f"{path} is not UTF-8 text", hint="open it in an editor and save it as UTF-8")
    return text


def path_inside(root: Path, path: str) -> str:
    """A path relative to the workspace, as the ledger has it. Resolved from here, else from the workspace."""
    _check_text(path)
    top = os.path.realpath(root)
    for start in (os.getcwd(), str(root)):
        full = os.path.join(start, path)
        inside = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)), top)
        if not inside.startswith("..") and (start == str(root) or os.path.lexists(full)):
            card = f"{CARDS}/{inside}"
            is_card = "/" not in inside and (root / card).is_file() and not (root / inside).exists()
            return card if is_card else inside
    raise BadInput(f"{path} is not in {root}", hint="name a file of the workspace")


def _check_text(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        what = f"{printable(name)} is no name of a memory file: it is not UTF-8 text"
        raise BadInput(what, hint="give the file another name") from error


def _beginning(vault: MemoryFiles, start: str) -> list[str]:
    """The names of the cards that begin with this."""
    return sorted(name for name in card_names(vault) if start and name.startswith(start))


def _nearest(vault: MemoryFiles, name: str) -> str:
    if begun := _beginning(vault, name.removesuffix(".md")):
        more = f" or {len(begun) - 5} more" if len(begun) > 5 else ""
        return f"did you mean {', '.join(map(printable, begun[:5]))}{more}?"
    close = difflib.get_close_matches(name, [item.name for item in vault.names(CARDS)], 3)
    return f"did you mean {', '.join(close)}?" if close else "`truekeep card list` shows the names"
