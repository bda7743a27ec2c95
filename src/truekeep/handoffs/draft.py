"""A review draft as text and as a value: why a handoff waits, where it came from, and the handoff itself.

A draft is one Markdown file: frontmatter written by truekeep, then the original, byte for byte. A person may edit
what is below the frontmatter and approve the result. A handoff with a credential is kept with the credential masked,
and one that is no text is not copied at all; in both cases the draft says where the original lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from truekeep.core.model import REVIEW, Finding
from truekeep.handoffs.format import parse_name, slugify
from truekeep.memory.frontmatter import InvalidFrontmatter, quote, split_frontmatter
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import find_secrets, mask_secrets
from truekeep.text.unicode import printable

Kept = Literal["whole", "masked", "elsewhere"]
_MARK = "card sha256 "
_UPKEEP = "upkeep"  # begins the origin of a draft that upkeep made


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One handoff that waits for a person."""

    id: str
    received_at: str
    name: str  # the handoff's own file name
    writer: str
    machine: str
    repository: str
    original: str  # where the original lies
    digest: str  # SHA-256 of the original, in hex
    kept: Kept
    reasons: tuple[tuple[str, str], ...]  # code and sentence
    target: str
    body: bytes
    drops: tuple[str, ...] = ()  # marks of the cards that go when it is approved
    file_digest: str = field(default="", compare=False)  # of the draft's own file, when it was read from one
    unnamed: tuple[Finding, ...] = field(default=(), compare=False)  # in the text now, and not in its stored reasons

    @property
    def path(self) -> str:
        return f"{REVIEW}/{self.id}.md"

    @property
    def is_proposal(self) -> bool:
        """Whether verification made it, of a card; nobody handed it in."""
        return self.original.startswith(_MARK)

    @property
    def is_upkeep(self) -> bool:
        """Whether upkeep made it: a merge, a promotion, a disagreement. Only a person decides on it."""
        return self.original.startswith(f"{_UPKEEP} ")

    @property
    def made_by(self) -> str:
        """The command of upkeep that made it."""
        return self.original.split(" ")[1].replace("-", " ") if self.is_upkeep else ""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The cards that go when it is approved."""
        return tuple(mark.removeprefix(_MARK).partition(" ")[2] for mark in self.drops)

    @property
    def is_removal(self) -> bool:
        """Whether approving it removes cards and writes nothing: its text only says why."""
        return bool(self.drops) and not self.target

    @property
    def card(self) -> str:
        """The card that it is about: the one that it writes, else the one that it removes."""
        return self.target or next(iter(self.dropped), "")

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its reasons, each once."""
        return tuple(dict(self.reasons))

    @property
    def is_edited(self) -> bool:
        """Whether a person changed what it proposes."""
        return self.kept == "whole" and sha256(self.body).hexdigest() != self.digest


def draft_id(name: str, digest: bytes) -> str:
    """A draft's id: readable, and different for every different handoff."""
    _, slug = parse_name(name)
    tail = digest.hex()[:10]
    if find_secrets(name):
        return f"handoff-{tail}"
    return f"{slugify(slug, limit=48) or 'handoff'}-{tail}"


def draft_body(raw: bytes | None, *, has_secret: bool) -> tuple[Kept, bytes]:
    """What of a handoff goes into its draft."""
    text = decode_text(raw) if raw is not None else None
    if raw is None or text is None:
        return "elsewhere", b""
    if not has_secret:
        return "whole", raw
    try:
        masked = mask_secrets(text)
    except Exception:  # noqa: BLE001 - what cannot be masked is not copied
        masked = None
    return ("elsewhere", b"") if masked is None else ("masked", masked.encode())


def render_draft(draft: Draft) -> bytes:
    lines = [
        "---",
        f"draft: {draft.id}",
        f"received: {draft.received_at}",
        f"handoff: {_scalar(draft.name)}",
        f"writer: {_scalar(draft.writer)}",
        f"machine: {_scalar(draft.machine)}",
        f"repository: {_scalar(draft.repository)}",
        f"original: {_scalar(draft.original)}",
        f"sha256: {draft.digest}",
        f"kept: {draft.kept}",
        f"target: {_scalar(draft.target)}",
        "reasons:",
        *(f"  - {_scalar(f'{code}: {sentence}')}" for code, sentence in draft.reasons),
        *(("drops:", *(f"  - {_scalar(mark)}" for mark in draft.drops)) if draft.drops else ()),
        "---",
        "",
    ]
    return "\n".join(lines).encode() + draft.body


def _scalar(text: str) -> str:
    return quote(printable(text))


def parse_draft(draft_name: str, data: bytes) -> Draft:
    """Read a draft. A file that truekeep did not write is a draft too: all of it is the handoff."""
    stem = draft_name.removesuffix(".md")
    end = data.find(b"\n---\n")
    if data.startswith(b"---\ndraft: ") and end > 0:
        head = data[: end + 5]
        try:
            front, _ = split_frontmatter(head.decode("utf-8", "replace"))
        except InvalidFrontmatter:
            front = None
        if front is not None:
            kept = front.text("kept")
            return Draft(
                id=stem,
                received_at=front.text("received"),
                name=front.text("handoff"),
                writer=front.text("writer"),
                machine=front.text("machine"),
                repository=front.text("repository"),
                original=front.text("original"),
                digest=front.text("sha256"),
                kept="masked" if kept == "masked" else "elsewhere" if kept == "elsewhere" else "whole",
                reasons=tuple(_reason(item) for item in front.items("reasons")),
                target=front.text("target"),
                body=data[end + 5 :],
                drops=front.items("drops"),
            )
    return Draft(
        id=stem,
        received_at="",
        name=draft_name,
        writer="",
        machine="",
        repository="",
        original="",
        digest="",
        kept="whole",
        reasons=(),
        target="",
        body=data,
    )


def _reason(item: str) -> tuple[str, str]:
    code, _, sentence = item.partition(":")
    return code, sentence.strip()


def reasons_of(findings: tuple[Finding, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (finding.code, finding.message + (f" (line {finding.line})" if finding.line else "")) for finding in findings
    )


def card_mark(path: str, data: bytes) -> str:
    """How a draft that verification made says which state of a card it was made from."""
    return f"{_MARK}{sha256(data).hexdigest()} {path}"


def upkeep_mark(by: str, path: str = "", data: bytes | None = None) -> str:
    """How a draft says which command of upkeep made it, and from which state of a card, if of one."""
    mark = f"{_UPKEEP} {by.replace(' ', '-')}"
    return f"{mark} {card_mark(path, data)}" if data is not None else mark


def is_overtaken(draft: Draft, data: bytes | None) -> bool:
    """Whether a card is not the one any more that a proposal was made from."""
    if draft.is_upkeep:
        return draft.original != upkeep_mark(draft.made_by, draft.target, data)
    return draft.is_proposal and (data is None or draft.original != card_mark(draft.target, data))


def changed_since(draft: Draft, read: Callable[[str], bytes | None]) -> list[str]:
    """The cards that are not any more what a draft was made from. One that somebody handed in was made from none."""
    found = []
    if draft.target and (draft.is_proposal or draft.is_upkeep) and is_overtaken(draft, read(draft.target)):
        found.append(draft.target)
    for mark, path in zip(draft.drops, draft.dropped, strict=True):
        data = read(path)
        if data is None or card_mark(path, data) != mark:
            found.append(path)
    return found
