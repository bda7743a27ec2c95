"""Whole archives beside those that upstream's own code wrote: the same contents, its deltas, its oddities."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.alf_places import entries_of, export, import_, look, make_delta, manifest_of, records_in, verdict_of
from tests.support.helpers import NOW
from tests.unit.integrations.alf.test_golden import SHARED, WORKSPACES, flat, in_order, masked
from truekeep.integrations.alf.apply_delta import apply_deltas
from truekeep.integrations.alf.export import ExportOptions
from truekeep.integrations.alf.purge import purge_archive
from truekeep.integrations.alf.writer import DeltaSummary
from truekeep.interfaces.cli.app import run
from truekeep.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the conformance data (shared/alf) is not beside this checkout"
)
ARCHIVES = SHARED / "archives"
SYNTHETIC = ARCHIVES / "synthetic-agent.upstream.alf"
FIRST = {"plain": True, "scheme": "positional"}  # as the first adapters were


def workspace_of(name: str, base: Path) -> Path:
    """A sample workspace, with the times that its README asks for."""
    root = base / name
    shutil.copytree(SHARED / "workspaces" / name, root)
    for folder, _, files in os.walk(root):
        for file in files:
            day = 11 if name == "edge-edited" and file == "MEMORY.md" and Path(folder) == root else 10
            at_ns = int(datetime(2026, 2, day, 9, 30, tzinfo=UTC).timestamp()) * 10**9
            os.utime(Path(folder) / file, ns=(at_ns, at_ns))
    Workspace.init(root, is_bare=True, now=lambda: NOW)
    return root


def contents(path: Path) -> dict[str, Any]:
    """An archive's contents as its README compares them: without clocks, random ids and orders of ties."""
    found = entries_of(path)
    told: dict[str, Any] = {}
    for name, data in found.items():
        if name == "manifest.json":
            manifest = json.loads(data)
            manifest["created_at"] = "…"
            if "sync" in manifest:
                manifest["sync"].pop("last_sync_at", None)
            told[name] = manifest
        elif name in ("identity.json", "principals.json"):
            told[name] = masked(json.loads(data))
        elif name.startswith("memory/") and name.endswith(".jsonl"):
            rows = [json.loads(line) for line in data.splitlines()]
            told[name] = sorted(rows, key=lambda row: (row["source"]["origin_file"], row["id"]))
        else:
            told[name] = data
    return told


@pytest.mark.parametrize("name", WORKSPACES)
def test_an_archive_of_the_first_generation(tmp_path: Path, name: str) -> None:
    export(workspace_of(name, tmp_path), tmp_path / "a.alf", **FIRST)
    assert contents(tmp_path / "a.alf") == contents(ARCHIVES / f"{name}.v0.1.alf")
    moments = [record["temporal"]["created_at"] for record in records_in(tmp_path / "a.alf")]
    assert moments == sorted(moments)


@pytest.mark.parametrize("name", WORKSPACES)
def test_records_of_the_present_generation(tmp_path: Path, name: str) -> None:
    """With --plain. Without it, more files are split and times come from the text: test_export.py."""
    export(workspace_of(name, tmp_path), tmp_path / "a.alf", plain=True)
    [path] = (SHARED / "golden-v1.1").glob(f"{name}.*json")
    golden = json.loads(path.read_bytes())
    for row in golden:
        row["observed_at"] = row["observed_at"] and row["observed_at"].replace("+00:00", "Z")
    keys = golden[0].keys() if golden else ()
    theirs = [record for record in records_in(tmp_path / "a.alf") if record["source"]["runtime"] == "openclaw"]
    rows = [{key: row[key] for key in keys} for row in map(flat, theirs)]
    assert in_order(rows) == in_order(golden) if golden else rows == []
    assert verdict_of(tmp_path / "a.alf") == "ok"


@pytest.mark.parametrize("name", WORKSPACES)
def test_their_archives_come_back_byte_for_byte(tmp_path: Path, name: str) -> None:
    """All but what the first adapters left out: root files with other names."""
    done = import_(ARCHIVES / f"{name}.v0.1.alf", tmp_path / "back")
    assert not done.plan.is_rebuilt or name == "empty"
    root = SHARED / "workspaces" / name
    for path in look(tmp_path / "back"):
        assert (tmp_path / "back" / path).read_bytes() == (root / path).read_bytes()
    memory = {path.relative_to(root).as_posix() for path in (root / "memory").rglob("*") if path.is_file()}
    assert memory <= set(look(tmp_path / "back"))
    assert (tmp_path / "back" / ".alf-agent-id").read_text().strip() == (root / ".alf-agent-id").read_text().strip()


# --- The delta of the first generation ------------------------------------------------------------------------------


def changes_of(path: Path) -> list[dict[str, Any]]:
    return sorted(records_in(path), key=lambda row: (row["operation"], row["id"]))


def test_the_same_changes(tmp_path: Path) -> None:
    export(workspace_of("edge", tmp_path), tmp_path / "edge.alf", **FIRST)
    edited = workspace_of("edge-edited", tmp_path)
    made = make_delta(edited, tmp_path / "d.alf-delta", tmp_path / "edge.alf", **FIRST)
    golden = ARCHIVES / "edge-to-edited.v0.1.alf-delta"
    assert changes_of(tmp_path / "d.alf-delta") == changes_of(golden)
    assert isinstance(made.written, DeltaSummary)
    assert (made.written.created, made.written.updated, made.written.deleted) == (0, 3, 3)
    mine, theirs = (json.loads(entries_of(path)["delta-manifest.json"]) for path in (tmp_path / "d.alf-delta", golden))
    for key in ("alf_version", "agent"):
        assert mine[key] == theirs[key]
    assert mine["changes"]["memory"] == theirs["changes"]["memory"]
    assert mine["sync"]["base_sequence"] == theirs["sync"]["base_sequence"]
    # On purpose: the files travel too (as upstream does since 0.1.10), so an import gives the edited workspace.
    assert "raw/openclaw/MEMORY.md" in mine["changes"]["raw"]["changed"]
    assert mine["changes"]["raw"]["deleted"] == ["raw/openclaw/memory/2026-01-08.md"]


def rebuilt_like_theirs(path: Path) -> dict[str, Any]:
    """On purpose: whether a quarter is over depends on the clock, so nothing is ever sealed by us."""
    found = contents(path)
    for part in found["manifest.json"]["layers"]["memory"]["partitions"]:
        part["sealed"] = False
    return found


def test_the_same_archive_after_their_delta(tmp_path: Path) -> None:
    """Upstream's own delta, applied by us to upstream's own archive, gives upstream's own rebuilt archive."""
    made = apply_deltas(
        ARCHIVES / "edge.v0.1.alf", [ARCHIVES / "edge-to-edited.v0.1.alf-delta"], tmp_path / "a.alf", ExportOptions()
    )
    assert contents(tmp_path / "a.alf") == rebuilt_like_theirs(ARCHIVES / "edge-rebuilt.v0.1.alf")
    assert records_in(tmp_path / "a.alf") == records_in(ARCHIVES / "edge-rebuilt.v0.1.alf")
    assert made.notes == (  # where theirs is silent: such an archive brings back the old files
        "MEMORY.md is outdated: the delta contains its records but not the file",
        "memory/2026-01-08.md is outdated: the delta contains its records but not the file",
    )


def test_our_delta_on_their_archive_brings_the_files_along(tmp_path: Path) -> None:
    edited = workspace_of("edge-edited", tmp_path)
    make_delta(edited, tmp_path / "d", ARCHIVES / "edge.v0.1.alf", **FIRST)
    apply_deltas(ARCHIVES / "edge.v0.1.alf", [tmp_path / "d"], tmp_path / "a.alf", ExportOptions())
    mine, theirs = contents(tmp_path / "a.alf"), rebuilt_like_theirs(ARCHIVES / "edge-rebuilt.v0.1.alf")
    assert mine["memory/2026-Q1.jsonl"] == theirs["memory/2026-Q1.jsonl"]
    wanted = contents(ARCHIVES / "edge-edited.v0.1.alf")
    raw = {name: data for name, data in wanted.items() if name.startswith("raw/")}
    assert {name: data for name, data in mine.items() if name.startswith("raw/")} == raw
    import_(tmp_path / "a.alf", tmp_path / "back")
    for name, data in raw.items():
        assert (tmp_path / "back" / name.removeprefix("raw/openclaw/")).read_bytes() == data


# --- Their synthetic agent ------------------------------------------------------------------------------------------


def test_their_synthetic_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lorem ipsum in another layout, with placeholders for files: it is shown, rebuilt and purged."""
    done = import_(SYNTHETIC, tmp_path / "back")
    assert done.plan.is_rebuilt
    assert len(done.plan.credentials) == 4
    found = look(tmp_path / "back")
    assert found
    assert ".keep" not in found
    record = records_in(SYNTHETIC)[0]
    purge_archive(SYNTHETIC, tmp_path / "p.alf", [record["id"]], "user_request", ExportOptions())
    assert record["id"] not in {row["id"] for row in records_in(tmp_path / "p.alf")}
    kept = [name for name in entries_of(SYNTHETIC) if name.endswith(".keep")]
    assert all(name in entries_of(tmp_path / "p.alf") for name in kept)
    manifest, before = manifest_of(tmp_path / "p.alf"), manifest_of(SYNTHETIC)
    for key in ("runtime_hints", "raw_sources", "agent", "created_at"):
        assert manifest[key] == before[key]
    assert run(["alf", "show", str(SYNTHETIC), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(row["count"] for row in told["records"]) == 10


@pytest.mark.parametrize("name", [path.name for path in sorted(ARCHIVES.glob("*"))])
def test_every_archive_of_theirs_can_be_looked_at(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["alf", "show", str(ARCHIVES / name), "--records"]) == 0
    assert run(["alf", "validate", str(ARCHIVES / name)]) == 0
    assert "a bug" not in capsys.readouterr().err
