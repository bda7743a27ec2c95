"""Nothing derived from a private file leaves: not in a file, a manifest, a verdict, a name, a count, nor on the way."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

from tests.support.copies import Pair
from tests.support.helpers import Place, a_card, a_handoff, git_repo
from truekeep.handoffs.sync.private_text import MASK
from truekeep.handoffs.sync.publication import HEAD, OBJECTS, UnusablePublication
from truekeep.handoffs.sync.publication_store import Publication
from truekeep.workspace import publishing

DIARY = "memory/diary/salary-of-ada.md"
TEXT = """---
topic: Raise of Ada Lovelace
---

# Raise of Ada Lovelace

The salary of ada is 4711 crowns since the first of November, and nobody in the
team may hear of it before the meeting in Uppsala.

- Safe PIN 9032
- 賞与は十一月の終わりに全員へ支払われる予定です。
"""
SECRETS = ("crowns", "uppsala", "salary-of-ada", "lovelace", "safe pin", "賞与")  # none could be in a digest


@pytest.fixture
def pair(place: Place, tmp_path: Path) -> Pair:
    place.leave(a_handoff())
    place.ingest()
    place.configure('[sync]\nprivate = ["memory/diary/"]\n')
    return Pair(place, tmp_path / "copy")


def bytes_sent(published: Publication) -> str:
    """Everything that leaves, unpacked; with the names that it has."""
    parts = [(published.folder / HEAD).read_bytes()]
    for name in published.objects:
        path = published.folder / OBJECTS / name
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as pack:
                parts += [pack.read(entry) for entry in pack.namelist()]
                parts += [entry.encode() for entry in pack.namelist()]
        else:
            parts.append(zlib.decompress(path.read_bytes()))
    return b"\n".join(parts).decode("utf-8", "replace").casefold()


def check_nothing_left(pair: Pair, published: Publication) -> None:
    sent = bytes_sent(published)
    assert [word for word in SECRETS if word in sent] == []
    pair.receive(published, is_complete=True)
    here = pair.bytes_of_copy().decode("utf-8", "replace").casefold()
    assert [word for word in SECRETS if word in here] == [], "also not in an index"


def test_text_of_a_private_file_stays_wherever_it_is_quoted(pair: Pair) -> None:
    pair.write(DIARY, TEXT)
    line = "The salary of ada is 4711 crowns since the first of November"
    pair.write(
        "memory/cards/a.md", f'---\ntopic: A\n---\n\nKeep this.\nSomebody said: "{line}".\nMore of it.\nThat too.\n'
    )
    pair.write("memory/2026-11-14.md", f"# 2026-11-14\n- [lesson|i=0.9] one\n- two\n> {line.upper()}\n- three\n")
    pair.write(
        "HANDOVER.md", "# Handover\nThe importer.\nthe **salary** of *ada* is `4711`\ncrowns since the first\nEnd.\n"
    )
    pair.write("TOOLS.md", "# Tools\nRun make.\n* safe pin 9032\nnote: Raise of Ada Lovelace\nUse tabs.\n")
    pair.write(
        "memory/ja.md",
        "# 会議\n今日の話。\n先日、賞与は十一月の終わりに全員へ支払われる予定と聞いた。\n以上。\nさようなら。\n",
    )
    pair.write("memory/notes.md", TEXT.replace("4711", "5000").replace("Uppsala", "Lund").replace("9032", "1"))
    (pair.place.workspace / "memory/wide.md").write_bytes(f"# W\r\nkeep\r\n{line}\r\nmore\r\nend\r\n".encode("utf-16"))
    published = pair.publish()
    check_nothing_left(pair, published)
    assert [item.path for item in published.withheld] == ["memory/notes.md"], "an edited copy"
    assert {(item.path, item.lines) for item in published.masked} == {
        ("memory/cards/a.md", (6,)), ("memory/2026-11-14.md", (4,)), ("HANDOVER.md", (3, 4)), ("TOOLS.md", (3, 4)),
        ("memory/ja.md", (3,)), ("memory/wide.md", (3,)),
    }  # fmt: skip
    assert {item.same_as for item in published.masked} == {DIARY}
    memory = pair.memory()
    card = (pair.open().path / "memory/cards/a.md").read_text()
    assert card == f"---\ntopic: A\n---\n\nKeep this.\n{MASK}\nMore of it.\nThat too.\n"
    assert "memory/notes.md" not in memory


def test_a_backup_of_the_users_own_page_keeps_nothing_else_back(pair: Pair) -> None:
    """A USER.md in a folder is private as another person's; what the user's own page says as well is not."""
    own = "# User\n- Ada prefers short answers in plain English\n- Ada works from Uppsala on Mondays and Tuesdays\n"
    pair.write("USER.md", own)
    pair.write("docs/backups/USER.md", own.replace("short", "very short"))
    pair.write("agents/eve/USER.md", "# User\n- Eve wants to be called by her second name\n")
    pair.write(
        "TOOLS.md",
        "# Tools\n- Ada prefers short answers in plain English\n- Eve wants to be called by her second name\n- c\n",
    )
    published = pair.publish()
    pair.receive(published)
    copy = pair.open().path
    assert (copy / "USER.md").read_text() == own
    shown = f"# Tools\n- Ada prefers short answers in plain English\n- {MASK}\n- c\n"
    assert (copy / "TOOLS.md").read_text() == shown
    assert not {"docs/backups/USER.md", "agents/eve/USER.md"} & pair.memory().keys()
    pair.write("USER.md", "# User\n- Ada works from Uppsala on Mondays and Tuesdays\n")
    pair.receive(pair.publish())
    assert (pair.open().path / "TOOLS.md").read_text() == f"# Tools\n- {MASK}\n- {MASK}\n- c\n", (
        "not said there any more"
    )
    pair.write("USER.md", own)
    pair.place.configure('[sync]\nprivate = ["USER.md"]\n')
    pair.receive(pair.publish())
    assert b"Ada prefers" not in pair.bytes_of_copy(), "unless the page itself is private"


def test_lines_and_links_that_name_a_private_file_stay(pair: Pair) -> None:
    pair.write(DIARY, TEXT)
    with (pair.place.workspace / "MEMORY.md").open("a") as index:
        index.write(f"- [Raise]({DIARY}) - what she earns\n  more of the same entry\n- [Gone](memory/diary/gone.md)\n")
    before = (pair.place.workspace / "MEMORY.md").read_text()
    pair.write(
        "memory/one.md", "# One\nSee [[salary-of-ada]], [the raise](diary/salary-of-ada.md#top) and staging.\nb\nc\n"
    )
    pair.write("memory/two.md", "# Two\nIn `~/ws/memory/diary/Salary-of-Ada.md` and salary%2Dof%2Dada.md.\nb\nc\n")
    pair.write("memory/2026-11-01.md", "# a day\npublic\n")
    pair.write("memory/diary/2026-11-01.md", "# a day\nhidden\n")
    pair.write("memory/three.md", "# Three\n[day](2026-11-01.md) and [other](diary/2026-11-01.md), SOUL.md\n")
    published = pair.publish()
    check_nothing_left(pair, published)
    current = pair.open().path
    assert (current / "MEMORY.md").read_text() == before.partition("- [Raise]")[0]
    assert (current / "memory/one.md").read_text() == f"# One\nSee {MASK}, {MASK} and staging.\nb\nc\n"
    assert (current / "memory/three.md").read_text() == f"# Three\n[day](2026-11-01.md) and {MASK}, SOUL.md\n"
    assert published.head.private == 1, "that something stays, and not how much"


def test_verdicts_and_days_are_of_the_lines_that_are_sent(pair: Pair) -> None:
    git_repo(pair.place.repo, remote="https://github.com/me/app.git")
    (pair.place.repo / "loader.py").write_text("def load_cart():\n    return 1\n")
    run = ["git", "-C", str(pair.place.repo), "-c", "user.name=a", "-c", "user.email=a@x"]
    subprocess.run([*run, "add", "loader.py"], check=True)
    subprocess.run([*run, "commit", "-qm", "one"], check=True)
    pair.write(DIARY, TEXT)
    body = "Safe PIN 9032\nCarts are read by `load_cart` in `loader.py`.\nThey are dropped.\nAnd counted.\n"
    pair.place.leave(a_handoff(card="loader.md", title="Loader", content=a_card("Cart loader", body)))
    pair.place.ingest()
    pair.write("memory/ok.md", f"# Ok\nIt is in `{DIARY}`, see `loader.py`.\nx\n")
    with pair.place.open() as workspace:
        workspace.verification.verify()
    published = pair.publish()
    check_nothing_left(pair, published)
    card = "memory/cards/loader.md"
    assert MASK in (pair.open().path / card).read_text()
    checked = pair.open().verification.check(card)
    assert not isinstance(checked, str)
    assert {verdict.claim.text: verdict.verdict for verdict in checked.verdicts}["load_cart"] == "confirmed"
    text = (pair.open().path / card).read_text()
    assert all(text[verdict.claim.start : verdict.claim.end] == verdict.claim.text for verdict in checked.verdicts)
    (hit,) = pair.open().search.find("what reads carts", limit=1).hits
    assert {verdict.claim.text for verdict in hit.verdicts} >= {"load_cart", "loader.py"}


def test_what_had_left_before_a_private_file_said_it_stays_public(pair: Pair) -> None:
    """A diary that quotes a card does not take the card away; one that is new to the list does."""
    fact = "The deploys of the importer wait for the nightly backup job.\n"
    pair.write("memory/fact.md", f"# Fact\n{fact}a\nb\nc\n")
    first = pair.publish()
    pair.write("memory/diary/today.md", f"# Today\n{fact}\nAlso the meeting with the bank was moved to Friday.\n")
    pair.write("memory/later.md", "# Later\nAlso the meeting with the bank was moved to Friday.\na\nb\n")
    second = pair.publish()
    assert [item.path for item in second.masked] == ["memory/later.md"]
    assert second.head.purged == first.head.purged, "nothing that left is private now"
    pair.write("memory/other.md", f"# Other\n{fact}a\nb\n")
    assert [item.path for item in pair.publish().masked] == ["memory/later.md"]
    pair.write("memory/plans.md", f"# Plans\n{fact}and more plans\n")
    pair.publish()
    pair.place.configure('[sync]\nprivate = ["memory/diary/", "memory/plans.md"]\n')
    third = pair.publish()
    assert [item.path for item in third.masked] == ["memory/fact.md", "memory/later.md", "memory/other.md"]
    assert third.head.purged == third.head.sequence
    pair.place.configure('[sync]\nprivate = ["memory/diary/", "memory/plans.md"]\npublic = ["memory/fact.md"]\n')
    assert [item.path for item in pair.publish().masked] == ["memory/later.md", "memory/other.md"]


def test_earlier_text_of_a_private_file_stays_private(pair: Pair) -> None:
    pair.write(DIARY, TEXT)
    pair.publish()
    pair.write(DIARY, "# Nothing\nall is said\n")
    pair.publish()
    pair.write("memory/a.md", "# A\nx\nThe salary of ada is 4711 crowns since the first\ny\n")
    check_nothing_left(pair, pair.publish())
    (pair.place.workspace / DIARY).unlink()
    pair.write("memory/b.md", "# B\nx\nthe salary of ada is 4711 crowns\ny\n")
    check_nothing_left(pair, pair.publish())


def test_a_private_file_that_cannot_be_read_stops_the_publication(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.write(DIARY, TEXT)
    real = publishing._reader
    monkeypatch.setattr(publishing, "_reader", lambda ws, path: real(ws, path) if path != DIARY else lambda: None)
    with pytest.raises(UnusablePublication, match="is private and cannot be read"):
        pair.publish()


@pytest.mark.parametrize("how", ["moved", "moved and edited", "listed", "listed after it was deleted", "linked"])
def test_a_file_that_becomes_private_is_purged_from_what_copies_keep(pair: Pair, how: str) -> None:
    """Earlier generations, packs, and the free pages of an index: of each kind of becoming private."""
    pair.write("memory/raise.md", TEXT)
    first = pair.publish()
    pair.receive(first, is_complete=True)
    assert "Uppsala" in pair.bytes_of_copy().decode("utf-8", "replace")
    path, diary = pair.place.workspace / "memory/raise.md", pair.place.workspace / DIARY
    diary.parent.mkdir(exist_ok=True)
    if how.startswith("moved"):
        os.rename(path, diary)
        diary.write_text(TEXT + ("And one line more.\n" if how == "moved and edited" else ""))
    elif how == "linked":
        path.unlink()
        diary.write_text(TEXT)
        path.symlink_to(diary)
    else:
        if how == "listed after it was deleted":
            path.unlink()
            pair.receive(pair.publish(), is_complete=True)
            assert "memory/raise.md" not in pair.memory()
        pair.place.configure('[sync]\nprivate = ["memory/diary/", "memory/raise.md"]\n')
    published = pair.publish()
    assert published.head.purged == published.head.sequence
    check_nothing_left(pair, published)
    assert len(os.listdir(pair.root / "generations")) == 1
    objects = set(os.listdir(published.folder / OBJECTS))
    assert objects == set(published.objects), "no pack of an earlier state is kept"
    again = pair.publish()
    assert again.head.sequence == published.head.sequence, "once"


def test_what_is_compared_costs_nothing_while_nothing_changes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.write(DIARY, TEXT)
    for number in range(30):
        file = pair.write(f"memory/f{number}.md", f"# F{number}\nthe word meeting\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
    os.utime(pair.place.workspace / DIARY, (1_700_000_000, 1_700_000_000))
    first = pair.publish()
    read: list[str] = []
    real = publishing._reader

    def counted(workspace: object, path: str) -> object:
        def read_it() -> bytes | None:
            read.append(path)
            return real(workspace, path)()  # type: ignore[arg-type]

        return read_it

    monkeypatch.setattr(publishing, "_reader", counted)
    pair.write("memory/f3.md", "# F3\nchanged\n")
    second = pair.publish()
    assert second.head.sequence > first.head.sequence
    old = {path for path in read if path.startswith("memory/f")} - {"memory/f3.md"}
    known = json.loads((second.folder / "notes.json").read_text())["files"]
    assert {path for path in old if known[path][0]} == set(), "a file whose stat is sure is not read again"


@pytest.mark.parametrize("how", ["ignored by git", "a link", "a soul that is a link"])
def test_private_files_that_are_no_memory_are_read_as_well(pair: Pair, tmp_path: Path, how: str) -> None:
    if how == "ignored by git":
        pair.place.configure('[sync]\nprivate = ["notes/private/"]\n')
        pair.write(".gitignore", "notes/private/\n")
        pair.write("notes/private/ada.md", TEXT)
    else:
        (tmp_path / "elsewhere.md").write_text(TEXT)
        link = pair.place.workspace / (DIARY if how == "a link" else "SOUL.md")
        link.parent.mkdir(exist_ok=True, parents=True)
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / "elsewhere.md")
    quote = "The salary of ada is 4711 crowns since the first of November"
    pair.write("memory/notes.md", f"# Notes\n\nUse tabs.\n\n{quote}.\n")
    published = pair.publish()
    sent = bytes_sent(published)
    assert ("4711 crowns" in sent, "use tabs." in sent) == (False, True)


def test_the_end_of_a_quote_stays_when_it_is_wrapped(pair: Pair) -> None:
    pair.write(DIARY, "# D\n\nThe diagnosis of Bartholomew Weissenberger concerns an ulcer in his left hip.\n")
    quote = "The diagnosis of Bartholomew Weissenberger concerns an ulcer in his left\nhip. We ship on Friday.\n"
    pair.write("memory/notes.md", f"# Notes\n\n{quote}\nUse tabs.\n")
    sent = bytes_sent(pair.publish())
    assert ("hip. we ship" in sent, "use tabs." in sent) == (False, True)


def test_names_in_one_another_leave_the_rest_of_the_line(pair: Pair) -> None:
    pair.write("memory/diary/My plan.md", "# Anna\n\nNothing.\n")
    pair.write("memory/notes.md", "# Notes\n\nUse tabs.\n\nSee [[My plan.md]] and then buy bread.\n")
    assert f"see {MASK} and then buy bread." in bytes_sent(pair.publish())
