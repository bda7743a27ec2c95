"""What the alarms of one document or folder say together, which none of them says alone.

Names that one commit took away are a feature that was removed: the document that has several of them describes it.

A link whose target was moved or deleted has a witness in history. One whose target never was here may be a slip of the
author, or the generator of a website finds it elsewhere, or the page is still to be written. One such link is a slip;
if many of one form fail, in a document or in the documents of one folder, the form is what differs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from truekeep.verify.link_claims import LINK_BROKEN
from truekeep.verify.verdict import CONFIRMED, GONE, GONE_BEFORE, MOVED, Verdict

_MANY_REMOVED = 3  # names of one document, by one commit
_MANY_IN_DOCUMENT = 5  # targets that never were
_MANY_IN_FOLDER = 3  # targets, or documents that have them
_MIN_HERE, _SHARE_HERE = 2, 0.5  # of the paths that a document names
_START = re.compile(r"\W*")  # `../`, `./`, `/`, and names of folders that a bundler knows, as `~/`
_ENDING = re.compile(r"\.(\w{1,8})\Z")

_Form = tuple[str, str, str]  # the first folders of the documents, how the target begins, and its ending


def find_doubtful(documents: Iterable[tuple[str, Sequence[Verdict]]], *, is_site: bool) -> set[int]:
    """The ids of the verdicts on links that fail as a family. `is_site`: a generator makes pages of the documents."""
    never: dict[_Form, list[tuple[str, Verdict]]] = defaultdict(list)
    resolved: Counter[_Form] = Counter()
    for path, verdicts in documents:
        for verdict in verdicts:
            if verdict.claim.why != "a link" or verdict.claim.kind not in ("path", "directory"):
                continue
            if verdict.verdict == CONFIRMED:
                resolved[_form(path, verdict)] += 1
            elif verdict.verdict == GONE and verdict.reason == LINK_BROKEN and not verdict.commit:
                never[_form(path, verdict)].append((path, verdict))
    by_document: dict[str, list[Verdict]] = defaultdict(list)
    found: set[int] = set()
    for form, members in never.items():
        apart = max(_targets(verdict for _, verdict in members), len({path for path, _ in members}))
        is_family = apart >= _MANY_IN_FOLDER and resolved[form] < len(members)
        if is_site and is_family:
            found |= {id(verdict) for _, verdict in members}
        for path, verdict in members:
            if not verdict.candidates:  # a file of that name elsewhere is what the author meant
                by_document[path].append(verdict)
    for verdicts in by_document.values():
        if _targets(verdicts) >= _MANY_IN_DOCUMENT:
            found |= {id(verdict) for verdict in verdicts}
    return found


def find_removed_together(verdicts: Iterable[Verdict]) -> set[str]:
    """The commits that took away several things that one document names."""
    names: dict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        if verdict.verdict == GONE and verdict.commit and verdict.reason != GONE_BEFORE:
            names[verdict.commit].add(verdict.claim.name)
    return {commit for commit, some in names.items() if len(some) >= _MANY_REMOVED}


def is_about_this_tree(verdicts: Iterable[Verdict]) -> bool:
    """Whether most paths with a folder that a document names are here: others are of its reader's project."""
    known: dict[str, bool] = {}
    for verdict in verdicts:
        claim = verdict.claim
        if claim.kind in ("path", "line", "directory") and claim.why != "a link" and "/" in claim.name.strip("/"):
            known[claim.name] = verdict.verdict in (CONFIRMED, MOVED)
    return sum(known.values()) >= _MIN_HERE and sum(known.values()) >= len(known) * _SHARE_HERE


def _targets(verdicts: Iterable[Verdict]) -> int:
    return len({verdict.claim.name for verdict in verdicts})


def _form(path: str, verdict: Verdict) -> _Form:
    target = verdict.claim.text.partition("#")[0].partition("?")[0]
    start, ending = _START.match(target), _ENDING.search(target)
    folder = "/".join(path.split("/")[:-1][:2])
    return folder, start[0] if start is not None else "", ending[1].lower() if ending is not None else ""
