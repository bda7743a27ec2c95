"""A run as its users see it: counts, idempotence, dry runs, provenance, the index, one writer."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import CODEX, NOW, Place, a_card, a_document_handoff, a_handoff, git_repo, run_cli, tree
from truekeep.core import file_io
from truekeep.core.errors import BadSetup, NotCanonical, StorageFailed
from truekeep.core.repository import parse_remote
from truekeep.memory.transaction import MemoryTransaction
from truekeep.workspace.workspace import Workspace


def leave_three(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-14-0900-card.md")
    place.leave(a_document_handoff(), "2026-11-14-0901-document.md", inbox=place.repo / CODEX)
    place.leave("# no handoff\n", "2026-11-14-0902-doubt.md")


def test_a_run_files_routes_and_sets_aside(place: Place) -> None:
    leave_three(place)
    report = place.ingest()
    assert report.processed == 3
    assert (report.count("promoted"), report.count("routed"), report.count("review")) == (1, 1, 1)
    assert place.waiting() == []
    assert place.processed() == ["2026-11-14-0900-card.md", "2026-11-14-0902-doubt.md"]
    assert place.ingest().processed == 0


def test_the_card_carries_its_origin_and_has_one_index_line(place: Place) -> None:
    git_repo(place.repo, remote="git@github.com:me/app.git")
    place.leave(a_handoff(), inbox=place.repo / CODEX)
    place.ingest()
    card = place.card()
    assert "created: 2026-11-14\nupdated: 2026-11-14\nrepository: github.com/me/app\nwriter: codex\n---\n" in card
    assert place.index() == "# Memory\n\n## Cards\n\n- [Proxy in front of staging](memory/cards/staging-proxy.md)\n"


def test_an_index_line_that_a_person_moved_is_found_again(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    moved = "# Memory\n\n## Mine\n\n- proxy: see [it](memory/cards/staging-proxy.md)\n"
    (place.workspace / "MEMORY.md").write_text(moved)
    place.leave(
        a_handoff(
            action="update-card", content=a_card(topic="New topic", body="Staging answers on port 8443 only, yes.")
        ),
        "2026-11-15-0900-b.md",
    )
    assert place.ingest().count("promoted") == 1
    assert place.index() == moved


def test_a_lost_index_line_comes_back_when_the_card_is_handed_in_again(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    (place.workspace / "MEMORY.md").write_text("# Memory\n")  # by a person, who wants no line
    place.leave(a_handoff(title="Again"), "2026-11-14-1000-again.md")
    assert place.ingest().count("already") == 1
    assert place.index() == "# Memory\n"
    (place.workspace / "MEMORY.md").unlink()
    place.leave(a_handoff(title="Once more"), "2026-11-14-1100-again.md")
    assert place.ingest().count("already") == 1
    assert "staging-proxy.md" in place.index()


def test_a_dry_run_tells_and_changes_nothing(place: Place) -> None:
    leave_three(place)
    before = tree(place.base)
    report = place.ingest(dry_run=True)
    assert (report.count("promoted"), report.count("routed"), report.count("review")) == (1, 1, 1)
    assert tree(place.base) == before
    assert place.ingest().processed == 3


@pytest.mark.parametrize(
    ("cards", "documents", "promoted", "routed"),
    [(True, False, 1, 0), (False, True, 0, 1), (True, True, 1, 1)],
)
def test_routes_can_be_switched(place: Place, cards: bool, documents: bool, promoted: int, routed: int) -> None:
    leave_three(place)
    report = place.ingest(cards=cards, documents=documents)
    assert (report.count("promoted"), report.count("routed")) == (promoted, routed)
    assert ("route-off" in place.codes()) == (not (cards and documents))


def test_the_workspaces_own_inbox_is_always_scanned(place: Place) -> None:
    place.leave(a_handoff(), inbox=place.workspace / CODEX)
    assert place.ingest().count("promoted") == 1


def test_another_writer_by_name(place: Place) -> None:
    place.configure('[writers]\nopencode = ".opencode/memory-handoffs"\n')
    place.leave(a_handoff(), inbox=place.repo / ".opencode/memory-handoffs")
    place.ingest()
    assert "writer: opencode" in place.card()


def test_the_same_name_in_two_inboxes_is_two_handoffs(place: Place) -> None:
    place.leave(a_handoff())
    place.leave(a_document_handoff(), inbox=place.repo / CODEX)
    assert place.ingest().processed == 2


def test_earlier_names_are_filed_first_whatever_the_inbox(place: Place) -> None:
    update = a_handoff(action="update-card", content=a_card(body="Staging answers on port 8443 only. And by night."))
    place.leave(update, "2026-11-14-1100-b.md")
    place.leave(a_handoff(), "2026-11-14-1000-a.md", inbox=place.repo / CODEX)
    assert place.ingest().count("promoted") == 2
    assert "by night" in place.card()


def test_a_name_used_before_gets_another_in_processed(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    place.leave(a_document_handoff())
    place.ingest()
    first, second = place.processed()
    assert second == "2026-11-14-0900-proxy.md"
    assert first.startswith("2026-11-14-0900-proxy-")


def test_the_budget_of_the_index_is_watched(place: Place) -> None:
    place.configure("[limits]\nindex_lines = 4\n")
    place.leave(a_handoff())
    assert any("MEMORY.md has 5 lines" in warning for warning in place.ingest().warnings)


def test_one_line_a_run_in_the_log(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    place.ingest()
    first, second = (place.workspace / ".truekeep/logs/ingest.log").read_text().splitlines()
    assert first == (
        "2026-11-15T12:00:00Z processed=1 promoted=1 routed=0 already=0 review=0 refused=0 skipped=0 failed=0"
    )
    assert second.endswith("NO_UPDATES")


def test_a_restored_ledger_does_not_file_twice(place: Place) -> None:
    """Without its ledger, ingest still knows from the cards what is filed."""
    leave_three(place)
    place.ingest()
    before = tree(place.workspace)
    for path in (place.workspace / ".truekeep").glob("ledger.sqlite*"):
        path.unlink()
    for path in (place.inbox / "processed").iterdir():
        path.rename(place.inbox / path.name)
    place.ingest()
    assert tree(place.workspace) == before


class TestOneWriter:
    def test_another_machine_is_refused_and_told_where_to_go(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place.leave(a_handoff())
        monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
        with pytest.raises(NotCanonical) as error:
            place.ingest()
        assert "canonical host" in error.value.message
        assert place.waiting() == ["2026-11-14-0900-proxy.md"]

    def test_a_renamed_host_is_still_the_host(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        uname = os.uname()
        renamed = os.uname_result((uname.sysname, "renamed", uname.release, uname.version, uname.machine))
        monkeypatch.setattr("os.uname", lambda: renamed)
        place.leave(a_handoff())
        assert place.ingest().count("promoted") == 1

    def test_every_writing_verb_asks(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        place.leave("# doubt\n")
        place.ingest()
        monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
        (draft,) = place.drafts()
        with place.open() as workspace:
            for act in (
                lambda: workspace.review.approve(draft.stem),
                lambda: workspace.review.reject(draft.stem),
                lambda: workspace.review.retry(None),
                lambda: workspace.handoffs.prune(),
                lambda: workspace.history.undo(1),
            ):
                with pytest.raises(NotCanonical):
                    act()


class TestInit:
    def test_an_existing_workspace_is_adopted_byte_for_byte(self, tmp_path: Path) -> None:
        old = tmp_path / "old"
        (old / "memory/cards").mkdir(parents=True)
        (old / "memory/cards/x.md").write_bytes(b"no frontmatter\r\n")
        (old / "MEMORY.md").write_bytes(b"\xff odd bytes")
        before = tree(old)
        made = Workspace.init(old)
        assert made.is_adopted
        assert tree(old) == before
        assert Workspace.init(old).is_repeated
        assert tree(old, skip=()) == tree(old, skip=())

    def test_repeating_keeps_the_configuration(self, place: Place) -> None:
        before = tree(place.workspace, skip=())
        Workspace.init(place.workspace, repositories=["~/other/*"])
        assert tree(place.workspace, skip=()) == before

    def test_another_machine_cannot_init_it_away(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
        with pytest.raises(NotCanonical):
            Workspace.init(place.workspace)

    def test_no_workspace_is_said_plainly(self, tmp_path: Path) -> None:
        with pytest.raises(BadSetup, match="does not exist"):
            Workspace.open(tmp_path / "none")

    def test_a_newer_format_is_refused(self, place: Place) -> None:
        host = place.workspace / ".truekeep/host"
        host.write_text(host.read_text().replace("format = 1", "format = 2"))
        with pytest.raises(BadSetup, match="format 2"):
            place.open()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("repositories = 3\n", "repositories must be a list"),
        ("polcy = 1\n", "did you mean policy"),
        ('[policy]\nsecret = "promote"\n', "policy.secret cannot be"),
        ('[policy]\nsecrets = "review"\n', "did you mean secret"),
        ('[policy]\nsecret = "drop"\n', "must be"),
        ('[writers]\nx = "../y"\n', "writers.x"),
        ('[writers]\nx = "/y"\n', "writers.x"),
        ('[writers]\n"X Y" = "y"\n', "a writer's name"),
        ("[limits]\nhandoff_bytes = -1\n", "limits.handoff_bytes"),
        ("[limits]\nhandoff_bytes = true\n", "limits.handoff_bytes"),
        ("not toml", "line 1"),
    ],
)
def test_a_broken_configuration_names_every_problem(place: Place, config: str, says: str) -> None:
    place.leave(a_handoff())
    (place.workspace / ".truekeep/config.toml").write_text(config)
    with pytest.raises(BadSetup, match=says):
        place.ingest()
    done = run_cli("ingest", TRUEKEEP_WORKSPACE=str(place.workspace))
    assert done.returncode == 6
    assert says in done.stderr
    assert place.waiting() == ["2026-11-14-0900-proxy.md"]


def test_processed_dates_do_not_come_from_the_future(place: Place) -> None:
    place.leave(a_handoff(), "2031-01-01-0900-later.md")
    place.ingest()
    assert "created: 2026-11-15" in place.card()
    assert "future-date" in place.codes()


def test_a_clock_set_back_changes_nothing_filed(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    before = tree(place.workspace)
    place.leave(a_handoff(title="Again"), "2026-11-14-1000-again.md")
    place.ingest(now=NOW - timedelta(days=800))
    assert tree(place.workspace) == before


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("https://github.com/me/app.git", "github.com/me/app"),
        ("https://bob:pass@w0rd@git.example:8443/acme/a.git", "git.example/acme/a"),
        ("git@github.com:me/app.git", "github.com/me/app"),
        ("bob:pw@h.example:x/y", "h.example/x/y"),
        ("ssh://git@host.example:2222/x/y.git", "host.example/x/y"),
        ("/srv/git/app.git", ""),
        ("file:///srv/git/app.git", ""),
        ("../app", ""),
        ("C:\\repos\\app", "c/\\repos\\app"),
    ],
)
def test_a_remote_is_named_without_user_and_password(remote: str, name: str) -> None:
    assert parse_remote(remote) == name


def test_a_hostile_review_folder_does_not_stop_init(tmp_path: Path) -> None:
    drafts = tmp_path / "old" / "memory" / "handoff-inbox"
    (drafts / "d.md").mkdir(parents=True)
    os.mkfifo(drafts / "f.md")
    (drafts / "l.md").symlink_to("nowhere")
    (drafts / "x.md").write_text("---\ndraft: x\nsha256: " + "z" * 64 + "\n---\n")
    assert Workspace.init(tmp_path / "old").is_adopted


def test_a_sync_of_many_files_that_fails_stores_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        content = a_card(topic=f"Topic {number}", body=f"Fact {number} about thing number {number}")
        place.leave(a_handoff(card=f"c{number}.md", content=content), f"2026-11-14-09{number:02}-c.md")
    before = tree(place.workspace)

    def fails(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "syncfs")

    with monkeypatch.context() as patch:
        patch.setattr(file_io, "can_sync_together", lambda: True)
        patch.setattr(file_io, "sync_together", fails)
        with pytest.raises(StorageFailed):
            place.ingest()
    assert tree(place.workspace) == before
    assert place.ingest().count("promoted") == 40


def test_a_damaged_catalogue_never_costs_the_ledger(place: Place) -> None:
    """Its damage may show only in the middle of a run; it is derived, and the ledger is not to blame."""
    for number in range(60):
        content = a_card(topic=f"Topic {number}", body=f"Fact {number} about the thing with the number {number} in it")
        place.leave(a_handoff(card=f"c{number}.md", content=content), f"2026-11-14-09{number:02}-c.md")
    place.ingest()
    path = place.workspace / ".truekeep" / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    assert len(data) > 5 * 4096
    data[3 * 4096 :] = b"\x5a" * (len(data) - 3 * 4096)
    path.write_bytes(bytes(data))
    place.leave(a_handoff(), "2026-11-15-0900-x.md")
    assert place.ingest().count("promoted") == 1
    assert not list((place.workspace / ".truekeep").glob("*.damaged-*"))


def test_a_new_ledger_does_not_learn_a_secret_from_a_name(place: Place) -> None:
    token = "ghp_" + "a8Kd03mZq91LxPw47Tn2Yc6RvBe5Hs" + "J0uG4f"
    place.leave(a_handoff(), f"{token}.md", inbox=place.inbox / "processed")
    for path in (place.workspace / ".truekeep").glob("ledger.sqlite*"):
        path.unlink()
    place.ingest()
    state = place.workspace / ".truekeep"
    assert not any(token.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_the_index_is_read_once_for_all_batches_and_again_when_a_person_changed_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truekeep.memory import memory_index

    monkeypatch.setattr("truekeep.handoffs.ingest.BATCH", 1)
    read: list[bytes] = []
    real = memory_index.linked_cards

    def counted(data: bytes) -> set[str]:
        read.append(data)
        return real(data)

    monkeypatch.setattr(memory_index, "linked_cards", counted)
    for name in ("a", "b", "c", "d"):
        place.leave(
            a_handoff(title=name, card=f"{name}.md", content=a_card(name, f"All about {name} and nothing else.")),
            f"2026-11-14-090{ord(name) - ord('a')}-{name}.md",
        )
    place.ingest()
    assert len(read) == 1
    index = place.workspace / "MEMORY.md"
    assert [index.read_text().count(f"cards/{name}.md") for name in "abcd"] == [1, 1, 1, 1]

    real_commit = MemoryTransaction.commit
    by_hand = "- my own words for it: [e](memory/cards/f.md)\n"

    def commit(self: MemoryTransaction, *arguments: Any, **options: Any) -> Any:
        done = real_commit(self, *arguments, **options)
        if by_hand not in index.read_text():
            index.write_text(index.read_text() + by_hand)
        return done

    monkeypatch.setattr(MemoryTransaction, "commit", commit)
    for name in ("e", "f"):
        place.leave(
            a_handoff(title=name, card=f"{name}.md", content=a_card(name, f"All about {name} and nothing else.")),
            f"2026-11-14-100{ord(name) - ord('a')}-{name}.md",
        )
    place.ingest()
    assert index.read_text().count("cards/f.md") == 1, "a person pointed at it already"
    assert index.read_text().count("cards/e.md") == 1
