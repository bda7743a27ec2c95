"""A year of made-up life: what was planted is found, nothing is lost, and a second run changes nothing.

This is a tenth of it. `python -m bench year` lives all of it: 365 nights, 5,000 cards.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.support.lore import (
    ASIDES,
    HELD_ASIDES,
    HELD_VALUES,
    VALUES,
    Service,
    Thing,
    a_thing,
    an_aside,
    services,
    wordings,
)
from tests.support.nights import Nights
from tests.support.year import Scale, Year
from truekeep.memory.values import Value, find_values

SCALE = Scale(cards=420, nights=42)
KINDS = (
    *("same-topic", "reordered", "reworded", "extended", "already-instructed"),
    *("two-values", "card-log", "card-transcript", "handoff-card", "memory-instructions", "memory-code"),
    *("index-missing", "index-dangling", "index-doubled", "index-drifted"),
    *("structural", "repeated", "expiry"),
    *("dates-lie", "future-date", "bad-date", "no-frontmatter", "bad-tag"),
    *("edits meanwhile", "undone"),
)
DECIDED = ("reconcile", "tidy duplicates", "tidy promote", "turned down")


def test_a_year_of_upkeep(tmp_path: Path) -> None:
    """One test, because it takes a while: whatever was planted is found, and whatever was there is still explained."""
    nights = Nights(Year(tmp_path, SCALE))
    nights.live()
    lines = nights.check_ledger()
    nights.check_sources()
    nights.check_search()
    assert nights.missed == []  # nothing that was planted, no line, no edit of a person, nothing turned down came back
    assert nights.found == nights.planted
    assert {kind for kind in KINDS if not nights.planted[kind]} == set()
    assert len(nights.falsely) <= SCALE.cards // 100, nights.falsely
    assert {by for by in DECIDED if not nights.decided[by]} == set()
    assert abs(nights.year.card_count() - SCALE.cards) < SCALE.cards // 10
    assert lines > SCALE.cards


# How values are read: sentences that were written by somebody who had not looked at how.


def told(text: str, service: Service) -> list[Value]:
    return find_values(f"{text}\n", topic=f"Notes on {service.area}", repository="github.com/acme/shop")


def name_of(thing: Thing, random: Random) -> tuple[str, str]:
    """What most of the ways to speak of a thing call it."""
    names: Counter[tuple[str, str]] = Counter()
    for wording in wordings(thing.kind):
        names.update(
            (value.kind, value.subject) for value in told(thing.say(thing.value(random), wording), thing.service)
        )
    return names.most_common(1)[0][0]


def is_said(thing: Thing, name: tuple[str, str], value: str, text: str) -> bool:
    return any((found.kind, found.subject) == name and found.value == value for found in told(text, thing.service))


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_found_in_every_wording(kind: str) -> None:
    random = Random(kind)
    for service in services(random, 12):
        thing = a_thing(random, service, kind)
        name = name_of(thing, random)
        for wording in wordings(kind):
            value = thing.value(random)
            text = thing.say(value, wording)
            assert is_said(thing, name, value, text), text


def test_most_wordings_that_it_was_not_made_for_are_understood() -> None:
    random = Random(11)
    (service,) = services(random, 1)
    missed = []
    for kind, texts in HELD_VALUES.items():
        thing = a_thing(random, service, kind)
        name = name_of(thing, random)
        for number in range(len(texts)):
            value = thing.value(random)
            text = thing.say(value, number, HELD_VALUES)
            if not is_said(thing, name, value, text):
                missed.append(text)
    assert len(missed) <= sum(map(len, HELD_VALUES.values())) // 10, missed


@pytest.mark.parametrize("text", [*ASIDES, *HELD_ASIDES])
def test_what_is_no_value_of_now_gives_none(text: str) -> None:
    """Numbers, paths and settings near a thing that were, will be, may be, or belong to something else."""
    random = Random(text)
    for service in services(random, 20):
        names = {name_of(a_thing(random, service, kind), random) for kind in ("port", "version", "logs", "data")}
        names |= {
            ("setting", f"{service.setting.lower()}_{name}") for name in ("pool_size", "retry_limit", "cache_ttl")
        }
        said = an_aside(random, service, text)
        assert not {(value.kind, value.subject) for value in told(said, service)} & names, said
