"""What a publication tells of its files besides their text: verdicts and origins of lines, without what is private.

Both are about a text by its digest and by numbers of lines. Where lines of a file are masked, they are told of the
masked text, and of its other lines only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from truekeep.text.encoding import decode_text
from truekeep.verify.results import digest_text

if TYPE_CHECKING:
    from truekeep.handoffs.sync.private_text import MaskedText, PrivateNames
    from truekeep.handoffs.sync.publication_choice import PublicationChoice, PublishedText

_PATHS = re.compile(r"[^\s\"'`()\[\]<>,;:]+\.md(?!\w)", re.IGNORECASE)


def shared_verdicts(rows: Mapping[str, list[Any]], choice: PublicationChoice) -> dict[str, list[Any]]:
    """The stored verdicts of the published files; each row has digest, time, commit, and the verdicts as text."""
    found: dict[str, list[Any]] = {}
    for path, (digest, at, head, packed) in rows.items():
        text = choice.texts.get(path)
        if text is not None:
            digest, packed = _of_masked(text, digest, packed)
        if digest:
            found[path] = [digest, at, head, _without_private(choice.names, path, packed)]
    return found


def _of_masked(text: PublishedText, digest: str, packed: str) -> tuple[str, str]:
    """The verdicts of the lines that are sent, by their places in the masked text; ("", "") if they are of another."""
    if _digest_of(text.original) != digest:
        return "", ""
    shift = _shifts(text.original, text.masked)
    kept = []
    for claim, *rest in json.loads(packed):
        kind, said, start, end, line, *more = claim
        moved = shift.get(line - 1)
        if moved is not None:
            number, by = moved
            kept.append([[kind, said, start + by, end + by, number + 1, *more], *rest])
    return _digest_of(text.masked.text), json.dumps(kept)


def _digest_of(text: str) -> str:
    plain = decode_text(text.encode("utf-8", "surrogateescape"))
    return digest_text(plain) if plain is not None else ""


def _shifts(original: str, masked: MaskedText) -> dict[int, tuple[int, int]]:
    """For each line that is sent as it is: its number there, and by how many characters it moved."""
    before, after = _starts(original), _starts(masked.text)
    return {number: (now, after[now] - before[number]) for number, now in enumerate(masked.lines) if now is not None}


def _starts(text: str) -> list[int]:
    """Where each line starts in the text as it is checked: with plain newlines."""
    starts, at = [], 0
    for line in text.removeprefix("\ufeff").split("\n"):
        starts.append(at)
        at += len(line.removesuffix("\r")) + 1
    return starts


def _without_private(names: PrivateNames, path: str, packed: str) -> str:
    """Verdicts without those that name a private file, for instance as the place where something is now."""
    if not _names_private(names, path, packed):
        return packed
    return json.dumps([item for item in json.loads(packed) if not _names_private(names, path, json.dumps(item))])


def _names_private(names: PrivateNames, path: str, text: str) -> bool:
    return ".md" in text and any(names.is_private(path, found) for found in {*_PATHS.findall(text)})


def shared_origins(rows: Mapping[str, list[Any]], choice: PublicationChoice) -> dict[str, list[Any]]:
    """The origins of lines of the published files; each row has digest, origin, and the origins of the lines."""
    found: dict[str, list[Any]] = {}
    for path, (digest, origin, lines) in rows.items():
        text = choice.texts.get(path)
        if text is None:
            found[path] = [digest, origin, lines]
        elif _digest_of(text.original) == digest:
            kept = [None] * len(text.masked.text.split("\n"))
            for number, now in enumerate(text.masked.lines):
                if now is not None and number < len(lines):
                    kept[now] = lines[number]
            given = [line if line is not None else ["", None] for line in kept[: len(lines)]]
            found[path] = [_digest_of(text.masked.text), origin, given]
    return found
