"""The durability filter of the founding documents: each NO stops, each YES passes; at ingest, a person is asked."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_card, a_handoff
from truekeep.handoffs.policy.instructed import find_instruction, read_instructions
from truekeep.text.durability import NOT_DURABLE, find_hints

SAMPLES = tomllib.loads((Path(__file__).parents[1] / "samples/durability/sentences.toml").read_text(encoding="utf-8"))
HALVES = ("tuning", "held out")
KINDS = ("code-layout", "git-history", "fix-recipe", "task-state", "config-preference")
MIN_RECALL = 0.85
MAX_STOPPED = 0.03


def half_of(sentence: str) -> str:
    return HALVES[int(hashlib.sha256(sentence.encode()).hexdigest()[-1], 16) >= 8]


def sentences(kind: str, half: str) -> list[str]:
    return [sentence for sentence in SAMPLES[kind] if half_of(sentence) == half]


def is_stopped(sentence: str) -> bool:
    return any(hint.code in NOT_DURABLE for hint in find_hints([(1, f"- {sentence}")]))


def test_there_are_enough_sentences() -> None:
    instructed = SAMPLES["instructed"]
    count = sum(len(SAMPLES[kind]) for kind in (*KINDS, "yes"))
    assert count + len(instructed["repeats"]) + len(instructed["differs"]) >= 200


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_durability_filter_no(kind: str, half: str) -> None:
    stopped = [is_stopped(sentence) for sentence in sentences(kind, half)]
    assert sum(stopped) >= MIN_RECALL * len(stopped)


@pytest.mark.parametrize("half", HALVES)
def test_durability_filter_yes(half: str) -> None:
    stopped = [sentence for sentence in sentences("yes", half) if is_stopped(sentence)]
    assert len(stopped) <= MAX_STOPPED * len(sentences("yes", half)), stopped


@pytest.mark.parametrize("half", HALVES)
def test_durability_filter_no_already_in_claude_md(half: str) -> None:
    instructed = SAMPLES["instructed"]
    said = list(read_instructions("CLAUDE.md", instructed["file"]))
    repeats = [find_instruction(text, said) for text in instructed["repeats"] if half_of(text) == half]
    differs = [text for text in instructed["differs"] if half_of(text) == half and find_instruction(text, said)]
    assert sum(line is not None for line in repeats) >= MIN_RECALL * len(repeats)
    assert differs == []


@pytest.mark.parametrize(
    ("sentence", "code", "place_for_it"),
    [
        ("The user prefers tabs over spaces.", "config-preference", "settings file"),
        ("We fixed the bug by checking for null first.", "fix-recipe", "in the code"),
        ("We're currently debugging the importer, the next step is to bisect.", "task-state", "task list"),
        ("The card gateway.md is wrong.", "about-memory", "correct the card"),
        ("The old memory about the gateway's port is out of date.", "about-memory", "correct the card"),
    ],
)
def test_durability_filter_on_handoffs(place: Place, sentence: str, code: str, place_for_it: str) -> None:
    place.leave(a_handoff(facts=f"- {sentence}", content=a_card(topic="Note", body=f"- {sentence}")))
    assert place.ingest().count("review") == 1
    (found,) = [item for item in place.filed[-1].findings if item.code == "not-durable"]
    assert sentence[:20] in found.message
    assert place_for_it in found.message
    assert code in place.codes()


def test_durability_filter_lets_a_handoff_pass_that_is_mostly_durable(place: Place) -> None:
    durable = "- The vendor counts a failed request against the quota.\n- Retries are capped at three, so plan for it."
    body = f"{durable}\n- TODO: ask the vendor for a higher limit"
    place.leave(a_handoff(facts=durable, content=a_card(topic="Vendor quota", body=body)))
    assert place.ingest().count("promoted") == 1
    assert "task-state" in place.codes()


def test_conversation_context_is_not_saved(place: Place) -> None:
    said = "We're currently debugging X, the next step is Y."
    place.leave(a_handoff(facts=f"- {said}", content=a_card(topic="Debugging", body=said)))
    place.ingest()
    assert place.cards() == []


def test_already_in_the_user_s_own_claude_md(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    home = place.base / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/CLAUDE.md").write_text("- Use pnpm, never npm.\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    said = "- Always use pnpm, never npm."
    place.leave(a_handoff(facts=said, content=a_card(topic="Package manager", body=said)))
    assert place.ingest().count("review") == 1
    assert any("~/.claude/CLAUDE.md" in item.message for item in place.filed[-1].findings)
