"""Checkpoints: parses what a session leaves and plans where each part is written.

The handover of this repository is overwritten, the sections of the heartbeat, of the working context and a project's
status are replaced, everything else is appended: the summary and observations to the day's log, decisions to the
month's file, configuration changes to the operations changelog, a sub-agent's result to its own file. Existing log
entries are never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from truekeep.core.errors import BadInput
from truekeep.memory.card import is_reserved, project_slug, short_name
from truekeep.memory.journal import (
    STATUS,
    dated_item,
    heading_of,
    sent_entry,
    sent_item,
    sent_status,
    stamp_of,
    title_of,
)
from truekeep.memory.project_files import project_paths
from truekeep.memory.sections import iter_lines, plain_newlines, within
from truekeep.sessions.handover import (
    RepositoryHandover,
    find_stamp,
    handover_name,
    is_of,
    render_handovers,
    split_handovers,
    without_titles,
)
from truekeep.sessions.state_sections import CONTEXT, HANDOVER, HEARTBEAT, UNSAID
from truekeep.sessions.wake import log_paths
from truekeep.text.injection import find_instructions
from truekeep.text.markdown import TooComplex, outline, peel_fence

HANDOVER_PARTS = ("Last Action", "System State", "Scope Rules", "Dev Model", "Next Actions")
HEARTBEAT_PARTS = ("Now", "Next", "Blockers")
CONTEXT_PARTS = ("Last Action", "System State", "Next Actions")  # where no context is given
IMPORTANCE_BY_TYPE = {"decision": 0.9, "milestone": 0.85, "lesson": 0.7, "context": 0.3}
OPS_LOG = "memory/ops/CHANGELOG.md"
MAX_PART_LENGTH = 64_000
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_HEADING = re.compile(r" {0,3}##[ \t]+(.+?)[ \t]*#*[ \t]*\Z")
_TITLE = re.compile(r"\A\s*# [^\n]*\n")
_JSON_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*jsonc?[ \t]*(?=\n)", re.IGNORECASE)
_ALIASES = {
    "last action": "last_action", "system state": "system_state", "scope rules": "scope_rules",
    "dev model": "dev_model", "next actions": "next_actions", "summary": "summary", "session summary": "summary",
    "now": "now", "next": "next",
    "blockers": "blockers", "blocker": "blockers", "decisions": "decisions", "decision": "decisions",
    "configuration changes": "changes", "configuration": "changes", "config changes": "changes", "changes": "changes",
    "project status": "project", "project": "project", "status": "project",
    "active context": "active_context", "context": "active_context", "working context": "active_context",
    "observations": "observations", "observation": "observations",
}  # fmt: skip
# A paragraph or an item that is only "none".
_NONE = re.compile(r"^(?:(?:[-*+] )+|\A|(?<=\n\n))none\.?[ \t]*(?:\n(?=\n|[-*+] )|\Z)", re.IGNORECASE | re.MULTILINE)
_KEPT = re.compile(
    r"\(said \d{4}-\d{2}-\d{2} \d{2}:\d{2}.*\)$", re.MULTILINE
)  # above parts taken over from the last handover
_SUBAGENT = re.compile(r"sub-?agents?:? +(.+)\Z", re.IGNORECASE)
_PROJECT = re.compile(r"project:? +(.+)\Z", re.IGNORECASE)
_TYPE = re.compile(r"[^\W_][\w-]{0,29}\Z")


class Checkpoint(NamedTuple):
    """The parts of a checkpoint. Empty parts change nothing."""

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
    observations: tuple[str, ...] = ()  # for the day's log, each with its importance tag
    active_context: str = ""  # what the next session needs; else made of the handover
    subagents: tuple[tuple[str, str], ...] = ()  # label and result

    @property
    def has_handover(self) -> bool:
        return any((self.last_action, self.system_state, self.scope_rules, self.dev_model, self.next_actions))

    @property
    def has_heartbeat(self) -> bool:
        return any((self.now, self.next, self.blockers))

    def parts(self) -> Iterable[tuple[str, str]]:
        """Every given text, with its name."""
        for name, value in self._asdict().items():
            if isinstance(value, str):
                if value:
                    yield name, value
            else:
                for number, item in enumerate(value, start=1):
                    yield f"{name} {number}", item if isinstance(item, str) else item[1]


class Write(NamedTuple):
    """One change to one file."""

    path: str
    text: str  # for mode sections: the stamp below the title
    mode: str  # overwrite, append, sections
    title: str = ""  # of a new file
    sections: tuple[tuple[str, str], ...] = ()  # for mode sections: heading and its new text
    is_optional: bool = False  # a file that cannot be edited is left as it is


# --- Input -----------------------------------------------------------------------------------------------------------


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse JSON or Markdown from standard input. Raises BadInput for unknown parts."""
    bare = plain_newlines(text).strip().lstrip("\ufeff")
    bare = peel_fence(_JSON_FENCE.sub(r"\1", bare, count=1) if _JSON_FENCE.match(bare) else bare).strip()
    if not bare:
        raise BadInput("the checkpoint is empty", hint="give JSON or Markdown on standard input, or options")
    if bare[0] in '{["' or bare in ("null", "true", "false"):
        try:
            given = json.loads(bare)
        except (json.JSONDecodeError, RecursionError) as error:
            if bare[0] != "{":
                return _from_markdown(bare)  # starts with a link or a quotation
            raise BadInput(
                f"the checkpoint is not valid JSON: {error}", hint="see the keys in `truekeep checkpoint --help`"
            ) from error
        if not isinstance(given, dict):
            raise BadInput(
                "the checkpoint is not a JSON object", hint='give one such as {"summary": "...", "decisions": []}'
            )
        return from_values(given)
    return _from_markdown(bare)


def from_values(given: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from JSON values: texts, or lists of texts. Two names for one part are joined."""
    values: dict[str, Any] = {}
    for key, value in given.items():
        for name, part in _parts_of(key, value):
            values[name] = _joined(name, values[name], part) if name in values else part
    return checked(Checkpoint(**values))


def _parts_of(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    words = key.replace("_", " ").replace("-", " ").casefold()
    name = _ALIASES.get(words, key)
    if words in ("subagents", "subagent", "sub agents", "sub agent"):
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise BadInput("`subagents` must be an object of label and result", hint='{"subagents": {"docs": "..."}}')
        yield "subagents", tuple(value.items())
    elif name == "project" and isinstance(value, dict):
        if unknown := [other for other in value if other not in ("status", "name")]:
            raise BadInput(f"a project has no part {unknown[0][:60]!r}", hint="its parts are status, name")
        yield "project", _text("project.status", value.get("status", ""))
        yield "project_name", _text("project.name", value.get("name", ""))
    elif name in ("decisions", "changes"):
        yield name, tuple(_items(key, value))
    elif name == "observations":
        yield name, tuple(_observations(key, value))
    elif name in Checkpoint._fields:
        yield name, _text(key, value)
    else:
        known = ", ".join(Checkpoint._fields)
        raise BadInput(f"a checkpoint has no part {key[:60]!r}", hint=f"its parts are {known}")


def _observations(key: str, value: Any) -> Iterator[str]:
    """Texts, each with a tag of its own or without; or objects with text, type and importance."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            if unknown := [other for other in item if other not in ("text", "type", "importance")]:
                raise BadInput(
                    f"an observation has no part {unknown[0][:60]!r}", hint="its parts are text, type, importance"
                )
            yield tagged(item["text"], item.get("type") or "", item.get("importance"))
        else:
            yield from _items(key, item)


def tagged(text: str, kind: str = "", importance: Any = None) -> str:
    """A text with an importance tag, such as [lesson|i=0.7]. The type alone has a usual importance. Raises BadInput."""
    if not kind and importance is None:
        return text
    kind = kind or "context"
    if not isinstance(kind, str) or not _TYPE.match(kind):
        raise BadInput(f"{str(kind)[:40]!r} cannot be a type", hint="decision, milestone, lesson, context or one word")
    if importance is None:
        importance = IMPORTANCE_BY_TYPE.get(kind.casefold(), 0.5)
    try:
        value = float(importance)
    except (TypeError, ValueError):
        value = -1.0
    if isinstance(importance, bool) or not 0 <= value <= 1:
        raise BadInput(f"{str(importance)[:40]!r} is not an importance", hint="a number from 0 to 1, such as 0.7")
    return f"[{kind}|i={value:g}] {text.strip()}"


def merged(first: Checkpoint, second: Checkpoint) -> Checkpoint:
    """Both checkpoints joined."""
    pairs = zip(Checkpoint._fields, first, second, strict=True)
    return checked(Checkpoint(**{name: _joined(name, one, other) for name, one, other in pairs}))


def _joined(name: str, first: Any, second: Any) -> Any:
    if not isinstance(first, str):
        return first + second
    if not first or not second or first == second:
        return first or second
    if name == "project_name":
        raise BadInput(
            f"the checkpoint names two projects: {first!r} and {second!r}", hint="write one checkpoint for each"
        )
    are_lists = first.startswith("- ") and second.startswith("- ")
    return f"{first}\n{second}" if are_lists else f"{first}\n\n{second}"


def _from_markdown(text: str) -> Checkpoint:
    """A checkpoint from `##` sections; without any, the whole text is the summary."""
    sections: dict[str, list[str]] = {}
    subagents: list[tuple[str, list[str]]] = []
    project_name = ""
    lines = sections.setdefault("", [])
    for line, is_code in iter_lines(text):
        heading = None if is_code else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        title = heading[1]
        name = _ALIASES.get(title.casefold())
        if name is not None:
            lines = sections.setdefault(name, [])
        elif (match := _SUBAGENT.match(title)) is not None:
            lines = []
            subagents.append((match[1].strip(), lines))
        elif (match := _PROJECT.match(title)) is not None:
            project_name = _joined("project_name", project_name, match[1].strip())
            lines = sections.setdefault("project", [])
        else:
            raise BadInput(
                f"a checkpoint has no section {title[:60]!r}",
                hint=f"its sections include {', '.join((*HANDOVER_PARTS, 'Summary', *HEARTBEAT_PARTS, 'Decisions'))}",
            )
    loose = "\n".join(sections.pop(""))
    if sections or subagents:
        loose = _TITLE.sub("", f"{loose}\n", count=1)  # the title
    values: dict[str, Any] = {name: "\n".join(lines).strip() for name, lines in sections.items()}
    values["summary"] = _joined("summary", loose.strip(), values.get("summary", ""))
    for name in ("decisions", "changes", "observations"):
        if name in values:
            values[name] = tuple(_list_items(values[name]))
    found = tuple((label, "\n".join(lines)) for label, lines in subagents)
    return checked(Checkpoint(**values, project_name=project_name, subagents=found))


def checked(checkpoint: Checkpoint) -> Checkpoint:
    """Validate a checkpoint: normalise newlines and drop empty parts. Raises BadInput."""
    values: dict[str, Any] = {}
    for name, value in checkpoint._asdict().items():
        if isinstance(value, str):
            values[name] = plain_newlines(value).strip()
        elif name == "subagents":
            pairs = ((label.lower(), plain_newlines(result).strip()) for label, result in value)
            values[name] = tuple((label, result) for label, result in pairs if result)
        else:
            values[name] = tuple(text for item in value if (text := plain_newlines(item).strip()))
    values["project_name"] = " ".join(values["project_name"].split())
    for name in ("blockers", "next_actions"):
        values[name] = _without_none(values[name])
    checkpoint = Checkpoint(**values)
    for label, _ in checkpoint.subagents:
        if not _LABEL.match(label) or is_reserved(label):
            raise BadInput(
                f"{label[:60]!r} cannot name a sub-agent's file", hint="letters, digits, dots, dashes, underscores"
            )
    for name, text in checkpoint.parts():
        if len(text) > MAX_PART_LENGTH:
            raise BadInput(
                f"{name} has {len(text)} characters", hint=f"shorten it to {MAX_PART_LENGTH}; a checkpoint is a summary"
            )
    if not any(True for name, _ in checkpoint.parts() if name != "project_name"):
        raise BadInput("the checkpoint is empty", hint="give at least a summary: `truekeep checkpoint --summary TEXT`")
    if checkpoint.project_name and not checkpoint.project:
        raise BadInput(f"the project {checkpoint.project_name!r} has no status", hint="give its status")
    return checkpoint


def _without_none(text: str) -> str:
    """The text without `none` items, unless there is nothing else."""
    if "none" not in text.casefold():
        return text
    real = _NONE.sub("", text).strip("\n")
    return real if real.strip() else "none"


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
    """The items of a list; a text that is not a list is one item."""
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


# --- Targets ---------------------------------------------------------------------------------------------------------


def plan_writes(
    checkpoint: Checkpoint,
    read: Callable[[str], str | None],
    place: Callable[[str], str],
    *,
    now: datetime,
    by: str,
    repository: str = "",
) -> list[Write]:
    """Plan the writes of a checkpoint. `by` is the author; `repository` is the one that the agent works in.

    `read` returns an existing file, for the parts of the last handover that stay; `place` returns a journal's path.
    """
    writes = []
    if checkpoint.has_handover:
        writes.append(Write(HANDOVER, _handover(checkpoint, read(HANDOVER) or "", now, by, repository), "overwrite"))
    if entry := _log_entry(checkpoint):
        writes.append(_entry(place(log_paths(now.date())[0]), entry, now, by))
    if checkpoint.has_heartbeat:
        sections = tuple((part, within(text)) for part, text in _given(checkpoint, HEARTBEAT_PARTS))
        writes.append(Write(HEARTBEAT, f"Updated {now:%Y-%m-%d %H:%M}", "sections", "Heartbeat", sections))
    for path, items in ((_decisions_path(now), checkpoint.decisions), (OPS_LOG, checkpoint.changes)):
        writes += [Write(path, dated_item(now.date(), by, item), "append", title_of(path)) for item in items]
    if checkpoint.project:
        name = checkpoint.project_name or project_slug(short_name(repository))
        status = f"{stamp_of(now, by)}\n\n{within(checkpoint.project)}"
        path = place(_project_path(name))
        writes.append(Write(path, "", "sections", name.rpartition("/")[2] or name, ((STATUS, status),)))
    for label, result in checkpoint.subagents:
        writes.append(_entry(place(_subagent_path(label)), result, now, by))
    if context := _context(checkpoint):
        name = handover_name(_safe_repository(repository)) or "Outside of repositories"
        section = (name, f"{stamp_of(now, by)}\n\n{context}")
        is_optional = not checkpoint.active_context
        writes.append(Write(CONTEXT, "", "sections", "Active context", (section,), is_optional))
    return writes


def _context(checkpoint: Checkpoint) -> str:
    """What the next session needs to know: as it was given, else from the handover."""
    if checkpoint.active_context:
        return within(checkpoint.active_context)
    parts = _given(checkpoint, CONTEXT_PARTS)
    return "\n\n".join(f"### {part}\n\n{within(text, 3)}" for part, text in parts)


def _log_entry(checkpoint: Checkpoint) -> str:
    """The text for the day's log."""
    observed = "\n".join(f"- {' '.join(text.split())}" for text in checkpoint.observations)
    return "\n\n".join(filter(None, (checkpoint.summary or checkpoint.last_action, observed)))


def as_handoffs(checkpoint: Checkpoint, *, now: datetime, by: str, project: str) -> Iterator[tuple[str, str]]:
    """The handoffs of a checkpoint on a machine that is not the canonical host: target document and content each.

    Only the canonical host has a handover and a heartbeat; elsewhere these parts go into the day's log.
    """
    lead = _log_entry(checkpoint)
    rest = checkpoint if checkpoint.summary else checkpoint._replace(last_action="")
    told = list(_given(rest, (*HANDOVER_PARTS, *HEARTBEAT_PARTS, "Active Context")))
    if lead or told:
        parts = [within(lead)] if lead else []
        parts += [f"### {part}\n\n{within(text, 3)}" for part, text in told]
        yield log_paths(now.date())[0], sent_entry(now, by, "\n\n".join(parts))
    for path, items in ((_decisions_path(now), checkpoint.decisions), (OPS_LOG, checkpoint.changes)):
        if items:
            yield path, "".join(sent_item(now, by, item) for item in items)
    if checkpoint.project:
        yield _project_path(checkpoint.project_name or project), sent_status(now, by, within(checkpoint.project, 3))
    for label, result in checkpoint.subagents:
        yield _subagent_path(label), sent_entry(now, by, within(result))


def kinds_of(checkpoint: Checkpoint) -> str:
    """A short description of a checkpoint's parts."""
    kinds = {
        "handover": checkpoint.has_handover,
        "log": _log_entry(checkpoint),
        "heartbeat": checkpoint.has_heartbeat,
        "decision": checkpoint.decisions,
        "configuration": checkpoint.changes,
        "project status": checkpoint.project,
        "sub-agent": checkpoint.subagents,
        "working context": checkpoint.active_context,
    }
    return ", ".join(kind for kind, is_there in kinds.items() if is_there)


def _given(checkpoint: Checkpoint, parts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The non-empty parts."""
    for part in parts:
        if text := getattr(checkpoint, _ALIASES[part.casefold()]):
            yield part, text


def _decisions_path(now: datetime) -> str:
    return f"memory/decisions/{now:%Y-%m}.md"


def _subagent_path(label: str) -> str:
    return f"memory/checkpoints/subagent-{label}.md"


def _project_path(name: str) -> str:
    slug = project_slug(name)
    if not slug:
        raise BadInput("the project is unknown", hint="name it, or run this in its repository")
    if is_reserved(slug):
        raise BadInput(
            f"{slug!r} cannot name a project's file", hint="choose another name; this one is reserved on some systems"
        )
    return project_paths(slug)[0]


def _entry(path: str, text: str, now: datetime, by: str) -> Write:
    return Write(path, f"{heading_of(path, now, by)}\n\n{within(text)}\n", "append", title_of(path))


def _handover(checkpoint: Checkpoint, before: str, now: datetime, by: str, repository: str) -> str:
    """HANDOVER.md with the new handover of one repository, which comes first. All others stay as they are."""
    parts = split_handovers(plain_newlines(before))
    name = _safe_repository(repository)
    at = next((number for number, part in enumerate(parts) if is_of(part, name)), None)
    old = parts.pop(at).text if at is not None else ""
    new = RepositoryHandover(name, without_titles(_own_handover(checkpoint, old, now, by)))
    return render_handovers([new, *parts])


def _safe_repository(repository: str) -> str:
    """A repository's name for a heading that agents read; "" if it gives orders to the reader."""
    return "" if find_instructions(re.sub(r"[-_./]+", " ", repository)) else repository


def _own_handover(checkpoint: Checkpoint, before: str, now: datetime, by: str) -> str:
    """The new handover of a repository. Parts that were not given are kept, with when and where they were said.

    Sections and lines that a person added stay, too.
    """
    loose, sections = _split_sections(before)
    stamp = find_stamp(loose)
    names = {part.casefold(): part for part in HANDOVER_PARTS}
    old: dict[str, str] = {}
    added: list[str] = []
    for name, text in sections:
        part = names.get(name.casefold())
        if part is not None and part not in old:
            old[part] = text.replace(UNSAID, "").strip()
        else:
            added.append(f"## {name}\n\n{text}\n" if text else f"## {name}\n")
    own = loose.replace(stamp.string, "", 1).strip() if stamp else loose.strip()
    parts = [f"{now:%Y-%m-%d %H:%M}{f', {by}' if by else ''}\n", *([f"{own}\n"] if own else [])]
    for part in HANDOVER_PARTS:
        text = getattr(checkpoint, _ALIASES[part.casefold()])
        if not text:
            text = old.get(part, "")
            text = f"(said {stamp[0]})\n\n{text}" if text and stamp and _KEPT.match(text) is None else text
        parts.append(f"## {part}\n\n{within(text) if text else UNSAID}\n")
    return "\n".join((*parts, *added))


def _split_sections(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text above the first `##` heading, and the sections below: heading and text."""
    try:
        headings = [heading for heading in outline(text).headings if heading.level == 2]
    except TooComplex:
        headings = []
    ends = [*(heading.start for heading in headings[1:]), len(text)]
    found = [(heading.text, text[heading.end : end].strip()) for heading, end in zip(headings, ends, strict=False)]
    return text[: headings[0].start] if headings else text, found
