"""The format of review drafts: why a handoff waits, where it came from, and the handoff itself.

A draft is one Markdown file: frontmatter written by truekeep, then the original, byte for byte. A person may edit the
part below the frontmatter and approve the result. A credential is masked in the draft, and a file that is not text is
not copied; in both cases the draft says where the original is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
_UPKEEP = "upkeep"  # prefix of `original` in drafts made by maintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One handoff or proposal that waits for a person's decision."""

    id: str
    received_at: str
    name: str  # the handoff's own file name
    writer: str
    machine: str
    repository: str
    original: str  # path of the original
    digest: str  # SHA-256 of the original, in hex
    kept: Kept
    reasons: tuple[tuple[str, str], ...]  # code and sentence
    target: str
    body: bytes
    drops: tuple[str, ...] = ()  # marks of the cards that approving it removes
    file_digest: str = field(default="", compare=False)  # of the draft's own file, if read from one
    unnamed: tuple[Finding, ...] = field(default=(), compare=False)  # current findings missing from its stored reasons

    @property
    def path(self) -> str:
        return f"{REVIEW}/{self.id}.md"

    @property
    def is_proposal(self) -> bool:
        """True if verification made it from a card."""
        return self.original.startswith(_MARK)

    @property
    def is_upkeep(self) -> bool:
        """True if maintenance made it: a merge, a promotion or a contradiction. Only a person can approve it."""
        return self.original.startswith(f"{_UPKEEP} ")

    @property
    def made_by(self) -> str:
        """The maintenance command that made it."""
        return self.original.split(" ")[1].replace("-", " ") if self.is_upkeep else ""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The cards that approving it removes."""
        return tuple(mark.removeprefix(_MARK).partition(" ")[2] for mark in self.drops)

    @property
    def is_by_earlier_ingester(self) -> bool:
        """True if an ingester made it that ran before truekeep did."""
        return not self.digest and bool(_earlier_time(self.id))

    @property
    def is_removal(self) -> bool:
        """True if approving it only removes cards; its text says why."""
        return bool(self.drops) and not self.target

    @property
    def card(self) -> str:
        """The card that it writes, or else removes."""
        return self.target or next(iter(self.dropped), "")

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of its reasons, without duplicates."""
        return tuple(dict(self.reasons))

    @property
    def is_edited(self) -> bool:
        """True if a person changed its text."""
        return self.kept == "whole" and sha256(self.body).hexdigest() != self.digest


def draft_id(name: str, digest: bytes) -> str:
    """A draft's id: readable, and unique for each content."""
    _, slug = parse_name(name)
    tail = digest.hex()[:10]
    if find_secrets(name):
        return f"handoff-{tail}"
    return f"{slugify(slug, limit=48) or 'handoff'}-{tail}"


def draft_body(raw: bytes | None, *, has_secret: bool) -> tuple[Kept, bytes]:
    """The part of a handoff that its draft contains."""
    text = decode_text(raw) if raw is not None else None
    if raw is None or text is None:
        return "elsewhere", b""
    if not has_secret:
        return "whole", raw
    try:
        masked = mask_secrets(text)
    except Exception:  # noqa: BLE001 - if masking fails, the text is not copied
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
    """Parse a draft. A file that truekeep did not write is a draft too, with all of it as the handoff."""
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
        received_at=_earlier_time(stem),
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


def _earlier_time(stem: str) -> str:
    """When a draft of an earlier ingester was made, which named its files by the time in UTC; "" for other files."""
    try:
        made = datetime.strptime(stem.removesuffix("Z"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return made.strftime("%Y-%m-%dT%H:%M:%SZ")


def _reason(item: str) -> tuple[str, str]:
    code, _, sentence = item.partition(":")
    return code, sentence.strip()


def reasons_of(findings: tuple[Finding, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (finding.code, finding.message + (f" (line {finding.line})" if finding.line else "")) for finding in findings
    )


def card_mark(path: str, data: bytes) -> str:
    """The mark in a draft that names the card and the state that it was made from."""
    return f"{_MARK}{sha256(data).hexdigest()} {path}"


def upkeep_mark(by: str, path: str = "", data: bytes | None = None) -> str:
    """The mark in a draft that names the maintenance command, and the card's state if it was made from one."""
    mark = f"{_UPKEEP} {by.replace(' ', '-')}"
    return f"{mark} {card_mark(path, data)}" if data is not None else mark


def is_overtaken(draft: Draft, data: bytes | None) -> bool:
    """True if the card changed since the proposal was made from it."""
    if draft.is_upkeep:
        return draft.original != upkeep_mark(draft.made_by, draft.target, data)
    return draft.is_proposal and (data is None or draft.original != card_mark(draft.target, data))


def changed_since(draft: Draft, read: Callable[[str], bytes | None]) -> list[str]:
    """The cards that changed since the draft was made from them."""
    found = []
    if draft.target and (draft.is_proposal or draft.is_upkeep) and is_overtaken(draft, read(draft.target)):
        found.append(draft.target)
    for mark, path in zip(draft.drops, draft.dropped, strict=True):
        data = read(path)
        if data is None or card_mark(path, data) != mark:
            found.append(path)
    return found
