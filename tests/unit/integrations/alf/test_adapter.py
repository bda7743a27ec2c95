"""What the adapter's founding document asks of an export: record boundaries, times, versions, logins, sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.alf_places import Files, a_workspace, assert_sound, entries_of, export, manifest_of, records_in
from truekeep.integrations.alf.created_dates import FileDates
from truekeep.integrations.alf.identity import find_sub_agents

MARCH = 1_772_366_400_000_000_000  # 2026-03-01T12:00:00Z


def records_of(folder: Path, files: Files, **asked: Any) -> list[dict[str, Any]]:
    export(a_workspace(folder / "ws", files), folder / "a.alf", **asked)
    assert_sound(folder / "a.alf")
    return records_in(folder / "a.alf")


# --- Times ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "front", "heading", "content", "expected"),
    [
        ("memory/2026-01-17.md", "", "2026-01-17 09:15", "", "2026-01-17T09:15:00Z"),
        ("memory/2026-01-17.md", "", "Session — 10:30 AM", "", "2026-01-17T10:30:00Z"),
        ("memory/2026-01-17.md", "", "Session — 2:15 pm", "", "2026-01-17T14:15:00Z"),
        ("memory/2026-01-17.md", "", "12:00 AM", "", "2026-01-17T00:00:00Z"),
        ("memory/2026-01-17.md", "", "Ratio 16:99, at 25:10", "2020-01-01", "2026-01-17T00:00:00Z"),
        ("memory/2026-1-5.md", "", None, "2020-01-01", "2026-01-05T00:00:00Z"),
        ("memory/2026-01-30-memory-research.md", "created: 2025-01-01", "A", "", "2026-01-30T00:00:00Z"),
        ("memory/daily/2026-01-17.md", "", "17:30, shop", "", "2026-01-17T17:30:00Z"),
        ("memory/notes.md", "created: 2025-06-07", "A", "since 2024-01-01", "2025-06-07T00:00:00Z"),
        ("memory/notes.md", "date: 2025-06-07", None, "", "2025-06-07T00:00:00Z"),
        ("memory/notes.md", "created: 2025-06-07", "2026-02-03 Moved", "", "2026-02-03T00:00:00Z"),
        ("memory/notes.md", "", "A", "Decided on 2026-02-03, 14:05, to move.", "2026-02-03T14:05:00Z"),
        ("memory/notes.md", "", "A", "At 2026-02-03T10:00:00+02:00 it fell.", "2026-02-03T08:00:00Z"),
        ("memory/notes.md", "", "A", "Due on 2027-01-01.", None),
        ("memory/notes.md", "", "A", "See a/2026-02-03/b, v2026-02-03, 2026-02-03-b.md, 2026-02-30.", None),
        ("memory/notes.md", "", "09:15", "no day", None),
    ],
)
def test_when_a_memory_was_made(path: str, front: str, heading: str | None, content: str, expected: str | None) -> None:
    text = f"---\n{front}\n---\n{content}" if front else content
    assert FileDates.of(path, text).created_at(heading, content, MARCH) == expected


def test_times_of_records(tmp_path: Path) -> None:
    files = {
        "memory/2026-01-17.md": b"## Session 09:15\na\n\n## Later\nb\n",
        "memory/other-dated.md": b"## 2025-08-09 Moved\nc\n\n## Undated\nd\n",
        "memory/decisions/2026-01.md": b"## 2026-01-05 10:00 SQLite\ne\n",
    }
    found = {record["content"].strip()[-1]: record["temporal"] for record in records_of(tmp_path, files)}
    assert {key: times["created_at"] for key, times in found.items()} == {
        "a": "2026-01-17T09:15:00Z",
        "b": "2026-01-17T00:00:00Z",
        "c": "2025-08-09T00:00:00Z",
        "d": found["d"]["updated_at"],
        "e": "2026-01-05T10:00:00Z",
    }
    assert found["a"]["observed_at"] == "2026-01-17T00:00:00Z"
    assert "observed_at" not in found["c"]
    partitions = [part["file"] for part in manifest_of(tmp_path / "a.alf")["layers"]["memory"]["partitions"]]
    assert partitions == ["memory/2025-Q3.jsonl", "memory/2026-Q1.jsonl"]


def test_a_plain_export_has_upstreams_times(tmp_path: Path) -> None:
    files = {"memory/2026-01-17.md": b"## Session 09:15\na\n", "memory/n.md": b"## 2025-08-09 Moved\nc\n"}
    times = [record["temporal"] for record in records_of(tmp_path, files, plain=True)]
    assert [at["created_at"] for at in times] == ["2026-01-17T00:00:00Z", times[1]["updated_at"]]


# --- Record boundaries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["content", "positional"])
def test_notes_are_split_at_their_headings(tmp_path: Path, scheme: str) -> None:
    two = b"## One\na\n\n## Two\nb\n"
    paths = ("memory/2026-01-30-research.md", "memory/notes.md", "memory/procedures/p.md", "memory/curated/c.md")
    files = dict.fromkeys((*paths, "memory/a/b/deep.md", "memory/active-context.md"), two)
    found = [record["source"]["origin_file"] for record in records_of(tmp_path, files, scheme=scheme)]
    assert {path: found.count(path) for path in files} == {path: 1 if "active" in path else 2 for path in files}


def test_a_plain_export_keeps_the_files_whole_that_upstream_does(tmp_path: Path) -> None:
    files = {"memory/notes.md": b"## One\na\n\n## Two\nb\n"}
    assert len(records_of(tmp_path, files, plain=True)) == 1


def test_gating_policies_are_rows(tmp_path: Path) -> None:
    table = b"| # | Trigger | Action |\n|---|---|---|\n| 1 | a push | lint |\n| 2 | a release | ask |\n"
    files = {"memory/gating-policies.md": table + b"\n## In words\nNever on Fridays.\n"}
    assert [record["content"] for record in records_of(tmp_path, files)] == [
        "Trigger: a push\nAction: lint",
        "Trigger: a release\nAction: ask",
        "## In words\nNever on Fridays.",
    ]


# --- OpenClaw's state -----------------------------------------------------------------------------------------------


def a_state(home: Path, workspace: str = "") -> Path:
    """A state folder whose configuration is JSON5, with comments and bare keys."""
    state = home / ".openclaw"
    profiles = state / "agents" / "main" / "agent" / "auth-profiles.json"
    profiles.parent.mkdir(parents=True)
    profiles.write_text(json.dumps({"profiles": {"anthropic:me": {"provider": "anthropic", "type": "api_key"}}}))
    named = f"agents: {{ defaults: {{ workspace: '{workspace}' }} }}," if workspace else ""
    (state / "openclaw.json").write_text(f"{{ // mine\n  meta: {{ lastTouchedVersion: '2026.2.9', }},\n  {named}\n}}")
    return state


def test_a_workspace_outside_of_the_state_folder_has_every_layer(tmp_path: Path, own_home: Path) -> None:
    a_state(own_home, "~/clawd")
    root = a_workspace(own_home / "clawd", {"MEMORY.md": b"## A\nb\n", "SOUL.md": b"# Ada\n", "USER.md": b"# Dana\n"})
    made = export(root, tmp_path / "a.alf")
    manifest = manifest_of(tmp_path / "a.alf")
    assert set(manifest["layers"]) == {"identity", "principals", "credentials", "memory"}
    assert manifest["agent"]["source_runtime_version"] == "2026.2.9"
    [record] = records_in(tmp_path / "a.alf")
    assert record["source"]["runtime_version"] == "2026.2.9"
    assert made.notes == ()


def test_a_workspace_that_openclaw_does_not_name_is_told(tmp_path: Path, own_home: Path) -> None:
    a_state(own_home, "~/clawd")
    made = export(a_workspace(own_home / "other", {"MEMORY.md": b"## A\nb\n"}), tmp_path / "a.alf")
    assert "credentials" not in manifest_of(tmp_path / "a.alf")["layers"]
    [note] = made.notes
    assert note.startswith("OpenClaw's configuration does not name this workspace")


def test_a_configuration_that_cannot_be_read_is_told(tmp_path: Path, own_home: Path) -> None:
    (a_state(own_home) / "openclaw.json").write_text("{ nonsense")
    made = export(a_workspace(own_home / ".openclaw" / "workspace", {"MEMORY.md": b"## A\nb\n"}), tmp_path / "a.alf")
    assert "openclaw.json cannot be read" in made.notes[0]
    assert "credentials" in manifest_of(tmp_path / "a.alf")["layers"]


def test_the_credentials_folder(tmp_path: Path, own_home: Path) -> None:
    folder = a_state(own_home) / "credentials"
    (folder / "whatsapp" / "default").mkdir(parents=True)
    (folder / "whatsapp" / "default" / "creds.json").write_text('{"noiseKey": "a-secret-of-whatsapp"}')
    (folder / "github.json").write_text('{"type": "token", "token": "ghp-a-secret-of-github"}')
    (folder / "oauth.json").write_text(
        '{"a:b": {"provider": "google", "type": "oauth", "access": "a-secret-of-google"}}'
    )
    (folder / "odd.txt").write_text("a-secret-of-odd")
    (folder / "a-secret-name.json").write_text('{"key": "a-secret-name"}')
    (folder / "telegram-allowFrom.json").write_text('{"allowFrom": ["1"]}')
    (folder / ".hidden").write_text("x")
    export(a_workspace(own_home / ".openclaw" / "workspace", {"MEMORY.md": b"## A\nb\n"}), tmp_path / "a.alf")
    entry = entries_of(tmp_path / "a.alf")["credentials.json"]
    listed = {item["service"]: item["credential_type"] for item in json.loads(entry)["credentials"]}
    assert listed == {
        "anthropic": "api_key",
        "github": "oauth_token",
        "google": "oauth_token",
        "odd": "custom",
        "whatsapp": "custom",
    }
    assert b"a-secret" not in entry
    assert_sound(tmp_path / "a.alf")


# --- Sub-agents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        *(("SubAgent: researcher", "researcher"), ("SubAgent coder", "coder"), ("sub-agent coder", "coder")),
        *(("Sub agent — The Planner", "The Planner"), ("SUBAGENT Tester", "Tester"), ("sub_agent: x", "x")),
        *(("Subagent rules", None), ("Sub-agent usage", None), ("Sub-agents and us", None), ("Subagency", None)),
    ],
)
def test_headings_of_sub_agents(heading: str, name: str | None) -> None:
    found = [agent["name"] for agent in find_sub_agents(f"# Rules\n\n## {heading}\nDoes things.\n")]
    assert found == ([name] if name is not None else [])
