"""Hints about lines that will not stand alone or will not last, and silence about the many that will."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.text.durability import MAX_EXCERPT, MAX_HINTS, WHY, DurabilityHint, find_hints
from truekeep.text.unicode import find_hidden

FLEETING = [
    ("relative-time", "- The nightly job is currently broken on ARM."),
    ("relative-time", "- Staging moved to the new cluster yesterday."),
    ("relative-time", "- Right now only the EU region has the flag."),
    ("relative-time", "- At the moment the queue has a single consumer."),
    ("relative-time", "- The schema was recently split in two."),
    ("relative-time", "- Last week the CA certificate was replaced."),
    ("relative-time", "- Today the importer handles CSV only."),
    ("relative-time", "- Deploys are frozen this week."),
    ("relative-time", "- The vendor raised the limit three months ago."),
    ("relative-time", "- For now the worker polls every minute."),
    ("relative-time", "- These days nobody uses the v1 endpoint."),
    ("dangling-reference", "- It breaks when two workers start together."),
    ("dangling-reference", "It is flushed every hour."),
    ("dangling-reference", "- This must never run twice."),
    ("dangling-reference", "1. They only apply to the staging cluster."),
    ("dangling-reference", "- That's why the port is fixed."),
    ("dangling-reference", "- [ ] This is not idempotent."),
    ("dangling-reference", "- That\u2019s why the port is fixed."),
    ("dangling-reference", "- Never edit this file by hand."),
    ("dangling-reference", "- Tests in this repo need a running Postgres."),
    ("dangling-reference", "- The flag exists as a guard against that bug."),
    ("dangling-reference", "- Same limits as described above."),
    ("dangling-reference", "- Python 3.9 is what runs here."),
    ("task-state", "- Next step is to port the importer."),
    ("task-state", "Next steps: port the importer, delete v1."),
    ("task-state", "- We are debugging the flaky login test."),
    ("task-state", "- TODO: document the retry budget"),
    ("task-state", "- TODO(ana) remove the shim"),
    ("task-state", "- The migration to uv is in progress."),
    ("task-state", "- Will fix the pagination tomorrow."),
    ("task-state", "- The cache branch is waiting for review."),
    ("task-state", "- [WIP] new tokenizer"),
    ("task-state", "- I still need to finish the Windows path handling."),
    ("code-layout", "- `parse_handoff` is defined in `src/truekeep/handoff.py`."),
    ("code-layout", "- The retry helper lives in src/net/retry.py:42"),
    ("code-layout", "- The file src/models/user.py contains the user model."),
    ("code-layout", "- `src/routes/index.ts` defines all routes"),
    ("code-layout", "- The order service is implemented in services/order/main.go line 12"),
    ("code-layout", "The utils live in src/utils.py and the models in src/models.py."),
    ("code-layout", "- Models live in src/models.py, views in src/views.py, and the routes live in src/routes.py:12"),
    ("code-layout", "- The helpers are defined in src/a.py and src/b.py"),
    ("code-layout", "- The parsers live under src/parsers/, and their tests are found in the folder tests/parsers/."),
    ("git-history", "- Commit 4f2a9c1 changed the default timeout."),
    ("git-history", "- Recent commits moved the parser to its own package."),
    ("git-history", "- The new index was merged yesterday."),
    ("git-history", "- Ana refactored the scheduler in PR 214."),
    ("git-history", "- git blame says the check is from 2021."),
    ("fix-recipe", "- The crash in login was fixed by adding a null check."),
    ("fix-recipe", "- The fix was to bump the timeout to 30 s."),
    ("fix-recipe", "- We fixed the deadlock in the pool."),
    ("fix-recipe", "- Resolved the flaky test by increasing the sleep."),
]

LASTING = [
    "- Postgres 14 is required: the planner of 13 ignores the partial index.",
    "- Decision: SQLite over Postgres, since the tool must work without a server.",
    "- The cache is least recently used and holds 512 entries.",
    "- The most recently modified card wins the tie.",
    "- The currently selected row decides which panel opens.",
    "- The report covers the last week of data.",
    "- Rows older than 30 days are deleted; a row created more than 30 days ago is gone.",
    "- The job loads yesterday's partition at 02:00 UTC.",
    "- `datetime.today()` is naive; use an aware clock.",
    '- "Today" in the UI means local midnight to midnight.',
    "- Invoices due before today count as overdue.",
    "- The lock is taken at the moment of the rename.",
    "- As soon as the socket closes the worker exits.",
    "- It is safe to run ingest twice.",
    "- It is not possible to rename a topic without a new id.",
    "- It can be tempting to call fsync again after EIO; Linux has dropped the page by then.",
    "- Those who deploy on Friday need a second approver.",
    "- This pattern is called the outbox.",
    "- That constraint comes from the vendor's API.",
    "- `schema.sql` is generated; never edit this file by hand.",
    "- src/gen/api.ts comes from the OpenAPI file, so do not change this file directly.",
    "- The row above the header holds the units.",
    "- Make sure that bug reports carry the trace id.",
    "- A heredoc is used for the SQL, quoted to stop expansion.",
    "- CI rejects TODO comments without an issue number.",
    "- A rebase is in progress when `.git/rebase-merge` exists.",
    "- The order status is one of `new`, `in progress`, `done`.",
    "- WIP commits are squashed by the merge queue.",
    "- The merge queue retries once while it is waiting for approval.",
    "- After a failed step the runbook says which next step applies.",
    "- The parser lives in src/parse.py because the CLI must import it without click.",
    "- Secrets are stored in /etc/truekeep/env, mode 600.",
    "- The utils live in src/utils.py and the models must not import them.",
    "- The models live in src/models.py and are generated from src/schema.sql by hand, in this order.",
    "- The parsers live in src/parse.py and the CLI in src/cli.py, because start-up must stay fast.",
    "- The production config is found in ~/.config/truekeep on the canonical host only.",
    "- src/ingest.py must not import click: start-up time.",
    "- Changing src/schema.py without a migration breaks every existing index.",
    "- Pinned to commit 4f2a9c1 because the next release breaks ARM.",
    "- CI checks only the latest commit of a pull request.",
    "- Feature branches are merged on Fridays.",
    "- The change was reverted by ops because it doubled the latency.",
    "- If `uv sync` hangs, the fix is to delete ~/.cache/uv.",
    "- The dialog position is fixed by CSS.",
    "- The deadlock was fixed by ordering the locks; root cause: the pool takes B first.",
    "- Bursts are solved by raising the queue limit, see the runbook.",
    "- The filter accepts 'today' and 'all'.",
    "- Users prefer short error messages with the next command to run.",
    "- Ports 5204 and 5300 belong to the ingest and the index service.",
    "- The vendor's rate limit is 100 requests a minute per key, not per account.",
    "",
    "## Gotchas",
]


@pytest.mark.parametrize(("code", "line"), FLEETING)
def test_fleeting_lines_get_a_hint(code: str, line: str) -> None:
    hints = find_hints([(7, line)])
    assert code in {hint.code for hint in hints}
    assert all(hint.line == 7 and hint.why == WHY[hint.code] for hint in hints)


@pytest.mark.parametrize("line", LASTING)
def test_lasting_lines_get_none(line: str) -> None:
    assert find_hints([(1, line)]) == ()


def test_a_pronoun_inside_a_paragraph_has_its_noun_before_it() -> None:
    paragraph = [(4, "The ingest worker takes a kernel lock."), (5, "It is released when the process dies.")]
    assert find_hints(paragraph) == ()
    apart = [(4, "The ingest worker takes a kernel lock."), (5, ""), (6, "It is released when the process dies.")]
    assert [(hint.code, hint.line) for hint in find_hints(apart)] == [("dangling-reference", 6)]
    bullets = [(4, "- The worker takes a lock."), (5, "- It is released when the process dies.")]
    assert [(hint.code, hint.line) for hint in find_hints(bullets)] == [("dangling-reference", 5)]


def test_one_hint_of_a_code_per_line_and_several_codes() -> None:
    hints = find_hints([(3, "- TODO: yesterday and today the queue was stuck.")])
    assert [hint.code for hint in hints] == ["relative-time", "task-state"]
    assert hints[0] == DurabilityHint(
        code="relative-time",
        line=3,
        excerpt="- TODO: yesterday and today the queue was stuck.",
        why=WHY["relative-time"],
    )


def test_hints_are_capped() -> None:
    hints = find_hints((number, "- It is currently broken.") for number in range(1, 500))
    assert len(hints) == MAX_HINTS


def test_nothing_gives_nothing() -> None:
    assert find_hints([]) == ()
    assert find_hints(iter([(1, "The vendor caps requests at 100 a minute.")])) == ()


@settings(deadline=None)  # the first example also compiles the patterns
@given(st.lists(st.text(st.characters(), max_size=80), max_size=6))
def test_any_text_is_taken_and_excerpts_are_safe_to_show(lines: list[str]) -> None:
    hints = find_hints([(number, f"- currently {line}") for number, line in enumerate(lines, 1)])
    for hint in hints:
        assert len(hint.excerpt) <= MAX_EXCERPT
        assert find_hidden(hint.excerpt) == ()
        assert "\n" not in hint.excerpt


@pytest.mark.parametrize(
    "piece",
    [
        "the currently ",
        "a b c ",
        "`",
        '"today" ',
        "commit 0123456 ",
        "fixed by x ",
        "ana changed ",
        "this file ",
        "a/",
        "- ",
        "we are ",
        "if it is in progress ",
        "next ",
    ],
)
def test_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert_about_linear(lambda count: find_hints([(1, piece * count)]), 2_000, huge=100_000)
