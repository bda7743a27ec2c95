"""Checks claims about lines: finds where the line that a memory cites is now.

The line's text is read from the commit at the memory's date and then found in the current code: as the same definition,
in its file or another one, or else as the same line by its neighbours. Without a date, the symbol or code that the
memory quotes beside the number is used; without that the claim is unverifiable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import NamedTuple

from truekeep.verify.checkout import MAX_SOURCE_BYTES, PastTree, StoredDefinition, digest_in, outline_in
from truekeep.verify.file_kinds import language_for
from truekeep.verify.languages import clean, definitions_on_line
from truekeep.verify.path_claims import PathPlace, find_place, judge_by_tree, unread
from truekeep.verify.question import Question
from truekeep.verify.repository import World, is_code, prefer, whole_word
from truekeep.verify.verdict import CODE, Verdict, changed, confirmed, gone, moved, unverifiable

_MAX_ALIGNED_LINES = 20_000
_MIN_EDITED_RATIO = 0.7  # similarity from which on a line counts as an edited version of another
_TRAILING_PUNCTUATION = ",;:{( "
_DATA_KINDS = ("variable", "key", "field", "constant")


class LinePlace(NamedTuple):
    """Where a line is now."""

    path: str
    line: int
    seen: str  # a digest of its text, or what it defines; never the text, which may hold a secret
    is_edited: bool = False


def check_line(world: World, question: Question) -> Verdict | None:
    claim = question.claim
    if through := world.now.behind(claim.place):
        return None if claim.is_weak else unread(question, through)
    place = find_place(world, claim.place, question)
    if place is None and claim.place in world.now.deleted:
        return gone(question, "deleted-here", f"{claim.place} is deleted in the work tree", rank=CODE, is_dirty=True)
    if place is None and claim.is_weak:
        return None
    if place is None and world.now.state.is_shallow and "/" in claim.place.strip("/"):
        return judge_by_tree(world, question, claim.place)
    if place is None:
        return unverifiable(question, "never-seen", f"nothing here has the path {claim.place}")
    then = _text_then(world, question, place.path)
    found = (
        _by_history(world, question, place, then) if then is not None else _by_symbol_or_quote(world, question, place)
    )
    if found is not None:
        return _placed(world, question, place, found)
    if not place.path and world.past.problem:
        return unverifiable(question, "incomplete", f"{claim.place} is not there; {world.past.problem}")
    if not place.path:
        return _file_gone(question, place)
    now = world.now.text(place.path)
    if now is None:
        return unverifiable(question, "unreadable", f"{place.path} cannot be read as text")
    if then is not None:
        return gone(question, "line-removed", "the old line is no longer in the file", place=place.path, rank=CODE)
    if _was_removed(world, question):
        return gone(question, "line-removed", "the old line is no longer in the file", place=place.path, rank=CODE)
    if claim.first > len(_lines(now)):
        why = f"{place.path} has {len(_lines(now))} lines"
        return gone(question, "beyond-the-end", why, place=place.path, rank=CODE)
    why = "the line exists, but its content when this was written is unknown"
    return unverifiable(question, "no-date", why, place=f"{place.path}:{claim.first}")


def _placed(world: World, question: Question, place: PathPlace, found: LinePlace) -> Verdict:
    claim = question.claim
    cite = cited(found.path, found.line, found.line + claim.last - claim.first)
    dirty = world.now.has(found.path) and world.now.is_dirty(found.path)
    if found.is_edited:
        return changed(
            question, "line-edited", f"edited since; now at line {found.line}", cite, seen=found.seen, is_dirty=dirty
        )
    if found.line == claim.first and found.path == place.path and not place.is_moved:
        return confirmed(question, "same-line", "the line is as it was", cite, seen=found.seen, is_dirty=dirty)
    commit = place.trail.commit if place.is_moved and place.trail else None
    what = f"now at line {found.line}" if found.path == claim.place else f"now in {cite}"
    return moved(
        question, "line-moved", what, cite, commit=commit.id if commit else "", day=commit.day if commit else "",
        seen=found.seen, is_dirty=dirty,
    )  # fmt: skip


def _file_gone(question: Question, place: PathPlace) -> Verdict:
    path = question.claim.place
    if place.trail is None:
        return unverifiable(question, "never-seen", f"nothing here has the path {path}")
    commit = place.trail.commit
    what = f"{path} was deleted in {commit.id[:10]} on {commit.day}"
    return gone(question, "deleted", what, commit=commit.id, day=commit.day)


def cited(path: str, first: int, last: int) -> str:
    return f"{path}:{first}" if last <= first else f"{path}:{first}-{last}"


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _text_then(world: World, question: Question, path: str) -> list[str] | None:
    """Return the lines of the file at the memory's date; None if that is unknown or the same as today."""
    claim = question.claim
    if question.written_at is None:
        return None
    commit = world.past.commit_at(question.written_at)
    if commit is None:
        return None
    if commit.id == world.now.state.head and (claim.near or claim.quote):
        return None  # written at or after HEAD: the quoted words are better evidence than the file
    names = [f"{commit.id}:{claim.place}"]
    if path:
        names += [f"{commit.id}:{world.past.name_then(path, commit.at)}", f"{commit.id}:{path}"]
    for _, data in list(world.git.blobs(list(dict.fromkeys(names)), limit=MAX_SOURCE_BYTES)):
        if data is not None and claim.first <= len(_lines(data)):
            return _lines(data)
    return None


def _by_history(world: World, question: Question, place: PathPlace, then: Sequence[str]) -> LinePlace | None:
    """Find the old line in the current code, by its definition or else by its text."""
    claim = question.claim
    text = "\n".join(then).encode()
    old_digest = sha256(text).hexdigest()[:24]
    defined = _defined_then(world, text, old_digest, claim.place, claim.first)
    outline = world.outline(place.path) if place.path else ()
    data = world.now.text(place.path) if place.path else None
    now = _lines(data) if data is not None else []
    if defined is not None:
        item, digest, which = defined
        same = _same_definition(world, place.path, item, which, outline, digest)
        if same is not None:
            is_same_text = now[same.line - 1].strip() == then[claim.first - 1].strip()
            is_edited = same.line == claim.first and not is_same_text
            return LinePlace(place.path, same.line, f"{same.kind} {same.name}", is_edited)
        if item.kind not in _DATA_KINDS:
            return _elsewhere(world, item, place.path, digest)
    if data is None:
        return None
    key = f"aligned {old_digest} {claim.first} {sha256(data).hexdigest()[:24]}"
    known = world.store.answer(key)
    if known is None:
        found = _aligned(place.path, then, now, claim.first)
        known = json.dumps(found[1:] if found else None)
        world.store.remember(key, known)
    rest = json.loads(known)
    return LinePlace(place.path, *rest) if rest else None


def _defined_then(
    world: World, text: bytes, old_digest: str, path: str, line: int
) -> tuple[StoredDefinition, str, int] | None:
    """Return the definition on a line of an old text, its digest, and its position among its namesakes."""
    language = language_for(path)
    key = f"defined {language} {old_digest} {line}"
    known = world.store.answer(key)
    if known is None:
        code = clean(text, language)
        item = _definition_at(code, language, line)
        found = None
        if item is not None:
            namesakes = outline_in(code, language, {item.name})
            alike = [other for other in namesakes if other.scope == item.scope]
            found = item, digest_in(code, item), alike.index(item)
        known = json.dumps(found)
        world.store.remember(key, known)
    stored = json.loads(known)
    return (StoredDefinition(*stored[0]), stored[1], stored[2]) if stored else None


def _definition_at(code: bytes, language: str, line: int) -> StoredDefinition | None:
    """Return the definition whose name is on a line, the longest if there are several."""
    found = max(definitions_on_line(code, language, line), key=lambda item: item.end - item.line, default=None)
    return StoredDefinition(*found) if found is not None else None


def _same_definition(
    world: World, path: str, item: StoredDefinition, which: int, now: Sequence[StoredDefinition], digest: str
) -> StoredDefinition | None:
    """Return the definition of the same name and scope; overloads are matched by position."""
    same = [other for other in now if (other.name, other.scope) == (item.name, item.scope)]
    if len(same) > 1:
        exact = [other for other in same if world.now.digest(path, other) == digest]
        if len(exact) == 1:
            return exact[0]
        return same[min(which, len(same) - 1)]
    return same[0] if same else None


def _elsewhere(world: World, item: StoredDefinition, path: str, digest: str) -> LinePlace | None:
    """Find the definition in another file, if exactly one matches by digest, or by kind and scope."""
    files = [other for other in prefer(world.now.defining([item.name])[item.name]) if is_code(other) and other != path]
    outlines = world.now.outlines(files[:12])
    spots = [(other, spot) for other in files[:12] for spot in outlines[other] if spot.name == item.name]
    for same in (
        [spot for spot in spots if len(spots) > 1 and world.now.digest(*spot) == digest],
        [spot for spot in spots if (spot[1].kind, spot[1].scope) == (item.kind, item.scope)],
        [spot for spot in spots if spot[1].kind == item.kind and not item.scope and not spot[1].scope],
    ):
        if len(same) == 1:
            return LinePlace(same[0][0], same[0][1].line, f"{item.kind} {item.name}")
        if same:
            return None
    return None


def _line_digest(text: str) -> str:
    return sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _aligned(path: str, then: Sequence[str], now: Sequence[str], line: int) -> LinePlace | None:
    """Find a line of the old text in the new one, by the lines around it."""
    text = then[line - 1]
    digest = _line_digest(text)
    if list(then) == list(now):
        return LinePlace(path, line, digest)
    head, tail = _shared_ends(then, now)
    if line <= head:
        return LinePlace(path, line, digest)
    if line > len(then) - tail:
        return LinePlace(path, line + len(now) - len(then), digest)
    if (alone := _unique(now, text)) and _unique(then, text):
        return LinePlace(path, alone, digest)  # unique in both texts: no need to align them
    if len(then) <= _MAX_ALIGNED_LINES and len(now) <= _MAX_ALIGNED_LINES:
        old, new = then[head : len(then) - tail], now[head : len(now) - tail]
        at = line - 1 - head
        for tag, start, stop, other, other_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if not start <= at < stop:
                continue
            if tag == "equal":
                return LinePlace(path, head + other + at - start + 1, digest)
            unique = _unique(now, text)
            if unique:
                return LinePlace(path, unique, digest)
            if tag == "replace":
                return _edited(path, text, now, head + other, head + other_stop)
            return None
    unique = _unique(now, text)
    return LinePlace(path, unique, digest) if unique else None


def _edited(path: str, text: str, now: Sequence[str], first: int, last: int) -> LinePlace | None:
    """Find the line in a replaced block that is most similar to the old one."""
    bare = text.strip()
    best, best_at = 0.0, 0
    for at in range(first, min(last, first + 400)):
        matcher = SequenceMatcher(None, bare, now[at].strip(), autojunk=False)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, best_at = ratio, at + 1
    return (
        LinePlace(path, best_at, _line_digest(now[best_at - 1]), is_edited=True) if best >= _MIN_EDITED_RATIO else None
    )


def _unique(now: Sequence[str], text: str) -> int:
    bare = text.strip()
    if len(bare) < 9:
        return 0
    matches = [number for number, other in enumerate(now, 1) if other.strip() == bare]
    return matches[0] if len(matches) == 1 else 0


def _shared_ends(then: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Count the lines that two texts share at the beginning and at the end."""
    most = min(len(then), len(now))
    head = 0
    while head < most and then[head] == now[head]:
        head += 1
    tail = 0
    while tail < most - head and then[-1 - tail] == now[-1 - tail]:
        tail += 1
    return head, tail


def _by_symbol_or_quote(world: World, question: Question, place: PathPlace) -> LinePlace | None:
    """Find a line without a date by the code or symbol that the memory names beside the number."""
    claim = question.claim
    data = world.now.text(place.path) if place.path else None
    if claim.quote and data is not None and not _is_name(claim.quote):
        return _quoted(world, question, place.path, _lines(data))
    near = claim.near or (claim.quote if _is_name(claim.quote) else "")
    if not near:
        return None
    owner, _, name = near.rpartition(".")
    outline = world.outline(place.path) if place.path else ()
    named = [item for item in outline if item.name == name]
    owned = [item for item in named if owner and owner.rpartition(".")[2] in item.scope.split(".")] or named
    if name and data is not None and 0 < claim.first <= len(_lines(data)):
        said = _lines(data)[claim.first - 1].encode()
        if whole_word(name).search(said) and not _was_defined_at(world, claim.place, name, claim.first):
            return LinePlace(place.path, claim.first, _line_digest(said.decode("utf-8", "replace")))  # a call
    for item in owned:
        is_start = item.line == claim.first
        if is_start or (
            item.line < claim.first <= item.end and not _was_defined_at(world, claim.place, name, claim.first)
        ):
            return LinePlace(place.path, claim.first, f"{item.kind} {item.name}")
    if len(owned) == 1:
        return LinePlace(place.path, owned[0].line, f"{owned[0].kind} {name}")
    if owned:
        return None
    before = _defined_before(world, claim.place, name)
    if before is None:
        return None
    tree, item = before
    return _elsewhere(world, item, place.path, tree.digest(claim.place, item))


def _quoted(world: World, question: Question, path: str, lines: list[str]) -> LinePlace | None:
    """Find the line with the quoted code: the cited line, the only match, or the nearest match by far."""
    claim = question.claim
    bare = claim.quote.strip().rstrip(_TRAILING_PUNCTUATION)
    if 0 < claim.first <= len(lines) and bare in lines[claim.first - 1]:
        return LinePlace(path, claim.first, _line_digest(lines[claim.first - 1]))
    holding = [number for number, line in enumerate(lines, 1) if line.strip().rstrip(_TRAILING_PUNCTUATION) == bare]
    holding = holding or [number for number, line in enumerate(lines, 1) if bare in line]
    if holding:
        nearest = sorted(holding, key=lambda number: abs(number - claim.first))
        if len(nearest) == 1 or abs(nearest[1] - claim.first) > 3 * abs(nearest[0] - claim.first):
            return LinePlace(path, nearest[0], _line_digest(lines[nearest[0] - 1]))
        return None
    for data in _versions(world, claim.place):
        old = _lines(data)
        matches = [number for number, line in enumerate(old, 1) if bare in line]
        if matches:
            return _aligned(path, old, lines, min(matches, key=lambda number: abs(number - claim.first)))
    return None


def _trees(world: World, path: str) -> Iterator[PastTree]:
    """Yield old versions of a file: the last one if it is gone, otherwise one per checkpoint, newest first."""
    last = world.past.last_version(path) if not world.now.has(path) else None
    if last is not None:
        yield last
        return
    for commit in world.past.checkpoints():
        tree = world.past.file(commit, path)
        if tree.has(path):
            yield tree


def _versions(world: World, path: str) -> Iterator[bytes]:
    for tree in _trees(world, path):
        data = tree.text(path)
        if data is not None:
            yield data


def _was_removed(world: World, question: Question) -> bool:
    """Whether a file once had the code or symbol that the memory names beside the line, but no longer has it."""
    claim = question.claim
    if claim.quote and not _is_name(claim.quote):
        bare = claim.quote.strip().rstrip(_TRAILING_PUNCTUATION).encode()
        now = world.now.text(claim.place) or b""
        return len(bare) > 8 and bare not in now and any(bare in data for data in _versions(world, claim.place))
    name = claim.near.rpartition(".")[2]
    if not name or any(item.name == name for item in world.outline(claim.place)):
        return False
    return _defined_before(world, claim.place, name) is not None


def _defined_before(world: World, path: str, name: str) -> tuple[PastTree, StoredDefinition] | None:
    """Find the definition of a name in old versions of a file."""
    return next(((tree, item) for tree in _trees(world, path) for item in tree.named(path, name)), None)


def _was_defined_at(world: World, path: str, name: str, line: int) -> bool:
    """Whether an old version of a file defined this name on this line."""
    return any(item.line == line for tree in _trees(world, path) for item in tree.named(path, name))


def _is_name(text: str) -> bool:
    return text.replace(".", "").replace("_", "").isalnum()
