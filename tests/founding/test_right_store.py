""" "Remember X" reaches the right store, and who wrote something is right."""

from __future__ import annotations

import pytest

from tests.support.helpers import NOW, Place, a_card, a_handoff
from truekeep.core.machine import running_harness
from truekeep.core.model import WRITERS
from truekeep.handoffs.format import compose_handoff
from truekeep.handoffs.right_store import choose_document
from truekeep.integrations.harnesses.instruction_block import render_rule
from truekeep.integrations.harnesses.plugin_files import PLUGIN_FILES
from truekeep.interfaces.mcp.tools import writer_for
from truekeep.memory.journal import HandoffSource, receive_entry

CASES = [
    ("preference", "Ana wants to be asked before anything is sent to a customer.", "USER.md"),
    ("workflow", "Never deploy on Fridays.", "rules/shop.md"),
    ("workflow", "A release takes the tag from the changelog and builds the wheel from it.", ""),
    ("project-context", "The migration is half done; next step is the users table.", "memory/projects/shop.md"),
    ("project-context", "Staging answers on port 8443 only.", ""),
    ("decision", "We chose Postgres because of its partial indexes.", ""),
]


@pytest.mark.parametrize(("kind", "fact", "document"), CASES)
def test_remember_x_goes_to_the_right_store(kind: str, fact: str, document: str) -> None:
    chosen, _ = choose_document(
        kind, title="A title", summary="", facts=[fact], content=None, repository="git.example/acme/shop"
    )
    assert chosen == document


def test_remember_x_at_ingest_a_preference_goes_to_user_md(place: Place) -> None:
    said = "Ana wants short answers without emojis."
    place.leave(a_handoff(type="preference", facts=f"- {said}", content=a_card(topic="Answers", body=said)))
    assert place.ingest().count("routed") == 1
    assert place.cards() == []
    assert f"### Answers (app)\n\n{said}" in (place.workspace / "USER.md").read_text()


def test_remember_x_rule_and_skill_say_which_store() -> None:
    rule, skill = render_rule([("claude", "x")]), PLUGIN_FILES["skills/memory-handoff/SKILL.md"]
    for text in (rule, skill):
        assert "USER.md" in text
        assert "rules/" in text
        assert "truekeep note project" in text


def test_who_wrote_it_is_right_in_a_shell_of_openclaw(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDECODE", "CODEX_HOME", "CODEX_SANDBOX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENCLAW_SHELL", "exec")
    assert running_harness() == "openclaw"


def test_who_wrote_it_is_right_for_openclaw_over_mcp() -> None:
    assert writer_for("openclaw", WRITERS) == "openclaw"
    assert writer_for("claude-code", WRITERS) == "claude"


def test_who_wrote_it_is_right_for_a_handoff_of_openclaw(place: Place) -> None:
    text = compose_handoff(title="Gateway restarts", facts=["The gateway needs 40 s to restart"], kind="setup")
    with place.open() as workspace:
        workspace.handoffs.write(text, writer="openclaw")
    place.ingest()
    (card,) = place.cards()
    assert "writer: openclaw" in (place.workspace / "memory/cards" / card).read_text()


def test_openclaw_s_own_sessions_make_no_loop(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    said = (place.workspace / "memory/cards/staging-proxy.md").read_text().rpartition("---\n")[2].strip()
    text = compose_handoff(title="Proxy in front of staging", facts=[said], kind="setup")
    with place.open() as workspace:
        workspace.handoffs.write(text, writer="openclaw")
    place.ingest()
    assert place.filed[-1].outcome == "already"
    assert place.cards() == ["staging-proxy.md"]


def test_who_wrote_it_is_right_for_a_person_s_log_on_another_machine() -> None:
    now = NOW.replace(tzinfo=None)
    known = HandoffSource("claude", "git.example/acme/foo", "vm", now, now)
    entry = receive_entry("memory/2026-11-15.md", "### 2026-11-15 11:00, root on vm, foo\n\nThe disk is full.", known)
    assert entry.text.startswith("## 11:00, root on vm, foo\n")


def test_who_wrote_it_is_right_if_another_machine_is_named() -> None:
    now = NOW.replace(tzinfo=None)
    known = HandoffSource("claude", "git.example/acme/foo", "vm", now, now)
    entry = receive_entry("memory/2026-11-15.md", "### 2026-11-15 11:00, ana on desk, foo\n\nThe disk is full.", known)
    assert "claude on vm, foo (says: ana on desk)" in entry.text
