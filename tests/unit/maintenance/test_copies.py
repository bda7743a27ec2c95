"""Copies: whole documents that are somewhere else as well are named, with the one to keep; reports of days are not."""

from __future__ import annotations

from pathlib import Path

from tests.support.helpers import Place, run_cli, tree
from tests.support.upkeep_place import put
from truekeep.maintenance.copies import find_copies

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
PLAN = "# Plan\n\n" + "".join(f"- Step {word} moves the {word} tables, and checks every row.\n" for word in _WORDS)


def found(**texts: str) -> list[tuple[str, str, str]]:
    named = {path.replace("__", "/").replace("_", "-") + ".md": text for path, text in texts.items()}
    return [(item.place, item.kept_place, item.why) for item in find_copies(named)]


def test_the_same_text_twice() -> None:
    told = found(memory__plan=PLAN, memory__drafts__plan_of_ada=PLAN.replace("\n", "\n\n"))
    assert told == [("memory/drafts/plan-of-ada.md", "memory/plan.md", "the same text")]


def test_a_folder_of_backups_is_left_alone() -> None:
    assert found(memory__plan=PLAN, memory__backups__2026__plan=PLAN, memory__chat_backup__04__plan=PLAN) == []
    assert found(memory__plan=PLAN, memory__plan_backup=PLAN)


def test_the_one_that_others_point_at_is_kept() -> None:
    texts = {"memory/plan.md": PLAN, "memory/projects/move.md": PLAN}
    (copy,) = find_copies(texts, lambda path: path == "memory/projects/move.md")
    assert (copy.path, copy.kept) == ("memory/plan.md", "memory/projects/move.md")


def test_all_of_it_is_inside_another() -> None:
    told = found(
        memory__plan=PLAN, memory__archived_plans=f"# Old plans\n\n{PLAN}\n## More\n\n- Something else again.\n"
    )
    assert told == [("memory/plan.md", "memory/archived-plans.md", "all of it is there")]


def test_a_text_with_one_line_of_its_own_is_no_part_of_another() -> None:
    longer = PLAN + "".join(f"- Later, the {word} tables are read back and compared.\n" for word in _WORDS)
    for own in ("- Only here: the copy of the ledger needs a second key.\n", "- Ask Ada\n"):
        assert found(memory__plan=PLAN + own, memory__all=longer) == []
    assert len(found(memory__plan=PLAN, memory__all=longer)) == 1


def test_reports_of_a_series_and_parts_of_a_day_are_left_alone() -> None:
    assert found(memory__audit_2026_11_02=PLAN, memory__audit_2026_11_09=PLAN) == []
    assert found(memory__2026_11_02_jobs=PLAN, memory__2026_11_02=f"{PLAN}\n- And one line more.\n") == []


def test_what_is_short_is_no_copy() -> None:
    assert (
        found(
            memory__a="# Notes\n\nNothing here yet, come back later.\n",
            memory__b="Nothing here yet, come back later.\n",
        )
        == []
    )


def test_a_section_that_a_document_has_twice() -> None:
    other = "## Other\n\nSomething that stands in between.\n\n"
    told = found(memory__plan=f"# All\n\n#{PLAN}\n{other}#{PLAN}\n")
    assert told == [("memory/plan.md:21", "memory/plan.md:3", "the same section")]
    assert found(memory__reports=f"## 2026-11-02\n\n#{PLAN}\n## 2026-11-03\n\n#{PLAN}\n") == []


def test_the_command_names_them_and_changes_nothing(place: Place) -> None:
    put(place, "memory/plan.md", PLAN)
    put(place, "memory/drafts/plan.md", PLAN)
    before = {path: data for path, data in tree(place.workspace).items() if ".truekeep" not in str(Path(path))}
    for more in ((), ("--fix",)):
        done = run_cli("tidy", "duplicates", *more, "-w", str(place.workspace))
        assert done.returncode == 0
        assert "memory/drafts/plan.md" in done.stdout
        assert "delete the copy" in done.stdout
    after = {path: data for path, data in tree(place.workspace).items() if ".truekeep" not in str(Path(path))}
    assert after == before


ACCOUNTS = "- The work account owns every new repository.\n- The private account is for drafts, never for releases.\n"


def test_lines_that_the_index_has_twice() -> None:
    text = f"# Memory\n\n## Accounts\n\n{ACCOUNTS}\n## Rules\n\n- Ask before anything is deleted.\n{ACCOUNTS}"
    assert found(MEMORY=text) == [("MEMORY.md:11", "MEMORY.md:5", "the same lines")]
    assert found(memory__accounts=text) == []  # only of what is curated


def test_one_line_twice_is_no_repetition() -> None:
    line = ACCOUNTS.partition("\n")[0]
    assert found(MEMORY=f"{line}\n- Something else, of one account.\n{line}\n{line}\n{line}\n") == []


def test_a_section_that_the_log_of_a_day_has_twice() -> None:
    section = "## Move\n\n" + "".join(f"- Moved the {word} tables, and read every row back.\n" for word in _WORDS[:6])
    log = f"# 2026-11-02\n\n{section}\n## Noon\n\n- Ada asked for the plan.\n\n{section}"
    assert found(memory__2026_11_02=log) == [("memory/2026-11-02.md:16", "memory/2026-11-02.md:3", "the same section")]
    assert found(memory__reports__audit_2026_11_02=log) == []  # of a series
