"""Which documents are checked: named ones, or those of a repository that usually speak about its code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from truekeep.check.settings import CheckSettings
from truekeep.core.errors import BadInput
from truekeep.core.git import Git
from truekeep.memory.ignore_rules import IgnoreRules, is_ignored, parse_ignore_rules

ENDINGS = (".md", ".mdx", ".mdc", ".markdown", ".rst")
DEFAULT_INCLUDE = """
AGENTS.md
AGENT.md
CLAUDE.md
GEMINI.md
SKILL.md
.cursor/rules/
.windsurf/rules/
.clinerules/
.claude/
.agents/
.github/*.md
.github/instructions/
/[A-Z][A-Z]*.md
README*
CONTRIBUTING*
DEVELOPMENT*
DEVELOPING*
HACKING*
ARCHITECTURE*
BUILDING*
TESTING*
docs/
doc/
documentation/
guides/
website/
skills/
"""
# Other projects' documents, generated ones, and those that tell history or plans rather than what is.
DEFAULT_EXCLUDE = """
node_modules/
vendor/
vendored/
_vendor/
deps/
third_party/
third-party/
external/
site-packages/
dist/
build/
_build/
target/
generated/
testdata/
test_data/
fixtures/
__fixtures__/
snapshots/
__snapshots__/
templates/
archive/
archived/
_archive/
_archived/
versioned_docs/
staged-for-removal/
blog/
_posts/
_drafts/
news/
releases/
versioned_docs/
release-notes/
release_notes/
changelog/
changelogs/
changes/
adr/
adrs/
rfc/
rfcs/
proposals/
decisions/
postmortems/
CHANGELOG*
CHANGES*
HISTORY*
NEWS*
news.*
history.*
history/
*whatsnew*
*whats-new*
*whats_new*
RELEASE*
MIGRAT*
migrat*
UPGRAD*
upgrad*
*release-notes*
*release_notes*
*changelog*
*changes*
deprecat*
"""
_DOCS_TEXT = re.compile(
    r"(?:^|/)(?:docs?|documentation)/(?:.+/)?(?!requirements|LICENSE|robots)[^/]+\.txt\Z", re.IGNORECASE
)
_VERSION_FOLDER = re.compile(
    r"((?:^|.*/)(?:docs?|documentation))/(v\d+(?:[._]\d+)*(?:\.x)?|\d+\.\d+(?:\.\d+|\.x)?|version-\d[^/]*)/",
    re.IGNORECASE,
)
_ATTRIBUTES = ("linguist-vendored", "linguist-generated")


def is_document(path: str) -> bool:
    """Whether a file is written in a language for documents; below docs/, plain text is reStructuredText as a rule."""
    return path.lower().endswith(ENDINGS) or _DOCS_TEXT.search(path) is not None


def find_documents(git: Git, top: Path, named: Sequence[str], settings: CheckSettings) -> list[str]:
    """The documents to check, as paths from the top of the repository, in order.

    A file that is named is checked unless the settings exclude it; of a folder or a pattern, the documents below it.
    """
    excluded = _rules(settings.exclude)
    if not named:
        included = _rules(settings.include) or parse_ignore_rules("", DEFAULT_INCLUDE)
        found = [path for path in _listed(git, top) if _matches(path, included)]
        chosen = _without_others(git, [path for path in found if not _matches(path, excluded)])
        return [path for path in chosen if not _is_other_name(top, path, chosen)]
    wanted: dict[str, None] = {}
    for name in named:
        inside = _inside(top, name)
        if os.path.isfile(top / inside):
            wanted[inside] = None
            continue
        below = _below(_listed(git, top), inside, name, is_folder=os.path.isdir(top / inside))
        wanted.update(dict.fromkeys(_without_others(git, below)))
    return [path for path in wanted if not _matches(path, excluded)]


def _is_other_name(top: Path, path: str, chosen: Sequence[str]) -> bool:
    """Whether a document is a symbolic link to another one that is checked: links in it are counted from there."""
    if not os.path.islink(top / path):
        return False
    return os.path.relpath(os.path.realpath(top / path), os.path.realpath(top)) in chosen


def _rules(patterns: Iterable[str]) -> IgnoreRules | None:
    lines = "\n".join(patterns)
    return parse_ignore_rules("", lines) if lines else None


def _matches(path: str, rules: IgnoreRules | None) -> bool:
    """Whether a pattern is about this file or a folder above it."""
    if rules is None:
        return False
    if is_ignored(path, (rules,), is_folder=False):
        return True
    folder = os.path.dirname(path)
    while folder:
        if is_ignored(folder, (rules,), is_folder=True):
            return True
        folder = os.path.dirname(folder)
    return False


def _listed(git: Git, top: Path) -> list[str]:
    """The documents that git tracks, and new ones that it does not ignore."""
    raw = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = dict.fromkeys(os.fsdecode(item) for item in raw.split(b"\0") if item)
    return [path for path in paths if is_document(path) and os.path.isfile(top / path)]


def _below(documents: Sequence[str], inside: str, name: str, *, is_folder: bool) -> list[str]:
    if is_folder:
        prefix = "" if inside == "." else f"{inside}/"
        found = [path for path in documents if path.startswith(prefix)]
        if not found:
            hint = f"name a folder with {', '.join(ENDINGS)} files that git does not ignore"
            raise BadInput(f"{name} has no document", hint=hint)
        return found
    found = [path for path in documents if fnmatchcase(path, inside)]
    if not found:
        raise BadInput(f"there is no file {name}", hint="name documents, folders, or patterns such as 'docs/*.md'")
    return found


def _inside(top: Path, name: str) -> str:
    """A name as a path from the top of the repository."""
    path = os.path.normpath(os.path.join(os.getcwd(), name))
    for base in (os.path.abspath(top), os.path.realpath(top)):
        for full in (path, os.path.realpath(path)):
            if full == base or full.startswith(base + os.sep):
                return os.path.relpath(full, base)
    raise BadInput(f"{name} is not in the repository {top}", hint="name files of one repository, or give --repo")


def _without_others(git: Git, paths: Sequence[str]) -> list[str]:
    """Leave out other projects' and generated documents, as common names and git attributes tell."""
    defaults = parse_ignore_rules("", DEFAULT_EXCLUDE)
    own = without_older_versions([path for path in paths if not _matches(path, defaults)])
    if not own:
        return own
    given = b"\0".join(os.fsencode(path) for path in own) + b"\0"
    answer = git.run("check-attr", "-z", "--stdin", *_ATTRIBUTES, given=given).split(b"\0")
    others = {
        os.fsdecode(path)
        for path, _, value in zip(answer[::3], answer[1::3], answer[2::3], strict=False)
        if value in (b"set", b"true")
    }
    return [path for path in own if path not in others]


def without_older_versions(paths: Sequence[str]) -> list[str]:
    """Leave out documentation of earlier versions, such as docs/v2/ beside the current pages in docs/ or docs/v3/."""
    counts: dict[str, dict[str, int]] = {}
    for path in paths:
        if (match := _VERSION_FOLDER.match(path)) is not None:
            versions = counts.setdefault(match[1], {})
            versions[match[2]] = versions.get(match[2], 0) + 1
    older: set[tuple[str, str]] = set()
    for folder, versions in counts.items():
        newest = max(versions, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
        others = sum(path.startswith(f"{folder}/") for path in paths) - sum(versions.values())
        is_current = 4 * others < versions[newest]  # beside it there is an index at most
        older |= {(folder, name) for name in versions if name != newest or not is_current}
    return [
        path for path in paths if (match := _VERSION_FOLDER.match(path)) is None or (match[1], match[2]) not in older
    ]
