"""Rows of the founding documents that were found by trying: small things that did not work as asked."""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import Place, git_repo, run_cli
from truekeep.core.errors import EditedSince
from truekeep.core.file_io import ChangedSince
from truekeep.memory import transaction
from truekeep.sessions.checkpoint import from_values

TODAY = "memory/2026-11-15.md"


class Gateway(threading.Thread):
    """Appends to today's log, as OpenClaw's gateway does while truekeep writes to it."""

    def __init__(self, log: Path) -> None:
        super().__init__(daemon=True)
        self.log, self.count, self.is_done = log, 0, False

    def run(self) -> None:
        while not self.is_done:
            with open(self.log, "a") as file:
                file.write(f"- gateway {self.count}\n")
            self.count += 1
            time.sleep(0.01)


def test_log_tries_again_when_the_gateway_has_just_appended(place: Place) -> None:
    log = place.workspace / TODAY
    log.write_text("# 2026-11-15\n")
    gateway = Gateway(log)
    gateway.start()
    try:
        for number in range(20):
            with place.open() as workspace:
                workspace.sessions.checkpoint(from_values({"summary": f"mine {number}."}), root=None, writer="")
    finally:
        gateway.is_done = True
        gateway.join()
    text = log.read_text()
    assert [f"mine {number}." in text for number in range(20)] == [True] * 20
    assert text.count("- gateway ") == gateway.count


def test_log_gives_up_with_a_plain_error_at_last(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "EDIT_PATIENCE", -1.0)
    log = place.workspace / TODAY
    log.write_text("# 2026-11-15\n")
    told = [ChangedSince(TODAY), EditedSince("x", hint="y")]

    def act() -> None:
        raise told.pop(0)

    for _ in range(2):
        with pytest.raises(EditedSince):
            transaction.while_edited(act)


def test_a_topic_of_two_repositories_is_adopted_for_both(place: Place, own_home: Path) -> None:
    for name, rule in (("foo", "a ticket in brackets"), ("bar", "the module that changed, and never a ticket")):
        repo = git_repo(place.base / "repos" / name, remote=f"https://git.example/acme/{name}.git")
        folder = own_home / ".claude/projects" / re.sub("[^A-Za-z0-9]", "-", str(repo)) / "memory"
        folder.mkdir(parents=True)
        front = f"---\nname: Commits\ndescription: commits of {name}\ntype: feedback\n---\n"
        (folder / "commits.md").write_text(f"{front}Subjects begin with {rule}.\n")
    now = datetime.now(UTC)
    with place.open(now=now) as workspace:
        done, _ = workspace.handoffs.adopt("claude")
    assert [item.outcome for item in done] == ["left", "left"]
    place.ingest(now=now)
    assert [item.outcome for item in place.filed] == ["promoted", "promoted"], place.codes()
    assert place.cards() == ["bar-commits.md", "foo-commits.md"]


@pytest.mark.parametrize(("age", "is_left"), [(6, True), (7, False), (8, False)])
def test_an_entry_of_seven_days_is_said_to_be_that(place: Place, age: int, is_left: bool) -> None:
    day = (datetime.now(UTC) - timedelta(days=age)).date()
    (place.workspace / f"memory/{day}.md").write_text(f"# {day}\n\n- [note|i=0.2] The port was 7100.\n")
    done = run_cli("tidy", "decay", "-w", str(place.workspace))
    assert ("contextual, 7 days ago or more" in done.stdout) is not is_left
    assert "more than 7 days" not in done.stdout


@pytest.mark.parametrize("embedder", ["none", "static"])
def test_index_does_not_say_that_it_is_yet_to_be_done(place: Place, embedder: str) -> None:
    (place.workspace / TODAY).write_text("# 2026-11-15\n\nThe port is 7100.\n")
    other = "static" if embedder == "none" else "none"
    place.configure(f'[recall]\nembedder = "{other}"\n')
    with place.open() as workspace:
        workspace.search.index()
    place.configure(f'[recall]\nembedder = "{embedder}"\n')
    with place.open() as workspace:
        done = workspace.search.index()
    assert (done.rebuilt, done.notes) == ("the embedder changed", ())
