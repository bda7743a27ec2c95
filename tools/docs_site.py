"""The documentation site: python -m tools.docs_site, or make site; docs/, README.md and the other pages, in build/site.

Pages stay where they are for readers of the repository. Here they are gathered in one folder with their links
rewritten, built by Zensical, and every link of the result is followed: to its file, and to its place in it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
NAMES: Mapping[str, str] = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "docs/README.md": "documents.md",
    "bench/check/README.md": "bench-check.md",
    "bench/outcome/README.md": "bench-outcome.md",
    "bench/real/README.md": "bench-real.md",
    "bench/truth/README.md": "bench-truth.md",
}
_FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?!#|[a-z]+:)(?P<path>[^)#\s]+)(?P<place>#[^)\s]*)?\)")


def main() -> int:
    if find_spec("zensical") is None:
        print("zensical is not installed: run `make site`, which installs it", file=sys.stderr)
        return 1
    gather_pages()
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        return done.returncode
    broken = list(broken_links(SITE))
    print("\n".join(broken) or f"{SITE.relative_to(ROOT)}: every link leads somewhere")
    return 1 if broken else 0


def gather_pages() -> None:
    """Copy every page into one folder, with links between them; links to other files become plain text."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "images", PAGES / "images")
    for source, name in page_names().items():
        text = (ROOT / source).read_text(encoding="utf-8")
        (PAGES / name).write_text(rewrite_links(text, source), encoding="utf-8")


def page_names() -> dict[str, str]:
    """The page of each document, by its path in the repository."""
    docs = (f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))
    return {source: NAMES.get(source, Path(source).name) for source in (*NAMES, *docs)}


def rewrite_links(text: str, source: str) -> str:
    """The document with the links of its page. Code blocks are unchanged."""
    parts = _FENCE.split(text)
    return "".join(
        part if at % 2 else _LINK.sub(lambda found: _link(found, source), part) for at, part in enumerate(parts)
    )


def _link(found: re.Match[str], source: str) -> str:
    path = os.path.normpath(os.path.join(os.path.dirname(source), found["path"]))
    if path.startswith("docs/images/"):
        return f"[{found['text']}]({path.removeprefix('docs/')})"
    if page := page_names().get(path):
        return f"[{found['text']}]({page}{found['place'] or ''})"
    return found["text"]


class _Anchors(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def broken_links(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere, as `page: link`."""
    pages = {path: _read_anchors(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            folder = site if parts.path.startswith("/") else path.parent  # the page for unknown addresses has these
            target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                yield f"{path.relative_to(site)}: {link}"


def _read_anchors(path: Path) -> _Anchors:
    parser = _Anchors()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
