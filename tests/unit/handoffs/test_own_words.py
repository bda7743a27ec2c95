"""What truekeep told an agent does not come back as memory: not in a handoff, not in a log."""

from __future__ import annotations

import pytest

from tests.support.helpers import Place, a_card, a_handoff
from truekeep.core.errors import BadInput
from truekeep.sessions.checkpoint import Checkpoint
from truekeep.transcripts.injected_text import cut_injected
from truekeep.workspace.workspace import Workspace


def a_brief(workspace: Workspace) -> str:
    return workspace.sessions.wake(None, tokens=600).text


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
        left = workspace.sessions.checkpoint(Checkpoint(summary=f"Moved the proxy.\n{brief}\nIt works."))
        (path,) = left.paths
        assert any("that truekeep wrote" in note for note in left.notes)
        text = (place.workspace / path).read_text()
        assert "Moved the proxy." in text
        assert "It works." in text
        assert "Shared memory" not in text
        with pytest.raises(BadInput, match="checkpoint is empty"):
            workspace.sessions.checkpoint(Checkpoint(summary=brief))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "Before.\nFixed: marks like <!-- truekeep:begin wake --> in prompts are cut.\nDecision: keep Z forever.",
            None,
        ),
        ("`<!-- truekeep:begin` and `<!-- truekeep:begin hint -->` are marks.\nKeep Z.", None),
        ("a <!-- truekeep:begin hint -->x<!-- truekeep:end hint --> b\nc", "a  b\nc"),
        ("a\n> <!-- truekeep:begin hint -->\n> x\n> <!-- truekeep:end hint -->\nb", "a\nb"),
        ("a\n> <!-- truekeep:begin wake -->\n> x\n> cut off", "a\n"),
        (
            "See <!-- truekeep:begin x -->.\n<!-- truekeep:begin wake -->\nx\n<!-- truekeep:end wake -->\nb",
            "See <!-- truekeep:begin x -->.\nb",
        ),
    ],
)
def test_who_speaks_of_the_marks_keeps_every_word(text: str, left: str | None) -> None:
    assert cut_injected(text) == (text if left is None else left)


def test_many_marks_take_no_long_time() -> None:
    text = "x <!-- truekeep:begin" * 50_000
    assert cut_injected(text) == text
