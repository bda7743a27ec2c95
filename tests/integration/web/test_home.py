"""Today in a browser, without one: health as status tells it, what waits, what changed, plots; looks taken aside."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import CODEX, Place, a_card, a_document_handoff, a_handoff, run_cli, tree
from tests.support.upkeep_place import write_card
from tests.support.visitor import Visitor, shown
from truekeep.core.errors import BadSetup
from truekeep.interfaces.web.background import Glance
from truekeep.interfaces.web.change_polling import mark_of
from truekeep.interfaces.web.pages.home import TITLES
from truekeep.sessions import session_record
from truekeep.workspace.health import QUESTIONS
from truekeep.workspace.health_history import NAME, Day, note_day

PLOTS = 6


def days_file(place: Place) -> Path:
    return place.workspace / ".truekeep" / "logs" / NAME


def now() -> datetime:
    return datetime.now(UTC)


def test_an_empty_store_is_friendly(visitor: Visitor) -> None:
    page = visitor.see("/")
    said = shown(page)
    for wanted in (
        "No claim of a file that names its repository was checked yet",
        "No handoff came in the last 2 weeks",
        "No session was noted yet",
        "Nothing waits for review",
        "Nothing was written in the last day",
        "No handoff was ever received here",
        "nothing waits for a person",
    ):
        assert wanted in said
    assert page.count("<figure") == PLOTS - 2  # none about cards
    assert page.count("<svg") == 1  # the index is there from the first day


def test_the_five_questions_have_their_verdicts(place: Place, visitor: Visitor) -> None:
    write_card(place, "old", "Nobody looks at it.", day="2020-01-01")
    said = visitor.read("/")
    for name in QUESTIONS:
        assert TITLES[name] in said
    status = run_cli("status", "--json", "--workspace", str(place.workspace))
    told = json.loads(status.stdout)["health"]
    for name, question in told["questions"].items():
        assert shown(question["said"]).replace("`", "") in said.replace(" ,", ","), name
    assert "✗ problem Which card is oldest?" in said
    assert "truekeep tidy decay lists it" in said
    assert "old.md" in said  # it waits to be decided on, or verified


def test_what_waits_and_what_changed(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff())
    place.leave(a_document_handoff(), "2026-11-14-1000-lint.md", inbox=place.repo / CODEX)
    place.leave("no handoff at all\n", "2026-11-14-1100-odd.md")
    place.ingest(now=now())
    place.leave(a_handoff(card="other.md"), "2026-11-14-1200-more.md")
    page = visitor.see("/")
    said = shown(page)
    assert "1 draft waits : 1 handoff" in said
    assert re.search(r'href="/review/[^"]+">', page)
    assert "1 of claude on" in said
    assert "1 promoted" in said
    assert "1 routed" in said
    assert 'href="/memory/file/memory/cards/staging-proxy.md"' in page
    since = (now() - timedelta(days=1)).date().isoformat()
    assert f'href="/history?verb=promoted&amp;since={since}"' in page


def test_what_is_older_than_a_day_did_not_change_since_yesterday(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff())
    place.ingest(now=now() - timedelta(hours=30))
    assert "Nothing was written in the last day" in visitor.read("/")


def test_plots_have_words_and_numbers(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff())
    place.leave(a_document_handoff(), "2026-11-14-1000-lint.md", inbox=place.repo / CODEX)
    place.ingest(now=now())
    today = datetime.now().astimezone().date()
    for back in (2, 1):
        note_day(
            str(days_file(place).parent),
            Day((today - timedelta(days=back)).isoformat(), 1, 0, 9_000, {"confirmed": 7, "gone": back}),
        )
    session_record.write_record(
        session_record.SessionRecord("s1", "claude", started_at=now().timestamp() - 60, commits=1, handoffs=1)
    )
    session_record.write_record(
        session_record.SessionRecord("s2", "claude", started_at=now().timestamp() - 50, commits=1)
    )
    page = visitor.see("/")
    labels = re.findall(r'<svg[^>]* role="img" aria-label="([^"]+)"', page)
    assert len(labels) == PLOTS
    told = " | ".join(labels)
    assert "Claims by verdict" in told
    assert "confirmed 7" in told
    assert "claude 1; codex 1" in told or "codex 1; claude 1" in told
    assert "claude: 1 of 2, 50%" in told
    assert "9 kB" in told
    assert "the limit is 25.6 kB" in told
    assert "style=" not in page
    assert page.count("<summary>Numbers") == PLOTS - 1


def test_days_are_local(place: Place, set_zone: Callable[[str], None]) -> None:
    """In the evening, west of Greenwich, it is already tomorrow in UTC."""
    set_zone("America/Los_Angeles")
    evening = datetime.now().astimezone().replace(hour=21, minute=30) - timedelta(days=1)
    place.leave(a_handoff())
    place.ingest(now=evening)
    visitor = Visitor(place)
    page = visitor.see("/")
    visitor.close()
    points = re.findall(r"<title>([^<]+)</title>", page)
    assert f"{evening:%Y-%m-%d}: 1 claude" in points
    sizes = [point for point in points if point.endswith(" kB")]
    today = datetime.now().astimezone()
    assert [point.split(": size ")[0] for point in sizes] == [f"{day:%Y-%m-%d}" for day in (evening, today)]
    assert not [point for point in points if "kB kB" in point]
    assert re.search(rf"{evening:%Y-%m-%d} 21:30", page)  # the last handoff
    assert "UTC" not in shown(page)


def test_the_day_is_noted_where_it_may_be(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.leave(a_handoff())
    place.ingest(now=now())
    looking = Visitor(place, read_only=True)
    looking.see("/")
    looking.close()
    assert not days_file(place).exists()
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    elsewhere = Visitor(place)
    elsewhere.see("/")
    elsewhere.close()
    assert not days_file(place).exists()
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "test-machine")
    before = tree(place.workspace)
    here = Visitor(place)
    here.see("/")
    here.close()
    assert days_file(place).exists()
    assert tree(place.workspace) == before


def test_lines_to_fix_are_named_and_linked(place: Place, visitor: Visitor) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    (place.workspace / "memory" / "2026-11-14.md").write_text(f"# A day\n\nThe token is {secret}\n")
    page = visitor.see("/")
    assert re.search(r'<a href="/memory/file/memory/2026-11-14\.md[^"]*">memory/2026-11-14\.md:3</a>', page)
    assert secret not in page


def test_what_others_wrote_is_only_text(place: Place, visitor: Visitor) -> None:
    write_card(place, "evil", "x", topic="<script>alert(1)</script>", day="2020-01-01")
    write_card(place, "evil-too", "x", topic="<script>alert(1)</script>", day="2020-01-01")
    place.leave(a_handoff(title="<img src=x>\u202e", content=a_card(topic="t <b>")))
    place.ingest(now=now())
    with place.open(now=now()) as workspace, workspace.writing("test") as books:
        books.ledger._db.execute("UPDATE handoff SET writer = ?, machine = ?", ("<i>w</i>\u202e", "<i>m</i>"))
    page = visitor.see("/")
    for bad in ("<script>alert", "<img", "<i>", "<b>", "\u202e"):
        assert bad not in page
    assert "&lt;i&gt;w&lt;/i&gt;" in page


def test_a_broken_set_up_is_told_not_thrown(place: Place, visitor: Visitor) -> None:
    (place.workspace / ".truekeep" / "survey.sqlite").mkdir()
    (place.workspace / ".truekeep" / "facts.sqlite").write_bytes(b"no database" * 100)
    answer = visitor.get("/")
    assert answer.status_code == 200
    (place.workspace / ".truekeep" / "config.toml").write_text("nonsense = [")
    fresh = Visitor(place)
    said = fresh.get("/")
    assert said.status_code in (200, 500)
    assert "config.toml" in shown(said.text)
    fresh.close()


def test_a_change_is_seen_at_once(place: Place, visitor: Visitor) -> None:
    assert "new this week" not in visitor.read("/")
    place.leave(a_handoff())
    place.ingest(now=now())
    for _ in range(50):
        said = visitor.read("/")
        if "under way" not in said:
            break
    assert "1; 1 new this week" in said


def test_a_look_by_somebody_else_is_no_change(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff())
    place.ingest(now=now())
    before = mark_of(str(place.workspace))
    with place.open() as workspace:
        assert list(workspace.history.entries())
        assert mark_of(str(place.workspace)) == before
    assert mark_of(str(place.workspace)) == before
    with place.open(now=now()) as workspace:
        workspace.history.undo(1)
        assert mark_of(str(place.workspace)) != before


# --- Looks taken aside -----------------------------------------------------------------------------------------------


class Slow:
    """Something that takes as long to look at as the test says."""

    def __init__(self) -> None:
        self.looks = 0
        self.mark = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: Exception | None = None

    def see(self) -> int:
        self.looks += 1
        number = self.looks
        assert self.may_end.wait(30)
        if self.error is not None:
            raise self.error
        return number


@pytest.fixture
def slow() -> Slow:
    return Slow()


def test_one_looks_for_all(slow: Slow) -> None:
    glance = Glance(slow.see, lambda: slow.mark, lasting=1000)
    slow.may_end.clear()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(glance.get().seen)) for _ in range(8)]
    for thread in threads:
        thread.start()
    slow.may_end.set()
    for thread in threads:
        thread.join(30)
    assert found == [1] * 8
    assert slow.looks == 1


def test_the_last_look_is_shown_while_a_new_one_is_taken(slow: Slow) -> None:
    glance = Glance(slow.see, lambda: slow.mark, lasting=1000, patience=0.01)
    assert glance.get() == (1, glance.get().at, True)
    slow.may_end.clear()
    slow.mark = 1
    old = glance.get()
    assert (old.seen, old.is_current) == (1, False)
    assert glance.get().seen == 1
    slow.may_end.set()
    patient = Glance(slow.see, lambda: slow.mark)
    assert patient.get().is_current
    while not (new := glance.get()).is_current:
        pass
    assert new.seen > 1


def test_a_change_while_somebody_looks_is_not_missed() -> None:
    """The mark is taken before the look: what changed meanwhile makes it old, even if it may have been seen."""
    mark = [0]

    def see() -> int:
        mark[0] += 1
        return mark[0]

    glance = Glance(see, lambda: mark[0] if mark[0] > 1 else 0, lasting=1000)
    assert glance.get().seen == 1
    mark[0] = 5
    seen = {glance.get().seen for _ in range(20)}
    assert max(seen) > 5


def test_a_look_that_fails_is_told_and_taken_again(slow: Slow) -> None:
    glance = Glance(slow.see, lambda: slow.mark, lasting=1000)
    slow.error = BadSetup("broken")
    with pytest.raises(BadSetup):
        glance.get()
    slow.error = None
    assert glance.get().seen == 2


def test_a_failure_after_a_good_look_is_told(slow: Slow) -> None:
    """Even if nobody waited for it: a page must not show an old look for ever."""
    glance = Glance(slow.see, lambda: slow.mark, lasting=0, patience=0)
    assert glance.get().seen == 1
    slow.error = BadSetup("broken")
    with pytest.raises(BadSetup):
        _get_until(glance, 10**9)
    slow.error = None
    seen = 1
    while seen == 1:
        with suppress(BadSetup):  # it is told until another look is good
            seen = glance.get().seen


def _get_until(glance: Glance[int], number: int) -> None:
    while glance.get().seen < number:
        pass


def test_what_lasts_too_long_is_looked_at_anew(slow: Slow) -> None:
    glance = Glance(slow.see, lambda: slow.mark, lasting=0)
    _get_until(glance, 3)
