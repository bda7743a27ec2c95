"""Exporting: what goes into an archive, what stays out and why, and that a failure leaves nothing behind."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.alf_places import (
    AGENT,
    SAMPLE,
    a_workspace,
    assert_sound,
    entries_of,
    export,
    import_,
    left_over,
    look,
    make_delta,
    manifest_of,
    records_in,
    workspaces,
    write_tree,
)
from tests.support.faults import fake_token
from tests.support.helpers import NOW
from truekeep.core.errors import BadInput, BadSetup, EditedSince, StorageFailed
from truekeep.integrations.alf import encryption, files, writer
from truekeep.integrations.alf import export as export_module
from truekeep.integrations.alf.apply_delta import apply_deltas
from truekeep.integrations.alf.archive_file import create_archive, open_archive
from truekeep.integrations.alf.export import ExportOptions
from truekeep.integrations.alf.files import ListedFile, WorkspaceTree, clamp_time
from truekeep.integrations.alf.purge import purge_archive
from truekeep.integrations.alf.timestamps import format_timestamp
from truekeep.workspace.workspace import Workspace

CAREFUL = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that takes no file beyond so many bytes, as a full one would."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- What is in it --------------------------------------------------------------------------------------------------


def test_everything_has_its_place(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    made = export(root, tmp_path / "a.alf")
    found = entries_of(tmp_path / "a.alf")
    assert_sound(tmp_path / "a.alf")
    for path, data in SAMPLE.items():
        is_raw = path.startswith(("memory/", "skills/")) or ("/" not in path and path.endswith(".md"))
        if path == "big.bin":
            assert not [name for name in found if path in name]
        else:
            assert found[f"raw/openclaw/{path}" if is_raw else f"artifacts/{path}"] == data
    assert list(found)[:3] == ["identity.json", "principals.json", "memory/2025-Q4.jsonl"]
    tail = ["memory/index.json", "attachments.json", "truekeep/files.jsonl", "manifest.json"]
    assert list(found)[-4:] == tail
    assert stat.S_IMODE((tmp_path / "a.alf").stat().st_mode) == 0o600
    assert made.notes == ("memory/latin.md is not UTF-8 text: it is included without records",)
    assert made.omitted == ()


def test_large_artifacts_are_named_with_their_digest(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {"big.bin": SAMPLE["big.bin"], "small.bin": b"x" * 102_400, "MEMORY.md": b"m"})
    export(root, tmp_path / "a.alf")
    attachments = json.loads(entries_of(tmp_path / "a.alf")["attachments.json"])["attachments"]
    assert [(item["source_path"], item["archive_path"]) for item in attachments] == [
        ("big.bin", None),
        ("small.bin", "artifacts/small.bin"),
    ]
    assert attachments[0]["hash"]["value"] == hashlib.sha256(SAMPLE["big.bin"]).hexdigest()
    layer = manifest_of(tmp_path / "a.alf")["layers"]["attachments"]
    assert (layer["included_count"], layer["referenced_size_bytes"]) == (1, len(SAMPLE["big.bin"]))


def test_records_of_every_source(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    found = {(record["source"]["runtime"], record["namespace"]) for record in records_in(tmp_path / "a.alf")}
    spaces = ("curated", "daily", "active-context", "project", "procedural", "workspace")
    openclaw = {("openclaw", name) for name in spaces}
    assert found == openclaw | {("truekeep", name) for name in ("cards", "procedural")}


def test_a_card_tells_where_it_comes_from_and_what_it_replaces(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf")
    cards = {r["source"]["origin_file"]: r for r in records_in(tmp_path / "a.alf") if r["namespace"] == "cards"}
    proxy, gateway = cards["memory/cards/proxy.md"], cards["memory/cards/gateway.md"]
    assert proxy["temporal"]["valid_from"] == "2026-01-05T00:00:00Z"
    assert {"id": gateway["id"], "relation": "related_to"} in proxy["related_records"]
    assert {"id": proxy["supersedes"], "relation": "supersedes"} in proxy["related_records"]


def test_plain_is_what_the_formats_own_tool_takes(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {**SAMPLE, "NOTES.md": b"a root note\n"}, agent=None)
    export(root, tmp_path / "a.alf", plain=True, scheme="positional")
    found = entries_of(tmp_path / "a.alf")
    assert {name.partition("/")[0] for name in found} == {
        *("identity.json", "principals.json", "memory", "raw", "manifest.json")
    }
    assert "raw/openclaw/NOTES.md" not in found
    assert "memory/index.json" not in found
    assert {record["source"]["runtime"] for record in records_in(tmp_path / "a.alf")} == {"openclaw"}
    assert not (root / ".alf-agent-id").exists()


def test_the_agent_keeps_its_id(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", agent=None)
    export(root, tmp_path / "a.alf")
    first = (root / ".alf-agent-id").read_text()
    root.rename(tmp_path / "elsewhere")
    export(tmp_path / "elsewhere", tmp_path / "b.alf")
    assert manifest_of(tmp_path / "b.alf")["agent"]["id"] == first.strip()


def test_an_id_that_is_none_is_said(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", agent="not an id")
    with pytest.raises(BadInput, match="does not contain a UUID"):
        export(root, tmp_path / "a.alf")
    assert not (tmp_path / "a.alf").exists()


def test_an_empty_workspace(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {})
    made = export(root, tmp_path / "a.alf")
    assert_sound(tmp_path / "a.alf")
    assert manifest_of(tmp_path / "a.alf")["layers"] == {}
    assert manifest_of(tmp_path / "a.alf")["created_at"] == "1970-01-01T00:00:00Z"
    assert import_(tmp_path / "a.alf", tmp_path / "back").written == 0
    assert made.size == (tmp_path / "a.alf").stat().st_size


@pytest.mark.slow
@given(files_=workspaces())
@CAREFUL
def test_the_same_workspace_gives_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, files_: Any) -> None:
    base = tmp_path_factory.mktemp("same")
    root = a_workspace(base / "ws", files_)
    export(root, base / "a.alf")
    elsewhere = a_workspace(base / "other" / "ws", dict(reversed(files_.items())))
    export(elsewhere, base / "b.alf")
    export(root, base / "c.alf")
    assert (base / "a.alf").read_bytes() == (base / "b.alf").read_bytes() == (base / "c.alf").read_bytes()
    assert_sound(base / "a.alf")


@pytest.mark.slow
@given(files_=workspaces())
@CAREFUL
def test_every_archive_is_sound(tmp_path_factory: pytest.TempPathFactory, files_: Any) -> None:
    base = tmp_path_factory.mktemp("sound")
    root = a_workspace(base / "ws", files_)
    for name, asked in (
        ("positional", {"scheme": "positional"}),
        ("plain", {"plain": True}),
        ("old", {"plain": True, "scheme": "positional"}),
    ):
        export(root, base / f"{name}.alf", **asked)
        assert_sound(base / f"{name}.alf")


# --- What stays out -------------------------------------------------------------------------------------------------


def test_links_and_strange_files_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    write_tree(outside, {"secret.md": b"nothing for the archive at all\n", "sub/more.md": b"nor this one here\n"})
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n"})
    (root / "memory").mkdir()
    (root / "memory" / "link.md").symlink_to(outside / "secret.md")
    (root / "memory" / "away").symlink_to(outside)
    (root / "SOUL.md").symlink_to(outside / "secret.md")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "memory" / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(root)  # the name of a socket must be short
        server.bind("socket")
        made = export(root, tmp_path / "a.alf")
    found = entries_of(tmp_path / "a.alf")
    assert [name for name in found if name.startswith(("raw/", "artifacts/"))] == ["raw/openclaw/MEMORY.md"]
    assert not any(b"nothing for the archive" in data or b"nor this one" in data for data in found.values())
    assert dict(made.omitted) == {
        "SOUL.md": "a symbolic link",
        "dangling": "a symbolic link",
        "memory/away": "a symbolic link",
        "memory/link.md": "a symbolic link",
        "memory/pipe.md": "not a regular file",
        "socket": "not a regular file",
    }


def test_other_programs_stay_out(tmp_path: Path) -> None:
    mine = {".git/config": b"x", "node_modules/a.js": b"x", ".openclaw/state": b"x", "memory/.DS_Store": b"x"}
    told = {"other/.git/HEAD": b"x", "other/file.md": b"x", ".Git/hooks/post": b"x", "memory/.TRUEKEEP/x.md": b"x"}
    archives = {"old.alf": b"x", "memory/old.alf-delta": b"x", "sealed.alf.age": b"x"}
    left = {".alf-sync-log.md": b"x", ".MEMORY.md.truekeep-tmp": b"x"}
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n", **mine, **told, **archives, **left})
    made = export(root, tmp_path / "a.alf")
    assert [name for name in entries_of(tmp_path / "a.alf") if "/openclaw/" in name or "artifacts/" in name] == [
        "raw/openclaw/MEMORY.md"
    ]
    assert dict(made.omitted) == {
        ".openclaw": "what OpenClaw knows of this workspace",
        ".Git": "belongs to another program",
        "memory/.TRUEKEEP": "belongs to another program",
        "other": "a repository of its own",
        **dict.fromkeys(archives, "an archive"),
    }


def test_memory_in_a_repository_of_its_own_is_memory(tmp_path: Path) -> None:
    files = {"memory/.git/config": b"x", "memory/a.md": b"## A\nb\n", "skills/s/.git/HEAD": b"x", "skills/s/S.md": b"s"}
    made = export(a_workspace(tmp_path / "ws", files), tmp_path / "a.alf")
    assert made.omitted == ()
    found = [name for name in entries_of(tmp_path / "a.alf") if name.startswith("raw/")]
    assert found == ["raw/openclaw/memory/a.md", "raw/openclaw/skills/s/S.md"]


ODD_NAMES = {
    "memory/back\\slash.md": "the name contains a backslash",
    "memory/new\nline.md": "the name contains a control character",
    "memory/delete\x7f.md": "the name contains a control character",
    "c:drive.md": "the name names a drive",
    "/".join(["memory", *["d" * 200] * 5, "x.md"]): "the name is too long",
}


def test_names_that_cannot_come_back_stay_out(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n", **dict.fromkeys(ODD_NAMES, b"x")})
    (root / os.fsdecode(b"memory/bad\xff.md")).write_bytes(b"x")
    made = export(root, tmp_path / "a.alf")
    told = dict(made.omitted)
    long = [path for path in told if path.startswith("memory/ddd")]
    assert len(long) == 1
    assert told.pop(long[0]) == "the name is too long"
    assert told == {
        **{path: why for path, why in ODD_NAMES.items() if not path.startswith("memory/ddd")},
        "memory/bad\ufffd.md": "its name is not UTF-8",
    }
    assert_sound(tmp_path / "a.alf")
    assert import_(tmp_path / "a.alf", tmp_path / "back").written == 1


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"m", "memory/theirs.md": b"x"})
    (root / "memory/theirs.md").chmod(0o200)
    asked: list[str] = []
    monkeypatch.setattr(
        files.WorkspaceTree, "_is_readable", lambda _, path: asked.append(path)
    )  # root may read everything
    made = export(root, tmp_path / "a.alf")
    assert made.omitted == (("memory/theirs.md", "permission denied"),)
    assert asked == ["memory/theirs.md"], "of our own files the bits tell"


@pytest.mark.slow
def test_thousands_of_folders_need_few_descriptors(tmp_path: Path) -> None:
    import resource

    root = a_workspace(tmp_path / "ws", {f"memory/{n % 40}/{n}/note.md": b"x" for n in range(1_500)})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        made = export(root, tmp_path / "a.alf")
        done = import_(tmp_path / "a.alf", tmp_path / "back")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert made.omitted == ()
    assert done.written == 1_500


def test_credentials_are_named_and_never_carried(tmp_path: Path, own_home: Path) -> None:
    state = own_home / ".openclaw"
    token, password = fake_token(1), "hunter2-of-course"
    profiles = {
        "anthropic:default": {"provider": "anthropic", "type": "api_key", "key": token},
        "github:me": {"provider": "github", "type": "oauth", "access": fake_token(2), "refresh": fake_token(3)},
        "odd": {"provider": "odd", "type": "token", "token": password, "email": "dana@example.org"},
    }
    path = state / "agents" / "main" / "agent" / "auth-profiles.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": 1, "profiles": profiles}))
    root = a_workspace(
        state / "workspace",
        {
            "MEMORY.md": b"## A\nb\n",
            ".env": f"TOKEN={token}\n".encode(),
            "skills/x/.env.local": f"TOKEN={token}\n".encode(),
            "keys/id_rsa": b"-----BEGIN OPENSSH PRIVATE KEY-----\nx\n",
            "notes/howto.txt": f"use {token} to log in\n".encode(),
            "notes/plain.txt": b"nothing to hide\n",
            "memory/.env-notes.md": b"## About\nhow the environment is set up\n",
        },
    )
    made = export(root, tmp_path / "a.alf")
    assert dict(made.omitted) == {
        ".env": "a file for credentials",
        "skills/x/.env.local": "a file for credentials",
        "keys/id_rsa": "a file for credentials",
        "notes/howto.txt": "contains what looks like a credential",
    }
    everything = b"".join(entries_of(tmp_path / "a.alf").values()) + (tmp_path / "a.alf").read_bytes()
    for secret in (token, fake_token(2), fake_token(3), password):
        assert secret.encode() not in everything
    assert_sound(tmp_path / "a.alf")
    listed = json.loads(entries_of(tmp_path / "a.alf")["credentials.json"])["credentials"]
    assert {item["service"] for item in listed} == {"anthropic", "github", "odd"}
    done = import_(tmp_path / "a.alf", tmp_path / "back")
    assert len(done.plan.credentials) == 3
    assert any(service.startswith("anthropic") for service in done.plan.credentials)


# --- Where it goes --------------------------------------------------------------------------------------------------


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    target = tmp_path / "a.alf"
    target.write_bytes(b"mine")
    with pytest.raises(BadInput, match="already exists"):
        export(root, target)
    assert target.read_bytes() == b"mine"
    export(root, target, replace=True)
    assert_sound(target)
    assert left_over(tmp_path) == []


def test_a_link_in_the_way_is_replaced_and_not_followed(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "a.alf").symlink_to(tmp_path / "mine")
    with pytest.raises(BadInput, match="already exists"):
        export(root, tmp_path / "a.alf")
    export(root, tmp_path / "a.alf", replace=True)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "a.alf").is_symlink()


@pytest.mark.parametrize(
    ("target", "what"), [("", "is a folder"), ("ws", "is a folder"), ("no/where/a.alf", "No such")]
)
def test_a_place_that_takes_no_file(tmp_path: Path, target: str, what: str) -> None:
    root = a_workspace(tmp_path / "ws")
    with pytest.raises((BadInput, StorageFailed), match=what):
        export(root, tmp_path / target, replace=True)
    assert left_over(tmp_path) == []


def test_an_archive_in_the_workspace_is_not_in_the_next_one(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, root / "a.alf")
    export(root, root / "memory" / "b.alf")
    assert (root / "a.alf").read_bytes() == (root / "memory" / "b.alf").read_bytes()
    with pytest.raises(BadInput, match="part of the next archive"):
        export(root, root / "backup.zip")
    assert not (root / "backup.zip").exists()


def test_somebody_else_was_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws")
    target = tmp_path / "a.alf"
    real = writer.write_archive

    def slow(*arguments: Any) -> Any:
        done = real(*arguments)
        target.write_bytes(b"theirs")
        return done

    monkeypatch.setattr(export_module, "write_archive", slow)
    with pytest.raises(BadInput, match="meanwhile"):
        export(root, target)
    assert target.read_bytes() == b"theirs"
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("size", [0, 1, 100, 700, 1_500, 2_500, 3_500])
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_no_room(tmp_path: Path, size: int, is_encrypted: bool) -> None:
    root = a_workspace(tmp_path / "ws")
    recipients = (a_key(tmp_path)[0],) if is_encrypted else ()
    with files_of_at_most(size), pytest.raises(StorageFailed, match="too large"):
        export(root, tmp_path / "a.alf", recipients=recipients)
    assert not (tmp_path / "a.alf").exists()
    assert left_over(tmp_path) == []


def test_what_a_killed_export_left_goes_with_the_next_one(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    (tmp_path / ".a.alf.truekeep-tmp").write_bytes(b"half of it" * 100_000)
    export(root, tmp_path / "a.alf")
    export(root, tmp_path / "b.alf")
    assert (tmp_path / "a.alf").read_bytes() == (tmp_path / "b.alf").read_bytes()
    assert left_over(tmp_path) == []


def test_two_exports_to_one_file_at_once(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    with create_archive(tmp_path / "a.alf"), pytest.raises(BadInput, match="is being written by another process"):
        export(root, tmp_path / "a.alf")


# --- A workspace that does not hold still ---------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_a_change_meanwhile_begins_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    root = a_workspace(tmp_path / "ws")
    edits = edit_while_read(root, monkeypatch, times)
    export(root, tmp_path / "a.alf")
    assert edits == [1] * times
    assert_sound(tmp_path / "a.alf")
    assert entries_of(tmp_path / "a.alf")["raw/openclaw/MEMORY.md"] == (root / "MEMORY.md").read_bytes()
    assert left_over(tmp_path) == []


def test_a_workspace_that_never_holds_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws")
    edit_while_read(root, monkeypatch, 1_000)
    with pytest.raises(EditedSince, match=r"MEMORY\.md is being written to"):
        export(root, tmp_path / "a.alf")
    assert not (tmp_path / "a.alf").exists()
    assert left_over(tmp_path) == []


def edit_while_read(root: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    real = WorkspaceTree.pieces
    edits: list[int] = []

    def pieces(tree: WorkspaceTree, item: ListedFile) -> Iterator[bytes]:
        if item.path == "MEMORY.md" and len(edits) < times:
            edits.append(1)
            with (root / "MEMORY.md").open("ab") as file:
                file.write(b"\nmore\n")
        return real(tree, item)

    monkeypatch.setattr(WorkspaceTree, "pieces", pieces)
    return edits


def test_a_file_that_goes_away_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws")
    real = WorkspaceTree.scan

    def scan(tree: WorkspaceTree) -> list[ListedFile]:
        found = real(tree)
        (root / "memory" / "latin.md").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(WorkspaceTree, "scan", scan)
    export(root, tmp_path / "a.alf")
    assert "raw/openclaw/memory/latin.md" not in entries_of(tmp_path / "a.alf")


@pytest.mark.slow
def test_a_failed_export_says_nothing_but_its_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An abandoned ZIP file must not complain when it is forgotten."""
    import gc

    root = a_workspace(tmp_path / "ws", {"memory/x.md": b"x" * 100_000})
    with files_of_at_most(10), pytest.raises(StorageFailed):
        export(root, tmp_path / "a.alf")
    gc.collect()
    assert capfd.readouterr() == ("", "")


# --- Encrypted ------------------------------------------------------------------------------------------------------


def a_key(folder: Path) -> tuple[str, str]:
    """A public key, and the file of the private one."""
    pyrage = pytest.importorskip("pyrage")
    identity = pyrage.x25519.Identity.generate()
    path = folder / "key.txt"
    path.write_text(f"# made for a test\n{identity}\n")
    return str(identity.to_public()), str(path)


def test_sealed_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws")
    public, private = a_key(tmp_path)
    export(root, tmp_path / "plain.alf")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing may reach a disk unencrypted")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    out = tmp_path / "out"
    out.mkdir()
    export(root, out / "a.alf.age", recipients=(public,))
    sealed = (out / "a.alf.age").read_bytes()
    assert encryption.is_encrypted(sealed)
    assert [path.name for path in out.iterdir()] == ["a.alf.age"]
    for text in (b"Vim is the editor", b"MEMORY.md", b"PK\x03\x04", AGENT.encode()):
        assert text not in sealed
    done = import_(out / "a.alf.age", tmp_path / "back", identities=(private,))
    assert done.written == len(SAMPLE) - 1
    with open_archive(out / "a.alf.age", identities=(private,)) as reader:
        assert sorted(reader.entries) == sorted(entries_of(tmp_path / "plain.alf"))
    with pytest.raises(BadInput, match="is encrypted"):
        import_(out / "a.alf.age", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_wrong_key(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    export(root, tmp_path / "a.alf.age", recipients=(a_key(tmp_path)[0],))
    (tmp_path / "else").mkdir()
    with pytest.raises(BadInput, match=r"a\.alf\.age cannot be decrypted"):
        import_(tmp_path / "a.alf.age", tmp_path / "back", identities=(a_key(tmp_path / "else")[1],))
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(BadInput, match="does not contain a private key"):
        import_(tmp_path / "a.alf.age", tmp_path / "back", identities=(str(tmp_path / "empty"),))
    with pytest.raises(BadInput, match="No such file"):
        import_(tmp_path / "a.alf.age", tmp_path / "back", identities=(str(tmp_path / "missing"),))
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("cut", [1, 20, 200, 1_000])
def test_an_encrypted_archive_that_is_cut_off(tmp_path: Path, cut: int) -> None:
    root = a_workspace(tmp_path / "ws")
    public, private = a_key(tmp_path)
    export(root, tmp_path / "a.alf.age", recipients=(public,))
    data = (tmp_path / "a.alf.age").read_bytes()
    (tmp_path / "cut.age").write_bytes(data[: len(data) - cut] if cut < 1_000 else data[:100])
    with pytest.raises(BadInput, match="damaged"):
        import_(tmp_path / "cut.age", tmp_path / "back", identities=(private,))
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("given_", ["age1nonsense", "nofile.txt", "ssh-rsa nonsense"])
def test_a_public_key_that_is_none(tmp_path: Path, given_: str) -> None:
    pytest.importorskip("pyrage")
    root = a_workspace(tmp_path / "ws")
    with pytest.raises(BadInput, match="public key"):
        export(root, tmp_path / "a.alf", recipients=(given_,))
    assert not (tmp_path / "a.alf").exists()


def test_without_pyrage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws")
    monkeypatch.setitem(sys.modules, "pyrage", None)
    with pytest.raises(BadSetup, match="need the package pyrage") as error:
        export(root, tmp_path / "a.alf", recipients=("age1x",))
    assert "truekeep[age]" in error.value.hint
    (tmp_path / "b.alf").write_bytes(b"age-encryption.org/v1\n...")
    with pytest.raises(BadSetup, match="need the package pyrage"):
        import_(tmp_path / "b.alf", tmp_path / "back", identities=("key",))


def test_what_comes_out_of_an_encrypted_archive_stays_encrypted(tmp_path: Path) -> None:
    root = a_workspace(tmp_path / "ws")
    public, private = a_key(tmp_path)
    export(root, tmp_path / "a.alf.age", recipients=(public,))
    keys = {"identities": (private,)}
    with pytest.raises(BadInput, match="would not be"):
        make_delta(root, tmp_path / "d.alf-delta", tmp_path / "a.alf.age", **keys)
    asked = ExportOptions(identities=(private,), replace=True)
    with pytest.raises(BadInput, match="would not be"):
        purge_archive(tmp_path / "a.alf.age", tmp_path / "a.alf.age", [AGENT], "user_request", asked)
    assert encryption.is_encrypted((tmp_path / "a.alf.age").read_bytes())
    (root / "MEMORY.md").write_bytes(b"## New\nAnother text.\n")
    make_delta(root, tmp_path / "d.age", tmp_path / "a.alf.age", recipients=(public,), **keys)
    asked = ExportOptions(identities=(private,), recipients=(public,))
    apply_deltas(tmp_path / "a.alf.age", [tmp_path / "d.age"], tmp_path / "b.alf.age", asked)
    assert encryption.is_encrypted((tmp_path / "b.alf.age").read_bytes())
    import_(tmp_path / "b.alf.age", tmp_path / "back", **keys)
    assert (tmp_path / "back" / "MEMORY.md").read_bytes() == b"## New\nAnother text.\n"


def test_a_failure_in_age_is_a_failure_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyrage = pytest.importorskip("pyrage")
    root = a_workspace(tmp_path / "ws", {"memory/x.bin": os.urandom(3_000_000)})

    def broken(source: io.RawIOBase, *_: Any) -> None:
        source.read(10)
        raise ValueError("something in age")

    public = a_key(tmp_path)[0]
    monkeypatch.setattr(pyrage, "encrypt_io", broken)
    with pytest.raises(StorageFailed, match="something in age"):
        export(root, tmp_path / "a.alf", recipients=(public,))
    assert left_over(tmp_path) == []


# --- Large ----------------------------------------------------------------------------------------------------------

MEMORY = """
import resource, sys, tracemalloc
from pathlib import Path
from tests.support.alf_places import export, import_
root, target, back = map(Path, sys.argv[1:4])
export(root, target.with_name("warm.alf"), embeddings=False) if sys.argv[4] == "warm" else None
tracemalloc.start()
export(root, target, embeddings=False)
first = tracemalloc.get_traced_memory()[1]
tracemalloc.reset_peak()
import_(target, back)
print(first, tracemalloc.get_traced_memory()[1])
"""


@pytest.mark.slow
def test_a_large_workspace_passes_through(tmp_path: Path) -> None:
    """60 MB in one file and 200 others: neither way takes more than a little memory."""
    import random

    block = random.Random(1).randbytes(1 << 20)
    root = a_workspace(tmp_path / "ws", {f"memory/n{n}.md": b"## A\n" + b"some words\n" * 2_000 for n in range(200)})
    with (root / "memory" / "large.bin").open("wb") as file:
        for number in range(60):
            file.write(block[number:] + block[:number])
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(root), str(tmp_path / "a.alf"), str(tmp_path / "back"), "cold"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=Path(__file__).parents[4],
    )
    assert done.returncode == 0, done.stderr
    exported, imported = map(int, done.stdout.split())
    assert exported < 40e6
    assert imported < 40e6
    assert look(tmp_path / "back") == look(root)


@pytest.mark.slow
def test_many_quarters(tmp_path: Path) -> None:
    """A record of its own in each of thousands of quarters."""
    days = [f"{year:04d}-{month:02d}-01" for year in range(1000, 2000) for month in (1, 4, 7, 10)]
    rows = "".join(f"| {n} | trigger {n} | action {n} | {day} |\n" for n, day in enumerate(days))
    policies = f"## Rules\n| # | Trigger | Action | Date |\n|---|---|---|---|\n{rows}".encode()
    root = a_workspace(tmp_path / "ws", {"memory/gating-policies.md": policies})
    export(root, tmp_path / "a.alf")
    assert len(manifest_of(tmp_path / "a.alf")["layers"]["memory"]["partitions"]) == len(days)
    assert_sound(tmp_path / "a.alf")


@pytest.mark.parametrize("moment", [-(10**18), -1, 0, 1, 2**40, 4_102_444_800 * 10**9 + 123_456_789])
def test_times_of_every_kind_come_back(tmp_path: Path, moment: int) -> None:
    root = a_workspace(tmp_path / "ws", {"MEMORY.md": b"## A\nb\n", "memory/cards/c.md": b"---\ntopic: C\n---\nx\n"})
    for path in ("MEMORY.md", "memory/cards/c.md"):
        os.utime(root / path, ns=(moment, moment))
    export(root, tmp_path / "a.alf")
    assert_sound(tmp_path / "a.alf")
    import_(tmp_path / "a.alf", tmp_path / "back")
    assert look(tmp_path / "back") == look(root)
    assert (tmp_path / "back" / "MEMORY.md").stat().st_mtime_ns == moment


def test_a_time_beyond_the_calendar() -> None:
    """No file system here takes it, but some do: what cannot be written as a moment is held to the last one."""
    assert format_timestamp(clamp_time(10**21)) == "9999-12-31T23:59:59Z"
    assert format_timestamp(clamp_time(-(10**21))) == "0001-01-01T00:00:00Z"


def test_another_host_may_export_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = a_workspace(tmp_path / "ws", agent=None)
    before = look(root, skip=())
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    export(root, tmp_path / "a.alf")
    assert_sound(tmp_path / "a.alf")
    assert look(root, skip=()) == before


def test_someone_writing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.core.errors import Busy
    from truekeep.workspace import context

    root = a_workspace(tmp_path / "ws")
    monkeypatch.setattr(context, "LOCK_WAIT_SECONDS", 0.05)
    with Workspace.open(root, now=lambda: NOW) as other, other.writing("test"), pytest.raises(Busy):
        export(root, tmp_path / "a.alf")
    assert not (tmp_path / "a.alf").exists()
