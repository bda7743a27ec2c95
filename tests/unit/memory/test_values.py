"""Values: what is said outright is found under one name however it is said, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.memory.values import MAX_LINE_CHARS, agree, as_value, find_values, name_of, spelled


def told(text: str, topic: str = "", repository: str = "") -> list[tuple[str, str, str]]:
    return [(item.kind, item.subject, item.value) for item in find_values(text, topic=topic, repository=repository)]


@pytest.mark.parametrize(
    "text",
    [
        "The gateway listens on port 5204.",
        "Gateway port: 5204",
        "- **Gateway port**: 5204",
        "The gateway service is available on port `5204`, behind the proxy.",
        "Because of the proxy, the gateway runs on port 5204",
        "The gateway moved from 5300 to port 5204.",
        "- [decision|i=0.9] The gateway now listens on port 5204",
        "Port 5204: gateway",
        "| Service | Port |\n|---|---|\n| gateway | 5204 |",
        "The gateway answers on `127.0.0.1:5204`.",
    ],
)
def test_one_port_in_many_words(text: str) -> None:
    assert told(text) == [("port", "gateway", "5204")]


@pytest.mark.parametrize(
    ("text", "topic", "repository", "expected"),
    [
        ("- Port: 8080", "Billing service", "", ("port", "billing", "8080")),
        ("Listens on port 8080 in staging.", "Billing", "", ("port", "billing staging", "8080")),
        ("## Staging\n\n- port: 8080", "Billing", "", ("port", "billing staging", "8080")),
        ("The metrics port is 9090.", "Billing", "", ("port", "billing metric", "9090")),
        ("We use Python 3.11", "Tooling", "acme/app", ("version", "python", "3.11")),
        ("The worker requires PostgreSQL 15.", "", "", ("version", "postgres required worker", "15")),
        ("Redis is at version 7.2", "", "", ("version", "redis", "7.2")),
        ("We run billing-worker 2.4.1.", "Deploy notes", "", ("version", "billing worker", "2.4.1")),
        ("`requests==2.31.0` is what we ship", "", "", ("version", "request", "2.31.0")),
        ("The config lives at `/etc/billing.toml`.", "Billing", "", ("path", "billing config", "/etc/billing.toml")),
        ("Deploy script: `scripts/deploy.sh`", "", "", ("path", "deploy script", "scripts/deploy.sh")),
        ("`MAX_WORKERS` defaults to 4", "", "", ("setting", "default max_workers", "4")),
        ("Set `JOBS=4` before the build.", "", "", ("setting", "jobs", "4")),
        ("`--cache` is off", "", "", ("flag", "--cache", "false")),
        ("CI runs `make --jobs 4 all`.", "", "", ("flag", "--jobs make", "4")),
    ],
)
def test_other_kinds(text: str, topic: str, repository: str, expected: tuple[str, str, str]) -> None:
    assert told(text, topic, repository) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "The gateway was on port 5204 until May.",
        "Do not use port 5204.",
        "The gateway no longer listens on port 5204.",
        "The gateway will listen on port 5204 next month.",
        "If the gateway listens on port 5204, stop it.",
        "For example, the gateway listens on port 5204.",
        "See issue 5204 from 2024.",
        "It took 5204 ms on 2024-05-01.",
        "Editing `src/a.py` needs a restart.",
        "Python 3.11 or newer is needed.",
        "Chapter 3.2 explains it.",
        "```\nPORT=5204\n```",
        "<!-- Gateway port: 5204 -->",
        "We met on 12.11 and talked for 30 minutes.",
        "The old config is `/etc/old.toml`.",
        "Does the cart service listen on port 7700?",
        "The coupon service used port 7600.",
    ],
)
def test_what_says_nothing_about_now(text: str) -> None:
    assert told(text) == []


def test_the_span_is_the_value() -> None:
    text = "# Notes\n\nIntro.\n\n- The gateway listens on port 5204.\n- Config file: `/etc/a.toml`\n"
    text += "| S | Port |\n|--|--|\n| x | 81 |\n"
    assert len(find_values(text)) == 3
    for item in find_values(text):
        assert text[item.start : item.end] == item.value
        assert text.count("\n", 0, item.start) + 1 == item.line


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("worker-1 listens on port 7001.", "worker-2 listens on port 7002."),
        ("Redis shard 1 listens on port 6381.", "Redis shard 2 listens on port 6382."),
        ("Jaeger listens on UDP port 6831.", "Jaeger listens on HTTP port 16686."),
        ("`batch_size` is 100 by default.", "`batch_size` is 500 on our machines."),
        ("`max_retries` is 3 for the HTTP client.", "`max_retries` is 10 for the queue worker."),
        ("cron of the exporter: PORT=9100", "PORT=9200 for the importer"),
        ("The tax service requires Java 17.", "The tax service runs on Java 21."),
        (
            "The worker config is `/etc/worker/config.toml`.",
            "On a developer machine, the worker config is `~/.config/worker.toml`.",
        ),
    ],
)
def test_two_things_have_two_names(one: str, other: str) -> None:
    first, second = told(one), told(other)
    assert first
    assert second
    assert {item[:2] for item in first}.isdisjoint(item[:2] for item in second)


def test_a_folder_and_a_file_beside_it_agree() -> None:
    assert agree("path", "docs/README.md", "docs/adr/")
    assert agree("path", "docs", "docs/adr/one.md")
    assert not agree("path", "scripts/deploy.sh", "tools/deploy.sh")
    assert not agree("path", "/etc/a.toml", "/etc/b.toml")
