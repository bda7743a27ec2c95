"""The command `truekeep alf`: what it prints, with and without --json, its exit codes, the next step of each error."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.alf_builder import Archive, a_record
from tests.support.alf_places import AGENT, SAMPLE, a_workspace, assert_sound, entries_of, left_over, look, records_in
from tests.support.helpers import run_cli
from tests.unit.integrations.alf.test_export import a_key
from truekeep.integrations.alf import zip_container
from truekeep.interfaces.cli.app import run

COMMANDS = ("export", "delta", "apply", "import", "validate", "show", "purge")


class Shell:
    """The command line in one folder: what was printed, and how it ended."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = run([*arguments])
        printed = self._capsys.readouterr()
        assert "a bug" not in printed.err, printed.err
        return code, printed.out, printed.err

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        ended, out, err = self(*arguments, "--json")
        assert ended == code, out + err
        found: dict[str, Any] = json.loads(out)
        return found

    def error(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """An error, the same in words and in JSON; it names a next step."""
        code, out, err = self(*arguments)
        assert out == ""
        again, told, _ = self(*arguments, "--json")
        found = json.loads(told)["error"]
        assert again == code
        assert found["message"] in err
        assert found["hint"], "an error without a next step"
        assert found["hint"] in err
        return code, found


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    a_workspace(tmp_path / "ws")
    return Shell(tmp_path, capsys)


@pytest.fixture
def archive(shell: Shell) -> str:
    assert shell("alf", "export", "-w", "ws", "-o", "a.alf")[0] == 0
    return "a.alf"


def edit_memory(folder: Path) -> None:
    (folder / "ws" / "MEMORY.md").write_bytes(SAMPLE["MEMORY.md"].replace(b"Vim", b"Emacs"))


# --- Out ------------------------------------------------------------------------------------------------------------


def test_export(shell: Shell) -> None:
    code, out, err = shell("-w", "ws", "alf", "export", "-o", "a.alf")
    assert code == 0
    size = os.path.getsize("a.alf")
    assert out == f"wrote a.alf ({size / 1000:.1f} kB): 13 records, 20 files of 1.6 kB, 1 of them only referenced\n"
    assert err == "note: memory/latin.md is not UTF-8 text: it is included without records\n"
    told = shell.json("-w", "ws", "alf", "export", "-o", "b.alf")
    assert told["schema"] == "truekeep.alf-export/1"
    assert (told["size"], told["records"], told["files"], told["referenced"]) == (size, 13, 20, 1)
    assert told["agent"]["id"] == AGENT
    assert told["omitted"] == []


def test_export_names_the_archive_itself(shell: Shell) -> None:
    code, out, _ = shell("alf", "export", "-w", "ws")
    assert code == 0
    [made] = [path.name for path in shell.folder.glob("ws-*.alf")]
    assert out.startswith(f"wrote {made} ")
    public, _ = a_key(shell.folder)
    assert shell("alf", "export", "-w", "ws", "--encrypt", public)[0] == 0
    assert len(list(shell.folder.glob("ws-*.alf.age"))) == 1


def test_export_tells_what_it_left_out(shell: Shell) -> None:
    for number in range(25):
        (shell.folder / "ws" / f"link{number:02d}").symlink_to("/etc")
    _, _, err = shell("alf", "export", "-w", "ws", "-o", "a.alf")
    assert err.count("left out: ") == 20
    assert "left out: link00, a symbolic link" in err
    assert "and 5 more; --json lists them" in err
    assert len(shell.json("alf", "export", "-w", "ws", "-o", "b.alf")["omitted"]) == 25


def test_export_errors(shell: Shell, archive: str) -> None:
    assert shell.error("alf", "export", "-w", "ws", "-o", archive) == (
        3,
        {
            "code": "bad-input",
            "message": "a.alf already exists",
            "hint": "name another file with -o, or add --replace",
        },
    )
    assert shell.error("alf", "export", "-w", "nowhere", "-o", "b.alf")[0] == 6
    assert shell.error("alf", "export", "-w", "ws", "-o", "no/such/b.alf")[0] == 7
    assert shell.error("alf", "export", "-w", "ws", "-o", "b.alf", "--encrypt", "age1nonsense")[0] == 3
    assert shell.error("alf", "export", "-w", "ws", "-o", "b.alf", "--base", "missing.alf")[0] == 3
    assert shell("alf", "export", "-w", "ws", "-o", "b.alf", "--ids", "odd")[0] == 2
    assert not Path("b.alf").exists()


def test_no_error_quotes_a_key(shell: Shell) -> None:
    public, private = a_key(shell.folder)
    lines = Path(private).read_text().splitlines()
    secret = next(line for line in lines if line.startswith("AGE-SECRET-KEY-"))
    Path("ssh").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n")
    Path("odd").write_text(f"{public}\n\nsecret words\n")
    for given, told in (
        (private, f"{private}:{lines.index(secret) + 1} is a private key"),
        (secret, "the key given with --encrypt is a private key"),
        ("ssh", "ssh:1 is a private key"),
        ("odd", "odd:3 is not a public key"),
    ):
        code, out, err = shell("alf", "export", "-w", "ws", "-o", "b.alf", "--encrypt", given)
        assert code == 3
        assert told in err
        assert not any(part in out + err for part in (secret[:20], "c2VjcmV0", "secret words"))
    assert "`age-keygen -y" in shell("alf", "export", "-w", "ws", "-o", "b.alf", "--encrypt", private)[2]
    assert not Path("b.alf").exists()


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1", "pipe"])
def test_an_archive_is_no_stream(shell: Shell, output: str) -> None:
    os.mkfifo("pipe")
    code, found = shell.error("alf", "export", "-w", "ws", "-o", output, "--replace")
    assert code == 3
    assert f"an archive cannot be written to {output}" in found["message"]


def test_the_numbers_agree(shell: Shell, archive: str) -> None:
    _, wrote, _ = shell("alf", "export", "-w", "ws", "-o", "b.alf")
    edit_memory(shell.folder)
    shell("alf", "delta", "-w", "ws", "--since", archive, "-o", "d")
    shell("alf", "export", "-w", "ws", "-o", "new.alf", "--base", archive)
    said = [
        shell("alf", "export", "-w", "ws", "-o", "c.alf", "--base", archive)[1],
        shell("alf", "apply", archive, "d", "-o", "e.alf")[1],
    ]
    first, second = (text.partition("): ")[2] for text in said)
    assert first == second
    assert "1 of them only referenced" in wrote
    files = first.partition("records, ")[2].partition(",")[0]
    assert files in shell("alf", "show", "e.alf")[1]
    assert f"delta of agent {AGENT}, state of" in shell("alf", "show", "d")[1]


def test_errors_say_which_archive(shell: Shell, archive: str) -> None:
    Path("cut.alf").write_bytes(Path(archive).read_bytes()[:-9])
    for command in (("apply", archive, "cut.alf", "-o", "x.alf"),):
        assert shell.error("alf", *command)[1]["message"] == "cut.alf: its end is missing: the copy was cut short"


@pytest.mark.parametrize("command", ["import", "export", "show"])
@pytest.mark.parametrize("is_asked_to_end", [True, False])
def test_stopped(
    shell: Shell, archive: str, monkeypatch: pytest.MonkeyPatch, command: str, is_asked_to_end: bool
) -> None:
    def stop(*_: object, **__: object) -> None:
        if not is_asked_to_end:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)

    from truekeep.integrations.alf import describe, import_
    from truekeep.integrations.alf import export as export_module

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(import_, "write_agent_id", stop)
    monkeypatch.setattr(export_module, "write_archive", stop)
    if command == "show":
        monkeypatch.setattr(describe, "open_archive", stop)
    given = {"import": (archive, "back"), "export": ("-w", "ws", "-o", "b.alf"), "show": (archive,)}[command]
    code, _, err = shell("alf", command, *given)
    told = {
        "import": "stopped; every file is complete, and running it again imports the missing ones\n",
        "export": "stopped; no incomplete archive is left\n",
        "show": "stopped\n",
    }
    assert (code, err) == (130, told[command])
    assert left_over(shell.folder) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_export_options(shell: Shell) -> None:
    assert shell("alf", "export", "-w", "ws", "-o", "p.alf", "--plain", "--ids", "positional")[0] == 0
    assert {record["source"]["runtime"] for record in records_in(Path("p.alf"))} == {"openclaw"}
    assert shell("alf", "export", "-w", "ws", "-o", "c.alf", "--no-embeddings", "--base", "p.alf")[0] == 0
    before = {record["content"]: record["id"] for record in records_in(Path("p.alf"))}
    after = {record["content"]: record["id"] for record in records_in(Path("c.alf"))}
    assert after["## Editor\nVim is the editor of choice.\n"] == before["## Editor\nVim is the editor of choice.\n"]


# --- Deltas ---------------------------------------------------------------------------------------------------------


def test_delta_and_apply(shell: Shell, archive: str) -> None:
    code, out, _ = shell("alf", "delta", "-w", "ws", "--since", archive, "-o", "none.alf-delta")
    assert (code, out.partition(": ")[2]) == (0, "nothing changed\n")
    edit_memory(shell.folder)
    code, out, _ = shell("alf", "delta", "-w", "ws", "--since", archive, "-o", "d.alf-delta")
    assert code == 0
    assert out.partition(": ")[2] == "0 records created, 1 updated, 0 deleted; 1 file changed, 0 removed\n"
    told = shell.json("alf", "delta", "-w", "ws", "--since", archive, "-o", "e.alf-delta")
    assert (told["updated"], told["files"], told["size"]) == (1, 1, os.path.getsize("e.alf-delta"))
    code, out, _ = shell("alf", "apply", archive, "d.alf-delta", "-o", "new.alf")
    assert code == 0
    assert "13 records, 20 files" in out
    assert_sound(Path("new.alf"))
    told = shell.json("alf", "apply", archive, "d.alf-delta", "-o", "newer.alf")
    assert told["schema"] == "truekeep.alf-apply/1"
    assert Path("new.alf").read_bytes() == Path("newer.alf").read_bytes()


def test_delta_errors(shell: Shell, archive: str) -> None:
    assert shell("alf", "delta", "-w", "ws")[0] == 2
    assert shell.error("alf", "delta", "-w", "ws", "--since", "missing.alf", "-o", "d")[0] == 3
    assert shell("alf", "apply", archive)[0] == 2
    code, found = shell.error("alf", "apply", archive, archive, "-o", "x.alf")
    assert (code, found["hint"]) == (3, "give the archive first, then the deltas")
    assert not Path("x.alf").exists()


# --- In -------------------------------------------------------------------------------------------------------------


def test_import(shell: Shell, archive: str) -> None:
    code, out, err = shell("alf", "import", archive, "back", "--dry-run")
    assert code == 0
    assert out.count("new       ") == 19
    assert out.endswith(f"would import into {shell.folder}/back: 19 new\n")
    assert err == "not in the archive: big.bin\n"
    assert not Path("back").exists()
    used = "  every later command and hook uses it\n"
    host = "  this machine is its canonical host now; if another one still is: truekeep host release, there\n"
    assert shell("alf", "import", archive, "back")[1] == f"imported into {shell.folder}/back: 19 new\n{used}{host}"
    assert shell("alf", "import", archive, "-w", "back")[1] == f"imported into {shell.folder}/back: 19 same\n"
    (shell.folder / "back" / "MEMORY.md").write_text("mine\n")
    code, found = shell.error("alf", "import", archive, "back")
    assert code == 3
    assert found["message"] == "1 file is different in the workspace, such as MEMORY.md; nothing was written"
    assert "--replace" in found["hint"]
    _, out, _ = shell("-w", "back", "alf", "import", archive, "--dry-run")
    assert out.startswith("different MEMORY.md\n")
    told = shell.json("alf", "import", archive, "back", "--keep")
    assert told["counts"] == {"new": 0, "same": 18, "different": 1, "blocked": 0, "held": 0}
    assert told["files"] == [{"path": "MEMORY.md", "state": "different", "why": ""}]
    assert "18 same, 1 replaced" in shell("alf", "import", archive, "back", "--replace")[1]
    assert (shell.folder / "back" / "MEMORY.md").read_bytes() == SAMPLE["MEMORY.md"]


def test_import_can_be_undone(shell: Shell, archive: str) -> None:
    (shell.folder / "ws" / "MEMORY.md").write_text("mine\n")
    assert shell("alf", "import", archive, "ws", "--replace")[0] == 0
    history = shell.json("history", "-w", "ws")
    [entry] = [entry for entry in history["entries"] if entry["verb"] == "imported"]
    assert shell("undo", str(entry["entry"]), "-w", "ws")[0] == 0
    assert (shell.folder / "ws" / "MEMORY.md").read_text() == "mine\n"


def test_new_files_are_told_of(shell: Shell, archive: str) -> None:
    assert shell("alf", "import", archive, "back")[0] == 0
    entry = shell.json("history", "-w", "back")["entries"][0]
    assert (entry["verb"], entry["note"]) == ("imported", f"a.alf: {len(SAMPLE) - 1} new files")
    code, found = shell.error("undo", str(entry["entry"]), "-w", "back")
    assert code == 3
    assert "it brought new ones" in found["message"]
    assert "came with a.alf, imported 20" in shell("blame", "MEMORY.md", "-w", "back")[1]
    with (shell.folder / "back" / "MEMORY.md").open("a") as file:
        file.write("by hand\n")
    assert "there before truekeep first changed the file" in shell("blame", "MEMORY.md", "-w", "back")[1]


def test_repositories_are_named_after_an_import(shell: Shell, archive: str) -> None:
    """An archive has no configuration: init puts them into the one that the import made, and into no other."""
    assert shell("alf", "import", archive, "back")[0] == 0
    config = shell.folder / "back" / ".truekeep" / "config.toml"
    assert "wrote .truekeep/config.toml" in shell("init", "back", "--repo", "~/repos/*")[1]
    assert 'repositories = ["~/repos/*"]' in config.read_text()
    before = config.read_bytes()
    assert "truekeep config get repositories" in shell("init", "back", "--repo", "~/src/*")[1]
    assert config.read_bytes() == before


def write_card(shell: Shell, workspace: str) -> None:
    (shell.folder / "note.md").write_text("Staging answers on port 8443 only, because the proxy closes all others.\n")
    named = ("port", "--topic", "Staging port", "--file", "note.md", "--anyway")
    assert shell("card", "write", *named, "-w", workspace)[0] == 0


@pytest.mark.slow
def test_what_came_is_known_when_truekeep_has_changed_it(shell: Shell, archive: str) -> None:
    assert shell("alf", "import", archive, "back")[0] == 0
    (shell.folder / "note.md").write_text("Staging answers on port 8443 only, because the proxy closes all others.\n")
    assert (
        shell("card", "write", "port", "--topic", "Staging port", "--file", "note.md", "--anyway", "-w", "back")[0] == 0
    )
    lines = shell.json("blame", "MEMORY.md", "-w", "back")["lines"]
    assert {line["by"] for line in lines} == {"an archive", "truekeep"}
    assert {line["archive"]["archive"] for line in lines if line["archive"]} == {"a.alf"}


def test_the_index_that_init_made(shell: Shell) -> None:
    assert shell("init", "fresh")[0] == 0
    assert "made by truekeep init" in shell("blame", "MEMORY.md", "-w", "fresh")[1]
    (shell.folder / "note.md").write_text("Staging answers on port 8443 only, because the proxy closes all others.\n")
    assert (
        shell("card", "write", "port", "--topic", "Staging port", "--file", "note.md", "--anyway", "-w", "fresh")[0]
        == 0
    )
    told = shell("blame", "MEMORY.md", "-w", "fresh")[1].splitlines()
    assert told[0].split("  ")[-1] == "made by truekeep init"
    assert len(told) == 2


def test_what_a_killed_import_left_goes_with_the_next_write(shell: Shell, archive: str) -> None:
    assert shell("alf", "import", archive, "back")[0] == 0
    left = Path("back/memory/.gone.md.truekeep-tmp")
    other = Path("back/memory/.other.md.truekeep-tmp")
    for path in (left, other):
        path.write_text("half")
    Path("back/.truekeep/importing").write_text('["memory/gone.md", "../../x", "no/such.md", 5]')
    assert shell("note", "log", "-w", "back", "hello")[0] == 0
    assert not left.exists()
    assert other.exists()  # nobody said that it was an import's
    assert not Path("back/.truekeep/importing").exists()


def test_an_import_names_one_workspace(shell: Shell, archive: str) -> None:
    code, _, err = shell("alf", "import", archive, "back", "-w", "other")
    assert code == 2
    assert "Two workspaces are named: back and other." in err
    assert not Path("back").exists()
    assert shell("alf", "import", archive, "back", "-w", "./back")[0] == 0


def test_what_is_kept_is_called_so(shell: Shell, archive: str) -> None:
    edit_memory(shell.folder)
    assert "1 kept" in shell("alf", "import", archive, "ws", "--keep")[1]


def test_import_errors(shell: Shell, archive: str) -> None:
    assert shell.error("alf", "import", archive, "ws", "--replace", "--keep")[1]["hint"] == "give one of them"
    assert shell.error("alf", "import", "missing.alf", "ws")[0] == 3
    Path("file").write_text("x")
    assert shell.error("alf", "import", "file", "back")[0] == 3
    assert shell.error("alf", "import", archive, "file")[0] == 6
    a_workspace(shell.folder / "other", {}, agent="11111111-2222-4333-8444-555555555555")
    code, found = shell.error("alf", "import", archive, "other")
    assert (code, "--replace" in found["hint"]) == (3, True)
    assert not Path("back").exists()


def test_import_on_another_host(shell: Shell, archive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ws/MEMORY.md").unlink()
    before = look(shell.folder / "ws", skip=())
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    assert shell.error("alf", "import", archive, "ws")[0] == 4
    assert look(shell.folder / "ws", skip=()) == before


def test_import_of_a_damaged_archive(shell: Shell) -> None:
    built = Archive(a_record(1, content="good"), a_record(2))
    lines = built.parts()["memory/2026-Q1.jsonl"].splitlines(keepends=True)
    built.entries["memory/2026-Q1.jsonl"] = lines[0] + b"not a record\n"
    Path("x.alf").write_bytes(built.packed())
    code, found = shell.error("alf", "import", "x.alf", "back")
    assert code == 3
    assert "memory/2026-Q1.jsonl:2" in found["message"]
    assert "validate" in found["hint"]
    code, out, _ = shell("alf", "import", "x.alf", "back", "--salvage")
    assert code == 0
    assert "rebuilt from records" in out
    assert "memory/2026-Q1.jsonl:2: unreadable:" in out
    told = shell.json("alf", "import", "x.alf", "other", "--salvage")
    assert [problem["line"] for problem in told["problems"]] == [2]


def test_import_of_something_large(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_container, "COMPRESSION_ALLOWANCE", 1 << 20)
    built = Archive()
    built.entries["raw/openclaw/memory/large.txt"] = bytes(8 << 20)
    Path("x.alf").write_bytes(built.packed())
    for command in (("import", "x.alf", "back"), ("show", "x.alf")):
        code, found = shell.error("alf", *command)
        assert (code, "--large" in found["hint"]) == (3, True)
    assert shell("alf", "show", "x.alf", "--large")[0] == 0
    assert not Path("back").exists()


def test_import_of_an_encrypted_archive(shell: Shell) -> None:
    public, private = a_key(shell.folder)
    Path("keys.txt").write_text(f"# a list\n\n{public}\n")
    assert shell("alf", "export", "-w", "ws", "-o", "a.age", "--encrypt", "keys.txt")[0] == 0
    for command in (("import", "a.age", "back"), ("show", "a.age"), ("validate", "a.age")):
        code, found = shell.error("alf", *command)
        assert (code, found["hint"]) == (3, "give the private key with --identity FILE")
        assert shell("alf", *command, "--identity", private)[0] == 0
    code, found = shell.error("alf", "purge", "a.age", "--record", AGENT, "--replace", "--identity", private)
    assert "would not be" in found["message"]


def test_credentials_are_listed(shell: Shell) -> None:
    built = Archive()
    common = {"credential_type": "api_key", "encrypted_payload": "x", "encryption": {"algorithm": "none", "nonce": ""}}
    item = {
        "id": AGENT,
        "agent_id": AGENT,
        "service": "weather\x1b[31m",
        "created_at": "2026-01-01T00:00:00Z",
        **common,
    }
    built.documents["credentials.json"] = {"credentials": [item, {**item, "service": "mail", "label": "work"}, {}]}
    built.documents["manifest.json"]["layers"]["credentials"] = {"count": 2, "file": "credentials.json"}
    Path("x.alf").write_bytes(built.packed())
    _, _, err = shell("alf", "import", "x.alf", "back")
    assert "log in again: mail (work, api_key)" in err
    assert "\x1b" not in err
    assert "needs a login: mail (work, api_key)" in shell("alf", "show", "x.alf")[1]
    assert shell.json("alf", "import", "x.alf", "back", "--dry-run")["credentials"][1] == "mail (work, api_key)"


# --- Looking --------------------------------------------------------------------------------------------------------


def test_show(shell: Shell, archive: str) -> None:
    code, out, _ = shell("alf", "show", archive)
    assert code == 0
    assert out.startswith(f"archive of Ada (openclaw, {AGENT}), state of 2026-02-10 09:30")
    assert "layers: attachments, identity, memory, principals" in out
    assert "(1 included, 18 raw, 1 referenced)" in out
    told = shell.json("alf", "show", archive, "--records")
    assert told["kind"] == "archive"
    assert sum(row["count"] for row in told["records"]) == len(told["listed"]) == 13
    for record in records_in(Path(archive)):
        assert record["id"] in shell("alf", "show", archive, "--records")[1]
    edit_memory(shell.folder)
    shell("alf", "delta", "-w", "ws", "--since", archive, "-o", "d")
    assert shell("alf", "show", "d")[1].startswith("delta of ")
    assert shell.json("alf", "show", "d", "--records")["listed"][0]["operation"] == "update"


def test_nothing_speaks_to_the_terminal(shell: Shell) -> None:
    built = Archive(a_record(1, content="\x1b[2J\x07evil", namespace="\x1b[31mred", source={"runtime": "x\x1b"}))
    built.put("manifest.json:agent.name", "\x1b]0;title\x07").put("manifest.json:created_at", "\x1b[1m")
    built.documents["manifest.json"]["layers"]["\x1b[5m"] = {}
    Path("x.alf").write_bytes(built.packed())
    for command in (
        ("show", "x.alf", "--records"),
        ("validate", "x.alf"),
        ("import", "x.alf", "back", "--dry-run"),
    ):
        _, out, err = shell("alf", *command)
        assert "\x1b" not in out + err
        assert "\x07" not in out + err


def test_validate(shell: Shell, archive: str) -> None:
    assert shell("alf", "validate", archive) == (0, "a.alf: ok\n", "")
    assert shell.json("alf", "validate", archive) == {
        "schema": "truekeep.alf-validate/1",
        "verdict": "ok",
        "problems": [],
    }
    built = Archive(a_record(1, content=""), a_record(2, tags=None))
    Path("x.alf").write_bytes(built.packed())
    code, out, _ = shell("alf", "validate", "x.alf")
    assert code == 1
    assert "memory/2026-Q1.jsonl:1: error: " in out
    assert "memory/2026-Q1.jsonl:2: unreadable: " in out
    assert out.endswith("x.alf: unreadable\n")
    told = shell.json("alf", "validate", "x.alf", code=1)
    assert [(item["line"], item["level"]) for item in told["problems"]][:2] == [(1, "error"), (2, "unreadable")]
    Path("y.alf").write_bytes(b"nothing")
    assert shell("alf", "validate", "y.alf")[0] == 1
    assert shell.error("alf", "validate", "missing.alf")[0] == 3


# --- Purging --------------------------------------------------------------------------------------------------------


def test_purge(shell: Shell, archive: str) -> None:
    [record] = [record for record in records_in(Path(archive)) if "Vim is" in record["content"]]
    code, found = shell.error("alf", "purge", archive, "--record", record["id"])
    assert (code, found["hint"]) == (3, "give -o FILE, or --replace to rewrite it in place")
    code, out, _ = shell("alf", "purge", archive, "--record", record["id"], "-o", "b.alf")
    assert code == 0
    assert "without 1 record\n  removed from MEMORY.md\n  audit record " in out
    told = shell.json("alf", "purge", archive, "--record", record["id"], "-o", "c.alf", "--reason", "gdpr_article_17")
    assert (told["records_gone"], told["files_edited"], told["files_dropped"]) == (1, ["MEMORY.md"], [])
    assert told["audit"]["reason"] == "gdpr_article_17"
    assert shell("alf", "purge", archive, "--record", record["id"], "--replace")[0] == 0
    assert not any(b"Vim is" in data for data in entries_of(Path(archive)).values())
    assert shell.error("alf", "purge", archive, "--record", record["id"], "--replace")[0] == 3
    assert shell("alf", "purge", archive)[0] == 2


# --- All of them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(shell: Shell, command: str) -> None:
    code, out, _ = shell("alf", command, "--help")
    assert code == 0
    assert f"Example: truekeep alf {command}" in out
    assert "--json" in out


@pytest.mark.slow
def test_the_real_program(shell: Shell, archive: str) -> None:
    """In a process of its own: exported, wiped, imported, the same."""
    before = look(shell.folder / "ws")
    del before["big.bin"]
    done = run_cli("alf", "import", archive, "back", "--json", cwd=shell.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] == 19
    assert look(shell.folder / "back") == before
