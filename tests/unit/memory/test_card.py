"""Cards: names that are safe, filing that keeps what is there, index lines."""

from __future__ import annotations

from datetime import date

import pytest

from tests.support.helpers import a_card
from truekeep.memory.card import (
    check_card_name,
    file_card,
    index_line,
    is_document_path,
    parse_card,
    parse_day,
    same_card,
)

TODAY = date(2026, 11, 15)


def filed(suggested: str, existing: str | None = None, **given: str) -> str:
    return file_card(
        parse_card("x.md", suggested),
        parse_card("x.md", existing) if existing is not None else None,
        title=given.get("title", "The title"),
        day=TODAY,
        existing_day=date(2026, 1, 2),
        repository="github.com/me/app",
        writer="claude",
    ).render()


def test_a_new_card_gets_its_origin() -> None:
    card = parse_card("x.md", filed(a_card()))
    assert (card.created, card.updated) == (TODAY, TODAY)
    assert (card.repository, card.writer) == ("github.com/me/app", "claude")
    assert card.tags == ("proxy", "staging")


def test_an_update_keeps_created_and_unknown_keys() -> None:
    old = a_card(created="2025-03-01", owner="ops", body="old").replace("category: setup\n", "")
    card = parse_card("x.md", filed(a_card(body="new"), old))
    assert (card.created, card.updated) == (date(2025, 3, 1), TODAY)
    assert card.front.text("owner") == "ops"
    assert card.body == "\nnew\n"


@pytest.mark.parametrize("day", ["26.01.2025", "2026-13-45", "spring # or so"])
def test_an_update_keeps_a_day_that_nobody_can_read(day: str) -> None:
    card = filed(a_card(body="new"), a_card(body="old", created=day))
    assert f"\ncreated: {day}\nupdated: {TODAY.isoformat()}\n" in card


def test_a_card_without_created_is_no_younger_than_its_last_update() -> None:
    card = parse_card("x.md", filed(a_card(body="new"), a_card(body="old", updated="2025-02-03")))
    assert (card.created, card.updated) == (date(2025, 2, 3), TODAY)


def test_a_card_cannot_set_its_own_dates_or_origin() -> None:
    card = parse_card(
        "x.md", filed(a_card(created="2099-01-01", updated="2099-01-01", writer="root", repository="evil"))
    )
    assert (card.created, card.updated, card.writer, card.repository) == (TODAY, TODAY, "claude", "github.com/me/app")


def test_a_missing_topic_is_the_title() -> None:
    assert parse_card("x.md", filed("---\ntags: []\n---\nbody\n", title="From: the title")).topic == "From: the title"


def test_what_filing_wrote_counts_as_the_same() -> None:
    suggested = parse_card("x.md", a_card())
    assert same_card(suggested, parse_card("x.md", filed(a_card())))
    assert same_card(suggested, parse_card("x.md", filed(a_card()) + "\n \n"))
    assert not same_card(suggested, parse_card("x.md", filed(a_card(body="  Staging answers on port 8443 only."))))
    assert not same_card(suggested, parse_card("x.md", filed(a_card(body="other"))))
    assert not same_card(parse_card("x.md", a_card(topic="Another")), parse_card("x.md", filed(a_card())))


@pytest.mark.parametrize(
    "name",
    [
        "../x.md",
        "/etc/x.md",
        "a/b.md",
        "..md",
        ".hidden.md",
        "-rf.md",
        "x",
        "x.txt",
        "x.md\n",
        "x\0.md",
        "a b.md",
        "é.md",
        "CON.md",
        "nul.md",
        "Com1.md",
        "lpt9.x.md",
        "x..md",
        "C:\\x.md",
        "",
        ".md",
        "a" * 198 + ".md",
        "x.md.",
        "x.MD",
        "$(x).md",
    ],
)
def test_unsafe_names_are_refused(name: str) -> None:
    assert check_card_name(name)


@pytest.mark.parametrize(
    "name", ["x.md", "a-b_c.d.md", "2026.md", "CONSOLE.md", "a" * 190 + ".md", "..x.md".lstrip(".")]
)
def test_safe_names_pass(name: str) -> None:
    assert check_card_name(name) is None


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("rules/a.md", True),
        ("rules/A_b-1.2.md", True),
        ("rules/.a.md", False),
        ("rules/-a.md", False),
        ("rules/../a.md", False),
        ("rules/a/b.md", False),
        ("rules/con.md", False),
        ("rules/a.md\n", False),
        ("Rules/a.md", False),
        (".learnings/PATTERNS.md", True),
        (".learnings/a/b.md", False),
        ("memory/ops/models.md", True),
        ("memory/research/vectors.md", True),
        ("memory/other/vectors.md", False),
    ],
)
def test_document_paths(path: str, allowed: bool) -> None:
    assert is_document_path(path) is allowed


def test_an_index_line_is_one_line_whatever_the_topic() -> None:
    line = index_line("x.md", "a [b]\n(c) \\ " + "d" * 500)
    assert "\n" not in line
    assert line.startswith("- [a \\[b\\] (c) \\\\ ddd")
    assert line.endswith("…](memory/cards/x.md)")


@pytest.mark.parametrize(("text", "day"), [("2026-02-30", None), ("2026-11-15T10:00Z", TODAY), ("soon", None)])
def test_days(text: str, day: date | None) -> None:
    assert parse_day(text) == day


def test_a_broken_card_is_still_a_card() -> None:
    card = parse_card("my-notes.md", "---\na: &b\n---\nbody")
    assert card.topic == "my notes"
    assert card.problem
    assert "body" in card.body
