"""The second document, "The write loop" (frontmatter) and "The decay loop"."""

from __future__ import annotations

from tests.support.helpers import NOW, Place, a_card
from tests.support.histories import NAME, History
from tests.support.memories import lend_lexicon, remember, search
from tests.support.upkeep_place import put, write_card
from truekeep.workspace.check import OK, CheckContext
from truekeep.workspace.memory_checks import check_lines


def test_frontmatter_without_category_and_tags_is_told(place: Place) -> None:
    """Frontmatter every card. Minimum: topic, category, tags, created, updated."""
    put(place, "memory/cards/bare.md", "---\ntopic: Bare\ncreated: 2026-11-01\nupdated: 2026-11-01\n---\n\nText.\n")
    with place.open() as workspace:
        (problem,) = workspace.maintenance.survey().problems(NOW.date())
        result = check_lines(CheckContext(place.workspace, now=lambda: NOW, workspace=workspace))
    assert (problem.code, problem.what) == ("bare-frontmatter", "its frontmatter has no category and no tags")
    assert (result.severity, result.said) == (OK, "1 card without category or tags (`truekeep status problems`)")


def test_a_card_of_one_refuted_sentence_is_proposed_to_be_dropped(place: Place) -> None:
    """If a memory contradicts current code or git log, the memory is wrong. Update or delete."""
    history = History()
    history.commit("2026-01-05", {"src/dead.py": "DEAD = 1\n", "a.py": "A = 1\n"})
    history.commit("2026-06-01", {"src/dead.py": None})
    history.write(place.repo)
    card = write_card(place, "dead", "The importer is `src/dead.py`.", topic="Importer", repository=NAME)
    put(place, "MEMORY.md", "# Memory\n\n## Cards\n\n- [Importer](memory/cards/dead.md)\n")
    with place.open() as workspace:
        workspace.verification.repair(workspace.verification.verify(["memory/cards/dead.md"]))
        (draft,) = workspace.review.drafts()
        workspace.review.approve(draft.id)
    assert not card.exists()
    assert "dead.md" not in place.index()


def test_what_was_repaired_is_not_proposed_for_deletion(place: Place) -> None:
    """When verify-before-recommend catches a memory that's wrong (path renamed), update the card immediately."""
    history = History()
    history.commit("2026-01-05", {"src/runner.js": "function embeddedRunner() {\n  return 1;\n}\n", "a.js": "1\n"})
    history.commit("2026-06-01", renames={"src/runner.js": "lib/runner.js"})
    history.write(place.repo)
    card = write_card(place, "runner", "The runner is `embeddedRunner` in `src/runner.js`.", repository=NAME)
    with place.open() as workspace:
        workspace.verification.repair(workspace.verification.verify(["memory/cards/runner.md"]))
    assert "`lib/runner.js`" in card.read_text()
    assert place.drafts() == []


def test_the_older_of_two_values_is_not_first_without_a_word(place: Place) -> None:
    """The dates are how the trust hierarchy resolves "recent vs older"."""
    lend_lexicon(place)
    write_card(place, "gateway", "The gateway listens on port 7204.", topic="Gateway", day="2026-10-14")
    write_card(place, "gateway-port", "The gateway listens on port 7500.", topic="Gateway port", day="2026-11-15")
    (note,) = search(place, "gateway port").notes
    assert "7500 in memory/cards/gateway-port.md (2026-11-15), 7204 in memory/cards/gateway.md (2026-10-14)" in note


def test_a_line_of_the_index_does_not_hide_its_card(place: Place) -> None:
    """Cards: highest among memory stores. Index: pointer only - never the source of truth for content."""
    lend_lexicon(place)
    remember(place, "memory/cards/backup.md", a_card("Backups", "Backups run at two at night on the big machine."))
    remember(place, "MEMORY.md", "# Memory\n\nBackups run at two at night on the big machine.\n")
    assert search(place, "when do backups run").hits[0].path == "memory/cards/backup.md"
    assert [hit.path for hit in search(place, "when do backups run", stores=("cards",)).hits] == [
        "memory/cards/backup.md"
    ]
