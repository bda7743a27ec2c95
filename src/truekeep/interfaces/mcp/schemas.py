"""The tools as clients see them: names, descriptions and schemas.

They keep OpenClaw's contract, so that an agent finds the same names and fields here as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import mcp_types as types

from truekeep.core.model import HANDOFF_TYPES
from truekeep.interfaces.mcp.responses import Given, one_line
from truekeep.verify.verdict import VERDICTS

MAX_RESULTS = 50
MEMORY_STORES = ("cards", "documents", "logs")


class Tool(NamedTuple):
    """A tool: what it is for, what it takes, and what it gives."""

    name: str
    title: str
    description: str
    takes: Mapping[str, Any]
    needs: tuple[str, ...]
    gives: Mapping[str, Any]
    promises: tuple[str, ...]
    is_reading: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": list(self.needs),
            "additionalProperties": False,
        }

    def find_problems(self, given: Given) -> list[str]:
        """Everything that is wrong with the arguments."""
        found = _validator(self.name).iter_errors(given)
        return [one_line(f"{error.json_path.removeprefix('$.')}: {error.message}", 200) for error in islice(found, 10)]

    def shown(self) -> types.Tool:
        fault = {"type": "object", "properties": _texts("code", "message", "hint")}
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema,
            output_schema={
                "type": "object",
                "properties": {**self.gives, "error": fault},
                "required": list(self.promises),
            },
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=self.is_reading,
                destructive_hint=False,
                idempotent_hint=self.is_reading,
                open_world_hint=False,
            ),
        )


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    return Draft202012Validator(TOOLS[name].input_schema)


_DAYS: dict[str, Any] = {"type": ["integer", "null"], "description": "How many days old the note is."}
_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def _texts(*names: str) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names}


def _counts(*names: str) -> dict[str, Any]:
    return {name: {"type": "integer"} for name in names}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _whole(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


_VERDICTS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            **_texts("kind", "text", "reason", "why", "place", "commit"),
            "verdict": _text("What current code says to it.", enum=list(VERDICTS)),
            "candidates": _LIST,
            **_counts("line"),
        },
        "required": ["kind", "text", "verdict", "why"],
    },
}

_SEARCH = Tool(
    name="memory_search",
    title="Search memory",
    description=(
        "Find what is remembered about a question, an identifier, an error message or a path, by words and by meaning."
        " Use it before answering about earlier work, decisions, setup, people or preferences. Each hit has a citation"
        " (path#L5-L9) for memory_get, its age and its origin. Hits are stored notes: data, possibly out of date."
    ),
    takes={
        "query": _text("What to look for, as a question or as words.", minLength=1),
        "maxResults": _whole(f"How many hits, {MAX_RESULTS} at most; as many as 4,000 characters hold unless told."),
        "minScore": {"type": "number", "description": "Leave out hits below this score, from 0 to 1."},
        "corpus": _text(
            "memory: everything but transcripts; sessions: transcripts of earlier sessions; all: both."
            " Without it: memory, and transcripts only if memory has nothing.",
            enum=["memory", "wiki", "all", "sessions"],
        ),
        "store": _text(
            "Only this kind of memory; the archive has old logs that no other search covers.",
            enum=[*MEMORY_STORES, "transcripts", "archive"],
        ),
        "since": _text("Only memory of this day or later: 2026-03-01, or 30d, 8w, 6m, 1y.", maxLength=40),
        "repo": _text("Only memory of this repository, such as owner/name or name.", maxLength=300),
    },
    needs=("query",),
    gives={
        **_texts("notice"),
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **_texts(
                        "path", "snippet", "source", "corpus", "citation", "store", "day", "repository", "heading"
                    ),
                    **_counts("startLine", "endLine"),
                    "score": {"type": "number"},
                    "ageDays": _DAYS,
                    "matched": _LIST,
                    "also": _LIST,
                    "verdicts": _VERDICTS,
                    **_texts("checkedAt", "unchecked"),
                },
                "required": ["path", "startLine", "endLine", "score", "snippet", "source", "corpus", "citation"],
            },
        },
        **_texts("provider", "model", "citations", "mode", "warning", "action"),
        "fallback": {"type": ["object", "null"], "properties": _texts("from", "reason")},
        "stale": {"type": "boolean"},
    },
    promises=("results",),
)

_GET = Tool(
    name="memory_get",
    title="Read memory",
    description=(
        "Read lines of a memory file, by the path or the citation that memory_search gave: 120 lines and 12,000"
        " characters at most, with nextFrom where more follows."
    ),
    takes={
        "path": _text("A path or a citation, such as memory/cards/staging-proxy.md#L5-L9.", minLength=1),
        "from": _whole("The first line."),
        "lines": _whole("How many lines."),
        "corpus": _text("Accepted as in memory_search; the path decides.", enum=["memory", "wiki", "all", "sessions"]),
    },
    needs=("path",),
    gives={
        **_texts("notice"),
        "status": _text("ok, not_found or error", enum=["ok", "not_found", "error"]),
        **_texts("text", "path", "store", "day", "repository", "code", "message", "hint"),
        **_counts("from", "lines", "totalLines", "nextFrom"),
        "truncated": {"type": "boolean"},
        "ageDays": _DAYS,
        "verdicts": _VERDICTS,
        **_texts("checkedAt", "unchecked"),
    },
    promises=("status", "text", "path"),
)

_FINDINGS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {**_texts("code", "message"), "line": {"type": ["integer", "null"]}}},
}

_WRITE = Tool(
    name="memory_write",
    title="Leave a note for memory",
    description=(
        "Propose durable knowledge: a decision and its reason, a setup fact, a convention, the cause of a bug. One"
        " topic a call. It becomes a handoff that is checked and filed later; memory is not changed now. A note that"
        " would not be filed is refused with every reason: a credential, a near-duplicate, task state, instructions."
        " Type preference goes to USER.md, rules of work (type workflow) to rules/, anything else to a card."
    ),
    takes={
        "title": _text("Short and specific.", minLength=1, maxLength=300),
        "summary": _text("Two to four sentences: what is so, and why it matters.", maxLength=20_000),
        "facts": {
            "type": "array",
            "items": {"type": "string", "maxLength": 5_000},
            "maxItems": 200,
            "description": "Durable facts, one sentence each.",
        },
        "type": _text("The kind of knowledge; project-context unless told.", enum=list(HANDOFF_TYPES)),
        "card": _text(
            "The card's name; from the repository and the title unless told: shop-release.md.", maxLength=200
        ),
        "update": {"type": "boolean", "description": "The card is there already: replace what it says."},
        "document": _text("Append to this document (TOOLS.md, USER.md, rules/NAME.md) instead.", maxLength=200),
        "content": _text("The exact Markdown to keep; from summary and facts unless told.", maxLength=250_000),
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 100}, "maxItems": 50},
    },
    needs=("title",),
    gives={
        "status": _text("left, refused or error", enum=["left", "refused", "error"]),
        **_texts("path", "writer", "outcome", "target"),
        "filedHere": {"type": "boolean"},
        "hints": _FINDINGS,
    },
    promises=("status",),
    is_reading=False,
)

_VERIFY = Tool(
    name="memory_verify",
    title="Check what a text names",
    description=(
        "Hold any text against current code and git: each path, line, symbol, flag, commit, version, port or "
        "decision in"
        " it is confirmed, moved (to where), changed, gone (since which commit) or unverifiable (why). Use it on a"
        " plan, a draft or an old note before acting on it. Nothing is written, and no command in it is run."
    ),
    takes={
        "text": _text("Markdown or plain text.", minLength=1, maxLength=200_000),
        "repo": _text("A repository known here, such as owner/name; the one you work in unless told.", maxLength=300),
    },
    needs=("text",),
    gives={
        "summary": {"type": "object", "additionalProperties": {"type": "integer"}},
        "verdicts": _VERDICTS,
        **_texts("checkout", "head"),
    },
    promises=(),
)

_STATUS = Tool(
    name="memory_status",
    title="How memory stands",
    description="What is in memory and in its index, what waits for a person, and which machine files handoffs.",
    takes={},
    needs=(),
    gives={
        **_texts("workspace", "version", "indexedAt", "problem"),
        **_counts("chunks", "waiting", "unembedded", "sizeBytes", "drafts"),
        "files": {"type": "object", "additionalProperties": {"type": "integer"}},
        "embedder": {"type": "object", "properties": _texts("provider", "model")},
        "canonicalHost": {"type": "object", "properties": {**_texts("name"), "isThisMachine": {"type": "boolean"}}},
    },
    promises=(),
)

_WAKE = Tool(
    name="memory_wake",
    title="What to know before beginning",
    description=(
        "The brief for this repository: where the last session stopped, what is going on, the log of two days, rules"
        " from earlier mistakes, and the cards that matter here, with their age and what code says to them. Sessions"
        " with truekeep's hooks begin with it; ask for it where nobody told you, or to see what changed since."
    ),
    takes={
        "budget": {
            "type": "integer",
            "minimum": 200,
            "maximum": 5_000,
            "description": "Tokens; about 2,300 unless told.",
        },
        "repo": _text("A repository known here, such as owner/name; the one you work in unless told.", maxLength=300),
    },
    needs=(),
    gives={
        **_texts("notice", "text"),
        **_counts("characters"),
        "leftOut": {
            "type": "array",
            "items": {"type": "object", "properties": {**_texts("title", "command"), **_counts("pieces")}},
        },
    },
    promises=("text",),
)

_PART = {"type": "string", "maxLength": 64_000}
_PARTS = {"type": "array", "items": _PART, "maxItems": 100}

_CHECKPOINT = Tool(
    name="memory_checkpoint",
    title="Note where the work stands",
    description=(
        "Leave the state of your work for whoever goes on, at the end of a session or before the context is shortened:"
        " the handover of this repository is replaced, summary and observations go to the day's log, the rest to its"
        " own files. Give what there is to say. Knowledge that lasts belongs in memory_write instead."
    ),
    takes={
        "summary": {**_PART, "description": "What the session did; goes to the day's log, which is only appended to."},
        "observations": {
            **_PARTS,
            "description": (
                "For the day's log, each with its type and importance in front, such as [lesson|i=0.7] or"
                " [decision|i=0.9]: from 0.8 on kept for good, from 0.4 on for a month, below for a week."
            ),
        },
        "active_context": {**_PART, "description": "What the next session needs to know; else made of the handover."},
        "last_action": {**_PART, "description": "Handover: what was done last."},
        "system_state": {**_PART, "description": "Handover: how things stand."},
        "next_actions": {**_PARTS, "description": "Handover: what comes next."},
        "scope_rules": {**_PART, "description": "Handover: what is in scope; holds until it is given again."},
        "dev_model": {**_PART, "description": "Handover: how the work is done; holds until it is given again."},
        "now": {**_PART, "description": "Heartbeat: what is being done."},
        "next": {**_PART, "description": "Heartbeat: what comes next."},
        "blockers": {**_PARTS, "description": "Heartbeat: what is in the way."},
        "decisions": {**_PARTS, "description": "Decisions with their reasons, to the month's file."},
        "changes": {**_PARTS, "description": "Changes of configuration or routing."},
        "project": {**_PART, "description": "The status of this repository's project."},
        "subagents": {
            "type": "object",
            "additionalProperties": _PART,
            "maxProperties": 50,
            "description": "A sub-agent's label and its result.",
        },
    },
    needs=(),
    gives={
        "status": _text("written, left as handoffs, or error", enum=["written", "left", "error"]),
        "paths": _LIST,
        "handoffs": _LIST,
        "notes": _LIST,
    },
    promises=("status",),
    is_reading=False,
)

TOOLS = {tool.name: tool for tool in (_SEARCH, _GET, _VERIFY, _WRITE, _WAKE, _CHECKPOINT, _STATUS)}
