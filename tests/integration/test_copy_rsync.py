"""Memory on its way down by rsync over ssh, against a real sshd: another machine answers from a copy of the host's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, Place, a_handoff, git_repo, run_cli, tree
from tests.support.sshd import SshHost, ssh_host
from truekeep.core.machine import own_state
from truekeep.core.memory_copy import read_source
from truekeep.handoffs.sync import via_rsync
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.publication import parse_head
from truekeep.handoffs.sync.receipts import KEY_FILE, read_signer
from truekeep.handoffs.sync.routes import Option, Route
from truekeep.workspace.machine_role import side_of


@dataclass
class Laptop:
    """The host's workspace, and a laptop that ssh reaches."""

    place: Place
    ssh: SshHost

    def sync(self, **options: Option) -> Contact:
        with self.place.open() as workspace:
            side = side_of(workspace)
        repos = (f"{self.ssh.base}/repos/*",)
        given: dict[str, Option] = {**self.ssh.options, "repos": repos, "memory": True, **options}
        return via_rsync.contact(Route("laptop", "rsync", given), side)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_cli(*arguments, HOME=str(self.ssh.home), TRUEKEEP_MACHINE_ID="laptop")

    @property
    def copy(self) -> Path:
        return self.ssh.home / ".local/state/truekeep/copy"

    def memory(self) -> dict[str, str]:
        """The memory files of the copy."""
        found = Path(os.path.realpath(self.copy / "current"))
        return {path: data for path, data in tree(found).items() if path.endswith(".md")}

    def write(self, path: str, text: str) -> None:
        file = self.place.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def laptop(place: Place, tmp_path: Path) -> Iterator[Laptop]:
    with ssh_host(tmp_path / "other machines", "laptop") as ssh:
        (git_repo(ssh.base / "repos" / "app", remote="git@github.com:me/app.git") / CLAUDE).mkdir(parents=True)
        ssh.program("truekeep", f'TRUEKEEP_MACHINE_ID=laptop exec "{sys.executable}" -P -m truekeep "$@"')
        (place.repo / ".git/config").write_text('[remote "origin"]\n\turl = git@github.com:me/app.git\n')
        place.leave(a_handoff())
        place.ingest()
        yield Laptop(place, ssh)


def test_a_card_of_the_host_is_found_and_briefed_on_the_laptop(laptop: Laptop) -> None:
    before = laptop.run("search", "which port does staging use")
    assert before.returncode == 6, before
    done = laptop.sync()
    assert (done.ok, done.notes) == (True, ()), done
    assert laptop.memory() == {
        path: data for path, data in tree(laptop.place.workspace).items() if path.endswith(".md")
    }
    found = json.loads(laptop.run("search", "which port does staging use", "--json").stdout)
    assert found["hits"][0]["path"] == "memory/cards/staging-proxy.md"
    shown = laptop.run("search", "which port does staging use")
    assert "as of just now, from " in shown.stdout + shown.stderr
    brief = laptop.run("wake", "--repo", str(laptop.ssh.base / "repos" / "app"))
    assert "Staging answers on port 8443 only." in brief.stdout
    assert "as of just now, from " in brief.stdout
    assert "8443" in laptop.run("get", "memory/cards/staging-proxy.md").stdout


def test_nothing_new_is_one_login_and_confirms_the_copy(laptop: Laptop) -> None:
    laptop.sync()
    current, logins = os.readlink(laptop.copy / "current"), laptop.ssh.logins()
    head = json.loads((laptop.copy / "incoming/head.json").read_bytes())
    time.sleep(1.1)  # the time is in seconds
    laptop.sync()
    assert laptop.ssh.logins() == logins + 1
    assert os.readlink(laptop.copy / "current") == current
    source = read_source(laptop.copy / "current")
    assert source is not None
    later = json.loads((laptop.copy / "incoming/head.json").read_bytes())
    assert (later["manifest"], later["sequence"]) == (head["manifest"], head["sequence"])
    assert source.as_of == later["as_of"] > head["as_of"], "the host said that it is still its state"


def test_changes_renames_and_deletions_arrive(laptop: Laptop) -> None:
    laptop.write("memory/one.md", "# One\nthe first\n")
    laptop.write("memory/two.md", "# Two\nthe second\n")
    laptop.sync()
    laptop.write("memory/one.md", "# One\nthe first, edited\n")
    os.rename(laptop.place.workspace / "memory/two.md", laptop.place.workspace / "memory/three.md")
    laptop.sync()
    assert laptop.memory() == {
        path: data for path, data in tree(laptop.place.workspace).items() if path.endswith(".md")
    }
    hits = json.loads(laptop.run("search", "the second", "--json").stdout)["hits"]
    assert hits[0]["path"] == "memory/three.md"


def test_a_laptop_writes_nothing_but_handoffs(laptop: Laptop) -> None:
    laptop.sync()
    before = laptop.memory()
    app = laptop.ssh.base / "repos" / "app"
    refused: list[tuple[str, ...]] = [("ingest",), ("card", "confirm", "staging-proxy"), ("undo", "1")]
    for verb in refused:
        done = laptop.run(*verb)
        assert (done.returncode, "a copy of the memory of" in done.stderr) == (4, True), (verb, done)
    for words in ("tidy decay", "verify --fix", "index", "tidy duplicates"):
        laptop.run(*words.split())
    left = laptop.run("checkpoint", "--summary", "tried it", "--repo", str(app), "--writer", "claude")
    assert left.returncode == 0, left
    assert list((app / ".claude/memory-handoffs").glob("*.md"))
    assert laptop.memory() == before


def test_without_truekeep_on_the_path_of_ssh_the_next_command_installs_it(laptop: Laptop) -> None:
    (laptop.ssh.bin / "truekeep").unlink()
    done = laptop.sync()
    assert done.ok, done
    assert "installs it when `truekeep` is next used there" in " ".join(done.notes), done
    assert not (laptop.copy / "current").exists()
    assert "8443" in laptop.run("search", "staging port").stdout


def test_what_becomes_private_is_removed_there_also_without_truekeep(laptop: Laptop) -> None:
    laptop.write("memory/plans.md", "# Plans\nthe hidden lighthouse of Uppsala\n")
    laptop.sync()
    objects = laptop.copy / "incoming/objects"
    before = set(os.listdir(objects))
    (laptop.ssh.bin / "truekeep").unlink()
    laptop.place.configure('[sync]\nprivate = ["plans.md"]\n')
    laptop.sync()
    assert not before & set(os.listdir(objects)), "every pack and list of the earlier state"
    assert "lighthouse" not in laptop.run("search", "hidden lighthouse").stdout
    everything = b"".join(path.read_bytes() for path in laptop.copy.rglob("*") if path.is_file())
    assert b"hidden lighthouse" not in everything


def test_a_laptop_without_routes_says_who_keeps_its_copy_fresh(laptop: Laptop) -> None:
    assert "no routes yet" in laptop.run("sync", "status").stdout
    laptop.sync()
    for command in ("status", "run"):
        shown = laptop.run("sync", command).stdout
        assert f"{os.uname().nodename} fetches handoffs and sends memory, as of just now" in shown


def test_a_renamed_host_is_shown_once_its_signature_was_verified(laptop: Laptop) -> None:
    laptop.sync()
    sent = laptop.copy / "incoming/head.json"
    kept = sent.read_bytes()
    sent.write_text(json.dumps({**json.loads(kept), "host": "mallory"}))
    forged = laptop.run("search", "staging port")
    assert "8443" in forged.stdout
    assert "is not signed by the paired host" in forged.stderr
    assert "from mallory" not in forged.stdout + forged.stderr
    head = parse_head(kept)
    sent.write_bytes(head._replace(host="newname").signed(read_signer()).render())
    assert "from newname" in laptop.run("search", "staging port").stderr


def test_a_host_with_a_new_key_is_told_what_to_do_on_the_laptop(laptop: Laptop) -> None:
    laptop.sync()
    before = laptop.memory()
    (Path(own_state()) / KEY_FILE).unlink()
    laptop.write("memory/new.md", "# New\n")
    done = laptop.sync()
    assert done.ok, done
    (said,) = done.notes
    assert "laptop has the memory, and did not install it: the memory that came is signed with another key" in said
    assert f"`rm {laptop.copy / 'current'}` here, then `truekeep sync run` on the host" in said
    assert laptop.memory() == before
    (laptop.copy / "current").unlink()
    assert laptop.sync().notes == ()
    assert "memory/new.md" in laptop.memory()
