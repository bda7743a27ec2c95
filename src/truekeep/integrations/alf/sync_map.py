"""The map file with which upstream's `alf` can sync a workspace through its generic runtime."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep import __version__
from truekeep.core import file_io
from truekeep.core.errors import BadInput
from truekeep.integrations.alf.documents import JsonObject, dump_document

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

MAP_FILE = ".alf-map.json"
_SOURCES = (
    # id, glob, memory_type, namespace, chunking, timestamp, tags
    ("memory-md", "MEMORY.md", "semantic", "curated", "by_heading", "file_mtime", "hashtags"),
    ("cards", "memory/cards/*.md", "semantic", "cards", "per_file", "frontmatter:updated", "frontmatter:tags"),
    ("daily-logs", "memory/20*.md", "episodic", "daily", "by_heading", "filename_date", "hashtags"),
    ("daily-folder", "memory/daily/*.md", "episodic", "daily", "by_heading", "filename_date", "hashtags"),
    ("projects", "memory/projects/*.md", "semantic", "project", "by_heading", "file_mtime", "hashtags"),
    ("project-files", "memory/project-*.md", "semantic", "project", "by_heading", "file_mtime", "hashtags"),
    ("decisions", "memory/decisions/*.md", "semantic", "decisions", "by_heading", "file_mtime", "static:decision"),
    ("operations", "memory/ops/*.md", "procedural", "procedural", "by_heading", "file_mtime", "hashtags"),
    (
        "gating-policies",
        "memory/gating-policies.md",
        "procedural",
        "procedural",
        "by_heading",
        "file_mtime",
        "hashtags",
    ),
    ("checkpoints", "memory/checkpoints/*.md", "episodic", "checkpoints", "by_heading", "file_mtime", "hashtags"),
    ("context", "memory/active-context.md", "semantic", "active-context", "per_file", "file_mtime", "hashtags"),
)


def generic_map() -> JsonObject:
    """The memory sources of a workspace, as upstream's generic runtime expects them."""
    names = ("id", "glob", "memory_type", "namespace", "chunking", "timestamp", "tags")
    return {
        "version": 1,
        "framework": "truekeep",
        "framework_version": __version__,
        "identity_file": "SOUL.md",
        "memory_sources": [{**dict(zip(names, source, strict=True)), "tags": [source[-1]]} for source in _SOURCES],
    }


def write_map(workspace: Workspace, document: JsonObject, *, replace: bool = False) -> Path:
    """Write the map to a workspace. A different existing map is only overwritten with `replace`."""
    with workspace.writing("write its map"):
        if not replace and not _is_absent_or_same(workspace.path / MAP_FILE, document):
            raise BadInput(f"a different {MAP_FILE} already exists", hint="add --replace to overwrite it")
        folder = file_io.open_root(str(workspace.path))
        try:
            file_io.write_beside(folder, MAP_FILE, dump_document(document) + b"\n")
            os.replace(file_io.temporary_name(MAP_FILE), MAP_FILE, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            file_io.discard(folder, MAP_FILE)
            os.close(folder)
    return workspace.path / MAP_FILE


def _is_absent_or_same(path: Path, document: JsonObject) -> bool:
    """True if there is no map, or one that differs only in the version of truekeep."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {**found, "framework_version": __version__} == document
