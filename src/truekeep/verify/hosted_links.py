"""Links to a file of a repository on a git host: `https://github.com/owner/name/blob/main/src/app.py#L10`.

Where that repository has a checkout here, the link is a claim about the file. A link to a commit or a release shows
what was there then, and is no claim about now.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import unquote

from truekeep.verify.claim import Claim

_LINK = re.compile(
    r"https?://(?:www\.)?(?:"
    r"(?P<host>github\.com|gitlab\.com|codeberg\.org|bitbucket\.org|[\w.-]*(?:git|code)[\w.-]*\.\w+)"
    r"/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/(?:-/)?(?:blob|tree|raw|edit|blame|src)(?:/branch)?"
    r"|raw\.githubusercontent\.com/(?P<raw>[\w.-]+/[\w.-]+))"
    r"/(?P<ref>main|master|trunk|develop|dev|HEAD|default)/(?P<path>[^\s?#<>()`|]+)(?:\?[^\s#]*)?"
    r"(?:#(?:L|lines-)(?P<first>\d{1,7})(?:-L?(?P<last>\d{1,7}))?)?"
)


HOSTED = "a link to a git host"
_MIN_HERE, _SHARE_HERE = 2, 0.6


class HostedFile(NamedTuple):
    """The repository of a link, and the claim about its file."""

    repository: str  # host/owner/name, in small letters
    claim: Claim


def read_hosted_link(claim: Claim) -> HostedFile | None:
    """The file that a link names on a branch; None for every other link."""
    match = _LINK.match(claim.name) if claim.kind == "url" else None
    if match is None:
        return None
    path = unquote(match["path"]).rstrip("/")
    at, end = match.span("path")
    first = int(match["first"] or 0)
    last = max(first, int(match["last"] or 0))
    about = claim._replace(
        kind="line" if first else "directory" if "/tree/" in match[0] or match["path"].endswith("/") else "path",
        text=match["path"].rstrip("/"),
        start=claim.start + at,
        end=claim.start + end - (len(match["path"]) - len(match["path"].rstrip("/"))),
        column=claim.column + at,
        name=path,
        place=path if first else "",
        first=first,
        last=last,
        why=HOSTED,
    )
    return HostedFile(_name_of(match), about)


def hosted_in(texts: Iterable[str], is_here: Callable[[str], bool]) -> frozenset[str]:
    """The repositories whose files texts link to and that this checkout is of: most of these files are here."""
    paths: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        if "://" in text:
            for match in _LINK.finditer(text):
                paths[_name_of(match)].add(_path_of(match))
    here = {name: sum(map(is_here, some)) for name, some in paths.items()}
    return frozenset(
        name for name, some in paths.items() if here[name] >= _MIN_HERE and here[name] >= len(some) * _SHARE_HERE
    )


def _name_of(link: re.Match[str]) -> str:
    name = f"github.com/{link['raw']}" if link["raw"] else f"{link['host']}/{link['name']}"
    return name.lower()


def _path_of(link: re.Match[str]) -> str:
    return unquote(link["path"]).rstrip(".,;:!/")
