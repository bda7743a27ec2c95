"""The vocabulary of truekeep: its words, and the values that carry them. Imports nothing of ours.

workspace       the canonical folder of Markdown memory, in OpenClaw's layout
canonical host  the one machine that writes the workspace; all others only produce handoffs
tenure          one machine's time as canonical host; the highest generation counts
harness         a program that runs an agent: Claude Code, Codex, OpenClaw
writer          a harness on a machine that leaves handoffs: claude, codex, others by configuration
producer        a machine that leaves handoffs and is not the canonical host
route           a way by which handoffs come from producers: rsync, rclone or git
inbox           a writer's folder in a repository; done files go to its processed/
handoff         one Markdown file of proposed durable knowledge
letter          a handoff as it lies in an inbox: a name and bytes, nothing believed yet
card            memory/cards/*.md: one topic, frontmatter, durable
index line      the one line in MEMORY.md that points at a card
document        TOOLS.md, USER.md, rules/*.md, .learnings/*.md: only ever appended to
daily log       memory/YYYY-MM-DD.md: what happened, only ever appended to
transcript      what was said in a harness's session: to be searched, never believed
review          memory/handoff-inbox/: where drafts wait for a person
draft           a handoff or a proposal of upkeep with the reasons why it was not filed
archive         memory/archive/: logs of which everything has expired; searched on request only
finding         one thing noticed about a handoff, with a code; the policy says what it leads to
claim           something a memory names that can be checked now: a path, a line, a symbol, a flag, a port, a decision
verdict         confirmed, moved, changed, gone or unverifiable, with evidence
checkout        a folder on this machine that holds a repository
filing          what one handoff becomes: card, document, already filed, review, refused
ledger          what truekeep wrote, when, from which handoff, and the bytes before
entry           one act in the ledger; it can be explained and undone
splice          one change of bytes in one file: at an offset, these bytes became those
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

Policy = Literal["promote", "review", "refuse"]
"""What a finding leads to: filed all the same, a person decides, or turned away."""

Outcome = Literal["promoted", "routed", "already", "review", "refused"]
"""How a handoff ended. Its file is in processed/ afterwards, or still in the inbox if it could not be moved."""

WORKSPACE = "~/.openclaw/workspace"  # where nothing else is said
WRITERS: Mapping[str, str] = MappingProxyType({"claude": ".claude/memory-handoffs", "codex": ".codex/memory-handoffs"})
CARDS = "memory/cards"
REVIEW = "memory/handoff-inbox"
ARCHIVE = "memory/archive"
INDEX = "MEMORY.md"
TEST_MARK = "# truekeep test letter"  # begins a handoff that only tries the way
BEGIN_MARK = "<!-- truekeep:begin"
END_MARK = "<!-- truekeep:end"
"""Whatever truekeep shows to an agent stands between lines with these, so that it is not taken for speech later."""

DOCUMENTS = ("TOOLS.md", "USER.md", ".learnings/LEARNINGS.md", ".learnings/ERRORS.md", ".learnings/FEATURE_REQUESTS.md")
PROTECTED = ("MEMORY.md", "HANDOVER.md", "HEARTBEAT.md", "AGENTS.md", "IDENTITY.md", "SOUL.md", "BOOTSTRAP.md")
HANDOFF_TYPES = ("setup", "workflow", "bugfix", "decision", "security", "preference", "research", "project-context")


class FindingRule(NamedTuple):
    """What a finding's code means, and what it leads to unless the configuration says otherwise."""

    policy: Policy
    meaning: str
    binding: bool = False  # nothing could be filed, or must not be: the configuration cannot say "promote"


RULES: dict[str, FindingRule] = {
    "bug": FindingRule("review", "truekeep failed on it; the error is in bugs.log", binding=True),
    # The file as bytes.
    "empty": FindingRule("review", "the file holds no text", binding=True),
    "too-large": FindingRule("review", "the file is larger than the limit for a handoff", binding=True),
    "not-text": FindingRule("review", "the file is not UTF-8 text, or holds NUL bytes", binding=True),
    "conflict-copy": FindingRule("review", "a sync tool made this copy because two versions of the file met"),
    "conflict-markers": FindingRule("review", "the text holds git conflict markers", binding=True),
    # The handoff's form.
    "not-a-handoff": FindingRule("review", "none of the handoff's sections is there", binding=True),
    "section-twice": FindingRule("review", "a section stands twice, so it is unclear which one counts", binding=True),
    "unclear-section": FindingRule("review", "a section heading stands where content may be meant", binding=True),
    "open-fence": FindingRule(
        "review", "a code fence or comment is never closed, so the rest may be cut off", binding=True
    ),
    "unclear-action": FindingRule(
        "review", "the recommended memory action is missing or not one of the three", binding=True
    ),
    "both-routes": FindingRule("review", "a card and a document are both asked for", binding=True),
    "no-target": FindingRule("review", "the target is missing", binding=True),
    "bad-card-name": FindingRule("review", "the target card's name is not allowed", binding=True),
    "bad-document": FindingRule("review", "the target document is not one that handoffs may append to", binding=True),
    "instruction-file": FindingRule("review", "agents would read a file of this name as instructions", binding=True),
    "no-content": FindingRule("review", "the suggested content is missing", binding=True),
    "no-frontmatter": FindingRule("review", "the suggested card does not start with frontmatter", binding=True),
    "bad-frontmatter": FindingRule("review", "the suggested card's frontmatter cannot be read safely", binding=True),
    "section-in-document": FindingRule("review", "the document content holds a ## heading", binding=True),
    "claims-trust": FindingRule("review", "the card grants itself trust, which only truekeep records"),
    # What the store says to it.
    "unsafe-target": FindingRule("review", "the target is a symlink, a folder or no ordinary file", binding=True),
    "name-clash": FindingRule("review", "another card's name differs only in letter case", binding=True),
    "card-exists": FindingRule("review", "create-card, but the card is there with other content"),
    "no-such-card": FindingRule("review", "update-card, but there is no such card"),
    "drops-most": FindingRule("review", "the update would drop most of what the card says"),
    "hand-edited": FindingRule("review", "the update would drop a person's lines, or bring back what a person removed"),
    "unreadable-card": FindingRule(
        "review", "the card that is there has frontmatter that cannot be kept", binding=True
    ),
    "other-repository": FindingRule("review", "the card came from another repository"),
    "older-than-card": FindingRule("review", "the handoff was written before the card's last update"),
    "near-duplicate": FindingRule("review", "another card says nearly the same"),
    "same-topic": FindingRule("review", "another card has the same topic"),
    "same-heading": FindingRule("review", "the document has a section with this heading, and it says something else"),
    "two-values": FindingRule("review", "another card gives a thing another value (told by `card write`)"),
    "not-taken": FindingRule(
        "review",
        "ingest does not take this file: by its name, because it is a link, or its repository cannot be read",
        binding=True,
    ),
    "route-off": FindingRule("review", "this automatic route is switched off", binding=True),
    # What the text carries.
    "secret": FindingRule("review", "the text holds what looks like a credential", binding=True),
    "hidden-text": FindingRule("review", "the text holds characters that a reader cannot see"),
    "instruction": FindingRule("review", "the text gives orders to the agent that will read it"),
    "own-words": FindingRule(
        "review", "the text holds what truekeep itself had told the agent; it would only be repeated"
    ),
    "refuted": FindingRule("review", "today's code refutes something that it names"),
    # Hints: filed all the same.
    "moved-since": FindingRule("promote", "something moved since it was written; it is filed with the new place"),
    "unknown-type": FindingRule("promote", "the type is not one of the eight"),
    "no-title": FindingRule("promote", "there is no title"),
    "no-summary": FindingRule("promote", "there is no summary"),
    "no-topic": FindingRule("promote", "the card's frontmatter has no topic"),
    "owned-keys": FindingRule("promote", "the card sets dates or origin itself; truekeep writes its own"),
    "outside-text": FindingRule("promote", "text before the first section is not filed"),
    "odd-name": FindingRule("promote", "the file name is not YYYY-MM-DD-HHMM-slug.md"),
    "future-date": FindingRule("promote", "the file name or an entry is dated in the future; today counts"),
    "already-instructed": FindingRule("promote", "the repository's instruction file says this already"),
    "over-budget": FindingRule("promote", "the document is larger than agents will load whole"),
    "relative-time": FindingRule("promote", "a word such as 'currently' means nothing later"),
    "dangling-reference": FindingRule("promote", "'this file' or an opening pronoun means nothing elsewhere"),
    "task-state": FindingRule("promote", "task state belongs in a plan or a log"),
    "code-layout": FindingRule("promote", "where code lives is better read from the code"),
    "git-history": FindingRule("promote", "who changed what is better read from git"),
    "fix-recipe": FindingRule("promote", "the fix is in the code; the commit says why"),
}


class Finding(NamedTuple):
    """One thing noticed about a handoff."""

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
    """At this offset of this file, these bytes became those."""

    path: str
    offset: int
    removed: bytes
    inserted: bytes


class FilingOutcome(NamedTuple):
    """How one handoff ended."""

    outcome: str  # promoted, routed, already, review, refused; failed and skipped leave the file where it is
    name: str
    inbox: str
    writer: str
    repository: str
    title: str = ""
    target: str = ""
    findings: tuple[Finding, ...] = ()
    why: str = ""
    difference: tuple[str, ...] = ()  # what would be written, in a dry run


class IngestReport:
    """What a run did, in numbers."""

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


def as_stamp(when: datetime) -> str:
    """A moment as the ledger, the drafts and the logs have it."""
    from datetime import UTC

    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
