"""What a check reports: a claim of a document that the code does not bear out, with the repair if there is one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from truekeep.check.settings import CONFIDENCES, HIGH, LOW, MEDIUM
from truekeep.verify.claim import Claim
from truekeep.verify.claims.inline_code import ENTERED, IN_CODE, SETTING
from truekeep.verify.claims.patterns import OF_ANY_PROJECT, WELL_KNOWN
from truekeep.verify.file_kinds import FileKind, is_for_contributors, kind_of
from truekeep.verify.link_claims import LINK_OF_SITE, LINK_REASONS
from truekeep.verify.path_claims import PLACEHOLDER
from truekeep.verify.tree_claims import TREE_REASONS
from truekeep.verify.verdict import (
    CHANGED,
    DEPENDENCY_LEFT,
    FOLDER_LEFT,
    GONE,
    GONE_BEFORE,
    LEAST_VERSION,
    MODULE_MISSING,
    MOVED,
    NEVER_SEEN,
    NO_LONGER_USED,
    NOT_A_COMMAND,
    NOT_READ,
    NOT_THERE,
    ONLY_IN_TESTS,
    PACKAGE_LEFT,
    REMOVED,
    REMOVED_VALUE,
    UNLIKE_SIBLINGS,
    Verdict,
)

REPORTED = (GONE, MOVED, CHANGED)
_PROGRAM = re.compile(r"(?:\.(?:sh|bash|ps1|bat|cmd|py|rb|pl|m?js|ts)|(?:^|/)[\w-]+)\Z")
_INSTRUCTIONS = re.compile(r"(?:^|/)(?:SKILL\.md$|skills/|\.[\w-]+/(?:agents|commands|prompts)/)", re.IGNORECASE)
_INCLUDED = re.compile(
    r"(?:^|/)(?:_[^/]*|snippets|partials|includes|fragments|shared)/"
)  # links are relative elsewhere
_FINISHED = re.compile(
    r"(?:^|/)(?:completed|done|finished|closed|implemented|archived?|history)/|(?:^|/)20\d\d-\d\d-\d\d[^/]*\Z",
    re.IGNORECASE,
)  # plans and notes of their day, which nobody keeps up
SURE_REASONS = (*LINK_REASONS, *TREE_REASONS, NOT_A_COMMAND, NOT_READ)  # where nothing depends on the sentence
_OWN_README = re.compile(r"README(?:\.\w+)?\Z", re.IGNORECASE)
UNCERTAIN_KINDS = ("version", "package", "commit", "decision", "url", "port", "unit", "container")
_SURE_NUMBERS = {NEVER_SEEN: ("called a commit",), NOT_THERE: ("called a port",)}  # that the text calls so
_NOT_OF_A_FEATURE = (GONE_BEFORE, ONLY_IN_TESTS, PACKAGE_LEFT)  # a feature that left: other reasons than these
_MANY_WORDS = 2  # underscores in a name: hardly that of a local variable
_NAMED_IN_CODE = ("symbol", "method", "flag", "env")


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseClaim:
    """One place of a document that is no longer true."""

    path: str  # from the top of the repository, or of the workspace for memory
    line: int
    column: int
    end_column: int
    kind: str
    verdict: str  # gone, moved or changed
    claim: str
    why: str
    confidence: str
    replacement: str = ""  # of the claim, if the new place is certain
    is_memory: bool = False

    @property
    def message(self) -> str:
        shown = f"{self.claim}: {self.why}"
        return f"{shown} (write {self.replacement})" if self.replacement and self.replacement not in self.why else shown

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What stays the same when lines above it change."""
        return self.path, self.kind, self.verdict, self.claim


def is_own_readme(path: str) -> bool:
    """Whether a document is the README of the whole repository."""
    return _OWN_README.match(path) is not None


def is_readme(path: str) -> bool:
    """Whether a document introduces the folder that it is in."""
    return _OWN_README.match(path.rpartition("/")[2]) is not None


def rate(
    path: str,
    verdict: Verdict,
    *,
    is_past: bool = False,
    is_planned: bool = False,
    is_of_removed_feature: bool = False,
    is_about_here: bool = True,
) -> str:
    """How likely an alarm is right. The rules follow what was right on labelled documents (docs/check.md)."""
    claim = verdict.claim
    if is_planned or (is_past and verdict.reason not in LINK_REASONS):
        return LOW  # what a plan, a report or a sentence about another time names was there, or is to be
    is_made_by_reader = claim.kind in ("path", "directory") and claim.name.startswith(".")
    if is_of_removed_feature and verdict.reason not in _NOT_OF_A_FEATURE and not is_made_by_reader:
        return HIGH
    if verdict.reason == LEAST_VERSION:
        return HIGH if is_for_contributors(path) or is_readme(path) else MEDIUM
    if verdict.reason == DEPENDENCY_LEFT:
        return HIGH if is_for_contributors(path) or is_readme(path) else MEDIUM
    if claim.kind in ("commit", "port") and is_for_contributors(path) and not claim.is_weak:
        return HIGH if verdict.reason in _SURE_NUMBERS and claim.why in _SURE_NUMBERS[verdict.reason] else LOW
    if claim.kind in UNCERTAIN_KINDS:
        return LOW
    if verdict.reason in LINK_REASONS and _FINISHED.search(path):
        return LOW
    if verdict.reason in LINK_REASONS:
        return MEDIUM if _INCLUDED.search(path) or verdict.reason == LINK_OF_SITE else HIGH
    if verdict.reason in TREE_REASONS:
        return HIGH
    if claim.kind in ("path", "directory", "line", "bundle"):
        confidence = _rate_path(path, claim, verdict)
        is_sure = is_about_here or verdict.reason not in (NEVER_SEEN, NOT_THERE) or is_for_contributors(path)
        return confidence if is_sure else LOW
    if claim.kind in _NAMED_IN_CODE:
        return _rate_name(path, claim, verdict)
    if claim.kind == "script":
        return (
            HIGH
            if verdict.reason == NOT_A_COMMAND
            else HIGH
            if is_for_contributors(path) or is_own_readme(path)
            else LOW
            if verdict.reason == NEVER_SEEN
            else MEDIUM
        )
    return LOW


def _rate_path(path: str, claim: Claim, verdict: Verdict) -> str:
    name = claim.name.strip("/")
    if claim.kind == "line" and claim.last <= 1 and verdict.verdict != GONE:
        return LOW  # `app.py:1` cites the file
    if "/" not in name and claim.kind != "line":
        return _rate_bare_name(path, verdict)
    if name.startswith(".") and not name.startswith("..") and not is_for_contributors(path):
        return LOW  # `.github/workflows/x.yml`: most often a file of the reader's own repository
    if verdict.reason in (NEVER_SEEN, NOT_THERE):
        return _rate_missing(path, claim)
    if verdict.reason == FOLDER_LEFT:
        return HIGH if is_for_contributors(path) else MEDIUM if is_readme(path) else LOW
    if verdict.reason == GONE_BEFORE:
        is_shown = PLACEHOLDER.match(name.rpartition("/")[2]) is not None
        return HIGH if is_for_contributors(path) and not is_shown else LOW
    return HIGH if verdict.verdict in (GONE, MOVED) else MEDIUM


def _rate_missing(path: str, claim: Claim) -> str:
    """A path that is not in a folder that is here, whether or not history could tell that it never was."""
    if _INSTRUCTIONS.search(path):
        return MEDIUM  # they name what the agent is to write
    name = claim.name.strip("/")
    is_code = claim.kind == "directory" or kind_of(name) in (FileKind.CODE, FileKind.TEST)
    if claim.why == ENTERED:
        return HIGH if is_for_contributors(path) or is_readme(path) else LOW
    is_run = claim.text.startswith("./") and _PROGRAM.search(name) and claim.why in ("a command", "inline code")
    if claim.kind == "directory" and name.count("/") == 1 and claim.why != ENTERED:
        return MEDIUM if is_for_contributors(path) else LOW  # false half of the time
    if is_for_contributors(path) or is_run or (is_code and name.count("/") > 1 and claim.why == "inline code"):
        return HIGH
    return LOW


def _rate_bare_name(path: str, verdict: Verdict) -> str:
    """A name without a folder is surely meant only if a file beside the document had it, or one at the root."""
    if verdict.verdict != GONE or verdict.reason == GONE_BEFORE or verdict.claim.name.startswith("."):
        return LOW
    if verdict.claim.name in WELL_KNOWN and not is_for_contributors(path):
        return LOW  # `requirements.txt`: the reader's own
    here, there = os.path.dirname(path), os.path.dirname(verdict.place)
    if is_for_contributors(path) and verdict.commit and verdict.place and verdict.claim.name not in OF_ANY_PROJECT:
        return HIGH  # named while the only file of this name was here
    if here == there and (here or is_for_contributors(path)):
        return HIGH
    if not there and is_for_contributors(path):
        return HIGH
    return LOW


def _rate_name(path: str, claim: Claim, verdict: Verdict) -> str:
    if claim.why == SETTING and not claim.is_weak and verdict.verdict == GONE:
        return LOW if verdict.reason == ONLY_IN_TESTS else HIGH  # of a document whose other variables are here
    if verdict.verdict != GONE:
        return LOW if verdict.reason == GONE_BEFORE or verdict.verdict == CHANGED else MEDIUM
    if verdict.reason in (NEVER_SEEN, NOT_THERE):
        is_named_flag = claim.kind == "flag" and not claim.owner
        if not is_for_contributors(path) or (is_named_flag and verdict.reason == NEVER_SEEN):
            return LOW
        return HIGH if verdict.reason == NOT_THERE and (claim.kind != "flag" or is_named_flag) else MEDIUM
    if verdict.reason in (MODULE_MISSING, NOT_READ, UNLIKE_SIBLINGS):
        return HIGH
    last = verdict.place.partition(":")[0]
    if verdict.reason in (GONE_BEFORE, ONLY_IN_TESTS) or (last and kind_of(last) is not FileKind.CODE):
        return LOW
    if verdict.reason == NO_LONGER_USED:
        return LOW
    if verdict.reason == PACKAGE_LEFT:
        return HIGH if is_for_contributors(path) else MEDIUM
    if claim.why == IN_CODE:
        return HIGH if verdict.reason == REMOVED else LOW  # a function or type of this code, in an example
    is_short = claim.name.islower() and claim.name.strip("_").count("_") < _MANY_WORDS
    is_local = verdict.reason == REMOVED_VALUE and claim.kind == "symbol" and is_short  # or a parameter
    return MEDIUM if claim.is_weak or is_local or claim.kind == "env" else HIGH


def is_reported(confidence: str, wanted: str) -> bool:
    """Whether an alarm is at least as certain as the setting asks."""
    return CONFIDENCES.index(confidence) <= CONFIDENCES.index(wanted)
