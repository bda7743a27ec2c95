"""Index lines that a person merged into a sub-card stay merged; a card that never had a line still gets one."""

from __future__ import annotations

import pytest

from tests.support.helpers import Place, a_card, a_handoff, run_cli
from tests.support.upkeep_place import put, upkeep, write_card
from truekeep.memory.memory_index import linked_cards
from truekeep.memory.unindexed_cards import names_in

NAMES = [f"ci-{number}" for number in range(12)]


def linked(place: Place) -> set[str]:
    return {name.removesuffix(".md") for name in linked_cards(place.index().encode())}


def missing(place: Place) -> list[str]:
    return [item.other for item in upkeep(place).reconcile().found if item.rule == "index-missing"]


def nightly(place: Place) -> None:
    done = run_cli("schedule", "run", "--now", "--workspace", str(place.workspace))
    assert done.returncode == 0, done.stdout + done.stderr


def with_lines(place: Place) -> None:
    """Cards whose lines truekeep wrote."""
    for name in NAMES:
        write_card(place, name, f"What {name} does.", topic=f"Job {name}")
    upkeep(place).reconcile(fix=True)
    assert linked(place) == set(NAMES)


def without_lines(text: str, *names: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not any(f"/{name}.md" in line for name in names))


@pytest.mark.slow
def test_lines_that_were_merged_by_hand_into_one_stay_so(place: Place) -> None:
    with_lines(place)
    jobs = "".join(f"- Job {name}\n" for name in NAMES)
    write_card(place, "all-jobs", f"All jobs of the pipeline.\n\n{jobs}", topic="All jobs")
    put(place, "MEMORY.md", without_lines(place.index(), *NAMES) + "- [All jobs](memory/cards/all-jobs.md)\n")
    merged = place.index()
    for _ in range(2):
        nightly(place)
        assert place.index() == merged
    assert missing(place) == []


@pytest.mark.slow
def test_a_line_that_was_taken_out_does_not_come_back_with_an_update(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    assert linked(place) == {"staging-proxy"}
    put(place, "MEMORY.md", "# Memory\n\nNothing to see here.\n")
    more = a_card(body="Staging answers on port 8443 only. The proxy is called atlas.")
    place.leave(a_handoff(action="update-card", content=more), "2026-11-14-1300-more.md")
    place.ingest()
    assert "atlas" in (place.workspace / "memory/cards/staging-proxy.md").read_text()
    nightly(place)
    assert linked(place) == set()


@pytest.mark.slow
def test_a_line_that_a_person_put_back_is_as_any_other(place: Place) -> None:
    with_lines(place)
    whole = place.index()
    put(place, "MEMORY.md", without_lines(whole, "ci-3", "ci-4"))
    nightly(place)
    put(place, "MEMORY.md", whole)
    write_card(place, "fresh", "New.", topic="Fresh")
    nightly(place)  # truekeep writes it, with the lines that were put back
    assert linked(place) == {*NAMES, "fresh"}
    put(place, "MEMORY.md", "")
    nightly(place)
    assert linked(place) == {*NAMES, "fresh"}, "an index that was lost is made anew"


@pytest.mark.slow
def test_undoing_what_wrote_the_lines_takes_them_out(place: Place) -> None:
    with_lines(place)
    with place.open() as workspace:
        (entry, _), *_ = workspace.history.entries()
        workspace.history.undo(entry.id)
    assert linked(place) == set()
    nightly(place)
    assert linked(place) == set()
    upkeep(place).reconcile(fix=True)
    assert linked(place) == set(NAMES), "who asks for it by hand decides anew"


@pytest.mark.slow
def test_a_line_that_truekeep_took_out_comes_back_with_its_card(place: Place) -> None:
    with_lines(place)
    text = (place.workspace / "memory/cards/ci-3.md").read_text()
    (place.workspace / "memory/cards/ci-3.md").unlink()
    nightly(place)
    assert "ci-3" not in linked(place)
    put(place, "memory/cards/ci-3.md", text)
    nightly(place)
    assert "ci-3" in linked(place)


@pytest.mark.slow
def test_a_new_card_gets_its_line_whatever_had_its_name(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    put(place, "MEMORY.md", "# Memory\n")
    (place.workspace / "memory/cards/staging-proxy.md").unlink()
    nightly(place)
    place.leave(a_handoff(content=a_card(body="Staging is new.")), "2026-11-14-1300-more.md")
    place.ingest()
    assert linked(place) == {"staging-proxy"}


@pytest.mark.parametrize("stands", ["memory/cards/all-jobs.md", "memory/ci.md", "docs/ci.md"])
def test_a_memory_that_the_index_points_at_stands_for_what_it_names(place: Place, stands: str) -> None:
    """Without a word in the ledger: truekeep never wrote this index."""
    for name in ("one", "two", "three", "four", "five", "apart"):
        write_card(place, name, "Text.", topic=f"Topic {name}")
    text = (
        "All of it: [One](memory/cards/one.md), [[two]], [Four](../cards/four.md) and"
        " [Five](./five.md).\n\n- `three.md`; not docs/apart.md, not apart.mdx.\n"
    )
    topic = "---\ntopic: All jobs\ncategory: x\ntags: []\n---\n\n" if "cards" in stands else ""
    put(place, stands, topic + text)
    put(place, "MEMORY.md", f"# Memory\n\n- [All jobs]({stands})\n")
    assert missing(place) == ["memory/cards/apart.md"]


def test_a_line_of_the_index_stands_for_the_cards_that_it_names(place: Place) -> None:
    for name in ("one", "two"):
        write_card(place, name, "Text.", topic=f"Topic {name}")
    put(place, "MEMORY.md", "# Memory\n\n- Jobs: one.md,two.md\n<!-- - [x](memory/cards/three.md) -->\n")
    assert missing(place) == []


@pytest.mark.slow
def test_a_card_that_nobody_names_gets_its_line(place: Place) -> None:
    put(place, "MEMORY.md", "# Memory\n\n- [Rules](rules/all.md), [gone](memory/none.md), [out](../x.md)\n")
    put(place, "memory/cards/by-hand.md", a_card("By hand"))
    (place.workspace / "rules").mkdir(exist_ok=True)
    (place.workspace / "rules" / "all.md").symlink_to("/etc/hostname")
    nightly(place)
    assert "by-hand" in linked(place)


def test_names_in_a_text() -> None:
    text = b"* **a.md**, (b.md) <c.md> cards/d%20e.md ./f.md ../g.md docs/h.md i.mdx j.md, https://x/k.md"
    assert names_in(text) == {"a.md", "b.md", "c.md", "d e.md", "f.md", "j.md"}
    assert "l m.md" in names_in(b"[y](<l m.md>)")
    assert names_in(b"| n.md | x |\n  2. o.md\nnot p.md, [but](q.md#r), [and](s.md)") == {
        "n.md",
        "o.md",
        "q.md",
        "s.md",
    }


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/cards/tools.md"])
def test_a_file_that_is_named_in_passing_gets_its_line(place: Place, path: str) -> None:
    write_card(place, "tools", "What is installed.", topic="Tools here")
    put(place, "MEMORY.md", "# Memory\n\n## Cards\n\n- [Tools here](memory/cards/tools.md)\n")
    text = (place.workspace / path).read_text()
    put(place, path, text + "\nNote that python.md was deleted.\n")
    write_card(place, "python", "Python is 3.13.", topic="Python")
    assert missing(place) == ["memory/cards/python.md"]
    upkeep(place).reconcile(fix=True)
    assert "python" in linked(place)


@pytest.mark.slow
def test_it_is_said_how_many_cards_are_left_out(place: Place) -> None:
    with_lines(place)
    put(place, "MEMORY.md", without_lines(place.index(), "ci-3", "ci-4"))
    done = run_cli("reconcile", "--workspace", str(place.workspace))
    assert "2 cards without a line in MEMORY.md" in done.stdout
    assert upkeep(place).reconcile().unindexed == ("memory/cards/ci-3.md", "memory/cards/ci-4.md")
