"""What a check reports: a claim of a document that the code does not bear out, with the repair if there is one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truekeep.check.settings import CONFIDENCES, HIGH, LOW, MEDIUM
from truekeep.verify.claim import Claim
from truekeep.verify.file_kinds import FileKind, kind_of
from truekeep.verify.link_claims import LINK_REASONS
from truekeep.verify.verdict import CHANGED, GONE, MOVED, Verdict

REPORTED = (GONE, MOVED, CHANGED)
_AGENT_FILE = re.compile(
    r"(?:^|/)(?:AGENTS?|CLAUDE|GEMINI|CONTRIBUTING|DEVELOPMENT|DEVELOPING|HACKING|ARCHITECTURE|SKILL)\.\w+$"
    r"|(?:^|/)\.(?:cursor|claude|windsurf|clinerules|github)/"
)
_INCLUDED = re.compile(
    r"(?:^|/)(?:_[^/]*|snippets|partials|includes|fragments|shared)/"
)  # links are relative elsewhere
UNCERTAIN_KINDS = ("version", "package", "commit", "decision", "url", "port", "unit", "container")
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


def rate(path: str, verdict: Verdict) -> str:
    """How likely an alarm is right. The rules follow what was right on labelled documents (docs/check.md)."""
    claim = verdict.claim
    if claim.kind in UNCERTAIN_KINDS:
        return LOW
    if verdict.reason in LINK_REASONS:
        return MEDIUM if _INCLUDED.search(path) else HIGH
    if claim.kind in ("path", "directory", "line", "bundle"):
        return _rate_path(claim, verdict)
    if claim.kind in _NAMED_IN_CODE:
        return _rate_name(path, claim, verdict)
    return MEDIUM


def _rate_path(claim: Claim, verdict: Verdict) -> str:
    name = claim.name.strip("/")
    if name.startswith("."):
        return LOW  # `.env`, `.github/workflows/x.yml`: most often a file of the reader's own repository
    if "/" not in name and claim.kind != "line":
        return LOW if verdict.verdict == GONE else MEDIUM
    return HIGH if verdict.verdict in (GONE, MOVED) else MEDIUM


def _rate_name(path: str, claim: Claim, verdict: Verdict) -> str:
    if verdict.verdict != GONE:
        return MEDIUM
    last = verdict.place.partition(":")[0]
    if last and kind_of(last) is not FileKind.CODE:
        return LOW
    is_own = bool(claim.place or claim.owner) or _AGENT_FILE.search(path) is not None
    return HIGH if is_own and not claim.is_weak else MEDIUM


def is_reported(confidence: str, wanted: str) -> bool:
    """Whether an alarm is at least as certain as the setting asks."""
    return CONFIDENCES.index(confidence) <= CONFIDENCES.index(wanted)
