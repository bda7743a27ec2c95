"""What truekeep says about a workspace, as findings that a person can call right or wrong.

A finding is known by a digest of its kind, path, line and text, so that a label can be committed without a word of
anybody's notes. What a person needs for judging it (the lines around, the evidence) is only in the sheet for labelling.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

ALARMS = ("gone", "moved", "changed")
CONFIRMED_SAMPLE = 50
ALARM_SAMPLE = 200
LINES_AROUND = 2
TIDY_PROPOSALS = (
    ("decay", "entries"),
    ("decay", "archived"),
    ("duplicates", "duplicates"),
    ("duplicates", "copies"),
    ("promote", "proposed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: str  # gone, moved, changed, confirmed, tidy, reconcile, credential, planted-order
    path: str
    line: int
    text: str
    evidence: str

    @property
    def id(self) -> str:
        parts = (self.kind, self.path, str(self.line), self.text, self.evidence if self.kind == "moved" else "")
        return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def from_verify(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Every alarm and every confirmation of `verify --json`."""
    for file in answer["files"]:
        for claim in file["claims"]:
            if claim["verdict"] in (*ALARMS, "confirmed"):
                evidence = claim["place"] if claim["verdict"] == "moved" else claim["why"]
                yield Finding(
                    kind=claim["verdict"], path=file["path"], line=claim["line"], text=claim["text"], evidence=evidence
                )


def from_tidy(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Every proposal of `tidy --json`: entries to expire, duplicates, cards to make."""
    for section, key in (
        ("decay", "entries"),
        ("decay", "archived"),
        ("duplicates", "duplicates"),
        ("duplicates", "copies"),
        ("promote", "proposed"),
    ):
        for proposal in answer[section][key]:
            yield from_proposal("tidy", f"{section} {key}", proposal)


def from_reconcile(answer: Mapping[str, Any]) -> Iterator[Finding]:
    for disagreement in answer["disagreements"]:
        yield from_proposal("reconcile", "disagreement", disagreement)


def from_proposal(kind: str, what: str, proposal: Any) -> Finding:
    told = json.dumps(proposal, ensure_ascii=False, sort_keys=True)
    path = first_path(proposal)
    return Finding(kind=kind, path=path, line=0, text=f"{what} {told}", evidence="")


def first_path(value: Any) -> str:
    """The first Markdown path in a proposal, for the reader of the sheet."""
    if isinstance(value, str):
        return value if value.endswith(".md") else ""
    children: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((path for path in map(first_path, children) if path), "")


def from_problems(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Credentials and planted orders that `status problems --json` lists."""
    for problem in answer["problems"]:
        if problem["code"] in ("credential", "planted-order"):
            yield Finding(
                kind=problem["code"], path=problem["path"], line=problem["line"], text=problem["what"], evidence=""
            )


def to_judge(findings: Iterable[Finding]) -> list[Finding]:
    """The findings a person judges: all, but of many alarms or confirmations a sample that is the same in every run."""
    by_kind: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, {})[finding.id] = finding
    chosen = []
    for kind, found in by_kind.items():
        limit = CONFIRMED_SAMPLE if kind == "confirmed" else ALARM_SAMPLE
        chosen += [found[digest] for digest in sorted(found)[:limit]]
    return chosen


def sheet_row(root: Path, finding: Finding) -> dict[str, Any]:
    """One row for a person to judge: the finding with the lines around it. Never committed."""
    around = ""
    if finding.line and (file := root / finding.path).is_file():
        lines = file.read_bytes().decode("utf-8", "replace").splitlines()
        around = "\n".join(lines[max(0, finding.line - 1 - LINES_AROUND) : finding.line + LINES_AROUND])
    return {
        "id": finding.id,
        "kind": finding.kind,
        "path": finding.path,
        "line": finding.line,
        "text": finding.text,
        "evidence": finding.evidence,
        "around": around,
        "right": None,
    }
