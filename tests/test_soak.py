"""A short day of traffic with kills, clock jumps, edits and a full disk; and what longer ones brought to light."""

from __future__ import annotations

import pytest

from tests.helpers import Place, a_handoff
from truekeep.ledger import Ledger


class Killed(BaseException):
    """The process ends here, as by a signal: nothing catches it."""


def test_a_handoff_whose_index_line_a_person_overtook_counts_as_promoted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its card was written by a run that was killed; meanwhile somebody saved MEMORY.md as they knew it."""

    def die(_ledger: Ledger, _batch: int) -> None:
        raise Killed

    index = place.workspace / "MEMORY.md"
    known = index.read_text()
    place.leave(a_handoff())
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Ledger, "finish", die)
        place.ingest()
    index.write_text(f"{known}\nMine.\n")
    assert place.ingest().counts == {"promoted": 1}
    assert "staging-proxy.md" in place.index()
    assert "Mine." in place.index()
    with place.open() as workspace:
        told = [(entry.verb, entry.paths, record and record.outcome) for entry, record in workspace.history()]
    assert told == [
        ("promoted", ("MEMORY.md",), "promoted"),
        ("promoted", ("memory/cards/staging-proxy.md",), "promoted"),
    ]
