"""Which documents tell of a day or of a plan: what they name need not be there now, and nobody wants it changed.

By the names of the file and its folders, and by how the text looks: a date or a state at the top, boxes to tick.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re

from truekeep.verify.file_kinds import is_for_contributors

_FOLDERS = frozenset(
    "plan plans planning report reports research investigation investigations refactor refactoring refactors "
    "handoff handoffs journal journals retro retros retrospectives audits reviews meetings brainstorm brainstorms "
    "prd prds todo todos roadmap roadmaps milestones phases sprints backlog tickets epics incidents postmortem "
    "postmortems archive archives archived _archive _archived history legacy old obsolete deprecated drafts wip "
    "superpowers designs specs rfc rfcs adr adrs proposal proposals steps critique learnings summaries inbox outbox "
    "findings ideas devlog diary".split()
)
_NAME = re.compile(
    r"(?:^|[-_. ])(?:plan|plans|report|investigation|refactor(?:ing)?|restructuring|handoff|handover|retro|findings"
    r"|postmortem|roadmap|todo|proposal|rfc|prd|rewrite|brainstorm|draft|devlog|journal|phase[-_]?\d+|sprint[-_]?\d+"
    r"|step[-_]?\d+\w?|failed|lessons|completed?|completion|progress|ideas|implementation[-_](?:plan|summary|notes)"
    r"|spike|poc|deferred)"
    r"(?=[-_. ]|$)",
    re.IGNORECASE,
)
_DATED = re.compile(r"(?<!\d)20\d\d[-_]?(?:0[1-9]|1[0-2])(?:[-_]?(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
_LINES_AT_TOP = 30
_LINE_CHARS = 200
_STATE = re.compile(
    r"\W{0,8}(?:status|state|stage)[^\w:]{0,8}:\W{0,8}(?:draft|proposed|proposal|accepted|approved|planned|planning|pending"
    r"|in[- ]progress|implemented|complete|completed|done|closed|superseded|deprecated|archived|historical|obsolete|wip"
    r"|not started|exploratory|deferred|shipped)\b",
    re.IGNORECASE,
)
_PLANNED = re.compile(
    r"\W{0,8}(?:priority|complexity|effort|estimated? (?:effort|time)|target (?:release|version|date))[^\w:]{0,8}:",
    re.IGNORECASE,
)
_DATE_LINE = re.compile(
    r"\W{0,8}(?:date|created|authored|written|reviewed on|audited|as of|report date|generated)[^\w:]{0,8}:\W{0,8}"
    r"(?:20\d\d|\d{1,2}[./ ]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"#{1,2} .*\b(?:plan|proposal|report|audit|rfc|handoff|handover|investigation|post-?mortem|retrospective|roadmap"
    r"|prd|review findings|research|todo|backlog|summary of changes|implementation summary)\b",
    re.IGNORECASE,
)
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)]) \[[ xX]\] ")
_MIN_BOXES, _LINES_FOR_A_BOX = 5, 15


def is_record(path: str, text: str) -> bool:
    """Whether a document tells of its day or of a plan. Those that instruct contributors and readers never do."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0] or name
    if is_for_contributors(path) or stem.lower() in ("readme", "skill", "index"):
        return not _FOLDERS.isdisjoint(folder.lower() for folder in folders) or _DATED.search(path) is not None
    if _DATED.search(path) or _NAME.search(stem) or not _FOLDERS.isdisjoint(folder.lower() for folder in folders):
        return True
    lines = text.splitlines()
    top = [line[:_LINE_CHARS] for line in lines[:_LINES_AT_TOP]]
    if any(_STATE.match(line) or _PLANNED.match(line) or _DATE_LINE.match(line) or _TITLE.match(line) for line in top):
        return True
    boxes = sum(_BOX.match(line) is not None for line in lines)
    return boxes >= _MIN_BOXES and boxes * _LINES_FOR_A_BOX >= len(lines)
