"""What truekeep tells beyond upstream: cards, rules, deeper notes, facts, vectors, sessions, all as valid records."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import unless_endless
from tests.support.helpers import Place, tree
from tests.support.memories import state
from tests.support.openclaw_index import OPENAI, Claw
from tests.support.sessions import LONG, ONE, TWO, archive_file, dialogue, grow, place_of, sync, write_session
from truekeep.core.model import HANDOFF_TYPES
from truekeep.integrations.alf.card_records import (
    MAX_RULES_PER_FILE,
    card_id,
    with_truekeep_records,
)
from truekeep.integrations.alf.documents import dump_line, parse_object
from truekeep.integrations.alf.embeddings import EmbeddingSources
from truekeep.integrations.alf.fact_records import iter_fact_records
from truekeep.integrations.alf.records import upstream_records
from truekeep.integrations.alf.session_records import session_records
from truekeep.integrations.alf.timestamps import parse_timestamp, quarter_of
from truekeep.memory.facts_db import UnreadableFacts
from truekeep.text.tables import iter_rows, split_cells
from truekeep.transcripts.service import Archive
from truekeep.verify.claim import Claim
from truekeep.verify.results import CheckedMemory
from truekeep.verify.verdict import Verdict

AGENT = "6d1f6a6e-29c8-4d3b-9d2c-0c5a4f0b7c11"
NOON = "2026-03-01T12:00:00Z"
NOON_NS = 1_772_366_400_000_000_000
CARD = "memory/cards/proxy.md"
POLICIES = "memory/gating-policies.md"
TYPES = ("semantic", "episodic", "procedural", "preference", "summary")
TEMPORAL = ("created_at", "updated_at", "observed_at", "valid_from", "valid_until", "last_accessed_at")


def unseen(_: str) -> None:
    return None


def finer(
    path: str,
    text: str,
    *,
    scheme: str = "content",
    seen: Callable[[str], CheckedMemory | None] = unseen,
    agent: str = AGENT,
) -> list[Any]:
    """The finer records of a file, checked, beside upstream's own."""
    upstream = upstream_records(path, text, mtime_ns=NOON_NS, agent=agent, scheme=scheme)
    made = with_truekeep_records(path, text, list(upstream), NOON_NS, agent=agent, find_last_check=seen)
    records: list[Any] = [record for record in made if record not in upstream]
    check(records, text)
    ids = [record["id"] for record in (*upstream, *records)]
    assert len(ids) == len(set(ids))
    known = {record["id"] for record in upstream}
    for record in records:
        sources = [link["id"] for link in record.get("related_records", ()) if link["relation"] == "derived_from"]
        assert set(sources) <= known
    return records


def check(records: Sequence[Any], text: str | None = None) -> None:
    """Every record has what the format demands, in the format's ranges, and survives being written and read."""
    for record in records:
        assert str(uuid.UUID(record["id"])) == record["id"]
        assert record["agent_id"] == AGENT
        assert isinstance(record["content"], str)
        assert record["content"]
        assert record["memory_type"] in TYPES
        assert record["status"] in ("active", "superseded", "archived")
        assert record["namespace"]
        assert record["tags"][0] == record["namespace"]
        assert len(set(record["tags"])) == len(record["tags"])
        assert record["source"]["runtime"] == "truekeep"
        assert record["source"].get("extraction_method", "agent_written") in ("agent_written", "user_authored")
        assert 0 <= record.get("confidence", 0) <= 1
        times = {key: parse_timestamp(record["temporal"][key]) for key in TEMPORAL if key in record["temporal"]}
        assert times["created_at"] is not None
        assert None not in times.values()
        assert quarter_of(record) is not None
        for entity in record.get("entities", ()):
            assert entity["name"]
            assert entity["type"] in ("person", "organization", "project", "location", "tool", "service", "other")
        for link in record.get("related_records", ()):
            assert link["id"] != record["id"]
            assert uuid.UUID(link["id"])
            assert link["relation"]
        assert all(value not in (None, [], {}, "") for value in record.values())
        if text is not None:
            place = record["raw_source_format"]
            assert 1 <= place["line_start"] <= place["line_end"] <= text.count("\n") + 1
        assert parse_object(dump_line(record)) == record


def card(body: str = "Staging answers on port 8443 only.", **keys: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\n{lines}---\n\n{body}\n"


def links(record: Any, relation: str) -> list[str]:
    return [link["id"] for link in record.get("related_records", ()) if link["relation"] == relation]


def ids_of(*names: str) -> list[str]:
    return [card_id(AGENT, f"{name}.md") for name in names]


# --- Cards ----------------------------------------------------------------------------------------------------------


def test_a_card() -> None:
    text = card(
        topic="Proxy",
        category="setup",
        tags="[proxy, staging, proxy]",
        created="2026-01-14",
        updated="2026-02-15",
        repository="github.com/acme/shop",
        writer="claude",
        tools="[nginx, curl]",
        session="5e55",
    )
    (record,) = finer(CARD, text)
    assert record == {
        "id": card_id(AGENT, "proxy.md"),
        "agent_id": AGENT,
        "content": text,
        "memory_type": "semantic",
        "source": {
            "runtime": "truekeep",
            "origin": "workspace",
            "origin_file": CARD,
            "extraction_method": "agent_written",
            "session_id": "5e55",
        },
        "temporal": {
            "created_at": "2026-01-14T00:00:00Z",
            "updated_at": "2026-02-15T00:00:00Z",
            "observed_at": "2026-01-14T00:00:00Z",
            "valid_from": "2026-01-14T00:00:00Z",
        },
        "status": "active",
        "namespace": "cards",
        "category": "setup",
        "entities": [
            {"name": "github.com/acme/shop", "type": "project"},
            {"name": "nginx", "type": "tool"},
            {"name": "curl", "type": "tool"},
        ],
        "tags": ["cards", "proxy", "staging"],
        "raw_source_format": {"heading": None, "line_end": 13, "line_start": 1},
    }
    assert list(record) == [
        *("id", "agent_id", "content", "memory_type", "source", "temporal", "status", "namespace", "category"),
        *("entities", "tags", "raw_source_format"),
    ]


def test_a_card_without_anything() -> None:
    (record,) = finer(CARD, "Only words.")
    assert record["temporal"] == {"created_at": NOON, "updated_at": NOON}
    assert record["source"]["extraction_method"] == "user_authored"
    assert record["raw_source_format"] == {"heading": None, "line_end": 1, "line_start": 1}
    assert "entities" not in record
    assert "category" not in record


@pytest.mark.parametrize("blank", ["", " ", "\n\n\t\n", "\u3000"])
def test_a_blank_file_says_nothing(blank: str) -> None:
    for path in (CARD, POLICIES, "memory/projects/a.md"):
        assert finer(path, blank) == []


@pytest.mark.parametrize("head", ["", "\ufeff"])
def test_windows_writes_cards_too(head: str) -> None:
    text = head + card(category="workflow", created="2026-01-14").replace("\n", "\r\n")
    (record,) = finer(CARD, text)
    assert record["content"] == text
    assert record["memory_type"] == "procedural"
    assert record["temporal"]["created_at"] == "2026-01-14T00:00:00Z"


def test_every_handoff_type_has_a_memory_type() -> None:
    found = {kind: finer(CARD, card(category=kind))[0]["memory_type"] for kind in (*HANDOFF_TYPES, "Preference", "?")}
    assert found.pop("workflow") == "procedural"
    assert found.pop("preference") == found.pop("Preference") == "preference"
    assert set(found.values()) == {"semantic"}


@pytest.mark.parametrize("front", ["a: &x 1", "a: 1\na: 2", "nonsense", "created: 2026-02-31", "tags: {a: b}"])
def test_a_frontmatter_that_cannot_be_read_costs_only_what_it_said(front: str) -> None:
    (record,) = finer(CARD, f"---\n{front}\n---\nText\n")
    assert record["temporal"]["created_at"] == NOON


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "1999-02-28T10:00:00Z"])
def test_odd_days(day: str) -> None:
    (record,) = finer(CARD, card(created=day, superseded=day))
    assert record["temporal"]["valid_from"] == f"{day[:10]}T00:00:00Z"


def test_an_update_before_the_beginning_is_none() -> None:
    (record,) = finer(CARD, card(created="2026-02-02", updated="2026-01-01"))
    assert record["temporal"]["updated_at"] == "2026-02-02T00:00:00Z"


def test_links_to_other_cards() -> None:
    body = (
        "See [[ports]], [[cards/dns|the names]], [[tls#keys]] and [[ports]] again.\n"
        "[a](memory/cards/one.md) [b](two.md#x) [c](./three.md) [d](../cards/four.md) [e](<five.md>)\n"
        "[f](https://x.org/six.md) [g](../daily/seven.md) [h](memory/cards/deep/eight.md) ![i](nine.png)\n"
        "`[[ten]]` \\](eleven.md) [[twelve thirteen]] [[..]] [[proxy]] [[memory/cards/proxy.md]]\n"
        "```sh\n[[fourteen]]\n```\n<!--\n[[fifteen]]\n-->\n[[sixteen.md]]"
    )
    (record,) = finer(CARD, card(body))
    assert links(record, "related_to") == ids_of(
        "ports", "dns", "tls", "one", "two", "three", "four", "five", "sixteen"
    )


def test_relations_from_frontmatter() -> None:
    text = card(
        "[[old]] [[new]]", supersedes="[old, memory/cards/older.md]", superseded_by="new", related='["[[x]]", "y.md"]'
    )
    (record,) = finer(CARD, text)
    assert record["supersedes"] == ids_of("old")[0]
    assert links(record, "supersedes") == ids_of("old", "older")
    assert links(record, "superseded_by") == ids_of("new")
    assert links(record, "related_to") == ids_of("x", "y")
    assert record["status"] == "superseded"


def test_cards_that_supersede_each_other_or_themselves() -> None:
    (one,) = finer("memory/cards/one.md", card(supersedes="two"))
    (two,) = finer("memory/cards/two.md", card(supersedes="one"))
    assert (one["supersedes"], two["supersedes"]) == (two["id"], one["id"])
    (alone,) = finer("memory/cards/one.md", card("[[one]]", supersedes="one", superseded_by="one.md"))
    assert "supersedes" not in alone
    assert "related_records" not in alone
    assert alone["status"] == "active"


@pytest.mark.parametrize(
    ("keys", "status", "until"),
    [
        ({}, "active", None),
        ({"valid_until": "2026-05-05"}, "active", None),
        ({"status": "archived"}, "archived", None),
        ({"status": "Superseded"}, "superseded", NOON),
        ({"superseded": "true"}, "superseded", NOON),
        ({"superseded": "no"}, "active", None),
        ({"superseded_by": "new", "created": "2026-01-01", "updated": "2026-02-01"}, "superseded", "2026-02-01"),
        ({"superseded_by": "new", "superseded_at": "2026-04-04", "updated": "2026-02-01"}, "superseded", "2026-04-04"),
        ({"superseded_by": "new", "created": "2026-01-01"}, "superseded", NOON),
        ({"superseded_by": "new", "valid_until": "2026-05-05"}, "superseded", "2026-05-05"),
    ],
)
def test_only_a_card_that_says_so_is_over(keys: dict[str, str], status: str, until: str | None) -> None:
    (record,) = finer(CARD, card(**keys))
    assert record["status"] == status
    assert record["temporal"].get("valid_until") == (f"{until}T00:00:00Z" if until and until != NOON else until)


def checked(*verdicts: tuple[str, str, int, str, str], at: float = 7.5) -> CheckedMemory:
    """A memory with claims of this kind, text, line and verdict, and why."""
    made = [
        Verdict(Claim(kind, text, 0, 1, line, 1, text), verdict, "", why) for kind, text, line, verdict, why in verdicts
    ]
    return CheckedMemory(CARD, "", (), tuple(made), at)


def test_verdicts_travel() -> None:
    last = checked(
        ("path", "src/a.py", 9, "confirmed", ""),
        ("symbol", "run", 9, "changed", "its body is another"),
        ("port", "8443", 11, "gone", "nothing has it"),
        ("url", "https://x", 12, "unverifiable", "not asked"),
        at=1_772_366_400.75,
    )
    (record,) = finer(CARD, card(), seen=lambda path: last if path == CARD else None)
    assert record["confidence"] == 0.6667
    told = record["raw_source_format"]["truekeep"]
    assert told["checked_at"] == NOON
    assert told["claims"][0] == {"kind": "path", "text": "src/a.py", "line": 9, "verdict": "confirmed"}
    assert told["claims"][2]["why"] == "nothing has it"
    assert record["status"] == "active"
    assert "valid_until" not in record["temporal"]


@pytest.mark.parametrize("verdicts", [(), (("url", "https://x", 1, "unverifiable", ""),)])
def test_nothing_checked_is_no_confidence(verdicts: tuple[tuple[str, str, int, str, str], ...]) -> None:
    (record,) = finer(CARD, card(), seen=lambda _: checked(*verdicts))
    assert "confidence" not in record
    assert ("truekeep" in record["raw_source_format"]) is bool(verdicts)


def test_a_card_is_linked_to_what_upstream_made_of_it() -> None:
    text = card("# A\n\n## B\n\nb\n\n## C\n\nc")
    assert links(finer(CARD, text)[0], "derived_from") == []
    upstream = upstream_records(CARD, text, mtime_ns=NOON_NS, agent=AGENT, scheme="positional")
    assert len(upstream) == 3
    (record,) = finer(CARD, text, scheme="positional")
    assert links(record, "derived_from") == [item["id"] for item in upstream]


def test_a_cards_id_is_its_name() -> None:
    (before,) = finer(CARD, card())
    (after,) = finer(CARD, card("All new.", created="2026-01-01", category="decision"))
    assert before["id"] == after["id"]
    assert finer("memory/cards/Proxy.md", card())[0]["id"] != before["id"]
    other = with_truekeep_records(CARD, card(), [], 0, agent=str(uuid.UUID(int=7)))
    assert other[0]["id"] != before["id"]


# --- Rules ----------------------------------------------------------------------------------------------------------

TABLE = """# Gating

| # | Trigger | Action | Why |
|---|---|---|---|
| 1 | deploy | run tests | broke prod |
| 2 | delete | confirm | lost data |
"""


def test_a_rule_for_each_row() -> None:
    first, second = finer(POLICIES, TABLE)
    assert first["content"] == "Trigger: deploy\nAction: run tests\nWhy: broke prod"
    assert second["content"] == "Trigger: delete\nAction: confirm\nWhy: lost data"
    assert (first["memory_type"], first["namespace"], first["tags"]) == ("procedural", "procedural", ["procedural"])
    assert first["source"] == {
        "runtime": "truekeep",
        "origin": "workspace",
        "origin_file": POLICIES,
        "extraction_method": "user_authored",
    }
    assert first["temporal"] == {"created_at": NOON, "updated_at": NOON}
    assert first["raw_source_format"] == {"heading": None, "line_end": 5, "line_start": 5, "truekeep": {"rule": "1"}}


@pytest.mark.parametrize("scheme", ["content", "positional"])
def test_rows_take_the_place_of_their_section(scheme: str) -> None:
    """A section with a table is its rows; one without stays a record."""
    text = f"{TABLE}\n## In words\n\nAsk before you delete.\n\n## More\n\n| a | b |\n|---|---|\n| c | d |\n"
    upstream = upstream_records(POLICIES, text, mtime_ns=NOON_NS, agent=AGENT, scheme=scheme, plain=False)
    made = with_truekeep_records(POLICIES, text, upstream, NOON_NS, agent=AGENT)
    told = [(record["source"]["runtime"], record["content"].split("\n")[0]) for record in made]
    assert told == [
        ("openclaw", "## In words"),
        ("truekeep", "Trigger: deploy"),
        ("truekeep", "Trigger: delete"),
        ("truekeep", "a: c"),
    ]


def test_a_rule_knows_the_section_that_it_stands_in() -> None:
    text = f"{TABLE}\n## More\n\n| ID | When | Do |\n|:--|:-:|--:|\n| GP-7 | a \\| b | `c \\| d` |\n"
    *_, last = finer(POLICIES, text)
    assert last["content"] == "ID: GP-7\nWhen: a | b\nDo: `c | d`"
    assert last["raw_source_format"]["heading"] == "More"


def contents(text: str) -> list[str]:
    return [record["content"] for record in finer(POLICIES, text)]


def test_a_file_without_tables_has_no_rules() -> None:
    assert contents("# Gating\n\n## Auth\nAlways check credentials. Use `a | b` or a | b.\n\n- x | y\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b\n--|--\nc | d", ["a: c\nb: d"]),
        ("| **A** | B |\n|---|---|\n| 1 |\n| 2 | 3 | 4 |", ["A: 1", "A: 2\nB: 3\n4"]),
        ("| a | b |\n| c | d |", ["a\nb", "c\nd"]),
        ("|---|---|\n| a | b |", ["a\nb"]),
        ("| a |\n|---|\n| |\n|  |\n| x |", ["a: x"]),
        ("| A | B |\n|---|---|\n| a | b |\n| --- | --- |\n| c | d |", ["A: a\nB: b", "A: c\nB: d"]),
        ("| A |\n|---|\n| a |\ntext\n| B |\n|---|\n| b |", ["A: a", "B: b"]),
        ("```\n| A | B |\n|---|---|\n| a | b |\n```", []),
        ("~~~md\n| A | B |\n```\n|---|---|\n| a | b |", []),
        ("    | A | B |\n    |---|---|\n    | a | b |", []),
        ("<!--\n| A | B |\n|---|---|\n| a | b |\n-->\n| x | y |", ["x\ny"]),
        ("| A |\n|---|\n| a |\n```\n| b |\n```\n| c | d |", ["A: a", "c\nd"]),
        ("# a | b\n---|---\n| c | d |", ["c\nd"]),
        ("| A | B |\r\n|---|---|\r\n| a | b |\r\n", ["A: a\nB: b"]),
        ("||\n|-|\n||||", []),
        ("| # |\n|---|\n| 4 |", []),
    ],
)
def test_odd_tables(text: str, expected: list[str]) -> None:
    assert contents(text) == expected


def test_cells() -> None:
    assert split_cells("| a \\| b | c\\\\|d | `x|y` |") == ["a | b", "c\\\\", "d", "`x", "y`"]
    assert split_cells("a|b|") == ["a", "b"]
    assert split_cells("|") == [""]


def test_a_rule_with_a_day() -> None:
    (record,) = finer(POLICIES, "| Trigger | Added |\n|---|---|\n| deploy | 2026-01-09 |")
    assert record["temporal"] == {
        "created_at": "2026-01-09T00:00:00Z",
        "updated_at": NOON,
        "observed_at": "2026-01-09T00:00:00Z",
    }


def rule_ids(text: str) -> dict[str, str]:
    return {record["content"].rpartition(": ")[2]: record["id"] for record in finer(POLICIES, text)}


def table(rows: Sequence[tuple[str, str]], header: str = "#") -> str:
    return "".join(f"| {a} | {b} |\n" for a, b in ((header, "Action"), ("---", "---"), *rows))


def test_a_rules_id_is_its_number_or_its_trigger() -> None:
    numbered, named = [("1", "a"), ("2", "b")], [("deploy", "a"), ("delete", "b")]
    assert rule_ids(table(numbered))["b"] == rule_ids(table([("2", "b")]))["b"]
    assert rule_ids(table(numbered))["b"] == rule_ids(table([("1", "x"), ("2", "changed")]))["changed"]
    assert rule_ids(table(named, "Trigger"))["b"] == rule_ids("# Moved\n\n" + table(named[1:], "Trigger"))["b"]
    twice = f"{table(numbered)}\n## Other\n\n{table([('1', 'c'), ('1', 'd')])}"
    assert len(set(rule_ids(twice).values())) == 4
    assert rule_ids(twice)["c"] == rule_ids(twice.partition("\n\n")[2])["c"]


WORDS = st.text(alphabet="abcxyz |\\`#*-", min_size=1, max_size=12)


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(st.integers(0, 500), WORDS), min_size=1, max_size=8, unique_by=lambda row: row[0]),
    at=st.integers(0, 7),
    edit=st.sampled_from(["drop", "edit", "insert", "title"]),
)
@settings(max_examples=100, deadline=None)
def test_ids_of_rules_stay_when_others_are_edited(rows: list[tuple[int, str]], at: int, edit: str) -> None:
    def ids(listed: list[tuple[int, str]], title: str = "Rules") -> dict[str, str]:
        said = [(str(number), "x" + text.replace("|", "\\|")) for number, text in listed]
        records = finer(POLICIES, f"# {title}\n\n{table(said)}")
        return {record["raw_source_format"]["truekeep"]["rule"]: record["id"] for record in records}

    before = ids(rows)
    assert len(before) == len(rows)
    at %= len(rows)
    changed = {
        "drop": rows[:at] + rows[at + 1 :],
        "edit": [*rows[:at], (rows[at][0], "other"), *rows[at + 1 :]],
        "insert": [*rows[:at], (501, "new"), *rows[at:]],
        "title": rows,
    }[edit]
    after = ids(changed, "New title")
    assert all(before[number] == after[number] for number in before.keys() & after.keys())


# --- Notes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "memory_type", "namespace", "more"),
    [
        ("memory/projects/shop.md", "semantic", "project", {}),
        ("memory/decisions/2026-01.md", "semantic", "workspace", {}),
        ("memory/ops/CHANGELOG.md", "procedural", "procedural", {}),
        ("memory/daily/2026-01-05.md", "episodic", "daily", {"day": "2026-01-05"}),
        ("memory/daily/notes.md", "episodic", "daily", {}),
        ("memory/checkpoints/subagent-x.md", "episodic", "checkpoints", {}),
        ("memory/archive/2025-12-31.md", "episodic", "daily", {"day": "2025-12-31", "status": "archived"}),
        ("memory/archive/old.md", "semantic", "workspace", {"status": "archived"}),
        ("memory/archive/projects/shop.md", "semantic", "project", {"status": "archived"}),
        ("memory/research/2026-01-30-memory.md", "semantic", "workspace", {}),
        ("memory/research/2026-02-30.md", "episodic", "daily", {}),
        ("memory/a/b/c d.md", "semantic", "workspace", {}),
    ],
)
def test_notes_in_folders(path: str, memory_type: str, namespace: str, more: dict[str, Any]) -> None:
    text = "# Title\n\nIntro #tag\n\n## One\n\n[milestone|i=0.8] a\n\n## Two\n\n```\n## not\n```\n"
    intro, one, two = upstream_records(path, text, mtime_ns=NOON_NS, agent=AGENT, scheme="content", plain=False)
    for record in (intro, one, two):
        assert (record["memory_type"], record["namespace"]) == (memory_type, namespace)
        assert record["status"] == more.get("status", "active")
        assert record["source"]["origin_file"] == path
        day = more.get("day")
        assert record["temporal"].get("observed_at") == (f"{day}T00:00:00Z" if day else None)
        assert record["temporal"]["updated_at"] == NOON
    assert intro["tags"] == [namespace, "tag"]
    assert (one["category"], one["confidence"]) == ("milestone", 0.8)
    assert one["content"] == "## One\n\n[milestone|i=0.8] a\n"
    assert two["raw_source_format"] == {"heading": "Two", "line_end": 13, "line_start": 9}


@pytest.mark.parametrize(
    "path",
    [
        *("SOUL.md", "rules/a.md", "memory/facts.db", "memory/projects/a.txt", "memory/cards/a.md", "notmemory/a/b.md"),
        *("memory/handoff-inbox/x.md", "memory/x/processed/y.md", "memory/.hidden/x.md", "memory/projects/.x.md"),
    ],
)
def test_files_without_sections(path: str) -> None:
    text = "# A\n\n## B\n\nc\n"
    assert upstream_records(path, text, mtime_ns=NOON_NS, agent=AGENT, scheme="content", plain=False) == []


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/note.md", "memory/projects/a.md", "memory/.x.md"])
def test_files_that_truekeep_has_nothing_to_add_to(path: str) -> None:
    assert finer(path, "# A\n\n## B\n\nc\n") == []


# --- Hostile --------------------------------------------------------------------------------------------------------

LONG_LINES = {
    "bars": "|" * 1_000_000,
    "rows": "|a|b|\n" * 150_000,
    "header": f"| {'h' * 500_000} | b |\n|---|---|\n" + "| a | b |\n" * 50_000,
    "columns": "|a" * 300_000 + "\n" + "|-" * 300_000 + "\n" + "|b" * 300_000,
    "dashes": "-" * 500_000 + "|" + "-" * 500_000,
    "spaces": " " * 500_000 + "|" + " " * 500_000 + "x",
    "escapes": "\\|" * 500_000,
    "wiki": "[[a#" * 250_000,
    "open": "[[" * 500_000,
    "links": "](" * 500_000,
    "targets": "](a.md" * 160_000,
    "cards": "".join(f"[[c{number}]]" for number in range(50_000)),
    "ticks": "`" * 1_000_000,
    "spans": "`a" * 500_000,
    "tags": "[a" * 500_000 + "|i=",
    "fences": "```\n" * 250_000,
    "comments": "<!--\n" * 200_000,
    "headings": "## a\nb\n" * 40_000,
    "front": "---\n" + "a: b\n" * 200_000,
    "flow": "---\nrelated: [" + "[[a]], " * 2_000 + "]\n---\nx",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_LINES)
@pytest.mark.parametrize("path", [CARD, POLICIES, "memory/projects/a.md"])
def test_long_hostile_lines_come_to_an_end(kind: str, path: str) -> None:
    text = LONG_LINES[kind]
    with unless_endless():
        records = with_truekeep_records(path, text, [], NOON_NS, agent=AGENT)
    assert len(records) <= max(MAX_RULES_PER_FILE, 40_000)
    assert sum(len(record["content"]) for record in records) < 30 * len(text)


SIGNS = st.text(alphabet="|-:#`~[]()<>!\\ \n\r\t.abm/\u00e9\u2028\0", max_size=80)
PATHS = st.sampled_from([CARD, POLICIES, "memory/projects/a.md", "memory/daily/2026-01-05.md"])


@pytest.mark.slow
@given(path=PATHS, text=st.one_of(SIGNS, st.text(max_size=60), SIGNS.map(lambda text: f"---\n{text}\n---\n{text}")))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_gives_valid_records(path: str, text: str) -> None:
    for scheme in ("content", "positional"):
        once, again = (finer(path, text, scheme=scheme) for _ in range(2))
        assert [dump_line(record) for record in once] == [dump_line(record) for record in again]
    for row in iter_rows(text):
        assert 1 <= row.line <= text.count("\n") + 1


# --- Facts ----------------------------------------------------------------------------------------------------------

COMMUNITY = """
CREATE TABLE facts (id INTEGER PRIMARY KEY, entity TEXT, key TEXT, value TEXT, category TEXT, source TEXT,
  created_at TEXT, last_accessed TEXT, access_count INTEGER, importance REAL);
CREATE VIRTUAL TABLE facts_fts USING fts5(entity, key, value, content=facts, content_rowid=id);
CREATE TABLE aliases (alias TEXT, entity TEXT);
CREATE TABLE facts_changelog (entity TEXT, key TEXT, old_value TEXT, new_value TEXT);
CREATE TABLE relations (id INTEGER PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT, category TEXT);
INSERT INTO facts VALUES
  (1, 'Ada', 'birthday', 'March 15', 'person', 'manual', '2026-02-14 10:00:00', '2026-03-01T00:00:00+02:00', 3, 0.9),
  (2, 'Shop', 'stack', 'Next.js', 'project', NULL, '1772366400', NULL, -1, 7),
  (3, 'decision', 'delete', 'trash > rm', 'convention', NULL, 'yesterday', '', 'x', NULL),
  (4, 'Ada', 'birthday', 'March 16', 'person', NULL, NULL, NULL, NULL, 'nan');
INSERT INTO relations VALUES (1, 'Ada', 'lives_in', 'Paris', 'location');
INSERT INTO facts_changelog VALUES ('Ada', 'birthday', 'x', 'y');
"""


def facts_db(path: Path, sql: str = COMMUNITY, *, pragma: str = "") -> Path:
    db = apsw.Connection(str(path))
    if pragma:
        db.execute(pragma).fetchall()
    db.execute(sql)
    db.close()
    return path


def facts(path: Path) -> list[Any]:
    records = list(iter_fact_records(str(path), agent=AGENT, mtime_ns=NOON_NS))
    check(records)
    return records


def told(path: Path) -> list[str]:
    return [record["content"] for record in facts(path)]


def refused(path: Path) -> UnreadableFacts:
    before = tree(path.parent)
    with pytest.raises(UnreadableFacts) as caught:
        facts(path)
    assert tree(path.parent) == before
    return caught.value


def test_the_communitys_facts(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db")
    before = tree(tmp_path)
    records = facts(path)
    assert tree(tmp_path) == before
    assert [record["content"] for record in records] == [
        *("Ada · birthday: March 15", "Ada · birthday: March 16", "Shop · stack: Next.js"),
        *("decision · delete: trash > rm", "Ada · lives_in: Paris"),
    ]
    first, second, shop, decision, relation = records
    assert first == {
        "id": first["id"],
        "agent_id": AGENT,
        "content": "Ada · birthday: March 15",
        "memory_type": "preference",
        "source": {"runtime": "truekeep", "origin": "workspace", "origin_file": "memory/facts.db"},
        "temporal": {
            "created_at": "2026-02-14T10:00:00Z",
            "updated_at": "2026-02-14T10:00:00Z",
            "observed_at": "2026-02-14T10:00:00Z",
            "last_accessed_at": "2026-02-28T22:00:00Z",
            "access_count": 3,
        },
        "status": "active",
        "namespace": "facts",
        "category": "person",
        "confidence": 0.9,
        "entities": [{"name": "Ada", "type": "person"}],
        "tags": ["facts", "person"],
        "raw_source_format": {"truekeep": {"table": "facts", "entity": "Ada", "key": "birthday", "value": "March 15"}},
    }
    assert second["temporal"] == {"created_at": NOON, "updated_at": NOON}
    assert "confidence" not in second
    assert shop["temporal"]["created_at"] == NOON
    assert "access_count" not in shop["temporal"]
    assert "confidence" not in shop
    assert decision["entities"][0]["type"] == "other"
    assert relation["entities"][0]["type"] == "location"


def test_a_facts_id_stays(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db")
    before = {record["content"]: record["id"] for record in facts(path)}
    facts_db(path, "UPDATE facts SET value = 'April' WHERE id = 1; DELETE FROM facts WHERE id = 2; VACUUM")
    facts_db(path, "INSERT INTO facts(entity, key, value) VALUES ('Aa', 'x', 'y')")
    after = {record["content"]: record["id"] for record in facts(path)}
    assert after["Ada · birthday: April"] == before["Ada · birthday: March 15"]
    assert after["decision · delete: trash > rm"] == before["decision · delete: trash > rm"]
    assert len(set(after.values())) == len(after)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_any_encoding_and_any_type(tmp_path: Path, encoding: str) -> None:
    sql = """
    CREATE TABLE "od""d" (Subject, Attribute, "Value") ;
    INSERT INTO "od""d" VALUES ('é', 'k', 'ü'), ('n', 1, 2.5), ('null', NULL, 'x'), (NULL, 'k', 'v'), ('e', 'k', ''),
      ('blob', 'k', x'ffd8ffe000ff');
    """
    path = facts_db(tmp_path / "facts.db", sql, pragma=f'PRAGMA encoding = "{encoding}"')
    assert sorted(told(path)) == ["n · 1: 2.5", "null: x", "é · k: ü"]


def test_text_that_is_damaged_is_text(tmp_path: Path) -> None:
    sql = "CREATE TABLE f (entity, key, value); INSERT INTO f VALUES (CAST(x'636166e9' AS TEXT), 'k', 'v')"
    assert told(facts_db(tmp_path / "facts.db", sql)) == ["caf\ufffd · k: v"]


def test_a_value_without_end_is_no_fact(tmp_path: Path) -> None:
    sql = (
        "CREATE TABLE f (entity, key, value, category); INSERT INTO f VALUES ('a', 'k', hex(zeroblob(2000000)), 'c'),"
        " ('b', 'k', 'v', hex(zeroblob(2000000)))"
    )
    records = facts(facts_db(tmp_path / "facts.db", sql))
    assert [record["content"] for record in records] == ["b · k: v"]
    assert "category" not in records[0]


@pytest.mark.slow
def test_no_code_of_the_schema_runs(tmp_path: Path) -> None:
    sql = """
    CREATE TABLE t (a);
    CREATE VIEW facts AS WITH RECURSIVE n(entity, key, value) AS (SELECT 1, 1, 1 UNION ALL SELECT 1, 1, 1 FROM n)
      SELECT * FROM n;
    CREATE TABLE made (entity, key, value AS (hex(zeroblob(100000000))));
    INSERT INTO made VALUES ('a', 'b');
    """
    assert "no table" in refused(facts_db(tmp_path / "facts.db", sql)).what


def test_without_rowids(tmp_path: Path) -> None:
    sql = "CREATE TABLE f (entity, key, value, PRIMARY KEY (entity, key, value)) WITHOUT ROWID;"
    sql += "INSERT INTO f VALUES ('b', 'k', 2), ('a', 'k', 1), ('b', 'k', 1)"
    assert told(facts_db(tmp_path / "facts.db", sql)) == ["a · k: 1", "b · k: 1", "b · k: 2"]


def test_no_file_no_facts(tmp_path: Path) -> None:
    assert facts(tmp_path / "facts.db") == []


@pytest.mark.parametrize("data", [b"SQLite format 3", b"", b"\0" * 4096, os.urandom(9000), b"SQLite format 3\0" * 300])
def test_what_is_no_database(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "facts.db"
    path.write_bytes(data)
    assert refused(path).given == 0


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "here" / "facts.db"
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(facts_db(tmp_path / "other.db"))
    else:
        os.mkfifo(path)
    with pytest.raises(UnreadableFacts, match="no ordinary file"):
        facts(path)


@pytest.mark.slow
def test_a_damaged_database_gives_a_reason_and_never_more(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db", "CREATE TABLE f (entity, key, value)")
    rows = ",".join(f"('entity {number}', 'key', '{'v' * 300}')" for number in range(400))
    whole = facts_db(path, f"INSERT INTO f VALUES {rows}").read_bytes()
    assert len(facts(path)) == 400
    for at in range(0, len(whole), 1511):
        path.write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
        with contextlib.suppress(UnreadableFacts):
            assert len(facts(path)) <= 400
        path.write_bytes(whole[:at])
        with pytest.raises(UnreadableFacts):
            facts(path)


def test_a_database_in_use(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db", pragma="PRAGMA journal_mode = wal")
    before = tree(tmp_path)
    assert len(facts(path)) == 5
    assert tree(tmp_path) == before
    writer = apsw.Connection(str(path))
    writer.execute("INSERT INTO facts(entity, key, value) VALUES ('new', 'in', 'log')")
    assert len(facts(path)) == 6
    log = (tmp_path / "facts.db-wal").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "facts.db").write_bytes(path.read_bytes())
    (copy / "facts.db-wal").write_bytes(log)
    assert "log" in refused(copy / "facts.db").what
    writer.close()


def test_a_database_that_is_being_written(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db")
    writer = apsw.Connection(str(path))
    writer.execute("BEGIN EXCLUSIVE; INSERT INTO facts(entity, key, value) VALUES ('a', 'b', 'c')")
    with pytest.raises(UnreadableFacts, match="another program"):
        facts(path)
    writer.execute("ROLLBACK")
    writer.close()
    assert len(facts(path)) == 5


def test_facts_stream(tmp_path: Path) -> None:
    path = facts_db(tmp_path / "facts.db")
    records = iter_fact_records(str(path), agent=AGENT, mtime_ns=NOON_NS)
    next(records)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UnreadableFacts, match="written to") as caught:
        list(records)
    assert caught.value.given == 5


# --- Embeddings -----------------------------------------------------------------------------------------------------

NOTE = "memory/a.md"
SAID = "Staging answers on port 8443.\nThe proxy terminates TLS."


@pytest.fixture(params=["legacy", "between", "current"])
def claw(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Claw]:
    made = Claw(tmp_path / "claw" / "main.sqlite", request.param)
    made.describe()
    yield made
    made.db.close()


def set_time(claw: Claw, at: Any) -> None:
    claw.db.execute(f"UPDATE {'chunks' if claw.is_legacy else 'memory_index_chunks'} SET updated_at = ?", (at,))


def test_vectors_of_openclaw(claw: Claw, tmp_path: Path) -> None:
    claw.chunk(SAID, [0.6, -0.8])
    claw.chunk("Something else.", [1.0, 0.0])
    claw.chunk(f"{SAID}!", [1.0, 0.0])
    set_time(claw, 1_772_366_400_000)
    before = tree(claw.close().parent)
    with EmbeddingSources([claw.path], []) as vectors:
        (embedding,) = vectors.find(NOTE, SAID, 1, 1)
        assert vectors.find(NOTE, SAID, 2, 9) == [embedding]
        assert vectors.find(NOTE, SAID, 3, 9) == []
        assert vectors.find("memory/b.md", SAID, 1, 2) == []
        assert vectors.find(NOTE, f"# New\n{SAID}", 1, 9) == []
        assert vectors.find(NOTE, SAID.replace("8443", "443"), 1, 9) == []
        assert vectors.find(NOTE, f"{SAID}\n\n## Appended\n", 1, 1) == [embedding]
        assert vectors.problems == []
    assert tree(claw.path.parent) == before
    assert embedding == {
        "model": f"openai/{OPENAI}",
        "dimensions": 2,
        "vector": [0.6, -0.8],
        "computed_at": NOON,
        "source": "runtime",
    }


def test_a_vector_of_another_model_has_an_unknown_provider(claw: Claw, tmp_path: Path) -> None:
    claw.chunk(SAID, [1.0], model="/home/me/models/x.gguf")
    set_time(claw, -5)
    claw.close()
    with EmbeddingSources([claw.path], []) as vectors:
        (embedding,) = vectors.find(NOTE, SAID, 1, 1)
    assert (embedding["model"], embedding["computed_at"]) == ("unknown/x.gguf", "1970-01-01T00:00:00Z")


@pytest.mark.parametrize("vector", ["[]", "nonsense", "[1e999]", '["a"]', "[[1]]", "[0, 0]", "[NaN]"])
def test_a_vector_that_is_none(claw: Claw, tmp_path: Path, vector: str) -> None:
    broken = vector.encode() if claw.generation == "current" else vector
    claw.chunk(SAID, broken)
    claw.close()
    with EmbeddingSources([claw.path], []) as vectors:
        assert vectors.find(NOTE, SAID, 1, 1) == []
        assert vectors.problems == []


def test_databases_that_cannot_be_read(tmp_path: Path, claw: Claw) -> None:
    claw.chunk(SAID, [1.0])
    claw.close()
    (tmp_path / "bad.sqlite").write_bytes(b"no database" * 1000)
    (tmp_path / "empty.sqlite").write_bytes(b"")
    others = [tmp_path / "bad.sqlite", tmp_path / "absent.sqlite", tmp_path / "empty.sqlite", claw.path]
    with EmbeddingSources(others, []) as vectors:
        assert len(vectors.find(NOTE, SAID, 1, 1)) == 1
        assert len(vectors.problems) == 2


def test_a_database_that_fails_on_the_way_is_not_asked_again(tmp_path: Path, claw: Claw) -> None:
    claw.chunk(SAID, [1.0])
    claw.close()
    with EmbeddingSources([claw.path], []) as vectors:
        data = claw.path.read_bytes()
        claw.path.write_bytes(b"\xff" * len(data))
        assert vectors.find(NOTE, SAID, 1, 1) == []
        assert vectors.find(NOTE, SAID, 2, 2) == []
        assert len(vectors.problems) == 1


def test_without_any_database(tmp_path: Path) -> None:
    with EmbeddingSources([], []) as vectors:
        assert vectors.find(NOTE, SAID, 1, 2) == []
        assert vectors.problems == []
    assert list(tmp_path.iterdir()) == []


# --- Sessions -------------------------------------------------------------------------------------------------------


def sessions(place: Place) -> list[Any]:
    with Archive(str(state(place))) as archive:
        records = list(session_records(archive, agent=AGENT))
    check(records)
    return records


def test_sessions(place: Place) -> None:
    home = Path(os.environ["HOME"])
    write_session(place_of(home, "claude"), dialogue("claude", "Why is it red?", "The port is taken.", "Free it."))
    write_session(place_of(home, "codex", TWO), dialogue("codex", "Deploy it.", "Done."))
    sync(place)
    one, two = sorted(sessions(place), key=lambda record: record["source"]["session_id"])
    assert one["content"].split("\n\n")[1] == "Why is it red?"
    assert [line.split(" · ")[0] for line in one["content"].split("\n") if line.startswith("**")] == [
        *("**User**", "**Assistant**", "**User**"),
    ]
    assert one["source"] == {"runtime": "truekeep", "origin": "transcripts", "session_id": ONE}
    assert (one["memory_type"], one["namespace"], one["tags"]) == ("episodic", "session", ["session", "claude"])
    assert one["temporal"]["observed_at"] == one["temporal"]["created_at"] <= one["temporal"]["updated_at"]
    assert one["raw_source_format"]["truekeep"]["harness"] == "claude"
    assert "related_records" not in one
    assert two["tags"] == ["session", "codex"]
    again = sorted(sessions(place), key=lambda record: record["source"]["session_id"])
    assert [dump_line(record) for record in (one, two)] == [dump_line(record) for record in again]


def test_a_sessions_id_stays_when_it_goes_on(place: Place) -> None:
    path = write_session(place_of(Path(os.environ["HOME"]), "claude"), dialogue("claude", "Why?", "So."))
    sync(place)
    (before,) = sessions(place)
    grow(path, *dialogue("claude", "And then?"))
    sync(place)
    (after,) = sessions(place)
    assert after["id"] == before["id"]
    assert after["content"].startswith(before["content"])


def test_a_fork_tells_its_own_turns(place: Place) -> None:
    home = Path(os.environ["HOME"])
    write_session(place_of(home, "claude"), dialogue("claude", LONG, "It waits now.", "Thanks."))
    write_session(place_of(home, "claude", TWO), dialogue("claude", LONG, "It waits now.", "Try the other way."))
    sync(place)
    records = sessions(place)
    forks = [record for record in records if "forked_from" in record["raw_source_format"]["truekeep"]]
    assert len(records) == 2
    assert len(forks) == 1
    assert "It waits now." not in forks[0]["content"]


def test_without_an_archive(place: Place) -> None:
    assert sessions(place) == []


def test_a_session_that_cannot_be_read_is_told(place: Place) -> None:
    home = Path(os.environ["HOME"])
    write_session(place_of(home, "claude"), dialogue("claude", "Why?", "So."))
    write_session(place_of(home, "codex", TWO), dialogue("codex", "Deploy it.", "Done."))
    sync(place)
    db = apsw.Connection(str(archive_file(place)))
    db.execute("UPDATE block SET data = x'00' WHERE session = (SELECT id FROM session WHERE harness = 'claude')")
    db.close()
    said: list[str] = []
    with Archive(str(state(place))) as archive:
        (record,) = session_records(archive, agent=AGENT, warn=said.append)
    assert record["tags"] == ["session", "codex"]
    assert len(said) == 1
    assert said[0].startswith("transcripts/claude/")
