"""Splitting a file into cards and joining them again: what moves, what stays, and that no line is ever lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.core.model import INDEX
from truekeep.memory.card import parse_card
from truekeep.memory.card_join import plan_join
from truekeep.memory.card_split import (
    LinesLost,
    SplitOptions,
    SplitPlan,
    UnclosedBlock,
    UnknownHeading,
    check_nothing_lost,
    plan_split,
)
from truekeep.memory.card_summary import summarize
from truekeep.memory.split_reversal import SplitRecord

DAY = date(2026, 11, 1)
FILLER = "The gateway keeps its queue in Redis, and a restart drops whatever was not acknowledged by then.\n"


def a_section(title: str, lines: int = 6, *, level: int = 2) -> str:
    return f"{'#' * level} {title}\n\n" + "".join(f"- Fact {number}. {FILLER}" for number in range(lines)) + "\n"


def split(text: str, path: str = INDEX, **options: object) -> SplitPlan:
    def name_for(topic: str, _: str, taken: Collection[str]) -> str:
        stem = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in topic.lower()).strip("-")
        stem = stem or "card"
        names = [f"{stem}.md", *(f"{stem}-{number}.md" for number in range(2, 200))]
        return next(name for name in names if name not in taken)

    stops = options.pop("stops", {})
    days = options.pop("days", [None] * (text.count("\n") + 1))
    plan = plan_split(
        path,
        text,
        SplitOptions(**options),  # type: ignore[arg-type]
        days=days,  # type: ignore[arg-type]
        file_day=DAY,
        name_for=name_for,
        stops=stops,  # type: ignore[arg-type]
    )
    check_nothing_lost(text, plan)
    return plan


def names(plan: SplitPlan) -> list[str]:
    return [card.name for card in plan.cards]


def reasons(plan: SplitPlan) -> dict[str, str]:
    return {section.title: section.why for section in plan.stays}


# --- What moves ------------------------------------------------------------------------------------------------------


def test_sections_become_cards_and_their_lines_an_index() -> None:
    text = "# Memory\n\n" + a_section("Gateway") + a_section("🗄 Backups")
    plan = split(text)
    assert names(plan) == ["gateway.md", "backups.md"]
    assert plan.rest.startswith("# Memory\n\n## Cards\n\n- [Gateway — Fact 0](memory/cards/gateway.md)\n- [Backups")
    card = parse_card("gateway.md", plan.cards[0].text)
    assert (card.topic, card.category, card.tags) == ("Gateway", "project-context", ())
    assert (card.created, card.updated, card.problem) == (DAY, DAY, "")
    assert card.body.startswith("\n## Gateway\n\n- Fact 0.")


def test_a_long_section_becomes_a_card_for_each_subsection_under_its_heading() -> None:
    text = "# M\n\n" + "## Lessons\n\nWhat went wrong.\n\n" + a_section("Redis loses keys", 25, level=3)
    text += a_section("Setup", 25, level=3) + a_section("About Ada", 2)
    plan = split(text)
    assert [(card.topic, card.tags, card.category) for card in plan.cards] == [
        ("Redis loses keys", ("lessons",), "bugfix"),
        ("Lessons: Setup", ("lessons",), "setup"),
    ]
    above, _, below = plan.rest.partition("- [Redis loses keys")
    assert above == "# M\n\n## Lessons\n\nWhat went wrong.\n\n"
    assert below.index("- [Lessons: Setup") < below.index("\n\n## About Ada\n")


def test_a_long_list_becomes_a_card_for_each_large_item() -> None:
    item = "- **Topic {0}** — the first words.\n" + "".join(f"  - Detail: {FILLER}" for _ in range(8))
    text = "# M\n\n## Resources\n\n" + "".join(item.format(number) for number in range(12)) + "- A short one.\n"
    plan = split(text)
    assert len(plan.cards) == 12
    assert plan.cards[3].topic == "Topic 3"
    assert plan.cards[3].body.startswith("- **Topic 3**")
    assert plan.rest.startswith("# M\n\n## Resources\n\n- [Topic 0 — ")
    assert plan.rest.endswith("- A short one.\n")


def test_what_every_session_needs_stays() -> None:
    text = "".join(
        a_section(title)
        for title in ("About Ada", "Hard rules", "О пользователе", "关于 Ada", "Über mich", "Gateway", "Cards")
    )
    text += "## Short\n\n- One line.\n\n## Pointers\n\n" + "".join(f"- Detail: [{n}](docs/{n}.md)\n" for n in range(9))
    text += "\n## Pushing\n\n- **NEVER** push to main without asking.\n" + FILLER * 3
    plan = split(text)
    assert names(plan) == ["gateway.md"]
    assert reasons(plan) == {
        "About Ada": "who it is about",
        "Hard rules": "standing rules",
        "О пользователе": "who it is about",
        "关于 Ada": "who it is about",
        "Über mich": "who it is about",
        "Cards": "links already",
        "Short": "short",
        "Pointers": "links already",
        "Pushing": "standing rules",
    }


def test_the_size_decides_how_much_moves_the_largest_first() -> None:
    text = "# M\n\n" + a_section("Small", 5) + a_section("Large", 30) + a_section("Middle", 12)
    assert names(split(text, lines=30, size=10_000)) == ["large.md"]
    assert names(split(text, lines=12, size=10_000)) == ["large.md", "middle.md"]
    plan = split(text, lines=100, size=100_000)
    assert names(plan) == []
    assert set(reasons(plan).values()) == {"the file is short enough with it"}


def test_sections_can_be_chosen() -> None:
    text = "# M\n\n" + a_section("Gateway") + a_section("About Ada") + a_section("Backups of the shop")
    assert names(split(text, only=("about ada",))) == ["about-ada.md"]
    assert names(split(text, keep=("backups",))) == ["gateway.md"]
    with pytest.raises(UnknownHeading) as caught:
        split(text, only=("nothing",))
    assert caught.value.headings == ("M", "Gateway", "About Ada", "Backups of the shop")


def test_equal_headings_give_different_topics() -> None:
    text = "# M\n\n" + a_section("Notes") * 2 + "## Shop\n\n" + a_section("Notes", 30, level=3)
    text += a_section("Prices", 30, level=3)
    topics = [card.topic for card in split(text).cards]
    assert topics == ["Notes", "Notes (2)", "Shop: Notes", "Shop: Prices"]


def test_managed_blocks_code_and_comments_stay_whole() -> None:
    text = (
        "# M\n\n" + a_section("Gateway")[:-1] + "```sh\n# not a heading\n## neither\n```\n\n"
        "<!-- \n## hidden\n-->\n\n## Block\n\n<!-- plugin:begin -->\n### Inside\n\n"
        + FILLER * 9
        + "<!-- plugin:end -->\n"
    )
    plan = split(text)
    assert names(plan) == ["gateway.md"]
    assert "## neither" in plan.cards[0].body
    assert "## hidden" in plan.cards[0].body
    assert reasons(plan)["Inside"] == "between markers of a program"


def test_a_stopped_line_holds_its_section_and_not_its_siblings() -> None:
    text = "# M\n\n## Shop\n\n" + a_section("Keys", level=3) + a_section("Prices of it", level=3)
    line = text.split("\n").index("### Keys") + 3
    plan = split(text, stops={line: "looks like a credential"})
    assert names(plan) == ["prices-of-it.md"]
    assert [(section.title, section.why, section.is_held) for section in plan.stays] == [
        ("Keys", "looks like a credential", True)
    ]


def test_the_days_of_a_card() -> None:
    text = "# M\n\n" + a_section("Dated (2026-03-04)") + a_section("Told") + "- Seen 2026-05-06, due 2027-01-01.\n"
    assert [(str(card.created), str(card.updated)) for card in split(text).cards] == [
        ("2026-03-04", "2026-03-04"),
        ("2026-05-06", "2026-05-06"),
    ]
    days = [date(2025, 1, 1 + number) for number in range(text.count("\n") + 1)]
    first = split(text, days=days).cards[0]
    assert (str(first.created), str(first.updated)) == ("2025-01-03", "2025-01-10")


# --- Links -----------------------------------------------------------------------------------------------------------


def test_links_lead_to_the_same_places() -> None:
    text = (
        "# M\n\nSee [the gateway](#gateway) and [docs](docs/a.md).\n\n" + a_section("Gateway")
        + "[a](docs/a.md#x) ![b](<pic 1.png>) [c](https://x.example/y) [d](#backups)"
        + " [e](#about-ada) [f](/abs) `[g](h.md)`\n"
        + "[i](MEMORY.md#gateway) [j](../out.md) [k](memory/cards/old.md)\n\n"
        + a_section("Backups") + "Back to [gateway](#gateway)\n\n" + a_section("About Ada")
    )  # fmt: skip
    plan = split(text)
    assert "See [the gateway](memory/cards/gateway.md#gateway) and [docs](docs/a.md)." in plan.rest
    assert (
        "[a](../../docs/a.md#x) ![b](<../../pic 1.png>) [c](https://x.example/y) [d](backups.md#backups)"
        " [e](../../MEMORY.md#about-ada) [f](/abs) `[g](h.md)`" in plan.cards[0].body
    )
    assert "[i](#gateway) [j](../../../out.md) [k](old.md)" in plan.cards[0].body
    assert "Back to [gateway](gateway.md#gateway)" in plan.cards[1].body
    assert {(item.anchor, item.path) for item in plan.anchors if item.path != INDEX} == {
        ("gateway", "memory/cards/gateway.md"),
        ("backups", "memory/cards/backups.md"),
    }
    joined = plan_join(INDEX, plan.rest, {card.name: card.text for card in plan.cards})
    assert Counter(joined.text.split("\n")) >= Counter(line for line in text.split("\n") if "MEMORY.md#" not in line)


def test_a_document_in_a_folder_links_relatively() -> None:
    text = "# Shop\n\n" + a_section("Prices") + a_section("Stock") + "[a](a.md)\n"
    plan = split(text, path="memory/ops/shop.md")
    assert plan.rest == (
        "# Shop\n\n## Cards\n\n- [Prices — Fact 0](../cards/prices.md)\n- [Stock — Fact 0](../cards/stock.md)\n"
    )
    assert "[a](../ops/a.md)" in plan.cards[1].body
    joined = plan_join("memory/ops/shop.md", plan.rest, {card.name: card.text for card in plan.cards})
    assert joined.text == text


def test_sections_that_share_a_link_definition_or_a_footnote_stay() -> None:
    text = "# M\n\n" + a_section("One") + "See [the page][p].[^1]\n\n" + a_section("Two") + "[p]: https://x.example\n\n"
    text += (
        a_section("Three") + "[^1]: A note.\n\n" + a_section("Four") + "Own [link][own].\n\n[own]: https://y.example\n"
    )
    plan = split(text)
    assert names(plan) == ["four.md"]
    assert reasons(plan)["Two"] == "uses or defines [p] for another section"


@pytest.mark.parametrize("opened", ["```sh", "~~~", "<!-- note"])
def test_a_file_with_an_open_fence_or_comment_is_refused(opened: str) -> None:
    with pytest.raises(UnclosedBlock) as caught:
        split("# M\n\n" + a_section("Gateway") + f"{opened}\nmore\n")
    assert caught.value.line == 12


# --- Bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n"])
def test_line_ends_frontmatter_and_a_missing_last_newline(newline: str, ending: str) -> None:
    text = "---\ntitle: x\n---\n\nPreamble.\n\n" + a_section("Gateway") + a_section("Backups").rstrip() + ending
    text = text.replace("\n", newline)
    plan = split(text)
    assert names(plan) == ["gateway.md", "backups.md"]
    assert plan.rest.startswith(f"---{newline}title: x{newline}---{newline}{newline}Preamble.")
    for card in plan.cards:
        assert card.text.replace("\r\n", "").count("\n") == (0 if newline == "\r\n" else card.text.count("\n"))
        assert text[text.index(card.body) :].startswith(card.body)
    joined = plan_join(INDEX, plan.rest, {card.name: card.text for card in plan.cards})
    assert joined.text.rstrip() == text.rstrip()


def test_a_card_that_was_never_split_becomes_a_section_with_its_topic() -> None:
    head = "# M\n\n## About Ada\n\nAda.\n\n"
    text = head + "## Cards\n\n- [Proxy](memory/cards/proxy.md)\n- [Other](memory/cards/other.md)\n"
    card = "---\ntopic: Proxy\ncreated: 2026-01-01\n---\n\nListens on 8080; see [other](other.md), [d](../../d.md).\n"
    joined = plan_join(INDEX, text, {"proxy.md": card})
    assert joined.text == (
        f"{head}## Proxy\n\nListens on 8080; see [other](memory/cards/other.md), [d](d.md).\n\n"
        "## Cards\n\n- [Other](memory/cards/other.md)\n"
    )


_WORDS = st.text(alphabet="abc äя字`*[]()#|<>-_. ", max_size=40)
_LINES = st.one_of(
    _WORDS,
    _WORDS.map(lambda words: f"- {words}"),
    _WORDS.map(lambda words: f"- **{words}** — {FILLER[:-1]}"),
    st.sampled_from(
        ["", "", "```", "~~~", "<!-- x:begin -->", "<!-- x:end -->", "<!--", "-->", "---", "| a | b |", "|---|---|",
         "[a](docs/a.md)", "[b](#gateway)", "[[old]]", "- [c](memory/cards/c.md)", "[d]: e.md", "> quoted", "    code",
         FILLER[:-1], FILLER[:-1], "  - nested"]
    ),
    st.builds(
        lambda level, title: f"{'#' * level} {title}",
        st.integers(1, 4),
        st.sampled_from(["Gateway", "Backups", "Notes", "About Ada", "Rules", "Оплата", "设置", "Setup"]),
    ),
)  # fmt: skip


_DOCUMENTS = st.builds(
    lambda lines, newline, is_ended: newline.join(lines) + (newline if is_ended else ""),
    st.lists(_LINES, max_size=60),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


@given(text=_DOCUMENTS, size=st.sampled_from([0, 10]))
@settings(max_examples=400)
def test_no_line_is_lost_and_a_join_gives_them_all_back(text: str, size: int) -> None:
    try:
        plan = split(text, lines=size, size=size * 50)
    except UnclosedBlock:
        return
    assert _bare(text) <= _bare("\n".join([plan.rest, *(card.body for card in plan.cards)]))
    if not plan.cards:
        assert plan.rest == text
        return
    joined = plan_join(INDEX, plan.rest, texts(plan))
    assert _bare(joined.text) == _bare(text)


@given(text=_DOCUMENTS, path=st.sampled_from([INDEX, "memory/ops/shop.md"]), data=st.data())
@settings(max_examples=400)
def test_a_join_gives_the_bytes_back_in_any_order(text: str, path: str, data: st.DataObject) -> None:
    try:
        plan = split(text, path=path)
    except UnclosedBlock:
        return
    cards, after, records = texts(plan), plan.rest, [record_of(text, plan)]
    order = data.draw(st.permutations(sorted(cards)))
    while order:
        count = data.draw(st.integers(1, len(order)))
        after = plan_join(path, after, {name: cards[name] for name in order[:count]}, records).text
        order = order[count:]
    assert after == text


@given(text=_DOCUMENTS, edits=st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=4), data=st.data())
@settings(max_examples=300)
def test_what_was_edited_since_a_split_is_kept_by_a_join(
    text: str, edits: list[tuple[int, bool]], data: st.DataObject
) -> None:
    try:
        plan = split(text)
    except UnclosedBlock:
        return
    if not plan.cards:
        return
    cards = texts(plan)
    lines = plan.rest.splitlines(keepends=True)
    for number, (at, is_new) in enumerate(edits):
        if is_new:
            lines.insert(min(at, len(lines)), f"Added by hand, {number}.\n")
        elif lines:
            lines[at % len(lines)] = lines[at % len(lines)].rstrip() + f" (edited {number})\n"
    name = data.draw(st.sampled_from(sorted(cards)))
    cards[name] = cards[name].rstrip("\n") + "\nA line more on the card.\n"
    edited = "".join(lines)
    try:
        after = plan_join(INDEX, edited, cards, [record_of(text, plan)]).text
    except UnclosedBlock:
        return
    gone = re.compile("|".join(re.escape(f"(memory/cards/{name})") for name in cards))
    kept = "".join(line for line in edited.splitlines(keepends=True) if not gone.search(line))
    lost = _bare(kept) - _bare(after)
    assert set(lost) <= {"## Cards"}
    assert _bare("".join(card.body for card in plan.cards[:1])) <= _bare(after)
    assert "A line more on the card." in after


def texts(plan: SplitPlan) -> dict[str, str]:
    return {card.name: card.text for card in plan.cards}


def record_of(text: str, plan: SplitPlan) -> SplitRecord:
    return SplitRecord(text, plan.rest, texts(plan))


def test_a_section_goes_back_between_its_siblings_and_takes_no_links_along() -> None:
    text = "# M\n\n" + a_section("Alpha") + "## Lessons\n\nWhat went wrong.\n\n"
    text += "".join(a_section(f"Lesson {number}", 25, level=3) for number in range(4)) + a_section("Omega")
    plan = split(text)
    cards = texts(plan)
    for records in ([record_of(text, plan)], []):
        after = plan_join(INDEX, plan.rest, {"lesson-1.md": cards["lesson-1.md"]}, records).text
        headings = [line for line in after.splitlines() if line.startswith("#")]
        assert headings == ["# M", "## Lessons", "### Lesson 1", "## Cards"]
        assert after.index("(memory/cards/lesson-3.md)") < after.index("### Lesson 1")
        again = split(after, only=("Lesson 1",))
        assert "memory/cards" not in again.cards[0].body
    after = plan_join(INDEX, plan.rest, {"omega.md": cards["omega.md"]}, [record_of(text, plan)]).text
    after = plan_join(INDEX, after, {"alpha.md": cards["alpha.md"]}, [record_of(text, plan)]).text
    assert after.index("## Alpha") < after.index("## Lessons") < after.index("## Omega")
    assert "## Cards" not in after


def test_a_card_that_someone_added_to_the_list_keeps_the_list() -> None:
    text = "# M\n\n" + a_section("Alpha") + a_section("About Ada")
    plan = split(text)
    edited = plan.rest + "- [New](memory/cards/new.md)\n"
    after = plan_join(INDEX, edited, texts(plan), [record_of(text, plan)]).text
    assert after == text + "\n## Cards\n\n- [New](memory/cards/new.md)\n"


def _bare(text: str) -> Counter[str]:
    """The lines of a text without their links' targets; empty ones do not count."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return Counter(re.split(r"\]\(|\]:", line)[0].rstrip() for line in lines if line.strip())


def test_the_check_refuses_a_plan_that_loses_changes_or_repeats_a_line() -> None:
    text = "# M\n\n" + a_section("Gateway") + a_section("About Ada")
    plan = split(text)
    (card,) = plan.cards
    bad = [
        plan._replace(rest=plan.rest.replace("- Fact 2.", "- Fact two.", 1)),
        plan._replace(rest=plan.rest.replace("## About Ada\n", "", 1)),
        plan._replace(cards=()),
        plan._replace(cards=(card._replace(text=card.text.replace("Fact 3", "Fact 4")),)),
        plan._replace(cards=(card._replace(body=card.body + "more\n", text=card.text + "more\n"),)),
        plan._replace(cards=(card, card)),
    ]
    for plan in bad:
        with pytest.raises(LinesLost):
            check_nothing_lost(text, plan)


# --- Summaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("## T\n\nThe gateway drops keys. It is known.\n", "The gateway drops keys"),
        ("## T\n\n- **Redis** — a\n- **Postgres** — b\n", "Redis, Postgres"),
        ("## T\n\n- **Problem:** the screen is blue\n- **Fix:** none\n", "Problem: the screen is blue"),
        ("## T\n\n### One thing\n\nx\n\n### Another\n\ny\n", "One thing, Another"),
        ("## T\n\n| Name | Age |\n|---|---|\n| Redis | 3 |\n| Kafka | 4 |\n", "Redis, Kafka"),
        (
            "## T\n\n> What belongs here.\n\n- **2026-01-01**: the first entry of it\n",
            "2026-01-01: the first entry of it",
        ),
        ("## T\n\n```\ncode only\n```\n", ""),
        ("## T\n\nFor now:\n- the longer of the items here\n", "the longer of the items here"),
    ],
)
def test_a_summary_is_in_the_words_of_the_section(body: str, summary: str) -> None:
    assert summarize(body, 80, "T") == summary
