"""Files become sections, sections become records, and nothing of a secret becomes a credential's record."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.integrations.alf.credentials import credentials_of
from truekeep.integrations.alf.documents import MAX_DEPTH, dump_document, dump_line, parse_object
from truekeep.integrations.alf.identity import agent_name, find_sub_agents, identity_of, principals_of
from truekeep.integrations.alf.record_ids import SCHEMES, WHITESPACE, content_id, positional_id
from truekeep.integrations.alf.records import find_marks, iter_hashtags, parse_importance, upstream_records
from truekeep.integrations.alf.sections import RecordSection, classify, daily_log_date, split_sections

AGENT = "6d1f6a6e-29c8-4d3b-9d2c-0c5a4f0b7c11"
NOON = "2026-03-01T12:00:00Z"
NOON_NS = 1_772_366_400_000_000_000

LINES = st.sampled_from(
    (
        *("## ", "## One", "## ## Two", "##x", "##\tx", " ## x", "### x", "# Title", "#", "", " ", "\u3000", "text"),
        *("```", "```py", " ```", "~~~", "\ufeff## x", "a\x0b## b", "a\u2028## b", "a\x85## b", "a\r## b", "x\r", "\r"),
        *("\x1c", "[decision|i=0.9] #tag", "#a #b.", "\u00e9\U0001f980"),
    )
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\r\n"])), max_size=12).flatmap(
    lambda lines: st.sampled_from(["", "\n", "\r"]).map(
        lambda end: "".join(line + ending for line, ending in lines).removesuffix("\n") + end
    )
)


def headings(text: str, scheme: str) -> list[tuple[str | None, int, int]]:
    return [
        (part.heading, part.line_start, part.line_end) for part in split_sections(text, is_split=True, scheme=scheme)
    ]


def contents(text: str, scheme: str) -> list[str]:
    return [part.content for part in split_sections(text, is_split=True, scheme=scheme)]


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    ended = [line.removesuffix("\r") for line in lines[:-1]]
    return ended + lines[-1:] if lines[-1] else ended


def slowly(text: str, scheme: str) -> list[RecordSection]:
    """Line by line, the rules as they are told."""
    groups: list[tuple[int, list[str]]] = [(1, [])]
    is_fenced = False
    for number, line in enumerate(lines_of(text), start=1):
        if scheme == "content" and line.startswith("```"):
            is_fenced = not is_fenced
        if line.startswith("## ") and not is_fenced:
            groups.append((number, []))
        groups[-1][1].append(line)
    sections = []
    for order, (start, lines) in enumerate(groups):
        heading = None
        if order:
            heading = lines[0]
            while heading.startswith("## "):
                heading = heading[3:]
                if scheme == "content":
                    break
            heading = heading.strip(WHITESPACE)
        bare = [line.strip(WHITESPACE) for line in lines]
        if scheme == "content":
            kept = any(bare[1:]) if order else any(line and line[0] != "#" for line in bare)
        else:
            kept = any(bare)
        if kept:
            sections.append(RecordSection(heading, "\n".join(lines), start, start + len(lines) - 1))
    return sections


class TestClassify:
    @pytest.mark.parametrize(
        ("path", "positional", "content"),
        [
            ("MEMORY.md", "semantic curated split", "semantic curated split"),
            ("memory/2026-01-05.md", "episodic daily split", "episodic daily split"),
            ("memory/2026-1-5.md", "episodic daily split", "semantic workspace whole"),
            ("memory/2026-02-30.md", "semantic workspace split", "episodic daily split"),
            ("memory/2026-01-05-topic.md", "semantic workspace split", "semantic workspace whole"),
            ("memory/old/2026-01-05.md", "semantic workspace split", None),
            ("memory/active-context.md", "summary active-context whole", "summary active-context whole"),
            ("memory/Active-Context.md", "summary active-context whole", "semantic workspace whole"),
            ("memory/old/my-active-context-2.md", "summary active-context whole", None),
            ("memory/project-x.md", "semantic project split", "semantic project split"),
            ("memory/PROJECT-x.md", "semantic project split", "semantic workspace whole"),
            (
                "memory/project-gating-policies.md",
                "procedural project split",
                "semantic project split",
            ),
            (
                "memory/gating-policies.md",
                "procedural procedural split",
                "procedural procedural split",
            ),
            ("memory/gating_policies.md", "procedural procedural split", "semantic workspace whole"),
            ("memory/procedures/standup.md", "semantic workspace split", "procedural procedural whole"),
            ("memory/procedures/deep/standup.md", "semantic workspace split", None),
            ("memory/curated/facts.md", "semantic workspace split", "semantic curated whole"),
            ("memory/.dreams/d.md", "semantic workspace split", None),
            ("memory/notes.md", "semantic workspace split", "semantic workspace whole"),
            ("memory/UPPER.MD", None, None),
            ("memory/.md", None, None),
            ("memory.md", None, None),
            ("memory/facts.db", None, None),
            ("notes.md", None, None),
            ("SOUL.md", None, None),
        ],
    )
    def test_every_rule(self, path: str, positional: str | None, content: str | None) -> None:
        for scheme, expected in (("positional", positional), ("content", content)):
            kind = classify(path, scheme)
            told = kind and f"{kind.memory_type} {kind.namespace} {'split' if kind.is_split else 'whole'}"
            assert told == expected

    def test_days(self) -> None:
        assert daily_log_date("memory/2026-1-5.md") == daily_log_date("memory/2026-01-05.md") == date(2026, 1, 5)
        assert daily_log_date("MEMORY/2026-01-05.MD") == date(2026, 1, 5)
        for path in ("memory/2026-02-30.md", "memory/0-1-1.md", "memory/2026-001-5.md", "memory/x/2026-01-05.md"):
            assert daily_log_date(path) is None


class TestSplit:
    def test_what_is_a_heading(self) -> None:
        text = "##x\n ## x\n##\tx\n### x\nSet\n---\n## yes\nbody"
        assert headings(text, "positional") == [(None, 1, 6), ("yes", 7, 8)]
        assert headings(text, "content") == [(None, 1, 6), ("yes", 7, 8)]

    def test_a_fence_hides_headings_from_the_later_scheme(self) -> None:
        text = "## A\n```sh\n## B\n``` x\n## C\n ```\n## D\n~~~\n## E\ny"
        assert [heading for heading, *_ in headings(text, "positional")] == ["A", "B", "C", "D", "E"]
        assert headings(text, "content") == [("A", 1, 4), ("C", 5, 6), ("D", 7, 8), ("E", 9, 10)]

    def test_an_open_fence_reaches_to_the_end(self) -> None:
        assert headings("## A\n```\n## B\nx", "content") == [("A", 1, 4)]

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_only_a_line_feed_ends_a_line(self, scheme: str) -> None:
        text = "x\x0b## a\x0c## b\x1c## c\x85## d\u2028## e\u2029## f\r## g"
        assert split_sections(text, is_split=True, scheme=scheme) == [RecordSection(None, text, 1, 1)]

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_line_ends_become_plain_in_sections(self, scheme: str) -> None:
        assert contents("## A\r\nx\r\n\r\n## B\r\ny\r\n", scheme) == ["## A\nx\n", "## B\ny"]
        assert contents("## A\nx\r\r\ny\r", scheme) == ["## A\nx\r\ny\r"]
        assert contents("## A\nx\n\n", scheme) == ["## A\nx\n"]

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_a_byte_order_mark_makes_the_first_heading_text(self, scheme: str) -> None:
        assert headings("\ufeff## A\nx\n## B\ny", scheme) == [(None, 1, 2), ("B", 3, 4)]

    def test_headings_without_a_body(self) -> None:
        text = "## A\n\n## \n## B\n \u3000\n"
        assert headings(text, "positional") == [("A", 1, 2), ("", 3, 3), ("B", 4, 5)]
        assert headings(text, "content") == []

    def test_a_lone_title(self) -> None:
        text = "\n# Monday\n\n## A\nx"
        assert headings(text, "positional") == [(None, 1, 3), ("A", 4, 5)]
        assert headings(text, "content") == [("A", 4, 5)]
        assert headings("# Monday\nsunny\n", "content") == [(None, 1, 2)]

    def test_repeated_marks(self) -> None:
        text = "## ## ##  X \ny"
        assert headings(text, "positional") == [("X", 1, 2)]
        assert headings(text, "content") == [("## ##  X", 1, 2)]

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_a_whole_file_keeps_its_bytes(self, scheme: str) -> None:
        text = "\ufeff# A\r\n\r\n## B\r\nx\r\n"
        assert split_sections(text, is_split=False, scheme=scheme) == [RecordSection(None, text, 1, 4)]
        assert split_sections("\n", is_split=False, scheme=scheme) == []
        assert split_sections("x", is_split=False, scheme=scheme) == [RecordSection(None, "x", 1, 1)]
        assert split_sections("\x1c", is_split=False, scheme=scheme) == [
            RecordSection(None, "\x1c", 1, 1)
        ]  # not blank to upstream

    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("blank", ["", "\n", "\r\n \t\n", "\u2003\u3000\x85"])
    def test_blank_files_have_no_section(self, scheme: str, blank: str) -> None:
        assert (
            split_sections(blank, is_split=True, scheme=scheme)
            == split_sections(blank, is_split=False, scheme=scheme)
            == []
        )

    @pytest.mark.slow
    @given(TEXTS, st.sampled_from(SCHEMES))
    @example("\n## \n", "content")
    @example("## \r", "positional")
    @settings(max_examples=400)
    def test_as_the_rules_say_line_by_line(self, text: str, scheme: str) -> None:
        assert split_sections(text, is_split=True, scheme=scheme) == slowly(text, scheme)

    @given(TEXTS, st.sampled_from(SCHEMES))
    def test_sections_follow_one_another(self, text: str, scheme: str) -> None:
        lines = lines_of(text)
        end = 0
        for part in split_sections(text, is_split=True, scheme=scheme):
            assert end < part.line_start <= part.line_end <= len(lines)
            assert part.content == "\n".join(lines[part.line_start - 1 : part.line_end])
            end = part.line_end

    @pytest.mark.slow
    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("unit", ["## ", "## \n", "```\n", "#\n", "\n", "\r", "[x|i=", "#a ", "# "])
    def test_long_files_are_linear_work(self, scheme: str, unit: str) -> None:
        assert_about_linear(lambda count: _marks(unit * count, scheme), 1_000, huge=100_000)


def _marks(text: str, scheme: str) -> None:
    for part in split_sections(text, is_split=True, scheme=scheme):
        find_marks(part.content, "daily")


class TestMarks:
    def test_order_and_no_doubles(self) -> None:
        text = "#z [decision|i=0.5] #a\n[lesson|i=0.9] #z #decision\n[decision|i=0.7]"
        assert find_marks(text, "daily") == (["daily", "decision", "z", "a", "lesson"], "decision", 0.9)

    def test_without_any(self) -> None:
        assert find_marks("plain", "curated") == (["curated"], None, None)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("- [decision|i=0.9] x [lesson|i=0.95]", ("decision", 0.9)),
            ("[a b|i=0.9] [lesson|i=0.4]", ("lesson", 0.4)),
            ("[x|i=1.2.3] [lesson|i=0.4]", None),
            ("[x|i=.] [lesson|i=0.4]", None),
            ("[x|i=.5]", ("x", 0.5)),
            ("[x|i=5.]", ("x", 5.0)),
            ("[x|i=-1]", None),
            ("[x|i=٣] [y|i=1]", None),
            ("[[x|i=0.3]]", ("x", 0.3)),
            ("[x|i=0.3", None),
            ("[|i=0.3]", None),
            ("[बिंदु|i=0.3]", ("बिंदु", 0.3)),
            ("[x²|i=0.3]", None),
            ("[snake_case|i=0]", ("snake_case", 0.0)),
        ],
    )
    def test_importance(self, line: str, expected: tuple[str, float] | None) -> None:
        assert parse_importance(line) == expected

    @pytest.mark.parametrize(("text", "score"), [("[x|i=9]", 1.0), (f"[x|i={'9' * 400}]", 1.0), ("[x|i=0]", 0.0)])
    def test_a_confidence_is_at_most_one(self, text: str, score: float) -> None:
        assert find_marks(text, "daily").confidence == score

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("# Title\n## Two #", []),
            ("#alpha #beta-gamma, #1. ##x a#b", ["alpha", "beta-gamma", "1", "x"]),
            ("#!/bin/sh", ["!/bin/sh"]),
            ("#... #! ###", []),
            ("#a#b", ["a#b"]),
            ("#a\x1c#b\u3000#c\x0b#d", ["a\x1c#b", "c", "d"]),
            ("#हिंदी! #tag\u2764\ufe0f #café", ["हिंदी", "tag", "café"]),
        ],
    )
    def test_hashtags(self, text: str, expected: list[str]) -> None:
        assert list(iter_hashtags(text)) == expected


class TestRecords:
    def test_one_whole_record(self) -> None:
        text = "# Monday\n\n## Standup [decision|i=0.9]\nWe ship on #friday.\n"
        _, record = upstream_records(
            "memory/2026-01-05.md", text, mtime_ns=NOON_NS + 5_000_000, agent=AGENT, scheme="positional"
        )
        assert dump_line(record).decode() == (
            f'{{"id":"{positional_id("memory/2026-01-05.md", 1)}","agent_id":"{AGENT}",'
            '"content":"## Standup [decision|i=0.9]\\nWe ship on #friday.","memory_type":"episodic",'
            '"source":{"runtime":"openclaw","origin":"workspace","origin_file":"memory/2026-01-05.md",'
            '"extraction_method":"agent_written"},"temporal":{"created_at":"2026-01-05T00:00:00Z",'
            '"updated_at":"2026-03-01T12:00:00.005Z","observed_at":"2026-01-05T00:00:00Z"},"status":"active",'
            '"namespace":"daily","category":"decision","confidence":0.9,"tags":["daily","decision","friday"],'
            '"raw_source_format":{"heading":"Standup [decision|i=0.9]","line_end":4,"line_start":3}}\n'
        )

    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_a_file_without_a_day_has_its_own_time(self, scheme: str) -> None:
        for path, method in (("MEMORY.md", "user_authored"), ("memory/gating-policies.md", "user_authored")):
            [record] = upstream_records(path, "## A\nx", mtime_ns=NOON_NS, agent=AGENT, scheme=scheme)
            assert record["temporal"] == {"created_at": NOON, "updated_at": NOON}
            assert record["source"]["extraction_method"] == method
        [record] = upstream_records("memory/gating_policies.md", "x", mtime_ns=NOON_NS, agent=AGENT, scheme=scheme)
        assert record["source"]["extraction_method"] == "agent_written"

    def test_days_that_do_not_exist_or_are_short(self) -> None:
        for path, scheme, has_day in (
            ("memory/2026-02-30.md", "content", False),
            ("memory/2026-1-5.md", "content", True),
            ("memory/2026-1-5.md", "positional", True),
        ):
            [record] = upstream_records(path, "## A\nx", mtime_ns=NOON_NS, agent=AGENT, scheme=scheme)
            assert ("observed_at" in record["temporal"]) == has_day

    def test_the_same_said_twice_in_a_file(self) -> None:
        first, second, other = upstream_records(
            "MEMORY.md", "## A\nx\n\n## A\nx \n## B\nx", mtime_ns=NOON_NS, agent=AGENT, scheme="content"
        )
        assert first["id"] == content_id(AGENT, "MEMORY.md", "## A\nx", 0)
        assert second["id"] == content_id(AGENT, "MEMORY.md", "## A\nx", 1)
        assert other["id"] == content_id(AGENT, "MEMORY.md", "## B\nx", 0)

    @pytest.mark.slow
    @given(TEXTS, st.sampled_from(SCHEMES), st.sampled_from(["MEMORY.md", "memory/2026-01-05.md", "memory/notes.md"]))
    def test_ids_are_unique_and_bytes_repeat(self, text: str, scheme: str, path: str) -> None:
        records, again = (upstream_records(path, text, mtime_ns=NOON_NS, agent=AGENT, scheme=scheme) for _ in range(2))
        assert len({record["id"] for record in records}) == len(records)
        assert list(map(dump_line, records)) == list(map(dump_line, again))
        for record in records:
            assert list(parse_object(dump_line(record)).items()) == list(record.items())
            assert record["content"].strip(WHITESPACE)
            assert 0 <= (record.get("confidence") or 0) <= 1

    def test_no_record_shares_its_parts_with_another(self) -> None:
        first, second = upstream_records(
            "MEMORY.md", "## A\nx\n## B\ny", mtime_ns=NOON_NS, agent=AGENT, scheme="content"
        )
        first["source"]["runtime"] = first["temporal"]["created_at"] = "changed"
        assert second["source"]["runtime"] == "openclaw"
        assert second["temporal"]["created_at"] == NOON


class TestLines:
    @pytest.mark.parametrize(
        "line",
        [
            '{"a":1.0,"b":1,"c":123456789012345678901234567890,"d":-0.5,"e":1e-05,"f":null,"g":[],"h":{}}',
            '{"é":"\U0001f980\\u0000\\u001f\\"\\\\","a":{"b":[{"c":[1.5]}]}}',
            "{}",
        ],
    )
    def test_what_we_do_not_know_comes_back_as_it_was(self, line: str) -> None:
        assert dump_line(parse_object(line.encode())) == line.encode() + b"\n"

    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            (b"", "is not JSON"),
            (b"{", "is not JSON"),
            (b'{"a":1} x', "is not JSON"),
            (b'{"a":"\x01"}', "is not JSON"),
            (b"[]", "is not a JSON object"),
            (b"1", "is not a JSON object"),
            (b'{"a":1,"b":{"c":1,"c":2}}', "two members named 'c'"),
            (b'{"a":NaN}', "has NaN"),
            (b'{"a":-Infinity}', "has -Infinity"),
            (b'{"a":1e400}', "too large"),
            (b'{"a":' + b"9" * 5000 + b"}", "too many digits"),
            (b'\xef\xbb\xbf{"a":1}', "is not JSON"),
            (b'{"a":"\xff"}', "is not UTF-8 at byte 6"),
            (b'{"a":"\\ud800"}', "half of a surrogate pair"),
            (b'{"a":"\\uDFFFx"}', "half of a surrogate pair"),
            (b'{"a":' * 200 + b"1" + b"}" * 200, "nested too deeply"),
            (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        ],
    )
    def test_what_upstream_cannot_read_we_refuse(self, raw: bytes, words: str) -> None:
        with pytest.raises(ValueError, match=words.replace("(", r"\(")):
            parse_object(raw)

    def test_blanks_around_a_line_and_a_pair_of_surrogates_are_fine(self) -> None:
        assert parse_object(b' {"a":"\\ud83e\\udd80"}\r\n') == {"a": "\U0001f980"}

    def test_the_deepest_that_upstream_takes(self) -> None:
        for depth in (MAX_DEPTH, MAX_DEPTH + 1):
            raw = b'{"a":' * depth + b"1" + b"}" * depth
            if depth == MAX_DEPTH:
                assert dump_line(parse_object(raw)) == raw + b"\n"
                assert json.loads(dump_document(parse_object(raw))) == json.loads(raw)
            else:
                with pytest.raises(ValueError, match="nested too deeply"):
                    parse_object(raw)

    @pytest.mark.slow
    @given(
        st.dictionaries(
            st.text(),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=10,
            ),
        )
    )
    def test_written_and_read_is_the_same(self, record: dict[str, Any]) -> None:
        raw = dump_line(record)
        assert raw.count(b"\n") == 1
        assert parse_object(raw) == record
        assert dump_line(parse_object(raw)) == raw

    def test_not_a_number_is_not_written(self) -> None:
        for write in (dump_line, dump_document):
            with pytest.raises(ValueError, match="Out of range"):
                write({"a": float("nan")})

    def test_documents(self) -> None:
        assert dump_document({"a": [], "b": {"é": 1.0}}) == '{\n  "a": [],\n  "b": {\n    "é": 1.0\n  }\n}'.encode()


def reader(**files: str) -> Callable[[str], str | None]:
    return lambda name: files.get(name.removesuffix(".md"))


def identity(read: Callable[[str], str | None], scheme: str, *, plain: bool = False) -> Any:
    found = identity_of(read, "den", agent=AGENT, scheme=scheme, updated_at=NOON, plain=plain)
    assert found is not None
    return found


def profile(text: str, scheme: str = "content", *, plain: bool = False) -> dict[str, Any]:
    found = principals_of(reader(USER=text), agent=AGENT, scheme=scheme, updated_at=NOON, plain=plain)
    assert found is not None
    structured = found["principals"][0]["profile"]["structured"]
    assert isinstance(structured, dict)
    return structured


class TestPeople:
    @pytest.mark.parametrize(
        ("soul", "about", "positional", "content"),
        [
            ("# Ada\nx", "Name: Bea", "Ada", "Bea"),
            ("text\n\n  # # Ada ", "", "Ada", "den"),
            ("## Ada", "# Bea\r\n- **name:** **Cleo** \r\n", "Bea", "Cleo"),
            ("", "* **NAME**: Dot", "den", "Dot"),
            ("", "- Name:\nname: Eve", "den", "Eve"),
            ("", "Nickname: Fay", "den", "den"),
        ],
    )
    def test_the_agents_name(self, soul: str, about: str, positional: str, content: str) -> None:
        read = reader(SOUL=soul, IDENTITY=about)
        assert agent_name(read, "den", "positional") == positional
        assert agent_name(read, "den", "content") == content

    def test_a_folder_without_a_name(self) -> None:
        assert agent_name(reader(), " ", "content") == "unknown"

    def test_identity(self) -> None:
        read = reader(SOUL=" \n", IDENTITY="who", AGENTS="how")
        found = identity(read, "positional", plain=True)
        assert json.dumps(found["structured"]) == '{"names": {"primary": "Unknown"}}'
        assert json.dumps(found["prose"]) == '{"operating_instructions": "how", "identity_profile": "who"}'
        assert identity(read, "content")["structured"] == {"names": {"primary": "den"}}
        assert identity(read, "content") == identity(read, "content")
        assert identity_of(reader(SOUL=" \n"), "den", agent=AGENT, scheme="content", updated_at=NOON) is None

    def test_sub_agents_by_heading(self) -> None:
        text = (
            "# Rules\n## SubAgent: Code Reviewer\n- **Model:** opus\n- Role: reads every change\n- Tools: git, `rg`\n"
            "- Status: Inactive\n- Use when: a branch is done\n- Be kind.\n"
            "## Sub-agent Tester\nRuns the tests.\n\nTwice.\n"
            "## Subagent rules\nx\n## Sub-agents and us\n- y\n```\n## SubAgent: Fenced\n```\n## SubAgent: tester\n"
        )
        assert find_sub_agents(text) == [
            {
                "agent_id": None,
                "name": "Code Reviewer",
                "capabilities": [{"name": "git"}, {"name": "rg"}],
                "status": "inactive",
                "description": "reads every change",
                "model_hints": {"primary_model": "opus"},
                "routing_hints": "a branch is done",
            },
            {
                "agent_id": None,
                "name": "Tester",
                "capabilities": [],
                "status": "active",
                "description": "Runs the tests.\nTwice.",
            },
        ]

    def test_sub_agents_in_a_list_or_under_headings(self) -> None:
        text = (
            "# Sub Agents\n- Code Assistant\n- **Reviewer:** reads\n- `tester` — runs\n- Never be rude.\ntext\n"
            "## Planner\nModel: small\n## When to ask\nAlways.\n# Other\n- nobody\n"
        )
        assert [(agent["name"], agent.get("description")) for agent in find_sub_agents(text)] == [
            ("Code Assistant", None),
            ("Reviewer", "reads"),
            ("tester", "runs"),
            ("Planner", None),
        ]
        read = reader(AGENTS=text)
        assert len(identity(read, "content")["structured"]["sub_agents"]) == 4
        for scheme in SCHEMES:
            assert list(identity(read, scheme, plain=True)["structured"]) == ["names"]

    def test_the_human(self) -> None:
        text = "# About me\nName: Dana\n\n## Timezone\n- CET\n  Europe/Oslo  \n"
        plain = {"name": "About me", "principal_type": "human", "timezone": "Europe/Oslo"}
        assert profile(text, "positional", plain=True) == plain
        assert profile(text, "content", plain=True) == plain | {"name": "Dana"}
        assert profile("just text", plain=True) == {"name": "User", "principal_type": "human"}
        assert principals_of(reader(USER=" \n"), agent=AGENT, scheme="content", updated_at=NOON) is None
        assert principals_of(reader(), agent=AGENT, scheme="content", updated_at=NOON) is None

    def test_sections_of_a_profile(self) -> None:
        text = (
            "# Dana\n- **Timezone:** UTC\n- Locale: nb-NO\n- Pronouns: _(optional)_\n"
            "## Preferences\n- tone: dry\n- Response_length: short\n- No emoji\n- editor: vim\n\n"
            "## Work\nRole: engineer\n- **Company:** Fjord AS\n- Projects:\n  - harbor\n  - **quay**\n- Site: https://x.io\n"
        )
        assert profile(text) == {
            "name": "Dana",
            "principal_type": "human",
            "timezone": "UTC",
            "locale": "nb-NO",
            "communication_preferences": {"tone": "dry", "response_length": "short"},
            "work_context": {"role": "engineer", "company": "Fjord AS", "projects": ["harbor", "quay"]},
            "custom_fields": {"preferences": ["No emoji", "editor: vim"], "work": ["Site: https://x.io"]},
        }
        assert profile(text, plain=True) == {"name": "Dana", "principal_type": "human"}
        assert profile("## Work\nProjects: a, b\nProjects: c")["work_context"] == {"projects": ["a", "b"]}
        assert profile("## Timezone\n\n- UTC+2")["timezone"] == "UTC+2"
        assert "timezone" not in profile("- **Timezone:** _(optional)_\n## Timezone\n")

    @pytest.mark.slow
    @given(TEXTS)
    def test_any_text_will_do(self, text: str) -> None:
        for scheme in SCHEMES:
            read = reader(SOUL=text, AGENTS=f"## Sub-agents\n{text}", USER=f"## Work\n{text}")
            assert identity(read, scheme)["structured"]["names"]["primary"]
            found = principals_of(read, agent=AGENT, scheme=scheme, updated_at=NOON)
            assert found is not None
            assert dump_document(found) == dump_document(found)


SECRET = "sk-ant-api03-" + "Zq7" * 28
STORE = {
    "version": 1,
    "profiles": {
        "anthropic:default": {"type": "api_key", "provider": "anthropic", "key": SECRET},
        "openai-codex:dana@example.org": {
            "type": "oauth",
            "provider": "openai-codex",
            "access": "access-9f8e7d",
            "refresh": "refresh-1a2b3c",
            "expires": 1_772_366_400_123,
            "email": "dana@example.org",
            "scopes": ["inference", "access-9f8e7d"],
        },
        "github:work": {"type": "token", "provider": "github", "tokenRef": {"source": "env", "id": "work"}},
        "odd:one": {"type": ["?"]},
    },
    "order": {"anthropic": ["anthropic:default"]},
    "lastGood": {"anthropic": "anthropic:default"},
    "usageStats": {"anthropic:default": {"lastUsed": 1}},
}


class TestCredentials:
    def test_metadata_only(self) -> None:
        found = credentials_of(json.dumps(STORE), agent=AGENT, at=NOON)
        keys = "id agent_id service credential_type encrypted_payload encryption created_at label tags"
        assert list(found[0]) == keys.split()
        assert [(one["service"], one["credential_type"], one["label"]) for one in found] == [
            ("anthropic", "api_key", "anthropic:default"),
            ("openai-codex", "oauth_token", "openai-codex:dana@example.org"),
            ("github", "oauth_token", "github:work"),
            ("odd", "custom", "odd:one"),
        ]
        assert found[1]["expires_at"] == "2026-03-01T12:00:00.123Z"
        assert found[1]["capabilities_granted"] == ["inference"]
        assert len({credential["id"] for credential in found}) == 4
        for credential in found:
            assert credential["encrypted_payload"] == "<not-exported>"
            assert credential["encryption"]["algorithm"] == "none"
            assert credential["encryption"]["nonce"]
            assert credential["tags"] == ["openclaw", "metadata-only"]
        told = json.dumps(found)
        for secret in (SECRET, "9f8e7d", "1a2b3c"):
            assert secret not in told

    def test_the_same_file_gives_the_same_records(self) -> None:
        text = json.dumps(STORE)
        assert credentials_of(text, agent=AGENT, at=NOON) == credentials_of(text, agent=AGENT, at=NOON)

    def test_profiles_at_the_top(self) -> None:
        text = json.dumps({"main": {"provider": "openai", "mode": "api_key"}, "order": {"openai": ["main"]}})
        [credential] = credentials_of(text, agent=AGENT, at=NOON)
        assert (credential["service"], credential["credential_type"]) == ("openai", "api_key")

    def test_a_secret_in_the_wrong_place_is_not_told(self) -> None:
        profiles = {
            f"anthropic:{SECRET}": {"provider": "anthropic", "type": "api_key"},
            "x:hunter2!": {"provider": "x", "type": "token", "token": "hunter2!"},
            "y:other": {"provider": SECRET, "key": "k"},
            "z:borrowed-hunter2!": {"provider": "z", "extra": {"deep": [SECRET]}},
            "w:1": {"provider": "correct-horse-battery", "key": "my-correct-horse-battery-staple"},
        }
        found = credentials_of(json.dumps({"profiles": profiles}), agent=AGENT, at=NOON)
        assert [credential["service"] for credential in found] == ["anthropic", "x", "z"]
        assert not any("label" in credential for credential in found)
        assert len({credential["id"] for credential in found}) == 3
        told = json.dumps(found)
        assert SECRET[:20] not in told
        assert "hunter2" not in told

    @pytest.mark.parametrize(
        ("expires", "expected"),
        [
            (1_772_366_400_000, NOON),
            (1_772_366_400_000.5, NOON),
            ("2026-03-01T13:00:00+01:00", NOON),
            (0, None),
            (-1, None),
            (True, None),
            (10**30, None),
            (float("nan"), None),
            (float("inf"), None),
            ("soon", None),
            (None, None),
            ([1], None),
        ],
    )
    def test_expiry(self, expires: object, expected: str | None) -> None:
        text = json.dumps({"profiles": {"a:b": {"provider": "a", "expires": expires}}})
        [credential] = credentials_of(text, agent=AGENT, at=NOON)
        assert credential.get("expires_at") == expected

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "null",
            "[]",
            '"x"',
            '{"profiles":[]}',
            '{"profiles":{"a":1,"b":[],"c":null,"d":{}}}',
            '{"profiles":{"":{"provider":""},"a:b":{"provider":"\\ud800"},"c:d":{"provider":"x\\u001b[2J"}}}',
            '{"profiles":{"a:b":{"provider":"' + "x" * 1000 + '"}}}',
            '{"a":' * 100_000,
            "[" * 100_000 + "]" * 100_000,
            '{"profiles":{"a:b":{"provider":"a","expires":' + "9" * 5000 + "}}}",
            " " * 2_000_000,
        ],
    )
    def test_bad_files_give_nothing(self, text: str) -> None:
        assert credentials_of(text, agent=AGENT, at=NOON) == []

    def test_deep_values_inside_a_profile(self) -> None:
        text = '{"profiles":{"a:b":{"provider":"a","key":' + "[" * 500 + "]" * 500 + "}}}"
        assert len(credentials_of(text, agent=AGENT, at=NOON)) == 1

    def test_a_hostile_file_takes_little_time(self) -> None:
        profiles = {
            f"p{number}:{'n' * 90}": {"provider": "p", "v": [f"{number}-{x}" for x in range(60)]}
            for number in range(100)
        }
        assert credentials_of(json.dumps({"profiles": profiles}), agent=AGENT, at=NOON)

    @pytest.mark.slow
    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
    def test_any_values_will_do(self, value: Any) -> None:
        profile = dict.fromkeys(("provider", "type", "mode", "expires", "scopes", "key", "email"), value)
        for store in ({"profiles": {"a:b": profile}}, {"a": profile}, {"profiles": value}):
            for credential in credentials_of(json.dumps(store), agent=AGENT, at=NOON):
                assert credential["service"]
                assert dump_line(credential)
