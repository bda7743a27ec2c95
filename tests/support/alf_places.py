"""Workspaces that are carried: built from a few files, exported, imported, looked at from outside."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.support.helpers import NOW
from truekeep.core import file_io
from truekeep.integrations.alf.delta import export_delta
from truekeep.integrations.alf.export import ExportOptions, ExportReport, export_archive
from truekeep.integrations.alf.files import ARCHIVE_SUFFIXES, ARTIFACT_THRESHOLD
from truekeep.integrations.alf.import_ import ImportOptions, ImportReport, import_archive
from truekeep.integrations.alf.record_ids import AGENT_ID_FILE
from truekeep.integrations.alf.schema_validation import check_document
from truekeep.integrations.alf.validate import check_archive, verdict
from truekeep.integrations.alf.writer import ArchiveSummary, DeltaSummary
from truekeep.integrations.alf.zip_container import ZipReader, unsafe_name
from truekeep.workspace.workspace import Workspace

AGENT = "5d5be3b5-9b0e-4c0a-8e0f-3f6a3c6f2b11"
AT_NS = int(datetime(2026, 2, 10, 9, 30, tzinfo=UTC).timestamp()) * 10**9
CARD = "---\ntopic: Proxy\ncategory: setup\ntags: [a, b]\ncreated: 2026-01-05\nsupersedes: old-proxy.md\n---\n\n"

Files = Mapping[str, bytes]

SAMPLE: Files = {
    "MEMORY.md": b"# Memory\n\n## Editor\nVim is the editor of choice.\n\n## Shell\nFish, never plain bash. #shell\n",
    "SOUL.md": b"# Ada\nA careful agent.\n",
    "IDENTITY.md": b"Name: Ada\n",
    "AGENTS.md": b"# Rules\n\n## Sub-agents\n- Reviewer: reads everything\n",
    "USER.md": b"# Dana\n\n## Timezone\nEurope/Oslo\n",
    "memory/2026-01-15.md": b"# Day\n\n## Morning\nDeployed the gate. [deploy|i=0.8]\r\n\r\n## Evening\r\nQuiet.\r\n",
    "memory/2025-11-02.md": b"## Note\nAn older day, in another quarter.\n",
    "memory/active-context.md": b"\xef\xbb\xbfWorking on the gateway right now.\r\n",
    "memory/gating-policies.md": b"## Rules\n| # | Trigger | Action |\n|---|---|---|\n| 1 | a push | lint first |\n"
    b"| 2 | a release | ask Dana before |\n",
    "memory/project-gate.md": b"## Goal\nOne gateway for every service.\n",
    "memory/cards/proxy.md": CARD.encode() + b"Staging is behind a proxy, see [[gateway]].\n",
    "memory/cards/gateway.md": b"---\ntopic: Gateway\n---\n\nThe gateway listens on 8443.\n",
    "memory/ops/restart.md": b"## Restart\nRestart the unit, then look at its log.\n",
    "memory/latin.md": "caf\u00e9 in another encoding\n".encode("latin-1"),
    "memory/empty.md": b"",
    "memory/deep/er/and/deeper/note.md": b"## Deep\nFar below the surface.\n",
    "memory/bytes.bin": bytes(range(256)) * 3,
    "notes/todo.txt": b"not memory, but small\n",
    "skills/deploy/SKILL.md": b"# Deploy\nHow to deploy.\n",
    "big.bin": b"\x00large\xff" * 20_000,
}


def write_tree(root: Path, files: Files, *, at_ns: int = AT_NS, agent: str | None = AGENT) -> Path:
    """Files with their bytes; each a second younger than the one before, so that order is seen."""
    root.mkdir(parents=True, exist_ok=True)
    for number, (path, data) in enumerate(sorted(files.items())):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o644)
        moment = at_ns + number * 10**9 + number
        os.utime(target, ns=(moment, moment))
    if agent is not None:
        (root / AGENT_ID_FILE).write_text(f"{agent}\n")
    return root


def a_workspace(root: Path, files: Files = SAMPLE, **more: Any) -> Path:
    write_tree(root, files, **more)
    Workspace.init(root, is_bare=True, now=lambda: NOW)
    return root


def export(root: Path, target: Path, **asked: Any) -> ExportReport[ArchiveSummary]:
    with Workspace.open(root, now=lambda: NOW) as workspace:
        return export_archive(workspace, target, ExportOptions(**asked))


def make_delta(root: Path, target: Path, since: Path, **asked: Any) -> ExportReport[DeltaSummary]:
    with Workspace.open(root, now=lambda: NOW) as workspace:
        return export_delta(workspace, target, since, ExportOptions(**asked))


def import_(source: Path, root: Path, **asked: Any) -> ImportReport:
    """An import with a person's approval; test_import_flags.py has the others."""
    return import_archive(source, root, ImportOptions(**{"trust": True, **asked}), now=lambda: NOW)


def entries_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def records_in(path: Path) -> list[dict[str, Any]]:
    found = entries_of(path)
    manifest = json.loads(found.get("manifest.json") or found["delta-manifest.json"])
    layers = manifest["layers"] if "layers" in manifest else manifest["changes"]
    memory = layers.get("memory", {})
    names = [part["file"] for part in memory.get("partitions", ())] or ([memory["file"]] if memory else [])
    return [json.loads(line) for name in names for line in found[name].split(b"\n") if line.strip()]


def manifest_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entries_of(path)["manifest.json"])
    return found


class File(NamedTuple):
    """What is on disk under a name."""

    digest: str
    mtime_ns: int
    mode: int


def look(root: Path, *, skip: tuple[str, ...] = (".truekeep", AGENT_ID_FILE)) -> dict[str, File]:
    """Every file below a folder, with bytes, time and mode; links are shown as links."""
    found: dict[str, File] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in skip]
        for name in [*files, *(name for name in names if os.path.islink(os.path.join(folder, name)))]:
            path = Path(folder) / name
            key = path.relative_to(root).as_posix()
            if key in skip:
                continue
            if path.is_symlink():
                found[key] = File(f"-> {os.readlink(path)}", 0, 0)
            elif path.is_file():
                info = path.stat()
                found[key] = File(hashlib.sha256(path.read_bytes()).hexdigest(), info.st_mtime_ns, info.st_mode & 0o777)
            else:
                found[key] = File("no plain file", 0, 0)
    return found


def carried(files: Mapping[str, Any]) -> set[str]:
    """The paths whose bytes an archive holds: all but large artifacts."""
    return {
        path
        for path, data in files.items()
        if not (isinstance(data, bytes) and len(data) > ARTIFACT_THRESHOLD and not is_memory(path))
    }


def is_memory(path: str) -> bool:
    return path.startswith(("memory/", "rules/", ".learnings/", "skills/")) or (
        "/" not in path and path.endswith(".md")
    )


def assert_sound(path: Path) -> None:
    """Nothing is wrong with an archive; every record in it is one."""
    with open(path, "rb") as file, ZipReader(file) as reader:
        problems = [problem for problem in check_archive(reader) if problem.level != "warning"]
        assert problems == []
    for record in records_in(path):
        assert [problem for problem in check_document("memory-record", record) if problem.level != "warning"] == []


def verdict_of(path: Path) -> str:
    with open(path, "rb") as file, ZipReader(file) as reader:
        return verdict(check_archive(reader))


def left_over(*folders: Path) -> list[str]:
    """Temporary files that nobody cleared away."""
    return [
        os.path.join(folder, name)
        for top in folders
        for folder, _, names in os.walk(top)
        for name in names
        if file_io.TEMPORARY in name or name.startswith("tmp")
    ]


def stored_forms(text: str) -> Iterator[bytes]:
    """A text as it could stand in a file: with either line end, and as JSON writes it."""
    plain = text.replace("\r\n", "\n")
    for form in (text, plain, plain.replace("\n", "\r\n")):
        yield form.encode()
        yield json.dumps(form, ensure_ascii=False)[1:-1].encode()
        yield json.dumps(form)[1:-1].encode()


# --- Workspaces that nobody would think of --------------------------------------------------------------------------

_WORDS = st.sampled_from(
    (
        *("The gateway listens on 8443.", "Fish, never bash. #shell", "café ☕ 日本語", "[deploy|i=0.7] done", ""),
        *("| # | Trigger | Action |", "|---|---|---|", "| 1 | a push | lint first |", "- see [[proxy]] and [x](b.md)"),
        *("```", "## Not a heading in code", "\u2028 odd line \x0b", "tab\there \\n not an end", 'a "quoted" word'),
    )
)
_LINES = st.lists(_WORDS, max_size=6)
_SECTIONS = st.lists(
    st.tuples(st.sampled_from(("## One", "## Two", "## One", "### Low", "# Top", "")), _LINES), max_size=4
)


@st.composite
def markdown(draw: st.DrawFn) -> bytes:
    """Text with headings, tables, fences, odd characters; either line end, with or without a byte-order mark."""
    lines = [line for heading, body in draw(_SECTIONS) for line in (heading, *body, "")]
    text = draw(st.sampled_from(("\n", "\n", "\r\n"))).join(lines)
    mark = draw(st.sampled_from(("", "", "\ufeff")))
    return (mark + text + draw(st.sampled_from(("", "\n", "\n\n  ")))).encode()


@st.composite
def card(draw: st.DrawFn) -> bytes:
    keys = draw(
        st.lists(
            st.sampled_from(
                (
                    *("category: workflow", "tags: [x, y]", "created: 2025-07-01", "updated: 2026-01-01"),
                    *(
                        "supersedes: proxy.md",
                        "superseded_by: b.md",
                        "repository: github.com/me/app",
                        "status: archived",
                    ),
                )
            ),
            unique=True,
            max_size=5,
        )
    )
    front = "".join(f"{key}\n" for key in keys)
    return f"---\ntopic: {draw(st.sampled_from(('Proxy', 'Ü', '')))}\n{front}---\n\n".encode() + draw(markdown())


_TEXTS = markdown() | card() | st.sampled_from((b"", b"\n", b"   \n"))
_BYTES = st.binary(max_size=60) | st.sampled_from((b"\xff\xfe\x00bad", b"\x00" * 10, b"latin \xe9\n", b"x" * 5000))
_NAMES = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/\\\x7f"), min_size=1, max_size=12
).filter(
    lambda name: (
        name not in (".", "..") and not unsafe_name(name) and not name.casefold().startswith((".git", ".truekeep"))
    )
)
_MEMORY_PATHS = st.sampled_from(
    (
        *("MEMORY.md", "SOUL.md", "USER.md", "AGENTS.md", "IDENTITY.md", "TOOLS.md", "memory/active-context.md"),
        *("memory/2026-01-15.md", "memory/2025-10-01.md", "memory/2026-1-5.md", "memory/2026-02-30.md"),
        *("memory/gating-policies.md", "memory/project-x.md", "memory/notes.md", "memory/daily/2026-03-01.md"),
        *("memory/cards/proxy.md", "memory/cards/b.md", "memory/curated/c.md", "memory/procedures/p.md"),
        *("memory/projects/y.md", "memory/decisions/d.md", "memory/a/b/c/d/e/f/g.md", "memory/.dreams/x.md"),
        *("rules/r.md", "skills/s/SKILL.md", ".learnings/l.md", "memory/.keep", "memory/handoff-inbox/d.md"),
    )
)
_ODD_PATHS = st.builds(
    lambda folder, name: f"{folder}{name}",
    st.sampled_from(("", "memory/", "memory/cards/", "notes/", "a b/ü/", "x/" * 9)),
    st.builds(lambda name, end: f"{name}{end}", _NAMES, st.sampled_from((".md", "", ".txt", ".bin"))),
).filter(lambda path: not path.endswith(ARCHIVE_SUFFIXES) and not unsafe_name(path))


def workspaces(*, most: int = 7) -> st.SearchStrategy[dict[str, bytes]]:
    """Small workspaces: no file stands where another needs a folder."""
    one = st.dictionaries(_MEMORY_PATHS, _TEXTS, max_size=most)
    other = st.dictionaries(_ODD_PATHS, _TEXTS | _BYTES, max_size=3)
    return st.builds(lambda memory, odd: without_clashes({**memory, **odd}), one, other)


def without_clashes(files: Mapping[str, bytes]) -> dict[str, bytes]:
    folders = {path[:at] for path in files for at, char in enumerate(path) if char == "/"}
    return {
        path: data
        for path, data in files.items()
        if path not in folders and path not in (AGENT_ID_FILE, ".alf-sync-log.md")
    }
