"""Who the agent is and whom it works for, from the files at the root of a workspace.

Pure: `read` gives a root file's text, or None where there is none. The names and the prose are upstream's, of the
generation that the scheme stands for. What upstream leaves in the prose (sub-agents, preferences, work) is told in
fields too, unless `plain`. Ids are derived from the agent in both schemes, so that the same files give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from truekeep.integrations.alf.record_ids import WHITESPACE, identity_id, principal_id, profile_id
from truekeep.integrations.alf.records import RUNTIME

Read = Callable[[str], str | None]

LONGEST_NAME = 80
STATUSES = ("active", "inactive", "unavailable")

_PROSE = {"soul": "SOUL.md", "operating_instructions": "AGENTS.md", "identity_profile": "IDENTITY.md"}
_TITLE = re.compile("(?:# )+")
_SECTION = re.compile("(?:## )+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_SUB_AGENT = re.compile(r"sub[- ]?agent(s?)(?![^\W_])[ \t]*([:—–-]?)[ \t]*", re.IGNORECASE)
_NAME_END = re.compile(r":|[ \t][—–-][ \t]")


class HeadingPart(NamedTuple):
    """A heading, its level, and the lines up to the next heading. The first part has level 0."""

    level: int
    title: str
    lines: list[str]


def agent_name(read: Read, folder_name: str, scheme: str) -> str:
    """The name to show for the agent; the workspace's folder where no file says one."""
    return _name_in_files(read, scheme) or (folder_name if folder_name.strip(WHITESPACE) else "unknown")


def identity_of(
    read: Read, folder_name: str, *, agent: str, scheme: str, updated_at: str, plain: bool = False
) -> dict[str, Any] | None:
    """The identity document; None where neither SOUL.md, IDENTITY.md nor AGENTS.md says anything."""
    prose = {field: text for field, file in _PROSE.items() if (text := _text_of(read, file)) is not None}
    if not prose:
        return None
    name = agent_name(read, folder_name, scheme) if scheme == "content" else _name_in_files(read, scheme) or "Unknown"
    structured: dict[str, Any] = {"names": {"primary": name}}
    if not plain and (sub_agents := find_sub_agents(prose.get("operating_instructions", ""))):
        structured["sub_agents"] = sub_agents
    return {
        "id": identity_id(agent),
        "agent_id": agent,
        "version": 1,
        "updated_at": updated_at,
        "structured": structured,
        "prose": prose,
        "source_format": RUNTIME,
    }


def principals_of(
    read: Read, *, agent: str, scheme: str, updated_at: str, plain: bool = False
) -> dict[str, Any] | None:
    """The principals document, with the one human of USER.md; None where that says nothing."""
    text = _text_of(read, "USER.md")
    if text is None:
        return None
    name = (_named_in(text) if scheme == "content" else None) or _title_of(text) or "User"
    structured: dict[str, Any] = {"name": name, "principal_type": "human"}
    zone = _zone_in_section(text)
    if zone is not None:
        structured["timezone"] = zone
    if not plain:
        structured |= _profile_of(text, structured)
    principal = principal_id(agent)
    profile = {
        "id": profile_id(principal),
        "agent_id": agent,
        "principal_id": principal,
        "version": 1,
        "updated_at": updated_at,
        "structured": structured,
        "prose": {"user_profile": text},
        "source_format": RUNTIME,
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
    """What a line such as "- **Name:** Ada" says."""
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


def find_sub_agents(text: str) -> list[dict[str, Any]]:
    """The sub-agents that AGENTS.md describes.

    A heading such as "## SubAgent: Reviewer" is one. Under a bare "## Sub-agents", so is every item of the list that
    could be a name, and every deeper heading with a line such as "Model: …".
    """
    found: dict[str, dict[str, Any]] = {}
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
                told = [item[end.end() :].strip(WHITESPACE + "*")] if end else []
                _add(found, item[: end.start()] if end else item, told)
        elif mark or (not plural and not name[0].islower()):
            _add(found, name, part.lines)
    return list(found.values())


def _add(found: dict[str, dict[str, Any]], name: str, lines: list[str]) -> None:
    name = _undressed(name)
    if name and len(name) <= LONGEST_NAME and not name.endswith((".", "!")):
        found.setdefault(name.casefold(), _sub_agent(name, lines))


def _sub_agent(name: str, lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    told = "\n".join(_take(lines, _SUB_AGENT_FIELDS, fields))
    status = str(fields.get("status", "")).lower()
    agent: dict[str, Any] = {
        "agent_id": None,
        "name": name,
        "capabilities": [{"name": capability} for capability in _listed(fields.get("capabilities", ""))],
        "status": status if status in STATUSES else "active",
    }
    if description := fields.get("description") or told:
        agent["description"] = description
    if "model" in fields:
        agent["model_hints"] = {"primary_model": fields["model"]}
    if "routing_hints" in fields:
        agent["routing_hints"] = fields["routing_hints"]
    return agent


def _profile_of(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """The fields of a profile that USER.md has in sections or as "Key: value" lines."""
    fields: dict[str, Any] = {}
    preferences: dict[str, Any] = {}
    work: dict[str, Any] = {}
    custom: dict[str, list[str]] = {"preferences": [], "work": []}
    for part in _iter_parts(text):
        title = part.title.casefold()
        if title in ("preferences", "communication preferences", "communication"):
            custom["preferences"] += _take(part.lines, _PREFERENCES, preferences)
        elif title in ("work", "work context", "job"):
            custom["work"] += _take(part.lines, _WORK, work)
        elif title in ("timezone", "time zone"):
            zone = next(filter(None, map(_undressed, part.lines)), "")
            fields |= {"timezone": zone} if 0 < len(zone) <= LONGEST_NAME else {}
        else:
            _take(part.lines, _FIELDS, fields)
    if isinstance(work.get("projects"), str):
        work["projects"] = _listed(work["projects"])
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


def _take(lines: list[str], names: dict[str, tuple[str, ...]], fields: dict[str, Any]) -> list[str]:
    """Put what lines say of the named fields into `fields`, the first word on each; the other lines come back."""
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
            fields["projects"].append(_undressed(line))
        else:
            rest.append(_item(line) or line)
    return rest


def _iter_parts(text: str) -> Iterator[HeadingPart]:
    """The text by its headings of any level, those in code fences left alone; lines come without outer blanks."""
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
            part = HeadingPart(len(match[1]), _undressed(match[2]), [])
    yield part


def _field(line: str) -> tuple[str, str] | None:
    """The key, in small letters, and the value of a line such as "- **Response length:** short"."""
    key, colon, value = (_item(line) or line).partition(":")
    key = _undressed(key).casefold().replace("_", " ").replace("-", " ")
    value = value.strip(WHITESPACE).strip("*").strip(WHITESPACE)
    if not colon or not key or len(key) > LONGEST_NAME or value.startswith("//"):
        return None
    return key, "" if value.startswith("_(") else value  # the form's own hint, left standing


def _item(line: str) -> str:
    """What an item of a list says; nothing for another line."""
    return line[2:].strip(WHITESPACE) if line.startswith(("- ", "* ", "+ ")) else ""


def _listed(value: str) -> list[str]:
    return [word for word in map(_undressed, value.split(",")) if word]


def _undressed(text: str) -> str:
    return (_item(text) or text).strip(WHITESPACE + "*_`")
