"""Checkpoint: what a session leaves, each part in its place. Text ⇄ values and plans; the desk writes them.

The handover is overwritten, the heartbeat's sections are replaced, everything else is appended: the summary to the
day's log, decisions to the month's file, configuration changes to the operations changelog, a sub-agent's result to its
own file, a project's status to the project's. What is already in a log is never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from truekeep.errors import BadInput
from truekeep.wake import HANDOVER, HEARTBEAT, UNSAID, log_paths, project_paths

HANDOVER_PARTS = ("Last Action", "System State", "Scope Rules", "Dev Model", "Next Actions")
HEARTBEAT_PARTS = ("Now", "Next", "Blockers")
LASTING = ("Scope Rules", "Dev Model")  # hold until something else is said
OPS_LOG = "memory/ops/CHANGELOG.md"
LARGEST = 64_000  # characters of one part
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_HEADING = re.compile(r" {0,3}##[ \t]+(.+?)[ \t]*#*[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DEEP = re.compile(r"^( {0,3})#{1,2}(?=\s)")
_ALIASES = {
    "last action": "last_action", "system state": "system_state", "scope rules": "scope_rules",
    "dev model": "dev_model", "next actions": "next_actions", "summary": "summary", "session summary": "summary",
    "now": "now", "next": "next",
    "blockers": "blockers", "blocker": "blockers", "decisions": "decisions", "decision": "decisions",
    "configuration changes": "changes", "configuration": "changes", "config changes": "changes", "changes": "changes",
    "project status": "project", "project": "project", "status": "project",
}  # fmt: skip
_KEPT = re.compile(r"\(said \d{4}-\d{2}-\d{2} \d{2}:\d{2}.*\)$", re.MULTILINE)  # above what was not said again
_SUBAGENT = re.compile(r"sub-?agents?:? +(.+)\Z", re.IGNORECASE)
_PROJECT = re.compile(r"project:? +(.+)\Z", re.IGNORECASE)


class Checkpoint(NamedTuple):
    """What a session leaves. Empty parts change nothing."""

    last_action: str = ""
    system_state: str = ""
    scope_rules: str = ""
    dev_model: str = ""
    next_actions: str = ""
    summary: str = ""
    now: str = ""
    next: str = ""
    blockers: str = ""
    project: str = ""  # its status
    project_name: str = ""
    decisions: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()  # of configuration or routing
    subagents: tuple[tuple[str, str], ...] = ()  # label and result

    @property
    def has_handover(self) -> bool:
        return any((self.last_action, self.system_state, self.scope_rules, self.dev_model, self.next_actions))

    @property
    def has_heartbeat(self) -> bool:
        return any((self.now, self.next, self.blockers))

    def parts(self) -> Iterable[tuple[str, str]]:
        """Every text that was given, with its name."""
        for name, value in self._asdict().items():
            if isinstance(value, str):
                if value:
                    yield name, value
            else:
                for number, item in enumerate(value, start=1):
                    yield f"{name} {number}", item if isinstance(item, str) else item[1]


class Write(NamedTuple):
    """One change of one file."""

    path: str
    text: str
    mode: str  # overwrite, append, sections
    title: str = ""  # of a file that has to be begun
    sections: tuple[tuple[str, str], ...] = ()  # for mode sections: heading and its new text


# --- What was given --------------------------------------------------------------------------------------------------


def parse_checkpoint(text: str) -> Checkpoint:
    """JSON or Markdown, as an agent writes it on standard input. Anything unknown is an error that names it."""
    bare = text.strip().lstrip("\ufeff")
    if not bare:
        raise BadInput("the checkpoint is empty", hint="give JSON or Markdown on standard input, or options")
    if bare.startswith("{"):
        try:
            given = json.loads(bare)
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadInput(
                f"the checkpoint is no JSON: {error}", hint="`truekeep checkpoint --help` shows the keys"
            ) from error
        return from_values(given)
    return _from_markdown(bare)


def from_values(given: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from JSON values: texts, or lists of texts."""
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = _ALIASES.get(key.replace("_", " ").replace("-", " ").casefold(), key)
        if name == "subagents" or key.casefold() in ("subagents", "subagent"):
            pairs = value.items() if isinstance(value, dict) else None
            if pairs is None or not all(isinstance(item, str) for pair in pairs for item in pair):
                raise BadInput(
                    "`subagents` must be an object of label and result", hint='{"subagents": {"docs": "..."}}'
                )
            values["subagents"] = tuple((label, result.strip()) for label, result in value.items())
        elif name == "project" and isinstance(value, dict):
            values["project"] = _text("project.status", value.get("status", ""))
            values["project_name"] = _text("project.name", value.get("name", ""))
        elif name in ("decisions", "changes"):
            values[name] = tuple(_items(key, value))
        elif name in Checkpoint._fields:
            values[name] = _text(key, value)
        else:
            known = ", ".join(Checkpoint._fields)
            raise BadInput(f"a checkpoint has no part {key[:60]!r}", hint=f"its parts are {known}")
    return checked(Checkpoint(**values))


def _from_markdown(text: str) -> Checkpoint:
    """Sections by their `##` headings; without any, all of it is the summary."""
    sections: dict[str, list[str]] = {}
    subagents: dict[str, list[str]] = {}
    project_name = ""
    lines = sections.setdefault("", [])
    fence = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        if (opened := _FENCE.match(line)) is not None:
            if not fence:
                fence = opened[1]
            elif line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        title = heading[1]
        name = _ALIASES.get(title.casefold())
        if name is not None:
            lines = sections.setdefault(name, [])
        elif (match := _SUBAGENT.match(title)) is not None:
            lines = subagents.setdefault(match[1].strip(), [])
        elif (match := _PROJECT.match(title)) is not None:
            project_name = match[1].strip()
            lines = sections.setdefault("project", [])
        else:
            raise BadInput(
                f"a checkpoint has no section {title[:60]!r}",
                hint=f"among its sections are {', '.join((*HANDOVER_PARTS, 'Summary', *HEARTBEAT_PARTS, 'Decisions'))}",
            )
    loose = "\n".join(line for line in sections.pop("") if not line.startswith("# ")).strip()
    values: dict[str, Any] = {name: "\n".join(lines).strip() for name, lines in sections.items()}
    if loose:
        values["summary"] = "\n\n".join(part for part in (loose, values.get("summary", "")) if part)
    for name in ("decisions", "changes"):
        if name in values:
            values[name] = tuple(_list_items(values[name]))
    found = tuple((label, "\n".join(lines).strip()) for label, lines in subagents.items())
    return checked(Checkpoint(**values, project_name=project_name, subagents=found))


def checked(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, if everything in it can be filed."""
    for label, _ in checkpoint.subagents:
        if not _LABEL.match(label):
            raise BadInput(
                f"{label[:60]!r} cannot name a sub-agent's file", hint="letters, digits, dots, dashes, underscores"
            )
    for name, text in checkpoint.parts():
        if len(text) > LARGEST:
            raise BadInput(f"{name} has {len(text)} characters", hint=f"at most {LARGEST}; a checkpoint is a summary")
    if checkpoint.blockers.strip("- .").casefold() == "none":
        checkpoint = checkpoint._replace(blockers="none")
    if checkpoint == Checkpoint() or not any(True for name, _ in checkpoint.parts() if name != "project_name"):
        raise BadInput(
            "the checkpoint says nothing", hint="give a summary at least: `truekeep checkpoint --summary TEXT`"
        )
    if checkpoint.project_name and not checkpoint.project:
        raise BadInput(f"nothing is said of the project {checkpoint.project_name!r}", hint="give its status")
    return checkpoint


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(f"- {item.strip()}" for item in value if item.strip())
    raise BadInput(f"{name!r} must be a text or a list of texts", hint="`truekeep checkpoint --help` shows the keys")


def _items(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return _list_items(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item.strip() for item in value if item.strip()]
    raise BadInput(f"{name!r} must be a text or a list of texts", hint="`truekeep checkpoint --help` shows the keys")


def _list_items(text: str) -> list[str]:
    """The items of a list; a text without any is one item."""
    items: list[list[str]] = []
    for line in text.strip().split("\n"):
        match = re.match(r"\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+(.*)", line)
        if match is not None:
            items.append([match[1]])
        elif items:
            items[-1].append(line.strip())
        elif line.strip():
            items.append([line.strip()])
    return [" ".join(part for part in item if part) for item in items]


# --- Where it goes ---------------------------------------------------------------------------------------------------


def plan_writes(
    checkpoint: Checkpoint, read: Callable[[str], str | None], *, now: datetime, by: str, project: str, daily: bool
) -> list[Write]:
    """What is to be written, and where. `by` says who speaks; `project` is the slug of the agent's repository.

    `daily`: logs are in memory/daily. `read` gives a file as it is, for what stays of the last handover.
    """
    writes = []
    if checkpoint.has_handover:
        writes.append(Write(HANDOVER, _handover(checkpoint, read(HANDOVER) or "", now, by), "overwrite"))
    if summary := checkpoint.summary or checkpoint.last_action:
        writes.append(log_entry(summary, now=now, by=by, daily=daily))
    if checkpoint.has_heartbeat:
        given = zip(HEARTBEAT_PARTS, (checkpoint.now, checkpoint.next, checkpoint.blockers), strict=True)
        writes.append(plan_heartbeat({part: text for part, text in given if text}, now=now))
    writes += [plan_decision(item, now=now, by=by) for item in checkpoint.decisions]
    for item in checkpoint.changes:
        writes.append(Write(OPS_LOG, _dated(item, now, by), "append", "Operations changelog"))
    if checkpoint.project:
        name = checkpoint.project_name or project
        writes.append(plan_project(name, checkpoint.project, read, now=now, by=by))
    for label, result in checkpoint.subagents:
        text = f"## {now:%Y-%m-%d %H:%M}{_by(by)}\n\n{_within(result)}\n"
        writes.append(Write(f"memory/checkpoints/subagent-{label}.md", text, "append", f"Sub-agent {label}"))
    return writes


def log_entry(text: str, *, now: datetime, by: str, daily: bool) -> Write:
    """An entry in the log of the day."""
    path = log_paths(now.date())[daily]
    return Write(path, f"## {now:%H:%M}{_by(by)}\n\n{_within(text)}\n", "append", f"{now:%Y-%m-%d}")


def plan_decision(text: str, *, now: datetime, by: str) -> Write:
    return Write(f"memory/decisions/{now:%Y-%m}.md", _dated(text, now, by), "append", f"Decisions, {now:%Y-%m}")


def plan_heartbeat(parts: Mapping[str, str], *, now: datetime) -> Write:
    """The given sections of the heartbeat replaced; the others stay."""
    sections = [(part, _within(text)) for part, text in parts.items()]
    return Write(HEARTBEAT, f"Updated {now:%Y-%m-%d %H:%M}", "sections", "Heartbeat", tuple(sections))


def plan_project(name: str, status: str, read: Callable[[str], str | None], *, now: datetime, by: str) -> Write:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80]
    if not slug:
        raise BadInput("which project this is, is not known", hint="name it, or run this in its repository")
    paths = project_paths(slug)
    path = next((path for path in paths if read(path) is not None), paths[0])
    status = f"{_within(status)}\n\n({now:%Y-%m-%d}{_by(by)})"
    return Write(path, "", "sections", name.rpartition("/")[2], (("Status", status),))


def _handover(checkpoint: Checkpoint, before: str, now: datetime, by: str) -> str:
    """The whole handover. Rules that were not repeated still hold; what else was not, stays with its day."""
    parts = [f"# Handover\n\n{now:%Y-%m-%d %H:%M}{_by(by)}\n"]
    old = sections_of(before)
    stamp = re.search(r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}.*$", before.replace("\r\n", "\n"), re.MULTILINE)
    for part in HANDOVER_PARTS:
        text = getattr(checkpoint, _ALIASES[part.casefold()])
        if not text:
            text = old.get(part, "").replace(UNSAID, "").strip()
            is_dated = part in LASTING or _KEPT.match(text) is not None
            text = f"(said {stamp[0]})\n\n{text}" if text and stamp and not is_dated else text
        parts.append(f"## {part}\n\n{_within(text) if text else UNSAID}\n")
    return "\n".join(parts)


def sections_of(text: str) -> dict[str, str]:
    """The `##` sections of a file, by their headings."""
    from truekeep.markdown import TooComplex, outline

    text = text.replace("\r\n", "\n")
    try:
        headings = [heading for heading in outline(text).headings if heading.level <= 2]
    except TooComplex:
        return {}
    ends = [*(heading.start for heading in headings[1:]), len(text)]
    found: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=False):  # one end too many where there is no heading
        if heading.level == 2:
            found.setdefault(heading.text, text[heading.end : end].strip())
    return found


def with_sections(text: str, write: Write) -> str:
    """A file with some of its sections replaced, or added at its end; every other byte stays."""
    from truekeep.markdown import TooComplex, outline

    newline = "\r\n" if "\r\n" in text else "\n"
    flat = text.replace("\r\n", "\n")
    if not flat.strip():
        flat = f"# {write.title}\n"
    for name, body in write.sections:
        try:
            seen = outline(flat)
        except TooComplex as error:
            raise BadInput(f"{write.path} is too involved to be edited", hint="mend it by hand") from error
        if seen.open_at is not None:
            raise BadInput(f"{write.path}:{seen.open_at} opens a fence that is never closed", hint="close it by hand")
        headings = [heading for heading in seen.headings if heading.level <= 2]
        new = f"## {name}\n\n{body}\n"
        for heading, following in zip(headings, [*headings[1:], None], strict=False):
            if heading.level == 2 and heading.text.casefold() == name.casefold():
                end = following.start if following else len(flat)
                flat = flat[: heading.start] + new + ("\n" if following else "") + flat[end:]
                break
        else:
            flat = flat.rstrip("\n") + f"\n\n{new}"
    if write.text:
        flat = _with_stamp(flat, write.text)
    return flat.replace("\n", newline) if newline != "\n" else flat


def _with_stamp(text: str, stamp: str) -> str:
    """The line below the title that says when a file was brought up to date."""
    match = re.search(r"^Updated \d{4}-\d{2}-\d{2} \d{2}:\d{2}$", text, re.MULTILINE)
    if match is not None:
        return text[: match.start()] + stamp + text[match.end() :]
    head, newline, rest = text.partition("\n")
    return f"{head}\n\n{stamp}\n{rest}" if head.startswith("# ") and newline else f"{stamp}\n\n{text}"


def appended(existing: str, write: Write) -> str:
    """What is added to the end of a file, the blank line before it included; a new file begins with its title."""
    if not existing:
        return f"# {write.title}\n\n{write.text}"
    is_list = write.text.startswith("- ") and existing.rstrip("\n").rpartition("\n")[2].startswith("- ")
    wanted = 1 if is_list else 2
    ends = len(existing) - len(existing.rstrip("\n"))
    return "\n" * max(0, wanted - ends) + write.text


def _dated(text: str, now: datetime, by: str) -> str:
    flat = " ".join(_within(text).split())
    return f"- {now:%Y-%m-%d} {flat}{f' ({by})' if by else ''}\n"


def _by(by: str) -> str:
    return f", {by}" if by else ""


def _within(text: str) -> str:
    """A text that stands below a heading of level two: its own headings go deeper, but for what is code."""
    lines = []
    fence = ""
    for line in text.strip().split("\n"):
        if (opened := _FENCE.match(line)) is not None:
            if not fence:
                fence = opened[1]
            elif line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        lines.append(line if fence else _DEEP.sub(r"\1###", line))
    return "\n".join([*lines, fence] if fence else lines)


def as_handoffs(checkpoint: Checkpoint, writes: Sequence[Write], *, now: datetime) -> list[tuple[str, str]]:
    """The same for a machine that may not write memory: the target document and the content of a handoff each.

    The handover and the heartbeat are the canonical host's own; what they would say here goes into the day's log.
    """
    log = log_paths(now.date())[0]
    found: dict[str, list[str]] = {}
    for write in writes:
        if write.mode == "append":
            found.setdefault(write.path, []).append(write.text)
        elif write.mode == "sections":
            path = log if write.path == HEARTBEAT else write.path
            found.setdefault(path, []).extend(f"### {name}\n\n{body}\n" for name, body in write.sections)
        else:
            given = ((part, getattr(checkpoint, _ALIASES[part.casefold()])) for part in HANDOVER_PARTS)
            parts = [f"### {part}\n\n{_within(text)}\n" for part, text in given if text]
            found.setdefault(log, []).extend(parts)
    return [(path, _within("\n".join(texts))) for path, texts in found.items()]
