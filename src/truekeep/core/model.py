"""The terms that truekeep uses, and the values that carry them. Imports nothing of truekeep.

workspace       the canonical folder of Markdown memory, in OpenClaw's layout
canonical host  the one machine that writes the workspace; all others only produce handoffs
host lease      a machine's term as canonical host; the highest generation counts
harness         a program that runs an agent: Claude Code, Codex, OpenClaw
writer          a harness that writes handoffs: claude, codex, others by configuration
producer        a machine that writes handoffs and is not the canonical host
route           how handoffs travel from a producer: rsync, rclone, git or a team server
inbox           a writer's folder in a repository; ingested files move to its processed/
handoff         one Markdown file of proposed durable knowledge
inbox file      a handoff as it is in an inbox: a name and bytes, not parsed or trusted yet
card            memory/cards/*.md: one topic, frontmatter, durable
index line      the one line in MEMORY.md that points at a card
document        TOOLS.md, USER.md, and *.md in rules/, .learnings/, memory/ops/, memory/research/: only ever appended to
daily log       memory/YYYY-MM-DD.md: what happened, only ever appended to
transcript      the text of a harness's session: searchable, never trusted
review          memory/handoff-inbox/: drafts that a person decides on
draft           a handoff or a maintenance proposal, with the reasons why it was not filed
archive         memory/archive/: fully expired logs; searched on request only
finding         a problem or hint about a handoff, with a code; the policy decides its effect
claim           something in memory that can be checked against code: a path, line, symbol, flag, port or decision
verdict         confirmed, moved, changed, gone or unverifiable, with evidence
checkout        a folder on this machine that holds a repository
decision        the outcome for one handoff: card, document, already filed, review, refused
ledger          everything truekeep wrote: when, from which handoff, and the bytes before
entry           one action in the ledger; it can be explained and undone
splice          one byte-level change in a file: offset, old bytes, new bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Policy = Literal["promote", "review", "refuse"]
"""The effect of a finding: file the handoff anyway, send it to review, or refuse it."""

Outcome = Literal["promoted", "routed", "already", "review", "refused"]
"""The result for a handoff. Its file moves to processed/, or stays in the inbox if it cannot be moved."""

WORKSPACE = "~/.openclaw/workspace"  # the default
WRITERS: Mapping[str, str] = MappingProxyType({"claude": ".claude/memory-handoffs", "codex": ".codex/memory-handoffs"})
OPENCLAW_INBOX: Mapping[str, str] = MappingProxyType({"openclaw": ".openclaw/memory-handoffs"})
"""OpenClaw's own, read where it exists: it owns the memory, so nothing is installed for it."""

CARDS = "memory/cards"
REVIEW = "memory/handoff-inbox"
ARCHIVE = "memory/archive"
INDEX = "MEMORY.md"
TEST_MARK = "# truekeep test letter"  # first line of a handoff that only tests the route
BEGIN_MARK = "<!-- truekeep:begin"
END_MARK = "<!-- truekeep:end"
"""Enclose all text that truekeep shows to an agent, so that it is not taken for the agent's own words later."""

DOCUMENTS = ("TOOLS.md", "USER.md", ".learnings/LEARNINGS.md", ".learnings/ERRORS.md", ".learnings/FEATURE_REQUESTS.md")
PROTECTED = ("MEMORY.md", "HANDOVER.md", "HEARTBEAT.md", "AGENTS.md", "IDENTITY.md", "SOUL.md", "BOOTSTRAP.md")
HANDOFF_TYPES = ("setup", "workflow", "bugfix", "decision", "security", "preference", "research", "project-context")


class FindingRule(NamedTuple):
    """A finding code's meaning and default policy."""

    policy: Policy
    meaning: str
    binding: bool = False  # the configuration cannot set it to "promote"


RULES: dict[str, FindingRule] = {
    "bug": FindingRule("review", "truekeep crashed on it; details are in bugs.log", binding=True),
    # The file as bytes.
    "empty": FindingRule("review", "the file is empty", binding=True),
    "too-large": FindingRule("review", "the file is larger than the limit for a handoff", binding=True),
    "not-text": FindingRule("review", "the file is not UTF-8 text, or contains NUL bytes", binding=True),
    "conflict-copy": FindingRule("review", "a sync tool's conflict copy of another file"),
    "conflict-markers": FindingRule("review", "the text contains git conflict markers", binding=True),
    # The handoff's form.
    "not-a-handoff": FindingRule("review", "no handoff section was found", binding=True),
    "section-twice": FindingRule("review", "a section appears twice, so it is unclear which one counts", binding=True),
    "unclear-section": FindingRule(
        "review", "a section heading appears where it may be part of the content", binding=True
    ),
    "open-fence": FindingRule(
        "review", "a code fence or comment is not closed, so the rest may be cut off", binding=True
    ),
    "unclear-action": FindingRule(
        "review", "the recommended memory action is missing or not one of the three", binding=True
    ),
    "both-routes": FindingRule("review", "both a card and a document are given as target", binding=True),
    "no-target": FindingRule("review", "the target is missing", binding=True),
    "bad-card-name": FindingRule("review", "the target card's name is not allowed", binding=True),
    "bad-document": FindingRule("review", "the target document is not one that handoffs may append to", binding=True),
    "instruction-file": FindingRule("review", "agents would read a file of this name as instructions", binding=True),
    "no-content": FindingRule("review", "the suggested content is missing", binding=True),
    "no-frontmatter": FindingRule("review", "the suggested card does not start with frontmatter", binding=True),
    "bad-frontmatter": FindingRule("review", "the suggested card's frontmatter cannot be read safely", binding=True),
    "section-in-document": FindingRule("review", "the document content contains a ## heading", binding=True),
    "claims-trust": FindingRule("review", "the card grants itself trust, which only truekeep records"),
    # Compared with existing memory.
    "unsafe-target": FindingRule("review", "the target is not a regular file", binding=True),
    "name-clash": FindingRule("review", "another card's name differs only in letter case", binding=True),
    "card-exists": FindingRule("review", "create-card, but the card already exists with other content"),
    "no-such-card": FindingRule("review", "update-card, but the card does not exist"),
    "drops-most": FindingRule("review", "the update would drop most of what the card says"),
    "hand-edited": FindingRule(
        "review", "the update would drop lines a person wrote, or restore lines a person removed"
    ),
    "unreadable-card": FindingRule("review", "the existing card's frontmatter cannot be preserved", binding=True),
    "other-repository": FindingRule("review", "the card came from another repository, or from one of the same name"),
    "older-than-card": FindingRule("review", "the handoff was written before the card's last update"),
    "near-duplicate": FindingRule("review", "another card says nearly the same"),
    "same-topic": FindingRule("review", "another card has the same topic"),
    "new-document": FindingRule(
        "review", "the document does not exist yet in .learnings, memory/ops or memory/research"
    ),
    "lesson": FindingRule("review", "agents are shown corrections and gating policies before they begin"),
    "unclear-lesson": FindingRule("review", "the correction or gating policy cannot be read", binding=True),
    "same-heading": FindingRule("review", "the document already has a section with this heading and other text"),
    "likely-covered": FindingRule("review", "another card is likely about the same"),
    "two-values": FindingRule("review", "another card says otherwise"),
    "not-taken": FindingRule(
        "review",
        "ingest skips this file: because of its name, because it is a link, or because its repository cannot be read",
        binding=True,
    ),
    "route-off": FindingRule("review", "automatic filing to this target is disabled", binding=True),
    # Content.
    "secret": FindingRule("review", "the text contains what looks like a credential", binding=True),
    "hidden-text": FindingRule("review", "the text contains invisible characters"),
    "instruction": FindingRule("review", "the text gives orders to the agent that will read it"),
    "own-words": FindingRule("review", "the text repeats what truekeep itself showed the agent"),
    "refuted": FindingRule("review", "the current code refutes a claim in the text"),
    "not-durable": FindingRule(
        "review", "most of it does not last, or is kept better in code, git, a task list or a settings file"
    ),
    # Hints, which do not prevent filing.
    "added-to": FindingRule("promote", "a card covers the topic: what is new is added to it, nothing is dropped"),
    "right-store": FindingRule(
        "promote", "it belongs to another store than the one that was named, and is filed there"
    ),
    "related-card": FindingRule("promote", "a card of another repository is about the same"),
    "moved-since": FindingRule("promote", "something moved since the handoff was written; the new location is filed"),
    "unknown-type": FindingRule("promote", "the type is not one of the eight"),
    "no-title": FindingRule("promote", "there is no title"),
    "no-summary": FindingRule("promote", "there is no summary"),
    "no-topic": FindingRule("promote", "the card's frontmatter has no topic"),
    "owned-keys": FindingRule("promote", "the card sets its own dates or origin; truekeep replaces them"),
    "outside-text": FindingRule("promote", "text before the first section is not filed"),
    "odd-name": FindingRule("promote", "the file name is not YYYY-MM-DD-HHMM-slug.md"),
    "future-date": FindingRule("promote", "the file name or an entry is dated in the future; today's date is used"),
    "already-instructed": FindingRule("promote", "the repository's instruction file already says this"),
    "over-budget": FindingRule("promote", "the document is larger than agents load in full"),
    "relative-time": FindingRule("promote", "a word such as 'currently' means nothing later"),
    "dangling-reference": FindingRule("promote", "'this file' or an opening pronoun means nothing elsewhere"),
    "task-state": FindingRule("promote", "task state belongs in a plan or a log"),
    "code-layout": FindingRule("promote", "where code lives is better read from the code"),
    "git-history": FindingRule("promote", "who changed what is better read from git"),
    "fix-recipe": FindingRule("promote", "the fix is in the code; the commit says why"),
    "about-memory": FindingRule("promote", "that a memory is wrong is corrected in that memory"),
    "config-preference": FindingRule("promote", "a settings file of an editor, shell or formatter holds it"),
}


class Finding(NamedTuple):
    """A problem or hint about a handoff."""

    code: str
    message: str
    line: int | None = None


class HandoffOrigin(NamedTuple):
    """Where a handoff came from. Set by truekeep from the inbox, never read from the text."""

    writer: str
    machine: str
    repository: str
    inbox: str
    name: str


class Splice(NamedTuple):
    """One byte-level change: at this offset of the file, old bytes became new bytes."""

    path: str
    offset: int
    removed: bytes
    inserted: bytes


class FilingOutcome(NamedTuple):
    """The result for one handoff."""

    outcome: str  # promoted, routed, already, review, refused; on failed and skipped the file stays in the inbox
    name: str
    inbox: str
    writer: str
    repository: str
    title: str = ""
    target: str = ""
    findings: tuple[Finding, ...] = ()
    why: str = ""
    difference: tuple[str, ...] = ()  # the planned change, in a dry run


class IngestReport:
    """Counts and warnings of one ingest run."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.counts: dict[str, int] = {}
        self.warnings: list[str] = []
        self.recovered = 0
        self.dry_run = dry_run

    def count(self, outcome: str) -> int:
        return self.counts.get(outcome, 0)

    @property
    def processed(self) -> int:
        return sum(self.count(outcome) for outcome in ("promoted", "routed", "already", "review", "refused"))
