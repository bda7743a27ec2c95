"""Recovery of a batch that a killed run left: every state that its files may be in, without killing anything.

tests/robustness/test_crash.py kills real runs at every call. Here the state is made by hand, so each decision of the
recovery has a test of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from truekeep.core import file_io
from truekeep.core.errors import EditedSince, StorageFailed
from truekeep.memory.ledger import Ledger, LedgerEntry
from truekeep.memory.staging import Change, MemoryFiles, Staging
from truekeep.memory.transaction import EditedMeanwhile, MemoryTransaction, WriteRefused, while_edited

AT = "2026-11-15T12:00:00Z"
ENTRY = LedgerEntry(at=AT, verb="written", actor="me")


class Books:
    """A memory of two cards, its ledger, and a batch that changes both and makes a third."""

    def __init__(self, top: Path) -> None:
        self.top = top / "workspace"
        (self.top / "cards").mkdir(parents=True)
        self.write("cards/a.md", "a before\n")
        self.write("cards/b.md", "b before\n")
        self.vault = MemoryFiles(str(self.top))
        self.ledger = Ledger(str(top / "ledger.sqlite"))
        self.transaction = MemoryTransaction(self.vault, self.ledger)
        self.batch = 0

    def write(self, path: str, text: str) -> None:
        (self.top / path).write_text(text)

    def read(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.top)): path.read_text() for path in sorted(self.top.rglob("*")) if path.is_file()
        }

    def staged(self) -> Staging:
        staging = Staging(self.vault)
        for name in "abc":
            staging.put(f"cards/{name}.md", f"{name} after\n".encode(), 0)
        return staging

    def begin(self, *, whole: bool) -> list[Change]:
        """As far as a run that was killed right after the ledger had the batch."""
        changes = self.staged().changes()
        self.batch = self.ledger.begin(changes, [ENTRY], (), (), at=AT, whole=whole)
        return changes


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    made = Books(tmp_path)
    yield made
    made.ledger.close()
    made.vault.close()


BEFORE = {"cards/a.md": "a before\n", "cards/b.md": "b before\n"}
AFTER = {"cards/a.md": "a after\n", "cards/b.md": "b after\n", "cards/c.md": "c after\n"}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_a_killed_batch_is_finished(books: Books, whole: bool, written: int) -> None:
    changes = books.begin(whole=whole)
    books.vault.apply(changes[:written])
    assert books.transaction.recover() == 1
    assert books.read() == AFTER
    assert not books.ledger.pending()
    assert books.transaction.recover() == 0
    for path, text in AFTER.items():
        assert books.ledger.content(path) == text.encode()


@pytest.mark.parametrize("written", [0, 1, 3])
def test_an_edit_undoes_a_batch_that_is_whole(books: Books, written: int) -> None:
    changes = books.begin(whole=True)
    books.vault.apply(changes[:written])
    books.write("cards/b.md", "b by hand\n")
    assert books.transaction.recover() == 1
    assert books.read() == BEFORE | {"cards/b.md": "b by hand\n"}
    assert not books.ledger.pending()
    assert books.ledger.content("cards/a.md") is None, "as if the batch had never been"


@pytest.mark.parametrize("written", [0, 1, 3])
def test_an_edit_keeps_its_file_and_no_other(books: Books, written: int) -> None:
    changes = books.begin(whole=False)
    books.vault.apply(changes[:written])
    books.write("cards/b.md", "b by hand\n")
    assert books.transaction.recover() == 1
    assert books.read() == AFTER | {"cards/b.md": "b by hand\n"}
    assert books.ledger.content("cards/a.md") == b"a after\n"
    assert books.ledger.content("cards/b.md") != b"b after\n"


@pytest.mark.parametrize("written", [0, 2])
def test_a_batch_that_is_being_called_off_goes_back(books: Books, written: int) -> None:
    changes = books.begin(whole=True)
    books.vault.apply(changes[:written])
    books.ledger.mark_for_rollback(books.batch)
    assert books.transaction.recover() == 1
    assert books.read() == BEFORE
    assert not books.ledger.pending()


def test_half_of_an_exchange_that_holds_an_edit_goes_back_to_its_place(books: Books) -> None:
    """Killed between the two halves: the file is the new one, and the edit lies beside it."""
    changes = books.begin(whole=False)
    books.vault.apply(changes)
    books.write(f"cards/{file_io.temporary_name('a.md')}", "a by hand\n")
    assert books.transaction.recover() == 1
    assert books.read() == AFTER | {"cards/a.md": "a by hand\n"}


@pytest.mark.parametrize("text", ["a before\n", "a after\n"])
def test_what_lies_beside_a_file_and_is_ours_is_removed(books: Books, text: str) -> None:
    changes = books.begin(whole=False)
    books.vault.apply(changes)
    books.write(f"cards/{file_io.temporary_name('a.md')}", text)
    assert books.transaction.recover() == 1
    assert books.read() == AFTER


def test_something_else_in_the_place_of_a_file_stays(books: Books) -> None:
    books.begin(whole=False)
    (books.top / "cards/a.md").unlink()
    (books.top / "cards/a.md").symlink_to("b.md")
    assert books.transaction.recover() == 1
    assert (books.top / "cards/a.md").is_symlink()
    assert (books.top / "cards/b.md").read_text() == "b after\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_refuses_the_whole_batch(books: Books) -> None:
    (books.top / "cards").chmod(0o500)
    try:
        with pytest.raises(WriteRefused) as refused:
            books.transaction.commit(books.staged(), [ENTRY], at=AT)
        assert refused.value.path == "cards/a.md"
        with pytest.raises(StorageFailed, match=r"cards/a\.md cannot be written: Permission denied"):
            books.transaction.act(books.staged(), ENTRY)
    finally:
        (books.top / "cards").chmod(0o700)
    assert books.read() == BEFORE
    assert not books.ledger.pending()


def test_an_edit_after_the_look_is_kept_and_told(books: Books) -> None:
    staging = books.staged()
    staging.changes()
    books.write("cards/b.md", "b by hand\n")
    with pytest.raises(EditedMeanwhile) as edited:
        books.transaction.commit(staging, [ENTRY], at=AT)
    assert edited.value.paths == ("cards/b.md",)
    assert str(edited.value) == "cards/b.md"
    assert books.read() == BEFORE | {"cards/b.md": "b by hand\n"}
    with pytest.raises(EditedSince, match=r"cards/b\.md changed just now; that edit was kept"):
        books.transaction.act(staging, ENTRY)


def test_a_file_that_was_only_saved_again_is_no_edit(books: Books) -> None:
    staging = books.staged()
    staging.changes()
    books.write("cards/b.md", "b before\n")
    books.transaction.commit(staging, [ENTRY], at=AT)
    assert books.read() == AFTER
    assert not books.ledger.pending()
    assert books.ledger.content("cards/b.md") == b"b after\n"


@pytest.mark.parametrize("whole", [True, False])
def test_a_batch_is_on_the_disk_and_in_the_ledger(books: Books, whole: bool) -> None:
    stamps = books.transaction.commit(books.staged(), [ENTRY], at=AT, whole=whole)
    assert set(stamps) == set(AFTER)
    assert books.read() == AFTER
    assert not books.ledger.pending()
    for path, text in AFTER.items():
        assert books.ledger.content(path) == text.encode()


def test_what_changes_for_ever_is_told_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.memory.transaction.EDIT_PATIENCE", 0.0)
    calls = []

    def act() -> None:
        calls.append(1)
        raise file_io.ChangedSince("notes.md")

    with pytest.raises(EditedSince, match=r"notes.md changed while it was read; nothing was written"):
        while_edited(act)
    assert calls


def test_what_is_quiet_again_is_done() -> None:
    answers: list[Exception | str] = [file_io.ChangedSince("notes.md"), EditedSince("changed"), "done"]

    def act() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert while_edited(act) == "done"
