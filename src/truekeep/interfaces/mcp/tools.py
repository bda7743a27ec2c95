"""The tools and resources of the MCP server, without the protocol.

`memory_write` writes a handoff for ingest, like every writer; `memory_checkpoint` is the command `truekeep checkpoint`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types

from truekeep import __version__
from truekeep.core.bugs import note_bug
from truekeep.core.dates import as_stamp, parse_since, shown_age
from truekeep.core.errors import BadInput, NotFound, StorageFailed, TruekeepError, hint_for, is_database_error
from truekeep.core.memory_copy import live_path
from truekeep.core.model import OPENCLAW_INBOX
from truekeep.core.repository import repository_name
from truekeep.core.state_dir import STATE
from truekeep.handoffs.format import compose_handoff
from truekeep.handoffs.right_store import choose_document
from truekeep.interfaces.mcp.responses import (
    NOTICE,
    Given,
    Reply,
    cleaned,
    failed,
    fault,
    not_found,
    one_line,
    said,
    shown_answer,
    shown_excerpt,
    shown_finding,
    shown_name,
    shown_verdict,
    told_verdict,
)
from truekeep.interfaces.mcp.schemas import MAX_RESULTS, MEMORY_STORES, Tool
from truekeep.search.excerpt import NotMemory
from truekeep.search.searcher import hits_within
from truekeep.sessions.checkpoint import from_values
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.verify.checkouts import choose_checkout
from truekeep.verify.verdict import VERDICTS
from truekeep.workspace.search import DEFAULT_ROOM
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.sessions.packing import Brief

RESOURCE_LIMIT = 60_000
QUERY_LIMIT = 10_000
MAX_CARDS = 500

CARD_URI = "truekeep://cards/"
LOG = "mcp.log"


class MemoryTools:
    """The tools and resources over one workspace. Blocking, and to be used by one thread at a time."""

    def __init__(self, workspace: Workspace, *, writer: str = "", root: Path | None = None) -> None:
        self._workspace = workspace  # stays open for search, with its index and embedder
        self._settings = _mark_settings(workspace)
        self._writer = writer
        self._root = root  # the repository that the client works in, if it is known

    def call(self, tool: Tool, arguments: Given, *, client: str = "") -> Reply:
        """Run a tool. Errors become replies."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            if problems := tool.find_problems(given):
                raise BadInput(f"{tool.name}: {'; '.join(problems)}", hint="see the tool's input schema")
            self._heed_settings()
            reply: Reply = getattr(self, _VERBS[tool.name])(given, client)
            return reply
        except Exception as error:  # noqa: BLE001 - a bug must not end the server, nor show a traceback to an agent
            return failed(tool.name, given, self.known(error))

    def _heed_settings(self) -> None:
        """Reopen the workspace if its configuration was edited since."""
        settings = _mark_settings(self._workspace)
        if settings != self._settings:
            fresh = Workspace.open(Path(live_path(self._workspace.path)))
            self._workspace.close()
            self._workspace, self._settings = fresh, settings

    def known(self, error: Exception) -> TruekeepError:
        """Any error as a TruekeepError. The traceback of a bug goes to the log, without its message."""
        if isinstance(error, TruekeepError):
            return error
        if isinstance(error, OSError):
            return StorageFailed(f"{error.filename or 'a file'}: {error.strerror}", hint=hint_for(error))
        if is_database_error(error):
            return StorageFailed(f"a database cannot be used: {error}", hint=hint_for(error))
        note_bug(error, "mcp")
        self.log(f"bug {type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}".rstrip())
        bug = TruekeepError(
            f"a bug in truekeep ({type(error).__name__}); nothing is lost",
            hint=f"the traceback is in .truekeep/logs/{LOG}",
        )
        bug.code = "bug"
        return bug

    def log(self, what: str) -> None:
        self._workspace.state.log(LOG, f"{as_stamp(datetime.now(UTC))} truekeep {__version__} {what}")

    def _fresh(self) -> AbstractContextManager[Workspace]:
        """A workspace for one call, because other programs write between calls."""
        return Workspace.open(Path(live_path(self._workspace.path)))

    # The tools.

    def search(self, given: Given, _client: str) -> Reply:
        corpus, store = given.get("corpus", ""), given.get("store", "")
        if corpus == "wiki":
            return shown_answer((), ["there is no wiki here; the corpora are memory, sessions and all"])
        if store and corpus in ("memory", "sessions") and (corpus == "sessions") != (store == "transcripts"):
            raise BadInput(f"corpus {corpus!r} has no store {store!r}", hint="leave one of the two out")
        query, notes = given["query"].replace("\0", " "), list[str]()
        if len(query) > QUERY_LIMIT:
            query = query[:QUERY_LIMIT]
            notes.append(f"only the first {QUERY_LIMIT:,} characters of the query were searched for")
        limit = min(int(given["maxResults"]), MAX_RESULTS) if "maxResults" in given else None
        ask = partial(
            self._workspace.search.find,
            query,
            limit=limit,
            since=parse_since(given.get("since", ""), self._workspace.today()),
            repository=given.get("repo", ""),
        )
        stores = (store,) if store else {"memory": MEMORY_STORES, "sessions": ("transcripts",)}.get(corpus, ())
        answer = ask(stores=stores)
        hits = list(answer.hits)
        if corpus == "all" and not store and not any(hit.store == "transcripts" for hit in hits):
            # Asked apart, because memory and transcripts have shelves of vectors of their own.
            other = ask(stores=("transcripts",))
            hits = sorted((*hits, *other.hits), key=lambda hit: -hit.score)[:limit]
            hits = list(hits_within(hits, DEFAULT_ROOM)) if limit is None else hits
            answer = answer._replace(notes=tuple(dict.fromkeys((*answer.notes, *other.notes))))
        least = given.get("minScore")
        return shown_answer([hit for hit in hits if least is None or hit.score >= least], notes, answer)

    def get(self, given: Given, _client: str) -> Reply:
        wanted = given["path"]
        shown = {"path": one_line(wanted, 300), "from": int(given.get("from", 1)), "lines": 0}
        if given.get("corpus") == "wiki":
            return not_found(shown, "there is no wiki here", "leave corpus out")
        try:
            if "\0" in wanted or len(wanted) > 4096:
                raise NotMemory("this is not the path of a memory file", hint="use the path that memory_search gave")
            lines = given.get("lines")
            first = int(given["from"]) if "from" in given else None
            excerpt = self._workspace.search.get(wanted, first=first, lines=int(lines) if lines is not None else None)
        except NotMemory as error:
            data = {"status": "error", "text": "", **shown, "code": "MEMORY_PATH_NOT_ALLOWED", "error": fault(error)}
            return Reply(said(f"{error.message}\n{error.hint}"), data, is_error=True)
        except NotFound as error:
            return not_found(shown, error.message, error.hint)
        return shown_excerpt(excerpt)

    def verify(self, given: Given, _client: str) -> Reply:
        checked = self._workspace.verification.verify_text(
            given["text"], repository=self._checkout(given.get("repo", ""))
        )
        problem = "; ".join(one_line(why, 300) for why in checked.problems)
        counts = {word: checked.count(word) for word in VERDICTS}
        told = [verdict for verdict in checked.verdicts if verdict.verdict != "confirmed"]
        lines = [
            ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no claims that can be checked"
        ]
        lines += [f"line {item.claim.line}: {told_verdict(item)}" for item in told[:100]]
        lines += [problem] if problem and not checked.roots else []
        data = {
            "summary": counts,
            "verdicts": [shown_verdict(item) for item in checked.verdicts[:200]],
            "checkout": one_line(Path(checked.roots[0]).name, 200) if checked.roots else "",
            "head": checked.head,
        }
        return Reply(said("\n".join(lines)), data)

    def _checkout(self, name: str) -> Path | None:
        """The checkout that a client means: one that is known here by its name, else the one it works in."""
        if not name:
            return self._root
        chosen = choose_checkout(name, self._workspace.repositories.checkouts())
        if chosen is None:
            raise NotFound(f"no checkout of {one_line(name, 200)!r} is known here", hint="`truekeep repos` lists them")
        return Path(chosen.root)

    def compose(self, given: Given) -> str:
        """The handoff that a client's note becomes."""
        if given.get("document") and (given.get("card") or given.get("update")):
            raise BadInput("a note is for a card or for a document, not both", hint="leave out document or card")
        content = given.get("content")
        content = None if content is None or content.strip() in ("", "-") else content
        repository = repository_name(self._root) if self._root is not None else ""
        kind, document = given.get("type", "project-context"), given.get("document")
        summary, facts = given.get("summary", ""), given.get("facts", ())
        if not (document or given.get("card") or given.get("update")):
            parts = {"title": given["title"], "summary": summary, "facts": facts, "content": content}
            document, section = choose_document(kind, **parts, repository=repository)
            content = section or content
        return compose_handoff(
            title=given["title"],
            kind=kind,
            summary=summary,
            facts=facts,
            card=given.get("card"),
            update=given.get("update", False),
            document=document,
            tags=given.get("tags", ()),
            content=content,
            repository=repository,
            has_card=self._workspace.cards.exists,
        )

    def write(self, given: Given, client: str) -> Reply:
        text = self.compose(given)
        with self._fresh() as workspace:
            writer = self._writer or writer_for(client, workspace.config.writers)
            path, filing = workspace.handoffs.write(text, writer=writer, root=self._root)
            host = workspace.state.host()
            is_here = workspace.is_canonical
            left = str(path.relative_to(workspace.path)) if path.is_relative_to(workspace.path) else str(path)
        hints = [finding for finding in filing.findings if finding not in filing.blocking]
        there = printable(host.name) if host.id else "the canonical host (there is none now)"
        where = "" if is_here else f" It is filed on {there}, once this inbox gets there."
        lines = [f"Left for ingest: {left}", f"{filing.promise}.{where}"]
        lines += [f"hint {finding.code}: {finding.message}" for finding in hints]
        data = {
            "status": "left",
            "path": left,
            "writer": writer,
            "outcome": filing.outcome,
            "target": filing.target,
            "filedHere": is_here,
            "hints": [shown_finding(finding) for finding in hints],
        }
        return Reply(said("\n".join(lines)), data)

    def wake(self, given: Given, _client: str) -> Reply:
        return shown_brief(self.brief(given))

    def brief(self, given: Given) -> Brief:
        """What an agent is to know before it begins."""
        tokens, root = given.get("budget"), self._checkout(given.get("repo", ""))
        with self._fresh() as workspace:
            seconds = workspace.config.verify.budget_ms / 1000
            return workspace.sessions.wake(root, tokens=int(tokens) if tokens is not None else None, budget=seconds)

    def checkpoint(self, given: Given, client: str) -> Reply:
        with self._fresh() as workspace:
            writer = self._writer or writer_for(client, workspace.config.writers)
            left = workspace.sessions.checkpoint(from_values(given), root=self._root, writer=writer)
        lines = [f"Wrote {path}" for path in left.paths]
        lines += [f"Left {path} for the canonical host" for path in left.handoffs]
        lines += [f"Note: {note}" for note in left.notes]
        data = {
            "status": "written" if left.paths else "left",
            "paths": [shown_name(path) for path in left.paths],
            "handoffs": [shown_name(path) for path in left.handoffs],
            "notes": [one_line(note, 300) for note in left.notes],
        }
        return Reply(said("\n".join(lines)), data)

    def status(self, _given: Given, _client: str) -> Reply:
        index = self._workspace.search.status()
        with self._fresh() as workspace:
            host, drafts = workspace.state.host(), len(workspace.review.drafts())
            is_here = workspace.is_canonical
        data = {
            "workspace": one_line(str(self._workspace.path), 300),
            "version": __version__,
            "files": dict(index.files),
            "chunks": index.chunks,
            "waiting": index.waiting,
            "unembedded": index.unembedded,
            "embedder": {"provider": index.provider, "model": one_line(index.model, 200)},
            "indexedAt": index.indexed_at,
            "sizeBytes": index.size,
            "drafts": drafts,
            "canonicalHost": {"name": one_line(host.name, 200), "isThisMachine": is_here},
        }
        if index.problem:
            data["problem"] = one_line(index.problem, 300)
        files = ", ".join(f"{count} {store}" for store, count in index.files.items())
        meaning = f"{index.provider} {index.model}".strip() if index.provider != "none" else "none, words only"
        lines = [
            f"workspace: {data['workspace']}",
            f"indexed: {files}; {index.chunks} chunks; {index.waiting} changed files wait",
            f"embedder: {meaning}; indexed at {index.indexed_at or 'no time yet'}",
            f"drafts that wait for a person: {drafts}",
            f"canonical host: {host.name} ({_which(host.id, is_here=is_here)})",
        ]
        if source := self._workspace.context.source_note:
            data["source"] = one_line(source, 300)
            lines.append(f"a copy {source}")
        lines += [f"the index has a problem: {index.problem}"] if index.problem else []
        return Reply(said("\n".join(lines)), data)

    # The resources.

    def cards(self) -> list[types.Resource]:
        """The first cards by name, each as a resource."""
        with self._fresh() as workspace:
            today, listed = workspace.today(), list[types.Resource]()
            for card in islice(workspace.cards.all(), MAX_CARDS):
                if withhold(card.name) != card.name:
                    continue
                age = shown_age((today - card.updated).days) if card.updated else shown_age(None)
                origin = [f"by {card.writer}"] * bool(card.writer) + [f"in {card.repository}"] * bool(card.repository)
                listed.append(
                    types.Resource(
                        uri=CARD_URI + quote(card.name, safe=""),
                        name=one_line(card.name, 255),
                        title=one_line(card.topic, 120),
                        description=one_line("; ".join((age, *origin)), 300),
                        mime_type="text/markdown",
                    )
                )
        return listed

    def read_card(self, uri: str) -> str:
        """The text of a card. The name is taken apart once and must be a plain one."""
        name = unquote(uri.removeprefix(CARD_URI), errors="replace") if uri.startswith(CARD_URI) else ""
        if not name or len(name) > 255 or name[0] == "." or not name.isprintable() or set(name) & set('/\\%?#"<>|*:'):
            raise NotFound(f"{one_line(uri, 200)} names no card", hint=f"{CARD_URI}NAME.md; resources/list shows them")
        with self._fresh() as workspace:
            _, text, _, _ = workspace.cards.get(name, masked=True)
        text = cleaned(text)
        return text if len(text) <= RESOURCE_LIMIT else f"{text[:RESOURCE_LIMIT]}\n[cut: memory_get reads the rest]\n"


def shown_brief(brief: Brief) -> Reply:
    opening, body = brief.text.split("\n", 1)
    body, closing = body.rstrip("\n").rsplit("\n", 1)
    left_out = [
        {"title": one_line(title, 200), "pieces": count, "command": one_line(more, 300)}
        for title, count, more in brief.left_out
    ]
    text = cleaned(body)
    data = {"notice": NOTICE, "text": text, "characters": len(text), "leftOut": left_out}
    return Reply(f"{opening}\n{text}\n{closing}", data)


def writer_for(client: str, writers: Mapping[str, str]) -> str:
    """The writer whose name the client's begins with, such as claude for claude-code."""
    known = sorted({**OPENCLAW_INBOX, **writers}, key=len, reverse=True)
    return next((writer for writer in known if client.casefold().startswith(writer)), "claude")


def _which(machine_id: str, *, is_here: bool) -> str:
    if not machine_id:
        return "`truekeep host show` tells the story"
    return "this machine" if is_here else "another machine"


def _mark_settings(workspace: Workspace) -> tuple[int, ...]:
    """A stamp that changes when the configuration is edited, or a later copy of memory has come."""
    try:
        info = os.stat(os.path.join(live_path(workspace.path), STATE, "config.toml"))
    except OSError:
        return ()
    return info.st_dev, info.st_ino, info.st_mtime_ns, info.st_size


_VERBS: Mapping[str, str] = {
    "memory_search": "search",
    "memory_get": "get",
    "memory_write": "write",
    "memory_verify": "verify",
    "memory_status": "status",
    "memory_wake": "wake",
    "memory_checkpoint": "checkpoint",
}
"""The method of each tool."""
