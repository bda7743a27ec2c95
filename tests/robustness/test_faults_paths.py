"""Faults A and L of docs/faults.md: what lies in an inbox or a workspace, under which name, and what sync leaves."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.faults import (
    BAD,
    GOOD,
    GOOD_CARD,
    ingest_beside_good,
    leave_good,
    outside_file,
    truekeep,
    whole,
    why,
)
from tests.support.helpers import CLAUDE, CODEX, NOW, Place, a_card, a_document_handoff, a_handoff, tree
from truekeep.core import file_io
from truekeep.core.errors import TruekeepError
from truekeep.handoffs.draft import parse_draft
from truekeep.handoffs.inbox import Inbox, InboxReader, is_handoff_name
from truekeep.workspace.workspace import Workspace

BROKEN = "not a handoff, so it goes to review\n"

# --- A1: names that choose a path ------------------------------------------------------------------------------------

HOSTILE_CARDS = [
    "../../etc/x.md",
    "../outside/x.md",
    "/etc/cron.d/x.md",
    "C:\\x.md",
    "..\\..\\x.md",
    "a/b.md",
    "./x.md",
    "..",
    "..md",
    ".hidden.md",
    ".md",
    "-rf.md",
    "~/x.md",
    "$HOME.md",
    "x.md/",
    "x.md\x00.txt",
    "x.txt",
    "x",
    "MEMORY",
    "x%2f..%2f.md",
    "a b.md",
    "x.md\nother.md",
    "＿／x.md",
    "cafe\u0301.md",
    "a" * 198 + ".md",
    "a" * 5000 + ".md",
    "memory/cards/x.md",
    ".staging-proxy.md.truekeep-tmp",
]


@pytest.mark.parametrize("target", HOSTILE_CARDS)
def test_a1_a_target_card_never_names_a_path(place: Place, target: str) -> None:
    place.leave(a_handoff(card=target), BAD)
    before = tree(place.workspace)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"
    assert place.codes(BAD) & {"bad-card-name", "no-target", "not-text"}
    assert place.cards() == [GOOD_CARD]
    new = {path.split("/")[0] for path in set(tree(place.workspace)) - set(before)}
    assert new <= {"memory"}


HOSTILE_DOCUMENTS = [
    "../TOOLS.md",
    "/etc/passwd",
    "SOUL.md",
    "AGENTS.md",
    "MEMORY.md",
    "tools.md",
    "./TOOLS.md",
    "rules/../SOUL.md",
    "rules/a/b.md",
    "rules//x.md",
    "rules/.x.md",
    "rules/-x.md",
    "rules/",
    "rules/x.txt",
    "rules/con.md",
    "rules/x..md",
    "rules/" + "x" * 300 + ".md",
    "Rules/x.md",
    ".learnings/OTHER.md",
    ".truekeep/config.toml",
    "memory/cards/x.md",
    "memory/gating-policies.md",
    "TOOLS.md\nUSER.md",
]


@pytest.mark.parametrize("target", HOSTILE_DOCUMENTS)
def test_a1_a_target_document_is_one_of_the_allowed_ones(place: Place, target: str) -> None:
    place.leave(a_document_handoff(document=target), BAD)
    before = tree(place.workspace, skip=())
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"
    after = tree(place.workspace, skip=())
    ours = ("sqlite", "log", "/hosts/")
    state = {path for path in after if path.startswith(".truekeep/") and any(word in path for word in ours)}
    new = {path for path in after if after[path] != before.get(path)} - state
    assert new == {"MEMORY.md", f"memory/cards/{GOOD_CARD}", f"memory/handoff-inbox/{place.drafts()[0].name}"}


@pytest.mark.parametrize("title", ["../../etc/x", "/etc/x", "C:\\x", "$(id)", "`id`", "a](javascript:alert(1))"])
def test_a1_a_title_is_only_text(place: Place, title: str) -> None:
    content = a_card().replace("topic: Proxy in front of staging\n", "")
    place.leave(a_handoff(title=title, content=content), BAD)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "promoted"
    assert place.cards() == [GOOD_CARD, "staging-proxy.md"]
    line = next(line for line in place.index().split("\n") if "staging-proxy" in line)
    assert line.count("](memory/cards/staging-proxy.md)") == 1
    assert line.endswith("](memory/cards/staging-proxy.md)")


# --- A2-A5: symlinks -------------------------------------------------------------------------------------------------


def test_a2_symlink_in_the_inbox_is_not_opened(place: Place) -> None:
    target = outside_file(place, text=a_handoff())
    (place.inbox / BAD).symlink_to(target)
    fifo = place.base / "outside" / "fifo"
    (place.inbox / "2026-11-14-0800-dangling.md").symlink_to(place.base / "nowhere")
    (place.inbox / "2026-11-14-0801-relative.md").symlink_to("../../secret.md")
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert "symlink" in why(place, BAD)
    assert place.outcomes()["2026-11-14-0800-dangling.md"] == "skipped"
    assert place.cards() == [GOOD_CARD]
    assert (place.inbox / BAD).is_symlink()
    assert not fifo.exists()
    assert truekeep(place, "ingest").returncode == 0


def test_a2_symlink_to_a_fifo_does_not_block(place: Place) -> None:
    outside_file(place)
    os.mkfifo(place.base / "pipe")
    (place.inbox / BAD).symlink_to(place.base / "pipe")
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"


def test_a3_symlinked_folders_and_loops_in_the_inbox_are_not_followed(place: Place) -> None:
    folder = place.base / "outside" / "more"
    folder.mkdir(parents=True)
    (folder / "2026-11-14-0700-x.md").write_text(a_handoff())
    (place.inbox / "more").symlink_to(folder)
    (place.inbox / "more.md").symlink_to(folder)
    (place.inbox / "loop.md").symlink_to("loop.md")
    (place.inbox / "up.md").symlink_to("..")
    ingest_beside_good(place)
    assert place.outcomes() == {"more.md": "skipped", "loop.md": "skipped", "up.md": "skipped", GOOD: "promoted"}


def _after_listing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something between the moment the inbox was listed and the moment its letters are opened."""
    listed = InboxReader.waiting

    def waiting(self: InboxReader) -> list[tuple[str, Inbox]]:
        names = listed(self)
        act()
        return names

    monkeypatch.setattr(InboxReader, "waiting", waiting)


def test_a4_file_swapped_for_a_symlink_after_listing_is_skipped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    target = outside_file(place, text=a_handoff())
    letter = place.leave(a_handoff(), BAD)

    def swap() -> None:
        letter.unlink()
        letter.symlink_to(target)

    _after_listing(monkeypatch, swap)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert place.cards() == [GOOD_CARD]


def test_a4_large_file_swapped_for_a_symlink_after_listing_is_skipped(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = outside_file(place, text="x" * 2_000_000)
    letter = place.leave("x" * 2_000_000, BAD)
    real_open = os.open

    def swapping(path: object, flags: int, *more: object, **names: object) -> int:
        if path == BAD and not letter.is_symlink():
            letter.unlink()
            letter.symlink_to(target)
        return real_open(path, flags, *more, **names)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", swapping)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"


def test_a5_parent_swapped_for_a_symlink_during_the_walk(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other = place.base / "outside" / ".claude"
    (other / "memory-handoffs").mkdir(parents=True)
    (other / "memory-handoffs" / BAD).write_text(a_handoff(content=a_card("From elsewhere", "Not from the inbox.")))
    place.leave(a_handoff(), BAD)

    def swap() -> None:
        (place.repo / ".claude").rename(place.repo / ".claude-old")
        (place.repo / ".claude").symlink_to(other)

    _after_listing(monkeypatch, swap)
    ingest_beside_good(place)
    assert "Not from the inbox" not in place.card()
    assert "Staging answers on port 8443" in place.card()
    assert (place.repo / ".claude-old" / "memory-handoffs" / "processed" / BAD).is_file()


def _moved_out(place: Place, path: Path) -> Path:
    """Replace a folder or file with a symlink to where it is now, outside."""
    outside = place.base / "outside"
    outside.mkdir(exist_ok=True)
    moved = outside / path.name
    path.rename(moved)
    path.symlink_to(moved)
    return moved


@pytest.mark.parametrize("folder", [".claude", CLAUDE])
def test_a3_symlinked_inbox_or_its_parent_is_reported_and_not_followed(place: Place, folder: str) -> None:
    letter = place.leave(a_handoff(), BAD)
    _moved_out(place, place.repo / folder)
    good = place.repo / CODEX
    place.leave(a_document_handoff(), inbox=good)
    before = tree(place.base / "outside")
    place.ingest()
    assert place.filed[-1].outcome == "skipped"
    assert "symlink" in place.filed[-1].why
    assert {item.outcome for item in place.filed} == {"routed", "skipped"}
    assert tree(place.base / "outside") == before
    assert letter.exists()
    shown = truekeep(place, "ingest")
    assert "symlink" in shown.stdout


def test_a3_inbox_that_is_a_file_or_a_dangling_link(place: Place) -> None:
    other = place.base / "repos" / "second" / ".claude"
    other.mkdir(parents=True)
    (other / "memory-handoffs").write_text("a file, not a folder")
    third = place.base / "repos" / "third" / ".claude"
    third.mkdir(parents=True)
    (third / "memory-handoffs").symlink_to(place.base / "nowhere")
    ingest_beside_good(place)
    assert sorted(item.outcome for item in place.filed) == ["promoted", "skipped", "skipped"]
    assert not (place.base / "nowhere").exists()


def test_a3_symlinked_processed_is_not_written_through(place: Place) -> None:
    outside = place.base / "outside"
    outside.mkdir()
    (place.inbox / "processed").symlink_to(outside)
    ingest_beside_good(place)
    assert place.waiting() == [GOOD]
    report = place.ingest()
    assert any("processed" in warning for warning in report.warnings)
    assert report.processed == 0
    assert list(outside.iterdir()) == []


def test_a3_processed_that_is_a_file_keeps_the_letter_in_the_inbox(place: Place) -> None:
    (place.inbox / "processed").write_text("a file")
    ingest_beside_good(place)
    assert place.waiting() == [GOOD]
    assert (place.inbox / "processed").read_text() == "a file"


LINKS = ["memory/cards/staging-proxy.md", "MEMORY.md", "TOOLS.md", "rules/python.md", ".learnings/ERRORS.md"]


@pytest.mark.parametrize("path", LINKS)
def test_a3_symlinked_target_file_is_never_written_through(place: Place, path: str) -> None:
    link = place.workspace / path
    link.parent.mkdir(exist_ok=True)
    if not link.exists():
        link.write_text("# There before\n")
    moved = _moved_out(place, link)
    before = moved.read_bytes()
    is_card = path.startswith("memory/") or path == "MEMORY.md"
    place.leave(a_handoff(action="update-card") if is_card else a_document_handoff(document=path), BAD)
    if path == "MEMORY.md":
        place.ingest()
    else:
        ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"
    assert "unsafe-target" in place.codes(BAD)
    assert moved.read_bytes() == before
    assert link.is_symlink()


FOLDERS = ["memory", "memory/cards", "memory/handoff-inbox", "rules", ".learnings"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a3_symlinked_target_folder_is_never_written_through(place: Place, folder: str) -> None:
    link = place.workspace / folder
    link.mkdir(exist_ok=True)
    moved = _moved_out(place, link)
    before = tree(moved)
    document = {"rules": "rules/python.md", ".learnings": ".learnings/ERRORS.md"}.get(folder)
    text = a_document_handoff(document=document) if document else BROKEN if "inbox" in folder else a_handoff()
    place.leave(text, BAD)
    place.leave(a_document_handoff(), GOOD)
    place.ingest()
    assert place.outcomes()[GOOD] == "routed", "one bad target must not stop the others"
    assert place.outcomes()[BAD] in ("review", "failed")
    assert tree(moved) == before
    assert whole(place, text.encode())


@pytest.mark.parametrize("folder", ["memory", "memory/cards", "memory/handoff-inbox"])
def test_a3_every_command_survives_a_symlinked_folder(place: Place, folder: str) -> None:
    ingest_beside_good(place)
    _moved_out(place, place.workspace / folder)
    place.leave(a_handoff(), BAD)
    for command in (("ingest",), ("ingest", "--dry-run"), ("review", "list"), ("card", "list"), ("history",)):
        truekeep(place, *command)
    truekeep(place, "handoff", "lint", str(place.inbox / BAD))


def test_a3_logs_that_point_outside_are_not_written_through(place: Place) -> None:
    target = outside_file(place, "log.txt", "mine\n")
    log = place.workspace / ".truekeep" / "logs" / "ingest.log"
    log.symlink_to(target)
    ingest_beside_good(place)
    assert target.read_text() == "mine\n"


@pytest.mark.parametrize("kind", ["folder", "fifo"])
@pytest.mark.parametrize("path", ["memory/cards/staging-proxy.md", "TOOLS.md"])
def test_a8_target_that_is_a_folder_or_a_fifo_goes_to_review(place: Place, path: str, kind: str) -> None:
    target = place.workspace / path
    if kind == "folder":
        target.mkdir()
    else:
        os.mkfifo(target)
    place.leave(a_handoff() if "cards" in path else a_document_handoff(), BAD)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"
    assert "unsafe-target" in place.codes(BAD)
    assert truekeep(place, "card", "list").returncode == 0


# --- A6-A8: what is no plain file ------------------------------------------------------------------------------------


def test_a6_hard_link_is_not_copied(place: Place) -> None:
    target = outside_file(place, text=a_handoff())
    os.link(target, place.inbox / BAD)
    os.utime(target, (time.time() - 60,) * 2)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert "hard link" in why(place, BAD)
    assert place.cards() == [GOOD_CARD]


def test_a6_large_hard_link_is_not_taken_either(place: Place) -> None:
    target = outside_file(place, text="x" * 1_100_000)
    os.link(target, place.inbox / BAD)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert place.drafts() == []


def test_a7_fifo_and_socket_are_not_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(place.inbox / "2026-11-14-0800-pipe.md")
    monkeypatch.chdir(place.inbox)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("2026-11-14-0801-sock.md")
        ingest_beside_good(place)
    for name in ("2026-11-14-0800-pipe.md", "2026-11-14-0801-sock.md"):
        assert place.outcomes()[name] == "skipped"
        assert "regular file" in why(place, name)
    assert truekeep(place, "ingest", "--json").returncode == 0
    truekeep(place, "handoff", "lint")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a7_device_node_is_not_read(place: Place) -> None:
    try:
        os.mknod(place.inbox / BAD, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero never ends
    except PermissionError:
        pytest.skip("no device nodes here")
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"


def test_a8_folder_named_like_a_handoff_is_skipped(place: Place) -> None:
    (place.inbox / BAD).mkdir()
    (place.inbox / BAD / "inside.md").write_text(a_handoff())
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert (place.inbox / BAD / "inside.md").exists()


# --- A9, A10, A17: names ---------------------------------------------------------------------------------------------

ODD_NAMES = [
    b"2026-11-14-0900-" + b"n" * 236 + b".md",
    b"n" * 252 + b".md",
    "é".encode() * 126 + b".md",
    b"2026-11-14-0900-new\nline.md",
    b"2026-11-14-0900-tab\ttab.md",
    b"2026-11-14-0900-'quote\".md",
    b"-rf.md",
    b"--help.md",
    b"2026-11-14-0900-$(touch pwned).md",
    b"2026-11-14-0900-`touch pwned`.md",
    b"2026-11-14-0900-;touch pwned;.md",
    b"2026-11-14-0900-\xff\xfe.md",
    b"2026-11-14-0900-\x1b]0;pwned\x07\x1b[2J.md",
    b"2026-11-14-0900-\x7f.md",
    "2026-11-14-0900-\u202egnp.md".encode(),
    b"*.md",
    b"2026-13-45-9999-x.md",
    b"9999-12-31-2359-x.md",
    b"0000-00-00-0000-x.md",
    b"CON.md",
    b"2026-11-14-0900-dot..md",
    b"x .md",
    b"%s%n.md",
    b"x: y.md",
]


@pytest.mark.parametrize("text", [a_handoff(), BROKEN], ids=["filed", "review"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a9_a17_odd_file_names_are_stored_and_shown_escaped(place: Place, name: bytes, text: str) -> None:
    raw = text.encode()
    (place.inbox / os.fsdecode(name)).write_bytes(raw)
    ingest_beside_good(place)
    assert place.outcomes().pop(GOOD) == "promoted"
    (item,) = (item for item in place.filed if item.name != GOOD)
    assert item.outcome == ("promoted" if text != BROKEN else "review")
    assert item.name.isprintable()
    assert os.fsencode(place.inbox / "processed") + b"/" + name in [
        os.fsencode(path) for path in (place.inbox / "processed").iterdir()
    ]
    if text == BROKEN:
        (draft,) = place.drafts()
        assert draft.name.isascii()
        assert len(draft.name) < 80
        assert parse_draft(draft.name, draft.read_bytes()).body == raw
    assert not list(place.base.rglob("pwned"))


def test_a9_odd_file_names_on_the_command_line(place: Place) -> None:
    for number, name in enumerate(ODD_NAMES):
        (place.inbox / os.fsdecode(name)).write_text(f"{BROKEN}{number}\n")
    for more in ((), ("--json",)):
        listed = truekeep(place, "handoff", "list", *more)
        linted = truekeep(place, "handoff", "lint", *more)
        tried = truekeep(place, "ingest", "--dry-run", *more)
        for done in (listed, linted, tried):
            assert not set(done.stdout) & {"\x1b", "\x07", "\x7f", "\u202e"}
    filed = truekeep(place, "ingest").stdout.splitlines()
    assert sum(line.startswith("review ") for line in filed) == len(ODD_NAMES)
    for command in (("review", "list"), ("history", "--all")):
        for more in ((), ("--json",)):
            assert not set(truekeep(place, *command, *more).stdout) & {"\x1b", "\x07", "\x7f", "\u202e"}


@pytest.mark.parametrize("name", [b"n" * 252 + b".md", "é".encode() * 126 + b".md", BAD.encode()])
def test_a9_the_same_long_name_twice_is_moved_twice(place: Place, name: bytes) -> None:
    path = place.inbox / os.fsdecode(name)
    path.write_text(a_handoff())
    ingest_beside_good(place)
    path.write_text(BROKEN)
    report = place.ingest()
    assert report.warnings == []
    assert place.waiting() == []
    assert len(place.processed()) == 3


def test_a9_repository_folder_with_a_name_that_is_not_text(place: Place) -> None:
    repo = os.fsencode(place.base / "repos") + b"/caf\xe9\x1b[2J"
    os.makedirs(repo + b"/" + CLAUDE.encode())
    place.leave(a_handoff(), BAD, inbox=Path(os.fsdecode(repo)) / CLAUDE)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "promoted"
    for command in (("handoff", "list"), ("history",), ("card", "show", "staging-proxy")):
        for more in ((), ("--json",)):
            assert "\x1b" not in truekeep(place, *command, *more).stdout


def test_a9_card_with_a_name_that_is_not_text_stops_nothing(place: Place) -> None:
    (place.workspace / "memory" / "cards" / os.fsdecode(b"caf\xe9.md")).write_text(a_card("Old", "An old card."))
    ingest_beside_good(place)
    truekeep(place, "card", "list")
    truekeep(place, "card", "list", "--json")


def test_a9_draft_with_a_name_that_is_not_text_stops_nothing(place: Place) -> None:
    (place.workspace / "memory" / "handoff-inbox" / os.fsdecode(b"caf\xe9.md")).write_text(BROKEN)
    ingest_beside_good(place)
    for more in ((), ("--json",)):
        truekeep(place, "review", "list", *more)


def test_a10_card_names_that_differ_in_case_are_reported(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-14-0900-a.md")
    other = a_card("Another matter", "Production listens on 9443 and speaks another protocol.")
    place.leave(a_handoff(card="Staging-Proxy.md", content=other), "2026-11-14-0902-b.md")
    ingest_beside_good(place)
    assert place.outcomes()["2026-11-14-0902-b.md"] == "review"
    assert "name-clash" in place.codes("2026-11-14-0902-b.md")
    assert place.cards() == [GOOD_CARD, "staging-proxy.md"]


def test_a10_document_names_that_differ_in_case_are_reported(place: Place) -> None:
    place.leave(a_document_handoff(document="rules/python.md"), "2026-11-14-0900-a.md")
    place.ingest()
    place.leave(a_document_handoff("### Types\nUse strict types.", document="rules/Python.md"), "2026-11-14-0902-b.md")
    ingest_beside_good(place)
    assert place.outcomes()["2026-11-14-0902-b.md"] == "review"


def test_a10_file_names_that_differ_in_case_or_form_are_all_kept(place: Place) -> None:
    names = ["2026-11-14-0900-Ab.md", "2026-11-14-0900-ab.md"]
    names += [unicodedata.normalize(form, "2026-11-14-0900-caf\u00e9.md") for form in ("NFC", "NFD")]
    raws = [f"{BROKEN}{name}".encode() for name in names]
    for name, raw in zip(names, raws, strict=True):
        place.leave(raw, name)
    ingest_beside_good(place)
    assert all(whole(place, raw) for raw in raws)
    assert len(place.drafts()) == 4
    assert len(place.processed()) == 5


@pytest.mark.parametrize("target", ["CON.md", "nul.md", "com1.md", "LPT9.txt.md", "aux.notes.md", "x..md", "x. .md"])
def test_a17_reserved_names_do_not_become_cards(place: Place, target: str) -> None:
    place.leave(a_handoff(card=target), BAD)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"


# --- A11-A16 ---------------------------------------------------------------------------------------------------------


def test_a11_unreadable_file_is_skipped_and_the_rest_goes_on() -> None:
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        place = Place.make(Path(folder))
        place.leave(a_handoff(), BAD).chmod(0)
        leave_good(place)
        if os.geteuid() == 0:
            for path in (Path(folder), *Path(folder).rglob("*")):
                os.lchown(path, nobody, nobody)
            os.seteuid(nobody)
        try:
            place.ingest()
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
        assert place.outcomes() == {BAD: "skipped", GOOD: "promoted"}
        assert "denied" in why(place, BAD).lower()


def test_a12_workspace_reached_through_a_symlink_works(place: Place) -> None:
    link = place.base / "link"
    link.symlink_to(place.workspace)
    leave_good(place)
    with Workspace.open(link, now=lambda: NOW) as workspace:
        assert workspace.handoffs.ingest().count("promoted") == 1
    assert place.cards() == [GOOD_CARD]


@pytest.mark.parametrize("kind", ["missing", "file", "plain folder", "dangling link"])
def test_a12_what_is_no_workspace_is_refused_and_not_made(place: Place, kind: str) -> None:
    path = place.base / "other"
    if kind == "file":
        path.write_text("a file")
    elif kind == "plain folder":
        path.mkdir()
    elif kind == "dangling link":
        path.symlink_to(place.base / "nowhere")
    leave_good(place)
    before = tree(place.base, skip=())
    with pytest.raises(TruekeepError):
        Workspace.open(path)
    assert tree(place.base, skip=()) == before
    assert place.waiting() == [GOOD]


def test_a13_many_files_in_one_inbox(place: Place) -> None:
    raw = a_handoff().encode()
    for number in range(1500):
        (place.inbox / f"2026-11-14-0900-{number:05}.md").write_bytes(raw)
    for number in range(1500):
        (place.inbox / f".rsync-{number:05}.md.aBc123").touch()
    ingest_beside_good(place)
    outcomes = list(place.outcomes().values())
    assert outcomes.count("promoted") == 2
    assert outcomes.count("already") == 1499
    assert len(place.processed()) == 1501


def test_a14_file_that_changes_while_it_is_read_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = place.leave(a_handoff(), BAD)

    def change(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == letter.stat().st_ino:
            with letter.open("a") as file:
                file.write("and one more line\n")

    with monkeypatch.context() as patch:
        patch.setattr(file_io, "refuse_writers", change)
        ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert place.waiting() == [BAD]
    place.ingest()
    assert "and one more line" in place.card()


def test_a14_file_replaced_after_it_was_read_is_not_moved_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = place.leave(a_handoff(), BAD)
    later = a_document_handoff().encode()
    read = InboxReader.read

    def replacing(self: InboxReader, name: str, inbox: Inbox) -> object:
        found = read(self, name, inbox)
        if name == BAD and letter.read_bytes() != later:
            new = place.base / "new.md"
            new.write_bytes(later)
            new.replace(letter)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(InboxReader, "read", replacing)
        ingest_beside_good(place)
    assert letter.read_bytes() == later
    place.ingest()
    assert place.outcomes()[BAD] == "routed"


def test_a15_file_that_a_process_holds_open_for_writing_waits(place: Place) -> None:
    letter = place.leave(a_handoff()[:200], BAD)
    program = "import sys; f = open(sys.argv[1], 'a'); print('open', flush=True); f.write(sys.stdin.read()); f.close()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(letter)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        ingest_beside_good(place)
        assert place.outcomes()[BAD] == "skipped"
        assert "written" in why(place, BAD)
        assert place.waiting() == [BAD]
        writer.communicate(a_handoff()[200:])
    place.ingest()
    assert place.outcomes()[BAD] == "promoted"
    assert place.processed() == [BAD, GOOD]


def test_a15_fresh_file_is_read_after_a_quiet_period(place: Place) -> None:
    place.configure(settle=0.2)
    place.leave(a_handoff(), BAD, age=0)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "promoted"


def test_a15_file_that_grows_during_the_quiet_period_waits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.configure(settle=30)
    letter = place.leave(a_handoff()[:300], BAD, age=0)

    def grow(_: float) -> None:
        with letter.open("a") as file:
            file.write(a_handoff()[300:])

    monkeypatch.setattr("truekeep.handoffs.ingest.time.sleep", grow)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "skipped"
    assert place.waiting() == [BAD]


def test_a16_file_that_is_gone_after_listing_is_no_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = place.leave(a_handoff(), BAD)
    _after_listing(monkeypatch, letter.unlink)
    report = ingest_beside_good(place)
    assert place.outcomes() == {GOOD: "promoted"}
    assert report.warnings == []


def test_a16_inbox_that_is_gone_after_listing_is_no_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other = place.base / "repos" / "second" / CLAUDE
    place.leave(a_handoff(), BAD, inbox=other)
    _after_listing(monkeypatch, lambda: (other / BAD).unlink() or other.rmdir())  # type: ignore[func-returns-value]
    ingest_beside_good(place)
    assert place.outcomes() == {GOOD: "promoted"}


# --- the same thing twice --------------------------------------------------------------------------------------------


def test_a10_same_name_in_two_inboxes_files_both(place: Place) -> None:
    place.leave(a_handoff(), BAD)
    place.leave(a_document_handoff(), BAD, inbox=place.repo / CODEX)
    place.leave(BROKEN, BAD, inbox=place.base / "repos" / "second" / CLAUDE)
    place.leave(BROKEN * 2, BAD, inbox=place.base / "repos" / "third" / CLAUDE)
    ingest_beside_good(place)
    assert sorted(item.outcome for item in place.filed) == ["promoted", "promoted", "review", "review", "routed"]
    assert len(place.drafts()) == 2


def test_a10_same_handoff_in_two_inboxes_is_filed_once(place: Place) -> None:
    place.leave(a_handoff(), BAD)
    place.leave(a_handoff(), BAD, inbox=place.repo / CODEX)
    ingest_beside_good(place)
    assert sorted(item.outcome for item in place.filed) == ["already", "promoted", "promoted"]
    assert place.index().count("staging-proxy.md") == 1
    assert list((place.repo / CODEX).iterdir()) == [place.repo / CODEX / "processed"]


def test_a10_repository_found_twice_through_a_symlink_is_scanned_once(place: Place) -> None:
    (place.base / "repos" / "again").symlink_to(place.repo)
    place.leave(a_handoff(), BAD)
    ingest_beside_good(place)
    assert place.outcomes() == {BAD: "promoted", GOOD: "promoted"}
    assert len(place.filed) == 2


@pytest.mark.parametrize(
    "raws", [(BROKEN.encode(), BROKEN.encode() * 2), (b"\xff", b"\xff\xff")], ids=["text", "binary"]
)
def test_a10_a_draft_names_the_file_that_really_is_its_original(place: Place, raws: tuple[bytes, bytes]) -> None:
    for raw in raws:
        place.leave(raw, BAD)
        place.ingest()
    for path in place.drafts():
        draft = parse_draft(path.name, path.read_bytes())
        original = Path(draft.original).expanduser()
        assert disk_digest(original) == draft.digest


def test_a9_pruning_keeps_the_original_of_an_open_draft_whatever_its_name(place: Place) -> None:
    place.configure("[limits]\nprocessed_days = 1\nreview_days = 90\n")
    names = [BAD, "2026-11-14-0900-new\nline.md", os.fsdecode(b"2026-11-14-0900-\xff.md")]
    raws = [b"\xff" + name.encode("utf-8", "surrogateescape") for name in names]
    for name, raw in zip(names, raws, strict=True):
        place.leave(raw, name)
    place.leave(b"\xff again", BAD)
    place.ingest()
    place.leave(b"\xff once more", BAD)
    ingest_beside_good(place)
    with place.open(now=datetime.now(UTC) + timedelta(days=10)) as workspace:
        drafts, files = workspace.handoffs.prune()
    assert drafts == []
    assert [Path(file).name for file in files] == [GOOD]
    assert len(place.processed()) == len(place.drafts())


def disk_digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- L: what sync tools and editors leave ----------------------------------------------------------------------------

CONFLICTS = [
    "2026-11-14-0900-x.md.conflict1",
    "2026-11-14-0900-x.conflict1.md",
    "2026-11-14-0900-x.md.conflict12",
    "2026-11-14-0900-x.md.path1",
    "2026-11-14-0900-x.md.path2",
    "2026-11-14-0900-x.path2.md",
    "2026-11-14-0900-x.md..path1",  # rclone before 1.66
    "2026-11-14-0900-x..path2.md",
    "2026-11-14-0900-x.md.2026-11-14-conflict1",  # bisync --conflict-suffix {DateOnly}-conflict
    "2026-11-14-0900-x.2026-11-14-conflict1.md",
    "2026-11-14-0900-x (conflicted copy 2026-11-14 090000).md",
    "2026-11-14-0900-x (Ann's conflicted copy 2026-11-14).md",
    "2026-11-14-0900-x.sync-conflict-20261114-090000-ABCDEFG.md",
    "2026-11-14-0900-x.sync-conflict-20261114-090000.md",
    "2026-11-14-0900-x.md.conflict1.conflict2",
    "2026-11-14-0900-x.conflict1.conflict2.md",
    "2026-11-14-0900-x.sync-conflict-20261114-090000-ABCDEFG.sync-conflict-20261114-090001-HIJKLMN.md",
]
ORIGINAL = "2026-11-14-0900-x.md"


@pytest.mark.parametrize("name", CONFLICTS)
def test_l1_l2_l3_conflict_copies_are_asked_about_and_both_are_kept(place: Place, name: str) -> None:
    copy = a_handoff(content=a_card("Proxy, other version", "The proxy of staging moved to 9443 last week."))
    place.leave(a_handoff(), ORIGINAL)
    place.leave(copy, name)
    ingest_beside_good(place)
    assert place.outcomes()[ORIGINAL] == "promoted"
    assert place.outcomes()[name] == "review"
    assert "conflict-copy" in place.codes(name)
    assert whole(place, copy.encode())


@pytest.mark.parametrize("name", [name for name in CONFLICTS if is_handoff_name(name)])
def test_l4_conflict_copy_that_is_identical_is_joined_silently(place: Place, name: str) -> None:
    place.leave(a_handoff(), ORIGINAL)
    place.leave(a_handoff(), name)
    ingest_beside_good(place)
    assert place.cards() == [GOOD_CARD, "staging-proxy.md"], "the original was not filed"
    assert place.drafts() == []


LEFTOVERS = [
    f"{ORIGINAL}~",
    f".#{ORIGINAL}",
    f"#{ORIGINAL}#",
    f"{ORIGINAL}.orig",
    f"{ORIGINAL}.rej",
    f"{ORIGINAL}.bak",
    f"{ORIGINAL}.swp",
    f".{ORIGINAL}.swp",
    f".{ORIGINAL}.swo",
    f".{ORIGINAL}.icloud",
    f".{ORIGINAL}.aB3xYz",  # rsync
    f".~tmp~{ORIGINAL}",
    f"{ORIGINAL}.partial",  # rclone
    f"{ORIGINAL}.1a2b3c4d.partial",
    f".{ORIGINAL}.part",
    f"{ORIGINAL}.tmp",
    f"{ORIGINAL}.tmp.1234.1763000000",  # Claude Code
    f"{ORIGINAL}.crdownload",
    f".syncthing.{ORIGINAL}.tmp",
    f"~syncthing~{ORIGINAL}.tmp",
    f"~${ORIGINAL}",
    f".~lock.{ORIGINAL}#",
    f"{ORIGINAL}___jb_tmp___",
    f"{ORIGINAL}.kate-swp",
    f".{ORIGINAL}.truekeep-tmp",
    ".goutputstream-ABC123",
    ".DS_Store",
    f"._{ORIGINAL}",
    ".dropbox.attr",
    ".stfolder",
    "README.md",
    "Thumbs.db",
    "4913",
    ".md",
]


def test_l2_l9_leftovers_and_partial_files_are_ignored_until_renamed(place: Place) -> None:
    half = a_handoff()[:250]
    for name in LEFTOVERS:
        place.leave(half, name)
    ingest_beside_good(place)
    assert place.outcomes() == {GOOD: "promoted"}
    assert sorted(place.waiting()) == sorted(LEFTOVERS)
    (place.inbox / f"{ORIGINAL}.partial").write_text(a_handoff())
    (place.inbox / f"{ORIGINAL}.partial").rename(place.inbox / ORIGINAL)
    place.ingest()
    assert place.outcomes() == {ORIGINAL: "promoted"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_l5_git_conflict_markers_go_to_review_with_both_halves(place: Place, newline: str) -> None:
    body = "<<<<<<< HEAD\nStaging answers on 8443.\n=======\nStaging answers on 9443.\n>>>>>>> theirs"
    raw = a_handoff(content=a_card(body=body)).replace("\n", newline).encode()
    place.leave(raw, BAD)
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "review"
    assert "conflict-markers" in place.codes(BAD)
    (draft,) = place.drafts()
    assert raw in draft.read_bytes()


def test_l7_card_deleted_by_hand_is_not_brought_back_by_an_old_handoff(place: Place) -> None:
    place.leave(a_handoff(), BAD)
    place.ingest()
    (place.workspace / "memory" / "cards" / "staging-proxy.md").unlink()
    place.leave(a_handoff(), BAD)  # the sync tool brings the handoff back
    ingest_beside_good(place)
    assert place.outcomes()[BAD] == "already"
    assert place.cards() == [GOOD_CARD]


def test_l8_renamed_handoff_is_the_same_handoff(place: Place) -> None:
    place.leave(a_handoff(), BAD)
    place.ingest()
    place.leave(a_handoff(), "2026-11-14-0955-renamed.md")
    ingest_beside_good(place)
    assert place.outcomes()["2026-11-14-0955-renamed.md"] == "already"
    assert place.index().count("staging-proxy.md") == 1
    assert place.waiting() == []


def test_l10_old_device_does_not_overwrite_what_is_newer(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-14-0900-new.md")
    place.ingest()
    new = place.card()
    old = a_handoff(action="update-card", content=a_card(body="Staging answers on port 8080 only."))
    place.leave(old, "2026-03-01-0900-old.md")
    ingest_beside_good(place)
    assert place.outcomes()["2026-03-01-0900-old.md"] == "review"
    assert "older-than-card" in place.codes("2026-03-01-0900-old.md")
    assert place.card() == new
