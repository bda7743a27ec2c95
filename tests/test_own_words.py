"""What truekeep told an agent does not come back as memory: not in a handoff, not in a log."""

from __future__ import annotations

import pytest

from tests.helpers import Place, a_card, a_handoff
from truekeep.checkpoint import Checkpoint
from truekeep.errors import BadInput
from truekeep.workspace import Workspace


def a_brief(workspace: Workspace) -> str:
    return workspace.wake(None, tokens=600).text


@pytest.mark.parametrize("shape", ["whole", "quoted", "without its end"])
def test_a_handoff_that_repeats_the_brief_waits_for_a_person(place: Place, shape: str) -> None:
    with place.open() as workspace:
        brief = a_brief(workspace)
    text = {
        "whole": brief,
        "quoted": "\n".join(f"> {line}" for line in brief.split("\n")),
        "without its end": brief.partition("<!-- truekeep:end")[0],
    }[shape]
    place.leave(a_handoff(content=a_card(body=f"The proxy listens on 9443.\n\n{text}")))
    place.ingest()
    assert set(place.outcomes().values()) == {"review"}
    assert "own-words" in place.codes()


def test_a_log_leaves_it_out(place: Place) -> None:
    with place.open() as workspace:
        brief = a_brief(workspace)
        left = workspace.checkpoint(Checkpoint(summary=f"Moved the proxy.\n{brief}\nIt works."))
        (path,) = left.paths
        assert any("truekeep itself" in note for note in left.notes)
        text = (place.workspace / path).read_text()
        assert "Moved the proxy." in text
        assert "It works." in text
        assert "Shared memory" not in text
        with pytest.raises(BadInput, match="says nothing"):
            workspace.checkpoint(Checkpoint(summary=brief))
