"""Handoffs as files, on a machine with or without the workspace: write one, check some, list those that wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.config import Config
from truekeep.core.errors import BadInput, InvalidHandoff
from truekeep.core.model import OPENCLAW_INBOX, RULES, WRITERS, Finding
from truekeep.core.repository import find_top, repository_name
from truekeep.handoffs.format import compose_handoff, handoff_name, parse_handoff
from truekeep.handoffs.inbox import Inbox, InboxReader, deliver, describe_other_files, find_inboxes, is_handoff_name
from truekeep.handoffs.policy.decision import Decision
from truekeep.handoffs.right_store import choose_document
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace import producer

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

_COMPOSED = ("title", "summary", "facts", "evidence", "card", "update", "document", "topic", "category", "tags")
_NOT_FILED = ("review", "refused")


class WrittenHandoff(NamedTuple):
    """A handoff in an inbox, and what ingest will do with it."""

    path: Path
    writer: str
    root: Path
    decision: Decision
    is_scanned: bool  # ingest looks into this repository
    hints: tuple[Finding, ...]

    @property
    def is_taken(self) -> bool:
        """True if the next ingest takes it."""
        return self.is_scanned and not self.decision.held_up


class LintInput(NamedTuple):
    """A handoff to check: its label, name, bytes, repository and inbox, and why ingest would skip it."""

    shown: str
    name: str
    raw: bytes
    root: Path | None = None
    skipped: str = ""
    inbox: str = ""  # relative to the repository


class LintedHandoff(NamedTuple):
    """What ingest would do with a handoff."""

    file: str
    ok: bool
    outcome: str
    target: str
    problems: tuple[Finding, ...]
    hints: tuple[Finding, ...]
    promise: str  # in words
    findings: tuple[Finding, ...]  # problems and hints in the order of the text


class WaitingHandoff(NamedTuple):
    """A handoff in an inbox."""

    name: str
    inbox: str
    writer: str
    repository: str
    waiting_hours: float


class InboxListing(NamedTuple):
    """The inboxes, and what is in them."""

    inboxes: tuple[Path, ...]
    waiting: tuple[WaitingHandoff, ...]
    not_handoffs: tuple[str, ...]
    warnings: tuple[str, ...]


class CodePolicy(NamedTuple):
    """A code of findings, its meaning, and what it leads to."""

    code: str
    policy: str
    binding: bool
    meaning: str


def list_codes(workspace: Workspace | None) -> list[CodePolicy]:
    config = workspace.config if workspace else Config()
    return [CodePolicy(code, config.policy_for(code), rule.binding, rule.meaning) for code, rule in RULES.items()]


def writers_of(workspace: Workspace | None) -> Mapping[str, str]:
    return {**OPENCLAW_INBOX, **(workspace.config.writers if workspace else WRITERS)}


def check_writer(workspace: Workspace | None, writer: str) -> None:
    """Raise if no inbox is configured for a writer."""
    writers = writers_of(workspace)
    if writer not in writers:
        hint = f"known: {', '.join(writers)}; add others in config.toml"
        raise BadInput(f"no writer is called {writer!r}", hint=hint)


def repository_of(folder: Path) -> Path:
    """The repository that contains a folder, else the folder."""
    start = folder.expanduser().resolve()
    if not start.is_dir():
        raise BadInput(f"{start} is not a folder", hint="name the repository's root with --repo")
    return find_top(start) or start


def is_unscanned(workspace: Workspace | None, root: Path) -> bool:
    """True if this machine keeps the memory, but ingest does not look into the repository."""
    return workspace is not None and not workspace.handoffs.is_scanned(root)


def describe_unscanned(workspace: Workspace, root: Path) -> str:
    if workspace.source is not None:
        return (
            f"no route sends handoffs from {root}: `truekeep connect machine --repo` adds one, or a route of the host"
        )
    return f"ingest does not look into {root}; add it to `repositories` in {workspace.path}/.truekeep/config.toml"


def _judge(
    workspace: Workspace | None, letters: Sequence[tuple[bytes, str, Path | None]], writers: Sequence[str]
) -> list[Decision]:
    """Plan how ingest would file these handoffs. Without a workspace, existing cards are not considered."""
    return workspace.handoffs.lint(letters, writers=writers) if workspace is not None else producer.judge(letters)


# Writing.


def compose(workspace: Workspace | None, root: Path, given: Mapping[str, Any]) -> str:
    """A handoff of parts: title, summary, facts and so on."""
    if given["document"] and (given["card"] or given["update"]):
        raise BadInput("a handoff is for a card or for a document, not both", hint="leave out --document or --card")
    is_own = workspace is not None and root == workspace.path
    repository = "" if is_own else repository_name(root)
    if not any(given[name] for name in ("document", "card", "update", "topic")):
        given = {**given, **_right_store(given, repository)}
    return compose_handoff(
        kind=given["type_"],
        content=given["content"],
        repository=repository,
        has_card=workspace.cards.exists if workspace is not None else lambda _: False,
        **{name: given[name] for name in _COMPOSED},
    )


def _right_store(given: Mapping[str, Any], repository: str) -> dict[str, str]:
    """The document and content of a handoff that names no target and is not for a card."""
    parts = {name: given[name] for name in ("title", "summary", "facts", "content")}
    document, content = choose_document(given["type_"], **parts, repository=repository)
    return {"document": document, "content": content} if document else {}


def write_handoff(
    workspace: Workspace | None, text: str, *, writer: str, root: Path, title: str = ""
) -> WrittenHandoff:
    """Write a handoff into the repository's inbox, unless ingest would not file it.

    `title`: of a text that was composed. Nobody has seen its lines, so problems name none.
    """
    check_writer(workspace, writer)
    name = handoff_name(title or parse_handoff(text).title, datetime.now().astimezone())
    raw = text.encode("utf-8", "surrogateescape")
    (decision,) = _judge(workspace, [(raw, name, root)], [writer])
    if decision.outcome in _NOT_FILED and not decision.is_for_a_person:
        hint = decision.way_out(topic="`--topic TEXT`", update="`--update --card {card}`") or "correct it and try again"
        blocking = [*dict.fromkeys(item._replace(line=None) if title else item for item in decision.blocking)]
        raise InvalidHandoff("not saved: this handoff would be refused", blocking, hint=hint)
    path = deliver(Inbox(root=root, folder=writers_of(workspace)[writer], writer=writer), name, raw)
    hints = tuple(finding for finding in decision.findings if finding not in decision.blocking)
    return WrittenHandoff(path, writer, root, decision, not is_unscanned(workspace, root), hints)


# Checking.


def waiting_files(workspace: Workspace | None) -> list[str]:
    """The handoffs in the inboxes of the current repository."""
    inboxes = find_inboxes([repository_of(Path.cwd())], writers_of(workspace))
    folders = [inbox.path for inbox in inboxes if inbox.path.is_dir()]
    paths = (path for folder in folders for path in sorted(folder.iterdir()))
    return [str(path) for path in paths if path.is_file() and is_handoff_name(path.name)]


def lint_input(file: str, read: Callable[[str], bytes]) -> LintInput:
    """A file to check; `read` reads it as its caller allows."""
    path = Path(file)
    try:
        raw = read(file)
        is_linked = path.is_symlink() or path.stat().st_nlink > 1
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}", hint="name a handoff, or - for standard input") from error
    skipped = ""
    if not is_handoff_name(path.name):
        skipped = "a handoff is called YYYY-MM-DD-HHMM-slug.md"
    elif is_linked:
        skipped = "it is a symlink or a hard link; copy it instead"
    folder = path.resolve().parent
    root = find_top(folder)
    return LintInput(file, path.name, raw, root, skipped, folder.relative_to(root).as_posix() if root else "")


def lint_handoffs(workspace: Workspace | None, inputs: Sequence[LintInput]) -> list[LintedHandoff]:
    """Judge files as ingest would. A handoff in a writer's inbox is that writer's."""
    writer_of = {folder: writer for writer, folder in writers_of(workspace).items()}
    letters = [(item.raw, item.name, item.root) for item in inputs]
    decisions = _judge(workspace, letters, [writer_of.get(item.inbox, "") for item in inputs])
    return [_linted(item, decision) for item, decision in zip(inputs, decisions, strict=True)]


def _linted(item: LintInput, decision: Decision) -> LintedHandoff:
    label = withhold(printable(item.shown))
    if why := item.skipped or decision.held_up:
        stays = (Finding(code="not-taken", message=why),)
        return LintedHandoff(label, False, "review", "", stays, (), "would stay where it is", stays)
    ok = decision.outcome not in _NOT_FILED
    if ok:
        promise = decision.promise
    else:
        promise = "would be turned away" if decision.outcome == "refused" else "would go to review"
    hints = tuple(finding for finding in decision.findings if finding not in decision.blocking)
    problems, findings = decision.blocking, decision.findings
    return LintedHandoff(label, ok, decision.outcome, decision.target, problems, hints, promise, findings)


# Listing.


def list_inboxes(workspace: Workspace | None, repositories: Sequence[str]) -> InboxListing:
    """The waiting handoffs of the configured or given repositories; without a workspace, of the current one."""
    if workspace is not None:
        inboxes = workspace.handoffs.inboxes([Path(repo) for repo in repositories] if repositories else None)
    else:
        inboxes = find_inboxes([repository_of(Path(repo)) for repo in repositories or (".",)], WRITERS)
    reader = InboxReader(inboxes, limit=0, settle=0)
    waiting = []
    for name, inbox in reader.waiting():
        try:
            hours = max(time.time() - os.lstat(inbox.path / name).st_mtime, 0) / 3600
        except OSError:
            continue
        shown = withhold(printable(name))
        waiting.append(WaitingHandoff(shown, str(inbox.path), inbox.writer, str(inbox.root), round(hours, 2)))
    reader.close()
    warnings = [f"{problem.inbox.path}: {problem.why}" for problem in reader.problems]
    others = [withhold(printable(str(path))) for path in reader.others]
    paths = tuple(inbox.path for inbox in inboxes)
    return InboxListing(paths, tuple(waiting), tuple(others), (*warnings, *describe_other_files(reader.others)))
