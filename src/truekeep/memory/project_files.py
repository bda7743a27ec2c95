"""The paths of a project's file in memory."""

from __future__ import annotations

from truekeep.text.instruction_files import is_reserved_for_people


def project_paths(slug: str) -> tuple[str, ...]:
    """The possible paths of a project's file; a new one gets the first."""
    paths = (
        f"memory/projects/{slug}.md",
        f"memory/project-{slug}.md",
        f"memory/projects/{slug.upper()}.md",
        f"{slug.upper()}.md",
    )
    own = (f"memory/projects/project-{slug}.md",) if is_reserved_for_people(paths[0]) else ()
    return tuple(dict.fromkeys((*own, *paths)))
