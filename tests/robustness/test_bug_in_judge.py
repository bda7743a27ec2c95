"""A bug that one handoff meets is that handoff's matter alone: it waits for a person, the others are filed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.fuzz_handoffs import judge
from tests.support.helpers import Place, a_card, a_document_handoff, a_handoff
from truekeep.core.errors import InvalidHandoff, StorageFailed
from truekeep.handoffs import format as handoff_format
from truekeep.handoffs.policy import plan
from truekeep.handoffs.policy_store import StoredMemoryView
from truekeep.text import injection

BAD, GOOD = "2026-11-14-0900-bad.md", "2026-11-14-0901-good.md"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def leave_two(place: Place, bad: str = "") -> None:
    place.leave(bad or a_handoff(title="Trips it", card="bad.md", content=a_card(topic="Bad")), BAD)
    place.leave(a_document_handoff(), GOOD)


def trip(patch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException, mark: str = "") -> None:
    """Make a function fail when it is called with something that says so."""
    real = getattr(owner, name)

    def fails(*given: Any, **named: Any) -> Any:
        if not mark or mark in repr(given):
            raise error
        return real(*given, **named)

    patch.setattr(owner, name, fails)


def bugs_log() -> str:
    return (Path.home() / ".local/state/truekeep/bugs.log").read_text()


@pytest.mark.parametrize(
    "document",
    [
        *("memory/٢٠٢٦-١١-١٦.md", "memory/daily/２０２６-11-16.md", "memory/decisions/٢٠٢٦-١١.md"),
        *("memory/decisions/２０２６-１１.md",),
    ],
)
def test_digits_of_another_script_are_no_day(place: Place, document: str) -> None:
    leave_two(place, a_document_handoff(document=document))
    place.ingest()
    assert place.outcomes() == {BAD: "review", GOOD: "routed"}
    assert "bad-document" in place.codes(BAD)
    assert "bug" not in place.codes()


@pytest.mark.parametrize(
    ("owner", "name", "mark"),
    [
        (plan, "parse_handoff", "Trips it"),
        (injection, "find_instructions", "Trips it"),
        (StoredMemoryView, "check_content", "Staging answers"),
        (StoredMemoryView, "find_near", ""),
        (StoredMemoryView, "stage", "promoted"),
    ],
)
def test_a_bug_sends_its_own_handoff_to_review(
    place: Place, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, mark: str
) -> None:
    leave_two(place)
    with monkeypatch.context() as patch:
        trip(patch, owner, name, KeyError("quoted memory"), mark)
        place.ingest()
    assert place.outcomes() == {BAD: "review", GOOD: "routed"}
    (draft,) = place.drafts()
    assert f"bug: truekeep crashed on {BAD} (KeyError)" in draft.read_text()
    assert f" KeyError in handoff {BAD}\n  File " in bugs_log()
    assert "quoted memory" not in bugs_log()
    with place.open() as workspace:
        assert [filing.outcome for _, filing in workspace.review.retry(None)] == ["promoted"]


def test_a_credential_in_it_is_masked_all_the_same(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_two(place, a_handoff(title="Trips it", content=a_card(body=f"The key is {TOKEN} there.")))
    trip(monkeypatch, plan, "parse_handoff", KeyError(), "Trips it")
    place.ingest()
    (draft,) = place.drafts()
    assert place.codes(BAD) == {"bug", "secret"}
    assert TOKEN not in draft.read_text()


def test_what_cannot_be_looked_through_is_not_copied(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.handoffs import draft
    from truekeep.text.secrets import scanner

    leave_two(place, a_handoff(title="Trips it", content=a_card(body=f"The key is {TOKEN} there.")))
    trip(monkeypatch, scanner, "find_secrets", RecursionError(), "Trips it")
    trip(monkeypatch, draft, "mask_secrets", RecursionError(), "Trips it")
    place.ingest()
    assert place.outcomes() == {BAD: "review", GOOD: "routed"}
    assert TOKEN not in place.drafts()[0].read_text()
    assert place.processed() == [BAD, GOOD]


def test_a_draft_that_cannot_be_written_leaves_its_handoff_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.handoffs import ingest

    leave_two(place)
    trip(monkeypatch, plan, "parse_handoff", KeyError(), "Trips it")
    trip(monkeypatch, ingest, "render_draft", KeyError())
    place.ingest()
    assert place.outcomes() == {BAD: "failed", GOOD: "routed"}
    assert place.waiting() == [BAD]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), SystemExit()])
def test_what_is_no_bug_passes(place: Place, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    leave_two(place)
    trip(monkeypatch, plan, "parse_handoff", error, "Trips it")
    with pytest.raises(type(error)):
        place.ingest()
    assert place.waiting() == [BAD, GOOD]


@pytest.mark.parametrize("error", [apsw.FullError("full"), StorageFailed("no room")])
def test_a_fault_of_the_store_is_not_a_handoffs(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    leave_two(place)
    trip(monkeypatch, StoredMemoryView, "find_near", error)
    with pytest.raises(StorageFailed):
        place.ingest()
    assert place.waiting() == [BAD, GOOD]
    assert place.drafts() == []


def test_damage_in_the_ledger_is_not_a_handoffs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.memory.ledger import Ledger

    place.leave(a_handoff())
    place.ingest()
    place.leave(a_handoff(action="update-card", content=a_card(body="Staging answers on port 8444 only.")), BAD)
    code = compile(
        "def content(self, path):\n    raise UnicodeDecodeError('utf-8', b'', 0, 1, 'damaged')\n", "x", "exec"
    )
    scope: dict[str, Any] = {"__name__": "truekeep.memory.ledger"}
    exec(code, scope)
    monkeypatch.setattr(Ledger, "content", scope["content"])
    (place.workspace / "memory/cards/staging-proxy.md").write_text(place.card() + "By hand.\n")
    with pytest.raises(UnicodeDecodeError):
        place.ingest()
    assert place.drafts() == []


def test_lint_and_new_name_the_bug(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    trip(monkeypatch, plan, "parse_handoff", KeyError(), "Trips it")
    trip(monkeypatch, handoff_format, "parse_handoff", KeyError(), "Trips it")
    bad, good = a_handoff(title="Trips it").encode(), a_document_handoff().encode()
    with place.open() as workspace:
        first, second = workspace.handoffs.lint([(bad, BAD, place.repo), (good, GOOD, place.repo)])
        assert (first.outcome, second.outcome) == ("review", "routed")
        with pytest.raises(InvalidHandoff) as refused:
            workspace.handoffs.write(bad.decode(), writer="claude", root=place.repo)
    assert [finding.code for finding in refused.value.findings] == ["bug"]


def test_no_bent_handoff_meets_a_bug(place: Place) -> None:
    filings = judge(place, 20261117, 600)
    assert len({filing.outcome for filing in filings}) >= 3
    assert [found for filing in filings for found in filing.findings if found.code == "bug"] == []
