"""A card as text and as a value: its topic, its dates, its origin, and its line in the index.

Filing a card keeps what the writer wrote and sets only what truekeep answers for: created, updated, repository, writer.
That a person confirmed it was said of its text, so another text ends that.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.memory.frontmatter import Field, Frontmatter, InvalidFrontmatter, split_frontmatter, text_field
from truekeep.text.markdown_lines import iter_lines

OWNED_KEYS = ("created", "updated", "repository", "writer", "confirmed")
ID_KEYS = ("id", "uid", "uuid")
"""A card keeps the one that it has; a handoff cannot give it another card's."""

TRUST_KEYS = (
    *("trust", "trusted", "trust_level", "verified", "verified_by", "verified_at", "verdict", "verdicts", "authority"),
    *("priority", "supersedes", "origin", "approved", "approved_by", "reviewed", "reviewed_by", "last_reviewed"),
)

MAX_NAME_BYTES = 200  # below every file system's 255, with room for a temporary name beside it
# Patterns that no brief needs are compiled when they are used: hooks have no time for them.
_SAFE_NAME = r"[A-Za-z0-9._-]+\.md\Z"
_LINKED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_JOURNAL = (
    r"memory/(?:(?:daily/)?(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})|decisions/(?P<month>[0-9]{4}-[0-9]{2})|ops/(?P<operations>CHANGELOG)"
    r"|projects/(?P<project>[^/]+)|checkpoints/subagent-(?P<subagent>[A-Za-z0-9][A-Za-z0-9._-]{0,63}))\.md\Z"
)
REFERENCE_FOLDERS = (".learnings", "memory/ops", "memory/research")
_SAFE_DOCUMENT = r"(?:rules|\.learnings|memory/ops|memory/research)/([A-Za-z0-9_][A-Za-z0-9._-]*)\.md\Z"
_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10)), "conin$", "conout$")
)
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WORD = r"\w+"
TOPIC_CHARS = 120


class Card(NamedTuple):
    """A memory card: durable knowledge about one topic."""

    name: str
    front: Frontmatter
    body: str
    problem: str = ""  # why the frontmatter could not be read

    def render(self) -> str:
        return self.front.render() + self.body

    @property
    def path(self) -> str:
        return f"{CARDS}/{self.name}"

    @property
    def topic(self) -> str:
        return self.front.text("topic") or self.name.removesuffix(".md").replace("-", " ").replace("_", " ")

    @property
    def description(self) -> str:
        return self.front.text("description")

    @property
    def label(self) -> str:
        """The label of the card in the index: its topic and its status."""
        return card_label(self.topic, self.description)

    @property
    def category(self) -> str:
        return self.front.text("category")

    @property
    def tags(self) -> tuple[str, ...]:
        return self.front.items("tags")

    @property
    def created(self) -> date | None:
        return parse_day(self.front.text("created"))

    @property
    def updated(self) -> date | None:
        return parse_day(self.front.text("updated")) or self.created

    @property
    def confirmed(self) -> date | None:
        """The day on which a person last confirmed the card."""
        return parse_day(self.front.text("confirmed"))

    @property
    def repository(self) -> str:
        return self.front.text("repository")

    @property
    def writer(self) -> str:
        return self.front.text("writer")


def parse_day(text: str) -> date | None:
    """The date at the start of a value; None if there is no valid one."""
    match = _DAY.match(text)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def parse_card(name: str, text: str) -> Card:
    """Read a card. Without frontmatter, or with a broken one, it is still a card."""
    try:
        front, body = split_frontmatter(text)
    except InvalidFrontmatter as error:
        return Card(name=name, front=Frontmatter(), body=text, problem=f"line {error.line}: {error.what}")
    return Card(name=name, front=front or Frontmatter(), body=body)


def subject_of(*cards: Card) -> str:
    """The subject of some cards: the first topic, else the first heading, else the first name in words."""
    for card in cards:
        if topic := card.front.text("topic"):
            return topic
    lines = (line for card in cards for line in iter_lines(card.body.replace("\r", "")))
    return next((line.title for line in lines if line.kind == "heading" and line.title.strip()), cards[0].topic)


def with_subject(front: Frontmatter, *cards: Card) -> Frontmatter:
    """Frontmatter for a draft that says what cards are about: the draft's own title is a question, not a topic."""
    if front.text("topic"):
        return front
    rest = (field for field in front.fields if field.key != "topic")
    return Frontmatter((text_field("topic", subject_of(*cards)), *rest))


def place_field(data: bytes, card: Card, key: str, value: str) -> tuple[int, bytes, bytes]:
    """Where one line of frontmatter goes in a card's bytes: the offset, the line that it replaces, and itself.

    A new line goes behind the card's dates. No other byte changes, and line ends are those of the file.
    """
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    lines = data.removeprefix(mark).splitlines(keepends=True)
    newline = next((end for end in (b"\r\n", b"\r") if lines and lines[0].endswith(end)), b"\n")
    said = f"{key}: {value}".encode() + newline
    at, ends = 1, dict[str, int]()  # the line behind each key
    for field in card.front.fields:
        first, last = at, at + field.raw.count("\n")
        if field.key.casefold() == key:
            break
        at = ends[field.key] = last
    else:
        first = last = ends.get("updated") or ends.get("created") or at
    return len(mark) + sum(map(len, lines[:first])), b"".join(lines[first:last]), said


def file_card(
    suggested: Card, existing: Card | None, *, title: str, day: date, existing_day: date, repository: str, writer: str
) -> Card:
    """A card to be filed: the suggestion, the other fields of the old card, and the origin."""
    fields: list[Field] = []
    for field in suggested.front.fields:
        if field.key in ("topic", "category"):
            fields.append(text_field(field.key, suggested.front.text(field.key)))
        elif field.key.casefold() not in (*OWNED_KEYS, *ID_KEYS):
            fields.append(field)
    taken = {field.key for field in fields}
    if existing is not None:
        kept = (field for field in existing.front.fields if field.key and field.key.casefold() not in OWNED_KEYS)
        fields += [field for field in kept if field.key not in taken]
    if not suggested.front.text("topic") and (existing is None or not existing.front.text("topic")):
        fields = [text_field("topic", title or suggested.topic), *(field for field in fields if field.key != "topic")]
    created, updated = day, day
    if existing is not None:
        created = existing.created or min(existing_day, existing.updated or day, day)
        updated = max(day, created)
    written = existing.front.find("created") if existing is not None and existing.created is None else None
    # A day that nobody can read here may say something to whoever wrote it: it stays, and none is made up.
    fields.append(written if written is not None and written.value else _day_field("created", created))
    fields.append(_day_field("updated", updated))
    if repository:
        fields.append(text_field("repository", repository))
    fields.append(text_field("writer", writer))
    body = suggested.body.strip("\n")
    if existing is not None and existing.confirmed and _bare_lines(suggested.body) == _bare_lines(existing.body):
        fields.append(text_field("confirmed", existing.front.text("confirmed")))
    return Card(name=suggested.name, front=Frontmatter(tuple(fields)), body=f"\n{body}\n" if body else "")


def _day_field(key: str, day: date) -> Field:
    return Field(key, day.isoformat(), f"{key}: {day.isoformat()}\n")


def same_card(suggested: Card, existing: Card) -> bool:
    """Whether filing the suggestion would change nothing but origin, dates and white space."""
    if _bare_lines(suggested.body) != _bare_lines(existing.body):
        return False
    for field in suggested.front.fields:
        if not field.key or field.key.casefold() in (*OWNED_KEYS, *ID_KEYS):
            continue
        other = existing.front.find(field.key)
        if other is None or (
            field.raw.split() != other.raw.split() and suggested.front.text(field.key) != existing.front.text(field.key)
        ):
            return False
    return True


def _bare_lines(text: str) -> list[str]:
    """Lines without trailing white space, and without blank lines at either end. Indentation counts: it may be code."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n").split("\n")


def index_line(card_name: str, label: str) -> str:
    """The line of the index for a card. It has no hidden characters, and its link can be parsed again."""
    flat = " ".join(label.split())
    if not (flat.isascii() and flat.isprintable()):
        from truekeep.text.unicode import printable  # hooks hardly ever need it

        flat = printable(flat)
    if len(flat) > TOPIC_CHARS:
        flat = flat[: TOPIC_CHARS - 1].rstrip() + "…"
    shown = flat.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"- [{shown}]({CARDS}/{linked(card_name)})"


def card_label(topic: str, description: str) -> str:
    """The label of a card in the index: its topic and its status."""
    return f"{topic} — {description}" if description else topic


def short_name(repository: str) -> str:
    """The last part of a repository's name."""
    return repository.rpartition("/")[2]


def index_labels(label: str, topic: str, repository: str) -> tuple[str, ...]:
    """All labels of a card: without its repository, with its short name, and with its full name."""
    return label, indexed_as(label, topic, repository), indexed_as(label, topic, repository, repository)


def indexed_as(label: str, topic: str, repository: str, other: str = "") -> str:
    """The label of a card whose topic another card has as well: with its repository. `other`: that of the other."""
    short = short_name(repository)
    name = repository if short == short_name(other) else short
    said = label.removeprefix(topic)
    return f"{topic} ({name}){said}" if name and not said.startswith(f" — {name}: ") else label


def linked(name: str) -> str:
    """A file name percent-encoded for a link. Letters, digits, dots, dashes and underscores stay."""
    if re.match(_SAFE_NAME, name):
        return name
    data = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if chr(byte) in _LINKED else f"%{byte:02X}" for byte in data)


def unlinked(spelled: str) -> str:
    """The file name in a link, decoded. Bytes that are not UTF-8 become surrogates, as in Python's file names."""
    if "%" not in spelled:
        return spelled
    data = re.sub(rb"%([0-9A-Fa-f]{2})", _byte, spelled.encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)])


def check_card_name(name: str) -> str | None:
    """Why this is not a valid name of a card; None if it is."""
    if not re.match(_SAFE_NAME, name):
        return "a card name is letters, digits, dots, dashes and underscores, and ends in .md"
    if name[0] in ".-":
        return "a card name does not start with a dot or a dash"
    stem = name.removesuffix(".md")
    if is_reserved(stem):
        return "this is a reserved device name on some systems"
    if stem.endswith("."):
        return "a card name does not end in a dot"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a card name has at most {MAX_NAME_BYTES} bytes"
    return None


def is_document_path(path: str) -> bool:
    """Whether this is a file in rules/ or a reference folder that handoffs may append to."""
    match = re.match(_SAFE_DOCUMENT, path)
    if match is None or len(path.encode()) > MAX_NAME_BYTES:
        return False
    return not is_reserved(match[1]) and not match[1].endswith(".")


def is_reference_path(path: str) -> bool:
    """Whether this is a reference document: in .learnings/, memory/ops/ or memory/research/."""
    return path.startswith(tuple(f"{folder}/" for folder in REFERENCE_FOLDERS)) and is_document_path(path)


def is_reserved(stem: str) -> bool:
    """Whether Windows reserves this name for a device."""
    return stem.split(".", 1)[0].casefold() in _RESERVED


def parse_journal(path: str) -> tuple[str, str] | None:
    """The kind of a journal and its name; None if it is not a journal that handoffs may add to.

    Kinds: day, month (of decisions), operations, project, subagent.
    """
    match = re.match(_JOURNAL, path)
    if match is None or match.lastgroup is None or len(path.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        return None
    kind, name = match.lastgroup, match[match.lastgroup]
    if kind in ("day", "month") and parse_day(name if kind == "day" else f"{name}-01") is None:
        return None
    if kind == "project" and (project_slug(name) != name.lower() or is_reserved(name)):
        return None
    return kind, name


def is_journal_path(path: str) -> bool:
    return parse_journal(path) is not None


def project_slug(name: str) -> str:
    """The file name of a project: its letters and digits in any script, without accents on Latin letters."""
    kept = re.sub("[^a-z0-9]", "-", name.lower()) if name.isascii() else _fold(name)
    slug = re.sub("-+", "-", kept).strip("-")[:80]
    return slug.encode()[:150].decode("utf-8", "ignore").strip("-")


def _fold(name: str) -> str:
    kept: list[str] = []
    for character in unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold()):
        kind = unicodedata.category(character)[0]
        if kind != "M":
            kept.append(character if kind in "LN" else "-")
        elif kept and not kept[-1].isascii():
            kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).lower()


def words_of(text: str) -> list[str]:
    return re.findall(_WORD, text.casefold())
