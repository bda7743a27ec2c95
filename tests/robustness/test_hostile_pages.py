"""Hostile memory in a real browser: nothing of it runs, loads, or becomes a part of the page."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser

from tests.support.helpers import Place
from tests.support.hostile import BEACON, BLOCKS, LINES, LINKS, LONG, NAMES, RESULT, SUM, poison
from tests.support.site_memory import surroundings
from tests.support.website import Server, Window, chromium, served, window
from truekeep.interfaces.web.charts import Series, bars, lines
from truekeep.interfaces.web.markdown import ClaimMark, render_markdown

PAGES = ("/", "/review", "/memory", "/search", "/history", "/transcripts")
MOST = 5  # addresses of one shape that are looked at
MARKUP = {
    "p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "pre",
    "code",
    "hr", "br", "a", "span", "mark", "h2", "h3", "h4", "h5", "h6",
}  # fmt: skip
HOUSE = MARKUP | {
    "html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "footer", "dialog", "form",
    "button", "input", "select", "option", "textarea", "label", "section", "article", "aside", "div", "dl", "dt", "dd",
    "kbd", "h1", "figure", "figcaption", "svg", "rect", "line", "polyline", "text", "details", "summary", "time", "ins",
    "del", "caption", "datalist", "small", "fieldset", "legend", "optgroup", "colgroup", "col", "tfoot", "b", "i", "q",
    "cite", "circle", "g", "path", "desc", "tspan", "abbr", "output", "search", "progress", "meter", "menu", "sup",
    "pattern",
}  # fmt: skip

LOOK = """() => {
  const wrong = [], ids = new Set();
  const hidden = /[\\u0000-\\u0008\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff\\u061c\\u{e0000}-\\u{e007f}]/u;
  for (const node of document.querySelectorAll("*")) {
    const tag = node.tagName.toLowerCase();
    if (!HOUSE.includes(tag)) wrong.push(`<${tag}>`);
    for (const {name, value} of node.attributes) {
      if (name.startsWith("on") || ["style", "srcdoc", "formaction", "http-equiv", "srcset", "ping", "background",
          "xlink:href"].includes(name))
        wrong.push(`${tag} ${name}=${value.slice(0, 60)}`);
      if (hidden.test(value) && !(tag === "input" && name === "value") && !(tag === "option" && name === "value"))
        wrong.push(`${tag} ${name} holds what cannot be seen`);
    }
    const src = node.getAttribute("src");
    if (src !== null && !/^\\/static\\/\\w+\\.js$/.test(src)) wrong.push(`${tag} src=${src.slice(0, 60)}`);
    if (tag === "script" && (src === null || node.textContent)) wrong.push("a script of its own");
    if (tag === "link" && !/^\\/static\\/\\w+\\.(css|svg)$/.test(node.getAttribute("href"))) wrong.push("a link");
    if (tag === "form" && new URL(node.action, location).origin !== location.origin) wrong.push(`form ${node.action}`);
    if (tag === "a") {
      const href = node.getAttribute("href");
      if (href !== null && href !== "") {
        const target = new URL(href, location);
        const isOut = target.origin !== location.origin;
        if (!["http:", "https:"].includes(target.protocol)) wrong.push(`a href=${href.slice(0, 60)}`);
        if (isOut && !/noopener/.test(node.rel)) wrong.push(`a to ${target.origin} without rel`);
        if (isOut && !/^https?:\\/\\//.test(href)) wrong.push(`a href=${href.slice(0, 60)} leads out`);
      }
    }
    if (node.id && ids.has(node.id)) wrong.push(`id ${node.id} twice`);
    ids.add(node.id);
  }
  if (hidden.test(document.body.innerText)) wrong.push("text that cannot be seen");
  if (hidden.test(document.title)) wrong.push("a title that cannot be seen");
  if (window.pwned !== undefined) wrong.push("something ran");
  return {
    wrong: [...new Set(wrong)],
    text: document.documentElement.textContent,
    links: [...document.querySelectorAll("a[href]")].map((node) => node.getAttribute("href")),
  };
}""".replace("HOUSE", json.dumps(sorted(HOUSE)))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[Server]:
    with surroundings(base / "home") as env:
        poison(Place.make(base))
        with served(base / "workspace", env) as running:
            yield running


@pytest.fixture(scope="module")
def browser(base: Path) -> Iterator[Browser]:
    with chromium(f"--log-net-log={base / 'net.json'}") as running:
        yield running
    # The browser's own record of the network, names that it only looked up among them.
    noted = (base / "net.json").read_text(errors="replace")
    assert BEACON not in noted.replace(quote(BEACON), "")


def shape(path: str) -> str:
    """What kind of page an address is for."""
    parts = urlsplit(path)
    keys = sorted({pair.partition("=")[0] for pair in parts.query.split("&") if pair})
    first, *rest = parts.path.strip("/").split("/")
    return "/".join([first, *(["…"] * bool(rest)), *keys])


def looked_at(opened: Window, path: str) -> dict[str, Any]:
    """Open a page, and see that it is all ours."""
    answer = opened.page.goto(opened.server.url + path)
    assert answer is not None
    assert answer.status in (200, 404, 410), (answer.status, path)
    found: dict[str, Any] = opened.page.evaluate(LOOK)
    assert found["wrong"] == [], path
    assert RESULT not in found["text"], path
    return found


def test_every_page_that_links_lead_to_is_harmless(server: Server, browser: Browser) -> None:
    """Walk through the whole site as a browser shows it, and look at everything that it did."""
    with window(browser, server) as opened:
        waiting = [*PAGES, "/memory?store=all", "/memory?store=all&page=2", "/memory?store=all&page=3"]
        waiting += [f"/memory/file/memory/cards/{quote(name)}" for name in NAMES]
        waiting += [f"/memory/file/memory/cards/block-{name}.md" for name, _ in BLOCKS]
        waiting += [f"/memory/file/memory/cards/{name}.md" for name in ("links", "broken", "nul", "empty", "front")]
        seen, shapes, said = set(waiting), Counter(map(shape, waiting)), ""
        while waiting:
            path = waiting.pop(0)
            found = looked_at(opened, path)
            said += found["text"]
            for href in found["links"]:
                if not href.startswith(("/", "?")):
                    continue
                there = urljoin(path, href).partition("#")[0]
                if there not in seen and shapes[shape(there)] < MOST:
                    seen.add(there)
                    shapes[shape(there)] += 1
                    waiting.append(there)
        opened.check(refused=(404, 410))
        assert len(seen) > 80
        assert {"review", "review/…", "memory", "memory/…", "history", "history/…"} <= set(shapes)
        assert {"transcripts", "transcripts/…"} <= set(shapes)
    # What was meant to run is there to be read instead.
    for line in (SUM, "<script>window.pwned=1;alert(1)", "</main></body></html>", "&lt;script&gt;", "\\u202e"):
        assert line in said, line


@pytest.mark.parametrize("words", [" ".join(LINES[:10]), " ".join(LINES[10:-1]), LONG, LINES[5]], ids=range(4))
def test_what_is_typed_is_shown_and_nothing_else(server: Server, words: str) -> None:
    """The parts of an address, given back by pages: as text."""
    queries = [
        ("/search", "q"), ("/search", "store"), ("/search", "repository"), ("/search", "verdict"), ("/search", "age"),
        ("/memory", "q"), ("/memory", "store"), ("/memory", "tag"), ("/memory", "repository"), ("/memory", "sort"),
        ("/memory", "page"), ("/history", "path"), ("/history", "writer"), ("/history", "machine"),
        ("/history", "verb"),
        ("/history", "before"), ("/review", "reason"), ("/review", "writer"), ("/review", "repository"),
        ("/transcripts", "q"), ("/transcripts", "harness"), ("/transcripts", "cited"), ("/", "told"), ("/", "day"),
        ("/memory/file/memory/cards/links.md", "line"), ("/memory/file/memory/cards/links.md", "view"),
    ]  # fmt: skip
    with server.visitor() as client:
        for path, name in queries:
            answer = client.get(f"{path}?{urlencode({name: words})}")
            assert answer.status_code in (200, 400, 404), (path, name)
            assert elements(answer.text) <= HOUSE, (path, name)
            assert RESULT not in answer.text
        for path in ("/review/", "/memory/file/", "/history/", "/transcripts/", "/memory/drop/", "/"):
            answer = client.get(path + quote(words, safe=""))
            assert answer.status_code in (200, 400, 404), path
            assert elements(answer.text) <= HOUSE, path
            assert RESULT not in answer.text


def test_search_as_you_type_puts_in_text_only(server: Server, browser: Browser) -> None:
    with window(browser, server) as opened:
        page = opened.go("/search")
        box = page.locator("input[type=search]").first
        for words in ("script alert", "<img src=x onerror=alert(1)>", SUM, "javascript:", '" onmouseover='):
            with page.expect_response(lambda answer: "fragment=1" in answer.url):
                box.fill(words)
            page.wait_for_timeout(100)
            assert page.evaluate(LOOK)["wrong"] == []
        opened.check()


def test_a_word_without_end_does_not_widen_the_page(server: Server, browser: Browser) -> None:
    with window(browser, server, viewport={"width": 360, "height": 740}) as opened:
        number = LINES.index(LONG)
        paths = [*PAGES, "/memory?store=all", f"/memory/file/memory/cards/line-{number}.md", f"/review/laid-{number}"]
        paths += [f"/memory/file/memory/cards/{quote(NAMES[-1])}", "/memory/file/memory/cards/block-table.md"]
        paths += [f"/search?q={LONG[:200]}", f"/memory/file/memory/cards/line-{number}.md?view=lines"]
        for path in paths:
            page = opened.go(path)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 1, path
        opened.check(refused=(404,))


def test_where_links_of_memory_lead(server: Server, browser: Browser) -> None:
    with window(browser, server) as opened:
        page = opened.go("/memory/file/memory/cards/links.md")
        found = page.eval_on_selector_all(".prose a", "nodes => nodes.map(node => node.getAttribute('href'))")
        assert {href for href in found if not href.startswith("http://")} == set()
        assert {urlsplit(href).hostname for href in found} <= {"ok.invalid", BEACON}
        assert not any("@" in urlsplit(href).netloc for href in found)
        shown = page.inner_text(".prose")
        assert "[picture: picture, http://beacon.invalid/p.png]" in shown
        opened.check()


# Without a browser: everything that markup and plots make.


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        self.found.add("<!--")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html":
            self.found.add("<!")

    def unknown_decl(self, data: str) -> None:
        self.found.add("<![")

    def handle_pi(self, data: str) -> None:
        self.found.add("<?")


def parsed(text: str) -> Elements:
    reader = Elements()
    reader.feed(text)
    reader.close()
    return reader


def elements(text: str) -> set[str]:
    return parsed(text).found


def is_harmless(text: str) -> None:
    found = parsed(text)
    assert found.found <= MARKUP
    allowed = {("a", "href"), ("a", "rel"), ("span", "class"), ("a", "title")}
    allowed |= {("mark", name) for name in ("class", "tabindex", "title", "aria-describedby")}
    assert found.attributes <= allowed
    for target in found.targets:
        assert re.match(r"https?://[^/@\\]+|/memory/file/[^/]", target), target


@pytest.mark.parametrize("text", [*LINES, LINKS, *(text for _, text in BLOCKS)], ids=lambda text: repr(text[:12]))
def test_markup_of_the_corpus_is_a_few_plain_tags(text: str) -> None:
    is_harmless(render_markdown(text, path="memory/cards/x.md"))
    marks = [ClaimMark(1, text[:30], '" onclick="x', f"<b>{text[:50]}", '"><i>')]
    is_harmless(render_markdown(text, marks=marks, path="../../x"))


PIECES = st.sampled_from(
    [
        *LINES[:-1],
        *LINKS.split(" "),
        "[",
        "](",
        ")",
        "<",
        ">",
        '"',
        "'",
        "&",
        "`",
        "```\n",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "|",
    ]
)


@settings(max_examples=300, deadline=None)
@given(text=st.lists(PIECES | st.text(max_size=12), max_size=25).map("".join), note=st.text(max_size=30))
def test_markup_of_any_text_is_a_few_plain_tags(text: str, note: str) -> None:
    marks = [ClaimMark(1, text[2:9], note, text[:80], note)]
    is_harmless(render_markdown(text, marks=marks, path=note))


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="abc `*_[]()<>#>-|\n!&;\\", max_size=60))
def test_markup_loses_no_word(text: str) -> None:
    words = re.findall(r"[abc]+", text)
    shown = html.unescape(re.sub(r"<[^>]*>", " ", render_markdown(text)))
    hidden = re.findall(r"\]\([^)]*\)|\[[^\]]*\]:.*", text)  # where links lead, and what references name
    for word in words:
        assert word in shown or any(word in one for one in hidden)


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_plots_of_hostile_names_are_plots(line: str) -> None:
    for plot in (bars, lines):
        made = plot(line, [line, "b", line], [Series(line, [1, 2, 3]), Series(line, [0, 0, 1], "two")], unit=line[:9])
        found = parsed(made)
        assert found.found <= HOUSE
        assert not {name for _, name in found.attributes if name.startswith("on") or name == "style"}
        assert found.targets == []
