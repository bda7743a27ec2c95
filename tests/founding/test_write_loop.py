"""The write loop of the founding documents, on the path by which cards really come: handoffs."""

from __future__ import annotations

import pytest

from tests.support.helpers import CODEX, Place, a_card, a_handoff, git_repo
from truekeep.handoffs.format import compose_handoff
from truekeep.workspace.handoff_files import write_handoff

N8N = (
    (
        "n8n workflow_history gotcha",
        "n8n runs the copy of a workflow in workflow_history, so editing workflow_entity by SQL changes nothing",
    ),
    (
        "Editing n8n workflows in the database",
        "After an UPDATE of workflow_entity, n8n still executes the old version from workflow_history",
    ),
    (
        "n8n ignores direct edits of workflow_entity",
        "Direct SQL edits to workflow_entity are ignored by n8n: the active version is read from workflow_history",
    ),
    (
        "workflow_history must be updated with workflow_entity",
        "When a workflow of n8n is patched by SQL, change workflow_history as well, or the old nodes run",
    ),
)
NEIGHBOURS = (
    ("n8n webhooks", "n8n webhook URLs need the trailing slash behind the proxy"),
    ("n8n credentials", "n8n encrypts credentials with N8N_ENCRYPTION_KEY, which a new container must be given"),
    ("Order history", "The audit trigger writes each UPDATE of orders into orders_history"),
)


def leave(place: Place, number: int, title: str, *facts: str) -> None:
    text = compose_handoff(title=title, facts=facts, kind="research")
    place.leave(text, f"2026-11-14-09{number:02}-handoff.md")


def file_each(place: Place, handoffs: tuple[tuple[str, str], ...], *, start: int = 0) -> list[str]:
    outcomes = []
    for number, (title, fact) in enumerate(handoffs, start=start):
        leave(place, number, title, fact)
        place.ingest()
        outcomes.append(place.filed[-1].outcome)
    return outcomes


def test_write_loop_on_the_path_by_which_cards_really_come(place: Place) -> None:
    assert file_each(place, N8N) == ["promoted"] * 4
    (card,) = place.cards()
    text = (place.workspace / "memory/cards" / card).read_text()
    assert all(fact in text for _, fact in N8N), "nothing is dropped"
    assert (place.workspace / "MEMORY.md").read_text().count(card) == 1


def test_write_loop_in_one_batch(place: Place) -> None:
    for number, (title, fact) in enumerate(N8N):
        leave(place, number, title, fact)
    place.ingest()
    assert len(place.cards()) == 1


def test_write_loop_never_merges_a_neighbour(place: Place) -> None:
    file_each(place, N8N[:1])
    assert file_each(place, NEIGHBOURS, start=10) == ["promoted"] * 3
    assert len(place.cards()) == 4


def test_write_loop_asks_where_it_is_only_likely(place: Place) -> None:
    leave(place, 1, "Deploying to Railway", "Railway cannot use file dependencies; publish the package or inline it")
    place.ingest()
    leave(place, 2, "Railway packages and file dependencies", "Inline or publish a package before a Railway deploy")
    place.ingest()
    (found,) = [item for item in place.filed[-1].findings if item.code in ("likely-covered", "added-to")]
    assert place.cards()[0] in found.message


@pytest.mark.parametrize("title", [N8N[1][0], N8N[0][0]])
def test_handoff_new_names_the_card_that_exists(place: Place, title: str) -> None:
    file_each(place, N8N[:1])
    (card,) = place.cards()
    text = compose_handoff(title=title, facts=[N8N[1][1]], kind="research")
    with place.open() as workspace:
        written = write_handoff(workspace, text, writer="claude", root=place.repo, title=title)
    assert f"memory/cards/{card}" in written.decision.promise


def test_update_card_from_another_repository_adds_and_drops_nothing(place: Place) -> None:
    other = git_repo(place.base / "repos" / "bar", remote="https://git.example/acme/bar.git")
    place.leave(a_handoff())
    place.ingest()
    said = a_card(body="The staging proxy closes idle connections after 60 seconds.")
    text = a_handoff(action="update-card", content=said)
    (other / ".claude/memory-handoffs").mkdir(parents=True)
    (other / ".claude/memory-handoffs/2026-11-15-0900-proxy.md").write_text(text)
    place.ingest()
    assert place.filed[-1].outcome == "promoted"
    card = (place.workspace / "memory/cards/staging-proxy.md").read_text()
    assert "Staging answers on port 8443 only." in card
    assert "after 60 seconds" in card
    assert "repository: app" in card


def test_update_card_from_another_writer_waits_if_it_conflicts(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    text = a_handoff(action="update-card", content=a_card(body="Staging answers on port 9443 only."))
    inbox = place.repo / CODEX
    inbox.mkdir(parents=True)
    (inbox / "2026-11-15-0900-proxy.md").write_text(text)
    place.ingest()
    assert place.filed[-1].outcome == "review"
    (found,) = [item for item in place.filed[-1].findings if item.code == "two-values"]
    assert "9443" in found.message
    assert "8443" in found.message


def test_reconcile_3_a_handoff_that_disagrees_with_a_card_waits_with_both_lines(place: Place) -> None:
    leave(place, 1, "Gateway port", "The gateway listens on port 7204")
    place.ingest()
    leave(place, 2, "Where the gateway answers", "The gateway listens on port 7500")
    place.ingest()
    assert place.filed[-1].outcome == "review"
    (found,) = [item for item in place.filed[-1].findings if item.code == "two-values"]
    assert "listens on port 7500" in found.message
    assert "memory/cards/gateway-port.md:" in found.message
    assert "listens on port 7204" in found.message


def test_tidy_duplicates_sees_all_four(place: Place) -> None:
    for number, (topic, fact) in enumerate(N8N):
        path = place.workspace / f"memory/cards/n8n-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(a_card(topic=topic, body=f"- {fact}"))
    for number, (topic, fact) in enumerate(NEIGHBOURS):
        (place.workspace / f"memory/cards/other-{number}.md").write_text(a_card(topic=topic, body=f"- {fact}"))
    with place.open() as workspace:
        found = workspace.maintenance.duplicates(dry_run=True)
    named = {path for double in found.doubles for path in (double.one, double.other)}
    assert named == {f"memory/cards/n8n-{number}.md" for number in range(4)}


@pytest.mark.parametrize("policy", ["review", "promote"])
def test_additions_follow_the_policy(place: Place, policy: str) -> None:
    place.configure(f'[policy]\nadded-to = "{policy}"\n')
    outcomes = file_each(place, N8N[:2])
    assert outcomes == ["promoted", "promoted" if policy == "promote" else "review"]
