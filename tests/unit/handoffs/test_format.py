"""Handoffs as text: untidy ones are read, unclear ones are named, nothing is cut off or guessed."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.helpers import a_card, a_handoff
from truekeep.handoffs.format import SECTIONS, handoff_name, parse_handoff, parse_name, render_handoff, slugify
from truekeep.text.encoding import decode_text


def codes(text: str) -> set[str]:
    return {finding.code for finding in parse_handoff(text).findings}


def test_a_plain_handoff() -> None:
    handoff = parse_handoff(a_handoff())
    assert (handoff.type, handoff.action, handoff.target_card) == ("setup", "create-card", "staging-proxy.md")
    assert handoff.title == "Staging sits behind a proxy"
    assert handoff.card_content == a_card().strip()
    assert handoff.findings == ()


@pytest.mark.parametrize(
    "change",
    [
        ("## Type", "## TYPE"),
        ("## Title", "##   Title   "),
        ("## Target card", "## Target card:"),
        ("## Summary", "## Summary ##"),
        ("## Summary", "## **Summary**"),
        ("staging-proxy.md", "`staging-proxy.md`"),
        ("staging-proxy.md", "- staging-proxy.md"),
        ("staging-proxy.md", "<!-- card-name-if-known.md -->\nstaging-proxy.md"),
        ("create-card\n", "Create-Card\n"),
        ("create-card\n", "`create-card`.\n".replace(".", "")),
        ("create-card\n", "<!-- one of three -->\n\ncreate-card\n"),
        ("# Memory Handoff\n", "<!-- filled in by codex -->\n# Memory Handoff\n"),
    ],
)
def test_untidy_handoffs_are_read_alike(change: tuple[str, str]) -> None:
    plain, untidy = parse_handoff(a_handoff()), parse_handoff(a_handoff().replace(*change))
    for name in ("type", "title", "summary", "action", "target_card", "card_content"):
        assert getattr(plain, name) == getattr(untidy, name)
    assert untidy.findings == ()


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_bom_and_newlines_do_not_matter(raw: bytes, newline: str) -> None:
    text = decode_text(raw + a_handoff().replace("\n", newline).encode())
    assert text == a_handoff()


@pytest.mark.parametrize("raw", [b"a\0b", b"\xff\xfe#\0", b"\xc0\xaf", b"caf\xe9", b"\xed\xa0\x80"])
def test_what_is_not_text_is_not_decoded(raw: bytes) -> None:
    assert decode_text(raw) is None


@pytest.mark.parametrize("marks", ["```", "````", "~~~", "```markdown", "~~~~ md"])
def test_one_outer_fence_is_taken_off(marks: str) -> None:
    fence = marks.split("m")[0].strip()
    handoff = parse_handoff(a_handoff(content=f"{marks}\n{a_card()}{fence}\n"))
    assert handoff.card_content == a_card().strip()
    assert handoff.findings == ()


def test_a_card_may_hold_headings_of_its_own() -> None:
    content = a_card(body="## Ports\n\n8443\n\n## Owners\n\nops")
    assert parse_handoff(a_handoff(content=content)).card_content == content.strip()


def test_a_known_heading_inside_a_fence_is_text() -> None:
    content = a_card(body="```\n## Title\n## Evidence\n```")
    handoff = parse_handoff(a_handoff(content=content))
    assert handoff.card_content == content.strip()
    assert handoff.findings == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (a_handoff() + "\n## Title\nAnother\n", "section-twice"),
        (a_handoff(content=a_card(body="## Summary\n\nof the card")), "section-twice"),
        (a_handoff().replace("## Evidence\n", "") + "\n## Evidence\n- x\n", "unclear-section"),
        (a_handoff(content=a_card(body="```\nnever closed")), "open-fence"),
        (a_handoff(content=a_card(body="<!-- never closed")), "open-fence"),
        ("# Notes\n\nnothing here\n", "not-a-handoff"),
        ("", "not-a-handoff"),
        (a_handoff().replace("# Memory Handoff", "# Memory Handoff\n\nSome text here."), "outside-text"),
    ],
)
def test_what_is_unclear_is_named(text: str, code: str) -> None:
    assert code in codes(text)


def test_a_section_behind_fenced_content_is_clear() -> None:
    text = a_handoff(content=f"````\n{a_card()}````\n").replace("## Evidence\n", "") + "\n## Evidence\n- x\n"
    assert codes(text) == set()


def test_comments_in_the_content_are_kept_and_those_before_it_are_not() -> None:
    content = a_card(body="<!-- mine -->\ntext\n<!-- mine too -->")
    handoff = parse_handoff(a_handoff(content=f"<!-- exact content here -->\n\n{content}"))
    assert handoff.card_content == content.strip()


@pytest.mark.parametrize("blank", ["", "N/A", "none", "-", "<!-- TOOLS.md | USER.md -->", "—"])
def test_blank_sections_of_the_other_route_do_not_count(blank: str) -> None:
    text = a_handoff() + f"\n## Target document\n{blank}\n\n## Suggested document content\n{blank}\n"
    handoff = parse_handoff(text)
    assert (handoff.target_document, handoff.document_content, handoff.findings) == ("", "", ())


def test_a_target_of_several_lines_is_not_cut_to_its_first() -> None:
    assert "\n" in parse_handoff(a_handoff(card="a.md\n../../b.md")).target_card


def test_findings_name_their_line() -> None:
    text = a_handoff() + "\n## Title\nAnother\n"
    findings = parse_handoff(text).findings
    assert {text.split("\n")[(finding.line or 0) - 1] for finding in findings} == {"## Title"}


LINE = st.from_regex(r"[A-Za-z][A-Za-z0-9 .,()/-]{0,30}[a-z]", fullmatch=True)


@pytest.mark.slow
@given(
    title=LINE,
    summary=LINE,
    facts=st.lists(LINE, max_size=3),
    body=st.lists(
        st.one_of(LINE, st.sampled_from(["", *(f"## {name}" for name in SECTIONS), "```", "## Own heading"])),
        max_size=6,
    ).map("\n".join),
)
@settings(max_examples=300, deadline=None)
def test_render_then_parse_is_identity(title: str, summary: str, facts: list[str], body: str) -> None:
    body += "\n```" * (sum(line == "```" for line in body.split("\n")) % 2)
    content = f"---\ntopic: {title}\n---\n\n{body}".strip()
    text = render_handoff(
        type="setup",
        title=title,
        summary=summary,
        facts=facts,
        action="create-card",
        target_card="a.md",
        card_content=content,
    )
    handoff = parse_handoff(text)
    assert (handoff.title, handoff.summary, handoff.target_card) == (" ".join(title.split()), summary, "a.md")
    assert handoff.card_content == content
    assert handoff.findings == ()


@pytest.mark.slow
@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_handoff(text)


@pytest.mark.parametrize(
    ("name", "written", "slug"),
    [
        ("2026-04-20-1537-gstack-dual-setup.md", datetime(2026, 4, 20, 15, 37), "gstack-dual-setup"),  # noqa: DTZ001
        ("2026-13-45-1537-x.md", None, "2026-13-45-1537-x"),
        ("notes.md", None, "notes"),
    ],
)
def test_names(name: str, written: datetime | None, slug: str) -> None:
    assert parse_name(name) == (written, slug)


def test_made_names_are_parsed_back() -> None:
    at = datetime(2026, 4, 20, 15, 37)  # noqa: DTZ001
    assert parse_name(handoff_name("Größe: the Port/Proxy?", at))[0] == at
    assert slugify("../../etc/passwd") == "etc-passwd"
    assert handoff_name("日本語", at) == "2026-04-20-1537-handoff.md"
