"""The documentation site: every page is in it, and links that lead nowhere are found. `make site` builds it whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tools.docs_site import ROOT, broken_links, page_names, rewrite_links


def test_every_page_is_in_the_navigation() -> None:
    listed = []
    for part in yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]:
        (entry,) = part.values()
        listed += [entry] if isinstance(entry, str) else [name for page in entry for name in page.values()]
    assert sorted(listed) == sorted(page_names().values())


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[check](docs/check.md#speed)", "[check](check.md#speed)"),
        ("README.md", "![home](docs/images/home.png)", "![home](images/home.png)"),
        ("docs/check.md", "[figures](../bench/check/README.md)", "[figures](bench-check.md)"),
        ("docs/check.md", "[job](../integrations/gitlab/job.yml)", "job"),
        (
            "docs/check.md",
            "[here](#speed) [there](https://example.org/a.md)",
            "[here](#speed) [there](https://example.org/a.md)",
        ),
        ("docs/check.md", "```\n[code](../README.md)\n```", "```\n[code](../README.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(source: str, text: str, expected: str) -> None:
    assert rewrite_links(text, source) == expected


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h2 id="one">One</h2><a href="b.html">b</a><a href="#one">1</a><a href="/b.html">b</a>'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#one">1</a><a href="a.html#two">2</a><img src="c.png">')
    assert list(broken_links(tmp_path)) == ["b.html: a.html#two", "b.html: c.png"]
