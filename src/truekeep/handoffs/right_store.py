"""The document for what names no target: a preference, a rule of work, the state of a project. Pure.

Stable preferences are the user's and go to USER.md; rules of work go to rules/; how far a project is goes to the
project's file. Everything else is knowledge and becomes a card.
"""

from __future__ import annotations

from collections.abc import Sequence

from truekeep.memory.card import project_slug
from truekeep.memory.project_files import project_paths
from truekeep.text.durability import find_hints, is_rule

USER_DOCUMENT = "USER.md"


def document_for(kind: str, statements: Sequence[str], repository: str) -> str:
    """The document for a handoff of this type; "" if a card is right."""
    said = [text for text in statements if text.strip()]
    if not said:
        return ""
    if kind == "preference":
        return USER_DOCUMENT
    name = project_slug(repository.rpartition("/")[2]) if repository else ""
    if kind == "workflow" and all(map(is_rule, said)):
        return f"rules/{name or 'workflow'}.md"
    if kind == "project-context" and name and _is_task_state(said):
        return project_paths(name)[0]
    return ""


def _is_task_state(said: Sequence[str]) -> bool:
    """Whether most of it tells how far work is."""
    hints = find_hints(enumerate((f"- {text}" for text in said), start=1))
    return 2 * len({hint.line for hint in hints if hint.code == "task-state"}) > len(said)


def as_section(title: str, text: str, repository: str) -> str:
    """A text as a section of a document, with the repository where it was said."""
    where = f" ({repository.rpartition('/')[2]})" if repository else ""
    return f"### {' '.join(title.split())}{where}\n\n{text.strip()}"


def choose_document(
    kind: str, *, title: str, summary: str, facts: Sequence[str], content: str | None, repository: str
) -> tuple[str, str]:
    """The document for parts of a handoff that name no target, and what it says there; two empty texts for a card."""
    if content is not None and content.lstrip().startswith("---"):
        return "", ""  # a card's frontmatter
    said = [text for text in (content.split("\n") if content is not None else facts or [summary]) if text.strip()]
    document = document_for(kind, said, repository)
    listed = "\n".join(f"- {fact}" for fact in facts if fact.strip())
    text = content if content is not None else "\n\n".join(part for part in (summary.strip(), listed) if part)
    return (document, as_section(title, text, repository)) if document else ("", "")
