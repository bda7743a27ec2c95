"""Where the file of a project lies in memory."""

from __future__ import annotations

from truekeep.text.instruction_files import is_reserved_for_people


def project_paths(slug: str) -> tuple[str, ...]:
    """Where a project's own file may be; the first is where a new one goes."""
    paths = (
        f"memory/projects/{slug}.md",
        f"memory/project-{slug}.md",
        f"memory/projects/{slug.upper()}.md",
        f"{slug.upper()}.md",
    )
    own = (f"memory/projects/project-{slug}.md",) if is_reserved_for_people(paths[0]) else ()
    return tuple(dict.fromkeys((*own, *paths)))
