"""Values: what is said outright is found under one name however it is said, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.phrases import golden_sentences
from truekeep.memory.values import MAX_LINE_CHARS, agree, as_value, find_values, name_of, spelled


def stated(text: str, topic: str = "", repository: str = "") -> list[tuple[str, str, str]]:
    return [(item.kind, item.subject, item.value) for item in find_values(text, topic=topic, repository=repository)]


GOLDEN = golden_sentences("values")


def test_golden_texts() -> None:
    wrong = []
    for case in GOLDEN["text"]:
        found = stated(case["text"], case.get("topic", ""), case.get("repository", ""))
        if found != [tuple(value) for value in case["values"]]:
            wrong.append((case, found))
    assert wrong == []


def test_golden_texts_that_state_nothing_about_now() -> None:
    assert [text for text in GOLDEN["none"]["texts"] if stated(text)] == []


def test_the_span_is_the_value() -> None:
    text = "# Notes\n\nIntro.\n\n- The gateway listens on port 5204.\n- Config file: `/etc/a.toml`\n"
    text += "| S | Port |\n|--|--|\n| x | 81 |\n"
    assert len(find_values(text)) == 3
    for item in find_values(text):
        assert text[item.start : item.end] == item.value
        assert text.count("\n", 0, item.start) + 1 == item.line


@pytest.mark.slow
@given(st.text(alphabet=st.sampled_from("gateway port:=5204 `/.-|\n#x"), max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_spans_that_are_there(text: str) -> None:
    for item in find_values(text, topic="a thing"):
        assert text[item.start : item.end]
        assert item.subject
        assert text.count("\n", 0, item.start) + 1 == item.line


def test_a_hostile_line_is_read_in_no_time() -> None:
    """Pieces of patterns, very often: the part of a line that is looked at is bounded."""
    for piece in ("port 80 is ", "`a` is `", "x/", "--a=1 ", "is at version 1.", "A=", "| port "):
        assert isinstance(find_values(piece * (1_000_000 // len(piece))), list)
    assert MAX_LINE_CHARS < 10_000


@pytest.mark.parametrize(
    ("entity", "key", "sentence"),
    [
        ("gateway", "port", "The gateway listens on port 1."),
        ("billing service", "port", "Billing port: 1"),
        ("worker", "postgres version", "The worker runs on Postgres 15."),
    ],
)
def test_a_fact_is_named_as_a_sentence_names_it(entity: str, key: str, sentence: str) -> None:
    (value,) = find_values(sentence.replace(" 1", " 11"))
    assert name_of(entity, key) == (value.kind, value.subject)


@pytest.mark.parametrize(
    ("kind", "one", "other", "expected"),
    [
        ("version", "3.11", "3.11.4", True),
        ("version", "v3.11", "3.11", True),
        ("version", "3.11", "3.1", False),
        ("path", "/etc/gateway", "/etc/gateway/config.toml", True),
        ("path", "out/log.md", "/home/ada/shop/out/log.md", True),
        ("path", "out/log.md", "out/other.md", False),
        ("path", "sales/2026-11-02.csv", "sales/2026-11-09.csv", True),
        ("path", "sales/2026-11-02.csv", "stock/2026-11-09.csv", True),
        ("path", "/etc/gateway/", "/etc/gateway", True),
        ("path", "/etc/gateway.toml", "/etc/gateway", False),
        ("setting", "30s", "30 seconds", True),
        ("setting", "30s", "30 ms", False),
        ("setting", "on", "true", True),
        ("port", "80", "8080", False),
    ],
)
def test_values_that_are_said_more_or_less_exactly_agree(kind: str, one: str, other: str, expected: bool) -> None:
    assert agree(kind, one, other) is agree(kind, other, one) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("`fast_path` is off.", "true", "`fast_path` is on."),
        ("`fast_path` is disabled for now.", "true", "`fast_path` is enabled for now."),
        ("FAST_PATH=True", "false", "FAST_PATH=False"),
        ('MODE="quick" holds.', "slow", 'MODE="slow" holds.'),
        ("The gateway listens on port 80.", "81", "The gateway listens on port 81."),
    ],
)
def test_a_value_is_written_as_the_one_that_stood_there(text: str, value: str, expected: str) -> None:
    (item,) = find_values(text)
    old = text[item.start : item.end]
    assert as_value(old) == item.value
    assert text[: item.start] + spelled(value, old) + text[item.end :] == expected


def test_two_things_have_two_names() -> None:
    def are_apart(one: str, other: str) -> bool:
        first, second = ({item[:2] for item in stated(text)} for text in (one, other))
        return bool(first) and bool(second) and first.isdisjoint(second)

    assert [pair for pair in GOLDEN["two_things"]["pairs"] if not are_apart(*pair)] == []


def test_a_folder_and_a_file_beside_it_agree() -> None:
    assert agree("path", "docs/README.md", "docs/adr/")
    assert agree("path", "docs", "docs/adr/one.md")
    assert not agree("path", "scripts/deploy.sh", "tools/deploy.sh")
    assert not agree("path", "/etc/a.toml", "/etc/b.toml")
