"""Documentation of the old commit as memory: its sentences as they were, with a mark for each name whose fate is known.

Names that were never a part of the repository are marked, too: a path that no commit ever had, a word that no code had
when the text was written. They belong to readers, to other programs or to examples, and none of them can rot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.truth.cards import FOREIGN, Card, Mark, Setting
from bench.truth.judge import GONE, MOVED, TRUE, Fact, Judge
from bench.truth.source import find_words, role

MOST = 24  # documents of an old commit
LONGEST = 700  # lines
KINDS = ("path", "directory", "symbol", "method", "flag", "env")
SUFFIXES = (".md", ".rst", ".txt")
NO_MEMORY = re.compile(
    r"(?i)(change|release|history|news|whatsnew|migrat|upgrad|license|copying|authors|deprecat|breaking)"
)
LANGUAGE = re.compile(r"(^|/)(?!en(/|$))[a-z]{2}(-[a-z]+)?(/|$)")
# A line with such a word may speak of other times, of examples or of what readers have; nothing on it is called rotten.
PAST = re.compile(
    r"(?i)\b(remov|delet|deprecat|renam|former|previous|no longer|used to|was|were|had|instead|replac|drop|old|legacy"
    r"|since|until|before|new in|added|chang|version|migrat|upgrad|will|would|could|example|e\.g|suppose|imagine|your)"
)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|\]\(([^)\s#]+)\)")
PATH = re.compile(r"(?<![\w./@~<-])[\w.@~-]*(?:/[\w.@+-]+)+/?(?![\w/])")
NAME = re.compile(r"\w+(?:(?:\.|::|#)\w+)*(?:\(\))?")
SHAPED = re.compile(r"\w*[a-z0-9]_[a-z0-9]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*|_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+|[a-z]+[A-Z]\w+")


class Document(NamedTuple):
    path: str
    lines: list[str]


class Foreign(NamedTuple):
    """What is known to be of the repository, or not."""

    ends: set[str]  # the ends of all paths that any commit ever had: a/b/c.py, b/c.py and c.py
    words: set[str]  # words of documents that no code had
    packages: set[str]  # what a manifest asked for


class Library:
    """The documents of an old commit, and what is known of the names in them."""

    def __init__(self, judge: Judge, facts: Iterable[Fact], ends: set[str]) -> None:
        self.known = {fact.text: fact for fact in facts if fact.kind in KINDS and "base name" not in fact.flags}
        self.documents = sorted(read_documents(judge), key=lambda document: judge.order(document.path))
        self.foreign = Foreign(ends, find_foreign(judge, self.documents), set(judge.old.packages))

    def write(self, setting: Setting) -> Iterator[Card]:
        """Documents in which something rotted, and as many in which nothing did as are left of the number."""
        cards = [write_document(document, setting, self.known, self.foreign) for document in self.documents]
        rotten = [card for card in cards if labels_of(card) & {MOVED, GONE}]
        sound = [card for card in cards if labels_of(card) == {TRUE}]
        chosen = rotten[: MOST * 2 // 3]
        for number, card in enumerate([*chosen, *sound[: MOST - len(chosen)]]):
            yield card._replace(name=f"{setting.age}-doc-{number:02d}.md")


def labels_of(card: Card) -> set[str]:
    return {mark.label for mark in card.marks} - {FOREIGN}


def read_documents(judge: Judge) -> Iterator[Document]:
    for path, text in judge.old.texts("doc"):
        if NO_MEMORY.search(path) or LANGUAGE.search(path.rpartition("/")[0]) or not path.endswith(SUFFIXES):
            continue
        lines = (text if path.endswith(".md") else convert(text)).split("\n")
        if len(lines) <= LONGEST:
            yield Document(path, lines)


def find_foreign(judge: Judge, documents: Iterable[Document]) -> set[str]:
    """The words in backticks that were in no code when the document was written, and that no test defined."""
    named = {
        last_word(span) for document in documents for _, span in iter_spans(document.lines) if NAME.fullmatch(span)
    }
    code = [path for path in judge.old.paths if role(path) not in ("doc", "test")]
    places = find_words(judge.old.folder, code, named)
    known = set(judge.old.by_name) | judge.old.test_names
    return {
        word for word in named - known if not places.get(word, set()) - {"comment", "string"} and not word.isdigit()
    }


def write_document(document: Document, setting: Setting, known: Mapping[str, Fact], foreign: Foreign) -> Card:
    front = setting.front(f"From {document.path.rpartition('/')[2]}")
    marks: dict[tuple[int, str], Mark] = {}
    for at, text in (*iter_spans(document.lines), *iter_paths(document.lines)):
        fact = known.get(text) or known.get(text.removesuffix("()")) or known.get(text.removeprefix("./").rstrip("/"))
        line = at + len(front)
        if fact and is_told(fact, text) and not PAST.search(document.lines[at - 1]):
            mark = Mark(line, fact.kind, text, fact.verdict, fact.where, fact.mentioned, ("doc",), fact.why)
            marks.setdefault((line, text), mark)
        elif not fact and is_foreign(text, document.path, foreign):
            marks.setdefault((line, text), Mark(line, FOREIGN, text, FOREIGN))
    return Card("", "\n".join([*front, *document.lines]).rstrip("\n") + "\n", tuple(marks.values()))


def is_told(fact: Fact, span: str) -> bool:
    """Whether a piece of documentation surely names this thing, and not an everyday word or an option of that name."""
    if fact.kind == "symbol":
        return span.endswith("()") or bool(SHAPED.fullmatch(span))
    return fact.kind in ("method", "flag", "env") or (fact.kind in ("path", "directory") and "/" in span.rstrip("/"))


def is_foreign(text: str, document: str, foreign: Foreign) -> bool:
    """Whether a text surely names nothing of the repository: no path of any commit, seen from anywhere, and no word."""
    if text in foreign.packages or ".." in text or text.startswith("@"):
        return False
    if "/" in text:
        path = text.removeprefix("./").strip("/")
        stem = path.removesuffix(".html")
        here = document.rpartition("/")[0]
        known = (path, f"{stem}.md", f"{stem}.rst", f"{stem}.txt", f"{stem}/index.md", f"{here}/{path}")
        return PATH.fullmatch(text) is not None and foreign.ends.isdisjoint(known)
    return NAME.fullmatch(text) is not None and last_word(text) in foreign.words


def last_word(text: str) -> str:
    return re.split(r"\W+", text.removesuffix("()"))[-1]


def iter_spans(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Inline code and link targets outside of fences."""
    fence = ""
    for number, line in enumerate(lines, start=1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1][:3]
        elif not fence and not line.startswith(("    ", "\t")):
            for match in SPAN.finditer(line):
                yield number, (match[1] or match[2]).strip()


def iter_paths(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """All that looks like a path and stands alone, in fences as well; in quotes it is a part of somebody's program."""
    for number, line in enumerate(lines, start=1):
        for match in PATH.finditer(line):
            before, after = line[: match.start()], line[match.end() :]
            if (not before or before[-1].isspace()) and (not after or after[0].isspace()) and "://" not in before[-8:]:
                yield number, match[0].rstrip(".")


def convert(text: str) -> str:
    """reStructuredText as Markdown, as far as names go: sentences stay as they are."""
    text = re.sub(r":[a-z:+-]+:`~?([^`<]+)`", r"`\1`", text)
    return re.sub(r"``([^`\n]+)``", r"`\1`", text)
