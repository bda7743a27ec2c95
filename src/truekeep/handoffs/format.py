"""The format of handoffs: parsing and writing.

Parsing never fails and never guesses: it returns a Handoff with everything that could be read, and a finding for each
problem. A section starts only at one of the ten known headings, so a card may have headings of its own; a known heading
that may belong to the content is a finding. The policy decides whether a handoff is filed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from truekeep.core.model import Finding
from truekeep.memory.frontmatter import Frontmatter, quote
from truekeep.text.instruction_files import is_reserved_for_people
from truekeep.text.markdown import Heading, TooComplex, outline, peel_fence, strip_comments

ACTIONS = ("create-card", "update-card", "no-card")
SECTIONS = (
    "Type",
    "Title",
    "Summary",
    "Durable facts",
    "Evidence",
    "Recommended memory action",
    "Target card",
    "Suggested card content",
    "Target document",
    "Suggested document content",
)

MAX_FINDINGS = 20

_KNOWN = {name.casefold(): name for name in SECTIONS}
_BLANK = frozenset(("", "-", "--", "—", "n/a", "na", "none", "(none)", "null", "not applicable"))
_MAY_FOLLOW_CARD = frozenset(("Target document", "Suggested document content"))
_NAME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]{2})([0-9]{2})-(.+)\.(?:md|markdown)\Z", re.DOTALL | re.IGNORECASE
)
_ENDING = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)
# Names that rclone, Syncthing and Dropbox give to conflict copies.
_CONFLICT = re.compile(
    r"\.[^.]*(?:conflict[0-9]*|path[0-9])(?:\.(?:md|markdown))?\Z"
    r"|(?:\.sync-conflict-[0-9]{8}-[0-9]{6}|conflicted copy)[^/]*\.(?:md|markdown)\Z",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\s*<!--")
_SLUG_GAP = re.compile(r"[^a-z0-9]+")


class HandoffSection(NamedTuple):
    """One section: its raw text, and the line where that text begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Proposed durable knowledge from one agent for the next."""

    type: str = ""
    title: str = ""
    summary: str = ""
    action: str = ""  # one of ACTIONS; "" if unclear
    target_card: str = ""
    card_content: str = ""
    target_document: str = ""
    document_content: str = ""
    sections: dict[str, HandoffSection] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    has_outer_fence: bool = False

    def line_of(self, name: str) -> int | None:
        section = self.sections.get(name)
        return section.line if section else None

    def knowledge(self) -> Iterator[tuple[int, str]]:
        """Numbered lines of facts and content, without frontmatter and fenced code."""
        for name in ("Durable facts", "Suggested card content", "Suggested document content"):
            section = self.sections.get(name)
            if section is None:
                continue
            fence = ""
            outer = self.has_outer_fence
            in_front = name == "Suggested card content"
            dashes = 0
            for number, line in enumerate(section.text.split("\n"), start=section.line):
                bare = line.lstrip(" ")
                if in_front and dashes < 2:
                    dashes += bare.startswith("---")
                    outer = outer and not bare.startswith(("```", "~~~"))
                    continue
                if bare.startswith(("```", "~~~")):
                    if outer:
                        outer = False
                    elif not fence:
                        fence = bare[:3]
                    elif bare.startswith(fence):
                        fence = ""
                elif not fence and bare:
                    yield number, line


def parse_handoff(text: str) -> Handoff:
    """Parse a handoff, with a finding for everything that is unclear."""
    try:
        shape = outline(text)
    except TooComplex:
        what = "the text is too long for its nested or indented fences and HTML; split it"
        return Handoff(findings=(Finding(code="unclear-section", message=what),))
    starts = [(name, heading) for heading in shape.headings if heading.level == 2 and (name := _known_name(heading))]
    if not starts:
        what = "no `## Type`, `## Title` … section; `truekeep handoff new` writes one that fits"
        return Handoff(findings=(Finding(code="not-a-handoff", message=what, line=1),))
    findings: list[Finding] = []
    if shape.open_at is not None:
        what = "opened here and not closed"
        findings.append(Finding(code="open-fence", message=what, line=shape.open_at))
    sections = _cut_sections(text, starts, findings)
    _note_outside_text(text[: starts[0][1].start], findings)

    type_ = _single(sections, "Type")
    title = _single(sections, "Title")
    card_content, has_outer_fence = _content(sections, "Suggested card content")
    document_content, document_fence = _content(sections, "Suggested document content")
    _note_unclear_sections(starts, has_outer_fence, document_fence, findings)
    action = _single(sections, "Recommended memory action") or ""
    return Handoff(
        type=(type_ or "").casefold(),
        title=title if title is not None else _first_line(sections["Title"].text),
        summary=_body(sections, "Summary"),
        action=action.casefold().rstrip(".") if action.casefold().rstrip(".") in ACTIONS else "",
        target_card=_target(sections, "Target card"),
        card_content=card_content,
        target_document=_target(sections, "Target document"),
        document_content=document_content,
        sections=sections,
        findings=tuple(findings),
        has_outer_fence=has_outer_fence or document_fence,
    )


def _known_name(heading: Heading) -> str | None:
    name = heading.text.casefold()
    return _KNOWN.get(name) or _KNOWN.get(" ".join(name.strip("*_` :").split()))


def _cut_sections(text: str, starts: list[tuple[str, Heading]], findings: list[Finding]) -> dict[str, HandoffSection]:
    sections: dict[str, HandoffSection] = {}
    last = len(starts) - 1
    for position, (name, heading) in enumerate(starts):
        if name in sections:
            if len(findings) >= MAX_FINDINGS:
                continue
            what = f"`## {name}` appears twice (first above line {sections[name].line})"
            findings.append(Finding(code="section-twice", message=what, line=heading.line))
            continue
        end = len(text) if position == last else starts[position + 1][1].start
        sections[name] = HandoffSection(text[heading.end : end], heading.line + 1)
    return sections


def _note_outside_text(before: str, findings: list[Finding]) -> None:
    for number, line in enumerate(strip_comments(before).split("\n"), start=1):
        if line.strip() and not line.startswith("# "):
            what = "text before the first section is kept with the original but not filed"
            findings.append(Finding(code="outside-text", message=what, line=number))
            return


def _note_unclear_sections(
    starts: list[tuple[str, Heading]], card_is_fenced: bool, document_is_fenced: bool, findings: list[Finding]
) -> None:
    """Add a finding for a known heading after unfenced content: it may be part of the content."""
    content = ""
    for name, heading in starts:
        if content and not (content == "Suggested card content" and name in _MAY_FOLLOW_CARD):
            what = f"`## {name}` after `## {content}`: section or content? Fence the content or move the section up"
            findings.append(Finding(code="unclear-section", message=what, line=heading.line))
            return
        if (name == "Suggested card content" and not card_is_fenced) or (
            name == "Suggested document content" and not document_is_fenced
        ):
            content = name


def _single(sections: dict[str, HandoffSection], name: str) -> str | None:
    """The single value of a section; None if it has several lines."""
    section = sections.get(name)
    if section is None:
        return ""
    text = section.text.strip()
    if "\n" not in text and "<" not in text:
        return _bare(text)
    lines = [bare for line in strip_comments(text).split("\n") if (bare := line.strip())]
    if len(lines) > 1:
        return None
    return _bare(lines[0]) if lines else ""


def _bare(line: str) -> str:
    """The value without the bullet, backticks, quotes or stars that models put around it."""
    if line[:1].isalnum() and line[-1:].isalnum():
        return line
    if line.startswith(("- ", "* ")):
        line = line[2:].strip()
    for marks in ("**", "`", '"', "'"):
        if len(line) > 2 * len(marks) and line.startswith(marks) and line.endswith(marks):
            line = line[len(marks) : -len(marks)].strip()
    return line


def _target(sections: dict[str, HandoffSection], name: str) -> str:
    """The target as written; several lines are returned together, so that no check sees only the first."""
    value = _single(sections, name)
    if value is None:
        return sections[name].text.strip()
    return "" if value.casefold() in _BLANK else value


def _first_line(text: str) -> str:
    return strip_comments(text).strip().split("\n", 1)[0].strip()


def _body(sections: dict[str, HandoffSection], name: str) -> str:
    section = sections.get(name)
    return strip_comments(section.text).strip() if section else ""


def _content(sections: dict[str, HandoffSection], name: str) -> tuple[str, bool]:
    """The suggested content without leading template comments and one outer fence; and True if there was a fence."""
    section = sections.get(name)
    if section is None:
        return "", False
    text = _without_lead_comments(section.text)
    peeled = peel_fence(text)
    fenced = peeled != text
    if fenced:
        text = _without_lead_comments(peeled)
    return ("" if text.casefold() in _BLANK else text), fenced


def _without_lead_comments(text: str) -> str:
    """The content without leading template comments. Later comments belong to the writer."""
    position = 0
    while (match := _LEAD.match(text, position)) and (end := text.find("-->", match.end())) >= 0:
        position = end + 3
    text = text[position:].strip("\n")
    return text.rstrip() if text.startswith("    ") else text.strip()


def parse_name(name: str) -> tuple[datetime | None, str]:
    """The time of writing and the slug in a file name. The time comes from the writer's clock and is not trusted."""
    match = _NAME.match(name)
    if match is None:
        return None, _ENDING.sub("", name)
    day, hour, minute, slug = match.groups()
    try:
        return datetime.fromisoformat(f"{day}T{hour}:{minute}"), slug
    except ValueError:
        return None, _ENDING.sub("", name)


def is_conflict_copy(name: str) -> bool:
    """True if the name is that of a sync tool's conflict copy. Such a copy is a handoff of its own."""
    return _CONFLICT.search(name) is not None


def slugify(text: str, *, limit: int = 60) -> str:
    """The text as lower-case words and dashes, safe in any file name."""
    return _SLUG_GAP.sub("-", text.casefold().encode("ascii", "ignore").decode()).strip("-")[:limit].strip("-")


def topic_slug(topic: str, *, limit: int = 60) -> str:
    """A file name for a topic; with a digest if most of the topic is not in Latin script."""
    slug = slugify(topic, limit=limit)
    said = sum(map(str.isalnum, topic[:limit]))
    if 2 * sum(map(str.isalnum, slug)) >= said:
        return slug or "card"
    return f"{slug[: limit - 9] or 'card'}-{sha256(topic.casefold().encode('utf-8', 'replace')).hexdigest()[:8]}"


def default_card_name(topic: str, repository: str = "") -> str:
    """The default name of a new card: its repository and topic."""
    slug, place = topic_slug(topic), slugify(repository.rpartition("/")[2], limit=40)
    if place and slug != place and not slug.startswith(f"{place}-"):
        slug = f"{place}-{slug}"
    return f"notes-{slug}.md" if is_reserved_for_people(f"{slug}.md") else f"{slug}.md"


def other_card_names(topic: str, repository: str) -> Iterator[str]:
    """Alternatives if the default name is taken by another repository's card: with the owner, then with a number."""
    stem = default_card_name(topic, repository).removesuffix(".md")
    if owner := slugify(repository.rpartition("/")[0].rpartition("/")[2], limit=40):
        yield f"{owner}-{stem}.md"
    yield from (f"{stem}-{number}.md" for number in range(2, 100))


def handoff_name(title: str, at: datetime) -> str:
    return f"{at:%Y-%m-%d-%H%M}-{slugify(title) or 'handoff'}.md"


def render_handoff(
    *,
    type: str,  # noqa: A002 - the section's own name
    title: str,
    summary: str,
    facts: Sequence[str] = (),
    evidence: Sequence[str] = (),
    action: str,
    target_card: str = "",
    card_content: str = "",
    target_document: str = "",
    document_content: str = "",
) -> str:
    """Render a handoff. Parsing the result returns the same values."""
    parts = ["# Memory Handoff\n"]

    def add(name: str, text: str) -> None:
        if text:
            parts.append(f"## {name}\n{text.rstrip()}\n")

    add("Type", type.strip())
    add("Title", " ".join(title.split()))
    add("Summary", summary.strip())
    add("Durable facts", "\n".join(f"- {' '.join(fact.split())}" for fact in facts))
    add("Evidence", "\n".join(f"- {' '.join(item.split())}" for item in evidence))
    add("Recommended memory action", action)
    add("Target card", target_card)
    add("Suggested card content", _fenced(card_content))
    add("Target document", target_document)
    add("Suggested document content", document_content.strip("\n"))
    return "\n".join(parts)


def _fenced(content: str) -> str:
    """The content, inside a fence if its headings could be mistaken for sections."""
    try:
        is_plain = not any(_known_name(heading) for heading in outline(content).headings if heading.level == 2)
    except TooComplex:
        is_plain = False
    if not content or is_plain:
        return content.strip("\n")
    longest = max((len(match[0]) for match in re.finditer("`+", content)), default=0)
    marks = "`" * max(4, longest + 1)
    return f"{marks}markdown\n{content.strip()}\n{marks}"


def compose_handoff(
    *,
    title: str,
    kind: str = "project-context",
    summary: str = "",
    facts: Sequence[str] = (),
    evidence: Sequence[str] = (),
    card: str | None = None,
    update: bool = False,
    document: str | None = None,
    topic: str | None = None,
    category: str | None = None,
    tags: Sequence[str] = (),
    description: str = "",
    content: str | None = None,
    repository: str = "",
    has_card: Callable[[str], bool] = lambda _: False,
) -> str:
    """Build a handoff: for a document if one is given, else for a card. The content defaults to summary and facts.

    Without a name, a card gets its default name. An update falls back to the topic alone, as older versions named
    cards, if such a card exists (`has_card`).
    """
    summary = summary.strip()
    facts = [fact for fact in facts if fact.strip()]
    if content is None:
        content = "\n\n".join(part for part in (summary, "\n".join(f"- {fact}" for fact in facts)) if part)
    common: dict[str, Any] = {
        "type": kind,
        "title": title,
        "summary": summary or " ".join(title.split()) + ".",
        "facts": facts,
        "evidence": evidence,
    }
    if document:
        return render_handoff(**common, action="no-card", target_document=document, document_content=content)
    if not content.lstrip().startswith("---"):
        # An update sets only the fields it changes; the card keeps the rest.
        front = Frontmatter()
        defaults = ("", "") if update else (title, kind)
        for key, given, default in zip(("topic", "category"), (topic, category), defaults, strict=True):
            if value := given or default:
                front = front.with_text(key, value)
        listed = ", ".join(quote(tag) for tag in tags)
        line = f"tags: [{listed}]\n" if listed or not update else ""
        line += f"description: {quote(description)}\n" if description else ""
        content = front.render().removesuffix("---\n") + f"{line}---\n\n{content}"
    name = card or default_card_name(topic or title, repository)
    if not card and update and not has_card(name) and has_card(plain := default_card_name(topic or title)):
        name = plain
    return render_handoff(
        **common,
        action="update-card" if update else "create-card",
        target_card=name if name.endswith(".md") else f"{name}.md",
        card_content=content,
    )
