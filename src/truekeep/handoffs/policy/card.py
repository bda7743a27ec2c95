"""Decides what a handoff for a card becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truekeep.core.dates import many
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS
from truekeep.handoffs.format import default_card_name, other_card_names
from truekeep.handoffs.policy.additions import (
    added,
    find_conflicts,
    find_covering,
    find_other_values,
    note_addition,
    note_conflict,
)
from truekeep.handoffs.policy.decision import Decision, Retry
from truekeep.handoffs.policy.run import PolicyRun, instruction_file_message
from truekeep.memory.card import (
    ID_KEYS,
    OWNED_KEYS,
    TRUST_KEYS,
    Card,
    check_card_name,
    file_card,
    parse_card,
    same_card,
    words_of,
)
from truekeep.memory.frontmatter import InvalidFrontmatter, split_frontmatter
from truekeep.memory.similarity import sketch, topic_key
from truekeep.text.encoding import decode_text
from truekeep.text.instruction_files import is_reserved_for_people
from truekeep.text.line_diff import kept_lines
from truekeep.text.markdown import find_open_comment

MIN_KEPT_SHARE = 0.5  # of an old card's words; an update that keeps fewer goes to review
REWORDED_SHARE = 0.5  # of a line's words that its replacement must share to count as reworded
MAX_LINE_COMPARISONS = 10_000  # removed lines times added lines, in one place


def decide_card(run: PolicyRun) -> Decision:
    handoff = run.handoff
    name = handoff.target_card
    if not run.routes.cards:
        run.find("route-off", "this run does not file cards (--promote-cards)", "Recommended memory action")
    if not name:
        run.find("no-target", "`## Target card` is missing", "Target card")
    elif (why := check_card_name(name)) is not None:
        run.find("bad-card-name", why, "Target card")
        name = ""
    elif (other := run.view.find_clash(name)) is not None:
        run.find("name-clash", f"{other} differs only in letter case", "Target card")
        name = ""
    suggested = _suggested(run, name)
    if suggested is None or not name:
        return run.decision("review", f"{CARDS}/{name}" if name else "")
    try:
        name = _name_in_repository(run, suggested)
        suggested = suggested._replace(name=name)
        existing_data = run.view.read(suggested.path)
        covering = find_covering(run, suggested) if existing_data is None and not run.approved else None
        if covering is not None:
            name = covering.name
            existing_data = run.view.read(covering.path)
        run.view.check_index()
    except UnsafePath as error:
        run.find("unsafe-target", f"{error.path} {error.what}", "Target card")
        return run.decision("review", suggested.path)
    except ChangedSince as error:
        raise Retry(error.path) from error
    path = f"{CARDS}/{name}"
    existing_text = decode_text(existing_data) if existing_data is not None else None
    if existing_data is not None and existing_text is None:
        run.find("unsafe-target", f"{path} is not UTF-8 text", "Target card")
        return run.decision("review", path)
    existing = parse_card(name, existing_text) if existing_text is not None else None
    if is_reserved_for_people(name) and (existing is None or not run.approved):
        run.find("instruction-file", instruction_file_message(name), "Target card")
    if existing is not None and existing.problem:
        run.find("unreadable-card", f"{path}, {existing.problem}", "Target card")
    is_addition = existing is not None and (covering is not None or _is_addition(run, suggested, existing))
    if existing is not None and is_addition:
        for conflict in find_conflicts(suggested, existing):
            note_conflict(run, conflict)
        suggested = added(suggested, existing)
    if existing is not None and same_card(suggested, existing):
        return run.decision("already", path, card=existing)
    if existing is not None and is_addition and (covering is not None or run.handoff.action == "create-card"):
        note_addition(run, existing)
    _compare(run, suggested, existing, is_addition=is_addition)
    find_other_values(run, suggested, name)
    card = _filed_card(run, suggested, existing, is_addition=is_addition)
    card_sketch = sketch(card)
    if covering is not None:
        other = None
    elif (other := run.view.find_same_topic(card_sketch.topic, card_sketch.repository, name)) is not None:
        where = f", in {card.repository} too" if card.repository else ""
        run.find("same-topic", f"{CARDS}/{other} has the topic {card.topic!r}{where}", "Suggested card content")
    elif (other := run.view.find_near(card_sketch, name)) is not None:
        run.find("near-duplicate", f"{CARDS}/{other} says nearly the same", "Suggested card content")
    data = card.render().encode()
    if existing_data is not None and b"\r\n" in existing_data:
        data = data.replace(b"\n", b"\r\n")
    decision = run.decision("promoted", path, data, card, existing, card_sketch)
    similar = other or (name if existing is not None else "")
    is_own = bool(similar) and _repository_of(run, similar) in (None, card.repository)
    return replace(decision, similar_card=similar if is_own else "")


def _name_in_repository(run: PolicyRun, suggested: Card) -> str:
    """The card's name; a variant if it is a default name that another repository's card already has.

    Default names use only the last part of a repository's name, so two repositories may choose the same.
    """
    name, mine = suggested.name, run.candidate.repository
    topic = suggested.front.text("topic") or run.handoff.title
    if not mine or name != default_card_name(topic, mine) or _repository_of(run, name) in (None, "", mine):
        return name
    is_update = run.handoff.action == "update-card"
    for other in other_card_names(topic, mine):
        found = _repository_of(run, other)
        if found == mine or (found is None and not is_update and run.view.find_clash(other) is None):
            return other
    return name


def _repository_of(run: PolicyRun, name: str) -> str | None:
    """The repository of a card; None if the card does not exist."""
    data = run.view.read(f"{CARDS}/{name}")
    return None if data is None else parse_card(name, decode_text(data) or "").repository


def _is_addition(run: PolicyRun, suggested: Card, existing: Card) -> bool:
    """Whether a handoff may only add to the card: it is new and on its topic, another's, or a person chose the card."""
    if run.approved:
        return run.is_retargeted and run.handoff.action == "create-card"
    candidate = run.candidate
    if run.handoff.action != "update-card":
        topic = suggested.front.text("topic") or run.handoff.title
        is_own = existing.repository in ("", candidate.repository)
        return is_own and not existing.problem and topic_key(topic) == topic_key(existing.topic)
    is_other_repository = bool(existing.repository and candidate.repository not in ("", existing.repository))
    is_other_writer = bool(existing.writer) and candidate.writer not in ("", existing.writer)
    return is_other_repository or is_other_writer


def _filed_card(run: PolicyRun, suggested: Card, existing: Card | None, *, is_addition: bool) -> Card:
    if not suggested.front.text("topic") and (existing is None or not existing.front.text("topic")):
        run.find("no-topic", "the title is used instead", "Suggested card content")
    return file_card(
        suggested,
        existing,
        title=run.handoff.title,
        day=run.day,
        existing_day=(run.view.day_of(suggested.path) if existing is not None else None) or run.day,
        repository=existing.repository if existing is not None and is_addition else run.candidate.repository,
        writer=(existing.writer if existing is not None and is_addition else "") or run.candidate.writer,
    )


def _suggested(run: PolicyRun, name: str) -> Card | None:
    """The suggested card; None if it cannot be parsed."""
    handoff = run.handoff
    where = "Suggested card content"
    if not handoff.card_content:
        run.find("no-content", f"`## {where}` is missing", where)
        return None
    try:
        front, body = split_frontmatter(handoff.card_content + "\n")
    except InvalidFrontmatter as error:
        run.find("bad-frontmatter", f"line {error.line} of the content: {error.what}", where)
        return None
    if front is None:
        run.find("no-frontmatter", "start the content with --- and topic, category, tags", where)
        return None
    if not body.strip():
        run.find("no-content", "there is no text below the frontmatter", where)
        return None
    if trust := [key for key in front.names() if key.casefold() in TRUST_KEYS]:
        run.find("claims-trust", f"writers may not set {', '.join(trust)}", where)
    if owned := [key for key in front.names() if key.casefold() in (*OWNED_KEYS, *ID_KEYS)]:
        run.find("owned-keys", f"truekeep sets {', '.join(owned)}; the given value is ignored", where)
    if "source" in front.names():
        run.find("owned-keys", "source is kept as the writer's own text; truekeep does not use it", where)
    if nested := [key for key in ("topic", "category") if front.has_mapping(key)]:
        run.find("bad-frontmatter", f"{' and '.join(nested)} must be text", where)
        return None
    if find_open_comment(front.text("topic")) is not None or find_open_comment(handoff.card_content) is not None:
        run.find("open-fence", "a comment (<!--) is not closed", where)
    return Card(name=name or "card.md", front=front, body=run.verified_content(body, where))


def _compare(run: PolicyRun, suggested: Card, existing: Card | None, *, is_addition: bool) -> None:
    """Add findings from comparing the suggested card with the existing one."""
    update = run.handoff.action == "update-card"
    if existing is None:
        if update and run.view.is_known:
            run.find("no-such-card", f"{suggested.path} does not exist; use create-card", "Target card")
        return
    if not update and not is_addition:
        run.find("card-exists", f"{suggested.path} already exists with other content", "Target card")
    old_words = set(words_of(existing.body))
    kept = len(old_words & set(words_of(suggested.body))) / len(old_words) if old_words else 1.0
    if kept < MIN_KEPT_SHARE:
        run.find("drops-most", f"only {kept:.0%} of the card's words would remain", "Suggested card content")
    new_lines = [line.strip() for line in suggested.body.split("\n")]
    old_lines = [line.strip() for line in existing.body.split("\n")]
    by_hand = run.view.hand_edits(existing.path)
    if dropped := (by_hand.written & set(old_lines)) - set(new_lines):
        what = f"it would remove {many(len(dropped), 'line')} that a person wrote"
        run.find("hand-edited", what, "Suggested card content")
    if lost := by_hand.older & _dropped_lines(old_lines, new_lines):
        what = f"it would remove {many(len(lost), 'line')} that truekeep did not write"
        run.find("hand-edited", what, "Suggested card content")
    if returning := by_hand.removed & set(new_lines):
        what = f"it would restore {many(len(returning), 'line')} that a person removed"
        run.find("hand-edited", what, "Suggested card content")
    if not is_addition and existing.repository and run.candidate.repository not in ("", existing.repository):
        what = f"the card came from {existing.repository}, this from {run.candidate.repository}"
        run.find("other-repository", what, "Target card")
    elif existing.repository and run.candidate.same_name:
        run.find("other-repository", run.candidate.same_name, "Target card")
    if existing.updated is not None and run.day < existing.updated <= run.today:
        what = f"written {run.day}, but the card was updated {existing.updated}"
        run.find("older-than-card", what, "Target card")


def _dropped_lines(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """Old lines that the new text drops without rewording them in place, as an update made from a stale copy does."""
    there = set(new)
    lost: set[str] = set()
    start = other = 0
    kept = kept_lines([line.encode() for line in old], [line.encode() for line in new])
    for at, new_at, length in (*kept, (len(old), len(new), 0)):
        gone = [line for line in old[start:at] if line and line not in there]
        instead = [set(words_of(line)) for line in new[other:new_at]]
        is_large = len(gone) * len(instead) > MAX_LINE_COMPARISONS
        lost.update(line for line in gone if is_large or not _is_reworded(set(words_of(line)), instead))
        start, other = at + length, new_at + length
    return lost


def _is_reworded(words: set[str], instead: Sequence[set[str]]) -> bool:
    return any(len(words & others) >= len(words) * REWORDED_SHARE for others in instead)
