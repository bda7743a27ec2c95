"""The identity and principals documents, from the files at the root of a workspace.

Pure: `read` returns a root file's text, or None. Names and prose follow the generation of upstream's exporter that the
scheme belongs to. Unless `plain`, fields are added for what upstream leaves in the prose: sub-agents, preferences and
work. Ids are derived from the agent, so that the same files give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from truekeep.integrations.alf.documents import Identity, JsonObject, PrincipalProfile, Principals, SubAgent
from truekeep.integrations.alf.record_ids import WHITESPACE, identity_id, principal_id, profile_id
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME

Read = Callable[[str], str | None]

MAX_NAME_CHARACTERS = 80
STATUSES = ("active", "inactive", "unavailable")

_PROSE = {"soul": "SOUL.md", "operating_instructions": "AGENTS.md", "identity_profile": "IDENTITY.md"}
_TITLE = re.compile("(?:# )+")
_SECTION = re.compile("(?:## )+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_SUB_AGENT = re.compile(r"sub[-_ ]?agent(s?)(?![^\W_])[ \t]*([:—–-]?)[ \t]*", re.IGNORECASE)
_NO_NAME = re.compile(
    r"(?:rules?|usage|use|polic(?:y|ies)|routing|delegation|lists?|overview|protocols?|instructions?|guid(?:e|elines?)"
    r"|workflows?|config(?:uration)?|setup|types?|roles?|selection|management|spawning|limits?|notes|table|sessions?"
    r"|results?|checkpoints?|and|or|for|are|is|in|to|with|when|how)\b",
    re.IGNORECASE,
)
"""How a heading goes on that is about sub-agents in general."""
_NAME_END = re.compile(r":|[ \t][—–-][ \t]")


class HeadingPart(NamedTuple):
    """A heading, its level, and the lines up to the next heading. Text before the first heading has level 0."""

    level: int
    title: str
    lines: list[str]


def agent_name(read: Read, folder_name: str, scheme: str) -> str:
    """The display name of the agent; the name of the folder if no file states one."""
    return _name_in_files(read, scheme) or (folder_name if folder_name.strip(WHITESPACE) else "unknown")


def identity_of(
    read: Read, folder_name: str, *, agent: str, scheme: str, updated_at: str, plain: bool = False
) -> Identity | None:
    """The identity document; None if SOUL.md, IDENTITY.md and AGENTS.md are all empty or missing."""
    prose = {field: text for field, file in _PROSE.items() if (text := _text_of(read, file)) is not None}
    if not prose:
        return None
    name = agent_name(read, folder_name, scheme) if scheme == "content" else _name_in_files(read, scheme) or "Unknown"
    structured: JsonObject = {"names": {"primary": name}}
    if not plain and (sub_agents := find_sub_agents(prose.get("operating_instructions", ""))):
        structured["sub_agents"] = sub_agents
    return {
        "id": identity_id(agent),
        "agent_id": agent,
        "version": 1,
        "updated_at": updated_at,
        "structured": structured,
        "prose": prose,
        "source_format": OPENCLAW_RUNTIME,
    }


def principals_of(read: Read, *, agent: str, scheme: str, updated_at: str, plain: bool = False) -> Principals | None:
    """The principals document with the person of USER.md; None if that file is empty or missing."""
    text = _text_of(read, "USER.md")
    if text is None:
        return None
    name = (_named_in(text) if scheme == "content" else None) or _title_of(text) or "User"
    structured: JsonObject = {"name": name, "principal_type": "human"}
    zone = _zone_in_section(text)
    if zone is not None:
        structured["timezone"] = zone
    if not plain:
        structured |= _profile_of(text, structured)
    principal = principal_id(agent)
    profile: PrincipalProfile = {
        "id": profile_id(principal),
        "agent_id": agent,
        "principal_id": principal,
        "version": 1,
        "updated_at": updated_at,
        "structured": structured,
        "prose": {"user_profile": text},
        "source_format": OPENCLAW_RUNTIME,
    }
    return {"principals": [{"id": principal, "principal_type": "human", "profile": profile}]}


def _text_of(read: Read, file: str) -> str | None:
    text = read(file)
    return text if text and text.strip(WHITESPACE) else None


def _name_in_files(read: Read, scheme: str) -> str | None:
    if scheme == "content":
        return _named_in(_text_of(read, "IDENTITY.md") or "")
    return _title_of(_text_of(read, "SOUL.md") or "") or _title_of(_text_of(read, "IDENTITY.md") or "")


def _iter_stripped(text: str) -> Iterator[str]:
    return (line.strip(WHITESPACE) for line in text.split("\n"))


def _title_of(text: str) -> str | None:
    """The first heading of the first level."""
    for line in _iter_stripped(text):
        if match := _TITLE.match(line):
            return line[match.end() :].strip(WHITESPACE)
    return None


def _named_in(text: str) -> str | None:
    """The name in a line such as "- **Name:** Ada"."""
    for line in _iter_stripped(text):
        bare = (line[2:] if line.startswith(("- ", "* ")) else line).strip(WHITESPACE)
        for mark in ("**name:**", "**name**:", "name:"):
            if bare[: len(mark)].lower() == mark:
                name = bare[len(mark) :].strip(WHITESPACE).strip("*").strip(WHITESPACE)
                if name:
                    return name
                break
    return None


def _zone_in_section(text: str) -> str | None:
    """The first line under "## Timezone" that looks like Europe/Oslo."""
    is_inside = False
    for line in _iter_stripped(text):
        if match := _SECTION.match(line):
            is_inside = line[match.end() :].strip(WHITESPACE).lower() == "timezone"
        elif is_inside and "/" in line and not line.startswith(("-", "#")):
            return line
    return None


def find_sub_agents(text: str) -> list[SubAgent]:
    """The sub-agents that AGENTS.md describes.

    A heading such as "## SubAgent: Reviewer" or "## sub-agent reviewer" is one. Below a bare "## Sub-agents", every
    list item that could be a name is one, and every deeper heading with a line such as "Model: …".
    """
    found: dict[str, SubAgent] = {}
    list_level = 0
    for part in _iter_parts(text):
        if list_level and part.level > list_level:
            if any((_field(line) or ("",))[0] in _SUB_AGENT_KEYS for line in part.lines):
                _add(found, part.title, part.lines)
            continue
        list_level = 0
        match = _SUB_AGENT.match(part.title)
        if match is None:
            continue
        plural, mark = match.groups()
        name = part.title[match.end() :]
        if not name:
            list_level = part.level
            for item in filter(None, map(_item, part.lines)):
                end = _NAME_END.search(item)
                description = [item[end.end() :].strip(WHITESPACE + "*")] if end else []
                _add(found, item[: end.start()] if end else item, description)
        elif mark or (not plural and not _NO_NAME.match(name)):
            _add(found, name, part.lines)
    return list(found.values())


def _add(found: dict[str, SubAgent], name: str, lines: list[str]) -> None:
    name = _without_markup(name)
    if name and len(name) <= MAX_NAME_CHARACTERS and not name.endswith((".", "!")):
        found.setdefault(name.casefold(), _sub_agent(name, lines))


def _sub_agent(name: str, lines: list[str]) -> SubAgent:
    fields: JsonObject = {}
    prose = "\n".join(_take_fields(lines, _SUB_AGENT_FIELDS, fields))
    status = str(fields.get("status", "")).lower()
    agent: SubAgent = {
        "agent_id": None,
        "name": name,
        "capabilities": [{"name": capability} for capability in _split_list(fields.get("capabilities", ""))],
        "status": status if status in STATUSES else "active",
    }
    if description := fields.get("description") or prose:
        agent["description"] = description
    if "model" in fields:
        agent["model_hints"] = {"primary_model": fields["model"]}
    if "routing_hints" in fields:
        agent["routing_hints"] = fields["routing_hints"]
    return agent


def _profile_of(text: str, known: JsonObject) -> JsonObject:
    """The profile fields in USER.md, from sections and "Key: value" lines."""
    fields: JsonObject = {}
    preferences: JsonObject = {}
    work: JsonObject = {}
    custom: dict[str, list[str]] = {"preferences": [], "work": []}
    for part in _iter_parts(text):
        title = part.title.casefold()
        if title in ("preferences", "communication preferences", "communication"):
            custom["preferences"] += _take_fields(part.lines, _PREFERENCES, preferences)
        elif title in ("work", "work context", "job"):
            custom["work"] += _take_fields(part.lines, _WORK, work)
        elif title in ("timezone", "time zone"):
            zone = next(filter(None, map(_without_markup, part.lines)), "")
            fields |= {"timezone": zone} if 0 < len(zone) <= MAX_NAME_CHARACTERS else {}
        else:
            _take_fields(part.lines, _FIELDS, fields)
    if isinstance(work.get("projects"), str):
        work["projects"] = _split_list(work["projects"])
    profile = {
        "timezone": known.get("timezone") or fields.get("timezone"),
        "locale": fields.get("locale"),
        "communication_preferences": {field: preferences[field] for field in _PREFERENCES if field in preferences},
        "work_context": {field: work[field] for field in _WORK if field in work},
        "custom_fields": {
            field: stripped for field, lines in custom.items() if (stripped := list(filter(None, lines)))
        },
    }
    return {field: value for field, value in profile.items() if value}


_FIELDS = {"timezone": ("timezone", "time zone"), "locale": ("locale",)}
_PREFERENCES = {
    "tone": ("tone", "style"),
    "response_length": ("response length", "length", "verbosity"),
    "formatting": ("formatting", "format"),
}
_WORK = {
    "role": ("role", "title", "job", "job title", "position"),
    "company": ("company", "employer", "organization", "organisation"),
    "projects": ("projects", "project"),
}
_SUB_AGENT_FIELDS = {
    "description": ("description", "role", "purpose"),
    "model": ("model",),
    "capabilities": ("capabilities", "skills", "tools"),
    "status": ("status",),
    "routing_hints": ("routing", "use when", "when to use"),
}
_SUB_AGENT_KEYS = {key for keys in _SUB_AGENT_FIELDS.values() for key in keys}


def _take_fields(lines: list[str], names: dict[str, tuple[str, ...]], fields: JsonObject) -> list[str]:
    """Add the values of the named fields to `fields`, the first of each; returns the other lines."""
    rest = []
    is_listing = False
    for line in filter(None, lines):
        key, value = _field(line) or ("", "")
        field = next((field for field, spellings in names.items() if key in spellings), None)
        if field is not None and field not in fields:
            is_listing = field == "projects" and not value
            if value or is_listing:
                fields[field] = value or []
        elif is_listing and not key and _item(line):
            fields["projects"].append(_without_markup(line))
        else:
            rest.append(_item(line) or line)
    return rest


def _iter_parts(text: str) -> Iterator[HeadingPart]:
    """Split the text at its headings of any level, except in code fences; lines are stripped."""
    part = HeadingPart(0, "", [])
    is_fenced = False
    for line in _iter_stripped(text):
        if line.startswith(("```", "~~~")):
            is_fenced = not is_fenced
        match = None if is_fenced else _HEADING.fullmatch(line)
        if match is None:
            part.lines.append(line)
        else:
            yield part
            part = HeadingPart(len(match[1]), _without_markup(match[2]), [])
    yield part


def _field(line: str) -> tuple[str, str] | None:
    """The key in lower case and the value of a line such as "- **Response length:** short"."""
    key, colon, value = (_item(line) or line).partition(":")
    key = _without_markup(key).casefold().replace("_", " ").replace("-", " ")
    value = value.strip(WHITESPACE).strip("*").strip(WHITESPACE)
    if not colon or not key or len(key) > MAX_NAME_CHARACTERS or value.startswith("//"):
        return None
    return key, "" if value.startswith("_(") else value  # a hint of the template that was never filled in


def _item(line: str) -> str:
    """The text of a list item; empty for other lines."""
    return line[2:].strip(WHITESPACE) if line.startswith(("- ", "* ", "+ ")) else ""


def _split_list(value: str) -> list[str]:
    return [word for word in map(_without_markup, value.split(",")) if word]


def _without_markup(text: str) -> str:
    return (_item(text) or text).strip(WHITESPACE + "*_`")
