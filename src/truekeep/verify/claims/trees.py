"""Claims of a drawn folder tree: each of its entries is a path below the entry that it hangs on. Pure.

A tree says of a whole folder what is in it, so its entries are judged together (`verify.tree_claims`): each claim
carries all paths of its tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truekeep.verify.claim import Claim
from truekeep.verify.claims.patterns import is_file

IN_TREE = "a tree"
MAX_ENTRIES = 400
_MIN_BRANCHES = 3
_BRANCH = re.compile(r"(?:[\s│┃║|]*)(?:[├└┣┗╠╚╰+`\\]|\|(?=-))[─━═-]+>?[\s─]*")
_RAIL = re.compile(r"[\s│┃║|]*\Z")
_NAME = re.compile(r"(?P<name>(?:\./|/)?[\w.@+~()\[\]%$-]+(?:/[\w.@+()\[\]-]+)*/?)(?=$|[\s,:;#←→(]|—|–|─)")
_ROOT = re.compile(
    r"\s*(?:[📁📂🗂]\ufe0f?\s*)?(?P<name>\.|(?:\./|/)?[\w.@+()\[\]-]+(?:/[\w.@+()\[\]-]+)*/?)"
    r"(?:\s*$|\s+(?:[#(←—–]|//|-\s))"
)
_INDENTED = re.compile(r"\s*[\w.@()\[\]-]+(?:/[\w.@()\[\]-]+)*/?(?:\s*$|\s+(?:[#(←—–]|//|->?\s|\s).*$)")
_PLACEHOLDER = re.compile(r"[<>{}*$%…]|\.\.\.|\A(?:etc|other|others|more)\.?\Z|YYYY|XXX|NNN", re.IGNORECASE)
_NOT_KEPT = re.compile(
    r"\b(?:planned|future|todo|tbd|generated|git-?ignored?|not (?:committed|tracked|in git|yet)"
    r"|created (?:by|at|on|when)|run-?time|optional|your|you|build output|built|output|auto|local only|user|e\.g"
    r"|example|new|deleted|removed|deprecated|symlink|submodule|cached?|artifacts?|downloaded|mounted"
    r"|will be|coming soon"
    r"|proposed|wip|if any|ignored)\b",
    re.IGNORECASE,
)


class _TreeEntry(NamedTuple):
    path: str  # empty for a placeholder
    line: int  # from the first line of the block
    start: int  # in that line
    text: str
    is_firm: bool


def tree_claims(lines: Sequence[str], number: int, offset: int) -> Iterator[Claim]:
    """The claims of a code block that draws a tree; none if it draws none. `number`, `offset`: of its first line."""
    entries = list(_entries(lines))[:MAX_ENTRIES]
    paths = "\n".join(entry.path + ("/" if entry.text.endswith("/") else "") for entry in entries if entry.path)
    starts = [offset]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for entry in entries:
        if not entry.path or not entry.is_firm:
            continue
        start = starts[entry.line] + entry.start
        yield Claim(
            kind="directory" if entry.text.endswith("/") else "path",
            text=entry.text,
            start=start,
            end=start + len(entry.text),
            line=number + entry.line,
            column=entry.start + 1,
            name=entry.path,
            quote=paths,
            why=IN_TREE,
        )


def _entries(lines: Sequence[str]) -> Iterator[_TreeEntry]:
    branches = [_BRANCH.match(line) for line in lines]
    is_drawn = sum(match is not None for match in branches) >= _MIN_BRANCHES
    if not is_drawn and not _is_indented_tree(lines):
        return
    above: list[tuple[int, str | None]] = []  # the column and path of the entries that this one may hang on
    for at, (line, branch) in enumerate(zip(lines, branches, strict=True)):
        if not line.strip() or _RAIL.match(line) or line.lstrip().startswith("#"):
            continue
        column = branch.end() if branch is not None else len(line) - len(line.lstrip())
        if is_drawn and branch is None:
            root = _ROOT.match(line)
            above = [(column, root["name"])] if root is not None else []
            continue
        while above and above[-1][0] >= column:
            above.pop()
        entry = _entry(line, column, at, above)
        yield entry
        above.append((column, entry.path or None))


def _entry(line: str, column: int, at: int, above: Sequence[tuple[int, str | None]]) -> _TreeEntry:
    rest = line[column:]
    marks = len(rest) - len(rest.lstrip("*`📁📂📄 \ufe0f"))
    match = _NAME.match(rest, marks)
    if (
        match is None
        or (rest[:marks].endswith("*") and match["name"].startswith((".", "_", "-")))
        or _PLACEHOLDER.search(match["name"])
        or match["name"] in (".", "..")
    ):
        return _TreeEntry("", at, column, "", False)
    name, behind = match["name"], rest[match.end() :]
    parent = above[-1][1] if above else ""
    if parent is None:
        return _TreeEntry("", at, column, "", False)
    parent = parent.strip("/").removeprefix("./").strip(".") if parent in (".", "./") else parent
    path = "/".join(part for part in (parent.rstrip("/"), name.removeprefix("./").strip("/")) if part)
    is_firm = (name.endswith("/") or is_file(name.rpartition("/")[2])) and _NOT_KEPT.search(behind) is None
    return _TreeEntry(path, at, column + match.start("name"), name, is_firm)


def _is_indented_tree(lines: Sequence[str]) -> bool:
    """Whether a block is a tree without lines between its entries: names only, folders among them, some indented."""
    written = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if len(written) < 4 or not all(_INDENTED.match(line) for line in written):
        return False
    names = [line.split()[0] for line in written]
    depths = {len(line) - len(line.lstrip()) for line in written}
    folders = sum(name.endswith("/") for name in names)
    return len(depths) > 1 and folders >= 2 and not any(name.endswith((":", ",", ";", ")")) for name in names)
