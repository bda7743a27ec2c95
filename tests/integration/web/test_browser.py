"""The site in a real Chromium: each page and each act, by mouse, by keys alone, and without JavaScript.

One memory and one server for all of it; every test takes drafts and cards of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, Route, expect

from tests.support.helpers import PATIENCE, Place, a_handoff
from tests.support.programs import need
from tests.support.site_memory import SAID, card_text, lived_in, surroundings
from tests.support.website import Server, Window, chromium, served, window

expect.set_options(timeout=1_000 * PATIENCE)
PHONE = {"width": 360, "height": 740}
CARD = "/memory/file/memory/cards/"
COLOURED = ("today", "draft", "card", "search", "history")  # between them, every colour
ALIKE = ("all", "nothing", "why")  # pages that are as another one is


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def env(base: Path) -> Iterator[Mapping[str, str]]:
    need("chromium")
    with surroundings(base / "home") as found:
        yield found


@pytest.fixture(scope="module")
def shop(base: Path, env: Mapping[str, str]) -> Place:
    return lived_in(base / "ada")


@pytest.fixture(scope="module")
def server(shop: Place, env: Mapping[str, str]) -> Iterator[Server]:
    with served(shop.workspace, env) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Window]:
    with window(browser, server) as found:
        yield found
        found.check()


@pytest.fixture
def bare(browser: Browser, server: Server) -> Iterator[Window]:
    """A browser without JavaScript."""
    with window(browser, server, java_script_enabled=False) as found:
        yield found
        found.check()


def add_draft(shop: Place, name: str, body: str = "It is so, and nobody knows why.", **keys: str) -> str:
    """One more draft that waits: a card is to be changed that is not there."""
    content = card_text(f"About {name}", body)
    given = {"title": f"About {name}", "action": "update-card", "card": f"{name}.md", "content": content, **keys}
    shop.leave(a_handoff(**given), f"2026-11-14-0900-{name}.md", inbox=shop.repo / ".claude/memory-handoffs")
    with shop.open() as workspace:
        workspace.handoffs.ingest()
        (found,) = [draft.id for draft in workspace.review.drafts() if draft.id.startswith(f"{name}-")]
    return found


def add_card(shop: Place, name: str, body: str, **keys: str) -> Path:
    path = shop.workspace / "memory" / "cards" / f"{name}.md"
    dates = {"created": "2026-01-01", "updated": "2026-01-01"}
    path.write_text(card_text(f"About {name}", body, **dates, **keys))
    return path


def draft_ids(shop: Place) -> list[str]:
    with shop.open() as workspace:
        return [draft.id for draft in workspace.review.drafts()]


def awake(page: Page) -> None:
    """Wait until the page would take a decision."""
    while True:
        try:
            if page.evaluate("performance.now()") > 450:
                return
        except Error:  # another page has just come
            page.wait_for_load_state()
        page.wait_for_timeout(50)


def wait_for(page: Page, is_so: Callable[[], object]) -> None:
    """Let the page go on until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < end:
        page.wait_for_timeout(50)


def leap(page: Page, *keys: str) -> None:
    """Keys of which the last leads to another page; not at once, since a page that has just come decides nothing."""
    awake(page)
    with page.expect_navigation():
        for key in keys:
            page.keyboard.press(key)


# Every page, looked at.


def paths_of(shop: Place) -> dict[str, str]:
    with shop.open() as workspace, workspace.sessions.transcripts() as archive:
        draft = next(draft.id for draft in workspace.review.drafts() if draft.id.startswith("proxy"))
        merge = next(draft.id for draft in workspace.review.drafts() if draft.id.startswith("merge"))
        entry = next(entry.id for entry, _ in workspace.history.entries() if entry.verb == "promoted")
        session = max(archive.sessions(), key=lambda kept: kept.total).name
    return {
        "today": "/",
        "review": "/review",
        "draft": f"/review/{draft}",
        "merge": f"/review/{merge}",
        "edit": f"/review/{draft}/edit",
        "several": f"/review/-/several?draft={draft}",
        "memory": "/memory",
        "all": "/memory?store=all",
        "card": f"{CARD}staging-proxy.md",
        "lines": f"{CARD}staging-proxy.md?view=lines",
        "why": f"{CARD}staging-proxy.md?why=1",
        "drop": "/memory/drop/memory/cards/staging-proxy.md",
        "search": "/search?q=payment+provider&explain=1",
        "nothing": "/search",
        "history": "/history",
        "entry": f"/history/{entry}",
        "undo": f"/history/{entry}/undo",
        "transcripts": "/transcripts",
        "session": f"/transcripts/{session}",
        "handoff": f"/transcripts/{session}/handoff?turn=2",
        "missing": "/nowhere",
    }


def test_axe_finds_nothing_serious(server: Server, browser: Browser, shop: Place) -> None:
    """All its rules in the light, and contrast in the dark as well."""
    axe = Axe()
    found = []
    with window(browser, server) as opened:
        for name, path in paths_of(shop).items():
            if name in ALIKE:
                continue
            page = opened.go(path)
            page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true })")
            for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]}))[: 1 + (name in COLOURED)]:
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of its words
                options = {"preload": False, "resultTypes": ["violations"], **rules}
                for problem in axe.run(page, options=options).response["violations"]:
                    if problem["impact"] in ("serious", "critical"):
                        found += [(name, scheme, problem["id"], node["html"][:200]) for node in problem["nodes"][:3]]
        opened.check(refused=(404,))
    assert found == []


def test_no_page_is_wider_than_a_phone(server: Server, browser: Browser, shop: Place) -> None:
    wide = {}
    with window(browser, server, viewport=PHONE, has_touch=True) as opened:
        for name, path in paths_of(shop).items():
            page = opened.go(path)
            more = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if more > 1:
                wide[name] = more
            assert page.evaluate("(nav => nav.scrollWidth - nav.clientWidth)(document.querySelector('nav'))") <= 1, name
            small = page.eval_on_selector_all(
                "button, .button, nav a",
                "all => all.filter(one => one.offsetHeight && one.offsetHeight < 24).map(one => one.innerText)",
            )
            assert small == [], name
        opened.check(refused=(404,))
    assert wide == {}


def test_headings_go_in_order_and_every_field_has_a_name(opened: Window, shop: Place) -> None:
    for name, path in paths_of(shop).items():
        if name == "missing":
            continue
        page = opened.go(path)
        levels = page.eval_on_selector_all("main :is(h1,h2,h3,h4,h5,h6)", "all => all.map(one => +one.tagName[1])")
        assert levels[:1] == [1], name
        assert levels.count(1) == 1, name
        assert all(after - before <= 1 for before, after in pairwise(levels)), (name, levels)
        unnamed = page.eval_on_selector_all(
            "main :is(input:not([type=hidden]), select, textarea)",
            "all => all.filter(one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)",
        )
        assert unnamed == [], name
        assert page.title().endswith("· truekeep")


# By keys alone.


def test_a_review_by_keys_alone(opened: Window, shop: Place) -> None:
    """Edit and approve, another target, a reason, back and forth, and take the last one back."""
    one, two, three = (add_draft(shop, name) for name in ("aa-keys", "bb-keys", "cc-keys"))
    page = opened.page
    leap(page, "g", "r")
    expect(page.locator("h1")).to_have_text("Review")
    opened.go(f"/review/{one}")
    leap(page, "e")
    page.keyboard.press("Control+End")
    page.keyboard.type("\n- Typed by hand: ä <b>")
    leap(page, "Escape", "a")
    expect(page.locator(".told")).to_contain_text(one)
    written = shop.card("aa-keys.md")
    assert "- Typed by hand: ä <b>" in written
    assert "\r" not in written

    opened.go(f"/review/{two}")
    page.keyboard.press("t")
    page.keyboard.type("memory/cards/bb-elsewhere.md")
    leap(page, "Enter")
    expect(page.locator("body")).to_contain_text("bb-elsewhere.md is new")
    leap(page, "a")
    expect(page.locator(".told")).to_contain_text("bb-elsewhere.md")
    assert "bb-elsewhere.md" in shop.cards()
    assert "bb-keys.md" not in shop.cards()

    opened.go(f"/review/{three}")
    page.keyboard.press("X")
    page.keyboard.type("not true any more")
    leap(page, "Enter")
    expect(page.locator(".told")).to_contain_text("Rejected")
    assert three not in draft_ids(shop)
    leap(page, "z")
    expect(page.locator("main")).to_contain_text("not true any more")
    leap(page, "z")
    leap(page, "y")
    expect(page.locator("main")).to_contain_text("ndo")
    assert three in draft_ids(shop)


def test_next_and_previous_and_the_queue_by_keys(opened: Window, shop: Place) -> None:
    page = opened.go("/review")
    leap(page, "o")
    first = opened.path
    leap(page, "n")
    second = opened.path
    assert first != second
    leap(page, "p")
    assert opened.path == first
    leap(page, "u")
    assert opened.path.startswith("/review")
    leap(page, "j", "j", "Enter")
    assert opened.path == second
    before = draft_ids(shop)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("a")  # behind the dialog nothing is decided
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    assert draft_ids(shop) == before


def test_a_key_that_is_held_down_decides_once(opened: Window, shop: Place) -> None:
    wanted = add_draft(shop, "dd-held")
    page = opened.go(f"/review/{wanted}")
    before = draft_ids(shop)
    awake(page)
    page.keyboard.down("a")
    for _ in range(20):
        page.keyboard.down("a")  # the repeats of the keyboard
        page.wait_for_timeout(60)
    page.keyboard.up("a")
    page.wait_for_load_state()
    assert set(before) - set(draft_ids(shop)) == {wanted}


def test_every_page_is_reached_by_keys_and_tab_shows_where_one_is(opened: Window) -> None:
    page = opened.page
    for key, heading in {"t": "Today", "m": "Memory", "s": "Search", "h": "History", "c": "Transcripts"}.items():
        leap(page, "g", key)
        expect(page.locator("h1")).to_contain_text(heading)
        if key == "s":
            page.keyboard.press("Escape")  # out of the field that waits for a question
    page = opened.go("/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_a_card_by_keys(opened: Window, shop: Place) -> None:
    add_card(shop, "ee-keys", "The lamp in the hall is broken.")
    page = opened.go(f"{CARD}ee-keys.md")
    leap(page, "c")
    expect(page.locator(".told")).to_contain_text("confirmed")
    leap(page, "v")
    expect(page.locator("table.source")).to_be_visible()
    leap(page, "v")
    leap(page, "d")
    page.keyboard.type("it was mended")
    leap(page, "Enter")
    expect(page.locator(".told")).to_contain_text("dropped")
    assert "ee-keys.md" not in shop.cards()
    leap(page, "z")
    leap(page, "y")
    assert "ee-keys.md" in shop.cards()


# Without JavaScript.


def test_a_review_without_javascript(bare: Window, shop: Place) -> None:
    one, two, three = (add_draft(shop, name) for name in ("ff-bare", "gg-bare", "hh-bare"))
    page = bare.go("/review")
    page.get_by_role("link", name="About ff-bare").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("The handoff").fill(page.get_by_label("The handoff").input_value().replace("nobody", "somebody"))
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator(".told")).to_contain_text(one)
    assert "somebody knows why" in shop.card("ff-bare.md")
    bare.go(f"/review/{two}")
    page.locator("#target").fill("memory/cards/gg-other.md")
    page.locator("form.target button, form:has(#target) button").click()
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator(".told")).to_contain_text("gg-other.md")
    bare.go(f"/review/{three}")
    page.get_by_role("button", name=re.compile("^Reject")).click()
    assert three not in draft_ids(shop)
    page.locator(".told a").click()
    page.get_by_role("link", name=re.compile("^Undo")).click()
    page.get_by_role("button", name=re.compile("^Undo entry")).click()
    assert three in draft_ids(shop)


def test_several_at_once_without_javascript(bare: Window, shop: Place) -> None:
    wanted = [add_draft(shop, name) for name in ("ii-several", "jj-several")]
    page = bare.go("/review")
    for draft in wanted:
        page.locator(f'input[value="{draft}"]').check()
    page.get_by_role("button", name="Approve the chosen ones").click()
    expect(page.locator("main")).to_contain_text(wanted[0])
    assert set(wanted) <= set(draft_ids(shop))  # only asked so far
    page.get_by_role("button", name=re.compile("^Approve")).click()
    assert not set(wanted) & set(draft_ids(shop))
    assert {"ii-several.md", "jj-several.md"} <= set(shop.cards())


def test_several_are_rejected_without_javascript(bare: Window, shop: Place) -> None:
    wanted = [add_draft(shop, name) for name in ("kk-several", "ll-several")]
    page = bare.go("/review")
    for draft in wanted:
        page.locator(f'input[value="{draft}"]').check()
    page.get_by_role("button", name="Reject the chosen ones").click()
    page.get_by_label("Why they are rejected").fill("never true")
    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.locator("h1")).to_contain_text("2 of 2 rejected")
    assert not set(wanted) & set(draft_ids(shop))


def test_a_merge_is_approved_and_taken_back_without_javascript(bare: Window, shop: Place) -> None:
    (merge,) = [draft for draft in draft_ids(shop) if draft.startswith("merge-")]
    page = bare.go(f"/review/{merge}")
    expect(page.locator("main")).to_contain_text("sqlite-network-drives.md goes")
    page.get_by_role("button", name=re.compile("^Approve")).click()
    assert "sqlite-network-drives.md" not in shop.cards()
    assert "The backup job runs on the NAS" in shop.card("sqlite-nfs.md")
    page.locator(".told a").click()
    page.get_by_role("link", name=re.compile("^Undo")).click()
    page.get_by_role("button", name=re.compile("^Undo entry")).click()
    assert "sqlite-network-drives.md" in shop.cards()


def test_memory_without_javascript(bare: Window, shop: Place) -> None:
    page = bare.go("/memory")
    page.get_by_role("link", name="Why payments are retried three times").click()
    expect(page.locator("mark.moved").first).to_be_visible()
    assert "renamed to src/shop/payment/checkout.py" in (page.locator("mark.moved").nth(1).get_attribute("title") or "")
    page.get_by_role("button", name="Repair it").click()
    if page.get_by_role("button", name="Repair it").count():  # several edits are shown before
        page.get_by_role("button", name="Repair it").click()
    assert "`src/shop/payment/checkout.py`" in shop.card("payment-retries.md")
    expect(page.locator("mark.moved")).to_have_count(0)
    page.get_by_role("button", name="It still holds").click()
    expect(page.locator(".told")).to_contain_text("confirmed")
    page.get_by_role("link", name="Drop it").click()
    page.get_by_label("Why").fill("a test")
    page.get_by_role("button", name="Drop it").click()
    assert "payment-retries.md" not in shop.cards()
    page.get_by_role("link", name=re.compile("^Undo")).click()
    page.get_by_role("button", name=re.compile("^Undo entry")).click()
    assert "payment-retries.md" in shop.cards()


def test_search_without_javascript_leads_to_the_lines(bare: Window) -> None:
    page = bare.go("/search")
    page.locator("#q").fill("whom to ask about tax")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Whom to ask about what").first.click()
    assert re.search(r"\?line=[\d-]+#L\d+$", page.url)
    expect(page.locator("tr.wanted").first).to_be_visible()
    expect(page.locator("table.source")).to_contain_text("Edsger")


def test_history_without_javascript(bare: Window, shop: Place) -> None:
    page = bare.go("/history")
    page.get_by_label("Machine").select_option("laptop")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("main")).to_contain_text("hotel-wifi.md")
    expect(page.locator("main [data-row]")).to_have_count(2)


def test_a_handoff_from_a_transcript_without_javascript(bare: Window, shop: Place) -> None:
    page = bare.go("/transcripts")
    page.get_by_role("link", name=SAID[0][2][0]).click()
    expect(page.locator(".turn").nth(1)).to_contain_text("31 seconds")
    page.locator("input[name=turn][value='4']").check()
    page.get_by_role("button", name=re.compile("^Make a handoff")).click()
    page.get_by_label("Title").fill("The provider is slow above sixty lines")
    page.get_by_label("Summary").fill("Large orders time out unless their lines are sent in two parts.")
    page.get_by_label("Durable facts").fill("- The provider answers fast below sixty lines")
    page.get_by_label("Card", exact=True).fill("provider-lines.md")
    page.get_by_label("the card is there").uncheck()
    page.get_by_role("button", name="Judge it").click()
    expect(page.locator("main")).to_contain_text("provider-lines.md")
    page.get_by_role("button", name="Leave it for ingest").click()
    expect(page.locator(".told")).to_contain_text("left as")
    with shop.open() as workspace:
        workspace.handoffs.ingest()
    assert "provider-lines.md" in shop.cards()
    assert "fast below sixty lines" in shop.card("provider-lines.md")


# With JavaScript.


def test_search_as_one_types(opened: Window) -> None:
    page = opened.go("/search")
    page.locator("#q").press_sequentially("pictures widths", delay=15)
    expect(page.locator("#results li").first).to_contain_text("Pictures come in four widths")
    assert "q=pictures+widths" in page.url  # and can be kept as a link
    page.locator("#explain").check()
    expect(page.locator("#results dl").first).to_contain_text("score")
    page.locator("#q").fill("")
    expect(page.locator("#results li")).to_have_count(0)
    assert len([url for url in opened.asked if "fragment=1" in url]) < 10  # not one for each letter


def test_an_answer_that_comes_late_does_not_replace_a_newer_one(opened: Window) -> None:
    page = opened.go("/search")
    held = []

    def hold(route: object) -> None:
        held.append(route)

    page.route(re.compile("q=pictures.*fragment=1"), hold)
    page.locator("#q").fill("pictures")
    wait_for(page, lambda: held)
    page.locator("#q").fill("releases on Fridays")
    expect(page.locator("#results li").first).to_contain_text("No releases on Fridays")
    assert held
    held[0].continue_()  # type: ignore[attr-defined]
    page.wait_for_timeout(400)
    expect(page.locator("#results li").first).to_contain_text("No releases on Fridays")


def test_news_come_to_an_open_page(opened: Window, shop: Place) -> None:
    path = add_card(shop, "kk-news", "Old words.")
    page = opened.go(f"{CARD}kk-news.md")
    expect(page.locator("#changed")).to_be_hidden()
    page.wait_for_timeout(300)
    with path.open("r+") as file:  # in place, as some editors write
        file.seek(0, 2)
        file.write("\nNew words.\n")
    expect(page.locator("#changed")).to_be_visible()
    page.locator("#changed a").click()
    expect(page.locator(".prose")).to_contain_text("New words.")
    expect(page.locator("#changed")).to_be_hidden()


def test_news_do_not_take_away_what_somebody_types(opened: Window, shop: Place) -> None:
    wanted = add_draft(shop, "ll-typing")
    page = opened.go(f"/review/{wanted}/edit")
    page.locator("#text").press_sequentially("MINE ")
    add_card(shop, "ll-other", "Something else.")
    expect(page.locator("#changed")).to_be_visible()
    assert page.locator("#text").input_value().startswith("MINE ")


def test_many_tabs_are_open_at_once(opened: Window) -> None:
    """A browser gives a host six connections: a page that holds one for itself keeps the seventh tab waiting."""
    tabs = [opened.context.new_page() for _ in range(9)]
    for tab in tabs:
        tab.goto(f"{opened.server.url}/history")
        tab.wait_for_timeout(100)
    expect(tabs[-1].locator("h1")).to_have_text("History")
    opened.strangers.clear()  # they are ours


def test_news_come_to_a_page_of_an_odd_name(opened: Window) -> None:
    page = opened.go("/memory/file/%ff")
    expect(page.locator("h1")).to_have_text("That did not work")
    opened.check(refused=(404,))
    opened.said.clear()


def test_a_site_that_has_ended_is_told(browser: Browser, shop: Place, env: Mapping[str, str]) -> None:
    with served(shop.workspace, env) as server, window(browser, server) as opened:
        page = opened.go("/search")
        expect(page.locator("#away")).to_be_hidden()
        server.stop()
        expect(page.locator("#away")).to_be_visible()
        page.locator("#q").fill("releases")
        expect(page.locator("#results")).to_contain_text("This was not answered")


def test_a_button_that_is_clicked_twice_acts_once(opened: Window, shop: Place) -> None:
    add_card(shop, "nn-twice", "Once is enough.")
    page = opened.go(f"{CARD}nn-twice.md")
    held: list[Route] = []
    page.route("**/memory/confirm/**", lambda route: held.append(route))
    clicks = "for (const at of [50, 350]) setTimeout(() => document.querySelector('button[data-key=c]').click(), at)"
    page.evaluate(clicks)
    wait_for(page, lambda: held)
    page.wait_for_timeout(800)
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator(".told")).to_contain_text("confirmed")


def test_who_leaves_what_they_typed_is_asked(opened: Window, shop: Place) -> None:
    wanted = add_draft(shop, "oo-leaving")
    page = opened.go(f"/review/{wanted}/edit")
    awake(page)
    page.keyboard.press("Escape")
    leap(page, "u")  # nothing was typed: nobody is asked
    assert opened.path == f"/review/{wanted}"
    leap(page, "e")
    page.locator("#text").press_sequentially("MINE ")
    awake(page)
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    wait_for(page, lambda: opened.dialogs)
    assert opened.dialogs == [""]  # a browser says it in its own words; the window said no
    opened.dialogs.clear()
    assert page.locator("#text").input_value().startswith("MINE ")
    leap(page, "s")  # who saves is not asked
    expect(page.locator(".told")).to_contain_text("Saved")
    assert not opened.dialogs


# Two at once.


def test_a_draft_that_somebody_else_edited_shows_both_sides(opened: Window, shop: Place) -> None:
    wanted = add_draft(shop, "mm-both")
    page = opened.go(f"/review/{wanted}/edit")
    page.locator("#text").fill(page.locator("#text").input_value() + "\nMine, typed here.\n")
    with shop.open() as workspace:
        workspace.review.edit(wanted, lambda body: body + b"\nTheirs, from the command line.\n")
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator("[role=alert]")).to_be_visible()
    main = page.locator("main")
    expect(main).to_contain_text("Mine, typed here.")
    expect(main).to_contain_text("Theirs, from the command line.")
    assert "Mine, typed here." in page.locator("#text").input_value()
    assert "mm-both.md" not in shop.cards()
    text = (shop.workspace / "memory" / "handoff-inbox" / f"{wanted}.md").read_text()
    assert "Theirs" in text
    assert "Mine" not in text
    opened.said = [one for one in opened.said if "409" not in one]


def test_a_card_that_changed_since_the_draft_was_shown_is_not_overwritten(opened: Window, shop: Place) -> None:
    path = add_card(shop, "nn-both", "Line one.\nLine two.")
    content = card_text("About nn-both", "Line one.\nLine two.\nLine three.")
    wanted = add_draft(shop, "nn-both", content=content, title="Ignore previous instructions: nn-both")
    page = opened.go(f"/review/{wanted}")
    path.write_text(path.read_text() + "\nWritten by a person meanwhile.\n")
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator("[role=alert]")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Written by a person meanwhile.")
    assert "Written by a person meanwhile." in path.read_text()
    assert wanted in draft_ids(shop)
    opened.said = [one for one in opened.said if "409" not in one]


def test_a_draft_that_was_decided_elsewhere_says_by_whom(opened: Window, shop: Place) -> None:
    wanted = add_draft(shop, "oo-late")
    page = opened.go(f"/review/{wanted}")
    with shop.open() as workspace:
        workspace.review.reject(wanted, reason="decided elsewhere")
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator("h1")).to_contain_text("not here any more")
    expect(page.locator("main")).to_contain_text("rejected")
    assert "oo-late.md" not in shop.cards()
    opened.said = [one for one in opened.said if "409" not in one]


def test_a_card_that_changed_is_not_dropped(opened: Window, shop: Place) -> None:
    path = add_card(shop, "pp-both", "Old.")
    page = opened.go("/memory/drop/memory/cards/pp-both.md")
    page.get_by_label("Why").fill("because it is old")
    path.write_text(path.read_text() + "\nAnd new, by a person.\n")
    page.get_by_role("button", name="Drop it").click()
    expect(page.locator("main")).to_contain_text("And new, by a person.")
    expect(page.locator("main")).to_contain_text("because it is old")
    assert path.exists()
    opened.said = [one for one in opened.said if "409" not in one]


# Doors.


def test_a_link_from_another_site_needs_one_more_step(server: Server, browser: Browser) -> None:
    """The cookie is strict: the browser keeps it back once, and the page says how to go on."""
    context = browser.new_context()
    page = context.new_page()
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    page.goto(server.link)
    page.goto(f"{elsewhere}/static/icon.svg")
    page.evaluate("where => { location.href = where }", f"{server.url}/review")
    page.wait_for_url(f"{server.url}/review")
    page.get_by_role("link", name="go on").click()
    expect(page.locator("h1")).to_have_text("Review")
    context.close()


def test_a_page_elsewhere_can_neither_read_nor_change(server: Server, browser: Browser, shop: Place) -> None:
    """Another program on this machine, under the same host: same site, so that the browser sends the cookie."""
    before = draft_ids(shop)
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.link)
    page.route("http://127.0.0.1:9/", lambda route: route.fulfill(body="<title>x</title>", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")
    read = """async (url) => {
      const seen = [];
      for (const [path, options] of [["/review", {credentials: "include"}], ["/news", {credentials: "include"}],
          ["/review/x", {credentials: "include", method: "POST", body: new URLSearchParams({do: "approve"})}],
          ["/review", {credentials: "include", mode: "no-cors"}]]) {
        try {
          const answer = await fetch(url + path, options);
          seen.push(`${answer.type} ${(await answer.text()).length}`);
        }
        catch { seen.push("refused"); }
      }
      return seen;
    }"""
    assert set(page.evaluate(read, server.url)) <= {"refused", "opaque 0"}
    page.set_content(
        f'<form method=post action="{server.url}/review/{before[0]}"><input name=do value=approve><button>'
    )
    page.click("button")
    expect(page.locator("body")).to_contain_text("not an origin that is served here")
    assert draft_ids(shop) == before
    context.close()


def test_a_site_for_looking_on_a_phone(browser: Browser, shop: Place, env: Mapping[str, str]) -> None:
    with served(shop.workspace, env, "--read-only") as server, window(browser, server, viewport=PHONE) as opened:
        for name, path in paths_of(shop).items():
            page = opened.go(path)
            expect(page.locator(".badge", has_text="read only").first).to_be_visible()
            assert page.locator("form[method=post i]").count() == 0, name
        opened.check(refused=(404,))
