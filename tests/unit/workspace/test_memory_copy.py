"""A copy is always one whole state of the host; what is private never leaves; nothing writes a copy."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import shutil
import zipfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.copies import Pair, StoppedHere, stopped_at
from tests.support.helpers import NOW, Place, a_handoff, run_cli, tree
from truekeep.core.errors import Busy, NewerState, NotCanonical, StorageFailed
from truekeep.core.machine import own_state
from truekeep.core.memory_copy import CURRENT, copy_root, has_news, read_source
from truekeep.handoffs.sync.copy_install import IncomingFolder, NewGeneration
from truekeep.handoffs.sync.publication import (
    HEAD,
    OBJECTS,
    Head,
    PublicationManifest,
    PublishedFile,
    UnusablePublication,
    digest_of,
    render_manifest,
    render_pack,
)
from truekeep.handoffs.sync.publication_store import NOTES
from truekeep.handoffs.sync.receipts import Signer, read_signer
from truekeep.handoffs.sync.routes import Route, write_routes
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.integrations.schedule.run import Step, run_job
from truekeep.workspace import context
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.publishing import publisher
from truekeep.workspace.receiving import complete_copy, receive_sent
from truekeep.workspace.schedule_log import NO_UPDATES
from truekeep.workspace.take_copy import make_workspace

if TYPE_CHECKING:
    from truekeep.handoffs.sync.publication_store import Publication

SECRET = "the salary of ada is 4711 crowns"


@pytest.fixture
def pair(place: Place, tmp_path: Path) -> Pair:
    place.leave(a_handoff())
    place.ingest()
    return Pair(place, tmp_path / "copy")


# --- One whole state ------------------------------------------------------------------------------------------------


def test_first_copy_nothing_new_and_one_changed_file(pair: Pair) -> None:
    first = pair.sync(is_complete=False)
    assert first is not None
    assert (first.changed, pair.memory()) == (first.files, pair.shared())
    again = pair.sync(now=NOW + timedelta(minutes=30), is_complete=False)
    assert again is not None
    assert again.changed == -1
    source = read_source(pair.folder.current() or "")
    assert source is not None
    assert source.as_of == "2026-11-15T12:30:00Z", "confirmed, though nothing changed"
    inode = os.stat((pair.folder.current() or Path()) / "MEMORY.md").st_ino
    pair.write("memory/new.md", "# New\n")
    third = pair.sync(is_complete=False)
    assert third is not None
    assert (third.changed, pair.memory()) == (1, pair.shared())
    assert os.stat((pair.folder.current() or Path()) / "MEMORY.md").st_ino == inode, "not written again"
    assert len(list((pair.root / "generations").iterdir())) == 2, "the one before stays for who reads it"


def test_nothing_has_to_be_read_again_after_any_state(pair: Pair) -> None:
    """Files that did not change are links to those before, and removing an earlier state changes their stats."""

    def changed() -> object:
        copy = pair.open()
        (row,) = [row for row in copy.health.check(now=NOW).results if row.name == "search"]
        return row.figures["waiting"]

    for number in range(4):
        pair.write("memory/other.md", f"# Other {number}\n")
        pair.sync()
        assert changed() == 0, number
    pair.place.configure('[sync]\nprivate = ["other.md"]\n')
    pair.sync()
    assert changed() == 0, "a state that is made anew"


def test_a_scheduled_run_goes_on_with_the_state_that_its_sync_brought(pair: Pair) -> None:
    pair.write("memory/plans.md", f"# Plans\n{SECRET}\n")
    pair.root = Path(copy_root())
    pair.sync()
    opened = pair.open()

    def then(step: Step) -> None:
        if step.name == "sync":  # the state that is open is removed: something became private
            pair.place.configure('[sync]\nprivate = ["plans.md"]\n')
            pair.sync()

    run = run_job(opened, side_of(opened), now=lambda: NOW, on_step=then)
    assert (run.ending, opened.path.exists()) == (NO_UPDATES, False), run
    assert "the canonical host is" in run.why


@pytest.mark.parametrize("fault", ["killed", "disk full"])
def test_stopped_at_any_step_it_is_one_whole_state(pair: Pair, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    pair.write("memory/one.md", "# One\n")
    pair.write("memory/two.md", "# Two\n")
    pair.sync(is_complete=False)
    before = pair.memory()
    pair.write("memory/one.md", "# One, edited\n")
    os.rename(pair.place.workspace / "memory/two.md", pair.place.workspace / "memory/three.md")
    published = pair.publish()
    after, step, is_through = pair.shared(), 0, False
    kept = pair.root.with_name("kept")
    shutil.copytree(pair.root, kept, symlinks=True)
    full = OSError(errno.ENOSPC, "No space left on device")
    seen = []
    while not is_through:
        step += 1
        shutil.rmtree(pair.root)
        shutil.copytree(kept, pair.root, symlinks=True)
        with (
            stopped_at(step, monkeypatch, StoppedHere if fault == "killed" else lambda: full) as calls,
            suppress(StoppedHere, StorageFailed),
        ):
            pair.receive(published)
        is_through = calls[0] < step
        seen.append(pair.memory())
        pair.receive(published)
        assert pair.memory() == after, f"the next run, after one that ended at step {step}"
    assert all(state in (before, after) for state in seen)
    assert before in seen
    assert step > 10


def test_any_history_of_edits_faults_and_runs(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens in whatever order, the copy is a state that the host once published, and at last its latest."""
    choose = random.Random(24)
    names = [f"memory/f{number}.md" for number in range(6)]
    for _ in range(60):
        for name in choose.sample(names, 2):
            file = pair.place.workspace / name
            if file.exists() and choose.random() < 0.3:
                file.unlink()
            else:
                pair.write(name, f"# {name}\nversion {choose.random()}\n")
        published = pair.publish()
        step = choose.randrange(1, 60)
        with stopped_at(step, monkeypatch, StoppedHere), suppress(StoppedHere, UnusablePublication):
            pair.receive(published)
        assert not pair.memory() or pair.memory() in pair.states.values()
    pair.receive(pair.publish())
    assert pair.memory() == pair.shared()


def test_half_copied_and_damaged_objects_are_not_installed(pair: Pair, tmp_path: Path) -> None:
    pair.sync(is_complete=False)
    before = pair.memory()
    pair.write("memory/new.md", "# New\n" * 100)
    published = pair.publish()
    for name in published.objects:
        path = published.folder / OBJECTS / name
        whole = path.read_bytes()
        for broken in (whole[: len(whole) // 2], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
            path.write_bytes(broken)
            with suppress(UnusablePublication):  # a pack that it does not need is not read
                pair.receive(published)
            assert pair.memory() in (before, pair.shared())
        path.write_bytes(whole)
    pair.receive(published)
    assert pair.memory() == pair.shared()


def test_nothing_is_published_while_another_truekeep_writes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "LOCK_WAIT_SECONDS", 0.1)
    with pair.place.open() as workspace, workspace.locked(), pytest.raises(Busy):
        pair.publish()


# --- Private ---------------------------------------------------------------------------------------------------------


def test_what_is_private_never_leaves(pair: Pair) -> None:
    pair.place.configure('[sync]\nprivate = ["memory/diary/", "Salary*.md"]\n')
    for path in (
        "SOUL.md", "memory/diary/2026-11-01.md", "memory/diary/deep/a.md", "memory/cards/salary-2026.md",
        "memory/SALARY.md", "memory/people/USER.md", "memory/handoff-inbox/draft.md",
    ):  # fmt: skip
        pair.write(path, f"# Secret\n{SECRET} {path}\n")
    pair.write("USER.md", "# User\nAda\n")
    (pair.place.workspace / "memory/plain.md").symlink_to(pair.place.workspace / "memory/SALARY.md")
    (pair.place.workspace / "memory/notes").symlink_to(pair.place.workspace / "memory/diary")
    os.link(pair.place.workspace / "memory/SALARY.md", pair.place.workspace / "memory/linked.md")
    shutil.copy(pair.place.workspace / "memory/diary/deep/a.md", pair.place.workspace / "memory/copied.md")
    published = pair.publish()
    pair.receive(published, is_complete=True)
    assert SECRET.encode() not in pair.bytes_of_copy()
    assert {item.path for item in published.withheld} == {"memory/linked.md", "memory/copied.md"}
    assert "memory/handoff-inbox/draft.md" not in pair.memory()
    assert "USER.md" in pair.memory()


def test_what_becomes_private_or_is_renamed_is_gone_with_the_next_sync(pair: Pair) -> None:
    pair.write("memory/plans.md", f"# Plans\nfirst {SECRET}\n")
    pair.sync()
    assert SECRET.encode() in pair.bytes_of_copy()
    pair.write("memory/plans.md", f"# Plans\nsecond {SECRET}\n")
    pair.sync()
    pair.place.configure('[sync]\nprivate = ["memory/plans.md"]\n')
    published = pair.publish()
    assert all(SECRET.encode() not in (published.folder / OBJECTS / name).read_bytes() for name in published.objects)
    pair.receive(published, is_complete=True)
    assert "memory/plans.md" not in pair.memory()
    assert SECRET.encode() not in pair.bytes_of_copy(), "not in an index, nor in an earlier generation"
    os.rename(pair.place.workspace / "memory/plans.md", pair.place.workspace / "memory/ideas.md")
    again = pair.publish()
    assert [item.path for item in again.withheld] == ["memory/ideas.md"]
    pair.place.configure("")
    assert pair.publish().withheld == (), "the list decides"


def test_what_a_route_withholds_from_now_on_is_gone_with_the_next_sync(pair: Pair) -> None:
    """Each list of private files has its own folder of publications, new or used before."""
    pair.write("memory/plans.md", f"# Plans\n{SECRET}\n")
    for _ in range(2):
        pair.receive(pair.publish(), is_complete=True)
        assert SECRET.encode() in pair.bytes_of_copy()
        published = pair.publish(withheld=("memory/plans.md",))
        assert published.head.purged == published.head.sequence
        pair.receive(published, is_complete=True)
        assert "memory/plans.md" not in pair.memory()
        assert SECRET.encode() not in pair.bytes_of_copy(), "not in an index, nor in an earlier generation"
    again = pair.publish(withheld=("memory/plans.md",))
    assert again.head.sequence == published.head.sequence, "nothing changed since"


def test_a_host_that_lost_its_notes_purges_and_goes_on(pair: Pair) -> None:
    pair.write("memory/plans.md", f"# Plans\n{SECRET}\n")
    before = pair.publish(now=NOW + timedelta(days=400))
    pair.receive(before, is_complete=True)
    (before.folder / NOTES).unlink()
    pair.place.configure('[sync]\nprivate = ["memory/plans.md"]\n')
    pair.receive(pair.publish(), is_complete=True)
    assert SECRET.encode() not in pair.bytes_of_copy()
    assert "MEMORY.md" in pair.memory()


def test_a_publisher_serves_a_route_whose_list_changed_from_another_folder(pair: Pair) -> None:
    laptop, tower = Route("laptop", "rclone", {}), Route("tower", "rclone", {})
    first = publisher(pair.place.workspace)
    assert first(laptop).head.sequence == first(tower).head.sequence, "shared"
    listed = Route("tower", "rclone", {"private": ("MEMORY.md",)})
    second = publisher(pair.place.workspace)
    sequence = second(laptop).head.sequence
    purged = second(listed).head.purged
    assert purged > sequence
    third = publisher(pair.place.workspace)
    assert third(listed).head.purged == purged, "told once"
    assert third(tower).head.purged > purged
    assert third(laptop).head.manifest == third(tower).head.manifest


def test_another_persons_login_does_not_get_user_md(pair: Pair) -> None:
    pair.write("USER.md", "# User\nAda\n")
    pair.receive(pair.publish(withheld=("USER.md",)))
    assert "USER.md" not in pair.memory()


# --- Who says so -----------------------------------------------------------------------------------------------------


def edit_head(published_folder: Path, **changes: object) -> None:
    path = published_folder / HEAD
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_only_the_paired_host_is_believed(pair: Pair) -> None:
    published = pair.publish()
    key = read_signer().public
    assert pair.receive(published, key=key) is not None
    pair.write("memory/more.md", "# More\n")
    published = pair.publish()
    edit_head(published.folder, host="mallory")
    with pytest.raises(UnusablePublication, match="not signed by the paired host"):
        pair.receive(published, key=key)
    edit_head(pair.publish().folder, format=99)
    with pytest.raises(NewerState, match="a newer truekeep"):
        pair.receive(published, key=key)
    (published.folder / HEAD).write_text("{")
    with pytest.raises(UnusablePublication, match="cannot be read"):
        pair.receive(published, key=key)


def test_an_older_state_and_a_second_host_are_refused(pair: Pair, tmp_path: Path) -> None:
    old = pair.publish()
    shutil.copytree(old.folder, tmp_path / "kept")
    pair.write("memory/new.md", "# New\n")
    pair.sync(is_complete=False)
    now = pair.memory()
    with pytest.raises(UnusablePublication, match="older than the copy here"):
        pair.receive(old._replace(folder=tmp_path / "kept"))
    other = Place.make(tmp_path / "other")
    rival = Pair(other, pair.root)
    published = rival.publish()
    head = published.head._replace(host_id="f" * 32, host="tower").signed(read_signer())
    (published.folder / HEAD).write_bytes(head.render())
    with pytest.raises(UnusablePublication, match="both publish as the canonical host"):
        rival.receive(published)
    assert pair.memory() == now


def test_a_host_that_took_over_is_followed_and_a_renamed_one_shown(pair: Pair) -> None:
    pair.sync(is_complete=False)
    published = pair.publish()
    pair.write("memory/after.md", "# After\n")
    published = pair.publish()
    head = published.head._replace(host="newname", generation=2, host_id="e" * 32, sequence=1).signed(read_signer())
    (published.folder / HEAD).write_bytes(head.render())
    pair.receive(published)
    assert pair.memory() == pair.shared()
    source = pair.open().source
    assert source is not None
    assert source.host == "newname"


def test_a_renamed_host_is_shown_though_nothing_else_is_new(pair: Pair) -> None:
    pair.sync(is_complete=False)
    published = pair.publish(now=NOW + timedelta(minutes=5))
    head = published.head._replace(host="newname").signed(read_signer())
    (published.folder / HEAD).write_bytes(head.render())
    report = pair.receive(published, key=read_signer().public)
    assert report is not None
    assert report.changed == -1
    source = pair.open().source
    assert source is not None
    assert source.in_words(NOW + timedelta(minutes=5)) == "as of just now, from newname"


def test_a_clock_that_jumps(pair: Pair) -> None:
    pair.sync(now=NOW + timedelta(days=400), is_complete=False)
    pair.write("memory/back.md", "# Back\n")
    pair.sync(now=NOW, is_complete=False)
    assert pair.memory() == pair.shared(), "the number goes on, whatever the clock says"
    source = pair.open().source
    assert source is not None
    assert source.in_words(NOW - timedelta(days=3)).startswith("as of an unknown time")
    assert source.is_stale(NOW - timedelta(days=3))
    assert "is wrong: `date` on both" in source.warning(NOW - timedelta(days=3))


def test_a_copy_trusts_the_hosts_time_again_after_its_clock_was_a_day_ahead(pair: Pair) -> None:
    real = datetime.now(UTC)
    pair.sync(now=real + timedelta(days=1), is_complete=False)
    source = pair.open().source
    assert source is not None
    assert "is wrong: `date` on both" in source.warning(real)
    pair.sync(now=real, is_complete=False)
    source = pair.open().source
    assert source is not None
    assert source.note(real) == f"as of just now, from {source.host}", "though no file changed"


# --- Only read -------------------------------------------------------------------------------------------------------


def test_an_edited_copy_is_kept_aside_and_said(pair: Pair) -> None:
    pair.sync(is_complete=False)
    current = pair.folder.current()
    assert current is not None
    card = current / "memory/cards/staging-proxy.md"
    assert not os.stat(card).st_mode & 0o222
    card.unlink()
    card.write_text("mine\n")
    (current / "memory/extra.md").write_text("also mine\n")
    (result,) = [item for item in pair.open().health.check(now=NOW).results if item.name == "copies"]
    assert (result.severity, "2 files edited here" in result.said) == ("warning", True), result
    pair.write("memory/new.md", "# New\n")
    report = pair.sync(is_complete=False)
    assert report is not None
    assert sorted(Path(path).read_text() for path in report.edited) == ["also mine\n", "mine\n"]
    assert "2 files of the copy were edited here" in report.notes[0]
    (result,) = [item for item in pair.open().health.check(now=NOW).results if item.name == "copies"]
    assert f"; 2 edits made here kept as {report.edited[0]}" in result.said, "also where nobody saw the run"
    assert pair.memory() == pair.shared()


def test_no_space_leaves_the_copy_as_it_is(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    published = pair.publish()
    real = os.statvfs(pair.root.parent)

    def hint() -> str:
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _: os.statvfs_result((*real[:4], 0, *real[5:])))
            with pytest.raises(StorageFailed, match="no space left for the copy") as failed:
                pair.receive(published)
        return failed.value.hint

    assert hint() == "free some space", "there is no earlier copy"
    pair.sync(is_complete=False)
    before = pair.memory()
    pair.write("memory/new.md", "# New\n")
    published = pair.publish()
    assert hint() == "free some space; the earlier copy still answers"
    assert pair.memory() == before


def test_no_machine_writes_a_copy_not_even_one_with_the_hosts_id(pair: Pair) -> None:
    pair.sync()
    with pair.open() as copy:
        assert copy.machine.id == copy.state.host().id, "a clone of the host"
        assert not copy.is_canonical
        with pytest.raises(NotCanonical, match="it has a copy of the memory of"):
            copy.handoffs.ingest()
        with pytest.raises(NotCanonical), copy.writing("test"):
            pass


def test_host_take_leaves_nothing_out_silently(pair: Pair, tmp_path: Path, own_home: Path) -> None:
    for name in ("touched", "edited", "removed", "linked"):
        pair.write(f"memory/{name}.md", f"# {name}\n")
    pair.sync()
    current = pair.folder.current()
    assert current is not None
    os.utime(current / "memory/touched.md")
    for name in ("edited", "removed", "linked"):
        (current / f"memory/{name}.md").unlink()
    (current / "memory/edited.md").write_text("mine\n")
    (current / "memory/added.md").write_text("also mine\n")
    (current / "memory/linked.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("not memory\n")
    (current / ".obsidian").mkdir()
    (current / ".obsidian/x.md").write_text("settings\n")
    target = tmp_path / "taken"
    take = ("-w", str(current), "host", "take", "--yes", "--to")
    done = run_cli(*take, str(target), "--json", TRUEKEEP_MACHINE_ID="b")
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    assert found["edited"] == ["memory/edited.md", "memory/added.md"]
    assert found["left"] == ["memory/linked.md", "memory/removed.md", ".obsidian/x.md"]
    assert (target / "memory/edited.md").read_text() == "mine\n"
    assert (target / "memory/added.md").read_text() == "also mine\n"
    taken = {path: digest for path, digest in tree(target).items() if path.endswith(".md")}
    assert taken.keys() == {*pair.shared(), "memory/added.md"} - {"memory/removed.md", "memory/linked.md"}
    assert {path for path in taken if taken[path] != pair.shared().get(path)} == set(found["edited"])
    shown = run_cli(*take, str(tmp_path / "second"), TRUEKEEP_MACHINE_ID="b")
    for path in (*found["edited"], *found["left"]):
        assert path in shown.stdout, shown


def test_host_take_makes_a_workspace_of_a_copy(pair: Pair, tmp_path: Path, own_home: Path) -> None:
    pair.sync()
    target = tmp_path / "taken"
    with make_workspace(pair.open(), target) as taken:
        lease = taken.host.take(taken.host.status())
        assert taken.source is None
        assert lease.generation >= 1
        assert {path: text for path, text in tree(target).items() if path.endswith(".md")} == pair.shared()
    assert (target / "MEMORY.md").stat().st_mode & 0o200
    done = run_cli(
        "-w", str(pair.folder.current()), "host", "take", "--yes", "--to", str(target), TRUEKEEP_MACHINE_ID="b"
    )
    assert (done.returncode, "is not empty" in done.stderr) == (3, True), done
    done = run_cli("-w", str(pair.folder.current()), "host", "take", "--yes", TRUEKEEP_MACHINE_ID="b")
    assert done.returncode == 0, done
    assert "generation 2" in done.stdout
    shown = run_cli("status", "--json", TRUEKEEP_MACHINE_ID="b")
    assert json.loads(shown.stdout)["memory"]["workspace"] == str(own_home / ".openclaw/workspace")
    card = run_cli("card", "confirm", "staging-proxy", TRUEKEEP_MACHINE_ID="b")
    assert card.returncode == 0, card


# --- What must not be believed, nor lost ------------------------------------------------------------------------------


def test_a_symlink_in_the_path_of_the_state_loses_no_generation(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    linked = Pair(pair.place, tmp_path / "link" / "copy")
    for text in ("one", "two", "three"):
        linked.write("memory/new.md", f"# New\n{text}\n")
        linked.sync(is_complete=False)
        assert linked.memory() == linked.shared()
    kept = sorted((tmp_path / "real/copy/generations").iterdir())
    assert len(kept) == 2, "the one in use, and the one before for who reads it"


def sign_again(published: Publication, **changes: Any) -> None:
    """What somebody could send who has a key."""
    head = published.head._replace(**changes).signed(read_signer())
    (published.folder / HEAD).write_bytes(head.render())


@pytest.mark.parametrize("stamp", ["/tmp/x", "../../../home", "2026-11-15T12:30:00Z/..", "2026-11-15T12:30:00+00:00"])
def test_a_time_that_is_none_is_refused(pair: Pair, stamp: str) -> None:
    pair.sync(is_complete=False)
    pair.write("memory/new.md", "# New\n")
    published = pair.publish()
    sign_again(published, as_of=stamp)
    before = pair.memory()
    with pytest.raises(UnusablePublication, match=r"head\.json cannot be read"):
        pair.receive(published)
    assert pair.memory() == before


def test_an_edit_is_kept_by_each_try_and_never_overwritten(pair: Pair) -> None:
    pair.write("memory/a.md", "# A\n")
    pair.sync(is_complete=False)
    edited = (pair.folder.current() or Path()) / "memory/a.md"
    pair.write("memory/new.md", "# New\n")
    published = pair.publish()

    def fail(_: NewGeneration) -> None:
        raise StoppedHere

    for text in ("first edit\n", "first edit\n", "a second edit\n"):
        edited.chmod(0o644)
        edited.write_text(text)
        edited.chmod(0o444)
        with pytest.raises(StoppedHere):
            pair.folder.receive(IncomingFolder(published.folder), finish=fail)
    report = pair.receive(published)
    assert report is not None
    assert [Path(place).read_text() for place in report.edited] == ["a second edit\n"]
    kept = sorted(path.read_text() for path in (pair.root / "edited").rglob("*.md"))
    assert kept == ["a second edit\n", "first edit\n"]


def test_an_edit_that_cannot_be_kept_stops_the_installation(pair: Pair) -> None:
    pair.sync(is_complete=False)
    current = pair.folder.current() or Path()
    (current / "memory/mine.md").write_text("mine\n")
    (pair.root / "edited").write_text("in the way\n")
    pair.write("memory/new.md", "# New\n")
    published = pair.publish()
    with pytest.raises(StorageFailed, match=r"memory/mine\.md was edited here, and the edit cannot be kept"):
        pair.receive(published)
    assert (pair.folder.current(), (current / "memory/mine.md").read_text()) == (current, "mine\n")
    (pair.root / "edited").unlink()
    assert pair.receive(published) is not None
    assert pair.memory() == pair.shared()


def test_a_file_that_was_deleted_in_the_copy_is_said_as_deleted(pair: Pair) -> None:
    pair.write("memory/a.md", "# A\n")
    pair.sync(is_complete=False)
    ((pair.folder.current() or Path()) / "memory/a.md").unlink()
    pair.write("memory/new.md", "# New\n")
    report = pair.sync(is_complete=False)
    assert report is not None
    assert (report.edited, report.deleted) == ((), ("memory/a.md",))
    assert "1 file of the copy was deleted here, as memory/a.md" in report.notes[0]
    assert "kept" not in report.notes[0]
    assert pair.memory() == pair.shared()


class SentFiles:
    """A publication of any files, signed, as a host with an error or somebody with a key could send it."""

    def __init__(self, files: dict[str, bytes], head: Head, *, pack: bytes = b"", size: int | None = None) -> None:
        packed = pack or render_pack({digest_of(data): data for data in files.values()})
        listed = [
            PublishedFile(path, digest_of(data), len(data) if size is None else size, 10**18, 0)
            for path, data in files.items()
        ]
        manifest = render_manifest(PublicationManifest(tuple(listed), ((digest_of(packed), len(packed)),)))
        self.objects = {digest_of(packed): packed, digest_of(manifest): manifest}
        self.head = head._replace(manifest=digest_of(manifest), sequence=head.sequence + 1).signed(read_signer())

    def read_head(self) -> bytes:
        return self.head.render()

    def read_object(self, digest: str, limit: int) -> bytes | None:
        return self.objects[digest]


def packed_as(method: int, data: bytes, *, damage: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as pack:
        pack.writestr(digest_of(data), data)
    raw = bytearray(out.getvalue())
    raw[94 : 94 + damage] = b"\xff" * damage  # behind the header and the name
    return bytes(raw)


TEXT = b"# A\n" * 200
BROKEN = [
    ({"memory/" + "a" * 300 + ".md": TEXT}, {}, "files that are not memory"),
    ({"memory/" + "\u00e4" * 130 + ".md": TEXT}, {}, "files that are not memory"),
    ({"memory/a.md": TEXT}, {"size": (64 << 20) + 1}, "files that are not memory"),
    ({"memory/a.md": TEXT}, {"pack": packed_as(zipfile.ZIP_LZMA, TEXT)}, "came damaged"),
    ({"memory/a.md": TEXT}, {"pack": packed_as(zipfile.ZIP_BZIP2, TEXT, damage=12)}, "came damaged"),
    ({"memory/a.md": TEXT}, {"pack": packed_as(zipfile.ZIP_DEFLATED, TEXT, damage=8)}, "lacks a file"),
    ({".truekeep/known-settings.json": b"[" * 200_000}, {}, r"known-settings\.json cannot be read"),
    ({".truekeep/known-settings.json": b'{"heartbeat_minutes":-1}'}, {}, r"known-settings\.json cannot be used"),
    ({".truekeep/known-origins.json": b"[" * 200_000}, {}, r"known-origins\.json cannot be used"),
    ({".truekeep/known-origins.json": b'{"MEMORY.md":{}}'}, {}, r"known-origins\.json cannot be used"),
    ({".truekeep/known-origins.json": b'{"MEMORY.md":["d",["r",1,2],5]}'}, {}, r"known-origins\.json cannot be used"),
    ({".truekeep/host": b"\xff\xfe"}, {}, "who is the host cannot be used"),
]


@pytest.mark.parametrize(("files", "given", "said"), BROKEN)
def test_a_broken_publication_leaves_the_copy(pair: Pair, files: dict[str, bytes], given: Any, said: str) -> None:
    pair.sync()
    before, current = pair.memory(), pair.folder.current()
    assert current is not None
    state = {str(path.relative_to(current)): path.read_bytes() for path in (current / ".truekeep/hosts").iterdir()}
    state[".truekeep/host"] = (current / ".truekeep/host").read_bytes()
    sent = SentFiles(files if "pack" in given else {**state, **files}, pair.publish().head, **given)
    with pytest.raises(UnusablePublication, match=said):
        pair.folder.receive(sent, finish=lambda made: complete_copy(made, ()))
    assert (pair.folder.current(), pair.memory()) == (current, before)
    assert pair.open().verification is not None


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), ValueError("x"), RecursionError("x"), TypeError()])
def test_whatever_ends_an_installation_the_earlier_copy_answers(pair: Pair, error: Exception) -> None:
    pair.sync(is_complete=False)
    before = pair.memory()
    pair.write("memory/new.md", "# New\n")

    def fail(_: NewGeneration) -> None:
        raise error

    with pytest.raises(UnusablePublication, match="cannot be installed"):
        pair.folder.receive(IncomingFolder(pair.publish().folder), finish=fail)
    assert pair.memory() == before


def test_a_route_that_fails_meanwhile_is_said_as_such(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    source = IncomingFolder(pair.publish().folder)

    def fail(*_: object) -> None:
        raise Unreachable("the network is gone")

    monkeypatch.setattr(source, "read_object", fail)
    with pytest.raises(Unreachable):
        pair.folder.receive(source)


def test_a_deeply_nested_head_is_no_news(own_home: Path) -> None:
    incoming = Path(copy_root()) / "incoming"
    incoming.mkdir(parents=True)
    (incoming / HEAD).write_text("[" * 60_000)
    assert not has_news()


def put_here(pair: Pair, signer: Signer, **changes: Any) -> None:
    """Send a publication to this machine, as the host does by rsync."""
    published = pair.publish()
    incoming = Path(copy_root()) / "incoming"
    shutil.copytree(published.folder / OBJECTS, incoming / OBJECTS, dirs_exist_ok=True)
    head = published.head._replace(key=signer.public, **changes).signed(signer)
    (incoming / HEAD).write_bytes(head.render())


@pytest.fixture
def sent(pair: Pair, own_home: Path) -> Pair:
    """A host that has sent its memory to this machine by rsync."""
    put_here(pair, read_signer())
    assert receive_sent() is not None
    return Pair(pair.place, Path(copy_root()))


def test_what_another_key_signed_does_not_replace_a_copy_that_was_sent(sent: Pair) -> None:
    before = sent.memory()
    sent.write("memory/forged.md", "# Forged\n")
    other = Signer(Ed25519PrivateKey.generate())
    put_here(sent, other, generation=2, host_id="e" * 32, host="tower")
    with pytest.raises(UnusablePublication, match="another key than that of the copy here") as refused:
        receive_sent()
    assert sent.memory() == before
    assert f"`rm {sent.folder.root / CURRENT}` here, then `truekeep sync run` on the host" in str(refused.value.hint)
    shown = run_cli("search", "staging port")
    assert (shown.returncode, "8443" in shown.stdout) == (0, True), shown
    assert "another key" in shown.stderr
    (sent.folder.root / CURRENT).unlink()  # the step that the message names
    assert receive_sent() is not None
    assert sent.memory() == sent.shared()


def test_the_key_of_a_paired_route_counts_for_what_is_sent(sent: Pair) -> None:
    before = sent.memory()
    paired = Signer(Ed25519PrivateKey.generate())
    write_routes(Path(own_state()), {"shared": Route("shared", "git", {"remote": "x", "host_key": paired.public})})
    sent.write("memory/new.md", "# New\n")
    put_here(sent, read_signer())
    with pytest.raises(UnusablePublication, match="not signed by the paired host") as refused:
        receive_sent()
    assert "truekeep connect machine --host-key KEY" in str(refused.value.hint)
    assert sent.memory() == before
    put_here(sent, paired)
    assert receive_sent() is not None
    assert sent.memory() == sent.shared()


def test_a_state_that_came_earlier_by_another_route_is_no_news(sent: Pair) -> None:
    """The host pushed a state, and this machine then pulled a later one: what was pushed is left alone."""
    incoming = sent.folder.root / "incoming"
    done = json.loads((sent.folder.root / HEAD).read_text())
    for change, expected in (
        ({"sequence": done["sequence"] - 1, "manifest": "0" * 64}, False),
        ({"sequence": done["sequence"] + 1, "manifest": "0" * 64}, True),
        ({"generation": done["generation"] + 1, "sequence": 1, "manifest": "0" * 64}, True),
        ({"host_id": "0" * 32, "sequence": 1, "manifest": "0" * 64}, True),
        ({"host": "renamed"}, True),
        ({}, False),
    ):
        (incoming / HEAD).write_text(json.dumps({**done, **change}))
        assert has_news() is expected, change
