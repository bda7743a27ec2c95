"""The map for the format's own tool: with it, stock `alf` can sync a workspace of truekeep's by its generic runtime."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep import __version__
from truekeep.core import file_io
from truekeep.core.errors import BadInput
from truekeep.integrations.alf.records import pretty

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

MAP_FILE = ".alf-map.json"
_SOURCES = (
    # id, glob, memory type, namespace, chunking, where its time is said, tags
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


def generic_map() -> dict[str, Any]:
    """What lies where in a workspace, in the map's own words."""
    names = ("id", "glob", "memory_type", "namespace", "chunking", "timestamp", "tags")
    return {
        "version": 1,
        "framework": "truekeep",
        "framework_version": __version__,
        "identity_file": "SOUL.md",
        "memory_sources": [{**dict(zip(names, source, strict=True)), "tags": [source[-1]]} for source in _SOURCES],
    }


def write_map(workspace: Workspace, document: dict[str, Any], *, replace: bool = False) -> Path:
    """Put the map into a workspace, whole; another one that is there only if that is asked for."""
    with workspace.writing("write its map"):
        if not replace and not _is_like(workspace.path / MAP_FILE, document):
            raise BadInput(f"{MAP_FILE} is there already and says something else", hint="--replace overwrites it")
        folder = file_io.open_root(str(workspace.path))
        try:
            file_io.write_beside(folder, MAP_FILE, pretty(document) + b"\n")
            os.replace(file_io.temporary_name(MAP_FILE), MAP_FILE, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            file_io.discard(folder, MAP_FILE)
            os.close(folder)
    return workspace.path / MAP_FILE


def _is_like(path: Path, document: dict[str, Any]) -> bool:
    """Whether there is no other map: none at all, or this one, of whichever version of truekeep."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {**found, "framework_version": __version__} == document
